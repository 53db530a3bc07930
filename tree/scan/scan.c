/*
 * scan.c
 *		Scans: from leaf to leaf in either direction, reading ahead.
 *
 * A scan tiles the key space by fences: after a leaf [low, high) a forward scan accepts only a leaf whose low fence
 * is byte for byte that high, and a backward scan only one whose high fence is that low. Low fences never change and
 * entries only move right in an epoch of the tree, so no entry is missed and none is returned twice, however old the copies are that led
 * there. Leaves that were split in between are reached by right links.
 *
 * Leaves are read ahead as children of a cached level-1 node, as many as the scan has used so far, up to READ_AHEAD_MAX, and from
 * all memory nodes at once.  Nothing is held between calls, and nothing while the comparator runs: it may jump away, and tree_scan_close() frees everything.
 */
#include "tree/scan/scan.h"
#include "tree/descent/descent.h"

/* ---- positions ---- */

void
bound_of_end(const NodeGeometry *g, bool above, TreeBound *bound)
{
	assert(g->norm_words >= 1);
	assert(bound != NULL);

	memset(bound, 0, sizeof(*bound));
	bound->key.high = above;
	bound->key.cut = !above;
	for (uint32_t i = 0; i < g->norm_words; i++)
		bound->key.norm[i] = above ? UINT64_MAX : 0;
	bound->norm_bits_valid = 1;
	bound->norm_length = g->format.norm_bytes;
	bound->norm_exact = true;
	bound->side = above ? 1 : -1;
}

/* Whether this is the leaf that comes next: its nearer fence is the one where the last leaf ended. */
static bool
leaf_is_next(const TreeScan *scan, const uint64_t *leaf)
{
	assert(scan->begun);
	return separator_equal(&scan->tree->geometry, scan_fence(scan, leaf, scan->direction == TREE_BACKWARD),
	                       scan->want);
}

static void
leaf_accept(TreeScan *scan, uint64_t *leaf, uint64_t pointer)
{
	assert(node_level(leaf) == 0);
	assert(pointer_address(pointer) == leaf[HEADER_SELF]);
	scan->leaf = leaf;
	scan->leaf_epoch = scan->epoch;
	scan->near_inside = false;
	scan->pointer = pointer;
}

static void
ahead_drop(TreeScan *scan)
{
	assert(scan->ahead.next <= scan->ahead.count);
	scan->ahead.count = 0;
	scan->ahead.next = 0;
}

void
scan_refresh(TreeScan *scan)
{
	assert(!scan->tree->client->holding);
	assert(scan->tree->client->sections > 0);
	if (scan->epoch == scan->tree->epoch)
		return;
	ahead_drop(scan);
	scan->parent.pointer = 0;
	scan->parent.loaded = false;
	scan->right = POINTER_NONE;
	scan->walk.steps = 0;
	scan->epoch = scan->tree->epoch;
}

/* ---- the level-1 node ---- */

static const uint64_t *
child_separator(const TreeScan *scan, uint32_t i)
{
	assert(scan->parent.loaded);
	assert(i < node_count(scan->parent.node));
	return scan->parent.node + inner_cell_word(&scan->tree->geometry, i) + 1;
}

/* Makes scan->parent.node a copy of the level-1 node, from the cache only. */
static bool
parent_load(TreeScan *scan)
{
	ScanParent *parent = &scan->parent;

	assert(parent->node != NULL);
	if (parent->loaded)
		return true;
	if (parent->pointer == 0 || cache_copy(scan->tree, parent->pointer, parent->node) != TREE_OK ||
	    node_level(parent->node) != 1)
	{
		parent->pointer = 0;
		return false;
	}
	parent->hint = 0;
	parent->loaded = true;
	assert(node_count(parent->node) >= 1);
	return true;
}

/*
 * Whether the parent's copy has `want` as a separator: then *place is the child on its right (count: its high
 * fence).
 */
static bool
parent_place(TreeScan *scan, uint32_t *place)
{
	const NodeGeometry *g = &scan->tree->geometry;
	ScanParent *parent = &scan->parent;
	uint32_t count;

	assert(scan->begun);
	if (!parent_load(scan))
		return false;
	count = node_count(parent->node);
	assert(count <= g->inner_cells);
	*place = parent->hint;
	if (parent->hint < count && separator_equal(g, child_separator(scan, parent->hint), scan->want))
		return true;
	for (*place = 0; *place < count; (*place)++)
		if (separator_equal(g, child_separator(scan, *place), scan->want))
			return true;
	return separator_equal(g, parent->node + g->high_word, scan->want);
}

