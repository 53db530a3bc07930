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

#include "rdma/shm/shm.h"
#include "cost_transport.h"
#include "fetch.h"

/* What is served so much later than now, in picoseconds, gets an event of its own. */
#define SOON (50 * PICOSECONDS_PER_NS)
#define COST_NODES 64u
/* Of an operation: a leaf. */
#define FETCHED_BYTES 1024u
/* Of so many memory nodes the endpoints are fetched: a client's next chain goes to one of them. */
#define FETCHED_NODES 8u

typedef struct CostNode
{
	FabricEndpoint *carrier;
	const ApplyChannel *channel;
	uint32_t host;
	bool calling;
	CostService service;
} CostNode;

/* A call that is under way. */
typedef struct CostCall
{
	const void *request;
	uint32_t request_bytes;
	void *reply;
	uint32_t reply_bytes;
	FabricStatus status;
} CostCall;

struct CostPort;

/* A chain that was posted. */
typedef struct CostPosted
{
	CostClient chain; /* as of a client that has this one alone; `waiter` is NULL unless it is waited for */
	struct CostPort *port;
	uint64_t ticket;
	bool arrived; /* at the card, where those before it are served first */
	bool ended;
} CostPosted;

/* An endpoint. */
typedef struct CostPort
{
	CostNode *node;
	CostClient *client;
	CostCall call;
	CostPosted *posted; /* TRANSPORT_TICKETS, if chains are posted */
	uint32_t unserved;  /* of these */
	uint64_t turn;      /* ticket of the first of them */
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

/* Where an operation takes effect. */
static const void *
place_of(const ApplyChannel *channel, const FabricOp *op)
{
	if (op->region == FABRIC_LOCKS)
		return &channel->locks[op->offset / 8];
	return apply_node(channel, op->offset);
}

/* Notes what a new chain will touch. */
static void
note_chain(CostClient *client)
{
	for (int i = 0; i < COST_NOTED_OPERATIONS; i++)
	{
		const FabricOp *op = &client->ops[i];
		uint32_t bytes = 0;

		if (i < client->count)
			bytes = op->length < FETCHED_BYTES ? op->length : FETCHED_BYTES;
		client->places[i].bytes = bytes;
		client->buffers[i].bytes = 0;
		if (bytes == 0)
			continue;
		client->places[i].begin = place_of(client->node->channel, op);
		if (op->buffer != NULL)
			client->buffers[i] = (CostMemory){op->buffer, bytes};
	}
}

static void
fetch_all(const CostMemory *memory, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		fetch_bytes(memory[i].begin, memory[i].bytes);
}

/* The chain is about to come to the card. */
static void
fetch_chain(const void *argument)
{
	const CostClient *client = argument;

	fetch_bytes(client->ops, (uint32_t) client->count * sizeof(FabricOp));
	fetch_all(client->places, COST_NOTED_OPERATIONS);
	fetch_all(client->buffers, COST_NOTED_OPERATIONS);
}

/* The client is about to go on. */
static void
fetch_client(const void *argument)
{
	const CostClient *client = argument;

	coroutine_fetch(client->waiter);
	fetch_bytes(&client->endpoint->counters, FETCH_LINE_BYTES);
	fetch_all(client->handles, client->handle_count);
	fetch_all(client->buffers, COST_NOTED_OPERATIONS);
}

/* An event: the client knows. */
static void
complete(void *argument, uint64_t number)
{
	const CostClient *client = argument;

	(void) number;
	coroutine_resume(client->waiter);
}

/* Serves operations as long as they are due soon. True: all are; else the event follows, with 1, when the last one is due. */
static bool
serve(CostClient *client, CostCard *card, SchedulerEvent event, void *argument)
{
	while (client->next < client->count)
	{
		FabricOp *op = &client->ops[client->next];
		uint64_t time = cost_serve(card, &model.options.placement, now(), op, &client->flight);

		client->next++;
		if (time > now() + SOON)
		{
			scheduler_after(until(time), event, argument, 1);
			return false;
		}
		apply(client->node->channel, op);
	}
	return true;
}

/* An event: the chain has come to the card, or (late) the operation before `next` takes effect. */
static void
go_on(void *argument, uint64_t late)
{
	CostClient *client = argument;
	CostCard *card = &model.cards[client->node->host];

	if (late)
		apply(client->node->channel, &client->ops[client->next - 1]);
	else
		cost_arrive(card, now(), &client->flight);
	if (serve(client, card, go_on, client))
		scheduler_after_fetch(until(cost_answer(card, &model.cards[client->host], now(), &client->flight)),
		                      complete, fetch_client, client, 0);
}

static FabricStatus
cost_execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	const CostPort *port = endpoint->state;
	CostClient *client = port->client;
	uint64_t read_bytes = 0;
	uint64_t sent;

	if (client->node != NULL)
		abort();
	client->node = port->node;
	client->endpoint = endpoint;
	client->waiter = coroutine_current();
	client->ops = ops;
	client->count = count;
	client->next = 0;
	client->flight = (CostFlight){0};
	sent = cost_send(&model.cards[client->host], now(), client->debt * PICOSECONDS_PER_NS, ops, count,
	                 &client->flight);
	client->debt = 0;
	note_chain(client);
	scheduler_after_fetch(until(sent), go_on, fetch_chain, client, 0);
	coroutine_suspend();
	client->node = NULL;
	for (int i = 0; i < count; i++)
		if (ops[i].opcode == FABRIC_READ)
			read_bytes += ops[i].length;
	client->debt = read_bytes * cost_parameters.check_byte / PICOSECONDS_PER_NS;
	return FABRIC_OK;
}

