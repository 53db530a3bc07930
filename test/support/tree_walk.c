/*
 * tree_walk.c
 *		See tree_walk.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tree_walk.h"
#include "require.h"
#include "tree/descent/descent.h"

/* Children of one level as their parents list them, to hold against the next level's chain. */
typedef struct Listed
{
	uint64_t child;
	uint64_t separator[LINE_WORDS];
} Listed;

typedef struct Walk
{
	Tree *tree;
	WalkResult *result;
	size_t room;
	Listed *listed; /* of the level being walked */
	size_t listed_count;
	size_t listed_next;
	Listed *below; /* of the next level */
	size_t below_count;
	size_t below_room;
} Walk;

static void
entry_add(Walk *walk, const uint64_t *node, uint32_t slot, uint64_t word0)
{
	WalkResult *result = walk->result;

	if (result->count == walk->room)
	{
		walk->room = walk->room * 2 + 1024;
		result->entries = realloc(result->entries, walk->room * sizeof(WalkEntry));
		REQUIRE(result->entries != NULL, "no memory");
	}
	result->entries[result->count++] = (WalkEntry){
		.block = cell_block(word0), .offset = cell_offset(word0), .leaf = node[HEADER_SELF], .slot = slot};
}

/* The entries of a posting cell, if it is one: they are above those before them. Moves *last on. */
static void
posting_walk(Walk *walk, const uint64_t *node, uint32_t slot, uint64_t *last)
{
	const NodeGeometry *g = &walk->tree->geometry;
	const uint64_t *cell = node + leaf_cell_word(g, slot);

	if (!cell_is_posting(cell))
	{
		*last = tid_order(cell_block(cell[0]), cell_offset(cell[0]));
		return;
	}
	REQUIRE(posting_head(g, node, slot) != slot && slot < node_count(node), "posting in slot %u", slot);
	REQUIRE((node_flags(node) & NODE_POSTINGS) != 0, "an unknown posting in slot %u", slot);
	for (uint32_t i = 0; i < g->posting_tids && posting_get(cell, i) != 0; i++)
	{
		const uint64_t *head = node + leaf_cell_word(g, posting_head(g, node, slot));
		uint64_t word0 = posting_word0(head, posting_get(cell, i));
		uint64_t tid = tid_order(cell_block(word0), cell_offset(word0));

		REQUIRE(tid > *last, "posting in slot %u is not in order", slot);
		*last = tid;
		entry_add(walk, node, slot, word0);
		walk->result->in_postings++;
	}
}

/* Every live cell lies in [low, high); the base is in order. */
static void
leaf_walk(Walk *walk, const uint64_t *node)
{
	Tree *tree = walk->tree;
	const NodeGeometry *g = &tree->geometry;
	uint8_t *buffer = (uint8_t *) tree->overflow + TREE_IMAGE_MAX_BYTES;
	uint64_t last = 0;

	walk->result->leaves++;
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		const uint64_t *cell = node + leaf_cell_word(g, slot);
		TreeBound bound;
		TreeKey key;
		int low, high;

		posting_walk(walk, node, slot, &last);
		REQUIRE(cell_state(cell[0]) != CELL_EMPTY || slot >= node_count(node), "empty slot %u in the base",
		        slot);
		if (slot > 0 && slot < node_count(node) && !cell_is_posting(cell))
			REQUIRE(cell_order(g, node + leaf_cell_word(g, posting_head(g, node, slot - 1)), cell) <= 0,
			        "base out of order at %u", slot);
		if (cell_state(cell[0]) != CELL_LIVE)
			continue;
		cell_key(g, cell, false, &key);
		if ((cell[0] & CELL_OVERFLOW_BIT) != 0)
		{
			OverflowReference reference;

			cell_overflow(g, cell, &reference);
			REQUIRE(access_read_overflow(tree, &reference, 1, &buffer) == TREE_OK, "image of slot %u is lost",
			        slot);
			key.image = buffer;
		}
		bound_of_key(g, &key, &bound);
		REQUIRE(search_compare_fence(tree, &bound, node, false, &low) == TREE_OK, "low fence");
		REQUIRE(search_compare_fence(tree, &bound, node, true, &high) == TREE_OK, "high fence");
		REQUIRE(low >= 0 && high < 0, "leaf %llx slot %u lies outside its fences (%d, %d)",
		        (unsigned long long) node[HEADER_SELF], slot, low, high);
		entry_add(walk, node, slot, cell[0]);
	}
}

static void
inner_walk(Walk *walk, const uint64_t *node)
{
	const NodeGeometry *g = &walk->tree->geometry;

	walk->result->inner_nodes++;
	REQUIRE(separator_equal(g, node + inner_cell_word(g, 0) + 1, node + g->low_word),
	        "the first separator is not the low fence");
	for (uint32_t i = 0; i < node_count(node); i++)
	{
		const uint64_t *cell = node + inner_cell_word(g, i);

		if (walk->below_count == walk->below_room)
		{
			walk->below_room = walk->below_room * 2 + 256;
			walk->below = realloc(walk->below, walk->below_room * sizeof(Listed));
			REQUIRE(walk->below != NULL, "no memory");
		}
		walk->below[walk->below_count].child = pointer_address(cell[0]);
		memcpy(walk->below[walk->below_count].separator, cell + 1, g->cell_bytes);
		walk->below_count++;
	}
}

