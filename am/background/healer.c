/*
 * healer.c
 *		The healer: after a crash the launcher sends a worker into each database with indexes that are in doubt, and it heals
 *		them (heal.c), one after the other.
 *
 * It is in nobody's way.  It takes only locks that are free; parts of an index are healed in short transactions; commands that wait
 * for its locks all the same cancel it as they do an autovacuum; commands on databases end the visit (database_workers.c).  What cannot be
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
#include "postmaster/interrupt.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/background/background.h"
#include "am/base/owner.h"
#include "am/base/shared.h"
#include "am/heal/heal.h"
#include "am/index/index.h"

/* A transaction of the healer, about: so long locks are held, and rows kept from VACUUM. */
#define PART_MS 500

/* Between two visits, whatever becomes of them. */
#define VISIT_PAUSE_MS 1000

/* The index at hand. */
typedef struct Patient
{
	Oid			oid;
	char	   *name;			/* with its schema, once it was opened */
	bool		again;			/* it was tried before, in vain */
	TimestampTz began;
	Healing		healing;
} Patient;

/* ---- the visit ---- */

/*
 * Held back as an autovacuum is.
 */
static void
set_costs(void)
{
	if (autovacuum_vac_cost_delay >= 0)
		VacuumCostDelay = autovacuum_vac_cost_delay;
	if (autovacuum_vac_cost_limit > 0)
		VacuumCostLimit = autovacuum_vac_cost_limit;
	VacuumCostActive = VacuumCostDelay > 0;
}

/*
 * As an autovacuum's worker: what users have set for sessions is not for this one.
 */
