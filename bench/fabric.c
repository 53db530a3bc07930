/*
 * fabric.c
 *		Chains per second and their latencies over each transport, with a memory node of its own.
 *
 * Usage: fabric [--transport shm|tcp|tls] [--address ADDRESS] [--operation NAME] [--clients N] [--outstanding N]
 *               [--seconds N] [--key-file FILE] [--workers N]
 * Without an operation all of them.  --address: a memory node that offers the test service (conformance --serve).
 * --workers: connection workers are between the clients and the memory node; their time is not the server's.
 * The lines are those of load.h; an operation is a chain.
 */
#include <signal.h>
#include <string.h>

#include "../test/support/fabric_process.h"
#include "load.h"

#define NODE_BYTES (16u << 20)
#define AREA_BYTES (1u << 20)
/* Every so many chains one is timed: looking at the clock costs as much as a chain over shm. */
#define TIMED_CHAINS 16u
#define CLUSTER 1000u

typedef struct Bench
{
	FabricProcess node;
	bool own_node;
	char address[256];
	const char *key_file;
	uint32_t workers;
	uint64_t area;
	uint32_t incarnation;
} Bench;

/* One chain that is under way, with its buffers. */
typedef struct Chain
{
	FabricOp ops[2];
	uint64_t data[FABRIC_STRIPE_BYTES / 8];
	uint64_t ticket;
	uint64_t began; /* 0: it is not timed */
} Chain;

static const char *const operations[] = {"read64", "read1k", "write16", "lock+read", "entry+unlock"};

/* Makes the chain of the operation on some node of 1 KB; returns the number of its operations. */
static int
make_chain(const Load *load, Chain *chain, uint32_t client, uint64_t *random)
{
	const Bench *bench = load->argument;
	uint64_t node;
	uint64_t lock = 8 * (uint64_t) (client + 1);

	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	node = bench->area + (*random >> 33) % (AREA_BYTES / 1024) * 1024;
	if (strcmp(load->operation, "read64") == 0)
		chain->ops[0] = op_read(node, chain->data, 64);
	else if (strcmp(load->operation, "read1k") == 0)
		chain->ops[0] = op_read(node, chain->data, 1024);
	else if (strcmp(load->operation, "write16") == 0)
		chain->ops[0] = op_write(node, chain->data, 16);
	else if (strcmp(load->operation, "lock+read") == 0)
	{
		chain->ops[0] = op_compare_swap(FABRIC_LOCKS, lock, 0, 0);
		chain->ops[1] = op_read(node, chain->data, 1024);
		return 2;
	}
	else
	{
		chain->ops[0] = op_write(node, chain->data, 16);
		chain->ops[1] = op_compare_swap(FABRIC_LOCKS, lock, 0, 0);
		return 2;
	}
	return 1;
}

/* One at a time, so that fabric_execute() is what is measured. */
static void
run_single(const Load *load, TestChannel *channel, uint32_t client)
{
	static Chain chain;
	uint64_t random = client + 1;

	for (uint64_t i = 0; !load_is_over(load); i++)
	{
		int count = make_chain(load, &chain, client, &random);
		bool timed = i % TIMED_CHAINS == 0;
		uint64_t began = timed ? load_now() : 0;

		CHECK(fabric_execute(channel->endpoint, chain.ops, count) == FABRIC_OK);
		if (timed)
			load_time(load, client, load_now() - began);
		load_count(load, client, 1);
	}
}

/* Keeps so many outstanding: waits for the oldest, posts another. */
static void
run_several(const Load *load, TestChannel *channel, uint32_t client)
{
	static Chain chains[LOAD_MAX_OUTSTANDING];
	uint64_t random = client + 1;
	uint64_t posted = 0;
	uint64_t waited = 0;

	while (!load_is_over(load))
	{
		Chain *chain;

		while (posted - waited < load->outstanding)
		{
			int count;

			chain = &chains[posted % load->outstanding];
			count = make_chain(load, chain, client, &random);
			chain->began = posted++ % TIMED_CHAINS == 0 ? load_now() : 0;
			CHECK(fabric_post(channel->endpoint, chain->ops, count, &chain->ticket) == FABRIC_OK);
		}
		chain = &chains[waited++ % load->outstanding];
		CHECK(fabric_wait(channel->endpoint, chain->ticket) == FABRIC_OK);
		if (chain->began != 0)
			load_time(load, client, load_now() - chain->began);
		load_count(load, client, 1);
	}
	for (; waited < posted; waited++)
		CHECK(fabric_wait(channel->endpoint, chains[waited % load->outstanding].ticket) == FABRIC_OK);
}

