# Safeguards of the fabric. Sourced by test/mutations.

mutate read_without_second_look conformance rdma/memory/stripe.h \
	's/return __atomic_load_n\(stripe, __ATOMIC_RELAXED\) == before;/return true;/'
mutate write_without_stripe conformance rdma/memory/stripe.h \
	's/return __atomic_compare_exchange_n\(stripe, &before, \*odd,.*?;/return true;/s'
mutate first_word_first test_recovery rdma/shm/shm.c \
	's/words,\s+words - stored\);/stored, 0);/s'
mutate killed_channel_goes_on conformance rdma/memory/apply.h \
	's/run->active = apply_is_live\(channel, __ATOMIC_SEQ_CST\);/run->active = true;/'
mutate record_of_another_taken test_recovery rdma/memory/apply.h \
	's/if \(!__atomic_compare_exchange_n\(&channel->record->active.*?return false;/__atomic_store_n(\&channel->record->active, idle | 1, __ATOMIC_SEQ_CST);/s'
mutate dead_stripe_stays_odd conformance rdma/server/channel.c \
	's/stripe_release\(stripe, __atomic_load_n\(stripe, __ATOMIC_SEQ_CST\)\);//'
mutate attach_does_not_wait test_recovery rdma/server/fencing.c \
	's/dead &= channel_settle\(server, i\);/channel_settle(server, i);/'
mutate active_channel_is_quiet test_recovery rdma/server/channel.c \
	's/\(active & MEMORY_ACTIVE_BUSY\) == 0 \|\| state->vanished/(active | 1) != 0/'
mutate locks_stay conformance rdma/server/fencing.c \
	's/__atomic_store_n\(&locks\[i\], 0, __ATOMIC_SEQ_CST\);//'
mutate all_locks_freed conformance rdma/memory/memory.h \
	's/return word >> 48 == instance && .*?;/return word != 0 + 0 * instance + 0 * incarnation;/'
mutate doubt_forgotten conformance rdma/fabric/fabric.c \
	's/endpoint->doubt = true;/endpoint->doubt = false;/g'
mutate write_after_atomic conformance rdma/base/chain.h \
	's/op->opcode == FABRIC_WRITE && \(\*atomic_seen \|\| /op->opcode == FABRIC_WRITE && (/'
mutate stripe_crossing conformance rdma/base/chain.h \
	's/\+ op->length > FABRIC_STRIPE_BYTES\)\n\t\treturn FABRIC_RANGE/+ op->length > 2 * FABRIC_STRIPE_BYTES)\n\t\treturn FABRIC_RANGE/'
mutate pages_not_given_back test_server rdma/server/units.c \
	's/if \(memory_give_back\(/if (0 && memory_give_back(/'
mutate pages_not_taken test_server rdma/server/units.c \
	's/status = memory_allocate\(&server->memory, server->memory.nodes \+ offset, bytes\);//'
mutate old_boot_believed test_server rdma/memory/memory.c \
	's/ && memcmp\(boot_id, header->boot_id, sizeof\(boot_id\)\) == 0//'
mutate always_clean test_server rdma/server/server.c \
	's/server->quiet \? 1 : 0;/1;/'
mutate drain_does_not_wait test_server rdma/server/drain.c \
	's/fabric_now\(\) >= deadline \|\|/true ||/'
mutate drain_not_told test_server rdma/server/drain.c \
	's/header->draining, 1,/header->draining, 0,/'
mutate drain_waits_for_the_dead test_server rdma/server/drain.c \
	's/ && holder <= MEMORY_MAX_INSTANCES && instances->here\[holder\]//'
mutate huge_pages_not_looked_at test_server rdma/server/segment_file.c \
	's/if \(server->options.huge_pages != FABRIC_HUGE_ON \|\| /if (true || /'
mutate death_seen_by_socket_only test_recovery rdma/server/accept.c \
	's/epoll_ctl\(server->events, EPOLL_CTL_ADD, connection->process, &event\);//'
mutate stale_reply_taken conformance rdma/base/control_client.c \
	's/frame->request == request && //'
mutate redo_slot_inherited conformance rdma/server/channel.c \
	's/memset\(memory->nodes \+ redo_offset\(i\), 0, FABRIC_REDO_BYTES\);//'
