/*
 * test_scan.c
 *		Scans against a sorted model, in every key space: ranges, both directions, reading ahead, and trees that are split
 *		and vacuumed between two batches.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/cost.h"
#include "support/checked_tree.h"
#include "tree/lock/lock.h"

/* From an empty tree to one of three levels, with ranges at every size; then removals. */
static void
scan_space(KeySpaceKind kind, uint64_t largest)
{
	CheckedTree f;
	uint64_t tid = 1;

	checked_tree_open(&f, kind);
	compare_everything(&f, 50, 3);
	for (uint64_t size = 4; size <= largest; size *= 4)
	{
		uint64_t range = size / 2 + 4;

		insert_random(&f, size, range, tid);
		tid += size;
		compare_everything(&f, range, 40);
	}
	vacuum(&f);
	compare_everything(&f, largest, 40);
	insert_random(&f, 100, largest, tid);
	compare_everything(&f, largest, 40);
	checked_tree_close(&f);
}

#define SCAN_SPACE(name, kind, largest)                                                                      \
	static void scan_##name(void **state)                                                                    \
	{                                                                                                        \
		(void) state;                                                                                        \
		scan_space(kind, largest);                                                                           \
	}

SCAN_SPACE(16, KEYSPACE_16, 16384)
SCAN_SPACE(32_whole, KEYSPACE_32_WHOLE, 16384)
SCAN_SPACE(32_tied, KEYSPACE_32_TIED, 4096)
SCAN_SPACE(32_prefix, KEYSPACE_32_PREFIX, 1024)
SCAN_SPACE(64_overflow, KEYSPACE_64_OVERFLOW, 4096)
SCAN_SPACE(64_full, KEYSPACE_64_FULL, 4096)
SCAN_SPACE(64_prefix, KEYSPACE_64_PREFIX, 1024)
SCAN_SPACE(24_whole, KEYSPACE_24_WHOLE, 16384)
SCAN_SPACE(40_overflow, KEYSPACE_40_OVERFLOW, 4096)
SCAN_SPACE(48_prefix, KEYSPACE_48_PREFIX, 1024)

/* NULLs, as the leading bit is for: numbers on both sides of it. */
static void
scan_leading_bit(void **state)
{
	CheckedTree f;

	checked_tree_open(&f, KEYSPACE_16);
	for (uint64_t i = 0; i < 3000; i++)
		insert(&f, KEYSPACE_LIMIT / 2 - 1500 + i, i);
	compare_scan(&f, TREE_FORWARD, NULL, NULL, 0, 3000);
	compare_scan(&f, TREE_BACKWARD, NULL, NULL, 0, 3000);
	for (int i = 0; i < 100; i++)
	{
		uint64_t a = KEYSPACE_LIMIT / 2 - 30 + key_random(&f.random, 60);

		compare_range(&f, a, -1, a + 20, 1);
	}
	checked_tree_close(&f);
}

/* A bound of the leading word alone, as of the first of several columns. */
static void
scan_by_prefix(void **state)
{
	CheckedTree f;

	checked_tree_open(&f, KEYSPACE_32_WHOLE);
	insert_random(&f, 8000, 1 << 16, 1);
	for (uint64_t i = 0; i < 17; i++)
	{
		TreeBound lower, upper;
		uint64_t number = i << 12;

		keyspace_bound(f.space, &number, -1, &lower);
		lower.norm_length = 8;
		upper = lower;
		upper.side = 1;
		compare_scan(&f, TREE_FORWARD, &lower, &upper, (int64_t) key_model_find(&f.model, number),
		             (int64_t) key_model_find(&f.model, number + 4096));
		compare_scan(&f, TREE_BACKWARD, &lower, &upper, (int64_t) key_model_find(&f.model, number),
		             (int64_t) key_model_find(&f.model, number + 4096));
	}
	checked_tree_close(&f);
}

