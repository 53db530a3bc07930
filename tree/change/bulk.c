/*
 * bulk.c
 *		Loading an empty tree in key order.
 *
 * Leaves are built side by side in private memory, a window, which is the image of a part of a run, and are written
 * by long chains of WRITEs (bulk_write.c); every cell is written once. The separator in front of a leaf goes to
 * the open node of the next level as the leaf is opened, and so on upward. The root is written last, at its fixed
 * address, once all else is acknowledged; before that none of these nodes is part of the tree. A load that ends early leaves an empty
 * tree, whose extents are freed with it. Nothing but the root is locked: no other process uses the tree.
 */
#include "tree/change/bulk_write.h"

#include "tree/lock/lock.h"
#include "tree/shared/cache.h"
#include "tree/space/allocate.h"

/*
 * Runs of leaves begin with this and double up to the last, so that a small tree does not take more than it
 * fills.
 */
#define RUN_FIRST_BYTES CHUNK_BYTES
#define RUN_LAST_BYTES (64u * CHUNK_BYTES)

/* Leaves are filled to this where the format does not say. */
#define FILL_PERCENT 90u

/* The open node of one inner level. */
typedef struct BulkLevel
{
	uint64_t *node; /* NULL: the level is not there yet */
	uint32_t count;
	uint64_t
		pointer; /* 0: the first node of its level has no place yet; as the last one it would be the root */
	uint64_t generation;
} BulkLevel;

struct TreeBulk
{
	Tree *tree;
	TreeWalPosition wal;
	uint32_t leaf_fill;  /* cells of a full leaf */
	uint32_t inner_fill; /* children of a full inner node */
	uint64_t root_generation;

	uint64_t *leaf;    /* the open leaf, in the window; NULL before the first key */
	uint32_t count;    /* its cells */
	uint32_t postings; /* NODE_POSTINGS if there are any in it */
	uint64_t leaf_pointer;
	uint64_t leaf_generation;
	bool first_leaf; /* the open leaf has no place yet: as the last one it would be the root */

	uint32_t run_node; /* the run that leaves are cut from */
	uint64_t run_next;
	uint64_t run_end;
	uint64_t run_generation;
	uint64_t run_bytes; /* to ask for next time */
	/* Bytes of runs, of each memory node; one that had no room counts as if it had given them. */
	uint64_t taken[TREE_MAX_NODES];

	BulkWrites writes;
	BulkWindow *window; /* that the open leaf lies in */

	uint64_t expected;      /* entries, in all; 0: not known */
	uint64_t runs_foreseen; /* runs whose length was foreseen */
	uint64_t entries;
	uint64_t leaf_count;
	uint64_t inner_count;
	uint64_t cell[LINE_WORDS]; /* of the key that opens the next leaf; with postings, of the key at hand */
	uint64_t last[LINE_WORDS]; /* with postings: of the key before it */
	Packer packer;             /* with postings: of the open leaf's cells */
	BulkLevel levels[LEVELS_MAX];
};

/* ---- overflow keys ---- */

/* Gives an image a block near the leaves, and puts its WRITE into the chain. */
static TreeStatus
image_place(TreeBulk *bulk, const TreeKey *key, OverflowReference *reference)
{
	uint32_t memory_node = bulk->run_node;
	uint32_t bytes = (key->image_bytes + OVERFLOW_ALIGN - 1u) / OVERFLOW_ALIGN * OVERFLOW_ALIGN;
	BulkWindow *window;
	uint8_t *place;
	TreeStatus status;

	assert(key->image_bytes > 0 && key->image != NULL);
	assert(bytes <= FABRIC_STRIPE_BYTES);

	status = bulk_window(&bulk->writes, BULK_IMAGES, memory_node, bytes, &window);
	if (status == TREE_OK)
		status = allocate_overflow(bulk->tree, memory_node, key->image_bytes, &reference->offset);
	if (status != TREE_OK)
		return status;
	reference->memory_node = memory_node;
	reference->bytes = key->image_bytes;
	reference->hash = image_hash(key->image, key->image_bytes);
	place = window->memory + window->bytes;
	memcpy(place, key->image, key->image_bytes);
	memset(place + key->image_bytes, 0, bytes - key->image_bytes);
	bulk_write(window, memory_node, reference->offset, place, bytes);
	window->bytes += bytes;
	return TREE_OK;
}

