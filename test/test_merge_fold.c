/*
 * test_merge_fold.c
 *		Leaves with few entries, which go into the leaf before them: what is in the tree stays, its leaves are few and have
 *		room, whoever scans meanwhile meets each entry once, and what a leaf says of its entries holds for those that it gets.
 *
 *		test_merge_fold [--network]
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/merge_fixture.h"
#include "support/reclaim_fixture.h"
#include "support/tree_fixture.h"
#include "rdma/fault.h"
#include "tree/change/merge.h"
#include "tree/descent/descent.h"
#include "tree/lock/lock.h"
#include "tree/scan/scan.h"

#define ENTRIES 3000u
/* Of so many one is left: two or three a leaf. */
#define ONE_OF 20u
/* Entries of a small tree, of some leaves below one root. */
#define FEW 400u

/* ---- what is left, and how much room it takes ---- */

/* Cells in use of the fullest leaf. */
static uint32_t
fullest_leaf(const CheckedTree *f)
{
	const NodeGeometry *g = &f->tree->geometry;
	_Alignas(LINE_BYTES) uint64_t leaf[NODE_MAX_BYTES / 8];
	TreeBound bound;
	uint64_t next;
	uint32_t most = 0;
	int section;
	Path path;

	require_ok(critical_enter(f->tree, &section));
	bound_of_end(g, false, &bound);
	require_ok(search_descend(f->tree, &bound, 0, true, &path));
	for (next = path.pointer; next != POINTER_NONE; next = leaf[HEADER_RIGHT])
	{
		require_ok(access_read_node(f->tree, next, 0, leaf));
		most = leaf_used(g, leaf) > most ? leaf_used(g, leaf) : most;
	}
	critical_leave(f->tree, section);
	return most;
}

/*
 * All but a few entries go, wherever they are: of the leaves those stay that the rest fills by a quarter at least, on the
 * average, and none is more than half full.  Another merge finds nothing, and the tree is filled again as ever.
 */
static void
few_leaves_are_left(void **state)
{
	for (int kind = 0; kind < KEYSPACES; kind++)
	{
		CheckedTree f;
		TreeStatistics before, after;
		TreeMergeCounts counts;
		uint32_t leaf;

		checked_tree_open(&f, (KeySpaceKind) kind);
		leaf = f.tree->geometry.leaf_cells;
		for (uint64_t i = 0; i < ENTRIES; i++)
			insert(&f, scramble(i) % KEYSPACE_LIMIT, i);
		thin(&f, ONE_OF);
		compare_check(&f, &before);
		counts = merge_with(f.tree);
		assert_int_equal(counts.missed, 0);
		compare_check(&f, &after);
		assert_int_equal(before.leaves - after.leaves, counts.leaves);
		assert_true(counts.folded > before.leaves / 2);
		/* Of each parent the first may have no neighbor. */
		assert_true(after.leaves <= f.model.count * 4 / leaf + after.inner_nodes + 1);
		assert_true(fullest_leaf(&f) <= leaf / 2);
		compare_everything(&f, KEYSPACE_LIMIT, 100);
		assert_true(merge_with(f.tree).leaves <= after.inner_nodes);
		for (uint64_t i = 0; i < ENTRIES; i++)
			insert(&f, scramble(i) % KEYSPACE_LIMIT, ENTRIES + i);
		compare_check(&f, &after);
		compare_everything(&f, KEYSPACE_LIMIT, 50);
		checked_tree_close(&f);
	}
}

/* The walk that removes entries knows what it has left of each leaf. */
static void
one_walk_suffices(void **state)
{
	CheckedTree f;
	TreeStatistics before, after;
	TreeMergeCounts counts;

	checked_tree_open(&f, KEYSPACE_16);
	fill(&f, 0, ENTRIES);
	compare_check(&f, &before);
	counts = thin_and_merge(&f, ONE_OF);
	compare_check(&f, &after);
	assert_int_equal(before.leaves - after.leaves, counts.leaves);
	assert_true(after.leaves * 4 < before.leaves);
	compare_everything(&f, ENTRIES, 50);
	checked_tree_close(&f);
}

