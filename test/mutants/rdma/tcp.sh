# Mutants of rdma/tcp: its safeguards, removed one at a time (test/README). Sourced.

mutate execute_has_a_posted_ones_place "test_tcp conformance=--tcp" chain_of \
	's/ticket >= EXECUTE_TICKETS \? TRANSPORT_TICKETS : ticket % TRANSPORT_TICKETS/ticket % TRANSPORT_TICKETS/'
mutate chain_answered_twice test_refusals tcp.c:take_chain \
	's/chain->answered \|\|\s+frame->length/frame->length/'
mutate answer_of_another_length test_refusals tcp.c:take_chain \
	's/if \(chain->answered \|\|\s+frame->length != .*?\)\)\n\t\treturn false;/if (chain->answered)\n\t\treturn false;/s'
mutate answer_of_another_chain test_refusals tcp.c:take_chain \
	's/\tif \(chain->ticket != frame->request\)\n\t\treturn tcp->broken != FABRIC_OK;\n//'
mutate strange_answer_breaks_nothing test_refusals tcp.c:take_chain \
	's/return tcp->broken != FABRIC_OK;\n/return true;\n/'
mutate refused_chain_has_data test_refusals tcp.c:take_chain \
	's/\tif \(status == FABRIC_OK\)\n\t\tchain_take_reply/\tchain_take_reply/'
mutate fenced_is_told_as_lost test_refusals chains_fail \
	's/tcp->broken = status == FABRIC_FENCED \? FABRIC_FENCED : FABRIC_LOST;/tcp->broken = FABRIC_LOST;/'
mutate posted_after_the_break test_refusals tcp_post \
	's/\tif \(tcp->broken != FABRIC_OK\)\n\t\treturn tcp->broken;\n//'
mutate full_batch_waits test_tcp tcp_post \
	's/ \|\| buffer_used\(&tcp->link\.output\) >= BATCH_BYTES//'
mutate deadline_begins_anew test_refusals tcp_wait \
	's/if \(deadline == 0\)\n\s+(deadline = )/$1/'
mutate more_places_than_there_are test_refusals tcp.c:say_hello \
	's/\tif \(capabilities\.max_outstanding > TRANSPORT_TICKETS\)\n.*?;\n//'
mutate reset_leaves_it_broken test_tcp tcp_reset \
	's/\ttcp->broken = FABRIC_OK;\n//'
mutate chains_outlive_reset test_refusals tcp_reset \
	's/\tmemset\(tcp->chains, 0, sizeof\(tcp->chains\)\);\n//'
mutate under_way_outlives_reset test_tcp tcp_reset \
	's/\ttcp->under_way = 0;\n//'
