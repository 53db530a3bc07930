# Safeguards of the tree: nodes, inserts, splits, parents. Sourced by test/mutations.

mutate stamps_ignored test_node stamps_agree \
	's/return \(differ & STAMP_MASK\) == 0;/return true;/'
mutate sums_ignored test_node node_judge \
	's/node_sum\(node, INNER_BYTES\) != node\[HEADER_SUM\]/false/'
mutate leaf_sums_ignored torture=tear-words-16 node_judge \
	's/if \(!locked && !leaf_sum_agrees\(g, node\)\)/if (false)/'
mutate fences_not_checked test_tree_faults insert_place \
	's/if \(in->path.fences_known && separator_equal.*?\)\)\n/if (true)\n/s'
mutate right_sibling_skipped test_tree_faults insert_place \
	's/return PLACE_RIGHT;/return PLACE_HERE;/'
mutate inner_right_sibling_skipped test_tree_faults search_within \
	's/choice->bound_above = low >= 0 && high >= 0;/choice->bound_above = false;/'
mutate entry_moves_inside_generation "test_tree" insert_rewrite \
	's/client->image\[HEADER_GENERATION\] \+ 1\);/client->image[HEADER_GENERATION]);/'
mutate write_behind_unlock test_tree_faults write_and_swap \
	's/writes\[count\] = word_op\(FABRIC_COMPARE_SWAP, lock->index, lock->word, next\);/memmove(writes + 1, writes, (size_t) count * sizeof(*writes)); writes[0] = word_op(FABRIC_COMPARE_SWAP, lock->index, lock->word, 0);/'
mutate handover_before_acknowledgment test_tree_faults write_and_pass_on \
	's/if \(count > 0\)\s+status = writes_execute\(tree, lock, writes, count\);/if (word_pass_on(tree, lock, pointer, NULL, 0))\n{ if (count > 0) access_execute(tree, 0, writes, count);\nreturn TREE_OK; }\nif (count > 0)\nstatus = writes_execute(tree, lock, writes, count);/s'
mutate no_redo test_tree_faults lock_many_rewrite_ops \
	's/if \(bytes > capabilities->one_packet\)/if (bytes > NODE_MAX_BYTES)/'
mutate node_before_sibling test_tree_faults split_write \
	's/(split->count \+=\s+lock_rewrite_ops.*?;\n)/{ FabricOp sibling = split->ops[--split->count]; $1 split->ops[split->count++] = sibling; }/s'
mutate hit_is_silent test_tree insert_over \
	's/return insert_rewrite\(in, LEAF_NO_SLOT, false, &cells->leaf\);/return insert_release(in);/'
mutate dead_slot_used_again test_tree leaf_survey \
	's/if \(cell_state\(first\[slot \* words\]\) == CELL_EMPTY\)/if (cell_state(first[slot * words]) != CELL_LIVE)/'
mutate same_tid_not_looked_for test_tree survey_strided \
	's/return hits >> 63 != 0;/return false;/'
mutate old_epoch_forgotten test_tree insert_set_wal_position \
	's/unverified = epoch;/unverified = 0;/'
mutate wal_position_not_inherited "test_node test_tree" node_begin_like \
	's/node\[HEADER_EPOCH\] = old\[HEADER_EPOCH\];//'
mutate incomplete_splits_not_completed test_tree_faults insert_move_right \
	's/if \(in->path.fresh\)/if (false)/'
mutate downlink_inserted_twice test_tree_faults downlink_place \
	's/return DOWNLINK_PRESENT;/(void) 0;/'
mutate behind_left_neighbor test_tree_faults downlink_place \
	's/node_search_inner\(g, node, &insertion->bound, &first, &last\)\)/false \&\& node_search_inner(g, node, \&insertion->bound, \&first, \&last))/; s/if \(left != UINT32_MAX && high == DECIDE_BELOW\)/if (left != UINT32_MAX)/'
mutate parents_high_fence_not_looked_at test_tree_faults downlink_place \
	's/high = fence_decide\(g, &insertion->bound, node, true\);/high = left != UINT32_MAX ? DECIDE_BELOW : fence_decide(g, \&insertion->bound, node, true);/'
