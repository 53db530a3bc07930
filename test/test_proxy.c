/*
 * test_proxy.c
 *		Connection workers: who gets what, who waits for whom, and what a death leaves.
 *
 * In the first part clients and workers share this thread: a client that sleeps lets the workers go on, unless they are
 * frozen.  In the second part all are threads, for ThreadSanitizer to see.  tests over processes: conformance
 * --workers, torture.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "support/fabric_process.h"
#include "proxy_worker.h"

#define NODE_BYTES (4u << 20)
#define AREA_BYTES (4u * FABRIC_UNIT_BYTES)
#define STRIPE_WORDS (FABRIC_STRIPE_BYTES / 8)
#define MAX_WORKERS 2

/* The scene of a test. */
static struct
{
	FabricProcess process;
	FabricProxyArea *area;
	size_t area_bytes;
	FabricWorker *workers[MAX_WORKERS];
	FabricWorker *dead; /* what is left of one that was never closed */
	FabricWorkerOptions options[MAX_WORKERS];
	FabricProxy proxy;
	FabricFaultPlan plan; /* for workers' endpoints, once */
	bool planned;
	uint32_t timeout_ms; /* of the workers' endpoints, 0 = the default */
	bool frozen;         /* the workers do not get on */
	int stop_at;         /* the wait hook of clients stops at this call; 0 = never */
	uint64_t cluster;
	uint32_t incarnation;
	uint64_t nodes; /* first byte of node memory */
	char address[256];
} scene;

static uint64_t
stripe_offset(uint32_t stripe)
{
	return scene.nodes + (uint64_t) stripe * FABRIC_STRIPE_BYTES;
}

/* ---- what is lent, in one thread ---- */

static void
step_workers(void)
{
	for (int i = 0; i < MAX_WORKERS && !scene.frozen; i++)
	{
		if (scene.workers[i] != NULL)
			assert_int_equal(fabric_worker_step(scene.workers[i], 0), FABRIC_OK);
	}
}

static void
nobody_to_wake(void *argument, uint32_t number)
{
	(void) argument;
	(void) number;
}

static void
client_sleep(void *argument, int milliseconds)
{
	(void) argument;
	step_workers();
	if (scene.frozen)
		sleep_ms((uint32_t) (milliseconds < 5 ? milliseconds : 5));
}

static int
client_hook(void *argument, const int *descriptors, int count, int milliseconds)
{
	(void) argument;
	(void) descriptors;
	(void) count;
	(void) milliseconds;
	return scene.stop_at > 0 && --scene.stop_at == 0 ? -1 : 0;
}

static int
worker_hook(void *argument, const int *descriptors, int count, int milliseconds)
{
	(void) argument;
	(void) descriptors;
	(void) count;
	sleep_ms((uint32_t) (milliseconds < 1 ? milliseconds : 1));
	return 0;
}

static void
plan_faults(void *argument, FabricEndpoint *endpoint)
{
	(void) argument;
	if (scene.planned)
		assert_int_equal(fabric_fault_set(endpoint, &scene.plan), FABRIC_OK);
	scene.planned = false;
}

static void
open_worker(uint32_t number)
{
	scene.options[number] = (FabricWorkerOptions){
		.area = scene.area,
		.worker = number,
		.fabric = {.operation_timeout_ms = scene.timeout_ms, .connect_timeout_ms = scene.timeout_ms},
		.wake_client = nobody_to_wake,
		.wait = worker_hook,
		.connected = plan_faults,
	};
	assert_int_equal(fabric_worker_open(&scene.options[number], &scene.workers[number]), FABRIC_OK);
}

static void
close_worker(uint32_t number)
{
	fabric_worker_close(scene.workers[number]);
	scene.workers[number] = NULL;
}

/* One memory node for all tests; an area, a cluster, and workers for each. */
static void
begin(uint32_t workers, uint32_t slots)
{
	scene.frozen = scene.planned = false;
	scene.stop_at = 0;
	scene.cluster++;
	scene.incarnation = cluster_attach(scene.process.address, scene.cluster);
	scene.area_bytes = fabric_proxy_bytes(workers, slots);
	scene.area = fabric_proxy_initialize(
		mmap(NULL, scene.area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), workers,
		slots);
	assert_non_null(scene.area);
	scene.proxy = (FabricProxy){.area = scene.area, .wake_worker = nobody_to_wake, .sleep = client_sleep};
	for (uint32_t i = 0; i < workers; i++)
		open_worker(i);
}

static void
finish(void)
{
	for (uint32_t i = 0; i < MAX_WORKERS; i++)
		close_worker(i);
	munmap(scene.area, scene.area_bytes);
}

static FabricStatus
try_connect(TestChannel *channel, uint32_t timeout_ms)
{
	FabricOptions options = {
		.operation_timeout_ms = timeout_ms,
		.connect_timeout_ms = timeout_ms,
		.wait = client_hook,
		.cluster = {scene.cluster, ~scene.cluster},
		.incarnation = scene.incarnation,
		.proxy = &scene.proxy,
	};
	FabricStatus status;

	assert_int_equal(fabric_open(&options, &channel->fabric), FABRIC_OK);
	status = fabric_connect(channel->fabric, scene.address, &channel->endpoint);
	if (status != FABRIC_OK)
		channel_close(channel);
	return status;
}

static TestChannel
connect_client(void)
{
	TestChannel channel;

	assert_int_equal(try_connect(&channel, PATIENCE_MS), FABRIC_OK);
	return channel;
}

