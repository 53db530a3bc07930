/*
 * test_recovery.c
 *		The memory node and the deaths of its clients, over shm: what is left half-done, and who owns a channel record.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "support/testing.h"
#include "rdma/memory/memory.h"
#include "support/fabric_process.h"

#define CLUSTER 99u

static FabricProcess node; /* of the test that runs */

/* A writer and its memory node die together: the next daemon settles the stripe before it serves anybody. */
static void
test_both_die(void **state)
{
	uint64_t area = service_info(node.address).first_unit;
	uint32_t incarnation = cluster_attach(node.address, CLUSTER);
	ServiceInfo info;
	uint64_t words[512];
	TestChannel channel;
	pid_t child;

	assert_int_equal(service_commit(node.address, area, FABRIC_UNIT_BYTES), FABRIC_OK);
	child = start_child();
	if (child == 0)
	{
		FabricFaultPlan plan = {.die_operation = 1, .die_line = 1};

		channel_open(&channel, node.address, CLUSTER, incarnation);
		CHECK(fabric_fault_set(channel.endpoint, &plan) == FABRIC_OK);
		memset(words, 0x44, sizeof(words));
		kill(node.pid, SIGSTOP);
		channel_write(&channel, area + 4096, words, 1024);
		_exit(3);
	}
	assert_int_equal(wait_for_child(child), 128 + SIGKILL);
	fabric_process_stop(&node, SIGKILL);
	fabric_process_start(&node);
	info = service_info(node.address);
	assert_int_equal(info.memory_state, FABRIC_MEMORY_RECOVERED);
	assert_int_equal(info.recovered, 1);
	assert_int_equal(info.recovered_inside, 1);
	assert_int_equal(info.last_write_offset, area + 4096);
	assert_int_equal(info.last_write_bytes, 1024);
	channel_open(&channel, node.address, CLUSTER, incarnation);
	channel_read(&channel, area + 4096, words, 1024);
	/* From the last line to the first: the first word of a WRITE comes last. */
	assert_true(words[0] == 0 && words[119] == 0 && words[120] == 0x4444444444444444ull);
	channel_write(&channel, area + 4096, words, 1024);
	channel_close(&channel);
}

/*
 * Ends or stops with the stripe at `area` taken, as shm.c would: to write, or for a READ that was overtaken
 * too often.
 */
static void
hold_stripe(uint64_t area, uint32_t incarnation, uint64_t intent_flags, int signal_number)
{
	Memory memory = {.descriptor = -1};
	MemoryChannel *record;
	TestChannel channel;

	channel_open(&channel, node.address, CLUSTER, incarnation);
	CHECK(memory_map(open(node.memory_path, O_RDWR | O_CLOEXEC), &memory) == FABRIC_OK);
	record = &memory.channels[fabric_capabilities(channel.endpoint)->channel];
	__atomic_fetch_or(&record->active, MEMORY_ACTIVE_BUSY, __ATOMIC_SEQ_CST);
	__atomic_store_n(&record->intent, memory_intent(area, 1024) | intent_flags, __ATOMIC_SEQ_CST);
	*memory_stripe(&memory, area) |= 1 | (uint64_t) fabric_capabilities(channel.endpoint)->channel
	                                         << MEMORY_STRIPE_OWNER_SHIFT;
	raise(signal_number);
	_exit(3);
}

