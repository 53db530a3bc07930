# What keeps one client of a memory node from taking what is the others': rounds of the thread that serves all. Sourced by test/mutations.

mutate all_calls_in_one_round test_rounds handle_input \
	's/ && connection->asked == server->round\)/ \&\& server->round == 0)/'
mutate all_extents_in_one_round test_rounds replica_find \
	's/for \(uint32_t looked = 0; looked < TABLES_ROUND; looked\+\+\)/for (;;)/'
mutate all_units_freed_in_one_round test_rounds given_end \
	's/ && freed < QUARANTINE_FREE_UNITS\)/)/'
mutate full_while_in_quarantine test_rounds service_slot \
	's/service->tables.quarantined > 0 \? FABRIC_BUSY : FABRIC_NO_MEMORY/FABRIC_NO_MEMORY/'
mutate dropped_memory_not_counted test_rounds describe_memory \
	's/uint64_t had = use->bytes \+ use->going_bytes;/uint64_t had = use->bytes;/'
mutate dropped_trees_not_counted test_rounds service_slot \
	's/had\[i\] = \(uint32_t\) \(use->trees \+ use->going_trees\);/had[i] = (uint32_t) use->trees;/'
mutate parked_call_forgotten test_rounds run_service_call \
	's/(connection->waits = connection->call_progress == before;\n)\t\tconnection_make_due\(server, connection\);/$1/'

# What keeps one tenant from reaching another's, as random calls of one see it.
mutate tenants_any_tree_of_that_id two_tenants tables_find \
	's/tables->slots\[i - 1\].tree == tree && tables_owns\(owner, &tables->records\[i - 1\]\)/(owner != NULL \&\& tables->slots[i - 1].tree == tree)/'
mutate tenants_any_cluster two_tenants tables_owns \
	's/record->tenant == owner->tenant && record->record.cluster\[0\] == owner->cluster\[0\] &&\s+record->record.cluster\[1\] == owner->cluster\[1\]/record->tenant == owner->tenant/'
mutate tenants_descend_by_id two_tenants service_descend.c:node_take \
	's/tables_owner\(&service->tables, offset\) == record &&/tables_owner(\&service->tables, offset) != NULL \&\& tables_owner(\&service->tables, offset)->record.tree == record->record.tree \&\&/'
mutate tenants_replay_by_id two_tenants image_is_of_owner \
	's/return record != NULL && record->record.tree == image\[HEADER_TREE\] && tables_owns\(&owner, record\);/return record != NULL \&\& owner.tenant != 99 \&\& record->record.tree == image[HEADER_TREE];/'
mutate tenants_units_of_all two_tenants apply_may_touch \
	's/return mark == channel->mark \|\|/return mark != 0 ||/'
mutate tenants_one_lock_table two_tenants memory_tenant_locks \
	's/return memory->locks \+ \(size_t\) tenant \* MEMORY_LOCK_WORDS;/return memory->locks + 0 * tenant;/'
mutate tenants_clusters_of_all two_tenants check_tenant \
	's/instance == NULL \|\| instance->tenant == connection->tenant \?/true ?/'
mutate tenants_channels_of_all two_tenants kill_old_channel \
	's/if \(old != NULL && memcmp\(old->cluster, hello->cluster.*?\n\t\treturn FABRIC_DENIED;//s'
mutate tenants_memory_with_content two_tenants fabric_server_commit \
	's/zero = drop_pages\(server, offset, bytes\);/zero = true;/' \
	fabric_server_release \
	's/\tdrop_pages\(server, offset, bytes\);\n\tif \(server->room_told\)/\tif (server->room_told)/'
mutate tenants_epochs_of_all two_tenants tables_epoch \
	's/epochs\[owner->tenant\]\[i\]/epochs[0][i]/' \
	tables_epoch_set \
	's/epochs\[owner->tenant\]\[i\]/epochs[0][i]/2' \
	tables_epoch \
	's/memcmp\(&epoch->owner, owner, sizeof\(\*owner\)\) == 0/true/'
mutate tenants_shares_by_token two_tenants service_tables.c:slot_enter \
	's/if \(\(record->record.flags & TREE_RECORD_SHARE\) == 0\)\n\t\{\n\t\tslot->token_list/if (true)\n\t{\n\t\tslot->token_list/'

# Names of tenants, and what each is told.
mutate unproven_tenant_has_a_number test_listen find_key \
	's/\*tenant = 1;\n/*tenant = tenant_number(connection->server, found->tenant);\n/'
mutate number_for_ever test_listen free_number \
	's/if \(left_nothing\(server, i\)\)/if (left_nothing(server, i) \&\& number == 0)/'
mutate number_of_one_who_has_something test_listen left_nothing \
	's/if \(server->memory.instances\[i\].tenant == number\)\s+return false;//'
mutate clusters_of_the_forgotten test_listen fabric_server_forget_tenant \
	's/instance->cluster\[0\] = instance->cluster\[1\] = 0;\s+instance->tenant = MEMORY_MAX_TENANTS;//'
mutate epochs_of_the_forgotten test_tenants service_drop_tenant \
	's/tables_forget_epochs\(tables, tenant\);//'
mutate figures_of_all_told test_tenants describe_memory \
	's/if \(tenant == 0\)/if (tenant < TABLES_TENANTS)/'
