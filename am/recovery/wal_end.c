/*
 * wal_end.c
 *		Finds the exact end of the WAL of the last run, or none.
 *
 * After a crash the WAL ends where recovery found no more, and the next records are written over what was lost.
 * Entries that were added behind that place have no row. So the place must be known for each start since the epoch
 * began, also for those that never reached a memory node, and the first one counts: the smallest
 * (sherman_epoch_end()).
 *
 * Recovery calls the cleanup of every resource manager when it is through, before anything new is written: ours
 * notes the place in the state file.  It writes no records, so that a server starts without it.
 * If recovery finds nothing behind the checkpoint that it begins with, it calls nobody: then that checkpoint is
 * the place.
 *
 * Both is only true if the server has not run in between without us: then that run's recovery, earlier than ours,
 * found the place that counts.  That is so if the control file names the checkpoint which we saw last, or one
 * which we saw begin: we flushed WAL from behind where its redo begins, so that any recovery comes beyond that
 * place, and the checkpoints of its run have redo begin later.  Else we
 * read the WAL from there on: the first record of a shutdown, or of an end of recovery, stands at the place, for
 * each start behind a crash writes one before anything else.  If that WAL is gone nothing is known.
 */
#include "am/base/sherman.h"

#include "access/rmgr.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "access/xlogutils.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/timestamp.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/recovery/recovery.h"
#include "am/recovery/wal_read.h"

/* How often the launcher looks for a checkpoint that has ended. */
#define LOOK_MS 2000

/* How long a command that makes checkpoints waits for the launcher to note its own; in the file it is one write. */
#define WAIT_MS 1000

/* ---- recovery tells ---- */

/* Set in the postmaster: our resource manager is there, whose cleanup recovery calls. */
static bool recovery_tells = false;

/*
 * Notes what is known now that recovery has come to its end, with the lock held: sherman_take_over() does, too.
 */
static void
note_end_of_recovery(ShermanShared *shared)
{
	/* If the write fails the launcher looks into the WAL, if it is there still. */
	if (sherman_take_over_end(&shared->local, GetXLogReplayRecPtr(NULL)))
		(void) sherman_local_write(&shared->local);
	if (shared->end_awaited != SHERMAN_AWAITED_RECOVERY)
		return;
	sherman_epoch_end(&shared->local, GetXLogReplayRecPtr(NULL), SHERMAN_KNOWN_RECOVERY);
	/* If that fails the next start looks into the WAL. */
	if (sherman_local_write(&shared->local))
		shared->end_awaited = SHERMAN_AWAITED_NOTHING;
	else
		shared->end_awaited = SHERMAN_AWAITED_WAL;
}

/*
 * Runs in the startup process, or the single one, when recovery has come to its end.
 */
static void
recovery_ended(void)
{
	if (sherman_shared == NULL)
		return;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	note_end_of_recovery(sherman_shared);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

/*
 * The WAL has a record of another extension's, which had our number and is not loaded any more.
 */
static void
no_redo(XLogReaderState *record)
{
	ereport(FATAL,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("WAL at " COMPAT_LSN " is of a resource manager with the number %d, which is not loaded",
					LSN_FORMAT_ARGS(record->ReadRecPtr), XLogRecGetRmid(record)),
			 errdetail("Sherman, which writes no WAL records of its own, has taken the number as a free one."),
			 errhint("Add the library of the extension that wrote the record to \"shared_preload_libraries\".")));
}

static void
no_description(StringInfo text, XLogReaderState *record)
{
}

static const char *
no_name(uint8 info)
{
	return NULL;
}

/*
 * As no record bears our number, any will do, and another one at each start: the last one that is free, or that of the setting.
 * Extensions have numbers from the first one on, and those that are developed RM_EXPERIMENTAL_ID, which is not ours to take.
 * Without a number we do without: then the WAL has to tell.
 */
void
sherman_wal_end_install(void)
{
	static RmgrData manager = {
		.rm_name = "sherman",.rm_redo = no_redo,.rm_desc = no_description,.rm_identify = no_name,
		.rm_cleanup = recovery_ended
	};
	int			number = sherman_resource_manager_id != 0 ? sherman_resource_manager_id : RM_MAX_CUSTOM_ID;

	if (!process_shared_preload_libraries_in_progress)
		return;
	while (sherman_resource_manager_id == 0 && number > RM_EXPERIMENTAL_ID && RmgrIdExists(number))
		number--;
	recovery_tells = !RmgrIdExists(number) && (number != RM_EXPERIMENTAL_ID || sherman_resource_manager_id != 0);
	if (recovery_tells)
		RegisterCustomRmgr((RmgrId) number, &manager);
	else
		ereport(LOG,
				(errmsg("sherman has no resource manager: number %d is in use", number),
				 errdetail("Where the WAL of a crash ends is looked for in the WAL, and not known if that is removed.")));
}

/* ---- the start ---- */

bool
sherman_checkpoint_is_ours(const ShermanLocal *local, const ControlFileData *control)
{
	return control->checkPoint == local->checkpoint || control->checkPointCopy.redo == local->redo;
}

