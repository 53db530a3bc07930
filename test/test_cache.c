/*
 * test_cache.c
 *		The search of an inner node against a look at every separator, and the shared cache of inner nodes: newest
 *		wins, children under their parents, eviction, readers that race with fillers, and fillers that die.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/testing.h"
#include "environment.h"
#include "../tree/internal.h"
#include "tree/descent/descent.h"
#include "tree/shared/frame_table.h"

/* An instance without memory nodes: shared memory, a client and a tree are all that the cache looks at. */
typedef struct Stage
{
	TreeSharedOptions options;
	void *memory;
	TreeClient client;
	Tree tree;
} Stage;

static _Thread_local uint64_t seed = 1;

static uint64_t
random_next(uint64_t limit)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % limit;
}

static void
stage_open(Stage *stage, const TreeFormat *format, uint64_t cache_bytes)
{
	memset(stage, 0, sizeof(*stage));
	stage->options.slots = 8;
	stage->options.trees = 4;
	stage->options.nodes = 1;
	stage->options.lock_words = 16;
	stage->options.cache_bytes = cache_bytes;
	stage->memory = mmap(NULL, tree_shared_bytes(&stage->options), PROT_READ | PROT_WRITE,
	                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(stage->memory, MAP_FAILED);
	stage->client.shared = tree_shared_initialize(stage->memory, &stage->options);
	assert_non_null(stage->client.shared);
	stage->tree.client = &stage->client;
	stage->tree.tree = 4711;
	stage->tree.geometry = node_geometry(format);
}

static void
stage_close(Stage *stage)
{
	munmap(stage->memory, tree_shared_bytes(&stage->options));
}

static const TreeFormat formats[] = {
	{.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 32, .norm_bytes = 24, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 32, .norm_bytes = 8, .lossless = false, .fill_percent = 90},
	{.cell_bytes = 64, .norm_bytes = 24, .lossless = false, .fill_percent = 90},
	{.cell_bytes = 24, .norm_bytes = 16, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 40, .norm_bytes = 8, .lossless = false, .fill_percent = 90},
};

#define FORMATS (sizeof(formats) / sizeof(formats[0]))

/* A key of few different words, so that many tie in the first, some in all. */
static void
random_key(const NodeGeometry *g, TreeKey *key)
{
	memset(key, 0, sizeof(*key));
	key->high = random_next(8) == 0;
	for (uint32_t word = 0; word < g->norm_words; word++)
		key->norm[word] = random_next(4) << 62 | random_next(3);
	key->block = (uint32_t) random_next(4);
	key->offset = (uint16_t) (1 + random_next(3));
	key->cut = random_next(4) == 0;
	if (key->cut)
		key->block = key->offset = 0;
}

/* A separator of that key; a key with an image that is not asked for here gets an empty one. */
static void
make_separator(const NodeGeometry *g, const TreeKey *key, uint64_t *separator)
{
	memset(separator, 0, g->cell_bytes);
	separator[0] =
		cell_word0(0, key->block, key->offset, key->cut ? SEPARATOR_CUT : SEPARATOR_FULL, key->high, false);
	for (uint32_t word = 0; word < g->norm_words; word++)
		separator[1 + word] = key->norm[word];
}

/* Order of separators, as integers tell it; keys without images are told by their TIDs. */
static int
compare_separators(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;
	bool left_high = (left[0] & CELL_HIGH_BIT) != 0, right_high = (right[0] & CELL_HIGH_BIT) != 0;
	uint64_t left_tid, right_tid;

	if (left_high != right_high)
		return left_high ? 1 : -1;
	for (int word = 1; word < 8; word++)
	{
		if (left[word] != right[word])
			return left[word] < right[word] ? -1 : 1;
	}
	if (cell_state(left[0]) != cell_state(right[0]))
		return cell_state(left[0]) == SEPARATOR_CUT ? -1 : 1;
	left_tid = tid_order(cell_block(left[0]), cell_offset(left[0]));
	right_tid = tid_order(cell_block(right[0]), cell_offset(right[0]));
	return left_tid < right_tid ? -1 : left_tid > right_tid;
}

/* An inner node with up to `count` different random separators. */
static void
random_node(const NodeGeometry *g, uint64_t *node, uint32_t count, uint64_t tree, uint64_t pointer)
{
	uint64_t separators[256][8];
	uint32_t used = 0;

	memset(separators, 0, sizeof(separators));
	for (uint32_t i = 0; i < count; i++)
	{
		TreeKey key;

		random_key(g, &key);
		make_separator(g, &key, separators[i]);
	}
	qsort(separators, count, sizeof(separators[0]), compare_separators);
	node_begin(g, node, tree, pointer, 1, 1 + random_next(100), 0);
	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t word = inner_cell_word(g, used);

		if (i > 0 && compare_separators(separators[i - 1], separators[i]) == 0)
			continue;
		node[word] = pointer_make(0, (100 + used) * 4096ull);
		memcpy(node + word + 1, separators[i], g->cell_bytes);
		used++;
	}
	node[HEADER_STATE] = node_state_word(node[HEADER_GENERATION], 1, used, 0);
	node_set_fence(g, node, false, NULL);
	node_set_fence(g, node, true, NULL);
	node_seal(g, node);
}

