/*
 * test_redo.c
 *		Death in the middle of a node's rewrite: after fencing the node is the old image or the new one, whole, and
 *		the lock is free; an entry that was added afterwards is not undone by an older redo slot.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fixture.h"
#include "../rdma/fault.h"
#include "../tree/internal.h"
#include "tree/service/service.h"
#include "tree/lock/lock.h"

/* Of a node in private memory. */
#define NODE_OFFSET (1u << 20)

/* Leaves of 4 KB: 64 lines to die in. */
static const TreeFormat wide = {.cell_bytes = 64, .norm_bytes = 56, .lossless = true, .fill_percent = 90};
static const FixtureOptions options = {
	.node_bytes = 4 * MEGABYTE, .trees = 1, .format = &wide, .no_client = true};

/* Fills every cell with the generation, so that a mixture shows in each line. */
static void
fill(const NodeGeometry *g, uint64_t *image, const uint64_t *old, uint64_t pointer, uint64_t generation)
{
	node_begin_like(g, image, old, pointer, generation);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		uint64_t *cell = image + leaf_cell_word(g, slot);

		cell[0] =
			cell_word0(generation, (uint32_t) generation, (uint16_t) (slot + 1), CELL_LIVE, false, false);
		for (uint32_t word = 1; word < g->cell_words; word++)
			cell[word] = generation;
	}
	node_seal(g, image);
}

static bool
filled(const NodeGeometry *g, const uint64_t *image)
{
	uint64_t generation = image[HEADER_GENERATION];

	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		const uint64_t *cell = image + leaf_cell_word(g, slot);

		if (cell_block(cell[0]) != (uint32_t) generation || cell[1] != generation ||
		    cell[g->cell_words - 1] != generation)
			return false;
	}
	return true;
}

/* The LSN that die_later() leaves behind. */
#define LATER_LSN 4242u

/* Writes the leaf's mutable unit, as an insert would, and dies. */
static void
die_later(FabricEndpoint *endpoint)
{
	uint64_t unit[2] = {LATER_LSN, 1};
	FabricOp op;

	memset(&op, 0, sizeof(op));
	op.opcode = FABRIC_WRITE;
	op.length = sizeof(unit);
	op.offset = pointer_offset(records[0].root) + HEADER_LSN * 8;
	op.buffer = unit;
	if (fabric_execute(endpoint, &op, 1) == FABRIC_OK)
		kill(getpid(), SIGKILL);
}

/* Rewrites the root leaf with the next generation; with a plan it dies on the way, with `later` after more. */
static TreeStatus
rewrite(uint32_t slot, const FabricFaultPlan *plan, bool later)
{
	static uint64_t image[NODE_MAX_BYTES / 8], next[NODE_MAX_BYTES / 8];
	FabricOp ops[REDO_OPS + 2];
	TestClient client;
	LockHandle lock;
	Tree *tree;
	TreeStatus status;
	int count;

	test_client_open(&client, &instance, slot);
	status = tree_open(client.tree, records[0].tree, records[0].root, &wide, NULL, NULL, &tree);
	if (status == TREE_OK)
		status = lock_and_read(tree, tree->root, tree->geometry.leaf_bytes, image, &lock);
	if (status != TREE_OK)
		return status;
	if (plan != NULL && fabric_fault_set(client.endpoints[0], plan) != FABRIC_OK)
		return TREE_INVALID;
	fill(&tree->geometry, next, image, tree->root, image[HEADER_GENERATION] + 1);
	count = lock_rewrite_ops(tree, &lock, tree->root, next, tree->geometry.leaf_bytes, ops);
	if (count != REDO_OPS + 1)
		return TREE_INVALID;
	status = lock_write_and_release(tree, &lock, ops, count, tree->root, NULL, 0);
	if (later && status == TREE_OK)
		die_later(client.endpoints[0]);
	tree_close(tree);
	(void) test_client_close(&client);
	return status;
}

/* Reads the root leaf as it is, by a client of its own. */
static void
read_root(uint64_t *image, NodeGeometry *geometry)
{
	TestClient client;
	FabricOp op;

	*geometry = node_geometry(&wide);
	test_client_open(&client, &instance, 3);
	memset(&op, 0, sizeof(op));
	op.length = geometry->leaf_bytes;
	op.offset = pointer_offset(records[0].root);
	op.buffer = image;
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	assert_int_equal(test_client_close(&client), TREE_OK);
}