mutate old_incarnation_connects conformance rdma/server/requests.c \
	's/ \|\|\s+instance->incarnation != connection->incarnation\)\s+return FABRIC_FENCED;/)\n\t\treturn FABRIC_FENCED;/s'
mutate waits_share_no_deadline test_deadline rdma/base/wait.c \
	's/if \(options->silence == NULL\)/if (true)/'

# ---- files that are not ours
mutate strange_segment_replaced test_server rdma/memory/memory.c \
	's/if \(page\.bytes\[i\] != 0\)\s+return MEMORY_KIND_STRANGE;/if (page.bytes[i] != 0)\n\t\t\treturn MEMORY_KIND_SEGMENT;/s'
mutate owner_not_looked_at test_server rdma/server/segment_file.c \
	's/else if \(file\.st_uid != geteuid\(\)\)/else if (false)/'
mutate mode_not_looked_at test_server rdma/server/segment_file.c \
	's/else if \(\(file\.st_mode & \(S_IRWXG \| S_IRWXO\)\) != 0\)/else if ((file.st_mode \& S_IRWXO) != 0)/'
mutate links_not_looked_at test_server rdma/server/segment_file.c \
	's/else if \(file\.st_nlink > 1\)/else if (file.st_nlink > 2)/'
mutate name_locked_only test_server rdma/server/segment_file.c \
	's/if \(fcntl\(descriptor, F_OFD_SETLK, &lock\) == 0\)/if (lock.l_len == 1)/'
mutate socket_replaces_anything test_server rdma/server/listen.c \
	's/if \(!S_ISSOCK\(there\.st_mode\)\)/if (false)/'
mutate memory_thrown_away test_server rdma/server/segment_file.c \
	's/if \(kind == MEMORY_KIND_UNFINISHED \|\| kind == MEMORY_KIND_VACANT\)\n\t\{\n\t\tif/if (kind != MEMORY_KIND_STRANGE)\n\t{\n\t\tif/'
mutate cut_memory_ends_process test_server rdma/memory/guard.c \
	's/if \(!install\(\)\)\n\t\treturn false;/(void) install;\n\tif (bytes > 0)\n\t\treturn false;/'
mutate cut_memory_believed test_server rdma/shm/shm.c \
	's/return guard_is_lost\(([^?]*)\) \? memory_lost\(endpoint\) : status;/(void) memory_lost;\n\treturn status;/s'
mutate cut_memory_served test_server rdma/server/server.c \
	's/return segment_is_whole\(server\) \? FABRIC_OK : FABRIC_LOST;/return FABRIC_OK;/'
mutate group_taken_for_user test_server rdma/server/accept.c \
	's/is_among\(peer->gid, users->groups, users->group_count\)/is_among(peer->gid, users->users, users->user_count)/'
mutate everybody_is_served test_server rdma/server/accept.c \
	's/(is_among\(groups\[i\], users->groups, users->group_count\))/(groups[i] > 0 || $1)/'
mutate file_system_taken_for_node test_service tree/service/service_space.c \
	's/full = FABRIC_HOST_FULL;/full = FABRIC_NO_MEMORY;/'
mutate full_file_system_told_each_time test_server rdma/server/units.c \
	's/used >= ROOM_WARN_PERCENT && !server->room_told/used >= ROOM_WARN_PERCENT/'
mutate small_file_system_not_told test_server rdma/server/units.c \
	's/if \(at_start && all < /if (at_start \&\& 2 * all < /'
# ---- a READ that WRITEs are always in the way of
mutate contended_read_tries_for_ever test_apply rdma/memory/apply.c \
	's/while \(run->overtaken < APPLY_READ_ATTEMPTS\)/while (true)/'
mutate reading_is_told_as_writing test_apply rdma/memory/apply.c \
	's/ \| MEMORY_INTENT_READ//'
mutate intent_to_read_stays test_apply rdma/memory/apply.c \
	's/(stripe_release\(stripe, odd\);\n)\t__atomic_store_n\(&channel->record->intent, 0, __ATOMIC_RELEASE\);/$1/'
mutate stripe_taken_by_idle_channel test_apply rdma/memory/apply.c \
	's/\tif \(!run->active && !apply_become_active\(channel, run\)\)\n\t\treturn APPLY_FENCED;\n//'
mutate stripe_that_stays_overtakes test_apply rdma/memory/apply.c \
	's/run->overtaken \+= word != run->awaited;/run->overtaken++;/'
