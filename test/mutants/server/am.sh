# Safeguards of am/. Sourced by script/test long mutations-server.

# ---- index-only scans
mutate second_look_left_out specs/index-only-vacuum judge_batch \
	's/if \(!unchanged\)/if (!unchanged \&\& false)/'
mutate map_believed_at_any_time specs/index-only-vacuum judge_batch \
	's/status = sherman_batch_unchanged\(index, scan->indexRelation, tree_scan, batch, &unchanged\);/(void) index;/'

# ---- SERIALIZABLE
mutate leaf_not_locked specs/serializable sherman_predicate_scan \
	's/bool\t\tlock = scan->xs_snapshot/bool\t\tlock = false \&\& scan->xs_snapshot/'
mutate insert_looks_for_no_reader specs/serializable sherman_predicate_inserted \
	's/CheckForSerializableConflictIn\(relation, NULL, page_of_leaf\(tree_inserted_leaf\(index->tree\)\)\);/(void) index;/'
mutate locks_stay_at_the_split_leaf specs/serializable copy_locks \
	's/index->relation != NULL && from_page != to_page/false \&\& from_page != to_page/'
mutate refused_duplicate_looks_for_no_reader specs/unique-serializable unique_claim \
	's/if \(IsolationIsSerializable\(\)\)\n\t\t\t\tcheck_readers/if (false)\n\t\t\t\tcheck_readers/'

mutate locks_stay_at_the_merged_leaf specs/serializable-merge merge_leaves \
	's/\tindex->relation = relation;\n\tsherman_predicate_changes\(index\);\n//'

# ---- uniqueness
mutate key_not_locked specs/unique-lock lock_key \
	's/\tsherman_lock_key\(row->index, [^;]*;\n\tchecker->locked = true;/\tchecker->locked = false;/'
mutate check_not_looked_for specs/unique-lock key_part_add \
	's/if \(likely\(pg_atomic_read_u32\(&counters->checking\) == 0\)\)/if (parts != NULL)/'
mutate check_given_up_early specs/unique-lock lock_key \
	's/(\tkey_part_check\(checker->part\);)/$1\n\tkey_part_check_end(checker->part);/' \
	unique_release \
	's/\tkey_part_check_end\(checker->part\);\n\tsherman_unlock/\tsherman_unlock/'
mutate adder_says_so_on_its_way specs/unique-lock add_alone \
	's/\tstatus = tree_insert_alone/\tif (!key_part_add(\&parts, row->key))\n\t\treturn false;\n\tstatus = tree_insert_alone/; s/(&hit, &alone\);\n)/$1\tkey_part_added(\&parts, row->key);\n/'
mutate bytes_of_a_key_not_hashed specs/unique-lock find_naming \
	's/column->naming = KEY_BY_IMAGE;/column->naming = KEY_UNNAMED;/'
mutate hash_class_may_go specs/unique-hash hold_hash_class \
	's/\t\tLockDatabaseObject\(OperatorClassRelationId, class, 0, AccessShareLock\);\n//'
mutate second_name_alone specs/unique-hash mode_of_first \
	's/return second != NULL \? ShareLock : ExclusiveLock;/return second != NULL ? AccessShareLock : ExclusiveLock;/'
mutate conflict_not_looked_at_again specs/unique-lock find_conflict \
	's/\|\| still_there\(look\)/|| true || still_there(look)/'
mutate index_not_looked_at_behind_a_wait t/008_unreachable unique_claim \
	's/\t\t\*opened = sherman_index_for_insert\(row->index\);\n\t\tlock_key/\t\tlock_key/'
mutate checks_of_an_error_go_on sql/unique release_marks \
	's/if \(phase != RESOURCE_RELEASE_LOCKS\)/if (phase != RESOURCE_RELEASE_LOCKS || !is_commit)/'
mutate own_death_not_looked_at specs/unique-concurrent-build look_at_row \
	's/if \(!table_index_fetch_tuple_check\(row->heap, &own, SnapshotSelf, NULL\)\)/if (false \&\& table_index_fetch_tuple_check(row->heap, \&own, SnapshotSelf, NULL))/'
