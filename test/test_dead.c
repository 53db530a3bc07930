/*
 * test_dead.c
 *		Dead marks (tree/change/dead.c): seen by nobody, never on a new entry, and not removed before they are proven.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/tree_fixture.h"

/* What a scan of the whole tree returned, and of its first leaf what marks need. */
typedef struct Read
{
	int count;
	int first_count; /* entries of the first leaf */
	TreeLeafSeen leaf;
	TreeDead first[TREE_BATCH_MAX];
} Read;

static void
read_all(Tree *tree, Read *read)
{
	const TreeBatch *batch;
	TreeScan *scan;
	TreeStatus status;

	memset(read, 0, sizeof(*read));
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL), TREE_OK);
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
	{
		if (read->count == 0)
		{
			read->leaf = batch->leaf;
			read->first_count = batch->count;
			for (int i = 0; i < batch->count; i++)
				read->first[i] =
					(TreeDead){batch->entries[i].block, batch->entries[i].offset, batch->entries[i].cell};
		}
		read->count += batch->count;
	}
	assert_int_equal(status, TREE_END);
	tree_scan_close(scan);
}

static int
count_all(Tree *tree)
{
	Read read;

	read_all(tree, &read);
	return read.count;
}

static int
mark_first(Tree *tree, const Read *read, int count)
{
	int marked;

	assert_int_equal(tree_mark_dead(tree, &read->leaf, read->first, count, &wal, &marked), TREE_OK);
	return marked;
}

static void
no_problem(void *argument, const char *message)
{
	fail_msg("check: %s", message);
}

static void
check(Tree *tree, uint64_t live, uint64_t dead)
{
	TreeStatistics statistics;
	uint64_t problems;

	assert_int_equal(tree_check(tree, no_problem, NULL, NULL, &statistics, &problems), TREE_OK);
	assert_int_equal(problems, 0);
	assert_int_equal(statistics.entries, live);
	assert_int_equal(statistics.dead, dead);
}

static void
insert_numbers(Tree *tree, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
	{
		TreeKey key = number_key(i, i);

		must_insert(tree, &key, false);
	}
}

/* Strings that tie with each other, half of them overflow keys. */
static void
insert_strings(Tree *tree, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		must_insert_tied(tree, i, i % 2 == 0 ? 47 : 299, "", false);
}

/* Marked entries are not returned; unproven they go along with every rewrite and split. */
static void
test_kept_until_proven(void **state)
{
	const TreeFormat *formats[] = {&narrow, &middle, &text, &whole};

	for (int f = 0; f < 4; f++)
	{
		void (*insert)(Tree *, uint32_t, uint32_t) = f < 2 ? insert_numbers : insert_strings;
		TreeWalPosition before = {.epoch = wal.epoch, .lsn = wal.lsn - 1};
		TreeRecord record;
		Tree *tree = new_tree(formats[f], &record);
		TreeCounters counters;
		Read read;

		insert(tree, 0, 40);
		read_all(tree, &read);
		assert_int_equal(mark_first(tree, &read, 30), 30);
		assert_int_equal(mark_first(tree, &read, 30), 0);
		assert_int_equal(count_all(tree), 10);
		check(tree, 10, 30);
		tree_counters(tree, &counters);
		assert_int_equal(counters.dead_marks, 30);

		tree_removal_proven(tree, &before);
		insert(tree, 40, 400);
		assert_int_equal(count_all(tree), 370);
		check(tree, 370, 30);

		/* What is proven goes with the next rewrite of its leaf. */
		tree_removal_proven(tree, &wal);
		tree_removal_proven(tree, &before);
		insert(tree, 400, 3000);
		assert_int_equal(count_all(tree), 2970);
		tree_close(tree);
	}
}

