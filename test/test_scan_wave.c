/*
 * test_scan_wave.c
 *		Scans that read ahead deeply, from two memory nodes at once, and leaves of many seeks read together: what that costs, and
 *		chains that are lost.
 *
 *		test_scan_wave [--network]
 */
#include <string.h>

#include "fault.h"
#include "support/many_fixture.h"
#include "tree/scan/scan.h"

#define ENTRIES 30000u

/* Entries that a whole scan finds. */
static uint32_t
scan_all(TreeScan *scan, TreeDirection direction)
{
	const TreeBatch *batch;
	uint32_t entries = 0;
	TreeStatus status;

	assert_int_equal(tree_scan_seek(scan, direction, NULL, NULL), TREE_OK);
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
		entries += (uint32_t) batch->count;
	if (status != TREE_END)
		fail_msg("scan: %s: %s", tree_status_name(status), tree_detail(client.tree));
	return entries;
}

static uint64_t
reads_of(uint32_t node)
{
	FabricCounters counters;

	fabric_counters(client.endpoints[node], &counters);
	return counters.reads;
}

/* A check reads eight leaves together, from either memory node, and inner nodes one by one, as nodes of a level and as parents. */
static void
test_check(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeStatistics statistics;
	uint64_t problems, before;

	many_insert(tree, MANY_RANDOM, 0, ENTRIES, 4000);
	before = client.tree->counters.round_trips;
	assert_int_equal(tree_check(tree, NULL, NULL, NULL, &statistics, &problems), TREE_OK);
	assert_int_equal(problems, 0);
	assert_true(statistics.leaves > 400);
	assert_true(client.tree->counters.round_trips - before <=
	            statistics.leaves / 4 + 4 * statistics.inner_nodes + 4);
	tree_close(tree);
}

/* Most leaves come by chains of as many READs as there can be, half of them from each memory node; none is read twice. */
static void
test_deep(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeScan *scan;
	TreeStatistics statistics;
	uint64_t problems;

	many_insert(tree, MANY_RANDOM, 0, ENTRIES, 4000);
	assert_int_equal(tree_check(tree, NULL, NULL, NULL, &statistics, &problems), TREE_OK);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	for (int direction = TREE_FORWARD; direction <= TREE_BACKWARD; direction++)
	{
		TreeCounters before = client.tree->counters;
		uint64_t reads[MANY_NODES] = {reads_of(0), reads_of(1)};
		uint64_t chains;

		assert_int_equal(scan_all(scan, (TreeDirection) direction), ENTRIES);
		chains = client.tree->counters.round_trips - before.round_trips;
		assert_int_equal(client.tree->counters.leaf_reads - before.leaf_reads, statistics.leaves);
		/* It deepens by doubling, and a wave ends with the children of one parent. */
		assert_true(chains <= statistics.leaves / 16 + 2 * (statistics.inner_nodes + 8));
		for (uint32_t node = 0; node < MANY_NODES; node++)
			assert_true(reads_of(node) - reads[node] > statistics.leaves / 4);
	}
	tree_scan_close(scan);
	tree_close(tree);
}

/* Entries between the two numbers, and what it cost; `known`: the scan is told that it goes on to the stop. */
static uint64_t
range_costs(Tree *tree, uint64_t from, uint64_t to, bool known)
{
	TreeKey low = number_key(from, 0), high = number_key(to, 0);
	uint64_t before;
	TreeBound start, stop;
	TreeScan *scan;
	const TreeBatch *batch;
	TreeStatus status;
	uint64_t entries = 0;

	bound_of_key(&tree->geometry, &low, &start);
	bound_of_key(&tree->geometry, &high, &stop);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	before = client.tree->counters.round_trips;
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, &start, &stop), TREE_OK);
	if (known)
		tree_scan_to_the_stop(scan);
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
		entries += (uint64_t) batch->count;
	assert_int_equal(status, TREE_END);
	assert_int_equal(entries, to - from);
	tree_scan_close(scan);
	return client.tree->counters.round_trips - before;
}

