/*
 * proxy.c
 *		The client's end of connection workers: a transport whose endpoint is a slot of the shared area.
 */
#define _GNU_SOURCE 1
#include <stdlib.h>
#include <string.h>

#include "rdma/proxy/proxy_state.h"

/* A worker that is looked for, or a slot, is asked after again in this time. */
#define RETRY_MS 1

#define AREA_PAGE 4096u

/* What this side knows of a place that is not EMPTY. */
typedef struct ProxyRequest
{
	uint64_t ticket; /* of a chain that was posted */
	FabricOp *ops;
	int count;
	uint32_t need; /* bytes that its piece of the room takes, with what was left over at the room's end */
	bool over;     /* nobody waits for it any more */
} ProxyRequest;

/* A chain in parts runs inside post; its wait finds the status here. */
typedef struct ProxyPartsRun
{
	uint64_t ticket;
	FabricStatus status;
} ProxyPartsRun;

typedef struct ProxyState
{
	const FabricProxy *proxy;
	FabricProxyArea *area;
	ProxySlot *slot;
	uint32_t number; /* of the slot */
	uint32_t worker;
	uint64_t word;  /* the slot's state word while it is ours */
	uint64_t life;  /* of the worker that holds our endpoint */
	uint64_t epoch; /* of that endpoint's channel */
	uint64_t next;  /* position of the next request */
	uint64_t tail;  /* of the oldest whose place is not EMPTY */
	uint32_t room_next;
	uint32_t room_used;
	bool establishing; /* the last request is a PROXY_ESTABLISH that was not waited for to its end */
	bool draining;     /* the memory node's last word about it */
	Spin spin;
	ProxyRequest requests[PROXY_PLACES];
	ProxyPartsRun runs[TRANSPORT_TICKETS];
} ProxyState;

/* ---- the area ---- */

/* Where the parts of an area lie; returns its length. */
static size_t
plan_area(FabricProxyArea *plan, uint32_t workers, uint32_t slots)
{
	size_t offset = 128;

	plan->workers = workers;
	plan->slots = slots;
	plan->workers_offset = offset;
	offset += workers * sizeof(ProxyWorkerState);
	plan->doorbells_offset = offset;
	offset += (size_t) workers * ((proxy_doorbell_words(slots) + 15) / 16 * 128);
	plan->states_offset = offset;
	offset += (size_t) slots * sizeof(uint64_t);
	plan->slots_offset = (offset + AREA_PAGE - 1) / AREA_PAGE * AREA_PAGE;
	return plan->slots_offset + (size_t) slots * sizeof(ProxySlot);
}

size_t
fabric_proxy_bytes(uint32_t workers, uint32_t slots)
{
	FabricProxyArea plan;

	return plan_area(&plan, workers, slots);
}

FabricProxyArea *
fabric_proxy_initialize(void *memory, uint32_t workers, uint32_t slots)
{
	FabricProxyArea *area = memory;

	if (workers < 1 || workers > FABRIC_PROXY_MAX_WORKERS || slots < 1 || ((uintptr_t) memory & 127) != 0)
		return NULL;
	plan_area(area, workers, slots);
	area->magic = PROXY_MAGIC;
	return area;
}

void
fabric_worker_figures(FabricProxyArea *area, uint32_t worker, FabricWorkerFigures *figures)
{
	const ProxyWorkerState *state = proxy_worker(area, worker);
	uint64_t life = __atomic_load_n(&state->life, __ATOMIC_RELAXED);

	*figures = (FabricWorkerFigures){
		.serves = proxy_life_serves(life),
		.lives = life >> 1,
		.endpoints = __atomic_load_n(&state->endpoints, __ATOMIC_RELAXED),
		.chains = __atomic_load_n(&state->chains, __ATOMIC_RELAXED),
		.operations = __atomic_load_n(&state->operations, __ATOMIC_RELAXED),
		.calls = __atomic_load_n(&state->calls, __ATOMIC_RELAXED),
		.resets = __atomic_load_n(&state->resets, __ATOMIC_RELAXED),
		.lost = __atomic_load_n(&state->lost, __ATOMIC_RELAXED),
		.sleeps = __atomic_load_n(&state->sleeps, __ATOMIC_RELAXED),
	};
	for (uint32_t i = 0; i < area->slots; i++)
	{
		uint64_t word = __atomic_load_n(proxy_state_word(area, i), __ATOMIC_RELAXED);

		if (proxy_slot_state(word) != PROXY_FREE && proxy_slot_worker(word) == worker)
			figures->clients++;
	}
}

