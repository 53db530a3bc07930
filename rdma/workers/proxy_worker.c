/*
 * proxy_worker.c
 *		A connection worker: takes the requests of its slots in turn, one of each slot in a round.
 */
#define _GNU_SOURCE 1
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/workers/proxy_worker.h"

/* Clients that ended without a word are looked for that often. */
#define SWEEP_MS 1000u

/* Longest sleep while chains are under way: their deadlines are looked at so often. */
#define FLYING_SLEEP_MS 20

/* An ending worker waits so long for the chains under way. */
#define CLOSE_PATIENCE_MS 1000u

/* A link's own, of a call that waits for it, and one of each link with chains under way. */
_Static_assert(FABRIC_WORKER_DESCRIPTORS >= PROXY_LINKS + 4, "descriptors for all links");

typedef enum ServeResult
{
	SERVE_NOTHING, /* the slot has no request */
	SERVE_DONE,
	SERVE_LATER /* it has one, which has to wait for something */
} ServeResult;

/* Is the slot one of ours, and not free? */
static bool
slot_is_ours(const FabricWorker *worker, uint32_t slot, uint64_t *word)
{
	*word = __atomic_load_n(proxy_state_word(worker->area, slot), __ATOMIC_ACQUIRE);
	return proxy_slot_state(*word) != PROXY_FREE && proxy_slot_worker(*word) == worker->options.worker;
}

/* Nothing of the slot is under way, and its client has gone. */
static void
slot_free(FabricWorker *worker, uint32_t number, uint64_t word)
{
	ProxySlot *slot = proxy_slot(worker->area, number);

	for (uint32_t i = 0; i < PROXY_PLACES; i++)
		__atomic_store_n(&slot->places[i].state, PROXY_EMPTY, __ATOMIC_RELAXED);
	slot->taken = 0;
	slot->sleeping = 0;
	worker->clients[number].link = NULL;
	__atomic_store_n(proxy_state_word(worker->area, number),
	                 proxy_slot_word(proxy_slot_serial(word), 0, 0, PROXY_FREE), __ATOMIC_RELEASE);
	links_trim(worker);
}

/* ---- requests ---- */

/* Takes a chain's operations out of the room; false: they do not fit there, as no client of ours would have it. */
static bool
take_chain(ProxySlot *slot, const ProxyPlace *place, FabricOp *ops, uint32_t count)
{
	const ProxyOp *shared = (const ProxyOp *) (const void *) (slot->room + place->start);
	uint64_t position = (uint64_t) place->start + count * sizeof(ProxyOp);

	if (count < 1 || count > FABRIC_MAX_CHAIN || place->start % PROXY_ALIGN != 0 ||
	    position > PROXY_ROOM_BYTES)
		return false;
	for (uint32_t i = 0; i < count; i++)
	{
		ops[i] = (FabricOp){.opcode = shared[i].opcode,
		                    .region = shared[i].region,
		                    .length = shared[i].length,
		                    .offset = shared[i].offset,
		                    .compare = shared[i].compare,
		                    .operand = shared[i].operand};
		if (ops[i].opcode != FABRIC_READ && ops[i].opcode != FABRIC_WRITE)
			continue;
		if (ops[i].length > FABRIC_STRIPE_BYTES || position + ops[i].length > PROXY_ROOM_BYTES)
			return false;
		ops[i].buffer = slot->room + position;
		position += ops[i].length;
	}
	return true;
}

