/*
 * test_techniques.c
 *		Round trips and bytes of inserts in every set of techniques (doc/internals/techniques.md), exactly; and what several processes
 *		on one leaf do without the hierarchy, and with each bound of handovers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "internal.h"
#include "support/cost.h"
#include "support/keyspace.h"
#include "support/techniques.h"
#include "support/tree_fixture.h"
#include "tree/descent/descent.h"

/* read_apart, writes_apart, flat_locks, whole_leaves, exclusive: a bit each. */
#define SETS 32u
/* All but the last. */
#define FG_PLUS (SETS / 2 - 1)

static const Techniques ours = {.chosen = {.handovers = HANDOVER_MAX}};

static Techniques
set_of(uint32_t number)
{
	Techniques set = ours;

	set.left_out.read_apart = (number & 1) != 0;
	set.left_out.writes_apart = (number & 2) != 0;
	set.left_out.flat_locks = (number & 4) != 0;
	set.left_out.whole_leaves = (number & 8) != 0;
	set.chosen.exclusive = (number & 16) != 0;
	return set;
}

/* From here on with these techniques only. */
static void
begin(const Techniques *set)
{
	techniques_print(set);
	test_techniques = &set->chosen;
	baseline = set->left_out;
	fixture_start(NULL);
	test_techniques = NULL;
}

/* What one WRITE of a leaf comes to, with its redo image. */
typedef struct LeafWrite
{
	uint64_t operations;
	uint64_t bytes;
} LeafWrite;

static LeafWrite
leaf_write(const NodeGeometry *g)
{
	if (fabric_capabilities(client.endpoints[0])->one_packet >= g->leaf_bytes)
		return (LeafWrite){1, g->leaf_bytes};
	return (LeafWrite){REDO_OPS + 1, 2 * g->leaf_bytes + sizeof(RedoHeader)};
}

/* Swaps of lock words for each lock: none where the memory node need not ask the word when it replays. */
static uint64_t
swaps(const Techniques *set)
{
	const FabricCapabilities *capabilities = fabric_capabilities(client.endpoints[0]);
	bool sees = (capabilities->flags & FABRIC_CAP_OPERATION_ATOMIC) != 0;

	return set->chosen.exclusive && (sees || capabilities->one_packet >= NODE_MAX_BYTES) ? 0 : 2;
}

/* Round trips until a node is locked and read, and until it is written, in so many WRITEs, and given back. */
static uint64_t
trips_to_read(const Techniques *set)
{
	return !set->left_out.read_apart || swaps(set) == 0 ? 1 : 2;
}

static uint64_t
trips_to_write(const Techniques *set, uint64_t writes)
{
	return set->left_out.writes_apart ? writes + (swaps(set) == 0 ? 0 : 1) : 1;
}

/* An insert that splits nothing. */
static void
judge_plain(const Techniques *set, const NodeGeometry *g, const Cost *cost)
{
	LeafWrite write = leaf_write(g);

	if (!set->left_out.whole_leaves)
		write = (LeafWrite){1, g->cell_bytes};
	assert_int_equal(cost->fabric.reads, 1);
	assert_int_equal(cost->fabric.read_bytes, g->leaf_bytes);
	assert_int_equal(cost->fabric.atomics, swaps(set));
	assert_int_equal(cost->fabric.writes, write.operations);
	assert_int_equal(cost->fabric.written_bytes, swaps(set) * 8 + write.bytes);
	assert_int_equal(cost->fabric.round_trips, trips_to_read(set) + trips_to_write(set, write.operations));
}

/* Any insert: its locks, its WRITEs, and a swap for each chunk of nodes that was taken. */
static void
judge_locks(const Techniques *set, const Cost *cost)
{
	uint64_t locks = cost->tree.lock_acquisitions;
	uint64_t chunks = cost->fabric.atomics - swaps(set) * locks;

	assert_int_equal(cost->tree.lock_retries + cost->tree.handovers, 0);
	assert_int_equal(locks, 1 + cost->tree.parent_posts);
	assert_int_equal(cost->fabric.reads, locks);
	/* Without combination each WRITE is a round trip, and each unlock. */
	assert_int_equal(
		cost->fabric.round_trips,
		locks * trips_to_read(set) + chunks +
			(set->left_out.writes_apart ? cost->fabric.writes + locks * trips_to_write(set, 0) : locks));
}

/* Returns the number of splits. */
static uint32_t
count_inserts(const Techniques *set, const TreeFormat *format)
{
	TreeRecord record;
	Tree *tree = new_tree(format, &record);
	uint32_t plain = 0, splits = 0;
	WalkResult result;

	for (uint32_t i = 0; i < 3000; i++)
	{
		TreeKey key = number_key(scramble(i), i);
		Cost cost;

		cost_begin(&client, &cost);
		must_insert(tree, &key, false);
		cost_end(&client, &cost);
		if (tree->root_is_leaf || cost.tree.root_splits != 0)
			continue;
		judge_locks(set, &cost);
		splits += cost.tree.leaf_splits != 0;
		if (cost.tree.leaf_splits != 0 || cost.fabric.atomics != swaps(set) || cost.tree.stamp_writes != 0)
			continue;
		judge_plain(set, &tree->geometry, &cost);
		plain++;
	}
	assert_true(plain > 2500 && splits > 40);
	verify_tids(tree, 3000, &result);
	walk_free(&result);
	tree_close(tree);
	return splits;
}

