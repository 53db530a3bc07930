/*
 * test_proxy_remote.c
 *		Connection workers whose memory nodes do not answer at once, or that die inside chains.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "support/proxy_fixture.h"

/* ---- over tcp, where chains are under way while the worker does something else ---- */

static void
test_chains_under_way(void **state)
{
	TestChannel clients[8];
	FabricOp adds[8][7];
	uint64_t tickets[8][7];
	uint64_t first;

	use_network(true);
	begin(1, 8);
	for (int i = 0; i < 8; i++)
		clients[i] = connect_client();
	first = read_through(&clients[0], stripe_offset(0));
	fabric_process_signal(&fixture.process, SIGSTOP);
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
	fabric_process_signal(&fixture.process, SIGCONT);
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

	use_network(true);
	begin(1, 1);
	client = connect_client();
	first = read_through(&client, stripe_offset(1));
	fabric_process_signal(&fixture.process, SIGSTOP);
	set_patience(&client, 50);
	assert_int_equal(fabric_execute(client.endpoint, ops, 2), FABRIC_TIMED_OUT);
	channel_close(&client);
	for (int i = 0; i < 5; i++)
		step_workers();
	assert_int_equal(figures(0).clients, 1);
	assert_int_equal(try_connect(&next, PATIENCE_MS), FABRIC_NO_MEMORY);
	fabric_process_signal(&fixture.process, SIGCONT);
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

	use_network(true);
	fixture.timeout_ms = 200;
	begin(1, 2);
	fixture.timeout_ms = 0;
	/* The worker's short time may not do on a busy machine. */
	for (uint32_t i = 0; i < 100 && try_connect(&client, PATIENCE_MS) != FABRIC_OK; i++)
		;
	count = true_word(stripe_offset(1));
	fabric_process_signal(&fixture.process, SIGSTOP);
	assert_int_equal(fabric_execute(client.endpoint, &op, 1), FABRIC_TIMED_OUT);
	assert_int_not_equal(fabric_reset(client.endpoint), FABRIC_OK);
	assert_int_equal(fabric_execute(client.endpoint, &op, 1), FABRIC_LOST);
	fabric_process_signal(&fixture.process, SIGCONT);
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
		if (fixture.workers[0]->links[i].endpoint == NULL)
			continue;
		fabric_counters(fixture.workers[0]->links[i].endpoint, &counters);
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

	use_network(true);
	fixture.timeout_ms = 200;
	begin(1, 5);
	fixture.timeout_ms = 0;
	for (int i = 0; i < 4; i++)
	{
		status = FABRIC_LOST;
		for (uint32_t attempt = 0; attempt < 100 && status != FABRIC_OK; attempt++)
			status = try_connect(&clients[i], PATIENCE_MS);
		assert_int_equal(status, FABRIC_OK);
	}
	fabric_process_signal(&fixture.process, SIGSTOP);
	assert_int_equal(fabric_execute(clients[0].endpoint, &op, 1), FABRIC_TIMED_OUT);
	/* Three ask while the worker stands still, and do not wait for long. */
	fixture.frozen = true;
	for (int i = 1; i < 4; i++)
	{
		set_patience(&clients[i], 1);
		assert_int_equal(fabric_reset(clients[i].endpoint), FABRIC_TIMED_OUT);
		set_patience(&clients[i], PATIENCE_MS);
	}
	fixture.frozen = false;
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
	fabric_process_signal(&fixture.process, SIGCONT);
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
	channel_open(&client, address, fixture.cluster, fixture.incarnation);
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

	fixture.cluster++;
	fixture.incarnation = cluster_attach(fixture.process.address, fixture.cluster);
	fabric_process_prepare(&other, SMALL_NODE_BYTES, SMALL_NODE_CHANNELS);
	fabric_process_listen(&other, false);
	fabric_process_start(&other);
	assert_int_equal(cluster_attach(other.address, fixture.cluster), fixture.incarnation);
	snprintf(address, sizeof(address), "proxy:%s", other.network_address);
	test_proxies = proxy_processes_start(&options);
	channel_open(&client, fixture.address, fixture.cluster, fixture.incarnation);
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

	channel_open(&client, fixture.address, fixture.cluster, fixture.incarnation);
	memset(words, 1, sizeof(words));
	channel_write(&client, stripe_offset(0), words, sizeof(words));
	before = service_info(fixture.process.address);
	memset(words, 2, sizeof(words));
	CHECK(fabric_execute(client.endpoint, &op, 1) == FABRIC_LOST);
	CHECK(fabric_reset(client.endpoint) == FABRIC_OK);
	/* What the worker left half-way is settled by now. */
	after = service_info(fixture.process.address);
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

	fixture.cluster++;
	fixture.incarnation = cluster_attach(fixture.process.address, fixture.cluster);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains_under_way),   cmocka_unit_test(test_slot_of_chain_under_way),
		cmocka_unit_test(test_silent_memory_node), cmocka_unit_test(test_one_attempt_for_all),
		cmocka_unit_test(test_others_go_on),       cmocka_unit_test(test_worker_killed_inside),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
