/*
 * unique.c
 *		Uniqueness: whether a row's key may be added to a unique index.
 *
 * A heap has one primary, so all rows of an index are added by one instance, and a lock of that instance is
 * enough to let only one row with a key be checked and added at a time: the key lock,
 * a heavyweight lock whose name is a hash of the key (key_names.c, locks.c).  Waits for it can be canceled, deadlocks are found, an
 * error releases it.  It is never held while a transaction is waited for.
 *
 * Most keys are new.  So the entry is first added on condition that its leaf shows no other with its normalized
 * key (tree_insert_alone()), which costs what an insert costs, and takes no key lock (key_parts.c).  Only if there is
 * one, of an equal key or of one that begins like it, a check goes before the insert.
 *
 * Under the key lock the entries with this key are read, without any lock at the memory nodes, and their rows
 * looked at as nbtree does.  An entry may be removed and its TID be given to another row between the two:
 * VACUUM frees a TID only after every index has lost its entry.  So what was seen in the heap counts only if
 * the entry is in the tree still, when it is read again afterwards: then the TID was not free in between.  (It
 * cannot have left and come back: nobody else adds an entry with this key meanwhile.)  If it is gone,
 * everything is looked at again.  Where no row is found no second look is needed: an entry is only removed
 * when its row is dead to all, and then there was no conflict either.
 */
#include "am/base/sherman.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

#include "am/access/access.h"
#include "am/access/unique.h"
#include "am/heal/heal.h"
#include "am/heal/unverified.h"
#include "am/index/announced.h"
#include "am/index/index.h"
#include "am/keys/keys.h"
#include "am/nodes/nodes.h"

/*
 * An attempt to add an entry alone that fails costs two round trips: each takes so many that succeed to make up
 * for it, or as many inserts without an attempt.
 */
#define ALONE_LOSS 8

/* What was found among the rows with this key. */
typedef enum Finding
{
	FOUND_NOTHING,
	FOUND_MAYBE,				/* UNIQUE_CHECK_PARTIAL: a row that is not dead for sure */
	FOUND_PENDING,				/* a transaction or a speculative insertion decides */
	FOUND_DOUBT,				/* whether it is the entry's row the healer decides */
	FOUND_DUPLICATE
} Finding;

/* One look at the rows with a key. */
typedef struct UniqueLook
{
	const UniqueRow *row;
	ShermanIndex *opened;
	TreeScan   *scan;
	UnverifiedRows *rows;			/* NULL: no unverified leaf was met */
	TreeBound	low;
	TreeBound	high;
	uint32		block;			/* of the entry whose row was found */
	uint16		offset;
	bool		self_seen;		/* the row's own entry was met */
	TransactionId waited;		/* FOUND_PENDING: by whom it is decided */
	uint32		speculative;	/* its token, or 0 */
} UniqueLook;

/* ---- the key lock ---- */

static KeyParts
key_parts(const UniqueRow *row, const ShermanIndex *opened)
{
	return (KeyParts) {opened->meta.tree, RelationGetRelid(row->index), opened->keys->format.norm_bytes};
}

/*
 * Takes the key lock, and waits for sessions that add the key without it.
 */
static void
lock_key(UniqueChecker *checker, const UniqueRow *row, const ShermanIndex *opened)
{
	const KeyParts parts = key_parts(row, opened);

	key_name(checker, row, opened->keys);
	sherman_lock_key(row->index, checker->lock, checker->has_second ? &checker->second : NULL);
	checker->locked = true;
	checker->part = key_part(&parts, row->key);
	key_part_check(checker->part);
}

void
unique_release(UniqueChecker *checker, Relation index)
{
	if (!checker->locked)
		return;
	key_part_check_end(checker->part);
	sherman_unlock_key(index, checker->lock, checker->has_second ? &checker->second : NULL);
	checker->locked = false;
}

/* ---- looking at entries and rows ---- */

/*
 * Begins a look: between its bounds lie all entries whose key columns are equal to the row's.
 */
static void
begin_look(UniqueLook *look, const UniqueRow *row, ShermanIndex *opened)
{
	TreeStatus	status;

	memset(look, 0, sizeof(*look));
	look->row = row;
	look->opened = opened;
	status = sherman_take_scan(opened, &look->scan);
	if (status != TREE_OK)
		sherman_report_failure(status, row->index);
	keys_entry_bound(opened->keys, row->key, &look->low);
	look->low.norm_exact = opened->keys->whole == opened->keys->columns;
	look->high = look->low;
	look->low.side = -1;
	look->high.side = 1;
}

static void
end_look(UniqueLook *look)
{
	if (look->rows != NULL)
		unverified_rows_end(look->rows);
	sherman_return_scan(look->opened, look->scan);
}

static void
seek(UniqueLook *look)
{
	TreeStatus	status = tree_scan_seek(look->scan, TREE_FORWARD, &look->low, &look->high);

	if (status != TREE_OK)
		sherman_report_failure(status, look->row->index);
}

