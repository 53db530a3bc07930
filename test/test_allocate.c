/*
 * test_allocate.c
 *		Nodes and blocks from extents: nothing is given twice, nothing crosses a stripe, nothing is lost but what the
 *		contract says, and a full memory node is told as such.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/fixture.h"
#include "rdma/memory/memory.h"
#include "tree/client/directory.h"
#include "../tree/internal.h"
#include "tree/space/allocate.h"

static const TreeFormat formats[] = {
	{.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 32, .norm_bytes = 24, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 64, .norm_bytes = 56, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 24, .norm_bytes = 16, .lossless = true, .fill_percent = 90},
};

/* One memory node and a tree of this format; clients are their processes'. */
static void
open_one(uint64_t bytes, const TreeFormat *format)
{
	fixture_open(&(FixtureOptions){.node_bytes = bytes, .trees = 1, .format = format, .no_client = true});
}

typedef struct Actor
{
	TestClient client;
	Tree *tree;
} Actor;

static void
actor_open(Actor *actor, uint32_t slot)
{
	test_client_open(&actor->client, &instance, slot);
	if (tree_open(actor->client.tree, records[0].tree, records[0].root, &records[0].format, NULL, NULL,
	              &actor->tree) != TREE_OK)
		abort();
}

static void
actor_close(Actor *actor)
{
	tree_close(actor->tree);
	(void) test_client_close(&actor->client);
}

/* The byte of the scratch that stands for a place: one for each 16 of node memory. */
static uint64_t
place_of(uint64_t offset)
{
	return (offset - MEMORY_FIRST_UNIT) / 16;
}

/* Notes what was given out. */
static bool
mark(uint64_t *map, uint64_t offset, uint64_t bytes)
{
	uint8_t *marks = (uint8_t *) map;

	for (uint64_t at = place_of(offset); at < place_of(offset + bytes); at++)
	{
		if (at >= TEST_SCRATCH_WORDS * 8 || __atomic_exchange_n(&marks[at], 1, __ATOMIC_ACQ_REL) != 0)
			return false;
	}
	return true;
}

static void
unmark(uint64_t *map, uint64_t offset, uint64_t bytes)
{
	memset((uint8_t *) map + place_of(offset), 0, bytes / 16);
}

/* What there is to ask for. */
typedef enum Kind
{
	KIND_INNER,
	KIND_BLOCK,
	KIND_RUN,
	KIND_LEAF,
	KINDS
} Kind;

/* One thing asked for, and where it came to lie. */
typedef struct Given
{
	uint64_t offset;
	uint64_t bytes;
	uint64_t pointer; /* of a node, else 0 */
	uint64_t generation;
} Given;

/* The kind of the i-th request: half are leaves, a quarter blocks, an eighth inner nodes; a run now and then. */
static Kind
kind_of(uint32_t i)
{
	switch (i % 8)
	{
		case 0:
			return KIND_INNER;
		case 1:
		case 2:
			return KIND_BLOCK;
		case 3:
			return i % 256 == 3 ? KIND_RUN : KIND_LEAF;
		default:
			return KIND_LEAF;
	}
}

/* Asks for one; a block is at most `block_max` bytes long. */
static TreeStatus
ask(Tree *tree, Kind kind, uint32_t i, uint32_t block_max, Given *given)
{
	TreeStatus status;

	memset(given, 0, sizeof(*given));
	switch (kind)
	{
		case KIND_INNER:
			given->bytes = INNER_BYTES;
			status = allocate_node(tree, 0, 1 + i % 3, &given->pointer, &given->generation);
			break;
		case KIND_BLOCK:
			given->bytes = 16 + i * 48 % (block_max / 16 * 16);
			return allocate_overflow(tree, 0, (uint32_t) given->bytes - 5, &given->offset);
		case KIND_RUN:
			given->bytes = 3 * CHUNK_BYTES + 1;
			return allocate_run(tree, 0, 0, &given->bytes, &given->offset, &given->generation);
		default:
			given->bytes = tree->geometry.leaf_bytes;
			status = allocate_node(tree, 0, 0, &given->pointer, &given->generation);
			break;
	}
	given->offset = pointer_offset(given->pointer);
	return status;
}

