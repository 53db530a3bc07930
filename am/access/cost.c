/*
 * cost.c
 *		Cost estimates for the planner: btree's formula, over the index's true size.
 *
 * The main fork is one page, whatever the size of the tree, so core's figures for the index are useless.  With the
 * tree's in their place btcostestimate() is right as it stands: a descent costs what btree's does, and a leaf read
 * from the embedded node's memory what a page does that is in shared buffers or in the kernel's cache.  So the
 * planner chooses sherman where it would choose btree.
 *
 * The tree is opened for that, and a session's first time connects it to memory nodes: only when there is a path
 * that would use the index, so that no other plan waits for a memory node.
 */
#include "am/base/sherman.h"

#include <math.h>

#include "access/genam.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "utils/index_selfuncs.h"

#include "am/access/access.h"
#include "am/index/index.h"

/* Bytes of leaf per entry while the tree's size is not known: 32-byte cells, leaves filled to two thirds. */
#define ENTRY_BYTES_GUESS 48.0

/* Entries of a leaf and children of an inner node, for a guess at the height. */
#define LEAF_ENTRIES_GUESS 45.0
#define FANOUT_GUESS 90.0

/* Heights of indexes whose size was not asked for, as core leaves it, and of those that turned out to be away. */
#define HEIGHT_NOT_ASKED (-1)
#define HEIGHT_AWAY (-2)

/* More than any plan without the index costs, disable_cost included. */
#define AWAY_COST 1.0e20

/*
 * Guesses the index's size from what is known of the table, where there is no tree yet.
 */
static void
guess_size(IndexOptInfo *info)
{
	double		bytes;

	/* Core takes a partial index for empty, as it discounts the one page as a metapage. */
	if (info->indpred == NIL || info->tuples < 1)
		info->tuples = info->rel->tuples;
	bytes = info->tuples * ENTRY_BYTES_GUESS;
	/* One more, as in set_size(). */
	info->pages = 1 + (BlockNumber) Min(Max(ceil(bytes / BLCKSZ), 1.0), (double) (MaxBlockNumber - 1));
	info->tree_height = 0;
	if (info->tuples > LEAF_ENTRIES_GUESS)
		info->tree_height = (int) (log(info->tuples / LEAF_ENTRIES_GUESS) / log(FANOUT_GUESS)) + 1;
}

static void
set_size(IndexOptInfo *info, const TreeStatistics *statistics)
{
	/* Never less than two: btree's metapage is counted, too, and small indexes are to cost what btree's do. */
	info->pages = 1 + (BlockNumber) Max(1, Min(statistics->node_bytes / BLCKSZ, MaxBlockNumber - 1));
	/*
	 * As for core's: entries of a whole index are the table's rows, those of a partial one are at most that.
	 */
	info->tuples = info->indpred == NIL ? info->rel->tuples : Min((double) statistics->entries, info->rel->tuples);
	info->tree_height = (int) statistics->height - 1;
}

/*
 * Asks the tree for its size, which may find that a memory node is away: then the index is not to be used.
 */
static void
find_size(IndexOptInfo *info)
{
	TreeStatistics statistics;
	ShermanReason reason;
	Relation	index;

	if (info->hypothetical)
	{
		guess_size(info);
		return;
	}
	index = index_open(info->indexoid, NoLock);
	if (sherman_size(index, &statistics))
		set_size(info, &statistics);
	else if (sherman_index_state(index, &reason) == SHERMAN_OK)
		guess_size(info);
	else
		info->tree_height = HEIGHT_AWAY;
	index_close(index, NoLock);
}

/* amcostestimate. */
void
sherman_costestimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
					 Selectivity *selectivity, double *correlation, double *pages)
{
	if (path->indexinfo->tree_height == HEIGHT_NOT_ASKED)
		find_size(path->indexinfo);
	btcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
	if (path->indexinfo->tree_height == HEIGHT_AWAY)
	{
		*startup += AWAY_COST;
		*total += AWAY_COST;
	}
}
