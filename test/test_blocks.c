/*
 * test_blocks.c
 *		Free blocks for overflow keys: the shortest that is long enough is taken, its rest is kept, none is given twice, and
 *		the pool that remembers them loses no place and has no more than it was made with.
 */
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"
#include "tree/shared/state.h"

#define TREES 2u
#define POOL (TREES * STATE_BLOCKS_PER_TREE)
#define UNIT OVERFLOW_ALIGN
/* Where blocks of tests lie apart. */
#define APART (1ull << 20)

static const TreeSharedOptions options = {.nodes = 1, .trees = TREES};

static StateTable *table;
/* The parts of two trees. */
static StateAtNode *first, *second;

static int
open_table(void **state)
{
	size_t bytes = state_shared_bytes(&options);

	table = aligned_alloc(LINE_BYTES, bytes);
	first = calloc(1, sizeof(*first));
	second = calloc(1, sizeof(*second));
	assert_true(table != NULL && first != NULL && second != NULL);
	memset(table, 0, bytes);
	state_shared_initialize(table, &options);
	return 0;
}

static int
close_table(void **state)
{
	free(table);
	free(first);
	free(second);
	return 0;
}

/* Blocks [from, to) of a length in units, each where its number says. */
static void
put_many(StateAtNode *at, uint32_t from, uint32_t to, uint32_t length, bool rest)
{
	for (uint32_t i = from; i < to; i++)
		blocks_put(table, at, i * APART, length * UNIT, rest);
}

static bool
take(StateAtNode *at, uint32_t length, uint64_t *offset)
{
	return blocks_take(table, at, length * UNIT, offset);
}

/* Takes all blocks of a length, each of which is another one of the first `most`; how many. */
static uint32_t
take_all(StateAtNode *at, uint32_t length, uint32_t most)
{
	uint8_t *seen = calloc(most, 1);
	uint32_t count = 0;
	uint64_t offset;

	while (take(at, length, &offset))
	{
		assert_int_equal(offset % APART, 0);
		assert_true(offset / APART < most);
		assert_int_equal(seen[offset / APART]++, 0);
		count++;
	}
	free(seen);
	return count;
}

static void
must_take(uint32_t length, uint64_t expected)
{
	uint64_t offset;

	assert_true(take(first, length, &offset));
	assert_int_equal(offset, expected);
}

static void
must_not_take(uint32_t length)
{
	uint64_t offset;

	assert_false(take(first, length, &offset));
}

/* One that fits exactly is taken before a longer one, and none that is one unit too short. */
static void
shortest_is_taken(void **state)
{
	static const uint32_t lengths[] = {1, 2, 62, 63, 64, 65, 127, 128, 192, STATE_BLOCK_LENGTHS - 1};

	for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		put_many(first, i, i + 1, lengths[i], false);
		if (lengths[i] + 1 < STATE_BLOCK_LENGTHS)
			must_not_take(lengths[i] + 1);
		must_take(lengths[i], i * APART);
		must_not_take(1);
	}
	for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		put_many(first, i, i + 1, lengths[i], false);
	for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		must_take(lengths[i], i * APART);
	must_not_take(1);
}

/* A longer one is found wherever its length stands, in the same word of the marks or behind it; its rest is the next to be taken. */
static void
rest_is_kept(void **state)
{
	put_many(first, 1, 2, 128, false);
	must_take(70, APART);
	must_not_take(59);
	must_take(58, APART + 70 * UNIT);
	must_not_take(1);

	put_many(first, 1, 2, 40, false);
	must_take(39, APART);
	must_take(1, APART + 39 * UNIT);
	must_not_take(1);

	/* An exact one leaves nothing, not even a rest of no bytes, which would have a place in the pool. */
	for (uint32_t i = 0; i < 2 * POOL; i++)
	{
		blocks_put(table, first, 0, 0, false);
		put_many(first, 3, 4, 7, false);
		must_take(7, 3 * APART);
	}
	put_many(first, 0, POOL, 9, false);
	assert_int_equal(take_all(first, 9, POOL), POOL);
}

/* What is last in a list may end it, and others of a list stay. */
static void
lists_end(void **state)
{
	put_many(first, 0, 3, 20, false);
	put_many(first, 3, 4, 21, false);
	must_take(20, 2 * APART);
	must_take(20, 1 * APART);
	must_take(20, 0 * APART);
	must_take(20, 3 * APART);
	must_take(1, 3 * APART + 20 * UNIT);
	must_not_take(1);
}

/* The pool remembers as many as it has places, in each round, and rests only in half of them. */
static void
pool_ends(void **state)
{
	for (int round = 0; round < 3; round++)
	{
		put_many(first, 0, POOL + 1, 5, false);
		assert_int_equal(take_all(first, 5, POOL), POOL);
	}
	put_many(first, 0, POOL, 5, true);
	assert_int_equal(take_all(first, 5, POOL / 2), POOL / 2);
	/* Whole blocks have the other half yet, and what they leave counts for rests. */
	put_many(first, 0, POOL, 5, true);
	put_many(second, 0, POOL, 6, false);
	assert_int_equal(take_all(second, 6, POOL / 2), POOL / 2);
	put_many(first, POOL, POOL + 1, 8, true);
	must_not_take(8);
	must_take(5, (POOL / 2 - 1) * APART);
	put_many(first, POOL, POOL + 1, 8, true);
	must_take(8, POOL * APART);
	assert_int_equal(take_all(first, 5, POOL / 2), POOL / 2 - 1);
	/* The rest of a block that is taken is one, too. */
	put_many(first, 0, POOL, 9, false);
	must_take(8, (POOL - 1) * APART);
	assert_int_equal(take_all(first, 9, POOL), POOL - 1);
	must_not_take(1);
}

/* What one tree forgets is room for another one, which keeps its own. */
static void
one_tree_forgets(void **state)
{
	for (int round = 0; round < 3; round++)
	{
		put_many(second, 0, 10, 64, false);
		put_many(first, 0, 10, 1, false);
		put_many(first, 0, 10, 63, false);
		put_many(first, 0, POOL, STATE_BLOCK_LENGTHS - 1, false);
		blocks_forget(table, first);
		must_not_take(1);
		put_many(first, 0, POOL, 30, false);
		assert_int_equal(take_all(first, 30, POOL - 10), POOL - 10);
		assert_int_equal(take_all(second, 64, 10), 10);
	}
}

/* An emptied pool is as a new one. */
static void
pool_is_emptied(void **state)
{
	put_many(first, 0, POOL, 5, false);
	for (uint32_t i = 0; i < 10; i++)
		must_take(5, (POOL - 1 - i) * APART);
	memset(first, 0, sizeof(*first));
	blocks_pool_reset(table);
	put_many(first, 0, POOL + 1, 5, false);
	assert_int_equal(take_all(first, 5, POOL), POOL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(shortest_is_taken, open_table, close_table),
		cmocka_unit_test_setup_teardown(rest_is_kept, open_table, close_table),
		cmocka_unit_test_setup_teardown(lists_end, open_table, close_table),
		cmocka_unit_test_setup_teardown(pool_ends, open_table, close_table),
		cmocka_unit_test_setup_teardown(one_tree_forgets, open_table, close_table),
		cmocka_unit_test_setup_teardown(pool_is_emptied, open_table, close_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