/* A bound that only the comparator knows: no normalized bytes at all. */
static void
scan_by_comparator(void **state)
{
	CheckedTree f;

	checked_tree_open(&f, KEYSPACE_64_FULL);
	insert_random(&f, 2000, 1000, 1);
	for (uint64_t i = 0; i < 20; i++)
	{
		TreeBound lower, upper;

		f.low = key_random(&f.random, 1000);
		f.high = f.low + 100;
		keyspace_bound(f.space, &f.low, -1, &lower);
		keyspace_bound(f.space, &f.high, 1, &upper);
		lower.norm_bits_valid = upper.norm_bits_valid = 0;
		lower.norm_length = upper.norm_length = 0;
		compare_scan(&f, TREE_FORWARD, &lower, &upper, (int64_t) key_model_find(&f.model, f.low),
		             (int64_t) key_model_find(&f.model, f.high + 1));
	}
	checked_tree_close(&f);
}

/* ---- bases in the comparator's order ---- */

/* Comparisons of one lookup in a tree of 40 leaves: by halves through the inner nodes, a leaf's base, and two fences. */
#define LOOKUP_COMPARES 32

/* Loads the numbers 0, 0, 2, 2, 4, 4... */
static void
load_pairs(CheckedTree *f, uint64_t count)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1000};
	TreeBulk *bulk;

	require_ok(tree_bulk_open(f->tree, &wal, &bulk));
	for (uint64_t i = 0; i < count; i++)
	{
		KeyEntry entry = entry_of(i - i % 2, i);
		KeyImage image;
		TreeKey key;

		keyspace_key(f->space, &entry, &image, &key);
		require_ok(tree_bulk_add(bulk, &key));
		assert_true(key_model_add(&f->model, &entry));
	}
	require_ok(tree_bulk_finish(bulk));
}

/* How many leaves there are, and how many of them say that their base is ordered. */
static uint64_t
count_leaves(CheckedTree *f, uint64_t *ordered)
{
	uint64_t image[NODE_MAX_BYTES / 8];
	const TreeBatch *batch;
	uint64_t leaves = 0;

	*ordered = 0;
	require_ok(tree_scan_seek(f->scan, TREE_FORWARD, NULL, NULL));
	for (; tree_scan_next(f->scan, &batch) == TREE_OK; leaves++)
	{
		require_ok(access_read_node(f->tree, batch->leaf.pointer, 0, image));
		*ordered += (node_flags(image) & NODE_BASE_ORDERED) != 0;
	}
	return leaves;
}

static uint64_t
lookup_compares(CheckedTree *f, uint64_t range)
{
	uint64_t before = keyspace_compares;

	for (uint64_t i = 0; i < 100; i++)
	{
		uint64_t number = key_random(&f->random, range);

		compare_range(f, number, -1, number, 1);
	}
	return (keyspace_compares - before) / 200;
}

/* Bounds that are entries themselves, as of a scan that goes on behind the last one: they are not within. */
static void
compare_between_entries(CheckedTree *f)
{
	for (int i = 0; i < 30; i++)
	{
		uint64_t from = key_random(&f->random, f->model.count);
		uint64_t to = from + key_random(&f->random, f->model.count - from < 9 ? f->model.count - from : 9);
		KeyImage images[2];
		TreeBound low, high;
		TreeKey key;

		keyspace_key(f->space, &f->model.entries[from], &images[0], &key);
		bound_of_key(&f->tree->geometry, &key, &low);
		keyspace_key(f->space, &f->model.entries[to], &images[1], &key);
		bound_of_key(&f->tree->geometry, &key, &high);
		compare_scan(f, TREE_FORWARD, &low, &high, (int64_t) from + 1, (int64_t) to);
		compare_scan(f, TREE_BACKWARD, &low, &high, (int64_t) from + 1, (int64_t) to);
	}
}

/*
 * Where one normalized key stands for all: a loaded tree is searched by halves, also in its leaves, and so are the halves of
 * a split; what inserts add is found and sorted in; a rewrite that cannot tell the order gives the claim up.
 */
