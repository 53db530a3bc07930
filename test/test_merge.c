/*
 * test_merge.c
 *		Emptied leaves that leave the tree and are used again: rounds of filling and emptying, scans that stand
 *		where a leaf goes, by one client and by several, calls in progress, old copies, and who is told of what.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/merge_fixture.h"
#include "tree/lock/lock.h"
#include "tree/shared/cache.h"

/* Entries of one round. */
#define ENTRIES 1500

/* The smallest extent. */
#define EXTENT_LEAST_BYTES 65536u

/*
 * Filled, emptied and filled ten times, with ascending numbers and with the same: nodes and extents are those
 * of the first time.
 */
static void
ten_rounds(void **state)
{
	for (int kind = 0; kind < KEYSPACES; kind++)
		for (int moving = 0; moving < 2; moving++)
		{
			CheckedTree f;
			TreeStatistics first = {0}, now;

			checked_tree_open(&f, (KeySpaceKind) kind);
			for (uint64_t round = 0; round < 10; round++)
			{
				uint64_t from = moving ? round * ENTRIES : 0;
				TreeMergeCounts counts;

				fill(&f, from, from + ENTRIES);
				compare_check(&f, &now);
				if (round == 0)
					first = now;
				if (round == 9)
					break;
				empty(&f, from, from + ENTRIES);
				counts = merge_with(f.tree);
				assert_true(counts.leaves > 10);
				assert_int_equal(counts.missed, 0);
				compare_check(&f, &now);
				assert_true(now.leaves <= 2);
				assert_true(tree_freed_bytes(f.tree) >= counts.bytes);
			}
			assert_true(now.node_bytes * 5 <= first.node_bytes * 6);
			/* They come in extents, of which the least may be begun by the last few bytes. */
			assert_true(now.extent_bytes * 5 <= first.extent_bytes * 6 + 5 * EXTENT_LEAST_BYTES);
			compare_everything(&f, ENTRIES, 10);
			checked_tree_close(&f);
		}
}

/* Reads `batches` batches of a whole scan; *place is behind them. */
static void
scan_begin(CheckedTree *f, TreeDirection direction, int batches, int64_t *place)
{
	const TreeBatch *batch;

	require_ok(tree_scan_seek(f->scan, direction, NULL, NULL));
	for (int i = 0; i < batches; i++)
	{
		require_ok(tree_scan_next(f->scan, &batch));
		compare_batch(f, batch, direction, place);
	}
}

/* The rest of it: the model's entries from `place` on, and none twice. */
static void
scan_rest(CheckedTree *f, TreeDirection direction, int64_t place)
{
	const TreeBatch *batch;
	TreeStatus status;

	while ((status = tree_scan_next(f->scan, &batch)) == TREE_OK)
		compare_batch(f, batch, direction, &place);
	assert_int_equal(status, TREE_END);
	assert_int_equal(place, direction == TREE_FORWARD ? (int64_t) f->model.count : -1);
}

/*
 * The leaves on both sides of the place where a scan rests are emptied and merged, so that there is no fence
 * any more, and what was read ahead is gone; then both sides are filled again.  The scan meets what lies on
 * its side.
 */
