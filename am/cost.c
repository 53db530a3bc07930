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
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/index_selfuncs.h"
#include "utils/spccache.h"

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
	info->pages = (BlockNumber) Min(Max(ceil(bytes / BLCKSZ), 1.0), (double) MaxBlockNumber);
	info->tree_height = 0;
	if (info->tuples > LEAF_ENTRIES_GUESS)
		info->tree_height = (int) (log(info->tuples / LEAF_ENTRIES_GUESS) / log(FANOUT_GUESS)) + 1;
}

/*
 * What cost_index() leaves out because it takes the scan for an index-only one: visits of pages that are
 * all-visible.
 */
static Cost
skipped_visits(PlannerInfo *root, const IndexPath *path, double loop_count, Selectivity selectivity,
			   double correlation)
{
	RelOptInfo *table = path->indexinfo->rel;
	double		rows = clamp_row_est(selectivity * table->tuples);
	double		random_page;
	double		sequential_page;
	Cost		scattered;
	Cost		in_order;

	get_tablespace_page_costs(table->reltablespace, &random_page, &sequential_page);
	scattered = random_page / loop_count *
		index_pages_fetched(rows * loop_count, table->pages, (double) path->indexinfo->pages, root);
	in_order = random_page + sequential_page * Max(ceil(selectivity * table->pages) - 1.0, 0.0);
	return table->allvisfrac * (scattered + correlation * correlation * (in_order - scattered));
}

/*
 * amcostestimate.  Core asks no index whether it can do index-only scans where a query needs no column at all
 * (count(*)), and nothing but the path's type makes the plan one: here, while paths are made, it becomes the
 * plain scan that we can do.
 */
void
sherman_costestimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
					 Selectivity *selectivity, double *correlation, double *pages)
{
	/* The height is what core leaves unknown (-1) and planner.c fills in. */
	if (path->indexinfo->tree_height < 0)
		guess_size(path->indexinfo);
	btcostestimate(root, path, loop_count, startup, total, selectivity, correlation, pages);
	if (path->path.pathtype == T_IndexOnlyScan)
	{
		path->path.pathtype = T_IndexScan;
		*total += skipped_visits(root, path, loop_count, *selectivity, *correlation);
	}
}
