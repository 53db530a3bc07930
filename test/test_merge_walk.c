/*
 * test_merge_walk.c
 *		What a merge looks at, by counters: it costs what there is to merge, wherever that lies, and nothing where
 *		nothing can be; and it takes what it finds, which may not be what was seen.
 */
#include "tree/change/merge.h"
#include "support/merge_fixture.h"
#include "tree/lock/lock.h"
#include "tree/shared/state.h"

/* Entries of a tree of some hundred leaves. */
#define ENTRIES 12000
/* More than a leaf holds twice: so long a run of keys has a leaf of its own, and not many. */
#define RUN 150

/*
 * READs of leaves for one to three that are to be merged, side by side: with the one in front and the one behind, twice.
 */
#define LEAVES_READ 10
/*
 * Round trips for them: the parent is found and read, twice; their locks are looked at; the parent and the neighbor are
 * locked and written; they are put away.  On the level above three inner nodes and their parent are looked at, and perhaps
 * one is merged in its turn.
 */
#define TRIPS 40
/* Round trips for one that cannot be merged, for want of a neighbor. */
#define TRIPS_IN_VAIN 10

/* One walk, and the merge behind it. */
static TreeMergeCounts
merge_cost(const CheckedTree *f, Cost *cost)
{
	TreeVacuumCounts seen = {0};
	TreeVacuum *walk = walk_empty(f->tree, &seen);
	TreeMergeCounts counts = merge_walked(f->tree, walk, cost);

	tree_vacuum_close(walk);
	return counts;
}

/* A queue: what is first is always empty behind a removal, and nothing can be done about it. */
static void
queues_first_leaf_costs_nothing(void **state)
{
	CheckedTree f;
	Cost cost;
	TreeMergeCounts counts;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	for (uint64_t done = 0; done < ENTRIES / 2; done += 2000)
	{
		empty(&f, done, done + 2000);
		assert_true(merge_cost(&f, &cost).leaves > 10);
		/* Nothing has come and nothing gone since. */
		counts = merge_cost(&f, &cost);
		assert_int_equal(counts.leaves, 0);
		assert_int_equal(cost.fabric.round_trips, 0);
		assert_int_equal(cost.fabric.reads, 0);
		fill(&f, ENTRIES + done, ENTRIES + done + 2000);
	}
	compare_everything(&f, 2 * ENTRIES, 10);
	checked_tree_close(&f);
}

/*
 * Wherever leaves are emptied, what follows costs as much as they are, in a tree of hundreds: behind others of their parent, as
 * first of a parent whose neighbors have no room, or as last.
 */
static void
few_leaves_cost_little(void **state)
{
	static const KeySpaceKind kinds[] = {KEYSPACE_16_SINGLE, KEYSPACE_32_TIED, KEYSPACE_64_OVERFLOW};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
	{
		CheckedTree f;
		uint64_t merged = 0;

		checked_tree_open(&f, kinds[k]);
		fill(&f, 0, ENTRIES);
		for (uint64_t from = 0; from < ENTRIES; from += RUN)
		{
			Cost cost;
			TreeMergeCounts counts;

			empty(&f, from, from + RUN);
			counts = merge_cost(&f, &cost);
			assert_int_equal(counts.missed, 0);
			assert_in_range(cost.fabric.round_trips, 0, TRIPS);
			assert_in_range(cost.tree.leaf_reads, 0, LEAVES_READ);
			(void) merge_cost(&f, &cost);
			assert_in_range(cost.fabric.round_trips, 0, TRIPS_IN_VAIN);
			merged += counts.leaves;
			fill(&f, from, from + RUN);
		}
		assert_true(merged > ENTRIES / RUN);
		compare_everything(&f, ENTRIES, 10);
		checked_tree_close(&f);
	}
}

