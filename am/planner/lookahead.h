/*
 * lookahead.h
 *		Between the two halves of the lookahead of nested loops: lookahead_plan.c, and lookahead.c, which executes it.
 */
#ifndef SHERMAN_AM_LOOKAHEAD_H
#define SHERMAN_AM_LOOKAHEAD_H

#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/* What its plan node keeps in custom_private, as three lists. */
typedef struct LookaheadPlan
{
	Oid			index;			/* of the inner scan */
	List	   *quals;			/* its conditions, as IndexScan.indexqual */
	List	   *params;			/* NestLoopParam: what the loop passes from an outer row to the inner scan */
} LookaheadPlan;

extern const CustomScanMethods sherman_lookahead_methods;

static inline List *
lookahead_pack(const LookaheadPlan *plan)
{
	return list_make3(list_make1_oid(plan->index), plan->quals, plan->params);
}

static inline LookaheadPlan
lookahead_unpack(const List *packed)
{
	LookaheadPlan plan;

	Assert(list_length(packed) == 3);
	plan.index = linitial_oid(linitial(packed));
	plan.quals = lsecond(packed);
	plan.params = lthird(packed);
	return plan;
}

#endif							/* SHERMAN_AM_LOOKAHEAD_H */
