# The C tests: each is test/NAME.c with cmocka.  Add one of tree/ with a line `TESTS += name`: it is linked with all of
# rdma/ and tree/ and TEST_SUPPORT_SOURCES.  NAME_SOURCES names further sources of one test.

# Tests of the fabric alone, linked with rdma/ only.
FABRIC_TESTS += test_stripe test_apply test_buffer test_process
FABRIC_TESTS += test_server
FABRIC_TESTS += test_recovery
FABRIC_TESTS += test_snapshot
FABRIC_TESTS += test_fault test_detail
FABRIC_TESTS += test_pages
test_pages_LDFLAGS = $(addprefix -Wl$(comma)--wrap=,fopen fstatfs fstat madvise)
FABRIC_TESTS += test_keys test_stream test_handshake test_wire
test_stream_SOURCES = test/support/stream_pair.c
test_handshake_SOURCES = test/support/stream_pair.c
test_wire_SOURCES = test/support/stream_pair.c
FABRIC_TESTS += test_tcp test_listen test_flight test_parts test_talker test_connections
FABRIC_TESTS += conformance
FABRIC_TESTS += test_proxy test_proxy_remote test_proxy_threads
test_proxy_SOURCES = test/support/proxy_fixture.c
test_proxy_remote_SOURCES = test/support/proxy_fixture.c
test_proxy_threads_SOURCES = test/support/proxy_fixture.c
FABRIC_TEST_SUPPORT_SOURCES += test/support/fabric_process.c test/support/proxy_process.c test/support/listen.c
conformance_SOURCES = test/conformance_chains.c test/conformance_death.c test/conformance_readers.c test/conformance_sim.c $(SIM_SOURCES)
conformance_LDFLAGS = $(SIM_LDFLAGS)
# The same on every transport, with the fault layer on and off.
TEST_RUNS += conformance=--faults conformance=--tcp conformance=--tcp,--faults conformance=--tls conformance=--tls,--faults
TEST_RUNS += conformance=--workers,2 conformance=--workers,1,--torn conformance=--workers,2,--faults
TEST_RUNS += conformance=--workers,2,--tcp conformance=--workers,1,--tcp,--torn conformance=--workers,1,--tls,--faults

TEST_RUNS += conformance=--sim conformance=--sim-adversarial conformance=--sim-whole

# The verbs transport over a device that test/support/soft_device.c plays; over real queue pairs: script/test long rdma.
TEST_RUNS += soft/conformance=--verbs,soft0 soft/conformance=--verbs,soft0,--faults
TEST_RUNS += soft/conformance=--tls,--verbs,soft0,--beside-tcp soft/conformance=--verbs,soft0,--beside-shm
TEST_RUNS += soft/clients=--verbs,soft0,foreign,domains,fork,pressure,drain,restart,kill
TEST_RUNS += soft/torture=--verbs,soft0,--space,5,--processes,4,--operations,1000,--entries,300,--range,600,--crashes,4
TEST_RUNS += soft/torture=--verbs,soft0,--space,8,--processes,4,--operations,500,--entries,300,--range,600,--crashes,4
TEST_RUNS += soft/torture=--verbs,soft0,--beside,tcp,--space,1,--processes,4,--operations,500,--entries,300,--range,600,--crashes,4
TEST_RUNS += soft/torture=--verbs,soft0,--beside,shm,--space,0,--processes,4,--operations,500,--entries,300,--range,600,--crashes,4
TEST_RUNS += soft/tenants=--verbs,soft0,parts,foreign,readers,restart,beside,locks,broken

# Where its headers are, the same with the driver itself, over a libibverbs that plays the device.
ifneq ($(VERBS_SOURCES),)
TEST_RUNS += ibverbs/conformance=--verbs,soft1 ibverbs/tenants=--verbs,soft1,foreign,readers,restart,beside,locks,broken
TEST_RUNS += ibverbs/torture=--verbs,soft1,--space,5,--processes,4,--operations,500,--entries,300,--range,600,--crashes,4
endif