static ServeResult
serve_chain(FabricWorker *worker, uint32_t number, ProxyPlace *place)
{
	ProxySlot *slot = proxy_slot(worker->area, number);
	ProxyLink *link = worker->clients[number].link;
	FabricOp ops[FABRIC_MAX_CHAIN];
	uint32_t count = place->count;

	/* Made for a channel that is dead by now, perhaps with that channel's redo slot in it. */
	if (link == NULL || link->endpoint == NULL || link->epoch != place->epoch)
	{
		slot->taken++;
		place_finish(worker, number, place, FABRIC_LOST, "the channel was replaced");
		return SERVE_DONE;
	}
	if (link == worker->busy)
		return SERVE_LATER;
	slot->taken++;
	if (!take_chain(slot, place, ops, count))
		place_finish(worker, number, place, FABRIC_PROTOCOL, "a chain outside its room");
	else if (link_chain(worker, link, number, place, ops, (int) count) == FABRIC_BUSY)
	{
		slot->taken--;
		return SERVE_LATER;
	}
	worker_count_up(&worker->state->chains, 1);
	worker_count_up(&worker->state->operations, count);
	return SERVE_DONE;
}

static FabricStatus
run_call(ProxyLink *link, ProxySlot *slot, ProxyPlace *place)
{
	uint8_t request[FABRIC_MAX_CALL_BYTES];
	uint32_t room = place->room;
	uint32_t bytes = place->bytes;
	uint8_t *data = slot->room + place->start;
	FabricStatus status;

	if (bytes > sizeof(request) || place->start > PROXY_ROOM_BYTES ||
	    bytes > PROXY_ROOM_BYTES - place->start ||
	    (room != UINT32_MAX && room > PROXY_ROOM_BYTES - place->start))
		return FABRIC_PROTOCOL;
	/* The reply comes to the same place. */
	memcpy(request, data, bytes);
	place->answer = room == UINT32_MAX ? 0 : room;
	status = fabric_call(link->endpoint, (uint16_t) place->count, request, bytes, data,
	                     room == UINT32_MAX ? NULL : &place->answer);
	if (status == FABRIC_LOST)
		link->unverified = true;
	return status;
}

static FabricStatus
run_attach(ProxyLink *link, ProxySlot *slot, const ProxyPlace *place)
{
	uint64_t words[2];
	uint32_t numbers[2] = {0, 0};
	FabricStatus status;

	if (place->start > PROXY_ROOM_BYTES - sizeof(words))
		return FABRIC_PROTOCOL;
	memcpy(words, slot->room + place->start, sizeof(words));
	status = fabric_attach(link->endpoint, words[0] != 0, words[1], &numbers[0], &numbers[1]);
	if (status == FABRIC_LOST)
		link->unverified = true;
	words[0] = numbers[0];
	words[1] = numbers[1];
	memcpy(slot->room + place->start, words, sizeof(words));
	return status;
}

static FabricStatus
run_establish(FabricWorker *worker, uint32_t number, const ProxyPlace *place)
{
	ProxySlot *slot = proxy_slot(worker->area, number);
	ProxyLink *link = worker->clients[number].link;
	FabricStatus status = link_ready(worker, link, place->asked);

	if (status == FABRIC_OK)
	{
		slot->answer.capabilities = *fabric_capabilities(link->endpoint);
		slot->answer.epoch = link->epoch;
		slot->answer.life = worker->state->life;
		links_trim(worker);
	}
	return status;
}

/* A request that waits for the memory node in the worker: none of them begins while another goes on. */
static ServeResult
serve_slowly(FabricWorker *worker, uint32_t number, ProxyPlace *place)
{
	ProxySlot *slot = proxy_slot(worker->area, number);
	ProxyClient *client = &worker->clients[number];
	FabricStatus status = FABRIC_NO_MEMORY;

	if (worker->nested || client->flights > 0)
		return SERVE_LATER;
	if (place->kind == PROXY_ESTABLISH)
	{
		client->link = NULL;
		client->link = link_find(worker, number);
		/* The reset of a link is for when all that was under way on it has ended. */
		if (client->link != NULL && client->link->first != NULL && link_in_doubt(client->link))
			return SERVE_LATER;
	}
	slot->taken++;
	worker_count_up(&worker->state->calls, 1);
	if (client->link == NULL)
		place_finish(worker, number, place, place->kind == PROXY_ESTABLISH ? FABRIC_NO_MEMORY : FABRIC_LOST,
		             "the connection worker has no endpoint for it");
	else
	{
		ProxyLink *link = client->link;

		client->flights++;
		worker->busy = link;
		if (place->kind == PROXY_ESTABLISH)
			status = run_establish(worker, number, place);
		else if (link->endpoint == NULL || link->epoch != place->epoch)
			status = FABRIC_LOST;
		else if (place->kind == PROXY_CALL)
			status = run_call(link, slot, place);
		else
			status = run_attach(link, slot, place);
		worker->busy = NULL;
		client->flights--;
		place_finish(worker, number, place, status,
		             link->fabric == NULL ? NULL : fabric_detail(link->fabric));
	}
	return SERVE_DONE;
}

