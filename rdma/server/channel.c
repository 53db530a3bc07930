/*
 * channel.c
 *		Life and death of channels, on the memory node.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "rdma/memory/process.h"
#include "rdma/server/server_state.h"
#include "rdma/memory/stripe.h"
#include "rdma/server/verbs_server.h"

static uint64_t
redo_offset(uint32_t channel)
{
	return (uint64_t) channel * FABRIC_REDO_BYTES;
}

/* No channel is left for the connection; if one is left for others than readers it is told, and the log says what to raise. */
static FabricStatus
refuse_channel(FabricServer *server, ServerConnection *connection)
{
	connection->readers_full =
		connection->reader && tenant_may_have_channel(server, connection->tenant, false);
	if (connection->readers_full)
		server_complain(
			server, COMPLAINT_REFUSED,
			"a reader of tenant \"%s\" is refused: of %u channels those that are left are for the "
			"server whose indexes it reads: raise channels",
			fabric_server_tenant(server, connection->tenant), (unsigned) server->memory.header->max_channels);
	return FABRIC_NO_MEMORY;
}

FabricStatus
channel_grant(FabricServer *server, ServerConnection *connection, uint32_t instance, uint32_t incarnation)
{
	Memory *memory = &server->memory;

	if (!tenant_may_have_channel(server, connection->tenant, connection->reader))
		return refuse_channel(server, connection);
	for (uint32_t i = 0; i < memory->header->max_channels; i++)
	{
		MemoryChannel *record = &memory->channels[i];
		uint64_t serial = (record->state >> MEMORY_STATE_BITS) + 1;

		if (channel_state(server, i) != MEMORY_CHANNEL_FREE)
			continue;
		record->pid = connection->pid;
		record->process_start = connection->process_start;
		record->instance = instance;
		record->incarnation = incarnation;
		record->served = connection->stream != NULL || server->verbs != NULL;
		record->intent = 0;
		__atomic_store_n(&record->active, serial << 1, __ATOMIC_SEQ_CST);
		/*
		 * The last owner's redo image was replayed or was not due: it must not be taken for the new
		 * owner's.
		 */
		memset(memory->nodes + redo_offset(i), 0, FABRIC_REDO_BYTES);
		__atomic_store_n(&record->state, serial << MEMORY_STATE_BITS | MEMORY_CHANNEL_LIVE, __ATOMIC_SEQ_CST);
		server->channels[i] =
			(ServerChannel){.process = -1, .reader = connection->reader, .connection = connection};
		server->live++;
		server->tenants[connection->tenant].channels++;
		server->figures.channels_granted++;
		connection->channel = i;
		return FABRIC_OK;
	}
	return FABRIC_NO_MEMORY;
}

void
channel_kill(FabricServer *server, uint32_t channel)
{
	MemoryChannel *record = &server->memory.channels[channel];
	ServerChannel *state = &server->channels[channel];
	ServerConnection *connection = state->connection;

	if (channel_state(server, channel) != MEMORY_CHANNEL_LIVE)
		return;
	__atomic_store_n(&record->state, (record->state & ~MEMORY_STATE_MASK) | MEMORY_CHANNEL_KILLED,
	                 __ATOMIC_SEQ_CST);
	verbs_server_kill(server, channel);
	server->live--;
	server->dying++;
	server->figures.channels_killed++;
	if (connection != NULL)
	{
		if (connection->process >= 0)
			state->process = fcntl(connection->process, F_DUPFD_CLOEXEC, 0);
		server->tenants[connection->tenant].channels--;
		connection->channel = CONTROL_NO_CHANNEL;
		connection->fenced = true;
		if (connection->chain != NULL && connection->chain->parked != 0)
			connection->chain->drop(server, connection);
		if (connection->verbs)
			connection_notify(server, connection, FABRIC_FENCED);
	}
	state->connection = NULL;
	state->kill_time = fabric_now();
}

/*
 * The last server died in a WRITE of one of its own clients: makes it whole, or leaves it not begun.
 */
