/*
 * kill.c
 *		Marks entries that a scan found dead to every snapshot, so that later scans skip them.
 *
 * The executor reports the entry that it got last (kill_prior_tuple). A scan collects these while it reads a batch,
 * and marks them when it leaves the batch: only if the leaf still has the generation that the batch was read from,
 * for else the TID may be a new row's (tree/change/dead.c).
 *
 * A mark is a hint: whatever prevents it is no error.  It carries an LSN behind the evidence, and its entry is not
 * removed before that is durable (bottomup_delete.c, vacuum.c).  A tree that nobody has changed in this epoch is left alone:
 * after an unclean end it would be broken for the sake of a few marks.
 */
#include "am/base/sherman.h"

#include "access/xlog.h"
#include "utils/memutils.h"

#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"
#include "am/scan/scan.h"

void
sherman_kill_note(ShermanKills *kills, MemoryContext context, const TreeBatch *batch, int position)
{
	if (position < 0 || position >= batch->count)
		return;
	if (kills->entries == NULL)
		kills->entries = MemoryContextAlloc(context, sizeof(TreeDead) * TREE_BATCH_MAX);
	/* A scan that goes to and fro may tell of an entry again. */
	if (kills->count == TREE_BATCH_MAX)
		return;
	kills->entries[kills->count].block = batch->entries[position].block;
	kills->entries[kills->count].offset = batch->entries[position].offset;
	kills->entries[kills->count].cell = batch->entries[position].cell;
	kills->count++;
}

void
sherman_kill_flush(ShermanKills *kills, IndexScanDesc scan, const ShermanIndex *index, const TreeBatch *batch)
{
	int			count = kills->count;
	int			marked;
	TreeWalPosition	wal;
	TreeStatus	status;

	kills->count = 0;
	if (count == 0 || sherman_connection_is_reader() || index->state != SHERMAN_OK || !sherman_index_is_mutated(index))
		return;
	if (sherman_standbys_may_read(scan->indexRelation))
		sherman_note_dead_now(scan->heapRelation);
	wal.epoch = sherman_epoch();
	wal.lsn = GetXLogInsertRecPtr();
	status = tree_mark_dead(index->tree, &batch->leaf, kills->entries, count, &wal, &marked);
	if (status == TREE_UNREACHABLE || status == TREE_FENCED)
		(void) sherman_connection_trouble();
}
