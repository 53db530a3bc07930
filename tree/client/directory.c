/*
 * directory.c
 *		The client's side of the calls to a memory node's service: trees, records, extents, epochs.
 *
 * Calls are rare and wait for microseconds to milliseconds: nothing is held here (directory_call.c).
 */
#include "tree/client/directory.h"
#include "tree/shared/cache.h"

/* The identity of a memory node's memory, as records name it; 0: it is not connected. */
static uint64_t
member_of(TreeClient *client, uint32_t memory_node)
{
	uint64_t member = __atomic_load_n(&client->shared->members[memory_node], __ATOMIC_ACQUIRE);

	assert(memory_node < client->options.nodes);
	if (access_endpoint(client, memory_node) == NULL)
		return 0;
	return member != 0 ? member : access_capabilities(client, memory_node)->node_uuid[0];
}

/* Has the tree's record say that the tree may have extents on the memory node. */
static TreeStatus
directory_join(TreeClient *client, uint64_t tree, uint32_t home, uint32_t memory_node)
{
	TreeRecord record;

	assert(home != memory_node);
	memset(&record, 0, sizeof(record));
	record.tree = tree;
	record.members[memory_node] = member_of(client, memory_node);
	if (record.members[memory_node] == 0)
		return client_away(client, memory_node);
	return directory_call(client, home, DIRECTORY_UPDATE, &record, sizeof(record), NULL, 0);
}

TreeStatus
directory_extent_wanted(TreeClient *client, uint32_t memory_node, uint64_t tree, uint32_t home,
                        uint32_t extents, uint32_t wanted, DirectoryExtent *extent)
{
	DirectoryExtentRequest request = {.tree = tree, .extents = extents, .home = home, .wanted = wanted};
	TreeStatus status;

	assert(tree != 0);
	assert(extent != NULL);
	if (memory_node != home)
	{
		request.share = 1;
		request.home_member = member_of(client, home);
		if (request.home_member == 0)
			return client_away(client, home);
		if (extents == 0)
		{
			status = directory_join(client, tree, home, memory_node);
			if (status != TREE_OK)
				return status;
		}
	}
	status = directory_call(client, memory_node, DIRECTORY_EXTENT, &request, sizeof(request), extent,
	                        sizeof(*extent));
	if (status == TREE_OK &&
	    (extent->bytes < EXTENT_MIN_BYTES || extent->bytes > EXTENT_MAX_BYTES ||
	     extent->bytes % FABRIC_STRIPE_BYTES != 0 || extent->offset % FABRIC_STRIPE_BYTES != 0 ||
	     extent->offset > POINTER_OFFSET_END - extent->bytes || extent->generation == 0))
		return client_fail(client, TREE_DAMAGED, "memory node %u: an extent of %llu bytes at %llx",
		                   memory_node, (unsigned long long) extent->bytes,
		                   (unsigned long long) extent->offset);
	return status;
}

TreeStatus
directory_give(TreeClient *client, uint32_t memory_node, const DirectoryGive *give)
{
	TreeStatus status = directory_call(client, memory_node, DIRECTORY_GIVE, give, sizeof(*give), NULL, 0);

	return status == TREE_NOT_FOUND ? TREE_OK : status;
}

/* Writes the empty root leaf of a new tree to the place of the root, or of its copy. */
static TreeStatus
root_write(TreeClient *client, const DirectoryCreated *created, uint64_t place)
{
	NodeGeometry geometry = node_geometry(&created->record.format);
	uint32_t memory_node = pointer_memory_node(place);
	uint32_t copy;
	FabricOp op;
	FabricStatus status = FABRIC_LOST;

	assert(pointer_offset(created->record.root) == created->extent.offset + DIRECTORY_ROOT_OFFSET);
	assert(!client->holding);
	geometry.leaf_sums = client_leaf_sums(client, &geometry);
	if (tree_record_replica(&created->record, &copy))
		geometry.twins = 1ull << pointer_memory_node(created->record.root) | 1ull << copy;
	node_begin(&geometry, client->image, created->record.tree, created->record.root, 0,
	           created->extent.generation, NODE_ROOT);
	node_set_fence(&geometry, client->image, false, NULL);
	node_set_fence(&geometry, client->image, true, NULL);
	node_seal(&geometry, client->image);
	memset(&op, 0, sizeof(op));
	op.opcode = FABRIC_WRITE;
	op.region = FABRIC_NODES;
	op.length = geometry.leaf_bytes;
	op.offset = pointer_offset(place);
	op.buffer = client->image;
	for (int attempt = 0; client_tries_again(client, attempt); attempt++)
	{
		FabricEndpoint *endpoint = access_endpoint(client, memory_node);
		TreeStatus settled;

		if (endpoint == NULL)
			return client_away(client, memory_node);
		status = crash_point_execute(client, endpoint, &op, 1);
		if (status == FABRIC_OK)
		{
			client_silence_ends(client);
			return TREE_OK;
		}
		if (status != FABRIC_TIMED_OUT && status != FABRIC_STOPPED && status != FABRIC_LOST)
			break;
		client->doubt |= 1ull << memory_node;
		settled = access_settle(client, memory_node);
		if (settled != TREE_OK)
			return settled;
	}
	return client_fabric_fail(client, memory_node, status);
}

