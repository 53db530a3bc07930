# Safeguards of taking over, and of what the metapage says before the record. Sourced by script/test long mutations-server.

mutate border_not_looked_for t/041_takeover read_on \
	's/if \(is_border\(reader\)\)\n\t\t\treturn/if (is_border(reader) \&\& end == InvalidXLogRecPtr)\n\t\t\treturn/'
mutate wal_not_missed t/041_takeover wal_look \
	's/volatile XLogRecPtr found = InvalidXLogRecPtr;/volatile XLogRecPtr found = end;/'
mutate cut_not_minded t/041_takeover adopt \
	's/sherman_epoch_end\(local, local->cut,/sherman_epoch_end(local, PG_UINT64_MAX,/'
mutate page_not_written_behind_an_attach t/041_takeover sherman_recovery_attach \
	's/(node->unclean_from = 0;\n\treturn )history_change/$1local_change/'
mutate undecided_is_broken t/041_takeover sherman_state_determine \
	's/(sherman_shared->local.take_over != SHERMAN_TAKE_OVER_NOT)\)/$1 \&\& meta->magic == 0)/'
mutate left_file_says_nothing t/042_moved object_access \
	's/sub == 0 && moving && /sub == 1 \&\& moving \&\& /'
mutate record_before_the_metapage t/042_moved mark_mutated \
	's/(\tif \(!sherman_replicas_before_change\(relation, index\) \|\|\n)/\t(void) (news \&\& change_record(relation, index, \&record));\n$1/'
mutate owner_not_waited_for t/041_takeover wal_is_here \
	's/if \(!owner_is_followed\(\) \|\| /if (true || !owner_is_followed() || /'
mutate quiet_trees_taken_for_equal t/045_takeover_copies sherman_history_adopt \
	's/if \(local->node\[i\].member != 0\)\n/if (local->node[i].member != 0 \&\& local->epoch == 0)\n/'
mutate end_of_recovery_does_not_wait t/078_takeover_end recovery_ended \
	's/\tLWLockAcquire\(sherman_lock\(SHERMAN_LOCK_SHARED\), LW_EXCLUSIVE\);\n(\tnote_end_of_recovery\(sherman_shared\);\n)\tLWLockRelease\(sherman_lock\(SHERMAN_LOCK_SHARED\)\);\n/$1/'
mutate wish_noted_without_lock t/078_takeover_end note_wish \
	's/(\tlocal\.cut = InvalidXLogRecPtr;\n)(\twritten = sherman_local_write\(&local\);\n)/$1\tLWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));\n$2\tLWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);\n/'
mutate wish_noted_too_late t/078_takeover_end note_wish \
	's/(for its look\. \*\/\n\tif \()!RecoveryInProgress\(\)/$1false/'
