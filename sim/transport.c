/*
 * transport.c
 *		The transport "sim".  See simulator.h.
 *
 * Connecting and calls are those of shm: the memory node is the real one, in a coroutine of its own.  A chain goes into
 * the queue of its endpoint (queue.h), and its client waits for its end.
 */
#include <stdlib.h>
#include <string.h>

#include "accesses.h"
#include "explorer.h"
#include "queue.h"

/* A ticket of a chain that was not posted by fabric_post(). */
#define SINGLE_TICKET (1ull << 63)

/* Who waits for a chain looks that often whether it is to stop; and who waits for the way to be open. */
#define LOOK_NANOSECONDS 100000u
#define LONG_LOOK_NANOSECONDS 1000000u

Simulator simulator;

/* ---- the transport ---- */

static FabricStatus
sim_connect(FabricEndpoint *endpoint, const char *location)
{
	FabricStatus status = shm_transport.connect(endpoint, location);

	return status == FABRIC_OK && endpoint->data ? queue_begin(endpoint) : status;
}

static void
sim_disconnect(FabricEndpoint *endpoint)
{
	SimQueue *queue = queue_of(endpoint);

	if (queue != NULL)
		queue_end(queue);
	shm_transport.disconnect(endpoint);
}

/* A look at the client's wait hook. */
static bool
is_stopped(const FabricEndpoint *endpoint)
{
	return simulator.options.stops && fabric_sleep(endpoint->fabric, NULL, 0, 0) < 0;
}

/* Waits until the way is not cut any more, as long as a call may take. */
static FabricStatus
await_way(const FabricEndpoint *endpoint, const uint64_t *cut)
{
	uint64_t deadline = fabric_deadline(endpoint->fabric, FABRIC_WAIT_CALL);

	while (scheduler_now() < *cut)
	{
		if (is_stopped(endpoint))
			return FABRIC_STOPPED;
		if (fabric_now() >= deadline)
			return FABRIC_TIMED_OUT;
		coroutine_sleep(*cut - scheduler_now() < LONG_LOOK_NANOSECONDS ? *cut - scheduler_now()
		                                                               : LONG_LOOK_NANOSECONDS);
	}
	return FABRIC_OK;
}

/*
 * The old channel's chains go on for a while.  When the memory node is asked no part is under way, and none
 * begins: as it knows a client over shm is not inside a chain while it asks.
 */
static FabricStatus
sim_reset(FabricEndpoint *endpoint)
{
	SimQueue *queue = queue_of(endpoint);
	FabricStatus status;

	if (queue == NULL)
		return shm_transport.reset(endpoint);
	status = await_way(endpoint, &queue->to_cut);
	if (status != FABRIC_OK)
		return status;
	if (explorer_is_on())
		explorer_yield();
	else
		coroutine_sleep(sim_delay(CALM_TRAVEL_NANOSECONDS));
	queue->held = true;
	while (queue->part_bytes != 0)
		coroutine_sleep(CALM_STEP_NANOSECONDS);
	status = shm_transport.reset(endpoint);
	queue->held = false;
	if (status == FABRIC_OK || status == FABRIC_FENCED)
		queue_end(queue);
	else if (queue_first(queue) != NULL)
		queue_move(queue, sim_delay(CALM_STEP_NANOSECONDS));
	if (status == FABRIC_OK)
		status = queue_begin(endpoint);
	if (status != FABRIC_OK)
		return status;
	/* Its answer may be lost on the way back. */
	simulator.queues->to_cut = queue->to_cut;
	simulator.queues->from_cut = queue->from_cut;
	return await_way(endpoint, &queue->from_cut);
}

/* A copy of the chain, whose client has its buffers back whenever it gives up. */
static SimChain *
chain_make(FabricOp *ops, int count, uint64_t ticket)
{
	uint64_t words = 0;
	SimChain *chain;

	for (int i = 0; i < count; i++)
		words += ops[i].length / 8;
	chain = malloc(sizeof(SimChain) + words * sizeof(uint64_t));
	if (chain == NULL)
		return NULL;
	*chain = (SimChain){
		.ticket = ticket, .posted_in = explorer_step(), .caller = ops, .count = count, .lost_behind = -1};
	words = 0;
	for (int i = 0; i < count; i++)
	{
		chain->ops[i] = ops[i];
		chain->ops[i].buffer = &chain->data[words];
		if (ops[i].opcode == FABRIC_WRITE)
			memcpy(&chain->data[words], ops[i].buffer, ops[i].length);
		words += ops[i].length / 8;
	}
	return chain;
}

