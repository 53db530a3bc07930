# Mutants of tree/change: its safeguards, removed one at a time (test/README). Sourced.

mutate bulk_always_cuts test_bulk separator_make \
	's/(leaf_separator\(g, bulk_before.*?;\n)/$1\tseparator[0] = (bulk->cell[0] & CELL_HIGH_BIT) | (uint64_t) SEPARATOR_CUT << CELL_STATE_SHIFT;\n/s'
mutate bulk_shares_blocks test_bulk separator_make \
	's/if \(cell_state\(separator\[0\]\) == SEPARATOR_CUT \|\| \(separator\[0\] & CELL_OVERFLOW_BIT\) == 0\)/if (true)/'
mutate duplicates_not_loaded_together test_posting bulk_pack \
	's/packer_add\(g, &bulk->packer, bulk->cell\);/bulk->packer.tids = 0; packer_add(g, \&bulk->packer, bulk->cell);/; s/packer_takes_cell\(g, &bulk->packer, bulk->cell\)/true/'
mutate bulk_forgets_images test_bulk bulk_send \
	's/status = bulk_window_end/status = kind == BULK_IMAGES ? TREE_OK : bulk_window_end/'
mutate bulk_root_before_the_rest test_bulk_wave bulk_complete \
	's/if \(status == TREE_OK\)\n\t\tstatus = bulk_send\(&bulk->writes\);//; s/return TREE_OK;\n\}$/return status;\n}/'
mutate bulk_leaves_the_empty_leaf_cached test_leaf_cache bulk.c:root_write \
	's/status = lock_and_read\(.*?root, bytes\);/status = access_repeat(tree, pointer_memory_node(tree->root), ops, 1, "the root"); (void) lock; (void) image;/s'
mutate bulk_lost_and_not_repeated test_bulk_wave windows_send \
	's/status = window_send\(writes, window\);/window_empty(window), status = TREE_OK;/'
mutate bulk_windows_go_one_by_one test_bulk_wave bulk_window_end \
	's/if \(goes_alone\(writes, window\)\)/if (true)/'
mutate bulk_memory_not_foreseen test_bulk_wave leaves_foreseen \
	's/bulk->leaf_count == 0\)/true)/'
mutate dead_unit_not_raised test_dead dead_chain \
	's/\tleaf_raise_dead\(node, wal->epoch, wal->lsn\);\n//'
mutate mark_without_generation test_dead mark_some \
	's/node\[HEADER_GENERATION\] == leaf->generation &&/true \&\&/'
mutate dead_marked_in_another_generation sim_explore mark_some \
	's/node_level\(node\) == 0 && node\[HEADER_GENERATION\] == leaf->generation &&/node_level(node) == 0 \&\&/'
mutate void_marks_covered_up test_unverified mark_some \
	's/ && !leaf_is_unverified\(g, node\) &&\s+!leaf_marks_void\(g, node\)//'
mutate marked_behind_a_merge test_merge tree_mark_dead \
	's/if \(critical_same_epoch\(handle, leaf\)\)/if (true)/'
mutate merge_first_leaf_remembered test_merge_walk sparse_ranges_add \
	's/\tif \(separator_infinite\(leaf \+ g->low_word\)\)\n\t\treturn;\n//'
mutate merge_forgets_the_rest test_merge_walk sparse_ranges_add \
	's/(sparse->ranges\[sparse->count - 1\] : NULL;\n)/$1\n\tif (sparse->count == SPARSE_RANGES_MAX)\n\t\treturn;\n/'
mutate looked_at_behind_a_merge test_merge tree_leaf_unchanged \
	's/critical_same_epoch\(handle, leaf\) &&\s+//'
mutate room_not_asked_for test_dead room_is_asked \
	's/return tree->full_always \|\| .*?;/return false;/'
mutate table_asked_about_unverified test_unverified room_is_asked \
	's/ \|\| leaf_is_unverified\(&tree->geometry, node\)//'
