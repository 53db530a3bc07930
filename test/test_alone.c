/*
 * test_alone.c
 *		Entries that are inserted only where their leaf shows that no other has their normalized key.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/tree_fixture.h"

static bool
insert_alone(Tree *tree, const TreeKey *key, bool *hit)
{
	bool alone;

	assert_int_equal(tree_insert_alone(tree, key, &stamp, hit, &alone), TREE_OK);
	return alone;
}

/* New keys go in, keys that are there do not, and the same entry is a hit. */
static void
test_new_and_not(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	TreeCounters counters;
	WalkResult result;
	bool hit;

	(void) state;
	for (uint32_t i = 0; i < 5000; i++)
	{
		TreeKey key = number_key(scramble(i), i);

		assert_true(insert_alone(tree, &key, &hit));
		assert_false(hit);
	}
	for (uint32_t i = 0; i < 5000; i++)
	{
		TreeKey key = number_key(scramble(i), 5000 + i);

		assert_false(insert_alone(tree, &key, &hit));
		key.high = true;
		if (i % 100 == 0)
		{
			must_insert(tree, &key, false);
			assert_true(insert_alone(tree, &key, &hit));
			assert_true(hit);
		}
	}
	tree_counters(tree, &counters);
	assert_int_equal(counters.inserts, 5050);
	assert_int_equal(counters.insert_hits, 50);
	walk_tree(tree, &result);
	assert_int_equal(result.count, 5050);
	walk_free(&result);
	tree_close(tree);
}

/* The middle of the run of the key 2. */
static bool
in_the_middle(void *argument, uint32_t block, uint16_t offset)
{
	uint32_t tid = block * 100 + offset - 1;

	(void) argument;
	return tid >= 2650 && tid < 3350;
}

static void
remove_middle(Tree *tree)
{
	TreeVacuum *vacuum;
	TreeVacuumCounts counts = {0};
	TreeStatus status = TREE_OK;

	assert_int_equal(tree_vacuum_open(tree, &vacuum), TREE_OK);
	while (status == TREE_OK)
		status = tree_vacuum_next(vacuum, in_the_middle, NULL, &counts);
	assert_int_equal(status, TREE_END);
	assert_int_equal(counts.removed, 350);
	assert_true(counts.empty > 0);
	tree_vacuum_close(vacuum);
}

/*
 * Runs of equal keys over several leaves, some of which are empty now: wherever in its run a TID belongs, the key is not new,
 * though its leaf may hold none of the run, or no entry at all.
 */
static void
test_runs(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	WalkResult result;
	uint32_t places = 0;
	bool hit;

	(void) state;
	for (uint32_t i = 0; i < 2000; i++)
	{
		TreeKey key = number_key(i / 400, 1000 + i * 2);

		must_insert(tree, &key, false);
	}
	walk_tree(tree, &result);
	assert_true(result.leaves > 10);
	walk_free(&result);
	remove_middle(tree);
	for (uint32_t run = 0; run < 5; run++)
	{
		for (uint32_t tid = 0; tid < 6000; tid += 2, places++)
		{
			TreeKey key = number_key(run, tid + 1);

			assert_false(insert_alone(tree, &key, &hit));
		}
	}
	assert_int_equal(places, 15000);
	tree_close(tree);
}

/* A common insert takes two round trips as tree_insert() does, one that is refused as many. */
static void
test_budget(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	TreeCounters before, after;
	TreeKey key;
	bool hit;

	(void) state;
	for (uint32_t i = 0; i < 1000; i++)
	{
		key = number_key(i * 10, i);
		must_insert(tree, &key, false);
	}
	for (int refused = 0; refused < 2; refused++)
	{
		key = number_key(55, 2000 + (uint32_t) refused);
		tree_counters(tree, &before);
		assert_int_equal(insert_alone(tree, &key, &hit), refused == 0);
		tree_counters(tree, &after);
		assert_int_equal(after.round_trips - before.round_trips, 2);
	}
	tree_close(tree);
}

/* Images out of line: what was taken for a refused entry is given back, and the tree stays whole. */
static void
test_outside(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	char strings[200][TIED_MAX_BYTES];
	WalkResult result;
	bool hit;

	(void) state;
	for (uint32_t i = 0; i < 200; i++)
	{
		TreeKey key;

		tied_string(strings[i], i, 250);
		key = text_key(strings[i], i);
		/* All share more than what is normalized: only the first is alone. */
		assert_int_equal(insert_alone(tree, &key, &hit), i == 0);
		if (i > 0)
			must_insert(tree, &key, false);
	}
	verify_tids(tree, 200, &result);
	walk_free(&result);
	tree_close(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_and_not),
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_outside),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
