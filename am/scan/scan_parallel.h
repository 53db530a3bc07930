/*
 * scan_parallel.h
 *		The place where a parallel scan goes on, in the memory that its participants share.
 */
#ifndef SHERMAN_SCAN_PARALLEL_H
#define SHERMAN_SCAN_PARALLEL_H

#include "am/index/index.h"

/* Where to go on: a place between two leaves, under a combination of array elements. */
typedef struct ParallelPlace
{
	bool		begun;			/* false: no participant has read anything yet, the rest is not set */
	TreeScanPosition position;
	int			arrays[INDEX_MAX_KEYS]; /* as of scan_keys_save() */
} ParallelPlace;

/*
 * Waits until no other participant is reading and takes the scan over: parallel_scan_release() or
 * parallel_scan_finish() must follow, or an error, which ends the query for all.  False: the scan has
 * ended.  Interrupts are served.
 */
extern bool parallel_scan_seize(IndexScanDesc scan, ParallelPlace *place);

/* Lets others go on at `place`. */
extern void parallel_scan_release(IndexScanDesc scan, const ParallelPlace *place);

/* Nothing is left to read. */
extern void parallel_scan_finish(IndexScanDesc scan);

#endif							/* SHERMAN_SCAN_PARALLEL_H */
