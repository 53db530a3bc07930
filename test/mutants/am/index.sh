# Mutants of am/index: its safeguards, removed one at a time (test/README). Sourced.

mutate comparison_not_made_again t/047_replicas_upkeep sherman_replicas_repair \
	's/\} while \(sherman_change_again/} while (false \&\& sherman_change_again/' \
	sherman_replicas_differ \
	's/\} while \(sherman_try_again/} while (false \&\& sherman_try_again/'
mutate change_without_connection t/082_lazy_connections find_or_open \
	's/\(lazily \|\| open->connected\)/true/'
mutate failover_fails_statements t/040_replicas sherman_try_again \
	's/\*attempts == SHERMAN_ATTEMPTS_MOST\)\n\t\treturn false;\n\t\(\*attempts\)\+\+;\n\t\/\*/true)\n\t\treturn false;\n\t(*attempts)++;\n\t\/*/'
mutate removal_not_noted_again t/047_replicas_upkeep sherman_record_note \
	's/(status = sherman_record_update\(&index->meta, record\);\n\twhile \()sherman_change_again/$1false \&\& sherman_change_again/'
mutate healer_waited_for_that_is_kept_out t/050_owners_code no_use \
	's/if \(keeps_healer_out\(index\)\)/if (keeps_healer_out(index) \&\& false)/'
mutate not_added_when_a_scan_goes_on sql/insert_batches sherman_index_recheck_for \
	's/\tsherman_index_read_begins\(relation, sees_announced\);\n//'
mutate metapage_not_written_through t/027_temporary metapage_write \
	's/if \(RelationUsesLocalBuffers\(index\)\)/if (false)/'
mutate ended_session_alive t/027_temporary read_of_other_session \
	's/!= TEMP_NAMESPACE_IN_USE/== TEMP_NAMESPACE_NOT_TEMP/'
mutate nonce_not_in_the_metapage t/035_lineage sherman_metapage_adopt \
	's/\t\tmeta.nonce_current = nonce;\n//'
mutate nonce_before_forgotten t/035_lineage sherman_metapage_adopt \
	's/meta.nonce_previous = previous;/meta.nonce_previous = 0 * previous;/'
mutate metapage_not_flushed t/035_lineage sherman_metapage_adopt \
	's/(end = metapage_write\(index, buffer, &meta\);\n\t\}\n\tif \()RelationNeedsWAL\(index\)/$1end == 0/'
mutate given_up_home_is_believed t/040_replicas sherman_metapage_give_up \
	's/\t\tmeta.replicas_valid = valid;\n//'
mutate plans_stay_when_an_index_breaks t/067_encoding invalidate_plans \
	's/\tSendSharedInvalidMessages\(&message, 1\);/\t(void) message;/'
mutate broken_not_flushed t/008_unreachable sherman_metapage_break \
	's/(becomes of this transaction. \*\/\n)\tif \(RelationNeedsWAL\(index\)\)\n\t\tsherman_flush\(end\);/$1\t(void) end;/'
mutate encoding_not_compared t/067_encoding determine_state \
	's/ \|\| sherman_keys_fit\(relation, meta\)/ || sherman_keys_fit(relation, meta) || true/'
mutate tree_of_a_copy_given_up sql/temporary sherman_index_abandon_tree \
	's/if \(!is_new \&\& open != NULL/(void) is_new;\n\tif (open != NULL/'
mutate handle_given_up_at_each_invalidation t/011_many_indexes refresh_open \
	's/\t\topen->stale = !sherman_keys_serve\(open->index\.keys, relation\);/\t\t;/'
mutate skipped_rows_meet_at_the_metapage t/002_crash open_index.c:open_index \
	's/ && open->index.break_durable\)\n\t\treturn/ \&\& false)\n\t\treturn/'
mutate others_temporary_scanned t/027_temporary index_to_read \
	's/unlikely\(RELATION_IS_OTHER_TEMP\(index\)\)/false/'
mutate not_added_before_checks sql/insert_batches index_to_read \
	's/\tsherman_index_read_begins\(index, sees_announced\);\n\topened = /\topened = /'
mutate locks_stay_at_the_split_leaf specs/serializable copy_locks \
	's/index->relation != NULL && from_page != to_page/false \&\& from_page != to_page/'
mutate leaf_not_locked specs/serializable sherman_predicate_scan \
	's/bool\t\tlock = scan->xs_snapshot/bool\t\tlock = false \&\& scan->xs_snapshot/'
mutate relation_not_locked_without_tree t/029_serializable sherman_predicate_empty \
	's/\tif \(scan->xs_snapshot != InvalidSnapshot\)\n\t\tPredicateLockRelation\(relation, scan->xs_snapshot\);\n//'
mutate insert_looks_for_no_reader specs/serializable sherman_predicate_inserted \
	's/CheckForSerializableConflictIn\(relation, NULL, page_of_leaf\(tree_inserted_leaf\(index->tree\)\)\);/(void) index;/'
