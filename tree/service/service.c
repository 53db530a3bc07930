/*
 * service.c
 *		The memory node's service: opening, serving, closing; replays redo slots of dead channels.
 *
 * Everything runs in the one thread of the server.  The calls are in service_calls.c, what must outlive the daemon in
 * service_tables.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tree/service/service_state.h"
#include "tree/node/redo.h"

_Static_assert(sizeof(ServiceHeader) + LINE_BYTES + (uint64_t) SERVICE_MAX_TREES * sizeof(ServiceRecord) <=
                   FABRIC_SERVICE_BYTES,
               "the area has room for all trees");

/* ---- redo ---- */

/* The places of a leaf's stamps behind its header: words, `stride` apart, from `first` on. */
typedef struct StampPlaces
{
	uint32_t first;
	uint32_t stride;
	uint32_t count;
} StampPlaces;

/* A leaf's image says whether its cells cross lines. False: no leaf of this length is so. */
static bool
stamp_places(const uint64_t *image, uint32_t bytes, StampPlaces *places)
{
	uint32_t words = (node_flags(image) & NODE_CELL_WORDS_MASK) >> NODE_CELL_WORDS_SHIFT;
	TreeFormat format = {.cell_bytes = (uint8_t) (words * 8), .norm_bytes = 8, .lossless = true};
	NodeGeometry g;

	*places = (StampPlaces){.stride = LINE_WORDS, .count = bytes / LINE_BYTES};
	if (words == 0)
		return true;
	if (!format_valid(&format))
		return false;
	g = node_geometry(&format);
	*places = (StampPlaces){.first = g.first_word, .stride = g.cell_words, .count = g.leaf_cells};
	return g.leaf_bytes == bytes;
}

/*
 * Whether a WRITE of `image` to `target` was cut off, provided that no other process writes there. Packets take
 * effect in order, so line 0 has the image's generation, and the rest the one before: stamps show this in a leaf, the
 * sum in an inner node.
 */
static bool
image_half_landed(const uint64_t *image, uint32_t bytes, const uint64_t *target)
{
	uint64_t generation = image[HEADER_GENERATION];
	uint64_t seen_old = 0, seen_other = 0;
	StampPlaces places;

	assert(bytes % LINE_BYTES == 0);
	assert(generation != 0);
	if (target[HEADER_GENERATION] != generation || target[HEADER_TREE] != image[HEADER_TREE] ||
	    target[HEADER_SELF] != image[HEADER_SELF])
		return false;
	if (node_level(image) != 0)
		return node_sum(target, bytes) != target[HEADER_SUM];
	if (!stamp_places(image, bytes, &places))
		return false;
	for (uint32_t i = 0; i <= places.count; i++)
	{
		uint32_t word = i < places.count ? places.first + i * places.stride : HEADER_DEAD_EPOCH;
		uint64_t stamp = target[word] & STAMP_MASK;

		seen_old |= stamp == ((generation - 1) & STAMP_MASK);
		seen_other |= stamp != ((generation - 1) & STAMP_MASK) && stamp != (generation & STAMP_MASK);
	}
	return seen_old && !seen_other;
}

/*
 * Stores the image while others may read the target through a device: every line's stamp comes last, so that no line
 * is valid before it is complete.
 */
static void
image_store(const uint64_t *image, uint32_t bytes, uint64_t *target)
{
	assert(bytes % LINE_BYTES == 0 && bytes <= NODE_MAX_BYTES);
	for (uint32_t line = 0; line < bytes / 8; line += LINE_WORDS)
	{
		for (uint32_t word = LINE_WORDS; word > 0; word--)
			__atomic_store_n(&target[line + word - 1], image[line + word - 1], __ATOMIC_RELEASE);
	}
}

bool
service_half_landed(const FabricDeadChannel *dead, const void *image, uint64_t target_offset,
                    uint32_t target_bytes, const void *target)
{
	assert(target_bytes <= NODE_MAX_BYTES);
	assert(dead != NULL && target != NULL);
	if (dead->write_unknown)
		return image_half_landed(image, target_bytes, target);
	return dead->write_offset == target_offset && dead->write_bytes == target_bytes;
}

void
service_replay(const FabricDeadChannel *dead, const void *image, uint32_t target_bytes, void *target)
{
	assert(target_bytes <= NODE_MAX_BYTES);
	assert(dead != NULL && target != NULL);
	if (dead->write_unknown)
		image_store(image, target_bytes, target);
	else
		memcpy(target, image, target_bytes);
}

