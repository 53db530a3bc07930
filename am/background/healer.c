/*
 * healer.c
 *		The healer: after a crash the launcher sends a worker into each database with indexes that are in doubt, and it heals
 *		them (heal.c), one after the other.
 *
 * It is in nobody's way.  It takes only locks that are free; parts of an index are healed in short transactions; commands that wait
 * for its locks all the same cancel it as they do an autovacuum; commands on databases end the run (scheduler.c).  What cannot be
 * healed now is tried again later, and later each time.
 */
#include "am/base/sherman.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/background/background.h"
#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/heal/heal.h"
#include "am/index/index.h"

/* A transaction of the healer, about: so long locks are held, and rows kept from VACUUM. */
#define PART_MS 500

/* Between the beginnings of two runs, whatever becomes of them. */
#define RUN_PAUSE_MS 1000

/* The index at hand. */
typedef struct HealTarget
{
	Oid			oid;
	char	   *name;			/* with its schema, once it was opened */
	bool		again;			/* it was tried before, in vain */
	TimestampTz began;
	Healing		healing;
} HealTarget;

/* ---- the worker ---- */

/*
 * Held back as an autovacuum is.
 */
static void
set_costs(void)
{
	compat_set_costs(autovacuum_vac_cost_delay >= 0 ? autovacuum_vac_cost_delay : VacuumCostDelay,
					 autovacuum_vac_cost_limit > 0 ? autovacuum_vac_cost_limit : VacuumCostLimit);
}

/*
 * A process that waits for a lock of ours cancels us when its deadlock check runs.
 */
static void
let_cancel(void)
{
	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	MyProc->statusFlags |= PROC_IS_AUTOVACUUM;
	ProcGlobal->statusFlags[MyProc->pgxactoff] = MyProc->statusFlags;
	LWLockRelease(ProcArrayLock);
}

static bool
tree_is_wanted(uint64 key, bool *again)
{
	ShermanTreeEntry entry;

	if (!sherman_trees_find(key, &entry))
		return false;
	*again = entry.heal_tries > 1;
	return entry.heal_now && (entry.unverified_epoch != 0 || sherman_trees_replicas_doubted(&entry, false));
}

/*
 * Whether this run is to heal the tree that an index names.
 */
static bool
is_wanted(Relation index, bool *again)
{
	ShermanReason reason;
	ShermanMetaPage meta;

	if (sherman_index_state(index, &reason) != SHERMAN_OK || !sherman_metapage_read(index, &meta))
		return false;
	/* Nobody is to come for a copy that is there no more. */
	if (meta.replicas_valid != SHERMAN_VALID_BOTH)
		sherman_trees_compared(meta.tree);
	/* A copy may be in doubt alone. */
	return tree_is_wanted(sherman_tree_key(&meta), again) ||
		(meta.replicas_valid == SHERMAN_VALID_BOTH && tree_is_wanted(meta.tree | SHERMAN_TREE_REPLICA, again));
}

/*
 * Opens an index and its table, locked as for a change of rows, if nobody is in the way and it is to be healed.
 */
static bool
open_target(HealTarget *target, Relation *heap, Relation *index)
{
	Oid			table = sherman_is_ours(target->oid) ? IndexGetRelation(target->oid, true) : InvalidOid;

	if (!OidIsValid(table) || !ConditionalLockRelationOid(table, RowExclusiveLock))
		return false;
	*heap = try_table_open(table, NoLock);
	if (*heap == NULL)
		return false;
	*index = ConditionalLockRelationOid(target->oid, RowExclusiveLock) ? try_relation_open(target->oid, NoLock) : NULL;
	if (*index != NULL && (*index)->rd_rel->relkind == RELKIND_INDEX && (*index)->rd_index->indrelid == table &&
		(*index)->rd_index->indisvalid && is_wanted(*index, &target->again))
		return true;
	if (*index != NULL)
		relation_close(*index, NoLock);
	table_close(*heap, NoLock);
	return false;
}

/*
 * What pg_stat_activity and the log call it.
 */
