# Safeguards of scans, removals, bulk load and check, and those that the torture must see. Sourced by test/mutations.

mutate tear_stamps_ignored torture=tear-16 stamps_agree \
	's/return \(differ & STAMP_MASK\) == 0;/return true;/'
mutate leaf_fences_not_checked torture=domains-16 insert_place \
	's/if \(in->path.fences_known && separator_equal.*?\)\)\n/if (true)\n/s'
# With small nodes: a pointer's stamp hint proves nothing, and inner nodes split all the time.
mutate hint_believed torture=domains-16 insert_place \
	's/if \(in->path.fences_known && separator_equal.*?\)\)\n/if (in->path.fences_known \&\& ((in->path.pointer ^ node[HEADER_GENERATION]) \& STAMP_HINT_MASK) == 0)\n/s' small
mutate inner_splits_not_followed torture=domains-16 search_within \
	's/choice->bound_above = low >= 0 && high >= 0;/choice->bound_above = false;/' small
mutate redo_not_written test_loop lock_many_rewrite_ops \
	's/if \(bytes > capabilities->one_packet\)/if (bytes > NODE_MAX_BYTES)/'
mutate scan_any_leaf_is_next "test_scan" leaf_is_next \
	's/return separator_equal\(&scan->tree->geometry, scan_fence\(scan, leaf, scan->direction == TREE_BACKWARD\),\s+scan->want\);/return true;/s'
mutate scan_skips_right_links "test_scan" load_forward \
	's/if \(right == POINTER_NONE \|\| \(leaf == NULL && !scan->parent.loaded\)\)\n\t\treturn TREE_RETRY;/{ scan->want[1] = scan_fence(scan, leaf != NULL ? leaf : scan->leaf, false)[1]; if (leaf != NULL) { leaf_accept(scan, leaf, scan->ahead.pointers[scan->ahead.next++]); return TREE_OK; } }\n\tif (right == POINTER_NONE || (leaf == NULL \&\& !scan->parent.loaded))\n\t\treturn TREE_RETRY;/'
mutate scan_reads_beyond_stop test_scan worth_reading \
	's/(worth_reading\(const TreeScan \*scan, const uint64_t \*separator\)\n\{\n\tDecision decision;\n)/$1\n\treturn true;\n/'
mutate scan_not_stopped test_scan scan_next \
	's/if \(!scan->ended && client_should_stop\(client\)\)/if (false)/'
mutate stopped_scan_ends test_scan scan_next \
	's/(return client_fail\(client, TREE_STOPPED, "stopped between two leaves"\);)/{ scan->ended = true; $1 }/'
mutate scan_reads_nothing_ahead test_scan ahead_deepen \
	's/scan->depth = read_ahead_deepen\(scan->depth\);/scan->depth = 1;/'
mutate scan_wave_believes_what_was_lost test_scan_wave read_wave \
	's/if \(status == TREE_RETRY \|\|\s+\(late/if ((late/'
mutate scan_waves_are_shallow test_scan_wave ahead_deepen \
	's/\(scan->depth < READ_AHEAD_MAX && scan->deep != NULL\)/false/'
mutate scan_waits_for_one_memory_node_after_the_other test_scan_wave access_read_leaves \
	's/if \(chain_length\(pointers, count\) < count\)\n/if (false)\n/'
mutate check_reads_nothing_ahead test_scan_wave check_read_first \
	's/if \(check->level == 0 && is_named\(check\) &&/if (false \&\& is_named(check) \&\&/'
mutate check_believes_what_was_read_ahead test_check check_read_first \
	's/if \(ahead->verdicts\[i\] != NODE_GOOD\)/if (false)/'
mutate ahead_not_marked test_scan_wave tree_scan_fetch_ahead \
	's/\t\tleaves_mark\(scan, f->pointers, f->count\);\n//'
mutate ahead_in_another_epoch test_scan_wave seeks_take \
	's/\tif \(f->epoch != tree->epoch\)\n\t\treturn TREE_OK;\n//'
mutate ahead_torn_and_believed test_scan_wave seeks_take \
	's/if \(f->verdicts\[f->next\] != NODE_GOOD\)/if (false)/'
mutate ahead_not_forgotten test_scan_wave tree_scan_forget_ahead \
	's/\t\tseeks_empty\(scan->seeks\);/\t\t(void) seeks_empty;/'
mutate ahead_not_fetched test_scan_wave tree_scan_fetch_ahead \
	's/if \(f == NULL \|\| f->count == 0 \|\| f->read > 0\)/if (true)/'
mutate ahead_any_leaf test_scan_wave seeks_take \
	's/if \(low >= 0 && high < 0\)\n\t\t\tbreak;/break;/'
mutate scan_start_leaf_not_judged torture=domains-16 target_compare \
	's/where = -1;\n\treturn status;/where = 0;\n\treturn status;/; s/\*where = 1;/*where = 0;/'