/* Nobody else has it; nodes do not cross a stripe and begin on their own boundary. Ends the process if not so. */
static void
require_own(uint64_t *map, uint64_t root, const Given *given)
{
	uint64_t offset = given->offset, end = given->offset + given->bytes;

	if (!mark(map, offset, given->bytes))
		_exit(2);
	if (offset < root + FABRIC_STRIPE_BYTES && end > root)
		_exit(3);
	if (given->pointer != 0 &&
	    (offset % given->bytes != 0 || given->generation == 0 || (given->pointer & STAMP_MASK) != 0))
		_exit(4);
	if (given->bytes <= FABRIC_STRIPE_BYTES &&
	    offset / FABRIC_STRIPE_BYTES != (end - 1) / FABRIC_STRIPE_BYTES)
		_exit(5);
}

/*
 * Allocates all kinds until each of them is refused: one that is refused says nothing of the others, which have chunks
 * of their own that are begun.  Blocks get shorter with each refusal, so that the ends of stripes are used too.
 */
static void
exhaust_body(int number, void *argument)
{
	uint64_t root = pointer_offset(records[0].root);
	uint32_t block_max = TREE_IMAGE_MAX_BYTES;
	bool refused[KINDS] = {false};
	uint32_t left = KINDS;
	Actor actor;

	actor_open(&actor, (uint32_t) number);
	for (uint32_t i = (uint32_t) number; left > 0; i++)
	{
		Kind kind = kind_of(i);
		Given given;
		TreeStatus status;

		if (refused[kind])
			continue;
		status = ask(actor.tree, kind, i, block_max, &given);
		if (status == TREE_OK)
			require_own(instance.scratch, root, &given);
		else if (status != TREE_MEMORY_FULL)
			_exit(6);
		else if (kind == KIND_BLOCK && block_max > 32)
			block_max /= 2;
		else
		{
			refused[kind] = true;
			left--;
		}
	}
	actor_close(&actor);
}

/* By chunks, and by an instance that takes whole extents. */
static void
test_exhaust(void **state)
{
	for (int f = 0; f < 6; f++)
	{
		Actor actor;
		TreeStatistics statistics;
		uint64_t given = 0;
		bool known;

		test_alone = f >= 3;
		open_one(8 * MEGABYTE, &formats[f % 3]);
		assert_int_equal(test_processes(4, exhaust_body, NULL), 0);
		for (uint64_t i = 0; i < TEST_SCRATCH_WORDS * 8; i++)
			given += ((uint8_t *) instance.scratch)[i] * 16u;
		/* Headers, the root, and ends of stripes that were more than can be remembered are all that is not given. */
		assert_true(given > 8 * MEGABYTE * 95 / 100);
		actor_open(&actor, 0);
		state_read(actor.tree->state, &statistics, &known);
		assert_int_equal(statistics.extent_bytes, 8 * MEGABYTE);
		actor_close(&actor);
		fixture_close();
		test_alone = false;
	}
}

