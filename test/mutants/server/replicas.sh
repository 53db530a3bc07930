# Safeguards of indexes with copies. Sourced by script/test long mutations-server.

mutate given_up_home_is_believed t/040_replicas am/index/metapage.c \
	's/\t\tmeta.replicas_valid = valid;\n//'
mutate stale_copy_stands_in t/040_replicas am/index/state.c \
	's/if \(meta->replicas_valid == SHERMAN_VALID_FIRST\)\n\t\treturn home;/if (meta->copy == 0)\n\t\treturn home;/'
mutate doubtful_copy_stands_in t/040_replicas am/index/state.c \
	's/ && halves_in_doubt\(meta\)\)\n\t\treturn home;/ \&\& false)\n\t\treturn home;/'
mutate last_copy_taken_for_garbage t/040_replicas am/background/collector.c \
	's/if \(tree_record_replica\(share, &copy\)\)\n\t\treturn false;/(void) copy;/'
mutate given_up_half_stays t/040_replicas am/background/collector.c \
	's/living != NULL && \(living->valid & half_of\(record\)\) != 0/living != NULL/'
mutate restart_costs_a_copy t/040_replicas am/index/replicas.c \
	's/\tif \(left > 0\)\n\t\treturn left;/\t(void) left;/'
mutate failover_fails_statements t/040_replicas am/index/failover.c \
	's/\*attempts == SHERMAN_ATTEMPTS_MOST\)\n\t\treturn false;\n\t\(\*attempts\)\+\+;\n\t\/\*/true)\n\t\treturn false;\n\t(*attempts)++;\n\t\/*/'
mutate healed_without_comparing t/040_replicas am/heal/heal.c \
	's/\tsherman_replicas_repair\(healer->index, healer->opened, &counts\);\n/\t(void) counts;\n/'
mutate vacuum_not_made_again t/047_replicas_upkeep am/access/vacuum.c \
	's/(ReThrowError\(removal->error\);\n\t\} while \()/$1false \&\& /'
mutate merging_not_made_again t/047_replicas_upkeep am/access/vacuum.c \
	's/(merge_once\(index, vacuum, merged\);\n\twhile \()/$1false \&\& /'
mutate removal_not_noted_again t/047_replicas_upkeep am/index/failover.c \
	's/(status = sherman_record_update\(&index->meta, record\);\n\twhile \()sherman_change_again/$1false \&\& sherman_change_again/'
mutate check_not_made_again t/047_replicas_upkeep am/sql/check.c \
	's/\} while \(sherman_try_again/} while (false \&\& sherman_try_again/'
mutate comparison_not_made_again t/047_replicas_upkeep am/index/compare.c \
	's/\} while \(sherman_change_again/} while (false \&\& sherman_change_again/; s/\} while \(sherman_try_again/} while (false \&\& sherman_try_again/'
mutate suspicion_of_one_away_waited_for t/047_replicas_upkeep am/index/replica_placement.c \
	's/return sherman_node_phase\(position\) == SHERMAN_PHASE_ATTACHED &&\n\t\t/return /'
mutate no_copy_no_index t/040_replicas am/index/replicas.c \
	's/ereport\(WARNING,(\s+\(errmsg\("index \\"%s\\" is built without its copy")/ereport(ERROR,$1/'
