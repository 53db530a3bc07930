/*
 * cost_pg15.c
 *		btree's costs up to PostgreSQL 17, and those of scans that skip, which btree has from 18 on.
 */
#include "am/base/sherman.h"

#include <math.h>

#include "optimizer/optimizer.h"
#include "utils/index_selfuncs.h"
#include "utils/selfuncs.h"

#include "am/access/access.h"
#include "am/access/cost.h"

/* btcostestimate()'s charge for a page of a descent, in operators. */
#define PAGE_CPU_MULTIPLIER 50.0

/*
 * What a scan costs that makes so many descents, each of which reads a page.  genericcostestimate() counts scans by the arrays that it
 * finds, and no others.
 */
static void
price_bounds(PlannerInfo *root, IndexPath *path, double loop_count, const CostBounds *bounds, GenericCosts *costs)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *read = add_predicate_to_index_quals(index, bounds->conditions);
	double		rows = index->rel->tuples * clauselist_selectivity(root, read, index->rel->relid, JOIN_INNER, NULL);
	double		page_entries = index->tuples / index->pages;
	double		descent = (index->tree_height + 1) * PAGE_CPU_MULTIPLIER * cpu_operator_cost;

	if (index->tuples > 1)
		descent += ceil(log2(index->tuples)) * cpu_operator_cost;
	*costs = (GenericCosts) {.numIndexTuples = Max(1, rint(Max(rows, bounds->descents * page_entries) / bounds->elements))};
	genericcostestimate(root, path, loop_count, costs);
	costs->indexStartupCost += descent;
	costs->indexTotalCost += bounds->descents * descent;
}

/*
 * What a scan by this path costs, with the index's true size in the path's IndexOptInfo; amcostestimate's arguments.
 */
void
sherman_scan_cost(PlannerInfo *root, IndexPath *path, double loop_count, const CostBounds *bounds, Cost *startup, Cost *total,
				  Selectivity *selectivity, double *correlation, double *pages)
{
	GenericCosts costs;

	btcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
	if (!bounds->skips)
		return;
	price_bounds(root, path, loop_count, bounds, &costs);
	*startup = costs.indexStartupCost;
	*total = costs.indexTotalCost;
	*pages = costs.numIndexPages;
}
