/*
 * test_inside.c
 *		Calls of a client inside of the comparator of another one: on other trees they go on as if they were alone, and the outer one
 *		finds its images as they were; on the same tree they are refused.  An error that the comparator catches ends the inner call only.
 */
#include <stdlib.h>

#include "support/tree_fixture.h"

#define STRINGS 1500u
/* Longer ones are out of line. */
#define LENGTH(i) ((i) % 5 == 0 ? 200u : 47u)

static Tree *outer, *inner;
static uint32_t inserted; /* into the inner one */
static uint32_t asked;
static TreeStatus refused;
static bool jumps;        /* out of the innermost comparator, now and then */
static TreeScan *looking; /* what a jump has left open */

/* Whether the string is there, by a scan of its own. */
static void
inner_look(uint32_t i)
{
	char string[TIED_MAX_BYTES];
	const TreeBatch *batch;
	TreeBound low, high;
	TreeKey key;

	tied_string(string, i, LENGTH(i));
	key = text_key(string, i);
	bound_of_key(&inner->geometry, &key, &low);
	low.side = -1;
	high = low;
	high.side = 1;
	assert_int_equal(tree_scan_open(inner, &looking), TREE_OK);
	assert_int_equal(tree_scan_seek(looking, TREE_FORWARD, &low, &high), TREE_OK);
	assert_int_equal(tree_scan_next(looking, &batch), TREE_OK);
	assert_int_equal(batch->count, 1);
	tree_scan_close(looking);
	looking = NULL;
}

/* What the outer tree's comparator does besides. */
static void
use_inner(void)
{
	if (inserted < STRINGS)
	{
		must_insert_tied(inner, inserted, LENGTH(inserted), "", false);
		inserted++;
	}
	inner_look((asked * 7) % inserted);
}

static int
compare_outer(void *argument, const TreeBound *bound, const TreeKey *entry)
{
	uint8_t before[TIED_MAX_BYTES];
	TreeKey key = number_key(1, 1);
	int result = compare_text(argument, bound, entry);
	bool hit;

	memcpy(before, entry->image, entry->image_bytes);
	asked++;
	key.image = (const uint8_t *) "x";
	key.image_bytes = 1;
	if (asked % 50 == 0)
		refused = tree_insert(outer, &key, &wal, &hit);
	if (jumps && asked % 3 == 0)
	{
		int calls = tree_client_calls(client.tree);

		jump_after = 1 + (int) (asked % 4);
		if (setjmp(jump) == 0)
			use_inner();
		jump_after = 0;
		tree_client_rest_inside(client.tree, calls);
		tree_scan_close(looking);
		looking = NULL;
	}
	else
		use_inner();
	/* What it was shown is there still. */
	assert_memory_equal(before, entry->image, entry->image_bytes);
	return result;
}

static void
with_inner(bool with_jumps)
{
	TreeRecord records[2];
	WalkResult result;

	inner = new_tree(&text, &records[0]);
	test_tree_create(&client, &text, &records[1]);
	assert_int_equal(
		tree_open(client.tree, records[1].tree, records[1].root, &text, compare_outer, NULL, &outer),
		TREE_OK);
	inserted = asked = 0;
	refused = TREE_OK;
	jumps = with_jumps;
	must_insert_tied(inner, inserted++, LENGTH(0), "", false);
	for (uint32_t i = 0; i < STRINGS; i++)
		must_insert_tied(outer, i, LENGTH(i), "", false);
	assert_true(asked > STRINGS);
	assert_int_equal(refused, TREE_INVALID);
	assert_int_equal(tree_client_calls(client.tree), 0);
	verify_tids(outer, STRINGS, &result);
	walk_free(&result);
	if (!with_jumps)
	{
		verify_tids(inner, inserted, &result);
		walk_free(&result);
	}
	tree_close(outer);
	tree_close(inner);
}

static void
test_other_trees(void **state)
{
	with_inner(false);
}

static void
test_caught_errors(void **state)
{
	with_inner(true);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_other_trees),
		cmocka_unit_test(test_caught_errors),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
