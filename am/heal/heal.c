/*
 * heal.c
 *		Heals an index after a crash: the entries of each unverified leaf are looked up in the table, those without a
 *		row are removed, and the leaf is verified (tree/change/heal.c).
 *
 * An entry has a row if any member of the chain of updates under its TID is not dead to everybody, fits the index's
 * predicate and has the entry's columns. It is kept also if that row is not committed yet, or is another snapshot's.
 * Entries are removed by the rule for removals: first the WAL that makes the rows dead is flushed, and its end
 * recorded at the tree. The leaf's new WAL position is behind that of all rows that were seen.
 *
 * Rows may raise errors when they are looked up: expressions and predicates of the index, values that cannot be read.
 * Such a leaf is left unverified, and the others are healed.
 *
 * An expression that is not truly immutable may give another value for a row than the one that its entry was made with.  Such an
 * entry is never taken away: its leaf is left unverified, too.  It looks like the entry of a lost row whose place another row has
 * taken, but that one has an entry of its own.
 *
 * All of it runs as the table's owner (owner.c): expressions, predicates, and what operator classes call.
 */
#include "am/base/sherman.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "utils/fmgrprotos.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/base/compat.h"
#include "am/base/owner.h"
#include "am/heal/heal.h"
#include "am/heal/unverified.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

PG_FUNCTION_INFO_V1(sherman_heal_index);

/* One part of a walk over an index. */
typedef struct Healer
{
	Healing    *healing;
	Relation	heap;
	Relation	index;
	ShermanIndex *opened;
	TreeScan   *scan;
	MemoryContext context;		/* of one leaf */
	TreeKey    *keys;			/* of one leaf: TREE_BATCH_MAX */
	TreeDead	gone[TREE_BATCH_MAX];
	int			gone_count;
	bool		changed;		/* an entry's row has another value of an expression, or of the predicate, now */
} Healer;

/*
 * Reads the keys of the leaf's entries.  False: not all could be read.  The leaf has changed, or it has taken up the one behind it
 * since we were there (tree/change/merge.c), and only that one's entries are shown.
 */
static bool
read_keys(Healer *healer, const TreeBatch *batch)
{
	if (!batch->whole)
		return false;
	for (int i = 0; i < batch->count; i++)
	{
		TreeStatus	status = sherman_batch_key(healer->opened, healer->index, healer->scan, batch, i, &healer->keys[i]);

		if (status == TREE_NOT_FOUND)
			return false;
		if (status != TREE_OK)
			sherman_report_failure(status, healer->index);
	}
	return true;
}

/*
 * Collects the entries that have no row.
 */
static void
look_up_keys(Healer *healer, const TreeBatch *batch)
{
	UnverifiedRows *rows = unverified_rows_make(healer->heap, healer->index, healer->opened, healer->context);
	SnapshotData any;

	InitNonVacuumableSnapshot(any, GlobalVisTestFor(healer->heap));
	for (int i = 0; i < batch->count; i++)
	{
		const TreeKey *key = &healer->keys[i];
		UnverifiedFinding finding = unverified_row_find(rows, key, &any);

		if (finding == UNVERIFIED_NO_ROW)
			healer->gone[healer->gone_count++] = (TreeDead) {key->block, key->offset, batch->entries[i].cell};
		else if (finding != UNVERIFIED_ROW)
			healer->changed = true;
	}
	unverified_rows_end(rows);
}

/*
 * An entry's row gives something else now: says so once.
 */
static void
note_changed(Healer *healer)
{
	Healing    *healing = healer->healing;

	if (!healing->complained)
		ereport(healing->complaint,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("entries of index \"%s\" are left unverified, as its rows give other values now than when they were added",
						RelationGetRelationName(healer->index)),
				 errdetail("A function of its expressions or its predicate is not immutable."),
				 sherman_hint_rebuild(healer->index)));
	healing->complained = true;
}

/*
 * A row has raised an error: says so once, unless healing is to end.
 */
static void
note_error(Healer *healer, ErrorData *error)
{
	Healing    *healing = healer->healing;

	if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
		ReThrowError(error);
	if (!healing->complained)
		ereport(healing->complaint,
				(errcode(error->sqlerrcode),
				 errmsg("entries of index \"%s\" are left unverified, as their rows cannot be looked up",
						RelationGetRelationName(healer->index)),
				 errdetail("%s", error->message)));
	healing->complained = true;
}