/* The same where keys have many entries, which stand together in postings, and go singly. */
static void
postings_move(void **state)
{
	for (int kind = 0; kind < KEYSPACES; kind++)
		for (uint64_t one_of = 4; one_of <= ONE_OF; one_of += 8)
		{
			CheckedTree f;
			TreeStatistics before, after;

			checked_tree_open(&f, (KeySpaceKind) kind);
			for (uint64_t i = 0; i < 2 * ENTRIES; i++)
				insert(&f, i * 7919 % (2 * ENTRIES) / 40, i);
			thin(&f, one_of);
			compare_check(&f, &before);
			assert_true(merge_with(f.tree).folded > 0 || one_of < ONE_OF);
			compare_check(&f, &after);
			assert_true(after.leaves < before.leaves || one_of < ONE_OF);
			compare_everything(&f, ENTRIES, 50);
			insert_random(&f, ENTRIES, ENTRIES / 20, 2 * ENTRIES);
			compare_check(&f, &after);
			checked_tree_close(&f);
		}
}

/* Two leaves side by side that are too full together stay two, though one of them is sparse; a sparse one beside none stays, too. */
static void
full_neighbors_stay_alone(void **state)
{
	CheckedTree f;
	TreeVacuumCounts seen = {0};
	TreeStatistics before, after;
	TreeMergeCounts counts;
	Cost cost;
	TreeVacuum *walk;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	/* Every fourth hundred is left whole. */
	for (uint64_t from = 0; from < ENTRIES; from += 400)
		for (uint64_t i = from + 3; i < from + 300; i += 10)
			empty(&f, i, i + 7);
	compare_check(&f, &before);
	counts = merge_with(f.tree);
	compare_check(&f, &after);
	assert_int_equal(before.leaves - after.leaves, counts.leaves);
	/* What is seen costs nothing where nothing can go. */
	walk = walk_empty(f.tree, &seen);
	assert_int_equal(seen.sparse, 0);
	assert_int_equal(merge_walked(f.tree, walk, &cost).leaves, 0);
	assert_int_equal(cost.fabric.round_trips, 0);
	tree_vacuum_close(walk);
	compare_everything(&f, ENTRIES, 50);
	checked_tree_close(&f);
}

/* Where entries have gone to, for who locks predicates by leaf. */
typedef struct Told
{
	uint64_t count;
	uint64_t from;
	uint64_t to;
} Told;

static void
hear(void *argument, uint64_t from, uint64_t to)
{
	Told *told = argument;

	*told = (Told){told->count + 1, from, to};
}

/* ---- scans ---- */

/* A scan that goes on beside a merge, and the model's entry that it meets next. */
typedef struct Reading
{
	Tree *tree;
	TreeScan *scan;
	TreeDirection direction;
	int64_t place;
	bool ended;
} Reading;

static void
reading_begin(const CheckedTree *f, Tree *tree, TreeDirection direction, Reading *reading)
{
	*reading = (Reading){.tree = tree, .direction = direction};
	reading->place = direction == TREE_FORWARD ? 0 : (int64_t) f->model.count - 1;
	require_ok(tree_scan_open(tree, &reading->scan));
	require_ok(tree_scan_seek(reading->scan, direction, NULL, NULL));
}

/* One batch more. */
static void
read_on(const CheckedTree *f, Reading *reading)
{
	const TreeBatch *batch;
	TreeStatus status;

	if (reading->ended)
		return;
	status = tree_scan_next(reading->scan, &batch);
	assert_true(status == TREE_OK || status == TREE_END);
	reading->ended = status == TREE_END;
	for (int i = 0; status == TREE_OK && i < batch->count; i++)
	{
		const KeyEntry *expected;

		assert_true(reading->place >= 0 && reading->place < (int64_t) f->model.count);
		expected = &f->model.entries[reading->place];
		assert_true(batch->entries[i].block == expected->block &&
		            batch->entries[i].offset == expected->offset);
		reading->place += reading->direction == TREE_FORWARD ? 1 : -1;
	}
	if (reading->ended)
		assert_int_equal(reading->place, reading->direction == TREE_FORWARD ? (int64_t) f->model.count : -1);
}

static void
reading_end(const CheckedTree *f, Reading *reading)
{
	while (!reading->ended)
		read_on(f, reading);
	tree_scan_close(reading->scan);
}

/* What goes on between two chains of a merge, from number `step` on. */
static struct
{
	const CheckedTree *f;
	Reading readings[2];
	bool reader; /* of another instance: the barrier does not hold it up */
	bool busy;
	int step;
	int passed;
} beside;

