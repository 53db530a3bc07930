/*
 * cost_skip.c
 *		What bounds a scan that skips: the conditions on leading columns, and how many descents it makes.
 *
 * As core counts it from PostgreSQL 18 on: a column without `=` in front of one with a condition takes as many descents as it has values.
 */
#include "am/base/sherman.h"

#include <math.h>

#include "access/stratnum.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "am/access/cost.h"
#include "am/base/compat.h"

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

/* Adds the conditions of one clause; true: it has an equality. */
static bool
add_conditions(PlannerInfo *root, const IndexClause *clause, Oid family, CostBounds *bounds, List **of_column)
{
	bool		equality = false;
	ListCell   *cell;

	foreach(cell, clause->indexquals)
	{
		RestrictInfo *condition = lfirst_node(RestrictInfo, cell);

		if (IsA(condition->clause, ScalarArrayOpExpr))
		{
			double		elements = Max(1, compat_array_length(root, lsecond(((ScalarArrayOpExpr *) condition->clause)->args)));

			bounds->elements *= elements;
			bounds->descents *= elements;
		}
		equality |= is_equality(condition->clause, family);
		bounds->conditions = lappend(bounds->conditions, condition);
		*of_column = lappend(*of_column, condition);
	}
	return equality;
}

/* How many values a column of the index has.  False: that is not known. */
static bool
count_values(PlannerInfo *root, const IndexOptInfo *index, int column, double *values)
{
	VariableStatData statistics;
	bool		guessed;

	examine_variable(root, (Node *) list_nth_node(TargetEntry, index->indextlist, column)->expr, index->rel->relid, &statistics);
	*values = get_variable_numdistinct(&statistics, &guessed);
	ReleaseVariableStats(statistics);
	return !guessed;
}

/* Of the values of a column with these conditions, which do not leave one alone, those that are to be skipped through. False: it is not worth it. */
static bool
narrow_values(PlannerInfo *root, IndexOptInfo *index, List *of_column, double *values)
{
	Selectivity share;

	if (of_column == NIL)
	{
		/* One descent finds the first. */
		*values += 1;
		return true;
	}
	share = clauselist_selectivity(root, add_predicate_to_index_quals(index, of_column), index->rel->relid, JOIN_INNER, NULL);
	*values = Max(1, rint(*values * share));
	return share >= DEFAULT_RANGE_INEQ_SEL;
}

/*
 * Counts the descents for columns from `from` up to `to`, which have no equality, the first of them perhaps these conditions.  False: such a scan
 * reads all of what they leave.
 */
static bool
skip_columns(PlannerInfo *root, IndexOptInfo *index, int from, int to, List *of_column, CostBounds *bounds)
{
	double		descents = bounds->descents;

	for (int column = from; column < to; column++)
	{
		double		values;

		if (!count_values(root, index, column, &values) ||
			!narrow_values(root, index, column == from ? of_column : NIL, &values))
			return false;
		descents *= values;
		if (descents > index->pages)
			return false;
	}
	bounds->descents = descents;
	bounds->skips = true;
	return true;
}

void
sherman_cost_bounds(PlannerInfo *root, const IndexPath *path, CostBounds *bounds)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *of_column = NIL;
	bool		equality = false;
	int			column = 0;
	ListCell   *cell;

	*bounds = (CostBounds) {.elements = 1,.descents = 1};
	foreach(cell, path->indexclauses)
	{
		const IndexClause *clause = lfirst_node(IndexClause, cell);

		if (clause->indexcol != column)
		{
			int			open = equality ? column + 1 : column;

			if (open < clause->indexcol &&
				!skip_columns(root, index, open, clause->indexcol, equality ? NIL : of_column, bounds))
				return;
			of_column = NIL;
			equality = false;
			column = clause->indexcol;
		}
		equality |= add_conditions(root, clause, index->opfamily[column], bounds, &of_column);
	}
}
