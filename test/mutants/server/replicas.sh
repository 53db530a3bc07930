# Safeguards of indexes with copies. Sourced by script/test long mutations-server.

mutate given_up_home_is_believed t/040_replicas sherman_metapage_give_up \
	's/\t\tmeta.replicas_valid = valid;\n//'
mutate stale_copy_stands_in t/040_replicas sherman_replicas_determine \
	's/if \(meta->replicas_valid == SHERMAN_VALID_FIRST\)\n\t\treturn home;/if (meta->copy == 0)\n\t\treturn home;/'
mutate doubtful_copy_stands_in t/040_replicas sherman_replicas_determine \
	's/ && halves_in_doubt\(meta\)\)\n\t\treturn home;/ \&\& false)\n\t\treturn home;/'
mutate last_copy_taken_for_garbage t/040_replicas share_is_orphan \
	's/if \(tree_record_replica\(share, &copy\)\)\n\t\treturn false;/(void) copy;/'
mutate given_up_half_stays t/040_replicas judge_trees \
	's/living != NULL && \(living->valid & half_of\(record\)\) != 0/living != NULL/'
mutate restart_costs_a_copy t/040_replicas look_at_node \
	's/\tif \(left > 0\)\n\t\treturn left;/\t(void) left;/'
mutate failover_fails_statements t/040_replicas sherman_try_again \
	's/\*attempts == SHERMAN_ATTEMPTS_MOST\)\n\t\treturn false;\n\t\(\*attempts\)\+\+;\n\t\/\*/true)\n\t\treturn false;\n\t(*attempts)++;\n\t\/*/'
mutate healed_without_comparing t/040_replicas note_healed \
	's/\tsherman_replicas_repair\(healer->index, healer->opened, &counts\);\n/\t(void) counts;\n/'
mutate vacuum_not_made_again t/047_replicas_upkeep vacuum.c:walk_on \
	's/(ReThrowError\(removal->error\);\n\t\} while \()/$1false \&\& /'
mutate merging_not_made_again t/047_replicas_upkeep merge_leaves \
	's/(merge_once\(index, vacuum, merged\);\n\twhile \()/$1false \&\& /'
mutate removal_not_noted_again t/047_replicas_upkeep sherman_record_note \
	's/(status = sherman_record_update\(&index->meta, record\);\n\twhile \()sherman_change_again/$1false \&\& sherman_change_again/'
mutate check_not_made_again t/047_replicas_upkeep sql/check.c:check_tree \
	's/\} while \(sherman_try_again/} while (false \&\& sherman_try_again/'
mutate comparison_not_made_again t/047_replicas_upkeep sherman_replicas_repair \
	's/\} while \(sherman_change_again/} while (false \&\& sherman_change_again/' \
	sherman_replicas_differ \
	's/\} while \(sherman_try_again/} while (false \&\& sherman_try_again/'
mutate suspicion_of_one_away_waited_for t/047_replicas_upkeep is_suspected \
	's/return sherman_node_phase\(position\) == SHERMAN_PHASE_ATTACHED &&\n\t\t/return /'
mutate no_copy_no_index t/040_replicas sherman_replicas_wanted \
	's/ereport\(WARNING,(\s+\(errmsg\("index \\"%s\\" is built without its copy")/ereport(ERROR,$1/'