static void
random_bound(const NodeGeometry *g, TreeBound *bound)
{
	TreeKey key;

	do
		random_key(g, &key);
	while (key.cut);
	bound_of_key(g, &key, bound);
	if (random_next(2) == 0)
	{
		bound->side = (int8_t) (random_next(3)) - 1;
		if (bound->side != 0)
			bound->norm_length = (uint8_t) random_next(g->format.norm_bytes + 1u);
		bound->norm_exact = random_next(4) != 0;
		bound->norm_bits_valid = bound->norm_length > 0 || random_next(2) == 0;
		if (!bound->norm_bits_valid)
			bound->norm_length = 0;
	}
}

/* What a look at every separator says: the last that is not above the bound, and the last that may be so. */
static void
linear_search(const NodeGeometry *g, const uint64_t *node, const TreeBound *bound, uint32_t *first,
              uint32_t *last)
{
	*first = *last = 0;
	for (uint32_t i = 1; i < node_count(node); i++)
	{
		Decision decision = node_decide(g, bound, node + inner_cell_word(g, i) + 1, true);

		if (decision == DECIDE_ABOVE || decision == DECIDE_EQUAL)
			*first = i;
		if (decision != DECIDE_BELOW)
			*last = i;
	}
}

static void
test_search_agrees(void **state)
{
	uint64_t node[NODE_MAX_BYTES / 8];
	int undecided = 0;

	for (uint32_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);

		for (int round = 0; round < 300; round++)
		{
			random_node(&g, node, 1 + (uint32_t) random_next(g.inner_cells), 7, pointer_make(0, 4096));
			for (int i = 0; i < 100; i++)
			{
				TreeBound bound;
				uint32_t first, last, expected_first, expected_last;
				bool decided;

				random_bound(&g, &bound);
				decided = node_search_inner(&g, node, &bound, &first, &last);
				linear_search(&g, node, &bound, &expected_first, &expected_last);
				assert_int_equal(first, expected_first);
				assert_int_equal(last, expected_last);
				assert_int_equal(decided, first == last);
				undecided += !decided;
			}
		}
	}
	assert_true(undecided > 1000);
}

/* ---- the cache ---- */

/* A node whose whole content follows from its number and generation: child i is (number, generation + i). */
static void
numbered_node(const NodeGeometry *g, uint64_t *node, uint64_t tree, uint32_t number, uint32_t level,
              uint64_t generation)
{
	uint64_t separator[8] = {cell_word0(0, 0, 0, SEPARATOR_CUT, false, false)};

	node_begin(g, node, tree, pointer_make(0, number * 4096ull), level, generation, 0);
	for (uint32_t i = 0; i < g->inner_cells; i++)
	{
		uint32_t word = inner_cell_word(g, i);

		node[word] = (pointer_make(0, (generation + i) * 4096) | (uint16_t) number);
		separator[1] = i * 10;
		memcpy(node + word + 1, separator, g->cell_bytes);
	}
	node[HEADER_STATE] = node_state_word(generation, level, g->inner_cells, 0);
	node_set_fence(g, node, false, NULL);
	node_set_fence(g, node, true, NULL);
	node_seal(g, node);
}

/* Looks key i * 10 + 5 up: is the child that of this number and generation? */
static TreeStatus
find(Stage *stage, uint32_t number, uint32_t i, ChildChoice *choice)
{
	uint64_t copy[NODE_MAX_BYTES / 8];
	TreeBound bound;
	TreeKey key;
	TreeStatus status;

	memset(&key, 0, sizeof(key));
	key.norm[0] = i * 10 + 5;
	key.offset = 1;
	bound_of_key(&stage->tree.geometry, &key, &bound);
	status = cache_find_child(&stage->tree, pointer_make(0, number * 4096ull), &bound, choice, copy);
	if (status != TREE_OK)
		return status;
	if (choice->index != i ||
	    choice->child != (pointer_make(0, (choice->generation + i) * 4096) | (uint16_t) number) ||
	    choice->low[1] != i * 10)
		return TREE_DAMAGED;
	return TREE_OK;
}

