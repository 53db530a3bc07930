/*
 * build_sort.c
 *		A build's sorts: rows of the table go in, keys come out in their order.
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
 */
#include "am/access/build.h"

#include "access/nbtree.h"
#include "access/tableam.h"
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

#include "am/access/access.h"
#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/keys/key_layout.h"

/* Of so many rows one is measured. */
#define MEASURE_STRIDE 8

/* Words with this bit inverted have, as signed integers, the order of the words. */
#define WORD_SIGN (UINT64CONST(1) << 63)

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
	TupleDescFinalize(state->descriptor);
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
 * Counts a row of the table; now and then a rebuild that no session waits for yields to others.
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
	if (state->measures && ((int64) state->tuples) % MEASURE_STRIDE == 0)
		sherman_keys_measure(state->keys, sorted, sorted_null, &state->images);
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

void
build_begin(BuildState *state, Relation heap, Relation index, IndexInfo *info)
{
	memset(state, 0, sizeof(*state));
	state->heap = heap;
	state->index = index;
	state->unique = info->ii_Unique;
	state->nulls_distinct = !info->ii_NullsNotDistinct;
	state->keys = sherman_keys_make(index, NULL);
	state->format = *sherman_keys_format(state->keys);
	state->format.fill_percent = (uint8) sherman_fillfactor(index);
	state->format.postings = sherman_deduplicates(index, &state->format);
	state->measures = sherman_keys_vary(state->keys);
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

void
build_fit_cells(BuildState *state)
{
	if (!state->measures)
		return;
	sherman_keys_fit_cells(state->keys, &state->images);
	state->format.cell_bytes = sherman_keys_format(state->keys)->cell_bytes;
}

void
build_sort(BuildState *state)
{
	if (state->tuples_sort != NULL)
		tuplesort_performsort(state->tuples_sort);
	for (int i = 0; i < 2; i++)
	{
		if (state->sorts[i] != NULL)
			key_sort_perform(state->sorts[i]);
	}
}

void
build_sorted_key(BuildState *state, TupleTableSlot *slot, TreeKey *key)
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
