/*
 * events.h
 *		The queue of what is going to happen in virtual time: a wheel for what is due soon, a heap for the rest.
 *
 * The wheel has a slot for each of the next ranges of time, whose events are a list in order, and a bit for
 * each slot that has any.  Of chains in the cost model nearly all is due within the wheel: an event costs
 * some tens of instructions, however many wait.
 *
 * The next event is known while the present one happens, so that what it will touch can be fetched meanwhile.
 */
#ifndef SHERMAN_EVENTS_H
#define SHERMAN_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "scheduler.h"

/*
 * Nanoseconds of a slot (a power of two), and slots: words of 64 bits say which ones have events. Together they last for longer
 * than a chain takes where nothing is waited for; a longer wheel would only have been pushed out of the caches when it comes round.
 */
#define EVENTS_SLOT_SHIFT 3
#define EVENTS_WORDS 16u
#define EVENTS_SLOTS (EVENTS_WORDS * 64)

typedef struct Event
{
	uint64_t time;
	uint64_t order; /* of those of one time: the order in which they were added */
	SchedulerEvent happen;
	SchedulerFetch fetch; /* or NULL */
	void *argument;
	uint64_t number;
	struct Event *next; /* of its slot, or of those that are free */
	bool far;           /* it lies in the heap */
} Event;

typedef struct EventSlot
{
	Event *first;
	Event *last;
} EventSlot;

typedef struct Events
{
	uint64_t order;
	Event *first; /* the next one to happen; NULL: none */
	Event *free;
	struct EventBlock *blocks; /* memory of all events */
	Event **heap;              /* binary, the next one first */
	uint32_t far_count;
	uint32_t far_room;
	uint64_t summary; /* words that are not 0 */
	uint64_t words[EVENTS_WORDS];
	EventSlot slots[EVENTS_SLOTS];
} Events;

/* All zeroes is an empty queue.  Aborts without memory.  `now` is never less than at the call before. */
extern void events_add(Events *events, uint64_t now, uint64_t time, SchedulerEvent happen,
                       SchedulerFetch fetch, void *argument, uint64_t number);
/* Likely the one behind the first: what is due much later is not looked for. NULL: nobody knows. */
extern const Event *events_second(const Events *events);
/* Takes the first one out, which is there. The caller gives it back by events_release(). */
extern Event *events_take(Events *events);
extern void events_release(Events *events, Event *event);
/* Gives memory back; the queue is empty then. */
extern void events_close(Events *events);

#endif /* SHERMAN_EVENTS_H */
