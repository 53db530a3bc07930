/*
 * service.c
 *		The memory node's service: answers the calls of directory.h, and replays redo slots of dead channels.
 *
 * Everything runs in the one thread of the server.  What must outlive the daemon is in service_tables.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "service.h"
#include "service_tables.h"

#if defined(__linux__)
#include <sys/random.h>
#endif

/* An extent is at most this part of what the tree has: memory per entry stays small, and the calls few. */
#define EXTENT_PART 4u

struct Service
{
	ServiceOptions options;
	FabricServer *server;
	FabricMemoryState state;
	ServiceTables tables;
	uint32_t max_trees;
	uint32_t area_bytes;
};

static uint64_t
service_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000u + (uint64_t) now.tv_nsec / 1000u;
}

static uint64_t
service_random(void)
{
	uint64_t value;

	if (getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t) sizeof(value))
		value = service_now_us() * 0x9e3779b97f4a7c15ull ^ (uint64_t) getpid() << 32;
	return value;
}

static void service_log(const Service *service, FabricLogLevel level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void
service_log(const Service *service, FabricLogLevel level, const char *format, ...)
{
	char line[FABRIC_DETAIL_BYTES];
	va_list arguments;

	assert(service != NULL);
	assert(format != NULL);
	if (service->options.log == NULL)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	service->options.log(service->options.log_argument, level, line);
}

static void
release_units(void *argument, uint64_t offset, uint64_t bytes)
{
	Service *service = argument;

	assert(offset % FABRIC_UNIT_BYTES == 0);
	assert(bytes % FABRIC_UNIT_BYTES == 0);
	fabric_server_release(service->server, offset, bytes);
}

/* ---- extents ---- */

/* Bytes of the next extent of a tree that has so many: 64 KB, then doubling with the tree up to 8 MB. */
static uint64_t
extent_bytes_next(uint64_t tree_bytes)
{
	uint64_t bytes = EXTENT_MIN_BYTES;

	assert(EXTENT_MIN_BYTES % FABRIC_UNIT_BYTES == 0);
	while (bytes < EXTENT_MAX_BYTES && bytes * 2 * EXTENT_PART <= tree_bytes)
		bytes *= 2;
	assert(bytes <= EXTENT_MAX_BYTES);
	return bytes;
}

/* Waits for freed memory whose quarantine is short before its end. The data path does not run through this thread. */
static void
quarantine_wait(Service *service)
{
	uint64_t now = service_now_us();

	assert(service->tables.quarantined > 0);
	assert(QUARANTINE_US < 1000000u);
	if (service->tables.quarantine_us > now)
	{
		struct timespec time = {.tv_nsec = (long) (service->tables.quarantine_us - now) * 1000};

		if (time.tv_nsec <= (long) QUARANTINE_US * 1000)
			nanosleep(&time, NULL);
	}
	tables_quarantine_end(&service->tables, service_now_us(), release_units, service);
}

/* Takes units for an extent of *bytes, or of less if there is no run so long. They stay pending. */
static FabricStatus
extent_take(Service *service, uint64_t tree, uint64_t *bytes, uint64_t *offset)
{
	uint64_t wanted = *bytes;

	assert(wanted % FABRIC_UNIT_BYTES == 0);
	assert(tree != 0);
	for (;;)
	{
		if (tables_units_take(&service->tables, tree, *bytes / FABRIC_UNIT_BYTES, offset))
		{
			if (fabric_server_commit(service->server, *offset, *bytes) == FABRIC_OK)
				return FABRIC_OK;
			tables_units_cancel(&service->tables, *offset, *bytes / FABRIC_UNIT_BYTES);
		}
		if (*bytes > EXTENT_MIN_BYTES)
			*bytes /= 2;
		else if (service->tables.quarantined > 0)
		{
			quarantine_wait(service);
			*bytes = wanted;
		}
		else
			return FABRIC_NO_MEMORY;
	}
}

/*
 * Adds an extent to a record in private memory; the caller puts the record and ends with extent_grant().
 * FABRIC_NO_MEMORY: nothing happened.
 */
static FabricStatus
extent_add(Service *service, ServiceRecord *record)
{
	uint64_t bytes = extent_bytes_next(record->record.bytes);
	uint64_t offset;
	ExtentHeader *header;
	FabricStatus status;

	assert(record->record.tree != 0);
	status = extent_take(service, record->record.tree, &bytes, &offset);
	if (status != FABRIC_OK)
		return status;
	header = fabric_server_node(service->server, offset, sizeof(*header));
	assert(header != NULL);
	header->magic = EXTENT_MAGIC;
	header->tree = record->record.tree;
	header->bytes = bytes;
	header->bump = record->record.extents == 0 && (record->record.flags & TREE_RECORD_SHARE) == 0
	                   ? DIRECTORY_FIRST_BUMP
	                   : DIRECTORY_OTHER_BUMP;
	/* Half of the range is left to count up in; never 0. */
	header->generation = (service_random() >> 1) | 1;
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
extent_describe(const ServiceRecord *record, DirectoryExtent *extent)
{
	assert(record->record.extents > 0);
	assert(record->last_bytes >= EXTENT_MIN_BYTES);
	memset(extent, 0, sizeof(*extent));
	extent->offset = record->last_offset;
	extent->bytes = record->last_bytes;
	extent->generation = record->last_generation;
	extent->tree_bytes = record->record.bytes;
	extent->extents = record->record.extents;
}

/* ---- calls ---- */

static FabricStatus
call_create(Service *service, const FabricPeer *peer, const DirectoryCreate *request, DirectoryCreated *reply)
{
	ServiceRecord *slot = tables_find_token(&service->tables, peer->cluster, request->token);
	ServiceRecord record;
	FabricStatus status;

	if (request->memory_node >= TREE_MAX_NODES)
		return FABRIC_RANGE;
	if (slot == NULL)
	{
		slot = tables_slot(&service->tables);
		if (slot == NULL)
		{
			service_log(service, FABRIC_LOG_WARNING, "no room for a tree: %u trees are the most",
			            service->max_trees);
			return FABRIC_NO_MEMORY;
		}
		memset(&record, 0, sizeof(record));
		record.record = request->record;
		record.record.cluster[0] = peer->cluster[0];
		record.record.cluster[1] = peer->cluster[1];
		record.record.flags &= TREE_RECORD_BROKEN | TREE_RECORD_BUILT;
		record.record.bytes = record.record.extents = record.record.reserved = 0;
		record.token[0] = request->token[0];
		record.token[1] = request->token[1];
		record.record.tree = tables_id(&service->tables);
		status = extent_add(service, &record);
		if (status != FABRIC_OK)
			return status;
		record.record.root =
			pointer_make(request->memory_node, record.last_offset + DIRECTORY_ROOT_OFFSET, 0);
		tables_put(&service->tables, slot, &record);
		extent_grant(service, &record);
		service_log(service, FABRIC_LOG_DEBUG, "tree %016llx created",
		            (unsigned long long) record.record.tree);
	}
	reply->record = slot->record;
	extent_describe(slot, &reply->extent);
	return FABRIC_OK;
}

/* The peer's tree, or NULL: trees of others do not exist for it. */
static ServiceRecord *
peer_tree(Service *service, const FabricPeer *peer, uint64_t tree)
{
	ServiceRecord *record = tables_find(&service->tables, tree);

	assert(peer != NULL);
	if (record == NULL || record->record.cluster[0] != peer->cluster[0] ||
	    record->record.cluster[1] != peer->cluster[1])
		return NULL;
	return record;
}

static FabricStatus
call_drop(Service *service, const FabricPeer *peer, const DirectoryTree *request)
{
	ServiceRecord *record = peer_tree(service, peer, request->tree);
	uint64_t units;

	if (record == NULL)
		return FABRIC_NOT_FOUND;
	units = tables_remove(&service->tables, record, service_now_us());
	assert(units > 0);
	service_log(service, FABRIC_LOG_DEBUG, "tree %016llx dropped: %llu KB",
	            (unsigned long long) request->tree,
	            (unsigned long long) (units * (FABRIC_UNIT_BYTES / 1024)));
	return FABRIC_OK;
}

static FabricStatus
call_read(Service *service, const FabricPeer *peer, const DirectoryTree *request, TreeRecord *reply)
{
	ServiceRecord *record = peer_tree(service, peer, request->tree);

	assert(reply != NULL);
	if (record == NULL)
		return FABRIC_NOT_FOUND;
	*reply = record->record;
	return FABRIC_OK;
}

static FabricStatus
call_update(Service *service, const FabricPeer *peer, const TreeRecord *request)
{
	ServiceRecord *slot = peer_tree(service, peer, request->tree);
	ServiceRecord record;

	assert(request != NULL);
	if (slot == NULL || (slot->record.flags & TREE_RECORD_SHARE) != 0)
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
	if (request->removal_epoch > record.record.removal_epoch ||
	    (request->removal_epoch == record.record.removal_epoch &&
	     request->removal_lsn > record.record.removal_lsn))
	{
		record.record.removal_epoch = request->removal_epoch;
		record.record.removal_lsn = request->removal_lsn;
	}
	if (request->nonce != 0)
		record.record.nonce = request->nonce;
	tables_put(&service->tables, slot, &record);
	return FABRIC_OK;
}

static FabricStatus
call_list(Service *service, const FabricPeer *peer, const DirectoryPosition *request, DirectoryListed *reply)
{
	uint32_t position = request->position;
	ServiceRecord *record = tables_next(&service->tables, peer->cluster, request->shares != 0, &position);

	assert(reply != NULL);
	if (record == NULL)
		return FABRIC_NOT_FOUND;
	reply->position = position;
	reply->record = record->record;
	return FABRIC_OK;
}

static FabricStatus
call_status(Service *service, const FabricPeer *peer, TreeNodeStatus *reply)
{
	const ServiceEpoch *epoch = tables_epoch(&service->tables, peer->cluster);

	assert(reply != NULL);
	tables_quarantine_end(&service->tables, service_now_us(), release_units, service);
	reply->bytes_total = service->tables.header->units * FABRIC_UNIT_BYTES;
	reply->bytes_used = service->tables.used * FABRIC_UNIT_BYTES;
	reply->bytes_quarantined = service->tables.quarantined * FABRIC_UNIT_BYTES;
	fabric_server_uuid(service->server, reply->uuid);
	reply->generation = fabric_server_generation(service->server);
	reply->trees = service->tables.trees;
	reply->channels = fabric_server_channels(service->server);
	reply->epoch = epoch != NULL ? epoch->epoch : 0;
	reply->epoch_clean = epoch != NULL && epoch->clean;
	return FABRIC_OK;
}

/* Epochs only go forward; what is so already is done. */
static FabricStatus
call_epoch(Service *service, const FabricPeer *peer, const DirectoryEpoch *request, bool clean)
{
	const ServiceEpoch *epoch = tables_epoch(&service->tables, peer->cluster);
	uint64_t last = epoch != NULL ? epoch->epoch : 0;

	if (request->epoch == 0 || request->epoch < last || (clean && request->epoch != last))
		return FABRIC_RANGE;
	if (request->epoch == last && (clean || !epoch->clean))
	{
		if (clean && !epoch->clean)
			return tables_epoch_set(&service->tables, peer->cluster, last, true);
		return FABRIC_OK;
	}
	if (request->epoch == last)
		return FABRIC_RANGE; /* closed clean: it is not opened again */
	return tables_epoch_set(&service->tables, peer->cluster, request->epoch, false);
}

/* A record for the extents of a tree whose own record is at another memory node. */
static ServiceRecord *
share_make(Service *service, const FabricPeer *peer, const DirectoryExtentRequest *request,
           ServiceRecord *record)
{
	ServiceRecord *slot = tables_slot(&service->tables);
	uint64_t tree = request->tree;

	assert(record != NULL);
	if (tree == 0 || (tree & ~UNIT_TREE_MASK) != 0 || tables_find(&service->tables, tree) != NULL ||
	    request->home >= TREE_MAX_NODES)
		return NULL;
	memset(record, 0, sizeof(*record));
	record->record.tree = tree;
	record->record.members[request->home] = request->home_member;
	record->record.cluster[0] = peer->cluster[0];
	record->record.cluster[1] = peer->cluster[1];
	record->record.flags = TREE_RECORD_SHARE;
	return slot;
}

static FabricStatus
call_extent(Service *service, const FabricPeer *peer, const DirectoryExtentRequest *request,
            DirectoryExtent *reply)
{
	ServiceRecord *slot = peer_tree(service, peer, request->tree);
	ServiceRecord record;
	FabricStatus status;

	assert(reply != NULL);
	if (slot == NULL && !request->share)
		return FABRIC_NOT_FOUND;
	if (slot == NULL)
	{
		slot = share_make(service, peer, request, &record);
		if (slot == NULL)
			return FABRIC_NO_MEMORY;
	}
	else
	{
		record = *slot;
		if (record.record.extents > 0 && request->extents != record.record.extents)
		{
			/* It does not know the last one, or its call of before was answered in vain. */
			extent_describe(slot, reply);
			return FABRIC_OK;
		}
	}
	status = extent_add(service, &record);
	if (status != FABRIC_OK)
		return status;
	tables_put(&service->tables, slot, &record);
	extent_grant(service, &record);
	extent_describe(slot, reply);
	return FABRIC_OK;
}

/* What a method takes and gives. */
typedef struct MethodShape
{
	uint32_t request_bytes;
	uint32_t reply_bytes;
} MethodShape;

static const MethodShape method_shapes[] = {
	[DIRECTORY_CREATE] = {sizeof(DirectoryCreate), sizeof(DirectoryCreated)},
	[DIRECTORY_DROP] = {sizeof(DirectoryTree), 0},
	[DIRECTORY_READ] = {sizeof(DirectoryTree), sizeof(TreeRecord)},
	[DIRECTORY_UPDATE] = {sizeof(TreeRecord), 0},
	[DIRECTORY_LIST] = {sizeof(DirectoryPosition), sizeof(DirectoryListed)},
	[DIRECTORY_STATUS] = {0, sizeof(TreeNodeStatus)},
	[DIRECTORY_EPOCH_OPEN] = {sizeof(DirectoryEpoch), 0},
	[DIRECTORY_EPOCH_CLOSE] = {sizeof(DirectoryEpoch), 0},
	[DIRECTORY_EXTENT] = {sizeof(DirectoryExtentRequest), sizeof(DirectoryExtent)},
};

static FabricStatus
service_call(void *argument, const FabricPeer *peer, uint16_t method, const void *request,
             uint32_t request_bytes, void *reply, uint32_t *reply_bytes)
{
	Service *service = argument;
	FabricStatus status = FABRIC_PROTOCOL;
	union
	{
		DirectoryCreate create;
		DirectoryTree tree;
		TreeRecord record;
		DirectoryPosition position;
		DirectoryEpoch epoch;
		DirectoryExtentRequest extent;
	} in; /* aligned, whatever the request is */
	union
	{
		DirectoryCreated created;
		TreeRecord record;
		DirectoryListed listed;
		TreeNodeStatus status;
		DirectoryExtent extent;
	} out;

	*reply_bytes = 0;
	if (method == 0 || method >= sizeof(method_shapes) / sizeof(method_shapes[0]) ||
	    request_bytes != method_shapes[method].request_bytes)
		return FABRIC_PROTOCOL;
	if (request_bytes > 0)
		memcpy(&in, request, request_bytes);
	memset(&out, 0, sizeof(out));
	switch ((DirectoryMethod) method)
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
	}
	if (status == FABRIC_OK)
	{
		*reply_bytes = method_shapes[method].reply_bytes;
		memcpy(reply, &out, *reply_bytes);
	}
	return status;
}

/* ---- redo ---- */

bool
service_replay(const FabricDeadChannel *dead, const void *image, uint64_t target_offset,
               uint32_t target_bytes, void *target)
{
	assert(target_bytes <= NODE_MAX_BYTES);
	assert(dead != NULL && target != NULL);
	if (dead->write_offset != target_offset || dead->write_bytes != target_bytes)
		return false;
	memcpy(target, image, target_bytes);
	return true;
}

/* A channel died: if it did so inside the rewrite of a node, the node is made whole from the redo slot. */
static void
service_recover(void *argument, const FabricDeadChannel *dead)
{
	Service *service = argument;
	const uint8_t *slot = fabric_server_node(service->server, dead->redo_offset, FABRIC_REDO_BYTES);
	RedoHeader header;
	RedoTarget target;
	const uint64_t *image;
	void *node;

	if (dead->write_offset == UINT64_MAX || slot == NULL)
		return;
	if (service->tables.header == NULL)
	{
		/* During fabric_server_open(): who owns a unit is known, more is not needed. */
		uint64_t first, end;

		fabric_server_node_range(service->server, &first, &end);
		tables_view(&service->tables, fabric_server_service_area(service->server), service->max_trees, first,
		            (end - first) / FABRIC_UNIT_BYTES);
	}
	memcpy(&header, slot, sizeof(header));
	image = (const uint64_t *) (slot + FABRIC_STRIPE_BYTES);
	if (!redo_valid(&header, image, &target))
		return;
	node = fabric_server_node(service->server, target.offset, target.bytes);
	if (node == NULL || target.offset % FABRIC_STRIPE_BYTES + target.bytes > FABRIC_STRIPE_BYTES ||
	    tables_owner(&service->tables, target.offset) != image[HEADER_TREE])
	{
		service_log(service, FABRIC_LOG_WARNING,
		            "channel %u: the redo slot names a node that is not its tree's", dead->channel);
		return;
	}
	if (service_replay(dead, image, target.offset, target.bytes, node))
		service_log(service, FABRIC_LOG_INFO,
		            "channel %u died while it rewrote the node at %llu: done from its redo slot",
		            dead->channel, (unsigned long long) target.offset);
}

static void
service_fenced(void *argument, uint32_t instance, uint32_t incarnation)
{
	Service *service = argument;

	service_log(service, FABRIC_LOG_INFO, "instance %u: incarnations before %u are fenced", instance,
	            incarnation);
}

/* ---- the service as a whole ---- */

static bool
service_should_stop(void *argument)
{
	Service *service = argument;

	tables_quarantine_end(&service->tables, service_now_us(), release_units, service);
	return service->options.should_stop != NULL &&
	       service->options.should_stop(service->options.should_stop_argument);
}

static void
detail_set(char *detail, const char *text)
{
	if (detail != NULL)
		snprintf(detail, FABRIC_DETAIL_BYTES, "%s", text);
}

/* Fills in what the caller left to us. */
static FabricStatus
options_check(const ServiceOptions *options, ServiceOptions *checked, char *detail)
{
	*checked = *options;
	if (options->memory_path == NULL || options->memory_path[0] == '\0' || options->socket_path == NULL ||
	    options->socket_path[0] == '\0')
	{
		detail_set(detail, "the memory object's path and the socket's path are needed");
		return FABRIC_RANGE;
	}
	if (options->node_bytes < SERVICE_MIN_BYTES || options->node_bytes > SERVICE_MAX_BYTES ||
	    options->max_trees > SERVICE_MAX_TREES)
	{
		detail_set(detail, "node memory is 1 MB to 16 TB, for up to 1048576 trees");
		return FABRIC_RANGE;
	}
	if (checked->max_channels == 0)
		checked->max_channels = SERVICE_DEFAULT_CHANNELS;
	if (checked->max_trees == 0)
		checked->max_trees = SERVICE_DEFAULT_TREES;
	checked->node_bytes = options->node_bytes / FABRIC_UNIT_BYTES * FABRIC_UNIT_BYTES;
	checked->max_trees = (checked->max_trees + TABLES_TREES_STEP - 1) / TABLES_TREES_STEP * TABLES_TREES_STEP;
	return FABRIC_OK;
}

/* Opens the tables over the service area of the open server. */
static FabricStatus
service_open_tables(Service *service, char *detail)
{
	uint64_t first, end, repaired;
	FabricStatus status;

	fabric_server_node_range(service->server, &first, &end);
	if (tables_bytes((end - first) / FABRIC_UNIT_BYTES, service->max_trees) > service->area_bytes)
	{
		detail_set(detail, "the memory object's service area is too small");
		return FABRIC_PROTOCOL;
	}
	tables_view(&service->tables, fabric_server_service_area(service->server), service->max_trees, first,
	            (end - first) / FABRIC_UNIT_BYTES);
	status = tables_open(&service->tables, service->area_bytes, service_now_us(), service_random(),
	                     release_units, service, &repaired);
	if (status != FABRIC_OK)
	{
		detail_set(detail, status == FABRIC_NO_MEMORY
		                       ? "out of memory"
		                       : "the memory object holds tables of another shape: remove it");
		return status;
	}
	if (repaired > 0)
		service_log(service, FABRIC_LOG_INFO, "%llu units of node memory belonged to no tree: freed",
		            (unsigned long long) repaired);
	return FABRIC_OK;
}

FabricStatus
service_open(const ServiceOptions *options, Service **result, char *detail)
{
	static const char *const states[] = {"new", "kept", "recovered"};
	FabricServerOptions server_options;
	FabricService callbacks;
	Service *service;
	FabricStatus status;

	assert(options != NULL);
	assert(result != NULL);
	*result = NULL;
	service = calloc(1, sizeof(*service));
	if (service == NULL)
	{
		detail_set(detail, "out of memory");
		return FABRIC_NO_MEMORY;
	}
	status = options_check(options, &service->options, detail);
	if (status != FABRIC_OK)
	{
		free(service);
		return status;
	}
	service->max_trees = service->options.max_trees;
	service->area_bytes =
		(uint32_t) tables_bytes(service->options.node_bytes / FABRIC_UNIT_BYTES + 1, service->max_trees);
	memset(&server_options, 0, sizeof(server_options));
	server_options.memory_path = service->options.memory_path;
	server_options.socket_path = service->options.socket_path;
	server_options.node_bytes = service->options.node_bytes;
	server_options.service_bytes = service->area_bytes;
	server_options.max_channels = service->options.max_channels;
	server_options.allow_other_users = service->options.allow_other_users;
	server_options.log = service->options.log;
	server_options.log_argument = service->options.log_argument;
	server_options.should_stop = service_should_stop;
	server_options.should_stop_argument = service;
	callbacks.argument = service;
	callbacks.call = service_call;
	callbacks.recover = service_recover;
	callbacks.fenced = service_fenced;
	status = fabric_server_open(&server_options, &callbacks, &service->server, &service->state, detail);
	if (status != FABRIC_OK)
	{
		free(service);
		return status;
	}
	status = service_open_tables(service, detail);
	if (status != FABRIC_OK)
	{
		fabric_server_close(service->server, 0, false);
		free(service);
		return status;
	}
	service_log(service, FABRIC_LOG_INFO, "serving %s (%s) at %s: %u trees, %llu of %llu MB used",
	            service->options.memory_path, states[service->state], service->options.socket_path,
	            service->tables.trees, (unsigned long long) (service->tables.used * FABRIC_UNIT_BYTES >> 20),
	            (unsigned long long) (service->options.node_bytes >> 20));
	*result = service;
	return FABRIC_OK;
}

FabricMemoryState
service_memory_state(const Service *service)
{
	assert(service != NULL);
	return service->state;
}

FabricStatus
service_run(Service *service)
{
	assert(service != NULL);
	return fabric_server_run(service->server);
}

FabricStatus
service_step(Service *service, int milliseconds)
{
	FabricStatus status = fabric_server_step(service->server, milliseconds);

	assert(service != NULL);
	tables_quarantine_end(&service->tables, service_now_us(), release_units, service);
	return status;
}

void
service_stop(Service *service)
{
	if (service != NULL)
		fabric_server_stop(service->server);
}

void
service_close(Service *service, int drain_ms, bool discard)
{
	if (service == NULL)
		return;
	fabric_server_close(service->server, drain_ms, discard);
	tables_close(&service->tables);
	free(service);
}

FabricServer *
service_server(Service *service)
{
	assert(service != NULL);
	return service->server;
}
