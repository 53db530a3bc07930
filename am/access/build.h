/*
 * build.h
 *		What build.c, build_sort.c and build_parallel.c share: the state of a build in one process.
 */
#ifndef SHERMAN_BUILD_H
#define SHERMAN_BUILD_H

#include "am/base/sherman.h"

#include "access/tableam.h"
#include "executor/tuptable.h"
#include "utils/tuplesort.h"

#include "am/keys/keysort.h"
#include "am/keys/keys.h"

/* Phases as pg_stat_progress_create_index shows them; the first is core's. */
#define PHASE_SCAN 2
#define PHASE_SORT 3
#define PHASE_LOAD 4

/* Rows loaded between two looks around: interrupts, progress, memory of the keys. */
#define LOAD_STRIDE 1024

/* The sorts that the processes of a parallel build share, in its memory. */
typedef struct BuildShare
{
	KeySortShare *keys;			/* lossless formats */
	Sharedsort *tuples;			/* the others */
} BuildShare;

typedef struct BuildState
{
	Relation	heap;
	Relation	index;
	ShermanKeys *keys;
	TreeFormat	format;
	double		tuples;			/* index entries */
	int64		loaded;			/* of them, so far */
	bool		measures;		/* cells are to fit the images: lengths of some rows' */
	ShermanImages images;

	/* lossless: sorts of the keys without and with the leading bit, made with their first key */
	KeySort    *sorts[2];

	/* unique: the last key of a live row that was loaded */
	bool		unique;
	bool		nulls_distinct;
	bool		has_last;
	TreeKey		last;
	uint8	   *last_image;		/* TREE_IMAGE_MAX_BYTES */

	/* lossy: one sort of tuples (words of normalized key, key columns, TID) */
	TupleDesc	descriptor;
	int			words;
	int			columns;		/* of the index, included ones too */
	Tuplesortstate *tuples_sort;
	TupleTableSlot *put_slot;
	TupleTableSlot *get_slot;

	/* what this process may take to sort, and, if it is one of several, which one and what they share */
	int			memory_kb;
	int			participant;
	const BuildShare *share;	/* NULL: it builds alone */

	MemoryContext context;		/* of the build: sorts */
	MemoryContext row_context;	/* of one row's key, or of LOAD_STRIDE of them */
} BuildState;

/* Begins a build in this process, in CurrentMemoryContext. */
extern void build_begin(BuildState *state, Relation heap, Relation index, IndexInfo *info);

/*
 * Reads the table, or this process's share of it (`scan` not NULL), into sorts.  Returns the number of
 * rows, live or not, that were met.  `progress`: reports it.
 */
extern double build_scan(BuildState *state, IndexInfo *info, TableScanDesc scan, bool progress);

/* Chooses the cells for what all processes have read, before the tree is made. */
extern void build_fit_cells(BuildState *state);

/*
 * Sorts what was read.  A participant's sorts then lie where build_take_over() finds them, those of no keys at all, too: it knows them
 * by their number.
 */
extern void build_sort(BuildState *state);

/* Makes the sorts of a state that has read nothing return, merged, what so many participants have handed over. */
extern void build_take_over(BuildState *state, int participants);

/*
 * Forms the key of a tuple that the sort of tuples has returned.  Its words are the normalized key, which is not made again, unless
 * they are NULL, as the leading column is.
 */
extern void build_sorted_key(BuildState *state, TupleTableSlot *slot, TreeKey *key);

/* Frees the sorts. */
extern void build_end(BuildState *state);

/* ---- build_parallel.c ---- */

typedef struct ParallelBuild ParallelBuild;

/*
 * Starts the workers that the planner finds worth their while, and has them and this process read the table
 * into sorts that `state` then returns merged.  NULL: none could be had, nothing was read.  Else *rows is
 * as build_scan() returns it, and parallel mode lasts until build_parallel_end().
 */
extern ParallelBuild *build_parallel(BuildState *state, IndexInfo *info, double *rows);
extern void build_parallel_end(ParallelBuild *build);

#endif							/* SHERMAN_BUILD_H */
