/*
 * explain_pg18.c
 *		EXPLAIN from PostgreSQL 18 on: what each index scan of a plan has moved, its workers included, and the sum of the statement behind
 *		the plan.
 */
#include "am/server/explain.h"

#include "commands/explain_state.h"
#include "nodes/nodeFuncs.h"

#include "am/scan/scan.h"

static explain_per_node_hook_type previous_node = NULL;
static explain_per_plan_hook_type previous_plan = NULL;

/*
 * The scan of an index that a node does; NULL: it does none, or this process did none in it.
 */
static IndexScanDesc
scan_of(const PlanState *state)
{
	switch (nodeTag(state))
	{
		case T_IndexScanState:
			return ((const IndexScanState *) state)->iss_ScanDesc;
		case T_IndexOnlyScanState:
			return ((const IndexOnlyScanState *) state)->ioss_ScanDesc;
		case T_BitmapIndexScanState:
			return ((const BitmapIndexScanState *) state)->biss_ScanDesc;
		default:
			return NULL;
	}
}

static bool
is_index_scan(const PlanState *state)
{
	return IsA(state, IndexScanState) || IsA(state, IndexOnlyScanState) || IsA(state, BitmapIndexScanState);
}

static bool
is_zero(const ShermanTraffic *traffic)
{
	static const ShermanTraffic nothing;

	return memcmp(traffic, &nothing, sizeof(nothing)) == 0;
}

static void
explain_node(PlanState *state, List *ancestors, const char *relationship, const char *name, ExplainState *es)
{
	ShermanMeasured *statement = es->analyze && es->buffers && is_index_scan(state) ?
		sherman_measured_find(NULL, NULL, state->state) : NULL;
	IndexScanDesc scan = statement != NULL ? scan_of(state) : NULL;
	ShermanTraffic traffic = {0};

	if (previous_node != NULL)
		previous_node(state, ancestors, relationship, name, es);
	if (statement == NULL)
		return;
	if (scan != NULL && sherman_owns(scan->indexRelation))
		traffic = *sherman_scan_traffic(scan);
	else if (scan != NULL)
		return;
	sherman_measured_add_node(statement, state->plan->plan_node_id, &traffic);
	/* Of a node that only workers have run it is not known here whether the index is one of ours. */
	if (scan != NULL || !is_zero(&traffic))
		sherman_traffic_explain(&traffic, es);
}

static void
explain_plan(PlannedStmt *plan, IntoClause *into, ExplainState *es, const char *text, ParamListInfo params, QueryEnvironment *environment)
{
	ShermanMeasured *statement = es->analyze && es->buffers ? sherman_measured_find(NULL, plan, NULL) : NULL;
	ShermanTraffic total;

	if (previous_plan != NULL)
		previous_plan(plan, into, es, text, params, environment);
	if (statement == NULL)
		return;
	sherman_measured_total(statement, &total);
	sherman_traffic_explain(&total, es);
}

/* ---- in parallel workers ---- */

static bool
find_highest(PlanState *state, void *argument)
{
	int		   *nodes = argument;

	*nodes = Max(*nodes, state->plan->plan_node_id + 1);
	return planstate_tree_walker(state, find_highest, argument);
}

static int
count_nodes(PlanState *plan)
{
	int			nodes = 0;

	(void) find_highest(plan, &nodes);
	return nodes;
}

typedef struct Telling
{
	ShermanTellNode *tell;
	void	   *argument;
} Telling;

static bool
tell_node(PlanState *state, void *argument)
{
	const Telling *telling = argument;
	IndexScanDesc scan = scan_of(state);

	if (scan != NULL && sherman_owns(scan->indexRelation))
		telling->tell(telling->argument, state->plan->plan_node_id, sherman_scan_traffic(scan));
	return planstate_tree_walker(state, tell_node, argument);
}

static void
each_node(PlanState *plan, ShermanTellNode *tell, void *argument)
{
	Telling		telling = {.tell = tell, .argument = argument};

	(void) tell_node(plan, &telling);
}

void
sherman_explain_install(void)
{
	previous_node = explain_per_node_hook;
	explain_per_node_hook = explain_node;
	previous_plan = explain_per_plan_hook;
	explain_per_plan_hook = explain_plan;
	sherman_measured_by_node(count_nodes, each_node);
}
