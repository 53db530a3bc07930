/*
 * fold_fixture.c
 *		See fold_fixture.h.
 */
#include "fold_fixture.h"

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
empty(Fixture *f, uint64_t from, uint64_t to)
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

TreeFoldCounts
fold_walked(Tree *tree, const TreeVacuum *walk, Cost *cost)
{
	TreeFoldCounts counts = {0};
	TreeFold *fold;
	TreeStatus status;

	require_ok(tree_fold_open(tree, walk, &fold));
	cost_begin(&client, cost);
	while ((status = tree_fold_next(fold, &counts)) == TREE_OK)
		;
	cost_end(&client, cost);
	assert_int_equal(status, TREE_END);
	tree_fold_close(fold);
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

TreeFoldCounts
fold_with(Tree *tree)
{
	TreeVacuumCounts seen = {0};
	TreeVacuum *walk = walk_empty(tree, &seen);
	Cost cost;
	TreeFoldCounts counts = fold_walked(tree, walk, &cost);

	tree_vacuum_close(walk);
	return counts;
}

void
fill(Fixture *f, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		insert(f, i, i);
}
