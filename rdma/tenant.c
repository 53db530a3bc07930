/*
 * tenant.c
 *		Tenants: their numbers, and what they leave to each other.
 *
 * Half of the channels, of the connections and of the service's trees is for whoever comes first; of the other half each tenant has
 * an equal part that nobody else can take.  Only tenants with a key count.
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>

#include "server_state.h"

uint32_t
tenant_number(FabricServer *server, const char *name)
{
	MemoryHeader *header = server->memory.header;
	char padded[FABRIC_TENANT_BYTES] = "";
	uint32_t number = 1;

	snprintf(padded, sizeof(padded), "%s", name);
	/* Numbers are given from the first on and never taken back. */
	while (number < MEMORY_MAX_TENANTS && header->tenants[number][0] != '\0' &&
	       memcmp(header->tenants[number], padded, sizeof(padded)) != 0)
		number++;
	if (number == MEMORY_MAX_TENANTS || padded[0] == '\0')
		return 0;
	if (header->tenants[number][0] == '\0')
	{
		if (memory_allocate(&server->memory, memory_tenant_locks(&server->memory, number),
		                    MEMORY_LOCK_BYTES) != FABRIC_OK)
			return 0;
		/* The first character makes it known: all the others are there by then. */
		memcpy(header->tenants[number] + 1, padded + 1, sizeof(padded) - 1);
		__atomic_store_n(&header->tenants[number][0], padded[0], __ATOMIC_RELEASE);
		server_log(server, FABRIC_LOG_INFO, "tenant %u is \"%s\"", number, padded);
	}
	return number;
}

/* How many tenants have a key? */
static uint32_t
count_tenants(const FabricKeys *keys)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < keys->count; i++)
	{
		uint32_t first = 0;

		while (strcmp(keys->keys[first].tenant, keys->keys[i].tenant) != 0)
			first++;
		count += first == i;
	}
	return count;
}

bool
fabric_server_leaves_enough(const FabricServer *server, uint32_t tenant, uint32_t most,
                            const uint32_t used[FABRIC_MAX_TENANTS + 1])
{
	uint32_t tenants = server->keys == NULL ? 0 : count_tenants(server->keys);
	uint32_t part = tenants < 2 ? 0 : most / (2 * tenants);
	uint32_t owed = tenants < 2 ? 0 : (tenants - 1) * part;
	uint32_t taken = 0;

	if (tenant == 0)
		return true;
	for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
	{
		uint32_t had = used[i] < part ? used[i] : part;

		taken += used[i];
		/* What another one has already is not owed to it any more. */
		if (i != 0 && i != tenant)
			owed -= had < owed ? had : owed;
	}
	return taken + owed < most;
}

bool
tenant_may_have_channel(const FabricServer *server, uint32_t tenant)
{
	uint32_t used[MEMORY_MAX_TENANTS];

	for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
		used[i] = server->tenants[i].channels;
	return fabric_server_leaves_enough(server, tenant, server->memory.header->max_channels, used);
}

bool
tenant_may_have_connection(const FabricServer *server, uint32_t tenant)
{
	uint32_t used[MEMORY_MAX_TENANTS];

	for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
		used[i] = server->tenants[i].connections;
	return fabric_server_leaves_enough(server, tenant, server->options.max_connections, used);
}