static void
scan_ordered(KeySpaceKind kind)
{
	CheckedTree f;
	TreeStatistics statistics;
	uint64_t leaves, ordered;

	checked_tree_open(&f, kind);
	load_pairs(&f, 2000);
	leaves = count_leaves(&f, &ordered);
	assert_int_equal(leaves, ordered);
	assert_in_range(leaves, 30, 50);
	assert_in_range(lookup_compares(&f, 2010), 4, LOOKUP_COMPARES);
	compare_everything(&f, 2010, 30);
	compare_between_entries(&f);

	/* A few in each tail: still less than every cell of a base. */
	insert_random(&f, 200, 2010, 3000);
	assert_in_range(lookup_compares(&f, 2010), 4, LOOKUP_COMPARES + 16);
	compare_everything(&f, 2010, 30);
	compare_between_entries(&f);
	compare_check(&f, &statistics);

	/* Splits. */
	insert_random(&f, 2000, 2010, 4000);
	leaves = count_leaves(&f, &ordered);
	assert_true(leaves > 55);
	assert_int_equal(leaves, ordered);
	compare_everything(&f, 2010, 30);
	compare_check(&f, &statistics);

	/* Removals rewrite leaves with a tail. */
	vacuum(&f);
	leaves = count_leaves(&f, &ordered);
	assert_true(ordered < leaves / 2);
	compare_everything(&f, 2010, 30);
	insert_random(&f, 2000, 2010, 8000);
	leaves = count_leaves(&f, &ordered);
	assert_true(ordered > leaves / 2);
	compare_everything(&f, 2010, 30);
	compare_check(&f, &statistics);
	checked_tree_close(&f);
}

static void
scan_ordered_bases(void **state)
{
	scan_ordered(KEYSPACE_32_PREFIX);
	scan_ordered(KEYSPACE_64_PREFIX);
}

/* The claim of one leaf: kept by what only removes, given up by a rewrite that merges a tie. */
static void
scan_claims(void **state)
{
	CheckedTree f;
	uint64_t ordered;

	checked_tree_open(&f, KEYSPACE_32_PREFIX);
	load_pairs(&f, 20);
	vacuum(&f);
	assert_int_equal(count_leaves(&f, &ordered), 1);
	assert_int_equal(ordered, 1);
	insert(&f, 7, 101);
	insert(&f, 3, 100);
	assert_int_equal(count_leaves(&f, &ordered), 1);
	assert_int_equal(ordered, 1);
	compare_everything(&f, 24, 30);
	insert(&f, 3, 100); /* there already: a rewrite */
	assert_int_equal(count_leaves(&f, &ordered), 1);
	assert_int_equal(ordered, 0);
	compare_everything(&f, 24, 30);
	checked_tree_close(&f);
}

/* Entries that only the comparator orders, in tails whose leaves have no other like them. */
static void
scan_tied_tails(void **state)
{
	CheckedTree f;

	checked_tree_open(&f, KEYSPACE_32_TIED);
	for (uint64_t i = 0; i < 300; i++)
		insert(&f, 32 * i, i);
	for (uint64_t i = 0; i < 300; i += 10)
	{
		insert(&f, 32 * i + 21, 1000 + i);
		insert(&f, 32 * i + 19, 1001 + i);
	}
	compare_everything(&f, 32 * 300, 20);
	checked_tree_close(&f);
}

/* ---- chains ---- */

static uint64_t
chains(void)
{
	TreeCounters counters;

	tree_client_counters(client.tree, &counters);
	return counters.round_trips;
}

static uint64_t
leaf_reads(void)
{
	TreeCounters counters;

	tree_client_counters(client.tree, &counters);
	return counters.leaf_reads;
}

