/*
 * service_calls.c
 *		The calls of directory.h: trees, extents, epochs, and what a client may learn of them.
 *
 * A client that does not know whether its call ran repeats it.  So each of them does the same when it comes
 * twice:
 *
 *		CREATE		the request bears a random token: the tree that has it is the answer
 *		DROP		ids are used once: a tree that is not there was dropped
 *		READ, LIST, STATUS	change nothing
 *		UPDATE		flags and members are only set, epochs only rise; the nonce is the request's in either
 *					case
 *		EPOCH_OPEN	opens what is open already; an epoch that was closed is not opened again
 *		EPOCH_CLOSE	closes what is closed already; an older epoch is refused
 *		EXTENT		the request says how many extents the caller knows: if there are more, the last is the
 *					answer
 *		GIVE		the request names the extent by its number, which no later one at that place has
 *		COPY		what has a copy keeps it: that is the answer (service_replicas.c)
 *		DESCEND		changes nothing (service_descend.c)
 */
#include <time.h>

#include "tree/service/service_state.h"

/* An extent is at most this share of the tree's memory: so there is little unused memory, and calls are few. */
#define EXTENT_PART 4u

/* ---- extents ---- */

/*
 * The generation that an extent's nodes begin with.  It is random, so that stamps of earlier uses of the memory do not match.  Each of
 * a tree's is above the one before by more than a place's nodes ever count up: a tree that gets memory which it had given back goes on
 * with later generations there.
 */
#define GENERATION_STEP (1ull << 40)

static uint64_t
generation_next(const ServiceRecord *record)
{
	uint64_t random = service_random();

	/* Half of the range is left to count up in; never 0. */
	if (record->last_generation == 0)
		return (random >> 2) | 1;
	return record->last_generation + GENERATION_STEP + random % GENERATION_STEP;
}

/*
 * Bytes of the next extent of a tree that has so many: 64 KB, then doubling with the tree up to 8 MB; or what the caller is about to
 * use, with the extent's header, so that there is no less room for it by a unit or more; no more
 * than that if it is `all` that the tree is foreseen to use.
 */
static uint64_t
extent_bytes_next(uint64_t tree_bytes, uint64_t wanted, bool all)
{
	uint64_t used =
		(wanted + FABRIC_STRIPE_BYTES + FABRIC_UNIT_BYTES - 1) / FABRIC_UNIT_BYTES * FABRIC_UNIT_BYTES;
	uint64_t bytes = EXTENT_MIN_BYTES;

	assert(EXTENT_MIN_BYTES % FABRIC_UNIT_BYTES == 0);
	while (bytes < EXTENT_MAX_BYTES && bytes * 2 * EXTENT_PART <= tree_bytes && !all)
		bytes *= 2;
	if (bytes < used)
		bytes = used < EXTENT_MAX_BYTES ? used : EXTENT_MAX_BYTES;
	assert(bytes <= EXTENT_MAX_BYTES);
	return bytes;
}

/* Up to where an extent of so many bytes, whose chunks begin at `first`, is taken: as whole chunks, of one that is `whole` all of it. */
static uint64_t
extent_bump(uint64_t first, uint64_t bytes, bool whole)
{
	return whole ? first + chunks_round_up(bytes - first) : first;
}

/*
 * Adds an extent to the record of a slot, in private memory; the caller puts the record and ends with extent_grant(). `wanted`: as in
 * DirectoryExtentRequest.
 * FABRIC_NO_MEMORY, FABRIC_QUOTA, FABRIC_BUSY: nothing happened.
 */
static FabricStatus
extent_add(Service *service, const ServiceRecord *slot, ServiceRecord *record, uint32_t wanted)
{
	bool first = record->record.extents == 0 && (record->record.flags & TREE_RECORD_SHARE) == 0;
	uint64_t bytes = extent_bytes_next(record->record.bytes, wanted & ~DIRECTORY_WANTED_ALL,
	                                   (wanted & DIRECTORY_WANTED_ALL) != 0);
	uint64_t offset;
	ExtentHeader *header;
	FabricStatus status;

	assert(record->record.tree != 0);
	status = service_extent_take(service, slot, (uint32_t) record->tenant, &bytes, &offset);
	if (status != FABRIC_OK)
		return status;
	header = fabric_server_node(service->server, offset, sizeof(*header));
	assert(header != NULL);
	header->magic = EXTENT_MAGIC;
	header->tree = record->record.tree;
	header->bytes = bytes;
	header->bump = extent_bump(first ? DIRECTORY_FIRST_BUMP : DIRECTORY_OTHER_BUMP, bytes, wanted > 0);
	header->copy_of = 0;
	header->previous = record->last_offset;
	header->number = record->record.extents + 1;
	header->generation = generation_next(record);
	record->record.bytes += bytes;
	record->record.extents++;
	record->last_offset = offset;
	record->last_bytes = bytes;
	record->last_generation = header->generation;
	return FABRIC_OK;
}

