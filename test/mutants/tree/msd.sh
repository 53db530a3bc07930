# Mutants of tree/msd: its safeguards, removed one at a time (test/README). Sourced.

mutate second_signal_unheard test_daemon snapshot_go_on \
	's/return msd->stop_requested < \(saving \? MSD_STOPS_MAX : 1\);/return true;/'
mutate service_manager_not_asked test_daemon snapshot_go_on \
	's/EXTEND_TIMEOUT_USEC=%u\\nWATCHDOG=1\\nSTATUS=%s the snapshot: %llu of %llu MB",\s+SNAPSHOT_MORE_US, /STATUS=%s the snapshot: %llu of %llu MB",\n/s'
mutate waits_for_pipe_of_settings test_msd file_read \
	's/ \| O_CLOEXEC \| O_NONBLOCK \| O_NOCTTY/ | O_CLOEXEC/'
mutate listens_without_keys test_msd msd_config_check \
	's/config->listen\[0\] != .\\0. && config->keys\[0\] == .\\0. && !config->insecure_loopback/false/'
mutate link_is_a_file test_msd print_present \
	's/lstat\(own->path, &file\) != 0/stat(own->path, \&file) != 0/'
mutate directory_is_a_file test_msd print_present \
	's/ \|\| !S_ISREG\(file\.st_mode\)\)/)/'
mutate served_memory_is_not_served test_msd print_present \
	's/served \? "served" : "not-served"/"not-served"/'
mutate first_path_only test_msd remove_file \
	's/i < count && status == FABRIC_NOT_FOUND/i < 1 \&\& status == FABRIC_NOT_FOUND/'
mutate removed_in_any_case test_msd remove_file \
	's/if \(status == FABRIC_OK\)/if (status != FABRIC_BUSY)/'
mutate snapshot_of_any_kind_removed test_msd msd_files \
	's/"snapshot", SET_ASIDE_SNAPSHOT\}/"snapshot", SET_ASIDE_ANY}/'
mutate kept_files_are_not_listed test_msd msd_files \
	's/\t\tset_aside_list_all\(own\[i\]\.path, print_kept, NULL\);\n/\t\t(void) print_kept;\n/'
mutate waits_for_pipe_of_log test_msd msd_log_open \
	's/O_CLOEXEC \| O_NONBLOCK \| O_NOCTTY/O_CLOEXEC/'
mutate last_cpu_left_out test_machine cpus_of_list \
	's/cpu <= last && cpu < CPU_SETSIZE/cpu < last \&\& cpu < CPU_SETSIZE/'
mutate first_range_of_cpus_only test_machine cpus_of_list \
	's/list = \*end == \x27,\x27 \? end \+ 1 : end;/list = *end == \x27,\x27 ? "" : end;/'
mutate runs_nowhere test_machine run_on_node \
	's/if \(CPU_COUNT\(&cpus\) > 0\)/if (CPU_COUNT(\&cpus) >= 0)/'
mutate memory_of_any_node test_machine msd_machine_bind \
	's/strict \? MPOL_BIND : MPOL_PREFERRED/MPOL_PREFERRED/'
mutate memory_bound_though_preferred test_machine msd_machine_bind \
	's/strict \? MPOL_BIND : MPOL_PREFERRED/MPOL_BIND/'
mutate node_beyond_the_mask test_machine msd_machine_bind \
	's/if \(node >= MASK_BITS \|\|/if (node > MASK_BITS ||/' \
	MASK_BITS \
	's/#define MASK_BITS 1024u/#define MASK_BITS 1024u\n#undef MASK_MORE/' \
	msd_machine_bind \
	's/mask\[MASK_BITS \/ WORD_BITS\]/mask[MASK_BITS \/ WORD_BITS + 1]/; s/access\(path, F_OK\) != 0\)\n/(node != 1024 \&\& access(path, F_OK) != 0))\n/'
mutate mask_is_a_bit_short test_machine msd_machine_bind \
	's/\(unsigned long\) MASK_BITS \+ 1/(unsigned long) MASK_BITS/'
mutate node_that_is_not_there test_machine msd_machine_bind \
	's/ \|\| access\(path, F_OK\) != 0\)/)/'
