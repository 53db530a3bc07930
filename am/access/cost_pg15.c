/*
 * cost_pg15.c
 *		btree's costs as they are, up to PostgreSQL 17.
 */
#include "am/base/sherman.h"

#include "utils/index_selfuncs.h"

#include "am/access/access.h"

/*
 * What a scan by this path costs, with the index's true size in the path's IndexOptInfo; amcostestimate's arguments.
 */
void
sherman_scan_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
				  Selectivity *selectivity, double *correlation, double *pages)
{
	btcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
}
