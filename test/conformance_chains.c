/*
 * conformance_chains.c
 *		Conformance, contracts 1, 2, 4, 5 and 6: what chains of operations do.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>

#include "conformance.h"

#define STRIPE_WORDS (FABRIC_STRIPE_BYTES / 8)
#define LINE_WORDS 8

/* A second of each at most on two slow processors; the sanitizers' builds are ten times slower. */
#ifndef __OPTIMIZE__
#define SLOWER 10
#elif defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOWER 10
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SLOWER 10
#endif
#endif
#ifndef SLOWER
#define SLOWER 1
#endif
#define ORDER_ROUNDS (2000000 / SLOWER)
#define ATOMICITY_ROUNDS (300000 / SLOWER)
#define COUNTING_ROUNDS (300000 / SLOWER)
#define LOCK_ROUNDS (200000 / SLOWER)

void
run_processes(int count, void (*work)(void *argument, int number), void *argument)
{
	pid_t children[16];
	int start[2];
	char byte;

	if (suite.simulated)
	{
		run_coroutines(count, work, argument);
		return;
	}
	assert_int_equal(pipe2(start, O_CLOEXEC), 0);
	for (int i = 0; i < count; i++)
	{
		children[i] = start_child();
		assert_true(children[i] >= 0);
		if (children[i] == 0)
		{
			/* The end of the pipe is the starting signal. */
			close(start[1]);
			CHECK(read(start[0], &byte, 1) == 0);
			work(argument, i);
			_exit(0);
		}
	}
	close(start[0]);
	close(start[1]);
	for (int i = 0; i < count; i++)
		assert_int_equal(wait_for_child(children[i]), 0);
}

void
test_order_in_a_chain(void **state)
{
	TestChannel channel = open_channel();
	uint64_t first[2] = {11, 12};
	uint64_t second[2] = {21, 22};
	uint64_t found[4] = {0};
	uint64_t tickets[2];

	clear_stripe(&channel, 0);
	{
		FabricOp ops[] = {
			op_write(stripe_offset(0), first, 16),
			op_read(stripe_offset(0), &found[0], 16),
			op_write(stripe_offset(0) + 8, second, 16),
			op_read(stripe_offset(0) + 8, &found[2], 16),
			op_compare_swap(FABRIC_NODES, stripe_offset(0), 11, 31),
			op_fetch_add(FABRIC_NODES, stripe_offset(0), 4),
		};

		assert_int_equal(fabric_execute(channel.endpoint, ops, 6), FABRIC_OK);
		assert_true(found[0] == 11 && found[1] == 12 && found[2] == 21 && found[3] == 22);
		assert_true(ops[4].result == 11 && ops[5].result == 31);
	}
	{
		/* And between the chains of one endpoint. */
		FabricOp writes[] = {op_write(stripe_offset(0), second, 16)};
		FabricOp reads[] = {op_read(stripe_offset(0), found, 16)};

		assert_int_equal(fabric_post(channel.endpoint, writes, 1, &tickets[0]), FABRIC_OK);
		if (fabric_post(channel.endpoint, reads, 1, &tickets[1]) == FABRIC_OK)
		{
			assert_int_equal(fabric_wait(channel.endpoint, tickets[1]), FABRIC_OK);
			assert_true(found[0] == 21 && found[1] == 22);
		}
		assert_int_equal(fabric_wait(channel.endpoint, tickets[0]), FABRIC_OK);
	}
	channel_close(&channel);
}

typedef struct SharedCluster
{
	uint64_t cluster;
	uint32_t incarnation;
	uint32_t rounds;
} SharedCluster;