/* ---- chains that are posted ---- */

static CostPosted *
posted_of(const CostPort *port, uint64_t ticket)
{
	return &port->posted[ticket % TRANSPORT_TICKETS];
}

/* An event: the client may know. */
static void
posted_ends(void *argument, uint64_t number)
{
	CostPosted *posted = argument;

	(void) number;
	posted->ended = true;
	if (posted->chain.waiter != NULL)
		coroutine_resume(posted->chain.waiter);
}

static void posted_go_on(void *argument, uint64_t late);

/* Serves the chain whose turn it is, and those that have come behind it. */
static void
port_serve(CostPort *port)
{
	CostCard *card = &model.cards[port->node->host];
	CostCard *home = &model.cards[port->client->host];

	while (port->unserved > 0 && posted_of(port, port->turn)->arrived)
	{
		CostPosted *posted = posted_of(port, port->turn);

		if (!serve(&posted->chain, card, posted_go_on, posted))
			return;
		scheduler_after(until(cost_answer(card, home, now(), &posted->chain.flight)), posted_ends, posted, 0);
		port->unserved--;
		port->turn++;
	}
}

/* An event: as go_on(). */
static void
posted_go_on(void *argument, uint64_t late)
{
	CostPosted *posted = argument;
	CostClient *chain = &posted->chain;

	if (late)
		apply(chain->node->channel, &chain->ops[chain->next - 1]);
	else
	{
		cost_arrive(&model.cards[chain->node->host], now(), &chain->flight);
		posted->arrived = true;
	}
	if (posted->ticket == posted->port->turn)
		port_serve(posted->port);
}

/* The processor's time for it comes in front of whatever the client does next. */
static FabricStatus
cost_post(FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t ticket)
{
	CostPort *port = endpoint->state;
	CostClient *client = port->client;
	CostPosted *posted = posted_of(port, ticket);
	uint64_t sent;

	*posted = (CostPosted){.chain = {.host = client->host, .node = port->node, .ops = ops, .count = count},
	                       .port = port,
	                       .ticket = ticket};
	if (port->unserved++ == 0)
		port->turn = ticket;
	sent = cost_send(&model.cards[client->host], now(), client->debt * PICOSECONDS_PER_NS, ops, count,
	                 &posted->chain.flight);
	client->debt += cost_parameters.post / PICOSECONDS_PER_NS;
	scheduler_after(until(sent), posted_go_on, posted, 0);
	return FABRIC_OK;
}

/* What the processor has done since goes on while the chain is waited for. */
static FabricStatus
cost_wait(FabricEndpoint *endpoint, uint64_t ticket)
{
	const CostPort *port = endpoint->state;
	CostClient *client = port->client;
	CostPosted *posted = posted_of(port, ticket);
	uint64_t began = scheduler_now();
	uint64_t read_bytes = 0, waited;

	posted->chain.waiter = coroutine_current();
	while (!posted->ended)
		coroutine_suspend();
	waited = scheduler_now() - began;
	client->debt -= client->debt < waited ? client->debt : waited;
	for (int i = 0; i < posted->chain.count; i++)
		if (posted->chain.ops[i].opcode == FABRIC_READ)
			read_bytes += posted->chain.ops[i].length;
	client->debt += read_bytes * cost_parameters.check_byte / PICOSECONDS_PER_NS;
	return FABRIC_OK;
}

static bool
cost_ended(FabricEndpoint *endpoint, uint64_t ticket)
{
	return posted_of(endpoint->state, ticket)->ended;
}

/* ---- connections ---- */