mutate newest_by_offset test_churn room_duplicate \
	's/tid_order\(cell_block\(other\[0\]\), cell_offset\(other\[0\]\)\) < tid/cell_offset(other[0]) < (tid \& 0xffff)/'
mutate healed_without_a_wal_position test_unverified image_heal \
	's/\tnode\[HEADER_EPOCH\] = wal->epoch;\n//'
mutate marks_stay_void test_unverified image_heal \
	's/\t\tleaf_revive\(g, node\);\n//'
mutate heal_of_another_generation test_unverified heal_inside \
	's/node_level\(node\) != 0 \|\| node\[HEADER_GENERATION\] != leaf->generation/node_level(node) != 0/'
mutate healed_behind_a_merge test_merge tree_heal_leaf \
	's/if \(critical_same_epoch\(handle, leaf\)\)/if (true)/'
mutate healed_in_another_epoch sim_explore tree_heal_leaf \
	's/if \(critical_same_epoch\(handle, leaf\)\)/if (true)/'
mutate leaf_fences_not_checked torture=domains-16 insert_place \
	's/if \(in->path.fences_known && separator_equal.*?\)\)\n/if (true)\n/s'
mutate fences_not_checked test_tree_faults insert_place \
	's/if \(in->path.fences_known && separator_equal.*?\)\)\n/if (true)\n/s'
mutate right_sibling_skipped test_tree_faults insert_place \
	's/return PLACE_RIGHT;/return PLACE_HERE;/'
mutate entries_not_written_alone test_budget insert_locked \
	's/if \(survey.same_tid == LEAF_NO_SLOT && survey.empty != LEAF_NO_SLOT\)/if (false)/'
mutate alone_not_asked test_alone insert_locked \
	's/if \(in->alone_wanted && /if (false \&\& /'
mutate permit_not_asked_for test_alone insert_locked \
	's/\tif \(!insert_permitted\(in\)\)\n\t\treturn insert_release\(in\);\n//'
mutate insert_goes_astray_on_and_on test_damage insert_astray \
	's/if \(\+\+in->astray < DESCENT_ATTEMPTS\)/if (++in->astray < 100)/; s/assert\(in->astray < DESCENT_ATTEMPTS\);//'
mutate incomplete_splits_not_completed test_tree_faults insert_move_right \
	's/if \(in->path.fresh\)/if (false)/'
mutate insert_goes_round_and_round test_damage insert_move_right \
	's/if \(status == TREE_OK && !walk_goes_on\(&in->walk, right, 0\)\)/if (false)/'
mutate moved_fences_are_damage test_tree_faults insert_attempt \
	's/\tin->outrun = true;\n\treturn TREE_RETRY;/\treturn insert_astray(in);/'
mutate outrun_insert_has_its_time_only test_tree_faults insert_outrun \
	's/if \(client_outrun\(client, &in->outruns, INSERT_ATTEMPTS\)\)/if (++in->outruns.tries < INSERT_ATTEMPTS)/'
mutate block_lost_in_jump test_tree_faults insert_inside \
	's/(\*hit = false;.*?)insert_abandon\(handle\);/$1handle->block.bytes = 0;/s'
mutate wave_alone_not_looked_for test_insert_many_alone many_shown_alone \
	's/return leaf_has_no_equal_key\(g, leaf->image, many->cell\);/return true;/'
mutate wave_alone_but_for_its_own test_insert_many_alone many_shown_alone \
	's/if \(entry > leaf->first && !many_differs\(many, entry\)\)/if (false)/'
mutate block_freed_behind_acknowledgment test_tree_faults insert_wrote \
	's/if \(status != TREE_OK \|\| !in->kept\)\n\t\tin->tree->block.bytes = 0;//' \
	insert_downlink \
	's/(TreeStatus status = downlink_insert\([^;]*;)/$1\n\n\tin->tree->block.bytes = 0;/'
mutate doubt_not_told test_tree_faults insert_wrote \
	's/in->again = true;/in->again = false;/'