/* A scan that is known to go on to its stop: the first leaf, one wave for each parent, and no leaf beyond. */
static void
test_to_the_stop(void **state)
{
	Tree *tree = many_tree(&narrow);
	uint64_t leaf_reads, chains[2];

	many_insert(tree, MANY_ASCENDING, 0, ENTRIES, 4000);
	(void) range_costs(tree, 10, ENTRIES - 10, false);
	leaf_reads = client.tree->counters.leaf_reads;
	for (int known = 0; known < 2; known++)
	{
		chains[known] = range_costs(tree, 1000, 3000, known != 0);
		assert_in_range(client.tree->counters.leaf_reads - leaf_reads, 2000 / 60, 2000 / 40 + 3);
		leaf_reads = client.tree->counters.leaf_reads;
	}
	print_message("%llu chains of a range, %llu to the stop\n", (unsigned long long) chains[0],
	              (unsigned long long) chains[1]);
	assert_true(chains[1] + 3 <= chains[0]);
	assert_in_range(chains[1], 2, 7);
	tree_close(tree);
}

/*
 * Whatever chain is lost, the leaves of its wave are read again: what was inserted since they were read last, into the same
 * buffers, is met.
 */
static void
test_lost(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeScan *scan;
	FabricFaultPlan plan = {.seed = 1};
	uint32_t entries = 6000;
	bool lost = true;

	many_insert(tree, MANY_RANDOM, 0, entries, 4000);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	assert_int_equal(scan_all(scan, TREE_FORWARD), entries);
	for (uint32_t n = 1; lost; n += 9)
	{
		uint32_t node = n % MANY_NODES;

		many_insert(tree, MANY_RANDOM, entries, entries + 20, 1);
		entries += 20;
		plan.fail_operation = n;
		assert_int_equal(fabric_fault_set(client.endpoints[node], &plan), FABRIC_OK);
		assert_int_equal(scan_all(scan, TREE_FORWARD), entries);
		lost = fabric_fault_operations(client.endpoints[node]) >= n;
		assert_int_equal(fabric_fault_set(client.endpoints[node], NULL), FABRIC_OK);
	}
	tree_scan_close(scan);
	many_verify(tree, MANY_RANDOM, entries);
	tree_close(tree);
}

/* ---- many seeks ---- */

#define SEEKS 64u

/* Keys of every so many entries, in the order of the index. */
static void
seek_keys(TreeKey *keys, uint32_t entries, bool forward)
{
	for (uint32_t i = 0; i < SEEKS; i++)
	{
		uint32_t place;
		TreeKey key = many_key_of(&narrow, MANY_RANDOM, i * (entries / SEEKS));

		for (place = i; place > 0 && (keys[place - 1].norm[0] > key.norm[0]) == forward; place--)
			keys[place] = keys[place - 1];
		keys[place] = key;
	}
}

static void
key_edges(const Tree *tree, const TreeKey *key, TreeBound *low, TreeBound *high)
{
	bound_of_key(&tree->geometry, key, low);
	low->side = -1;
	*high = *low;
	high->side = 1;
}

/* Tells the scan of all keys, and fetches their leaves. */
static void
fetch_all(TreeScan *scan, const TreeKey *keys, bool forward)
{
	bool more = true;

	for (uint32_t i = 0; i < SEEKS; i++)
	{
		TreeBound low, high;

		assert_true(more);
		key_edges(scan->tree, &keys[i], &low, &high);
		assert_int_equal(tree_scan_seek_ahead(scan, forward ? TREE_FORWARD : TREE_BACKWARD,
		                                      forward ? &low : &high, SEEKS, &more),
		                 TREE_OK);
	}
	assert_int_equal(tree_scan_fetch_ahead(scan), TREE_OK);
}

/* Entries with this key. */
static uint32_t
seek_one(TreeScan *scan, const TreeKey *key, bool forward)
{
	const TreeBatch *batch;
	TreeBound low, high;
	uint32_t entries = 0;
	TreeStatus status;

	key_edges(scan->tree, key, &low, &high);
	assert_int_equal(tree_scan_seek(scan, forward ? TREE_FORWARD : TREE_BACKWARD, forward ? &low : &high,
	                                forward ? &high : &low),
	                 TREE_OK);
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
		entries += (uint32_t) batch->count;
	assert_int_equal(status, TREE_END);
	return entries;
}

