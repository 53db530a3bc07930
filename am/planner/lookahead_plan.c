/*
 * lookahead_plan.c
 *		Plans of nested loops over indexes across a network: a node between the loop and its outer rows, which reads some of
 *		them ahead and fetches the leaves that the inner scan will want together (lookahead.c).
 *
 * A nested loop waits for a round trip for each outer row, with nothing under way meanwhile.  MySQL's batched key access is the
 * model, without its join: the loop is core's, so all kinds of joins, their order, rescans and parameters are as they were.  The
 * node is put into the finished plan, as core has no place for it: what the planner has chosen it chooses with and without.
 */
#include "am/base/sherman.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/planner/lookahead.h"
#include "am/planner/planner.h"

static planner_hook_type previous_planner = NULL;

/* ---- the inner scan ---- */

/* Whether an expression has one of the loop's parameters in it. */
static bool
has_parameter(Node *node, void *params)
{
	ListCell   *cell;

	if (node == NULL)
		return false;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
	{
		foreach(cell, (List *) params)
		{
			if (lfirst_node(NestLoopParam, cell)->paramno == ((Param *) node)->paramid)
				return true;
		}
		return false;
	}
	return expression_tree_walker(node, has_parameter, params);
}

/* The index scan that a plan is, perhaps behind a limit or a cache of its rows.  False: it is none. */
static bool
find_index_scan(const Plan *plan, LookaheadPlan *lookahead)
{
	while (IsA(plan, Memoize) || IsA(plan, Limit))
		plan = outerPlan(plan);
	if (IsA(plan, BitmapHeapScan))
		plan = outerPlan(plan);
	switch (nodeTag(plan))
	{
		case T_IndexScan:
			lookahead->index = ((const IndexScan *) plan)->indexid;
			lookahead->quals = ((const IndexScan *) plan)->indexqual;
			return true;
		case T_IndexOnlyScan:
			lookahead->index = ((const IndexOnlyScan *) plan)->indexid;
			lookahead->quals = ((const IndexOnlyScan *) plan)->indexqual;
			return true;
		case T_BitmapIndexScan:
			lookahead->index = ((const BitmapIndexScan *) plan)->indexid;
			lookahead->quals = ((const BitmapIndexScan *) plan)->indexqual;
			return true;
		default:
			return false;
	}
}

/*
 * Whether outer rows of this plan may be read before they are wanted: it locks no rows, and calls nothing that has effects.
 */
static bool
may_be_read_ahead(const Plan *plan)
{
	if (plan == NULL)
		return true;
	switch (nodeTag(plan))
	{
		case T_LockRows:
		case T_ModifyTable:
		case T_ForeignScan:
		case T_CustomScan:
		case T_FunctionScan:
			return false;
		case T_SubqueryScan:
			if (!may_be_read_ahead(((const SubqueryScan *) plan)->subplan))
				return false;
			break;
		default:
			break;
	}
	return !contain_volatile_functions((Node *) plan->targetlist) &&
		!contain_volatile_functions((Node *) plan->qual) &&
		may_be_read_ahead(outerPlan(plan)) && may_be_read_ahead(innerPlan(plan));
}

/* ---- the node ---- */

/* A node over `outer` that returns its rows as they are. */
static CustomScan *
make_lookahead(Plan *outer, const LookaheadPlan *lookahead, int node_id)
{
	CustomScan *scan = makeNode(CustomScan);
	Plan	   *plan = &scan->scan.plan;
	ListCell   *cell;

	plan->startup_cost = outer->startup_cost;
	plan->total_cost = outer->total_cost;
	plan->plan_rows = outer->plan_rows;
	plan->plan_width = outer->plan_width;
	plan->parallel_safe = outer->parallel_safe;
	plan->plan_node_id = node_id;
	plan->extParam = bms_copy(outer->extParam);
	plan->allParam = bms_copy(outer->allParam);
	plan->lefttree = outer;
	foreach(cell, outer->targetlist)
	{
		TargetEntry *entry = lfirst_node(TargetEntry, cell);
		Oid			type = exprType((Node *) entry->expr);
		int32		modifier = exprTypmod((Node *) entry->expr);
		Oid			collation = exprCollation((Node *) entry->expr);
		TargetEntry *scanned = flatCopyTargetEntry(entry);
		TargetEntry *returned = flatCopyTargetEntry(entry);

		scanned->expr = (Expr *) makeVar(OUTER_VAR, entry->resno, type, modifier, collation, 0);
		returned->expr = (Expr *) makeVar(INDEX_VAR, entry->resno, type, modifier, collation, 0);
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist, scanned);
		plan->targetlist = lappend(plan->targetlist, returned);
	}
	scan->custom_private = lookahead_pack(lookahead);
	scan->methods = &sherman_lookahead_methods;
	return scan;
}

