/*
 * test_bulk.c
 *		Bulk load: trees of every size and key space against the model, and what a load may not do.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/checked_tree.h"
#include "tree/lock/lock.h"

static TreeStatus
add(CheckedTree *f, TreeBulk *bulk, uint64_t number, uint64_t tid)
{
	KeyEntry entry = entry_of(number, tid);
	KeyImage image;
	TreeKey key;

	keyspace_key(f->space, &entry, &image, &key);
	return tree_bulk_add(bulk, &key);
}

/* Loads `count` entries: runs of equal numbers of 1 to 4 TIDs. */
static void
load(CheckedTree *f, uint64_t count)
{
	TreeWalPosition wal = {.epoch = 3, .lsn = 777};
	TreeBulk *bulk;

	require_ok(tree_bulk_open(f->tree, &wal, &bulk));
	f->model.entries = malloc((count + 1) * sizeof(KeyEntry));
	f->model.room = count + 1;
	for (uint64_t i = 0; i < count; i++)
	{
		uint64_t number = i - i % (1 + i / 16 % 4);

		/* Ascending whatever the runs' lengths are: TIDs ascend. */
		if (i > 0 && number < f->model.entries[i - 1].number)
			number = f->model.entries[i - 1].number;
		require_ok(add(f, bulk, number, i));
		f->model.entries[i] = entry_of(number, i);
		f->model.count++;
	}
	require_ok(tree_bulk_finish(bulk));
}

static void
load_space(KeySpaceKind kind, uint64_t largest)
{
	static const uint64_t sizes[] = {0,  1,  2,  45, 50,  51,  52,  53,   54,   55,
	                                 56, 58, 60, 61, 104, 105, 500, 4000, 20000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] <= largest; i++)
	{
		CheckedTree f;
		TreeStatistics statistics, estimate;

		checked_tree_open(&f, kind);
		load(&f, sizes[i]);
		compare_check(&f, &statistics);
		require_ok(tree_estimate(f.tree, &estimate));
		assert_int_equal(estimate.entries, sizes[i]);
		assert_int_equal(estimate.leaves, statistics.leaves);
		assert_int_equal(estimate.inner_nodes, statistics.inner_nodes);
		assert_int_equal(estimate.height, statistics.height);
		assert_true(estimate.extent_bytes >= 65536);
		compare_everything(&f, sizes[i] + 2, 20);
		/* The tree lives on: inserts anywhere, splits of full leaves, removals. */
		insert_random(&f, 300, sizes[i] + 10, sizes[i] + 1);
		vacuum(&f);
		/* Images that take the blocks of removed ones. */
		insert_random(&f, 300, sizes[i] + 10, sizes[i] + 1000);
		compare_check(&f, &statistics);
		compare_everything(&f, sizes[i] + 10, 10);
		checked_tree_close(&f);
	}
}

#define LOAD_SPACE(name, kind, largest)                                                                      \
	static void load_##name(void **state)                                                                    \
	{                                                                                                        \
		(void) state;                                                                                        \
		load_space(kind, largest);                                                                           \
	}

LOAD_SPACE(16, KEYSPACE_16, 20000)
LOAD_SPACE(32_whole, KEYSPACE_32_WHOLE, 20000)
LOAD_SPACE(32_tied, KEYSPACE_32_TIED, 4000)
LOAD_SPACE(32_prefix, KEYSPACE_32_PREFIX, 4000)
LOAD_SPACE(64_overflow, KEYSPACE_64_OVERFLOW, 4000)
LOAD_SPACE(64_full, KEYSPACE_64_FULL, 4000)
LOAD_SPACE(64_prefix, KEYSPACE_64_PREFIX, 4000)
LOAD_SPACE(24_whole, KEYSPACE_24_WHOLE, 20000)
LOAD_SPACE(40_overflow, KEYSPACE_40_OVERFLOW, 4000)
LOAD_SPACE(48_prefix, KEYSPACE_48_PREFIX, 4000)

