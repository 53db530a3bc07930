/*
 * drain.c
 *		The end of a server's service: clients are notified, give up their locks, and lose their channels. While it
 *		drains, a server serves on: a client that holds a lock needs calls and chains to give it up. Only HELLO and
 * ATTACH are refused. A client that was notified takes no new lock (tree/lock/lock.c); the end comes as soon as no
 * lock word is taken, or at the deadline.
 */
#include <string.h>

#include "rdma/server/server_state.h"
#include "rdma/server/verbs_server.h"

/* How long a closing server waits for killed channels to come to the end of their chains. */
#define CLOSE_PATIENCE_MS 500u

/* The instances that have channels which can give locks up, by number. */
typedef struct Instances
{
	bool here[MEMORY_MAX_INSTANCES + 1];
} Instances;

static void
find_instances(const FabricServer *server, Instances *instances)
{
	memset(instances, 0, sizeof(*instances));
	for (uint32_t i = 0; i < server->memory.header->max_channels; i++)
	{
		uint32_t number = server->memory.channels[i].instance;

		if (channel_state(server, i) != MEMORY_CHANNEL_FREE && !server->channels[i].reader &&
		    number <= MEMORY_MAX_INSTANCES)
			instances->here[number] = true;
	}
}

/* Does one of them hold a lock?  Words of those that are gone wait for their next incarnation, not we for them. */
static bool
locks_are_held(const FabricServer *server, const Instances *instances)
{
	/* Tenants are numbered from the first on; the lock words behind the last one have no pages. */
	for (uint32_t tenant = 0;
	     tenant == 0 || (tenant < MEMORY_MAX_TENANTS && server->memory.header->tenants[tenant][0] != '\0');
	     tenant++)
	{
		const uint64_t *locks = verbs_server_has_locks(server, tenant)
		                            ? verbs_server_locks(server, tenant)
		                            : memory_tenant_locks(&server->memory, tenant);

		/* Nobody can say: then it is not clean. */
		if (locks == NULL)
			return true;
		for (uint32_t i = 0; i < MEMORY_LOCK_WORDS; i++)
		{
			uint64_t holder = __atomic_load_n(&locks[i], __ATOMIC_SEQ_CST) >> 48;

			if (holder != 0 && holder <= MEMORY_MAX_INSTANCES && instances->here[holder])
				return true;
		}
	}
	return false;
}

/* Runs the loop until all killed channels are settled; false: one of them is in the middle of a chain still. */
static bool
settle_all(FabricServer *server, ServerStep step)
{
	uint64_t deadline = fabric_now() + (uint64_t) CLOSE_PATIENCE_MS * 1000000;

	while (server->dying > 0)
	{
		if (fabric_now() >= deadline || step(server, SERVER_DYING_ROUND_MS) != FABRIC_OK)
			return server->dying == 0;
	}
	return true;
}

/* Serves on until no connected client holds a lock, or the time is over. */
static void
wait_for_locks(FabricServer *server, ServerStep step, int drain_ms, Instances *instances)
{
	uint64_t deadline = fabric_now() + (drain_ms > 0 ? (uint64_t) drain_ms * 1000000 : 0);

	/* What the clients sent before they went is still in the sockets. */
	step(server, 0);
	for (;;)
	{
		find_instances(server, instances);
		if (!locks_are_held(server, instances) || fabric_now() >= deadline ||
		    step(server, SERVER_DYING_ROUND_MS) != FABRIC_OK)
			return;
	}
}

/* Clients of verbs have nothing else to learn it from; the frame says it. */
static void
notify_clients(FabricServer *server)
{
	ServerConnection *connection;

	TAILQ_FOREACH(connection, &server->connections, all)
	{
		if (connection->verbs && connection->channel != CONTROL_NO_CHANNEL)
			connection_notify(server, connection, FABRIC_OK);
	}
}

bool
server_drain(FabricServer *server, ServerStep step, int drain_ms)
{
	Instances instances;
	uint64_t settled;
	bool quiet;

	server->draining = true;
	server->merciful = true;
	__atomic_store_n(&server->memory.header->draining, 1, __ATOMIC_RELAXED);
	notify_clients(server);
	wait_for_locks(server, step, drain_ms, &instances);
	settled = server->figures.channels_settled;
	for (uint32_t i = 0; i < server->memory.header->max_channels; i++)
		channel_kill(server, i);
	quiet = settle_all(server, step);
	if (!quiet)
		server_log(server, FABRIC_LOG_WARNING, "%u channels are in the middle of a chain at the end",
		           server->dying);
	return quiet && server->figures.channels_settled == settled && !locks_are_held(server, &instances);
}
