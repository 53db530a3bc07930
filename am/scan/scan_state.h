/*
 * scan_state.h
 *		What the files of an index scan share: its state, how it opens its index, its places, and rows that are in progress.
 */
#ifndef SHERMAN_SCAN_STATE_H
#define SHERMAN_SCAN_STATE_H

#include "am/heal/unverified.h"
#include "am/index/announced.h"
#include "am/index/index.h"
#include "am/nodes/traffic.h"
#include "am/scan/keys_ahead.h"
#include "am/scan/scan.h"
#include "am/scan/scan_only.h"
#include "am/scan/scan_skip.h"
#include "am/scan/scan_span.h"
#include "am/scan/scankeys.h"

/* A place between two entries, or rather at one that has been returned. */
typedef struct ScanPlace
{
	bool		valid;
	TreeKey		key;
	uint8	   *image;			/* TREE_IMAGE_MAX_BYTES, made when first needed */
	int			arrays[INDEX_MAX_KEYS]; /* the combination it lies in */
} ScanPlace;

typedef enum MarkKind
{
	MARK_NONE,					/* the scan had not begun, or was over */
	MARK_IN_BATCH,				/* position in the batch with this serial number */
	MARK_PLACE
} MarkKind;

typedef struct ShermanScan
{
	MemoryContext context;		/* of the scan: all that is allocated here */
	ShermanIndex *index;
	Tree	   *tree;			/* that tree_scan is of */
	TreeScan   *tree_scan;
	ShermanPredicateScan predicate;	/* what tree_scan locks for */
	ScanKeys   *keys;
	bool		begun;			/* the edges of a combination are made; false also behind the end */
	bool		barrier;		/* held */
	uint32		barrier_half;
	bool		sought;			/* tree_scan was positioned for this combination and place */
	ScanDirection batch_direction;	/* of the last seek */
	const TreeBatch *batch;		/* NULL: none read since the last seek */
	bool		last;			/* it, or the one before, is the last one */
	int			position;		/* of the entry returned last, in the batch */
	uint64		serial;			/* of the batch */
	ShermanKills kills;			/* in the batch */
	ScanPlace	place;			/* valid: where to seek from, instead of from the combination's edge */
	MarkKind	mark;
	uint64		mark_serial;
	int			mark_position;
	ScanPlace	mark_place;
	ItemPointerData *tids;		/* of a bitmap scan: TREE_BATCH_MAX */
	ScanOnly   *only;			/* of an index-only scan; NULL: nothing was returned yet */
	UnverifiedRows *rows;			/* NULL: no unverified leaf was met yet */
	KeysAhead	ahead;			/* leaves of the next combinations */
	ScanSkip   *skip;			/* NULL: the bounds leave nothing out that a scan could skip to */
	ScanSkip   *spare_skip;		/* the same, kept for rescans; NULL: none was made yet */
	ScanSpan   *span;			/* NULL: no combinations are read together */
	ScanSpan   *spare_span;		/* as spare_skip */
	bool		search;			/* a seek was made, and is not counted as a search yet */
	uint64		leaf;			/* as in ScanSkip, of the batch read last */
	uint64		right;
	bool		standby;		/* this server is a hot standby, or was when the transaction began */
	BlockNumber blocks;			/* then: of the table, when the scan began; entries beyond are of rows that are not there yet */
	bool		beyond;			/* the batch at hand has such entries */
	bool		tests;			/* entries of the batch are tested, one by one */
	bool		waited;			/* for the healer, which has verified all leaves */
	ShermanTraffic traffic;		/* as far as it was measured */
	bool		dirty;			/* a dirty snapshot's: what is announced was looked for since the last rescan */
	bool		of_key;			/* it is for the rows with one key, and returns those that are announced, too */
	int			announced_left;
	AnnouncedRow *announced;	/* ANNOUNCED_ROWS, made when first needed */
} ShermanScan;

/* ---- scan_open.c ---- */

/* The scan barrier (locks.c) is taken, unless the scan has it, and let go of, if it has it. */
extern void scan_hold_barrier(IndexScanDesc scan);
extern void scan_release_barrier(IndexScanDesc scan);

/* Raises what the tree has returned for this scan's index. */
extern void scan_report_status(IndexScanDesc scan, TreeStatus status);

/*
 * Opens the index, the tree's scan and the digest of the scan keys, unless they are there from an earlier
 * scan.  False: the index is empty.
 */
extern bool scan_open_index(IndexScanDesc scan);

/* Begins a (re)scan in this direction, which first fetches so many leaves of `= ANY` together. False: nothing can match. */
extern bool scan_begin(IndexScanDesc scan, ScanDirection direction, int leaves_ahead);

/* ---- scan_place.c ---- */

/* The key of a batch's entry. False: it was removed meanwhile, and with it its image. */
extern bool scan_batch_key(IndexScanDesc scan, int position, TreeKey *key);

/* `place` becomes that of this key, which is the scan's own, or of the batch at hand. */
extern void scan_set_place(ShermanScan *state, ScanPlace *place, const TreeKey *key);

/*
 * Takes the place of a batch's entry; of one further on in `step` if it was removed meanwhile, for then those
 * passed over are gone as well.  Raises if all of those were.
 */
extern void scan_take_place(IndexScanDesc scan, ScanPlace *place, int position, int step);

/* The batch at hand is about to go: its dead entries are marked. */
extern void scan_flush_kills(IndexScanDesc scan);

/* The same, a mark in it becomes a place, and there is no batch. */
extern void scan_leave_batch(IndexScanDesc scan);

/* ---- scan_dirty.c ---- */

/* Looks for rows with the scan's key that are announced: once in a scan, and before it looks into the tree. Keeps the barrier held. */
extern void scan_find_announced(IndexScanDesc scan);

/* The next of these rows, as the scan's TID. False: there is none. */
extern bool scan_return_announced(IndexScanDesc scan);

/* Whether the row of the current entry is there for a dirty snapshot. The barrier is let go of where it may be. */
extern bool scan_dirty_row_is_there(IndexScanDesc scan);

/* ---- scan_standby.c ---- */

/* On a hot standby: a (re)scan begins; its index is open. */
extern void scan_standby_begin(IndexScanDesc scan);
/* The same behind each read of the tree, before anything of it is used.  NULL: it brought no batch. */
extern void scan_standby_read(IndexScanDesc scan, const TreeBatch *batch);

#endif							/* SHERMAN_SCAN_STATE_H */
