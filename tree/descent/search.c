/*
 * search.c
 *		Descent: from the root, through the cache, to the node that covers a bound; inside inner nodes, and
 *		against single cells and fences, by integers first and by the comparator where they do not decide.
 *
 * The comparator is the caller's code and may jump away: it is only called while nothing is held, on private memory,
 * and all state that has to survive lies in the tree's handle.
 */
#include "tree/descent/offload.h"
#include "tree/descent/descent.h"

/* Blocks that access_read_overflow() takes at once. */
#define OVERFLOW_BATCH 64

static uint32_t
overflow_room(uint32_t bytes)
{
	assert(bytes <= UINT16_MAX);
	return (bytes + OVERFLOW_ALIGN - 1) / OVERFLOW_ALIGN * OVERFLOW_ALIGN;
}

/* Makes the pool at least `bytes` long; its contents are lost. */
static TreeStatus
pool_grow(Tree *tree, size_t bytes)
{
	TreeClient *client = tree->client;

	assert(!client->holding);
	if (bytes <= tree->pool_bytes)
		return TREE_OK;
	client_release(client, tree->pool);
	tree->pool = NULL;
	tree->pool_bytes = 0;
	tree->pool = client_allocate_beside(client, tree, bytes);
	if (tree->pool == NULL)
		return client_fail(client, TREE_NO_MEMORY, "no memory for %zu bytes of keys", bytes);
	tree->pool_bytes = bytes;
	return TREE_OK;
}

TreeStatus
search_images(Tree *tree, const uint64_t *const *cells, int count, const uint8_t **images)
{
	const NodeGeometry *g = &tree->geometry;
	OverflowReference references[OVERFLOW_BATCH];
	uint8_t *buffers[OVERFLOW_BATCH];
	OverflowReference reference;
	size_t bytes = 0;
	int batch = 0;
	TreeStatus status;

	assert(count >= 0);
	assert(!tree->client->holding);

	for (int i = 0; i < count; i++)
	{
		if ((cells[i][0] & CELL_OVERFLOW_BIT) == 0)
			continue;
		cell_overflow(g, cells[i], &reference);
		if (reference.bytes > TREE_IMAGE_MAX_BYTES)
			return TREE_RETRY;
		bytes += overflow_room(reference.bytes);
	}
	status = pool_grow(tree, bytes);
	bytes = 0;
	for (int i = 0; i < count && status == TREE_OK; i++)
	{
		images[i] = NULL;
		if ((cells[i][0] & CELL_OVERFLOW_BIT) == 0)
			continue;
		cell_overflow(g, cells[i], &references[batch]);
		buffers[batch] = tree->pool + bytes;
		images[i] = buffers[batch];
		bytes += overflow_room(references[batch].bytes);
		if (++batch < OVERFLOW_BATCH)
			continue;
		status = access_read_overflow(tree, references, batch, buffers);
		batch = 0;
	}
	if (status == TREE_OK && batch > 0)
		status = access_read_overflow(tree, references, batch, buffers);
	return status;
}

/*
 * Calls the comparator. It may use other trees, which have buffers of their own, but not this one, whose buffers hold
 * the images that it is given.
 */
static int
compare_ask(Tree *tree, const TreeBound *bound, const TreeKey *entry)
{
	int result;

	if (tree->compare == NULL)
		return 0;
	tree->comparing = tree->client->sections;
	result = tree->compare(tree->compare_argument, bound, entry);
	tree->comparing = 0;
	return result;
}

