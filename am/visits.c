/*
 * visits.c
 *		Visits: workers that the launcher sends into one database, where they do something and leave.
 *
 * A worker that stayed would be in the way of DROP DATABASE.  Commands on databases end all visits, and keep others away
 * until they are through.  There is one visit of each kind at a time.
 */
#include "sherman.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "shared.h"

/* A visit ends much earlier; and core waits 5 s for the others in a database. */
#define VISITOR_PATIENCE_MS 5000

/* What each kind is called in pg_stat_activity, and what it does in its database: outside of a transaction. */
static const struct
{
	const char *name;
	void		(*run) (void);
}			kinds[SHERMAN_VISITS] =
{
	[SHERMAN_VISIT_COLLECT] = {"sherman collector", sherman_collect_here},
	[SHERMAN_VISIT_HEAL] = {"sherman healer", sherman_heal_here},
	[SHERMAN_VISIT_REBUILD] = {"sherman rebuild", sherman_rebuild_here},
};

/* The launcher's: the last visit of each kind; NULL: it is over, or another launcher began it. */
static BackgroundWorkerHandle *begun[SHERMAN_VISITS];

/* ---- the visitor ---- */

static void
leave(int code, Datum kind)
{
	LWLockReleaseAll();
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->visitor_pid[DatumGetInt32(kind)] = 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	ConditionVariableBroadcast(&sherman_shared->changed);
	sherman_wake_launcher();
}

/*
 * Says that this process visits; false: another one does, which an earlier launcher has sent.
 */
static bool
enter(ShermanVisit kind)
{
	bool		alone;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	alone = sherman_shared->visitor_pid[kind] == 0;
	if (alone)
		sherman_shared->visitor_pid[kind] = MyProcPid;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return alone;
}

/*
 * Main function of a visit.
 */
void
sherman_visit_main(Datum database)
{
	ShermanVisit kind;

	memcpy(&kind, MyBgworkerEntry->bgw_extra, sizeof(kind));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	if (!enter(kind))
		proc_exit(0);
	/* Runs when this process is in no database any more: registered before it enters one. */
	on_shmem_exit(leave, Int32GetDatum(kind));
	pg_memory_barrier();
	if (pg_atomic_read_u32(&sherman_shared->keep_out) != 0)
		proc_exit(0);
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
	kinds[kind].run();
	proc_exit(0);
}

/* ---- the launcher ---- */

bool
sherman_visit_begin(ShermanVisit kind, Oid database)
{
	BackgroundWorker worker = {
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_main_arg = ObjectIdGetDatum(database),
		.bgw_notify_pid = MyProcPid
	};
	MemoryContext caller;

	if (sherman_visit_lasts(kind) || pg_atomic_read_u32(&sherman_shared->keep_out) != 0)
		return false;
	memcpy(worker.bgw_extra, &kind, sizeof(kind));
	strlcpy(worker.bgw_library_name, "sherman", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "sherman_visit_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, kinds[kind].name, BGW_MAXLEN);
	strlcpy(worker.bgw_type, kinds[kind].name, BGW_MAXLEN);
	caller = MemoryContextSwitchTo(TopMemoryContext);
	if (!RegisterDynamicBackgroundWorker(&worker, &begun[kind]))
		begun[kind] = NULL;
	MemoryContextSwitchTo(caller);
	return begun[kind] != NULL;
}

bool
sherman_visit_lasts(ShermanVisit kind)
{
	BgwHandleStatus status;
	bool		lasts;
	pid_t		pid;

	if (begun[kind] != NULL)
	{
		status = GetBackgroundWorkerPid(begun[kind], &pid);
		if (status == BGWH_STARTED || status == BGWH_NOT_YET_STARTED)
			return true;
		pfree(begun[kind]);
		begun[kind] = NULL;
	}
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	lasts = sherman_shared->visitor_pid[kind] != 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return lasts;
}

void
sherman_visit_wait(ShermanVisit kind)
{
	if (begun[kind] != NULL)
		WaitForBackgroundWorkerShutdown(begun[kind]);
}

/* ---- commands on databases ---- */

void
sherman_visits_forbid(void)
{
	pg_atomic_fetch_add_u32(&sherman_shared->keep_out, 1);
}

void
sherman_visits_allow(int code, Datum argument)
{
	pg_atomic_fetch_sub_u32(&sherman_shared->keep_out, 1);
}

/*
 * Asks all visitors to leave; returns whether there are any.
 */
static bool
ask_to_leave(void)
{
	bool		any = false;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	for (int i = 0; i < SHERMAN_VISITS; i++)
	{
		pid_t		visitor = sherman_shared->visitor_pid[i];

		/* It cannot be gone before it has taken this lock. */
		if (visitor != 0)
			kill(visitor, SIGTERM);
		any |= visitor != 0;
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return any;
}

void
sherman_visits_end(void)
{
	TimestampTz began = GetCurrentTimestamp();

	while (ask_to_leave() && !TimestampDifferenceExceeds(began, GetCurrentTimestamp(), VISITOR_PATIENCE_MS))
		ConditionVariableTimedSleep(&sherman_shared->changed, 50, PG_WAIT_EXTENSION);
	ConditionVariableCancelSleep();
}
