# Safeguards of the fabric. Sourced by test/mutations.

mutate read_without_second_look conformance stripe_try_read \
	's/return __atomic_load_n\(stripe, __ATOMIC_RELAXED\) == before;/return true;/'
mutate write_without_stripe conformance stripe_try_take \
	's/return __atomic_compare_exchange_n\(stripe, &before, \*odd,.*?;/return true;/s'
mutate first_word_first test_recovery shm_abandon_write \
	's/words,\s+words - stored\);/stored, 0);/s'
mutate killed_channel_goes_on conformance apply_become_active \
	's/run->active = apply_is_live\(channel, __ATOMIC_SEQ_CST\);/run->active = true;/'
mutate record_of_another_taken test_recovery apply_become_active \
	's/if \(!__atomic_compare_exchange_n\(&channel->record->active.*?return false;/__atomic_store_n(\&channel->record->active, idle | 1, __ATOMIC_SEQ_CST);/s'
mutate dead_stripe_stays_odd conformance channel_settle \
	's/stripe_release\(stripe, __atomic_load_n\(stripe, __ATOMIC_SEQ_CST\)\);//'
mutate attach_does_not_wait test_recovery instance_kill_channels \
	's/dead &= channel_settle\(server, i\);/channel_settle(server, i);/'
mutate active_channel_is_quiet test_recovery channel_is_idle \
	's/\(active & MEMORY_ACTIVE_BUSY\) == 0 \|\| state->vanished/(active | 1) != 0/'
mutate locks_stay conformance stale_locks_free \
	's/__atomic_store_n\(&locks\[i\], 0, __ATOMIC_SEQ_CST\);//'
mutate all_locks_freed conformance memory_lock_is_stale \
	's/return word >> 48 == instance && .*?;/return word != 0 + 0 * instance + 0 * incarnation;/'
mutate doubt_forgotten conformance 'chain_ended fabric_post fabric_reset' \
	's/endpoint->doubt = true;/endpoint->doubt = false;/'
mutate write_after_atomic conformance chain_check \
	's/op->opcode == FABRIC_WRITE && \(\*atomic_seen \|\| /op->opcode == FABRIC_WRITE && (/'
mutate stripe_crossing conformance chain_check \
	's/\+ op->length > FABRIC_STRIPE_BYTES\)\n\t\treturn FABRIC_RANGE/+ op->length > 2 * FABRIC_STRIPE_BYTES)\n\t\treturn FABRIC_RANGE/'
mutate pages_not_given_back test_server drop_pages \
	's/if \(memory_give_back\(/if (0 && memory_give_back(/'
mutate pages_not_taken test_server fabric_server_commit \
	's/status = memory_allocate\(&server->memory, server->memory.nodes \+ offset, bytes\);//'
mutate old_boot_believed test_server is_of_this_boot \
	's/ && memcmp\(boot_id, header->boot_id, sizeof\(boot_id\)\) == 0//'
mutate always_clean test_server fabric_server_close \
	's/server->quiet \? 1 : 0;/1;/'
mutate drain_does_not_wait test_server settle_all \
	's/fabric_now\(\) >= deadline \|\|/true ||/'
mutate drain_not_told test_server server_drain \
	's/header->draining, 1,/header->draining, 0,/'
mutate drain_waits_for_the_dead test_server locks_are_held \
	's/ && holder <= MEMORY_MAX_INSTANCES && instances->here\[holder\]//'
mutate huge_pages_not_looked_at test_server check_pages \
	's/if \(server->options.huge_pages != FABRIC_HUGE_ON \|\| /if (true || /'
mutate death_seen_by_socket_only test_recovery start_local \
	's/epoll_ctl\(server->events, EPOLL_CTL_ADD, connection->process, &event\);//'
mutate stale_reply_taken conformance receive_reply \
	's/frame->request == request && //'
mutate redo_slot_inherited conformance channel_grant \
	's/memset\(memory->nodes \+ redo_offset\(i\), 0, FABRIC_REDO_BYTES\);//'
mutate old_incarnation_connects conformance check_incarnation \
	's/ \|\|\s+instance->incarnation != connection->incarnation\)\s+return FABRIC_FENCED;/)\n\t\treturn FABRIC_FENCED;/s'
mutate waits_share_no_deadline test_deadline fabric_deadline \
	's/if \(options->silence == NULL\)/if (true)/'

# ---- files that are not ours
mutate strange_segment_replaced test_server memory_kind_of \
	's/if \(page\.bytes\[i\] != 0\)\s+return MEMORY_KIND_STRANGE;/if (page.bytes[i] != 0)\n\t\t\treturn MEMORY_KIND_SEGMENT;/s'
mutate owner_not_looked_at test_server file_is_private \
	's/else if \(file\.st_uid != geteuid\(\)\)/else if (false)/'
mutate mode_not_looked_at test_server file_is_private \
	's/else if \(\(file\.st_mode & \(S_IRWXG \| S_IRWXO\)\) != 0\)/else if ((file.st_mode \& S_IRWXO) != 0)/'
