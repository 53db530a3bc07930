/*
 * cost_transport.c
 *		See cost_transport.h.
 *
 * A chain is two events and one switch: it reaches the memory node's card, where its operations take effect,
 * and its client goes on.  An operation that is served much later than its chain came (an atomic whose bucket
 * is taken) has an event of its own, so that what comes in between takes effect before it.
 *
 * Operations are whole: nothing is torn here, that is what transport.c is for.
 */
#include <stdlib.h>
#include <string.h>

#include "../rdma/shm.h"
#include "cost_transport.h"
#include "scheduler.h"

/* What is served so much later than now, in picoseconds, gets an event of its own. */
#define SOON (50 * PICOSECONDS_PER_NS)
#define COST_NODES 64u
/* Of an operation: a leaf. */
#define FETCHED_BYTES 1024u

typedef struct CostNode
{
	FabricEndpoint *carrier;
	const ApplyChannel *channel;
	uint32_t host;
	bool calling;
} CostNode;

/* An endpoint, and its chain that is under way. */
typedef struct CostPort
{
	CostNode *node;
	CostClient *client;
	Coroutine *waiter;
	FabricOp *ops;
	int count;
	int next;
	CostFlight flight;
} CostPort;

typedef struct CostModel
{
	CostOptions options;
	CostCard *cards;
	CostNode nodes[COST_NODES];
	CostClient *connecting;
} CostModel;

static CostModel model;

/* ---- chains ---- */

static uint64_t
now(void)
{
	return scheduler_now() * PICOSECONDS_PER_NS;
}

/* Nanoseconds from now to a time. */
static uint64_t
until(uint64_t time)
{
	return time <= now() ? 0 : (time - now() + PICOSECONDS_PER_NS - 1) / PICOSECONDS_PER_NS;
}

/* A swap of a lock word. No other thread is there: it need not wait for the stores before it, nor what follows for it. */
static void
swap_lock(uint64_t *word, FabricOp *op)
{
	op->result = *word;
	if (*word == op->compare)
		*word = op->operand;
}

/* Takes effect, now. */
static void
apply(const ApplyChannel *channel, FabricOp *op)
{
	if (op->opcode == FABRIC_READ && op->region == FABRIC_LOCKS)
		*(uint64_t *) op->buffer = channel->locks[op->offset / 8];
	else if (op->opcode == FABRIC_READ)
		memcpy(op->buffer, apply_node(channel, op->offset), op->length);
	else if (op->opcode == FABRIC_WRITE)
		memcpy(apply_node(channel, op->offset), op->buffer, op->length);
	else if (op->opcode == FABRIC_COMPARE_SWAP && op->region == FABRIC_LOCKS)
		swap_lock(&channel->locks[op->offset / 8], op);
	else
		apply_atomic(channel, op);
}

/* What the chain will touch when it comes to the card comes nearer to this processor meanwhile. */
static void
fetch(const CostPort *port)
{
	for (int i = 0; i < port->count; i++)
	{
		const FabricOp *op = &port->ops[i];
		const char *place =
			(const char *) (op->region == FABRIC_LOCKS ? &port->node->channel->locks[op->offset / 8]
		                                               : apply_node(port->node->channel, op->offset));

		for (uint32_t at = 0; at < op->length && at < FETCHED_BYTES; at += 64)
			__builtin_prefetch(place + at);
	}
}

static void go_on(void *argument, uint64_t number);

/* Serves operations as long as they are due soon. True: all are. */
static bool
serve(CostPort *port, CostCard *card)
{
	while (port->next < port->count)
	{
		FabricOp *op = &port->ops[port->next];
		uint64_t time = cost_serve(card, &model.options.placement, now(), op, &port->flight);

		port->next++;
		if (time > now() + SOON)
		{
			scheduler_after(until(time), go_on, port, 1);
			return false;
		}
		apply(port->node->channel, op);
	}
	return true;
}