/* Makes the cell of a key, with the overflow key if it needs one. */
static inline TreeStatus
cell_place(TreeBulk *bulk, const TreeKey *key, uint64_t *cell)
{
	const NodeGeometry *g = &bulk->tree->geometry;
	OverflowReference reference;
	TreeStatus status;

	assert(!key->cut);
	assert(key->offset != 0);
	if (!cell_needs_overflow(g, key))
	{
		cell_make(g, cell, key, 0, NULL);
		return TREE_OK;
	}
	status = image_place(bulk, key, &reference);
	if (status == TREE_OK)
		cell_make(g, cell, key, 0, &reference);
	return status;
}

/* The cell of the key before the one at hand; NULL: it is the leaf's first. */
static const uint64_t *
bulk_before(const TreeBulk *bulk)
{
	const NodeGeometry *g = &bulk->tree->geometry;

	assert(bulk->count <= bulk->leaf_fill);
	if (bulk->count == 0)
		return NULL;
	return g->format.postings ? bulk->last : bulk->leaf + leaf_cell_word(g, bulk->count - 1);
}

/*
 * The separator in front of the key whose cell is bulk->cell; an overflow key is copied into a block of
 * its own.
 */
static TreeStatus
separator_make(TreeBulk *bulk, const TreeKey *key, uint64_t *separator)
{
	const NodeGeometry *g = &bulk->tree->geometry;
	OverflowReference reference;
	TreeKey whole = *key;
	TreeStatus status;

	assert(bulk->count > 0);
	assert(bulk->leaf != NULL);
	leaf_separator(g, bulk_before(bulk), bulk->cell, separator);
	if (cell_state(separator[0]) == SEPARATOR_CUT || (separator[0] & CELL_OVERFLOW_BIT) == 0)
		return TREE_OK;
	status = image_place(bulk, &whole, &reference);
	if (status == TREE_OK)
		cell_make(g, separator, &whole, 0, &reference);
	return status;
}

/* ---- inner nodes ---- */

/* Puts the node among what is written; its image may be used again. */
static TreeStatus
inner_copy(TreeBulk *bulk, uint64_t pointer, const uint64_t *node)
{
	uint32_t memory_node = pointer_memory_node(pointer);
	BulkWindow *window;
	TreeStatus status = bulk_window(&bulk->writes, BULK_INNER, memory_node, INNER_BYTES, &window);

	if (status != TREE_OK)
		return status;
	memcpy(window->memory + window->bytes, node, INNER_BYTES);
	bulk_write(window, memory_node, pointer_offset(pointer), window->memory + window->bytes, INNER_BYTES);
	window->bytes += INNER_BYTES;
	return TREE_OK;
}

/* Ends an inner node and writes it. `high` NULL: the last of its level. */
static TreeStatus
inner_write(TreeBulk *bulk, uint32_t level, const uint64_t *high, uint64_t right)
{
	const NodeGeometry *g = &bulk->tree->geometry;
	BulkLevel *open = &bulk->levels[level];

	assert(open->pointer != 0 && open->count > 0);
	assert(open->count <= g->inner_cells);
	open->node[HEADER_STATE] = node_state_word(open->generation, level, open->count, 0);
	open->node[HEADER_GENERATION] = open->generation;
	open->node[HEADER_SELF] = pointer_address(open->pointer);
	open->node[HEADER_RIGHT] = right;
	node_set_fence(g, open->node, true, high);
	node_seal(g, open->node);
	bulk->inner_count++;
	return inner_copy(bulk, open->pointer, open->node);
}

static void
inner_begin(TreeBulk *bulk, uint32_t level, uint64_t pointer, uint64_t generation, const uint64_t *low)
{
	Tree *tree = bulk->tree;
	BulkLevel *open = &bulk->levels[level];

	assert(open->node != NULL);
	assert(level > 0 && level < LEVELS_MAX);
	open->count = 0;
	open->pointer = pointer;
	open->generation = generation;
	/* The first node of a level has no place yet: it is the root's until a second one comes. */
	node_begin(&tree->geometry, open->node, tree->tree, pointer != 0 ? pointer : tree->root, level,
	           generation != 0 ? generation : bulk->root_generation, 0);
	node_set_fence(&tree->geometry, open->node, false, low);
}

