/*
 * merge.h
 *		The ranges that a vacuum's walk found empty or sparse, and a merge in progress: shared by vacuum.c, merge_walk.c
 *		(chooses nodes), merge.c (the children of one node) and merge_fold.c (leaves with entries).
 */
#ifndef SHERMAN_MERGE_H
#define SHERMAN_MERGE_H

#include "tree/internal.h"

/*
 * The most ranges that are remembered; neighboring leaves make one. If there are more, the last range extends
 * to the last such leaf, so that all leaves in between are examined.
 */
#define SPARSE_RANGES_MAX 1024u

/* A range of keys from the beginning of a leaf that is empty, or goes into its neighbor, to the end of one, with all in between. */
typedef struct SparseRange
{
	uint64_t low[LINE_WORDS]; /* never infinite: the leftmost leaf has no neighbor that it could go into */
	uint64_t high[LINE_WORDS];
} SparseRange;

/* In the order of keys; they do not overlap. */
typedef struct SparseRanges
{
	uint32_t count;
	SparseRange ranges[SPARSE_RANGES_MAX];
} SparseRanges;

/* sparse_ranges.c. Adds a leaf, which lies behind those that were added. */
extern void sparse_ranges_add(const NodeGeometry *g, SparseRanges *sparse, const uint64_t *leaf);
/* vacuum.c: what the walk has seen. */
extern const SparseRanges *vacuum_sparse_ranges(const TreeVacuum *vacuum);

/* Children that lie side by side and go into the one before them. */
typedef struct MergeRun
{
	uint32_t left;  /* the child that stays */
	uint32_t last;  /* children left + 1 .. last go */
	uint64_t right; /* right link and high fence of the last */
	uint64_t high[LINE_WORDS];
	TreeWalPosition dead; /* leaves: the youngest unit of what is dead among those that go */
	uint32_t cells;       /* leaves: how many cells move, and where they are in merge->moved */
	uint32_t moved;
	bool ordered;        /* these are ascending by (key, TID), as in LeafCells */
	TreeWalPosition wal; /* the latest position of those that have entries */
} MergeRun;

/* Every other child stays at least. */
#define MERGE_RUNS_MAX (INNER_CELLS_MAX / 2 + 1)

/* What can be merged of one parent's children. */
typedef struct MergePlan
{
	uint32_t runs;
	MergeRun run[MERGE_RUNS_MAX];
	uint64_t generations[INNER_CELLS_MAX]; /* of the children that were looked at */
	bool folded[INNER_CELLS_MAX];          /* those of them that are leaves with entries, and go */
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
	const SparseRanges *sparse;       /* the vacuum's */
	uint8_t marks[SPARSE_RANGES_MAX]; /* RANGE_* of each */
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
	uint64_t *moved; /* cells of leaves that go, run by run */
	uint64_t *children[TREE_PREFETCH_MAX];
	NodeVerdict verdicts[TREE_PREFETCH_MAX];
	uint8_t *image; /* TREE_IMAGE_MAX_BYTES: of a separator */
	MergePlan plan;
	uint32_t merged;
	uint32_t folded; /* of these: leaves with entries */
	MergedNode nodes[INNER_CELLS_MAX];
};

/* ---- merge_fold.c: leaves with entries ---- */

/* Of leaves that are unverified or have void marks, instead of their cells. */
#define FOLD_NEVER UINT32_MAX

/* Cells in use of a leaf whose entries can move, or that can take others'; else FOLD_NEVER. */
extern uint32_t fold_cells(const NodeGeometry *g, const uint64_t *leaf);
/* Whether a leaf of so many goes into a neighbor with room. */
extern bool fold_sparse(const NodeGeometry *g, uint32_t cells);
/* Whether it goes into one that uses `left`. */
extern bool fold_fits(const NodeGeometry *g, uint32_t left, uint32_t cells);
/* Adds a leaf's cells to those that move; alone in the tree. */
extern void fold_take(TreeMerge *merge, MergeRun *run, const uint64_t *leaf);
/*
 * Begins the next image of the run's left leaf, which is locked, in client->image_left: with all cells that move. False: they do not
 * fit.
 */
extern bool fold_image(const TreeMerge *merge, const MergeRun *run, uint64_t pointer);

/* ---- merge.c ---- */

/*
 * Merges as many as possible of the children merge->look of the parent merge->next, whose image is merge->parent;
 * adds to `counts`, and sets *merged to the number of nodes that went. *alone false: calls in progress took too long.
 * Returns as tree_merge_next().
 */
extern TreeStatus merge_children(TreeMerge *merge, TreeMergeCounts *counts, bool *alone, uint32_t *merged);

#endif /* SHERMAN_MERGE_H */
