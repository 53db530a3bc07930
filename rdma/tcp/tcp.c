/*
 * tcp.c
 *		The tcp transport: a chain is a frame to the memory node, whose thread runs it, and a frame back.
 *
 * Chains are answered in the order in which they were posted. The first one leaves at once; those posted while others
 * are in flight are gathered, until there is a batch or one is waited for.
 *
 * Death and doubt: the memory node runs a channel's chains only as long as it holds the connection that the
 * channel came with.  A reset therefore makes a new connection, whose HELLO names the old channel: with the
 * reply the old connection is closed at the memory node's end, and whatever of it still was on its way is
 * dropped.
 */
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>

#include "rdma/stream/frame_client.h"

/* A batch is sent when it has so many bytes, so that the memory node does not idle while we gather. */
#define BATCH_BYTES 8192u

/* The chain of tcp_execute() has a place and tickets of its own, whatever else is under way. */
#define EXECUTE_TICKETS (1ull << 63)

/* A chain under way. */
typedef struct TcpChain
{
	uint64_t ticket; /* 0: the place is free */
	FabricOp *ops;
	int count;
	bool answered;
	FabricStatus status;
} TcpChain;

typedef struct TcpState
{
	Link link;
	char *location;
	uint32_t under_way;  /* chains posted and not answered */
	uint64_t executed;   /* chains of tcp_execute() */
	FabricStatus broken; /* a chain failed so that its channel must be reset: so do all others */
	TcpChain chains[TRANSPORT_TICKETS + 1];
} TcpState;

static TcpChain *
chain_of(TcpState *tcp, uint64_t ticket)
{
	return &tcp->chains[ticket >= EXECUTE_TICKETS ? TRANSPORT_TICKETS : ticket % TRANSPORT_TICKETS];
}

/* Takes the reply to a chain. */
static bool
take_chain(void *argument, const FrameHead *frame, FabricStatus status, const uint8_t *data)
{
	TcpState *tcp = argument;
	TcpChain *chain = chain_of(tcp, frame->request);

	/* Too late: its wait has ended, and its buffers are the caller's again. */
	if (chain->ticket != frame->request)
		return tcp->broken != FABRIC_OK;
	if (chain->answered ||
	    frame->length != (status == FABRIC_OK ? chain_reply_bytes(chain->ops, chain->count) : 0))
		return false;
	if (status == FABRIC_OK)
		chain_take_reply(chain->ops, chain->count, data);
	chain->status = status;
	chain->answered = true;
	tcp->under_way--;
	return true;
}

/* No chain of the channel will be answered any more. */
static FabricStatus
chains_fail(TcpState *tcp, FabricStatus status)
{
	if (tcp->broken == FABRIC_OK)
		tcp->broken = status == FABRIC_FENCED ? FABRIC_FENCED : FABRIC_LOST;
	return status;
}

static FabricStatus
tcp_post(FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t ticket)
{
	TcpState *tcp = endpoint->state;
	uint8_t *payload;

	if (tcp->broken != FABRIC_OK)
		return tcp->broken;
	payload = link_put(&tcp->link, CONTROL_CHAIN, ticket, chain_request_bytes(ops, count));
	if (payload == NULL)
		return FABRIC_NO_MEMORY;
	chain_encode(ops, count, payload);
	*chain_of(tcp, ticket) = (TcpChain){.ticket = ticket, .ops = ops, .count = count};
	tcp->under_way++;
	/* A failure is the wait's business: something may have been sent. */
	if (tcp->under_way == 1 || buffer_used(&tcp->link.output) >= BATCH_BYTES)
	{
		FabricStatus status = link_send(&tcp->link);

		if (status != FABRIC_OK)
			chains_fail(tcp, status);
	}
	return FABRIC_OK;
}

static FabricStatus
tcp_wait(FabricEndpoint *endpoint, uint64_t ticket)
{
	TcpState *tcp = endpoint->state;
	TcpChain *chain = chain_of(tcp, ticket);
	uint64_t deadline = 0;
	FabricStatus status = FABRIC_OK;

	while (!chain->answered && status == FABRIC_OK)
	{
		if (tcp->broken != FABRIC_OK)
			status = tcp->broken;
		else
		{
			if (deadline == 0)
				deadline = fabric_deadline(endpoint->fabric, FABRIC_WAIT_CHAIN);
			status = link_wait(&tcp->link, deadline);
			if (status == FABRIC_TIMED_OUT)
				fabric_set_detail(endpoint->fabric, "the memory node did not answer in time");
			if (status != FABRIC_OK)
				chains_fail(tcp, status);
		}
	}
	chain->ticket = 0;
	if (status == FABRIC_OK)
		status = chain->status;
	if (status == FABRIC_FENCED)
	{
		fabric_set_detail(endpoint->fabric, "the memory node has closed channel %u",
		                  endpoint->capabilities.channel);
		chains_fail(tcp, status);
	}
	return status;
}