/* Proven marks make room: the leaf is rewritten and not split. */
static void
test_proven_go(void **state)
{
	TreeWalPosition later = {.epoch = wal.epoch + 1, .lsn = 1};

	for (int pass = 0; pass < 2; pass++)
	{
		TreeRecord record;
		Tree *tree = new_tree(&narrow, &record);
		TreeCounters counters;
		Read read;

		insert_numbers(tree, 0, 50);
		read_all(tree, &read);
		assert_int_equal(mark_first(tree, &read, 40), 40);
		/* By the LSN, or as marks of an epoch that has ended. */
		tree_removal_proven(tree, pass == 0 ? &wal : &later);
		insert_numbers(tree, 50, 90);
		check(tree, 50, 0);
		tree_counters(tree, &counters);
		assert_int_equal(counters.leaf_splits, 0);
		tree_close(tree);
	}
}

/* Overflow keys stay as long as the marked cells do: blocks that a rewrite gave back early are others' soon. */
static void
test_images_kept(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	Read read;

	insert_strings(tree, 0, 40);
	read_all(tree, &read);
	assert_int_equal(mark_first(tree, &read, 30), 30);
	/* A hit rewrites the leaf: of those that are not marked, one for each that the marks left. */
	for (int i = 30; i < 40; i++)
	{
		uint32_t number = read.first[i].block * 100 + read.first[i].offset - 1u;

		must_insert_tied(tree, number, number % 2 == 0 ? 47 : 299, "", true);
	}
	insert_strings(tree, 40, 200);
	check(tree, 170, 30);
	tree_close(tree);
}

/* What a hook for full leaves does. */
typedef struct Full
{
	Tree *tree;
	Tree *other;  /* inserts an entry again before it returns */
	uint32_t key; /* that entry's number */
	bool prove;   /* proves the marks */
	int remove;   /* removes so many entries that are live */
	bool answer;
	int calls;
	int marked;
	int duplicates;
} Full;

static bool
full_leaf(void *argument, TreeFullLeaf *leaf)
{
	Full *full = argument;

	assert_false(full->tree->client->holding);
	assert_true(tree_leaf_unchanged(full->tree, &leaf->leaf));
	full->calls++;
	full->marked = leaf->marked;
	full->duplicates = leaf->duplicates;
	for (int slot = 0, n = 0; slot < leaf->count && n < full->remove; slot++)
		if (leaf->entries[slot].live)
			leaf->entries[slot].remove = ++n > 0;
	if (full->other != NULL)
	{
		TreeKey key = number_key(full->key, full->key);

		must_insert(full->other, &key, true);
		assert_false(tree_leaf_unchanged(full->tree, &leaf->leaf));
	}
	if (full->prove)
		tree_removal_proven(full->tree, &wal);
	return full->answer;
}

/* A full leaf asks for its marks to be proven, or for others that are dead; then it is not split. */
static void
test_room(void **state)
{

	for (int pass = 0; pass < 5; pass++)
	{
		Full full = {.answer = pass != 1, .prove = pass == 0, .remove = pass < 2 ? 0 : pass == 3 ? 2 : 20};
		int marks = pass < 2 ? 30 : 0;
		TreeRecord record;
		TestClient second;
		TreeCounters counters;
		uint32_t full_at;
		Read read;

		full.tree = new_tree(&narrow, &record);
		full_at = full.tree->geometry.leaf_cells;
		insert_numbers(full.tree, 0, full_at);
		read_all(full.tree, &read);
		assert_int_equal(mark_first(full.tree, &read, marks), marks);
		tree_on_full(full.tree, full_leaf, &full, pass >= 2);
		test_client_open(&second, &instance, 1);
		/* The answer is about a generation that has gone. */
		if (pass == 4)
		{
			full.other = open_tree(&second, &record);
			full.key = 30;
		}
		insert_numbers(full.tree, full_at, full_at + 1);
		assert_int_equal(full.calls, 1);
		assert_int_equal(full.marked, marks);
		assert_int_equal(full.duplicates, 0);
		tree_counters(full.tree, &counters);
		/* Two that go make no room that is worth a rewrite. */
		assert_int_equal(counters.leaf_splits, pass == 0 || pass == 2 ? 0 : 1);
		assert_int_equal(counters.dead_removals, pass == 0 ? 30 : pass == 2 ? 20 : 0);
		assert_int_equal(count_all(full.tree), (int) full_at + 1 -
		                                           (pass == 0 || pass == 1 ? 30
		                                            : pass == 2            ? 20
		                                                                   : 0));
		check(full.tree, (uint64_t) count_all(full.tree), pass == 1 ? 30 : 0);
		tree_close(full.other);
		tree_close(full.tree);
		assert_int_equal(test_client_close(&second), TREE_OK);
	}
}