/* The comparator, then the side, then the TID. `entry` has its image. */
static int
compare_whole(Tree *tree, const TreeBound *bound, const TreeKey *entry)
{
	uint64_t mine, theirs;
	int result = 0;

	assert(!tree->client->holding);
	assert(entry->cut || entry->image_bytes == 0 || entry->image != NULL);

	/* Equal images are equal keys, whatever the type. */
	if (bound->argument != NULL || entry->cut || entry->image_bytes != bound->key.image_bytes ||
	    (entry->image_bytes != 0 && memcmp(entry->image, bound->key.image, entry->image_bytes) != 0))
		result = compare_ask(tree, bound, entry);
	if (result != 0)
		return result;
	if (bound->side != 0)
		return bound->side;
	if (entry->cut)
		return 1;
	mine = tid_order(bound->key.block, bound->key.offset);
	theirs = tid_order(entry->block, entry->offset);
	return mine < theirs ? -1 : mine > theirs;
}

int
search_compare_image(Tree *tree, const TreeBound *bound, const uint64_t *cell, bool separator,
                     const uint8_t *image)
{
	Decision decision = node_decide(&tree->geometry, bound, cell, separator);
	TreeKey key;

	assert(image == NULL || (cell[0] & CELL_OVERFLOW_BIT) != 0);
	if (decision != DECIDE_UNKNOWN)
		return (int) decision;
	cell_key(&tree->geometry, cell, separator, &key);
	if (image != NULL)
		key.image = image;
	return compare_whole(tree, bound, &key);
}

TreeStatus
search_compare(Tree *tree, const TreeBound *bound, const uint64_t *cell, bool separator, int *result)
{
	Decision decision = node_decide(&tree->geometry, bound, cell, separator);
	OverflowReference reference;
	uint8_t *buffer = (uint8_t *) tree->overflow;
	TreeStatus status;

	assert(!tree->client->holding);
	assert(result != NULL);

	if (decision != DECIDE_UNKNOWN)
	{
		*result = (int) decision;
		return TREE_OK;
	}
	if ((cell[0] & CELL_OVERFLOW_BIT) == 0)
	{
		*result = search_compare_image(tree, bound, cell, separator, NULL);
		return TREE_OK;
	}
	cell_overflow(&tree->geometry, cell, &reference);
	status = access_read_overflow(tree, &reference, 1, &buffer);
	if (status == TREE_OK)
		*result = search_compare_image(tree, bound, cell, separator, buffer);
	return status;
}

TreeStatus
search_compare_fence(Tree *tree, const TreeBound *bound, const uint64_t *node, bool high, int *result)
{
	const uint64_t *fence = node + (high ? tree->geometry.high_word : tree->geometry.low_word);

	assert(node != NULL);
	assert(result != NULL);
	if (separator_infinite(fence))
	{
		*result = high ? -1 : 1;
		return TREE_OK;
	}
	return search_compare(tree, bound, fence, true, result);
}

int
search_far_fence(Tree *tree, const TreeBound *bound, const uint64_t *fence, bool forward)
{
	Decision decision;
	int result;

	if (separator_infinite(fence))
		return -1;
	decision = node_decide(&tree->geometry, bound, fence, true);
	if (decision == DECIDE_BELOW || decision == DECIDE_ABOVE)
		result = (int) decision;
	else if ((fence[0] & CELL_OVERFLOW_BIT) != 0)
		return 0;
	else
		result = search_compare_image(tree, bound, fence, true, NULL);
	return forward ? result : -result;
}

TreeStatus
search_separator_bound(Tree *tree, const uint64_t *separator, int8_t side, TreeBound *bound, uint8_t *buffer)
{
	const NodeGeometry *g = &tree->geometry;
	TreeStatus status = TREE_OK;
	TreeKey key;

	assert(!separator_infinite(separator));
	assert(side == 0 || side == -1);

	cell_key(g, separator, true, &key);
	if (!key.cut && (separator[0] & CELL_OVERFLOW_BIT) != 0)
	{
		OverflowReference reference;

		cell_overflow(g, separator, &reference);
		status = access_read_overflow(tree, &reference, 1, &buffer);
	}
	else if (key.image_bytes != 0)
		memcpy(buffer, key.image, key.image_bytes);
	key.image = key.image_bytes != 0 ? buffer : NULL;
	bound_of_key(g, &key, bound);
	if (side < 0 && key.cut)
		bound->side = -1;
	else if (side < 0)
	{
		/* The next lower TID: offsets of entries begin with 1, so there is one. */
		bound->key.block = key.offset != 0 ? key.block : key.block - 1;
		bound->key.offset = key.offset != 0 ? (uint16_t) (key.offset - 1) : (uint16_t) CELL_OFFSET_MASK;
	}
	return status;
}