static void
read_beside(void *argument, const char *name, bool before)
{
	if (beside.busy || ++beside.passed < beside.step ||
	    (!beside.reader && (client.tree->closed != NULL || client.tree->holding)))
		return;
	beside.busy = true;
	for (int i = 0; i < 2; i++)
	{
		Reading whole;

		read_on(beside.f, &beside.readings[i]);
		if (beside.passed != beside.step)
			continue;
		/* One that begins here, with old pointers to all leaves. */
		reading_begin(beside.f, beside.readings[i].tree, beside.readings[i].direction, &whole);
		reading_end(beside.f, &whole);
	}
	beside.busy = false;
}

static Tree *
open_again(const CheckedTree *f, TestClient *with)
{
	Tree *tree;

	require_ok(tree_open(with->tree, f->record.tree, f->record.root, &f->space->format, keyspace_compare,
	                     (void *) (uintptr_t) f->space, &tree));
	return tree;
}

/* A merge with scans beside it, which have read so many batches before, and go on from one of its steps on. Whether it has come to that. */
static bool
merge_beside(KeySpaceKind kind, TestClient *with, int batches, int step)
{
	CheckedTree f;
	TreeStatistics statistics;
	bool acted;
	Tree *tree;

	checked_tree_open(&f, kind);
	fill(&f, 0, FEW);
	thin(&f, ONE_OF / 4);
	tree = open_again(&f, with);
	beside.f = &f;
	beside.reader = with != &other_client;
	beside.step = step;
	beside.passed = 0;
	for (int i = 0; i < 2; i++)
	{
		Reading whole;

		reading_begin(&f, tree, i == 0 ? TREE_FORWARD : TREE_BACKWARD, &whole);
		reading_end(&f, &whole);
		reading_begin(&f, tree, i == 0 ? TREE_FORWARD : TREE_BACKWARD, &beside.readings[i]);
		for (int k = 0; k < batches; k++)
			read_on(&f, &beside.readings[i]);
	}
	tree_client_crash_points(client.tree, read_beside);
	assert_true(merge_with(f.tree).folded > 1);
	tree_client_crash_points(client.tree, NULL);
	acted = beside.passed >= step;
	for (int i = 0; i < 2; i++)
		reading_end(&f, &beside.readings[i]);
	compare_check(&f, &statistics);
	tree_close(tree);
	checked_tree_close(&f);
	return acted;
}

/* Across a network the first one alone: what differs there are the chains. */
static const KeySpaceKind some_kinds[] = {KEYSPACE_16, KEYSPACE_32_PREFIX, KEYSPACE_64_OVERFLOW};
static size_t some_kinds_count = sizeof(some_kinds) / sizeof(some_kinds[0]);

/* Scans in both directions, between any two steps of a merge at which its barrier lets them. */
static void
scans_go_on(void **state)
{
	for (size_t k = 0; k < some_kinds_count; k++)
		for (int batches = 0; batches < 8; batches += 3)
			for (int step = 1; merge_beside(some_kinds[k], &other_client, batches, step); step += 2)
				;
}

/* Those of a reader, whom no barrier holds up, at any step. */
static void
readers_go_on(void **state)
{
	OtherInstance other;

	for (size_t k = 0; k < some_kinds_count; k++)
	{
		other_start(&other);
		other.client.tree->options.reader = true;
		for (int batches = 0; batches < 8; batches++)
			for (int step = 1; merge_beside(some_kinds[k], &other.client, batches, step); step++)
				;
		other_stop(&other);
	}
}

/* ---- what a leaf says ---- */

/* Two leaves below a root, each with some entries at its beginning: numbers from 0 and from `second` on. */
typedef struct TwoLeaves
{
	CheckedTree f;
	uint64_t second;
} TwoLeaves;

static void
two_leaves_open(TwoLeaves *two, KeySpaceKind kind)
{
	_Alignas(LINE_BYTES) uint64_t leaf[NODE_MAX_BYTES / 8];
	uint64_t first, count = 0;

	checked_tree_open(&two->f, kind);
	do
	{
		insert(&two->f, count, count);
		first = leaf_of_number(&two->f, 0, leaf);
		count++;
	} while (leaf_of_number(&two->f, count - 1, leaf) == first);
	for (two->second = 0; leaf_of_number(&two->f, two->second, leaf) == first; two->second++)
		;
	fill(&two->f, count, two->second + 8);
	empty(&two->f, 5, two->second);
	empty(&two->f, two->second + 5, count + 8);
}

