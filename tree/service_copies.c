/*
 * service_copies.c
 *		The calls about copies: extents at this memory node that have the same bytes as those of a tree
 *		whose home is another one.
 *
 * The tree has a record here, too, with all that its home's has.  Each of the extents says in its header what
 * it is a copy of, so the units and headers are all there is to be looked up, and nothing of it is in the
 * record but the bytes.
 */
#include "service_state.h"

/* The extent that begins with this unit, if it is a copy of the tree's. */
static bool
copy_at(Service *service, uint64_t tree, uint64_t unit, DirectoryCopy *copy)
{
	const ServiceTables *tables = &service->tables;
	uint64_t units = 1;
	const ExtentHeader *header;

	if (tables->units[unit] != (tree | UNIT_FIRST))
		return false;
	while (unit + units < tables->header->units && tables->units[unit + units] == tree)
		units++;
	copy->copy = tables->first + unit * FABRIC_UNIT_BYTES;
	copy->bytes = units * FABRIC_UNIT_BYTES;
	header = fabric_server_node(service->server, copy->copy, sizeof(*header));
	assert(header != NULL);
	copy->offset = header->copy_of & ~1ull;
	return header->copy_of != 0;
}

/* A record for the copies of a tree, as the home's was when the tree was made. */
static FabricStatus
record_make(Service *service, const FabricPeer *peer, const DirectoryCopyRequest *request,
            ServiceRecord *record)
{
	uint64_t tree = request->tree;
	uint32_t home = pointer_memory_node(request->record.root);

	if (request->record.tree != tree || (tree & ~UNIT_TREE_MASK) != 0 || home >= TREE_MAX_NODES ||
	    tables_find(&service->tables, tree) != NULL)
		return FABRIC_NOT_FOUND;
	memset(record, 0, sizeof(*record));
	record->record = request->record;
	record->record.flags |= TREE_RECORD_SHARE;
	record->record.cluster[0] = peer->cluster[0];
	record->record.cluster[1] = peer->cluster[1];
	record->tenant = peer->tenant;
	record->record.bytes = record->record.extents = record->record.suspect_epoch = 0;
	memset(record->record.members, 0, sizeof(record->record.members));
	record->record.members[home] = request->record.members[home];
	return service_tree_allowed(service, peer->tenant);
}

FabricStatus
service_copy(Service *service, const FabricPeer *peer, const DirectoryCopyRequest *request,
             DirectoryCopy *reply)
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
		status = record_make(service, peer, request, &record);
		if (status != FABRIC_OK)
			return status;
		slot = tables_slot(&service->tables);
	}
	else
		record = *slot;
	if ((record.record.flags & TREE_RECORD_SHARE) == 0)
		return FABRIC_RANGE;
	for (uint64_t unit = 0; record.record.bytes > 0 && unit < service->tables.header->units; unit++)
		if (copy_at(service, request->tree, unit, reply) && reply->offset == request->offset)
			return FABRIC_OK;
	status = service_extent_take(service, &record, &bytes, &reply->copy);
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

FabricStatus
service_copies(Service *service, const FabricPeer *peer, const DirectoryCopiesRequest *request,
               DirectoryCopies *reply)
{
	uint64_t units = service->tables.header->units;
	uint64_t unit = request->position;

	if (service_peer_tree(service, peer, request->tree) == NULL)
		return FABRIC_NOT_FOUND;
	for (; unit < units && reply->count < DIRECTORY_COPIES_MAX; unit++)
		reply->count += copy_at(service, request->tree, unit, &reply->copies[reply->count]);
	reply->position = unit;
	return FABRIC_OK;
}
