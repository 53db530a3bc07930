/*
 * rebuild.c
 *		sherman.auto_rebuild, or sherman_rebuild_all(): broken indexes are rebuilt by a database worker, concurrently, on the memory
 *		nodes that are left.  Which databases it is sent into, and when: rebuild_plan.c.
 *
 * It looks at the metapages of all indexes of ours: only they know what is broken if the memory that held an index is gone.  Those
 * that are to have a copy and have none, where one can be made now, count as broken here.  It notes the broken ones (rebuilds.c), and
 * rebuilds one after the other by REINDEX CONCURRENTLY, each in transactions of its own: whatever ends it, what was rebuilt stays,
 * and queries and inserts go on beside it.
 *
 * A try that fails, or that the server does not survive, leaves an invalid index behind, which inserts have to fill.  The worker
 * drops those of its own tries: it knows their oids.  A session that works on a table so holds a lock on it; nothing is touched without
 * having got that lock, and it is never waited for.
 */
#include "am/base/sherman.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/vacuum.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "am/background/background.h"
#include "am/background/rebuild.h"
#include "am/base/shared.h"
#include "am/index/index.h"

/* Until an index is looked at again that could not be looked at, or whose table somebody else works on. */
#define BUSY_MS 2000

/* What is known of an index that was noted as broken. */
typedef enum Finding
{
	FINDING_GONE,				/* it is there no more, or it is good */
	FINDING_BROKEN,				/* or without the copy that it is to have */
	FINDING_AWAY,				/* a memory node is away for now: when that changes there is another run */
	FINDING_LOCKED
} Finding;

/* The worker's: the index that is being rebuilt (rebuilding.c), as long as its copy is not made. */
static Oid	copying = InvalidOid;

/* ---- what is broken ---- */

/*
 * Looks at an index without waiting.  `*reason` is why it is broken, or that it is not.
 */
static Finding
look_at_index(Oid oid, ShermanReason *reason)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(oid));
	Finding		finding = FINDING_AWAY;
	ShermanState state;
	Relation	index;
	bool		valid;

	*reason = SHERMAN_REASON_NONE;
	if (!HeapTupleIsValid(tuple))
		return FINDING_GONE;
	valid = ((Form_pg_index) GETSTRUCT(tuple))->indisvalid;
	ReleaseSysCache(tuple);
	/* One that is being made, or that a command has left behind. */
	if (!valid)
		return FINDING_GONE;
	if (!ConditionalLockRelationOid(oid, AccessShareLock))
		return FINDING_LOCKED;
	index = try_relation_open(oid, NoLock);
	if (index == NULL)
	{
		UnlockRelationOid(oid, AccessShareLock);
		return FINDING_GONE;
	}
	state = sherman_index_state(index, reason);
	if (state == SHERMAN_BROKEN)
		finding = FINDING_BROKEN;
	else if (state == SHERMAN_OK)
		finding = sherman_replicas_can_be_made(index) ? FINDING_BROKEN : FINDING_GONE;
	relation_close(index, AccessShareLock);
	return finding;
}

/*
 * Notes a broken index; false: there is no room for it.
 */
static bool
note_broken(Oid oid)
{
	ShermanRebuild rebuild = {.database = MyDatabaseId,.index = oid};
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(oid));
	char	   *schema = get_namespace_name(get_rel_namespace(oid));
	char	   *name = get_rel_name(oid);

	if (HeapTupleIsValid(tuple))
	{
		rebuild.heap = ((Form_pg_index) GETSTRUCT(tuple))->indrelid;
		/* Core does not rebuild these concurrently; a lock that stops all queries is the user's to take. */
		rebuild.manual = ((Form_pg_index) GETSTRUCT(tuple))->indisexclusion;
		ReleaseSysCache(tuple);
	}
	/* It has just been dropped. */
	if (rebuild.heap == InvalidOid || schema == NULL || name == NULL)
		return true;
	if (rebuild.manual)
		strlcpy(rebuild.error, "indexes of exclusion constraints cannot be rebuilt concurrently", sizeof(rebuild.error));
	snprintf(rebuild.name, sizeof(rebuild.name), "%s.%s", schema, name);
	return sherman_rebuilds_add(&rebuild);
}

