/*
 * vacuum.c
 *		VACUUM: a walk over the leaves from left to right that removes the entries of dead rows.
 *
 * Entries only move right, but by another VACUUM's merge, behind which the walk begins anew; so each entry that was there
 * at the start is met, whatever splits meanwhile: VACUUM may give the TIDs free afterwards, and CREATE INDEX
 * CONCURRENTLY, whose callback says "alive" to everything, learns every TID.
 *
 * Before the first removal the WAL that makes the rows dead is flushed, and the removal is noted at the tree (I-P4):
 * should the tail of the WAL be lost, a tree that has lost more entries than the table has lost rows is not used.
 *
 * Leaves cost what as many bytes of pages would: a page read from disk for what is read, a dirtied one for
 * what is rewritten.  So vacuum_cost_delay holds us back as it holds back btree's, between two calls of the tree,
 * where nothing is held.
 *
 * Where leaves are empty behind the walk, or nearly so, they are taken out of the tree (tree/change/merge.c), and the next
 * leaves are made of them.  In the report of VACUUM VERBOSE they are pages that were deleted; those that wait to be used again are
 * reusable.  Both are bytes, in pages of BLCKSZ.  Then memory in which nothing is used goes back (tree/space/give.c).
 *
 * Before, once in each run of the server, a look at the index's memory finds what earlier runs have left free there
 * (tree/space/reclaim.c).
 *
 * An index that is in doubt after a crash is healed at the end (heal.c): by a walk of its own, which others do not need.
 */
#include "am/base/sherman.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_index.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/elog.h"

#include "am/access/access.h"
#include "am/access/relpages.h"
#include "am/base/compat.h"
#include "am/base/owner.h"
#include "am/heal/heal.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/*
 * What a look at a piece of an index's memory reads, in pages: a line for each of its places (tree_reclaim_next()).
 */
#define RECLAIM_PIECE_PAGES 2

/* What the tree's callback sees. */
typedef struct RemovalState
{
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	ErrorData  *error;			/* raised by a callback that may: is to be raised again outside of the tree */
	MemoryContext context;		/* of `error` */
} RemovalState;

/* How far a walk is, in pages of BLCKSZ. */
typedef struct Progress
{
	double		pages_per_leaf;
	BlockNumber pages;			/* of the whole index */
	bool		report;
	double		read;
	double		uncharged_read; /* of which less than a page is left over */
	double		uncharged_written;
} Progress;

/*
 * TreeIsDead for VACUUM: its callback looks into an array and cannot raise.
 */
static bool
is_dead(void *argument, uint32_t block, uint16_t offset)
{
	RemovalState *state = argument;
	ItemPointerData tid;

	ItemPointerSet(&tid, block, offset);
	return state->callback(&tid, state->callback_state);
}

/*
 * TreeIsDead for an index that is not valid yet: the callback of CREATE INDEX CONCURRENTLY puts TIDs into a
 * sort, which may raise (temporary files).  Inside the tree nothing may jump: the error waits.
 */
static bool
is_dead_guarded(void *argument, uint32_t block, uint16_t offset)
{
	RemovalState *state = argument;
	volatile bool dead = false;

	if (state->error != NULL)
		return false;
	PG_TRY();
	{
		dead = is_dead(argument, block, offset);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(state->context);
		state->error = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	return dead;
}

/*
 * Bytes in pages, of which a part counts as one.
 */
static BlockNumber
pages_of(uint64 bytes)
{
	return (BlockNumber) Min((bytes + BLCKSZ - 1) / BLCKSZ, (uint64) MaxBlockNumber);
}

/*
 * The index's size in pages, for pg_class.relpages.
 */
static BlockNumber
size_in_pages(const TreeStatistics *statistics)
{
	return pages_of(statistics->node_bytes + statistics->overflow_bytes);
}

static void
begin_progress(Relation relation, bool report, Progress *progress)
{
	TreeStatistics statistics;

	memset(progress, 0, sizeof(*progress));
	if (!sherman_size(relation, &statistics))
		return;
	progress->pages = size_in_pages(&statistics);
	progress->pages_per_leaf = (double) progress->pages / Max(statistics.leaves, 1);
	progress->report = report;
	if (report)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, progress->pages);
}

/*
 * Adds a part of a page to what is to be charged, and charges whole pages.
 */
static void
charge(double *uncharged, double pages, int page_cost)
{
	int			whole;

	*uncharged += pages;
	whole = (int) *uncharged;
	*uncharged -= whole;
	if (VacuumCostActive)
		VacuumCostBalance += whole * page_cost;
}

/*
 * Leaves were visited, and some of them rewritten.
 */
