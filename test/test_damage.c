/*
 * test_damage.c
 *		Copies of nodes that are not believed: torn for good, with the sum of a dead writer, read too late;
 *		and pointers that lead astray. Every operation ends; it says that the tree is damaged where it is,
 *		and never that something is not there. Nothing stays held, and what is sound goes on.
 */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "fault.h"
#include "support/cost.h"
#include "support/tree_fixture.h"
#include "tree/descent/descent.h"

/* Entries of trees of two levels, small and large, and of three. */
#define ENTRIES_FEW 300
#define ENTRIES_LOW 3000
#define ENTRIES_HIGH 30000

/* The entry whose leaf, or the way to it, is damaged. */
#define VICTIM 100

/* READs of a node under its lock, when it stays torn: the second one is damage. */
#define LOCKED_READS 2

/* A tree of entries 0..count-1, each key the scrambled number of its TID. */
static Tree *
numbers_tree(uint32_t count, TreeRecord *record)
{
	Tree *tree = new_tree(&narrow, record);

	for (uint32_t tid = 0; tid < count; tid++)
	{
		TreeKey key = number_key(scramble(tid), tid);

		must_insert(tree, &key, false);
	}
	return tree;
}

/* Writes words of node memory behind the tree's back. */
static void
poke(Tree *tree, uint64_t pointer, uint32_t word, uint64_t *words, uint32_t count)
{
	FabricOp op = {
		.opcode = FABRIC_WRITE,
		.region = FABRIC_NODES,
		.length = count * 8,
		.offset = pointer_offset(pointer) + word * 8,
		.buffer = words,
	};

	assert_int_equal(access_execute(tree, pointer_memory_node(pointer), &op, 1), TREE_OK);
	cache_drop_tree(instance.shared, tree->tree);
}

/* Writes a node whole: damage that its stamps and its sum vouch for. */
static void
poke_sealed(Tree *tree, uint64_t *image)
{
	node_seal(&tree->geometry, image);
	poke(tree, image[HEADER_SELF], 0, image, node_bytes(&tree->geometry, node_level(image)) / 8);
}

/* The pointer of the victim's leaf, or of the node of another level above it. */
static uint64_t
victim_node(Tree *tree, uint32_t level)
{
	TreeKey key = number_key(scramble(VICTIM), VICTIM);
	TreeBound bound;
	Path path;

	bound_of_key(&tree->geometry, &key, &bound);
	assert_int_equal(search_descend(tree, &bound, level, true, &path), TREE_OK);
	return path.pointer;
}

static TreeStatus
lookup_number(Tree *tree, uint64_t number, uint32_t tid)
{
	TreeKey key = number_key(number, tid);
	TreeBound low, high;
	const TreeBatch *batch;
	TreeScan *scan;
	TreeStatus status;

	bound_of_key(&tree->geometry, &key, &low);
	low.side = -1;
	high = low;
	high.side = 1;
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, &low, &high), TREE_OK);
	status = tree_scan_next(scan, &batch);
	if (status == TREE_OK)
		assert_int_equal(batch->entries[0].block * 100 + batch->entries[0].offset - 1, tid);
	tree_scan_close(scan);
	return status;
}

static TreeStatus
lookup(Tree *tree, uint32_t tid)
{
	return lookup_number(tree, scramble(tid), tid);
}

/* Scans the tree whole; *count is what was met before it ended. An error stays one when it is asked again. */
static TreeStatus
scan_all(Tree *tree, TreeDirection direction, uint32_t *count)
{
	const TreeBatch *batch;
	TreeScan *scan;
	TreeStatus status;

	*count = 0;
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	assert_int_equal(tree_scan_seek(scan, direction, NULL, NULL), TREE_OK);
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
		*count += (uint32_t) batch->count;
	assert_int_equal(tree_scan_next(scan, &batch), status);
	tree_scan_close(scan);
	return status;
}

static TreeStatus
insert(Tree *tree, uint64_t number, uint32_t tid)
{
	TreeKey key = number_key(number, tid);
	bool hit;

	return tree_insert(tree, &key, &wal, &hit);
}

static bool
nobody_is_dead(void *argument, uint32_t block, uint16_t offset)
{
	return false;
}

static bool
everybody_is_dead(void *argument, uint32_t block, uint16_t offset)
{
	return true;
}

static TreeStatus
vacuum_all(Tree *tree, TreeIsDead is_dead)
{
	TreeVacuumCounts counts = {.leaves = 0};
	TreeVacuum *vacuum;
	TreeStatus status;

	assert_int_equal(tree_vacuum_open(tree, &vacuum), TREE_OK);
	do
	{
		status = tree_vacuum_next(vacuum, is_dead, NULL, &counts);
		assert_true(counts.leaves <= ENTRIES_HIGH);
	} while (status == TREE_OK);
	tree_vacuum_close(vacuum);
	return status;
}

