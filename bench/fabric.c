/*
 * fabric.c
 *		Chains per second and their latencies over each transport, with a memory node of its own.
 *
 * Usage: fabric [--transport shm|tcp] [--address ADDRESS] [--operation NAME] [--clients N] [--outstanding N]
 *               [--seconds N] [--key-file FILE]
 * Without an operation all of them.  --address: a memory node that offers the test service (conformance --serve).
 * Each line: transport, operation, clients, outstanding, chains per second, the same per second of the memory node's
 * processor time ('-': not ours), and latencies in microseconds (median, 99 %, 99.9 %).
 */
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "../test/support/fabric_process.h"

#define NODE_BYTES (16u << 20)
#define AREA_BYTES (1u << 20)
#define MAX_CLIENTS 64
#define MAX_OUTSTANDING 64
/* Of chains that run one at a time every so many is timed: looking at the clock costs as much as a chain over shm. */
#define TIMED_CHAINS 16u
#define CLUSTER 1000u

/* Latencies: 16 steps in each power of two of nanoseconds. */
#define STEPS 16u
#define BUCKETS (40u * STEPS)

typedef struct ClientResult
{
	uint64_t chains;
	uint64_t buckets[BUCKETS];
} ClientResult;

/* Between the parent and the clients. */
typedef struct Board
{
	uint32_t ready;
	uint32_t start;
	uint32_t stop;
	ClientResult results[MAX_CLIENTS];
} Board;

typedef struct Bench
{
	FabricProcess node;
	bool own_node;
	const char *transport;
	char address[256];
	const char *operation;
	const char *key_file;
	uint32_t clients;
	uint32_t outstanding;
	double seconds;
	uint64_t area;
	uint32_t incarnation;
	Board *board;
} Bench;

/* One chain that is under way, with its buffers. */
typedef struct Chain
{
	FabricOp ops[2];
	uint64_t data[FABRIC_STRIPE_BYTES / 8];
	uint64_t ticket;
	uint64_t began;
} Chain;

static const char *const operations[] = {"read64", "read1k", "write16", "lock+read", "entry+unlock"};

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

static uint32_t
bucket_of(uint64_t nanoseconds)
{
	uint32_t power = 0;

	if (nanoseconds < STEPS)
		return (uint32_t) nanoseconds;
	while (nanoseconds >> power >= 2 * STEPS)
		power++;
	power = power * STEPS + (uint32_t) (nanoseconds >> power);
	return power < BUCKETS ? power : BUCKETS - 1;
}

/* The lower end of a bucket, in nanoseconds. */
static double
bucket_start(uint32_t bucket)
{
	if (bucket < 2 * STEPS)
		return bucket;
	return (double) (bucket % STEPS + STEPS) * (double) (1ull << (bucket / STEPS - 1));
}

static double
percentile(const uint64_t *buckets, uint64_t total, double part)
{
	uint64_t below = 0;

	for (uint32_t i = 0; i < BUCKETS; i++)
	{
		below += buckets[i];
		if ((double) below >= part * (double) total)
			return bucket_start(i) / 1000;
	}
	return 0;
}

