/*
 * heal.c
 *		Ends the doubt that a crash has left in an index: each leaf's entries are looked up in the table, those without
 *		a row are taken away, and the leaf is like others again (tree/heal.c).
 *
 * An entry has a row if any member of the chain of updates under its TID is not dead to everybody, fits the index's
 * predicate and has the entry's columns.  It is kept also if that row is not committed yet, or is another snapshot's.
 * What is taken away follows the rule for removals: first the WAL that it follows from is flushed, and noted at the
 * tree.  The leaf's new stamp is behind all that was seen.
 */
#include "sherman.h"

#include "access/table.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "shared.h"
#include "suspect.h"

PG_FUNCTION_INFO_V1(sherman_heal_index);

/* One walk over an index. */
typedef struct Healer
{
	Relation	heap;
	Relation	index;
	ShermanIndex *opened;
	TreeScan   *scan;
	SuspectRows *rows;
	int64		left;			/* leaves that others were changing */
	TreeDead	gone[TREE_BATCH_MAX];
	int			gone_count;
} Healer;

/*
 * Collects the entries of the leaf that have no row.  False: not all could be looked up.  The leaf has changed, or it has
 * taken up the one behind it since we were there (tree/fold.c), and only that one's entries are shown.
 */
static bool
look_up_entries(Healer *healer, const TreeBatch *batch)
{
	SnapshotData any;

	if (!batch->whole)
		return false;
	healer->gone_count = 0;
	InitNonVacuumableSnapshot(any, GlobalVisTestFor(healer->heap));
	for (int i = 0; i < batch->count && batch->suspect; i++)
	{
		TreeKey		key;
		TreeStatus	status = tree_batch_key(healer->scan, batch, i, &key);

		if (status == TREE_NOT_FOUND)
			return false;
		if (status != TREE_OK)
			sherman_report_failure(status, healer->index);
		if (!suspect_row_fits(healer->rows, &key, &any))
			healer->gone[healer->gone_count++] = (TreeDead) {key.block, key.offset, batch->entries[i].cell};
	}
	suspect_rows_pause(healer->rows);
	return true;
}

static void
heal_leaf(Healer *healer, const TreeBatch *batch)
{
	bool		healed = false;
	TreeStamp	stamp;
	TreeStatus	status;

	if (look_up_entries(healer, batch))
	{
		sherman_stamp_now(&stamp);
		if (healer->gone_count > 0)
			sherman_prove_removal(healer->index, healer->opened, compat_wal_end());
		status = tree_heal_leaf(healer->opened->tree, batch->leaf, batch->generation, healer->gone, healer->gone_count,
								&stamp, &healed);
		if (status != TREE_OK)
			sherman_report_failure(status, healer->index);
	}
	healer->left += !healed;
}

/* Looks at all leaves. */
static void
walk(Healer *healer)
{
	const TreeBatch *batch;
	TreeStatus	status = tree_scan_seek(healer->scan, TREE_FORWARD, NULL, NULL);

	tree_scan_suspects(healer->scan, true);
	if (status != TREE_OK)
		sherman_report_failure(status, healer->index);
	while ((status = tree_scan_next(healer->scan, &batch)) == TREE_OK)
	{
		CHECK_FOR_INTERRUPTS();
		sherman_index_recheck(healer->opened, healer->index);
		if (batch->suspect || batch->marks_void)
			heal_leaf(healer, batch);
	}
	if (status != TREE_END)
		sherman_report_failure(status, healer->index);
}

/*
 * No leaf is in doubt any more: says so in the tree's record.
 */
static void
note_healed(Healer *healer)
{
	TreeRecord	record = {
		.tree = healer->opened->meta.tree,.root = healer->opened->meta.root,.flags = TREE_RECORD_HEALED
	};
	TreeStatus	status = tree_record_update(sherman_client(), &record);

	if (status != TREE_OK)
		sherman_report_failure(status, healer->index);
	sherman_trees_healed(record.tree);
	sherman_state_changed();
}

/*
 * sherman_heal(index regclass) returns bigint: ends the doubt in all leaves of an index.  Returns the number of leaves
 * that are left, as others were changing them: 0, or call it again.
 */
Datum
sherman_heal_index(PG_FUNCTION_ARGS)
{
	Healer		healer = {0};
	TreeStatus	status;

	sherman_open_with_table(PG_GETARG_OID(0), RowExclusiveLock, &healer.heap, &healer.index);
	healer.opened = sherman_index_for_vacuum(healer.index);
	if (healer.opened == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is broken and cannot be healed", RelationGetRelationName(healer.index)),
				 errhint("Rebuild it with REINDEX.")));
	if (healer.opened->tree != NULL)
	{
		status = sherman_take_scan(healer.opened, &healer.scan);
		if (status != TREE_OK)
			sherman_report_failure(status, healer.index);
		healer.rows = suspect_rows_make(healer.heap, healer.index, healer.opened->keys, CurrentMemoryContext);
		walk(&healer);
		suspect_rows_end(healer.rows);
		sherman_return_scan(healer.opened, healer.scan);
		if (healer.left == 0)
			note_healed(&healer);
	}
	index_close(healer.index, NoLock);
	table_close(healer.heap, NoLock);
	PG_RETURN_INT64(healer.left);
}