/* Neither interrupts nor the lock word, of which there is one for all nodes. */
static void
assert_nothing_held(void)
{
	uint64_t word = UINT64_MAX;
	FabricOp op = {.opcode = FABRIC_READ, .region = FABRIC_LOCKS, .length = 8, .buffer = &word};

	/* Of whichever client was opened last in this process. */
	assert_int_equal(instance.environment->slots[0].holds | instance.environment->slots[1].holds, 0);
	assert_false(client.tree->holding);
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	assert_int_equal(word, 0);
}

/* What lies in sound leaves is found and inserted, by this process and another one, under the one lock word. */
static void
assert_goes_on(const TreeRecord *record, Tree *tree, uint64_t number, uint32_t tid, uint32_t there)
{
	TestClient other;
	Tree *theirs;

	assert_nothing_held();
	assert_int_equal(insert(tree, number, tid), TREE_OK);
	assert_int_equal(lookup(tree, there), TREE_OK);
	test_client_open(&other, &instance, 1);
	theirs = open_tree(&other, record);
	assert_int_equal(insert(theirs, number, tid + 1), TREE_OK);
	assert_int_equal(lookup(theirs, there), TREE_OK);
	tree_close(theirs);
	assert_int_equal(test_client_close(&other), TREE_OK);
}

/* An entry outside of these fences. */
static uint32_t
entry_elsewhere(const Tree *tree, const uint64_t *node)
{
	const uint64_t *low = node + tree->geometry.low_word;
	const uint64_t *high = node + tree->geometry.high_word;

	for (uint32_t tid = 0;; tid++)
		if ((!separator_infinite(low) && scramble(tid) < low[1]) ||
		    (!separator_infinite(high) && scramble(tid) > high[1]))
			return tid;
}

/* A line of a leaf has another stamp for good. */
static void
test_torn_leaf(void **state)
{
	TreeRecord record;
	Tree *tree = numbers_tree(ENTRIES_LOW, &record);
	uint64_t pointer = victim_node(tree, 0);
	uint64_t leaf[NODE_MAX_BYTES / 8];
	uint32_t word = tree->geometry.leaf_bytes / 8 - 2 * LINE_WORDS;
	uint32_t count, elsewhere;
	uint64_t torn;
	WalkResult result;
	Cost cost;

	assert_int_equal(access_read_node(tree, pointer, 0, leaf), TREE_OK);
	elsewhere = entry_elsewhere(tree, leaf);
	torn = leaf[word] ^ 1;
	poke(tree, pointer, word, &torn, 1);
	assert_int_equal(lookup(tree, elsewhere), TREE_OK); /* the root is in the cache */

	cost_begin(&client, &cost);
	assert_int_equal(lookup(tree, VICTIM), TREE_DAMAGED);
	cost_end(&client, &cost);
	assert_int_equal(cost.tree.round_trips, READ_ATTEMPTS + LOCKED_READS + 1);
	assert_int_equal(cost.tree.read_bytes, (READ_ATTEMPTS + LOCKED_READS) * tree->geometry.leaf_bytes);
	assert_int_equal(cost.tree.torn_reads, READ_ATTEMPTS - 1 + LOCKED_READS);
	assert_nothing_held();

	/* One that is there, and one that is not. */
	for (uint32_t tid = VICTIM; tid <= ENTRIES_LOW; tid += ENTRIES_LOW - VICTIM)
	{
		cost_begin(&client, &cost);
		assert_int_equal(insert(tree, scramble(VICTIM) + (tid != VICTIM), tid), TREE_DAMAGED);
		cost_end(&client, &cost);
		assert_int_equal(cost.tree.round_trips, LOCKED_READS + 1);
		assert_int_equal(cost.tree.torn_reads, LOCKED_READS);
		assert_nothing_held();
	}
	assert_int_equal(scan_all(tree, TREE_FORWARD, &count), TREE_DAMAGED);
	assert_true(count < ENTRIES_LOW);
	assert_int_equal(scan_all(tree, TREE_BACKWARD, &count), TREE_DAMAGED);
	assert_true(count < ENTRIES_LOW);
	assert_int_equal(vacuum_all(tree, nobody_is_dead), TREE_DAMAGED);
	assert_goes_on(&record, tree, scramble(elsewhere) + 1, ENTRIES_LOW, elsewhere);

	poke(tree, pointer, word, leaf + word, 1);
	assert_int_equal(lookup(tree, VICTIM), TREE_OK);
	verify_tids(tree, ENTRIES_LOW + 2, &result);
	walk_free(&result);
	tree_close(tree);
}

/* It becomes torn between vacuum's READ and its lock. */
static Tree *torn_tree;
static uint64_t torn_pointer;
static uint64_t torn_word;

static bool
tears_and_is_dead(void *argument, uint32_t block, uint16_t offset)
{
	poke(torn_tree, torn_pointer, LINE_WORDS, &torn_word, 1);
	return everybody_is_dead(argument, block, offset);
}

