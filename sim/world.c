/*
 * world.c
 *		See world.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "files.h"
#include "world.h"

const uint64_t world_cluster[2] = {1, 2};

#define MEMORY_ADDRESS ((void *) 0x200000000000)

void
world_fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	abort();
}

/* ---- memory ---- */

void
world_memory_open(WorldMemory *memory, size_t bytes)
{
	memory->base = mmap(MEMORY_ADDRESS, bytes, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	memory->bytes = bytes;
	memory->used = 0;
	if (memory->base != MEMORY_ADDRESS)
		world_fail("mmap");
}

void
world_memory_close(WorldMemory *memory)
{
	munmap(memory->base, memory->bytes);
	memory->base = NULL;
}

void *
world_allocate(WorldMemory *memory, size_t bytes)
{
	void *allocated = memory->base + memory->used;

	memory->used += (bytes + 63) / 64 * 64;
	if (memory->used > memory->bytes)
		world_fail("a world without memory");
	return allocated;
}

/* ---- memory nodes ---- */

static void
serve(void *argument)
{
	WorldNode *node = argument;
	char detail[FABRIC_DETAIL_BYTES];
	Service *service;
	FabricStatus status = service_open(&node->options, &service, detail);

	if (status != FABRIC_OK)
		world_fail("service_open: %s", detail);
	node->service = service;
	status = service_run(service);
	if (status != FABRIC_OK)
		world_fail("service_run: %s", fabric_status_name(status));
	node->service = NULL;
	service_close(service, 0, false);
}

void
world_node_start(WorldNode *node)
{
	node->server = coroutine_start(serve, node, true);
	while (node->service == NULL)
		coroutine_sleep(NANOSECONDS_PER_US);
}

void
world_node_stop(WorldNode *node)
{
	service_stop(node->service);
	while (!coroutine_has_ended(node->server))
		coroutine_sleep(NANOSECONDS_PER_US);
}

void
world_node_make(WorldNode *node, const char *transport, const ServiceOptions *options)
{
	if (!files_make(node->directory, sizeof(node->directory), "sherman-sim"))
		world_fail("mkdtemp");
	snprintf(node->memory_path, sizeof(node->memory_path), "%s/memory", node->directory);
	snprintf(node->socket_path, sizeof(node->socket_path), "%s/socket", node->directory);
	snprintf(node->address, sizeof(node->address), "%s:%s", transport, node->socket_path);
	node->options = *options;
	node->options.memory_path = node->memory_path;
	node->options.socket_path = node->socket_path;
	world_node_start(node);
}

void
world_node_clean(const WorldNode *node)
{
	files_remove(node->directory);
}

/* ---- connections ---- */

Fabric *
world_fabric(FabricOptions options, uint32_t patience_ms)
{
	Fabric *fabric;

	options.operation_timeout_ms = patience_ms / 2;
	options.connect_timeout_ms = patience_ms;
	options.cluster[0] = world_cluster[0];
	options.cluster[1] = world_cluster[1];
	if (fabric_open(&options, &fabric) != FABRIC_OK)
		world_fail("fabric_open");
	return fabric;
}

FabricEndpoint *
world_connect(Fabric *fabric, const char *address)
{
	FabricEndpoint *endpoint;
	FabricStatus status = fabric_connect(fabric, address, &endpoint);

	if (status != FABRIC_OK)
		world_fail("%s: %s: %s", address, fabric_status_name(status), fabric_detail(fabric));
	return endpoint;
}
