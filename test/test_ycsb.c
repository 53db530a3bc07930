/*
 * test_ycsb.c
 *		The papers' workloads on a small site: what an operation costs in round trips and bytes, that runs
 *		repeat, and how often ranks are drawn.
 */
#include <string.h>

#include "support/testing.h"
#include "../sim/ycsb.h"
#include "../sim/zipf.h"

#define LEAF 1024u
/* An insert writes its cell, and its lock word twice. */
#define INSERT_WRITES (16 + 2 * 8)

static YcsbOptions
small_options(uint32_t insert_percent)
{
	return (YcsbOptions){.site = {.nodes = 2,
	                              .servers = 2,
	                              .clients = 3,
	                              .node_bytes = 64 << 20,
	                              .cache_bytes = 1 << 20,
	                              .placement.chip_locks = true,
	                              .techniques = tree_techniques,
	                              .left_out = {.overwrite = true},
	                              .lock_cost = 100},
	                     .seed = 7,
	                     .entries = 40000,
	                     .insert_percent = insert_percent,
	                     .range_entries = 100,
	                     .warm = 1000,
	                     .operations = 5000,
	                     .operation_cost = 500};
}

static void
test_lookups(void **state)
{
	YcsbOptions options = small_options(0);
	YcsbResult result;

	ycsb_run(&options, &result);
	assert_int_equal(result.counters.round_trips, result.operations);
	assert_int_equal(result.counters.read_bytes, result.operations * LEAF);
	assert_int_equal(result.counters.written_bytes, 0);
	/* One READ of 1 KB, and the processor's part. */
	assert_in_range(result.p50, 2600, 3200);
}

/* One client alone: nothing is retried, and nothing handed over. */
static void
test_inserts(void **state)
{
	YcsbOptions options = small_options(100);
	YcsbResult result;

	options.site.servers = options.site.clients = 1;
	ycsb_run(&options, &result);
	assert_int_equal(result.counters.leaf_splits + result.counters.leaf_rewrites, 0);
	/* Four of five keys are there, and written once more. */
	assert_in_range(result.counters.insert_hits, result.operations * 77 / 100, result.operations * 83 / 100);
	assert_int_equal(result.counters.round_trips, result.operations * 2);
	assert_int_equal(result.counters.read_bytes, result.operations * LEAF);
	assert_int_equal(result.counters.written_bytes, result.operations * INSERT_WRITES);
	/* The baseline: each operation alone, and leaves as a whole. */
	options.site.techniques = (TreeTechniques){0};
	options.site.left_out = baseline_fg;
	ycsb_run(&options, &result);
	assert_int_equal(result.counters.leaf_splits, 0);
	assert_int_equal(result.counters.round_trips, result.operations * 4);
	assert_int_equal(result.counters.read_bytes, result.operations * LEAF);
	assert_int_equal(result.counters.written_bytes, result.operations * (LEAF + 2 * 8));
}

static void
test_ranges(void **state)
{
	YcsbOptions options = small_options(0);
	YcsbResult result;

	options.range_percent = 100;
	ycsb_run(&options, &result);
	assert_true(result.counters.round_trips > 2 * result.operations);
	assert_true(result.counters.round_trips < 4 * result.operations);
	assert_true(result.counters.read_bytes > result.operations * 3 * LEAF);
	assert_true(result.counters.read_bytes < result.operations * 5 * LEAF);
}

/*
 * Two clients of a compute server, or two compute servers, are the same to the memory nodes, but not to each
 * other.
 */
static void
test_repeats(void **state)
{
	YcsbOptions options = small_options(50);
	YcsbResult first, second;

	options.theta = 0.99;
	options.ranks = 50000;
	ycsb_run(&options, &first);
	ycsb_run(&options, &second);
	assert_true(first.hash == second.hash);
	assert_memory_equal(&first.counters, &second.counters, sizeof(first.counters));
	assert_int_equal(first.time, second.time);
	assert_true(first.counters.handovers > 0);
	options.seed++;
	ycsb_run(&options, &second);
	assert_true(first.hash != second.hash);
}

/* As many; but what is under way at the first or last moment may be counted in part: one operation of each client. */
static void
assert_about(uint64_t count, uint64_t expected)
{
	assert_in_range(count, expected - 2 * 3, expected + 2 * 3);
}

/* What the cache lacks, by READs or by calls: as many leaves come, and less is read. */
static void
test_offload(void **state)
{
	YcsbOptions options = small_options(0);
	YcsbResult read, called, again;

	/* Eight frames of a dozen nodes and more. */
	options.site.cache_bytes = 1;
	options.entries = 120000;
	ycsb_run(&options, &read);
	assert_int_equal(read.offloads.calls, 0);
	assert_about(read.counters.round_trips, read.operations + read.counters.cache_misses);
	assert_true(read.counters.cache_misses > read.operations / 10);
	options.site.techniques.offload = TREE_OFFLOAD_ALWAYS;
	ycsb_run(&options, &called);
	assert_about(called.offloads.calls, called.counters.cache_misses);
	assert_int_equal(called.offloads.found, called.offloads.calls);
	assert_about(called.counters.round_trips, called.operations - called.offloads.brought);
	assert_int_equal(called.counters.read_bytes, called.counters.round_trips * LEAF);
	assert_int_equal(called.offloads.bytes, called.offloads.calls * 16 + called.offloads.brought * LEAF);
	assert_true(called.counters.read_bytes + called.offloads.bytes < read.counters.read_bytes);
	ycsb_run(&options, &again);
	assert_true(called.hash == again.hash);
	options.site.techniques.offload = TREE_OFFLOAD_BY_COST;
	ycsb_run(&options, &again);
	assert_in_range(again.offloads.calls, again.counters.cache_misses * 9 / 10,
	                again.counters.cache_misses - 1);
}

static void
test_zipf(void **state)
{
	static uint32_t drawn[1000];
	uint64_t random = 0;
	Zipf zipf;

	zipf_open(&zipf, 1000, 0.99);
	for (int i = 0; i < 1000000; i++)
	{
		random += 0x9e3779b97f4a7c15ull;
		drawn[zipf_rank(&zipf, random)]++;
	}
	/* 1 / sum of (1 / i)^0.99 for i to 1000, and half as often to the power. */
	assert_in_range(drawn[0], 129000, 133000);
	assert_in_range(drawn[1], 65000, 67000);
	assert_true(drawn[999] > 50 && drawn[999] < 250);
	/* All ranks at once: what the integral stands for is as much as the sum. */
	zipf_open(&zipf, 100000000, 0.99);
	assert_true(zipf.sum > 20.80 && zipf.sum < 20.81);
	assert_true(zipf_rank(&zipf, UINT64_MAX) < 100000000);
	zipf_open(&zipf, 10, 0);
	assert_int_equal(zipf_rank(&zipf, 0), 0);
	assert_int_equal(zipf_rank(&zipf, UINT64_MAX), 9);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zipf),   cmocka_unit_test(test_lookups), cmocka_unit_test(test_inserts),
		cmocka_unit_test(test_ranges), cmocka_unit_test(test_repeats), cmocka_unit_test(test_offload),
	};

	if (!scheduler_is_here())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
