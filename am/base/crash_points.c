/*
 * crash_points.c
 *		Crash points, for tests: a process can be made to die, to hang or to be canceled at any crash point of what it does with memory
 *		nodes and WAL.  Only a build for tests has it (make ASSERTS=1).
 *
 * A crash point is the moment right before, or right behind, a chain or call to a memory node, a connect or an attach, a flush of
 * WAL, a write of a metapage or of the state file, what sherman_take_over() has found out, or a commit.  They are counted in each process of the kind that
 * sherman.debug_process names, from when sherman.debug_step was set there.  Between two of them nothing is lost or kept that
 * outlives the process, so that ends at all crash points are all ends that there are.
 */
#include "am/base/sherman.h"

#include <signal.h>

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/pmsignal.h"
#include "storage/procsignal.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

#include "am/base/shared.h"

/* How often a process that hangs looks whether it is to end. */
#define HANG_SLICE_US 10000

typedef enum CrashAction
{
	CRASH_KILL,					/* SIGKILL */
	CRASH_IMMEDIATE,				/* the whole server, by SIGQUIT to the postmaster */
	CRASH_HANG,					/* until canceled or ended; a worker goes on at a reload */
	CRASH_PAUSE,					/* the same, but a session, too, goes on at a reload */
	CRASH_CANCEL					/* as if the user had canceled the command here */
} CrashAction;

static const struct config_enum_entry action_names[] = {
	{"crash", CRASH_KILL, false},
	{"immediate", CRASH_IMMEDIATE, false},
	{"hang", CRASH_HANG, false},
	{"pause", CRASH_PAUSE, false},
	{"cancel", CRASH_CANCEL, false},
	{NULL, 0, false}
};

static int	debug_step = 0;
static int	debug_action = CRASH_KILL;
static char *debug_process = NULL;
static char *debug_passed = NULL;

static struct
{
	int			passed;			/* crash points since debug_step was set */
	bool		commits;		/* commits tell of themselves */
	void		(*changed) (void);	/* called when counting begins or ends; NULL: nothing is */
	char		shown[32];		/* what SHOW returns */
} steps;

/*
 * Whether this process is of the kind that is meant: a background worker's type; "" are sessions.
 */
static bool
is_meant(void)
{
	const char *kind = MyBgworkerEntry != NULL ? MyBgworkerEntry->bgw_type :
		MyProcPid == PostmasterPid ? "postmaster" : "";

	return strcmp(kind, debug_process) == 0;
}

/*
 * A cancel ends the process's command; new settings let it go on.
 */
static bool
told_to_go_on(void)
{
	return ConfigReloadPending && (MyBgworkerEntry != NULL || debug_action == CRASH_PAUSE);
}

static void
hang(void)
{
	pgstat_report_wait_start(PG_WAIT_EXTENSION);
	while (!QueryCancelPending && !ProcDiePending && !ShutdownRequestPending && !told_to_go_on() &&
		   !sherman_postmaster_is_gone())
	{
		pg_usleep(HANG_SLICE_US);
		/* From 19 on the end of recovery waits for all processes to take one. */
		if (ProcSignalBarrierPending)
			ProcessProcSignalBarrier();
	}
	pgstat_report_wait_end();
}

static void
act(const char *name, bool before)
{
	/* A message looks for interrupts, and locks may be held. */
	HOLD_INTERRUPTS();
	ereport(LOG,
			(errmsg("sherman.debug_step: %s at step %d, %s %s", action_names[debug_action].name, steps.passed,
					before ? "before" : "after", name)));
	RESUME_INTERRUPTS();
	switch ((CrashAction) debug_action)
	{
		case CRASH_KILL:
			kill(MyProcPid, SIGKILL);
			break;
		case CRASH_IMMEDIATE:
			kill(PostmasterPid, SIGQUIT);
			while (!sherman_postmaster_is_gone())
				pg_usleep(HANG_SLICE_US);
			_exit(2);
		case CRASH_HANG:
		case CRASH_PAUSE:
			hang();
			break;
		case CRASH_CANCEL:
			QueryCancelPending = true;
			InterruptPending = true;
			break;
	}
}

void
sherman_crash_point(const char *name, bool before)
{
	if (likely(debug_step == 0) || !is_meant())
		return;
	if (++steps.passed == debug_step)
		act(name, before);
}

static void
client_crash_point(void *argument, const char *name, bool before)
{
	sherman_crash_point(name, before);
}

void
sherman_crash_points_watch(void (*changed) (void))
{
	steps.changed = changed;
}

TreeCrashPoint *
sherman_client_crash_point(void)
{
	return debug_step == 0 ? NULL : client_crash_point;
}

/*
 * A transaction that has written nothing ends without WAL.
 */
static void
commit_crash_point(XactEvent event, void *argument)
{
	if (!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return;
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_COMMIT)
		sherman_crash_point("commit", event == XACT_EVENT_PRE_COMMIT);
	else if (event == XACT_EVENT_PRE_PREPARE || event == XACT_EVENT_PREPARE)
		sherman_crash_point("prepare", event == XACT_EVENT_PRE_PREPARE);
}

/* ---- the settings ---- */

static void
assign_debug_step(int value, void *extra)
{
	steps.passed = 0;
	debug_step = value;
	if (steps.changed != NULL)
		steps.changed();
	if (value == 0 || steps.commits)
		return;
	RegisterXactCallback(commit_crash_point, NULL);
	steps.commits = true;
}

static const char *
show_passed(void)
{
	snprintf(steps.shown, sizeof(steps.shown), "%d", steps.passed);
	return steps.shown;
}

void
sherman_define_crash_points(void)
{
	DefineCustomIntVariable("sherman.debug_step",
							"For tests: the step of this process at which sherman.debug_action happens.",
							"Steps are counted from when this is set. 0 is never.",
							&debug_step, 0, 0, INT_MAX,
							PGC_SUSET, GUC_NOT_IN_SAMPLE, NULL, assign_debug_step, NULL);
	DefineCustomEnumVariable("sherman.debug_action",
							 "For tests: what happens at step sherman.debug_step.",
							 NULL,
							 &debug_action, CRASH_KILL, action_names,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomStringVariable("sherman.debug_process",
							   "For tests: the kind of processes that count their steps.",
							   "The type of a background worker, \"postmaster\", or empty for sessions.",
							   &debug_process, "",
							   PGC_SUSET, GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomStringVariable("sherman.debug_passed",
							   "For tests: the steps that this session has counted.",
							   NULL,
							   &debug_passed, "0",
							   PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE, NULL, NULL, show_passed);
}