static void
put(Stage *stage, uint32_t number, uint32_t parent, uint32_t level, uint64_t generation)
{
	uint64_t image[NODE_MAX_BYTES / 8];

	numbered_node(&stage->tree.geometry, image, stage->tree.tree, number, level, generation);
	cache_put(&stage->tree, pointer_make(0, number * 4096ull),
	          parent != 0 ? pointer_make(0, parent * 4096ull) : 0, image);
}

static void
test_newest_wins(void **state)
{
	Stage stage;
	ChildChoice choice;
	uint64_t copy[NODE_MAX_BYTES / 8];

	stage_open(&stage, &formats[0], 1 << 20);
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_NOT_FOUND);
	put(&stage, 1, 0, 2, 5);
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_OK);
	assert_int_equal(choice.generation, 5);
	assert_int_equal(choice.level, 2);
	put(&stage, 1, 0, 2, 4);
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_OK);
	assert_int_equal(choice.generation, 5);
	put(&stage, 1, 0, 2, 6);
	assert_int_equal(find(&stage, 1, 0, &choice), TREE_OK);
	assert_int_equal(choice.generation, 6);
	assert_int_equal(find(&stage, 1, stage.tree.geometry.inner_cells - 1, &choice), TREE_OK);
	assert_int_equal(cache_copy(&stage.tree, (pointer_make(0, 4096) | 17), copy), TREE_OK);
	assert_int_equal(node_check(&stage.tree.geometry, copy, stage.tree.tree, pointer_make(0, 4096)),
	                 NODE_GOOD);

	/* Another tree's node at the same address is another node. */
	stage.tree.tree++;
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_NOT_FOUND);
	stage.tree.tree--;
	cache_drop(&stage.tree, pointer_make(0, 4096));
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_NOT_FOUND);
	assert_int_equal(cache_copy(&stage.tree, pointer_make(0, 4096), copy), TREE_NOT_FOUND);
	stage_close(&stage);
}

/* A tie that only the comparator can break brings a whole, private copy. */
static void
test_undecided_replicas(void **state)
{
	Stage stage;
	ChildChoice choice;
	TreeBound bound;
	TreeKey key;
	uint64_t image[NODE_MAX_BYTES / 8], copy[NODE_MAX_BYTES / 8];
	uint64_t separator[8];
	const NodeGeometry *g;

	stage_open(&stage, &formats[2], 1 << 20);
	g = &stage.tree.geometry;
	numbered_node(g, image, stage.tree.tree, 1, 1, 9);
	memset(&key, 0, sizeof(key));
	key.norm[0] = 30;
	key.offset = 4;
	make_separator(g, &key, separator);
	memcpy(image + inner_cell_word(g, 3) + 1, separator, g->cell_bytes);
	node_seal(g, image);
	cache_put(&stage.tree, pointer_make(0, 4096), 0, image);
	bound_of_key(g, &key, &bound);
	assert_int_equal(cache_find_child(&stage.tree, pointer_make(0, 4096), &bound, &choice, copy), TREE_RETRY);
	assert_memory_equal(copy, image, sizeof(copy));
	/* Whichever child the comparator chooses, it is none that was merged. */
	stage.tree.epoch++;
	assert_int_equal(cache_find_child(&stage.tree, pointer_make(0, 4096), &bound, &choice, copy), TREE_RETRY);
	cache_touched(&stage.tree, image[inner_cell_word(g, 2)]);
	assert_int_equal(cache_find_child(&stage.tree, pointer_make(0, 4096), &bound, &choice, copy),
	                 TREE_NOT_FOUND);
	stage_close(&stage);
}

/* Nodes side by side have sets side by side, and all sets have about as many nodes. */
static void
test_sets_of_neighbors(void **state)
{
	enum
	{
		SETS = 1000,
		IMAGE_BYTES = 1024,
		RUNS = 1000,
		RUN = 64 /* nodes */
	};
	FrameTable frames = {.sets = SETS, .ways = 8, .image_bytes = IMAGE_BYTES, .fills_of_tick = 1};
	void *memory = aligned_alloc(LINE_BYTES, SETS * frames_set_bytes(frames.ways, IMAGE_BYTES));
	uint32_t nodes[SETS] = {0};

	assert_non_null(memory);
	frames_lay_out(&frames, memory);
	for (uint32_t run = 0; run < RUNS; run++)
	{
		uint32_t first = 0;

		for (uint32_t i = 0; i < RUN; i++)
		{
			FrameKey key = frame_key(&frames, 7, pointer_make(1, (run * RUN + i) * (uint64_t) IMAGE_BYTES));
			uint32_t set = key.first / frames.ways;

			assert_int_equal(key.end - key.first, frames.ways);
			assert_in_range(set, 0, SETS - 1);
			first = i == 0 ? set : first;
			assert_int_equal(set, (first + i) % SETS);
			nodes[set]++;
		}
	}
	for (uint32_t set = 0; set < SETS; set++)
		assert_in_range(nodes[set], RUNS * RUN / SETS / 2, 2 * RUNS * RUN / SETS);
	free(memory);
}