/* A lookup is one chain; a scan of n leaves few more than n / 8; and nothing is read beyond the stop bound. */
static void
scan_reads_ahead(void **state)
{
	CheckedTree f;
	uint64_t before, reads;
	TreeStatistics statistics;
	uint64_t problems;

	checked_tree_open(&f, KEYSPACE_16);
	for (uint64_t i = 0; i < 20000; i++)
		insert(&f, i, i);
	require_ok(tree_check(f.tree, NULL, NULL, NULL, &statistics, &problems));
	assert_int_equal(problems, 0);
	assert_true(statistics.leaves > 300);
	compare_range(&f, 7000, -1, 7000, 1);
	before = chains();
	reads = leaf_reads();
	for (uint64_t i = 0; i < 100; i++)
		compare_range(&f, 7000 + i, -1, 7000 + i, 1);
	assert_int_equal(chains() - before, 200);
	assert_int_equal(leaf_reads() - reads, 200);

	before = chains();
	compare_scan(&f, TREE_FORWARD, NULL, NULL, 0, 20000);
	assert_true(chains() - before < statistics.leaves / 8 + 20);
	before = chains();
	compare_scan(&f, TREE_BACKWARD, NULL, NULL, 0, 20000);
	assert_true(chains() - before < statistics.leaves / 8 + 20);

	/* Ten leaves or so: all of those read are within the range, but for one at most. */
	for (uint64_t i = 0; i < 50; i++)
	{
		uint64_t from = i * 300;
		uint64_t most = 10 * statistics.leaves * 60 / 20000;

		reads = leaf_reads();
		compare_range(&f, from, -1, from + 500, -1);
		assert_true(leaf_reads() - reads <= 2 * (500 * statistics.leaves / 20000 + 2) + most);
	}
	checked_tree_close(&f);
}

/* A scan that stops short of the next separators never reads their leaves. */
static void
scan_stops_reading(void **state)
{
	CheckedTree f;
	const TreeBatch *batch;
	TreeBound stop;
	uint64_t reads, batches = 0;
	int64_t place = 0;
	TreeStatus status;

	checked_tree_open(&f, KEYSPACE_16);
	for (uint64_t i = 0; i < 5000; i++)
		insert(&f, i, i);
	f.high = 1000;
	keyspace_bound(f.space, &f.high, -1, &stop);
	reads = leaf_reads();
	require_ok(tree_scan_seek(f.scan, TREE_FORWARD, NULL, &stop));
	while ((status = tree_scan_next(f.scan, &batch)) == TREE_OK)
	{
		compare_batch(&f, batch, TREE_FORWARD, &place);
		batches++;
	}
	assert_int_equal(status, TREE_END);
	assert_int_equal(place, 1000);
	assert_true(batches > 10);
	assert_true(leaf_reads() - reads <= batches + 1);
	checked_tree_close(&f);
}

/* ---- trees that change ---- */

/*
 * Splits and removals between two batches: an entry that stays is met once, in order; one that came or went meanwhile
 * at most once.
 */
static void
scan_changing(KeySpaceKind kind, TreeDirection direction)
{
	CheckedTree f;
	KeyModel before;
	const TreeBatch *batch;
	uint64_t tid = 1, range = 2000, met = 0;
	bool have_last = false;
	KeyEntry last = {0};
	TreeStatus status;

	checked_tree_open(&f, kind);
	insert_random(&f, 2000, range, tid);
	tid += 2000;
	before = f.model;
	before.entries = malloc(before.count * sizeof(KeyEntry));
	memcpy(before.entries, f.model.entries, before.count * sizeof(KeyEntry));
	require_ok(tree_scan_seek(f.scan, direction, NULL, NULL));
	while ((status = tree_scan_next(f.scan, &batch)) == TREE_OK)
	{
		uint64_t near;

		for (int i = 0; i < batch->count; i++)
		{
			KeyEntry entry = {.block = batch->entries[i].block, .offset = batch->entries[i].offset};
			TreeKey key;

			require_ok(tree_batch_key(f.scan, batch, i, &key));
			entry.number = keyspace_number(f.space, &key);
			assert_true(key_model_has(&f.model, &entry));
			if (have_last)
				assert_true(direction == TREE_FORWARD ? key_entry_compare(&last, &entry) < 0
				                                      : key_entry_compare(&last, &entry) > 0);
			met += key_model_has(&before, &entry);
			last = entry;
			have_last = true;
		}
		/* Around here and ahead: the next leaves are split while they are being read ahead. */
		near = last.number;
		for (int i = 0; i < 60; i++)
		{
			uint64_t number = direction == TREE_FORWARD
			                      ? near + key_random(&f.random, 100)
			                      : near - key_random(&f.random, near < 100 ? near + 1 : 100);

			insert(&f, number, tid++);
		}
	}
	assert_int_equal(status, TREE_END);
	assert_int_equal(met, before.count);
	free(before.entries);
	compare_scan(&f, TREE_FORWARD, NULL, NULL, 0, (int64_t) f.model.count);
	checked_tree_close(&f);
}

