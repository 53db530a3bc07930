/*
 * merge.h
 *		The ranges that a vacuum's walk found empty, and a merge in progress: shared by vacuum.c, merge_walk.c
 *		(chooses nodes) and merge.c (the children of one node).
 */
#ifndef SHERMAN_MERGE_H
#define SHERMAN_MERGE_H

#include "tree/internal.h"

/*
 * The most ranges that are remembered; neighboring empty leaves make one. If there are more, the last range extends
 * to the last empty leaf, so that all leaves in between are examined.
 */
#define EMPTY_RANGES_MAX 1024u

/* A range of keys from the beginning of an empty leaf to the end of an empty leaf, with all in between. */
typedef struct EmptyRange
{
	uint64_t low[LINE_WORDS]; /* never infinite: the leftmost leaf has no neighbor that it could go into */
	uint64_t high[LINE_WORDS];
} EmptyRange;

/* In the order of keys; they do not overlap. */
typedef struct EmptyRanges
{
	uint32_t count;
	EmptyRange ranges[EMPTY_RANGES_MAX];
} EmptyRanges;

/* empty_ranges.c. Adds an empty leaf, which lies behind those that were added. */
extern void empty_ranges_add(const NodeGeometry *g, EmptyRanges *empty, const uint64_t *leaf);
/* vacuum.c: what the walk has seen. */
extern const EmptyRanges *vacuum_empty_ranges(const TreeVacuum *vacuum);

/* Children that lie side by side and go into the one before them. */
typedef struct MergeRun
{
	uint32_t left;  /* the child that stays */
	uint32_t last;  /* children left + 1 .. last go */
	uint64_t right; /* right link and high fence of the last */
	uint64_t high[LINE_WORDS];
	TreeWalPosition dead; /* leaves: the youngest unit of what is dead among those that go */
} MergeRun;

/* What can be merged of one parent's children. */
typedef struct MergePlan
{
	uint32_t runs;
	MergeRun run[INNER_CELLS_MAX / 2 + 1];
	uint64_t generations[INNER_CELLS_MAX]; /* of the children that were looked at */
} MergePlan;

typedef struct MergedNode
{
	uint64_t pointer;
	uint64_t generation;
} MergedNode;

struct TreeMerge
{
	Tree *tree;
	/* merge_walk.c */
	const EmptyRanges *empty;         /* the vacuum's */
	uint8_t marks[EMPTY_RANGES_MAX];  /* RANGE_* of each */
	uint32_t range;                   /* that is looked at */
	uint32_t behind;                  /* the first range that goes on behind the parent, or begins there */
	uint64_t place[LINE_WORDS];       /* where to look for the next parent, if `placed` */
	uint64_t place_after[LINE_WORDS]; /* where to go on, if `goes_on` */
	bool placed;
	bool goes_on;        /* `behind` begins before the parent's end */
	uint32_t level;      /* of the parents that are walked */
	uint32_t root_level; /* as the last descent saw it */
	uint32_t tries;      /* to find this parent and to merge its children */
	uint32_t missed;     /* parents in a row */
	bool inner; /* inner nodes were merged: leaves that were the first of them have a left neighbor now */
	bool ended;
	/* merge.c */
	uint64_t next;              /* the parent */
	uint64_t *parent;           /* NODE_MAX_BYTES each: its image, cells that move, and children */
	bool look[INNER_CELLS_MAX]; /* which children to look at */
	bool first_waits;           /* its first child could be merged if it had a left neighbor */
	bool changed;               /* it was not merged, as the parent had changed meanwhile */
	bool alone;                 /* the barrier is closed */
	bool begun;                 /* and something may have been written */
	uint64_t *gathered;
	uint64_t *children[TREE_PREFETCH_MAX];
	NodeVerdict verdicts[TREE_PREFETCH_MAX];
	uint8_t *image; /* TREE_IMAGE_MAX_BYTES: of a separator */
	MergePlan plan;
	uint32_t merged;
	MergedNode nodes[INNER_CELLS_MAX];
};

/*
 * Merges as many as possible of the children merge->look of the parent merge->next, whose image is merge->parent;
 * adds to `counts`, and sets *merged to the number of nodes that went. *alone false: calls in progress took too long.
 * Returns as tree_merge_next().
 */
extern TreeStatus merge_children(TreeMerge *merge, TreeMergeCounts *counts, bool *alone, uint32_t *merged);

#endif /* SHERMAN_MERGE_H */