/* ---- waking and waiting ---- */

static uint64_t
worker_life(const ProxyState *p)
{
	return __atomic_load_n(&proxy_worker(p->area, p->worker)->life, __ATOMIC_ACQUIRE);
}

static void
wake_worker(const FabricProxy *proxy, uint32_t worker)
{
	ProxyWorkerState *state = proxy_worker(proxy->area, worker);

	if (__atomic_load_n(&state->sleeping, __ATOMIC_SEQ_CST) != 0 &&
	    __atomic_exchange_n(&state->sleeping, 0, __ATOMIC_SEQ_CST) != 0)
		proxy->wake_worker(proxy->argument, worker);
}

static void
ring_doorbell(const ProxyState *p)
{
	__atomic_fetch_or(&proxy_doorbell(p->area, p->worker)[p->number / 64], 1ull << p->number % 64,
	                  __ATOMIC_SEQ_CST);
	wake_worker(p->proxy, p->worker);
}

static inline bool
place_is_done(const ProxyState *p, uint64_t position)
{
	return __atomic_load_n(&p->slot->places[position % PROXY_PLACES].state, __ATOMIC_SEQ_CST) == PROXY_DONE;
}

/* A little sleep; FABRIC_STOPPED: the wait hook asked to stop. */
static FabricStatus
sleep_slice(FabricEndpoint *endpoint, uint64_t deadline, int milliseconds)
{
	const FabricProxy *proxy = endpoint->fabric->options.proxy;
	uint64_t now = fabric_now();

	if (now >= deadline)
		return FABRIC_TIMED_OUT;
	if ((deadline - now) / 1000000 < (uint64_t) milliseconds)
		milliseconds = (int) ((deadline - now) / 1000000) + 1;
	proxy->sleep(proxy->argument, milliseconds);
	return fabric_sleep(endpoint->fabric, NULL, 0, 0) < 0 ? FABRIC_STOPPED : FABRIC_OK;
}

/* Waits until the place is DONE; FABRIC_LOST: our worker has ended before it was. */
static FabricStatus
place_wait(FabricEndpoint *endpoint, uint64_t position, uint64_t deadline)
{
	ProxyState *p = endpoint->state;
	FabricStatus status = FABRIC_OK;
	int slice = 1;

	while (status == FABRIC_OK && !place_is_done(p, position))
	{
		if (spin_again(&p->spin))
			continue;
		__atomic_store_n(&p->slot->sleeping, 1, __ATOMIC_SEQ_CST);
		if (place_is_done(p, position))
			break;
		if (worker_life(p) != p->life)
			status = FABRIC_LOST;
		else
			status = sleep_slice(endpoint, deadline, slice);
		slice = slice < PROXY_SLICE_MS / 2 ? 2 * slice : PROXY_SLICE_MS;
	}
	__atomic_store_n(&p->slot->sleeping, 0, __ATOMIC_RELAXED);
	spin_success(&p->spin);
	/* The last thing that the worker did may have been our request. */
	return place_is_done(p, position) ? FABRIC_OK : status;
}

/* ---- the ring ---- */

/* Gives back the places and the room of the oldest requests that are over. */
static void
place_reap(ProxyState *p)
{
	while (p->tail < p->next)
	{
		const ProxyRequest *request = &p->requests[p->tail % PROXY_PLACES];

		if (!request->over || !place_is_done(p, p->tail))
			return;
		__atomic_store_n(&p->slot->places[p->tail % PROXY_PLACES].state, PROXY_EMPTY, __ATOMIC_RELAXED);
		p->room_used -= request->need;
		p->tail++;
	}
	p->room_next = 0;
}

