/*
 * rebuild_rounds.c
 *		The launcher's part in rebuilding broken indexes: into which databases a visit is sent (rebuild.c), and when.
 *
 * A visit goes into each database that may have broken indexes whenever the state of any index may have changed, and
 * when something is due about an index that was noted.  Databases that have no index of ours are left out.  Where nothing is
 * to be rebuilt they are visited once behind a start all the same, for the log.
 */
#include "am/base/sherman.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/background/background.h"
#include "am/background/rebuild.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/* Until a database is visited again that could not be looked at as a whole. */
#define AGAIN_MS 10000

/* Between rounds of visits, at least. */
#define ROUND_MS 1000

/* The launcher's memory between rounds. */
static struct
{
	uint64		generation;		/* of states, when the last round began; 0 = there was none */
	uint32		hints;			/* likewise */
	TimestampTz round;			/* when it began */
	List	   *to_visit;		/* databases; all lists are in `context` */
	List	   *without;		/* databases that have no index of ours */
	List	   *again;			/* databases that could not be looked at as a whole */
	TimestampTz again_at;		/* when these are to be visited */
	Oid			visited;		/* last */
	List	   *told;			/* databases that were visited in this run: the log has what is broken there */
	bool		looked;			/* all were to be visited once */
	MemoryContext context;
} plan;

/*
 * What the last visit has found.
 */
static void
note_visit(void)
{
	ShermanRebuildFound found;

	if (plan.visited == InvalidOid)
		return;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	found = sherman_shared->rebuild_found;
	sherman_shared->rebuild_found = SHERMAN_REBUILD_UNSEEN;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	/* It may have been sent away, or not have got in: commands on databases do not change indexes' states. */
	if (found == SHERMAN_REBUILD_NONE)
		plan.without = list_append_unique_oid(plan.without, plan.visited);
	else if (found != SHERMAN_REBUILD_SEEN)
	{
		plan.again = list_append_unique_oid(plan.again, plan.visited);
		plan.again_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), AGAIN_MS);
	}
	plan.visited = InvalidOid;
}

/*
 * The databases that one may connect to; what is noted of indexes in databases that are gone is forgotten.
 */
static List *
list_databases(void)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *all = NIL;
	List	   *open = NIL;
	Relation	catalog;
	TableScanDesc scan;
	HeapTuple	tuple;
	ShermanRebuild *noted;
	int			count;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	catalog = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(catalog, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		MemoryContext transaction = MemoryContextSwitchTo(context);

		all = lappend_oid(all, form->oid);
		/* Less than -1 is the limit of one whose DROP was interrupted. */
		if (form->datallowconn && form->datconnlimit >= -1)
			open = lappend_oid(open, form->oid);
		MemoryContextSwitchTo(transaction);
	}
	table_endscan(scan);
	table_close(catalog, AccessShareLock);
	CommitTransactionCommand();
	MemoryContextSwitchTo(context);
	noted = sherman_rebuilds_list(&count);
	for (int i = 0; i < count; i++)
	{
		if (!list_member_oid(all, noted[i].database))
			sherman_rebuilds_remove(noted[i].database, noted[i].index);
	}
	pfree(noted);
	list_free(all);
	return open;
}

/*
 * All databases that may have indexes of ours: those that had none have some when they have trees.
 */
static List *
list_candidates(void)
{
	List	   *databases = list_databases();
	List	   *candidates;
	int			count;
	ShermanTreeEntry *trees = sherman_trees_list(&count);

	for (int i = 0; i < count; i++)
		plan.without = list_delete_oid(plan.without, trees[i].database);
	pfree(trees);
	candidates = list_difference_oid(databases, plan.without);
	list_free(databases);
	return candidates;
}

/*
 * The databases with noted indexes: all of them, or those in which something is to be done now.  `due_ms` is when
 * the next one is due, unless it was less.
 */
static List *
list_noted(bool all, long *due_ms)
{
	TimestampTz now = GetCurrentTimestamp();
	List	   *databases = NIL;
	int			count;
	ShermanRebuild *noted = sherman_rebuilds_list(&count);

	for (int i = 0; i < count; i++)
	{
		if (all || sherman_rebuild_is_due(&noted[i], now))
			databases = list_append_unique_oid(databases, noted[i].database);
		else if (sherman_rebuild_is_due(&noted[i], noted[i].next))
			*due_ms = Min(*due_ms, TimestampDifferenceMilliseconds(now, noted[i].next) + 1);
	}
	pfree(noted);
	return databases;
}

