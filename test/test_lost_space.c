/*
 * test_lost_space.c
 *		Each byte of a tree's extents is a node of the tree, or is known to be free: whatever was taken ahead and not used, whatever
 *		chains were lost, and however many free places lie apart.
 */
#include <stdlib.h>

#include "support/many_fixture.h"
#include "tree/descent/descent.h"
#include "tree/shared/state.h"
#include "tree/space/space.h"
#include "tree/space/allocate.h"

/* Entries of a tree of some hundred leaves. */
#define FIRST 12000u

/* Nodes that come back apart from each other. */
#define APART (6u * STATE_RUNS)

/* The nodes of the tree but for its root, in bytes. */
static uint64_t
node_bytes_of(Tree *tree)
{
	WalkResult result;
	uint64_t bytes;

	walk_tree(tree, &result);
	bytes = result.leaves * tree->geometry.leaf_bytes + result.inner_nodes * (uint64_t) INNER_BYTES -
	        node_bytes(&tree->geometry, result.height - 1);
	walk_free(&result);
	return bytes;
}

/* What was taken of the tree's extents at a memory node, but for their headers, and the root's place. */
static uint64_t
taken_bytes(Tree *tree, uint32_t memory_node)
{
	const StateAtNode *at = tree_part(tree, memory_node);
	uint64_t extent = at->extent_offset, bytes = 0;

	while (extent != 0)
	{
		ExtentHeader header;
		bool good;

		require_ok(extent_header_read(tree, memory_node, extent, &header, &good));
		assert_true(good);
		bytes += extent_taken(&header) - FABRIC_STRIPE_BYTES;
		/* The root has a stripe, whatever it is. */
		if (pointer_memory_node(tree->root) == memory_node && pointer_offset(tree->root) > extent &&
		    pointer_offset(tree->root) < extent + header.bytes)
			bytes -= FABRIC_STRIPE_BYTES;
		extent = header.previous;
	}
	return bytes;
}

/* The bytes that are nobody's, while no handle has any of them. */
static int64_t
lost_bytes(Tree *tree)
{
	int64_t lost = -(int64_t) node_bytes_of(tree) - (int64_t) tree_freed_bytes(tree);

	for (uint32_t i = 0; i < MANY_NODES; i++)
	{
		const StateAtNode *at = tree_part(tree, i);

		lost += (int64_t) taken_bytes(tree, i) - (int64_t) runs_bytes(at, 0, UINT64_MAX);
	}
	return lost;
}

static void
require_none_lost(Tree *tree)
{
	assert_int_equal(lost_bytes(tree), 0);
}

/* Free places that lie apart from each other, in lists: as merges leave them. */
static void
scatter(Tree *tree, uint32_t count)
{
	uint64_t pointers[2000], generations[2000];

	assert_true(count <= 2000);
	for (uint32_t i = 0; i < count; i++)
		require_ok(allocate_node(tree, 0, 0, &pointers[i], &generations[i]));
	for (uint32_t i = 0; i < count; i += 2)
		require_ok(freed_put(tree, pointers[i], 0, generations[i] + i % 100));
	for (uint32_t i = 1; i < count; i += 2)
		require_ok(freed_put(tree, pointers[i], 0, generations[i] + i % 100));
}

/* Inner nodes, and leaves. */
static uint32_t
level_of(uint32_t i)
{
	return i % 3 == 0 ? 1 : 0;
}

/* ---- what was taken ahead ---- */

static void
test_taken_ahead(void **state)
{
	Tree *tree = many_tree(&narrow);

	many_insert(tree, MANY_RANDOM, 0, FIRST, 3000);
	tree_close(tree);
	tree = many_open(&client);
	require_none_lost(tree);
	for (int round = 0; round < 3; round++)
	{
		/* From chunks, which is what there is in the first round, and then from lists. */
		for (uint32_t level = 0; level <= 1; level++)
		{
			require_ok(spare_fill(tree, level, level == 0 ? SPARE_LEAVES : SPARE_INNER));
			require_ok(reserve_fill(tree, level, 2));
		}
		tree_close(tree);
		tree = many_open(&client);
		require_none_lost(tree);
		scatter(tree, 1200);
		require_none_lost(tree);
	}
	many_verify(tree, MANY_RANDOM, FIRST);
	tree_close(tree);
}