/* The next leaf's entries. NULL: there are no more. */
static const TreeBatch *
next_batch(UniqueLook *look)
{
	const TreeBatch *batch;
	TreeStatus	status;

	CHECK_FOR_INTERRUPTS();
	status = sherman_scan_next(look->opened, look->row->index, look->scan, &batch);
	if (status == TREE_OK)
		return batch;
	if (status != TREE_END)
		sherman_report_failure(status, look->row->index);
	return NULL;
}

/*
 * What the row of an entry of an unverified leaf, which may be in the way, is to it.
 */
static UnverifiedFinding
find_row(UniqueLook *look, const TreeBatch *batch, int i)
{
	SnapshotData dirty;
	TreeKey		key;
	TreeStatus	status = sherman_batch_key(look->opened, look->row->index, look->scan, batch, i, &key);

	if (status == TREE_NOT_FOUND)
		return UNVERIFIED_NO_ROW;
	if (status != TREE_OK)
		sherman_report_failure(status, look->row->index);
	if (look->rows == NULL)
		look->rows = unverified_rows_make(look->row->heap, look->row->index, look->opened, CurrentMemoryContext);
	InitDirtySnapshot(dirty);
	return unverified_row_find(look->rows, &key, &dirty);
}

/*
 * Looks at the row of an entry.
 */
static Finding
look_at_row(UniqueLook *look, ItemPointer tid)
{
	const UniqueRow *row = look->row;
	SnapshotData dirty;
	ItemPointerData own = *row->tid;

	InitDirtySnapshot(dirty);
	if (!table_index_fetch_tuple_check(row->heap, tid, &dirty, NULL))
		return FOUND_NOTHING;
	if (row->check == UNIQUE_CHECK_PARTIAL)
		return FOUND_MAYBE;
	look->waited = TransactionIdIsValid(dirty.xmin) ? dirty.xmin : dirty.xmax;
	look->speculative = dirty.speculativeToken;
	if (TransactionIdIsValid(look->waited))
		return FOUND_PENDING;

	/*
	 * CREATE INDEX CONCURRENTLY may add a row that has been deleted meanwhile: no error then.  What is added
	 * is the root of a HOT chain, any member of which counts: a live one has this key.
	 */
	if (!table_index_fetch_tuple_check(row->heap, &own, SnapshotSelf, NULL))
		return FOUND_NOTHING;
	return FOUND_DUPLICATE;
}

/*
 * Looks at the rows whose entries wait: their keys are announced.  A row that was found is the announced one if its writer is in progress
 * still: so it was all the time, and the TID no other row's.  If it is not, the row is dead, or its entry is in the tree, where we look next.
 */
static Finding
look_at_announced(UniqueLook *look)
{
	AnnouncedRow rows[ANNOUNCED_ROWS];
	int			count = announced_find(look->opened->meta.tree, look->row->key, rows);

	for (int i = 0; i < count; i++)
	{
		ItemPointerData tid;
		Finding		finding;

		ItemPointerSet(&tid, rows[i].block, rows[i].offset);
		if (ItemPointerEquals(&tid, look->row->tid))
			continue;
		finding = look_at_row(look, &tid);
		if (finding != FOUND_NOTHING && TransactionIdIsInProgress(rows[i].writer))
			return finding;
	}
	return FOUND_NOTHING;
}

/*
 * Looks at the rows of all entries with this key until one is in the way.
 */
static Finding
look_at_entries(UniqueLook *look)
{
	const TreeBatch *batch;

	look->self_seen = false;
	seek(look);
	while ((batch = next_batch(look)) != NULL)
	{
		for (int i = 0; i < batch->count; i++)
		{
			UnverifiedFinding in_doubt;
			ItemPointerData tid;
			Finding		finding;

			look->block = batch->entries[i].block;
			look->offset = batch->entries[i].offset;
			ItemPointerSet(&tid, look->block, look->offset);
			/* A row is no duplicate of itself: checked again, or added before by an attempt that failed. */
			if (ItemPointerEquals(&tid, look->row->tid))
			{
				look->self_seen = true;
				continue;
			}
			finding = FOUND_NOTHING;
			if (likely(!batch->unverified) || (in_doubt = find_row(look, batch, i)) == UNVERIFIED_ROW)
				finding = look_at_row(look, &tid);
			else if (in_doubt == UNVERIFIED_UNKNOWN)
				finding = look->row->check == UNIQUE_CHECK_PARTIAL ? FOUND_MAYBE : FOUND_DOUBT;
			if (finding != FOUND_NOTHING)
				return finding;
		}
	}
	return FOUND_NOTHING;
}

/*
 * Whether the entry whose row was found is still in the tree.
 */
static bool
still_there(UniqueLook *look)
{
	const TreeBatch *batch;

	seek(look);
	while ((batch = next_batch(look)) != NULL)
	{
		for (int i = 0; i < batch->count; i++)
		{
			if (batch->entries[i].block == look->block && batch->entries[i].offset == look->offset)
				return true;
		}
	}
	return false;
}

