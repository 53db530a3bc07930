/*
 * database_workers.c
 *		Visits: workers that the launcher sends into one database, where they do something and leave.
 *
 * A worker that stayed would be in the way of DROP DATABASE.  A command that needs a database for itself (databases.c) ends the
 * visits there, and keeps others away until it is through.  There is one visit of each kind at a time.
 */
#include "am/base/sherman.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"

#include "am/background/background.h"
#include "am/base/shared.h"

/* A visit ends much earlier; and core waits 5 s for the others in a database. */
#define VISITOR_PATIENCE_MS 5000

/* So long one that rebuilds has to drop what it has not finished, before it is ended as it is. */
#define REBUILD_PATIENCE_MS 3000

/* As sherman_visit_define() was told. */
static struct
{
	const char *name;
	void		(*run) (void);
}			kinds[SHERMAN_VISITS];

/* The launcher's: the last visit of each kind; NULL: it is over, or another launcher began it. */
static BackgroundWorkerHandle *begun[SHERMAN_VISITS];

void
sherman_visit_define(ShermanVisit kind, const char *name, void (*run) (void))
{
	kinds[kind].name = name;
	kinds[kind].run = run;
}

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
enter(ShermanVisit kind, Oid database)
{
	bool		alone;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	alone = sherman_shared->visitor_pid[kind] == 0;
	if (alone)
	{
		sherman_shared->visitor_pid[kind] = MyProcPid;
		sherman_shared->visitor_database[kind] = database;
	}
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
	if (!enter(kind, DatumGetObjectId(database)))
		proc_exit(0);
	/* Runs when this process is in no database any more: registered before it enters one. */
	on_shmem_exit(leave, Int32GetDatum(kind));
	pg_memory_barrier();
	if (sherman_visits_forbidden(DatumGetObjectId(database)))
		proc_exit(0);
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
	kinds[kind].run();
	proc_exit(0);
}

/* ---- the launcher ---- */

ShermanDatabase
sherman_database_look(Oid database)
{
	Relation	catalog = table_open(DatabaseRelationId, AccessShareLock);
	ShermanDatabase found = SHERMAN_DATABASE_GONE;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_database_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(database));
	/* The launcher has no database of its own: there may be no index to use. */
	scan = systable_beginscan(catalog, DatabaseOidIndexId, criticalSharedRelcachesBuilt, NULL, 1, &key);
	tuple = systable_getnext(scan);
	/* Less than -1 is the limit of one whose DROP was interrupted. */
	if (HeapTupleIsValid(tuple))
		found = ((Form_pg_database) GETSTRUCT(tuple))->datconnlimit < -1 ? SHERMAN_DATABASE_INVALID : SHERMAN_DATABASE_THERE;
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

/* Whether one can connect to a database. */
static bool
can_be_visited(Oid database)
{
	MemoryContext caller = CurrentMemoryContext;
	bool		can;

	StartTransactionCommand();
	can = sherman_database_look(database) == SHERMAN_DATABASE_THERE;
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);
	return can;
}

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

	if (sherman_visit_lasts(kind) || sherman_visits_forbidden(database) || !can_be_visited(database))
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
sherman_visits_forbid(Oid database)
{
	/* A barrier: visitors say that they are there, and then look. */
	(void) pg_atomic_exchange_u32(&sherman_shared->slot[MyProc->pgprocno].alone_in, database);
}

void
sherman_visits_allow(int code, Datum argument)
{
	(void) pg_atomic_exchange_u32(&sherman_shared->slot[MyProc->pgprocno].alone_in, InvalidOid);
}

bool
sherman_visits_forbidden(Oid database)
{
	for (int i = 0; i < sherman_shared->slots; i++)
	{
		if (pg_atomic_read_u32(&sherman_shared->slot[i].alone_in) == database)
			return true;
	}
	return false;
}

/*
 * Asks the visitors of a database to leave, the one that rebuilds once more gently: by cancel.  Returns whether there are any.
 */
static bool
ask_to_leave(Oid database, long waited_ms)
{
	bool		any = false;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	for (int i = 0; i < SHERMAN_VISITS; i++)
	{
		pid_t		visitor = sherman_shared->visitor_pid[i];

		if (visitor == 0 || sherman_shared->visitor_database[i] != database)
			continue;
		any = true;
		/* It cannot be gone before it has taken this lock. */
		if (i != SHERMAN_VISIT_REBUILD || waited_ms >= REBUILD_PATIENCE_MS)
			kill(visitor, SIGTERM);
		else if (waited_ms == 0)
			kill(visitor, SIGINT);
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return any;
}

void
sherman_visits_end(void)
{
	Oid			database = pg_atomic_read_u32(&sherman_shared->slot[MyProc->pgprocno].alone_in);
	TimestampTz began = GetCurrentTimestamp();
	long		waited = 0;

	while (ask_to_leave(database, waited) && waited < VISITOR_PATIENCE_MS)
	{
		ConditionVariableTimedSleep(&sherman_shared->changed, 50, PG_WAIT_EXTENSION);
		waited = Max(TimestampDifferenceMilliseconds(began, GetCurrentTimestamp()), 1);
	}
	ConditionVariableCancelSleep();
}
