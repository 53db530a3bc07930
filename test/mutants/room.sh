# What is free or kept for its next use: nodes, blocks, units; and the redo images of what dies. Sourced by test/mutations.

# ---- free nodes
mutate freed_kinds_are_one test_freed kind_of \
	's/return level == 0 \? 0 : 1;/return level >= LEVELS_MAX;/'
mutate freed_inner_of_level_one_only test_freed kind_of \
	's/return level == 0 \? 0 : 1;/return level == 1 ? 1 : 0;/'
mutate freed_list_changed_meanwhile test_freed list_pop \
	's/same = at->freed_changes\[kind\] == seen->changes;/same = at->freed_changes[kind] >= seen->changes;/'
mutate freed_list_known_by_its_head test_freed list_pop \
	's/same = at->freed_changes\[kind\] == seen->changes;/same = unit_first(table, at, kind) != NULL \&\& unit_first(table, at, kind)->first[kind] == seen->first;/'
mutate freed_put_onto_a_changed_list test_freed list_push \
	's/if \(at->freed_changes\[kind\] == seen->changes\)/if (at->freed_changes[kind] >= seen->changes)/'
mutate freed_count_stays test_freed unit_set \
	's/at->freed_count\[kind\] \+= \(uint64_t\) count - before;/at->freed_count[kind] += count > before;/'
mutate freed_units_of_all_trees test_freed find_locked \
	's/if \(unit->part == part && unit->offset == offset\)/if (unit->offset == offset)/' \
	units.c:bucket \
	's/0x9e3779b97f4a7c15ull \+ part\)/0x9e3779b97f4a7c15ull + 0 * part)/'
mutate freed_lost_without_a_unit test_freed list_push \
	's/unit = seen->rest \? &at->rest : unit_make\(table, at, pointer_offset\(pointer\)\);/unit = unit_make(table, at, pointer_offset(pointer));/'
mutate freed_units_kept_by_the_dropped test_freed part_forget \
	's/\tunits_forget\(table, part\);\n//'
mutate freed_next_in_another_unit test_freed next_is_good \
	's/\(head->rest \|\|\s+pointer_offset\(next\) \/ STATE_UNIT_BYTES ==\s+pointer_offset\(head->first\) \/ STATE_UNIT_BYTES\)/true/'
mutate freed_node_keeps_its_last_generation test_freed freed_put \
	's/generation \+ 1, NODE_FREE/generation, NODE_FREE/'
mutate freed_node_believed test_freed freed_put \
	's/generation \+ 1, NODE_FREE/generation + 1, 0/'
mutate freed_node_ends_its_list test_freed freed_put \
	's/node\[HEADER_RIGHT\] = head\.first;/node[HEADER_RIGHT] = POINTER_NONE;/'
mutate freed_taken_in_the_same_generation test_freed freed_take \
	's/header\[HEADER_GENERATION\] \+ 1;/header[HEADER_GENERATION];/'
mutate freed_node_of_another_tree test_freed freed_take \
	's/header\[HEADER_TREE\] == tree->tree && //'
mutate freed_node_of_another_place test_freed freed_take \
	's/header\[HEADER_SELF\] == head\.first &&\s+//'
mutate freed_node_in_use test_freed freed_take \
	's/\(node_flags\(header\) & NODE_FREE\) != 0 && //'
mutate freed_node_of_the_other_kind test_freed freed_take \
	's/ && \(node_level\(header\) == 0\) == \(kind == 0\)//'
mutate freed_next_has_a_stamp test_freed next_is_good \
	's/pointer_address\(next\) == next && //'
mutate freed_next_at_another_memory_node test_freed next_is_good \
	's/pointer_memory_node\(next\) == pointer_memory_node\(head->first\) &&\s+//'
mutate freed_next_lies_between_nodes test_freed next_is_good \
	's/ &&\s+pointer_offset\(next\) % node_bytes\(&tree->geometry, level\) == 0//'
mutate freed_damaged_list_stays test_freed freed_take \
	's/good \? header\[HEADER_RIGHT\] : POINTER_NONE\)/header[HEADER_RIGHT])/'
mutate freed_one_try_fewer test_freed LIST_ATTEMPTS \
	's/#define LIST_ATTEMPTS 16/#define LIST_ATTEMPTS 15/'
