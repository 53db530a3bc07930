/*
 * lookahead.c
 *		Execution of a lookahead: outer rows of a nested loop are read some at a time, the leaves that the inner scan will want
 *		for them are fetched together, and then the rows are returned one by one.
 *
 * The first time one row is read, then two, then twice as many as before: a loop that ends early has read few in vain.
 */
#include "am/base/sherman.h"

#include "commands/explain.h"
#include "executor/executor.h"
#include "executor/nodeIndexscan.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "am/base/compat.h"
#include "am/nodes/traffic.h"
#include "am/planner/lookahead.h"
#include "am/scan/scan.h"

/* Rows that are read ahead at most: their leaves are a few waves, and find room in a small cache. */
#define LOOKAHEAD_ROWS_MAX 512

typedef struct Lookahead
{
	CustomScanState custom;		/* first: what the executor knows */
	List	   *params;			/* NestLoopParam */
	Relation	index;
	IndexRuntimeKeyInfo *runtime_keys;
	int			runtime_key_count;
	ExprContext *key_context;	/* of the runtime keys of one row */
	ShermanPrefetch *prefetch;

	MemoryContext rows_context; /* of the rows at hand */
	MinimalTuple rows[LOOKAHEAD_ROWS_MAX];
	int			count;
	int			next;			/* to return */
	int			wanted;			/* to be read the next time */
	bool		ended;			/* there are no more outer rows */

	int64		fetches;		/* shown by EXPLAIN: times that leaves were fetched, */
	int64		rows_ahead;		/* and rows that they were fetched for, */
	ShermanTraffic traffic;		/* and what that moved, of this process alone */
} Lookahead;

/* ---- beginning and end ---- */

static void
lookahead_restart(Lookahead *state)
{
	state->count = state->next = 0;
	state->wanted = 1;
	state->ended = false;
}

/*
 * Opens the index, which the plan's inner scan has locked, and makes what the keys of its scans are computed by.
 */
static void
open_inner(Lookahead *state, EState *estate)
{
	PlanState  *self = &state->custom.ss.ps;
	LookaheadPlan plan = lookahead_unpack(castNode(CustomScan, self->plan)->custom_private);
	ExprContext *own = self->ps_ExprContext;
	ScanKey		keys;
	int			key_count;

	state->params = plan.params;
	state->index = index_open(plan.index, AccessShareLock);
	ExecIndexBuildScanKeys(self, state->index, plan.quals, false, &keys, &key_count,
						   &state->runtime_keys, &state->runtime_key_count, NULL, NULL);
	/* The runtime keys have a context of their own, which is emptied for each row. */
	ExecAssignExprContext(estate, self);
	state->key_context = self->ps_ExprContext;
	self->ps_ExprContext = own;
	state->prefetch = sherman_prefetch_make(state->index, keys, key_count, LOOKAHEAD_ROWS_MAX);
}

static void
lookahead_begin(CustomScanState *node, EState *estate, int flags)
{
	Lookahead  *state = (Lookahead *) node;

	outerPlanState(node) = ExecInitNode(outerPlan(node->ss.ps.plan), estate, flags);
	lookahead_restart(state);
	state->rows_context = AllocSetContextCreate(CurrentMemoryContext, "sherman lookahead", ALLOCSET_DEFAULT_SIZES);
	if ((flags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		open_inner(state, estate);
}

static void
lookahead_end(CustomScanState *node)
{
	Lookahead  *state = (Lookahead *) node;

	ExecEndNode(outerPlanState(node));
	if (state->index != NULL)
		index_close(state->index, NoLock);
}

static void
lookahead_rescan(CustomScanState *node)
{
	lookahead_restart((Lookahead *) node);
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/* ---- rows ---- */

/*
 * Notes the inner scan for this outer row.  The loop itself sets its parameters anew before it begins that scan.
 */
static void
note_scan(Lookahead *state, TupleTableSlot *slot)
{
	ParamExecData *values = state->key_context->ecxt_param_exec_vals;
	ListCell   *cell;

	foreach(cell, state->params)
	{
		NestLoopParam *param = lfirst_node(NestLoopParam, cell);
		ParamExecData *value = &values[param->paramno];

		value->value = slot_getattr(slot, param->paramval->varattno, &value->isnull);
	}
	ResetExprContext(state->key_context);
	ExecIndexEvalRuntimeKeys(state->key_context, state->runtime_keys, state->runtime_key_count);
	sherman_prefetch_note(state->prefetch);
}

/* Reads the next outer rows, as many as are wanted or work_mem has room for, and fetches the leaves of their inner scans. */
static void
read_rows(Lookahead *state)
{
	PlanState  *outer = outerPlanState(&state->custom);
	Size		room = (Size) work_mem * 1024;
	bool		ahead = state->wanted > 1 && state->custom.ss.ps.state->es_epq_active == NULL;
	MemoryContext caller;

	state->count = state->next = 0;
	MemoryContextReset(state->rows_context);
	while (!state->ended && state->count < state->wanted &&
		   (state->count == 0 || MemoryContextMemAllocated(state->rows_context, false) < room))
	{
		TupleTableSlot *slot = ExecProcNode(outer);

		if (TupIsNull(slot))
		{
			state->ended = true;
			break;
		}
		caller = MemoryContextSwitchTo(state->rows_context);
		state->rows[state->count++] = ExecCopySlotMinimalTuple(slot);
		MemoryContextSwitchTo(caller);
		if (ahead)
			note_scan(state, slot);
	}
	if (ahead && state->count > 0)
	{
		ShermanTraffic before;

		sherman_traffic_read(&before);
		sherman_prefetch_go(state->prefetch);
		sherman_traffic_add_since(&state->traffic, &before);
		state->fetches++;
		state->rows_ahead += state->count;
	}
	state->wanted = Min(state->wanted * 2, LOOKAHEAD_ROWS_MAX);
}

static TupleTableSlot *
lookahead_next(CustomScanState *node)
{
	Lookahead  *state = (Lookahead *) node;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;

	if (state->next == state->count)
		read_rows(state);
	if (state->next == state->count)
		return ExecClearTuple(slot);
	ExecForceStoreMinimalTuple(state->rows[state->next++], slot, false);
	return slot;
}

/* ---- what the executor is given ---- */

static void
lookahead_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	Lookahead  *state = (Lookahead *) node;
	char	   *index = get_rel_name(lookahead_unpack(castNode(CustomScan, node->ss.ps.plan)->custom_private).index);

	ExplainPropertyText("Leaves Of", index != NULL ? index : "?", es);
	if (!es->analyze)
		return;
	ExplainPropertyInteger("Fetches", NULL, state->fetches, es);
	ExplainPropertyInteger("Rows Ahead", NULL, state->rows_ahead, es);
	if (es->buffers)
		sherman_traffic_explain(&state->traffic, es);
}

static const CustomExecMethods lookahead_exec_methods = {
	.CustomName = "Sherman Lookahead",
	.BeginCustomScan = lookahead_begin,
	.ExecCustomScan = lookahead_next,
	.EndCustomScan = lookahead_end,
	.ReScanCustomScan = lookahead_rescan,
	.ExplainCustomScan = lookahead_explain,
};

static Node *
lookahead_create(CustomScan *scan)
{
	Lookahead  *state = palloc0(sizeof(Lookahead));

	NodeSetTag(state, T_CustomScanState);
	state->custom.methods = &lookahead_exec_methods;
	return (Node *) state;
}

const CustomScanMethods sherman_lookahead_methods = {
	.CustomName = "Sherman Lookahead",
	.CreateCustomScanState = lookahead_create,
};
