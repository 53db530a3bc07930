/*
 * test_insert_many.c
 *		tree_insert_many(): the same tree as by single inserts, in few chains; over two memory nodes.
 *		test_insert_many_faults.c has what goes wrong.
 *
 *		test_insert_many [--network | --mapped]
 */
#include <stdlib.h>
#include <string.h>

#include "client/wave.h"
#include "shared/state.h"
#include "support/many_fixture.h"
#include "tree/lock/lock.h"

/* Smaller calls take many round trips: over tcp they are left out. */
static uint32_t least_together = 1;

/* A thousand random keys, of which each leaf gets many; over tcp no leaf needs a redo image, and a chain for itself. */
static uint64_t most_chains = 20;

/* ---- the same entries as one by one ---- */

static void
test_same(void **state)
{
	static const TreeFormat *const formats[] = {&narrow, &middle, &text, &whole};

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
		for (int order = 0; order < MANY_ORDERS; order++)
			for (uint32_t together = least_together; together <= 5000; together = together * 7 + 1)
			{
				Tree *tree = many_tree(formats[f]);

				many_insert(tree, order, 0, 5000, together);
				many_verify(tree, order, 5000);
				tree_close(tree);
			}
}

/* Entries that are there already are hits, and are there once. */
static void
test_twice(void **state)
{
	Tree *tree = many_tree(&narrow);

	many_insert(tree, MANY_RANDOM, 0, 3000, 1000);
	many_insert(tree, MANY_RANDOM, 1500, 4500, 1000);
	many_verify(tree, MANY_RANDOM, 4500);
	assert_int_equal(client.tree->counters.insert_hits, 1500);
	tree_close(tree);
}

/* Keys in one call that are one and the same. */
static void
test_duplicates(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeKey keys[300];

	many_insert(tree, MANY_RANDOM, 0, 3000, 1000);
	for (uint32_t i = 0; i < 300; i++)
		keys[i] = many_key_of(&narrow, MANY_RANDOM, 3000 + i / 3);
	assert_int_equal(tree_insert_many(tree, keys, 300, &many_stamp), TREE_OK);
	many_verify(tree, MANY_RANDOM, 3100);
	tree_close(tree);
}

/* The same entry twice in one call, with others of its key between them. */
static void
test_one_key(void **state)
{
	static const uint32_t rows[] = {5, 7, 5, 3, 7, 9, 3, 5};
	Tree *tree = many_tree(&narrow);
	TreeKey keys[8];

	for (uint32_t i = 0; i < 8; i++)
		keys[i] = number_key(1000, rows[i]);
	assert_int_equal(tree_insert_many(tree, keys, 8, &many_stamp), TREE_OK);
	assert_int_equal(many_entries(tree, NULL), 4);
	tree_close(tree);
}

/* Keys with NULLs' leading bit stand behind all others, whatever comes first in a call. */
static void
test_high_keys(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeKey keys[1000];

	for (uint32_t first = 0; first < 10000; first += 1000)
	{
		for (uint32_t i = 0; i < 1000; i++)
		{
			keys[i] = many_key_of(&narrow, MANY_RANDOM, first + i);
			keys[i].high = i % 3 == 0;
		}
		assert_int_equal(tree_insert_many(tree, keys, 1000, &many_stamp), TREE_OK);
	}
	assert_int_equal(many_entries(tree, NULL), 10000);
	tree_close(tree);
}

/* Operations that go together have a chain of their own, which no connection worker has to cut. */
static void
test_together(void **state)
{
	static Wave wave;
	Tree *tree = many_tree(&narrow);
	uint64_t root = tree->root;
	uint64_t words[4];
	FabricOp ops[4];
	uint64_t before = client.tree->counters.round_trips;

	for (uint32_t i = 0; i < 4; i++)
		ops[i] = (FabricOp){.opcode = FABRIC_READ,
		                    .region = FABRIC_NODES,
		                    .length = 8,
		                    .offset = pointer_offset(root),
		                    .buffer = &words[i]};
	wave_begin(&wave, tree);
	wave_add(&wave, pointer_memory_node(root), &ops[0]);
	wave_add_together(&wave, pointer_memory_node(root), &ops[1], 2);
	wave_add(&wave, pointer_memory_node(root), &ops[3]);
	wave_end(&wave);
	assert_int_equal(wave_status(&wave, pointer_memory_node(root)), TREE_OK);
	assert_int_equal(client.tree->counters.round_trips - before, 3);
	tree_close(tree);
}

