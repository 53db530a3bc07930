/*
 * checked_tree.h
 *		A tree of the fixture in some key space, and the sorted model of what is in it.
 */
#ifndef SHERMAN_TEST_CHECKED_TREE_H
#define SHERMAN_TEST_CHECKED_TREE_H

#include "fixture.h"
#include "keyspace.h"

typedef struct CheckedTree
{
	const KeySpace *space;
	TreeRecord record;
	Tree *tree;
	TreeScan *scan;
	KeyModel model;
	KeyRandom random;
	uint64_t low; /* keeps the bounds' numbers */
	uint64_t high;
} CheckedTree;

extern void checked_tree_open(CheckedTree *f, KeySpaceKind kind);
extern void checked_tree_close(CheckedTree *f);

/* The entry of a number with the n-th TID. */
extern KeyEntry entry_of(uint64_t number, uint64_t tid);
extern void insert(CheckedTree *f, uint64_t number, uint64_t tid);
/* Adds it to the tree and not to the model: it may fail. */
extern TreeStatus insert_try(CheckedTree *f, const KeyEntry *entry, bool *hit);
/* Random entries: numbers out of `range`, so many of them several times. */
extern void insert_random(CheckedTree *f, uint64_t count, uint64_t range, uint64_t first_tid);

/* Every third TID. */
extern bool is_dead(void *argument, uint32_t block, uint16_t offset);
/* Removes every third entry by TID, from tree and model. */
extern void vacuum(CheckedTree *f);

/* Holds one batch against model entries from *place on, in the direction; moves *place on. */
extern void compare_batch(CheckedTree *f, const TreeBatch *batch, TreeDirection direction, int64_t *place);
/* A whole scan of the model's entries [from, to). */
extern void compare_scan(CheckedTree *f, TreeDirection direction, const TreeBound *low, const TreeBound *high,
                         int64_t from, int64_t to);
/* Entries between two numbers, in both directions; sides as in TreeBound. */
extern void compare_range(CheckedTree *f, uint64_t low, int8_t low_side, uint64_t high, int8_t high_side);
/* The whole tree in both directions, and random ranges. */
extern void compare_everything(CheckedTree *f, uint64_t range, int lookups);
/* tree_check() finds nothing, and shows exactly the model. */
extern void compare_check(CheckedTree *f, TreeStatistics *statistics);

#endif /* SHERMAN_TEST_CHECKED_TREE_H */
