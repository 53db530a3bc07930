/*
 * test_scan_wave.c
 *		Scans that read ahead deeply, from two memory nodes at once: what that costs, and chains that are lost.
 *
 *		test_scan_wave [--network]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "support/many_fixture.h"
#include "tree/internal.h"

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
		fail_msg("scan: %s: %s", tree_status_name(status), tree_detail(many_client.tree));
	return entries;
}

static uint64_t
reads_of(uint32_t node)
{
	FabricCounters counters;

	fabric_counters(many_client.endpoints[node], &counters);
	return counters.reads;
}

/* Most leaves come by chains of as many READs as there can be, half of them from each memory node; none is read twice. */
static void
test_deep(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeScan *scan;
	TreeStatistics statistics;
	uint64_t problems;

	(void) state;
	many_insert(tree, MANY_RANDOM, 0, ENTRIES, 4000);
	assert_int_equal(tree_check(tree, NULL, NULL, NULL, &statistics, &problems), TREE_OK);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	for (int direction = TREE_FORWARD; direction <= TREE_BACKWARD; direction++)
	{
		TreeCounters before = many_client.tree->counters;
		uint64_t reads[MANY_NODES] = {reads_of(0), reads_of(1)};
		uint64_t chains;

		assert_int_equal(scan_all(scan, (TreeDirection) direction), ENTRIES);
		chains = many_client.tree->counters.round_trips - before.round_trips;
		assert_int_equal(many_client.tree->counters.leaf_reads - before.leaf_reads, statistics.leaves);
		/* It deepens by doubling, and a wave ends with the children of one parent. */
		assert_true(chains <= statistics.leaves / 16 + 2 * (statistics.inner_nodes + 8));
		for (uint32_t node = 0; node < MANY_NODES; node++)
			assert_true(reads_of(node) - reads[node] > statistics.leaves / 4);
	}
	tree_scan_close(scan);
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

	(void) state;
	many_insert(tree, MANY_RANDOM, 0, entries, 4000);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	assert_int_equal(scan_all(scan, TREE_FORWARD), entries);
	for (uint32_t n = 1; lost; n += 9)
	{
		uint32_t node = n % MANY_NODES;

		many_insert(tree, MANY_RANDOM, entries, entries + 20, 1);
		entries += 20;
		plan.fail_operation = n;
		assert_int_equal(fabric_fault_set(many_client.endpoints[node], &plan), FABRIC_OK);
		assert_int_equal(scan_all(scan, TREE_FORWARD), entries);
		lost = fabric_fault_operations(many_client.endpoints[node]) >= n;
		assert_int_equal(fabric_fault_set(many_client.endpoints[node], NULL), FABRIC_OK);
	}
	tree_scan_close(scan);
	many_verify(tree, MANY_RANDOM, entries);
	tree_close(tree);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_lost),
	};

	if (argc > 1 && strcmp(argv[1], "--network") == 0)
		test_use_network();
	return cmocka_run_group_tests(tests, many_start, many_stop);
}
