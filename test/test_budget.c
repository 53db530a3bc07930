/*
 * test_budget.c
 *		Round trips and bytes of each operation, with the inner nodes cached, as tree-protocol.md section 5
 *		allows them; every exception is counted by its own counter and asserted with it (those that come from
 *		keys which integers do not tell apart: test_budget_ties.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/fixture.h"
#include "fault.h"
#include "internal.h"
#include "support/cost.h"
#include "support/look_up.h"
#include "tree/descent/descent.h"

static const TreeFormat formats[] = {
	{.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 32, .norm_bytes = 24, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 64, .norm_bytes = 24, .lossless = false, .fill_percent = 90},
};

static TreeKey
key_number(const TreeFormat *format, uint32_t i, uint8_t *image)
{
	TreeKey key;

	memset(&key, 0, sizeof(key));
	key.norm[0] = scramble(i);
	key.block = i / 100;
	key.offset = (uint16_t) (i % 100 + 1);
	if (!format->lossless)
	{
		for (int b = 0; b < 8; b++)
			image[b] = (uint8_t) (key.norm[0] >> (56 - 8 * b));
		key.image = image;
		key.image_bytes = 8;
	}
	return key;
}

static void
insert(Tree *tree, const TreeKey *key, const TreeWalPosition *wal)
{
	bool hit;

	assert_int_equal(tree_insert(tree, key, wal, &hit), TREE_OK);
	assert_false(hit);
}

static Tree *
new_tree(const TreeFormat *format)
{
	TreeRecord record;
	Tree *tree;

	test_tree_create(&client, format, &record);
	assert_int_equal(tree_open(client.tree, record.tree, record.root, format, compare_images, NULL, &tree),
	                 TREE_OK);
	return tree;
}

/*
 * The plain insert: {swap, READ leaf}, {WRITE cell, unlock}: 2 round trips, one cell and two words written,
 * and in the same chain so many bytes of the header.
 */
static void
assert_plain(const Tree *tree, const Cost *cost, uint64_t header_bytes)
{
	const NodeGeometry *g = &tree->geometry;

	assert_int_equal(cost->fabric.round_trips, 2);
	assert_int_equal(cost->fabric.reads, 1);
	assert_int_equal(cost->fabric.read_bytes, g->leaf_bytes);
	assert_int_equal(cost->fabric.atomics, 2);
	assert_int_equal(cost->fabric.writes, header_bytes == 0 ? 1 : 2);
	assert_int_equal(cost->fabric.written_bytes, 2 * 8 + g->cell_bytes + header_bytes);
	assert_int_equal(cost->tree.cache_misses, 0);
	assert_int_equal(cost->tree.right_moves, 0);
}

/*
 * Every insert of a growing tree: 2 round trips, and 2 for each parent that gets a separator (an inner split
 * costs no more than a posting, and its own parent's posting); one for each chunk of nodes taken ahead.
 */
static void
test_inserts(void **state)
{
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1};

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
	{
		Tree *tree = new_tree(&formats[f]);
		uint64_t plain = 0, splits = 0, inner_splits = 0, chunks = 0, extents = 0;
		uint8_t image[8];

		for (uint32_t i = 0; i < 30000; i++)
		{
			TreeKey key = key_number(&formats[f], i, image);
			uint64_t taken;
			Cost cost;

			cost_begin(&client, &cost);
			insert(tree, &key, &wal);
			cost_end(&client, &cost);
			if (tree->root_is_leaf || cost.tree.root_splits != 0)
				continue;
			taken = cost.fabric.atomics - 2 * cost.tree.lock_acquisitions;
			chunks += taken;
			assert_int_equal(cost.tree.lock_acquisitions, 1 + cost.tree.parent_posts);
			assert_int_equal(cost.fabric.round_trips, 2 + 2 * cost.tree.parent_posts + taken);
			assert_int_equal(cost.tree.parent_posts, cost.tree.leaf_splits + cost.tree.inner_splits);
			assert_int_equal(cost.tree.undecided_cuts + cost.tree.undecided_fences, 0);
			if (cost.tree.leaf_splits == 0 && taken == 0)
			{
				assert_plain(tree, &cost, cost.tree.stamp_writes * 16);
				plain++;
			}
			splits += cost.tree.leaf_splits;
			inner_splits += cost.tree.inner_splits;
			extents += cost.tree.extents;
		}
		assert_true(plain > 28000 && splits > 500 && inner_splits > 2);
		/* Chunks hold 16 KB of nodes; the end of an extent is met by one try too many. */
		printf("%u-byte cells: %llu splits, %llu of inner nodes, %llu chunks, %llu extents\n",
		       formats[f].cell_bytes, (unsigned long long) splits, (unsigned long long) inner_splits,
		       (unsigned long long) chunks, (unsigned long long) extents);
		assert_in_range(
			chunks, 1, splits * tree->geometry.leaf_bytes / CHUNK_BYTES + inner_splits / 2 + 4 + 2 * extents);
		tree_close(tree);
	}
}

