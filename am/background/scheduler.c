/*
 * scheduler.c
 *		The one scheduler of database workers: which databases need a run of which kind, and when; how a command that needs a
 *		database for itself ends the runs there.
 *
 * A worker run goes into one database, works there and leaves: a worker that stayed would be in the way of DROP DATABASE.  There is
 * one run of each kind at a time.  The launcher asks a kind which databases want a run, sends a worker into one after the other
 * (a round), remembers how each run has ended, and asks again.  What a kind looks for and what it does is a table of callbacks
 * (ShermanWorker), which hooks.c hands in.
 */
#include "am/base/sherman.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/timestamp.h"

#include "am/background/background.h"
#include "am/base/compat.h"
#include "am/base/owner.h"
#include "am/base/shared.h"

/* A run leaves much earlier; and core waits 5 s for the others in a database. */
#define LEAVE_MS 5000

/* So long a run that has to undo what it has not finished may take for that, before it is ended as it is. */
#define UNDO_MS 3000

/* What the launcher remembers of a kind. */
typedef struct Schedule
{
	BackgroundWorkerHandle *handle; /* of the run in progress; NULL: there is none, or another launcher began it */
	Oid			running;		/* its database, until its end is noted; InvalidOid = none */
	List	   *queue;			/* databases that the round has still to go to */
	TimestampTz earliest;		/* for the next round */
	List	   *last;			/* ShermanLastRun of each database that a run was wanted in */
} Schedule;

static const ShermanWorker *workers[SHERMAN_WORKER_KINDS];
static Schedule schedules[SHERMAN_WORKER_KINDS];

void
sherman_worker_define(ShermanWorkerKind kind, const ShermanWorker *worker)
{
	workers[kind] = worker;
}

/* ---- the worker ---- */

static void
leave(int code, Datum kind)
{
	LWLockReleaseAll();
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->run[DatumGetInt32(kind)].pid = 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	ConditionVariableBroadcast(&sherman_shared->changed);
	sherman_wake_launcher();
}

/*
 * Says that this process runs; false: another one does, which an earlier launcher has sent.
 */