static void
extent_grant(Service *service, const ServiceRecord *record)
{
	assert(record->last_bytes != 0);
	assert(record->record.extents != 0);
	tables_units_grant(&service->tables, record->last_offset, record->last_bytes / FABRIC_UNIT_BYTES);
}

static void
extent_describe(const Service *service, const ServiceRecord *record, DirectoryExtent *extent)
{
	const ExtentHeader *header = fabric_server_node(service->server, record->last_offset, sizeof(*header));

	assert(header != NULL);
	assert(record->record.extents > 0);
	assert(record->last_bytes >= EXTENT_MIN_BYTES);
	memset(extent, 0, sizeof(*extent));
	extent->offset = record->last_offset;
	extent->bytes = record->last_bytes;
	extent->generation = record->last_generation;
	extent->tree_bytes = record->record.bytes;
	extent->extents = record->record.extents;
	extent->whole = __atomic_load_n(&header->bump, __ATOMIC_RELAXED) >= record->last_bytes;
}

/* ---- calls ---- */

static FabricStatus
call_create(Service *service, const FabricPeer *peer, const DirectoryCreate *request, DirectoryCreated *reply)
{
	TablesOwner owner = service_owner(peer);
	ServiceRecord *slot = tables_find_token(&service->tables, &owner, request->token);
	ServiceRecord record;
	FabricStatus status;

	if (request->memory_node >= TREE_MAX_NODES)
		return FABRIC_RANGE;
	if (slot == NULL)
	{
		status = service_slot(service, peer->tenant, &slot);
		if (status != FABRIC_OK)
			return status;
		memset(&record, 0, sizeof(record));
		record.record = request->record;
		record.record.cluster[0] = owner.cluster[0];
		record.record.cluster[1] = owner.cluster[1];
		record.tenant = owner.tenant;
		record.record.flags &= SERVICE_FLAGS_OF_CLIENTS;
		record.record.bytes = record.record.extents = record.record.unverified_epoch = 0;
		record.token[0] = request->token[0];
		record.token[1] = request->token[1];
		record.record.tree = tables_id(&service->tables, service_random());
		status = extent_add(service, slot, &record, 0);
		if (status != FABRIC_OK)
			return status;
		record.record.root = pointer_make(request->memory_node, record.last_offset + DIRECTORY_ROOT_OFFSET);
		tables_put(&service->tables, slot, &record);
		extent_grant(service, &record);
		service_log(service, FABRIC_LOG_DEBUG, "tree %016llx created",
		            (unsigned long long) record.record.tree);
	}
	reply->record = slot->record;
	extent_describe(service, slot, &reply->extent);
	return FABRIC_OK;
}

static FabricStatus
call_drop(Service *service, const FabricPeer *peer, const DirectoryTree *request)
{
	ServiceRecord *record = service_peer_tree(service, peer, request->tree);
	uint64_t units;

	if (record == NULL)
		return FABRIC_NOT_FOUND;
	units = tables_remove(&service->tables, record, service_now_us());
	assert(units > 0 || (record->record.flags & TREE_RECORD_SHARE) != 0);
	service_log(service, FABRIC_LOG_DEBUG, "tree %016llx dropped: %llu KB",
	            (unsigned long long) request->tree,
	            (unsigned long long) (units * (FABRIC_UNIT_BYTES / 1024)));
	return FABRIC_OK;
}

static FabricStatus
call_read(Service *service, const FabricPeer *peer, const DirectoryTree *request, TreeRecord *reply)
{
	ServiceRecord *record = service_peer_tree(service, peer, request->tree);

	assert(reply != NULL);
	if (record == NULL)
		return FABRIC_NOT_FOUND;
	*reply = record->record;
	return FABRIC_OK;
}

