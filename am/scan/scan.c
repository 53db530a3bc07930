/*
 * scan.c
 *		Index scans: plain ones in both directions, with mark and restore, parallel ones, and bitmap scans.
 *
 * The tree hands out one leaf's entries at a time (a batch).  A scan walks its batch to and fro; where it
 * leaves the batch on the side that it came from, it seeks anew from the batch's first entry, strictly beyond
 * its (key, TID).
 *
 * A batch's rows may be removed while it is walked.  Under an MVCC snapshot that is harmless: VACUUM removes
 * only what no snapshot in use can see, and a row that takes over a freed TID is invisible to ours.  Other
 * snapshots keep VACUUM from freeing TIDs, by the scan barrier (locks.c): scans with a dirty snapshot (ON CONFLICT, EXCLUDE,
 * logical replication) until the transaction's xmin keeps the row that was found, others (CLUSTER) until they end.
 */
#include "am/base/sherman.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "utils/snapmgr.h"

#include "am/base/compat.h"
#include "am/base/owner.h"
#include "am/heal/heal.h"
#include "am/nodes/nodes.h"
#include "am/scan/scan_parallel.h"
#include "am/scan/scan_state.h"
#include "am/standby/standby.h"

/* ------------------------------------------------------------------------------------------------
 * Opening
 */

/* No row is looked up for now: lets go of the table's pages. */
static void
pause_lookups(ShermanScan *state)
{
	if (state->only != NULL)
		scan_only_pause(state->only);
	if (state->rows != NULL)
		unverified_rows_pause(state->rows);
}

IndexScanDesc
sherman_beginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	ShermanScan *state = palloc0(sizeof(ShermanScan));

	Assert(norderbys == 0);
	state->context = CurrentMemoryContext;
	scan->opaque = state;
	scan->xs_itupdesc = RelationGetDescr(index);
	return scan;
}

void
sherman_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	ShermanScan *state = scan->opaque;

	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
	scan_release_barrier(scan);
	pause_lookups(state);
	scan_flush_kills(scan);
	state->begun = false;
	state->sought = false;
	state->batch = NULL;
	state->place.valid = false;
	state->mark = MARK_NONE;
	state->dirty = false;
	state->of_key = false;
}

/*
 * amendscan: frees all that the scan has taken.  The checks of ON CONFLICT and EXCLUDE make a scan for each row, in
 * memory that lasts as long as the query.
 */
void
sherman_endscan(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	scan_release_barrier(scan);
	scan_flush_kills(scan);
	if (state->only != NULL)
		scan_only_end(state->only);
	if (state->rows != NULL)
		unverified_rows_end(state->rows);
	if (state->tree_scan != NULL)
		sherman_return_scan(state->index, state->tree_scan);
	scan_keys_free(state->keys);
	scan_skip_free(state->spare_skip);
	if (state->spare_span != NULL)
		pfree(state->spare_span);
	if (state->place.image != NULL)
		pfree(state->place.image);
	if (state->mark_place.image != NULL)
		pfree(state->mark_place.image);
	if (state->kills.entries != NULL)
		pfree(state->kills.entries);
	if (state->tids != NULL)
		pfree(state->tids);
	if (state->announced != NULL)
		pfree(state->announced);
	pfree(state);
	scan->opaque = NULL;
}

/* The seek is for one combination: that of the place to go on from, which a span has passed, or the one at hand. */
static void
begin_combination(ShermanScan *state)
{
	scan_span_seek(state->span);
	if (state->place.valid)
		scan_keys_restore(state->keys, state->place.arrays);
}

/*
 * Positions the tree's scan: at `resumed`, where a participant of a parallel scan has read up to; else at the
 * place to go on from; else at the combination's edge.
 */
