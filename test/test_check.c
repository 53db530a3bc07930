/*
 * test_check.c
 *		tree_check(): silent on sound trees, and loud on every kind of damage, which is written into the nodes by hand.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/checked_tree.h"
#include "tree/descent/descent.h"

/* What the last check said. */
static char first_message[256];
static uint64_t messages;

static void
note(void *argument, const char *message)
{
	if (messages++ == 0)
		snprintf(first_message, sizeof(first_message), "%s", message);
}

static uint64_t
check(CheckedTree *f)
{
	TreeStatistics statistics;
	uint64_t problems;

	messages = 0;
	first_message[0] = 0;
	require_ok(tree_check(f->tree, note, NULL, NULL, &statistics, &problems));
	assert_int_equal(problems, messages);
	return problems;
}

/* The check reports, and one of its messages begins with what is expected. */
static void
must_report(CheckedTree *f, const char *expected)
{
	if (check(f) == 0)
		fail_msg("nothing reported, expected: %s", expected);
	if (strstr(first_message, expected) == NULL)
		fail_msg("reported '%s', expected '%s'", first_message, expected);
}

static void
write_node(CheckedTree *f, uint64_t pointer, const uint64_t *image, uint32_t bytes)
{
	FabricOp op = {.opcode = FABRIC_WRITE,
	               .region = FABRIC_NODES,
	               .length = bytes,
	               .offset = pointer_offset(pointer),
	               .buffer = (uint64_t *) image};

	require_ok(access_execute(f->tree, pointer_memory_node(pointer), &op, 1));
}

/* Leaf and parent in the middle of a tree that has each key `each` times. */
typedef struct Damage
{
	CheckedTree f;
	uint64_t pointer;
	uint64_t parent_pointer;
	uint64_t leaf[NODE_MAX_BYTES / 8];
	uint64_t saved_leaf[NODE_MAX_BYTES / 8];
	uint64_t parent[NODE_MAX_BYTES / 8];
	uint64_t saved_parent[NODE_MAX_BYTES / 8];
} Damage;

static void
damage_open(Damage *d, KeySpaceKind kind, uint64_t each)
{
	Path path;
	TreeBound bound;

	checked_tree_open(&d->f, kind);
	for (uint64_t i = 0; i < 600; i++)
		insert(&d->f, i / each * 3, i);
	assert_int_equal(check(&d->f), 0);
	d->f.low = 900 / each;
	keyspace_bound(d->f.space, &d->f.low, -1, &bound);
	require_ok(search_descend(d->f.tree, &bound, 0, true, &path));
	d->pointer = path.pointer;
	d->parent_pointer = path.parents[1];
	require_ok(access_read_node(d->f.tree, d->pointer, 0, d->leaf));
	require_ok(access_read_node(d->f.tree, d->parent_pointer, 1, d->parent));
	memcpy(d->saved_leaf, d->leaf, sizeof(d->leaf));
	memcpy(d->saved_parent, d->parent, sizeof(d->parent));
	assert_true(node_count(d->leaf) >= 4);
	assert_true(node_count(d->parent) >= 4);
}

/* Puts the damaged images into the tree, checks, and heals it. */
static void
damage_check(Damage *d, const char *expected)
{
	const NodeGeometry *g = &d->f.tree->geometry;

	write_node(&d->f, d->pointer, d->leaf, g->leaf_bytes);
	write_node(&d->f, d->parent_pointer, d->parent, INNER_BYTES);
	must_report(&d->f, expected);
	memcpy(d->leaf, d->saved_leaf, sizeof(d->leaf));
	memcpy(d->parent, d->saved_parent, sizeof(d->parent));
	write_node(&d->f, d->pointer, d->leaf, g->leaf_bytes);
	write_node(&d->f, d->parent_pointer, d->parent, INNER_BYTES);
	assert_int_equal(check(&d->f), 0);
}

static uint64_t *
cell(Damage *d, uint32_t slot)
{
	return d->leaf + leaf_cell_word(&d->f.tree->geometry, slot);
}

static uint64_t *
child(Damage *d, uint32_t i)
{
	return d->parent + inner_cell_word(&d->f.tree->geometry, i);
}

