# Safeguards of merging: emptied leaves that leave the tree (test/models/merge.pml has those that a schedule must hit).
# Sourced by test/mutations.

mutate merge_not_alone test_merge barrier_close \
	's/if \(slot != client->slot && !slot_drain\(client, slot, deadline\)\)/if (false \&\& slot_drain(client, slot, deadline))/'
mutate merge_same_epoch test_merge merge_closed \
	's/\tbarrier_next_epoch\(tree\);\n//'
mutate merge_empties_the_cache test_merge inner_cache.c:frame_is \
	's/word_load\(&frame->epoch\) >= tree->first_epoch/word_load(\&frame->epoch) == tree->epoch/'
mutate merge_forgotten_by_frames test_merge merge_closed \
	's/\t\truns_touched\(merge\);/\t\t(void) runs_touched;/'
mutate merged_into_forgotten_by_frames test_merge runs_touched \
	's/for \(uint32_t k = merge->plan\.run\[i\]\.left;/for (uint32_t k = merge->plan.run[i].left + 1;/'
mutate merged_last_forgotten_by_frames test_merge runs_touched \
	's/k <= merge->plan\.run\[i\]\.last; k\+\+\)/k < merge->plan.run[i].last; k++)/'
mutate frame_of_merged_node_believed test_cache 'cache_find_child cache_copy' \
	's/ \|\| !node_is_untouched\(table, tree, address, epoch\)//'
mutate pointer_to_merged_node_believed "test_cache test_merge" cache_find_child \
	's/\? !node_is_untouched\(table, tree, pointer_address\(choice->child\), epoch\)/? false/'
mutate copied_pointer_to_merged_node_believed "test_cache test_merge" cache_find_child \
	's/\t\t            : !image_is_untouched\(table, tree, copy, epoch\)\)/: false)/' \
	cache_copy \
	's/\t\tif \(!image_is_untouched\(table, tree, copy, epoch\)\)\n\t\t\tbreak;//' \
	image_is_untouched \
	's/static bool\nimage_is_untouched/static inline bool\nimage_is_untouched/'
mutate copied_link_to_merged_node_believed test_cache image_is_untouched \
	's/return node_is_untouched\(table, tree, pointer_address\(image\[HEADER_RIGHT\]\), epoch\);/return true;/'
mutate mark_of_another_tree_is_less test_cache cache_touched \
	's/while \(last < tree->epoch &&/while (last != tree->epoch \&\&/'
mutate frame_of_before_stays_old test_cache frame_is_as_new \
	's/generation == image\[HEADER_GENERATION\] && word_load\(&frame->epoch\) >= tree->epoch\)/generation == image[HEADER_GENERATION])/'
mutate frame_of_another_life_believed test_cache inner_cache.c:frame_is \
	's/word_load\(&frame->epoch\) >= tree->first_epoch/true/'
mutate merge_not_told test_merge run_write \
	's/\trun_announce\(merge, run\);\n/\t(void) run_announce;\n/'
mutate merge_forgets_nodes test_merge merge_keep \
	's/status = freed_put\(tree, /status = freed_put == NULL ? TREE_OK : TREE_OK;\n\t(void) (/; s/\(void\) \(merge->nodes\[i - 1\]\.pointer, level, merge->nodes\[i - 1\]\.generation\);/(void) level;/'
mutate merge_full_leaf test_merge leaf_is_empty \
	's/if \(cell_state\(leaf\[leaf_cell_word\(g, slot\)\]\) != CELL_EMPTY\)/if (slot >= node_count(leaf) \&\& cell_state(leaf[leaf_cell_word(g, slot)]) != CELL_EMPTY)/'
mutate rest_does_nothing test_merge critical_reset \
	's/\tclient->sections = sections;\n.*?\n\t\tslot_leave\(client\);/\t(void) client;/s'
mutate scan_enters_unfiltered test_merge near_fence_find \
	's/\tscan->near_inside = true;\n/\tscan->near_inside = false;\n/'
mutate scan_wants_its_fence test_merge target_compare \
	's/\tif \(!target->first && leaf_is_next\(scan, leaf\)\)\n\t\treturn TREE_OK;/\tif (!target->first)\n\t{\n\t\t*where = leaf_is_next(scan, leaf) ? 0 : -1;\n\t\treturn TREE_OK;\n\t}/'
mutate scan_passes_taken_end test_merge taken_judge \
	's/\tscan->far_inside = true;\n/\tscan->far_inside = false;\n/'
# ---- what a merge looks at
mutate merge_first_leaf_remembered test_merge_walk empty_ranges_add \
	's/\tif \(separator_infinite\(leaf \+ g->low_word\)\)\n\t\treturn;\n//'
mutate merge_looks_at_all test_merge_walk look_at \
	's/i <= last \+ 1 && i < count/i < count/'
mutate merge_forgets_the_rest test_merge_walk empty_ranges_add \
	's/(empty->ranges\[empty->count - 1\] : NULL;\n)/$1\n\tif (empty->count == EMPTY_RANGES_MAX)\n\t\treturn;\n/'
mutate merge_one_range_a_parent test_merge_walk children_choose \
	's/(\t\tif \(!merge->goes_on\)\n)(\t\t\trange = range_from\(merge, range \+ 1\);\n)/$1\t\t{\n$2\t\t\tbreak;\n\t\t}\n/'
mutate merge_never_rises_for_first "test_merge test_merge_walk" merge_next \
	's/merged > 0 \|\| merge->first_waits/merged > 0/'
mutate merge_not_again "test_merge test_merge_walk" level_end \
	's/merge->ended = !merge->inner;/merge->ended = true;/'
mutate merge_of_two_walks test_merge_walk vacuum_refresh \
	's/\tvacuum->empty.count = 0;\n//'
# ---- leaves that were read, and were merged before the reader comes back to them
mutate healed_behind_a_merge test_merge tree_heal_leaf \
	's/if \(critical_same_epoch\(handle, leaf\)\)/if (true)/'
mutate marked_behind_a_merge test_merge tree_mark_dead \
	's/if \(critical_same_epoch\(handle, leaf\)\)/if (true)/'
mutate looked_at_behind_a_merge test_merge tree_leaf_unchanged \
	's/critical_same_epoch\(handle, leaf\) &&\s+//'
