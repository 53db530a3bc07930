/*
 * transport.c
 *		The transport "sim".  See simulator.h.
 *
 * Connecting and calls are those of shm: the memory node is the real one, in a coroutine of its own.  A chain
 * goes into the queue of its endpoint, which takes a step at a time: a *part* of an operation (a READ, an
 * atomic, one packet of a WRITE) begins, some of its lines (or words) are read or placed, it ends.  Between
 * two steps others take theirs.
 *
 * A queue ends as a channel of shm does: its record is busy while a part that changes something is under way,
 * and no part begins once the memory node has killed the channel (channel.c).  So a packet lands whole or not
 * at all, and nothing lands after a reset. As with a device, nobody knows which WRITE of a dead queue was in
 * progress: through_device says so to the service.
 */
#include <stdlib.h>
#include <string.h>

#include "../rdma/shm.h"
#include "explorer.h"
#include "simulator.h"

#define LINE_BYTES 64u
#define WORD_BYTES 8u
/* Units of an operation that are read or placed at once: lines, or words. */
#define UNITS_MAX (FABRIC_STRIPE_BYTES / WORD_BYTES)
#define CHAINS_OUTSTANDING 16u

/* A ticket of a chain that was not posted by fabric_post(). */
#define SINGLE_TICKET (1ull << 63)

/* Without an adversary: half a round trip, and an operation behind another one. */
#define CALM_TRAVEL_NANOSECONDS 900u
#define CALM_STEP_NANOSECONDS 100u

/*
 * How long a step takes, in nanoseconds at most, by percent of the steps: mostly short, sometimes as long as
 * many others' chains.
 */
#define SHORT_PERCENT 60u
#define SHORT_NANOSECONDS 400u
#define MIDDLE_PERCENT 36u
#define MIDDLE_NANOSECONDS 6000u
#define LONG_NANOSECONDS 120000u

/* Who waits for a chain looks that often whether it is to stop; and who waits for the way to be open. */
#define LOOK_NANOSECONDS 100000u
#define LONG_LOOK_NANOSECONDS 1000000u

/* One part in so many is read or placed at once. */
#define WHOLE_ONE_IN 3u

typedef struct SimChain
{
	struct SimChain *next;
	uint64_t ticket;
	uint32_t posted_in; /* step of an exploration */
	FabricOp *caller;   /* where results go */
	int count;
	int done;             /* operations that took effect */
	int lost_behind;      /* the channel is lost when so many took effect; -1: it is not */
	uint32_t lost_offset; /* ... and so many bytes of the next one: whole packets */
	bool lands_late;      /* ... or is said to be, and the rest takes effect all the same */
	bool ended;           /* the client may know */
	bool abandoned;       /* the client has it back */
	FabricStatus status;
	FabricOp ops[FABRIC_MAX_CHAIN]; /* with buffers of their own, in `data` */
	uint64_t data[];
} SimChain;

typedef struct SimQueue
{
	struct SimQueue *next;
	FabricEndpoint *endpoint; /* NULL: it has another queue by now, or is gone */
	ApplyChannel channel;
	uint32_t actor;   /* of an exploration; the next one is for completions */
	bool delivers;    /* a completion is offered */
	ApplyRun run;     /* says whether the record is busy */
	SimChain *chains; /* that were not given back, in order */
	bool moving;      /* a step is due */
	bool held;        /* no part begins */
	bool broken;      /* nothing takes effect any more */
	uint64_t delivered;
	uint64_t to_cut;   /* until then nothing of its client arrives at the memory node */
	uint64_t from_cut; /* ... and nothing of the memory node at its client */
	Coroutine *waiter;
	/* The part that is under way. */
	uint32_t part_offset; /* in the operation's bytes */
	uint32_t part_bytes;
	uint32_t units_left;
	uint16_t units[UNITS_MAX];
} SimQueue;

typedef struct Simulator
{
	SimulatorOptions options;
	SimQueue *queues;
	uint64_t steps;
	uint64_t tickets; /* of chains that were executed, not posted */
} Simulator;

static Simulator simulator;

/* ---- time ---- */

static uint64_t
random_delay(void)
{
	uint64_t percent = scheduler_random(100);

	if (percent < SHORT_PERCENT)
		return 1 + scheduler_random(SHORT_NANOSECONDS);
	if (percent < SHORT_PERCENT + MIDDLE_PERCENT)
		return 1 + scheduler_random(MIDDLE_NANOSECONDS);
	return 1 + scheduler_random(LONG_NANOSECONDS);
}

static uint64_t
delay(uint64_t calm)
{
	return simulator.options.adversarial ? random_delay() : calm;
}

/* Whole WRITEs are one packet each. */
static uint32_t
packet_bytes(void)
{
	return simulator.options.operation_atomic ? FABRIC_STRIPE_BYTES : simulator.options.packet_bytes;
}

