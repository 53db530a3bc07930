/*
 * cache.h
 *		The cache of inner nodes.
 */
#ifndef SHERMAN_TREE_CACHE_H
#define SHERMAN_TREE_CACHE_H

#include "tree/internal.h"
#include "tree/node/inner.h"

extern size_t cache_shared_bytes(const TreeSharedOptions *options);
extern void cache_shared_initialize(void *memory, const TreeSharedOptions *options);

/*
 * Searches the cached node at `pointer` for the child that covers the bound. TREE_OK; TREE_NOT_FOUND: not
 * cached, or it changed too often meanwhile; TREE_RETRY: integers do not decide, or `bound` is NULL: `copy`
 * (NODE_MAX_BYTES, private) holds the whole node, consistent, for the caller to search with the comparator.
 */
extern TreeStatus cache_find_child(Tree *tree, uint64_t pointer, const TreeBound *bound, ChildChoice *choice,
                                   uint64_t *copy);
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
