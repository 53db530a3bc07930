/*
 * test_give_extents.c
 *		Extents that nothing is in go back to the memory node: those, and no others, whatever ends it on the way; and what is left is
 *		used and found as before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fault.h"
#include "support/merge_fixture.h"
#include "support/reclaim_fixture.h"
#include "tree/space/space.h"
#include "tree/space/allocate.h"

/* Of a tree of some fifteen extents. */
#define ENTRIES 40000
#define SMALL_NODE_BYTES (12ull << 20)

/* Gives all that it can; how many bytes. */
static uint64_t
give_all(Tree *tree)
{
	TreeGive give = {0};
	TreeStatus status;

	while ((status = tree_give_next(tree, &give)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	assert_int_equal(give.missed, 0);
	return give.bytes;
}

/* What the instance believes that the tree has is what it has. */
static void
bytes_must_agree(const CheckedTree *f)
{
	TreeStatistics statistics;

	require_ok(tree_estimate(f->tree, &statistics));
	assert_int_equal(statistics.extent_bytes, extent_bytes(f));
	assert_int_equal(tree_part(f->tree, 0)->tree_bytes, extent_bytes(f));
}

/* All that the tree has free is taken, and spoiled: whoever has it besides notices. */
static void
spoil_free(CheckedTree *f)
{
	static uint8_t image[NODE_MAX_BYTES];
	uint64_t before = extent_bytes(f);

	memset(image, 0xa5, sizeof(image));
	for (uint32_t i = 0; extent_bytes(f) == before; i++)
	{
		FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .buffer = image};
		uint64_t pointer, generation;

		require_ok(allocate_node(f->tree, 0, i % 2, &pointer, &generation));
		op.offset = pointer_offset(pointer);
		op.length = node_bytes(&f->tree->geometry, i % 2);
		assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	}
}

static void
must_be_whole(CheckedTree *f, uint64_t entries)
{
	TreeStatistics statistics;

	spoil_free(f);
	compare_check(f, &statistics);
	compare_everything(f, entries, 20);
}

/* Another tree takes all that the memory node has, and writes to it. */
static void
use_up(void)
{
	static uint8_t image[EXTENT_MIN_BYTES];
	TreeRecord other;
	DirectoryExtent extent = {.extents = 0};

	memset(image, 0x5a, sizeof(image));
	test_tree_create(&client, &keyspace(KEYSPACE_16_SINGLE)->format, &other);
	while (directory_extent(client.tree, 0, other.tree, 0, extent.extents, &extent) == TREE_OK)
		for (uint64_t at = FABRIC_STRIPE_BYTES; at < extent.bytes; at += FABRIC_STRIPE_BYTES)
		{
			FabricOp op = {.opcode = FABRIC_WRITE,
			               .region = FABRIC_NODES,
			               .length = FABRIC_STRIPE_BYTES,
			               .offset = extent.offset + at,
			               .buffer = image};

			assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
		}
	require_ok(tree_drop(client.tree, other.tree, tree_home(other.root)));
}

/* Ascending keys, of which the oldest go, or all: so does the memory, and the rest is as it was, in this incarnation and the next. */
static void
give_ascending(KeySpaceKind kind, uint64_t first, uint64_t end, uint64_t most_percent)
{
	CheckedTree f;
	uint64_t before, after, given;

	checked_tree_open(&f, kind);
	fill(&f, 0, ENTRIES);
	assert_int_equal(give_all(f.tree), 0);
	before = extent_bytes(&f);
	empty(&f, first, end);
	assert_int_equal(give_all(f.tree), 0);
	assert_true(merge_with(f.tree).leaves > 0);
	given = give_all(f.tree);
	after = extent_bytes(&f);
	print_message("%s: %llu of %llu KB are left\n", f.space->name, (unsigned long long) after / 1024,
	              (unsigned long long) before / 1024);
	assert_int_equal(before - after, given);
	assert_true(after * 100 <= before * most_percent);
	bytes_must_agree(&f);
	use_up();
	compare_everything(&f, ENTRIES, 20);
	fill(&f, first, end);
	bytes_must_agree(&f);
	must_be_whole(&f, ENTRIES);
	next_incarnation(&f);
	(void) reclaim(f.tree);
	must_be_whole(&f, ENTRIES);
	checked_tree_close(&f);
}

static void
test_ascending(void **state)
{
	give_ascending(KEYSPACE_16_SINGLE, 0, ENTRIES / 10 * 9, 55);
	give_ascending(KEYSPACE_16_SINGLE, 0, ENTRIES, 50);
	give_ascending(KEYSPACE_16_SINGLE, ENTRIES / 4, ENTRIES / 4 * 3, 75);
}

/* Little that is free stays where it is: the next nodes are made of it. */
static void
test_a_quarter_stays(void **state)
{
	CheckedTree f;
	uint64_t before;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	before = extent_bytes(&f);
	empty(&f, 0, ENTRIES / 5);
	assert_true(merge_with(f.tree).leaves > 0);
	assert_true(tree_freed_bytes(f.tree) > 2 * EXTENT_MIN_BYTES);
	assert_int_equal(give_all(f.tree), 0);
	assert_int_equal(extent_bytes(&f), before);
	checked_tree_close(&f);
}

/* Empties the tree of a new fixture and merges. */
static void
open_empty(CheckedTree *f)
{
	checked_tree_open(f, KEYSPACE_16_SINGLE);
	fill(f, 0, ENTRIES / 2);
	empty(f, 0, ENTRIES / 2);
	assert_true(merge_with(f->tree).leaves > 0);
}

/* A node that somebody has taken keeps its extent, and no other one. */
static void
test_taken_node(void **state)
{
	CheckedTree f;
	uint64_t pointer, generation, before, given;

	open_empty(&f);
	/* As the free nodes are: of the lowest unit that has some. */
	require_ok(freed_take(f.tree, 0, 0, &pointer, &generation));
	before = extent_bytes(&f);
	given = give_all(f.tree);
	assert_true(given > 0);
	assert_int_equal(extent_bytes(&f), before - given);
	use_up();
	/* It is the tree's still: as free as it was, for this incarnation and for the next. */
	require_ok(freed_put(f.tree, pointer, 0, generation));
	assert_true(give_all(f.tree) > 0);
	must_be_whole(&f, 10);
	checked_tree_close(&f);
}

#define RUNS 5u

/* Bytes of the spare runs that are there still. */
static uint64_t
spare_bytes(const CheckedTree *f, const uint64_t *runs)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < RUNS; i++)
		bytes += runs_bytes(tree_part(f->tree, 0), runs[i], runs[i] + CHUNK_BYTES);
	return bytes;
}