mutate permit_goes_on_for_the_parent test_alone insert_wrote \
	's/(holding\);\n)\tif \(in->permitted\)\n\t\tpermit_end\(in\);\n/$1/'
mutate old_epoch_forgotten test_tree insert_set_wal_position \
	's/unverified = epoch;/unverified = 0;/'
mutate doubt_covered_up test_unverified insert_set_wal_position \
	's/if \(unverified == 0 && leaf_is_unverified/if (false \&\& leaf_is_unverified/'
mutate permit_goes_on_behind_the_lock test_alone insert_release \
	's/(tree_node_bytes\(tree, in->path.pointer, 0\)\);\n)\tif \(in->permitted\)\n\t\tpermit_end\(in\);\n/$1/'
mutate room_for_one_is_enough test_dead REWRITE_LIVE_NUMERATOR \
	's/#define REWRITE_LIVE_NUMERATOR 15/#define REWRITE_LIVE_NUMERATOR 16/' \
	leaf_worth_rewrite \
	's/kept \* REWRITE_LIVE_DENOMINATOR <= /kept * REWRITE_LIVE_DENOMINATOR < /'
mutate duplicates_not_merged test_posting insert_gather \
	's/leaf_pack\(&in->tree->geometry, cells\);//'
mutate entry_moves_inside_generation test_tree insert_rewrite \
	's/client->image\[HEADER_GENERATION\] \+ 1\);/client->image[HEADER_GENERATION]);/'
mutate churn_cut_in_the_middle test_churn insert_wanted_cut \
	's/return in->tree->full_always \? insert_churn_cut\(g, cells\) : cells->count \/ 2;/(void) insert_churn_cut;\n\treturn cells->count \/ 2;/'
mutate inserted_half_not_told test_predicate insert_split_write \
	's/tree->inserted = cells->extra < split->cut \? split->left : split->right;//'
mutate plan_not_held_against_leaf test_tree_faults insert_split_unlocked \
	's/changed = node_level\(now\) != 0 \|\| now\[HEADER_GENERATION\].*?cells_bytes\) != 0;/changed = false;/s'
mutate outrun_insert_is_damage test_tree_faults insert_split_unlocked \
	's/in->outrun = changed;/in->outrun = false;/'
mutate permit_not_asked_for_again_outside test_alone insert_split_unlocked \
	's/if \(changed \|\| !insert_permitted\(in\)\)/if (changed)/'
mutate hit_is_silent test_tree insert_over \
	's/return insert_rewrite\(in, LEAF_NO_SLOT, false, &cells->leaf\);/return insert_release(in);/'
mutate room_of_another_generation test_dead insert_delete_dead \
	's/node_level\(node\) != 0 \|\| node\[HEADER_GENERATION\] != full.leaf.generation/node_level(node) != 0/'
mutate permit_not_asked_for_again_with_room test_alone insert_delete_dead \
	's/\tif \(!insert_permitted\(in\)\)\n\t\treturn insert_release\(in\);\n//'
mutate single_of_a_wave_not_alone test_insert_many_alone alone_single \
	's/status =\n\t\t\ttree_insert_alone\(many->tree, many_key\(many, many->next\), many->wal, many->permit, &hit, &alone\);/status = tree_insert(many->tree, many_key(many, many->next), many->wal, \&hit);/'
mutate waves_do_not_stop test_insert_many_faults insert_some \
	's/if \(client_should_stop\(many->tree->client\)\)/if (false)/'
mutate single_without_waves_not_alone test_insert_many_alone insert_each_alone \
	's/status = tree_insert_alone\(tree, &keys\[\*done\], wal, permit, &hit, &alone\);/status = tree_insert(tree, \&keys[*done], wal, \&hit); (void) permit;/'
mutate alone_in_any_order test_insert_many_alone tree_insert_many_alone \
	's/\tif \(!keys_ascend\(handle, keys, count\)\)/\tif (false)/'
mutate wave_first_word_alone_orders test_insert_many norms_order \
	's/uint32_t i = first_word; i < g->norm_words/uint32_t i = first_word; i < 1 \&\& i < g->norm_words/'
