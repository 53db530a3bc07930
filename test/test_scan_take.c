/*
 * test_scan_take.c
 *		One scan by several clients, each with a connection and a scan of its own: every entry comes once,
 *		to each of them in order, while the tree is split under them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/checked_tree.h"

#define PARTICIPANTS 3

typedef struct Participant
{
	TestClient client;
	Tree *tree;
	TreeScan *scan;
	bool taking; /* it has leaves */
	bool have_last;
	KeyEntry last;
} Participant;

/* The scan that they share. */
typedef struct SharedScan
{
	CheckedTree *f;
	TreeDirection direction;
	const TreeBound *start;
	const TreeBound *stop;
	bool begun;
	TreeScanPosition position; /* where to go on */
	uint64_t takes;
	KeyModel met; /* what they were given */
	Participant participants[PARTICIPANTS];
} SharedScan;

static void
shared_open(SharedScan *shared, CheckedTree *f, TreeDirection direction, const TreeBound *start,
            const TreeBound *stop)
{
	memset(shared, 0, sizeof(*shared));
	shared->f = f;
	shared->direction = direction;
	shared->start = start;
	shared->stop = stop;
	for (uint32_t i = 0; i < PARTICIPANTS; i++)
	{
		Participant *p = &shared->participants[i];

		test_client_open(&p->client, &instance, 1 + i);
		require_ok(tree_open(p->client.tree, f->record.tree, f->record.root, &f->space->format,
		                     keyspace_compare, (void *) (uintptr_t) f->space, &p->tree));
		require_ok(tree_scan_open(p->tree, &p->scan));
	}
}

static void
shared_close(SharedScan *shared)
{
	for (int i = 0; i < PARTICIPANTS; i++)
	{
		Participant *p = &shared->participants[i];

		tree_scan_close(p->scan);
		tree_close(p->tree);
		test_client_close(&p->client);
	}
	key_model_free(&shared->met);
}

/* Takes the next leaves for a participant. False: the scan is over. */
static bool
take(SharedScan *shared, Participant *p)
{
	TreeStatus status;

	if (shared->begun && shared->position.ended)
		return false;
	if (shared->begun)
		require_ok(tree_scan_resume(p->scan, shared->direction, shared->stop, &shared->position));
	else
		require_ok(tree_scan_seek(p->scan, shared->direction, shared->start, shared->stop));
	status = tree_scan_take(p->scan, &shared->position);
	require_ok(status);
	shared->begun = true;
	shared->takes++;
	p->taking = true;
	return true;
}

/* Each entry is there, was not met before, and is beyond the participant's last. */
static void
note_batch(SharedScan *shared, Participant *p, const TreeBatch *batch)
{
	for (int i = 0; i < batch->count; i++)
	{
		KeyEntry entry = {.block = batch->entries[i].block, .offset = batch->entries[i].offset};
		TreeKey key;

		require_ok(tree_batch_key(p->scan, batch, i, &key));
		entry.number = keyspace_number(shared->f->space, &key);
		assert_true(key_model_has(&shared->f->model, &entry));
		assert_true(key_model_add(&shared->met, &entry));
		if (p->have_last)
			assert_true(shared->direction == TREE_FORWARD ? key_entry_compare(&p->last, &entry) < 0
			                                              : key_entry_compare(&p->last, &entry) > 0);
		p->last = entry;
		p->have_last = true;
	}
}

/* One step of a participant. False: it has no more to do. */
static bool
step(SharedScan *shared, Participant *p)
{
	const TreeBatch *batch;
	TreeStatus status;

	if (!p->taking)
		return take(shared, p);
	status = tree_scan_next(p->scan, &batch);
	if (status == TREE_END)
	{
		p->taking = false;
		return true;
	}
	require_ok(status);
	note_batch(shared, p, batch);
	return true;
}

/* All steps of all participants in some order; every so often entries come in: `splits` at a time. */
static void
run_steps(SharedScan *shared, uint64_t range, int splits, uint64_t *tid)
{
	bool working[PARTICIPANTS];
	int left = PARTICIPANTS;

	memset(working, true, sizeof(working));
	while (left > 0)
	{
		uint64_t i = key_random(&shared->f->random, PARTICIPANTS);

		if (!working[i])
			continue;
		if (!step(shared, &shared->participants[i]))
		{
			working[i] = false;
			left--;
		}
		for (int n = 0; n < splits; n++)
			insert(shared->f, key_random(&shared->f->random, range), (*tid)++);
	}
}

/* A shared scan of the model's entries [from, to). */
static void
compare_shared(CheckedTree *f, TreeDirection direction, const TreeBound *low, const TreeBound *high,
               uint64_t from, uint64_t to)
{
	SharedScan shared;
	uint64_t tid = 0;

	shared_open(&shared, f, direction, direction == TREE_FORWARD ? low : high,
	            direction == TREE_FORWARD ? high : low);
	run_steps(&shared, 0, 0, &tid);
	assert_int_equal(shared.met.count, to > from ? to - from : 0);
	if (to > from)
		assert_memory_equal(shared.met.entries, f->model.entries + from, (to - from) * sizeof(KeyEntry));
	shared_close(&shared);
}

