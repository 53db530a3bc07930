/*
 * check.c
 *		sherman_check(): verifies an index, and the rows of its table against it, in the manner of amcheck.
 *
 * The tree verifies its own invariants (tree_check()).  With `heapallindexed`, every row that a snapshot
 * sees, taken before the tree is read, must have exactly one entry, under its TID and with its key: such a
 * row's entry was there when the snapshot was taken, and no VACUUM may remove it meanwhile.  Entries and rows
 * go into two sorts of integers {TID:48, hash of the key:16}, which are then merged: memory is bounded by
 * maintenance_work_mem, and a key that differs is overlooked once in 65536 times.
 */
#include "am/base/sherman.h"

#include <xxhash.h>

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

#include "am/base/compat.h"
#include "am/base/owner.h"
#include "am/base/shared.h"
#include "am/heal/heal.h"
#include "am/heal/unverified.h"
#include "am/index/index.h"
#include "am/keys/keys.h"
#include "am/nodes/nodes.h"

PG_FUNCTION_INFO_V1(sherman_check);

/* The number of problems that are reported one by one; the rest is only counted. */
#define PROBLEMS_TOLD 50

/* Bits of the key's hash beside a TID. */
#define HASH_BITS 16
#define HASH_MASK ((UINT64CONST(1) << HASH_BITS) - 1)

typedef struct CheckState
{
	Relation	heap;
	Relation	index;
	ShermanIndex *opened;
	ShermanKeys *keys;
	Tuplesortstate *entries;	/* of the index; NULL: not wanted */
	Tuplesortstate *rows;
	Snapshot	snapshot;
	UnverifiedRows *unverified;		/* NULL: no unverified leaf was met */
	MemoryContext context;		/* of the check */
	MemoryContext row_context;	/* of one row, or entry */
	int64		problems;
} CheckState;

/*
 * Tells one problem.
 */
static void
report_problem(CheckState *state, const char *message)
{
	if (++state->problems <= PROBLEMS_TOLD)
		ereport(WARNING,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("index \"%s\": %s", RelationGetRelationName(state->index), message)));
}

/* TreeCheckReport. */
static void
check_report(void *argument, const char *message)
{
	report_problem(argument, message);
}

/* Hash of one column's value that goes on from the others' hash. */
static uint64
hash_value(Form_pg_attribute attribute, Datum value, uint64 hash)
{
	if (attribute->attbyval)
		return XXH3_64bits_withSeed(&value, sizeof(value), hash);
	if (attribute->attlen == -1)
	{
		struct varlena *whole = PG_DETOAST_DATUM_PACKED(value);

		return XXH3_64bits_withSeed(VARDATA_ANY(whole), VARSIZE_ANY_EXHDR(whole), hash);
	}
	return XXH3_64bits_withSeed(DatumGetPointer(value), datumGetSize(value, false, attribute->attlen), hash);
}

/*
 * Hash of all columns, included ones too.  Not of the image: one value may be stored compressed here and plain
 * there, as it came from the table or from the statement.
 */
static uint64
hash_columns(CheckState *state, const TreeKey *key)
{
	TupleDesc	descriptor = RelationGetDescr(state->index);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint64		hash = 0;

	sherman_keys_datums(state->keys, key, values, isnull);
	for (int i = 0; i < descriptor->natts; i++)
	{
		if (isnull[i])
			hash = XXH3_64bits_withSeed("", 0, ~hash);
		else
			hash = hash_value(TupleDescAttr(descriptor, i), values[i], hash);
	}
	return hash;
}

/*
 * {TID, hash of the key} as the sorts keep it.
 */
static int64
fingerprint(CheckState *state, const TreeKey *key)
{
	uint64		hash = XXH3_64bits_withSeed(key->norm, sizeof(key->norm), key->high ? 1 : 0);

	if (key->image_bytes != 0)
		hash ^= hash_columns(state, key);
	return (int64) (((uint64) key->block << 32 | (uint64) key->offset << HASH_BITS) | (hash & HASH_MASK));
}

