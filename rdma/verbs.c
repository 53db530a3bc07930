/*
 * verbs.c
 *		The verbs transport: a chain is one list of linked work requests on an RC queue pair of the client's own.
 *
 * The caller's buffers are ordinary memory, so data pass through an arena that is registered once.  A chain takes a piece of
 * it, in the order of posting, and gives it back when its last request has completed: an RC queue pair completes in order.
 *
 * Order (contract 1): a queue pair starts requests in order and its peer executes them in order, but what a READ or an
 * atomic brings back may be late; so a WRITE behind one of them, and an atomic behind a READ, wait for it by a fence.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"
#include "verbs.h"

/* Chains posted and not yet waited for; a power of two. */
#define CHAINS 16u

/* Work requests in flight: what a small device has. */
#define QUEUE_DEPTH 512u

/* Four of the largest chains, or many small ones; well below the usual limit of locked memory, 8 MB. */
#define ARENA_BYTES (512u * 1024u)

typedef struct VerbsChain
{
	uint64_t ticket; /* fabric.c's; 0 = it is awaited by its number */
	bool used;       /* posted and not yet waited for */
	bool done;       /* completed, or given up with the queue */
	FabricStatus status;
	FabricOp *ops;
	int count;
	uint32_t start; /* of its data in the arena */
	uint32_t taken; /* bytes of the arena, with what was skipped at its end */
} VerbsChain;

typedef struct VerbsState
{
	Link link;
	char *location;
	bool fenced; /* the memory node said so */
	Spin spin;
	pid_t owner; /* a forked child has none of what follows */
	const VerbsDriver *driver;
	VerbsDevice *device;
	VerbsMemory *memory;
	VerbsMemoryKeys keys;
	uint8_t *arena;
	VerbsQueue *queue;
	VerbsGrant grant;
	FabricStatus broken;   /* what became of the queue; FABRIC_OK: it works */
	bool reads_pending;    /* READs are not fenced or known to be done */
	bool atomics_pending;  /* atomics are not */
	uint32_t requests;     /* in flight */
	uint32_t arena_next;   /* first free byte */
	uint32_t arena_taken;  /* bytes of chains in flight */
	uint64_t first_flying; /* number of the oldest chain that has not completed */
	uint64_t next_chain;   /* number of the next chain */
	VerbsChain chains[CHAINS];
} VerbsState;

static VerbsChain *
chain_at(VerbsState *verbs, uint64_t number)
{
	return &verbs->chains[number & (CHAINS - 1)];
}

/* ---- completions ---- */

/* Gives the caller what a completed chain brought. */
static void
deliver_chain(const VerbsState *verbs, const VerbsChain *chain)
{
	const uint8_t *data = verbs->arena + chain->start;

	for (int i = 0; i < chain->count; i++)
	{
		FabricOp *op = &chain->ops[i];

		if (op->opcode == FABRIC_READ)
			memcpy(op->buffer, data, op->length);
		else if (op->opcode != FABRIC_WRITE)
			memcpy(&op->result, data, sizeof(op->result));
		data += op->length;
	}
}

/* Takes the oldest chain in flight out of it. */
static void
land_chain(VerbsState *verbs, FabricStatus status)
{
	VerbsChain *chain = chain_at(verbs, verbs->first_flying++);

	if (status == FABRIC_OK)
		deliver_chain(verbs, chain);
	chain->done = true;
	chain->status = status;
	verbs->requests -= (uint32_t) chain->count;
	verbs->arena_taken -= chain->taken;
	if (verbs->first_flying == verbs->next_chain)
		verbs->reads_pending = verbs->atomics_pending = false;
}

/* The queue is of no more use: every chain in flight is in doubt. */
static void
break_queue(VerbsState *verbs, FabricStatus status)
{
	verbs->broken = status;
	while (verbs->first_flying != verbs->next_chain)
		land_chain(verbs, status);
}

