/*
 * test_bulk_wave.c
 *		A bulk load over two memory nodes across a network: what it waits for, the memory that it takes; chains that are lost; nothing of
 *		it is seen before its last step.  What a vacuum of the loaded tree waits for.
 *
 *		test_bulk_wave [--network]: over tcp the waits alone
 */
#include <stdlib.h>

#include "support/many_fixture.h"
#include "support/require.h"
#include "support/waits.h"

#define ENTRIES 100000u
/* Of a load whose each step is looked at. */
#define FEW 12000u

static TreeStatus
load(Tree *tree, int order, uint32_t count, bool expect)
{
	TreeBulk *bulk;
	TreeStatus status = tree_bulk_open(tree, &many_stamp, &bulk);

	assert_int_equal(status, TREE_OK);
	if (expect)
		tree_bulk_expect(bulk, count);
	for (uint32_t i = 0; status == TREE_OK && i < count; i++)
	{
		TreeKey key = many_key_of(&tree->geometry.format, MANY_ASCENDING, i);

		/* Of few keys, each again and again: the TID tells entries apart. */
		if (order == MANY_FEW)
			key.norm[0] = i / 1000;
		status = tree_bulk_add(bulk, &key);
	}
	if (status == TREE_OK)
		return tree_bulk_finish(bulk);
	tree_bulk_abandon(bulk);
	return status;
}

/* ---- what it costs ---- */

static uint64_t
extent_bytes_of(int order, bool expect, uint64_t *waits)
{
	TreeFormat format = narrow;
	TreeStatistics statistics;
	Tree *tree;

	format.postings = order == MANY_FEW;
	tree = many_tree(&format);

	waits_begin(client.tree);
	assert_int_equal(load(tree, order, ENTRIES, expect), TREE_OK);
	*waits = waits_end(client.tree);
	if (order == MANY_ASCENDING)
		many_verify(tree, order, ENTRIES);
	assert_int_equal(tree_estimate(tree, &statistics), TREE_OK);
	tree_close(tree);
	print_message("%llu waits, %llu bytes of %llu\n", (unsigned long long) *waits,
	              (unsigned long long) statistics.node_bytes, (unsigned long long) statistics.extent_bytes);
	if (expect && !format.postings)
		assert_true(statistics.extent_bytes <= statistics.node_bytes + 2 * MANY_NODES * EXTENT_MIN_BYTES);
	return statistics.extent_bytes;
}

/* Memory is asked for by few calls where it is known how much there is to come, and hardly more of it. */
static void
test_waits(void **state)
{
	static const int orders[] = {MANY_ASCENDING, MANY_FEW};
	static const uint64_t most[] = {30, 24};

	for (int i = 0; i < 2; i++)
	{
		uint64_t blind, told;
		uint64_t without = extent_bytes_of(orders[i], false, &blind);
		uint64_t with = extent_bytes_of(orders[i], true, &told);

		assert_true(told <= most[i] && told < blind);
		assert_true(with <= without + without / 8);
	}
}

static bool
every_tenth(void *argument, uint32_t block, uint16_t offset)
{
	(void) argument;
	(void) offset;
	return block % 10 == 0;
}

/* Leaves of several parents are read and written together, over tcp: elsewhere a rewrite takes a redo image, and goes alone. */
static void
test_vacuum_waits(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeVacuumCounts counts = {0};
	TreeVacuum *vacuum;
	TreeStatus status = TREE_OK;
	uint64_t waits;

	assert_int_equal(load(tree, MANY_ASCENDING, ENTRIES, true), TREE_OK);
	assert_int_equal(tree_vacuum_open(tree, &vacuum), TREE_OK);
	waits_begin(client.tree);
	while (status == TREE_OK)
		status = tree_vacuum_next(vacuum, every_tenth, NULL, &counts);
	waits = waits_end(client.tree);
	tree_vacuum_close(vacuum);
	assert_int_equal(status, TREE_END);
	print_message("%llu waits, %llu leaves\n", (unsigned long long) waits,
	              (unsigned long long) counts.leaves);
	assert_int_equal(counts.removed, ENTRIES / 10);
	assert_true(waits <= 32);
	assert_int_equal(many_entries(tree, NULL), ENTRIES - ENTRIES / 10);
	tree_close(tree);
}

/* ---- each step ---- */

static uint64_t steps_left;
static Tree *looking; /* another client's */

static void
look(void *argument, const char *name, bool before)
{
	uint64_t incomplete;

	(void) argument;
	(void) name;
	steps_left += before ? 1 : 0;
	if (before)
		REQUIRE(many_entries(looking, &incomplete) == 0, "entries of a load that has not ended");
}

/* Whoever looks, in front of whatever chain, the last one among them, sees an empty tree. */
static void
test_each_step(void **state)
{
	static const TreeFormat *const formats[] = {&narrow, &middle};

	for (int i = 0; i < 2; i++)
	{
		Tree *tree = many_tree(formats[i]);
		TestClient other;

		test_client_open(&other, &instance, 1);
		looking = many_open(&other);
		steps_left = 0;
		tree_client_crash_points(client.tree, look);
		assert_int_equal(load(tree, MANY_ASCENDING, FEW, true), TREE_OK);
		tree_client_crash_points(client.tree, NULL);
		assert_true(steps_left > 5);
		many_verify(tree, MANY_ASCENDING, FEW);
		tree_close(looking);
		assert_int_equal(test_client_close(&other), TREE_OK);
		tree_close(tree);
	}
}

/* ---- lost chains ---- */

/* Whatever chain is lost, at once or with an effect that comes late: it is done again. */
static void
test_lost(void **state)
{
	for (int late = 0; late < 2; late++)
	{
		bool through = false;
		uint64_t step = 1;

		for (; !through; step++)
		{
			Tree *tree = many_tree(&narrow);

			many_lose(step, late != 0);
			assert_int_equal(load(tree, MANY_ASCENDING, FEW, true), TREE_OK);
			through = many_lose_end();
			many_verify(tree, MANY_ASCENDING, FEW);
			tree_close(tree);
		}
		print_message("%llu steps\n", (unsigned long long) step);
		assert_true(step > 10);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_each_step),
		cmocka_unit_test(test_lost),
	};

	const struct CMUnitTest counts[] = {cmocka_unit_test(test_waits), cmocka_unit_test(test_vacuum_waits)};

	many_bytes = 128ull << 20;
	if (many_arguments(argc, argv))
		return cmocka_run_group_tests(counts, many_start, fixture_stop);
	return cmocka_run_group_tests(tests, many_start, fixture_stop);
}