static const FabricTransport posting_transport;

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
	if (model.options.posts)
	{
		port->posted = calloc(TRANSPORT_TICKETS, sizeof(CostPosted));
		if (port->posted == NULL)
		{
			free(port);
			return FABRIC_NO_MEMORY;
		}
		endpoint->transport = &posting_transport;
	}
	/* Its first line is what chains read. */
	if (number < FETCHED_NODES)
		cost_client_handle(port->client, endpoint, FETCH_LINE_BYTES);
	endpoint->state = port;
	endpoint->capabilities = port->node->carrier->capabilities;
	endpoint->capabilities.one_packet = cost_parameters.packet_payload;
	endpoint->channel = port->node->carrier->channel;
	return FABRIC_OK;
}

static void
cost_disconnect(FabricEndpoint *endpoint)
{
	free(((CostPort *) endpoint->state)->posted);
	free(endpoint->state);
	endpoint->state = NULL;
}

/* ---- calls ---- */

/* Where a call that the model knows has come to. */
typedef enum CallStage
{
	CALL_ARRIVES,
	CALL_IS_ANSWERED,
	CALL_IS_PROCESSED,
	CALL_RETURNS
} CallStage;

/* An event: the next stage of the port's call. It takes effect when a processor sees it, and the processor's time comes behind. */
static void
call_go_on(void *argument, uint64_t stage)
{
	CostPort *port = argument;
	CostCall *call = &port->call;
	CostCard *host = &model.cards[port->node->host];
	CostClient *client = port->client;
	uint64_t time = 0;
	uint32_t touched = 0;

	switch ((CallStage) stage)
	{
		case CALL_ARRIVES:
			time = cost_received(host, now(), call->request_bytes, &client->flight);
			break;
		case CALL_IS_ANSWERED:
			call->status =
				port->node->service.answer(port->node->service.argument, call->request, call->request_bytes,
			                               call->reply, &call->reply_bytes, &touched);
			time = cost_process(host, now(), touched);
			break;
		case CALL_IS_PROCESSED:
			client->flight = (CostFlight){0};
			time = cost_message(host, now(), 0, call->reply_bytes, &client->flight);
			break;
		case CALL_RETURNS:
			time = cost_received(&model.cards[client->host], now(), call->reply_bytes, &client->flight);
			scheduler_after(until(time), complete, client, 0);
			return;
	}
	scheduler_after(until(time), call_go_on, port, stage + 1);
}

/* A call that the model knows: a message each way, and the memory node's processors. */
static FabricStatus
call_in_model(CostPort *port, const CostCall *call, uint32_t *reply_bytes)
{
	CostClient *client = port->client;
	uint64_t sent;

	client->waiter = coroutine_current();
	port->call = *call;
	client->flight = (CostFlight){0};
	sent = cost_message(&model.cards[client->host], now(), client->debt * PICOSECONDS_PER_NS,
	                    call->request_bytes, &client->flight);
	scheduler_after(until(sent), call_go_on, port, CALL_ARRIVES);
	coroutine_suspend();
	client->debt = port->call.reply_bytes * cost_parameters.check_byte / PICOSECONDS_PER_NS;
	*reply_bytes = port->call.reply_bytes;
	return port->call.status;
}

/* The carrier takes one call at a time. */
static FabricStatus
cost_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes, void *reply,
          uint32_t *reply_bytes)
{
	CostPort *port = endpoint->state;
	CostNode *node = port->node;
	FabricStatus status;

	if (method != 0 && method == node->service.method)
		return call_in_model(port,
		                     &(CostCall){.request = request, .request_bytes = request_bytes, .reply = reply},
		                     reply_bytes);
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

static const FabricTransport posting_transport = {
	.name = "cost",
	.connect = cost_connect,
	.disconnect = cost_disconnect,
	.execute = cost_execute,
	.post = cost_post,
	.wait = cost_wait,
	.ended = cost_ended,
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
cost_node(uint32_t node, uint32_t host, FabricEndpoint *carrier, const CostService *service)
{
	if (node >= COST_NODES || host >= model.options.hosts)
		abort();
	model.nodes[node] =
		(CostNode){.carrier = carrier, .channel = shm_channel(carrier), .host = host, .service = *service};
}

void
cost_client_begin(CostClient *client)
{
	model.connecting = client;
}

void
cost_client_handle(CostClient *client, const void *handle, uint32_t bytes)
{
	if (client->handle_count < COST_NOTED_HANDLES)
		client->handles[client->handle_count++] = (CostMemory){handle, bytes};
}

const CostCard *
cost_card(uint32_t host)
{
	return &model.cards[host];
}
