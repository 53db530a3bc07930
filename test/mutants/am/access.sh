# Mutants of am/access: its safeguards, removed one at a time (test/README). Sourced.

mutate last_versions_asked_about_first sql/churn_sizes is_asked_about \
	's/ && !leaf->entries\[slot\]\.newest//'
mutate emptied_tree_not_given_up t/027_temporary build_later \
	's/\tsherman_index_abandon_tree\(index\);\n//'
mutate emptied_table_needs_memory_node t/027_temporary sherman_build \
	's/ \&\& RelationGetNumberOfBlocks\(heap\) == 0\)/ \&\& false)/' \
	build_later \
	's/static void\nbuild_later/static pg_attribute_unused() void\nbuild_later/'
mutate workers_encode_as_they_like t/067_encoding sherman_parallel_build_main \
	's/if \(!sherman_keys_fit\(index, &shared->encoding\)\)/if (!sherman_keys_fit(index, \&shared->encoding) \&\& false)/'
mutate broken_hot_chain_of_a_worker_lost specs/parallel-build build_parallel \
	's/\tinfo->ii_BrokenHotChain \|= [^;]*;\n//'
mutate participants_not_waited_for sql/parallel_build build_parallel \
	's/\twait_for_participants\(build, participants\);\n/\t(void) wait_for_participants;\n/'
mutate descending_column_ascends sql/build begin_tuples_sort \
	's/descending \? BTGreaterStrategyNumber : BTLessStrategyNumber/BTLessStrategyNumber/'
mutate plan_goes_by_what_is_away t/072_plans find_size \
	's/info->tree_height = HEIGHT_AWAY;/guess_size(info);/'
mutate mapped_memory_costs_round_trips t/079_round_trips round_trip_cost \
	's/sherman_round_trip_cost >= 0 && measured_us > 0/sherman_round_trip_cost >= 0/'
mutate cached_leaves_cost_round_trips t/079_round_trips share_not_cached \
	's/return bytes > 0 \? 1 - Min\(1, .*?\) : 0;/return 1;/'
mutate costs_know_no_round_trips t/079_round_trips add_round_trips \
	's/\tif \(round_trip <= 0\)\n/\tif (true)\n/'
mutate lookahead_shares_no_round_trips t/079_round_trips add_round_trips \
	's/\t\tfirst \/= LEAVES_FETCHED_TOGETHER;\n/\t\t;\n/'
mutate deferred_checks_wait sql/unique_batches entry_kind \
	's/ \|\| \(check_unique == UNIQUE_CHECK_PARTIAL && !is_arbiter\(index, check_unique\)\)\)/)/'
mutate insert_passed_over_looks_for_no_reader t/029_serializable sherman_insert \
	's/\t\tsherman_predicate_skipped\(index, heap\);\n(\t\treturn)/$1/'
mutate unique_entries_not_checked sql/unique_batches add_keys \
	's/if \(batch->kind == INSERT_UNIQUE\)\n\t\tinsert_unique_keys/if (false)\n\t\tinsert_unique_keys/'
mutate unique_entries_dropped_with_an_error sql/unique_batches add_waiting \
	's/\tPG_FINALLY\(\);\n\t\{\n\t\tbatches\.adding = adding;/\tPG_FINALLY();\n\t{\n\t\tempty(batch);\n\t\tbatches.adding = adding;/'
mutate unique_entries_go_as_any_user sql/unique_batches add_waiting \
	's/\t\tSetUserIdAndSecContext\(batch->user, batch->security\);\n//'
mutate never_too_many sql/insert_batches insert_batch_limit \
	's/if \(unlikely\(batches\.bytes >= [^)]*\) work_mem \* 1024/if (unlikely(work_mem < 0/'
mutate unique_entries_go_behind_triggers_of_partitioned_tables sql/unique_batches has_triggers_behind_copy \
	's/has = has \|\| has_triggers_behind\(above\);/(void) above;/'
mutate unique_entries_go_behind_copys_triggers sql/unique_batches unique_may_wait \
	's/ && !has_triggers_behind_copy\(heap\)\)/ \&\& heap != NULL) || (heap == NULL \&\& has_triggers_behind_copy(heap))/'
mutate unique_entries_wait_while_healing t/079_unique_batches unique_may_wait \
	's/\tif \(sherman_is_healing\(&opened->meta\)\)\n\t\treturn false;\n//'
mutate serializable_entries_wait specs/insert-batches insert_batch_allowed \
	's/ && !IsolationIsSerializable\(\) &&/ \&\&/'
