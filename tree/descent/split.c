/*
 * split.c
 *		Splits, under the lock: sibling, node and unlock in one chain; the root, whose address stays, gets two
 *		children. Nodes for splits are reserved ahead, so that none has to be allocated while a lock is held.
 *
 * Where to cut and which separator to use is decided before (leaf_cut(), split_order.c, downlink.c).
 */
#include "tree/lock/leaf_cache.h"
#include "tree/descent/descent.h"
#include "tree/space/allocate.h"

/* Tries to write a sibling to another memory node, each after its channel had to be reset. */
#define SIBLING_ATTEMPTS 3

bool
split_reserved(Tree *tree, uint64_t pointer, uint32_t level)
{
	uint32_t needed = pointer_address(pointer) == tree->root ? 2 : 1;

	assert(level < LEVELS_MAX);
	assert(needed <= RESERVE_NODES);
	reserve_of(tree, level)->wanted = true;
	return reserve_of(tree, level)->count >= needed;
}

TreeStatus
reserve_fill(Tree *tree, uint32_t level, uint32_t count)
{
	NodeReserve *reserve = reserve_of(tree, level);
	uint32_t memory_node = pointer_memory_node(tree->root);
	TreeStatus status = TREE_OK;

	assert(count <= RESERVE_NODES);
	assert(!tree->client->holding);

	while (reserve->count < count && status == TREE_OK)
	{
		uint32_t i = reserve->count;

		status = allocate_node(tree, memory_node, level, &reserve->pointers[i], &reserve->generations[i]);
		if (status == TREE_OK)
			reserve->count++;
	}
	tree->memory_full = status == TREE_MEMORY_FULL;
	return status;
}

void
reserve_take(Tree *tree, uint32_t level, uint64_t *pointer, uint64_t *generation)
{
	NodeReserve *reserve = reserve_of(tree, level);

	assert(reserve->count > 0 && reserve->count <= RESERVE_NODES);
	reserve->count--;
	*pointer = reserve->pointers[reserve->count];
	*generation = reserve->generations[reserve->count];
	assert(*generation != 0);
}

void
reserve_return(Tree *tree)
{
	assert(!tree->client->holding);
	for (uint32_t level = 0; level <= 1; level++)
	{
		NodeReserve *reserve = reserve_of(tree, level);

		assert(reserve->count <= RESERVE_NODES);
		while (reserve->count > 0)
		{
			reserve->count--;
			allocate_return(tree, reserve->pointers[reserve->count], level,
			                reserve->generations[reserve->count]);
		}
	}
}

/* Begins both halves of the node in client->image, with their fences and links; the cells are missing. */
static void
halves_begin(Tree *tree, uint64_t pointer, Split *split)
{
	const NodeGeometry *g = &tree->geometry;
	TreeClient *client = tree->client;
	const uint64_t *old = client->image;
	uint32_t level = node_level(old);
	uint64_t left_generation = old[HEADER_GENERATION] + 1;
	uint64_t right_generation;

	assert(split_reserved(tree, pointer, level));
	assert(old[HEADER_SELF] == pointer_address(pointer));

	split->root = pointer_address(pointer) == tree->root;
	split->left = pointer;
	if (split->root)
		reserve_take(tree, level, &split->left, &left_generation);
	reserve_take(tree, level, &split->right, &right_generation);

	node_begin_like(g, client->image_left, old, split->left, left_generation);
	node_begin_like(g, client->image_right, old, split->right, right_generation);
	if (split->root)
	{
		client->image_left[HEADER_STATE] =
			node_state_word(left_generation, level, 0, node_flags(old) & ~NODE_ROOT);
		client->image_right[HEADER_STATE] =
			node_state_word(right_generation, level, 0, node_flags(old) & ~NODE_ROOT);
	}
	client->image_left[HEADER_RIGHT] = split->right;
	node_set_fence(g, client->image_left, true, split->separator);
	node_set_fence(g, client->image_right, false, split->separator);
}

/* The root above its two new children: one level higher, at its old address. */
static void
root_build(Tree *tree, const Split *split)
{
	const NodeGeometry *g = &tree->geometry;
	TreeClient *client = tree->client;
	const uint64_t *old = client->image;
	uint64_t *root = client->image_root;
	uint64_t *cell = root + inner_cell_word(g, 0);
	uint64_t generation = old[HEADER_GENERATION] + 1;
	uint32_t level = node_level(old) + 1;

	assert(level < LEVELS_MAX);
	assert(old[HEADER_RIGHT] == POINTER_NONE);

	node_begin(g, root, tree->tree, tree->root, level, generation, NODE_ROOT);
	root[HEADER_STATE] = node_state_word(generation, level, 2, NODE_ROOT);
	node_set_fence(g, root, false, NULL);
	node_set_fence(g, root, true, NULL);
	cell[0] = split->left;
	node_get_fence(g, root, false, cell + 1);
	cell += g->inner_stride;
	cell[0] = split->right;
	memcpy(cell + 1, split->separator, g->cell_bytes);
	node_seal(g, root);
}

/*
 * Adds a new node's WRITE to the chain; a node at another memory node is written at once and awaited, as chains of
 * different memory nodes have no order. Nothing links to the new node yet, so an indeterminate WRITE of it may be
 * repeated.
 */