/*
 * Whether the lock word still has the value that it had in the dead channel's chain. The chain's last operation would
 * have changed it, and no other process gets the lock before: so if it has, torn parts of the node come from this
 * chain.
 */
static bool
chain_unfinished(const Service *service, const FabricDeadChannel *dead, const RedoHeader *header)
{
	uint64_t word;

	/*
	 * Living clients show in the stripe words; of dead ones packets took effect in order. Lock words on a device may
	 * be lost.
	 */
	if (!dead->write_unknown || dead->others_dead)
		return true;
	return fabric_server_lock_word(service->server, dead->channel, header->lock_index, &word) &&
	       word == header->lock_word;
}

/* The tables' areas as they are. */
static TablesPlace
tables_place(Service *service)
{
	TablesPlace place = {.most_trees = service->max_trees};
	uint64_t bytes, end;

	place.area = fabric_server_service_area(service->server, TABLES_AREA_RECORDS, &place.area_bytes);
	place.units = fabric_server_service_area(service->server, TABLES_AREA_UNITS, &bytes);
	fabric_server_node_range(service->server, &place.first, &end);
	place.unit_count = (end - place.first) / FABRIC_UNIT_BYTES;
	if (place.unit_count > bytes / sizeof(uint64_t))
		place.unit_count = bytes / sizeof(uint64_t);
	return place;
}

/* Are there tables to look into?  During fabric_server_open() they are only viewed: whose a unit is can be seen, more is not needed. */
static bool
tables_in_view(Service *service)
{
	TablesPlace place = tables_place(service);

	if (service->tables.header != NULL)
		return true;
	/* Of a daemon that ended before it had any. */
	if (place.area_bytes < tables_bytes(0))
		return false;
	tables_view(&service->tables, &place);
	if (tables_check(&service->tables))
		return true;
	service->tables.header = NULL;
	return false;
}

/*
 * Does the image belong to a tree that is the dead client's, and the place to that tree?  A redo slot is written by its client: it
 * may name anything, and a tree's id is not known to its owner alone.
 */
static bool
image_is_of_owner(const Service *service, const FabricDeadChannel *dead, const uint64_t *image,
                  uint64_t offset)
{
	const ServiceRecord *record = tables_owner(&service->tables, offset);
	const TablesOwner owner = {.cluster = {dead->cluster[0], dead->cluster[1]}, .tenant = dead->tenant};

	return record != NULL && record->record.tree == image[HEADER_TREE] && tables_owns(&owner, record);
}

void
service_recover(void *argument, const FabricDeadChannel *dead)
{
	Service *service = argument;
	const uint8_t *slot = fabric_server_node(service->server, dead->redo_offset, FABRIC_REDO_BYTES);
	RedoHeader header;
	RedoTarget target;
	const uint64_t *image;
	void *node;

	if ((dead->write_offset == UINT64_MAX && !dead->write_unknown) || slot == NULL)
		return;
	if (!tables_in_view(service))
		return;
	memcpy(&header, slot, sizeof(header));
	image = (const uint64_t *) (slot + FABRIC_STRIPE_BYTES);
	if (!redo_valid(&header, image, &target))
		return;
	node = fabric_server_node(service->server, target.offset, target.bytes);
	if (node == NULL || target.offset % FABRIC_STRIPE_BYTES + target.bytes > FABRIC_STRIPE_BYTES ||
	    !image_is_of_owner(service, dead, image, target.offset))
	{
		/* An image of long ago may be of a tree that was dropped since; one that was being written may not. */
		if (!dead->write_unknown)
			fabric_server_warn(service->server,
			                   "channel %u: the redo slot names a node that is not its tree's",
			                   dead->channel);
		return;
	}
	if (!service_half_landed(dead, image, target.offset, target.bytes, node) ||
	    !chain_unfinished(service, dead, &header))
		return;
	service_replay(dead, image, target.bytes, node);
	service_log(service, FABRIC_LOG_INFO,
	            "channel %u died while it rewrote the node at %llu: done from its redo slot", dead->channel,
	            (unsigned long long) target.offset);
}

static void
service_fenced(void *argument, uint32_t instance, uint32_t incarnation)
{
	Service *service = argument;

	service_log(service, FABRIC_LOG_DEBUG, "instance %u: incarnations before %u are fenced", instance,
	            incarnation);
}

/* ---- tenants ---- */

static uint64_t
quota_for_server(void *argument, uint32_t tenant)
{
	return service_quota(argument, tenant);
}

