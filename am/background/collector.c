/*
 * collector.c
 *		Memory of trees that no index names any more: found by proof, given back after commit.
 *
 * A tree is alive if the metapage of any sherman index of its database names it and does not say "broken".
 * It is dead if its creator's transaction has ended, and after that a new look at the catalogs and at all
 * metapages does not find it, twice, some time apart.  Before it is freed all WAL is flushed, for what made
 * it dead may be an asynchronous commit.
 *
 * The launcher decides which databases are worth a look: those with trees that somebody gave a hint about (a
 * transaction that made or dropped indexes ended) and, once in an interval, those that are still suspect.
 * Databases that are gone it sees itself.  A look at the others is a short visit (database_workers.c), which it waits for.
 */
#include "am/base/sherman.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/background/background.h"
#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/* Between a hint and the visit: the transaction that gave it still has to release its locks. */
#define HINT_DELAY_MS 100

/* Between the two times that a tree must be found dead. */
#define CONFIRM_MS 500

/* First delay until trees are looked at again that could not be judged; doubles up to the interval. */
#define RETRY_MS 1000

/* Timers are rounded: a second look that came too early would be in vain. */
#define POLL_SLACK_MS 20

/* The launcher's memory between rounds. */
static struct
{
	uint32		hints;			/* as last seen */
	uint64		request;		/* of sherman_collect(), being worked on; 0 = none */
	int			request_rounds; /* done for it */
	TimestampTz next;			/* next round, 0 = none is due */
	long		retry_ms;
	TimestampTz swept;			/* last time that everything became suspect */
} plan;

/* ---- what both the launcher and the visitor do ---- */

/*
 * Whether the transaction that made a tree has ended: then what it did is in the catalogs, or never will be.
 */
static bool
creator_has_ended(uint64 creator)
{
	FullTransactionId next = ReadNextFullTransactionId();
	TransactionId xid = (TransactionId) creator;

	/* Of a history that a crash has cut off. */
	if (creator >= U64FromFullTransactionId(next))
		return true;
	/* Too old to run: its number may belong to another one by now. */
	if (creator + PG_INT32_MAX < U64FromFullTransactionId(next) || !TransactionIdIsNormal(xid))
		return true;
	/* Prepared transactions count as running. */
	return !TransactionIdIsInProgress(xid);
}

/*
 * Frees a tree that nobody uses.  `half`: the tree itself at this memory node, or its copy, and not the other one.
 */
static void
free_tree(TreeClient *client, uint64 key, uint32 position, bool half)
{
	uint64		tree = key & ~SHERMAN_TREE_COPY;
	TreeStatus	status = half ? tree_share_drop(client, position, tree) : tree_drop(client, tree, position);

	if (status != TREE_OK)
	{
		(void) sherman_connection_trouble();
		return;
	}
	sherman_trees_remove(key);
	if (!half)
		sherman_trees_remove(tree | SHERMAN_TREE_COPY);
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->trees_freed++;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	ereport(DEBUG1, (errmsg("sherman collector: freed tree %016llx", (unsigned long long) tree)));
}

/*
 * Frees a tree that was found dead, or one half of it, if that is the second time.
 */
static void
bury(TreeClient *client, const TreeRecord *record, bool half)
{
	uint32_t	position = tree_home(record->root);
	TimestampTz dead_since = sherman_trees_judge(record, SHERMAN_TREE_DEAD);

	if (dead_since == 0 || !TimestampDifferenceExceeds(dead_since, GetCurrentTimestamp(), CONFIRM_MS))
		return;
	sherman_flush(compat_wal_end());
	if ((record->tree & SHERMAN_TREE_COPY) != 0)
	{
		(void) tree_record_copy(record, &position);
		half = true;
	}
	free_tree(client, record->tree, position, half);
}

/* Records of trees or shares. */
typedef struct RecordList
{
	TreeRecord *records;
	int			count;
	int			room;
} RecordList;