static void
inner_append(TreeBulk *bulk, uint32_t level, const uint64_t *separator, uint64_t child)
{
	const NodeGeometry *g = &bulk->tree->geometry;
	BulkLevel *open = &bulk->levels[level];
	uint64_t *cell = open->node + inner_cell_word(g, open->count);

	assert(open->count < g->inner_cells);
	assert(child != POINTER_NONE);
	cell[0] = child;
	if (separator != NULL)
		memcpy(cell + 1, separator, g->cell_bytes);
	else
		memset(cell + 1, 0, g->cell_bytes);
	open->count++;
}

static TreeStatus
level_open(TreeBulk *bulk, uint32_t level)
{
	TreeClient *client = bulk->tree->client;
	BulkLevel *open = &bulk->levels[level];

	assert(open->node == NULL);
	assert(level > 0 && level < LEVELS_MAX);
	open->node = client_allocate_beside(client, bulk, NODE_MAX_BYTES);
	if (open->node == NULL)
		return client_fail(client, TREE_NO_MEMORY, "no memory for a level of the tree");
	inner_begin(bulk, level, 0, 0, NULL);
	return TREE_OK;
}

/* ---- what is foreseen ---- */

/*
 * What the leaves take that are still to come and have no place yet, if they are filled as those so far, of which the last one is full but
 * not counted yet; 0: that is not known.
 */
static uint64_t
leaves_foreseen(const TreeBulk *bulk)
{
	uint64_t leaf_bytes = bulk->tree->geometry.leaf_bytes;
	uint64_t bytes, places = bulk->run_end - bulk->run_next;

	if (bulk->expected < bulk->entries || bulk->leaf_count == 0)
		return 0;
	bytes = ((bulk->expected - bulk->entries) * (bulk->leaf_count + 1) / bulk->entries + 1) * leaf_bytes;
	return bytes > places + leaf_bytes ? bytes - places : leaf_bytes;
}

/*
 * The extent that is asked for if there is no memory left: a memory node's share of what is foreseen, with the inner nodes above; 0: it
 * is not known.
 */
static uint64_t
extent_foreseen(const TreeBulk *bulk, uint64_t least)
{
	uint64_t share = leaves_foreseen(bulk) / allocate_shares(bulk->tree);
	uint64_t extent;

	if (share == 0)
		return 0;
	if (share < least)
		share = least;
	extent =
		share + (share / bulk->tree->geometry.leaf_bytes / bulk->inner_fill + 1) * INNER_BYTES + CHUNK_BYTES;
	return extent < EXTENT_MAX_BYTES ? extent : EXTENT_MAX_BYTES;
}

/*
 * Adds the downlink of a new node of level - 1 to `level`, with the separator before it (NULL: the first of its
 * level). A node that is full is closed, its successor's downlink is added one level up, and so on.
 */
static TreeStatus
level_add(TreeBulk *bulk, uint32_t level, const uint64_t *separator, uint64_t child)
{
	TreeStatus status = TREE_OK;

	for (; status == TREE_OK; level++)
	{
		BulkLevel *open;
		uint64_t pointer, generation;

		if (level >= LEVELS_MAX)
			return client_fail(bulk->tree->client, TREE_INVALID, "a tree of more than %d levels", LEVELS_MAX);
		open = &bulk->levels[level];
		if (open->node == NULL)
			status = level_open(bulk, level);
		if (status != TREE_OK)
			break;
		if (open->count < bulk->inner_fill)
		{
			inner_append(bulk, level, separator, child);
			break;
		}
		assert(separator != NULL);
		if (open->pointer == 0)
		{
			status = allocate_node_foreseen(bulk->tree, bulk->run_node, level, extent_foreseen(bulk, 0),
			                                &open->pointer, &open->generation);
			if (status == TREE_OK)
				status = level_add(bulk, level + 1, NULL, open->pointer);
		}
		if (status == TREE_OK)
			status = allocate_node_foreseen(bulk->tree, bulk->run_node, level, extent_foreseen(bulk, 0),
			                                &pointer, &generation);
		if (status == TREE_OK)
			status = inner_write(bulk, level, separator, pointer);
		if (status != TREE_OK)
			break;
		inner_begin(bulk, level, pointer, generation, separator);
		inner_append(bulk, level, separator, child);
		child = pointer;
	}
	return status;
}