static void
test_torn_before_removal(void **state)
{
	TreeRecord record;
	TreeVacuumCounts counts = {.leaves = 0};
	TreeVacuum *vacuum;
	WalkResult result;
	uint64_t leaf[NODE_MAX_BYTES / 8];

	torn_tree = numbers_tree(20, &record); /* its root is a leaf */
	torn_pointer = torn_tree->root;
	assert_int_equal(access_read_node(torn_tree, torn_pointer, 0, leaf), TREE_OK);
	torn_word = leaf[LINE_WORDS] ^ 1;
	assert_int_equal(tree_vacuum_open(torn_tree, &vacuum), TREE_OK);
	for (int i = 0; i < 2; i++)
	{
		assert_int_equal(tree_vacuum_next(vacuum, tears_and_is_dead, NULL, &counts), TREE_DAMAGED);
		assert_nothing_held();
	}
	tree_vacuum_close(vacuum);
	assert_int_equal(counts.removed, 0);
	poke(torn_tree, torn_pointer, LINE_WORDS, leaf + LINE_WORDS, 1);
	verify_tids(torn_tree, 20, &result);
	walk_free(&result);
	tree_close(torn_tree);
}

/* An inner node's sum is wrong for good: the root's, or that of the first node below it. */
static void
test_torn_inner(void **state)
{
	for (int below = 0; below < 2; below++)
	{
		const uint32_t entries = below ? ENTRIES_HIGH : ENTRIES_LOW;
		TreeRecord record;
		Tree *tree = numbers_tree(entries, &record);
		const NodeGeometry *g = &tree->geometry;
		uint64_t node_image[NODE_MAX_BYTES / 8];
		uint64_t pointer = tree->root, wrong;
		uint32_t count, inside = 0;
		Cost cost;
		WalkResult result;

		assert_int_equal(access_read_node(tree, tree->root, 1 + below, node_image), TREE_OK);
		if (below)
		{
			pointer = node_image[inner_cell_word(g, 0)];
			assert_int_equal(access_read_node(tree, pointer, 1, node_image), TREE_OK);
			while (scramble(inside) >= node_image[g->high_word + 1])
				inside++;
		}
		wrong = node_image[HEADER_SUM] + 1;
		poke(tree, pointer, HEADER_SUM, &wrong, 1);

		cost_begin(&client, &cost);
		assert_int_equal(lookup(tree, inside), TREE_DAMAGED);
		cost_end(&client, &cost);
		assert_int_equal(cost.tree.round_trips, below + READ_ATTEMPTS + LOCKED_READS + 1);
		assert_int_equal(cost.tree.torn_reads, READ_ATTEMPTS - 1 + LOCKED_READS);
		assert_int_equal(insert(tree, scramble(inside) + 1, entries), TREE_DAMAGED);
		assert_int_equal(scan_all(tree, TREE_FORWARD, &count), TREE_DAMAGED);
		assert_int_equal(count, 0);
		assert_int_equal(scan_all(tree, TREE_BACKWARD, &count), TREE_DAMAGED);
		assert_true(below ? count > 0 && count < entries : count == 0);
		assert_int_equal(vacuum_all(tree, nobody_is_dead), TREE_DAMAGED);
		assert_nothing_held();
		count = 0;
		if (below)
		{
			uint32_t elsewhere = entry_elsewhere(tree, node_image);

			assert_goes_on(&record, tree, scramble(elsewhere) + 1, entries, elsewhere);
			count = 2;
		}
		poke(tree, pointer, HEADER_SUM, node_image + HEADER_SUM, 1);
		assert_int_equal(lookup(tree, inside), TREE_OK);
		verify_tids(tree, entries + count, &result);
		walk_free(&result);
		tree_close(tree);
	}
}

/* The parent of a leaf that is split is torn: the entry is in, the lock free, the split is completed later. */
static void
test_torn_parent(void **state)
{
	TreeRecord record;
	Tree *tree = numbers_tree(ENTRIES_LOW, &record);
	uint64_t root[NODE_MAX_BYTES / 8];
	uint64_t wrong, splits;
	uint32_t tid = ENTRIES_LOW;
	WalkResult result;
	TreeStatus status;
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = 8, .buffer = &wrong};

	assert_int_equal(access_read_node(tree, tree->root, 1, root), TREE_OK);
	assert_int_equal(lookup(tree, VICTIM), TREE_OK);
	/* Its copy in the cache goes on leading to leaves. */
	wrong = root[HEADER_SUM] + 1;
	op.offset = pointer_offset(tree->root) + HEADER_SUM * 8;
	assert_int_equal(access_execute(tree, 0, &op, 1), TREE_OK);
	splits = client.tree->counters.leaf_splits;
	do
	{
		status = insert(tree, scramble(tid), tid);
		tid++;
	} while (status == TREE_OK);
	assert_int_equal(status, TREE_DAMAGED);
	assert_int_equal(client.tree->counters.leaf_splits, splits + 1);
	assert_nothing_held();

	poke(tree, tree->root, HEADER_SUM, root + HEADER_SUM, 1);
	verify_tids(tree, tid, &result);
	assert_int_equal(result.incomplete_splits, 1);
	walk_free(&result);
	assert_int_equal(lookup(tree, tid - 1), TREE_OK);
	tree_close(tree);
}