static ServeResult
serve_slot(FabricWorker *worker, uint32_t number)
{
	ProxySlot *slot = proxy_slot(worker->area, number);
	ProxyPlace *place;
	uint64_t word;

	if (!slot_is_ours(worker, number, &word))
		return SERVE_NOTHING;
	if (proxy_slot_state(word) == PROXY_CLOSING)
	{
		if (worker->clients[number].flights > 0)
			return SERVE_LATER;
		slot_free(worker, number, word);
		return SERVE_DONE;
	}
	place = &slot->places[slot->taken % PROXY_PLACES];
	if (__atomic_load_n(&place->state, __ATOMIC_SEQ_CST) != PROXY_POSTED || place->position != slot->taken)
		return SERVE_NOTHING;
	return place->kind == PROXY_CHAIN ? serve_chain(worker, number, place)
	                                  : serve_slowly(worker, number, place);
}

/* ---- the loop ---- */

static bool
doorbell_rang(const FabricWorker *worker)
{
	const uint64_t *doorbell = proxy_doorbell(worker->area, worker->options.worker);

	for (uint32_t i = 0; i < proxy_doorbell_words(worker->area->slots); i++)
	{
		if (__atomic_load_n(&doorbell[i], __ATOMIC_SEQ_CST) != 0)
			return true;
	}
	return __atomic_load_n(&worker->state->sweep_wanted, __ATOMIC_SEQ_CST) != worker->state->sweeps;
}

static void
take_doorbell(FabricWorker *worker)
{
	uint64_t *doorbell = proxy_doorbell(worker->area, worker->options.worker);

	for (uint32_t i = 0; i < proxy_doorbell_words(worker->area->slots); i++)
	{
		if (__atomic_load_n(&doorbell[i], __ATOMIC_RELAXED) != 0)
			worker->todo[i] |= __atomic_exchange_n(&doorbell[i], 0, __ATOMIC_SEQ_CST);
	}
}

/* The next slot from `from` on with its bit set, or `to`. */
static uint32_t
next_todo(const FabricWorker *worker, uint32_t from, uint32_t to)
{
	while (from < to)
	{
		uint64_t bits = worker->todo[from / 64] >> from % 64;

		if (bits != 0)
		{
			from += (uint32_t) __builtin_ctzll(bits);
			return from < to ? from : to;
		}
		from = (from / 64 + 1) * 64;
	}
	return to;
}

/* Serves one request of each slot in [from, to) that has one. */
static bool
serve_range(FabricWorker *worker, uint32_t from, uint32_t to, uint32_t *waiting)
{
	bool any = false;

	for (uint32_t slot = next_todo(worker, from, to); slot < to; slot = next_todo(worker, slot + 1, to))
	{
		ServeResult result = serve_slot(worker, slot);

		any |= result == SERVE_DONE;
		if (result == SERVE_NOTHING)
			worker->todo[slot / 64] &= ~(1ull << slot % 64);
		else if (result == SERVE_LATER && *waiting == UINT32_MAX)
			*waiting = slot;
	}
	return any;
}

