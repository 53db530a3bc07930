/*
 * test_wild_nodes.c
 *		Nodes of any content, which their stamps and sums vouch for: node memory that is damaged, or lies.  Every operation ends,
 *		with an answer or an error, keeps to its own memory, and holds nothing afterwards.
 *
 * Of a tree in each key space some words of some nodes are changed in a round: bits turned over, or words of that node or of
 * another one put in their place.  Then all operations are tried, and the nodes are put back.  What the answers are is nobody's
 * promise; the sanitizers and the time limit judge, in builds with assertions and in those without (script/test: c-release).
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/checked_tree.h"
#include "support/random.h"
#include "tree/descent/descent.h"

#define ENTRIES 1200u
#define ROUNDS (20u / TEST_SLOWNESS)
/* Nodes that are changed in a round, and words of one, at most. */
#define WILD_NODES 3
#define WILD_WORDS 4
/* Of one operation, as so many are tried. */
#define PATIENCE_US 2000000u

typedef struct Wild
{
	uint64_t pointer;
	uint32_t level;
	uint64_t before[NODE_MAX_BYTES / 8];
} Wild;

static Wild wild[WILD_NODES];
static uint32_t wild_count;

static void
write_node(Tree *tree, uint64_t pointer, uint64_t *image, uint32_t bytes)
{
	FabricOp op = {.opcode = FABRIC_WRITE,
	               .region = FABRIC_NODES,
	               .length = bytes,
	               .offset = pointer_offset(pointer),
	               .buffer = image};

	assert_int_equal(access_execute(tree, pointer_memory_node(pointer), &op, 1), TREE_OK);
	cache_drop_tree(instance.shared, tree->tree);
}

/* A node of the tree on the way from the root to a random key, whole as it is. */
static bool
draw_node(CheckedTree *f, Wild *node)
{
	uint32_t level = (uint32_t) key_random(&f->random, 3);
	KeyEntry entry = entry_of(key_random(&f->random, ENTRIES), 0);
	KeyImage image;
	TreeBound bound;
	TreeKey key;
	Path path;

	keyspace_key(f->space, &entry, &image, &key);
	bound_of_key(&f->tree->geometry, &key, &bound);
	if (search_descend(f->tree, &bound, level, true, &path) != TREE_OK ||
	    access_read_whole(f->tree, path.pointer, (int) level, node->before) != TREE_OK)
		return false;
	node->pointer = path.pointer;
	node->level = level;
	return true;
}

/* Any word, or one that much depends on. */
static uint32_t
draw_word(CheckedTree *f, uint32_t words)
{
	const NodeGeometry *g = &f->tree->geometry;
	uint32_t places[] = {HEADER_STATE, HEADER_RIGHT,  HEADER_EPOCH,     g->low_word,
	                     g->high_word, g->first_word, g->first_word + 1};

	if (key_random(&f->random, 2) == 0)
		return places[key_random(&f->random, sizeof(places) / sizeof(places[0]))];
	return (uint32_t) key_random(&f->random, words);
}

static void
make_wild(CheckedTree *f, Wild *node)
{
	uint32_t bytes = node_bytes(&f->tree->geometry, node->level);
	uint64_t image[NODE_MAX_BYTES / 8];
	uint32_t changes = 1 + (uint32_t) key_random(&f->random, WILD_WORDS);

	memcpy(image, node->before, sizeof(image));
	for (uint32_t i = 0; i < changes; i++)
	{
		uint32_t word = draw_word(f, bytes / 8);

		switch (key_random(&f->random, 4))
		{
			case 0:
				image[word] ^= 1ull << key_random(&f->random, 64);
				break;
			case 1:
				image[word] = image[key_random(&f->random, bytes / 8)];
				break;
			case 2:
				image[word] =
					wild[key_random(&f->random, WILD_NODES)].before[key_random(&f->random, bytes / 8)];
				break;
			default:
				image[word] |= 0xffull << 8 * key_random(&f->random, 8);
				break;
		}
	}
	/* As what lies there says what it is, it is looked at further. */
	image[HEADER_TREE] = node->before[HEADER_TREE];
	image[HEADER_SELF] = node->before[HEADER_SELF];
	image[HEADER_GENERATION] = node->before[HEADER_GENERATION];
	image[HEADER_STATE] &= ~(0xffull << 24) & ~((uint64_t) NODE_FREE << 40);
	image[HEADER_STATE] |= (uint64_t) NODE_FORMAT_VERSION << 24;
	node_seal(&f->tree->geometry, image);
	write_node(f->tree, node->pointer, image, bytes);
}

static void
assert_nothing_held(void)
{
	assert_int_equal(instance.environment->slots[0].holds, 0);
	assert_false(client.tree->holding);
}

/* No operation says anything but that it was done, or that the tree is damaged; or it has tried for long. */
static void
assert_ended(TreeStatus status)
{
	assert_nothing_held();
	if (status != TREE_OK && status != TREE_END && status != TREE_DAMAGED && status != TREE_MEMORY_FULL &&
	    status != TREE_INVALID && status != TREE_TIMED_OUT && status != TREE_NOT_FOUND)
		fail_msg("%s: %s", tree_status_name(status), tree_detail(client.tree));
}