/* From now on: short where nobody will answer, long where somebody will. */
static void
set_patience(TestChannel *channel, uint32_t timeout_ms)
{
	channel->fabric->options.operation_timeout_ms = timeout_ms;
	channel->fabric->options.connect_timeout_ms = timeout_ms;
}

/* A word as the memory node has it, by a channel of its own. */
static uint64_t
true_word(uint64_t offset)
{
	TestChannel direct;
	uint64_t word;

	channel_open(&direct, scene.process.address, scene.cluster, scene.incarnation);
	channel_read(&direct, offset, &word, 8);
	channel_close(&direct);
	return word;
}

static uint64_t
read_through(TestChannel *channel, uint64_t offset)
{
	uint64_t word;

	channel_read(channel, offset, &word, 8);
	return word;
}

static FabricWorkerFigures
figures(uint32_t worker)
{
	FabricWorkerFigures found;

	fabric_worker_figures(scene.area, worker, &found);
	return found;
}

/* ---- in one thread ---- */

static void
test_everybody_gets_his_own(void **state)
{
	TestChannel clients[8];
	uint64_t words[8][STRIPE_WORDS];
	uint64_t found[8][STRIPE_WORDS];
	uint64_t tickets[8];
	FabricOp ops[8][3];

	(void) state;
	begin(2, 8);
	for (uint32_t i = 0; i < 8; i++)
		clients[i] = connect_client();
	assert_int_equal(figures(0).clients, 4);
	assert_int_equal(figures(1).clients, 4);
	assert_int_equal(figures(0).endpoints, 1);
	/* All at once, then all waited for. */
	for (uint32_t round = 0; round < 20; round++)
	{
		scene.frozen = true;
		for (uint32_t i = 0; i < 8; i++)
		{
			for (uint32_t word = 0; word < STRIPE_WORDS; word++)
				words[i][word] = (uint64_t) i << 32 | round << 16 | word;
			ops[i][0] = op_write(stripe_offset(i), words[i], FABRIC_STRIPE_BYTES);
			ops[i][1] = op_read(stripe_offset(i), found[i], FABRIC_STRIPE_BYTES);
			ops[i][2] = op_fetch_add(FABRIC_NODES, stripe_offset(20 + i), 1);
			assert_int_equal(fabric_post(clients[i].endpoint, ops[i], 3, &tickets[i]), FABRIC_OK);
			assert_false(fabric_ended(clients[i].endpoint, tickets[i]));
		}
		scene.frozen = false;
		for (uint32_t i = 8; i-- > 0;)
		{
			assert_int_equal(fabric_wait(clients[i].endpoint, tickets[i]), FABRIC_OK);
			assert_memory_equal(found[i], words[i], FABRIC_STRIPE_BYTES);
			if (round == 0)
				words[i][0] = ops[i][2].result;
		}
	}
	for (uint32_t i = 0; i < 8; i++)
		channel_close(&clients[i]);
	step_workers();
	assert_int_equal(figures(0).clients, 0);
	assert_int_equal(figures(0).chains + figures(1).chains, 8 * 20);
	assert_int_equal(figures(0).operations + figures(1).operations, 3 * 8 * 20);
	finish();
}

/* One with many chains keeps nobody waiting: the other's runs after one of his, at most. */
static void
test_turns(void **state)
{
	TestChannel many;
	TestChannel one;
	FabricOp adds[7];
	FabricOp add = op_fetch_add(FABRIC_NODES, stripe_offset(0), 1);
	uint64_t tickets[8];
	uint64_t first;

	(void) state;
	begin(1, 4);
	many = connect_client();
	one = connect_client();
	first = read_through(&one, stripe_offset(0));
	for (int side = 0; side < 2; side++)
	{
		/* Whoever has the lower slot. */
		TestChannel *greedy = side == 0 ? &many : &one;
		TestChannel *modest = side == 0 ? &one : &many;

		scene.frozen = true;
		for (int i = 0; i < 7; i++)
		{
			adds[i] = op_fetch_add(FABRIC_NODES, stripe_offset(0), 1);
			assert_int_equal(fabric_post(greedy->endpoint, &adds[i], 1, &tickets[i]), FABRIC_OK);
		}
		assert_int_equal(fabric_post(modest->endpoint, &add, 1, &tickets[7]), FABRIC_OK);
		scene.frozen = false;
		assert_int_equal(fabric_wait(modest->endpoint, tickets[7]), FABRIC_OK);
		assert_in_range(add.result - first, 0, 1);
		for (int i = 0; i < 7; i++)
		{
			assert_int_equal(fabric_wait(greedy->endpoint, tickets[i]), FABRIC_OK);
			/* Its own keep their order. */
			assert_true(i == 0 || adds[i].result > adds[i - 1].result);
		}
		first += 8;
	}
	channel_close(&one);
	channel_close(&many);
	finish();
}

