/*
 * fabric.c
 *		The interface of fabric.h over any transport: checks chains, keeps tickets, counters, and the state of
 *		indeterminate chains.
 */
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>

#include "rdma/base/chain.h"
#include "rdma/base/control.h"
#include "rdma/stream/stream.h"
#include "rdma/base/transport.h"

static const FabricTransport *const transports[] = {&shm_transport, &tcp_transport, &verbs_transport,
                                                    &proxy_transport};

FabricStatus
fabric_open(const FabricOptions *options, Fabric **fabric)
{
	Fabric *opened = calloc(1, sizeof(Fabric));

	if (opened == NULL)
		return FABRIC_NO_MEMORY;
	if (options != NULL)
		opened->options = *options;
	opened->tls = opened->options.tls;
	if (opened->options.operation_timeout_ms == 0)
		opened->options.operation_timeout_ms = FABRIC_DEFAULT_TIMEOUT_MS;
	if (opened->options.connect_timeout_ms == 0)
		opened->options.connect_timeout_ms = FABRIC_DEFAULT_TIMEOUT_MS;
	if (opened->options.wait == NULL)
		opened->options.wait = fabric_default_wait;
	*fabric = opened;
	return FABRIC_OK;
}

void
fabric_close(Fabric *fabric)
{
	if (fabric == NULL)
		return;
	while (fabric->endpoints != NULL)
		fabric_disconnect(fabric->endpoints);
	if (fabric->tls != fabric->options.tls)
		stream_context_close(fabric->tls);
	free(fabric);
}

struct StreamContext *
fabric_tls_open(void)
{
	stream_prepare();
	return stream_context_open();
}

void
fabric_tls_close(struct StreamContext *tls)
{
	stream_context_close(tls);
}

FabricStatus
fabric_connect(Fabric *fabric, const char *address, FabricEndpoint **endpoint)
{
	return fabric_connect_after(fabric, address, &(FabricChannel){0}, endpoint);
}

/* The transport named before the colon; NULL: there is none. */
static const FabricTransport *
find_transport(const Fabric *fabric, const char *address, const char *colon)
{
	size_t length = (size_t) (colon - address);

	for (size_t i = 0; i <= sizeof(transports) / sizeof(transports[0]); i++)
	{
		const FabricTransport *transport = i == 0 ? fabric->options.transport : transports[i - 1];

		if (transport != NULL && strlen(transport->name) == length &&
		    memcmp(transport->name, address, length) == 0)
			return transport;
	}
	return NULL;
}

FabricStatus
fabric_connect_after(Fabric *fabric, const char *address, const FabricChannel *old, FabricEndpoint **endpoint)
{
	const char *colon = strchr(address, ':');
	const FabricTransport *transport = colon == NULL ? NULL : find_transport(fabric, address, colon);
	FabricEndpoint *connected;
	FabricStatus status;

	if (transport == NULL)
	{
		fabric_set_detail(fabric, "no transport serves the address \"%s\"", address);
		return FABRIC_NOT_SUPPORTED;
	}
	if (fabric->options.reader && !transport->readers)
	{
		fabric_set_detail(fabric, "there are no readers over %s: use the memory node's tcp address",
		                  transport->name);
		return FABRIC_NOT_SUPPORTED;
	}
	connected = aligned_alloc(TRANSPORT_LINE_BYTES, sizeof(FabricEndpoint));
	if (connected == NULL)
		return FABRIC_NO_MEMORY;
	memset(connected, 0, sizeof(*connected));
	connected->fabric = fabric;
	connected->transport = transport;
	connected->reader = fabric->options.reader;
	connected->data = connected->reader || fabric->options.incarnation != 0;
	connected->next_ticket = 1;
	connected->channel = *old;
	status = transport->connect(connected, colon + 1);
	if (status != FABRIC_OK)
	{
		if (connected->state != NULL)
			connected->transport->disconnect(connected);
		free(connected);
		/*
		 * Before there is a channel no chain can be indeterminate; the memory node frees a channel whose grant did
		 * not reach us.
		 */
		return status == FABRIC_LOST || status == FABRIC_TIMED_OUT ? FABRIC_UNREACHABLE : status;
	}
	connected->next = fabric->endpoints;
	fabric->endpoints = connected;
	*endpoint = connected;
	return FABRIC_OK;
}

