/*
 * scan_only.c
 *		Index-only scans: entries as index tuples, and only those whose row the snapshot sees.
 *
 * The executor (nodeIndexonlyscan.c) looks each TID's page up in the visibility map, and fetches the row only where
 * the bit is not set. btree holds a pin on the leaf meanwhile, and VACUUM waits for it before it frees a TID. Here
 * nothing waits: the returned entries are right whatever the executor finds. See doc/internals/index-only-scans.md
 * for the argument; in short, for an entry that was read at t0:
 *
 * - At t1 > t0 the map is looked at, for all entries of the batch; at t2 > t1 the leaf's generation is read
 *	 again.  If it is the same, no entry had been removed by t2, so no VACUUM that met their TIDs had come to
 *	 its second pass over the table by t1: a bit that was set spoke of the row that the entry is of.  All rows of
 *	 that page were visible to everybody, and so to our snapshot, which is older than t1.
 * - All other entries, and all if the generation is another one, are looked up in the table with the
 *	 snapshot, when their turn comes.  Those it does not see are passed over, which is what the executor would do.
 *
 * So each entry returned has a row that our snapshot sees, with the entry's key.  The executor finds at t3
 * - the bit set: it takes the entry, rightly.  That the page may be all-visible only since its other TIDs were
 *	 freed and used again does not matter: this row cannot have gone, as our snapshot is still in use;
 * - the bit not set: it fetches the row with the same snapshot, and sees what we saw.
 * A TID that was freed and used again between t0 and our look at the table holds a row that was inserted
 * behind our snapshot (by another transaction, or by a later command of our own), which therefore sees none: the
 * entry is passed over, and the row that it was of was dead to every snapshot.
 *
 * A snapshot that is not MVCC proves none of this.  Such a scan holds the barrier (scan.c): VACUUM frees no TID
 * until it has ended, the map says the truth, and the caller tests it and the row itself.
 */
#include "am/base/sherman.h"

#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "executor/tuptable.h"
#include "port/atomics.h"
#include "storage/bufmgr.h"
#include "utils/snapmgr.h"

#include "am/base/compat.h"
#include "am/index/index.h"
#include "am/keys/keys.h"
#include "am/nodes/nodes.h"
#include "am/scan/scan.h"
#include "am/scan/scan_only.h"
#include "am/standby/standby.h"

ScanOnly *
scan_only_make(MemoryContext context)
{
	ScanOnly   *only = MemoryContextAlloc(context, sizeof(ScanOnly));

	only->context = context;
	only->serial = 0;
	only->map_buffer = InvalidBuffer;
	only->fetch = NULL;
	only->slot = NULL;
	return only;
}

void
scan_only_pause(ScanOnly *only)
{
	if (only->fetch != NULL)
	{
		ExecClearTuple(only->slot);
		table_index_fetch_reset(only->fetch);
	}
}

void
scan_only_end(ScanOnly *only)
{
	if (only->fetch != NULL)
	{
		table_index_fetch_end(only->fetch);
		ExecDropSingleTupleTableSlot(only->slot);
	}
	if (BufferIsValid(only->map_buffer))
		ReleaseBuffer(only->map_buffer);
	pfree(only);
}

/* t1: marks the entries whose pages are all-visible, says the map. False: there is none. */
static bool
ask_map(ScanOnly *only, Relation table, const TreeBatch *batch)
{
	BlockNumber block = InvalidBlockNumber;
	bool		visible = false;
	bool		any = false;

	for (int i = 0; i < batch->count; i++)
	{
		if (batch->entries[i].block != block)
		{
			block = batch->entries[i].block;
			visible = VM_ALL_VISIBLE(table, block, &only->map_buffer);
			any |= visible;
		}
		only->truthful[i] = visible;
	}
	return any;
}

/* t1 and t2 for a batch: marks the entries that need no look at the table. */
static void
judge_batch(ScanOnly *only, IndexScanDesc scan, ShermanIndex *index, TreeScan *tree_scan, const TreeBatch *batch)
{
	bool		unchanged = true;
	TreeStatus	status = TREE_OK;

	if (!IsMVCCSnapshot(scan->xs_snapshot))
	{
		memset(only->truthful, true, sizeof(only->truthful));
		return;
	}
	/* On a standby the map may not know yet of rows that the leaf has entries of. */
	if (unlikely(sherman_connection_is_reader()) && !standby_has_replayed(&batch->wal))
	{
		memset(only->truthful, false, sizeof(only->truthful));
		return;
	}
	/* The map is read without a lock: not before the leaf, and not behind its generation. */
	pg_memory_barrier();
	if (ask_map(only, scan->heapRelation, batch))
	{
		pg_memory_barrier();
		status = sherman_batch_unchanged(index, scan->indexRelation, tree_scan, batch, &unchanged);
	}
	if (status != TREE_OK)
		sherman_report_failure(status, scan->indexRelation);
	/* A half that the primary has lost stays as it is, while the map, as it was replayed since, tells of removals from the other one. */
	if (unlikely(sherman_connection_is_reader()) && index->meta.replica != 0 && unchanged)
		unchanged = sherman_metapage_stands(index, scan->indexRelation);
	if (!unchanged)
		memset(only->truthful, false, sizeof(only->truthful));
}

