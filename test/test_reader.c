/*
 * test_reader.c
 *		Clients that only read trees which another instance changes (TreeClientOptions.reader): what they find, and that they
 *		change nothing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/tree_fixture.h"
#include "tree/shared/state.h"

#define ENTRIES 4000u

static OtherInstance other;
static TestClient *reader = &other.client;

/* A tree of numbers, each its own TID, with every second place free between them; and the reader's handle of it. */
typedef struct Pair
{
	TreeRecord record;
	Tree *mine;
	Tree *theirs;
} Pair;

static void
pair_open(Pair *pair)
{
	pair->mine = new_tree(&narrow, &pair->record);
	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		TreeKey key = number_key(2 * i, i);

		must_insert(pair->mine, &key, false);
	}
	pair->theirs = open_tree(reader, &pair->record);
}

static void
pair_close(Pair *pair)
{
	tree_close(pair->theirs);
	tree_close(pair->mine);
}

/* Whether a lookup of the number finds an entry. */
static bool
finds(Tree *tree, uint64_t number)
{
	TreeKey key = number_key(number, 0);
	TreeBound low, high;
	const TreeBatch *batch;
	TreeScan *scan;
	TreeStatus status;

	bound_of_key(&tree->geometry, &key, &low);
	high = low;
	low.side = -1;
	high.side = 1;
	require_ok(tree_scan_open(tree, &scan));
	require_ok(tree_scan_seek(scan, TREE_FORWARD, &low, &high));
	status = tree_scan_next(scan, &batch);
	assert_true(status == TREE_OK || status == TREE_END);
	tree_scan_close(scan);
	return status == TREE_OK;
}

/* The TIDs of the middle half. */
static bool
is_of_the_middle(void *argument, uint32_t block, uint16_t offset)
{
	uint32_t tid = block * 100 + offset - 1;

	(void) argument;
	return tid >= ENTRIES / 4 && tid < ENTRIES * 3 / 4;
}

/* ---- merges ---- */

/* What is done between two chains of a merge, by another client of the owner's. */
static struct
{
	Tree *mine;   /* the other client's handle */
	Tree *theirs; /* the reader's */
	bool closed;  /* the barrier was closed once */
	bool busy;
	uint32_t looks;
	uint64_t next; /* number to add */
} between;

static void
add_and_look(void *argument, const char *name, bool before)
{
	(void) argument, (void) name;
	if (client.tree->closed != NULL)
		between.closed = true;
	if (!before || between.busy || !between.closed || client.tree->closed != NULL || client.tree->holding)
		return;
	between.busy = true;
	for (int i = 0; i < 8; i++)
	{
		TreeKey key = number_key(between.next, (uint32_t) between.next);
		bool hit;

		require_ok(tree_insert(between.mine, &key, &wal, &hit));
		assert_true(finds(between.theirs, between.next));
		/* Numbers between those that there were, all over the half that is empty now. */
		between.next = ENTRIES / 2 + (between.next + 2 * 97) % (ENTRIES - 200) + 1;
		between.next |= 1;
		between.looks++;
	}
	between.busy = false;
}

/*
 * From the moment when a merge lets others in again, whatever is added to a range whose leaves are gone is found by a reader that has pointers
 * to them.
 */