/* What frame_hash() mixes. */
static uint64_t
hashed(uint64_t tree, uint64_t address)
{
	return (tree * 0x9e3779b97f4a7c15ull) ^ (address >> 16);
}

/* Nodes of two trees whose hashes are the same, and so their tags: each has a frame of its own. */
static void
test_same_tag(void **state)
{
	Stage stage;
	uint64_t address = pointer_make(0, 4096), other, tree = 0;
	uint64_t image[NODE_MAX_BYTES / 8], copy[NODE_MAX_BYTES / 8];

	/* One set: eight frames. */
	stage_open(&stage, &formats[0], 8 * 4096 + 8 * 64 + 64);
	/* A tree that differs in bits which an address can make up for. */
	do
		other = hashed(stage.tree.tree, address) ^ hashed(++tree, 0);
	while (other >> 48 != 0 || tree == stage.tree.tree);
	other <<= 16;
	assert_int_equal(frame_hash(tree, other), frame_hash(stage.tree.tree, address));
	put(&stage, 1, 0, 2, 5);
	stage.tree.tree = tree;
	assert_int_equal(cache_copy(&stage.tree, other, copy), TREE_NOT_FOUND);
	numbered_node(&stage.tree.geometry, image, tree, 1, 2, 5);
	image[HEADER_SELF] = other;
	cache_put(&stage.tree, other, 0, image);
	assert_int_equal(cache_copy(&stage.tree, other, copy), TREE_OK);
	assert_int_equal(copy[HEADER_SELF], other);
	stage.tree.tree = 4711;
	assert_int_equal(cache_copy(&stage.tree, address, copy), TREE_OK);
	assert_int_equal(copy[HEADER_SELF], address);
	stage_close(&stage);
}

/* Without its parent a node is not kept; a parent with children is not evicted; after all are gone, it can be. */
static void
test_children_under_parents(void **state)
{
	Stage stage;
	ChildChoice choice;

	/* One set: eight frames. */
	stage_open(&stage, &formats[0], 8 * 4096 + 8 * 64 + 64);
	put(&stage, 2, 1, 1, 5);
	assert_int_equal(find(&stage, 2, 3, &choice), TREE_NOT_FOUND);
	put(&stage, 1, 0, 2, 5);
	put(&stage, 2, 1, 1, 5);
	assert_int_equal(find(&stage, 2, 3, &choice), TREE_OK);
	/*
	 * Far more children than frames: the parent stays, though nobody uses it, the least recently used children go,
	 * and node 2 is used all the time.
	 */
	for (uint32_t i = 10; i < 100; i++)
	{
		put(&stage, i, 1, 1, 5);
		assert_int_equal(find(&stage, 2, 3, &choice), TREE_OK);
		assert_int_equal(find(&stage, i, 3, &choice), TREE_OK);
	}
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_OK);
	assert_true(stage.client.counters.cache_evictions >= 80);
	assert_int_equal(find(&stage, 20, 3, &choice), TREE_NOT_FOUND);

	/* A dropped parent keeps its place for its children, and takes the next image. */
	cache_drop(&stage.tree, pointer_make(0, 4096));
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_NOT_FOUND);
	assert_int_equal(find(&stage, 2, 3, &choice), TREE_OK);
	put(&stage, 1, 0, 2, 5);
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_OK);

	/* With the whole tree gone all eight frames are free again, for roots of another one. */
	cache_drop_tree(stage.client.shared, stage.tree.tree);
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_NOT_FOUND);
	assert_int_equal(find(&stage, 2, 3, &choice), TREE_NOT_FOUND);
	stage.tree.tree++;
	stage.client.counters.cache_evictions = 0;
	for (uint32_t i = 1; i <= 8; i++)
		put(&stage, i, 0, 2, 5);
	assert_int_equal(stage.client.counters.cache_evictions, 0);
	for (uint32_t i = 1; i <= 8; i++)
		assert_int_equal(find(&stage, i, 3, &choice), TREE_OK);
	tree_shared_reset(stage.client.shared);
	for (uint32_t i = 1; i <= 8; i++)
		assert_int_equal(find(&stage, i, 3, &choice), TREE_NOT_FOUND);
	stage_close(&stage);
}