static TreeStatus
drop_at(TreeClient *client, uint32_t memory_node, uint64_t tree)
{
	DirectoryTree request = {.tree = tree};

	assert(tree != 0);
	assert(memory_node < client->options.nodes);
	return directory_call(client, memory_node, DIRECTORY_DROP, &request, sizeof(request), NULL, 0);
}

/* The memory nodes that are open, beginning with any of them, each as likely as another; returns how many. */
static uint32_t
open_nodes(TreeClient *client, uint32_t open[TREE_MAX_NODES])
{
	uint32_t found[TREE_MAX_NODES];
	uint32_t count = 0, first;

	for (uint32_t i = 0; i < client->options.nodes; i++)
		if (node_is_open(client->shared, i))
			found[count++] = i;
	first = count == 0 ? 0 : (uint32_t) (client_random(client) % count);
	for (uint32_t i = 0; i < count; i++)
		open[i] = found[(first + i) % count];
	return count;
}

/*
 * Writes the members of a tree at `home` into the record, and chooses among the open memory nodes the one for its
 * replica, if it is to have one.
 */
static TreeStatus
members_choose(TreeClient *client, const uint32_t *nodes, uint32_t count, uint32_t home, TreeRecord *record)
{
	uint32_t copy = nodes[(home + 1) % count];

	memset(record->members, 0, sizeof(record->members));
	record->members[nodes[home]] = member_of(client, nodes[home]);
	if ((record->flags & TREE_RECORD_REPLICATED) == 0)
		return TREE_OK;
	if (count < 2)
		return client_fail(client, TREE_UNREACHABLE, "there is no second memory node for the copies");
	record->members[copy] = member_of(client, copy);
	if (record->members[copy] == 0)
		return client_away(client, copy);
	record->flags &= ~(TREE_RECORD_REPLICA_MASK << TREE_RECORD_REPLICA_SHIFT);
	record->flags |= (copy + 1) << TREE_RECORD_REPLICA_SHIFT;
	return TREE_OK;
}

/* Writes the empty root of a tree that was made, and before it its copy. */
static TreeStatus
roots_write(TreeClient *client, const DirectoryCreated *created)
{
	uint32_t copy;
	uint64_t replica_root;
	TreeStatus status;

	if (tree_record_replica(&created->record, &copy))
	{
		status = directory_replica_begin(client, created, &replica_root);
		if (status == TREE_OK)
			status = root_write(client, created, replica_root);
		if (status != TREE_OK)
			return status;
	}
	return root_write(client, created, created->record.root);
}

TreeStatus
tree_create(TreeClient *client, TreeRecord *record)
{
	uint32_t nodes[TREE_MAX_NODES];
	uint32_t count = open_nodes(client, nodes);
	DirectoryCreate request;
	DirectoryCreated created;
	TreeStatus status = client_fail(client, TREE_UNREACHABLE, "no memory node is attached");

	assert(record != NULL);
	if (!format_valid(&record->format))
		return client_fail(client, TREE_INVALID, "cells of %u bytes with %u bytes of normalized key",
		                   record->format.cell_bytes, record->format.norm_bytes);
	memset(&request, 0, sizeof(request));
	request.token[0] = client_random(client);
	request.token[1] = client_random(client);
	request.record = *record;
	for (uint32_t i = 0; i < count; i++)
	{
		request.memory_node = nodes[i];
		status = members_choose(client, nodes, count, i, &request.record);
		if (status != TREE_OK)
			continue;
		status = directory_call(client, request.memory_node, DIRECTORY_CREATE, &request, sizeof(request),
		                        &created, sizeof(created));
		if (status == TREE_OK || status == TREE_FENCED)
			break;
	}
	if (status != TREE_OK)
		return status;
	status = roots_write(client, &created);
	if (status != TREE_OK)
	{
		uint32_t copy;

		/* No metapage names the tree; the collector frees what cannot be freed now. */
		if (tree_record_replica(&created.record, &copy) && (client->doubt & 1ull << copy) == 0)
			(void) drop_at(client, copy, created.record.tree);
		if ((client->doubt & 1ull << request.memory_node) == 0)
			(void) drop_at(client, request.memory_node, created.record.tree);
		return status;
	}
	*record = created.record;
	return TREE_OK;
}

TreeStatus
directory_record(TreeClient *client, uint32_t memory_node, uint64_t tree, TreeRecord *record)
{
	DirectoryTree request = {.tree = tree};

	assert(tree != 0);
	assert(record != NULL);
	return directory_call(client, memory_node, DIRECTORY_READ, &request, sizeof(request), record,
	                      sizeof(*record));
}