/* A handle that is closed while its process has no connection, or may not use it, makes none for what it has taken ahead. */
static void
test_no_connection(void **state)
{
	FabricEndpoint *endpoints[MANY_NODES];
	Tree *tree = many_tree(&narrow);

	scatter(tree, 1200);
	require_ok(spare_fill(tree, 0, SPARE_LEAVES));
	for (int i = 0; i < MANY_NODES; i++)
	{
		endpoints[i] = client.tree->options.endpoints[i];
		client.tree->options.endpoints[i] = NULL;
	}
	tree_close(tree);
	for (int i = 0; i < MANY_NODES; i++)
	{
		assert_null(client.tree->options.endpoints[i]);
		client.tree->options.endpoints[i] = endpoints[i];
	}
	tree = many_open(&client);
	assert_true(lost_bytes(tree) > 0);
	tree_close(tree);
}

/* ---- runs that find no place ---- */

/* Takes a node of the kind that comes as number i; *own is all that was taken, and nothing else is lost. */
static void
take_node(Tree *tree, uint32_t i, uint64_t *pointer, uint64_t *generation, int64_t *own)
{
	require_ok(allocate_node(tree, 0, level_of(i), pointer, generation));
	*own += node_bytes(&tree->geometry, level_of(i));
	assert_int_equal(lost_bytes(tree), *own);
}

/* Nodes and whole stripes that come back apart from each other, more than there are places for runs; all of it is taken again. */
static void
test_apart(void **state)
{
	Tree *tree = many_tree(&narrow);
	uint64_t pointers[APART], generations[APART], pointer, generation;
	uint64_t bytes = CHUNK_BYTES, offset;
	int64_t own = 0;

	require_ok(allocate_run(tree, 0, 0, &bytes, &offset, &generation));
	allocate_run_return(tree, 0, bytes, offset, generation);
	for (uint32_t i = 0; i < APART; i++)
		take_node(tree, i, &pointers[i], &generations[i], &own);
	for (uint32_t i = 0; i < APART; i++)
	{
		/* Of another generation each: none continues another one. */
		allocate_return(tree, pointers[i], level_of(i), generations[i] + i);
		own -= node_bytes(&tree->geometry, level_of(i));
		assert_int_equal(lost_bytes(tree), own);
	}
	for (uint32_t i = 0; i < 4 * APART; i++)
		take_node(tree, i, &pointer, &generation, &own);
	tree_close(tree);
}

/* Nodes of a kind of which there is none are made of whole stripes where there is no place for one run more. */
static void
test_no_place(void **state)
{
	Tree *tree = many_tree(&narrow);
	uint64_t pointers[APART], generations[APART], pointer;
	StateRun run = {.use = STATE_FOUND};
	uint64_t bytes = 4 * CHUNK_BYTES;
	int64_t own = 0;

	for (uint32_t i = 0; i < APART; i++)
		require_ok(allocate_node(tree, 0, 0, &pointers[i], &generations[i]));
	require_ok(allocate_run(tree, 0, 0, &bytes, &run.next, &run.generation));
	run.end = run.next + bytes;
	assert_true(bytes > CHUNK_BYTES);
	assert_true(runs_found(tree, 0, &run));
	for (uint32_t i = 0; i < APART; i++)
		allocate_return(tree, pointers[i], 0, generations[i] + i);
	assert_int_equal(tree_part(tree, 0)->run_count, STATE_RUNS);
	for (uint32_t i = 0; i < APART; i++)
		take_node(tree, i, &pointer, &generations[0], &own);
	tree_close(tree);
}