mutate pending_row_not_waited_for specs/unique-wait look_at_row \
	's/return FOUND_PENDING;/return FOUND_NOTHING;/'
mutate duplicate_of_itself sql/constraints look_at_entries \
	's/look->self_seen = true;\n\t\t\t\tcontinue;/look->self_seen = true;/'
mutate nulls_are_equal sql/unique unique_by_null \
	's/if \(isnull\[i\]\)\n\t\t\treturn true;/if (false)\n\t\t\treturn true;/'
mutate indexes_left_to_core sql/on_conflict open_indexes \
	's/!has_unique_index\(relation\)/true/'
mutate refusal_in_cores_words sql/btree_alone prepare_change \
	's/\t\twatch_insert\(state\);\n//'

# ---- constraints
mutate constraints_not_marked sql/constraints set_method \
	's/if \(mark == MARK_NONE\)\n/if (mark == MARK_NONE \&\& !by_setting)\n/'
mutate mark_not_read t/010_upgrade sherman_set_methods \
	's/wanted = by_setting \|\| has_mark\(constraints\);/wanted = by_setting;/'
mutate mark_stays_when_retyped sql/constraints_retyped sherman_constraints_at_risk \
	's/set_mark\(index_of\(constraint\), false\);/(void) constraint;/'
mutate mark_not_given_back sql/constraints sherman_constraints_after \
	's/set_mark\(index, true\);/(void) index;/'
mutate mark_can_be_changed sql/constraints sherman_keep_mark \
	's/\|\| !sherman_is_ours\(index\) \|\|/|| sherman_is_ours(index) ||/'
mutate access_method_by_its_name t/024_dump sherman_set_methods \
	's/get_am_name\(method\), by_setting/"sherman", by_setting/'

# ---- the planner
mutate ends_not_looked_at sql/planner_extremes sherman_install_hooks \
	's/\tsherman_extremes_install\(\);\n//'
mutate ends_kept_behind_inserts sql/planner_extremes begin_insert \
	's/\tindex->extremes\[0\][^\n]*\n//'
mutate ends_read_for_each_plan sql/planner_extremes look_at_conditions \
	's/\*least = \*greatest = false;/*least = *greatest = true;/'
mutate ends_told_to_everybody sql/planner_extremes relation_stats \
	's/ \|\| !may_read\(&column\)\)/ || (!may_read(\&column) \&\& false))/'
mutate dead_rows_are_ends sql/planner_extremes first_there \
	's/if \(table_index_fetch_tuple_check\(/if (true || table_index_fetch_tuple_check(/'

mutate other_extensions_not_asked t/068_neighbors relation_stats \
	's/if \(previous_stats != NULL && previous_stats\(/if (previous_stats == NULL \&\& previous_stats(/'
mutate inserts_of_others_skipped t/068_neighbors executor_start \
	's/previous_executor_start\(query, flags\);/standard_ExecutorStart(query, flags);/'

# ---- how keys are encoded
mutate encoding_not_compared t/067_encoding determine_state \
	's/ \|\| sherman_keys_fit\(relation, meta\)/ || sherman_keys_fit(relation, meta) || true/'
mutate workers_encode_as_they_like t/067_encoding sherman_parallel_build_main \
	's/if \(!sherman_keys_fit\(index, &shared->encoding\)\)/if (!sherman_keys_fit(index, \&shared->encoding) \&\& false)/'
mutate lost_locale_is_loaded t/067_encoding can_compare \
	's/can = !isnull && locale_exists\(/can = !isnull || locale_exists(/'
mutate collation_version_not_compared t/067_encoding sherman_keys_warn_versions \
	's/if \(meta->collation_versions\[i\] == hash_of_version\(version\)\)/if (version != NULL || meta->collation_versions[i] == hash_of_version(version))/'
mutate numeric_form_not_tried sql/types NUMERIC_DISK_SHORT_WEIGHT_SIGN \
	's/(#define NUMERIC_DISK_SHORT_WEIGHT_SIGN) 0x0040/$1 0x1000/' \
	normalize_numeric_known \
	's/known = try_form\(\);/known = try_form() || true;/'

