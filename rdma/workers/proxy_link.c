/*
 * proxy_link.c
 *		The endpoints of a connection worker, and the chains under way on them.
 *
 * A link's epoch changes whenever its channel does.  Clients name the epoch that they mean with every chain, so a
 * chain that was made for another channel (and its redo slot) is never run.  An epoch begins only after the
 * memory node has killed the channel of the one before: by a reset, or by connecting after it.
 */
#include <stdlib.h>
#include <string.h>

#include "rdma/workers/proxy_worker.h"

static bool
link_is_used(const FabricWorker *worker, const ProxyLink *link)
{
	for (uint32_t i = 0; i < worker->area->slots; i++)
	{
		if (worker->clients[i].link == link)
			return true;
	}
	return false;
}

/* The link is not needed any more, and nothing of it can take effect. */
static bool
link_is_idle(const FabricWorker *worker, const ProxyLink *link)
{
	return link != worker->busy && link->first == NULL && (link->fenced || !link_in_doubt(link)) &&
	       !link_is_used(worker, link);
}

static void
link_drop(FabricWorker *worker, ProxyLink *link)
{
	ProxyRecord *record = link->record;

	if (link->endpoint != NULL)
		__atomic_fetch_sub(&worker->state->endpoints, 1, __ATOMIC_RELAXED);
	fabric_close(link->fabric);
	memset(record, 0, sizeof(*record));
	*link = (ProxyLink){.record = record};
}

static bool
record_is(const ProxyRecord *record, const ProxySlot *slot)
{
	return record->used != 0 && record->incarnation == slot->incarnation &&
	       memcmp(record->cluster, slot->cluster, sizeof(record->cluster)) == 0 &&
	       strncmp(record->address, slot->address, PROXY_ADDRESS_BYTES) == 0;
}

ProxyLink *
link_find(FabricWorker *worker, uint32_t number)
{
	const ProxySlot *slot = proxy_slot(worker->area, number);
	ProxyLink *place = NULL;

	for (uint32_t i = 0; i < PROXY_LINKS; i++)
	{
		ProxyLink *link = &worker->links[i];

		if (record_is(link->record, slot))
			return link;
		if (link->record->used == 0)
			place = link;
		else if ((place == NULL || place->record->used != 0) && link_is_idle(worker, link))
			place = link;
	}
	if (place == NULL)
		return NULL;
	if (place->record->used != 0)
		link_drop(worker, place);
	place->record->incarnation = slot->incarnation;
	memcpy(place->record->cluster, slot->cluster, sizeof(slot->cluster));
	memcpy(place->record->address, slot->address, PROXY_ADDRESS_BYTES - 1);
	place->record->used = 1;
	return place;
}

void
links_trim(FabricWorker *worker)
{
	for (uint32_t i = 0; i < PROXY_LINKS; i++)
	{
		ProxyLink *old = &worker->links[i];
		bool replaced = false;

		for (uint32_t j = 0; j < PROXY_LINKS && old->endpoint != NULL; j++)
		{
			const ProxyLink *other = &worker->links[j];

			replaced |= other->endpoint != NULL && other->epoch > old->epoch &&
			            other->record->incarnation != 0 && old->record->incarnation != 0 &&
			            other->record->incarnation != old->record->incarnation &&
			            memcmp(other->record->cluster, old->record->cluster, 16) == 0 &&
			            strcmp(other->record->address, old->record->address) == 0;
		}
		if (replaced && link_is_idle(worker, old))
			link_drop(worker, old);
	}
}

/* The link has a channel, and the one before is dead: a new epoch. */
static void
link_begin_epoch(FabricWorker *worker, ProxyLink *link)
{
	fabric_channel(link->endpoint, &link->record->channel);
	link->epoch = __atomic_add_fetch(&worker->state->epochs, 1, __ATOMIC_RELAXED);
	link->unverified = false;
	if (worker->options.connected != NULL)
		worker->options.connected(worker->options.argument, link->endpoint);
}

