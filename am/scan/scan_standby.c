/*
 * scan_standby.c
 *		Index scans on a hot standby: what they read is believed once it may be (am/standby/replay.c).
 */
#include "am/base/sherman.h"

#include "storage/bufmgr.h"

#include "am/scan/scan_state.h"
#include "am/standby/standby.h"

void
scan_standby_begin(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	standby_begin();
	/* Of a bitmap scan the table is not given. */
	state->blocks = scan->heapRelation != NULL ? RelationGetNumberOfBlocks(scan->heapRelation) : InvalidBlockNumber;
	state->beyond = false;
}

void
scan_standby_read(IndexScanDesc scan, const TreeBatch *batch)
{
	ShermanScan *state = scan->opaque;

	standby_believe(state->index, scan->indexRelation);
	state->beyond = false;
	for (int i = 0; batch != NULL && i < batch->count; i++)
		state->beyond |= batch->entries[i].block >= state->blocks;
}
