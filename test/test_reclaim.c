/*
 * test_reclaim.c
 *		What a run of an instance leaves free in a tree's extents the next one finds: all of it but what is of blocks, and
 *		nothing that is in use, that was given out in this incarnation, or that only looks free.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fault.h"
#include "support/merge_fixture.h"
#include "support/reclaim_fixture.h"
#include "../tree/internal.h"
#include "tree/shared/state.h"
#include "tree/space/allocate.h"

/* Entries of a tree of some 60 leaves, and of one of several inner nodes. */
#define ENTRIES 3000
#define MANY_ENTRIES 20000
#define INCARNATIONS 40
/* That this many entries take: a piece is 256 KB, or the rest of an extent. */
#define PIECES_MOST 100

/* Whether all keys of the space lie in their cells: no blocks then. */
static bool
without_blocks(KeySpaceKind kind)
{
	return keyspace(kind)->format.lossless;
}

static void
node_fill(uint64_t pointer, uint32_t bytes, int byte)
{
	static uint8_t image[NODE_MAX_BYTES];
	FabricOp op = {.opcode = FABRIC_WRITE,
	               .region = FABRIC_NODES,
	               .length = bytes,
	               .offset = pointer_offset(pointer),
	               .buffer = image};

	memset(image, byte, bytes);
	assert_int_equal(fabric_execute(client.endpoints[pointer_memory_node(pointer)], &op, 1), FABRIC_OK);
}

/*
 * Takes leaves, and with `inner` as many inner nodes, until the tree gets another extent, and spoils each: whoever has
 * it besides notices.  Returns how many bytes were taken of those extents that there are.
 */
static uint64_t
take_all(CheckedTree *f, bool inner)
{
	uint64_t before = extent_bytes(f);
	uint64_t taken = 0;

	for (uint32_t i = 0;; i++)
	{
		uint32_t level = inner ? i % 2 : 0;
		uint32_t bytes = node_bytes(&f->tree->geometry, level);
		uint64_t pointer, generation;

		require_ok(allocate_node(f->tree, 0, level, &pointer, &generation));
		assert_true(generation > 1);
		if (extent_bytes(f) != before)
			return taken;
		node_fill(pointer, bytes, 0xa5);
		taken += bytes;
	}
}

/* Lives in which entries come and go, each cut off: the extents of the first few are enough for all. */
static void
test_lives(void **state)
{
	for (int kind = 0; kind < KEYSPACES; kind++)
	{
		CheckedTree f;
		TreeStatistics statistics;
		uint64_t early = 0, found = 0;

		if (!without_blocks((KeySpaceKind) kind))
			continue;
		checked_tree_open(&f, (KeySpaceKind) kind);
		fill(&f, 0, ENTRIES);
		for (uint64_t run = 0; run < INCARNATIONS; run++)
		{
			uint64_t from = run % 4 * ENTRIES / 4;

			next_incarnation(&f);
			found += reclaim(f.tree);
			assert_int_equal(reclaim(f.tree), 0);
			empty(&f, from, from + ENTRIES / 4);
			(void) merge_with(f.tree);
			fill(&f, from, from + ENTRIES / 4);
			/* Every quarter has come anew twice. */
			if (run == 7)
				early = extent_bytes(&f);
		}
		assert_true(found > (uint64_t) INCARNATIONS * NODE_MAX_BYTES / 2);
		assert_int_equal(extent_bytes(&f), early);
		compare_check(&f, &statistics);
		compare_everything(&f, ENTRIES, 20);
		checked_tree_close(&f);
	}
}

/* Whoever is given all that is free, and spoils it, hurts nobody; and it is all but the nodes of the tree. */
static void
test_free_is_free(void **state)
{
	for (int kind = 0; kind < KEYSPACES; kind++)
	{
		CheckedTree f;
		TreeStatistics statistics;
		/* In one of them with inner nodes below the root. */
		uint64_t entries = kind == KEYSPACE_16_SINGLE ? MANY_ENTRIES : ENTRIES;
		uint64_t taken, extents, headers;

		checked_tree_open(&f, (KeySpaceKind) kind);
		fill(&f, 0, entries);
		empty(&f, entries / 3, entries / 2);
		assert_true(merge_with(f.tree).leaves > 0);
		next_incarnation(&f);
		assert_true(reclaim(f.tree) > 0);
		extents = extent_bytes(&f);
		headers = record_now(&f).extents;
		taken = take_all(&f, false);
		compare_check(&f, &statistics);
		compare_everything(&f, entries, 20);
		/* What is missing are the extents' headers. */
		if (without_blocks((KeySpaceKind) kind))
			assert_true(statistics.node_bytes + taken + tree_freed_bytes(f.tree) +
			                headers * FABRIC_STRIPE_BYTES >=
			            extents);
		checked_tree_close(&f);
	}
}

