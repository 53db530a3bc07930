/*
 * workers.c
 *		Two background workers: the embedded memory node, and the launcher, which attaches this instance to
 *		the memory node before anybody may use it, and starts the collector.
 *
 * Both get SIGTERM together with the backends when the server shuts down, and both outlive the backends: the
 * launcher closes the epoch when it is the memory node's last client, the memory node ends when no client is
 * left.  Both end with exit code 1, so that they come back if somebody else ended them.
 */
#include "sherman.h"

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

#include "../tree/service.h"
#include "shared.h"

/* Seconds until a worker that failed is started again; after a crash of the server it starts at once. */
#define RESTART_S 5

/* How often things are looked at that nobody reports. */
#define HEARTBEAT_MS 2000
#define POLL_MS 20

/* Channels are a power of two and never few: another number makes the memory anew. */
#define LEAST_CHANNELS 256

/* The launcher's plea to the kernel: whoever is killed for memory, it should not be the memory node. */
#define NODE_OOM_SCORE "-900"

static Service *service = NULL;

void
sherman_register_workers(void)
{
	BackgroundWorker worker;

	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade || sherman_embedded_memory_mb == 0)
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
	RegisterBackgroundWorker(&worker);

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	strlcpy(worker.bgw_function_name, "sherman_launcher_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "sherman launcher", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "sherman launcher", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
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
	if (!ShutdownRequestPending && PostmasterIsAlive())
		return false;
	return fabric_server_channels(service_server(service)) == 0;
}

static void
node_publish(pid_t pid, int memory, const char *failure)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->node_pid = pid;
	if (pid != 0)
	{
		sherman_shared->node_serial++;
		sherman_shared->node_memory = memory;
	}
	strlcpy(sherman_shared->node_failure, failure, sizeof(sherman_shared->node_failure));
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	ConditionVariableBroadcast(&sherman_shared->changed);
	sherman_wake_launcher();
}

static void
node_exit(int code, Datum argument)
{
	LWLockReleaseAll();
	node_publish(0, 0, "it has ended");
}

static void
avoid_oom_killer(void)
{
	int			file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (file < 0)
		return;
	/* Only with privileges; without them the value of the postmaster stays. */
	if (write(file, NODE_OOM_SCORE, strlen(NODE_OOM_SCORE)) < 0)
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
	FabricStatus status = service_open(options, &service, detail);

	if (status == FABRIC_PROTOCOL)
	{
		ereport(WARNING, (errmsg("memory \"%s\" is replaced: %s", options->memory_path, detail)));
		unlink(options->memory_path);
		status = service_open(options, &service, detail);
	}
	if (status != FABRIC_OK)
	{
		node_publish(0, 0, detail);
		ereport(FATAL,
				(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
				 errmsg("could not start the sherman memory node: %s", fabric_status_name(status)),
				 errdetail("%s", detail),
				 errhint("See \"sherman.embedded_directory\" and \"sherman.embedded_memory\".")));
	}
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
		.max_trees = SHERMAN_MAX_TREES,
		.log = node_log,
		.should_stop = node_should_stop
	};

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SIG_IGN);
	BackgroundWorkerUnblockSignals();
	avoid_oom_killer();
	before_shmem_exit(node_exit, (Datum) 0);

	node_open(&options);
	node_publish(MyProcPid, service_memory_state(service), "");
	if (service_run(service) != FABRIC_OK)
		ereport(LOG, (errmsg("the sherman memory node's loop has failed")));
	service_close(service, 0, false);
	proc_exit(1);
}

/* ---- the launcher ---- */

