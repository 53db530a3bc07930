# Safeguards against nodes that make no sense. Sourced by test/mutations.

mutate shape_not_looked_at test_wild_nodes tree/node/node_verify.c \
	's/ && !node_has_shape\(g, node\)//g'
mutate ways_lead_anywhere test_node tree/node/shape.c \
	's/ && pointer_memory_node\(pointer\) < g->memory_nodes//'
mutate postings_stray test_node tree/node/shape.c \
	's/ \|\| !leaf_posting_stray\(g, node\)/ || leaf_posting_stray != NULL/'
mutate images_are_anywhere test_node tree/node/shape.c \
	's/return reference.memory_node < g->memory_nodes &&/return/'
mutate levels_without_end test_node tree/node/shape.c \
	's/node_level\(node\) >= LEVELS_MAX \|\| //'
mutate tid_of_no_row test_wild_nodes tree/scan/scan.c \
	's/if \(!batch_has_tids\(&scan->batch\)\)/if (false \&\& !batch_has_tids(\&scan->batch))/'
mutate right_link_and_fence test_node tree/node/shape.c \
	's/return right == POINTER_NONE;/return true;/'
mutate replicas_in_a_ring test_replicas tree/handle/replicas_compare.c \
	's/if \(!walk_goes_on\(&walk, pointer\)\)/if (false \&\& !walk_goes_on(\&walk, pointer))/'
