/*
 * conformance_death.c
 *		Conformance, contracts 3 and 7: doubt, death, fencing, deadlines.
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <string.h>
#include <time.h>

#include "conformance.h"
#include "fault.h"

#define STRIPE_WORDS (FABRIC_STRIPE_BYTES / 8)
#define LINE_WORDS 8

static uint64_t
read_word(TestChannel *channel, uint64_t offset)
{
	uint64_t word;

	channel_read(channel, offset, &word, 8);
	return word;
}

/* Tests that stop or kill clients need a process for each; in the simulator all are one. */
static void
need_processes(void)
{
	if (suite.simulated)
		skip();
}

/* Tests that stop the memory node need one of their own. */
static void
need_own_process(void)
{
	need_processes();
	if (!suite.own_process)
		skip();
}

void
test_doubt_and_reset(void **state)
{
	FabricFaultPlan plan = {.fail_operation = 2};
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	TestChannel channel;
	TestChannel other;
	uint64_t words[2] = {1, 2};
	FabricOp ops[] = {
		op_write(stripe_offset(0), &words[0], 8),
		op_write(stripe_offset(0) + 8, &words[1], 8),
		op_fetch_add(FABRIC_NODES, stripe_offset(0) + 16, 1),
	};

	channel_open(&channel, suite.address, cluster, incarnation);
	channel_open(&other, suite.address, cluster, incarnation);
	clear_stripe(&channel, 0);
	assert_int_equal(fabric_fault_set(channel.endpoint, &plan), FABRIC_OK);
	assert_int_equal(fabric_execute(channel.endpoint, ops, 3), FABRIC_LOST);
	assert_int_equal(fabric_fault_set(channel.endpoint, NULL), FABRIC_OK);
	/* In doubt: nothing is posted before a reset, and the prefix is all that landed. */
	assert_int_equal(fabric_execute(channel.endpoint, ops, 1), FABRIC_LOST);
	assert_true(read_word(&other, stripe_offset(0)) == 1);
	assert_true(read_word(&other, stripe_offset(0) + 8) == 0);
	assert_true(read_word(&other, stripe_offset(0) + 16) == 0);
	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
	assert_int_equal(fabric_execute(channel.endpoint, ops, 3), FABRIC_OK);
	assert_true(read_word(&other, stripe_offset(0) + 16) == 1);
	/* Nothing but the endpoint that was reset has noticed. */
	assert_int_equal(fabric_execute(other.endpoint, ops, 3), FABRIC_OK);
	/* Reset without need is allowed, again and again. */
	for (int i = 0; i < 50; i++)
	{
		assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
		assert_true(read_word(&channel, stripe_offset(0)) == 1);
	}
	channel_close(&other);
	channel_close(&channel);
}

/* Who connects after a channel knows that nothing of it can land any more. */
void
test_successor(void **state)
{
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	FabricOptions options = {.cluster = {cluster, ~cluster},
	                         .incarnation = incarnation,
	                         .key_file = suite.key_file,
	                         .transport = suite.simulated ? &sim_transport : NULL};
	FabricChannel channel;
	FabricChannel next;
	TestChannel old;
	TestChannel successors[2];
	uint64_t word = 1;
	FabricOp op = op_write(stripe_offset(0), &word, 8);

	channel_open(&old, suite.address, cluster, incarnation);
	if (shares_channel(&old))
	{
		channel_close(&old);
		skip();
	}
	clear_stripe(&old, 0);
	fabric_channel(old.endpoint, &channel);
	assert_int_equal(channel.channel, fabric_capabilities(old.endpoint)->channel);
	assert_true(channel.serial != 0);
	/* To name a channel that is dead already harms nobody. */
	for (int i = 0; i < 2; i++)
	{
		assert_int_equal(fabric_open(&options, &successors[i].fabric), FABRIC_OK);
		assert_int_equal(
			fabric_connect_after(successors[i].fabric, suite.address, &channel, &successors[i].endpoint),
			FABRIC_OK);
		fabric_channel(successors[i].endpoint, &next);
		assert_true(next.channel != channel.channel || next.serial != channel.serial);
		assert_int_not_equal(fabric_execute(old.endpoint, &op, 1), FABRIC_OK);
		assert_true(read_word(&successors[i], stripe_offset(0)) == 0);
	}
	channel_write(&successors[0], stripe_offset(0), &word, 8);
	assert_true(read_word(&successors[1], stripe_offset(0)) == 1);
	channel_close(&successors[1]);
	channel_close(&successors[0]);
	channel_close(&old);
}