/* Parents know all leaves: a step to the right would cost each reader a round trip. */
static void
test_downlinks(void **state)
{
	for (int order = MANY_RANDOM; order <= MANY_DESCENDING; order++)
	{
		Tree *tree = many_tree(&narrow);
		uint64_t before = client.tree->counters.parent_posts;
		WalkResult result;

		many_insert(tree, order, 0, 30000, 2000);
		walk_tree(tree, &result);
		assert_int_equal(result.incomplete_splits, 0);
		assert_true(client.tree->counters.parent_posts - before >= result.leaves - 3);
		walk_free(&result);
		tree_close(tree);
	}
}

static void
count_split(void *argument, uint64_t from, uint64_t to)
{
	uint64_t *splits = argument;

	assert_int_not_equal(from, to);
	(*splits)++;
}

/* Who locks predicates by leaf hears of each new leaf. */
static void
test_split_hook(void **state)
{
	Tree *tree = many_tree(&narrow);
	uint64_t splits = 0;
	uint64_t before;

	many_insert(tree, MANY_RANDOM, 0, 1000, 1000);
	before = client.tree->counters.leaf_splits;
	tree_on_split(tree, count_split, &splits);
	many_insert(tree, MANY_RANDOM, 1000, 20000, 2000);
	assert_true(splits > 100);
	assert_int_equal(splits, client.tree->counters.leaf_splits - before);
	assert_false(state_splits(tree->state));
	tree_close(tree);
}

/* A leaf tells how far the WAL went when its last entry came. */
static void
test_wal_position(void **state)
{
	const TreeWalPosition later = {.epoch = 7, .lsn = 2000};
	Tree *tree = many_tree(&narrow);
	uint64_t *node = client.tree->image_right;
	TreeKey keys[400];
	WalkResult result;

	many_insert(tree, MANY_RANDOM, 0, 10000, 2000);
	for (uint32_t i = 0; i < 400; i++)
		keys[i] = many_key_of(&narrow, MANY_RANDOM, 10000 + i);
	assert_int_equal(tree_insert_many(tree, keys, 400, &later), TREE_OK);
	walk_tree(tree, &result);
	for (uint64_t i = 0; i < result.count; i++)
	{
		if (result.entries[i].block < 100)
			continue;
		assert_int_equal(access_read_node(tree, result.entries[i].leaf, 0, node), TREE_OK);
		assert_int_equal(node[HEADER_LSN], 2000);
	}
	walk_free(&result);
	tree_close(tree);
}

/* ---- what it costs ---- */

/* Chains for entries first..last in calls of so many, a thousand entries. */
static uint64_t
chains_per_thousand(Tree *tree, int order, uint32_t first, uint32_t last, uint32_t together)
{
	uint64_t before = client.tree->counters.round_trips;

	many_insert(tree, order, first, last, together);
	return (client.tree->counters.round_trips - before) * 1000 / (last - first);
}

static void
test_chains(void **state)
{
	Tree *tree = many_tree(&narrow);
	uint64_t random, ascending;

	many_insert(tree, MANY_RANDOM, 0, 100000, 4000);
	random = chains_per_thousand(tree, MANY_RANDOM, 100000, 200000, 4000);
	print_message("random keys, of which each leaf gets few: %llu chains a thousand\n",
	              (unsigned long long) random);
	if (!many_mapped)
		assert_true(random <= 100);
	tree_close(tree);
	/* Each leaf gets many: the tree grows by a factor with each wave, and its leaves are made once. */
	tree = many_tree(&narrow);
	random = chains_per_thousand(tree, MANY_RANDOM, 0, 100000, 50000);
	print_message("random keys, of which each leaf gets many: %llu chains a thousand\n",
	              (unsigned long long) random);
	if (!many_mapped)
		assert_true(random <= most_chains);
	tree_close(tree);
	tree = many_tree(&narrow);
	many_insert(tree, MANY_ASCENDING, 0, 10000, 4000);
	ascending = chains_per_thousand(tree, MANY_ASCENDING, 10000, 100000, 4000);
	print_message("ascending keys: %llu chains a thousand\n", (unsigned long long) ascending);
	assert_true(ascending <= 20);
	many_verify(tree, MANY_ASCENDING, 100000);
	tree_close(tree);
}

