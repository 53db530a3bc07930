/*
 * removal.c
 *		Before entries are removed: that the WAL which makes their rows dead is durable, and that standbys which read the index
 *		(am/standby/) can tell what was removed.
 *
 * The tree's record says up to which WAL position there is evidence for removals (removal_epoch, removal_lsn), before anything is
 * removed.  A crash that has lost a part of that WAL makes the tree unusable.  A standby that has not replayed so far does not believe
 * what it has read of the tree.  One that has replayed it has ended all queries that see what was removed: VACUUM's rows by the
 * records of the table that it pruned, as for any index; the others, which go without a trace in the table, by a record that is written
 * here for them.  For that each process notes how young the transactions are whose deletions are taken for dead.
 */
#include "am/base/sherman.h"

#include "access/transam.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"

/* Up to which transaction this process has told standbys of deletions in its database. */
static uint64 told = 0;

bool
sherman_standbys_may_read(Relation index)
{
	return !sherman_embedded && XLogStandbyInfoActive() && RelationNeedsWAL(index);
}

static pg_atomic_uint64 *
horizon_of_database(void)
{
	return &sherman_shared->dead_horizon[MyDatabaseId % SHERMAN_HORIZONS];
}

uint64
sherman_full_xid(TransactionId xid)
{
	FullTransactionId next = ReadNextFullTransactionId();
	uint32		epoch = EpochFromFullTransactionId(next);

	return U64FromFullTransactionId(FullTransactionIdFromEpochAndXid(xid > XidFromFullTransactionId(next) ? epoch - 1 : epoch, xid));
}

void
sherman_note_dead(TransactionId deleted)
{
	pg_atomic_uint64 *horizon = horizon_of_database();
	uint64		noted = pg_atomic_read_u64(horizon);
	uint64		mine;

	if (!TransactionIdIsNormal(deleted))
		return;
	mine = sherman_full_xid(deleted);
	while (noted < mine && !pg_atomic_compare_exchange_u64(horizon, &noted, mine))
		;
}

TransactionId
sherman_youngest_pruned(void)
{
	TransactionId bound = TransactionIdIsNormal(MyProc->xmin) ? MyProc->xmin : ReadNextTransactionId();
	uint64		kept;

	pg_read_barrier();
	kept = pg_atomic_read_u64(&sherman_shared->prune_bound);
	if (kept != 0 && kept < sherman_full_xid(bound))
		bound = XidFromFullTransactionId(FullTransactionIdFromU64(kept));
	TransactionIdRetreat(bound);
	return bound;
}

/*
 * What this process takes for dead goes by horizons that it has found at some time, and which do not go back, while those that are found now
 * may be older: a standby has come whose queries see more.  So it is asked which is the youngest transaction whose deletions it would
 * take for dead.
 */
void
sherman_note_dead_now(Relation table)
{
	GlobalVisState *visible = GlobalVisTestFor(table);
	TransactionId low = GetOldestNonRemovableTransactionId(table);
	TransactionId high = ReadNextTransactionId();

	TransactionIdRetreat(low);
	while ((int32) (high - low) > 1)
	{
		TransactionId middle = low + (high - low) / 2;

		/* Behind the last transaction comes the first normal one. */
		if (!TransactionIdIsNormal(middle))
			middle = FirstNormalTransactionId;
		if (!TransactionIdPrecedes(middle, high))
			break;
		if (compat_is_removable(visible, middle))
			low = middle;
		else
			high = middle;
	}
	sherman_note_dead(low);
}

/* The youngest transaction whose deletions anybody has taken for dead. */
static uint64
noted_horizon(void)
{
	/* Of marks that were made in an earlier run nobody has noted anything: they are no younger than this one. */
	return Max(pg_atomic_read_u64(horizon_of_database()), sherman_shared->began_at);
}

/*
 * Tells standbys what has been taken for dead in this database, unless this process has.  Returns where the WAL ends that says so: whatever is
 * marked with a position before that end was noted before, and is told of.
 */
static XLogRecPtr
tell_standbys(Relation relation)
{
	XLogRecPtr	end;

	do
	{
		uint64		horizon = noted_horizon();

		CHECK_FOR_INTERRUPTS();
		if (horizon > told)
		{
			(void) compat_log_conflict(relation, FullTransactionIdFromU64(horizon));
			told = horizon;
		}
		end = compat_wal_end();
		/* Between the two somebody may have noted a younger one, and marked entries with a position before the end. */
		pg_memory_barrier();
	} while (noted_horizon() > told);
	return end;
}

/*
 * Before which transaction all rows were deleted whose entries are removed.  Which these are is known by now: some were pruned before, by the
 * horizon of whatever process, which leaves nothing to tell by who has deleted them.
 */
static uint64
removal_horizon(void)
{
	uint64		bound;

	pg_read_barrier();
	bound = pg_atomic_read_u64(&sherman_shared->prune_bound);
	return bound != 0 ? bound : U64FromFullTransactionId(ReadNextFullTransactionId());
}

bool
sherman_removal_is_proven(Relation relation, const ShermanIndex *index, XLogRecPtr end, TransactionId deleted)
{
	return index->proven.epoch == sherman_epoch() && index->proven_end >= end &&
		(!TransactionIdIsNormal(deleted) || !sherman_standbys_may_read(relation) || sherman_full_xid(deleted) <= index->proven_horizon);
}

void
sherman_prove_removal(Relation relation, ShermanIndex *index, XLogRecPtr end)
{
	bool		standbys = sherman_standbys_may_read(relation);
	TreeRecord	record = {.removal_epoch = sherman_epoch()};

	if (standbys)
	{
		end = Max(end, tell_standbys(relation));
		record.removal_horizon = (uint32) removal_horizon();
	}
	record.removal_lsn = end;
	sherman_flush_to_standbys(end);
	sherman_record_note(index, relation, &record);
	index->proven_end = end;
	index->proven_horizon = told;
	/* What is marked at the end itself may have been noted since.  For standbys, positions count in whole words. */
	index->proven = (TreeWalPosition) {.epoch = record.removal_epoch,.lsn = standbys ? end - 1 : end};
	tree_removal_proven(index->tree, &index->proven);
}