static void
note_leaves(Progress *progress, uint64 leaves, uint64 rewritten)
{
	double		pages = progress->pages_per_leaf * leaves;

	progress->read += pages;
	charge(&progress->uncharged_read, pages, VacuumCostPageMiss);
	charge(&progress->uncharged_written, progress->pages_per_leaf * rewritten, VacuumCostPageDirty);
	if (progress->report)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE,
									 (int64) Min(progress->read, (double) progress->pages));
}

/*
 * Goes on to the next leaves, whichever of two memory nodes is lost meanwhile.  False: there is none.
 */
static bool
walk_on(Relation relation, ShermanIndex *index, TreeVacuum *vacuum, RemovalState *removal, TreeVacuumCounts *counts)
{
	TreeIsDead	test = relation->rd_index->indisvalid ? is_dead : is_dead_guarded;
	int			attempts = 0;
	TreeStatus	status;

	do
	{
		status = tree_vacuum_next(vacuum, test, removal, counts);
		if (removal->error != NULL)
			ReThrowError(removal->error);
	} while (sherman_change_again(index, relation, status, &attempts));
	if (status != TREE_OK && status != TREE_END)
		sherman_report_failure(status, relation);
	return status == TREE_OK;
}

/*
 * Walks over all leaves.
 */
static void
walk_leaves(Relation relation, ShermanIndex *index, TreeVacuum *vacuum, RemovalState *removal, Progress *progress,
			TreeVacuumCounts *counts)
{
	for (;;)
	{
		TreeVacuumCounts before = *counts;

		compat_delay_point();
		if (!walk_on(relation, index, vacuum, removal, counts))
			return;
		note_leaves(progress, counts->leaves - before.leaves, counts->rewritten - before.rewritten);
	}
}

/*
 * One walk over the places where leaves are empty, or nearly so.
 */
static TreeStatus
merge_once(ShermanIndex *index, const TreeVacuum *vacuum, TreeMergeCounts *merged)
{
	TreeMerge   *merge;
	TreeStatus	status = tree_merge_open(index->tree, vacuum, &merge);

	if (status != TREE_OK)
		return status;
	PG_TRY();
	{
		do
		{
			compat_delay_point();
			status = tree_merge_next(merge, merged);
		} while (status == TREE_OK);
	}
	PG_FINALLY();
	{
		tree_merge_close(merge);
	}
	PG_END_TRY();
	return status;
}

/*
 * Takes leaves that the walk has left empty, or nearly so, out of the tree.  What splits owe to their parents is paid on
 * the way, with the index's comparator.
 */
static void
merge_leaves(Relation relation, ShermanIndex *index, const TreeVacuum *vacuum, TreeMergeCounts *merged)
{
	int			attempts = 0;
	TreeStatus	status;

	/* Predicate locks on a leaf that goes are for the one that gets its keys. */
	index->relation = relation;
	sherman_predicate_changes(index);
	do
		status = merge_once(index, vacuum, merged);
	while (sherman_change_again(index, relation, status, &attempts));
	if (status != TREE_END)
		sherman_report_failure(status, relation);
}

/*
 * Finds what earlier runs have left free.  It is room and nothing else: where that fails a later VACUUM goes on with it.
 */
static void
reclaim(ShermanIndex *index)
{
	uint64_t	bytes = 0;
	double		uncharged = 0;
	TreeStatus	status;

	do
	{
		uint64_t	before = bytes;

		compat_delay_point();
		status = tree_reclaim_next(index->tree, &bytes);
		charge(&uncharged, RECLAIM_PIECE_PAGES, VacuumCostPageMiss);
		/* Nodes that are found are written. */
		charge(&uncharged, (double) (bytes - before) / BLCKSZ, VacuumCostPageDirty);
	} while (status == TREE_OK);
	if (status != TREE_END)
		(void) sherman_connection_trouble();
	if (bytes > 0)
		ereport(DEBUG1,
				(errmsg_internal("tree %llx: " UINT64_FORMAT " bytes were left free by earlier runs",
								 (unsigned long long) index->meta.tree, bytes)));
}

/*
 * Gives memory that nothing of the index is in back to the memory nodes.  As with reclaim() a later VACUUM goes on where that
 * fails.
 */
static void
give_back(ShermanIndex *index)
{
	TreeGive	give = {0};
	TreeStatus	status;

	do
	{
		compat_delay_point();
		status = tree_give_next(index->tree, &give);
	} while (status == TREE_OK);
	if (status != TREE_END)
		(void) sherman_connection_trouble();
	if (give.bytes > 0)
		ereport(DEBUG1,
				(errmsg_internal("tree %llx: " UINT64_FORMAT " bytes were given back",
								 (unsigned long long) index->meta.tree, (uint64) give.bytes)));
}

/*
 * Removes the entries of dead rows, and then the leaves that are empty, or nearly so.
 */