/* Draws where the chain loses its channel. */
static void
draw_loss(SimChain *chain)
{
	const FabricOp *op;

	chain->lands_late = scheduler_random(2) != 0;
	chain->lost_behind = (int) scheduler_random((uint64_t) chain->count);
	op = &chain->ops[chain->lost_behind];
	if (op->opcode == FABRIC_WRITE)
		chain->lost_offset =
			(uint32_t) scheduler_random(op->length) / sim_packet_bytes() * sim_packet_bytes();
}

static FabricStatus
sim_post(FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t ticket)
{
	SimQueue *queue = queue_of(endpoint);
	SimChain **link;
	SimChain *chain;

	if (queue == NULL)
		return FABRIC_LOST;
	for (int i = 0; i < count; i++)
		if (ops[i].opcode != FABRIC_READ && ops[i].region == FABRIC_NODES &&
		    !apply_may_touch(&queue->channel, ops[i].offset))
			return FABRIC_RANGE;
	chain = chain_make(ops, count, ticket);
	if (chain == NULL)
		return FABRIC_NO_MEMORY;
	if (simulator.options.lose_one_in != 0 && scheduler_random(simulator.options.lose_one_in) == 0)
		draw_loss(chain);
	for (link = &queue->chains; *link != NULL; link = &(*link)->next)
		;
	*link = chain;
	explorer_access(EXPLORER_QUEUE, queue->actor, queue->actor + 1, EXPLORER_WRITE);
	if (queue->broken)
		chain_end(queue, chain, killed_status(queue));
	queue_move(queue, sim_delay(CALM_TRAVEL_NANOSECONDS));
	return FABRIC_OK;
}

/* The chain is the client's again, with its results; `early`: why it does not wait any longer. */
static FabricStatus
chain_give_back(SimQueue *queue, SimChain *chain, FabricStatus early)
{
	FabricStatus status = chain->ended ? chain->status : early;

	for (int i = 0; status == FABRIC_OK && i < chain->count; i++)
	{
		chain->caller[i].result = chain->ops[i].result;
		if (chain->ops[i].opcode != FABRIC_READ)
			continue;
		if (chain->vain)
			accesses_forbid(chain->caller[i].buffer, chain->ops[i].length);
		else
			memcpy(chain->caller[i].buffer, chain->ops[i].buffer, chain->ops[i].length);
	}
	if (status == FABRIC_TIMED_OUT)
		fabric_set_detail(queue->endpoint->fabric, "a chain was not answered in time");
	else if (status == FABRIC_STOPPED)
		fabric_set_detail(queue->endpoint->fabric, "the wait for a chain was stopped");
	else if (status != FABRIC_OK)
		fabric_set_detail(queue->endpoint->fabric, "channel %u is gone", queue->channel.channel);
	/* What has not taken effect still may. */
	if (chain->done < chain->count && !queue->broken)
		chain->abandoned = true;
	else
		chain_remove(queue, chain);
	return status;
}

static FabricStatus
sim_wait(FabricEndpoint *endpoint, uint64_t ticket)
{
	SimQueue *queue = queue_of(endpoint);
	uint64_t deadline = fabric_deadline(endpoint->fabric, FABRIC_WAIT_CHAIN);
	SimChain *chain = queue == NULL ? NULL : queue_find(queue, ticket);
	bool stopped = false;

	if (chain == NULL)
		return FABRIC_LOST;
	queue->waiter = coroutine_current();
	while (!chain->ended && fabric_now() < deadline && !stopped)
	{
		uint64_t left = deadline - fabric_now();

		coroutine_wait(simulator.options.stops && left > LOOK_NANOSECONDS ? LOOK_NANOSECONDS : left);
		stopped = !chain->ended && is_stopped(endpoint);
	}
	queue->waiter = NULL;
	return chain_give_back(queue, chain, stopped ? FABRIC_STOPPED : FABRIC_TIMED_OUT);
}

