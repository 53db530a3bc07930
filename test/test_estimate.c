/*
 * test_estimate.c
 *		What an instance that knows nothing of a tree, as after a restart, believes of its size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/tree_fixture.h"

#define ENTRIES 20000u

/* An estimate may be so many times too low, or too high. */
#define TOLERANCE 2

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
	(void) state;
	estimate_values(&narrow, ENTRIES);
}

/* Most of them in postings, of which one cell stands for several. */
static void
test_postings(void **state)
{
	TreeFormat format = narrow;

	(void) state;
	format.postings = true;
	estimate_values(&format, 100);
	estimate_values(&format, ENTRIES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_duplicates),
		cmocka_unit_test(test_postings),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