mutate separator_made_anew "test_tree" downlink_begin \
	's/memcpy\(insertion->separator, separator, tree->geometry.cell_bytes\);/memcpy(insertion->separator, separator, tree->geometry.cell_bytes); if (cell_state(separator[0]) == SEPARATOR_FULL) insertion->separator[0] = (separator[0] & CELL_HIGH_BIT) | (uint64_t) SEPARATOR_CUT << CELL_STATE_SHIFT;/'
mutate separator_shares_block test_tree order_separator \
	's/if \(\(separator\[0\] & CELL_OVERFLOW_BIT\) == 0 \|\|/if (true ||/'
mutate plan_not_held_against_leaf test_tree_faults insert_split_unlocked \
	's/changed = node_level\(now\) != 0 \|\| now\[HEADER_GENERATION\].*?cells_bytes\) != 0;/changed = false;/s'
mutate cut_between_ties "test_node test_tree" leaf_cut_possible \
	's/return cell_is_posting\(cells\[cut - 1\]\) \|\|\s+cell_order\(g, cells\[cut - 1\], cells\[cut\]\) != 0;/return true;/'
mutate block_lost_in_jump test_tree_faults insert_inside \
	's/(\*hit = false;.*?)insert_abandon\(handle\);/$1handle->block.bytes = 0;/s'
mutate block_freed_behind_acknowledgment test_tree_faults insert_wrote \
	's/if \(status != TREE_OK \|\| !in->kept\)\n\t\tin->tree->block.bytes = 0;//' \
	insert_downlink \
	's/(TreeStatus status = downlink_insert\([^;]*;)/$1\n\n\tin->tree->block.bytes = 0;/'
mutate doubt_not_told test_tree_faults insert_wrote \
	's/in->again = true;/in->again = false;/'
mutate torn_means_not_found test_damage node_read_locked \
	's/return client_fail\(client, TREE_DAMAGED, "node %016llx of tree %016llx is torn.*?;/return TREE_NOT_FOUND;/s'
mutate torn_is_believed_under_lock test_damage node_read_locked \
	's/if \(verdict == NODE_GOOD\)\n\t\treturn TREE_OK;/if (verdict != NODE_STALE)\n\t\treturn TREE_OK;/'
mutate torn_begins_anew test_damage node_read_locked \
	's/if \(torn == LOCKED_TORN_READS\)/if (false)/'
mutate torn_stays_locked test_damage node_read_locked \
	's/released = lock_release\(tree, lock, pointer, NULL, 0\);/released = TREE_OK;/'
mutate torn_is_stale test_damage access_read \
	's/status = read_locked\(tree, pointer, bytes, image\);/status = TREE_RETRY;/' \
	read_locked \
	's/static TreeStatus\nread_locked/static TreeStatus __attribute__((unused))\nread_locked/'
mutate lost_chains_are_few test_deadline LOST_ATTEMPTS \
	's/#define LOST_ATTEMPTS 64/#define LOST_ATTEMPTS 3/'
mutate attempts_outlast_deadline test_deadline client_tries_again \
	's/client_now_us\(client\) < client_deadline\(client\)/true/'
mutate lock_waits_alone test_deadline entry_acquire \
	's/\*deadline = client_deadline\(client\) \+/client_silence_ends(client); *deadline = client_deadline(client) +/'
mutate tied_separators_one_by_one test_budget_ties search_tied \
	's/status = search_images\(tree, cells, \(int\) \(last - begin\), images\);\n\twhile \(status == TREE_OK && low < last\)/while (low < last)/; s/uint32_t i = middle - begin - 1;\n\n\t\tif \(search_compare_image\(tree, bound, cells\[i\], true, images\[i\]\) >= 0\)/int result;\n\n\t\tstatus = search_compare(tree, bound, cells[middle - begin - 1], true, \&result);\n\t\tif (status != TREE_OK)\n\t\t\tbreak;\n\t\tif (result >= 0)/; s/(search_tied\(Tree \*tree.*?)const uint8_t \*images\[INNER_CELLS_MAX\];/$1/s; s/TreeStatus status;\n\n\tassert\(begin < last/TreeStatus status = TREE_OK;\n\n\tassert(begin < last/'