/* A leaf is split when it is full, whatever is written of it before. */
static void
test_counts(void **state)
{
	uint32_t splits = 0;

	for (uint32_t number = 0; number < SETS; number++)
	{
		Techniques set = set_of(number);

		if (set.chosen.exclusive && set.left_out.flat_locks)
			continue;
		begin(&set);
		if (number == 0)
			splits = count_inserts(&set, &narrow);
		else
			assert_int_equal(count_inserts(&set, &narrow), splits);
		if (number == 0 || number == FG_PLUS)
			(void) count_inserts(&set, &middle);
		fixture_stop(NULL);
	}
}

/* The paper's counts, where a leaf is one packet: of FG+ 4 and 1 KB, of Sherman's 3 and an entry, and ours. */
static void
test_baseline(void **state)
{
	Techniques fg = {.left_out = baseline_fg};
	Techniques combined = fg, entries = fg;
	const struct
	{
		const Techniques *set;
		uint64_t round_trips;
		uint64_t leaf_writes; /* a whole leaf goes over, else an entry */
	} steps[] = {{&fg, 4, 1}, {&combined, 3, 1}, {&entries, 3, 0}, {&ours, 2, 0}};

	combined.left_out.writes_apart = entries.left_out.writes_apart = false;
	entries.left_out.whole_leaves = false;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
	{
		TreeRecord record;
		TreeKey key = number_key(1, 1);
		LeafWrite write;
		Cost cost;
		Tree *tree;

		begin(steps[i].set);
		tree = new_tree(&narrow, &record);
		must_insert(tree, &key, false);
		write = leaf_write(&tree->geometry);
		key = number_key(2, 2);
		cost_begin(&client, &cost);
		must_insert(tree, &key, false);
		cost_end(&client, &cost);
		/* What a leaf's redo image adds is no part of the paper's. */
		assert_int_equal(cost.fabric.round_trips - (i == 0 ? write.operations - 1 : 0), steps[i].round_trips);
		assert_int_equal(cost.fabric.written_bytes, 2 * 8 + (steps[i].leaf_writes != 0 ? write.bytes : 16));
		tree_close(tree);
		fixture_stop(NULL);
	}
}

/* ---- several processes on one leaf ---- */

#define CROWD 4
#define CROWD_OPERATIONS (400 / TEST_SLOWNESS)
#define CROWD_KEYS 30
#define CROWD_BARRIER 1000 /* word of the scratch memory */

static void
crowd_body(int number, void *argument)
{
	const TreeRecord *record = argument;
	TreeCounters before, after;
	TestClient mine;
	Tree *tree;

	test_client_open(&mine, &instance, (uint32_t) number + 1);
	tree = open_tree(&mine, record);
	tree->root_is_leaf = true;
	/* Nodes taken ahead are no part of what is counted. */
	if (reserve_fill(tree, 0, 1) != TREE_OK)
		_exit(2);
	test_meet(&instance, CROWD_BARRIER, CROWD);
	tree_client_counters(mine.tree, &before);
	for (uint32_t i = 0; i < CROWD_OPERATIONS; i++)
	{
		uint32_t tid = (i * 7 + (uint32_t) number) % CROWD_KEYS;
		TreeKey key = number_key(tid, tid);
		bool hit;

		if (tree_insert(tree, &key, &wal, &hit) != TREE_OK || !hit)
			_exit(3);
	}
	tree_client_counters(mine.tree, &after);
	for (size_t i = 0; i < sizeof(TreeCounters) / 8; i++)
		__atomic_fetch_add(&instance.scratch[i], ((uint64_t *) &after)[i] - ((uint64_t *) &before)[i],
		                   __ATOMIC_RELAXED);
	tree_close(tree);
	_exit(test_client_close(&mine) == TREE_OK ? 0 : 4);
}