/* Separators are cut where that is allowed and two keys differ, and whole elsewhere. */
static void
load_keeps_wal_position(void **state)
{
	CheckedTree f;
	const TreeBatch *batch;
	uint64_t image[NODE_MAX_BYTES / 8];
	uint64_t entries = 0;
	TreeStatus status;

	checked_tree_open(&f, KEYSPACE_16);
	load(&f, 1000);
	require_ok(tree_scan_seek(f.scan, TREE_FORWARD, NULL, NULL));
	while ((status = tree_scan_next(f.scan, &batch)) == TREE_OK)
	{
		entries += (uint64_t) batch->count;
		require_ok(access_read_node(f.tree, batch->leaf.pointer, 0, image));
		assert_int_equal(image[HEADER_LSN], 777);
		assert_int_equal((uint32_t) image[HEADER_EPOCH], 3);
	}
	assert_int_equal(status, TREE_END);
	assert_int_equal(entries, 1000);
	checked_tree_close(&f);
}

static void
load_refuses(void **state)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	TreeBulk *bulk;
	CheckedTree f;

	checked_tree_open(&f, KEYSPACE_16);
	require_ok(tree_bulk_open(f.tree, &wal, &bulk));
	require_ok(add(&f, bulk, 10, 5));
	assert_int_equal(add(&f, bulk, 10, 5), TREE_INVALID);
	assert_int_equal(add(&f, bulk, 10, 4), TREE_INVALID);
	assert_int_equal(add(&f, bulk, 9, 9), TREE_INVALID);
	tree_bulk_abandon(bulk);
	compare_everything(&f, 10, 2);
	insert(&f, 1, 1);
	assert_int_equal(tree_bulk_open(f.tree, &wal, &bulk), TREE_INVALID);
	checked_tree_close(&f);
}

/* An abandoned load leaves an empty tree, whatever was written. */
static void
load_abandoned(void **state)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	TreeStatistics statistics;
	TreeBulk *bulk;
	CheckedTree f;

	checked_tree_open(&f, KEYSPACE_64_OVERFLOW);
	require_ok(tree_bulk_open(f.tree, &wal, &bulk));
	for (uint64_t i = 0; i < 20000; i++)
		require_ok(add(&f, bulk, i, i));
	tree_bulk_abandon(bulk);
	compare_check(&f, &statistics);
	insert_random(&f, 500, 1000, 1);
	compare_check(&f, &statistics);
	compare_everything(&f, 1000, 10);
	checked_tree_close(&f);
}

/* A full memory node: said so, and the tree may be dropped. */
static void
load_until_full(void **state)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	TreeNodeStatus before, after;
	TreeRecord record;
	TreeBulk *bulk;
	TreeStatus status = TREE_OK;
	Tree *tree;

	fixture_open(&(FixtureOptions){.node_bytes = 8 * MEGABYTE});
	require_ok(tree_node_status(client.tree, 0, &before));
	test_tree_create(&client, &keyspace(KEYSPACE_16)->format, &record);
	require_ok(tree_open(client.tree, record.tree, record.root, &record.format, NULL, NULL, &tree));
	require_ok(tree_bulk_open(tree, &wal, &bulk));
	for (uint64_t i = 0; status == TREE_OK && i < 10000000; i++)
	{
		KeyEntry entry = entry_of(i, i);
		TreeKey key;

		keyspace_key(keyspace(KEYSPACE_16), &entry, NULL, &key);
		status = tree_bulk_add(bulk, &key);
	}
	assert_int_equal(status, TREE_MEMORY_FULL);
	tree_bulk_abandon(bulk);
	tree_close(tree);
	require_ok(tree_drop(client.tree, record.tree, tree_home(record.root)));
	require_ok(tree_node_status(client.tree, 0, &after));
	assert_int_equal(after.trees, before.trees);
	fixture_close();
}

