/*
 * test_budget_ties.c
 *		The budget's exceptions: what it costs, to the round trip, when integers do not tell keys apart, in
 *		leaves, in inner nodes, at fences and where a leaf is to be cut; each by its own counter.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/cost.h"
#include "support/tree_fixture.h"
#include "tree/descent/descent.h"

/* Bytes of strings which overflow. */
#define LONG_BYTES 100

/* Bytes that all strings share: as many as the normalized key holds, or more. */
#define SHARED_BYTES 24

/* READs of so many images are one chain. */
static uint64_t
chains(uint64_t images)
{
	return (images + FABRIC_MAX_CHAIN - 1) / FABRIC_MAX_CHAIN;
}

/* String number i, short enough for its cell, but for the normalized key the same as all others. */
static void
short_string(char string[TIED_MAX_BYTES], uint32_t i)
{
	memset(string, 'x', SHARED_BYTES);
	snprintf(string + SHARED_BYTES, 7, "%06x", (unsigned) (scramble(i) >> 40));
}

static void
tied(char string[TIED_MAX_BYTES], uint32_t i, bool overflow)
{
	if (overflow)
		tied_string(string, i, LONG_BYTES);
	else
		short_string(string, i);
}

static void
insert_tied(Tree *tree, uint32_t i, bool overflow)
{
	char string[TIED_MAX_BYTES];
	TreeKey key;

	tied(string, i, overflow);
	key = text_key(string, i);
	must_insert(tree, &key, false);
}

/* Looks for string number i, to the end of the scan, after a look at the leaf that it lies in. */
static void
look_up(Tree *tree, uint32_t i, bool overflow, Cost *cost, uint64_t *leaf)
{
	char string[TIED_MAX_BYTES];
	TreeKey key;
	TreeBound low, high;
	const TreeBatch *batch;
	TreeScan *scan;
	Path path;

	tied(string, i, overflow);
	key = text_key(string, i);
	bound_of_key(&tree->geometry, &key, &low);
	low.side = -1;
	high = low;
	high.side = 1;
	assert_int_equal(search_descend(tree, &low, 0, false, &path), TREE_OK);
	assert_int_equal(access_read_node(tree, path.pointer, 0, leaf), TREE_OK);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	cost_begin(&client, cost);
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, &low, &high), TREE_OK);
	assert_int_equal(tree_scan_next(scan, &batch), TREE_OK);
	assert_int_equal(batch->count, 1);
	assert_int_equal(batch->entries[0].block * 100 + batch->entries[0].offset - 1, i);
	assert_int_equal(tree_scan_next(scan, &batch), TREE_END);
	cost_end(&client, cost);
	tree_scan_close(scan);
}

/*
 * A leaf alone; the images of all that ties come by one chain, for 32 of them, if they are out of line.
 */
static void
test_tied_leaf(void **state)
{
	for (int overflow = 0; overflow < 2; overflow++)
	{
		TreeRecord record;
		Tree *tree = new_tree(&text, &record);
		uint64_t leaf[NODE_MAX_BYTES / 8];

		for (uint32_t count = 1; count <= tree->geometry.leaf_cells; count++)
		{
			Cost cost;

			insert_tied(tree, count - 1, overflow);
			look_up(tree, count / 2, overflow, &cost, leaf);
			assert_int_equal(cost.tree.leaf_reads, 1);
			assert_int_equal(cost.fabric.round_trips, 1 + (overflow ? chains(count) : 0));
			assert_int_equal(cost.fabric.reads, 1 + (overflow ? count : 0));
		}
		tree_close(tree);
	}
}

/*
 * Below a root of separators that tie: the descent costs one chain for all of them, not one for each
 * that a search by halves looks at; the leaf one for its cells and its far fence.
 */
