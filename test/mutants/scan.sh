# Safeguards of scans, removals, bulk load and check, and those that the torture must see. Sourced by test/mutations.

mutate tear_stamps_ignored torture=tear-16 tree/node/node_verify.c \
	's/return \(differ & STAMP_MASK\) == 0;/return true;/'
mutate leaf_fences_not_checked torture=domains-16 tree/change/insert.c \
	's/if \(in->path.fences_known && separator_equal.*?\)\)\n/if (true)\n/s'
# With small nodes: a pointer's stamp hint proves nothing, and inner nodes split all the time.
mutate hint_believed torture=domains-16 tree/change/insert.c \
	's/if \(in->path.fences_known && separator_equal.*?\)\)\n/if (in->path.fences_known \&\& ((in->path.pointer ^ node[HEADER_GENERATION]) \& STAMP_HINT_MASK) == 0)\n/s' small
mutate inner_splits_not_followed torture=domains-16 tree/descent/search.c \
	's/choice->bound_above = low >= 0 && high >= 0;/choice->bound_above = false;/' small
mutate redo_not_written test_loop tree/lock/lock_release.c \
	's/if \(bytes > capabilities->one_packet\)/if (bytes > NODE_MAX_BYTES)/'
mutate scan_any_leaf_is_next "test_scan" tree/scan/scan.c \
	's/return separator_equal\(&scan->tree->geometry, scan_fence\(scan, leaf, scan->direction == TREE_BACKWARD\),\s+scan->want\);/return true;/s'
mutate scan_skips_right_links "test_scan" tree/scan/scan.c \
	's/if \(right == POINTER_NONE \|\| \(leaf == NULL && !scan->parent.loaded\)\)\n\t\treturn TREE_RETRY;/{ scan->want[1] = scan_fence(scan, leaf != NULL ? leaf : scan->leaf, false)[1]; if (leaf != NULL) { leaf_accept(scan, leaf, scan->ahead.pointers[scan->ahead.next++]); return TREE_OK; } }\n\tif (right == POINTER_NONE || (leaf == NULL \&\& !scan->parent.loaded))\n\t\treturn TREE_RETRY;/'
mutate scan_reads_beyond_stop test_scan tree/scan/scan.c \
	's/(worth_reading\(const TreeScan \*scan, const uint64_t \*separator\)\n\{\n\tDecision decision;\n)/$1\n\treturn true;\n/'
mutate scan_not_stopped test_scan tree/scan/scan.c \
	's/if \(!scan->ended && client_should_stop\(client\)\)/if (false)/'
mutate stopped_scan_ends test_scan tree/scan/scan.c \
	's/(return client_fail\(client, TREE_STOPPED, "stopped between two leaves"\);)/{ scan->ended = true; $1 }/'
mutate scan_reads_nothing_ahead test_scan tree/scan/scan.c \
	's/scan->depth = read_ahead_deepen\(scan->depth\);/scan->depth = 1;/'
mutate scan_wave_believes_what_was_lost test_scan_wave tree/lock/node_read.c \
	's/if \(status == TREE_RETRY \|\|\s+\(late/if ((late/'
mutate scan_waves_are_shallow test_scan_wave tree/scan/scan.c \
	's/\(scan->depth < READ_AHEAD_MAX && scan->deep != NULL\)/false/'
mutate scan_waits_for_one_memory_node_after_the_other test_scan_wave tree/lock/node_read.c \
	's/if \(chain_length\(pointers, count\) < count\)\n/if (false)\n/'
mutate check_reads_nothing_ahead test_scan_wave tree/handle/check.c \
	's/if \(check->level == 0 && is_named\(check\) &&/if (false \&\& is_named(check) \&\&/'
mutate check_believes_what_was_read_ahead test_check tree/handle/check.c \
	's/if \(ahead->verdicts\[i\] != NODE_GOOD\)/if (false)/'
mutate ahead_not_marked test_scan_wave tree/scan/seeks_ahead.c \
	's/\t\tleaves_mark\(scan, f->pointers, f->count\);\n//'
mutate ahead_in_another_epoch test_scan_wave tree/scan/seeks_ahead.c \
	's/\tif \(f->epoch != tree->epoch\)\n\t\treturn TREE_OK;\n//'
