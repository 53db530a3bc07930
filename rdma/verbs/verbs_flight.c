/*
 * verbs_flight.c
 *		Chains in flight on one queue pair.
 *
 * The caller's buffers are ordinary memory, so data pass through an arena that is registered once.  A chain takes a piece of
 * it, in the order of posting, and gives it back when its last request has completed: an RC queue pair completes in order.
 *
 * Order (contract 1): a queue pair starts requests in order and its peer executes them in order, but what a READ or an
 * atomic brings back may be late; so a WRITE behind one of them, and an atomic behind a READ, wait for it by a fence.
 *
 * What is lost on the wire the devices send again.  Two faults of soft-RoCE (Linux 6.1) in doing so are met here:
 * 1. A peer that sees a WRITE for the second time acknowledges all that it has executed, by the sequence number of the last one. If
 * that was an atomic whose own answer is lost, the sender takes it for complete, and its old word never comes (rxe_resp.c,
 * duplicate_request(); rxe_comp.c, check_ack()).  So a word stands where each result will be that no atomic brings, but by a
 * chance of 2^-64; a chain in which it still stands is indeterminate.
 * 2. A fence waits for all READs and atomics under way.  If the fenced request has to be sent again, these are also those behind it,
 * which wait for it (rxe_req.c, rxe_wqe_is_fenced()).  So only a device on a bus is given fences; for others the request is
 * posted when all before it have completed.
 */
#define _GNU_SOURCE 1
#include <string.h>
#include <sys/random.h>

#include "rdma/base/transport.h"
#include "rdma/verbs/verbs_flight.h"

_Static_assert(VERBS_MAX_POST >= FABRIC_MAX_CHAIN, "a chain's requests fit one post");

static VerbsChain *
chain_at(VerbsFlight *flight, uint64_t number)
{
	return &flight->chains[number & (VERBS_CHAINS - 1)];
}

static bool
is_atomic(uint8_t opcode)
{
	return opcode != FABRIC_READ && opcode != FABRIC_WRITE;
}

/* A READ may be torn inside a word on a device that copies by bytes: a lock word is read by an atomic. */
static bool
is_word_read(const FabricOp *op)
{
	return op->opcode == FABRIC_READ && op->region == FABRIC_LOCKS;
}

/* Through which window the channel reaches what the operation is about; NULL: through none. */
static const VerbsWindow *
find_window(const VerbsFlight *flight, const FabricOp *op)
{
	const VerbsWindow *windows = flight->grant.windows;

	if (op->region == FABRIC_LOCKS)
		return &windows[VERBS_LOCKS];
	for (int i = VERBS_PART; i <= VERBS_REDO; i++)
	{
		if (op->offset >= windows[i].first && op->offset < windows[i].end &&
		    op->length <= windows[i].end - op->offset)
			return &windows[i];
	}
	return NULL;
}

void
flight_clear(VerbsFlight *flight)
{
	flight->queue = NULL;
	flight->broken = FABRIC_LOST;
	memset(flight->chains, 0, sizeof(flight->chains));
	flight->next_chain = flight->next_posted = flight->first_flying = 1;
	flight->requests = flight->posted = flight->completed = 0;
	flight->arena_taken = flight->arena_next = 0;
	flight->reads_pending = flight->atomics_pending = false;
	/* Another one for each queue: should a word in memory be like it, a reset ends that. */
	if (getrandom(&flight->missing, sizeof(flight->missing), GRND_NONBLOCK) !=
	    (ssize_t) sizeof(flight->missing))
		flight->missing = fabric_now() * 0x9e3779b97f4a7c15ull;
}

/* ---- completions ---- */

/* Did all atomics of a completed chain bring a word? */
static bool
chain_is_whole(const VerbsFlight *flight, const VerbsChain *chain)
{
	const uint8_t *data = flight->arena + chain->start;

	for (int i = 0; i < chain->count; i++)
	{
		const FabricOp *op = &chain->ops[i];

		if ((is_atomic(op->opcode) || is_word_read(op)) &&
		    memcmp(data, &flight->missing, sizeof(flight->missing)) == 0)
			return false;
		data += op->length;
	}
	return true;
}

