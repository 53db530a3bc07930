/*
 * scan_standby.c
 *		Index scans on a hot standby: what they read is believed once it may be (am/standby/replay.c).
 */
#include "am/base/sherman.h"

#include "access/table.h"
#include "storage/bufmgr.h"

#include "am/scan/scan_state.h"
#include "am/standby/standby.h"

void
scan_standby_begin(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;
	Relation	table = scan->heapRelation;

	standby_begin();
	/* Of a bitmap scan the table is not given; the query has it locked. */
	if (table == NULL)
		table = table_open(scan->indexRelation->rd_index->indrelid, NoLock);
	state->blocks = RelationGetNumberOfBlocks(table);
	if (table != scan->heapRelation)
		table_close(table, NoLock);
	state->beyond = false;
}

void
scan_standby_read(IndexScanDesc scan, const TreeBatch *batch)
{
	ShermanScan *state = scan->opaque;

	standby_believe(state->index, scan->indexRelation, scan->xs_snapshot, true);
	state->beyond = false;
	for (int i = 0; batch != NULL && i < batch->count; i++)
		state->beyond |= batch->entries[i].block >= state->blocks;
}
