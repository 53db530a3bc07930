/*
 * cost_pg18.c
 *		btree's costs without its skip scans, from PostgreSQL 18 on.
 *
 * From 18 on btree skips from one value of a leading column without a condition to the next, and btcostestimate() counts on that.  Scans of ours
 * read all between the bounds, as btree's do up to 17, and cost what those did.
 */
#include "am/base/sherman.h"

#include <math.h>

#include "access/stratnum.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/index_selfuncs.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "am/access/access.h"

/* btcostestimate()'s charge for a page of a descent, in operators. */
#define PAGE_CPU_MULTIPLIER 50.0

/* More descents than for each third page are never counted, as in btcostestimate(). */
#define DESCENTS_OF_PAGES 0.3333333

/* The conditions that bound a scan: `=` on leading columns, and all on the next one. */
typedef struct Bounds
{
	List	   *conditions;		/* RestrictInfo */
	double		descents;		/* one for each element of = ANY */
	bool		all;			/* there are no other conditions */
} Bounds;

/*
 * Whether a condition leaves one value of the index's column, or so many as it has elements.
 */
static bool
is_equality(Expr *clause, Oid family)
{
	Oid			operator;

	if (IsA(clause, NullTest))
		return ((NullTest *) clause)->nulltesttype == IS_NULL;
	if (IsA(clause, RowCompareExpr))
		return false;
	operator = IsA(clause, ScalarArrayOpExpr) ? ((ScalarArrayOpExpr *) clause)->opno : castNode(OpExpr, clause)->opno;
	return get_op_opfamily_strategy(operator, family) == BTEqualStrategyNumber;
}

/*
 * Adds the conditions of one clause; true: it has an equality.
 */
static bool
add_conditions(PlannerInfo *root, const IndexClause *clause, Oid family, Bounds *bounds)
{
	bool		equality = false;
	ListCell   *cell;

	foreach(cell, clause->indexquals)
	{
		RestrictInfo *condition = lfirst_node(RestrictInfo, cell);

		if (IsA(condition->clause, ScalarArrayOpExpr))
			bounds->descents *= Max(1, estimate_array_length(root, lsecond(((ScalarArrayOpExpr *) condition->clause)->args)));
		equality |= is_equality(condition->clause, family);
		bounds->conditions = lappend(bounds->conditions, condition);
	}
	return equality;
}

/*
 * Clauses come in the order of the index's columns.
 */
static void
find_bounds(PlannerInfo *root, const IndexPath *path, Bounds *bounds)
{
	bool		equality = false;
	int			column = 0;
	ListCell   *cell;

	*bounds = (Bounds) {.descents = 1, .all = true};
	foreach(cell, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, cell);

		if (clause->indexcol != column)
		{
			if (!equality || clause->indexcol != column + 1)
			{
				bounds->all = false;
				return;
			}
			equality = false;
			column++;
		}
		equality |= add_conditions(root, clause, path->indexinfo->opfamily[column], bounds);
	}
}

/*
 * What a scan costs that reads all between these bounds: btcostestimate()'s formula.
 */
static void
price_bounds(PlannerInfo *root, IndexPath *path, double loop_count, const Bounds *bounds, GenericCosts *costs)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *read = add_predicate_to_index_quals(index, bounds->conditions);
	double		rows = index->rel->tuples * clauselist_selectivity(root, read, index->rel->relid, JOIN_INNER, NULL);
	double		descent = (index->tree_height + 1) * PAGE_CPU_MULTIPLIER * cpu_operator_cost;

	if (index->tuples > 1)
		descent += ceil(log2(index->tuples)) * cpu_operator_cost;
	*costs = (GenericCosts) {.num_sa_scans = Max(1, Min(bounds->descents, ceil(index->pages * DESCENTS_OF_PAGES)))};
	costs->numIndexTuples = rint(rows / costs->num_sa_scans);
	genericcostestimate(root, path, loop_count, costs);
	costs->indexStartupCost += descent;
	costs->indexTotalCost += costs->num_sa_scans * descent;
}

/*
 * What a scan by this path costs, with the index's true size in the path's IndexOptInfo; amcostestimate's arguments.
 */
void
sherman_scan_cost(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
				  Selectivity *selectivity, double *correlation, double *pages)
{
	Bounds		bounds;
	GenericCosts costs;

	btcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
	find_bounds(root, path, &bounds);
	if (bounds.all)
		return;
	price_bounds(root, path, loop_count, &bounds, &costs);
	*startup = costs.indexStartupCost;
	*total = costs.indexTotalCost;
	*pages = costs.numIndexPages;
}