/* Gives the caller what a completed chain brought. */
static void
deliver_chain(const VerbsFlight *flight, const VerbsChain *chain)
{
	const uint8_t *data = flight->arena + chain->start;

	for (int i = 0; i < chain->count; i++)
	{
		FabricOp *op = &chain->ops[i];

		if (op->opcode == FABRIC_READ && find_window(flight, op) == NULL)
			memset(op->buffer, 0, op->length);
		else if (op->opcode == FABRIC_READ)
			memcpy(op->buffer, data, op->length);
		else if (op->opcode != FABRIC_WRITE)
			memcpy(&op->result, data, sizeof(op->result));
		data += op->length;
	}
}

/* Takes the oldest chain in flight out of it. */
static void
land_chain(VerbsFlight *flight, FabricStatus status)
{
	VerbsChain *chain = chain_at(flight, flight->first_flying++);

	if (status == FABRIC_OK)
		deliver_chain(flight, chain);
	chain->done = true;
	chain->status = status;
	flight->arena_taken -= chain->taken;
	if (flight->first_flying == flight->next_chain)
		flight->reads_pending = flight->atomics_pending = false;
}

void
flight_break(VerbsFlight *flight, FabricStatus status)
{
	flight->broken = status;
	while (flight->first_flying != flight->next_chain)
		land_chain(flight, status);
}

VerbsChain *
flight_find(VerbsFlight *flight, uint64_t ticket)
{
	for (uint32_t i = 0; i < VERBS_CHAINS; i++)
	{
		if (flight->chains[i].used && flight->chains[i].ticket == ticket)
			return &flight->chains[i];
	}
	return NULL;
}

/* ---- posting ---- */

/* A piece of the arena for a chain, in one: false if there is none now. */
static bool
take_arena(VerbsFlight *flight, uint32_t bytes, VerbsChain *chain)
{
	uint32_t skipped = 0;

	if (flight->arena_taken == 0)
		flight->arena_next = 0;
	if (flight->arena_bytes - flight->arena_next < bytes)
		skipped = flight->arena_bytes - flight->arena_next;
	if (flight->arena_taken + skipped + bytes > flight->arena_bytes)
		return false;
	chain->start = skipped > 0 ? 0 : flight->arena_next;
	chain->taken = skipped + bytes;
	flight->arena_next = chain->start + bytes;
	flight->arena_taken += chain->taken;
	return true;
}

/* Does the table of orderings (rdma.md) want a fence before this operation?  Notes what it leaves pending. */
static bool
needs_fence(VerbsFlight *flight, VerbsOpcode opcode)
{
	bool fence = false;

	if (opcode == VERBS_WRITE)
		fence = flight->reads_pending || flight->atomics_pending;
	else if (opcode != VERBS_READ)
		fence = flight->reads_pending;
	if (fence)
		flight->reads_pending = flight->atomics_pending = false;
	if (opcode == VERBS_READ)
		flight->reads_pending = true;
	else if (opcode != VERBS_WRITE)
		flight->atomics_pending = true;
	return fence;
}

/* Makes the request for an operation, with its data at `data`. */
static VerbsRequest
make_request(VerbsFlight *flight, const FabricOp *op, uint8_t *data)
{
	static const VerbsOpcode opcodes[] = {
		[FABRIC_READ] = VERBS_READ,
		[FABRIC_WRITE] = VERBS_WRITE,
		[FABRIC_COMPARE_SWAP] = VERBS_COMPARE_SWAP,
		[FABRIC_FETCH_ADD] = VERBS_FETCH_ADD,
	};
	const VerbsWindow *window = find_window(flight, op);
	/* A READ of what is not ours brings no error and nothing: it goes to the redo slot, and is not looked at. */
	uint64_t offset = window == NULL ? 0 : op->offset - window->first;
	VerbsRequest request = {
		.opcode = opcodes[op->opcode],
		.length = op->length,
		.buffer = data,
		.local_key = flight->keys.local,
		.compare = op->compare,
		.operand = op->operand,
	};

	if (window == NULL)
		window = &flight->grant.windows[VERBS_REDO];
	request.remote_key = window->key;
	request.remote_address = window->base + offset;
	if (is_word_read(op))
	{
		request.opcode = VERBS_FETCH_ADD;
		request.operand = 0;
	}
	if (op->opcode == FABRIC_WRITE)
		memcpy(data, op->buffer, op->length);
	else if (request.opcode != VERBS_READ)
		memcpy(data, &flight->missing, sizeof(flight->missing));
	request.fence = needs_fence(flight, request.opcode);
	return request;
}