void
sherman_wake_launcher(void)
{
	Latch	   *latch;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	latch = sherman_shared->launcher_latch;
	if (latch != NULL)
		SetLatch(latch);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

static void
launcher_exit(int code, Datum argument)
{
	LWLockReleaseAll();
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->launcher_pid = 0;
	sherman_shared->launcher_latch = NULL;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

static void
launcher_failed(const char *failure)
{
	bool		news;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	news = strcmp(sherman_shared->launcher_failure, failure) != 0;
	strlcpy(sherman_shared->launcher_failure, failure, sizeof(sherman_shared->launcher_failure));
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	if (news && failure[0] != '\0')
		ereport(LOG, (errmsg("sherman launcher: %s", failure)));
}

/*
 * Sleeps until woken, at most so long; interrupts are served, a request to end is only seen.
 */
static void
launcher_sleep(long milliseconds)
{
	int			events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, milliseconds,
								   PG_WAIT_EXTENSION);

	if (events & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/*
 * Whether no process is inside an operation that locks; waits a while for it.
 */
static bool
operations_have_ended(void)
{
	TimestampTz began = GetCurrentTimestamp();

	for (int i = 0; i < sherman_shared->slots; i++)
	{
		while (pg_atomic_read_u32(&sherman_shared->slot[i].busy) != 0)
		{
			if (TimestampDifferenceExceeds(began, GetCurrentTimestamp(), 2 * sherman_operation_timeout_ms))
				return false;
			launcher_sleep(POLL_MS);
		}
	}
	return true;
}

/*
 * Becomes the memory node's current incarnation; all channels of the one before are dead then.
 */
static bool
fence(bool resume, uint32 *incarnation, char *detail, Size detail_bytes)
{
	FabricOptions options;
	Fabric	   *fabric;
	FabricEndpoint *endpoint;
	FabricStatus status;
	char		address[MAXPGPATH];
	uint32		instance;

	sherman_fabric_options(&options, 0);
	sherman_pool_address(address, sizeof(address));
	status = fabric_open(&options, &fabric);
	if (status == FABRIC_OK)
	{
		status = fabric_connect(fabric, address, &endpoint);
		if (status == FABRIC_OK)
			status = fabric_attach(endpoint, resume, sherman_shared->launcher_nonce, &instance, incarnation);
		snprintf(detail, detail_bytes, "cannot attach to \"%s\": %s (%s)", address,
				 fabric_status_name(status), fabric_detail(fabric));
		fabric_close(fabric);
	}
	return status == FABRIC_OK;
}

/*
 * Lets everybody use the memory node, and plans be made anew that were made without our indexes.
 */
static void
publish_attach(void)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->wait_began = 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	pg_atomic_write_u32(&sherman_shared->phase, SHERMAN_PHASE_ATTACHED);
	sherman_state_changed();
	ConditionVariableBroadcast(&sherman_shared->changed);
	sherman_invalidate_plans();
}

/*
 * Attaches to the memory node as it now is.  False: not yet.
 */
static bool
attach(void)
{
	ShermanShared *shared = sherman_shared;
	char		detail[FABRIC_DETAIL_BYTES];
	TreeClient *client;
	uint64		serial;
	uint32		incarnation;
	bool		same_node;
	bool		memory_clean;
	bool		again = pg_atomic_read_u32(&shared->epoch) != 0;
	pid_t		node;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	node = shared->node_pid;
	serial = shared->node_serial;
	memory_clean = shared->node_memory == FABRIC_MEMORY_CLEAN;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	if (node == 0)
		return false;
	same_node = again && serial == shared->attached_serial;

	if (!fence(false, &incarnation, detail, sizeof(detail)))
	{
		launcher_failed(detail);
		return false;
	}
	/* They have lost their channels: each meets an error soon. */
	if (again && !operations_have_ended())
	{
		launcher_failed("a process does not leave its operation on the memory node");
		return false;
	}
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	shared->incarnation = incarnation;
	shared->connection++;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	sherman_connection_close();
	client = sherman_connection_open(detail, sizeof(detail));
	/* Nothing was lost if only channels were fenced: the epoch goes on. */
	if (client == NULL ||
		(!same_node && !sherman_recovery_attach(client, again, memory_clean, detail, sizeof(detail))))
	{
		launcher_failed(detail);
		return false;
	}
	shared->attached_serial = serial;
	launcher_failed("");
	publish_attach();
	ereport(LOG, (errmsg("attached to the sherman memory node: epoch %u", sherman_epoch())));
	return true;
}

/*
 * A launcher that was started anew while the instance is attached goes on with the same epoch.
 */
static void
resume(void)
{
	char		detail[FABRIC_DETAIL_BYTES];
	uint32		incarnation;

	if (sherman_phase() != SHERMAN_PHASE_ATTACHED)
		return;
	if (!fence(true, &incarnation, detail, sizeof(detail)))
		launcher_failed(detail);
	else if (incarnation == sherman_shared->incarnation &&
			 sherman_connection_open(detail, sizeof(detail)) != NULL)
		return;
	sherman_connection_lost();
}

/*
 * Is the memory node still the one that we are attached to?
 */
static void
check_node(void)
{
	bool		gone;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	gone = sherman_shared->node_pid == 0 || sherman_shared->node_serial != sherman_shared->attached_serial;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	if (gone && sherman_phase() == SHERMAN_PHASE_ATTACHED)
		sherman_connection_lost();
}

/*
 * Asked to end: if no other client is left the epoch ends clean.  False: others are there, who may still
 * change trees. Nobody tells whether the server is shutting down; if it is not, we are started again soon and
 * resume.
 */
static bool
may_end(void)
{
	TreeClient *client = sherman_client_if_ready();
	TreeNodeStatus node;
	TreeStatus	status;

	if (client == NULL)
		return true;
	status = tree_node_status(client, 0, &node);
	if (status == TREE_OK && node.channels > 1)
		return false;
	if (status == TREE_OK)
		status = tree_epoch_close(client, 0, pg_atomic_read_u32(&sherman_shared->epoch));
	if (status != TREE_OK)
		ereport(LOG,
				(errmsg("could not close the epoch at the sherman memory node: %s", tree_status_name(status)),
				 errdetail("%s", tree_detail(client))));
	return true;
}

static void
launcher_start(void)
{
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
	resume();
	for (;;)
	{
		long		pause = HEARTBEAT_MS;

		check_node();
		if (ShutdownRequestPending)
		{
			if (may_end())
				break;
			pause = POLL_MS;
		}
		else if (sherman_phase() == SHERMAN_PHASE_ATTACHED)
			pause = sherman_collect_round();
		else if (!attach())
			pause = sherman_shared->node_pid == 0 ? HEARTBEAT_MS : 10 * POLL_MS;
		else
			continue;
		launcher_sleep(Min(pause, HEARTBEAT_MS));
	}
	proc_exit(1);
}