/*
 * Which of the children first..last covers the bound, when integers do not decide: by binary search with the
 * comparator.
 */
static TreeStatus
search_tied(Tree *tree, const uint64_t *node, const TreeBound *bound, uint32_t *first, uint32_t last)
{
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *cells[INNER_CELLS_MAX];
	const uint8_t *images[INNER_CELLS_MAX];
	uint32_t begin = *first;
	uint32_t low = begin;
	TreeStatus status;

	assert(begin < last && last < g->inner_cells);
	assert(g->inner_cells <= INNER_CELLS_MAX);

	for (uint32_t i = begin + 1; i <= last; i++)
		cells[i - begin - 1] = node + inner_cell_word(g, i) + 1;
	status = search_images(tree, cells, (int) (last - begin), images);
	while (status == TREE_OK && low < last)
	{
		uint32_t middle = (low + last + 1) / 2;
		uint32_t i = middle - begin - 1;

		if (search_compare_image(tree, bound, cells[i], true, images[i]) >= 0)
			low = middle;
		else
			last = middle - 1;
	}
	*first = low;
	return status;
}

/*
 * As search_inner(); `path` (or NULL) has fences that the parent's separators have decided already: fences with equal
 * bytes need no comparison.
 */
static TreeStatus
search_within(Tree *tree, const uint64_t *node, const TreeBound *bound, const Path *path, ChildChoice *choice)
{
	const NodeGeometry *g = &tree->geometry;
	bool known = path != NULL && path->fences_known;
	uint32_t first = 0, last = 0;
	int low = 1, high = -1;
	TreeStatus status = TREE_OK;

	assert(node_level(node) > 0 && node_count(node) >= 1);
	assert(choice != NULL);

	if (!known || !separator_equal(g, node + g->low_word, path->low))
		status = search_compare_fence(tree, bound, node, false, &low);
	if (status == TREE_OK && low >= 0 && (!known || !separator_equal(g, node + g->high_word, path->high)))
		status = search_compare_fence(tree, bound, node, true, &high);
	if (status == TREE_OK && low >= 0 && high < 0 && !node_search_inner(g, node, bound, &first, &last))
		status = search_tied(tree, node, bound, &first, last);
	if (status != TREE_OK)
		return status;
	node_child_choice(g, node, first, choice);
	choice->bound_below = low < 0;
	choice->bound_above = low >= 0 && high >= 0;
	return TREE_OK;
}

TreeStatus
search_inner(Tree *tree, const uint64_t *node, const TreeBound *bound, ChildChoice *choice)
{
	assert(!tree->client->holding);
	assert(node_level(node) > 0);
	return search_within(tree, node, bound, NULL, choice);
}

/* One node of a descent. */
typedef struct Visit
{
	uint64_t pointer;
	uint64_t parent; /* 0 for the root */
	int level;       /* expected, -1 = any (the root) */
	bool fresh;      /* not through the cache */
	bool read;       /* out: it was read from its memory node and lies in client->descent */
	uint64_t *leaf;  /* of a lookup: a buffer for an image of the leaf; else NULL */
	bool found;      /* out: the memory node has descended, and `pointer` is the leaf's */
	bool brought;    /* out: with an image of it */
} Visit;

/*
 * The cache lacks the node that a lookup is to visit: calls the memory node for the leaf below it, if offload.c
 * chooses that. TREE_OK: the descent is over; TREE_NOT_FOUND: the node is to be read.
 */