mutate separators_place_not_known test_budget_ties downlink_begin \
	's/insertion->known_child = pointer_address\(left\);/insertion->known_child = 0;/'
mutate leaf_sum_not_repaired test_damage read_locked \
	's/if \(leaf_sum_is_due\(&tree->geometry, client->image\)\)/if (false)/'
mutate leaf_sum_repaired_wrongly test_damage leaf_sum_set \
	's/(assert\(node_level\(node\) == 0\);\n\tnode\[HEADER_STATE\] \|= [^;]*;)\n\tnode\[HEADER_SUM\] = [^;]*;/$1/'
mutate missing_leaf_sum_not_said test_damage leaf_sum_repair \
	's/int first = .*?;/int first = 1;/'
mutate node_taken_where_not_connected test_nodes allocate.c:node_take \
	's/\tif \(access_endpoint\(tree->client, memory_node\) == NULL\)\n\t\treturn client_away\(tree->client, memory_node\);\n//'
mutate late_read_believed test_damage read_in_time \
	's/\*late = client_now_us\(client\) - begin > READ_BOUND_US;/*late = false;/'
mutate late_leaves_believed test_damage read_chain \
	's/verdicts\[i\] = late \? NODE_TORN : /verdicts[i] = /'
mutate time_bound_where_reads_are_atomic test_damage read_in_time \
	's/timed = \(access_capabilities.*?;/timed = true;/s'
mutate astray_means_not_found test_damage search_path \
	's/return client_fail\(client, TREE_DAMAGED, "tree %llx: no way down.*?;/return TREE_NOT_FOUND;/s'
mutate scan_astray_means_the_end test_damage load_descend \
	's/return client_fail\(tree->client, TREE_DAMAGED, "tree %llx: no way to the next leaf.*?;/return TREE_END;/s'
mutate outrun_insert_is_damage test_tree_faults insert_split_unlocked \
	's/in->outrun = changed;/in->outrun = false;/'
mutate outrun_insert_has_its_time_only test_tree_faults insert_outrun \
	's/if \(client_outrun\(client, &in->outruns, INSERT_ATTEMPTS\)\)/if (++in->outruns.tries < INSERT_ATTEMPTS)/'
mutate moved_fences_are_damage test_tree_faults insert_attempt \
	's/\tin->outrun = true;\n\treturn TREE_RETRY;/\treturn insert_astray(in);/'
mutate insert_goes_round_and_round test_damage insert_move_right \
	's/if \(status == TREE_OK && !walk_goes_on\(&in->walk, right\)\)/if (false)/'
mutate outrun_downlink_is_damage test_tree_faults downlink_insert \
	's/idle = insertion\.outrun \? 0 : idle \+ 1;/idle++;/'
mutate insert_goes_astray_on_and_on test_damage insert_astray \
	's/if \(\+\+in->astray < DESCENT_ATTEMPTS\)/if (++in->astray < 100)/; s/assert\(in->astray < DESCENT_ATTEMPTS\);//'
mutate right_moves_on_and_on test_damage descend_to_target \
	's/steps < RIGHT_MOVES_MAX; steps/steps < 8 * RIGHT_MOVES_MAX; steps/'
mutate own_right_sibling_not_seen test_damage downlink_insert \
	's/if \(pointer_address\(left\) == pointer_address\(right\)\)/if (false)/'
mutate vacuum_goes_round test_damage vacuum_visit \
	's/if \(!vacuum_is_at\(vacuum, leaf\)\)/if (false)/'
mutate downlink_loses_its_key test_incomplete_splits 'downlink_compare downlink_find' \
	's/0, &bound, insertion->image\)/0, &bound, (uint8_t *) tree->overflow + TREE_IMAGE_MAX_BYTES)/'
mutate undecided_downlinks_not_counted test_budget_ties downlink_compare \
	's/TREE_COUNT\(tree, undecided_fences, 1\);//'
