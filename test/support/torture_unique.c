/*
 * torture_unique.c
 *		Entries of the torture whose numbers may have one row only: as insert_entry.c and unique.c of am/access add them, with every
 *		process at its own TIDs of the same numbers.
 */
#include <stdlib.h>

#include "require.h"
#include "torture_life.h"
#include "unique_keys.h"

/* Some looks last so long that others come to their end meanwhile. */
#define LOOK_US 300

/* Entries of one call, in the order of their keys. */
typedef struct Batch
{
	uint32_t count;
	uint64_t ranks[BATCH_MAX];
	TreeKey keys[BATCH_MAX];
	KeyImage images[BATCH_MAX];
} Batch;

static _Thread_local const Tree *sorting;

/* ---- what is known ---- */

/* The entry is acknowledged. */
static void
row_lives(const Life *life, uint64_t rank)
{
	const Torture *torture = life->torture;

	if (word_state(torture->words[rank]) == ENTRY_IN)
		return;
	REQUIRE(unique_keys_row(torture->unique, torture->sorted[rank].number, (uint32_t) rank),
	        "entry %llu: number %llu has a row already", (unsigned long long) rank,
	        (unsigned long long) torture->sorted[rank].number);
	word_set(torture, rank, ENTRY_IN);
}

/* The entry is not inserted; its call may have done so all the same where a chain was lost. */
static void
row_given_up(const Life *life, uint64_t rank)
{
	if (word_state(life->torture->words[rank]) != ENTRY_IN)
		word_set(life->torture, rank, chains_are_lost(&life->torture->options) ? ENTRY_REMOVING : ENTRY_OUT);
}

void
life_row_ends(const Life *life, uint64_t rank)
{
	if (life->torture->unique != NULL)
		unique_keys_row_ends(life->torture->unique, life->torture->sorted[rank].number);
}

/* ---- checks ---- */

/* Whether an entry that was read, not this process's own, has a row that lives, or may. */
static bool
in_the_way(const Life *life, const TreeBatchEntry *entry, uint64_t rank)
{
	uint64_t other = rank_of_tid(life->torture, entry->block, entry->offset);
	EntryState state = word_state(torture_word(life->torture, other));

	return other != rank && (state == ENTRY_IN || state == ENTRY_INSERTING);
}

/* With the number locked: whether any entry with it is in the way. */
static bool
has_conflict(Life *life, uint64_t rank)
{
	const Torture *torture = life->torture;
	uint64_t number = torture->sorted[rank].number;
	TreeBound low, high;
	const TreeBatch *batch;
	TreeStatus status;
	bool conflict = false;

	keyspace_bound(torture->space, &number, -1, &low);
	keyspace_bound(torture->space, &number, 1, &high);
	require_status(life, tree_scan_seek(life->scan, TREE_FORWARD, &low, &high), "seek");
	while ((status = tree_scan_next(life->scan, &batch)) != TREE_END)
	{
		if (status == TREE_STOPPED)
		{
			no_stop(life);
			continue;
		}
		require_status(life, status, "scan");
		for (int i = 0; i < batch->count; i++)
			conflict = conflict || in_the_way(life, &batch->entries[i], rank);
	}
	return conflict;
}

/* Inserts on no condition. */
static void
insert_plain(Life *life, const TreeKey *key, const TreeWalPosition *wal)
{
	TreeStatus status = TREE_STOPPED;
	bool hit;

	while (status == TREE_STOPPED)
	{
		status = tree_insert(life->tree, key, wal, &hit);
		no_stop(life);
	}
	require_status(life, status, "insert");
}

/* Checks the number of an entry that its leaf has not shown to be alone, and inserts it if it has no row.  False: it has one. */
static bool
insert_checked(Life *life, uint64_t rank, const TreeKey *key, const TreeWalPosition *wal)
{
	UniqueKeys *unique = life->torture->unique;
	uint64_t number = life->torture->sorted[rank].number;
	bool conflict;

	while (!unique_keys_lock(unique, number))
		test_sleep_us(20);
	unique_keys_check(unique, key);
	while (!unique_keys_checks(unique, key))
		test_sleep_us(20);
	conflict = has_conflict(life, rank);
	/* VACUUM may remove what was read, and the number looks new to others. */
	if (key_random(&life->random, 8) == 0)
		test_sleep_us(LOOK_US);
	if (conflict)
	{
		REQUIRE(word_state(life->torture->words[rank]) != ENTRY_IN,
		        "entry %llu is in beside another one's row", (unsigned long long) rank);
		__atomic_fetch_add(&unique->conflicts, 1, __ATOMIC_RELAXED);
		row_given_up(life, rank);
	}
	else
	{
		insert_plain(life, key, wal);
		row_lives(life, rank);
	}
	unique_keys_unlock(unique, number, key);
	return !conflict;
}