static void
test_long_chains(void **state)
{
	static uint64_t data[FABRIC_MAX_CHAIN][STRIPE_WORDS];
	static uint64_t found[FABRIC_MAX_CHAIN][STRIPE_WORDS];
	FabricOp ops[FABRIC_MAX_CHAIN];
	FabricCapabilities capabilities;
	FabricCounters counters;
	TestChannel client;
	uint64_t ticket;

	(void) state;
	begin(1, 2);
	client = connect_client();
	capabilities = *fabric_capabilities(client.endpoint);
	assert_int_equal(capabilities.max_chain, FABRIC_MAX_CHAIN);
	for (uint32_t i = 0; i < FABRIC_MAX_CHAIN; i++)
	{
		memset(data[i], (int) i + 1, sizeof(data[i]));
		ops[i] = op_write(stripe_offset(i), data[i], FABRIC_STRIPE_BYTES);
	}
	assert_int_equal(fabric_execute(client.endpoint, ops, FABRIC_MAX_CHAIN), FABRIC_OK);
	for (uint32_t i = 0; i < FABRIC_MAX_CHAIN; i++)
		ops[i] = op_read(stripe_offset(i), found[i], FABRIC_STRIPE_BYTES);
	assert_int_equal(fabric_post(client.endpoint, ops, FABRIC_MAX_CHAIN, &ticket), FABRIC_OK);
	assert_true(fabric_ended(client.endpoint, ticket));
	assert_int_equal(fabric_wait(client.endpoint, ticket), FABRIC_OK);
	assert_memory_equal(found, data, sizeof(data));
	fabric_counters(client.endpoint, &counters);
	assert_int_equal(counters.round_trips, 2);
	assert_int_equal(counters.read_bytes, sizeof(data));

	/* What uses the redo slot is not cut, or another client's image might come in between. */
	for (uint32_t i = 0; i < 12; i++)
		ops[i] = op_write(stripe_offset(i), data[0], FABRIC_STRIPE_BYTES);
	ops[11].offset = capabilities.redo_offset + FABRIC_STRIPE_BYTES;
	assert_int_equal(fabric_execute(client.endpoint, ops, 12), FABRIC_PROTOCOL);
	assert_true(read_through(&client, stripe_offset(1)) == data[1][0]);
	/* A split of the root with its redo image goes as one. */
	ops[0].offset = capabilities.redo_offset + FABRIC_STRIPE_BYTES;
	ops[4] = op_write(capabilities.redo_offset, data[0], 64);
	ops[5] = op_compare_swap(FABRIC_LOCKS, 0, 1, 1);
	assert_int_equal(fabric_execute(client.endpoint, ops, 6), FABRIC_OK);
	channel_close(&client);
	finish();
}

static void
test_no_worker_no_slot(void **state)
{
	TestChannel clients[3];
	TestChannel one_more;

	(void) state;
	begin(1, 3);
	for (int i = 0; i < 3; i++)
		clients[i] = connect_client();
	assert_int_equal(try_connect(&one_more, PATIENCE_MS), FABRIC_NO_MEMORY);
	/* The slot of a client that leaves is free only when the worker has nothing of it left. */
	scene.frozen = true;
	channel_close(&clients[1]);
	assert_int_equal(figures(0).clients, 3);
	assert_int_equal(try_connect(&one_more, 50), FABRIC_NO_MEMORY);
	scene.frozen = false;
	assert_int_equal(try_connect(&one_more, PATIENCE_MS), FABRIC_OK);
	channel_close(&one_more);
	close_worker(0);
	assert_false(figures(0).serves);
	assert_int_equal(try_connect(&one_more, PATIENCE_MS), FABRIC_BUSY);
	channel_close(&clients[0]);
	channel_close(&clients[2]);
	/* The next worker finds what the clients left. */
	open_worker(0);
	step_workers();
	assert_int_equal(figures(0).clients, 0);
	assert_int_equal(figures(0).lives, 2);
	finish();
}

/* A client that gives up gets its buffers back at once, whenever the worker comes to its chain. */
static void
test_cancel(void **state)
{
	TestChannel client;
	TestChannel successor;
	uint64_t found = 0;
	FabricOp ops[2];
	uint64_t word = 5;

	(void) state;
	begin(1, 1);
	client = connect_client();
	channel_write(&client, stripe_offset(0), &word, 8);
	channel_write(&client, stripe_offset(1), &(uint64_t){0}, 8);
	ops[0] = op_read(stripe_offset(0), &found, 8);
	ops[1] = op_fetch_add(FABRIC_NODES, stripe_offset(1), 1);
	scene.frozen = true;
	scene.stop_at = 2;
	assert_int_equal(fabric_execute(client.endpoint, ops, 2), FABRIC_STOPPED);
	assert_int_equal(fabric_execute(client.endpoint, ops, 2), FABRIC_LOST);
	scene.stop_at = 2;
	assert_int_equal(fabric_reset(client.endpoint), FABRIC_STOPPED);
	found = 77;
	memset(ops, 0, sizeof(ops));
	scene.frozen = false;
	assert_true(true_word(stripe_offset(1)) == 0);
	/* The reset ends after the chain: it was handed over, and so it runs. */
	assert_int_equal(fabric_reset(client.endpoint), FABRIC_OK);
	assert_true(true_word(stripe_offset(1)) == 1);
	assert_true(found == 77 && ops[1].result == 0);
	assert_true(read_through(&client, stripe_offset(0)) == 5);

	/* Given up and gone: the chain is finished or dropped before anybody else has the slot. */
	ops[0] = op_fetch_add(FABRIC_NODES, stripe_offset(1), 1);
	scene.frozen = true;
	scene.stop_at = 2;
	assert_int_equal(fabric_execute(client.endpoint, ops, 1), FABRIC_STOPPED);
	scene.frozen = false;
	channel_close(&client);
	successor = connect_client();
	word = true_word(stripe_offset(1));
	assert_in_range(word, 1, 2);
	for (int i = 0; i < 20; i++)
		assert_true(read_through(&successor, stripe_offset(1)) == word);
	channel_close(&successor);
	finish();
}

