/*
 * tenant.c
 *		Tenants: their numbers, and their shares. Half of the channels, of the connections and of the service's trees
 *		is first come first served; of the other half each tenant with a key has an equal part that no other one can
 *		take.
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>

#include "rdma/server/server_state.h"

/*
 * Readers leave the last one of so many channels that are surely their tenant's: so, however many sessions hot standbys have, the
 * server that owns what they read still gets in, by its launcher, its workers, and sessions that end the others.
 */
#define READERS_LEAVE 4u

/* Has a key of the tenant been given to anybody? */
static bool
has_key(const FabricServer *server, const char *name)
{
	for (uint32_t i = 0; server->keys != NULL && i < server->keys->count; i++)
	{
		if (strcmp(server->keys->keys[i].tenant, name) == 0)
			return true;
	}
	return false;
}

const char *
fabric_server_tenant(const FabricServer *server, uint32_t tenant)
{
	if (tenant >= MEMORY_MAX_TENANTS || server->memory.header->tenants[tenant][0] == MEMORY_NAME_FREED)
		return "";
	return server->memory.header->tenants[tenant];
}

/*
 * Whether the tenant has attached once, and has nothing here. A client has to attach before it changes anything, and
 * needs a key for that.
 */
static bool
left_nothing(const FabricServer *server, uint32_t number)
{
	if (server->verbs != NULL || server->tenants[number].connections > 0 ||
	    has_key(server, fabric_server_tenant(server, number)))
		return false;
	for (uint32_t i = 0; i < MEMORY_MAX_INSTANCES && server->memory.instances[i].used; i++)
	{
		if (server->memory.instances[i].tenant == number)
			return false;
	}
	return true;
}

/* A number for one more tenant; 0: all are in use. */
static uint32_t
free_number(const FabricServer *server)
{
	const MemoryHeader *header = server->memory.header;
	uint32_t number = 1;

	while (number < MEMORY_MAX_TENANTS && header->tenants[number][0] != '\0' &&
	       header->tenants[number][0] != MEMORY_NAME_FREED)
		number++;
	for (uint32_t i = 1; number == MEMORY_MAX_TENANTS && i < MEMORY_MAX_TENANTS; i++)
	{
		if (left_nothing(server, i))
			return i;
	}
	return number == MEMORY_MAX_TENANTS ? 0 : number;
}

/* Gives a number a name; the first character makes it known: all the others are there by then. */
static void
set_name(MemoryHeader *header, uint32_t number, const char name[FABRIC_TENANT_BYTES])
{
	__atomic_store_n(&header->tenants[number][0], MEMORY_NAME_FREED, __ATOMIC_SEQ_CST);
	memcpy(header->tenants[number] + 1, name + 1, FABRIC_TENANT_BYTES - 1);
	__atomic_store_n(&header->tenants[number][0], name[0], __ATOMIC_RELEASE);
}

uint32_t
tenant_number(FabricServer *server, const char *name)
{
	MemoryHeader *header = server->memory.header;
	char padded[FABRIC_TENANT_BYTES] = "";
	uint32_t number;

	snprintf(padded, sizeof(padded), "%s", name);
	if (padded[0] == '\0' || padded[0] == MEMORY_NAME_FREED)
		return 0;
	for (number = 1; number < MEMORY_MAX_TENANTS; number++)
	{
		if (memcmp(header->tenants[number], padded, sizeof(padded)) == 0)
			return number;
	}
	number = free_number(server);
	if (number == 0)
	{
		server_complain(
			server, COMPLAINT_REFUSED,
			"tenant \"%s\" is refused: %u others have memory here: msd --drop-tenant drops one that is gone",
			padded, FABRIC_MAX_TENANTS);
		return 0;
	}
	if (memory_allocate(&server->memory, memory_tenant_locks(&server->memory, number), MEMORY_LOCK_BYTES) !=
	    FABRIC_OK)
		return 0;
	memset(memory_tenant_locks(&server->memory, number), 0, MEMORY_LOCK_BYTES);
	set_name(header, number, padded);
	server_log(server, FABRIC_LOG_INFO, "tenant %u is \"%s\"", number, padded);
	return number;
}

void
fabric_server_forget_tenant(FabricServer *server, uint32_t tenant)
{
	static const char freed[FABRIC_TENANT_BYTES] = {MEMORY_NAME_FREED};

	/* An instance's number is in lock words, and is not given again; whose it was is forgotten. */
	for (uint32_t i = 0; i < MEMORY_MAX_INSTANCES && server->memory.instances[i].used; i++)
	{
		MemoryInstance *instance = &server->memory.instances[i];

		if (instance->tenant != tenant)
			continue;
		instance->cluster[0] = instance->cluster[1] = 0;
		instance->tenant = MEMORY_MAX_TENANTS;
	}
	set_name(server->memory.header, tenant, freed);
}

/* How many tenants have a key? NULL: nobody needs one. */
static uint32_t
count_tenants(const FabricKeys *keys)
{
	uint32_t count = 0;

	for (uint32_t i = 0; keys != NULL && i < keys->count; i++)
	{
		uint32_t first = 0;

		while (strcmp(keys->keys[first].tenant, keys->keys[i].tenant) != 0)
			first++;
		count += first == i;
	}
	return count;
}

/* What each tenant is sure of, of so many: all of them if there are not several. */
static uint32_t
sure_part(uint32_t tenants, uint32_t most)
{
	return tenants < 2 ? most : most / (2 * tenants);
}

/* Is one more left for the tenant, and so many beside it, when the others have what they are sure of? */
static bool
leaves_enough(const FabricServer *server, uint32_t tenant, uint32_t most,
              const uint32_t used[MEMORY_MAX_TENANTS], uint32_t beside)
{
	uint32_t tenants = count_tenants(server->keys);
	uint32_t part = tenants < 2 ? 0 : sure_part(tenants, most);
	uint32_t owed = tenants < 2 ? 0 : (tenants - 1) * part;
	uint32_t taken = beside;

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
fabric_server_leaves_enough(const FabricServer *server, uint32_t tenant, uint32_t most,
                            const uint32_t used[FABRIC_MAX_TENANTS + 1])
{
	return tenant == 0 || leaves_enough(server, tenant, most, used, 0);
}

/* The channels that a tenant's readers leave to the instance that they read: 0 for one that is no reader. */
static uint32_t
channels_left_by(const FabricServer *server, bool reader)
{
	uint32_t tenants = count_tenants(server->keys);
	uint32_t sure = sure_part(tenants, (uint32_t) server->memory.header->max_channels);

	return reader ? (sure + READERS_LEAVE - 1) / READERS_LEAVE : 0;
}

bool
tenant_may_have_channel(const FabricServer *server, uint32_t tenant, bool reader)
{
	uint32_t most = (uint32_t) server->memory.header->max_channels;
	uint32_t used[MEMORY_MAX_TENANTS];

	for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
		used[i] = server->tenants[i].channels;
	/* Those without a key have no part of their own: what is free is theirs, but for what readers leave. */
	if (tenant == 0 && !reader)
		return true;
	return leaves_enough(server, tenant, most, used, channels_left_by(server, reader));
}

bool
tenant_may_have_connection(const FabricServer *server, uint32_t tenant)
{
	uint32_t used[MEMORY_MAX_TENANTS];

	for (uint32_t i = 0; i < MEMORY_MAX_TENANTS; i++)
		used[i] = server->tenants[i].connections;
	return fabric_server_leaves_enough(server, tenant, server->options.max_connections, used);
}
