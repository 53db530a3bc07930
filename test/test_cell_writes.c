/*
 * test_cell_writes.c
 *		Cells that cross lines: WRITEs that may be torn never leave a live cell of which a part is missing.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "support/fixture.h"
#include "support/tree_fixture.h"
#include "tree/change/insert.h"

/* The third cell of a leaf crosses a line, as do two of eight. */
static const TreeFormat cells = {.cell_bytes = 24, .norm_bytes = 16, .lossless = true, .fill_percent = 90};
static const FixtureOptions options = {
	.node_bytes = 4 * MEGABYTE, .trees = 1, .format = &cells, .no_client = true};
static const FabricFaultPlan tearing = {.seed = 1, .tear_reads = true, .tear_writes = true};

static TreeKey
key_of(uint32_t number)
{
	TreeKey key = {.block = number, .offset = 1};

	key.norm[0] = number;
	key.norm[1] = ~(uint64_t) number;
	return key;
}

static Tree *
tree_of(TestClient *with, uint32_t slot, const FabricFaultPlan *plan)
{
	Tree *tree;

	test_client_open(with, &instance, slot);
	if (plan != NULL)
		CHILD_ASSERT(fabric_fault_set(with->endpoints[0], plan) == FABRIC_OK);
	client_find_tearing(with->tree);
	CHILD_ASSERT(tree_open(with->tree, records[0].tree, records[0].root, &cells, NULL, NULL, &tree) ==
	             TREE_OK);
	return tree;
}

static void
tree_done(TestClient *with, Tree *tree)
{
	tree_close(tree);
	assert_int_equal(test_client_close(with), TREE_OK);
}

/* How many entries the tree has; each is one that was made. */
static uint32_t
entries_are_whole(Tree *tree)
{
	const TreeBatch *batch;
	uint32_t count = 0;
	TreeStatus status;
	TreeScan *scan;

	require_ok(tree_scan_open(tree, &scan));
	require_ok(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL));
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
		for (int i = 0; i < (int) batch->count; i++, count++)
		{
			TreeKey key, made;

			require_ok(tree_batch_key(scan, batch, i, &key));
			made = key_of(batch->entries[i].block);
			assert_memory_equal(key.norm, made.norm, sizeof(key.norm));
		}
	assert_int_equal(status, TREE_END);
	tree_scan_close(scan);
	return count;
}

/* A process inserts the entry, and dies behind its n-th operation from the WRITEs on.  False: it has not so many. */
static bool
dies_inserting(uint32_t number, uint64_t operation)
{
	FabricFaultPlan plan = tearing;
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
	{
		TreeKey key = key_of(number);
		TestClient mine;
		bool hit;
		Tree *tree = tree_of(&mine, 1, &tearing);

		plan.die_operation = operation;
		CHILD_ASSERT(fabric_fault_set(mine.endpoints[0], &plan) == FABRIC_OK);
		CHILD_ASSERT(tree_insert(tree, &key, &wal, &hit) == TREE_OK);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

/* Wherever a writer ends, its entry is there as a whole or not at all, and another one takes the slot. */
static void
test_death(void **state)
{
	uint32_t deaths = 0, kept = 0;

	for (uint32_t before = 2; before < 4; before++)
	{
		bool dies = true;

		for (uint64_t operation = 1; dies; operation++)
		{
			TreeKey key = key_of(before);
			TestClient mine;
			Tree *tree;
			uint32_t count;

			fixture_open(&options);
			tree = tree_of(&mine, 0, &tearing);
			for (uint32_t i = 0; i < before; i++)
			{
				TreeKey other = key_of(i);

				must_insert(tree, &other, false);
			}
			tree_done(&mine, tree);
			dies = dies_inserting(before, operation);
			test_instance_attach(&instance);
			tree = tree_of(&mine, 2, &tearing);
			count = entries_are_whole(tree);
			assert_true(count == before || count == before + 1);
			deaths += dies;
			kept += dies && count > before;
			must_insert(tree, &key, count > before);
			assert_int_equal(entries_are_whole(tree), before + 1);
			tree_done(&mine, tree);
			fixture_close();
		}
	}
	/* Behind the leaf, the sum and the cell but for its first word it was not there yet. */
	assert_true(kept > 0 && deaths - kept >= 6);
}

/* Where WRITEs are atomic cells are written side by side; where packets are as many as one holds; elsewhere in halves. */
static void
test_operations(void **state)
{
	static uint64_t node[NODE_MAX_BYTES / 8];
	FabricCapabilities *capabilities;
	FabricOp ops[CELL_WRITE_OPS];
	TestClient mine;
	Tree *tree;
	uint32_t written;

	fixture_open(&options);
	tree = tree_of(&mine, 0, NULL);
	assert_int_equal(cells_write_ops(tree, tree->root, node, 5, 30, ops, &written), 1);
	assert_int_equal(written, 30);
	assert_int_equal(ops[0].length, 30 * 24);
	tree_done(&mine, tree);

	tree = tree_of(&mine, 0, &tearing);
	assert_int_equal(cells_write_ops(tree, tree->root, node, 5, 30, ops, &written), 2);
	assert_int_equal(written, 1);
	assert_int_equal(ops[0].length, 16);
	assert_int_equal(ops[0].offset, ops[1].offset + 8);
	assert_ptr_equal(ops[0].buffer, node + leaf_cell_word(&tree->geometry, 5) + 1);
	assert_int_equal(ops[1].length, 8);
	assert_ptr_equal(ops[1].buffer, node + leaf_cell_word(&tree->geometry, 5));

	capabilities = (FabricCapabilities *) (uintptr_t) fabric_capabilities(mine.endpoints[0]);
	capabilities->one_packet = 256;
	assert_int_equal(cells_write_ops(tree, tree->root, node, 5, 30, ops, &written), 1);
	assert_int_equal(written, 10);
	assert_int_equal(ops[0].length, 240);
	assert_int_equal(cells_write_ops(tree, tree->root, node, 5, 3, ops, &written), 1);
	assert_int_equal(written, 3);
	tree_done(&mine, tree);
	fixture_close();
}

/* Leaves have sums where READs may tear more than lines, and only those whose cells cross lines. */
static void
test_sums(void **state)
{
	NodeGeometry crossing = node_geometry(&cells), whole_lines = node_geometry(&narrow);
	TestClient mine;
	Tree *tree;

	fixture_open(&options);
	tree = tree_of(&mine, 0, NULL);
	assert_false(leaf_needs_sum(&tree->geometry, tree->root));
	tree_done(&mine, tree);
	tree = tree_of(&mine, 0, &tearing);
	assert_true(leaf_needs_sum(&tree->geometry, tree->root));
	crossing.leaf_sums = client_leaf_sums(mine.tree, &crossing);
	whole_lines.leaf_sums = client_leaf_sums(mine.tree, &whole_lines);
	assert_true(leaf_needs_sum(&crossing, tree->root));
	assert_false(leaf_needs_sum(&whole_lines, tree->root));
	tree_done(&mine, tree);
	fixture_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
