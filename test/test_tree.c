/*
 * test_tree.c
 *		The core of the tree on a memory node in another process: inserts, splits, rewrites, stamps, keys that
 *		only the comparator can order.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/tree_fixture.h"
#include "tree/lock/lock.h"

static void
test_empty(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	WalkResult result;

	walk_tree(tree, &result);
	assert_int_equal(result.height, 1);
	assert_int_equal(result.leaves, 1);
	assert_int_equal(result.count, 0);
	walk_free(&result);
	tree_close(tree);
}

static void
test_invalid(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	TreeFormat bad = narrow;
	TreeKey key = number_key(1, 1);
	Tree *other;
	bool hit;

	key.offset = 0;
	assert_int_equal(tree_insert(tree, &key, &wal, &hit), TREE_INVALID);
	key.offset = 4096;
	assert_int_equal(tree_insert(tree, &key, &wal, &hit), TREE_INVALID);
	key = number_key(1, 1);
	key.image_bytes = 1;
	assert_int_equal(tree_insert(tree, &key, &wal, &hit), TREE_INVALID);
	bad.lossless = false;
	assert_int_equal(tree_open(client.tree, record.tree, record.root, &bad, compare_text, NULL, &other),
	                 TREE_INVALID);
	assert_int_equal(tree_open(client.tree, record.tree, record.root, &text, NULL, NULL, &other),
	                 TREE_INVALID);
	tree_close(tree);
}

enum
{
	RANDOM,
	ASCENDING,
	DESCENDING,
	EQUAL,
	ORDERS
};

static uint64_t
number_in_order(int order, uint32_t i)
{
	switch (order)
	{
		case RANDOM:
			return scramble(i);
		case ASCENDING:
			return i;
		case DESCENDING:
			return UINT64_MAX - i;
		default:
			return 42;
	}
}

/* Three levels of lossless keys in every order; TIDs alone tell equal keys apart. */
static void
test_numbers(void **state)
{
	const uint32_t count = 20000;

	for (int order = 0; order < ORDERS; order++)
	{
		TreeRecord record;
		Tree *tree = new_tree(order % 2 == 0 ? &narrow : &middle, &record);
		TreeCounters counters;
		WalkResult result;

		for (uint32_t i = 0; i < count; i++)
		{
			TreeKey key = number_key(number_in_order(order, i), i);

			must_insert(tree, &key, false);
		}
		verify_tids(tree, count, &result);
		assert_true(result.height >= 3);
		assert_int_equal(result.incomplete_splits, 0);
		tree_counters(tree, &counters);
		assert_int_equal(counters.inserts, count);
		assert_int_equal(counters.insert_hits, 0);
		assert_int_equal(counters.leaf_splits + 1, result.leaves);
		assert_int_equal(counters.inner_splits + counters.root_splits, result.inner_nodes);
		assert_int_equal(counters.undecided_cuts, 0);
		assert_int_equal(counters.undecided_fences, 0);
		/* Ascending keys fill leaves, as in btree. */
		if (order == ASCENDING)
			assert_true(result.count * 100 / (result.leaves * tree->geometry.leaf_cells) >= 80);
		walk_free(&result);
		tree_close(tree);
	}
}

/* Keys with NULLs' leading bit stand behind all others. */
static void
test_high_keys(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	WalkResult result;

	for (uint32_t i = 0; i < 3000; i++)
	{
		TreeKey key = number_key(i % 3 == 0 ? 0 : scramble(i), i);

		key.high = i % 3 == 0;
		must_insert(tree, &key, false);
	}
	verify_tids(tree, 3000, &result);
	walk_free(&result);
	tree_close(tree);
}

/*
 * No cut that integers see; the order of the whole keys is the comparator's, and found outside of locks.
 */
