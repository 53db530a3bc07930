/*
 * on_conflict.c
 *		INSERT ... ON CONFLICT into tables with unique sherman indexes.
 *
 * Up to PostgreSQL 17 the executor opens the indexes of such a table with what speculative insertions need, and
 * refuses unique ones that are not btree's.  It does so at the first row, unless they are open already: so we
 * open them when the executor starts, and fill in for ours what core fills in for btree's.
 *
 * Partitions that rows are routed to are opened out of our reach: hence no unique sherman indexes on them
 * (constraints.c).
 */
#include "sherman.h"

#include "catalog/index.h"
#include "executor/executor.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "shared.h"

static ExecutorStart_hook_type previous_executor_start = NULL;

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