static void
test_tied_descent(void **state)
{
	for (int overflow = 0; overflow < 2; overflow++)
	{
		const uint32_t entries = 1500;
		TreeRecord record;
		Tree *tree = new_tree(&text, &record);
		const NodeGeometry *g = &tree->geometry;
		uint64_t root[NODE_MAX_BYTES / 8], leaf[NODE_MAX_BYTES / 8];
		uint64_t separators, alone = 0;

		for (uint32_t i = 0; i < entries; i++)
			insert_tied(tree, i, overflow);
		assert_int_equal(access_read_node(tree, tree->root, 1, root), TREE_OK);
		separators = node_count(root) - 1;
		assert_in_range(separators, 20, FABRIC_MAX_CHAIN * 2);
		for (uint32_t i = 0; i < entries; i++)
		{
			Cost cost;
			uint64_t images;

			look_up(tree, i, overflow, &cost, leaf);
			/* An entry that is its leaf's separator is looked for on the left of it, too. */
			if (cost.tree.leaf_reads != 1)
				continue;
			alone++;
			assert_int_equal(cost.tree.cache_misses, 0);
			images = leaf_live(g, leaf) + !separator_infinite(leaf + g->high_word);
			assert_int_equal(cost.fabric.round_trips,
			                 1 + (overflow ? chains(separators) + chains(images) : 0));
			assert_int_equal(cost.fabric.reads, 1 + (overflow ? separators + images : 0));
		}
		assert_true(alone > entries * 9 / 10);
		tree_close(tree);
	}
}

/*
 * Inserts of strings that all tie: 2 round trips, and a chain for the images of the parent's separators. Each
 * split is planned outside (undecided_cuts): +2, and where images overflow a chain for the leaf's and
 * one that writes the separator's. The parent costs its 2, as the place is known from the descent.  What is taken are
 * chunks: +1, and for the first line of one that blocks are cut from +1.
 */
static void
test_undecided_cuts(void **state)
{
	for (int overflow = 0; overflow < 2; overflow++)
	{
		TreeRecord record;
		Tree *tree = new_tree(&text, &record);
		const NodeGeometry *g = &tree->geometry;
		uint64_t root[NODE_MAX_BYTES / 8];
		uint64_t separators = 0, cuts = 0;

		for (uint32_t i = 0; i < 1500; i++)
		{
			uint64_t expected, taken;
			Cost cost;

			cost_begin(&client, &cost);
			insert_tied(tree, i, overflow);
			cost_end(&client, &cost);
			if (tree->root_is_leaf || cost.tree.root_splits != 0)
				continue;
			assert_int_equal(cost.tree.undecided_cuts, cost.tree.leaf_splits);
			assert_int_equal(cost.tree.parent_posts, cost.tree.leaf_splits);
			assert_int_equal(cost.tree.undecided_fences + cost.tree.right_moves + cost.tree.cache_misses, 0);
			assert_int_equal(cost.tree.lock_acquisitions,
			                 1 + cost.tree.undecided_cuts + cost.tree.parent_posts);
			taken = cost.fabric.atomics - 2 * cost.tree.lock_acquisitions;
			expected = 2 + 2 * cost.tree.undecided_cuts + 2 * cost.tree.parent_posts + taken;
			if (overflow)
				expected += chains(separators);
			if (overflow && cost.tree.undecided_cuts != 0)
				expected += chains(g->leaf_cells) + 1;
			/* The first one below a root that has just been split. */
			if (separators != 0)
				assert_in_range(cost.fabric.round_trips, expected, expected + (overflow ? taken : 0));
			cuts += cost.tree.undecided_cuts;
			if (separators == 0 || cost.tree.parent_posts != 0)
			{
				assert_int_equal(access_read_node(tree, tree->root, 1, root), TREE_OK);
				separators = node_count(root) - 1;
			}
		}
		assert_true(cuts > 20);
		tree_close(tree);
	}
}

/*
 * Another instance has split a leaf that this one's cache knows whole, and the key ties with the new
 * separator: +2 for the comparator's look at the fences (undecided_fences); on the right of it once more for
 * the right sibling, behind a right move.
 */