static void
take_ranges(KeySpaceKind kind)
{
	CheckedTree f;
	const uint64_t range = 2000;

	checked_tree_open(&f, kind);
	compare_shared(&f, TREE_FORWARD, NULL, NULL, 0, 0);
	insert_random(&f, 4000, range, 1);
	compare_shared(&f, TREE_FORWARD, NULL, NULL, 0, f.model.count);
	compare_shared(&f, TREE_BACKWARD, NULL, NULL, 0, f.model.count);
	for (int i = 0; i < 6; i++)
	{
		uint64_t a = key_random(&f.random, range);
		uint64_t b = a + key_random(&f.random, range / 2);
		TreeBound low, high;

		keyspace_bound(f.space, &a, -1, &low);
		keyspace_bound(f.space, &b, 1, &high);
		compare_shared(&f, TREE_FORWARD, &low, &high, key_model_find(&f.model, a),
		               key_model_find(&f.model, b + 1));
		compare_shared(&f, TREE_BACKWARD, &low, &high, key_model_find(&f.model, a),
		               key_model_find(&f.model, b + 1));
	}
	checked_tree_close(&f);
}

static void
every_entry_once(void **state)
{
	take_ranges(KEYSPACE_16);
	take_ranges(KEYSPACE_32_WHOLE);
	take_ranges(KEYSPACE_32_TIED);
	take_ranges(KEYSPACE_64_OVERFLOW);
	take_ranges(KEYSPACE_64_FULL);
	take_ranges(KEYSPACE_24_WHOLE);
}

/* Entries that are there from the beginning come once, those that come meanwhile at most once. */
static void
take_splitting(KeySpaceKind kind, TreeDirection direction)
{
	const uint64_t range = 3000;
	uint64_t tid = 1, met = 0;
	KeyModel before = {0};
	SharedScan shared;
	CheckedTree f;

	checked_tree_open(&f, kind);
	insert_random(&f, 3000, range, tid);
	tid += 3000;
	before.count = f.model.count;
	before.entries = malloc(before.count * sizeof(KeyEntry));
	memcpy(before.entries, f.model.entries, before.count * sizeof(KeyEntry));
	shared_open(&shared, &f, direction, NULL, NULL);
	run_steps(&shared, range, 60, &tid);
	for (uint64_t i = 0; i < before.count; i++)
		met += key_model_has(&shared.met, &before.entries[i]);
	assert_int_equal(met, before.count);
	assert_true(f.model.count > 2 * before.count);
	shared_close(&shared);
	free(before.entries);
	checked_tree_close(&f);
}

static void
every_entry_once_while_splitting(void **state)
{
	take_splitting(KEYSPACE_16, TREE_FORWARD);
	take_splitting(KEYSPACE_16, TREE_BACKWARD);
	take_splitting(KEYSPACE_64_OVERFLOW, TREE_FORWARD);
	take_splitting(KEYSPACE_64_OVERFLOW, TREE_BACKWARD);
}

/* What is read by one chain is taken at once: a shared scan costs hardly more chains than one of its own. */
static void
leaves_are_taken_together(void **state)
{
	TreeStatistics statistics;
	SharedScan shared;
	CheckedTree f;
	uint64_t problems, chains = 0, tid = 0;

	checked_tree_open(&f, KEYSPACE_16);
	for (uint64_t i = 0; i < 20000; i++)
		insert(&f, i, i);
	require_ok(tree_check(f.tree, NULL, NULL, NULL, &statistics, &problems));
	assert_true(statistics.leaves > 300);
	shared_open(&shared, &f, TREE_FORWARD, NULL, NULL);
	run_steps(&shared, 0, 0, &tid);
	for (int i = 0; i < PARTICIPANTS; i++)
	{
		TreeCounters counters;

		tree_client_counters(shared.participants[i].client.tree, &counters);
		chains += counters.round_trips;
	}
	assert_true(chains <= statistics.leaves / 4);
	assert_true(shared.takes <= statistics.leaves / 4);
	assert_int_equal(shared.met.count, f.model.count);
	shared_close(&shared);
	checked_tree_close(&f);
}

/* Positions and calls outside the contract. */
static void
misuse_is_refused(void **state)
{
	const TreeBatch *batch;
	TreeScanPosition position, none = {0};
	CheckedTree f;

	checked_tree_open(&f, KEYSPACE_16);
	insert_random(&f, 1000, 1000, 1);
	assert_int_equal(tree_scan_take(f.scan, &position), TREE_INVALID);
	assert_int_equal(tree_scan_resume(f.scan, TREE_FORWARD, NULL, &none), TREE_INVALID);
	assert_int_equal(tree_scan_next(f.scan, &batch), TREE_INVALID);
	require_ok(tree_scan_seek(f.scan, TREE_FORWARD, NULL, NULL));
	require_ok(tree_scan_take(f.scan, &position));
	assert_false(position.ended);
	assert_int_equal(tree_scan_take(f.scan, &none), TREE_INVALID);
	position.ended = true;
	assert_int_equal(tree_scan_resume(f.scan, TREE_FORWARD, NULL, &position), TREE_INVALID);
	checked_tree_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_entry_once),
		cmocka_unit_test(every_entry_once_while_splitting),
		cmocka_unit_test(leaves_are_taken_together),
		cmocka_unit_test(misuse_is_refused),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
