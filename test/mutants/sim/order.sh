# Safeguards that the simulator alone is asked about: test/mutations --sim. Sourced.

mutate unlock_before_the_writes sim_torture tree/lock.c \
	's/status = access_execute\(tree, hold->memory_node, writes, count \+ 1\);/status = access_execute(tree, hold->memory_node, &writes[count], 1);\n\t\tif (status == TREE_OK && count > 0)\n\t\t\tstatus = access_execute(tree, hold->memory_node, writes, count);/'
mutate read_before_lock sim_torture tree/lock.c \
	's/status = access_execute\(tree, hold->memory_node, ops, with_read \? 2 : 1\);/if (with_read)\n\t\t(void) access_execute(tree, hold->memory_node, &ops[1], 1);\n\tstatus = access_execute(tree, hold->memory_node, ops, 1);/'
mutate lost_unlock_taken_for_landed sim_torture tree/lock.c \
	's/if \(word == hold->word\) \/\* it did not/if (false) \/* it did not/'
mutate doubt_not_ended sim_torture tree/access.c \
	's/fabric = fabric_reset\(client->options.endpoints\[memory_node\]\);/fabric = FABRIC_OK;/'
mutate generation_not_raised_by_split sim_torture tree/split.c \
	's/uint64_t left_generation = old\[HEADER_GENERATION\] \+ 1;/uint64_t left_generation = old[HEADER_GENERATION];/'
mutate locks_freed_while_channels_live sim_torture rdma/requests.c \
	's/if \(instance_kill\(server, instance_number\(server, instance\)\)\)/if (true)/'
