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
mutate foreign_write_leaves test_flight rdma/verbs_flight.c \
	's/if \(ops\[i\]\.opcode != FABRIC_READ && find_window\(flight, &ops\[i\]\) == NULL\)/if (false)/'

# Tenants on one device, and clients of other transports beside, over the device that soft_device plays.
mutate one_domain_for_all_tenants soft/tenants=--verbs,soft0,foreign rdma/verbs_server.c \
	's/domains\[server->channels\[channel\]\.connection->tenant\]/domains[1]/'
mutate granted_outside_of_the_part soft/tenants=--verbs,soft0,parts rdma/units.c \
	's/ \|\| offset < first \|\| offset \+ bytes > end\)/)/'
mutate parts_overlap test_parts rdma/parts.c \
	's/!part_is_empty\(part\) && part->end > offset && part->first < end/false/'
mutate chains_beside_a_device_by_processor soft/tenants=--verbs,soft0,beside rdma/chains.c \
	's/if \(server->verbs != NULL\)/if (false)/'
mutate device_locks_freed_by_processor soft/tenants=--verbs,soft0,locks rdma/channel.c \
	's/if \(!verbs_server_has_locks\(server, instance->tenant\)\)/if (true)/'
mutate failed_device_chain_ends_well soft/tenants=--verbs,soft0,broken rdma/verbs_server.c \
	's/flight_break\(&loop->flight, FABRIC_LOST\)/flight_break(&loop->flight, FABRIC_OK)/'

# Swaps of 16 bits: a device is believed only when it has shown them.
mutate node_believes_the_device soft/swaps=--verbs,soft0,node rdma/verbs_swap.c \
	's/return chain->done \? swap_test_judge\(&trial->test\) : "the device does not answer";/return NULL;/'
mutate node_tries_nothing soft/swaps=--verbs,soft0,node rdma/verbs_server.c \
	's/verbs_try_swaps\(verbs->driver, device\)/verbs->properties.no_masked_swap/'
mutate client_tries_nothing soft/swaps=--verbs,soft0,client rdma/verbs.c \
	's/status = try_swaps\(endpoint, &reason\);/reason = NULL;/'
mutate client_believes_the_device soft/swaps=--verbs,soft0,client rdma/verbs.c \
	's/\*reason = swap_test_judge\(test\);/*reason = NULL;/'
mutate failed_trial_keeps_the_channel soft/swaps=--verbs,soft0,client rdma/verbs.c \
	's/status = renew_channel\(endpoint\);\n\t\}\n\tfree/status = FABRIC_OK;\n\t}\n\tfree/'
mutate trial_leaves_its_words soft/swaps=--verbs,soft0,client rdma/verbs.c \
	's/status = run_trial\(endpoint, &test->clean, 1\);/;/'
mutate trial_looks_at_one_word soft/swaps=--verbs,soft0,client rdma/swap_test.c \
	's/memcmp\(test->found, test->expected, SWAP_TEST_BYTES\) != 0/test->found[1] != test->expected[1]/'
mutate masked_swap_sent_unasked test_flight rdma/verbs_flight.c \
	's/ && !flight->masked_swaps\)/ \&\& false)/'
mutate masked_swap_taken_unasked soft/swaps=--verbs,soft0,node rdma/chains.c \
	's/!verbs_server_takes\(server, chain->ops, count\)/false/'
mutate lane_without_a_mask soft/swaps=--verbs,soft0,good rdma/verbs_flight.c \
	's/request\.mask = \(uint64_t\) FABRIC_LANE_MAX << .*?;/request.mask = UINT64_MAX;/'

# The entry of a work queue, as a Mellanox device reads it.
mutate entry_in_another_byte_order mlx5/swaps=--verbs,mlx5_soft,good rdma/verbs_mlx5.c \
	's/htobe64\(request->mask\)/request->mask/g'
mutate entry_without_its_modifier mlx5/swaps=--verbs,mlx5_soft,good rdma/verbs_mlx5.c \
	's/#define EXTENDED_ON_8_BYTES 9/#define EXTENDED_ON_8_BYTES 0/'
mutate entry_is_not_signaled mlx5/swaps=--verbs,mlx5_soft,good rdma/verbs_mlx5.c \
	's/last \? MLX5_WQE_CTRL_CQ_UPDATE : 0/0 * last/'
mutate old_words_within_completions mlx5/swaps=--verbs,mlx5_soft,good rdma/verbs_mlx5.c \
	's/\.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE/.create_flags = 0/'
mutate any_device_of_any_driver mlx5/swaps=--verbs,soft1,absent rdma/verbs_mlx5.c \
	's/!mlx5->is_supported\(device->context->device\)/false/'
