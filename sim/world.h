/*
 * world.h
 *		What simulations of the real tree have in common besides time: memory at one address in all runs,
 *		memory nodes that serve, and connections to them.
 *
 * Everything here is called from coroutines (scheduler.h). What fails prints why and aborts.
 */
#ifndef SHERMAN_SIM_WORLD_H
#define SHERMAN_SIM_WORLD_H

#include "tree/service/service.h"
#include "scheduler.h"

/* Prints why the simulation cannot go on, and aborts. */
extern _Noreturn void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Memory that is given back as a whole; at one address in all runs, for what depends on addresses. */
typedef struct WorldMemory
{
	uint8_t *base;
	size_t bytes;
	size_t used;
} WorldMemory;

/* There is one at a time. */
extern void world_memory_open(WorldMemory *memory, size_t bytes);
extern void world_memory_close(WorldMemory *memory);
/* Zeroed, in whole lines. */
extern void *world_allocate(WorldMemory *memory, size_t bytes);

typedef struct WorldNode
{
	ServiceOptions options;
	char directory[64];
	char memory_path[96];
	char socket_path[96];
	char address[112];
	Service *service; /* NULL: it does not run */
	Coroutine *server;
} WorldNode;

/*
 * A new one, with files of its own, that is reached by this transport; it serves. The node stays where it is.
 */
extern void world_node_make(WorldNode *node, const char *transport, const ServiceOptions *options);
/* Ends it. The memory stays, and world_node_start() serves it again. */
extern void world_node_stop(WorldNode *node);
extern void world_node_start(WorldNode *node);
/* Removes the files, whatever state it is in. */
extern void world_node_clean(const WorldNode *node);

/* The cluster that all worlds have. */
extern const uint64_t world_cluster[2];

/* With that cluster, and timeouts of an instance that waits so long. */
extern Fabric *world_fabric(FabricOptions options, uint32_t patience_ms);
extern FabricEndpoint *world_connect(Fabric *fabric, const char *address);

#endif /* SHERMAN_SIM_WORLD_H */
