# Mutants of tree/scan: its safeguards, removed one at a time (test/README). Sourced.

mutate posting_searched_as_key test_posting base_find \
	's/uint32_t middle = posting_head\(g, leaf, \(low \+ high\) \/ 2\);/uint32_t middle = (low + high) \/ 2;/; s/low = base_next\(g, leaf, middle\);/low = middle + 1;/'
mutate tail_taken_for_placed test_scan candidate_add \
	's/candidate->placed = false;/candidate->placed = true;/' \
	candidates_merge \
	's/assert\(!tail->items\[t\].placed\);//'
mutate ties_not_compared test_scan candidate_decide \
	's/return lower == DECIDE_UNKNOWN \|\| upper == DECIDE_UNKNOWN \? DECIDE_UNKNOWN : DECIDE_EQUAL;/return DECIDE_EQUAL;/'
mutate fence_taken_for_a_cell test_scan scan_fetch \
	's/slots\[i\] == FENCE_SLOT \? far_fence\(scan\) : //'
mutate fence_by_a_chain_of_its_own test_budget_ties batch_compare_stop \
	's/if \(scan->begun \|\| \(fence\[0\]/if (true || (fence[0]/'
mutate upper_bound_includes_its_entry test_scan base_search \
	's/< \(upper \? 1 : 0\)/< 0/'
mutate posting_dead_with_its_head test_posting candidates_take \
	's/\t\t\tcandidates_add_posting\(/\t\t\tif (cell_state(head[0]) == CELL_LIVE)\n\t\t\tcandidates_add_posting(/'
mutate tail_not_sorted test_scan candidates_merge \
	's/while \(place > 0 && candidate_order\(g, &tail.*?< 0\)/while (false)/'
mutate order_not_used test_scan candidates_collect \
	's/bool ordered = !g->format.lossless && .*?;/bool ordered = false;/'
mutate tied_images_one_by_one test_budget_ties candidates_fetch \
	's/(candidates_fetch\(TreeScan.*?)return count > 0 \? scan_fetch\(scan, slots, count\) : TREE_OK;/$1for (uint32_t i = 0; i < count; i++)\n\t{\n\t\tTreeStatus status = scan_fetch(scan, slots + i, 1);\n\t\tif (status != TREE_OK)\n\t\t\treturn status;\n\t}\n\treturn TREE_OK;/s'
mutate void_marks_believed test_unverified batch_begin \
	's/if \(leaf_marks_void\(&scan->tree->geometry, scan->leaf\)\)\n\t\tleaf_revive/if (false)\n\t\tleaf_revive/'
mutate ties_not_sorted test_scan batch_fill \
	's/(candidates_compare\(scan, &range, &candidates\);\n\t\t)candidates_sort\(scan, &candidates\);/$1/'
mutate part_taken_for_whole test_unverified batch_fill \
	's/\tif \(start != NULL \|\| stop != NULL\)\n\t\tscan->batch.whole = false;\n//'
mutate posting_key_is_its_own test_posting tree_batch_key \
	's/slot = posting_head\(g, scan->leaf, batch->entries\[i\].cell\);/slot = batch->entries[i].cell;/'
mutate posting_view_is_its_own test_posting tree_batch_views \
	's/if \(cell_is_posting\(cell\)\)\n\t\t\tcell = /if (false)\n\t\t\tcell = /'
mutate view_without_image test_scan tree_batch_views \
	's/lossless \? 0 : cell_image\(g, cell, &views\[i\].image\)/0/'
mutate other_row_of_the_key_returned_before test_scan batch_same_entry \
	's/\(\(a\[0\] \^ b\[0\]\) & CELL_TID_MASK\) == 0 && //'
mutate equal_entries_passed_over test_scan batch_is_passed \
	's/return order < 0 \|\| \(order == 0 && batch_same_entry\(g, cell, scan->last\)\);/return order <= 0;/'
mutate backward_scan_returns_all_before test_scan batch_is_passed \
	's/order = -order;//'
