# Safeguards of calls, steps, counters and lock words, on the client's side. Sourced by test/mutations.

# ---- calls
mutate answer_may_be_longer test_directory directory_call \
	's/if \(got != reply_bytes\)/if (got < reply_bytes)/'
mutate answer_may_be_shorter test_directory directory_call \
	's/if \(got != reply_bytes\)/if (got > reply_bytes)/'
mutate lost_call_is_in_no_doubt test_directory directory_call \
	's/\t\t\t\tclient->doubt \|= 1ull << memory_node;\n//'
mutate doubt_not_settled_before_a_call test_directory directory_call \
	's/if \(client->doubt & 1ull << memory_node\)/if (false)/'
mutate repeated_call_not_stopped test_directory directory_call \
	's/if \(attempt > 0 && client_should_stop\(client\)\)/if (false)/'
mutate full_quota_is_full_memory test_directory directory_call \
	's/client->full_by = TREE_FULL_QUOTA;/client->full_by = TREE_FULL_MEMORY;/'
mutate full_memory_is_full_quota test_directory directory_call \
	's/client->full_by = TREE_FULL_MEMORY;/client->full_by = TREE_FULL_QUOTA;/'
mutate full_host_is_full_memory test_directory directory_call \
	's/client->full_by = TREE_FULL_HOST;/client->full_by = TREE_FULL_MEMORY;/'
mutate too_many_trees_is_full_memory test_directory directory_call \
	's/client->full_by = TREE_FULL_TREES;/client->full_by = TREE_FULL_MEMORY;/'

# ---- calls about copies
mutate list_of_copies_stands_still test_directory directory_replicas \
	's/replicas->position <= \*position/replicas->position < *position/'
mutate list_of_copies_is_too_long test_directory directory_replicas \
	's/replicas->count > DIRECTORY_REPLICAS_MAX \|\|/replicas->count > DIRECTORY_REPLICAS_MAX + 1 ||/'
mutate list_of_copies_begins_anew test_replicas directory_replicas \
	's/\*position = replicas->position;/(void) position;/'
mutate copy_of_the_root_elsewhere test_replicas directory_replica_begin \
	's/copy\.copy \+ \(offset - copy\.offset\)/copy.copy/'
mutate record_of_no_memory_node test_directory tree_record_update_at \
	's/node >= client->options\.nodes/node > client->options.nodes/'
mutate record_of_no_tree test_directory tree_record_update_at \
	's/record->tree == 0 \|\| //'

# ---- steps
mutate chain_ends_without_a_step test_directory crash_point.c:crash_point_execute \
	's/(status = fabric_execute\(endpoint, ops, count\);\n)\tif \(client->options\.environment\.crash_point != NULL\)\n\t\ttell\(client, name, false\);\n/$1/'
mutate chain_begins_behind_its_step test_directory crash_point.c:crash_point_execute \
	's/\tname_chain\(ops, count, name\);\n\ttell\(client, name, true\);\n(\tstatus = fabric_execute\(endpoint, ops, count\);\n)/\tname_chain(ops, count, name);\n$1\ttell(client, name, true);\n/'
mutate call_without_steps test_directory crash_point.c:crash_point_call \
	's/tell\(client, method_names\[method\], true\);/(void) method_names;/'
mutate call_ends_without_a_step test_directory crash_point.c:crash_point_call \
	's/tell\(client, method_names\[method\], false\);/(void) method_names;/'
mutate name_of_a_chain_beyond_its_room test_directory name_chain \
	's/i < count && used < CRASH_POINT_NAME_BYTES/i < count/'
mutate name_of_a_chain_is_its_first test_directory name_chain \
	's/i == 0 \? "" : " "/" "/'
mutate posted_chain_without_a_step test_directory crash_point.c:step_post \
	's/(FabricOp \*ops, int count, uint64_t \*ticket\)\n\{\n\tchar name\[CRASH_POINT_NAME_BYTES\];\n\n\tif \()client->options/$1false \&\& client->options/'
mutate awaited_chain_without_a_step test_directory crash_point.c:step_wait \
	's/(fabric_wait\(endpoint, ticket\);\n\tchar name\[CRASH_POINT_NAME_BYTES\];\n\n\tif \()client->options/$1false \&\& client->options/'

# ---- counters
mutate counted_twice test_tree tree_count_flush \
	's/\tmemset\(&tree->pending, 0, sizeof\(tree->pending\)\);\n//'
mutate reset_counts_on test_tree tree_counters \
	's/ - reset \+ mine/ + mine/'
mutate reset_without_its_time test_tree tree_counters_reset \
	's/__atomic_store_n\(&state->counters_reset, now, /__atomic_store_n(\&state->counters_reset, 0, /'
mutate own_counts_not_seen test_tree tree_counters \
	's/ \+ mine\[i\];/;/'
mutate removals_not_counted test_estimate tree_count_flush \
	's/ - \(int64_t\) tree->pending\.dead_removals//'
mutate splits_not_counted test_estimate tree_count_flush \
	's/\(int64_t\) tree->pending\.leaf_splits/0/'
mutate root_splits_not_counted test_estimate tree_count_flush \
	's/tree->pending\.inner_splits \+ tree->pending\.root_splits/tree->pending.inner_splits/'

# ---- spin words, lock words
mutate spin_word_not_given_back test_lock spin_unlock \
	's/__atomic_store_n\(spin, 0, __ATOMIC_RELEASE\);//'
mutate all_lock_words_used test_lock lock_word_of \
	's/words = table->options\.lock_words;/(void) table;/'
mutate held_word_is_free test_lock word_is_remote \
	's/return word >> LOCK_INSTANCE_SHIFT != 0;/return word != 0 \&\& word >> LOCK_INSTANCE_SHIFT == 0;/'

# ---- techniques
mutate entries_not_written_alone test_budget 'tree_techniques tree_owner_techniques' \
	's/\.entry_writes = true/.entry_writes = false/'
mutate unlock_not_combined test_budget 'tree_techniques tree_owner_techniques' \
	's/\.combine_unlock = true/.combine_unlock = false/'
mutate lock_not_combined test_budget 'tree_techniques tree_owner_techniques' \
	's/\.combine_lock = true/.combine_lock = false/'
mutate no_hierarchy test_lock 'tree_techniques tree_owner_techniques' \
	's/\.hierarchy = true/.hierarchy = false/'
mutate one_handover_more test_lock 'tree_techniques tree_owner_techniques' \
	's/\.handovers = HANDOVER_MAX,/.handovers = HANDOVER_MAX + 1,/'
mutate choice_of_techniques_ignored test_techniques shared_techniques \
	's/options->techniques != NULL \? options->techniques :/options->techniques == NULL ? NULL :/'

# ---- a batch begins
mutate other_row_of_the_key_returned_before test_scan batch_same_entry \
	's/\(\(a\[0\] \^ b\[0\]\) & CELL_TID_MASK\) == 0 && //'
mutate equal_entries_passed_over test_scan batch_is_passed \
	's/return order < 0 \|\| \(order == 0 && batch_same_entry\(g, cell, scan->last\)\);/return order <= 0;/'
mutate backward_scan_returns_all_before test_scan batch_is_passed \
	's/order = -order;//'
mutate doubt_of_a_batch_not_told test_unverified batch_open \
	's/scan->batch\.unverified = leaf_is_unverified\(.*?\);/scan->batch.unverified = false;/'
mutate void_marks_of_a_batch_not_told "test_unverified test_inside" batch_open \
	's/scan->batch\.marks_void = leaf_marks_void\(.*?\);/scan->batch.marks_void = false;/'