/* Process 0 writes a count to stripe 1 and then to stripe 2; the others read 2 and then 1. */
static void
write_or_watch(void *argument, int number)
{
	const SharedCluster *shared = argument;
	TestChannel channel;
	uint64_t seen[2][2];
	bool lines;

	channel_open(&channel, suite.address, shared->cluster, shared->incarnation);
	lines = (fabric_capabilities(channel.endpoint)->flags & FABRIC_CAP_LINE_ATOMIC) != 0;
	for (uint64_t i = 1; number == 0 && i <= shared->rounds; i++)
	{
		uint64_t count[2] = {i, ~i};
		FabricOp ops[] = {op_write(stripe_offset(1), count, 16), op_write(stripe_offset(2), count, 16)};

		CHECK(fabric_execute(channel.endpoint, ops, 2) == FABRIC_OK);
	}
	while (number != 0)
	{
		FabricOp ops[] = {op_read(stripe_offset(2), seen[1], 16), op_read(stripe_offset(1), seen[0], 16)};
		bool whole;

		CHECK(fabric_execute(channel.endpoint, ops, 2) == FABRIC_OK);
		/* Zeroes are the start. */
		whole = (seen[0][0] == ~seen[0][1] || (seen[0][0] | seen[0][1]) == 0) &&
		        (seen[1][0] == ~seen[1][1] || (seen[1][0] | seen[1][1]) == 0);
		CHECK(whole || !lines);
		CHECK(!whole || seen[0][0] >= seen[1][0]);
		if (whole && seen[1][0] == shared->rounds)
			break;
	}
	channel_close(&channel);
}

void
test_order_between_processes(void **state)
{
	SharedCluster shared = {.rounds = chain_rounds(ORDER_ROUNDS)};
	TestChannel channel;

	shared.cluster = new_cluster(&shared.incarnation);
	channel_open(&channel, suite.address, shared.cluster, shared.incarnation);
	clear_stripe(&channel, 1);
	clear_stripe(&channel, 2);
	channel_close(&channel);
	run_processes(3, write_or_watch, &shared);
}

void
test_not_conditional(void **state)
{
	TestChannel channel = open_channel();
	uint64_t word = 5;
	uint64_t found = 0;

	clear_stripe(&channel, 0);
	channel_write(&channel, stripe_offset(0), &word, 8);
	{
		FabricOp ops[] = {
			op_compare_swap(FABRIC_NODES, stripe_offset(0), 99, 100),
			op_read(stripe_offset(0), &found, 8),
			op_fetch_add(FABRIC_NODES, stripe_offset(0), 2),
			op_compare_swap(FABRIC_NODES, stripe_offset(0), 7, 8),
		};

		assert_int_equal(fabric_execute(channel.endpoint, ops, 4), FABRIC_OK);
		assert_true(ops[0].result == 5 && found == 5 && ops[2].result == 5 && ops[3].result == 7);
	}
	channel_read(&channel, stripe_offset(0), &found, 8);
	assert_true(found == 8);
	channel_close(&channel);
}

void
test_forbidden_chains(void **state)
{
	TestChannel channel = open_channel();
	FabricOp many[FABRIC_MAX_CHAIN + 1];
	uint64_t word = 77;
	uint64_t found = 0;
	uint64_t ticket;

	clear_stripe(&channel, 0);
	{
		/* The whole chain is refused, the WRITE in front of the atomic too. */
		FabricOp ops[] = {
			op_write(stripe_offset(0), &word, 8),
			op_compare_swap(FABRIC_LOCKS, 0, 0, 0),
			op_write(stripe_offset(0) + 8, &word, 8),
		};

		assert_int_equal(fabric_execute(channel.endpoint, ops, 3), FABRIC_PROTOCOL);
		assert_int_equal(fabric_post(channel.endpoint, ops, 3, &ticket), FABRIC_PROTOCOL);
		ops[1] = op_fetch_add(FABRIC_NODES, stripe_offset(0) + 16, 1);
		assert_int_equal(fabric_execute(channel.endpoint, ops, 3), FABRIC_PROTOCOL);
		ops[1] = op_write(0, &word, 8);
		ops[1].region = FABRIC_LOCKS;
		assert_int_equal(fabric_execute(channel.endpoint, ops, 2), FABRIC_PROTOCOL);
		ops[1].region = 2;
		assert_int_equal(fabric_execute(channel.endpoint, ops, 2), FABRIC_PROTOCOL);
		ops[1] = op_write(stripe_offset(0), &word, 8);
		ops[1].opcode = FABRIC_FETCH_ADD + 1;
		assert_int_equal(fabric_execute(channel.endpoint, ops, 2), FABRIC_PROTOCOL);
		assert_int_equal(fabric_execute(channel.endpoint, ops, 0), FABRIC_PROTOCOL);
	}
	for (uint32_t i = 0; i <= FABRIC_MAX_CHAIN; i++)
		many[i] = op_write(stripe_offset(0), &word, 8);
	assert_int_equal(fabric_execute(channel.endpoint, many, FABRIC_MAX_CHAIN + 1), FABRIC_PROTOCOL);
	channel_read(&channel, stripe_offset(0), &found, 8);
	assert_true(found == 0);
	assert_int_equal(
		fabric_execute(channel.endpoint, many, (int) fabric_capabilities(channel.endpoint)->max_chain),
		FABRIC_OK);
	channel_read(&channel, stripe_offset(0), &found, 8);
	assert_true(found == 77);
	channel_close(&channel);
}

