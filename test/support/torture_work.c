/*
 * torture_work.c
 *		See torture_work.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"
#include "require.h"
#include "torture_life.h"
#include "unique_keys.h"

#define TIDS_PER_BLOCK 200

/* Operations between two fault plans. */
#define PLAN_OPERATIONS 16

/* Of a hundred operations: insert, insert again, lookup, range, backward range; and some whole scans and removals. */
#define PART_INSERT 46
#define PART_AGAIN 50
#define PART_LOOKUP 72
#define PART_RANGE 84
#define PART_BACKWARD 94
#define PART_WHOLE 98
/* Entries of all processes but the first, where extents are emptied. */
#define GIVE_FEW 40u

/* About half of the WAL positions that inserts leave are not proven, where leaves are merged. */
static const TreeWalLimits ends = {.epoch = 2, .first = 1, .count = 1, .limit = {500}};

/* ---- entries ---- */

uint32_t
torture_word(const Torture *torture, uint64_t rank)
{
	return __atomic_load_n(&torture->words[rank], __ATOMIC_ACQUIRE);
}

EntryState
word_state(uint32_t word)
{
	return (EntryState) (word & ((1u << ENTRY_STATE_BITS) - 1));
}

void
word_set(const Torture *torture, uint64_t rank, EntryState state)
{
	uint32_t version = (torture->words[rank] >> ENTRY_STATE_BITS) + 1;

	__atomic_store_n(&torture->words[rank], version << ENTRY_STATE_BITS | state, __ATOMIC_RELEASE);
}

static const char *
state_name(uint32_t word)
{
	static const char *const names[] = {"out", "being inserted", "in", "being removed"};

	return names[word_state(word)];
}

uint64_t
rank_of_tid(const Torture *torture, uint32_t block, uint16_t offset)
{
	uint64_t id = (uint64_t) block * TIDS_PER_BLOCK + offset - 1;

	REQUIRE(offset >= 1 && offset <= TIDS_PER_BLOCK && id < torture->count, "TID (%u,%u) was never inserted",
	        block, offset);
	return torture->rank[id];
}

static const KeyEntry *sorting; /* by id, for rank_compare() */

static int
rank_compare(const void *a, const void *b)
{
	return key_entry_compare(&sorting[*(const uint32_t *) a], &sorting[*(const uint32_t *) b]);
}