/* Finds a place and a piece of the room. NULL: there is none. */
static ProxyPlace *
place_find(ProxyState *p, ProxyKind kind, uint32_t bytes)
{
	uint32_t places = kind == PROXY_ESTABLISH ? PROXY_PLACES : PROXY_PLACES - 1;
	ProxyPlace *place;
	uint32_t start;
	uint32_t need;

	place_reap(p);
	bytes = (bytes + PROXY_ALIGN - 1) / PROXY_ALIGN * PROXY_ALIGN;
	start = p->room_next + bytes <= PROXY_ROOM_BYTES ? p->room_next : 0;
	need = start == p->room_next ? bytes : PROXY_ROOM_BYTES - p->room_next + bytes;
	if (p->next - p->tail >= places || p->room_used + need > PROXY_ROOM_BYTES)
		return NULL;
	p->room_next = start + bytes;
	p->room_used += need;
	p->requests[p->next % PROXY_PLACES] = (ProxyRequest){.need = need};
	place = &p->slot->places[p->next % PROXY_PLACES];
	place->kind = kind;
	place->position = p->next;
	place->epoch = p->epoch;
	place->start = start;
	place->bytes = bytes;
	place->detail[0] = 0;
	return place;
}

/* Hands the place over. */
static uint64_t
place_post(ProxyState *p, ProxyPlace *place)
{
	__atomic_store_n(&place->state, PROXY_POSTED, __ATOMIC_SEQ_CST);
	ring_doorbell(p);
	return p->next++;
}

/* Waits for a request to its end, or gives it up. */
static FabricStatus
request_wait(FabricEndpoint *endpoint, uint64_t position, FabricWait wait)
{
	ProxyState *p = endpoint->state;
	const ProxyPlace *place = &p->slot->places[position % PROXY_PLACES];
	FabricStatus status = place_wait(endpoint, position, fabric_deadline(endpoint->fabric, wait));

	if (status == FABRIC_OK)
	{
		status = (FabricStatus) place->status;
		if (status != FABRIC_OK)
			fabric_set_detail(endpoint->fabric, "connection worker: %.*s", (int) sizeof(place->detail) - 1,
			                  place->detail);
	}
	else if (status == FABRIC_LOST)
		fabric_set_detail(endpoint->fabric, "connection worker %u has ended", p->worker);
	else if (status == FABRIC_TIMED_OUT)
		fabric_set_detail(endpoint->fabric, "connection worker %u has not answered in time", p->worker);
	p->requests[position % PROXY_PLACES].over = true;
	return status;
}

/* ---- chains ---- */

static inline bool
carries_data(const FabricOp *op)
{
	return op->opcode == FABRIC_READ || op->opcode == FABRIC_WRITE;
}

/* How many of the operations fit the room together; *bytes: what they take. */
static int
part_length(const FabricOp *ops, int count, uint32_t *bytes)
{
	int length = 0;

	*bytes = 0;
	while (length < count)
	{
		uint32_t more = (uint32_t) sizeof(ProxyOp) + (carries_data(&ops[length]) ? ops[length].length : 0);

		if (*bytes + more > PROXY_ROOM_BYTES)
			break;
		*bytes += more;
		length++;
	}
	return length;
}

/* Hands over operations that fit the room. */
static FabricStatus
part_post(FabricEndpoint *endpoint, FabricOp *ops, int count, uint32_t bytes, uint64_t *position)
{
	ProxyState *p = endpoint->state;
	ProxyPlace *place;
	ProxyOp *shared;
	uint8_t *data;

	if (worker_life(p) != p->life)
	{
		fabric_set_detail(endpoint->fabric, "connection worker %u has ended", p->worker);
		return FABRIC_LOST;
	}
	place = place_find(p, PROXY_CHAIN, bytes);
	if (place == NULL)
		return FABRIC_BUSY;
	place->count = (uint32_t) count;
	shared = (ProxyOp *) (void *) (p->slot->room + place->start);
	data = (uint8_t *) (shared + count);
	for (int i = 0; i < count; i++)
	{
		const FabricOp *op = &ops[i];

		shared[i] = (ProxyOp){op->opcode, op->region, 0, op->length, op->offset, op->compare, op->operand, 0};
		if (op->opcode == FABRIC_WRITE)
			memcpy(data, op->buffer, op->length);
		if (carries_data(op))
			data += op->length;
	}
	p->requests[p->next % PROXY_PLACES].ops = ops;
	p->requests[p->next % PROXY_PLACES].count = count;
	*position = place_post(p, place);
	return FABRIC_OK;
}