/*
 * An insert into a leaf with a sum, and death after its n-th operation: {swap, READ}, {WRITE sum, WRITE
 * cell, unlock}.
 */
typedef struct SumDeath
{
	TreeRecord record;
	uint64_t operation;
} SumDeath;

#define SUM_OPERATION 3
#define CELL_OPERATION 4
#define UNLOCK_OPERATION 5

static const FabricFaultPlan torn_words = {.seed = 1, .tear_words = true};

static void
sum_death(int number, void *argument)
{
	const SumDeath *death = argument;
	FabricFaultPlan plan = {.seed = 1, .tear_words = true, .die_operation = death->operation};
	TestClient mine;
	Tree *tree;

	test_client_open(&mine, &instance, 2);
	if (fabric_fault_set(mine.endpoints[0], &torn_words) != FABRIC_OK)
		_exit(2);
	tree = open_tree(&mine, &death->record);
	/* The way to the leaf is in the cache. */
	if (lookup(tree, VICTIM) != TREE_OK || fabric_fault_set(mine.endpoints[0], &plan) != FABRIC_OK)
		_exit(3);
	(void) insert(tree, scramble(VICTIM) + 1, ENTRIES_FEW);
	_exit(4);
}

/*
 * A clock that makes steps, so many times; then a microsecond passes whenever it is asked, so that no READ is
 * late, however busy the machine is.
 */
static uint64_t clock_us;
static uint64_t clock_step;
static int clock_steps;

static uint64_t
clock_in_steps(void *argument)
{
	clock_us += clock_steps > 0 ? clock_step : 1;
	clock_steps -= clock_steps > 0;
	return clock_us;
}

static void
client_open_torn(void)
{
	test_client_open(&client, &instance, 0);
	client.tree->options.environment.now_us = clock_in_steps;
	assert_int_equal(fabric_fault_set(client.endpoints[0], &torn_words), FABRIC_OK);
}

/*
 * READs that find the sum of a cell which is not there: it is put right under the lock, by the first who
 * reads.
 */
static void
assert_sum_repaired(Tree *tree)
{
	Cost cost;

	cost_begin(&client, &cost);
	assert_int_equal(lookup(tree, VICTIM), TREE_OK);
	cost_end(&client, &cost);
	assert_int_equal(cost.fabric.round_trips, READ_ATTEMPTS + 2);
	assert_int_equal(cost.tree.torn_reads, READ_ATTEMPTS - 1);
	assert_int_equal(cost.fabric.writes, 1);
	assert_int_equal(cost.fabric.written_bytes, 3 * 8);
	assert_nothing_held();
}

static void
test_sum_of_the_dead(void **state)
{
	uint64_t (*real_clock)(void *) = client.tree->options.environment.now_us;
	SumDeath death;
	Cost cost;
	Tree *tree;

	for (death.operation = 1; death.operation <= UNLOCK_OPERATION; death.operation++)
	{
		/* The one who comes then reads, or inserts. */
		for (int inserts = 0; inserts < 2; inserts++)
		{
			bool there = death.operation >= CELL_OPERATION;
			bool stale = death.operation == SUM_OPERATION;
			WalkResult result;

			assert_int_equal(fabric_fault_set(client.endpoints[0], &torn_words), FABRIC_OK);
			tree = numbers_tree(ENTRIES_FEW, &death.record);
			tree_close(tree);
			assert_int_equal(test_client_close(&client), TREE_OK);
			assert_int_equal(test_processes(1, sum_death, &death), 1);
			test_instance_attach(&instance);
			client_open_torn();
			tree = open_tree(&client, &death.record);
			(void) victim_node(tree, 1); /* the root is in the cache */
			if (inserts)
				assert_int_equal(insert(tree, scramble(VICTIM) + 2, ENTRIES_FEW + 1), TREE_OK);
			else if (stale)
				assert_sum_repaired(tree);
			cost_begin(&client, &cost);
			assert_int_equal(lookup(tree, VICTIM), TREE_OK);
			cost_end(&client, &cost);
			assert_int_equal(cost.fabric.round_trips, 1);
			assert_int_equal(lookup_number(tree, scramble(VICTIM) + 1, ENTRIES_FEW),
			                 there ? TREE_OK : TREE_END);
			walk_tree(tree, &result);
			assert_int_equal(result.count, ENTRIES_FEW + (uint32_t) there + (uint32_t) inserts);
			walk_free(&result);
			tree_close(tree);
			assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
		}
	}
	client.tree->options.environment.now_us = real_clock;
}

/*
 * A tree of a time when its memory node's READs tore no lines, and now they may: a leaf is believed under its lock alone, once, as it
 * has a sum from then on, which the next generations and the halves keep.  No chain that is lost meanwhile changes that.
 */
