# Mutants of am/planner: its safeguards, removed one at a time (test/README). Sourced.

mutate constraints_of_btree_get_ours sql/constraints mark_of \
	's/defGetBoolean\(option\) \? MARK_ON : MARK_OFF/MARK_ON/'
mutate partitions_get_constraints_of_ours sql/constraints table_can \
	's/ && !form->relispartition;/;/'
mutate constraints_not_marked sql/constraints set_method \
	's/if \(mark == MARK_NONE\)\n/if (mark == MARK_NONE \&\& !by_setting)\n/'
mutate mark_not_read t/010_upgrade sherman_set_methods \
	's/wanted = by_setting \|\| has_mark\(constraints\);/wanted = by_setting;/'
mutate access_method_by_its_name t/024_dump sherman_set_methods \
	's/get_am_name\(method\), by_setting/"sherman", by_setting/'
mutate partitions_unsaid t/080_messages sherman_set_methods \
	's/if \(sherman_constraints && !by_setting\)(\n\t\tnotice_btree)/if (false)$1/'
mutate mark_can_be_changed sql/constraints sherman_keep_mark \
	's/\|\| !sherman_is_ours\(index\) \|\|/|| sherman_is_ours(index) ||/'
mutate mark_stays_when_retyped sql/constraints_retyped sherman_constraints_at_risk \
	's/set_mark\(index_of\(constraint\), false\);/(void) constraint;/'
mutate mark_not_given_back sql/constraints sherman_constraints_after \
	's/set_mark\(index, true\);/(void) index;/'
mutate dead_rows_are_ends sql/planner_extremes first_there \
	's/if \(table_index_fetch_tuple_check\(/if (true || table_index_fetch_tuple_check(/'
mutate ends_read_for_each_plan sql/planner_extremes look_at_conditions \
	's/\*least = \*greatest = false;/*least = *greatest = true;/'
mutate ends_told_to_everybody sql/planner_extremes relation_stats \
	's/ \|\| !may_read\(&column\)\)/ || (!may_read(\&column) \&\& false))/'
mutate other_extensions_not_asked t/068_neighbors relation_stats \
	's/if \(previous_stats != NULL && previous_stats\(/if (previous_stats == NULL \&\& previous_stats(/'
mutate many_rows_read_for_one t/078_lookahead lookahead_restart \
	's/state->wanted = 1;/state->wanted = LOOKAHEAD_ROWS_MAX;/'
mutate rows_ahead_outlive_a_rescan t/078_lookahead lookahead_rescan \
	's/\tlookahead_restart\(\(Lookahead \*\) node\);\n//'
mutate leaves_ahead_not_fetched t/078_lookahead read_rows \
	's/\t\tsherman_prefetch_go\(state->prefetch\);\n//'
mutate locked_rows_read_ahead t/078_lookahead may_be_read_ahead \
	's/\t\tcase T_LockRows:\n//'
mutate volatile_rows_read_ahead t/078_lookahead may_be_read_ahead \
	's/return !contain_volatile_functions\(\(Node \*\) plan->targetlist\) &&/return/'
mutate indexes_left_to_core sql/on_conflict open_indexes \
	's/!has_unique_index\(relation\)/true/'
mutate refusal_in_cores_words sql/btree_alone prepare_change \
	's/\t\twatch_insert\(state\);\n//'
mutate inserts_of_others_skipped t/068_neighbors executor_start \
	's/previous_executor_start\(query, flags\);/standard_ExecutorStart(query, flags);/'
mutate partial_index_planned_in_doubt t/050_owners_code plan_in_doubt \
	's/return \(code & OWNER_CODE_PREDICATE\) == 0;/return true;/'
mutate index_over_functions_planned_in_doubt t/050_owners_code plan_in_doubt \
	's/\tinfo->amhasgettuple = false;/\t;/'
mutate plan_connects_for_nothing t/072_plans fill_index \
	's/\t\tshow_families\(info\);\n/\t\tshow_families(info);\n\t\t(void) sherman_index_quietly(index);\n/'
mutate row_comparison_bounds_too_much sql/row_comparison implied_operator \
	's/less \? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber/less ? BTLessStrategyNumber : BTGreaterStrategyNumber/'
mutate relation_of_brin_is_looked_into sql/planner_extremes is_relation_of \
	's/int i = 1; rel != NULL/int i = 1; rel != NULL \&\& rel->relid != 0/'
mutate snapshot_of_the_standby_plans_indexes t/098_promotion_unfollowed fill_index \
	's/if \(ActiveSnapshotSet\(\) && sherman_snapshot_is_of_standby\(GetActiveSnapshot\(\)\)\)/if (false)/'
