# Mutants of tree/descent: its safeguards, removed one at a time (test/README). Sourced.

mutate downlink_inserted_twice test_tree_faults downlink_place \
	's/return DOWNLINK_PRESENT;/(void) 0;/'
mutate connects_for_a_leaf_in_vain test_leaf_cache key_to_read \
	's/\*key = leaf_cache_key\(tree, pointer\);//'
mutate behind_left_neighbor test_tree_faults downlink_place \
	's/node_search_inner\(g, node, &insertion->bound, &first, &last\)\)/false \&\& node_search_inner(g, node, \&insertion->bound, \&first, \&last))/; s/if \(left != UINT32_MAX && high == DECIDE_BELOW\)/if (left != UINT32_MAX)/'
mutate parents_high_fence_not_looked_at test_tree_faults downlink_place \
	's/high = fence_decide\(g, &insertion->bound, node, true\);/high = left != UINT32_MAX ? DECIDE_BELOW : fence_decide(g, \&insertion->bound, node, true);/'
mutate downlink_loses_its_key test_incomplete_splits 'downlink_compare downlink_find' \
	's/0, &bound, insertion->image\)/0, &bound, (uint8_t *) tree->overflow + TREE_IMAGE_MAX_BYTES)/'
mutate undecided_downlinks_not_counted test_budget_ties downlink_compare \
	's/TREE_COUNT\(tree, undecided_fences, 1\);//'
mutate separator_made_anew test_tree downlink_begin \
	's/memcpy\(insertion->separator, separator, tree->geometry.cell_bytes\);/memcpy(insertion->separator, separator, tree->geometry.cell_bytes); if (cell_state(separator[0]) == SEPARATOR_FULL) insertion->separator[0] = (separator[0] & CELL_HIGH_BIT) | (uint64_t) SEPARATOR_CUT << CELL_STATE_SHIFT;/'
mutate separators_place_not_known test_budget_ties downlink_begin \
	's/insertion->known_child = pointer_address\(left\);/insertion->known_child = 0;/'
mutate outrun_downlink_is_damage test_tree_faults downlink_insert \
	's/idle = insertion\.outrun \? 0 : idle \+ 1;/idle++;/'
mutate own_right_sibling_not_seen test_damage downlink_insert \
	's/if \(pointer_address\(left\) == pointer_address\(right\)\)/if (false)/'
mutate downlink_wave_does_not_ask test_insert_many_faults link_place \
	's/place = downlink_place\(&insertion, \(\*piece\)->image, &index\);/place = DOWNLINK_HERE; index = node_count((*piece)->image);/'
mutate full_parents_one_by_one test_parents parent_split \
	's/if \(spare_count\(tree, parents->level\) < needed/if (true/'
mutate parents_in_one_node_each test_parents link_place \
	's/if \(place == DOWNLINK_RIGHT && \(\*piece\)->next != NULL\)/if (false)/'
mutate parents_of_parents_left test_parents parents_links \
	's/if \(!parent_is_written\(parent\) \|\| parent->root != NULL\)\n\t\t\tcontinue;/continue;/'
mutate new_parents_behind_what_links_them test_parents parents_write \
	's/if \(parent_is_written\(&parents->parents\[i\]\) && pieces_write\(parents, &parents->parents\[i\]\)\)/if (false)/; s/\t\t\tparent_write\(parents, &parents->parents\[i\]\);/\t\t\tparent_write(parents, \&parents->parents[i]), (void) pieces_write(parents, \&parents->parents[i]);/'
mutate new_parents_not_waited_for test_parents parents_write \
	's/\tif \(apart\)\n/\tif (false)\n/'
mutate lost_new_parents_linked test_parents pieces_wrote \
	's/if \(parent->status == TREE_OK\)/if (false)/'
mutate lost_parents_links_done test_parents parent_wrote \
	's/parents->links\[i\]\.done = parents->links\[i\]\.waits = false;/parents->links[i].waits = false;/'
mutate root_in_its_children test_parents root_leave \
	's/node_flags\(root\) & ~NODE_ROOT/node_flags(root)/'