static void
insert_at(CheckedTree *f, uint64_t number, TreeWalPosition at)
{
	KeyEntry entry = entry_of(number, number);
	KeyImage image;
	TreeKey key;
	bool hit;

	keyspace_key(f->space, &entry, &image, &key);
	require_ok(tree_insert(f->tree, &key, &at, &hit));
	assert_true(key_model_add(&f->model, &entry));
}

/* Marks the entry of a number as dead. */
static void
mark(CheckedTree *f, uint64_t number, TreeWalPosition at)
{
	const TreeBatch *batch;
	TreeDead dead;
	TreeBound bound;
	int marked;

	f->low = number;
	keyspace_bound(f->space, &f->low, -1, &bound);
	require_ok(tree_scan_seek(f->scan, TREE_FORWARD, &bound, NULL));
	require_ok(tree_scan_next(f->scan, &batch));
	dead = (TreeDead){batch->entries[0].block, batch->entries[0].offset, batch->entries[0].cell};
	require_ok(tree_mark_dead(f->tree, &batch->leaf, &dead, 1, &at, &marked));
	assert_int_equal(marked, 1);
}

/* Takes entries out of one of the leaves, or puts some in, until it has so many. */
static void
leaf_set(TwoLeaves *two, bool left, uint32_t cells)
{
	uint64_t from = left ? 0 : two->second;

	empty(&two->f, from, from + two->second);
	fill(&two->f, from, from + cells);
}

/* A leaf of more than a quarter stays, and one that would make more than a half of its neighbor. */
static void
limits_are_kept(void **state)
{
	const NodeGeometry g = node_geometry(&keyspace(KEYSPACE_16_SINGLE)->format);
	const uint32_t quarter = g.leaf_cells / 4, half = g.leaf_cells / 2;

	for (int more = 0; more < 3; more++)
	{
		TreeStatistics statistics;
		TwoLeaves two;

		two_leaves_open(&two, KEYSPACE_16_SINGLE);
		leaf_set(&two, true, half - quarter + (more == 1));
		leaf_set(&two, false, quarter);
		if (more == 2)
		{
			leaf_set(&two, true, 1);
			leaf_set(&two, false, quarter + 1);
		}
		assert_int_equal(merge_with(two.f.tree).folded, more == 0);
		compare_everything(&two.f, 2 * two.second, 20);
		compare_check(&two.f, &statistics);
		checked_tree_close(&two.f);
	}
}

/* Who locks predicates by leaf hears which leaf has the entries now. */
static void
folds_are_told(void **state)
{
	_Alignas(LINE_BYTES) uint64_t leaf[NODE_MAX_BYTES / 8];
	uint64_t first, second;
	Told told = {0};
	TwoLeaves two;

	two_leaves_open(&two, KEYSPACE_16);
	first = leaf_of_number(&two.f, 0, leaf);
	second = leaf_of_number(&two.f, two.second, leaf);
	tree_on_split(two.f.tree, hear, &told);
	assert_int_equal(merge_with(two.f.tree).folded, 1);
	tree_on_split(two.f.tree, NULL, NULL);
	assert_int_equal(told.count, 1);
	assert_true(told.from == pointer_address(second) && told.to == pointer_address(first));
	insert(&two.f, two.second + 6, two.second + 6);
	assert_true(tree_inserted_leaf(two.f.tree) == told.to);
	checked_tree_close(&two.f);
}

/* The leaf has the later position of both, and the younger unit of what is dead, whichever leaf it is of. */
static void
positions_go_along(void **state)
{
	const TreeWalPosition earlier = {.epoch = 2, .lsn = 5000}, later = {.epoch = 3, .lsn = 100};

	for (int left = 0; left < 2; left++)
	{
		_Alignas(LINE_BYTES) uint64_t leaf[NODE_MAX_BYTES / 8];
		uint64_t first;
		TwoLeaves two;

		two_leaves_open(&two, KEYSPACE_16);
		insert_at(&two.f, 5, left ? later : earlier);
		insert_at(&two.f, two.second + 5, left ? earlier : later);
		mark(&two.f, 5, left ? earlier : later);
		mark(&two.f, two.second + 5, left ? later : earlier);
		first = leaf_of_number(&two.f, 0, leaf);
		assert_int_equal(merge_with(two.f.tree).folded, 1);
		assert_true(leaf_of_number(&two.f, two.second, leaf) == first);
		assert_int_equal(leaf[HEADER_EPOCH], later.epoch);
		assert_int_equal(leaf[HEADER_LSN], later.lsn);
		assert_int_equal(leaf_dead_epoch(leaf), later.epoch);
		assert_int_equal(leaf[HEADER_DEAD_LSN], later.lsn);
		checked_tree_close(&two.f);
	}
}