mutate doubt_of_a_batch_not_told test_unverified batch_open \
	's/scan->batch\.unverified = leaf_is_unverified\(.*?\);/scan->batch.unverified = false;/'
mutate void_marks_of_a_batch_not_told "test_unverified test_inside" batch_open \
	's/scan->batch\.marks_void = leaf_marks_void\(.*?\);/scan->batch.marks_void = false;/'
# A leaf within the bounds: its tail is sorted and merged, and ties that integers do not order are left to the comparator.
mutate whole_tail_not_sorted test_scan tail_insert \
	's/while \(place > 0 &&\n\s+\(order = quick_order.*?< 0\)/while (false)/'
mutate whole_tie_in_the_tail test_scan tail_insert \
	's/return place == 0 \|\| order > 0;/return true;/'
mutate whole_tie_with_the_base test_scan tail_put_before \
	's/\t\t\treturn order > 0;/\t\t\treturn true;/'
mutate whole_tail_behind_the_posting test_posting posting_put \
	's/if \(tail->next < tail->count && !tail_put_before\(scan, tail, entry\)\)/if (false)/'
mutate whole_posting_dead_with_its_head test_posting base_put \
	's/if \(head == NULL \|\| !g->format.postings/if (cell_state(head[0]) != CELL_LIVE)\n\t\t\t\tcontinue;\n\t\t\tif (head == NULL || !g->format.postings/'
mutate whole_tail_behind_the_base test_scan base_put \
	's/if \(tail->next < tail->count && !tail_put_before\(scan, tail, cell\)\)/if (false)/'
mutate whole_leaf_not_turned test_scan batch_settle \
	's/scan->direction == TREE_BACKWARD && i < j/false \&\& i < j/'
mutate whole_base_without_order test_scan batch_fill_whole \
	's/if \(!g->format.lossless && \(node_flags\(scan->leaf\) & NODE_BASE_ORDERED\) == 0\)/if (false)/'
mutate splits_not_waited_for test_predicate leaves_mark \
	's/if \(!splits_end\(scan->tree\)\)/if (false)/'
mutate generation_always_read test_leaf_writes epoch_is_same \
	's/\*kept = same && [^;]*;/*kept = false;/'
mutate removals_not_told test_scan tree_batch_unchanged \
	's/scan->reread\[HEADER_GENERATION\] == batch->leaf.generation/true/'
mutate leaves_ahead_mostly_turned_away test_leaf_cache prefetch_read \
	's/leaves_wanted = true/leaves_wanted = false/'
mutate scan_any_leaf_is_next test_scan leaf_is_next \
	's/return separator_equal\(&scan->tree->geometry, scan_fence\(scan, leaf, scan->direction == TREE_BACKWARD\),\s+scan->want\);/return true;/s'
mutate scan_reads_beyond_stop test_scan worth_reading \
	's/(worth_reading\(const TreeScan \*scan, const uint64_t \*separator\)\n\{\n\tDecision decision;\n)/$1\n\treturn true;\n/'
mutate scan_reads_nothing_ahead test_scan ahead_deepen \
	's/scan->depth = read_ahead_deepen\(scan->depth\);/scan->depth = 1;/'
mutate scan_waves_are_shallow test_scan_wave ahead_deepen \
	's/scan->depth < READ_AHEAD_MAX/scan->depth < TREE_PREFETCH_MAX/'
mutate leaves_ahead_not_marked test_predicate scan.c:ahead_read \
	's/\tleaves_mark\(scan, ahead->pointers, ahead->count\);\n//'
mutate scan_wants_its_fence test_merge target_compare \
	's/\tif \(!target->first && leaf_is_next\(scan, leaf\)\)\n\t\treturn TREE_OK;/\tif (!target->first)\n\t{\n\t\t*where = leaf_is_next(scan, leaf) ? 0 : -1;\n\t\treturn TREE_OK;\n\t}/'
mutate scan_start_leaf_not_judged torture=domains-16 target_compare \
	's/where = -1;\n\treturn status;/where = 0;\n\treturn status;/; s/\*where = 1;/*where = 0;/'