/* ---- leaves ---- */

/* The length of the next run, and of the extent that is asked for if there is no memory left. */
static void
run_size(TreeBulk *bulk, uint64_t *run, uint64_t *extent)
{
	uint64_t foreseen = leaves_foreseen(bulk);
	uint64_t shares = allocate_shares(bulk->tree);

	*run = bulk->run_bytes;
	*extent = 0;
	if (foreseen == 0)
		return;
	/* The last of a round of memory nodes gets what the others leave. */
	*run = foreseen / (shares - bulk->runs_foreseen++ % shares) / FABRIC_STRIPE_BYTES * FABRIC_STRIPE_BYTES +
	       FABRIC_STRIPE_BYTES;
	if (*run > RUN_LAST_BYTES)
		*run = RUN_LAST_BYTES;
	*extent = extent_foreseen(bulk, *run);
}

/* Whether a memory node may be asked for a run: it is there, or without it there is no tree. */
static bool
node_may_give(const Tree *tree, uint32_t memory_node)
{
	return node_is_open(tree->client->shared, memory_node) || memory_node == tree_home(tree->root);
}

/*
 * The memory node that has given the least so far, of several the next in turn: what one has room for may be shorter than what
 * was asked for.
 */
static uint32_t
node_in_turn(const TreeBulk *bulk)
{
	uint32_t nodes = bulk->tree->client->options.nodes;
	uint32_t first = (bulk->run_node + (bulk->run_end != 0)) % nodes;
	uint32_t least = nodes;

	for (uint32_t i = 0; i < nodes; i++)
	{
		uint32_t other = (first + i) % nodes;

		if (node_may_give(bulk->tree, other) && (least == nodes || bulk->taken[other] < bulk->taken[least]))
			least = other;
	}
	assert(least < nodes);
	return least;
}

/* Takes the next run, from the memory nodes in turn; from any that has room and answers if need be. */
static TreeStatus
run_next(TreeBulk *bulk)
{
	Tree *tree = bulk->tree;
	uint32_t nodes = tree->client->options.nodes;
	TreeStatus status = TREE_MEMORY_FULL;
	uint32_t first = node_in_turn(bulk);
	uint64_t run, extent;

	assert(bulk->run_next == bulk->run_end);
	run_size(bulk, &run, &extent);
	for (uint32_t i = 0; i < nodes && (status == TREE_MEMORY_FULL || status == TREE_UNREACHABLE); i++)
	{
		uint32_t memory_node = tree_source(tree, (first + i) % nodes);
		uint64_t bytes = run;

		if (!node_may_give(tree, memory_node))
			continue;
		status = allocate_run(tree, memory_node, extent, &bytes, &bulk->run_next, &bulk->run_generation);
		bulk->taken[memory_node] += bytes;
		if (status != TREE_OK)
			continue;
		assert(bytes > 0 && bytes % FABRIC_STRIPE_BYTES == 0);
		bulk->run_node = memory_node;
		bulk->run_end = bulk->run_next + bytes;
	}
	if (status == TREE_OK && bulk->run_bytes < RUN_LAST_BYTES)
		bulk->run_bytes *= 2;
	return status;
}

/* Takes the place of one leaf. */
static TreeStatus
leaf_take(TreeBulk *bulk, uint64_t *pointer, uint64_t *generation)
{
	uint32_t bytes = bulk->tree->geometry.leaf_bytes;
	TreeStatus status = TREE_OK;

	assert(bulk->run_next <= bulk->run_end);
	if (bulk->run_next == bulk->run_end)
		status = run_next(bulk);
	if (status != TREE_OK)
		return status;
	*generation = bulk->run_generation;
	*pointer = pointer_make(bulk->run_node, bulk->run_next);
	bulk->run_next += bytes;
	assert(bulk->run_next <= bulk->run_end);
	return TREE_OK;
}

/*
 * Begins a leaf at the window's next place; `low` NULL: the first one, which has no place in node memory yet.
 */
