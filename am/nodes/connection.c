/*
 * connection.c
 *		This process's client, and its connections to memory nodes: each made on first use, given up when the
 *		launcher has attached the memory node anew; and what PostgreSQL lends to the tree: latches, clock,
 *		memory, interrupts.
 */
#include "am/base/sherman.h"

#include <poll.h>
#include <time.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/nodes/nodes.h"
#include "am/nodes/traffic.h"

/* Sleeps in the fabric are cut into such pieces, to look for a cancel and for the postmaster's death. */
#define WAIT_SLICE_MS 100

/*
 * A cancel ends a wait for the memory node only if it has not answered for so long: a wait that was given up leaves
 * an indeterminate chain, whose end must be waited for in its turn; and a healthy memory node answers at once.
 */
#define CANCEL_PATIENCE_US 1000000

/* Waits that follow each other so closely are one. */
#define WAIT_GAP_US 10000

/* Descriptors that the fabric waits for at most. */
#define WAIT_DESCRIPTORS 4

/* The launcher looks after all memory nodes: it waits for one of them no longer than this. */
#define LAUNCHER_PATIENCE_MS 3000

/* How long a session of a standby waits for the reader, which looks at once when it is woken; and between two looks. */
#define READER_PATIENCE_MS 3000
#define READER_LOOK_MS 10

/* This process's connection to one memory node. */
typedef struct NodeConnection
{
	Fabric	   *fabric;			/* NULL: there is none */
	uint64		serial;			/* ShermanNode.serial when it was made */
	uint64		member;			/* name of the memory, of this or the last connection of the transaction */
	FabricStatus status;		/* of the last attempt */
	char		failure[SHERMAN_FAILURE_BYTES]; /* "" = it did not fail */
} NodeConnection;

static struct
{
	TreeClient *client;			/* NULL: not opened yet */
	NodeConnection node[TREE_MAX_NODES];
	int			positions;		/* of those below, this process has asked for a connection to some */
	bool		launcher;		/* this process looks after memory nodes: the launcher or the reader */
	bool		reader;			/* `client` only reads, what the primary of this standby has */
	bool		read;			/* then: it was used in this transaction */
	TreeWalLimits limits;		/* then: what WAL positions prove, as far as this server has replayed */
	void		(*before_close) (void); /* gives up what refers to the client; NULL: there is nothing */
	uint64		wait_began;		/* of the present wait for a memory node, in microseconds */
	uint64		wait_ended;		/* of its last sleep; 0 = it is over */
	uint64		waited_us;		/* in all, as far as it was measured */
	uint64		silence;		/* since when no memory node has answered, for tree and fabric */
	struct StreamContext *tls;	/* the postmaster's, which all its children have; NULL: it made none */
	char		key_file[MAXPGPATH];	/* the setting's own may be freed while a connection refers to it */
} connection;

int			sherman_traffic_measured = 0;

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
	return ShutdownRequestPending || !PostmasterIsAlive();
}

static uint64_t
now_us(void *argument)
{
	return sherman_monotonic_us();
}

/*
 * Ends a process that waits for a memory node when its postmaster is gone, and perhaps the memory node with it: as SIGKILL
 * would.  Nothing that it holds or unverified leaves outlives the next attach, and as long as it lives no server can be started.
 */
static void
exit_without_postmaster(void)
{
	if (unlikely(sherman_postmaster_is_gone()))
		_exit(2);
}

/*
 * Notes the begin of a wait, unless the last one has not ended.
 */
static void
note_wait(uint64 now)
{
	if (now - connection.wait_ended > WAIT_GAP_US)
		connection.wait_began = now;
}

/*
 * Fabric's wait hook.  It leaves the latch alone, whose wake-ups are the tree's.
 */