static void
check_leaf_damage(void **state)
{
	Damage d;
	const NodeGeometry *g;
	uint64_t saved[LINE_WORDS];

	damage_open(&d, KEYSPACE_16, 1);
	g = &d.f.tree->geometry;

	memcpy(saved, cell(&d, 1), g->cell_bytes);
	memcpy(cell(&d, 1), cell(&d, 2), g->cell_bytes);
	memcpy(cell(&d, 2), saved, g->cell_bytes);
	damage_check(&d, "is below the one before it");

	cell(&d, 1)[0] = cell(&d, 2)[0];
	damage_check(&d, "is there twice");

	cell(&d, 0)[1] = 5 << 8;
	damage_check(&d, "below the low fence");

	cell(&d, node_count(d.leaf) - 1)[1] = (1ull << 30) << 8;
	damage_check(&d, "not below the high fence");

	cell(&d, 1)[0] |= (uint64_t) CELL_POSTING << CELL_STATE_SHIFT;
	damage_check(&d, "a posting that is none");

	cell(&d, 1)[0] &= ~((uint64_t) CELL_POSTING << CELL_STATE_SHIFT);
	damage_check(&d, "is in state 0");

	cell(&d, 1)[0] &= ~(CELL_OFFSET_MASK << CELL_OFFSET_SHIFT);
	damage_check(&d, "has no TID");

	d.leaf[g->low_word + 1] += 1 << 8;
	damage_check(&d, "low fence is not the separator in parent");

	d.leaf[g->high_word + 1] += 1 << 8;
	damage_check(&d, "low fence is not the left sibling's high fence");

	memset(d.leaf + g->low_word, 0, g->cell_bytes);
	node_seal(g, d.leaf);
	damage_check(&d, "low fence is");

	memcpy(d.leaf + g->high_word, d.leaf + g->low_word, g->cell_bytes);
	damage_check(&d, "low fence is not below the high fence");

	d.leaf[HEADER_RIGHT] = POINTER_NONE;
	damage_check(&d, "high fence is not infinite");

	d.leaf[HEADER_STATE] |= (uint64_t) NODE_ROOT << 40;
	damage_check(&d, "the root's flag is wrong");

	/* Another node's image in its place: not a node of this level. */
	d.leaf[HEADER_SELF] += 1 << 16;
	damage_check(&d, "not a node of this level");

	d.leaf[HEADER_TREE]++;
	damage_check(&d, "not a node of this level");
	checked_tree_close(&d.f);
}

/* What a posting may not be. */
static void
check_posting_damage(void **state)
{
	Damage d;
	const NodeGeometry *g;
	uint32_t slot = 1;

	damage_open(&d, KEYSPACE_16, 30);
	g = &d.f.tree->geometry;
	while (!cell_is_posting(cell(&d, slot)) || !cell_is_posting(cell(&d, slot + 1)))
		slot++;

	posting_remove(cell(&d, slot), 1);
	damage_check(&d, "is not above the one before it");

	cell(&d, slot)[1] = cell(&d, slot)[1] << 32 | cell(&d, slot)[1] >> 32;
	damage_check(&d, "is not above the one before it");

	posting_remove(cell(&d, slot), 2);
	damage_check(&d, "has room, and another one behind it");

	posting_remove(cell(&d, slot), 0);
	damage_check(&d, "is malformed");

	cell(&d, slot)[0] |= CELL_HIGH_BIT;
	damage_check(&d, "is malformed");

	d.leaf[HEADER_STATE] ^= (uint64_t) NODE_POSTINGS << 40;
	damage_check(&d, "a posting that is none");

	/* The cell in front of it is another key's last one. */
	slot = posting_head(g, d.leaf, slot);
	cell(&d, slot)[1] += 1 << 8;
	damage_check(&d, "of the base is below the one before it");
	checked_tree_close(&d.f);
}

static void
check_inner_damage(void **state)
{
	Damage d;
	const NodeGeometry *g;

	damage_open(&d, KEYSPACE_16, 1);
	g = &d.f.tree->geometry;

	child(&d, 2)[2] += 1 << 8;
	node_seal(g, d.parent);
	damage_check(&d, "low fence is not the separator in parent");

	child(&d, 2)[2] = child(&d, 1)[2];
	node_seal(g, d.parent);
	damage_check(&d, "is not below the next one");

	child(&d, 2)[0] = child(&d, 1)[0];
	node_seal(g, d.parent);
	damage_check(&d, "is not on this level");

	child(&d, 2)[1] |= 1;
	node_seal(g, d.parent);
	damage_check(&d, "carries a stamp");

	child(&d, 2)[0] = POINTER_NONE;
	node_seal(g, d.parent);
	damage_check(&d, "is missing");

	memset(child(&d, 2) + 1, 0, g->cell_bytes);
	node_seal(g, d.parent);
	damage_check(&d, "is infinite");

	child(&d, 0)[1] |= (uint64_t) SEPARATOR_CUT << CELL_STATE_SHIFT;
	node_seal(g, d.parent);
	damage_check(&d, "first separator is not the low fence");
	checked_tree_close(&d.f);
}

