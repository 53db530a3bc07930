/*
 * tenant_ranges.c
 *		The tenants' parts of node memory, on a memory node of access class NIC.
 *
 * A device lets a client reach ranges that are registered in its tenant's protection domain, and nothing else. So
 * each tenant has one range of NODES, its part, and is granted units of that alone. Parts are dealt at each start,
 * while no client is served: around the units that a tenant has, as large as its quota, or without one an equal share
 * of what the quotas leave. A tenant that becomes known later gets what is left in one piece.
 */
#define _GNU_SOURCE 1
#include <string.h>

#include "rdma/base/detail.h"
#include "rdma/server/server_state.h"

void
fabric_server_node_range(FabricServer *server, uint64_t *first, uint64_t *end)
{
	*first = MEMORY_FIRST_UNIT;
	*end = server->memory.header->region_bytes;
}

static bool
part_is_empty(const ServerPart *part)
{
	return part->first == part->end;
}

/* What the service lets the tenant have, in whole units; 0: no bound. */
static uint64_t
part_quota(const FabricServer *server, uint32_t tenant)
{
	uint64_t bytes = 0;

	if (server->service.quota != NULL)
		bytes = server->service.quota(server->service.argument, tenant);
	return (bytes + FABRIC_UNIT_BYTES - 1) / FABRIC_UNIT_BYTES * FABRIC_UNIT_BYTES;
}

/*
 * Whether memory is reserved for the tenant. With keys it is for all tenants that have one, and for the clients on
 * this machine if they have a quota; without keys there are no others.
 */
static bool
tenant_is_expected(const FabricServer *server, uint32_t tenant)
{
	const char *name = server->memory.header->tenants[tenant];

	if (tenant == 0)
		return server->keys == NULL || part_quota(server, 0) > 0;
	for (uint32_t i = 0; server->keys != NULL && name[0] != '\0' && i < server->keys->count; i++)
	{
		if (strcmp(server->keys->keys[i].tenant, name) == 0)
			return true;
	}
	return false;
}

/* Sets each part to the range of the units that its tenant has. */
static void
find_units(FabricServer *server)
{
	const MemoryHeader *header = server->memory.header;

	memset(server->parts, 0, sizeof(server->parts));
	for (uint64_t offset = MEMORY_FIRST_UNIT; offset < header->region_bytes; offset += FABRIC_UNIT_BYTES)
	{
		uint8_t mark = server->memory.units[offset / FABRIC_UNIT_BYTES];
		ServerPart *part = &server->parts[mark == 0 ? 0 : (mark - 1u) % MEMORY_MAX_TENANTS];

		if (mark == 0 || mark > MEMORY_MAX_TENANTS)
			continue;
		if (part_is_empty(part))
			part->first = offset;
		part->end = offset + FABRIC_UNIT_BYTES;
	}
}

/* Do two parts overlap?  Only units that were granted without a device can lie so. */
static bool
parts_are_mixed(const FabricServer *server)
{
	for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
	{
		for (uint32_t j = 0; j < i; j++)
		{
			const ServerPart *one = &server->parts[i];
			const ServerPart *other = &server->parts[j];

			if (!part_is_empty(one) && !part_is_empty(other) && one->first < other->end &&
			    other->first < one->end)
				return true;
		}
	}
	return false;
}

/* Where what is free at `offset` ends: at the next part, or at the end of all. */
static uint64_t
gap_end(const FabricServer *server, uint64_t offset)
{
	uint64_t end = server->memory.header->region_bytes;

	for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
	{
		const ServerPart *part = &server->parts[i];

		if (!part_is_empty(part) && part->end > offset && part->first < end)
			end = part->first > offset ? part->first : offset;
	}
	return end;
}

/* Where what is free in front of `offset` begins. */
static uint64_t
gap_first(const FabricServer *server, uint64_t offset)
{
	uint64_t first = MEMORY_FIRST_UNIT;

	for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
	{
		const ServerPart *part = &server->parts[i];

		if (!part_is_empty(part) && part->end <= offset && part->end > first)
			first = part->end;
	}
	return first;
}