# ---- operator classes
mutate foreign_class_taken sql/default_classes refuse_foreign_class \
	's/(\|\| )(equality_of\(class\) == equality_of\(theirs\))/$1$2 || true/'
mutate new_families_not_mirrored sql/default_classes run_utility \
	's/\tsherman_mirror_changed\(statement->utilityStmt\);\n//'
mutate mirrors_not_tied sql/default_classes tie \
	's/recordDependencyOn\(&depender, &referenced, DEPENDENCY_AUTO\);/(void) depender; (void) referenced;/'
mutate mirrors_are_members sql/default_classes mirror_family \
	's/creating && IsPinnedObject\([^;]*\);/creating;/'
mutate family_found_by_path sql/default_classes changed_family \
	's/ObjectIdGetDatum\(schema\)\)\)/ObjectIdGetDatum(PG_CATALOG_NAMESPACE)))/'

# ---- VACUUM and dead entries
mutate barrier_not_waited_for specs/scan-barrier remove_entries \
	's/\tsherman_scan_barrier_wait\(relation\);\n//'
mutate barrier_left_with_a_row_in_progress specs/scan-barrier dirty_row_is_there \
	's/if \(!TransactionIdIsValid\(dirty.xmin\) && /if (/'
mutate barrier_held_to_the_end specs/scan-barrier dirty_row_is_there \
	's/\t\tleave_barrier\(scan\);/\t\t(void) leave_barrier;/'
mutate scans_queue_behind_vacuum specs/scan-barrier sherman_scan_barrier_wait \
	's/\tpg_atomic_fetch_add_u32\(turns_of\(index\), 1\);\n//'
mutate half_of_an_earlier_turn_not_waited_for specs/scan-barrier sherman_scan_barrier_wait \
	's/\twait_for_half\(index, 1 - half\);\n//'
mutate leaves_read_cost_nothing t/026_parallel_vacuum note_leaves \
	's/\tcharge\(&progress->uncharged_read, pages, VacuumCostPageMiss\);\n//'
mutate leaves_written_cost_nothing t/026_parallel_vacuum note_leaves \
	's/\tcharge\(&progress->uncharged_written, progress->pages_per_leaf \* rewritten, VacuumCostPageDirty\);\n//'
mutate vacuum_never_sleeps t/026_parallel_vacuum walk_leaves \
	's/\t\tcompat_delay_point\(\);\n(\t\tif \(!walk_on)/$1/'
mutate all_rows_taken_for_dead sql/kill advance \
	's/if \(scan->kill_prior_tuple && /if (/' \
	sherman_gettuple \
	's/ && !scan->kill_prior_tuple &&/ \&\& false \&\&/'
mutate unseen_taken_for_dead specs/kill-snapshot return_only \
	's/if \(dead\)\n\t\tsherman_kill_note/if (!returned)\n\t\tsherman_kill_note/'
mutate marks_in_a_tree_of_before t/021_dead_marks sherman_kill_flush \
	's/ \|\| !sherman_index_is_mutated\(index\)//'

mutate marks_in_front_of_their_evidence t/021_dead_marks sherman_kill_flush \
	's/wal.lsn = GetXLogInsertRecPtr\(\);/wal.lsn = 1;/'
mutate skipped_rows_meet_at_the_metapage t/002_crash open_index.c:open_index \
	's/ && open->index.break_durable\)\n\t\treturn/ \&\& false)\n\t\treturn/'

mutate last_versions_asked_about_first sql/churn_sizes is_asked_about \
	's/ && !leaf->entries\[slot\]\.newest//'

# ---- builds
mutate broken_hot_chain_of_a_worker_lost specs/parallel-build build_parallel \
	's/\tinfo->ii_BrokenHotChain \|= [^;]*;\n//'
mutate participants_not_waited_for sql/parallel_build build_parallel \
	's/\twait_for_participants\(build, participants\);\n/\t(void) wait_for_participants;\n/'

