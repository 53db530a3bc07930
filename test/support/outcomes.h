/*
 * outcomes.h
 *		How runs of an exploration differ for those in them: what each client's operations have got of the memory node, in
 *		its order, and the history of each entry.  Left out is how often a lock was not to be had: who waits for one looks
 *		again when something that it has looked at has changed, and in coarse steps that is more.
 *
 * Two explorations of a case that leave out nothing have the same set of outcomes, whatever they take for the same order.
 */
#ifndef SHERMAN_TEST_OUTCOMES_H
#define SHERMAN_TEST_OUTCOMES_H

#include "sim_work.h"

/* What the runs so far have come to. */
typedef struct Outcomes
{
	uint64_t count; /* that differ */
	uint64_t sum;   /* over them */
} Outcomes;

/* Forgets all. */
extern void outcomes_open(void);
/* SimulatorOptions.trace, of a run. */
extern void outcomes_trace(uint64_t node, uint32_t channel, const FabricOp *op, uint32_t from,
                           uint32_t bytes);
/* The run is over. */
extern void outcomes_take(const SimRun *run);
extern Outcomes outcomes_now(void);

#endif /* SHERMAN_TEST_OUTCOMES_H */