/* Begins a sort of fingerprints. */
static Tuplesortstate *
begin_sort(void)
{
	return tuplesort_begin_datum(INT8OID, Int8LessOperator, InvalidOid, false, maintenance_work_mem, NULL,
								 TUPLESORT_NONE);
}

/* Whether an entry of an unverified leaf is one for the snapshot. */
static bool
has_row(CheckState *state, const TreeKey *key)
{
	if (state->unverified == NULL)
		state->unverified = unverified_rows_make(state->heap, state->index, state->opened, state->context);
	return unverified_row_find(state->unverified, key, state->snapshot) == UNVERIFIED_ROW;
}

/* TreeCheckEntry: one entry of the index. */
static void
check_entry(void *argument, const TreeKey *key, bool unverified)
{
	CheckState *state = argument;
	MemoryContext caller;

	if (unverified && !has_row(state, key))
		return;
	caller = MemoryContextSwitchTo(state->row_context);
	tuplesort_putdatum(state->entries, Int64GetDatum(fingerprint(state, key)), false);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(state->row_context);
}

/* Callback of the table scan: one row that the snapshot sees. */
static void
check_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *argument)
{
	CheckState *state = argument;
	MemoryContext caller = MemoryContextSwitchTo(state->row_context);
	TreeKey		key;

	sherman_keys_form(state->keys, index, values, isnull, tid, &key);
	tuplesort_putdatum(state->rows, Int64GetDatum(fingerprint(state, &key)), false);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(state->row_context);
}

/* One sort while it is read. */
typedef struct Cursor
{
	Tuplesortstate *sort;
	bool		valid;
	int64		value;
} Cursor;

static void
cursor_next(Cursor *cursor)
{
	Datum		datum;

	cursor->valid = compat_sorted_datum(cursor->sort, &datum);
	if (cursor->valid)
		cursor->value = DatumGetInt64(datum);
}

/* The TID's part of a fingerprint; ordered as the fingerprints are. */
static int64
fingerprint_tid(int64 value)
{
	return value >> HASH_BITS;
}

/*
 * Merges rows and entries: each row must have one entry, with its hash.  Entries without a row are those of
 * dead rows, or of rows that the snapshot does not see.
 */
static void
compare_rows(CheckState *state)
{
	Cursor		entry = {.sort = state->entries};
	Cursor		row = {.sort = state->rows};

	tuplesort_performsort(state->entries);
	tuplesort_performsort(state->rows);
	cursor_next(&entry);
	for (cursor_next(&row); row.valid; cursor_next(&row))
	{
		uint64		tid = (uint64) row.value >> HASH_BITS;
		BlockNumber block = (BlockNumber) (tid >> 16);
		int			offset = (int) (tid & 0xffff);
		int			found = 0;
		int			same = 0;

		CHECK_FOR_INTERRUPTS();
		while (entry.valid && fingerprint_tid(entry.value) < fingerprint_tid(row.value))
			cursor_next(&entry);
		for (; entry.valid && fingerprint_tid(entry.value) == fingerprint_tid(row.value); cursor_next(&entry))
		{
			found++;
			if (entry.value == row.value)
				same++;
		}
		if (found == 0)
			report_problem(state, psprintf("row (%u,%d) has no entry", block, offset));
		else if (found > 1)
			report_problem(state, psprintf("row (%u,%d) has %d entries", block, offset, found));
		else if (same == 0)
			report_problem(state, psprintf("row (%u,%d) and its entry differ in the key", block, offset));
	}
}

/*
 * Scans the table with the snapshot, which was taken before the index was read.
 */
static void
scan_rows(CheckState *state, Snapshot snapshot)
{
	IndexInfo  *info = BuildIndexInfo(state->index);
	TableScanDesc scan = table_beginscan_strat(state->heap, snapshot, 0, NULL, true, true);

	owner_reads_expressions(state->index, info);
	/* This flag makes the scan take no lock that keeps writers out. */
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	info->ii_ExclusionProcs = NULL;
	info->ii_ExclusionStrats = NULL;
	(void) table_index_build_scan(state->heap, state->index, info, true, false, check_row, state, scan);
}