mutate links_not_looked_at test_server file_is_private \
	's/else if \(file\.st_nlink > 1\)/else if (file.st_nlink > 2)/'
mutate name_locked_only test_server lock_segment \
	's/if \(fcntl\(descriptor, F_OFD_SETLK, &lock\) == 0\)/if (lock.l_len == 1)/'
mutate socket_replaces_anything test_server clear_place \
	's/if \(!S_ISSOCK\(there\.st_mode\)\)/if (false)/'
mutate memory_thrown_away test_server put_away \
	's/if \(kind == MEMORY_KIND_UNFINISHED \|\| kind == MEMORY_KIND_VACANT\)\n\t\{\n\t\tif/if (kind != MEMORY_KIND_STRANGE)\n\t{\n\t\tif/'
mutate cut_memory_ends_process test_server guard_add \
	's/if \(!install\(\)\)\n\t\treturn false;/(void) install;\n\tif (bytes > 0)\n\t\treturn false;/'
mutate cut_memory_believed test_server shm_execute \
	's/return guard_is_lost\(([^?]*)\) \? memory_lost\(endpoint\) : status;/(void) memory_lost;\n\treturn status;/s'
mutate cut_memory_served test_server fabric_server_step \
	's/return segment_is_whole\(server\) \? FABRIC_OK : FABRIC_LOST;/return FABRIC_OK;/'
mutate group_taken_for_user test_server peer_is_allowed \
	's/is_among\(peer->gid, users->groups, users->group_count\)/is_among(peer->gid, users->users, users->user_count)/'
mutate everybody_is_served test_server peer_is_allowed \
	's/(is_among\(groups\[i\], users->groups, users->group_count\))/(groups[i] > 0 || $1)/'
mutate file_system_taken_for_node test_service service_extent_take \
	's/full = FABRIC_HOST_FULL;/full = FABRIC_NO_MEMORY;/'
mutate full_file_system_told_each_time test_server server_look_at_room \
	's/used >= ROOM_WARN_PERCENT && !server->room_told/used >= ROOM_WARN_PERCENT/'
mutate small_file_system_not_told test_server server_look_at_room \
	's/if \(at_start && all < /if (at_start \&\& 2 * all < /'
# ---- a READ that WRITEs are always in the way of
mutate contended_read_tries_for_ever test_apply apply_contended_read \
	's/while \(run->overtaken < APPLY_READ_ATTEMPTS\)/while (true)/'
mutate reading_is_told_as_writing test_apply read_as_writer \
	's/ \| MEMORY_INTENT_READ//'
mutate intent_to_read_stays test_apply read_as_writer \
	's/(stripe_release\(stripe, odd\);\n)\t__atomic_store_n\(&channel->record->intent, 0, __ATOMIC_RELEASE\);/$1/'
mutate stripe_taken_by_idle_channel test_apply read_as_writer \
	's/\tif \(!run->active && !apply_become_active\(channel, run\)\)\n\t\treturn APPLY_FENCED;\n//'
mutate stripe_that_stays_overtakes test_apply apply_contended_read \
	's/run->overtaken \+= word != run->awaited;/run->overtaken++;/'
# ---- bytes of frames
mutate place_loses_its_alignment test_buffer buffer_grow \
	's/begin = buffer->begin % BUFFER_ALIGNMENT/begin = 0/'
mutate room_without_its_begin test_buffer buffer_grow \
	's/\(uint64_t\) begin \+ used \+ bytes/(uint64_t) used + bytes/'
mutate buffer_grows_in_small_steps test_buffer buffer_grow \
	's/\t\tif \(wanted < 2ull \* buffer->capacity.*?wanted = 2ull \* buffer->capacity;\n//s'
# ---- processes
mutate process_is_its_number test_process process_open \
	's/process_start_time\(pid\) != start_time/false/'
mutate process_is_never_gone test_process process_is_gone \
	's/\(polled\.revents & POLLIN\) != 0/polled.revents == 0/'
mutate command_ends_at_first_parenthesis test_process process_start_time \
	's/strrchr\(text/strchr(text/'
mutate gone_process_cannot_be_killed test_process process_kill \
	's/ \|\| errno == ESRCH//'

# ---- lines of detail
mutate detail_ends_where_its_room_does test_detail detail_format \
	's/\t\tshorten\(line, FABRIC_DETAIL_BYTES\);/\t\t(void) shorten;/'
mutate detail_one_byte_too_long test_detail shorten \
	's/while \(\(length = strlen\(line\)\) >= room\)/while ((length = strlen(line)) > room)/'
mutate detail_of_its_room_is_shortened test_detail detail_format \
	's/>= \(int\) FABRIC_DETAIL_BYTES/>= (int) FABRIC_DETAIL_BYTES - 1/; s/FABRIC_DETAIL_BYTES\);(\n\t\tsnprintf)/FABRIC_DETAIL_BYTES - 1);$1/'
mutate first_in_quotes_is_shortened test_detail longest_quoted \
	's/if \(\(size_t\) \(end - begin\) > \*bytes\)/if (longest == NULL)/'
