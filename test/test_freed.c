/*
 * test_freed.c
 *		Nodes that left the tree and wait for their next life: each is given once, to its kind, with a later generation; a list that
 *		others change meanwhile, or whose node is damaged, gives nothing that is not free; and of several memory nodes one that has some
 *		is chosen.
 */
#include <stdlib.h>
#include <string.h>

#include "tree/shared/state.h"
#include "support/tree_fixture.h"
#include "tree/space/allocate.h"

#define MEMORY_NODES 3u
/* As freed.c: a list that changed so often is left alone. */
#define ATTEMPTS 16

/* A node outside of any tree, as freed_put() and freed_take() name it. */
typedef struct Node
{
	uint64_t pointer;
	uint64_t generation;
	uint32_t level;
} Node;

/* Two handles of one instance, of a tree over several memory nodes. */
static Tree *tree, *other;
static uint64_t fresh[MEMORY_NODES]; /* the rest of a run that nobody else has, at each memory node */
static uint64_t left[MEMORY_NODES];  /* its bytes */

static int
trees_open(void **state)
{
	fixture_open(&(FixtureOptions){
		.nodes = MEMORY_NODES, .node_bytes = 8 * MEGABYTE, .trees = 1, .two_clients = true});
	tree = open_tree(&client, &records[0]);
	other = open_tree(&other_client, &records[0]);
	memset(left, 0, sizeof(left));
	return 0;
}

static int
trees_close(void **state)
{
	tree_close(other);
	tree_close(tree);
	return fixture_stop(state);
}

/* A node that is in no tree and in no list. */
static Node
new_node(uint32_t memory_node, uint32_t level)
{
	uint64_t *offset = &fresh[memory_node], *bytes = &left[memory_node];
	uint64_t generation;

	if (*bytes == 0)
	{
		*bytes = CHUNK_BYTES;
		assert_int_equal(allocate_run(other, memory_node, 0, bytes, offset, &generation), TREE_OK);
		assert_int_equal(*bytes % INNER_BYTES, 0);
	}
	*bytes -= INNER_BYTES;
	return (Node){
		.pointer = (pointer_make(memory_node, *offset + *bytes) | 7), .generation = 7, .level = level};
}

static void
must_put(Tree *tree, const Node *freed)
{
	assert_int_equal(freed_put(tree, freed->pointer, freed->level, freed->generation), TREE_OK);
}

/* A new node of this level, freed. */
static Node
put_new(uint32_t memory_node, uint32_t level)
{
	Node freed = new_node(memory_node, level);

	must_put(tree, &freed);
	return freed;
}

/* What is taken is this node: in a later life than the one in which it lay in the list, which was a later one, too. */
static void
must_take(Tree *tree, const Node *freed, uint32_t level)
{
	uint64_t pointer, generation;

	assert_int_equal(freed_take(tree, pointer_memory_node(freed->pointer), level, &pointer, &generation),
	                 TREE_OK);
	assert_int_equal(pointer_address(pointer), pointer_address(freed->pointer));
	assert_int_equal(generation, freed->generation + 2);
	assert_int_equal(pointer & STAMP_MASK, 0);
}

static void
must_not_take(uint32_t memory_node, uint32_t level)
{
	uint64_t pointer, generation;

	assert_int_equal(freed_take(tree, memory_node, level, &pointer, &generation), TREE_NOT_FOUND);
}

static uint64_t
bytes_of(uint64_t leaves, uint64_t inner)
{
	return leaves * tree->geometry.leaf_bytes + inner * INNER_BYTES;
}

/* Leaves and inner nodes, of whatever level, have a list each, which gives back what came last; at each memory node its own. */
static void
kinds_are_apart(void **state)
{
	Node leaves[3], inner[3], elsewhere;

	assert_int_equal(tree_freed_bytes(tree), 0);
	must_not_take(0, 0);
	for (uint32_t i = 0; i < 3; i++)
	{
		leaves[i] = put_new(0, 0);
		inner[i] = put_new(0, i + 1);
		assert_int_equal(tree_freed_bytes(tree), bytes_of(i + 1, i + 1));
	}
	elsewhere = put_new(2, 0);
	assert_int_equal(tree_freed_bytes(tree), bytes_of(4, 3));
	must_not_take(1, 0);
	must_not_take(2, 1);
	for (int i = 2; i >= 0; i--)
	{
		must_take(other, &leaves[i], 0);
		assert_int_equal(tree_freed_bytes(tree), bytes_of(1 + (uint64_t) i, 3));
	}
	must_not_take(0, 0);
	for (int i = 2; i >= 0; i--)
		must_take(tree, &inner[i], 3 - (uint32_t) i);
	must_not_take(0, 1);
	must_take(tree, &elsewhere, 0);
	must_not_take(2, 0);
	assert_int_equal(tree_freed_bytes(tree), 0);
}