# ---- bytes of frames
mutate place_loses_its_alignment test_buffer rdma/base/buffer.c \
	's/begin = buffer->begin % BUFFER_ALIGNMENT/begin = 0/'
mutate room_without_its_begin test_buffer rdma/base/buffer.c \
	's/\(uint64_t\) begin \+ used \+ bytes/(uint64_t) used + bytes/'
mutate buffer_grows_in_small_steps test_buffer rdma/base/buffer.c \
	's/\t\tif \(wanted < 2ull \* buffer->capacity.*?wanted = 2ull \* buffer->capacity;\n//s'
# ---- processes
mutate process_is_its_number test_process rdma/memory/process.c \
	's/process_start_time\(pid\) != start_time/false/'
mutate process_is_never_gone test_process rdma/memory/process.c \
	's/\(polled\.revents & POLLIN\) != 0/polled.revents == 0/'
mutate command_ends_at_first_parenthesis test_process rdma/memory/process.c \
	's/strrchr\(text/strchr(text/'
mutate gone_process_cannot_be_killed test_process rdma/memory/process.c \
	's/ \|\| errno == ESRCH//'

# ---- lines of detail
mutate detail_ends_where_its_room_does test_detail rdma/base/status.c \
	's/\t\tshorten\(line, FABRIC_DETAIL_BYTES\);/\t\t(void) shorten;/'
mutate detail_one_byte_too_long test_detail rdma/base/status.c \
	's/while \(\(length = strlen\(line\)\) >= room\)/while ((length = strlen(line)) > room)/'
mutate detail_of_its_room_is_shortened test_detail rdma/base/status.c \
	's/>= \(int\) FABRIC_DETAIL_BYTES/>= (int) FABRIC_DETAIL_BYTES - 1/; s/FABRIC_DETAIL_BYTES\);(\n\t\tsnprintf)/FABRIC_DETAIL_BYTES - 1);$1/'
mutate first_in_quotes_is_shortened test_detail rdma/base/status.c \
	's/if \(\(size_t\) \(end - begin\) > \*bytes\)/if (longest == NULL)/'
mutate quoted_text_goes_whole test_detail rdma/base/status.c \
	's/bytes <= QUOTED_LEAST/bytes <= 6/; s/\t\tif \(cut > bytes - QUOTED_LEAST \+ QUOTED_GAP_BYTES\)\n.*?;\n//s'
mutate quoted_text_of_44_bytes_is_kept test_detail rdma/base/status.c \
	's/bytes <= QUOTED_LEAST/bytes <= QUOTED_LEAST + 1/'
mutate characters_are_cut_behind_the_gap test_detail rdma/base/status.c \
	's/while \(end < text \+ bytes && is_continuation\(\*end\)\)/while (false)/'
mutate characters_are_cut_before_the_gap test_detail rdma/base/status.c \
	's/while \(begin > text && is_continuation\(\*begin\)\)/while (false)/'

# ---- instances and connections of a memory node
mutate half_a_cluster_is_an_instance test_connections rdma/server/instances.c \
	's/ && instance->cluster\[1\] == cluster\[1\]//'
mutate one_instance_more_for_a_tenant test_connections rdma/server/instances.c \
	's/owned >= MEMORY_TENANT_INSTANCES/owned > MEMORY_TENANT_INSTANCES/'
mutate instances_of_all_tenants_count test_connections rdma/server/instances.c \
	's/owned \+= server->memory\.instances\[i\]\.tenant == tenant;/owned++;/'
mutate instances_not_fenced_at_the_start test_connections rdma/server/instances.c \
	's/instance->incarnation = incarnation_next\(instance->incarnation\);//'
mutate launcher_known_over_a_start test_connections rdma/server/instances.c \
	's/instance->launcher_nonce = 0;//'
mutate fresh_instance_fenced test_connections rdma/server/instances.c \
	's/ \|\| instance->incarnation == 0//'
mutate channel_outlives_its_connection conformance rdma/server/connection.c \
	's/\tchannel_kill\(server, channel\);\n\tchannel_settle\(server, channel\);\n//'
mutate closed_connection_counts_for_its_tenant test_connections rdma/server/connection.c \
	's/server->tenants\[connection->tenant\]\.connections -= connection->counted;//'