static void
test_undecided(void **state)
{
	const TreeFormat *of[] = {&text, &whole};
	const uint32_t count = 3000;

	for (int f = 0; f < 2; f++)
	{
		TreeRecord record;
		Tree *tree = new_tree(of[f], &record);
		TreeCounters counters;
		WalkResult result;

		for (uint32_t i = 0; i < count; i++)
			must_insert_tied(tree, i, i % 3 == 0 ? 200 : 47, "", false);
		for (uint32_t i = 0; i < count; i += 97)
			must_insert_tied(tree, i, i % 3 == 0 ? 200 : 47, "", true);
		/*
		 * Each TID with a key right behind its old one: blocks of images are freed and used again,
		 * separators' are not.
		 */
		for (uint32_t i = 0; i < count; i++)
			must_insert_tied(tree, i, i % 3 == 0 ? 200 : 47, "z", false);
		verify_tids(tree, count, &result);
		assert_int_equal(result.incomplete_splits, 0);
		tree_counters(tree, &counters);
		assert_true(counters.undecided_cuts >= result.leaves / 2);
		walk_free(&result);
		tree_close(tree);
	}
}

/* Words of a language: mostly decided by integers, some ties; inline and in overflow blocks. */
static void
test_words(void **state)
{
	const TreeFormat *of[] = {&text, &whole};
	const uint32_t count = 6000;

	for (int f = 0; f < 2; f++)
	{
		TreeRecord record;
		Tree *tree = new_tree(of[f], &record);
		TreeCounters counters;
		WalkResult result;
		char string[64];

		for (uint32_t i = 0; i < count; i++)
		{
			TreeKey key;

			snprintf(string, sizeof(string), "%llu-%u-of-many-words-that-are-long",
			         (unsigned long long) scramble(i) % 500, i % 7);
			string[i % 5 == 0 ? strlen(string) : strlen(string) / 2] = '\0';
			key = text_key(string, i);
			must_insert(tree, &key, false);
		}
		verify_tids(tree, count, &result);
		tree_counters(tree, &counters);
		assert_true(counters.leaf_splits > 100);
		if (f == 0)
			assert_true(counters.undecided_cuts < counters.leaf_splits / 4);
		walk_free(&result);
		tree_close(tree);
	}
}

/* I-P3: the same entry again is a hit, and a rewrite; the TID with another key replaces the leftover. */
static void
test_idempotent(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	uint64_t before[NODE_MAX_BYTES / 8], after[NODE_MAX_BYTES / 8];
	TreeKey key;
	WalkResult result;
	TreeCounters counters;

	for (uint32_t i = 0; i < 40; i++)
	{
		key = number_key(i * 10, i);
		must_insert(tree, &key, false);
	}
	assert_int_equal(access_read_node(tree, tree->root, 0, before), TREE_OK);
	key = number_key(170, 17);
	must_insert(tree, &key, true);
	assert_int_equal(access_read_node(tree, tree->root, 0, after), TREE_OK);
	assert_int_equal(after[HEADER_GENERATION], before[HEADER_GENERATION] + 1);
	assert_int_equal(node_count(after), 40);
	verify_tids(tree, 40, &result);
	walk_free(&result);

	key = number_key(1, 17);
	must_insert(tree, &key, false);
	assert_int_equal(access_read_node(tree, tree->root, 0, after), TREE_OK);
	assert_int_equal(after[HEADER_GENERATION], before[HEADER_GENERATION] + 2);
	verify_tids(tree, 40, &result);
	assert_int_equal(after[leaf_cell_word(&tree->geometry, 1) + 1], 1);
	walk_free(&result);
	tree_counters(tree, &counters);
	assert_int_equal(counters.insert_hits, 1);
	assert_int_equal(counters.inserts, 41);
	assert_int_equal(counters.leaf_rewrites, 2);
	tree_close(tree);
}

/* Counters begin anew for all handles; what one has counted by itself so far comes later. */
static void
test_counters_reset(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	TreeKey key = number_key(1, 1);
	TreeCounters counters;
	uint64_t id = record.tree;

	must_insert(tree, &key, false);
	assert_int_equal(tree_counters_reset_time(tree->client->shared, id), 0);
	tree_count_flush(tree);
	tree_counters_reset(tree->client->shared, id, 17);
	assert_int_equal(tree_counters_reset_time(tree->client->shared, id), 17);
	tree_counters(tree, &counters);
	for (size_t i = 0; i < sizeof(counters) / sizeof(uint64_t); i++)
		assert_int_equal(((const uint64_t *) &counters)[i], 0);
	key = number_key(2, 2);
	must_insert(tree, &key, false);
	tree_counters_reset(tree->client->shared, id, 18);
	tree_counters(tree, &counters);
	assert_int_equal(counters.inserts, 1);
	tree_count_flush(tree);
	tree_counters(tree, &counters);
	assert_int_equal(counters.inserts, 1);
	/* A tree that the instance does not know. */
	tree_counters_reset(tree->client->shared, id + 1000, 19);
	assert_int_equal(tree_counters_reset_time(tree->client->shared, id + 1000), 0);
	tree_close(tree);
}

