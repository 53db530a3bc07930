# Safeguards of am/. Sourced by script/test-mutations-server.

# ---- index-only scans
mutate second_look_left_out specs/index-only-vacuum am/scan_only.c \
	's/if \(!unchanged\)/if (!unchanged \&\& false)/'
mutate map_believed_at_any_time specs/index-only-vacuum am/scan_only.c \
	's/status = tree_batch_unchanged\(tree_scan, batch, &unchanged\);/(void) tree_scan;/'

# ---- SERIALIZABLE
mutate leaf_not_locked specs/serializable am/predicate.c \
	's/bool\t\tlock = IsolationIsSerializable\(\)/bool\t\tlock = false \&\& IsolationIsSerializable()/'
mutate insert_looks_for_no_reader specs/serializable am/predicate.c \
	's/CheckForSerializableConflictIn\(relation, NULL, page_of_leaf\(tree_inserted_leaf\(index->tree\)\)\);/(void) index;/'
mutate locks_stay_at_the_split_leaf specs/serializable am/predicate.c \
	's/index->relation != NULL && from_page != to_page/false \&\& from_page != to_page/'
mutate refused_duplicate_looks_for_no_reader specs/unique-serializable am/unique.c \
	's/if \(IsolationIsSerializable\(\)\)\n\t\t\t\tcheck_readers/if (false)\n\t\t\t\tcheck_readers/'

mutate locks_stay_at_the_folded_leaf specs/serializable-fold am/vacuum.c \
	's/\tsherman_predicate_changes\(relation, index\);\n//'

# ---- uniqueness
mutate key_not_locked specs/unique-lock am/unique.c \
	's/\tLockTuple\(row->index, &checker->lock, ExclusiveLock\);\n\tchecker->locked = true;/\tchecker->locked = false;/'
mutate check_not_looked_for specs/unique-lock am/key_parts.c \
	's/if \(likely\([^\n]*KEY_PART_CHECK, part\)\) == 0\)\)/if (part < SHERMAN_KEY_PARTS)/'
mutate check_given_up_early specs/unique-lock am/unique.c \
	's/(\tkey_part_check\(checker->part\);)/$1\n\tkey_part_end(KEY_PART_CHECK, checker->part);/; s/\tkey_part_end\(KEY_PART_CHECK, checker->part\);\n\tUnlock/\tUnlock/'
mutate conflict_not_looked_at_again specs/unique-lock am/unique.c \
	's/\|\| still_there\(look\)/|| true || still_there(look)/'
mutate pending_row_not_waited_for specs/unique-wait am/unique.c \
	's/return FOUND_PENDING;/return FOUND_NOTHING;/'
mutate duplicate_of_itself sql/constraints am/unique.c \
	's/look->self_seen = true;\n\t\t\t\tcontinue;/look->self_seen = true;/'
mutate nulls_are_equal sql/unique am/unique.c \
	's/if \(row->isnull\[i\]\)\n\t\t\treturn true;/if (false)\n\t\t\treturn true;/'
mutate indexes_left_to_core sql/on_conflict am/on_conflict.c \
	's/!has_unique_index\(relation\)/true/'
mutate refusal_in_cores_words sql/on_conflict am/on_conflict.c \
	's/state->ExecProcNodeReal = insert_into_partitions;\n//'

# ---- VACUUM and dead entries
mutate barrier_not_waited_for specs/scan-barrier am/vacuum.c \
	's/\tsherman_scan_barrier_wait\(relation\);\n//'
mutate all_rows_taken_for_dead sql/kill am/scan.c \
	's/unlikely\(scan->kill_prior_tuple\)/true/'
mutate unseen_taken_for_dead specs/kill-snapshot am/scan.c \
	's/if \(dead\)\n\t\tsherman_kill_note/if (!returned)\n\t\tsherman_kill_note/'
mutate marks_in_a_tree_of_before t/021_dead_marks am/kill.c \
	's/ \|\| !tree_is_mutated\(index\)//; s/static bool\ntree_is_mutated/static pg_attribute_unused() bool\ntree_is_mutated/'

# ---- builds
mutate broken_hot_chain_of_a_worker_lost specs/parallel-build am/build_parallel.c \
	's/\tinfo->ii_BrokenHotChain \|= [^;]*;\n//'
mutate participants_not_waited_for sql/parallel_build am/build_parallel.c \
	's/\twait_for_participants\(build, participants\);\n/\t(void) wait_for_participants;\n/'

# ---- conditions
mutate row_comparison_bounds_too_much sql/row_comparison am/row_comparison.c \
	's/less \? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber/less ? BTLessStrategyNumber : BTGreaterStrategyNumber/'
