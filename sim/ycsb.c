/*
 * ycsb.c
 *		See ycsb.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "ycsb.h"
#include "zipf.h"

/* Of so many keys of the space one is not loaded. */
#define LEFT_OUT 5u
/*
 * Keys between two lookups that fetch inner nodes into a compute server's cache: fewer than a node of level 1
 * covers.
 */
#define CACHE_STRIDE 2048u
#define WAL_EPOCH 1u
/* Of a leaf with cells of 16 bytes. */
#define LEAF_BYTES 1024u
/* Of a tree's handle: about what lies in front of its room for images. */
#define HANDLE_BYTES 640u

/* Latencies are counted by ranges of a 32nd of a power of two. */
#define FINE_BITS 5u
#define LATENCIES (48u << FINE_BITS)

typedef struct Moment
{
	uint64_t time;
	TreeCounters counters;
	uint64_t leaf_hits;
	TreeOffloads offloads;
	uint64_t used[SITE_SERVERS_MAX][COST_RESOURCES];
	uint64_t buckets[SITE_SERVERS_MAX][COST_BUCKETS];
} Moment;

typedef struct Ycsb
{
	YcsbOptions options;
	Site site;
	TreeRecord records[SITE_SERVERS_MAX]; /* one for all, or one for each compute server */
	Zipf zipf;
	uint64_t done;    /* operations */
	uint64_t fetched; /* lookups that filled caches */
	uint32_t warming; /* clients that fetch inner nodes still */
	Moment begin;
	Moment end;
	uint64_t latencies[LATENCIES];
	uint64_t longest;
	struct Worker *workers;
	uint32_t worker_count;
	double loaded;
} Ycsb;

typedef struct Worker
{
	SiteClient client;
	uint32_t server;
	uint32_t slot;
	uint64_t random;
	Tree *tree;
	TreeScan *scan;
	uint64_t done; /* operations that are measured */
	bool open;
} Worker;

static Ycsb run;

/* Of this process's processor time: other programs on the machine do not count. */
static double
real_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void
require(TreeStatus status, const SiteClient *client)
{
	if (status == TREE_OK)
		return;
	fprintf(stderr, "%s: %s\n", tree_status_name(status), tree_detail(client->tree));
	abort();
}

/* ---- keys ---- */

static uint64_t
mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
	return value ^ (value >> 31);
}

static uint64_t
worker_random(Worker *worker)
{
	return mix(worker->random += 0x9e3779b97f4a7c15ull);
}

static uint32_t
tree_count(void)
{
	return run.options.own_trees ? run.options.site.servers : 1;
}

/* Of one tree. */
static uint64_t
key_space(void)
{
	return run.options.entries / tree_count() / (LEFT_OUT - 1) * LEFT_OUT;
}

/* A key of the space, some more often than others; neighbors have nothing in common. */
static uint64_t
draw_key(Worker *worker)
{
	uint64_t rank = zipf_rank(&run.zipf, worker_random(worker));

	if (run.zipf.theta == 0)
		return rank;
	/* Each tree has hot keys of its own. */
	return mix(rank + 1 + ((uint64_t) (worker->server % tree_count()) << 48)) % key_space();
}

static TreeKey
key_of(uint64_t number)
{
	return (TreeKey){.norm = {(number + 1) << 16}, .block = (uint32_t) number, .offset = 1};
}

static TreeBound
bound_of(uint64_t number, int8_t side)
{
	return (TreeBound){
		.key = key_of(number), .norm_bits_valid = 1, .norm_length = 8, .norm_exact = true, .side = side};
}

/* ---- what is measured ---- */

static uint32_t
latency_range(uint64_t nanoseconds)
{
	uint32_t power = 63u - (uint32_t) __builtin_clzll(nanoseconds | 1u << FINE_BITS) - FINE_BITS;
	uint32_t range = (power << FINE_BITS) + (uint32_t) (nanoseconds >> power);

	return range < LATENCIES ? range : LATENCIES - 1;
}

/* The lowest latency that comes into a range. */
static uint64_t
range_begin(uint32_t range)
{
	uint32_t power = range >> FINE_BITS;

	if (power < 2)
		return range;
	return ((1ull << FINE_BITS) + (range & ((1u << FINE_BITS) - 1))) << (power - 1);
}

