# Safeguards of the memory node's daemon. Sourced by test/mutations.

mutate wrong_keys_taken test_daemon tree/msd/msd_reload.c \
	's/if \(fabric_keys_read\(path, &now, detail\) != FABRIC_OK\)/(void) fabric_keys_read(path, \&now, detail);\n\tif (false)/'
mutate keys_not_read_again test_daemon tree/msd/msd_reload.c \
	's/reload_keys\(msd, now->keys\);//'
mutate wrong_settings_taken test_msd tree/msd/msd_reload.c \
	's/if \(!msd_config_read\((.*?)\)\)\n\t\tmsd_log\(.*?\);\n\telse\n/(void) msd_config_read($1);\n/s'
mutate no_sign_of_life test_msd tree/msd/msd_notify.c \
	's/now \+ notify->watchdog_us \/ 2/now + notify->watchdog_us * 1000/'
mutate sign_of_life_from_aside test_msd_metrics tree/msd/msd_notify.c \
	's/void\nmsd_notify_open\(/#include <pthread.h>\nstatic void *beat(void *n) { for (;;) { usleep(50000); msd_notify_send(n, "WATCHDOG=1"); } return NULL; }\nvoid\nmsd_notify_open(/; s/(notify->watchdog_us = environment_number\("WATCHDOG_USEC"\);)/{ pthread_t thread; $1 if (notify->watchdog_us > 0) pthread_create(&thread, NULL, beat, notify); }/'
mutate metrics_for_everybody test_msd tree/msd/msd_metrics.c \
	's/loopback = is_loopback\(list->ai_addr\);/loopback = true;/'
mutate metrics_can_be_posted test_msd_metrics tree/msd/msd_metrics.c \
	's/if \(strcmp\(method, MHD_HTTP_METHOD_GET\) != 0 && .*?\)\n/if (false)\n/'
mutate buckets_do_not_add_up test_msd_metrics tree/msd/msd_page.c \
	's/fprintf\(page, "\\"\} %" PRIu64 "\\n", count\);/fprintf(page, "\\"} %" PRIu64 "\\n", calls->buckets[i] + SERVICE_BUCKETS - i);/'
mutate listens_without_keys test_msd tree/msd/msd_config.c \
	's/config->listen\[0\] != .\\0. && config->keys\[0\] == .\\0. && !config->insecure_loopback/false/'
mutate tenant_not_looked_at test_tables tree/service/service_tables.c \
	's/record->tenant == owner->tenant && //'
mutate tenant_keeps_memory test_daemon tree/service/service.c \
	's/\(void\) tables_remove\(tables, record, service_now_us\(\)\);/break;/'
mutate metrics_by_select test_msd_metrics tree/msd/msd_metrics.c \
	's/MHD_USE_EPOLL_INTERNAL_THREAD/MHD_USE_INTERNAL_POLLING_THREAD/'
mutate oldest_scrape_stays test_msd_metrics tree/msd/msd_metrics.c \
	's/\tshutdown\(oldest->descriptor, SHUT_RDWR\);\n//'
mutate waits_for_pipe_of_settings test_msd tree/msd/msd_config.c \
	's/ \| O_CLOEXEC \| O_NONBLOCK \| O_NOCTTY/ | O_CLOEXEC/'
mutate waits_for_pipe_of_log test_msd tree/msd/msd_log.c \
	's/O_CLOEXEC \| O_NONBLOCK \| O_NOCTTY/O_CLOEXEC/'
mutate pipe_taken_for_snapshot test_snapshot rdma/memory/snapshot.c \
	's/if \(!snapshot_may_be\(writer->descriptor\)\)/if (false)/'