static void
test_missing_sums(void **state)
{
	uint64_t (*real_clock)(void *) = client.tree->options.environment.now_us;

	for (uint64_t lost = 0; lost <= READ_ATTEMPTS + 4; lost++)
	{
		const FabricFaultPlan plan = {.seed = 1, .tear_words = true, .late_operation = lost};
		TreeRecord record;
		Tree *tree = numbers_tree(ENTRIES_FEW, &record);
		WalkResult result;
		Cost cost;

		tree_close(tree);
		assert_int_equal(test_client_close(&client), TREE_OK);
		client_open_torn();
		tree = open_tree(&client, &record);
		(void) victim_node(tree, 1); /* the root is in the cache */
		assert_int_equal(fabric_fault_set(client.endpoints[0], &plan), FABRIC_OK);
		if (lost == 0)
			cost_begin(&client, &cost);
		assert_int_equal(lookup(tree, VICTIM), TREE_OK);
		if (lost == 0)
		{
			cost_end(&client, &cost);
			assert_int_equal(cost.fabric.round_trips, READ_ATTEMPTS + 2);
			assert_int_equal(cost.fabric.writes, 2);
			assert_int_equal(cost.fabric.written_bytes, 4 * 8);
		}
		assert_nothing_held();
		assert_int_equal(fabric_fault_set(client.endpoints[0], &torn_words), FABRIC_OK);
		cost_begin(&client, &cost);
		assert_int_equal(lookup(tree, VICTIM), TREE_OK);
		cost_end(&client, &cost);
		assert_int_equal(cost.fabric.round_trips, 1);

		for (uint32_t i = 1; i <= 64; i++)
			assert_int_equal(insert(tree, scramble(VICTIM) + i, ENTRIES_FEW + i), TREE_OK);
		for (uint32_t i = 0; i <= 64; i += 64)
		{
			cost_begin(&client, &cost);
			assert_int_equal(lookup_number(tree, scramble(VICTIM) + i, i == 0 ? VICTIM : ENTRIES_FEW + i),
			                 TREE_OK);
			cost_end(&client, &cost);
			assert_int_equal(cost.fabric.atomics, 0);
		}
		walk_tree(tree, &result);
		assert_int_equal(result.count, ENTRIES_FEW + 64);
		walk_free(&result);
		tree_close(tree);
		assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
	}
	client.tree->options.environment.now_us = real_clock;
}

/*
 * Where READs are not atomic, one that took longer than the bound may have met a stamp that went round:
 * it is not believed, whatever its stamps say, and done again; in the end under the lock, where time does not
 * count.
 */
static void
test_late_reads(void **state)
{
	const FabricFaultPlan torn_lines = {.seed = 1, .tear_reads = true};
	uint64_t (*real_clock)(void *) = client.tree->options.environment.now_us;
	TreeRecord record;
	Tree *tree = numbers_tree(ENTRIES_LOW, &record);
	WalkResult result;
	uint32_t count;
	Cost cost;

	walk_tree(tree, &result);
	assert_int_equal(lookup(tree, VICTIM), TREE_OK);
	client.tree->options.environment.now_us = clock_in_steps;
	for (int atomic = 0; atomic < 2; atomic++)
	{
		assert_int_equal(fabric_fault_set(client.endpoints[0], atomic ? NULL : &torn_lines), FABRIC_OK);
		for (uint64_t over = 0; over < 2; over++)
		{
			bool late = !atomic && over != 0;

			clock_step = READ_BOUND_US + over;
			clock_steps = 2;
			cost_begin(&client, &cost);
			assert_int_equal(lookup(tree, VICTIM), TREE_OK);
			cost_end(&client, &cost);
			assert_int_equal(cost.fabric.round_trips, late ? 2 : 1);
			assert_int_equal(cost.tree.torn_reads, late);
		}
		/* All of them. */
		clock_steps = INT_MAX;
		cost_begin(&client, &cost);
		assert_int_equal(lookup(tree, VICTIM), TREE_OK);
		cost_end(&client, &cost);
		assert_int_equal(cost.fabric.round_trips, atomic ? 1 : READ_ATTEMPTS + 2);
		assert_int_equal(cost.tree.torn_reads, atomic ? 0 : READ_ATTEMPTS - 1);
		cost_begin(&client, &cost);
		assert_int_equal(scan_all(tree, TREE_FORWARD, &count), TREE_END);
		cost_end(&client, &cost);
		assert_int_equal(count, ENTRIES_LOW);
		/* Those that are read ahead by one chain are late together, and then each by itself. */
		if (atomic)
			assert_int_equal(cost.tree.torn_reads, 0);
		else
			assert_int_equal(cost.tree.torn_reads, result.leaves * READ_ATTEMPTS - 1);
		clock_steps = 0;
	}
	client.tree->options.environment.now_us = real_clock;
	walk_free(&result);
	tree_close(tree);
}

/* The same by a chain that really takes so long. */
static void
test_delayed_read(void **state)
{
	/* The first chain waits 50 ms with this seed. */
	const FabricFaultPlan delayed = {.seed = 6, .tear_reads = true, .delay_max_us = 60000};
	TreeRecord record;
	Tree *tree = numbers_tree(ENTRIES_FEW, &record);
	uint64_t begin;
	Cost cost;

	assert_int_equal(lookup(tree, VICTIM), TREE_OK);
	assert_int_equal(fabric_fault_set(client.endpoints[0], &delayed), FABRIC_OK);
	begin = test_now_us();
	cost_begin(&client, &cost);
	assert_int_equal(lookup(tree, VICTIM), TREE_OK);
	cost_end(&client, &cost);
	assert_true(test_now_us() - begin > READ_BOUND_US);
	assert_true(cost.tree.torn_reads >= 1);
	assert_true(cost.fabric.reads >= 2);
	assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
	tree_close(tree);
}

