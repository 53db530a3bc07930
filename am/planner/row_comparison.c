/*
 * row_comparison.c
 *		Row comparisons, (a, b) > (x, y), by our indexes.
 *
 * Core matches a row comparison to indexes of btree alone, by btree's OID.  But where (a, b) > (x, y) holds, so
 * does a >= x, and that clause core matches to any index.  So paths are made a second time with such clauses
 * added to what the indexes are shown: a path that uses one starts the scan at x, or ends it there, while the
 * whole comparison stays a filter.  The added clauses are seen during that pass only.  They change no estimate
 * of rows, and no plan but those whose index condition they are.
 */
#include "am/base/sherman.h"

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/planner/planner.h"

static set_rel_pathlist_hook_type previous_pathlist = NULL;

/*
 * The operator for a row comparison's first columns that holds wherever the row comparison does: <= for < and
 * <=, >= for > and >=.  InvalidOid if their family has none.
 */
static Oid
implied_operator(const RowCompareExpr *comparison)
{
	Oid			family = linitial_oid(comparison->opfamilies);
	bool		less = compat_row_comparison(comparison) < BTEqualStrategyNumber;
	int			strategy;
	Oid			left;
	Oid			right;

	get_op_opfamily_properties(linitial_oid(comparison->opnos), family, false, &strategy, &left, &right);
	return get_opfamily_member(family, left, right, less ? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber);
}

/*
 * The clause on the first columns that a restriction implies, at the same level of security; NULL if the
 * restriction is no row comparison.
 */
static RestrictInfo *
implied_clause(PlannerInfo *root, RestrictInfo *restriction)
{
	RowCompareExpr *comparison = (RowCompareExpr *) restriction->clause;
	Oid			operator;
	Expr	   *clause;

	if (!IsA(comparison, RowCompareExpr))
		return NULL;
	operator = implied_operator(comparison);
	if (!OidIsValid(operator))
		return NULL;
	clause = make_opclause(operator, BOOLOID, false, copyObject(linitial(comparison->largs)),
						   copyObject(linitial(comparison->rargs)), InvalidOid,
						   linitial_oid(comparison->inputcollids));
	set_opfuncid((OpExpr *) clause);
	return compat_restriction_like(root, clause, restriction);
}

static List *
implied_clauses(PlannerInfo *root, List *restrictions)
{
	List	   *implied = NIL;
	ListCell   *cell;

	foreach(cell, restrictions)
	{
		RestrictInfo *clause = implied_clause(root, lfirst_node(RestrictInfo, cell));

		if (clause != NULL)
			implied = lappend(implied, clause);
	}
	return implied;
}

/*
 * Makes the table's index paths again, with more clauses for our indexes to match.
 */
static void
make_paths(PlannerInfo *root, RelOptInfo *rel, List *implied)
{
	List	   *before = NIL;
	ListCell   *cell;
	ListCell   *saved;

	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, cell);

		before = lappend(before, info->indrestrictinfo);
		if (sherman_plans(info))
			info->indrestrictinfo = list_concat_copy(info->indrestrictinfo, implied);
	}
	create_index_paths(root, rel);
	forboth(cell, rel->indexlist, saved, before)
	{
		lfirst_node(IndexOptInfo, cell)->indrestrictinfo = lfirst(saved);
	}
}

static bool
has_our_index(const RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->indexlist)
	{
		if (sherman_plans(lfirst_node(IndexOptInfo, cell)))
			return true;
	}
	return false;
}

static void
pathlist(PlannerInfo *root, RelOptInfo *rel, Index number, RangeTblEntry *entry)
{
	List	   *implied;

	if (previous_pathlist != NULL)
		previous_pathlist(root, rel, number, entry);
	/* Where core makes no index paths, there are to be none. */
	if (entry->rtekind != RTE_RELATION || entry->inh || entry->tablesample != NULL || IS_DUMMY_REL(rel) ||
		!has_our_index(rel))
		return;
	implied = implied_clauses(root, rel->baserestrictinfo);
	if (implied != NIL)
		make_paths(root, rel, implied);
}

void
sherman_row_comparison_install(void)
{
	previous_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = pathlist;
}
