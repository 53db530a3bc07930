/*
 * horizon.c
 *		The process of a primary that keeps the horizon of removals where standbys have announced it, so that these can tell by the
 *		number of a transaction that nothing was removed which they see.
 *
 * With hot_standby_feedback no row is removed that a query of the standby sees.  But a standby cannot know since when that holds: the
 * horizon goes back when its feedback arrives, or that of another standby.  So a standby that finds that something was removed would have
 * to wait until it has replayed so far; and if it has a page pinned that is to be pruned there, replay waits for it.
 *
 * This process holds an xmin that never goes back, as a walsender does for a standby without a slot, and tells by a bound in shared memory
 * what it holds.  The order makes the bound true at any time: no process has ever pruned a row that was deleted by the bound's transaction
 * or a later one.
 *
 *		To begin	the xmin, then the bound: the next transaction of all, as anything before it may have been pruned until now.
 *		To go on	the bound, then the xmin.
 *		To end		the bound is taken away, then the xmin.
 *
 * VACUUM notes the bound with what it removes (am/index/removal.c).  Without a bound it notes the next transaction of all.
 *
 * The xmin follows what standbys have announced, behind which horizons cannot be anyway: it holds nothing up that they do not.
 */
#include "am/base/sherman.h"

#include "access/transam.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/memutils.h"

#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/standby/standby.h"

/* Between two looks at what standbys announce: they do each wal_receiver_status_interval. */
#define LOOK_MS 500

/* ---- what standbys announce ---- */

static TransactionId
older(TransactionId a, TransactionId b)
{
	if (!TransactionIdIsNormal(a) || !TransactionIdIsNormal(b))
		return TransactionIdIsNormal(a) ? a : b;
	return TransactionIdPrecedes(a, b) ? a : b;
}

static pid_t
pid_of_walsender(WalSnd *walsender)
{
	pid_t		pid;

	SpinLockAcquire(&walsender->mutex);
	pid = walsender->pid;
	SpinLockRelease(&walsender->mutex);
	return pid;
}

/* The xmin of a walsender whose standby has no slot. */
static TransactionId
xmin_of_walsender(pid_t pid)
{
	PGPROC	   *process = BackendPidGetProc(pid);

	if (process == NULL || (process->statusFlags & PROC_AFFECTS_ALL_HORIZONS) == 0)
		return InvalidTransactionId;
	return process->xmin;
}

/*
 * The oldest xmin that standbys have announced, with or without a slot; InvalidTransactionId: none has, or none is there.  A slot that nobody
 * uses holds back rows, and nothing else.
 */
static TransactionId
announced_xmin(void)
{
	bool		connected = false;
	TransactionId xmin;
	TransactionId catalog;

	ProcArrayGetReplicationSlotXmin(&xmin, &catalog);
	for (int i = 0; i < max_wal_senders; i++)
	{
		pid_t		pid = pid_of_walsender(&WalSndCtl->walsnds[i]);

		if (pid == 0)
			continue;
		connected = true;
		xmin = older(xmin, xmin_of_walsender(pid));
	}
	return connected ? xmin : InvalidTransactionId;
}

/* ---- the process ---- */

static void
begin_to_hold(TransactionId xmin)
{
	/* Behind the lock nobody is in the middle of finding a horizon without ours. */
	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	MyProc->xmin = xmin;
	MyProc->statusFlags |= PROC_AFFECTS_ALL_HORIZONS;
	ProcGlobal->statusFlags[MyProc->pgxactoff] = MyProc->statusFlags;
	LWLockRelease(ProcArrayLock);
	pg_atomic_write_u64(&sherman_shared->prune_bound, U64FromFullTransactionId(ReadNextFullTransactionId()));
}

static void
go_on_to(TransactionId xmin)
{
	uint64		bound = sherman_full_xid(xmin);

	if (!TransactionIdPrecedes(MyProc->xmin, xmin))
		return;
	if (bound > pg_atomic_read_u64(&sherman_shared->prune_bound))
		pg_atomic_write_u64(&sherman_shared->prune_bound, bound);
	pg_memory_barrier();
	MyProc->xmin = xmin;
}

/* Before the process leaves the array of those whose xmin counts. */
static void
end_to_hold(int code, Datum argument)
{
	LWLockReleaseAll();
	pg_atomic_write_u64(&sherman_shared->prune_bound, 0);
	pg_memory_barrier();
	MyProc->xmin = InvalidTransactionId;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->horizon_pid = 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

/* One process at a time: the bound is the one's that holds the xmin.  False: there is one. */
static bool
is_the_only_one(void)
{
	bool		only;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	only = sherman_shared->horizon_pid == 0;
	if (only)
		sherman_shared->horizon_pid = MyProcPid;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return only;
}

void
sherman_horizon_main(Datum argument)
{
	TransactionId xmin;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	BackgroundWorkerUnblockSignals();
	/* Only so has a process an xmin that counts.  No transaction begins from here on: its end would take the xmin away. */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	if (!is_the_only_one())
		proc_exit(0);
	before_shmem_exit(end_to_hold, (Datum) 0);
	xmin = announced_xmin();
	if (TransactionIdIsValid(xmin))
		begin_to_hold(xmin);
	while (TransactionIdIsValid(xmin) && !ShutdownRequestPending)
	{
		Assert(TransactionIdIsValid(MyProc->xmin));
		go_on_to(xmin);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, LOOK_MS, sherman_wait_event(SHERMAN_WAIT_HORIZON_MAIN));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		xmin = announced_xmin();
	}
	proc_exit(0);
}

/* ---- the launcher ---- */

/* The process that this launcher has started last; NULL: none. */
static BackgroundWorkerHandle *started = NULL;

static bool
is_still_there(void)
{
	pid_t		pid;
	BgwHandleStatus status;

	if (started == NULL)
		return false;
	status = GetBackgroundWorkerPid(started, &pid);
	if (status == BGWH_STARTED || status == BGWH_NOT_YET_STARTED)
		return true;
	pfree(started);
	started = NULL;
	return false;
}

void
horizon_round(void)
{
	BackgroundWorker worker = {
		.bgw_name = "sherman horizon",
		.bgw_type = "sherman horizon",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "sherman",
		.bgw_function_name = "sherman_horizon_main",
	};
	MemoryContext caller;

	/* One that an earlier launcher has started is there still, too. */
	if (sherman_embedded || !XLogStandbyInfoActive() || sherman_shared->horizon_pid != 0 || is_still_there() ||
		!TransactionIdIsValid(announced_xmin()))
		return;
	caller = MemoryContextSwitchTo(TopMemoryContext);
	/* Without room for it removals are noted without a bound. */
	if (!RegisterDynamicBackgroundWorker(&worker, &started))
		started = NULL;
	MemoryContextSwitchTo(caller);
}