static void
scans_rest(void **state)
{
	for (int kind = 0; kind < KEYSPACES; kind++)
		for (int direction = 0; direction < 2; direction++)
			for (int batches = 1; batches < 12; batches += 3)
			{
				CheckedTree f;
				TreeDirection way = direction == 0 ? TREE_FORWARD : TREE_BACKWARD;
				int64_t place = 0, rank;
				uint64_t number, kept;

				checked_tree_open(&f, (KeySpaceKind) kind);
				fill(&f, 0, ENTRIES);
				place = way == TREE_FORWARD ? 0 : ENTRIES - 1;
				scan_begin(&f, way, batches, &place);
				/* the entry returned last, and what lies beyond */
				number = way == TREE_FORWARD ? (uint64_t) place - 1 : (uint64_t) place + 1;
				kept = number;
				empty(&f, kept >= 200 ? kept - 200 : 0, kept);
				empty(&f, kept + 1, kept + 200);
				assert_true(merge_with(f.tree).leaves > 0);
				/* On its far side the scan must meet what is there; behind it, it must not. */
				for (uint64_t i = 0; i < 100; i++)
				{
					if (kept + 5 + i < ENTRIES)
						insert(&f, kept + 5 + i, kept + 5 + i);
					if (kept >= 5 + i)
						insert(&f, kept - 5 - i, kept - 5 - i);
				}
				for (rank = 0; rank < (int64_t) f.model.count && f.model.entries[rank].number != kept; rank++)
					;
				assert_true(rank < (int64_t) f.model.count);
				scan_rest(&f, way, way == TREE_FORWARD ? rank + 1 : rank - 1);
				checked_tree_close(&f);
			}
}

/* A client of its own beside the fixture's. */
typedef struct Other
{
	TestClient client;
	Tree *tree;
	TreeScan *scan;
	CheckedTree *f;
	uint64_t missed;
} Other;

static void
other_open(Other *other, CheckedTree *f)
{
	memset(other, 0, sizeof(*other));
	other->f = f;
	test_client_open(&other->client, &instance, 1);
	require_ok(tree_open(other->client.tree, f->record.tree, f->record.root, &f->space->format,
	                     keyspace_compare, (void *) (uintptr_t) f->space, &other->tree));
	require_ok(tree_scan_open(other->tree, &other->scan));
}

static void
other_close(Other *other)
{
	tree_scan_close(other->scan);
	tree_close(other->tree);
	test_client_close(&other->client);
}

/* A tree of ENTRIES entries with two clients. */
static void
filled_open(CheckedTree *f, Other *other, KeySpaceKind kind)
{
	checked_tree_open(f, kind);
	other_open(other, f);
	fill(f, 0, ENTRIES);
}

static void
filled_close(CheckedTree *f, Other *other)
{
	other_close(other);
	checked_tree_close(f);
}

/* Takes the next leaves for this scan, behind what was taken last. */
static void
take_on(TreeScan *scan, TreeDirection direction, TreeScanPosition *position)
{
	require_ok(tree_scan_resume(scan, direction, NULL, position));
	require_ok(tree_scan_take(scan, position));
}

/* What two who scan together do; f->scan has taken the first leaves, up to *position. */
typedef void (*TakersTest)(CheckedTree *f, Other *other, TreeDirection direction, TreeScanPosition *position);

/* Runs it on ENTRIES entries of every kind, in both directions. */
static void
with_takers(TakersTest test)
{
	for (int kind = 0; kind < KEYSPACES; kind++)
		for (int direction = 0; direction < 2; direction++)
		{
			CheckedTree f;
			Other other;
			TreeDirection way = direction == 0 ? TREE_FORWARD : TREE_BACKWARD;
			TreeScanPosition position;

			filled_open(&f, &other, (KeySpaceKind) kind);
			require_ok(tree_scan_seek(f.scan, way, NULL, NULL));
			require_ok(tree_scan_take(f.scan, &position));
			test(&f, &other, way, &position);
			filled_close(&f, &other);
		}
}

static uint64_t
batch_count(TreeScan *scan)
{
	const TreeBatch *batch;
	uint64_t count = 0;
	TreeStatus status;

	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
		count += (uint64_t) batch->count;
	assert_int_equal(status, TREE_END);
	return count;
}