static uint64_t
percentile(double percent)
{
	uint64_t wanted = (uint64_t) ((double) run.options.operations * percent / 100);
	uint64_t seen = 0;

	for (uint32_t i = 0; i < LATENCIES; i++)
	{
		seen += run.latencies[i];
		if (seen > wanted)
			return range_begin(i);
	}
	return range_begin(LATENCIES - 1);
}

/* The counters are words. */
static void
counters_add(TreeCounters *sum, const TreeCounters *added, bool subtract)
{
	uint64_t *to = (uint64_t *) sum;
	const uint64_t *from = (const uint64_t *) added;

	for (size_t i = 0; i < sizeof(TreeCounters) / sizeof(uint64_t); i++)
		to[i] = subtract ? to[i] - from[i] : to[i] + from[i];
}

static void
moment_take(Moment *moment)
{
	moment->time = scheduler_now();
	memset(&moment->counters, 0, sizeof(moment->counters));
	moment->leaf_hits = 0;
	moment->offloads = (TreeOffloads){0};
	for (uint32_t i = 0; i < run.worker_count; i++)
	{
		TreeCounters counters;
		TreeLeafCounts leaves;
		TreeOffloads offloads;

		if (!run.workers[i].open)
			continue;
		tree_client_counters(run.workers[i].client.tree, &counters);
		counters_add(&moment->counters, &counters, false);
		tree_client_leaf_counts(run.workers[i].client.tree, &leaves);
		moment->leaf_hits += leaves.hits;
		tree_client_offloads(run.workers[i].client.tree, &offloads);
		moment->offloads.calls += offloads.calls;
		moment->offloads.found += offloads.found;
		moment->offloads.brought += offloads.brought;
		moment->offloads.bytes += offloads.bytes;
	}
	for (uint32_t i = 0; i < site_hosts(&run.options.site); i++)
	{
		memcpy(moment->used[i], cost_card(i)->used, sizeof(moment->used[i]));
		memcpy(moment->buckets[i], cost_card(i)->bucket_used, sizeof(moment->buckets[i]));
	}
}

/* An operation is through. */
static void
operation_done(Worker *worker, uint64_t began)
{
	uint64_t first = run.options.warm;
	uint64_t took = scheduler_now() - began;

	run.done++;
	if (run.done > first && run.done <= first + run.options.operations)
	{
		worker->done++;
		run.latencies[latency_range(took)]++;
		run.longest = took > run.longest ? took : run.longest;
	}
	if (run.done == first)
		moment_take(&run.begin);
	if (run.done == first + run.options.operations)
		moment_take(&run.end);
}

static bool
is_through(void)
{
	return run.done >= run.options.warm + run.options.operations;
}

/* ---- operations ---- */

/* By a guess where there is an entry cache. */
static void
find(Worker *worker, uint64_t number)
{
	TreeKey key = key_of(number);
	TreeFound found;
	TreeStatus status = tree_find(worker->scan, &key, &found);

	if (status != TREE_END)
		require(status, &worker->client);
}

static void
look_up(Worker *worker, uint64_t number)
{
	TreeBound start = bound_of(number, -1);
	TreeBound stop = bound_of(number, 1);
	const TreeBatch *batch;
	TreeStatus status;

	require(tree_scan_seek(worker->scan, TREE_FORWARD, &start, &stop), &worker->client);
	status = tree_scan_next(worker->scan, &batch);
	if (status != TREE_END)
		require(status, &worker->client);
}

static void
scan_range(Worker *worker, uint64_t number)
{
	TreeBound start = bound_of(number, -1);
	TreeBound stop = bound_of(number + (uint64_t) run.options.range_entries * LEFT_OUT / (LEFT_OUT - 1), 1);
	const TreeBatch *batch;
	TreeStatus status;

	require(tree_scan_seek(worker->scan, TREE_FORWARD, &start, &stop), &worker->client);
	while ((status = tree_scan_next(worker->scan, &batch)) == TREE_OK)
		;
	if (status != TREE_END)
		require(status, &worker->client);
}

static void
insert(Worker *worker, uint64_t number)
{
	TreeKey key = key_of(number);
	TreeWalPosition wal = {.epoch = WAL_EPOCH};
	bool hit;

	require(tree_insert(worker->tree, &key, &wal, &hit), &worker->client);
}