mutate quoted_text_goes_whole test_detail shorten \
	's/bytes <= QUOTED_LEAST/bytes <= 6/; s/\t\tif \(cut > bytes - QUOTED_LEAST \+ QUOTED_GAP_BYTES\)\n.*?;\n//s'
mutate quoted_text_of_44_bytes_is_kept test_detail shorten \
	's/bytes <= QUOTED_LEAST/bytes <= QUOTED_LEAST + 1/'
mutate characters_are_cut_behind_the_gap test_detail cut_middle \
	's/while \(end < text \+ bytes && is_continuation\(\*end\)\)/while (false)/'
mutate characters_are_cut_before_the_gap test_detail cut_middle \
	's/while \(begin > text && is_continuation\(\*begin\)\)/while (false)/'

# ---- instances and connections of a memory node
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
mutate channel_outlives_its_connection conformance connection_close \
	's/\tchannel_kill\(server, channel\);\n\tchannel_settle\(server, channel\);\n//'
mutate closed_connection_counts_for_its_tenant test_connections connection_close \
	's/server->tenants\[connection->tenant\]\.connections -= connection->counted;//'
mutate closed_connection_counts test_connections connection_close \
	's/server->network_connections -= connection->counted;//'
mutate stranger_for_ever test_connections no_more_stranger \
	's/server->stranger_count -= !connection->counted;//'
mutate counted_stranger_counts_twice test_connections connection_count \
	's/\tserver->stranger_count--;\n//'
mutate introduced_twice_counts_twice test_connections connection_count \
	's/if \(connection->counted \|\| connection->stream == NULL\)/if (connection->stream == NULL)/'
mutate draining_not_said_in_replies test_connections reply_flags \
	's/server->draining \? CONTROL_DRAINING : 0/0/'
mutate memory_passed_with_each_reply test_connections send_local \
	's/\t\tclose\(connection->passed\);\n\tconnection->passed = -1;/\t\tconnection->passed += 0;/'
mutate closing_connection_is_due test_connections connection_make_due \
	's/if \(connection->is_due \|\| connection->closing\)/if (connection->is_due)/'
mutate talker_outlives_its_connection test_connections connection_close \
	's/\tif \(server->talker == connection\)\n\t\tserver->talker = NULL;\n//'

# ---- pages
mutate tmpfs_not_known test_pages pages.c:pages_of \
	's/file_system\.f_type == TMPFS_TYPE/file_system.f_type == TMPFS_TYPE + 1/'
mutate hugetlbfs_not_known test_pages pages.c:pages_of \
	's/file_system\.f_type == HUGETLBFS_TYPE/file_system.f_type == HUGETLBFS_TYPE + 1/'
mutate mount_of_another_device test_pages mount_policy \
	's/ \|\|\s+numbers\[1\] != minor\(device\)//'
mutate advice_is_for_all test_pages tmpfs_kind \
	's/"advise"\) == 0 \? PAGES_TMPFS_ADVISE/"advise") == 0 ? PAGES_TMPFS_HUGE/'
mutate within_size_has_small_pages test_pages tmpfs_kind \
	's/ \|\| strcmp\(policy, "within_size"\) == 0//'
mutate denied_by_the_machine_all_the_same test_pages tmpfs_kind \
	's/if \(machine_policy_is\("\[deny\]"\)\)/if (false)/'
mutate forced_by_the_machine_in_vain test_pages tmpfs_kind \
	's/if \(machine_policy_is\("\[force\]"\)\)/if (false)/'
mutate pages_of_hugetlbfs_are_small test_pages pages.c:pages_of \
	's/pages\.bytes = \(uint64_t\) file_system\.f_bsize;//'
mutate advised_pages_are_small test_pages pages_are_huge \
	's/pages->kind >= PAGES_TMPFS_HUGE/pages->kind > PAGES_TMPFS_HUGE/'
mutate first_page_not_populated test_pages pages_populate \
	's/\(uintptr_t\) start \/ MEMORY_PAGE_BYTES \* MEMORY_PAGE_BYTES/((uintptr_t) start + MEMORY_PAGE_BYTES - 1) \/ MEMORY_PAGE_BYTES * MEMORY_PAGE_BYTES/'

# ---- the fault layer, that tests rely on
mutate fault_tears_nothing test_fault is_torn \
	's/return op->region == FABRIC_NODES &&/return false \&\& op->region == FABRIC_NODES \&\&/'
mutate fault_one_operation_later test_fault run_touched \
	's/if \(fault->operations == fault->plan\.fail_operation\)/if (fault->operations == fault->plan.fail_operation + 1)/'
mutate fault_delivers_twice test_fault fabric_fault_deliver \
	's/\tfault->late->count = 0;\n//'
mutate fault_delivers_what_the_caller_has_now test_fault hold_back \
	's/late->ops\[i\]\.buffer = late->data\[i\];//'
mutate fault_vouches_for_what_it_tears test_fault limit_capabilities \
	's/endpoint->capabilities\.flags &= ~FABRIC_CAP_OPERATION_ATOMIC;//'
mutate fault_leaves_its_mark test_fault fault.c:fault_release \
	's/endpoint->capabilities\.flags = fault->flags_below;//'