/* An event: the chain has come to the card, or (late) the operation before `next` takes effect. */
static void
go_on(void *argument, uint64_t late)
{
	CostPort *port = argument;
	CostCard *card = &model.cards[port->node->host];

	if (late)
		apply(port->node->channel, &port->ops[port->next - 1]);
	else
		cost_arrive(card, now(), &port->flight);
	if (serve(port, card))
		coroutine_resume_after(
			port->waiter, until(cost_answer(card, &model.cards[port->client->host], now(), &port->flight)));
}

static FabricStatus
cost_execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	CostPort *port = endpoint->state;
	CostClient *client = port->client;
	uint64_t read_bytes = 0;
	uint64_t sent;

	port->waiter = coroutine_current();
	port->ops = ops;
	port->count = count;
	port->next = 0;
	port->flight = (CostFlight){0};
	sent = cost_send(&model.cards[client->host], now(), client->debt * PICOSECONDS_PER_NS, ops, count,
	                 &port->flight);
	client->debt = 0;
	fetch(port);
	scheduler_after(until(sent), go_on, port, 0);
	coroutine_suspend();
	for (int i = 0; i < count; i++)
		if (ops[i].opcode == FABRIC_READ)
			read_bytes += ops[i].length;
	client->debt = read_bytes * cost_parameters.check_byte / PICOSECONDS_PER_NS;
	return FABRIC_OK;
}

/* ---- connections ---- */

static FabricStatus
cost_connect(FabricEndpoint *endpoint, const char *location)
{
	unsigned long number = strtoul(location, NULL, 10);
	CostPort *port;

	if (number >= COST_NODES || model.nodes[number].carrier == NULL || model.connecting == NULL)
		return FABRIC_UNREACHABLE;
	port = calloc(1, sizeof(CostPort));
	if (port == NULL)
		return FABRIC_NO_MEMORY;
	port->node = &model.nodes[number];
	port->client = model.connecting;
	endpoint->state = port;
	endpoint->capabilities = port->node->carrier->capabilities;
	endpoint->capabilities.one_packet = cost_parameters.packet_payload;
	endpoint->channel = port->node->carrier->channel;
	return FABRIC_OK;
}

static void
cost_disconnect(FabricEndpoint *endpoint)
{
	free(endpoint->state);
	endpoint->state = NULL;
}

/* The carrier takes one call at a time. */
static FabricStatus
cost_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes, void *reply,
          uint32_t *reply_bytes)
{
	CostNode *node = ((CostPort *) endpoint->state)->node;
	FabricStatus status;

	while (node->calling)
		coroutine_sleep(NANOSECONDS_PER_US);
	node->calling = true;
	status = shm_transport.call(node->carrier, method, request, request_bytes, reply, reply_bytes);
	node->calling = false;
	return status;
}

static FabricStatus
cost_attach(FabricEndpoint *endpoint, bool resume, uint64_t launcher_nonce, uint32_t *instance,
            uint32_t *incarnation)
{
	(void) endpoint;
	(void) resume;
	(void) launcher_nonce;
	(void) instance;
	(void) incarnation;
	return FABRIC_NOT_SUPPORTED;
}

static FabricStatus
cost_reset(FabricEndpoint *endpoint)
{
	(void) endpoint;
	return FABRIC_UNREACHABLE;
}

const FabricTransport cost_transport = {
	.name = "cost",
	.connect = cost_connect,
	.disconnect = cost_disconnect,
	.execute = cost_execute,
	.call = cost_call,
	.attach = cost_attach,
	.reset = cost_reset,
};

/* ---- the model ---- */

void
cost_open(const CostOptions *options)
{
	model = (CostModel){.options = *options, .cards = calloc(options->hosts, sizeof(CostCard))};
	if (model.cards == NULL)
		abort();
}

void
cost_close(void)
{
	free(model.cards);
	model = (CostModel){0};
}

void
cost_node(uint32_t node, uint32_t host, FabricEndpoint *carrier)
{
	if (node >= COST_NODES || host >= model.options.hosts)
		abort();
	model.nodes[node] = (CostNode){.carrier = carrier, .channel = shm_channel(carrier), .host = host};
}

void
cost_client_begin(CostClient *client)
{
	model.connecting = client;
}

const CostCard *
cost_card(uint32_t host)
{
	return &model.cards[host];
}
