/*
 * conformance.c
 *		The contract of fabric.h, clause by clause, against any transport.
 *
 *		conformance [OPTION...]         starts a memory node of its own over shm
 *		conformance [OPTION...] ADDRESS uses the one at ADDRESS, which must offer the test service
 *		conformance [OPTION...] --serve DIRECTORY   is such a memory node, until SIGTERM
 *
 *		--tcp, --tls                    its own memory node is used over tcp, without and with keys
 *		--verbs DEVICE                  its own memory node is used over verbs, with this RDMA device
 *		--beside-tcp, --beside-shm      ... which serves others with verbs, and is used over tcp, or its socket
 *		--key-file FILE                 for ADDRESS, and for --serve
 *		--listen HOST:PORT              --serve serves network clients there
 *		--faults                        all clients run under the fault layer, which tears READs and delays
 *		chains
 *		--workers N                     connection workers are between the clients and its own memory node
 *		--torn                          and their operations are torn
 *		--sim, --sim-adversarial, --sim-whole   everything is simulated: at a fixed pace, with all that is left open, or with that
 *		                                but for whole operations
 *		--seed NUMBER                   of the simulation
 *
 * Exit status 77: this transport or memory node is not here.  Tests that must stop or kill the memory node
 * are skipped where it is not ours.
 */
#define _GNU_SOURCE 1
#include <string.h>

#include "conformance.h"

#define EXIT_SKIP 77
#define EXIT_USAGE 2

/* The workers keep the channels of earlier tests. */
#define PROXY_CHANNELS 64u

/* Slots of the connection workers: fewer than test_no_channel_left tries. */
#define PROXY_SLOTS 20u

Conformance suite;

uint64_t
new_cluster(uint32_t *incarnation)
{
	uint64_t cluster = suite.next_cluster++;

	*incarnation = cluster_attach(suite.address, cluster);
	return cluster;
}

TestChannel
open_channel(void)
{
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	TestChannel channel;

	channel_open(&channel, suite.address, cluster, incarnation);
	return channel;
}

void
clear_stripe(TestChannel *channel, uint32_t stripe)
{
	static const uint64_t zeroes[FABRIC_STRIPE_BYTES / 8];

	channel_write(channel, stripe_offset(stripe), zeroes, sizeof(zeroes));
}

bool
shares_channel(const TestChannel *channel)
{
	return (fabric_capabilities(channel->endpoint)->flags & FABRIC_CAP_SHARED_CHANNEL) != 0;
}

static void
test_capabilities(void **state)
{
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	const FabricCapabilities *capabilities;
	TestChannel channel;
	TestChannel other;

	channel_open(&channel, suite.address, cluster, incarnation);
	capabilities = fabric_capabilities(channel.endpoint);
	if (capabilities->flags & FABRIC_CAP_OPERATION_ATOMIC)
		assert_true(capabilities->flags & FABRIC_CAP_LINE_ATOMIC);
	assert_in_range(capabilities->max_chain, 4, FABRIC_MAX_CHAIN);
	assert_true(capabilities->max_outstanding >= 1);
	assert_true(capabilities->one_packet >= 8);
	assert_true(capabilities->lock_words >= 1 &&
	            (capabilities->lock_words & (capabilities->lock_words - 1)) == 0);
	assert_true(capabilities->region_bytes[FABRIC_LOCKS] == capabilities->lock_words * 8ull);
	assert_true(capabilities->region_bytes[FABRIC_NODES] >= suite.area + AREA_BYTES);
	assert_int_equal(capabilities->redo_offset % FABRIC_STRIPE_BYTES, 0);
	assert_true(capabilities->redo_offset + FABRIC_REDO_BYTES <= suite.area);
	assert_true(capabilities->node_uuid[0] != 0 || capabilities->node_uuid[1] != 0);
	assert_true(capabilities->generation >= 1);
	assert_in_range(capabilities->instance, 1, 65535);
	assert_int_equal(capabilities->incarnation, incarnation);
	/* Over the socket of a device's memory node go frames. */
	if (suite.beside)
		assert_string_equal(capabilities->transport, "tcp");
	else
		assert_memory_equal(capabilities->transport, suite.address, strcspn(suite.address, ":"));

	channel_open(&other, suite.address, cluster, incarnation);
	if (!shares_channel(&channel))
	{
		assert_int_not_equal(fabric_capabilities(other.endpoint)->channel, capabilities->channel);
		assert_true(fabric_capabilities(other.endpoint)->redo_offset != capabilities->redo_offset);
	}
	assert_memory_equal(fabric_capabilities(other.endpoint)->node_uuid, capabilities->node_uuid, 16);
	channel_close(&other);
	channel_close(&channel);
}

