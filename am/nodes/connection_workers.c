/*
 * connection_workers.c
 *		Connection workers: background workers that hold the connections to memory nodes and run the chains that backends
 *		hand them through shared memory (rdma/proxy.h; connection_proxy.c), and what workers are lent for that.
 *
 * A worker that is asked to end while the server goes on does so at once, and is started again: its clients find out and
 * wait for the next one.  When the server shuts down it stays until its last client has gone.
 */
#include "am/base/sherman.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/pidfile.h"
#include "utils/tuplestore.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/nodes/connection_proxy.h"
#include "am/nodes/nodes.h"

/* Clients whose chains wait are without a worker for so long: the least that PostgreSQL allows. */
#define WORKER_RESTART_S 1

/* How often a worker looks whether it is to end. */
#define WORKER_STEP_MS 200

#define WORKER_COLUMNS 10

/* This process, if it is a worker. */
static struct
{
	FabricWorker *worker;
	WaitEventSet *events;		/* of the latch and the descriptors below */
	int			descriptors[FABRIC_WORKER_DESCRIPTORS];
	int			descriptor_count;
} self;

PG_FUNCTION_INFO_V1(sherman_connection_workers_info);

/* ---- workers ---- */

static void
wake_client(void *argument, uint32_t owner)
{
	SetLatch(&ProcGlobal->allProcs[owner].procLatch);
}

/*
 * Whether the server is shutting down. Workers are not told why they are to end, but pg_ctl's file shows it.
 */
static bool
server_is_stopping(void)
{
	char		line[MAXPGPATH];
	bool		stopping = false;
	FILE	   *file = AllocateFile("postmaster.pid", "r");

	if (file == NULL)
		return false;
	for (int i = 1; fgets(line, sizeof(line), file) != NULL; i++)
	{
		if (i == LOCK_FILE_LINE_PM_STATUS)
			stopping = strncmp(line, PM_STATUS_STOPPING, strlen(PM_STATUS_STOPPING)) == 0;
	}
	FreeFile(file);
	return stopping;
}

/*
 * Makes the set of events fit these descriptors.
 */
static void
watch(const int *descriptors, int count)
{
	if (self.events != NULL && count == self.descriptor_count &&
		memcmp(descriptors, self.descriptors, count * sizeof(int)) == 0)
		return;
	if (self.events != NULL)
		FreeWaitEventSet(self.events);
	self.events = compat_wait_events(count + 2);
	AddWaitEventToSet(self.events, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(self.events, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	for (int i = 0; i < count; i++)
		AddWaitEventToSet(self.events, WL_SOCKET_READABLE, descriptors[i], NULL, NULL);
	memcpy(self.descriptors, descriptors, count * sizeof(int));
	self.descriptor_count = count;
}

/*
 * The worker's sleep.  A descriptor may be another connection's by the next time: sets with descriptors are not kept.
 */
static int
worker_wait(void *argument, const int *descriptors, int count, int milliseconds)
{
	WaitEvent	event;
	int			ready;

	Assert(count <= (int) FABRIC_WORKER_DESCRIPTORS);
	watch(descriptors, count);
	ready = WaitEventSetWait(self.events, milliseconds, &event, 1, sherman_wait_event(SHERMAN_WAIT_CONNECTION_WORKER_MAIN));
	if (ready > 0 && (event.events & WL_LATCH_SET) != 0)
	{
		ResetLatch(MyLatch);
		ready = 0;
	}
	if (count > 0)
	{
		FreeWaitEventSet(self.events);
		self.events = NULL;
	}
	return ready;
}

static void
worker_exit(int code, Datum argument)
{
	uint32		number = DatumGetUInt32(argument);

	pg_atomic_write_u32(&connection_proxy.shared->pid[number], 0);
	fabric_worker_close(self.worker);
	self.worker = NULL;
}

static void
worker_start(uint32 number)
{
	FabricWorkerOptions options = {
		.area = connection_proxy.area,
		.worker = number,
		.wake_client = wake_client,
		.wait = worker_wait
	};

	sherman_fabric_options(&options.fabric, 0);
	if (fabric_worker_open(&options, &self.worker) != FABRIC_OK)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory for a sherman connection worker")));
	before_shmem_exit(worker_exit, UInt32GetDatum(number));
	pg_atomic_write_u32(&connection_proxy.shared->pgprocno[number], compat_proc_number());
	pg_atomic_write_u32(&connection_proxy.shared->pid[number], (uint32) MyProcPid);
}

/*
 * Main function of a connection worker; the argument is its number.
 */
void
sherman_connection_worker_main(Datum argument)
{
	FabricOptions reloaded;
	bool		stopping = false;

	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	worker_start(DatumGetUInt32(argument));
	for (;;)
	{
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			/* The next connection reads the key file that is set now. */
			sherman_fabric_options(&reloaded, 0);
		}
		if (ShutdownRequestPending && !stopping)
			stopping = server_is_stopping();
		if (ShutdownRequestPending && (!stopping || fabric_worker_clients(self.worker) == 0))
			break;
		if (fabric_worker_step(self.worker, WORKER_STEP_MS) != FABRIC_OK)
			break;
	}
	proc_exit(1);
}

void
sherman_register_connection_workers(void)
{
	BackgroundWorker worker;

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = WORKER_RESTART_S;
	strlcpy(worker.bgw_library_name, "sherman", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "sherman_connection_worker_main", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "sherman connection worker", BGW_MAXLEN);
	for (int i = 0; i < sherman_connection_workers; i++)
	{
		snprintf(worker.bgw_name, BGW_MAXLEN, "sherman connection worker %d", i + 1);
		worker.bgw_main_arg = UInt32GetDatum((uint32) i);
		RegisterBackgroundWorker(&worker);
	}
}

/* ---- the view ---- */

/*
 * One row for each connection worker.
 */
Datum
sherman_connection_workers_info(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (uint32 i = 0; connection_proxy.area != NULL && i < (uint32) sherman_connection_workers; i++)
	{
		uint32		pid = pg_atomic_read_u32(&connection_proxy.shared->pid[i]);
		FabricWorkerFigures figures;
		Datum		values[WORKER_COLUMNS];
		bool		nulls[WORKER_COLUMNS] = {false};

		fabric_worker_figures(connection_proxy.area, i, &figures);
		values[0] = Int32GetDatum((int32) i + 1);
		values[1] = Int32GetDatum((int32) pid);
		nulls[1] = pid == 0;
		values[2] = Int32GetDatum((int32) figures.clients);
		values[3] = Int32GetDatum((int32) figures.endpoints);
		values[4] = Int64GetDatum((int64) figures.lives);
		values[5] = Int64GetDatum((int64) figures.chains);
		values[6] = Int64GetDatum((int64) figures.operations);
		values[7] = Int64GetDatum((int64) figures.calls);
		values[8] = Int64GetDatum((int64) figures.resets);
		values[9] = Int64GetDatum((int64) figures.lost);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