/*
 * As parent_place(), going on to the right sibling in the cache where a forward scan has used up the parent.
 */
static bool
parent_find(TreeScan *scan, uint32_t *place)
{
	ScanParent *parent = &scan->parent;

	assert(scan->begun);
	if (!parent_place(scan, place))
		return false;
	if (scan->direction == TREE_BACKWARD || *place < node_count(parent->node))
		return true;
	assert(!separator_infinite(scan->want));
	parent->pointer = parent->node[HEADER_RIGHT];
	parent->loaded = false;
	return parent_place(scan, place) && *place < node_count(parent->node);
}

/*
 * Whether integers say that the scan does not end before it comes to the child on the far side of this
 * separator.
 */
static bool
worth_reading(const TreeScan *scan, const uint64_t *separator)
{
	Decision decision;

	assert(separator != NULL);
	if (!scan->has_stop)
		return true;
	if (separator_infinite(separator))
		return false;
	decision = node_decide(&scan->tree->geometry, &scan->stop, separator, true);
	return decision == (scan->direction == TREE_FORWARD ? DECIDE_ABOVE : DECIDE_BELOW);
}

/* Collects the pointers of the next leaves: children from `place` on, in the order of the scan. */
static void
ahead_choose(TreeScan *scan, uint32_t place)
{
	const NodeGeometry *g = &scan->tree->geometry;
	ScanAhead *ahead = &scan->ahead;
	ScanParent *parent = &scan->parent;
	uint32_t count = node_count(parent->node);
	bool forward = scan->direction == TREE_FORWARD;

	assert(place <= count);
	ahead_drop(scan);
	while (ahead->count < scan->depth && (forward ? place < count : place > 0))
	{
		uint32_t i = forward ? place : place - 1;
		uint64_t pointer = parent->node[inner_cell_word(g, i)];

		/* The first one begins where the stop bound is not yet: it is needed. */
		if (ahead->count > 0 && !worth_reading(scan, child_separator(scan, place)))
			break;
		ahead->pointers[ahead->count++] = pointer;
		place = forward ? place + 1 : place - 1;
	}
	parent->hint = place;
}

/* Where the leaves that are chosen go: without memory for so many it is the first of them. */
static void
ahead_images(TreeScan *scan)
{
	const NodeGeometry *g = &scan->tree->geometry;
	const uint32_t bytes = g->leaf_bytes;
	ScanAhead *ahead = &scan->ahead;
	uintptr_t deep;

	if (ahead->count > TREE_PREFETCH_MAX && scan->deep == NULL)
	{
		scan->deep = client_allocate_beside(scan->tree->client, scan, g->inner_cells * bytes + LINE_BYTES);
		if (scan->deep == NULL)
			ahead->count = TREE_PREFETCH_MAX;
	}
	deep = ((uintptr_t) scan->deep + LINE_BYTES - 1) & ~(uintptr_t) (LINE_BYTES - 1);
	for (int i = 0; i < ahead->count; i++)
		ahead->images[i] = scan->deep == NULL ? scan->buffers[i] : (uint64_t *) (deep + (size_t) i * bytes);
}

/*
 * How many leaves the next wave reads: twice as many, as the scan has used those before.  But half as many where all of them
 * came torn, as they do if they took too long together.
 */
static void
ahead_deepen(TreeScan *scan)
{
	const ScanAhead *ahead = &scan->ahead;

	if (ahead->verdicts[0] == NODE_TORN && ahead->verdicts[ahead->count - 1] == NODE_TORN)
	{
		scan->depth = scan->depth > 1 ? scan->depth / 2 : 1;
		return;
	}
	if (scan->depth < READ_AHEAD_MAX)
		scan->depth = read_ahead_deepen(scan->depth);
}

