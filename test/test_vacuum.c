/*
 * test_vacuum.c
 *		Removing entries: alone, beside inserts that split and rewrite, with overflow keys, and the estimates it leaves.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/fixture.h"

/* Walks the whole tree; counts what it removes. */
static TreeStatus
walk(Tree *tree, TreeIsDead dead, void *argument, TreeVacuumCounts *counts)
{
	TreeVacuum *vacuum_walk;
	TreeStatus status;

	memset(counts, 0, sizeof(*counts));
	status = tree_vacuum_open(tree, &vacuum_walk);
	if (status != TREE_OK)
		return status;
	while ((status = tree_vacuum_next(vacuum_walk, dead, argument, counts)) == TREE_OK)
		;
	assert_int_equal(tree_vacuum_next(vacuum_walk, dead, argument, counts),
	                 status == TREE_END ? TREE_END : status);
	tree_vacuum_close(vacuum_walk);
	return status;
}

static void
vacuum_spaces(void **state)
{
	(void) state;
	for (int kind = 0; kind < KEYSPACES; kind++)
	{
		Fixture f;
		TreeStatistics statistics, estimate;

		fixture_open(&f, (KeySpaceKind) kind);
		insert_random(&f, 1500, 700, 1);
		vacuum(&f);
		compare_check(&f, &statistics);
		require_ok(tree_estimate(f.tree, &estimate));
		assert_int_equal(estimate.entries, f.model.count);
		assert_int_equal(estimate.leaves, statistics.leaves);
		assert_int_equal(estimate.height, statistics.height);
		compare_everything(&f, 700, 20);
		insert_random(&f, 500, 700, 2000);
		compare_check(&f, &statistics);
		compare_everything(&f, 700, 20);
		fixture_close(&f);
	}
}

static bool
all_dead(void *argument, uint32_t block, uint16_t offset)
{
	(void) argument;
	(void) block;
	(void) offset;
	return true;
}

/* Empty leaves stay linked, and are filled again. */
static void
vacuum_empties(void **state)
{
	Fixture f;
	TreeVacuumCounts counts;
	TreeStatistics statistics;
	uint64_t leaves;

	(void) state;
	fixture_open(&f, KEYSPACE_16);
	insert_random(&f, 3000, 100000, 1);
	compare_check(&f, &statistics);
	leaves = statistics.leaves;
	assert_int_equal(walk(f.tree, NULL, NULL, &counts), TREE_END);
	assert_int_equal(counts.leaves, leaves);
	assert_int_equal(counts.entries, 3000);
	assert_int_equal(counts.removed, 0);
	assert_int_equal(walk(f.tree, all_dead, NULL, &counts), TREE_END);
	assert_int_equal(counts.removed, 3000);
	assert_int_equal(counts.empty, leaves);
	f.model.count = 0;
	compare_check(&f, &statistics);
	assert_int_equal(statistics.leaves, leaves);
	compare_everything(&f, 100000, 10);
	insert_random(&f, 2000, 100000, 1);
	compare_check(&f, &statistics);
	assert_int_equal(statistics.leaves, leaves);
	compare_everything(&f, 100000, 10);
	fixture_close(&f);
}

/* Blocks of removed images are used again: the tree does not grow by rounds of inserts and removals. */
static void
vacuum_gives_blocks_back(void **state)
{
	Fixture f;
	TreeVacuumCounts counts;
	TreeStatistics statistics;
	uint64_t extent_bytes = 0;

	(void) state;
	fixture_open(&f, KEYSPACE_64_PREFIX);
	for (int round = 0; round < 30; round++)
	{
		for (uint64_t i = 0; i < 60; i++)
			insert(&f, i, i);
		compare_check(&f, &statistics);
		if (round == 1)
			extent_bytes = statistics.extent_bytes;
		assert_int_equal(walk(f.tree, all_dead, NULL, &counts), TREE_END);
		assert_int_equal(counts.removed, 60);
		f.model.count = 0;
	}
	assert_int_equal(statistics.extent_bytes, extent_bytes);
	fixture_close(&f);
}

/* An is_dead() that changes the tree under the walk's feet. */
typedef struct Meddler
{
	Fixture *f;
	uint64_t next_tid;
	uint64_t left;
	uint64_t inserted;
	bool victims; /* judges something dead */
} Meddler;

