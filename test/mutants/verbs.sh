# Safeguards of the verbs transport, against the device that test_flight plays. Sourced by test/mutations.

mutate missing_answer_believed test_flight chain_is_whole \
	's/memcmp\(data, &flight->missing, sizeof\(flight->missing\)\) == 0/false/'
mutate result_of_an_older_chain test_flight make_request \
	's/memcpy\(data, &flight->missing, sizeof\(flight->missing\)\);/;/'
mutate write_overtakes_atomic test_flight needs_fence \
	's/fence = flight->reads_pending \|\| flight->atomics_pending;/fence = flight->reads_pending;/'
mutate fence_for_software_device test_flight postable \
	's/if \(flight->device_fences\)/if (true)/'
mutate fenced_request_not_held_back test_flight postable \
	's/if \(chain->requests\[first\]\.fence && flight->posted != flight->completed\)/if (false)/'
mutate lock_word_read_plainly test_flight make_request \
	's/if \(is_word_read\(op\)\)/if (false)/'
mutate foreign_write_leaves test_flight flight_post \
	's/if \(ops\[i\]\.opcode != FABRIC_READ && find_window\(flight, &ops\[i\]\) == NULL\)/if (false)/'

# Tenants on one device, and clients of other transports beside, over the device that soft_device plays.
mutate one_domain_for_all_tenants soft/tenants=--verbs,soft0,foreign domain_of \
	's/domains\[server->channels\[channel\]\.connection->tenant\]/domains[1]/'
mutate granted_outside_of_the_part soft/tenants=--verbs,soft0,parts fabric_server_commit \
	's/ \|\| offset < first \|\| offset \+ bytes > end\)/)/'
mutate parts_overlap test_parts gap_end \
	's/!part_is_empty\(part\) && part->end > offset && part->first < end/false/'
mutate chains_beside_a_device_by_processor soft/tenants=--verbs,soft0,beside chains.c:run_chain \
	's/if \(server->verbs != NULL\)/if (false)/'
mutate device_locks_freed_by_processor soft/tenants=--verbs,soft0,locks instance_advance \
	's/if \(!verbs_server_has_locks\(server, instance->tenant\)\)/if (true)/'
mutate failed_device_chain_ends_well soft/tenants=--verbs,soft0,broken verbs_server_poll \
	's/flight_break\(&loop->flight, FABRIC_LOST\)/flight_break(&loop->flight, FABRIC_OK)/'

# The driver, over the libibverbs that soft_verbs plays.
mutate last_request_not_signaled ibverbs/conformance=--verbs,soft1 verbs_queue_post \
	's/works\[count - 1\]\.send_flags \|= IBV_SEND_SIGNALED;/;/'

# The client's half, the memory node's domains, the driver's devices.
mutate parents_queue_ended_by_a_child soft/clients=--verbs,soft0,fork verbs_disconnect \
	's/if \(getpid\(\) == verbs->owner\)/if (getpid() > 0)/'
mutate grant_with_a_rest_taken soft/conformance=--verbs,soft0 verbs.c:take_channel \
	's/payload\.failed \|\| payload\.position != payload\.bytes/payload.position == payload.bytes/'
mutate windows_read_in_another_order soft/conformance=--verbs,soft0 verbs_get_grant \
	's/(grant->windows\[i\]\.first = frame_get64\(payload\);\n)(\t\tgrant->windows\[i\]\.end = frame_get64\(payload\);\n)/$2$1/'
mutate whole_memory_in_each_domain soft/tenants=--verbs,soft0,parts,foreign,restart,beside,locks register_memory \
	's/server->memory\.nodes \+ part->first,\s+part->end - part->first, true/server->memory.nodes, part->end, true/'
mutate lock_words_of_the_first_tenant soft/tenants=--verbs,soft0,parts,foreign,restart,beside,locks register_memory \
	's/memory_tenant_locks\(&server->memory, tenant\)/memory_tenant_locks(\&server->memory, 1)/'
mutate memory_of_the_driver_is_read_only ibverbs/conformance=--verbs,soft1 verbs_memory_register \
	's/IBV_ACCESS_REMOTE_READ \| IBV_ACCESS_REMOTE_WRITE \| IBV_ACCESS_REMOTE_ATOMIC;\n\tif \(memory/IBV_ACCESS_REMOTE_READ;\n\tif (memory/'
mutate device_of_any_name ibverbs/conformance=--verbs,soft1 device_open \
	's/if \(name != NULL && strcmp\(name, ibv_get_device_name\(list\[i\]\)\) != 0\)\n\t\t\tcontinue;/if (name != NULL \&\& strcmp(name, ibv_get_device_name(list[i])) == 0)\n\t\t\tcontinue;/'
