/*
 * durable.c
 *		WAL that must not be lost before something is done at the memory nodes, which a crash does not take back.
 */
#include "am/base/sherman.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#include "am/base/compat.h"
#include "am/base/shared.h"

/* Between two looks at what the standbys have acknowledged: of the first wait, and of the longest. */
#define FIRST_LOOK_MS 1
#define LAST_LOOK_MS 64

/*
 * A transaction whose commit would not wait for standbys does not do so here either: who sets synchronous_commit to local may lose
 * what is committed, and then the index, too.  Nobody has set it for an autovacuum worker, whose commits core makes local.
 */
bool
sherman_commits_wait(void)
{
	if (compat_is_autovacuum())
		return sherman_shared != NULL && pg_atomic_read_u32(&sherman_shared->commits_wait) != 0;
	return SyncRepRequested();
}

static bool
standbys_have(XLogRecPtr end)
{
	bool		have;

	if (!sherman_commits_wait())
		return true;
	LWLockAcquire(SyncRepLock, LW_SHARED);
	have = !compat_standbys_defined() || WalSndCtl->lsn[SYNC_REP_WAIT_FLUSH] >= end;
	LWLockRelease(SyncRepLock);
	return have;
}

bool
sherman_standbys_wanted(void)
{
	return SyncRepRequested() && SyncRepConfig != NULL;
}

/*
 * Up to where a walsender has sent the WAL; invalid if there is another one by now.
 */
static XLogRecPtr
sent_by(const SyncRepStandbyData *standby)
{
	WalSnd	   *sender = &WalSndCtl->walsnds[standby->walsnd_index];
	XLogRecPtr	sent;

	SpinLockAcquire(&sender->mutex);
	sent = sender->pid == standby->pid ? sender->sentPtr : InvalidXLogRecPtr;
	SpinLockRelease(&sender->mutex);
	return sent;
}

/*
 * Hazard -- a standby that is ahead of the place where this server was promoted stays in the timeline of before, and tells that it has flushed
 * what it has of that.  Core counts it.  But to such a standby nothing was sent from behind the promotion.
 *
 * Race -- synchronous_standby_names was set right before the promotion, and the checkpointer, which tells all others, has not read it yet.  So
 * what this process has read of it counts.
 */
ShermanFollowed
sherman_standbys_follow(XLogRecPtr end)
{
	SyncRepStandbyData *standbys;
	int			count;
	int			followers = 0;

	if (!sherman_standbys_wanted())
		return SHERMAN_FOLLOWED;
	count = SyncRepGetCandidateStandbys(&standbys);
	for (int i = 0; i < count; i++)
		followers += standbys[i].flush >= end && sent_by(&standbys[i]) >= end;
	pfree(standbys);
	if (followers >= SyncRepConfig->num_sync)
		return SHERMAN_FOLLOWED;
	return count >= SyncRepConfig->num_sync ? SHERMAN_LAGS : SHERMAN_ALONE;
}

void
sherman_flush_to_standbys(XLogRecPtr end)
{
	long		pause = FIRST_LOOK_MS;
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), sherman_attach_timeout_ms);

	sherman_flush(end);
	/* With the embedded memory node no other server goes on. */
	while (!sherman_shared->embedded && !standbys_have(end))
	{
		CHECK_FOR_INTERRUPTS();
		/* It would keep other tables from being vacuumed. */
		if (compat_is_autovacuum() && GetCurrentTimestamp() >= deadline)
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("no synchronous standby has the WAL behind which an index may be changed"),
					 errhint("Start a standby of \"synchronous_standby_names\". VACUUM by hand waits for it, unless \"synchronous_commit\" is \"local\".")));
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, pause, sherman_wait_event(SHERMAN_WAIT_STANDBYS));
		ResetLatch(MyLatch);
		pause = Min(pause * 2, LAST_LOOK_MS);
	}
}