/* Marks stay at their entries, whether they are proven or not, until a vacuum takes them; then nothing is left of them. */
static void
marks_go_along(void **state)
{
	const TreeWalPosition at = {.epoch = 1, .lsn = 5000};

	for (int proven = 0; proven < 2; proven++)
		for (int kind = 0; kind < KEYSPACES; kind++)
		{
			_Alignas(LINE_BYTES) uint64_t leaf[NODE_MAX_BYTES / 8];
			TreeStatistics before, after;
			uint32_t used;
			TwoLeaves two;

			two_leaves_open(&two, (KeySpaceKind) kind);
			compare_check(&two.f, &before);
			mark(&two.f, two.second + 1, at);
			if (proven)
				tree_removal_proven(two.f.tree, &at);
			(void) leaf_of_number(&two.f, 0, leaf);
			used = leaf_used(&two.f.tree->geometry, leaf);
			(void) leaf_of_number(&two.f, two.second, leaf);
			used += leaf_used(&two.f.tree->geometry, leaf);
			assert_int_equal(merge_with(two.f.tree).folded, 1);
			(void) leaf_of_number(&two.f, two.second, leaf);
			assert_int_equal(leaf_used(&two.f.tree->geometry, leaf), used);
			/* The model has it still; the tree shows it to nobody. */
			assert_int_equal(test_tree_entries(two.f.tree), two.f.model.count - 1);
			empty(&two.f, two.second + 1, two.second + 2);
			(void) leaf_of_number(&two.f, two.second, leaf);
			assert_int_equal(leaf_used(&two.f.tree->geometry, leaf), used - 1);
			compare_everything(&two.f, 2 * two.second, 20);
			compare_check(&two.f, &after);
			assert_true(after.overflow_bytes <= before.overflow_bytes);
			checked_tree_close(&two.f);
		}
}

/* How a leaf comes to be in doubt. */
typedef enum Doubt
{
	DOUBT_ROWS,
	DOUBT_ROWS_OF_OLD,
	DOUBT_MARKS,
	DOUBTS
} Doubt;

/* Every leaf that is in doubt is healed; nothing of it goes. */
static void
heal_all(CheckedTree *f)
{
	const TreeWalPosition now = {.epoch = 2, .lsn = 1};
	const TreeBatch *batch;
	TreeLeafSeen leaves[4];
	TreeStatus status;
	int count = 0;
	bool healed;

	tree_scan_unverified(f->scan, true);
	require_ok(tree_scan_seek(f->scan, TREE_FORWARD, NULL, NULL));
	while ((status = tree_scan_next(f->scan, &batch)) == TREE_OK)
		if (batch->unverified || batch->marks_void)
			leaves[count++] = batch->leaf;
	tree_scan_unverified(f->scan, false);
	assert_int_equal(count, 1);
	require_ok(tree_heal_leaf(f->tree, &leaves[0], NULL, 0, &now, &healed));
	assert_true(healed);
}