void
fabric_disconnect(FabricEndpoint *endpoint)
{
	FabricEndpoint **link;

	if (endpoint == NULL)
		return;
	for (link = &endpoint->fabric->endpoints; *link != NULL; link = &(*link)->next)
	{
		if (*link == endpoint)
		{
			*link = endpoint->next;
			break;
		}
	}
	fault_release(endpoint);
	endpoint->transport->disconnect(endpoint);
	free(endpoint);
}

const FabricCapabilities *
fabric_capabilities(const FabricEndpoint *endpoint)
{
	return &endpoint->capabilities;
}

bool
fabric_is_draining(const FabricEndpoint *endpoint)
{
	return endpoint->transport->is_draining != NULL && endpoint->transport->is_draining(endpoint);
}

void
fabric_channel(const FabricEndpoint *endpoint, FabricChannel *channel)
{
	*channel = endpoint->channel;
}

void
fabric_counters(const FabricEndpoint *endpoint, FabricCounters *counters)
{
	*counters = endpoint->counters;
}

const char *
fabric_detail(const Fabric *fabric)
{
	return fabric->detail;
}

/* Checks a whole chain and the endpoint; nothing has happened when this fails. */
static inline FabricStatus
check_chain(const FabricEndpoint *endpoint, const FabricOp *ops, int count)
{
	bool atomic_seen = false;

	if (endpoint->doubt)
		return FABRIC_LOST;
	if (count < 1 || count > (int) endpoint->capabilities.max_chain)
		return FABRIC_PROTOCOL;
	for (int i = 0; i < count; i++)
	{
		FabricStatus status = chain_check(endpoint->capabilities.region_bytes, &ops[i], &atomic_seen);

		if (status != FABRIC_OK)
			return status;
		if (!chain_is_atomic(&ops[i]) && (ops[i].buffer == NULL || ((uintptr_t) ops[i].buffer & 7) != 0))
			return FABRIC_RANGE;
	}
	return !endpoint->reader || chain_is_readers(ops, count) ? FABRIC_OK : FABRIC_PROTOCOL;
}

/* A chain was refused before it was posted. */
static FabricStatus
chain_refused(FabricEndpoint *endpoint, FabricStatus status)
{
	endpoint->counters.errors++;
	if (!endpoint->data)
		fabric_set_detail(endpoint->fabric, "a control-only endpoint takes no chain");
	else if (endpoint->doubt)
		fabric_set_detail(endpoint->fabric, "the endpoint has an indeterminate chain and needs a reset");
	else
		fabric_set_detail(endpoint->fabric, "chain refused%s: %s", endpoint->reader ? " (of a reader)" : "",
		                  fabric_status_name(status));
	return status;
}

/* Counts a chain that has ended, and notes if it failed and is indeterminate. */
static inline void
chain_ended(FabricEndpoint *endpoint, const FabricOp *ops, int count, FabricStatus status)
{
	FabricCounters *counters = &endpoint->counters;

	if (status != FABRIC_OK)
	{
		counters->errors++;
		if (status != FABRIC_RANGE && status != FABRIC_PROTOCOL && status != FABRIC_BUSY)
			endpoint->doubt = true;
		return;
	}
	counters->round_trips++;
	counters->operations += (uint64_t) count;
	for (int i = 0; i < count; i++)
	{
		if (ops[i].opcode == FABRIC_READ)
		{
			counters->reads++;
			counters->read_bytes += ops[i].length;
		}
		else if (ops[i].opcode == FABRIC_WRITE)
		{
			counters->writes++;
			counters->written_bytes += ops[i].length;
		}
		else
		{
			counters->atomics++;
			counters->written_bytes += 8;
		}
	}
}