/* A round: one request of each slot. Slots that had to wait for an endpoint's queue come first in the next one. */
static bool
serve_round(FabricWorker *worker)
{
	uint32_t first = worker->turn;
	uint32_t waiting = UINT32_MAX;
	bool any;

	take_doorbell(worker);
	any = serve_range(worker, first, worker->area->slots, &waiting);
	any |= serve_range(worker, 0, first, &waiting);
	worker->turn = waiting != UINT32_MAX ? waiting : first;
	return links_round(worker) || any;
}

/* Gives back the slots of clients that have ended without a word. */
static void
sweep(FabricWorker *worker)
{
	uint32_t wanted = __atomic_load_n(&worker->state->sweep_wanted, __ATOMIC_SEQ_CST);
	uint64_t now = fabric_now();

	if (wanted == worker->state->sweeps && now < worker->next_sweep)
		return;
	worker->next_sweep = now + (uint64_t) SWEEP_MS * 1000000;
	for (uint32_t i = 0; i < worker->area->slots; i++)
	{
		uint64_t word;

		if (!slot_is_ours(worker, i, &word))
			continue;
		if (proxy_slot_state(word) == PROXY_TAKEN && worker->options.owner_is_gone != NULL &&
		    worker->options.owner_is_gone(worker->options.argument, proxy_slot_owner(word)))
		{
			word = proxy_slot_word(proxy_slot_serial(word), proxy_slot_owner(word), worker->options.worker,
			                       PROXY_CLOSING);
			__atomic_store_n(proxy_state_word(worker->area, i), word, __ATOMIC_RELAXED);
		}
		if (proxy_slot_state(word) == PROXY_CLOSING && serve_slot(worker, i) == SERVE_LATER)
			worker->todo[i / 64] |= 1ull << i % 64;
	}
	__atomic_store_n(&worker->state->sweeps, wanted, __ATOMIC_RELEASE);
}

/*
 * Sleeps until a client has posted something, a chain may have ended, or one of the descriptors is readable: then
 * returns their number.
 */
static int
worker_sleep(FabricWorker *worker, const int *descriptors, int count, int milliseconds)
{
	int all[FABRIC_WORKER_DESCRIPTORS];
	struct pollfd polled[4];
	bool flying;
	int more = links_descriptors(worker, all + count, &flying);
	int result = 0;

	for (int i = 0; i < count; i++)
		all[i] = descriptors[i];
	if (flying && milliseconds > FLYING_SLEEP_MS)
		milliseconds = FLYING_SLEEP_MS;
	__atomic_store_n(&worker->state->sleeping, 1, __ATOMIC_SEQ_CST);
	if (!doorbell_rang(worker))
	{
		worker_count_up(&worker->state->sleeps, 1);
		result = worker->options.wait(worker->options.argument, all, count + more, milliseconds);
	}
	__atomic_store_n(&worker->state->sleeping, 0, __ATOMIC_SEQ_CST);
	if (result < 0)
		worker->stopped = true;
	if (result <= 0 || count == 0)
		return result;
	for (int i = 0; i < count; i++)
		polled[i] = (struct pollfd){.fd = descriptors[i], .events = POLLIN};
	result = poll(polled, (nfds_t) count, 0);
	return result < 0 ? 0 : result;
}

/* FabricWorker.wait. */
static int
worker_wait(void *argument, const int *descriptors, int count, int milliseconds)
{
	FabricWorker *worker = argument;
	bool any = false;

	if (worker->stopped)
		return -1;
	if (count > 4)
		count = 4;
	if (worker->nested)
		return worker->options.wait(worker->options.argument, descriptors, count, milliseconds);
	worker->nested = true;
	any = serve_round(worker);
	worker->nested = false;
	return worker_sleep(worker, descriptors, count, any ? 0 : milliseconds);
}

