/*
 * downlink.c
 *		The last step of a split: the new node's downlink is inserted into the parent. The process that split does it,
 *		or any later one that moves right past a node without a downlink; doing it twice has the effect of once.
 *
 * Under the parent's lock the place is found by integers, or by the left neighbor's address. Where neither decides,
 * the node is released, searched with the comparator, and locked again; if the neighbors are the same the place is,
 * too.
 */
#include "tree/descent/downlink.h"

/*
 * Tries to insert one downlink, in a row, without a sign that others have changed the parent: a sound tree never
 * needs so many. A try fails when another process inserts between the same two neighbors while we compare, or splits
 * the parent, or makes a cached path stale. On a busy tree that may happen more often, up to the second limit; then
 * the split stays incomplete until a later writer meets it.
 */
#define DOWNLINK_ATTEMPTS 256
#define DOWNLINK_ATTEMPTS_BUSY (4 * DOWNLINK_ATTEMPTS)

/* Number of the child with this address, or UINT32_MAX. */
static uint32_t
child_find(const NodeGeometry *g, const uint64_t *node, uint64_t pointer)
{
	assert(node_level(node) > 0);
	assert(node_count(node) <= g->inner_cells);
	for (uint32_t i = 0; i < node_count(node); i++)
		if (pointer_address(node[inner_cell_word(g, i)]) == pointer_address(pointer))
			return i;
	return UINT32_MAX;
}

/* Integers only: the bound against one of the node's fences. */
static Decision
fence_decide(const NodeGeometry *g, const TreeBound *bound, const uint64_t *node, bool high)
{
	const uint64_t *fence = node + (high ? g->high_word : g->low_word);

	assert(node != NULL && bound != NULL);
	if (separator_infinite(fence))
		return high ? DECIDE_BELOW : DECIDE_ABOVE;
	return node_decide(g, bound, fence, true);
}

/* The separator that ends child `i`: the next one's, or the high fence. */
static const uint64_t *
child_end(const NodeGeometry *g, const uint64_t *node, uint32_t i)
{
	assert(node_level(node) > 0);
	assert(i < node_count(node));
	return node + (i + 1 < node_count(node) ? inner_cell_word(g, i + 1) + 1 : g->high_word);
}

/*
 * Whether the place that the comparator or the descent found still exists. Separators of a node do not change, so
 * only another downlink between the same two neighbors makes the result void; insertions elsewhere do not.
 */
static bool
downlink_place_is_known(const DownlinkInsertion *insertion, const uint64_t *node, uint32_t *index)
{
	const NodeGeometry *g = &insertion->tree->geometry;
	uint32_t before;

	assert(!separator_infinite(insertion->separator));
	assert(node_level(node) == insertion->level + 1);
	if (insertion->known_child == 0)
		return false;
	before = child_find(g, node, insertion->known_child);
	if (before == UINT32_MAX || !separator_equal(g, child_end(g, node, before), insertion->known_next))
		return false;
	*index = before + 1;
	return true;
}

DownlinkPlace
downlink_place(const DownlinkInsertion *insertion, const uint64_t *node, uint32_t *index)
{
	const NodeGeometry *g = &insertion->tree->geometry;
	uint32_t count = node_count(node);
	uint32_t left = child_find(g, node, insertion->left);
	uint32_t first, last;
	Decision low = DECIDE_ABOVE, high = fence_decide(g, &insertion->bound, node, true);

	assert(node_level(node) == insertion->level + 1);
	if (child_find(g, node, insertion->right) != UINT32_MAX)
		return DOWNLINK_PRESENT;
	if (left == UINT32_MAX)
		low = fence_decide(g, &insertion->bound, node, false);
	if (low == DECIDE_BELOW)
		return DOWNLINK_LEFT;
	if (high == DECIDE_ABOVE || high == DECIDE_EQUAL)
		return DOWNLINK_RIGHT;
	if (low != DECIDE_UNKNOWN && high != DECIDE_UNKNOWN &&
	    node_search_inner(g, node, &insertion->bound, &first, &last))
	{
		*index = first + 1;
		return DOWNLINK_HERE;
	}
	if (left != UINT32_MAX && left + 1 < count)
		high = node_decide(g, &insertion->bound, node + inner_cell_word(g, left + 1) + 1, true);
	if (left != UINT32_MAX && high == DECIDE_BELOW)
	{
		*index = left + 1;
		return DOWNLINK_HERE;
	}
	return downlink_place_is_known(insertion, node, index) ? DOWNLINK_HERE : DOWNLINK_UNKNOWN;
}