/* Returned nodes, and what is left of runs, are free as others are. */
static void
test_runs_and_returned(void **state)
{
	CheckedTree f;
	uint64_t pointers[RUNS], generations[RUNS], runs[RUNS], run_generations[RUNS];
	uint64_t returned = 0, stay = 0;

	/* Of runs in several extents no more is cut, and nodes there are taken and not used. */
	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	for (uint32_t i = 0; i < RUNS; i++)
	{
		uint64_t bytes;

		fill(&f, i * ENTRIES / 12, (i + 1) * ENTRIES / 12);
		/* Less is the end of an extent. */
		do
		{
			bytes = CHUNK_BYTES;
			require_ok(allocate_run(f.tree, 0, 0, &bytes, &runs[i], &run_generations[i]));
		} while (bytes < CHUNK_BYTES);
		require_ok(allocate_node(f.tree, 0, i % 2, &pointers[i], &generations[i]));
	}
	fill(&f, RUNS * ENTRIES / 12, ENTRIES / 2);
	for (uint32_t i = 0; i < RUNS - 1; i++)
	{
		StateRun run = {runs[i], runs[i] + CHUNK_BYTES, run_generations[i], STATE_STRIPES, 0};

		assert_true(runs_found(f.tree, 0, &run));
	}
	assert_int_equal(spare_bytes(&f, runs), (RUNS - 1) * CHUNK_BYTES);
	empty(&f, 0, ENTRIES / 2);
	assert_true(merge_with(f.tree).leaves > 0);
	for (uint32_t i = 0; i < RUNS; i++)
	{
		allocate_return(f.tree, pointers[i], i % 2, generations[i]);
		returned += node_bytes(&f.tree->geometry, i % 2);
	}
	(void) give_all(f.tree);
	for (uint32_t i = 0; i < RUNS; i++)
		stay +=
			runs_bytes(tree_part(f.tree, 0), pointer_offset(pointers[i]), pointer_offset(pointers[i]) + 1);
	assert_true(spare_bytes(&f, runs) < (RUNS - 1) * CHUNK_BYTES);
	assert_true(stay < returned);
	use_up();
	must_be_whole(&f, 10);
	checked_tree_close(&f);
}