mutate scan_completes_no_splits test_check right_move \
	's/if \(path->fresh\)/if (false)/' \
	parent_repair \
	's/if \(!lacks\)/if (true)/'
mutate scan_enters_unfiltered test_merge near_fence_find \
	's/\tscan->near_inside = true;\n/\tscan->near_inside = false;\n/'
mutate offloaded_fences_not_checked test_offload_answers descend_to_target \
	's/(status = target_compare\(scan, target, &path, leaf, &where\);)/{ $1 if (tree->client->offloads.calls > 0 \&\& steps == 0) where = 0; }/'
mutate offloaded_past_the_leaf_hook test_offload descend_to_target \
	's/ && scan->leaf_hook == NULL//'
mutate scans_offloaded test_offload descend_to_target \
	's/ &&\n\t\s+bounds_are_of_one_key\(.*?\)\)/)/'
mutate right_moves_on_and_on test_damage descend_to_target \
	's/steps < RIGHT_MOVES_MAX; steps/steps < 8 * RIGHT_MOVES_MAX; steps/'
mutate scan_astray_means_the_end test_damage load_descend \
	's/return access_no_way\(.*?;/return TREE_END;/s'
mutate scan_skips_right_links test_scan load_forward \
	's/if \(right == POINTER_NONE \|\| \(leaf == NULL && !scan->parent.loaded\)\)\n\t\treturn TREE_RETRY;/{ scan->want[1] = scan_fence(scan, leaf != NULL ? leaf : scan->leaf, false)[1]; if (leaf != NULL) { leaf_accept(scan, leaf, scan->ahead.pointers[scan->ahead.next++]); return TREE_OK; } }\n\tif (right == POINTER_NONE || (leaf == NULL \&\& !scan->parent.loaded))\n\t\treturn TREE_RETRY;/'
mutate scan_passes_taken_end test_merge taken_judge \
	's/\tscan->far_inside = true;\n/\tscan->far_inside = false;\n/'
mutate scan_outrun_is_damage test_damage scan_mismatch \
	's/changed \? 1 : mismatch->tries \+ 1;/mismatch->tries + 1;/'
mutate scan_outrun_has_its_time_only test_damage scan_mismatch \
	's/if \(!changed \|\| client_outrun\([^)]*\)\)/if (!changed || ++mismatch->outruns.tries < DESCENT_ATTEMPTS)/'
mutate scan_outrun_goes_on_for_ever test_damage scan_mismatch \
	's/if \(!changed \|\| client_outrun\([^)]*\)\)/if (true)/'
mutate scan_outrun_is_not_stopped test_damage scan_mismatch \
	's/(mismatch->outruns.*|mismatch->tries >= .*?)if \(client_should_stop\(client\)\)/$1if (false)/s'
mutate scan_tries_once_more test_damage scan_mismatch \
	's/mismatch->tries >= DESCENT_ATTEMPTS/mismatch->tries > DESCENT_ATTEMPTS/'
mutate scan_takes_any_leaf_for_changed test_damage scan_mismatch \
	's/ && \(leaf != mismatch->leaf \|\| generation != mismatch->generation\)//'
mutate scan_not_stopped test_scan scan_next \
	's/if \(!scan->ended && client_should_stop\(client\)\)/if (false)/'
mutate stopped_scan_ends test_scan scan_next \
	's/(return client_fail\(client, TREE_STOPPED, "stopped between two leaves"\);)/{ scan->ended = true; $1 }/'
mutate tid_of_no_row test_wild_nodes scan_next \
	's/if \(!batch_has_tids\(&scan->batch\)\)/if (false \&\& !batch_has_tids(\&scan->batch))/'
mutate leaf_marked_behind_read test_predicate leaf_read \
	's/\tif \(scan->leaf_hook != NULL\)\n\t\tleaves_mark\(scan, &pointer, 1\);\n[^;]*;\n\treturn (leaf_cache_read\(.*?\));/\tTreeStatus status = $1;\n\n\tleaves_mark(scan, &pointer, 1);\n\treturn status;/'