mutate announced_keys_not_looked_at_by_checks far:specs/announced-keys find_conflict \
	's/= look_at_announced\(look\);/= look->row == NULL ? look_at_announced(look) : FOUND_NOTHING;/'
mutate announced_keys_not_looked_for_by_adders far:specs/announced-keys key_part_add \
	's/likely\(!is_announced\(parts, key\)\)/(parts != NULL || !is_announced(parts, key))/'
mutate aborted_writers_keys_checked t/079_announced_keys look_at_announced \
	's/ && TransactionIdIsInProgress\(rows\[i\]\.writer\)\)/)/'
mutate aborted_writers_keys_scanned t/079_announced_keys scan_return_announced \
	's/!TransactionIdIsInProgress\(row->writer\)/!TransactionIdIsValid(row->writer)/'
mutate announced_keys_stay t/079_announced_keys insert_batch.c:empty \
	's/\tif \(batch->places != NULL\)\n/\tif (batch->places != NULL \&\& batch->count == 0)\n/'
mutate entries_of_rows_taken_back_wait far:specs/announced-keys insert_batch_take_back \
	's/if \(ends_with\(batch, heap, tid\)\)/if (ends_with(batch, heap, tid) \&\& tid == NULL)/'
mutate entries_wait_for_others_arbiters specs/insert-batches conflicts_are_ours \
	's/\t\t\treturn false;/\t\t\tcontinue;/'
mutate entries_wait_while_a_transaction_ends t/075_bystander insert_batch_allowed \
	's/ && !batches\.ending && / \&\& /'
mutate emptied_index_gets_what_waited t/025_logical insert_batch_forget \
	's/\t\trelease\(batch\);\n//'
mutate unique_entries_wait_for_partitions sql/unique_batches may_change \
	's/ \|\| entry->relkind == RELKIND_PARTITIONED_TABLE\)/)/'
mutate not_dropped_with_the_transaction sql/insert_batches transaction_changed \
	's/drop_waiting\(InvalidSubTransactionId\);/(void) argument;/'
mutate not_added_before_commit t/025_logical transaction_changed \
	's/\t\tcase XACT_EVENT_PRE_COMMIT:\n//'
mutate not_added_before_prepare t/025_logical transaction_changed \
	's/\t\tcase XACT_EVENT_PRE_PREPARE:\n//'
mutate not_dropped_with_the_subtransaction "sql/insert_batches specs/insert-batches" insert_batch.c:subtransaction_changed \
	's/drop_waiting\(mine\);/(void) mine;/'
mutate not_added_before_a_subtransaction_ends t/076_insert_batches insert_batch.c:subtransaction_changed \
	's/add_of_subtransaction\(mine\);/(void) add_of_subtransaction;/'
mutate together_without_permit t/079_unique_batches add_together \
	's/keys, count, &wal, &permit, &done\)/keys, count, \&wal, permit.argument != NULL ? NULL : \&permit, \&done)/'
mutate barred_entries_not_checked sql/unique_batches add_checked \
	's/\t\(void\) insert_checked\(&adding->checker, &row, opened\);/\t(void) row;\n\t(void) insert_entry(adding->index, opened, key, adding->heap, false);/'
mutate keys_in_their_rows_order sql/unique_batches insert_unique_keys \
	's/\t\tqsort_arg\(keys, count, sizeof\(TreeKey\), compare_keys, opened->tree\);/\t\t(void) compare_keys;/'
mutate bytes_of_a_key_not_hashed specs/unique-lock find_naming \
	's/column->naming = KEY_BY_IMAGE;/column->naming = KEY_UNNAMED;/'
mutate hash_class_may_go specs/unique-hash hold_hash_class \
	's/\t\tLockDatabaseObject\(OperatorClassRelationId, class, 0, AccessShareLock\);\n//'
mutate checks_of_an_error_go_on sql/unique release_marks \
	's/if \(phase != RESOURCE_RELEASE_LOCKS\)/if (phase != RESOURCE_RELEASE_LOCKS || !is_commit)/'
mutate check_not_looked_for specs/unique-lock key_part_add \
	's/likely\(pg_atomic_read_u32\(&counters->checking\) == 0\)/parts != NULL/'
mutate leaves_ahead_stay_few sql/arrays keys_ahead_read \
	's/ahead->leaves = Min\(ahead->leaves \* 2, LEAVES_AHEAD_MAX\);//'