/* Transactions are compared modulo 2^32: one that is so much older was noted before very many others. */
#define HORIZON_IS_STALE (1 << 30)

/* Notes a removal.  Of several in one epoch the youngest of each bound counts, as they come in any order. */
static void
raise_removal(TreeRecord *record, const TreeRecord *request)
{
	bool same = request->removal_epoch == record->removal_epoch;
	int32_t younger = (int32_t) (request->removal_horizon - record->removal_horizon);

	if (request->removal_epoch < record->removal_epoch)
		return;
	record->removal_epoch = request->removal_epoch;
	if (!same || request->removal_lsn > record->removal_lsn)
		record->removal_lsn = request->removal_lsn;
	if (!same || younger > 0 || younger < -HORIZON_IS_STALE)
		record->removal_horizon = request->removal_horizon;
}

static FabricStatus
call_update(Service *service, const FabricPeer *peer, const TreeRecord *request)
{
	ServiceRecord *slot = service_peer_tree(service, peer, request->tree);
	ServiceRecord record;
	uint32_t copy;

	assert(request != NULL);
	/* Of a share only the fields that copy the record's. */
	if (slot == NULL ||
	    ((slot->record.flags & TREE_RECORD_SHARE) != 0 && !tree_record_replica(&slot->record, &copy)))
		return FABRIC_NOT_FOUND;
	record = *slot;
	record.record.flags |= request->flags & (TREE_RECORD_BROKEN | TREE_RECORD_BUILT);
	for (uint32_t i = 0; i < TREE_MAX_NODES; i++)
	{
		if (request->members[i] == 0)
			continue;
		if (record.record.members[i] != 0 && record.record.members[i] != request->members[i])
			return FABRIC_RANGE;
		record.record.members[i] = request->members[i];
	}
	if (request->mutated_epoch > record.record.mutated_epoch)
		record.record.mutated_epoch = request->mutated_epoch;
	raise_removal(&record.record, request);
	if (request->nonce != 0)
		record.record.nonce = request->nonce;
	if ((request->flags & TREE_RECORD_HEALED) != 0)
		record.record.unverified_epoch = 0;
	else if (record.record.unverified_epoch == 0)
		record.record.unverified_epoch = request->unverified_epoch;
	tables_put(&service->tables, slot, &record);
	return FABRIC_OK;
}

static FabricStatus
call_list(Service *service, const FabricPeer *peer, const DirectoryPosition *request, DirectoryListed *reply)
{
	uint32_t position = request->position;
	TablesOwner owner = service_owner(peer);
	ServiceRecord *record;

	assert(reply != NULL);
	if (*peer->progress > position)
		position = (uint32_t) *peer->progress;
	record = tables_next(&service->tables, &owner, request->shares != 0, &position);
	*peer->progress = position;
	if (record == NULL)
		return position < service->tables.max_trees ? FABRIC_BUSY : FABRIC_NOT_FOUND;
	reply->position = position;
	reply->record = record->record;
	return FABRIC_OK;
}

/*
 * Node memory that the peer's tenant has, or could have now. The local tenant, which maps all memory, is given the
 * node's figures; another one its own only, since it must learn nothing about other tenants.
 */
static void
describe_memory(const Service *service, uint32_t tenant, TreeNodeStatus *reply)
{
	const ServiceTables *tables = &service->tables;
	const TablesUse *use = &tables->tenants[tenant];
	uint64_t total = service_bytes_total(service);
	uint64_t taken = (tables->used + tables->quarantined) * FABRIC_UNIT_BYTES;
	uint64_t room = total > taken ? total - taken : 0;
	uint64_t had = use->bytes + use->going_bytes;
	uint64_t quota = service_quota(service, tenant);
	uint64_t first, end;

	if (tenant == 0)
	{
		reply->bytes_total = total;
		reply->bytes_used = tables->used * FABRIC_UNIT_BYTES;
		reply->bytes_quarantined = tables->quarantined * FABRIC_UNIT_BYTES;
		reply->trees = tables->trees;
		reply->channels = fabric_server_channels(service->server);
		return;
	}
	if (fabric_server_part(service->server, tenant, &first, &end) && end - first < had + room)
		room = end - first > had ? end - first - had : 0;
	if (quota > 0 && quota < had + room)
		room = quota > had ? quota - had : 0;
	reply->bytes_total = had + room;
	reply->bytes_used = use->bytes;
	reply->bytes_quarantined = use->going_bytes;
	reply->trees = (uint32_t) use->trees;
	reply->channels = fabric_server_tenant_channels(service->server, tenant);
}

