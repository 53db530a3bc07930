/*
 * scan_only.h
 *		Index-only scans: what scan.c asks for each entry that it is about to return.
 */
#ifndef SHERMAN_SCAN_ONLY_H
#define SHERMAN_SCAN_ONLY_H

#include "access/itup.h"
#include "access/relscan.h"
#include "am/keys/key_layout.h"

/* Room for a batch's tuples, in units of the alignment; those that it does not hold are made one by one. */
#define SCAN_ONLY_TUPLE_UNITS 2048

/* What one scan keeps for that; made when it first returns an entry with xs_want_itup. */
typedef struct ScanOnly
{
	MemoryContext context;		/* of the scan */
	uint64		serial;			/* of the batch that the next two are of; 0: none */
	/* By position: where in `tuples` the entry's tuple begins, in units, if it may be returned as it is; 0: to be looked at */
	uint16		ready[TREE_BATCH_MAX];
	bool		truthful[TREE_BATCH_MAX];	/* by position: the row was visible to everybody */
	Buffer		map_buffer;		/* page of the visibility map looked at last */
	IndexFetchTableData *fetch; /* NULL: no row was looked up yet */
	TupleTableSlot *slot;
	KeyReader	reader;			/* holds xs_itup of entries that were looked at */
	uint64		tuples[SCAN_ONLY_TUPLE_UNITS * MAXIMUM_ALIGNOF / sizeof(uint64)];
} ScanOnly;

extern ScanOnly *scan_only_make(MemoryContext context);

/* As scan_only_return(), which false leaves the rest to: of an entry whose batch it has prepared. */
static inline bool
scan_only_ready(const ScanOnly *only, IndexScanDesc scan, const TreeBatch *batch, uint64 serial, int position)
{
	if (only->serial != serial || only->ready[position] == 0)
		return false;
	ItemPointerSet(&scan->xs_heaptid, batch->entries[position].block, batch->entries[position].offset);
	scan->xs_itup = (IndexTuple) ((const char *) only->tuples + only->ready[position] * MAXIMUM_ALIGNOF);
	return true;
}

/*
 * Sets scan->xs_itup to the entry at this position of the batch, whose number among the scan's batches is
 * `serial`, and scan->xs_heaptid.  False: no row of it is visible to the scan's snapshot, pass it over;
 * then *dead tells whether it is dead to everybody, and is else left as it is.  Nothing is locked; may raise.
 */
extern bool scan_only_return(ScanOnly *only, IndexScanDesc scan, ShermanIndex *index, TreeScan *tree_scan,
							 const TreeBatch *batch, uint64 serial, int position, bool *dead);

/* The tuple of an entry whose row was looked up; valid until the next one, or as long as the key. */
extern IndexTuple scan_only_tuple(ScanOnly *only, ShermanKeys *keys, const TreeKey *key);

/* The scan is at its end, or begins anew: lets go of the table's page. */
extern void scan_only_pause(ScanOnly *only);

/* Lets go of everything; `only` is gone. */
extern void scan_only_end(ScanOnly *only);

#endif							/* SHERMAN_SCAN_ONLY_H */
