/*
 * descent.h
 *		The face of tree/descent: the way to a node, and splits.
 */
#ifndef SHERMAN_TREE_DESCENT_H
#define SHERMAN_TREE_DESCENT_H

#include "tree/lock/lock.h"
#include "tree/shared/cache.h"

/* ---- search.c: descent ---- */

/* How a descent came to a leaf, or to a node of another level. */
typedef struct Path
{
	uint64_t pointer; /* the node */
	uint32_t level;
	uint64_t low[8]; /* its fences as its parent has them */
	uint64_t high[8];
	bool fences_known;            /* false: came by a right move or the node is the root */
	uint64_t parents[LEVELS_MAX]; /* parents[l]: the node of level l that led here, 0 = not known */
	uint32_t root_level;          /* level of the root as seen */
	bool fresh;                   /* the parent was read from the memory node, not from the cache */
} Path;

/* search_descend() and search_look_up(): `leaf` is NULL, or a lookup's buffer. */
extern TreeStatus search_path(Tree *tree, const TreeBound *bound, uint32_t level, bool fresh, Path *path,
                              uint64_t *leaf, bool *brought);

/*
 * Descends to the node of `level` that covers the bound, through the cache (unless `fresh`), following right
 * links and completing splits on the way. The node itself is not read when its level is 0 and the tree's
 * root is above it. Calls the comparator: nothing may be held.
 */
static inline TreeStatus
search_descend(Tree *tree, const TreeBound *bound, uint32_t level, bool fresh, Path *path)
{
	bool brought;

	return search_path(tree, bound, level, fresh, path, NULL, &brought);
}

/*
 * The same to a leaf for a lookup, through the cache; where that ends the memory node may be called for the rest
 * (offload.h): then path->parents are not known. *brought: `leaf` is a valid image of the leaf, whose fences are not
 * checked yet.
 */
static inline TreeStatus
search_look_up(Tree *tree, const TreeBound *bound, Path *path, uint64_t *leaf, bool *brought)
{
	assert(leaf != NULL);
	return search_path(tree, bound, 0, false, path, leaf, brought);
}

/*
 * Finds the child for the bound in a private copy of an inner node, with the comparator where integers do not
 * decide (overflow keys are fetched in one chain).
 */
extern TreeStatus search_inner(Tree *tree, const uint64_t *node, const TreeBound *bound, ChildChoice *choice);

/*
 * Fetches the overflow keys of private cells into tree->pool, one chain for up to FABRIC_MAX_CHAIN of
 * them on one memory node. images[i] is NULL for a cell without one. Valid until the next call. TREE_RETRY: a
 * cell has changed.
 */
extern TreeStatus search_images(Tree *tree, const uint64_t *const *cells, int count, const uint8_t **images);

/* As search_compare(), with the overflow key, if there is one, in `image`. */
extern int search_compare_image(Tree *tree, const TreeBound *bound, const uint64_t *cell, bool separator,
                                const uint8_t *image);

/*
 * Compares the bound with a private cell or separator, comparator included. *result < 0: the bound is before
 * it.
 */
extern TreeStatus search_compare(Tree *tree, const TreeBound *bound, const uint64_t *cell, bool separator,
                                 int *result);

/*
 * As search_compare() for one of a private node's fences: infinite fences decided. low: bound < low? high:
 * bound < high?
 */
extern TreeStatus search_compare_fence(Tree *tree, const TreeBound *bound, const uint64_t *node, bool high,
                                       int *result);

/*
 * Whether a seek to this bound, in this direction, begins before a node's fence on the far side (< 0), or not (> 0); 0: that is not
 * known without a round trip, or the two are equal. Calls the comparator.
 */
extern int search_far_fence(Tree *tree, const TreeBound *bound, const uint64_t *fence, bool forward);

/*
 * The bound that stands for a separator, to descend with: side 0: at it (its right side covers it); side -1:
 * just below it (its left side does; of a whole separator the bound carries the next lower TID, so it is no
 * filter for entries). The image, if any, lies in `buffer` (TREE_IMAGE_MAX_BYTES). The separator is not
 * infinite. TREE_RETRY as search_images().
 */
extern TreeStatus search_separator_bound(Tree *tree, const uint64_t *separator, int8_t side, TreeBound *bound,
                                         uint8_t *buffer);

/* ---- split.c, downlink.c ---- */

/*
 * A split at the tree's right end by an entry behind all others leaves this much on the left: ascending keys.
 */
#define SPLIT_ASCENDING_PERCENT 90

/* Operations of the longest chain: image block, two children, redo, node; and the unlock. */
#define SPLIT_CHAIN_OPS (1 + 2 + REDO_OPS + 1 + 1)