/* Makes a part larger, up to `bytes`, as far as its neighbors leave room. */
static void
part_grow(const FabricServer *server, ServerPart *part, uint64_t bytes)
{
	uint64_t end = gap_end(server, part->end);
	uint64_t first = gap_first(server, part->first);

	if (part->end - part->first < bytes)
		part->end = end - part->first < bytes ? end : part->first + bytes;
	if (part->end - part->first < bytes)
		part->first = part->end - first < bytes ? first : part->end - bytes;
}

/* Puts an empty part into the first gap that holds `bytes`, else into the largest gap. */
static void
part_place(const FabricServer *server, ServerPart *part, uint64_t bytes)
{
	ServerPart best = {0, 0};

	for (uint32_t i = 0; i <= MEMORY_MAX_TENANTS; i++)
	{
		/* A gap begins at the beginning, or behind a part. */
		uint64_t first = i == MEMORY_MAX_TENANTS ? MEMORY_FIRST_UNIT : server->parts[i].end;
		uint64_t end;

		if (first == 0)
			continue;
		end = gap_end(server, first);
		if (end - first > bytes)
			end = first + bytes;
		if (end - first > best.end - best.first ||
		    (end - first == best.end - best.first && first < best.first))
			best = (ServerPart){first, end};
	}
	*part = best;
}

/* What each expected tenant without a quota gets: an equal share of what is neither laid up for the others nor theirs. */
static uint64_t
equal_share(const FabricServer *server)
{
	const MemoryHeader *header = server->memory.header;
	uint64_t left = header->region_bytes - MEMORY_FIRST_UNIT;
	uint64_t sharers = 0;

	for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
	{
		uint64_t has = server->parts[i].end - server->parts[i].first;
		uint64_t quota = part_quota(server, i);
		bool expected = tenant_is_expected(server, i);

		if (expected && quota == 0)
			sharers++;
		else
		{
			if (expected && has < quota)
				has = quota;
			left -= has < left ? has : left;
		}
	}
	return sharers == 0 ? 0 : left / sharers / FABRIC_UNIT_BYTES * FABRIC_UNIT_BYTES;
}

static void
report_part(const FabricServer *server, uint32_t tenant)
{
	const ServerPart *part = &server->parts[tenant];

	server_log(server, FABRIC_LOG_INFO, "node memory of tenant %u (\"%s\"): %llu KB from %llu on", tenant,
	           server->memory.header->tenants[tenant], (unsigned long long) (part->end - part->first) / 1024,
	           (unsigned long long) part->first);
}

FabricStatus
parts_deal(FabricServer *server, char *detail)
{
	uint64_t share;

	for (uint32_t i = 0; server->keys != NULL && i < server->keys->count; i++)
		(void) tenant_number(server, server->keys->keys[i].tenant);
	find_units(server);
	if (parts_are_mixed(server))
	{
		detail_set(detail, "the memory of several tenants is mixed, as it was served without verbs: it "
		                   "cannot be served with verbs");
		return FABRIC_NOT_SUPPORTED;
	}
	share = equal_share(server);
	for (int has_units = 1; has_units >= 0; has_units--)
	{
		for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
		{
			ServerPart *part = &server->parts[i];
			uint64_t quota = part_quota(server, i);

			if (!tenant_is_expected(server, i) || part_is_empty(part) != (has_units == 0))
				continue;
			if (has_units)
				part_grow(server, part, quota > 0 ? quota : share);
			else
				part_place(server, part, quota > 0 ? quota : share);
			report_part(server, i);
		}
	}
	return FABRIC_OK;
}

bool
part_make(FabricServer *server, uint32_t tenant)
{
	ServerPart *part = &server->parts[tenant];
	uint64_t quota = part_quota(server, tenant);

	if (!part_is_empty(part))
		return true;
	part_place(server, part, quota > 0 ? quota : UINT64_MAX);
	if (part_is_empty(part))
		return false;
	report_part(server, tenant);
	return true;
}

bool
fabric_server_part(FabricServer *server, uint32_t tenant, uint64_t *first, uint64_t *end)
{
	if (server->verbs == NULL)
	{
		fabric_server_node_range(server, first, end);
		return true;
	}
	if (tenant >= MEMORY_MAX_TENANTS || !part_make(server, tenant))
		return false;
	*first = server->parts[tenant].first;
	*end = server->parts[tenant].end;
	return true;
}