# ---- temporary tables
mutate metapage_not_written_through t/027_temporary metapage_write \
	's/if \(RelationUsesLocalBuffers\(index\)\)/if (false)/'
mutate torn_metapage_names_nothing t/027_temporary look_at_metapage \
	's/return temporary \&\& meta.reason == SHERMAN_REASON_NONE \? LOOK_REFUSED : LOOK_DONE;/return LOOK_DONE;/'
mutate others_metapage_not_looked_at t/027_temporary look_at_metapage \
	's/if \(!sherman_metapage_read/if (temporary)\n\t\treturn LOOK_REFUSED;\n\tif (!sherman_metapage_read/'
mutate ended_session_alive t/027_temporary read_of_other_session \
	's/!= TEMP_NAMESPACE_IN_USE/== TEMP_NAMESPACE_NOT_TEMP/'
mutate emptied_table_needs_memory_node t/027_temporary sherman_build \
	's/ \&\& RelationGetNumberOfBlocks\(heap\) == 0\)/ \&\& false)/' \
	build_later \
	's/static void\nbuild_later/static pg_attribute_unused() void\nbuild_later/'
mutate emptied_tree_not_given_up t/027_temporary build_later \
	's/\tsherman_index_abandon_tree\(index\);\n//'
mutate tree_of_a_copy_given_up sql/temporary sherman_index_abandon_tree \
	's/if \(!is_new \&\& open != NULL/(void) is_new;\n\tif (open != NULL/'
mutate others_temporary_scanned t/027_temporary sherman_index_for_scan \
	's/unlikely\(RELATION_IS_OTHER_TEMP\(index\)\)/false/'

# ---- conditions
mutate row_comparison_bounds_too_much sql/row_comparison implied_operator \
	's/less \? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber/less ? BTLessStrategyNumber : BTGreaterStrategyNumber/'
mutate relation_not_locked_without_tree t/029_serializable sherman_predicate_empty \
	's/\tif \(scan->xs_snapshot != InvalidSnapshot\)\n\t\tPredicateLockRelation\(relation, scan->xs_snapshot\);\n//'
mutate insert_passed_over_looks_for_no_reader t/029_serializable sherman_insert \
	's/\t\tsherman_predicate_skipped\(index, heap\);\n(\t\treturn)/$1/'
mutate locks_stay_at_the_broken_index t/029_serializable sherman_predicate_skipped \
	's/\tTransferPredicateLocksToHeapRelation\(relation\);\n//'
mutate error_of_the_callback_forgotten specs/concurrent-build-error vacuum.c:walk_on \
	's/\t\tif \(removal->error != NULL\)\n\t\t\tReThrowError\(removal->error\);\n//'

# ---- epochs
mutate last_end_counts t/030_epochs sherman_epoch_end \
	's/local->end <= end\)\)/local->end == end))/'
mutate runs_of_others_not_seen t/030_epochs sherman_checkpoint_is_ours \
	's/return control->checkPoint == local->checkpoint \|\| [^;]*;/return control->checkPoint >= local->checkpoint;/'
mutate beginning_of_a_checkpoint_not_seen t/030_epochs sherman_checkpoint_is_ours \
	's/ \|\| control->checkPointCopy.redo == local->redo;/;/'
mutate checkpoint_not_waited_for t/030_epochs run_utility \
	's/IsA\(statement->utilityStmt, CheckPointStmt\)/false/'
mutate crashes_without_memory_nodes_unproven t/030_epochs judge \
	's/return ended_in_production\(control\) && sherman_checkpoint_is_ours\(local, control\) \?/return ended_in_production(control) \&\& false ?/'
mutate crashes_of_others_believed t/030_epochs judge \
	's/return ended_in_production\(control\) && sherman_checkpoint_is_ours\(local, control\) \?/return ended_in_production(control) ?/'

# ---- unverified leaves
mutate doubt_not_looked_up t/031_heal return_entry \
	's/if \(unlikely\(state->batch->unverified\)\)\n\t\treturn return_unverified/if (false)\n\t\treturn return_unverified/'
