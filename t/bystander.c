/*
 * bystander.c
 *		Another extension, which leans on what sherman leans on inside of PostgreSQL, for t/075_bystander.pl: latches, flags of processes,
 *		callbacks at a process's end and before a commit, commands.
 */
#include "postgres.h"

#include <unistd.h>

#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "tcop/utility.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "catalog/pg_type.h"

#include "rows_by_hand.h"
#include "versions.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(bystander_flagged);
PG_FUNCTION_INFO_V1(bystander_place);
PG_FUNCTION_INFO_V1(bystander_wake);
PG_FUNCTION_INFO_V1(bystander_wait);
PG_FUNCTION_INFO_V1(bystander_at_commit);
PG_FUNCTION_INFO_V1(bystander_held_abort);

extern void _PG_init(void);

static ExecutorStart_hook_type next_start;
static ProcessUtility_hook_type next_utility;

/* A file in the data directory that names this process. */
static void
note(const char *what)
{
	char		path[64];

	snprintf(path, sizeof(path), "bystander.%s.%d", what, MyProcPid);
	fclose(fopen(path, "w"));
}

static void
note_end(int code, Datum argument)
{
	note("end");
}

/* As extensions do that give back what is theirs at the end of each process that used them. */
static void
executor_start(QueryDesc *query, int flags)
{
	static bool registered = false;

	if (!registered)
		on_proc_exit(note_end, (Datum) 0);
	registered = true;
	if (next_start)
		next_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
}

static void
utility(PlannedStmt *statement, const char *text, bool read_only_tree, ProcessUtilityContext context, ParamListInfo parameters,
		QueryEnvironment *environment, DestReceiver *destination, QueryCompletion *completion)
{
	ereport(LOG, (errmsg("bystander: %s", GetCommandTagName(CreateCommandTag(statement->utilityStmt)))));
	(next_utility ? next_utility : standard_ProcessUtility) (statement, text, read_only_tree, context, parameters, environment,
															 destination, completion);
}

/* The table that gets rows before the transaction commits; InvalidOid: none does. */
static Oid	table_at_commit;

/* The next abort is held up. */
static bool abort_is_held;

/* Until a file that it makes has been removed. */
static void
hold_abort(void)
{
	abort_is_held = false;
	fclose(fopen("bystander.abort", "w"));
	while (access("bystander.abort", F_OK) == 0)
		pg_usleep(10000);
}

/* What an extension has gathered in a transaction it may write at its end. */
static void
transaction_changed(XactEvent event, void *argument)
{
	if (event == XACT_EVENT_PRE_COMMIT && OidIsValid(table_at_commit))
		add_rows_by_hand(table_at_commit, 1, 50);
	table_at_commit = InvalidOid;
	if (event == XACT_EVENT_ABORT && abort_is_held)
		hold_abort();
}

Datum
bystander_at_commit(PG_FUNCTION_ARGS)
{
	table_at_commit = PG_GETARG_OID(0);
	PG_RETURN_VOID();
}

Datum
bystander_held_abort(PG_FUNCTION_ARGS)
{
	abort_is_held = true;
	PG_RETURN_VOID();
}

void
_PG_init(void)
{
	RegisterXactCallback(transaction_changed, NULL);
	next_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	next_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
}

/* Processes that have autovacuum's flag. */
Datum
bystander_flagged(PG_FUNCTION_ARGS)
{
	Datum		pids[16];
	int			count = 0;

	LWLockAcquire(ProcArrayLock, LW_SHARED);
	for (uint32 i = 0; i < ProcGlobal->allProcCount && count < lengthof(pids); i++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[i];

		if (proc->pid != 0 && (proc->statusFlags & PROC_IS_AUTOVACUUM) != 0)
			pids[count++] = Int32GetDatum(proc->pid);
	}
	LWLockRelease(ProcArrayLock);
	PG_RETURN_ARRAYTYPE_P(construct_array(pids, count, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

/* The place of this session among the server's processes. */
Datum
bystander_place(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(own_place());
}

/* Sets a process's latch, so many times, which is nobody's business but that process's. */
Datum
bystander_wake(PG_FUNCTION_ARGS)
{
	PGPROC	   *proc = BackendPidGetProc(PG_GETARG_INT32(0));

	for (int i = 0; proc != NULL && i < PG_GETARG_INT32(1); i++)
	{
		SetLatch(&proc->procLatch);
		pg_usleep(1000);
	}
	PG_RETURN_BOOL(proc != NULL);
}

/* Waits by its latch for a file, as one waits for anything; how often it was woken before that was there. */
Datum
bystander_wait(PG_FUNCTION_ARGS)
{
	char	   *path = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int			wakes = 0;

	note("waits");
	while (access(path, F_OK) != 0)
	{
		int			events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 100, PG_WAIT_EXTENSION);

		CHECK_FOR_INTERRUPTS();
		if (events & WL_LATCH_SET)
		{
			ResetLatch(MyLatch);
			wakes++;
		}
	}
	PG_RETURN_INT32(wakes);
}
