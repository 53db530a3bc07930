/*
 * fault.h
 *		The fault layer: sits over any transport and does to chains what networks and crashes do.
 *
 * A plan is set on an endpoint at any time; counters of operations start with it.  Everything random comes
 * from the plan's seed.
 */
#ifndef SHERMAN_FAULT_H
#define SHERMAN_FAULT_H

#include "fabric.h"

typedef struct FabricFaultPlan
{
	uint64_t seed;   /* of all random choices */
	bool tear_reads; /* READs are sampled line by line in random order, with yields between lines;
	                          * the endpoint then claims LINE_ATOMIC and not OPERATION_ATOMIC */
	bool
		tear_writes; /* WRITEs that cross lines are placed line by line in random order; endpoints that read them must not have OPERATION_ATOMIC: set tear_reads there */
	bool tear_words; /* both, word by word: the endpoint does not claim LINE_ATOMIC either */
	uint32_t delay_max_us;   /* each chain waits a random time up to this, 0 = none */
	uint64_t fail_operation; /* the n-th operation from now (1 = next) is not applied, nor is the rest of its
	                          * chain; the chain returns FABRIC_LOST; 0 = never */
	uint64_t late_operation; /* as fail_operation, but the rest of the chain is applied when fabric_reset()
	                          * or fabric_fault_deliver() is called: a late delivery; 0 = never */
	uint64_t die_operation;  /* the process ends by SIGKILL after the n-th operation; 0 = never */
	uint32_t die_line;       /* with die_operation on a WRITE: it ends after so many lines of it, unless it is
	                          * one packet (FabricCapabilities); 0 = whole */
} FabricFaultPlan;

/* Puts the plan on the endpoint, replacing an earlier one; NULL takes the layer away. FABRIC_NO_MEMORY. */
extern FabricStatus fabric_fault_set(FabricEndpoint *endpoint, const FabricFaultPlan *plan);

/* Applies what a late_operation holds back. The channel that reset killed delivers nothing: then a no-op. */
extern void fabric_fault_deliver(FabricEndpoint *endpoint);

/* Operations seen since the plan was set: loops of "fail call N until none fails" end by this. */
extern uint64_t fabric_fault_operations(const FabricEndpoint *endpoint);

#endif /* SHERMAN_FAULT_H */