# Tests of tree/ and of the memory node's service.
TEST_SUPPORT_SOURCES += test/environment.c test/support/fixture.c test/support/proxy_process.c test/support/listen.c
TESTS += test_service test_give test_tables test_resize test_calls test_tenants
TESTS += test_unit_runs
test_unit_runs_SOURCES = test/support/random.c
TESTS += test_rounds
test_rounds_SOURCES = test/support/door.c
# Random calls of one tenant beside another one's work; other seeds each time.
TESTS += two_tenants
two_tenants_SOURCES = test/support/door.c
TESTS += test_lock test_lock_doubt
test_replay_SOURCES = test/support/lock_fixture.c
test_lock_SOURCES = test/support/lock_fixture.c
test_lock_doubt_SOURCES = test/support/lock_fixture.c
TESTS += test_cache
TESTS += test_allocate
TESTS += test_redo test_replay
TESTS += test_nodes test_many_nodes
TESTS += test_daemon test_page test_top
test_daemon_SOURCES = test/support/daemon.c
test_page_SOURCES = tree/msd/msd_page.c
test_top_SOURCES = tree/msd/msd_page.c tree/msd/msd_top_page.c tree/msd/msd_top_screen.c tree/msd/msd_config.c
TESTS += test_machine
test_machine_SOURCES = tree/msd/msd_machine.c
test_machine_LDFLAGS = $(addprefix -Wl$(comma)--wrap=,fopen access syscall sched_setaffinity getifaddrs freeifaddrs)
SCRIPT_TESTS += test_msd test_msd_metrics test_msd_top

# The core of the tree.
TEST_SUPPORT_SOURCES += test/support/tree_walk.c test/support/look_up.c
TESTS += test_node test_interpolate
test_node_SOURCES = test/support/random.c
test_interpolate_SOURCES = test/support/random.c
TESTS += test_tree
TESTS += test_alone
TESTS += test_tree_faults test_deadline
TESTS += test_directory
test_directory_SOURCES = test/support/tree_fixture.c
test_directory_LDFLAGS = -Wl$(comma)--wrap=fabric_call
test_deadline_SOURCES = test/support/tree_fixture.c
test_alone_SOURCES = test/support/tree_fixture.c
test_tree_SOURCES = test/support/tree_fixture.c
test_tree_faults_SOURCES = test/support/tree_fixture.c
TESTS += test_dead test_churn test_reader
test_dead_SOURCES = test/support/tree_fixture.c
test_reader_SOURCES = test/support/tree_fixture.c
test_churn_SOURCES = test/support/tree_fixture.c
TESTS += test_inside
test_inside_SOURCES = test/support/tree_fixture.c
TESTS += test_unverified
test_unverified_SOURCES = test/support/tree_fixture.c
TESTS += test_estimate
test_estimate_SOURCES = test/support/tree_fixture.c
TESTS += test_predicate
test_predicate_SOURCES = test/support/tree_fixture.c
TESTS += test_damage
test_damage_SOURCES = test/support/tree_fixture.c
TEST_SUPPORT_SOURCES += test/support/cost.c
TESTS += test_budget test_budget_ties
test_budget_ties_SOURCES = test/support/tree_fixture.c
TESTS += test_speculate test_cell_writes
test_speculate_SOURCES = test/support/tree_fixture.c
test_cell_writes_SOURCES = test/support/tree_fixture.c
TESTS += test_insert_many test_insert_many_alone test_insert_many_faults
test_insert_many_SOURCES = test/support/tree_fixture.c test/support/many_fixture.c
test_insert_many_alone_SOURCES = test/support/tree_fixture.c test/support/many_fixture.c
test_insert_many_faults_SOURCES = test/support/tree_fixture.c test/support/many_fixture.c
TEST_RUNS += test_insert_many=--network test_insert_many=--mapped
TESTS += test_lost_space
test_lost_space_SOURCES = test/support/tree_fixture.c test/support/many_fixture.c

