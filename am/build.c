/*
 * build.c
 *		CREATE INDEX and REINDEX: scan the table, sort, load the tree from the bottom up.
 *
 * Two ways to sort, both within maintenance_work_mem:
 *
 * Lossless formats: the normalized key and the TID are the order of the index; keysort.c sorts them as
 * integers.  A key's leading bit goes before all of its bytes: there is one sort for the keys without it and
 * one for those with it (NULLs mostly), read one behind the other.
 *
 * Lossy formats: what the normalized bytes leave undecided only the operator class can order.  The words of
 * normalized key, the key columns and the TID go through tuplesort as a tuple, by words as bigint, then by the
 * operators of our operator family, which are btree's, and last by TID.  The first word lies beside the
 * tuple's address in the sort, so most comparisons touch no tuple.  Where there is no normalized key the first
 * column is in its place, abbreviated if its operator class can.
 *
 * Of a unique index equal keys follow each other in the sorted order: two of live rows are an error.  Rows that
 * the scan says are dead are indexed, but are nobody's duplicates.
 *
 * In a parallel build (build_parallel.c) each process scans and sorts a part of the table in these ways;
 * one merges and loads.
 *
 * The metapage comes last.  A build that ends early leaves a tree that no metapage names; the collector finds
 * it.
 */
#include "sherman.h"

#include "access/nbtree.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "commands/progress.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "build.h"
#include "compat.h"
#include "owner.h"
#include "shared.h"

/* Phases as pg_stat_progress_create_index shows them; the first is core's. */
#define PHASE_SCAN 2
#define PHASE_SORT 3
#define PHASE_LOAD 4

/* Rows loaded between two looks around: interrupts, progress, memory of the keys. */
#define LOAD_STRIDE 1024

/* Words with this bit inverted have, as signed integers, the order of the words. */
#define WORD_SIGN (UINT64CONST(1) << 63)

/* ---- sorting ---- */

/*
 * Words of normalized key that order tuples before their columns do: those that the columns reach, or none if
 * the leading column has no bytes there.
 */
static int
tuple_words(const ShermanKeys *keys)
{
	const KeyColumn *last = &keys->column[keys->in_norm - 1];

	if (keys->column[0].bytes == 0)
		return 0;
	return (last->at + last->bytes + sizeof(uint64) - 1) / sizeof(uint64);
}

/*
 * Begins the sort of tuples: words of normalized key; then each key column by the ordering operator of its
 * operator class, `<` or, for DESC, `>`, with its collation and place of NULLs; then the TID.
 *
 * Words cannot hold the key's leading bit, which is the leading column's NULL-ness: they are NULL where it is,
 * and sort as it does.  Such rows are ordered by their columns alone.
 *
 * `coordinate` NULL: this process sorts alone.
 */