/* Makes the chain of the operation on some node of 1 KB; returns the number of its operations. */
static int
make_chain(const Bench *bench, Chain *chain, uint32_t client, uint64_t *random)
{
	uint64_t node;
	uint64_t lock = 8 * (uint64_t) (client + 1);

	*random = *random * 6364136223846793005ull + 1442695040888963407ull;
	node = bench->area + (*random >> 33) % (AREA_BYTES / 1024) * 1024;
	if (strcmp(bench->operation, "read64") == 0)
		chain->ops[0] = op_read(node, chain->data, 64);
	else if (strcmp(bench->operation, "read1k") == 0)
		chain->ops[0] = op_read(node, chain->data, 1024);
	else if (strcmp(bench->operation, "write16") == 0)
		chain->ops[0] = op_write(node, chain->data, 16);
	else if (strcmp(bench->operation, "lock+read") == 0)
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
run_single(const Bench *bench, TestChannel *channel, uint32_t client)
{
	static Chain chain;
	ClientResult *result = &bench->board->results[client];
	uint64_t random = client + 1;

	while (!__atomic_load_n(&bench->board->stop, __ATOMIC_RELAXED))
	{
		int count = make_chain(bench, &chain, client, &random);
		bool timed = result->chains++ % TIMED_CHAINS == 0;
		uint64_t began = timed ? now_ns() : 0;

		CHECK(fabric_execute(channel->endpoint, chain.ops, count) == FABRIC_OK);
		if (timed)
			result->buckets[bucket_of(now_ns() - began)]++;
	}
}

/* Keeps so many outstanding: waits for the oldest, posts another. */
static void
run_several(const Bench *bench, TestChannel *channel, uint32_t client)
{
	static Chain chains[MAX_OUTSTANDING];
	ClientResult *result = &bench->board->results[client];
	uint64_t random = client + 1;
	uint64_t posted = 0;
	uint64_t waited = 0;

	while (!__atomic_load_n(&bench->board->stop, __ATOMIC_RELAXED))
	{
		Chain *chain;

		while (posted - waited < bench->outstanding)
		{
			int count;

			chain = &chains[posted++ % bench->outstanding];
			count = make_chain(bench, chain, client, &random);
			chain->began = now_ns();
			CHECK(fabric_post(channel->endpoint, chain->ops, count, &chain->ticket) == FABRIC_OK);
		}
		chain = &chains[waited++ % bench->outstanding];
		CHECK(fabric_wait(channel->endpoint, chain->ticket) == FABRIC_OK);
		result->buckets[bucket_of(now_ns() - chain->began)]++;
		result->chains++;
	}
	for (; waited < posted; waited++)
		CHECK(fabric_wait(channel->endpoint, chains[waited % bench->outstanding].ticket) == FABRIC_OK);
}

static int
run_client(const Bench *bench, uint32_t client)
{
	TestChannel channel;
	FabricStatus status = channel_try_open(&channel, bench->address, CLUSTER, bench->incarnation, NULL);

	if (status != FABRIC_OK)
	{
		fprintf(stderr, "%s: %s\n", bench->address, fabric_status_name(status));
		return 1;
	}
	__atomic_fetch_add(&bench->board->ready, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&bench->board->start, __ATOMIC_SEQ_CST))
		sleep_ms(1);
	if (bench->outstanding == 1)
		run_single(bench, &channel, client);
	else
		run_several(bench, &channel, client);
	channel_close(&channel);
	return 0;
}

/* Processor time of the memory node so far, in seconds. */
static double
node_processor_seconds(const Bench *bench)
{
	char path[64];
	char text[1024];
	unsigned long user = 0, system = 0;
	FILE *file;

	if (!bench->own_node)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int) bench->node.pid);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fgets(text, sizeof(text), file) != NULL)
		sscanf(strrchr(text, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
		       &system);
	fclose(file);
	return (double) (user + system) / (double) sysconf(_SC_CLK_TCK);
}

static void
print_result(const Bench *bench, double took, double processor)
{
	static uint64_t buckets[BUCKETS];
	uint64_t chains = 0;
	uint64_t timed = 0;
	char per_core[32] = "-";

	memset(buckets, 0, sizeof(buckets));
	for (uint32_t client = 0; client < bench->clients; client++)
	{
		chains += bench->board->results[client].chains;
		for (uint32_t i = 0; i < BUCKETS; i++)
		{
			buckets[i] += bench->board->results[client].buckets[i];
			timed += bench->board->results[client].buckets[i];
		}
	}
	if (processor > 0.01)
		snprintf(per_core, sizeof(per_core), "%.0f", (double) chains / processor);
	printf("%-4s %-12s %3u x %2u %12.0f/s %12s/core %9.2f %9.2f %9.2f us\n", bench->transport,
	       bench->operation, bench->clients, bench->outstanding, (double) chains / took, per_core,
	       percentile(buckets, timed, 0.5), percentile(buckets, timed, 0.99),
	       percentile(buckets, timed, 0.999));
	fflush(stdout);
}