/* The child with this number, of a node with this generation, was merged; it, or what it went into. */
static void
touch(Stage *stage, uint64_t generation, uint32_t i)
{
	cache_touched(&stage->tree, (pointer_make(0, (generation + i) * 4096) | 9));
}

static TreeStatus
copy_of(Stage *stage, uint32_t number)
{
	uint64_t copy[NODE_MAX_BYTES / 8];

	return cache_copy(&stage->tree, pointer_make(0, number * 4096ull), copy);
}

/* Behind a merge frames of before are believed in all but what they say of the nodes that it has touched. */
static void
test_merges(void **state)
{
	Stage stage;
	ChildChoice choice;
	uint32_t last;

	stage_open(&stage, &formats[0], 1 << 20);
	last = stage.tree.geometry.inner_cells - 1;
	stage.tree.first_epoch = stage.tree.epoch = 5;
	put(&stage, 1, 0, 2, 1000);
	put(&stage, 2, 0, 2, 2000);

	/* A child: the others are found still, and the whole is not copied. */
	stage.tree.epoch = 7;
	touch(&stage, 1000, 3);
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_NOT_FOUND);
	assert_int_equal(find(&stage, 1, 2, &choice), TREE_OK);
	assert_int_equal(find(&stage, 1, 4, &choice), TREE_OK);
	assert_int_equal(copy_of(&stage, 1), TREE_NOT_FOUND);
	assert_int_equal(find(&stage, 2, 3, &choice), TREE_OK);
	assert_int_equal(copy_of(&stage, 2), TREE_OK);
	touch(&stage, 1000, last);
	assert_int_equal(find(&stage, 1, last, &choice), TREE_NOT_FOUND);
	/* Read again it is good, though it was not written since. */
	put(&stage, 1, 0, 2, 1000);
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_OK);
	assert_int_equal(find(&stage, 1, last, &choice), TREE_OK);
	assert_int_equal(copy_of(&stage, 1), TREE_OK);

	/* The node itself: its address has another one, perhaps. */
	stage.tree.epoch = 8;
	cache_touched(&stage.tree, (pointer_make(0, 4096) | 3));
	assert_int_equal(find(&stage, 1, 2, &choice), TREE_NOT_FOUND);
	assert_int_equal(copy_of(&stage, 1), TREE_NOT_FOUND);
	assert_int_equal(find(&stage, 2, 2, &choice), TREE_OK);
	put(&stage, 1, 0, 2, 1001);
	assert_int_equal(find(&stage, 1, 2, &choice), TREE_OK);

	/* Merges of another tree, which began earlier, take no mark away. */
	stage.tree.epoch = 11;
	touch(&stage, 1001, 3);
	stage.tree.tree++;
	stage.tree.epoch = 6;
	for (uint32_t i = 0; i < 1000; i++)
		touch(&stage, i * 1000ull, i);
	stage.tree.epoch = 7;
	for (uint32_t i = 0; i < 100000; i++)
		touch(&stage, 1, i);
	stage.tree.tree--;
	stage.tree.epoch = 11;
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_NOT_FOUND);
	assert_int_equal(find(&stage, 1, 4, &choice), TREE_OK);

	/* The tree has another state: nothing of before is its. */
	stage.tree.first_epoch = stage.tree.epoch = 12;
	assert_int_equal(find(&stage, 1, 4, &choice), TREE_NOT_FOUND);
	assert_int_equal(copy_of(&stage, 2), TREE_NOT_FOUND);
	stage_close(&stage);
}

/* The node on the right of one is merged: who goes on to it by a copy of before would read it. */
static void
test_merges_on_the_right(void **state)
{
	Stage stage;
	ChildChoice choice;
	uint64_t image[NODE_MAX_BYTES / 8];

	stage_open(&stage, &formats[0], 1 << 20);
	stage.tree.first_epoch = stage.tree.epoch = 5;
	numbered_node(&stage.tree.geometry, image, stage.tree.tree, 1, 2, 1000);
	image[HEADER_RIGHT] = (pointer_make(0, 7 * 4096) | 1);
	node_seal(&stage.tree.geometry, image);
	cache_put(&stage.tree, pointer_make(0, 4096), 0, image);
	stage.tree.epoch = 6;
	assert_int_equal(copy_of(&stage, 1), TREE_OK);
	cache_touched(&stage.tree, (pointer_make(0, 7 * 4096) | 2));
	assert_int_equal(copy_of(&stage, 1), TREE_NOT_FOUND);
	assert_int_equal(find(&stage, 1, 3, &choice), TREE_OK);
	stage_close(&stage);
}

#define RACERS 4
#define RACE_ROUNDS 20000

