/*
 * verbs.c
 *		The verbs transport: a chain is one list of linked work requests on an RC queue pair of the client's own.
 *
 * Here are the channel and the waiting; the chains themselves are in verbs_flight.c.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/stream/frame_client.h"
#include "rdma/verbs/verbs_flight.h"

/* Only one of so many questions whether the memory node drains reads its answer. */
#define NOTICE_MS 10u

typedef struct VerbsState
{
	VerbsFlight flight; /* first: tests find it there */
	Link link;
	char *location;
	bool fenced;     /* the memory node said so */
	uint64_t looked; /* at the connection, for verbs_is_draining() */
	Spin spin;
	pid_t owner; /* a forked child has no queue, no arena and none of what follows */
	VerbsDevice *device;
	VerbsMemory *memory; /* the arena's */
} VerbsState;

/* ---- waiting ---- */

/* What the memory node says unasked: how the next chain would end. */
static bool
take_notice(void *argument, const FrameHead *frame, FabricStatus status, const uint8_t *data)
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
	const char *reason = NULL;

	if (flight_poll(&verbs->flight, &reason) != VERBS_NONE)
		flight_break(&verbs->flight, loss_or_fence(endpoint, reason));
}

/* Sleeps until a completion or the connection shows something.  Anything but FABRIC_OK ends the wait. */
static FabricStatus
sleep_for_completion(FabricEndpoint *endpoint, const VerbsChain *chain, uint64_t left)
{
	VerbsState *verbs = endpoint->state;
	int descriptors[2] = {verbs->flight.driver->queue_descriptor(verbs->flight.queue), -1};
	FabricStatus status;

	if (!verbs->flight.driver->queue_arm(verbs->flight.queue))
		return loss_or_fence(endpoint, "the completion queue is broken");
	/* Completions before it was armed wake no process. */
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

/* Waits for a chain's end, and gives its place back. */
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
			flight_break(&verbs->flight, status);
		poll_queue(endpoint);
	}
	spin_success(&verbs->spin);
	chain->used = false;
	return chain->status;
}

/* ---- chains ---- */

/* Posts a chain; *posted is its place. */
static FabricStatus
post_chain(FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t ticket, VerbsChain **posted)
{
	VerbsState *verbs = endpoint->state;
	FabricStatus status = flight_post(&verbs->flight, ops, count, ticket, &endpoint->counters.fences, posted);

	if (status == FABRIC_LOST)
		fabric_set_detail(endpoint->fabric, "the device takes no request");
	return status;
}

static FabricStatus
verbs_post(FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t ticket)
{
	VerbsChain *chain;

	return post_chain(endpoint, ops, count, ticket, &chain);
}

static FabricStatus
verbs_wait(FabricEndpoint *endpoint, uint64_t ticket)
{
	VerbsChain *chain = flight_find(&((VerbsState *) endpoint->state)->flight, ticket);

	return chain == NULL ? FABRIC_LOST : await_chain(endpoint, chain);
}

static bool
verbs_ended(FabricEndpoint *endpoint, uint64_t ticket)
{
	VerbsState *verbs = endpoint->state;
	VerbsChain *chain = flight_find(&verbs->flight, ticket);

	poll_queue(endpoint);
	if (chain == NULL || chain->done)
		return true;
	/* The descriptor is to wake the process that sleeps on it: so the queue is armed, and polled once more. */
	if (!verbs->flight.driver->queue_arm(verbs->flight.queue))
		flight_break(&verbs->flight, loss_or_fence(endpoint, "the completion queue is broken"));
	poll_queue(endpoint);
	if (!chain->done)
	{
		FabricStatus status = look_at_link(endpoint);

		if (status != FABRIC_OK)
			flight_break(&verbs->flight, status);
	}
	return chain->done;
}