/* Reads the next leaves ahead, as far as the current level-1 node names them. It may read none. */
static TreeStatus
ahead_read(TreeScan *scan)
{
	ScanAhead *ahead = &scan->ahead;
	uint32_t place;
	TreeStatus status;

	assert(ahead->next == ahead->count);
	assert(scan->depth >= 1 && scan->depth <= READ_AHEAD_MAX);
	ahead_drop(scan);
	if (!parent_find(scan, &place))
		return TREE_OK;
	ahead_choose(scan, place);
	if (ahead->count == 0)
		return TREE_OK;
	if (pointer_address(ahead->pointers[0]) == scan->tree->root)
	{
		ahead_drop(scan);
		return client_fail(scan->tree->client, TREE_DAMAGED, "node %llx: the root is its child",
		                   (unsigned long long) scan->parent.pointer);
	}
	ahead_images(scan);
	leaves_mark(scan, ahead->pointers, ahead->count);
	status =
		leaf_cache_read_leaves(scan->tree, ahead->pointers, ahead->count, ahead->images, ahead->verdicts);
	if (status != TREE_OK)
	{
		ahead_drop(scan);
		return status == TREE_RETRY ? TREE_OK : status;
	}
	ahead_deepen(scan);
	return TREE_OK;
}

/* Whether the parent's copy has a child at this address. */
static bool
parent_has(const TreeScan *scan, uint64_t pointer)
{
	const NodeGeometry *g = &scan->tree->geometry;
	const uint64_t *node = scan->parent.node;

	assert(scan->parent.loaded);
	assert(node_count(node) <= g->inner_cells);
	for (uint32_t i = 0; i < node_count(node); i++)
		if (pointer_address(node[inner_cell_word(g, i)]) == pointer_address(pointer))
			return true;
	return false;
}

/*
 * The scan came to a leaf that its copy of the level-1 node does not name: that node is read anew, and if it still
 * lacks the leaf, the split is incomplete and is completed here. `separator` lies between `left` and `right`.
 */
static TreeStatus
parent_repair(TreeScan *scan, uint64_t left, const uint64_t *separator, uint64_t right)
{
	Tree *tree = scan->tree;
	ScanParent *parent = &scan->parent;
	uint64_t copy[LINE_WORDS];
	bool lacks; /* it has the left one: then it should have the right one, too, or its own right sibling */
	TreeStatus status;

	assert(pointer_address(left) != pointer_address(right));
	TREE_COUNT(tree, right_moves, 1);
	if (parent->pointer == 0)
		return TREE_OK;
	memset(copy, 0, sizeof(copy));
	memcpy(copy, separator, tree->geometry.cell_bytes);
	cache_drop(tree, parent->pointer);
	parent->loaded = false;
	status = access_read_node(tree, parent->pointer, 1, parent->node);
	if (status == TREE_RETRY)
		parent->pointer = 0; /* it was the root, which has grown */
	if (status != TREE_OK)
		return status == TREE_RETRY ? TREE_OK : status;
	parent->loaded = true;
	parent->hint = 0;
	lacks = parent_has(scan, left);
	if (parent_has(scan, right))
		return TREE_OK;
	parent->pointer = 0; /* the next descent finds the parent that has it */
	parent->loaded = false;
	if (!lacks)
		return TREE_OK;
	status = downlink_insert(tree, 0, left, copy, right, NULL);
	if (status == TREE_RETRY || status == TREE_MEMORY_FULL || status == TREE_TIMED_OUT)
		return TREE_OK;
	return status;
}

/* ---- descents ---- */

/* What leaf a descent is for. */
typedef struct Target
{
	const TreeBound *bound;
	bool first; /* any leaf that covers the bound; else the one that leaf_is_next() accepts */
} Target;

/*
 * Whether the leaf is the target: < 0 it lies left of it, 0 it is it, > 0 right of it.  The fence where the last leaf
 * ended is one no more if the leaves on its both sides were merged into one: that one covers it.
 */
static TreeStatus
target_compare(TreeScan *scan, const Target *target, const Path *path, const uint64_t *leaf, int *where)
{
	Tree *tree = scan->tree;
	const NodeGeometry *g = &tree->geometry;
	int low = 1, high = -1;
	TreeStatus status = TREE_OK;

	assert(node_level(leaf) == 0);
	*where = 0;
	if (!target->first && leaf_is_next(scan, leaf))
		return TREE_OK;
	/* Fences that the parent's separators settled already need no look. */
	if (!path->fences_known || !separator_equal(g, leaf + g->low_word, path->low))
		status = search_compare_fence(tree, target->bound, leaf, false, &low);
	if (status == TREE_OK && (!path->fences_known || !separator_equal(g, leaf + g->high_word, path->high)))
		status = search_compare_fence(tree, target->bound, leaf, true, &high);
	if (low < 0)
		*where = 1;
	else if (high >= 0)
		*where = -1;
	return status;
}