mutate taken_one_by_one test_scan_take keep_tiling \
	's/i < ahead->count && ahead->verdicts\[i\] == NODE_GOOD/false/'
# A scan by several: the place is handed on too early, what was taken has no end, or is one leaf only.
mutate position_handed_on_too_early test_scan_take scan_take \
	's/node_get_fence\(&scan->tree->geometry, last, /node_get_fence(\&scan->tree->geometry, scan->leaf, /; s/memcpy\(scan->taken_end, behind->want, sizeof\(scan->taken_end\)\);/node_get_fence(\&scan->tree->geometry, last, scan->direction == TREE_FORWARD, scan->taken_end);/'
mutate taken_leaves_have_no_end test_scan_take scan_take \
	's/scan->taking = true;//'
mutate ahead_not_forgotten test_scan_wave tree_scan_forget_ahead \
	's/\t\tseeks_empty\(scan->seeks\);/\t\t(void) seeks_empty;/'
mutate ahead_not_marked test_scan_wave tree_scan_fetch_ahead \
	's/\t\tleaves_mark\(scan, f->pointers, f->count\);\n//'
mutate ahead_not_fetched test_scan_wave tree_scan_fetch_ahead \
	's/if \(f == NULL \|\| f->count == 0 \|\| f->read > 0\)/if (true)/'
mutate ahead_in_another_epoch test_scan_wave seeks_take \
	's/\tif \(f->epoch != tree->epoch\)\n\t\treturn TREE_OK;\n//'
mutate ahead_torn_and_believed test_scan_wave seeks_take \
	's/if \(f->verdicts\[f->next\] != NODE_GOOD\)/if (false)/'
mutate ahead_any_leaf test_scan_wave seeks_take \
	's/if \(low >= 0 && high < 0\)\n\t\t\tbreak;/break;/'
mutate guess_of_another_epoch test_speculate key_hash \
	's/bytes\[1\] = epoch;/bytes[1] = epoch * 0;/'
mutate hint_of_another_key test_speculate hint_load \
	's/return \(check \^ place\) == hash \? place : 0;/return (check ^ hash) != 0 ? place : 0;/'
mutate dead_cell_found test_speculate cell_fits \
	's/cell_state\(cell\[0\]\) == CELL_LIVE && //'
mutate key_not_looked_at test_speculate cell_fits \
	's/&& cell_same_key\(g, cell, wanted\)/\&\& wanted != NULL/'
mutate guess_where_not_connected test_speculate speculate.c:guess \
	's/access_endpoint\(tree->client, [^|]*== NULL \|\|/false ||/'
mutate guess_of_a_line_that_tears test_speculate speculate.c:guess \
	's/ \|\|\s+leaf_needs_sum\(g, place\)\)/)/'
mutate cell_of_the_root_remembered test_speculate remember \
	's/\s+pointer_address\(scan->pointer\) == tree->root \|\|//'
mutate half_a_cell_guessed test_speculate speculate.c:guess \
	's/g->lines_whole \? word \/ LINE_WORDS \* LINE_WORDS : word;/word \/ LINE_WORDS * LINE_WORDS;/'
mutate keys_of_the_next_leaf_taken_in test_scan_wave tree_scan_reaches \
	's/return search_far_fence\(scan->tree, bound, fence, forward\) < 0;/return true;/'
mutate keys_one_by_one test_scan_wave tree_scan_reaches \
	's/return search_far_fence\(scan->tree, bound, fence, forward\) < 0;/return false;/'
mutate node_that_is_used_again_taken_for_a_circle test_reader leaf_consume \
	's/scan->pointer, scan->leaf\[HEADER_GENERATION\]\)/scan->pointer, 0)/'
mutate merged_leaf_taken_for_unchanged test_merge_fold epoch_is_same \
	's/same = critical_same_epoch\(tree, leaf\);/same = critical_same_epoch(tree, leaf) || true;/' \
	tree_batch_unchanged \
	's/ &&\s+\(node_flags\(scan->reread\) & NODE_FREE\) == 0;/;/'