/* One level, from its leftmost node. Returns the leftmost node of the level below, 0 under the leaves. */
static uint64_t
level_walk(Walk *walk, uint64_t pointer, uint32_t level)
{
	Tree *tree = walk->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t node[NODE_MAX_BYTES / 8] __attribute__((aligned(64)));
	uint64_t high[LINE_WORDS] = {0};
	uint64_t first = 0;

	for (bool leftmost = true; pointer_address(pointer) != POINTER_NONE; leftmost = false)
	{
		TreeStatus status = access_read_node(tree, pointer, (int) level, node);

		REQUIRE(status == TREE_OK, "level %u node %llx: %s", level, (unsigned long long) pointer,
		        tree_status_name(status));
		if (leftmost)
			REQUIRE(separator_infinite(node + g->low_word), "the leftmost node has a low fence");
		else
			REQUIRE(separator_equal(g, node + g->low_word, high), "fences do not tile level %u", level);
		node_get_fence(g, node, true, high);
		REQUIRE(separator_infinite(high) == (pointer_address(node[HEADER_RIGHT]) == POINTER_NONE),
		        "right sibling and high fence disagree");
		if (walk->listed_next < walk->listed_count &&
		    walk->listed[walk->listed_next].child == pointer_address(pointer))
		{
			REQUIRE(separator_equal(g, walk->listed[walk->listed_next].separator, node + g->low_word),
			        "a separator is not its child's low fence");
			walk->listed_next++;
		}
		else if (walk->listed_count > 0)
			walk->result->incomplete_splits++;
		if (level == 0)
			leaf_walk(walk, node);
		else
		{
			inner_walk(walk, node);
			if (leftmost)
				first = node[inner_cell_word(g, 0)];
		}
		pointer = node[HEADER_RIGHT];
	}
	REQUIRE(walk->listed_next == walk->listed_count, "%zu children of level %u are not in its chain",
	        walk->listed_count - walk->listed_next, level);
	return first;
}

static int
tid_order_entries(const void *a, const void *b)
{
	const WalkEntry *mine = a, *theirs = b;
	uint64_t left = tid_order(mine->block, mine->offset), right = tid_order(theirs->block, theirs->offset);

	return left < right ? -1 : left > right;
}

void
walk_tree(Tree *tree, WalkResult *result)
{
	Walk walk = {.tree = tree, .result = result};
	uint64_t root[NODE_MAX_BYTES / 8] __attribute__((aligned(64)));
	uint64_t pointer = tree->root;

	memset(result, 0, sizeof(*result));
	REQUIRE(access_read_node(tree, tree->root, -1, root) == TREE_OK, "the root cannot be read");
	REQUIRE((node_flags(root) & NODE_ROOT) != 0, "the root does not say that it is one");
	result->height = node_level(root) + 1;
	for (uint32_t level = result->height; level-- > 0;)
	{
		pointer = level_walk(&walk, pointer, level);
		free(walk.listed);
		walk.listed = walk.below;
		walk.listed_count = walk.below_count;
		walk.listed_next = 0;
		walk.below = NULL;
		walk.below_count = walk.below_room = 0;
	}
	free(walk.listed);
	if (result->count > 0)
		qsort(result->entries, result->count, sizeof(WalkEntry), tid_order_entries);
	for (uint64_t i = 1; i < result->count; i++)
		REQUIRE(tid_order_entries(&result->entries[i - 1], &result->entries[i]) < 0,
		        "TID (%u,%u) occurs twice", result->entries[i].block, result->entries[i].offset);
}

void
walk_free(WalkResult *result)
{
	free(result->entries);
	result->entries = NULL;
}

bool
walk_has(const WalkResult *result, uint32_t block, uint16_t offset)
{
	WalkEntry wanted = {.block = block, .offset = offset};

	return bsearch(&wanted, result->entries, result->count, sizeof(WalkEntry), tid_order_entries) != NULL;
}

uint32_t
walk_root_forgets(Tree *tree)
{
	const NodeGeometry *g = &tree->geometry;
	uint64_t root[NODE_MAX_BYTES / 8];
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = INNER_BYTES, .buffer = root};
	uint32_t children;

	REQUIRE(access_read_node(tree, tree->root, -1, root) == TREE_OK, "the root cannot be read");
	children = node_count(root);
	for (uint32_t i = 1; 2 * i < children; i++)
		memmove(root + inner_cell_word(g, i), root + inner_cell_word(g, 2 * i), g->inner_stride * 8);
	root[HEADER_GENERATION]++;
	root[HEADER_STATE] =
		node_state_word(root[HEADER_GENERATION], node_level(root), (children + 1) / 2, NODE_ROOT);
	node_seal(g, root);
	op.offset = pointer_offset(tree->root);
	REQUIRE(access_execute(tree, pointer_memory_node(tree->root), &op, 1) == TREE_OK,
	        "the root cannot be written");
	cache_drop_tree(tree->client->shared, tree->tree);
	return children / 2;
}
