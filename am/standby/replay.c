/*
 * replay.c
 *		On a hot standby: whether what was read of a tree may be believed.
 *
 * The tree is the primary's, as it is now; the table is as old as what was replayed.  What the tree has beyond the table does no harm: an
 * entry's TID leads to nothing, or to a row that the snapshot does not see, or, if the TID had another row before, only once that was
 * removed from the tree.  What the tree lacks would: an entry that was removed, whose row a snapshot of this server still sees.  The
 * primary notes in the tree's record, before it removes anything, up to where in the WAL there is evidence for it; and replaying so far
 * ends all queries here that see what was removed (am/index/removal.c).  So: read the leaf; then read the record; then wait until so much
 * is replayed.  A query that is still there by then sees nothing of what is lacking.
 *
 * The record need not be read if the leaf says itself that all that was removed from it, and added to it, is replayed.  And nothing is waited for
 * if all that was removed was deleted by transactions that had ended for the query's snapshot: that holds, as a rule, where this server's
 * feedback keeps the primary from removing more (horizon.c).
 *
 * The record also names the run of the primary that has changed the tree last.  Until this server has replayed the beginning of that run
 * it does not know which leaves a crash before it has left in doubt, nor whether it is its own primary that runs.
 */
#include "am/base/sherman.h"

#include "access/timeline.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/standby.h"
#include "utils/timestamp.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/replica_placement.h"
#include "am/nodes/nodes.h"
#include "am/recovery/recovery.h"
#include "am/standby/standby.h"

/* Between two looks at what was replayed: the first wait, and the longest. */
#define FIRST_LOOK_MS 1
#define LAST_LOOK_MS 16

/* Where replay waits for no query, queries wait for replay all the same: so long. */
#define LEAST_WAIT_MS 100

/* The primary's history as this process has seen it last. */
static struct
{
	bool		known;
	XLogRecPtr	looked_at;		/* what was replayed before the look */
	XLogRecPtr	end;			/* of the page's record, */
	TimeLineID	timeline;		/* and the timeline that was being replayed when it was judged */
	uint32		epoch;			/* the primary's run */
	uint64		nonce;
	uint64		cluster[2];
	TreeWalLimits limits;		/* what WAL positions of earlier runs prove */
}			history;

/*
 * Whether the page was written in the timeline that is replayed now.  The primary of the timeline before may live on, and what it says of WAL
 * positions is about its own WAL.
 */
static bool
is_of_timeline(XLogRecPtr end, TimeLineID timeline)
{
	List	   *timelines = readTimeLineHistory(timeline);

	/* Without its file a later timeline seems to have no other before it. */
	return (timeline == 1 || list_length(timelines) > 1) && tliOfPointInHistory(end - 1, timelines) == timeline;
}

bool
standby_history_read(ShermanHistory *page, XLogRecPtr *end)
{
	TimeLineID	timeline;

	(void) GetXLogReplayRecPtr(&timeline);
	return sherman_history_read(page, end) && page->system_identifier == GetSystemIdentifier() && is_of_timeline(*end, timeline);
}

/*
 * Looks at the page of history, if anything was replayed since the last look.
 */
static void
look_at_history(void)
{
	TimeLineID	timeline;
	XLogRecPtr	replayed = GetXLogReplayRecPtr(&timeline);
	ShermanHistory page;
	XLogRecPtr	end;
	ShermanLocal local;

	if (history.known && history.looked_at == replayed)
		return;
	history.looked_at = replayed;
	if (!sherman_history_read(&page, &end) || page.system_identifier != GetSystemIdentifier())
	{
		history.known = false;
		return;
	}
	if (history.known && history.end == end && history.timeline == timeline)
		return;
	history.known = is_of_timeline(end, timeline);
	history.end = end;
	history.timeline = timeline;
	history.epoch = page.epoch;
	history.nonce = page.nonce;
	memcpy(history.cluster, page.cluster, sizeof(history.cluster));
	memset(&local, 0, sizeof(local));
	sherman_history_adopt(&page, &local);
	sherman_epoch_limits(&local, &history.limits);
	sherman_connection_set_limits(&history.limits);
}

/* Whether this server has replayed up to `end`, in the timeline in which the page of history was judged. */
static bool
is_replayed(XLogRecPtr end)
{
	TimeLineID	timeline;

	return GetXLogReplayRecPtr(&timeline) >= end && timeline == history.timeline;
}

bool
standby_has_replayed(const TreeWalPosition *wal)
{
	return history.known && (wal->epoch < history.epoch || (wal->epoch == history.epoch && is_replayed(wal->lsn)));
}

void
standby_begin(void)
{
	look_at_history();
}

/*
 * Whether it was in a run of the primary that this server knows of that the tree was changed last.
 */
static bool
run_is_known(ShermanIndex *index, Relation relation, const TreeRecord *record)
{
	const ShermanMetaPage *meta = &index->meta;
	ShermanMetaPage now;

	if (record->nonce == history.nonce || record->nonce == meta->nonce_current || record->nonce == meta->nonce_previous)
		return true;
	/* It may have been replayed since the index was opened. */
	return sherman_metapage_read(relation, &now) && now.tree == meta->tree &&
		(record->nonce == now.nonce_current || record->nonce == now.nonce_previous);
}

/*
 * Whether the snapshot sees no row whose entry was removed: all were deleted before the oldest transaction that was running for it.
 */