/* Cells of an inner node with one more, each a pointer to {child, separator}. */
typedef struct InnerCells
{
	uint32_t count;
	const uint64_t *cells[INNER_CELLS_MAX + 1];
} InnerCells;

/* A split: its cut, and the nodes that it made. */
typedef struct Split
{
	uint32_t cut;                   /* in: cells[0, cut) go left */
	uint64_t separator[LINE_WORDS]; /* in */
	FabricOp ops[SPLIT_CHAIN_OPS];  /* in: what goes first in the chain */
	int count;                      /* in: their number */
	bool root;                      /* out: the root was split, so that no downlink is to be inserted */
	uint64_t left;                  /* out */
	uint64_t right;                 /* out */
} Split;

/*
 * Split the node at `pointer`, which is locked and lies in client->image; the reserve holds the nodes (two
 * for the root). The halves lie in client->image_left and image_right afterwards, the root in image_root.
 * Releases the hold; returns what lock_write_and_release() said.
 */
extern TreeStatus split_leaf(Tree *tree, LockHandle *lock, uint64_t pointer, const LeafCells *cells,
                             Split *split);
extern TreeStatus split_inner(Tree *tree, LockHandle *lock, uint64_t pointer, const InnerCells *cells,
                              Split *split);
/*
 * predicate.c: before the halves of a leaf's split, which have their addresses, can be reached; and once the split
 * was written, or failed with this status.
 */
extern void split_announce(Tree *tree, uint64_t pointer, const Split *split);
/* The same of one new leaf `to` that gets a part of the keys of `from`; each ends by split_over(). */
extern void leaf_split_announce(Tree *tree, uint64_t from, uint64_t to);
extern void split_over(Tree *tree, TreeStatus status);
/*
 * Whether the reserve has the nodes that a split of this node takes. If not, the lock is released for reserve_fill():
 * once for each handle, as from then on one is reserved ahead.
 */
extern bool split_reserved(Tree *tree, uint64_t pointer, uint32_t level);

static inline NodeReserve *
reserve_of(Tree *tree, uint32_t level)
{
	assert(level < LEVELS_MAX);
	return level == 0 ? &tree->leaves : &tree->inner;
}

/*
 * Takes nodes ahead until the reserve of this level's kind holds `count`. TREE_MEMORY_FULL and others;
 * nothing is held.
 */
extern TreeStatus reserve_fill(Tree *tree, uint32_t level, uint32_t count);
/* Reserves a node if the handle has split such nodes; a failure will be reported when one is needed. */
static inline void
reserve_keep(Tree *tree, uint32_t level)
{
	const NodeReserve *reserve = reserve_of(tree, level);

	assert(!tree->client->holding);
	assert(reserve->count <= RESERVE_NODES);
	if (reserve->wanted && reserve->count == 0 && !tree->memory_full)
		(void) reserve_fill(tree, level, 1);
}
/* Takes one out of the reserve, which holds one. */
extern void reserve_take(Tree *tree, uint32_t level, uint64_t *pointer, uint64_t *generation);
extern void reserve_return(Tree *tree);

/* ---- spare.c: the same for the splits of waves, which take many ---- */

/* Nodes that are taken ahead, at most. */
#define SPARE_LEAVES 1024u
#define SPARE_INNER 64u

extern uint32_t spare_count(const Tree *tree, uint32_t level);
/* Takes nodes ahead until there are `count`, or as many as there may be.  As reserve_fill(). */
extern TreeStatus spare_fill(Tree *tree, uint32_t level, uint32_t count);
/* Takes one out of those that there are. */
extern void spare_take(Tree *tree, uint32_t level, uint64_t *pointer, uint64_t *generation);
/* All are given back, and their memory. */
extern void spare_return(Tree *tree);
/*
 * Behind a chain that was lost and has ended, with which the node would have been split: whether it has this generation still, so that
 * nothing links to its new nodes, and nothing ever will.  Nothing is held.
 */
extern bool split_is_undone(Tree *tree, uint64_t pointer, uint64_t generation);
/* Gives back a node that nothing links to, but that was perhaps written, with this generation at most. */
extern void spare_written_return(Tree *tree, uint64_t pointer, uint32_t level, uint64_t generation);

/*
 * Inserts the downlink of `right`, the right sibling of `left`, both on `level`, with the separator between the two,
 * into their parent on level + 1: idempotent. Nothing is held. `path` (may be NULL) says where the parent may be. If
 * it fails the split stays incomplete, and the next writer that moves right there completes it.
 */
extern TreeStatus downlink_insert(Tree *tree, uint32_t level, uint64_t left, const uint64_t *separator,
                                  uint64_t right, const Path *path);

#endif /* SHERMAN_TREE_DESCENT_H */