mutate wave_high_keys_first test_insert_many entries_order \
	's/return a->high \? 1 : -1;/return a->high ? -1 : 1;/'
mutate wave_last_run_left_out test_insert_many runs_merge_all \
	's/start < many->count; start/start + length < many->count; start/'
mutate wave_neighbors_taken_for_ordered test_insert_many runs_merge_all \
	's/middle == count \|\| entries_order\(many, &from\[start \+ middle - 1\], &from\[start \+ middle\]\) <= 0/true/'
mutate wave_order_left_in_the_other_buffer test_insert_many many_sort \
	's/\tif \(from != many->entries\)\n\t\tmemcpy/\tif (false)\n\t\tmemcpy/'
mutate spread_separator_not_least test_insert_many cut_separator \
	's/if \(cell_state\(separator\[0\]\) != SEPARATOR_FULL \|\| g->format.lossless\)/if (true)/'
mutate spread_position_not_raised test_insert_many many_spread \
	's/leaf->stamped = insert_set_wal_position\(tree, many->wal, leaf->image\);//'
mutate spread_not_told test_insert_many many_spread \
	's/leaf_split_announce\(tree, leaf->path.pointer, many->siblings\[leaf->first_sibling \+ i\].pointer\);/state_split_begins(tree->state);/; s/\A/#include "tree\/shared\/state.h"\n\n/'
mutate mapped_single_not_alone test_insert_many_alone=--mapped entry_insert \
	's/\tif \(many->alone\)\n\t\tstatus = insert_found_alone/\tif (false)\n\t\tstatus = insert_found_alone/'
mutate mapped_single_before_others_leaves test_insert_many_alone=--mapped wave_take \
	's/\t\treturn \*status == TREE_OK && entry->state == MANY_DONE;/\t\treturn *status == TREE_OK;/'
mutate wave_takes_hits test_insert_many entry_is_plain \
	's/return survey.same_tid == LEAF_NO_SLOT;/return true;/'
mutate wave_takes_twins test_insert_many entry_is_plain \
	's/if \(entry > leaf->first \&\& many_key/if (false \&\& many_key/'
mutate wave_alone_without_permit test_insert_many_alone entry_may_be_placed \
	's/ && many_permitted\(many, entry\)//'
mutate wave_high_fence_not_asked test_insert_many_faults insert_wave.c:leaf_accept \
	's/high = entry_decide\(many, i, leaf->image \+ g->high_word, DECIDE_BELOW\);/high = DECIDE_BELOW;/'
mutate wave_alone_beside_what_is_barred test_insert_many_alone insert_wave.c:leaf_accept \
	's/if \(many->alone \|\| low == DECIDE_BELOW/if (low == DECIDE_BELOW/'
mutate wave_position_not_raised test_insert_many slots_write \
	's/leaf->stamped = insert_set_wal_position\(tree, many->wal, node\);/leaf->stamped = false;/'
mutate spread_siblings_behind_leaf test_insert_many_faults wave_write \
	's/if \(leaf_is_written\(&many->leaves\[i\]\) && siblings_write\(many, &many->leaves\[i\]\)\)/if (false)/; s/whole_write\(many, leaf\);\n/whole_write(many, leaf), (void) siblings_write(many, leaf);\n/'
mutate wave_keeps_new_leaves_unasked test_leaf_writes siblings_cache \
	's/(\t\tleaf_cache_split\(many->tree, leaf->path.pointer, &)sibling->key/\t\tLeafKey key = leaf_cache_key(many->tree, sibling->pointer);\n\n$1key/'
mutate spread_end_not_told test_insert_many leaf_wrote \
	's/\tsplit_over\(tree, status\);/\t;/'
mutate new_leaves_of_waves_not_kept test_leaf_writes leaf_wrote \
	's/\t\tsiblings_cache\(many, leaf\);\n/\t\t(void) siblings_cache;\n/'
