/*
 * connection.c
 *		This process's client at the memory node: opened on first use, closed when the process ends or when
 *		the launcher has attached anew; and what PostgreSQL lends to the tree: latches, clock, memory,
 *		interrupts.
 */
#include "sherman.h"

#include <poll.h>
#include <time.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "shared.h"

/* Sleeps in the fabric are cut into such pieces, to look for a cancel and for the postmaster's death. */
#define WAIT_SLICE_MS 100

/*
 * A cancel ends a wait for the memory node only if it has not answered for so long: a wait that was given up
 * leaves doubt, whose end must be waited for in its turn, and a memory node that lives answers at once.
 */
#define CANCEL_PATIENCE_US 1000000

/* Waits that follow each other so closely are one. */
#define WAIT_GAP_US 10000

/* Descriptors that the fabric waits for at most. */
#define WAIT_DESCRIPTORS 4

/* This process's connection; client NULL: there is none. */
static struct
{
	Fabric	   *fabric;
	TreeClient *client;
	uint64		number;			/* ShermanShared.connection when it was opened */
	bool		failed;			/* not to be used any more; given up at the end of the transaction */
	bool		exit_registered;
} connection;

/* Trees of the connection were handed out in this transaction: scans may refer to it. */
bool		sherman_connection_used = false;

/* ---- what the fabric and the tree are lent ---- */

/*
 * Whether the running command should end.  Asked while nothing is held.
 */
static bool
should_stop(void *argument)
{
	if (unlikely(InterruptPending) && InterruptHoldoffCount == 0 && CritSectionCount == 0 &&
		(QueryCancelPending || ProcDiePending))
		return true;
	return !PostmasterIsAlive();
}

static uint64_t
now_us(void *argument)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/*
 * Fabric's wait hook.  It leaves the latch alone, whose wake-ups are the tree's.
 */
static int
wait_hook(void *argument, const int *descriptors, int count, int milliseconds)
{
	static uint64 began = 0;
	static uint64 ended = 0;
	struct pollfd polled[WAIT_DESCRIPTORS];
	uint64		now = now_us(argument);
	int			ready;

	Assert(count <= WAIT_DESCRIPTORS);
	if (now - ended > WAIT_GAP_US)
		began = now;
	if (now - began > CANCEL_PATIENCE_US && should_stop(argument))
		return -1;
	for (int i = 0; i < count; i++)
		polled[i] = (struct pollfd) {.fd = descriptors[i], .events = POLLIN};
	pgstat_report_wait_start(PG_WAIT_EXTENSION);
	ready = poll(polled, count, Min(milliseconds, WAIT_SLICE_MS));
	pgstat_report_wait_end();
	/* What was answered is over. */
	ended = ready > 0 ? 0 : now_us(argument);
	/* An interrupted or a cut sleep is a short one: the fabric looks at its deadline and comes again. */
	return Max(ready, 0);
}

static void
sleep_for(void *argument, uint32_t slot, uint32_t milliseconds)
{
	int			events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_POSTMASTER_DEATH, milliseconds,
								   PG_WAIT_EXTENSION);

	if (events & WL_LATCH_SET)
		ResetLatch(MyLatch);
}

static void
wake(void *argument, uint32_t slot)
{
	SetLatch(&ProcGlobal->allProcs[slot].procLatch);
}

static void
hold(void *argument)
{
	HOLD_INTERRUPTS();
	pg_atomic_write_u32(&sherman_shared->slot[MyProc->pgprocno].busy, 1);
}

static void
resume(void *argument)
{
	pg_atomic_write_u32(&sherman_shared->slot[MyProc->pgprocno].busy, 0);
	RESUME_INTERRUPTS();
}

/*
 * Memory for handles: the caller's context decides how long they live.
 */
static void *
allocate(void *argument, size_t bytes)
{
	return MemoryContextAllocExtended(CurrentMemoryContext, bytes, MCXT_ALLOC_NO_OOM | MCXT_ALLOC_HUGE);
}

/*
 * Memory that a handle grows by lives as long as the handle, whatever the caller's context is by then.
 */
static void *
allocate_beside(void *argument, const void *handle, size_t bytes)
{
	return MemoryContextAllocExtended(GetMemoryChunkContext((void *) handle), bytes,
									  MCXT_ALLOC_NO_OOM | MCXT_ALLOC_HUGE);
}

static void
release(void *argument, void *memory)
{
	pfree(memory);
}

void
sherman_fabric_options(FabricOptions *options, uint32 incarnation)
{
	memset(options, 0, sizeof(*options));
	options->operation_timeout_ms = (uint32_t) sherman_operation_timeout_ms;
	options->connect_timeout_ms = (uint32_t) sherman_operation_timeout_ms;
	options->wait = wait_hook;
	options->cluster[0] = sherman_shared->local.cluster[0];
	options->cluster[1] = sherman_shared->local.cluster[1];
	options->incarnation = incarnation;
}

void
sherman_pool_address(char *address, Size bytes)
{
	snprintf(address, bytes, "shm:%s", SHERMAN_SOCKET);
}

/* ---- opening and closing ---- */

/*
 * Runs before the transaction of a process that ends is aborted (callbacks run in reverse order): what is in
 * doubt is settled while the transaction still counts as running.
 */
static void
connection_exit(int code, Datum argument)
{
	sherman_connection_close();
}

void
sherman_connection_close(void)
{
	TreeStatus	status;

	if (connection.fabric == NULL)
		return;
	sherman_opened_close();
	status = tree_client_close(connection.client);
	connection.client = NULL;
	fabric_close(connection.fabric);
	connection.fabric = NULL;
	connection.failed = false;
	/* A doubt that cannot be ended here is ended by the launcher's fence; nobody works until then. */
	if (status == TREE_UNREACHABLE)
		sherman_connection_lost();
}

