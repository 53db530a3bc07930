/*
 * heal.c
 *		Heals unverified leaves: entries that have a row are kept, the others go, and the leaf is verified.
 *
 * The caller reads such a leaf by a scan (TreeBatch.unverified), looks every entry up in the table, and passes those
 * without a row. They are removed if the leaf still has the generation that was read: inside one an entry keeps its
 * slot, and an insert of the very same entry for a new row begins another one (I-T5, I-P3). Entries that were added
 * since the leaf was read have the WAL position that the leaf gets, or an earlier one of this epoch.
 *
 * The generation alone does not suffice: an emptied leaf that was merged keeps it until it is written as a free node,
 * and by the time the healer writes, it may be reused as a new sibling. So the leaf is not even locked in another
 * epoch of the tree (T8).
 */
#include "tree/scan/scan.h"
#include "tree/change/change.h"

void
tree_scan_unverified(TreeScan *scan, bool wanted)
{
	assert(scan != NULL);
	scan->unverified = wanted;
}

/* Takes one entry out of the image that the rewrite is made from; false: it is not there. */
static bool
entry_remove(const NodeGeometry *g, uint64_t *node, const TreeDead *gone)
{
	uint64_t *cell = node + leaf_cell_word(g, gone->cell);

	if (cell_is_posting(cell))
	{
		const uint64_t *head = node + leaf_cell_word(g, posting_head(g, node, gone->cell));

		for (uint32_t i = 0; i < g->posting_tids; i++)
		{
			uint64_t word0 = posting_word0(head, posting_get(cell, i));

			if (posting_get(cell, i) == 0 || cell_block(word0) != gone->block ||
			    cell_offset(word0) != gone->offset)
				continue;
			posting_remove(cell, i);
			return true;
		}
		return false;
	}
	if (cell_block(cell[0]) != gone->block || cell_offset(cell[0]) != gone->offset)
		return false;
	cell[0] &= ~(3ull << CELL_STATE_SHIFT);
	return true;
}

/* Removes the entries without rows from the leaf's image, and sets its new WAL position. */
static void
image_heal(const NodeGeometry *g, uint64_t *node, const TreeDead *gone, int count, const TreeWalPosition *wal)
{
	assert(node_level(node) == 0);
	if (leaf_marks_void(g, node))
	{
		leaf_revive(g, node);
		node[HEADER_DEAD_EPOCH] &= STAMP_MASK;
		node[HEADER_DEAD_LSN] = 0;
	}
	for (int i = 0; i < count; i++)
	{
		bool found = gone[i].cell < g->leaf_cells && entry_remove(g, node, &gone[i]);

		assert(found);
		(void) found;
	}
	if ((uint32_t) node[HEADER_EPOCH] != wal->epoch || node[HEADER_LSN] < wal->lsn)
		node[HEADER_LSN] = wal->lsn;
	node[HEADER_EPOCH] = wal->epoch;
}

/* tree_heal_leaf(), inside its critical section. */
static TreeStatus
heal_inside(Tree *tree, const TreeLeafSeen *leaf, const TreeDead *gone, int count, const TreeWalPosition *wal,
            bool *healed)
{
	const NodeGeometry *g = &tree->geometry;
	uint64_t *node = tree->client->image;
	uint32_t bytes = tree_node_bytes(tree, leaf->pointer, 0);
	uint32_t live;
	LockHandle lock;
	TreeStatus status = lock_and_read(tree, leaf->pointer, bytes, node, &lock);

	if (status != TREE_OK)
		return status;
	if (node_level(node) != 0 || node[HEADER_GENERATION] != leaf->generation)
		return lock_release(tree, &lock, leaf->pointer, node, bytes);
	image_heal(g, node, gone, count, wal);
	status = leaf_rewrite(tree, &lock, leaf->pointer, node, &live);
	if (status != TREE_OK)
		return status;
	*healed = true;
	TREE_COUNT(tree, deletes, (uint64_t) count);
	return TREE_OK;
}

TreeStatus
tree_heal_leaf(Tree *handle, const TreeLeafSeen *leaf, const TreeDead *gone, int count,
               const TreeWalPosition *wal, bool *healed)
{
	int section;
	TreeStatus status;

	assert(!handle->client->holding);
	assert(count >= 0);
	*healed = false;
	status = critical_enter(handle, &section);
	if (status != TREE_OK)
		return status;
	if (critical_same_epoch(handle, leaf))
		status = heal_inside(handle, leaf, gone, count, wal, healed);
	critical_leave(handle, section);
	/* Stale, or a chain was indeterminate and is settled now: the leaf is read again another time. */
	return status == TREE_RETRY ? TREE_OK : status;
}