static void
finish_staged_write(const FabricServer *server, uint64_t odd, uint64_t intent, uint64_t offset,
                    uint32_t bytes)
{
	const MemoryStage *stage = server->memory.stage;

	if (stage->odd == odd && stage->intent == intent &&
	    offset % FABRIC_STRIPE_BYTES + bytes <= FABRIC_STRIPE_BYTES)
		stripe_copy_in((uint64_t *) (void *) (server->memory.nodes + offset), stage->data, bytes / 8, 0);
}

/*
 * Describes a dead channel to the service, with the WRITE that it left half-way, if any and if that is not
 * made whole here.  Returns the stripe word that it left odd, or NULL.
 */
static uint64_t *
describe_dead(const FabricServer *server, uint32_t channel, FabricDeadChannel *dead)
{
	uint64_t intent = __atomic_load_n(&server->memory.channels[channel].intent, __ATOMIC_SEQ_CST);
	uint64_t offset = ((intent & MEMORY_INTENT_OFFSET_MASK) >> MEMORY_INTENT_LENGTH_BITS) * 8;
	uint32_t bytes = (uint32_t) (intent & MEMORY_INTENT_LENGTH_MASK) * 8;
	uint32_t number = server->memory.channels[channel].instance;
	uint64_t *stripe;
	uint64_t word;

	*dead = (FabricDeadChannel){
		.channel = channel,
		.tenant = FABRIC_NO_TENANT,
		.redo_offset = redo_offset(channel),
		.write_offset = UINT64_MAX,
		.write_unknown = server->memory.header->through_device != 0,
		.others_dead = server->none_alive,
	};
	if (number >= 1 && number <= MEMORY_MAX_INSTANCES)
	{
		const MemoryInstance *instance = &server->memory.instances[number - 1];

		memcpy(dead->cluster, instance->cluster, sizeof(dead->cluster));
		dead->tenant = instance->tenant;
	}
	/* The client wrote the intent, so it is checked to be inside the region. */
	if (intent == 0 || bytes > FABRIC_STRIPE_BYTES || offset >= server->memory.header->region_bytes)
		return NULL;
	stripe = memory_stripe(&server->memory, offset);
	word = __atomic_load_n(stripe, __ATOMIC_SEQ_CST);
	if (!stripe_is_odd(word) || stripe_owner(word) != channel)
		return NULL;
	if ((intent & MEMORY_INTENT_READ) != 0)
		return stripe;
	if (server->memory.channels[channel].served)
		finish_staged_write(server, word, intent, offset, bytes);
	else
	{
		dead->write_offset = offset;
		dead->write_bytes = bytes;
	}
	return stripe;
}

static bool
channel_is_idle(const FabricServer *server, uint32_t channel)
{
	const ServerChannel *state = &server->channels[channel];
	uint64_t active = __atomic_load_n(&server->memory.channels[channel].active, __ATOMIC_SEQ_CST);

	if ((active & MEMORY_ACTIVE_BUSY) == 0 || state->vanished)
		return true;
	return state->process >= 0 && process_is_gone(state->process);
}

bool
channel_settle(FabricServer *server, uint32_t channel)
{
	MemoryChannel *record = &server->memory.channels[channel];
	ServerChannel *state = &server->channels[channel];
	FabricDeadChannel dead;
	uint64_t *stripe;

	if (channel_state(server, channel) == MEMORY_CHANNEL_FREE)
		return true;
	if (channel_state(server, channel) != MEMORY_CHANNEL_KILLED || !channel_is_idle(server, channel))
		return false;
	stripe = describe_dead(server, channel, &dead);
	if (server->service.recover != NULL)
		server->service.recover(server->service.argument, &dead);
	if (stripe != NULL)
	{
		server_log(server, FABRIC_LOG_INFO, "channel %u died with a stripe taken: settled", channel);
		server->figures.channels_settled++;
		stripe_release(stripe, __atomic_load_n(stripe, __ATOMIC_SEQ_CST));
	}
	record->intent = 0;
	record->active &= ~MEMORY_ACTIVE_BUSY;
	if (state->process >= 0)
		close(state->process);
	*state = (ServerChannel){.process = -1};
	__atomic_store_n(&record->state, (record->state & ~MEMORY_STATE_MASK) | MEMORY_CHANNEL_FREE,
	                 __ATOMIC_SEQ_CST);
	server->dying--;
	return true;
}