/* What was never linked comes back with a later generation; blocks are found again, split, and kept apart. */
static void
test_returns(void **state)
{
	Actor actor;
	uint64_t pointer, again, generation, later, offset;
	uint64_t offsets[64], pointers[64], generations[64];

	open_one(8 * MEGABYTE, &formats[0]);
	actor_open(&actor, 0);
	for (uint32_t level = 0; level < 2; level++)
	{
		assert_int_equal(allocate_node(actor.tree, 0, level, &pointer, &generation), TREE_OK);
		allocate_return(actor.tree, pointer, level, generation);
		assert_int_equal(allocate_node(actor.tree, 0, level, &again, &later), TREE_OK);
		assert_int_equal(pointer_address(again), pointer_address(pointer));
		assert_true(later > generation);
		assert_int_equal(again & STAMP_MASK, 0);
	}
	/* As many as a handle takes ahead, which lie side by side, and come back from the last one on. */
	for (uint32_t i = 0; i < 64; i++)
		assert_int_equal(allocate_node(actor.tree, 0, 0, &pointers[i], &generations[i]), TREE_OK);
	for (uint32_t i = 64; i > 0; i--)
		allocate_return(actor.tree, pointers[i - 1], 0, generations[i - 1]);
	for (uint32_t i = 0, known = 0; i < 64; i++, known = 0)
	{
		assert_int_equal(allocate_node(actor.tree, 0, 0, &again, &later), TREE_OK);
		for (uint32_t j = 0; j < 64; j++)
			known += pointer_address(again) == pointer_address(pointers[j]) && later > generations[j];
		assert_int_equal(known, 1);
	}
	assert_int_equal(allocate_overflow(actor.tree, 0, 2000, &offset), TREE_OK);
	allocate_overflow_return(actor.tree, 0, offset, 2000);
	/* Twenty blocks of 100 (112) bytes out of one of 2000: seventeen fit, three come from elsewhere. */
	for (int i = 0; i < 20; i++)
	{
		assert_int_equal(allocate_overflow(actor.tree, 0, 100, &offsets[i]), TREE_OK);
		assert_true(mark(instance.scratch, offsets[i], 112));
		assert_int_equal(offsets[i] >= offset && offsets[i] < offset + 2000, i < 17);
	}
	/* Random takes and returns of all lengths: never twice the same byte. */
	for (int i = 20; i < 64; i++)
		offsets[i] = 0;
	for (uint32_t i = 0; i < 5000; i++)
	{
		uint32_t slot = 20 + i * 7919 % 44;
		uint32_t bytes = 1 + slot * 61 % TREE_IMAGE_MAX_BYTES;
		uint32_t block = (bytes + 15) / 16 * 16;

		if (offsets[slot] != 0)
		{
			unmark(instance.scratch, offsets[slot], block);
			allocate_overflow_return(actor.tree, 0, offsets[slot], bytes);
			offsets[slot] = 0;
		}
		else
		{
			assert_int_equal(allocate_overflow(actor.tree, 0, bytes, &offsets[slot]), TREE_OK);
			assert_true(mark(instance.scratch, offsets[slot], block));
		}
	}
	actor_close(&actor);
	fixture_close();
}

/* Of chunks that came at once none is lost, nor the rest of one that is begun: the last one is used first. */
static void
test_spare_chunk(void **state)
{
	const uint64_t leaf_bytes = node_geometry(&formats[0]).leaf_bytes;
	const uint64_t leaves_of_chunk = CHUNK_BYTES / leaf_bytes;
	Actor actor;
	uint64_t pointer, generation, first, second, third, bytes = CHUNK_BYTES;

	open_one(8 * MEGABYTE, &formats[0]);
	actor_open(&actor, 0);
	assert_int_equal(allocate_node(actor.tree, 0, 0, &pointer, &generation), TREE_OK);
	first = pointer_offset(pointer);
	assert_true(mark(instance.scratch, first, leaf_bytes));
	assert_int_equal(allocate_run(actor.tree, 0, 0, &bytes, &second, &generation), TREE_OK);
	assert_int_equal(allocate_run(actor.tree, 0, 0, &bytes, &third, &generation), TREE_OK);
	assert_int_equal(bytes, CHUNK_BYTES);
	allocate_run_return(actor.tree, 0, bytes, third, generation);
	for (uint64_t i = 0; i < 3 * leaves_of_chunk - 1; i++)
	{
		uint64_t chunk = i < leaves_of_chunk ? third : i < 2 * leaves_of_chunk - 1 ? first : second;

		if (i == 2 * leaves_of_chunk - 1)
			allocate_run_return(actor.tree, 0, bytes, second, generation);
		assert_int_equal(allocate_node(actor.tree, 0, 0, &pointer, &generation), TREE_OK);
		assert_true(pointer_offset(pointer) >= chunk && pointer_offset(pointer) < chunk + CHUNK_BYTES);
		assert_true(mark(instance.scratch, pointer_offset(pointer), leaf_bytes));
	}

	/* The rest of the extent is less than a chunk. */
	assert_int_equal(allocate_run(actor.tree, 0, 0, &bytes, &first, &generation), TREE_OK);

	/*
	 * Of a chunk of blocks that is used up the end of every stripe is a free block, that of the last one too.  The first
	 * stripe begins with the chunk's line, and so its end is shorter.
	 */
	assert_int_equal(allocate_overflow(actor.tree, 0, 2000, &first), TREE_OK);
	do
		assert_int_equal(allocate_overflow(actor.tree, 0, 2000, &second), TREE_OK);
	while (second > first && second < first + CHUNK_BYTES);
	for (uint64_t stripe = 1; stripe < CHUNK_BYTES / FABRIC_STRIPE_BYTES; stripe++)
	{
		assert_int_equal(allocate_overflow(actor.tree, 0, 90, &second), TREE_OK);
		assert_true(second > first && second < first + CHUNK_BYTES);
	}
	actor_close(&actor);
	fixture_close();
}

