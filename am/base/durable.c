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

#include "am/base/compat.h"
#include "am/base/shared.h"

/* Between two looks at what the standbys have acknowledged: of the first wait, and of the longest. */
#define FIRST_LOOK_MS 1
#define LAST_LOOK_MS 64

/*
 * A transaction whose commit would not wait for standbys does not do so here either: who sets synchronous_commit to local may lose
 * what is committed, and then the index, too.
 */
bool
sherman_standbys_have(XLogRecPtr end)
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

bool
sherman_standbys_are_named(void)
{
	bool		defined;

	LWLockAcquire(SyncRepLock, LW_SHARED);
	defined = compat_standbys_defined();
	LWLockRelease(SyncRepLock);
	return defined || SyncRepStandbyNames == NULL || SyncRepStandbyNames[0] == '\0';
}

void
sherman_flush_to_standbys(XLogRecPtr end)
{
	long		pause = FIRST_LOOK_MS;

	sherman_flush(end);
	while (!sherman_standbys_have(end))
	{
		CHECK_FOR_INTERRUPTS();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, pause, sherman_wait_event(SHERMAN_WAIT_STANDBYS));
		ResetLatch(MyLatch);
		pause = Min(pause * 2, LAST_LOOK_MS);
	}
}
