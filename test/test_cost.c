/*
 * test_cost.c
 *		The micro-benchmarks that the cost model is fitted to (doc/internals/simulator.md): latencies, and rates by size
 *		and contention. All of it is virtual time, so the figures are the same everywhere, and asserted
 *		closely.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/testing.h"
#include "../sim/site.h"

#define HOSTS 9u
#define CLIENTS 768u
#define BEGIN (200 * NANOSECONDS_PER_US)
#define END (400 * NANOSECONDS_PER_US)
#define BYTES 4096u

/* What clients do, one operation at a time, for the whole time. */
typedef struct Load
{
	uint8_t opcode;
	bool locks;
	uint32_t length;
	uint32_t clients;
	uint32_t hosts; /* that they are on, from host 1 on */
	uint32_t words; /* that atomics go to */
	bool chip;
} Load;

typedef struct Bench
{
	Load load;
	Site site;
	uint64_t begin;
	uint64_t done;
	uint64_t longest;
	uint64_t shortest;
} Bench;

typedef struct Requester
{
	CostClient cost;
	uint32_t number;
	uint64_t buffer[BYTES / 8];
} Requester;

static Bench bench;
static Requester requesters[CLIENTS];

static FabricOp
operation(const Requester *self, const FabricEndpoint *endpoint)
{
	const Load *load = &bench.load;
	FabricOp op = {
		.opcode = load->opcode, .length = load->length, .buffer = (void *) (uintptr_t) self->buffer};

	op.region = load->locks ? FABRIC_LOCKS : FABRIC_NODES;
	op.offset = load->locks ? self->number % load->words * 8 : fabric_capabilities(endpoint)->redo_offset;
	op.compare = self->number;
	return op;
}

static void
request(void *argument)
{
	Requester *self = argument;
	FabricOptions options = {
		.cluster = {1, 2}, .incarnation = bench.site.incarnation, .transport = &cost_transport};
	FabricEndpoint *endpoint;
	Fabric *fabric;

	self->cost = (CostClient){.host = 1 + self->number % bench.load.hosts};
	assert_int_equal(fabric_open(&options, &fabric), FABRIC_OK);
	cost_client_begin(&self->cost);
	assert_int_equal(fabric_connect(fabric, "cost:0", &endpoint), FABRIC_OK);
	while (scheduler_now() < bench.begin + END)
	{
		FabricOp op = operation(self, endpoint);
		uint64_t began = scheduler_now();
		uint64_t took;

		/* Latencies are the fabric's alone. */
		self->cost.debt = 0;
		assert_int_equal(fabric_execute(endpoint, &op, 1), FABRIC_OK);
		took = scheduler_now() - began;
		if (scheduler_now() < bench.begin + BEGIN || scheduler_now() > bench.begin + END)
			continue;
		bench.done++;
		if (took > bench.longest)
			bench.longest = took;
		if (took < bench.shortest)
			bench.shortest = took;
	}
	fabric_close(fabric);
}

static void
direct(void *argument)
{
	SiteOptions options = {
		.nodes = 1, .servers = HOSTS, .clients = 1, .node_bytes = 1 << 20, .cache_bytes = 1};
	Coroutine *started[CLIENTS];

	site_start(&bench.site, &options);
	bench.begin = scheduler_now();
	for (uint32_t i = 0; i < bench.load.clients; i++)
	{
		requesters[i].number = i;
		started[i] = coroutine_start(request, &requesters[i], false);
	}
	for (uint32_t i = 0; i < bench.load.clients; i++)
		while (!coroutine_has_ended(started[i]))
			coroutine_sleep(NANOSECONDS_PER_US);
	site_stop(&bench.site);
}

/* Millions of operations per second. */
static double
rate(Load load)
{
	CostOptions options = {.hosts = HOSTS, .placement.chip_locks = load.chip};

	bench = (Bench){.load = load, .shortest = UINT64_MAX};
	scheduler_open(1);
	cost_open(&options);
	coroutine_start(direct, NULL, false);
	assert_true(scheduler_run(SCHEDULER_NEVER));
	cost_close();
	scheduler_close();
	print_message("opcode %u, %u bytes, %u clients: %.2f million per second, %.0f to %.0f ns\n", load.opcode,
	              load.length, load.clients, (double) bench.done * 1000 / (double) (END - BEGIN),
	              (double) bench.shortest, (double) bench.longest);
	return (double) bench.done * 1000 / (double) (END - BEGIN);
}

