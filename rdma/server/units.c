/*
 * units.c
 *		Node memory for the service: where it is, whose it is, and the pages behind it.
 */
#define _GNU_SOURCE 1
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "rdma/server/server_state.h"
#include "rdma/memory/stripe.h"

/* The log warns once when the file system is so full, and again when it has been less than that meanwhile. */
#define ROOM_WARN_PERCENT 90u
#define ROOM_FORGET_PERCENT 85u

/* The server does not wait: it gives up a copy after so many tries that WRITEs have disturbed. */
#define COPY_ATTEMPTS 4

void *
fabric_server_service_area(FabricServer *server, uint32_t area, uint64_t *bytes)
{
	assert(area < FABRIC_SERVICE_AREAS);
	*bytes = server->memory.header->service_bytes[area];
	return server->memory.service[area];
}

FabricStatus
fabric_server_service_resize(FabricServer *server, uint32_t area, uint64_t bytes)
{
	assert(area < FABRIC_SERVICE_AREAS);
	return memory_service_resize(&server->memory, area, bytes);
}

void
fabric_server_sizes(const FabricServer *server, uint64_t *node_bytes, uint32_t *max_channels)
{
	*node_bytes = server->memory.header->region_bytes - MEMORY_FIRST_UNIT;
	*max_channels = (uint32_t) server->memory.header->max_channels;
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

	if (server->verbs != NULL || offset < MEMORY_FIRST_UNIT ||
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

/* Is the range whole units of node memory? */
static bool
range_is_units(const FabricServer *server, uint64_t offset, uint64_t bytes)
{
	const MemoryHeader *header = server->memory.header;

	return offset % FABRIC_UNIT_BYTES == 0 && bytes % FABRIC_UNIT_BYTES == 0 && bytes > 0 &&
	       offset >= MEMORY_FIRST_UNIT && offset < header->region_bytes &&
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
	/* Units are smaller than the pages there, which stay in their pool's use anyway; a device has others pinned. */
	if (server->pages.kind == PAGES_HUGETLBFS || server->verbs != NULL)
		return false;
	if (memory_give_back(&server->memory, server->memory.nodes + offset, bytes))
		return true;
	server_log(server, FABRIC_LOG_WARNING, "cannot give back %llu bytes: %s", (unsigned long long) bytes,
	           strerror(errno));
	return false;
}

void
server_look_at_room(FabricServer *server, bool at_start)
{
	struct statvfs room;
	uint64_t all, used;

	/* A mount without a bound of its own, and a pool of huge pages, tell nothing. */
	if (fstatvfs(server->memory.descriptor, &room) != 0 || room.f_blocks == 0 ||
	    server->pages.kind == PAGES_OTHER || server->pages.kind == PAGES_HUGETLBFS)
		return;
	all = (uint64_t) room.f_blocks * room.f_frsize;
	used = (uint64_t) (room.f_blocks - room.f_bfree) * 100 / room.f_blocks;
	if (at_start && all < server->options.node_bytes)
		server_log(
			server, FABRIC_LOG_WARNING,
			"the file system of \"%s\" has %llu MB, and the memory may take %llu MB: mount it larger, or it "
			"is full before the memory is",
			server->memory_path, (unsigned long long) (all >> 20),
			(unsigned long long) (server->options.node_bytes >> 20));
	if (used >= ROOM_WARN_PERCENT && !server->room_told)
		server_log(server, FABRIC_LOG_WARNING,
		           "the file system of \"%s\" is %llu %% full: %llu of %llu MB are left", server->memory_path,
		           (unsigned long long) used, (unsigned long long) room.f_bavail * room.f_frsize >> 20,
		           (unsigned long long) (all >> 20));
	if (used >= ROOM_WARN_PERCENT || used < ROOM_FORGET_PERCENT)
		server->room_told = used >= ROOM_WARN_PERCENT;
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
	server_look_at_room(server, false);
	return status;
}

void
fabric_server_release(FabricServer *server, uint64_t offset, uint64_t bytes)
{
	if (!range_is_units(server, offset, bytes))
		return;
	mark_units(server, offset, bytes, 0);
	drop_pages(server, offset, bytes);
	if (server->room_told)
		server_look_at_room(server, false);
}

uint32_t
fabric_server_unit_tenant(const FabricServer *server, uint64_t offset)
{
	uint8_t mark = 0;

	if (offset >= MEMORY_FIRST_UNIT && offset < server->memory.header->region_bytes)
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
