/*
 * far_rows.c
 *		A table access method for a test: heap, but indexes are told that each row that is inserted has the offset
 *		far_rows.row_offset in its block.  Heap's own offsets stay far below what index access methods may be given.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/pg_am.h"
#include "fmgr.h"
#include "utils/guc.h"

#include "versions.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(far_rows_handler);

extern void _PG_init(void);

static int	far_rows_offset = 1;
static TableAmRoutine far_rows;

static void
far_rows_insert(Relation table, TupleTableSlot *slot, CommandId command, insert_options options,
				struct BulkInsertStateData *state)
{
	GetHeapamTableAmRoutine()->tuple_insert(table, slot, command, options, state);
	ItemPointerSetOffsetNumber(&slot->tts_tid, far_rows_offset);
}

/* Heap builds indexes of its own tables only. Those here are empty when theirs are made. */
static double
far_rows_build(Relation table, Relation index, struct IndexInfo *info, bool allow_sync, bool anyvisible,
			   bool progress, BlockNumber start_block, BlockNumber blocks, IndexBuildCallback callback,
			   void *callback_state, TableScanDesc scan)
{
	Assert(RelationGetNumberOfBlocks(table) == 0);
	return 0;
}

static Oid
far_rows_toast(Relation table)
{
	return HEAP_TABLE_AM_OID;
}

Datum
far_rows_handler(PG_FUNCTION_ARGS)
{
	far_rows = *GetHeapamTableAmRoutine();
	far_rows.tuple_insert = far_rows_insert;
	far_rows.index_build_range_scan = far_rows_build;
	far_rows.relation_toast_am = far_rows_toast;
	PG_RETURN_POINTER(&far_rows);
}

void
_PG_init(void)
{
	DefineCustomIntVariable("far_rows.row_offset", "Offset that indexes are told.", NULL, &far_rows_offset,
							1, 1, PG_UINT16_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
}