static uint32_t
unit_bytes(void)
{
	return simulator.options.tear_words ? WORD_BYTES : LINE_BYTES;
}

/* ---- queues ---- */

static SimQueue *
queue_of(const FabricEndpoint *endpoint)
{
	SimQueue *queue = simulator.queues;

	while (queue != NULL && queue->endpoint != endpoint)
		queue = queue->next;
	return queue;
}

static void queue_step(void *argument, uint64_t number);

/* The first chain that has not taken effect. */
static SimChain *
queue_first(const SimQueue *queue)
{
	SimChain *chain = queue->chains;

	while (chain != NULL && chain->done == chain->count)
		chain = chain->next;
	return chain;
}

static void
queue_move(SimQueue *queue, uint64_t nanoseconds)
{
	if (queue->moving || queue->broken)
		return;
	queue->moving = true;
	if (explorer_is_on())
		explorer_offer(queue->actor, queue_step, queue, 0, queue_first(queue)->posted_in);
	else
		scheduler_after(nanoseconds, queue_step, queue, 0);
}

static SimChain *
queue_find(const SimQueue *queue, uint64_t ticket)
{
	SimChain *chain = queue->chains;

	while (chain != NULL && chain->ticket != ticket)
		chain = chain->next;
	return chain;
}

static void
chain_remove(SimQueue *queue, SimChain *removed)
{
	SimChain **link = &queue->chains;

	while (*link != removed)
		link = &(*link)->next;
	*link = removed->next;
	free(removed);
}

static void
chain_end(SimQueue *queue, SimChain *chain, FabricStatus status)
{
	if (chain->ended)
		return;
	chain->ended = true;
	chain->status = status;
	if (queue->waiter == NULL)
		return;
	explorer_access_client(queue->actor / EXPLORER_ACTORS);
	coroutine_wake(queue->waiter);
}

/* A chain's completion arrives. */
static void
deliver(void *argument, uint64_t ticket)
{
	SimQueue *queue = argument;
	SimChain *chain = queue_find(queue, ticket);

	/* Those that wait for the same moment stay in order. */
	if (scheduler_now() < queue->from_cut)
		scheduler_after(queue->from_cut - scheduler_now(), deliver, queue, ticket);
	else if (chain != NULL)
		chain_end(queue, chain, FABRIC_OK);
}

/* The first chain that has taken effect and whose client does not know. */
static const SimChain *
queue_completed(const SimQueue *queue)
{
	const SimChain *chain = queue->chains;

	while (chain != NULL && (chain->ended || chain->done < chain->count))
		chain = chain->next;
	return chain;
}

static void deliver_next(void *argument, uint64_t number);

static void
offer_delivery(SimQueue *queue)
{
	if (queue->delivers || queue_completed(queue) == NULL)
		return;
	queue->delivers = true;
	explorer_offer(queue->actor + 1, deliver_next, queue, 0, EXPLORER_NO_STEP);
}

/* A step of an exploration: the next completion arrives. */
static void
deliver_next(void *argument, uint64_t number)
{
	SimQueue *queue = argument;
	const SimChain *chain = queue_completed(queue);

	(void) number;
	queue->delivers = false;
	explorer_access_client(queue->actor / EXPLORER_ACTORS);
	explorer_access(EXPLORER_QUEUE, queue->actor, queue->actor + 1, EXPLORER_WRITE);
	if (chain != NULL)
		deliver(queue, chain->ticket);
	offer_delivery(queue);
}

/* Nothing takes effect any more; its clients learn why. No part is under way. */
static void
queue_break(SimQueue *queue, FabricStatus status)
{
	queue->broken = true;
	queue->part_bytes = 0;
	for (SimChain *chain = queue->chains; chain != NULL; chain = chain->next)
		chain_end(queue, chain, status);
}

/* What a client learns of a channel that the memory node has killed. */
static FabricStatus
killed_status(const SimQueue *queue)
{
	const FabricCapabilities *capabilities;

	if (queue->endpoint == NULL)
		return FABRIC_LOST;
	capabilities = &queue->endpoint->capabilities;
	return queue->channel.memory->instances[capabilities->instance - 1].incarnation ==
	               capabilities->incarnation
	           ? FABRIC_LOST
	           : FABRIC_FENCED;
}

/* ---- parts ---- */

static uint64_t *
words_at(const SimQueue *queue, const FabricOp *op)
{
	return op->region == FABRIC_LOCKS ? &queue->channel.locks[op->offset / 8]
	                                  : apply_node(&queue->channel, op->offset);
}

