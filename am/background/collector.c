/*
 * collector.c
 *		Memory of trees that no index names any more: found by proof, given back after commit.
 *
 * A tree is alive if the metapage of any sherman index of its database names it and does not say "broken".
 * It is dead if its creator's transaction has ended, and after that a new look at the catalogs and at all
 * metapages does not find it, twice, some time apart.  Before it is freed all WAL is flushed, for what made
 * it dead may be an asynchronous commit.
 *
 * A run judges the trees of its database: in those with trees that somebody gave a hint about (a transaction that made or dropped
 * indexes ended) and, later and later, at least once in an interval, in those that could not be judged.  Trees of databases that are
 * gone the launcher frees itself.
 */
#include "am/base/sherman.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/hsearch.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/background/background.h"
#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/* Between a hint and the run: the transaction that gave it still has to release its locks. */
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
	TimestampTz next;			/* round, 0 = none is due but for that of each interval */
	long		retry_ms;
	bool		in_round;		/* one has begun, and nobody has looked yet what has become of it */
	TimestampTz swept;			/* last time that the memory nodes were asked for all that they have */
} plan;

/* ---- what both the launcher and the worker do ---- */

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
	uint64		tree = key & ~SHERMAN_TREE_REPLICA;
	TreeStatus	status = half ? tree_share_drop(client, position, tree) : tree_drop(client, tree, position);

	if (status != TREE_OK)
	{
		(void) sherman_connection_trouble();
		return;
	}
	sherman_trees_remove(key);
	if (!half)
		sherman_trees_remove(tree | SHERMAN_TREE_REPLICA);
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->trees_freed++;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	ereport(DEBUG1, (errmsg("sherman collector: freed tree %016llx", (unsigned long long) tree)));
}

/*
 * Judges a tree that no index names, or one half of it; `proven`: that it never will be.  Found so twice it is freed.
 */
static void
judge_unnamed(TreeClient *client, const TreeRecord *record, bool proven, bool half)
{
	TimestampTz dead_since = sherman_trees_judge(record, proven ? SHERMAN_TREE_DEAD : SHERMAN_TREE_UNDECIDED);
	uint32_t	position = tree_home(record->root);

	if (dead_since == 0 || !TimestampDifferenceExceeds(dead_since, GetCurrentTimestamp(), CONFIRM_MS))
		return;
	sherman_flush(compat_wal_end());
	if ((record->tree & SHERMAN_TREE_REPLICA) != 0)
	{
		(void) tree_record_replica(record, &position);
		half = true;
	}
	free_tree(client, record->tree, position, half);
}

typedef TreeStatus (*ListCall) (TreeClient *client, uint32_t node, uint32_t *position, TreeRecord *record);

/*
 * Appends what a memory node lists, as palloc'd TreeRecords; false: that cannot be had now.
 */
static bool
list_at(TreeClient *client, int node, ListCall call, List **records)
{
	uint32_t	position = 0;
	TreeRecord	record;
	TreeStatus	status;

	while ((status = call(client, node, &position, &record)) == TREE_OK)
		*records = lappend(*records, memcpy(palloc(sizeof(record)), &record, sizeof(record)));
	if (status != TREE_END)
		(void) sherman_connection_trouble();
	return status == TREE_END;
}

/*
 * All trees of this instance at the memory nodes that can be asked now, and their copies with keys of their own.  Of a memory node
 * it has everything, or nothing.
 */
static List *
list_trees(TreeClient *client)
{
	List	   *all = NIL;

	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		List	   *trees = NIL;
		List	   *shares = NIL;
		ListCell   *cell;
		uint32_t	copy;

		if (sherman_node_phase(i) != SHERMAN_PHASE_ATTACHED || !list_at(client, i, tree_record_list, &trees) ||
			!list_at(client, i, tree_share_list, &shares))
			continue;
		all = list_concat(all, trees);
		foreach(cell, shares)
		{
			TreeRecord *share = lfirst(cell);

			if (!tree_record_replica(share, &copy))
				continue;
			share->tree |= SHERMAN_TREE_REPLICA;
			all = lappend(all, share);
		}
	}
	return all;
}

/* ---- the worker ---- */

/*
 * What the metapage calls the half of the tree that a record is of.
 */
static uint32
half_of(const TreeRecord *record)
{
	return (record->tree & SHERMAN_TREE_REPLICA) != 0 ? SHERMAN_VALID_SECOND : SHERMAN_VALID_FIRST;
}

/*
 * Judges all trees of this database.  The order matters: first whose creators have ended, then, with a new snapshot, what they left.
 */
static void
judge_trees(TreeClient *client)
{
	HTAB	   *alive = NULL;
	List	   *trees = NIL;
	bool		complete;
	ListCell   *cell;

	foreach(cell, list_trees(client))
	{
		TreeRecord *record = lfirst(cell);

		if (record->database != MyDatabaseId)
			continue;
		trees = lappend(trees, record);
		if (creator_has_ended(record->creator))
			record->creator = InvalidTransactionId;
		/* A hint that comes from now on counts. */
		sherman_trees_judge(record, SHERMAN_TREE_EXAMINED);
	}
	complete = sherman_living_trees(&alive);
	foreach(cell, trees)
	{
		TreeRecord *record = lfirst(cell);
		uint64		tree = record->tree & ~SHERMAN_TREE_REPLICA;
		ShermanLivingTree *living = hash_search(alive, &tree, HASH_FIND, NULL);

		if (living != NULL && (living->valid & half_of(record)) != 0)
			sherman_trees_judge(record, SHERMAN_TREE_ALIVE);
		else
			judge_unnamed(client, record, complete && record->creator == InvalidTransactionId, living != NULL);
	}
}