mutate ahead_torn_and_believed test_scan_wave tree/scan/seeks_ahead.c \
	's/if \(f->verdicts\[f->next\] != NODE_GOOD\)/if (false)/'
mutate ahead_not_forgotten test_scan_wave tree/scan/seeks_ahead.c \
	's/\t\tseeks_empty\(scan->seeks\);/\t\t(void) seeks_empty;/'
mutate ahead_not_fetched test_scan_wave tree/scan/seeks_ahead.c \
	's/if \(f == NULL \|\| f->count == 0 \|\| f->read > 0\)/if (true)/'
mutate ahead_any_leaf test_scan_wave tree/scan/seeks_ahead.c \
	's/if \(low >= 0 && high < 0\)\n\t\t\tbreak;/break;/'
mutate scan_start_leaf_not_judged torture=domains-16 tree/scan/scan.c \
	's/where = -1;\n\treturn status;/where = 0;\n\treturn status;/; s/\*where = 1;/*where = 0;/'
mutate scan_completes_no_splits test_check tree/scan/scan.c \
	's/if \(path->fresh\)/if (false)/; s/if \(!lacks\)/if (true)/'
mutate ties_not_sorted test_scan tree/scan/batch.c \
	's/(candidates_compare\(scan, &range, &candidates\);\n\t\t)candidates_sort\(scan, &candidates\);/$1/'
mutate tail_not_sorted test_scan tree/scan/batch.c \
	's/while \(place > 0 && candidate_order\(g, &tail.*?< 0\)/while (false)/'
mutate order_claimed_wrongly test_scan tree/node/leaf.c \
	's/cells->ordered = false;/(void) 0;/'
mutate order_not_claimed test_scan tree/change/split_order.c \
	's/cells->leaf.ordered = true;//'
mutate order_not_used test_scan tree/scan/batch.c \
	's/bool ordered = !g->format.lossless && .*?;/bool ordered = false;/'
mutate upper_bound_includes_its_entry test_scan tree/scan/batch.c \
	's/< \(upper \? 1 : 0\)/< 0/'
mutate tail_taken_for_placed test_scan tree/scan/batch.c \
	's/candidate->placed = false;/candidate->placed = true;/; s/assert\(!tail->items\[t\].placed\);//'
mutate claimed_order_not_checked test_check tree/handle/check.c \
	's/if \(before != NULL && cell < before\)/if (false)/'
mutate ties_not_compared test_scan tree/scan/batch.c \
	's/return lower == DECIDE_UNKNOWN \|\| upper == DECIDE_UNKNOWN \? DECIDE_UNKNOWN : DECIDE_EQUAL;/return DECIDE_EQUAL;/'
mutate image_not_proved test_scan tree/lock/node_read.c \
	's/if \(image_hash\(buffers\[i\], references\[i\].bytes\) != references\[i\].hash\)/if (false)/'
mutate vacuum_trusts_old_judgment test_vacuum tree/change/vacuum_entries.c \
	's/ \|\| node\[HEADER_GENERATION\] != leaf->image\[HEADER_GENERATION\]//; s/if \(leaf->victims\[slot\] != 0 && memcmp.*?\)\n/if (leaf->victims[slot] \&\& word == 0)\n/'
mutate scan_outrun_is_damage test_damage tree/scan/scan.c \
	's/changed \? 1 : mismatch->tries \+ 1;/mismatch->tries + 1;/'
mutate scan_outrun_has_its_time_only test_damage tree/scan/scan.c \
	's/if \(!changed \|\| client_outrun\([^)]*\)\)/if (!changed || ++mismatch->outruns.tries < DESCENT_ATTEMPTS)/'
mutate scan_outrun_goes_on_for_ever test_damage tree/scan/scan.c \
	's/if \(!changed \|\| client_outrun\([^)]*\)\)/if (true)/'
mutate scan_outrun_is_not_stopped test_damage tree/scan/scan.c \
	's/(mismatch->outruns.*|mismatch->tries >= .*?)if \(client_should_stop\(client\)\)/$1if (false)/s'
mutate scan_tries_once_more test_damage tree/scan/scan.c \
	's/mismatch->tries >= DESCENT_ATTEMPTS/mismatch->tries > DESCENT_ATTEMPTS/'