/* Waits for them, and takes the results. */
static FabricStatus
part_wait(FabricEndpoint *endpoint, uint64_t position)
{
	ProxyState *p = endpoint->state;
	const ProxyRequest *request = &p->requests[position % PROXY_PLACES];
	FabricStatus status = request_wait(endpoint, position, FABRIC_WAIT_CHAIN);
	const ProxyOp *shared;
	const uint8_t *data;

	if (status != FABRIC_OK)
		return status;
	shared =
		(const ProxyOp *) (const void *) (p->slot->room + p->slot->places[position % PROXY_PLACES].start);
	data = (const uint8_t *) (shared + request->count);
	p->draining = p->slot->places[position % PROXY_PLACES].draining != 0;
	for (int i = 0; i < request->count; i++)
	{
		FabricOp *op = &request->ops[i];

		if (op->opcode == FABRIC_READ)
			memcpy(op->buffer, data, op->length);
		if (carries_data(op))
			data += op->length;
		else
			op->result = shared[i].result;
	}
	return FABRIC_OK;
}

/*
 * Between the parts of a chain other clients' chains may run on the same channel: that makes no difference, except in
 * the redo slot, which all of them use.
 */
static bool
may_be_cut(const FabricEndpoint *endpoint, const FabricOp *ops, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (proxy_touches_redo(&ops[i], &endpoint->capabilities))
			return false;
	}
	return true;
}

static FabricStatus
proxy_execute(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	FabricStatus status = FABRIC_OK;
	int done = 0;

	while (done < count && status == FABRIC_OK)
	{
		uint64_t position;
		uint32_t bytes;
		int length = part_length(ops + done, count - done, &bytes);

		if (done == 0 && length < count && !may_be_cut(endpoint, ops, count))
			return FABRIC_PROTOCOL;
		status = part_post(endpoint, ops + done, length, bytes, &position);
		if (status == FABRIC_OK)
			status = part_wait(endpoint, position);
		/* "Nothing happened" is no longer true behind the first part. */
		if (done > 0 && (status == FABRIC_BUSY || status == FABRIC_RANGE || status == FABRIC_PROTOCOL))
			status = FABRIC_LOST;
		done += length;
	}
	return status;
}

static FabricStatus
proxy_post(FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t ticket)
{
	ProxyState *p = endpoint->state;
	FabricStatus status;
	uint64_t position;
	uint32_t bytes;

	if (part_length(ops, count, &bytes) < count)
	{
		status = proxy_execute(endpoint, ops, count);
		if (status == FABRIC_BUSY || status == FABRIC_RANGE || status == FABRIC_PROTOCOL)
			return status;
		if (status != FABRIC_OK)
			endpoint->doubt = true;
		p->runs[ticket % TRANSPORT_TICKETS] = (ProxyPartsRun){ticket, status};
		return FABRIC_OK;
	}
	status = part_post(endpoint, ops, count, bytes, &position);
	if (status == FABRIC_OK)
		p->requests[position % PROXY_PLACES].ticket = ticket;
	return status;
}

/* Position of the posted chain; p->next: it ran in parts, inside post. */
static uint64_t
find_ticket(const ProxyState *p, uint64_t ticket)
{
	uint64_t position = p->tail;

	while (position < p->next && p->requests[position % PROXY_PLACES].ticket != ticket)
		position++;
	return position;
}

static FabricStatus
proxy_wait(FabricEndpoint *endpoint, uint64_t ticket)
{
	ProxyState *p = endpoint->state;
	uint64_t position = find_ticket(p, ticket);
	const ProxyPartsRun *run = &p->runs[ticket % TRANSPORT_TICKETS];

	if (position < p->next)
		return part_wait(endpoint, position);
	return run->ticket == ticket ? run->status : FABRIC_LOST;
}