TESTS += test_parents
test_parents_SOURCES = test/support/tree_fixture.c test/support/many_fixture.c test/support/waits.c
TEST_RUNS += test_parents=--network
TESTS += test_bulk_wave
test_bulk_wave_SOURCES = test/support/tree_fixture.c test/support/many_fixture.c test/support/waits.c
TEST_RUNS += test_bulk_wave=--network
TEST_RUNS += test_insert_many_alone=--network test_insert_many_alone=--mapped
TESTS += test_leaf_cache test_leaf_writes
test_leaf_cache_SOURCES = test/support/tree_fixture.c test/support/leaf_fixture.c
test_leaf_writes_SOURCES = test/support/tree_fixture.c test/support/leaf_fixture.c
TESTS += test_offload test_offload_answers test_descend
test_offload_SOURCES = test/support/tree_fixture.c test/support/offload_fixture.c
test_offload_answers_SOURCES = test/support/tree_fixture.c test/support/offload_fixture.c
test_descend_SOURCES = test/support/tree_fixture.c test/support/offload_fixture.c
TEST_RUNS += soft/test_descend=--verbs,soft0
TESTS += test_techniques
test_techniques_SOURCES = test/support/tree_fixture.c test/support/techniques.c $(BASELINES_SOURCES)
test_techniques_LDFLAGS = $(BASELINES_LDFLAGS)

# Scans, removals, bulk load, check.
TEST_SUPPORT_SOURCES += test/support/keyspace.c
TESTS += test_scan test_scan_take test_vacuum test_bulk test_check test_incomplete_splits test_loop test_posting
TESTS += test_merge test_merge_fold test_merge_walk test_reclaim test_states test_wild_nodes
TESTS += test_blocks test_freed test_give_extents
test_freed_SOURCES = test/support/tree_fixture.c
TESTS += test_replicas
test_replicas_SOURCES = test/support/checked_tree.c test/support/tree_fixture.c
TEST_RUNS += test_replicas=--network
test_loop_SOURCES = test/support/checked_tree.c
test_scan_SOURCES = test/support/checked_tree.c
test_scan_take_SOURCES = test/support/checked_tree.c
TESTS += test_scan_wave
test_scan_wave_SOURCES = test/support/tree_fixture.c test/support/many_fixture.c
TEST_RUNS += test_scan_wave=--network
test_vacuum_SOURCES = test/support/checked_tree.c
TEST_RUNS += test_vacuum=--network test_vacuum=--cached
test_wild_nodes_SOURCES = test/support/checked_tree.c
test_merge_SOURCES = test/support/checked_tree.c test/support/merge_fixture.c
test_merge_fold_SOURCES = test/support/checked_tree.c test/support/merge_fixture.c test/support/reclaim_fixture.c \
	test/support/tree_fixture.c
TEST_RUNS += test_merge_fold=--network
test_merge_walk_SOURCES = test/support/checked_tree.c test/support/merge_fixture.c
test_reclaim_SOURCES = test/support/checked_tree.c test/support/merge_fixture.c test/support/reclaim_fixture.c
test_give_extents_SOURCES = test/support/checked_tree.c test/support/merge_fixture.c test/support/reclaim_fixture.c
test_bulk_SOURCES = test/support/checked_tree.c
test_check_SOURCES = test/support/checked_tree.c
test_incomplete_splits_SOURCES = test/support/checked_tree.c
test_posting_SOURCES = test/support/checked_tree.c

# The tree under many processes.
TESTS += torture
# Connection workers over a network, killed, and their clients too.
TEST_RUNS += torture=--network,--name,workers-die-64 torture=--network,--name,workers-crash-16
# Waves: chains that are lost in them, and clients that die in them.
TEST_RUNS += torture=--network,--name,leaves-lose-64 torture=--network,--name,leaves-crash-16
TEST_RUNS += torture=--network,--name,unique-wide-32 torture=--network,--name,unique-crash-16
torture_SOURCES = $(addprefix test/support/,torture_work.c torture_unique.c torture_runs.c unique_keys.c) test/support/techniques.c $(BASELINES_SOURCES)
torture_LDFLAGS = $(BASELINES_LDFLAGS)

