/*
 * test_reader.c
 *		Clients that only read trees which another instance changes (TreeClientOptions.reader): what they find, and that they
 *		change nothing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/tree_fixture.h"
#include "rdma/base/transport.h"
#include "rdma/fault.h"
#include "tree/descent/descent.h"
#include "tree/lock/lock.h"
#include "tree/scan/scan.h"
#include "tree/shared/state.h"

#define ENTRIES 4000u
/* So many leaves a scan passes at least: more than it remembers. */
#define PASSED_LEAVES 10u

static OtherInstance other;
static TestClient *reader = &other.client;

/* A tree of numbers, each its own TID, with every second place free between them; and the reader's handle of it. */
typedef struct Pair
{
	TreeRecord record;
	Tree *mine;
	Tree *theirs;
} Pair;

static void
pair_open(Pair *pair)
{
	pair->mine = new_tree(&narrow, &pair->record);
	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		TreeKey key = number_key(2 * i, i);

		must_insert(pair->mine, &key, false);
	}
	pair->theirs = open_tree(reader, &pair->record);
}

static void
pair_close(Pair *pair)
{
	tree_close(pair->theirs);
	tree_close(pair->mine);
}

/* A lookup of the number: TREE_END if there is none. */
static TreeStatus
look_for(Tree *tree, uint64_t number)
{
	TreeKey key = number_key(number, 0);
	TreeBound low, high;
	const TreeBatch *batch;
	TreeScan *scan;
	TreeStatus status;

	bound_of_key(&tree->geometry, &key, &low);
	high = low;
	low.side = -1;
	high.side = 1;
	require_ok(tree_scan_open(tree, &scan));
	require_ok(tree_scan_seek(scan, TREE_FORWARD, &low, &high));
	status = tree_scan_next(scan, &batch);
	tree_scan_close(scan);
	return status;
}

/* Whether it finds an entry. */
static bool
finds(Tree *tree, uint64_t number)
{
	TreeStatus status = look_for(tree, number);

	assert_true(status == TREE_OK || status == TREE_END);
	return status == TREE_OK;
}

/* The TIDs of the middle half. */
static bool
is_of_the_middle(void *argument, uint32_t block, uint16_t offset)
{
	uint32_t tid = block * 100 + offset - 1;

	(void) argument;
	return tid >= ENTRIES / 4 && tid < ENTRIES * 3 / 4;
}