/*
 * Compares the nodes with their replicas, if there are some that are in use and without doubts.
 */
static void
check_replicas(CheckState *state, ShermanIndex *opened)
{
	uint64		differ = sherman_replicas_differ(state->index, opened);

	if (differ > 0)
		report_problem(state, psprintf(UINT64_FORMAT " nodes differ from their copies", differ));
}

/*
 * Reads the tree, with its entries where they are wanted: anew if a memory node is lost meanwhile and the index goes on
 * with the other one.
 */
static void
check_tree(CheckState *state, ShermanIndex *opened)
{
	int			attempts = 0;
	TreeStatistics statistics;
	uint64		problems;
	TreeStatus	status;

	do
	{
		if (attempts > 0 && state->entries != NULL)
		{
			tuplesort_end(state->entries);
			state->entries = begin_sort();
		}
		state->problems = 0;
		status = tree_check(opened->tree, check_report, state->entries != NULL ? check_entry : NULL, state,
							&statistics, &problems);
	} while (sherman_try_again(opened, state->index, status, &attempts));
	if (status != TREE_OK)
		sherman_report_failure(status, state->index);
	state->problems = Max(state->problems, (int64) problems);
	check_replicas(state, opened);
}

/*
 * Runs both halves of the check; returns the number of problems.
 */
static int64
check_index(Relation heap, Relation index, bool heapallindexed)
{
	CheckState	state = {.heap = heap, .index = index, .context = CurrentMemoryContext};
	Snapshot	snapshot = NULL;
	ShermanIndex *opened;

	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("recovery is in progress"),
				 errhint("sherman_check() cannot be executed during recovery: run it on the primary.")));
	if (heapallindexed)
	{
		snapshot = RegisterSnapshot(GetTransactionSnapshot());
		/* As in amcheck: an older snapshot may see rows that the build left out of a chain of updates. */
		if (IsolationUsesXactSnapshot() && index->rd_index->indcheckxmin &&
			!TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data), snapshot->xmin))
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("index \"%s\" cannot be verified using transaction snapshot",
							RelationGetRelationName(index))));
		state.snapshot = snapshot;
		state.entries = begin_sort();
		state.rows = begin_sort();
	}
	state.row_context = AllocSetContextCreate(CurrentMemoryContext, "sherman check", ALLOCSET_DEFAULT_SIZES);

	opened = sherman_index_for_scan(index, false);
	state.opened = opened;
	state.keys = opened->keys;
	if (opened->tree != NULL)
		check_tree(&state, opened);
	if (heapallindexed)
	{
		scan_rows(&state, snapshot);
		compare_rows(&state);
		tuplesort_end(state.entries);
		tuplesort_end(state.rows);
		if (state.unverified != NULL)
			unverified_rows_end(state.unverified);
		UnregisterSnapshot(snapshot);
	}
	sherman_index_recheck(opened, index);
	MemoryContextDelete(state.row_context);
	return state.problems;
}

/*
 * sherman_check(index regclass, heapallindexed boolean) returns bigint: the number of problems found, 0 for a
 * sound index; each (of the first) is told by a WARNING.  Locks out nobody.  For the index's owner: expressions, predicates
 * and what operator classes call run as that, in a restricted security context.
 */
Datum
sherman_check(PG_FUNCTION_ARGS)
{
	Oid			index_oid = PG_GETARG_OID(0);
	bool		heapallindexed = PG_GETARG_BOOL(1);
	Relation	heap;
	Relation	index;
	OwnerCaller caller;
	int64		problems;

	sherman_open_with_table(index_oid, AccessShareLock, &heap, &index);
	owner_begin(heap, &caller);
	problems = check_index(heap, index, heapallindexed);
	owner_end(&caller);
	index_close(index, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_INT64(problems);
}