/*
 * The current leaf ends before the target, so there was a split that the descent's parent did not know: completes it,
 * or remembers it.
 */
static TreeStatus
right_move(TreeScan *scan, Path *path, uint64_t pointer, const uint64_t *leaf)
{
	Tree *tree = scan->tree;
	uint64_t separator[LINE_WORDS];
	TreeStatus status = TREE_OK;

	assert(node_level(leaf) == 0);
	if (leaf[HEADER_RIGHT] == POINTER_NONE)
		return TREE_RETRY;
	TREE_COUNT(tree, right_moves, 1);
	memset(separator, 0, sizeof(separator));
	node_get_fence(&tree->geometry, leaf, true, separator);
	if (path->fresh)
		status = downlink_insert(tree, 0, pointer, separator, leaf[HEADER_RIGHT], path);
	else if (path->parents[1] != 0)
		cache_drop(tree, path->parents[1]);
	path->fences_known = false;
	if (status == TREE_MEMORY_FULL || status == TREE_TIMED_OUT || status == TREE_RETRY)
		status = TREE_OK;
	return status;
}

/* Of the leaf that a descent came to: if it begins on the near side of where the last one ended, the part behind counts. */
static TreeStatus
near_fence_find(TreeScan *scan)
{
	bool forward = scan->direction == TREE_FORWARD;

	assert(scan->begun);
	if (leaf_is_next(scan, scan->leaf))
		return TREE_OK;
	scan->near_inside = true;
	return search_separator_bound(scan->tree, scan->want, forward ? -1 : 0, &scan->near, scan->near_image);
}

/* One descent to the target. TREE_RETRY: stale. */
static TreeStatus
descend_to_target(TreeScan *scan, const Target *target, bool fresh)
{
	Tree *tree = scan->tree;
	uint64_t *leaf = scan->buffers[SCAN_ALONE];
	bool brought = false; /* the leaf, already */
	uint64_t pointer;
	Path path;
	int where = -1;
	TreeStatus status;

	assert(!tree->client->holding);
	/* Leaves are read here, as the caller's hook is called before each. */
	if (!fresh && target->first && scan->has_stop && scan->leaf_hook == NULL &&
	    bounds_are_of_one_key(&tree->geometry, &scan->start, &scan->stop))
		status = search_look_up(tree, target->bound, &path, leaf, &brought);
	else
		status = search_descend(tree, target->bound, 0, fresh, &path);
	if (status != TREE_OK)
		return status;
	pointer = path.pointer;
	for (int steps = 0; steps < RIGHT_MOVES_MAX; steps++)
	{
		if (!brought)
			status = leaf_read(scan, pointer, leaf);
		brought = false;
		if (status == TREE_RETRY && path.parents[1] != 0)
			cache_drop(tree, path.parents[1]);
		if (status == TREE_OK)
			status = target_compare(scan, target, &path, leaf, &where);
		if (status == TREE_OK && where > 0)
			status = TREE_RETRY;
		if (status != TREE_OK || where == 0)
			break;
		uint64_t right = leaf[HEADER_RIGHT];

		status = right_move(scan, &path, pointer, leaf);
		if (status != TREE_OK)
			break;
		pointer = right;
	}
	tree->root_is_leaf = status == TREE_OK && pointer_address(pointer) == tree->root;
	if (status != TREE_OK || where != 0)
		return status == TREE_OK ? TREE_RETRY : status;
	scan->parent.pointer = path.parents[1];
	scan->parent.loaded = false;
	leaf_accept(scan, leaf, pointer);
	return target->first ? TREE_OK : near_fence_find(scan);
}

/*
 * Descends to the next leaf: for the start bound, or for the fence where the last leaf ended. TREE_DAMAGED.
 */