static FabricStatus
call_status(Service *service, const FabricPeer *peer, TreeNodeStatus *reply)
{
	TablesOwner owner = service_owner(peer);
	const ServiceEpoch *epoch = tables_epoch(&service->tables, &owner);

	assert(reply != NULL);
	describe_memory(service, peer->tenant, reply);
	fabric_server_uuid(service->server, reply->uuid);
	reply->generation = fabric_server_generation(service->server);
	reply->epoch = epoch != NULL ? epoch->epoch : 0;
	reply->epoch_clean = epoch != NULL && epoch->clean;
	reply->tenant_bytes = service->tables.tenants[owner.tenant].bytes;
	reply->tenant_quota = service_quota(service, (uint32_t) owner.tenant);
	return FABRIC_OK;
}

/* Epochs only rise; a repeated call finds its work done. */
static FabricStatus
call_epoch(Service *service, const FabricPeer *peer, const DirectoryEpoch *request, bool clean)
{
	TablesOwner owner = service_owner(peer);
	const ServiceEpoch *epoch = tables_epoch(&service->tables, &owner);
	uint64_t last = epoch != NULL ? epoch->epoch : 0;

	if (request->epoch == 0 || request->epoch < last || (clean && request->epoch != last))
		return FABRIC_RANGE;
	if (request->epoch == last && (clean || !epoch->clean))
	{
		if (clean && !epoch->clean)
			return tables_epoch_set(&service->tables, &owner, last, true);
		return FABRIC_OK;
	}
	if (request->epoch == last)
		return FABRIC_RANGE; /* closed clean: it is not opened again */
	return tables_epoch_set(&service->tables, &owner, request->epoch, false);
}

/* A record for the extents of a tree whose own record is at another memory node. */
static FabricStatus
share_make(Service *service, const FabricPeer *peer, const DirectoryExtentRequest *request,
           ServiceRecord *record, ServiceRecord **slot)
{
	uint64_t tree = request->tree;
	TablesOwner owner = service_owner(peer);

	assert(record != NULL);
	if (tree == 0 || tree >= TABLES_ID_LIMIT || request->home >= TREE_MAX_NODES)
		return FABRIC_RANGE;
	memset(record, 0, sizeof(*record));
	record->record.tree = tree;
	record->record.members[request->home] = request->home_member;
	record->record.cluster[0] = owner.cluster[0];
	record->record.cluster[1] = owner.cluster[1];
	record->tenant = owner.tenant;
	record->record.flags = TREE_RECORD_SHARE;
	return service_slot(service, peer->tenant, slot);
}

static FabricStatus
call_extent(Service *service, const FabricPeer *peer, const DirectoryExtentRequest *request,
            DirectoryExtent *reply)
{
	ServiceRecord *slot = service_peer_tree(service, peer, request->tree);
	ServiceRecord record;
	FabricStatus status;

	assert(reply != NULL);
	if (slot == NULL && !request->share)
		return FABRIC_NOT_FOUND;
	if (slot == NULL)
	{
		status = share_make(service, peer, request, &record, &slot);
		if (status != FABRIC_OK)
			return status;
	}
	else
	{
		record = *slot;
		if (record.record.extents > 0 && request->extents != record.record.extents)
		{
			/* The client does not know the last one, or has missed the reply to its earlier call. */
			extent_describe(service, slot, reply);
			return FABRIC_OK;
		}
	}
	status = extent_add(service, slot, &record, request->wanted);
	if (status != FABRIC_OK)
		return status;
	tables_put(&service->tables, slot, &record);
	extent_grant(service, &record);
	extent_describe(service, slot, reply);
	return FABRIC_OK;
}

/* Is the root of the record's tree in the extent that begins at this offset? */
static bool
root_is_in(const ServiceRecord *slot, uint64_t offset)
{
	return (slot->record.flags & TREE_RECORD_SHARE) == 0 &&
	       pointer_offset(slot->record.root) == offset + DIRECTORY_ROOT_OFFSET;
}

/*
 * Clients write the headers of their extents: a wrong link in the list harms only the same client's next incarnation,
 * which searches there for free nodes.
 */