mutate wave_lost_write_is_done test_insert_many_faults leaf_wrote \
	's/state = status == TREE_OK \? MANY_DONE : MANY_WAITS;/state = MANY_DONE;/'
mutate wave_alone_behind_what_no_wave_takes test_insert_many_alone leaf_is_through \
	's/many->leaves\[leaf\]\.placed == end - many->leaves\[leaf\]\.first/many->leaves[leaf].placed == many->leaves[leaf].end - many->leaves[leaf].first + 0 * end/'
mutate wave_alone_behind_what_is_barred test_insert_many_alone wave_judge \
	's/\t\tif \(many->alone && !leaf_is_through\(many, i\)\)\n\t\t\tbreak;\n/\t\t(void) leaf_is_through;\n/'
mutate wave_permits_last test_insert_many_alone wave_fill \
	's/\tmany_permits_end\(many\);\n//'
mutate leaves_take_few_entries_each test_parents many_new_cells \
	's/if \(most > images \* g->leaf_cells \/ 2\)/if (most > 2048)\n\t\tmost = 2048;\n\tif (most > images * g->leaf_cells \/ 2)/'
mutate spread_without_downlinks test_insert_many wave_downlinks \
	's/return count == 0/return count < UINT32_MAX/'
mutate merge_full_leaf test_merge leaf_is_empty \
	's/if \(cell_state\(leaf\[leaf_cell_word\(g, slot\)\]\) != CELL_EMPTY\)/if (slot >= node_count(leaf) \&\& cell_state(leaf[leaf_cell_word(g, slot)]) != CELL_EMPTY)/'
mutate fold_forgets_entries test_merge_fold fold_image \
	's/leaf_fill_cells\(g, node, all, cells\.count \+ run->cells/leaf_fill_cells(g, node, all, cells.count/'
mutate fold_claims_order test_merge_fold fold_image \
	's/cells\.ordered && run->ordered/true/'
mutate fold_keeps_the_earlier_position test_merge_fold fold_image \
	's/\t\(void\) insert_set_wal_position\(tree, &run->wal, node\);\n//'
mutate fold_forgets_the_earlier_run test_merge_fold plan_add \
	's/uint32_t moved =\s.*?;/uint32_t moved = 0;/s'
mutate fold_without_room test_merge_fold fold_image \
	's/if \(cells\.count \+ run->cells > g->leaf_cells\)/if (false)/'
mutate fold_drops_marked_cells test_merge_fold cells_gather \
	's/\tkeeping\.proven = NULL;\n//'
mutate fold_of_unverified_leaves test_merge_fold fold_cells \
	's/leaf_is_unverified\(g, leaf\) \|\| //'
mutate fold_of_void_marks test_merge_fold fold_cells \
	's/ \|\| leaf_marks_void\(g, leaf\)//'
mutate fold_fills_more_than_half test_merge_fold fold_fits \
	's/left <= most && left \+ cells <= most/left <= most/'
mutate fold_of_fuller_leaves test_merge_fold fold_sparse \
	's/g->leaf_cells \/ SPARSE_PART/g->leaf_cells \/ FOLDED_PART/'
mutate fold_forgets_what_it_has_added test_merge_fold plan_add \
	's/\tneighbor->cells \+= cells;\n//'
mutate sparse_leaves_forgotten test_merge_fold vacuum_pass \
	's/if \(leaf->live == 0 \|\| sparse\)/if (leaf->live == 0)/'
mutate sparse_leaves_looked_at_in_vain test_merge_fold vacuum_pass \
	's/fold_fits\(g, vacuum->left_cells, leaf->cells\)/fold_sparse(g, leaf->cells)/'
mutate vacuum_knows_cells_of_before test_merge_fold vacuum_remove \
	's/\tleaf->cells = fold_cells\(&tree->geometry, tree->client->image_left\);\n//'
mutate vacuum_wave_knows_cells_of_before test_merge_fold=--network leaf_add \
	's/\tleaf->cells = fold_cells\(g, leaf->image\);\n//'
