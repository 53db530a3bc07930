/*
 * cost.c
 *		Cost estimates for the planner: btree's formula, over the index's true size.
 *
 * The main fork is one page, whatever the size of the tree, so core's figures for the index are useless.  With the
 * tree's in their place btcostestimate() is right as it stands: a descent costs what btree's does, and a leaf read
 * from the embedded node's memory what a page does that is in shared buffers or in the kernel's cache.  So the
 * planner chooses sherman where it would choose btree.  What waits for leaves across the network costs its round
 * trips besides.
 *
 * The tree is opened for that, and a session's first time connects it to memory nodes: only when there is a path
 * that would use the index, so that no other plan waits for a memory node.
 */
#include "am/base/sherman.h"

#include <math.h>

#include "access/genam.h"
#include "nodes/pathnodes.h"
#include "optimizer/optimizer.h"

#include "am/access/access.h"
#include "am/access/cost.h"
#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/* Bytes of leaf per entry while the tree's size is not known: 32-byte cells, leaves filled to two thirds. */
#define ENTRY_BYTES_GUESS 48.0

/* Entries of a leaf and children of an inner node, for a guess at the height. */
#define LEAF_ENTRIES_GUESS 45.0
#define FANOUT_GUESS 90.0

/* Heights of indexes whose size was not asked for, as core leaves it, and of those that turned out to be away. */
#define HEIGHT_NOT_ASKED (-1)
#define HEIGHT_AWAY (-2)

/*
 * Microseconds that one unit of cost stands for where pages are read from memory: a sequential scan of a million narrow rows costs
 * 15,000 to 17,000 and takes some 60 ms.
 */
#define COST_UNIT_US 4.0

/* Leaves that are fetched by one chain: of a scan that reads ahead, of an array's keys, of a lookahead's rows. */
#define LEAVES_FETCHED_TOGETHER 64.0

/* Cost of a leaf that comes across the network, besides the round trip: as a page that comes from the kernel. */
#define LEAF_FETCH_COST 1.0

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

	if (!compat_index_is_there(info))
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

/* ---- round trips ---- */

/*
 * The cost of a round trip to a memory node; 0: nobody waits for one.
 */
static Cost
round_trip_cost(void)
{
	double		measured_us = sherman_round_trip_us();

	if (sherman_round_trip_cost >= 0 && measured_us > 0)
		return sherman_round_trip_cost;
	return measured_us / COST_UNIT_US;
}

/*
 * The share of an index's leaves that the leaf cache has no room for, as if the index had it to itself.
 */
static double
share_not_cached(const IndexOptInfo *info)
{
	double		bytes = ((double) info->pages - 1) * BLCKSZ;

	return bytes > 0 ? 1 - Min(1, (double) sherman_shared->leaf_cache_bytes / bytes) : 0;
}

static bool
has_array(const IndexPath *path)
{
	ListCell   *cell;

	foreach(cell, path->indexclauses)
	{
		if (IsA(lfirst_node(IndexClause, cell)->rinfo->clause, ScalarArrayOpExpr))
			return true;
	}
	return false;
}

/*
 * The leaves that one scan reads: neighbors, but for the elements of an array, which are as far from each other as can be.
 */
static double
leaves_of_scan(const IndexPath *path, Selectivity selectivity)
{
	double		entries = Max(1, selectivity * path->indexinfo->tuples);

	return has_array(path) ? entries : 1 + (entries - 1) / LEAF_ENTRIES_GUESS;
}

/*
 * What a scan waits that skips: two leaves for each descent, which nothing tells before, unless it is less to read all of the index.
 */
static Cost
skip_wait(const IndexPath *path, const CostBounds *bounds, Cost round_trip)
{
	double		leaves = path->indexinfo->tuples / LEAF_ENTRIES_GUESS;

	return Min(2 * bounds->descents * (round_trip + LEAF_FETCH_COST),
			   leaves * (round_trip / LEAVES_FETCHED_TOGETHER + LEAF_FETCH_COST));
}

/*
 * Adds what a scan costs that waits for leaves across the network.  It waits for the first one, and then for those that it fetches
 * together.  In a nested loop that reads ahead the first leaves of many scans are fetched together, too.
 */
static void
add_round_trips(const IndexPath *path, double loop_count, const CostBounds *bounds, Selectivity selectivity, Cost *startup, Cost *total)
{
	Cost		round_trip = round_trip_cost();
	double		missed;
	Cost		first;

	if (round_trip <= 0)
		return;
	missed = share_not_cached(path->indexinfo);
	first = missed * round_trip;
	if (loop_count > 1 && sherman_enable_lookahead)
		first /= LEAVES_FETCHED_TOGETHER;
	if (bounds->skips)
		*total += missed * skip_wait(path, bounds, round_trip);
	*startup += first;
	*total += first + missed * leaves_of_scan(path, selectivity) * (round_trip / LEAVES_FETCHED_TOGETHER + LEAF_FETCH_COST);
}

/*
 * Has core drop the path that is being priced, and make no others by this index.  Costs alone do not see to that from 18 on: a plan that a
 * setting is against is worse there than any cost.
 */
static void
withdraw(IndexOptInfo *info)
{
	info->amhasgettuple = false;
	info->amhasgetbitmap = false;
	info->amcanparallel = false;
}

/* amcostestimate. */
void
sherman_costestimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
					 Selectivity *selectivity, double *correlation, double *pages)
{
	CostBounds	bounds;

	if (path->indexinfo->tree_height == HEIGHT_NOT_ASKED)
		find_size(path->indexinfo);
	sherman_cost_bounds(root, path, &bounds);
	sherman_scan_cost(root, path, loop_count, &bounds, startup, total, selectivity, correlation, pages);
	if (path->indexinfo->tree_height == HEIGHT_AWAY)
	{
		withdraw(path->indexinfo);
		*startup += AWAY_COST;
		*total += AWAY_COST;
	}
	else
		add_round_trips(path, loop_count, &bounds, *selectivity, startup, total);
}