/*
 * Forgets the indexes of this database that are good again.
 */
static void
forget_good(void)
{
	int			count;
	ShermanRebuild *noted = sherman_rebuilds_list(&count);
	ShermanReason reason;

	for (int i = 0; i < count; i++)
	{
		if (noted[i].database == MyDatabaseId && noted[i].made == InvalidOid &&
			look_at_index(noted[i].index, &reason) == FINDING_GONE)
			sherman_rebuilds_remove(MyDatabaseId, noted[i].index);
	}
}

/*
 * Behind a start: how many indexes of this database are broken, and why.
 */
static void
tell_broken(int ours, const int *broken)
{
	StringInfoData reasons;
	int			count = 0;

	initStringInfo(&reasons);
	for (int i = SHERMAN_REASON_NONE + 1; i < SHERMAN_REASONS; i++)
	{
		count += broken[i];
		if (broken[i] > 0)
			appendStringInfo(&reasons, "%s%d: %s", reasons.len > 0 ? "; " : "", broken[i], sherman_reason_text((ShermanReason) i));
	}
	if (count > 0)
		ereport(WARNING,
				(errmsg("%d of %d sherman indexes of database \"%s\" are broken", count, ours, get_database_name(MyDatabaseId)),
				 errdetail("%s%s.", sherman_shared->promoted ? "This server was promoted. " : "", reasons.data),
				 sherman_rebuild_works() ?
				 errhint("They are rebuilt in the background; the view \"sherman_stat_progress_rebuild\" shows how far that is, and which are left to REINDEX.") :
				 errhint("Rebuild them with REINDEX, or all of them with SELECT sherman_rebuild_all().")));
}

/*
 * Looks at all indexes of this database, and notes the broken ones.  `*room`: there was room for all; `tell`: the log is to have how
 * many are broken.
 */
static ShermanRunEnd
look_at_indexes(bool tell, bool *room)
{
	ShermanRunEnd end = SHERMAN_RUN_NOTHING;
	int			reasons[SHERMAN_REASONS] = {0};
	int			ours = 0;
	int			broken = 0;
	ListCell   *cell;

	*room = true;
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	foreach(cell, sherman_list_candidates())
	{
		const ShermanCandidate *candidate = lfirst(cell);
		ShermanReason reason;
		Finding		finding;

		CHECK_FOR_INTERRUPTS();
		if (candidate->temporary || !sherman_is_ours(candidate->oid))
			continue;
		ours++;
		finding = look_at_index(candidate->oid, &reason);
		reasons[reason]++;
		if (finding == FINDING_LOCKED)
			end = SHERMAN_RUN_AGAIN;
		else if (end == SHERMAN_RUN_NOTHING)
			end = SHERMAN_RUN_DONE;
		if (finding != FINDING_BROKEN)
			continue;
		broken++;
		if (sherman_rebuild_works())
			*room = note_broken(candidate->oid) && *room;
	}
	forget_good();
	if (tell)
		tell_broken(ours, reasons);
	PopActiveSnapshot();
	CommitTransactionCommand();
	ereport(DEBUG1, (errmsg("sherman rebuild: %d of %d indexes are broken", broken, ours)));
	if (!*room)
		ereport(LOG, (errmsg("sherman rebuild: more indexes are broken than can be noted; the others follow")));
	return end;
}

/* ---- what a try has left ---- */

/*
 * Whether an index is invalid, of this table, ours and named as REINDEX CONCURRENTLY does.
 */
static bool
is_left(Oid oid, Oid heap, const char *mark)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(oid));
	char	   *name = get_rel_name(oid);
	bool		left;

	if (!HeapTupleIsValid(tuple))
		return false;
	left = name != NULL && strstr(name, mark) != NULL && sherman_is_ours(oid) &&
		!((Form_pg_index) GETSTRUCT(tuple))->indisvalid && ((Form_pg_index) GETSTRUCT(tuple))->indrelid == heap;
	ReleaseSysCache(tuple);
	return left;
}

/*
 * What the last try has left behind: the copy, or, if that has taken the index's place, the index; InvalidOid:
 * nothing.
 */