static void
test_redo_slot(void **state)
{
	uint64_t written[FABRIC_STRIPE_BYTES / 8];
	uint64_t found[FABRIC_STRIPE_BYTES / 8];
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	TestChannel channel;
	uint64_t offset;

	channel_open(&channel, suite.address, cluster, incarnation);
	for (int stripe = 0; stripe < 2; stripe++)
	{
		offset = fabric_capabilities(channel.endpoint)->redo_offset + (uint64_t) stripe * FABRIC_STRIPE_BYTES;
		channel_read(&channel, offset, found, sizeof(found));
		for (size_t i = 0; i < FABRIC_STRIPE_BYTES / 8; i++)
			assert_true(found[i] == 0);
		memset(written, 0x40 + stripe, sizeof(written));
		channel_write(&channel, offset, written, sizeof(written));
		channel_read(&channel, offset, found, sizeof(found));
		assert_memory_equal(written, found, sizeof(written));
	}
	/* A later owner of the channel does not find what an earlier one left. */
	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
	offset = fabric_capabilities(channel.endpoint)->redo_offset;
	channel_read(&channel, offset, found, sizeof(found));
	for (size_t i = 0; i < FABRIC_STRIPE_BYTES / 8 && !shares_channel(&channel); i++)
		assert_true(found[i] == 0);
	channel_close(&channel);
}

static void
test_refused_connections(void **state)
{
	FabricOptions quick = {.connect_timeout_ms = 500};
	TestChannel channel;
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);

	assert_int_equal(channel_try_open(&channel, "shm:/nowhere/at/all", cluster, 0, &quick),
	                 FABRIC_UNREACHABLE);
	assert_int_equal(channel_try_open(&channel, "pigeon:coop", cluster, 0, &quick), FABRIC_NOT_SUPPORTED);
	assert_int_equal(channel_try_open(&channel, "no colon", cluster, 0, &quick), FABRIC_NOT_SUPPORTED);
	assert_int_equal(channel_try_open(&channel, suite.address, cluster, incarnation + 1, NULL),
	                 FABRIC_FENCED);
	assert_int_equal(channel_try_open(&channel, suite.address, suite.next_cluster++, 1, NULL), FABRIC_FENCED);
	for (int status = FABRIC_OK; status <= FABRIC_EXISTS; status++)
		assert_string_not_equal(fabric_status_name((FabricStatus) status), "unknown status");
}

static void
test_no_channel_left(void **state)
{
	TestChannel channels[MAX_CHANNELS + 1];
	TestChannel one_more;
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	FabricStatus status = FABRIC_OK;
	uint32_t count = 0;

	while (count <= MAX_CHANNELS)
	{
		status = channel_try_open(&channels[count], suite.address, cluster, incarnation, NULL);
		if (status != FABRIC_OK)
			break;
		count++;
	}
	if (status == FABRIC_OK)
		print_message("more than %u channels: nothing to test\n", MAX_CHANNELS);
	else
	{
		assert_int_equal(status, FABRIC_NO_MEMORY);
		/* A channel that was given back is granted again, as soon as the memory node has seen its end. */
		channel_close(&channels[--count]);
		for (uint64_t begin = now_ms(); now_ms() - begin < PATIENCE_MS; sleep_ms(5))
		{
			status = channel_try_open(&one_more, suite.address, cluster, incarnation, NULL);
			if (status != FABRIC_NO_MEMORY)
				break;
		}
		assert_int_equal(status, FABRIC_OK);
		channel_close(&one_more);
	}
	while (count > 0)
		channel_close(&channels[--count]);
}

