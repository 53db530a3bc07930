# Mutants of rdma/workers: its safeguards, removed one at a time (test/README). Sourced.

mutate end_of_a_request_told_before_its_status test_proxy place_finish \
	's/\tplace->status = \(uint32_t\) status;\n//'
mutate detail_of_a_lost_chain_forgotten test_proxy place_finish \
	's/status != FABRIC_OK && detail/false \&\& detail/'
mutate lost_chains_not_counted test_proxy place_finish \
	's/worker_count_up\(&worker->state->lost, 1\)/worker_count_up(\&worker->state->lost, 0)/'
mutate predecessor_lives_on test_proxy link_connect \
	's/fabric_connect_after\(link->fabric, link->record->address, &link->record->channel,/fabric_connect_after(link->fabric, link->record->address, &(FabricChannel){0},/'
mutate reset_does_not_wait test_proxy link_ready \
	's/status = fabric_reset\(link->endpoint\);/link->endpoint->doubt = false;/'
mutate reset_tried_for_each_client test_proxy_remote link_ready \
	's/if \(asked < link->tried\)/if (false)/'
mutate results_to_the_wrong_slot test_proxy chain_finish \
	's/proxy_slot\(worker->area, slot\)->room/proxy_slot(worker->area, slot ^ 1)->room/'
mutate reads_to_the_wrong_slot test_proxy proxy_worker.c:take_chain \
	's/ops\[i\]\.buffer = slot->room/ops[i].buffer = (count > 2 ? slot + 1 : slot)->room/'
mutate chain_for_a_dead_channel test_proxy serve_chain \
	's/ \|\| link->epoch != place->epoch\)\n\t\{\n\t\tslot->taken/)\n\t{\n\t\tslot->taken/'
mutate slot_free_with_chain_under_way test_proxy_remote serve_slot \
	's/if \(worker->clients\[number\]\.flights > 0\)\n\t\t\treturn SERVE_LATER;\n//'
mutate greedy_client_first test_proxy serve_range \
	's/any \|= result == SERVE_DONE;/while (result == SERVE_DONE) { any = true; result = serve_slot(worker, slot); }/'
mutate one_memory_node_holds_up_all test_proxy_remote proxy_worker.c:worker_wait \
	's/any = serve_round\(worker\);\n\tworker->nested = false;/worker->nested = false;/'
mutate begun_chain_forgotten test_proxy adopt_slots \
	's/place->position < slot->taken\)/place->position > slot->taken)/'
mutate begun_chain_run_again test_proxy adopt_slots \
	's/\t\tif \(!slot_is_ours\(worker, i, &word\)\)\n\t\t\tcontinue;\n\t\tfor \(uint32_t j/\t\tif (!slot_is_ours(worker, i, &word))\n\t\t\tcontinue;\n\t\tslot->taken--;\n\t\tfor (uint32_t j/'