/* A scan by two: what one has handed on is a fence, which is gone when the other one goes on there. */
static void
takers_meet_with(CheckedTree *f, Other *other, TreeDirection direction, TreeScanPosition *position)
{
	uint64_t met;

	(void) batch_count(f->scan);
	for (int i = 0; i < 3 && !position->ended; i++)
	{
		take_on(other->scan, direction, position);
		(void) batch_count(other->scan);
	}
	/* Around the position nothing is left but the entries at both ends. */
	empty(f, 20, ENTRIES - 20);
	assert_true(merge_with(f->tree).leaves > 10);
	take_on(f->scan, direction, position);
	met = batch_count(f->scan);
	while (!position->ended)
	{
		take_on(other->scan, direction, position);
		met += batch_count(other->scan);
	}
	assert_int_equal(met, 20);
}

static void
takers_meet(void **state)
{
	with_takers(takers_meet_with);
}

/* Counts, by number, what a scan returns until its end, or one batch of it. */
static void
meet(const CheckedTree *f, TreeScan *scan, bool all, uint8_t *met)
{
	const TreeBatch *batch;
	TreeStatus status;

	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
	{
		for (int i = 0; i < batch->count; i++)
		{
			TreeKey key;

			require_ok(tree_batch_key(scan, batch, i, &key));
			met[keyspace_number(f->space, &key)]++;
		}
		if (!all)
			return;
	}
	assert_int_equal(status, TREE_END);
}

/*
 * One of two has taken several leaves, and rests in the first of them while all are merged into one that goes
 * on behind what was taken.  It ends where the other one goes on: nothing is met twice.
 */
static void
taken_leaves_go_with(CheckedTree *f, Other *other, TreeDirection direction, TreeScanPosition *position)
{
	uint8_t met[ENTRIES] = {0};

	for (int i = 0; i < 3; i++)
	{
		meet(f, f->scan, true, met);
		take_on(f->scan, direction, position);
	}
	meet(f, f->scan, false, met);
	empty(f, 20, ENTRIES - 20);
	assert_true(merge_with(f->tree).leaves > 10);
	/* Into one leaf, as it is. */
	for (uint64_t i = 40; i < ENTRIES - 40; i += 100)
		insert(f, i, i);
	meet(f, f->scan, true, met);
	while (!position->ended)
	{
		take_on(other->scan, direction, position);
		meet(f, other->scan, true, met);
	}
	for (uint64_t i = 0; i < ENTRIES; i++)
		assert_true(met[i] <= 1);
	for (uint64_t i = 0; i < 20; i++)
		assert_true(met[i] == 1 && met[ENTRIES - 1 - i] == 1);
}

static void
taken_leaves_go(void **state)
{
	with_takers(taken_leaves_go_with);
}

/* In the middle of one client's call the other one wants to merge: it does not get the tree alone. */
static bool
merge_meanwhile(void *argument, uint32_t block, uint16_t offset)
{
	Other *other = argument;

	if (other->missed == 0)
	{
		TreeMergeCounts counts = merge_with(other->tree);

		assert_int_equal(counts.leaves, 0);
		other->missed = counts.missed;
	}
	return false;
}

static void
calls_are_waited_for(void **state)
{
	CheckedTree f;
	Other other;
	TreeVacuumCounts counts = {0};
	TreeVacuum *walk;

	filled_open(&f, &other, KEYSPACE_16);
	empty(&f, 100, ENTRIES);
	require_ok(tree_vacuum_open(f.tree, &walk));
	require_ok(tree_vacuum_next(walk, merge_meanwhile, &other, &counts));
	tree_vacuum_close(walk);
	assert_true(other.missed > 0);
	assert_true(merge_with(other.tree).leaves > 10);
	filled_close(&f, &other);
}

/* What an error jumped out of is in progress until the client rests. */
static bool
jump_out(void *argument, uint32_t block, uint16_t offset)
{
	longjmp(*(jmp_buf *) argument, 1);
}