static TreeStatus
visit_offload(Tree *tree, Visit *visit, const TreeBound *bound)
{
	TreeStatus status;

	if (visit->leaf == NULL || visit->fresh || visit->level <= 0 ||
	    !offload_chosen(tree, pointer_memory_node(visit->pointer), (uint32_t) visit->level))
		return TREE_NOT_FOUND;
	status =
		offload_descend(tree, bound, (uint32_t) visit->level, &visit->pointer, visit->leaf, &visit->brought);
	visit->found = status == TREE_OK;
	return status;
}

/* Reads the node that is visited, and measures the time where offloading is on. */
static TreeStatus
visit_read(Tree *tree, const Visit *visit)
{
	uint64_t begin;
	TreeStatus status;

	if (tree->client->shared->offloads == NULL)
		return access_read_node(tree, visit->pointer, visit->level, tree->client->descent);
	begin = client_now_us(tree->client);
	status = access_read_node(tree, visit->pointer, visit->level, tree->client->descent);
	if (status == TREE_OK)
		offload_read_took(tree, pointer_memory_node(visit->pointer), client_now_us(tree->client) - begin);
	return status;
}

/*
 * Whether the root, of which the cache of inner nodes has nothing, is in that of leaves: the tree is one leaf, or has just
 * grown, as whoever takes the leaf sees.
 */
static bool
root_is_kept_leaf(Tree *tree, const Visit *visit)
{
	if (visit->parent != 0 || visit->fresh || !leaf_cache_has(tree, tree->root))
		return false;
	tree->root_is_leaf = true;
	return true;
}

/*
 * Finds the child in the node of this visit, or, of a lookup, the leaf itself (visit->found). choice->level 0:
 * it is a leaf, hence the root; nothing else is set then.
 */
static TreeStatus
visit_node(Tree *tree, Visit *visit, const TreeBound *bound, const Path *path, ChildChoice *choice)
{
	uint64_t *node = tree->client->descent;
	TreeStatus status = TREE_NOT_FOUND;

	assert(pointer_address(visit->pointer) != POINTER_NONE);
	assert(visit->level < LEVELS_MAX);

	visit->read = false;
	if (!visit->fresh)
		status = cache_find_child(tree, visit->pointer, bound, choice, node);
	if (status == TREE_RETRY)
		status = search_within(tree, node, bound, path, choice);
	if (status == TREE_NOT_FOUND && root_is_kept_leaf(tree, visit))
	{
		choice->level = 0;
		return TREE_OK;
	}
	if (status == TREE_NOT_FOUND)
		status = visit_offload(tree, visit, bound);
	if (visit->found)
		return TREE_OK;
	if (status == TREE_NOT_FOUND)
	{
		status = visit_read(tree, visit);
		if (status == TREE_RETRY && visit->parent != 0)
			cache_drop(tree, visit->parent);
		if (status != TREE_OK)
			return status;
		visit->read = true;
		if (node_level(node) == 0)
		{
			choice->level = 0;
			return TREE_OK;
		}
		cache_put(tree, visit->pointer, visit->parent, node);
		status = search_within(tree, node, bound, path, choice);
	}
	if (status == TREE_OK && visit->level >= 0 && choice->level != (uint32_t) visit->level)
		return TREE_RETRY;
	return status;
}

/*
 * The bound is at or above the high fence of an inner node: its right sibling's. If the parent was read just
 * now and led here all the same, the split is incomplete: it is completed here. A cached parent is
 * forgotten.
 */
static TreeStatus
move_right(Tree *tree, Visit *visit, const ChildChoice *choice, Path *path)
{
	uint64_t separator[LINE_WORDS];
	TreeStatus status = TREE_OK;

	assert(choice->bound_above);
	assert(choice->level > 0);

	if (!visit->read || pointer_address(choice->right) == POINTER_NONE)
		return TREE_RETRY;
	TREE_COUNT(tree, right_moves, 1);
	node_get_fence(&tree->geometry, tree->client->descent, true, separator);
	path->fences_known = false;
	if (path->fresh)
		status = downlink_insert(tree, choice->level, visit->pointer, separator, choice->right, path);
	else if (visit->parent != 0)
		cache_drop(tree, visit->parent);
	visit->pointer = choice->right;
	if (status == TREE_RETRY || status == TREE_MEMORY_FULL || status == TREE_TIMED_OUT)
		return TREE_OK;
	return status;
}

