# Mutants of am/recovery: its safeguards, removed one at a time (test/README). Sourced.

mutate moved_is_another t/060_place sherman_place_find \
	's/return SHERMAN_PLACE_MOVED;/return SHERMAN_PLACE_REPLICA;/'
mutate copy_takes_the_originals_memory t/060_place sherman_place_find \
	's/if \(original_is_there\(local\)\)/if (false \&\& original_is_there(local))/'
mutate state_of_a_backup_believed t/060_place local_is_ours \
	's/if \(signal_file_exists\(\)\)/if (false)/'
mutate successor_is_fenced t/041_takeover_auto was_taken_over \
	's/ &&\s+history\.nonce != local->nonce;/ \&\& history.nonce == local->nonce;/'
mutate last_end_counts t/030_epochs sherman_epoch_end \
	's/local->end <= end\)\)/local->end == end))/'
mutate history_page_without_its_lsn t/075_bystander write_page \
	's/\tPageSetLSN\(page, end\);\n//'
mutate quiet_trees_taken_for_equal t/045_takeover_copies sherman_history_adopt \
	's/if \(local->node\[i\].member != 0\)\n/if (local->node[i].member != 0 \&\& local->epoch == 0)\n/'
mutate crashes_without_memory_nodes_unproven t/030_epochs judge \
	's/return ended_in_production\(control\) && sherman_checkpoint_is_ours\(local, control\) \?/return ended_in_production(control) \&\& false ?/'
mutate crashes_of_others_believed t/030_epochs judge \
	's/return ended_in_production\(control\) && sherman_checkpoint_is_ours\(local, control\) \?/return ended_in_production(control) ?/'
mutate crash_behind_a_checkpoint_is_clean t/030_epochs judge \
	's/(\t\/\* Set back to an earlier time)/\tif (control->checkPoint == local->checkpoint)\n\t\treturn SHERMAN_START_CLEAN;\n$1/'
mutate promotion_not_told t/006_standby sherman_recovery_start \
	's/\tshared->promoted = [^;]*;/\t(void) is_standby;/'
mutate snapshot_of_another_history_stays t/028_snapshot sherman_recovery_start \
	's/sherman_keep_file\(SHERMAN_SNAPSHOT, "unproven"\)/true/'
mutate what_stays_is_forgotten t/073_held sherman_recovery_start \
	's/local->foreign_snapshot = !sherman_keep_file/shared->node_held |= !sherman_keep_file/'
mutate next_epoch_not_drawn t/060_place next_epoch \
	's/ \+ 1 \+ step;/ + 1;/'
mutate copy_is_fought_for t/036_copies sherman_recovery_check \
	's/if \(known && seen && status->epoch > local->epoch\)/if (seen \&\& !known \&\& status->epoch == 0)/'
mutate copy_fences_the_original t/060_place sherman_recovery_check \
	's/known && sherman_shared->local\.moved && /false \&\& /'
mutate age_of_memory_not_looked_at t/028_snapshot sherman_recovery_check \
	's/if \(known && \(status->epoch == local->epoch \|\| .*\)\)$/if (known)/m'
mutate last_removal_not_looked_at t/031_heal can_be_healed \
	's/return sherman_heal && tree_wal_position_is_proven\([^;]*;/return sherman_heal;/'
mutate page_not_written_behind_an_attach t/041_takeover sherman_recovery_attach \
	's/(node->unclean_from = 0;\n\treturn )history_change/$1local_change/'
mutate reason_of_kept_files_not_shown t/028_snapshot put_file \
	's/nulls\[4\] = why == NULL;/nulls[4] = true;/'
mutate own_memory_is_that_of_others t/028_snapshot put_others \
	's/if \(strncmp\(path, own, strlen\(own\)\) == 0 && own\[0\] != .*?\)\n\t\t\tcontinue;//'
mutate memory_in_use_shown_as_free t/028_snapshot put_others \
	's/served \? "a server that runs uses it" : "no server that runs uses it"/"no server that runs uses it"/'
mutate owner_not_waited_for t/041_takeover wal_is_here \
	's/if \(!owner_is_followed\(\) \|\| /if (true || !owner_is_followed() || /'
mutate wish_noted_without_lock t/078_takeover_end note_wish \
	's/(\tlocal\.cut = InvalidXLogRecPtr;\n)(\twritten = sherman_local_write\(&local\);\n)/$1\tLWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));\n$2\tLWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);\n/'