static void
seek(IndexScanDesc scan, ScanDirection direction, const TreeScanPosition *resumed)
{
	ShermanScan *state = scan->opaque;
	bool		forward = ScanDirectionIsForward(direction);
	const ScanEdge *near_edge;
	const ScanEdge *far_edge;
	TreeDirection towards = forward ? TREE_FORWARD : TREE_BACKWARD;
	const TreeBound *stop;
	TreeBound	from;
	TreeStatus	status;

	if (state->skip != NULL && state->place.valid)
		scan_skip_reset(state->skip);
	if (state->span != NULL)
		begin_combination(state);
	near_edge = scan_skip_near(state->skip, state->keys, forward);
	far_edge = scan_skip_far(state->skip, state->keys, forward);
	stop = far_edge->bound ? &far_edge->tree : NULL;
	state->tests = state->skip != NULL ? scan_skip_tests(state->skip) || state->keys->rest_count > 0 :
		state->keys->residual_count > 0;
	if (unlikely(IsolationIsSerializable()))
		sherman_predicate_scan(&state->predicate, scan, state->index, state->tree_scan);
	if (resumed == NULL && !state->place.valid)
	{
		state->search = true;
		if (state->skip == NULL || state->skip->region == SKIP_WHOLE)
			keys_ahead_fetch(&state->ahead, state->keys, state->tree_scan, direction);
	}
	if (state->place.valid)
		keys_entry_bound(state->index->keys, &state->place.key, &from);
	if (resumed != NULL)
		status = tree_scan_resume(state->tree_scan, towards, stop, resumed);
	else
		status = tree_scan_seek(state->tree_scan, towards,
								state->place.valid ? &from : near_edge->bound ? &near_edge->tree : NULL,
								stop);
	if (status != TREE_OK)
		scan_report_status(scan, status);
	/* A bitmap scan reads all that there is, unless it skips. */
	if (state->tids != NULL && state->skip == NULL)
		tree_scan_to_the_stop(state->tree_scan);
	state->sought = true;
	state->last = false;
	state->batch_direction = direction;
}

/* The tree's scan has leaves for the next batch, or batches: those of other combinations, too. */
static void
widen(ShermanScan *state, TreeScanPosition *taken)
{
	scan_span_widen(state->span, state->keys, state->batch_direction, state->tree_scan, taken);
	state->tests = state->span->many || state->keys->residual_count > 0;
}

/*
 * Takes the next leaves of a parallel scan for this participant; what the others read lies before or behind
 * them. False: nothing is left.
 */
static bool
take_leaves(IndexScanDesc scan, ScanDirection direction)
{
	ShermanScan *state = scan->opaque;
	const TreeScanPosition *resumed = NULL;
	TreeScanPosition taken;
	ParallelPlace place;
	TreeStatus	status;
	int			attempts = 0;

	CHECK_FOR_INTERRUPTS();
	sherman_index_recheck(state->index, scan->indexRelation);
	if (!parallel_scan_seize(scan, &place))
		return false;
	if (place.begun)
	{
		scan_keys_restore(state->keys, place.arrays);
		if (!place.position.ended)
			resumed = &place.position;
		else if (!scan_keys_next(state->keys, direction))
		{
			parallel_scan_finish(scan);
			return false;
		}
	}
	do
	{
		seek(scan, direction, resumed);
		status = tree_scan_take(state->tree_scan, &taken);
	} while (sherman_try_again(state->index, scan->indexRelation, status, &attempts));
	place.position = taken;
	if (status != TREE_OK)
		scan_report_status(scan, status);
	if (state->span != NULL)
		widen(state, &place.position);
	place.begun = true;
	scan_keys_save(state->keys, place.arrays);
	if (place.position.ended && state->keys->array_count == 0)
		parallel_scan_finish(scan);
	else
		parallel_scan_release(scan, &place);
	return true;
}

/* ------------------------------------------------------------------------------------------------
 * Walking
 */

/* Tells the skip of the batch that was read. */
static pg_noinline void
look_at_batch(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;
	ScanSkip   *skip = state->skip;
	const TreeBatch *batch = state->batch;
	TreeKey		first;

	scan_skip_read(skip, state->batch_direction, batch->leaf.pointer, batch->right);
	if (!scan_skip_tests(skip) || batch->count == 0 ||
		!scan_batch_key(scan, 0, &first) || !scan_batch_key(scan, batch->count - 1, &skip->last_key))
		return;
	key_reader_open(&state->keys->reader, state->index->keys, &first);
	key_reader_open(&skip->last, state->index->keys, &skip->last_key);
	scan_skip_look(skip, batch->last);
}

