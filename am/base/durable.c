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

#include "am/base/compat.h"
#include "am/base/shared.h"

/* Between two looks at what the standbys have acknowledged: of the first wait, and of the longest. */
#define FIRST_LOOK_MS 1
#define LAST_LOOK_MS 64

/*
 * A transaction whose commit would not wait for standbys does not do so here either: who sets synchronous_commit to local may lose
 * what is committed, and then the index, too.
 */
static bool
standbys_have(XLogRecPtr end)
{
	bool		have;

	if (!SyncRepRequested())
		return true;
	LWLockAcquire(SyncRepLock, LW_SHARED);
	have = !compat_standbys_defined() || WalSndCtl->lsn[SYNC_REP_WAIT_FLUSH] >= end;
	LWLockRelease(SyncRepLock);
	return have;
}

bool
sherman_waits_for_standbys(void)
{
	return sherman_promotion_waits() && SyncRepRequested();
}

/*
 * Where a walsender's WAL goes to has been sent; invalid if there is another one by now.
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
bool
sherman_standbys_follow(XLogRecPtr end)
{
	SyncRepStandbyData *standbys;
	int			count;
	int			followers = 0;

	if (!standbys_have(end))
		return false;
	if (!SyncRepRequested() || SyncRepConfig == NULL)
		return true;
	count = SyncRepGetCandidateStandbys(&standbys);
	for (int i = 0; i < count; i++)
		followers += standbys[i].flush >= end && sent_by(&standbys[i]) >= end;
	pfree(standbys);
	return followers >= SyncRepConfig->num_sync;
}

void
sherman_flush_to_standbys(XLogRecPtr end)
{
	long		pause = FIRST_LOOK_MS;

	sherman_flush(end);
	while (!standbys_have(end))
	{
		CHECK_FOR_INTERRUPTS();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, pause, sherman_wait_event(SHERMAN_WAIT_STANDBYS));
		ResetLatch(MyLatch);
		pause = Min(pause * 2, LAST_LOOK_MS);
	}
}