static void
access_line(FabricOpcode opcode, uint64_t pointer, uint64_t *line)
{
	FabricOp op = {.opcode = (uint8_t) opcode,
	               .region = FABRIC_NODES,
	               .length = LINE_BYTES,
	               .offset = pointer_offset(pointer),
	               .buffer = line};

	assert_int_equal(access_execute(tree, pointer_memory_node(pointer), &op, 1), TREE_OK);
}

/* Whoever comes to a node of the list by an old pointer sees another generation, and that it is free. */
static void
readers_reject(void **state)
{
	_Alignas(LINE_BYTES) uint64_t line[LINE_WORDS];
	Node before = put_new(0, 0), freed = put_new(0, 0);

	access_line(FABRIC_READ, freed.pointer, line);
	assert_int_equal(line[HEADER_TREE], records[0].tree);
	assert_int_equal(line[HEADER_SELF], pointer_address(freed.pointer));
	assert_true(line[HEADER_GENERATION] > freed.generation);
	assert_int_equal(node_flags(line) & NODE_FREE, NODE_FREE);
	assert_int_equal(line[HEADER_RIGHT], pointer_address(before.pointer));
}

/* What may be wrong with the header of a list's first node. */
typedef void (*Damage)(uint64_t *line);

static void
other_tree(uint64_t *line)
{
	line[HEADER_TREE]++;
}

static void
other_place(uint64_t *line)
{
	line[HEADER_SELF] += INNER_BYTES;
}

static void
not_free(uint64_t *line)
{
	line[HEADER_STATE] = node_state_word(line[HEADER_GENERATION], node_level(line), 0, 0);
}

static void
other_kind(uint64_t *line)
{
	line[HEADER_STATE] =
		node_state_word(line[HEADER_GENERATION], node_level(line) == 0 ? 1 : 0, 0, NODE_FREE);
}

static void
next_elsewhere(uint64_t *line)
{
	line[HEADER_RIGHT] = pointer_make(1, pointer_offset(line[HEADER_SELF]));
}

static void
next_with_stamp(uint64_t *line)
{
	line[HEADER_RIGHT] = (line[HEADER_SELF] + INNER_BYTES) | 5;
}

static void
next_in_another_unit(uint64_t *line)
{
	line[HEADER_RIGHT] = pointer_make(0, pointer_offset(line[HEADER_SELF]) ^ 2 * STATE_UNIT_BYTES);
}

static void
next_between(uint64_t *line)
{
	line[HEADER_RIGHT] = pointer_make(0, pointer_offset(line[HEADER_SELF]) + LINE_BYTES);
}

static void
nothing_wrong(uint64_t *line)
{
	line[HEADER_GENERATION]++;
}

/* Damages the first of two nodes in a list of this level. */
static Node
damaged_list(Damage damage, uint32_t level)
{
	_Alignas(LINE_BYTES) uint64_t line[LINE_WORDS];
	Node freed, behind;

	/* In one unit: else each is in a list of its own. */
	do
	{
		behind = new_node(0, level);
		freed = new_node(0, level);
	} while (pointer_offset(behind.pointer) / STATE_UNIT_BYTES !=
	         pointer_offset(freed.pointer) / STATE_UNIT_BYTES);
	must_put(tree, &behind);
	must_put(tree, &freed);
	access_line(FABRIC_READ, freed.pointer, line);
	damage(line);
	access_line(FABRIC_WRITE, freed.pointer, line);
	return freed;
}

