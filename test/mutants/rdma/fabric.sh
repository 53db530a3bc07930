# Mutants of rdma/fabric: its safeguards, removed one at a time (test/README). Sourced.

mutate doubt_forgotten conformance 'chain_ended fabric_post fabric_reset' \
	's/endpoint->doubt = true;/endpoint->doubt = false;/'
mutate readers_post_anything conformance=--tcp check_chain \
	's/!endpoint->reader \|\| chain_is_readers\(ops, count\)/true/'
mutate readers_over_any_transport conformance fabric_connect_after \
	's/fabric->options\.reader && !transport->readers/false/'
mutate lent_tls_closed test_security fabric_close \
	's/if \(fabric->tls != fabric->options\.tls\)\n\t\t//'
mutate lent_tls_not_taken test_security fabric_open \
	's/opened->tls = opened->options\.tls;//'
mutate fault_tears_nothing test_fault is_torn \
	's/return op->region == FABRIC_NODES &&/return false \&\& op->region == FABRIC_NODES \&\&/'
mutate fault_delivers_what_the_caller_has_now test_fault hold_back \
	's/late->ops\[i\]\.buffer = late->data\[i\];//'
mutate fault_one_operation_later test_fault run_touched \
	's/if \(fault->operations == fault->plan\.fail_operation\)/if (fault->operations == fault->plan.fail_operation + 1)/'
mutate fault_vouches_for_what_it_tears test_fault limit_capabilities \
	's/endpoint->capabilities\.flags &= ~FABRIC_CAP_OPERATION_ATOMIC;//'
mutate fault_delivers_twice test_fault fabric_fault_deliver \
	's/\tfault->late->count = 0;\n//'
mutate fault_leaves_its_mark test_fault fault.c:fault_release \
	's/endpoint->capabilities\.flags = fault->flags_below;//'