/* Reads the root, and the tid of an entry below its child `i`. */
static uint32_t
root_read(Tree *tree, uint64_t *root, uint32_t i)
{
	const NodeGeometry *g = &tree->geometry;
	uint32_t tid = 0;

	assert_int_equal(access_read_node(tree, tree->root, -1, root), TREE_OK);
	assert_in_range(i, 1, node_count(root) - 2);
	while (scramble(tid) <= root[inner_cell_word(g, i) + 2] ||
	       scramble(tid) >= root[inner_cell_word(g, i + 1) + 2])
		tid++;
	return tid;
}

/* A cell of the root leads to the child on the right of its own: a leaf, or a node above leaves. */
static void
test_pointer_too_far(void **state)
{
	for (int below = 0; below < 2; below++)
	{
		const uint32_t entries = below ? ENTRIES_HIGH : ENTRIES_LOW;
		TreeRecord record;
		Tree *tree = numbers_tree(entries, &record);
		const NodeGeometry *g = &tree->geometry;
		uint64_t root[NODE_MAX_BYTES / 8], wrong[NODE_MAX_BYTES / 8];
		uint32_t inside = root_read(tree, root, 1);
		uint32_t elsewhere = 0, count;
		WalkResult result;
		Cost cost;

		memcpy(wrong, root, INNER_BYTES);
		wrong[inner_cell_word(g, 1)] = root[inner_cell_word(g, 2)];
		poke_sealed(tree, wrong);
		cost_begin(&client, &cost);
		assert_int_equal(lookup(tree, inside), TREE_DAMAGED);
		cost_end(&client, &cost);
		assert_int_equal(cost.fabric.round_trips, 2 * DESCENT_ATTEMPTS);
		assert_int_equal(cost.tree.stale_reads, DESCENT_ATTEMPTS);
		cache_drop_tree(instance.shared, tree->tree);
		cost_begin(&client, &cost);
		assert_int_equal(insert(tree, scramble(inside) + 1, entries), TREE_DAMAGED);
		cost_end(&client, &cost);
		/* The parent; the leaf under its lock, and its release. */
		assert_int_equal(cost.fabric.round_trips, (below ? 2 : 3) * DESCENT_ATTEMPTS);
		assert_nothing_held();
		assert_int_equal(scan_all(tree, TREE_BACKWARD, &count), TREE_DAMAGED);
		assert_true(count < entries);
		assert_nothing_held();
		assert_int_equal(vacuum_all(tree, nobody_is_dead), TREE_END);
		while (scramble(elsewhere) <= root[inner_cell_word(g, 2) + 2])
			elsewhere++;
		assert_goes_on(&record, tree, scramble(elsewhere) + 1, entries, elsewhere);
		/* Right links lead a scan past the cell, and it posts the leaf again: then it is found. */
		assert_int_equal(scan_all(tree, TREE_FORWARD, &count), below ? TREE_DAMAGED : TREE_END);
		assert_true(below ? count < entries : count == entries + 2);
		assert_int_equal(lookup(tree, inside), below ? TREE_DAMAGED : TREE_OK);

		poke_sealed(tree, root);
		assert_int_equal(lookup(tree, inside), TREE_OK);
		verify_tids(tree, entries + 2, &result);
		walk_free(&result);
		tree_close(tree);
	}
}

/*
 * Right links go round, and a cell leads into the ring, so that the bound is above every node of it. A
 * step is a READ, or a lock and its release, and again these two for what seems to be owed to the parent. A
 * leaf that names itself is seen at once.
 */