static void
set_up(void)
{
	static const char *const settings[][2] = {
		{"search_path", OWNER_PATH},
		{"statement_timeout", "0"},
		{"lock_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"default_transaction_isolation", "read committed"}
	};

	for (int i = 0; i < (int) lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
	set_costs();
	/* Whoever waits for a lock of ours cancels us when it looks for a deadlock. */
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
	return entry.heal_now && (entry.suspect_epoch != 0 || sherman_trees_copies_doubted(&entry, false));
}

/*
 * Whether this visit is to heal the tree that an index names.
 */
static bool
is_wanted(Relation index, bool *again)
{
	ShermanReason reason;
	ShermanMetaPage meta;

	if (sherman_index_state(index, &reason) != SHERMAN_OK || !sherman_metapage_read(index, &meta))
		return false;
	/* Nobody is to come for a copy that is there no more. */
	if (meta.copies_valid != SHERMAN_VALID_BOTH)
		sherman_trees_compared(meta.tree);
	/* A copy may be in doubt alone. */
	return tree_is_wanted(sherman_tree_key(&meta), again) ||
		(meta.copies_valid == SHERMAN_VALID_BOTH && tree_is_wanted(meta.tree | SHERMAN_TREE_COPY, again));
}

/*
 * Opens an index and its table, locked as for a change of rows, if nobody is in the way and it is to be healed.
 */
static bool
open_patient(Patient *patient, Relation *heap, Relation *index)
{
	Oid			table = sherman_is_ours(patient->oid) ? IndexGetRelation(patient->oid, true) : InvalidOid;

	if (!OidIsValid(table) || !ConditionalLockRelationOid(table, RowExclusiveLock))
		return false;
	*heap = try_table_open(table, NoLock);
	if (*heap == NULL)
		return false;
	*index = ConditionalLockRelationOid(patient->oid, RowExclusiveLock) ? try_relation_open(patient->oid, NoLock) : NULL;
	if (*index != NULL && (*index)->rd_rel->relkind == RELKIND_INDEX && (*index)->rd_index->indrelid == table &&
		(*index)->rd_index->indisvalid && is_wanted(*index, &patient->again))
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
name_patient(MemoryContext context, Patient *patient, Relation index)
{
	MemoryContext caller = MemoryContextSwitchTo(context);
	char	   *activity;

	patient->name = psprintf("%s.%s", get_namespace_name(RelationGetNamespace(index)), RelationGetRelationName(index));
	activity = psprintf("sherman: healing index %s", patient->name);
	pgstat_report_activity(STATE_RUNNING, activity);
	pfree(activity);
	MemoryContextSwitchTo(caller);
}

/*
 * One part, in a transaction.
 */
static void
heal_some(MemoryContext context, Patient *patient)
{
	Healing    *healing = &patient->healing;
	Relation	heap;
	Relation	index;

	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	if (open_patient(patient, &heap, &index))
	{
		healing->complaint = patient->again ? DEBUG1 : WARNING;
		if (patient->name == NULL)
		{
			name_patient(context, patient, index);
			heal_show(healing, patient->oid);
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
tell_end(const Patient *patient)
{
	const Healing *healing = &patient->healing;

	if (patient->name == NULL || healing->tree == 0)
		return;
	sherman_trees_heal_vain(healing->tree, healing->left > 0 && healing->complained);
	ereport(patient->again && healing->left > 0 ? DEBUG1 : LOG,
			(errmsg("sherman healer: index \"%s\": " INT64_FORMAT " of " INT64_FORMAT " leaves healed, " INT64_FORMAT
					" entries removed, " INT64_FORMAT " leaves left in doubt, %ld ms",
					patient->name, healing->healed, healing->leaves, healing->removed, healing->left,
					TimestampDifferenceMilliseconds(patient->began, GetCurrentTimestamp()))));
}

/*
 * An error ends the healing of this index, for now, and no more.
 */
static void
survive_error(MemoryContext context, const Patient *patient)
{
	HOLD_INTERRUPTS();
	if (patient->name != NULL)
		errcontext("healing of index \"%s\"", patient->name);
	if (!patient->again)
		EmitErrorReport();
	AbortOutOfAnyTransaction();
	MemoryContextSwitchTo(context);
	FlushErrorState();
	RESUME_INTERRUPTS();
}

static void
heal_patient(MemoryContext context, Oid oid)
{
	Patient		patient = {.oid = oid,.began = GetCurrentTimestamp()};

	PG_TRY();
	{
		while (!patient.healing.ended && sherman_autoheal)
		{
			heal_some(context, &patient);
			if (ConfigReloadPending)
			{
				ConfigReloadPending = false;
				ProcessConfigFile(PGC_SIGHUP);
				set_costs();
			}
		}
		tell_end(&patient);
	}
	PG_CATCH();
	{
		survive_error(context, &patient);
	}
	PG_END_TRY();
	heal_show_no_more(&patient.healing);
	pgstat_report_activity(STATE_IDLE, NULL);
}

/*
 * The indexes of this database that may be ours, but for temporary ones, which nobody heals.
 */
static List *
list_patients(MemoryContext context)
{
	List	   *patients = NIL;
	ListCell   *cell;

	StartTransactionCommand();
	foreach(cell, sherman_list_candidates())
	{
		ShermanCandidate *candidate = lfirst(cell);
		MemoryContext caller = MemoryContextSwitchTo(context);

		if (!candidate->temporary)
			patients = lappend_oid(patients, candidate->oid);
		MemoryContextSwitchTo(caller);
	}
	CommitTransactionCommand();
	return patients;
}

void
sherman_heal_here(void)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "sherman healer", ALLOCSET_DEFAULT_SIZES);
	ListCell   *cell;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	set_up();
	MemoryContextSwitchTo(context);
	foreach(cell, list_patients(context))
		heal_patient(context, lfirst_oid(cell));
}

/* ---- the launcher's part ---- */

long
sherman_heal_round(void)
{
	static TimestampTz begun = 0;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz due;
	Oid			database;

	if (!sherman_autoheal || sherman_visit_lasts(SHERMAN_VISIT_HEAL) || !sherman_trees_next_to_heal(&database, &due))
		return PG_INT32_MAX;
	if (begun != 0)
		due = Max(due, TimestampTzPlusMilliseconds(begun, VISIT_PAUSE_MS));
	if (due > now)
		return TimestampDifferenceMilliseconds(now, due) + 1;
	begun = now;
	/* Whatever becomes of the visit, others have their turn. */
	sherman_trees_take_to_heal(database);
	return sherman_visit_begin(SHERMAN_VISIT_HEAL, database) ? PG_INT32_MAX : VISIT_PAUSE_MS;
}
