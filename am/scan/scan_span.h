/*
 * scan_span.h
 *		Spans: combinations of `= ANY` whose keys lie in one leaf, read together.
 */
#ifndef SHERMAN_SCAN_SPAN_H
#define SHERMAN_SCAN_SPAN_H

#include "am/scan/scan_match.h"

typedef struct ScanSpan
{
	bool		many;			/* since the last seek there may be entries of several combinations, and others: they are tested */
	int			from;			/* the first column that differs between them */
	int			first[INDEX_MAX_KEYS];	/* the combination that they begin with; the scan keys are at the one that they end with */
	bool		matched;		/* it is known of each entry of the batch whether it is of one of them */
	ScanMatch	match;
	int			stop;			/* which of these edges the tree's scan stops at, if it was moved; the others are to spare */
	ScanEdge	low[2];
	ScanEdge	high[2];
} ScanSpan;

/* Whether something that begins at this bound lies in what a scan has loaded, or announced. */
typedef bool (*SpanReaches) (const TreeScan *tree_scan, const TreeBound *bound);

/*
 * Turns the scan keys on to the last combination in this direction that begins where `reaches` holds, without their edges: these are left in
 * *low and *high if it is another one than before.  Returns whether it is.
 */
extern bool scan_span_reach(ScanKeys *keys, ScanDirection direction, SpanReaches reaches, const TreeScan *tree_scan, ScanEdge *low,
							ScanEdge *high);

/* A scan begins, with other arguments. */
static inline void
scan_span_begin(ScanSpan *span)
{
	span->match.made = false;
}

/* A seek, for the combination at hand alone. */
static inline void
scan_span_seek(ScanSpan *span)
{
	span->many = span->matched = false;
	span->stop = 0;
}

/*
 * The tree's scan has loaded the leaf of the next batch, or has taken (`taken` is not NULL) those of the next ones: takes in the
 * combinations that begin there.
 */
extern void scan_span_widen(ScanSpan *span, ScanKeys *keys, ScanDirection direction, TreeScan *tree_scan, TreeScanPosition *taken);

/* The span's batch was read. */
static inline void
scan_span_look(ScanSpan *span, ScanKeys *keys, const TreeScan *tree_scan, const TreeBatch *batch)
{
	span->matched = span->many && scan_match_batch(&span->match, keys, span->from, tree_scan, batch);
}

/* Whether the entry that the keys' reader has open is of one of the combinations. */
extern bool scan_span_holds(const ScanSpan *span, ScanKeys *keys);

/*
 * Place, as scan_keys_save() has it, of the last combination in the order of the index that does not begin behind the entry that the keys'
 * reader has open.  A scan that goes on from that entry, in either direction, has passed those on the one side of it and none on the other.
 */
extern void scan_span_place(ScanSpan *span, ScanKeys *keys, int *positions);

#endif							/* SHERMAN_SCAN_SPAN_H */
