# Mutants of am/standby, and of what it rests on: its safeguards, removed one at a time (test/README). Sourced.

mutate standby_believes_at_once t/088_standby_reads scan_standby_read \
	's/\tstandby_believe\(state->index, scan->indexRelation, scan->xs_snapshot, true\);\n/\t(void) standby_believe;\n/'
mutate standby_trusts_an_older_map t/088_standby_reads judge_batch \
	's/!standby_has_replayed\(&batch->wal\)/false/'
mutate standby_goes_beyond_the_table t/088_standby_reads step_in_batch \
	's/unlikely\(state->beyond\) &&/false \&\&/'
mutate standby_waits_for_no_replay t/088_standby_reads removal_is_replayed \
	's/return is_replayed\(end\);/return true;/'
mutate standby_takes_another_history_for_its_own t/088_standby_reads record_is_good \
	's/ && run_is_known\(index, relation, record\)//'
mutate standby_believes_every_leaf t/088_standby_reads standby_believe \
	's/!by_leaves \|\| !leaves_are_good\(index\)/!by_leaves/'
mutate standby_sees_nothing_that_was_removed t/089_standby_load sees_nothing_removed \
	's/\(int32\) \(snapshot->xmin - record->removal_horizon\) >= 0/true/'
mutate removals_have_no_bound t/089_standby_load removal_horizon \
	's/return bound != 0 \? bound : .*?;/return FirstNormalTransactionId;/s'
mutate nobody_keeps_the_horizon t/089_standby_load horizon_round \
	's/sherman_embedded \|\|/true ||/'
mutate standbys_not_told_of_marked_entries t/088_standby_reads tell_standbys \
	's/\(void\) compat_log_conflict\(.*?\);/;/s'
mutate standby_keeps_a_promoted_client t/088_standby_reads sherman_connection_leave_standby \
	's/\tsherman_connection_close\(\);\n//'
mutate standby_reads_what_it_does_not_know t/088_standby_reads determine_on_standby \
	's/state == SHERMAN_OK && !sherman_trees_find\(sherman_tree_key\(meta\), &entry\)/!sherman_trees_find(meta->tree, \&entry) \&\& false/'
mutate promoted_session_writes_as_a_reader t/088_standby_reads find_or_open \
	's/if \(unlikely\(sherman_connection_is_reader\(\)\)\)/if (false)/'
mutate standby_follows_another_timeline t/090_standby_timeline is_of_timeline \
	's/ && tliOfPointInHistory\(end - 1, timelines\) == timeline//'
mutate promoted_server_knows_the_primarys_trees t/088_standby_reads reader_end \
	's/\t\tsherman_trees_clear\(i\);\n//'
mutate standby_asks_for_the_record_each_time t/088_standby_reads standby_believe \
	's/!by_leaves \|\| !leaves_are_good\(index\)/true/'
mutate standby_heeds_removals_alone t/088_standby_reads leaves_are_good \
	's/standby_has_replayed\(&seen\.added\) && //'
mutate pruned_rows_are_proven_by_their_deletion t/094_standby_pruned delete_from_full_leaf \
	's/deleted = sherman_youngest_pruned\(\);/deleted = FirstNormalTransactionId;/'


# Of two halves the one that the metapage names, as it is replayed.
mutate standby_stays_with_a_half_that_is_lost t/093_standby_copies metapage_is_as_before \
	's/now->replicas_valid == before->replicas_valid && //'
mutate standby_keeps_the_handle_of_a_lost_half t/093_standby_copies refresh_open \
	's/\(sherman_connection_is_reader\(\) && open->index.meta.replicas_valid != meta.replicas_valid\)/false/'
mutate standby_trusts_the_map_of_a_lost_half t/093_standby_copies judge_batch \
	's/unchanged = sherman_metapage_stands\(index, scan->indexRelation\);/(void) sherman_metapage_stands;/'
mutate standby_lists_no_copies t/093_standby_copies reader.c:list_trees \
	's/status = list_copies\(client, position, news\);/(void) list_copies;/'
mutate standby_does_not_look_at_what_is_replayed t/093_standby_copies follow_replay \
	's/open == NULL \|\| sherman_metapage_stands\(&open->index, relation\)/open == NULL || open != NULL/'
mutate standby_uses_what_was_broken t/093_standby_copies metapage_is_as_before \
	's/ && \(now->flags & SHERMAN_META_BROKEN\) == \(before->flags & SHERMAN_META_BROKEN\)//'
mutate readers_attach_counts t/092_standby_cascade reader_end \
	's/\t\tsherman_shared->node\[i\]\.read_serial = [^;]*;\n//'
mutate leaves_are_told_of_less_than_standbys t/094_standby_pruned sherman_prove_removal \
	's/end = Max\(end, tell_standbys\(relation\)\);/(void) tell_standbys(relation);/'