static void
leaf_begin(TreeBulk *bulk, uint64_t pointer, uint64_t generation, const uint64_t *low)
{
	Tree *tree = bulk->tree;

	assert(bulk->window->bytes + tree->geometry.leaf_bytes <= WINDOW_BYTES);
	assert(generation != 0);
	bulk->leaf = (uint64_t *) (bulk->window->memory + bulk->window->bytes);
	bulk->window->bytes += tree->geometry.leaf_bytes;
	bulk->count = 0;
	bulk->postings = 0;
	bulk->packer = (Packer){.cells = bulk->leaf + leaf_cell_word(&tree->geometry, 0)};
	bulk->leaf_pointer = pointer;
	bulk->leaf_generation = generation;
	node_begin(&tree->geometry, bulk->leaf, tree->tree, pointer, 0, generation, 0);
	bulk->leaf[HEADER_LSN] = bulk->wal.lsn;
	bulk->leaf[HEADER_EPOCH] = bulk->wal.epoch;
	node_set_fence(&tree->geometry, bulk->leaf, false, low);
}

/* Ends the open leaf; `high` NULL: the last one. */
static void
leaf_end(TreeBulk *bulk, const uint64_t *high, uint64_t right, uint32_t flags)
{
	const NodeGeometry *g = &bulk->tree->geometry;
	uint64_t *leaf = bulk->leaf;

	assert(bulk->count > 0 && bulk->count <= g->leaf_cells);
	assert((high == NULL) == (right == POINTER_NONE));
	leaf[HEADER_GENERATION] = bulk->leaf_generation;
	leaf[HEADER_SELF] = pointer_address(bulk->leaf_pointer);
	flags |= NODE_BASE_ORDERED | bulk->postings;
	leaf[HEADER_STATE] = node_state_word(bulk->leaf_generation, 0, bulk->count, flags);
	leaf[HEADER_RIGHT] = right;
	node_set_fence(g, leaf, true, high);
	node_seal(g, leaf);
	bulk->leaf_count++;
}

/* The first leaf gets its place: a second one comes. */
static TreeStatus
first_leaf_place(TreeBulk *bulk)
{
	TreeStatus status = leaf_take(bulk, &bulk->leaf_pointer, &bulk->leaf_generation);

	assert(bulk->first_leaf);
	if (status != TREE_OK)
		return status;
	bulk->first_leaf = false;
	assert(bulk->leaf == (uint64_t *) bulk->window->memory);
	return level_add(bulk, 1, NULL, bulk->leaf_pointer);
}

/* Closes the open leaf in front of bulk->cell, which is not in it, and opens the next one. */
static TreeStatus
leaf_advance(TreeBulk *bulk, const TreeKey *key)
{
	const NodeGeometry *g = &bulk->tree->geometry;
	uint64_t separator[LINE_WORDS];
	uint64_t pointer = 0, generation = 0;
	uint64_t before;
	TreeStatus status = TREE_OK;

	assert(bulk->count == bulk->leaf_fill);
	if (bulk->first_leaf)
		status = first_leaf_place(bulk);
	if (status == TREE_OK)
		status = separator_make(bulk, key, separator);
	if (status == TREE_OK)
		status = leaf_take(bulk, &pointer, &generation);
	if (status != TREE_OK)
		return status;
	before = bulk->leaf_pointer;
	leaf_end(bulk, separator, pointer, 0);
	bulk_write(bulk->window, pointer_memory_node(before), pointer_offset(before), bulk->leaf, g->leaf_bytes);
	/* The window holds consecutive leaves: it ends where the next leaf lies elsewhere. */
	if (pointer_memory_node(pointer) != pointer_memory_node(before) ||
	    pointer_offset(pointer) != pointer_offset(before) + g->leaf_bytes)
		status = bulk_window_end(&bulk->writes, BULK_LEAVES);
	if (status == TREE_OK)
		status = bulk_window(&bulk->writes, BULK_LEAVES, pointer_memory_node(pointer), g->leaf_bytes,
		                     &bulk->window);
	if (status != TREE_OK)
		return status;
	leaf_begin(bulk, pointer, generation, separator);
	return level_add(bulk, 1, separator, pointer);
}