/* A damaged list is forgotten whole, and a new one begins; others stay. */
static void
damaged_lists_are_forgotten(void **state)
{
	static const Damage damages[] = {other_tree,     other_place,     not_free,     other_kind,
	                                 next_elsewhere, next_with_stamp, next_between, next_in_another_unit};

	uint64_t pointer, generation;

	for (uint32_t level = 0; level < 2; level++)
	{
		Node stays = put_new(0, 1 - level), freed;

		for (uint32_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		{
			(void) damaged_list(damages[i], level);
			must_not_take(0, level);
			assert_int_equal(tree_freed_bytes(tree), bytes_of(level, 1 - level));
			must_not_take(0, level);
			freed = put_new(0, level);
			must_take(tree, &freed, level);
			must_not_take(0, level);
		}
		must_take(tree, &stays, 1 - level);
		/* That it is the damage, and not this way of making it, that is noticed. */
		freed = damaged_list(nothing_wrong, level);
		freed.generation++;
		must_take(tree, &freed, level);
		assert_int_equal(tree_freed_bytes(tree), bytes_of(1 - level, level));
		/* The other one, which may lie in another unit than the next. */
		assert_int_equal(freed_take(tree, 0, level, &pointer, &generation), TREE_OK);
		(void) damaged_list(other_tree, level);
		must_not_take(0, level);
	}
}

/* ---- others change the list meanwhile */

/* What the other handle does while a chain of the first one is under way, and so many times. */
static void (*meanwhile)(void);
static int meanwhile_left;

static void
step(void *argument, const char *name, bool before)
{
	if (before || meanwhile_left == 0)
		return;
	meanwhile_left--;
	meanwhile();
}

static void
run_meanwhile(void (*what)(void), int times)
{
	meanwhile = what;
	meanwhile_left = times;
	tree_client_crash_points(client.tree, what == NULL ? NULL : step);
}

static Node list[4];

static void
take_one(void)
{
	must_take(other, &list[3], 0);
}

/* The list begins with the same node again, and yet it is another list. */
static void
take_two_put_first(void)
{
	must_take(other, &list[3], 0);
	must_take(other, &list[2], 0);
	list[3].generation += 2;
	must_put(other, &list[3]);
}

static void
put_another(void)
{
	list[0] = new_node(0, 0);
	must_put(other, &list[0]);
}

static void
put_list(void)
{
	for (int i = 1; i < 4; i++)
		list[i] = put_new(0, 0);
}

/* A node is given to one of two who take at once, and the list is the one behind both. */
static void
takers_get_different_nodes(void **state)
{
	put_list();
	run_meanwhile(take_one, 1);
	must_take(tree, &list[2], 0);
	assert_int_equal(meanwhile_left, 0);
	must_take(tree, &list[1], 0);
	must_not_take(0, 0);

	put_list();
	run_meanwhile(take_two_put_first, 1);
	must_take(tree, &list[3], 0);
	assert_int_equal(meanwhile_left, 0);
	must_take(tree, &list[1], 0);
	must_not_take(0, 0);
	run_meanwhile(NULL, 0);
}

/* Of two who put at once none is lost. */
static void
putters_lose_nothing(void **state)
{
	Node freed = new_node(0, 0);

	put_list();
	run_meanwhile(put_another, 1);
	must_put(tree, &freed);
	assert_int_equal(meanwhile_left, 0);
	run_meanwhile(NULL, 0);
	assert_int_equal(tree_freed_bytes(tree), bytes_of(5, 0));
	must_take(tree, &freed, 0);
	for (int i = 0; i < 4; i++)
		must_take(tree, &list[i == 0 ? 0 : 4 - i], 0);
	must_not_take(0, 0);
}

/* As many entries are not in use as were once. */
static void
require_units(StateTable *table, uint32_t count)
{
	uint32_t unused = 0;

	assert_true(table->units_used <= count);
	for (uint32_t number = table->units_free; number != 0; unused++)
		number = ((const StateUnit *) (const void *) ((const char *) table + table->units))[number - 1].after;
	assert_int_equal(unused, table->units_used);
}

/* A list that changes under each try is left alone in the end, with nothing lost of what it has; one try fewer is good. */
static void
tries_end(void **state)
{
	Node freed = new_node(0, 0);
	uint64_t pointer, generation;
	int put = 0;

	run_meanwhile(put_another, ATTEMPTS - 1);
	must_put(tree, &freed);
	assert_int_equal(meanwhile_left, 0);
	must_take(tree, &freed, 0);
	run_meanwhile(put_another, ATTEMPTS);
	assert_int_equal(freed_put(tree, freed.pointer, 0, freed.generation + 2), TREE_RETRY);
	assert_int_equal(meanwhile_left, 0);
	put += 2 * ATTEMPTS - 1;
	assert_int_equal(tree_freed_bytes(tree), bytes_of((uint64_t) put, 0));

	run_meanwhile(put_another, ATTEMPTS - 1);
	assert_int_equal(freed_take(tree, 0, 0, &pointer, &generation), TREE_OK);
	assert_int_equal(pointer_address(pointer), pointer_address(list[0].pointer));
	assert_int_equal(meanwhile_left, 0);
	run_meanwhile(put_another, ATTEMPTS);
	assert_int_equal(freed_take(tree, 0, 0, &pointer, &generation), TREE_NOT_FOUND);
	assert_int_equal(meanwhile_left, 0);
	run_meanwhile(NULL, 0);
	put += 2 * ATTEMPTS - 2;
	assert_int_equal(tree_freed_bytes(tree), bytes_of((uint64_t) put, 0));
	while (freed_take(tree, 0, 0, &pointer, &generation) == TREE_OK)
		put--;
	assert_int_equal(put, 0);
}

/* Free nodes of two trees, of more units than can be told apart: each tree gets its own, all of them, and no others. */
static void
units_of_two_trees(void **state)
{
	StateTable *table = instance.shared->states;
	static Node put[2][300];
	TreeRecord record;
	Tree *trees[2] = {tree};
	uint32_t most = table->unit_count;

	test_tree_create(&client, &narrow, &record);
	trees[1] = open_tree(&client, &record);
	require_units(table, 0);
	table->unit_count = 5;
	for (uint32_t i = 0; i < 300; i++)
		for (uint32_t k = 0; k < 2; k++)
		{
			put[k][i] = new_node(0, i % 2);
			must_put(trees[k], &put[k][i]);
		}
	assert_int_equal(table->units_used, 5);
	for (uint32_t k = 0; k < 2; k++)
	{
		uint64_t pointer, generation;

		assert_int_equal(tree_freed_bytes(trees[k]), bytes_of(150, 150));
		assert_true(tree_part(trees[k], 0)->rest.count[0] > 0);
		for (uint32_t taken = 0; taken < 300; taken++)
		{
			uint32_t i = 0;

			assert_int_equal(freed_take(trees[k], 0, taken % 2, &pointer, &generation), TREE_OK);
			while (i < 300 && pointer_address(put[k][i].pointer) != pointer_address(pointer))
				i++;
			assert_true(i < 300);
			put[k][i].pointer = 0;
		}
		assert_int_equal(freed_take(trees[k], 0, 0, &pointer, &generation), TREE_NOT_FOUND);
		assert_int_equal(tree_freed_bytes(trees[k]), 0);
	}
	require_units(table, 5);
	/* What a tree had goes with it. */
	for (uint32_t i = 0; i < 40; i++)
	{
		put[1][i] = new_node(0, i % 2);
		must_put(trees[1], &put[1][i]);
	}
	tree_close(trees[1]);
	assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
	require_units(table, 5);
	table->unit_count = most;
}

/* ---- several memory nodes */

/* The one that is wished for if it has any of the kind, or nobody has; else the one that has most and can be reached. */
static void
node_is_chosen(void **state)
{
	for (uint32_t i = 0; i < MEMORY_NODES; i++)
		assert_int_equal(freed_choose(tree, i, 0), i);
	for (uint32_t i = 0; i < 3; i++)
		(void) put_new(i / 2, 1);
	assert_int_equal(freed_choose(tree, 2, 1), 0);
	(void) put_new(1, 0);
	for (uint32_t i = 0; i < MEMORY_NODES; i++)
	{
		assert_int_equal(freed_choose(tree, i, 0), 1);
		assert_int_equal(freed_choose(tree, i, 2), i == 1 ? 1 : 0);
	}
	(void) put_new(2, 0);
	(void) put_new(2, 0);
	assert_int_equal(freed_choose(tree, 0, 0), 2);
	assert_int_equal(freed_choose(tree, 1, 0), 1);
	client.tree->doubt = 1ull << 2;
	assert_int_equal(freed_choose(tree, 0, 0), 1);
	client.tree->doubt = 0;
	instance.shared->closed = 1u << 2;
	assert_int_equal(freed_choose(tree, 0, 0), 1);
	instance.shared->closed = 1u << 2 | 1u << 1;
	assert_int_equal(freed_choose(tree, 0, 0), 0);
	instance.shared->closed = 0;
	assert_int_equal(freed_choose(tree, 0, 0), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kinds_are_apart, trees_open, trees_close),
		cmocka_unit_test_setup_teardown(readers_reject, trees_open, trees_close),
		cmocka_unit_test_setup_teardown(damaged_lists_are_forgotten, trees_open, trees_close),
		cmocka_unit_test_setup_teardown(takers_get_different_nodes, trees_open, trees_close),
		cmocka_unit_test_setup_teardown(putters_lose_nothing, trees_open, trees_close),
		cmocka_unit_test_setup_teardown(tries_end, trees_open, trees_close),
		cmocka_unit_test_setup_teardown(units_of_two_trees, trees_open, trees_close),
		cmocka_unit_test_setup_teardown(node_is_chosen, trees_open, trees_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