void
torture_plan(Torture *torture)
{
	const TortureOptions *options = &torture->options;
	uint64_t count = (uint64_t) options->processes * options->entries;
	KeyRandom random = {options->seed * 0x9e3779b97f4a7c15ull + 1};
	KeyEntry *by_id = malloc(count * sizeof(KeyEntry));

	torture->space = keyspace(options->space);
	torture->count = count;
	torture->sorted = malloc(count * sizeof(KeyEntry));
	torture->rank = malloc(count * sizeof(uint32_t));
	torture->id = malloc(count * sizeof(uint32_t));
	torture->words =
		mmap(NULL, count * sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	torture->merged =
		mmap(NULL, 4 * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(by_id != NULL && torture->sorted != NULL && torture->rank != NULL && torture->id != NULL &&
	            torture->words != MAP_FAILED && torture->merged != MAP_FAILED,
	        "no memory");
	if (options->unique)
	{
		torture->unique = mmap(NULL, unique_keys_bytes((uint32_t) options->range), PROT_READ | PROT_WRITE,
		                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		REQUIRE(torture->unique != MAP_FAILED, "no memory");
		unique_keys_set_up(torture->unique, (uint32_t) options->range);
	}
	torture->reclaimed = torture->merged + 1;
	torture->given = torture->merged + 2;
	torture->folded = torture->merged + 3;
	for (uint64_t id = 0; id < count; id++)
	{
		by_id[id].block = (uint32_t) (id / TIDS_PER_BLOCK);
		by_id[id].offset = (uint16_t) (1 + id % TIDS_PER_BLOCK);
		if (options->merge)
			by_id[id].number = id;
		else if (options->range != 0)
			by_id[id].number = key_random(&random, options->range);
		else
			by_id[id].number = id % options->entries * options->processes + id / options->entries;
		torture->id[id] = (uint32_t) id;
	}
	sorting = by_id;
	qsort(torture->id, count, sizeof(uint32_t), rank_compare);
	for (uint64_t rank = 0; rank < count; rank++)
	{
		torture->sorted[rank] = by_id[torture->id[rank]];
		torture->rank[torture->id[rank]] = (uint32_t) rank;
	}
	free(by_id);
}

void
torture_free(Torture *torture)
{
	munmap(torture->words, torture->count * sizeof(uint32_t));
	munmap(torture->merged, 4 * sizeof(uint64_t));
	if (torture->unique != NULL)
		munmap(torture->unique, unique_keys_bytes((uint32_t) torture->options.range));
	free(torture->sorted);
	free(torture->rank);
	free(torture->id);
}

/* The first rank whose number is not below. */
static uint64_t
rank_of_number(const Torture *torture, uint64_t number)
{
	uint64_t low = 0, high = torture->count;

	while (low < high)
	{
		uint64_t middle = (low + high) / 2;

		if (torture->sorted[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- faults ---- */

static void
life_plan_faults(Life *life)
{
	const TortureOptions *options = &life->torture->options;
	FabricFaultPlan plan;

	for (uint32_t i = 0; i < life->instance->count; i++)
	{
		memset(&plan, 0, sizeof(plan));
		plan.seed = key_random(&life->random, UINT32_MAX) + 1;
		plan.tear_reads = options->tear;
		plan.tear_words = options->tear_words;
		/* What dies between two lines is no WRITE that shm could know as unfinished: replay is for whole ones. */
		plan.tear_writes = options->tear && options->crashes == 0;
		plan.delay_max_us = options->delay_us;
		if (options->lose && key_random(&life->random, 2) != 0)
			plan.fail_operation = 1 + key_random(&life->random, 60);
		else if (options->lose)
			plan.late_operation = 1 + key_random(&life->random, 60);
		REQUIRE(fabric_fault_set(life->client.endpoints[i], &plan) == FABRIC_OK, "no fault layer");
	}
}

/* The plan of a life that ends on its own: nothing else may replace it. */
static void
life_plan_death(Life *life)
{
	const TortureOptions *options = &life->torture->options;
	FabricFaultPlan plan;

	memset(&plan, 0, sizeof(plan));
	plan.seed = key_random(&life->random, UINT32_MAX) + 1;
	plan.tear_reads = options->tear;
	plan.tear_words = options->tear_words;
	plan.die_operation = life->die_operation;
	plan.die_line = life->die_line;
	REQUIRE(fabric_fault_set(life->client.endpoints[0], &plan) == FABRIC_OK, "no fault layer");
}

/* ---- operations ---- */

void
require_status(Life *life, TreeStatus status, const char *what)
{
	REQUIRE(status == TREE_OK, "%s: %s: %s", what, tree_status_name(status), tree_detail(life->client.tree));
	REQUIRE(life->instance->environment->slots[life->slot].holds == 0, "%s: a lock is held", what);
}

void
maybe_stop(Life *life)
{
	if (life->torture->options.stop && key_random(&life->random, 20) == 0)
		__atomic_store_n(&life->instance->environment->slots[life->slot].stop, 1, __ATOMIC_RELEASE);
}

void
no_stop(Life *life)
{
	__atomic_store_n(&life->instance->environment->slots[life->slot].stop, 0, __ATOMIC_RELEASE);
}

/* Scans ranks [from, to) and holds what it finds against what is known. */
static void
verify(Life *life, uint64_t from, uint64_t to, const TreeBound *start, const TreeBound *stop,
       TreeDirection direction)
{
	Torture *torture = life->torture;
	bool keys = key_random(&life->random, 2) != 0;
	uint64_t last = direction == TREE_FORWARD ? 0 : UINT64_MAX;
	bool any = false;
	const TreeBatch *batch;
	TreeStatus status;

	for (uint64_t rank = from; rank < to; rank++)
		life->before[rank] = torture_word(torture, rank);
	memset(life->found + from, 0, to - from);
	require_status(life, tree_scan_seek(life->scan, direction, start, stop), "seek");
	maybe_stop(life);
	for (;;)
	{
		status = tree_scan_next(life->scan, &batch);
		if (status == TREE_STOPPED)
		{
			no_stop(life);
			continue;
		}
		if (status == TREE_END)
			break;
		require_status(life, status, "scan");
		for (int i = 0; i < batch->count; i++)
		{
			uint64_t rank = rank_of_tid(torture, batch->entries[i].block, batch->entries[i].offset);
			TreeKey key;

			REQUIRE(rank >= from && rank < to,
			        "entry %" PRIu64 " outside of [%" PRIu64 ", %" PRIu64 "), leaf %" PRIx64, rank, from, to,
			        batch->leaf.pointer);
			REQUIRE(!any || (direction == TREE_FORWARD ? rank > last : rank < last),
			        "entry %" PRIu64 " behind %" PRIu64 ", leaf %" PRIx64, rank, last, batch->leaf.pointer);
			life->found[rank] = 1;
			last = rank;
			any = true;
			if (!keys)
				continue;
			status = tree_batch_key(life->scan, batch, i, &key);
			if (status == TREE_NOT_FOUND)
			{
				REQUIRE(word_state(life->before[rank]) != ENTRY_IN ||
				            torture_word(torture, rank) != life->before[rank],
				        "the image of entry %" PRIu64 " is gone", rank);
				continue;
			}
			require_status(life, status, "key");
			REQUIRE(keyspace_number(torture->space, &key) == torture->sorted[rank].number,
			        "key of entry %" PRIu64 " is another one's", rank);
		}
	}
	no_stop(life);
	for (uint64_t rank = from; rank < to; rank++)
	{
		uint32_t now = torture_word(torture, rank);

		if (now != life->before[rank])
			continue;
		REQUIRE(word_state(now) != ENTRY_IN || life->found[rank] != 0,
		        "entry %" PRIu64 " (number %" PRIu64 ", TID (%u,%u)) is in and was not found by a scan %s",
		        rank, torture->sorted[rank].number, torture->sorted[rank].block, torture->sorted[rank].offset,
		        direction == TREE_FORWARD ? "forward" : "backward");
		REQUIRE(word_state(now) != ENTRY_OUT || life->found[rank] == 0,
		        "entry %" PRIu64 " (number %" PRIu64 ") is out and was found", rank,
		        torture->sorted[rank].number);
	}
}

/* Numbers [low, high]. */
static void
verify_range(Life *life, uint64_t low, uint64_t high, TreeDirection direction)
{
	TreeBound lower, upper;

	life->low = low;
	life->high = high;
	keyspace_bound(life->torture->space, &life->low, -1, &lower);
	keyspace_bound(life->torture->space, &life->high, 1, &upper);
	verify(life, rank_of_number(life->torture, low), rank_of_number(life->torture, high + 1),
	       direction == TREE_FORWARD ? &lower : &upper, direction == TREE_FORWARD ? &upper : &lower,
	       direction);
}

/* Looks for an entry of the number: any of those that are in will do, and if there is none, none may be. */
static void
life_find(Life *life, uint64_t number)
{
	Torture *torture = life->torture;
	uint64_t from = rank_of_number(torture, number);
	uint64_t to = rank_of_number(torture, number + 1);
	KeyEntry entry = {.number = number, .block = 0, .offset = 1};
	TreeStatus status = TREE_STOPPED;
	TreeFound found;
	KeyImage image;
	TreeKey key;

	for (uint64_t rank = from; rank < to; rank++)
		life->before[rank] = torture_word(torture, rank);
	keyspace_key(torture->space, &entry, &image, &key);
	maybe_stop(life);
	while (status == TREE_STOPPED)
	{
		status = tree_find(life->scan, &key, &found);
		no_stop(life);
	}
	if (status == TREE_OK)
	{
		uint64_t rank = rank_of_tid(torture, found.block, found.offset);

		REQUIRE(rank >= from && rank < to, "entry %" PRIu64 " found for number %" PRIu64, rank, number);
		REQUIRE(word_state(life->before[rank]) != ENTRY_OUT ||
		            torture_word(torture, rank) != life->before[rank],
		        "entry %" PRIu64 " (number %" PRIu64 ") is out and was found alone", rank, number);
		return;
	}
	REQUIRE(status == TREE_END, "find: %s: %s", tree_status_name(status), tree_detail(life->client.tree));
	for (uint64_t rank = from; rank < to; rank++)
		REQUIRE(word_state(life->before[rank]) != ENTRY_IN ||
		            torture_word(torture, rank) != life->before[rank],
		        "entry %" PRIu64 " (number %" PRIu64 ") is in and was not found alone", rank, number);
}

/* Inserts until it is acknowledged. Unless it was interrupted, what is known tells whether it must be a hit. */
static void
life_insert(Life *life, uint64_t rank)
{
	Torture *torture = life->torture;
	uint32_t word = torture->words[rank];
	bool certain = word_state(word) == ENTRY_IN || word_state(word) == ENTRY_OUT;
	bool there = word_state(word) == ENTRY_IN;
	TreeWalPosition wal = {.epoch = 1, .lsn = key_random(&life->random, 1000)};
	TreeStatus status = TREE_STOPPED;
	KeyImage image;
	TreeKey key;
	bool hit;

	if (!there)
		word_set(torture, rank, ENTRY_INSERTING);
	keyspace_key(torture->space, &torture->sorted[rank], &image, &key);
	maybe_stop(life);
	while (status == TREE_STOPPED)
	{
		status = tree_insert(life->tree, &key, &wal, &hit);
		no_stop(life);
		/* A cancel after a chain was lost: it may have landed, which an aborted transaction does not mind. */
		if (status == TREE_STOPPED && torture->options.lose)
			certain = false;
	}
	require_status(life, status, "insert");
	REQUIRE(!certain || hit == there, "insert of entry %" PRIu64 " that is %s: hit %d", rank,
	        state_name(word), hit);
	if (!there)
		word_set(torture, rank, ENTRY_IN);
}

/* Those of a batch that are out are in, or are being inserted. */
static void
batch_mark(const Life *life, const uint64_t *ranks, uint32_t count, EntryState state)
{
	for (uint32_t i = 0; i < count; i++)
		if (word_state(life->torture->words[ranks[i]]) != ENTRY_IN)
			word_set(life->torture, ranks[i], state);
}

/* The same for many entries at once, some of which may be in, or in the batch twice. */
static void
life_insert_many(Life *life)
{
	Torture *torture = life->torture;
	uint32_t entries = torture->options.entries;
	uint32_t count = 1 + (uint32_t) key_random(&life->random, BATCH_MAX);
	uint64_t first = key_random(&life->random, entries);
	bool together = key_random(&life->random, 2) == 0;
	TreeWalPosition wal = {.epoch = 1, .lsn = key_random(&life->random, 1000)};
	TreeStatus status = TREE_STOPPED;
	KeyImage *images = calloc(count, sizeof(*images));
	TreeKey *keys = calloc(count, sizeof(*keys));
	uint64_t ranks[BATCH_MAX];

	REQUIRE(images != NULL && keys != NULL, "no memory");
	for (uint32_t i = 0; i < count; i++)
	{
		uint64_t number = together ? (first + i) % entries : key_random(&life->random, entries);

		ranks[i] = torture->rank[(uint64_t) life->process * entries + number];
		keyspace_key(torture->space, &torture->sorted[ranks[i]], &images[i], &keys[i]);
	}
	batch_mark(life, ranks, count, ENTRY_INSERTING);
	maybe_stop(life);
	while (status == TREE_STOPPED)
	{
		status = tree_insert_many(life->tree, keys, count, &wal);
		no_stop(life);
	}
	require_status(life, status, "insert many");
	batch_mark(life, ranks, count, ENTRY_IN);
	free(images);
	free(keys);
}

/* A random rank of this process's own. */
static uint64_t
own_rank(Life *life)
{
	uint32_t entries = life->torture->options.entries;
	/* Else an extent has some of everybody's, and is never empty. */
	uint32_t some = life->torture->options.give && life->process > 0 ? GIVE_FEW : entries;

	return life->torture->rank[(uint64_t) life->process * entries + key_random(&life->random, some)];
}

/* Of a few own ones, one that is out: near the others' latest if numbers ascend. */
static uint64_t
own_rank_out(Life *life)
{
	Torture *torture = life->torture;
	uint32_t entries = torture->options.entries;
	uint64_t rank = own_rank(life);

	if (torture->options.range == 0 && !torture->options.merge)
	{
		for (uint32_t i = 0; i < entries; i++)
		{
			rank = torture->rank[(uint64_t) life->process * entries + i];
			if (torture->words[rank] == 0)
				break;
		}
		return rank;
	}
	for (int i = 0; i < 8 && word_state(torture->words[rank]) == ENTRY_IN; i++)
		rank = own_rank(life);
	return rank;
}

static bool
is_removing(void *argument, uint32_t block, uint16_t offset)
{
	const Life *life = argument;
	uint64_t rank = rank_of_tid(life->torture, block, offset);

	return life->torture->id[rank] / life->torture->options.entries == life->process &&
	       word_state(life->torture->words[rank]) == ENTRY_REMOVING;
}

bool
chains_are_lost(const TortureOptions *options)
{
	return options->lose || options->lose_below || options->deaths > 0;
}

/* Whether one's own entry number i is to be removed: some of all, or, `merge`, the most of a range. */
static bool
chooses(Life *life, uint64_t i, uint64_t part, uint64_t from, uint64_t to)
{
	if (!life->torture->options.merge)
		return key_random(&life->random, part) == 0;
	return i >= from && i < to && (part % 4 != 0 || key_random(&life->random, 50) != 0);
}

/* Takes leaves that the walk has left empty, or nearly so, out of the tree. Only where all processes share one instance's memory. */
static void
life_merge(Life *life, const TreeVacuum *vacuum)
{
	TreeMergeCounts counts = {0};
	TreeMerge *merge;
	TreeStatus status;

	if (life->torture->options.domains > 1)
		return;
	require_status(life, tree_merge_open(life->tree, vacuum, &merge), "merge");
	maybe_stop(life);
	while ((status = tree_merge_next(merge, &counts)) != TREE_END)
	{
		if (status == TREE_STOPPED)
			no_stop(life);
		else
			require_status(life, status, "merge");
	}
	no_stop(life);
	tree_merge_close(merge);
	__atomic_fetch_add(life->torture->merged, counts.leaves + counts.inner_nodes, __ATOMIC_RELAXED);
	__atomic_fetch_add(life->torture->folded, counts.folded, __ATOMIC_RELAXED);
}

/* Gives extents that nothing is in back to the memory nodes. */
static void
life_give(Life *life)
{
	TreeGive give = {0};
	TreeStatus status = TREE_OK;

	if (life->torture->options.domains > 1)
		return;
	maybe_stop(life);
	while (status != TREE_END)
	{
		status = tree_give_next(life->tree, &give);
		if (status == TREE_STOPPED)
			no_stop(life);
		else if (status != TREE_END)
			require_status(life, status, "give");
	}
	no_stop(life);
	__atomic_fetch_add(life->torture->given, give.bytes, __ATOMIC_RELAXED);
}

/* Finds what lives before have left free, if all processes share one instance's memory. */
static void
life_reclaim(Life *life)
{
	uint64_t bytes = 0;
	TreeStatus status = TREE_OK;

	maybe_stop(life);
	while (status != TREE_END)
	{
		status = tree_reclaim_next(life->tree, &bytes);
		if (status == TREE_STOPPED)
			no_stop(life);
		else if (status != TREE_END)
			require_status(life, status, "reclaim");
	}
	no_stop(life);
	__atomic_fetch_add(life->torture->reclaimed, bytes, __ATOMIC_RELAXED);
}

/* Removes some of one's own by a walk over the whole tree, beside others that do the same. */
static void
life_remove(Life *life)
{
	Torture *torture = life->torture;
	uint32_t entries = torture->options.entries;
	uint64_t first = (uint64_t) life->process * entries;
	uint64_t part = 3 + key_random(&life->random, 30);
	uint64_t from = key_random(&life->random, entries);
	uint64_t to = from + key_random(&life->random, entries);
	uint64_t chosen = 0;
	bool all = torture->options.give && key_random(&life->random, 4) != 0;
	TreeVacuumCounts counts;
	TreeVacuum *vacuum;
	TreeStatus status;

	for (uint64_t id = first; id < first + entries; id++)
	{
		uint64_t rank = torture->rank[id];
		EntryState state = word_state(torture->words[rank]);

		if (state != ENTRY_REMOVING &&
		    (state != ENTRY_IN || (!all && !chooses(life, id - first, part, from, to))))
			continue;
		if (state == ENTRY_IN)
			life_row_ends(life, rank);
		word_set(torture, rank, ENTRY_REMOVING);
		chosen++;
	}
	life_reclaim(life);
	memset(&counts, 0, sizeof(counts));
	require_status(life, tree_vacuum_open(life->tree, &vacuum), "vacuum");
	maybe_stop(life);
	while ((status = tree_vacuum_next(vacuum, is_removing, life, &counts)) != TREE_END)
	{
		if (status == TREE_STOPPED)
			no_stop(life);
		else
			require_status(life, status, "vacuum");
	}
	no_stop(life);
	/* A chain that was lost after it landed is done again and finds nothing left to remove. */
	REQUIRE(counts.removed == chosen || (chains_are_lost(&torture->options) && counts.removed < chosen),
	        "vacuum removed %" PRIu64 " of %" PRIu64, counts.removed, chosen);
	for (uint64_t id = first; id < first + entries; id++)
		if (word_state(torture->words[torture->rank[id]]) == ENTRY_REMOVING)
			word_set(torture, torture->rank[id], ENTRY_OUT);
	life_merge(life, vacuum);
	life_give(life);
	tree_vacuum_close(vacuum);
}

/* Looks for unverified leaves and heals them; no entry goes.  The next insert may bring the doubt back. */
static void
life_heal(Life *life)
{
	static const TreeWalPosition never = {0};
	TreeStatus status;
	const TreeBatch *batch;
	bool healed;

	require_status(life, tree_scan_seek(life->scan, TREE_FORWARD, NULL, NULL), "seek");
	tree_scan_unverified(life->scan, true);
	maybe_stop(life);
	while ((status = tree_scan_next(life->scan, &batch)) != TREE_END)
	{
		if (status == TREE_OK && batch->unverified)
			status = tree_heal_leaf(life->tree, &batch->leaf, NULL, 0, &never, &healed);
		if (status == TREE_STOPPED)
			no_stop(life);
		else
			require_status(life, status, "heal");
	}
	no_stop(life);
	tree_scan_unverified(life->scan, false);
}

static void
life_add(Life *life, uint64_t rank)
{
	if (life->torture->unique != NULL)
		life_insert_unique(life, rank);
	else
		life_insert(life, rank);
}

static void
life_add_many(Life *life)
{
	if (life->torture->unique != NULL)
		life_insert_many_unique(life);
	else
		life_insert_many(life);
}

static void
life_operation(Life *life)
{
	Torture *torture = life->torture;
	uint64_t choice = key_random(&life->random, 100);
	uint64_t largest = torture->sorted[torture->count - 1].number;
	uint64_t number = key_random(&life->random, largest + 2);
	uint64_t width = key_random(&life->random, largest / 20 + 2);

	if (choice < PART_INSERT && key_random(&life->random, torture->unique != NULL ? 5 : 50) == 0)
		life_add_many(life);
	else if (choice < PART_INSERT)
		life_add(life, own_rank_out(life));
	else if (choice < PART_AGAIN)
		life_add(life, own_rank(life));
	else if (choice < PART_LOOKUP && number % 2 == 0)
		life_find(life, number);
	else if (choice < PART_LOOKUP)
		verify_range(life, number, number, TREE_FORWARD);
	else if (choice < PART_RANGE)
		verify_range(life, number, number + width, TREE_FORWARD);
	else if (choice < PART_BACKWARD)
		verify_range(life, number, number + width, TREE_BACKWARD);
	else if (choice < PART_WHOLE && key_random(&life->random, 4) == 0)
		verify(life, 0, torture->count, NULL, NULL, choice % 2 == 0 ? TREE_FORWARD : TREE_BACKWARD);
	else if (choice >= PART_WHOLE && key_random(&life->random, torture->options.give ? 400 : 4) == 0)
		life_remove(life);
	else if (choice >= PART_WHOLE && torture->options.merge && key_random(&life->random, 4) == 0)
		life_heal(life);
	else
		life_add(life, own_rank_out(life));
}

/* ---- lives ---- */

static void
life_open(Life *life, Torture *torture, TestInstance *instance, uint32_t slot)
{
	uint32_t copy;

	memset(life, 0, sizeof(*life));
	life->torture = torture;
	life->instance = instance;
	life->slot = slot;
	test_client_open(&life->client, instance, slot);
	life->client.tree->far = slot % 4 != 0;
	keyspace_holds = &instance->environment->slots[slot].holds;
	life->before = malloc(torture->count * sizeof(uint32_t));
	life->found = malloc(torture->count);
	REQUIRE(life->before != NULL && life->found != NULL, "no memory");
	/* What the endpoint vouches for is asked when the tree is opened. */
	for (uint32_t i = 0; (torture->options.tear || torture->options.tear_words) && i < instance->count; i++)
		REQUIRE(fabric_fault_set(
					life->client.endpoints[i],
					&(FabricFaultPlan){.tear_reads = torture->options.tear,
		                               .tear_writes = torture->options.tear && torture->options.crashes == 0,
		                               .tear_words = torture->options.tear_words}) == FABRIC_OK,
		        "no fault layer");
	require_status(life,
	               tree_open(life->client.tree, torture->record.tree, torture->record.root,
	                         &torture->space->format, keyspace_compare, (void *) torture->space, &life->tree),
	               "open");
	if (torture->options.merge)
		life->tree->geometry.ends = &ends;
	if (tree_record_replica(&torture->record, &copy))
		require_status(life,
		               tree_set_replica(life->tree, copy, torture->replica_state, torture->replicas_doubtful),
		               "copies");
	require_status(life, tree_scan_open(life->tree, &life->scan), "scan open");
}

static void
life_close(Life *life)
{
	TreeStatus status;

	tree_scan_close(life->scan);
	tree_close(life->tree);
	status = test_client_close(&life->client);
	REQUIRE(status == TREE_OK, "close: %s", tree_status_name(status));
	free(life->before);
	free(life->found);
}

void
torture_live(Torture *torture, TestInstance *instance, uint32_t slot, uint32_t process, uint64_t seed,
             uint64_t die_operation, uint32_t die_line)
{
	const TortureOptions *options = &torture->options;
	Life life;

	life_open(&life, torture, instance, slot);
	life.process = process;
	life.random.state = seed * 0x2545f4914f6cdd1dull + process + 1;
	life.faults = options->tear || options->tear_words || options->lose || options->delay_us != 0;
	life.die_operation = die_operation;
	life.die_line = die_line;
	if (die_operation != 0)
		life_plan_death(&life);
	for (uint32_t i = 0; i < options->operations; i++)
	{
		if (life.faults && die_operation == 0 && i % PLAN_OPERATIONS == 0)
			life_plan_faults(&life);
		life_operation(&life);
	}
	life_close(&life);
}

/* ---- the end ---- */

typedef struct Settlement
{
	Torture *torture;
	uint8_t *found;
	uint64_t wrong;
	uint64_t last;
	bool any;
} Settlement;

static void
settle_report(void *argument, const char *message)
{
	Settlement *settlement = argument;

	settlement->wrong++;
	fprintf(stderr, "check: %s\n", message);
}

static void
settle_entry(void *argument, const TreeKey *key, bool unverified)
{
	Settlement *settlement = argument;
	Torture *torture = settlement->torture;
	uint64_t rank = rank_of_tid(torture, key->block, key->offset);

	(void) unverified;
	if (keyspace_number(torture->space, key) != torture->sorted[rank].number ||
	    (settlement->any && rank <= settlement->last))
	{
		fprintf(stderr, "check: entry %" PRIu64 " behind %" PRIu64 "\n", rank, settlement->last);
		settlement->wrong++;
	}
	settlement->found[rank] = 1;
	settlement->last = rank;
	settlement->any = true;
}

/* An entry that was being inserted is there.  False: another one has its number, which may have one row only. */
static bool
settle_in(Torture *torture, uint64_t rank)
{
	uint64_t number = torture->sorted[rank].number;

	word_set(torture, rank, ENTRY_IN);
	if (torture->unique == NULL || unique_keys_row(torture->unique, number, (uint32_t) rank))
		return true;
	fprintf(stderr,
	        "entry %" PRIu64 " was being inserted, is there, and number %" PRIu64 " has another row\n", rank,
	        number);
	return false;
}

bool
torture_settle(Torture *torture, TestInstance *instance, uint32_t slot)
{
	Settlement settlement = {.torture = torture, .found = calloc(torture->count, 1)};
	TreeStatistics statistics;
	uint64_t problems;
	Life life;

	if (torture->unique != NULL)
		unique_keys_end(torture->unique);
	life_open(&life, torture, instance, slot);
	life.random.state = torture->options.seed + 99;
	require_status(&life,
	               tree_check(life.tree, settle_report, settle_entry, &settlement, &statistics, &problems),
	               "check");
	for (uint64_t rank = 0; rank < torture->count; rank++)
	{
		EntryState state = word_state(torture->words[rank]);
		bool found = settlement.found[rank] != 0;

		if ((state == ENTRY_IN && !found) || (state == ENTRY_OUT && found))
		{
			fprintf(stderr,
			        "entry %" PRIu64 " (number %" PRIu64 ", TID (%u,%u)) is %s and was %sfound at the end\n",
			        rank, torture->sorted[rank].number, torture->sorted[rank].block,
			        torture->sorted[rank].offset, state_name(state), found ? "" : "not ");
			settlement.wrong++;
		}
		if (state == ENTRY_INSERTING && found)
			settlement.wrong += settle_in(torture, rank) ? 0 : 1;
		else if (state == ENTRY_REMOVING && found && torture->unique == NULL)
			word_set(torture, rank, ENTRY_IN);
		else if (state != ENTRY_IN && !found)
			word_set(torture, rank, ENTRY_OUT);
	}
	tree_counters(life.tree, &torture->counters);
	torture->statistics = statistics;
	if (settlement.wrong == 0)
	{
		verify(&life, 0, torture->count, NULL, NULL, TREE_FORWARD);
		verify(&life, 0, torture->count, NULL, NULL, TREE_BACKWARD);
	}
	life_close(&life);
	free(settlement.found);
	return settlement.wrong == 0;
}

bool
torture_settle_replicas(Torture *torture, TestInstance *instance, uint32_t slot)
{
	TreeReplicaCounts counts;
	bool doubtful;
	Life life;

	life_open(&life, torture, instance, slot);
	doubtful = tree_replicas_in_doubt(life.tree);
	require_status(&life, tree_replicas_compare(life.tree, doubtful, &counts), "compare copies");
	if (doubtful)
	{
		require_status(&life, tree_replicas_compare(life.tree, false, &counts), "compare copies again");
		REQUIRE(!tree_replicas_in_doubt(life.tree), "what was written anew is in doubt still");
	}
	if (counts.differ != 0)
		fprintf(stderr, "%" PRIu64 " of %" PRIu64 " nodes differ from their copies%s\n", counts.differ,
		        counts.nodes, doubtful ? ", which were written anew" : "");
	torture->replicas_doubtful = false;
	life_close(&life);
	return counts.differ == 0;
}

void
torture_give_up_home(Torture *torture, TestInstance *instance, uint32_t slot)
{
	Life life;

	life_open(&life, torture, instance, slot);
	tree_node_close(instance->shared, tree_home(torture->record.root));
	tree_replicas_set(life.tree, TREE_REPLICAS_SECOND);
	life_close(&life);
}