/* Marks entries dead as a scan's kill will: word 0 of each cell. */
static void
mark_dead(Tree *tree, uint32_t every)
{
	uint64_t image[NODE_MAX_BYTES / 8];
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = 8};

	assert_int_equal(access_read_node(tree, tree->root, 0, image), TREE_OK);
	for (uint32_t slot = 0; slot < tree->geometry.leaf_cells; slot += every)
	{
		uint64_t *cell = image + leaf_cell_word(&tree->geometry, slot);

		*cell ^= (uint64_t) (CELL_LIVE ^ CELL_DEAD) << CELL_STATE_SHIFT;
		op.offset = pointer_offset(tree->root) + leaf_cell_word(&tree->geometry, slot) * 8;
		op.buffer = cell;
		assert_int_equal(access_execute(tree, 0, &op, 1), TREE_OK);
	}
}

/*
 * A full leaf with a quarter dead is rewritten in place; an entry whose TID is marked dead comes back by a
 * rewrite.
 */
static void
test_dead(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	uint32_t cells = tree->geometry.leaf_cells;
	TreeKey key;
	WalkResult result;
	TreeCounters counters;

	for (uint32_t i = 0; i < cells; i++)
	{
		key = number_key(i, i);
		must_insert(tree, &key, false);
	}
	mark_dead(tree, 3);
	key = number_key(3, 3);
	must_insert(tree, &key, false);
	walk_tree(tree, &result);
	assert_int_equal(result.count, cells - (cells + 2) / 3 + 1);
	assert_true(walk_has(&result, 0, 4));
	assert_false(walk_has(&result, 0, 1));
	assert_int_equal(result.leaves, 1);
	walk_free(&result);

	for (uint32_t i = 0; i < cells; i++)
	{
		key = number_key(1000 + i, 1000 + i);
		must_insert(tree, &key, false);
		walk_tree(tree, &result);
		if (result.count == cells)
			break;
		walk_free(&result);
	}
	walk_free(&result);
	mark_dead(tree, 3);
	key = number_key(5000, 5000);
	must_insert(tree, &key, false);
	tree_counters(tree, &counters);
	assert_int_equal(counters.leaf_splits, 0);
	assert_int_equal(counters.leaf_rewrites, 2);
	tree_close(tree);
}

/*
 * (epoch, lsn) only rise, an older epoch is remembered until it is healed, and both halves of a
 * split inherit.
 */
static void
test_stamps(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	uint64_t image[NODE_MAX_BYTES / 8];
	TreeWalPosition now = {.epoch = 3, .lsn = 500};
	TreeWalLimits ends = {.epoch = 3};
	TreeCounters counters;
	TreeKey key = number_key(1, 1);
	WalkResult result;
	uint64_t leaf;
	bool hit;

	tree->geometry.ends = &ends;
	assert_int_equal(tree_insert(tree, &key, &now, &hit), TREE_OK);
	assert_int_equal(access_read_node(tree, tree->root, 0, image), TREE_OK);
	assert_int_equal(image[HEADER_LSN], 500);
	assert_int_equal(image[HEADER_EPOCH], 3);
	now.lsn = 400;
	key = number_key(2, 2);
	assert_int_equal(tree_insert(tree, &key, &now, &hit), TREE_OK);
	assert_int_equal(access_read_node(tree, tree->root, 0, image), TREE_OK);
	assert_int_equal(image[HEADER_LSN], 500);
	tree_counters(tree, &counters);
	assert_int_equal(counters.stamp_writes, 1);
	/* The WAL of epoch 3 ended in front of the stamp. */
	ends = (TreeWalLimits){.epoch = 5, .first = 3, .count = 2, .limit = {450, 600}};
	now.epoch = 5;
	key = number_key(3, 3);
	assert_int_equal(tree_insert(tree, &key, &now, &hit), TREE_OK);
	assert_int_equal(access_read_node(tree, tree->root, 0, image), TREE_OK);
	assert_int_equal(image[HEADER_LSN], 400);
	assert_int_equal(image[HEADER_EPOCH], 3ull << 32 | 5);
	ends = (TreeWalLimits){.epoch = 6, .first = 3, .count = 3, .limit = {450, 600, 600}};
	now.epoch = 6;
	for (uint32_t i = 4; i < 70; i++)
	{
		key = number_key(i, i);
		assert_int_equal(tree_insert(tree, &key, &now, &hit), TREE_OK);
	}
	walk_tree(tree, &result);
	assert_int_equal(result.leaves, 2);
	for (uint64_t i = 0; i < result.count; i++)
	{
		leaf = result.entries[i].leaf;
		assert_int_equal(access_read_node(tree, leaf, 0, image), TREE_OK);
		assert_int_equal(image[HEADER_EPOCH], 3ull << 32 | 6);
		assert_int_equal(image[HEADER_LSN], 400);
	}
	walk_free(&result);
	tree_close(tree);
}