static FabricStatus
call_give(Service *service, const FabricPeer *peer, const DirectoryGive *request)
{
	ServiceRecord *slot = service_peer_tree(service, peer, request->tree);
	ServiceTables *tables = &service->tables;
	const ExtentHeader *header;
	ExtentHeader *newer;
	uint64_t bytes, newer_bytes;
	uint32_t copy;

	if (slot == NULL || !tables_extent_at(tables, slot, request->offset, &bytes))
		return FABRIC_NOT_FOUND;
	header = fabric_server_node(service->server, request->offset, sizeof(*header));
	assert(header != NULL);
	if (header->number != request->number)
		return FABRIC_NOT_FOUND;
	if (request->offset == slot->last_offset || root_is_in(slot, request->offset) ||
	    tree_record_replica(&slot->record, &copy) || request->newer == request->offset ||
	    !tables_extent_at(tables, slot, request->newer, &newer_bytes))
		return FABRIC_RANGE;
	newer = fabric_server_node(service->server, request->newer, sizeof(*newer));
	assert(newer != NULL);
	/* The second: the memory node ended behind this store, and the call was made again. */
	if (newer->previous != request->offset && newer->previous != header->previous)
		return FABRIC_RANGE;
	__atomic_store_n(&newer->previous, header->previous, __ATOMIC_SEQ_CST);
	tables_extent_give(tables, slot, request->offset, service_now_us());
	service_log(service, FABRIC_LOG_DEBUG, "tree %016llx: an extent of %llu KB was given back",
	            (unsigned long long) request->tree, (unsigned long long) (bytes / 1024));
	return FABRIC_OK;
}

/* A method's name, and the sizes of its request and reply. */
typedef struct Method
{
	const char *name;
	bool changes; /* something that stays */
	uint32_t request_bytes;
	uint32_t reply_bytes; /* at most */
} Method;

static const Method methods[DIRECTORY_METHODS] = {
	[0] = {"unknown", false, UINT32_MAX, 0},
	[DIRECTORY_CREATE] = {"create", true, sizeof(DirectoryCreate), sizeof(DirectoryCreated)},
	[DIRECTORY_DROP] = {"drop", true, sizeof(DirectoryTree), 0},
	[DIRECTORY_READ] = {"read", false, sizeof(DirectoryTree), sizeof(TreeRecord)},
	[DIRECTORY_UPDATE] = {"update", true, sizeof(TreeRecord), 0},
	[DIRECTORY_LIST] = {"list", false, sizeof(DirectoryPosition), sizeof(DirectoryListed)},
	[DIRECTORY_STATUS] = {"status", false, 0, sizeof(TreeNodeStatus)},
	[DIRECTORY_EPOCH_OPEN] = {"epoch_open", true, sizeof(DirectoryEpoch), 0},
	[DIRECTORY_EPOCH_CLOSE] = {"epoch_close", true, sizeof(DirectoryEpoch), 0},
	[DIRECTORY_EXTENT] = {"extent", true, sizeof(DirectoryExtentRequest), sizeof(DirectoryExtent)},
	[DIRECTORY_REPLICA] = {"copy", true, sizeof(DirectoryReplicaRequest), sizeof(DirectoryReplica)},
	[DIRECTORY_REPLICAS] = {"copies", false, sizeof(DirectoryReplicasRequest), sizeof(DirectoryReplicas)},
	[DIRECTORY_DESCEND] = {"descend", false, sizeof(DirectoryDescent), sizeof(DirectoryDescended)},
	[DIRECTORY_GIVE] = {"give", true, sizeof(DirectoryGive), 0},
};

_Static_assert(DIRECTORY_METHODS == SERVICE_METHODS, "every method is counted");

const char *
service_method_name(uint32_t method)
{
	return methods[method < DIRECTORY_METHODS ? method : 0].name;
}

/* From a hash table's look-up to a wait for quarantined memory. */
const uint32_t service_bucket_us[SERVICE_BUCKETS - 1] = {1,    2,    5,     10,    25,    100,
                                                         1000, 5000, 25000, 50000, 250000};

static void
count_call(ServiceCalls *calls, uint64_t elapsed_us, FabricStatus status)
{
	uint32_t bucket = 0;

	while (bucket < SERVICE_BUCKETS - 1 && elapsed_us > service_bucket_us[bucket])
		bucket++;
	calls->buckets[bucket]++;
	calls->total_us += elapsed_us;
	if (status != FABRIC_OK)
		calls->failed++;
}

