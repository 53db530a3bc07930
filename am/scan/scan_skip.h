/*
 * scan_skip.h
 *		Skip scans: what a scan may leave out where a condition is behind a column that the bounds leave open.
 */
#ifndef SHERMAN_SCAN_SKIP_H
#define SHERMAN_SCAN_SKIP_H

#include "am/scan/scankeys.h"

/* Leaves of one group that a scan reads on at most before it looks for the next one. */
#define SKIP_PATIENCE_MAX 64

/* Elements of a condition = ANY behind a column that is left open, each of which is a group. */
#define SKIP_ELEMENTS_MAX 16

typedef enum SkipRegion
{
	SKIP_WHOLE,					/* all between the edges of the combination */
	SKIP_GROUP,					/* one value of each leading column, and what the conditions behind them ask */
	SKIP_BEYOND					/* all that comes behind the values of leading columns */
} SkipRegion;

/*
 * Why an entry is none: the first column whose condition does not hold, and how many of the values that would do lie before the entry's, in
 * the order of the index. All entries with the same gap, and the same values before the column, lie side by side.
 */
typedef struct SkipGap
{
	int			column;			/* ScanKeys.conditions: all conditions hold */
	int			value;
} SkipGap;

typedef struct ScanSkip
{
	ScanKeys   *keys;
	MemoryContext context;		/* of the scan */
	MemoryContext values;		/* of the region's values, unless they are by value */
	bool		off;			/* never skips: parallel, as others read what follows; or it has too many groups */
	SkipRegion	region;
	ScanEdge	low;			/* the region's; of SKIP_BEYOND only the one where it begins, of SKIP_WHOLE none */
	ScanEdge	high;
	int			bound;			/* leading columns that have one value in a SKIP_GROUP */
	bool		whole_group;	/* all conditions hold in it */
	ShermanSearchColumn value[INDEX_MAX_KEYS];
	int			element[INDEX_MAX_KEYS];	/* of these, the value's number in its condition */

	/* of the batch at hand */
	bool		jump;			/* what follows it is to be skipped */
	bool		last_known;
	SkipGap		last_gap;		/* of its last entry */
	TreeKey		last_key;
	KeyReader	last;			/* has it open */

	/* whether it is worth it */
	int			first_patience; /* leaves of one group that cost what a skip does */
	int			patience;		/* leaves of one group to be read before the next skip */
	int			run;			/* that were read */
	bool		skipped;		/* the region was skipped to, and no leaf of it was read yet */
	bool		far;			/* a skip since the last SKIP_BEYOND passed over a leaf */
	uint64		leaf;			/* pointers of the leaf read last, and of its right sibling; 0: none yet */
	uint64		right;
} ScanSkip;

/* In this context; a skip costs what so many leaves do. */
extern ScanSkip *scan_skip_make(MemoryContext context, int patience);
extern void scan_skip_free(ScanSkip *skip);

/* A scan begins; `parallel`: with others. */
extern void scan_skip_begin(ScanSkip *skip, ScanKeys *keys, bool parallel);

/* A combination begins, or the scan is put somewhere: all between its edges is to be looked at. */
extern void scan_skip_reset(ScanSkip *skip);

/* Where to begin. */
static inline const ScanEdge *
scan_skip_near(const ScanSkip *skip, const ScanKeys *keys, bool forward)
{
	if (skip == NULL || skip->region == SKIP_WHOLE)
		return forward ? &keys->low_edge : &keys->high_edge;
	return forward ? &skip->low : &skip->high;
}

/* Where to end. */
static inline const ScanEdge *
scan_skip_far(const ScanSkip *skip, const ScanKeys *keys, bool forward)
{
	if (skip == NULL || skip->region != SKIP_GROUP)
		return forward ? &keys->high_edge : &keys->low_edge;
	return forward ? &skip->high : &skip->low;
}

/* Whether entries of the region are to be tested for the conditions. */
static inline bool
scan_skip_tests(const ScanSkip *skip)
{
	return skip->region != SKIP_GROUP || !skip->whole_group;
}

/* Whether all conditions hold in an entry, which the keys' reader has open. */
extern bool scan_skip_holds(ScanSkip *skip, SkipGap *gap);

/*
 * A batch was read: its first entry in the order of the scan, which the keys' reader has open, and its last one, which skip->last has open.
 * `last`: the region ends behind it.
 */
extern void scan_skip_look(ScanSkip *skip, bool last);

/* Whether the entry that the keys' reader has open, and all behind it in the batch, have this gap. */
extern bool scan_skip_rest_fails(ScanSkip *skip, const SkipGap *gap);

/* A batch was read for the region, of this leaf, which has this right sibling: until scan_skip_look() nothing is known of it. */
extern void scan_skip_read(ScanSkip *skip, ScanDirection direction, uint64 leaf, uint64 right);

/* Behind a batch with `jump`: goes to the next region. False: there is none in this combination. */
extern bool scan_skip_jump(ScanSkip *skip, ScanDirection direction);

/* The region was read to its end: goes to the next one.  False: there is none in this combination. */
extern bool scan_skip_next(ScanSkip *skip, ScanDirection direction);

#endif							/* SHERMAN_SCAN_SKIP_H */
