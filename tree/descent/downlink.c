/*
 * downlink.c
 *		The last step of a split: posting the new node's separator to the parent. Lazy and idempotent (F28):
 *		whoever split, or moved right past an unposted node, does it; twice is once.
 *
 * Under the parent's lock the place is found by integers, or by the left neighbor's address. Where neither
 * tells, the node is released, searched with the comparator, and locked again; the same neighbors mean the
 * same place.
 */
#include "tree/internal.h"

/*
 * Tries to post one separator, in a row, without a sign that others have changed the parent: so many are none on a sound tree.
 * One is lost when others post between the same two neighbors while we compare, or split the parent, or move what a cached path
 * names.  On a busy tree that may be so many more times; then the debt is left to whoever meets it.
 */
#define POST_ATTEMPTS 256
#define POST_ATTEMPTS_BUSY (4 * POST_ATTEMPTS)

/* A separator on its way into a node of level + 1. */
typedef struct Posting
{
	Tree *tree;
	uint32_t level; /* of left and right */
	uint64_t left;
	uint64_t right;
	uint64_t separator[LINE_WORDS];
	TreeBound bound; /* stands for the separator; without image: for integers only */
	uint64_t parent; /* where it is being posted */
	Path path;       /* how that was found: its parents are the next level's hint */
	/*
	 * What the comparator found, or the descent: the place is between this child and this separator (or high
	 * fence), as long as they are neighbors.  Child 0: it is not known.
	 */
	uint64_t known_child;
	uint64_t known_next[LINE_WORDS];
	/* The node that was locked last, and its generation; whether the same one had another when it was locked again. */
	uint64_t locked;
	uint64_t locked_generation;
	bool outrun;
	/* The separator's, while the comparator sees it: the descent may post others on its way, each with its own. */
	_Alignas(uint64_t) uint8_t image[TREE_IMAGE_MAX_BYTES];
} Posting;

typedef enum PostPlace
{
	POST_HERE,
	POST_PRESENT, /* posted already */
	POST_LEFT,    /* the separator lies below this node: stale path */
	POST_RIGHT,   /* at or above its high fence */
	POST_UNKNOWN  /* only the comparator can tell */
} PostPlace;

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
 * Whether the place that the comparator or the descent found is a place still.  Separators of a node stay as
 * they are, and only another one between the same two neighbors makes that answer void: what else others post
 * meanwhile does not.
 */
static bool
post_known(const Posting *posting, const uint64_t *node, uint32_t *index)
{
	const NodeGeometry *g = &posting->tree->geometry;
	uint32_t before;

	assert(!separator_infinite(posting->separator));
	assert(node_level(node) == posting->level + 1);
	if (posting->known_child == 0)
		return false;
	before = child_find(g, node, posting->known_child);
	if (before == UINT32_MAX || !separator_equal(g, child_end(g, node, before), posting->known_next))
		return false;
	*index = before + 1;
	return true;
}

/*
 * Where the new cell goes: in front of cell *index.  The left neighbor's presence proves that the separator
 * lies above the low fence.  Not more: nodes that were split from the left neighbor later may stand behind
 * it, with lower separators, and this node may have been split in front of one of them (test/models/redo.pml,
 * POST).
 */
static PostPlace
post_place(const Posting *posting, const uint64_t *node, uint32_t *index)
{
	const NodeGeometry *g = &posting->tree->geometry;
	uint32_t count = node_count(node);
	uint32_t left = child_find(g, node, posting->left);
	uint32_t first, last;
	Decision low = DECIDE_ABOVE, high = fence_decide(g, &posting->bound, node, true);

	assert(node_level(node) == posting->level + 1);
	if (child_find(g, node, posting->right) != UINT32_MAX)
		return POST_PRESENT;
	if (left == UINT32_MAX)
		low = fence_decide(g, &posting->bound, node, false);
	if (low == DECIDE_BELOW)
		return POST_LEFT;
	if (high == DECIDE_ABOVE || high == DECIDE_EQUAL)
		return POST_RIGHT;
	if (low != DECIDE_UNKNOWN && high != DECIDE_UNKNOWN &&
	    node_search_inner(g, node, &posting->bound, &first, &last))
	{
		*index = first + 1;
		return POST_HERE;
	}
	if (left != UINT32_MAX && left + 1 < count)
		high = node_decide(g, &posting->bound, node + inner_cell_word(g, left + 1) + 1, true);
	if (left != UINT32_MAX && high == DECIDE_BELOW)
	{
		*index = left + 1;
		return POST_HERE;
	}
	return post_known(posting, node, index) ? POST_HERE : POST_UNKNOWN;
}