static bool
proxy_ended(FabricEndpoint *endpoint, uint64_t ticket)
{
	const ProxyState *p = endpoint->state;
	uint64_t position = find_ticket(p, ticket);

	return position == p->next || place_is_done(p, position) || worker_life(p) != p->life;
}

/* ---- calls ---- */

static FabricStatus
proxy_call(FabricEndpoint *endpoint, uint16_t method, const void *request, uint32_t request_bytes,
           void *reply, uint32_t *reply_bytes)
{
	ProxyState *p = endpoint->state;
	uint32_t room = reply_bytes == NULL ? 0 : *reply_bytes;
	ProxyPlace *place;
	const uint8_t *answer;
	uint64_t position;
	FabricStatus status;

	if (reply_bytes != NULL)
		*reply_bytes = 0;
	if (room > FABRIC_MAX_CALL_BYTES)
		room = FABRIC_MAX_CALL_BYTES;
	if (worker_life(p) != p->life)
		return FABRIC_LOST;
	place = place_find(p, PROXY_CALL, request_bytes > room ? request_bytes : room);
	if (place == NULL)
		return FABRIC_BUSY;
	answer = p->slot->room + place->start;
	place->bytes = request_bytes;
	place->count = method;
	place->room = reply_bytes == NULL ? UINT32_MAX : room;
	if (request_bytes > 0)
		memcpy(p->slot->room + place->start, request, request_bytes);
	position = place_post(p, place);
	status = request_wait(endpoint, position, FABRIC_WAIT_CALL);
	if (status == FABRIC_OK && place->answer > 0)
	{
		memcpy(reply, answer, place->answer);
		*reply_bytes = place->answer;
	}
	return status;
}

static FabricStatus
proxy_attach(FabricEndpoint *endpoint, bool resume, uint64_t launcher_nonce, uint32_t *instance,
             uint32_t *incarnation)
{
	ProxyState *p = endpoint->state;
	uint64_t words[2] = {resume, launcher_nonce};
	ProxyPlace *place;
	uint64_t position;
	FabricStatus status;

	if (worker_life(p) != p->life)
		return FABRIC_LOST;
	place = place_find(p, PROXY_ATTACH, sizeof(words));
	if (place == NULL)
		return FABRIC_BUSY;
	memcpy(p->slot->room + place->start, words, sizeof(words));
	position = place_post(p, place);
	status = request_wait(endpoint, position, FABRIC_WAIT_CONNECT);
	if (status == FABRIC_OK)
	{
		memcpy(words, p->slot->room + place->start, sizeof(words));
		*instance = (uint32_t) words[0];
		*incarnation = (uint32_t) words[1];
	}
	return status;
}

/* ---- connecting ---- */

static void
take_answer(FabricEndpoint *endpoint)
{
	ProxyState *p = endpoint->state;
	const ProxyAnswer *answer = &p->slot->answer;

	endpoint->capabilities = answer->capabilities;
	memcpy(endpoint->capabilities.transport, "proxy", 6);
	endpoint->capabilities.flags |= FABRIC_CAP_SHARED_CHANNEL;
	endpoint->capabilities.max_outstanding = PROXY_PLACES - 1;
	p->draining = false;
	p->epoch = answer->epoch;
	p->life = answer->life;
}

/* A reset ends all chains that were posted before it, and nobody waits for them any more: their room is free again. */
static void
requests_end(ProxyState *p)
{
	for (uint64_t position = p->tail; position < p->next; position++)
		p->requests[position % PROXY_PLACES].over = true;
}

/*
 * Has the worker connect, or reset, the endpoint that we want, after all that we handed over has come to its end;
 * waits for a worker, if ours has ended.
 */