/* A leaf that a crash has left in doubt gets no entries, and gives none, until it is healed. */
static void
doubt_is_waited_for(void **state)
{
	static const TreeWalLimits ends = {.epoch = 2, .first = 1, .count = 1, .limit = {1000}};
	const TreeWalPosition lost = {.epoch = 1, .lsn = 2000}, now = {.epoch = 2, .lsn = 1};

	for (int doubt = 0; doubt < DOUBTS; doubt++)
		for (int left = 0; left < 2; left++)
		{
			TreeVacuumCounts seen = {0};
			TreeStatistics statistics;
			uint64_t number;
			TwoLeaves two;

			two_leaves_open(&two, KEYSPACE_16);
			number = left ? 5 : two.second + 5;
			if (doubt == DOUBT_MARKS)
				mark(&two.f, left ? 1 : two.second + 1, lost);
			else
				insert_at(&two.f, number, lost);
			two.f.tree->geometry.ends = &ends;
			if (doubt == DOUBT_ROWS_OF_OLD)
				insert_at(&two.f, number + 1, now);
			assert_int_equal(merge_with(two.f.tree).leaves, 0);
			tree_vacuum_close(walk_empty(two.f.tree, &seen));
			assert_int_equal(seen.sparse, 0);
			heal_all(&two.f);
			assert_int_equal(merge_with(two.f.tree).folded, 1);
			compare_everything(&two.f, 2 * two.second, 20);
			compare_check(&two.f, &statistics);
			checked_tree_close(&two.f);
		}
}

/* ---- what goes wrong ---- */

/* The leaf is filled behind the merge's plan: cells that come late, as of a chain that was indeterminate. */
static struct
{
	TwoLeaves *two;
	Tree *tree;
	uint64_t pointer; /* the leaf that stays */
	bool done;
} late;

static void
fill_late(void *argument, const char *name, bool before)
{
	const NodeGeometry *g = &late.tree->geometry;
	_Alignas(LINE_BYTES) uint64_t leaf[NODE_MAX_BYTES / 8];
	uint64_t tid = 4000;

	/* The parent is locked. */
	if (late.done || client.tree->closed == NULL || !client.tree->holding || !before)
		return;
	late.done = true;
	require_ok(access_read_node(late.tree, late.pointer, 0, leaf));
	for (uint32_t slot = node_count(leaf); slot < g->leaf_cells; slot++, tid++)
	{
		uint64_t *cell = leaf + leaf_cell_word(g, slot);
		KeyEntry entry = entry_of(10 + tid % 8, tid);
		KeyImage image;
		TreeKey key;
		FabricOp op = {.opcode = FABRIC_WRITE,
		               .region = FABRIC_NODES,
		               .length = g->cell_bytes,
		               .offset = pointer_offset(late.pointer) + leaf_cell_word(g, slot) * 8,
		               .buffer = cell};

		assert_true(entry.number < late.two->second);
		keyspace_key(late.two->f.space, &entry, &image, &key);
		cell_make(g, cell, &key, leaf[HEADER_GENERATION], NULL);
		require_ok(access_execute(late.tree, pointer_memory_node(late.pointer), &op, 1));
		assert_true(key_model_add(&late.two->f.model, &entry));
	}
}

/* If the neighbor has no room any more the leaf stays, and gets its downlink back. */
static void
late_cells_stay(void **state)
{
	_Alignas(LINE_BYTES) uint64_t leaf[NODE_MAX_BYTES / 8];
	TreeStatistics statistics;
	TwoLeaves two;

	two_leaves_open(&two, KEYSPACE_16_SINGLE);
	late.two = &two;
	late.pointer = leaf_of_number(&two.f, 0, leaf);
	late.tree = open_again(&two.f, &other_client);
	late.done = false;
	tree_client_crash_points(client.tree, fill_late);
	assert_int_equal(merge_with(two.f.tree).leaves, 0);
	tree_client_crash_points(client.tree, NULL);
	assert_true(late.done);
	compare_everything(&two.f, 2 * two.second, 20);
	compare_check(&two.f, &statistics);
	assert_int_equal(statistics.leaves, 2);
	tree_close(late.tree);
	checked_tree_close(&two.f);
}

/* Whether the merge's barrier was closed. */
static bool was_closed;

/* Behind the barrier each chain is lost: so no merged node is written as a free one. */
static void
lose_behind_barrier(void *argument, const char *name, bool before)
{
	const FabricFaultPlan plan = {.fail_operation = 1};

	(void) argument;
	(void) name;
	was_closed |= client.tree->closed != NULL;
	if (was_closed && client.tree->closed == NULL && before)
		assert_int_equal(fabric_fault_set(client.endpoints[0], &plan), FABRIC_OK);
}