/* Finds the place in the private copy with the comparator; TREE_RETRY: not in this node. */
static TreeStatus
post_compare(Posting *posting)
{
	Tree *tree = posting->tree;
	const uint64_t *node = tree->client->image;
	TreeBound bound;
	ChildChoice choice;
	TreeStatus status;

	assert(!tree->client->holding);
	assert(node_level(node) == posting->level + 1);
	TREE_COUNT(tree, undecided_fences, 1);

	status = search_separator_bound(tree, posting->separator, 0, &bound, posting->image);
	if (status == TREE_OK)
		status = search_inner(tree, node, &bound, &choice);
	if (status != TREE_OK)
		return status;
	if (choice.bound_above)
	{
		TREE_COUNT(tree, right_moves, 1);
		posting->parent = choice.right;
		return TREE_OK;
	}
	if (choice.bound_below)
		return TREE_RETRY;
	posting->known_child = pointer_address(choice.child);
	memcpy(posting->known_next, child_end(&tree->geometry, node, choice.index), tree->geometry.cell_bytes);
	return TREE_OK;
}

/* Puts a believed image into the cache under the parent that is known to lead to it. */
static void
post_cache(const Posting *posting, uint64_t pointer, const uint64_t *image)
{
	Tree *tree = posting->tree;
	uint32_t level = node_level(image);

	assert(level > 0 && level < LEVELS_MAX);
	assert(!tree->client->holding);
	if (pointer_address(pointer) == tree->root)
		cache_put(tree, pointer, 0, image);
	else if (level + 1 < LEVELS_MAX && posting->path.parents[level + 1] != 0)
		cache_put(tree, pointer, posting->path.parents[level + 1], image);
	else
		cache_drop(tree, pointer);
}