mutate scan_takes_any_leaf_for_changed test_damage tree/scan/scan.c \
	's/ && \(leaf != mismatch->leaf \|\| generation != mismatch->generation\)//'
mutate outruns_are_few test_tree_faults tree/client/failure.c \
	's/outrun->tries < least \|\|/false ||/'
mutate outrun_time_begins_anew test_damage tree/client/failure.c \
	's/if \(outrun->tries\+\+ == 0\)/if (++outrun->tries > 0)/'
mutate vacuum_outrun_is_damage test_vacuum tree/change/vacuum.c \
	's/\t\tvacuum->outrun = true;\n//'
mutate vacuum_outrun_has_its_time_only test_vacuum tree/change/vacuum.c \
	's/if \(client_outrun\(client, &vacuum->outruns, JUDGE_ATTEMPTS\)\)/if (++vacuum->outruns.tries < JUDGE_ATTEMPTS)/'
mutate vacuum_outrun_has_few_tries test_vacuum tree/change/vacuum.c \
	's/client_outrun\(client, &vacuum->outruns, JUDGE_ATTEMPTS\)/client_outrun(client, \&vacuum->outruns, 1)/'
mutate vacuum_keeps_blocks test_vacuum tree/change/rewrite.c \
	's/\tleaf_free_blocks\(tree, old, LEAF_NO_SLOT, NULL\);\n//'
mutate vacuum_wave_trusts_judgment test_vacuum=--network tree/change/vacuum_wave.c \
	's/ \|\|\n\t    !vacuum_unchanged\(g, leaf, leaf->locked\)//'
mutate vacuum_wave_believes_what_was_written test_vacuum=--cached tree/lock/leaf_cache.c \
	's/return key->kept && key->epoch == tree->epoch && version_stands\(tree->client->shared->leaves, key\);/return key->kept;/'
mutate vacuum_wave_reads_twice test_vacuum=--cached tree/change/vacuum_wave.c \
	's/if \(!leaf_cache_unwritten\(tree, &leaf->key\)\)/if (true)/'
mutate vacuum_keeps_what_it_passes test_vacuum=--cached tree/descent/leaf_read.c \
	's/if \(keep && judged/if ((keep || true) \&\& judged/'
mutate vacuum_wave_believes_the_parent test_vacuum tree/change/vacuum_entries.c \
	's/return pointer_address\(leaf->pointer\) == pointer_address\(right\) &&\s+\(high == NULL \|\| separator_equal\(.*?\)\);/return leaf != NULL \&\& g != NULL \&\& (right != 0 || high != NULL);/s'
mutate vacuum_wave_forgets_doubt test_vacuum=--network tree/change/vacuum_wave.c \
	's/\tunknown_drop\(vacuum->wave, &vacuum->wave_count\);\n/\t(void) unknown_drop;\n/'
mutate vacuum_wave_keeps_blocks test_vacuum=--network tree/change/vacuum_wave.c \
	's/\t\tleaf_free_blocks\(tree, leaf->locked, LEAF_NO_SLOT, NULL\);\n//'
mutate vacuum_wave_goes_one_by_one test_vacuum=--network tree/change/vacuum_wave.c \
	's/(wave_places\(const TreeVacuum \*vacuum\)\n\{\n)/$1\treturn 0;\n/'
mutate vacuum_wave_believes_torn_leaves test_damage tree/change/vacuum_wave.c \
	's/verdicts\[tiled\] == NODE_GOOD/verdicts[tiled] != NODE_STALE/'
mutate vacuum_forgets_grown_root test_vacuum tree/change/vacuum.c \
	's/if \(status == TREE_RETRY && pointer_address\(vacuum->next\) == tree->root\)/if (false)/'
mutate vacuum_in_place test_vacuum tree/change/rewrite.c \
	's/old\[HEADER_GENERATION\] \+ 1\);/old[HEADER_GENERATION]);/'
mutate bulk_always_cuts "test_bulk" tree/change/bulk.c \
	's/(leaf_separator\(g, bulk_before.*?;\n)/$1\tseparator[0] = (bulk->cell[0] & CELL_HIGH_BIT) | (uint64_t) SEPARATOR_CUT << CELL_STATE_SHIFT;\n/s'