void
test_late_delivery(void **state)
{
	FabricFaultPlan plan = {.late_operation = 1};
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	TestChannel channel;
	TestChannel other;
	uint64_t word = 9;
	FabricOp op = op_write(stripe_offset(0), &word, 8);
	FabricStatus status;

	channel_open(&channel, suite.address, cluster, incarnation);
	channel_open(&other, suite.address, cluster, incarnation);
	clear_stripe(&channel, 0);
	assert_int_equal(fabric_fault_set(channel.endpoint, &plan), FABRIC_OK);
	assert_int_equal(fabric_execute(channel.endpoint, &op, 1), FABRIC_LOST);
	word = 10; /* the buffer is the caller's again */
	assert_true(read_word(&other, stripe_offset(0)) == 0);
	/* It may land as late as during the reset, and never after it. */
	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
	assert_true(read_word(&other, stripe_offset(0)) == 9);
	clear_stripe(&other, 0);
	fabric_fault_deliver(channel.endpoint);
	assert_true(read_word(&other, stripe_offset(0)) == 0);

	/* A channel that was fenced in between delivers nothing. */
	assert_int_equal(fabric_fault_set(channel.endpoint, &plan), FABRIC_OK);
	assert_int_equal(fabric_execute(channel.endpoint, &op, 1), FABRIC_LOST);
	channel_close(&other);
	incarnation = cluster_attach(suite.address, cluster);
	channel_open(&other, suite.address, cluster, incarnation);
	fabric_fault_deliver(channel.endpoint);
	assert_true(read_word(&other, stripe_offset(0)) == 0);
	status = fabric_reset(channel.endpoint);
	assert_int_equal(status, FABRIC_FENCED);
	assert_true(read_word(&other, stripe_offset(0)) == 0);
	channel_close(&other);
	channel_close(&channel);
}

void
test_attach(void **state)
{
	uint64_t cluster = suite.next_cluster++;
	uint64_t nonce = 12345;
	uint32_t instance[3];
	uint32_t incarnation[3];
	uint32_t stranger_incarnation;
	uint64_t stranger_cluster = new_cluster(&stranger_incarnation);
	uint64_t word = 3;
	FabricOp op = op_write(stripe_offset(0), &word, 8);
	TestChannel control;
	TestChannel old;
	TestChannel stranger;
	FabricStatus status;

	channel_open(&control, suite.address, cluster, 0);
	channel_open(&stranger, suite.address, stranger_cluster, stranger_incarnation);
	clear_stripe(&stranger, 0);
	assert_int_equal(fabric_attach(control.endpoint, true, nonce, &instance[0], &incarnation[0]), FABRIC_OK);
	channel_open(&old, suite.address, cluster, incarnation[0]);
	assert_int_equal(fabric_execute(old.endpoint, &op, 1), FABRIC_OK);
	assert_int_not_equal(fabric_capabilities(stranger.endpoint)->instance, instance[0]);

	/* The same launcher, started again: nothing is fenced. Another one: everything is. */
	assert_int_equal(fabric_attach(control.endpoint, true, nonce, &instance[1], &incarnation[1]), FABRIC_OK);
	assert_int_equal(instance[1], instance[0]);
	assert_int_equal(incarnation[1], incarnation[0]);
	assert_int_equal(fabric_execute(old.endpoint, &op, 1), FABRIC_OK);
	assert_int_equal(fabric_attach(control.endpoint, true, nonce + 1, &instance[1], &incarnation[1]),
	                 FABRIC_OK);
	assert_int_equal(instance[1], instance[0]);
	assert_int_not_equal(incarnation[1], incarnation[0]);
	word = 4;
	status = fabric_execute(old.endpoint, &op, 1);
	/* Over verbs the queue pair's end may be seen before the memory node's word for it: the reset tells, then. */
	assert_true(status == FABRIC_FENCED || (suite_verbs() && status == FABRIC_LOST));
	assert_true(read_word(&stranger, stripe_offset(0)) == 3);
	assert_int_equal(fabric_reset(old.endpoint), FABRIC_FENCED);
	assert_int_equal(fabric_execute(old.endpoint, &op, 1), FABRIC_LOST);
	assert_int_equal(fabric_attach(control.endpoint, false, nonce + 1, &instance[2], &incarnation[2]),
	                 FABRIC_OK);
	assert_int_not_equal(incarnation[2], incarnation[1]);
	/* The other cluster has noticed nothing. */
	assert_int_equal(fabric_execute(stranger.endpoint, &op, 1), FABRIC_OK);
	channel_close(&old);
	channel_close(&stranger);
	channel_close(&control);
}