mutate freed_one_try_more test_freed LIST_ATTEMPTS \
	's/#define LIST_ATTEMPTS 16/#define LIST_ATTEMPTS 17/'
mutate freed_most_before_own test_freed freed_choose \
	's/return own \? memory_node : most;/(void) own;\n\treturn most;/'
mutate freed_as_many_is_more test_freed freed_choose \
	's/count_at\(tree, i, kind\) > count/count_at(tree, i, kind) >= count/'
mutate freed_last_that_has_some test_freed freed_choose \
	's/\t\t\tcount = count_at\(tree, i, kind\);\n//'
mutate freed_at_a_node_in_doubt test_freed freed_choose \
	's/ &&\s+\(client->doubt & 1ull << i\) == 0//'
mutate freed_at_a_closed_node test_freed freed_choose \
	's/node_is_open\(client->shared, i\) && //'
mutate freed_bytes_of_leaves_only test_freed tree_freed_bytes \
	's/count_at\(handle, i, 1\) \* \(uint64_t\) INNER_BYTES/0 * (uint64_t) INNER_BYTES/'
mutate freed_bytes_of_the_first_node test_freed tree_freed_bytes \
	's/for \(uint32_t i = 0; i < handle->client->options\.nodes; i\+\+\)/for (uint32_t i = 0; i < 1; i++)/'

# ---- free blocks
mutate block_exact_passed_over test_blocks blocks_take \
	's/length = lengths_find\(at, wanted\);/length = wanted + 1 < STATE_BLOCK_LENGTHS ? lengths_find(at, wanted + 1) : STATE_BLOCK_LENGTHS;/'
mutate block_one_too_short test_blocks blocks_take \
	's/length = lengths_find\(at, wanted\);/length = lengths_find(at, wanted - 1);/'
mutate block_lists_of_one_word test_blocks lengths_find \
	's/i\+\+, skip = ~0ull\)/i++)/'
mutate block_lists_but_the_last_word test_blocks lengths_find \
	's/i < STATE_BLOCK_LENGTHS \/ 64; i/i + 1 < STATE_BLOCK_LENGTHS \/ 64; i/'
mutate block_rest_lost test_blocks blocks_take \
	's/\tblocks_put\(table, at, \*offset \+ bytes, .*?;\n//'
mutate block_rest_is_its_beginning test_blocks blocks_take \
	's/blocks_put\(table, at, \*offset \+ bytes, /blocks_put(table, at, *offset, /'
mutate block_rest_is_whole test_blocks blocks_take \
	's/\(length - wanted\) \* OVERFLOW_ALIGN, true\)/(length - wanted) * OVERFLOW_ALIGN, false)/'
mutate block_rests_fill_the_pool test_blocks pool_take \
	's/rest \? table->pool_blocks \/ 2 : table->pool_blocks/rest ? table->pool_blocks : table->pool_blocks/'
mutate block_pool_one_too_many test_blocks pool_take \
	's/table->pool_full >= room/table->pool_full > room/'
mutate block_pool_one_too_few test_blocks pool_take \
	's/table->pool_full >= room/table->pool_full + 1 >= room/'
mutate block_of_no_bytes_has_a_place test_blocks blocks_put \
	's/bytes != 0 \? pool_take\(table, rest\) : 0/pool_take(table, rest)/'
mutate block_place_lost_when_taken test_blocks blocks_take \
	's/(at->lengths\[length \/ 64\] &= ~\(1ull << length % 64\);\n)\tpool_give\(table, number\);\n(\tblocks_put)/$1$2/'
mutate block_places_used_once test_blocks pool_take \
	's/else if \(table->pool_free != 0\)/else if (false)/'
mutate block_pool_never_less_full test_blocks pool_give \
	's/\ttable->pool_full--;\n//'
mutate block_list_stays_marked test_blocks blocks_take \
	's/\tif \(at->blocks\[length\] == 0\)\n\t\tat->lengths\[length \/ 64\] &= .*?;\n//'
mutate block_list_ends_with_its_first test_blocks blocks_take \
	's/\tif \(at->blocks\[length\] == 0\)\n\t(\tat->lengths)/$1/'