/* Many emptied leaves, each between two that are not: one look at each parent, and all of them go. */
static void
scattered_leaves_share_a_look(void **state)
{
	CheckedTree f;
	Cost cost;
	TreeMergeCounts counts;
	TreeStatistics before, after;
	uint64_t epoch;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	compare_check(&f, &before);
	for (uint64_t from = RUN; from + RUN <= ENTRIES; from += 2 * RUN)
		empty(&f, from, from + RUN);
	epoch = state_epoch(f.tree->state);
	counts = merge_cost(&f, &cost);
	assert_true(counts.leaves >= ENTRIES / (2 * RUN) - 3);
	/* The barrier was closed once for each parent, and once more for what could be merged then. */
	assert_true(state_epoch(f.tree->state) - epoch <= before.inner_nodes + 2);
	compare_check(&f, &after);
	assert_int_equal(before.leaves - after.leaves, counts.leaves);
	compare_everything(&f, ENTRIES, 10);
	checked_tree_close(&f);
}

/* Between the walk and the merge somebody fills leaves again, and splits them and their parents: they stay. */
static void
filled_leaves_stay(void **state)
{
	for (int kind = 0; kind < KEYSPACES; kind++)
	{
		CheckedTree f;
		Cost cost;
		TreeVacuumCounts seen = {0};
		TreeStatistics statistics;
		TreeVacuum *walk;

		checked_tree_open(&f, (KeySpaceKind) kind);
		fill(&f, 0, ENTRIES / 4);
		empty(&f, 1000, 2500);
		walk = walk_empty(f.tree, &seen);
		assert_true(seen.empty > 10);
		fill(&f, 1500, 2000);
		insert_random(&f, ENTRIES / 4, KEYSPACE_LIMIT, ENTRIES);
		assert_true(merge_walked(f.tree, walk, &cost).leaves > 5);
		tree_vacuum_close(walk);
		compare_check(&f, &statistics);
		compare_everything(&f, ENTRIES, 10);
		checked_tree_close(&f);
	}
}

/* The number of the first entry under the last of the root's children. */
static uint64_t
last_parent_begins(const CheckedTree *f)
{
	const NodeGeometry *g = &f->tree->geometry;
	_Alignas(LINE_BYTES) uint64_t root[NODE_MAX_BYTES / 8];
	const uint64_t *separator;
	TreeKey key;
	int section;

	require_ok(critical_enter(f->tree, &section));
	require_ok(access_read_node(f->tree, f->tree->root, 2, root));
	critical_leave(f->tree, section);
	separator = root + inner_cell_word(g, node_count(root) - 1) + 1;
	cell_key(g, separator, true, &key);
	/* Cut in front of its first entry: the same normalized key, which is all of it here. */
	key.cut = false;
	return keyspace_number(f->space, &key);
}

/*
 * Of the last parent the first leaf is empty, or has some entries, and waits for a neighbor; the parent in front becomes so small that both
 * become one: now it has one.  All goes in one merge, until no leaf is empty.
 */
static void
first_leaf_gets_a_neighbor(uint64_t kept)
{
	CheckedTree f;
	Cost cost;
	TreeVacuumCounts seen = {0};
	TreeMergeCounts counts;
	TreeStatistics statistics;
	uint64_t last;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	last = last_parent_begins(&f);
	assert_in_range(last, ENTRIES / 2, ENTRIES - 1000);
	/* One that keeps entries waits for a neighbor that has room, and stays where it is. */
	empty(&f, 100, kept == 0 ? last - 300 : last - 20);
	empty(&f, last + kept, last + LEAF_CELLS_TARGET);
	counts = merge_cost(&f, &cost);
	assert_true(counts.inner_nodes > 0);
	tree_vacuum_close(walk_empty(f.tree, &seen));
	assert_int_equal(seen.empty + seen.sparse, 0);
	compare_check(&f, &statistics);
	/* What is left of a tree of which nothing is left. */
	empty(&f, 0, ENTRIES);
	(void) merge_cost(&f, &cost);
	compare_check(&f, &statistics);
	assert_int_equal(statistics.leaves, 1);
	checked_tree_close(&f);
}