static Oid
find_left(const ShermanRebuild *rebuild)
{
	if (is_left(rebuild->made, rebuild->heap, "_ccnew"))
		return rebuild->made;
	return is_left(rebuild->index, rebuild->heap, "_ccold") ? rebuild->index : InvalidOid;
}

/*
 * Begins a transaction that has the table for itself, as far as commands go that define something; false: it is
 * not to be had, and there is no transaction.
 */
static bool
begin_on_table(const ShermanRebuild *rebuild)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	/* What is made here must outlive the transactions that the command ends. */
	MemoryContextSwitchTo(PortalContext);
	PushActiveSnapshot(GetTransactionSnapshot());
	if (ConditionalLockRelationOid(rebuild->heap, ShareUpdateExclusiveLock))
		return true;
	PopActiveSnapshot();
	CommitTransactionCommand();
	return false;
}

static void
end_on_table(void)
{
	while (ActiveSnapshotSet())
		PopActiveSnapshot();
	CommitTransactionCommand();
}

/*
 * Drops what the last try has left, as DROP INDEX CONCURRENTLY does; false: somebody works on the table.
 */
static bool
drop_left(const ShermanRebuild *rebuild)
{
	ObjectAddresses *objects;
	ObjectAddress object = {.classId = RelationRelationId};

	if (!begin_on_table(rebuild))
		return false;
	object.objectId = find_left(rebuild);
	if (object.objectId != InvalidOid)
	{
		ereport(LOG,
				(errmsg("sherman rebuild: dropping \"%s\", which a rebuild of index \"%s\" has left behind",
						get_rel_name(object.objectId), rebuild->name)));
		sherman_rebuild_begins(rebuild->index, false);
		objects = new_object_addresses();
		add_exact_object_address(&object, objects);
		performMultipleDeletions(objects, DROP_RESTRICT,
								 PERFORM_DELETION_CONCURRENTLY | PERFORM_DELETION_INTERNAL);
	}
	end_on_table();
	sherman_rebuild_made(rebuild->index, InvalidOid);
	return true;
}

/* ---- a try ---- */

void
sherman_rebuild_relation_made(Oid relation)
{
	if (likely(copying == InvalidOid))
		return;
	/* The copy comes before any code of the user's. */
	sherman_rebuild_made(copying, relation);
	copying = InvalidOid;
}

static void
reindex_concurrently(const ShermanRebuild *rebuild)
{
	ReindexStmt *statement = makeNode(ReindexStmt);
	char	   *schema = get_namespace_name(get_rel_namespace(rebuild->index));
	char	   *name = get_rel_name(rebuild->index);

	if (schema == NULL || name == NULL)
		return;
	statement->kind = REINDEX_OBJECT_INDEX;
	statement->relation = makeRangeVar(schema, name, -1);
	statement->params = list_make1(makeDefElem("concurrently", (Node *) makeBoolean(true), -1));
	pgstat_report_activity(STATE_RUNNING, psprintf("REINDEX INDEX CONCURRENTLY %s",
												   quote_qualified_identifier(schema, name)));
	copying = rebuild->index;
	ExecReindex(NULL, statement, true);
	copying = InvalidOid;
}

/*
 * A try, in a transaction that begin_on_table() began, which it ends.
 */
static void
try_to_rebuild(const ShermanRebuild *rebuild)
{
	sherman_rebuilding = rebuild->index;
	sherman_rebuild_begins(rebuild->index, true);
	ereport(LOG,
			(errmsg("sherman rebuild: index \"%s\" is rebuilt concurrently, try %u of %d", rebuild->name,
					rebuild->tries + 1, sherman_rebuild_tries)));
	reindex_concurrently(rebuild);
	end_on_table();
	sherman_rebuilding = InvalidOid;
	sherman_rebuilds_remove(MyDatabaseId, rebuild->index);
	ereport(LOG, (errmsg("sherman rebuild: index \"%s\" is rebuilt", rebuild->name)));
}

/* Whether a command needs this database for itself: what it cancels is no try. */
static bool
is_sent_away(void)
{
	return sherman_runs_forbidden(MyDatabaseId);
}

/*
 * Cleans up behind an error, and notes it.
 */
