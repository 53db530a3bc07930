/*
 * choices.c
 *		See choices.h.
 *
 * The stack has a choice for each step of the run.  Behind a run every pair of steps is looked for that
 * conflict, while nothing else puts them in order: a *race*.  The choice before the first of them gets an
 * option by which the second comes first, unless it has one (source sets).  An option that was done sleeps in
 * the choices below its siblings until a step conflicts with it (sleep sets): what is asleep leads to orders
 * that were run.
 */
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "heap.h"

/* One bit of a summary is for some such pieces of memory. */
#define SUMMARY_BYTES 64u
#define SUMMARY_BITS (SUMMARY_WORDS * 64)

typedef struct Option
{
	uint32_t actor;
	bool wanted;
	bool done;           /* all that begins with it was run */
	bool asleep;         /* likewise, from a choice above */
	Footprint footprint; /* once it is done or asleep */
} Option;

typedef struct Choice
{
	Option *options;
	uint32_t count;
	uint32_t chosen;
	Footprint step;
	uint64_t *before; /* steps that happened before this one: bits */
} Choice;

typedef struct Choices
{
	Choice *stack;
	uint32_t count;
	uint32_t room;
	uint32_t step;     /* of the run */
	uint32_t analyzed; /* steps whose races are known: those above the option that is new */
	bool begun;
	bool redundant;
} Choices;

static Choices *choices;

/* ---- footprints ---- */

bool
access_conflicts(const Access *a, const Access *b)
{
	if (a->space != b->space || a->to <= b->from || b->to <= a->from)
		return false;
	return a->mode != b->mode || a->mode == EXPLORER_WRITE;
}

