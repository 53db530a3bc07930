# Mutants of rdma/server: its safeguards, removed one at a time (test/README). Sourced.

mutate group_taken_for_user test_server peer_is_allowed \
	's/is_among\(peer->gid, users->groups, users->group_count\)/is_among(peer->gid, users->users, users->user_count)/'
mutate everybody_is_served test_server peer_is_allowed \
	's/(is_among\(groups\[i\], users->groups, users->group_count\))/(groups[i] > 0 || $1)/'
mutate death_seen_by_socket_only test_recovery start_local \
	's/epoll_ctl\(server->events, EPOLL_CTL_ADD, connection->process, &event\);//'
mutate unproven_tenant_has_a_number test_listen find_key \
	's/\*tenant = 1;\n/*tenant = tenant_number(connection->server, found->tenant);\n/'
mutate anybody_asked_for_key test_refusals ask_for_key \
	's/ \|\|\s+frame.method != CONTROL_HELLO//'
mutate refusal_not_logged test_security accept_handshake \
	's/server_complain\(server, COMPLAINT_REFUSED, "a client was refused.*?;//s'
mutate connections_for_the_greedy test_crowd accept_handshake \
	's/!tenant_may_have_connection\(server, connection->tenant\)/false/'
mutate key_not_asked_for test_refusals accept_handshake \
	's/ask_for_key\(connection\);//' \
	ask_for_key \
	's/static void\nask_for_key/static inline void\nask_for_key/'
mutate reply_before_operation test_tcp run_own_chain \
	's/if \(status != APPLY_STRIPE_TAKEN\)/if (true)/; s/status == APPLY_DONE \? FABRIC_OK : FABRIC_FENCED/FABRIC_OK/'
mutate refused_chains_not_logged test_crowd give_up_device \
	's/server_complain\(server, COMPLAINT_CHAIN.*?;//s'
mutate refused_chains_all_logged test_crowd give_up_device \
	's/server_complain\(server, COMPLAINT_CHAIN,/server_log(server, FABRIC_LOG_WARNING,/'
mutate chains_beside_a_device_by_processor soft/tenants=--verbs,soft0,beside chains.c:run_chain \
	's/if \(server->verbs != NULL\)/if (false)/'
mutate fenced_client_not_told conformance=--tcp chains_handle \
	's/FabricStatus status = FABRIC_FENCED;/FabricStatus status = FABRIC_LOST;/'
mutate readers_believed test_security chains_handle \
	's/connection->reader && !chain_is_readers\(chain->ops, count\)/false/'
mutate parked_chain_in_lost_memory test_tcp chains_continue \
	's/!apply_may_go_on\(&chain->channel, &chain->run\)/false/'
mutate redo_slot_inherited conformance channel_grant \
	's/memset\(memory->nodes \+ redo_offset\(i\), 0, FABRIC_REDO_BYTES\);//'
mutate channels_for_the_greedy test_crowd channel_grant \
	's/!tenant_may_have_channel\(server, connection->tenant, connection->reader\)/false/'
mutate last_channels_for_readers test_crowd channels_left_by \
	's/return reader \? .*? : 0;/return 0 * sure * reader;/'
mutate readers_not_told_that_the_rest_is_not_theirs test_crowd reply_flags \
	's/flags \|= CONTROL_READERS_FULL;/flags |= 0;/'
mutate parked_chain_goes_on test_tcp channel_kill \
	's/connection->chain->drop\(server, connection\);/(void) 0;/'
mutate stage_of_another_write test_tcp finish_staged_write \
	's/stage->odd == odd && stage->intent == intent &&//'
mutate staged_write_not_finished test_tcp describe_dead \
	's/finish_staged_write\(server, word, intent, offset, bytes\);/(void) word;/'
mutate active_channel_is_quiet test_recovery channel_is_idle \
	's/\(active & MEMORY_ACTIVE_BUSY\) == 0 \|\| state->vanished/(active | 1) != 0/'
mutate dead_stripe_stays_odd conformance channel_settle \
	's/stripe_release\(stripe, __atomic_load_n\(stripe, __ATOMIC_SEQ_CST\)\);//'
mutate stranger_for_ever test_connections no_more_stranger \
	's/server->stranger_count -= !connection->counted;//'
mutate counted_stranger_counts_twice test_connections connection_count \
	's/\tserver->stranger_count--;\n//'
mutate introduced_twice_counts_twice test_connections connection_count \
	's/if \(connection->counted \|\| connection->stream == NULL\)/if (connection->stream == NULL)/'
mutate closing_connection_is_due test_connections connection_make_due \
	's/if \(connection->is_due \|\| connection->closing\)/if (connection->is_due)/'
mutate channel_outlives_its_connection conformance connection_close \
	's/\tchannel_kill\(server, channel\);\n\tchannel_settle\(server, channel\);\n//'