static void
seek_all(TreeScan *scan, const TreeKey *keys, bool forward, uint32_t expected)
{
	for (uint32_t i = 0; i < SEEKS; i++)
		assert_int_equal(seek_one(scan, &keys[i], forward), expected);
}

static void
note_leaf(void *argument, uint64_t leaf)
{
	(*(uint32_t *) argument)++;
}

/* The leaves of all keys come by one wave, and no seek reads anything; once they are forgotten each does. */
static void
test_seeks(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeScan *scan;

	many_insert(tree, MANY_RANDOM, 0, ENTRIES, 4000);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	for (int forward = 0; forward < 2; forward++)
	{
		TreeKey keys[SEEKS];
		uint32_t marked = 0;
		uint64_t before, leaves;

		seek_keys(keys, ENTRIES, forward != 0);
		seek_all(scan, keys, forward != 0, 1);
		before = client.tree->counters.round_trips;
		leaves = client.tree->counters.leaf_reads;
		tree_scan_on_leaf(scan, note_leaf, &marked);
		fetch_all(scan, keys, forward != 0);
		assert_in_range(client.tree->counters.round_trips - before, 2, 4);
		leaves = client.tree->counters.leaf_reads - leaves;
		assert_in_range(leaves, SEEKS / 2, SEEKS);
		assert_int_equal(marked, leaves);
		before = client.tree->counters.round_trips;
		seek_all(scan, keys, forward != 0, 1);
		assert_int_equal(client.tree->counters.round_trips, before);
		tree_scan_on_leaf(scan, NULL, NULL);
		tree_scan_forget_ahead(scan);
		seek_all(scan, keys, forward != 0, 1);
		assert_int_equal(client.tree->counters.round_trips - before, SEEKS);
	}
	tree_scan_close(scan);
	tree_close(tree);
}

/*
 * Entries of so many keys, taken together as far as they begin in one leaf.  *seeks: how often the scan was put somewhere.
 */
static uint32_t
seek_together(TreeScan *scan, const TreeKey *keys, uint32_t count, bool forward, uint32_t *seeks)
{
	TreeDirection direction = forward ? TREE_FORWARD : TREE_BACKWARD;
	uint32_t entries = 0;

	for (uint32_t i = 0; i < count; (*seeks)++)
	{
		const TreeBatch *batch;
		TreeBound low, high;
		TreeStatus status;

		key_edges(scan->tree, &keys[i], &low, &high);
		assert_int_equal(tree_scan_seek(scan, direction, forward ? &low : &high, forward ? &high : &low),
		                 TREE_OK);
		assert_int_equal(tree_scan_load(scan), TREE_OK);
		for (i++; i < count; i++)
		{
			key_edges(scan->tree, &keys[i], &low, &high);
			if (!tree_scan_reaches(scan, forward ? &low : &high))
				break;
			tree_scan_stop_at(scan, forward ? &high : &low);
		}
		while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
			entries += (uint32_t) batch->count;
		assert_int_equal(status, TREE_END);
		assert_int_equal(tree_scan_load(scan), TREE_END);
	}
	return entries;
}