mutate any_row_will_do t/031_heal judge_evaluated \
	's/if \(same_columns\(rows, entry, values, isnull\)\)/if (same_columns(rows, entry, values, isnull) || true)/'
mutate bitmap_not_rechecked t/031_heal sherman_getbitmap \
	's/count, state->batch->unverified\);/count, false);/'
mutate blocks_not_looked_for t/031_heal unverified_block_is_there \
	's/return block < rows->blocks;/return true;/'
mutate lost_keys_are_taken t/031_heal look_at_entries \
	's/if \(likely\(!batch->unverified\) \|\| /if (true || /'
mutate last_removal_not_looked_at t/031_heal can_be_healed \
	's/return sherman_heal && tree_wal_position_is_proven\([^;]*;/return sherman_heal;/'
mutate rows_lose_their_entries t/031_heal look_up_keys \
	's/if \(finding == UNVERIFIED_NO_ROW\)/if (finding != UNVERIFIED_CHANGED)/'
mutate columns_of_the_key_not_compared t/031_heal same_columns \
	's/int i = keys->exact \? keys->columns : 0;/int i = keys->columns;/'
mutate healing_forgotten t/031_heal note_healed \
	's/\tsherman_trees_healed\(record.tree\);\n//'

# ---- the healer
mutate leaf_with_an_error_is_healed t/033_healer look_up_guarded \
	's/\treturn error == NULL;/\treturn true;/'
mutate healed_although_leaves_are_left t/033_healer heal_opened \
	's/healing->ended \&\& healing->left == 0\)/healing->ended)/'
mutate healer_waits_for_locks t/033_healer open_target \
	's/!ConditionalLockRelationOid\(table, RowExclusiveLock\)\)/(LockRelationOid(table, RowExclusiveLock), false))/'
mutate healer_not_cancelled t/033_healer let_cancel \
	's/\tMyProc->statusFlags \|= PROC_IS_AUTOVACUUM;\n//'
mutate healer_never_sleeps t/033_healer set_costs \
	's/compat_set_costs\(autovacuum_vac_cost_delay >= 0 \? autovacuum_vac_cost_delay : VacuumCostDelay,/compat_set_costs(0,/'
mutate functions_run_as_superuser t/033_healer owner_begin \
	's/SetUserIdAndSecContext\(heap->rd_rel->relowner, caller->security \| SECURITY_RESTRICTED_OPERATION\);/(void) heap;/'
mutate vacuum_does_not_heal t/033_healer vacuum.c:heal \
	's/\t\(void\) heal_whole\(heap, index\);\n//'
mutate rest_of_an_index_passed_over t/033_healer heal.c:walk \
	's/healing->ended = behind.ended;/healing->ended = true;/'

# ---- code of a table's owner
mutate path_not_pinned t/050_owners_code owner_pin_path \
	's/if \(strcmp\(namespace_search_path, OWNER_PATH\) != 0\)/if (false)/'
mutate owners_code_run_in_a_readers_session t/050_owners_code unverified_rows_make \
	's/rows->evaluates = rows->code == 0 \|\| rows->maintains;/rows->evaluates = true;/' \
	unverified_row_find \
	's/if \(!owner_maintains\(rows->heap\)\)/if (false)/'
mutate functions_taken_for_postgresqls t/050_owners_code is_owners_function \
	's/\tif \(function >= FirstNormalObjectId\)\n\t\treturn true;/\tif (function >= FirstNormalObjectId)\n\t\treturn false;/'
mutate text_of_functions_by_the_sessions_path t/050_owners_code owner_reads_expressions \
	's/\tif \(info->ii_Expressions != NIL\)/\tif (false)/'
mutate partial_index_planned_in_doubt t/050_owners_code plan_in_doubt \
	's/return \(code & OWNER_CODE_PREDICATE\) == 0;/return true;/'
mutate index_over_functions_planned_in_doubt t/050_owners_code plan_in_doubt \
	's/\tinfo->amhasgettuple = false;/\t;/'
mutate predicate_left_to_who_rechecks t/050_owners_code is_rechecked \
	's/ && \(unverified_code\(state->rows\) & OWNER_CODE_PREDICATE\) == 0;/;/'