/* Finds the place in the private copy with the comparator; TREE_RETRY: not in this node. */
static TreeStatus
downlink_compare(DownlinkInsertion *insertion)
{
	Tree *tree = insertion->tree;
	const uint64_t *node = tree->client->image;
	TreeBound bound;
	ChildChoice choice;
	TreeStatus status;

	assert(!tree->client->holding);
	assert(node_level(node) == insertion->level + 1);
	TREE_COUNT(tree, undecided_fences, 1);

	status = search_separator_bound(tree, insertion->separator, 0, &bound, insertion->image);
	if (status == TREE_OK)
		status = search_inner(tree, node, &bound, &choice);
	if (status != TREE_OK)
		return status;
	if (choice.bound_above)
	{
		TREE_COUNT(tree, right_moves, 1);
		insertion->parent = choice.right;
		return TREE_OK;
	}
	if (choice.bound_below)
		return TREE_RETRY;
	insertion->known_child = pointer_address(choice.child);
	memcpy(insertion->known_next, child_end(&tree->geometry, node, choice.index), tree->geometry.cell_bytes);
	return TREE_OK;
}

void
downlink_cache(Tree *tree, uint64_t pointer, uint64_t above, const uint64_t *image)
{
	assert(node_level(image) > 0);
	assert(!tree->client->holding);
	if (pointer_address(pointer) == tree->root)
		cache_put(tree, pointer, 0, image);
	else if (above != 0)
		cache_put(tree, pointer, above, image);
	else
		cache_drop(tree, pointer);
}

/* The node that led to the insertion's parent, 0: not known. */
static uint64_t
downlink_above(const DownlinkInsertion *insertion)
{
	uint32_t level = insertion->level + 2;

	return level < LEVELS_MAX ? insertion->path.parents[level] : 0;
}

void
downlink_put(const NodeGeometry *g, uint64_t *node, uint32_t index, uint64_t child, const uint64_t *separator)
{
	uint32_t count = node_count(node);
	uint64_t *cell = node + inner_cell_word(g, index);

	assert(index >= 1 && index <= count && count < g->inner_cells);
	memmove(cell + g->inner_stride, cell, (size_t) (count - index) * g->inner_stride * 8);
	cell[0] = child;
	memcpy(cell + 1, separator, g->cell_bytes);
	node[HEADER_STATE] =
		node_state_word(node[HEADER_GENERATION], node_level(node), count + 1, node_flags(node));
}

void
node_next_generation(uint64_t *node)
{
	node[HEADER_GENERATION]++;
	node[HEADER_STATE] =
		node_state_word(node[HEADER_GENERATION], node_level(node), node_count(node), node_flags(node));
}

/* Writes the node with the new cell in front of cell `index`. */
static TreeStatus
downlink_add(DownlinkInsertion *insertion, LockHandle *lock, uint32_t index)
{
	Tree *tree = insertion->tree;
	TreeClient *client = tree->client;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *old = client->image;
	uint64_t *node = client->image_left;
	FabricOp ops[REDO_OPS + 2];
	int n;
	TreeStatus status;

	assert(lock->held);
	memcpy(node, old, INNER_BYTES);
	downlink_put(g, node, index, insertion->right, insertion->separator);
	node_next_generation(node);
	node_seal(g, node);
	n = lock_rewrite_ops(tree, lock, insertion->parent, node, INNER_BYTES, ops);
	status = lock_write_and_release(tree, lock, ops, n, insertion->parent, node, INNER_BYTES);
	if (status != TREE_OK)
		return status;
	TREE_COUNT(tree, parent_posts, 1);
	downlink_cache(tree, insertion->parent, downlink_above(insertion), node);
	return TREE_OK;
}

/* Number of cells that stay left: the middle, or nearly all when the tree grows at its right end. */
static uint32_t
post_cut(const InnerCells *cells, uint32_t index, const uint64_t *node)
{
	bool ascending = index + 1 == cells->count && node[HEADER_RIGHT] == POINTER_NONE;
	uint32_t cut = ascending ? cells->count * SPLIT_ASCENDING_PERCENT / 100 : cells->count / 2;

	assert(cells->count >= 3);
	assert(cut >= 1 && cut < cells->count);
	return cut;
}