/* A chain fails on the worker's channel: all of its clients are in doubt until that channel is dead. */
static void
test_reset_waits(void **state)
{
	TestChannel clients[2];
	FabricCapabilities before[2];
	uint64_t word = 9;
	FabricOp op = op_write(stripe_offset(0), &word, 8);
	FabricOp bystanders = op_write(stripe_offset(2), &word, 8);

	(void) state;
	begin(1, 4);
	/* The second WRITE is late: it lands when the channel is reset, and not after it. */
	scene.plan = (FabricFaultPlan){.seed = 1, .late_operation = 2};
	scene.planned = true;
	for (int i = 0; i < 2; i++)
	{
		clients[i] = connect_client();
		before[i] = *fabric_capabilities(clients[i].endpoint);
	}
	assert_int_equal(before[0].channel, before[1].channel);
	channel_write(&clients[1], stripe_offset(0), &(uint64_t){0}, 8);
	assert_int_equal(fabric_execute(clients[0].endpoint, &op, 1), FABRIC_LOST);
	assert_true(true_word(stripe_offset(0)) == 0);
	/* The other one's chains would run on a channel that has to die. */
	assert_int_equal(fabric_execute(clients[1].endpoint, &bystanders, 1), FABRIC_LOST);
	assert_int_equal(fabric_reset(clients[0].endpoint), FABRIC_OK);
	assert_true(true_word(stripe_offset(0)) == 9);
	channel_write(&clients[0], stripe_offset(0), &(uint64_t){10}, 8);
	/* The bystander's reset finds it done: no second one disturbs the first client. */
	assert_int_equal(fabric_reset(clients[1].endpoint), FABRIC_OK);
	channel_write(&clients[1], stripe_offset(2), &word, 8);
	channel_write(&clients[0], stripe_offset(2), &word, 8);
	assert_true(read_through(&clients[1], stripe_offset(0)) == 10);
	assert_int_equal(figures(0).resets, 1);
	assert_int_equal(fabric_capabilities(clients[0].endpoint)->channel,
	                 fabric_capabilities(clients[1].endpoint)->channel);
	channel_close(&clients[0]);
	channel_close(&clients[1]);
	finish();
}

/* A chain that was made for a channel with another redo slot is not run. */
static void
test_old_redo_slot(void **state)
{
	TestChannel clients[2];
	FabricCapabilities before;
	uint64_t word = 1;
	FabricOp ops[2];

	(void) state;
	begin(1, 4);
	scene.plan = (FabricFaultPlan){.seed = 1, .fail_operation = 1};
	scene.planned = true;
	clients[0] = connect_client();
	clients[1] = connect_client();
	before = *fabric_capabilities(clients[1].endpoint);
	channel_close(&clients[0]);
	clients[0] = connect_client();
	ops[0] = op_write(stripe_offset(0), &word, 8);
	assert_int_equal(fabric_execute(clients[0].endpoint, ops, 1), FABRIC_LOST);
	assert_int_equal(fabric_reset(clients[0].endpoint), FABRIC_OK);
	channel_write(&clients[0], stripe_offset(0), &(uint64_t){2}, 8);
	/* The worker's endpoint is sound again, and the second client knows of nothing. */
	ops[0] = op_write(before.redo_offset, &word, 8);
	ops[1] = op_write(stripe_offset(0), &word, 8);
	assert_int_equal(fabric_execute(clients[1].endpoint, ops, 2), FABRIC_LOST);
	assert_true(true_word(stripe_offset(0)) == 2);
	assert_int_equal(fabric_reset(clients[1].endpoint), FABRIC_OK);
	ops[0].offset = fabric_capabilities(clients[1].endpoint)->redo_offset;
	assert_int_equal(fabric_execute(clients[1].endpoint, ops, 2), FABRIC_OK);
	channel_close(&clients[0]);
	channel_close(&clients[1]);
	finish();
}

/* A worker that stops without a word: its successor has its channel killed before anybody is out of doubt. */
static void
test_worker_dies(void **state)
{
	TestChannel clients[2];
	uint64_t word = 1;
	FabricOp op = op_write(stripe_offset(0), &word, 8);
	uint64_t live;

	(void) state;
	begin(1, 4);
	clients[0] = connect_client();
	clients[1] = connect_client();
	live = service_info(scene.process.address).live_channels;
	channel_write(&clients[0], stripe_offset(0), &(uint64_t){0}, 8);
	scene.dead = scene.workers[0];
	scene.frozen = true;
	set_patience(&clients[1], 50);
	assert_int_equal(fabric_execute(clients[1].endpoint, &op, 1), FABRIC_TIMED_OUT);
	assert_int_equal(fabric_reset(clients[1].endpoint), FABRIC_TIMED_OUT);
	set_patience(&clients[1], PATIENCE_MS);
	open_worker(0);
	scene.frozen = false;
	/* It was not begun, and never will be: it was made for the dead worker's channel. */
	assert_int_equal(fabric_execute(clients[0].endpoint, &op, 1), FABRIC_LOST);
	assert_int_equal(fabric_reset(clients[0].endpoint), FABRIC_OK);
	assert_int_equal(service_info(scene.process.address).live_channels, live);
	assert_int_equal(fabric_reset(clients[1].endpoint), FABRIC_OK);
	assert_true(true_word(stripe_offset(0)) == 0);
	channel_write(&clients[1], stripe_offset(0), &word, 8);
	assert_true(read_through(&clients[0], stripe_offset(0)) == 1);
	assert_int_equal(figures(0).lives, 2);
	for (int i = 0; i < 2; i++)
		channel_close(&clients[i]);
	finish();
}