/* The offset of a place that the tree has free, of an extent that is neither the newest nor the first. */
static uint64_t
free_place(const CheckedTree *f)
{
	const StateAtNode *at = tree_part(f->tree, 0);
	ExtentHeader header;
	bool good;

	require_ok(extent_header_read(f->tree, 0, at->extent_offset, &header, &good));
	require_ok(extent_header_read(f->tree, 0, header.previous, &header, &good));
	for (uint64_t extent = header.previous; extent != 0; extent = header.previous)
	{
		const StateUnit *unit = unit_find(client.tree->shared->states, at, extent);

		if (unit != NULL && unit->first[0] != POINTER_NONE)
			return pointer_offset(unit->first[0]);
		require_ok(extent_header_read(f->tree, 0, extent, &header, &good));
	}
	fail();
	return 0;
}

/* An extent of which a place does not say that it is free is not given, whatever its count says. */
static void
test_place_in_use(void **state)
{
	for (int wrong = 0; wrong < 3; wrong++)
	{
		CheckedTree f;
		_Alignas(LINE_BYTES) uint64_t line[LINE_WORDS];
		FabricOp op = {.opcode = FABRIC_READ, .region = FABRIC_NODES, .length = sizeof(line), .buffer = line};
		uint64_t generation;

		open_empty(&f);
		op.offset = free_place(&f);
		assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
		generation = line[HEADER_GENERATION];
		if (wrong == 0)
			line[HEADER_STATE] = node_state_word(generation, 0, 0, 0);
		else if (wrong == 1)
			line[HEADER_STATE] = node_state_word(generation, 0, 0, NODE_BLOCKS);
		else
			line[HEADER_SELF] += LINE_BYTES;
		op.opcode = FABRIC_WRITE;
		assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
		assert_true(give_all(f.tree) > 0);
		/* It is the tree's. */
		use_up();
		op.opcode = FABRIC_READ;
		assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
		assert_int_equal(line[HEADER_TREE], f.record.tree);
		assert_int_equal(line[HEADER_GENERATION], generation);
		checked_tree_close(&f);
	}
}

