# Mutants of rdma/proxy: its safeguards, removed one at a time (test/README). Sourced.

mutate redo_image_cut_off test_proxy may_be_cut \
	's/if \(proxy_touches_redo\(&ops\[i\], &endpoint->capabilities\)\)/if (false)/'
mutate room_of_before_a_reset_kept test_proxy establish \
	's/\trequests_end\(p\);\n/\t(void) requests_end;\n/'
mutate slot_free_before_drained test_proxy proxy_disconnect \
	's/proxy_slot_serial\(p->word\), p->proxy->owner, p->worker,\s+PROXY_CLOSING/proxy_slot_serial(p->word), 0, 0, PROXY_FREE/'
mutate endpoints_for_few_memory_nodes test_proxy PROXY_LINKS \
	's/#define PROXY_LINKS 64u/#define PROXY_LINKS 63u/'