/* A worker that ends in order tells its clients, and their resets wait for the next one. */
static void
test_worker_ends(void **state)
{
	TestChannel client;
	uint64_t word = 1;
	FabricOp op = op_write(stripe_offset(0), &word, 8);

	(void) state;
	begin(1, 4);
	client = connect_client();
	channel_write(&client, stripe_offset(0), &(uint64_t){0}, 8);
	close_worker(0);
	assert_int_equal(fabric_execute(client.endpoint, &op, 1), FABRIC_LOST);
	set_patience(&client, 50);
	assert_int_equal(fabric_reset(client.endpoint), FABRIC_TIMED_OUT);
	set_patience(&client, PATIENCE_MS);
	assert_int_equal(fabric_execute(client.endpoint, &op, 1), FABRIC_LOST);
	open_worker(0);
	assert_int_equal(fabric_reset(client.endpoint), FABRIC_OK);
	assert_int_equal(fabric_execute(client.endpoint, &op, 1), FABRIC_OK);
	channel_close(&client);
	finish();
}

/* Links of incarnations that are over are closed as soon as nobody uses them. */
static void
test_next_incarnation(void **state)
{
	TestChannel old;
	TestChannel next;
	uint64_t word = 1;
	FabricOp op = op_write(stripe_offset(0), &word, 8);

	(void) state;
	begin(1, 4);
	old = connect_client();
	channel_write(&old, stripe_offset(0), &(uint64_t){0}, 8);
	scene.incarnation = cluster_attach(scene.process.address, scene.cluster);
	assert_int_equal(fabric_execute(old.endpoint, &op, 1), FABRIC_FENCED);
	assert_int_equal(fabric_reset(old.endpoint), FABRIC_FENCED);
	next = connect_client();
	assert_true(read_through(&next, stripe_offset(0)) == 0);
	assert_int_equal(figures(0).endpoints, 2);
	channel_close(&old);
	step_workers();
	assert_int_equal(figures(0).endpoints, 1);
	channel_close(&next);
	finish();
}

/* ---- over tcp, where chains are under way while the worker does something else ---- */

static void
use_network(bool yes)
{
	snprintf(scene.address, sizeof(scene.address), "proxy:%s",
	         yes ? scene.process.network_address : scene.process.address);
}

static void
test_chains_under_way(void **state)
{
	TestChannel clients[8];
	FabricOp adds[8][7];
	uint64_t tickets[8][7];
	uint64_t first;

	(void) state;
	use_network(true);
	begin(1, 8);
	for (int i = 0; i < 8; i++)
		clients[i] = connect_client();
	first = read_through(&clients[0], stripe_offset(0));
	fabric_process_signal(&scene.process, SIGSTOP);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 7; j++)
		{
			adds[i][j] = op_fetch_add(FABRIC_NODES, stripe_offset(0), 1);
			assert_int_equal(fabric_post(clients[i].endpoint, &adds[i][j], 1, &tickets[i][j]), FABRIC_OK);
		}
	for (int i = 0; i < 20; i++)
		step_workers();
	/* All are posted below: the worker waits for none of them. */
	assert_int_equal(figures(0).chains, 8 * 7 + 1);
	for (int i = 0; i < 8; i++)
		assert_false(fabric_ended(clients[i].endpoint, tickets[i][0]));
	fabric_process_signal(&scene.process, SIGCONT);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 7; j++)
		{
			assert_int_equal(fabric_wait(clients[i].endpoint, tickets[i][j]), FABRIC_OK);
			assert_true(j == 0 || adds[i][j].result > adds[i][j - 1].result);
		}
	assert_true(read_through(&clients[0], stripe_offset(0)) == first + 8 * 7);
	for (int i = 0; i < 8; i++)
		channel_close(&clients[i]);
	finish();
	use_network(false);
}

/* A client has gone, its chain has not: nobody gets the slot, into whose room the chain's READ will come. */
static void
test_slot_of_chain_under_way(void **state)
{
	TestChannel client;
	TestChannel next;
	uint64_t found;
	FabricOp ops[] = {op_read(stripe_offset(0), &found, 8), op_fetch_add(FABRIC_NODES, stripe_offset(1), 1)};
	uint64_t first;

	(void) state;
	use_network(true);
	begin(1, 1);
	client = connect_client();
	first = read_through(&client, stripe_offset(1));
	fabric_process_signal(&scene.process, SIGSTOP);
	set_patience(&client, 50);
	assert_int_equal(fabric_execute(client.endpoint, ops, 2), FABRIC_TIMED_OUT);
	channel_close(&client);
	for (int i = 0; i < 5; i++)
		step_workers();
	assert_int_equal(figures(0).clients, 1);
	assert_int_equal(try_connect(&next, PATIENCE_MS), FABRIC_NO_MEMORY);
	fabric_process_signal(&scene.process, SIGCONT);
	for (uint32_t i = 0; i < PATIENCE_MS && figures(0).clients > 0; i++)
	{
		step_workers();
		sleep_ms(1);
	}
	next = connect_client();
	assert_true(read_through(&next, stripe_offset(1)) == first + 1);
	channel_close(&next);
	finish();
	use_network(false);
}

