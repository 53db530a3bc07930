/*
 * scan_place.c
 *		Places of an index scan: where it goes on from when it has left a batch, and marks.
 *
 * A mark is a place in a batch, and becomes a key when the scan leaves that batch.
 */
#include "am/base/sherman.h"

#include "am/nodes/nodes.h"
#include "am/scan/scan_state.h"
#include "am/standby/standby.h"

/* The key of a batch's entry. False: it was removed meanwhile, and with it its image. */
bool
scan_batch_key(IndexScanDesc scan, int position, TreeKey *key)
{
	ShermanScan *state = scan->opaque;
	TreeStatus	status = sherman_batch_key(state->index, scan->indexRelation, state->tree_scan, state->batch, position, key);

	if (status != TREE_OK && status != TREE_NOT_FOUND)
		scan_report_status(scan, status);
	/* It was removed since the batch was read: its row is none that the snapshot sees, once that is replayed. */
	if (unlikely(state->standby) && status == TREE_NOT_FOUND)
		standby_believe(state->index, scan->indexRelation, scan->xs_snapshot, false);
	return status == TREE_OK;
}

void
scan_set_place(ShermanScan *state, ScanPlace *place, const TreeKey *key)
{
	place->valid = true;
	place->key = *key;
	if (key->image_bytes > 0)
	{
		if (place->image == NULL)
			place->image = MemoryContextAlloc(state->context, TREE_IMAGE_MAX_BYTES);
		memcpy(place->image, key->image, key->image_bytes);
	}
	place->key.image = place->image;
	if (state->batch == NULL || state->span == NULL || !state->span->many)
	{
		scan_keys_save(state->keys, place->arrays);
		return;
	}
	key_reader_open(&state->keys->reader, state->index->keys, key);
	scan_span_place(state->span, state->keys, place->arrays);
}

/*
 * Takes the place of a batch's entry; of one further on in `step` if it was removed meanwhile, for then those
 * passed over are gone as well.
 */
void
scan_take_place(IndexScanDesc scan, ScanPlace *place, int position, int step)
{
	ShermanScan *state = scan->opaque;
	TreeKey		key;

	for (; position >= 0 && position < state->batch->count; position += step)
	{
		if (scan_batch_key(scan, position, &key))
		{
			scan_set_place(state, place, &key);
			return;
		}
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("position in index \"%s\" was lost", RelationGetRelationName(scan->indexRelation)),
			 errdetail("All entries around it were removed while the scan stood there.")));
}

/* The batch at hand is about to go: its dead entries are marked. */
void
scan_flush_kills(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	if (unlikely(state->kills.count > 0))
		sherman_kill_flush(&state->kills, scan, state->index, state->batch);
}

/* The batch at hand is about to go: a mark in it becomes a place. */
void
scan_leave_batch(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	if (state->batch == NULL)
		return;
	if (state->mark == MARK_IN_BATCH && state->mark_serial == state->serial)
	{
		scan_take_place(scan, &state->mark_place, state->mark_position, -1);
		state->mark = MARK_PLACE;
	}
	scan_flush_kills(scan);
	state->batch = NULL;
}

/* ------------------------------------------------------------------------------------------------
 * Mark and restore
 */

void
sherman_markpos(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	if (!state->begun)
		state->mark = MARK_NONE;
	else if (state->batch != NULL)
	{
		state->mark = MARK_IN_BATCH;
		state->mark_serial = state->serial;
		state->mark_position = state->position;
	}
	else
	{
		/* Restored and not moved since. */
		scan_set_place(state, &state->mark_place, &state->place.key);
		state->mark = MARK_PLACE;
	}
}

void
sherman_restrpos(IndexScanDesc scan)
{
	ShermanScan *state = scan->opaque;

	if (state->mark == MARK_IN_BATCH && state->batch != NULL && state->mark_serial == state->serial)
	{
		state->position = state->mark_position;
		return;
	}
	scan_leave_batch(scan);
	state->sought = false;
	state->begun = false;
	if (state->mark != MARK_PLACE)
		return;
	scan_keys_restore(state->keys, state->mark_place.arrays);
	keys_ahead_forget(&state->ahead, state->tree_scan);
	scan_set_place(state, &state->place, &state->mark_place.key);
	state->begun = true;
}
