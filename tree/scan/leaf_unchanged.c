/*
 * leaf_unchanged.c
 *		Whether a leaf that a scan has read still has the same generation.
 *
 * A caller that relies on other information about rows (PostgreSQL's visibility map) asks this afterwards: inside one
 * generation no entry leaves its slot (I-T5), so the entries that were read are still there, and no process can have
 * learned that one was removed.
 */
#include "tree/scan/scan.h"

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
	*unchanged = false;
	status =
		access_repeat(tree, pointer_memory_node(batch->leaf.pointer), &op, 1, "reads of a leaf's header");
	if (status != TREE_OK)
		return status;
	/* No sum is wanted: each word is read whole, and one that is older than its neighbors is older than a removal. */
	*unchanged = scan->reread[HEADER_TREE] == tree->tree &&
	             scan->reread[HEADER_GENERATION] == batch->leaf.generation &&
	             scan->reread[HEADER_SELF] == pointer_address(batch->leaf.pointer);
	return TREE_OK;
}