void
test_range(void **state)
{
	static uint64_t buffer[STRIPE_WORDS + 1];
	TestChannel channel = open_channel();
	const FabricCapabilities *capabilities = fabric_capabilities(channel.endpoint);
	uint64_t nodes = capabilities->region_bytes[FABRIC_NODES];
	uint64_t locks = capabilities->region_bytes[FABRIC_LOCKS];
	FabricOp bad[] = {
		op_read(stripe_offset(0) + 4, buffer, 8),
		op_read(stripe_offset(0), buffer, 12),
		op_read(stripe_offset(0), buffer, 0),
		op_read(stripe_offset(0), buffer, FABRIC_STRIPE_BYTES + 8),
		op_read(stripe_offset(0) + 8, buffer, FABRIC_STRIPE_BYTES),
		op_write(stripe_offset(1) - 8, buffer, 16),
		op_write(nodes, buffer, 8),
		op_write(nodes - 8, buffer, 16),
		op_write(UINT64_MAX - 7, buffer, 8),
		op_read(stripe_offset(0), NULL, 8),
		op_read(stripe_offset(0), (uint8_t *) buffer + 4, 8),
		op_compare_swap(FABRIC_NODES, stripe_offset(0) + 4, 0, 1),
		op_compare_swap(FABRIC_LOCKS, locks, 0, 1),
		op_fetch_add(FABRIC_LOCKS, 4, 1),
	};
	FabricOp lock_read = op_read(0, buffer, 8);

	clear_stripe(&channel, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		uint64_t word = 1;
		FabricOp ops[] = {op_write(stripe_offset(0), &word, 8), bad[i]};

		assert_int_equal(fabric_execute(channel.endpoint, ops, 2), FABRIC_RANGE);
	}
	channel_read(&channel, stripe_offset(0), buffer, 8);
	assert_true(buffer[0] == 0);
	lock_read.region = FABRIC_LOCKS;
	assert_int_equal(fabric_execute(channel.endpoint, &lock_read, 1), FABRIC_OK);
	lock_read.length = 16;
	assert_int_equal(fabric_execute(channel.endpoint, &lock_read, 1), FABRIC_RANGE);
	/* The first and the last that are allowed. */
	channel_read(&channel, stripe_offset(1) - 8, buffer, 8);
	channel_read(&channel, stripe_offset(0), buffer, FABRIC_STRIPE_BYTES);
	channel_read(&channel, nodes - 8, buffer, 8);
	channel_close(&channel);
}

/*
 * Processes 0 and 1 fill stripe 3 with one value a WRITE; 2 and 3 check that a READ, or where only lines are
 * vouched for, each line of it, holds one value.
 */
static void
fill_or_check(void *argument, int number)
{
	const SharedCluster *shared = argument;
	uint64_t words[STRIPE_WORDS];
	bool whole, lines;
	TestChannel channel;

	channel_open(&channel, suite.address, shared->cluster, shared->incarnation);
	whole = (fabric_capabilities(channel.endpoint)->flags & FABRIC_CAP_OPERATION_ATOMIC) != 0;
	lines = (fabric_capabilities(channel.endpoint)->flags & FABRIC_CAP_LINE_ATOMIC) != 0;
	for (uint32_t i = 0; i < shared->rounds; i++)
	{
		if (number < 2)
		{
			for (uint32_t word = 0; word < STRIPE_WORDS; word++)
				words[word] = (uint64_t) number << 32 | i;
			channel_write(&channel, stripe_offset(3), words, sizeof(words));
		}
		else
		{
			channel_read(&channel, stripe_offset(3), words, sizeof(words));
			for (uint32_t word = 0; lines && word < STRIPE_WORDS; word++)
				CHECK(words[word] == words[whole ? 0 : word / LINE_WORDS * LINE_WORDS]);
		}
	}
	channel_close(&channel);
}