mutate scan_completes_no_splits test_check right_move \
	's/if \(path->fresh\)/if (false)/' \
	parent_repair \
	's/if \(!lacks\)/if (true)/'
mutate ties_not_sorted test_scan batch_fill \
	's/(candidates_compare\(scan, &range, &candidates\);\n\t\t)candidates_sort\(scan, &candidates\);/$1/'
mutate tail_not_sorted test_scan candidates_merge \
	's/while \(place > 0 && candidate_order\(g, &tail.*?< 0\)/while (false)/'
mutate order_claimed_wrongly test_scan leaf_gather \
	's/cells->ordered = false;/(void) 0;/'
mutate order_not_claimed test_scan order_cells \
	's/cells->leaf.ordered = true;//'
mutate order_not_used test_scan candidates_collect \
	's/bool ordered = !g->format.lossless && .*?;/bool ordered = false;/'
mutate upper_bound_includes_its_entry test_scan base_search \
	's/< \(upper \? 1 : 0\)/< 0/'
mutate tail_taken_for_placed test_scan candidate_add \
	's/candidate->placed = false;/candidate->placed = true;/' \
	candidates_merge \
	's/assert\(!tail->items\[t\].placed\);//'
mutate claimed_order_not_checked test_check check_base \
	's/if \(before != NULL && cell < before\)/if (false)/'
mutate ties_not_compared test_scan candidate_decide \
	's/return lower == DECIDE_UNKNOWN \|\| upper == DECIDE_UNKNOWN \? DECIDE_UNKNOWN : DECIDE_EQUAL;/return DECIDE_EQUAL;/'
mutate image_not_proved test_scan access_read_overflow \
	's/if \(image_hash\(buffers\[i\], references\[i\].bytes\) != references\[i\].hash\)/if (false)/'
mutate vacuum_trusts_old_judgment test_vacuum vacuum_unchanged \
	's/ \|\| node\[HEADER_GENERATION\] != leaf->image\[HEADER_GENERATION\]//; s/if \(leaf->victims\[slot\] != 0 && memcmp.*?\)\n/if (leaf->victims[slot] \&\& word == 0)\n/'
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
mutate outruns_are_few test_tree_faults client_outrun \
	's/outrun->tries < least \|\|/false ||/'
mutate outrun_time_begins_anew test_damage client_outrun \
	's/if \(outrun->tries\+\+ == 0\)/if (++outrun->tries > 0)/'
mutate vacuum_outrun_is_damage test_vacuum vacuum_remove \
	's/\t\tvacuum->outrun = true;\n//'
mutate vacuum_outrun_has_its_time_only test_vacuum vacuum_outrun \
	's/if \(client_outrun\(client, &vacuum->outruns, JUDGE_ATTEMPTS\)\)/if (++vacuum->outruns.tries < JUDGE_ATTEMPTS)/'
mutate vacuum_outrun_has_few_tries test_vacuum vacuum_outrun \
	's/client_outrun\(client, &vacuum->outruns, JUDGE_ATTEMPTS\)/client_outrun(client, \&vacuum->outruns, 1)/'
mutate vacuum_keeps_blocks test_vacuum leaf_rewrite \
	's/\tleaf_free_blocks\(tree, old, LEAF_NO_SLOT, NULL\);\n//'
mutate vacuum_wave_trusts_judgment test_vacuum=--network leaf_add \
	's/ \|\|\n\t    !vacuum_unchanged\(g, leaf, leaf->locked\)//'
mutate vacuum_wave_believes_what_was_written test_vacuum=--cached leaf_cache_unwritten \
	's/return key->kept && key->epoch == tree->epoch && version_stands\(tree->client->shared->leaves, key\);/return key->kept;/'
mutate vacuum_wave_reads_twice test_vacuum=--cached locked_known \
	's/if \(!leaf_cache_unwritten\(tree, &leaf->key\)\)/if (true)/'
mutate vacuum_keeps_what_it_passes test_vacuum=--cached read_leaves \
	's/if \(keep && judged/if ((keep || true) \&\& judged/'
mutate vacuum_wave_believes_the_parent test_vacuum vacuum_follows \
	's/return pointer_address\(leaf->pointer\) == pointer_address\(right\) &&\s+\(high == NULL \|\| separator_equal\(.*?\)\);/return leaf != NULL \&\& g != NULL \&\& (right != 0 || high != NULL);/s'
mutate vacuum_wave_forgets_doubt test_vacuum=--network wave_remove \
	's/\tunknown_drop\(vacuum->wave, &vacuum->wave_count\);\n/\t(void) unknown_drop;\n/'
mutate vacuum_wave_keeps_blocks test_vacuum=--network removed_count \
	's/\t\tleaf_free_blocks\(tree, leaf->locked, LEAF_NO_SLOT, NULL\);\n//'