/* Two memory nodes: both get leaves, and scans cross from one to the other. */
static void
load_two_nodes(void **state)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	TreeRecord record;
	TreeStatistics statistics;
	TreeBulk *bulk;
	TreeScan *scan;
	Tree *tree;
	const TreeBatch *batch;
	uint64_t count = 100000, problems, seen = 0, at[2] = {0, 0};

	fixture_open(&(FixtureOptions){.nodes = 2});
	test_tree_create(&client, &keyspace(KEYSPACE_16)->format, &record);
	require_ok(tree_open(client.tree, record.tree, record.root, &record.format, NULL, NULL, &tree));
	require_ok(tree_bulk_open(tree, &wal, &bulk));
	for (uint64_t i = 0; i < count; i++)
	{
		KeyEntry entry = entry_of(i, i);
		TreeKey key;

		keyspace_key(keyspace(KEYSPACE_16), &entry, NULL, &key);
		require_ok(tree_bulk_add(bulk, &key));
	}
	require_ok(tree_bulk_finish(bulk));
	require_ok(tree_check(tree, NULL, NULL, NULL, &statistics, &problems));
	assert_int_equal(problems, 0);
	assert_int_equal(statistics.entries, count);
	require_ok(tree_scan_open(tree, &scan));
	for (int direction = 0; direction < 2; direction++)
	{
		seen = 0;
		require_ok(tree_scan_seek(scan, direction == 0 ? TREE_FORWARD : TREE_BACKWARD, NULL, NULL));
		while (tree_scan_next(scan, &batch) == TREE_OK)
			for (int i = 0; i < batch->count; i++)
			{
				uint64_t number = direction == 0 ? seen : count - 1 - seen;
				KeyEntry entry = entry_of(number, number);

				assert_int_equal(batch->entries[i].block, entry.block);
				assert_int_equal(batch->entries[i].offset, entry.offset);
				at[pointer_memory_node(batch->leaf.pointer)]++;
				seen++;
			}
		assert_int_equal(seen, count);
	}
	assert_true(at[0] > count / 4 && at[1] > count / 4);
	tree_scan_close(scan);
	tree_close(tree);
	fixture_close();
}

/* Each cell is written once, in large chains: bytes and round trips tell, not time. */
static void
load_writes_once(void **state)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	uint64_t count = 200000, leaves;
	TreeCounters before, after;
	TreeBulk *bulk;
	CheckedTree f;
	TreeKey key;

	checked_tree_open(&f, KEYSPACE_16);
	memset(&key, 0, sizeof(key));
	tree_counters(f.tree, &before);
	require_ok(tree_bulk_open(f.tree, &wal, &bulk));
	for (uint64_t i = 0; i < count; i++)
	{
		key.norm[0] = i;
		key.block = (uint32_t) (i / 200);
		key.offset = (uint16_t) (1 + i % 200);
		require_ok(tree_bulk_add(bulk, &key));
	}
	require_ok(tree_bulk_finish(bulk));
	tree_counters(f.tree, &after);
	/* Leaves of 64 places for cells, at least half full; inner nodes and extent headers are below a tenth of that. */
	leaves = count / 32;
	assert_true(after.written_bytes - before.written_bytes <= leaves * 1024 * 11 / 10);
	assert_true(after.round_trips - before.round_trips <= leaves / 8);
	checked_tree_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_16),          cmocka_unit_test(load_32_whole),
		cmocka_unit_test(load_32_tied),     cmocka_unit_test(load_32_prefix),
		cmocka_unit_test(load_64_overflow), cmocka_unit_test(load_64_full),
		cmocka_unit_test(load_64_prefix),   cmocka_unit_test(load_keeps_wal_position),
		cmocka_unit_test(load_24_whole),    cmocka_unit_test(load_40_overflow),
		cmocka_unit_test(load_48_prefix),   cmocka_unit_test(load_refuses),
		cmocka_unit_test(load_abandoned),   cmocka_unit_test(load_writes_once),
	};

	const struct CMUnitTest apart[] = {
		cmocka_unit_test(load_until_full),
		cmocka_unit_test(load_two_nodes),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop) +
	       cmocka_run_group_tests(apart, NULL, NULL);
}
