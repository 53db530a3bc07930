/*
 * test_unverified.c
 *		Leaves whose stamps a crash has left unproven (node.h): known as such whatever is added to them and split, until
 *		somebody has looked at every entry (heal.c); and marks of the dead that are void.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/tree_fixture.h"

/* Epoch 1 ended at LSN 100 and epoch 2, clean, at 300; epoch 3 ended at 400, but later 4 at 350; 5 is in use. */
static const TreeWalLimits ends = {.epoch = 5, .first = 1, .count = 4, .limit = {100, UINT64_MAX, 350, 350}};

/* Whether a root leaf with this stamp is unverified. */
static bool
stamped(uint32_t epoch, uint64_t lsn)
{
	TreeWalPosition at = {epoch, lsn};
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	TreeKey key = number_key(1, 1);
	const TreeBatch *batch;
	TreeScan *scan;
	bool hit, unverified;

	assert_int_equal(tree_insert(tree, &key, &at, &hit), TREE_OK);
	tree->geometry.ends = &ends;
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL), TREE_OK);
	assert_int_equal(tree_scan_next(scan, &batch), TREE_OK);
	unverified = batch->unverified;
	tree_scan_close(scan);
	tree_close(tree);
	return unverified;
}

static void
test_limits(void **state)
{
	TreeWalLimits later = {.epoch = 9, .first = 7, .count = 2, .limit = {100, 200}};
	NodeGeometry g = node_geometry(&narrow);

	assert_false(stamped(1, 100));
	assert_true(stamped(1, 101));
	assert_false(stamped(2, 1000));
	assert_false(stamped(3, 350));
	assert_true(stamped(3, 351));
	assert_true(stamped(4, 351));
	assert_false(stamped(5, 1000));
	assert_true(stamped(6, 1));
	/* Without ends everything is proven; epochs that are merged are judged by the first. */
	assert_true(wal_position_is_proven(&g, 6, 1000));
	g.ends = &later;
	assert_true(wal_position_is_proven(&g, 3, 100));
	assert_false(wal_position_is_proven(&g, 3, 101));
	assert_false(wal_position_is_proven(&g, 7, 101));
	assert_true(wal_position_is_proven(&g, 8, 200));
	assert_true(wal_position_is_proven(&g, 0, 1000));
}

/* Numbers [from, to) with TIDs of the same number. */
static void
insert_at(Tree *tree, uint32_t from, uint32_t to, TreeWalPosition at)
{
	for (uint32_t i = from; i < to; i++)
	{
		TreeKey key = number_key(i, i);
		bool hit;

		assert_int_equal(tree_insert(tree, &key, &at, &hit), TREE_OK);
	}
}

/* What a scan says of the tree. */
typedef struct Seen
{
	int leaves;
	int unverified; /* leaves */
	int marks_void;
	int count;
	int unverified_count; /* entries of unverified leaves */
	TreeBatch first;      /* the first leaf that is unverified or has void marks */
} Seen;

static Seen
see(Tree *tree)
{
	static Seen seen;
	const TreeBatch *batch;
	TreeScan *scan;
	TreeStatus status;

	memset(&seen, 0, sizeof(seen));
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	tree_scan_unverified(scan, true);
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL), TREE_OK);
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
	{
		if ((batch->unverified || batch->marks_void) && seen.unverified + seen.marks_void == 0)
			seen.first = *batch;
		seen.leaves++;
		seen.unverified += batch->unverified;
		seen.marks_void += batch->marks_void;
		seen.count += batch->count;
		seen.unverified_count += batch->unverified ? batch->count : 0;
	}
	assert_int_equal(status, TREE_END);
	tree_scan_close(scan);
	return seen;
}

static const TreeWalPosition lost = {.epoch = 3, .lsn = 500};
static const TreeWalPosition kept = {.epoch = 3, .lsn = 300};
static const TreeWalPosition now = {.epoch = 5, .lsn = 400};

/* Inserts and splits hand the doubt on; leaves that were proven stay so. */
static void
test_handed_on(void **state)
{
	for (int pass = 0; pass < 2; pass++)
	{
		TreeRecord record;
		Tree *tree = new_tree(&narrow, &record);
		Seen seen;

		insert_at(tree, 0, 40, pass == 0 ? lost : kept);
		tree->geometry.ends = &ends;
		insert_at(tree, 40, 1000, now);
		seen = see(tree);
		assert_int_equal(seen.count, 1000);
		assert_true(seen.leaves > 10);
		assert_true(pass == 0 ? seen.unverified == seen.leaves : seen.unverified == 0);
		tree_close(tree);
	}
}