static uint64_t
atomics(void)
{
	uint64_t count = 0;

	for (int i = 0; i < MANY_NODES; i++)
	{
		FabricCounters counters;

		fabric_counters(client.endpoints[i], &counters);
		count += counters.atomics;
	}
	return count;
}

/*
 * Memory for what a call brings comes by a few calls, which know how much that is, and without FETCH_ADDs but for the rest of the first
 * extent at each memory node.
 */
static void
test_memory(void **state)
{
	Tree *tree = many_tree(&narrow);
	uint64_t before = client.tree->counters.extents, atomics_before = atomics();
	TreeStatistics statistics;

	many_insert(tree, MANY_RANDOM, 0, 100000, 50000);
	print_message("100,000 random keys: %llu extents, %llu FETCH_ADDs\n",
	              (unsigned long long) (client.tree->counters.extents - before),
	              (unsigned long long) (atomics() - atomics_before));
	/* Of a mapped memory node a wave is one leaf. */
	if (!many_mapped)
		assert_in_range(client.tree->counters.extents - before, 1, 17);
	assert_in_range(atomics() - atomics_before, 1, MANY_NODES);
	/* And it is no more than it takes: a quarter ahead at most. */
	assert_int_equal(tree_estimate(tree, &statistics), TREE_OK);
	assert_true(statistics.extent_bytes <=
	            (statistics.leaves * 1024 + statistics.inner_nodes * INNER_BYTES) * 5 / 4);
	tree_close(tree);
}

/* A small tree takes what it needs and two units more at each memory node: parents without room want few new nodes ahead. */
static void
test_memory_of_small_trees(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeStatistics statistics;

	many_insert(tree, MANY_RANDOM, 0, 20000, 20000);
	assert_int_equal(tree_estimate(tree, &statistics), TREE_OK);
	print_message("20,000 random keys: %llu of %llu bytes\n",
	              (unsigned long long) (statistics.leaves * 1024 + statistics.inner_nodes * INNER_BYTES),
	              (unsigned long long) statistics.extent_bytes);
	assert_true(statistics.extent_bytes <= statistics.leaves * 1024 + statistics.inner_nodes * INNER_BYTES +
	                                           2 * MANY_NODES * EXTENT_MIN_BYTES);
	tree_close(tree);
}

/* The leaf at the right end, whose keys do not ascend, takes more siblings than are foreseen: the next wave has them, and no more wait. */
static void
test_short_of_siblings(void **state)
{
	uint64_t most = 0;

	for (uint32_t first = 8; first < 100; first++)
	{
		Tree *tree = many_tree(&narrow);
		uint64_t chains;

		many_insert(tree, MANY_RANDOM, 0, first, first);
		chains = chains_per_thousand(tree, MANY_RANDOM, first, 6000, 6000);
		most = chains > most ? chains : most;
		tree_close(tree);
	}
	print_message("random keys behind some: %llu chains a thousand at most\n", (unsigned long long) most);
	assert_true(most <= (many_mapped ? 6 : 4));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_twice),
		cmocka_unit_test(test_duplicates),
		cmocka_unit_test(test_downlinks),
		cmocka_unit_test(test_split_hook),
		cmocka_unit_test(test_wal_position),
		cmocka_unit_test(test_chains),
		cmocka_unit_test(test_one_key),
		cmocka_unit_test(test_high_keys),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_memory_of_small_trees),
		cmocka_unit_test(test_short_of_siblings),
	};

	if (many_arguments(argc, argv))
	{
		least_together = 400;
		most_chains = 7;
	}
	return cmocka_run_group_tests(tests, many_start, fixture_stop);
}
