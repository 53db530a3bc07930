/*
 * cost_pg18.c
 *		btree's costs as they are, from PostgreSQL 18 on: its scans skip as ours do.
 */
#include "am/base/sherman.h"

#include "utils/index_selfuncs.h"

#include "am/access/access.h"
#include "am/access/cost.h"

/*
 * What a scan by this path costs, with the index's true size in the path's IndexOptInfo; amcostestimate's arguments.
 */
void
sherman_scan_cost(PlannerInfo *root, IndexPath *path, double loop_count, const CostBounds *bounds, Cost *startup, Cost *total,
				  Selectivity *selectivity, double *correlation, double *pages)
{
	btcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
}