/* A vacuum's walk over the whole tree, which removes what is dead; NULL: nothing is. */
static TreeVacuum *
vacuum_walk(Tree *tree, TreeIsDead is_dead, void *argument, TreeVacuumCounts *counts)
{
	TreeVacuum *walk;
	TreeStatus status;

	require_ok(tree_vacuum_open(tree, &walk));
	while ((status = tree_vacuum_next(walk, is_dead, argument, counts)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	return walk;
}

/* Merges the leaves that the walk has seen empty, and ends the walk; returns how many leaves went. */
static uint64_t
merge_walk_end(Tree *tree, TreeVacuum *walk)
{
	TreeMergeCounts merged = {0};
	TreeMerge *merge;
	TreeStatus status;

	require_ok(tree_merge_open(tree, walk, &merge));
	while ((status = tree_merge_next(merge, &merged)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	tree_merge_close(merge);
	tree_vacuum_close(walk);
	return merged.leaves;
}

/* Marks entries of the first leaf as dead, `most` of them; returns how many. */
static int
mark_first_leaf(Tree *tree, int most)
{
	const TreeBatch *batch;
	TreeDead dead[TREE_BATCH_MAX];
	TreeScan *scan;
	int marked, count;

	require_ok(tree_scan_open(tree, &scan));
	require_ok(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL));
	require_ok(tree_scan_next(scan, &batch));
	count = batch->count < most ? batch->count : most;
	for (int i = 0; i < count; i++)
		dead[i] = (TreeDead){batch->entries[i].block, batch->entries[i].offset, batch->entries[i].cell};
	require_ok(tree_mark_dead(tree, &batch->leaf, dead, count, &wal, &marked));
	tree_scan_close(scan);
	return marked;
}

/* Numbers between those that there are, from one on. */
static void
insert_between(Tree *mine, uint64_t from, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
	{
		TreeKey key = number_key(from + 2 * i, ENTRIES + i);

		must_insert(mine, &key, false);
	}
}

/* ---- merges ---- */

/* What is done between two chains of a merge, by another client of the owner's. */
static struct
{
	Tree *mine;   /* the other client's handle */
	Tree *theirs; /* the reader's */
	bool closed;  /* the barrier was closed once */
	bool busy;
	uint32_t looks;
	uint64_t next; /* number to add */
} between;

static void
add_and_look(void *argument, const char *name, bool before)
{
	(void) argument, (void) name;
	if (client.tree->closed != NULL)
		between.closed = true;
	if (!before || between.busy || !between.closed || client.tree->closed != NULL || client.tree->holding)
		return;
	between.busy = true;
	for (int i = 0; i < 8; i++)
	{
		TreeKey key = number_key(between.next, (uint32_t) between.next);
		bool hit;

		require_ok(tree_insert(between.mine, &key, &wal, &hit));
		assert_true(finds(between.theirs, between.next));
		/* Numbers between those that there were, all over the half that is empty now. */
		between.next = ENTRIES / 2 + (between.next + 2 * 97) % (ENTRIES - 200) + 1;
		between.next |= 1;
		between.looks++;
	}
	between.busy = false;
}

/*
 * From the moment when a merge lets others in again, whatever is added to a range whose leaves are gone is found by a reader that has pointers
 * to them.
 */
static void
test_merged(void **state)
{
	TreeVacuumCounts counts = {0};
	TreeVacuum *walk;
	Pair pair;

	(void) state;
	pair_open(&pair);
	assert_int_equal(test_tree_entries(pair.theirs), ENTRIES);
	walk = vacuum_walk(pair.mine, is_of_the_middle, NULL, &counts);
	assert_int_equal(test_tree_entries(pair.theirs), ENTRIES / 2);
	between.mine = open_tree(&other_client, &pair.record);
	between.theirs = pair.theirs;
	between.closed = between.busy = false;
	between.looks = 0;
	between.next = ENTRIES + 1;
	tree_client_crash_points(client.tree, add_and_look);
	assert_true(merge_walk_end(pair.mine, walk) > 3);
	tree_client_crash_points(client.tree, NULL);
	assert_true(between.looks > 8);
	assert_int_equal(test_tree_entries(pair.theirs), test_tree_entries(pair.mine));
	tree_close(between.mine);
	pair_close(&pair);
}

/* The leaf that a scan remembers of those that it has passed, to notice a circle of links. */
typedef struct Passed
{
	uint32_t first; /* TIDs */
	uint32_t last;
	uint32_t taken; /* entries of all leaves that were passed */
} Passed;

static uint32_t
batch_tid(const TreeBatch *batch, int i)
{
	return batch->entries[i].block * 100 + batch->entries[i].offset - 1u;
}

static bool
is_of_passed(void *argument, uint32_t block, uint16_t offset)
{
	const Passed *passed = argument;
	uint32_t tid = block * 100 + offset - 1u;

	return tid <= passed->first && tid >= passed->last;
}

/* Takes leaves until one is remembered, and nothing is read ahead any more.  Returns the last TID. */
static uint32_t
pass_leaves(TreeScan *scan, Passed *passed)
{
	const TreeBatch *batch;

	passed->taken = 0;
	do
	{
		require_ok(tree_scan_next(scan, &batch));
		passed->taken += (uint32_t) batch->count;
		if (pointer_address(batch->leaf.pointer) != scan->walk.met)
			continue;
		passed->first = batch_tid(batch, 0);
		passed->last = batch_tid(batch, batch->count - 1);
	} while (scan->walk.steps < PASSED_LEAVES || scan->ahead.next < scan->ahead.count);
	return batch_tid(batch, batch->count - 1);
}

/* Takes all that are left; returns how many entries.  *again: the leaf that was there once is among them. */
static uint32_t
take_the_rest(TreeScan *scan, uint64_t once, bool *again)
{
	const TreeBatch *batch;
	uint32_t count = 0;
	TreeStatus status;

	*again = false;
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
	{
		count += (uint32_t) batch->count;
		*again = *again || pointer_address(batch->leaf.pointer) == once;
	}
	assert_int_equal(status, TREE_END);
	return count;
}

/* A leaf that a scan has passed is merged and used again in front of it: it meets the leaf once more, and that is no circle of links. */
static void
test_met_again(void **state)
{
	TreeVacuumCounts counts = {0};
	uint64_t met;
	uint32_t last;
	bool again;
	Passed passed;
	TreeVacuum *walk;
	TreeScan *scan;
	Pair pair;

	(void) state;
	pair_open(&pair);
	require_ok(tree_scan_open(pair.theirs, &scan));
	require_ok(tree_scan_seek(scan, TREE_BACKWARD, NULL, NULL));
	last = pass_leaves(scan, &passed);
	met = scan->walk.met;
	walk = vacuum_walk(pair.mine, is_of_passed, &passed, &counts);
	assert_true(counts.removed > 0);
	assert_int_equal(merge_walk_end(pair.mine, walk), 1);
	/* The leaf in front of the last one is split. */
	insert_between(pair.mine, 2 * last - 121, 60);
	assert_int_equal(passed.taken + take_the_rest(scan, met, &again), ENTRIES + 60);
	assert_true(again);
	tree_scan_close(scan);
	pair_close(&pair);
}

/* ---- marks ---- */

/* What the owner has marked as dead, the reader finds. */
static void
test_marks(void **state)
{
	int marked;
	Pair pair;

	(void) state;
	pair_open(&pair);
	marked = mark_first_leaf(pair.mine, TREE_BATCH_MAX);
	assert_true(marked > 0);
	assert_int_equal(test_tree_entries(pair.mine), ENTRIES - (uint32_t) marked);
	assert_int_equal(test_tree_entries(pair.theirs), ENTRIES);
	pair_close(&pair);
}

/* ---- nothing is changed ---- */

/* Splits that are incomplete stay so: the reader goes right. */
static void
test_writes_nothing(void **state)
{
	TreeCounters before, after;
	Pair pair;

	(void) state;
	pair_open(&pair);
	assert_int_equal(test_tree_entries(pair.theirs), ENTRIES);
	tree_client_counters(reader->tree, &before);
	/* Behind its back the owner splits leaves, and its cached parents do not know of it. */
	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		TreeKey key = number_key(2 * i + 1, ENTRIES + i);

		must_insert(pair.mine, &key, false);
		if (i % 7 == 0)
			assert_true(finds(pair.theirs, 2 * i + 1));
	}
	assert_int_equal(test_tree_entries(pair.theirs), 2 * ENTRIES);
	/* Splits whose separators nobody has posted. */
	assert_true(walk_root_forgets(pair.mine) > 0);
	tree_forget_cached(other.instance.shared);
	assert_int_equal(test_tree_entries(pair.theirs), 2 * ENTRIES);
	for (uint32_t i = 0; i < 2 * ENTRIES; i += 50)
		assert_true(finds(pair.theirs, i));
	tree_client_counters(reader->tree, &after);
	assert_true(after.right_moves > before.right_moves);
	assert_int_equal(after.written_bytes, before.written_bytes);
	assert_int_equal(after.parent_posts, before.parent_posts);
	assert_int_equal(after.lock_acquisitions, before.lock_acquisitions);
	pair_close(&pair);
}

/* The record as the home has it, by one call. */
static void
test_record(void **state)
{
	TreeRecord change = {
		.mutated_epoch = 7, .nonce = 8, .removal_epoch = 7, .removal_lsn = 9, .removal_horizon = 0xfffffff0u};
	TreeRecord record;
	Pair pair;

	(void) state;
	pair_open(&pair);
	change.tree = pair.record.tree;
	change.root = pair.record.root;
	require_ok(tree_record_update(client.tree, &change));
	require_ok(tree_record_at_home(client.tree, pair.record.tree, tree_home(pair.record.root), &record));
	assert_int_equal(record.removal_epoch, 7);
	assert_int_equal(record.removal_lsn, 9);
	assert_int_equal(record.removal_horizon, 0xfffffff0u);
	assert_int_equal(record.nonce, 8);
	/* Two processes, of which the one knows of more WAL and the other of more transactions; these begin again behind 2^32. */
	change.removal_lsn = 8;
	change.removal_horizon = 3;
	require_ok(tree_record_update(client.tree, &change));
	change.removal_lsn = 10;
	change.removal_horizon = 0xfffffff1u;
	require_ok(tree_record_update(client.tree, &change));
	require_ok(tree_record_at_home(client.tree, pair.record.tree, tree_home(pair.record.root), &record));
	assert_int_equal(record.removal_lsn, 10);
	assert_int_equal(record.removal_horizon, 3);
	/* In a new epoch all begins anew. */
	change.removal_epoch = 8;
	change.removal_lsn = 1;
	change.removal_horizon = 2;
	require_ok(tree_record_update(client.tree, &change));
	require_ok(tree_record_at_home(client.tree, pair.record.tree, tree_home(pair.record.root), &record));
	assert_int_equal(record.removal_lsn, 1);
	assert_int_equal(record.removal_horizon, 2);
	assert_int_equal(tree_record_at_home(client.tree, 0, 0, &record), TREE_INVALID);
	assert_int_equal(tree_record_at_home(client.tree, pair.record.tree, TREE_MAX_NODES, &record),
	                 TREE_INVALID);
	require_ok(tree_drop(client.tree, pair.record.tree, tree_home(pair.record.root)));
	assert_int_equal(tree_record_at_home(client.tree, pair.record.tree, 0, &record), TREE_NOT_FOUND);
	pair_close(&pair);
}

/* ---- what leaves say of what is gone ---- */

/* The youngest position of what was removed from the leaves that a lookup of the number reads. */
static TreeWalPosition
removed_at(Tree *theirs, uint64_t number)
{
	TreeSeen seen;

	tree_seen_forget(theirs);
	(void) finds(theirs, number);
	tree_seen(theirs, &seen);
	assert_int_equal(seen.added.epoch, wal.epoch);
	assert_int_equal(seen.added.lsn, wal.lsn);
	return seen.removed;
}

static void
assert_removed_at(Tree *theirs, uint64_t number, uint32_t epoch, uint64_t lsn)
{
	TreeWalPosition removed = removed_at(theirs, number);

	assert_int_equal(removed.epoch, epoch);
	assert_int_equal(removed.lsn, lsn);
}

/* Removes the entries of the middle half: proven up to a position. */
static TreeVacuum *
vacuum_middle(Tree *mine, const TreeWalPosition *proven)
{
	TreeVacuumCounts counts = {0};
	TreeVacuum *walk;

	tree_removal_proven(mine, proven);
	walk = vacuum_walk(mine, is_of_the_middle, NULL, &counts);
	assert_true(counts.removed == ENTRIES / 2);
	return walk;
}

/* A leaf says how far one has to be to miss nothing of it: it, both halves when it is split, and the neighbor that it is merged into. */
static void
test_removed_from_leaves(void **state)
{
	const TreeWalPosition first = {.epoch = 1, .lsn = 5000}, second = {.epoch = 2, .lsn = 100};
	TreeVacuum *walk;
	TreeSeen seen;
	Tree *mine;
	Pair pair;

	(void) state;
	pair_open(&pair);
	assert_removed_at(pair.theirs, ENTRIES, 0, 0);
	walk = vacuum_middle(pair.mine, &first);
	/* Leaves that are read ahead count as well. */
	tree_seen_forget(pair.theirs);
	assert_int_equal(test_tree_entries(pair.theirs), ENTRIES / 2);
	tree_seen(pair.theirs, &seen);
	assert_int_equal(seen.removed.lsn, 5000);
	assert_removed_at(pair.theirs, 10, 0, 0);
	for (uint64_t number = ENTRIES / 2 + 200; number < ENTRIES * 3 / 2 - 200; number += 100)
		assert_removed_at(pair.theirs, number, 1, 5000);
	assert_true(merge_walk_end(pair.mine, walk) > 3);
	for (uint64_t number = ENTRIES / 2 + 200; number < ENTRIES * 3 / 2 - 200; number += 100)
		assert_removed_at(pair.theirs, number, 1, 5000);
	/* Splits by a process that has proven nothing hand it on. */
	mine = open_tree(&other_client, &pair.record);
	insert_between(mine, ENTRIES / 2 + 201, ENTRIES / 2 - 200);
	for (uint64_t number = ENTRIES / 2 + 201; number < ENTRIES * 3 / 2 - 201; number += 100)
		assert_removed_at(pair.theirs, number, 1, 5000);
	assert_removed_at(pair.theirs, 10, 0, 0);
	/* And one that has proven more says so of whatever it writes anew. */
	tree_removal_proven(mine, &second);
	insert_between(mine, 1, 200);
	assert_removed_at(pair.theirs, 101, 2, 100);
	tree_close(mine);
	pair_close(&pair);
}

/* The TIDs of one leaf. */
static bool
is_of_batch(void *argument, uint32_t block, uint16_t offset)
{
	const TreeBatch *batch = argument;

	for (int i = 0; i < batch->count; i++)
		if (batch->entries[i].block == block && batch->entries[i].offset == offset)
			return true;
	return false;
}

/* A leaf goes into a neighbor from which nothing was removed; a process merges that has proven nothing. */
static void
test_merged_by_another(void **state)
{
	const TreeWalPosition proven = {.epoch = 1, .lsn = 5000};
	TreeVacuumCounts counts = {0};
	const TreeBatch *batch;
	TreeBatch leaf;
	TreeScan *scan;
	TreeKey key;
	Tree *mine;
	Pair pair;

	(void) state;
	pair_open(&pair);
	mine = open_tree(&other_client, &pair.record);
	require_ok(tree_scan_open(mine, &scan));
	require_ok(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL));
	for (int i = 0; i < 5; i++)
		require_ok(tree_scan_next(scan, &batch));
	leaf = *batch;
	require_ok(tree_batch_key(scan, batch, batch->count / 2, &key));
	tree_scan_close(scan);
	tree_removal_proven(pair.mine, &proven);
	tree_vacuum_close(vacuum_walk(pair.mine, is_of_batch, &leaf, &counts));
	assert_int_equal(counts.removed, leaf.count);
	assert_int_equal(merge_walk_end(mine, vacuum_walk(mine, NULL, NULL, &counts)), 1);
	/* Its TID is its place among the numbers. */
	assert_removed_at(pair.theirs, 2 * (key.block * 100 + key.offset - 1), 1, 5000);
	assert_removed_at(pair.theirs, ENTRIES, 0, 0);
	tree_close(mine);
	pair_close(&pair);
}

/* Marks that a crash has made void stay so when the leaf is written anew: they do not seem to be proven by what is proven now. */
static void
test_void_marks_stay_void(void **state)
{
	const TreeWalPosition proven = {.epoch = wal.epoch + 1, .lsn = 9000};
	TreeWalLimits limits = {.epoch = wal.epoch + 1, .first = wal.epoch, .count = 1, .limit = {wal.lsn - 1}};
	Pair pair;

	(void) state;
	pair_open(&pair);
	assert_int_equal(mark_first_leaf(pair.mine, 3), 3);
	pair.mine->geometry.ends = &limits;
	tree_removal_proven(pair.mine, &proven);
	/* It is split. */
	insert_between(pair.mine, 1, 60);
	assert_int_equal(test_tree_entries(pair.mine), ENTRIES + 60);
	assert_removed_at(pair.theirs, 0, wal.epoch, wal.lsn);
	pair_close(&pair);
}

/* ---- what was cached ---- */

/* From one call on, nothing that was cached counts. */
static void
test_forgets(void **state)
{
	TreeCounters before, after;
	Pair pair;

	(void) state;
	pair_open(&pair);
	assert_true(finds(pair.theirs, 100));
	tree_client_counters(reader->tree, &before);
	assert_true(finds(pair.theirs, 100));
	tree_client_counters(reader->tree, &after);
	assert_int_equal(after.cache_misses, before.cache_misses);
	tree_forget_cached(other.instance.shared);
	assert_true(finds(pair.theirs, 100));
	tree_client_counters(reader->tree, &after);
	assert_true(after.cache_misses > before.cache_misses);
	pair_close(&pair);
}

/* ---- torn READs ---- */

/* Leaves that a scan reads ahead together. */
#define FEW_ENTRIES 150u
#define TORN_ROUNDS 300u

/* Between two lines, or words, of the reader's READs something happens once. */
static struct
{
	FabricTransport transport;
	const FabricTransport *below;
	uint32_t countdown; /* READs until then; 0: never */
	Tree *mine;
	uint64_t number; /* which is added then, by a row of this position; or which the owner looks for */
	TreeWalPosition position;
	bool looks;
} torn;

static FabricStatus
execute_and_change(FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	FabricStatus status = torn.below->execute(endpoint, ops, count);
	TreeKey key = number_key(torn.number, (uint32_t) torn.number);
	bool hit;

	if (torn.countdown == 0 || --torn.countdown > 0)
		return status;
	if (torn.looks)
		assert_true(finds(torn.mine, torn.number));
	else
		require_ok(tree_insert(torn.mine, &key, &torn.position, &hit));
	return status;
}

/* From now on READs of the reader are torn, between lines or between words; then the owner, whose are as well, writes sums. */
static void
tearing_begin(bool words)
{
	const FabricFaultPlan plan = {.seed = 3, .tear_reads = true, .tear_words = words};
	FabricEndpoint *endpoint = reader->endpoints[0];

	torn.below = endpoint->transport;
	torn.transport = *torn.below;
	torn.transport.execute = execute_and_change;
	torn.countdown = 0;
	torn.looks = false;
	endpoint->transport = &torn.transport;
	assert_int_equal(fabric_fault_set(endpoint, &plan), FABRIC_OK);
	if (words)
		assert_int_equal(fabric_fault_set(client.endpoints[0], &plan), FABRIC_OK);
}

static void
tearing_end(void)
{
	FabricEndpoint *endpoint = reader->endpoints[0];

	assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
	assert_int_equal(fabric_fault_set(endpoint, NULL), FABRIC_OK);
	endpoint->transport = torn.below;
}

/* A tree with few entries, and the reader's handle of it. */
static void
few_open(Pair *pair)
{
	pair->mine = new_tree(&narrow, &pair->record);
	for (uint32_t i = 0; i < FEW_ENTRIES; i++)
	{
		TreeKey key = number_key(2 * TORN_ROUNDS * i, 2 * TORN_ROUNDS * i);

		must_insert(pair->mine, &key, false);
	}
	pair->theirs = open_tree(reader, &pair->record);
	torn.mine = pair->mine;
}

/* The number of this round is added somewhere in the next READs of so many leaves, by a row that is younger than all before. */
static void
add_between(const Pair *pair, uint32_t round, uint32_t leaves, uint32_t piece)
{
	torn.number = 2 * TORN_ROUNDS * (uint64_t) (round * 7 % FEW_ENTRIES) + round + 1;
	torn.position = (TreeWalPosition){.epoch = wal.epoch, .lsn = wal.lsn + ((uint64_t) (round + 1) << 22)};
	torn.countdown = 1 + round * 5 % (leaves * pair->theirs->geometry.leaf_bytes / piece);
	tree_seen_forget(pair->theirs);
}

/* Who has got the entry has got its row's position, too. */
static void
judge_seen(const Pair *pair, bool found, uint32_t *counts)
{
	TreeSeen seen;

	torn.countdown = 0;
	tree_seen(pair->theirs, &seen);
	assert_true(!found || (seen.added.epoch == wal.epoch && seen.added.lsn >= torn.position.lsn));
	counts[found ? 1 : 0]++;
}

/*
 * Of a leaf that others change just then the reader never gets an entry and a position of the WAL that is older than its row's: not by
 * lookups, and not by leaves that it reads ahead.
 */
static void
expect_positions(bool words)
{
	const uint32_t piece = words ? 8 : LINE_BYTES;
	uint32_t alone[2] = {0, 0}, ahead[2] = {0, 0};
	Pair pair;

	tearing_begin(words);
	few_open(&pair);
	for (uint32_t round = 0; round < TORN_ROUNDS; round += 2)
	{
		uint64_t before;

		add_between(&pair, round, 1, piece);
		judge_seen(&pair, finds(pair.theirs, torn.number), alone);
		before = test_tree_entries(pair.mine);
		add_between(&pair, round + 1, 8, piece);
		judge_seen(&pair, test_tree_entries(pair.theirs) > before, ahead);
	}
	print_message("alone %u of %u, ahead %u of %u\n", alone[1], alone[0] + alone[1], ahead[1],
	              ahead[0] + ahead[1]);
	for (int i = 0; i < 2; i++)
		assert_true(alone[i] > 10 && ahead[i] > 10);
	assert_int_equal(test_tree_entries(pair.theirs), test_tree_entries(pair.mine));
	pair_close(&pair);
	tearing_end();
}

static void
test_positions_of_torn_lines(void **state)
{
	(void) state;
	expect_positions(false);
}

static void
test_positions_of_torn_words(void **state)
{
	(void) state;
	expect_positions(true);
}

/* Writes the word of a leaf's sum, as a writer that died behind it leaves it. */
static void
spoil_sum(Tree *tree, uint64_t number)
{
	TreeKey key = number_key(number, (uint32_t) number);
	uint64_t leaf[NODE_MAX_BYTES / 8];
	TreeBound bound;
	Path path;
	FabricOp op;

	bound_of_key(&tree->geometry, &key, &bound);
	require_ok(search_descend(tree, &bound, 0, true, &path));
	require_ok(access_read_node(tree, path.pointer, 0, leaf));
	leaf[HEADER_SUM]++;
	op = node_op(path.pointer, 8, leaf + HEADER_SUM);
	op.opcode = FABRIC_WRITE;
	op.offset += HEADER_SUM * 8;
	require_ok(access_execute(tree, pointer_memory_node(path.pointer), &op, 1));
}

/* The reader waits for the leaf for as long as it may, and no error says that the tree is damaged; when the owner has read it it goes on. */
static void
expect_wait_for_owner(Pair *pair)
{
	uint32_t patience = reader->tree->options.operation_timeout_ms;

	reader->tree->options.operation_timeout_ms = 30;
	assert_int_equal(look_for(pair->theirs, 0), TREE_TIMED_OUT);
	reader->tree->options.operation_timeout_ms = patience;
	torn.looks = true;
	torn.number = 0;
	/* More READs than there are tries, were no time left. */
	torn.countdown = 2 * DESCENT_ATTEMPTS * READ_ATTEMPTS * pair->theirs->geometry.leaf_bytes / 8;
	assert_true(finds(pair->theirs, 0));
	assert_int_equal(torn.countdown, 0);
	assert_int_equal(test_tree_entries(pair->mine), FEW_ENTRIES);
	assert_int_equal(test_tree_entries(pair->theirs), FEW_ENTRIES);
}

/* A leaf's sum is not its own, as its writer has died; or leaves have none, as they are of a time when nothing was torn. */
static void
test_sums_that_do_not_fit(void **state)
{
	for (int missing = 0; missing < 2; missing++)
	{
		Pair pair;

		(void) state;
		if (!missing)
			tearing_begin(true);
		few_open(&pair);
		if (!missing)
			spoil_sum(pair.mine, 0);
		else
		{
			pair_close(&pair);
			tearing_begin(true);
			pair.mine = open_tree(&client, &pair.record);
			pair.theirs = open_tree(reader, &pair.record);
			torn.mine = pair.mine;
		}
		expect_wait_for_owner(&pair);
		pair_close(&pair);
		tearing_end();
	}
}

static int
start(void **state)
{
	test_techniques = &tree_owner_techniques;
	fixture_options.two_clients = true;
	if (fixture_start(state) != 0)
		return -1;
	other_start(&other);
	reader->tree->options.reader = true;
	return 0;
}

static int
stop(void **state)
{
	other_stop(&other);
	return fixture_stop(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_met_again),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_writes_nothing),
		cmocka_unit_test(test_record),
		cmocka_unit_test(test_removed_from_leaves),
		cmocka_unit_test(test_merged_by_another),
		cmocka_unit_test(test_void_marks_stay_void),
		cmocka_unit_test(test_forgets),
		cmocka_unit_test(test_positions_of_torn_lines),
		cmocka_unit_test(test_positions_of_torn_words),
		cmocka_unit_test(test_sums_that_do_not_fit),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
