/*
 * queue.c
 *		See queue.h.
 *
 * A step: a *part* of an operation (a READ, an atomic, one packet of a WRITE) begins, some of its lines (or words) are
 * read or placed, it ends.  Between two steps other queues take theirs.
 *
 * A queue ends as a channel of shm does: its record is busy while a part that changes something is under way, and no
 * part begins once the memory node has killed the channel (channel.c).  So a packet lands whole or not at all, and
 * nothing lands after a reset.  As with a device, nobody knows which WRITE of a dead queue was in progress:
 * through_device says so to the service.
 */
#include "queue.h"

#include <stdlib.h>

#include "accesses.h"
#include "explorer.h"

#define CHAINS_OUTSTANDING 16u

/*
 * How long a step takes, in nanoseconds at most, by percent of the steps: mostly short, sometimes as long as
 * many others' chains.
 */
#define SHORT_PERCENT 60u
#define SHORT_NANOSECONDS 400u
#define MIDDLE_PERCENT 36u
#define MIDDLE_NANOSECONDS 6000u
#define LONG_NANOSECONDS 120000u

/* One part in so many is read or placed at once. */
#define WHOLE_ONE_IN 3u

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

uint64_t
sim_delay(uint64_t calm)
{
	return simulator.options.adversarial ? random_delay() : calm;
}

uint32_t
sim_packet_bytes(void)
{
	return simulator.options.operation_atomic ? FABRIC_STRIPE_BYTES : simulator.options.packet_bytes;
}

static uint32_t
unit_bytes(void)
{
	return simulator.options.tear_words ? WORD_BYTES : LINE_BYTES;
}

/* ---- queues ---- */

SimQueue *
queue_of(const FabricEndpoint *endpoint)
{
	SimQueue *queue = simulator.queues;

	while (queue != NULL && queue->endpoint != endpoint)
		queue = queue->next;
	return queue;
}

static void queue_step(void *argument, uint64_t number);

SimChain *
queue_first(const SimQueue *queue)
{
	SimChain *chain = queue->chains;

	while (chain != NULL && chain->done == chain->count)
		chain = chain->next;
	return chain;
}

void
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

SimChain *
queue_find(const SimQueue *queue, uint64_t ticket)
{
	SimChain *chain = queue->chains;

	while (chain != NULL && chain->ticket != ticket)
		chain = chain->next;
	return chain;
}

void
chain_remove(SimQueue *queue, SimChain *removed)
{
	SimChain **link = &queue->chains;

	while (*link != removed)
		link = &(*link)->next;
	*link = removed->next;
	free(removed);
}

void
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

void
queue_break(SimQueue *queue, FabricStatus status)
{
	queue->broken = true;
	queue->part_bytes = 0;
	for (SimChain *chain = queue->chains; chain != NULL; chain = chain->next)
		chain_end(queue, chain, status);
}

FabricStatus
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
	uint32_t packet = sim_packet_bytes();

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

static void
report_access(const SimQueue *queue, const FabricOp *op, uint64_t from, uint64_t to, bool changes)
{
	uint64_t space =
		queue->channel.memory->header->node_uuid[0] / EXPLORER_REGIONS * EXPLORER_REGIONS + EXPLORER_REGIONS;

	explorer_access(space + op->region, op->offset + from, op->offset + to,
	                changes ? EXPLORER_WRITE : EXPLORER_READ);
}

/*
 * Tells what the part will do.  A word that a WRITE leaves as it is counts as read: others may find it so before or
 * behind it.
 */
static void
report_part(const SimQueue *queue, const FabricOp *op)
{
	const uint64_t *memory = words_at(queue, op), *buffer = op->buffer;
	uint64_t end = queue->part_offset + queue->part_bytes;
	uint64_t next;

	if (op->opcode == FABRIC_READ || simulator.options.coarse)
	{
		report_access(queue, op, queue->part_offset, end, op->opcode == FABRIC_WRITE);
		return;
	}
	for (uint64_t from = queue->part_offset; from < end; from = next)
	{
		bool changes = memory[from / 8] != buffer[from / 8];

		for (next = from + 8; next < end; next += 8)
			if (changes != (memory[next / 8] != buffer[next / 8]))
				break;
		report_access(queue, op, from, next, changes);
	}
}

/*
 * The swap before them has failed: the chain's READs are those of a node under its lock, which is not held.  Where the
 * code tells of its accesses it is made sure of that nobody looks at them (chain_give_back()), and so their moment is
 * nobody's.
 */
static void
atomic_go_on(SimQueue *queue, SimChain *chain, FabricOp *op)
{
	const uint64_t *word = words_at(queue, op);
	uint64_t before = *word;

	apply_atomic(&queue->channel, op);
	scheduler_note(op->result);
	report_access(queue, op, 0, sizeof(*word), *word != before);
	if (explorer_is_on() && !simulator.options.coarse && accesses_are_reported() &&
	    op->opcode == FABRIC_COMPARE_SWAP)
		chain->vain = op->result != op->compare;
	queue->units_left = 0;
}

/* Does some of the part that is under way, or all that is left of it. */
static void
part_go_on(SimQueue *queue, SimChain *chain, bool all)
{
	FabricOp *op = &chain->ops[chain->done];
	uint32_t units = queue->units_left;

	explorer_access(EXPLORER_QUEUE, queue->actor, queue->actor + 1, EXPLORER_WRITE);
	if (op->opcode != FABRIC_READ && op->opcode != FABRIC_WRITE)
	{
		atomic_go_on(queue, chain, op);
		return;
	}
	if (explorer_is_on() && !(chain->vain && op->opcode == FABRIC_READ))
		report_part(queue, op);
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
	uint64_t time = now + sim_delay(CALM_TRAVEL_NANOSECONDS);

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
		queue_move(queue, queue->to_cut - scheduler_now() + sim_delay(CALM_STEP_NANOSECONDS));
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
	part_go_on(queue, chain, false);
	if (queue->units_left == 0)
		part_end(queue, chain);
	if (chain->done == chain->count)
	{
		chain_complete(queue, chain);
		if (chain->abandoned)
			chain_remove(queue, chain);
	}
	if (queue_first(queue) != NULL)
		queue_move(queue, sim_delay(CALM_STEP_NANOSECONDS));
}

FabricStatus
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
	capabilities->one_packet = sim_packet_bytes();
	if (!simulator.options.operation_atomic)
		capabilities->flags &= ~FABRIC_CAP_OPERATION_ATOMIC;
	if (simulator.options.tear_words)
		capabilities->flags &= ~FABRIC_CAP_LINE_ATOMIC;
	return FABRIC_OK;
}

void
part_finish(SimQueue *queue)
{
	SimChain *chain = queue_first(queue);

	if (queue->part_bytes == 0 || chain == NULL)
		return;
	part_go_on(queue, chain, true);
	part_end(queue, chain);
}

void
queue_end(SimQueue *queue)
{
	part_finish(queue);
	queue->broken = true;
	queue->endpoint = NULL;
	queue->waiter = NULL;
	while (queue->chains != NULL)
		chain_remove(queue, queue->chains);
}
