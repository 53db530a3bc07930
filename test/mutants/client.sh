# Safeguards of calls, steps, counters and lock words, on the client's side. Sourced by test/mutations.

# ---- calls
mutate answer_may_be_longer test_directory tree/client/directory_call.c \
	's/if \(got != reply_bytes\)/if (got < reply_bytes)/'
mutate answer_may_be_shorter test_directory tree/client/directory_call.c \
	's/if \(got != reply_bytes\)/if (got > reply_bytes)/'
mutate lost_call_is_in_no_doubt test_directory tree/client/directory_call.c \
	's/\t\t\t\tclient->doubt \|= 1ull << memory_node;\n//'
mutate doubt_not_settled_before_a_call test_directory tree/client/directory_call.c \
	's/if \(client->doubt & 1ull << memory_node\)/if (false)/'
mutate repeated_call_not_stopped test_directory tree/client/directory_call.c \
	's/if \(attempt > 0 && client_should_stop\(client\)\)/if (false)/'
mutate full_quota_is_full_memory test_directory tree/client/directory_call.c \
	's/client->full_by = TREE_FULL_QUOTA;/client->full_by = TREE_FULL_MEMORY;/'
mutate full_memory_is_full_quota test_directory tree/client/directory_call.c \
	's/client->full_by = TREE_FULL_MEMORY;/client->full_by = TREE_FULL_QUOTA;/'
mutate full_host_is_full_memory test_directory tree/client/directory_call.c \
	's/client->full_by = TREE_FULL_HOST;/client->full_by = TREE_FULL_MEMORY;/'
mutate too_many_trees_is_full_memory test_directory tree/client/directory_call.c \
	's/client->full_by = TREE_FULL_TREES;/client->full_by = TREE_FULL_MEMORY;/'

# ---- calls about copies
mutate list_of_copies_stands_still test_directory tree/client/directory_replicas.c \
	's/replicas->position <= \*position/replicas->position < *position/'
mutate list_of_copies_is_too_long test_directory tree/client/directory_replicas.c \
	's/replicas->count > DIRECTORY_REPLICAS_MAX \|\|/replicas->count > DIRECTORY_REPLICAS_MAX + 1 ||/'
mutate list_of_copies_begins_anew test_replicas tree/client/directory_replicas.c \
	's/\*position = replicas->position;/(void) position;/'
mutate copy_of_the_root_elsewhere test_replicas tree/client/directory_replicas.c \
	's/copy\.copy \+ \(offset - copy\.offset\)/copy.copy/'
mutate record_of_no_memory_node test_directory tree/client/directory_replicas.c \
	's/node >= client->options\.nodes/node > client->options.nodes/'
mutate record_of_no_tree test_directory tree/client/directory_replicas.c \
	's/record->tree == 0 \|\| //'

# ---- steps
mutate chain_ends_without_a_step test_directory tree/client/crash_point.c \
	's/(status = fabric_execute\(endpoint, ops, count\);\n)\tif \(client->options\.environment\.crash_point != NULL\)\n\t\ttell\(client, name, false\);\n/$1/'
mutate chain_begins_behind_its_step test_directory tree/client/crash_point.c \
	's/\tname_chain\(ops, count, name\);\n\ttell\(client, name, true\);\n(\tstatus = fabric_execute\(endpoint, ops, count\);\n)/\tname_chain(ops, count, name);\n$1\ttell(client, name, true);\n/'
mutate call_without_steps test_directory tree/client/crash_point.c \
	's/tell\(client, method_names\[method\], true\);/(void) method_names;/'
mutate call_ends_without_a_step test_directory tree/client/crash_point.c \
	's/tell\(client, method_names\[method\], false\);/(void) method_names;/'
mutate name_of_a_chain_beyond_its_room test_directory tree/client/crash_point.c \
	's/i < count && used < CRASH_POINT_NAME_BYTES/i < count/'
mutate name_of_a_chain_is_its_first test_directory tree/client/crash_point.c \
	's/i == 0 \? "" : " "/" "/'
