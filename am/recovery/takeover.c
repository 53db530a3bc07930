/*
 * takeover.c
 *		Taking over a cut history: a standby, or a server that is restored to a point in time, takes the
 *		indexes of the one that it is a copy of when its recovery ends, if it was told to
 *		(sherman_take_over()); a standby by itself where sherman.take_over says so.
 *
 * Its tables are those of the owner up to the place where its own history begins. The page of history (history.c) is
 * what the owner's state file said there. So the server goes on from it as the owner itself would behind a crash in
 * which all WAL from there on was lost: the same rule decides which indexes are good, unverified or broken
 * (recovery.c), for the owner's removals and first changes bear the LSN of their evidence. Only where the owner's
 * last epoch ends is to be found out: behind that page's record the WAL is of that epoch up to the first record of a
 * start, or to the end.
 *
 * What the owner does later is detected, whatever it is: attaching to a memory node, it opens an epoch
 * there that the page does not know.
 */
#include "am/base/sherman.h"

#include <sys/stat.h>

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "replication/walreceiver.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"
#include "am/recovery/recovery.h"
#include "am/recovery/wal_read.h"

PG_FUNCTION_INFO_V1(sherman_take_over);

/*
 * How long a standby that follows the owner waits for what that writes behind the beginning of a checkpoint: within two seconds, unless
 * the machine is very busy (wal_end.c).
 */
#define WAIT_MS 30000
#define LOOK_MS 100

/* ---- the command ---- */

/*
 * Whether what the owner has not written yet may still come here.
 */
static bool
owner_is_followed(void)
{
	return WalRcvStreaming() && GetRecoveryPauseState() == RECOVERY_NOT_PAUSED;
}

/*
 * Whether the WAL from the page's record on is here, `end` being the record's end.  On a standby that has just been made of a backup
 * it is not: that begins with the backup's checkpoint, behind which the owner writes the page anew.
 */
static bool
wal_is_here(ShermanHistory *history, XLogRecPtr *end)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), WAIT_MS);

	while (XLogRecPtrIsInvalid(sherman_wal_cut(*end, GetXLogReplayRecPtr(NULL))))
	{
		if (!owner_is_followed() || GetCurrentTimestamp() >= deadline)
			return false;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, LOOK_MS, sherman_wait_event(SHERMAN_WAIT_RECOVERY));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (!sherman_history_read(history, end))
			return false;
	}
	return true;
}

/*
 * Raises if nothing can be taken over here.
 */
static void
look_at_history(void)
{
	ShermanHistory history;
	XLogRecPtr	end;

	if (sherman_embedded || !sherman_history_read(&history, &end))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("there are no indexes to take over"),
				 sherman_embedded ? errdetail("This server uses an embedded memory node.") :
				 errdetail("The server that this one is a copy of has not used memory nodes of its own."),
				 errhint("Set \"sherman.memory_nodes\" to those of the server whose indexes are wanted, and start anew; "
						 "an embedded memory node is nobody else's.")));
	if (history.system_identifier != GetSystemIdentifier())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the indexes belong to another database cluster")));
	if (!wal_is_here(&history, &end))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the WAL that shows where the last run of the indexes' owner ends is not here"),
				 errdetail("It begins at " COMPAT_LSN ", where the owner last wrote of its memory nodes.", LSN_FORMAT_ARGS(end)),
				 errhint("A running owner writes anew within some seconds of the beginning of each checkpoint, as that of a "
						 "backup. On a standby call this function again when it has received that; to restore to a point in "
						 "time that is not behind it take an older backup.")));
}

static void
refuse_own_history(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("this server has begun a history of its own"),
			 errdetail("Indexes are taken over when recovery ends."),
			 errhint("Use this function on a standby before it is promoted, or while recovery is paused at its target; "
					 "here rebuild indexes with REINDEX.")));
}

/*
 * Notes the wish, in the state file and in shared memory.  The lock is held over the write: the end of recovery (wal_end.c) notes what
 * it finds in the same way, and of two processes that copy, change and write one would undo what the other has noted.
 */
static bool
note_wish(bool wanted)
{
	ShermanLocal local;
	bool		written;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	/* The launcher, which changes it from then on, takes no lock for its look. */
	if (!RecoveryInProgress())
	{
		LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
		refuse_own_history();
	}
	local = sherman_shared->local;
	local.take_over = wanted ? SHERMAN_TAKE_OVER_WANTED : SHERMAN_TAKE_OVER_NOT;
	local.cut = InvalidXLogRecPtr;
	written = sherman_local_write(&local);
	if (written)
		sherman_shared->local = local;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return written;
}

Datum
sherman_take_over(PG_FUNCTION_ARGS)
{
	if (sherman_shared == NULL)
		sherman_report_state(ERROR, NULL, SHERMAN_HIDDEN, SHERMAN_REASON_NONE);
	if (!RecoveryInProgress())
		refuse_own_history();
	if (PG_GETARG_BOOL(0))
		look_at_history();
	else if (sherman_take_over_mode == SHERMAN_TAKE_OVER_AUTO)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("this server takes over when it is promoted, as \"sherman.take_over\" is \"auto\""),
				 errhint("ALTER SYSTEM SET sherman.take_over = 'manual'; SELECT pg_reload_conf();")));
	sherman_crash_point("take over", true);
	if (!note_wish(PG_GETARG_BOOL(0)))
		ereport(ERROR, (errcode(ERRCODE_IO_ERROR), errmsg("the state file of sherman indexes cannot be written")));
	ereport(LOG,
			(PG_GETARG_BOOL(0) ? errmsg("sherman indexes are taken over when recovery ends") :
			 errmsg("sherman indexes are not taken over when recovery ends")));
	PG_RETURN_VOID();
}

