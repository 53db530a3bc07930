# The cost model: what is left out of it, or counted twice. Sourced by test/mutations.

mutate bucket_has_no_queue test_cost_chains serve_in_bucket \
	's/later\(from, \*bucket\) \+ cost_parameters\.bucket/from + cost_parameters.bucket/'
mutate one_bucket_for_all test_cost_chains bucket_of \
	's/\(op->offset \/ 8\) % COST_BUCKETS/(op->offset \/ 8) % 1u/'
mutate chip_locks_in_host_memory test_cost_chains cost_serve \
	's/op->region == FABRIC_LOCKS && placement->chip_locks/op->region == FABRIC_LOCKS \&\& false/'
mutate node_words_on_chip test_cost_chains cost_serve \
	's/op->region == FABRIC_LOCKS && placement->chip_locks/placement->chip_locks/'
mutate release_takes_the_bucket test_cost_chains cost_serve \
	's/= placement->release_by_write &&/= false \&\& placement->release_by_write \&\&/'
mutate request_has_no_bytes test_cost_chains cost_send \
	's/flight->bytes \+= bytes;//'
mutate request_does_not_use_the_wire test_cost_chains cost_send \
	's/use\(requester, COST_OUT, now, bytes \* p->wire_byte, &wait\);//'
mutate answer_does_not_use_the_wire test_cost_chains cost_answer \
	's/use\(responder, COST_OUT, now, duration, &flight->wait\);//'
mutate doorbell_for_each_operation test_cost_chains cost_send \
	's/\(count > 1 \? p->pcie_read : 0\)/(count > 1 ? (uint64_t) count * p->pcie_read : 0)/'
mutate chain_is_two_round_trips test_cost_chains cost_send \
	's/sent \+= request \+ bytes \* p->wire_byte;/sent += request + bytes * p->wire_byte + (i > 0 ? 2 * p->wire_latency : 0);/'
mutate payload_always_inline test_cost_chains cost_send \
	's/write && ops\[i\]\.length > p->inline_bytes/write \&\& false/'
mutate read_without_pcie test_cost_chains cost_serve \
	's/ready \+= p->pcie_read \+ op->length \* p->pcie_byte;//'
mutate client_work_left_out test_cost_chains cost_send \
	's/now \+ delay \+ p->post/now + p->post/'
mutate search_left_out test_cost_chains cost_execute \
	's/client->debt = read_bytes \* cost_parameters\.check_byte/client->debt = 0 * read_bytes * cost_parameters.check_byte/'
mutate processors_have_no_queue test_cost_chains cost_process \
	's/use\(host, COST_PROCESSORS, now, duration \/ p->processors, &wait\);//'
mutate call_touches_nothing test_cost_chains cost_process \
	's/p->call \+ touched \* p->check_byte/p->call + 0 * touched/'
mutate message_has_no_frame test_cost_chains message_op \
	's/\.length = bytes \+ cost_parameters\.call_header/.length = bytes/'