static FabricStatus
establish(FabricEndpoint *endpoint)
{
	ProxyState *p = endpoint->state;
	uint64_t deadline = fabric_deadline(endpoint->fabric, FABRIC_WAIT_CONNECT);
	FabricStatus status = FABRIC_OK;

	while (status == FABRIC_OK)
	{
		uint64_t position;

		p->life = worker_life(p);
		if (!proxy_life_serves(p->life))
		{
			fabric_set_detail(endpoint->fabric, "connection worker %u does not serve", p->worker);
			status = sleep_slice(endpoint, deadline, PROXY_SLICE_MS);
			continue;
		}
		/* One that we stopped waiting for is as good as another: nothing was posted behind it. */
		if (!p->establishing)
		{
			ProxyPlace *place = place_find(p, PROXY_ESTABLISH, 0);

			if (place == NULL)
				return FABRIC_BUSY;
			place->asked = fabric_now();
			place_post(p, place);
			p->establishing = true;
		}
		position = p->next - 1;
		status = place_wait(endpoint, position, deadline);
		if (status == FABRIC_LOST)
			status = FABRIC_OK;
		else if (status == FABRIC_OK)
		{
			const ProxyPlace *place = &p->slot->places[position % PROXY_PLACES];

			status = (FabricStatus) place->status;
			p->requests[position % PROXY_PLACES].over = true;
			p->establishing = false;
			if (status == FABRIC_OK)
			{
				requests_end(p);
				take_answer(endpoint);
				return FABRIC_OK;
			}
			/* A worker that ended took it along: the next one is asked. */
			if (status == FABRIC_LOST)
				status = fabric_now() < deadline ? FABRIC_OK : FABRIC_TIMED_OUT;
			else
				fabric_set_detail(endpoint->fabric, "connection worker: %.*s",
				                  (int) sizeof(place->detail) - 1, place->detail);
		}
	}
	return status;
}