mutate merge_never_rises_for_sparse_first test_merge_walk plan_first \
	's/ \|\|\s+fold_sparse\(g, fold_cells\(g, node\)\)//'
mutate merge_not_told test_merge run_write \
	's/\trun_announce\(merge, run\);\n/\t(void) run_announce;\n/'
mutate merged_into_forgotten_by_frames test_merge runs_touched \
	's/for \(uint32_t k = merge->plan\.run\[i\]\.left;/for (uint32_t k = merge->plan.run[i].left + 1;/'
mutate merged_last_forgotten_by_frames test_merge runs_touched \
	's/k <= merge->plan\.run\[i\]\.last; k\+\+\)/k < merge->plan.run[i].last; k++)/'
mutate merge_same_epoch test_merge merge_closed \
	's/\tbarrier_next_epoch\(tree\);\n//'
mutate merge_forgotten_by_frames test_merge merge_closed \
	's/\t\truns_touched\(merge\);/\t\t(void) runs_touched;/'
mutate merge_forgets_nodes test_merge merge_keep \
	's/status = freed_put\(tree, /status = freed_put == NULL ? TREE_OK : TREE_OK;\n\t(void) (/; s/\(void\) \(merge->nodes\[i - 1\]\.pointer, level, merge->nodes\[i - 1\]\.generation\);/(void) level;/'
mutate merge_beside_look test_reclaim merge_children \
	's/\*alone = reclaim_end\(merge->tree\);/(void) reclaim_end(merge->tree);/'
mutate merge_looks_at_all test_merge_walk look_at \
	's/i <= last \+ 1 && i < count/i < count/'
mutate merge_one_range_a_parent test_merge_walk children_choose \
	's/(\t\tif \(!merge->goes_on\)\n)(\t\t\trange = range_from\(merge, range \+ 1\);\n)/$1\t\t{\n$2\t\t\tbreak;\n\t\t}\n/'
mutate merge_not_again "test_merge test_merge_walk" level_end \
	's/merge->ended = !merge->inner;/merge->ended = true;/'
mutate merge_never_rises_for_first "test_merge test_merge_walk" merge_next \
	's/merged > 0 \|\| merge->first_waits/merged > 0/'
mutate dead_blocks_freed_early test_dead leaf_free_blocks \
	's/leaf_keeps\(cell\[0\], proven\)\)/leaf_keeps(cell[0], true || proven))/'
mutate vacuum_in_place test_vacuum leaf_rewrite_image \
	's/old\[HEADER_GENERATION\] \+ 1\);/old[HEADER_GENERATION]);/'
mutate slot_used_again_in_generation sim_explore leaf_rewrite_image \
	's/old\[HEADER_GENERATION\] \+ 1\);/old[HEADER_GENERATION]);/'
mutate vacuum_keeps_blocks test_vacuum leaf_rewrite \
	's/\tleaf_free_blocks\(tree, old, LEAF_NO_SLOT, NULL\);\n//'
mutate order_not_claimed test_scan order_cells \
	's/cells->leaf.ordered = true;//'
mutate separator_shares_block test_tree order_separator \
	's/if \(\(separator\[0\] & CELL_OVERFLOW_BIT\) == 0 \|\|/if (true ||/'
mutate vacuum_outrun_is_damage test_vacuum vacuum_remove \
	's/\t\tvacuum->outrun = true;\n//'
mutate vacuum_forgets_grown_root test_vacuum vacuum_visit \
	's/if \(status == TREE_RETRY && pointer_address\(vacuum->next\) == tree->root\)/if (false)/'
mutate vacuum_goes_round test_damage vacuum_visit \
	's/if \(!vacuum_is_at\(vacuum, leaf\)\)/if (false)/'
mutate merge_of_two_walks test_merge_walk vacuum_refresh \
	's/\tvacuum->sparse.count = 0;\n//'
mutate vacuum_outrun_has_its_time_only test_vacuum vacuum_outrun \
	's/if \(client_outrun\(client, &vacuum->outruns, JUDGE_ATTEMPTS\)\)/if (++vacuum->outruns.tries < JUDGE_ATTEMPTS)/'