/* Blocks of overflow keys that a removal of many long keys gives back. */
#define MANY_BLOCKS 1500
/* More than the shared memory of a test's instance has room for. */
#define MORE_BLOCKS 4000

/* Takes many blocks, of lengths that follow from their numbers, and gives them all back. True: all of them were `known`. */
static bool
take_and_return(Actor *actor, const uint8_t *known, uint8_t *seen)
{
	static uint64_t offsets[MANY_BLOCKS];
	bool same = true;

	for (uint32_t i = 0; i < MANY_BLOCKS; i++)
	{
		assert_int_equal(allocate_overflow(actor->tree, 0, 40 + i % 300, &offsets[i]), TREE_OK);
		assert_true(place_of(offsets[i]) < TEST_SCRATCH_WORDS * 8);
		same = same && known[place_of(offsets[i])] != 0;
		seen[place_of(offsets[i])] = 1;
	}
	for (uint32_t i = 0; i < MANY_BLOCKS; i++)
		allocate_overflow_return(actor->tree, 0, offsets[i], 40 + i % 300);
	return same;
}

/* What vacuum gives back is all taken again, or an index of long keys would grow with every round of updates. */
static void
test_many_returns(void **state)
{
	static uint8_t first[TEST_SCRATCH_WORDS * 8], second[TEST_SCRATCH_WORDS * 8];
	static uint64_t offsets[MORE_BLOCKS];
	Actor actor;
	uint64_t offset;
	uint32_t all_again = 0;
	bool again;

	open_one(14 * MEGABYTE, &formats[0]);
	actor_open(&actor, 0);
	assert_false(take_and_return(&actor, first, first));
	for (int round = 0; round < 3; round++)
		assert_true(take_and_return(&actor, first, second));

	/* More than can be remembered are forgotten, and nothing else comes of it. */
	for (int i = 0; i < MORE_BLOCKS; i++)
		assert_int_equal(allocate_overflow(actor.tree, 0, 16, &offsets[i]), TREE_OK);
	for (int i = 0; i < MORE_BLOCKS; i++)
		allocate_overflow_return(actor.tree, 0, offsets[i], 16);
	for (int i = 0; i < MORE_BLOCKS; i++)
	{
		assert_int_equal(allocate_overflow(actor.tree, 0, 16, &offset), TREE_OK);
		assert_true(mark(instance.scratch, offset, 16));
	}
	for (int i = 0; i < MORE_BLOCKS; i++)
		allocate_overflow_return(actor.tree, 0, offsets[i], 16);
	actor_close(&actor);

	/* The room of a tree that is dropped, or whose place in shared memory another one gets, is that of others. */
	for (uint32_t i = 0; i < instance.options.trees + 4; i++)
	{
		TestClient client;
		TreeRecord before = records[0];

		test_client_open(&client, &instance, 0);
		if (i < 2)
			assert_int_equal(tree_drop(client.tree, before.tree, tree_home(before.root)), TREE_OK);
		test_tree_create(&client, &before.format, &records[0]);
		assert_int_equal(test_client_close(&client), TREE_OK);
		actor_open(&actor, 0);
		memset(first, 0, sizeof(first));
		(void) take_and_return(&actor, first, first);
		again = take_and_return(&actor, first, second);
		actor_close(&actor);
		if (i < 2)
			assert_true(again);
		all_again += again;
	}
	assert_true(all_again > 2);
	fixture_close();
}