static void
assert_near(double found, double wanted, double percent)
{
	if (found < wanted * (1 - percent / 100) || found > wanted * (1 + percent / 100))
		fail_msg("%.3f instead of %.3f", found, wanted);
}

static void
test_latency(void **state)
{
	(void) rate((Load){.opcode = FABRIC_READ, .length = 8, .clients = 1, .hosts = 1});
	assert_int_equal(bench.shortest, bench.longest);
	assert_near((double) bench.shortest, 2000, 2);
	(void) rate((Load){.opcode = FABRIC_READ, .length = 1024, .clients = 1, .hosts = 1});
	assert_near((double) bench.shortest, 2180, 4);
	(void) rate((Load){.opcode = FABRIC_WRITE, .length = 64, .clients = 1, .hosts = 1});
	assert_near((double) bench.shortest, 1460, 2);
	(void) rate((Load){
		.opcode = FABRIC_COMPARE_SWAP, .length = 8, .locks = true, .words = 1, .clients = 1, .hosts = 1});
	assert_near((double) bench.shortest, 1870, 2);
	(void) rate((Load){.opcode = FABRIC_COMPARE_SWAP,
	                   .length = 8,
	                   .locks = true,
	                   .words = 1,
	                   .clients = 1,
	                   .hosts = 1,
	                   .chip = true});
	assert_near((double) bench.shortest, 1470, 2);
}

static void
test_read_rate(void **state)
{
	assert_near(rate((Load){.opcode = FABRIC_READ, .length = 8, .clients = CLIENTS, .hosts = 8}), 110, 2);
	assert_near(rate((Load){.opcode = FABRIC_READ, .length = 64, .clients = CLIENTS, .hosts = 8}), 110, 4);
	/* The wire's 100 Gb/s. */
	assert_near(rate((Load){.opcode = FABRIC_READ, .length = 256, .clients = CLIENTS, .hosts = 8}), 41.9, 2);
	assert_near(rate((Load){.opcode = FABRIC_READ, .length = 1024, .clients = CLIENTS, .hosts = 8}), 11.7, 2);
	assert_near(rate((Load){.opcode = FABRIC_READ, .length = 4096, .clients = CLIENTS, .hosts = 8}), 3.02, 2);
}

static void
test_write_rate(void **state)
{
	assert_near(rate((Load){.opcode = FABRIC_WRITE, .length = 8, .clients = CLIENTS, .hosts = 1}), 92, 2);
	assert_near(rate((Load){.opcode = FABRIC_WRITE, .length = 64, .clients = CLIENTS, .hosts = 1}), 92, 4);
	assert_near(rate((Load){.opcode = FABRIC_WRITE, .length = 1024, .clients = CLIENTS, .hosts = 8}), 11.5,
	            2);
}

static void
test_atomics(void **state)
{
	Load load = {.opcode = FABRIC_COMPARE_SWAP,
	             .length = 8,
	             .locks = true,
	             .words = 1,
	             .clients = CLIENTS,
	             .hosts = 8};

	/* One word in host memory, and as many as there are buckets; then in the card's memory. */
	load.clients = 100;
	assert_near(rate(load), 2.5, 2);
	load.clients = CLIENTS;
	load.words = COST_BUCKETS;
	assert_near(rate(load), 110, 2);
	load.words = 1;
	load.chip = true;
	assert_near(rate(load), 110, 2);
}

/* The same run for the same seed. */
static void
test_repeats(void **state)
{
	Load load = {
		.opcode = FABRIC_COMPARE_SWAP, .length = 8, .locks = true, .words = 3, .clients = 50, .hosts = 3};
	uint64_t done;

	(void) rate(load);
	done = bench.done;
	(void) rate(load);
	assert_int_equal(done, bench.done);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_latency), cmocka_unit_test(test_read_rate), cmocka_unit_test(test_write_rate),
		cmocka_unit_test(test_atomics), cmocka_unit_test(test_repeats),
	};

	if (!scheduler_is_here())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