/* Goes on behind the batch, which is at hand still, where the skip says. */
static void
skip_behind_batch(ShermanScan *state, ScanDirection direction)
{
	if (!scan_skip_jump(state->skip, direction))
	{
		state->last = true;
		return;
	}
	state->sought = false;
	state->place.valid = false;
}

/* What was sought is read to its end: goes to the next region, or combination. False: there is none. */
static bool
next_region(ShermanScan *state, ScanDirection direction)
{
	if (state->skip != NULL && scan_skip_next(state->skip, direction))
		return true;
	if (!scan_keys_next(state->keys, direction))
		return false;
	if (state->skip != NULL)
		scan_skip_reset(state->skip);
	return true;
}

/*
 * Counts the seek as a search, if there was one: unless it is for the next keys of an array, and the leaf is the next one, too.
 */
static void
count_search(IndexScanDesc scan, const TreeBatch *batch)
{
	ShermanScan *state = scan->opaque;
	bool		next = state->span != NULL && state->leaf != 0 && batch != NULL &&
		(ScanDirectionIsForward(state->batch_direction) ? batch->leaf.pointer == state->right : batch->right == state->leaf);

	if (state->search && !next)
		compat_count_search(scan);
	state->search = false;
	if (batch == NULL)
		return;
	state->leaf = batch->leaf.pointer;
	state->right = batch->right;
}

/* The tree's next batch, which has all combinations that begin in its leaf. */
static TreeStatus
next_batch(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	if (state->last)
		return TREE_END;
	if (state->span != NULL && scan->parallel_scan == NULL)
	{
		TreeStatus	status;

		/* The keys may go on in the leaf behind, which no seek is for: that of a key which equals the fence as far as the edges tell. */
		if (!state->search)
			keys_ahead_fetch(&state->ahead, state->keys, state->tree_scan, state->batch_direction);
		status = sherman_scan_load(state->index, scan->indexRelation, state->tree_scan);
		if (status != TREE_OK)
			return status;
		widen(state, NULL);
	}
	return sherman_scan_next(state->index, scan->indexRelation, state->tree_scan, &state->batch);
}

/* Reads the next batch of this region. False: it has no more. */
static bool
read_batch(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;
	TreeStatus	status;

	CHECK_FOR_INTERRUPTS();
	sherman_index_recheck_for(state->index, scan->indexRelation, state->of_key);
	status = next_batch(scan);
	if (unlikely(state->standby))
		scan_standby_read(scan, status == TREE_OK ? state->batch : NULL);
	if (state->search || state->span != NULL)
		count_search(scan, status == TREE_OK ? state->batch : NULL);
	if (status == TREE_OK)
	{
		state->last = state->batch->last;
		state->serial++;
		state->position = -1;
		if (state->skip != NULL)
			look_at_batch(scan);
		if (state->span != NULL)
			scan_span_look(state->span, state->keys, state->tree_scan, state->batch);
		return true;
	}
	state->batch = NULL;
	if (status != TREE_END)
		scan_report_status(scan, status);
	return false;
}

/* Whether an entry passes what the edges do not tell. *rest: neither does any that follows it in the batch. */
static bool
entry_passes(ShermanScan *state, const TreeKey *key, bool *rest)
{
	ScanKeys   *keys = state->keys;
	SkipGap		gap;

	*rest = false;
	key_reader_open(&keys->reader, state->index->keys, key);
	if (state->span != NULL && state->span->many && !state->span->matched && !scan_span_holds(state->span, keys))
		return false;
	if (state->skip == NULL)
		return scan_keys_pass(keys, keys->residual, keys->residual_count);
	if (scan_skip_tests(state->skip) && !scan_skip_holds(state->skip, &gap))
	{
		*rest = scan_skip_rest_fails(state->skip, &gap);
		return false;
	}
	return scan_keys_pass(keys, keys->rest, keys->rest_count);
}

