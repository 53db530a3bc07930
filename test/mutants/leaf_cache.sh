# Images of leaves: what makes them the leaf. Sourced by test/mutations.

mutate image_believed_during_writes test_leaf_writes leaf_image_void \
	's/\t\tif \(word_load\(&leaf_sets\(table\)\[set\]\.tags\[way\]\) == tag_of\(hash\)\)\n\t\t\t__atomic_store_n\(.*?\);/\t\t;/'
mutate image_of_a_read_that_met_a_write test_leaf_writes leaf_cache.c:frame_fill \
	's/valid = owner \|\| version_stands\(table, key\);/valid = true;/'
mutate read_does_not_see_who_writes test_leaf_writes version_stands \
	's/key->version % 2 == 0 &&\n\s+//'
mutate write_does_not_end_reads test_leaf_writes leaf_image_void \
	's/before = __atomic_fetch_add\(version_of\(table, entry\), 1, __ATOMIC_SEQ_CST\);/before = 0;/'
mutate image_of_the_version_behind_the_read test_leaf_writes leaf_cache_read \
	's/if \(status == TREE_OK\)\n\t\tleaf_cache_offer\(tree, &key, leaf\);/if (status == TREE_OK)\n\t{\n\t\tkey = leaf_cache_key(tree, pointer);\n\t\tleaf_cache_offer(tree, \&key, leaf);\n\t}/'
mutate void_image_believed test_leaf_writes way_find \
	's/ && \(!valid \|\| frame_is_valid\(frame\)\)\)/)/'
mutate image_believed_in_doubt test_leaf_writes lock_handle_leak \
	's/(\tlock->held = false;\n)(\tresume_interrupts\(client\);\n\treturn status;)/$1\tleaf_cache_write_ends(client, lock_entry_number(client, lock->place, lock->index));\n$2/'
mutate image_of_another_epoch test_leaf_writes leaf_cache.c:frame_is \
	's/word_load\(&frame->epoch\) == key->epoch && //'
mutate unfinished_image_believed test_leaf_writes way_find \
	's/\*sequence % 2 == 0 && //' \
	image_take \
	's/!sequence_end_read\(&frame->sequence, sequence\) \|\|\n\s+//'
mutate image_changes_while_it_is_copied test_leaf_writes image_take \
	's/!sequence_end_read\(&frame->sequence, sequence\) \|\|\n\s+//'
mutate image_of_the_root_kept test_leaf_cache leaf_cache_key \
	's/pointer_address\(pointer\) == tree->root \|\| //'
mutate closed_node_answered_for test_leaf_cache leaf_cache_key \
	's/!node_is_open\(client->shared, node\) \|\| //'
mutate images_outlive_their_node test_leaf_cache tree_node_open \
	's/\tleaf_cache_forget\(client->shared, node\);\n//'
mutate image_of_a_node_that_was_fenced test_leaf_cache leaf_cache.c:frame_is \
	's/ && word_load\(&frame->fences\) == key->fences//'
mutate images_outlive_their_incarnation test_leaf_writes tree_shared_reset \
	's/\tleaf_cache_shared_reset\(shared\);\n//'
mutate long_leaf_kept test_leaf_cache leaf_cache_key \
	's/ tree->geometry.leaf_bytes > table->longest \|\|//' \
	span_of \
	's/assert\(frames <= LEAF_GROUP\);//'
mutate leaves_kept_that_others_write test_leaf_cache sets_of \
	's/ \|\| !techniques->exclusive \|\| !techniques->hierarchy//'
mutate every_leaf_admitted test_leaf_cache image_offer \
	's/client_random\(client\) % 100 >= table->admission_percent/false/'
mutate leaves_ahead_mostly_turned_away test_leaf_cache prefetch_read \
	's/leaves_wanted = true/leaves_wanted = false/'
mutate hot_image_pushed_out test_leaf_cache frame_worth \
	's/return 1 \+ \(uint64_t\) \(UINT32_MAX - age\);/return 1 + (uint64_t) age;/'
mutate image_not_brought_up_to_date test_leaf_writes node_wrote \
	's/\tif \(count > 0\)\n\t\tleaf_cache_wrote\(.*?\);/\t(void) tree, (void) count, (void) pointer, (void) after, (void) bytes;/'
mutate locked_leaf_is_read test_leaf_cache node_read_locked \
	's/\tif \(!read && bytes == tree->geometry.leaf_bytes\)\n\t\tread = leaf_cache_take_locked\(.*?\);\n//'
mutate image_of_a_write_that_is_lost test_leaf_writes write_then_unlock \
	's/(\tTreeStatus status = count > 0 \? writes_execute\(tree, lock, writes, count\) : TREE_OK;\n)/$1\n\tnode_wrote(tree, count, pointer, after, bytes);/'
mutate half_of_a_hot_leaf_not_kept test_leaf_cache split_leaf \
	's/\tif \(status == TREE_OK\)\n\t\tleaf_cache_split\(.*?\);\n//'
mutate generation_not_compared test_leaf_writes leaf_cache_has_generation \
	's/ && kept == generation;/;/'
mutate generation_always_read test_leaf_writes tree_batch_unchanged \
	's/\*unchanged = generation_is_kept\(tree, &batch->leaf\);/*unchanged = false;/'
mutate group_gets_two_places test_leaf_cache place_give \
	's/if \(leaf_image\(table, number\) != NULL\)/if (*place == LEAF_PLACE_BEGUN)/; s/LEAF_PLACE_BEGUN, false, __ATOMIC_SEQ_CST,\n\s+__ATOMIC_RELAXED\)\)/LEAF_PLACE_BEGUN, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED) \&\& false)/'
mutate places_outlive_their_cache test_leaf_cache leaf_cache_shared_reset \
	's/\ttable->places = 0;\n//'
mutate free_frame_not_given test_leaf_cache image_admit \
	's/\(room && least > 0\)/room/'
mutate group_divided_beside_its_frames test_leaf_cache leaf_cache.c:frame_fill \
	's/group_span\(table, number\) != span_of\(table, tree\) &&\n\s+!group_divide\(table, number, span_of\(table, tree\)\)/false/'
