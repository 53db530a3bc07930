/*
 * merge_fixture.h
 *		Leaves that are emptied, or nearly so, and merged, by the fixture's client or another one.
 */
#ifndef SHERMAN_TEST_MERGE_FIXTURE_H
#define SHERMAN_TEST_MERGE_FIXTURE_H

#include "cost.h"
#include "checked_tree.h"

/* Numbers [from, to), with the TIDs of the same numbers. */
extern void fill(CheckedTree *f, uint64_t from, uint64_t to);
/* Removes the entries with these TIDs, from tree and model. */
extern void empty(CheckedTree *f, uint64_t from, uint64_t to);
/* All but one of so many, drawn by their TIDs. */
extern void thin(CheckedTree *f, uint64_t one_of);
/* The same, and merges what that walk has left empty or sparse. */
extern TreeMergeCounts thin_and_merge(CheckedTree *f, uint64_t one_of);
/* A walk that removes nothing, to its end; adds to counts. The caller closes it. */
extern TreeVacuum *walk_empty(Tree *tree, TreeVacuumCounts *counts);
/* Merges what the walk saw empty; what that cost the fixture's client. */
extern TreeMergeCounts merge_walked(Tree *tree, const TreeVacuum *walk, Cost *cost);
/* Merges what a walk sees empty. */
extern TreeMergeCounts merge_with(Tree *tree);
/* The pointer of the leaf that has a number's entry; its image. */
extern uint64_t leaf_of_number(CheckedTree *f, uint64_t number, uint64_t *leaf);

#endif /* SHERMAN_TEST_MERGE_FIXTURE_H */