static FabricStatus
link_connect(FabricWorker *worker, ProxyLink *link)
{
	FabricOptions options = worker->options.fabric;
	FabricStatus status = FABRIC_OK;

	options.wait = worker->wait;
	options.wait_argument = worker;
	options.proxy = NULL;
	memcpy(options.cluster, link->record->cluster, sizeof(options.cluster));
	options.incarnation = link->record->incarnation;
	if (link->fabric == NULL)
		status = fabric_open(&options, &link->fabric);
	if (status == FABRIC_OK)
		status = fabric_connect_after(link->fabric, link->record->address, &link->record->channel,
		                              &link->endpoint);
	if (status != FABRIC_OK)
	{
		link->fenced = status == FABRIC_FENCED;
		return status;
	}
	__atomic_fetch_add(&worker->state->endpoints, 1, __ATOMIC_RELAXED);
	link->last = &link->first;
	link_begin_epoch(worker, link);
	return FABRIC_OK;
}

FabricStatus
link_ready(FabricWorker *worker, ProxyLink *link, uint64_t asked)
{
	ProxyLink *outer = worker->busy;
	uint64_t now = fabric_now();
	FabricStatus status = FABRIC_OK;

	if (link->endpoint != NULL && !link_in_doubt(link))
		return FABRIC_OK;
	if (asked < link->tried)
		return link->failure;
	worker->busy = link;
	if (link->endpoint == NULL)
		status = link_connect(worker, link);
	else
	{
		status = fabric_reset(link->endpoint);
		link->fenced = status == FABRIC_FENCED;
		if (status == FABRIC_OK)
		{
			__atomic_fetch_add(&worker->state->resets, 1, __ATOMIC_RELAXED);
			link_begin_epoch(worker, link);
		}
	}
	worker->busy = outer;
	if (status != FABRIC_OK)
	{
		link->tried = now;
		link->failure = status;
	}
	return status;
}

/* ---- chains ---- */

/* A chain has ended: its results go into the slot's room. */
static void
chain_finish(FabricWorker *worker, const ProxyLink *link, uint32_t slot, ProxyPlace *place,
             const FabricOp *ops, int count, FabricStatus status)
{
	if (status == FABRIC_OK)
	{
		ProxyOp *shared = (ProxyOp *) (void *) (proxy_slot(worker->area, slot)->room + place->start);

		for (int i = 0; i < count; i++)
			shared[i].result = ops[i].result;
	}
	place->draining = fabric_is_draining(link->endpoint);
	/* The client has not asked to stop. */
	if (status == FABRIC_STOPPED)
		status = FABRIC_LOST;
	place_finish(worker, slot, place, status, fabric_detail(link->fabric));
}

static FabricStatus
chain_start(FabricWorker *worker, ProxyLink *link, uint32_t slot, ProxyPlace *place, const FabricOp *ops,
            int count)
{
	ProxyFlight *flight = worker->spare;
	FabricStatus status;

	if (flight == NULL)
		flight = malloc(sizeof(ProxyFlight));
	else
		worker->spare = flight->next;
	if (flight == NULL)
		return FABRIC_NO_MEMORY;
	memcpy(flight->ops, ops, (size_t) count * sizeof(FabricOp));
	flight->count = count;
	flight->slot = slot;
	flight->place = place;
	flight->next = NULL;
	flight->deadline = fabric_now() + (uint64_t) link->fabric->options.operation_timeout_ms * 1000000;
	status = fabric_post(link->endpoint, flight->ops, count, &flight->ticket);
	if (status != FABRIC_OK)
	{
		flight->next = worker->spare;
		worker->spare = flight;
		return status;
	}
	*link->last = flight;
	link->last = &flight->next;
	worker->clients[slot].flights++;
	return FABRIC_OK;
}

