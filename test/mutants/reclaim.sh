# Safeguards of what is found free of earlier incarnations (tree/space/reclaim.c). Sourced by test/mutations.

mutate reclaim_own_chunks test_reclaim extent.c:past_begin \
	's/past->next = extent_taken\(&header\);/past->next = header.bytes;/'
mutate reclaim_newest_extent test_reclaim extent_install \
	's/if \(at->extents == 0 && at->past\.look == STATE_LOOK_DUE/if (at->past.look == STATE_LOOK_DUE/' \
	extent_get \
	's/if \(status == TREE_OK && seen == 0\)/if (status == TREE_OK)/'
mutate reclaim_blocks_are_nodes test_reclaim chunk_is_blocks \
	's/ \|\|\s+\(node_flags\(first\) & NODE_BLOCKS\) != 0\)/)/'
mutate blocks_not_said test_reclaim blocks_run_take \
	's/status = access_repeat\(tree, memory_node, &op, 1, "writes of a chunk.s first line"\);/(void) op;/'
mutate blocks_in_spare_of_nodes test_reclaim use_spare \
	's/while \(i > 0 && at->spare_runs\[i - 1\]\.blocks != blocks\)/while (i > 0 \&\& at->spare_runs[i - 1].blocks \&\& !blocks)/'
mutate reclaim_inside_inner_nodes test_reclaim stripe_is_whole \
	's/ \|\| node_level\(line\) > 0\);/);/'
mutate reclaim_behind_merge test_reclaim give_up \
	's/\t\tat->past\.look = STATE_LOOK_OVER;\n\tover = .*?;/\t\t;\n\tover = true;/s'
mutate unsettled_state_evicted test_reclaim state_is_evictable \
	's/ &&\s+__atomic_load_n\(&state->unsettled, __ATOMIC_ACQUIRE\) == 0//'
mutate unsettled_not_noted test_reclaim access_lost \
	's/\t\t\tstate_leave_unsettled\(tree->state, memory_node\);\n/\t\t\t;\n/'
mutate unsettled_for_ever test_reclaim state_node_fenced \
	's/\t\t__atomic_fetch_and\(&state->unsettled, [^;]*;\n//'
mutate settled_by_another_node test_reclaim state_node_fenced \
	's/\(&state->unsettled, ~\(1u << node\), /(\&state->unsettled, 0, /'
mutate not_looked_behind_eviction test_reclaim state_make \
	's/(\tmade->tree = tree;\n)/$1\tmade->past_over = 1;\n/'
mutate reclaim_nothing test_reclaim place_look \
	's/if \(!empty && !freed\)/if (!freed)/' \
	stripe_look \
	's/if \(empty && allocate_spare/if (false \&\& allocate_spare/'
mutate reclaim_no_freed test_reclaim place_is_free_node \
	's/\(node_flags\(line\) & NODE_FREE\) != 0 &&/false \&\&/'
mutate reclaim_one_extent test_reclaim piece_look \
	's/\.extent = reclaim->header\.previous, /.extent = 0, /'
mutate reclaim_in_a_circle test_reclaim piece_look \
	's/ \|\| reclaim->header\.number > past->number//'
mutate reclaim_two_at_once test_reclaim reclaim_at \
	's/\t\tat->past\.look = STATE_LOOK_UNDER_WAY;\n/\t\t;\n/'
mutate reclaim_chunk_unknown test_reclaim chunk_is_blocks \
	's/\(!place_is_own\(reclaim->tree, reclaim->memory_node, first, offset\) \|\|\s+\(node_flags\(first\) & NODE_BLOCKS\) != 0\)/(node_flags(first) \& NODE_BLOCKS) != 0/'
mutate reclaim_not_alone test_reclaim tree_reclaim_next \
	's/\tif \(!client->shared->options\.alone\)\n\t\treturn TREE_END;\n//'
mutate reclaim_not_alone_by_need test_reclaim reclaim_some \
	's/\tif \(!tree->client->shared->options\.alone\)\n\t\treturn 0;\n//'
mutate merge_beside_look test_reclaim merge_children \
	's/\*alone = reclaim_end\(merge->tree\);/(void) reclaim_end(merge->tree);/'

# Extents that are given back (tree/space/give.c).
mutate give_beside_calls test_give_extents extent_take_out \
	's/\tif \(!alone\)\n\t\treturn false;\n//'
mutate give_with_a_node_taken test_give_extents extent_is_free \
	's/return bytes == room_of\(header\);/return bytes + 2 * tree->geometry.leaf_bytes > room_of(header);/; s/if \(bytes \+ \(end - unit\) < room_of\(header\)\)/if (false)/'
mutate give_without_a_look test_give_extents extent_give \
	's/if \(status != TREE_OK \|\| !\*given\)\n\t\treturn status;/*given = true;\n\tif (status != TREE_OK)\n\t\treturn status;/'
mutate give_place_of_others test_give_extents place_is_free_node \
	's/return place_is_own\(tree, memory_node, line, offset\) && \(node_flags/return (tree == NULL || memory_node > 99 || offset > 0) \&\& (node_flags/'
mutate given_is_taken_again test_give_extents extent_forget \
	's/if \(unit != NULL && unit->count\[kind\] > 0\)\n\t\t\t\tunit_set\([^;]*;/(void) unit;/'
mutate given_runs_are_cut test_give_extents extent_forget \
	's/\truns_forget\(at, extent, end\);\n//'
mutate give_all_that_is_free test_give_extents may_give \
	's/free \* KEEP_PART > at->tree_bytes/free > 0/'
mutate give_while_a_chain_may_land test_give_extents may_give \
	's/at->tree_bytes &&\s+\(__atomic_load_n\(&tree->state->unsettled, __ATOMIC_ACQUIRE\) & 1u << memory_node\) == 0;/at->tree_bytes \&\& memory_node < 99;/'
mutate give_before_a_look_at_the_past test_give_extents may_give \
	's/at->past\.look == STATE_LOOK_OVER && //'
mutate give_not_alone test_give_extents tree_give_next \
	's/!client->shared->options\.alone \|\| //'
mutate give_inside_a_call test_give_extents tree_give_next \
	's/ \|\| client->sections > 0\)/)/'
mutate give_in_a_circle test_give_extents walk_look \
	's/ \|\| header\.number >= give->number//'
mutate given_bytes_not_learned test_give_extents extent_give \
	's/return bytes_learn\(tree, give->memory_node, at\);/return bytes_learn == NULL ? TREE_RETRY : TREE_OK;/'
mutate give_without_returned test_give_extents returned_free \
	's/if \(at->returned\[kind\] > 0\)/if (false)/'
mutate give_without_runs test_give_extents extent_is_free \
	's/uint64_t bytes = runs_bytes\(at, extent, end\);/uint64_t bytes = 0;/'
mutate reclaim_stops_behind_a_gap test_give_extents piece_look \
	's/reclaim->header\.number > past->number/reclaim->header.number != past->number/'
mutate give_behind_a_list_of_before test_give_extents extent_take_out \
	's/tree->state->gives == give->gives && extent_is_free/extent_is_free/' \
	list_has_changed \
	's/changed = tree->state->gives != give->gives;/changed = false \&\& tree->state->gives != give->gives;/'