mutate refusal_of_memory_not_minded test_machine msd_machine_bind \
	's/(\(unsigned long\) MASK_BITS \+ 1\)) != 0\)/$1 > 0)/'
mutate runs_anywhere test_machine msd_machine_bind \
	's/\trun_on_node\(node\);\n/\t(void) run_on_node;\n/'
mutate card_of_another_family test_machine same_address \
	's/if \(a->sa_family != b->sa_family\)\n\t\treturn false;/if (a->sa_family != b->sa_family)\n\t\treturn true;/'
mutate card_by_its_port_too test_machine same_address \
	's/&\(\(const struct sockaddr_in \*\) a\)->sin_addr,\s+&\(\(const struct sockaddr_in \*\) b\)->sin_addr, sizeof\(struct in_addr\)/a, b, sizeof(struct sockaddr_in)/'
mutate card_of_another_address test_machine node_of_address \
	's/i->ifa_addr == NULL \|\| !same_address\(i->ifa_addr, address\)/i->ifa_addr == NULL/'
mutate card_without_a_node test_machine node_of_address \
	's/if \(number\[0\] >= \x270\x27 && number\[0\] <= \x279\x27\)/if (number[0] != 0)/; s/int32_t node = -1;/int32_t node = -2;/'
mutate one_node_is_a_choice test_machine msd_machine_node_of \
	's/access\(NODES_PATH "\/node1", F_OK\) != 0 \|\| //'
mutate metrics_can_be_posted test_msd_metrics answer \
	's/if \(strcmp\(method, MHD_HTTP_METHOD_GET\) != 0 && .*?\)\n/if (false)\n/'
mutate oldest_scrape_stays test_msd_metrics scrape_begin \
	's/\tshutdown\(oldest->descriptor, SHUT_RDWR\);\n//'
mutate metrics_for_everybody test_msd find_address \
	's/loopback = is_loopback\(list->ai_addr\);/loopback = true;/'
mutate metrics_by_select test_msd_metrics start_http \
	's/MHD_USE_EPOLL_INTERNAL_THREAD/MHD_USE_INTERNAL_POLLING_THREAD/'
mutate sign_of_life_from_aside test_msd_metrics msd_notify_open \
	's/void\nmsd_notify_open\(/#include <pthread.h>\nstatic void *beat(void *n) { for (;;) { usleep(50000); msd_notify_send(n, "WATCHDOG=1"); } return NULL; }\nvoid\nmsd_notify_open(/; s/(notify->watchdog_us = environment_number\("WATCHDOG_USEC"\);)/{ pthread_t thread; $1 if (notify->watchdog_us > 0) pthread_create(&thread, NULL, beat, notify); }/'
mutate no_sign_of_life test_msd msd_notify_alive \
	's/now \+ notify->watchdog_us \/ 2/now + notify->watchdog_us * 1000/'
mutate buckets_do_not_add_up test_msd_metrics write_calls \
	's/fprintf\(page, "\\"\} %" PRIu64 "\\n", count\);/fprintf(page, "\\"} %" PRIu64 "\\n", calls->buckets[i] + SERVICE_BUCKETS - i);/'
mutate wrong_keys_taken test_daemon reload_keys \
	's/if \(fabric_keys_read\(path, &now, detail\) != FABRIC_OK\)/(void) fabric_keys_read(path, \&now, detail);\n\tif (false)/'
mutate keys_not_read_again test_daemon reload_settings \
	's/reload_keys\(msd, now->keys\);//'
mutate wrong_settings_taken test_msd msd_reload \
	's/if \(!msd_config_read\((.*?)\)\)\n\t\tmsd_log\(.*?\);\n\telse\n/(void) msd_config_read($1);\n/s'
mutate strangers_move_the_cursor test_top take_word \
	's/from\[i\] >= \x27 \x27 && from\[i\] <= \x27~\x27 \? from\[i\] : \x27\?\x27/from[i]/'
mutate starts_anew_unseen test_top top_node_take \
	's/ && page->uptime >= node->page\.uptime && page->chains >= node->page\.chains//'
