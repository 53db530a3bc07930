# Mutants of tree: its safeguards, removed one at a time (test/README). Sourced.

mutate wal_positions_of_the_future test_unverified tree_wal_position_is_proven \
	's/return i < ends->count && lsn <= ends->limit\[i\];/return i >= ends->count || lsn <= ends->limit[i];/'
mutate lost_chains_are_few test_deadline LOST_ATTEMPTS \
	's/#define LOST_ATTEMPTS 64/#define LOST_ATTEMPTS 3/'
mutate closed_node_used test_nodes node_is_open \
	's/return \(__atomic_load_n\(&shared->closed, __ATOMIC_RELAXED\) & 1u << memory_node\) == 0;/return shared != NULL || memory_node != 0;/'
mutate closed_of_the_low_nodes test_many_nodes node_is_open \
	's/& 1u << memory_node\) == 0;/\& 1u << memory_node % 8) == 0;/'
mutate copy_of_the_low_nodes test_many_nodes tree_record_replica \
	's/>> TREE_RECORD_REPLICA_SHIFT & TREE_RECORD_REPLICA_MASK;/>> TREE_RECORD_REPLICA_SHIFT \& 0xfu;/'