/* A merge whose chains behind the barrier are lost, which the fabric counts in another way than the tree. */
static void
merge_losing(Tree *tree)
{
	TreeVacuumCounts seen = {0};
	TreeMergeCounts counts = {0};
	TreeVacuum *walk = walk_empty(tree, &seen);
	TreeMerge *merge;

	require_ok(tree_merge_open(tree, walk, &merge));
	was_closed = false;
	tree_client_crash_points(client.tree, lose_behind_barrier);
	while (tree_merge_next(merge, &counts) == TREE_OK)
		;
	tree_client_crash_points(client.tree, NULL);
	assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
	assert_true(counts.folded > 0);
	tree_merge_close(merge);
	tree_vacuum_close(walk);
}

/*
 * A scan has read a leaf whose entries then go into its neighbor, and are removed there.  The leaf keeps its generation, as it could not be
 * written as a free one: it counts as changed all the same.
 */
static void
merged_leaf_counts_as_changed(void **state)
{
	const TreeBatch *batch;
	TreeScan *scan;
	CheckedTree f;
	bool unchanged;
	Tree *tree;

	(void) state;
	checked_tree_open(&f, KEYSPACE_16);
	fill(&f, 0, FEW);
	thin(&f, ONE_OF / 4);
	tree = open_again(&f, &other_client);
	require_ok(tree_scan_open(tree, &scan));
	require_ok(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL));
	require_ok(tree_scan_next(scan, &batch));
	require_ok(tree_scan_next(scan, &batch));
	assert_true(batch->count > 0);
	require_ok(tree_batch_unchanged(scan, batch, &unchanged));
	assert_true(unchanged);
	merge_losing(f.tree);
	empty(&f, 0, FEW);
	assert_int_equal(test_tree_entries(f.tree), 0);
	require_ok(tree_batch_unchanged(scan, batch, &unchanged));
	assert_false(unchanged);
	tree_scan_close(scan);
	tree_close(tree);
	checked_tree_close(&f);
}

/* Reads so many leaves (0: all that are left) of a scan whose next entry is at `place` of the model.  Returns the place behind them. */
static int64_t
read_leaves(const CheckedTree *f, TreeScan *scan, TreeDirection direction, int64_t place, int leaves)
{
	const TreeBatch *batch;

	for (int read = 0; (leaves == 0 || read < leaves) && tree_scan_next(scan, &batch) == TREE_OK; read++)
	{
		for (int i = 0; i < batch->count; i++)
		{
			const KeyEntry *expected;

			assert_true(place >= 0 && place < (int64_t) f->model.count);
			expected = &f->model.entries[place];
			assert_int_equal(batch->entries[i].block, expected->block);
			assert_int_equal(batch->entries[i].offset, expected->offset);
			place += direction == TREE_FORWARD ? 1 : -1;
		}
	}
	return place;
}

/* A parallel scan of one worker that takes its leaves one by one, with a merge at step `when` of it.  False: it has not so many steps. */
static bool
takes_beside_merge(KeySpaceKind kind, TreeDirection direction, int when)
{
	TreeScanPosition taken = {0};
	CheckedTree f;
	TreeScan *scan;
	Tree *tree;
	int64_t place;
	int step = 0;
	bool merged = false;

	checked_tree_open(&f, kind);
	fill(&f, 0, FEW);
	thin(&f, ONE_OF / 4);
	tree = open_again(&f, &other_client);
	place = direction == TREE_FORWARD ? 0 : (int64_t) f.model.count - 1;
	require_ok(tree_scan_open(tree, &scan));
	require_ok(tree_scan_seek(scan, direction, NULL, NULL));
	while (!taken.ended)
	{
		for (int part = 0; part < 3; part++)
		{
			if (step++ == when)
				merged = merge_with(f.tree).folded > 0;
			if (part == 0)
				require_ok(tree_scan_take(scan, &taken));
			else
				place = read_leaves(&f, scan, direction, place, part == 1 ? 1 : 0);
		}
		if (!taken.ended)
			require_ok(tree_scan_resume(scan, direction, NULL, &taken));
	}
	assert_int_equal(place, direction == TREE_FORWARD ? (int64_t) f.model.count : -1);
	tree_scan_close(scan);
	tree_close(tree);
	checked_tree_close(&f);
	return merged;
}

static void
takers_go_on(void **state)
{
	(void) state;
	for (int kind = 0; kind < KEYSPACES; kind++)
	{
		int when[2] = {0, 0};

		while (takes_beside_merge((KeySpaceKind) kind, TREE_FORWARD, when[0]))
			when[0]++;
		while (takes_beside_merge((KeySpaceKind) kind, TREE_BACKWARD, when[1]))
			when[1]++;
		assert_true(when[0] > 3 && when[1] > 3);
	}
}