typedef TreeStatus (*ListCall) (TreeClient *client, uint32_t node, uint32_t *position, TreeRecord *record);

/*
 * Makes room for one more.
 */
static void
make_room(RecordList *list)
{
	if (list->count < list->room)
		return;
	list->room = Max(2 * list->room, 64);
	list->records = list->records == NULL ? palloc(sizeof(TreeRecord) * list->room) :
		repalloc(list->records, sizeof(TreeRecord) * list->room);
}

/*
 * Appends what a memory node lists; false: that cannot be had now.
 */
static bool
list_at(TreeClient *client, int node, ListCall call, RecordList *list)
{
	uint32_t	position = 0;
	TreeStatus	status;

	for (;;)
	{
		make_room(list);
		status = call(client, node, &position, &list->records[list->count]);
		if (status != TREE_OK)
			break;
		list->count++;
	}
	if (status != TREE_END)
		(void) sherman_connection_trouble();
	return status == TREE_END;
}

/*
 * Appends the copies that a memory node has, with keys of their own; false: they cannot be had now.
 */
static bool
list_copies_at(TreeClient *client, int node, RecordList *list)
{
	RecordList	shares = {0};

	if (!list_at(client, node, tree_share_list, &shares))
		return false;
	for (int i = 0; i < shares.count; i++)
	{
		uint32_t	copy;

		if (!tree_record_copy(&shares.records[i], &copy))
			continue;
		make_room(list);
		list->records[list->count] = shares.records[i];
		list->records[list->count++].tree |= SHERMAN_TREE_COPY;
	}
	return true;
}

/*
 * All records of this instance at the memory nodes that can be asked now.
 */
static TreeRecord *
list_records(TreeClient *client, int *count)
{
	RecordList	list = {0};

	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		int			before = list.count;

		/* All that one has, or nothing of it. */
		if (sherman_node_phase(i) == SHERMAN_PHASE_ATTACHED &&
			(!list_at(client, i, tree_record_list, &list) || !list_copies_at(client, i, &list)))
			list.count = before;
	}
	*count = list.count;
	return list.records;
}

/* ---- the visit ---- */

/*
 * What the metapage calls the half of the tree that a record is of.
 */
static uint32
half_of(const TreeRecord *record)
{
	return (record->tree & SHERMAN_TREE_COPY) != 0 ? SHERMAN_VALID_SECOND : SHERMAN_VALID_FIRST;
}

/*
 * Judges all trees of this database.  The order matters: first who has ended, then, with a new snapshot, what
 * they left.
 */
static void
visit_database(TreeClient *client)
{
	HTAB	   *alive = NULL;
	int			count;
	TreeRecord *records = list_records(client, &count);
	bool	   *ended;
	bool		complete;

	ended = palloc(sizeof(bool) * (count + 1));
	for (int i = 0; i < count; i++)
	{
		ended[i] = creator_has_ended(records[i].creator);
		/* A hint that comes from now on counts. */
		if (records[i].database == MyDatabaseId)
			sherman_trees_judge(&records[i], SHERMAN_TREE_VISITED);
	}
	complete = sherman_living_trees(&alive);
	for (int i = 0; i < count; i++)
	{
		uint64		tree = records[i].tree & ~SHERMAN_TREE_COPY;
		ShermanLivingTree *living = hash_search(alive, &tree, HASH_FIND, NULL);

		if (records[i].database != MyDatabaseId)
			continue;
		if (living != NULL && (living->valid & half_of(&records[i])) != 0)
			sherman_trees_judge(&records[i], SHERMAN_TREE_ALIVE);
		else if (ended[i] && complete)
			bury(client, &records[i], living != NULL);
		else
			sherman_trees_judge(&records[i], SHERMAN_TREE_UNDECIDED);
	}
}