mutate closed_connection_counts_for_its_tenant test_connections connection_close \
	's/server->tenants\[connection->tenant\]\.connections -= connection->counted;//'
mutate closed_connection_counts test_connections connection_close \
	's/server->network_connections -= connection->counted;//'
mutate talker_outlives_its_connection test_connections connection_close \
	's/\tif \(server->talker == connection\)\n\t\tserver->talker = NULL;\n//'
mutate draining_not_said_in_replies test_connections reply_flags \
	's/server->draining \? CONTROL_DRAINING : 0/0/'
mutate memory_passed_with_each_reply test_connections send_local \
	's/\t\tclose\(connection->passed\);\n\tconnection->passed = -1;/\t\tconnection->passed += 0;/'
mutate slow_readers_read_from test_crowd takes_requests \
	's/buffer_used\(&connection->output\) < SERVER_OUTPUT_BYTES/true/'
mutate parked_chain_is_overtaken test_tcp takes_requests \
	's/!connection->attaching && !parked\(connection\) &&/!connection->attaching \&\&/'
mutate unwanted_key_not_told test_refusals refuse_protocol \
	's/stream_refuse_hello\(connection->stream\);//'
mutate version_not_told test_refusals refuse_protocol \
	's/connection_reply\(server, connection, frame, FABRIC_PROTOCOL, 0\);//'
mutate version_told_later test_refusals refuse_protocol \
	's/!connection->introduced && frame->method == CONTROL_HELLO/frame->method == CONTROL_HELLO/'
mutate all_calls_in_one_round test_rounds handle_input \
	's/ && connection->asked == server->round\)/ \&\& server->round == 0)/'
mutate strangers_stay test_crowd connections_round \
	's/fabric_now\(\) > connection->stranger_deadline/false/'
mutate drain_waits_for_the_dead test_server locks_are_held \
	's/ && holder <= MEMORY_MAX_INSTANCES && instances->here\[holder\]//'
mutate redo_slot_of_a_reader_may_be_changed soft/tenants=--verbs,soft0,readers open_windows \
	's/reader \? VERBS_READS : VERBS_CHANGES/VERBS_CHANGES/'
mutate reader_learns_of_lock_words soft/tenants=--verbs,soft0,readers open_windows \
	's/reader \? \(VerbsWindow\)\{0\} : /reader ? make_window(domain, domain->locks, 0, MEMORY_LOCK_BYTES) : /'
mutate drain_waits_for_readers test_server find_instances \
	's/ && !server->channels\[i\]\.reader//'
mutate drain_does_not_wait test_server settle_all \
	's/fabric_now\(\) >= deadline \|\|/true ||/'
mutate drain_not_told test_server server_drain \
	's/header->draining, 1,/header->draining, 0,/'
mutate attach_does_not_wait test_recovery instance_kill_channels \
	's/dead &= channel_settle\(server, i\);/channel_settle(server, i);/'
mutate locks_stay conformance stale_locks_free \
	's/__atomic_store_n\(&locks\[i\], 0, __ATOMIC_SEQ_CST\);//'
mutate device_locks_freed_by_processor soft/tenants=--verbs,soft0,locks instance_advance \
	's/if \(!verbs_server_has_locks\(server, instance->tenant\)\)/if (true)/'
mutate half_a_cluster_is_an_instance test_connections instance_find \
	's/ && instance->cluster\[1\] == cluster\[1\]//'
mutate one_instance_more_for_a_tenant test_connections instance_make \
	's/owned >= MEMORY_TENANT_INSTANCES/owned > MEMORY_TENANT_INSTANCES/'
mutate instances_of_all_tenants_count test_connections instance_make \
	's/owned \+= server->memory\.instances\[i\]\.tenant == tenant;/owned++;/'
mutate instances_not_fenced_at_the_start test_connections instances_fence \
	's/instance->incarnation = incarnation_next\(instance->incarnation\);//'
mutate launcher_known_over_a_start test_connections instances_fence \
	's/instance->launcher_nonce = 0;//'
mutate fresh_instance_fenced test_connections instances_fence \
	's/ \|\| instance->incarnation == 0//'
mutate socket_replaces_anything test_server clear_place \
	's/if \(!S_ISSOCK\(there\.st_mode\)\)/if (false)/'
mutate no_key_needed test_listen listen_network \
	's/!server->options.insecure_loopback \|\| !loopback/false/'
mutate complaints_without_end test_crowd COMPLAINTS_SAID \
	's/COMPLAINTS_SAID 5u/COMPLAINTS_SAID 5000u/'
mutate long_paths_are_cut test_snapshot write_line \
	's/message\[FABRIC_LOG_BYTES\]/message[FABRIC_DETAIL_BYTES]/'