void
test_attach_frees_locks(void **state)
{
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	uint32_t other_incarnation;
	uint64_t other_cluster = new_cluster(&other_incarnation);
	TestChannel channel;
	TestChannel other;
	uint64_t mine;
	uint64_t others;

	channel_open(&channel, suite.address, cluster, incarnation);
	channel_open(&other, suite.address, other_cluster, other_incarnation);
	mine = fabric_lock_word(fabric_capabilities(channel.endpoint)->instance, incarnation, 7);
	others = fabric_lock_word(fabric_capabilities(other.endpoint)->instance, other_incarnation, 8);
	{
		uint64_t last = fabric_capabilities(channel.endpoint)->region_bytes[FABRIC_LOCKS] - 8;
		FabricOp take[] = {
			op_compare_swap(FABRIC_LOCKS, 8, 0, mine),
			op_compare_swap(FABRIC_LOCKS, last, 0, mine),
		};
		FabricOp take_other = op_compare_swap(FABRIC_LOCKS, 16, 0, others);
		FabricOp look[] = {
			op_fetch_add(FABRIC_LOCKS, 8, 0),
			op_fetch_add(FABRIC_LOCKS, last, 0),
			op_fetch_add(FABRIC_LOCKS, 16, 0),
		};

		assert_int_equal(fabric_execute(channel.endpoint, take, 2), FABRIC_OK);
		assert_int_equal(fabric_execute(other.endpoint, &take_other, 1), FABRIC_OK);
		assert_true(take[0].result == 0 && take[1].result == 0 && take_other.result == 0);
		/* The end of a channel and its reset free nothing: the words belong to the instance. */
		assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
		channel_close(&channel);
		sleep_ms(20);
		assert_int_equal(fabric_execute(other.endpoint, look, 3), FABRIC_OK);
		assert_true(look[0].result == mine && look[1].result == mine && look[2].result == others);
		cluster_attach(suite.address, cluster);
		assert_int_equal(fabric_execute(other.endpoint, look, 3), FABRIC_OK);
		assert_true(look[0].result == 0 && look[1].result == 0 && look[2].result == others);
	}
	channel_close(&other);
	cluster_attach(suite.address, other_cluster);
}

#define HAMMERED 24 /* the lock word that hammer() counts up */

/* Writes a count into stripe 6 and counts a lock word up, without end, mostly idle. */
static void
hammer(uint64_t cluster, uint32_t incarnation)
{
	uint64_t words[STRIPE_WORDS];
	TestChannel channel;

	channel_open(&channel, suite.address, cluster, incarnation);
	for (uint64_t i = 1;; i++)
	{
		FabricOp ops[2];

		for (uint32_t word = 0; word < STRIPE_WORDS; word++)
			words[word] = i;
		ops[0] = op_write(stripe_offset(6), words, sizeof(words));
		ops[1] = op_fetch_add(FABRIC_LOCKS, HAMMERED, 1);
		if (fabric_execute(channel.endpoint, ops, 2) != FABRIC_OK)
			_exit(0);
		if (i % 64 == 0)
			sleep_ms(1);
	}
}

/* What hammer() has counted. */
static uint64_t
hammered(TestChannel *channel)
{
	FabricOp look = op_fetch_add(FABRIC_LOCKS, HAMMERED, 0);

	assert_int_equal(fabric_execute(channel->endpoint, &look, 1), FABRIC_OK);
	return look.result;
}

/* Waits until a child hammers. */
static void
await_hammer(uint64_t cluster, uint32_t incarnation)
{
	uint64_t begin = now_ms();
	uint64_t before;
	TestChannel channel;

	channel_open(&channel, suite.address, cluster, incarnation);
	before = hammered(&channel);
	while (hammered(&channel) == before)
	{
		assert_true(now_ms() - begin < PATIENCE_MS);
		sleep_ms(1);
	}
	channel_close(&channel);
}

static uint64_t
random_microseconds(uint64_t limit)
{
	static uint64_t random = 88172645463325252ull;

	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	return random % limit;
}

