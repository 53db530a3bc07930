/*
 * bottomup_delete.c
 *		Room in a full leaf: entries of dead rows go before the leaf is split (what btree calls simple and bottom-up
 *		deletion).
 *
 * The tree asks when an insert finds its leaf full. Entries that scans have marked as dead (kill.c) go once the WAL
 * up to their mark is durable. If the insert is for a new version of a row whose key did not change, which is how old
 * versions pile up, the table is asked which of the leaf's entries no snapshot can see any more. Nothing is locked at
 * the tree meanwhile; it uses the answer only if the leaf still has the generation that was shown
 * (tree/change/insert.c).
 *
 * The table complains of TIDs that are free.  So VACUUM is kept from giving any free, by the scan barrier, and then the
 * leaf is looked at once more: what it has now VACUUM has still to remove, and to wait for us afterwards.
 *
 * Before anything goes the WAL that makes it dead is flushed, and the removal noted at the tree (I-P4).
 */
#include "am/base/sherman.h"

#include "access/tableam.h"
#include "miscadmin.h"
#include "storage/proc.h"

#include "am/access/access.h"
#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"

/* The part of a leaf's entries that is worth looking for: less, and the leaf is full again at once. */
#define WANTED_PART 4

/* Up to where the WAL holds the ends of all transactions below an xmin of this process. */
static struct
{
	TransactionId xmin;
	XLogRecPtr	end;
}			evidence;

/*
 * The end of the WAL that proves a row dead that the table says is dead to everybody: the transaction that deleted it
 * precedes our xmin, and so had ended when that was set. One flush is enough for all leaves that a statement fills.
 */
static XLogRecPtr
evidence_end(void)
{
	TransactionId xmin = MyProc->xmin;

	if (!TransactionIdIsValid(xmin) || xmin != evidence.xmin)
	{
		evidence.end = compat_wal_end();
		evidence.xmin = xmin;
	}
	return evidence.end;
}

/*
 * Whether the table is asked about an entry: about versions of one row.  `probe`: not about the last one, which is probably
 * alive.
 */
static bool
is_asked_about(const TreeFullLeaf *leaf, int slot, bool probe)
{
	if (!leaf->entries[slot].live)
		return false;
	if (probe)
		return leaf->entries[slot].duplicate && !leaf->entries[slot].newest;
	return leaf->entries[slot].duplicate || leaf->entries[slot].remove;
}

/*
 * Asks the table about entries that are not marked; flags those that may go, and returns the number of new ones.  `probe`: as
 * btree's bottom-up deletion does: the table looks at a few of its pages, and gives up at the first where nothing may go.  That is
 * a page of old versions, as it is not asked about others: a leaf has so few entries of each page that one with the last versions
 * would come first as well.  Else on whatever pages; it wants to hear then of one at least that may go.
 */
static int
ask_table(const ShermanIndex *index, TreeFullLeaf *leaf, bool probe)
{
	TM_IndexDelete tids[TREE_FULL_LEAF_MAX];
	TM_IndexStatus status[TREE_FULL_LEAF_MAX];
	TM_IndexDeleteOp op = {
		.irel = index->relation,.bottomup = probe,.deltids = tids,.status = status
	};
	int			cell_bytes = index->meta.cell_bytes;
	int			removed = 0;

	op.bottomupfreespace = probe ? leaf->count / WANTED_PART * cell_bytes : 0;
	for (int slot = 0; slot < leaf->count; slot++)
	{
		bool		known = leaf->entries[slot].remove;

		if (!is_asked_about(leaf, slot, probe))
			continue;
		Assert(!probe || !known);
		ItemPointerSet(&tids[op.ndeltids].tid, leaf->entries[slot].block, leaf->entries[slot].offset);
		tids[op.ndeltids].id = (int16) op.ndeltids;
		status[op.ndeltids].idxoffnum = (OffsetNumber) (slot + 1);
		status[op.ndeltids].knowndeletable = known;
		status[op.ndeltids].promising = probe;
		status[op.ndeltids].freespace = (int16) (probe ? cell_bytes : 0);
		op.ndeltids++;
	}
	if (op.ndeltids == 0)
		return 0;
	(void) table_index_delete_tuples(index->heap, &op);
	for (int i = 0; i < op.ndeltids; i++)
	{
		const TM_IndexStatus *of = &status[tids[i].id];
		bool	   *remove = &leaf->entries[of->idxoffnum - 1].remove;

		removed += of->knowndeletable && !*remove;
		*remove = of->knowndeletable;
	}
	return removed;
}

/*
 * The same under the scan barrier, which is not waited for: behind it VACUUM waits.
 */
static int
ask_table_safely(const ShermanIndex *index, TreeFullLeaf *leaf)
{
	uint32		half;
	int			removed = 0;

	if (!sherman_scan_barrier_try(index->relation, &half))
		return 0;
	if (tree_leaf_unchanged(index->tree, &leaf->leaf))
	{
		removed = ask_table(index, leaf, true);
		/* Leaves are small, and so are a few pages' shares of one: where there are dead rows all are looked for. */
		if (removed > 0)
			removed += ask_table(index, leaf, false);
	}
	sherman_scan_barrier_leave(index->relation, half);
	return removed;
}

/*
 * TreeFullHook.
 */
static bool
delete_from_full_leaf(void *argument, TreeFullLeaf *leaf)
{
	ShermanIndex *index = argument;
	TransactionId deleted = InvalidTransactionId;
	int			removed = 0;
	XLogRecPtr	end;

	CHECK_FOR_INTERRUPTS();
	if (index->churn && leaf->duplicates > 0)
		removed = ask_table_safely(index, leaf);
	if (removed == 0 && leaf->marked == 0)
		return false;
	/*
	 * For standbys it is noted up to which transaction there are deletions among those of the rows that may go.  The table says that, but not of
	 * rows that were pruned before: nobody can have pruned one that was deleted by a transaction which our xmin holds back.
	 */
	if (removed > 0 && sherman_standbys_may_read(index->relation))
	{
		deleted = sherman_youngest_pruned();
		sherman_note_dead(deleted);
	}
	end = evidence_end();
	/* A mark that another session made may be younger than what is evidence for us, which proves what lies before its end. */
	if (leaf->marked > 0 && leaf->dead_epoch == sherman_epoch() && leaf->dead_lsn >= end)
		end = compat_wal_end();
	if (!sherman_removal_is_proven(index->relation, index, end, deleted))
		sherman_prove_removal(index->relation, index, end);
	return true;
}

void
sherman_delete_install(ShermanIndex *index)
{
	tree_on_full(index->tree, delete_from_full_leaf, index, index->churn);
	index->full_told = true;
	index->full_churn = index->churn;
}
