/*
 * insert.c
 *		Adding the entry of one new row.
 *
 * This is the path that every INSERT and every non-HOT UPDATE takes for each index: it forms the key, stamps
 * it and hands it to the tree, which returns after the memory node has acknowledged the entry.  Of a
 * unique index the key is locked before, and looked for (unique.c).
 *
 * The first row of a statement goes at once, so that one row costs no more than that.  From the second on entries of
 * indexes that are not unique wait, to go together (insert_batch.c): before anybody may need them (I-P2).
 */
#include "am/base/sherman.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/memutils.h"

#include "am/access/access.h"
#include "am/access/insert_batch.h"
#include "am/access/unique.h"
#include "am/index/index.h"
#include "am/keys/keys.h"
#include "am/nodes/nodes.h"

/* What one executor state keeps for an index between rows; in IndexInfo's context. */
typedef struct InsertState
{
	MemoryContext context;		/* of one row's key, emptied behind each row that used it */
	UniqueChecker unique;
	bool		alone;			/* entries may not wait */
	InsertBatch *batch[2];		/* that entries wait in; [1]: of rows whose key did not change */
	uint64		serial[2];		/* batch[i] is another statement's unless it has this one */
} InsertState;

/*
 * Makes the state at the first row.
 */
static InsertState *
insert_state_make(IndexInfo *info)
{
	InsertState *state = MemoryContextAllocZero(info->ii_Context, sizeof(InsertState));

	state->context = AllocSetContextCreate(info->ii_Context, "sherman insert", ALLOCSET_SMALL_SIZES);
	state->unique.context = info->ii_Context;
	info->ii_AmCache = state;
	return state;
}

/*
 * Adds an entry to the tree.  False: the index may be passed over by now, with its entry.
 */
static bool
add_entry(Relation index, ShermanIndex *opened, const TreeKey *key, Relation heap, bool index_unchanged)
{
	int			attempts = 0;
	TreeWalPosition	wal;
	TreeStatus	status;
	bool		hit;

	for (;;)
	{
		sherman_delete_prepare(opened, heap, index_unchanged);
		sherman_wal_position(index, &wal);
		status = tree_insert(opened->tree, key, &wal, &hit);
		if (likely(status == TREE_OK))
			break;
		if (!sherman_try_again(opened, index, status, &attempts))
			sherman_report_failure(status, index);
		opened = sherman_index_for_insert(index);
		if (opened == NULL)
			return false;
	}
	if (IsolationIsSerializable())
		sherman_predicate_inserted(index, opened);
	return true;
}

/*
 * Has the entry wait, to go with others of its statement.  False: it is to be added at once.
 */
static bool
entry_waits(InsertState *state, Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			bool index_unchanged)
{
	ShermanIndex *opened = sherman_index(index);
	InsertBatch *batch = state->batch[index_unchanged];
	MemoryContext caller;

	if (unlikely(opened->state != SHERMAN_OK || opened->tree == NULL))
		return false;
	if (unlikely(batch == NULL || batch->serial != state->serial[index_unchanged]))
	{
		state->alone = !insert_batch_allowed(index, opened);
		if (state->alone)
			return false;
		batch = insert_batch_take(index, heap, opened, index_unchanged);
		state->batch[index_unchanged] = batch;
		state->serial[index_unchanged] = batch->serial;
	}
	caller = MemoryContextSwitchTo(state->context);
	sherman_keys_form(opened->keys, index, values, isnull, tid, insert_batch_place(batch));
	MemoryContextSwitchTo(caller);
	insert_batch_keep(batch);
	MemoryContextReset(state->context);
	return true;
}

/*
 * aminsert: adds the entry (values, tid), or, for UNIQUE_CHECK_EXISTING, checks the one that is there.  False
 * for UNIQUE_CHECK_PARTIAL alone: the key is perhaps not unique.  A broken index without a constraint is
 * passed over (its flag is durable by then).  Raises btree's errors for a key that is too long or a duplicate,
 * and what errors.c makes of the tree's status.
 */
bool
sherman_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			   IndexUniqueCheck check_unique, bool index_unchanged, IndexInfo *info)
{
	InsertState *state = info->ii_AmCache;
	bool		is_first = state == NULL;
	ShermanIndex *opened;
	MemoryContext caller;
	TreeKey		key;
	bool		unique = true;

	if (unlikely(is_first))
		state = insert_state_make(info);
	if (check_unique == UNIQUE_CHECK_NO && !state->alone && (!is_first || !insert_batch_in_statement()) &&
		entry_waits(state, index, values, isnull, tid, heap, index_unchanged))
		return true;
	opened = sherman_index_for_insert(index);
	if (opened == NULL)
	{
		sherman_predicate_skipped(index, heap);
		return true;
	}

	caller = MemoryContextSwitchTo(state->context);
	sherman_keys_form(opened->keys, index, values, isnull, tid, &key);
	if (check_unique != UNIQUE_CHECK_NO)
	{
		UniqueRow	row = {index, heap, values, isnull, tid, &key, check_unique, index_unchanged};

		unique = unique_begin(&state->unique, &row, &opened);
	}
	MemoryContextSwitchTo(caller);

	if (check_unique == UNIQUE_CHECK_NO ||
		(check_unique != UNIQUE_CHECK_EXISTING && !state->unique.added))
	{
		if (!add_entry(index, opened, &key, heap, index_unchanged))
			sherman_predicate_skipped(index, heap);
	}
	if (check_unique != UNIQUE_CHECK_NO)
		unique_end(&state->unique, index);

	/* A no-op where the key needed no memory. */
	MemoryContextReset(state->context);
	return unique;
}
