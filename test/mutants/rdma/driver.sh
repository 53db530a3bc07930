# Mutants of rdma/driver: its safeguards, removed one at a time (test/README). Sourced.

mutate device_of_any_name ibverbs/conformance=--verbs,soft1 device_open \
	's/if \(name != NULL && strcmp\(name, ibv_get_device_name\(list\[i\]\)\) != 0\)\n\t\t\tcontinue;/if (name != NULL \&\& strcmp(name, ibv_get_device_name(list[i])) == 0)\n\t\t\tcontinue;/'
mutate memory_of_the_driver_is_read_only ibverbs/conformance=--verbs,soft1 verbs_memory_register \
	's/flags \|= IBV_ACCESS_REMOTE_WRITE \| IBV_ACCESS_REMOTE_ATOMIC;/flags |= 0;/'
mutate memory_that_is_read_may_be_changed ibverbs/tenants=--verbs,soft1,readers verbs_memory_register \
	's/if \(access == VERBS_CHANGES\)/if (access != VERBS_NOTHING)/'
mutate readers_change_by_the_driver ibverbs/tenants=--verbs,soft1,readers pair_to_init \
	's/reads_only \? 0 : //'
mutate last_request_not_signaled ibverbs/conformance=--verbs,soft1 verbs_queue_post \
	's/works\[count - 1\]\.send_flags \|= IBV_SEND_SIGNALED;/;/'