static void
sleep_us(uint64_t microseconds)
{
	nanosleep(&(struct timespec){.tv_sec = 0, .tv_nsec = (long) microseconds * 1000}, NULL);
}

/*
 * An old client, stopped at any place and continued after the next incarnation was granted, changes nothing
 * any more.  One that was stopped inside a chain is killed by the memory node, or the attach is refused.
 */
void
test_fence_stopped_client(void **state)
{
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);

	need_processes();
	for (int round = 0; round < 4; round++)
	{
		uint64_t before[STRIPE_WORDS];
		uint64_t after[STRIPE_WORDS];
		uint64_t count;
		TestChannel channel;
		pid_t child = start_child();
		int end;

		if (child == 0)
			hammer(cluster, incarnation);
		await_hammer(cluster, incarnation);
		sleep_us(random_microseconds(2000));
		kill(child, SIGSTOP);
		incarnation = cluster_attach(suite.address, cluster);
		channel_open(&channel, suite.address, cluster, incarnation);
		channel_read(&channel, stripe_offset(6), before, sizeof(before));
		count = hammered(&channel);
		kill(child, SIGCONT);
		end = wait_for_child(child);
		assert_true(end == 0 || end == 128 + SIGKILL);
		channel_read(&channel, stripe_offset(6), after, sizeof(after));
		assert_memory_equal(before, after, sizeof(before));
		assert_true(hammered(&channel) == count);
		channel_close(&channel);
	}
}

/* Dies in a WRITE of words that are all `value`, after so many lines. */
static void
die_inside_write(uint64_t cluster, uint32_t incarnation, uint64_t value, uint32_t lines)
{
	FabricFaultPlan plan = {.die_operation = 1, .die_line = lines};
	uint64_t words[STRIPE_WORDS];
	TestChannel channel;

	channel_open(&channel, suite.address, cluster, incarnation);
	for (uint32_t word = 0; word < STRIPE_WORDS; word++)
		words[word] = value;
	CHECK(fabric_fault_set(channel.endpoint, &plan) == FABRIC_OK);
	channel_write(&channel, stripe_offset(7), words, sizeof(words));
	_exit(3);
}

void
test_death_inside_write(void **state)
{
	const uint32_t lines[] = {1, 2, 17, 63, 64};
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	TestChannel channel;
	ServiceInfo start = service_info(suite.address);

	need_processes();
	channel_open(&channel, suite.address, cluster, incarnation);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
	{
		uint64_t words[STRIPE_WORDS];
		uint32_t written = 0;
		pid_t child;

		clear_stripe(&channel, 7);
		child = start_child();
		if (child == 0)
			die_inside_write(cluster, incarnation, i + 1, lines[i]);
		assert_int_equal(wait_for_child(child), 128 + SIGKILL);
		/* The memory node ends what the dead writer began: else this would time out. */
		channel_read(&channel, stripe_offset(7), words, sizeof(words));
		for (uint32_t line = 0; line < STRIPE_WORDS / LINE_WORDS; line++)
		{
			for (uint32_t word = 0; word < LINE_WORDS; word++)
				assert_true(words[line * LINE_WORDS + word] == words[line * LINE_WORDS]);
			assert_true(words[line * LINE_WORDS] == 0 || words[line * LINE_WORDS] == i + 1);
			written += words[line * LINE_WORDS] != 0;
		}
		/* One packet lands whole. */
		if (fabric_capabilities(channel.endpoint)->one_packet >= sizeof(words))
			assert_int_equal(written, STRIPE_WORDS / LINE_WORDS);
		else
			assert_int_equal(written, lines[i]);
		/* And others may write there. */
		clear_stripe(&channel, 7);
	}
	/* A channel that others use, too, does not die with its user. */
	if (shares_channel(&channel))
		assert_true(service_info(suite.address).recovered_inside == start.recovered_inside);
	else
		assert_int_equal(service_info(suite.address).recovered - start.recovered,
		                 sizeof(lines) / sizeof(lines[0]));
	channel_close(&channel);
}

/* Writes into stripe 8 without a pause, cells of two words and whole stripes. */
static void
write_until_killed(uint64_t cluster, uint32_t incarnation)
{
	uint64_t words[STRIPE_WORDS];
	TestChannel channel;

	channel_open(&channel, suite.address, cluster, incarnation);
	for (uint64_t i = 1;; i++)
	{
		for (uint32_t word = 0; word < STRIPE_WORDS; word++)
			words[word] = i;
		channel_write(&channel, stripe_offset(8), words, sizeof(words));
		channel_write(&channel, stripe_offset(8) + 16 * (i % 256), words, 16);
	}
}