mutate new_parents_not_linked test_parents cells_move \
	's/\tleft->image\[HEADER_RIGHT\] = right->pointer;\n//'
mutate many_downlinks_cut_at_half test_parents piece_cut \
	's/if \(rest <= count \/ 4 \|\| index <= middle\)/if (true)/'
mutate ascending_parents_cut_at_half test_parents piece_cut \
	's/if \(index == count && node\[HEADER_RIGHT\] == POINTER_NONE\)/if (false)/'
mutate image_of_the_version_behind_the_read test_leaf_writes leaf_cache_read \
	's/if \(status == TREE_OK\)\n\t\tleaf_cache_offer\(tree, &key, leaf\);/if (status == TREE_OK)\n\t{\n\t\tkey = leaf_cache_key(tree, pointer);\n\t\tleaf_cache_offer(tree, \&key, leaf);\n\t}/'
mutate vacuum_keeps_what_it_passes test_vacuum=--cached read_leaves \
	's/if \(keep && judged/if ((keep || true) \&\& judged/'
mutate offloaded_by_default test_offload offload_shared_bytes \
	's/techniques->offload == TREE_OFFLOAD_NEVER \? 0 :/techniques == NULL ? 0 :/'
mutate costs_outlive_their_incarnation test_offload offload_shared_reset \
	's/\tif \(shared->offloads != NULL\)\n\t\tmemset\(.*?\);//'
mutate outlier_counts_whole test_offload average_add \
	's/now = OUTLIER_TIMES \* before;/;/'
mutate levels_do_not_count test_offload call_limit \
	's/return \(level \+ 1\) \* each/return (level > 0 ? 2 : 1) * each/'
mutate copied_tree_offloaded test_offload offload_chosen \
	's/tree->replicas != NULL \|\| //'
mutate nothing_explored test_offload offload_chosen \
	's/client_random\(client\) % EXPLORE_ONE_IN == 0 \? !cheaper : cheaper/cheaper/'
mutate calls_in_vain_are_cheap test_offload call_took \
	's/ \+ call_limit\(costs, level\) \* left \/ \(level \+ 1\);/ + 0 * left;/'
mutate offloaded_place_nowhere test_offload_answers answer_has_place \
	's/pointer_address\(answer->pointer\) != POINTER_NONE &&//'
mutate offloaded_place_at_no_node test_offload_answers answer_has_place \
	's/pointer_memory_node\(answer->pointer\) < tree->client->options.nodes &&/true \&\&/'
mutate offloaded_image_not_verified test_offload_answers answer_has_leaf \
	's/ &&\n\t\s+node_check\(g, answer->image, tree->tree, answer->pointer\) == NODE_GOOD//'
mutate offloaded_inner_node_for_a_leaf test_offload_answers answer_has_leaf \
	's/ &&\n\t\s+node_level\(answer->image\) == 0;/;/'
mutate offloaded_image_of_any_length test_offload_answers answer_has_leaf \
	's/got == DIRECTORY_DESCENDED_BYTES \+ g->leaf_bytes/true/'
mutate offloaded_in_doubt test_offload_answers offload_descend \
	's/ \|\| \(client->doubt & 1ull << memory_node\) != 0//'
mutate lost_call_leaves_no_doubt test_offload_answers offload_descend \
	's/client->doubt \|= 1ull << memory_node;\n\t\tsettled = access_settle\(client, memory_node\);\n\t\treturn settled == TREE_OK \? TREE_NOT_FOUND : settled;/(void) settled;\n\t\treturn TREE_NOT_FOUND;/'
mutate root_split_told_by_half test_predicate split_announce \
	's/if \(split->root \&\& tree/if (false \&\& tree/'
