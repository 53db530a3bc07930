# Mutants of rdma/shm: its safeguards, removed one at a time (test/README). Sourced.

mutate cut_memory_believed test_server shm_execute \
	's/return guard_is_lost\(([^?]*)\) \? memory_lost\(endpoint\) : status;/(void) memory_lost;\n\treturn status;/s'
mutate first_word_first test_recovery shm_abandon_write \
	's/words,\s+words - stored\);/stored, 0);/s'