static void
jumps_end_with_rest(void **state)
{
	CheckedTree f;
	Other other;
	TreeVacuumCounts counts = {0};
	TreeVacuum *walk;
	jmp_buf place;

	filled_open(&f, &other, KEYSPACE_16);
	empty(&f, 100, ENTRIES);
	require_ok(tree_vacuum_open(f.tree, &walk));
	if (setjmp(place) == 0)
		(void) tree_vacuum_next(walk, jump_out, &place, &counts);
	assert_int_equal(merge_with(other.tree).leaves, 0);
	tree_client_rest(client.tree);
	assert_true(merge_with(other.tree).leaves > 10);
	tree_vacuum_close(walk);
	filled_close(&f, &other);
}

/* An insert and a lookup by a client whose handle and cache are those from before. */
static void
old_replicas_are_not_followed(void **state)
{
	for (int kind = 0; kind < KEYSPACES; kind++)
	{
		CheckedTree f;
		Other other;
		TreeStatistics statistics;

		filled_open(&f, &other, (KeySpaceKind) kind);
		require_ok(tree_scan_seek(other.scan, TREE_FORWARD, NULL, NULL));
		assert_int_equal(batch_count(other.scan), ENTRIES);
		empty(&f, 10, ENTRIES - 10);
		assert_true(merge_with(other.tree).leaves > 10);
		fill(&f, 700, 760);
		compare_check(&f, &statistics);
		compare_everything(&f, ENTRIES, 50);
		filled_close(&f, &other);
	}
}

/* So many entries have more inner nodes than a merge may have to be read again, and marks that are shared (inner_cache.c). */
#define MANY 60000u
#define NODES_READ_MAX 8u

/* Looks for every 40th number, most leaves: inner nodes that the cache does not have. */
static uint64_t
misses_of_lookups(CheckedTree *f)
{
	Cost cost;

	cost_begin(&client, &cost);
	for (uint64_t number = 0; number < MANY; number += 40)
		compare_range(f, number, -1, number, 1);
	cost_end(&client, &cost);
	return cost.tree.cache_misses;
}

/* Where leaves are merged their parents are read again, and the others are not. */
static void
other_nodes_stay_cached(void **state)
{
	CheckedTree f;
	TreeStatistics statistics;

	checked_tree_open(&f, KEYSPACE_64_OVERFLOW);
	fill(&f, 0, MANY);
	compare_check(&f, &statistics);
	assert_true(statistics.inner_nodes > 2 * NODES_READ_MAX);
	(void) misses_of_lookups(&f);
	assert_int_equal(misses_of_lookups(&f), 0);
	empty(&f, MANY / 2, MANY / 2 + 200);
	assert_in_range(merge_with(f.tree).leaves, 1, 8);
	assert_true(misses_of_lookups(&f) <= NODES_READ_MAX);
	checked_tree_close(&f);
}

/* Has the root in the cache as it was in an epoch before, and nothing else. */
static void
old_root_put(CheckedTree *f, uint64_t epoch, const uint64_t *root)
{
	assert_true(epoch < f->tree->epoch);
	cache_drop_tree(instance.shared, f->tree->tree);
	f->tree->epoch = epoch;
	cache_put(f->tree, f->tree->root, 0, root);
}

/* Writes a leaf as the sibling of a split that its client has not lived to link. */
static void
sibling_write(CheckedTree *f, uint64_t pointer, uint64_t *leaf)
{
	FabricOp op = {.opcode = FABRIC_WRITE,
	               .region = FABRIC_NODES,
	               .length = f->tree->geometry.leaf_bytes,
	               .offset = pointer_offset(pointer),
	               .buffer = leaf};

	leaf[HEADER_GENERATION] += 100;
	leaf[HEADER_STATE] = node_state_word(leaf[HEADER_GENERATION], 0, node_count(leaf), node_flags(leaf));
	node_seal(&f->tree->geometry, leaf);
	require_ok(access_execute(f->tree, pointer_memory_node(pointer), &op, 1));
}

/*
 * A frame from before a merge that nobody has come by since leads to a leaf that was merged, and used again for a split that was never
 * ended: that node says that it has the keys, and no other one links it.  It is found neither through the first nor through the last
 * of those that were merged; and of the leaf that they went into the frame knows no better.
 */
