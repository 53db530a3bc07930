/*
 * workers.c
 *		Two background workers: the embedded memory node, and the launcher, which attaches this instance to
 *		its memory nodes before anybody may use them (attach.c), and sends workers into databases (scheduler.c).
 *
 * Both get SIGTERM together with the backends when the server shuts down, and both outlive the backends: the
 * launcher closes the epochs when it is the instance's last client, the memory node ends when no client is
 * left.  Both end with exit code 1, so that they come back if somebody else ended them.
 */
#include "am/base/sherman.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"
#include "storage/procsignal.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "tree/service/service.h"
#include "am/background/background.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"
#include "am/recovery/recovery.h"
#include "am/server/server.h"
#include "am/standby/standby.h"

/* Seconds until a worker that failed is started again; after a crash of the server it starts at once. */
#define RESTART_S 5

/* How often it is looked whether the other processes are gone. */
#define POLL_MS 20

/* And whether a synchronous standby follows this server, which was promoted. */
#define UNDECIDED_MS 100

/* Channels are a power of two and never few, so that most settings change nothing. */
#define LEAST_CHANNELS 256

/*
 * Asks the kernel not to choose the memory node when it kills processes for memory, as all sessions would end with
 * it. What Debian's service gives to the postmaster.
 */
#define NODE_OOM_SCORE "-900"

/* After so long a load of the snapshot sessions that wait for the node get a notice. */
#define LOADING_TOLD_MS 1000

static Service *service = NULL;

/* When the node began to open its memory, or 0: the notice was given. */
static TimestampTz node_opening = 0;
static bool node_failed = false;	/* it has said why it does not serve */

void
sherman_register_workers(void)
{
	BackgroundWorker worker;
	const char *problem;

	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	/* A standby needs none. */
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = RESTART_S;
	strlcpy(worker.bgw_library_name, "sherman", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "sherman_node_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "sherman memory node", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "sherman memory node", BGW_MAXLEN);
	sherman_embedded = sherman_embedded_memory_mb > 0 &&
		sherman_parse_nodes(sherman_memory_node_list, NULL, &problem) == 0;
	if (sherman_embedded)
		RegisterBackgroundWorker(&worker);

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	strlcpy(worker.bgw_function_name, "sherman_launcher_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "sherman launcher", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "sherman launcher", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
	reader_register();
	sherman_register_connection_workers();
}

uint32
sherman_node_channels(void)
{
	uint32		channels = LEAST_CHANNELS;

	while (channels < (uint32) MaxBackends)
		channels *= 2;
	return channels;
}

/* ---- the embedded memory node ---- */

static void
node_log(void *argument, FabricLogLevel level, const char *message)
{
	static const int levels[] = {DEBUG1, LOG, WARNING, WARNING};

	ereport(levels[level], (errmsg("sherman memory node: %s", message)));
}

/*
 * Asked about every 100 ms: stop when asked to, but not before the last client is gone.
 */
static bool
node_should_stop(void *argument)
{
	if (!ShutdownRequestPending && !sherman_postmaster_is_gone())
		return false;
	return fabric_server_channels(service_server(service)) == 0;
}

static void
node_publish(pid_t pid, const char *failure)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->node_pid = pid;
	if (pid != 0)
		sherman_shared->node_serial++;
	strlcpy(sherman_shared->node_failure, failure, sizeof(sherman_shared->node_failure));
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	ConditionVariableBroadcast(&sherman_shared->changed);
	sherman_wake_launcher();
}

/*
 * Says why it does not begin to serve, which stands until it is tried again.
 */
static void
node_fail(const char *failure)
{
	node_failed = true;
	node_publish(0, failure);
}

static void
node_exit(int code, Datum argument)
{
	LWLockReleaseAll();
	if (!node_failed)
		node_publish(0, "it has ended");
}

/*
 * Whether the node's snapshot is to be gone on with: not when the server died, nor when the node was asked to
 * end, again if it saves because it was asked to.
 */
static bool
node_snapshot_go_on(void *argument, bool saving, uint64_t done, uint64_t total)
{
	if (!saving && node_opening != 0 &&
		TimestampDifferenceExceeds(node_opening, GetCurrentTimestamp(), LOADING_TOLD_MS))
	{
		node_opening = 0;
		node_publish(0, "its snapshot is being loaded");
	}
	return !sherman_postmaster_is_gone() && !ShutdownRequestPending;
}

/*
 * Saves the memory, when the server is shut down and all other processes have ended.
 */
static void
node_save(void)
{
	if (!ShutdownRequestPending || sherman_postmaster_is_gone())
		return;
	if (ConfigReloadPending)
		ProcessConfigFile(PGC_SIGHUP);
	/* One more request does not wait for it. */
	ShutdownRequestPending = false;
	if (sherman_embedded_snapshot)
		(void) service_save(service, 0);
}

static bool
set_oom_score(const char *score)
{
	int			file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	bool		done = file >= 0 && write(file, score, strlen(score)) > 0;

	if (file >= 0)
		close(file);
	return done;
}

/*
 * The kernel lets a process without privileges go down to what one with privileges gave to it or its parents,
 * as the server's service may; PostgreSQL raises its children above that (PG_OOM_ADJUST_FILE).  What the
 * postmaster has is open to us in any case but odd ones.
 */
static void
avoid_oom_killer(void)
{
	char		path[64];
	char		score[16] = "";
	int			file;

	if (set_oom_score(NODE_OOM_SCORE))
		return;
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int) PostmasterPid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return;
	if (read(file, score, sizeof(score) - 1) <= 0 || !set_oom_score(score))
		elog(DEBUG1, "sherman: could not lower oom_score_adj: %m");
	close(file);
}

