# Safeguards of folding: emptied leaves that leave the tree (test/models/fold.pml has those that a schedule must hit).
# Sourced by test/mutations.

mutate fold_not_alone test_fold tree/client/quiesce.c \
	's/if \(slot != client->slot && !slot_drain\(client, slot, deadline\)\)/if (false \&\& slot_drain(client, slot, deadline))/'
mutate fold_same_epoch test_fold tree/change/fold.c \
	's/\tbarrier_next_epoch\(tree\);\n//'
mutate fold_empties_the_cache test_fold tree/shared/cache.c \
	's/word_load\(&frame->epoch\) >= tree->life/word_load(\&frame->epoch) == tree->epoch/'
mutate fold_forgotten_by_frames test_fold tree/change/fold.c \
	's/\t\truns_touched\(fold\);/\t\t(void) runs_touched;/'
mutate folded_into_forgotten_by_frames test_fold tree/change/fold.c \
	's/for \(uint32_t k = fold->plan\.run\[i\]\.left;/for (uint32_t k = fold->plan.run[i].left + 1;/'
mutate folded_last_forgotten_by_frames test_fold tree/change/fold.c \
	's/k <= fold->plan\.run\[i\]\.last; k\+\+\)/k < fold->plan.run[i].last; k++)/'
mutate frame_of_folded_node_believed test_cache tree/shared/cache.c \
	's/ \|\| !node_is_untouched\(table, tree, address, epoch\)//g'
mutate pointer_to_folded_node_believed "test_cache test_fold" tree/shared/cache.c \
	's/\? !node_is_untouched\(table, tree, pointer_address\(choice->child\), epoch\)/? false/'
mutate copied_pointer_to_folded_node_believed "test_cache test_fold" tree/shared/cache.c \
	's/\t\t            : !image_is_untouched\(table, tree, copy, epoch\)\)/: false)/; s/\t\tif \(!image_is_untouched\(table, tree, copy, epoch\)\)\n\t\t\tbreak;//; s/static bool\nimage_is_untouched/static inline bool\nimage_is_untouched/'
mutate copied_link_to_folded_node_believed test_cache tree/shared/cache.c \
	's/return node_is_untouched\(table, tree, pointer_address\(image\[HEADER_RIGHT\]\), epoch\);/return true;/'
mutate mark_of_another_tree_is_less test_cache tree/shared/cache.c \
	's/while \(last < tree->epoch &&/while (last != tree->epoch \&\&/'
mutate frame_of_before_stays_old test_cache tree/shared/cache.c \
	's/generation == image\[HEADER_GENERATION\] && word_load\(&frame->epoch\) >= tree->epoch\)/generation == image[HEADER_GENERATION])/'
mutate frame_of_another_life_believed test_cache tree/shared/cache.c \
	's/word_load\(&frame->epoch\) >= tree->life/true/'
mutate fold_not_told test_fold tree/change/fold.c \
	's/\trun_announce\(fold, run\);\n/\t(void) run_announce;\n/'
mutate fold_forgets_nodes test_fold tree/change/fold.c \
	's/status = freed_put\(tree, /status = freed_put == NULL ? TREE_OK : TREE_OK;\n\t(void) (/;s/\(void\) \(fold->nodes\[i - 1\]\.pointer, level, fold->nodes\[i - 1\]\.generation\);/(void) level;/'
mutate fold_full_leaf test_fold tree/change/fold.c \
	's/if \(cell_state\(leaf\[leaf_cell_word\(g, slot\)\]\) != CELL_EMPTY\)/if (slot >= node_count(leaf) \&\& cell_state(leaf[leaf_cell_word(g, slot)]) != CELL_EMPTY)/'
mutate rest_does_nothing test_fold tree/client/quiesce.c \
	's/\tclient->sections = sections;\n.*?\n\t\tslot_leave\(client\);/\t(void) client;/s'
mutate scan_enters_unfiltered test_fold tree/scan/scan.c \
	's/\tscan->near_inside = true;\n/\tscan->near_inside = false;\n/'
mutate scan_wants_its_fence test_fold tree/scan/scan.c \
	's/\tif \(!target->first && leaf_is_next\(scan, leaf\)\)\n\t\treturn TREE_OK;/\tif (!target->first)\n\t{\n\t\t*where = leaf_is_next(scan, leaf) ? 0 : -1;\n\t\treturn TREE_OK;\n\t}/'
mutate scan_passes_taken_end test_fold tree/scan/scan.c \
	's/\tscan->far_inside = true;\n/\tscan->far_inside = false;\n/'
# ---- what a fold looks at
mutate fold_first_leaf_remembered test_fold_walk tree/change/empty_ranges.c \
	's/\tif \(separator_infinite\(leaf \+ g->low_word\)\)\n\t\treturn;\n//'
mutate fold_looks_at_all test_fold_walk tree/change/fold_walk.c \
	's/i <= last \+ 1 && i < count/i < count/'
mutate fold_forgets_the_rest test_fold_walk tree/change/empty_ranges.c \
	's/(empty->ranges\[empty->count - 1\] : NULL;\n)/$1\n\tif (empty->count == EMPTY_RANGES_MAX)\n\t\treturn;\n/'
mutate fold_one_range_a_parent test_fold_walk tree/change/fold_walk.c \
	's/(\t\tif \(!fold->goes_on\)\n)(\t\t\trange = range_from\(fold, range \+ 1\);\n)/$1\t\t{\n$2\t\t\tbreak;\n\t\t}\n/'
mutate fold_never_rises_for_first "test_fold test_fold_walk" tree/change/fold_walk.c \
	's/folded > 0 \|\| fold->first_waits/folded > 0/'
mutate fold_not_again "test_fold test_fold_walk" tree/change/fold_walk.c \
	's/fold->ended = fold->again \|\| !fold->inner;/fold->ended = true;/'
mutate fold_of_two_walks test_fold_walk tree/change/vacuum.c \
	's/\tvacuum->empty.count = 0;\n//'
# ---- leaves that were read, and were folded before the reader comes back to them
mutate healed_behind_a_fold test_fold tree/change/heal.c \
	's/if \(critical_same_epoch\(handle, leaf\)\)/if (true)/'
mutate marked_behind_a_fold test_fold tree/change/dead.c \
	's/if \(critical_same_epoch\(handle, leaf\)\)/if (true)/'
mutate looked_at_behind_a_fold test_fold tree/change/full_leaf.c \
	's/critical_same_epoch\(handle, leaf\) &&\s+//'