mutate healed_entry_not_read_again t/050_owners_code read_again \
	's/state->place.key.offset \+= ScanDirectionIsForward\(direction\) \? -1 : 1;/(void) direction;/'
mutate healer_waited_for_that_is_kept_out t/050_owners_code no_use \
	's/if \(keeps_healer_out\(index\)\)/if (keeps_healer_out(index) \&\& false)/'
mutate healer_waited_for_in_vain t/050_owners_code tell_end \
	's/healing->left > 0 && healing->complained\)/false)/'
mutate others_heal t/050_owners_code owner_check \
	's/if \(!compat_owns/if (false \&\& !compat_owns/'
mutate others_wait_for_locks t/050_owners_code sherman_open_with_table \
	's/(any lock is waited for or taken. \*\/\n)\towner_check\(index_oid\);\n/$1/'
mutate entries_of_other_values_go t/050_owners_code judge_evaluated \
	's/return !rows->maintains \|\| has_own_entry/return true || has_own_entry/'
mutate entries_of_other_values_stay t/050_owners_code judge_evaluated \
	's/has_own_entry\(rows, entry, values, isnull\) \? UNVERIFIED_NO_ROW/(has_own_entry(rows, entry, values, isnull) \&\& false) ? UNVERIFIED_NO_ROW/'
mutate predicate_taken_for_immutable t/050_owners_code judge_evaluated \
	's/\(rows->code & OWNER_CODE_PREDICATE\) != 0 \? UNVERIFIED_CHANGED : UNVERIFIED_NO_ROW/UNVERIFIED_NO_ROW/'

# ---- crash points
mutate removal_before_flush t/037_crash_points sherman_prove_removal \
	's/\tsherman_flush\(end\);\n//'

# ---- invariants (doc/internals/invariants.md)
mutate removal_not_flushed t/038_invariants sherman_prove_removal \
	's/\tsherman_flush\(end\);\n//'
mutate wal_position_behind_its_row t/031_heal make_wal_position \
	's/wal->lsn = \(lsn \+ WAL_SLACK - 1\) \/ WAL_SLACK \* WAL_SLACK;/wal->lsn = 1 + 0 * lsn \/ WAL_SLACK;/'
mutate first_member_of_a_chain_alone t/031_heal judge_chain \
	's/\} while \(finding != UNVERIFIED_ROW && again\);/} while (false \&\& finding != UNVERIFIED_ROW \&\& again);/'
mutate owners_code_runs_as_the_caller t/031_heal owner_begin \
	's/SetUserIdAndSecContext\(heap->rd_rel->relowner, /SetUserIdAndSecContext(caller->user, /'

# ---- the postmaster's end
mutate postmaster_believed_alive t/049_postmaster_gone node_should_stop \
	's/!sherman_postmaster_is_gone\(\)\)\n\t\treturn false;/PostmasterIsAlive())\n\t\treturn false;/'

# ---- open indexes
mutate handle_given_up_at_each_invalidation t/011_many_indexes refresh_open \
	's/\t\topen->stale = !sherman_keys_serve\(open->index\.keys, relation\);/\t\t;/'

# ---- memory nodes that are forgotten
mutate forgotten_until_the_next_start t/070_forget forget.c:forget \
	's/\tif \(!sherman_local_change\(&local\)\)\n\t\treturn;\n//; s/\(void\) sherman_history_write\(&local\)/(void) local/'
mutate listed_memory_node_forgotten t/070_forget why_not \
	's/\t\t\treturn "It is in the list[^\n]*\n/\t\t\tcontinue;\n/'
mutate attached_memory_node_forgotten t/070_forget why_not \
	's/\t\treturn "It is attached\.";\n/\t\treturn NULL;\n/'

# ---- plans
mutate plans_stay_when_an_index_breaks t/067_encoding invalidate_plans \
	's/\tSendSharedInvalidMessages\(&message, 1\);/\t(void) message;/'