static void
try_insert(CheckedTree *f, uint32_t number, bool alone)
{
	KeyEntry entry = entry_of(number, number + ENTRIES);
	TreeWalPosition wal = {.epoch = 1, .lsn = number};
	KeyImage image;
	TreeKey key;
	bool hit, is_alone;

	keyspace_key(f->space, &entry, &image, &key);
	assert_ended(alone ? tree_insert_alone(f->tree, &key, &wal, NULL, &hit, &is_alone)
	                   : tree_insert(f->tree, &key, &wal, &hit));
}

/* Scans, as healers do, heals what is in doubt, and marks what it finds as dead. */
static void
try_scan(CheckedTree *f, TreeDirection direction)
{
	static const TreeWalLimits lost = {.epoch = 9, .first = 1, .count = 1, .limit = {ENTRIES / 2}};
	static const TreeWalPosition wal = {.epoch = 9, .lsn = 1};
	const TreeBatch *batch;
	TreeStatus status;
	TreeKey key;
	uint32_t batches = 0;
	bool healed, unchanged;
	int marked;

	f->tree->geometry.ends = direction == TREE_FORWARD ? &lost : NULL;
	tree_scan_unverified(f->scan, true);
	assert_int_equal(tree_scan_seek(f->scan, direction, NULL, NULL), TREE_OK);
	while ((status = tree_scan_next(f->scan, &batch)) == TREE_OK)
	{
		TreeDead dead = {batch->entries[0].block, batch->entries[0].offset, batch->entries[0].cell};

		assert_true(++batches < ENTRIES);
		for (int i = 0; i < batch->count; i++)
			assert_true(batch->entries[i].offset != 0 && batch->entries[i].block != UINT32_MAX);
		for (int i = 0; i < batch->count; i++)
			(void) tree_batch_key(f->scan, batch, i, &key);
		assert_ended(tree_batch_unchanged(f->scan, batch, &unchanged));
		if (batch->count > 0 && !batch->unverified)
			assert_ended(tree_mark_dead(f->tree, &batch->leaf, &dead, 1, &wal, &marked));
		else if (batch->unverified)
			assert_ended(tree_heal_leaf(f->tree, &batch->leaf, &dead, batch->count > 0, &wal, &healed));
	}
	assert_ended(status);
	f->tree->geometry.ends = NULL;
}

static bool
is_third(void *argument, uint32_t block, uint16_t offset)
{
	return (block + offset) % 3 == 0;
}

static void
try_vacuum(CheckedTree *f)
{
	TreeVacuumCounts counts = {0};
	TreeMergeCounts merged = {0};
	TreeVacuum *walk;
	TreeMerge *merge;
	TreeStatus status;

	assert_int_equal(tree_vacuum_open(f->tree, &walk), TREE_OK);
	while ((status = tree_vacuum_next(walk, is_third, NULL, &counts)) == TREE_OK)
		assert_true(counts.leaves < ENTRIES);
	assert_ended(status);
	if (status == TREE_END)
	{
		assert_int_equal(tree_merge_open(f->tree, walk, &merge), TREE_OK);
		while ((status = tree_merge_next(merge, &merged)) == TREE_OK)
			;
		assert_ended(status);
		tree_merge_close(merge);
	}
	tree_vacuum_close(walk);
}

static void
try_all(CheckedTree *f)
{
	TreeStatistics statistics;
	uint64_t problems;
	TreeFound found;
	KeyImage image;
	TreeKey key;

	for (uint32_t i = 0; i < 6; i++)
	{
		KeyEntry entry = entry_of(key_random(&f->random, ENTRIES), 0);

		try_insert(f, (uint32_t) key_random(&f->random, ENTRIES), i % 3 == 0);
		keyspace_key(f->space, &entry, &image, &key);
		assert_ended(tree_find(f->scan, &key, &found));
	}
	assert_ended(tree_estimate(f->tree, &statistics));
	assert_ended(tree_check(f->tree, NULL, NULL, NULL, &statistics, &problems));
	try_scan(f, TREE_BACKWARD);
	try_scan(f, TREE_FORWARD);
	try_vacuum(f);
}

static void
wild_round(KeySpaceKind kind, uint32_t round)
{
	CheckedTree f;

	checked_tree_open(&f, kind);
	f.random.state = round * 31 + (uint32_t) kind;
	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		KeyEntry entry = entry_of(i / (1 + round % 3 * 20), i);
		bool hit;

		assert_int_equal(insert_try(&f, &entry, &hit), TREE_OK);
	}
	wild_count = 1 + (uint32_t) key_random(&f.random, WILD_NODES);
	for (uint32_t i = 0; i < wild_count; i++)
		if (!draw_node(&f, &wild[i]))
			wild_count = i;
	f.tree->compare = compare_images;
	for (uint32_t i = 0; i < wild_count; i++)
		make_wild(&f, &wild[i]);
	try_all(&f);
	checked_tree_close(&f);
}

static void
test_wild_nodes(void **state)
{
	client.tree->options.operation_timeout_ms = PATIENCE_US / 1000;
	for (uint32_t round = 0; round < ROUNDS; round++)
		for (int kind = 0; kind < KEYSPACES; kind++)
			wild_round((KeySpaceKind) kind, round);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wild_nodes),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