static void
crowd(const Techniques *set)
{
	const uint64_t operations = CROWD * (uint64_t) CROWD_OPERATIONS;
	bool flat = set->left_out.flat_locks;
	TreeRecord record;
	TreeCounters sum;
	WalkResult result;
	Tree *tree;

	begin(set);
	tree = new_tree(&narrow, &record);
	for (uint32_t tid = 0; tid < CROWD_KEYS; tid++)
	{
		TreeKey key = number_key(tid, tid);

		must_insert(tree, &key, false);
	}
	assert_int_equal(test_processes(CROWD, crowd_body, &record), 0);
	memcpy(&sum, instance.scratch, sizeof(sum));
	printf("    %llu won, %llu lost, %llu waits, %llu handovers, %llu round trips\n",
	       (unsigned long long) sum.lock_acquisitions, (unsigned long long) sum.lock_retries,
	       (unsigned long long) sum.lock_waits, (unsigned long long) sum.handovers,
	       (unsigned long long) sum.round_trips);
	assert_int_equal(sum.insert_hits, operations);
	assert_int_equal(sum.lock_acquisitions + sum.handovers, operations);
	assert_true(sum.handovers <= sum.lock_acquisitions * (flat ? 0 : set->chosen.handovers));
	/* In the hierarchy nobody of the instance swaps a word that another one has. */
	assert_int_equal(flat ? sum.lock_waits : sum.lock_retries, 0);
	/* The READ of a lock that was lost is not posted, where it is by itself: the leaf is the root. */
	if (set->left_out.read_apart)
		assert_true(sum.read_bytes <= (operations + sum.torn_reads) * NODE_MAX_BYTES);
	verify_tids(tree, CROWD_KEYS, &result);
	walk_free(&result);
	tree_close(tree);
	fixture_stop(NULL);
}

static void
test_crowds(void **state)
{
	Techniques set = {.left_out = baseline_fg};

	crowd(&set);
	set.left_out.back_off = BASELINE_BACK_OFF_SLEEP;
	crowd(&set);
	set = ours;
	for (set.chosen.handovers = 0; set.chosen.handovers <= 2; set.chosen.handovers++)
		crowd(&set);
	set.left_out.read_apart = set.left_out.writes_apart = true;
	crowd(&set);
	set.chosen.exclusive = true;
	crowd(&set);
}

/* What a merge asks, of a tree that is the instance's alone: a node that another client has locked is not free. */
static void
test_exclusive(void **state)
{
	Techniques set = ours;
	uint64_t image[NODE_MAX_BYTES / 8];
	TreeRecord record;
	TestClient second;
	LockHandle lock;
	Tree *mine, *theirs;
	bool free = false;

	set.chosen.exclusive = true;
	begin(&set);
	mine = new_tree(&narrow, &record);
	test_client_open(&second, &instance, 1);
	theirs = open_tree(&second, &record);
	assert_int_equal(lock_is_free(mine, record.root, &free), TREE_OK);
	assert_true(free);
	assert_int_equal(lock_and_read(theirs, record.root, NODE_MAX_BYTES, image, &lock), TREE_OK);
	assert_int_equal(lock_is_free(mine, record.root, &free), TREE_OK);
	assert_false(free);
	assert_int_equal(lock_release(theirs, &lock, record.root, NULL, 0), TREE_OK);
	assert_int_equal(lock_is_free(mine, record.root, &free), TREE_OK);
	assert_true(free);
	tree_close(theirs);
	assert_int_equal(test_client_close(&second), TREE_OK);
	tree_close(mine);
	fixture_stop(NULL);
}

/* ---- back-off ---- */

static void
count_swaps(uint32_t count, bool lost)
{
	for (uint32_t i = 0; i < count; i++)
		back_off_count(client.tree, lost);
}

/* The limit doubles with each 32 swaps that were mostly lost, ten times, and falls again where few are. */
static void
test_limit(void **state)
{
	begin(&ours);
	count_swaps(32, false);
	assert_int_equal(client.tree->back_off.doublings, 0);
	count_swaps(3 * 32, true);
	assert_int_equal(client.tree->back_off.doublings, 3);
	count_swaps(22, false);
	count_swaps(10, true);
	assert_int_equal(client.tree->back_off.doublings, 3);
	count_swaps(32, false);
	assert_int_equal(client.tree->back_off.doublings, 2);
	count_swaps(20 * 32, true);
	assert_int_equal(client.tree->back_off.doublings, 10);
	count_swaps(20 * 32, false);
	assert_int_equal(client.tree->back_off.doublings, 0);
	fixture_stop(NULL);
}

/* Sleeps of a wait behind so many lost swaps. */
static uint32_t
sleeps_of(int attempt)
{
	const TestSlot *slot = &instance.environment->slots[0];
	uint32_t before = slot->sleeps;

	back_off_wait(client.tree, attempt);
	return slot->sleeps - before;
}

/* Whoever has waited long sleeps, and so does who is to wait for a millisecond or more. */
static void
test_sleep(void **state)
{
	Techniques set = ours;

	begin(&set);
	assert_int_equal(sleeps_of(1), 0);
	assert_int_equal(sleeps_of(256), 0);
	assert_int_equal(sleeps_of(257), 1);
	count_swaps(8 * 32, true);
	assert_int_equal(sleeps_of(8), 0);
	count_swaps(32, true);
	assert_int_equal(sleeps_of(10), 1);
	fixture_stop(NULL);

	set.left_out.back_off = BASELINE_BACK_OFF_SLEEP;
	begin(&set);
	assert_int_equal(sleeps_of(6), 0);
	assert_int_equal(sleeps_of(7), 1);
	fixture_stop(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),    cmocka_unit_test(test_baseline), cmocka_unit_test(test_crowds),
		cmocka_unit_test(test_exclusive), cmocka_unit_test(test_limit),    cmocka_unit_test(test_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