FabricStatus
service_drop_tenant(Service *service, const char *name, uint64_t *trees, uint64_t *bytes)
{
	ServiceTables *tables = &service->tables;
	uint32_t tenant = 0;

	assert(trees != NULL && bytes != NULL);
	while (tenant < SERVICE_MAX_TENANTS && strcmp(service_tenant_name(service, tenant), name) != 0)
		tenant++;
	if (tenant == SERVICE_MAX_TENANTS || name[0] == '\0')
		return FABRIC_NOT_FOUND;
	*trees = tables->tenants[tenant].trees;
	*bytes = tables->tenants[tenant].bytes;
	for (uint32_t i = 0; i < tables->max_trees && tables->tenants[tenant].trees > 0; i++)
	{
		ServiceRecord *record = &tables->records[i];

		if (tables->slots[i].tree != 0 && tables->slots[i].tenant == tenant)
			(void) tables_remove(tables, record, service_now_us());
	}
	while (tables->quarantined > 0)
		service_quarantine_wait(service);
	tables_forget_epochs(tables, tenant);
	if (tenant != 0)
		fabric_server_forget_tenant(service->server, tenant);
	return FABRIC_OK;
}

void
service_set_quotas(Service *service, const ServiceQuotas *quotas)
{
	assert(quotas->count <= SERVICE_MAX_QUOTAS);
	service->options.quotas = *quotas;
}

/* ---- the service as a whole ---- */

static bool
service_should_stop(void *argument)
{
	Service *service = argument;

	tables_quarantine_end(&service->tables, service_now_us(), service_release_units, service);
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
		detail_set(detail, "the memory segment's path and the socket's path are needed");
		return FABRIC_RANGE;
	}
	if (options->node_bytes < SERVICE_MIN_BYTES || options->node_bytes > SERVICE_MAX_BYTES ||
	    options->max_trees > SERVICE_MAX_TREES)
	{
		detail_set(detail, "node memory is 1 MB to 2 TB, for up to 1048576 trees");
		return FABRIC_RANGE;
	}
	if (checked->max_channels == 0)
		checked->max_channels = SERVICE_DEFAULT_CHANNELS;
	if (checked->max_trees == 0)
		checked->max_trees = SERVICE_MAX_TREES;
	checked->node_bytes = options->node_bytes / FABRIC_UNIT_BYTES * FABRIC_UNIT_BYTES;
	return FABRIC_OK;
}

/*
 * Can every tenant reach the units of its own records, and no others?  Chains go by the server's marks, calls by the tables.  False:
 * the two are not of one kind.  A unit that the tables say is free is made so: *released counts.
 */
static bool
units_agree(Service *service, uint64_t *released)
{
	const ServiceTables *tables = &service->tables;

	for (uint64_t unit = 0; unit < tables->count; unit++)
	{
		uint64_t offset = tables->first + unit * FABRIC_UNIT_BYTES;
		const ServiceRecord *record = tables_owner(tables, offset);
		uint32_t tenant = fabric_server_unit_tenant(service->server, offset);

		if (record != NULL && tenant != record->tenant)
			return false;
		if (tables->units[unit] != 0 || tenant == FABRIC_NO_TENANT)
			continue;
		fabric_server_release(service->server, offset, FABRIC_UNIT_BYTES);
		++*released;
	}
	return true;
}

/*
 * Sizes the tables' areas: a word for each unit, as many as the memory has now, and records for a few trees at least.  If
 * there is no room for the words of more units, these are not used.
 */
static FabricStatus
make_room(Service *service)
{
	uint64_t first, end, bytes;
	uint32_t least = service->max_trees < TABLES_TREES_STEP ? service->max_trees : TABLES_TREES_STEP;

	fabric_server_node_range(service->server, &first, &end);
	if (fabric_server_service_resize(service->server, TABLES_AREA_UNITS,
	                                 (end - first) / FABRIC_UNIT_BYTES * sizeof(uint64_t)) != FABRIC_OK)
	{
		(void) fabric_server_service_area(service->server, TABLES_AREA_UNITS, &bytes);
		if (bytes == 0)
			return FABRIC_NO_MEMORY;
		service_log(service, FABRIC_LOG_WARNING,
		            "no room for the tables of all node memory: %llu MB of it are used",
		            (unsigned long long) (bytes / sizeof(uint64_t) * FABRIC_UNIT_BYTES >> 20));
	}
	(void) fabric_server_service_area(service->server, TABLES_AREA_RECORDS, &bytes);
	if (bytes >= tables_bytes(least))
		return FABRIC_OK;
	return fabric_server_service_resize(service->server, TABLES_AREA_RECORDS, tables_bytes(least));
}