/* What the memory node says unasked: how the next chain would end. */
static bool
take_notice(void *argument, const ControlFrame *frame, FabricStatus status, const uint8_t *data)
{
	VerbsState *verbs = argument;

	(void) data;
	verbs->fenced |= status == FABRIC_FENCED;
	return frame->request == 0;
}

/* The queue pair failed or the connection is closed: was this channel fenced? */
static FabricStatus
loss_or_fence(FabricEndpoint *endpoint, const char *reason)
{
	VerbsState *verbs = endpoint->state;

	if (verbs->link.stream != NULL)
		link_poll(&verbs->link);
	if (verbs->fenced)
	{
		fabric_set_detail(endpoint->fabric, "the memory node has closed channel %u",
		                  endpoint->capabilities.channel);
		return FABRIC_FENCED;
	}
	fabric_set_detail(endpoint->fabric, "the memory node is lost: %s", reason);
	return FABRIC_LOST;
}

/* Is the connection to the memory node as it should be?  Anything but FABRIC_OK ends all chains. */
static FabricStatus
look_at_link(FabricEndpoint *endpoint)
{
	VerbsState *verbs = endpoint->state;

	if (verbs->link.stream == NULL || link_poll(&verbs->link) != FABRIC_OK)
		return loss_or_fence(endpoint, "the connection is closed");
	return verbs->fenced ? loss_or_fence(endpoint, "") : FABRIC_OK;
}

/* Takes what has completed. */
static void
poll_queue(FabricEndpoint *endpoint)
{
	VerbsState *verbs = endpoint->state;

	while (verbs->first_flying != verbs->next_chain)
	{
		const char *reason = NULL;
		uint64_t id;
		VerbsOutcome outcome = verbs->driver->queue_poll(verbs->queue, &id, &reason);

		if (outcome == VERBS_NONE)
			return;
		if (outcome != VERBS_DONE)
		{
			break_queue(verbs, loss_or_fence(endpoint, reason));
			return;
		}
		while (verbs->first_flying <= id)
			land_chain(verbs, FABRIC_OK);
	}
}

/* Sleeps until a completion or the connection shows something.  Anything but FABRIC_OK ends the wait. */
static FabricStatus
sleep_for_completion(FabricEndpoint *endpoint, const VerbsChain *chain, uint64_t left)
{
	VerbsState *verbs = endpoint->state;
	int descriptors[2] = {verbs->driver->queue_descriptor(verbs->queue), -1};
	FabricStatus status;

	if (!verbs->driver->queue_arm(verbs->queue))
		return loss_or_fence(endpoint, "the completion queue is broken");
	/* What completed before it was armed wakes nobody. */
	poll_queue(endpoint);
	if (chain->done)
		return FABRIC_OK;
	status = look_at_link(endpoint);
	if (status != FABRIC_OK)
		return status;
	descriptors[1] = stream_descriptor(verbs->link.stream);
	return fabric_sleep(endpoint->fabric, descriptors, 2, (int) (left / 1000000) + 1) < 0 ? FABRIC_STOPPED
	                                                                                      : FABRIC_OK;
}

/* Waits for a chain's end and gives its place back. */
static FabricStatus
await_chain(FabricEndpoint *endpoint, VerbsChain *chain)
{
	VerbsState *verbs = endpoint->state;
	uint64_t deadline = 0;

	poll_queue(endpoint);
	while (!chain->done)
	{
		FabricStatus status = FABRIC_OK;
		uint64_t now;

		if (spin_again(&verbs->spin))
		{
			poll_queue(endpoint);
			continue;
		}
		now = fabric_now();
		if (deadline == 0)
			deadline = fabric_deadline(endpoint->fabric, FABRIC_WAIT_CHAIN);
		if (now >= deadline)
		{
			fabric_set_detail(endpoint->fabric, "no completion in time");
			status = FABRIC_TIMED_OUT;
		}
		else
			status = sleep_for_completion(endpoint, chain, deadline - now);
		if (status != FABRIC_OK && !chain->done)
			break_queue(verbs, status);
		poll_queue(endpoint);
	}
	spin_success(&verbs->spin);
	chain->used = false;
	return chain->status;
}

