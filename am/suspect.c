/*
 * suspect.c
 *		Entries that may have lost their rows: looked up in the table before anybody believes them.
 *
 * A crash can take rows away that the index has entries of, and their places are given to other rows.  So of a leaf in
 * doubt an entry counts only if its row is there.  It is there if the reader's own snapshot sees a row under the TID, the
 * row fits the index's predicate, and its columns are the very ones that the entry has: not equal ones as the
 * operator class sees it, for 1.0 and 1.00 are two rows with perhaps other included columns.  Then it is the row's own
 * entry, whoever has made it: a row has one entry, found there or added (I-P3).
 *
 * Index expressions, predicates and what they call are the table owner's: they run as he, where he can do nothing
 * that the reader would not want (I-P7).
 */
#include "sherman.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "keys.h"
#include "suspect.h"

struct SuspectRows
{
	Relation	heap;
	bool		opened;			/* by us */
	Relation	index;
	ShermanKeys *keys;
	IndexInfo  *info;
	EState	   *estate;
	ExprState  *predicate;
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
	BlockNumber blocks;			/* of the table, when last asked */
	MemoryContext context;		/* of the rest, emptied behind each entry */
};

/* Who one is, while one is the table's owner. */
typedef struct Caller
{
	Oid			user;
	int			security;
	int			nest_level;
} Caller;

static void
become_owner(Relation heap, Caller *caller)
{
	GetUserIdAndSecContext(&caller->user, &caller->security);
	SetUserIdAndSecContext(heap->rd_rel->relowner, caller->security | SECURITY_RESTRICTED_OPERATION);
	caller->nest_level = NewGUCNestLevel();
}

static void
become_oneself(const Caller *caller)
{
	AtEOXact_GUC(false, caller->nest_level);
	SetUserIdAndSecContext(caller->user, caller->security);
}

SuspectRows *
suspect_rows_make(Relation heap, Relation index, ShermanKeys *keys, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	SuspectRows *rows = palloc0(sizeof(SuspectRows));
	Caller		reader;

	rows->opened = heap == NULL;
	rows->heap = heap != NULL ? heap : table_open(index->rd_index->indrelid, NoLock);
	become_owner(rows->heap, &reader);
	rows->index = index;
	rows->keys = keys;
	rows->info = BuildIndexInfo(index);
	rows->estate = CreateExecutorState();
	rows->fetch = table_index_fetch_begin(rows->heap);
	rows->slot = table_slot_create(rows->heap, NULL);
	rows->context = AllocSetContextCreate(context, "sherman suspects", ALLOCSET_SMALL_SIZES);
	GetPerTupleExprContext(rows->estate)->ecxt_scantuple = rows->slot;
	MemoryContextSwitchTo(rows->estate->es_query_cxt);
	rows->predicate = ExecPrepareQual(rows->info->ii_Predicate, rows->estate);
	become_oneself(&reader);
	MemoryContextSwitchTo(caller);
	return rows;
}

void
suspect_rows_pause(SuspectRows *rows)
{
	ExecClearTuple(rows->slot);
	table_index_fetch_reset(rows->fetch);
}

void
suspect_rows_end(SuspectRows *rows)
{
	table_index_fetch_end(rows->fetch);
	ExecDropSingleTupleTableSlot(rows->slot);
	FreeExecutorState(rows->estate);
	MemoryContextDelete(rows->context);
	if (rows->opened)
		table_close(rows->heap, NoLock);
	pfree(rows);
}

/* Whether two values of a column are the same, bit by bit, however they are stored. */
static bool
same_value(Form_pg_attribute attribute, Datum row, Datum entry)
{
	int			unused = (int) (sizeof(Datum) - attribute->attlen) * BITS_PER_BYTE;

	if (attribute->attbyval)
		return (uint64) (row ^ entry) << unused == 0;
	return datum_image_eq(row, entry, false, attribute->attlen);
}

/*
 * Whether the entry is that of a row with these columns.  What its normalized key holds without loss the image may be without.
 */
static bool
same_columns(SuspectRows *rows, const TreeKey *entry, Datum *values, bool *isnull)
{
	const ShermanKeys *keys = rows->keys;
	Datum		entry_values[INDEX_MAX_KEYS];
	bool		entry_isnull[INDEX_MAX_KEYS];
	TreeKey		row = {0};

	keys_form_normalized(keys, values, isnull, &row);
	if (row.high != entry->high || memcmp(row.norm, entry->norm, keys->format.norm_bytes) != 0)
		return false;
	if (keys->format.lossless)
		return true;
	sherman_keys_datums(rows->keys, entry, entry_values, entry_isnull);
	for (int i = keys->exact ? keys->columns : 0; i < keys->descriptor->natts; i++)
	{
		if (isnull[i] != entry_isnull[i])
			return false;
		if (!isnull[i] && !same_value(TupleDescAttr(keys->descriptor, i), values[i], entry_values[i]))
			return false;
	}
	return true;
}

/* Whether the row in the slot is the entry's. */
static bool
slot_fits(SuspectRows *rows, const TreeKey *entry)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (!ExecQual(rows->predicate, GetPerTupleExprContext(rows->estate)))
		return false;
	FormIndexDatum(rows->info, rows->slot, rows->estate, values, isnull);
	return same_columns(rows, entry, values, isnull);
}

bool
suspect_block_is_there(SuspectRows *rows, BlockNumber block)
{
	if (block >= rows->blocks)
		rows->blocks = RelationGetNumberOfBlocks(rows->heap);
	return block < rows->blocks;
}

/* Looks at the members of the chain that the snapshot sees, until one fits. */
static bool
chain_fits(SuspectRows *rows, const TreeKey *entry, Snapshot snapshot)
{
	bool		again = false;
	bool		fits = false;
	ItemPointerData tid;

	/* Becomes the member's, from which the next call goes on. */
	ItemPointerSet(&tid, entry->block, entry->offset);
	do
	{
		if (!table_index_fetch_tuple(rows->fetch, &tid, snapshot, rows->slot, &again, NULL))
			break;
		fits = slot_fits(rows, entry);
		ResetPerTupleExprContext(rows->estate);
	} while (!fits && again);
	ExecClearTuple(rows->slot);
	return fits;
}

bool
suspect_row_fits(SuspectRows *rows, const TreeKey *entry, Snapshot snapshot)
{
	MemoryContext caller = MemoryContextSwitchTo(rows->context);
	SnapshotData any;
	bool		fits = false;
	Caller		reader;

	/* CLUSTER takes what is there in any state: what nobody can see any more it passes over itself. */
	if (snapshot == SnapshotAny)
	{
		InitNonVacuumableSnapshot(any, GlobalVisTestFor(rows->heap));
		snapshot = &any;
	}
	become_owner(rows->heap, &reader);
	if (suspect_block_is_there(rows, entry->block))
		fits = chain_fits(rows, entry, snapshot);
	become_oneself(&reader);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(rows->context);
	return fits;
}