static void
begin_tuples_sort(BuildState *state, SortCoordinate coordinate)
{
	Relation	index = state->index;
	const KeyColumn *leading = &state->keys->column[0];
	int			key_columns = IndexRelationGetNumberOfKeyAttributes(index);
	int			columns = IndexRelationGetNumberOfAttributes(index);
	int			words = tuple_words(state->keys);
	AttrNumber	attributes[TREE_NORM_WORDS + INDEX_MAX_KEYS + 1];
	Oid			operators[TREE_NORM_WORDS + INDEX_MAX_KEYS + 1];
	Oid			collations[TREE_NORM_WORDS + INDEX_MAX_KEYS + 1];
	bool		nulls_first[TREE_NORM_WORDS + INDEX_MAX_KEYS + 1];
	int			count = 0;

	state->words = words;
	state->columns = columns;
	state->descriptor = CreateTemplateTupleDesc(words + columns + (state->unique ? 2 : 1));
	for (int i = 0; i < words; i++)
	{
		TupleDescInitEntry(state->descriptor, i + 1, "word", INT8OID, -1, 0);
		attributes[count] = i + 1;
		operators[count] = Int8LessOperator;
		collations[count] = InvalidOid;
		nulls_first[count++] = leading->nulls_first;
	}
	for (int i = 0; i < columns; i++)
	{
		bool		descending;
		Oid			type;

		TupleDescCopyEntry(state->descriptor, words + i + 1, RelationGetDescr(index), i + 1);
		if (i >= key_columns || (i == 0 && words > 0 && leading->whole))
			continue;			/* the words, and where they are NULL, say it all; included columns nothing */
		descending = (index->rd_indoption[i] & INDOPTION_DESC) != 0;
		type = index->rd_opcintype[i];
		attributes[count] = words + i + 1;
		operators[count] = get_opfamily_member(index->rd_opfamily[i], type, type,
											   descending ? BTGreaterStrategyNumber : BTLessStrategyNumber);
		if (!OidIsValid(operators[count]))
			elog(ERROR, "missing ordering operator of type %u in operator family %u",
				 type, index->rd_opfamily[i]);
		collations[count] = index->rd_indcollation[i];
		nulls_first[count++] = (index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
	}
	TupleDescInitEntry(state->descriptor, words + columns + 1, "tid", TIDOID, -1, 0);
	if (state->unique)
		TupleDescInitEntry(state->descriptor, words + columns + 2, "dead", BOOLOID, -1, 0);
	attributes[count] = words + columns + 1;
	operators[count] = TIDLessOperator;
	collations[count] = InvalidOid;
	nulls_first[count++] = false;

	state->tuples_sort = tuplesort_begin_heap(state->descriptor, count, attributes, operators, collations,
											  nulls_first, state->memory_kb, coordinate, TUPLESORT_NONE);
	state->put_slot = MakeSingleTupleTableSlot(state->descriptor, &TTSOpsVirtual);
	state->get_slot = MakeSingleTupleTableSlot(state->descriptor, &TTSOpsMinimalTuple);
}

/*
 * Counts a row of the table; now and then a rebuild that nobody waits for gives way.
 */
static void
count_row(BuildState *state)
{
	state->tuples++;
	if (unlikely((uint64) state->tuples % LOAD_STRIDE == 0))
		sherman_rebuild_delay();
}

/*
 * Table scan's callback, lossless: puts the row's key into its sort.
 */
static void
build_callback_keys(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *argument)
{
	BuildState *state = argument;
	KeySort   **sort;
	TreeKey		key;

	sherman_keys_form(state->keys, index, values, isnull, tid, &key);
	sort = &state->sorts[key.high ? 1 : 0];
	if (unlikely(*sort == NULL))
	{
		MemoryContext caller = MemoryContextSwitchTo(state->context);

		/* Most indexes have one of the two; the other gets what a query would. */
		*sort = key_sort_begin(state->keys, key.high ? Min(work_mem, state->memory_kb) : state->memory_kb);
		if (state->share != NULL)
			key_sort_hand_over_to(*sort, state->share->keys, state->participant, key.high);
		MemoryContextSwitchTo(caller);
	}
	key_sort_put(*sort, &key, !alive);
	count_row(state);
}

/*
 * Table scan's callback, lossy: puts the row's words, columns and TID into the sort.  Values are fetched and
 * decompressed once here, and not in each comparison.
 */
static void
build_callback_tuples(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive,
					  void *argument)
{
	BuildState *state = argument;
	TupleTableSlot *slot = state->put_slot;
	MemoryContext caller = MemoryContextSwitchTo(state->row_context);
	Datum	   *sorted = slot->tts_values + state->words;
	bool	   *sorted_null = slot->tts_isnull + state->words;
	TreeKey		key;

	ExecClearTuple(slot);
	for (int i = 0; i < state->columns; i++)
	{
		sorted[i] = values[i];
		sorted_null[i] = isnull[i];
		if (!isnull[i] && TupleDescAttr(state->descriptor, state->words + i)->attlen == -1)
			sorted[i] = PointerGetDatum(PG_DETOAST_DATUM_PACKED(values[i]));
	}
	sorted[state->columns] = PointerGetDatum(tid);
	sorted_null[state->columns] = false;
	if (state->unique)
	{
		sorted[state->columns + 1] = BoolGetDatum(!alive);
		sorted_null[state->columns + 1] = false;
	}
	if (state->words > 0)
		keys_form_normalized(state->keys, sorted, sorted_null, &key);
	for (int i = 0; i < state->words; i++)
	{
		slot->tts_values[i] = Int64GetDatum((int64) (key.norm[i] ^ WORD_SIGN));
		slot->tts_isnull[i] = isnull[0];
	}
	ExecStoreVirtualTuple(slot);
	MemoryContextSwitchTo(caller);
	tuplesort_puttupleslot(state->tuples_sort, slot);
	MemoryContextReset(state->row_context);
	count_row(state);
}

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
 * Forms the key of a sorted tuple.  Its words are the normalized key, which is not made again, unless they are
 * NULL: see begin_tuples_sort().
 */
static void
form_sorted_key(BuildState *state, TupleTableSlot *slot, TreeKey *key)
{
	Datum	   *values = slot->tts_values + state->words;
	bool	   *isnull = slot->tts_isnull + state->words;
	ItemPointer tid = (ItemPointer) DatumGetPointer(values[state->columns]);

	if (state->words == 0 || isnull[0])
	{
		sherman_keys_form(state->keys, state->index, values, isnull, tid, key);
		return;
	}
	key->high = key_null_flag(&state->keys->column[0], false);
	memset(key->norm, 0, sizeof(key->norm));
	for (int i = 0; i < state->words; i++)
		key->norm[i] = (uint64) DatumGetInt64(slot->tts_values[i]) ^ WORD_SIGN;
	keys_form_rest(state->keys, state->index, values, isnull, tid, key);
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
		form_sorted_key(state, slot, &key);
		status = load_entry(state, &key, dead, bulk);
		MemoryContextSwitchTo(caller);
		load_progress(state);
	}
	return status;
}