mutate vacuum_outrun_has_few_tries test_vacuum vacuum_outrun \
	's/client_outrun\(client, &vacuum->outruns, JUDGE_ATTEMPTS\)/client_outrun(client, \&vacuum->outruns, 1)/'
mutate vacuum_wave_believes_the_parent test_vacuum vacuum_follows \
	's/return pointer_address\(leaf->pointer\) == pointer_address\(right\) &&\s+\(high == NULL \|\| separator_equal\(.*?\)\);/return leaf != NULL \&\& g != NULL \&\& (right != 0 || high != NULL);/s'
mutate posting_not_vacuumed test_posting posting_choose \
	's/dead \|= \(uint8_t\) \(1u << i\);/dead |= 0;/'
mutate vacuum_passes_marked_over test_dead vacuum_choose \
	's/leaf_keeps\(cell\[0\], false\) && is_dead/leaf_keeps(cell[0], true) && is_dead/'
mutate vacuum_trusts_old_judgment test_vacuum vacuum_unchanged \
	's/ \|\| node\[HEADER_GENERATION\] != leaf->image\[HEADER_GENERATION\]//; s/if \(leaf->victims\[slot\] != 0 && memcmp.*?\)\n/if (leaf->victims[slot] \&\& word == 0)\n/'
mutate vacuum_wave_believes_torn_leaves test_damage wave_tile \
	's/verdicts\[tiled\] == NODE_GOOD/verdicts[tiled] != NODE_STALE/'
mutate vacuum_wave_goes_one_by_one test_vacuum=--network wave_places \
	's/(wave_places\(const TreeVacuum \*vacuum\)\n\{\n)/$1\treturn 0;\n/'
mutate vacuum_wave_of_one_parent test_bulk_wave=--network parent_take \
	's/return \*count < vacuum->depth &&/return false \&\&/'
mutate vacuum_wave_reads_twice test_vacuum=--cached locked_known \
	's/if \(!leaf_cache_unwritten\(tree, &leaf->key\)\)/if (true)/'
mutate vacuum_wave_trusts_judgment test_vacuum=--network leaf_add \
	's/ \|\|\n\t    !vacuum_unchanged\(g, leaf, leaf->locked\)//'
mutate vacuum_wave_keeps_blocks test_vacuum=--network removed_count \
	's/\t\tleaf_free_blocks\(tree, leaf->locked, LEAF_NO_SLOT, NULL\);\n//'
mutate vacuum_wave_forgets_doubt test_vacuum=--network wave_remove \
	's/\tunknown_drop\(vacuum->wave, &vacuum->wave_count\);\n/\t(void) unknown_drop;\n/'
mutate short_of_siblings_again test_insert_many many_siblings_wanted \
	's/many->short_of > 0 && there > foreseen/false/'
mutate cells_longer_than_a_packet test_cell_writes cells_of_write \
	's/return capabilities->one_packet \/ g->cell_bytes;/return g->leaf_cells;/'
mutate cell_live_before_it_is_whole test_cell_writes cells_write_ops \
	's/ops\[1\] = ops\[0\];(.*)ops\[0\]\.length -= 8;/ops[1] = ops[0];$1ops[1].length = 8;/s; s/ops\[0\]\.offset \+= 8;\n\tops\[0\]\.buffer = node \+ word \+ 1;//'
mutate new_leaves_of_a_lost_wave_stay test_lost_space leaf_ends \
	's/leaf->siblings > 0 && leaf->status == TREE_RETRY &&/false \&\&/'
mutate merged_nodes_do_not_say_so 'test_reader sim_explore=reader-merge-insert' merge_alone \
	's/disowned = nodes_disown\(merge\)/disowned = ((void) nodes_disown, TREE_OK)/'
mutate merged_leaf_says_nothing_of_what_is_gone test_reader run_write \
	's/\t\tleaf_raise_dead\(node, run->dead\.epoch, run->dead\.lsn\);/\t\t;/'