/* Makes the requests of a chain. */
static void
make_requests(VerbsFlight *flight, VerbsChain *chain, uint64_t *fences)
{
	uint8_t *data = flight->arena + chain->start;

	for (int i = 0; i < chain->count; i++)
	{
		chain->requests[i] = make_request(flight, &chain->ops[i], data);
		*fences += chain->requests[i].fence;
		data += chain->ops[i].length;
	}
}

/* How many requests of a chain may be posted now, from its request `first` on: 0 = that one has to wait. */
static int
postable(const VerbsFlight *flight, VerbsChain *chain, int first)
{
	int end = first;

	if (flight->device_fences)
		return chain->count - first;
	if (chain->requests[first].fence && flight->posted != flight->completed)
		return 0;
	chain->requests[first].fence = false;
	while (end < chain->count && !chain->requests[end].fence)
		end++;
	return end - first;
}

/* Posts what may be posted. False: the device takes nothing more. */
static bool
push_requests(VerbsFlight *flight)
{
	while (flight->next_posted != flight->next_chain)
	{
		VerbsChain *chain = chain_at(flight, flight->next_posted);
		int first = chain->count - (int) (chain->last - flight->posted);
		int count = postable(flight, chain, first);
		VerbsOutcome outcome;

		if (count == 0)
			return true;
		outcome = flight->driver->queue_post(flight->queue, &chain->requests[first], count,
		                                     flight->posted + (uint64_t) count);
		/* Room comes with completions, if there will be some. */
		if (outcome != VERBS_DONE)
			return outcome == VERBS_NONE && flight->posted != flight->completed;
		flight->posted += (uint64_t) count;
		if (flight->posted == chain->last)
			flight->next_posted++;
	}
	return true;
}

FabricStatus
flight_post(VerbsFlight *flight, FabricOp *ops, int count, uint64_t ticket, uint64_t *fences,
            VerbsChain **posted)
{
	VerbsChain *chain = chain_at(flight, flight->next_chain);
	uint32_t bytes = 0;

	if (flight->queue == NULL || flight->broken != FABRIC_OK)
		return FABRIC_LOST;
	for (int i = 0; i < count; i++)
	{
		if (ops[i].opcode != FABRIC_READ && find_window(flight, &ops[i]) == NULL)
			return FABRIC_RANGE;
		bytes += ops[i].length;
	}
	if (chain->used || !take_arena(flight, bytes, chain))
		return FABRIC_BUSY;
	chain->ticket = ticket;
	chain->ops = ops;
	chain->count = count;
	chain->used = true;
	chain->done = false;
	flight->requests += (uint64_t) count;
	chain->last = flight->requests;
	flight->next_chain++;
	make_requests(flight, chain, fences);
	if (!push_requests(flight))
	{
		flight_break(flight, FABRIC_LOST);
		chain->used = false;
		return FABRIC_LOST;
	}
	*posted = chain;
	return FABRIC_OK;
}

VerbsOutcome
flight_poll(VerbsFlight *flight, const char **reason)
{
	while (flight->first_flying != flight->next_chain)
	{
		VerbsOutcome outcome = flight->driver->queue_poll(flight->queue, &flight->completed, reason);

		if (outcome != VERBS_DONE)
			return outcome;
		while (flight->first_flying != flight->next_chain &&
		       chain_at(flight, flight->first_flying)->last <= flight->completed)
		{
			if (!chain_is_whole(flight, chain_at(flight, flight->first_flying)))
			{
				*reason = "the answer to an atomic operation is missing";
				return VERBS_LOST;
			}
			land_chain(flight, FABRIC_OK);
		}
		if (!push_requests(flight))
		{
			*reason = "the device takes no request";
			return VERBS_BROKEN;
		}
	}
	return VERBS_NONE;
}