/* Writes the node with the new cell in front of cell `index`. */
static TreeStatus
post_insert(Posting *posting, LockHold *hold, uint32_t index)
{
	Tree *tree = posting->tree;
	TreeClient *client = tree->client;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *old = client->image;
	uint64_t *node = client->image_left;
	uint64_t generation = old[HEADER_GENERATION] + 1;
	uint32_t count = node_count(old);
	uint64_t *cell = node + inner_cell_word(g, index);
	FabricOp ops[REDO_OPS + 2];
	int n;
	TreeStatus status;

	assert(index >= 1 && index <= count && count < g->inner_cells);
	assert(hold->held);

	memcpy(node, old, INNER_BYTES);
	memmove(cell + g->inner_stride, cell, (size_t) (count - index) * g->inner_stride * 8);
	cell[0] = posting->right;
	memcpy(cell + 1, posting->separator, g->cell_bytes);
	node[HEADER_GENERATION] = generation;
	node[HEADER_STATE] = node_state_word(generation, node_level(old), count + 1, node_flags(old));
	node_seal(g, node);
	n = lock_rewrite_ops(tree, hold, posting->parent, node, INNER_BYTES, ops);
	status = lock_write_and_release(tree, hold, ops, n, posting->parent, node, INNER_BYTES);
	if (status != TREE_OK)
		return status;
	TREE_COUNT(tree, parent_posts, 1);
	post_cache(posting, posting->parent, node);
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
post_split(Posting *posting, LockHold *hold, uint32_t index)
{
	Tree *tree = posting->tree;
	TreeClient *client = tree->client;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *node = client->image;
	uint64_t cell[1 + LINE_WORDS];
	InnerCells cells;
	Split split = {.count = 0};
	TreeStatus status;

	assert(index >= 1 && index <= node_count(node));
	assert(node_count(node) <= INNER_CELLS_MAX);

	cell[0] = posting->right;
	memcpy(cell + 1, posting->separator, g->cell_bytes);
	cells.count = node_count(node) + 1;
	for (uint32_t i = 0; i < cells.count; i++)
		cells.cells[i] = i == index ? cell : node + inner_cell_word(g, i < index ? i : i - 1);
	split.cut = post_cut(&cells, index, node);
	status = split_inner(tree, hold, posting->parent, &cells, &split);
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
	post_cache(posting, split.left, client->image_left);
	post_cache(posting, split.right, client->image_right);
	return parent_post(tree, posting->level + 1, split.left, split.separator, split.right, &posting->path);
}

/*
 * Acts on the locked node in client->image; TREE_RETRY: the next attempt goes on at posting->parent (0 =
 * descend anew).
 */
static TreeStatus
post_locked(Posting *posting, LockHold *hold)
{
	Tree *tree = posting->tree;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *node = tree->client->image;
	uint64_t here = posting->parent;
	PostPlace place = POST_LEFT;
	uint32_t index = 0;
	bool full;
	TreeStatus status;

	assert(hold->held);
	posting->outrun =
		posting->locked == pointer_address(here) && node[HEADER_GENERATION] > posting->locked_generation;
	posting->locked = pointer_address(here);
	posting->locked_generation = node[HEADER_GENERATION];
	if (node_level(node) == posting->level + 1)
		place = post_place(posting, node, &index);
	full = node_count(node) == g->inner_cells;
	/* No tree grows to that; whether its levels are what they seem is not to be seen from here. */
	if (full && pointer_address(here) == tree->root && node_level(node) + 1 >= LEVELS_MAX)
	{
		(void) lock_release(tree, hold, here, node, INNER_BYTES);
		return client_fail(tree->client, TREE_DAMAGED, "tree %llx: the root has a level of %u",
		                   (unsigned long long) tree->tree, node_level(node));
	}
	if (place == POST_HERE && (!full || split_reserved(tree, here, posting->level + 1)))
		return full ? post_split(posting, hold, index) : post_insert(posting, hold, index);

	/* A full node and no reserve: the same parent again, after reserve_fill(). */
	status = lock_release(tree, hold, here, node, tree_node_bytes(tree, here, posting->level + 1));
	if (place == POST_LEFT)
		posting->parent = 0;
	else if (place == POST_RIGHT)
	{
		TREE_COUNT(tree, right_moves, 1);
		posting->parent = node[HEADER_RIGHT];
	}
	if (status != TREE_OK || place == POST_PRESENT)
		return status;
	if (place == POST_UNKNOWN)
	{
		status = post_compare(posting);
		if (status == TREE_RETRY)
			posting->parent = 0;
	}
	else if (place == POST_HERE)
		status = reserve_fill(tree, posting->level + 1, pointer_address(here) == tree->root ? 2 : 1);
	return status == TREE_OK ? TREE_RETRY : status;
}

/* Finds the parent afresh, with the comparator where that is needed. */
static TreeStatus
post_find(Posting *posting, bool fresh)
{
	Tree *tree = posting->tree;
	TreeBound bound;
	TreeStatus status;

	assert(!tree->client->holding);
	assert(posting->parent == 0);
	status = search_separator_bound(tree, posting->separator, 0, &bound, posting->image);
	if (status == TREE_OK)
		status = search_descend(tree, &bound, posting->level + 1, fresh, &posting->path);
	if (status == TREE_OK)
		posting->parent = posting->path.pointer;
	return status;
}

static void
posting_begin(Posting *posting, Tree *tree, uint32_t level, uint64_t left, const uint64_t *separator,
              uint64_t right, const Path *path)
{
	TreeKey key;

	assert(!separator_infinite(separator));
	assert(level + 1 < LEVELS_MAX);

	posting->tree = tree;
	posting->level = level;
	posting->left = left;
	posting->right = right;
	memset(posting->separator, 0, sizeof(posting->separator));
	memcpy(posting->separator, separator, tree->geometry.cell_bytes);
	posting->separator[0] &= ~STAMP_MASK;
	cell_key(&tree->geometry, posting->separator, true, &key);
	bound_of_key(&tree->geometry, &key, &posting->bound);
	if (path != NULL)
		posting->path = *path;
	else
		memset(&posting->path, 0, sizeof(posting->path));
	posting->parent = posting->path.parents[level + 1];
	posting->known_child = 0;
	posting->locked = POINTER_NONE;
	posting->outrun = false;
	/*
	 * The descent came to the left one, and `path->high` stood behind it: above our separator, as high fences
	 * only fall.
	 */
	if (path == NULL || !path->fences_known || path->level != level ||
	    pointer_address(path->pointer) != pointer_address(left) ||
	    separator_equal(&tree->geometry, path->high, separator))
		return;
	posting->known_child = pointer_address(left);
	memcpy(posting->known_next, path->high, tree->geometry.cell_bytes);
}

/* One try; TREE_RETRY: not yet. */
static TreeStatus
post_try(Posting *posting, bool fresh)
{
	Tree *tree = posting->tree;
	uint32_t level = posting->level + 1;
	LockHold hold;
	TreeStatus status = TREE_OK;

	posting->outrun = false;
	if (posting->parent == 0)
		status = post_find(posting, fresh);
	if (posting->parent == 0)
		return status;
	reserve_keep(tree, level);
	status = lock_and_read(tree, posting->parent, tree_node_bytes(tree, posting->parent, level),
	                       tree->client->image, &hold);
	if (status == TREE_OK)
		return post_locked(posting, &hold);
	if (status == TREE_RETRY)
		posting->parent = 0;
	return status;
}

TreeStatus
parent_post(Tree *tree, uint32_t level, uint64_t left, const uint64_t *separator, uint64_t right,
            const Path *path)
{
	TreeClient *client = tree->client;
	Posting posting;
	int idle = 0;
	TreeStatus status = TREE_RETRY;

	assert(!client->holding);
	if (pointer_address(left) == pointer_address(right))
		return client_fail(client, TREE_DAMAGED, "tree %llx: node %llx is its own right sibling",
		                   (unsigned long long) tree->tree, (unsigned long long) left);
	if (level + 1 >= LEVELS_MAX)
		return client_fail(client, TREE_DAMAGED, "tree %llx: node %llx has a level of %u",
		                   (unsigned long long) tree->tree, (unsigned long long) left, level);
	posting_begin(&posting, tree, level, left, separator, right, path);
	for (int attempt = 0; attempt < POST_ATTEMPTS_BUSY && idle < POST_ATTEMPTS && status == TREE_RETRY;
	     attempt++)
	{
		if (attempt > 0 && client_should_stop(client))
			return client_fail(client, TREE_STOPPED, "stopped between two tries to post a separator");
		status = post_try(&posting, attempt > 0);
		idle = posting.outrun ? 0 : idle + 1;
	}
	if (status != TREE_RETRY)
		return status;
	if (idle < POST_ATTEMPTS)
		return client_fail(client, TREE_TIMED_OUT,
		                   "tree %llx: others changed the parent of node %llx in %d attempts",
		                   (unsigned long long) tree->tree, (unsigned long long) right, POST_ATTEMPTS_BUSY);
	return client_fail(client, TREE_DAMAGED, "tree %llx: no parent for node %llx in %d attempts",
	                   (unsigned long long) tree->tree, (unsigned long long) right, POST_ATTEMPTS);
}