static int
run_client(const Load *load, uint32_t client)
{
	const Bench *bench = load->argument;
	TestChannel channel;
	char address[300];
	FabricStatus status;

	snprintf(address, sizeof(address), "%s%s", bench->workers > 0 ? "proxy:" : "", bench->address);
	status = channel_try_open(&channel, address, CLUSTER, bench->incarnation, NULL);
	if (status != FABRIC_OK)
	{
		fprintf(stderr, "%s: %s\n", bench->address, fabric_status_name(status));
		return 1;
	}
	load_begin(load);
	if (load->outstanding == 1)
		run_single(load, &channel, client);
	else
		run_several(load, &channel, client);
	channel_close(&channel);
	return 0;
}

static int
usage(void)
{
	fprintf(stderr,
	        "usage: fabric [--transport shm|tcp|tls] [--address ADDRESS] [--operation NAME] [--clients N]\n"
	        "              [--outstanding N] [--seconds N] [--key-file FILE] [--workers N]\n");
	return 2;
}

static bool
parse_arguments(Load *load, Bench *bench, int count, char **arguments)
{
	for (int i = 1; i < count; i += 2)
	{
		const char *name = arguments[i];
		const char *value = i + 1 < count ? arguments[i + 1] : NULL;

		if (value == NULL)
			return false;
		if (strcmp(name, "--transport") == 0)
			load->peer = value;
		else if (strcmp(name, "--address") == 0)
			snprintf(bench->address, sizeof(bench->address), "%s", value);
		else if (strcmp(name, "--operation") == 0)
			load->operation = value;
		else if (strcmp(name, "--key-file") == 0)
			bench->key_file = value;
		else if (strcmp(name, "--workers") == 0)
			bench->workers = (uint32_t) atoi(value);
		else if (!load_option(load, name, value))
			return false;
	}
	return load_options_valid(load);
}

int
main(int count, char **arguments)
{
	static Bench bench;
	Load load = {
		.peer = "shm", .clients = 1, .outstanding = 1, .seconds = 2, .run = run_client, .argument = &bench};
	const char *chosen;
	bool good = true;

	if (!parse_arguments(&load, &bench, count, arguments))
		return usage();
	CHECK(load_open(&load));
	bench.own_node = bench.address[0] == '\0';
	if (bench.own_node)
	{
		fabric_process_prepare(&bench.node, NODE_BYTES, LOAD_MAX_CLIENTS + 8);
		if (strcmp(load.peer, "shm") != 0)
			fabric_process_listen(&bench.node, strcmp(load.peer, "tls") == 0);
		fabric_process_start(&bench.node);
		snprintf(bench.address, sizeof(bench.address), "%s",
		         strcmp(load.peer, "shm") == 0 ? bench.node.address : bench.node.network_address);
		if (bench.node.key_file[0] != '\0')
			bench.key_file = bench.node.key_file;
		load.server = bench.node.pid;
	}
	channel_defaults(bench.key_file, NULL);
	bench.area = service_info(bench.address).first_unit;
	CHECK(service_commit(bench.address, bench.area, AREA_BYTES) == FABRIC_OK);
	bench.incarnation = cluster_attach(bench.address, CLUSTER);
	if (bench.workers > 0)
	{
		ProxyProcessOptions options = {.workers = bench.workers, .slots = LOAD_MAX_CLIENTS};

		load.peer = "proxy";
		test_proxies = proxy_processes_start(&options);
	}
	chosen = load.operation;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
	{
		if (chosen != NULL && strcmp(chosen, operations[i]) != 0)
			continue;
		load.operation = operations[i];
		good &= load_execute(&load);
	}
	if (bench.workers > 0)
		proxy_processes_stop(test_proxies);
	if (bench.own_node)
		fabric_process_remove(&bench.node);
	return good ? 0 : 1;
}