void
test_operation_atomicity(void **state)
{
	SharedCluster shared = {.rounds = chain_rounds(ATOMICITY_ROUNDS)};
	TestChannel channel;

	shared.cluster = new_cluster(&shared.incarnation);
	channel_open(&channel, suite.address, shared.cluster, shared.incarnation);
	clear_stripe(&channel, 3);
	channel_close(&channel);
	run_processes(4, fill_or_check, &shared);
}

#define COUNTED_LOCK_WORD 64u

/* Counts a lock word and a node word up, by FETCH_ADD and by COMPARE_SWAP in turns. */
static void
count_up(void *argument, int number)
{
	const SharedCluster *shared = argument;
	TestChannel channel;

	channel_open(&channel, suite.address, shared->cluster, shared->incarnation);
	for (uint32_t i = 0; i < shared->rounds; i++)
	{
		FabricOp adds[] = {
			op_fetch_add(FABRIC_LOCKS, COUNTED_LOCK_WORD, 1),
			op_fetch_add(FABRIC_NODES, stripe_offset(4), 1),
		};
		FabricOp swap = op_compare_swap(FABRIC_LOCKS, COUNTED_LOCK_WORD, 0, 0);

		CHECK(fabric_execute(channel.endpoint, adds, 2) == FABRIC_OK);
		for (;;)
		{
			CHECK(fabric_execute(channel.endpoint, &swap, 1) == FABRIC_OK);
			if (swap.result == swap.compare && swap.operand == swap.compare + 1)
				break;
			swap.compare = swap.result;
			swap.operand = swap.result + 1;
		}
	}
	channel_close(&channel);
}

void
test_counting(void **state)
{
	SharedCluster shared = {.rounds = chain_rounds(COUNTING_ROUNDS)};
	TestChannel channel;
	uint64_t counted[2] = {0};
	FabricOp lock_read = op_read(COUNTED_LOCK_WORD, &counted[0], 8);
	FabricOp swap;

	shared.cluster = new_cluster(&shared.incarnation);
	channel_open(&channel, suite.address, shared.cluster, shared.incarnation);
	clear_stripe(&channel, 4);
	run_processes(4, count_up, &shared);
	lock_read.region = FABRIC_LOCKS;
	assert_int_equal(fabric_execute(channel.endpoint, &lock_read, 1), FABRIC_OK);
	channel_read(&channel, stripe_offset(4), &counted[1], 8);
	assert_int_equal(counted[0], 4ull * 2 * shared.rounds);
	assert_int_equal(counted[1], 4ull * shared.rounds);
	swap = op_compare_swap(FABRIC_LOCKS, COUNTED_LOCK_WORD, counted[0], 0);
	assert_int_equal(fabric_execute(channel.endpoint, &swap, 1), FABRIC_OK);
	channel_close(&channel);
}

/* The tree's own pattern: {CAS, READ} takes a lock with the data behind it, {WRITE, CAS} gives both back. */
static void
lock_and_count(void *argument, int number)
{
	const SharedCluster *shared = argument;
	uint64_t lock_offset = 8ull * 100;
	uint64_t me = (uint64_t) number + 1;
	uint64_t data[16];
	TestChannel channel;

	channel_open(&channel, suite.address, shared->cluster, shared->incarnation);
	for (uint32_t i = 0; i < shared->rounds; i++)
	{
		FabricOp lock[] = {
			op_compare_swap(FABRIC_LOCKS, lock_offset, 0, me),
			op_read(stripe_offset(5), data, sizeof(data)),
		};
		FabricOp unlock[] = {
			op_write(stripe_offset(5), data, sizeof(data)),
			op_compare_swap(FABRIC_LOCKS, lock_offset, me, 0),
		};

		for (;;)
		{
			CHECK(fabric_execute(channel.endpoint, lock, 2) == FABRIC_OK);
			if (lock[0].result == 0)
				break;
			sched_yield();
		}
		for (int word = 1; word < 16; word++)
			CHECK(data[word] == data[0]);
		for (int word = 0; word < 16; word++)
			data[word]++;
		CHECK(fabric_execute(channel.endpoint, unlock, 2) == FABRIC_OK);
		CHECK(unlock[1].result == me);
	}
	channel_close(&channel);
}