/* What made no chain took processor time alone, with the leaf that was looked at. */
static void
spend(Worker *worker, uint64_t began)
{
	CostClient *cost = &worker->client.cost;

	if (scheduler_now() != began)
		return;
	coroutine_sleep(cost->debt + LEAF_BYTES * cost_parameters.check_byte / PICOSECONDS_PER_NS);
	cost->debt = 0;
}

static void
operate(Worker *worker)
{
	uint64_t number = draw_key(worker);
	uint64_t kind = worker_random(worker) % 100;
	uint64_t began = scheduler_now();

	worker->client.cost.debt += run.options.operation_cost;
	if (kind < run.options.insert_percent)
		insert(worker, number);
	else if (kind < run.options.insert_percent + run.options.range_percent)
		scan_range(worker, number);
	else if (run.options.site.entry_cache_bytes > 0)
		find(worker, number);
	else
		look_up(worker, number);
	spend(worker, began);
	operation_done(worker, began);
}

/* ---- clients ---- */

static void
worker_open(Worker *worker)
{
	const TreeRecord *record = &run.records[worker->server % tree_count()];

	site_client_open(&worker->client, &run.site, worker->server, worker->slot);
	require(tree_open(worker->client.tree, record->tree, record->root, &record->format, NULL, NULL,
	                  &worker->tree),
	        &worker->client);
	cost_client_handle(&worker->client.cost, worker->tree, HANDLE_BYTES);
	require(tree_scan_open(worker->tree, &worker->scan), &worker->client);
	worker->open = true;
}

static void
worker_close(Worker *worker)
{
	worker->open = false;
	tree_scan_close(worker->scan);
	tree_close(worker->tree);
	site_client_close(&worker->client);
}

/* Each client of a compute server fetches a part of the inner nodes into its cache. */
static void
fill_cache(Worker *worker)
{
	for (uint64_t number = worker->slot * CACHE_STRIDE; number < key_space();
	     number += run.options.site.clients * CACHE_STRIDE)
	{
		look_up(worker, number);
		run.fetched++;
	}
	run.warming--;
	while (run.warming > 0)
		coroutine_sleep(NANOSECONDS_PER_US);
}

static void
work(void *argument)
{
	Worker *worker = argument;

	worker_open(worker);
	fill_cache(worker);
	while (!is_through())
		operate(worker);
	/* All counters are read when the last operation that is measured is through. */
	worker_close(worker);
}

/* Makes the loader's tree: the server's own, or that of all. */
static void
load(Worker *loader)
{
	TreeWalPosition wal = {.epoch = WAL_EPOCH};
	TreeRecord *record = &run.records[loader->server];
	TreeBulk *bulk;

	*record = (TreeRecord){
		.cluster = {1, 2},
		.database = 1,
		.format = {.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 80},
	};
	site_client_open(&loader->client, &run.site, loader->server, run.options.site.clients);
	require(tree_create(loader->client.tree, record), &loader->client);
	require(tree_open(loader->client.tree, record->tree, record->root, &record->format, NULL, NULL,
	                  &loader->tree),
	        &loader->client);
	require(tree_bulk_open(loader->tree, &wal, &bulk), &loader->client);
	for (uint64_t number = 0; number < key_space(); number++)
	{
		TreeKey key = key_of(number);

		if (mix(number) % LEFT_OUT != 0)
			require(tree_bulk_add(bulk, &key), &loader->client);
	}
	require(tree_bulk_finish(bulk), &loader->client);
}

/* All is over: the loader's tree is as large as it will be. Returns the bytes of its extents. */
static uint64_t
loader_close(Worker *loader)
{
	TreeStatistics statistics;

	require(tree_estimate(loader->tree, &statistics), &loader->client);
	tree_close(loader->tree);
	site_client_close(&loader->client);
	return statistics.extent_bytes;
}