/* ---- inserts ---- */

void
life_insert_unique(Life *life, uint64_t rank)
{
	Torture *torture = life->torture;
	TreePermit permit = unique_keys_permit(torture->unique);
	TreeWalPosition wal = {.epoch = 1, .lsn = key_random(&life->random, 1000)};
	TreeStatus status = TREE_STOPPED;
	bool hit, alone = false;
	KeyImage image;
	TreeKey key;

	if (word_state(torture->words[rank]) == ENTRY_REMOVING)
		return;
	if (word_state(torture->words[rank]) != ENTRY_IN)
		word_set(torture, rank, ENTRY_INSERTING);
	keyspace_key(torture->space, &torture->sorted[rank], &image, &key);
	maybe_stop(life);
	while (status == TREE_STOPPED)
	{
		status = tree_insert_alone(life->tree, &key, &wal, &permit, &hit, &alone);
		no_stop(life);
	}
	require_status(life, status, "insert alone");
	if (alone)
		row_lives(life, rank);
	else
		(void) insert_checked(life, rank, &key, &wal);
}

static int
compare_keys(const void *a, const void *b)
{
	return tree_key_order(sorting, a, b);
}

static bool
batch_has(const Batch *batch, uint64_t rank)
{
	for (uint32_t i = 0; i < batch->count; i++)
		if (batch->ranks[i] == rank)
			return true;
	return false;
}

/* Draws entries of this process's own, none twice, that are in or out; their numbers may be equal. */
static void
batch_draw(Life *life, Batch *batch)
{
	Torture *torture = life->torture;
	uint32_t entries = torture->options.entries;
	uint32_t wanted = 1 + (uint32_t) key_random(&life->random, BATCH_MAX);
	uint64_t first = key_random(&life->random, entries);
	bool together = key_random(&life->random, 2) == 0;

	batch->count = 0;
	for (uint32_t i = 0; i < wanted && i < entries; i++)
	{
		uint64_t number = together ? (first + i) % entries : key_random(&life->random, entries);
		uint64_t rank = torture->rank[(uint64_t) life->process * entries + number];

		if (word_state(torture->words[rank]) == ENTRY_REMOVING || batch_has(batch, rank))
			continue;
		keyspace_key(torture->space, &torture->sorted[rank], &batch->images[batch->count],
		             &batch->keys[batch->count]);
		batch->ranks[batch->count++] = rank;
		if (word_state(torture->words[rank]) != ENTRY_IN)
			word_set(torture, rank, ENTRY_INSERTING);
	}
	sorting = life->tree;
	qsort(batch->keys, batch->count, sizeof(TreeKey), compare_keys);
	for (uint32_t i = 0; i < batch->count; i++)
		batch->ranks[i] = rank_of_tid(torture, batch->keys[i].block, batch->keys[i].offset);
}

/* Inserts the first of the batch from `from` on that are alone, and returns the number of the first that is not. */
static uint32_t
batch_together(Life *life, const Batch *batch, uint32_t from, const TreeWalPosition *wal)
{
	UniqueKeys *unique = life->torture->unique;
	TreePermit permit = unique_keys_permit(unique);
	TreeStatus status = TREE_STOPPED;

	maybe_stop(life);
	while (status == TREE_STOPPED)
	{
		uint32_t done;

		status =
			tree_insert_many_alone(life->tree, batch->keys + from, batch->count - from, wal, &permit, &done);
		no_stop(life);
		REQUIRE(done <= batch->count - from, "more are done than were asked for");
		for (uint32_t i = from; i < from + done; i++)
			row_lives(life, batch->ranks[i]);
		from += done;
		__atomic_fetch_add(&unique->together, done, __ATOMIC_RELAXED);
	}
	require_status(life, status, "insert many alone");
	return from;
}

void
life_insert_many_unique(Life *life)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = key_random(&life->random, 1000)};
	Batch *batch = malloc(sizeof(Batch));

	REQUIRE(batch != NULL, "no memory");
	batch_draw(life, batch);
	for (uint32_t at = 0; at < batch->count; at++)
	{
		at = batch_together(life, batch, at, &wal);
		if (at == batch->count || insert_checked(life, batch->ranks[at], &batch->keys[at], &wal) ||
		    key_random(&life->random, 2) == 0)
			continue;
		/* The statement fails: none of those behind is there. */
		while (++at < batch->count)
			row_given_up(life, batch->ranks[at]);
	}
	free(batch);
}