void
test_lock_and_read(void **state)
{
	SharedCluster shared = {.rounds = chain_rounds(LOCK_ROUNDS)};
	TestChannel channel;
	uint64_t found;

	shared.cluster = new_cluster(&shared.incarnation);
	channel_open(&channel, suite.address, shared.cluster, shared.incarnation);
	clear_stripe(&channel, 5);
	if (fabric_capabilities(channel.endpoint)->flags & FABRIC_CAP_ORDERED_CAS_READ)
	{
		run_processes(3, lock_and_count, &shared);
		channel_read(&channel, stripe_offset(5), &found, 8);
		assert_int_equal(found, 3ull * shared.rounds);
	}
	channel_close(&channel);
}

void
test_counters(void **state)
{
	TestChannel channel = open_channel();
	FabricCounters counters;
	uint64_t words[8] = {0};
	uint64_t ticket;
	FabricOp chain[] = {
		op_write(stripe_offset(0), words, 16),
		op_read(stripe_offset(0), words, 64),
		op_read(stripe_offset(0), words, 8),
		op_fetch_add(FABRIC_NODES, stripe_offset(0), 1),
		op_compare_swap(FABRIC_NODES, stripe_offset(0), 0, 1),
	};
	FabricOp bad = op_read(1, words, 8);

	fabric_counters(channel.endpoint, &counters);
	assert_true(counters.round_trips == 0 && counters.operations == 0 && counters.errors == 0);
	for (int i = 0; i < 10; i++)
	{
		assert_int_equal(fabric_post(channel.endpoint, chain, 5, &ticket), FABRIC_OK);
		assert_int_equal(fabric_wait(channel.endpoint, ticket), FABRIC_OK);
	}
	assert_int_equal(fabric_execute(channel.endpoint, chain, 2), FABRIC_OK);
	assert_int_equal(fabric_execute(channel.endpoint, &bad, 1), FABRIC_RANGE);
	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
	fabric_counters(channel.endpoint, &counters);
	assert_int_equal(counters.round_trips, 11);
	assert_int_equal(counters.operations, 52);
	assert_int_equal(counters.reads, 21);
	assert_int_equal(counters.writes, 11);
	assert_int_equal(counters.atomics, 20);
	assert_int_equal(counters.read_bytes, 10 * 72 + 64);
	assert_int_equal(counters.written_bytes, 10 * 32 + 16);
	assert_int_equal(counters.calls, 0);
	assert_int_equal(counters.resets, 1);
	assert_int_equal(counters.errors, 1);
	channel_close(&channel);
}

void
test_tickets(void **state)
{
	static FabricOp ops[4096];
	static uint64_t found[4096];
	static uint64_t tickets[4096];
	TestChannel channel = open_channel();
	uint32_t outstanding = fabric_capabilities(channel.endpoint)->max_outstanding;
	uint64_t word = 42;
	uint64_t unused;
	FabricOp one_more = op_read(stripe_offset(0), &unused, 8);

	assert_in_range(outstanding, 1, 4096);
	channel_write(&channel, stripe_offset(0), &word, 8);
	for (uint32_t i = 0; i < outstanding; i++)
	{
		ops[i] = op_read(stripe_offset(0), &found[i], 8);
		assert_int_equal(fabric_post(channel.endpoint, &ops[i], 1, &tickets[i]), FABRIC_OK);
	}
	assert_int_equal(fabric_post(channel.endpoint, &one_more, 1, &unused), FABRIC_BUSY);
	for (int waits = 0; !fabric_ended(channel.endpoint, tickets[outstanding - 1]); waits++)
	{
		struct pollfd polled = {.fd = fabric_descriptor(channel.endpoint), .events = POLLIN};

		assert_in_range(waits, 0, 10000);
		poll(&polled, 1, 10);
	}
	/* Waited for from the last to the first, each once. */
	for (uint32_t i = outstanding; i > 0; i--)
	{
		assert_int_equal(fabric_wait(channel.endpoint, tickets[i - 1]), FABRIC_OK);
		assert_true(found[i - 1] == 42);
		assert_int_equal(fabric_wait(channel.endpoint, tickets[i - 1]), FABRIC_PROTOCOL);
	}
	assert_int_equal(fabric_wait(channel.endpoint, 0), FABRIC_PROTOCOL);
	assert_int_equal(fabric_execute(channel.endpoint, &one_more, 1), FABRIC_OK);
	channel_close(&channel);
}
