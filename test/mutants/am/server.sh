# Mutants of am/server: its safeguards, removed one at a time (test/README). Sourced.

mutate round_trips_not_measured t/079_round_trips sherman_measure_round_trip \
	's/pg_atomic_write_u32\(&node->round_trip_us, \(uint32\) least\);/pg_atomic_write_u32(\&node->round_trip_us, 0);/'
mutate mapped_leaves_kept t/076_leaf_cache admit_node \
	's/sherman_node_is_mapped\(sherman_shared->node\[position\]\.address\)/false/'
mutate fence_not_looked_behind t/043_attach attach_over \
	's/\tif \(!sherman_recovery_check\(position, &status, &member, failure\)\)\n\t\treturn FABRIC_EXISTS;\n(\ttake_position)/$1/'
mutate unlisted_are_awaited t/070_forget stop_awaiting_unlisted \
	's/if \(other_entry\(-1, i\) < 0\)(\n\t\t\tsherman_node_not_awaited)/if (false)$1/'
mutate listed_memory_node_forgotten t/070_forget why_not \
	's/\t\t\treturn "It is in the list[^\n]*\n/\t\t\tcontinue;\n/'
mutate attached_memory_node_forgotten t/070_forget why_not \
	's/\t\treturn "It is attached\.";\n/\t\treturn NULL;\n/'
mutate forgotten_until_the_next_start t/070_forget forget.c:forget \
	's/\tif \(!sherman_local_change\(&local\)\)\n\t\treturn;\n//; s/\(void\) sherman_history_write\(&local\)/(void) local/'
mutate lock_words_of_an_owner t/076_leaf_cache tree_options \
	's/\.techniques = &tree_owner_techniques,/.techniques = \&tree_techniques,/'
mutate no_room_for_leaves t/076_leaf_cache tree_options \
	's/cache \/ 100 \* LEAVES_PERCENT : 0/0 : 0/'
mutate runs_not_ended t/018_collector next_utility_alone \
	's/\t\tsherman_runs_end\(\);\n//'
mutate new_families_not_mirrored sql/default_classes run_utility \
	's/\tsherman_mirror_changed\(statement->utilityStmt\);\n//'
mutate checkpoint_not_waited_for t/030_epochs run_utility \
	's/IsA\(statement->utilityStmt, CheckPointStmt\)/false/'
mutate missing_class_unsaid t/080_messages run_utility \
	's/\tsherman_require_classes\(statement->utilityStmt\);\n//'
mutate not_added_before_commands sql/insert_batches utility \
	's/\tsherman_add_waiting\(\);\n//'
mutate not_added_behind_commands sql/insert_batches utility \
	's/\tsherman_statement_end\(\);\n//'
mutate foreign_keys_unexplained t/080_messages utility \
	's/\t\tsherman_explain_error\(statement->utilityStmt\);\n//'
mutate left_file_says_nothing t/042_moved object_access \
	's/sub == 0 && moving && /sub == 1 \&\& moving \&\& /'
mutate ends_not_looked_at sql/planner_extremes sherman_install_hooks \
	's/\tsherman_extremes_install\(\);\n//'
mutate taken_back_rows_wait specs/insert-batches is_speculating \
	's/return state != NULL && IsA/return false \&\& IsA/'
mutate unique_entries_of_updates_wait sql/unique_batches statement_kind \
	's/query->operation == CMD_INSERT && query/query->operation != CMD_SELECT \&\& query/'
mutate unique_entries_wait_beside_with sql/unique_batches statement_kind \
	's/query->operation == CMD_INSERT && query->estate->es_auxmodifytables == NIL/query->operation == CMD_INSERT/'
mutate not_added_before_parallel_plans sql/insert_batches statements.c:run \
	's/if \(query->plannedstmt->parallelModeNeeded\)/if (false)/'
mutate unique_entries_go_behind_triggers sql/unique_batches statements.c:run \
	's/\t\tsherman_statement_rows_added\(\);\n//'
mutate unique_entries_wait_while_rows_change sql/unique_batches statements.c:run \
	's/\t\tsherman_add_before_changes\(query->plannedstmt->rtable\);/\t\t;/'
mutate not_added_at_the_end_of_statements sql/insert_batches statements.c:finish \
	's/\tsherman_statement_end\(\);\n//'
mutate standby_has_a_memory_node t/006_standby sherman_register_workers \
	's/worker.bgw_start_time = BgWorkerStart_RecoveryFinished;/worker.bgw_start_time = BgWorkerStart_ConsistentState;/'
mutate upgrade_has_a_memory_node t/010_upgrade sherman_register_workers \
	's/if \(!process_shared_preload_libraries_in_progress \|\| IsBinaryUpgrade\)/if (!process_shared_preload_libraries_in_progress)/'
mutate postmaster_believed_alive t/049_postmaster_gone node_should_stop \
	's/!sherman_postmaster_is_gone\(\)\)\n\t\treturn false;/PostmasterIsAlive())\n\t\treturn false;/'
mutate why_it_does_not_serve_is_forgotten t/073_held node_exit \
	's/if \(!node_failed\)\n/if (true)\n/'
mutate snapshot_not_wanted t/028_snapshot node_save \
	's/if \(sherman_embedded_snapshot\)/if (true)/'
mutate memory_node_beside_what_stays t/073_held sherman_node_main \
	's/if \(sherman_shared->node_held\)/if (false)/'
mutate workers_tell_nothing t/082_explain sherman_measure_tell \
	's/if \(!IsParallelWorker\(\) \|\| /if (IsParallelWorker() || /'
mutate outer_statement_goes_with_an_inner_one t/082_explain statement_gone \
	's/\*place = gone->outer;/*place = NULL;/'
mutate mapped_nodes_are_a_network t/082_explain explain.c:is_wanted \
	's/ &&\s+sherman_round_trip_us\(\) > 0//'
mutate fenced_attaches_at_once t/096_takeover_busy attach.c:look_after \
	's/return asked != TREE_FENCED;/(void) asked;\n\treturn true;/'