mutate marks_in_a_tree_of_before t/021_dead_marks sherman_kill_flush \
	's/ \|\| !sherman_index_is_mutated\(index\)//'
mutate marks_in_front_of_their_evidence t/021_dead_marks sherman_kill_flush \
	's/wal.lsn = GetXLogInsertRecPtr\(\);/wal.lsn = 1;/'
mutate lookahead_fetches_one_leaf t/078_lookahead sherman_prefetch_note \
	's/\tprefetch->count\+\+;/\tprefetch->count = 1;/'
mutate lookahead_notes_for_ever t/078_lookahead sherman_prefetch_go \
	's/\tprefetch->count = 0;\n\}/}/'
mutate relpages_not_behind_analyze sql/relpages COMMITS_TO_LOOK_AT \
	's/#define COMMITS_TO_LOOK_AT 3/#define COMMITS_TO_LOOK_AT 1/'
mutate relpages_are_cores sql/relpages write_pages \
	's/\tif \(wrong\)/\tif (false)/'
mutate rebuilt_index_has_old_relpages sql/relpages write_noted \
	's/ && compat_file_number\(compat_file\(index\)\) == relpages\.noted\[i\]\.file\)/)/'
mutate unseen_taken_for_dead specs/kill-snapshot return_only \
	's/if \(dead\)\n\t\tsherman_kill_note/if (!returned)\n\t\tsherman_kill_note/'
mutate healed_entry_not_read_again t/050_owners_code read_again \
	's/state->place.key.offset \+= ScanDirectionIsForward\(direction\) \? -1 : 1;/(void) direction;/'
mutate predicate_left_to_who_rechecks t/050_owners_code is_rechecked \
	's/ && \(unverified_code\(state->rows\) & OWNER_CODE_PREDICATE\) == 0;/;/'
mutate doubt_not_looked_up t/031_heal return_entry \
	's/if \(unlikely\(state->batch->unverified\)\)\n\t\treturn return_unverified/if (false)\n\t\treturn return_unverified/'
mutate all_rows_taken_for_dead sql/kill advance \
	's/if \(scan->kill_prior_tuple && /if (/' \
	sherman_gettuple \
	's/ && !scan->kill_prior_tuple &&/ \&\& false \&\&/'
mutate barrier_left_with_a_row_in_progress specs/scan-barrier scan_dirty_row_is_there \
	's/if \(!TransactionIdIsValid\(dirty.xmin\) && /if (/'
mutate barrier_held_to_the_end specs/scan-barrier scan_dirty_row_is_there \
	's/\t\tleave_barrier\(scan\);/\t\t(void) leave_barrier;/'
mutate bitmap_not_rechecked t/031_heal get_bitmap \
	's/state->batch->unverified \|\| \(state->standby/(state->standby/'
mutate second_look_left_out specs/index-only-vacuum judge_batch \
	's/if \(!unchanged\)/if (!unchanged \&\& false)/'
mutate map_believed_at_any_time specs/index-only-vacuum judge_batch \
	's/status = sherman_batch_unchanged\(index, scan->indexRelation, tree_scan, batch, &unchanged\);/(void) index;/'
mutate rescan_goes_on_where_it_was sql/parallel sherman_parallelrescan \
	's/\tshared->place.begun = false;\n//'
mutate leaf_read_by_two sql/parallel parallel_scan_seize \
	's/\t\t\tshared->state = PARALLEL_READING;/\t\t\tshared->state = PARALLEL_IDLE;/' \
	leave_reading \
	's/\tAssert\(shared->state == PARALLEL_READING\);\n//'
mutate last_element_not_searched sql/arrays scan_qual_find \
	's/int\t\t\thigh = qual->element_count;/int\t\t\thigh = qual->element_count - 1;/'
mutate greatest_element_but_one sql/arrays take_array \
	's/\? count - 1 : 0\]/? Max(count - 2, 0) : 0]/'
mutate last_element_dropped sql/arrays take_array \
	's/for \(int i = 1; i < count; i\+\+\)/for (int i = 1; i + 1 < count; i++)/'
mutate wider_of_two_edges sql/multicolumn tighter \
	's/order == 0 \? scan_qual_is_inclusive\(chosen\)/order == 0 ? !scan_qual_is_inclusive(chosen)/'
mutate key_not_locked specs/unique-lock lock_key \
	's/\tsherman_lock_key\(row->index, [^;]*;\n\tchecker->locked = true;/\tchecker->locked = false;/'