mutate vacuum_wave_goes_one_by_one test_vacuum=--network wave_places \
	's/(wave_places\(const TreeVacuum \*vacuum\)\n\{\n)/$1\treturn 0;\n/'
mutate vacuum_wave_believes_torn_leaves test_damage wave_tile \
	's/verdicts\[tiled\] == NODE_GOOD/verdicts[tiled] != NODE_STALE/'
mutate vacuum_forgets_grown_root test_vacuum vacuum_visit \
	's/if \(status == TREE_RETRY && pointer_address\(vacuum->next\) == tree->root\)/if (false)/'
mutate vacuum_in_place test_vacuum leaf_rewrite_image \
	's/old\[HEADER_GENERATION\] \+ 1\);/old[HEADER_GENERATION]);/'
mutate bulk_always_cuts "test_bulk" separator_make \
	's/(leaf_separator\(g, bulk_before.*?;\n)/$1\tseparator[0] = (bulk->cell[0] & CELL_HIGH_BIT) | (uint64_t) SEPARATOR_CUT << CELL_STATE_SHIFT;\n/s'
mutate bulk_shares_blocks test_bulk separator_make \
	's/if \(cell_state\(separator\[0\]\) == SEPARATOR_CUT \|\| \(separator\[0\] & CELL_OVERFLOW_BIT\) == 0\)/if (true)/'
mutate bulk_forgets_images test_bulk bulk_complete \
	's/if \(status == TREE_OK && bulk->images.count > 0\)/if (false)/'
mutate check_ignores_fences test_check check_fences \
	's/if \(!check->first && !separator_equal\(g, low, check->high\)\)/if (false)/'
mutate check_ignores_parents test_check check_parent \
	's/if \(!separator_equal\(g, cell \+ 1, check->node \+ g->low_word\)\)/if (false)/'
mutate check_ignores_order test_check check_order \
	's/if \(low < 0 \|\| high >= 0\)/if (false)/'
mutate tied_images_one_by_one test_budget_ties candidates_fetch \
	's/(candidates_fetch\(TreeScan.*?)return count > 0 \? scan_fetch\(scan, slots, count\) : TREE_OK;/$1for (uint32_t i = 0; i < count; i++)\n\t{\n\t\tTreeStatus status = scan_fetch(scan, slots + i, 1);\n\t\tif (status != TREE_OK)\n\t\t\treturn status;\n\t}\n\treturn TREE_OK;/s'
mutate fence_by_a_chain_of_its_own test_budget_ties batch_compare_stop \
	's/if \(scan->begun \|\| \(fence\[0\]/if (true || (fence[0]/'
mutate fence_taken_for_a_cell test_scan scan_fetch \
	's/slots\[i\] == FENCE_SLOT \? far_fence\(scan\) : //'
mutate removals_not_told test_scan tree_batch_unchanged \
	's/scan->reread\[HEADER_GENERATION\] == batch->leaf.generation/true/'
# A scan by several: the place is handed on too early, what was taken has no end, or is one leaf only.
mutate position_handed_on_too_early test_scan_take scan_take \
	's/node_get_fence\(&scan->tree->geometry, last, /node_get_fence(\&scan->tree->geometry, scan->leaf, /; s/memcpy\(scan->taken_end, behind->want, sizeof\(scan->taken_end\)\);/node_get_fence(\&scan->tree->geometry, last, scan->direction == TREE_FORWARD, scan->taken_end);/'
mutate taken_leaves_have_no_end test_scan_take scan_take \
	's/scan->taking = true;//'
mutate taken_one_by_one test_scan_take keep_tiling \
	's/i < ahead->count && ahead->verdicts\[i\] == NODE_GOOD/false/'
# A leaf within the bounds: its tail is sorted and merged, and ties that integers do not order are left to the comparator.
mutate whole_tail_not_sorted test_scan tail_insert \
	's/while \(place > 0 &&\n\s+\(order = quick_order.*?< 0\)/while (false)/'
mutate whole_tail_behind_the_base test_scan base_put \
	's/if \(tail->next < tail->count && !tail_put_before\(scan, tail, cell\)\)/if (false)/'
mutate whole_tie_with_the_base test_scan tail_put_before \
	's/\t\t\treturn order > 0;/\t\t\treturn true;/'
mutate whole_tie_in_the_tail test_scan tail_insert \
	's/return place == 0 \|\| order > 0;/return true;/'
mutate whole_base_without_order test_scan batch_fill_whole \
	's/if \(!g->format.lossless && \(node_flags\(scan->leaf\) & NODE_BASE_ORDERED\) == 0\)/if (false)/'
mutate whole_leaf_not_turned test_scan batch_settle \
	's/scan->direction == TREE_BACKWARD && i < j/false \&\& i < j/'
mutate view_without_image test_scan tree_batch_views \
	's/lossless \? 0 : cell_image\(g, cell, &views\[i\].image\)/0/'
