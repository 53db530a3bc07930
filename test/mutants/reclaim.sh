# Safeguards of what is found free of earlier incarnations (tree/space/reclaim.c). Sourced by test/mutations.

mutate reclaim_own_chunks test_reclaim tree/space/extent.c \
	's/past->next = extent_taken\(&header\);/past->next = header.bytes;/'
mutate reclaim_newest_extent test_reclaim tree/space/extent.c \
	's/if \(at->extents == 0 && at->past\.look == STATE_LOOK_DUE/if (at->past.look == STATE_LOOK_DUE/; s/if \(status == TREE_OK && seen == 0\)/if (status == TREE_OK)/'
mutate reclaim_blocks_are_nodes test_reclaim tree/space/reclaim.c \
	's/ \|\| \(node_flags\(first\) & NODE_BLOCKS\) != 0\)/)/'
mutate blocks_not_said test_reclaim tree/space/allocate.c \
	's/status = access_repeat\(tree, memory_node, &op, 1, "writes of a chunk.s first line"\);/(void) op;/'
mutate blocks_in_spare_of_nodes test_reclaim tree/space/runs.c \
	's/while \(i > 0 && at->spare_runs\[i - 1\]\.blocks != blocks\)/while (i > 0 \&\& at->spare_runs[i - 1].blocks \&\& !blocks)/'
mutate reclaim_inside_inner_nodes test_reclaim tree/space/reclaim.c \
	's/ \|\| node_level\(lines\[0\]\) > 0\)\)/))/'
mutate reclaim_behind_merge test_reclaim tree/space/reclaim.c \
	's/\t\tat->past\.look = STATE_LOOK_OVER;\n\tover = .*?;/\t\t;\n\tover = true;/s'
mutate unsettled_state_evicted test_reclaim tree/shared/state_table.c \
	's/ &&\s+__atomic_load_n\(&state->unsettled, __ATOMIC_ACQUIRE\) == 0//'
mutate unsettled_not_noted test_reclaim tree/client/chain.c \
	's/\t\t\tstate_leave_unsettled\(tree->state, memory_node\);\n/\t\t\t;\n/'
mutate unsettled_for_ever test_reclaim tree/shared/doubts.c \
	's/\t\t__atomic_fetch_and\(&state->unsettled, [^;]*;\n//'
mutate settled_by_another_node test_reclaim tree/shared/doubts.c \
	's/\(&state->unsettled, ~\(1u << node\), /(\&state->unsettled, 0, /'
mutate not_looked_behind_eviction test_reclaim tree/shared/state_table.c \
	's/(\tmade->tree = tree;\n)/$1\tmade->past_over = 1;\n/'
mutate reclaim_nothing test_reclaim tree/space/reclaim.c \
	's/if \(!empty && !freed\)/if (!freed)/; s/if \(empty && allocate_spare/if (false \&\& allocate_spare/'
mutate reclaim_no_freed test_reclaim tree/space/reclaim.c \
	's/\(node_flags\(line\) & NODE_FREE\) != 0 &&/false \&\&/'
mutate reclaim_one_extent test_reclaim tree/space/reclaim.c \
	's/\.extent = reclaim->header\.previous, /.extent = 0, /'
mutate reclaim_in_a_circle test_reclaim tree/space/reclaim.c \
	's/ \|\| reclaim->header\.number != past->number//'
mutate reclaim_two_at_once test_reclaim tree/space/reclaim.c \
	's/\t\tat->past\.look = STATE_LOOK_UNDER_WAY;\n/\t\t;\n/'
mutate reclaim_chunk_unknown test_reclaim tree/space/reclaim.c \
	's/\(!line_is_own\(reclaim, first, offset\) \|\| \(node_flags\(first\) & NODE_BLOCKS\) != 0\)/(node_flags(first) \& NODE_BLOCKS) != 0/'
mutate reclaim_not_alone test_reclaim tree/space/reclaim.c \
	's/\tif \(!client->shared->options\.alone\)\n\t\treturn TREE_END;\n//'
mutate reclaim_not_alone_by_need test_reclaim tree/space/reclaim.c \
	's/\tif \(!tree->client->shared->options\.alone\)\n\t\treturn 0;\n//'
mutate merge_beside_look test_reclaim tree/change/merge.c \
	's/\*alone = reclaim_end\(merge->tree\);/(void) reclaim_end(merge->tree);/'
