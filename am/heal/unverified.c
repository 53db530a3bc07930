/*
 * unverified.c
 *		Entries that may have lost their rows: looked up in the table before they are used.
 *
 * A crash can take rows away that the index has entries of, and their places are given to other rows. So an entry of
 * an unverified leaf counts only if its row is there. It is there if the reader's own snapshot sees a row under the
 * TID, the row fits the index's predicate, and its columns are the very ones that the entry has: not equal ones as
 * the operator class sees it, for 1.0 and 1.00 are two rows with perhaps other included columns. Then it is the row's
 * own entry, whichever process has made it: a row has one entry, found there or added (I-P3).
 *
 * To see that is to compare bits.  Only an index over expressions, or with a predicate, needs them evaluated, and where
 * these run what the table's owner has written (owner.c) nobody evaluates them but maintenance, which is its owner
 * meanwhile (I-P7): to all others it is not known whether such an entry has a row, unless none is there, or one with other
 * columns.
 */
#include "am/base/sherman.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "am/base/compat.h"
#include "am/base/owner.h"
#include "am/heal/heal.h"
#include "am/heal/unverified.h"
#include "am/index/index.h"
#include "am/keys/key_layout.h"
#include "am/nodes/nodes.h"

struct UnverifiedRows
{
	Relation	heap;
	bool		opened;			/* by us */
	Relation	index;
	ShermanIndex *opened_index;
	ShermanKeys *keys;
	int			code;			/* OWNER_CODE_* */
	bool		maintains;		/* owner_maintains() */
	bool		evaluates;		/* expressions and predicate */
	IndexInfo  *info;			/* NULL unless it evaluates */
	EState	   *estate;
	ExprState  *predicate;
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
	BlockNumber blocks;			/* of the table, when last asked */
	MemoryContext context;		/* of the rest, emptied behind each entry */
};

/*
 * Makes what evaluates expressions and predicate.
 */
static void
prepare(UnverifiedRows *rows)
{
	int			nest_level = owner_begin_path();

	rows->info = BuildIndexInfo(rows->index);
	owner_reads_expressions(rows->index, rows->info);
	rows->estate = CreateExecutorState();
	GetPerTupleExprContext(rows->estate)->ecxt_scantuple = rows->slot;
	MemoryContextSwitchTo(rows->estate->es_query_cxt);
	rows->predicate = ExecPrepareQual(rows->info->ii_Predicate, rows->estate);
	owner_end_path(nest_level);
}

UnverifiedRows *
unverified_rows_make(Relation heap, Relation index, ShermanIndex *opened, MemoryContext context)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	UnverifiedRows *rows = palloc0(sizeof(UnverifiedRows));

	rows->opened = heap == NULL;
	rows->heap = heap != NULL ? heap : table_open(index->rd_index->indrelid, NoLock);
	rows->index = index;
	rows->opened_index = opened;
	rows->keys = opened->keys;
	rows->code = owner_code_of(index);
	rows->maintains = owner_maintains(rows->heap);
	rows->evaluates = rows->code == 0 || rows->maintains;
	rows->fetch = compat_fetch_begin(rows->heap);
	rows->slot = table_slot_create(rows->heap, NULL);
	rows->context = AllocSetContextCreate(context, "sherman unverified", ALLOCSET_SMALL_SIZES);
	if (rows->evaluates)
		prepare(rows);
	MemoryContextSwitchTo(caller);
	return rows;
}

int
unverified_code(const UnverifiedRows *rows)
{
	return rows->evaluates ? 0 : rows->code;
}

void
unverified_rows_pause(UnverifiedRows *rows)
{
	ExecClearTuple(rows->slot);
	table_index_fetch_reset(rows->fetch);
}

