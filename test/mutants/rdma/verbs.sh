# Mutants of rdma/verbs: its safeguards, removed one at a time (test/README). Sourced.

mutate grant_with_a_rest_taken soft/conformance=--verbs,soft0 verbs.c:take_channel \
	's/payload\.failed \|\| payload\.position != payload\.bytes/payload.position == payload.bytes/'
mutate parents_queue_ended_by_a_child soft/clients=--verbs,soft0,fork verbs_disconnect \
	's/if \(getpid\(\) == verbs->owner\)/if (getpid() > 0)/'
mutate missing_answer_believed test_flight chain_is_whole \
	's/memcmp\(data, &flight->missing, sizeof\(flight->missing\)\) == 0/false/'
mutate write_overtakes_atomic test_flight needs_fence \
	's/fence = flight->reads_pending \|\| flight->atomics_pending;/fence = flight->reads_pending;/'
mutate result_of_an_older_chain test_flight make_request \
	's/memcpy\(data, &flight->missing, sizeof\(flight->missing\)\);/;/'
mutate lock_word_read_plainly test_flight make_request \
	's/if \(is_word_read\(op\)\)/if (false)/'
mutate fence_for_software_device test_flight postable \
	's/if \(flight->device_fences\)/if (true)/'
mutate fenced_request_not_held_back test_flight postable \
	's/if \(chain->requests\[first\]\.fence && flight->posted != flight->completed\)/if (false)/'
mutate foreign_write_leaves test_flight flight_post \
	's/if \(ops\[i\]\.opcode != FABRIC_READ && find_window\(flight, &ops\[i\]\) == NULL\)/if (false)/'
mutate windows_read_in_another_order soft/conformance=--verbs,soft0 verbs_get_grant \
	's/(grant->windows\[i\]\.first = frame_get64\(payload\);\n)(\t\tgrant->windows\[i\]\.end = frame_get64\(payload\);\n)/$2$1/'