static bool
meddle(void *argument, uint32_t block, uint16_t offset)
{
	Meddler *meddler = argument;

	/* In the middle of judging a leaf: a burst of inserts that splits it, now and then. */
	if (meddler->left > 0 && (block + offset) % 40 == 0)
	{
		for (int i = 0; i < 70; i++)
		{
			insert(meddler->f, key_random(&meddler->f->random, 500), meddler->next_tid++);
			meddler->inserted++;
		}
		meddler->left--;
	}
	return meddler->victims && block < 5 && is_dead(NULL, block, offset);
}

/* Splits and rewrites between judgment and lock: the judged entries all go, and nothing else. */
static void
vacuum_meets_changes(void **state)
{
	(void) state;
	for (int kind = 0; kind < KEYSPACES; kind += 2)
	{
		Fixture f;
		Meddler meddler = {.f = &f, .next_tid = 5000, .left = 20, .victims = true};
		TreeVacuumCounts counts;
		TreeStatistics statistics;
		uint64_t kept = 0, removed = 0;

		fixture_open(&f, (KeySpaceKind) kind);
		insert_random(&f, 900, 500, 1);
		assert_int_equal(walk(f.tree, meddle, &meddler, &counts), TREE_END);
		assert_true(meddler.inserted > 500);
		for (uint64_t i = 0; i < f.model.count; i++)
		{
			KeyEntry *entry = &f.model.entries[i];

			if (entry->block < 5 && is_dead(NULL, entry->block, entry->offset))
				removed++;
			else
				f.model.entries[kept++] = *entry;
		}
		f.model.count = kept;
		assert_int_equal(counts.removed, removed);
		compare_check(&f, &statistics);
		compare_everything(&f, 500, 10);
		fixture_close(&f);
	}
}

/* A row that takes over the TID and the key of a judged victim, inserted before the lock, survives (I-P3). */
static bool
revive(void *argument, uint32_t block, uint16_t offset)
{
	Meddler *meddler = argument;

	if (meddler->left == 0)
		return false; /* the second judgment: it is a live row now */
	if (entry_of(7, 7).block != block || entry_of(7, 7).offset != offset)
		return false;
	meddler->left = 0;
	insert(meddler->f, 7, 7);
	return true;
}

static void
vacuum_spares_revived(void **state)
{
	Fixture f;
	Meddler meddler = {.f = &f, .left = 1};
	TreeVacuumCounts counts;
	TreeStatistics statistics;

	(void) state;
	fixture_open(&f, KEYSPACE_16);
	for (uint64_t i = 0; i < 20; i++)
		insert(&f, i, i);
	assert_int_equal(walk(f.tree, revive, &meddler, &counts), TREE_END);
	assert_int_equal(counts.removed, 0);
	compare_check(&f, &statistics);
	fixture_close(&f);
}

/* The root splits while it is judged as the only leaf. */
static void
vacuum_meets_root_split(void **state)
{
	Fixture f;
	Meddler meddler = {.f = &f, .next_tid = 1000, .left = 1, .victims = true};
	TreeVacuumCounts counts;
	TreeStatistics statistics;
	uint64_t kept = 0;

	(void) state;
	fixture_open(&f, KEYSPACE_16);
	insert_random(&f, 45, 500, 1);
	assert_int_equal(walk(f.tree, meddle, &meddler, &counts), TREE_END);
	assert_true(counts.leaves > 1);
	for (uint64_t i = 0; i < f.model.count; i++)
		if (!(f.model.entries[i].block < 5 &&
		      is_dead(NULL, f.model.entries[i].block, f.model.entries[i].offset)))
			f.model.entries[kept++] = f.model.entries[i];
	assert_int_equal(counts.removed, f.model.count - kept);
	f.model.count = kept;
	compare_check(&f, &statistics);
	fixture_close(&f);
}

/* More than any number of tries without others may be, and the fewest that a walk makes for their sake. */
#define OUTRUNS 2000u
#define TRIES_LEAST 1000u

/* The victim, and an entry beside it that others add and take away again. */
#define VICTIM 7
#define BESIDE 5000