FabricStatus
fabric_post(FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t *ticket)
{
	const FabricTransport *transport = endpoint->transport;
	uint64_t next = endpoint->next_ticket;
	FabricTicket *place = &endpoint->tickets[next & (TRANSPORT_TICKETS - 1)];
	FabricStatus status = check_chain(endpoint, ops, count);

	if (status != FABRIC_OK)
		return chain_refused(endpoint, status);
	if (place->ticket != 0 || endpoint->outstanding >= endpoint->capabilities.max_outstanding)
		return chain_refused(endpoint, FABRIC_BUSY);
	if (transport->post != NULL)
	{
		status = transport->post(endpoint, ops, count, next);
		if (status != FABRIC_OK)
			return chain_refused(endpoint, status);
	}
	else
	{
		status = transport->execute(endpoint, ops, count);
		if (status == FABRIC_RANGE || status == FABRIC_PROTOCOL || status == FABRIC_BUSY)
			return chain_refused(endpoint, status);
		/* What follows a chain that failed half-way must not overtake it: nothing more before a reset. */
		if (status != FABRIC_OK)
			endpoint->doubt = true;
	}
	*place = (FabricTicket){.ticket = next, .ops = ops, .count = count, .status = status};
	endpoint->next_ticket = next + 1;
	endpoint->outstanding++;
	*ticket = next;
	return FABRIC_OK;
}

FabricStatus
fabric_wait(FabricEndpoint *endpoint, uint64_t ticket)
{
	FabricTicket *place = &endpoint->tickets[ticket & (TRANSPORT_TICKETS - 1)];
	FabricStatus status = place->status;

	if (ticket == 0 || place->ticket != ticket)
	{
		fabric_set_detail(endpoint->fabric, "no chain with this ticket is outstanding");
		return FABRIC_PROTOCOL;
	}
	if (endpoint->transport->post != NULL)
		status = endpoint->transport->wait(endpoint, ticket);
	place->ticket = 0;
	endpoint->outstanding--;
	chain_ended(endpoint, place->ops, place->count, status);
	return status;
}

bool
fabric_ended(FabricEndpoint *endpoint, uint64_t ticket)
{
	return endpoint->transport->ended == NULL || endpoint->transport->ended(endpoint, ticket);
}

int
fabric_descriptor(const FabricEndpoint *endpoint)
{
	return endpoint->transport->descriptor == NULL ? -1 : endpoint->transport->descriptor(endpoint);
}

FabricStatus
fabric_execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	FabricStatus status = check_chain(endpoint, ops, count);

	if (status != FABRIC_OK)
		return chain_refused(endpoint, status);
	status = endpoint->transport->execute(endpoint, ops, count);
	chain_ended(endpoint, ops, count, status);
	return status;
}

FabricStatus
fabric_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes,
            void *reply, uint32_t *reply_bytes)
{
	FabricStatus status;

	/* The fabric's own methods are not the caller's. */
	if (request_bytes > FABRIC_MAX_CALL_BYTES || method >= CONTROL_FIRST_METHOD)
		status = FABRIC_PROTOCOL;
	else
		status = endpoint->transport->call(endpoint, method, request, request_bytes, reply, reply_bytes);
	if (status == FABRIC_OK)
		endpoint->counters.calls++;
	else
		endpoint->counters.errors++;
	return status;
}

FabricStatus
fabric_attach(FabricEndpoint *endpoint, bool resume, uint64_t launcher_nonce, uint32_t *instance,
              uint32_t *incarnation)
{
	FabricStatus status =
		endpoint->transport->attach(endpoint, resume, launcher_nonce, instance, incarnation);

	if (status != FABRIC_OK)
		endpoint->counters.errors++;
	return status;
}

FabricStatus
fabric_reset(FabricEndpoint *endpoint)
{
	FabricStatus status = endpoint->transport->reset(endpoint);

	if (status == FABRIC_LOST)
		status = FABRIC_UNREACHABLE;
	if (status != FABRIC_OK)
	{
		endpoint->counters.errors++;
		endpoint->doubt = true;
		return status;
	}
	/* Tickets that were not waited for belong to the dead channel. */
	for (uint32_t i = 0; i < TRANSPORT_TICKETS; i++)
		endpoint->tickets[i].ticket = 0;
	endpoint->outstanding = 0;
	endpoint->doubt = false;
	endpoint->counters.resets++;
	return FABRIC_OK;
}
