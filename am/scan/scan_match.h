/*
 * scan_match.h
 *		Which entries of a leaf have keys that `= ANY` asks for, where integers tell.
 */
#ifndef SHERMAN_SCAN_MATCH_H
#define SHERMAN_SCAN_MATCH_H

#include "am/scan/scankeys.h"

/* What is asked of a column whose values are integers of its bytes in the normalized key, in the order of the index. */
typedef struct MatchColumn
{
	const KeyColumn *column;
	bool		null;			/* NULL alone */
	uint64		low;			/* unless `count` is not 0: from here */
	uint64		high;			/* to here */
	int			count;			/* of an array's elements */
	uint64	   *elements;
	int			at;				/* the element that was found last */
} MatchColumn;

typedef struct ScanMatch
{
	bool		made;			/* the rest is of the arguments at hand */
	bool		able;			/* integers tell */
	MatchColumn column[INDEX_MAX_KEYS];
	bool		matches[TREE_BATCH_MAX];	/* entry by entry */
} ScanMatch;

/*
 * Notes which entries have, in the columns from `from` on that the edges bind, values that the scan keys ask for. False: integers do not tell.
 */
extern bool scan_match_batch(ScanMatch *match, ScanKeys *keys, int from, const TreeScan *tree_scan, const TreeBatch *batch);

#endif							/* SHERMAN_SCAN_MATCH_H */
