/*
 * choices.h
 *		Which orders of steps are left to be run.  Private to sim/; explorer.h is what programs use.
 *
 * A run is a list of steps, each chosen among the actors that had one to do.  Two steps *conflict* if their
 * order matters.  What two runs have in common up to a change of two independent neighbors is one order, and
 * one run of it is enough.
 */
#ifndef SHERMAN_CHOICES_H
#define SHERMAN_CHOICES_H

#include "explorer.h"

/* Words of a footprint's summary. */
#define SUMMARY_WORDS 4u

typedef struct Access
{
	uint64_t space;
	uint64_t from;
	uint64_t to;
	ExplorerMode mode;
} Access;

/* What a step has done, as far as others mind. */
typedef struct Footprint
{
	uint32_t actor;
	uint32_t causes[2]; /* steps that it was possible behind only; or EXPLORER_NO_STEP */
	bool behind_all;    /* behind all before it */
	bool all;           /* conflicts with all */
	uint32_t count;
	Access *accesses; /* by space and place; none overlaps another one */
	/* Bits of the places that are read, and of those that are changed: who has none in common does not conflict. */
	uint64_t seen[SUMMARY_WORDS];
	uint64_t changed[SUMMARY_WORDS];
} Footprint;

extern bool access_conflicts(const Access *a, const Access *b);
/* Puts the accesses in order, as above, and sums them up; they may become fewer. */
extern void footprint_settle(Footprint *footprint);
extern bool footprint_conflicts(const Footprint *a, const Footprint *b);

extern void choices_open(void);
extern void choices_close(void);
/* Goes to the next run. False: no order is left. */
extern bool choices_next(void);

/* The step under way: how many were before it in this run. */
extern uint32_t choices_step(void);
/* Which of the actors, in ascending order, is to take the next step. The one before was ended. */
extern uint32_t choices_choose(const uint32_t *actors, uint32_t count);
/* The step that was chosen last is through; its accesses are copied. */
extern void choices_end_step(const Footprint *footprint);
/* The run is over: finds out which other orders it asks for. False: it was redundant from some step on. */
extern bool choices_end_run(void);

#endif /* SHERMAN_CHOICES_H */
