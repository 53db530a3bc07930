/*
 * service_space.c
 *		Grants extents and places for records, within sizes, quotas and reserves; freed memory is granted again after
 *		its quarantine.
 */
#include <time.h>

#include "tree/service/service_state.h"

/* The records' area grows by this part of its length. */
#define RECORDS_PART 4u
/*
 * This part of all memory, and of a tenant's quota, is kept for first extents, if that is so many bytes at least, and not more than
 * so many: TRUNCATE and REINDEX make a new tree before the old one goes, and so work when there is room for nothing else.
 */
#define RESERVE_PART 64u
#define RESERVE_LEAST_BYTES (1u << 20)
#define RESERVE_MOST_BYTES (16u << 20)

void
service_release_units(void *argument, uint64_t offset, uint64_t bytes)
{
	Service *service = argument;

	assert(offset % FABRIC_UNIT_BYTES == 0);
	assert(bytes % FABRIC_UNIT_BYTES == 0);
	fabric_server_release(service->server, offset, bytes);
}

void
service_quarantine_wait(Service *service)
{
	uint64_t now = service_now_us();

	assert(service->tables.quarantined > 0);
	assert(QUARANTINE_US < 1000000u);
	if (tables_quarantine_us(&service->tables) > now)
	{
		struct timespec time = {.tv_nsec = (long) (tables_quarantine_us(&service->tables) - now) * 1000};

		if (time.tv_nsec <= (long) QUARANTINE_US * 1000)
			nanosleep(&time, NULL);
	}
	tables_quarantine_end(&service->tables, service_now_us(), service_release_units, service);
}

/*
 * The next smaller size to be tried: about the half, in whole units, for what is left of a copy may be any number of them.
 */
static uint64_t
bytes_fewer(uint64_t bytes)
{
	assert(bytes > EXTENT_MIN_BYTES && bytes % FABRIC_UNIT_BYTES == 0);
	return bytes / 2 / FABRIC_UNIT_BYTES * FABRIC_UNIT_BYTES;
}

/* The part of so many bytes that may be granted: a tree's first extent may use all of them. */
static uint64_t
without_reserve(uint64_t bytes, bool first)
{
	uint64_t reserve = bytes / RESERVE_PART < RESERVE_MOST_BYTES ? bytes / RESERVE_PART : RESERVE_MOST_BYTES;

	return first || reserve < RESERVE_LEAST_BYTES ? bytes : bytes - reserve;
}

/*
 * Limits *bytes to the rest of the tenant's quota. Memory that it has dropped counts until its quarantine is over.
 * FABRIC_BUSY: there will be some then; FABRIC_QUOTA: there is none.
 */
static FabricStatus
quota_allows(const Service *service, uint32_t tenant, bool first, uint64_t *bytes)
{
	const TablesUse *use = &service->tables.tenants[tenant];
	uint64_t quota = without_reserve(service_quota(service, tenant), first);
	uint64_t had = use->bytes + use->going_bytes;

	if (quota == 0)
		return FABRIC_OK;
	while (*bytes > EXTENT_MIN_BYTES && had + *bytes > quota)
		*bytes = bytes_fewer(*bytes);
	if (had + *bytes <= quota)
		return FABRIC_OK;
	return use->bytes + *bytes <= quota ? FABRIC_BUSY : FABRIC_QUOTA;
}

/* Limits *bytes to the rest of the configured size, which the memory may exceed. */
static bool
size_allows(const Service *service, bool first, uint64_t *bytes)
{
	uint64_t used = service->tables.used * FABRIC_UNIT_BYTES;
	uint64_t total = without_reserve(service_bytes_total(service), first);

	while (*bytes > EXTENT_MIN_BYTES && used + *bytes > total)
		*bytes = bytes_fewer(*bytes);
	return used + *bytes <= total;
}

FabricStatus
service_extent_take(Service *service, const ServiceRecord *slot, uint32_t tenant, uint64_t *bytes,
                    uint64_t *offset)
{
	bool first_extent = slot->record.tree == 0 || slot->record.bytes == 0;
	FabricStatus status = quota_allows(service, tenant, first_extent, bytes);
	FabricStatus full = FABRIC_NO_MEMORY;
	uint64_t first, end;

	assert(*bytes % FABRIC_UNIT_BYTES == 0);
	if (status != FABRIC_OK)
		return status;
	if (!fabric_server_part(service->server, tenant, &first, &end) ||
	    !size_allows(service, first_extent, bytes))
		return FABRIC_NO_MEMORY;
	for (;;)
	{
		uint64_t count = *bytes / FABRIC_UNIT_BYTES;

		if (tables_units_take(&service->tables, slot, count, first, end, offset))
		{
			if (fabric_server_commit(service->server, tenant, *offset, *bytes) == FABRIC_OK)
				return FABRIC_OK;
			tables_units_cancel(&service->tables, *offset, count);
			full = FABRIC_HOST_FULL;
		}
		if (*bytes == EXTENT_MIN_BYTES)
			return service->tables.quarantined > 0 ? FABRIC_BUSY : full;
		*bytes = bytes_fewer(*bytes);
	}
}

/* Has the records' area grow, as far as there is room. */
static void
add_slots(Service *service)
{
	ServiceTables *tables = &service->tables;
	uint32_t more = tables->max_trees / RECORDS_PART;
	uint64_t bytes;

	if (more < TABLES_TREES_STEP)
		more = TABLES_TREES_STEP;
	if (more > tables->most_trees - tables->max_trees)
		more = tables->most_trees - tables->max_trees;
	bytes = tables_bytes(tables->max_trees + more);
	if (more > 0 && fabric_server_service_resize(service->server, TABLES_AREA_RECORDS, bytes) == FABRIC_OK)
		tables_grow(tables, bytes);
}

FabricStatus
service_slot(Service *service, uint32_t tenant, ServiceRecord **slot)
{
	uint32_t had[TABLES_TENANTS], used[TABLES_TENANTS];

	assert(tenant < TABLES_TENANTS);
	*slot = NULL;
	if (service->tables.trees >= service->max_trees)
	{
		fabric_server_warn(service->server, "there are %u trees: more are not allowed", service->max_trees);
		return FABRIC_TOO_MANY;
	}
	for (uint32_t i = 0; i < TABLES_TENANTS; i++)
	{
		const TablesUse *use = &service->tables.tenants[i];

		used[i] = (uint32_t) use->trees;
		had[i] = (uint32_t) (use->trees + use->going_trees);
	}
	if (!fabric_server_leaves_enough(service->server, tenant, service->max_trees, used))
	{
		fabric_server_warn(service->server, "tenant \"%s\" has all the trees that it can have",
		                   fabric_server_tenant(service->server, tenant));
		return FABRIC_TOO_MANY;
	}
	/*
	 * Trees that the tenant dropped a moment ago still take their places: so a tenant that keeps making and dropping
	 * trees takes no places of others.
	 */
	if (!fabric_server_leaves_enough(service->server, tenant, service->max_trees, had))
		return FABRIC_BUSY;
	if (tables_slot(&service->tables) == NULL)
		add_slots(service);
	*slot = tables_slot(&service->tables);
	if (*slot != NULL)
		return FABRIC_OK;
	return service->tables.quarantined > 0 ? FABRIC_BUSY : FABRIC_NO_MEMORY;
}
