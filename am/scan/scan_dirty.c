/*
 * scan_dirty.c
 *		Scans with a dirty snapshot (ON CONFLICT, EXCLUDE, logical replication): rows that are in progress, also those whose entries wait.
 */
#include "am/base/sherman.h"

#include "access/tableam.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "am/base/compat.h"
#include "am/keys/keys.h"
#include "am/scan/scan_state.h"

/*
 * Lets go of the barrier although the entry at hand is about to be returned: the scan goes on behind its key, if it does.
 */
static void
leave_barrier(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;
	TreeKey		key;

	if (!scan_batch_key(scan, state->position, &key))
		return;
	scan_set_place(state, &state->place, &key);
	scan_leave_batch(scan);
	state->sought = false;
	scan_release_barrier(scan);
}

/*
 * Whether the row of the current entry is there. If so, the caller will read it once more, and then perhaps wait for
 * a transaction, for as long as that lasts: the barrier must not be held meanwhile. It need not be for a row that is
 * there for good but for deletions that have not committed: such a deletion is no older than our xmin, so that VACUUM
 * leaves the row alone. But a row whose insertion is in progress may be rolled back and go at once.
 */
bool
scan_dirty_row_is_there(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;
	ItemPointerData tid = scan->xs_heaptid;
	SnapshotData dirty;
	bool		dead = false;

	InitDirtySnapshot(dirty);
	if (!table_index_fetch_tuple_check(scan->heapRelation, &tid, &dirty, &dead))
	{
		if (dead && !state->batch->unverified)
			sherman_kill_note(&state->kills, state->context, state->batch, state->position);
		return false;
	}
	if (!TransactionIdIsValid(dirty.xmin) && TransactionIdIsValid(MyProc->xmin) && !compat_old_snapshots_end())
		leave_barrier(scan);
	return true;
}

/* ---- rows whose entries wait ---- */

/*
 * Whether this scan asks for the rows with one key of a unique index, as the checks of ON CONFLICT do; if so, the key's columns.
 */
static bool
asks_for_key(IndexScanDesc scan, Datum *values, bool *isnull)
{
	const Relation index = scan->indexRelation;
	const int	columns = IndexRelationGetNumberOfKeyAttributes(index);

	if (!index->rd_index->indisunique || scan->numberOfKeys != columns)
		return false;
	memset(isnull, true, sizeof(bool) * INDEX_MAX_KEYS);
	for (int i = 0; i < columns; i++)
	{
		const ScanKeyData *key = &scan->keyData[i];
		const bool	null = (key->sk_flags & SK_SEARCHNULL) != 0;

		if (key->sk_attno != i + 1 || (key->sk_flags & ~(SK_ISNULL | SK_SEARCHNULL)) != 0 ||
			(!null && (key->sk_strategy != BTEqualStrategyNumber || (key->sk_flags & SK_ISNULL) != 0)) ||
			(OidIsValid(key->sk_subtype) && key->sk_subtype != index->rd_opcintype[i]))
			return false;
		values[i] = key->sk_argument;
		isnull[i] = null;
	}
	return true;
}

/*
 * Looks for rows with the key that are announced, once in a scan, before it looks into the tree, and with the barrier held: a row that is in
 * progress then keeps its TID until the scan ends.
 */
void
scan_find_announced(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	ItemPointerData anywhere;
	MemoryContext caller;
	TreeKey		key;

	state->dirty = true;
	state->announced_left = 0;
	state->of_key = asks_for_key(scan, values, isnull);
	if (!state->of_key || !scan_open_index(scan) || !state->index->keys->exact)
	{
		state->of_key = false;
		return;
	}
	scan_hold_barrier(scan);
	if (!announced_any())
		return;
	ItemPointerSet(&anywhere, 0, 1);
	if (state->announced == NULL)
		state->announced = MemoryContextAlloc(state->context, sizeof(AnnouncedRow) * ANNOUNCED_ROWS);
	/* An index with included columns has an image beside the normalized key. */
	caller = MemoryContextSwitchTo(AllocSetContextCreate(CurrentMemoryContext, "sherman key", ALLOCSET_SMALL_SIZES));
	sherman_keys_form(state->index->keys, scan->indexRelation, values, isnull, &anywhere, &key);
	state->announced_left = announced_find(state->index->meta.tree, &key, state->announced);
	MemoryContextDelete(MemoryContextSwitchTo(caller));
}

/*
 * The next row that is announced.  A writer that is in progress has it still: of another one it is dead, or its entry is in the tree.
 */
bool
scan_return_announced(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	while (state->announced_left > 0)
	{
		const AnnouncedRow *row = &state->announced[--state->announced_left];
		ItemPointerData tid;
		SnapshotData dirty;

		if (!TransactionIdIsInProgress(row->writer))
			continue;
		ItemPointerSet(&scan->xs_heaptid, row->block, row->offset);
		tid = scan->xs_heaptid;
		InitDirtySnapshot(dirty);
		if (table_index_fetch_tuple_check(scan->heapRelation, &tid, &dirty, NULL))
			return true;
	}
	return false;
}