/*
 * Opens the service; memory of another shape is replaced.
 */
static void
node_open(const ServiceOptions *options)
{
	char		detail[FABRIC_DETAIL_BYTES] = "";
	FabricStatus status;

	node_opening = GetCurrentTimestamp();
	status = service_open(options, &service, detail);
	if (status == FABRIC_STOPPED)
		proc_exit(1);
	if (status == FABRIC_PROTOCOL)
	{
		ereport(WARNING, (errmsg("memory \"%s\" cannot be used: %s", options->memory_path, detail)));
		if (sherman_keep_memory(options->memory_path, "unusable"))
			status = service_open(options, &service, detail);
	}
	if (status != FABRIC_OK)
	{
		node_fail(detail);
		ereport(FATAL,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start the sherman memory node: %s", fabric_status_name(status)),
				 errdetail("%s", detail),
				 errhint("See \"sherman.embedded_directory\" and \"sherman.embedded_memory\".")));
	}
}

/*
 * Warns if memory that was there has other sizes than the settings ask for.
 */
static void
node_warn_of_sizes(const ServiceOptions *options)
{
	uint64_t	bytes;
	uint32_t	channels;
	int			megabytes;

	service_sizes(service, &bytes, &channels);
	megabytes = (int) ((bytes + 1024 * 1024 - 1) / (1024 * 1024));
	if (bytes > options->node_bytes)
		ereport(WARNING,
				(errmsg("the embedded memory node keeps %d MB of memory, where \"sherman.embedded_memory\" is %d MB",
						megabytes, sherman_embedded_memory_mb),
				 errdetail("Indexes lie in it up to there. No index gets more memory as long as all of them have more than the setting."),
				 errhint("Raise \"sherman.embedded_memory\" to %d MB, or drop indexes that are not needed, or REINDEX those that are bloated, and restart the server.",
						 megabytes)));
	if (bytes < options->node_bytes || channels < options->max_channels)
		ereport(WARNING,
				(errmsg("the embedded memory node has %d MB of memory for %u connections, where the settings ask for %d MB for %u",
						megabytes, channels, sherman_embedded_memory_mb, options->max_channels),
				 errdetail("There is no room for more in \"%s\". The indexes keep their content.", sherman_embedded_directory),
				 errhint("Make room there and restart the server, or lower \"sherman.embedded_memory\" or \"max_connections\".")));
}

/*
 * Main function of the embedded memory node.
 */