/* Gives a nested loop its lookahead, if that is of use. */
static void
consider_loop(NestLoop *loop, int *node_id)
{
	Plan	   *outer = outerPlan(loop);
	LookaheadPlan lookahead = {.params = loop->nestParams};

	if (loop->nestParams == NIL || outer->plan_rows < 2 || !find_index_scan(innerPlan(loop), &lookahead) ||
		!has_parameter((Node *) lookahead.quals, loop->nestParams) ||
		contain_subplans((Node *) lookahead.quals) || contain_volatile_functions((Node *) lookahead.quals) ||
		!sherman_is_ours(lookahead.index) || !may_be_read_ahead(outer))
		return;
	outerPlan(loop) = (Plan *) make_lookahead(outer, &lookahead, ++*node_id);
}

/* ---- the finished plan ---- */

static void walk_plan(Plan *plan, void (*visit) (Plan *plan, int *node_id), int *node_id);

static void
walk_plans(List *plans, void (*visit) (Plan *plan, int *node_id), int *node_id)
{
	ListCell   *cell;

	foreach(cell, plans)
		walk_plan(lfirst(cell), visit, node_id);
}

/* Calls visit() for a plan's nodes, those below before those above. */
static void
walk_plan(Plan *plan, void (*visit) (Plan *plan, int *node_id), int *node_id)
{
	if (plan == NULL)
		return;
	switch (nodeTag(plan))
	{
		case T_Append:
			walk_plans(((Append *) plan)->appendplans, visit, node_id);
			break;
		case T_MergeAppend:
			walk_plans(((MergeAppend *) plan)->mergeplans, visit, node_id);
			break;
		case T_SubqueryScan:
			walk_plan(((SubqueryScan *) plan)->subplan, visit, node_id);
			break;
		case T_CustomScan:
			walk_plans(((CustomScan *) plan)->custom_plans, visit, node_id);
			break;
		default:
			break;
	}
	walk_plan(outerPlan(plan), visit, node_id);
	walk_plan(innerPlan(plan), visit, node_id);
	visit(plan, node_id);
}

static void
note_node_id(Plan *plan, int *node_id)
{
	*node_id = Max(*node_id, plan->plan_node_id);
}

static void
consider_plan(Plan *plan, int *node_id)
{
	if (IsA(plan, NestLoop))
		consider_loop((NestLoop *) plan, node_id);
}

static PlannedStmt *
plan_with_lookahead(Query *query, const char *text, int cursor_options, ParamListInfo params COMPAT_EXPLAIN_PARAMETER)
{
	PlannedStmt *statement = previous_planner != NULL ? previous_planner(query, text, cursor_options, params COMPAT_EXPLAIN_ARGUMENT) :
		standard_planner(query, text, cursor_options, params COMPAT_EXPLAIN_ARGUMENT);
	int			node_id = 0;

	/* In the embedded memory node's memory nobody waits for anything. */
	if (!sherman_enable_lookahead || sherman_embedded)
		return statement;
	walk_plan(statement->planTree, note_node_id, &node_id);
	walk_plans(statement->subplans, note_node_id, &node_id);
	walk_plan(statement->planTree, consider_plan, &node_id);
	walk_plans(statement->subplans, consider_plan, &node_id);
	return statement;
}

void
sherman_lookahead_install(void)
{
	RegisterCustomScanMethods(&sherman_lookahead_methods);
	previous_planner = planner_hook;
	planner_hook = plan_with_lookahead;
}