/* Versions of one row are what a table is asked about first. */
static void
test_room_duplicates(void **state)
{
	TreeRecord record;
	Full full = {.answer = false};

	full.tree = new_tree(&narrow, &record);
	tree_on_full(full.tree, full_leaf, &full, true);
	for (uint32_t i = 0; full.calls == 0; i++)
	{
		TreeKey key = number_key(i < 40 ? i : i - 20, i);

		must_insert(full.tree, &key, false);
	}
	/* Numbers from 20 on are there twice, of 40 and what is left of the leaf. */
	assert_int_equal(full.duplicates, 2 * (full.tree->geometry.leaf_cells - 40));
	tree_close(full.tree);
}

static bool
dead_below_20(void *argument, uint32_t block, uint16_t offset)
{
	return block * 100 + offset - 1 < 20;
}

static void
vacuum_all(Tree *tree, uint64_t removed)
{
	TreeVacuumCounts counts = {0};
	TreeVacuum *vacuum;
	TreeStatus status;

	assert_int_equal(tree_vacuum_open(tree, &vacuum), TREE_OK);
	while ((status = tree_vacuum_next(vacuum, dead_below_20, NULL, &counts)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	assert_int_equal(counts.removed, removed);
	tree_vacuum_close(vacuum);
}

/* An entry of the same key and TID as one that was judged before is a new one: no mark (N17). */
static void
test_never_a_new_entry(void **state)
{
	for (int pass = 0; pass < 3; pass++)
	{
		TreeRecord record;
		Tree *tree = new_tree(&narrow, &record);
		Read read;

		insert_numbers(tree, 0, 30);
		read_all(tree, &read);
		if (pass == 0)
		{
			TreeKey key = number_key(5, 5);

			/* Found again: a new row's, as far as anybody knows. */
			must_insert(tree, &key, true);
		}
		else if (pass == 1)
		{
			vacuum_all(tree, 20);
			insert_numbers(tree, 0, 20);
		}
		else
			insert_numbers(tree, 30, 300);
		assert_int_equal(mark_first(tree, &read, read.first_count), 0);
		assert_int_equal(count_all(tree), pass == 2 ? 300 : 30);
		tree_close(tree);
	}
}

/* VACUUM removes what it is told to, marked or not: the TIDs will be others' rows. */
static void
test_vacuum_takes_marked(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	Read read;

	insert_numbers(tree, 0, 40);
	read_all(tree, &read);
	assert_int_equal(mark_first(tree, &read, 30), 30);
	vacuum_all(tree, 20);
	check(tree, 10, 10);
	insert_numbers(tree, 0, 20);
	assert_int_equal(count_all(tree), 30);
	tree_close(tree);
}

/* The row of a dead-marked entry is gone, and its TID is another row's with the same key. */
static void
test_inserted_over(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	TreeKey key = number_key(3, 3);
	Read read;

	insert_numbers(tree, 0, 10);
	read_all(tree, &read);
	assert_int_equal(mark_first(tree, &read, 6), 6);
	must_insert(tree, &key, false);
	assert_int_equal(count_all(tree), 5);
	check(tree, 5, 5);
	tree_close(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_until_proven),
		cmocka_unit_test(test_proven_go),
		cmocka_unit_test(test_never_a_new_entry),
		cmocka_unit_test(test_vacuum_takes_marked),
		cmocka_unit_test(test_inserted_over),
		cmocka_unit_test(test_images_kept),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_room_duplicates),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
