/*
 * reread.c
 *		Whether a leaf that a scan has read still is the generation that it was.
 *
 * Who trusts what was said of rows elsewhere (PostgreSQL's visibility map) asks this afterwards: inside one
 * generation no entry leaves its slot (I-T5), so what was read is still there, and nobody can have been told
 * that it is removed.
 */
#include "scan.h"

TreeStatus
tree_batch_unchanged(TreeScan *scan, const TreeBatch *batch, bool *unchanged)
{
	Tree *tree = scan->tree;
	uint32_t memory_node = pointer_memory_node(batch->leaf);
	FabricOp op = {
		.opcode = FABRIC_READ,
		.region = FABRIC_NODES,
		.length = sizeof(scan->reread),
		.offset = pointer_offset(batch->leaf),
		.buffer = scan->reread,
	};
	TreeStatus status = TREE_RETRY;

	assert(batch == &scan->batch);
	assert(!tree->client->holding);
	*unchanged = false;
	for (int attempt = 0; status == TREE_RETRY && client_tries_again(tree->client, attempt); attempt++)
		status = access_execute(tree, memory_node, &op, 1);
	if (status == TREE_RETRY)
		return client_unanswered(tree->client, memory_node, "reads of a leaf's header");
	if (status != TREE_OK)
		return status;
	/* No sum is wanted: each word is read whole, and one that is older than its neighbors is older than a removal. */
	*unchanged = scan->reread[HEADER_TREE] == tree->tree &&
	             scan->reread[HEADER_GENERATION] == batch->generation &&
	             scan->reread[HEADER_SELF] == pointer_address(batch->leaf);
	return TREE_OK;
}
