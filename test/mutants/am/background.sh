# Mutants of am/background: its safeguards, removed one at a time (test/README). Sourced.

mutate runs_in_invalid_databases t/051_database_commands read_database \
	's/datconnlimit < -1;/datconnlimit < -2;/'
mutate given_up_half_stays t/040_replicas judge_trees \
	's/living != NULL && \(living->valid & half_of\(record\)\) != 0/living != NULL/'
mutate last_copy_taken_for_garbage t/040_replicas share_is_orphan \
	's/if \(tree_record_replica\(share, &copy\)\)\n\t\treturn false;/(void) copy;/'
mutate runs_ended_by_who_may_not_create t/051_database_commands needed_by_create \
	's/if \(!may_create\(\) \|\| /if (/; s/OidIsValid\(template\) && may_copy\(template\)/OidIsValid(template)/'
mutate runs_ended_without_right t/051_database_commands needed_by \
	's/database != MyDatabaseId && compat_owns\(DatabaseRelationId, database\)/database != MyDatabaseId/'
mutate healer_never_sleeps t/033_healer set_costs \
	's/compat_set_costs\(autovacuum_vac_cost_delay >= 0 \? autovacuum_vac_cost_delay : VacuumCostDelay,/compat_set_costs(0,/'
mutate healer_not_cancelled t/033_healer let_cancel \
	's/\tMyProc->statusFlags \|= PROC_IS_AUTOVACUUM;\n//'
mutate healer_is_no_task_of_autovacuum t/075_bystander let_cancel \
	's/\tProcGlobal->statusFlags\[MyProc->pgxactoff\] = MyProc->statusFlags;\n//'
mutate healer_waits_for_locks t/033_healer open_target \
	's/!ConditionalLockRelationOid\(table, RowExclusiveLock\)\)/(LockRelationOid(table, RowExclusiveLock), false))/'
mutate healer_waited_for_in_vain t/050_owners_code tell_end \
	's/healing->left > 0 && healing->complained\)/false)/'
mutate all_are_told_of_all_indexes t/063_full weigh_candidate \
	's/if \(!largest->sees_all && !has_privs_of_role\(GetSessionUserId\(\), candidate->owner\)\)/if (false)/'
mutate function_lends_its_indexes t/063_full 'weigh_candidate sherman_largest_indexes' \
	's/GetSessionUserId\(\)/GetUserId()/'
mutate error_waits_for_locks t/063_full weigh_candidate \
	's/if \(!ConditionalLockRelationOid\(candidate->oid, AccessShareLock\)\)/LockRelationOid(candidate->oid, AccessShareLock);\n\tif (false)/'
mutate torn_metapage_names_nothing t/027_temporary look_at_metapage \
	's/return temporary \&\& meta.reason == SHERMAN_REASON_NONE \? LOOK_REFUSED : LOOK_DONE;/return LOOK_DONE;/'
mutate others_metapage_not_looked_at t/027_temporary look_at_metapage \
	's/if \(!sherman_metapage_read/if (temporary)\n\t\treturn LOOK_REFUSED;\n\tif (!sherman_metapage_read/'
mutate unreachable_taken_for_broken t/034_rebuild look_at_index \
	's/if \(state == SHERMAN_BROKEN\)/if (state >= SHERMAN_UNREACHABLE)/'
mutate good_ones_stay_noted t/034_rebuild look_at_indexes \
	's/\tforget_good\(\);\n//' \
	forget_good \
	's/static void\nforget_good/static pg_attribute_unused() void\nforget_good/'
mutate broken_indexes_not_told t/052_rebuild_all look_at_indexes \
	's/if \(tell\)/if (false)/'
mutate table_of_others_worked_on t/034_rebuild begin_on_table \
	's/ConditionalLockRelationOid\(rebuild->heap, ShareUpdateExclusiveLock\)/ConditionalLockRelationOid(rebuild->heap, AccessShareLock)/'
mutate leftovers_forgotten t/034_rebuild sherman_rebuild_relation_made \
	's/\tsherman_rebuild_made\(copying, relation\);\n/\t(void) relation;\n/'
mutate rebuild_is_a_command_of_others t/075_bystander reindex_concurrently \
	's/\A/#include "tcop\/dest.h"\n#include "tcop\/utility.h"\n\n/; s/\tExecReindex\(NULL, statement, true\);/\tPlannedStmt *command = makeNode(PlannedStmt);\n\n\tcommand->commandType = CMD_UTILITY;\n\tcommand->utilityStmt = (Node *) statement;\n\tProcessUtility(command, "REINDEX", false, PROCESS_UTILITY_TOPLEVEL, NULL, NULL, None_Receiver, NULL);/'
mutate told_only_where_rebuilt t/052_rebuild_all sherman_rebuild_wanted \
	's/!sherman_rebuild_works\(\) && plan.looked/!sherman_rebuild_works()/'
mutate tries_of_a_dead_server_go_on t/034_rebuild rebuilds.c:resume \
	's/\|\| !rebuild->running\)\n\t\treturn;/|| rebuild->running)\n\t\treturn;/'
mutate tries_not_limited t/034_rebuild sherman_rebuild_is_due \
	's/\(!rebuild->manual && rebuild->tries < \(uint32\) sherman_rebuild_tries\)/!rebuild->manual/'
mutate wish_not_heard t/052_rebuild_all sherman_rebuild_works \
	's/return sherman_auto_rebuild \|\| [^;]*;/return sherman_auto_rebuild;/'
mutate runs_not_kept_out t/018_collector sherman_runs_forbidden \
	's/\.alone_in\) == database\)/.alone_in) == database \&\& false)/'
mutate runs_ended_everywhere t/051_database_commands ask_to_leave \
	's/ \|\| run->database != database\)/)/'
mutate rebuild_ended_as_it_is t/051_database_commands ask_to_leave \
	's/if \(!workers\[i\]->undoes \|\| /if (true || /'
