/*
 * test_states.c
 *		The table of trees in use: what a dropped tree had is others', what is closed is kept, and it ends where its memory does.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/fixture.h"

#include "tree/shared/state.h"
#include "tree/space/allocate.h"

#define BLOCK_BYTES 48u

static TreeStatus
try_open(const TreeRecord *record, Tree **tree)
{
	return tree_open(client.tree, record->tree, record->root, &narrow, NULL, NULL, tree);
}

static void
drop(const TreeRecord *record)
{
	assert_int_equal(tree_drop(client.tree, record->tree, tree_home(record->root)), TREE_OK);
}

static const StateTable *
table(void)
{
	return instance.shared->states;
}

/* So many trees can be open as there is room for, not one fewer and not one more; a refusal costs none of those that are open. */
static void
test_all_open(void **state)
{
	const uint32_t most = instance.options.trees;
	TreeRecord *records = calloc(most + 1, sizeof(*records));
	Tree **trees = calloc(most + 1, sizeof(*trees));

	for (uint32_t i = 0; i <= most; i++)
		test_tree_create(&client, &narrow, &records[i]);
	for (uint32_t i = 0; i < most; i++)
		assert_int_equal(try_open(&records[i], &trees[i]), TREE_OK);
	assert_int_equal(try_open(&records[most], &trees[most]), TREE_NO_MEMORY);
	for (uint32_t i = 0; i < most; i++)
		assert_true(trees[i]->state->tree == records[i].tree && trees[i]->state->references == 1);
	tree_close(trees[3]);
	assert_int_equal(try_open(&records[most], &trees[most]), TREE_OK);
	assert_int_equal(try_open(&records[3], &trees[3]), TREE_NO_MEMORY);
	trees[3] = NULL;
	for (uint32_t i = 0; i <= most; i++)
	{
		tree_close(trees[i]);
		drop(&records[i]);
	}
	free(trees);
	free(records);
}

/* Trees that come and go take no room, whether they are open when they are dropped or not, and none from others that are closed. */
static void
test_dropped(void **state)
{
	TreeRecord kept;
	Tree *tree;
	uint64_t offset, again;
	uint32_t parts;

	test_tree_create(&client, &narrow, &kept);
	assert_int_equal(try_open(&kept, &tree), TREE_OK);
	assert_int_equal(allocate_overflow(tree, 0, BLOCK_BYTES, &offset), TREE_OK);
	allocate_overflow_return(tree, 0, offset, BLOCK_BYTES);
	tree_close(tree);
	parts = table()->parts_used;
	for (uint32_t i = 0; i < 4 * instance.options.trees; i++)
	{
		TreeRecord record;
		uint64_t own;

		test_tree_create(&client, &narrow, &record);
		assert_int_equal(try_open(&record, &tree), TREE_OK);
		assert_int_equal(allocate_overflow(tree, 0, BLOCK_BYTES, &own), TREE_OK);
		if (i % 2 == 0)
			drop(&record);
		tree_close(tree);
		if (i % 2 != 0)
			drop(&record);
	}
	assert_true(table()->parts_used <= parts + 1);

	/* The closed one still has its free block. */
	assert_int_equal(try_open(&kept, &tree), TREE_OK);
	assert_int_equal(allocate_overflow(tree, 0, BLOCK_BYTES, &again), TREE_OK);
	assert_int_equal(again, offset);
	tree_close(tree);
	drop(&kept);
}

/* A handle of a tree that is dropped goes on with a state of its own until it is closed. */
static void
test_open_when_dropped(void **state)
{
	TreeRecord record, other;
	Tree *tree, *second;
	const TreeState *own;

	test_tree_create(&client, &narrow, &record);
	assert_int_equal(try_open(&record, &tree), TREE_OK);
	own = tree->state;
	drop(&record);
	test_tree_create(&client, &narrow, &other);
	assert_int_equal(try_open(&other, &second), TREE_OK);
	assert_ptr_not_equal(second->state, own);
	assert_true(tree->state == own && own->tree == record.tree);
	tree_close(tree);
	tree_close(second);
	drop(&other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_open_when_dropped),
		cmocka_unit_test(test_all_open),
	};

	fixture_options = (FixtureOptions){.node_bytes = 32 * MEGABYTE};
	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
