# Lookups that the memory node descends for: what makes its answer a READ's, and what it does not do for anybody. Sourced by
# test/mutations.

mutate offloaded_image_not_verified test_offload_answers answer_has_leaf \
	's/ &&\n\t\s+node_check\(g, answer->image, tree->tree, answer->pointer\) == NODE_GOOD//'
mutate offloaded_inner_node_for_a_leaf test_offload_answers answer_has_leaf \
	's/ &&\n\t\s+node_level\(answer->image\) == 0;/;/'
mutate offloaded_image_of_any_length test_offload_answers answer_has_leaf \
	's/got == DIRECTORY_DESCENDED_BYTES \+ g->leaf_bytes/true/'
mutate offloaded_place_nowhere test_offload_answers answer_has_place \
	's/pointer_address\(answer->pointer\) != POINTER_NONE &&//'
mutate offloaded_place_at_no_node test_offload_answers answer_has_place \
	's/pointer_memory_node\(answer->pointer\) < tree->client->options.nodes &&/true \&\&/'
mutate offloaded_fences_not_checked test_offload_answers descend_to_target \
	's/(status = target_compare\(scan, target, &path, leaf, &where\);)/{ $1 if (tree->client->offloads.calls > 0 \&\& steps == 0) where = 0; }/'
mutate offloaded_in_doubt test_offload_answers offload_descend \
	's/ \|\| \(client->doubt & 1ull << memory_node\) != 0//'
mutate lost_call_leaves_no_doubt test_offload_answers offload_descend \
	's/client->doubt \|= 1ull << memory_node;\n\t\tsettled = access_settle\(client, memory_node\);\n\t\treturn settled == TREE_OK \? TREE_NOT_FOUND : settled;/(void) settled;\n\t\treturn TREE_NOT_FOUND;/'
mutate offloaded_past_the_leaf_hook test_offload descend_to_target \
	's/ && scan->leaf_hook == NULL//'
mutate scans_offloaded test_offload descend_to_target \
	's/ &&\n\t\s+bounds_are_of_one_key\(.*?\)\)/)/'
mutate offloaded_by_default test_offload offload_shared_bytes \
	's/techniques->offload == TREE_OFFLOAD_NEVER \? 0 :/techniques == NULL ? 0 :/'
mutate copied_tree_offloaded test_offload offload_chosen \
	's/tree->replicas != NULL \|\| //'
mutate nothing_explored test_offload offload_chosen \
	's/client_random\(client\) % EXPLORE_ONE_IN == 0 \? !cheaper : cheaper/cheaper/'
mutate calls_in_vain_are_cheap test_offload call_took \
	's/ \+ call_limit\(costs, level\) \* left \/ \(level \+ 1\);/ + 0 * left;/'
mutate levels_do_not_count test_offload call_limit \
	's/return \(level \+ 1\) \* each/return (level > 0 ? 2 : 1) * each/'
mutate costs_outlive_their_incarnation test_offload offload_shared_reset \
	's/\tif \(shared->offloads != NULL\)\n\t\tmemset\(.*?\);//'

mutate descends_for_onlookers test_descend service_descend \
	's/\tif \(peer->incarnation == 0\)\n\t\treturn FABRIC_DENIED;\n//'
mutate descends_in_any_tree test_descend service_descend \
	's/\tif \(record == NULL\)\n\t\treturn FABRIC_NOT_FOUND;\n//'
mutate descends_into_foreign_memory test_descend service_descend.c:node_take \
	's/ && tables_owner\(&service->tables, offset\) == record &&/ \&\&/'
mutate descends_through_unbelieved_nodes test_descend service_descend.c:node_take \
	's/ && node_check\(g, node, record->record.tree, pointer\) == NODE_GOOD//'
mutate descends_through_any_level test_descend service_descend.c:node_take \
	's/node_level\(node\) == level && //'
mutate descends_beside_the_bound test_descend service_descend \
	's/ \|\| choice\.bound_below \|\| choice\.bound_above//'
mutate descent_of_no_format test_descend descent_read \
	's/!format_valid\(&format\) \|\|/false ||/'
mutate descent_of_a_long_bound test_descend descent_read \
	's/request->norm_length > request->norm_bytes/false/'
mutate descent_of_any_side test_descend descent_read \
	's/request->side < -1 \|\|\s+request->side > 1/false/'
mutate descent_from_any_level test_descend descent_read \
	's/request->level == 0 \|\|\s+request->level >= LEVELS_MAX/false/'
mutate descent_of_a_cut_bound test_descend descent_read \
	's/return whole \|\| !bound->key\.cut;/return whole || true;/'
mutate nodes_copied_while_they_are_written test_descend fabric_server_read \
	's/if \(stripe_try_read\(memory_stripe\(memory, offset\), (\(const uint64_t \*\) \(memory->nodes \+ offset\)),\s+buffer, bytes \/ 8\)\)/if (stripe_copy_out(buffer, $1, bytes \/ 8), true)/'
mutate nodes_copied_beyond_their_stripe test_descend fabric_server_read \
	's/\s+offset % FABRIC_STRIPE_BYTES \+ bytes > FABRIC_STRIPE_BYTES \|\|//'
mutate nodes_of_a_device_copied soft/test_descend=--verbs,soft0 fabric_server_read \
	's/server->verbs != NULL \|\| //'
mutate outlier_counts_whole test_offload average_add \
	's/now = OUTLIER_TIMES \* before;/;/'