bool
sherman_wal_end_start(ShermanShared *shared, const ControlFileData *control)
{
	ShermanLocal *local = &shared->local;

	shared->end_awaited = SHERMAN_AWAITED_NOTHING;
	if (local->epoch == 0 || shared->start == SHERMAN_START_CLEAN)
		return false;
	if (shared->start == SHERMAN_START_UNPROVEN)
	{
		/* A primary that was shut down, and is started as a standby, may be promoted again (find_cut()). */
		if (local->closed && sherman_is_standby() && control->state == DB_SHUTDOWNED && control->checkPoint == local->closed_at)
			sherman_epoch_end(local, local->closed_at, SHERMAN_KNOWN_SHUTDOWN);
		else
			sherman_epoch_end(local, InvalidXLogRecPtr, SHERMAN_KNOWN_NOTHING);
		return true;
	}
	if (!sherman_checkpoint_is_ours(local, control))
		shared->end_awaited = SHERMAN_AWAITED_WAL;
	else if (control->state != DB_SHUTDOWNED)
		shared->end_awaited = recovery_tells ? SHERMAN_AWAITED_RECOVERY : SHERMAN_AWAITED_WAL;
	else
	{
		/* A run of ours that used no memory node, and ended well: what it wrote is there. */
		sherman_epoch_end(local, control->checkPoint, SHERMAN_KNOWN_CHECKPOINT);
		return true;
	}
	return false;
}

/* ---- the WAL tells ---- */

/*
 * Settles what recovery did not: it had nothing to do, or it was not the first.
 */
static void
settle(void)
{
	ShermanShared *shared = sherman_shared;
	ShermanLocal local = shared->local;
	XLogRecPtr	end;

	if (shared->end_awaited == SHERMAN_AWAITED_RECOVERY)
	{
		/* Behind the checkpoint's record, where others may have taken the WAL to end before they wrote any. */
		end = wal_look(wal_read_record_end, shared->start_checkpoint, InvalidXLogRecPtr);
		sherman_epoch_end(&local, Max(end, shared->start_checkpoint), SHERMAN_KNOWN_CHECKPOINT);
	}
	else
	{
		end = wal_look(wal_read_to_border, local.checkpoint, InvalidXLogRecPtr);
		sherman_epoch_end(&local, end, XLogRecPtrIsInvalid(end) ? SHERMAN_KNOWN_NOTHING : SHERMAN_KNOWN_WAL);
	}
	if (sherman_local_change(&local))
		shared->end_awaited = SHERMAN_AWAITED_NOTHING;
}

/*
 * A checkpoint has begun: what is older may be removed from the WAL as soon as it ends.  As long as nothing stands
 * behind its beginning, which then is where it ends, too, nothing is known by it.
 */
static void
note_beginning(XLogRecPtr redo)
{
	ShermanLocal local = sherman_shared->local;
	XLogRecPtr	end = compat_wal_end();

	if (end <= redo)
		return;
	XLogFlush(end);
	local.redo = redo;
	if (!sherman_local_change(&local))
		return;
	/* A server that takes over from a copy reads the WAL from the page's record on. */
	if (sherman_epoch() != 0)
		(void) sherman_history_write(&local);
	elog(DEBUG1, "sherman: a checkpoint has begun at " COMPAT_LSN, LSN_FORMAT_ARGS(redo));
	ConditionVariableBroadcast(&sherman_shared->changed);
}

/*
 * A checkpoint has ended.
 */
static void
note_end(void)
{
	ShermanLocal local = sherman_shared->local;
	bool		sound;
	ControlFileData *control = get_controlfile(DataDir, &sound);

	if (sound && control->checkPoint != local.checkpoint)
	{
		local.checkpoint = control->checkPoint;
		(void) sherman_local_change(&local);
	}
	pfree(control);
}

void
sherman_wal_end_round(void)
{
	static TimestampTz looked = 0;
	ShermanShared *shared = sherman_shared;
	XLogRecPtr	redo;

	if (shared->local.epoch == 0)
		return;
	if (shared->end_awaited != SHERMAN_AWAITED_NOTHING)
		settle();
	if (shared->end_awaited != SHERMAN_AWAITED_NOTHING)
		return;
	redo = GetRedoRecPtr();
	if (redo != shared->local.redo)
		note_beginning(redo);
	if (TimestampDifferenceExceeds(looked, GetCurrentTimestamp(), LOOK_MS))
	{
		looked = GetCurrentTimestamp();
		note_end();
	}
}

/*
 * Whether the newest checkpoint is in the state file.
 */
static bool
beginning_is_noted(void)
{
	bool		noted;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	noted = sherman_shared->local.epoch == 0 || sherman_shared->launcher_pid == 0 ||
		sherman_shared->local.redo == GetRedoRecPtr();
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return noted;
}

void
sherman_wal_end_wait(void)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), WAIT_MS);

	if (RecoveryInProgress() || !IsPostmasterEnvironment || beginning_is_noted())
		return;
	sherman_wake_launcher();
	ConditionVariablePrepareToSleep(&sherman_shared->changed);
	while (!beginning_is_noted())
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

		if (left <= 0)
			break;
		ConditionVariableTimedSleep(&sherman_shared->changed, left, sherman_wait_event(SHERMAN_WAIT_RECOVERY));
	}
	ConditionVariableCancelSleep();
}