/* ---- recovery ends ---- */

bool
sherman_is_standby(void)
{
	struct stat file;

	return stat(STANDBY_SIGNAL_FILE, &file) == 0;
}

/*
 * What sherman.take_over says of a server that nobody has told.  A standby is promoted to take its primary's place; who restores a
 * backup to a point in time may do so beside the living owner.
 */
static void
follow_setting(ShermanLocal *local)
{
	bool		automatic = sherman_take_over_mode == SHERMAN_TAKE_OVER_AUTO && !sherman_embedded && sherman_is_standby();

	if (automatic && local->take_over == SHERMAN_TAKE_OVER_NOT)
	{
		local->take_over = SHERMAN_TAKE_OVER_AUTOMATIC;
		local->cut = InvalidXLogRecPtr;
	}
	else if (!automatic && local->take_over == SHERMAN_TAKE_OVER_AUTOMATIC)
		local->take_over = SHERMAN_TAKE_OVER_NOT;
}

void
sherman_take_over_start(ShermanLocal *local)
{
	/* What an earlier run found in the WAL, and came to no decision by, must be there still. */
	if (local->take_over == SHERMAN_TAKE_OVER_CUT)
		local->take_over = SHERMAN_TAKE_OVER_WANTED;
	/* With a cut it was promoted; but for one that is a standby still, whose setting counts when it is promoted again. */
	if (local->take_over == SHERMAN_TAKE_OVER_AUTOMATIC)
		local->take_over = sherman_is_standby() || XLogRecPtrIsInvalid(local->cut) ? SHERMAN_TAKE_OVER_NOT : SHERMAN_TAKE_OVER_WANTED;
	follow_setting(local);
}

/*
 * Whether the owner's last run was this server's own, which was shut down when it was demoted, and nobody else has had the indexes since.
 * Of that the WAL need not be there any more.
 */
static bool
is_own_run(const ShermanLocal *local, const ShermanHistory *history)
{
	return memcmp(local->cluster, history->cluster, sizeof(local->cluster)) == 0 && local->nonce == history->nonce &&
		local->epoch == history->epoch && local->known_by == SHERMAN_KNOWN_SHUTDOWN;
}

/*
 * Finds the place where the owner's history was cut, behind a recovery that has ended at `end` (invalid: that is not known).
 */
static void
find_cut(ShermanLocal *local, XLogRecPtr end)
{
	ShermanHistory history;
	XLogRecPtr	from;

	if (local->take_over == SHERMAN_TAKE_OVER_WANTED)
		local->take_over = SHERMAN_TAKE_OVER_CUT;
	if (!sherman_history_read(&history, &from))
		local->cut = InvalidXLogRecPtr;
	else
		local->cut = is_own_run(local, &history) ? local->end : sherman_wal_cut(from, end);
}

bool
sherman_take_over_end(ShermanLocal *local, XLogRecPtr end)
{
	follow_setting(local);
	if (local->take_over == SHERMAN_TAKE_OVER_NOT)
		return false;
	find_cut(local, end);
	return true;
}

/* ---- the launcher ---- */

/*
 * Makes the state of this server that of the owner at the place where its history was cut.  Returns why not,
 * or NULL.
 */
static const char *
adopt(ShermanLocal *local)
{
	ShermanHistory history;
	XLogRecPtr	from;
	ControlFileData *control;
	bool		sound;

	if (!sherman_history_read(&history, &from) || history.system_identifier != GetSystemIdentifier())
		return "this server's history names no memory nodes";
	if (XLogRecPtrIsInvalid(local->cut))
		return "the WAL that shows where the owner's last run ends is not there any more";
	control = get_controlfile(DataDir, &sound);
	if (!sound)
		return "the control file cannot be read";
	sherman_history_adopt(&history, local);
	sherman_epoch_end(local, local->cut, SHERMAN_KNOWN_CUT);
	local->timeline = GetWALInsertionTimeLine();
	local->opened_at = control->checkPoint;
	local->checkpoint = control->checkPoint;
	return NULL;
}

void
sherman_take_over_decided(void)
{
	sherman_state_changed();
	ConditionVariableBroadcast(&sherman_shared->changed);
	sherman_invalidate_plans();
}

/*
 * Takes over what is wanted, or says why not; false: it cannot be written down.
 */
static bool
take_over(void)
{
	ShermanLocal local = sherman_shared->local;
	const char *failure;

	/* A session with a pinned buffer is in a transaction. */
	StartTransactionCommand();
	/* Recovery had nothing to do, or could not write it down: the first start behind the page's record is ours. */
	if (local.take_over != SHERMAN_TAKE_OVER_CUT && XLogRecPtrIsInvalid(local.cut))
		find_cut(&local, InvalidXLogRecPtr);
	failure = adopt(&local);
	CommitTransactionCommand();
	local.take_over = SHERMAN_TAKE_OVER_NOT;
	if (!sherman_local_change(&local))
		return false;
	if (failure == NULL)
	{
		sherman_shared->start = SHERMAN_START_CRASH;
		sherman_shared->end_awaited = SHERMAN_AWAITED_NOTHING;
		sherman_pool_adopt();
		ereport(LOG,
				(errmsg("sherman indexes are taken over as they were at " COMPAT_LSN, LSN_FORMAT_ARGS(local.cut)),
				 errdetail("The server that they were of can use them no longer.")));
	}
	else
		ereport(WARNING,
				(errmsg("sherman indexes are not taken over: %s", failure),
				 errhint("Rebuild them with REINDEX.")));
	sherman_take_over_decided();
	return true;
}

bool
sherman_take_over_round(void)
{
	return sherman_shared->local.take_over == SHERMAN_TAKE_OVER_NOT || take_over();
}