static void
test_call(void **state)
{
	static uint8_t request[FABRIC_MAX_CALL_BYTES + 8];
	static uint8_t reply[FABRIC_MAX_CALL_BYTES];
	const uint32_t lengths[] = {0, 1, 7, 8, 4096, FABRIC_MAX_CALL_BYTES};
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	FabricPeer peer;
	FabricCounters counters;
	TestChannel channel;
	uint32_t bytes;
	uint64_t word = FABRIC_NOT_FOUND;

	channel_open(&channel, suite.address, cluster, incarnation);
	for (size_t i = 0; i < sizeof(request); i++)
		request[i] = (uint8_t) (i * 31 + 1);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		memset(reply, 0, sizeof(reply));
		bytes = sizeof(reply);
		assert_int_equal(fabric_call(channel.endpoint, SERVICE_ECHO, request, lengths[i], reply, &bytes),
		                 FABRIC_OK);
		assert_int_equal(bytes, lengths[i]);
		assert_memory_equal(reply, request, lengths[i]);
	}
	bytes = sizeof(reply);
	assert_int_equal(fabric_call(channel.endpoint, SERVICE_ECHO, request, sizeof(request), reply, &bytes),
	                 FABRIC_PROTOCOL);
	bytes = 15;
	assert_int_equal(fabric_call(channel.endpoint, SERVICE_ECHO, request, 16, reply, &bytes),
	                 FABRIC_PROTOCOL);
	assert_int_equal(fabric_call(channel.endpoint, SERVICE_STATUS, &word, 8, NULL, NULL), FABRIC_NOT_FOUND);
	assert_int_equal(fabric_call(channel.endpoint, 999, NULL, 0, NULL, NULL), FABRIC_NOT_SUPPORTED);
	assert_int_equal(fabric_call(channel.endpoint, 0xff01, NULL, 0, NULL, NULL), FABRIC_PROTOCOL);

	bytes = sizeof(peer);
	assert_int_equal(fabric_call(channel.endpoint, SERVICE_PEER, NULL, 0, &peer, &bytes), FABRIC_OK);
	assert_true(peer.cluster[0] == cluster && peer.cluster[1] == ~cluster);
	assert_int_equal(peer.incarnation, incarnation);
	assert_int_equal(peer.instance, fabric_capabilities(channel.endpoint)->instance);
	assert_int_equal(peer.channel, fabric_capabilities(channel.endpoint)->channel);

	fabric_counters(channel.endpoint, &counters);
	assert_int_equal(counters.calls, sizeof(lengths) / sizeof(lengths[0]) + 1);
	assert_int_equal(counters.errors, 5);
	assert_int_equal(counters.round_trips, 0);
	channel_close(&channel);
}

static void
test_slow_call(void **state)
{
	FabricOptions quick = {.connect_timeout_ms = 500};
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	uint64_t begin = now_ms();
	TestChannel channel;
	uint64_t milliseconds = 2000;
	uint64_t short_time = 0;
	uint64_t echo = 0;
	uint32_t bytes;
	FabricStatus status;

	do
		status = channel_try_open(&channel, suite.address, cluster, incarnation, &quick);
	while (status == FABRIC_UNREACHABLE && now_ms() - begin < PATIENCE_MS);
	assert_int_equal(status, FABRIC_OK);
	assert_int_equal(fabric_call(channel.endpoint, SERVICE_SLEEP, &milliseconds, 8, NULL, NULL),
	                 FABRIC_TIMED_OUT);
	/* The late replies are not taken for the next one's. */
	do
	{
		short_time++;
		bytes = sizeof(echo);
		status = fabric_call(channel.endpoint, SERVICE_SLEEP, &short_time, 8, &echo, &bytes);
	} while (status == FABRIC_TIMED_OUT && now_ms() - begin < PATIENCE_MS);
	assert_int_equal(status, FABRIC_OK);
	assert_true(bytes == 8 && echo == short_time);
	channel_close(&channel);
}

typedef struct HookCalls
{
	int calls;
	int stop_at; /* this call stops the wait; 0 = none */
} HookCalls;

static int
counting_hook(void *argument, const int *descriptors, int count, int milliseconds)
{
	HookCalls *hook = argument;

	hook->calls++;
	sleep_ms(milliseconds < 5 ? (uint32_t) milliseconds : 5);
	return hook->calls == hook->stop_at ? -1 : 0;
}

