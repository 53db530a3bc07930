/*
 * insert.c
 *		Adding the entry of one new row.
 *
 * This is the path that every INSERT and every non-HOT UPDATE takes for each index: it forms the key, stamps
 * it and hands it to the tree, which returns after the memory node has acknowledged the entry.  Of a
 * unique index the key is locked before, and looked for (unique.c).
 *
 * The first row of a statement goes at once, so that one row costs no more than that.  From the second on entries wait where they may,
 * to go together (insert_batch.c): before anybody may need them (I-P2).
 */
#include "am/base/sherman.h"

#include "nodes/execnodes.h"
#include "utils/memutils.h"

#include "am/access/access.h"
#include "am/access/insert_batch.h"
#include "am/access/insert_entry.h"
#include "am/index/index.h"
#include "am/keys/keys.h"

/* What one executor state keeps for an index between rows; in IndexInfo's context. */
typedef struct InsertState
{
	MemoryContext context;		/* of one row's key, emptied behind each row that used it */
	UniqueChecker unique;
	bool		alone[INSERT_KINDS];	/* entries of this kind may not wait */
	InsertBatch *batch[INSERT_KINDS];	/* that they wait in */
	uint64		serial[INSERT_KINDS];	/* batch[i] is another statement's unless it has this one */
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
 * Whether the statement takes the row back if this index refuses its key.
 */
static bool
is_arbiter(Relation index, IndexUniqueCheck check_unique)
{
	return check_unique == UNIQUE_CHECK_PARTIAL && index->rd_index->indimmediate && insert_batch_speculates();
}

/*
 * How an entry may wait for others of its statement; INSERT_KINDS: it may not.
 */
static InsertKind
entry_kind(Relation index, const bool *isnull, IndexUniqueCheck check_unique, bool index_unchanged)
{
	const bool	speculates = insert_batch_speculates();

	if (check_unique == UNIQUE_CHECK_EXISTING || (check_unique == UNIQUE_CHECK_PARTIAL && !is_arbiter(index, check_unique)))
		return INSERT_KINDS;
	if (check_unique != UNIQUE_CHECK_NO && !unique_by_null(index, isnull))
		return !speculates ? INSERT_UNIQUE : index_unchanged ? INSERT_ANNOUNCED_CHURN : INSERT_ANNOUNCED;
	return index_unchanged ? INSERT_CHURN : INSERT_NEW;
}

/*
 * What an entry of this kind may wait in; NULL: it is to be added at once.
 */
static InsertBatch *
batch_to_wait_in(InsertState *state, Relation index, Relation heap, const ShermanIndex *opened, InsertKind kind)
{
	InsertBatch *batch = state->batch[kind];

	if (unlikely(opened->state != SHERMAN_OK || opened->tree == NULL))
		return NULL;
	if (likely(batch != NULL && batch->serial == state->serial[kind]))
		return batch;
	state->alone[kind] = !insert_batch_allowed(index, heap, opened, kind);
	if (state->alone[kind])
		return NULL;
	batch = insert_batch_take(index, heap, opened, kind);
	state->batch[kind] = batch;
	state->serial[kind] = batch->serial;
	return batch;
}

/*
 * Has the entry wait, to go with others of its statement.  False: it is to be added at once.
 */
static bool
entry_waits(InsertState *state, Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
			InsertKind kind)
{
	ShermanIndex *opened = sherman_index(index);
	InsertBatch *batch = batch_to_wait_in(state, index, heap, opened, kind);
	MemoryContext caller;

	if (batch == NULL)
		return false;
	caller = MemoryContextSwitchTo(state->context);
	sherman_keys_form(opened->keys, index, values, isnull, tid, insert_batch_place(batch));
	MemoryContextSwitchTo(caller);
	insert_batch_keep(batch);
	MemoryContextReset(state->context);
	return true;
}

/*
 * Checks a key, and has its entry wait.  *unique: as sherman_insert() returns.  False: both is to be done at once.
 *
 * With the key locked nobody adds it who was not found; before it is unlocked it is announced.
 */
static bool
entry_waits_checked(InsertState *state, const UniqueRow *row, ShermanIndex *opened, InsertKind kind, bool *unique)
{
	InsertBatch *batch = batch_to_wait_in(state, row->index, row->heap, opened, kind);
	UniqueRow	checked = *row;
	TreeKey    *key;
	bool		waits;

	if (batch == NULL)
		return false;
	key = insert_batch_place(batch);
	sherman_keys_form(opened->keys, row->index, row->values, row->isnull, row->tid, key);
	checked.key = key;
	checked.barred = true;
	*unique = unique_claim(&state->unique, &checked, &opened);
	waits = *unique && insert_batch_announce(batch);
	if (!waits)
		(void) insert_entry(row->index, opened, key, row->heap, row->unchanged);
	unique_release(&state->unique, row->index);
	insert_batch_limit();
	return true;
}

/*
 * Checks a key, and adds its entry or has it wait.  False: perhaps it is not unique.
 */
static bool
insert_unique(InsertState *state, UniqueRow *row, ShermanIndex *opened, InsertKind kind, bool may_wait)
{
	TreeKey		key;
	bool		unique;

	if (insert_kind_is_announced(kind) && may_wait && entry_waits_checked(state, row, opened, kind, &unique))
		return unique;
	sherman_keys_form(opened->keys, row->index, row->values, row->isnull, row->tid, &key);
	row->key = &key;
	return insert_checked(&state->unique, row, opened);
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
	InsertKind	kind = entry_kind(index, isnull, check_unique, index_unchanged);
	ShermanIndex *opened;
	MemoryContext caller;
	TreeKey		key;
	bool		may_wait;
	bool		unique = true;

	if (unlikely(is_first))
		state = insert_state_make(info);
	may_wait = kind != INSERT_KINDS && !state->alone[kind] && (!is_first || !insert_batch_in_statement()) &&
		!insert_batch_was_taken_back(heap, tid);
	if (may_wait && !insert_kind_is_announced(kind) && entry_waits(state, index, values, isnull, tid, heap, kind))
		return true;
	opened = sherman_index_for_insert(index);
	if (opened == NULL)
	{
		sherman_predicate_skipped(index, heap);
		return true;
	}

	caller = MemoryContextSwitchTo(state->context);
	if (check_unique != UNIQUE_CHECK_NO)
	{
		UniqueRow	row = {index, heap, values, isnull, tid, NULL, check_unique, index_unchanged, false};

		unique = insert_unique(state, &row, opened, kind, may_wait);
		if (!unique && is_arbiter(index, check_unique))
			insert_batch_take_back(heap, tid);
	}
	else
	{
		sherman_keys_form(opened->keys, index, values, isnull, tid, &key);
		if (!insert_entry(index, opened, &key, heap, index_unchanged))
			sherman_predicate_skipped(index, heap);
	}
	MemoryContextSwitchTo(caller);

	/* A no-op where the key needed no memory. */
	MemoryContextReset(state->context);
	return unique;
}
