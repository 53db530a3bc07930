/*
 * cost.h
 *		Estimates that the files of costs share.
 */
#ifndef SHERMAN_COST_H
#define SHERMAN_COST_H

#include "nodes/pathnodes.h"

/* What bounds a scan. */
typedef struct CostBounds
{
	List	   *conditions;		/* RestrictInfo */
	double		elements;		/* of = ANY */
	double		descents;		/* one for each element, times the values of columns that are skipped */
	bool		skips;
} CostBounds;

/*
 * Finds the bounds of a scan by this path, whose IndexOptInfo has the index's true size.
 */
extern void sherman_cost_bounds(PlannerInfo *root, const IndexPath *path, CostBounds *bounds);

/* cost_pgNN.c: amcostestimate but for round trips. */
extern void sherman_scan_cost(PlannerInfo *root, IndexPath *path, double loop_count, const CostBounds *bounds, Cost *startup,
							  Cost *total, Selectivity *selectivity, double *correlation, double *pages);

#endif							/* SHERMAN_COST_H */
