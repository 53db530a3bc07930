# Safeguards of trees on several memory nodes. Sourced by test/mutations.

mutate closed_node_used test_nodes node_is_open \
	's/return \(__atomic_load_n\(&shared->closed, __ATOMIC_RELAXED\) & 1u << memory_node\) == 0;/return shared != NULL || memory_node != 0;/'
mutate record_does_not_name_member test_nodes directory_join \
	's/return directory_call\(client, home, DIRECTORY_UPDATE, &record, sizeof\(record\), NULL, 0\);/return TREE_OK;/'
mutate another_member_taken test_nodes call_update \
	's/if \(record\.record\.members\[i\] != 0 && record\.record\.members\[i\] != request->members\[i\]\)/if (false)/'
mutate share_without_home test_nodes share_make \
	's/record->record\.members\[request->home\] = request->home_member;//'
mutate shares_left_behind test_nodes tree_drop \
	's/\(void\) drop_at\(client, i, tree\);/;/'
mutate left_lock_stays test_nodes tree_node_open \
	's/lock_node_fenced\(client, node\);//'
mutate all_on_one_node test_nodes memory_node_choose \
	's/\? least\s+: memory_node;/? memory_node : memory_node;/s'
mutate closed_of_the_low_nodes test_many_nodes node_is_open \
	's/& 1u << memory_node\) == 0;/\& 1u << memory_node % 8) == 0;/'
mutate trouble_of_the_low_nodes test_many_nodes 'access_settle access_doubt place_is_ready' \
	's/client->trouble \|= 1u << memory_node;/client->trouble |= 1u << memory_node % 8;/'
mutate copy_of_the_low_nodes test_many_nodes tree_record_replica \
	's/>> TREE_RECORD_REPLICA_SHIFT & TREE_RECORD_REPLICA_MASK;/>> TREE_RECORD_REPLICA_SHIFT \& 0xfu;/'
mutate lock_recorded_at_a_closed_node test_nodes lock_handle_begin \
	's/if \(!elsewhere && node_is_open\(client->shared, lock->place\)\)/if (!elsewhere)/'
mutate entry_kept_at_a_closed_node test_nodes lock_handle_begin \
	's/(\tresume_interrupts\(client\);\n)\tentry_release\(client, table_entry\(table, lock->place, lock->index\)\);\n(\treturn elsewhere)/$1$2/'