static void
test_wait_hook(void **state)
{
	HookCalls hook = {0, 0};
	FabricOptions options = {.wait = counting_hook, .wait_argument = &hook};
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	TestChannel channel;
	uint64_t milliseconds = 1000;
	uint64_t echo = 0;
	uint32_t bytes = sizeof(echo);

	assert_int_equal(channel_try_open(&channel, suite.address, cluster, incarnation, &options), FABRIC_OK);
	hook.calls = 0;
	assert_int_equal(fabric_call(channel.endpoint, SERVICE_SLEEP, &milliseconds, 8, &echo, &bytes),
	                 FABRIC_OK);
	assert_true(hook.calls > 2);
	bytes = sizeof(echo);
	hook = (HookCalls){0, 3};
	assert_int_equal(fabric_call(channel.endpoint, SERVICE_SLEEP, &milliseconds, 8, &echo, &bytes),
	                 FABRIC_STOPPED);
	assert_int_equal(hook.calls, 3);
	channel_close(&channel);
}

static void
test_control_only(void **state)
{
	TestChannel channel;
	uint64_t word = 1;
	uint64_t echo = 0;
	uint32_t bytes = sizeof(echo);
	FabricOp op = op_read(suite.area, &echo, 8);

	channel_open(&channel, suite.address, suite.next_cluster++, 0);
	assert_int_not_equal(fabric_execute(channel.endpoint, &op, 1), FABRIC_OK);
	assert_int_equal(fabric_call(channel.endpoint, SERVICE_ECHO, &word, 8, &echo, &bytes), FABRIC_OK);
	assert_true(echo == word);
	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
	bytes = sizeof(echo);
	assert_int_equal(fabric_call(channel.endpoint, SERVICE_ECHO, &word, 8, &echo, &bytes), FABRIC_OK);
	channel_close(&channel);
}

/* What a network does to chains all the time. */
static const FabricFaultPlan all_faults = {.seed = 1, .tear_reads = true, .delay_max_us = 20};

/* Starts or finds the memory node, and takes the suite's memory from it. */
static int
start_suite(void **state)
{
	FabricStatus status;
	TestChannel control;

	if (suite.simulated)
		simulated_node_start();
	else if (suite.own_process)
	{
		fabric_process_prepare(&suite.process, NODE_BYTES, suite.workers > 0 ? PROXY_CHANNELS : MAX_CHANNELS);
		if (suite.network)
			fabric_process_listen(&suite.process, suite.keys);
		if (suite.verbs_device != NULL && !suite.beside)
			fabric_process_verbs(&suite.process, suite.verbs_device);
		suite.process.verbs_device = suite.verbs_device;
		fabric_process_start(&suite.process);
		snprintf(suite.address, sizeof(suite.address), "%s%s", suite.workers > 0 ? "proxy:" : "",
		         suite.network ? suite.process.network_address : suite.process.address);
		if (suite.keys)
			suite.key_file = suite.process.key_file;
	}
	if (suite.workers > 0)
	{
		FabricFaultPlan torn = {.seed = 1, .tear_reads = true, .tear_writes = true};
		ProxyProcessOptions options = {.workers = suite.workers,
		                               .slots = PROXY_SLOTS,
		                               .key_file = suite.key_file,
		                               .below = suite.torn ? &torn : NULL};

		test_proxies = proxy_processes_start(&options);
	}
	channel_defaults(suite.key_file, suite.faults ? &all_faults : NULL);
	status = channel_try_open(&control, suite.address, 1, 0, NULL);
	if (status == FABRIC_NOT_SUPPORTED || status == FABRIC_UNREACHABLE)
		exit(EXIT_SKIP);
	if (status != FABRIC_OK)
		return 1;
	channel_close(&control);
	suite.area = service_info(suite.address).first_unit;
	/* Not those of an earlier run against the same memory node. */
	suite.next_cluster = suite.simulated ? 2 : ((uint64_t) getpid() << 32) + 1;
	return service_commit(suite.address, suite.area, AREA_BYTES) == FABRIC_OK ? 0 : 1;
}

static int
stop_suite(void **state)
{
	if (suite.workers > 0)
		proxy_processes_stop(test_proxies);
	if (suite.simulated)
		simulated_node_stop();
	if (suite.own_process)
		fabric_process_remove(&suite.process);
	return 0;
}

