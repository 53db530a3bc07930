/*
 * reader.c
 *		The process of a hot standby that attaches memory nodes as a reader: it looks who is there, at the addresses of
 *		sherman.memory_nodes, and takes the positions from the primary's page of history.
 *
 * It grants itself nothing: a reader's channel belongs to the primary's own instance, and dies with the incarnation under which it was made.
 * When the primary attaches anew, what was cached of its trees' inner nodes is not used any more: a primary that has crashed may have left
 * nodes behind that are in no tree and do not say so (tree/change/merge.c).
 *
 * When recovery ends it ends.  Then the launcher begins, which lets nobody in before reader_end().
 */
#include "am/base/sherman.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/nodes/nodes.h"
#include "am/recovery/recovery.h"
#include "am/standby/standby.h"

/* Seconds until it is started again after a failure. */
#define RESTART_S 1

void
reader_register(void)
{
	BackgroundWorker worker;

	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade || !sherman_standby_reads || sherman_embedded ||
		!sherman_nodes_are_remote(sherman_memory_node_list) || !sherman_is_standby())
		return;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = RESTART_S;
	strlcpy(worker.bgw_library_name, "sherman", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "sherman_reader_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "sherman reader", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "sherman reader", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}

/* ---- one memory node ---- */

/* The position that the primary gives to this memory; -1: none. */
static int
position_of(const ShermanHistory *history, const uint64 *uuid)
{
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (history->node[i].member != 0 && memcmp(history->node[i].memory, uuid, sizeof(history->node[i].memory)) == 0)
			return i;
	}
	return -1;
}

static void
list_tree(const TreeRecord *record, bool *news)
{
	ShermanTreeEntry entry;

	*news |= !sherman_trees_find(record->tree, &entry);
	sherman_trees_judge(record, SHERMAN_TREE_EXAMINED);
}

/* Those whose home is there. */
static TreeStatus
list_homes(TreeClient *client, int position, bool *news)
{
	uint32_t	place = 0;
	TreeRecord	record;
	TreeStatus	status;

	while ((status = tree_record_list(client, position, &place, &record)) == TREE_OK)
		list_tree(&record, news);
	return status;
}

/* Those whose copy is there. */
static TreeStatus
list_copies(TreeClient *client, int position, bool *news)
{
	uint32_t	place = 0;
	uint32_t	copy;
	TreeRecord	record;
	TreeStatus	status;

	while ((status = tree_share_list(client, position, &place, &record)) == TREE_OK)
	{
		if (!tree_record_replica(&record, &copy))
			continue;
		record.tree |= SHERMAN_TREE_REPLICA;
		list_tree(&record, news);
	}
	return status;
}

/*
 * Brings the table of trees up to date, which the planner knows them by: those that are gone go.  *news: there are some that it did not have.
 */
static TreeStatus
list_trees(TreeClient *client, int position, bool *news)
{
	TreeStatus	status;

	sherman_trees_unlist(position);
	status = list_homes(client, position, news);
	if (status == TREE_END)
		status = list_copies(client, position, news);
	if (status != TREE_END)
		return status;
	sherman_trees_forget_unlisted(position);
	return TREE_OK;
}