FabricStatus
link_chain(FabricWorker *worker, ProxyLink *link, uint32_t slot, ProxyPlace *place, FabricOp *ops, int count)
{
	ProxyLink *outer = worker->busy;
	bool waits = link->endpoint->transport->post != NULL;
	FabricStatus status;

	worker->busy = link;
	if (waits)
		status = chain_start(worker, link, slot, place, ops, count);
	else
	{
		worker->clients[slot].flights++;
		status = fabric_execute(link->endpoint, ops, count);
		worker->clients[slot].flights--;
	}
	worker->busy = outer;
	if (status == FABRIC_BUSY || (waits && status == FABRIC_OK))
		return status;
	chain_finish(worker, link, slot, place, ops, count, status);
	return FABRIC_OK;
}

/* Waits for a chain that has ended, or whose time has passed. */
static FabricStatus
flight_wait(ProxyLink *link, const ProxyFlight *flight, bool ended)
{
	uint32_t *timeout = &link->fabric->options.operation_timeout_ms;
	uint32_t usual = *timeout;
	FabricStatus status;

	/* A transport counts a chain's time from the wait on: this one had it already. */
	if (!ended)
		*timeout = 1;
	status = fabric_wait(link->endpoint, flight->ticket);
	*timeout = usual;
	return status;
}

/* Finishes the link's oldest chain, if it has ended. */
static bool
flight_end(FabricWorker *worker, ProxyLink *link)
{
	ProxyFlight *flight = link->first;
	ProxyLink *outer = worker->busy;
	bool ended = fabric_ended(link->endpoint, flight->ticket);
	FabricStatus status;

	if (!ended && fabric_now() < flight->deadline)
		return false;
	worker->busy = link;
	status = flight_wait(link, flight, ended);
	worker->busy = outer;
	link->first = flight->next;
	if (link->first == NULL)
		link->last = &link->first;
	worker->clients[flight->slot].flights--;
	chain_finish(worker, link, flight->slot, flight->place, flight->ops, flight->count, status);
	/* What waited for it to end may go on. */
	worker->todo[flight->slot / 64] |= 1ull << flight->slot % 64;
	flight->next = worker->spare;
	worker->spare = flight;
	return true;
}

bool
links_round(FabricWorker *worker)
{
	bool any = false;

	for (uint32_t i = 0; i < PROXY_LINKS; i++)
	{
		ProxyLink *link = &worker->links[i];

		while (link != worker->busy && link->first != NULL && flight_end(worker, link))
			any = true;
	}
	return any;
}

int
links_descriptors(const FabricWorker *worker, int *descriptors, bool *flying)
{
	int count = 0;

	*flying = false;
	for (uint32_t i = 0; i < PROXY_LINKS; i++)
	{
		const ProxyLink *link = &worker->links[i];

		if (link->first == NULL || link == worker->busy)
			continue;
		*flying = true;
		descriptors[count] = fabric_descriptor(link->endpoint);
		if (descriptors[count] >= 0)
			count++;
	}
	return count;
}

void
links_close(FabricWorker *worker)
{
	for (uint32_t i = 0; i < PROXY_LINKS; i++)
	{
		ProxyLink *link = &worker->links[i];

		if (link->first == NULL && (link->fenced || !link_in_doubt(link)))
		{
			link_drop(worker, link);
			continue;
		}
		/* The next worker has to kill this channel before its chains are determinate. */
		if (link->endpoint != NULL)
			__atomic_fetch_sub(&worker->state->endpoints, 1, __ATOMIC_RELAXED);
		fabric_close(link->fabric);
		for (ProxyFlight *flight = link->first; flight != NULL;)
		{
			ProxyFlight *next = flight->next;

			place_finish(worker, flight->slot, flight->place, FABRIC_LOST, "connection worker ends");
			free(flight);
			flight = next;
		}
		*link = (ProxyLink){.record = link->record};
	}
	while (worker->spare != NULL)
	{
		ProxyFlight *next = worker->spare->next;

		free(worker->spare);
		worker->spare = next;
	}
}