/* After a restart of the instance the newest extent is gone on with, not a new one taken. */
static void
test_goes_on_after_restart(void **state)
{
	Actor actor;
	TreeRecord record;
	uint64_t pointer, generation;

	open_one(8 * MEGABYTE, &formats[0]);
	for (int round = 0; round < 3; round++)
	{
		actor_open(&actor, 0);
		assert_int_equal(allocate_node(actor.tree, 0, 0, &pointer, &generation), TREE_OK);
		/* A chunk a time: three of the first extent's 3.5 are begun. */
		assert_true(mark(instance.scratch, pointer_offset(pointer), CHUNK_BYTES));
		assert_int_equal(
			tree_record_read(actor.client.tree, records[0].tree, tree_home(records[0].root), &record),
			TREE_OK);
		assert_int_equal(record.extents, 1);
		actor_close(&actor);
		test_instance_attach(&instance);
	}
	fixture_close();
}

/* What the tree has. */
static TreeRecord
record_now(const Actor *actor)
{
	TreeRecord record;

	assert_int_equal(
		tree_record_read(actor->client.tree, records[0].tree, tree_home(records[0].root), &record), TREE_OK);
	return record;
}

/* An extent all of whose chunks another instance has taken is used up, whoever asks for it. */
static void
test_taken_by_others(void **state)
{
	Actor actor;
	DirectoryExtent extent;
	FabricOp op = {
		.opcode = FABRIC_FETCH_ADD, .region = FABRIC_NODES, .length = 8, .operand = EXTENT_MIN_BYTES};
	uint64_t pointer, generation;

	open_one(8 * MEGABYTE, &formats[0]);
	actor_open(&actor, 0);
	assert_int_equal(allocate_node(actor.tree, 0, 0, &pointer, &generation), TREE_OK);
	assert_int_equal(directory_extent(actor.client.tree, 0, records[0].tree, 0, 1, &extent), TREE_OK);
	op.offset = extent.offset + offsetof(ExtentHeader, bump);
	assert_int_equal(fabric_execute(actor.client.endpoints[0], &op, 1), FABRIC_OK);
	for (int i = 0; i < 200; i++)
	{
		assert_int_equal(allocate_node(actor.tree, 0, 0, &pointer, &generation), TREE_OK);
		assert_not_in_range(pointer_offset(pointer), extent.offset, extent.offset + extent.bytes - 1);
	}
	actor_close(&actor);
	fixture_close();
}

