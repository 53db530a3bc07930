/*
 * scan.h
 *		The face of am/scan: the callbacks of index scans.
 */
#ifndef SHERMAN_AM_SCAN_H
#define SHERMAN_AM_SCAN_H

#include "am/index/index.h"

/* ---- kill.c: dead marks ---- */

/* Entries of a scan's batch that are dead to every snapshot. */
typedef struct ShermanKills
{
	int			count;
	TreeDead   *entries;		/* TREE_BATCH_MAX, made when first needed */
} ShermanKills;

/* The entry at this position of the batch, if it has one, is dead. */
extern void sherman_kill_note(ShermanKills *kills, MemoryContext context, const TreeBatch *batch, int position);
/* The scan leaves the batch, which is valid still: marks what was noted. Raises nothing. */
extern void sherman_kill_flush(ShermanKills *kills, IndexScanDesc scan, const ShermanIndex *index, const TreeBatch *batch);

/* ---- prefetch.c: leaves of scans that are to come ---- */

typedef struct ShermanPrefetch ShermanPrefetch;

/*
 * For scans of the index by these scan keys, at most `most` of them at a time.  The caller sets the keys' arguments and notes them,
 * one scan after the other; then the leaves of all that were noted are fetched together.  In the current memory context; the index
 * stays open.
 */
extern ShermanPrefetch *sherman_prefetch_make(Relation index, struct ScanKeyData *scan_keys, int scan_key_count, int most);
extern void sherman_prefetch_note(ShermanPrefetch *prefetch);
extern void sherman_prefetch_go(ShermanPrefetch *prefetch);

/* ---- callbacks ---- */
extern IndexScanDesc sherman_beginscan(Relation index, int nkeys, int norderbys);
extern void sherman_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool sherman_gettuple(IndexScanDesc scan, ScanDirection direction);
extern int64 sherman_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void sherman_endscan(IndexScanDesc scan);
/* What a scan of ours, which has not ended, has moved while sherman_traffic_measured was set. */
extern const struct ShermanTraffic *sherman_scan_traffic(IndexScanDesc scan);
extern void sherman_markpos(IndexScanDesc scan);
extern void sherman_restrpos(IndexScanDesc scan);
extern bool sherman_canreturn(Relation index, int attribute);
extern Size sherman_parallel_scan_bytes(void);
extern void sherman_initparallelscan(void *target);
extern void sherman_parallelrescan(IndexScanDesc scan);

#endif							/* SHERMAN_AM_SCAN_H */