/* A separator that the parent does not have is owed to it, and no damage. */
static void
check_incomplete_splits(void **state)
{
	Damage d;
	const NodeGeometry *g;
	uint32_t count;

	damage_open(&d, KEYSPACE_16, 1);
	g = &d.f.tree->geometry;
	count = node_count(d.parent);
	memmove(child(&d, 2), child(&d, 3), (count - 3) * g->inner_stride * 8);
	d.parent[HEADER_STATE] = node_state_word(d.parent[HEADER_GENERATION], 1, count - 1, node_flags(d.parent));
	node_seal(g, d.parent);
	write_node(&d.f, d.parent_pointer, d.parent, INNER_BYTES);
	assert_int_equal(check(&d.f), 0);
	cache_drop(d.f.tree, d.parent_pointer);
	compare_everything(&d.f, 1800, 200);
	/* Whoever moved right there has paid for it. */
	require_ok(access_read_node(d.f.tree, d.parent_pointer, 1, d.parent));
	assert_int_equal(node_count(d.parent), count);
	checked_tree_close(&d.f);
}

/* An overflow key that is not what its cell's hash says. */
static void
check_images(void **state)
{
	Damage d;
	const NodeGeometry *g;
	OverflowReference reference;
	uint64_t zero = 0;

	damage_open(&d, KEYSPACE_64_PREFIX, 1);
	g = &d.f.tree->geometry;
	cell_overflow(g, cell(&d, 1), &reference);
	FabricOp op = {.opcode = FABRIC_WRITE,
	               .region = FABRIC_NODES,
	               .length = 8,
	               .offset = reference.offset + 8,
	               .buffer = &zero};

	require_ok(access_execute(d.f.tree, 0, &op, 1));
	must_report(&d.f, "an overflow key is not its cell's");
	checked_tree_close(&d.f);
}

/* Order that only the comparator sees. */
static void
check_tied_order(void **state)
{
	Damage d;
	const NodeGeometry *g;

	damage_open(&d, KEYSPACE_32_PREFIX, 1);
	g = &d.f.tree->geometry;
	/* A key of another leaf in this one: the same normalized key, another number. */
	for (uint32_t i = 0; i < 8; i++)
		((uint8_t *) (cell(&d, 0) + 1 + g->norm_words))[1 + i] = i == 7 ? 1 : 0;
	((uint8_t *) (cell(&d, 0) + 1 + g->norm_words))[0] = 8 + 1;
	((uint8_t *) (cell(&d, 0) + 1 + g->norm_words))[9] = (uint8_t) (31 + 8 * 7);
	damage_check(&d, "below the low fence");
	checked_tree_close(&d.f);
}

/* A base that claims the comparator's order and does not have it; without the claim its ties may lie as they like. */
static void
check_claimed_order(void **state)
{
	Damage d;
	const NodeGeometry *g;
	uint64_t saved[LINE_WORDS];

	damage_open(&d, KEYSPACE_32_PREFIX, 1);
	g = &d.f.tree->geometry;
	assert_true((node_flags(d.leaf) & NODE_BASE_ORDERED) != 0);
	for (int claimed = 1; claimed >= 0; claimed--)
	{
		memcpy(saved, cell(&d, 1), g->cell_bytes);
		memcpy(cell(&d, 1), cell(&d, 2), g->cell_bytes);
		memcpy(cell(&d, 2), saved, g->cell_bytes);
		if (claimed)
			damage_check(&d, "is not in the order that it claims");
	}
	d.leaf[HEADER_STATE] &= ~((uint64_t) NODE_BASE_ORDERED << 40);
	write_node(&d.f, d.pointer, d.leaf, g->leaf_bytes);
	assert_int_equal(check(&d.f), 0);
	compare_everything(&d.f, 1800, 20);
	checked_tree_close(&d.f);
}

static void
check_empty_tree(void **state)
{
	CheckedTree f;
	TreeStatistics statistics;

	for (int kind = 0; kind < KEYSPACES; kind++)
	{
		checked_tree_open(&f, (KeySpaceKind) kind);
		compare_check(&f, &statistics);
		assert_int_equal(statistics.height, 1);
		assert_int_equal(statistics.leaves, 1);
		assert_int_equal(statistics.entries, 0);
		insert_random(&f, 1000, 400, 1);
		compare_check(&f, &statistics);
		assert_true(statistics.height > 1);
		assert_true(statistics.inner_nodes > 0);
		assert_int_equal(statistics.node_bytes, statistics.leaves * f.tree->geometry.leaf_bytes +
		                                            statistics.inner_nodes * INNER_BYTES);
		assert_true((statistics.overflow_bytes > 0) == (keyspace_image_bytes(keyspace(kind), 2) > 16));
		checked_tree_close(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(check_empty_tree),    cmocka_unit_test(check_leaf_damage),
		cmocka_unit_test(check_inner_damage),  cmocka_unit_test(check_incomplete_splits),
		cmocka_unit_test(check_images),        cmocka_unit_test(check_tied_order),
		cmocka_unit_test(check_claimed_order), cmocka_unit_test(check_posting_damage),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
