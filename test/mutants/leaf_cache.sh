# Images of leaves: what makes them the leaf. Sourced by test/mutations.

mutate image_believed_during_writes test_leaf_writes tree/lock/leaf_cache.c \
	's/before = __atomic_fetch_add\(version_of\(table, entry\), 1, __ATOMIC_SEQ_CST\);/before = word_load(version_of(table, entry));/; s/return before \+ 2;/return before;/'
mutate image_of_the_version_behind_the_read test_leaf_writes tree/descent/leaf_read.c \
	's/if \(status == TREE_OK\)\n\t\tleaf_cache_offer\(tree, &key, leaf\);/if (status == TREE_OK)\n\t{\n\t\tkey = leaf_cache_key(tree, pointer);\n\t\tleaf_cache_offer(tree, \&key, leaf);\n\t}/'
mutate image_kept_during_writes test_leaf_writes tree/lock/leaf_cache.c \
	's/return key->version % 2 == 0;/return key->version != NO_VERSION;/; s/assert\(key_has_version\(key\)\);//'
mutate image_of_any_version test_leaf_cache tree/lock/leaf_cache.c \
	's/\(!current \|\| word_load\(&frame->version\) == key->version\)/true/'
mutate image_believed_in_doubt test_leaf_writes tree/lock/lock_handle.c \
	's/(\tlock->held = false;\n)(\tresume_interrupts\(client\);\n\treturn status;)/$1\tleaf_cache_write_ends(client, lock_entry_number(client, lock->place, lock->index));\n$2/'
mutate image_of_another_epoch test_leaf_writes tree/lock/leaf_cache.c \
	's/ &&\n\t\s+word_load\(&frame->epoch\) == key->epoch;/;/'
mutate unfinished_image_believed test_leaf_writes tree/lock/leaf_cache.c \
	's/\*sequence % 2 == 0 && //; s/!sequence_end_read\(&frame->sequence, sequence\) \|\|\n\s+//'
mutate image_changes_while_it_is_copied test_leaf_writes tree/lock/leaf_cache.c \
	's/!sequence_end_read\(&frame->sequence, sequence\) \|\|\n\s+//'
mutate image_of_the_root_kept test_leaf_cache tree/lock/leaf_cache.c \
	's/bytes\[1\] == tree->root \|\|//'
mutate closed_node_answered_for test_leaf_cache tree/lock/leaf_cache.c \
	's/!node_is_open\(client->shared, node\) \|\|//'
mutate images_outlive_their_node test_leaf_cache tree/handle/shared.c \
	's/\tleaf_cache_forget\(client->shared, node\);\n//'
mutate images_outlive_their_incarnation test_leaf_writes tree/handle/shared.c \
	's/\tleaf_cache_shared_reset\(shared\);\n//'
mutate long_leaf_kept test_leaf_cache tree/lock/leaf_cache.c \
	's/tree->geometry.leaf_bytes > table->image_bytes \|\|//'
mutate leaves_kept_that_others_write test_leaf_cache tree/lock/leaf_cache.c \
	's/ \|\| !techniques->exclusive \|\| !techniques->hierarchy//'
mutate every_leaf_admitted test_leaf_cache tree/lock/leaf_cache.c \
	's/client_random\(client\) % 100 < table->admission_percent/true/'
mutate hot_image_pushed_out test_leaf_cache tree/lock/leaf_cache.c \
	's/return 1 \+ \(uint64_t\) \(UINT32_MAX - age\);/return 1 + (uint64_t) age;/'
mutate image_not_brought_up_to_date test_leaf_writes tree/lock/lock_release.c \
	's/\tif \(status == TREE_OK\)\n\t\tleaf_cache_wrote\(.*?\);\n//'
mutate image_of_a_write_that_is_lost test_leaf_writes tree/lock/lock_release.c \
	's/\tif \(status == TREE_OK\)\n\t\tleaf_cache_wrote/\tif (status == TREE_OK || status == TREE_RETRY)\n\t\tleaf_cache_wrote/'
