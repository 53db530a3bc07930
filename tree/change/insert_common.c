/*
 * insert_common.c
 *		What inserts of all kinds do: ask for the permit, write the overflow key and the WAL position, release the
 *		leaf, insert the downlink.
 */
#include "tree/change/insert.h"

bool
permit_ask(Insertion *in)
{
	assert(in->permit != NULL);
	in->permitted = in->permit->begin(in->permit->argument, in->key);
	in->alone = in->permitted;
	return in->permitted;
}

/* The lock under which the permit was given was released. */
static void
permit_end(Insertion *in)
{
	assert(!in->tree->client->holding);
	in->permit->end(in->permit->argument, in->key);
	in->permitted = false;
}

TreeStatus
insert_wrote(Insertion *in, TreeStatus status)
{
	assert(!in->lock.held);
	assert(!in->tree->client->holding);
	if (in->permitted)
		permit_end(in);
	if (status == TREE_OK)
		in->tree->inserted = in->path.pointer;
	else
		in->again = true;
	if (status != TREE_OK || !in->kept)
		in->tree->block.bytes = 0;
	return status;
}

FabricOp
insert_image_op(const Insertion *in)
{
	uint32_t bytes = (in->overflow.bytes + 7) / 8 * 8;
	FabricOp op = {
		.opcode = FABRIC_WRITE,
		.region = FABRIC_NODES,
		.length = bytes,
		.offset = in->overflow.offset,
		.buffer = in->tree->overflow,
	};

	assert(in->has_overflow && in->image_pending);
	assert(bytes <= TREE_IMAGE_MAX_BYTES);
	in->tree->overflow[bytes / 8 - 1] = 0;
	memcpy(in->tree->overflow, in->key->image, in->overflow.bytes);
	return op;
}

bool
insert_set_wal_position(const Tree *tree, const TreeWalPosition *wal, uint64_t *node)
{
	uint32_t epoch = (uint32_t) node[HEADER_EPOCH];
	uint32_t unverified = leaf_unverified_since(node);

	assert(node_level(node) == 0);
	if (epoch > wal->epoch || (epoch == wal->epoch && node[HEADER_LSN] >= wal->lsn))
		return false;
	/* The new WAL position is proven, or will be judged by itself; the older epoch that it replaces is remembered. */
	if (unverified == 0 && leaf_is_unverified(&tree->geometry, node))
		unverified = epoch;
	node[HEADER_LSN] = wal->lsn;
	node[HEADER_EPOCH] = (uint64_t) unverified << 32 | wal->epoch;
	assert((uint32_t) node[HEADER_EPOCH] == wal->epoch);
	return true;
}

TreeStatus
insert_release(Insertion *in)
{
	Tree *tree = in->tree;
	TreeStatus status;

	assert(in->lock.held);
	assert(tree->client->holding);
	status = lock_release(tree, &in->lock, in->path.pointer, tree->client->image,
	                      tree_node_bytes(tree, in->path.pointer, 0));
	if (in->permitted)
		permit_end(in);
	return status;
}

TreeStatus
downlink_delayed(TreeStatus status)
{
	assert(status != TREE_RETRY);
	switch (status)
	{
		case TREE_MEMORY_FULL:
		case TREE_NO_MEMORY:
		case TREE_STOPPED:
		case TREE_TIMED_OUT:
			return TREE_OK;
		default:
			return status;
	}
}

TreeStatus
insert_downlink(Insertion *in, uint64_t left, const uint64_t *separator, uint64_t right)
{
	TreeStatus status = downlink_insert(in->tree, 0, left, separator, right, &in->path);

	assert(!in->tree->client->holding);
	return downlink_delayed(status);
}
