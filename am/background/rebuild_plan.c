/*
 * rebuild_plan.c
 *		Which databases want a run that rebuilds broken indexes (rebuild.c), and when.
 *
 * Each database that may have broken indexes does whenever the state of any index may have changed, and when something is due about
 * an index that was noted.  Databases that have no index of ours are left out.  Where nothing is to be rebuilt each wants one run
 * behind a start all the same, for the log.
 */
#include "am/base/sherman.h"

#include "utils/timestamp.h"

#include "am/background/background.h"
#include "am/background/rebuild.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/* Until a run in a database that could not be looked at as a whole; and where none could begin. */
#define AGAIN_MS 10000
#define REFUSED_MS 1000

/* The launcher's memory between rounds. */
static struct
{
	uint64		generation;		/* of states, when all databases wanted a run; 0 = they are to */
	uint32		hints;			/* when noted indexes were looked at last */
	bool		looked;			/* all databases had a run, or have one now */
	bool		everywhere;		/* the next time databases without an index of ours are not left out */
} plan;

/*
 * When something is to be done about the noted indexes of a database.  All are looked at, be it that they were dropped, if `hinted`.
 */
static TimestampTz
noted_due(Oid database, const ShermanRebuild *noted, int count, bool hinted)
{
	TimestampTz due = DT_NOEND;

	for (int i = 0; i < count; i++)
	{
		if (noted[i].database != database)
			continue;
		if (hinted)
			return DT_NOBEGIN;
		if (sherman_rebuild_is_due(&noted[i], noted[i].next))
			due = Min(due, noted[i].next);
	}
	return due;
}

/*
 * When a database wants another run because of what has become of the last one.  A command on the database may have ended that, or
 * kept it out: such commands do not change indexes' states.
 */
static TimestampTz
again_due(const ShermanLastRun *last)
{
	if (last == NULL || last->end == SHERMAN_RUN_NOTHING || last->end == SHERMAN_RUN_DONE)
		return DT_NOEND;
	return TimestampTzPlusMilliseconds(last->at, last->end == SHERMAN_RUN_REFUSED ? REFUSED_MS : AGAIN_MS);
}

/*
 * The databases that want a run now, as `all` do that have indexes of ours; `*next` is when the next one does.  What is noted of
 * indexes in databases that are gone is forgotten.
 */
static List *
list_due(TimestampTz now, bool all, bool hinted, TimestampTz *next)
{
	List	   *databases = sherman_list_databases();
	List	   *with_trees = NIL;
	List	   *wanted = NIL;
	int			tree_count;
	ShermanTreeEntry *trees = sherman_trees_list(&tree_count);
	int			count;
	ShermanRebuild *noted = sherman_rebuilds_list(&count);
	ListCell   *cell;

	/* In a database that had no index of ours there is one now if it has a tree. */
	for (int i = 0; i < tree_count; i++)
		with_trees = list_append_unique_oid(with_trees, trees[i].database);
	for (int i = 0; i < count; i++)
	{
		if (sherman_find_database(databases, noted[i].database) == NULL)
			sherman_rebuilds_remove(noted[i].database, noted[i].index);
	}
	foreach(cell, databases)
	{
		const ShermanDatabase *database = lfirst(cell);
		const ShermanLastRun *last = sherman_last_run(SHERMAN_REBUILD, database->oid);
		bool		without = last != NULL && last->end == SHERMAN_RUN_NOTHING && !plan.everywhere &&
			!list_member_oid(with_trees, database->oid);
		TimestampTz due = Min(noted_due(database->oid, noted, count, hinted), again_due(last));

		if (!database->open)
			continue;
		if ((all && !without) || due <= now)
			wanted = lappend_oid(wanted, database->oid);
		else
			*next = Min(*next, due);
	}
	return wanted;
}

List *
sherman_rebuild_wanted(TimestampTz now, TimestampTz *next)
{
	uint64		generation = sherman_generation();
	uint32		hints = pg_atomic_read_u32(&sherman_shared->hints);
	uint32		wish = SHERMAN_REBUILD_ALL_WANTED;
	List	   *databases;

	sherman_rebuilds_welcome(sherman_attached_nodes());
	if (pg_atomic_compare_exchange_u32(&sherman_shared->rebuild_all, &wish, SHERMAN_REBUILD_ALL_BEGUN))
	{
		plan.generation = 0;
		plan.everywhere = true;
	}
	/* What was not rebuilt is looked for when that is wanted again. */
	if (!sherman_rebuild_works() && plan.looked)
	{
		plan.generation = 0;
		return NIL;
	}
	databases = list_due(now, generation != plan.generation, hints != plan.hints, next);
	/* Nothing is due, now or later. */
	if (databases == NIL && *next == DT_NOEND && wish == SHERMAN_REBUILD_ALL_BEGUN)
		(void) pg_atomic_compare_exchange_u32(&sherman_shared->rebuild_all, &wish, SHERMAN_REBUILD_ALL_NOT);
	plan.looked = true;
	plan.everywhere = false;
	plan.generation = generation;
	plan.hints = hints;
	return databases;
}