mutate alone_by_fences_alone test_alone leaf_has_no_equal_key \
	's/\(\(other\[0\] \^ cell\[0\]\) & CELL_TID_MASK\) != 0 && cell_order_normalized\(g, other, cell\) == 0/false/'
mutate alone_in_one_leaf test_alone leaf_has_no_equal_key \
	's/if \(\(!separator_infinite\(low\) && cell_order_normalized.*?\n\t\treturn false;/;/s'
mutate alone_above_high_fence test_alone leaf_has_no_equal_key \
	's/ \|\|\s+\(!separator_infinite\(high\) && cell_order_normalized\(g, high, cell\) == 0\)//'
mutate alone_below_low_fence test_alone leaf_has_no_equal_key \
	's/\(!separator_infinite\(low\) && cell_order_normalized\(g, low, cell\) == 0\) \|\|\s+//'
mutate too_many_memory_nodes test_many_nodes open.c:options_valid \
	's/ \|\| options->nodes > TREE_MAX_NODES//'
mutate not_alone_by_itself test_alone leaf_has_no_equal_key \
	's/ &&\s+\(\(other\[0\] \^ cell\[0\]\) & CELL_TID_MASK\) != 0//'
mutate alone_not_asked test_alone insert_locked \
	's/if \(in->alone_wanted && /if (false \&\& /'
mutate permit_not_asked_for test_alone insert_locked \
	's/\tif \(!insert_permitted\(in\)\)\n\t\treturn insert_release\(in\);\n//'
mutate permit_goes_on_behind_the_lock test_alone insert_release \
	's/(tree_node_bytes\(tree, in->path.pointer, 0\)\);\n)\tif \(in->permitted\)\n\t\tpermit_end\(in\);\n/$1/'
mutate permit_goes_on_for_the_parent test_alone insert_wrote \
	's/(holding\);\n)\tif \(in->permitted\)\n\t\tpermit_end\(in\);\n/$1/'
mutate permit_not_asked_for_again_with_room test_alone insert_delete_dead \
	's/\tif \(!insert_permitted\(in\)\)\n\t\treturn insert_release\(in\);\n//'
mutate permit_not_asked_for_again_outside test_alone insert_split_unlocked \
	's/if \(changed \|\| !insert_permitted\(in\)\)/if (changed)/'
mutate guess_from_above_believed test_interpolate cells_below \
	's/if \(from > 0 && node_word\(window - stride, 0\) >= row\.rank\)/if (false)/'
mutate guess_from_below_believed test_interpolate cells_below \
	's/if \(below == WINDOW_CELLS\)/if (false)/'
mutate guess_across_leading_bits test_interpolate cells_below \
	's/if \(!same_high\(&row, low\) \|\| !same_high\(&row, high\)\)/if (false)/'

# ---- the table of trees in use
mutate dropped_state_stays test_states state_put \
	's/if \(state->references == 0 && state->dropped\)/if (false)/'
mutate dropped_state_of_an_open_handle test_states state_drop \
	's/if \(state != NULL && state->references == 0\)\n\t\tstate_release/if (state != NULL)\n\t\tstate_release/' \
	state_release \
	's/\tassert\(state->references == 0\);\n//'
mutate part_of_a_released_state_lost test_states state_release \
	's/\t\t\tpart_give\(table, state->at\[i\]\);\n//'
mutate open_state_evicted test_states state_is_evictable \
	's/state->tree != 0 && state->references == 0 &&/state->tree != 0 \&\&/' \
	state_release \
	's/\tassert\(state->references == 0\);\n//'
mutate images_shared_inside test_inside critical_enter \
	's/\tif \(\*section > 0\)\n\t\tstatus = client_scratch\(client, \*section\);\n//'
mutate comparator_uses_its_tree test_inside critical_enter \
	's/if \(tree->comparing > 0 && tree->comparing <= client->sections\)/if (false)/'
mutate caught_error_ends_all_calls test_inside critical_reset \
	's/\tclient->sections = sections;\n/\tclient->sections = 0;\n/'