static void
direct(void *argument)
{
	Worker *loaders = run.workers + run.worker_count;
	YcsbResult *result = argument;
	double began = real_seconds();

	site_start(&run.site, &run.options.site);
	for (uint32_t i = 0; i < tree_count(); i++)
	{
		loaders[i].server = i;
		load(&loaders[i]);
	}
	run.loaded = real_seconds();
	result->load_seconds = run.loaded - began;
	for (uint32_t i = 0; i < run.worker_count; i++)
	{
		Worker *worker = &run.workers[i];

		worker->server = i % run.options.site.servers;
		worker->slot = i / run.options.site.servers;
		worker->random = mix(run.options.seed) + i * 0x632be59bd9b4e019ull;
		worker->client.coroutine = coroutine_start(work, worker, false);
	}
	while (!is_through())
		coroutine_sleep(NANOSECONDS_PER_MS);
	for (uint32_t i = 0; i < run.worker_count; i++)
		while (!coroutine_has_ended(run.workers[i].client.coroutine))
			coroutine_sleep(NANOSECONDS_PER_US);
	result->run_seconds = real_seconds() - run.loaded;
	for (uint32_t i = 0; i < tree_count(); i++)
		result->node_memory += loader_close(&loaders[i]);
	site_stop(&run.site);
}

/* ---- the run ---- */

static void
find_bottleneck(YcsbResult *result)
{
	double time = (double) (run.end.time - run.begin.time) * (double) PICOSECONDS_PER_NS;

	for (uint32_t host = 0; host < site_hosts(&run.options.site); host++)
	{
		for (uint32_t i = 0; i < COST_RESOURCES; i++)
		{
			double part = (double) (run.end.used[host][i] - run.begin.used[host][i]) / time;

			if (part <= result->busiest_part)
				continue;
			result->busiest = (CostResource) i;
			result->busiest_host = host;
			result->busiest_part = part;
		}
		for (uint32_t i = 0; i < COST_BUCKETS; i++)
		{
			double part = (double) (run.end.buckets[host][i] - run.begin.buckets[host][i]) / time;

			if (part > result->bucket_part)
				result->bucket_part = part;
		}
	}
}

/* How even-handed it was. */
static void
find_shares(YcsbResult *result)
{
	result->fewest = UINT64_MAX;
	for (uint32_t i = 0; i < run.worker_count; i++)
	{
		uint64_t done = run.workers[i].done;

		result->fewest = done < result->fewest ? done : result->fewest;
		result->most = done > result->most ? done : result->most;
	}
}

void
ycsb_clean(void)
{
	site_clean(&run.site);
}

void
ycsb_run(const YcsbOptions *options, YcsbResult *result)
{
	CostOptions cost = {.placement = options->site.placement, .hosts = site_hosts(&options->site)};

	memset(&run, 0, sizeof(run));
	memset(result, 0, sizeof(*result));
	run.options = *options;
	run.worker_count = run.warming = options->site.servers * options->site.clients;
	/* And those that load. */
	run.workers = calloc(run.worker_count + tree_count(), sizeof(Worker));
	zipf_open(&run.zipf, options->theta == 0 ? key_space() : options->ranks, options->theta);
	scheduler_open(options->seed);
	cost_open(&cost);
	coroutine_start(direct, result, false);
	if (run.workers == NULL || !scheduler_run(SCHEDULER_NEVER))
	{
		fprintf(stderr, "the simulation does not end\n");
		abort();
	}
	result->operations = options->operations;
	result->time = run.end.time - run.begin.time;
	result->p50 = percentile(50);
	result->p90 = percentile(90);
	result->p99 = percentile(99);
	result->p999 = percentile(99.9);
	result->longest = run.longest;
	result->simulated = run.done + run.fetched;
	result->counters = run.end.counters;
	counters_add(&result->counters, &run.begin.counters, true);
	result->leaf_hits = run.end.leaf_hits - run.begin.leaf_hits;
	result->offloads = (TreeOffloads){.calls = run.end.offloads.calls - run.begin.offloads.calls,
	                                  .found = run.end.offloads.found - run.begin.offloads.found,
	                                  .brought = run.end.offloads.brought - run.begin.offloads.brought,
	                                  .bytes = run.end.offloads.bytes - run.begin.offloads.bytes};
	find_bottleneck(result);
	find_shares(result);
	result->hash = mix(scheduler_now()) ^ mix(result->time + 1) ^ mix(result->counters.read_bytes + 2);
	cost_close();
	scheduler_close();
	free(run.workers);
}