mutate posted_chain_without_a_step test_directory tree/client/crash_point.c \
	's/(FabricOp \*ops, int count, uint64_t \*ticket\)\n\{\n\tchar name\[CRASH_POINT_NAME_BYTES\];\n\n\tif \()client->options/$1false \&\& client->options/'
mutate awaited_chain_without_a_step test_directory tree/client/crash_point.c \
	's/(fabric_wait\(endpoint, ticket\);\n\tchar name\[CRASH_POINT_NAME_BYTES\];\n\n\tif \()client->options/$1false \&\& client->options/'

# ---- counters
mutate counted_twice test_tree tree/shared/counters.c \
	's/\tmemset\(&tree->pending, 0, sizeof\(tree->pending\)\);\n//'
mutate reset_counts_on test_tree tree/shared/counters.c \
	's/ - reset \+ mine/ + mine/'
mutate reset_without_its_time test_tree tree/shared/counters.c \
	's/__atomic_store_n\(&state->counters_reset, now, /__atomic_store_n(\&state->counters_reset, 0, /'
mutate own_counts_not_seen test_tree tree/shared/counters.c \
	's/ \+ mine\[i\];/;/'
mutate removals_not_counted test_estimate tree/shared/counters.c \
	's/ - \(int64_t\) tree->pending\.dead_removals//'
mutate splits_not_counted test_estimate tree/shared/counters.c \
	's/\(int64_t\) tree->pending\.leaf_splits/0/'
mutate root_splits_not_counted test_estimate tree/shared/counters.c \
	's/tree->pending\.inner_splits \+ tree->pending\.root_splits/tree->pending.inner_splits/'

# ---- spin words, lock words
mutate spin_word_not_given_back test_lock tree/shared/state.h \
	's/__atomic_store_n\(spin, 0, __ATOMIC_RELEASE\);//'
mutate all_lock_words_used test_lock tree/lock/lock_word.c \
	's/words = table->options\.lock_words;/(void) table;/'
mutate held_word_is_free test_lock tree/lock/lock_handle.h \
	's/return word >> LOCK_INSTANCE_SHIFT != 0;/return word != 0 \&\& word >> LOCK_INSTANCE_SHIFT == 0;/'

# ---- techniques
mutate entries_not_written_alone test_budget tree/shared/techniques.c \
	's/\.entry_writes = true/.entry_writes = false/g'
mutate unlock_not_combined test_budget tree/shared/techniques.c \
	's/\.combine_unlock = true/.combine_unlock = false/g'
mutate lock_not_combined test_budget tree/shared/techniques.c \
	's/\.combine_lock = true/.combine_lock = false/g'
mutate no_hierarchy test_lock tree/shared/techniques.c \
	's/\.hierarchy = true/.hierarchy = false/g'
mutate one_handover_more test_lock tree/shared/techniques.c \
	's/\.handovers = HANDOVER_MAX,/.handovers = HANDOVER_MAX + 1,/g'
mutate choice_of_techniques_ignored test_techniques tree/shared/techniques.c \
	's/options->techniques != NULL \? options->techniques :/options->techniques == NULL ? NULL :/'

# ---- a batch begins
mutate other_row_of_the_key_returned_before test_scan tree/scan/batch_open.c \
	's/\(\(a\[0\] \^ b\[0\]\) & CELL_TID_MASK\) == 0 && //'
mutate equal_entries_passed_over test_scan tree/scan/batch_open.c \
	's/return order < 0 \|\| \(order == 0 && batch_same_entry\(g, cell, scan->last\)\);/return order <= 0;/'
mutate backward_scan_returns_all_before test_scan tree/scan/batch_open.c \
	's/order = -order;//'
mutate doubt_of_a_batch_not_told test_unverified tree/scan/batch_open.c \
	's/scan->batch\.unverified = leaf_is_unverified\(.*?\);/scan->batch.unverified = false;/'
mutate void_marks_of_a_batch_not_told "test_unverified test_inside" tree/scan/batch_open.c \
	's/scan->batch\.marks_void = leaf_marks_void\(.*?\);/scan->batch.marks_void = false;/'