mutate bulk_shares_blocks test_bulk tree/change/bulk.c \
	's/if \(cell_state\(separator\[0\]\) == SEPARATOR_CUT \|\| \(separator\[0\] & CELL_OVERFLOW_BIT\) == 0\)/if (true)/'
mutate bulk_forgets_images test_bulk tree/change/bulk.c \
	's/if \(status == TREE_OK && bulk->images.count > 0\)/if (false)/'
mutate check_ignores_fences test_check tree/handle/check.c \
	's/if \(!check->first && !separator_equal\(g, low, check->high\)\)/if (false)/'
mutate check_ignores_parents test_check tree/handle/check.c \
	's/if \(!separator_equal\(g, cell \+ 1, check->node \+ g->low_word\)\)/if (false)/'
mutate check_ignores_order test_check tree/handle/check.c \
	's/if \(low < 0 \|\| high >= 0\)/if (false)/'
mutate tied_images_one_by_one test_budget_ties tree/scan/batch.c \
	's/(candidates_fetch\(TreeScan.*?)return count > 0 \? scan_fetch\(scan, slots, count\) : TREE_OK;/$1for (uint32_t i = 0; i < count; i++)\n\t{\n\t\tTreeStatus status = scan_fetch(scan, slots + i, 1);\n\t\tif (status != TREE_OK)\n\t\t\treturn status;\n\t}\n\treturn TREE_OK;/s'
mutate fence_by_a_chain_of_its_own test_budget_ties tree/scan/batch.c \
	's/if \(scan->begun \|\| \(fence\[0\]/if (true || (fence[0]/'
mutate fence_taken_for_a_cell test_scan tree/scan/batch.c \
	's/slots\[i\] == FENCE_SLOT \? far_fence\(scan\) : //'
mutate removals_not_told test_scan tree/scan/leaf_unchanged.c \
	's/scan->reread\[HEADER_GENERATION\] == batch->leaf.generation/true/'
# A scan by several: the place is handed on too early, what was taken has no end, or is one leaf only.
mutate position_handed_on_too_early test_scan_take tree/scan/scan_take.c \
	's/node_get_fence\(&scan->tree->geometry, last, /node_get_fence(\&scan->tree->geometry, scan->leaf, /; s/memcpy\(scan->taken_end, behind->want, sizeof\(scan->taken_end\)\);/node_get_fence(\&scan->tree->geometry, last, scan->direction == TREE_FORWARD, scan->taken_end);/'
mutate taken_leaves_have_no_end test_scan_take tree/scan/scan_take.c \
	's/scan->taking = true;//'
mutate taken_one_by_one test_scan_take tree/scan/scan_take.c \
	's/i < ahead->count && ahead->verdicts\[i\] == NODE_GOOD/false/'
# A leaf within the bounds: its tail is sorted and merged, and ties that integers do not order are left to the comparator.
mutate whole_tail_not_sorted test_scan tree/scan/batch_whole.c \
	's/while \(place > 0 &&\n\s+\(order = quick_order.*?< 0\)/while (false)/'
mutate whole_tail_behind_the_base test_scan tree/scan/batch_whole.c \
	's/if \(tail->next < tail->count && !tail_put_before\(scan, tail, cell\)\)/if (false)/'
mutate whole_tie_with_the_base test_scan tree/scan/batch_whole.c \
	's/\t\t\treturn order > 0;/\t\t\treturn true;/'
mutate whole_tie_in_the_tail test_scan tree/scan/batch_whole.c \
	's/return place == 0 \|\| order > 0;/return true;/'
mutate whole_base_without_order test_scan tree/scan/batch_whole.c \
	's/if \(!g->format.lossless && \(node_flags\(scan->leaf\) & NODE_BASE_ORDERED\) == 0\)/if (false)/'
mutate whole_leaf_not_turned test_scan tree/scan/batch_whole.c \
	's/scan->direction == TREE_BACKWARD && i < j/false \&\& i < j/'
mutate view_without_image test_scan tree/scan/batch.c \
	's/lossless \? 0 : cell_image\(g, cell, &views\[i\].image\)/0/'