/* Fills, searches, copies and drops nodes of a tree of three levels in a cache of 16 frames. */
static void
race_body(int number, void *argument)
{
	Stage own = *(const Stage *) argument; /* what a client counts is its own */
	uint64_t copy[NODE_MAX_BYTES / 8];
	uint64_t hits = 0;

	own.tree.client = &own.client;
	seed = 100 + (uint64_t) number;
	for (int i = 0; i < RACE_ROUNDS; i++)
	{
		uint32_t node = 1 + (uint32_t) random_next(21);
		uint32_t level = node == 1 ? 3 : node <= 5 ? 2 : 1;
		uint32_t parent = node == 1 ? 0 : node <= 5 ? 1 : 2 + (node - 6) / 4;
		ChildChoice choice;
		TreeStatus status;

		switch (random_next(8))
		{
			case 0:
			case 1:
				put(&own, node, parent, level, 1 + random_next(1000));
				break;
			case 2:
				if (random_next(8) == 0)
					cache_drop(&own.tree, pointer_make(0, node * 4096ull));
				break;
			case 3:
				status = cache_copy(&own.tree, pointer_make(0, node * 4096ull), copy);
				if (status == TREE_OK &&
				    (copy[HEADER_SUM] != node_sum(copy, INNER_BYTES) ||
				     copy[HEADER_SELF] != pointer_make(0, node * 4096ull) || node_level(copy) != level))
					_exit(2);
				break;
			default:
				status = find(&own, node, (uint32_t) random_next(100), &choice);
				if (status == TREE_DAMAGED || (status == TREE_OK && choice.level != level))
					_exit(3);
				hits += status == TREE_OK;
				break;
		}
	}
	if (hits <= RACE_ROUNDS / 100)
		_exit(4);
}

static void
test_race(void **state)
{
	Stage stage;

	stage_open(&stage, &formats[0], 2 * (8 * 4096 + 8 * 64 + 64));
	assert_int_equal(test_processes(RACERS, race_body, &stage), 0);
	/* No count was lost: everything can be dropped, and all frames are had again. */
	cache_drop_tree(stage.client.shared, stage.tree.tree);
	stage.tree.tree++;
	stage.client.counters.cache_evictions = 0;
	for (uint32_t i = 1; i <= 200; i++)
		put(&stage, i, 0, 2, 5);
	assert_int_equal(stage.client.counters.cache_evictions, 200 - 16);
	stage_close(&stage);
}

/* ---- a filler that dies ---- */

#define PAGE_BYTES 4096

static void
die(int signal_number)
{
	kill(getpid(), SIGKILL);
}

/* Ends this process in the middle of filling a frame: the image's second half lies where nothing may be read. */
static void
die_in_put(Tree *tree, uint64_t pointer, uint64_t parent, const uint64_t *image)
{
	uint8_t *pages = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *half = pages + PAGE_BYTES - INNER_BYTES / 2;

	if (pages == MAP_FAILED || mprotect(pages + PAGE_BYTES, PAGE_BYTES, PROT_NONE) != 0)
		_exit(2);
	memcpy(half, image, INNER_BYTES / 2);
	signal(SIGSEGV, die);
	cache_put(tree, pointer, parent, (uint64_t *) half);
	_exit(3);
}