mutate check_given_up_early specs/unique-lock lock_key \
	's/(\tkey_part_check\(checker->part\);)/$1\n\tkey_part_check_end(checker->part);/' \
	unique_release \
	's/\tkey_part_check_end\(checker->part\);\n\tsherman_unlock/\tsherman_unlock/'
mutate own_death_not_looked_at specs/unique-concurrent-build look_at_row \
	's/if \(!table_index_fetch_tuple_check\(row->heap, &own, SnapshotSelf, NULL\)\)/if (false \&\& table_index_fetch_tuple_check(row->heap, \&own, SnapshotSelf, NULL))/'
mutate pending_row_not_waited_for specs/unique-wait look_at_row \
	's/return FOUND_PENDING;/return FOUND_NOTHING;/'
mutate duplicate_of_itself sql/constraints look_at_entries \
	's/look->self_seen = true;\n\t\t\t\tcontinue;/look->self_seen = true;/'
mutate lost_keys_are_taken t/031_heal look_at_entries \
	's/if \(likely\(!batch->unverified\) \|\| /if (true || /'
mutate conflict_not_looked_at_again specs/unique-lock find_conflict \
	's/\|\| still_there\(look\)/|| true || still_there(look)/'
mutate adder_says_so_on_its_way specs/unique-lock add_alone \
	's/\tstatus = tree_insert_alone/\tif (!key_part_add(\&parts, row->key))\n\t\treturn false;\n\tstatus = tree_insert_alone/; s/(&hit, &alone\);\n)/$1\tkey_part_added(\&parts, row->key);\n/'
mutate nulls_are_equal sql/unique unique_by_null \
	's/if \(isnull\[i\]\)\n\t\t\treturn true;/if (false)\n\t\t\treturn true;/'
mutate refused_duplicate_looks_for_no_reader specs/unique-serializable unique_claim \
	's/if \(IsolationIsSerializable\(\)\)\n\t\t\t\tcheck_readers/if (false)\n\t\t\t\tcheck_readers/'
mutate index_not_looked_at_behind_a_wait t/008_unreachable unique_claim \
	's/\t\t\*opened = sherman_index_for_insert\(row->index\);\n\t\tlock_key/\t\tlock_key/'
mutate leaves_read_cost_nothing t/026_parallel_vacuum note_leaves \
	's/\tcharge\(&progress->uncharged_read, pages, VacuumCostPageMiss\);\n//'
mutate leaves_written_cost_nothing t/026_parallel_vacuum note_leaves \
	's/\tcharge\(&progress->uncharged_written, progress->pages_per_leaf \* rewritten, VacuumCostPageDirty\);\n//'
mutate error_of_the_callback_forgotten specs/concurrent-build-error vacuum.c:walk_on \
	's/\t\tif \(removal->error != NULL\)\n\t\t\tReThrowError\(removal->error\);\n//'
mutate vacuum_not_made_again t/047_replicas_upkeep vacuum.c:walk_on \
	's/(ReThrowError\(removal->error\);\n\t\} while \()/$1false \&\& /'
mutate vacuum_never_sleeps t/026_parallel_vacuum walk_leaves \
	's/\t\tcompat_delay_point\(\);\n(\t\tif \(!walk_on)/$1/'
mutate locks_stay_at_the_merged_leaf specs/serializable-merge merge_leaves \
	's/\tindex->relation = relation;\n\tsherman_predicate_changes\(index\);\n//'
mutate sparse_leaves_wait_for_empty_ones sql/space remove_entries \
	's/counts->empty \+ counts->sparse > 0/counts->empty > 0/'
mutate merging_not_made_again t/047_replicas_upkeep merge_leaves \
	's/(merge_once\(index, vacuum, merged\);\n\twhile \()/$1false \&\& /'
mutate barrier_not_waited_for specs/scan-barrier remove_entries \
	's/\tsherman_scan_barrier_wait\(relation\);\n//'
mutate vacuum_does_not_heal t/033_healer vacuum.c:heal \
	's/\t\(void\) heal_whole\(heap, index\);\n//'
mutate cells_as_of_an_empty_table t/083_cell_sizes build_fit_cells \
	's/if \(!state->measures\)/if (state != NULL)/'
mutate failed_flush_is_no_error t/084_flush_faults insert_keys \
	's/\t\t\tsherman_report_failure\(status, index\);/\t\t\treturn;/'
mutate failed_unique_flush_is_no_error t/084_flush_faults add_together \
	's/\t\tsherman_report_failure\(status, adding->index\);/\t\treturn count;/'