static int
wait_hook(void *argument, const int *descriptors, int count, int milliseconds)
{
	struct pollfd polled[WAIT_DESCRIPTORS];
	uint64		now = now_us(argument);
	int			ready;

	Assert(count <= WAIT_DESCRIPTORS);
	exit_without_postmaster();
	note_wait(now);
	if (now - connection.wait_began > CANCEL_PATIENCE_US && should_stop(argument))
		return -1;
	for (int i = 0; i < count; i++)
		polled[i] = (struct pollfd) {.fd = descriptors[i], .events = POLLIN};
	pgstat_report_wait_start(sherman_wait_event(SHERMAN_WAIT_MEMORY_NODE));
	ready = poll(polled, count, Min(milliseconds, WAIT_SLICE_MS));
	pgstat_report_wait_end();
	/* Behind each sleep for a connection worker it is asked without one whether to stop. */
	if (unlikely(sherman_traffic_measured > 0) && milliseconds > 0)
		connection.waited_us += now_us(argument) - now;
	/* What was answered is over. */
	connection.wait_ended = ready > 0 ? 0 : now_us(argument);
	/* An interrupted or a cut sleep is a short one: the fabric looks at its deadline and comes again. */
	return Max(ready, 0);
}

static void
sleep_as(ShermanWait wait, uint32_t milliseconds)
{
	int			events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_POSTMASTER_DEATH, milliseconds,
								   sherman_wait_event(wait));

	if (events & WL_POSTMASTER_DEATH)
		exit_without_postmaster();
	if (events & WL_LATCH_SET)
		ResetLatch(MyLatch);
}

static void
sleep_for(void *argument, uint32_t slot, uint32_t milliseconds)
{
	sleep_as(SHERMAN_WAIT_NODE_LOCK, milliseconds);
}

/*
 * Sleeps until a connection worker has answered. It may consume other wake-ups of the latch: code that waits for one
 * checks its condition before it sleeps.
 */
static void
sleep_for_worker(void *argument, int milliseconds)
{
	uint64		now = now_us(argument);

	note_wait(now);
	sleep_as(SHERMAN_WAIT_CONNECTION_WORKER, (uint32_t) milliseconds);
	connection.wait_ended = now_us(argument);
	if (unlikely(sherman_traffic_measured > 0))
		connection.waited_us += connection.wait_ended - now;
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
	pg_atomic_write_u32(&sherman_shared->slot[compat_proc_number()].busy, 1);
}

