/*
 * instances.c
 *		The table of the instances that a memory node knows, with their incarnations.
 */
#include <string.h>

#include "rdma/server/server_state.h"

MemoryInstance *
instance_find(const FabricServer *server, const uint64_t cluster[2])
{
	for (uint32_t i = 0; i < MEMORY_MAX_INSTANCES && server->memory.instances[i].used; i++)
	{
		MemoryInstance *instance = &server->memory.instances[i];

		if (instance->cluster[0] == cluster[0] && instance->cluster[1] == cluster[1])
			return instance;
	}
	return NULL;
}

MemoryInstance *
instance_make(FabricServer *server, const uint64_t cluster[2], uint32_t tenant)
{
	MemoryInstance *instance = instance_find(server, cluster);
	uint32_t i = 0;
	uint32_t owned = 0;

	if (instance != NULL)
		return instance;
	/* They are used from the first on and never given back. */
	for (; i < MEMORY_MAX_INSTANCES && server->memory.instances[i].used; i++)
		owned += server->memory.instances[i].tenant == tenant;
	if (i == MEMORY_MAX_INSTANCES || owned >= MEMORY_TENANT_INSTANCES)
		return NULL;
	instance = &server->memory.instances[i];
	memset(instance, 0, sizeof(*instance));
	instance->cluster[0] = cluster[0];
	instance->cluster[1] = cluster[1];
	instance->tenant = (uint16_t) tenant;
	__atomic_store_n(&instance->used, 1, __ATOMIC_SEQ_CST);
	return instance;
}

void
instances_fence(FabricServer *server)
{
	for (uint32_t i = 0; i < MEMORY_MAX_INSTANCES; i++)
	{
		MemoryInstance *instance = &server->memory.instances[i];

		if (!instance->used || instance->incarnation == 0)
			continue;
		instance->launcher_nonce = 0;
		instance->incarnation = incarnation_next(instance->incarnation);
	}
}
