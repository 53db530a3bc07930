/*
 * replicas_compare.c
 *		Compares each node of a tree with its replica, and rewrites replicas that differ.
 *
 * Level by level from the root down, each along its right links. A node is first read without a lock, after its
 * replica: words that are equal then were not different before both reads, as a process that wrote one of them in
 * between wrote both. Where words differ the node is locked and compared again: then this process is the only writer.
 */
#include "tree/client/replicas.h"
#include "tree/lock/lock.h"

/* Walks that are begun anew, as the root has grown meanwhile. */
#define WALK_ATTEMPTS 16

typedef struct Compare
{
	Tree *tree;
	bool repair;
	TreeReplicaCounts *counts;
	uint64_t node[NODE_MAX_BYTES / 8];
	uint64_t copy[NODE_MAX_BYTES / 8];
} Compare;

/* Reads the node's copy, as it lies. */
static TreeStatus
replica_read(Compare *compare, uint64_t pointer, uint32_t bytes)
{
	Tree *tree = compare->tree;
	const ReplicaPiece *piece;
	TreeStatus status = replicas_know(tree, pointer_offset(pointer), &piece);
	FabricOp op = {.opcode = FABRIC_READ, .region = FABRIC_NODES, .length = bytes, .buffer = compare->copy};

	if (status != TREE_OK)
		return status;
	op.offset = piece->copy + (pointer_offset(pointer) - piece->offset);
	return access_repeat(tree, tree->replicas->node, &op, 1, "reads of copies");
}

/*
 * A node that differs from its copy: looks again under its lock, and has the copy written by a write that
 * changes nothing.
 */
static TreeStatus
node_settle(Compare *compare, uint64_t pointer, uint32_t level)
{
	Tree *tree = compare->tree;
	uint64_t *node = tree->client->image;
	uint32_t bytes = tree_node_bytes(tree, pointer, level);
	FabricOp ops[REDO_OPS + 2];
	LockHandle lock;
	int count = 0;
	TreeStatus status = lock_and_read(tree, pointer, bytes, node, &lock);

	if (status != TREE_OK)
		return status;
	status = replica_read(compare, pointer, node_bytes(&tree->geometry, node_level(node)));
	if (status == TREE_OK && memcmp(node, compare->copy, node_bytes(&tree->geometry, node_level(node))) != 0)
	{
		compare->counts->differ++;
		if (compare->repair)
			count = lock_rewrite_ops(tree, &lock, pointer, node,
			                         node_bytes(&tree->geometry, node_level(node)), ops);
	}
	if (status != TREE_OK)
	{
		(void) lock_release(tree, &lock, pointer, NULL, 0);
		return status;
	}
	status = lock_write_and_release(tree, &lock, ops, count, pointer, node, bytes);
	if (status == TREE_OK && count > 0)
		compare->counts->written++;
	return status;
}

/* Compares the node, which is left in compare->node as it was read. */
static TreeStatus
node_compare(Compare *compare, uint64_t pointer, uint32_t level)
{
	Tree *tree = compare->tree;
	uint32_t bytes = node_bytes(&tree->geometry, level);
	TreeStatus status = replica_read(compare, pointer, bytes);

	if (status == TREE_OK)
		status = access_read_node(tree, pointer, (int) level, compare->node);
	if (status != TREE_OK)
		return status;
	compare->counts->nodes++;
	if (memcmp(compare->node, compare->copy, bytes) == 0)
		return TREE_OK;
	/*
	 * The node has changed, or a chain was indeterminate and is settled now: the process that wrote it has written
	 * both, or has noted a doubt.
	 */
	for (int attempt = 0; attempt < LOST_ATTEMPTS; attempt++)
	{
		status = node_settle(compare, pointer, level);
		if (status != TREE_RETRY)
			break;
	}
	return status;
}

/* Walks one level from its leftmost node; *below is the leftmost node of the next one. */
static TreeStatus
level_compare(Compare *compare, uint64_t leftmost, uint32_t level, uint64_t *below)
{
	const NodeGeometry *g = &compare->tree->geometry;
	RightWalk walk = {.steps = 0};

	*below = POINTER_NONE;
	for (uint64_t pointer = leftmost; pointer != POINTER_NONE; pointer = compare->node[HEADER_RIGHT])
	{
		TreeStatus status;

		if (client_should_stop(compare->tree->client))
			return client_fail(compare->tree->client, TREE_STOPPED, "stopped between two nodes");
		if (!walk_goes_on(&walk, pointer, 0))
			return access_ring(compare->tree, pointer);
		status = node_compare(compare, pointer, level);
		if (status != TREE_OK)
			return status;
		if (pointer == leftmost && level > 0)
			*below = compare->node[inner_cell_word(g, 0)];
	}
	return TREE_OK;
}

/* One walk. TREE_RETRY: the root has grown meanwhile. */
static TreeStatus
walk(Compare *compare)
{
	Tree *tree = compare->tree;
	uint64_t leftmost = tree->root;
	uint32_t level;
	TreeStatus status = access_read_node(tree, tree->root, -1, compare->node);

	if (status != TREE_OK)
		return status;
	memset(compare->counts, 0, sizeof(*compare->counts));
	for (level = node_level(compare->node) + 1; level-- > 0 && status == TREE_OK;)
	{
		uint64_t below;

		status = level_compare(compare, leftmost, level, &below);
		leftmost = below;
	}
	return status;
}

TreeStatus
tree_replicas_compare(Tree *handle, bool repair, TreeReplicaCounts *counts)
{
	Compare compare = {.tree = handle, .repair = repair, .counts = counts};
	TreeStatus status;
	uint64_t doubts;
	bool open;
	int section;

	assert(!handle->client->holding);
	memset(counts, 0, sizeof(*counts));
	if (handle->replicas == NULL || replicas_state(handle) != TREE_REPLICAS_BOTH)
		return client_fail(handle->client, TREE_INVALID, "tree %llx has no copies in use",
		                   (unsigned long long) handle->tree);
	doubts = state_replicas_doubts(handle->state, &open);
	status = critical_enter(handle, &section);
	if (status != TREE_OK)
		return status;
	status = TREE_RETRY;
	for (int attempt = 0; attempt < WALK_ATTEMPTS && status == TREE_RETRY; attempt++)
		status = walk(&compare);
	critical_leave(handle, section);
	if (status == TREE_RETRY)
		status = client_fail(handle->client, TREE_DAMAGED, "tree %llx: a walk along its nodes does not end",
		                     (unsigned long long) handle->tree);
	if (status == TREE_OK && repair)
		state_replicas_settle(handle->state, doubts);
	return status;
}
