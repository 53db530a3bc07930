# Mutants of tree/node: its safeguards, removed one at a time (test/README). Sourced.

mutate first_word_only test_cache node_search_inner \
	's/low = first_not_below\(g, node, bound, low, count, false, &at\);/at = DECIDE_BELOW;/'
mutate guess_from_above_believed test_interpolate cells_below \
	's/if \(from > 0 && node_word\(window - stride, 0\) >= row\.rank\)/if (false)/'
mutate guess_from_below_believed test_interpolate cells_below \
	's/if \(below == WINDOW_CELLS\)/if (false)/'
mutate guess_across_leading_bits test_interpolate cells_below \
	's/if \(!same_high\(&row, low\) \|\| !same_high\(&row, high\)\)/if (false)/'
mutate same_tid_not_looked_for test_tree survey_strided \
	's/return hits >> 63 != 0;/return false;/'
mutate posting_not_searched test_posting leaf_survey \
	's/if \(survey->same_tid == LEAF_NO_SLOT && \(node_flags\(node\) & NODE_POSTINGS\) != 0\)/if (false)/'
mutate dead_slot_used_again test_tree leaf_survey \
	's/if \(cell_state\(first\[slot \* words\]\) == CELL_EMPTY\)/if (cell_state(first[slot * words]) != CELL_LIVE)/'
mutate posting_stray_unnoticed "test_posting test_check" leaf_posting_stray \
	's/if \(length > POSTING_CELLS_MAX \|\| \(length > 0 && \(!allowed \|\| slot >= node_count\(node\)\)\)\)/if (false \&\& allowed)/'
mutate posting_dropped_with_its_head test_posting gather_base \
	's/if \(posting_get\(cell, i\) == 0\)\n\t\t\t\tcontinue;/if (posting_get(cell, i) == 0 || cell_state(head[0]) != CELL_LIVE)\n\t\t\t\tcontinue;/'
mutate posting_leftover_kept test_posting gather_base \
	's/if \(slot == skip && without != NULL/if (false \&\& slot == skip \&\& without != NULL/'
mutate order_claimed_wrongly test_scan leaf_gather \
	's/cells->ordered = false;/(void) 0;/'
mutate posting_cut_in_two test_posting leaf_cut_possible \
	's/if \(cell_is_posting\(cells\[cut\]\)\)\n\t\treturn false;//'
mutate cut_between_ties "test_node test_tree" leaf_cut_possible \
	's/return cell_is_posting\(cells\[cut - 1\]\) \|\|\s+cell_order\(g, cells\[cut - 1\], cells\[cut\]\) != 0;/return true;/'
mutate alone_by_fences_alone test_alone leaf_has_no_equal_key \
	's/\(\(other\[0\] \^ cell\[0\]\) & CELL_TID_MASK\) != 0 && cell_order_normalized\(g, other, cell\) == 0/false/'
mutate alone_above_high_fence test_alone leaf_has_no_equal_key \
	's/ \|\|\s+\(!separator_infinite\(high\) && cell_order_normalized\(g, high, cell\) == 0\)//'
mutate alone_below_low_fence test_alone leaf_has_no_equal_key \
	's/\(!separator_infinite\(low\) && cell_order_normalized\(g, low, cell\) == 0\) \|\|\s+//'
mutate not_alone_by_itself test_alone leaf_has_no_equal_key \
	's/ &&\s+\(\(other\[0\] \^ cell\[0\]\) & CELL_TID_MASK\) != 0//'
mutate leaf_sum_repaired_wrongly test_damage leaf_sum_set \
	's/(assert\(node_level\(node\) == 0\);\n\tnode\[HEADER_STATE\] \|= [^;]*;)\n\tnode\[HEADER_SUM\] = [^;]*;/$1/'
mutate wal_position_not_inherited "test_node test_tree" node_begin_like \
	's/node\[HEADER_EPOCH\] = old\[HEADER_EPOCH\];//'
mutate doubt_lost_in_a_rewrite test_unverified node_begin_like \
	's/node\[HEADER_EPOCH\] = old\[HEADER_EPOCH\];/node[HEADER_EPOCH] = (uint32_t) old[HEADER_EPOCH];/'
mutate old_doubt_forgotten test_unverified leaf_is_unverified \
	's/return leaf_unverified_since\(node\) != 0 \|\|/return/'
mutate dead_removed_unproven test_dead leaf_dead_proven \
	's/return epoch == proven->epoch &&[^;]*;/return true;/'