/* Images of many lengths, inline and in overflow blocks, up to the longest; each is a prefix of the next. */
static void
test_sizes(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	WalkResult result;
	char *string = malloc(TREE_IMAGE_MAX_BYTES + 1);

	memset(string, 'z', TREE_IMAGE_MAX_BYTES);
	for (uint32_t length = 0; length <= TREE_IMAGE_MAX_BYTES; length++)
	{
		TreeKey key;

		string[length] = '\0';
		key = text_key(string, length);
		if (length <= 200 || length % 50 == 0 || length == TREE_IMAGE_MAX_BYTES)
			must_insert(tree, &key, false);
		string[length] = 'z';
	}
	walk_tree(tree, &result);
	assert_true(walk_has(&result, TREE_IMAGE_MAX_BYTES / 100, TREE_IMAGE_MAX_BYTES % 100 + 1));
	assert_int_equal(result.count, 201 + (TREE_IMAGE_MAX_BYTES - 200) / 50 + 1);
	walk_free(&result);
	tree_close(tree);
	free(string);
}

/*
 * Two memory nodes: siblings go to the one with less, written and awaited before the node that points to them (3 round
 * trips); parents, separators' images and right links cross from one to the other.
 */
static void
test_two_nodes(void **state)
{
	const TreeFormat *of[] = {&narrow, &text};

	fixture_open(&(FixtureOptions){.nodes = 2});
	for (int f = 0; f < 2; f++)
	{
		const uint32_t count = 15000;
		TreeRecord record;
		WalkResult result;
		uint64_t elsewhere = 0, foreign = 0;
		Tree *tree;

		tree = new_tree(of[f], &record);
		for (uint32_t i = 0; i < count; i++)
		{
			TreeKey key = number_key(scramble(i), i);
			TreeCounters before, after;

			tree_client_counters(client.tree, &before);
			if (f == 1)
				must_insert_tied(tree, i, i % 4 == 0 ? 100 : 47, "", false);
			else
				must_insert(tree, &key, false);
			tree_client_counters(client.tree, &after);
			if (f == 0 && i > 1000 && after.leaf_splits > before.leaf_splits &&
			    after.parent_posts == before.parent_posts + 1 &&
			    after.lock_acquisitions == before.lock_acquisitions + 2)
				foreign += after.round_trips - before.round_trips == 5;
		}
		verify_tids(tree, count, &result);
		assert_int_equal(result.incomplete_splits, 0);
		for (uint64_t i = 0; i < result.count; i++)
			elsewhere += pointer_memory_node(result.entries[i].leaf) == 1;
		assert_in_range(elsewhere, count / 4, count * 3 / 4);
		if (f == 0)
			assert_true(foreign > 20);
		walk_free(&result);
		tree_close(tree);
	}
	fixture_close();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),          cmocka_unit_test(test_invalid),
		cmocka_unit_test(test_numbers),        cmocka_unit_test(test_high_keys),
		cmocka_unit_test(test_undecided),      cmocka_unit_test(test_words),
		cmocka_unit_test(test_sizes),          cmocka_unit_test(test_idempotent),
		cmocka_unit_test(test_dead),           cmocka_unit_test(test_stamps),
		cmocka_unit_test(test_counters_reset),
	};

	const struct CMUnitTest apart[] = {cmocka_unit_test(test_two_nodes)};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop) +
	       cmocka_run_group_tests(apart, NULL, NULL);
}