/* Runs one call; its method and the request's length are right.  *reply_bytes: of the answer, if it is FABRIC_OK. */
static FabricStatus
method_run(Service *service, const FabricPeer *peer, DirectoryMethod method, const void *request, void *reply,
           uint32_t *reply_bytes)
{
	FabricStatus status = FABRIC_PROTOCOL;
	union
	{
		DirectoryCreate create;
		DirectoryTree tree;
		TreeRecord record;
		DirectoryPosition position;
		DirectoryEpoch epoch;
		DirectoryExtentRequest extent;
		DirectoryReplicaRequest copy;
		DirectoryReplicasRequest replicas;
		DirectoryDescent descent;
		DirectoryGive give;
	} in; /* aligned, whatever the request is */
	union
	{
		DirectoryCreated created;
		TreeRecord record;
		DirectoryListed listed;
		TreeNodeStatus status;
		DirectoryExtent extent;
		DirectoryReplica copy;
		DirectoryReplicas replicas;
		DirectoryDescended descended;
	} out;

	if (methods[method].request_bytes > 0)
		memcpy(&in, request, methods[method].request_bytes);
	memset(&out, 0, methods[method].reply_bytes);
	*reply_bytes = methods[method].reply_bytes;
	switch (method)
	{
		case DIRECTORY_CREATE:
			status = call_create(service, peer, &in.create, &out.created);
			break;
		case DIRECTORY_DROP:
			status = call_drop(service, peer, &in.tree);
			break;
		case DIRECTORY_READ:
			status = call_read(service, peer, &in.tree, &out.record);
			break;
		case DIRECTORY_UPDATE:
			status = call_update(service, peer, &in.record);
			break;
		case DIRECTORY_LIST:
			status = call_list(service, peer, &in.position, &out.listed);
			break;
		case DIRECTORY_STATUS:
			status = call_status(service, peer, &out.status);
			break;
		case DIRECTORY_EPOCH_OPEN:
			status = call_epoch(service, peer, &in.epoch, false);
			break;
		case DIRECTORY_EPOCH_CLOSE:
			status = call_epoch(service, peer, &in.epoch, true);
			break;
		case DIRECTORY_EXTENT:
			status = call_extent(service, peer, &in.extent, &out.extent);
			break;
		case DIRECTORY_REPLICA:
			status = service_replica(service, peer, &in.copy, &out.copy);
			break;
		case DIRECTORY_REPLICAS:
			status = service_replicas(service, peer, &in.replicas, &out.replicas);
			break;
		case DIRECTORY_DESCEND:
			status = service_descend(service, peer, &in.descent, &out.descended);
			*reply_bytes = (uint32_t) DIRECTORY_DESCENDED_BYTES + out.descended.bytes;
			break;
		case DIRECTORY_GIVE:
			status = call_give(service, peer, &in.give);
			break;
		case DIRECTORY_METHODS:
			break;
	}
	if (status == FABRIC_OK)
		memcpy(reply, &out, *reply_bytes);
	else
		*reply_bytes = 0;
	return status;
}

FabricStatus
service_call(void *argument, const FabricPeer *peer, uint16_t method, const void *request,
             uint32_t request_bytes, void *reply, uint32_t *reply_bytes)
{
	Service *service = argument;
	uint32_t known =
		method < DIRECTORY_METHODS && request_bytes == methods[method].request_bytes ? method : 0;
	uint64_t began = service_now_us();
	FabricStatus status = FABRIC_PROTOCOL;

	*reply_bytes = 0;
	/*
	 * Only channels of a cluster's current incarnation may change anything: so the number of clusters is bounded by
	 * those that can attach, and a fenced incarnation can do nothing by other calls, either.  Readers look.
	 */
	if (known != 0 && methods[known].changes && (peer->incarnation == 0 || peer->reader))
		status = FABRIC_DENIED;
	else if (known != 0)
		status = method_run(service, peer, (DirectoryMethod) known, request, reply, reply_bytes);
	/* One that waits is counted when it is done. */
	if (status != FABRIC_BUSY)
		count_call(&service->calls[known], service_now_us() - began, status);
	return status;
}