static void
note_error(const ShermanRebuild *rebuild)
{
	MemoryContext context = MemoryContextSwitchTo(PortalContext);
	ErrorData  *error = CopyErrorData();
	int			left;

	HOLD_INTERRUPTS();
	EmitErrorReport();
	FlushErrorState();
	copying = sherman_rebuilding = InvalidOid;
	AbortOutOfAnyTransaction();
	MemoryContextSwitchTo(context);
	left = sherman_rebuild_failed(rebuild->index, error->message, !is_sent_away());
	if (is_sent_away())
		ereport(DEBUG1, (errmsg("sherman rebuild: index \"%s\" has to wait for a command on its database", rebuild->name)));
	else if (left > 0)
		ereport(LOG, (errmsg("sherman rebuild: index \"%s\" could not be rebuilt; tries left: %d", rebuild->name, left)));
	else
		ereport(LOG,
				(errmsg("sherman rebuild: index \"%s\" could not be rebuilt, and is given up", rebuild->name),
				 errhint("Rebuild it with REINDEX INDEX %s.", rebuild->name)));
	FreeErrorData(error);
	RESUME_INTERRUPTS();
}

/*
 * Does what is to be done about an index; false: somebody works on its table.
 */
static bool
work_on(const ShermanRebuild *rebuild)
{
	ShermanReason reason;
	Finding		finding;

	/* After a pause it is due again. */
	if (rebuild->made != InvalidOid)
		return drop_left(rebuild);
	if (!begin_on_table(rebuild))
		return false;
	finding = look_at_index(rebuild->index, &reason);
	if (finding == FINDING_BROKEN)
	{
		try_to_rebuild(rebuild);
		return true;
	}
	end_on_table();
	if (finding == FINDING_GONE)
		sherman_rebuilds_remove(MyDatabaseId, rebuild->index);
	return finding == FINDING_GONE;
}

/*
 * The same; errors go to the log and into the table.
 */
static void
work_on_safely(const ShermanRebuild *rebuild)
{
	PG_TRY();
	{
		if (!work_on(rebuild))
		{
			ereport(DEBUG1, (errmsg("sherman rebuild: index \"%s\" has to wait", rebuild->name)));
			sherman_rebuild_postpone(rebuild->index, BUSY_MS);
		}
	}
	PG_CATCH();
	{
		note_error(rebuild);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(PortalContext);
	MemoryContextReset(PortalContext);
	pgstat_report_stat(true);
	pgstat_report_activity(STATE_IDLE, NULL);
}

/*
 * Drops what canceled tries have left here: a copy of the database would have it for ever.
 */
static void
clean_up(void)
{
	int			count;
	ShermanRebuild *noted = sherman_rebuilds_list(&count);

	for (int i = 0; i < count; i++)
	{
		if (noted[i].database == MyDatabaseId && noted[i].made != InvalidOid)
			work_on_safely(&noted[i]);
	}
}

/*
 * This process is told to end: that says nothing against the index.
 */
static void
interrupted(int code, Datum argument)
{
	LWLockReleaseAll();
	if (sherman_rebuilding != InvalidOid)
		(void) sherman_rebuild_failed(sherman_rebuilding, "the rebuild was interrupted", false);
}

/*
 * Works on what is due here, one after the other; returns whether there was something.
 */
static bool
work_on_due(void)
{
	ShermanRebuild next;
	bool		worked = false;

	while (sherman_rebuild_works() && !is_sent_away() && sherman_rebuilds_next(MyDatabaseId, &next))
	{
		work_on_safely(&next);
		worked = true;
		sherman_worker_reload();
	}
	return worked;
}

static ShermanRunEnd
rebuild_broken(bool first)
{
	ShermanRunEnd end;
	bool		room;

	on_shmem_exit(interrupted, (Datum) 0);
	do
	{
		end = look_at_indexes(first, &room);
		first = false;
	} while (work_on_due() && !room && !is_sent_away());
	if (is_sent_away())
		clean_up();
	return end;
}

const ShermanWorker sherman_rebuild = {
	.name = "sherman rebuild",
	.undoes = true,
	.pause_ms = REBUILD_ROUND_MS,
	.wanted = sherman_rebuild_wanted,
	.run = rebuild_broken
};