/* What a child does that dies in a merge. */
typedef struct Death
{
	const CheckedTree *f;
	uint64_t operation;
	uint32_t line;
} Death;

static void
die_in_merge(int number, void *argument)
{
	const Death *death = argument;
	FabricFaultPlan plan = {
		.seed = death->operation, .die_operation = death->operation, .die_line = death->line};
	TreeVacuumCounts seen = {0};
	TreeMergeCounts counts = {0};
	TestClient mine;
	TreeVacuum *walk;
	TreeMerge *merge;
	Tree *tree;

	test_client_open(&mine, &instance, 2);
	tree = open_again(death->f, &mine);
	CHILD_ASSERT(tree_vacuum_open(tree, &walk) == TREE_OK);
	while (tree_vacuum_next(walk, NULL, NULL, &seen) == TREE_OK)
		;
	CHILD_ASSERT(tree_merge_open(tree, walk, &merge) == TREE_OK);
	CHILD_ASSERT(fabric_fault_set(mine.endpoints[0], &plan) == FABRIC_OK);
	while (tree_merge_next(merge, &counts) == TREE_OK)
		;
	CHILD_ASSERT(counts.folded > 1);
	_exit(0);
}

/* A new process in the place of the one that has died; the instance's next incarnation. */
static void
go_on_after_death(CheckedTree *f)
{
	TestClient mine;

	next_incarnation(f);
	test_client_open(&mine, &instance, 2);
	assert_int_equal(test_client_close(&mine), TREE_OK);
}

/* A process dies at any step of a merge, and its instance goes on: the tree is whole, and what is left to do is done. */
static void
deaths_leave_a_tree(void **state)
{
	static const KeySpaceKind kinds[] = {KEYSPACE_16, KEYSPACE_64_OVERFLOW};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
	{
		CheckedTree f;
		Death death = {.f = &f};
		TreeStatistics statistics;
		int died = 1;

		checked_tree_open(&f, kinds[k]);
		while (died > 0)
		{
			uint64_t from = death.operation++ * FEW;

			death.line = (uint32_t) scramble(death.operation) % 16;
			empty(&f, 0, from);
			(void) merge_with(f.tree);
			fill(&f, from, from + FEW);
			thin(&f, ONE_OF / 2);
			died = test_processes(1, die_in_merge, &death);
			go_on_after_death(&f);
			compare_check(&f, &statistics);
			compare_everything(&f, from + FEW, 10);
			(void) merge_with(f.tree);
			compare_check(&f, &statistics);
			compare_everything(&f, from + FEW, 10);
			assert_true(statistics.leaves <= 4);
		}
		assert_true(death.operation > 20);
		checked_tree_close(&f);
	}
}

int
main(int argc, char **argv)
{
	static TreeTechniques techniques;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_leaves_are_left), cmocka_unit_test(one_walk_suffices),
		cmocka_unit_test(limits_are_kept),     cmocka_unit_test(folds_are_told),
		cmocka_unit_test(takers_go_on),        cmocka_unit_test(merged_leaf_counts_as_changed),

		cmocka_unit_test(postings_move),       cmocka_unit_test(full_neighbors_stay_alone),
		cmocka_unit_test(scans_go_on),         cmocka_unit_test(readers_go_on),
		cmocka_unit_test(positions_go_along),  cmocka_unit_test(marks_go_along),
		cmocka_unit_test(doubt_is_waited_for), cmocka_unit_test(late_cells_stay),
		cmocka_unit_test(deaths_leave_a_tree),
	};

	/* Those that are about what walks and merges do there. */
	const struct CMUnitTest across[] = {
		cmocka_unit_test(one_walk_suffices),
		cmocka_unit_test(scans_go_on),
		cmocka_unit_test(deaths_leave_a_tree),
	};

	fixture_options.two_clients = true;
	if (argc > 1 && strcmp(argv[1], "--network") == 0)
	{
		techniques = tree_techniques;
		techniques.exclusive = true;
		some_kinds_count = 1;
		test_techniques = &techniques;
		test_use_network();
		return cmocka_run_group_tests(across, fixture_start, fixture_stop);
	}
	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
