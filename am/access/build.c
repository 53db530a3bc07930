/*
 * build.c
 *		CREATE INDEX and REINDEX: scan the table and sort (build_sort.c), load the tree from the bottom up.
 *
 * Of a unique index equal keys follow each other in the sorted order: two of live rows are an error. Rows that the
 * scan reports as dead are indexed, but do not count as duplicates.
 *
 * In a parallel build (build_parallel.c) each process scans and sorts a part of the table in these ways;
 * one merges and loads.
 *
 * The metapage comes last.  A build that ends early leaves a tree that no metapage names; the collector finds
 * it.
 */
#include "am/base/sherman.h"

#include "access/xlog.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "am/access/access.h"
#include "am/access/build.h"
#include "am/access/insert_batch.h"
#include "am/base/compat.h"
#include "am/base/owner.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/keys/keys.h"
#include "am/nodes/nodes.h"

/* ---- loading ---- */

static void
report_duplicate(BuildState *state, const TreeKey *key)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	char	   *description;

	sherman_keys_datums(state->keys, key, values, isnull);
	description = BuildIndexValueDescription(state->index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"", RelationGetRelationName(state->index)),
			 description ? errdetail("Key %s is duplicated.", description) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(state->heap, RelationGetRelationName(state->index))));
}

static bool
has_null(ShermanKeys *keys, const TreeKey *key)
{
	KeyReader	reader;
	bool		isnull = false;

	key_reader_open(&reader, keys, key);
	for (int i = 0; i < keys->columns && !isnull; i++)
		(void) key_reader_column(&reader, i, &isnull);
	return isnull;
}

/*
 * Raises an error if the key of a live row is that of the live row before.
 */
static void
check_unique(BuildState *state, const TreeKey *key)
{
	TreeBound	last;

	if (state->has_last)
	{
		keys_entry_bound(state->keys, &state->last, &last);
		if (sherman_keys_compare(state->keys, &last, key) == 0 &&
			!(state->nulls_distinct && has_null(state->keys, key)))
			report_duplicate(state, &state->last);
	}
	state->has_last = true;
	state->last = *key;
	if (key->image_bytes > 0)
		memcpy(state->last_image, key->image, key->image_bytes);
	state->last.image = state->last_image;
}

/*
 * Loads an entry.
 */
static TreeStatus
load_entry(BuildState *state, const TreeKey *key, bool dead, TreeBulk *bulk)
{
	if (state->unique && !dead)
		check_unique(state, key);
	return tree_bulk_add(bulk, key);
}

/*
 * Counts a loaded entry; now and then looks around.
 */
static void
load_progress(BuildState *state)
{
	if (likely(++state->loaded % LOAD_STRIDE != 0))
		return;
	CHECK_FOR_INTERRUPTS();
	MemoryContextReset(state->row_context);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, state->loaded);
}

/*
 * Loads one sort of keys.  Not inlined: its caller catches errors.
 */
static pg_noinline TreeStatus
load_keys(BuildState *state, KeySort *sort, bool high, TreeBulk *bulk)
{
	TreeKey		key = {.high = high};
	TreeStatus	status = TREE_OK;
	bool		dead;

	while (status == TREE_OK && key_sort_next(sort, &key, &dead))
	{
		status = load_entry(state, &key, dead, bulk);
		load_progress(state);
	}
	return status;
}

/*
 * Loads the sort of tuples.
 */
static TreeStatus
load_tuples(BuildState *state, TreeBulk *bulk)
{
	TreeStatus	status = TREE_OK;
	TupleTableSlot *slot = state->get_slot;

	while (status == TREE_OK && tuplesort_gettupleslot(state->tuples_sort, true, false, slot, NULL))
	{
		MemoryContext caller = MemoryContextSwitchTo(state->row_context);
		bool		dead = false;
		TreeKey		key;

		slot_getallattrs(slot);
		if (state->unique)
			dead = DatumGetBool(slot->tts_values[state->words + state->columns + 1]);
		build_sorted_key(state, slot, &key);
		status = load_entry(state, &key, dead, bulk);
		MemoryContextSwitchTo(caller);
		load_progress(state);
	}
	return status;
}

/*
 * Sorts and loads everything into the tree.
 */
static TreeStatus
load_tree(BuildState *state, Tree *tree)
{
	TreeBulk   *bulk;
	TreeWalPosition	wal;
	TreeStatus	status;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SORT);
	build_sort(state);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_LOAD);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, (int64) state->tuples);
	/* The scan has ended: the insert position is behind the WAL of every row of any session. */
	sherman_wal_position(state->index, &wal);
	wal.lsn = Max(wal.lsn, GetXLogInsertRecPtr());
	status = tree_bulk_open(tree, &wal, &bulk);
	if (status != TREE_OK)
		return status;
	tree_bulk_expect(bulk, (uint64) state->tuples);
	PG_TRY();
	{
		if (state->tuples_sort != NULL)
			status = load_tuples(state, bulk);
		for (int i = 0; i < 2 && status == TREE_OK; i++)
		{
			if (state->sorts[i] != NULL)
				status = load_keys(state, state->sorts[i], i == 1, bulk);
		}
	}
	PG_CATCH();
	{
		tree_bulk_abandon(bulk);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (status != TREE_OK)
	{
		tree_bulk_abandon(bulk);
		return status;
	}
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, state->loaded);
	return tree_bulk_finish(bulk);
}

