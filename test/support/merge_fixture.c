/*
 * merge_fixture.c
 *		See merge_fixture.h.
 */
#include "merge_fixture.h"

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

void
empty(CheckedTree *f, uint64_t from, uint64_t to)
{
	Range range = {from, to};
	TreeVacuumCounts counts = {0};
	TreeVacuum *walk;
	TreeStatus status;
	uint64_t kept = 0;

	require_ok(tree_vacuum_open(f->tree, &walk));
	while ((status = tree_vacuum_next(walk, in_range, &range, &counts)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	tree_vacuum_close(walk);
	for (uint64_t i = 0; i < f->model.count; i++)
		if (!in_range(&range, f->model.entries[i].block, f->model.entries[i].offset))
			f->model.entries[kept++] = f->model.entries[i];
	f->model.count = kept;
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