/* The rest of a chunk of blocks, the shortest of more runs than there are places for, is given out as blocks. */
static void
test_blocks_apart(void **state)
{
	Tree *tree = many_tree(&text);
	uint64_t offsets[2 * STATE_RUNS], generations[2 * STATE_RUNS], bytes[2 * STATE_RUNS];
	uint64_t first, chunk, offset;

	require_ok(allocate_overflow(tree, 0, 2000, &first));
	chunk = first - LINE_BYTES;
	for (uint32_t i = 0; i < 2 * STATE_RUNS; i++)
	{
		bytes[i] = 2 * CHUNK_BYTES;
		require_ok(allocate_run(tree, 0, 2 * CHUNK_BYTES, &bytes[i], &offsets[i], &generations[i]));
	}
	for (uint32_t i = 0; i < 2 * STATE_RUNS; i += 2)
		allocate_run_return(tree, 0, bytes[i], offsets[i], generations[i]);
	/* Two of a stripe. */
	for (uint32_t i = 1; i < 2 * CHUNK_BYTES / FABRIC_STRIPE_BYTES; i++)
	{
		require_ok(allocate_overflow(tree, 0, 2000, &offset));
		assert_in_range(offset, chunk, chunk + CHUNK_BYTES - 2000);
	}
	require_ok(allocate_overflow(tree, 0, 2000, &offset));
	assert_not_in_range(offset, chunk, chunk + CHUNK_BYTES - 1);
	tree_close(tree);
}

/* A process whose FETCH_ADD comes behind another one's takes nothing of what that has taken. */
static void
test_claimed(void **state)
{
	Tree *tree = many_tree(&narrow);
	uint32_t home = pointer_memory_node(tree->root);
	StateAtNode *at = tree_part(tree, home);
	uint64_t pointer, generation;

	require_ok(allocate_node(tree, home, 0, &pointer, &generation));
	assert_true(at->exhausted);
	/* As it was when the other one has looked. */
	at->exhausted = 0;
	require_ok(extent_chunks(tree, home, CHUNK_BYTES));
	assert_true(at->exhausted);
	assert_int_equal(lost_bytes(tree), tree->geometry.leaf_bytes);
	tree_close(tree);
}

/* ---- chains that are lost ---- */

/* Inserts so many entries into a tree of its own, the last ones while the chain at this step is lost.  False: there is no such step. */
static bool
lose_at(int order, uint32_t first, uint32_t last, uint64_t step, bool late)
{
	Tree *tree = many_tree(&narrow);
	uint64_t number = tree->tree, root = tree->root;
	bool through;

	many_insert(tree, order, 0, first, 5000);
	many_lose(step, late);
	many_insert(tree, order, first, last, last - first < 2000 ? 100 : last - first);
	through = many_lose_end();
	many_verify(tree, order, last);
	tree_close(tree);
	tree = many_open(&client);
	if (lost_bytes(tree) != 0)
		print_error("order %d, step %llu, late %d\n", order, (unsigned long long) step, late);
	require_none_lost(tree);
	tree_close(tree);
	require_ok(tree_drop(client.tree, number, tree_home(root)));
	return !through;
}

static void
test_lost_chains(void **state)
{
	/* From the first entry on, a few at a time; many into a tree of some leaves; so many that parents are split by waves. */
	static const struct
	{
		uint32_t first, last;
	} calls[] = {{0, 1500}, {1500, 4000}, {6000, 12000}};

	for (size_t call = 0; call < sizeof(calls) / sizeof(calls[0]); call++)
		for (int order = MANY_RANDOM; order <= MANY_ASCENDING; order++)
			for (int late = 0; late < 2; late++)
			{
				uint64_t step = 1;

				while (lose_at(order, calls[call].first, calls[call].last, step, late != 0))
					step += call == 2 ? 3 : 1;
				print_message("%llu steps\n", (unsigned long long) step);
			}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken_ahead),  cmocka_unit_test(test_no_connection),
		cmocka_unit_test(test_apart),        cmocka_unit_test(test_no_place),
		cmocka_unit_test(test_blocks_apart), cmocka_unit_test(test_claimed),
		cmocka_unit_test(test_lost_chains),
	};

	return cmocka_run_group_tests(tests, many_start, fixture_stop);
}