static int
access_compare(const void *a, const void *b)
{
	const Access *x = a, *y = b;

	if (x->space != y->space)
		return x->space < y->space ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

/* Takes the access into the one before it, which overlaps: both modes at once conflict with all. */
static void
access_unite(Access *access, const Access *more)
{
	if (access->mode != more->mode)
		access->mode = EXPLORER_WRITE;
	if (access->to < more->to)
		access->to = more->to;
}

static void
summarize(Footprint *footprint, const Access *access)
{
	uint64_t first = access->from / SUMMARY_BYTES, last = (access->to - 1) / SUMMARY_BYTES;
	uint64_t *summary = access->mode == EXPLORER_READ ? footprint->seen : footprint->changed;

	if (last - first >= SUMMARY_BITS)
	{
		memset(summary, 0xff, SUMMARY_BITS / 8);
		return;
	}
	for (uint64_t at = first; at <= last; at++)
	{
		uint64_t bit = (((at + access->space * 7919) * 0x9e3779b97f4a7c15ull) >> 56) % SUMMARY_BITS;

		summary[bit / 64] |= 1ull << bit % 64;
	}
}

void
footprint_settle(Footprint *footprint)
{
	Access *accesses = footprint->accesses;
	uint32_t left = 0;

	qsort(accesses, footprint->count, sizeof(Access), access_compare);
	for (uint32_t i = 0; i < footprint->count; i++)
		if (left > 0 && accesses[left - 1].space == accesses[i].space &&
		    accesses[left - 1].to > accesses[i].from)
			access_unite(&accesses[left - 1], &accesses[i]);
		else
			accesses[left++] = accesses[i];
	footprint->count = left;
	for (uint32_t i = 0; i < left; i++)
		summarize(footprint, &accesses[i]);
}

/* False: they have nothing in common for sure. */
static bool
summaries_meet(const Footprint *a, const Footprint *b)
{
	for (uint32_t i = 0; i < SUMMARY_WORDS; i++)
		if ((a->changed[i] & (b->seen[i] | b->changed[i])) != 0 || (a->seen[i] & b->changed[i]) != 0)
			return true;
	return false;
}

bool
footprint_conflicts(const Footprint *a, const Footprint *b)
{
	uint32_t i = 0, k = 0;

	if (a->actor == b->actor || a->all || b->all)
		return true;
	if (!summaries_meet(a, b))
		return false;
	while (i < a->count && k < b->count)
	{
		const Access *x = &a->accesses[i], *y = &b->accesses[k];

		if (access_conflicts(x, y))
			return true;
		if (x->space != y->space ? x->space < y->space : x->to < y->to)
			i++;
		else
			k++;
	}
	return false;
}

/* A copy with accesses of its own, in place of what was there. */
static void
footprint_copy(Footprint *to, const Footprint *from)
{
	Access *accesses = heap_resize(to->accesses, (from->count + 1) * sizeof(Access));

	if (from->count > 0)
		memcpy(accesses, from->accesses, from->count * sizeof(Access));
	*to = *from;
	to->accesses = accesses;
}

static bool
is_caused_by(const Footprint *step, uint32_t earlier)
{
	return step->behind_all || step->causes[0] == earlier || step->causes[1] == earlier;
}

/* ---- the stack ---- */

static void
choice_free(Choice *choice)
{
	for (uint32_t i = 0; i < choice->count; i++)
		heap_free(choice->options[i].footprint.accesses);
	heap_free(choice->step.accesses);
	heap_free(choice->options);
	heap_free(choice->before);
}

void
choices_open(void)
{
	choices = heap_zeroed(sizeof(Choices));
}

void
choices_close(void)
{
	while (choices->count > 0)
		choice_free(&choices->stack[--choices->count]);
	heap_free(choices->stack);
	heap_free(choices);
}

bool
choices_next(void)
{
	choices->step = 0;
	choices->redundant = false;
	if (!choices->begun)
	{
		choices->begun = true;
		return true;
	}
	while (choices->count > 0)
	{
		Choice *choice = &choices->stack[choices->count - 1];

		choice->options[choice->chosen].done = true;
		footprint_copy(&choice->options[choice->chosen].footprint, &choice->step);
		for (uint32_t i = 0; i < choice->count; i++)
			if (choice->options[i].wanted && !choice->options[i].done && !choice->options[i].asleep)
			{
				choice->chosen = i;
				choices->analyzed = choices->count - 1;
				return true;
			}
		choice_free(choice);
		choices->count--;
	}
	return false;
}

uint32_t
choices_step(void)
{
	return choices->step - 1;
}

/* Options that sleep on behind the step before. */
static void
fall_asleep(Choice *choice)
{
	const Choice *above = choices->step == 0 ? NULL : &choices->stack[choices->step - 1];

	for (uint32_t i = 0; above != NULL && i < above->count; i++)
	{
		const Option *option = &above->options[i];

		if (i == above->chosen || !(option->done || option->asleep) ||
		    footprint_conflicts(&option->footprint, &above->step))
			continue;
		for (uint32_t k = 0; k < choice->count; k++)
			if (choice->options[k].actor == option->actor)
			{
				choice->options[k].asleep = true;
				footprint_copy(&choice->options[k].footprint, &option->footprint);
			}
	}
}

/* A choice that was not there before; where all options sleep none is made. */
static void
choice_add(const uint32_t *actors, uint32_t count)
{
	Choice *choice;

	if (choices->count == choices->room)
	{
		choices->room = choices->room == 0 ? 256 : choices->room * 2;
		choices->stack = heap_resize(choices->stack, choices->room * sizeof(Choice));
	}
	choice = &choices->stack[choices->count];
	*choice = (Choice){.options = heap_zeroed(count * sizeof(Option)), .count = count, .chosen = count};
	for (uint32_t i = 0; i < count; i++)
		choice->options[i].actor = actors[i];
	fall_asleep(choice);
	for (uint32_t i = count; i-- > 0;)
		if (!choice->options[i].asleep)
			choice->chosen = i;
	if (choice->chosen == count)
	{
		choices->redundant = true;
		choice_free(choice);
		return;
	}
	choice->options[choice->chosen].wanted = true;
	choices->count++;
}

uint32_t
choices_choose(const uint32_t *actors, uint32_t count)
{
	const Choice *choice;

	if (!choices->redundant && choices->step == choices->count)
		choice_add(actors, count);
	choices->step++;
	if (choices->redundant)
		return 0;
	choice = &choices->stack[choices->step - 1];
	/* The same choices lead to the same ones: else something here looks at what no seed tells. */
	if (choice->count != count)
		abort();
	for (uint32_t i = 0; i < count; i++)
		if (choice->options[i].actor != actors[i])
			abort();
	return choice->chosen;
}

void
choices_end_step(const Footprint *footprint)
{
	/* Up to the option that is new the steps are those of the run before. */
	if (!choices->redundant && choices->step > choices->analyzed)
		footprint_copy(&choices->stack[choices->step - 1].step, footprint);
}

/* ---- races ---- */

static bool
is_before(uint32_t earlier, uint32_t later)
{
	return (choices->stack[later].before[earlier / 64] >> earlier % 64 & 1) != 0;
}

static void
put_before(uint32_t earlier, uint32_t later)
{
	const uint64_t *more = choices->stack[earlier].before;
	uint64_t *before = choices->stack[later].before;

	for (uint32_t i = 0; i <= earlier / 64; i++)
		before[i] |= more[i];
	before[earlier / 64] |= 1ull << earlier % 64;
}

/* Whether nothing that comes behind `first` happens before the step. */
static bool
is_initial(uint32_t first, uint32_t step)
{
	for (uint32_t i = first + 1; i < step; i++)
		if (is_before(i, step))
			return false;
	return true;
}

/*
 * The two are in a race: the choice before the first one must have an option that may begin a run in which it
 * does not come before the second: a step in between, or the second, before which only the first happens.
 */
static void
race(uint32_t first, uint32_t second)
{
	Choice *choice = &choices->stack[first];
	Option *found = NULL;

	for (uint32_t i = first + 1; i <= second; i++)
	{
		if (!is_initial(first, i) || (i != second && is_before(first, i)))
			continue;
		for (uint32_t k = 0; k < choice->count; k++)
			if (choice->options[k].actor == choices->stack[i].step.actor)
			{
				if (choice->options[k].wanted)
					return;
				if (found == NULL)
					found = &choice->options[k];
			}
	}
	/* There always is one, if steps tell all that they need. */
	if (found == NULL)
		abort();
	found->wanted = true;
}

/* What happened before a step; and its races, if they are new. */
static void
analyze(uint32_t later)
{
	Choice *choice = &choices->stack[later];

	heap_free(choice->before);
	choice->before = heap_zeroed((later / 64 + 1) * sizeof(uint64_t));
	for (uint32_t i = later; i-- > 0;)
	{
		const Footprint *earlier = &choices->stack[i].step;
		bool caused = is_caused_by(&choice->step, i) || earlier->actor == choice->step.actor;

		if (is_before(i, later) || !(caused || footprint_conflicts(earlier, &choice->step)))
			continue;
		if (!caused)
			race(i, later);
		put_before(i, later);
	}
}

bool
choices_end_run(void)
{
	for (uint32_t i = choices->analyzed; i < choices->count; i++)
		analyze(i);
	return !choices->redundant;
}
