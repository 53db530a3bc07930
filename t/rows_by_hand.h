/*
 * rows_by_hand.h
 *		For tests: rows of a table with one column of integers, added as an extension may do it, without a statement.
 */
#ifndef SHERMAN_T_ROWS_BY_HAND_H
#define SHERMAN_T_ROWS_BY_HAND_H

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/executor.h"

#include "versions.h"

/* Rows from..to. */
static void
add_rows_by_hand(Oid table, int32 from, int32 to)
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
		insert_index_entries(target, slot, estate);
	}
	ExecCloseIndices(target);
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
	table_close(heap, NoLock);
}

#endif							/* SHERMAN_T_ROWS_BY_HAND_H */
