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

typedef struct Option
{
	uint32_t actor;
	bool wanted;
	bool done;            /* all that begins with it was run */
	bool asleep;          /* likewise, from a choice above */
	Footprint *footprint; /* once it is done or asleep */
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

static Choices choices;

static void *
checked(void *memory)
{
	if (memory == NULL)
		abort();
	return memory;
}

/* ---- footprints ---- */

bool
access_conflicts(const Access *a, const Access *b)
{
	if (a->space != b->space || a->to <= b->from || b->to <= a->from)
		return false;
	return a->mode != b->mode || a->mode == EXPLORER_WRITE;
}

bool
footprint_conflicts(const Footprint *a, const Footprint *b)
{
	if (a->actor == b->actor || a->all || b->all)
		return true;
	for (uint32_t i = 0; i < a->count; i++)
		for (uint32_t k = 0; k < b->count; k++)
			if (access_conflicts(&a->accesses[i], &b->accesses[k]))
				return true;
	return false;
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
		free(choice->options[i].footprint);
	free(choice->options);
	free(choice->before);
}

void
choices_open(void)
{
	memset(&choices, 0, sizeof(choices));
}

void
choices_close(void)
{
	while (choices.count > 0)
		choice_free(&choices.stack[--choices.count]);
	free(choices.stack);
	memset(&choices, 0, sizeof(choices));
}

/* What has happened at a choice is asleep there and below. */
static void
option_remember(Option *option, const Footprint *footprint)
{
	if (option->footprint == NULL)
		option->footprint = checked(malloc(sizeof(Footprint)));
	*option->footprint = *footprint;
}

bool
choices_next(void)
{
	choices.step = 0;
	choices.redundant = false;
	if (!choices.begun)
	{
		choices.begun = true;
		return true;
	}
	while (choices.count > 0)
	{
		Choice *choice = &choices.stack[choices.count - 1];

		choice->options[choice->chosen].done = true;
		option_remember(&choice->options[choice->chosen], &choice->step);
		for (uint32_t i = 0; i < choice->count; i++)
			if (choice->options[i].wanted && !choice->options[i].done && !choice->options[i].asleep)
			{
				choice->chosen = i;
				choices.analyzed = choices.count - 1;
				return true;
			}
		choice_free(choice);
		choices.count--;
	}
	return false;
}

uint32_t
choices_step(void)
{
	return choices.step - 1;
}

/* Options that sleep on behind the step before. */
static void
fall_asleep(Choice *choice)
{
	const Choice *above = choices.step == 0 ? NULL : &choices.stack[choices.step - 1];

	for (uint32_t i = 0; above != NULL && i < above->count; i++)
	{
		const Option *option = &above->options[i];

		if (i == above->chosen || !(option->done || option->asleep) ||
		    footprint_conflicts(option->footprint, &above->step))
			continue;
		for (uint32_t k = 0; k < choice->count; k++)
			if (choice->options[k].actor == option->actor)
			{
				choice->options[k].asleep = true;
				option_remember(&choice->options[k], option->footprint);
			}
	}
}

/* A choice that was not there before; where all options sleep none is made. */
static void
choice_add(const uint32_t *actors, uint32_t count)
{
	Choice *choice;

	if (choices.count == choices.room)
	{
		choices.room = choices.room == 0 ? 256 : choices.room * 2;
		choices.stack = checked(realloc(choices.stack, choices.room * sizeof(Choice)));
	}
	choice = &choices.stack[choices.count];
	*choice = (Choice){.options = checked(calloc(count, sizeof(Option))), .count = count, .chosen = count};
	for (uint32_t i = 0; i < count; i++)
		choice->options[i].actor = actors[i];
	fall_asleep(choice);
	for (uint32_t i = count; i-- > 0;)
		if (!choice->options[i].asleep)
			choice->chosen = i;
	if (choice->chosen == count)
	{
		choices.redundant = true;
		choice_free(choice);
		return;
	}
	choice->options[choice->chosen].wanted = true;
	choices.count++;
}

uint32_t
choices_choose(const uint32_t *actors, uint32_t count)
{
	const Choice *choice;

	if (!choices.redundant && choices.step == choices.count)
		choice_add(actors, count);
	choices.step++;
	if (choices.redundant)
		return 0;
	choice = &choices.stack[choices.step - 1];
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
	if (!choices.redundant)
		choices.stack[choices.step - 1].step = *footprint;
}

/* ---- races ---- */

static bool
is_before(uint32_t earlier, uint32_t later)
{
	return (choices.stack[later].before[earlier / 64] >> earlier % 64 & 1) != 0;
}

static void
put_before(uint32_t earlier, uint32_t later)
{
	const uint64_t *more = choices.stack[earlier].before;
	uint64_t *before = choices.stack[later].before;

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
	Choice *choice = &choices.stack[first];
	Option *found = NULL;

	for (uint32_t i = first + 1; i <= second; i++)
	{
		if (!is_initial(first, i) || (i != second && is_before(first, i)))
			continue;
		for (uint32_t k = 0; k < choice->count; k++)
			if (choice->options[k].actor == choices.stack[i].step.actor)
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
	Choice *choice = &choices.stack[later];

	free(choice->before);
	choice->before = checked(calloc(later / 64 + 1, sizeof(uint64_t)));
	for (uint32_t i = later; i-- > 0;)
	{
		const Footprint *earlier = &choices.stack[i].step;
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
	for (uint32_t i = choices.analyzed; i < choices.count; i++)
		analyze(i);
	return !choices.redundant;
}
