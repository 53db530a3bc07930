/*
 * outcomes.c
 *		See outcomes.h.
 */
#include <stdlib.h>
#include <string.h>

#include "../../sim/heap.h"
#include "outcomes.h"

#define CHANNELS 32u
#define FIRST_ROOM 1024u
#define TRIES 0xffffull

/* What a channel's operations have got in the run under way: where runs begin with a snapshot it returns, too. */
typedef struct View
{
	uint64_t sum;
	const FabricOp *lost; /* the last operation, if it was for a lock that was not to be had */
} View;

/* Kept. */
typedef struct OutcomeSet
{
	uint64_t *all; /* by hash; 0: nothing */
	uint64_t room; /* a power of 2 */
	uint64_t count;
} OutcomeSet;

static View views[CHANNELS];
static OutcomeSet *outcomes;

static uint64_t
mix(uint64_t sum, uint64_t more)
{
	sum = (sum ^ more) * 0x9e3779b97f4a7c15ull;
	return sum ^ sum >> 29;
}

void
outcomes_open(void)
{
	if (outcomes == NULL)
		outcomes = heap_zeroed(sizeof(OutcomeSet));
	heap_free(outcomes->all);
	*outcomes = (OutcomeSet){.all = heap_zeroed(FIRST_ROOM * sizeof(uint64_t)), .room = FIRST_ROOM};
}

/* A lock word's lowest bits count the tries of its owner. */
static uint64_t
without_tries(const FabricOp *op, uint64_t word)
{
	return op->region == FABRIC_LOCKS ? word & ~TRIES : word;
}

void
outcomes_trace(uint64_t node, uint32_t channel, const FabricOp *op, uint32_t from, uint32_t bytes)
{
	View *view = &views[channel % CHANNELS];
	const uint64_t *words = op->buffer;
	/* A lock that was not to be had, and the READ of its node, which is nobody's. */
	bool lost = op->opcode == FABRIC_COMPARE_SWAP && op->result != op->compare;
	bool vain = op->opcode == FABRIC_READ && view->lost != NULL && op == view->lost + 1;

	(void) node;
	view->lost = lost ? op : NULL;
	if (!explorer_is_on() || lost || vain)
		return;
	view->sum = mix(mix(view->sum, (uint64_t) op->opcode << 1 | op->region), op->offset + from);
	if (op->opcode != FABRIC_READ && op->opcode != FABRIC_WRITE)
		view->sum = mix(mix(view->sum, without_tries(op, op->operand)), without_tries(op, op->result));
	else
		for (uint32_t at = from; at < from + bytes; at += sizeof(uint64_t))
			view->sum = mix(view->sum, words[at / sizeof(uint64_t)]);
}

/* One operation beside the others on its entry: what it has found, which were over before it and which began before its end. */
static uint64_t
operation_sum(const SimEntry *entry, const HistoryOp *op)
{
	uint64_t over = 0, begun = 0;

	for (uint32_t i = 0; i < entry->count; i++)
	{
		over += entry->ops[i].end < op->call;
		begun += entry->ops[i].call < op->end;
	}
	return mix(mix(over, begun), (uint64_t) op->kind << 3 | (uint64_t) op->known << 2 |
	                                 (uint64_t) op->was_there << 1 | (uint64_t) op->maybe);
}

static void
note(uint64_t outcome)
{
	uint64_t place = outcome;

	for (;; place++)
	{
		place %= outcomes->room;
		if (outcomes->all[place] == outcome)
			return;
		if (outcomes->all[place] == 0)
			break;
	}
	outcomes->all[place] = outcome;
	outcomes->count++;
}

static void
make_room(void)
{
	OutcomeSet before = *outcomes;

	if (2 * before.count < before.room)
		return;
	*outcomes = (OutcomeSet){.all = heap_zeroed(2 * before.room * sizeof(uint64_t)), .room = 2 * before.room};
	for (uint64_t i = 0; i < before.room; i++)
		if (before.all[i] != 0)
			note(before.all[i]);
	heap_free(before.all);
}

void
outcomes_take(const SimRun *run)
{
	uint64_t outcome = 1;

	for (uint32_t i = 0; i < CHANNELS; i++)
		outcome = mix(outcome, views[i].sum);
	for (uint32_t id = 0; id < run->plan.entries; id++)
	{
		const SimEntry *entry = &run->entries[id];
		uint64_t sum = 0;

		/* In any order: that of their calls is nobody's. */
		for (uint32_t i = 0; i < entry->count; i++)
			sum += operation_sum(entry, &entry->ops[i]);
		outcome = mix(outcome, sum);
	}
	memset(views, 0, sizeof(views));
	make_room();
	note(outcome == 0 ? 1 : outcome);
}

Outcomes
outcomes_now(void)
{
	Outcomes now = {.count = outcomes->count};

	for (uint64_t i = 0; i < outcomes->room; i++)
		now.sum += mix(0, outcomes->all[i]) * (outcomes->all[i] != 0);
	return now;
}
