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

/* So many cells one WRITE at this memory node may fill; 0: not even one. */
static uint32_t
cells_of_write(const Tree *tree, uint32_t memory_node)
{
	const NodeGeometry *g = &tree->geometry;
	const FabricCapabilities *capabilities;

	/* Where a copy's memory node is away the chain fails. */
	if (g->lines_whole || tree->client->options.endpoints[memory_node] == NULL)
		return g->leaf_cells;
	capabilities = access_capabilities(tree->client, memory_node);
	if ((capabilities->flags & FABRIC_CAP_OPERATION_ATOMIC) != 0)
		return g->leaf_cells;
	return capabilities->one_packet / g->cell_bytes;
}

int
cells_write_ops(const Tree *tree, uint64_t pointer, uint64_t *node, uint32_t slot, uint32_t count,
                FabricOp *ops, uint32_t *written)
{
	const NodeGeometry *g = &tree->geometry;
	uint32_t word = leaf_cell_word(g, slot);
	uint32_t most = cells_of_write(tree, tree_place(tree, pointer_memory_node(pointer)));

	assert(count > 0 && slot + count <= g->leaf_cells);
	if (tree->replicas != NULL)
	{
		uint32_t at_copy = cells_of_write(tree, replicas_copy(tree));

		most = most < at_copy ? most : at_copy;
	}
	*written = most == 0 ? 1 : most < count ? most : count;
	ops[0] = (FabricOp){.opcode = FABRIC_WRITE,
	                    .region = FABRIC_NODES,
	                    .length = *written * g->cell_bytes,
	                    .offset = pointer_offset(pointer) + word * 8,
	                    .buffer = node + word};
	if (most > 0)
		return 1;
	/* The word that makes it live comes last. */
	ops[1] = ops[0];
	ops[1].length = 8;
	ops[0].length -= 8;
	ops[0].offset += 8;
	ops[0].buffer = node + word + 1;
	return CELL_WRITE_OPS;
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
