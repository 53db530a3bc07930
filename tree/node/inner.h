/*
 * inner.h
 *		The search of an inner node by integers.
 */
#ifndef SHERMAN_TREE_INNER_H
#define SHERMAN_TREE_INNER_H

#include "tree/node/node.h"

/* What a search of an inner node says. */
typedef struct ChildChoice
{
	uint32_t level;  /* of the node that was searched */
	uint32_t index;  /* of the child in it */
	uint64_t child;  /* pointer */
	uint64_t low[8]; /* separators around the child, as bytes: the expected fences */
	uint64_t high[8];
	bool bound_below; /* the bound is below the node's low fence: stale path */
	bool bound_above; /* the bound is not below the node's high fence: go right */
	uint64_t right;   /* the node's right sibling */
	uint64_t generation;
} ChildChoice;

/*
 * Searches an inner node by integers only, for cache_find_child() and search_inner(): the child for the bound
 * is the last whose separator is not above it; the first child's separator is never looked at. Returns true
 * with *first == *last, the child's number; or false if integers do not decide: the child is among
 * *first..*last, and separators *first + 1 .. *last are to be compared. `node` may be shared memory (counts
 * are bounded, results are checked later).
 */
extern bool node_search_inner(const NodeGeometry *g, const uint64_t *node, const TreeBound *bound,
                              uint32_t *first, uint32_t *last);

/*
 * The child for the bound if integers decide, fences included; false: they do not. `node` may be shared memory, and
 * of any content.
 */
extern bool node_find_child(const NodeGeometry *g, const uint64_t *node, const TreeBound *bound,
                            ChildChoice *choice);

/*
 * Fills index, child, low, high, level, right, generation of `choice` for child `index`; the rest is left
 * alone.
 */
extern void node_child_choice(const NodeGeometry *g, const uint64_t *node, uint32_t index,
                              ChildChoice *choice);

#endif /* SHERMAN_TREE_INNER_H */
