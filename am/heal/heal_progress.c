/*
 * heal_progress.c
 *		sherman_stat_progress_heal: the processes that heal, their indexes, and their progress.
 *
 * Places in shared memory are taken and given back under its lock; their owners alone change the numbers.
 */
#include "am/base/sherman.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "am/heal/heal.h"
#include "am/base/shared.h"

PG_FUNCTION_INFO_V1(sherman_heal_progress_info);

/* Columns of the function's result, as sherman--1.0.sql declares them. */
#define PROGRESS_COLUMNS 10

static const char *const phase_names[] = {
	[SHERMAN_HEAL_OPENING] = "opening index",
	[SHERMAN_HEAL_LEAVES] = "looking up entries",
	[SHERMAN_HEAL_ENDING] = "finishing",
};

static void
give_back(ShermanHealShown *shown)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	shown->pid = 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

/*
 * A process that exits in the middle of healing.
 */
static void
give_back_all(int code, Datum argument)
{
	LWLockReleaseAll();
	for (int i = 0; i < SHERMAN_HEALS_SHOWN; i++)
	{
		if (sherman_shared->heal[i].pid == MyProcPid)
			give_back(&sherman_shared->heal[i]);
	}
}

void
heal_show(Healing *healing, Oid index)
{
	static bool registered = false;
	ShermanHealShown *shown = NULL;

	if (!registered)
		before_shmem_exit(give_back_all, (Datum) 0);
	registered = true;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	for (int i = 0; i < SHERMAN_HEALS_SHOWN && shown == NULL; i++)
	{
		if (sherman_shared->heal[i].pid == 0)
			shown = &sherman_shared->heal[i];
	}
	if (shown != NULL)
	{
		shown->pid = MyProcPid;
		shown->database = MyDatabaseId;
		shown->index = index;
		shown->started = GetCurrentTimestamp();
		pg_atomic_write_u32(&shown->phase, SHERMAN_HEAL_OPENING);
		pg_atomic_write_u64(&shown->leaves_total, 0);
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	healing->shown = shown;
	heal_show_counts(healing, 0);
}

void
heal_show_phase(Healing *healing, ShermanHealPhase phase)
{
	if (healing->shown != NULL)
		pg_atomic_write_u32(&healing->shown->phase, phase);
}

void
heal_show_counts(Healing *healing, uint64 leaves)
{
	ShermanHealShown *shown = healing->shown;

	if (shown == NULL)
		return;
	if (leaves != 0)
		pg_atomic_write_u64(&shown->leaves_total, leaves);
	pg_atomic_write_u64(&shown->leaves, healing->leaves);
	pg_atomic_write_u64(&shown->healed, healing->healed);
	pg_atomic_write_u64(&shown->removed, healing->removed);
	pg_atomic_write_u64(&shown->left, healing->left);
}

void
heal_show_no_more(Healing *healing)
{
	if (healing->shown != NULL)
		give_back(healing->shown);
	healing->shown = NULL;
}

/*
 * sherman_heal_progress_info(): a row for each index that is being healed, in all databases.
 */
Datum
sherman_heal_progress_info(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	if (!sherman_preloaded())
		return (Datum) 0;
	for (int i = 0; i < SHERMAN_HEALS_SHOWN; i++)
	{
		ShermanHealShown *shown = &sherman_shared->heal[i];
		Datum		values[PROGRESS_COLUMNS];
		bool		nulls[PROGRESS_COLUMNS] = {false};
		pid_t		pid;

		LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
		pid = shown->pid;
		values[0] = Int32GetDatum(pid);
		values[1] = ObjectIdGetDatum(shown->database);
		values[2] = ObjectIdGetDatum(shown->index);
		values[9] = TimestampTzGetDatum(shown->started);
		LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
		if (pid == 0)
			continue;
		values[3] = CStringGetTextDatum(phase_names[pg_atomic_read_u32(&shown->phase)]);
		values[4] = Int64GetDatum((int64) pg_atomic_read_u64(&shown->leaves_total));
		values[5] = Int64GetDatum((int64) pg_atomic_read_u64(&shown->leaves));
		values[6] = Int64GetDatum((int64) pg_atomic_read_u64(&shown->healed));
		values[7] = Int64GetDatum((int64) pg_atomic_read_u64(&shown->removed));
		values[8] = Int64GetDatum((int64) pg_atomic_read_u64(&shown->left));
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
