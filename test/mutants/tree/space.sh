# Mutants of tree/space: its safeguards, removed one at a time (test/README). Sourced.

mutate all_at_home test_allocate memory_node_choose \
	's/return own \* present \* 100 > .*?;/(void) least; return memory_node;/s'
mutate node_taken_where_not_connected test_nodes allocate.c:node_take \
	's/\tif \(access_endpoint\(tree->client, memory_node\) == NULL\)\n\t\treturn client_away\(tree->client, memory_node\);\n//'
mutate generation_again test_allocate allocate_return \
	's/\.generation = generation \+ 1,/.generation = generation,/'
mutate blocks_not_said test_reclaim blocks_run_take \
	's/status = access_repeat\(tree, memory_node, &op, 1, "writes of a chunk.s first line"\);/(void) op;/'
mutate reclaim_own_chunks test_reclaim extent.c:past_begin \
	's/past->next = extent_taken\(&header\);/past->next = header.bytes;/'
mutate reclaim_newest_extent test_reclaim extent_install \
	's/if \(at->extents == 0 && at->past\.look == STATE_LOOK_DUE/if (at->past.look == STATE_LOOK_DUE/' \
	extent_get \
	's/if \(status == TREE_OK && seen == 0\)/if (status == TREE_OK)/'
mutate chunk_not_reserved test_allocate chunks_add \
	's/\.operand = bytes\};/.operand = bytes - FABRIC_STRIPE_BYTES};/'
mutate whole_extents_by_chunks test_insert_many extent_chunks \
	's/chunks_round_up\(alone \? extent\.end - extent\.next : wanted\)/chunks_round_up(wanted)/'
mutate whole_extent_of_before test_reclaim extent_chunks \
	's/alone && seen != 0 \? /alone ? /'
mutate whole_extent_of_others test_allocate extent_get \
	's/wanted > 0 && extent\.whole/extent.whole/'
mutate whole_extent_put_twice test_allocate extent_install \
	's/\tif \(extent->extents <= at->extents\)\n\t\treturn;\n//'
mutate whole_extents_not_used test_allocate extent_install \
	's/if \(own\)/if (false \&\& own)/'
mutate extents_as_long_as_runs test_allocate allocate_run \
	's/shared->options\.alone \? CHUNK_BYTES : \*bytes/shared->options.alone ? *bytes : CHUNK_BYTES/'
mutate found_chunks_for_nodes_only test_reclaim chunk_look \
	's/empty_keep\(reclaim, STATE_FOUND, /empty_keep(reclaim, STATE_STRIPES, /'
mutate freed_one_try_fewer test_freed LIST_ATTEMPTS \
	's/#define LIST_ATTEMPTS 16/#define LIST_ATTEMPTS 15/'
mutate freed_inner_of_level_one_only test_freed kind_of \
	's/return level == 0 \? 0 : 1;/return level == 1 ? 1 : 0;/'
mutate freed_put_onto_a_changed_list test_freed list_push \
	's/if \(at->freed_changes\[kind\] == seen->changes\)/if (at->freed_changes[kind] >= seen->changes)/'
mutate freed_lost_without_a_unit test_freed list_push \
	's/unit = seen->rest \? &at->rest : unit_make\(table, at, pointer_offset\(pointer\)\);/unit = unit_make(table, at, pointer_offset(pointer));/'
mutate freed_list_known_by_its_head test_freed list_pop \
	's/same = at->freed_changes\[kind\] == seen->changes;/same = unit_first(table, at, kind) != NULL \&\& unit_first(table, at, kind)->first[kind] == seen->first;/'
mutate freed_node_keeps_its_last_generation test_freed freed_put \
	's/generation \+ 1, NODE_FREE/generation, NODE_FREE/'
mutate freed_node_believed test_freed freed_put \
	's/generation \+ 1, NODE_FREE/generation + 1, 0/'
mutate freed_node_ends_its_list test_freed freed_put \
	's/node\[HEADER_RIGHT\] = head\.first;/node[HEADER_RIGHT] = POINTER_NONE;/'
mutate freed_most_before_own test_freed freed_choose \
	's/return own \? memory_node : most;/(void) own;\n\treturn most;/'
mutate freed_last_that_has_some test_freed freed_choose \
	's/\t\t\tcount = count_at\(tree, i, kind\);\n//'