static TreeStatus
sibling_add(Tree *tree, const LockHandle *lock, uint64_t pointer, uint64_t *image, uint32_t bytes,
            Split *split)
{
	FabricOp op = {
		.opcode = FABRIC_WRITE,
		.region = FABRIC_NODES,
		.length = bytes,
		.offset = pointer_offset(pointer),
		.buffer = image,
	};
	TreeStatus status = TREE_RETRY;

	assert(lock->held);
	assert(split->count < SPLIT_CHAIN_OPS);

	if (pointer_memory_node(pointer) == lock->memory_node)
	{
		split->ops[split->count++] = op;
		return TREE_OK;
	}
	for (int attempt = 0; attempt < SIBLING_ATTEMPTS && status == TREE_RETRY; attempt++)
		status = access_execute(tree, pointer_memory_node(pointer), &op, 1);
	return status;
}

/* The chain of a split is lost, and the lock given back: the new nodes go back, too, if nothing links to them. */
static void
split_lost(Tree *tree, uint64_t pointer, const Split *split)
{
	const TreeClient *client = tree->client;
	const uint64_t *left = client->image_left;
	uint32_t level = node_level(left);
	/* That of the node before: the root's next one is above its two children's. */
	uint64_t generation = (split->root ? client->image_root : left)[HEADER_GENERATION] - 1;
	/* A node that goes back takes image_left. */
	uint64_t generations[2] = {client->image_right[HEADER_GENERATION], left[HEADER_GENERATION]};

	if (!split_is_undone(tree, pointer, generation))
		return;
	spare_written_return(tree, split->right, level, generations[0]);
	if (split->root)
		spare_written_return(tree, split->left, level, generations[1]);
}

/* Seals and writes what halves_begin() began. */
static TreeStatus
split_write(Tree *tree, LockHandle *lock, uint64_t pointer, Split *split)
{
	const NodeGeometry *g = &tree->geometry;
	TreeClient *client = tree->client;
	uint64_t *after = split->root ? client->image_root : client->image_left;
	uint32_t level = node_level(client->image_left);
	uint32_t bytes = node_bytes(g, level);
	TreeStatus status;

	assert(lock->held);
	assert(split->count <= 1);

	node_seal(g, client->image_left);
	node_seal(g, client->image_right);
	if (split->root)
		root_build(tree, split);
	status = sibling_add(tree, lock, split->right, client->image_right, bytes, split);
	if (status == TREE_OK && split->root)
		status = sibling_add(tree, lock, split->left, client->image_left, bytes, split);
	if (status != TREE_OK)
	{
		(void) lock_release(tree, lock, pointer, NULL, 0);
		if (status == TREE_RETRY)
			split_lost(tree, pointer, split);
		return status;
	}
	split->count += lock_rewrite_ops(tree, lock, pointer, after, node_bytes(g, node_level(after)),
	                                 split->ops + split->count);
	status = lock_write_and_release(tree, lock, split->ops, split->count, pointer, after,
	                                tree_node_bytes(tree, pointer, level));
	if (status == TREE_RETRY)
		split_lost(tree, pointer, split);
	if (status != TREE_OK)
		return status;
	if (level == 0)
		TREE_COUNT(tree, leaf_splits, 1);
	else
		TREE_COUNT(tree, inner_splits, 1);
	if (split->root)
		TREE_COUNT(tree, root_splits, 1);
	return TREE_OK;
}

TreeStatus
split_leaf(Tree *tree, LockHandle *lock, uint64_t pointer, const LeafCells *cells, Split *split)
{
	const NodeGeometry *g = &tree->geometry;
	LeafKey key;
	TreeStatus status;

	assert(split->cut > 0 && split->cut < cells->count);
	assert(node_level(tree->client->image) == 0);

	halves_begin(tree, pointer, split);
	leaf_fill(g, tree->client->image_left, cells, 0, split->cut);
	leaf_fill(g, tree->client->image_right, cells, split->cut, cells->count);
	if (split->root)
		tree->root_is_leaf = false;
	split_announce(tree, pointer, split);
	key = leaf_cache_key(tree, split->right);
	status = split_write(tree, lock, pointer, split);
	split_over(tree, status);
	if (status == TREE_OK)
		leaf_cache_split(tree, pointer, &key, tree->client->image_right);
	return status;
}

/* Copies cells [from, to); the first one's separator becomes the node's low fence. */
static void
inner_fill(const NodeGeometry *g, uint64_t *node, const InnerCells *cells, uint32_t from, uint32_t to)
{
	assert(from < to && to <= cells->count);
	assert(to - from <= g->inner_cells);

	for (uint32_t i = from; i < to; i++)
		memcpy(node + inner_cell_word(g, i - from), cells->cells[i], g->inner_stride * 8);
	node_get_fence(g, node, false, node + inner_cell_word(g, 0) + 1);
	node[HEADER_STATE] =
		node_state_word(node[HEADER_GENERATION], node_level(node), to - from, node_flags(node));
}

TreeStatus
split_inner(Tree *tree, LockHandle *lock, uint64_t pointer, const InnerCells *cells, Split *split)
{
	const NodeGeometry *g = &tree->geometry;

	assert(split->cut > 0 && split->cut < cells->count);
	assert(node_level(tree->client->image) > 0);

	/* The separator that goes up is the one in front of the right half, as its bytes are (I-T7). */
	memcpy(split->separator, cells->cells[split->cut] + 1, g->cell_bytes);
	halves_begin(tree, pointer, split);
	inner_fill(g, tree->client->image_left, cells, 0, split->cut);
	inner_fill(g, tree->client->image_right, cells, split->cut, cells->count);
	return split_write(tree, lock, pointer, split);
}