static FabricStatus
sim_execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	/* Not one of those that fabric_post() gives. */
	uint64_t ticket = ++simulator.tickets | SINGLE_TICKET;
	FabricStatus status = sim_post(endpoint, ops, count, ticket);

	return status == FABRIC_OK ? sim_wait(endpoint, ticket) : status;
}

static bool
sim_ended(FabricEndpoint *endpoint, uint64_t ticket)
{
	const SimQueue *queue = queue_of(endpoint);
	const SimChain *chain = queue == NULL ? NULL : queue_find(queue, ticket);

	return chain == NULL || chain->ended;
}

static FabricStatus
sim_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes, void *reply,
         uint32_t *reply_bytes)
{
	const SimQueue *queue = queue_of(endpoint);
	FabricStatus status = queue == NULL ? FABRIC_OK : await_way(endpoint, &queue->to_cut);
	FabricStatus answered = FABRIC_OK;

	if (status != FABRIC_OK)
		return status;
	status = shm_transport.call(endpoint, method, request, request_bytes, reply, reply_bytes);
	if (queue != NULL)
		answered = await_way(endpoint, &queue->from_cut);
	return answered == FABRIC_OK ? status : answered;
}

static FabricStatus
sim_attach(FabricEndpoint *endpoint, bool resume, uint64_t launcher_nonce, uint32_t *instance,
           uint32_t *incarnation)
{
	return shm_transport.attach(endpoint, resume, launcher_nonce, instance, incarnation);
}

static bool
sim_is_draining(const FabricEndpoint *endpoint)
{
	return shm_transport.is_draining(endpoint);
}

const FabricTransport sim_transport = {
	.name = "sim",
	.connect = sim_connect,
	.disconnect = sim_disconnect,
	.execute = sim_execute,
	.post = sim_post,
	.wait = sim_wait,
	.ended = sim_ended,
	.call = sim_call,
	.attach = sim_attach,
	.reset = sim_reset,
	.is_draining = sim_is_draining,
};

/* ---- the simulation ---- */

void
simulator_open(const SimulatorOptions *options)
{
	simulator = (Simulator){.options = *options};
}

void
simulator_change(const SimulatorOptions *options)
{
	simulator.options = *options;
}

void
simulator_lose(uint32_t client, bool lands_late)
{
	for (SimQueue *queue = simulator.queues; queue != NULL; queue = queue->next)
	{
		if (queue->actor / EXPLORER_ACTORS != client || queue->endpoint == NULL || queue->broken)
			continue;
		explorer_access(EXPLORER_QUEUE, queue->actor, queue->actor + 1, EXPLORER_WRITE);
		if (!lands_late)
			queue_break(queue, FABRIC_LOST);
		for (SimChain *chain = queue->chains; chain != NULL; chain = chain->next)
			chain_end(queue, chain, FABRIC_LOST);
	}
}

void
simulator_cut(uint64_t nanoseconds, bool to, bool from)
{
	uint64_t until = scheduler_now() + nanoseconds;
	SimQueue *cut = NULL;
	uint64_t seen = 0;

	for (SimQueue *queue = simulator.queues; queue != NULL; queue = queue->next)
		if (queue->endpoint != NULL && scheduler_random(++seen) == 0)
			cut = queue;
	if (cut == NULL)
		return;
	cut->to_cut = to ? until : cut->to_cut;
	cut->from_cut = from ? until : cut->from_cut;
}

void
simulator_mend(void)
{
	for (SimQueue *queue = simulator.queues; queue != NULL; queue = queue->next)
		queue->to_cut = queue->from_cut = 0;
}

void
simulator_end_node(uint64_t node)
{
	for (SimQueue *queue = simulator.queues; queue != NULL; queue = queue->next)
	{
		if (queue->broken || queue->channel.memory->header->node_uuid[0] != node)
			continue;
		part_finish(queue);
		queue_break(queue, FABRIC_LOST);
	}
}

uint64_t
simulator_steps(void)
{
	return simulator.steps;
}

void
simulator_close(void)
{
	while (simulator.queues != NULL)
	{
		SimQueue *queue = simulator.queues;

		simulator.queues = queue->next;
		while (queue->chains != NULL)
			chain_remove(queue, queue->chains);
		free(queue);
	}
}
