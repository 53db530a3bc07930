# Safeguards of network clients' chains. Sourced by test/mutations.

mutate parked_chain_goes_on test_tcp channel_kill \
	's/connection->chain->drop\(server, connection\);/(void) 0;/'
mutate reply_before_operation test_tcp run_own_chain \
	's/if \(status != APPLY_STRIPE_TAKEN\)/if (true)/; s/status == APPLY_DONE \? FABRIC_OK : FABRIC_FENCED/FABRIC_OK/'
mutate parked_chain_is_overtaken test_tcp takes_requests \
	's/!connection->attaching && !parked\(connection\) &&/!connection->attaching \&\&/'
mutate channel_granted_too_early test_tcp kill_old_channel \
	's/channel_kill\(server, hello->old_channel\);.*?return channel_settle\(server, hello->old_channel\) \? FABRIC_OK : FABRIC_TIMED_OUT;/return FABRIC_OK;/s'
mutate fenced_client_not_told conformance=--tcp chains_handle \
	's/FabricStatus status = FABRIC_FENCED;/FabricStatus status = FABRIC_LOST;/'
mutate foreign_unit_not_checked test_listen apply_may_touch \
	's/return mark == channel->mark \|\|/return mark != 0 ||/'
mutate others_not_looked_at test_talker server.c:look_once \
	's/ && \+\+server->looks % TALKER_LOOKS != 0//'
mutate lock_word_of_another_tenant test_listen memory_tenant_locks \
	's/return memory->locks \+ \(size_t\) tenant \* MEMORY_LOCK_WORDS;/(void) tenant;\n\treturn memory->locks;/'
mutate unlock_by_write conformance chain_check \
	's/\(\*atomic_seen \|\| op->region == FABRIC_LOCKS\)/*atomic_seen/'
mutate instance_of_another_tenant test_listen check_tenant \
	's/instance == NULL \|\| instance->tenant == connection->tenant \? FABRIC_OK : FABRIC_DENIED/(void) instance, FABRIC_OK/'
mutate removed_key_still_serves test_listen fabric_server_set_keys \
	's/fabric_keys_find\(keys, connection->identity\) != NULL\)/true)/'
mutate write_not_staged test_tcp apply_write \
	's/if \(channel->stage != NULL\)/if (false)/'
mutate staged_write_not_finished test_tcp describe_dead \
	's/finish_staged_write\(server, word, intent, offset, bytes\);/(void) word;/'
mutate stage_of_another_write test_tcp finish_staged_write \
	's/stage->odd == odd && stage->intent == intent &&//'
mutate silent_peer_stays test_tcp network_tune \
	's/setsockopt\(descriptor, SOL_SOCKET, SO_KEEPALIVE.*?;//'
mutate no_key_needed test_listen listen_network \
	's/!server->options.insecure_loopback \|\| !loopback/false/'
mutate wait_without_deadline conformance=--tcp network_sleep \
	's/if \(now >= deadline\)\n\t\treturn FABRIC_TIMED_OUT;//'
mutate parked_chain_in_lost_memory test_tcp chains_continue \
	's/!apply_may_go_on\(&chain->channel, &chain->run\)/false/'

# ---- answers of a memory node that is not ours, or not well
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
# ---- chains that go on when their channel or their memory is another one's
mutate chain_goes_on_in_units_of_others test_tcp apply_may_go_on \
	's/\t\tif \(op->region == FABRIC_NODES && \(op->opcode.*?return false;\n//s'
mutate reset_leaves_it_broken test_tcp tcp_reset \
	's/\ttcp->broken = FABRIC_OK;\n//'
mutate execute_has_a_posted_ones_place "test_tcp conformance=--tcp" chain_of \
	's/ticket >= EXECUTE_TICKETS \? TRANSPORT_TICKETS : ticket % TRANSPORT_TICKETS/ticket % TRANSPORT_TICKETS/'
mutate only_next_operation_looked_at test_tcp apply_may_go_on \
	's/for \(int i = run->next; i < run->count; i\+\+\)/for (int i = run->next; i <= run->next; i++)/'
# ---- ends of chains
mutate chains_outlive_reset test_refusals tcp_reset \
	's/\tmemset\(tcp->chains, 0, sizeof\(tcp->chains\)\);\n//'
mutate under_way_outlives_reset test_tcp tcp_reset \
	's/\ttcp->under_way = 0;\n//'
mutate posted_after_the_break test_refusals tcp_post \
	's/\tif \(tcp->broken != FABRIC_OK\)\n\t\treturn tcp->broken;\n//'
mutate fenced_is_told_as_lost test_refusals chains_fail \
	's/tcp->broken = status == FABRIC_FENCED \? FABRIC_FENCED : FABRIC_LOST;/tcp->broken = FABRIC_LOST;/'
mutate full_batch_waits test_tcp tcp_post \
	's/ \|\| buffer_used\(&tcp->link\.output\) >= BATCH_BYTES//'
mutate more_places_than_there_are test_refusals tcp.c:say_hello \
	's/\tif \(capabilities\.max_outstanding > TRANSPORT_TICKETS\)\n.*?;\n//'
mutate deadline_begins_anew test_refusals tcp_wait \
	's/if \(deadline == 0\)\n\s+(deadline = )/$1/'