/* Takes a free slot for the worker with the fewest clients. FABRIC_NO_MEMORY: all are taken; FABRIC_BUSY. */
static FabricStatus
slot_try_take(ProxyState *p)
{
	uint32_t clients[FABRIC_PROXY_MAX_WORKERS] = {0};
	uint32_t chosen = UINT32_MAX;
	FabricProxyArea *area = p->area;

	for (uint32_t i = 0; i < area->slots; i++)
	{
		uint64_t word = __atomic_load_n(proxy_state_word(area, i), __ATOMIC_RELAXED);

		if (proxy_slot_state(word) != PROXY_FREE)
			clients[proxy_slot_worker(word) % FABRIC_PROXY_MAX_WORKERS]++;
	}
	for (uint32_t i = 0; i < area->workers; i++)
	{
		if (proxy_life_serves(__atomic_load_n(&proxy_worker(area, i)->life, __ATOMIC_ACQUIRE)) &&
		    (chosen == UINT32_MAX || clients[i] < clients[chosen]))
			chosen = i;
	}
	if (chosen == UINT32_MAX)
		return FABRIC_BUSY;
	p->worker = chosen;
	for (uint32_t i = 0; i < area->slots; i++)
	{
		uint64_t *state = proxy_state_word(area, i);
		uint64_t word = __atomic_load_n(state, __ATOMIC_ACQUIRE);

		if (proxy_slot_state(word) != PROXY_FREE)
			continue;
		p->word = proxy_slot_word(proxy_slot_serial(word) + 1, p->proxy->owner, chosen, PROXY_TAKEN);
		if (__atomic_compare_exchange_n(state, &word, p->word, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		{
			p->number = i;
			p->slot = proxy_slot(area, i);
			return FABRIC_OK;
		}
	}
	return FABRIC_NO_MEMORY;
}

/* Has all workers look for slots whose clients have gone, and waits until they have done so. */
static FabricStatus
sweep(FabricEndpoint *endpoint, uint64_t deadline)
{
	const FabricProxy *proxy = endpoint->fabric->options.proxy;
	uint32_t wanted[FABRIC_PROXY_MAX_WORKERS];
	FabricStatus status = FABRIC_OK;

	for (uint32_t i = 0; i < proxy->area->workers; i++)
	{
		wanted[i] = __atomic_add_fetch(&proxy_worker(proxy->area, i)->sweep_wanted, 1, __ATOMIC_SEQ_CST);
		wake_worker(proxy, i);
	}
	for (uint32_t i = 0; i < proxy->area->workers; i++)
	{
		ProxyWorkerState *worker = proxy_worker(proxy->area, i);

		while (status == FABRIC_OK && proxy_life_serves(__atomic_load_n(&worker->life, __ATOMIC_ACQUIRE)) &&
		       (int32_t) (__atomic_load_n(&worker->sweeps, __ATOMIC_ACQUIRE) - wanted[i]) < 0)
			status = sleep_slice(endpoint, deadline, RETRY_MS);
	}
	return status;
}

static FabricStatus
slot_take(FabricEndpoint *endpoint)
{
	uint64_t deadline = fabric_deadline(endpoint->fabric, FABRIC_WAIT_CONNECT);
	FabricStatus status = slot_try_take(endpoint->state);

	if (status == FABRIC_NO_MEMORY && sweep(endpoint, deadline) == FABRIC_OK)
		status = slot_try_take(endpoint->state);
	if (status == FABRIC_NO_MEMORY)
		fabric_set_detail(endpoint->fabric, "all %u slots of the connection workers are taken",
		                  endpoint->fabric->options.proxy->area->slots);
	else if (status == FABRIC_BUSY)
		fabric_set_detail(endpoint->fabric, "no connection worker serves");
	return status;
}

/* Chains that were not waited for: nothing may take effect after the endpoint is gone. */
static void
drain(FabricEndpoint *endpoint)
{
	ProxyState *p = endpoint->state;
	uint64_t deadline = fabric_deadline(endpoint->fabric, FABRIC_WAIT_CHAIN);

	for (uint64_t position = p->tail; position < p->next; position++)
	{
		if (p->slot->places[position % PROXY_PLACES].kind == PROXY_CHAIN &&
		    place_wait(endpoint, position, deadline) != FABRIC_OK)
			return;
	}
}

static void
proxy_disconnect(FabricEndpoint *endpoint)
{
	ProxyState *p = endpoint->state;

	if (p->slot != NULL)
	{
		drain(endpoint);
		__atomic_store_n(
			proxy_state_word(p->area, p->number),
			proxy_slot_word(proxy_slot_serial(p->word), p->proxy->owner, p->worker, PROXY_CLOSING),
			__ATOMIC_RELEASE);
		ring_doorbell(p);
	}
	free(p);
	endpoint->state = NULL;
}

static FabricStatus
proxy_connect(FabricEndpoint *endpoint, const char *location)
{
	const FabricOptions *options = &endpoint->fabric->options;
	ProxyState *p;
	FabricStatus status;

	if (options->proxy == NULL || options->proxy->area->magic != PROXY_MAGIC ||
	    strlen(location) >= PROXY_ADDRESS_BYTES)
	{
		fabric_set_detail(endpoint->fabric, "no connection workers serve \"%s\"", location);
		return FABRIC_NOT_SUPPORTED;
	}
	p = calloc(1, sizeof(ProxyState));
	if (p == NULL)
		return FABRIC_NO_MEMORY;
	p->proxy = options->proxy;
	p->area = options->proxy->area;
	endpoint->state = p;
	status = slot_take(endpoint);
	if (status == FABRIC_OK)
	{
		strcpy(p->slot->address, location);
		memcpy(p->slot->cluster, options->cluster, sizeof(p->slot->cluster));
		p->slot->incarnation = options->incarnation;
		status = establish(endpoint);
	}
	return status;
}

static FabricStatus
proxy_reset(FabricEndpoint *endpoint)
{
	return establish(endpoint);
}

static bool
proxy_is_draining(const FabricEndpoint *endpoint)
{
	return ((const ProxyState *) endpoint->state)->draining;
}

const FabricTransport proxy_transport = {
	.name = "proxy",
	.connect = proxy_connect,
	.disconnect = proxy_disconnect,
	.execute = proxy_execute,
	.post = proxy_post,
	.wait = proxy_wait,
	.ended = proxy_ended,
	.call = proxy_call,
	.attach = proxy_attach,
	.reset = proxy_reset,
	.is_draining = proxy_is_draining,
};