void
sherman_collect_here(void)
{
	TreeClient *client;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	client = sherman_client_if_ready();
	if (client != NULL)
		visit_database(client);
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/* ---- the launcher's part ---- */

/*
 * Trees of a database that does not exist: it can have no metapage.
 */
static void
bury_database(TreeClient *client, Oid database)
{
	int			count;
	TreeRecord *records = list_records(client, &count);

	for (int i = 0; i < count; i++)
	{
		if (records[i].database != database)
			continue;
		if (creator_has_ended(records[i].creator))
			bury(client, &records[i], false);
		else
			sherman_trees_judge(&records[i], SHERMAN_TREE_UNDECIDED);
	}
}

/*
 * Whether the tree of a share is gone: its home is attached and does not know it, or its home's memory was
 * given up.
 */
static bool
share_is_orphan(TreeClient *client, const TreeRecord *share)
{
	uint32_t	copy;

	/* Copies may be all that there is: the metapages tell (visit_database()). */
	if (tree_record_copy(share, &copy))
		return false;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		TreeRecord	record;

		if (share->members[i] == 0)
			continue;
		if (sherman_shared->node[i].member != share->members[i])
			return true;
		return sherman_node_phase(i) == SHERMAN_PHASE_ATTACHED &&
			tree_record_read(client, share->tree, i, &record) == TREE_NOT_FOUND;
	}
	return true;
}

/*
 * Frees shares whose trees were dropped while their memory node was away, or whose home was lost.
 */
static void
sweep_shares(TreeClient *client)
{
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		RecordList	list = {0};

		if (sherman_node_phase(i) != SHERMAN_PHASE_ATTACHED || !list_at(client, i, tree_share_list, &list))
			continue;
		for (int j = 0; j < list.count; j++)
		{
			if (share_is_orphan(client, &list.records[j]) &&
				tree_share_drop(client, i, list.records[j].tree) == TREE_OK)
				ereport(DEBUG1,
						(errmsg("sherman collector: freed the share of tree %016llx at memory node %d",
								(unsigned long long) list.records[j].tree, i)));
		}
		(void) sherman_connection_trouble();
	}
}

/*
 * Frees the trees that were abandoned: nothing needs to be proved.
 */
static void
free_abandoned(TreeClient *client)
{
	int			count;
	ShermanTreeEntry *entries = sherman_trees_list(&count);

	for (int i = 0; i < count; i++)
	{
		if (entries[i].abandoned && sherman_node_phase((int) entries[i].home) == SHERMAN_PHASE_ATTACHED)
			free_tree(client, entries[i].tree, entries[i].home, false);
	}
}

/*
 * Takes up what the memory nodes have and the table does not: made by processes that ended before they could
 * tell.
 */
static void
sweep(TreeClient *client)
{
	int			count;
	TreeRecord *records = list_records(client, &count);

	for (int i = 0; i < count; i++)
		sherman_trees_judge(&records[i], SHERMAN_TREE_KNOWN);
	sweep_shares(client);
	plan.swept = GetCurrentTimestamp();
}

/*
 * Databases that have trees; `*visit` are those of them with trees to be judged, or, with `all`, every one.
 */
static List *
databases_with_trees(bool all, List **visit)
{
	int			count;
	ShermanTreeEntry *entries = sherman_trees_list(&count);
	List	   *databases = NIL;

	*visit = NIL;
	for (int i = 0; i < count; i++)
	{
		databases = list_append_unique_oid(databases, entries[i].database);
		if (all || entries[i].suspect || entries[i].dead_since != 0)
			*visit = list_append_unique_oid(*visit, entries[i].database);
	}
	return databases;
}

/*
 * One look at all databases that have something to look at.
 */