/* A memory node that does not answer: the chain's end is not known before the reset, and then it is. */
static void
test_silent_memory_node(void **state)
{
	TestChannel client;
	FabricOp op = op_fetch_add(FABRIC_NODES, stripe_offset(1), 1);
	FabricStatus status = FABRIC_LOST;
	uint64_t count;

	(void) state;
	use_network(true);
	scene.timeout_ms = 200;
	begin(1, 2);
	scene.timeout_ms = 0;
	/* The worker's short time may not do on a busy machine. */
	for (uint32_t i = 0; i < 100 && try_connect(&client, PATIENCE_MS) != FABRIC_OK; i++)
		;
	count = true_word(stripe_offset(1));
	fabric_process_signal(&scene.process, SIGSTOP);
	assert_int_equal(fabric_execute(client.endpoint, &op, 1), FABRIC_TIMED_OUT);
	assert_int_not_equal(fabric_reset(client.endpoint), FABRIC_OK);
	assert_int_equal(fabric_execute(client.endpoint, &op, 1), FABRIC_LOST);
	fabric_process_signal(&scene.process, SIGCONT);
	for (uint32_t i = 0; i < 100 && status != FABRIC_OK; i++)
		status = fabric_reset(client.endpoint);
	assert_int_equal(status, FABRIC_OK);
	assert_in_range(true_word(stripe_offset(1)) - count, 0, 1);
	count = true_word(stripe_offset(1));
	for (int i = 0; i < 20; i++)
		assert_true(true_word(stripe_offset(1)) == count);
	channel_close(&client);
	finish();
	use_network(false);
}

/* What the worker's endpoint has met of errors; a reset that fails is one. */
static uint64_t
errors_of_worker(void)
{
	FabricCounters counters;
	uint64_t errors = 0;

	for (uint32_t i = 0; i < PROXY_LINKS; i++)
	{
		if (scene.workers[0]->links[i].endpoint == NULL)
			continue;
		fabric_counters(scene.workers[0]->links[i].endpoint, &counters);
		errors += counters.errors;
	}
	return errors;
}

/* All clients that wait for a memory node's reset have the answer of one attempt. */
static void
test_one_attempt_for_all(void **state)
{
	TestChannel clients[4];
	FabricOp op = op_fetch_add(FABRIC_NODES, stripe_offset(1), 1);
	FabricStatus status = FABRIC_LOST;
	uint64_t before;

	(void) state;
	use_network(true);
	scene.timeout_ms = 200;
	begin(1, 5);
	scene.timeout_ms = 0;
	for (int i = 0; i < 4; i++)
	{
		status = FABRIC_LOST;
		for (uint32_t attempt = 0; attempt < 100 && status != FABRIC_OK; attempt++)
			status = try_connect(&clients[i], PATIENCE_MS);
		assert_int_equal(status, FABRIC_OK);
	}
	fabric_process_signal(&scene.process, SIGSTOP);
	assert_int_equal(fabric_execute(clients[0].endpoint, &op, 1), FABRIC_TIMED_OUT);
	/* Three ask while the worker stands still, and do not wait for long. */
	scene.frozen = true;
	for (int i = 1; i < 4; i++)
	{
		set_patience(&clients[i], 1);
		assert_int_equal(fabric_reset(clients[i].endpoint), FABRIC_TIMED_OUT);
		set_patience(&clients[i], PATIENCE_MS);
	}
	scene.frozen = false;
	before = errors_of_worker();
	for (int i = 0; i < 4; i++)
	{
		status = fabric_reset(clients[i].endpoint);
		assert_true(status == FABRIC_UNREACHABLE || status == FABRIC_TIMED_OUT);
		assert_int_equal(errors_of_worker() - before, 1);
	}
	/* Who asks again has an attempt again. */
	assert_int_not_equal(fabric_reset(clients[3].endpoint), FABRIC_OK);
	assert_int_equal(errors_of_worker() - before, 2);
	fabric_process_signal(&scene.process, SIGCONT);
	for (int i = 0; i < 4; i++)
		channel_close(&clients[i]);
	finish();
	use_network(false);
}

/* ---- with processes ---- */

/* Connects to a memory node that stands still; tells by a byte that it is about to. */
static void
wait_for_memory_node(const char *address, int ready)
{
	TestChannel client;

	CHECK(write(ready, "", 1) == 1);
	channel_open(&client, address, scene.cluster, scene.incarnation);
	channel_close(&client);
}