mutate wish_noted_too_late t/078_takeover_end note_wish \
	's/(for its look\. \*\/\n\tif \()!RecoveryInProgress\(\)/$1false/'
mutate cut_not_minded t/041_takeover adopt \
	's/sherman_epoch_end\(local, local->cut,/sherman_epoch_end(local, PG_UINT64_MAX,/'
mutate end_of_recovery_does_not_wait t/078_takeover_end recovery_ended \
	's/\tLWLockAcquire\(sherman_lock\(SHERMAN_LOCK_SHARED\), LW_EXCLUSIVE\);\n(\tnote_end_of_recovery\(sherman_shared\);\n)\tLWLockRelease\(sherman_lock\(SHERMAN_LOCK_SHARED\)\);\n/$1/'
mutate experimental_number_taken t/071_preload sherman_wal_end_install \
	's/: RM_MAX_CUSTOM_ID;/: RM_EXPERIMENTAL_ID;/; s/ && \(number != RM_EXPERIMENTAL_ID \|\| sherman_resource_manager_id != 0\);/;/'
mutate runs_of_others_not_seen t/030_epochs sherman_checkpoint_is_ours \
	's/return control->checkPoint == local->checkpoint \|\| [^;]*;/return control->checkPoint >= local->checkpoint;/'
mutate beginning_of_a_checkpoint_not_seen t/030_epochs sherman_checkpoint_is_ours \
	's/ \|\| control->checkPointCopy.redo == local->redo;/;/'
mutate recovery_that_nobody_tells t/071_preload sherman_wal_end_start \
	's/recovery_tells \? SHERMAN_AWAITED_RECOVERY : SHERMAN_AWAITED_WAL/SHERMAN_AWAITED_RECOVERY/'
mutate border_not_looked_for t/041_takeover read_on \
	's/if \(is_border\(reader\)\)\n\t\t\treturn/if (is_border(reader) \&\& end == InvalidXLogRecPtr)\n\t\t\treturn/'
mutate wal_not_missed t/041_takeover wal_look \
	's/volatile XLogRecPtr found = InvalidXLogRecPtr;/volatile XLogRecPtr found = end;/'
mutate restored_backup_takes_over t/041_takeover_auto follow_setting \
	's/ && sherman_is_standby\(\);/;/'
mutate setting_of_the_start_counts t/041_takeover_auto sherman_take_over_end \
	's/\tfollow_setting\(local\);\n//'
mutate setting_of_the_end_counts t/041_takeover_auto sherman_take_over_start \
	's/\tfollow_setting\(local\);\n//'
mutate automatic_cut_forgotten t/041_takeover_auto sherman_take_over_start \
	's/ \? SHERMAN_TAKE_OVER_NOT : SHERMAN_TAKE_OVER_WANTED/ ? SHERMAN_TAKE_OVER_NOT : SHERMAN_TAKE_OVER_NOT/'
mutate heirs_fight t/091_failover_readers sherman_recovery_check \
	's/ && is_of_other_history\(status->epoch, local->epoch\)\)/ \&\& is_of_other_history(status->epoch, local->epoch) \&\& false)/'
mutate timeline_not_in_epochs t/091_failover_readers next_epoch \
	's/Max\(last, timeline << EPOCH_TIMELINE_SHIFT\) \+ 1/Max(last, timeline) + 1/'
mutate same_number_taken_for_own t/091_failover_readers is_of_other_history \
	's/(if \(opened == timeline\)\n\t\treturn )true/$1false/'
mutate heir_by_name_alone t/095_heir_by_name went_through \
	's/XLogRecPtrIsInvalid\(entry->end\) \|\| entry->begin < entry->end/true/'
mutate unfollowed_takes_over t/095_failover_twice sherman_promotion_is_followed \
	's/\(tell_of_run\(\) &&.*?SHERMAN_FOLLOWED\);/(tell_of_run() || true);/s'
mutate waits_behind_every_start t/098_promotion_unfollowed sherman_recovery_takes_from_other \
	's/\t\tif \(opened == timeline\)\n\t\t\treturn false;\n//'
mutate follower_need_not_know_the_epoch t/098_promotion_unfollowed page_is_followed \
	's/if \(followed == SHERMAN_FOLLOWED \|\| /if (true || followed == SHERMAN_FOLLOWED || /'
mutate end_of_the_own_run_is_forgotten t/098_promotion_unfollowed wal_end.c:sherman_wal_end_start \
	's/if \(local->closed && sherman_is_standby/if (false \&\& local->closed \&\& sherman_is_standby/'