/* Who is in a call may be about to take a node: nothing is given meanwhile. */
static void
test_beside_a_call(void **state)
{
	CheckedTree f;
	TestClient other;
	Tree *tree;
	TreeGive give = {0};
	uint64_t before;
	int section;
	TreeStatus status;

	open_empty(&f);
	test_client_open(&other, &instance, 1);
	require_ok(tree_open(other.tree, f.record.tree, f.record.root, &f.space->format, keyspace_compare,
	                     (void *) f.space, &tree));
	before = extent_bytes(&f);
	require_ok(critical_enter(tree, &section));
	while ((status = tree_give_next(f.tree, &give)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	assert_true(give.missed > 0);
	assert_int_equal(give.bytes, 0);
	assert_int_equal(extent_bytes(&f), before);
	critical_leave(tree, section);
	assert_true(give_all(f.tree) > 0);
	/* Inside of another call it does not wait for itself. */
	fill(&f, 0, ENTRIES / 2);
	empty(&f, 0, ENTRIES / 2);
	(void) merge_with(f.tree);
	require_ok(critical_enter(f.tree, &section));
	assert_int_equal(give_all(f.tree), 0);
	critical_leave(f.tree, section);
	assert_true(give_all(f.tree) > 0);
	tree_close(tree);
	assert_int_equal(test_client_close(&other), TREE_OK);
	checked_tree_close(&f);
}

/* Nor where a chain of the tree may land yet, where earlier incarnations were not looked through, or where the instance is not alone. */
static void
test_not_now(void **state)
{
	CheckedTree f;

	open_empty(&f);
	state_leave_unsettled(f.tree->state, 0);
	assert_int_equal(give_all(f.tree), 0);
	state_node_fenced(instance.shared, 0);
	tree_part(f.tree, 0)->past.look = STATE_LOOK_DUE;
	assert_int_equal(give_all(f.tree), 0);
	tree_part(f.tree, 0)->past.look = STATE_LOOK_UNDER_WAY;
	assert_int_equal(give_all(f.tree), 0);
	tree_part(f.tree, 0)->past.look = STATE_LOOK_OVER;
	instance.shared->options.alone = false;
	assert_int_equal(give_all(f.tree), 0);
	instance.shared->options.alone = true;
	assert_true(give_all(f.tree) > 0);
	checked_tree_close(&f);
}

/* What free nodes earlier incarnations have left is given by the next one, which has found it. */
static void
test_next_incarnation(void **state)
{
	CheckedTree f;
	uint64_t before;

	open_empty(&f);
	next_incarnation(&f);
	before = extent_bytes(&f);
	assert_int_equal(give_all(f.tree), 0);
	assert_true(reclaim(f.tree) > 0);
	assert_true(give_all(f.tree) > before / 2);
	bytes_must_agree(&f);
	use_up();
	/* And what is left is found by the one after that, past the gaps. */
	next_incarnation(&f);
	assert_true(reclaim(f.tree) + 2 * EXTENT_MIN_BYTES > extent_bytes(&f));
	must_be_whole(&f, 10);
	checked_tree_close(&f);
}

/* Damaged headers that refer to each other in a circle: the walk comes to an end, and what it gives is not given twice. */
static void
test_circle(void **state)
{
	CheckedTree f;
	ExtentHeader header;
	FabricOp op = {
		.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = sizeof(header), .buffer = &header};
	uint64_t newest;
	TreeGive give = {0};
	bool good;

	open_empty(&f);
	newest = tree_part(f.tree, 0)->extent_offset;
	for (uint64_t extent = newest; extent != 0; extent = header.previous)
	{
		op.offset = extent;
		require_ok(extent_header_read(f.tree, 0, extent, &header, &good));
	}
	header.previous = newest;
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	for (uint32_t calls = 0; tree_give_next(f.tree, &give) == TREE_OK; calls++)
		assert_true(calls < 200);
	assert_true(give.bytes > 0);
	bytes_must_agree(&f);
	checked_tree_close(&f);
}

/* Processes that give at the same time. */
#define GIVERS 3

static void
together_body(int number, void *argument)
{
	const CheckedTree *f = argument;
	FabricFaultPlan plan = {.seed = (uint64_t) number + 1, .delay_max_us = 100};
	TestClient mine;
	Tree *tree;
	TreeGive give;
	TreeStatus status = TREE_END;

	test_client_open(&mine, &instance, (uint32_t) number + 1);
	if (tree_open(mine.tree, f->record.tree, f->record.root, &f->space->format, keyspace_compare,
	              (void *) f->space, &tree) != TREE_OK ||
	    fabric_fault_set(mine.endpoints[0], &plan) != FABRIC_OK)
		_exit(2);
	test_meet(&instance, 0, GIVERS);
	/* Who finds the others in a call for too long tries again. */
	do
	{
		memset(&give, 0, sizeof(give));
		while ((status = tree_give_next(tree, &give)) == TREE_OK)
			;
		__atomic_fetch_add(&instance.scratch[1], give.bytes, __ATOMIC_SEQ_CST);
	} while (status == TREE_END && give.missed > 0);
	tree_close(tree);
	_exit(test_client_close(&mine) == TREE_OK && status == TREE_END ? 0 : 3);
}

/* Together they give what one would, each extent once, and none is lost between them. */
static void
test_together(void **state)
{
	CheckedTree alone;
	uint64_t left;

	open_empty(&alone);
	(void) give_all(alone.tree);
	left = extent_bytes(&alone);
	checked_tree_close(&alone);
	for (int round = 0; round < 10; round++)
	{
		CheckedTree f;
		uint64_t before;

		open_empty(&f);
		before = extent_bytes(&f);
		memset(instance.scratch, 0, 2 * sizeof(uint64_t));
		assert_int_equal(test_processes(GIVERS, together_body, &f), 0);
		assert_int_equal(give_all(f.tree), 0);
		assert_int_equal(before - extent_bytes(&f), instance.scratch[1]);
		bytes_must_agree(&f);
		assert_int_equal(extent_bytes(&f), left);
		use_up();
		must_be_whole(&f, 10);
		checked_tree_close(&f);
	}
}

/* ---- what ends it on the way ---- */

/* Ends this process at the n-th chain or call of it. */
static uint64_t steps_left;

static void
die_at_step(void *argument, const char *name, bool before)
{
	if (steps_left > 0 && --steps_left == 0)
		_exit(7);
}

static void
giving_body(int number, void *argument)
{
	const CheckedTree *f = argument;
	TestClient mine;
	Tree *tree;

	test_client_open(&mine, &instance, 1);
	if (tree_open(mine.tree, f->record.tree, f->record.root, &f->space->format, keyspace_compare,
	              (void *) f->space, &tree) != TREE_OK)
		_exit(2);
	mine.tree->options.environment.crash_point = die_at_step;
	(void) give_all(tree);
	_exit(0);
}

/*
 * Who gives dies before or behind any of his chains and calls, and with him the instance: the next incarnation finds all that is the
 * tree's, once, and the memory node has what it was given.
 */
static void
test_death(void **state)
{
	TestClient dead;
	bool over = false;

	for (uint64_t step = 1; !over; step += step < 40 ? 1 : 3)
	{
		CheckedTree f;

		checked_tree_open(&f, KEYSPACE_16_SINGLE);
		fill(&f, 0, 6000);
		empty(&f, 0, 5000);
		assert_true(merge_with(f.tree).leaves > 0);
		steps_left = step;
		over = test_processes(1, giving_body, &f) == 0;
		/* The slot's next process does not find it in a call. */
		test_client_open(&dead, &instance, 1);
		tree_client_rest(dead.tree);
		(void) test_client_close(&dead);
		next_incarnation(&f);
		(void) reclaim(f.tree);
		(void) give_all(f.tree);
		use_up();
		fill(&f, 0, 5000);
		must_be_whole(&f, 6000);
		checked_tree_close(&f);
	}
}

/* The memory node ends behind any of the calls, and is there again. */
static void
test_memory_node_restarts(void **state)
{
	CheckedTree f;
	TreeGive give = {0};
	TreeStatus status;
	uint64_t before;

	open_empty(&f);
	before = extent_bytes(&f);
	while ((status = tree_give_next(f.tree, &give)) == TREE_OK)
		if (give.bytes > 0)
			break;
	assert_int_equal(status, TREE_OK);
	tree_scan_close(f.scan);
	tree_close(f.tree);
	test_node_kill(&nodes[0]);
	fixture_node_restart();
	reopen(&f);
	assert_int_equal(extent_bytes(&f), before - give.bytes);
	(void) reclaim(f.tree);
	assert_true(give_all(f.tree) > 0);
	use_up();
	must_be_whole(&f, 10);
	checked_tree_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ascending),    cmocka_unit_test(test_a_quarter_stays),
		cmocka_unit_test(test_taken_node),   cmocka_unit_test(test_runs_and_returned),
		cmocka_unit_test(test_place_in_use), cmocka_unit_test(test_beside_a_call),
		cmocka_unit_test(test_not_now),      cmocka_unit_test(test_next_incarnation),
		cmocka_unit_test(test_circle),       cmocka_unit_test(test_together),
		cmocka_unit_test(test_death),        cmocka_unit_test(test_memory_node_restarts),
	};

	test_alone = true;
	fixture_options = (FixtureOptions){.node_bytes = SMALL_NODE_BYTES};
	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
