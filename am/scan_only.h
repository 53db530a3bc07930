/*
 * scan_only.h
 *		Index-only scans: what scan.c asks for each entry that it is about to return.
 */
#ifndef SHERMAN_SCAN_ONLY_H
#define SHERMAN_SCAN_ONLY_H

#include "keys.h"

/* What one scan keeps for that; made when it first returns an entry with xs_want_itup. */
typedef struct ScanOnly ScanOnly;

extern ScanOnly *scan_only_make(MemoryContext context);

/*
 * Sets scan->xs_itup to the entry at this position of the batch, whose number among the scan's batches is
 * `serial`, and scan->xs_heaptid.  False: no row of it is visible to the scan's snapshot, pass it over;
 * then *dead tells whether it is dead to everybody, and is else left as it is.  Nothing is locked; may raise.
 */
extern bool scan_only_return(ScanOnly *only, IndexScanDesc scan, ShermanKeys *keys, TreeScan *tree_scan,
							 const TreeBatch *batch, uint64 serial, int position, bool *dead);

/* The scan is at its end, or begins anew: lets go of the table's page. */
extern void scan_only_pause(ScanOnly *only);

/* Lets go of everything; `only` is gone. */
extern void scan_only_end(ScanOnly *only);

#endif							/* SHERMAN_SCAN_ONLY_H */