/* Is a memory node for suites in other processes, or on other machines. */
static int
serve(void)
{
	FabricProcess process = {.node_bytes = NODE_BYTES, .max_channels = MAX_CHANNELS};

	snprintf(process.memory_path, sizeof(process.memory_path), "%s/memory", suite.serve);
	snprintf(process.socket_path, sizeof(process.socket_path), "%s/socket", suite.serve);
	if (suite.listen != NULL)
		snprintf(process.listen, sizeof(process.listen), "%s", suite.listen);
	if (suite.key_file != NULL)
		snprintf(process.key_file, sizeof(process.key_file), "%s", suite.key_file);
	process.verbs_device = suite.verbs_device;
	return fabric_process_serve(&process, -1);
}

static bool
parse_arguments(int count, char **arguments)
{
	suite.own_process = true;
	for (int i = 1; i < count; i++)
	{
		const char *argument = arguments[i];

		if (strcmp(argument, "--tcp") == 0 || strcmp(argument, "--tls") == 0)
		{
			suite.network = true;
			suite.keys = strcmp(argument, "--tls") == 0;
		}
		else if (strcmp(argument, "--verbs") == 0 && i + 1 < count)
		{
			suite.network = true;
			suite.verbs_device = arguments[++i];
		}
		else if (strcmp(argument, "--beside-tcp") == 0 || strcmp(argument, "--beside-shm") == 0)
		{
			suite.beside = true;
			suite.network = strcmp(argument, "--beside-tcp") == 0;
		}
		else if (strcmp(argument, "--serve") == 0 && i + 1 < count)
			suite.serve = arguments[++i];
		else if (strcmp(argument, "--listen") == 0 && i + 1 < count)
			suite.listen = arguments[++i];
		else if (strcmp(argument, "--faults") == 0)
			suite.faults = true;
		else if (strcmp(argument, "--key-file") == 0 && i + 1 < count)
			suite.key_file = arguments[++i];
		else if (strcmp(argument, "--workers") == 0 && i + 1 < count)
			suite.workers = (uint32_t) atoi(arguments[++i]);
		else if (strcmp(argument, "--torn") == 0)
			suite.torn = true;
		else if (strcmp(argument, "--sim") == 0 || strcmp(argument, "--sim-adversarial") == 0 ||
		         strcmp(argument, "--sim-whole") == 0)
		{
			suite.simulated = true;
			suite.simulator.adversarial = argument[5] != '\0';
			suite.simulator.operation_atomic = strcmp(argument, "--sim-whole") == 0;
		}
		else if (strcmp(argument, "--seed") == 0 && i + 1 < count)
			suite.seed = strtoull(arguments[++i], NULL, 0);
		else if (argument[0] != '-' && suite.own_process)
		{
			suite.own_process = false;
			snprintf(suite.address, sizeof(suite.address), "%s", argument);
		}
		else
			return false;
	}
	return true;
}

/* The suite; the program's status. */
static int
run_suite(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_capabilities),
		cmocka_unit_test(test_redo_slot),
		cmocka_unit_test(test_refused_connections),
		cmocka_unit_test(test_no_channel_left),
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_slow_call),
		cmocka_unit_test(test_wait_hook),
		cmocka_unit_test(test_control_only),
		cmocka_unit_test(test_order_in_a_chain),
		cmocka_unit_test(test_order_between_processes),
		cmocka_unit_test(test_not_conditional),
		cmocka_unit_test(test_forbidden_chains),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_operation_atomicity),
		cmocka_unit_test(test_counting),
		cmocka_unit_test(test_lock_and_read),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_tickets),
		cmocka_unit_test(test_doubt_and_reset),
		cmocka_unit_test(test_successor),
		cmocka_unit_test(test_late_delivery),
		cmocka_unit_test(test_attach),
		cmocka_unit_test(test_attach_frees_locks),
		cmocka_unit_test(test_fence_stopped_client),
		cmocka_unit_test(test_death_inside_write),
		cmocka_unit_test(test_random_death),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_readers_refused),
		cmocka_unit_test(test_reader_reads),
		cmocka_unit_test(test_reader_calls),
		cmocka_unit_test(test_attach_ends_readers),
		cmocka_unit_test(test_reader_succeeds),
		cmocka_unit_test(test_memory_node_restart),
	};

	return cmocka_run_group_tests(tests, start_suite, stop_suite);
}

int
main(int count, char **arguments)
{
	if (!parse_arguments(count, arguments))
		return EXIT_USAGE;
	if (suite.serve != NULL)
		return serve();
	if (suite.simulated && !scheduler_is_here())
		return EXIT_SKIP;
	return suite.simulated ? simulate(run_suite) : run_suite();
}
