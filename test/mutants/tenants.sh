# What keeps one client of a memory node from taking what is the others': rounds of the thread that serves all. Sourced by test/mutations.

mutate all_calls_in_one_round test_rounds rdma/server/connection_loop.c \
	's/ && connection->asked == server->round\)/ \&\& server->round == 0)/'
mutate all_extents_in_one_round test_rounds tree/service/service_replicas.c \
	's/for \(uint32_t looked = 0; looked < TABLES_ROUND; looked\+\+\)/for (;;)/'
mutate all_units_freed_in_one_round test_rounds tree/service/service_units.c \
	's/ && freed < QUARANTINE_FREE_UNITS\)/)/'
mutate full_while_in_quarantine test_rounds tree/service/service_space.c \
	's/service->tables.quarantined > 0 \? FABRIC_BUSY : FABRIC_NO_MEMORY/FABRIC_NO_MEMORY/'
mutate dropped_memory_not_counted test_rounds tree/service/service_calls.c \
	's/uint64_t had = use->bytes \+ use->going_bytes;/uint64_t had = use->bytes;/'
mutate dropped_trees_not_counted test_rounds tree/service/service_space.c \
	's/had\[i\] = \(uint32_t\) \(use->trees \+ use->going_trees\);/had[i] = (uint32_t) use->trees;/'
mutate parked_call_forgotten test_rounds rdma/server/requests.c \
	's/(connection->waits = connection->call_progress == before;\n)\t\tconnection_make_due\(server, connection\);/$1/'

# What keeps one tenant from reaching another's, as random calls of one see it.
mutate tenants_any_tree_of_that_id two_tenants tree/service/service_tables.c \
	's/tables->slots\[i - 1\].tree == tree && tables_owns\(owner, &tables->records\[i - 1\]\)/(owner != NULL \&\& tables->slots[i - 1].tree == tree)/'
mutate tenants_any_cluster two_tenants tree/service/service_tables.c \
	's/record->tenant == owner->tenant && record->record.cluster\[0\] == owner->cluster\[0\] &&\s+record->record.cluster\[1\] == owner->cluster\[1\]/record->tenant == owner->tenant/'
mutate tenants_descend_by_id two_tenants tree/service/service_descend.c \
	's/tables_owner\(&service->tables, offset\) == record &&/tables_owner(\&service->tables, offset) != NULL \&\& tables_owner(\&service->tables, offset)->record.tree == record->record.tree \&\&/'
mutate tenants_replay_by_id two_tenants tree/service/service.c \
	's/return record != NULL && record->record.tree == image\[HEADER_TREE\] && tables_owns\(&owner, record\);/return record != NULL \&\& owner.tenant != 99 \&\& record->record.tree == image[HEADER_TREE];/'
mutate tenants_units_of_all two_tenants rdma/memory/apply.h \
	's/return mark == channel->mark \|\|/return mark != 0 ||/'
mutate tenants_one_lock_table two_tenants rdma/memory/memory.h \
	's/return memory->locks \+ \(size_t\) tenant \* MEMORY_LOCK_WORDS;/return memory->locks + 0 * tenant;/'
mutate tenants_clusters_of_all two_tenants rdma/server/requests.c \
	's/instance == NULL \|\| instance->tenant == connection->tenant \?/true ?/'
mutate tenants_channels_of_all two_tenants rdma/server/requests.c \
	's/if \(old != NULL && memcmp\(old->cluster, hello->cluster.*?\n\t\treturn FABRIC_DENIED;//s'
mutate tenants_memory_with_content two_tenants rdma/server/units.c \
	's/zero = drop_pages\(server, offset, bytes\);/zero = true;/; s/\tdrop_pages\(server, offset, bytes\);\n\tif \(server->room_told\)/\tif (server->room_told)/'
mutate tenants_epochs_of_all two_tenants tree/service/service_tables.c \
	's/epochs\[owner->tenant\]\[i\]/epochs[0][i]/g; s/memcmp\(&epoch->owner, owner, sizeof\(\*owner\)\) == 0/true/'
mutate tenants_shares_by_token two_tenants tree/service/service_tables.c \
	's/if \(\(record->record.flags & TREE_RECORD_SHARE\) == 0\)\n\t\{\n\t\tslot->token_list/if (true)\n\t{\n\t\tslot->token_list/'

# Names of tenants, and what each is told.
mutate unproven_tenant_has_a_number test_listen rdma/server/accept.c \
	's/\*tenant = 1;\n/*tenant = tenant_number(connection->server, found->tenant);\n/'
mutate number_for_ever test_listen rdma/server/tenant.c \
	's/if \(left_nothing\(server, i\)\)/if (left_nothing(server, i) \&\& number == 0)/'
mutate number_of_one_who_has_something test_listen rdma/server/tenant.c \
	's/if \(server->memory.instances\[i\].tenant == number\)\s+return false;//'
mutate clusters_of_the_forgotten test_listen rdma/server/tenant.c \
	's/instance->cluster\[0\] = instance->cluster\[1\] = 0;\s+instance->tenant = MEMORY_MAX_TENANTS;//'
mutate epochs_of_the_forgotten test_tenants tree/service/service.c \
	's/tables_forget_epochs\(tables, tenant\);//'
mutate figures_of_all_told test_tenants tree/service/service_calls.c \
	's/if \(tenant == 0\)/if (tenant < TABLES_TENANTS)/'
