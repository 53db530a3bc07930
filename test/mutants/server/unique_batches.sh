# Entries of unique indexes that wait (am/access/insert_entry.c, insert_batch.c). Sourced by script/test long mutations-server.

mutate unique_entries_not_checked sql/unique_batches add_keys \
	's/if \(batch->kind == INSERT_UNIQUE\)\n\t\tinsert_unique_keys/if (false)\n\t\tinsert_unique_keys/'
mutate barred_entries_not_checked sql/unique_batches add_checked \
	's/\t\(void\) insert_checked\(&adding->checker, &row, opened\);/\t(void) row;\n\t(void) insert_entry(adding->index, opened, key, adding->heap, false);/'
mutate together_without_permit t/079_unique_batches add_together \
	's/keys, count, &wal, &permit, &done\)/keys, count, \&wal, permit.argument != NULL ? NULL : \&permit, \&done)/'
mutate unique_entries_go_behind_triggers sql/unique_batches executor_run \
	's/\t\tsherman_statement_rows_added\(\);\n//'
mutate unique_entries_go_behind_copys_triggers sql/unique_batches unique_may_wait \
	's/ && !has_triggers_behind_copy\(heap\)\)/ \&\& heap != NULL) || (heap == NULL \&\& has_triggers_behind_copy(heap))/'
mutate unique_entries_go_behind_triggers_of_partitioned_tables sql/unique_batches has_triggers_behind_copy \
	's/has = has \|\| has_triggers_behind\(above\);/(void) above;/'
mutate unique_entries_of_updates_wait sql/unique_batches statement_kind \
	's/query->operation == CMD_INSERT && query/query->operation != CMD_SELECT \&\& query/'
mutate unique_entries_wait_beside_with sql/unique_batches statement_kind \
	's/query->operation == CMD_INSERT && query->estate->es_auxmodifytables == NIL/query->operation == CMD_INSERT/'
mutate unique_entries_wait_while_rows_change sql/unique_batches executor_run \
	's/\t\tsherman_add_before_changes\(query->plannedstmt->rtable\);/\t\t;/'
mutate unique_entries_wait_for_partitions sql/unique_batches may_change \
	's/ \|\| entry->relkind == RELKIND_PARTITIONED_TABLE\)/)/'
mutate deferred_checks_wait sql/unique_batches entry_kind \
	's/if \(check_unique != UNIQUE_CHECK_NO && check_unique != UNIQUE_CHECK_YES\)/if (check_unique == UNIQUE_CHECK_EXISTING)/; s/if \(check_unique == UNIQUE_CHECK_YES && !unique_by_null/if (check_unique != UNIQUE_CHECK_NO \&\& !unique_by_null/'
mutate unique_entries_dropped_with_an_error sql/unique_batches add_waiting \
	's/\tPG_FINALLY\(\);\n\t\{\n\t\tbatches\.adding = adding;/\tPG_FINALLY();\n\t{\n\t\tempty(batch);\n\t\tbatches.adding = adding;/'
mutate unique_entries_go_as_any_user sql/unique_batches add_waiting \
	's/\t\tSetUserIdAndSecContext\(batch->user, batch->security\);\n//'
mutate keys_in_their_rows_order sql/unique_batches insert_unique_keys \
	's/\t\tqsort_arg\(keys, count, sizeof\(TreeKey\), compare_keys, opened->tree\);/\t\t(void) compare_keys;/'
mutate unique_entries_wait_while_healing t/079_unique_batches unique_may_wait \
	's/\tif \(sherman_is_healing\(&opened->meta\)\)\n\t\treturn false;\n//'
