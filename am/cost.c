/*
 * cost.c
 *		What the planner is told: btree's estimate, over the index's true size.
 *
 * The main fork is one page, whatever the size of the tree, so core's figures for the index are useless.
 * planner.c has put the true ones in their place; with them btcostestimate() is right as it stands: a
 * descent costs what btree's does, and a leaf read from the embedded node's memory what a page does that is
 * in shared buffers or in the kernel's cache.  So the planner chooses sherman where it would choose btree.
 */
#include "sherman.h"

#include <math.h>

#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"
#include "utils/index_selfuncs.h"

/* Bytes of leaf per entry while the tree's size is not known: 32-byte cells, leaves filled to two thirds. */
#define ENTRY_BYTES_GUESS 48.0

/* Entries of a leaf and children of an inner node, for a guess at the height. */
#define LEAF_ENTRIES_GUESS 45.0
#define FANOUT_GUESS 90.0

/*
 * Guesses the index's size from what is known of the table: nobody has opened the tree yet.
 */
static void
guess_size(IndexOptInfo *info)
{
	double		bytes;

	/* Of a partial index core believes that it is empty: it discounts the one page as a metapage. */
	if (info->indpred == NIL || info->tuples < 1)
		info->tuples = info->rel->tuples;
	bytes = info->tuples * ENTRY_BYTES_GUESS;
	/* One more, as in planner.c. */
	info->pages = 1 + (BlockNumber) Min(Max(ceil(bytes / BLCKSZ), 1.0), (double) (MaxBlockNumber - 1));
	info->tree_height = 0;
	if (info->tuples > LEAF_ENTRIES_GUESS)
		info->tree_height = (int) (log(info->tuples / LEAF_ENTRIES_GUESS) / log(FANOUT_GUESS)) + 1;
}

/* amcostestimate. */
void
sherman_costestimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
					 Selectivity *selectivity, double *correlation, double *pages)
{
	/* The height is what core leaves unknown (-1) and planner.c fills in. */
	if (path->indexinfo->tree_height < 0)
		guess_size(path->indexinfo);
	btcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
}
