/*
 * scan_parallel.c
 *		Parallel scans: which participant may read next, and from where.
 *
 * A participant that wants more entries seizes the scan, reads the next leaves (tree_scan_take()), leaves the place
 * behind them in shared memory, and lets the next one read before it returns its own entries. The place is in the
 * order of the keys and not an address, so it holds whatever is split meanwhile.
 *
 * A participant that fails while it has the scan does not give it back.  That is what ends the others: its
 * error reaches the leader, which waits as the others do, with interrupts served, and takes all of them
 * down with the query.  To hand the scan on would let the others return rows of a scan with a gap.
 */
#include "am/base/sherman.h"

#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"

#include "am/base/compat.h"
#include "am/scan/scan.h"
#include "am/scan/scan_parallel.h"

typedef enum ParallelState
{
	PARALLEL_IDLE,				/* the next participant may read */
	PARALLEL_READING,			/* one participant reads: `place` is its own */
	PARALLEL_DONE
} ParallelState;

typedef struct ParallelScan
{
	slock_t		mutex;			/* for `state` */
	ParallelState state;
	ConditionVariable changed;	/* the state is no longer READING */
	ParallelPlace place;
} ParallelScan;

static ParallelScan *
shared_part(IndexScanDesc scan)
{
	Assert(scan->parallel_scan != NULL);
	return compat_parallel_part(scan->parallel_scan);
}

/*
 * Bytes of shared memory that a scan needs.
 */
Size
sherman_parallel_scan_bytes(void)
{
	return sizeof(ParallelScan);
}

/*
 * aminitparallelscan.
 */
void
sherman_initparallelscan(void *target)
{
	ParallelScan *shared = target;

	memset(shared, 0, sizeof(*shared));
	SpinLockInit(&shared->mutex);
	ConditionVariableInit(&shared->changed);
	shared->state = PARALLEL_IDLE;
}

/*
 * amparallelrescan: the workers of the last scan have ended, those of the next do not run yet.
 */
void
sherman_parallelrescan(IndexScanDesc scan)
{
	ParallelScan *shared = shared_part(scan);

	SpinLockAcquire(&shared->mutex);
	shared->state = PARALLEL_IDLE;
	shared->place.begun = false;
	SpinLockRelease(&shared->mutex);
}

bool
parallel_scan_seize(IndexScanDesc scan, ParallelPlace *place)
{
	ParallelScan *shared = shared_part(scan);
	ParallelState state;

	for (;;)
	{
		SpinLockAcquire(&shared->mutex);
		state = shared->state;
		if (state == PARALLEL_IDLE)
			shared->state = PARALLEL_READING;
		SpinLockRelease(&shared->mutex);
		if (state != PARALLEL_READING)
			break;
		ConditionVariableSleep(&shared->changed, sherman_wait_event(SHERMAN_WAIT_PARALLEL_SCAN));
	}
	ConditionVariableCancelSleep();
	if (state == PARALLEL_IDLE)
		*place = shared->place;
	return state == PARALLEL_IDLE;
}

/*
 * Ends this participant's reading.
 */
static void
leave_reading(ParallelScan *shared, ParallelState state)
{
	Assert(shared->state == PARALLEL_READING);
	SpinLockAcquire(&shared->mutex);
	shared->state = state;
	SpinLockRelease(&shared->mutex);
}

void
parallel_scan_release(IndexScanDesc scan, const ParallelPlace *place)
{
	ParallelScan *shared = shared_part(scan);

	shared->place = *place;
	leave_reading(shared, PARALLEL_IDLE);
	ConditionVariableSignal(&shared->changed);
}

void
parallel_scan_finish(IndexScanDesc scan)
{
	ParallelScan *shared = shared_part(scan);

	leave_reading(shared, PARALLEL_DONE);
	ConditionVariableBroadcast(&shared->changed);
}