mutate locks_stay_at_the_broken_index t/029_serializable sherman_predicate_skipped \
	's/\tTransferPredicateLocksToHeapRelation\(relation\);\n//'
mutate suspicion_of_one_away_waited_for t/047_replicas_upkeep is_suspected \
	's/return sherman_node_phase\(position\) == SHERMAN_PHASE_ATTACHED &&\n\t\t/return /'
mutate no_copy_no_index t/040_replicas sherman_replicas_wanted \
	's/ereport\(WARNING,(\s+\(errmsg\("index \\"%s\\" is built without its copy")/ereport(ERROR,$1/'
mutate restart_costs_a_copy t/040_replicas look_at_node \
	's/\tif \(left > 0\)\n\t\treturn left;/\t(void) left;/'
mutate attach_waited_for_ever t/043_attach sleep_while \
	's/if \(left <= 0\)\n\t\t\tbreak;/left = Max(left, 10);/'
mutate attach_not_waited_for t/043_attach sherman_wait_attached \
	's/if \(!is_attaching\(meta\)\)/if (meta != NULL || !is_attaching(meta))/'
mutate forgotten_is_lost t/070_forget why_lost \
	's/sherman_shared->local\.node\[position\]\.forgotten != 0/false/'
mutate nonce_not_compared t/035_lineage sherman_half_determine \
	's/else if \(!same_history\(meta, entry\)\)/else if (!same_history(meta, entry) \&\& meta->magic == 0)/'
mutate stale_copy_stands_in t/040_replicas sherman_replicas_determine \
	's/if \(meta->replicas_valid == SHERMAN_VALID_FIRST\)\n\t\treturn home;/if (meta->copy == 0)\n\t\treturn home;/'
mutate doubtful_copy_stands_in t/040_replicas sherman_replicas_determine \
	's/ && halves_in_doubt\(meta\)\)\n\t\treturn home;/ \&\& false)\n\t\treturn home;/'
mutate undecided_is_broken t/041_takeover sherman_state_determine \
	's/(sherman_shared->local.take_over != SHERMAN_TAKE_OVER_NOT)\)/$1 \&\& meta->magic == 0)/'
mutate refused_is_ok t/017_memory_node_errors is_refused \
	's/\treturn sherman_connection_failure\(position, &status\)\[0\] != .*;/\treturn false;/'
mutate healed_tree_stays_unverified t/033_healer entry_healed \
	's/\t\tfound->unverified_epoch = 0;\n//'
mutate record_before_the_metapage t/042_moved mark_mutated \
	's/(\tif \(!sherman_replicas_before_change\(relation, index\) \|\|\n)/\t(void) (news \&\& change_record(relation, index, \&record));\n$1/'
mutate skipped_without_a_flag t/008_unreachable before_skip \
	's/\t\t\tsherman_metapage_break\(index, SHERMAN_REASON_UNAVAILABLE\);\n\t\t\treturn;/\t\t\treturn;/'
mutate constraints_skip_inserts t/002_crash before_skip \
	's/index->rd_index->indisunique \|\| index->rd_index->indisexclusion;/false;/'
mutate ends_kept_behind_inserts sql/planner_extremes begin_insert \
	's/\tindex->extremes\[0\][^\n]*\n//'
mutate vacuum_needs_us t/005_nopreload sherman_index_for_vacuum \
	's/if \(opened->state == SHERMAN_HIDDEN && !IsBinaryUpgrade\)/if (opened->state == SHERMAN_HIDDEN \&\& IsBinaryUpgrade)/'
mutate removal_before_flush t/037_crash_points sherman_prove_removal \
	's/\tsherman_flush_to_standbys\(end\);\n//'
mutate removal_not_flushed t/038_invariants sherman_prove_removal \
	's/\tsherman_flush_to_standbys\(end\);\n//'
mutate wal_position_behind_its_row t/031_heal make_wal_position \
	's/wal->lsn = \(lsn \+ WAL_SLACK - 1\) \/ WAL_SLACK \* WAL_SLACK;/wal->lsn = 1 + 0 * lsn \/ WAL_SLACK;/'
mutate removal_before_standbys_have_it t/041_takeover_synchronous sherman_prove_removal \
	's/sherman_flush_to_standbys\(end\)/sherman_flush(end)/'
mutate first_change_before_standbys_have_it t/041_takeover_synchronous sherman_metapage_adopt \
	's/sherman_flush_to_standbys\(end\)/sherman_flush(end)/'
mutate changes_do_not_wait_for_a_standby t/095_failover_twice open_to_change \
	's/while \(unlikely/while (false \&\& unlikely/'
mutate waiting_breaks_indexes t/098_promotion_unfollowed before_skip \
	's/\t\t\tif \(sherman_promotion_waits\(\)\)\n\t\t\t\tbreak;\n//'
mutate queries_wait_for_a_standby t/098_promotion_unfollowed is_attaching \
	's/\tif \(sherman_promotion_waits\(\)\)\n\t\treturn false;\n//'
