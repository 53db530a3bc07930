/*
 * service_replicas.c
 *		The calls about replicas: extents at this memory node that have the same bytes as those of a tree whose home
 *		is another one.
 *
 * The tree has a record here, too, with the same fields as at its home. Each extent's header names the extent that it
 * replicates: so a replica is found through the record's extents and their headers, and the record itself only counts
 * the bytes.
 */
#include "tree/service/service_state.h"

/* Is the extent a copy? Then it is described. */
static bool
replica_describe(Service *service, const TablesExtent *extent, DirectoryReplica *copy)
{
	const ExtentHeader *header = fabric_server_node(service->server, extent->offset, sizeof(*header));
	uint64_t copy_of;

	assert(header != NULL);
	copy_of = __atomic_load_n(&header->copy_of, __ATOMIC_RELAXED);
	*copy = (DirectoryReplica){.offset = copy_of & ~1ull, .bytes = extent->bytes, .copy = extent->offset};
	return copy_of != 0;
}

/*
 * Searches for the replica of an address, from where the call's last round ended. FABRIC_NOT_FOUND: there is none;
 * FABRIC_BUSY: none so far. Extents that are added meanwhile come last, so that they are found, too.
 */
static FabricStatus
replica_find(Service *service, const FabricPeer *peer, const ServiceRecord *slot, uint64_t offset,
             DirectoryReplica *copy)
{
	TablesExtent extent;

	for (uint32_t looked = 0; looked < TABLES_ROUND; looked++)
	{
		if (!tables_extent_next(&service->tables, slot, (uint32_t) *peer->progress, &extent))
			return FABRIC_NOT_FOUND;
		if (replica_describe(service, &extent, copy) && copy->offset == offset)
			return FABRIC_OK;
		*peer->progress = extent.name;
	}
	return FABRIC_BUSY;
}

/* A record for the copies of a tree, as the home's was when the tree was made. */
static FabricStatus
record_make(Service *service, const FabricPeer *peer, const DirectoryReplicaRequest *request,
            ServiceRecord *record, ServiceRecord **slot)
{
	uint64_t tree = request->tree;
	uint32_t home = pointer_memory_node(request->record.root);

	if (tree == 0 || request->record.tree != tree || tree >= TABLES_ID_LIMIT || home >= TREE_MAX_NODES)
		return FABRIC_NOT_FOUND;
	memset(record, 0, sizeof(*record));
	record->record = request->record;
	record->record.flags = (request->record.flags & SERVICE_FLAGS_OF_CLIENTS) | TREE_RECORD_SHARE;
	record->record.cluster[0] = peer->cluster[0];
	record->record.cluster[1] = peer->cluster[1];
	record->tenant = peer->tenant;
	record->record.bytes = record->record.extents = record->record.unverified_epoch = 0;
	memset(record->record.members, 0, sizeof(record->record.members));
	record->record.members[home] = request->record.members[home];
	return service_slot(service, peer->tenant, slot);
}

FabricStatus
service_replica(Service *service, const FabricPeer *peer, const DirectoryReplicaRequest *request,
                DirectoryReplica *reply)
{
	ServiceRecord *slot = service_peer_tree(service, peer, request->tree);
	ServiceRecord record;
	ExtentHeader *header;
	uint64_t bytes = request->bytes;
	FabricStatus status;

	if (bytes == 0 || bytes > EXTENT_MAX_BYTES || bytes % FABRIC_UNIT_BYTES != 0 ||
	    request->offset % FABRIC_UNIT_BYTES != 0)
		return FABRIC_RANGE;
	if (slot == NULL)
	{
		status = record_make(service, peer, request, &record, &slot);
		if (status != FABRIC_OK)
			return status;
	}
	else
	{
		record = *slot;
		if ((record.record.flags & TREE_RECORD_SHARE) == 0)
			return FABRIC_RANGE;
		status = replica_find(service, peer, slot, request->offset, reply);
		if (status != FABRIC_NOT_FOUND)
			return status;
	}
	status = service_extent_take(service, slot, peer->tenant, &bytes, &reply->copy);
	if (status != FABRIC_OK)
		return status;
	header = fabric_server_node(service->server, reply->copy, sizeof(*header));
	assert(header != NULL);
	memset(header, 0, sizeof(*header));
	header->magic = EXTENT_MAGIC;
	header->tree = request->tree;
	header->bytes = bytes;
	header->bump = bytes; /* nothing is taken from it */
	header->copy_of = request->offset | 1;
	/* First the record: units of a tree without one are free. */
	record.record.bytes += bytes;
	tables_put(&service->tables, slot, &record);
	tables_units_grant(&service->tables, reply->copy, bytes / FABRIC_UNIT_BYTES);
	reply->offset = request->offset;
	reply->bytes = bytes;
	return FABRIC_OK;
}

/*
 * A position in the walk over a record's extents: the run of this memory node (the extents of a record have another order in the
 * next one), how many were passed, and the last of them.  It only rises.
 */
#define POSITION_BITS 29u
#define POSITION_MASK ((1ull << POSITION_BITS) - 1)

_Static_assert(SERVICE_MAX_BYTES / FABRIC_UNIT_BYTES < POSITION_MASK, "a position has room for every unit");

static uint64_t
position_begin(const Service *service)
{
	return fabric_server_generation(service->server) << 2 * POSITION_BITS;
}

FabricStatus
service_replicas(Service *service, const FabricPeer *peer, const DirectoryReplicasRequest *request,
                 DirectoryReplicas *reply)
{
	const ServiceRecord *slot = service_peer_tree(service, peer, request->tree);
	uint64_t position = *peer->progress > request->position ? *peer->progress : request->position;
	TablesExtent extent;

	if (slot == NULL)
		return FABRIC_NOT_FOUND;
	if (position >> 2 * POSITION_BITS != position_begin(service) >> 2 * POSITION_BITS)
		position = position_begin(service);
	for (uint32_t looked = 0; reply->count < DIRECTORY_REPLICAS_MAX; looked++)
	{
		if (looked == TABLES_ROUND && reply->count == 0)
		{
			*peer->progress = position;
			return FABRIC_BUSY;
		}
		if (looked == TABLES_ROUND ||
		    !tables_extent_next(&service->tables, slot, (uint32_t) (position & POSITION_MASK), &extent))
			break;
		position = (position & ~POSITION_MASK) + POSITION_MASK + 1 + extent.name;
		reply->count += replica_describe(service, &extent, &reply->replicas[reply->count]);
	}
	reply->position = position;
	return FABRIC_OK;
}