/* Keys of neighboring entries are read leaf by leaf; keys that lie apart, each in its own. */
static void
test_together(void **state)
{
	enum
	{
		KEYS = 600
	};
	static TreeKey keys[KEYS];
	Tree *tree = many_tree(&narrow);
	const TreeBatch *batch;
	TreeScan *scan;

	many_insert(tree, MANY_RANDOM, 0, ENTRIES, 4000);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	for (int forward = 0; forward < 2; forward++)
	{
		TreeKey apart[SEEKS];
		uint32_t seeks = 0, found = 0;

		assert_int_equal(tree_scan_seek(scan, forward ? TREE_FORWARD : TREE_BACKWARD, NULL, NULL), TREE_OK);
		while (found < KEYS)
		{
			assert_int_equal(tree_scan_next(scan, &batch), TREE_OK);
			for (int i = 0; i < batch->count && found < KEYS; i++)
				assert_int_equal(tree_batch_key(scan, batch, i, &keys[found++]), TREE_OK);
		}
		assert_int_equal(seek_together(scan, keys, KEYS, forward != 0, &seeks), KEYS);
		assert_in_range(seeks, 2, KEYS / 10);
		seek_keys(apart, ENTRIES, forward != 0);
		seeks = 0;
		assert_true(seek_together(scan, apart, SEEKS, forward != 0, &seeks) >= SEEKS);
		assert_in_range(seeks, SEEKS / 2, SEEKS);
	}
	tree_scan_close(scan);
	tree_close(tree);
}

/* Another entry with the key. */
static void
insert_twin(Tree *tree, const TreeKey *key, uint32_t number)
{
	TreeKey twin = *key;
	bool hit;

	twin.block += 10000 + number;
	assert_int_equal(tree_insert(tree, &twin, &many_stamp, &hit), TREE_OK);
}

/* Keys that are looked up again see what was added since they were fetched before: also where the chain that fetches them is lost. */
static void
test_seeks_lost(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeScan *scan;
	TreeKey keys[SEEKS];
	FabricFaultPlan plan = {.seed = 1};

	many_insert(tree, MANY_RANDOM, 0, ENTRIES, 4000);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	seek_keys(keys, ENTRIES, true);
	fetch_all(scan, keys, true);
	for (uint32_t n = 0; n < 10; n++)
	{
		for (uint32_t i = 0; i < SEEKS; i++)
			insert_twin(tree, &keys[i], n);
		plan.fail_operation = n == 0 ? 0 : 1 + (n - 1) * 3;
		assert_int_equal(fabric_fault_set(client.endpoints[n % MANY_NODES], &plan), FABRIC_OK);
		fetch_all(scan, keys, true);
		seek_all(scan, keys, true, 2 + n);
		assert_int_equal(fabric_fault_set(client.endpoints[n % MANY_NODES], NULL), FABRIC_OK);
	}
	tree_scan_close(scan);
	tree_close(tree);
}

static bool
is_entry(void *argument, uint32_t block, uint16_t offset)
{
	return true;
}

/* What was fetched in an earlier epoch of the tree is not used: the leaves may be others' by now. */
static void
test_seeks_merge(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeScan *scan;
	TreeKey keys[SEEKS];
	TreeVacuum *vacuum;
	TreeMerge *merge;
	TreeVacuumCounts counts = {0};
	TreeMergeCounts merged = {0};

	many_insert(tree, MANY_RANDOM, 0, ENTRIES, 4000);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	seek_keys(keys, ENTRIES, true);
	fetch_all(scan, keys, true);
	assert_int_equal(tree_vacuum_open(tree, &vacuum), TREE_OK);
	while (tree_vacuum_next(vacuum, is_entry, NULL, &counts) == TREE_OK)
		;
	assert_int_equal(counts.removed, ENTRIES);
	assert_int_equal(tree_merge_open(tree, vacuum, &merge), TREE_OK);
	while (tree_merge_next(merge, &merged) == TREE_OK)
		;
	assert_true(merged.leaves > 100);
	tree_merge_close(merge);
	tree_vacuum_close(vacuum);
	seek_all(scan, keys, true, 0);
	tree_scan_close(scan);
	tree_close(tree);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_check),       cmocka_unit_test(test_deep),
		cmocka_unit_test(test_to_the_stop), cmocka_unit_test(test_lost),
		cmocka_unit_test(test_seeks),       cmocka_unit_test(test_seeks_lost),
		cmocka_unit_test(test_seeks_merge), cmocka_unit_test(test_together),
	};

	if (argc > 1 && strcmp(argv[1], "--network") == 0)
		test_use_network();
	return cmocka_run_group_tests(tests, many_start, fixture_stop);
}
