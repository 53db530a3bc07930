/*
 * leaf_unchanged.c
 *		Whether a leaf that a scan has read still has the same generation.
 *
 * A caller that relies on other information about rows (PostgreSQL's visibility map) asks this afterwards: inside one
 * generation no entry leaves its slot (I-T5), so the entries that were read are still there, and no process can have
 * learned that one was removed. Where the leaf is kept in shared memory, and valid, that tells it without a READ.
 *
 * Hazard -- a leaf that is merged leaves the tree in the generation that it has, and its entries are removed elsewhere.  So the
 * epoch must be the same; to a reader, which knows none, the leaf says itself that it is in no tree.
 */
#include "tree/lock/leaf_cache.h"
#include "tree/scan/scan.h"

/*
 * Whether nothing was merged since the leaf was read.  *kept: the cache has it, too, and in this generation; what it has is of the epoch
 * that the tree has now.
 */
static bool
epoch_is_same(Tree *tree, const TreeLeafSeen *leaf, bool *kept)
{
	int section;
	bool same;

	*kept = false;
	if (critical_enter(tree, &section) != TREE_OK)
		return false;
	same = critical_same_epoch(tree, leaf);
	*kept = same && tree->client->shared->leaves != NULL &&
	        leaf_cache_has_generation(tree, leaf->pointer, leaf->generation);
	critical_leave(tree, section);
	return same;
}

TreeStatus
tree_batch_unchanged(TreeScan *scan, const TreeBatch *batch, bool *unchanged)
{
	Tree *tree = scan->tree;
	FabricOp op = {
		.opcode = FABRIC_READ,
		.region = FABRIC_NODES,
		.length = sizeof(scan->reread),
		.offset = pointer_offset(batch->leaf.pointer),
		.buffer = scan->reread,
	};
	TreeStatus status;

	assert(batch == &scan->batch);
	assert(!tree->client->holding);
	if (!epoch_is_same(tree, &batch->leaf, unchanged) || *unchanged)
		return TREE_OK;
	status =
		access_repeat(tree, pointer_memory_node(batch->leaf.pointer), &op, 1, "reads of a leaf's header");
	if (status != TREE_OK)
		return status;
	/* No sum is wanted: each word is read whole, and one that is older than its neighbors is older than a removal. */
	*unchanged = scan->reread[HEADER_TREE] == tree->tree &&
	             scan->reread[HEADER_GENERATION] == batch->leaf.generation &&
	             scan->reread[HEADER_SELF] == pointer_address(batch->leaf.pointer) &&
	             (node_flags(scan->reread) & NODE_FREE) == 0;
	return TREE_OK;
}
