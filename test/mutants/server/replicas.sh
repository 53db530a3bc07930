# Safeguards of indexes with copies. Sourced by script/test-mutations-server.

mutate given_up_home_is_believed t/040_replicas am/metapage.c \
	's/\t\tmeta.copies_valid = valid;\n//'
mutate stale_copy_stands_in t/040_replicas am/copies.c \
	's/if \(meta->copies_valid == SHERMAN_VALID_FIRST\)\n\t\treturn home;/if (meta->copy == 0)\n\t\treturn home;/'
mutate doubtful_copy_stands_in t/040_replicas am/copies.c \
	's/ && in_doubt\(meta\)\)\n\t\treturn home;/ \&\& false)\n\t\treturn home;/'
mutate last_copy_taken_for_garbage t/040_replicas am/collector.c \
	's/if \(tree_record_copy\(share, &copy\)\)\n\t\treturn false;/(void) copy;/'
mutate given_up_half_stays t/040_replicas am/collector.c \
	's/living != NULL && \(living->valid & half_of\(&records\[i\]\)\) != 0/living != NULL/'
mutate restart_costs_a_copy t/040_replicas am/copies.c \
	's/\tif \(left > 0\)\n\t\treturn left;/\t(void) left;/'
mutate failover_fails_statements t/040_replicas am/failover.c \
	's/\*attempts == ATTEMPTS_MOST\)\n\t\treturn false;\n\t\(\*attempts\)\+\+;\n\t\/\*/true)\n\t\treturn false;\n\t(*attempts)++;\n\t\/*/'
mutate healed_without_comparing t/040_replicas am/heal.c \
	's/\tsherman_copies_repair\(healer->index, healer->opened, &counts\);\n/\t(void) counts;\n/'
