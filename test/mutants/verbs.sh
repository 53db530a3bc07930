# Safeguards of the verbs transport, against the device that test_flight plays. Sourced by test/mutations.

mutate missing_answer_believed test_flight rdma/verbs_flight.c \
	's/memcmp\(data, &flight->missing, sizeof\(flight->missing\)\) == 0/false/'
mutate result_of_an_older_chain test_flight rdma/verbs_flight.c \
	's/memcpy\(data, &flight->missing, sizeof\(flight->missing\)\);/;/'
mutate write_overtakes_atomic test_flight rdma/verbs_flight.c \
	's/fence = flight->reads_pending \|\| flight->atomics_pending;/fence = flight->reads_pending;/'
mutate fence_for_software_device test_flight rdma/verbs_flight.c \
	's/if \(flight->device_fences\)/if (true)/'
mutate fenced_request_not_held_back test_flight rdma/verbs_flight.c \
	's/if \(chain->requests\[first\]\.fence && flight->posted != flight->completed\)/if (false)/'
mutate lock_word_read_plainly test_flight rdma/verbs_flight.c \
	's/if \(is_word_read\(op\)\)/if (false)/'
