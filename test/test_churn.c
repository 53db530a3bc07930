/*
 * test_churn.c
 *		New versions of rows whose keys stay: where a leaf is split for one, and what its caller is told of the old ones.
 */
#include <stdlib.h>

#include "support/tree_fixture.h"

/* Rows: some twenty leaves of the narrowest cells. */
#define ROWS 1009

/* In which order rows get their second version. */
typedef enum Order
{
	ASCENDING,
	DESCENDING,
	MIXED
} Order;

/* Nothing can go. */
static bool
nothing_dead(void *argument, TreeFullLeaf *leaf)
{
	++*(int *) argument;
	return false;
}

static uint64_t
leaf_splits(Tree *tree)
{
	TreeCounters counters;

	tree_counters(tree, &counters);
	return counters.leaf_splits;
}

/* Splits by second versions of all rows, of which each of `*leaves` has as many. */
static uint64_t
second_versions(const TreeFormat *format, Order order, bool churn, uint64_t *leaves)
{
	TreeRecord record;
	Tree *tree = new_tree(format, &record);
	WalkResult result;
	int asked = 0;
	uint64_t splits;

	for (uint32_t i = 0; i < ROWS; i++)
	{
		TreeKey key = number_key(i, i);

		must_insert(tree, &key, false);
	}
	splits = leaf_splits(tree);
	*leaves = splits + 1;
	if (churn)
		tree_on_full(tree, nothing_dead, &asked, true);
	for (uint32_t i = 0; i < ROWS; i++)
	{
		uint32_t row = order == ASCENDING ? i : order == DESCENDING ? ROWS - 1 - i : i * 487 % ROWS;
		TreeKey key = number_key(row, ROWS + row);

		must_insert(tree, &key, false);
	}
	assert_int_equal(asked > 0, churn);
	verify_tids(tree, 2 * ROWS, &result);
	walk_free(&result);
	splits = leaf_splits(tree) - splits;
	tree_close(tree);
	return splits;
}

/*
 * Rows are updated in the order of their keys: each full leaf becomes two, in which all new versions find room, and no third
 * one.  For other inserts leaves are cut in the middle, and more often.
 */
static void
leaves_are_cut_for_what_comes(void **state)
{
	const TreeFormat *formats[] = {&narrow, &middle};

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
		for (int order = ASCENDING; order <= MIXED; order++)
		{
			uint64_t leaves;
			uint64_t plain = second_versions(formats[f], (Order) order, false, &leaves);
			uint64_t churn = second_versions(formats[f], (Order) order, true, &leaves);

			if (order != MIXED)
			{
				assert_true(churn <= leaves);
				assert_true(plain > leaves * 3 / 2);
			}
			/* In no order both are as good. */
			assert_true(churn <= plain + leaves / 8);
		}
}

/* What the hook saw. */
typedef struct Seen
{
	int calls;
	int newest; /* of duplicates */
	int duplicates;
} Seen;

static bool
look(void *argument, TreeFullLeaf *leaf)
{
	Seen *seen = argument;

	seen->calls++;
	for (int slot = 0; slot < leaf->count; slot++)
	{
		if (!leaf->entries[slot].live || !leaf->entries[slot].duplicate)
			continue;
		seen->duplicates++;
		seen->newest += leaf->entries[slot].newest;
		assert_int_equal(leaf->entries[slot].newest, leaf->entries[slot].block >= 4);
	}
	return false;
}

/* Of the versions of one row the caller hears which one is the last in the table. */
static void
last_versions_are_told(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	Seen seen = {0};

	tree_on_full(tree, look, &seen, true);
	/* (0, 91) and (4, 11), say: the second one is the last, though its offset is lower. */
	for (uint32_t i = 0; seen.calls == 0; i++)
	{
		TreeKey key = number_key(i / 2, i % 2 == 0 ? 90 + i / 2 : 410 + i / 2);

		must_insert(tree, &key, false);
	}
	assert_true(seen.duplicates > 50);
	assert_int_equal(seen.newest * 2, seen.duplicates);
	tree_close(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_are_cut_for_what_comes),
		cmocka_unit_test(last_versions_are_told),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