/* Others that rewrite the leaf whenever the victim in it was judged. */
typedef struct Rewriter
{
	Fixture *f;
	uint32_t patience_ms; /* of the walk that they outrun */
	uint32_t left;        /* times that they do still */
	uint32_t judged;      /* times the victim was */
} Rewriter;

static bool
is_beside(void *argument, uint32_t block, uint16_t offset)
{
	KeyEntry beside = entry_of(BESIDE, BESIDE);

	(void) argument;
	return block == beside.block && offset == beside.offset;
}

static bool
rewrite_judged(void *argument, uint32_t block, uint16_t offset)
{
	Rewriter *rewriter = argument;
	KeyEntry victim = entry_of(VICTIM, VICTIM);
	KeyEntry beside = entry_of(BESIDE, BESIDE);
	TreeVacuumCounts counts;
	bool hit;

	if (block != victim.block || offset != victim.offset)
		return false;
	rewriter->judged++;
	if (rewriter->left == 0)
		return true;
	rewriter->left--;
	client.tree->options.operation_timeout_ms = 600000;
	require_ok(insert_try(rewriter->f, &beside, &hit));
	assert_int_equal(walk(rewriter->f->tree, is_beside, NULL, &counts), TREE_END);
	assert_int_equal(counts.removed, 1);
	client.tree->options.operation_timeout_ms = rewriter->patience_ms;
	return true;
}

/* A leaf that others rewrite each time is waited for, or ends the walk as a lock that is waited for in vain; nothing is damaged. */
static void
vacuum_is_outrun(void **state)
{
	uint32_t patience = client.tree->options.operation_timeout_ms;
	Fixture f;
	Rewriter rewriter = {.f = &f, .patience_ms = 1, .left = UINT32_MAX};
	KeyEntry victim;
	TreeVacuumCounts counts;
	TreeStatistics statistics;

	(void) state;
	fixture_open(&f, KEYSPACE_16);
	for (uint64_t i = 0; i < 20; i++)
		insert(&f, i, i);
	assert_int_equal(walk(f.tree, rewrite_judged, &rewriter, &counts), TREE_TIMED_OUT);
	assert_true(rewriter.judged >= TRIES_LEAST);
	assert_int_equal(counts.removed, 0);
	compare_check(&f, &statistics);
	rewriter = (Rewriter){.f = &f, .patience_ms = 600000, .left = OUTRUNS};
	assert_int_equal(walk(f.tree, rewrite_judged, &rewriter, &counts), TREE_END);
	assert_int_equal(rewriter.judged, OUTRUNS + 1);
	assert_int_equal(counts.removed, 1);
	client.tree->options.operation_timeout_ms = patience;
	victim = entry_of(VICTIM, VICTIM);
	assert_true(key_model_remove(&f.model, &victim));
	compare_check(&f, &statistics);
	fixture_close(&f);
}

static void
vacuum_is_cheap(void **state)
{
	Fixture f;
	TreeCounters before, after;
	TreeVacuumCounts counts;

	(void) state;
	fixture_open(&f, KEYSPACE_16);
	insert_random(&f, 3000, 100000, 1);
	assert_int_equal(walk(f.tree, NULL, NULL, &counts), TREE_END);
	tree_client_counters(client.tree, &before);
	assert_int_equal(walk(f.tree, NULL, NULL, &counts), TREE_END);
	tree_client_counters(client.tree, &after);
	/* One chain for a leaf without victims, and the way to the first one. */
	assert_true(after.round_trips - before.round_trips <= counts.leaves + 3);
	assert_int_equal(after.lock_acquisitions, before.lock_acquisitions);
	before = after;
	assert_int_equal(walk(f.tree, all_dead, NULL, &counts), TREE_END);
	tree_client_counters(client.tree, &after);
	assert_true(after.round_trips - before.round_trips <= 3 * counts.leaves + 3);
	assert_int_equal(after.deletes - before.deletes, 3000);
	f.model.count = 0;
	fixture_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vacuum_spaces),
		cmocka_unit_test(vacuum_empties),
		cmocka_unit_test(vacuum_gives_blocks_back),
		cmocka_unit_test(vacuum_meets_changes),
		cmocka_unit_test(vacuum_spares_revived),
		cmocka_unit_test(vacuum_meets_root_split),
		cmocka_unit_test(vacuum_is_outrun),
		cmocka_unit_test(vacuum_is_cheap),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