static void
resume(void *argument)
{
	pg_atomic_write_u32(&sherman_shared->slot[compat_proc_number()].busy, 0);
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
sherman_connection_before_close(void (*callback) (void))
{
	connection.before_close = callback;
}

void
sherman_connection_launcher(void)
{
	connection.launcher = true;
}

/*
 * A chain that is not answered is settled by a reset before its error is raised: both together take no longer
 * than the setting says. For what is waited for alone; connect_known() has one deadline for all.
 */
void
sherman_fabric_options(FabricOptions *options, uint32 incarnation)
{
	int			patience = sherman_operation_timeout_ms / 2;

	if (connection.launcher)
		patience = Min(patience, LAUNCHER_PATIENCE_MS);
	memset(options, 0, sizeof(*options));
	options->operation_timeout_ms = (uint32_t) patience;
	options->connect_timeout_ms = (uint32_t) patience;
	options->wait = wait_hook;
	/* Also behind the end of recovery, until the launcher begins. */
	options->reader = pg_atomic_read_u32(&sherman_shared->standby_reads) != 0;
	memcpy(options->cluster, options->reader ? sherman_shared->followed : sherman_shared->local.cluster, sizeof(options->cluster));
	options->incarnation = incarnation;
	strlcpy(connection.key_file, sherman_key_file, sizeof(connection.key_file));
	options->key_file = connection.key_file[0] != '\0' ? connection.key_file : NULL;
	options->tls = connection.tls;
	/* The launcher has to reach memory nodes whatever the workers do. */
	options->proxy = connection.launcher || options->reader ? NULL : sherman_connection_proxy(sleep_for_worker);
}

FabricStatus
sherman_control_connect(const char *address, Fabric **fabric, FabricEndpoint **endpoint)
{
	FabricOptions options;
	FabricStatus status;

	*fabric = NULL;
	sherman_fabric_options(&options, 0);
	status = fabric_open(&options, fabric);
	return status == FABRIC_OK ? fabric_connect(*fabric, address, endpoint) : status;
}

void
sherman_connection_prepare(void)
{
	if (connection.tls == NULL && sherman_key_file[0] != '\0' && sherman_nodes_are_remote(sherman_memory_node_list))
		connection.tls = fabric_tls_open();
}

/* ---- connections to memory nodes ---- */

/*
 * Connects through a connection worker, or, if there is none for us, directly.
 */
static FabricStatus
connect_address(Fabric *fabric, const char *address, const FabricOptions *options, FabricEndpoint **endpoint)
{
	char		through[SHERMAN_ADDRESS_BYTES + sizeof("proxy:")];
	FabricStatus status = FABRIC_BUSY;

	if (options->proxy != NULL)
	{
		snprintf(through, sizeof(through), "proxy:%s", address);
		status = fabric_connect(fabric, through, endpoint);
	}
	if (status == FABRIC_BUSY || status == FABRIC_NO_MEMORY)
		status = fabric_connect(fabric, address, endpoint);
	return status;
}

/*
 * Connects to a memory node's memory as it is now known.
 */
static FabricEndpoint *
connect_known(NodeConnection *mine, const ShermanNode *known)
{
	FabricOptions options;
	FabricEndpoint *endpoint = NULL;

	mine->failure[0] = '\0';
	sherman_fabric_options(&options, known->incarnation);
	/* What an operation waits for has one deadline, however many attempts, resets and memory nodes it is. */
	options.connect_timeout_ms *= 2;
	options.silence = &connection.silence;
	mine->status = fabric_open(&options, &mine->fabric);
	if (mine->status == FABRIC_OK)
	{
		sherman_crash_point("connect", true);
		mine->status = connect_address(mine->fabric, known->address, &options, &endpoint);
		sherman_crash_point("connect", false);
	}
	if (mine->status == FABRIC_OK && fabric_capabilities(endpoint)->node_uuid[0] == known->memory[0] &&
		(!options.reader || fabric_capabilities(endpoint)->incarnation == known->incarnation))
		return endpoint;
	if (mine->status == FABRIC_OK)
	{
		mine->status = FABRIC_FENCED;
		strlcpy(mine->failure, options.reader ? "the primary has attached anew" : "its memory is new", sizeof(mine->failure));
	}
	else
		sherman_describe_failure(mine->failure, mine->status, mine->fabric);
	fabric_close(mine->fabric);
	mine->fabric = NULL;
	return NULL;
}

static void
copy_known(int position, ShermanNode *known)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	*known = sherman_shared->node[position];
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

/*
 * On a standby, whose primary has attached the memory node anew, as this process has found: waits until the reader has found that, too.
 * Returns whether it has.  An operation that connects may take so much longer than its deadline says.
 */
static bool
await_reader(int position, ShermanNode *known)
{
	uint64		serial = pg_atomic_read_u64(&known->serial);

	sherman_wake_launcher();
	for (int waited = 0; waited < READER_PATIENCE_MS && !should_stop(NULL); waited += READER_LOOK_MS)
	{
		copy_known(position, known);
		if (pg_atomic_read_u64(&known->serial) != serial && pg_atomic_read_u32(&known->phase) == SHERMAN_PHASE_ATTACHED)
			return true;
		pg_usleep(READER_LOOK_MS * 1000L);
	}
	return false;
}

/*
 * The tree's hook: connects to the memory node at a position.
 */
static FabricEndpoint *
connect_node(void *argument, uint32_t position, char *detail)
{
	NodeConnection *mine = &connection.node[position];
	ShermanNode known;
	FabricEndpoint *endpoint;

	connection.positions = Max(connection.positions, (int) position + 1);
	copy_known((int) position, &known);
	if (sherman_node_phase((int) position) != SHERMAN_PHASE_ATTACHED && !connection.launcher)
	{
		strlcpy(detail, "it is not attached", TREE_DETAIL_BYTES);
		return NULL;
	}
	/* What began on the memory that was here before must not go on here. */
	if (mine->member != 0 && mine->member != known.member && !connection.launcher)
	{
		strlcpy(detail, "its memory was replaced during this transaction", TREE_DETAIL_BYTES);
		return NULL;
	}
	endpoint = connect_known(mine, &known);
	if (endpoint == NULL && mine->status == FABRIC_FENCED && !connection.launcher && sherman_is_reading_standby() &&
		await_reader((int) position, &known))
		endpoint = connect_known(mine, &known);
	if (endpoint == NULL)
	{
		strlcpy(detail, mine->failure, TREE_DETAIL_BYTES);
		/* The launcher will see whether that is so for all. */
		if (mine->status == FABRIC_UNREACHABLE || mine->status == FABRIC_FENCED ||
			mine->status == FABRIC_DRAINING)
		{
			pg_atomic_write_u32(&sherman_shared->node[position].suspected, SHERMAN_SUSPECTED);
			sherman_wake_launcher();
		}
		return NULL;
	}
	mine->serial = pg_atomic_read_u64(&known.serial);
	mine->member = known.member;
	return endpoint;
}

bool
sherman_connection_is_made(int position)
{
	return connection.node[position].fabric != NULL;
}

bool
sherman_connection_vouch(int position)
{
	NodeConnection *mine = &connection.node[position];
	ShermanNode *known = &sherman_shared->node[position];
	bool		vouched;

	if (sherman_shared->leaf_cache_bytes == 0 || pg_atomic_read_u32(&known->round_trip_us) == 0 || mine->failure[0] != '\0' ||
		!sherman_node_is_heard(position))
		return false;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	vouched = pg_atomic_read_u32(&known->phase) == SHERMAN_PHASE_ATTACHED && (mine->member == 0 || mine->member == known->member);
	if (vouched)
		mine->member = known->member;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	if (vouched)
		tree_client_vouch(connection.client, position);
	connection.positions = Max(connection.positions, position + 1);
	return vouched;
}

void
sherman_describe_failure(char *failure, FabricStatus status, Fabric *fabric)
{
	const char *detail = fabric != NULL ? fabric_detail(fabric) : "";

	snprintf(failure, SHERMAN_FAILURE_BYTES, detail[0] != '\0' ? "%s: %s" : "%s",
			 fabric_status_name(status), detail);
}

const char *
sherman_connection_failure(int position, FabricStatus *status)
{
	if (connection.node[position].failure[0] != '\0')
		*status = connection.node[position].status;
	return connection.node[position].failure;
}

static void
disconnect_node(int position)
{
	if (connection.node[position].fabric == NULL)
		return;
	tree_client_reconnect(connection.client, position);
	fabric_close(connection.node[position].fabric);
	connection.node[position].fabric = NULL;
}

void
sherman_connection_refresh(void)
{
	for (int i = 0; i < connection.positions; i++)
	{
		if (connection.node[i].fabric != NULL &&
			connection.node[i].serial != pg_atomic_read_u64(&sherman_shared->node[i].serial))
			disconnect_node(i);
	}
}

uint32
sherman_connection_trouble(void)
{
	uint32		trouble = connection.client != NULL ? tree_client_trouble(connection.client) : 0;

	for (int i = 0; i < connection.positions; i++)
	{
		/* A connection that was fenced by an attach since then says nothing of the memory node. */
		if ((trouble & 1u << i) != 0 &&
			connection.node[i].serial == pg_atomic_read_u64(&sherman_shared->node[i].serial))
			sherman_node_lost(i);
	}
	return trouble;
}

/* ---- the client ---- */

/*
 * Runs before the transaction of a process that ends is aborted (callbacks run in reverse order): indeterminate
 * chains are settled while the transaction still counts as running.
 */
static void
connection_exit(int code, Datum argument)
{
	sherman_connection_close();
}

void
sherman_connection_close(void)
{
	if (connection.client == NULL)
		return;
	if (connection.before_close != NULL)
		connection.before_close();
	/*
	 * A chain that stays indeterminate here is ended when the launcher fences the memory node; no process uses that
	 * until then.
	 */
	(void) tree_client_leave(connection.client);
	(void) sherman_connection_trouble();
	(void) tree_client_close(connection.client);
	connection.client = NULL;
	for (int i = 0; i < connection.positions; i++)
	{
		if (connection.node[i].fabric != NULL)
			fabric_close(connection.node[i].fabric);
		connection.node[i].fabric = NULL;
	}
	pg_atomic_write_u32(&sherman_shared->slot[compat_proc_number()].connected, 0);
}

#ifndef SHERMAN_PRODUCTION
/*
 * Crash points are counted from now on, or not any more.
 */
static void
set_crash_point(void)
{
	if (connection.client != NULL)
		tree_client_crash_points(connection.client, sherman_client_crash_point());
}
#endif

TreeClient *
sherman_connection_if_open(void)
{
	return connection.client;
}

bool
sherman_connection_is_reader(void)
{
	return connection.client != NULL && connection.reader;
}

void
sherman_connection_reads(void)
{
	connection.read = true;
}

bool
sherman_connection_leave_standby(void)
{
	if (!sherman_connection_is_reader() || RecoveryInProgress())
		return true;
	if (connection.read)
		return false;
	sherman_connection_close();
	return true;
}

void
sherman_connection_set_limits(const TreeWalLimits *limits)
{
	connection.limits = *limits;
}

uint64
sherman_connection_waited_us(void)
{
	return connection.waited_us;
}

TreeClient *
sherman_connection_client(void)
{
	TreeClientOptions options = {
		.shared = sherman_tree_shared,
		.environment = {
			.now_us = now_us, .sleep = sleep_for, .wake = wake, .should_stop = should_stop,
			.hold = hold, .resume = resume, .connect = connect_node,
			.crash_point = sherman_client_crash_point()
		},
		.nodes = TREE_MAX_NODES,
		.operation_timeout_ms = (uint32_t) sherman_operation_timeout_ms,
		.silence = &connection.silence,
		.allocate = allocate,
		.release = release,
		.allocate_beside = allocate_beside
	};
	MemoryContext caller;

	if (likely(connection.client != NULL) || sherman_shared == NULL || MyProc == NULL)
		return connection.client;
	connection.reader = options.reader = RecoveryInProgress();
	options.slot = compat_proc_number();
	options.ends = options.reader ? &connection.limits : &sherman_shared->ends;
	caller = MemoryContextSwitchTo(TopMemoryContext);
	if (tree_client_open(&options, &connection.client) != TREE_OK)
		connection.client = NULL;
	MemoryContextSwitchTo(caller);
	if (connection.client != NULL)
	{
		before_shmem_exit(connection_exit, (Datum) 0);
#ifndef SHERMAN_PRODUCTION
		sherman_crash_points_watch(set_crash_point);
#endif
		pg_atomic_write_u32(&sherman_shared->slot[compat_proc_number()].connected, 1);
	}
	return connection.client;
}

/*
 * The calls of the client that were in progress when the subtransaction of each level began: it began inside of a comparator.
 */
static int *calls_before;
static int	calls_levels;

void
sherman_connection_begin_inside(int level)
{
	int			levels = Max(2 * calls_levels, level + 8);

	Assert(level > 0);
	if (level >= calls_levels)
	{
		calls_before = calls_before == NULL ? MemoryContextAlloc(TopMemoryContext, levels * sizeof(int)) :
			repalloc(calls_before, levels * sizeof(int));
		calls_levels = levels;
	}
	calls_before[level] = connection.client == NULL ? 0 : tree_client_calls(connection.client);
}

void
sherman_connection_abort_inside(int level)
{
	if (connection.client != NULL && level < calls_levels)
		tree_client_rest_inside(connection.client, calls_before[level]);
}

void
sherman_connection_end_transaction(void)
{
	if (connection.client == NULL)
		return;
	/* An error may have jumped out of the tree. */
	tree_client_rest(connection.client);
	(void) sherman_connection_trouble();
	connection.read = false;
	/* A standby that was promoted changes its indexes, too. */
	(void) sherman_connection_leave_standby();
	if (connection.client == NULL)
		return;
	sherman_connection_refresh();
	for (int i = 0; i < connection.positions; i++)
	{
		if (connection.node[i].fabric == NULL)
			connection.node[i].member = 0;
	}
}

TreeClient *
sherman_client_if_ready(void)
{
	if (sherman_shared == NULL || MyProc == NULL || sherman_phase() != SHERMAN_PHASE_ATTACHED)
		return NULL;
	return sherman_connection_client();
}