static void
perform_sorts(BuildState *state)
{
	if (state->tuples_sort != NULL)
		tuplesort_performsort(state->tuples_sort);
	for (int i = 0; i < 2; i++)
	{
		if (state->sorts[i] != NULL)
			key_sort_perform(state->sorts[i]);
	}
}

/*
 * Sorts and loads everything into the tree.
 */
static TreeStatus
load_tree(BuildState *state, Tree *tree)
{
	TreeBulk   *bulk;
	TreeStamp	stamp;
	TreeStatus	status;

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SORT);
	perform_sorts(state);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_LOAD);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, (int64) state->tuples);
	/* The scan has ended: the insert position is behind the WAL of every row, whoever inserted it. */
	sherman_stamp(state->index, &stamp);
	stamp.lsn = Max(stamp.lsn, GetXLogInsertRecPtr());
	status = tree_bulk_open(tree, &stamp, &bulk);
	if (status != TREE_OK)
		return status;
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

void
build_begin(BuildState *state, Relation heap, Relation index, IndexInfo *info)
{
	memset(state, 0, sizeof(*state));
	state->heap = heap;
	state->index = index;
	state->unique = info->ii_Unique;
	state->nulls_distinct = !info->ii_NullsNotDistinct;
	state->keys = sherman_keys_make(index);
	state->format = *sherman_keys_format(state->keys);
	state->format.fill_percent = (uint8) sherman_fillfactor(index);
	state->format.postings = sherman_deduplicates(index, &state->format);
	if (state->unique)
		state->last_image = palloc(TREE_IMAGE_MAX_BYTES);
	state->memory_kb = maintenance_work_mem;
	state->context = CurrentMemoryContext;
	state->row_context = AllocSetContextCreate(CurrentMemoryContext, "sherman build", ALLOCSET_DEFAULT_SIZES);
}

double
build_scan(BuildState *state, IndexInfo *info, TableScanDesc scan, bool progress)
{
	IndexBuildCallback callback = state->format.lossless ? build_callback_keys : build_callback_tuples;
	SortCoordinateData coordinate = {.isWorker = true,.nParticipants = -1};

	if (progress)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, PHASE_SCAN);
	if (state->share != NULL)
		coordinate.sharedsort = state->share->tuples;
	if (!state->format.lossless)
		begin_tuples_sort(state, state->share != NULL ? &coordinate : NULL);
	return table_index_build_scan(state->heap, state->index, info, true, progress, callback, state, scan);
}

void
build_hand_over(BuildState *state)
{
	/* Also of no keys at all: who merges knows the sorts by their number. */
	perform_sorts(state);
}

void
build_take_over(BuildState *state, int participants)
{
	SortCoordinateData coordinate = {.isWorker = false,.nParticipants = participants,
	.sharedsort = state->share->tuples};

	if (!state->format.lossless)
	{
		begin_tuples_sort(state, &coordinate);
		return;
	}
	for (int i = 0; i < 2; i++)
		state->sorts[i] = key_sort_take_over(state->keys, state->memory_kb, state->share->keys, i == 1);
}

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
		if (tree_record_copy(record, &copy))
			status = tree_copied(tree, copy, TREE_COPIES_BOTH, false);
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

void
build_end(BuildState *state)
{
	if (state->tuples_sort != NULL)
	{
		ExecDropSingleTupleTableSlot(state->put_slot);
		ExecDropSingleTupleTableSlot(state->get_slot);
		tuplesort_end(state->tuples_sort);
	}
	for (int i = 0; i < 2; i++)
	{
		if (state->sorts[i] != NULL)
			key_sort_end(state->sorts[i]);
	}
	MemoryContextDelete(state->row_context);
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
		meta.copy = tree_record_copy(record, &copy) ? copy + 1 : 0;
	}
	if (index->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		meta.flags |= SHERMAN_META_UNLOGGED;
	sherman_metapage_create(index, fork, &meta);
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
	keys = sherman_keys_make(index);
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
	ShermanKeys *keys = sherman_keys_make(index);

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