static void
scan_forward_while_splitting(void **state)
{
	scan_changing(KEYSPACE_16, TREE_FORWARD);
	scan_changing(KEYSPACE_64_OVERFLOW, TREE_FORWARD);
}

static void
scan_backward_while_splitting(void **state)
{
	scan_changing(KEYSPACE_16, TREE_BACKWARD);
	scan_changing(KEYSPACE_64_OVERFLOW, TREE_BACKWARD);
}

/* An entry whose image went away with it between the leaf's READ and its own is not returned as another one. */
static void
scan_images_gone(void **state)
{
	CheckedTree f;
	const TreeBatch *batch;
	TreeKey key;
	uint64_t gone = 0, there = 0;

	checked_tree_open(&f, KEYSPACE_64_PREFIX);
	for (uint64_t i = 0; i < 30; i++)
		insert(&f, i, i);
	require_ok(tree_scan_seek(f.scan, TREE_FORWARD, NULL, NULL));
	require_ok(tree_scan_next(f.scan, &batch));
	assert_int_equal(batch->count, 30);
	checked_tree_close(&f);

	/* Not tied: the scan itself needs no image, so they are fetched afterwards. */
	checked_tree_open(&f, KEYSPACE_64_FULL);
	for (uint64_t i = 1; i < 30; i++)
		insert(&f, i * 4 + 2, i);
	require_ok(tree_scan_seek(f.scan, TREE_FORWARD, NULL, NULL));
	require_ok(tree_scan_next(f.scan, &batch));
	vacuum(&f);
	for (uint64_t i = 0; i < 60; i++)
		insert(&f, 1000 + i * 4 + 2, 100 + i); /* takes the blocks over */
	for (int i = 0; i < batch->count; i++)
	{
		TreeStatus status = tree_batch_key(f.scan, batch, i, &key);

		if (status == TREE_NOT_FOUND)
		{
			assert_true(is_dead(NULL, batch->entries[i].block, batch->entries[i].offset));
			gone++;
			continue;
		}
		require_ok(status);
		assert_true(keyspace_number(f.space, &key) < 200);
		there++;
	}
	assert_true(gone > 0);
	assert_true(there >= 19);
	checked_tree_close(&f);
}

/* The comparator jumps out of a scan, at every call that it gets: the scan can be sought again, nothing is held. */
static void
scan_jumps(void **state)
{
	CheckedTree f;
	TreeScan *volatile scan;
	volatile uint64_t jumps = 0;
	volatile uint64_t n;

	checked_tree_open(&f, KEYSPACE_64_PREFIX);
	insert_random(&f, 150, 100, 1);
	scan = f.scan;
	for (n = 1; n < 400; n += 7)
	{
		const TreeBatch *batch;

		tree_client_rest(client.tree);
		keyspace_jump_at = keyspace_compares + n;
		if (setjmp(keyspace_jump) == 0)
		{
			TreeBound bound;

			f.low = 50;
			keyspace_bound(f.space, &f.low, -1, &bound);
			require_ok(tree_scan_seek(scan, TREE_FORWARD, &bound, NULL));
			while (tree_scan_next(scan, &batch) == TREE_OK)
				;
		}
		else
			jumps++;
		keyspace_jump_at = 0;
		assert_int_equal(instance.environment->slots[0].holds, 0);
	}
	assert_true(jumps > 10);
	compare_everything(&f, 100, 5);
	checked_tree_close(&f);
}

/* A scan of everything that is asked to stop all the time, and goes on: how often it did stop. */
static int
compare_stopped_scan(CheckedTree *f, TreeDirection direction)
{
	bool forward = direction == TREE_FORWARD;
	int64_t place = forward ? 0 : (int64_t) f->model.count - 1;
	int stops = 0;
	const TreeBatch *batch;
	TreeStatus status;

	require_ok(tree_scan_seek(f->scan, direction, NULL, NULL));
	instance.environment->slots[0].stop = 1;
	while ((status = tree_scan_next(f->scan, &batch)) != TREE_END)
	{
		if (status == TREE_STOPPED)
			stops++;
		else
		{
			require_ok(status);
			compare_batch(f, batch, direction, &place);
		}
	}
	instance.environment->slots[0].stop = 0;
	assert_int_equal(place, forward ? (int64_t) f->model.count : -1);
	return stops;
}

