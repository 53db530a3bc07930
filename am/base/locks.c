/*
 * locks.c
 *		Heavyweight locks of our own: the key lock of unique indexes and the scan barrier.
 *
 * Both are advisory locks.  Their fourth field, pg_locks.objsubid, is a number of ours, where those of pg_advisory_lock() and its
 * kin have 1 or 2: so no statement can take, hold up or release one.  PostgreSQL's lock manager does the rest: a wait is shown
 * by pg_stat_activity, can be canceled and takes part in deadlock detection with all other locks, and the resource owner
 * releases what an error has left.  pg_locks.classid is the index's oid.
 *
 * The scan barrier of an index has two halves.  Scans hold one of them, in share mode; VACUUM sends new scans to the other half,
 * and waits until the first is free.  So nobody but VACUUM waits for a scan that lasts.  (With one half the scans that come
 * later would queue behind VACUUM.)
 */
#include "am/base/sherman.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"

#include "am/base/shared.h"

/* pg_locks.objsubid. 1 and 2 are SQL's; Citus has those from 4 on, TimescaleDB 29749. */
#define LOCK_OF_KEY 21320
#define LOCK_OF_SCANS 21321
#define LOCK_OF_SECOND_NAME 21322

static void
name_lock(LOCKTAG *tag, Relation index, uint32 field, uint16 kind)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, RelationGetRelid(index), field, kind);
}

static LockAcquireResult
take(Relation index, uint32 field, uint16 kind, LOCKMODE mode, bool dont_wait)
{
	LOCKTAG		tag;

	name_lock(&tag, index, field, kind);
	return LockAcquire(&tag, mode, false, dont_wait);
}

static void
give_back(Relation index, uint32 field, uint16 kind, LOCKMODE mode)
{
	LOCKTAG		tag;

	name_lock(&tag, index, field, kind);
	LockRelease(&tag, mode, false);
}

/* The mode of the lock by the first name. */
static LOCKMODE
mode_of_first(const uint32 *second)
{
	return second != NULL ? ShareLock : ExclusiveLock;
}

/* The second names are a kind of their own: all take a first one before, so they cannot wait for each other in a circle. */
void
sherman_lock_key(Relation index, uint32 key, const uint32 *second)
{
	(void) take(index, key, LOCK_OF_KEY, mode_of_first(second), false);
	if (second != NULL)
		(void) take(index, *second, LOCK_OF_SECOND_NAME, ExclusiveLock, false);
}

void
sherman_unlock_key(Relation index, uint32 key, const uint32 *second)
{
	if (second != NULL)
		give_back(index, *second, LOCK_OF_SECOND_NAME, ExclusiveLock);
	give_back(index, key, LOCK_OF_KEY, mode_of_first(second));
}

/* The turns of the scan barrier: even and odd ones send new scans to half 0 and 1.  Indexes share them by a hash. */
static pg_atomic_uint32 *
turns_of(Relation index)
{
	uint32		hash = hash_combine(murmurhash32(MyDatabaseId), murmurhash32(RelationGetRelid(index)));

	return &sherman_shared->barrier_turns[hash % SHERMAN_BARRIERS];
}

uint32
sherman_scan_barrier_hold(Relation index)
{
	uint32		half = pg_atomic_read_u32(turns_of(index)) % 2;

	(void) take(index, half, LOCK_OF_SCANS, ShareLock, false);
	return half;
}

bool
sherman_scan_barrier_try(Relation index, uint32 *half)
{
	*half = pg_atomic_read_u32(turns_of(index)) % 2;
	return take(index, *half, LOCK_OF_SCANS, ShareLock, true) != LOCKACQUIRE_NOT_AVAIL;
}

void
sherman_scan_barrier_leave(Relation index, uint32 half)
{
	give_back(index, half, LOCK_OF_SCANS, ShareLock);
}

/* Until each scan that holds this half has let go of it once. */
static void
wait_for_half(Relation index, uint32 half)
{
	(void) take(index, half, LOCK_OF_SCANS, ExclusiveLock, false);
	give_back(index, half, LOCK_OF_SCANS, ExclusiveLock);
}

/*
 * Whichever half a scan holds that has read something before, it is waited for.  The turn sees to it that few come to the
 * half that is waited for: only those that had looked before it, or come behind a turn of another index with the same hash.
 */
void
sherman_scan_barrier_wait(Relation index)
{
	uint32		half = pg_atomic_read_u32(turns_of(index)) % 2;

	wait_for_half(index, 1 - half);
	pg_atomic_fetch_add_u32(turns_of(index), 1);
	wait_for_half(index, half);
}