mutate refused_requests_not_logged test_crowd requests.c:report_refusal \
	's/server_complain\(server, COMPLAINT_REQUEST.*?;//s'
mutate old_incarnation_connects conformance check_incarnation \
	's/ \|\|\s+instance->incarnation != connection->incarnation\)\s+return FABRIC_FENCED;/)\n\t\treturn FABRIC_FENCED;/s'
mutate channels_of_all_clusters test_security kill_old_channel \
	's/if \(old != NULL && memcmp\(old->cluster, hello->cluster.*?\n\t\treturn FABRIC_DENIED;//s'
mutate readers_kill_any_channel conformance=--tcp kill_old_channel \
	's/if \(old != NULL && reader &&/if (reader \&\& false \&\&/'
mutate readers_are_of_no_incarnation conformance=--tcp asked_incarnation \
	's/if \(hello->incarnation != CONTROL_READER\)/if (true)/'
mutate readers_of_loaded_memory test_snapshot asked_incarnation \
	's/ \|\| instance->launcher_nonce == 0//'
mutate readers_attach conformance=--tcp handle_attach \
	's/else if \(connection->reader\)/else if (false)/'
mutate readers_at_the_socket test_server handle_hello \
	's/hello\.incarnation == CONTROL_READER && connection->stream == NULL/false/'
mutate refused_reader_reads_for_ever test_security handle_hello \
	's/connection->reader = hello/connection->reader |= hello/'
mutate reader_called_as_any_other conformance=--tcp run_service_call \
	's/\.reader = connection->reader,//'
mutate channel_granted_too_early test_tcp kill_old_channel \
	's/channel_kill\(server, hello->old_channel\);.*?return channel_settle\(server, hello->old_channel\) \? FABRIC_OK : FABRIC_TIMED_OUT;/return FABRIC_OK;/s'
mutate clusters_of_all_tenants test_security check_tenant \
	's/instance == NULL \|\| instance->tenant == connection->tenant \?/true ?/'
mutate grant_of_refused_device test_refusals handle_hello \
	's/(take_client\(server, connection, request, &client, )&verbs/$1&connection->verbs/; s/\tconnection->verbs = verbs;\n//; s/verbs \? &grant : NULL\);/connection->verbs ? &grant : NULL);/'
mutate chain_of_no_channel test_security handle_hello \
	's/\n\t\tchains_forget\(connection\);//'
mutate hello_twice test_security handle_hello \
	's/ \|\| connection->introduced\)/)/'
mutate locks_freed_while_channels_live sim_torture request_continue_attach \
	's/if \(instance_kill_channels\(server, instance_number\(server, instance\)\)\)/if (true)/'
mutate parked_call_forgotten test_rounds run_service_call \
	's/(connection->waits = connection->call_progress == before;\n)\t\tconnection_make_due\(server, connection\);/$1/'
mutate served_before_hello test_security request_handle \
	's/else if \(!connection->introduced\)/else if (false)/'
mutate owner_not_looked_at test_server file_is_private \
	's/else if \(file\.st_uid != geteuid\(\)\)/else if (false)/'
mutate mode_not_looked_at test_server file_is_private \
	's/else if \(\(file\.st_mode & \(S_IRWXG \| S_IRWXO\)\) != 0\)/else if ((file.st_mode \& S_IRWXO) != 0)/'
mutate links_not_looked_at test_server file_is_private \
	's/else if \(file\.st_nlink > 1\)/else if (file.st_nlink > 2)/'
mutate name_locked_only test_server lock_segment \
	's/if \(fcntl\(descriptor, F_OFD_SETLK, &lock\) == 0\)/if (lock.l_len == 1)/'
mutate huge_pages_not_looked_at test_server check_pages \
	's/if \(server->options.huge_pages != FABRIC_HUGE_ON \|\| /if (true || /'
mutate memory_thrown_away test_server put_away \
	's/if \(kind == MEMORY_KIND_UNFINISHED \|\| kind == MEMORY_KIND_VACANT\)\n\t\{\n\t\tif/if (kind != MEMORY_KIND_STRANGE)\n\t{\n\t\tif/'
mutate cut_off_in_use test_resize segment_resize \
	's/if \(sizes\.region_bytes < used_end\)/if (false)/'
mutate recovered_by_new_sizes test_server open_segment \
	's/if \(status == FABRIC_OK && kept\)\s+status = recover\(server, detail\);/if (status == FABRIC_OK \&\& kept)\n\t\tstatus = segment_resize(server, detail);\n\tif (status == FABRIC_OK \&\& kept)\n\t\tstatus = recover(server, detail);/s'
mutate sizes_of_the_snapshot test_snapshot open_segment \
	's/return loaded \? segment_resize\(server, detail\) :/return loaded ? FABRIC_OK :/'
mutate instances_go_on test_snapshot begin_service \
	's/if \(header->saved\)\s+instances_fence\(server\);//s'