static int
verbs_descriptor(const FabricEndpoint *endpoint)
{
	const VerbsState *verbs = endpoint->state;

	return verbs->flight.queue == NULL ? -1 : verbs->flight.driver->queue_descriptor(verbs->flight.queue);
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
	if (verbs->flight.queue != NULL)
		verbs->flight.driver->queue_destroy(verbs->flight.queue);
	flight_clear(&verbs->flight);
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
		verbs->device = verbs->flight.driver->device_open(NULL, local, detail);
	if (verbs->device == NULL)
	{
		fabric_set_detail(endpoint->fabric, "%s", detail);
		return FABRIC_UNREACHABLE;
	}
	if (verbs->flight.arena == NULL)
	{
		void *arena =
			mmap(NULL, VERBS_ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (arena == MAP_FAILED)
			return FABRIC_NO_MEMORY;
		/* A forked child must not share pages that the device writes to. */
		madvise(arena, VERBS_ARENA_BYTES, MADV_DONTFORK);
		verbs->flight.arena = arena;
		verbs->flight.arena_bytes = VERBS_ARENA_BYTES;
	}
	verbs->memory = verbs->flight.driver->memory_register(verbs->device, verbs->flight.arena,
	                                                      VERBS_ARENA_BYTES, VERBS_NOTHING, detail);
	if (verbs->memory == NULL)
	{
		fabric_set_detail(endpoint->fabric, "%s", detail);
		return FABRIC_NO_MEMORY;
	}
	verbs->flight.driver->memory_keys(verbs->memory, &verbs->flight.keys);
	return FABRIC_OK;
}

/* Makes a new queue pair in place of the old one, and writes its address behind the request. */
static FabricStatus
make_queue(FabricEndpoint *endpoint, FramePayload *request)
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
	verbs->flight.queue =
		verbs->flight.driver->queue_create(verbs->device, local, VERBS_QUEUE_DEPTH, false, &own, detail);
	if (verbs->flight.queue == NULL)
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
	FramePayload payload = {.data = reply, .bytes = bytes};
	FabricCapabilities capabilities;
	FabricChannel channel;
	char detail[FABRIC_DETAIL_BYTES];
	VerbsProperties properties;
	FabricStatus status = frame_get_channel(&payload, endpoint, &capabilities, &channel);

	if (status != FABRIC_OK)
		return status;
	if (endpoint->data)
	{
		verbs_get_grant(&payload, &verbs->flight.grant);
		if (payload.failed || payload.position != payload.bytes)
			return FABRIC_PROTOCOL;
		if (!verbs->flight.driver->queue_connect(verbs->flight.queue, &verbs->flight.grant.address, detail))
		{
			fabric_set_detail(endpoint->fabric, "%s", detail);
			return FABRIC_UNREACHABLE;
		}
		verbs->flight.driver->device_properties(verbs->device, &properties);
		if (capabilities.one_packet > properties.mtu)
			capabilities.one_packet = properties.mtu;
		capabilities.max_outstanding = VERBS_CHAINS;
		verbs->flight.device_fences = properties.hardware;
		verbs->flight.broken = FABRIC_OK;
		verbs->fenced = false;
	}
	endpoint->capabilities = capabilities;
	endpoint->channel = channel;
	return FABRIC_OK;
}

/* A new queue pair and channel in place of the old ones. */
static FabricStatus
renew_channel(FabricEndpoint *endpoint)
{
	VerbsState *verbs = endpoint->state;
	uint8_t request[VERBS_REQUEST_BYTES];
	uint8_t reply[512];
	uint32_t reply_bytes = sizeof(reply);
	FramePayload payload = {.data = request, .bytes = sizeof(request)};
	FabricStatus status = make_queue(endpoint, &payload);

	if (status == FABRIC_OK)
		status = link_call(&verbs->link, CONTROL_RESET, request, payload.position, reply, &reply_bytes);
	return status == FABRIC_OK ? take_channel(endpoint, reply, reply_bytes) : status;
}

/*
 * Connects, sends HELLO, and gets a channel; endpoint->channel, if there is one, is dead by then.
 */
static FabricStatus
say_hello(FabricEndpoint *endpoint)
{
	VerbsState *verbs = endpoint->state;
	uint8_t request[128];
	uint8_t reply[512];
	uint32_t reply_bytes = sizeof(reply);
	FramePayload payload = {.data = request, .bytes = sizeof(request)};
	FabricStatus status = link_open(&verbs->link, verbs->location);

	if (status != FABRIC_OK)
		return status;
	frame_put_own_hello(&payload, endpoint);
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
			verbs->flight.driver->memory_release(verbs->memory);
		if (verbs->flight.arena != NULL)
			munmap(verbs->flight.arena, VERBS_ARENA_BYTES);
		if (verbs->device != NULL)
			verbs->flight.driver->device_close(verbs->device);
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
	flight_clear(&verbs->flight);
	verbs->location = strdup(location);
	verbs->flight.driver = verbs_load(detail);
	if (verbs->location == NULL)
		return FABRIC_NO_MEMORY;
	if (verbs->flight.driver == NULL)
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
	const VerbsState *verbs = endpoint->state;
	FabricStatus status;

	if (endpoint->data && verbs->link.stream != NULL)
	{
		status = renew_channel(endpoint);
		if (status == FABRIC_OK)
			return FABRIC_OK;
		if (status != FABRIC_LOST)
			return status;
	}
	return say_hello(endpoint);
}

static bool
verbs_is_draining(const FabricEndpoint *endpoint)
{
	VerbsState *verbs = endpoint->state;
	uint64_t now = fabric_now();

	/* Chains pass the connection by: nothing else would read the notice. What else it says, the next chain finds out. */
	if (verbs->link.stream != NULL && now - verbs->looked >= (uint64_t) NOTICE_MS * 1000000)
	{
		verbs->looked = now;
		(void) link_poll(&verbs->link);
	}
	return verbs->link.draining;
}

const FabricTransport verbs_transport = {
	.name = "verbs",
	.readers = true,
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