/* ---- posting ---- */

/* A piece of the arena for a chain, in one: false if there is none now. */
static bool
take_arena(VerbsState *verbs, uint32_t bytes, VerbsChain *chain)
{
	uint32_t skipped = 0;

	if (verbs->arena_taken == 0)
		verbs->arena_next = 0;
	if (ARENA_BYTES - verbs->arena_next < bytes)
		skipped = ARENA_BYTES - verbs->arena_next;
	if (verbs->arena_taken + skipped + bytes > ARENA_BYTES)
		return false;
	chain->start = skipped > 0 ? 0 : verbs->arena_next;
	chain->taken = skipped + bytes;
	verbs->arena_next = chain->start + bytes;
	verbs->arena_taken += chain->taken;
	return true;
}

/* Does the table of orderings (rdma.md) want a fence before this operation?  Notes what it leaves pending. */
static bool
needs_fence(VerbsState *verbs, VerbsOpcode opcode)
{
	bool fence = false;

	if (opcode == VERBS_WRITE)
		fence = verbs->reads_pending || verbs->atomics_pending;
	else if (opcode != VERBS_READ)
		fence = verbs->reads_pending;
	if (fence)
		verbs->reads_pending = verbs->atomics_pending = false;
	if (opcode == VERBS_READ)
		verbs->reads_pending = true;
	else if (opcode != VERBS_WRITE)
		verbs->atomics_pending = true;
	return fence;
}

/* Makes the request for an operation, with its data at `data`. */
static VerbsRequest
make_request(VerbsState *verbs, const FabricOp *op, uint8_t *data)
{
	static const VerbsOpcode opcodes[] = {
		[FABRIC_READ] = VERBS_READ,
		[FABRIC_WRITE] = VERBS_WRITE,
		[FABRIC_COMPARE_SWAP] = VERBS_COMPARE_SWAP,
		[FABRIC_FETCH_ADD] = VERBS_FETCH_ADD,
	};
	VerbsRequest request = {
		.opcode = opcodes[op->opcode],
		.length = op->length,
		.buffer = data,
		.local_key = verbs->keys.local,
		.remote_key = verbs->grant.key[op->region],
		.remote_address = verbs->grant.base[op->region] + op->offset,
		.compare = op->compare,
		.operand = op->operand,
	};

	/* A READ may be torn inside a word on a device that copies by bytes: a lock word is read by an atomic. */
	if (op->opcode == FABRIC_READ && op->region == FABRIC_LOCKS)
	{
		request.opcode = VERBS_FETCH_ADD;
		request.operand = 0;
	}
	if (op->opcode == FABRIC_WRITE)
		memcpy(data, op->buffer, op->length);
	request.fence = needs_fence(verbs, request.opcode);
	return request;
}

/* Posts a chain; *chain is its place. */
static FabricStatus
post_chain(FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t ticket, VerbsChain **posted)
{
	VerbsState *verbs = endpoint->state;
	VerbsRequest requests[VERBS_MAX_POST];
	VerbsChain *chain = chain_at(verbs, verbs->next_chain);
	VerbsOutcome outcome;
	uint32_t bytes = 0;
	uint64_t fences = 0;
	uint8_t *data;

	if (verbs->queue == NULL || verbs->broken != FABRIC_OK)
		return FABRIC_LOST;
	for (int i = 0; i < count; i++)
		bytes += ops[i].length;
	if (chain->used || verbs->requests + (uint32_t) count > QUEUE_DEPTH || !take_arena(verbs, bytes, chain))
		return FABRIC_BUSY;
	data = verbs->arena + chain->start;
	for (int i = 0; i < count; i++)
	{
		requests[i] = make_request(verbs, &ops[i], data);
		fences += requests[i].fence;
		data += ops[i].length;
	}
	outcome = verbs->driver->queue_post(verbs->queue, requests, count, verbs->next_chain);
	if (outcome != VERBS_DONE)
	{
		verbs->arena_taken -= chain->taken;
		/* With nothing in flight there is nothing to wait for: the queue takes no more at all. */
		if (outcome == VERBS_NONE && verbs->first_flying != verbs->next_chain)
			return FABRIC_BUSY;
		fabric_set_detail(endpoint->fabric, "the device takes no request");
		break_queue(verbs, FABRIC_LOST);
		return FABRIC_LOST;
	}
	chain->ticket = ticket;
	chain->used = true;
	chain->done = false;
	chain->ops = ops;
	chain->count = count;
	verbs->requests += (uint32_t) count;
	verbs->next_chain++;
	endpoint->counters.fences += fences;
	*posted = chain;
	return FABRIC_OK;
}