mutate others_not_looked_at test_talker server.c:look_once \
	's/ && \+\+server->looks % TALKER_LOOKS != 0//'
mutate cut_memory_served test_server fabric_server_step \
	's/return segment_is_whole\(server\) \? FABRIC_OK : FABRIC_LOST;/return FABRIC_OK;/'
mutate always_clean test_server fabric_server_close \
	's/server->quiet \? 1 : 0;/1;/'
mutate removed_key_still_serves test_listen fabric_server_set_keys \
	's/fabric_keys_find\(keys, connection->identity\) != NULL\)/true)/'
mutate snapshot_stays test_snapshot saved_load \
	's/if \(\*loaded\)\s+status = consume\(server, why\);//s'
mutate any_snapshot_is_of_the_memory test_snapshot is_of_memory \
	's/return saved->run == memory->run &&\s+/return /s'
mutate snapshot_of_kept_memory_stays test_snapshot saved_forget \
	's/if \(same\)\s+status = consume\(server, detail\);/(void) consume;/s'
mutate saved_unmarked test_snapshot saved_save \
	's/server->memory\.header->saved = 1;//'
mutate number_of_one_who_has_something test_listen left_nothing \
	's/if \(server->memory.instances\[i\].tenant == number\)\s+return false;//'
mutate number_for_ever test_listen free_number \
	's/if \(left_nothing\(server, i\)\)/if (left_nothing(server, i) \&\& number == 0)/'
mutate clusters_of_the_forgotten test_listen fabric_server_forget_tenant \
	's/instance->cluster\[0\] = instance->cluster\[1\] = 0;\s+instance->tenant = MEMORY_MAX_TENANTS;//'
mutate parts_overlap test_parts gap_end \
	's/!part_is_empty\(part\) && part->end > offset && part->first < end/false/'
mutate nodes_copied_while_they_are_written test_descend fabric_server_read \
	's/if \(stripe_try_read\(memory_stripe\(memory, offset\), (\(const uint64_t \*\) \(memory->nodes \+ offset\)),\s+buffer, bytes \/ 8\)\)/if (stripe_copy_out(buffer, $1, bytes \/ 8), true)/'
mutate nodes_copied_beyond_their_stripe test_descend fabric_server_read \
	's/\s+offset % FABRIC_STRIPE_BYTES \+ bytes > FABRIC_STRIPE_BYTES \|\|//'
mutate nodes_of_a_device_copied soft/test_descend=--verbs,soft0 fabric_server_read \
	's/server->verbs != NULL \|\| //'
mutate pages_not_given_back test_server drop_pages \
	's/if \(memory_give_back\(/if (0 && memory_give_back(/'
mutate full_file_system_told_each_time test_server server_look_at_room \
	's/used >= ROOM_WARN_PERCENT && !server->room_told/used >= ROOM_WARN_PERCENT/'
mutate small_file_system_not_told test_server server_look_at_room \
	's/if \(at_start && all < /if (at_start \&\& 2 * all < /'
mutate pages_not_taken test_server fabric_server_commit \
	's/status = memory_allocate\(&server->memory, server->memory.nodes \+ offset, bytes\);//'
mutate tenants_memory_with_content two_tenants fabric_server_commit \
	's/zero = drop_pages\(server, offset, bytes\);/zero = true;/' \
	fabric_server_release \
	's/\tdrop_pages\(server, offset, bytes\);\n\tif \(server->room_told\)/\tif (server->room_told)/'
mutate granted_outside_of_the_part soft/tenants=--verbs,soft0,parts fabric_server_commit \
	's/ \|\| offset < first \|\| offset \+ bytes > end\)/)/'
mutate whole_memory_in_each_domain soft/tenants=--verbs,soft0,parts,foreign,restart,beside,locks register_memory \
	's/server->memory\.nodes \+ part->first,\s+part->end - part->first, VERBS_CHANGES/server->memory.nodes, part->end, VERBS_CHANGES/'
mutate lock_words_of_the_first_tenant soft/tenants=--verbs,soft0,parts,foreign,restart,beside,locks register_memory \
	's/memory_tenant_locks\(&server->memory, tenant\)/memory_tenant_locks(\&server->memory, 1)/'
mutate one_domain_for_all_tenants soft/tenants=--verbs,soft0,foreign domain_of \
	's/domains\[server->channels\[channel\]\.connection->tenant\]/domains[1]/'
mutate readers_change_by_their_queue soft/tenants=--verbs,soft0,readers verbs_server_connect \
	's/server->channels\[channel\]\.reader,/false,/'
mutate failed_device_chain_ends_well soft/tenants=--verbs,soft0,broken verbs_server_poll \
	's/flight_break\(&loop->flight, FABRIC_LOST\)/flight_break(&loop->flight, FABRIC_OK)/'
