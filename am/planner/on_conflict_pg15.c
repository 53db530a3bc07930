/*
 * on_conflict_pg15.c
 *		INSERT ... ON CONFLICT into tables with unique sherman indexes.
 *
 * Up to PostgreSQL 17 the executor opens the indexes of such a table with what speculative insertions need, and
 * refuses unique ones that are not btree's.  It does so at the first row, unless they are open already: so we
 * open them when the executor starts, and fill in for ours what core fills in for btree's.
 *
 * Partitions that rows are routed to are opened out of our reach: INSERT ... ON CONFLICT into the partitioned
 * table fails at the first row for one that has a unique sherman index, and here the error gets its words.
 */
#include "am/base/sherman.h"

#include "catalog/index.h"
#include "executor/executor.h"
#include "lib/ilist.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "am/base/shared.h"
#include "am/planner/planner.h"

/* The function of core that refuses an index. */
#define REFUSING_FUNCTION "BuildSpeculativeIndexInfo"

static ExecutorStart_hook_type previous_executor_start = NULL;

/* An INSERT ... ON CONFLICT into a partitioned table that is being executed; lies in its query's memory. */
typedef struct RoutedInsert
{
	dlist_node	node;
	PlanState  *state;
	ExecProcNodeMtd next;		/* what the node did before: core's function, which it does not export, or an extension's */
	MemoryContextCallback forget;
} RoutedInsert;

static dlist_head routed_inserts = DLIST_STATIC_INIT(routed_inserts);

/*
 * Whether core would refuse the relation's indexes.
 */
static bool
has_unique_index(Relation relation)
{
	List	   *indexes = RelationGetIndexList(relation);
	ListCell   *cell;
	bool		found = false;

	foreach(cell, indexes)
	{
		Relation	index = index_open(lfirst_oid(cell), RowExclusiveLock);

		found = index->rd_index->indisunique && sherman_owns(index);
		index_close(index, NoLock);
		if (found)
			break;
	}
	list_free(indexes);
	return found;
}

/*
 * What a speculative insertion needs to know of a unique index of ours: the operators that it looks for equal
 * rows by.
 */
static void
fill_speculative(Relation index, IndexInfo *info)
{
	int			columns = IndexRelationGetNumberOfKeyAttributes(index);

	info->ii_UniqueOps = palloc(sizeof(Oid) * columns);
	info->ii_UniqueProcs = palloc(sizeof(Oid) * columns);
	info->ii_UniqueStrats = palloc(sizeof(uint16) * columns);
	for (int i = 0; i < columns; i++)
	{
		Oid			type = index->rd_opcintype[i];
		Oid			equal = get_opfamily_member(index->rd_opfamily[i], type, type, BTEqualStrategyNumber);

		if (!OidIsValid(equal))
			elog(ERROR, "missing operator %d(%u,%u) in operator family %u",
				 BTEqualStrategyNumber, type, type, index->rd_opfamily[i]);
		info->ii_UniqueOps[i] = equal;
		info->ii_UniqueProcs[i] = get_opcode(equal);
		info->ii_UniqueStrats[i] = BTEqualStrategyNumber;
	}
}

/*
 * Opens the indexes of a table that rows are inserted into; the executor closes them at its end.
 */
static void
open_indexes(ResultRelInfo *target)
{
	Relation	relation = target->ri_RelationDesc;

	if (relation->rd_rel->relkind != RELKIND_RELATION || !relation->rd_rel->relhasindex ||
		target->ri_IndexRelationDescs != NULL || !has_unique_index(relation))
		return;
	ExecOpenIndices(target, false);
	for (int i = 0; i < target->ri_NumIndices; i++)
	{
		Relation	index = target->ri_IndexRelationDescs[i];
		IndexInfo  *info = target->ri_IndexRelationInfo[i];

		if (!info->ii_Unique)
			continue;
		if (sherman_owns(index))
			fill_speculative(index, info);
		else
			BuildSpeculativeIndexInfo(index, info);
	}
}

/* ---- partitions ---- */

/*
 * What core says of an index as an internal error, said as what it is: something that cannot be had.
 */
static void
raise_refusal(Relation partitioned)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("ON CONFLICT is not supported through partitioned table \"%s\" into a partition with a unique index of access method \"sherman\"",
					RelationGetRelationName(partitioned)),
			 errhint("Insert into the partition itself, or use btree for its unique indexes.")));
}

static ExecProcNodeMtd
next_of(const PlanState *state)
{
	dlist_iter	iterator;

	dlist_foreach(iterator, &routed_inserts)
	{
		RoutedInsert *insert = dlist_container(RoutedInsert, node, iterator.cur);

		if (insert->state == state)
			return insert->next;
	}
	elog(ERROR, "node of a partitioned table is not known");
	return NULL;
}

/*
 * An INSERT ... ON CONFLICT into a partitioned table goes on.
 */
static TupleTableSlot *
insert_into_partitions(PlanState *state)
{
	ExecProcNodeMtd next = next_of(state);
	MemoryContext caller = CurrentMemoryContext;
	TupleTableSlot *slot;

	PG_TRY();
	{
		slot = next(state);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		if (geterrcode() != ERRCODE_INTERNAL_ERROR)
			PG_RE_THROW();
		MemoryContextSwitchTo(caller);
		error = CopyErrorData();
		if (error->funcname == NULL || strcmp(error->funcname, REFUSING_FUNCTION) != 0)
			PG_RE_THROW();
		FlushErrorState();
		raise_refusal(((ModifyTableState *) state)->rootResultRelInfo->ri_RelationDesc);
	}
	PG_END_TRY();
	return slot;
}

static void
forget_insert(void *argument)
{
	dlist_delete(&((RoutedInsert *) argument)->node);
}

/*
 * Has a node call us, until its query's memory is given back.  Current is that memory.
 */
static void
watch_insert(PlanState *state)
{
	RoutedInsert *insert = palloc0(sizeof(RoutedInsert));

	insert->state = state;
	insert->next = state->ExecProcNodeReal;
	insert->forget.func = forget_insert;
	insert->forget.arg = insert;
	dlist_push_head(&routed_inserts, &insert->node);
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &insert->forget);
	ExecSetExecProcNode(state, insert_into_partitions);
}

/* ---- the hook ---- */

/*
 * Prepares one INSERT, UPDATE, ... of a query.
 */
static void
prepare_change(PlanState *state)
{
	ModifyTableState *change;

	if (!IsA(state, ModifyTableState) ||
		((ModifyTable *) state->plan)->onConflictAction == ONCONFLICT_NONE)
		return;
	change = (ModifyTableState *) state;
	if (change->rootResultRelInfo->ri_RelationDesc->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		watch_insert(state);
		return;
	}
	for (int i = 0; i < change->mt_nrels; i++)
		open_indexes(&change->resultRelInfo[i]);
}

static void
executor_start(QueryDesc *query, int flags)
{
	MemoryContext caller;
	ListCell   *cell;

	if (previous_executor_start != NULL)
		previous_executor_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
	if ((flags & EXEC_FLAG_EXPLAIN_ONLY) != 0 ||
		(query->operation != CMD_INSERT && !query->plannedstmt->hasModifyingCTE))
		return;

	caller = MemoryContextSwitchTo(query->estate->es_query_cxt);
	prepare_change(query->planstate);
	/* Those in WITH. */
	foreach(cell, query->estate->es_auxmodifytables)
		prepare_change(lfirst(cell));
	MemoryContextSwitchTo(caller);
}

void
sherman_on_conflict_install(void)
{
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}