static void
first_leaves_get_a_neighbor(void **state)
{
	first_leaf_gets_a_neighbor(0);
	first_leaf_gets_a_neighbor(3);
}

/* Somebody else merges while a vacuum walks, and so it walks anew: what it sees it knows once, in order. */
static void
walks_begin_anew(void **state)
{
	CheckedTree f;
	Cost cost;
	TreeVacuumCounts seen = {0};
	TreeVacuum *other, *walk;
	TreeMergeCounts counts;
	TreeStatus status = TREE_OK;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	empty(&f, ENTRIES - 2 * RUN, ENTRIES - RUN);
	other = walk_empty(f.tree, &seen);
	empty(&f, 1000, 1000 + RUN);
	empty(&f, ENTRIES - 1000, ENTRIES - 1000 + RUN);
	require_ok(tree_vacuum_open(f.tree, &walk));
	seen = (TreeVacuumCounts){0};
	while (seen.empty < 3)
		require_ok(tree_vacuum_next(walk, NULL, NULL, &seen));
	assert_true(merge_walked(f.tree, other, &cost).leaves > 0);
	tree_vacuum_close(other);
	while (status == TREE_OK)
		status = tree_vacuum_next(walk, NULL, NULL, &seen);
	assert_int_equal(status, TREE_END);
	counts = merge_walked(f.tree, walk, &cost);
	tree_vacuum_close(walk);
	assert_int_equal(counts.missed, 0);
	assert_in_range(counts.leaves, 2, 6);
	compare_everything(&f, ENTRIES, 10);
	checked_tree_close(&f);
}

/* An empty leaf with these fences. */
static void
add_leaf(const Tree *tree, SparseRanges *ranges, uint64_t low, uint64_t high)
{
	const NodeGeometry *g = &tree->geometry;
	_Alignas(LINE_BYTES) uint64_t leaf[NODE_MAX_BYTES / 8] = {0};
	uint64_t fence[LINE_WORDS] = {0};

	node_begin(g, leaf, tree->tree, tree->root, 0, 1, 0);
	fence[0] = (uint64_t) (low == 0 ? SEPARATOR_INFINITE : SEPARATOR_CUT) << CELL_STATE_SHIFT;
	fence[1] = low;
	node_set_fence(g, leaf, false, fence);
	fence[0] = (uint64_t) SEPARATOR_CUT << CELL_STATE_SHIFT;
	fence[1] = high;
	node_set_fence(g, leaf, true, fence);
	sparse_ranges_add(g, ranges, leaf);
}

/* Neighbors are one range; more ranges than there is room for end in one that has all the rest. */
static void
ranges_are_bounded(void **state)
{
	static SparseRanges ranges;
	const uint64_t most = SPARSE_RANGES_MAX;
	CheckedTree f;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	add_leaf(f.tree, &ranges, 0, 5);
	assert_int_equal(ranges.count, 0);
	for (uint64_t i = 1; i <= most + 10; i++)
	{
		add_leaf(f.tree, &ranges, 10 * i, 10 * i + 2);
		add_leaf(f.tree, &ranges, 10 * i + 2, 10 * i + 5);
		assert_int_equal(ranges.count, i < most ? i : most);
		assert_int_equal(ranges.ranges[ranges.count - 1].low[1], 10 * ranges.count);
		assert_int_equal(ranges.ranges[ranges.count - 1].high[1], 10 * i + 5);
	}
	for (uint64_t i = 1; i < most; i++)
	{
		assert_int_equal(ranges.ranges[i - 1].low[1], 10 * i);
		assert_int_equal(ranges.ranges[i - 1].high[1], 10 * i + 5);
	}
	checked_tree_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_first_leaf_costs_nothing),
		cmocka_unit_test(few_leaves_cost_little),
		cmocka_unit_test(scattered_leaves_share_a_look),
		cmocka_unit_test(filled_leaves_stay),
		cmocka_unit_test(first_leaves_get_a_neighbor),
		cmocka_unit_test(walks_begin_anew),
		cmocka_unit_test(ranges_are_bounded),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
