/*
 * connection_workers.c
 *		Connection workers: background workers that hold the connections to memory nodes and run the chains that backends
 *		hand them through shared memory (rdma/proxy.h), and what backends and workers are lent for that.
 *
 * A worker that is asked to end while the server goes on does so at once, and is started again: its clients find out and
 * wait for the next one.  When the server shuts down it stays until its last client has gone.
 */
#include "sherman.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/pidfile.h"
#include "utils/tuplestore.h"

#include "shared.h"

/* Clients whose chains wait are without a worker for so long: the least that PostgreSQL allows. */
#define WORKER_RESTART_S 1

/* How often a worker looks whether it is to end. */
#define WORKER_STEP_MS 200

/* The area begins on a line of its own. */
#define AREA_ALIGN 128

#define WORKER_COLUMNS 10

typedef struct WorkersShared
{
	pg_atomic_uint32 pgprocno[FABRIC_PROXY_MAX_WORKERS];	/* whose latch wakes the worker */
	pg_atomic_uint32 pid[FABRIC_PROXY_MAX_WORKERS]; /* 0 = it does not run */
} WorkersShared;

static struct
{
	WorkersShared *shared;
	FabricProxyArea *area;		/* NULL: there are no workers */
	FabricProxy proxy;			/* what this process lends as a client */
	FabricWorker *worker;		/* what it is, if it is a worker */
	WaitEventSet *events;		/* of the latch and the descriptors below */
	int			descriptors[FABRIC_WORKER_DESCRIPTORS];
	int			descriptor_count;
} workers;

PG_FUNCTION_INFO_V1(sherman_connection_workers_info);

/* ---- shared memory ---- */

static uint32
slot_count(void)
{
	const char *problem;
	int			nodes = sherman_parse_nodes(sherman_memory_node_list, NULL, &problem);

	/* Who gets no slot, perhaps as memory nodes were added since, connects for itself. */
	return (uint32) MaxBackends * Max(nodes, 1);
}

Size
sherman_connection_workers_bytes(void)
{
	if (sherman_connection_workers == 0)
		return 0;
	return add_size(add_size(sizeof(WorkersShared), AREA_ALIGN),
					fabric_proxy_bytes((uint32) sherman_connection_workers, slot_count()));
}

void
sherman_connection_workers_initialize(void)
{
	uint32		slots = slot_count();
	bool		found;
	char	   *memory;
	char	   *area;

	if (sherman_connection_workers == 0)
		return;
	memory = ShmemInitStruct("sherman connection workers", sherman_connection_workers_bytes(), &found);
	workers.shared = (WorkersShared *) memory;
	area = (char *) TYPEALIGN(AREA_ALIGN, memory + sizeof(WorkersShared));
	/* Shared memory is made anew, of zeroes, after a crash, too: what is never used is never touched. */
	workers.area = fabric_proxy_initialize(area, (uint32) sherman_connection_workers, slots);
	for (uint32 i = 0; i < FABRIC_PROXY_MAX_WORKERS; i++)
	{
		pg_atomic_init_u32(&workers.shared->pgprocno[i], 0);
		pg_atomic_init_u32(&workers.shared->pid[i], 0);
	}
}

/* ---- clients ---- */

static void
wake_worker(void *argument, uint32_t worker)
{
	if (pg_atomic_read_u32(&workers.shared->pid[worker]) != 0)
		SetLatch(&ProcGlobal->allProcs[pg_atomic_read_u32(&workers.shared->pgprocno[worker])].procLatch);
}

const FabricProxy *
sherman_connection_proxy(void (*sleep) (void *argument, int milliseconds))
{
	if (workers.area == NULL || MyProc == NULL)
		return NULL;
	workers.proxy.area = workers.area;
	workers.proxy.owner = (uint32_t) MyProc->pgprocno;
	workers.proxy.wake_worker = wake_worker;
	workers.proxy.sleep = sleep;
	return &workers.proxy;
}

/* ---- workers ---- */

static void
wake_client(void *argument, uint32_t owner)
{
	SetLatch(&ProcGlobal->allProcs[owner].procLatch);
}

/*
 * Has the server been told to shut down?  Nobody tells workers why they are to end, but pg_ctl's file says it.
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
	if (workers.events != NULL && count == workers.descriptor_count &&
		memcmp(descriptors, workers.descriptors, count * sizeof(int)) == 0)
		return;
	if (workers.events != NULL)
		FreeWaitEventSet(workers.events);
	workers.events = CreateWaitEventSet(TopMemoryContext, count + 2);
	AddWaitEventToSet(workers.events, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(workers.events, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	for (int i = 0; i < count; i++)
		AddWaitEventToSet(workers.events, WL_SOCKET_READABLE, descriptors[i], NULL, NULL);
	memcpy(workers.descriptors, descriptors, count * sizeof(int));
	workers.descriptor_count = count;
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
	ready = WaitEventSetWait(workers.events, milliseconds, &event, 1, PG_WAIT_EXTENSION);
	if (ready > 0 && (event.events & WL_LATCH_SET) != 0)
	{
		ResetLatch(MyLatch);
		ready = 0;
	}
	if (count > 0)
	{
		FreeWaitEventSet(workers.events);
		workers.events = NULL;
	}
	return ready;
}

static void
worker_exit(int code, Datum argument)
{
	uint32		number = DatumGetUInt32(argument);

	pg_atomic_write_u32(&workers.shared->pid[number], 0);
	fabric_worker_close(workers.worker);
	workers.worker = NULL;
}

static void
worker_start(uint32 number)
{
	FabricWorkerOptions options = {
		.area = workers.area,
		.worker = number,
		.wake_client = wake_client,
		.wait = worker_wait
	};

	sherman_fabric_options(&options.fabric, 0);
	if (fabric_worker_open(&options, &workers.worker) != FABRIC_OK)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory for a sherman connection worker")));
	before_shmem_exit(worker_exit, UInt32GetDatum(number));
	pg_atomic_write_u32(&workers.shared->pgprocno[number], (uint32) MyProc->pgprocno);
	pg_atomic_write_u32(&workers.shared->pid[number], (uint32) MyProcPid);
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
		if (ShutdownRequestPending && (!stopping || fabric_worker_clients(workers.worker) == 0))
			break;
		if (fabric_worker_step(workers.worker, WORKER_STEP_MS) != FABRIC_OK)
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
	for (uint32 i = 0; workers.area != NULL && i < (uint32) sherman_connection_workers; i++)
	{
		uint32		pid = pg_atomic_read_u32(&workers.shared->pid[i]);
		FabricWorkerFigures figures;
		Datum		values[WORKER_COLUMNS];
		bool		nulls[WORKER_COLUMNS] = {false};

		fabric_worker_figures(workers.area, i, &figures);
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