/* An instance that has its trees for itself gets as much memory as it is about to use by one call, and no more than that. */
static void
test_wanted(void **state)
{
	Actor actor;
	FabricCounters counters;
	uint64_t pointer, generation, before, bytes = MEGABYTE;

	test_alone = true;
	open_one(8 * MEGABYTE, &formats[0]);
	test_alone = false;
	actor_open(&actor, 0);
	/* What is left of the first extent is taken by one FETCH_ADD, whatever for. */
	assert_int_equal(allocate_run(actor.tree, 0, 0, &bytes, &before, &generation), TREE_OK);
	assert_int_equal(bytes, EXTENT_MIN_BYTES - DIRECTORY_FIRST_BUMP);
	assert_int_equal(record_now(&actor).extents, 1);
	fabric_counters(actor.client.endpoints[0], &counters);
	assert_int_equal(counters.atomics, 1);

	/* 300 leaves and the header are five units. Runs for large WRITEs, blocks and inner nodes are of the same memory. */
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(allocate_one_of(actor.tree, 0, 0, 300 - i, &pointer, &generation), TREE_OK);
	assert_int_equal(record_now(&actor).bytes, 6 * EXTENT_MIN_BYTES);
	bytes = 4 * CHUNK_BYTES;
	assert_int_equal(allocate_run(actor.tree, 0, 0, &bytes, &before, &generation), TREE_OK);
	assert_int_equal(bytes, 4 * CHUNK_BYTES);
	assert_int_equal(allocate_node(actor.tree, 0, 1, &pointer, &generation), TREE_OK);
	assert_int_equal(allocate_overflow(actor.tree, 0, 1000, &before), TREE_OK);
	assert_int_equal(record_now(&actor).extents, 2);

	/* A long run is no reason for a large extent: of what is not used of it nobody knows before the end. */
	for (bytes = MEGABYTE; record_now(&actor).extents == 2; bytes = MEGABYTE)
		assert_int_equal(allocate_run(actor.tree, 0, 0, &bytes, &before, &generation), TREE_OK);
	assert_int_equal(record_now(&actor).bytes, 7 * EXTENT_MIN_BYTES);
	fabric_counters(actor.client.endpoints[0], &counters);
	assert_int_equal(counters.atomics, 1);
	actor_close(&actor);
	fixture_close();
}

/* Two memory nodes: a tree that is far larger on one gives nodes away to the other; a full one too. */
static void
test_two_memory_nodes(void **state)
{
	Actor actor;
	TreeRecord record;
	uint64_t pointer, generation;
	uint32_t home;
	int given[2] = {0, 0};
	TreeStatus status = TREE_OK;

	fixture_open(&(FixtureOptions){
		.nodes = 2, .node_bytes = 2 * MEGABYTE, .trees = 1, .format = &formats[2], .no_client = true});
	actor_open(&actor, 0);
	home = pointer_memory_node(records[0].root);
	for (;;)
	{
		status = allocate_node(actor.tree, home, 0, &pointer, &generation);
		if (status != TREE_OK)
			break;
		given[pointer_memory_node(pointer)]++;
		if (given[home] + given[1 - home] == 200)
		{
			/* Most go home, but not all of them. */
			assert_true(given[home] > given[1 - home]);
			assert_true(given[1 - home] > 20);
		}
	}
	assert_int_equal(status, TREE_MEMORY_FULL);
	assert_true(given[0] > 400 && given[1] > 400);
	assert_int_equal(
		tree_record_read(actor.client.tree, records[0].tree, tree_home(records[0].root), &record), TREE_OK);
	assert_int_equal(record.bytes, 4 * MEGABYTE);
	actor_close(&actor);

	/* Dropped, it is gone from both. */
	actor_open(&actor, 0);
	assert_int_equal(tree_drop(actor.client.tree, records[0].tree, tree_home(records[0].root)), TREE_OK);
	for (uint32_t i = 0; i < 2; i++)
	{
		TreeNodeStatus node;

		assert_int_equal(tree_node_status(actor.client.tree, i, &node), TREE_OK);
		assert_int_equal(node.trees, 0);
		assert_int_equal(node.bytes_used, 0);
	}
	actor_close(&actor);
	fixture_close();
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest threads[] = {
		cmocka_unit_test(test_exhaust),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exhaust),
		cmocka_unit_test(test_returns),
		cmocka_unit_test(test_spare_chunk),
		cmocka_unit_test(test_many_returns),
		cmocka_unit_test(test_goes_on_after_restart),
		cmocka_unit_test(test_two_memory_nodes),
		cmocka_unit_test(test_wanted),
		cmocka_unit_test(test_taken_by_others),
	};

	if (test_threads_wanted(argc, argv))
		return cmocka_run_group_tests(threads, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
