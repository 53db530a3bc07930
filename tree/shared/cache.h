/*
 * cache.h
 *		The cache of inner nodes, and the search of a node where it lies.
 */
#ifndef SHERMAN_TREE_CACHE_H
#define SHERMAN_TREE_CACHE_H

#include "tree/internal.h"

extern size_t cache_shared_bytes(const TreeSharedOptions *options);
extern void cache_shared_initialize(void *memory, const TreeSharedOptions *options);

/* What a search of an inner node says. */
typedef struct ChildChoice
{
	uint32_t level;  /* of the node that was searched */
	uint32_t index;  /* of the child in it */
	uint64_t child;  /* pointer with stamp hint */
	uint64_t low[8]; /* separators around the child, as bytes: the expected fences */
	uint64_t high[8];
	bool bound_below; /* the bound is below the node's low fence: stale path */
	bool bound_above; /* the bound is not below the node's high fence: go right */
	uint64_t right;   /* the node's right sibling */
	uint64_t generation;
} ChildChoice;

/*
 * Searches the cached node at `pointer` for the child that covers the bound. TREE_OK; TREE_NOT_FOUND: not
 * cached, or it changed too often meanwhile; TREE_RETRY: integers do not decide: `copy` (NODE_MAX_BYTES,
 * private) holds the whole node, consistent, for the caller to search with the comparator.
 */
extern TreeStatus cache_find_child(Tree *tree, uint64_t pointer, const TreeBound *bound, ChildChoice *choice,
                                   uint64_t *copy);
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

/* A consistent private copy of a cached node; TREE_NOT_FOUND. */
extern TreeStatus cache_copy(Tree *tree, uint64_t pointer, uint64_t *copy);
/*
 * Puts a validated image into the cache; the newest generation wins. `parent` 0 for the root: a child is cached only
 * below its cached parent.
 */
extern void cache_put(Tree *tree, uint64_t pointer, uint64_t parent, const uint64_t *image);
extern void cache_drop(Tree *tree, uint64_t pointer);
extern void cache_drop_tree(TreeShared *shared, uint64_t tree);
/*
 * A merge has taken this node out of the tree, or merged others into it, on any level: earlier images of it and
 * pointers to it are not used any more. With the barrier closed, and the epoch raised.
 */
extern void cache_touched(Tree *tree, uint64_t pointer);
/* For tree_cache_usage(). */
extern void cache_usage(const TreeShared *shared, TreeCacheUsage *usage);

#endif /* SHERMAN_TREE_CACHE_H */