/* The (lsn, epoch) unit: in the same chain, only when it is too low. */
static void
test_stamp(void **state)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	Tree *tree = new_tree(&formats[0]);
	uint8_t image[8];
	Cost cost;
	TreeKey key;

	for (uint32_t i = 0; i < 20; i++)
	{
		key = key_number(&formats[0], i, image);
		insert(tree, &key, &wal);
	}
	for (uint32_t i = 20; i < 40; i++)
	{
		wal.lsn += i % 2;
		key = key_number(&formats[0], i, image);
		cost_begin(&client, &cost);
		insert(tree, &key, &wal);
		cost_end(&client, &cost);
		assert_int_equal(cost.fabric.round_trips, 2);
		assert_int_equal(cost.fabric.written_bytes, 2 * 8 + 16 + i % 2 * 16);
		assert_int_equal(cost.tree.stamp_writes, i % 2);
	}
	tree_close(tree);
}

/* Bytes of a split on the same memory node: redo image and header, sibling, node; the parent likewise. */
static void
test_split_bytes(void **state)
{
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	Tree *tree = new_tree(&formats[0]);
	bool redo = fabric_capabilities(client.endpoints[0])->one_packet < tree->geometry.leaf_bytes;
	uint64_t seen = 0;
	uint8_t image[8];

	for (uint32_t i = 0; i < 5000; i++)
	{
		TreeKey key = key_number(&formats[0], i, image);
		uint64_t leaf = tree->geometry.leaf_bytes, most;
		Cost cost;

		cost_begin(&client, &cost);
		insert(tree, &key, &wal);
		cost_end(&client, &cost);
		if (cost.tree.leaf_splits == 0 || cost.tree.root_splits != 0 || cost.tree.inner_splits != 0)
			continue;
		most = 2 * leaf + INNER_BYTES + (redo ? leaf + INNER_BYTES + 2 * LINE_BYTES : 0) + 5 * 8;
		assert_true(cost.fabric.written_bytes <= most);
		assert_int_equal(cost.fabric.writes, redo ? 7 : 3);
		seen++;
	}
	assert_true(seen > 100);
	tree_close(tree);
}

/* Looks for a key, to the end. */
static void
look_up(TreeScan *scan, const Tree *tree, const TreeKey *key, bool expected)
{
	const TreeBatch *batch;

	assert_int_equal(look_up_key(scan, tree, key), expected ? TREE_OK : TREE_END);
	if (expected)
		assert_int_equal(tree_scan_next(scan, &batch), TREE_END);
}

/* A lookup reads one leaf, whether it finds the key or not. */
static void
test_lookups(void **state)
{
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1};

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
	{
		Tree *tree = new_tree(&formats[f]);
		uint8_t image[8];
		TreeScan *scan;

		for (uint32_t i = 0; i < 8000; i += 2)
		{
			TreeKey key = key_number(&formats[f], i, image);

			insert(tree, &key, &wal);
		}
		assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
		for (uint32_t i = 0; i < 8000; i++)
		{
			TreeKey key = key_number(&formats[f], i, image);
			Cost cost;

			cost_begin(&client, &cost);
			look_up(scan, tree, &key, i % 2 == 0);
			cost_end(&client, &cost);
			assert_int_equal(cost.fabric.round_trips, 1);
			assert_int_equal(cost.fabric.read_bytes, tree->geometry.leaf_bytes);
			assert_int_equal(cost.fabric.written_bytes, 0);
			assert_int_equal(cost.tree.leaf_reads, 1);
		}
		tree_scan_close(scan);
		tree_close(tree);
	}
}

