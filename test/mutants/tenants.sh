# What keeps one client of a memory node from taking what is the others': rounds of the thread that serves all. Sourced by test/mutations.

mutate all_calls_in_one_round test_rounds rdma/connection.c \
	's/ && connection->asked == server->round\)/ \&\& server->round == 0)/'
mutate all_extents_in_one_round test_rounds tree/service_copies.c \
	's/for \(uint32_t looked = 0; looked < TABLES_ROUND; looked\+\+\)/for (;;)/'
mutate all_units_freed_in_one_round test_rounds tree/service_units.c \
	's/ && freed < QUARANTINE_FREE_UNITS\)/)/'
mutate full_while_in_quarantine test_rounds tree/service_calls.c \
	's/service->tables.quarantined > 0 \? FABRIC_BUSY : FABRIC_NO_MEMORY/FABRIC_NO_MEMORY/'
mutate dropped_memory_not_counted test_rounds tree/service_calls.c \
	's/uint64_t had = use->bytes \+ use->going_bytes;/uint64_t had = use->bytes;/'
mutate dropped_trees_not_counted test_rounds tree/service_calls.c \
	's/had\[i\] = \(uint32_t\) \(use->trees \+ use->going_trees\);/had[i] = (uint32_t) use->trees;/'
mutate parked_call_forgotten test_rounds rdma/requests.c \
	's/(connection->waits = connection->call_progress == before;\n)\t\tconnection_make_due\(server, connection\);/$1/'