FabricStatus
fabric_worker_step(FabricWorker *worker, int milliseconds)
{
	uint64_t end = fabric_now() + (uint64_t) milliseconds * 1000000;

	for (;;)
	{
		bool any = serve_round(worker);
		uint64_t now = fabric_now();

		sweep(worker);
		if (worker->stopped)
			return FABRIC_STOPPED;
		if (now >= end)
			return FABRIC_OK;
		if (any)
			spin_success(&worker->spin);
		else if (!spin_again(&worker->spin))
			worker_sleep(worker, NULL, 0, (int) ((end - now) / 1000000) + 1);
	}
}

/* ---- opening and closing ---- */

/* Requests that the last worker of this number had begun are indeterminate: fails them at their clients. */
static void
adopt_slots(FabricWorker *worker)
{
	for (uint32_t i = 0; i < worker->area->slots; i++)
	{
		ProxySlot *slot = proxy_slot(worker->area, i);
		uint64_t word;

		if (!slot_is_ours(worker, i, &word))
			continue;
		for (uint32_t j = 0; j < PROXY_PLACES; j++)
		{
			ProxyPlace *place = &slot->places[j];

			if (__atomic_load_n(&place->state, __ATOMIC_SEQ_CST) == PROXY_POSTED &&
			    place->position < slot->taken)
				place_finish(worker, i, place, FABRIC_LOST, "the connection worker was replaced");
		}
		worker->todo[i / 64] |= 1ull << i % 64;
	}
}

FabricStatus
fabric_worker_open(const FabricWorkerOptions *options, FabricWorker **worker)
{
	FabricWorker *opened = calloc(1, sizeof(FabricWorker));
	uint32_t slots = options->area->slots;
	ProxyWorkerState *state = proxy_worker(options->area, options->worker);

	if (opened != NULL)
	{
		opened->clients = calloc(slots, sizeof(ProxyClient));
		opened->todo = calloc(proxy_doorbell_words(slots), sizeof(uint64_t));
	}
	if (opened == NULL || opened->clients == NULL || opened->todo == NULL)
	{
		fabric_worker_close(opened);
		return FABRIC_NO_MEMORY;
	}
	opened->options = *options;
	opened->wait = worker_wait;
	opened->area = options->area;
	opened->state = state;
	state->endpoints = 0;
	for (uint32_t i = 0; i < PROXY_LINKS; i++)
		opened->links[i].record = &state->records[i];
	adopt_slots(opened);
	__atomic_store_n(&state->life, ((state->life >> 1) + 1) << 1 | 1, __ATOMIC_RELEASE);
	*worker = opened;
	return FABRIC_OK;
}

uint32_t
fabric_worker_clients(const FabricWorker *worker)
{
	uint32_t count = 0;
	uint64_t word;

	for (uint32_t i = 0; i < worker->area->slots; i++)
		count += slot_is_ours(worker, i, &word);
	return count;
}

void
fabric_worker_close(FabricWorker *worker)
{
	uint64_t end = fabric_now() + (uint64_t) CLOSE_PATIENCE_MS * 1000000;
	bool flying = true;

	if (worker == NULL)
		return;
	if (worker->state != NULL)
	{
		while (flying && !worker->stopped && fabric_now() < end)
		{
			int descriptors[FABRIC_WORKER_DESCRIPTORS];

			if (links_round(worker))
				continue;
			links_descriptors(worker, descriptors, &flying);
			if (flying)
				worker_sleep(worker, NULL, 0, FLYING_SLEEP_MS);
		}
		links_close(worker);
		__atomic_store_n(&worker->state->life, worker->state->life & ~1ull, __ATOMIC_SEQ_CST);
		for (uint32_t i = 0; i < worker->area->slots; i++)
		{
			uint64_t word;

			if (slot_is_ours(worker, i, &word))
				worker_wake_client(worker, i);
		}
	}
	free(worker->todo);
	free(worker->clients);
	free(worker);
}