/* The same of the batch's entry at hand. */
static bool
position_passes(IndexScanDesc scan, bool *rest)
{
	ShermanScan *state = scan->opaque;
	TreeKey		key;

	*rest = false;
	if (state->span != NULL && state->span->matched)
	{
		if (!state->span->match.matches[state->position])
			return false;
		if (state->keys->residual_count == 0)
			return true;
	}
	return scan_batch_key(scan, state->position, &key) && entry_passes(state, &key, rest);
}

/* Walks the batch at hand to the next entry that passes what the edges do not tell. False: left on that side. */
static bool
step_in_batch(IndexScanDesc scan, int step)
{
	ShermanScan *state = scan->opaque;
	bool		rest = false;

	for (;;)
	{
		state->position = rest && step > 0 ? state->batch->count : state->position + step;
		if (state->position < 0 || state->position >= state->batch->count)
			return false;
		if (unlikely(state->beyond) && state->batch->entries[state->position].block >= state->blocks)
			continue;
		if (!state->tests || position_passes(scan, &rest))
			return true;
	}
}

/* return_entry() of an index-only scan, whatever it takes. */
static pg_noinline bool
return_only(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;
	bool		dead = false;
	bool		returned;

	if (state->only == NULL)
		state->only = scan_only_make(state->context);
	returned = scan_only_return(state->only, scan, state->index, state->tree_scan, state->batch,
								state->serial, state->position, &dead);
	/* Of a row that was looked up here the executor learns nothing. */
	if (dead)
		sherman_kill_note(&state->kills, state->context, state->batch, state->position);
	return returned;
}

/* What looks up the rows of unverified leaves. */
static UnverifiedRows *
unverified_rows(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	if (state->rows == NULL)
		state->rows = unverified_rows_make(scan->heapRelation, scan->indexRelation, state->index, state->context);
	return state->rows;
}

/*
 * Waits until the healer has verified a leaf whose rows this process may not look up. Raises if that does not happen.
 */
static void
wait_healed(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	/* What other participants have read of a parallel scan does not come again. */
	if (state->waited || state->standby || scan->parallel_scan != NULL)
		sherman_report_doubt(scan->indexRelation);
	unverified_rows_pause(state->rows);
	sherman_heal_wait(scan->indexRelation);
	keys_ahead_forget(&state->ahead, state->tree_scan);
	state->waited = true;
}

/*
 * Has the batch's entry at hand read again, and what comes behind it, once its leaf is healed.
 */
static void
read_again(IndexScanDesc scan, const TreeKey *key, ScanDirection direction)
{
	ShermanScan *state = scan->opaque;

	wait_healed(scan);
	scan_set_place(state, &state->place, key);
	/* Places are strictly passed by. */
	state->place.key.offset += ScanDirectionIsForward(direction) ? -1 : 1;
	state->sought = false;
	scan_leave_batch(scan);
}

/*
 * Whether the row of an entry that this process may not look up can be left to the caller.  The check of an exclusion constraint, or
 * of ON CONFLICT, forms the keys of the rows that it is told to recheck, as it has formed that of the row to be inserted, and takes no
 * notice of their order or of how often they come.  It does not look at the predicate.
 */
static bool
is_rechecked(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	return scan->xs_snapshot->snapshot_type == SNAPSHOT_DIRTY && (unverified_code(state->rows) & OWNER_CODE_PREDICATE) == 0;
}