/* A killed channel that does not come to its end: ends its process, if that is another one. */
static void
end_process(FabricServer *server, uint32_t channel)
{
	ServerChannel *state = &server->channels[channel];
	uint32_t pid = server->memory.channels[channel].pid;

	if (state->signalled || server->merciful || state->process < 0 || pid == (uint32_t) getpid())
		return;
	if (fabric_now() - state->kill_time < (uint64_t) SERVER_KILL_AFTER_MS * 1000000)
		return;
	state->signalled = true;
	if (process_kill(state->process))
	{
		server->figures.processes_killed++;
		server_log(server, FABRIC_LOG_WARNING, "channel %u was closed inside a chain: process %u killed",
		           channel, pid);
	}
	else
		server_log(server, FABRIC_LOG_WARNING,
		           "channel %u was closed inside a chain: process %u cannot be killed", channel, pid);
}

void
channels_round(FabricServer *server)
{
	for (uint32_t i = 0; server->dying > 0 && i < server->memory.header->max_channels; i++)
	{
		if (channel_state(server, i) == MEMORY_CHANNEL_KILLED && !channel_settle(server, i))
			end_process(server, i);
	}
}

FabricStatus
channels_recover(FabricServer *server)
{
	Memory *memory = &server->memory;
	uint64_t deadline = fabric_now() + (uint64_t) SERVER_REFUSE_AFTER_MS * 1000000;
	/* The kernel's proof that no mapper lives: every one holds a shared lock. */
	bool alone = flock(memory->descriptor, LOCK_EX | LOCK_NB) == 0;
	FabricStatus status = FABRIC_BUSY;

	if (alone)
		flock(memory->descriptor, LOCK_UN);
	server->none_alive = true;
	for (uint32_t i = 0; i < memory->header->max_channels; i++)
	{
		MemoryChannel *record = &memory->channels[i];
		ServerChannel *state = &server->channels[i];

		if (channel_state(server, i) == MEMORY_CHANNEL_FREE)
			continue;
		__atomic_store_n(&record->state, (record->state & ~MEMORY_STATE_MASK) | MEMORY_CHANNEL_KILLED,
		                 __ATOMIC_SEQ_CST);
		server->dying++;
		state->kill_time = fabric_now();
		/*
		 * We have the lock that the last server held as long as it lived: its clients' chains ended with
		 * it.
		 */
		if (alone || record->served)
			state->vanished = true;
		else
		{
			state->process = process_open(record->pid, record->process_start);
			/* Not visible is not gone: only a number that we know can vanish. */
			state->vanished = record->pid != 0 && state->process < 0;
		}
		server->none_alive &= state->vanished;
	}
	for (;;)
	{
		channels_round(server);
		if (server->dying == 0)
			status = FABRIC_OK;
		if (server->dying == 0 || fabric_now() > deadline)
			break;
		nanosleep(&(struct timespec){.tv_nsec = SERVER_DYING_ROUND_MS * 1000000}, NULL);
	}
	server->none_alive = false;
	return status;
}

bool
fabric_server_lock_word(FabricServer *server, uint32_t channel, uint64_t index, uint64_t *word)
{
	uint32_t number = server->memory.channels[channel].instance;
	const uint64_t *locks;
	uint32_t tenant;

	if (index >= MEMORY_LOCK_WORDS || number == 0 || number > MEMORY_MAX_INSTANCES)
		return false;
	tenant = server->memory.instances[number - 1].tenant;
	if (tenant >= MEMORY_MAX_TENANTS)
		return false;
	locks = verbs_server_has_locks(server, tenant) ? verbs_server_locks(server, tenant)
	                                               : memory_tenant_locks(&server->memory, tenant);
	if (locks == NULL)
		return false;
	*word = __atomic_load_n(&locks[index], __ATOMIC_SEQ_CST);
	return true;
}
