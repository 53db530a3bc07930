/*
 * chains.c
 *		The chains of clients that send them in frames, run by the memory node's own thread on behalf of their channels.
 *
 * Of access class CPU, a chain runs between two looks at the sockets.  One that meets a stripe which a local client has taken
 * is parked; of access class NIC each is handed to the device, over a queue pair with both ends here, and parked until that
 * has done it: its connection is due in each round until it is through, and answers nothing else meanwhile.  The
 * channel's record says busy for all that time, as a local client's would; so the next server knows what
 * this one's death left behind.
 */
#define _GNU_SOURCE 1
#include <stdlib.h>

#include "rdma/server/server_state.h"
#include "rdma/server/verbs_server.h"

/* A device answers in microseconds, on a busy machine in milliseconds; after this it is broken. */
#define DEVICE_MS 5000u

bool
chains_prepare(ServerConnection *connection)
{
	if (connection->chain == NULL)
		connection->chain = calloc(1, sizeof(ServerChain));
	return connection->chain != NULL;
}

static void
count_chain(FabricServerFigures *figures, const ServerChain *chain)
{
	figures->chains++;
	figures->operations += (uint64_t) chain->run.count;
	for (int i = 0; i < chain->run.count; i++)
	{
		if (chain->ops[i].opcode == FABRIC_READ)
			figures->chain_read_bytes += chain->ops[i].length;
		else
			figures->chain_written_bytes += chain->ops[i].length;
	}
}

/* The chain is through, or will never be. */
static void
end_chain(FabricServer *server, ServerConnection *connection, FabricStatus status)
{
	ServerChain *chain = connection->chain;
	Buffer *output = &connection->output;

	apply_leave(&chain->channel, &chain->run);
	chain->posted = false;
	if (chain->parked != 0)
	{
		chain->parked = 0;
		server->parked--;
	}
	if (connection->closing)
		return;
	if (status == FABRIC_OK)
	{
		chain_put_results(chain->ops, chain->run.count,
		                  output->data + output->end + FRAME_HEAD_BYTES + FRAME_STATUS_BYTES);
		count_chain(&server->figures, chain);
	}
	connection_reply(server, connection, &chain->frame, status,
	                 status == FABRIC_OK ? chain->frame.length : 0);
}

/* ServerChain.drop */
static void
chain_drop(FabricServer *server, ServerConnection *connection)
{
	end_chain(server, connection, FABRIC_FENCED);
	/* The reply goes with the next round. */
	connection_make_due(server, connection);
}

void
chains_begin(FabricServer *server, ServerConnection *connection)
{
	MemoryChannel *record = &server->memory.channels[connection->channel];
	uint64_t serial = record->state >> MEMORY_STATE_BITS;

	connection->chain->channel = (ApplyChannel){
		.memory = &server->memory,
		.record = record,
		.live = serial << MEMORY_STATE_BITS | MEMORY_CHANNEL_LIVE,
		.idle = serial << 1,
		.locks = memory_tenant_locks(&server->memory, connection->tenant),
		.channel = connection->channel,
		.mark = memory_unit_mark(connection->tenant),
		.stage = server->memory.stage,
	};
	connection->chain->parked = 0;
	connection->chain->posted = false;
	connection->chain->drop = chain_drop;
	connection->fenced = false;
}

/* Runs the chain by the processor as far as it gets; true if it waits for a stripe. */
static bool
run_own_chain(FabricServer *server, ServerConnection *connection)
{
	ServerChain *chain = connection->chain;
	uint64_t awaited = chain->run.awaited;
	ApplyStatus status = apply_steps(&chain->channel, &chain->run);

	if (status != APPLY_STRIPE_TAKEN)
	{
		end_chain(server, connection, status == APPLY_DONE ? FABRIC_OK : FABRIC_FENCED);
		return false;
	}
	server->parked += chain->parked == 0;
	/* Only an owner that keeps the stripe is waited for long. */
	if (chain->parked == 0 || chain->run.awaited != awaited)
		chain->parked = fabric_now();
	connection_make_due(server, connection);
	return true;
}