static TreeStatus
load_descend(TreeScan *scan, bool fresh)
{
	Tree *tree = scan->tree;
	TreeBound bound;
	Target target = {scan->begun ? &bound : &scan->start, !scan->begun};
	Outrun descents = {0};
	TreeStatus status = TREE_OK;

	assert(scan->sought && !scan->ended);
	ahead_drop(scan);
	TREE_COUNT(tree, lookups, 1);
	if (scan->begun)
		status = search_separator_bound(tree, scan->want, scan->direction == TREE_FORWARD ? 0 : -1, &bound,
		                                scan->fence_image);
	if (status != TREE_OK)
		return status;
	tree->torn = false;
	do
	{
		status = descend_to_target(scan, &target, fresh || descents.tries > 0);
		if (status != TREE_RETRY)
			return status;
		TREE_COUNT(tree, stale_reads, 1);
		if (client_should_stop(tree->client))
			return TREE_STOPPED;
	} while (access_descends_again(tree, &descents));
	return access_no_way(tree, "to the next leaf", &descents);
}

/* The first leaf, if it was read before the seek (seeks_ahead.c). TREE_RETRY: descend. */
static TreeStatus
load_announced(TreeScan *scan)
{
	uint64_t *leaf;
	uint64_t pointer, parent;
	TreeStatus status;

	assert(scan->sought && !scan->begun);
	status = seeks_take(scan, &leaf, &pointer, &parent);
	if (status != TREE_OK || leaf == NULL)
		return status != TREE_OK ? status : TREE_RETRY;
	TREE_COUNT(scan->tree, lookups, 1);
	scan->parent.pointer = parent;
	scan->parent.loaded = false;
	leaf_accept(scan, leaf, pointer);
	return TREE_OK;
}

/* ---- from leaf to leaf ---- */

/*
 * The leaf at the head of those read ahead, read once more if its copy was torn; when they are used up, the
 * next ones are read.  NULL: none, or stale.
 */
static TreeStatus
ahead_head(TreeScan *scan, uint64_t **leaf)
{
	ScanAhead *ahead = &scan->ahead;
	int i;
	TreeStatus status;

	*leaf = NULL;
	assert(ahead->next <= ahead->count);
	if (ahead->next == ahead->count)
	{
		status = ahead_read(scan);
		if (status != TREE_OK)
			return status;
	}
	i = ahead->next;
	if (i == ahead->count)
		return TREE_OK;
	if (ahead->verdicts[i] == NODE_TORN)
	{
		status = leaf_read(scan, ahead->pointers[i], ahead->images[i]);
		if (status != TREE_OK && status != TREE_RETRY)
			return status;
		ahead->verdicts[i] = status == TREE_OK ? NODE_GOOD : NODE_STALE;
	}
	if (ahead->verdicts[i] != NODE_GOOD)
	{
		if (scan->parent.pointer != 0)
			cache_drop(scan->tree, scan->parent.pointer);
		ahead_drop(scan);
		return TREE_OK;
	}
	*leaf = ahead->images[i];
	return TREE_OK;
}

/*
 * Forward: the leaf that was read ahead if it fits, else the one that the last leaf's right link names. TREE_RETRY:
 * descend.
 */
static TreeStatus
load_forward(TreeScan *scan)
{
	uint64_t *leaf;
	uint64_t right = scan->right;
	TreeStatus status;

	assert(scan->begun && scan->direction == TREE_FORWARD);
	status = ahead_head(scan, &leaf);
	if (status != TREE_OK)
		return status;
	if (leaf != NULL && leaf_is_next(scan, leaf))
	{
		leaf_accept(scan, leaf, scan->ahead.pointers[scan->ahead.next++]);
		return TREE_OK;
	}
	/* If there is no parent yet a descent brings one, at the cost of one more READ, too. */
	if (right == POINTER_NONE || (leaf == NULL && !scan->parent.loaded))
		return TREE_RETRY;
	leaf = scan->buffers[SCAN_ALONE];
	status = leaf_read(scan, right, leaf);
	if (status != TREE_OK)
		return status;
	if (!leaf_is_next(scan, leaf))
		return TREE_RETRY;
	leaf_accept(scan, leaf, right);
	return parent_repair(scan, scan->left, scan->want, right);
}

/*
 * Backward: the leaf read ahead if it ends where it should, else a leaf to the right of it, split from it
 * meanwhile; the one read ahead then keeps its turn.  TREE_RETRY: descend.
 */