/* Nodes that this incarnation takes before anybody looks. */
#define OWN 400

/* Nodes that this incarnation has taken and not written yet are not found, of the newest extents, and of those it has got. */
static void
test_own_incarnation(void **state)
{
	CheckedTree f;
	TreeStatistics statistics;
	uint64_t pointers[OWN], generation, before, bytes = 0;
	uint32_t count = 0;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	next_incarnation(&f);
	before = extent_bytes(&f);
	/* Or the first of them would look. */
	instance.shared->options.alone = false;
	for (; extent_bytes(&f) < before + 2 * EXTENT_MIN_BYTES; count++)
	{
		assert_true(count < OWN);
		require_ok(allocate_node(f.tree, 0, count % 2, &pointers[count], &generation));
	}
	instance.shared->options.alone = true;
	/* Piece by piece, with others taken in between. */
	while (tree_reclaim_next(f.tree, &bytes) == TREE_OK && count < OWN)
	{
		require_ok(allocate_node(f.tree, 0, count % 2, &pointers[count], &generation));
		count++;
	}
	(void) reclaim(f.tree);
	for (uint32_t i = 0; i < count; i++)
		node_fill(pointers[i], node_bytes(&f.tree->geometry, i % 2), (int) (i % 100));
	(void) take_all(&f, true);
	for (uint32_t i = 0; i < count; i++)
	{
		uint8_t line[LINE_BYTES];
		FabricOp op = {.opcode = FABRIC_READ,
		               .region = FABRIC_NODES,
		               .length = sizeof(line),
		               .offset = pointer_offset(pointers[i]),
		               .buffer = line};

		assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
		assert_int_equal(line[0], i % 100);
		assert_int_equal(line[LINE_BYTES - 1], i % 100);
	}
	compare_check(&f, &statistics);
	checked_tree_close(&f);
}

/* Beside other instances nothing of what may be theirs is looked at. */
static void
test_not_alone(void **state)
{
	CheckedTree f;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	next_incarnation(&f);
	instance.shared->options.alone = false;
	assert_int_equal(reclaim(f.tree), 0);
	fill(&f, ENTRIES, 2 * ENTRIES);
	instance.shared->options.alone = true;
	/* Nothing was found by who needed nodes, either. */
	assert_true(reclaim(f.tree) > 0);
	checked_tree_close(&f);
}

/* A merge ends the looking: what it makes free is on its list alone. */
static void
test_merge_first(void **state)
{
	CheckedTree f;
	TreeStatistics statistics;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	next_incarnation(&f);
	empty(&f, 0, ENTRIES / 2);
	assert_true(merge_with(f.tree).leaves > 0);
	assert_int_equal(reclaim(f.tree), 0);
	(void) take_all(&f, true);
	compare_check(&f, &statistics);
	compare_everything(&f, ENTRIES, 20);
	/* The incarnation after that looks again. */
	next_incarnation(&f);
	(void) reclaim(f.tree);
	checked_tree_close(&f);
}

/* While somebody looks at a piece nothing is merged: it would be found by him, too, or be lost. */
static void
test_merge_beside_look(void **state)
{
	CheckedTree f;
	TreeStatistics statistics;
	TreeMergeCounts counts;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	next_incarnation(&f);
	empty(&f, 0, ENTRIES / 2);
	tree_part(f.tree, 0)->past.look = STATE_LOOK_UNDER_WAY;
	counts = merge_with(f.tree);
	assert_int_equal(counts.leaves, 0);
	assert_true(counts.missed > 0);
	assert_int_equal(tree_freed_bytes(f.tree), 0);
	tree_part(f.tree, 0)->past.look = STATE_LOOK_DUE;
	assert_true(merge_with(f.tree).leaves > 0);
	assert_true(tree_freed_bytes(f.tree) > 0);
	compare_check(&f, &statistics);
	compare_everything(&f, ENTRIES, 20);
	checked_tree_close(&f);
}