/* The part's units, from the last one in `units` on: in any order. */
static void
order_units(SimQueue *queue, const FabricOp *op)
{
	uint64_t first = (op->offset + queue->part_offset) / unit_bytes();
	uint64_t last = (op->offset + queue->part_offset + queue->part_bytes - 1) / unit_bytes();
	bool shuffled = simulator.options.adversarial;

	queue->units_left = (uint32_t) (last - first + 1);
	for (uint32_t i = 0; i < queue->units_left; i++)
	{
		uint32_t place = shuffled ? (uint32_t) scheduler_random(i + 1) : i;

		queue->units[i] = queue->units[place];
		queue->units[place] = (uint16_t) (queue->units_left - 1 - i);
	}
}

/* Begins the next part of the operation. False: the channel is dead, or may not do it. */
static bool
part_begin(SimQueue *queue, const FabricOp *op)
{
	uint32_t left = op->length - queue->part_offset;
	uint32_t packet = packet_bytes();

	queue->part_bytes = op->opcode == FABRIC_WRITE && left > packet ? packet : left;
	if (op->opcode == FABRIC_READ)
	{
		if (!apply_is_live(&queue->channel, __ATOMIC_SEQ_CST))
			return false;
	}
	else if ((op->region == FABRIC_NODES && !apply_may_touch(&queue->channel, op->offset)) ||
	         !apply_become_active(&queue->channel, &queue->run))
		return false;
	order_units(queue, op);
	return true;
}

/* Reads or places one unit of the part: the words of it that the part has. */
static void
unit_copy(const SimQueue *queue, const FabricOp *op, uint32_t unit)
{
	uint64_t begin = op->offset + queue->part_offset;
	uint64_t end = begin + queue->part_bytes;
	uint64_t from = (begin / unit_bytes() + unit) * unit_bytes();
	uint64_t to = from + unit_bytes() < end ? from + unit_bytes() : end;
	uint64_t *memory = words_at(queue, op);
	uint64_t *buffer = op->buffer;
	bool touch = op->region == FABRIC_LOCKS || apply_may_touch(&queue->channel, op->offset);

	for (uint64_t at = from < begin ? begin : from; at < to; at += 8)
	{
		uint64_t word = (at - op->offset) / 8;

		if (op->opcode == FABRIC_WRITE)
			__atomic_store_n(&memory[word], buffer[word], __ATOMIC_RELAXED);
		else
			buffer[word] = touch ? __atomic_load_n(&memory[word], __ATOMIC_RELAXED) : 0;
	}
}

/* Tells what the part does. */
static void
tell_access(const SimQueue *queue, const FabricOp *op, bool changes)
{
	uint64_t space =
		queue->channel.memory->header->node_uuid[0] / EXPLORER_REGIONS * EXPLORER_REGIONS + EXPLORER_REGIONS;
	uint64_t from = op->offset + queue->part_offset;

	explorer_access(EXPLORER_QUEUE, queue->actor, queue->actor + 1, EXPLORER_WRITE);
	explorer_access(space + op->region, from, from + queue->part_bytes,
	                changes ? EXPLORER_WRITE : EXPLORER_READ);
}

static void
atomic_go_on(SimQueue *queue, FabricOp *op)
{
	const uint64_t *word = words_at(queue, op);
	uint64_t before = *word;

	apply_atomic(&queue->channel, op);
	scheduler_note(op->result);
	tell_access(queue, op, *word != before);
	queue->units_left = 0;
}

/* Does some of the part that is under way, or all that is left of it. */
static void
part_go_on(SimQueue *queue, FabricOp *op, bool all)
{
	uint32_t units = queue->units_left;

	if (op->opcode != FABRIC_READ && op->opcode != FABRIC_WRITE)
	{
		atomic_go_on(queue, op);
		return;
	}
	tell_access(queue, op, op->opcode == FABRIC_WRITE);
	if (!all && simulator.options.adversarial && !simulator.options.operation_atomic &&
	    scheduler_random(WHOLE_ONE_IN) != 0)
		units = 1 + (uint32_t) scheduler_random(units);
	for (; units > 0; units--)
		unit_copy(queue, op, queue->units[--queue->units_left]);
}

/* The part is through: so may be its operation, and the record is not busy with it any more. */
static void
part_end(SimQueue *queue, SimChain *chain)
{
	if (simulator.options.trace != NULL)
		simulator.options.trace(queue->channel.memory->header->node_uuid[0], queue->channel.channel,
		                        &chain->ops[chain->done], queue->part_offset, queue->part_bytes);
	queue->run.next = queue->run.count;
	apply_leave(&queue->channel, &queue->run);
	queue->part_offset += queue->part_bytes;
	queue->part_bytes = 0;
	if (queue->part_offset < chain->ops[chain->done].length)
		return;
	queue->part_offset = 0;
	chain->done++;
}