/*
 * The finding that counts: of an entry that was there all the time. FOUND_MAYBE may be wrong: the caller checks
 * again.
 */
static Finding
find_conflict(UniqueLook *look)
{
	Finding		finding = look_at_announced(look);

	if (finding != FOUND_NOTHING)
		return finding;
	for (;;)
	{
		finding = look_at_entries(look);
		if (finding == FOUND_NOTHING || finding == FOUND_MAYBE || still_there(look))
			return finding;
	}
}

/*
 * Raises 40001 if another transaction has read that there was no such row: see sherman_predicate_refused().
 */
static void
check_readers(const UniqueRow *row, ShermanIndex *opened)
{
	UniqueLook	look;

	begin_look(&look, row, opened);
	sherman_predicate_refused(row->index, look.scan);
	seek(&look);
	(void) next_batch(&look);
	end_look(&look);
}

/* ---- errors and waits: nothing is locked ---- */

static void
report_duplicate(const UniqueRow *row)
{
	char	   *key = BuildIndexValueDescription(row->index, row->values, row->isnull);

	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"",
					RelationGetRelationName(row->index)),
			 key ? errdetail("Key %s already exists.", key) : 0,
			 errtableconstraint(row->heap, RelationGetRelationName(row->index))));
}

static void
report_not_found_again(const UniqueRow *row)
{
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("failed to re-find tuple within index \"%s\"", RelationGetRelationName(row->index)),
			 errhint("This may be because of a non-immutable index expression."),
			 errtableconstraint(row->heap, RelationGetRelationName(row->index))));
}

static void
wait_for_decision(const UniqueLook *look)
{
	if (look->speculative != 0)
		SpeculativeInsertionWait(look->waited, look->speculative);
	else
		XactLockTableWait(look->waited, look->row->index, look->row->tid, XLTW_InsertIndex);
}

/*
 * Adds the entry if its leaf shows that the key is new, and no session is checking such a key. Where that has failed
 * often, keys have common beginnings or come again: it is not tried then. The index may be another one afterwards.
 */
static bool
add_alone(const UniqueRow *row, ShermanIndex **index)
{
	ShermanIndex *opened = *index;
	KeyParts	parts = key_parts(row, opened);
	TreePermit	permit = {key_part_add, key_part_added, &parts};
	int			attempts = 0;
	TreeWalPosition	wal;
	TreeStatus	status;
	bool		hit;
	bool		alone;

	if (row->check == UNIQUE_CHECK_EXISTING || row->unchanged || row->barred)
		return false;
	if (opened->alone_credit < 0)
	{
		opened->alone_credit++;
		return false;
	}
	sherman_wal_position(row->index, &wal);
	sherman_delete_prepare(opened, row->heap, false);
	status = tree_insert_alone(opened->tree, row->key, &wal, &permit, &hit, &alone);
	if (unlikely(status != TREE_OK))
	{
		if (!sherman_try_again(opened, row->index, status, &attempts))
			sherman_report_failure(status, row->index);
		/* It may be there: that is found out with the key locked. */
		*index = sherman_index_for_insert(row->index);
		return false;
	}
	if (alone)
		if (IsolationIsSerializable())
			sherman_predicate_inserted(row->index, opened);
	opened->alone_credit = alone ? Min(opened->alone_credit + 1, ALONE_LOSS) : opened->alone_credit - ALONE_LOSS;
	return alone;
}

bool
unique_by_null(Relation index, const bool *isnull)
{
	if (index->rd_index->indnullsnotdistinct)
		return false;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (isnull[i])
			return true;
	}
	return false;
}

bool
unique_claim(UniqueChecker *checker, const UniqueRow *row, ShermanIndex **opened)
{
	/* What an error left of the row before has gone with its transaction. */
	checker->locked = false;
	checker->added = false;
	if (unique_by_null(row->index, row->isnull))
		return true;

	checker->added = add_alone(row, opened);
	if (checker->added)
		return true;
	lock_key(checker, row, *opened);
	for (;;)
	{
		UniqueLook	look;
		Finding		finding;

		begin_look(&look, row, *opened);
		finding = find_conflict(&look);
		end_look(&look);
		if (finding == FOUND_NOTHING && row->check == UNIQUE_CHECK_EXISTING && !look.self_seen)
			report_not_found_again(row);
		if (finding == FOUND_NOTHING || finding == FOUND_MAYBE)
			return finding == FOUND_NOTHING;

		unique_release(checker, row->index);
		if (finding == FOUND_DUPLICATE)
		{
			if (IsolationIsSerializable())
				check_readers(row, *opened);
			report_duplicate(row);
		}
		if (finding == FOUND_DOUBT)
			sherman_heal_wait(row->index);
		else
			wait_for_decision(&look);
		/* The index may have become broken, or unreachable, in the meantime. */
		*opened = sherman_index_for_insert(row->index);
		lock_key(checker, row, *opened);
	}
}
