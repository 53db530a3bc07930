/*
 * sim_unique.c
 *		Inserts of a simulated run whose numbers may have one row only: as insert_entry.c and unique.c of am/access add them.  See
 *		sim_work.h.
 *
 * A row lives from the acknowledgment of its entry until a removal begins.  What an insert that has failed may have left is dead.
 */
#include <stdlib.h>

#include "sim_work.h"
#include "unique_keys.h"

/* Some looks last so long: about as long as a removal. */
#define LOOK_NANOSECONDS 500000u
/* Between two looks at what another client holds. */
#define PAUSE_NANOSECONDS (2 * NANOSECONDS_PER_US)

static _Thread_local const Tree *sorting;

/* ---- what is known ---- */

static bool
row_is_own(const SimRun *run, uint32_t id)
{
	return run->unique->numbers[run->entries[id].key.number].row == id + 1;
}

void
sim_row_ends(SimRun *run, uint32_t id)
{
	if (run->unique == NULL)
		return;
	if (row_is_own(run, id))
		unique_keys_row_ends(run->unique, run->entries[id].key.number);
	run->entries[id].left = true;
}

/* A TID is one row's until VACUUM has removed what is left of that. */
static bool
may_be_inserted(const SimRun *run, uint32_t id)
{
	const SimEntry *entry = &run->entries[id];

	return entry->removing == 0 && entry->inserting == 0 && !entry->left;
}

/* The entry is acknowledged. */
static void
row_lives(SimWorker *worker, uint32_t id, uint32_t op)
{
	SimRun *run = worker->run;

	(void) sim_history_end(run, id, op);
	if (!row_is_own(run, id) && !unique_keys_row(run->unique, run->entries[id].key.number, id))
		sim_fail(run, "entry %u was added, and number %llu has a row already", run->entries[id].rank,
		         (unsigned long long) run->entries[id].key.number);
}

/* The entry is not inserted; where a chain was lost it may be there all the same. */
static void
row_given_up(SimWorker *worker, uint32_t id, uint32_t op)
{
	HistoryOp *ended = sim_history_end(worker->run, id, op);

	if (!sim_chains_are_lost(worker->run))
		ended->kind = HISTORY_LOOK;
	else
	{
		ended->maybe = true;
		worker->run->entries[id].left = !row_is_own(worker->run, id);
	}
}

/* The insert has failed, and its row is dead: a chain in doubt may take effect until that is settled, and not later. */
static void
insert_failed(SimWorker *worker, uint32_t id, uint32_t op, TreeStatus status, const char *what)
{
	worker->run->entries[id].left = !row_is_own(worker->run, id);
	sim_settle(worker, status, what);
	row_given_up(worker, id, op);
}

/* ---- checks ---- */

/* Whether the entry's row lives, or may. */
static bool
row_may_live(const SimRun *run, uint32_t id)
{
	return row_is_own(run, id) || (run->entries[id].inserting > 0 && !run->entries[id].left);
}

/*
 * With the number locked: whether a row with it lives, or may, whose entry is there. An entry that VACUUM has removed since it was read is one
 * of a row that may live if its TID is being inserted again: then the caller gives up, though it may be the number's row itself.
 */
static TreeStatus
look_for_conflict(SimWorker *worker, uint32_t id, bool *conflict)
{
	SimRun *run = worker->run;
	uint64_t number = run->entries[id].key.number;
	const TreeBatch *batch;
	TreeBound low, high;
	TreeStatus status;

	*conflict = false;
	keyspace_bound(run->space, &number, -1, &low);
	keyspace_bound(run->space, &number, 1, &high);
	status = tree_scan_seek(worker->scan, TREE_FORWARD, &low, &high);
	while (status == TREE_OK && (status = tree_scan_next(worker->scan, &batch)) == TREE_OK)
		for (int i = 0; i < batch->count; i++)
		{
			uint32_t other = sim_id_of_tid(run, batch->entries[i].block, batch->entries[i].offset);

			*conflict = *conflict || (other != id && row_may_live(run, other));
		}
	return status == TREE_END ? TREE_OK : status;
}