static TreeStatus
load_backward(TreeScan *scan)
{
	uint64_t *leaf;
	uint64_t *alone = scan->buffers[SCAN_ALONE];
	uint64_t left;
	TreeStatus status;

	assert(scan->begun && scan->direction == TREE_BACKWARD);
	status = ahead_head(scan, &leaf);
	if (status != TREE_OK)
		return status;
	if (leaf == NULL)
		return TREE_RETRY;
	left = scan->ahead.pointers[scan->ahead.next];
	if (leaf_is_next(scan, leaf))
	{
		leaf_accept(scan, leaf, left);
		scan->ahead.next++;
		return TREE_OK;
	}
	for (int steps = 0; steps < RIGHT_MOVES_MAX && leaf[HEADER_RIGHT] != POINTER_NONE; steps++)
	{
		uint64_t right = leaf[HEADER_RIGHT];
		uint64_t separator[LINE_WORDS];

		node_get_fence(&scan->tree->geometry, leaf, true, separator);
		status = leaf_read(scan, right, alone);
		if (status != TREE_OK)
			return status;
		leaf = alone;
		if (leaf_is_next(scan, leaf))
		{
			leaf_accept(scan, leaf, right);
			return parent_repair(scan, left, separator, right);
		}
		left = right;
	}
	return TREE_RETRY;
}

TreeStatus
scan_load(TreeScan *scan, bool afresh)
{
	TreeStatus status = TREE_RETRY;

	assert(!scan->ended);
	if (!scan->begun && !afresh)
		status = scan->seeks == NULL ? TREE_RETRY : load_announced(scan);
	else if (!afresh)
		status = scan->direction == TREE_FORWARD ? load_forward(scan) : load_backward(scan);
	if (status == TREE_RETRY)
		status = load_descend(scan, afresh);
	return status;
}

/*
 * Whether the part that the scan has taken ends inside the current leaf, because that was merged with the next one
 * meanwhile: scan->limit is the end then, unless the stop bound comes first.
 */
static TreeStatus
taken_judge(TreeScan *scan)
{
	Tree *tree = scan->tree;
	bool forward = scan->direction == TREE_FORWARD;
	int low = 1, high = -1, stop = 1;
	TreeStatus status;

	assert(scan->taking);
	if (separator_infinite(scan->taken_end) ||
	    separator_equal(&tree->geometry, scan_fence(scan, scan->leaf, forward), scan->taken_end))
		return TREE_OK;
	status = search_separator_bound(tree, scan->taken_end, forward ? 0 : -1, &scan->limit, scan->limit_image);
	if (status == TREE_OK)
		status = search_compare_fence(tree, &scan->limit, scan->leaf, false, &low);
	if (status == TREE_OK)
		status = search_compare_fence(tree, &scan->limit, scan->leaf, true, &high);
	if (status != TREE_OK || low < 0 || high >= 0)
		return status;
	scan->far_inside = true;
	if (scan->stop_inside)
		status = search_compare(tree, &scan->stop, scan->taken_end, true, &stop);
	else
		stop = forward ? 1 : -1;
	if (forward ? stop > 0 : stop < 0)
		scan->stop_inside = false;
	return status;
}

/*
 * Whether the scan ends with the current leaf: its far fence is the tree's end, or not before the stop bound.
 */
static TreeStatus
leaf_judge(TreeScan *scan, bool *last)
{
	bool forward = scan->direction == TREE_FORWARD;
	const uint64_t *fence = scan_fence(scan, scan->leaf, forward);
	int result;
	TreeStatus status;

	assert(scan->leaf != NULL);
	*last = separator_infinite(fence);
	scan->stop_inside = scan->has_stop && *last;
	if (*last || !scan->has_stop)
		return TREE_OK;
	status = batch_compare_stop(scan, &result);
	if (status != TREE_OK)
		return status;
	/* An entry may be equal to a low fence, but never to a high one. */
	*last = forward ? result <= 0 : result >= 0;
	scan->stop_inside = *last;
	return TREE_OK;
}

/* The current leaf was consumed: where the next one begins. TREE_DAMAGED: it was before. */
static TreeStatus
leaf_consume(TreeScan *scan, bool last)
{
	const NodeGeometry *g = &scan->tree->geometry;

	assert(scan->leaf != NULL);
	scan->begun = true;
	scan->left = scan->pointer;
	scan->right = scan->leaf_epoch == scan->epoch ? scan->leaf[HEADER_RIGHT] : POINTER_NONE;
	memset(scan->want, 0, sizeof(scan->want));
	node_get_fence(g, scan->leaf, scan->direction == TREE_FORWARD, scan->want);
	assert(last || scan->far_inside || !separator_infinite(scan->want));
	scan->ended =
		last || scan->far_inside || (scan->taking && separator_equal(g, scan->want, scan->taken_end));
	return walk_goes_on(&scan->walk, scan->pointer, scan->leaf[HEADER_GENERATION])
	           ? TREE_OK
	           : access_ring(scan->tree, scan->pointer);
}

