/*
 * test_vacuum.c
 *		Removing entries: alone, beside inserts that split and rewrite, with overflow keys, and the estimates it leaves.
 *
 *		test_vacuum [--network | --cached]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "support/checked_tree.h"
#include "tree/change/vacuum.h"

/* --network, --cached */
static bool by_waves;
/* --cached: images of leaves are kept. */
static bool cached;

/* No leaf has an image. */
static void
images_forget(void)
{
	leaf_cache_shared_reset(instance.shared);
}

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
	for (int kind = 0; kind < KEYSPACES; kind++)
	{
		CheckedTree f;
		TreeStatistics statistics, estimate;

		checked_tree_open(&f, (KeySpaceKind) kind);
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
		checked_tree_close(&f);
	}
}

static bool
all_dead(void *argument, uint32_t block, uint16_t offset)
{
	return true;
}

/* Empty leaves stay linked, and are filled again. */
static void
vacuum_empties(void **state)
{
	CheckedTree f;
	TreeVacuumCounts counts;
	TreeStatistics statistics;
	uint64_t leaves;

	checked_tree_open(&f, KEYSPACE_16);
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
	checked_tree_close(&f);
}

/* Blocks of removed images are used again: the tree does not grow by rounds of inserts and removals. */
static void
vacuum_gives_blocks_back(void **state)
{
	CheckedTree f;
	TreeVacuumCounts counts;
	TreeStatistics statistics;
	uint64_t extent_bytes = 0;

	checked_tree_open(&f, KEYSPACE_64_PREFIX);
	for (int round = 0; round < 30; round++)
	{
		for (uint64_t i = 0; i < 200; i++)
			insert(&f, i, i);
		compare_check(&f, &statistics);
		if (round == 1)
			extent_bytes = statistics.extent_bytes;
		assert_int_equal(walk(f.tree, all_dead, NULL, &counts), TREE_END);
		assert_int_equal(counts.removed, 200);
		f.model.count = 0;
	}
	assert_int_equal(statistics.extent_bytes, extent_bytes);
	checked_tree_close(&f);
}