/* The node is full: it is split with the new cell in it, and its own separator goes one level up. */
static TreeStatus
downlink_split(DownlinkInsertion *insertion, LockHandle *lock, uint32_t index)
{
	Tree *tree = insertion->tree;
	TreeClient *client = tree->client;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *node = client->image;
	uint64_t cell[1 + LINE_WORDS];
	InnerCells cells;
	Split split = {.count = 0};
	TreeStatus status;

	assert(index >= 1 && index <= node_count(node));
	assert(node_count(node) <= INNER_CELLS_MAX);

	cell[0] = insertion->right;
	memcpy(cell + 1, insertion->separator, g->cell_bytes);
	cells.count = node_count(node) + 1;
	for (uint32_t i = 0; i < cells.count; i++)
		cells.cells[i] = i == index ? cell : node + inner_cell_word(g, i < index ? i : i - 1);
	split.cut = post_cut(&cells, index, node);
	status = split_inner(tree, lock, insertion->parent, &cells, &split);
	if (status != TREE_OK)
		return status;
	TREE_COUNT(tree, parent_posts, 1);
	if (split.root)
	{
		cache_put(tree, tree->root, 0, client->image_root);
		cache_put(tree, split.left, tree->root, client->image_left);
		cache_put(tree, split.right, tree->root, client->image_right);
		return TREE_OK;
	}
	downlink_cache(tree, split.left, downlink_above(insertion), client->image_left);
	downlink_cache(tree, split.right, downlink_above(insertion), client->image_right);
	return downlink_insert(tree, insertion->level + 1, split.left, split.separator, split.right,
	                       &insertion->path);
}

/*
 * Acts on the locked node in client->image; TREE_RETRY: the next attempt goes on at insertion->parent (0 =
 * descend anew).
 */
static TreeStatus
downlink_locked(DownlinkInsertion *insertion, LockHandle *lock)
{
	Tree *tree = insertion->tree;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *node = tree->client->image;
	uint64_t here = insertion->parent;
	DownlinkPlace place = DOWNLINK_LEFT;
	uint32_t index = 0;
	bool full;
	TreeStatus status;

	assert(lock->held);
	insertion->outrun =
		insertion->locked == pointer_address(here) && node[HEADER_GENERATION] > insertion->locked_generation;
	insertion->locked = pointer_address(here);
	insertion->locked_generation = node[HEADER_GENERATION];
	if (node_level(node) == insertion->level + 1)
		place = downlink_place(insertion, node, &index);
	full = node_count(node) == g->inner_cells;
	/* No sound tree has so many levels; a level that is damaged cannot be recognized here. */
	if (full && pointer_address(here) == tree->root && node_level(node) + 1 >= LEVELS_MAX)
	{
		(void) lock_release(tree, lock, here, node, INNER_BYTES);
		return client_fail(tree->client, TREE_DAMAGED, "tree %llx: the root has a level of %u",
		                   (unsigned long long) tree->tree, node_level(node));
	}
	if (place == DOWNLINK_HERE && (!full || split_reserved(tree, here, insertion->level + 1)))
		return full ? downlink_split(insertion, lock, index) : downlink_add(insertion, lock, index);

	/* A full node and no reserve: the same parent again, after reserve_fill(). */
	status = lock_release(tree, lock, here, node, tree_node_bytes(tree, here, insertion->level + 1));
	if (place == DOWNLINK_LEFT)
		insertion->parent = 0;
	else if (place == DOWNLINK_RIGHT)
	{
		TREE_COUNT(tree, right_moves, 1);
		insertion->parent = node[HEADER_RIGHT];
	}
	if (status != TREE_OK || place == DOWNLINK_PRESENT)
		return status;
	if (place == DOWNLINK_UNKNOWN)
	{
		status = downlink_compare(insertion);
		if (status == TREE_RETRY)
			insertion->parent = 0;
	}
	else if (place == DOWNLINK_HERE)
		status = reserve_fill(tree, insertion->level + 1, pointer_address(here) == tree->root ? 2 : 1);
	return status == TREE_OK ? TREE_RETRY : status;
}

/* Finds the parent afresh, with the comparator where that is needed. */
static TreeStatus
downlink_find(DownlinkInsertion *insertion, bool fresh)
{
	Tree *tree = insertion->tree;
	TreeBound bound;
	TreeStatus status;

	assert(!tree->client->holding);
	assert(insertion->parent == 0);
	status = search_separator_bound(tree, insertion->separator, 0, &bound, insertion->image);
	if (status == TREE_OK)
		status = search_descend(tree, &bound, insertion->level + 1, fresh, &insertion->path);
	if (status == TREE_OK)
		insertion->parent = insertion->path.pointer;
	return status;
}