mutate void_marks_proven test_unverified leaf_dead_proven \
	's/return !leaf_marks_void\(g, node\);/return true;/'
mutate leaf_sums_by_its_pointer_alone test_replicas leaf_needs_sum \
	's/\tif \(\(nodes & g->twins\) != 0\)\n\t\tnodes \|= g->twins;\n//'
mutate tear_stamps_ignored torture=tear-16 stamps_agree \
	's/return \(differ & STAMP_MASK\) == 0;/return true;/'
mutate stamps_ignored test_node stamps_agree \
	's/return \(differ & STAMP_MASK\) == 0;/return true;/'
mutate sums_ignored test_node node_judge \
	's/node_sum\(node, INNER_BYTES\) != node\[HEADER_SUM\]/false/'
mutate leaf_sums_ignored torture=tear-words-16 node_judge \
	's/if \(!locked && !leaf_sum_agrees\(g, node\)\)/if (false)/'
mutate shape_not_looked_at test_wild_nodes 'node_check node_check_locked' \
	's/ && !node_has_shape\(g, node\)//'
mutate posting_block_cut test_posting posting_reaches \
	's/return \(cell_block\(head\[0\]\) \^ cell_block\(word0\)\) >> POSTING_BLOCK_BITS == 0;/return head != NULL || word0 != 0;/'
mutate posting_without_end test_posting packer_joins \
	's/packer->tids <= POSTING_CELLS_MAX \* g->posting_tids/packer->tids <= LEAF_ENTRIES_MAX/'
mutate redo_sum_of_the_image_alone test_node redo_sum \
	's/XXH3_64bits\(header, offsetof\(RedoHeader, sum\)\)\)/0)/'
mutate redo_of_no_length test_node redo_valid \
	's/header->bytes < LINE_BYTES \|\| //'
mutate redo_longer_than_a_node test_node redo_valid \
	's/header->bytes > NODE_MAX_BYTES \|\| //' \
	redo_sum \
	's/\tassert\(header->bytes <= NODE_MAX_BYTES\);\n//'
mutate redo_of_half_a_line test_node redo_valid \
	's/ \|\| header->bytes % LINE_BYTES != 0//'
mutate redo_of_no_generation test_node redo_valid \
	's/header->generation == 0 \|\| //'
mutate redo_of_nowhere test_node redo_valid \
	's/ \|\| pointer_address\(header->target\) == POINTER_NONE//'
mutate redo_sum_not_looked_at test_node redo_valid \
	's/\tif \(redo_sum\(header, image\) != header->sum\)\n\t\treturn false;\n//'
mutate ways_lead_anywhere test_node pointer_leads \
	's/ && pointer_memory_node\(pointer\) < g->memory_nodes//'
mutate images_are_anywhere test_node overflow_leads \
	's/return reference.memory_node < g->memory_nodes &&/return/'
mutate right_link_and_fence test_node fences_have_shape \
	's/return right == POINTER_NONE;/return true;/'
mutate postings_stray test_node leaf_has_shape \
	's/ \|\| !leaf_posting_stray\(g, node\)/ || leaf_posting_stray != NULL/'
mutate levels_without_end test_node inner_has_shape \
	's/node_level\(node\) >= LEVELS_MAX \|\| //'
mutate stamps_of_pointers_believed "test_node test_damage" pointer_address \
	's/return pointer & ~STAMP_MASK;/return pointer;/'
mutate cell_stamps_ignored test_node cell_stamps_agree \
	's/return \(differ & STAMP_MASK\) == 0;/return true;/'
mutate cells_of_any_length test_node leaf_has_shape \
	's/if \(!g->lines_whole && [^;]*;/if (false)\n\t\treturn false;/s'
mutate last_line_without_stamp "test_node test_redo" node_geometry \
	's/if \(!g\.lines_whole\)\n\t\tg\.first_word = [^;]*;/;/'
mutate word_behind_the_last_separator test_node node_geometry \
	's/ - g\.cell_words % 2 \* 8//'
mutate leaf_says_nothing_of_what_is_gone test_reader node.c:node_begin_like \
	's/\t\tleaf_raise_dead\(node, g->proven->epoch, g->proven->lsn\);/\t\t;/'
mutate void_marks_seem_to_be_proven test_reader node.c:node_begin_like \
	's/ && !leaf_marks_void\(g, old\)//'
