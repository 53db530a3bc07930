/*
 * rows_by_hand.c
 *		For tests: adds rows to a table with one column of integers as an extension may do it, in a subtransaction of its own, while
 *		the statement that calls it goes on.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "utils/resowner.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(add_rows);

extern Datum add_rows(PG_FUNCTION_ARGS);

/* Rows from..to. */
static void
add(Oid table, int32 from, int32 to)
{
	Relation	heap = table_open(table, RowExclusiveLock);
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *target = makeNode(ResultRelInfo);
	TupleTableSlot *slot = table_slot_create(heap, NULL);

	InitResultRelInfo(target, heap, 0, NULL, 0);
	ExecOpenIndices(target, false);
	for (int32 i = from; i <= to; i++)
	{
		ExecClearTuple(slot);
		slot->tts_values[0] = Int32GetDatum(i);
		slot->tts_isnull[0] = false;
		ExecStoreVirtualTuple(slot);
		table_tuple_insert(heap, slot, GetCurrentCommandId(true), 0, NULL);
		ExecInsertIndexTuples(target, slot, estate, false, false, NULL, NIL);
	}
	ExecCloseIndices(target);
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
	table_close(heap, NoLock);
}

/* add_rows(table, from, to, whether the subtransaction commits) */
Datum
add_rows(PG_FUNCTION_ARGS)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	BeginInternalSubTransaction(NULL);
	add(PG_GETARG_OID(0), PG_GETARG_INT32(1), PG_GETARG_INT32(2));
	if (PG_GETARG_BOOL(3))
		ReleaseCurrentSubTransaction();
	else
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(caller);
	CurrentResourceOwner = owner;
	PG_RETURN_VOID();
}