/* The first `count` entries of the leaf that was seen, as those that are gone. */
static TreeDead *
gone_of(const Seen *seen, int count)
{
	static TreeDead gone[TREE_BATCH_MAX];

	assert_true(count <= seen->first.count);
	for (int i = 0; i < count; i++)
		gone[i] = (TreeDead){seen->first.entries[i].block, seen->first.entries[i].offset,
		                     seen->first.entries[i].cell};
	return gone;
}

static bool
heal_first(Tree *tree, const Seen *seen, int gone)
{
	bool healed;

	assert_int_equal(tree_heal_leaf(tree, &seen->first.leaf, gone_of(seen, gone), gone, &now, &healed),
	                 TREE_OK);
	return healed;
}

/* Healing ends the doubt, of each leaf for itself, and takes what is gone, from postings too; an empty leaf as well. */
static void
test_healed(void **state)
{
	TreeFormat postings = narrow;

	postings.postings = true;
	for (int pass = 0; pass < 3; pass++)
	{
		TreeRecord record;
		Tree *tree = new_tree(pass == 2 ? &postings : &narrow, &record);
		TreeStatistics statistics;
		uint64_t problems;
		int expected = 600;
		Seen seen;

		if (pass < 2)
			insert_at(tree, 0, 600, lost);
		else
			for (uint32_t i = 0; i < 600; i++)
			{
				TreeKey key = number_key(i / 150, i);
				bool hit;

				assert_int_equal(tree_insert(tree, &key, &lost, &hit), TREE_OK);
			}
		tree->geometry.ends = &ends;
		for (seen = see(tree); seen.unverified > 0; seen = see(tree))
		{
			int gone = pass == 1 ? seen.first.count : seen.first.count / 3;
			int unverified = seen.unverified;

			assert_int_equal(seen.count, expected);
			assert_true(heal_first(tree, &seen, gone));
			expected -= gone;
			seen = see(tree);
			assert_int_equal(seen.unverified, unverified - 1);
		}
		assert_int_equal(seen.count, expected);
		assert_true(pass == 1 ? expected == 0 : expected > 300);
		assert_int_equal(tree_check(tree, NULL, NULL, NULL, &statistics, &problems), TREE_OK);
		assert_int_equal(problems, 0);
		assert_int_equal(statistics.entries, expected);
		/* As good as new: what is added does not bring the doubt back. */
		insert_at(tree, 1000, 1400, now);
		assert_int_equal(see(tree).unverified, 0);
		tree_close(tree);
	}
}

/* Numbers [from, to), as entries that are dead. */
typedef struct Span
{
	uint32_t from;
	uint32_t to;
} Span;

static bool
in_span(void *argument, uint32_t block, uint16_t offset)
{
	const Span *span = argument;

	for (uint32_t i = span->from; i < span->to; i++)
	{
		TreeKey key = number_key(i, i);

		if (key.block == block && key.offset == offset)
			return true;
	}
	return false;
}

/* Removes the numbers, and takes the leaves that this empties out of the tree; returns how many those are. */
static uint64_t
merge_span(Tree *tree, uint32_t from, uint32_t to)
{
	Span span = {from, to};
	TreeVacuumCounts removed = {0};
	TreeMergeCounts merged = {0};
	TreeVacuum *vacuum;
	TreeMerge *merge;
	TreeStatus status;

	assert_int_equal(tree_vacuum_open(tree, &vacuum), TREE_OK);
	while ((status = tree_vacuum_next(vacuum, in_span, &span, &removed)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	assert_int_equal(tree_merge_open(tree, vacuum, &merge), TREE_OK);
	while ((status = tree_merge_next(merge, &merged)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	tree_merge_close(merge);
	tree_vacuum_close(vacuum);
	return merged.leaves;
}

/*
 * A scan rests behind a leaf, which takes up the next ones meanwhile: it is met a second time, for what lies behind, and that is
 * not all that must be looked up before the leaf is like others.
 */
static void
test_met_in_part(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	const TreeBatch *batch;
	TreeScan *scan;
	uint64_t leaf;
	uint32_t count;

	insert_at(tree, 0, 600, lost);
	tree->geometry.ends = &ends;
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL), TREE_OK);
	assert_int_equal(tree_scan_next(scan, &batch), TREE_OK);
	assert_true(batch->unverified && batch->whole);
	leaf = pointer_address(batch->leaf.pointer);
	count = (uint32_t) batch->count;
	assert_true(merge_span(tree, count / 2, 400) > 0);
	insert_at(tree, count, count + 3, now);
	assert_int_equal(tree_scan_next(scan, &batch), TREE_OK);
	assert_true(pointer_address(batch->leaf.pointer) == leaf);
	assert_int_equal(batch->count, 3);
	assert_true(batch->unverified && !batch->whole);
	assert_int_equal(tree_scan_next(scan, &batch), TREE_OK);
	assert_true(batch->unverified && batch->whole);
	tree_scan_close(scan);
	/* One that begins anew meets all of it. */
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL), TREE_OK);
	assert_int_equal(tree_scan_next(scan, &batch), TREE_OK);
	assert_true(pointer_address(batch->leaf.pointer) == leaf && batch->whole);
	assert_int_equal(batch->count, (int) (count / 2 + 3));
	tree_scan_close(scan);
	tree_close(tree);
}

