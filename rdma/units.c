/*
 * units.c
 *		Node memory for the service: where it is, whose it is, and the pages behind it.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "server_state.h"
#include "stripe.h"

/* The server waits for nobody: a copy that WRITEs were in the way of so often is given up. */
#define COPY_ATTEMPTS 4

void *
fabric_server_service_area(FabricServer *server)
{
	return server->memory.service;
}

void *
fabric_server_node(FabricServer *server, uint64_t offset, uint64_t bytes)
{
	uint64_t limit = server->memory.header->region_bytes;

	if (offset > limit || bytes > limit - offset)
		return NULL;
	return server->memory.nodes + offset;
}

bool
fabric_server_read(FabricServer *server, uint64_t offset, uint32_t bytes, uint64_t *buffer)
{
	const Memory *memory = &server->memory;

	if (server->verbs != NULL || offset < memory->header->first_unit ||
	    fabric_server_node(server, offset, bytes) == NULL || bytes == 0 || bytes % 8 != 0 ||
	    offset % 8 != 0 || offset % FABRIC_STRIPE_BYTES + bytes > FABRIC_STRIPE_BYTES ||
	    memory->units[offset / FABRIC_UNIT_BYTES] == 0)
		return false;
	for (int attempt = 0; attempt < COPY_ATTEMPTS; attempt++)
		if (stripe_try_read(memory_stripe(memory, offset), (const uint64_t *) (memory->nodes + offset),
		                    buffer, bytes / 8))
			return true;
	return false;
}

void
fabric_server_node_range(FabricServer *server, uint64_t *first, uint64_t *end)
{
	*first = server->memory.header->first_unit;
	*end = server->memory.header->region_bytes;
}

/* Is the range whole units of node memory? */
static bool
range_is_units(const FabricServer *server, uint64_t offset, uint64_t bytes)
{
	const MemoryHeader *header = server->memory.header;

	return offset % FABRIC_UNIT_BYTES == 0 && bytes % FABRIC_UNIT_BYTES == 0 && bytes > 0 &&
	       offset >= header->first_unit && offset < header->region_bytes &&
	       bytes <= header->region_bytes - offset;
}

static void
mark_units(FabricServer *server, uint64_t offset, uint64_t bytes, uint8_t mark)
{
	for (uint64_t unit = offset / FABRIC_UNIT_BYTES; unit < (offset + bytes) / FABRIC_UNIT_BYTES; unit++)
		__atomic_store_n(&server->memory.units[unit], mark, __ATOMIC_RELEASE);
}

/* Gives the pages back; true: they are zero when they come again. */
static bool
drop_pages(FabricServer *server, uint64_t offset, uint64_t bytes)
{
	uint64_t start = server->memory.header->nodes_offset + offset;

	/* Units are smaller than the pages there, which stay in their pool's use anyway; a device has others pinned. */
	if (server->pages.kind == PAGES_HUGETLBFS || server->verbs != NULL)
		return false;
	if (fallocate(server->memory.descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) start,
	              (off_t) bytes) == 0)
		return true;
	server_log(server, FABRIC_LOG_WARNING, "cannot give back %llu bytes: %s", (unsigned long long) bytes,
	           strerror(errno));
	return false;
}

FabricStatus
fabric_server_commit(FabricServer *server, uint32_t tenant, uint64_t offset, uint64_t bytes)
{
	FabricStatus status;
	uint64_t first, end;
	bool zero;

	if (!range_is_units(server, offset, bytes) || tenant >= MEMORY_MAX_TENANTS ||
	    !fabric_server_part(server, tenant, &first, &end) || offset < first || offset + bytes > end)
		return FABRIC_RANGE;
	mark_units(server, offset, bytes, 0);
	zero = drop_pages(server, offset, bytes);
	status = memory_allocate(&server->memory, memory_stripe(&server->memory, offset),
	                         bytes / FABRIC_STRIPE_BYTES * sizeof(uint64_t));
	if (status == FABRIC_OK)
		status = memory_allocate(&server->memory, server->memory.nodes + offset, bytes);
	if (status == FABRIC_OK && !zero)
		memset(server->memory.nodes + offset, 0, bytes);
	if (status == FABRIC_OK)
		mark_units(server, offset, bytes, memory_unit_mark(tenant));
	else
		drop_pages(server, offset, bytes);
	return status;
}

void
fabric_server_release(FabricServer *server, uint64_t offset, uint64_t bytes)
{
	if (!range_is_units(server, offset, bytes))
		return;
	mark_units(server, offset, bytes, 0);
	drop_pages(server, offset, bytes);
}

uint32_t
fabric_server_unit_tenant(const FabricServer *server, uint64_t offset)
{
	uint8_t mark = 0;

	if (offset >= server->memory.header->first_unit && offset < server->memory.header->region_bytes)
		mark = __atomic_load_n(&server->memory.units[offset / FABRIC_UNIT_BYTES], __ATOMIC_RELAXED);
	return mark == 0 ? FABRIC_NO_TENANT : (uint32_t) mark - 1;
}

uint64_t
fabric_server_generation(const FabricServer *server)
{
	return server->memory.header->generation;
}

void
fabric_server_uuid(const FabricServer *server, uint64_t uuid[2])
{
	uuid[0] = server->memory.header->node_uuid[0];
	uuid[1] = server->memory.header->node_uuid[1];
}