/* Other trees, as many as have a state. */
static TreeRecord others[20];
static Tree *open_others[20];

static TreeStatus
other_open(uint32_t i)
{
	return tree_open(client.tree, others[i].tree, others[i].root, &keyspace(KEYSPACE_16_SINGLE)->format, NULL,
	                 NULL, &open_others[i]);
}

static void
others_create(void)
{
	assert_true(instance.options.trees <= 20);
	for (uint32_t i = 0; i < instance.options.trees; i++)
		test_tree_create(&client, &keyspace(KEYSPACE_16_SINGLE)->format, &others[i]);
}

static void
others_drop(void)
{
	for (uint32_t i = 0; i < instance.options.trees; i++)
	{
		tree_close(open_others[i]);
		require_ok(tree_drop(client.tree, others[i].tree, tree_home(others[i].root)));
	}
}

/*
 * A tree whose state other trees got finds again what it had free, in this very incarnation: what it had merged, what its chunks have left,
 * and nothing else; and the next such time, too.
 */
static void
test_evicted(void **state)
{
	CheckedTree f;
	TreeStatistics statistics;
	uint64_t extents = 0;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	others_create();
	for (int time = 0; time < 4; time++)
	{
		uint64_t freed;

		empty(&f, ENTRIES / 3, ENTRIES / 2);
		assert_true(merge_with(f.tree).leaves > 0);
		freed = tree_freed_bytes(f.tree);
		tree_scan_close(f.scan);
		tree_close(f.tree);
		for (uint32_t i = 0; i < instance.options.trees; i++)
			require_ok(other_open(i));
		for (uint32_t i = 0; i < instance.options.trees; i++)
			tree_close(open_others[i]);
		reopen(&f);
		assert_int_equal(tree_freed_bytes(f.tree), 0);
		assert_true(reclaim(f.tree) >= freed);
		fill(&f, ENTRIES / 3, ENTRIES / 2);
		if (time == 0)
			extents = extent_bytes(&f);
	}
	assert_int_equal(extent_bytes(&f), extents);
	(void) take_all(&f, true);
	compare_check(&f, &statistics);
	compare_everything(&f, ENTRIES, 20);
	memset(open_others, 0, sizeof(open_others));
	others_drop();
	checked_tree_close(&f);
}

/* The memory node is closed, and the next chain that writes comes late. */
static void
lose_write(void *argument, const char *name, bool before)
{
	const FabricFaultPlan plan = {.late_operation = 1};

	if (!before || strncmp(name, "WRITE", 5) != 0)
		return;
	assert_int_equal(fabric_fault_set(client.endpoints[0], &plan), FABRIC_OK);
	tree_node_close(instance.shared, 0);
}

/*
 * As long as a chain of the tree may land no other tree gets its state: a look for what is free would take what the chain writes to
 * for such.  It may land until its memory node is fenced.
 */
static void
test_unsettled(void **state)
{
	CheckedTree f;
	KeyEntry entry = entry_of(ENTRIES + 1, 1);
	uint32_t last = instance.options.trees - 1;
	bool hit;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, ENTRIES);
	others_create();
	client.tree->options.environment.crash_point = lose_write;
	assert_int_equal(insert_try(&f, &entry, &hit), TREE_UNREACHABLE);
	client.tree->options.environment.crash_point = NULL;
	tree_scan_close(f.scan);
	tree_close(f.tree);
	for (uint32_t i = 0; i < last; i++)
		require_ok(other_open(i));
	assert_int_equal(other_open(last), TREE_NO_MEMORY);
	/* Other memory nodes have nothing to do with it. */
	state_node_fenced(instance.shared, 1);
	assert_int_equal(other_open(last), TREE_NO_MEMORY);

	tree_node_open(client.tree, 0, 0);
	require_ok(tree_client_leave(client.tree));
	assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
	require_ok(other_open(last));
	others_drop();
	reopen(&f);
	assert_true(reclaim(f.tree) > 0);
	checked_tree_close(&f);
}

/*
 * Blocks are not taken for nodes, whatever is in them: nothing, a free node, or the line of a chunk; and they are not cut
 * from what was found for nodes.
 */