/* The same entry is added for a new row while it is being looked up: it is not removed (N8). */
static void
test_never_a_new_entry(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	TreeKey key = number_key(5, 5);
	bool hit;
	Seen seen;

	insert_at(tree, 0, 30, lost);
	tree->geometry.ends = &ends;
	seen = see(tree);
	assert_int_equal(tree_insert(tree, &key, &now, &hit), TREE_OK);
	assert_true(hit);
	assert_false(heal_first(tree, &seen, 10));
	assert_int_equal(see(tree).count, 30);
	assert_int_equal(see(tree).unverified, 1);
	/* Others that were added since are not touched. */
	seen = see(tree);
	insert_at(tree, 30, 35, now);
	assert_true(heal_first(tree, &seen, 10));
	assert_int_equal(see(tree).count, 25);
	assert_int_equal(see(tree).unverified, 0);
	tree_close(tree);
}

/* Marks that are not proven say nothing, are carried along, and nobody makes new ones, until the leaf is healed. */
static void
test_void_marks(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	int marked;
	Seen seen;

	insert_at(tree, 0, 40, kept);
	seen = see(tree);
	seen.first = (TreeBatch){0};
	{
		const TreeBatch *batch;
		TreeScan *scan;

		assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
		assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL), TREE_OK);
		assert_int_equal(tree_scan_next(scan, &batch), TREE_OK);
		seen.first = *batch;
		tree_scan_close(scan);
	}
	assert_int_equal(tree_mark_dead(tree, &seen.first.leaf, gone_of(&seen, 20), 20, &lost, &marked), TREE_OK);
	assert_int_equal(marked, 20);
	assert_int_equal(see(tree).count, 20);

	tree->geometry.ends = &ends;
	tree_removal_proven(tree, &now);
	seen = see(tree);
	assert_int_equal(seen.unverified, 0);
	assert_int_equal(seen.marks_void, 1);
	assert_int_equal(seen.count, 40);
	insert_at(tree, 40, 300, now);
	seen = see(tree);
	assert_int_equal(seen.count, 300);
	assert_true(seen.marks_void > 0);
	assert_int_equal(tree_mark_dead(tree, &seen.first.leaf, gone_of(&seen, 1), 1, &now, &marked), TREE_OK);
	assert_int_equal(marked, 0);
	while (seen.marks_void > 0)
	{
		assert_true(heal_first(tree, &seen, 0));
		seen = see(tree);
	}
	assert_int_equal(seen.count, 300);
	tree_close(tree);
}

/* Nothing is marked in an unverified leaf: the mark's stamp would say that its rows are proven dead. */
static void
test_no_marks(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	int marked;
	Seen seen;

	insert_at(tree, 0, 20, lost);
	tree->geometry.ends = &ends;
	seen = see(tree);
	assert_int_equal(seen.unverified, 1);
	assert_int_equal(tree_mark_dead(tree, &seen.first.leaf, gone_of(&seen, 20), 20, &now, &marked), TREE_OK);
	assert_int_equal(marked, 0);
	assert_int_equal(see(tree).count, 20);
	assert_true(heal_first(tree, &seen, 0));
	seen = see(tree);
	assert_int_equal(seen.unverified, 0);
	tree_close(tree);
}

static bool
never_asked(void *argument, TreeFullLeaf *leaf)
{
	fail_msg("asked about an unverified leaf");
	return false;
}

/* The table is not asked about entries that may have no row. */
static void
test_no_room(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);

	insert_at(tree, 0, 40, lost);
	tree->geometry.ends = &ends;
	tree_on_full(tree, never_asked, NULL, true);
	insert_at(tree, 40, 200, now);
	assert_int_equal(see(tree).count, 200);
	tree_close(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_handed_on),
		cmocka_unit_test(test_healed),
		cmocka_unit_test(test_met_in_part),
		cmocka_unit_test(test_never_a_new_entry),
		cmocka_unit_test(test_void_marks),
		cmocka_unit_test(test_no_marks),
		cmocka_unit_test(test_no_room),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