mutate block_replaces_its_list test_blocks blocks_put \
	's/pool_block\(table, number\)->next = at->blocks\[length\];/pool_block(table, number)->next = 0;/'
mutate block_forgotten_keeps_its_place test_blocks blocks_forget \
	's/(->next;\n)\t\t\tpool_give\(table, number\);\n/$1/'
mutate block_first_of_a_list_forgotten test_blocks blocks_forget \
	's/while \(at->blocks\[length\] != 0\)/if (at->blocks[length] != 0)/'
mutate block_pool_reset_in_part test_blocks blocks_pool_reset \
	's/\ttable->pool_full = 0;\n//'
mutate block_pool_reset_keeps_its_list test_blocks blocks_pool_reset \
	's/\ttable->pool_free = 0;\n//'

# ---- runs of free units
mutate unit_runs_meet_nowhere test_unit_runs add_sums \
	's/\tif \(left->end \+ right->begin > sum\.most\)\n\t\tsum\.most = left->end \+ right->begin;\n//'
mutate unit_run_of_all_begins_left test_unit_runs add_sums \
	's/\tif \(left->begin == length\)\n\t\tsum\.begin \+= right->begin;\n//'
mutate unit_run_of_all_ends_right test_unit_runs add_sums \
	's/\tif \(right->end == length\)\n\t\tsum\.end \+= left->end;\n//'
mutate unit_runs_of_the_left test_unit_runs add_sums \
	's/left->most > right->most \? left->most : right->most/left->most/'
mutate unit_runs_behind_the_last test_unit_runs service_runs.c:block_sum \
	's/first \+ i < runs->count && runs->units/first + i < runs->blocks * RUNS_BLOCK_UNITS \&\& runs->units/'
mutate unit_runs_last_left_out test_unit_runs service_runs.c:block_sum \
	's/first \+ i < runs->count && runs->units/first + i + 1 < runs->count \&\& runs->units/'
mutate unit_runs_one_block_too_few test_unit_runs runs_open \
	's/while \(runs->blocks \* RUNS_BLOCK_UNITS < count\)/while (runs->blocks * RUNS_BLOCK_UNITS < count - count \% RUNS_BLOCK_UNITS)/'
mutate unit_runs_last_block_unchanged test_unit_runs runs_changed \
	's/\(unit \+ count - 1\) \/ RUNS_BLOCK_UNITS/unit \/ RUNS_BLOCK_UNITS/'
mutate unit_runs_before_the_begin test_unit_runs search_block \
	's/unit >= search->begin && search->runs/search->runs/' \
	search_sum \
	's/first >= search->begin && first \+ length <= search->end/first + length <= search->end/'
mutate unit_runs_in_the_block_before_the_begin test_unit_runs search_block \
	's/unit >= search->begin && search->runs/search->runs/'
mutate unit_runs_one_behind_the_end test_unit_runs search_block \
	's/unit < search->end; unit/unit <= search->end \&\& unit < search->runs->count; unit/'
mutate unit_runs_one_before_the_end test_unit_runs search_block \
	's/unit < search->end; unit/unit + 1 < search->end; unit/'
mutate unit_runs_passed_over_when_long_enough test_unit_runs search_sum \
	's/if \(sum->most < search->count\)/if (sum->most <= search->count)/'
mutate unit_runs_from_before_one_too_few test_unit_runs search_sum \
	's/search->run \+ sum->begin >= search->count/search->run + sum->begin + 1 >= search->count/'
mutate unit_runs_from_before_forgotten test_unit_runs search_sum \
	's/search->run = sum->end == length \? search->run \+ length : sum->end;/search->run = sum->end;/'
mutate unit_runs_right_half_first test_unit_runs search_sum \
	's/return search_sum\(search, 2 \* i, first, length \/ 2\) \|\|\s+search_sum\(search, 2 \* i \+ 1, first \+ length \/ 2, length \/ 2\);/return search_sum(search, 2 * i + 1, first + length \/ 2, length \/ 2) ||\n\t       search_sum(search, 2 * i, first, length \/ 2);/'

# ---- which redo images are believed
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
mutate redo_sum_of_the_image_alone test_node redo_sum \
	's/XXH3_64bits\(header, offsetof\(RedoHeader, sum\)\)\)/0)/'