static void
join_killed(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* The same put() by a process that dies in it. */
static void
put_dying(Stage *stage, uint32_t number, uint32_t parent, uint32_t level, uint64_t generation)
{
	uint64_t image[NODE_MAX_BYTES / 8];
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
	{
		numbered_node(&stage->tree.geometry, image, stage->tree.tree, number, level, generation);
		die_in_put(&stage->tree, pointer_make(0, number * 4096ull),
		           parent != 0 ? pointer_make(0, parent * 4096ull) : 0, image);
	}
	join_killed(child);
}

/* A frame whose image lies in two pages, the second of which whoever copies it comes to last. */
static struct
{
	uint64_t *image;
	uint64_t *sequence;
	char *page;
	size_t page_bytes;
} refilled;

/* The frame is filled anew while it is copied. */
static void
fill_again(int signal_number)
{
	(void) mprotect(refilled.page, refilled.page_bytes, PROT_READ | PROT_WRITE);
	refilled.image[HEADER_LSN]++;
	refilled.image[INNER_BYTES / 8 - 1]++;
	*refilled.sequence += 2;
}

/* Where frame and image of the only node in the cache lie: the words that say so are found in the order of the layout. */
static void
refilled_find(Stage *stage, uint64_t address)
{
	uint64_t *word = stage->client.shared->cache;

	while (word[1] != stage->tree.tree || word[2] != address)
		word += LINE_WORDS;
	refilled.sequence = word;
	do
		word += LINE_WORDS;
	while (word[HEADER_TREE] != stage->tree.tree || word[HEADER_SELF] != address);
	refilled.image = word;
	refilled.page_bytes = (size_t) sysconf(_SC_PAGESIZE);
	refilled.page =
		(char *) ((uintptr_t) (word + INNER_BYTES / 8 - 1) / refilled.page_bytes * refilled.page_bytes);
}

/* What was copied of two fillings is not believed, whenever they meet. */
static void
test_refilled(void **state)
{
	struct sigaction action = {.sa_handler = fill_again}, usual;
	uint64_t copy[NODE_MAX_BYTES / 8];
	Stage stage;

	stage_open(&stage, &formats[0], 1 << 20);
	put(&stage, 1, 0, 2, 5);
	refilled_find(&stage, pointer_address(pointer_make(0, 4096)));
	assert_true((char *) (refilled.image + HEADER_LSN) < refilled.page);
	assert_int_equal(sigaction(SIGSEGV, &action, &usual), 0);
	assert_int_equal(mprotect(refilled.page, refilled.page_bytes, PROT_NONE), 0);
	assert_int_equal(cache_copy(&stage.tree, pointer_make(0, 4096), copy), TREE_OK);
	assert_int_equal(sigaction(SIGSEGV, &usual, NULL), 0);
	assert_int_equal(copy[HEADER_LSN], refilled.image[HEADER_LSN]);
	assert_int_equal(copy[INNER_BYTES / 8 - 1], refilled.image[INNER_BYTES / 8 - 1]);
	stage_close(&stage);
}

/*
 * Half of one image and half of another are nobody's; nobody waits for the dead; the next instance has all
 * frames again.
 */
static void
test_filler_dies(void **state)
{
	Stage stage;
	ChildChoice choice;
	uint64_t copy[NODE_MAX_BYTES / 8];
	uint32_t last;

	stage_open(&stage, &formats[0], 1 << 20);
	last = stage.tree.geometry.inner_cells - 1;
	put(&stage, 1, 0, 2, 5);
	put(&stage, 2, 1, 1, 5);
	put(&stage, 3, 1, 1, 5);
	put_dying(&stage, 2, 1, 1, 6); /* over an older image */
	put_dying(&stage, 4, 1, 1, 6); /* into an empty frame */
	for (uint32_t number = 2; number <= 4; number += 2)
	{
		assert_int_equal(find(&stage, number, 0, &choice), TREE_NOT_FOUND);
		assert_int_equal(find(&stage, number, last, &choice), TREE_NOT_FOUND);
		assert_int_equal(cache_copy(&stage.tree, pointer_make(0, number * 4096ull), copy), TREE_NOT_FOUND);
		put(&stage, number, 1, 1, 7);
		cache_drop(&stage.tree, pointer_make(0, number * 4096ull));
	}
	assert_int_equal(find(&stage, 2, 0, &choice), TREE_NOT_FOUND);
	assert_int_equal(find(&stage, 1, last, &choice), TREE_OK);
	assert_int_equal(find(&stage, 3, last, &choice), TREE_OK);

	tree_shared_reset(stage.client.shared);
	put(&stage, 1, 0, 2, 5);
	for (uint32_t number = 2; number <= 4; number++)
	{
		put(&stage, number, 1, 1, 5);
		assert_int_equal(find(&stage, number, last, &choice), TREE_OK);
	}
	stage_close(&stage);
}

/* In a set of eight frames those of the living go round among seven. */
static void
test_filler_dies_in_a_full_set(void **state)
{
	Stage stage;
	ChildChoice choice;

	stage_open(&stage, &formats[0], 8 * 4096 + 8 * 64 + 64);
	put_dying(&stage, 1, 0, 2, 5);
	for (uint32_t i = 10; i < 30; i++)
	{
		put(&stage, i, 0, 2, 5);
		assert_int_equal(find(&stage, i, 3, &choice), TREE_OK);
	}
	stage_close(&stage);
}

/* Chains of one lookup's way to its leaf. */
static uint64_t
descend(Tree *tree, uint64_t number)
{
	uint64_t before = tree->client->counters.round_trips;
	TreeKey key = {.norm = {number}, .offset = 1};
	TreeBound bound;
	Path path;

	bound_of_key(&tree->geometry, &key, &bound);
	assert_int_equal(search_descend(tree, &bound, 0, false, &path), TREE_OK);
	assert_true(path.fences_known);
	return tree->client->counters.round_trips - before;
}

/* A real tree's root: the others read it from the memory node, each for itself, and find what is right. */
static void
test_filler_of_root_dies(void **state)
{
	static const TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	uint64_t image[NODE_MAX_BYTES / 8];
	FabricOp op = {.opcode = FABRIC_READ, .region = FABRIC_NODES, .length = INNER_BYTES, .buffer = image};
	TestNode node;
	TestInstance instance;
	TestClient client;
	TreeRecord record;
	Tree *tree;
	pid_t child;
	bool hit;

	test_node_start(&node, 8 << 20);
	test_instance_start(&instance, &node, 1, 4, 1 << 20);
	test_client_open(&client, &instance, 0);
	test_tree_create(&client, &formats[0], &record);
	assert_int_equal(tree_open(client.tree, record.tree, record.root, &formats[0], NULL, NULL, &tree),
	                 TREE_OK);
	/* Two levels: the root is the only inner node. */
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(
			tree_insert(tree, &(TreeKey){.norm = {i}, .block = (uint32_t) i, .offset = 1}, &wal, &hit),
			TREE_OK);
	assert_int_equal(descend(tree, 50), 0);
	op.offset = pointer_offset(record.root);
	assert_int_equal(fabric_execute(client.endpoints[0], &op, 1), FABRIC_OK);
	assert_int_equal(node_level(image), 1);
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
	{
		image[HEADER_GENERATION]++;
		die_in_put(tree, record.root, 0, image);
	}
	join_killed(child);
	for (uint64_t i = 0; i < 100; i++)
	{
		assert_int_equal(descend(tree, i), 1);
		assert_int_equal(
			tree_insert(tree, &(TreeKey){.norm = {i}, .block = (uint32_t) i, .offset = 1}, &wal, &hit),
			TREE_OK);
		assert_true(hit);
	}
	tree_close(tree);
	assert_int_equal(test_client_close(&client), TREE_OK);

	/* What follows the death of a process. */
	test_instance_attach(&instance);
	test_client_open(&client, &instance, 0);
	assert_int_equal(tree_open(client.tree, record.tree, record.root, &formats[0], NULL, NULL, &tree),
	                 TREE_OK);
	(void) descend(tree, 50);
	assert_int_equal(descend(tree, 50), 0);
	tree_close(tree);
	assert_int_equal(test_client_close(&client), TREE_OK);
	test_instance_stop(&instance);
	test_node_stop(&node);
}

/* Processor time of this process: what others do at the same time does not count. */
static uint64_t
used_us(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t) used.tv_sec * 1000000u + (uint64_t) used.tv_nsec / 1000u;
}