/* Completions come in the order of the chains. */
static void
chain_complete(SimQueue *queue, const SimChain *chain)
{
	uint64_t now = scheduler_now();
	uint64_t time = now + delay(CALM_TRAVEL_NANOSECONDS);

	if (explorer_is_on())
	{
		offer_delivery(queue);
		return;
	}
	if (time <= queue->delivered)
		time = queue->delivered + 1;
	queue->delivered = time;
	scheduler_after(time - now, deliver, queue, chain->ticket);
}

/* Loses the channel, where that was drawn. True: it is gone. */
static bool
chain_lose(SimQueue *queue, SimChain *chain)
{
	if (chain->lost_behind != chain->done || queue->part_bytes != 0 ||
	    queue->part_offset < chain->lost_offset)
		return false;
	if (!chain->lands_late)
	{
		queue_break(queue, FABRIC_LOST);
		return true;
	}
	for (; chain != NULL; chain = chain->next)
		chain_end(queue, chain, FABRIC_LOST);
	return false;
}

/* An event: the queue takes a step. */
static void
queue_step(void *argument, uint64_t number)
{
	SimQueue *queue = argument;
	SimChain *chain = queue_first(queue);
	FabricOp *op;

	(void) number;
	queue->moving = false;
	if (queue->part_bytes == 0 && scheduler_now() < queue->to_cut)
	{
		queue_move(queue, queue->to_cut - scheduler_now() + delay(CALM_STEP_NANOSECONDS));
		return;
	}
	if (queue->broken || chain == NULL || (queue->held && queue->part_bytes == 0) || chain_lose(queue, chain))
		return;
	op = &chain->ops[chain->done];
	if (queue->part_bytes == 0 && !part_begin(queue, op))
	{
		queue_break(queue, killed_status(queue));
		return;
	}
	simulator.steps++;
	scheduler_note(scheduler_now() ^ (uint64_t) queue->channel.channel << 48 ^ op->offset << 8 ^ op->opcode);
	part_go_on(queue, op, false);
	if (queue->units_left == 0)
		part_end(queue, chain);
	if (chain->done == chain->count)
	{
		chain_complete(queue, chain);
		if (chain->abandoned)
			chain_remove(queue, chain);
	}
	if (queue_first(queue) != NULL)
		queue_move(queue, delay(CALM_STEP_NANOSECONDS));
}

/* The endpoint's channel, once it has one. */
static FabricStatus
queue_begin(FabricEndpoint *endpoint)
{
	FabricCapabilities *capabilities = &endpoint->capabilities;
	SimQueue *queue = calloc(1, sizeof(SimQueue));

	if (queue == NULL)
		return FABRIC_NO_MEMORY;
	queue->endpoint = endpoint;
	queue->channel = *shm_channel(endpoint);
	queue->actor = explorer_new_actor();
	queue->next = simulator.queues;
	simulator.queues = queue;
	queue->channel.memory->header->through_device = 1;
	capabilities->max_outstanding = CHAINS_OUTSTANDING;
	capabilities->one_packet = packet_bytes();
	if (!simulator.options.operation_atomic)
		capabilities->flags &= ~FABRIC_CAP_OPERATION_ATOMIC;
	if (simulator.options.tear_words)
		capabilities->flags &= ~FABRIC_CAP_LINE_ATOMIC;
	return FABRIC_OK;
}

/* What is under way comes to its end now. */
static void
part_finish(SimQueue *queue)
{
	SimChain *chain = queue_first(queue);

	if (queue->part_bytes == 0 || chain == NULL)
		return;
	part_go_on(queue, &chain->ops[chain->done], true);
	part_end(queue, chain);
}

/*
 * Its channel is dead, or its client is gone: what is under way comes to its end now, and nothing else does.
 */
static void
queue_end(SimQueue *queue)
{
	part_finish(queue);
	queue->broken = true;
	queue->endpoint = NULL;
	queue->waiter = NULL;
	while (queue->chains != NULL)
		chain_remove(queue, queue->chains);
}

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
		coroutine_sleep(delay(CALM_TRAVEL_NANOSECONDS));
	queue->held = true;
	while (queue->part_bytes != 0)
		coroutine_sleep(CALM_STEP_NANOSECONDS);
	status = shm_transport.reset(endpoint);
	queue->held = false;
	if (status == FABRIC_OK || status == FABRIC_FENCED)
		queue_end(queue);
	else if (queue_first(queue) != NULL)
		queue_move(queue, delay(CALM_STEP_NANOSECONDS));
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
		chain->lost_offset = (uint32_t) scheduler_random(op->length) / packet_bytes() * packet_bytes();
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
	queue_move(queue, delay(CALM_TRAVEL_NANOSECONDS));
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
		if (chain->ops[i].opcode == FABRIC_READ)
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
