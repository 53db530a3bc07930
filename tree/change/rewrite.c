/*
 * rewrite.c
 *		Rewrites a locked leaf without the cells that it does not keep, and gives back their overflow blocks.
 */
#include "tree/change/change.h"
#include "tree/space/allocate.h"

void
leaf_free_blocks(Tree *tree, const uint64_t *old, uint32_t dropped, const OverflowReference *kept)
{
	const NodeGeometry *g = &tree->geometry;
	bool proven = leaf_dead_proven(g, old);

	assert(!tree->client->holding);
	assert(node_level(old) == 0);
	assert(dropped == LEAF_NO_SLOT || dropped < g->leaf_cells);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		const uint64_t *cell = old + leaf_cell_word(g, slot);
		OverflowReference reference;

		/* Victims are empty by now; other empty cells never had a block. */
		if ((slot != dropped && leaf_keeps(cell[0], proven)) || (cell[0] & CELL_OVERFLOW_BIT) == 0)
			continue;
		cell_overflow(g, cell, &reference);
		if (kept == NULL || reference.memory_node != kept->memory_node || reference.offset != kept->offset)
			allocate_overflow_return(tree, reference.memory_node, reference.offset, reference.bytes);
	}
}

uint32_t
leaf_rewrite_image(const NodeGeometry *g, uint64_t pointer, const uint64_t *old, uint64_t *node)
{
	LeafCells cells;
	uint32_t kept;

	assert(node != old);
	leaf_gather(g, old, LEAF_NO_SLOT, NULL, &cells);
	kept = cells.count;
	leaf_pack(g, &cells);
	node_begin_like(g, node, old, pointer, old[HEADER_GENERATION] + 1);
	leaf_fill(g, node, &cells, 0, cells.count);
	node_seal(g, node);
	return kept;
}

TreeStatus
leaf_rewrite(Tree *tree, LockHandle *lock, uint64_t pointer, const uint64_t *old, uint32_t *live)
{
	const NodeGeometry *g = &tree->geometry;
	uint64_t *node = tree->client->image_left;
	FabricOp ops[REDO_OPS + 2];
	uint32_t kept = leaf_rewrite_image(g, pointer, old, node);
	int count;
	TreeStatus status;

	assert(lock->held);
	count = lock_rewrite_ops(tree, lock, pointer, node, g->leaf_bytes, ops);
	status = lock_write_and_release(tree, lock, ops, count, pointer, node, tree_node_bytes(tree, pointer, 0));
	if (status != TREE_OK)
		return status;
	*live = kept;
	TREE_COUNT(tree, leaf_rewrites, 1);
	leaf_free_blocks(tree, old, LEAF_NO_SLOT, NULL);
	return TREE_OK;
}