void
test_random_death(void **state)
{
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	TestChannel channel;
	uint64_t words[STRIPE_WORDS];

	need_processes();
	channel_open(&channel, suite.address, cluster, incarnation);
	clear_stripe(&channel, 8);
	for (int round = 0; round < 40; round++)
	{
		pid_t child = start_child();
		uint64_t begin;

		if (child == 0)
			write_until_killed(cluster, incarnation);
		begin = read_word(&channel, stripe_offset(8));
		for (uint64_t start = now_ms(); read_word(&channel, stripe_offset(8)) == begin; sleep_us(100))
			assert_true(now_ms() - start < PATIENCE_MS);
		sleep_us(random_microseconds(1000));
		kill(child, SIGKILL);
		assert_int_equal(wait_for_child(child), 128 + SIGKILL);
		/* Neither times out. */
		channel_read(&channel, stripe_offset(8), words, sizeof(words));
		clear_stripe(&channel, 8);
	}
	channel_close(&channel);
}

void
test_deadline(void **state)
{
	FabricOptions quick = {.operation_timeout_ms = 1000};
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	uint64_t words[STRIPE_WORDS];
	FabricOp read = op_read(stripe_offset(7), words, sizeof(words));
	TestChannel channel;
	uint64_t begin;
	pid_t child;

	need_own_process();
	assert_int_equal(channel_try_open(&channel, suite.address, cluster, incarnation, &quick), FABRIC_OK);
	clear_stripe(&channel, 7);
	child = start_child();
	if (child == 0)
	{
		/* Connected while the memory node runs; it dies while that stands still. */
		FabricFaultPlan plan = {.die_operation = 1, .die_line = 5};
		TestChannel own;

		CHECK(channel_try_open(&own, suite.address, cluster, incarnation, &quick) == FABRIC_OK);
		CHECK(fabric_fault_set(own.endpoint, &plan) == FABRIC_OK);
		memset(words, 0x77, sizeof(words));
		kill(suite.process.pid, SIGSTOP);
		channel_write(&own, stripe_offset(7), words, sizeof(words));
		_exit(3);
	}
	assert_int_equal(wait_for_child(child), 128 + SIGKILL);
	begin = now_ms();
	if (fabric_execute(channel.endpoint, &read, 1) == FABRIC_OK)
		kill(suite.process.pid, SIGCONT); /* no harm done by the death on this transport */
	else
	{
		assert_true(now_ms() - begin >= 900);
		assert_int_equal(fabric_execute(channel.endpoint, &read, 1), FABRIC_LOST);
		kill(suite.process.pid, SIGCONT);
		assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
		assert_int_equal(fabric_execute(channel.endpoint, &read, 1), FABRIC_OK);
	}
	channel_close(&channel);
}

void
test_memory_node_restart(void **state)
{
	uint32_t incarnation;
	uint64_t cluster = new_cluster(&incarnation);
	TestChannel channel;
	FabricCapabilities old;
	uint64_t word = 4711;
	FabricOp op = op_write(stripe_offset(0) + 8, &word, 8);
	FabricStatus status;

	need_own_process();
	channel_open(&channel, suite.address, cluster, incarnation);
	old = *fabric_capabilities(channel.endpoint);
	clear_stripe(&channel, 0);
	channel_write(&channel, stripe_offset(0), &word, 8);
	fabric_process_stop(&suite.process, SIGKILL);
	status = fabric_call(channel.endpoint, SERVICE_ECHO, &word, 8, NULL, NULL);
	assert_int_equal(status, FABRIC_LOST);
	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_UNREACHABLE);
	assert_int_equal(fabric_execute(channel.endpoint, &op, 1), FABRIC_LOST);
	fabric_process_start(&suite.process);
	assert_int_equal(fabric_reset(channel.endpoint), FABRIC_OK);
	assert_memory_equal(fabric_capabilities(channel.endpoint)->node_uuid, old.node_uuid, 16);
	assert_true(fabric_capabilities(channel.endpoint)->generation == old.generation + 1);
	assert_int_equal(fabric_capabilities(channel.endpoint)->instance, old.instance);
	assert_true(read_word(&channel, stripe_offset(0)) == 4711);
	assert_true(read_word(&channel, stripe_offset(0) + 8) == 0);
	channel_close(&channel);
}
