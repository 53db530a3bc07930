# Safeguards of am/ when memory nodes are lost. Sourced by script/test-mutations-server.

mutate unreachable_taken_for_broken t/034_rebuild am/rebuild.c \
	's/if \(state == SHERMAN_BROKEN\)/if (state >= SHERMAN_UNREACHABLE)/'
mutate all_gone_when_cut_off t/034_rebuild am/pool.c \
	's/ \|\| sherman_shared->attached_since == 0\)/)/'
mutate tries_not_limited t/034_rebuild am/rebuilds.c \
	's/\(!rebuild->manual && rebuild->tries < \(uint32\) sherman_rebuild_tries\)/!rebuild->manual/'
mutate tries_of_a_dead_server_go_on t/034_rebuild am/rebuilds.c \
	's/\|\| !rebuild->running\)\n\t\treturn;/|| rebuild->running)\n\t\treturn;/'
mutate leftovers_forgotten t/034_rebuild am/rebuild.c \
	's/\tsherman_rebuild_made\(copying, relation\);\n/\t(void) relation;\n/'
mutate table_of_others_worked_on t/034_rebuild am/rebuild.c \
	's/ConditionalLockRelationOid\(rebuild->heap, ShareUpdateExclusiveLock\)/ConditionalLockRelationOid(rebuild->heap, AccessShareLock)/'
mutate good_ones_stay_noted t/034_rebuild am/rebuild.c \
	's/\tforget_good\(\);\n//; s/static void\nforget_good/static pg_attribute_unused() void\nforget_good/'
