/*
 * test_estimate.c
 *		What an instance that knows nothing of a tree, as after a restart, believes of its size.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/cost.h"
#include "support/tree_fixture.h"

#define ENTRIES 20000u

/* An estimate may be so many times too low, or too high. */
#define TOLERANCE 2

/* So many entries lie in one leaf. */
#define FIRST 10u

/* Inserts entries of this many values; the estimate of another instance must fit. */
static void
estimate_values(const TreeFormat *format, uint32_t values)
{
	TreeRecord record;
	Tree *tree = new_tree(format, &record);
	Tree *seen;
	OtherInstance other;
	TreeStatistics statistics;

	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		TreeKey key = number_key(scramble(i) % values, i);

		must_insert(tree, &key, false);
	}
	other_start(&other);
	seen = open_tree(&other.client, &record);
	assert_int_equal(tree_estimate(seen, &statistics), TREE_OK);
	assert_in_range(statistics.entries, ENTRIES / TOLERANCE, ENTRIES * TOLERANCE);
	tree_close(seen);
	other_stop(&other);
	tree_close(tree);
}

static void
test_few_duplicates(void **state)
{
	estimate_values(&narrow, ENTRIES);
}

/* Most of them in postings, of which one cell stands for several. */
static void
test_postings(void **state)
{
	TreeFormat format = narrow;

	format.postings = true;
	estimate_values(&format, 100);
	estimate_values(&format, ENTRIES);
}

static void
estimate_nodes(Tree *tree, const TestClient *with, TreeStatistics *statistics, Cost *cost)
{
	cost_begin(with, cost);
	assert_int_equal(tree_estimate_nodes(tree, statistics), TREE_OK);
	cost_end(with, cost);
	assert_int_equal(cost->fabric.calls, 0);
	assert_true(statistics->leaves > 100);
	assert_int_equal(statistics->extent_bytes, 0);
}

/* A plan's estimate: READs until the way to the first leaf is cached, then nothing; what the tree has of memory costs the one call. */
static void
test_plans_make_no_call(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	Tree *seen;
	OtherInstance other;
	TreeStatistics statistics;
	Cost cost;

	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		TreeKey key = number_key(scramble(i), i);

		must_insert(tree, &key, false);
	}
	other_start(&other);
	seen = open_tree(&other.client, &record);
	estimate_nodes(seen, &other.client, &statistics, &cost);
	assert_int_equal(cost.fabric.round_trips, statistics.height);
	estimate_nodes(seen, &other.client, &statistics, &cost);
	assert_int_equal(cost.fabric.round_trips, statistics.height - 1);
	for (int i = 0; i < 3; i++)
	{
		estimate_nodes(seen, &other.client, &statistics, &cost);
		assert_int_equal(cost.fabric.round_trips, 0);
	}
	cost_begin(&other.client, &cost);
	assert_int_equal(tree_estimate(seen, &statistics), TREE_OK);
	cost_end(&other.client, &cost);
	assert_int_equal(cost.fabric.calls, 1);
	assert_int_equal(cost.fabric.round_trips, 0);
	assert_true(statistics.extent_bytes >= statistics.node_bytes / 2);
	tree_close(seen);
	other_stop(&other);
	tree_close(tree);
}

/* The adds of merges that find more than an estimate has are no tree without a leaf. */
static void
test_one_leaf_at_least(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	TreeStatistics statistics;

	assert_int_equal(tree_estimate_nodes(tree, &statistics), TREE_OK);
	assert_int_equal(statistics.leaves, 1);
	state_add(tree->state, 0, -5, 0);
	assert_int_equal(tree_estimate_nodes(tree, &statistics), TREE_OK);
	assert_int_equal(statistics.leaves, 1);
	assert_int_equal(statistics.node_bytes, tree->geometry.leaf_bytes);
	tree_close(tree);
}

/* What is estimated once is counted from then on: entries, leaves and inner nodes that come, and entries that go. */
static void
test_counted(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	TreeStatistics before, after;
	WalkResult result;
	TreeKey key;

	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		key = number_key(scramble(i), i);
		must_insert(tree, &key, false);
		if (i == FIRST - 1)
			assert_int_equal(tree_estimate(tree, &before), TREE_OK);
	}
	assert_int_equal(tree_estimate(tree, &after), TREE_OK);
	assert_int_equal(after.entries - before.entries, ENTRIES - FIRST);
	walk_tree(tree, &result);
	walk_free(&result);
	assert_int_equal(after.leaves, result.leaves);
	assert_int_equal(after.inner_nodes, result.inner_nodes);
	assert_true(result.inner_nodes > 2);
	tree->pending.dead_removals += 5;
	assert_int_equal(tree_estimate(tree, &after), TREE_OK);
	assert_int_equal(after.entries - before.entries, ENTRIES - FIRST - 5);
	tree_close(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_duplicates),
		cmocka_unit_test(test_postings),
		cmocka_unit_test(test_plans_make_no_call),
		cmocka_unit_test(test_one_leaf_at_least),
		cmocka_unit_test(test_counted),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
