# Entries of one statement that wait (am/access/insert_batch.c). Sourced by script/test long mutations-server.

mutate not_added_before_checks sql/insert_batches sherman_index_for_scan \
	's/\tsherman_index_read_begins\(index\);\n\topened = /\topened = /'
mutate not_added_when_a_scan_goes_on sql/insert_batches sherman_index_recheck \
	's/\tsherman_index_read_begins\(relation\);\n//'
mutate not_added_before_parallel_plans sql/insert_batches executor_run \
	's/if \(query->plannedstmt->parallelModeNeeded\)/if (false)/'
mutate not_added_before_commands sql/insert_batches utility \
	's/\tsherman_add_waiting\(\);\n//'
mutate not_added_at_the_end_of_statements sql/insert_batches executor_finish \
	's/\tsherman_statement_end\(\);\n//'
mutate not_added_behind_commands sql/insert_batches utility \
	's/\tsherman_statement_end\(\);\n//'
mutate never_too_many sql/insert_batches insert_batch_keep \
	's/if \(unlikely\(batches\.bytes >= [^)]*\) work_mem \* 1024\)\)/if (work_mem < 0)/'
mutate not_dropped_with_the_transaction sql/insert_batches transaction_changed \
	's/drop_waiting\(InvalidSubTransactionId\);/(void) argument;/'
mutate not_dropped_with_the_subtransaction "sql/insert_batches specs/insert-batches" insert_batch.c:subtransaction_changed \
	's/drop_waiting\(mine\);/(void) mine;/'
mutate not_added_before_a_subtransaction_ends t/076_insert_batches insert_batch.c:subtransaction_changed \
	's/add_of_subtransaction\(mine\);/(void) add_of_subtransaction;/'
mutate not_added_before_commit t/025_logical transaction_changed \
	's/\t\tcase XACT_EVENT_PRE_COMMIT:\n//'
mutate not_added_before_prepare t/025_logical transaction_changed \
	's/\t\tcase XACT_EVENT_PRE_PREPARE:\n//'
mutate emptied_index_gets_what_waited t/025_logical insert_batch_forget \
	's/\t\trelease\(batch\);\n//'
mutate taken_back_rows_wait specs/insert-batches is_speculating \
	's/return state != NULL && IsA/return false \&\& IsA/'
mutate serializable_entries_wait specs/insert-batches insert_batch_allowed \
	's/ && !IsolationIsSerializable\(\) &&/ \&\&/'
mutate all_comparisons_wait sql/insert_batches sherman_keys_compare_alone \
	's/\tif \(keys->format\.lossless\)\n\t\treturn true;/\tif (keys != NULL)\n\t\treturn true;/'
mutate entries_wait_while_a_transaction_ends t/075_bystander insert_batch_allowed \
	's/ && !batches\.ending && / \&\& /'