TreeStatus
tree_drop(TreeClient *client, uint64_t tree, uint32_t home)
{
	TreeRecord record;
	TreeStatus status;

	if (tree == 0 || home >= client->options.nodes)
		return client_fail(client, TREE_INVALID, "there is no tree %016llx", (unsigned long long) tree);
	status = directory_record(client, home, tree, &record);
	/* The shares first; those that cannot be reached now have no tree from then on, which can be seen. */
	for (uint32_t i = 0; status == TREE_OK && i < client->options.nodes; i++)
		if (i != home && record.members[i] != 0 && node_is_open(client->shared, i))
			(void) drop_at(client, i, tree);
	if (status == TREE_OK)
		status = drop_at(client, home, tree);
	if (status != TREE_OK && status != TREE_NOT_FOUND)
		return status;
	cache_drop_tree(client->shared, tree);
	state_drop(client->shared, tree);
	return TREE_OK;
}

TreeStatus
tree_record_read(TreeClient *client, uint64_t tree, uint32_t home, TreeRecord *record)
{
	TreeStatus status = tree_record_at_home(client, tree, home, record);

	for (uint32_t i = 0; status == TREE_OK && i < client->options.nodes; i++)
	{
		TreeRecord share;

		if (i == home || record->members[i] == 0 || directory_record(client, i, tree, &share) != TREE_OK)
			continue;
		record->bytes += share.bytes;
		record->extents += share.extents;
	}
	return status;
}

TreeStatus
tree_record_at_home(TreeClient *client, uint64_t tree, uint32_t home, TreeRecord *record)
{
	if (tree == 0 || home >= client->options.nodes)
		return client_fail(client, TREE_INVALID, "there is no tree %016llx", (unsigned long long) tree);
	return directory_record(client, home, tree, record);
}

TreeStatus
tree_record_update(TreeClient *client, const TreeRecord *record)
{
	uint32_t home = tree_home(record->root);

	if (record->tree == 0 || home >= client->options.nodes)
		return client_fail(client, TREE_INVALID, "there is no tree %016llx",
		                   (unsigned long long) record->tree);
	return directory_call(client, home, DIRECTORY_UPDATE, record, sizeof(*record), NULL, 0);
}

static TreeStatus
list_call(TreeClient *client, uint32_t node, bool shares, uint32_t *position, TreeRecord *record)
{
	DirectoryPosition request = {.position = *position, .shares = shares};
	DirectoryListed listed;
	TreeStatus status;

	assert(record != NULL);
	if (node >= client->options.nodes)
		return client_fail(client, TREE_INVALID, "there is no memory node %u", node);
	status = directory_call(client, node, DIRECTORY_LIST, &request, sizeof(request), &listed, sizeof(listed));
	if (status == TREE_NOT_FOUND)
		return TREE_END;
	if (status != TREE_OK)
		return status;
	if (listed.position <= request.position)
		return client_fail(client, TREE_DAMAGED, "memory node %u: the list of trees does not advance", node);
	*position = listed.position;
	*record = listed.record;
	return TREE_OK;
}

TreeStatus
tree_record_list(TreeClient *client, uint32_t node, uint32_t *position, TreeRecord *record)
{
	return list_call(client, node, false, position, record);
}

TreeStatus
tree_share_list(TreeClient *client, uint32_t node, uint32_t *position, TreeRecord *record)
{
	return list_call(client, node, true, position, record);
}

TreeStatus
tree_share_drop(TreeClient *client, uint32_t node, uint64_t tree)
{
	if (tree == 0 || node >= client->options.nodes)
		return client_fail(client, TREE_INVALID, "there is no share of tree %016llx at memory node %u",
		                   (unsigned long long) tree, node);
	return drop_at(client, node, tree);
}

TreeStatus
tree_node_status(TreeClient *client, uint32_t node, TreeNodeStatus *status)
{
	assert(status != NULL);
	if (node >= client->options.nodes)
		return client_fail(client, TREE_INVALID, "there is no memory node %u", node);
	return directory_call(client, node, DIRECTORY_STATUS, NULL, 0, status, sizeof(*status));
}

FabricStatus
tree_node_probe(FabricEndpoint *endpoint, TreeNodeStatus *status)
{
	uint32_t got = sizeof(*status);
	FabricStatus called;

	assert(endpoint != NULL && status != NULL);
	called = fabric_call(endpoint, DIRECTORY_STATUS, NULL, 0, status, &got);
	return called == FABRIC_OK && got != sizeof(*status) ? FABRIC_PROTOCOL : called;
}

static TreeStatus
epoch_call(TreeClient *client, uint32_t node, DirectoryMethod method, uint64_t epoch)
{
	DirectoryEpoch request = {.epoch = epoch};

	assert(method == DIRECTORY_EPOCH_OPEN || method == DIRECTORY_EPOCH_CLOSE);
	if (node >= client->options.nodes || epoch == 0)
		return client_fail(client, TREE_INVALID, "epoch %llu, memory node %u", (unsigned long long) epoch,
		                   node);
	return directory_call(client, node, method, &request, sizeof(request), NULL, 0);
}

TreeStatus
tree_epoch_open(TreeClient *client, uint32_t node, uint64_t epoch)
{
	return epoch_call(client, node, DIRECTORY_EPOCH_OPEN, epoch);
}

TreeStatus
tree_epoch_close(TreeClient *client, uint32_t node, uint64_t epoch)
{
	return epoch_call(client, node, DIRECTORY_EPOCH_CLOSE, epoch);
}
