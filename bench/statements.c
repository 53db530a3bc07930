/*
 * statements.c
 *		Statements of a PostgreSQL backend in the simulator's cost model: of one client that has a compute server to itself, as a
 *		backend that nobody disturbs, and two memory nodes.
 *
 *		statements [--entries N] [--rows N]
 *
 * Prints for each kind of statement microseconds and round trips a row, in two ways: as PostgreSQL does it (a server that has its trees
 * for itself, leaves kept in shared memory, entries of a statement that go together, lookups announced), and by the same tree
 * without these (lock words, no leaves kept, one entry and one lookup after the other).
 *
 * Times are those of a model (doc/internals/simulator.md): chains, and OPERATION_NS of processor time a row for the index alone. What the
 * executor and the table take a row is not in them.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sim/site.h"
#include "../tree/internal.h"

#define ENTRIES 1000000u
#define ROWS 50000u
/* As in paper.c. */
#define OPERATION_NS 500u
#define SPARE_BYTES (1ull << 30)
#define CACHE_BYTES (64ull << 20)
#define LEAF_BYTES 1024u
#define LEAVES_LEAST 1000u
#define LEAF_CACHE_BYTES (LEAF_BYTES + 72u)
/* Entries of a leaf that was built. */
#define LEAF_ENTRIES 45u
/* What work_mem has room for by default, 4 MB of keys; lookups that are announced together. */
#define TOGETHER ((4u << 20) / (uint32_t) sizeof(TreeKey))
#define ANNOUNCED 512u
#define WAL_EPOCH 1u
/* Of the numbers of a tree's entries each second one is loaded. */
#define STRIDE 2u

typedef struct Backend
{
	SiteClient client;
	Tree *tree;
	TreeScan *scan;
	uint64_t random;
	uint64_t next; /* TID of the next row */
	bool plain;    /* without what PostgreSQL has */
} Backend;

typedef struct Figure
{
	double us;
	double trips;
} Figure;

typedef struct Kind
{
	const char *name;
	void (*run)(Backend *backend, uint32_t rows);
	uint32_t rows_part; /* of the rows that are asked for one in so many */
	uint32_t
		cached_part; /* leaves that are kept: one in so many; 0: as many as sherman.cache_size has room for at least */
} Kind;

static uint64_t entries = ENTRIES;
static uint32_t rows = ROWS;
static SiteOptions options;
static Site site;
static TreeRecord record;

static void
require(const Backend *backend, TreeStatus status)
{
	if (status != TREE_OK && status != TREE_END)
		world_fail("%s: %s", tree_status_name(status), tree_detail(backend->client.tree));
}

/* ---- keys ---- */

static uint64_t
draw(Backend *backend, uint64_t below)
{
	uint64_t value = backend->random += 0x9e3779b97f4a7c15ull;

	value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ value >> 27) * 0x94d049bb133111ebull;
	return (value ^ value >> 31) % below;
}

static TreeKey
key_of(uint64_t number, uint64_t row)
{
	return (TreeKey){
		.norm = {(number + 1) << 16}, .block = (uint32_t) (row / 100), .offset = (uint16_t) (1 + row % 100)};
}

static TreeBound
bound_of(uint64_t number, int8_t side)
{
	return (TreeBound){
		.key = key_of(number, 0), .norm_bits_valid = 1, .norm_length = 8, .norm_exact = true, .side = side};
}

/* ---- statements ---- */

static Tree *sorting;

static int
compare_keys(const void *a, const void *b)
{
	return tree_key_order(sorting, a, b);
}

/* The entries of one flush. */
static void
flush(Backend *backend, TreeKey *keys, uint32_t count, bool unique)
{
	TreeWalPosition wal = {.epoch = WAL_EPOCH, .lsn = 1};
	uint32_t done = count;
	bool hit;

	backend->client.cost.debt += (uint64_t) count * OPERATION_NS;
	if (unique)
	{
		sorting = backend->tree;
		qsort(keys, count, sizeof(TreeKey), compare_keys);
		require(backend, tree_insert_many_alone(backend->tree, keys, count, &wal, NULL, &done));
		if (done < count)
			world_fail("a key is there already");
	}
	else if (!backend->plain)
		require(backend, tree_insert_many(backend->tree, keys, count, &wal));
	else
		for (uint32_t i = 0; i < count; i++)
			require(backend, tree_insert(backend->tree, &keys[i], &wal, &hit));
}