/* The device failed in the middle of a chain: with its channel nothing of it lands any more, and the client has to reset. */
static void
give_up_device(FabricServer *server, ServerConnection *connection, const char *reason)
{
	uint32_t channel = connection->channel;

	server_complain(server, COMPLAINT_CHAIN, "channel %u: a chain came to no end on the device: %s", channel,
	                reason);
	/* Whatever the chain waits for goes with the channel: so it is parked. */
	if (connection->chain->parked == 0)
	{
		connection->chain->parked = fabric_now();
		server->parked++;
	}
	channel_kill(server, channel);
	channel_settle(server, channel);
}

/* Has the device run the chain, without waiting for it; true if it is not through. */
static bool
run_device_chain(FabricServer *server, ServerConnection *connection)
{
	ServerChain *chain = connection->chain;
	FabricStatus status = FABRIC_OK;
	const char *reason = "it takes no request";

	if (!chain->posted)
		status = verbs_server_post(server, connection->channel, chain->ops, chain->run.count);
	chain->posted = status == FABRIC_OK;
	if (status == FABRIC_OK)
		status = verbs_server_poll(server, connection->channel, &reason);
	if (status == FABRIC_OK)
	{
		end_chain(server, connection, FABRIC_OK);
		return false;
	}
	if (status == FABRIC_BUSY && chain->parked != 0 &&
	    fabric_now() - chain->parked > (uint64_t) DEVICE_MS * 1000000)
	{
		status = FABRIC_TIMED_OUT;
		reason = "no completion in time";
	}
	if (status != FABRIC_BUSY)
	{
		give_up_device(server, connection, reason);
		return false;
	}
	if (chain->parked == 0)
	{
		server->parked++;
		chain->parked = fabric_now();
	}
	connection_make_due(server, connection);
	return true;
}

/* Runs the chain as far as it gets; true if it waits for a stripe or the device. */
static bool
run_chain(FabricServer *server, ServerConnection *connection)
{
	if (server->verbs != NULL)
		return run_device_chain(server, connection);
	return run_own_chain(server, connection);
}

/* A tree does not send such a chain: either the client is none, or something is damaged. */
static void
report_refusal(FabricServer *server, const ServerConnection *connection, FabricStatus status)
{
	server->figures.chains_refused++;
	server_complain(server, COMPLAINT_CHAIN,
	                "a chain was refused: %s (channel %u, instance %u, tenant \"%s\")",
	                fabric_status_name(status), connection->channel,
	                instance_number(server, instance_find(server, connection->cluster)),
	                fabric_server_tenant(server, connection->tenant));
}

void
chains_handle(FabricServer *server, ServerConnection *connection, uint8_t *payload, uint32_t bytes)
{
	const uint64_t region_bytes[2] = {server->memory.header->region_bytes, MEMORY_LOCK_BYTES};
	ServerChain *chain = connection->chain;
	int count = 0;
	FabricStatus status = FABRIC_FENCED;
	ApplyStatus started = APPLY_DONE;
	uint8_t *reply;

	chain->frame = connection->request;
	if (!connection->fenced)
		status = chain_decode(payload, bytes, region_bytes, chain->ops, &count);
	if (status == FABRIC_OK && connection->reader && !chain_is_readers(chain->ops, count))
		status = FABRIC_PROTOCOL;
	if (status == FABRIC_OK)
	{
		chain->run = (ApplyRun){.ops = chain->ops, .count = count};
		started = apply_start(&chain->channel, &chain->run);
	}
	if (started != APPLY_DONE)
		status = started == APPLY_RANGE ? FABRIC_RANGE : FABRIC_FENCED;
	if (status != FABRIC_OK)
	{
		if (status != FABRIC_FENCED)
			report_refusal(server, connection, status);
		connection_reply(server, connection, &chain->frame, status, 0);
		return;
	}
	chain->frame.length = chain_reply_bytes(chain->ops, count);
	reply = connection_reply_place(server, connection, chain->frame.length);
	if (reply == NULL)
		return;
	chain_place_reads(chain->ops, count, reply);
	run_chain(server, connection);
}

bool
chains_continue(FabricServer *server, ServerConnection *connection)
{
	const ServerChain *chain = connection->chain;

	if (chain == NULL || chain->parked == 0)
		return false;
	/* What the device has cannot be called back. */
	if (!chain->posted && !apply_may_go_on(&chain->channel, &chain->run))
	{
		/* Part of it is done: the client has to reset. */
		end_chain(server, connection, FABRIC_FENCED);
		return false;
	}
	return run_chain(server, connection);
}