static FabricStatus
verbs_post(FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t ticket)
{
	VerbsChain *chain;

	return post_chain(endpoint, ops, count, ticket, &chain);
}

/* The posted chain with this ticket, or NULL: a reset has forgotten it. */
static VerbsChain *
find_chain(VerbsState *verbs, uint64_t ticket)
{
	for (uint32_t i = 0; i < CHAINS; i++)
	{
		if (verbs->chains[i].used && verbs->chains[i].ticket == ticket)
			return &verbs->chains[i];
	}
	return NULL;
}

static FabricStatus
verbs_wait(FabricEndpoint *endpoint, uint64_t ticket)
{
	VerbsChain *chain = find_chain(endpoint->state, ticket);

	return chain == NULL ? FABRIC_LOST : await_chain(endpoint, chain);
}

static bool
verbs_ended(FabricEndpoint *endpoint, uint64_t ticket)
{
	VerbsState *verbs = endpoint->state;
	VerbsChain *chain = find_chain(verbs, ticket);

	poll_queue(endpoint);
	if (chain == NULL || chain->done)
		return true;
	/* The descriptor is to wake whoever sleeps on it: then the queue is armed, and polled once more. */
	if (!verbs->driver->queue_arm(verbs->queue))
		break_queue(verbs, loss_or_fence(endpoint, "the completion queue is broken"));
	poll_queue(endpoint);
	if (!chain->done)
	{
		FabricStatus status = look_at_link(endpoint);

		if (status != FABRIC_OK)
			break_queue(verbs, status);
	}
	return chain->done;
}

static int
verbs_descriptor(const FabricEndpoint *endpoint)
{
	const VerbsState *verbs = endpoint->state;

	return verbs->queue == NULL ? -1 : verbs->driver->queue_descriptor(verbs->queue);
}

static FabricStatus
verbs_execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	VerbsChain *chain;
	FabricStatus status = post_chain(endpoint, ops, count, 0, &chain);

	return status == FABRIC_OK ? await_chain(endpoint, chain) : status;
}

/* ---- the channel ---- */

/* Ends the queue pair, and with it all that could still move data between the arena and the memory node. */
static void
drop_queue(VerbsState *verbs)
{
	if (verbs->queue != NULL)
		verbs->driver->queue_destroy(verbs->queue);
	verbs->queue = NULL;
	break_queue(verbs, FABRIC_LOST);
	memset(verbs->chains, 0, sizeof(verbs->chains));
	verbs->next_chain = verbs->first_flying = 1;
	verbs->requests = verbs->arena_taken = verbs->arena_next = 0;
	verbs->reads_pending = verbs->atomics_pending = false;
}