static void
old_frames_do_not_lead_to_new_nodes(void **state)
{
	const uint64_t entries = 500, kept = 10, numbers[] = {entries / 4, entries - 1};

	for (int kind = 0; kind < KEYSPACES; kind++)
	{
		_Alignas(LINE_BYTES) uint64_t root[NODE_MAX_BYTES / 8], leaf[2][NODE_MAX_BYTES / 8];
		CheckedTree f;
		TreeStatistics statistics;
		uint64_t epoch, pointer[2];
		Cost cost;

		checked_tree_open(&f, (KeySpaceKind) kind);
		fill(&f, 0, entries);
		require_ok(access_read_node(f.tree, f.tree->root, 1, root));
		epoch = f.tree->epoch;
		for (int i = 0; i < 2; i++)
			pointer[i] = leaf_of_number(&f, numbers[i], leaf[i]);
		empty(&f, kept, entries);
		assert_int_equal(merge_with(f.tree).leaves, node_count(root) - 1);
		for (int i = 0; i < 2; i++)
			sibling_write(&f, pointer[i], leaf[i]);
		for (int i = 0; i < 2; i++)
		{
			old_root_put(&f, epoch, root);
			compare_range(&f, numbers[i], -1, numbers[i], 1);
			old_root_put(&f, epoch, root);
			insert(&f, numbers[i], numbers[i]);
		}
		old_root_put(&f, epoch, root);
		cost_begin(&client, &cost);
		compare_range(&f, 0, -1, 0, 1);
		cost_end(&client, &cost);
		assert_int_equal(cost.tree.cache_misses, 1);
		compare_everything(&f, entries, 10);
		compare_check(&f, &statistics);
		checked_tree_close(&f);
	}
}

/* Who locks predicates by leaf hears, of each leaf that goes, which one gets its keys. */
typedef struct Told
{
	uint64_t count;
	uint64_t to;
} Told;

static void
hear(void *argument, uint64_t from, uint64_t to)
{
	Told *told = argument;

	assert_int_not_equal(from, to);
	if (told->count > 0)
		assert_int_equal(told->to, to);
	told->to = to;
	told->count++;
}

static void
merges_are_told(void **state)
{
	CheckedTree f;
	Told told = {0};
	TreeMergeCounts counts;

	checked_tree_open(&f, KEYSPACE_16);
	fill(&f, 0, ENTRIES);
	empty(&f, 10, ENTRIES);
	tree_on_split(f.tree, hear, &told);
	counts = merge_with(f.tree);
	tree_on_split(f.tree, NULL, NULL);
	assert_true(counts.leaves > 10);
	assert_int_equal(told.count, counts.leaves);
	/* An insert into the range goes to the leaf that was told. */
	insert(&f, 700, 700);
	assert_int_equal(tree_inserted_leaf(f.tree), told.to);
	checked_tree_close(&f);
}

/* A node's next life is another generation of it: what was read of it before is known to be old. */
static void
generations_rise(void **state)
{
	CheckedTree f;
	const TreeBatch *batch;
	TreeStatistics before, after;
	bool unchanged;
	int marked;
	TreeDead dead;
	TreeWalPosition wal = {.epoch = 1, .lsn = 1};

	checked_tree_open(&f, KEYSPACE_16);
	fill(&f, 0, ENTRIES);
	compare_check(&f, &before);
	require_ok(tree_scan_seek(f.scan, TREE_FORWARD, NULL, NULL));
	for (int i = 0; i < 5; i++)
		require_ok(tree_scan_next(f.scan, &batch));
	dead = (TreeDead){batch->entries[0].block, batch->entries[0].offset, batch->entries[0].cell};
	empty(&f, 0, ENTRIES);
	assert_true(merge_with(f.tree).leaves > 10);
	for (int round = 0; round < 2; round++)
	{
		require_ok(tree_batch_unchanged(f.scan, batch, &unchanged));
		assert_false(unchanged);
		require_ok(tree_mark_dead(f.tree, &batch->leaf, &dead, 1, &wal, &marked));
		assert_int_equal(marked, 0);
		if (round == 0)
			fill(&f, 0, ENTRIES);
	}
	compare_check(&f, &after);
	assert_int_equal(after.extent_bytes, before.extent_bytes);
	checked_tree_close(&f);
}