/* return_entry() of an unverified leaf: its row is looked up, whatever kind of scan this is. */
static pg_noinline bool
return_unverified(IndexScanDesc scan, ScanDirection direction)
{
	ShermanScan *state = scan->opaque;
	UnverifiedFinding finding;
	TreeKey		key;

	/* Gone meanwhile: then nobody sees its row. */
	if (!scan_batch_key(scan, state->position, &key))
		return false;
	finding = unverified_row_find(unverified_rows(scan), &key, scan->xs_snapshot);
	if (finding == UNVERIFIED_UNKNOWN && is_rechecked(scan))
	{
		scan->xs_recheck = true;
		finding = UNVERIFIED_ROW;
	}
	if (finding == UNVERIFIED_UNKNOWN)
		read_again(scan, &key, direction);
	/* CLUSTER would leave the row out of the table. */
	if (finding == UNVERIFIED_CHANGED && scan->xs_snapshot == SnapshotAny)
		sherman_report_doubt(scan->indexRelation);
	if (finding != UNVERIFIED_ROW)
		return false;
	ItemPointerSet(&scan->xs_heaptid, key.block, key.offset);
	if (scan->xs_want_itup)
	{
		if (state->only == NULL)
			state->only = scan_only_make(state->context);
		scan->xs_itup = scan_only_tuple(state->only, state->index->keys, &key);
	}
	return true;
}

/* False: a row that the snapshot does not see, of an index-only scan or of an unverified leaf; or the batch was left. */
static inline bool
return_entry(IndexScanDesc scan, ScanDirection direction)
{
	ShermanScan *state = scan->opaque;

	if (unlikely(state->batch->unverified))
		return return_unverified(scan, direction);
	if (scan->xs_want_itup)
		return (likely(state->only != NULL) &&
				likely(scan_only_ready(state->only, scan, state->batch, state->serial, state->position))) ||
			return_only(scan);
	ItemPointerSet(&scan->xs_heaptid, state->batch->entries[state->position].block,
				   state->batch->entries[state->position].offset);
	return true;
}

/* The next entry of the batch at hand, which is left behind its last one. False: it has no more. */
static bool
find_in_batch(IndexScanDesc scan, ScanDirection direction)
{
	ShermanScan *state = scan->opaque;
	bool		with_batch = direction == state->batch_direction;

	while (step_in_batch(scan, with_batch ? 1 : -1))
	{
		if (return_entry(scan, direction))
			return true;
		if (unlikely(state->batch == NULL))
			return false;
	}
	if (!with_batch)
	{
		if (scan->parallel_scan != NULL)
			elog(ERROR, "a parallel scan of index \"%s\" was turned around",
				 RelationGetRelationName(scan->indexRelation));
		/* Back over the batch's first entry: on from there, the other way. */
		scan_take_place(scan, &state->place, 0, 1);
		state->sought = false;
	}
	else if (state->skip != NULL && state->skip->jump)
		skip_behind_batch(state, direction);
	scan_leave_batch(scan);
	return false;
}

/* The next entry by every way there is. */
static bool
find_entry(IndexScanDesc scan, ScanDirection direction)
{
	ShermanScan *state = scan->opaque;

	if (!state->begun && !scan_begin(scan, direction, 1))
		return false;
	for (;;)
	{
		if (state->batch != NULL && find_in_batch(scan, direction))
			return true;
		if (!state->sought && scan->parallel_scan == NULL)
			seek(scan, direction, NULL);
		else if (!state->sought && !take_leaves(scan, direction))
			break;
		if (read_batch(scan))
			continue;

		state->place.valid = false;
		state->sought = false;
		if (scan->parallel_scan == NULL && !next_region(state, direction))
			break;
	}
	state->begun = false;
	return false;
}

/* The next entry, and what is due before it and behind the last one. */
static pg_noinline bool
advance(IndexScanDesc scan, ScanDirection direction)
{
	ShermanScan *state = scan->opaque;

	if (scan->kill_prior_tuple && state->batch != NULL && !state->batch->unverified)
		sherman_kill_note(&state->kills, state->context, state->batch, state->position);
	if (find_entry(scan, direction))
		return true;
	pause_lookups(state);
	return false;
}

/* advance() with a dirty snapshot: reads under the barrier, and keeps it no longer than it must. */
static pg_noinline bool
advance_dirty(IndexScanDesc scan, ScanDirection direction)
{
	ShermanScan *state = scan->opaque;

	if (!state->dirty)
		scan_find_announced(scan);
	if (unlikely(state->announced_left > 0) && scan_return_announced(scan))
		return true;
	do
	{
		if (state->begun)
			scan_hold_barrier(scan);
		if (!advance(scan, direction))
			return false;
	} while (!scan_dirty_row_is_there(scan));
	return true;
}