/* Opens the tables over the service areas of the open server. */
static FabricStatus
service_open_tables(Service *service, char *detail)
{
	TablesPlace place;
	uint64_t repaired;
	FabricStatus status = make_room(service);

	if (status != FABRIC_OK)
	{
		detail_set(detail, "no room for the memory node's tables");
		return status;
	}
	place = tables_place(service);
	tables_view(&service->tables, &place);
	status = tables_open(&service->tables, service_now_us(), service_random(), service_release_units, service,
	                     &repaired);
	if (status == FABRIC_OK && !units_agree(service, &repaired))
		status = FABRIC_PROTOCOL;
	if (status != FABRIC_OK)
	{
		tables_close(&service->tables);
		detail_set(detail, status == FABRIC_NO_MEMORY
		                       ? "out of memory"
		                       : "the memory segment's tables are damaged, or of another shape: remove it");
		return status;
	}
	/* It may be an older one than the node ended with: ids given since then are not given again. */
	if (service->state == FABRIC_MEMORY_LOADED)
		tables_renumber(&service->tables, service_random());
	if (repaired > 0)
		service_log(service, FABRIC_LOG_INFO, "%llu units of node memory belonged to no tree: freed",
		            (unsigned long long) repaired);
	return FABRIC_OK;
}

FabricStatus
service_open(const ServiceOptions *options, Service **result, char *detail)
{
	static const char *const states[] = {"new", "kept", "recovered", "loaded"};
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
	memset(&server_options, 0, sizeof(server_options));
	server_options.memory_path = service->options.memory_path;
	server_options.socket_path = service->options.socket_path;
	server_options.node_bytes = service->options.node_bytes;
	server_options.max_channels = service->options.max_channels;
	server_options.verbs_device = service->options.verbs_device;
	server_options.users = service->options.users;
	server_options.huge_pages = service->options.huge_pages;
	server_options.listen = service->options.listen;
	server_options.keys = service->options.keys;
	server_options.spin = service->options.listen != NULL;
	server_options.insecure_loopback = service->options.insecure_loopback;
	server_options.snapshot_path = service->options.snapshot_path;
	server_options.snapshot_go_on = service->options.snapshot_go_on;
	server_options.snapshot_argument = service->options.snapshot_argument;
	server_options.set_aside_hint = service->options.set_aside_hint;
	server_options.log = service->options.log;
	server_options.log_argument = service->options.log_argument;
	server_options.should_stop = service_should_stop;
	server_options.should_stop_argument = service;
	callbacks.argument = service;
	callbacks.call = service_call;
	callbacks.recover = service_recover;
	callbacks.fenced = service_fenced;
	callbacks.quota = quota_for_server;
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

void
service_sizes(const Service *service, uint64_t *node_bytes, uint32_t *max_channels)
{
	fabric_server_sizes(service->server, node_bytes, max_channels);
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
	tables_quarantine_end(&service->tables, service_now_us(), service_release_units, service);
	return status;
}

void
service_stop(Service *service)
{
	if (service != NULL)
		fabric_server_stop(service->server);
}

bool
service_save(Service *service, int drain_ms)
{
	if (service->options.snapshot_path == NULL)
		return false;
	if (service->tables.trees == 0)
	{
		service_log(service, FABRIC_LOG_INFO, "there are no trees: no snapshot is needed");
		return true;
	}
	/* What was dropped is not saved. */
	while (service->tables.quarantined > 0)
		service_quarantine_wait(service);
	return fabric_server_save(service->server, drain_ms) == FABRIC_OK;
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

void
service_figures(Service *service, ServiceFigures *figures)
{
	const ServiceTables *tables = &service->tables;

	memset(figures, 0, sizeof(*figures));
	fabric_server_figures(service->server, &figures->server);
	memcpy(figures->calls, service->calls, sizeof(figures->calls));
	figures->generation = fabric_server_generation(service->server);
	figures->bytes_total = service_bytes_total(service);
	figures->bytes_used = tables->used * FABRIC_UNIT_BYTES;
	figures->bytes_quarantined = tables->quarantined * FABRIC_UNIT_BYTES;
	figures->trees = tables->trees;
	figures->extents = tables->extents;
	figures->memory_state = service->state;
	for (uint32_t i = 0; i < SERVICE_MAX_TENANTS; i++)
	{
		ServiceTenant *tenant = &figures->tenant[figures->tenants];

		if (service_tenant_name(service, i)[0] == '\0')
			continue;
		snprintf(tenant->name, sizeof(tenant->name), "%s", service_tenant_name(service, i));
		tenant->bytes = tables->tenants[i].bytes;
		tenant->trees = tables->tenants[i].trees;
		tenant->quota = service_quota(service, i);
		figures->tenants++;
	}
}