/* A key which overflows. */
#define OVERFLOW_BYTES 200

static TreeKey
key_overflow(uint32_t i, uint8_t *longer)
{
	TreeKey key = key_number(&formats[2], i, longer);

	memset(longer + 8, 'l', OVERFLOW_BYTES - 8);
	key.image_bytes = OVERFLOW_BYTES;
	key.norm[1] = key.norm[2] = 0x6c6c6c6c6c6c6c6cull;
	return key;
}

/*
 * An overflow key goes in the chain of its cell: still 2 round trips. A lookup fetches it in one more,
 * and needs none where there is no such key.
 */
static void
test_overflow(void **state)
{
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	Tree *tree = new_tree(&formats[2]);
	uint8_t longer[OVERFLOW_BYTES];
	TreeScan *scan;
	Cost cost;

	for (uint32_t i = 0; i < 50; i++)
	{
		TreeKey key = key_overflow(i, longer);
		uint64_t taken;

		cost_begin(&client, &cost);
		insert(tree, &key, &wal);
		cost_end(&client, &cost);
		taken = cost.fabric.atomics - 2;
		if (i == 0)
			continue;
		assert_int_equal(cost.fabric.round_trips, 2 + taken);
		assert_int_equal(cost.fabric.written_bytes, OVERFLOW_BYTES + 64 + 2 * 8 + taken * 8);
	}
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	for (uint32_t i = 0; i < 100; i++)
	{
		TreeKey key = key_overflow(i, longer);

		cost_begin(&client, &cost);
		look_up(scan, tree, &key, i < 50);
		cost_end(&client, &cost);
		assert_int_equal(cost.fabric.round_trips, i < 50 ? 2 : 1);
		assert_int_equal(cost.fabric.read_bytes, NODE_MAX_BYTES + (i < 50 ? OVERFLOW_BYTES : 0));
	}
	tree_scan_close(scan);
	tree_close(tree);
}

/* A microsecond passes whenever it is asked: no READ is late, however busy the machine is. */
static uint64_t
slow_clock(void *argument)
{
	static uint64_t now;

	return ++now;
}

/*
 * Where READs may tear lines, each insert writes the leaf's sum behind the mutable unit, 24 bytes of the
 * header; round trips and lookups are what they are elsewhere.
 */
static void
test_leaf_sums(void **state)
{
	const FabricFaultPlan torn = {.seed = 1, .tear_words = true};
	uint64_t (*real_clock)(void *) = client.tree->options.environment.now_us;
	TreeWalPosition wal = {.epoch = 1, .lsn = 1};

	client.tree->options.environment.now_us = slow_clock;
	assert_int_equal(fabric_fault_set(client.endpoints[0], &torn), FABRIC_OK);
	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
	{
		Tree *tree = new_tree(&formats[f]);
		uint64_t plain = 0;
		uint8_t image[8];
		TreeScan *scan;

		for (uint32_t i = 0; i < 300; i++)
		{
			TreeKey key = key_number(&formats[f], i, image);
			Cost cost;

			wal.lsn += i % 2;
			cost_begin(&client, &cost);
			insert(tree, &key, &wal);
			cost_end(&client, &cost);
			if (tree->root_is_leaf || cost.tree.leaf_splits != 0 || cost.fabric.atomics != 2)
				continue;
			assert_plain(tree, &cost, 24);
			plain++;
		}
		assert_true(plain > 200);
		assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
		for (uint32_t i = 0; i < 300; i++)
		{
			TreeKey key = key_number(&formats[f], i, image);
			Cost cost;

			cost_begin(&client, &cost);
			look_up(scan, tree, &key, true);
			cost_end(&client, &cost);
			assert_int_equal(cost.fabric.round_trips, 1);
			assert_int_equal(cost.fabric.read_bytes, tree->geometry.leaf_bytes);
		}
		tree_scan_close(scan);
		tree_close(tree);
	}
	assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
	client.tree->options.environment.now_us = real_clock;
}

/*
 * Hits on one leaf, from several processes: who takes the lock over with the leaf's image needs one round
 * trip.
 */
