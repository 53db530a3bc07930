# Safeguards of invariants that have no other list (doc/internals/invariants.md). Sourced by script/test long mutations-server.

# ---- N3: behind a crash that recovery has nothing to do after
mutate crash_behind_a_checkpoint_is_clean t/030_epochs judge \
	's/(\t\/\* Set back to an earlier time)/\tif (control->checkPoint == local->checkpoint)\n\t\treturn SHERMAN_START_CLEAN;\n$1/'

# ---- N14: broken is in WAL before anything is skipped, and constraints never skip
mutate broken_not_flushed t/008_unreachable sherman_metapage_break \
	's/(becomes of this transaction. \*\/\n)\tif \(RelationNeedsWAL\(index\)\)\n\t\tsherman_flush\(end\);/$1\t(void) end;/'
mutate skipped_without_a_flag t/008_unreachable before_skip \
	's/\t\t\tsherman_metapage_break\(index, SHERMAN_REASON_UNAVAILABLE\);\n\t\t\treturn;/\t\t\treturn;/'
mutate constraints_skip_inserts t/002_crash before_skip \
	's/index->rd_index->indisunique \|\| index->rd_index->indisexclusion;/false;/'

# ---- N16: an attach is waited for, not for ever
mutate attach_not_waited_for t/043_attach sherman_wait_attached \
	's/if \(!is_attaching\(meta\)\)/if (meta != NULL || !is_attaching(meta))/'
mutate attach_waited_for_ever t/043_attach sleep_while \
	's/if \(left <= 0\)\n\t\t\tbreak;/left = Max(left, 10);/'

# ---- N19: worker runs are in no command's way
mutate runs_not_ended t/018_collector next_utility_alone \
	's/\t\tsherman_runs_end\(\);\n//'
mutate runs_not_kept_out t/018_collector sherman_runs_forbidden \
	's/\.alone_in\) == database\)/.alone_in) == database \&\& false)/'
mutate runs_ended_without_right t/051_database_commands needed_by \
	's/database != MyDatabaseId && compat_owns\(DatabaseRelationId, database\)/database != MyDatabaseId/'
mutate runs_ended_by_who_may_not_create t/051_database_commands needed_by_create \
	's/if \(!may_create\(\) \|\| /if (/; s/OidIsValid\(template\) && may_copy\(template\)/OidIsValid(template)/'
mutate runs_in_invalid_databases t/051_database_commands read_database \
	's/datconnlimit < -1;/datconnlimit < -2;/'
mutate runs_ended_everywhere t/051_database_commands ask_to_leave \
	's/ \|\| run->database != database\)/)/'
mutate rebuild_ended_as_it_is t/051_database_commands ask_to_leave \
	's/if \(!workers\[i\]->undoes \|\| /if (true || /'

# ---- N20: a copy that comes between the look and the fence
mutate fence_not_looked_behind t/043_attach attach_over \
	's/\tif \(!sherman_recovery_check\(position, &status, &member, failure\)\)\n\t\treturn FABRIC_EXISTS;\n(\ttake_position)/$1/'

# ---- N23: a server without us works
mutate vacuum_needs_us t/005_nopreload sherman_index_for_vacuum \
	's/if \(opened->state == SHERMAN_HIDDEN && !IsBinaryUpgrade\)/if (opened->state == SHERMAN_HIDDEN \&\& IsBinaryUpgrade)/'
mutate planner_needs_us t/005_nopreload sherman_all_hidden \
	's/return sherman_shared == NULL \|\| !IsPostmasterEnvironment \|\| IsBinaryUpgrade \|\| /return !IsPostmasterEnvironment || IsBinaryUpgrade || /'

# ---- N24: pg_upgrade and standbys touch no memory node
mutate standby_has_a_memory_node t/006_standby sherman_register_workers \
	's/worker.bgw_start_time = BgWorkerStart_RecoveryFinished;/worker.bgw_start_time = BgWorkerStart_ConsistentState;/'
mutate upgrade_has_a_memory_node t/010_upgrade sherman_register_workers \
	's/if \(!process_shared_preload_libraries_in_progress \|\| IsBinaryUpgrade\)/if (!process_shared_preload_libraries_in_progress)/'

# ---- what could not be written is not done
mutate epoch_not_noted t/044_disk_full sherman_local_change \
	's/if \(!sherman_local_write\(local\)\)\n\t\treturn false;/(void) sherman_local_write(local);/'