mutate tied_separators_one_by_one test_budget_ties search_tied \
	's/status = search_images\(tree, cells, \(int\) \(last - begin\), images\);\n\twhile \(status == TREE_OK && low < last\)/while (low < last)/; s/uint32_t i = middle - begin - 1;\n\n\t\tif \(search_compare_image\(tree, bound, cells\[i\], true, images\[i\]\) >= 0\)/int result;\n\n\t\tstatus = search_compare(tree, bound, cells[middle - begin - 1], true, \&result);\n\t\tif (status != TREE_OK)\n\t\t\tbreak;\n\t\tif (result >= 0)/; s/(search_tied\(Tree \*tree.*?)const uint8_t \*images\[INNER_CELLS_MAX\];/$1/s; s/TreeStatus status;\n\n\tassert\(begin < last/TreeStatus status = TREE_OK;\n\n\tassert(begin < last/'
mutate inner_right_sibling_skipped test_tree_faults search_within \
	's/choice->bound_above = low >= 0 && high >= 0;/choice->bound_above = false;/'
mutate astray_means_not_found test_damage search_path \
	's/return access_no_way\(.*?;/return TREE_NOT_FOUND;/s'
mutate generation_not_raised_by_split sim_torture halves_begin \
	's/uint64_t left_generation = old\[HEADER_GENERATION\] \+ 1;/uint64_t left_generation = old[HEADER_GENERATION];/'
mutate parent_before_sibling sim_torture sibling_add \
	's/\A/static bool sibling_late;\n\n/; s/(assert\(split->count < SPLIT_CHAIN_OPS\);\n)/$1\tif (sibling_late)\n\t\treturn TREE_OK;\n/' \
	split_leaf \
	's/status = split_write\(tree, lock, pointer, split\);\n\tsplit_over/static uint64_t late[NODE_MAX_BYTES \/ 8];\n\tFabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = g->leaf_bytes, .offset = pointer_offset(split->right), .buffer = late};\n\n\tsibling_late = !split->root;\n\tnode_seal(g, tree->client->image_right);\n\tmemcpy(late, tree->client->image_right, g->leaf_bytes);\n\tstatus = split_write(tree, lock, pointer, split);\n\tif (sibling_late && status == TREE_OK)\n\t{\n\t\t(void) downlink_insert(tree, 0, split->left, split->separator, split->right, NULL);\n\t\t(void) access_execute(tree, pointer_memory_node(split->right), &op, 1);\n\t}\n\tsibling_late = false;\n\tsplit_over/'
mutate node_before_sibling test_tree_faults split_write \
	's/(split->count \+=\s+lock_rewrite_ops.*?;\n)/{ FabricOp sibling = split->ops[--split->count]; $1 split->ops[split->count++] = sibling; }/s'
mutate half_of_a_hot_leaf_not_kept test_leaf_cache split_leaf \
	's/\tif \(status == TREE_OK\)\n\t\tleaf_cache_split\(.*?\);\n//'
mutate split_not_told test_predicate split_leaf \
	's/\tsplit_announce\(tree, pointer, split\);\n/\tstate_split_begins(tree->state);\n/'
mutate split_told_behind test_predicate split_leaf \
	's/\tsplit_announce\(tree, pointer, split\);\n(\tkey = .*?;\n\tstatus = split_write.*?;\n)/$1\tsplit_announce(tree, pointer, split);\n/'
mutate parent_short_of_nodes_for_each_link test_insert_many=--mapped parent_split \
	's/\t\tif \(!parent->short_of\)\n//'
mutate new_node_of_a_lost_split_stays test_lost_space split_write \
	's/\tif \(status == TREE_RETRY\)\n\t\tsplit_lost\(tree, pointer, split\);\n//'
mutate new_parents_of_a_lost_wave_stay test_lost_space parents_insert \
	's/\t\tparent_lost\(parents, &parents->parents\[i\]\);\n//'
mutate linked_nodes_are_given_back test_lost_space split_is_undone \
	's/ &&\s+header\[HEADER_GENERATION\] == generation//'
mutate root_read_that_is_kept test_leaf_cache root_is_kept_leaf \
	's/visit->fresh \|\|/true ||/'
mutate reader_completes_splits test_reader downlink.c:downlink_insert \
	's/if \(client->options.reader\)/if (false)/'