/* A memory node that does not answer holds up its own clients, and nobody else's. */
static void
test_others_go_on(void **state)
{
	ProxyProcessOptions options = {.workers = 1, .slots = 4};
	FabricProcess other;
	char address[64];
	TestChannel client;
	uint64_t calls;
	int pipes[2];
	char byte;
	pid_t child;

	(void) state;
	scene.cluster++;
	scene.incarnation = cluster_attach(scene.process.address, scene.cluster);
	fabric_process_prepare(&other, SMALL_NODE_BYTES, SMALL_NODE_CHANNELS);
	fabric_process_listen(&other, false);
	fabric_process_start(&other);
	assert_int_equal(cluster_attach(other.address, scene.cluster), scene.incarnation);
	snprintf(address, sizeof(address), "proxy:%s", other.network_address);
	test_proxies = proxy_processes_start(&options);
	channel_open(&client, scene.address, scene.cluster, scene.incarnation);
	calls = proxy_processes_figures(test_proxies, 0).calls;
	fabric_process_signal(&other, SIGSTOP);
	assert_int_equal(pipe(pipes), 0);
	child = start_child();
	if (child == 0)
	{
		wait_for_memory_node(address, pipes[1]);
		_exit(0);
	}
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	for (uint32_t i = 0; i < PATIENCE_MS && proxy_processes_figures(test_proxies, 0).calls == calls; i++)
		sleep_ms(1);
	/* The worker is in the middle of that now, and stays there. */
	assert_int_equal(proxy_processes_figures(test_proxies, 0).calls, calls + 1);
	for (int i = 0; i < 100; i++)
		(void) read_through(&client, stripe_offset(0));
	assert_int_equal(proxy_processes_figures(test_proxies, 0).endpoints, 1);
	fabric_process_signal(&other, SIGCONT);
	assert_int_equal(wait_for_child(child), 0);
	assert_int_equal(proxy_processes_figures(test_proxies, 0).endpoints, 2);
	channel_close(&client);
	proxy_processes_stop(test_proxies);
	test_proxies = NULL;
	fabric_process_remove(&other);
	close(pipes[0]);
	close(pipes[1]);
}

/* A client whose chain its worker does not survive. */
static void
survive_worker(void)
{
	TestChannel client;
	uint64_t words[STRIPE_WORDS] = {0};
	uint64_t found[STRIPE_WORDS];
	FabricOp op = op_write(stripe_offset(0), words, sizeof(words));
	ServiceInfo before;
	ServiceInfo after;

	channel_open(&client, scene.address, scene.cluster, scene.incarnation);
	memset(words, 1, sizeof(words));
	channel_write(&client, stripe_offset(0), words, sizeof(words));
	before = service_info(scene.process.address);
	memset(words, 2, sizeof(words));
	CHECK(fabric_execute(client.endpoint, &op, 1) == FABRIC_LOST);
	CHECK(fabric_reset(client.endpoint) == FABRIC_OK);
	/* What the worker left half-way is settled by now. */
	after = service_info(scene.process.address);
	CHECK(after.recovered_inside == before.recovered_inside + 1);
	channel_read(&client, stripe_offset(0), found, sizeof(found));
	CHECK(found[0] != words[0] && found[STRIPE_WORDS - 1] == words[0]);
	CHECK(fabric_execute(client.endpoint, &op, 1) == FABRIC_OK);
	channel_close(&client);
}

static void
test_worker_killed_inside(void **state)
{
	FabricFaultPlan death = {.seed = 1, .die_operation = 2, .die_line = 5};
	ProxyProcessOptions options = {.workers = 1, .slots = 4, .below = &death};
	pid_t child;

	(void) state;
	scene.cluster++;
	scene.incarnation = cluster_attach(scene.process.address, scene.cluster);
	test_proxies = proxy_processes_start(&options);
	child = start_child();
	if (child == 0)
	{
		survive_worker();
		_exit(0);
	}
	proxy_processes_wait(test_proxies, 0);
	proxy_processes_faults(test_proxies, NULL);
	proxy_processes_begin(test_proxies, 0);
	assert_int_equal(wait_for_child(child), 0);
	proxy_processes_stop(test_proxies);
	test_proxies = NULL;
}

/* ---- in threads ---- */

#define THREAD_CLIENTS 6u
#define THREAD_SLOTS 4u /* fewer than clients: some have to come again */
#define THREAD_SESSIONS 40u
#define THREAD_CHAINS 50u

typedef struct Sleeper
{
	sem_t wake;
} Sleeper;

static struct
{
	Sleeper workers[MAX_WORKERS];
	Sleeper clients[THREAD_CLIENTS];
	bool stop;
} threads;

static void
sleep_on(Sleeper *sleeper, int milliseconds)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long) milliseconds * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (sem_timedwait(&sleeper->wake, &until) == 0 && sem_trywait(&sleeper->wake) == 0)
		;
}

static void
thread_wake_client(void *argument, uint32_t owner)
{
	(void) argument;
	sem_post(&threads.clients[owner].wake);
}

static int
thread_worker_wait(void *argument, const int *descriptors, int count, int milliseconds)
{
	(void) descriptors;
	(void) count;
	sleep_on(argument, milliseconds);
	return 0;
}

static void
thread_wake_worker(void *argument, uint32_t worker)
{
	(void) argument;
	sem_post(&threads.workers[worker].wake);
}

static void
thread_client_sleep(void *argument, int milliseconds)
{
	sleep_on(argument, milliseconds);
}

static void *
worker_thread(void *argument)
{
	uint32_t number = (uint32_t) (uintptr_t) argument;
	FabricWorkerOptions options = {
		.area = scene.area,
		.worker = number,
		.argument = &threads.workers[number],
		.wake_client = thread_wake_client,
		.wait = thread_worker_wait,
	};
	FabricWorker *worker;

	CHECK(fabric_worker_open(&options, &worker) == FABRIC_OK);
	while (!__atomic_load_n(&threads.stop, __ATOMIC_ACQUIRE))
		CHECK(fabric_worker_step(worker, 20) == FABRIC_OK);
	fabric_worker_close(worker);
	return NULL;
}