/* Checks the number, and inserts the entry if it has no row.  TREE_END: it has one. */
static TreeStatus
insert_checked(SimWorker *worker, uint32_t id, uint32_t op, const TreeKey *key, const TreeWalPosition *wal)
{
	UniqueKeys *unique = worker->run->unique;
	uint64_t number = worker->run->entries[id].key.number;
	TreeStatus status;
	bool hit, conflict;

	while (!unique_keys_lock(unique, number))
		coroutine_sleep(PAUSE_NANOSECONDS);
	unique_keys_check(unique, key);
	while (!unique_keys_checks(unique, key))
		coroutine_sleep(PAUSE_NANOSECONDS);
	sim_maybe_stop(worker);
	status = look_for_conflict(worker, id, &conflict);
	/* VACUUM may remove what was read, and the number looks new to others. */
	if (scheduler_random(4) == 0)
		coroutine_sleep(scheduler_random(LOOK_NANOSECONDS));
	if (status == TREE_OK && !conflict)
		status = tree_insert(worker->tree, key, wal, &hit);
	worker->client.stop = false;
	sim_require_free(worker, "insert checked");
	unique->conflicts += conflict;
	if (status == TREE_OK && !conflict)
		row_lives(worker, id, op);
	else if (status == TREE_OK)
		row_given_up(worker, id, op);
	unique_keys_unlock(unique, number, key);
	if (status != TREE_OK)
		insert_failed(worker, id, op, status, "insert checked");
	return status == TREE_OK && conflict ? TREE_END : status;
}

/* ---- inserts ---- */

void
sim_insert_unique(SimWorker *worker, uint32_t id)
{
	SimRun *run = worker->run;
	TreePermit permit = unique_keys_permit(run->unique);
	TreeWalPosition wal = {.epoch = 1, .lsn = 1 + scheduler_random(1000)};
	KeyImage image;
	TreeKey key;
	TreeStatus status;
	uint32_t op;
	bool hit, alone = false;

	if (!may_be_inserted(run, id))
		return;
	keyspace_key(run->space, &run->entries[id].key, &image, &key);
	op = sim_history_begin(run, id, HISTORY_INSERT);
	sim_maybe_stop(worker);
	status = tree_insert_alone(worker->tree, &key, &wal, &permit, &hit, &alone);
	worker->client.stop = false;
	sim_require_free(worker, "insert alone");
	if (status != TREE_OK)
		insert_failed(worker, id, op, status, "insert alone");
	else if (alone)
		row_lives(worker, id, op);
	else
		(void) insert_checked(worker, id, op, &key, &wal);
}

static int
compare_keys(const void *a, const void *b)
{
	return tree_key_order(sorting, a, b);
}

/* Begins the inserts of entries that may be inserted now, in the order of their keys.  Returns how many. */
static uint32_t
batch_begin(SimWorker *worker, SimBatch *batch)
{
	SimRun *run = worker->run;
	uint32_t count = sim_batch_draw(worker, batch, may_be_inserted);

	sorting = worker->tree;
	qsort(batch->keys, count, sizeof(TreeKey), compare_keys);
	for (uint32_t i = 0; i < count; i++)
	{
		batch->ids[i] = sim_id_of_tid(run, batch->keys[i].block, batch->keys[i].offset);
		batch->ops[i] = sim_history_begin(run, batch->ids[i], HISTORY_INSERT);
	}
	return count;
}

/* Inserts the first from `at` on that are alone, and returns the number of the first that is not. */
static uint32_t
batch_together(SimWorker *worker, SimBatch *batch, uint32_t at, uint32_t count, const TreeWalPosition *wal,
               TreeStatus *status)
{
	TreePermit permit = unique_keys_permit(worker->run->unique);
	uint32_t done;

	sim_maybe_stop(worker);
	*status = tree_insert_many_alone(worker->tree, batch->keys + at, count - at, wal, &permit, &done);
	worker->client.stop = false;
	sim_require_free(worker, "insert many alone");
	for (uint32_t i = at; i < at + done; i++)
		row_lives(worker, batch->ids[i], batch->ops[i]);
	worker->run->unique->together += done;
	return at + done;
}

void
sim_insert_many_unique(SimWorker *worker)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1 + scheduler_random(1000)};
	SimBatch *batch = worker->batch;
	uint32_t count = batch_begin(worker, batch);
	TreeStatus status = TREE_OK;
	uint32_t at = 0;

	while (status == TREE_OK && at < count)
	{
		at = batch_together(worker, batch, at, count, &wal, &status);
		if (status != TREE_OK)
			sim_settle(worker, status, "insert many alone");
		else if (at < count)
		{
			status = insert_checked(worker, batch->ids[at], batch->ops[at], &batch->keys[at], &wal);
			at++;
		}
		if (status == TREE_END && scheduler_random(2) == 0)
			status = TREE_OK;
	}
	/* The statement has failed: of those that are left none is there. */
	for (; at < count; at++)
		row_given_up(worker, batch->ids[at], batch->ops[at]);
}