static void
look(TreeClient *client, bool all)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *to_visit;
	List	   *databases = databases_with_trees(all, &to_visit);
	List	   *gone = NIL;
	ListCell   *cell;

	if (databases == NIL)
		return;
	StartTransactionCommand();
	foreach(cell, databases)
	{
		ShermanDatabase found = sherman_database_look(lfirst_oid(cell));
		MemoryContext caller = MemoryContextSwitchTo(context);

		if (found == SHERMAN_DATABASE_GONE)
			gone = lappend_oid(gone, lfirst_oid(cell));
		MemoryContextSwitchTo(caller);
		/* Nobody can look there, and nothing changes there, until it is dropped, which is a hint. */
		if (found == SHERMAN_DATABASE_INVALID)
		{
			sherman_trees_settle(lfirst_oid(cell));
			to_visit = list_delete_oid(to_visit, lfirst_oid(cell));
		}
	}
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	foreach(cell, gone)
		bury_database(client, lfirst_oid(cell));
	foreach(cell, to_visit)
	{
		if (!list_member_oid(gone, lfirst_oid(cell)) && sherman_visit_begin(SHERMAN_VISIT_COLLECT, lfirst_oid(cell)))
			sherman_visit_wait(SHERMAN_VISIT_COLLECT);
	}
}

/*
 * When to look again: soon if something was found dead once, later if something could not be judged.
 */
static void
plan_next(void)
{
	int			count;
	ShermanTreeEntry *entries = sherman_trees_list(&count);
	bool		dead = false;
	bool		suspect = false;
	TimestampTz now = GetCurrentTimestamp();

	for (int i = 0; i < count; i++)
	{
		dead |= entries[i].dead_since != 0;
		suspect |= entries[i].suspect || entries[i].abandoned;
	}
	plan.next = 0;
	if (dead)
		plan.next = TimestampTzPlusMilliseconds(now, CONFIRM_MS + POLL_SLACK_MS);
	else if (suspect)
	{
		plan.next = TimestampTzPlusMilliseconds(now, plan.retry_ms);
		plan.retry_ms = Min(plan.retry_ms * 2, sherman_collect_interval_s * 1000L);
	}
}

/*
 * Takes up new hints and requests.
 */
static void
plan_news(void)
{
	uint32		hints = pg_atomic_read_u32(&sherman_shared->hints);
	TimestampTz now = GetCurrentTimestamp();
	uint64		requested;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	requested = sherman_shared->collect_requested;
	if (requested == sherman_shared->collect_done)
		requested = 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	if (plan.request == 0 && requested != 0)
	{
		plan.request = requested;
		plan.request_rounds = 0;
		plan.next = now;
	}
	if (hints != plan.hints || plan.swept == 0)
	{
		TimestampTz due = TimestampTzPlusMilliseconds(now, HINT_DELAY_MS);

		plan.hints = hints;
		plan.retry_ms = RETRY_MS;
		if (plan.next == 0 || plan.next > due)
			plan.next = due;
	}
	if (TimestampDifferenceExceeds(plan.swept, now, sherman_collect_interval_s * 1000) && plan.next == 0)
		plan.next = now;
}

/*
 * The request is done when everything was looked at twice, far enough apart for the dead to be freed.
 */
static void
finish_request(void)
{
	if (plan.request == 0)
		return;
	if (++plan.request_rounds < 2)
	{
		plan.next = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), CONFIRM_MS + POLL_SLACK_MS);
		return;
	}
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->collect_done = plan.request;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	ConditionVariableBroadcast(&sherman_shared->changed);
	plan.request = 0;
}

long
sherman_collect_round(void)
{
	static MemoryContext context = NULL;
	MemoryContext caller = CurrentMemoryContext;
	TreeClient *client = sherman_client_if_ready();
	TimestampTz now;

	if (client == NULL)
		return RETRY_MS;
	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "sherman collector", ALLOCSET_DEFAULT_SIZES);
	plan_news();
	now = GetCurrentTimestamp();
	if (plan.next == 0 || plan.next > now)
		return plan.next == 0 ? PG_INT32_MAX : TimestampDifferenceMilliseconds(now, plan.next) + 1;
	MemoryContextSwitchTo(context);
	free_abandoned(client);
	sweep(client);
	look(client, plan.request != 0);
	plan_next();
	finish_request();
	MemoryContextSwitchTo(caller);
	MemoryContextReset(context);
	return 1;
}
