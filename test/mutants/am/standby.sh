# Mutants of am/standby, and of what it rests on: its safeguards, removed one at a time (test/README). Sourced.

mutate standby_believes_at_once t/088_standby_reads scan_standby_read \
	's/\tstandby_believe\(state->index, scan->indexRelation\);\n/\t(void) standby_believe;\n/'
mutate standby_trusts_an_older_map t/088_standby_reads judge_batch \
	's/!standby_has_replayed\(&batch->wal\)/false/'
mutate standby_goes_beyond_the_table t/088_standby_reads step_in_batch \
	's/unlikely\(state->beyond\) &&/false \&\&/'
mutate standby_waits_for_no_replay t/088_standby_reads record_is_replayed \
	's/return is_replayed\(record->removal_lsn\);/return true;/'
mutate standby_takes_another_history_for_its_own t/088_standby_reads record_is_replayed \
	's/ \|\|\n\t\t!run_is_known\(index, relation, record\)//'
mutate standbys_not_told_of_marked_entries t/088_standby_reads tell_standbys \
	's/\(void\) compat_log_conflict\(.*?\);/;/s'
mutate standby_keeps_a_promoted_client t/088_standby_reads sherman_connection_leave_standby \
	's/\tsherman_connection_close\(\);\n//'
mutate standby_reads_what_it_does_not_know t/088_standby_reads determine_on_standby \
	's/state == SHERMAN_OK && !sherman_trees_find\(meta->tree, &entry\)/!sherman_trees_find(meta->tree, \&entry) \&\& false/'
mutate promoted_session_writes_as_a_reader t/088_standby_reads find_or_open \
	's/if \(unlikely\(sherman_connection_is_reader\(\)\)\)/if (false)/'
mutate standby_follows_another_timeline t/090_standby_timeline is_of_timeline \
	's/ && tliOfPointInHistory\(end - 1, timelines\) == timeline//'
mutate readers_attach_counts t/092_standby_copies reader_end \
	's/\t\tsherman_shared->node\[i\]\.read_serial = [^;]*;\n//'