/*
 * look_up_keys() in a subtransaction: it runs what users have written.  False: it has raised an error.
 */
static bool
look_up_guarded(Healer *healer, const TreeBatch *batch)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(healer->context);
	PG_TRY();
	{
		look_up_keys(healer, batch);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(healer->context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(caller);
	CurrentResourceOwner = owner;
	if (error != NULL)
		note_error(healer, error);
	MemoryContextReset(healer->context);
	return error == NULL;
}

/*
 * Collects the entries of the leaf that have no row.  False: not all could be looked up.
 */
static bool
look_up_entries(Healer *healer, const TreeBatch *batch)
{
	healer->gone_count = 0;
	healer->changed = false;
	if (!read_keys(healer, batch))
		return false;
	if (batch->unverified && !look_up_guarded(healer, batch))
		return false;
	if (healer->changed)
		note_changed(healer);
	return !healer->changed;
}

static void
heal_leaf(Healer *healer, const TreeBatch *batch)
{
	Healing    *healing = healer->healing;
	bool		healed = false;
	int			attempts = 0;
	TreeWalPosition	wal;
	TreeStatus	status;

	if (look_up_entries(healer, batch))
	{
		sherman_wal_position_now(&wal);
		if (healer->gone_count > 0)
			sherman_prove_removal(healer->index, healer->opened, compat_wal_end());
		do
			status = tree_heal_leaf(healer->opened->tree, &batch->leaf, healer->gone, healer->gone_count, &wal, &healed);
		while (sherman_change_again(healer->opened, healer->index, status, &attempts));
		if (status != TREE_OK)
			sherman_report_failure(status, healer->index);
	}
	healing->left += !healed;
	healing->healed += healed;
	healing->removed += healed ? healer->gone_count : 0;
	if (VacuumCostActive && healed)
		VacuumCostBalance += VacuumCostPageDirty;
}

/*
 * Looks at the leaves that the scan has taken.  Holds back as VACUUM does, where it is to.
 */
static void
heal_taken(Healer *healer)
{
	const TreeBatch *batch;
	TreeStatus	status;

	while ((status = sherman_scan_next(healer->opened, healer->index, healer->scan, &batch)) == TREE_OK)
	{
		compat_delay_point();
		sherman_index_recheck(healer->opened, healer->index);
		if (VacuumCostActive)
			VacuumCostBalance += VacuumCostPageMiss;
		healer->healing->leaves++;
		if (batch->unverified || batch->marks_void)
			heal_leaf(healer, batch);
		heal_show_counts(healer->healing, 0);
	}
	if (status != TREE_END)
		sherman_report_failure(status, healer->index);
}

/*
 * Goes on from leaf to leaf.
 */
static void
walk(Healer *healer, int milliseconds)
{
	Healing    *healing = healer->healing;
	TimestampTz began = GetCurrentTimestamp();
	bool		begun = healing->tree != 0;

	healing->tree = healer->opened->meta.tree;
	tree_scan_unverified(healer->scan, true);
	do
	{
		int			attempts = 0;
		TreeScanPosition behind;
		TreeStatus	status;

		do
		{
			status = begun ? tree_scan_resume(healer->scan, TREE_FORWARD, NULL, &healing->behind) :
				tree_scan_seek(healer->scan, TREE_FORWARD, NULL, NULL);
			if (status == TREE_OK)
				status = tree_scan_take(healer->scan, &behind);
		} while (sherman_try_again(healer->opened, healer->index, status, &attempts));
		if (status != TREE_OK)
			sherman_report_failure(status, healer->index);
		heal_taken(healer);
		begun = true;
		healing->behind = behind;
		healing->ended = behind.ended;
	} while (!healing->ended &&
			 (milliseconds == 0 || !TimestampDifferenceExceeds(began, GetCurrentTimestamp(), milliseconds)));
}

/*
 * No leaf is unverified any more: says so in the tree's record, once the same is true of its replica.
 */
static void
note_healed(Healer *healer)
{
	TreeRecord	record = {.flags = TREE_RECORD_HEALED};
	TreeReplicaCounts counts;

	sherman_replicas_repair(healer->index, healer->opened, &counts);
	sherman_record_note(healer->opened, healer->index, &record);
	sherman_trees_healed(record.tree);
	sherman_state_changed();
	/* Plans were made without what needs a verified index. */
	CacheInvalidateRelcache(healer->heap);
	ConditionVariableBroadcast(&sherman_shared->changed);
}

/*
 * Walks, with what that needs.
 */
static void
heal_opened(Healer *healer, int milliseconds)
{
	Healing    *healing = healer->healing;
	TreeStatistics statistics;
	TreeStatus	status = sherman_take_scan(healer->opened, &healer->scan);

	if (status != TREE_OK)
		sherman_report_failure(status, healer->index);
	healer->context = AllocSetContextCreate(CurrentMemoryContext, "sherman healing", ALLOCSET_DEFAULT_SIZES);
	healer->keys = palloc(sizeof(TreeKey) * TREE_BATCH_MAX);
	heal_show_counts(healing, sherman_size(healer->index, &statistics) ? statistics.leaves : 0);
	heal_show_phase(healing, SHERMAN_HEAL_LEAVES);
	walk(healer, milliseconds);
	heal_show_phase(healing, SHERMAN_HEAL_ENDING);
	pfree(healer->keys);
	MemoryContextDelete(healer->context);
	sherman_return_scan(healer->opened, healer->scan);
	if (healing->ended && healing->left == 0)
		note_healed(healer);
}

/*
 * No leaf is unverified, but a lost chain may have left the tree and its replica different.
 */
static void
compare_replicas(Healer *healer)
{
	TreeReplicaCounts counts;

	sherman_replicas_repair(healer->index, healer->opened, &counts);
	healer->healing->ended = true;
	ereport(LOG,
			(errmsg("index \"%s\": " UINT64_FORMAT " nodes compared with their copies, " UINT64_FORMAT " copies written anew",
					RelationGetRelationName(healer->index), counts.nodes, counts.written)));
}

/*
 * heal_part(), as the table's owner.
 */
static void
heal_as_owner(Healing *healing, Relation heap, Relation index, int milliseconds)
{
	Healer		healer = {.healing = healing,.heap = heap,.index = index};

	healer.opened = sherman_index_for_vacuum(index);
	if (healer.opened == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is broken and cannot be healed", RelationGetRelationName(index)),
				 sherman_hint_rebuild(index)));
	/* It may have been rebuilt between two parts. */
	if (healer.opened->tree == NULL || (healing->tree != 0 && healing->tree != healer.opened->meta.tree))
		healing->ended = true;
	else if (healer.opened->meta.replica != 0 && healing->tree == 0 && sherman_replicas_alone_doubtful(&healer.opened->meta))
		compare_replicas(&healer);
	else
		heal_opened(&healer, milliseconds);
}

void
heal_part(Healing *healing, Relation heap, Relation index, int milliseconds)
{
	OwnerCaller caller;

	owner_begin(heap, &caller);
	heal_as_owner(healing, heap, index, milliseconds);
	owner_end(&caller);
}

int64
heal_whole(Relation heap, Relation index)
{
	Healing		healing = {.complaint = WARNING};

	heal_show(&healing, RelationGetRelid(index));
	PG_TRY();
	{
		heal_part(&healing, heap, index, 0);
	}
	PG_FINALLY();
	{
		heal_show_no_more(&healing);
	}
	PG_END_TRY();
	return healing.left;
}

/*
 * sherman_heal(index regclass) returns bigint: heals all leaves of an index. Returns the number of leaves that are
 * still unverified, as other processes were changing them or rows of them raised errors: 0, or call it again. For the
 * index's owner.
 */
Datum
sherman_heal_index(PG_FUNCTION_ARGS)
{
	Relation	heap;
	Relation	index;
	int64		left;

	sherman_open_with_table(PG_GETARG_OID(0), RowExclusiveLock, &heap, &index);
	left = heal_whole(heap, index);
	index_close(index, NoLock);
	table_close(heap, NoLock);
	PG_RETURN_INT64(left);
}