static void
test_merged(void **state)
{
	TreeVacuumCounts counts = {0};
	TreeMergeCounts merged = {0};
	TreeVacuum *walk;
	TreeMerge *merge;
	TreeStatus status;
	Pair pair;

	(void) state;
	pair_open(&pair);
	assert_int_equal(test_tree_entries(pair.theirs), ENTRIES);
	require_ok(tree_vacuum_open(pair.mine, &walk));
	while ((status = tree_vacuum_next(walk, is_of_the_middle, NULL, &counts)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	assert_int_equal(test_tree_entries(pair.theirs), ENTRIES / 2);
	between.mine = open_tree(&other_client, &pair.record);
	between.theirs = pair.theirs;
	between.closed = between.busy = false;
	between.looks = 0;
	between.next = ENTRIES + 1;
	tree_client_crash_points(client.tree, add_and_look);
	require_ok(tree_merge_open(pair.mine, walk, &merge));
	while ((status = tree_merge_next(merge, &merged)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	tree_client_crash_points(client.tree, NULL);
	assert_true(merged.leaves > 3);
	assert_true(between.looks > 8);
	tree_merge_close(merge);
	tree_vacuum_close(walk);
	assert_int_equal(test_tree_entries(pair.theirs), test_tree_entries(pair.mine));
	tree_close(between.mine);
	pair_close(&pair);
}

/* ---- marks ---- */

/* What the owner has marked as dead, the reader finds. */
static void
test_marks(void **state)
{
	const TreeBatch *batch;
	TreeDead dead[TREE_BATCH_MAX];
	TreeScan *scan;
	int marked;
	Pair pair;

	(void) state;
	pair_open(&pair);
	require_ok(tree_scan_open(pair.mine, &scan));
	require_ok(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL));
	require_ok(tree_scan_next(scan, &batch));
	for (int i = 0; i < batch->count; i++)
		dead[i] = (TreeDead){batch->entries[i].block, batch->entries[i].offset, batch->entries[i].cell};
	require_ok(tree_mark_dead(pair.mine, &batch->leaf, dead, batch->count, &wal, &marked));
	assert_true(marked > 0);
	tree_scan_close(scan);
	assert_int_equal(test_tree_entries(pair.mine), ENTRIES - (uint32_t) marked);
	assert_int_equal(test_tree_entries(pair.theirs), ENTRIES);
	pair_close(&pair);
}

/* ---- nothing is changed ---- */

/* Splits that are incomplete stay so: the reader goes right. */
static void
test_writes_nothing(void **state)
{
	TreeCounters before, after;
	Pair pair;

	(void) state;
	pair_open(&pair);
	assert_int_equal(test_tree_entries(pair.theirs), ENTRIES);
	tree_client_counters(reader->tree, &before);
	/* Behind its back the owner splits leaves, and its cached parents do not know of it. */
	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		TreeKey key = number_key(2 * i + 1, ENTRIES + i);

		must_insert(pair.mine, &key, false);
		if (i % 7 == 0)
			assert_true(finds(pair.theirs, 2 * i + 1));
	}
	assert_int_equal(test_tree_entries(pair.theirs), 2 * ENTRIES);
	/* Splits whose separators nobody has posted. */
	assert_true(walk_root_forgets(pair.mine) > 0);
	tree_forget_cached(other.instance.shared);
	assert_int_equal(test_tree_entries(pair.theirs), 2 * ENTRIES);
	for (uint32_t i = 0; i < 2 * ENTRIES; i += 50)
		assert_true(finds(pair.theirs, i));
	tree_client_counters(reader->tree, &after);
	assert_true(after.right_moves > before.right_moves);
	assert_int_equal(after.written_bytes, before.written_bytes);
	assert_int_equal(after.parent_posts, before.parent_posts);
	assert_int_equal(after.lock_acquisitions, before.lock_acquisitions);
	pair_close(&pair);
}

/* The record as the home has it, by one call. */
static void
test_record(void **state)
{
	TreeRecord change = {.mutated_epoch = 7, .nonce = 8, .removal_epoch = 7, .removal_lsn = 9};
	TreeRecord record;
	Pair pair;

	(void) state;
	pair_open(&pair);
	change.tree = pair.record.tree;
	change.root = pair.record.root;
	require_ok(tree_record_update(client.tree, &change));
	require_ok(tree_record_at_home(client.tree, pair.record.tree, tree_home(pair.record.root), &record));
	assert_int_equal(record.removal_epoch, 7);
	assert_int_equal(record.removal_lsn, 9);
	assert_int_equal(record.nonce, 8);
	assert_int_equal(tree_record_at_home(client.tree, 0, 0, &record), TREE_INVALID);
	assert_int_equal(tree_record_at_home(client.tree, pair.record.tree, TREE_MAX_NODES, &record),
	                 TREE_INVALID);
	require_ok(tree_drop(client.tree, pair.record.tree, tree_home(pair.record.root)));
	assert_int_equal(tree_record_at_home(client.tree, pair.record.tree, 0, &record), TREE_NOT_FOUND);
	pair_close(&pair);
}

/* ---- what was cached ---- */

/* From one call on, nothing that was cached counts. */
static void
test_forgets(void **state)
{
	TreeCounters before, after;
	Pair pair;

	(void) state;
	pair_open(&pair);
	assert_true(finds(pair.theirs, 100));
	tree_client_counters(reader->tree, &before);
	assert_true(finds(pair.theirs, 100));
	tree_client_counters(reader->tree, &after);
	assert_int_equal(after.cache_misses, before.cache_misses);
	tree_forget_cached(other.instance.shared);
	assert_true(finds(pair.theirs, 100));
	tree_client_counters(reader->tree, &after);
	assert_true(after.cache_misses > before.cache_misses);
	pair_close(&pair);
}

static int
start(void **state)
{
	test_techniques = &tree_owner_techniques;
	fixture_options.two_clients = true;
	if (fixture_start(state) != 0)
		return -1;
	other_start(&other);
	reader->tree->options.reader = true;
	return 0;
}

static int
stop(void **state)
{
	other_stop(&other);
	return fixture_stop(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merged), cmocka_unit_test(test_marks),   cmocka_unit_test(test_writes_nothing),
		cmocka_unit_test(test_record), cmocka_unit_test(test_forgets),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