/* Where a tuple begins that stands so many units behind the first. */
static inline char *
tuple_place(ScanOnly *only, Size unit)
{
	return (char *) only->tuples + unit * MAXIMUM_ALIGNOF;
}

/*
 * Makes the tuples of all entries that may be returned as they are, in one go, as far as there is room. Not those
 * with overflow keys, which may be gone, and which the caller may not need.
 */
static void
make_tuples(ScanOnly *only, ShermanKeys *keys, const TreeBatch *batch, const TreeKeyView *views)
{
	Size		unit = 1;		/* 0 stands for none */

	for (int i = 0; i < batch->count; i++)
	{
		IndexTuple	place = (IndexTuple) tuple_place(only, unit);

		only->ready[i] = 0;
		if (!only->truthful[i] || (views[i].image == NULL && views[i].image_bytes != 0))
			continue;
		/* A posting's entries have one key, and so one tuple. */
		if (i > 0 && views[i].norm == views[i - 1].norm && only->ready[i - 1] != 0)
		{
			only->ready[i] = only->ready[i - 1];
			continue;
		}
		if (unit + KEY_TUPLE_ROOM / MAXIMUM_ALIGNOF > SCAN_ONLY_TUPLE_UNITS)
			continue;
		if (!keys->integers || !key_integer_tuple(keys, &views[i], place))
		{
			key_reader_open_at(&only->reader, keys, &views[i], place);
			(void) key_reader_tuple(&only->reader);
		}
		only->ready[i] = (uint16) unit;
		unit += MAXALIGN(IndexTupleSize(place)) / MAXIMUM_ALIGNOF;
	}
}

/* Not inlined: most entries need it not. */
static pg_noinline void
prepare_batch(ScanOnly *only, IndexScanDesc scan, ShermanIndex *index, TreeScan *tree_scan, const TreeBatch *batch,
			  uint64 serial)
{
	TreeKeyView views[TREE_BATCH_MAX];

	only->serial = 0;
	judge_batch(only, scan, index, tree_scan, batch);
	tree_batch_views(tree_scan, batch, views);
	make_tuples(only, index->keys, batch, views);
	only->serial = serial;
}

/* Whether the scan's snapshot sees a row under scan->xs_heaptid. *dead: no snapshot does, or ever will. */
static pg_noinline bool
row_is_visible(ScanOnly *only, IndexScanDesc scan, bool *dead)
{
	ItemPointerData tid = scan->xs_heaptid;
	bool		again = false;
	bool		visible;

	if (only->fetch == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(only->context);

		only->slot = table_slot_create(scan->heapRelation, NULL);
		only->fetch = compat_fetch_begin(scan->heapRelation);
		MemoryContextSwitchTo(caller);
	}
	visible = table_index_fetch_tuple(only->fetch, &tid, scan->xs_snapshot, only->slot, &again, dead);
	ExecClearTuple(only->slot);
	return visible;
}

bool
scan_only_return(ScanOnly *only, IndexScanDesc scan, ShermanIndex *index, TreeScan *tree_scan,
				 const TreeBatch *batch, uint64 serial, int position, bool *dead)
{
	TreeKey		key;
	TreeStatus	status;

	if (only->serial != serial)
		prepare_batch(only, scan, index, tree_scan, batch, serial);
	if (scan_only_ready(only, scan, batch, serial, position))
		return true;
	ItemPointerSet(&scan->xs_heaptid, batch->entries[position].block, batch->entries[position].offset);
	if (!only->truthful[position] && !row_is_visible(only, scan, dead))
		return false;
	status = sherman_batch_key(index, scan->indexRelation, tree_scan, batch, position, &key);
	/* Removed meanwhile: VACUUM found its row dead to every snapshot, of a standby once that is replayed. */
	if (unlikely(sherman_connection_is_reader()) && status == TREE_NOT_FOUND)
		standby_believe(index, scan->indexRelation, scan->xs_snapshot, false);
	if (status == TREE_NOT_FOUND)
		return false;
	if (status != TREE_OK)
		sherman_report_failure(status, scan->indexRelation);
	scan->xs_itup = scan_only_tuple(only, index->keys, &key);
	return true;
}

IndexTuple
scan_only_tuple(ScanOnly *only, ShermanKeys *keys, const TreeKey *key)
{
	key_reader_open(&only->reader, keys, key);
	return key_reader_tuple(&only->reader);
}

/* amcanreturn: every column is stored. */
bool
sherman_canreturn(Relation index, int attribute)
{
	return true;
}