/* An is_dead() that changes the tree under the walk's feet. */
typedef struct Meddler
{
	CheckedTree *f;
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
	for (int kind = 0; kind < KEYSPACES; kind += 2)
	{
		CheckedTree f;
		Meddler meddler = {.f = &f, .next_tid = 5000, .left = 20, .victims = true};
		TreeVacuumCounts counts;
		TreeStatistics statistics;
		uint64_t kept = 0, removed = 0;

		checked_tree_open(&f, (KeySpaceKind) kind);
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
		checked_tree_close(&f);
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
	CheckedTree f;
	Meddler meddler = {.f = &f, .left = 1};
	TreeVacuumCounts counts;
	TreeStatistics statistics;

	checked_tree_open(&f, KEYSPACE_16);
	for (uint64_t i = 0; i < 20; i++)
		insert(&f, i, i);
	assert_int_equal(walk(f.tree, revive, &meddler, &counts), TREE_END);
	assert_int_equal(counts.removed, 0);
	compare_check(&f, &statistics);
	checked_tree_close(&f);
}

/* The root splits while it is judged as the only leaf. */
static void
vacuum_meets_root_split(void **state)
{
	CheckedTree f;
	Meddler meddler = {.f = &f, .next_tid = 1000, .left = 1, .victims = true};
	TreeVacuumCounts counts;
	TreeStatistics statistics;
	uint64_t kept = 0;

	checked_tree_open(&f, KEYSPACE_16);
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
	checked_tree_close(&f);
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
	CheckedTree *f;
	uint32_t patience_ms; /* of the walk that they outrun */
	uint32_t left;        /* times that they do still */
	uint32_t judged;      /* times the victim was */
} Rewriter;

static bool
is_beside(void *argument, uint32_t block, uint16_t offset)
{
	KeyEntry beside = entry_of(BESIDE, BESIDE);

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
	CheckedTree f;
	Rewriter rewriter = {.f = &f, .patience_ms = 1, .left = UINT32_MAX};
	KeyEntry victim;
	TreeVacuumCounts counts;
	TreeStatistics statistics;

	checked_tree_open(&f, KEYSPACE_16);
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
	checked_tree_close(&f);
}

/* Chains of a wave of so many READs, or WRITEs. */
static uint64_t
chains_of(uint64_t operations)
{
	return (operations + FABRIC_MAX_CHAIN - 1) / FABRIC_MAX_CHAIN;
}

static void
vacuum_is_cheap(void **state)
{
	CheckedTree f;
	TreeCounters before, after;
	TreeVacuumCounts counts;
	uint64_t reads;

	checked_tree_open(&f, KEYSPACE_16);
	insert_random(&f, 3000, 100000, 1);
	assert_int_equal(walk(f.tree, NULL, NULL, &counts), TREE_END);
	assert_in_range(counts.leaves, FABRIC_MAX_CHAIN + 1, f.tree->geometry.inner_cells);
	reads = chains_of(counts.leaves);
	images_forget();
	tree_client_counters(client.tree, &before);
	assert_int_equal(walk(f.tree, NULL, NULL, &counts), TREE_END);
	tree_client_counters(client.tree, &after);
	/* The way to the first one, and leaves without victims together. */
	assert_int_equal(after.round_trips - before.round_trips, 1 + reads);
	assert_int_equal(after.leaf_reads - before.leaf_reads, counts.leaves);
	assert_int_equal(after.lock_acquisitions, before.lock_acquisitions);
	before = after;
	assert_int_equal(walk(f.tree, all_dead, NULL, &counts), TREE_END);
	tree_client_counters(client.tree, &after);
	/*
	 * By waves they are read once more, if it is not known that they are what they were, and written; leaves that have a lock word
	 * together by another turn. Else each by two chains.
	 */
	if (cached)
	{
		assert_in_range(after.round_trips - before.round_trips, 1 + 2 * reads, 1 + 2 * reads + 4);
		assert_true(after.read_bytes - before.read_bytes <
		            counts.leaves * f.tree->geometry.leaf_bytes * 3 / 2);
	}
	else if (by_waves)
		assert_in_range(after.round_trips - before.round_trips, 1 + 3 * reads, 1 + 3 * reads + 4);
	else
		assert_int_equal(after.round_trips - before.round_trips, 1 + reads + 2 * counts.leaves);
	assert_int_equal(after.lock_acquisitions - before.lock_acquisitions, counts.leaves);
	assert_int_equal(after.leaf_rewrites - before.leaf_rewrites, counts.leaves);
	assert_int_equal(counts.rewritten, counts.leaves);
	assert_int_equal(after.deletes - before.deletes, 3000);
	f.model.count = 0;
	checked_tree_close(&f);
}

/* The same as vacuum_spares_revived() in the middle of many leaves. */
static bool
revive_number(void *argument, uint32_t block, uint16_t offset)
{
	Meddler *meddler = argument;
	KeyEntry revived = entry_of(50000, 1500);

	if (revived.block != block || revived.offset != offset || meddler->left == 0)
		return false;
	meddler->left--;
	insert(meddler->f, 50000, 1500);
	return true;
}

static void
vacuum_spares_one_of_many(void **state)
{
	CheckedTree f;
	Meddler meddler = {.f = &f, .left = 1};
	TreeVacuumCounts counts;
	TreeStatistics statistics;

	checked_tree_open(&f, KEYSPACE_16);
	insert_random(&f, 1400, 100000, 1);
	insert(&f, 50000, 1500);
	images_forget();
	assert_int_equal(walk(f.tree, revive_number, &meddler, &counts), TREE_END);
	assert_int_equal(meddler.left, 0);
	assert_int_equal(counts.removed, 0);
	compare_check(&f, &statistics);
	checked_tree_close(&f);
}

#define FIRST_NEW_TID 50000
#define FIRST_WAVE 64

static bool
is_new(void *argument, uint32_t block, uint16_t offset)
{
	KeyEntry first = entry_of(0, FIRST_NEW_TID);

	return block > first.block || (block == first.block && offset >= first.offset);
}

/* Leaves that are split behind the walk's first wave: its copy of their parent does not name the new ones, which it meets all the same. */
static void
vacuum_meets_new_leaves(void **state)
{
	CheckedTree f;
	TreeVacuumCounts counts = {0};
	TreeStatistics statistics;
	TreeVacuum *vacuum_walk;
	TreeStatus status;
	uint64_t leaves;

	checked_tree_open(&f, KEYSPACE_16);
	insert_random(&f, 3600, 100000, 1);
	compare_check(&f, &statistics);
	leaves = statistics.leaves;
	assert_in_range(leaves, FIRST_WAVE + 10, f.tree->geometry.inner_cells - 20);
	require_ok(tree_vacuum_open(f.tree, &vacuum_walk));
	vacuum_walk->depth = FIRST_WAVE;
	require_ok(tree_vacuum_next(vacuum_walk, is_new, NULL, &counts));
	assert_int_equal(counts.leaves, FIRST_WAVE);
	for (uint64_t i = 0; i < 400; i++)
		insert(&f, 95000 + i * 10, FIRST_NEW_TID + i);
	while ((status = tree_vacuum_next(vacuum_walk, is_new, NULL, &counts)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	tree_vacuum_close(vacuum_walk);
	assert_int_equal(counts.removed, 400);
	for (uint64_t i = 0; i < 400; i++)
	{
		KeyEntry gone = entry_of(95000 + i * 10, FIRST_NEW_TID + i);

		assert_true(key_model_remove(&f.model, &gone));
	}
	compare_check(&f, &statistics);
	assert_true(statistics.leaves > leaves + 4);
	assert_int_equal(counts.leaves, statistics.leaves);
	checked_tree_close(&f);
}

/* A walk in which chains are lost, from the n-th operation on; what was lost comes late, or never. Returns whether there were so many. */
static bool
walk_losing(FabricFaultPlan *plan)
{
	CheckedTree f;
	TreeVacuumCounts counts;
	TreeStatistics statistics;
	uint64_t kept = 0;
	bool lost;

	checked_tree_open(&f, KEYSPACE_16);
	insert_random(&f, 1000, 100000, 1);
	assert_int_equal(fabric_fault_set(client.endpoints[0], plan), FABRIC_OK);
	assert_int_equal(walk(f.tree, is_dead, NULL, &counts), TREE_END);
	lost = fabric_fault_operations(client.endpoints[0]) >= plan->fail_operation + plan->late_operation;
	fabric_fault_deliver(client.endpoints[0]);
	assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
	for (uint64_t i = 0; i < f.model.count; i++)
		if (!is_dead(NULL, f.model.entries[i].block, f.model.entries[i].offset))
			f.model.entries[kept++] = f.model.entries[i];
	assert_true(counts.removed <= f.model.count - kept);
	assert_int_equal(counts.entries, kept);
	f.model.count = kept;
	compare_check(&f, &statistics);
	checked_tree_close(&f);
	return lost;
}

static void
vacuum_loses_chains(void **state)
{
	FabricFaultPlan plan = {.seed = 1};

	for (uint64_t n = 1;; n += 5)
	{
		plan.fail_operation = n;
		plan.late_operation = 0;
		if (!walk_losing(&plan))
			break;
		plan.fail_operation = 0;
		plan.late_operation = n;
		(void) walk_losing(&plan);
	}
}

int
main(int argc, char **argv)
{
	static TreeTechniques techniques;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vacuum_spaces),
		cmocka_unit_test(vacuum_empties),
		cmocka_unit_test(vacuum_gives_blocks_back),
		cmocka_unit_test(vacuum_meets_changes),
		cmocka_unit_test(vacuum_spares_revived),
		cmocka_unit_test(vacuum_meets_root_split),
		cmocka_unit_test(vacuum_is_outrun),
		cmocka_unit_test(vacuum_is_cheap),
		cmocka_unit_test(vacuum_spares_one_of_many),
		cmocka_unit_test(vacuum_meets_new_leaves),
		cmocka_unit_test(vacuum_loses_chains),
	};

	cached = argc > 1 && strcmp(argv[1], "--cached") == 0;
	by_waves = cached || (argc > 1 && strcmp(argv[1], "--network") == 0);
	if (cached)
		test_leaf_cache = (TestLeafCache){.bytes = 4u << 20, .admission_percent = 100};
	if (by_waves)
	{
		techniques = tree_techniques;
		techniques.exclusive = true;
		test_techniques = &techniques;
		test_use_network();
	}
	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