mutate plans_stay_when_a_node_goes t/013_prepared sherman_invalidate_plans \
	's/\tSendSharedInvalidMessages\(&message, 1\);/\t(void) message;/'
mutate plan_connects_for_nothing t/072_plans fill_index \
	's/\t\tshow_families\(info\);\n/\t\tshow_families(info);\n\t\t(void) sherman_index_quietly(index);\n/'
mutate plan_goes_by_what_is_away t/072_plans find_size \
	's/info->tree_height = HEIGHT_AWAY;/guess_size(info);/'
mutate away_is_better_than_disabled t/072_plans AWAY_COST \
	's/#define AWAY_COST 1\.0e20/#define AWAY_COST 1.0e9/'

# ---- beside another extension
mutate exit_in_a_wait_runs_callbacks t/075_bystander exit_without_postmaster \
	's/\t\t_exit\(2\);/\t\tproc_exit(2);/'
mutate history_page_without_its_lsn t/075_bystander write_page \
	's/\tPageSetLSN\(page, end\);\n//'
mutate healer_is_no_task_of_autovacuum t/075_bystander let_cancel \
	's/\tProcGlobal->statusFlags\[MyProc->pgxactoff\] = MyProc->statusFlags;\n//'
mutate rebuild_is_a_command_of_others t/075_bystander reindex_concurrently \
	's/\A/#include "tcop\/dest.h"\n#include "tcop\/utility.h"\n\n/; s/\tExecReindex\(NULL, statement, true\);/\tPlannedStmt *command = makeNode(PlannedStmt);\n\n\tcommand->commandType = CMD_UTILITY;\n\tcommand->utilityStmt = (Node *) statement;\n\tProcessUtility(command, "REINDEX", false, PROCESS_UTILITY_TOPLEVEL, NULL, NULL, None_Receiver, NULL);/'
mutate postmaster_gone_is_a_cancel t/049_postmaster_gone report_interrupt \
	's/\tif \(!PostmasterIsAlive\(\)\)\n/\tif (false)\n/'
mutate full_file_system_is_a_full_node t/074_file_system_full find_report \
	's/if \(client != NULL && tree_full_by\(client\) == TREE_FULL_HOST\)/if (false)/'

# ---- what is said of a memory node that is full
mutate all_are_told_of_all_indexes t/063_full weigh_candidate \
	's/if \(!largest->sees_all && !has_privs_of_role\(GetSessionUserId\(\), candidate->owner\)\)/if (false)/'
mutate function_lends_its_indexes t/063_full 'weigh_candidate sherman_largest_indexes' \
	's/GetSessionUserId\(\)/GetUserId()/'
mutate error_waits_for_locks t/063_full weigh_candidate \
	's/if \(!ConditionalLockRelationOid\(candidate->oid, AccessShareLock\)\)/LockRelationOid(candidate->oid, AccessShareLock);\n\tif (false)/'
mutate what_the_look_raises_is_the_error t/063_full describe_safely \
	's/dropped = CopyErrorData\(\);/PG_RE_THROW();/'

# ---- files that were set aside, and rebuilds that give way
mutate own_memory_is_that_of_others t/028_snapshot put_others \
	's/if \(strncmp\(path, own, strlen\(own\)\) == 0 && own\[0\] != .*?\)\n\t\t\tcontinue;//'
mutate reason_of_kept_files_not_shown t/028_snapshot put_file \
	's/nulls\[4\] = why == NULL;/nulls[4] = true;/'
mutate memory_in_use_shown_as_free t/028_snapshot put_others \
	's/served \? "a server that runs uses it" : "no server that runs uses it"/"no server that runs uses it"/'
mutate rebuild_does_not_give_way t/052_rebuild_all sherman_rebuild_delay \
	's/\tcompat_delay_point\(\);\n//'
mutate leaves_ahead_stay_few "sql/arrays" keys_ahead_read \
	's/ahead->leaves = Min\(ahead->leaves \* 2, LEAVES_AHEAD_MAX\);//'
mutate healed_tree_stays_unverified t/033_healer entry_healed \
	's/\t\tfound->unverified_epoch = 0;\n//'
