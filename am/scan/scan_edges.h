/*
 * scan_edges.h
 *		The ends of what a scan reads, as bounds of the tree.
 */
#ifndef SHERMAN_SCAN_EDGES_H
#define SHERMAN_SCAN_EDGES_H

#include "am/keys/key_layout.h"

/* One end.  Its tree bound points to its search: an edge is not copied. */
typedef struct ScanEdge
{
	bool		bound;			/* false: the index's end */
	TreeBound	tree;
	ShermanSearch search;
} ScanEdge;

/* One end of a range of a column. */
typedef struct ScanEnd
{
	bool		bound;			/* by a condition; else it leaves out NULLs, if they sort there */
	bool		inclusive;
	ShermanSearchColumn value;	/* NULL unless `bound` */
} ScanEnd;

typedef struct ScanRange
{
	ScanEnd		low;			/* in the order of the index */
	ScanEnd		high;
} ScanRange;

/*
 * Makes the low or the high edge of what has these values in its leading `count` columns and, unless `range` is NULL, lies in a range
 * of the next one.  False: there is nothing, for a value is beyond the range of its column's type.  Nothing is allocated; values by
 * reference stay where they are, as long as the edge is in use.
 */
extern bool scan_edge_make(const ShermanKeys *keys, ScanEdge *edge, bool low, const ShermanSearchColumn *equal, int count,
						   const ScanRange *range);

/* The high edge of what has the values of the low one, which was made without a range, and stays with it. */
extern void scan_edge_mirror(ScanEdge *high, const ScanEdge *low);

/* Whether the normalized bytes tell that nothing lies between two edges: a > 5 AND a < 3. */
extern bool scan_edges_crossed(const ScanEdge *low, const ScanEdge *high);

#endif							/* SHERMAN_SCAN_EDGES_H */
