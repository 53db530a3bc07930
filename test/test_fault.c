/*
 * test_fault.c
 *		The fault layer: what each field of a plan does, and that the conformance suite's checks can fail.
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <string.h>
#include <time.h>

#include "support/testing.h"
#include "support/fabric_process.h"

#define STRIPE_WORDS (FABRIC_STRIPE_BYTES / 8)
#define LINE_WORDS 8
#define CLUSTER 77u

static FabricProcess node;
static uint64_t area;
static uint32_t incarnation;

static int
start_node(void **state)
{
	fabric_process_prepare(&node, 1u << 20, 8);
	fabric_process_start(&node);
	area = service_info(node.address).first_unit;
	incarnation = cluster_attach(node.address, CLUSTER);
	return service_commit(node.address, area, FABRIC_UNIT_BYTES) == FABRIC_OK ? 0 : 1;
}

static int
stop_node(void **state)
{
	fabric_process_remove(&node);
	return 0;
}

static TestChannel
open_with_plan(const FabricFaultPlan *plan)
{
	TestChannel channel;

	channel_open(&channel, node.address, CLUSTER, incarnation);
	assert_int_equal(fabric_fault_set(channel.endpoint, plan), FABRIC_OK);
	return channel;
}

static void
fill(uint64_t words[STRIPE_WORDS], uint64_t value)
{
	for (uint32_t i = 0; i < STRIPE_WORDS; i++)
		words[i] = value;
}

/* Writes whole stripes of one value until the parent ends it. */
static pid_t
start_writer(const FabricFaultPlan *plan)
{
	pid_t child;

	child = start_child();
	if (child == 0)
	{
		uint64_t words[STRIPE_WORDS];
		TestChannel channel = open_with_plan(plan);

		for (uint64_t i = 1;; i++)
		{
			fill(words, i);
			channel_write(&channel, area, words, sizeof(words));
		}
	}
	return child;
}

/* Reads while the writer writes: was the READ torn between lines? Torn lines are an error. */
static bool
read_is_torn(TestChannel *reader)
{
	uint64_t words[STRIPE_WORDS];
	bool whole = true;

	channel_read(reader, area, words, sizeof(words));
	for (uint32_t word = 0; word < STRIPE_WORDS; word++)
	{
		assert_true(words[word] == words[word / LINE_WORDS * LINE_WORDS]);
		whole &= words[word] == words[0];
	}
	return !whole;
}

/* Reads until ten READs were torn, which must happen, however seldom reader and writer meet. */
static void
await_torn_reads(TestChannel *reader)
{
	uint64_t begin = now_ms();

	for (uint32_t torn = 0; torn < 10; torn += read_is_torn(reader))
		assert_true(now_ms() - begin < PATIENCE_MS);
}

static void
test_tear_reads(void **state)
{
	FabricFaultPlan plan = {.seed = 1, .tear_reads = true};
	TestChannel reader = open_with_plan(&plan);
	pid_t writer = start_writer(NULL);
	FabricCounters counters;

	assert_false(fabric_capabilities(reader.endpoint)->flags & FABRIC_CAP_OPERATION_ATOMIC);
	assert_true(fabric_capabilities(reader.endpoint)->flags & FABRIC_CAP_LINE_ATOMIC);
	/* Tears do happen, and only between lines: a check for whole operations would have failed here. */
	await_torn_reads(&reader);
	fabric_counters(reader.endpoint, &counters);
	assert_true(counters.round_trips == counters.reads && counters.read_bytes == counters.reads * 4096);
	/* Also after a reset the endpoint claims no more; without the plan it does. */
	assert_int_equal(fabric_reset(reader.endpoint), FABRIC_OK);
	assert_false(fabric_capabilities(reader.endpoint)->flags & FABRIC_CAP_OPERATION_ATOMIC);
	assert_int_equal(fabric_fault_set(reader.endpoint, NULL), FABRIC_OK);
	assert_true(fabric_capabilities(reader.endpoint)->flags & FABRIC_CAP_OPERATION_ATOMIC);
	for (uint32_t i = 0; i < 20000; i++)
		assert_false(read_is_torn(&reader));
	kill(writer, SIGKILL);
	wait_for_child(writer);
	channel_close(&reader);
}

static void
test_tear_writes(void **state)
{
	FabricFaultPlan plan = {.seed = 2, .tear_writes = true};
	TestChannel reader = open_with_plan(NULL);
	uint64_t words[STRIPE_WORDS];
	pid_t writer;

	/* The writer of another test may have been killed inside a line. */
	fill(words, 0);
	channel_write(&reader, area, words, sizeof(words));
	writer = start_writer(&plan);
	await_torn_reads(&reader);
	kill(writer, SIGKILL);
	wait_for_child(writer);
	channel_close(&reader);
}

/* Whatever the pieces and their order, a torn operation moves exactly its bytes. */
static void
test_torn_bytes_are_exact(void **state)
{
	FabricFaultPlan plan = {.seed = 3, .tear_reads = true, .tear_writes = true};
	TestChannel torn = open_with_plan(&plan);
	TestChannel plain = open_with_plan(NULL);

	for (uint32_t round = 0; round < 500; round++)
	{
		uint64_t expected[STRIPE_WORDS];
		uint64_t found[STRIPE_WORDS + 2];
		uint64_t source[STRIPE_WORDS];
		uint32_t start = round * 7 % 200;
		uint32_t words = 1 + round * 13 % (STRIPE_WORDS - start);

		fill(expected, round);
		channel_write(&plain, area, expected, sizeof(expected));
		for (uint32_t i = 0; i < words; i++)
			source[i] = expected[start + i] = ((uint64_t) round << 32) + i;
		channel_write(&torn, area + start * 8, source, words * 8);
		channel_read(&plain, area, found, sizeof(expected));
		assert_memory_equal(found, expected, sizeof(expected));
		fill(found, 0xdead);
		found[words + 1] = 0xdead;
		channel_read(&torn, area + start * 8, found + 1, words * 8);
		assert_memory_equal(found + 1, source, words * 8);
		assert_true(found[0] == 0xdead && found[words + 1] == 0xdead);
	}
	channel_close(&torn);
	channel_close(&plain);
}

