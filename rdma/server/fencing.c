/*
 * fencing.c
 *		Fencing of an instance, on the memory node: the channels of its ended incarnation die, and its lock words are
 *		freed, before the next one is admitted.
 */
#include "rdma/server/server_state.h"
#include "rdma/server/verbs_server.h"

bool
instance_kill_channels(FabricServer *server, uint32_t instance)
{
	bool dead = true;

	for (uint32_t i = 0; i < server->memory.header->max_channels; i++)
	{
		ServerConnection *connection = server->channels[i].connection;

		if (channel_state(server, i) == MEMORY_CHANNEL_FREE ||
		    server->memory.channels[i].instance != instance)
			continue;
		channel_kill(server, i);
		/*
		 * The client that attaches may have had a channel, too; it still waits for the reply. Clients that send their
		 * chains learn of it by the reply to their next one.
		 */
		if (connection != NULL && !connection->attaching && connection->stream == NULL &&
		    server->verbs == NULL)
			connection_close(server, connection);
		dead &= channel_settle(server, i);
	}
	return dead;
}

/* Frees stale lock words by the processor, as all others of access class CPU use them. */
static uint32_t
stale_locks_free(FabricServer *server, uint32_t tenant, uint32_t instance, uint32_t incarnation)
{
	uint64_t *locks = memory_tenant_locks(&server->memory, tenant);
	uint32_t freed = 0;

	for (uint32_t i = 0; i < MEMORY_LOCK_WORDS; i++)
	{
		/* No other process changes a word of this instance: all its channels are dead. */
		if (memory_lock_is_stale(__atomic_load_n(&locks[i], __ATOMIC_SEQ_CST), instance, incarnation))
		{
			__atomic_store_n(&locks[i], 0, __ATOMIC_SEQ_CST);
			freed++;
		}
	}
	return freed;
}

bool
instance_advance(FabricServer *server, MemoryInstance *instance, uint32_t incarnation, uint64_t nonce)
{
	uint32_t number = instance_number(server, instance);
	uint32_t freed = 0;

	if (server->service.fenced != NULL)
		server->service.fenced(server->service.argument, number, incarnation);
	if (!verbs_server_has_locks(server, instance->tenant))
		freed = stale_locks_free(server, instance->tenant, number, incarnation);
	else if (!verbs_server_free_locks(server, instance->tenant, number, incarnation, &freed))
	{
		server_log(server, FABRIC_LOG_ERROR, "instance %u: the device does not free its lock words", number);
		return false;
	}
	server->figures.incarnations++;
	server->figures.locks_recovered += freed;
	instance->launcher_nonce = nonce;
	__atomic_store_n(&instance->incarnation, incarnation, __ATOMIC_SEQ_CST);
	server_complain(server, COMPLAINT_ATTACHED, "instance %u: incarnation %u granted, %u lock words freed",
	                number, incarnation, freed);
	return true;
}
