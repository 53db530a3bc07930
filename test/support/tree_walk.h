/*
 * tree_walk.h
 *		A plain checker of a quiet tree for the tests of its core: walks every level from left to right with
 *		unlocked reads and no cache. Independent of tree/handle/check.c, which is tested against it.
 */
#ifndef SHERMAN_TEST_TREE_WALK_H
#define SHERMAN_TEST_TREE_WALK_H

#include "internal.h"

typedef struct WalkEntry
{
	uint32_t block;
	uint16_t offset;
	uint64_t leaf;
	uint32_t slot;
} WalkEntry;

typedef struct WalkResult
{
	uint32_t height;
	uint64_t leaves;
	uint64_t inner_nodes;
	uint64_t incomplete_splits; /* nodes that their parent's level does not know: allowed, counted */
	uint64_t count;
	uint64_t in_postings; /* of them */
	WalkEntry *entries;   /* live ones, leaf by leaf; freed by walk_free() */
} WalkResult;

/*
 * Walks the tree and aborts the process with a message on the first broken invariant: fences tile each level,
 * low fences are the separators above byte for byte, entries lie within their leaf's fences, no TID occurs
 * twice in the tree.
 */
extern void walk_tree(Tree *tree, WalkResult *result);
extern void walk_free(WalkResult *result);

/* Whether the walk saw this TID. */
extern bool walk_has(const WalkResult *result, uint32_t block, uint16_t offset);

/*
 * The root forgets every second child, as if the last steps of their splits had never come, and the instance's cache the tree.
 * Returns how many.
 */
extern uint32_t walk_root_forgets(Tree *tree);

#endif /* SHERMAN_TEST_TREE_WALK_H */