/* Opens the device that has the connection's address, and registers the arena: once. */
static FabricStatus
open_device(FabricEndpoint *endpoint, const struct sockaddr *local)
{
	VerbsState *verbs = endpoint->state;
	char detail[FABRIC_DETAIL_BYTES];

	if (verbs->memory != NULL)
		return FABRIC_OK;
	if (verbs->device == NULL)
		verbs->device = verbs->driver->device_open(NULL, local, detail);
	if (verbs->device == NULL)
	{
		fabric_set_detail(endpoint->fabric, "%s", detail);
		return FABRIC_UNREACHABLE;
	}
	if (verbs->arena == NULL)
	{
		void *arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (arena == MAP_FAILED)
			return FABRIC_NO_MEMORY;
		/* A forked child must not share pages that the device writes to. */
		madvise(arena, ARENA_BYTES, MADV_DONTFORK);
		verbs->arena = arena;
	}
	verbs->memory = verbs->driver->memory_register(verbs->device, verbs->arena, ARENA_BYTES, false, detail);
	if (verbs->memory == NULL)
	{
		fabric_set_detail(endpoint->fabric, "%s", detail);
		return FABRIC_NO_MEMORY;
	}
	verbs->driver->memory_keys(verbs->memory, &verbs->keys);
	return FABRIC_OK;
}

/* Makes a new queue pair in place of the old one, and writes its address behind the request. */
static FabricStatus
make_queue(FabricEndpoint *endpoint, ControlPayload *request)
{
	VerbsState *verbs = endpoint->state;
	struct sockaddr_storage address;
	const struct sockaddr *local = (const struct sockaddr *) &address;
	socklen_t length = sizeof(address);
	char detail[FABRIC_DETAIL_BYTES];
	VerbsAddress own;
	FabricStatus status;

	drop_queue(verbs);
	if (getsockname(stream_descriptor(verbs->link.stream), (struct sockaddr *) &address, &length) != 0)
		local = NULL;
	status = open_device(endpoint, local);
	if (status != FABRIC_OK)
		return status;
	verbs->queue = verbs->driver->queue_create(verbs->device, local, QUEUE_DEPTH, &own, detail);
	if (verbs->queue == NULL)
	{
		fabric_set_detail(endpoint->fabric, "%s", detail);
		return FABRIC_NO_MEMORY;
	}
	verbs_put_address(request, &own);
	return FABRIC_OK;
}

/* Takes what a reply to HELLO or RESET says, and connects the queue pair. */
static FabricStatus
take_channel(FabricEndpoint *endpoint, uint8_t *reply, uint32_t bytes)
{
	VerbsState *verbs = endpoint->state;
	ControlPayload payload = {.data = reply, .bytes = bytes};
	FabricCapabilities capabilities;
	FabricChannel channel;
	char detail[FABRIC_DETAIL_BYTES];
	VerbsProperties properties;
	FabricStatus status = control_get_channel(&payload, endpoint, &capabilities, &channel);

	if (status != FABRIC_OK)
		return status;
	if (endpoint->data)
	{
		verbs_get_grant(&payload, &verbs->grant);
		if (payload.failed)
			return FABRIC_PROTOCOL;
		if (!verbs->driver->queue_connect(verbs->queue, &verbs->grant.address, detail))
		{
			fabric_set_detail(endpoint->fabric, "%s", detail);
			return FABRIC_UNREACHABLE;
		}
		verbs->driver->device_properties(verbs->device, &properties);
		if (capabilities.one_packet > properties.mtu)
			capabilities.one_packet = properties.mtu;
		capabilities.max_outstanding = CHAINS;
		verbs->broken = FABRIC_OK;
		verbs->fenced = false;
	}
	endpoint->capabilities = capabilities;
	endpoint->channel = channel;
	return FABRIC_OK;
}

/*
 * Connects, says who we are, and gets a channel; endpoint->channel, if there is one, is dead by then.
 */
static FabricStatus
say_hello(FabricEndpoint *endpoint)
{
	VerbsState *verbs = endpoint->state;
	uint8_t request[128];
	uint8_t reply[256];
	uint32_t reply_bytes = sizeof(reply);
	ControlPayload payload = {.data = request, .bytes = sizeof(request)};
	FabricStatus status = link_open(&verbs->link, verbs->location);

	if (status != FABRIC_OK)
		return status;
	control_put_own_hello(&payload, endpoint);
	if (endpoint->data)
		status = make_queue(endpoint, &payload);
	if (status == FABRIC_OK)
		status = link_call(&verbs->link, CONTROL_HELLO, request, payload.position, reply, &reply_bytes);
	if (status == FABRIC_OK)
		status = take_channel(endpoint, reply, reply_bytes);
	if (status != FABRIC_OK)
		link_close(&verbs->link);
	return status;
}