/*
 * Opens the tree's client over a connected endpoint.
 */
static TreeStatus
open_client(FabricEndpoint *endpoint)
{
	TreeClientOptions options = {
		.shared = sherman_tree_shared,
		.slot = (uint32_t) MyProc->pgprocno,
		.environment = {
			.now_us = now_us, .sleep = sleep_for, .wake = wake, .should_stop = should_stop,
			.hold = hold, .resume = resume
		},
		.endpoints = {endpoint},
		.nodes = 1,
		.lock_timeout_ms = (uint32_t) sherman_operation_timeout_ms,
		.allocate = allocate,
		.release = release,
		.allocate_beside = allocate_beside
	};
	MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
	TreeStatus	status = tree_client_open(&options, &connection.client);

	MemoryContextSwitchTo(caller);
	return status;
}

TreeClient *
sherman_connection_open(char *detail, Size detail_bytes)
{
	FabricOptions options;
	FabricEndpoint *endpoint;
	FabricStatus status;
	TreeStatus	opened;
	char		address[MAXPGPATH];
	uint32		incarnation;
	uint64		number;

	if (!connection.exit_registered)
	{
		before_shmem_exit(connection_exit, (Datum) 0);
		connection.exit_registered = true;
	}
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	incarnation = sherman_shared->incarnation;
	number = sherman_shared->connection;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	sherman_fabric_options(&options, incarnation);
	sherman_pool_address(address, sizeof(address));

	status = fabric_open(&options, &connection.fabric);
	if (status != FABRIC_OK)
	{
		strlcpy(detail, fabric_status_name(status), detail_bytes);
		return NULL;
	}
	status = fabric_connect(connection.fabric, address, &endpoint);
	if (status == FABRIC_OK && fabric_capabilities(endpoint)->lock_words != SHERMAN_LOCK_WORDS)
		status = FABRIC_PROTOCOL;
	if (status != FABRIC_OK)
		snprintf(detail, detail_bytes, "cannot connect to \"%s\": %s (%s)", address,
				 fabric_status_name(status), fabric_detail(connection.fabric));
	else
	{
		opened = open_client(endpoint);
		if (opened == TREE_OK)
		{
			connection.number = number;
			connection.failed = false;
			return connection.client;
		}
		strlcpy(detail, tree_status_name(opened), detail_bytes);
	}
	fabric_close(connection.fabric);
	connection.fabric = NULL;
	return NULL;
}

void
sherman_connection_lost(void)
{
	uint32		attached = SHERMAN_PHASE_ATTACHED;

	if (sherman_shared == NULL ||
		!pg_atomic_compare_exchange_u32(&sherman_shared->phase, &attached, SHERMAN_PHASE_LOST))
		return;
	sherman_state_changed();
	sherman_invalidate_plans();
	sherman_wake_launcher();
}

void
sherman_connection_trouble(void)
{
	connection.failed = true;
	sherman_connection_lost();
}

void
sherman_connection_refresh(void)
{
	if (connection.client != NULL && !sherman_connection_used &&
		(connection.failed || connection.number != sherman_shared->connection))
		sherman_connection_close();
}

void
sherman_connection_end_transaction(void)
{
	sherman_connection_used = false;
	sherman_connection_refresh();
}

/*
 * The connection, if it is good; opens it if there is none.  NULL: `detail` says why not.
 */
static TreeClient *
current_client(char *detail, Size detail_bytes)
{
	if (connection.client != NULL &&
		likely(!connection.failed && connection.number == sherman_shared->connection))
		return connection.client;
	if (connection.client != NULL)
	{
		/* Scans of this transaction may still refer to it. */
		connection.failed = true;
		strlcpy(detail, "the memory node was attached anew during this transaction", detail_bytes);
		return NULL;
	}
	return sherman_connection_open(detail, detail_bytes);
}

TreeClient *
sherman_client_if_ready(void)
{
	char		detail[FABRIC_DETAIL_BYTES];

	if (sherman_shared == NULL || MyProc == NULL || sherman_phase() != SHERMAN_PHASE_ATTACHED)
		return NULL;
	return current_client(detail, sizeof(detail));
}

TreeClient *
sherman_client(void)
{
	char		detail[FABRIC_DETAIL_BYTES] = "";
	TreeClient *client = NULL;

	if (likely(connection.client != NULL && !connection.failed && sherman_phase() == SHERMAN_PHASE_ATTACHED &&
			   connection.number == sherman_shared->connection))
	{
		sherman_connection_used = true;
		return connection.client;
	}
	if (sherman_shared == NULL || !IsPostmasterEnvironment || RecoveryInProgress())
		sherman_report_state(ERROR, NULL, SHERMAN_HIDDEN, SHERMAN_REASON_NONE);
	sherman_wait_attached();
	sherman_connection_refresh();
	if (sherman_phase() == SHERMAN_PHASE_ATTACHED)
		client = current_client(detail, sizeof(detail));
	if (client != NULL)
	{
		sherman_connection_used = true;
		return client;
	}
	CHECK_FOR_INTERRUPTS();
	if (detail[0] == '\0')
	{
		LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
		strlcpy(detail, sherman_shared->launcher_failure[0] != '\0' ? sherman_shared->launcher_failure :
				sherman_shared->node_failure, sizeof(detail));
		LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	}
	ereport(ERROR,
			(errcode(ERRCODE_CONNECTION_FAILURE),
			 errmsg("the memory node is not attached"),
			 detail[0] != '\0' ? errdetail_internal("%s", detail) : 0,
			 errhint("See the server's log and the view \"sherman_memory_nodes\".")));
	return NULL;				/* not reached */
}
