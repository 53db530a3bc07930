/*
 * test_proxy.c
 *		Connection workers: who gets what, who waits for whom, and what a death leaves.
 *
 * Clients and workers share this thread (proxy_fixture.h). test_proxy_remote.c: over tcp, and with processes;
 * test_proxy_threads.c: in threads. Tests over processes are conformance --workers and torture, too.
 */
#include <string.h>

#include "support/proxy_fixture.h"

static void
test_everybody_gets_his_own(void **state)
{
	TestChannel clients[8];
	uint64_t words[8][STRIPE_WORDS];
	uint64_t found[8][STRIPE_WORDS];
	uint64_t tickets[8];
	FabricOp ops[8][3];

	begin(2, 8);
	for (uint32_t i = 0; i < 8; i++)
		clients[i] = connect_client();
	assert_int_equal(figures(0).clients, 4);
	assert_int_equal(figures(1).clients, 4);
	assert_int_equal(figures(0).endpoints, 1);
	/* All at once, then all waited for. */
	for (uint32_t round = 0; round < 20; round++)
	{
		fixture.frozen = true;
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
		fixture.frozen = false;
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

	begin(1, 4);
	many = connect_client();
	one = connect_client();
	first = read_through(&one, stripe_offset(0));
	for (int side = 0; side < 2; side++)
	{
		/* Whoever has the lower slot. */
		TestChannel *greedy = side == 0 ? &many : &one;
		TestChannel *modest = side == 0 ? &one : &many;

		fixture.frozen = true;
		for (int i = 0; i < 7; i++)
		{
			adds[i] = op_fetch_add(FABRIC_NODES, stripe_offset(0), 1);
			assert_int_equal(fabric_post(greedy->endpoint, &adds[i], 1, &tickets[i]), FABRIC_OK);
		}
		assert_int_equal(fabric_post(modest->endpoint, &add, 1, &tickets[7]), FABRIC_OK);
		fixture.frozen = false;
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

	begin(1, 3);
	for (int i = 0; i < 3; i++)
		clients[i] = connect_client();
	assert_int_equal(try_connect(&one_more, PATIENCE_MS), FABRIC_NO_MEMORY);
	/* The slot of a client that leaves is free only when the worker has nothing of it left. */
	fixture.frozen = true;
	channel_close(&clients[1]);
	assert_int_equal(figures(0).clients, 3);
	assert_int_equal(try_connect(&one_more, 50), FABRIC_NO_MEMORY);
	fixture.frozen = false;
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

	begin(1, 1);
	client = connect_client();
	channel_write(&client, stripe_offset(0), &word, 8);
	channel_write(&client, stripe_offset(1), &(uint64_t){0}, 8);
	ops[0] = op_read(stripe_offset(0), &found, 8);
	ops[1] = op_fetch_add(FABRIC_NODES, stripe_offset(1), 1);
	fixture.frozen = true;
	fixture.stop_at = 2;
	assert_int_equal(fabric_execute(client.endpoint, ops, 2), FABRIC_STOPPED);
	assert_int_equal(fabric_execute(client.endpoint, ops, 2), FABRIC_LOST);
	fixture.stop_at = 2;
	assert_int_equal(fabric_reset(client.endpoint), FABRIC_STOPPED);
	found = 77;
	memset(ops, 0, sizeof(ops));
	fixture.frozen = false;
	assert_true(true_word(stripe_offset(1)) == 0);
	/* The reset ends after the chain: it was handed over, and so it runs. */
	assert_int_equal(fabric_reset(client.endpoint), FABRIC_OK);
	assert_true(true_word(stripe_offset(1)) == 1);
	assert_true(found == 77 && ops[1].result == 0);
	assert_true(read_through(&client, stripe_offset(0)) == 5);

	/* Given up and gone: the chain is finished or dropped before anybody else has the slot. */
	ops[0] = op_fetch_add(FABRIC_NODES, stripe_offset(1), 1);
	fixture.frozen = true;
	fixture.stop_at = 2;
	assert_int_equal(fabric_execute(client.endpoint, ops, 1), FABRIC_STOPPED);
	fixture.frozen = false;
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

	begin(1, 4);
	/* The second WRITE is late: it lands when the channel is reset, and not after it. */
	fixture.plan = (FabricFaultPlan){.seed = 1, .late_operation = 2};
	fixture.planned = true;
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
	assert_int_equal(figures(0).lost, 2);
	assert_non_null(strstr(fabric_detail(clients[0].fabric), "is late"));
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

/* Chains that nobody has waited for before a reset take no room behind it. */
static void
test_reset_frees_room(void **state)
{
	TestChannel client;
	FabricOp adds[PROXY_PLACES - 1];
	uint64_t ticket;
	uint64_t first;

	begin(1, 1);
	client = connect_client();
	first = read_through(&client, stripe_offset(0));
	for (int round = 1; round <= 3; round++)
	{
		for (uint32_t i = 0; i < PROXY_PLACES - 1; i++)
		{
			adds[i] = op_fetch_add(FABRIC_NODES, stripe_offset(0), 1);
			assert_int_equal(fabric_post(client.endpoint, &adds[i], 1, &ticket), FABRIC_OK);
		}
		assert_int_equal(fabric_reset(client.endpoint), FABRIC_OK);
		assert_true(read_through(&client, stripe_offset(0)) == first + (uint64_t) round * (PROXY_PLACES - 1));
	}
	channel_close(&client);
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

	begin(1, 4);
	fixture.plan = (FabricFaultPlan){.seed = 1, .fail_operation = 1};
	fixture.planned = true;
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

	begin(1, 4);
	clients[0] = connect_client();
	clients[1] = connect_client();
	live = service_info(fixture.process.address).live_channels;
	channel_write(&clients[0], stripe_offset(0), &(uint64_t){0}, 8);
	fixture.dead = fixture.workers[0];
	fixture.frozen = true;
	set_patience(&clients[1], 50);
	assert_int_equal(fabric_execute(clients[1].endpoint, &op, 1), FABRIC_TIMED_OUT);
	assert_int_equal(fabric_reset(clients[1].endpoint), FABRIC_TIMED_OUT);
	set_patience(&clients[1], PATIENCE_MS);
	open_worker(0);
	fixture.frozen = false;
	/* It was not begun, and never will be: it was made for the dead worker's channel. */
	assert_int_equal(fabric_execute(clients[0].endpoint, &op, 1), FABRIC_LOST);
	assert_int_equal(fabric_reset(clients[0].endpoint), FABRIC_OK);
	assert_int_equal(service_info(fixture.process.address).live_channels, live);
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

	begin(1, 4);
	old = connect_client();
	channel_write(&old, stripe_offset(0), &(uint64_t){0}, 8);
	fixture.incarnation = cluster_attach(fixture.process.address, fixture.cluster);
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

/* Memory nodes that a server has at most. */
#define MEMORY_NODES 32

/* From now on clients reach the memory node at another address: with so many slashes more in it. */
static void
use_address(int slashes)
{
	const char *path = strchr(fixture.process.address, '/');

	snprintf(fixture.address, sizeof(fixture.address), "proxy:%.*s%.*s%s",
	         (int) (path - fixture.process.address), fixture.process.address, slashes,
	         "////////////////////////////////", path);
}

/* Each of as many memory nodes as there may be has an endpoint, also while clients of the former incarnation have theirs. */
static void
test_many_memory_nodes(void **state)
{
	static TestChannel clients[2][MEMORY_NODES];

	begin(1, 2 * MEMORY_NODES);
	for (int next = 0; next < 2; next++)
	{
		for (int i = 0; i < MEMORY_NODES; i++)
		{
			use_address(i);
			clients[next][i] = connect_client();
			(void) read_through(&clients[next][i], stripe_offset(0));
		}
		assert_int_equal(figures(0).endpoints, (next + 1) * MEMORY_NODES);
		if (next == 0)
			fixture.incarnation = cluster_attach(fixture.process.address, fixture.cluster);
	}
	for (int i = 0; i < 2 * MEMORY_NODES; i++)
		channel_close(&clients[i % 2][i / 2]);
	use_network(false);
	finish();
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
		cmocka_unit_test(test_reset_frees_room),
		cmocka_unit_test(test_old_redo_slot),
		cmocka_unit_test(test_worker_dies),
		cmocka_unit_test(test_worker_ends),
		cmocka_unit_test(test_next_incarnation),
		cmocka_unit_test(test_many_memory_nodes),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
