/*
 * keys_ahead.h
 *		The leaves of the next keys of `= ANY`, fetched together.
 */
#ifndef SHERMAN_KEYS_AHEAD_H
#define SHERMAN_KEYS_AHEAD_H

#include "am/scan/scankeys.h"

/* Leaves that are fetched together at most. */
#define LEAVES_AHEAD_MAX 64

typedef struct KeysAhead
{
	int			leaves;			/* to fetch the next time; 0: nothing is fetched ahead */
	bool		fetched;		/* leaves were, of the combinations up to this one in this direction */
	ScanDirection direction;
	int			last[INDEX_MAX_KEYS];
} KeysAhead;

/*
 * A scan begins: of `leaves` at first.  Whatever an earlier one has fetched is forgotten.
 */
extern void keys_ahead_start(KeysAhead *ahead, IndexScanDesc scan, ScanKeys *keys, TreeScan *tree_scan, int leaves);

static inline void
keys_ahead_begin(KeysAhead *ahead, IndexScanDesc scan, ScanKeys *keys, TreeScan *tree_scan, int leaves)
{
	if (keys->array_count > 0 || ahead->leaves > 0)
		keys_ahead_start(ahead, scan, keys, tree_scan, leaves);
}

/* What was fetched is read again. */
extern void keys_ahead_forget(KeysAhead *ahead, TreeScan *tree_scan);

/*
 * Before the seek for the combination at hand: fetches its leaf and those of the next ones, if that was not done before.  Scan keys are
 * what they were.
 */
extern void keys_ahead_read(KeysAhead *ahead, ScanKeys *keys, TreeScan *tree_scan, ScanDirection direction);

static inline void
keys_ahead_fetch(KeysAhead *ahead, ScanKeys *keys, TreeScan *tree_scan, ScanDirection direction)
{
	if (ahead->leaves > 0)
		keys_ahead_read(ahead, keys, tree_scan, direction);
}

#endif							/* SHERMAN_KEYS_AHEAD_H */
