/*
 * scan_open.c
 *		How an index scan opens its index and begins.
 */
#include "am/base/sherman.h"

#include "miscadmin.h"
#include "utils/snapmgr.h"

#include "am/nodes/nodes.h"
#include "am/scan/scan_parallel.h"
#include "am/scan/scan_state.h"

/* Microseconds in which a leaf comes across a network, and its entries are tested, when many are read together. */
#define LEAF_READ_US 4.0

void
scan_hold_barrier(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	if (!state->barrier)
		state->barrier_half = sherman_scan_barrier_hold(scan->indexRelation);
	state->barrier = true;
}

void
scan_release_barrier(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	if (state->barrier)
		sherman_scan_barrier_leave(scan->indexRelation, state->barrier_half);
	state->barrier = false;
}

void
scan_report_status(IndexScanDesc scan, TreeStatus status)
{
	TreeClient *client = sherman_client_if_ready();

	sherman_report(ERROR, status, client ? tree_detail(client) : NULL, scan->indexRelation);
}

/*
 * Opens the index, the tree's scan and the digest of the scan keys, unless they are there from an earlier
 * scan.
 */
bool
scan_open_index(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	if (state->index == NULL || state->index->tree == NULL)
		state->index = state->of_key ? sherman_index_for_key(scan->indexRelation) :
			sherman_index_for_scan(scan->indexRelation,
								   scan->xs_snapshot != InvalidSnapshot && IsMVCCSnapshot(scan->xs_snapshot));
	else
		sherman_index_recheck_for(state->index, scan->indexRelation, state->of_key);
	if (state->index->tree == NULL)
		state->index = sherman_predicate_empty(scan, state->index);
	if (state->index->tree == NULL)
		return false;

	if (state->tree != state->index->tree)
	{
		TreeStatus	status;
		MemoryContext old;

		Assert(state->tree_scan == NULL);
		old = MemoryContextSwitchTo(state->context);
		status = sherman_take_scan(state->index, &state->tree_scan);
		MemoryContextSwitchTo(old);
		if (status != TREE_OK)
			scan_report_status(scan, status);
		state->tree = state->index->tree;
	}
	if (state->keys == NULL ||
		!scan_keys_fit(state->keys, state->index->keys, scan->keyData, scan->numberOfKeys))
	{
		scan_keys_free(state->keys);
		state->keys = NULL;
		state->keys = scan_keys_make(scan->indexRelation, state->index->keys, scan->keyData,
									 scan->numberOfKeys, state->context);
	}
	return true;
}

/*
 * How many leaves are read on in the time of a skip, which waits for two of them, across a network.
 */
static int
skip_patience(void)
{
	double		round_trip_us = sherman_round_trip_us();

	if (round_trip_us <= 0)
		return 1;
	return 1 + (int) Min(SKIP_PATIENCE_MAX - 1, 2 * round_trip_us / (LEAF_READ_US + round_trip_us / LEAVES_AHEAD_MAX));
}

/* Whether the scan will skip is up to its conditions, which may be others in each rescan. */
static void
begin_skip(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	state->skip = NULL;
	if (state->keys->conditions == 0)
		return;
	if (state->spare_skip == NULL)
		state->spare_skip = scan_skip_make(state->context, skip_patience());
	state->skip = state->spare_skip;
	scan_skip_begin(state->skip, state->keys, scan->parallel_scan != NULL);
}

/* Whether combinations are read together; those that are skipped in are not. */
static void
begin_span(ShermanScan *state)
{
	state->span = NULL;
	state->leaf = 0;
	if (state->keys->array_count == 0 || state->skip != NULL)
		return;
	if (state->spare_span == NULL)
		state->spare_span = MemoryContextAlloc(state->context, sizeof(ScanSpan));
	state->span = state->spare_span;
	scan_span_begin(state->span);
	scan_span_seek(state->span);
}

/* Begins a (re)scan in this direction, which first fetches so many leaves of `= ANY` together. False: nothing can match. */
bool
scan_begin(IndexScanDesc scan, ScanDirection direction, int leaves_ahead)
{
	ShermanScan *state = scan->opaque;

	state->batch = NULL;
	state->sought = false;
	state->place.valid = false;
	if (!scan_open_index(scan))
		return false;
	state->standby = sherman_connection_is_reader();
	if (unlikely(state->standby))
		scan_standby_begin(scan);
	else if (unlikely(sherman_snapshot_is_of_standby(scan->xs_snapshot)))
		sherman_report_conflict(scan->indexRelation, "this server was promoted since the snapshot was taken");
	else if (scan->xs_snapshot != InvalidSnapshot && !IsMVCCSnapshot(scan->xs_snapshot))
		scan_hold_barrier(scan);
	state->begun = scan_keys_begin(state->keys, direction);
	if (state->begun)
	{
		begin_skip(scan);
		begin_span(state);
	}
	keys_ahead_begin(&state->ahead, scan, state->keys, state->tree_scan, leaves_ahead);
	return state->begun;
}