/* The hot path of every descent, in nanoseconds: printed, and bounded far above what is expected. */
static void
test_speed(void **state)
{
	enum
	{
		SEARCHES = 300000,
		KEYS = 1024
	};
	static TreeBound bounds[KEYS];
	static uint64_t pointers[KEYS];
	Stage stage;
	ChildChoice choice;
	uint64_t copy[NODE_MAX_BYTES / 8];
	uint64_t before, spent;

	stage_open(&stage, &formats[0], 4 << 20);
	for (uint32_t i = 1; i <= 50; i++)
		put(&stage, i, 0, 1, 5);
	for (int i = 0; i < KEYS; i++)
	{
		TreeKey key = {.norm = {random_next(1600)}, .offset = 1};

		bound_of_key(&stage.tree.geometry, &key, &bounds[i]);
		pointers[i] = pointer_make(0, (1 + random_next(50)) * 4096ull);
	}
	before = used_us();
	for (int i = 0; i < SEARCHES; i++)
		(void) cache_find_child(&stage.tree, pointers[i % KEYS], &bounds[i % KEYS], &choice, copy);
	spent = used_us() - before;
	print_message("cache_find_child: %.0f ns\n", (double) spent * 1000 / SEARCHES);
	assert_true(spent < (uint64_t) SEARCHES * 20);
	stage_close(&stage);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest threads[] = {
		cmocka_unit_test(test_race),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_search_agrees),
		cmocka_unit_test(test_newest_wins),
		cmocka_unit_test(test_same_tag),
		cmocka_unit_test(test_sets_of_neighbors),
		cmocka_unit_test(test_undecided_replicas),
		cmocka_unit_test(test_children_under_parents),
		cmocka_unit_test(test_merges),
		cmocka_unit_test(test_merges_on_the_right),
		cmocka_unit_test(test_race),
		cmocka_unit_test(test_refilled),
		cmocka_unit_test(test_filler_dies),
		cmocka_unit_test(test_filler_dies_in_a_full_set),
		cmocka_unit_test(test_filler_of_root_dies),
		cmocka_unit_test(test_speed),
	};

	if (test_threads_wanted(argc, argv))
		return cmocka_run_group_tests(threads, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