static void
name_target(HealTarget *target, Relation index)
{
	MemoryContext caller = MemoryContextSwitchTo(PortalContext);
	char	   *activity;

	target->name = psprintf("%s.%s", get_namespace_name(RelationGetNamespace(index)), RelationGetRelationName(index));
	activity = psprintf("sherman: healing index %s", target->name);
	pgstat_report_activity(STATE_RUNNING, activity);
	pfree(activity);
	MemoryContextSwitchTo(caller);
}

/*
 * One part, in a transaction.
 */
static void
heal_some(HealTarget *target)
{
	Healing    *healing = &target->healing;
	Relation	heap;
	Relation	index;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (open_target(target, &heap, &index))
	{
		healing->complaint = target->again ? DEBUG1 : WARNING;
		if (target->name == NULL)
		{
			name_target(target, index);
			heal_show(healing, target->oid);
		}
		heal_part(healing, heap, index, PART_MS);
		index_close(index, NoLock);
		table_close(heap, NoLock);
	}
	else
		healing->ended = true;
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/*
 * In the log, once for each index, and again when it is healed after all.
 */
static void
tell_end(const HealTarget *target)
{
	const Healing *healing = &target->healing;

	if (target->name == NULL || healing->tree == 0)
		return;
	sherman_trees_heal_vain(healing->tree, healing->left > 0 && healing->complained);
	ereport(target->again && healing->left > 0 ? DEBUG1 : LOG,
			(errmsg("sherman healer: index \"%s\": " INT64_FORMAT " of " INT64_FORMAT " leaves healed, " INT64_FORMAT
					" entries removed, " INT64_FORMAT " leaves left unverified, %ld ms",
					target->name, healing->healed, healing->leaves, healing->removed, healing->left,
					TimestampDifferenceMilliseconds(target->began, GetCurrentTimestamp()))));
}

/*
 * An error ends the healing of this index, for now, and no more.
 */
static void
survive_error(const HealTarget *target)
{
	HOLD_INTERRUPTS();
	if (target->name != NULL)
		errcontext("healing of index \"%s\"", target->name);
	if (!target->again)
		EmitErrorReport();
	AbortOutOfAnyTransaction();
	MemoryContextSwitchTo(PortalContext);
	FlushErrorState();
	RESUME_INTERRUPTS();
}

static void
heal_target(Oid oid)
{
	HealTarget		target = {.oid = oid,.began = GetCurrentTimestamp()};

	PG_TRY();
	{
		while (!target.healing.ended && sherman_autoheal)
		{
			heal_some(&target);
			sherman_worker_reload();
			set_costs();
		}
		tell_end(&target);
	}
	PG_CATCH();
	{
		survive_error(&target);
	}
	PG_END_TRY();
	heal_show_no_more(&target.healing);
	pgstat_report_activity(STATE_IDLE, NULL);
}

static ShermanRunEnd
heal(bool first)
{
	List	   *candidates;
	ListCell   *cell;

	set_costs();
	let_cancel();
	StartTransactionCommand();
	MemoryContextSwitchTo(PortalContext);
	candidates = sherman_list_candidates();
	CommitTransactionCommand();
	MemoryContextSwitchTo(PortalContext);
	foreach(cell, candidates)
	{
		const ShermanCandidate *candidate = lfirst(cell);

		/* Nobody else can heal an index of a temporary table. */
		if (!candidate->temporary)
			heal_target(candidate->oid);
	}
	return SHERMAN_RUN_DONE;
}

/* ---- the launcher ---- */

static List *
wanted(TimestampTz now, TimestampTz *next)
{
	Oid			database;

	if (!sherman_autoheal || !sherman_trees_next_to_heal(&database, next) || *next > now)
		return NIL;
	/* Whatever becomes of the run, others have their turn. */
	sherman_trees_take_to_heal(database);
	return list_make1_oid(database);
}

const ShermanWorker sherman_healer = {
	.name = "sherman healer",
	.pause_ms = RUN_PAUSE_MS,
	.wanted = wanted,
	.run = heal
};