/* The memory at an entry's address has this position: processes may read it. */
static void
take_position(ShermanListedNode *listed, int position, uint64 member, const FabricCapabilities *capabilities)
{
	ShermanNode *node = &sherman_shared->node[position];

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	memcpy(node->memory, capabilities->node_uuid, sizeof(node->memory));
	node->member = member;
	node->incarnation = capabilities->incarnation;
	strlcpy(node->address, listed->address, sizeof(node->address));
	listed->position = position;
	pg_atomic_fetch_add_u64(&node->serial, 1);
	pg_atomic_fetch_add_u64(&sherman_shared->reads_serial, 1);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

/* Lets processes read the memory node at a position. */
static const char *
admit(int position, uint64 member)
{
	TreeClient *client = sherman_connection_client();
	bool		news = false;
	TreeStatus	status;

	if (client == NULL)
		return "out of memory";
	sherman_connection_refresh();
	tree_forget_cached(sherman_tree_shared);
	tree_node_leaves_at_hand(sherman_tree_shared, position, true);
	tree_node_open(client, position, member);
	status = list_trees(client, position, &news);
	if (status != TREE_OK || !sherman_measure_round_trip(client, position))
	{
		(void) tree_client_trouble(client);
		tree_node_close(sherman_tree_shared, position);
		return "it does not answer";
	}
	sherman_node_attached(position);
	ereport(LOG,
			(errmsg("memory node %d at \"%s\" is read, as the primary's", position, sherman_shared->node[position].address)));
	return "";
}

/* Looks who answers at an entry's address; if it is the primary's, processes may read it. */
static const char *
read_over(ShermanListedNode *listed, const FabricEndpoint *endpoint, const ShermanHistory *history)
{
	const FabricCapabilities *capabilities = fabric_capabilities(endpoint);
	int			position = position_of(history, capabilities->node_uuid);

	if (position < 0)
		return "the primary does not use its memory, as far as this server has replayed";
	if (sherman_node_phase(position) == SHERMAN_PHASE_ATTACHED)
		return "it is read already, at another address";
	take_position(listed, position, history->node[position].member, capabilities);
	return admit(position, history->node[position].member);
}

static void
attach_reader(ShermanListedNode *listed, const ShermanHistory *history)
{
	char		failure[SHERMAN_FAILURE_BYTES] = "";
	FabricEndpoint *endpoint;
	Fabric	   *fabric;
	FabricStatus status;

	status = sherman_control_connect(listed->address, &fabric, &endpoint);
	if (status == FABRIC_OK)
		strlcpy(failure, read_over(listed, endpoint, history), sizeof(failure));
	else
		sherman_describe_failure(failure, status, fabric);
	if (fabric != NULL)
		fabric_close(fabric);
	sherman_note_failure(listed, status, failure, "cannot be read");
}

/* Whether the primary still has, at a memory node that is read, the memory and the incarnation under which it is read. */
static void
look_after(const ShermanHistory *history, int position)
{
	TreeClient *client = sherman_connection_client();
	ShermanNode *node = &sherman_shared->node[position];
	TreeNodeStatus status;

	if (history->node[position].member != node->member ||
		memcmp(history->node[position].memory, node->memory, sizeof(node->memory)) != 0)
	{
		sherman_node_lost(position);
		return;
	}
	pg_atomic_write_u32(&sherman_shared->node[position].suspected, SHERMAN_UNSUSPECTED);
	sherman_connection_refresh();
	if (tree_node_status(client, position, &status) == TREE_OK && tree_client_connect(client, position) == TREE_OK)
		sherman_node_heard(position);
	else
		sherman_node_lost(position);
	(void) tree_client_trouble(client);
}

/* ---- rounds ---- */

/*
 * The primary's page of history, as it was replayed.
 */
static bool
read_history(ShermanHistory *history)
{
	XLogRecPtr	end;
	bool		there;

	/* A session with a pinned buffer is in a transaction. */
	StartTransactionCommand();
	there = standby_history_read(history, &end);
	CommitTransactionCommand();
	return there;
}

/*
 * The primary is another instance than before: everything is to be looked for anew.
 */
static void
follow(const ShermanHistory *history)
{
	if (memcmp(sherman_shared->followed, history->cluster, sizeof(history->cluster)) == 0 &&
		pg_atomic_read_u32(&sherman_shared->standby_reads) != 0)
		return;
	for (int i = 0; i < TREE_MAX_NODES; i++)
		sherman_node_lost(i);
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	memcpy(sherman_shared->followed, history->cluster, sizeof(sherman_shared->followed));
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	pg_atomic_write_u32(&sherman_shared->standby_reads, 1);
	sherman_state_changed();
	sherman_invalidate_plans();
}

/*
 * Looks for trees that sessions have met and the table lacks: once in a round, as some of them are gone.
 */
static void
look_for_trees(void)
{
	TreeClient *client = sherman_connection_client();
	bool		news = false;

	if (client == NULL || pg_atomic_exchange_u32(&sherman_shared->trees_wanted, 0) == 0)
		return;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (sherman_node_phase(i) == SHERMAN_PHASE_ATTACHED && list_trees(client, i, &news) != TREE_OK)
			(void) tree_client_trouble(client);
	}
	if (!news)
		return;
	sherman_state_changed();
	sherman_invalidate_plans();
}