static void
verbs_disconnect(FabricEndpoint *endpoint)
{
	VerbsState *verbs = endpoint->state;

	/* In a forked child these are the parent's: it has no device, no queue and no arena. */
	if (getpid() == verbs->owner)
	{
		drop_queue(verbs);
		if (verbs->memory != NULL)
			verbs->driver->memory_release(verbs->memory);
		if (verbs->arena != NULL)
			munmap(verbs->arena, ARENA_BYTES);
		if (verbs->device != NULL)
			verbs->driver->device_close(verbs->device);
	}
	link_close(&verbs->link);
	free(verbs->location);
	free(verbs);
	endpoint->state = NULL;
}

static FabricStatus
verbs_connect(FabricEndpoint *endpoint, const char *location)
{
	VerbsState *verbs = calloc(1, sizeof(VerbsState));
	char detail[FABRIC_DETAIL_BYTES];

	if (verbs == NULL)
		return FABRIC_NO_MEMORY;
	endpoint->state = verbs;
	link_init(&verbs->link, endpoint->fabric, take_notice, verbs);
	verbs->owner = getpid();
	verbs->next_chain = verbs->first_flying = 1;
	verbs->location = strdup(location);
	verbs->driver = verbs_load(detail);
	if (verbs->location == NULL)
		return FABRIC_NO_MEMORY;
	if (verbs->driver == NULL)
	{
		fabric_set_detail(endpoint->fabric, "%s", detail);
		return FABRIC_NOT_SUPPORTED;
	}
	return say_hello(endpoint);
}

static FabricStatus
verbs_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes,
           void *reply, uint32_t *reply_bytes)
{
	VerbsState *verbs = endpoint->state;

	return link_call(&verbs->link, method, request, request_bytes, reply, reply_bytes);
}

static FabricStatus
verbs_attach(FabricEndpoint *endpoint, bool resume, uint64_t launcher_nonce, uint32_t *instance,
             uint32_t *incarnation)
{
	VerbsState *verbs = endpoint->state;

	return link_attach(&verbs->link, resume, launcher_nonce, instance, incarnation);
}

static FabricStatus
verbs_reset(FabricEndpoint *endpoint)
{
	VerbsState *verbs = endpoint->state;
	uint8_t request[VERBS_REQUEST_BYTES];
	uint8_t reply[256];
	uint32_t reply_bytes = sizeof(reply);
	ControlPayload payload = {.data = request, .bytes = sizeof(request)};
	FabricStatus status;

	if (endpoint->data && verbs->link.stream != NULL)
	{
		status = make_queue(endpoint, &payload);
		if (status == FABRIC_OK)
			status = link_call(&verbs->link, CONTROL_RESET, request, payload.position, reply, &reply_bytes);
		if (status == FABRIC_OK)
			return take_channel(endpoint, reply, reply_bytes);
		if (status != FABRIC_LOST)
			return status;
	}
	return say_hello(endpoint);
}

static bool
verbs_is_draining(const FabricEndpoint *endpoint)
{
	return ((const VerbsState *) endpoint->state)->link.draining;
}

const FabricTransport verbs_transport = {
	.name = "verbs",
	.connect = verbs_connect,
	.disconnect = verbs_disconnect,
	.execute = verbs_execute,
	.post = verbs_post,
	.wait = verbs_wait,
	.ended = verbs_ended,
	.descriptor = verbs_descriptor,
	.call = verbs_call,
	.attach = verbs_attach,
	.reset = verbs_reset,
	.is_draining = verbs_is_draining,
};