#define CROWD 4
#define CROWD_OPERATIONS 1000
#define CROWD_BARRIER 1000 /* word of the scratch memory */

static void
handover_body(int number, void *argument)
{
	const TreeRecord *record = argument;
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	FabricFaultPlan plan = {.seed = (uint64_t) number + 1, .delay_max_us = 30};
	TreeCounters before, after;
	TestClient mine;
	Tree *tree;

	test_client_open(&mine, &instance, (uint32_t) number + 1);
	if (tree_open(mine.tree, record->tree, record->root, &record->format, NULL, NULL, &tree) != TREE_OK)
		_exit(2);
	tree->root_is_leaf = true;
	/* Nodes taken ahead are no part of the budget. */
	if (reserve_fill(tree, 0, 1) != TREE_OK)
		_exit(2);
	/* All at once, and slowly enough to meet. */
	if (fabric_fault_set(mine.endpoints[0], &plan) != FABRIC_OK)
		_exit(2);
	test_meet(&instance, CROWD_BARRIER, CROWD);
	tree_client_counters(mine.tree, &before);
	for (uint32_t i = 0; i < CROWD_OPERATIONS; i++)
	{
		uint8_t image[8];
		TreeKey key = key_number(&record->format, (i * 7 + (uint32_t) number) % 30, image);
		bool hit;

		if (tree_insert(tree, &key, &wal, &hit) != TREE_OK || !hit)
			_exit(3);
	}
	tree_client_counters(mine.tree, &after);
	for (size_t i = 0; i < sizeof(TreeCounters) / 8; i++)
		__atomic_fetch_add(&instance.scratch[i], ((uint64_t *) &after)[i] - ((uint64_t *) &before)[i],
		                   __ATOMIC_RELAXED);
	tree_close(tree);
	if (test_client_close(&mine) != TREE_OK)
		_exit(4);
	_exit(0);
}

static void
test_handover(void **state)
{
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	TreeRecord record;
	TreeCounters sum;
	uint64_t operations = CROWD * CROWD_OPERATIONS;
	uint64_t expected;
	Tree *tree;

	test_tree_create(&client, &formats[0], &record);
	assert_int_equal(tree_open(client.tree, record.tree, record.root, &formats[0], NULL, NULL, &tree),
	                 TREE_OK);
	for (uint32_t i = 0; i < 30; i++)
	{
		uint8_t image[8];
		TreeKey key = key_number(&formats[0], i, image);

		insert(tree, &key, &wal);
	}
	memset(instance.scratch, 0, sizeof(TreeCounters));
	instance.scratch[CROWD_BARRIER] = 0;
	assert_int_equal(test_processes(CROWD, handover_body, &record), 0);
	memcpy(&sum, instance.scratch, sizeof(sum));
	assert_int_equal(sum.insert_hits, operations);
	assert_true(sum.handovers > operations / 4 && sum.handover_images > operations / 4);
	assert_true(sum.handovers <= operations * HANDOVER_MAX / (HANDOVER_MAX + 1));
	/*
	 * One chain that writes; one that wins or tries to win the word and reads; one READ after a handover
	 * without image.
	 */
	assert_int_equal(sum.lock_acquisitions + sum.handovers, operations);
	expected = operations + sum.lock_acquisitions + sum.lock_retries + sum.handovers - sum.handover_images;
	printf("handovers %llu of %llu, with image %llu; round trips %llu, accounted %llu\n",
	       (unsigned long long) sum.handovers, (unsigned long long) operations,
	       (unsigned long long) sum.handover_images, (unsigned long long) sum.round_trips,
	       (unsigned long long) expected);
	/* Who was to pass the word on and found that nobody waits any more frees it by a chain of its own. */
	assert_in_range(sum.round_trips, expected, expected + operations / 20);
	tree_close(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inserts),  cmocka_unit_test(test_stamp),    cmocka_unit_test(test_split_bytes),
		cmocka_unit_test(test_lookups),  cmocka_unit_test(test_overflow), cmocka_unit_test(test_leaf_sums),
		cmocka_unit_test(test_handover),
	};

	fixture_options = (FixtureOptions){.cache_bytes = 8 * MEGABYTE};
	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