/* ---- the callbacks ---- */

/*
 * Makes the tree and loads it.  On return `record` is the tree's.
 */
static void
build_tree(BuildState *state, TreeRecord *record)
{
	TreeClient *client = sherman_client();
	Tree	   *tree;
	TreeStatus	status;
	uint32_t	copy;

	sherman_tree_new(state->index, &state->format, record);
	status = tree_open(client, record->tree, record->root, &state->format, sherman_keys_compare, state->keys,
					   &tree);
	if (status != TREE_OK)
		sherman_report_failure(status, state->index);
	PG_TRY();
	{
		if (tree_record_replica(record, &copy))
			status = tree_set_replica(tree, copy, TREE_REPLICAS_BOTH, false);
		if (status == TREE_OK)
			status = load_tree(state, tree);
		if (status != TREE_OK)
			sherman_report_failure(status, state->index);
	}
	PG_FINALLY();
	{
		tree_close(tree);
	}
	PG_END_TRY();
}

/*
 * Writes the metapage that names the tree.  `record` NULL: no tree yet, the first insert makes it.
 */
static void
write_metapage(Relation index, ForkNumber fork, const ShermanKeys *keys, const TreeFormat *format, const TreeRecord *record)
{
	ShermanMetaPage meta = {0};
	uint32_t	copy;

	sherman_metapage_set_format(&meta, format);
	sherman_keys_note(keys, &meta);
	if (record != NULL)
	{
		meta.tree = record->tree;
		meta.root = record->root;
		meta.nonce_current = record->nonce;
		meta.replica = tree_record_replica(record, &copy) ? copy + 1 : 0;
	}
	if (index->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		meta.flags |= SHERMAN_META_UNLOGGED;
	sherman_metapage_create(index, fork, &meta);
	if (fork == MAIN_FORKNUM)
		sherman_index_forget(RelationGetRelid(index));
}

/*
 * Leaves the tree of a temporary index to the first insert, as the table is empty.  ON COMMIT DELETE ROWS
 * comes here at each commit when it has emptied table and indexes for good: no memory node is asked, since an
 * error now would leave others of the table's indexes with entries of rows that are gone.
 */
static void
build_later(Relation index)
{
	ShermanKeys *keys;

	if (sherman_all_hidden())
		sherman_report_state(ERROR, NULL, SHERMAN_HIDDEN, SHERMAN_REASON_NONE);
	sherman_index_abandon_tree(index);
	keys = sherman_keys_make(index, NULL);
	write_metapage(index, MAIN_FORKNUM, keys, sherman_keys_format(keys), NULL);
	sherman_index_set_treeless(index);
}

/*
 * ambuild: builds the index over all rows of the table, also in place of one that TRUNCATE emptied in this
 * transaction.  Core has made this process the table's owner; workers take its path over.
 */
IndexBuildResult *
sherman_build(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = palloc(sizeof(IndexBuildResult));
	ParallelBuild *parallel;
	BuildState	state;
	TreeRecord	record;

	owner_pin_path();
	owner_reads_expressions(index, info);
	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(index));
	sherman_check_classes(index);
	insert_batch_forget(index);
	if (index->rd_rel->relpersistence == RELPERSISTENCE_TEMP && RelationGetNumberOfBlocks(heap) == 0)
	{
		build_later(index);
		result->heap_tuples = result->index_tuples = 0;
		return result;
	}

	build_begin(&state, heap, index, info);
	if (IsBinaryUpgrade)
	{
		/* pg_upgrade copies the old cluster's files over this: no memory node is touched. */
		write_metapage(index, MAIN_FORKNUM, state.keys, &state.format, NULL);
		result->heap_tuples = result->index_tuples = 0;
		return result;
	}
	/* Raises before the long scan if there is no memory node. */
	(void) sherman_client();
	parallel = build_parallel(&state, info, &result->heap_tuples);
	if (parallel == NULL)
		result->heap_tuples = build_scan(&state, info, NULL, true);
	result->index_tuples = state.tuples;
	build_fit_cells(&state);
	build_tree(&state, &record);
	build_end(&state);
	if (parallel != NULL)
		build_parallel_end(parallel);
	write_metapage(index, MAIN_FORKNUM, state.keys, &state.format, &record);
	return result;
}

/*
 * ambuildempty: the init fork of an unlogged index, which becomes the main fork after a crash.  It names no
 * tree: the first insert makes one.
 */
void
sherman_buildempty(Relation index)
{
	ShermanKeys *keys = sherman_keys_make(index, NULL);

	write_metapage(index, INIT_FORKNUM, keys, sherman_keys_format(keys), NULL);
}

/*
 * ambuildphasename: btree's names, which monitoring knows.
 */
char *
sherman_buildphasename(int64 phase)
{
	switch (phase)
	{
		case PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE:
			return "initializing";
		case PHASE_SCAN:
			return "scanning table";
		case PHASE_SORT:
			return "sorting live tuples";
		case PHASE_LOAD:
			return "loading tuples in tree";
		default:
			return NULL;
	}
}