/*
 * Decides which databases are to be visited.  Returns when to look again, in milliseconds.
 */
static long
plan_visits(void)
{
	uint64		generation = sherman_generation();
	uint32		hints = pg_atomic_read_u32(&sherman_shared->hints);
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz earliest = TimestampTzPlusMilliseconds(plan.round, ROUND_MS);
	long		due_ms = LONG_MAX;
	List	   *wanted;

	if (earliest > now)
		return TimestampDifferenceMilliseconds(now, earliest) + 1;
	if (generation != plan.generation)
		plan.to_visit = list_candidates();
	else
	{
		wanted = list_noted(hints != plan.hints, &due_ms);
		if (plan.again != NIL && plan.again_at <= now)
		{
			wanted = list_concat_unique_oid(wanted, plan.again);
			list_free(plan.again);
			plan.again = NIL;
		}
		/* Some may have been dropped. */
		if (wanted != NIL)
			plan.to_visit = list_difference_oid(wanted, list_difference_oid(wanted, list_databases()));
		list_free(wanted);
	}
	plan.generation = generation;
	plan.hints = hints;
	if (plan.to_visit != NIL)
		plan.round = now;
	if (plan.again != NIL)
		due_ms = Min(due_ms, TimestampDifferenceMilliseconds(now, plan.again_at) + 1);
	return due_ms;
}

/*
 * Sends the next visit; returns when to try again, in milliseconds.
 */
static long
send_visit(void)
{
	Oid			database = linitial_oid(plan.to_visit);

	plan.to_visit = list_delete_first(plan.to_visit);
	/* No visit reads this now. */
	sherman_shared->rebuild_tells = !list_member_oid(plan.told, database);
	if (!sherman_visit_begin(SHERMAN_VISIT_REBUILD, database))
	{
		/* Nobody keeps it from the others. */
		plan.to_visit = lappend_oid(plan.to_visit, database);
		return ROUND_MS;
	}
	plan.visited = database;
	plan.told = list_append_unique_oid(plan.told, database);
	/* Its end wakes the launcher. */
	return LONG_MAX;
}

/*
 * Whether an index waits for a try, or is being tried.
 */
static bool
some_wait(void)
{
	int			count;
	ShermanRebuild *noted = sherman_rebuilds_list(&count);
	bool		wait = false;

	for (int i = 0; i < count; i++)
		wait |= noted[i].running || sherman_rebuild_is_due(&noted[i], noted[i].next);
	pfree(noted);
	return wait;
}

/*
 * Takes up what sherman_rebuild_all() wants, and ends it when all databases were visited and nothing waits.
 */
static void
see_to_all(void)
{
	uint32		begun = SHERMAN_REBUILD_ALL_BEGUN;
	uint32		wanted = SHERMAN_REBUILD_ALL_WANTED;

	if (pg_atomic_compare_exchange_u32(&sherman_shared->rebuild_all, &wanted, SHERMAN_REBUILD_ALL_BEGUN))
	{
		list_free(plan.without);
		plan.without = NIL;
		plan.generation = 0;
	}
	else if (wanted == SHERMAN_REBUILD_ALL_BEGUN && plan.generation != 0 && plan.to_visit == NIL && plan.again == NIL &&
			 !some_wait())
		(void) pg_atomic_compare_exchange_u32(&sherman_shared->rebuild_all, &begun, SHERMAN_REBUILD_ALL_NOT);
}

long
sherman_rebuild_round(void)
{
	MemoryContext caller;
	long		pause = LONG_MAX;

	if (sherman_visit_lasts(SHERMAN_VISIT_REBUILD))
		return LONG_MAX;
	if (plan.context == NULL)
		plan.context = AllocSetContextCreate(TopMemoryContext, "sherman rebuild", ALLOCSET_SMALL_SIZES);
	caller = MemoryContextSwitchTo(plan.context);
	note_visit();
	sherman_rebuilds_welcome(sherman_attached_nodes());
	see_to_all();
	if (plan.to_visit == NIL && (sherman_rebuild_works() || !plan.looked))
	{
		pause = plan_visits();
		plan.looked |= plan.generation != 0;
	}
	/* What was not rebuilt is looked for when that is wanted again. */
	else if (!sherman_rebuild_works())
		plan.generation = 0;
	if (plan.to_visit != NIL)
		pause = send_visit();
	MemoryContextSwitchTo(caller);
	return pause;
}