/* Each has a number of its own among those that were left out, and beyond those of all entries if they ascend. */
static void
insert_rows(Backend *backend, uint32_t count, bool ascending, bool unique, uint32_t together)
{
	TreeKey *keys = calloc(together, sizeof(TreeKey));
	uint64_t first = draw(backend, entries);

	if (keys == NULL)
		world_fail("no memory");
	for (uint32_t i = 0; i < count; i++)
	{
		uint64_t number = ascending ? entries * STRIDE + backend->next
		                            : (first + (uint64_t) i * 7368787) % entries * STRIDE + 1;

		keys[i % together] = key_of(number, entries + backend->next++);
		if (i % together == together - 1 || i == count - 1)
			flush(backend, keys, i % together + 1, unique);
	}
	free(keys);
}

static void
insert_random(Backend *backend, uint32_t count)
{
	insert_rows(backend, count, false, false, TOGETHER);
}

static void
insert_ascending(Backend *backend, uint32_t count)
{
	insert_rows(backend, count, true, false, TOGETHER);
}

static void
insert_unique(Backend *backend, uint32_t count)
{
	insert_rows(backend, count, false, true, TOGETHER);
}

static void
insert_single(Backend *backend, uint32_t count)
{
	insert_rows(backend, count, false, false, 1);
}

static void
look_up(Backend *backend, uint64_t number)
{
	TreeBound start = bound_of(number, -1);
	TreeBound stop = bound_of(number, 1);
	const TreeBatch *batch;

	backend->client.cost.debt += OPERATION_NS;
	require(backend, tree_scan_seek(backend->scan, TREE_FORWARD, &start, &stop));
	require(backend, tree_scan_next(backend->scan, &batch));
}

/* A nested loop, whose inner lookups are announced. */
static void
nested_loop(Backend *backend, uint32_t count)
{
	static uint64_t numbers[ANNOUNCED];
	static TreeBound bounds[ANNOUNCED];

	for (uint32_t done = 0; done < count; done += ANNOUNCED)
	{
		uint32_t some = count - done < ANNOUNCED ? count - done : ANNOUNCED;

		for (uint32_t i = 0; i < some; i++)
		{
			numbers[i] = draw(backend, entries) * STRIDE;
			bounds[i] = bound_of(numbers[i], -1);
		}
		if (!backend->plain)
			tree_prefetch(backend->tree, bounds, (int) some);
		for (uint32_t i = 0; i < some; i++)
			look_up(backend, numbers[i]);
	}
}

static void
range_scan(Backend *backend, uint32_t count)
{
	TreeBound start = bound_of(0, -1);
	TreeBound stop = bound_of((uint64_t) count * STRIDE, 1);
	const TreeBatch *batch;
	TreeStatus status;

	require(backend, tree_scan_seek(backend->scan, TREE_FORWARD, &start, &stop));
	while ((status = tree_scan_next(backend->scan, &batch)) == TREE_OK)
		backend->client.cost.debt += (uint64_t) batch->count * OPERATION_NS / 10;
	require(backend, status);
}

/* A tenth of the rows is dead. */
static bool
is_dead(void *argument, uint32_t block, uint16_t offset)
{
	(void) argument;
	return (block + offset) % 10 == 0;
}

static void
vacuum(Backend *backend, uint32_t count)
{
	TreeVacuumCounts counts = {0};
	TreeVacuum *walk;
	TreeStatus status;

	(void) count;
	require(backend, tree_vacuum_open(backend->tree, &walk));
	while ((status = tree_vacuum_next(walk, is_dead, backend, &counts)) == TREE_OK)
		;
	require(backend, status);
	tree_vacuum_close(walk);
}

static const Kind kinds[] = {
	{"INSERT ... SELECT, random keys", insert_random, 1, 0},
	{"the same, into a unique index", insert_unique, 1, 0},
	{"the same, ascending keys", insert_ascending, 1, 0},
	{"INSERT of one row, random keys, few leaves kept", insert_single, 10, 0},
	{"the same, all leaves kept", insert_single, 10, 1},
	{"nested loop, few leaves kept", nested_loop, 1, 0},
	{"the same, a twentieth kept", nested_loop, 1, 20},
	{"the same, all leaves kept", nested_loop, 1, 1},
	{"range scan", range_scan, 1, 0},
	{"VACUUM, a tenth of the entries", vacuum, 0, 0},
};

/* ---- a run ---- */