static void
move_down(const NodeGeometry *g, Visit *visit, const ChildChoice *choice, Path *path)
{
	assert(choice->level > 0);
	assert(g->cell_bytes <= sizeof(path->low));

	path->fences_known = true;
	path->fresh = visit->read;
	separator_copy(g, path->low, choice->low);
	separator_copy(g, path->high, choice->high);
	visit->parent = visit->pointer;
	visit->pointer = choice->child;
	visit->level = (int) choice->level - 1;
}

/* Begins an empty path; fences are not even cleared. */
static void
path_begin(Path *path)
{
	path->fences_known = false;
	path->fresh = false;
	path->root_level = 0;
	memset(path->parents, 0, sizeof(path->parents));
}

/* One descent; TREE_RETRY: it met a stale node. */
static TreeStatus
descend_once(Tree *tree, const TreeBound *bound, uint32_t level, bool fresh, Path *path, uint64_t *leaf,
             bool *brought)
{
	Visit visit = {.pointer = tree->root, .level = -1, .fresh = fresh, .leaf = leaf};
	ChildChoice choice;
	TreeStatus status;

	path_begin(path);
	for (int steps = 0; steps < RIGHT_MOVES_MAX; steps++)
	{
		/* A leaf is not read here: the caller reads or locks it. */
		if (visit.level == 0)
			break;
		status = visit_node(tree, &visit, bound, path, &choice);
		if (status != TREE_OK)
			return status;
		if (visit.found)
		{
			path->fences_known = false;
			path->fresh = false;
			visit.level = 0;
			break;
		}
		if (visit.parent == 0)
			path->root_level = choice.level;
		if (choice.level < level || choice.level >= LEVELS_MAX)
			return TREE_RETRY;
		path->parents[choice.level] = choice.level > 0 ? visit.pointer : 0;
		visit.level = (int) choice.level;
		if (choice.level > 0 && choice.bound_below)
			return TREE_RETRY;
		if (choice.level > 0 && choice.bound_above)
		{
			status = move_right(tree, &visit, &choice, path);
			if (status != TREE_OK)
				return status;
			continue;
		}
		if (choice.level == level)
			break;
		move_down(&tree->geometry, &visit, &choice, path);
	}
	if (visit.level != (int) level)
		return TREE_RETRY;
	path->pointer = visit.pointer;
	path->level = level;
	*brought = visit.brought;
	return TREE_OK;
}

TreeStatus
search_path(Tree *tree, const TreeBound *bound, uint32_t level, bool fresh, Path *path, uint64_t *leaf,
            bool *brought)
{
	TreeClient *client = tree->client;
	Outrun descents = {0};
	TreeStatus status;

	assert(!client->holding);
	assert(level < LEVELS_MAX);

	*brought = false;

	/* The tree was one leaf when last seen: the caller, which locks or reads the root, sees whether it still is. */
	if (level == 0 && tree->root_is_leaf && !fresh)
	{
		path_begin(path);
		path->pointer = tree->root;
		path->level = 0;
		return TREE_OK;
	}
	tree->torn = false;
	do
	{
		status = descend_once(tree, bound, level, fresh || descents.tries > 0, path, leaf, brought);
		if (status != TREE_RETRY)
			return status;
		TREE_COUNT(tree, stale_reads, 1);
		if (client_should_stop(client))
			return TREE_STOPPED;
	} while (access_descends_again(tree, &descents));
	return access_no_way(tree, level == 0 ? "to a leaf" : "to an inner node", &descents);
}