static bool
enter(ShermanWorkerKind kind, Oid database)
{
	ShermanRun *run = &sherman_shared->run[kind];
	bool		alone;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	alone = run->pid == 0;
	if (alone)
	{
		run->pid = MyProcPid;
		run->database = database;
		run->end = SHERMAN_RUN_LOST;
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return alone;
}

/*
 * As an autovacuum's worker: what users have set for sessions is not for this one.
 */
static void
configure(void)
{
	static const char *const settings[][2] = {
		{"search_path", OWNER_PATH},
		{"statement_timeout", "0"},
		{"lock_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		/* A worker takes one processor, and sleeps as VACUUM does: only this process would. */
		{"max_parallel_maintenance_workers", "0"}
	};

	for (int i = 0; i < (int) lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
	/* Core's commands take it for granted. */
	PortalContext = AllocSetContextCreate(TopMemoryContext, "sherman database worker", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(PortalContext);
}

void
sherman_worker_reload(void)
{
	if (!ConfigReloadPending)
		return;
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
}

/*
 * Main function of a database worker.
 */
void
sherman_database_worker_main(Datum argument)
{
	Oid			database = DatumGetObjectId(argument);
	ShermanWorkerKind kind;
	ShermanRunEnd end;

	memcpy(&kind, MyBgworkerEntry->bgw_extra, sizeof(kind));
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	if (!enter(kind, database))
		proc_exit(0);
	/* Runs when this process is in no database any more: registered before it enters one. */
	on_shmem_exit(leave, Int32GetDatum(kind));
	pg_memory_barrier();
	if (sherman_runs_forbidden(database))
		proc_exit(0);
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
	configure();
	end = workers[kind]->run(sherman_shared->run[kind].first);
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->run[kind].end = end;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	proc_exit(0);
}

/* ---- the launcher ---- */

const ShermanLastRun *
sherman_last_run(ShermanWorkerKind kind, Oid database)
{
	ListCell   *cell;

	foreach(cell, schedules[kind].last)
	{
		ShermanLastRun *last = lfirst(cell);

		if (last->database == database)
			return last;
	}
	return NULL;
}

/*
 * Remembers how a run in a database has ended.
 */
static void
note_end(ShermanWorkerKind kind, Oid database, ShermanRunEnd end)
{
	ShermanLastRun *last = unconstify(ShermanLastRun *, sherman_last_run(kind, database));

	if (last == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);

		last = palloc0(sizeof(ShermanLastRun));
		last->database = database;
		schedules[kind].last = lappend(schedules[kind].last, last);
		MemoryContextSwitchTo(caller);
	}
	last->end = end;
	last->at = GetCurrentTimestamp();
	last->complete |= end >= SHERMAN_RUN_NOTHING;
}

/*
 * Sends a worker into a database; false: nobody can go there now, or there is no room for a worker.
 */
static bool
send_worker(ShermanWorkerKind kind, Oid database)
{
	const ShermanDatabase *found = sherman_find_database(sherman_list_databases(), database);
	const ShermanLastRun *last = sherman_last_run(kind, database);
	ShermanRun *run = &sherman_shared->run[kind];
	BackgroundWorker worker = {
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_main_arg = ObjectIdGetDatum(database),
		.bgw_notify_pid = MyProcPid
	};
	BackgroundWorkerHandle **handle = &schedules[kind].handle;
	MemoryContext caller;

	if (found == NULL || found->invalid || sherman_runs_forbidden(database))
		return false;
	memcpy(worker.bgw_extra, &kind, sizeof(kind));
	strlcpy(worker.bgw_library_name, "sherman", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "sherman_database_worker_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, workers[kind]->name, BGW_MAXLEN);
	strlcpy(worker.bgw_type, workers[kind]->name, BGW_MAXLEN);
	/* Nobody else writes this now: no run of this kind lasts. */
	run->first = last == NULL || !last->complete;
	run->end = SHERMAN_RUN_LOST;
	caller = MemoryContextSwitchTo(TopMemoryContext);
	if (!RegisterDynamicBackgroundWorker(&worker, handle))
		*handle = NULL;
	MemoryContextSwitchTo(caller);
	return *handle != NULL;
}

/*
 * Whether a run of a kind has not ended yet.
 */
static bool
run_lasts(ShermanWorkerKind kind)
{
	Schedule   *schedule = &schedules[kind];
	BgwHandleStatus status;
	bool		lasts;
	pid_t		pid;

	if (schedule->handle != NULL)
	{
		status = GetBackgroundWorkerPid(schedule->handle, &pid);
		if (status == BGWH_STARTED || status == BGWH_NOT_YET_STARTED)
			return true;
		pfree(schedule->handle);
		schedule->handle = NULL;
	}
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	lasts = sherman_shared->run[kind].pid != 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return lasts;
}

/*
 * Asks a kind for the databases of a new round; false: there is none, and `*next` is when to ask again.
 */
static bool
begin_round(ShermanWorkerKind kind, TimestampTz *next)
{
	Schedule   *schedule = &schedules[kind];
	TimestampTz now = GetCurrentTimestamp();
	List	   *wanted;
	MemoryContext caller;

	*next = schedule->earliest;
	if (schedule->earliest > now)
		return false;
	*next = DT_NOEND;
	wanted = workers[kind]->wanted(now, next);
	if (wanted == NIL)
		return false;
	caller = MemoryContextSwitchTo(TopMemoryContext);
	schedule->queue = list_copy(wanted);
	MemoryContextSwitchTo(caller);
	schedule->earliest = TimestampTzPlusMilliseconds(now, workers[kind]->pause_ms);
	return true;
}

/*
 * Does what is to be done about a kind now; returns when to look again.  The end of a run wakes the launcher.
 */
static TimestampTz
schedule_kind(ShermanWorkerKind kind)
{
	Schedule   *schedule = &schedules[kind];
	TimestampTz next;

	if (run_lasts(kind))
		return DT_NOEND;
	if (OidIsValid(schedule->running))
		note_end(kind, schedule->running, sherman_shared->run[kind].end);
	schedule->running = InvalidOid;
	if (schedule->queue == NIL && !begin_round(kind, &next))
		return next;
	while (schedule->queue != NIL)
	{
		Oid			database = linitial_oid(schedule->queue);

		schedule->queue = list_delete_first(schedule->queue);
		if (send_worker(kind, database))
		{
			schedule->running = database;
			return DT_NOEND;
		}
		note_end(kind, database, SHERMAN_RUN_REFUSED);
	}
	return GetCurrentTimestamp();
}

long
sherman_schedule(void)
{
	static MemoryContext context = NULL;
	TimestampTz next = DT_NOEND;
	MemoryContext caller;

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "sherman scheduler", ALLOCSET_DEFAULT_SIZES);
	caller = MemoryContextSwitchTo(context);
	for (int i = 0; i < SHERMAN_WORKER_KINDS; i++)
	{
		TimestampTz due = schedule_kind((ShermanWorkerKind) i);

		next = Min(next, due);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextReset(context);
	return next == DT_NOEND ? LONG_MAX : TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next) + 1;
}

/* ---- commands on databases ---- */

void
sherman_runs_forbid(Oid database)
{
	/* A barrier: workers say that they are there, and then look. */
	(void) pg_atomic_exchange_u32(&sherman_shared->slot[compat_proc_number()].alone_in, database);
}

void
sherman_runs_allow(int code, Datum argument)
{
	(void) pg_atomic_exchange_u32(&sherman_shared->slot[compat_proc_number()].alone_in, InvalidOid);
}

bool
sherman_runs_forbidden(Oid database)
{
	for (int i = 0; i < sherman_shared->slots; i++)
	{
		if (pg_atomic_read_u32(&sherman_shared->slot[i].alone_in) == database)
			return true;
	}
	return false;
}

/*
 * Asks the workers in a database to leave, those that have something to undo once more gently: by cancel.  Returns whether there
 * are any.
 */
static bool
ask_to_leave(Oid database, long waited_ms)
{
	bool		any = false;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	for (int i = 0; i < SHERMAN_WORKER_KINDS; i++)
	{
		const ShermanRun *run = &sherman_shared->run[i];

		if (run->pid == 0 || run->database != database)
			continue;
		any = true;
		/* It cannot be gone before it has taken this lock. */
		if (!workers[i]->undoes || waited_ms >= UNDO_MS)
			kill(run->pid, SIGTERM);
		else if (waited_ms == 0)
			kill(run->pid, SIGINT);
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return any;
}

void
sherman_runs_end(void)
{
	Oid			database = pg_atomic_read_u32(&sherman_shared->slot[compat_proc_number()].alone_in);
	TimestampTz began = GetCurrentTimestamp();
	long		waited = 0;

	while (ask_to_leave(database, waited) && waited < LEAVE_MS)
	{
		ConditionVariableTimedSleep(&sherman_shared->changed, 50, sherman_wait_event(SHERMAN_WAIT_DATABASE_WORKER));
		waited = Max(TimestampDifferenceMilliseconds(began, GetCurrentTimestamp()), 1);
	}
	ConditionVariableCancelSleep();
}