/*
 * Dies after operation `operation` of the rewrite's chain, in its line `line`; then a new incarnation, or the daemon
 * killed and started again.  The image is whole; says whether it is the new one.
 */
static bool
die_and_recover(uint64_t operation, uint32_t line, bool restart)
{
	FabricFaultPlan plan = {.seed = 1, .die_operation = operation, .die_line = line};
	uint64_t before[NODE_MAX_BYTES / 8], after[NODE_MAX_BYTES / 8];
	NodeGeometry geometry;
	pid_t child;
	int status;

	assert_int_equal(rewrite(0, NULL, false), TREE_OK);
	read_root(before, &geometry);
	assert_true(filled(&geometry, before));
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
	{
		(void) rewrite(1, &plan, false);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	if (restart)
	{
		test_node_kill(&nodes[0]);
		test_node_restart(&nodes[0]);
	}
	test_instance_attach(&instance);
	read_root(after, &geometry);
	assert_int_equal(node_check(&geometry, after, records[0].tree, records[0].root), NODE_GOOD);
	assert_true(filled(&geometry, after));
	assert_true(after[HEADER_GENERATION] == before[HEADER_GENERATION] ||
	            after[HEADER_GENERATION] == before[HEADER_GENERATION] + 1);
	return after[HEADER_GENERATION] != before[HEADER_GENERATION];
}

/* Operations of the chain: redo image, redo header, node, unlock. */
static void
test_death_in_rewrite(void **state)
{
	static const uint32_t lines[] = {1, 2, 31, 32, 63};

	fixture_open(&options);
	assert_false(die_and_recover(1, 0, false));
	assert_false(die_and_recover(1, 17, false));
	assert_false(die_and_recover(2, 0, false));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
	{
		assert_true(die_and_recover(3, lines[i], false));
		assert_true(die_and_recover(3, lines[i], true));
	}
	assert_true(die_and_recover(3, 0, false));
	assert_true(die_and_recover(4, 0, false));
	assert_true(die_and_recover(4, 0, true));
	/* And the lock was freed each time. */
	assert_int_equal(rewrite(2, NULL, false), TREE_OK);
	fixture_close();
}

/* A cell that was written after the rewrite stays, although the redo slot of the dead channel is whole. */
static void
test_later_write_is_not_undone(void **state)
{
	uint64_t image[NODE_MAX_BYTES / 8];
	NodeGeometry geometry;
	pid_t child;
	int status;

	fixture_open(&options);
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
	{
		(void) rewrite(0, NULL, true);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	test_instance_attach(&instance);
	read_root(image, &geometry);
	assert_int_equal(image[HEADER_LSN], LATER_LSN);
	assert_true(filled(&geometry, image));
	fixture_close();
}

/* ---- Which WRITE was it? */

/* A leaf and an inner node in private memory. */
static void
make_node(const NodeGeometry *geometry, uint64_t *node, uint32_t level, uint64_t generation)
{
	uint64_t pointer = pointer_make(0, NODE_OFFSET);

	memset(node, 0, NODE_MAX_BYTES);
	node_begin(geometry, node, 77, pointer, level, generation, 0);
	for (uint32_t word = geometry->first_word; word < node_bytes(geometry, level) / 8; word++)
		node[word] = generation << 32;
	node_seal(geometry, node);
}

/* Replays the image if it is due. */
static bool
replay(const FabricDeadChannel *dead, const uint64_t *image, uint32_t bytes, uint64_t *target)
{
	if (!service_half_landed(dead, image, NODE_OFFSET, bytes, target))
		return false;
	service_replay(dead, image, bytes, target);
	return true;
}

static void
test_replay(void **state)
{
	NodeGeometry geometry = node_geometry(&narrow);
	uint64_t old[NODE_MAX_BYTES / 8], new[NODE_MAX_BYTES / 8], target[NODE_MAX_BYTES / 8];
	FabricDeadChannel dead = {.write_offset = NODE_OFFSET, .write_bytes = geometry.leaf_bytes};
	uint32_t leaf_bytes = geometry.leaf_bytes;

	make_node(&geometry, old, 0, 5);
	make_node(&geometry, new, 0, 6);

	/* The write in progress decides, whatever the node looks like. */
	memcpy(target, old, sizeof(target));
	dead.write_offset = NODE_OFFSET + 4096;
	assert_false(replay(&dead, new, leaf_bytes, target));
	dead.write_offset = NODE_OFFSET;
	dead.write_bytes = 16;
	assert_false(replay(&dead, new, leaf_bytes, target));
	dead.write_offset = UINT64_MAX;
	assert_false(replay(&dead, new, leaf_bytes, target));
	assert_memory_equal(target, old, sizeof(target));
	dead.write_offset = NODE_OFFSET;
	dead.write_bytes = leaf_bytes;
	assert_true(replay(&dead, new, leaf_bytes, target));
	assert_memory_equal(target, new, leaf_bytes);
}

/* Through a device: the first packets of the new image are there, the rest is the old one. */
static void
replay_mixture(const TreeFormat *format)
{
	NodeGeometry geometry = node_geometry(format);
	uint64_t old[NODE_MAX_BYTES / 8], new[NODE_MAX_BYTES / 8], target[NODE_MAX_BYTES / 8];
	FabricDeadChannel dead = {.write_offset = UINT64_MAX, .write_unknown = true};
	FabricDeadChannel local = {.write_offset = UINT64_MAX};

	for (uint32_t level = 0; level < 2; level++)
	{
		uint32_t bytes = node_bytes(&geometry, level);

		make_node(&geometry, old, level, 5);
		make_node(&geometry, new, level, 6);
		memcpy(target, old, bytes);
		assert_false(replay(&dead, new, bytes, target));
		assert_memory_equal(target, old, bytes);
		for (uint32_t landed = LINE_BYTES; landed < bytes; landed += LINE_BYTES)
		{
			memcpy(target, old, bytes);
			memcpy(target, new, landed);
			assert_false(replay(&local, new, bytes, target));
			assert_true(replay(&dead, new, bytes, target));
			assert_memory_equal(target, new, bytes);
		}
		assert_false(replay(&dead, new, bytes, target));
		/* What came later is not undone, and a mixture of others is not ours. */
		make_node(&geometry, target, level, 7);
		assert_false(replay(&dead, new, bytes, target));
		memcpy(target + LINE_WORDS, new + LINE_WORDS, bytes - LINE_BYTES);
		assert_false(replay(&dead, new, bytes, target));
	}
	/* A line of a third generation: no single WRITE left this. */
	make_node(&geometry, old, 0, 4);
	make_node(&geometry, new, 0, 6);
	make_node(&geometry, target, 0, 5);
	memcpy(target, new, LINE_BYTES);
	memcpy(target + LINE_WORDS, old + LINE_WORDS, LINE_BYTES);
	assert_false(replay(&dead, new, geometry.leaf_bytes, target));
}

static void
test_replay_mixture(void **state)
{
	for (uint8_t bytes = 16; bytes <= 64; bytes += 8)
		replay_mixture(
			&(TreeFormat){.cell_bytes = bytes, .norm_bytes = 8, .lossless = true, .fill_percent = 90});
}

/* An image says how long its cells are: what no leaf of its length says is replayed by nobody. */
static void
test_replay_of_no_cells(void **state)
{
	static const TreeFormat cells = {
		.cell_bytes = 24, .norm_bytes = 16, .lossless = true, .fill_percent = 90};
	NodeGeometry geometry = node_geometry(&cells);
	uint64_t old[NODE_MAX_BYTES / 8], new[NODE_MAX_BYTES / 8], target[NODE_MAX_BYTES / 8];
	FabricDeadChannel dead = {.write_offset = UINT64_MAX, .write_unknown = true};

	make_node(&geometry, old, 0, 5);
	make_node(&geometry, new, 0, 6);
	for (uint32_t words = 0; words < 16; words++)
	{
		new[HEADER_STATE] = node_state_word(6, 0, 0, words << NODE_CELL_WORDS_SHIFT);
		memcpy(target, old, sizeof(target));
		memcpy(target, new, LINE_BYTES);
		assert_int_equal(replay(&dead, new, geometry.leaf_bytes, target), words == 3);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_death_in_rewrite),
		cmocka_unit_test(test_later_write_is_not_undone),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_replay_mixture),
		cmocka_unit_test(test_replay_of_no_cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
