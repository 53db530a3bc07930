/*
 * instance.c
 *		What every process of the server knows of the extension's shared memory: its address, its locks, the launcher,
 *		and the counter of its changes.
 *
 * One counter in shared memory ("generation") changes whenever the state of any index may have changed.
 */
#include "am/base/sherman.h"

#include <unistd.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/sinval.h"

#include "am/base/shared.h"

ShermanShared *sherman_shared = NULL;
TreeShared *sherman_tree_shared = NULL;
bool		sherman_embedded = false;

static LWLockPadded *locks = NULL;

bool
sherman_preloaded(void)
{
	return sherman_shared != NULL;
}

bool
sherman_postmaster_is_gone(void)
{
	return IsUnderPostmaster && getppid() != PostmasterPid;
}

void
sherman_locks_find(void)
{
	locks = GetNamedLWLockTranche("sherman");
}

LWLock *
sherman_lock(ShermanLock lock)
{
	return &locks[lock].lock;
}

void
sherman_wake_launcher(void)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	if (sherman_shared->launcher_latch != NULL)
		SetLatch(sherman_shared->launcher_latch);
	if (sherman_shared->reader_latch != NULL)
		SetLatch(sherman_shared->reader_latch);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

void
sherman_state_changed(void)
{
	pg_atomic_fetch_add_u64(&sherman_shared->generation, 1);
}

void
sherman_invalidate_plans(void)
{
	SharedInvalidationMessage message;

	/* InvalidOid: every database, or all relations. */
	memset(&message, 0, sizeof(message));
	message.rc.id = SHAREDINVALRELCACHE_ID;
	message.rc.dbId = InvalidOid;
	message.rc.relId = InvalidOid;
	SendSharedInvalidMessages(&message, 1);
}

bool
sherman_all_hidden(void)
{
	return sherman_shared == NULL || !IsPostmasterEnvironment || IsBinaryUpgrade ||
		(RecoveryInProgress() && !sherman_is_reading_standby());
}

bool
sherman_is_reading_standby(void)
{
	return sherman_shared != NULL && pg_atomic_read_u32(&sherman_shared->standby_reads) != 0 && RecoveryInProgress();
}