/* ---- the calls ---- */

TreeStatus
tree_scan_open(Tree *handle, TreeScan **scan)
{
	const size_t head = (sizeof(TreeScan) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	const size_t leaf = handle->geometry.leaf_bytes;
	const size_t entries =
		handle->geometry.format.postings ? LEAF_ENTRIES_MAX * handle->geometry.cell_bytes : 0;
	const size_t bytes =
		head + LINE_BYTES + TREE_PREFETCH_MAX * leaf + 2 * NODE_MAX_BYTES + entries + 3 * FENCE_IMAGE_BYTES;
	TreeScan *s;
	char *place;

	assert(handle->client != NULL);
	assert(leaf % LINE_BYTES == 0);

	*scan = NULL;
	s = client_allocate(handle->client, bytes);
	if (s == NULL)
		return client_fail(handle->client, TREE_NO_MEMORY, "no memory for a scan");
	memset(s, 0, sizeof(*s));
	s->tree = handle;
	/* Nodes lie on lines, as in their memory node. */
	place = (char *) (((uintptr_t) s + head + LINE_BYTES - 1) & ~(uintptr_t) (LINE_BYTES - 1));
	for (int i = 0; i < TREE_PREFETCH_MAX; i++, place += leaf)
		s->buffers[i] = (uint64_t *) place;
	s->buffers[SCAN_ALONE] = (uint64_t *) place;
	s->parent.node = (uint64_t *) (place + NODE_MAX_BYTES);
	s->entries = entries != 0 ? (uint64_t *) (place + 2 * NODE_MAX_BYTES) : NULL;
	s->fence_image = (uint8_t *) (place + 2 * NODE_MAX_BYTES + entries);
	s->near_image = s->fence_image + FENCE_IMAGE_BYTES;
	s->limit_image = s->near_image + FENCE_IMAGE_BYTES;
	*scan = s;
	return TREE_OK;
}

void
tree_scan_renew(TreeScan *scan)
{
	assert(!scan->tree->client->holding);
	scan->leaf_hook = NULL;
	scan->leaf_argument = NULL;
	scan->unverified = false;
	if (scan->seeks != NULL)
		tree_scan_forget_ahead(scan);
}

void
tree_scan_close(TreeScan *scan)
{
	TreeClient *client;

	if (scan == NULL)
		return;
	client = scan->tree->client;
	assert(client != NULL);
	assert(!client->holding);
	client_release(client, scan->pool);
	client_release(client, scan->deep);
	client_release(client, scan->seeks);
	client_release(client, scan);
}

TreeStatus
tree_scan_seek(TreeScan *scan, TreeDirection direction, const TreeBound *start, const TreeBound *stop)
{
	const NodeGeometry *g = &scan->tree->geometry;

	assert(direction == TREE_FORWARD || direction == TREE_BACKWARD);
	assert(scan->buffers[SCAN_ALONE] != NULL);
	if ((start != NULL && start->norm_length > g->format.norm_bytes) ||
	    (stop != NULL && stop->norm_length > g->format.norm_bytes))
		return client_fail(scan->tree->client, TREE_INVALID, "a bound longer than the normalized key");
	scan->direction = direction;
	scan->sought = true;
	scan->from_end = start == NULL;
	scan->begun = false;
	scan->ended = false;
	scan->walk.steps = 0;
	scan->loaded = false;
	scan->taking = false;
	scan->stop_inside = false;
	scan->near_inside = false;
	scan->far_inside = false;
	scan->has_last = false;
	scan->leaf = NULL;
	scan->depth = 1;
	scan->parent.pointer = 0;
	scan->parent.loaded = false;
	ahead_drop(scan);
	scan->has_stop = stop != NULL;
	if (stop != NULL)
		scan->stop = *stop;
	if (start != NULL)
		scan->start = *start;
	else
		bound_of_end(g, direction == TREE_BACKWARD, &scan->start);
	return TREE_OK;
}

void
tree_scan_to_the_stop(TreeScan *scan)
{
	assert(scan->sought && !scan->begun);
	scan->depth = READ_AHEAD_MAX;
}

/* Whether the entries are ones that rows can have: callers go to the table with them. */
static bool
batch_has_tids(const TreeBatch *batch)
{
	bool good = true;

	for (int i = 0; i < batch->count; i++)
		good &= batch->entries[i].offset != 0 && batch->entries[i].block != UINT32_MAX;
	return good;
}

/* Tries, in a row, at a leaf whose overflow keys were not those of its cells. */
typedef struct Mismatch
{
	uint64_t leaf;
	uint64_t generation;
	int tries; /* at this generation of this leaf */
	bool any;  /* the leaf is read past all caches */
	Outrun outruns;
} Mismatch;

/*
 * An overflow key was not its cell's: the entry went away, and so the leaf's copy is old; TREE_RETRY: it is read again.
 * Of one that is the same each time that is not so.
 */
static TreeStatus
scan_mismatch(TreeScan *scan, Mismatch *mismatch)
{
	TreeClient *client = scan->tree->client;
	uint64_t leaf = pointer_address(scan->pointer);
	uint64_t generation = scan->leaf[HEADER_GENERATION];
	bool changed = mismatch->any && (leaf != mismatch->leaf || generation != mismatch->generation);

	ahead_drop(scan);
	mismatch->leaf = leaf;
	mismatch->generation = generation;
	mismatch->any = true;
	mismatch->tries = changed ? 1 : mismatch->tries + 1;
	if (mismatch->tries >= DESCENT_ATTEMPTS)
		return client_fail(client, TREE_DAMAGED, "leaf %llx: overflow keys do not match their cells",
		                   (unsigned long long) scan->pointer);
	if (client_should_stop(client))
		return client_fail(client, TREE_STOPPED, "stopped between two tries at a leaf");
	if (!changed || client_outrun(client, &mismatch->outruns, DESCENT_ATTEMPTS))
		return TREE_RETRY;
	return client_fail(client, TREE_TIMED_OUT, "leaf %llx: changed by others in %u tries to read its keys",
	                   (unsigned long long) scan->pointer, mismatch->outruns.tries);
}

/* tree_scan_next(), inside its critical section. */
static TreeStatus
scan_next(TreeScan *scan, const TreeBatch **batch)
{
	TreeClient *client = scan->tree->client;
	Mismatch mismatch = {.any = false};

	scan_refresh(scan);
	while (!scan->ended)
	{
		bool last = false;
		TreeStatus status = scan->loaded ? TREE_OK : scan_load(scan, mismatch.any);

		scan->loaded = false;
		if (status == TREE_OK)
		{
			batch_begin(scan);
			status = leaf_judge(scan, &last);
		}
		scan->far_inside = false;
		if (status == TREE_OK && scan->taking)
			status = taken_judge(scan);
		if (status == TREE_OK)
			status = batch_fill(scan);
		if (status == TREE_RETRY)
		{
			status = scan_mismatch(scan, &mismatch);
			if (status == TREE_RETRY)
				continue;
		}
		if (status != TREE_OK)
			return status;
		mismatch = (Mismatch){.any = false};
		status = leaf_consume(scan, last);
		if (status != TREE_OK)
			return status;
		if (!batch_has_tids(&scan->batch))
			return access_damaged(scan->tree, scan->pointer);
		if (scan->batch.count > 0 || (scan->unverified && (scan->batch.unverified || scan->batch.marks_void)))
		{
			scan->batch.last = scan->ended;
			*batch = &scan->batch;
			return TREE_OK;
		}
		if (!scan->ended && client_should_stop(client))
			return client_fail(client, TREE_STOPPED, "stopped between two leaves");
	}
	return TREE_END;
}

TreeStatus
tree_scan_next(TreeScan *scan, const TreeBatch **batch)
{
	TreeClient *client = scan->tree->client;
	int section;
	TreeStatus status;

	assert(batch != NULL);
	assert(!client->holding);
	if (!scan->sought)
		return client_fail(client, TREE_INVALID, "a scan without a seek");
	status = critical_enter(scan->tree, &section);
	if (status != TREE_OK)
		return status;
	status = scan_next(scan, batch);
	critical_leave(scan->tree, section);
	return status;
}