mutate freed_at_a_node_in_doubt test_freed freed_choose \
	's/ &&\s+\(client->doubt & 1ull << i\) == 0//'
mutate freed_at_a_closed_node test_freed freed_choose \
	's/node_is_open\(client->shared, i\) && //'
mutate freed_next_in_another_unit test_freed next_is_good \
	's/\(head->rest \|\|\s+pointer_offset\(next\) \/ STATE_UNIT_BYTES ==\s+pointer_offset\(head->first\) \/ STATE_UNIT_BYTES\)/true/'
mutate freed_next_has_a_stamp test_freed next_is_good \
	's/pointer_address\(next\) == next && //'
mutate freed_next_at_another_memory_node test_freed next_is_good \
	's/pointer_memory_node\(next\) == pointer_memory_node\(head->first\) &&\s+//'
mutate freed_next_lies_between_nodes test_freed next_is_good \
	's/ &&\s+pointer_offset\(next\) % node_bytes\(&tree->geometry, level\) == 0//'
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
mutate freed_damaged_list_stays test_freed freed_take \
	's/good \? header\[HEADER_RIGHT\] : POINTER_NONE\)/header[HEADER_RIGHT])/'
mutate freed_bytes_of_leaves_only test_freed tree_freed_bytes \
	's/count_at\(handle, i, 1\) \* \(uint64_t\) INNER_BYTES/0 * (uint64_t) INNER_BYTES/'
mutate freed_bytes_of_the_first_node test_freed tree_freed_bytes \
	's/for \(uint32_t i = 0; i < handle->client->options\.nodes; i\+\+\)/for (uint32_t i = 0; i < 1; i++)/'
mutate give_with_a_node_taken test_give_extents extent_is_free \
	's/return bytes == room_of\(header\);/return bytes + 2 * tree->geometry.leaf_bytes > room_of(header);/; s/if \(bytes \+ \(end - unit\) < room_of\(header\)\)/if (false)/'
mutate give_without_runs test_give_extents extent_is_free \
	's/uint64_t bytes = runs_bytes\(at, extent, end\);/uint64_t bytes = 0;/'
mutate given_is_taken_again test_give_extents extent_forget \
	's/if \(unit != NULL && unit->count\[kind\] > 0\)\n\t\t\t\tunit_set\([^;]*;/(void) unit;/'
mutate given_runs_are_cut test_give_extents extent_forget \
	's/\truns_forget\(at, extent, end\);\n//'
mutate give_beside_calls test_give_extents extent_take_out \
	's/\tif \(!alone\)\n\t\treturn false;\n//'
mutate give_behind_a_list_of_before test_give_extents extent_take_out \
	's/tree->state->gives == give->gives && extent_is_free/extent_is_free/' \
	list_has_changed \
	's/changed = tree->state->gives != give->gives;/changed = false \&\& tree->state->gives != give->gives;/'
mutate give_without_a_look test_give_extents extent_give \
	's/if \(status != TREE_OK \|\| !\*given\)\n\t\treturn status;/*given = true;\n\tif (status != TREE_OK)\n\t\treturn status;/'
mutate given_bytes_not_learned test_give_extents extent_give \
	's/return bytes_learn\(tree, give->memory_node, at\);/return bytes_learn == NULL ? TREE_RETRY : TREE_OK;/'
mutate give_without_returned test_give_extents run_is_between \
	's/return run->next >= first/return run->use >= STATE_OVERFLOW \&\& run->next >= first/'
mutate give_all_that_is_free test_give_extents may_give \
	's/free \* KEEP_PART > at->tree_bytes/free > 0/'
mutate give_while_a_chain_may_land test_give_extents may_give \
	's/at->tree_bytes &&\s+\(__atomic_load_n\(&tree->state->unsettled, __ATOMIC_ACQUIRE\) & 1u << memory_node\) == 0;/at->tree_bytes \&\& memory_node < 99;/'
mutate give_before_a_look_at_the_past test_give_extents may_give \
	's/at->past\.look == STATE_LOOK_OVER && //'
mutate give_in_a_circle test_give_extents walk_look \
	's/ \|\| header\.number >= give->number//'
mutate give_not_alone test_give_extents tree_give_next \
	's/!client->shared->options\.alone \|\| //'
mutate give_inside_a_call test_give_extents tree_give_next \
	's/ \|\| client->sections > 0\)/)/'