/* Counts under a lock word, and keeps a stripe of its own. */
static void
session(TestChannel *channel, uint32_t number, uint32_t turn)
{
	uint64_t own[STRIPE_WORDS];
	uint64_t found[STRIPE_WORDS];
	uint64_t counted[16];

	for (uint32_t i = 0; i < THREAD_CHAINS; i++)
	{
		FabricOp lock[] = {
			op_compare_swap(FABRIC_LOCKS, 8, 0, number + 1),
			op_read(stripe_offset(0), counted, sizeof(counted)),
		};
		FabricOp unlock[] = {
			op_write(stripe_offset(0), counted, sizeof(counted)),
			op_compare_swap(FABRIC_LOCKS, 8, number + 1, 0),
		};
		FabricOp keep[] = {
			op_write(stripe_offset(1 + number), own, sizeof(own)),
			op_read(stripe_offset(1 + number), found, sizeof(found)),
		};

		do
			CHECK(fabric_execute(channel->endpoint, lock, 2) == FABRIC_OK);
		while (lock[0].result != 0);
		for (int word = 0; word < 16; word++)
			CHECK(++counted[word] == counted[0]);
		CHECK(fabric_execute(channel->endpoint, unlock, 2) == FABRIC_OK);
		CHECK(unlock[1].result == number + 1);
		memset(own, (int) (number * 40 + turn + i), sizeof(own));
		CHECK(fabric_execute(channel->endpoint, keep, 2) == FABRIC_OK);
		CHECK(memcmp(own, found, sizeof(own)) == 0);
	}
}

static void *
client_thread(void *argument)
{
	uint32_t number = (uint32_t) (uintptr_t) argument;
	FabricProxy proxy = {
		.area = scene.area,
		.owner = number,
		.argument = &threads.clients[number],
		.wake_worker = thread_wake_worker,
		.sleep = thread_client_sleep,
	};
	FabricOptions options = {
		.operation_timeout_ms = 60000,
		.connect_timeout_ms = 60000,
		.cluster = {scene.cluster, ~scene.cluster},
		.incarnation = scene.incarnation,
		.proxy = &proxy,
	};

	for (uint32_t turn = 0; turn < THREAD_SESSIONS;)
	{
		TestChannel channel;
		FabricStatus status;

		CHECK(fabric_open(&options, &channel.fabric) == FABRIC_OK);
		status = fabric_connect(channel.fabric, scene.address, &channel.endpoint);
		CHECK(status == FABRIC_OK || status == FABRIC_NO_MEMORY || status == FABRIC_BUSY);
		if (status == FABRIC_OK)
			session(&channel, number, turn++);
		channel_close(&channel);
	}
	return NULL;
}

static void
test_threads(void **state)
{
	pthread_t clients[THREAD_CLIENTS];
	pthread_t workers[MAX_WORKERS];
	uint64_t count;

	(void) state;
	begin(MAX_WORKERS, THREAD_SLOTS);
	for (uint32_t i = 0; i < MAX_WORKERS; i++)
		close_worker(i);
	count = true_word(stripe_offset(0));
	{
		TestChannel direct;
		uint64_t counted[16];

		channel_open(&direct, scene.process.address, scene.cluster, scene.incarnation);
		for (int word = 0; word < 16; word++)
			counted[word] = count;
		channel_write(&direct, stripe_offset(0), counted, sizeof(counted));
		channel_close(&direct);
	}
	threads.stop = false;
	for (uint32_t i = 0; i < MAX_WORKERS; i++)
	{
		sem_init(&threads.workers[i].wake, 0, 0);
		assert_int_equal(pthread_create(&workers[i], NULL, worker_thread, (void *) (uintptr_t) i), 0);
	}
	for (uint32_t i = 0; i < THREAD_CLIENTS; i++)
	{
		sem_init(&threads.clients[i].wake, 0, 0);
		assert_int_equal(pthread_create(&clients[i], NULL, client_thread, (void *) (uintptr_t) i), 0);
	}
	for (uint32_t i = 0; i < THREAD_CLIENTS; i++)
		pthread_join(clients[i], NULL);
	__atomic_store_n(&threads.stop, true, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < MAX_WORKERS; i++)
		pthread_join(workers[i], NULL);
	assert_true(true_word(stripe_offset(0)) == count + THREAD_CLIENTS * THREAD_SESSIONS * THREAD_CHAINS);
	assert_int_equal(figures(0).clients + figures(1).clients, 0);
	finish();
}

static int
start(void **state)
{
	(void) state;
	fabric_process_prepare(&scene.process, NODE_BYTES, 64);
	fabric_process_listen(&scene.process, false);
	fabric_process_start(&scene.process);
	use_network(false);
	scene.nodes = service_info(scene.process.address).first_unit;
	return service_commit(scene.process.address, scene.nodes, AREA_BYTES) == FABRIC_OK ? 0 : 1;
}

static int
stop(void **state)
{
	(void) state;
	fabric_process_remove(&scene.process);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everybody_gets_his_own),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_long_chains),
		cmocka_unit_test(test_no_worker_no_slot),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_reset_waits),
		cmocka_unit_test(test_old_redo_slot),
		cmocka_unit_test(test_worker_dies),
		cmocka_unit_test(test_worker_ends),
		cmocka_unit_test(test_next_incarnation),
		cmocka_unit_test(test_chains_under_way),
		cmocka_unit_test(test_slot_of_chain_under_way),
		cmocka_unit_test(test_silent_memory_node),
		cmocka_unit_test(test_one_attempt_for_all),
		cmocka_unit_test(test_others_go_on),
		cmocka_unit_test(test_worker_killed_inside),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