static void
test_blocks(void **state)
{
	CheckedTree f;
	uint64_t blocks[200], leaf, first;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	require_ok(allocate_node(f.tree, 0, 0, &leaf, &first));
	next_incarnation(&f);
	assert_true(reclaim(f.tree) > 0);
	for (int i = 0; i < 200; i++)
	{
		uint64_t line[LINE_WORDS] = {0};
		FabricOp op = {
			.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = sizeof(line), .buffer = line};

		require_ok(allocate_overflow(f.tree, 0, i % 2 == 0 ? 1024 : 1008, &blocks[i]));
		op.offset = (blocks[i] + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
		if (i % 3 > 0)
		{
			line[HEADER_STATE] = node_state_word(77, 0, 0, i % 3 == 1 ? NODE_FREE : NODE_BLOCKS);
			line[HEADER_TREE] = f.record.tree;
			line[HEADER_GENERATION] = 77;
			line[HEADER_SELF] = pointer_make(0, op.offset);
		}
		assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	}
	/* Nor where the chunk's line is not what it was. */
	assert_int_equal(blocks[0] % FABRIC_STRIPE_BYTES, LINE_BYTES);
	node_fill(pointer_make(0, blocks[0] - LINE_BYTES), LINE_BYTES, 0x5a);
	next_incarnation(&f);
	(void) reclaim(f.tree);
	for (;;)
	{
		uint64_t before = extent_bytes(&f);
		uint64_t pointer, generation;

		require_ok(allocate_node(f.tree, 0, 0, &pointer, &generation));
		/* The chunk whose line was spoiled is none's, and no stripe of blocks is. */
		assert_not_in_range(pointer_offset(pointer), blocks[0] - LINE_BYTES,
		                    blocks[0] - LINE_BYTES + CHUNK_BYTES - 1);
		for (int i = 0; i < 200; i++)
			assert_int_not_equal(pointer_offset(pointer) / FABRIC_STRIPE_BYTES,
			                     blocks[i] / FABRIC_STRIPE_BYTES);
		if (extent_bytes(&f) != before)
			break;
	}
	checked_tree_close(&f);
}

/* Chunks that were never used are for blocks, too: a tree of long keys does not grow by one extent in each incarnation. */
static void
test_chunks_for_blocks(void **state)
{
	CheckedTree f;
	uint64_t pointer, generation, before, block;

	checked_tree_open(&f, KEYSPACE_64_OVERFLOW);
	before = extent_bytes(&f);
	while (extent_bytes(&f) == before)
		require_ok(allocate_one_of(f.tree, 0, 0, 100, &pointer, &generation));
	before = extent_bytes(&f);
	for (int run = 0; run < 3; run++)
	{
		next_incarnation(&f);
		assert_true(reclaim(f.tree) > 0);
		for (int i = 0; i < 8; i++)
			require_ok(allocate_overflow(f.tree, 0, 1024, &block));
	}
	assert_int_equal(extent_bytes(&f), before);
	checked_tree_close(&f);
}

/* What ends the looking in the middle of it, at operation n. */
typedef enum Trouble
{
	TROUBLE_LOST, /* the chain is cut there */
	TROUBLE_LATE, /* and what is cut off comes late */
	TROUBLE_DEATH
} Trouble;

typedef struct Look
{
	const CheckedTree *f;
	FabricFaultPlan plan;
} Look;

static void
dying_body(int number, void *argument)
{
	const Look *look = argument;
	TestClient mine;
	Tree *tree;

	test_client_open(&mine, &instance, 1);
	if (tree_open(mine.tree, look->f->record.tree, look->f->record.root, &look->f->space->format,
	              keyspace_compare, (void *) look->f->space, &tree) != TREE_OK ||
	    fabric_fault_set(mine.endpoints[0], &look->plan) != FABRIC_OK)
		_exit(2);
	(void) reclaim(tree);
	_exit(3);
}

/*
 * Who looks loses a chain, or dies, at any operation: what he had found is given out once, now or in the incarnation after his
 * death.
 */
static void
test_trouble(void **state)
{
	for (uint64_t i = 1; i < 60; i++)
	{
		CheckedTree f;
		TreeStatistics statistics;
		/* Each death keeps an entry of the table of trees. */
		Trouble trouble = i % 6 == 0 ? TROUBLE_DEATH : (Trouble) (i % TROUBLE_DEATH);
		Look look = {.f = &f};

		checked_tree_open(&f, KEYSPACE_16_SINGLE);
		fill(&f, 0, ENTRIES / 4);
		empty(&f, 0, ENTRIES / 8);
		(void) merge_with(f.tree);
		next_incarnation(&f);
		look.plan.fail_operation = trouble == TROUBLE_LOST ? i : 0;
		look.plan.late_operation = trouble == TROUBLE_LATE ? i : 0;
		look.plan.die_operation = trouble == TROUBLE_DEATH ? i : 0;
		if (trouble == TROUBLE_DEATH)
		{
			assert_int_not_equal(test_processes(1, dying_body, &look), 0);
			next_incarnation(&f);
		}
		else
			assert_int_equal(fabric_fault_set(client.endpoints[0], &look.plan), FABRIC_OK);
		assert_true(reclaim(f.tree) > 0);
		assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
		(void) take_all(&f, true);
		compare_check(&f, &statistics);
		compare_everything(&f, ENTRIES / 4, 10);
		checked_tree_close(&f);
	}
}

/* Damaged headers that refer to each other in a circle: who looks comes to an end, and finds nothing twice. */
static void
test_circle(void **state)
{
	CheckedTree f;
	ExtentHeader header = {0};
	FabricOp op = {
		.opcode = FABRIC_READ, .region = FABRIC_NODES, .length = sizeof(header), .buffer = &header};
	uint64_t newest, bytes = 0;
	uint32_t pieces = 0;

	checked_tree_open(&f, KEYSPACE_16_SINGLE);
	fill(&f, 0, MANY_ENTRIES);
	next_incarnation(&f);
	require_ok(allocate_begin(f.tree, 0));
	newest = tree_part(f.tree, 0)->past.extent;
	assert_int_not_equal(newest, 0);
	for (uint64_t extent = newest; extent != 0; extent = header.previous)
	{
		op.offset = extent;
		assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	}
	assert_int_not_equal(op.offset, newest);
	header.previous = newest;
	op.opcode = FABRIC_WRITE;
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	while (tree_reclaim_next(f.tree, &bytes) == TREE_OK)
		assert_true(pieces++ < PIECES_MOST);
	checked_tree_close(&f);
}

/* Processes that look at the same time. */
#define LOOKERS 4

static void
looking_body(int number, void *argument)
{
	const CheckedTree *f = argument;
	FabricFaultPlan plan = {.seed = (uint64_t) number + 1, .delay_max_us = 200};
	TestClient mine;
	Tree *tree;

	test_client_open(&mine, &instance, (uint32_t) number + 1);
	if (tree_open(mine.tree, f->record.tree, f->record.root, &f->space->format, keyspace_compare,
	              (void *) f->space, &tree) != TREE_OK ||
	    fabric_fault_set(mine.endpoints[0], &plan) != FABRIC_OK)
		_exit(2);
	test_meet(&instance, 0, LOOKERS);
	__atomic_fetch_add(&instance.scratch[1], reclaim(tree), __ATOMIC_SEQ_CST);
	tree_close(tree);
	_exit(test_client_close(&mine) == TREE_OK ? 0 : 3);
}

/* Together they find what one would. */
static void
test_together(void **state)
{
	for (int round = 0; round < 10; round++)
	{
		CheckedTree f;
		TreeStatistics statistics;
		uint64_t taken, extents;

		checked_tree_open(&f, KEYSPACE_16_SINGLE);
		fill(&f, 0, ENTRIES);
		empty(&f, 0, ENTRIES / 2);
		(void) merge_with(f.tree);
		next_incarnation(&f);
		memset(instance.scratch, 0, 2 * sizeof(uint64_t));
		assert_int_equal(test_processes(LOOKERS, looking_body, &f), 0);
		extents = extent_bytes(&f);
		taken = take_all(&f, false);
		compare_check(&f, &statistics);
		compare_everything(&f, ENTRIES, 10);
		assert_true(statistics.node_bytes + instance.scratch[1] <= extents);
		assert_true(taken + tree_freed_bytes(f.tree) >= instance.scratch[1]);
		checked_tree_close(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_free_is_free),
		cmocka_unit_test(test_own_incarnation),
		cmocka_unit_test(test_not_alone),
		cmocka_unit_test(test_merge_first),
		cmocka_unit_test(test_merge_beside_look),
		cmocka_unit_test(test_evicted),
		cmocka_unit_test(test_unsettled),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_trouble),
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_together),
		cmocka_unit_test(test_chunks_for_blocks),
	};

	test_alone = true;
	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