/*
 * The server that this one follows has no indexes that are known here, any more.
 */
static void
unfollow(void)
{
	if (pg_atomic_read_u32(&sherman_shared->standby_reads) == 0)
		return;
	pg_atomic_write_u32(&sherman_shared->standby_reads, 0);
	for (int i = 0; i < TREE_MAX_NODES; i++)
		sherman_node_lost(i);
	sherman_state_changed();
	sherman_invalidate_plans();
	ereport(LOG, (errmsg("sherman indexes are hidden: the server that this one follows now has not told of its memory nodes yet")));
}

static void
round_of_reader(void)
{
	ShermanHistory history;

	if (!read_history(&history))
	{
		unfollow();
		return;
	}
	follow(&history);
	look_for_trees();
	for (int i = 0; i < sherman_shared->listed_count && !ShutdownRequestPending; i++)
	{
		ShermanListedNode *listed = &sherman_shared->listed[i];

		if (listed->position >= 0 && sherman_node_phase(listed->position) == SHERMAN_PHASE_ATTACHED)
			look_after(&history, listed->position);
		if (listed->position < 0 || sherman_node_phase(listed->position) != SHERMAN_PHASE_ATTACHED)
			attach_reader(listed, &history);
		CHECK_FOR_INTERRUPTS();
	}
}

static void
reader_exit(int code, Datum argument)
{
	LWLockReleaseAll();
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->reader_pid = 0;
	sherman_shared->reader_latch = NULL;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	sherman_wake_launcher();
}

/* Sleeps until it is woken, or the next round is due. */
static void
reader_sleep(void)
{
	int			events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, SHERMAN_HEARTBEAT_MS / 2,
								   sherman_wait_event(SHERMAN_WAIT_READER_MAIN));

	if (events & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	if (!ConfigReloadPending)
		return;
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_pool_configure(sherman_shared);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

void
sherman_reader_main(Datum argument)
{
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	/* Started again behind the end of recovery. */
	if (!RecoveryInProgress())
		proc_exit(0);
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	sherman_connection_launcher();
	before_shmem_exit(reader_exit, (Datum) 0);
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->reader_pid = MyProcPid;
	sherman_shared->reader_latch = MyLatch;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	while (RecoveryInProgress() && !ShutdownRequestPending)
	{
		round_of_reader();
		reader_sleep();
	}
	proc_exit(RecoveryInProgress() ? 1 : 0);
}

/* ---- the launcher ---- */

bool
reader_end(void)
{
	/* The reader says that it is there before it asks whether recovery goes on. */
	if (sherman_shared->reader_pid != 0)
	{
		sherman_wake_launcher();
		return false;
	}
	if ((sherman_shared->followed[0] | sherman_shared->followed[1]) == 0)
		return true;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		sherman_node_lost(i);
		/* Of a tree that the primary has changed since, an entry would say that it is another history's. */
		sherman_trees_clear(i);
		sherman_shared->node[i].read_serial = pg_atomic_read_u64(&sherman_shared->node[i].serial);
	}
	sherman_pool_adopt();
	tree_forget_cached(sherman_tree_shared);
	pg_atomic_write_u32(&sherman_shared->standby_reads, 0);
	memset(sherman_shared->followed, 0, sizeof(sherman_shared->followed));
	sherman_state_changed();
	sherman_invalidate_plans();
	return true;
}
