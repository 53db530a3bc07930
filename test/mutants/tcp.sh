# Safeguards of network clients' chains. Sourced by test/mutations.

mutate parked_chain_goes_on test_tcp rdma/server/channel.c \
	's/connection->chain->drop\(server, connection\);/(void) 0;/'
mutate reply_before_operation test_tcp rdma/server/chains.c \
	's/if \(status != APPLY_STRIPE_TAKEN\)/if (true)/; s/status == APPLY_DONE \? FABRIC_OK : FABRIC_FENCED/FABRIC_OK/'
mutate parked_chain_is_overtaken test_tcp rdma/server/connection_loop.c \
	's/!connection->attaching && !parked\(connection\) &&/!connection->attaching \&\&/'
mutate channel_granted_too_early test_tcp rdma/server/requests.c \
	's/channel_kill\(server, hello->old_channel\);.*?return channel_settle\(server, hello->old_channel\) \? FABRIC_OK : FABRIC_TIMED_OUT;/return FABRIC_OK;/s'
mutate fenced_client_not_told conformance=--tcp rdma/server/chains.c \
	's/FabricStatus status = FABRIC_FENCED;/FabricStatus status = FABRIC_LOST;/'
mutate foreign_unit_not_checked test_listen rdma/memory/apply.h \
	's/return mark == channel->mark \|\|/return mark != 0 ||/'
mutate others_not_looked_at test_talker rdma/server/server.c \
	's/ && \+\+server->looks % TALKER_LOOKS != 0//'
mutate lock_word_of_another_tenant test_listen rdma/memory/memory.h \
	's/return memory->locks \+ \(size_t\) tenant \* MEMORY_LOCK_WORDS;/(void) tenant;\n\treturn memory->locks;/'
mutate unlock_by_write conformance rdma/base/chain.h \
	's/\(\*atomic_seen \|\| op->region == FABRIC_LOCKS\)/*atomic_seen/'
mutate instance_of_another_tenant test_listen rdma/server/requests.c \
	's/instance == NULL \|\| instance->tenant == connection->tenant \? FABRIC_OK : FABRIC_DENIED/(void) instance, FABRIC_OK/'
mutate removed_key_still_serves test_listen rdma/server/server.c \
	's/fabric_keys_find\(keys, connection->identity\) != NULL\)/true)/'
mutate write_not_staged test_tcp rdma/memory/apply.h \
	's/if \(channel->stage != NULL\)/if (false)/'
mutate staged_write_not_finished test_tcp rdma/server/channel.c \
	's/finish_staged_write\(server, word, intent, offset, bytes\);/(void) word;/'
mutate stage_of_another_write test_tcp rdma/server/channel.c \
	's/stage->odd == odd && stage->intent == intent &&//'
mutate silent_peer_stays test_tcp rdma/stream/network.c \
	's/setsockopt\(descriptor, SOL_SOCKET, SO_KEEPALIVE.*?;//'
mutate no_key_needed test_listen rdma/server/listen.c \
	's/!server->options.insecure_loopback \|\| !loopback/false/'
mutate wait_without_deadline conformance=--tcp rdma/stream/network.c \
	's/if \(now >= deadline\)\n\t\treturn FABRIC_TIMED_OUT;//'
mutate parked_chain_in_lost_memory test_tcp rdma/server/chains.c \
	's/!apply_may_go_on\(&chain->channel, &chain->run\)/false/'

# ---- answers of a memory node that is not ours, or not well
mutate chain_answered_twice test_refusals rdma/tcp/tcp.c \
	's/chain->answered \|\|\s+frame->length/frame->length/'
mutate answer_of_another_length test_refusals rdma/tcp/tcp.c \
	's/if \(chain->answered \|\|\s+frame->length != .*?\)\)\n\t\treturn false;/if (chain->answered)\n\t\treturn false;/s'
mutate answer_of_another_chain test_refusals rdma/tcp/tcp.c \
	's/\tif \(chain->ticket != frame->request\)\n\t\treturn tcp->broken != FABRIC_OK;\n//'
mutate strange_answer_breaks_nothing test_refusals rdma/tcp/tcp.c \
	's/return tcp->broken != FABRIC_OK;\n/return true;\n/'
mutate refused_chain_has_data test_refusals rdma/tcp/tcp.c \
	's/\tif \(status == FABRIC_OK\)\n\t\tchain_take_reply/\tchain_take_reply/'
# ---- chains that go on when their channel or their memory is another one's
mutate chain_goes_on_in_units_of_others test_tcp rdma/memory/apply.c \
	's/\t\tif \(op->region == FABRIC_NODES && \(op->opcode.*?return false;\n//s'
mutate reset_leaves_it_broken test_tcp rdma/tcp/tcp.c \
	's/\ttcp->broken = FABRIC_OK;\n//'
mutate execute_has_a_posted_ones_place "test_tcp conformance=--tcp" rdma/tcp/tcp.c \
	's/ticket >= EXECUTE_TICKETS \? TRANSPORT_TICKETS : ticket % TRANSPORT_TICKETS/ticket % TRANSPORT_TICKETS/'
mutate only_next_operation_looked_at test_tcp rdma/memory/apply.c \
	's/for \(int i = run->next; i < run->count; i\+\+\)/for (int i = run->next; i <= run->next; i++)/'
# ---- ends of chains
mutate chains_outlive_reset test_refusals rdma/tcp/tcp.c \
	's/\tmemset\(tcp->chains, 0, sizeof\(tcp->chains\)\);\n//'
mutate under_way_outlives_reset test_tcp rdma/tcp/tcp.c \
	's/\ttcp->under_way = 0;\n//'
mutate posted_after_the_break test_refusals rdma/tcp/tcp.c \
	's/\tif \(tcp->broken != FABRIC_OK\)\n\t\treturn tcp->broken;\n//'
mutate fenced_is_told_as_lost test_refusals rdma/tcp/tcp.c \
	's/tcp->broken = status == FABRIC_FENCED \? FABRIC_FENCED : FABRIC_LOST;/tcp->broken = FABRIC_LOST;/'
mutate full_batch_waits test_tcp rdma/tcp/tcp.c \
	's/ \|\| buffer_used\(&tcp->link\.output\) >= BATCH_BYTES//'
mutate more_places_than_there_are test_refusals rdma/tcp/tcp.c \
	's/\tif \(capabilities\.max_outstanding > TRANSPORT_TICKETS\)\n.*?;\n//'
mutate deadline_begins_anew test_refusals rdma/tcp/tcp.c \
	's/if \(deadline == 0\)\n\s+(deadline = )/$1/'
