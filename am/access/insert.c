/*
 * insert.c
 *		Adding the entry of one new row.
 *
 * This is the path that every INSERT and every non-HOT UPDATE takes for each index: it forms the key, stamps
 * it and hands it to the tree, which returns after the memory node has acknowledged the entry (I-P2).  Of a
 * unique index the key is locked before, and looked for (unique.c).
 */
#include "am/base/sherman.h"

#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/memutils.h"

#include "am/access/access.h"
#include "am/access/unique.h"
#include "am/index/index.h"
#include "am/keys/keys.h"
#include "am/nodes/nodes.h"

/* What one executor state keeps for an index between rows; in IndexInfo's context. */
typedef struct InsertState
{
	MemoryContext context;		/* of one row's key, emptied behind each row that used it */
	UniqueChecker unique;
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
	TreeStamp	stamp;
	TreeStatus	status;
	bool		hit;

	for (;;)
	{
		sherman_delete_prepare(opened, heap, index_unchanged);
		sherman_stamp(index, &stamp);
		status = tree_insert(opened->tree, key, &stamp, &hit);
		if (likely(status == TREE_OK))
			break;
		if (!sherman_try_again(opened, index, status, &attempts))
			sherman_report_failure(status, index);
		opened = sherman_index_for_insert(index);
		if (opened == NULL)
			return false;
	}
	sherman_predicate_inserted(index, opened);
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
	ShermanIndex *opened = sherman_index_for_insert(index);
	InsertState *state = info->ii_AmCache;
	MemoryContext caller;
	TreeKey		key;
	bool		unique = true;

	if (opened == NULL)
	{
		sherman_predicate_skipped(index, heap);
		return true;
	}
	if (unlikely(state == NULL))
		state = insert_state_make(info);

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