static void
remove_entries(Relation relation, ShermanIndex *index, RemovalState *removal, Progress *progress,
			   TreeVacuumCounts *counts, TreeMergeCounts *merged)
{
	TreeVacuum *vacuum;
	TreeStatus	status = tree_vacuum_open(index->tree, &vacuum);

	if (status != TREE_OK)
		sherman_report_failure(status, relation);
	PG_TRY();
	{
		walk_leaves(relation, index, vacuum, removal, progress, counts);
		/* Dirty-snapshot scans that read an entry before its removal end before its TID is given free. */
		sherman_scan_barrier_wait(relation);
		if (counts->empty + counts->sparse > 0 && relation->rd_index->indisvalid)
			merge_leaves(relation, index, vacuum, merged);
	}
	PG_FINALLY();
	{
		tree_vacuum_close(vacuum);
	}
	PG_END_TRY();
}

/*
 * ambulkdelete: removes the entries that the callback says are dead. From a broken index nothing is removed (its flag
 * is durable by then, and it is not read any more); but CREATE INDEX CONCURRENTLY, which builds on the TIDs that it
 * is shown, gets an error. Core has made this process the table's owner: operator classes call functions.
 */
IndexBulkDeleteResult *
sherman_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback,
				   void *callback_state)
{
	Relation	relation = info->index;
	ShermanIndex *index = sherman_index_for_vacuum(relation);
	RemovalState removal = {callback, callback_state, NULL, CurrentMemoryContext};
	TreeVacuumCounts counts = {0};
	TreeMergeCounts merged = {0};
	TreeStatistics statistics;
	Progress	progress;

	owner_pin_path();
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	if (index == NULL)
	{
		if (!relation->rd_index->indisvalid)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("index \"%s\" is broken", RelationGetRelationName(relation)),
					 errhint("Drop the index and create it again.")));
		stats->estimated_count = true;
		return stats;
	}
	if (index->tree == NULL)
		return stats;			/* nothing was inserted yet */

	sherman_prove_removal(relation, index, compat_wal_end());
	reclaim(index);
	begin_progress(relation, info->report_progress, &progress);
	remove_entries(relation, index, &removal, &progress, &counts, &merged);
	if (relation->rd_index->indisvalid)
		give_back(index);

	stats->estimated_count = false;
	stats->num_index_tuples = (double) counts.entries;
	stats->tuples_removed += (double) counts.removed;
	stats->pages_newly_deleted += pages_of(merged.bytes);
	stats->pages_free = pages_of(tree_freed_bytes(index->tree));
	stats->pages_deleted = stats->pages_free;
	if (sherman_size(relation, &statistics))
		stats->num_pages = size_in_pages(&statistics);
	return stats;
}

/*
 * Heals an index after a crash, behind the removals. Only if no user's expressions have to run: others do not wait
 * for the snapshots of a VACUUM, so that what those read might go meanwhile. Nor can errors of rows be survived in
 * parallel. Both are left to the healer.
 */
static void
heal(Relation index)
{
	ShermanReason reason;
	ShermanMetaPage meta;
	Relation	heap;

	if (IsInParallelMode() || sherman_index_state(index, &reason) != SHERMAN_OK || !sherman_metapage_read(index, &meta) ||
		!sherman_is_healing(&meta) || !heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs, NULL) ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return;
	heap = table_open(index->rd_index->indrelid, NoLock);
	(void) heal_whole(heap, index);
	table_close(heap, NoLock);
}

/*
 * amvacuumcleanup: heals, and gives the final statistics.  Where nothing had to be removed they are the tree's estimate, as
 * core's own for tables are; they are never an excuse to read the whole index.
 */
IndexBulkDeleteResult *
sherman_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	TreeStatistics statistics;
	ShermanIndex *index;

	if (info->analyze_only)
	{
		if (sherman_size(info->index, &statistics))
			relpages_analyzed(info->index, size_in_pages(&statistics));
		return stats;
	}
	owner_pin_path();
	heal(info->index);
	if (stats != NULL)
	{
		/* Of a broken one nothing is known. */
		if (stats->num_pages > 0)
			relpages_vacuumed(info->index, stats->num_pages);
		return stats;
	}
	index = sherman_index_quietly(info->index, false);
	/* One that was not changed in this run has no use for room. */
	if (index != NULL && sherman_index_is_mutated(index))
	{
		reclaim(index);
		give_back(index);
	}
	if (!sherman_size(info->index, &statistics))
		return NULL;
	stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->estimated_count = true;
	stats->num_index_tuples = (double) statistics.entries;
	if (!info->estimated_count)
		stats->num_index_tuples = Min(stats->num_index_tuples, info->num_heap_tuples);
	stats->num_pages = size_in_pages(&statistics);
	relpages_vacuumed(info->index, stats->num_pages);
	return stats;
}