/* The next entry by the longer ways. */
static inline bool
advance_somehow(IndexScanDesc scan, ScanDirection direction)
{
	return scan->xs_snapshot->snapshot_type == SNAPSHOT_DIRTY ? advance_dirty(scan, direction) : advance(scan, direction);
}

/* The same, and what it moves is added up for EXPLAIN. */
static pg_noinline bool
advance_measured(IndexScanDesc scan, ScanDirection direction)
{
	ShermanScan *state = scan->opaque;
	ShermanTraffic before;
	bool		found;

	sherman_traffic_read(&before);
	found = advance_somehow(scan, direction);
	sherman_traffic_add_since(&state->traffic, &before);
	return found;
}

const ShermanTraffic *
sherman_scan_traffic(IndexScanDesc scan)
{
	return &((ShermanScan *) scan->opaque)->traffic;
}

bool
sherman_gettuple(IndexScanDesc scan, ScanDirection direction)
{
	ShermanScan *state = scan->opaque;

	scan->xs_recheck = false;
	/* The short way from an entry to the next one in its batch. */
	if (likely(state->batch != NULL && state->batch_direction == direction && !scan->kill_prior_tuple &&
			   !state->tests && !state->beyond && state->position + 1 < state->batch->count && !state->barrier))
	{
		state->position++;
		if (likely(return_entry(scan, direction)))
			return true;
	}
	return unlikely(sherman_traffic_measured > 0) ? advance_measured(scan, direction) : advance_somehow(scan, direction);
}

static int64
get_bitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	ShermanScan *state = scan->opaque;
	int64		total = 0;

	if (!scan_begin(scan, ForwardScanDirection, LEAVES_AHEAD_MAX))
		return 0;
	if (state->tids == NULL)
		state->tids = MemoryContextAlloc(state->context, sizeof(ItemPointerData) * TREE_BATCH_MAX);
	do
	{
		seek(scan, ForwardScanDirection, NULL);
		while (read_batch(scan))
		{
			int			count = 0;
			bool		recheck;

			if (unlikely(state->batch->unverified) && (unverified_code(unverified_rows(scan)) & OWNER_CODE_PREDICATE) != 0)
			{
				/* Each row is taken once, however often it is met: all is read again. */
				wait_healed(scan);
				if (state->span != NULL)
					scan_keys_restore(state->keys, state->span->first);
				seek(scan, ForwardScanDirection, NULL);
				continue;
			}
			while (step_in_batch(scan, 1))
			{
				if (unlikely(state->batch->unverified) &&
					!unverified_block_is_there(unverified_rows(scan), state->batch->entries[state->position].block))
					continue;
				ItemPointerSet(&state->tids[count], state->batch->entries[state->position].block,
							   state->batch->entries[state->position].offset);
				count++;
			}
			/*
			 * In doubt, or ahead of the table as a standby has it, the rows are to be tested for the conditions, and the predicate, which are all that a
			 * bitmap scan returns them for: it returns each once, in the order of the table, whole.
			 */
			recheck = state->batch->unverified || (state->standby && !standby_has_replayed(&state->batch->wal));
			tbm_add_tuples(bitmap, state->tids, count, recheck);
			total += count;
			if (state->skip != NULL && state->skip->jump)
				skip_behind_batch(state, ForwardScanDirection);
			if (!state->sought)
				seek(scan, ForwardScanDirection, NULL);
		}
	} while (next_region(state, ForwardScanDirection));
	state->begun = false;
	return total;
}

int64
sherman_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap)
{
	ShermanScan *state = scan->opaque;
	ShermanTraffic before;
	int64		total;

	if (likely(sherman_traffic_measured == 0))
		return get_bitmap(scan, bitmap);
	sherman_traffic_read(&before);
	total = get_bitmap(scan, bitmap);
	sherman_traffic_add_since(&state->traffic, &before);
	return total;
}
