/*
 * test_alone.c
 *		Entries that are inserted only where their leaf shows that no other has their normalized key.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/tree_fixture.h"

static bool
insert_alone(Tree *tree, const TreeKey *key, bool *hit)
{
	bool alone;

	assert_int_equal(tree_insert_alone(tree, key, &wal, NULL, hit, &alone), TREE_OK);
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

/*
 * The run of the key 2 without its beginning, or without its end: the leaf there has no entry of the run, of which only its high
 * fence tells, or its low one.
 */
static bool
in_the_middle(void *argument, uint32_t block, uint16_t offset)
{
	uint32_t tid = block * 100 + offset - 1;

	return *(bool *) argument ? tid >= 2600 && tid < 3350 : tid >= 2650 && tid < 3400;
}

static void
remove_middle(Tree *tree, bool beginning)
{
	TreeVacuum *vacuum;
	TreeVacuumCounts counts = {0};
	TreeStatus status = TREE_OK;

	assert_int_equal(tree_vacuum_open(tree, &vacuum), TREE_OK);
	while (status == TREE_OK)
		status = tree_vacuum_next(vacuum, in_the_middle, &beginning, &counts);
	assert_int_equal(status, TREE_END);
	assert_int_equal(counts.removed, 375);
	assert_true(counts.empty > 0);
	tree_vacuum_close(vacuum);
}

/*
 * Runs of equal keys over several leaves, some of which are empty now: wherever in its run a TID belongs, the key is not new,
 * though its leaf may hold none of the run, or no entry at all.
 */
static void
with_runs(bool beginning)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	WalkResult result;
	uint32_t places = 0;
	bool hit;

	for (uint32_t i = 0; i < 2000; i++)
	{
		TreeKey key = number_key(i / 400, 1000 + i * 2);

		must_insert(tree, &key, false);
	}
	walk_tree(tree, &result);
	assert_true(result.leaves > 10);
	walk_free(&result);
	remove_middle(tree, beginning);
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

static void
test_runs(void **state)
{
	with_runs(true);
	with_runs(false);
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

/* Overflow keys: what was taken for a refused entry is given back, and the tree stays whole. */
static void
test_overflow(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	char strings[200][TIED_MAX_BYTES];
	WalkResult result;
	bool hit;

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

/* What a permit's caller does with it. */
typedef struct Permits
{
	bool refused;            /* the next one is */
	bool revoked_by_room;    /* the one behind the next call of the hook for full leaves is */
	bool revoked_by_compare; /* the one behind a comparison that follows one that was given is */
	bool lasts;
	uint32_t given;
	uint32_t asked_room; /* calls of the hook for full leaves */
} Permits;

static Permits permits;

static void
compared_under_permit(void)
{
	fail_msg("the comparator was called while a permit lasts");
}

static void
compared_between_permits(void)
{
	permits.refused = permits.revoked_by_compare;
}

static bool
permit_begin(void *argument, const TreeKey *key)
{
	Permits *asked = argument;

	assert_false(asked->lasts);
	if (asked->refused)
		return false;
	asked->lasts = true;
	asked->given++;
	compare_hook = compared_under_permit;
	return true;
}

static void
permit_end(void *argument, const TreeKey *key)
{
	Permits *asked = argument;

	assert_true(asked->lasts);
	asked->lasts = false;
	compare_hook = compared_between_permits;
}

static const TreePermit permit = {permit_begin, permit_end, &permits};

/* A full leaf: nothing of it may go, and meanwhile a permit may be lost. */
static bool
on_full(void *argument, TreeFullLeaf *leaf)
{
	Permits *asked = argument;

	assert_false(asked->lasts);
	asked->asked_room++;
	asked->refused = asked->revoked_by_room;
	asked->revoked_by_room = false;
	return false;
}

/*
 * Inserts a new key and one of those that tie, so that leaves are split where the comparator must say how; each second time the
 * permit is not given at first.
 */
static void
insert_permitted_pair(Tree *tree, uint32_t i, uint32_t *refusals)
{
	char new_string[TIED_MAX_BYTES], old_string[TIED_MAX_BYTES];
	TreeKey key;
	bool hit, alone = false;

	/* Just above those that tie, and with an overflow key: for a separator of it the leaf is unlocked. */
	snprintf(new_string, sizeof(new_string), "~%04u%0240u", 9999 - i, 0);
	key = text_key(new_string, 2 * i);
	permits.refused = i % 2 == 1;
	for (int attempt = 0; attempt < 2 && !alone; attempt++)
	{
		assert_int_equal(tree_insert_alone(tree, &key, &wal, &permit, &hit, &alone), TREE_OK);
		assert_false(permits.lasts);
		*refusals += !alone;
		permits.refused = permits.revoked_by_compare = false;
	}
	assert_true(alone);
	tied_string(old_string, i, 250);
	key = text_key(old_string, 2 * i + 1);
	assert_int_equal(tree_insert_alone(tree, &key, &wal, &permit, &hit, &alone), TREE_OK);
	assert_int_equal(alone, i == 0);
	if (!alone)
		must_insert(tree, &key, false);
}

/*
 * A permit is asked for under the leaf's lock and ends with it: neither the comparator nor the hook for full leaves is called
 * while it lasts, and where it is not given nothing is inserted.
 */
static void
test_permit(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&whole, &record);
	TreeCounters counters;
	WalkResult result;
	uint32_t refusals = 0;

	permits = (Permits){false};
	tree_on_full(tree, on_full, &permits, true);
	for (uint32_t i = 0; i < 400; i++)
		insert_permitted_pair(tree, i, &refusals);
	assert_int_equal(refusals, 200);
	assert_true(permits.given > 400);
	assert_true(permits.asked_room > 0);
	tree_counters(tree, &counters);
	assert_true(counters.undecided_cuts > 0);
	assert_true(counters.leaf_splits > 10);
	/* What was permitted once is asked for again when the leaf was unlocked meanwhile. */
	for (int by_room = 0; by_room < 2; by_room++)
	{
		refusals = 0;
		for (uint32_t i = 0; i < 100; i++)
		{
			permits.revoked_by_room = by_room == 1;
			permits.revoked_by_compare = by_room == 0;
			insert_permitted_pair(tree, 400 + 200 * (uint32_t) by_room + 2 * i, &refusals);
		}
		assert_true(refusals > 0);
	}
	compare_hook = NULL;
	walk_tree(tree, &result);
	assert_int_equal(result.count, 1200);
	walk_free(&result);
	tree_close(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_and_not), cmocka_unit_test(test_runs),   cmocka_unit_test(test_budget),
		cmocka_unit_test(test_overflow),    cmocka_unit_test(test_permit),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