static void
run_bench(Bench *bench)
{
	Board *board = bench->board;
	pid_t children[MAX_CLIENTS];
	uint64_t began;
	double processor;
	double took;

	memset(board, 0, sizeof(*board));
	for (uint32_t client = 0; client < bench->clients; client++)
	{
		children[client] = start_child();
		if (children[client] == 0)
			_exit(run_client(bench, client));
	}
	while (__atomic_load_n(&board->ready, __ATOMIC_SEQ_CST) < bench->clients)
		sleep_ms(1);
	processor = node_processor_seconds(bench);
	began = now_ns();
	__atomic_store_n(&board->start, 1, __ATOMIC_SEQ_CST);
	sleep_ms((uint32_t) (bench->seconds * 1000));
	__atomic_store_n(&board->stop, 1, __ATOMIC_SEQ_CST);
	took = (double) (now_ns() - began) / 1e9;
	processor = node_processor_seconds(bench) - processor;
	for (uint32_t client = 0; client < bench->clients; client++)
		CHECK(wait_for_child(children[client]) == 0);
	print_result(bench, took, processor);
}

static int
usage(void)
{
	fprintf(stderr,
	        "usage: fabric [--transport shm|tcp] [--address ADDRESS] [--operation NAME] [--clients N]\n"
	        "              [--outstanding N] [--seconds N] [--key-file FILE]\n");
	return 2;
}

static bool
parse_arguments(Bench *bench, int count, char **arguments)
{
	for (int i = 1; i < count; i += 2)
	{
		const char *name = arguments[i];
		const char *value = i + 1 < count ? arguments[i + 1] : NULL;

		if (value == NULL)
			return false;
		if (strcmp(name, "--transport") == 0)
			bench->transport = value;
		else if (strcmp(name, "--address") == 0)
			snprintf(bench->address, sizeof(bench->address), "%s", value);
		else if (strcmp(name, "--operation") == 0)
			bench->operation = value;
		else if (strcmp(name, "--key-file") == 0)
			bench->key_file = value;
		else if (strcmp(name, "--clients") == 0)
			bench->clients = (uint32_t) atoi(value);
		else if (strcmp(name, "--outstanding") == 0)
			bench->outstanding = (uint32_t) atoi(value);
		else if (strcmp(name, "--seconds") == 0)
			bench->seconds = atof(value);
		else
			return false;
	}
	return bench->clients >= 1 && bench->clients <= MAX_CLIENTS && bench->outstanding >= 1 &&
	       bench->outstanding <= MAX_OUTSTANDING && bench->seconds > 0;
}

int
main(int count, char **arguments)
{
	static Bench bench = {.transport = "shm", .clients = 1, .outstanding = 1, .seconds = 2};
	const char *chosen;

	if (!parse_arguments(&bench, count, arguments))
		return usage();
	bench.board = mmap(NULL, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(bench.board != MAP_FAILED);
	bench.own_node = bench.address[0] == '\0';
	if (bench.own_node)
	{
		fabric_process_prepare(&bench.node, NODE_BYTES, MAX_CLIENTS + 8);
		fabric_process_start(&bench.node);
		snprintf(bench.address, sizeof(bench.address), "%s", bench.node.address);
	}
	bench.area = service_info(bench.address).first_unit;
	CHECK(service_commit(bench.address, bench.area, AREA_BYTES) == FABRIC_OK);
	bench.incarnation = cluster_attach(bench.address, CLUSTER);
	chosen = bench.operation;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
	{
		if (chosen != NULL && strcmp(chosen, operations[i]) != 0)
			continue;
		bench.operation = operations[i];
		run_bench(&bench);
	}
	if (bench.own_node)
		fabric_process_remove(&bench.node);
	return 0;
}
