# Safeguards of am/ when memory nodes are lost. Sourced by script/test long mutations-server.

mutate unreachable_taken_for_broken t/034_rebuild look_at_index \
	's/if \(state == SHERMAN_BROKEN\)/if (state >= SHERMAN_UNREACHABLE)/'
mutate all_gone_when_cut_off t/034_rebuild time_until_gone \
	's/ \|\| sherman_shared->attached_since == 0\)/)/'
mutate tries_not_limited t/034_rebuild sherman_rebuild_is_due \
	's/\(!rebuild->manual && rebuild->tries < \(uint32\) sherman_rebuild_tries\)/!rebuild->manual/'
mutate tries_of_a_dead_server_go_on t/034_rebuild rebuilds.c:resume \
	's/\|\| !rebuild->running\)\n\t\treturn;/|| rebuild->running)\n\t\treturn;/'
mutate leftovers_forgotten t/034_rebuild sherman_rebuild_relation_made \
	's/\tsherman_rebuild_made\(copying, relation\);\n/\t(void) relation;\n/'
mutate table_of_others_worked_on t/034_rebuild begin_on_table \
	's/ConditionalLockRelationOid\(rebuild->heap, ShareUpdateExclusiveLock\)/ConditionalLockRelationOid(rebuild->heap, AccessShareLock)/'
mutate good_ones_stay_noted t/034_rebuild look_at_indexes \
	's/\tforget_good\(\);\n//' \
	forget_good \
	's/static void\nforget_good/static pg_attribute_unused() void\nforget_good/'

# ---- at a start, and once
mutate broken_indexes_not_told t/052_rebuild_all look_at_indexes \
	's/if \(tell\)/if (false)/'
mutate told_only_where_rebuilt t/052_rebuild_all sherman_rebuild_wanted \
	's/!sherman_rebuild_works\(\) && plan.looked/!sherman_rebuild_works()/'
mutate promotion_not_told t/006_standby sherman_recovery_start \
	's/\tshared->promoted = [^;]*;/\t(void) is_standby;/'
mutate wish_not_heard t/052_rebuild_all sherman_rebuild_works \
	's/return sherman_auto_rebuild \|\| [^;]*;/return sherman_auto_rebuild;/'