# The simulator.
FABRIC_TESTS += test_scheduler
test_scheduler_SOURCES = $(SIM_SOURCES)
test_scheduler_LDFLAGS = $(SIM_LDFLAGS)

FABRIC_TESTS += test_explorer
test_explorer_SOURCES = $(SIM_SOURCES)
test_explorer_LDFLAGS = $(SIM_LDFLAGS)

FABRIC_TESTS += test_sim_snapshot
test_sim_snapshot_SOURCES = sim/heap.c sim/snapshot.c
test_sim_snapshot_LDFLAGS = $(SNAPSHOT_LDFLAGS)

# Not with a sanitizer, whose functions these are.
ifeq ($(SANITIZE),)
FABRIC_TESTS += test_access_hooks
endif
test_access_hooks_SOURCES = sim/access_hooks.c sim/accesses.c sim/heap.c
test_access_hooks_LDFLAGS = $(ACCESS_HOOKS_LDFLAGS)

FABRIC_TESTS += test_history
test_history_SOURCES = test/support/history.c
SIM_TREE_SOURCES = $(SIM_SOURCES) sim/world.c $(addprefix test/support/,sim_cluster.c sim_work.c sim_readers.c sim_unique.c unique_keys.c sim_check.c history.c techniques.c)
TESTS += sim_torture sim_explore
sim_torture_SOURCES = $(SIM_TREE_SOURCES) $(BASELINES_SOURCES)
sim_torture_LDFLAGS = $(SIM_LDFLAGS) $(BASELINES_LDFLAGS)
# The code of the tree tells of what it accesses, unless a sanitizer is told; with nodes of the usual size nothing is run.
sim_explore_SOURCES = $(SIM_TREE_SOURCES) sim/snapshot.c test/support/outcomes.c $(if $(sim_explore_TELLS),sim/access_hooks.c)
sim_explore_LDFLAGS = $(SIM_LDFLAGS) $(SNAPSHOT_LDFLAGS) $(if $(sim_explore_TELLS),$(ACCESS_HOOKS_LDFLAGS))
sim_explore_TELLS = $(if $(SANITIZE),,$(filter small,$(NODES)))
TESTS += test_contention
test_contention_SOURCES = $(SIM_TREE_SOURCES) $(BASELINES_SOURCES)
test_contention_LDFLAGS = $(SIM_LDFLAGS) $(BASELINES_LDFLAGS)

# Its cost model, and the papers' workloads on it.
TESTS += test_cost test_cost_chains test_ycsb
test_cost_SOURCES = $(SIM_SOURCES) $(COST_SOURCES) $(BASELINES_SOURCES) sim/world.c sim/site.c
test_cost_LDFLAGS = $(SIM_LDFLAGS) $(BASELINES_LDFLAGS)
test_cost_chains_SOURCES = $(SIM_SOURCES) $(COST_SOURCES) $(YCSB_SOURCES)
test_cost_chains_LDFLAGS = $(SIM_LDFLAGS) $(BASELINES_LDFLAGS)
test_ycsb_SOURCES = $(SIM_SOURCES) $(COST_SOURCES) $(YCSB_SOURCES)
test_ycsb_LDFLAGS = $(SIM_LDFLAGS) $(BASELINES_LDFLAGS)

# Enemies of a memory node.
FABRIC_TESTS += test_security test_crowd test_refusals
test_security_SOURCES = test/support/hostile_node.c test/support/raw_client.c
test_crowd_SOURCES = test/support/hostile_node.c test/support/raw_client.c
test_refusals_SOURCES = test/support/hostile_node.c test/support/raw_client.c

# For script/test long rdma alone, in virtual machines: linked with rdma/ only.
RDMA_TESTS += bad_network clients tenants connections