static ShermanRunEnd
collect(bool first)
{
	TreeClient *client;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	client = sherman_client_if_ready();
	if (client != NULL)
		judge_trees(client);
	PopActiveSnapshot();
	CommitTransactionCommand();
	return SHERMAN_RUN_DONE;
}

/* ---- the launcher ---- */

/*
 * Whether the tree of a share is gone: its home is attached and does not know it, or its home's memory was
 * given up.
 */
static bool
share_is_orphan(TreeClient *client, const TreeRecord *share)
{
	uint32_t	copy;

	/* Copies may be all that there is: the metapages tell (judge_trees()). */
	if (tree_record_replica(share, &copy))
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
free_orphans(TreeClient *client)
{
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		List	   *shares = NIL;
		ListCell   *cell;

		if (sherman_node_phase(i) != SHERMAN_PHASE_ATTACHED || !list_at(client, i, tree_share_list, &shares))
			continue;
		foreach(cell, shares)
		{
			const TreeRecord *share = lfirst(cell);

			if (share_is_orphan(client, share) && tree_share_drop(client, i, share->tree) == TREE_OK)
				ereport(DEBUG1,
						(errmsg("sherman collector: freed the share of tree %016llx at memory node %d",
								(unsigned long long) share->tree, i)));
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
 * Takes up what the memory nodes have and the table of trees does not: made by processes that ended before they could tell.  Returns
 * the databases that want a run: with `all`, every one with trees, else those with trees to be judged.
 */
static List *
sweep(TreeClient *client, bool all)
{
	List	   *trees = list_trees(client);
	/* In this order: whatever has made a tree was in a database that there was. */
	List	   *databases = sherman_list_databases();
	List	   *wanted = NIL;
	ShermanTreeEntry *entries;
	int			count;
	ListCell   *cell;

	foreach(cell, trees)
	{
		const TreeRecord *record = lfirst(cell);

		sherman_trees_judge(record, SHERMAN_TREE_KNOWN);
		/* Where there is no database there can be no metapage. */
		if (sherman_find_database(databases, record->database) == NULL)
			judge_unnamed(client, record, creator_has_ended(record->creator), false);
	}
	foreach(cell, databases)
	{
		const ShermanDatabase *database = lfirst(cell);

		/* Nobody can look there, and nothing changes there, until it is dropped, which is a hint. */
		if (database->invalid)
			sherman_trees_settle(database->oid);
	}
	entries = sherman_trees_list(&count);
	for (int i = 0; i < count; i++)
	{
		if ((all || entries[i].unproven || entries[i].dead_since != 0) &&
			sherman_find_database(databases, entries[i].database) != NULL)
			wanted = list_append_unique_oid(wanted, entries[i].database);
	}
	free_orphans(client);
	plan.swept = GetCurrentTimestamp();
	return wanted;
}

/*
 * Decides about the next round: soon if something was found dead once, later if something could not be judged.  A request is done
 * when everything was looked at twice, far enough apart for the dead to be freed.
 */
static void
end_round(TimestampTz now)
{
	TimestampTz confirm = TimestampTzPlusMilliseconds(now, CONFIRM_MS + POLL_SLACK_MS);
	int			count;
	ShermanTreeEntry *entries = sherman_trees_list(&count);
	bool		dead = false;
	bool		unproven = false;

	for (int i = 0; i < count; i++)
	{
		dead |= entries[i].dead_since != 0;
		unproven |= entries[i].unproven || entries[i].abandoned;
	}
	plan.in_round = false;
	plan.next = dead ? confirm : unproven ? TimestampTzPlusMilliseconds(now, plan.retry_ms) : 0;
	if (unproven && !dead)
		plan.retry_ms = Min(plan.retry_ms * 2, sherman_collect_interval_s * 1000L);
	if (plan.request == 0)
		return;
	if (++plan.request_rounds < 2)
	{
		plan.next = confirm;
		return;
	}
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_shared->collect_done = plan.request;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	ConditionVariableBroadcast(&sherman_shared->changed);
	plan.request = 0;
}

/*
 * Takes up new hints and requests.
 */
static void
take_news(TimestampTz now)
{
	uint32		hints = pg_atomic_read_u32(&sherman_shared->hints);
	TimestampTz due = TimestampTzPlusMilliseconds(now, HINT_DELAY_MS);
	uint64		requested;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	requested = sherman_shared->collect_requested;
	if (plan.request == 0 && requested != sherman_shared->collect_done)
	{
		plan.request = requested;
		plan.request_rounds = 0;
		plan.next = now;
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	if (hints != plan.hints || plan.swept == 0)
	{
		plan.hints = hints;
		plan.retry_ms = RETRY_MS;
		plan.next = plan.next == 0 ? due : Min(plan.next, due);
	}
}

static List *
wanted(TimestampTz now, TimestampTz *next)
{
	TreeClient *client = sherman_client_if_ready();

	*next = TimestampTzPlusMilliseconds(now, RETRY_MS);
	if (client == NULL)
		return NIL;
	if (plan.in_round)
		end_round(now);
	take_news(now);
	*next = plan.next != 0 ? plan.next : TimestampTzPlusMilliseconds(plan.swept, sherman_collect_interval_s * INT64CONST(1000));
	if (*next > now)
		return NIL;
	plan.in_round = true;
	free_abandoned(client);
	return sweep(client, plan.request != 0);
}

const ShermanWorker sherman_collector = {
	.name = "sherman collector",
	.wanted = wanted,
	.run = collect
};
