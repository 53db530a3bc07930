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
#include "storage/procarray.h"
#include "utils/rel.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"

bool
sherman_standbys_may_read(Relation index)
{
	return !sherman_embedded && XLogStandbyInfoActive() && RelationNeedsWAL(index);
}

/* A transaction of not long ago, with its epoch. */
static FullTransactionId
with_epoch(TransactionId xid)
{
	FullTransactionId next = ReadNextFullTransactionId();
	uint32		epoch = EpochFromFullTransactionId(next);

	return FullTransactionIdFromEpochAndXid(xid > XidFromFullTransactionId(next) ? epoch - 1 : epoch, xid);
}

void
sherman_note_dead(TransactionId deleted)
{
	uint64		noted = pg_atomic_read_u64(&sherman_shared->dead_horizon);
	uint64		mine;

	if (!TransactionIdIsNormal(deleted))
		return;
	mine = U64FromFullTransactionId(with_epoch(deleted));
	while (noted < mine && !pg_atomic_compare_exchange_u64(&sherman_shared->dead_horizon, &noted, mine))
		;
}

void
sherman_note_dead_now(Relation index)
{
	TransactionId oldest = GetOldestNonRemovableTransactionId(index);

	TransactionIdRetreat(oldest);
	sherman_note_dead(oldest);
}

bool
sherman_removal_is_proven(Relation relation, const ShermanIndex *index, XLogRecPtr end)
{
	return index->proven.epoch == sherman_epoch() && index->proven_end >= end &&
		(!sherman_standbys_may_read(relation) ||
		 pg_atomic_read_u64(&sherman_shared->dead_horizon) <= index->proven_horizon);
}

void
sherman_prove_removal(Relation relation, ShermanIndex *index, XLogRecPtr end)
{
	bool		standbys = sherman_standbys_may_read(relation);
	TreeRecord	record = {.removal_lsn = end,.removal_epoch = sherman_epoch()};

	/* What was marked before the WAL came to `end` was noted before, and so is covered by what is told the standbys. */
	if (standbys)
	{
		sherman_note_dead_now(relation);
		index->proven_horizon = pg_atomic_read_u64(&sherman_shared->dead_horizon);
		record.removal_lsn = compat_log_conflict(relation, FullTransactionIdFromU64(index->proven_horizon));
	}
	sherman_flush_to_standbys(record.removal_lsn);
	sherman_record_note(index, relation, &record);
	index->proven_end = end;
	index->proven = (TreeWalPosition) {.epoch = record.removal_epoch,.lsn = standbys ? end - 1 : end};
	tree_removal_proven(index->tree, &index->proven);
}