/* A chain of three WRITEs and an unlock, with the n-th operation failing, for each n until none fails. */
static void
test_fail_each_operation(void **state)
{
	TestChannel watcher = open_with_plan(NULL);
	TestChannel channel = open_with_plan(NULL);
	uint32_t n = 0;

	for (bool failed = true; failed;)
	{
		FabricFaultPlan plan = {.fail_operation = ++n};
		uint64_t zero[4] = {0};
		uint64_t ones[3] = {1, 1, 1};
		uint64_t found[4];
		FabricOp ops[] = {
			op_write(area, &ones[0], 8),
			op_write(area + 8, &ones[1], 8),
			op_write(area + 16, &ones[2], 8),
			op_fetch_add(FABRIC_NODES, area + 24, 1),
		};
		FabricStatus status;

		channel_write(&watcher, area, zero, sizeof(zero));
		assert_int_equal(fabric_fault_set(channel.endpoint, &plan), FABRIC_OK);
		status = fabric_execute(channel.endpoint, ops, 4);
		failed = status != FABRIC_OK;
		assert_int_equal(status, n <= 4 ? FABRIC_LOST : FABRIC_OK);
		assert_int_equal(fabric_fault_operations(channel.endpoint), n <= 4 ? n : 4);
		channel_read(&watcher, area, found, sizeof(found));
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(found[i], i + 1 < n);
		/* Once is once: the next chain gets through, after the reset. */
		assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
		if (failed)
			assert_int_equal(fabric_execute(channel.endpoint, ops, 4), FABRIC_OK);
	}
	assert_int_equal(n, 5);
	channel_close(&channel);
	channel_close(&watcher);
}

static void
test_late_operation(void **state)
{
	FabricFaultPlan plan = {.late_operation = 2};
	TestChannel watcher = open_with_plan(NULL);
	TestChannel channel = open_with_plan(&plan);
	uint64_t zero[3] = {0};
	uint64_t words[2] = {5, 6};
	uint64_t found[3];
	FabricOp ops[] = {
		op_write(area, &words[0], 8),
		op_write(area + 8, &words[1], 8),
		op_fetch_add(FABRIC_NODES, area + 16, 7),
	};

	channel_write(&watcher, area, zero, sizeof(zero));
	assert_int_equal(fabric_execute(channel.endpoint, ops, 3), FABRIC_LOST);
	channel_read(&watcher, area, found, sizeof(found));
	assert_true(found[0] == 5 && found[1] == 0 && found[2] == 0);
	words[1] = 66; /* what was posted is what arrives */
	fabric_fault_deliver(channel.endpoint);
	channel_read(&watcher, area, found, sizeof(found));
	assert_true(found[0] == 5 && found[1] == 6 && found[2] == 7);
	fabric_fault_deliver(channel.endpoint); /* once only */
	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
	channel_read(&watcher, area, found, sizeof(found));
	assert_true(found[2] == 7);
	channel_close(&channel);
	channel_close(&watcher);
}

static void
test_die_operation(void **state)
{
	TestChannel watcher = open_with_plan(NULL);

	for (uint32_t n = 1; n <= 4; n++)
	{
		uint64_t zero[3] = {0};
		uint64_t ones[3] = {1, 1, 1};
		uint64_t found[3];
		FabricOp ops[] = {
			op_write(area, &ones[0], 8),
			op_write(area + 8, &ones[1], 8),
			op_fetch_add(FABRIC_NODES, area + 16, 1),
		};
		pid_t child;

		channel_write(&watcher, area, zero, sizeof(zero));
		child = start_child();
		if (child == 0)
		{
			FabricFaultPlan plan = {.die_operation = n};
			TestChannel channel = open_with_plan(&plan);

			_exit(fabric_execute(channel.endpoint, ops, 3) == FABRIC_OK ? 0 : 1);
		}
		assert_int_equal(wait_for_child(child), n <= 3 ? 128 + SIGKILL : 0);
		channel_read(&watcher, area, found, sizeof(found));
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(found[i], i < n);
	}
	channel_close(&watcher);
}

static void
test_delay(void **state)
{
	FabricFaultPlan plan = {.seed = 4, .delay_max_us = 2000};
	TestChannel channel = open_with_plan(&plan);
	struct timespec start;
	struct timespec end;
	uint64_t word;
	double seconds;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < 200; i++)
		channel_read(&channel, area, &word, 8);
	clock_gettime(CLOCK_MONOTONIC, &end);
	seconds = (double) (end.tv_sec - start.tv_sec) + (double) (end.tv_nsec - start.tv_nsec) / 1e9;
	/* 200 delays of 1 ms in the mean. */
	assert_true(seconds > 0.1);
	assert_int_equal(fabric_fault_operations(channel.endpoint), 200);
	channel_close(&channel);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tear_reads),
		cmocka_unit_test(test_tear_writes),
		cmocka_unit_test(test_torn_bytes_are_exact),
		cmocka_unit_test(test_fail_each_operation),
		cmocka_unit_test(test_late_operation),
		cmocka_unit_test(test_die_operation),
		cmocka_unit_test(test_delay),
	};

	return cmocka_run_group_tests(tests, start_node, stop_node);
}