static FabricStatus
tcp_execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	TcpState *tcp = endpoint->state;
	uint64_t ticket = EXECUTE_TICKETS | ++tcp->executed;
	FabricStatus status = tcp_post(endpoint, ops, count, ticket);

	return status == FABRIC_OK ? tcp_wait(endpoint, ticket) : status;
}

/*
 * Connects, sends HELLO, and gets a channel; endpoint->channel, if there is one, is dead by then.
 */
static FabricStatus
say_hello(FabricEndpoint *endpoint)
{
	TcpState *tcp = endpoint->state;
	uint8_t request[128];
	uint8_t reply[256];
	uint32_t reply_bytes = sizeof(reply);
	FramePayload payload = {.data = request, .bytes = sizeof(request)};
	FramePayload answer = {.data = reply};
	FabricCapabilities capabilities;
	FabricChannel channel;
	FabricStatus status = link_open(&tcp->link, tcp->location);

	if (status != FABRIC_OK)
		return status;
	frame_put_own_hello(&payload, endpoint);
	if (tcp->link.local && endpoint->data)
		frame_put32(&payload, CONTROL_FRAMES);
	status = link_call(&tcp->link, CONTROL_HELLO, request, payload.position, reply, &reply_bytes);
	if (status == FABRIC_OK)
	{
		answer.bytes = reply_bytes;
		status = frame_get_channel(&answer, endpoint, &capabilities, &channel);
	}
	if (status != FABRIC_OK)
	{
		link_close(&tcp->link);
		return status;
	}
	if (capabilities.max_outstanding > TRANSPORT_TICKETS)
		capabilities.max_outstanding = TRANSPORT_TICKETS;
	endpoint->capabilities = capabilities;
	endpoint->channel = channel;
	return FABRIC_OK;
}

static void
tcp_disconnect(FabricEndpoint *endpoint)
{
	TcpState *tcp = endpoint->state;

	link_close(&tcp->link);
	free(tcp->location);
	free(tcp);
	endpoint->state = NULL;
}

static FabricStatus
connect_to(FabricEndpoint *endpoint, const char *location, bool local)
{
	TcpState *tcp = calloc(1, sizeof(TcpState));

	if (tcp == NULL)
		return FABRIC_NO_MEMORY;
	endpoint->state = tcp;
	link_init(&tcp->link, endpoint->fabric, take_chain, tcp);
	tcp->link.local = local;
	tcp->location = strdup(location);
	return tcp->location == NULL ? FABRIC_NO_MEMORY : say_hello(endpoint);
}

static FabricStatus
tcp_connect(FabricEndpoint *endpoint, const char *location)
{
	return connect_to(endpoint, location, false);
}

FabricStatus
tcp_connect_local(FabricEndpoint *endpoint, const char *path)
{
	endpoint->transport = &tcp_transport;
	return connect_to(endpoint, path, true);
}

static FabricStatus
tcp_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes, void *reply,
         uint32_t *reply_bytes)
{
	TcpState *tcp = endpoint->state;

	return link_call(&tcp->link, method, request, request_bytes, reply, reply_bytes);
}

static FabricStatus
tcp_attach(FabricEndpoint *endpoint, bool resume, uint64_t launcher_nonce, uint32_t *instance,
           uint32_t *incarnation)
{
	TcpState *tcp = endpoint->state;

	return link_attach(&tcp->link, resume, launcher_nonce, instance, incarnation);
}

static FabricStatus
tcp_reset(FabricEndpoint *endpoint)
{
	TcpState *tcp = endpoint->state;
	FabricStatus status = say_hello(endpoint);

	if (status != FABRIC_OK)
	{
		chains_fail(tcp, FABRIC_LOST);
		return status;
	}
	memset(tcp->chains, 0, sizeof(tcp->chains));
	tcp->under_way = 0;
	tcp->broken = FABRIC_OK;
	return FABRIC_OK;
}

static bool
tcp_ended(FabricEndpoint *endpoint, uint64_t ticket)
{
	TcpState *tcp = endpoint->state;
	const TcpChain *chain = chain_of(tcp, ticket);

	if (chain->answered || tcp->broken != FABRIC_OK)
		return true;
	/* A failure ends all chains. */
	if (link_poll(&tcp->link) != FABRIC_OK)
		chains_fail(tcp, FABRIC_LOST);
	return chain->answered || tcp->broken != FABRIC_OK;
}

static int
tcp_descriptor(const FabricEndpoint *endpoint)
{
	const TcpState *tcp = endpoint->state;

	return tcp->link.stream == NULL ? -1 : stream_descriptor(tcp->link.stream);
}

static bool
tcp_is_draining(const FabricEndpoint *endpoint)
{
	return ((const TcpState *) endpoint->state)->link.draining;
}

const FabricTransport tcp_transport = {
	.name = "tcp",
	.readers = true,
	.connect = tcp_connect,
	.disconnect = tcp_disconnect,
	.execute = tcp_execute,
	.post = tcp_post,
	.wait = tcp_wait,
	.ended = tcp_ended,
	.descriptor = tcp_descriptor,
	.call = tcp_call,
	.attach = tcp_attach,
	.reset = tcp_reset,
	.is_draining = tcp_is_draining,
};
