# Ownership, and leaves in shared memory. Sourced by script/test long mutations-server.

mutate lock_words_of_an_owner t/076_leaf_cache tree_options \
	's/\.techniques = &tree_owner_techniques,/.techniques = \&tree_techniques,/'
mutate no_room_for_leaves t/076_leaf_cache tree_options \
	's/cache \/ 100 \* LEAVES_PERCENT : 0/0 : 0/'
mutate mapped_leaves_kept t/076_leaf_cache admit_node \
	's/sherman_node_is_mapped\(sherman_shared->node\[position\]\.address\)/false/'
mutate generation_read_anew t/076_leaf_cache tree_batch_unchanged \
	's/\*unchanged = generation_is_kept\(tree, &batch->leaf\);/*unchanged = false;/'
