# Safeguards of what is found free of earlier lives (tree/space/salvage.c). Sourced by test/mutations.

mutate salvage_own_chunks test_salvage tree/space/extent.c \
	's/past->next = extent_taken\(&header\);/past->next = header.bytes;/'
mutate salvage_newest_extent test_salvage tree/space/extent.c \
	's/if \(at->extents == 0 && at->past\.look == STATE_LOOK_OWED/if (at->past.look == STATE_LOOK_OWED/; s/if \(status == TREE_OK && seen == 0\)/if (status == TREE_OK)/'
mutate salvage_blocks_are_nodes test_salvage tree/space/salvage.c \
	's/ \|\| \(node_flags\(first\) & NODE_BLOCKS\) != 0\)/)/'
mutate blocks_not_said test_salvage tree/space/allocate.c \
	's/status = access_repeat\(tree, memory_node, &op, 1, "writes of a chunk.s first line"\);/(void) op;/'
mutate blocks_in_spare_of_nodes test_salvage tree/space/runs.c \
	's/while \(i > 0 && at->spare_runs\[i - 1\]\.blocks != blocks\)/while (i > 0 \&\& at->spare_runs[i - 1].blocks \&\& !blocks)/'
mutate salvage_inside_inner_nodes test_salvage tree/space/salvage.c \
	's/ \|\| node_level\(lines\[0\]\) > 0\)\)/))/'
mutate salvage_behind_merge test_salvage tree/space/salvage.c \
	's/\t\tat->past\.look = STATE_LOOK_OVER;\n\tover = .*?;/\t\t;\n\tover = true;/s'
mutate unsettled_state_evicted test_salvage tree/shared/state_table.c \
	's/ &&\s+__atomic_load_n\(&state->unsettled, __ATOMIC_ACQUIRE\) == 0//'
mutate unsettled_not_noted test_salvage tree/client/chain.c \
	's/\t\t\tstate_leave_unsettled\(tree->state, memory_node\);\n/\t\t\t;\n/'
mutate unsettled_for_ever test_salvage tree/shared/doubts.c \
	's/\t\t__atomic_fetch_and\(&state->unsettled, [^;]*;\n//'
mutate settled_by_another_node test_salvage tree/shared/doubts.c \
	's/\(&state->unsettled, ~\(1u << node\), /(\&state->unsettled, 0, /'
mutate not_looked_behind_eviction test_salvage tree/shared/state_table.c \
	's/(\tmade->tree = tree;\n)/$1\tmade->past_over = 1;\n/'
mutate salvage_nothing test_salvage tree/space/salvage.c \
	's/if \(!empty && !freed\)/if (!freed)/; s/if \(empty && allocate_spare/if (false \&\& allocate_spare/'
mutate salvage_no_freed test_salvage tree/space/salvage.c \
	's/\(node_flags\(line\) & NODE_FREE\) != 0 &&/false \&\&/'
mutate salvage_one_extent test_salvage tree/space/salvage.c \
	's/\.extent = salvage->header\.previous, /.extent = 0, /'
mutate salvage_in_a_circle test_salvage tree/space/salvage.c \
	's/ \|\| salvage->header\.number != past->number//'
mutate salvage_two_at_once test_salvage tree/space/salvage.c \
	's/\t\tat->past\.look = STATE_LOOK_UNDER_WAY;\n/\t\t;\n/'
mutate salvage_chunk_unknown test_salvage tree/space/salvage.c \
	's/\(!line_is_own\(salvage, first, offset\) \|\| \(node_flags\(first\) & NODE_BLOCKS\) != 0\)/(node_flags(first) \& NODE_BLOCKS) != 0/'
mutate salvage_not_alone test_salvage tree/space/salvage.c \
	's/\tif \(!client->shared->options\.alone\)\n\t\treturn TREE_END;\n//'
mutate salvage_not_alone_by_need test_salvage tree/space/salvage.c \
	's/\tif \(!tree->client->shared->options\.alone\)\n\t\treturn 0;\n//'
mutate merge_beside_look test_salvage tree/change/merge.c \
	's/\*alone = salvage_end\(merge->tree\);/(void) salvage_end(merge->tree);/'