void
sherman_node_main(Datum argument)
{
	ServiceOptions options = {
		.memory_path = sherman_shared->local.memory_path,
		.socket_path = SHERMAN_SOCKET,
		.node_bytes = (uint64) sherman_embedded_memory_mb * 1024 * 1024,
		.max_channels = sherman_node_channels(),
		.snapshot_path = SHERMAN_SNAPSHOT,
		.snapshot_go_on = node_snapshot_go_on,
		.set_aside_hint = "sherman_files() lists files that were kept, sherman_remove_file(path) removes one",
		.log = node_log,
		.should_stop = node_should_stop
	};

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	avoid_oom_killer();
	before_shmem_exit(node_exit, (Datum) 0);

	if (sherman_shared->node_held)
	{
		node_fail("files of another history are in its way");
		ereport(FATAL,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not start the sherman memory node: files of another history are in its way"),
				 errhint("SELECT * FROM sherman_files() shows what was set aside: remove some of it with sherman_remove_file(), "
						 "and start the server anew.")));
	}
	node_open(&options);
	node_warn_of_sizes(&options);
	node_publish(MyProcPid, "");
	if (service_run(service) != FABRIC_OK)
		ereport(LOG, (errmsg("the sherman memory node's loop has failed")));
	node_save();
	service_close(service, 0, false);
	proc_exit(1);
}

/* ---- the launcher ---- */

static void
launcher_exit(int code, Datum argument)
{
	LWLockReleaseAll();
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->launcher_pid = 0;
	sherman_shared->launcher_latch = NULL;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

/*
 * The settings were read again: the list of memory nodes may be another one.
 */
static void
reload(void)
{
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	if (sherman_list_awaits_restart(sherman_memory_node_list))
		ereport(LOG,
				(errmsg("parameter \"sherman.memory_nodes\" cannot be changed without restarting the server, from or to the "
						"embedded memory node"),
				 errhint("Restart the server.")));
	if (sherman_shared->embedded)
		return;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_pool_configure(sherman_shared);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

/*
 * Sleeps until woken, at most so long; interrupts are served, a request to end is only seen.
 */
static void
launcher_sleep(long milliseconds)
{
	int			events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, milliseconds,
								   sherman_wait_event(SHERMAN_WAIT_LAUNCHER_MAIN));

	if (events & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
		reload();
}

static void
launcher_start(void)
{
	sherman_connection_launcher();
	before_shmem_exit(launcher_exit, (Datum) 0);
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->launcher_pid = MyProcPid;
	sherman_shared->launcher_latch = MyLatch;
	if (sherman_shared->launcher_nonce == 0 &&
		!pg_strong_random(&sherman_shared->launcher_nonce, sizeof(sherman_shared->launcher_nonce)))
		sherman_shared->launcher_nonce = (uint64) GetCurrentTimestamp();
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

/*
 * Main function of the launcher.
 */
void
sherman_launcher_main(Datum argument)
{
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	/* No database: pg_database can be read, and no database is kept from being dropped. */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	launcher_start();
	sherman_attach_resume();
	for (;;)
	{
		long		pause = POLL_MS;

		if (ShutdownRequestPending)
		{
			if (sherman_attach_end())
				break;
		}
		else
		{
			long		schedule = LONG_MAX;
			long		gone;
			bool		attaches;

			if (!reader_end())
			{
				launcher_sleep(POLL_MS);
				continue;
			}
			horizon_round();
			sherman_forget_round();
			sherman_wal_end_round();
			attaches = sherman_take_over_round() && sherman_promotion_is_followed();
			if (attaches)
				sherman_attach_round();
			gone = Min(sherman_pool_find_gone(), sherman_replicas_round());
			if (sherman_phase() == SHERMAN_PHASE_ATTACHED)
				schedule = sherman_schedule();
			pause = attaches ? sherman_attach_pause() : UNDECIDED_MS;
			pause = Min(pause, Min(gone, schedule));
		}
		/* The request to end may have come in a wait of this round, which took its wake-up. */
		launcher_sleep(ShutdownRequestPending ? POLL_MS : pause);
	}
	proc_exit(1);
}