void
unverified_rows_end(UnverifiedRows *rows)
{
	table_index_fetch_end(rows->fetch);
	ExecDropSingleTupleTableSlot(rows->slot);
	if (rows->estate != NULL)
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
same_columns(UnverifiedRows *rows, const TreeKey *entry, Datum *values, bool *isnull)
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

/*
 * The same of the columns that are the table's, without evaluating anything.
 */
static bool
same_plain_columns(UnverifiedRows *rows, const TreeKey *entry)
{
	const int16 *attributes = rows->index->rd_index->indkey.values;
	Datum		entry_values[INDEX_MAX_KEYS];
	bool		entry_isnull[INDEX_MAX_KEYS];

	sherman_keys_datums(rows->keys, entry, entry_values, entry_isnull);
	for (int i = 0; i < rows->keys->descriptor->natts; i++)
	{
		bool		isnull;
		Datum		value;

		if (attributes[i] == 0)
			continue;			/* an expression */
		value = slot_getattr(rows->slot, attributes[i], &isnull);
		if (isnull != entry_isnull[i] ||
			(!isnull && !same_value(TupleDescAttr(rows->keys->descriptor, i), value, entry_values[i])))
			return false;
	}
	return true;
}

/*
 * Whether the tree has an entry of these columns with the TID of `entry`.
 */
static bool
has_own_entry(UnverifiedRows *rows, const TreeKey *entry, Datum *values, bool *isnull)
{
	const TreeBatch *batch;
	TreeBound	low;
	TreeBound	high;
	ItemPointerData tid;
	TreeKey		key;
	TreeScan   *scan;
	TreeStatus	status;
	bool		found = false;

	ItemPointerSet(&tid, entry->block, entry->offset);
	sherman_keys_form(rows->keys, rows->index, values, isnull, &tid, &key);
	keys_entry_bound(rows->keys, &key, &low);
	high = low;
	low.side = -1;
	high.side = 1;
	status = tree_scan_open(rows->opened_index->tree, &scan);
	if (status == TREE_OK)
		status = tree_scan_seek(scan, TREE_FORWARD, &low, &high);
	if (status != TREE_OK)
		sherman_report_failure(status, rows->index);
	while (!found && (status = sherman_scan_next(rows->opened_index, rows->index, scan, &batch)) == TREE_OK)
	{
		for (int i = 0; i < batch->count && !found; i++)
			found = batch->entries[i].block == entry->block && batch->entries[i].offset == entry->offset;
	}
	if (!found && status != TREE_END)
		sherman_report_failure(status, rows->index);
	tree_scan_close(scan);
	return found;
}

/*
 * What the row in the slot is to the entry, by its plain columns, then by expressions and predicate.
 */
static UnverifiedFinding
judge_evaluated(UnverifiedRows *rows, const TreeKey *entry)
{
	bool		expressions = rows->info->ii_Expressions != NIL;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	if (expressions && !same_plain_columns(rows, entry))
		return UNVERIFIED_NO_ROW;
	if (!ExecQual(rows->predicate, GetPerTupleExprContext(rows->estate)))
		return (rows->code & OWNER_CODE_PREDICATE) != 0 ? UNVERIFIED_CHANGED : UNVERIFIED_NO_ROW;
	FormIndexDatum(rows->info, rows->slot, rows->estate, values, isnull);
	if (same_columns(rows, entry, values, isnull))
		return UNVERIFIED_ROW;
	if (!expressions)
		return UNVERIFIED_NO_ROW;
	/* It has another entry, so this one is another row's; else the expression has had another value for it. */
	return !rows->maintains || has_own_entry(rows, entry, values, isnull) ? UNVERIFIED_NO_ROW : UNVERIFIED_CHANGED;
}

static UnverifiedFinding
judge_slot(UnverifiedRows *rows, const TreeKey *entry)
{
	if (!rows->evaluates)
		return same_plain_columns(rows, entry) ? UNVERIFIED_UNKNOWN : UNVERIFIED_NO_ROW;
	return judge_evaluated(rows, entry);
}

bool
unverified_block_is_there(UnverifiedRows *rows, BlockNumber block)
{
	if (block >= rows->blocks)
		rows->blocks = RelationGetNumberOfBlocks(rows->heap);
	return block < rows->blocks;
}

/* Looks at the members of the chain that the snapshot sees, until one fits; what is found of them is the most that one is. */
static UnverifiedFinding
judge_chain(UnverifiedRows *rows, const TreeKey *entry, Snapshot snapshot)
{
	UnverifiedFinding finding = UNVERIFIED_NO_ROW;
	bool		again = false;
	ItemPointerData tid;

	/* Becomes the member's, from which the next call goes on. */
	ItemPointerSet(&tid, entry->block, entry->offset);
	do
	{
		if (!table_index_fetch_tuple(rows->fetch, &tid, snapshot, rows->slot, &again, NULL))
			break;
		finding = Max(finding, judge_slot(rows, entry));
		if (rows->estate != NULL)
			ResetPerTupleExprContext(rows->estate);
	} while (finding != UNVERIFIED_ROW && again);
	ExecClearTuple(rows->slot);
	return finding;
}

UnverifiedFinding
unverified_row_find(UnverifiedRows *rows, const TreeKey *entry, Snapshot snapshot)
{
	MemoryContext caller = MemoryContextSwitchTo(rows->context);
	SnapshotData any;
	UnverifiedFinding finding = UNVERIFIED_NO_ROW;
	int			nest_level = 0;

	/* CLUSTER takes rows in any state: rows that no snapshot can see any more it skips itself. */
	if (snapshot == SnapshotAny)
	{
		InitNonVacuumableSnapshot(any, GlobalVisTestFor(rows->heap));
		snapshot = &any;
	}
	if (rows->evaluates && rows->code != 0)
	{
		if (!owner_maintains(rows->heap))
			elog(ERROR, "index \"%s\" is to be evaluated by another user than its owner", RelationGetRelationName(rows->index));
		nest_level = owner_begin_path();
	}
	if (unverified_block_is_there(rows, entry->block))
		finding = judge_chain(rows, entry, snapshot);
	if (nest_level != 0)
		owner_end_path(nest_level);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(rows->context);
	return finding;
}
