/*
 * neighbor.c
 *		Another extension that uses the hooks that sherman uses, as such extensions do, for t/068_neighbors.pl.
 *
 * It counts what it sees, hides indexes whose names begin with "hidden", tells a column's statistics, and has a function of its
 * own called for each INSERT.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "catalog/pg_statistic.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "optimizer/paths.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#include "versions.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(neighbor_seen);

extern void _PG_init(void);

static relation_hook_type next_relation_info;
static set_rel_pathlist_hook_type next_pathlist;
static get_relation_stats_hook_type next_stats;
static ExecutorStart_hook_type next_start;
static ProcessUtility_hook_type next_utility;

static int	tables,
			paths,
			statistics,
			inserts,
			commands;
/* What INSERTs did before: with sherman in front of us, perhaps sherman's. */
static ExecProcNodeMtd next_insert;

static void
relation_info(RELATION_HOOK_PARAMETERS)
{
	ListCell   *cell;

	if (next_relation_info)
		next_relation_info(RELATION_HOOK_ARGUMENTS);
	tables++;
	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, cell);

		if (strncmp(get_rel_name(info->indexoid), "hidden", 6) == 0)
			rel->indexlist = foreach_delete_current(rel->indexlist, cell);
	}
}

static void
pathlist(PlannerInfo *root, RelOptInfo *rel, Index number, RangeTblEntry *entry)
{
	if (next_pathlist)
		next_pathlist(root, rel, number, entry);
	paths += list_length(rel->pathlist);
}

static bool
stats(PlannerInfo *root, RangeTblEntry *entry, AttrNumber number, VariableStatData *data)
{
	if (next_stats && next_stats(root, entry, number, data))
		return true;
	if (entry->rtekind != RTE_RELATION || entry->inh || strcmp(get_rel_name(entry->relid), "told") != 0)
		return false;
	statistics++;
	data->statsTuple = SearchSysCacheCopy3(STATRELATTINH, ObjectIdGetDatum(entry->relid), Int16GetDatum(number), BoolGetDatum(false));
	if (!HeapTupleIsValid(data->statsTuple))
		return false;
	((Form_pg_statistic) GETSTRUCT(data->statsTuple))->stanullfrac = 0.5;
	data->freefunc = heap_freetuple;
	data->acl_ok = true;
	return true;
}

static TupleTableSlot *
insert(PlanState *state)
{
	inserts++;
	return next_insert(state);
}

static void
executor_start(QueryDesc *query, int flags)
{
	if (next_start)
		next_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
	if (query->operation != CMD_INSERT || !IsA(query->planstate, ModifyTableState) || query->planstate->ExecProcNodeReal == insert)
		return;
	next_insert = query->planstate->ExecProcNodeReal;
	ExecSetExecProcNode(query->planstate, insert);
}

static void
utility(PlannedStmt *statement, const char *text, bool read_only_tree, ProcessUtilityContext context, ParamListInfo parameters,
		QueryEnvironment *environment, DestReceiver *destination, QueryCompletion *completion)
{
	commands++;
	(next_utility ? next_utility : standard_ProcessUtility) (statement, text, read_only_tree, context, parameters, environment,
															 destination, completion);
}

void
_PG_init(void)
{
	next_relation_info = relation_hook;
	relation_hook = relation_info;
	next_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = pathlist;
	next_stats = get_relation_stats_hook;
	get_relation_stats_hook = stats;
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	next_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
}

Datum
neighbor_seen(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%d %d %d %d %d", tables > 0, paths > 0, statistics > 0, inserts > 0, commands > 0)));
}