mutate reclaim_inside_inner_nodes test_reclaim stripe_is_whole \
	's/ \|\| node_level\(line\) > 0\);/);/'
mutate reclaim_no_freed test_reclaim place_is_free_node \
	's/\(node_flags\(line\) & NODE_FREE\) != 0 &&/false \&\&/'
mutate give_place_of_others test_give_extents place_is_free_node \
	's/return place_is_own\(tree, memory_node, line, offset\) && \(node_flags/return (tree == NULL || memory_node > 99 || offset > 0) \&\& (node_flags/'
mutate reclaim_behind_merge test_reclaim give_up \
	's/\t\tat->past\.look = STATE_LOOK_OVER;\n\tover = .*?;/\t\t;\n\tover = true;/s'
mutate reclaim_nothing test_reclaim place_look \
	's/if \(!empty && !freed\)/if (!freed)/' \
	empty_keep \
	's/if \(!place_is_empty\(lines\[i\]\)\)/if (true)/'
mutate reclaim_blocks_are_nodes test_reclaim chunk_is_blocks \
	's/ \|\|\s+\(node_flags\(first\) & NODE_BLOCKS\) != 0\)/)/'
mutate reclaim_chunk_unknown test_reclaim chunk_is_blocks \
	's/\(!place_is_own\(reclaim->tree, reclaim->memory_node, first, offset\) \|\|\s+\(node_flags\(first\) & NODE_BLOCKS\) != 0\)/(node_flags(first) \& NODE_BLOCKS) != 0/'
mutate reclaim_one_extent test_reclaim piece_look \
	's/\.extent = reclaim->header\.previous, /.extent = 0, /'
mutate reclaim_in_a_circle test_reclaim piece_look \
	's/ \|\| reclaim->header\.number > past->number//'
mutate reclaim_stops_behind_a_gap test_give_extents piece_look \
	's/reclaim->header\.number > past->number/reclaim->header.number != past->number/'
mutate reclaim_two_at_once test_reclaim reclaim_at \
	's/\t\tat->past\.look = STATE_LOOK_UNDER_WAY;\n/\t\t;\n/'
mutate reclaim_not_alone_by_need test_reclaim reclaim_some \
	's/\tif \(!tree->client->shared->options\.alone\)\n\t\treturn 0;\n//'
mutate reclaim_not_alone test_reclaim tree_reclaim_next \
	's/\tif \(!client->shared->options\.alone\)\n\t\treturn TREE_END;\n//'
mutate stripe_crossed test_allocate run_cut \
	's/if \(room < bytes\)/if (false)/'
mutate late_chunk_lost test_allocate runs_put \
	's/if \(run_bytes\(run\) == 0 \|\| /if (run_bytes(run) == 0 || run_of(at, run->use) != NULL || /'
mutate runs_side_by_side_are_many test_allocate runs_put \
	's/ \|\| run_join\(at, run\)\)/)/'
mutate last_stripes_end_lost test_allocate run_cut \
	's/if \(run->use == STATE_OVERFLOW\)/if (false)/'
mutate blocks_in_spare_of_nodes test_reclaim runs_make \
	's/\tif \(use == STATE_OVERFLOW\)\n\t\treturn false;\n//'
mutate runs_without_a_place_are_lost test_lost_space runs_left \
	's/\t\tstatus = freed_put\(.*?\);/\t\t(void) level;/s'
mutate blocks_without_a_place_are_lost test_lost_space run_to_blocks \
	's/\t\tblocks_put\(.*?\);\n/\t\t(void) at;\n/s'
mutate shortest_run_makes_place test_lost_space runs_make \
	's/at->run_count < STATE_RUNS \? CHUNK_BYTES : run_bytes\(stripes\)/CHUNK_BYTES/'
mutate chunks_lost_with_the_answer test_lost_space chunks_claim \
	's/first < bytes \? first : at->untaken/first/; s/uint64_t bytes = .*?;//'
mutate chunks_claimed_by_each test_lost_space chunks_claim \
	's/ && !at->claimed//'
mutate chunks_untaken_from_the_start "test_reclaim test_lost_space" extent_install \
	's/past->extent == extent->offset \? past->next : extent->bytes/DIRECTORY_OTHER_BUMP/'
mutate connects_to_give_back test_lost_space place_answers \
	's/client->options\.endpoints\[memory_node\] != NULL && //'