/* Adds bulk->cell to the open leaf, or to the next one if it has no cell left for it, in a posting if it can. */
static TreeStatus
bulk_pack(TreeBulk *bulk, const TreeKey *key)
{
	const NodeGeometry *g = &bulk->tree->geometry;

	assert(g->format.postings);
	assert(bulk->packer.count == bulk->count);
	if (bulk->count == bulk->leaf_fill && packer_takes_cell(g, &bulk->packer, bulk->cell))
	{
		TreeStatus status = leaf_advance(bulk, key);

		if (status != TREE_OK)
			return status;
	}
	packer_add(g, &bulk->packer, bulk->cell);
	bulk->count = bulk->packer.count;
	if (cell_is_posting(bulk->packer.cells + (bulk->count - 1) * g->cell_words))
		bulk->postings = NODE_POSTINGS;
	memcpy(bulk->last, bulk->cell, g->cell_bytes);
	return TREE_OK;
}

/* ---- the calls ---- */

static void
bulk_free(TreeBulk *bulk)
{
	TreeClient *client = bulk->tree->client;

	assert(client != NULL);
	assert(!client->holding);
	for (int i = 0; i < LEVELS_MAX; i++)
		client_release(client, bulk->levels[i].node);
	bulk_writes_free(&bulk->writes);
	client_release(client, bulk);
}

TreeStatus
tree_bulk_open(Tree *handle, const TreeWalPosition *wal, TreeBulk **bulk)
{
	TreeClient *client = handle->client;
	const NodeGeometry *g = &handle->geometry;
	uint32_t percent = g->format.fill_percent != 0 ? g->format.fill_percent : FILL_PERCENT;
	TreeBulk *b;
	TreeStatus status;

	assert(wal != NULL && bulk != NULL);
	assert(WINDOW_BYTES % g->leaf_bytes == 0);
	*bulk = NULL;
	b = client_allocate(client, sizeof(*b));
	if (b == NULL)
		return client_fail(client, TREE_NO_MEMORY, "no memory for a bulk load");
	memset(b, 0, sizeof(*b));
	b->tree = handle;
	b->wal = *wal;
	b->first_leaf = true;
	b->run_node = pointer_memory_node(handle->root);
	b->run_bytes = RUN_FIRST_BYTES;
	b->leaf_fill = g->leaf_cells * (percent < 100 ? percent : 100) / 100;
	b->inner_fill = g->inner_cells * (percent < 100 ? percent : 100) / 100;
	assert(b->leaf_fill >= 2 && b->inner_fill >= 2);
	bulk_writes_begin(&b->writes, handle, b);
	status = bulk_window(&b->writes, BULK_LEAVES, b->run_node, g->leaf_bytes, &b->window);
	if (status == TREE_OK)
		status = leaf_cache_read(handle, handle->root, client->image);
	if (status == TREE_RETRY || (status == TREE_OK && leaf_live(g, client->image) != 0))
		status = client_fail(client, TREE_INVALID, "a bulk load of a tree that is not empty");
	if (status != TREE_OK)
	{
		bulk_free(b);
		return status;
	}
	b->root_generation = client->image[HEADER_GENERATION] + 1;
	*bulk = b;
	return TREE_OK;
}

void
tree_bulk_expect(TreeBulk *bulk, uint64_t entries)
{
	assert(bulk->entries == 0);
	bulk->expected = entries;
}

TreeStatus
tree_bulk_add(TreeBulk *bulk, const TreeKey *key)
{
	const NodeGeometry *g = &bulk->tree->geometry;
	bool room = bulk->count < bulk->leaf_fill && !g->format.postings;
	uint64_t *cell;
	const uint64_t *before;
	TreeStatus status;

	assert(bulk->count <= bulk->leaf_fill);
	assert(key->image_bytes == 0 || !g->format.lossless);
	if (bulk->leaf == NULL)
		leaf_begin(bulk, bulk->tree->root, bulk->root_generation, NULL);
	cell = room ? bulk->leaf + leaf_cell_word(g, bulk->count) : bulk->cell;
	status = cell_place(bulk, key, cell);
	if (status != TREE_OK)
		return status;
	before = bulk_before(bulk);
	if (before != NULL && cell_order(g, before, cell) > (g->format.lossless ? -1 : 0))
		return client_fail(bulk->tree->client, TREE_INVALID, "a bulk load of keys that are not ascending");
	if (g->format.postings)
		status = bulk_pack(bulk, key);
	else if (!room)
	{
		status = leaf_advance(bulk, key);
		if (status == TREE_OK)
			memcpy(bulk->leaf + leaf_cell_word(g, 0), bulk->cell, g->cell_bytes);
	}
	if (status != TREE_OK)
		return status;
	bulk->count += !g->format.postings;
	bulk->entries++;
	return TREE_OK;
}