static void
load(Backend *backend)
{
	TreeWalPosition wal = {.epoch = WAL_EPOCH, .lsn = 1};
	TreeBulk *bulk;

	record = (TreeRecord){
		.cluster = {1, 2},
		.database = 1,
		.format = {.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90},
	};
	site_client_open(&backend->client, &site, 0, 0);
	/* The transport's memory is mapped, the model's is not. */
	backend->client.tree->far = true;
	require(backend, tree_create(backend->client.tree, &record));
	require(backend, tree_open(backend->client.tree, record.tree, record.root, &record.format, NULL, NULL,
	                           &backend->tree));
	require(backend, tree_bulk_open(backend->tree, &wal, &bulk));
	for (uint64_t i = 0; i < entries; i++)
	{
		TreeKey key = key_of(i * STRIDE, i);

		require(backend, tree_bulk_add(bulk, &key));
	}
	require(backend, tree_bulk_finish(bulk));
	require(backend, tree_scan_open(backend->tree, &backend->scan));
}

/* Inner nodes are kept, and leaves as far as there is room. */
static void
warm(Backend *backend)
{
	for (uint64_t i = 0; i < entries; i += LEAF_ENTRIES / 2)
		look_up(backend, i * STRIDE);
	for (uint32_t i = 0; i < entries / LEAF_ENTRIES; i++)
		look_up(backend, draw(backend, entries) * STRIDE);
}

typedef struct Measurement
{
	const Kind *kind;
	Backend backend;
	Figure figure;
} Measurement;

static void
measure(void *argument)
{
	Measurement *measurement = argument;
	Backend *backend = &measurement->backend;
	const Kind *kind = measurement->kind;
	uint32_t count = kind->rows_part == 0 ? (uint32_t) entries : rows / kind->rows_part;
	TreeCounters before, after;
	uint64_t began;

	site_start(&site, &options);
	load(backend);
	warm(backend);
	backend->client.cost.debt = 0;
	tree_client_counters(backend->client.tree, &before);
	began = scheduler_now();
	kind->run(backend, count);
	coroutine_sleep(backend->client.cost.debt);
	tree_client_counters(backend->client.tree, &after);
	measurement->figure.us = (double) (scheduler_now() - began) / 1000 / count;
	measurement->figure.trips = (double) (after.round_trips - before.round_trips) / count;
	tree_scan_close(backend->scan);
	tree_close(backend->tree);
	site_client_close(&backend->client);
	site_stop(&site);
}

/* Of the paper's cluster, two memory nodes. */
static Figure
figure_of(const Kind *kind, bool plain)
{
	static Measurement measurement;
	CostOptions cost = {.placement.chip_locks = true, .hosts = 2, .posts = true};

	measurement = (Measurement){.kind = kind, .backend = {.plain = plain, .random = 7}};
	options = (SiteOptions){
		.nodes = 2,
		.servers = 1,
		.clients = 1,
		.node_bytes = entries * 64 + SPARE_BYTES,
		.cache_bytes = CACHE_BYTES,
		.leaf_cache_leaf_bytes = LEAF_BYTES,
		.placement = cost.placement,
		.techniques = plain ? tree_techniques : tree_owner_techniques,
		.alone = !plain,
	};
	if (!plain)
		options.leaf_cache_bytes = kind->cached_part == 0
		                               ? LEAVES_LEAST * LEAF_CACHE_BYTES
		                               : entries / LEAF_ENTRIES * 2 / kind->cached_part * LEAF_CACHE_BYTES;
	scheduler_open(1);
	cost_open(&cost);
	coroutine_start(measure, &measurement, false);
	if (!scheduler_run(SCHEDULER_NEVER))
		world_fail("the simulation does not end");
	cost_close();
	scheduler_close();
	return measurement.figure;
}

static void
ended(int signal_number)
{
	site_clean(&site);
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

int
main(int argc, char **argv)
{
	static const struct option names[] = {{"entries", required_argument, NULL, 'e'},
	                                      {"rows", required_argument, NULL, 'r'},
	                                      {NULL, 0, NULL, 0}};
	int name;

	while ((name = getopt_long(argc, argv, "", names, NULL)) != -1)
	{
		if (name == 'e')
			entries = strtoull(optarg, NULL, 10);
		else if (name == 'r')
			rows = (uint32_t) strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	signal(SIGABRT, ended);
	signal(SIGINT, ended);
	signal(SIGTERM, ended);
	printf("| a row | us | without | ratio | round trips | without |\n|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
	{
		Figure ours = figure_of(&kinds[i], false);
		Figure plain = figure_of(&kinds[i], true);

		printf("| %s | %.2f | %.2f | %.2f | %.4f | %.4f |\n", kinds[i].name, ours.us, plain.us,
		       ours.us / plain.us, ours.trips, plain.trips);
		fflush(stdout);
	}
	return 0;
}
