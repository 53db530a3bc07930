/*
 * epochs.c
 *		The epochs of this server, and what WAL positions of them prove.
 *
 * What was added to a tree in an epoch, at an LSN that the WAL of that epoch did not get to, has lost its row.
 * An LSN alone does not tell: after a crash the next epoch writes the same LSNs anew.  So for a WAL position
 * (epoch, LSN) the ends of that epoch and of all since count: the smallest of them is the limit.
 */
#include "am/base/sherman.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/recovery/recovery.h"

/* Columns of sherman_epochs(), as sherman--1.0.sql declares them. */
#define EPOCH_COLUMNS 5

PG_FUNCTION_INFO_V1(sherman_epochs);

static const char *const known_by_texts[] = {
	[SHERMAN_KNOWN_NOT] = NULL,
	[SHERMAN_KNOWN_SHUTDOWN] = "shutdown checkpoint",
	[SHERMAN_KNOWN_RECOVERY] = "end of recovery",
	[SHERMAN_KNOWN_CHECKPOINT] = "last checkpoint, no recovery",
	[SHERMAN_KNOWN_WAL] = "next start in the WAL",
	[SHERMAN_KNOWN_CUT] = "taken over",
	[SHERMAN_KNOWN_NOTHING] = "not known",
};

void
sherman_epoch_end(ShermanLocal *local, XLogRecPtr end, ShermanKnownBy known_by)
{
	if (local->epoch == 0 || (local->known_by != SHERMAN_KNOWN_NOT && local->end <= end))
		return;
	local->end = end;
	local->known_by = known_by;
	if (known_by == SHERMAN_KNOWN_NOTHING)
		ereport(LOG,
				(errmsg("it is not known where the WAL of epoch %u of sherman indexes ends", local->epoch)));
	else
		ereport(LOG,
				(errmsg("the WAL of epoch %u of sherman indexes ends at " COMPAT_LSN, local->epoch,
						LSN_FORMAT_ARGS(end)),
				 errdetail("Known by: %s.", known_by_texts[known_by])));
}

/*
 * Makes room for one more by merging the two oldest.
 */
static void
merge_oldest(ShermanLocal *local)
{
	ShermanEpoch *oldest = &local->past[0];
	ShermanEpoch *next = &local->past[1];

	/* Two clean ends, one behind the other, are one clean end. */
	if (oldest->known_by != SHERMAN_KNOWN_SHUTDOWN || next->known_by != SHERMAN_KNOWN_SHUTDOWN ||
		oldest->end > next->end)
	{
		if (next->known_by == SHERMAN_KNOWN_SHUTDOWN)
			next->known_by = oldest->known_by;
		next->end = Min(oldest->end, next->end);
	}
	local->past_count--;
	memmove(oldest, next, sizeof(ShermanEpoch) * local->past_count);
}

void
sherman_epoch_begin(ShermanLocal *local)
{
	if (local->epoch != 0)
	{
		ShermanEpoch *past;

		if (local->closed)
			sherman_epoch_end(local, local->closed_at, SHERMAN_KNOWN_SHUTDOWN);
		if (local->known_by == SHERMAN_KNOWN_NOT)
			sherman_epoch_end(local, InvalidXLogRecPtr, SHERMAN_KNOWN_NOTHING);
		if (local->past_count == SHERMAN_EPOCHS_KEPT)
			merge_oldest(local);
		past = &local->past[local->past_count++];
		past->epoch = local->epoch;
		past->known_by = local->known_by;
		past->began = local->began;
		past->end = local->end;
	}
	local->epoch++;
	local->closed = 0;
	local->closed_at = InvalidXLogRecPtr;
	local->known_by = SHERMAN_KNOWN_NOT;
	local->end = InvalidXLogRecPtr;
	local->began = GetCurrentTimestamp();
}

void
sherman_epoch_limits(const ShermanLocal *local, TreeWalLimits *ends)
{
	uint64		floor = PG_UINT64_MAX;

	memset(ends, 0, sizeof(*ends));
	ends->epoch = local->epoch;
	ends->count = local->past_count;
	if (ends->count == 0)
		return;
	ends->first = local->past[0].epoch;
	for (int i = (int) local->past_count - 1; i >= 0; i--)
	{
		const ShermanEpoch *past = &local->past[i];

		/*
		 * Behind a clean end there is nothing, whatever WAL positions were rounded up to.  That holds as long as no
		 * later end is before it: then its history was set back.
		 */
		if (past->known_by == SHERMAN_KNOWN_SHUTDOWN && past->end <= floor)
			ends->limit[i] = PG_UINT64_MAX;
		else
			ends->limit[i] = Min(floor, past->end);
		floor = Min(floor, past->end);
	}
}

/* ---- the view ---- */

static void
put_epoch(ReturnSetInfo *result, const ShermanEpoch *epoch)
{
	Datum		values[EPOCH_COLUMNS] = {0};
	bool		nulls[EPOCH_COLUMNS] = {false};
	const char *known_by = known_by_texts[Min(epoch->known_by, SHERMAN_KNOWN_NOTHING)];

	values[0] = Int64GetDatum((int64) epoch->epoch);
	values[1] = TimestampTzGetDatum(epoch->began);
	values[2] = BoolGetDatum(epoch->known_by == SHERMAN_KNOWN_SHUTDOWN);
	values[3] = LSNGetDatum(epoch->end);
	nulls[2] = nulls[4] = known_by == NULL;
	nulls[3] = XLogRecPtrIsInvalid(epoch->end);
	if (known_by != NULL)
		values[4] = CStringGetTextDatum(known_by);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * One row for each epoch that is kept, and the one in use, or used last.
 */
Datum
sherman_epochs(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	ShermanLocal local;
	ShermanEpoch last;

	InitMaterializedSRF(fcinfo, 0);
	if (sherman_shared == NULL)
		return (Datum) 0;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	local = sherman_shared->local;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	for (uint32 i = 0; i < local.past_count; i++)
		put_epoch(result, &local.past[i]);
	if (local.epoch == 0)
		return (Datum) 0;
	last.epoch = local.epoch;
	last.known_by = local.known_by;
	last.began = local.began;
	last.end = local.end;
	put_epoch(result, &last);
	return (Datum) 0;
}
