/*
 * merge_fixture.c
 *		See merge_fixture.h.
 */
#include "merge_fixture.h"
#include "tree/lock/lock.h"

/* TIDs in [from, to), as entry_of() makes them of numbers. */
typedef struct Range
{
	uint64_t from;
	uint64_t to;
} Range;

static bool
in_range(void *argument, uint32_t block, uint16_t offset)
{
	const Range *range = argument;
	KeyEntry first = entry_of(0, range->from), end = entry_of(0, range->to);
	uint64_t tid = (uint64_t) block << 16 | offset;

	return tid >= ((uint64_t) first.block << 16 | first.offset) &&
	       tid < ((uint64_t) end.block << 16 | end.offset);
}

TreeMergeCounts
merge_walked(Tree *tree, const TreeVacuum *walk, Cost *cost)
{
	TreeMergeCounts counts = {0};
	TreeMerge *merge;
	TreeStatus status;

	require_ok(tree_merge_open(tree, walk, &merge));
	cost_begin(&client, cost);
	while ((status = tree_merge_next(merge, &counts)) == TREE_OK)
		;
	cost_end(&client, cost);
	assert_int_equal(status, TREE_END);
	tree_merge_close(merge);
	return counts;
}

/* Removes entries from tree and model; *merged: what the same walk has seen is merged then, or NULL. */
static void
remove_entries(CheckedTree *f, TreeIsDead is_gone, void *argument, TreeMergeCounts *merged)
{
	TreeVacuumCounts counts = {0};
	TreeVacuum *walk;
	TreeStatus status;
	Cost cost;
	uint64_t kept = 0;

	require_ok(tree_vacuum_open(f->tree, &walk));
	while ((status = tree_vacuum_next(walk, is_gone, argument, &counts)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	if (merged != NULL)
		*merged = merge_walked(f->tree, walk, &cost);
	tree_vacuum_close(walk);
	for (uint64_t i = 0; i < f->model.count; i++)
		if (!is_gone(argument, f->model.entries[i].block, f->model.entries[i].offset))
			f->model.entries[kept++] = f->model.entries[i];
	f->model.count = kept;
}

void
empty(CheckedTree *f, uint64_t from, uint64_t to)
{
	Range range = {from, to};

	remove_entries(f, in_range, &range, NULL);
}

static bool
is_not_drawn(void *argument, uint32_t block, uint16_t offset)
{
	const uint64_t *one_of = argument;

	return scramble((uint64_t) block << 16 | offset) % *one_of != 0;
}

void
thin(CheckedTree *f, uint64_t one_of)
{
	remove_entries(f, is_not_drawn, &one_of, NULL);
}

TreeMergeCounts
thin_and_merge(CheckedTree *f, uint64_t one_of)
{
	TreeMergeCounts merged = {0};

	remove_entries(f, is_not_drawn, &one_of, &merged);
	return merged;
}

TreeVacuum *
walk_empty(Tree *tree, TreeVacuumCounts *counts)
{
	TreeVacuum *walk;
	TreeStatus status;

	require_ok(tree_vacuum_open(tree, &walk));
	while ((status = tree_vacuum_next(walk, NULL, NULL, counts)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	return walk;
}

TreeMergeCounts
merge_with(Tree *tree)
{
	TreeVacuumCounts seen = {0};
	TreeVacuum *walk = walk_empty(tree, &seen);
	Cost cost;
	TreeMergeCounts counts = merge_walked(tree, walk, &cost);

	tree_vacuum_close(walk);
	return counts;
}

void
fill(CheckedTree *f, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		insert(f, i, i);
}

uint64_t
leaf_of_number(CheckedTree *f, uint64_t number, uint64_t *leaf)
{
	const TreeBatch *batch;
	TreeBound bound;

	f->low = number;
	keyspace_bound(f->space, &f->low, -1, &bound);
	require_ok(tree_scan_seek(f->scan, TREE_FORWARD, &bound, NULL));
	require_ok(tree_scan_next(f->scan, &batch));
	assert_true(batch->count > 0);
	require_ok(access_read_node(f->tree, batch->leaf.pointer, 0, leaf));
	return batch->leaf.pointer;
}