static void
test_undecided_fences(void **state)
{
	OtherInstance other;
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	Tree *theirs;
	const NodeGeometry *g = &tree->geometry;
	uint64_t leaf[NODE_MAX_BYTES / 8];
	uint64_t left = 0, right = 0;
	uint32_t i = 0;

	other_start(&other);
	theirs = open_tree(&other.client, &record);
	for (; i < 400; i++)
		insert_tied(tree, i, false);
	for (; i < 1500 && (left < 3 || right < 3); i++)
	{
		char string[TIED_MAX_BYTES];
		uint64_t pointer, taken, splits = other.client.tree->counters.leaf_splits;
		TreeBound bound;
		TreeKey key;
		Path path;
		Cost cost;

		/* Theirs splits a leaf; the next key belongs somewhere. */
		while (other.client.tree->counters.leaf_splits == splits)
			insert_tied(theirs, i++, false);
		short_string(string, i);
		key = text_key(string, i);
		bound_of_key(g, &key, &bound);
		assert_int_equal(search_descend(tree, &bound, 0, false, &path), TREE_OK);
		pointer = path.pointer;
		assert_int_equal(access_read_node(tree, pointer, 0, leaf), TREE_OK);
		if (separator_equal(g, leaf + g->high_word, path.high))
		{
			insert_tied(theirs, i, false);
			continue;
		}
		cost_begin(&client, &cost);
		must_insert(tree, &key, false);
		cost_end(&client, &cost);
		if (cost.tree.leaf_splits != 0)
			continue;
		assert_int_equal(cost.tree.undecided_fences, 1 + cost.tree.right_moves);
		taken = cost.fabric.atomics - 2 * cost.tree.lock_acquisitions;
		assert_int_equal(cost.fabric.round_trips, 2 + 2 * cost.tree.undecided_fences + taken);
		assert_int_equal(cost.tree.lock_acquisitions, 1 + cost.tree.undecided_fences);
		left += cost.tree.right_moves == 0;
		right += cost.tree.right_moves == 1;
	}
	assert_true(left >= 3 && right >= 3);
	tree_close(theirs);
	tree_close(tree);
	other_stop(&other);
}

/*
 * Posts child 2 of the root anew, which the root forgets before; `known`: as behind a descent to its left
 * neighbor.
 */
static void
post_again(Tree *tree, const uint64_t *root, bool known, Cost *cost)
{
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *cell = root + inner_cell_word(g, 2);
	uint64_t without[NODE_MAX_BYTES / 8];
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = INNER_BYTES, .buffer = without};
	uint32_t count = node_count(root);
	Path path = {.pointer = root[inner_cell_word(g, 1)], .fences_known = known};

	memcpy(without, root, INNER_BYTES);
	memmove(without + inner_cell_word(g, 2), without + inner_cell_word(g, 3),
	        (size_t) (count - 3) * g->inner_stride * 8);
	without[HEADER_STATE] = node_state_word(root[HEADER_GENERATION], 1, count - 1, NODE_ROOT);
	node_seal(g, without);
	op.offset = pointer_offset(tree->root);
	assert_int_equal(access_execute(tree, 0, &op, 1), TREE_OK);
	path.parents[1] = tree->root;
	memcpy(path.low, root + inner_cell_word(g, 1) + 1, g->cell_bytes);
	memcpy(path.high, root + inner_cell_word(g, 3) + 1, g->cell_bytes);
	cost_begin(&client, cost);
	assert_int_equal(downlink_insert(tree, 0, path.pointer, cell + 1, cell[0], &path), TREE_OK);
	cost_end(&client, cost);
}

/* A separator that ties with the parent's: 2 round trips behind a descent, else +2 (undecided_fences). */
static void
test_undecided_downlinks(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	uint64_t root[NODE_MAX_BYTES / 8];
	WalkResult result;

	for (uint32_t i = 0; i < 400; i++)
		insert_tied(tree, i, false);
	assert_int_equal(access_read_node(tree, tree->root, 1, root), TREE_OK);
	assert_true(node_count(root) > 5);
	for (int known = 0; known < 2; known++)
	{
		Cost cost;

		post_again(tree, root, known, &cost);
		assert_int_equal(cost.tree.parent_posts, 1);
		assert_int_equal(cost.tree.undecided_fences, !known);
		assert_int_equal(cost.fabric.round_trips - (cost.fabric.atomics - 2 * cost.tree.lock_acquisitions),
		                 known ? 2 : 4);
		verify_tids(tree, 400, &result);
		assert_int_equal(result.incomplete_splits, 0);
		walk_free(&result);
	}
	tree_close(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tied_leaf),           cmocka_unit_test(test_tied_descent),
		cmocka_unit_test(test_undecided_cuts),      cmocka_unit_test(test_undecided_fences),
		cmocka_unit_test(test_undecided_downlinks),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