void
downlink_begin(DownlinkInsertion *insertion, Tree *tree, uint32_t level, uint64_t left,
               const uint64_t *separator, uint64_t right, const Path *path)
{
	TreeKey key;

	assert(!separator_infinite(separator));
	assert(level + 1 < LEVELS_MAX);

	insertion->tree = tree;
	insertion->level = level;
	insertion->left = left;
	insertion->right = right;
	memset(insertion->separator, 0, sizeof(insertion->separator));
	memcpy(insertion->separator, separator, tree->geometry.cell_bytes);
	insertion->separator[0] &= ~STAMP_MASK;
	cell_key(&tree->geometry, insertion->separator, true, &key);
	bound_of_key(&tree->geometry, &key, &insertion->bound);
	if (path != NULL)
		insertion->path = *path;
	else
		memset(&insertion->path, 0, sizeof(insertion->path));
	insertion->parent = insertion->path.parents[level + 1];
	insertion->known_child = 0;
	insertion->locked = POINTER_NONE;
	insertion->outrun = false;
	/*
	 * The descent came to the left node, and `path->high` was its high fence: above our separator, as high fences
	 * only fall.
	 */
	if (path == NULL || !path->fences_known || path->level != level ||
	    pointer_address(path->pointer) != pointer_address(left) ||
	    separator_equal(&tree->geometry, path->high, separator))
		return;
	insertion->known_child = pointer_address(left);
	memcpy(insertion->known_next, path->high, tree->geometry.cell_bytes);
}

/* One try; TREE_RETRY: not yet. */
static TreeStatus
downlink_try(DownlinkInsertion *insertion, bool fresh)
{
	Tree *tree = insertion->tree;
	uint32_t level = insertion->level + 1;
	LockHandle lock;
	TreeStatus status = TREE_OK;

	insertion->outrun = false;
	if (insertion->parent == 0)
		status = downlink_find(insertion, fresh);
	if (insertion->parent == 0)
		return status;
	reserve_keep(tree, level);
	status = lock_and_read(tree, insertion->parent, tree_node_bytes(tree, insertion->parent, level),
	                       tree->client->image, &lock);
	if (status == TREE_OK)
		return downlink_locked(insertion, &lock);
	if (status == TREE_RETRY)
		insertion->parent = 0;
	return status;
}

TreeStatus
downlink_insert(Tree *tree, uint32_t level, uint64_t left, const uint64_t *separator, uint64_t right,
                const Path *path)
{
	TreeClient *client = tree->client;
	DownlinkInsertion insertion;
	int idle = 0;
	TreeStatus status = TREE_RETRY;

	assert(!client->holding);
	/* The tree's owner completes its splits. */
	if (client->options.reader)
		return TREE_OK;
	if (pointer_address(left) == pointer_address(right))
		return client_fail(client, TREE_DAMAGED, "tree %llx: node %llx is its own right sibling",
		                   (unsigned long long) tree->tree, (unsigned long long) left);
	if (level + 1 >= LEVELS_MAX)
		return client_fail(client, TREE_DAMAGED, "tree %llx: node %llx has a level of %u",
		                   (unsigned long long) tree->tree, (unsigned long long) left, level);
	downlink_begin(&insertion, tree, level, left, separator, right, path);
	for (int attempt = 0;
	     attempt < DOWNLINK_ATTEMPTS_BUSY && idle < DOWNLINK_ATTEMPTS && status == TREE_RETRY; attempt++)
	{
		if (attempt > 0 && client_should_stop(client))
			return client_fail(client, TREE_STOPPED, "stopped between two tries to insert a downlink");
		status = downlink_try(&insertion, attempt > 0);
		idle = insertion.outrun ? 0 : idle + 1;
	}
	if (status != TREE_RETRY)
		return status;
	if (idle < DOWNLINK_ATTEMPTS)
		return client_fail(
			client, TREE_TIMED_OUT, "tree %llx: others changed the parent of node %llx in %d attempts",
			(unsigned long long) tree->tree, (unsigned long long) right, DOWNLINK_ATTEMPTS_BUSY);
	return client_fail(client, TREE_DAMAGED, "tree %llx: no parent for node %llx in %d attempts",
	                   (unsigned long long) tree->tree, (unsigned long long) right, DOWNLINK_ATTEMPTS);
}
