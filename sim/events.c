/*
 * events.c
 *		See events.h.
 */
#include <stdlib.h>
#include <string.h>

#include "events.h"

#define BLOCK_EVENTS 256u
#define FIRST_FAR_ROOM 64u

typedef struct EventBlock
{
	struct EventBlock *next;
	Event events[BLOCK_EVENTS];
} EventBlock;

static bool
is_before(const Event *a, const Event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

/* ---- memory ---- */

static void
add_block(Events *events)
{
	EventBlock *block = malloc(sizeof(EventBlock));

	if (block == NULL)
		abort();
	block->next = events->blocks;
	events->blocks = block;
	for (uint32_t i = 0; i < BLOCK_EVENTS; i++)
		events_release(events, &block->events[i]);
}

void
events_release(Events *events, Event *event)
{
	event->next = events->free;
	events->free = event;
}

void
events_close(Events *events)
{
	while (events->blocks != NULL)
	{
		EventBlock *block = events->blocks;

		events->blocks = block->next;
		free(block);
	}
	free(events->heap);
	memset(events, 0, sizeof(*events));
}

/* ---- what is due later ---- */

static void
heap_add(Events *events, Event *event)
{
	uint32_t place = events->far_count++;

	if (place == events->far_room)
	{
		events->far_room = place == 0 ? FIRST_FAR_ROOM : 2 * place;
		events->heap = realloc(events->heap, events->far_room * sizeof(Event *));
		if (events->heap == NULL)
			abort();
	}
	for (; place > 0 && is_before(event, events->heap[(place - 1) / 2]); place = (place - 1) / 2)
		events->heap[place] = events->heap[(place - 1) / 2];
	events->heap[place] = event;
}

static void
heap_take(Events *events)
{
	Event *last = events->heap[--events->far_count];
	uint32_t place = 0;

	for (;;)
	{
		uint32_t child = 2 * place + 1;

		if (child + 1 < events->far_count && is_before(events->heap[child + 1], events->heap[child]))
			child++;
		if (child >= events->far_count || !is_before(events->heap[child], last))
			break;
		events->heap[place] = events->heap[child];
		place = child;
	}
	events->heap[place] = last;
}

/* ---- the wheel ---- */

static uint32_t
slot_of(uint64_t time)
{
	return (uint32_t) (time >> EVENTS_SLOT_SHIFT) % EVENTS_SLOTS;
}

static void
wheel_add(Events *events, Event *event)
{
	uint32_t number = slot_of(event->time);
	EventSlot *slot = &events->slots[number];
	Event **place = &slot->first;

	/* Mostly it is the last one; it is always behind those of its time. */
	if (slot->first != NULL && slot->last->time <= event->time)
		place = &slot->last->next;
	else
		while (*place != NULL && (*place)->time <= event->time)
			place = &(*place)->next;
	event->next = *place;
	*place = event;
	if (event->next == NULL)
		slot->last = event;
	events->words[number / 64] |= 1ull << number % 64;
	events->summary |= 1ull << number / 64;
}

static void
wheel_take(Events *events, const Event *event)
{
	uint32_t number = slot_of(event->time);

	events->slots[number].first = event->next;
	if (event->next != NULL)
		return;
	events->words[number / 64] &= ~(1ull << number % 64);
	if (events->words[number / 64] == 0)
		events->summary &= ~(1ull << number / 64);
}

/* The first event of the wheel, whose events are due at `time` or later, but not so late that slots mean two times. */
static Event *
wheel_first(const Events *events, uint64_t time)
{
	uint32_t number = slot_of(time);
	uint32_t word = number / 64;
	uint64_t bits = events->words[word] >> number % 64;

	if (bits != 0)
		return events->slots[number + (uint32_t) __builtin_ctzll(bits)].first;
	if (events->summary == 0)
		return NULL;
	/* The next word that has any, round about: the same one at last, as its low bits are the latest times. */
	bits = word == EVENTS_WORDS - 1 ? 0 : events->summary >> (word + 1) << (word + 1);
	if (bits == 0)
		bits = events->summary;
	word = (uint32_t) __builtin_ctzll(bits);
	return events->slots[word * 64 + (uint32_t) __builtin_ctzll(events->words[word])].first;
}

/* ---- both ---- */

static void
find_first(Events *events, uint64_t time)
{
	Event *first = wheel_first(events, time);

	if (events->far_count > 0 && (first == NULL || is_before(events->heap[0], first)))
		first = events->heap[0];
	events->first = first;
}

void
events_add(Events *events, uint64_t now, uint64_t time, SchedulerEvent happen, SchedulerFetch fetch,
           void *argument, uint64_t number)
{
	Event *event;

	if (events->free == NULL)
		add_block(events);
	event = events->free;
	events->free = event->next;
	*event = (Event){.time = time,
	                 .order = events->order++,
	                 .happen = happen,
	                 .fetch = fetch,
	                 .argument = argument,
	                 .number = number,
	                 .far = (time >> EVENTS_SLOT_SHIFT) - (now >> EVENTS_SLOT_SHIFT) >= EVENTS_SLOTS};
	if (event->far)
		heap_add(events, event);
	else
		wheel_add(events, event);
	if (events->first == NULL || is_before(event, events->first))
		events->first = event;
}

Event *
events_take(Events *events)
{
	Event *event = events->first;

	if (event->far)
		heap_take(events);
	else
		wheel_take(events, event);
	find_first(events, event->time);
	return event;
}

const Event *
events_second(const Events *events)
{
	const Event *first = events->first;
	uint32_t number, word;
	uint64_t bits;

	if (first == NULL || first->far)
		return NULL;
	if (first->next != NULL)
		return first->next;
	number = slot_of(first->time);
	word = number / 64;
	bits = events->words[word] & ~1ull << number % 64;
	if (bits == 0)
	{
		word = (word + 1) % EVENTS_WORDS;
		bits = events->words[word];
	}
	return bits == 0 ? NULL : events->slots[word * 64 + (uint32_t) __builtin_ctzll(bits)].first;
}