/*
 * Writes the root, over the empty leaf: the last step, which makes all of it the tree. Under its lock, as the empty leaf may
 * be in the cache.
 */
static TreeStatus
root_write(TreeBulk *bulk, const uint64_t *root)
{
	Tree *tree = bulk->tree;
	uint32_t level = node_level(root);
	uint32_t bytes = node_bytes(&tree->geometry, level);
	uint64_t *image = tree->client->image;
	LockHandle lock;
	TreeStatus status;

	assert(root[HEADER_SELF] == tree->root);
	assert(root[HEADER_GENERATION] == bulk->root_generation);
	do
	{
		/* No redo image: if this process dies here there is no tree. */
		FabricOp ops[2] = {{.opcode = FABRIC_WRITE,
		                    .region = FABRIC_NODES,
		                    .length = bytes,
		                    .offset = pointer_offset(tree->root),
		                    .buffer = (uint64_t *) root}};

		status = lock_and_read(tree, tree->root, tree_node_bytes(tree, tree->root, 0), image, &lock);
		if (status == TREE_OK)
			status = lock_write_and_release(tree, &lock, ops, 1, tree->root, root, bytes);
	} while (status == TREE_RETRY);
	if (status != TREE_OK)
		return status;
	tree->root_is_leaf = level == 0;
	if (level > 0)
		cache_put(tree, tree->root, 0, root);
	return TREE_OK;
}

/* Closes the open nodes of all levels. *root: the one that has no place of its own yet. */
static TreeStatus
bulk_complete(TreeBulk *bulk, const uint64_t **root)
{
	const NodeGeometry *g = &bulk->tree->geometry;
	uint32_t level = 1;
	BulkLevel *open;
	TreeStatus status = TREE_OK;

	assert(bulk->leaf != NULL);
	leaf_end(bulk, NULL, POINTER_NONE, bulk->first_leaf ? NODE_ROOT : 0);
	*root = bulk->leaf;
	/* Its window has no WRITE. */
	if (bulk->first_leaf)
		return bulk_send(&bulk->writes);
	bulk_write(bulk->window, pointer_memory_node(bulk->leaf_pointer), pointer_offset(bulk->leaf_pointer),
	           bulk->leaf, g->leaf_bytes);
	for (; status == TREE_OK && bulk->levels[level].pointer != 0; level++)
		status = inner_write(bulk, level, NULL, POINTER_NONE);
	open = &bulk->levels[level];
	if (status == TREE_OK)
		status = bulk_send(&bulk->writes);
	if (status != TREE_OK)
		return status;
	assert(open->node != NULL && open->count > 0);
	open->node[HEADER_STATE] = node_state_word(bulk->root_generation, level, open->count, NODE_ROOT);
	node_set_fence(g, open->node, true, NULL);
	node_seal(g, open->node);
	bulk->inner_count++;
	*root = open->node;
	return TREE_OK;
}

TreeStatus
tree_bulk_finish(TreeBulk *bulk)
{
	Tree *tree = bulk->tree;
	const uint64_t *root = NULL;
	TreeStatus status = TREE_OK;

	assert(!tree->client->holding);
	assert(bulk->entries == 0 || bulk->leaf != NULL);
	if (bulk->entries > 0)
	{
		status = bulk_complete(bulk, &root);
		if (status == TREE_OK)
			status = root_write(bulk, root);
	}
	if (status == TREE_OK)
	{
		allocate_run_return(tree, bulk->run_node, bulk->run_end - bulk->run_next, bulk->run_next,
		                    bulk->run_generation);
		state_set(tree->state, bulk->entries, bulk->leaf_count > 0 ? bulk->leaf_count : 1, bulk->inner_count,
		          root != NULL ? node_level(root) + 1 : 1);
	}
	bulk_free(bulk);
	return status;
}

void
tree_bulk_abandon(TreeBulk *bulk)
{
	if (bulk != NULL)
		bulk_free(bulk);
}