/* Cancel is served between two leaves without entries, and the scan goes on afterwards, with nothing lost or met twice. */
static void
scan_is_stopped(void **state)
{
	CheckedTree f;

	checked_tree_open(&f, KEYSPACE_16);
	for (uint64_t i = 0; i < 3000; i++)
		insert(&f, i, 3 * i + 1); /* every third block's TIDs are dead, 66 numbers in a row: whole leaves */
	vacuum(&f);
	assert_true(compare_stopped_scan(&f, TREE_FORWARD) >= 3);
	assert_true(compare_stopped_scan(&f, TREE_BACKWARD) >= 3);
	compare_scan(&f, TREE_FORWARD, NULL, NULL, 0, (int64_t) f.model.count);
	checked_tree_close(&f);
}

/* Whether the batch's leaf is the one that was read: one READ of its header. */
static bool
unchanged(CheckedTree *f, const TreeBatch *batch)
{
	Cost cost;
	bool result;

	cost_begin(&client, &cost);
	require_ok(tree_batch_unchanged(f->scan, batch, &result));
	cost_end(&client, &cost);
	assert_int_equal(cost.tree.round_trips, 1);
	assert_int_equal(cost.tree.read_bytes, 64);
	return result;
}

/* What is added beside a batch's entries changes nothing for them; a removal, and a split, are told. */
static void
scan_is_told_of_removals(void **state)
{
	CheckedTree f;
	const TreeBatch *batch;

	for (KeySpaceKind kind = 0; kind < KEYSPACES; kind++)
	{
		checked_tree_open(&f, kind);
		for (uint64_t i = 0; i < 4; i++)
			insert(&f, 10 * i, 3 * i + 1); /* TIDs in blocks that stay */
		require_ok(tree_scan_seek(f.scan, TREE_FORWARD, NULL, NULL));
		require_ok(tree_scan_next(f.scan, &batch));
		assert_int_equal(batch->count, 4);
		assert_true(unchanged(&f, batch));
		insert(&f, 15, 100);
		assert_true(unchanged(&f, batch));
		vacuum(&f);
		assert_true(unchanged(&f, batch));
		insert(&f, 25, 2);
		assert_true(unchanged(&f, batch));
		vacuum(&f); /* the last one */
		assert_false(unchanged(&f, batch));
		require_ok(tree_scan_seek(f.scan, TREE_BACKWARD, NULL, NULL));
		require_ok(tree_scan_next(f.scan, &batch));
		assert_true(unchanged(&f, batch));
		insert_random(&f, 200, 100, 1000);
		assert_false(unchanged(&f, batch)); /* it was split */
		checked_tree_close(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scan_16),
		cmocka_unit_test(scan_32_whole),
		cmocka_unit_test(scan_32_tied),
		cmocka_unit_test(scan_32_prefix),
		cmocka_unit_test(scan_64_overflow),
		cmocka_unit_test(scan_64_full),
		cmocka_unit_test(scan_64_prefix),
		cmocka_unit_test(scan_24_whole),
		cmocka_unit_test(scan_40_overflow),
		cmocka_unit_test(scan_48_prefix),
		cmocka_unit_test(scan_leading_bit),
		cmocka_unit_test(scan_by_prefix),
		cmocka_unit_test(scan_by_comparator),
		cmocka_unit_test(scan_ordered_bases),
		cmocka_unit_test(scan_claims),
		cmocka_unit_test(scan_tied_tails),
		cmocka_unit_test(scan_reads_ahead),
		cmocka_unit_test(scan_stops_reading),
		cmocka_unit_test(scan_forward_while_splitting),
		cmocka_unit_test(scan_backward_while_splitting),
		cmocka_unit_test(scan_images_gone),
		cmocka_unit_test(scan_jumps),
		cmocka_unit_test(scan_is_stopped),
		cmocka_unit_test(scan_is_told_of_removals),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