/*
 * Leaves that one client has read are merged by another one, which has not written them as free nodes yet: whoever comes back
 * to such a leaf does not even look at it, as it may be somebody's new sibling in the next moment.
 */
typedef struct Returner
{
	Other other;
	TreeLeafSeen leaf;
	int returns;
} Returner;

static Returner returner;

/* The first leaf without entries: of those in doubt, scans tell. */
static void
see_empty_leaf(Other *other, TreeLeafSeen *leaf)
{
	static const TreeWalLimits lost = {.epoch = UINT32_MAX, .first = 1, .count = 1, .limit = {0}};
	const TreeBatch *batch;

	other->tree->geometry.ends = &lost;
	tree_scan_unverified(other->scan, true);
	require_ok(tree_scan_seek(other->scan, TREE_FORWARD, NULL, NULL));
	do
		require_ok(tree_scan_next(other->scan, &batch));
	while (batch->count > 0);
	*leaf = batch->leaf;
}

static uint64_t
chains_of(const Other *other)
{
	TreeCounters counters;

	tree_client_counters(other->client.tree, &counters);
	return counters.round_trips;
}

static void
return_to_leaf(void *argument, const char *name, bool before)
{
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	const TreeDead dead = {.block = 0, .offset = 1, .cell = 0};
	uint64_t chains = chains_of(&returner.other);
	int marked;
	bool healed;

	/* A free node is the only thing that a merge writes alone. */
	if (!before || strcmp(name, "WRITE") != 0 || returner.returns++ > 0)
		return;
	assert_false(tree_leaf_unchanged(returner.other.tree, &returner.leaf));
	require_ok(tree_mark_dead(returner.other.tree, &returner.leaf, &dead, 1, &wal, &marked));
	assert_int_equal(marked, 0);
	require_ok(tree_heal_leaf(returner.other.tree, &returner.leaf, NULL, 0, &wal, &healed));
	assert_false(healed);
	assert_int_equal(chains_of(&returner.other), chains);
}

static void
merged_leaves_are_not_returned_to(void **state)
{
	CheckedTree f;
	TreeStatistics statistics;

	memset(&returner, 0, sizeof(returner));
	filled_open(&f, &returner.other, KEYSPACE_16);
	empty(&f, 100, ENTRIES);
	see_empty_leaf(&returner.other, &returner.leaf);
	assert_true(tree_leaf_unchanged(returner.other.tree, &returner.leaf));
	tree_client_crash_points(client.tree, return_to_leaf);
	assert_true(merge_with(f.tree).leaves > 10);
	tree_client_crash_points(client.tree, NULL);
	assert_true(returner.returns > 10);
	compare_check(&f, &statistics);
	filled_close(&f, &returner.other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_rounds),
		cmocka_unit_test(scans_rest),
		cmocka_unit_test(takers_meet),
		cmocka_unit_test(taken_leaves_go),
		cmocka_unit_test(calls_are_waited_for),
		cmocka_unit_test(jumps_end_with_rest),
		cmocka_unit_test(old_replicas_are_not_followed),
		cmocka_unit_test(other_nodes_stay_cached),
		cmocka_unit_test(old_frames_do_not_lead_to_new_nodes),
		cmocka_unit_test(merges_are_told),
		cmocka_unit_test(generations_rise),
		cmocka_unit_test(merged_leaves_are_not_returned_to),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