static void
test_right_links_in_ring(void **state)
{
	/* A ring of two leaves, of one that names itself, and of two nodes above leaves. */
	for (int round = 0; round < 3; round++)
	{
		const int below = round == 2;
		const uint32_t entries = below ? ENTRIES_HIGH : ENTRIES_LOW;
		const uint64_t steps = round == 1 ? 3 : (uint64_t) DESCENT_ATTEMPTS * (4 * RIGHT_MOVES_MAX + 1);
		TreeRecord record;
		Tree *tree = numbers_tree(entries, &record);
		const NodeGeometry *g = &tree->geometry;
		uint64_t root[NODE_MAX_BYTES / 8], wrong[NODE_MAX_BYTES / 8], ring[NODE_MAX_BYTES / 8];
		uint64_t first, last, right;
		uint32_t inside = root_read(tree, root, 3), count;
		WalkResult result;
		Cost cost;

		memcpy(wrong, root, INNER_BYTES);
		first = root[inner_cell_word(g, 0)];
		last = root[inner_cell_word(g, round == 1 ? 0 : 1)];
		wrong[inner_cell_word(g, 3)] = first;
		assert_int_equal(access_read_node(tree, last, below, ring), TREE_OK);
		right = ring[HEADER_RIGHT];
		ring[HEADER_RIGHT] = first;
		poke_sealed(tree, ring);
		poke_sealed(tree, wrong);

		cost_begin(&client, &cost);
		assert_int_equal(lookup(tree, inside), TREE_DAMAGED);
		cost_end(&client, &cost);
		assert_in_range(cost.fabric.round_trips, 2, steps);
		cache_drop_tree(instance.shared, tree->tree);
		cost_begin(&client, &cost);
		assert_int_equal(insert(tree, scramble(inside) + 1, entries), TREE_DAMAGED);
		cost_end(&client, &cost);
		assert_in_range(cost.fabric.round_trips, 2, steps);
		assert_int_equal(scan_all(tree, TREE_BACKWARD, &count), TREE_DAMAGED);
		assert_true(count < entries);
		assert_int_equal(vacuum_all(tree, nobody_is_dead), below ? TREE_END : TREE_DAMAGED);
		assert_nothing_held();
		assert_int_equal(scan_all(tree, TREE_FORWARD, &count), below ? TREE_DAMAGED : TREE_END);
		assert_true(below ? count < entries : count == entries);

		ring[HEADER_RIGHT] = right;
		poke_sealed(tree, ring);
		poke_sealed(tree, root);
		assert_int_equal(lookup(tree, inside), TREE_OK);
		verify_tids(tree, entries, &result);
		walk_free(&result);
		tree_close(tree);
	}
}

/* Entries of one leaf whose keys are out of line, and tied; and tries at it that others make void. */
#define OVERFLOW_ENTRIES 20
#define OVERFLOW_OUTRUNS 600u

/* What happens before each READ of the leaf. */
typedef struct Rewriter
{
	Tree *tree;
	uint64_t pointer;    /* of an image that is another entry's by now */
	uint64_t word;       /* what it began with */
	uint32_t reads;      /* of the leaf */
	uint32_t left;       /* rewrites by others that are still to come; then the image is what it was */
	uint32_t stop_after; /* reads, until the client is to stop */
} Rewriter;

static void
should_stop(bool stop)
{
	for (int slot = 0; slot < FIXTURE_SLOTS; slot++)
		instance.environment->slots[slot].stop = stop;
}

static void
rewrite_leaf(void *argument, uint64_t leaf)
{
	Rewriter *rewriter = argument;
	Tree *tree = rewriter->tree;
	uint64_t image[NODE_MAX_BYTES / 8];

	rewriter->reads++;
	should_stop(rewriter->stop_after != 0 && rewriter->reads >= rewriter->stop_after);
	if (rewriter->left == 0)
		return;
	assert_int_equal(access_read_node(tree, leaf, 0, image), TREE_OK);
	image[HEADER_GENERATION]++;
	poke_sealed(tree, image);
	if (--rewriter->left == 0)
		poke(tree, rewriter->pointer, 0, &rewriter->word, 1);
}

/* A scan of the whole tree while others do that; *count is what it returned. */
static TreeStatus
scan_beside(Rewriter *rewriter, int *count)
{
	const TreeBatch *batch;
	TreeScan *scan;
	TreeStatus status;

	*count = 0;
	rewriter->reads = 0;
	assert_int_equal(tree_scan_open(rewriter->tree, &scan), TREE_OK);
	tree_scan_on_leaf(scan, rewrite_leaf, rewriter);
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL), TREE_OK);
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
		*count += batch->count;
	tree_scan_close(scan);
	should_stop(false);
	return status;
}

/*
 * A overflow key that is not its cell's is damage if the leaf stays what it is.  If others have rewritten the leaf each time the
 * scan goes on, or ends as one that waits for a lock in vain.
 */
static void
test_keys_of_others(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	const NodeGeometry *g = &tree->geometry;
	uint32_t patience = client.tree->options.operation_timeout_ms;
	uint64_t leaf[NODE_MAX_BYTES / 8], wrong;
	OverflowReference reference;
	Rewriter rewriter = {.tree = tree};
	int count;

	for (uint32_t tid = 0; tid < OVERFLOW_ENTRIES; tid++)
		must_insert_tied(tree, tid, 200, "", false);
	assert_int_equal(access_read_node(tree, tree->root, 0, leaf), TREE_OK);
	cell_overflow(g, leaf + leaf_cell_word(g, VICTIM % OVERFLOW_ENTRIES), &reference);
	rewriter.pointer = pointer_make(reference.memory_node, reference.offset);
	assert_int_equal(scan_beside(&rewriter, &count), TREE_END);
	assert_int_equal(count, OVERFLOW_ENTRIES);
	assert_int_equal(rewriter.reads, 1);

	assert_int_equal(access_execute(tree, reference.memory_node,
	                                &(FabricOp){.opcode = FABRIC_READ,
	                                            .region = FABRIC_NODES,
	                                            .length = 8,
	                                            .offset = reference.offset,
	                                            .buffer = &rewriter.word},
	                                1),
	                 TREE_OK);
	wrong = ~rewriter.word;
	poke(tree, rewriter.pointer, 0, &wrong, 1);
	assert_int_equal(scan_beside(&rewriter, &count), TREE_DAMAGED);
	assert_int_equal(rewriter.reads, DESCENT_ATTEMPTS);

	client.tree->options.operation_timeout_ms = 1;
	rewriter.left = UINT32_MAX;
	assert_int_equal(scan_beside(&rewriter, &count), TREE_TIMED_OUT);
	assert_true(rewriter.reads > DESCENT_ATTEMPTS);
	client.tree->options.operation_timeout_ms = 600000;
	rewriter.stop_after = 3 * DESCENT_ATTEMPTS;
	assert_int_equal(scan_beside(&rewriter, &count), TREE_STOPPED);
	assert_int_equal(rewriter.reads, rewriter.stop_after);
	rewriter.stop_after = 0;
	rewriter.left = OVERFLOW_OUTRUNS;
	assert_int_equal(scan_beside(&rewriter, &count), TREE_END);
	assert_int_equal(count, OVERFLOW_ENTRIES);
	assert_int_equal(rewriter.reads, OVERFLOW_OUTRUNS);
	client.tree->options.operation_timeout_ms = patience;
	assert_nothing_held();
	tree_close(tree);
}