static bool
sees_nothing_removed(const TreeRecord *record, Snapshot snapshot)
{
	TimeLineID	timeline;

	(void) GetXLogReplayRecPtr(&timeline);
	return timeline == history.timeline && record->removal_horizon != InvalidTransactionId && IsMVCCSnapshot(snapshot) &&
		(int32) (snapshot->xmin - record->removal_horizon) >= 0;
}

/* Whether what was removed up to this position is replayed. */
static bool
removal_is_replayed(uint32 epoch, XLogRecPtr end)
{
	if (epoch == history.epoch)
		return is_replayed(end);
	/* What an earlier run has removed behind the end of its WAL is not made good yet, or never will be. */
	return epoch < history.epoch && tree_wal_position_is_proven(&history.limits, epoch, end);
}

static bool
history_is_followed(void)
{
	look_at_history();
	return history.known && memcmp(history.cluster, sherman_shared->followed, sizeof(history.cluster)) == 0;
}

/*
 * Whether the snapshot misses nothing of what the record tells of.
 */
static bool
record_is_good(ShermanIndex *index, Relation relation, const TreeRecord *record, Snapshot snapshot)
{
	return history_is_followed() && run_is_known(index, relation, record) &&
		(removal_is_replayed(record->removal_epoch, record->removal_lsn) ||
		 (record->removal_epoch == history.epoch && sees_nothing_removed(record, snapshot)));
}

/*
 * Whether the leaves themselves say that this server has replayed what was removed from them, and what was added: a TID in them that was given
 * to another row has that row here, too.  Which run of the primary has written them was found out by an earlier read of the record, for all
 * that is read through these connections.
 */
static bool
leaves_are_good(const ShermanIndex *index)
{
	TreeSeen	seen;

	if (!history_is_followed() || index->believed.serial != pg_atomic_read_u64(&sherman_shared->reads_serial) ||
		index->believed.epoch != history.epoch || index->believed.nonce != history.nonce)
		return false;
	tree_seen(index->tree, &seen);
	/* A position of a leaf is behind the last byte of the evidence, or at it. */
	return standby_has_replayed(&seen.added) && removal_is_replayed(seen.removed.epoch, MAXALIGN64(seen.removed.lsn));
}

/*
 * Waits a little.  Raises if it was too long: since `began` longer than replay would wait for a query; where that waits for ever, longer
 * than an operation may take.
 */
static void
wait_a_little(Relation relation, TimestampTz began, long *pause)
{
	int			most = max_standby_streaming_delay >= 0 ? Max(max_standby_streaming_delay, LEAST_WAIT_MS) : sherman_operation_timeout_ms;

	if (!RecoveryInProgress())
		sherman_report_conflict(relation, "this server was promoted");
	/* The row that the query has returned last is in a page that replay waits for, and we for replay. */
	if (HoldingBufferPinThatDelaysRecovery())
		sherman_report_conflict(relation, "has changed while a page of the table was in use here that is to be pruned");
	if (GetRecoveryPauseState() != RECOVERY_NOT_PAUSED)
		sherman_report_conflict(relation, "has changed while the replay of WAL is paused here");
	if (TimestampDifferenceExceeds(began, GetCurrentTimestamp(), most))
		sherman_report_conflict(relation, "rows were removed from it that this server may still see");
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, *pause, sherman_wait_event(SHERMAN_WAIT_REPLAY));
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	*pause = Min(*pause * 2, LAST_LOOK_MS);
}

/* Reads the record of the tree at its home, or of the half that is read, behind what is to be believed. */
static void
read_record(const ShermanIndex *index, Relation relation, TreeRecord *record)
{
	TreeStatus	status = tree_record_at_home(sherman_connection_client(), index->meta.tree, (uint32) halves_read(&index->meta), record);

	if (status == TREE_NOT_FOUND)
		sherman_report_conflict(relation, "was dropped or rebuilt there");
	if (status != TREE_OK)
		sherman_report_failure(status, relation);
	if ((record->flags & TREE_RECORD_BROKEN) == 0)
		return;
	record->tree = sherman_tree_key(&index->meta);
	(void) sherman_trees_note(record);
	sherman_report_state(ERROR, relation, SHERMAN_BROKEN, SHERMAN_REASON_UNCLEAN);
}

void
standby_believe(ShermanIndex *index, Relation relation, Snapshot snapshot, bool by_leaves)
{
	TimestampTz began = 0;
	long		pause = FIRST_LOOK_MS;
	uint32		epoch = history.epoch;
	uint64		serial = pg_atomic_read_u64(&sherman_shared->reads_serial);
	bool		replayed = true;
	TreeRecord	record;

	if (!RecoveryInProgress())
		sherman_report_conflict(relation, "this server was promoted");
	if (!by_leaves || !leaves_are_good(index))
	{
		read_record(index, relation, &record);
		while (!record_is_good(index, relation, &record, snapshot))
		{
			if (began == 0)
				began = GetCurrentTimestamp();
			wait_a_little(relation, began, &pause);
		}
		replayed = removal_is_replayed(record.removal_epoch, record.removal_lsn);
		index->believed.serial = serial;
		index->believed.epoch = history.epoch;
		index->believed.nonce = history.nonce;
	}
	/* Which of its leaves a crash has left in doubt was not known when they were read. */
	if (history.epoch != epoch)
		sherman_report_conflict(relation, "the primary has begun a new run since it was read");
	/* What this snapshot may use another one may not. */
	if (replayed)
		tree_seen_forget(index->tree);
}
