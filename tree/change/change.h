/*
 * change.h
 *		What the files of tree/change share that rewrite leaves, and what the end of a handle gives back.
 */
#ifndef SHERMAN_TREE_CHANGE_H
#define SHERMAN_TREE_CHANGE_H

#include "tree/descent/descent.h"

/* ---- insert.c ---- */

/* Gives a block back to which no cell refers. */
extern void block_return(Tree *tree, OverflowBlock *block);

/*
 * Gives back the blocks of an insert that ended before a cell referred to them (a failure, or the
 * comparator's jump).
 */
static inline void
insert_abandon(Tree *tree)
{
	assert(!tree->client->holding);
	if (tree->block.bytes != 0)
		block_return(tree, &tree->block);
	if (tree->cut.bytes != 0)
		block_return(tree, &tree->cut);
}

/* ---- full_leaf.c: a full leaf, and its dead entries ---- */

/*
 * Whether a full leaf with room for so many cells is to be rewritten if it would keep `kept` of them; `dropped`: the
 * dead ones that the rewrite removes.
 */
extern bool leaf_worth_rewrite(uint32_t room, uint32_t kept, uint32_t dropped);
/* Whether the caller's hook is to be asked about the full leaf in this image. */
extern bool room_is_asked(const Tree *tree, const uint64_t *node);
/* Asks it; nothing is held. `node` is private. False: split. */
extern bool room_ask(Tree *tree, uint64_t pointer, const uint64_t *node, TreeFullLeaf *full);
/* How many cells, which a rewrite would keep, the hook said are to be removed. */
extern uint32_t room_removable(const NodeGeometry *g, const uint64_t *node, const TreeFullLeaf *full);
/* Empties them, in a private image. */
extern void room_clear(const NodeGeometry *g, uint64_t *node, const TreeFullLeaf *full);

/* ---- split_order.c: what only the comparator can order, done outside of locks ---- */

/* Gathered cells with what the comparator needs: the overflow keys of those that tie. */
typedef struct OrderedCells
{
	LeafCells leaf;
	const uint64_t *extra;    /* the cell that is being inserted: its image is not in node memory yet */
	const TreeKey *extra_key; /* and its key */
	const uint8_t *images[LEAF_ENTRIES_MAX + 1];
} OrderedCells;

/*
 * Orders gathered cells wholly: runs that integers leave tied by the comparator and TID; they are `ordered`
 * then. TREE_RETRY: a cell has changed.
 */
extern TreeStatus order_cells(Tree *tree, OrderedCells *cells);
/*
 * The separator in front of cells[cut] of ordered cells. If it carries an overflow key, this is copied
 * into a block of its own at `memory_node` (tree->cut), so that the leaf's block can be freed with its cell.
 */
extern TreeStatus order_separator(Tree *tree, uint32_t memory_node, const OrderedCells *cells, uint32_t cut,
                                  uint64_t *separator);

/* ---- rewrite.c ---- */

/*
 * Makes in `node` the next generation of the leaf in the image `old`, with the cells that leaf_keeps() accepts.
 * Returns the number of entries. `old` is read until then.
 */
extern uint32_t leaf_rewrite_image(const NodeGeometry *g, uint64_t pointer, const uint64_t *old,
                                   uint64_t *node);
/*
 * Rewrites the locked leaf with those cells of `old` that leaf_keeps() accepts, and releases it; `old` is the
 * client's image, perhaps changed by the caller. *live: the number of entries. Overflow blocks that are not referred
 * to any more are given back.
 */
extern TreeStatus leaf_rewrite(Tree *tree, LockHandle *lock, uint64_t pointer, const uint64_t *old,
                               uint32_t *live);
/*
 * After a rewrite was acknowledged: gives back the blocks of cells of the old image that the new one dropped, among them the one in
 * slot `dropped` (or LEAF_NO_SLOT), but for `kept` (or NULL), which a new cell has.
 */
extern void leaf_free_blocks(Tree *tree, const uint64_t *old, uint32_t dropped,
                             const OverflowReference *kept);

#endif /* SHERMAN_TREE_CHANGE_H */