mutate closed_connection_counts test_connections rdma/server/connection.c \
	's/server->network_connections -= connection->counted;//'
mutate stranger_for_ever test_connections rdma/server/connection.c \
	's/server->stranger_count -= !connection->counted;//'
mutate counted_stranger_counts_twice test_connections rdma/server/connection.c \
	's/\tserver->stranger_count--;\n//'
mutate introduced_twice_counts_twice test_connections rdma/server/connection.c \
	's/if \(connection->counted \|\| connection->stream == NULL\)/if (connection->stream == NULL)/'
mutate draining_not_said_in_replies test_connections rdma/server/connection.c \
	's/server->draining \? CONTROL_DRAINING : 0/0/'
mutate memory_passed_with_each_reply test_connections rdma/server/connection.c \
	's/\t\tclose\(connection->passed\);\n\tconnection->passed = -1;/\t\tconnection->passed += 0;/'
mutate closing_connection_is_due test_connections rdma/server/connection.c \
	's/if \(connection->is_due \|\| connection->closing\)/if (connection->is_due)/'
mutate talker_outlives_its_connection test_connections rdma/server/connection.c \
	's/\tif \(server->talker == connection\)\n\t\tserver->talker = NULL;\n//'

# ---- pages
mutate tmpfs_not_known test_pages rdma/memory/pages.c \
	's/file_system\.f_type == TMPFS_TYPE/file_system.f_type == TMPFS_TYPE + 1/'
mutate hugetlbfs_not_known test_pages rdma/memory/pages.c \
	's/file_system\.f_type == HUGETLBFS_TYPE/file_system.f_type == HUGETLBFS_TYPE + 1/'
mutate mount_of_another_device test_pages rdma/memory/pages.c \
	's/ \|\|\s+numbers\[1\] != minor\(device\)//'
mutate advice_is_for_all test_pages rdma/memory/pages.c \
	's/"advise"\) == 0 \? PAGES_TMPFS_ADVISE/"advise") == 0 ? PAGES_TMPFS_HUGE/'
mutate within_size_has_small_pages test_pages rdma/memory/pages.c \
	's/ \|\| strcmp\(policy, "within_size"\) == 0//'
mutate denied_by_the_machine_all_the_same test_pages rdma/memory/pages.c \
	's/if \(machine_policy_is\("\[deny\]"\)\)/if (false)/'
mutate forced_by_the_machine_in_vain test_pages rdma/memory/pages.c \
	's/if \(machine_policy_is\("\[force\]"\)\)/if (false)/'
mutate pages_of_hugetlbfs_are_small test_pages rdma/memory/pages.c \
	's/pages\.bytes = \(uint64_t\) file_system\.f_bsize;//'
mutate advised_pages_are_small test_pages rdma/memory/pages.c \
	's/pages->kind >= PAGES_TMPFS_HUGE/pages->kind > PAGES_TMPFS_HUGE/'
mutate first_page_not_populated test_pages rdma/memory/pages.c \
	's/\(uintptr_t\) start \/ MEMORY_PAGE_BYTES \* MEMORY_PAGE_BYTES/((uintptr_t) start + MEMORY_PAGE_BYTES - 1) \/ MEMORY_PAGE_BYTES * MEMORY_PAGE_BYTES/'

# ---- the fault layer, that tests rely on
mutate fault_tears_nothing test_fault rdma/fabric/fault.c \
	's/return op->region == FABRIC_NODES &&/return false \&\& op->region == FABRIC_NODES \&\&/'
mutate fault_one_operation_later test_fault rdma/fabric/fault.c \
	's/if \(fault->operations == fault->plan\.fail_operation\)/if (fault->operations == fault->plan.fail_operation + 1)/'
mutate fault_delivers_twice test_fault rdma/fabric/fault.c \
	's/\tfault->late->count = 0;\n//'
mutate fault_delivers_what_the_caller_has_now test_fault rdma/fabric/fault.c \
	's/late->ops\[i\]\.buffer = late->data\[i\];//'
mutate fault_vouches_for_what_it_tears test_fault rdma/fabric/fault.c \
	's/endpoint->capabilities\.flags &= ~FABRIC_CAP_OPERATION_ATOMIC;//'
mutate fault_leaves_its_mark test_fault rdma/fabric/fault.c \
	's/endpoint->capabilities\.flags = fault->flags_below;//'