static int
start(void **state)
{
	/* All nodes share a lock word: one that stays locked stops everything. */
	test_lock_words = 1;
	return fixture_start(state);
}

/* ---- nodes of release 1.0 ---- */

/* All pointers of the tree's nodes get stamps, as that release wrote them: of all kinds, as a hint might be stale. */
static void
stamp_pointers(Tree *tree)
{
	const NodeGeometry *g = &tree->geometry;
	uint64_t node[NODE_MAX_BYTES / 8];
	uint64_t below = tree->root;
	uint64_t stamp = 0;

	for (int level = -1; below != POINTER_NONE; level = (int) node_level(node) - 1)
	{
		uint64_t right = below;

		below = POINTER_NONE;
		while (pointer_address(right) != POINTER_NONE)
		{
			assert_int_equal(access_read_node(tree, right, level, node), TREE_OK);
			right = node[HEADER_RIGHT];
			for (uint32_t i = 0; node_level(node) > 0 && i < node_count(node); i++)
			{
				uint64_t *child = node + inner_cell_word(g, i);

				if (below == POINTER_NONE)
					below = *child;
				*child |= ++stamp & STAMP_MASK;
			}
			if (pointer_address(right) != POINTER_NONE)
				node[HEADER_RIGHT] |= ++stamp & STAMP_MASK;
			poke_sealed(tree, node);
		}
	}
	assert_true(stamp > 100);
}

/* Stamps in pointers mean nothing: all is found, splits and merges go on, and the checker finds nothing wrong. */
static void
test_stamped_pointers(void **state)
{
	TreeRecord record;
	Tree *tree = numbers_tree(ENTRIES_HIGH, &record);
	uint32_t count;
	WalkResult result;

	stamp_pointers(tree);
	verify_tids(tree, ENTRIES_HIGH, &result);
	walk_free(&result);
	for (uint32_t tid = 0; tid < ENTRIES_HIGH; tid += 7)
		assert_int_equal(lookup(tree, tid), TREE_OK);
	assert_int_equal(scan_all(tree, TREE_FORWARD, &count), TREE_END);
	assert_int_equal(count, ENTRIES_HIGH);
	assert_int_equal(scan_all(tree, TREE_BACKWARD, &count), TREE_END);
	assert_int_equal(count, ENTRIES_HIGH);
	for (uint32_t tid = ENTRIES_HIGH; tid < ENTRIES_HIGH + ENTRIES_LOW; tid++)
		assert_int_equal(insert(tree, scramble(tid), tid), TREE_OK);
	verify_tids(tree, ENTRIES_HIGH + ENTRIES_LOW, &result);
	walk_free(&result);
	stamp_pointers(tree);
	assert_int_equal(vacuum_all(tree, everybody_is_dead), TREE_END);
	assert_int_equal(scan_all(tree, TREE_FORWARD, &count), TREE_END);
	assert_int_equal(count, 0);
	assert_int_equal(insert(tree, scramble(VICTIM), VICTIM), TREE_OK);
	assert_int_equal(lookup(tree, VICTIM), TREE_OK);
	assert_nothing_held();
	tree_close(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_torn_leaf),       cmocka_unit_test(test_torn_before_removal),
		cmocka_unit_test(test_torn_inner),      cmocka_unit_test(test_torn_parent),
		cmocka_unit_test(test_sum_of_the_dead), cmocka_unit_test(test_missing_sums),
		cmocka_unit_test(test_late_reads),      cmocka_unit_test(test_delayed_read),
		cmocka_unit_test(test_pointer_too_far), cmocka_unit_test(test_right_links_in_ring),
		cmocka_unit_test(test_keys_of_others),  cmocka_unit_test(test_stamped_pointers),
	};

	return cmocka_run_group_tests(tests, start, fixture_stop);
}