/* A client stopped inside a WRITE, for ever: the next incarnation's attach kills it and is granted. */
static void
test_attach_kills_stuck_client(void **state)
{
	uint64_t area = service_info(node.address).first_unit;
	uint32_t incarnation = cluster_attach(node.address, CLUSTER);
	uint32_t next;
	ServiceInfo info;
	TestChannel channel;
	uint64_t word;
	int status;
	pid_t child;

	assert_int_equal(service_commit(node.address, area, FABRIC_UNIT_BYTES), FABRIC_OK);
	child = start_child();
	if (child == 0)
		hold_stripe(area, incarnation, 0, SIGSTOP);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	next = cluster_attach(node.address, CLUSTER);
	assert_int_not_equal(next, incarnation);
	/* Dead when the grant was given, not some time later. */
	assert_int_equal(waitpid(child, &status, WNOHANG), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	info = service_info(node.address);
	assert_int_equal(info.recovered_inside, 1);
	assert_int_equal(info.last_write_offset, area);
	assert_int_equal(info.fenced, 2);
	assert_int_equal(info.fenced_incarnation, next);
	channel_open(&channel, node.address, CLUSTER, next);
	channel_read(&channel, area, &word, 8);
	channel_close(&channel);
}

/*
 * A stripe that was taken to read is settled, but there is no WRITE to replay: a redo image would be an old
 * one.
 */
static void
test_death_while_reading(void **state)
{
	uint64_t area = service_info(node.address).first_unit;
	uint32_t incarnation = cluster_attach(node.address, CLUSTER);
	TestChannel channel;
	uint64_t word;

	assert_int_equal(service_commit(node.address, area, FABRIC_UNIT_BYTES), FABRIC_OK);
	channel_open(&channel, node.address, CLUSTER, incarnation);
	for (uint64_t round = 1; round <= 2; round++)
	{
		pid_t child = start_child();

		if (child == 0)
			hold_stripe(area, incarnation, round == 1 ? MEMORY_INTENT_READ : 0, SIGKILL);
		assert_int_equal(wait_for_child(child), 128 + SIGKILL);
		channel_read(&channel, area, &word, 8);
		assert_int_equal(service_info(node.address).recovered, round);
		assert_int_equal(service_info(node.address).recovered_inside, round - 1);
	}
	channel_close(&channel);
}

/*
 * Two processes write words of one stripe without a pause: a READ of all of it comes to its end all the
 * same.
 */
static void
test_reader_is_not_starved(void **state)
{
	static uint64_t words[FABRIC_STRIPE_BYTES / 8];
	uint64_t area = service_info(node.address).first_unit;
	uint32_t incarnation = cluster_attach(node.address, CLUSTER);
	TestChannel channel;
	pid_t children[2];

	assert_int_equal(service_commit(node.address, area, FABRIC_UNIT_BYTES), FABRIC_OK);
	channel_open(&channel, node.address, CLUSTER, incarnation);
	for (int i = 0; i < 2; i++)
	{
		children[i] = start_child();
		if (children[i] == 0)
		{
			TestChannel own;

			channel_open(&own, node.address, CLUSTER, incarnation);
			for (uint64_t count = 1;; count++)
				channel_write(&own, area + 8 * (uint64_t) i, &count, 8);
		}
	}
	do
		channel_read(&channel, area, words, sizeof(words));
	while (words[0] == 0 || words[1] == 0);
	for (int i = 0; i < 100000; i++)
		channel_read(&channel, area, words, sizeof(words));
	for (int i = 0; i < 2; i++)
	{
		kill(children[i], SIGKILL);
		wait_for_child(children[i]);
	}
	channel_read(&channel, area, words, sizeof(words));
	assert_true(words[0] > 0 && words[1] > 0 && words[2] == 0);
	channel_close(&channel);
}

/* A client of long ago does not disturb the next owner of its channel record, in whatever that is doing. */
static void
test_record_with_next_owner(void **state)
{
	uint64_t area = service_info(node.address).first_unit;
	uint32_t incarnation = cluster_attach(node.address, CLUSTER);
	uint64_t word = 1;
	FabricOp write = op_write(area, &word, 8);
	FabricOp read = op_read(area, &word, 8);
	Memory memory = {.descriptor = -1};
	MemoryChannel *record;
	TestChannel old;
	TestChannel next;

	assert_int_equal(service_commit(node.address, area, FABRIC_UNIT_BYTES), FABRIC_OK);
	channel_open(&old, node.address, CLUSTER, incarnation);
	incarnation = cluster_attach(node.address, CLUSTER);
	channel_open(&next, node.address, CLUSTER, incarnation);
	assert_int_equal(fabric_capabilities(old.endpoint)->channel, fabric_capabilities(next.endpoint)->channel);
	assert_int_equal(memory_map(open(node.memory_path, O_RDWR | O_CLOEXEC), &memory), FABRIC_OK);
	record = &memory.channels[fabric_capabilities(next.endpoint)->channel];
	record->active |= MEMORY_ACTIVE_BUSY;
	assert_int_equal(fabric_execute(old.endpoint, &write, 1), FABRIC_FENCED);
	assert_true(record->active & MEMORY_ACTIVE_BUSY);
	record->active &= ~MEMORY_ACTIVE_BUSY;
	assert_int_equal(fabric_reset(old.endpoint), FABRIC_FENCED);
	assert_int_equal(fabric_execute(next.endpoint, &read, 1), FABRIC_OK);
	assert_true(word == 0);
	memory_unmap(&memory);
	channel_close(&old);
	channel_close(&next);
}

/*
 * A forked child holds the socket open; the death of the process that had the channel is noticed all the
 * same.
 */
static void
test_death_with_child_alive(void **state)
{
	uint32_t incarnation = cluster_attach(node.address, CLUSTER);
	int hold[2];
	uint64_t begin;
	pid_t child;

	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	child = start_child();
	if (child == 0)
	{
		TestChannel channel;
		char byte;

		close(hold[1]);
		channel_open(&channel, node.address, CLUSTER, incarnation);
		if (fork() == 0)
		{
			/* The grandchild lives as long as the test holds the pipe. */
			(void) !read(hold[0], &byte, 1);
			_exit(0);
		}
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(wait_for_child(child), 128 + SIGKILL);
	for (begin = now_ms(); service_info(node.address).live_channels != 0; sleep_ms(5))
		assert_true(now_ms() - begin < PATIENCE_MS);
	close(hold[0]);
	close(hold[1]);
}

#define NODE_TEST(name)                                                                                      \
	cmocka_unit_test_prestate_setup_teardown(name, fabric_process_setup, fabric_process_teardown, &node)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		NODE_TEST(test_both_die),
		NODE_TEST(test_attach_kills_stuck_client),
		NODE_TEST(test_death_while_reading),
		NODE_TEST(test_reader_is_not_starved),
		NODE_TEST(test_record_with_next_owner),
		NODE_TEST(test_death_with_child_alive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
