/*
 * check.c
 *		Verifying a tree: level by level from the root down, each along its right links.
 *
 * Every node is judged as a private copy, so that a busy tree is no different from a quiet one: low fences never
 * change, a child is linked before its parent names it, and a parent is read before the first of its children. A node
 * that looks wrong is read again before it is reported; only an overflow key can be gone with its cell in between.
 *
 * The comparator and the callbacks may jump: nothing is held, and all memory is the stack's or the handle's.
 */
#include <stdarg.h>
#include <stdio.h>

#include "tree/descent/descent.h"
#include "tree/change/change.h"

/* After so many problems there is no use in more. */
#define PROBLEMS_MAX 1000

#define MESSAGE_BYTES 256

/*
 * So often a node is checked before a problem is reported: overflow keys go away with their cells while vacuum runs.
 */
#define LOOKS 4

/* The children that the level above names, in order. */
typedef struct CheckParents
{
	bool there; /* false: the level is the root's */
	bool ended;
	uint32_t index;
	uint64_t pointer;
	uint64_t node[NODE_MAX_BYTES / 8];
} CheckParents;

/* Leaves that were read together, and not visited yet: entries [next, count). */
typedef struct CheckAhead
{
	int count;
	int next;
	uint64_t pointers[TREE_PREFETCH_MAX];
	NodeVerdict verdicts[TREE_PREFETCH_MAX];
	uint64_t nodes[TREE_PREFETCH_MAX][NODE_MAX_BYTES / 8];
} CheckAhead;

typedef struct Check
{
	Tree *tree;
	TreeCheckReport report;
	TreeCheckEntry entry;
	void *argument;
	TreeStatistics *statistics;
	uint64_t problems; /* reported */
	uint32_t found;    /* in the node at hand */
	bool last_look;    /* what is found is reported */
	uint32_t level;
	uint64_t pointer;
	bool first;                /* of its level */
	uint64_t high[LINE_WORDS]; /* of the node before this one */
	uint64_t root[NODE_MAX_BYTES / 8];
	uint64_t node[NODE_MAX_BYTES / 8];
	CheckParents parents;
	CheckAhead ahead;
} Check;

static void __attribute__((format(printf, 2, 3))) problem(Check *check, const char *format, ...)
{
	char what[MESSAGE_BYTES / 2];
	char message[MESSAGE_BYTES];
	va_list arguments;

	assert(format != NULL);
	assert(!check->tree->client->holding);
	check->found++;
	if (!check->last_look)
		return;
	va_start(arguments, format);
	(void) vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	(void) snprintf(message, sizeof(message), "tree %llx, level %u, node %u/%llx: %s",
	                (unsigned long long) check->tree->tree, check->level, pointer_memory_node(check->pointer),
	                (unsigned long long) pointer_offset(check->pointer), what);
	check->problems++;
	if (check->report != NULL)
		check->report(check->argument, message);
}

/* Reads a node of a level; the root as it was when the check began, as it may have grown since. */
static TreeStatus
check_read(Check *check, uint64_t pointer, uint32_t level, uint64_t *node)
{
	assert(level < LEVELS_MAX);
	assert(node != check->root);
	if (pointer_address(pointer) == check->tree->root && node_level(check->root) == level)
	{
		memcpy(node, check->root, NODE_MAX_BYTES);
		return TREE_OK;
	}
	/* Such a way is a problem of the node that names it. */
	if (pointer_address(pointer) == POINTER_NONE ||
	    pointer_memory_node(pointer) >= check->tree->client->options.nodes)
		return TREE_RETRY;
	return access_read_whole(check->tree, pointer, (int) level, node);
}

/* ---- fences ---- */

/* *order: how separator `a` lies to `b`. Infinite ones are not passed. */
static TreeStatus
separators_compare(Check *check, const uint64_t *a, const uint64_t *b, int *order)
{
	TreeBound bound;
	TreeStatus status;

	assert(!separator_infinite(a) && !separator_infinite(b));
	status = search_separator_bound(check->tree, a, 0, &bound,
	                                (uint8_t *) check->tree->overflow + TREE_IMAGE_MAX_BYTES);
	if (status == TREE_OK)
		status = search_compare(check->tree, &bound, b, true, order);
	return status;
}

static void
separator_shape(Check *check, const uint64_t *separator, const char *what)
{
	const NodeGeometry *g = &check->tree->geometry;
	OverflowReference reference;

	assert(separator != NULL && what != NULL);
	if (cell_state(separator[0]) == CELL_POSTING)
		problem(check, "%s in an unknown state", what);
	if (cell_state(separator[0]) != SEPARATOR_FULL && (separator[0] & CELL_OVERFLOW_BIT) != 0)
		problem(check, "%s has an image and no key", what);
	if ((separator[0] & CELL_OVERFLOW_BIT) == 0)
		return;
	if (g->format.lossless)
	{
		problem(check, "%s has an overflow key in a lossless tree", what);
		return;
	}
	cell_overflow(g, separator, &reference);
	if (reference.bytes == 0 || reference.bytes > TREE_IMAGE_MAX_BYTES ||
	    reference.memory_node >= check->tree->client->options.nodes)
		problem(check, "%s has an impossible overflow key", what);
}

/* The node's fences: they tile the level with those of the node before it. */
static TreeStatus
check_fences(Check *check)
{
	const NodeGeometry *g = &check->tree->geometry;
	const uint64_t *low = check->node + g->low_word;
	const uint64_t *high = check->node + g->high_word;
	bool last = check->node[HEADER_RIGHT] == POINTER_NONE;
	uint32_t found = check->found;
	int order = -1;
	TreeStatus status = TREE_OK;

	assert(check->level < LEVELS_MAX);
	separator_shape(check, low, "low fence");
	separator_shape(check, high, "high fence");
	if (check->first != separator_infinite(low))
		problem(check, "low fence is %sinfinite", check->first ? "not " : "");
	if (last != separator_infinite(high))
		problem(check, "high fence is %sinfinite", last ? "not " : "");
	if (!check->first && !separator_equal(g, low, check->high))
		problem(check, "low fence is not the left sibling's high fence");
	if (check->found == found && !separator_infinite(low) && !separator_infinite(high))
		status = separators_compare(check, low, high, &order);
	if (status == TREE_OK && order >= 0)
		problem(check, "low fence is not below the high fence");
	return status;
}

/* ---- inner nodes ---- */

static TreeStatus
check_separators(Check *check)
{
	const NodeGeometry *g = &check->tree->geometry;
	const uint64_t *high = check->node + g->high_word;
	uint32_t count = node_count(check->node);
	TreeStatus status = TREE_OK;

	assert(check->level > 0);
	assert(count >= 1 && count <= g->inner_cells);
	if (!separator_equal(g, check->node + inner_cell_word(g, 0) + 1, check->node + g->low_word))
		problem(check, "first separator is not the low fence");
	for (uint32_t i = 0; i < count && status == TREE_OK; i++)
	{
		const uint64_t *separator = check->node + inner_cell_word(g, i) + 1;
		const uint64_t *next = i + 1 < count ? check->node + inner_cell_word(g, i + 1) + 1 : high;
		uint32_t found = check->found;
		int order = -1;

		if (separator[-1] == POINTER_NONE)
			problem(check, "child %u is missing", i);
		if ((separator[0] & STAMP_MASK) != 0)
			problem(check, "separator %u carries a stamp", i);
		separator_shape(check, separator, "separator");
		if (i > 0 && separator_infinite(separator))
			problem(check, "separator %u is infinite", i);
		else if (check->found == found && !separator_infinite(separator) && !separator_infinite(next))
			status = separators_compare(check, separator, next, &order);
		if (status == TREE_OK && order >= 0)
			problem(check, "separator %u is not below the next one", i);
	}
	return status;
}

/* Fetches the overflow keys of all separators: their hashes are checked on the way. */
static TreeStatus
check_separator_images(Check *check)
{
	const NodeGeometry *g = &check->tree->geometry;
	const uint64_t *cells[INNER_CELLS_MAX];
	const uint8_t *images[INNER_CELLS_MAX];
	uint32_t count = node_count(check->node);

	assert(check->level > 0);
	assert(count <= INNER_CELLS_MAX);
	for (uint32_t i = 0; i < count; i++)
		cells[i] = check->node + inner_cell_word(g, i) + 1;
	return search_images(check->tree, cells, (int) count, images);
}

static TreeStatus
check_inner(Check *check)
{
	TreeStatus status = check_separators(check);

	assert(check->level > 0);
	assert(node_level(check->node) == check->level);
	if (status == TREE_OK && check->found == 0 && !check->tree->geometry.format.lossless)
		status = check_separator_images(check);
	return status;
}

/* ---- leaves ---- */

static uint64_t
tid_of(const uint64_t *cell)
{
	assert(!cell_is_posting(cell));
	return tid_order(cell_block(cell[0]), cell_offset(cell[0]));
}

/*
 * A posting cell: its TIDs are above those before it, `above` being the last, and nothing but zeros is behind them. Returns the
 * last one.
 */
static uint64_t
check_posting(Check *check, uint32_t slot, const uint64_t *head, uint64_t above)
{
	const NodeGeometry *g = &check->tree->geometry;
	const uint64_t *cell = check->node + leaf_cell_word(g, slot);
	bool ended = false;

	assert(cell_is_posting(cell));
	assert(!cell_is_posting(head));
	if ((cell[0] & (CELL_HIGH_BIT | CELL_OVERFLOW_BIT | CELL_OFFSET_MASK << CELL_OFFSET_SHIFT)) != 0 ||
	    posting_get(cell, 0) == 0)
		problem(check, "posting cell %u is malformed", slot);
	for (uint32_t i = 0; i < g->posting_tids; i++)
	{
		uint64_t word0 = posting_word0(head, posting_get(cell, i));

		if (posting_get(cell, i) == 0)
		{
			ended = true;
			continue;
		}
		if (ended || cell_offset(word0) == 0 || tid_of(&word0) <= above)
			problem(check, "TID %u of posting cell %u is not above the one before it", i, slot);
		above = tid_of(&word0);
	}
	if (ended && slot + 1 < node_count(check->node) && cell_is_posting(cell + g->cell_words))
		problem(check, "posting cell %u has room, and another one behind it", slot);
	return above;
}

/* States and stamps of all slots, and the order of the base as far as integers know it. */
static void
check_cells(Check *check)
{
	const NodeGeometry *g = &check->tree->geometry;
	const uint64_t *node = check->node;
	const uint64_t *before = NULL;
	uint64_t tid = 0; /* the last of `before` and its posting */

	assert(check->level == 0);
	assert(node_count(node) <= g->leaf_cells);
	if (leaf_posting_stray(g, node))
		problem(check, "a posting that is none");
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		const uint64_t *cell = node + leaf_cell_word(g, slot);
		uint32_t state = cell_state(cell[0]);

		if (((cell[0] ^ node[HEADER_GENERATION]) & STAMP_MASK) != 0)
			problem(check, "cell %u carries a foreign stamp", slot);
		if (state == CELL_EMPTY && slot < node_count(node))
			problem(check, "cell %u is in state %u", slot, state);
		if (state == CELL_POSTING && before != NULL)
			tid = check_posting(check, slot, before, tid);
		if (state == CELL_EMPTY || state == CELL_POSTING)
			continue;
		if (cell_offset(cell[0]) == 0)
			problem(check, "cell %u has no TID", slot);
		if (state == CELL_LIVE)
			separator_shape(check, cell, "cell");
		if (slot >= node_count(node))
			continue;
		if (before != NULL && (cell_order(g, before, cell) > 0 ||
		                       (g->format.lossless && cell_same_key(g, before, cell) && tid > tid_of(cell))))
			problem(check, "cell %u of the base is below the one before it", slot);
		before = cell;
		tid = tid_of(cell);
	}
}

/* A TID stands in a leaf once. */
static void
check_tids(Check *check, const OrderedCells *cells)
{
	assert(check->level == 0);
	assert(cells->leaf.count <= LEAF_ENTRIES_MAX);
	for (uint32_t i = 1; i < cells->leaf.count; i++)
		for (uint32_t j = 0; j < i; j++)
		{
			uint64_t tid = cells->leaf.cells[i][0];

			if (((tid ^ cells->leaf.cells[j][0]) & CELL_TID_MASK) == 0)
				problem(check, "TID (%u,%u) is there twice", cell_block(tid), cell_offset(tid));
		}
}

/*
 * Every ordered cell above the one before it, the first not below the low fence, the last below the high one.
 */
static TreeStatus
check_order(Check *check, const OrderedCells *cells)
{
	Tree *tree = check->tree;
	const NodeGeometry *g = &tree->geometry;
	TreeStatus status = TREE_OK;

	assert(cells->leaf.count <= LEAF_ENTRIES_MAX);
	assert(check->level == 0);
	for (uint32_t i = 0; i < cells->leaf.count && status == TREE_OK; i++)
	{
		TreeBound bound;
		TreeKey key;
		int low = 1, high = -1;

		cell_key(g, cells->leaf.cells[i], false, &key);
		if (cells->images[i] != NULL)
			key.image = cells->images[i];
		bound_of_key(g, &key, &bound);
		if (i > 0 &&
		    search_compare_image(tree, &bound, cells->leaf.cells[i - 1], false, cells->images[i - 1]) <= 0)
			problem(check, "entry (%u,%u) is not above the one before it", key.block, key.offset);
		if (i == 0)
			status = search_compare_fence(tree, &bound, check->node, false, &low);
		if (status == TREE_OK && i + 1 == cells->leaf.count)
			status = search_compare_fence(tree, &bound, check->node, true, &high);
		if (low < 0 || high >= 0)
			problem(check, "entry (%u,%u) is %s", key.block, key.offset,
			        low < 0 ? "below the low fence" : "not below the high fence");
	}
	return status;
}

/*
 * Whether a base that says so lies in the order of all cells, which the comparator and nothing else has made.
 */
static void
check_base(Check *check, const OrderedCells *cells)
{
	const NodeGeometry *g = &check->tree->geometry;
	const uint64_t *node = check->node;
	const uint64_t *end = node + leaf_cell_word(g, node_count(node));
	const uint64_t *before = NULL;

	assert(check->level == 0);
	assert(cells->leaf.count <= LEAF_ENTRIES_MAX);
	/* check_cells() has checked the order by integers. */
	if ((node_flags(node) & NODE_BASE_ORDERED) == 0 || g->format.lossless)
		return;
	for (uint32_t i = 0; i < cells->leaf.count; i++)
	{
		const uint64_t *cell = cells->leaf.cells[i];

		if (cell >= end)
			continue;
		if (before != NULL && cell < before)
			problem(check, "cell %u of the base is not in the order that it claims",
			        (uint32_t) (before - node - g->first_word) / g->cell_words);
		before = cell;
	}
}

static TreeStatus
check_leaf(Check *check, OrderedCells *cells)
{
	const NodeGeometry *g = &check->tree->geometry;
	TreeStatus status;

	assert(node_level(check->node) == 0);
	assert(cells != NULL);
	cells->leaf.count = 0;
	cells->extra = NULL;
	cells->extra_key = NULL;
	check_cells(check);
	if (check->found > 0)
		return TREE_OK;
	leaf_gather(g, check->node, LEAF_NO_SLOT, NULL, &cells->leaf);
	check_tids(check, cells);
	status = order_cells(check->tree, cells);
	if (status != TREE_OK)
		return status;
	check_base(check, cells);
	status = check_order(check, cells);
	return status;
}

/* Counts a leaf, and shows its entries. */
static void
check_entries(Check *check, const OrderedCells *cells)
{
	const NodeGeometry *g = &check->tree->geometry;
	TreeStatistics *statistics = check->statistics;

	assert(check->level == 0);
	assert(statistics != NULL);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		const uint64_t *cell = check->node + leaf_cell_word(g, slot);
		OverflowReference reference;

		statistics->entries +=
			cell_is_posting(cell) ? posting_count(g, cell) : cell_state(cell[0]) == CELL_LIVE;
		statistics->dead += cell_state(cell[0]) == CELL_DEAD;
		if (g->format.lossless || cell_state(cell[0]) == CELL_EMPTY || (cell[0] & CELL_OVERFLOW_BIT) == 0)
			continue;
		cell_overflow(g, cell, &reference);
		statistics->overflow_bytes +=
			(reference.bytes + OVERFLOW_ALIGN - 1) / OVERFLOW_ALIGN * OVERFLOW_ALIGN;
	}
	for (uint32_t i = 0; check->entry != NULL && i < cells->leaf.count; i++)
	{
		TreeKey key;

		cell_key(g, cells->leaf.cells[i], false, &key);
		if (cells->images[i] != NULL)
			key.image = cells->images[i];
		check->entry(check->argument, &key, leaf_is_unverified(g, check->node));
	}
}

/* ---- parents ---- */

/*
 * Reads the first of the parents that has a child that was not visited yet. Parents are read before their children.
 */
static TreeStatus
parents_advance(Check *check)
{
	CheckParents *parents = &check->parents;
	uint64_t right;
	TreeStatus status;

	assert(parents->there);
	assert(!parents->ended);
	if (parents->index < node_count(parents->node))
		return TREE_OK;
	right = parents->node[HEADER_RIGHT];
	parents->ended = right == POINTER_NONE;
	if (parents->ended)
		return TREE_OK;
	status = check_read(check, right, check->level + 1, parents->node);
	parents->pointer = right;
	parents->index = 0;
	parents->ended = status != TREE_OK;
	/* A parent that cannot be read was reported when its own level was walked, or has become unreadable since. */
	if (status == TREE_RETRY)
	{
		problem(check, "a node above, %llx, cannot be read", (unsigned long long) right);
		return TREE_OK;
	}
	return status;
}

/*
 * Compares the node with the next child that its parents name. A node that they do not name is an incomplete split,
 * which is no problem.
 */
static void
check_parent(Check *check)
{
	const NodeGeometry *g = &check->tree->geometry;
	CheckParents *parents = &check->parents;
	const uint64_t *cell;

	if (!parents->there || parents->ended)
		return;
	assert(parents->index < node_count(parents->node));
	assert(node_level(parents->node) == check->level + 1);
	cell = parents->node + inner_cell_word(g, parents->index);
	if (pointer_address(cell[0]) != pointer_address(check->pointer))
		return;
	if (!separator_equal(g, cell + 1, check->node + g->low_word))
		problem(check, "low fence is not the separator in parent %llx",
		        (unsigned long long) parents->pointer);
}

static bool
is_named(const Check *check)
{
	const CheckParents *parents = &check->parents;

	if (!parents->there || parents->ended)
		return false;
	assert(parents->index < node_count(parents->node));
	return pointer_address(parents->node[inner_cell_word(&check->tree->geometry, parents->index)]) ==
	       pointer_address(check->pointer);
}

/* ---- reading ahead ---- */

/* Reads the leaf that the walk has come to with those that its parent names behind it. None may come of it. */
static TreeStatus
ahead_read(Check *check)
{
	const NodeGeometry *g = &check->tree->geometry;
	const CheckParents *parents = &check->parents;
	CheckAhead *ahead = &check->ahead;
	uint64_t *images[TREE_PREFETCH_MAX];
	TreeStatus status;

	ahead->count = ahead->next = 0;
	for (uint32_t i = parents->index; i < node_count(parents->node) && ahead->count < TREE_PREFETCH_MAX; i++)
	{
		uint64_t pointer = parents->node[inner_cell_word(g, i)];

		if (pointer_address(pointer) == POINTER_NONE || pointer_address(pointer) == check->tree->root ||
		    pointer_memory_node(pointer) >= check->tree->client->options.nodes)
			break;
		images[ahead->count] = ahead->nodes[ahead->count];
		ahead->pointers[ahead->count++] = pointer;
	}
	if (ahead->count == 0)
		return TREE_OK;
	status = access_read_leaves(check->tree, ahead->pointers, ahead->count, images, ahead->verdicts);
	if (status != TREE_OK)
		ahead->count = 0;
	return status == TREE_RETRY ? TREE_OK : status;
}

/*
 * Reads the node that the walk has come to for the first look.  A leaf may have been read ahead: behind its parent, and as good as
 * one that is read now, for in a critical section low fences stay, and what was split in between is met on the way.
 */
static TreeStatus
check_read_first(Check *check)
{
	CheckAhead *ahead = &check->ahead;
	TreeStatus status = TREE_OK;
	int i;

	if (check->level == 0 && is_named(check) &&
	    (ahead->next == ahead->count ||
	     pointer_address(ahead->pointers[ahead->next]) != pointer_address(check->pointer)))
		status = ahead_read(check);
	if (status != TREE_OK)
		return status;
	i = ahead->next;
	if (check->level > 0 || i == ahead->count ||
	    pointer_address(ahead->pointers[i]) != pointer_address(check->pointer))
		return check_read(check, check->pointer, check->level, check->node);
	ahead->next++;
	/* What is wrong with it is said when it is read by itself. */
	if (ahead->verdicts[i] != NODE_GOOD)
		return check_read(check, check->pointer, check->level, check->node);
	memcpy(check->node, ahead->nodes[i], check->tree->geometry.leaf_bytes);
	return TREE_OK;
}

/* ---- the walk ---- */

/* Checks the node in check->node once; only the last of several checks reports problems. */
static TreeStatus
check_node(Check *check, OrderedCells *cells)
{
	TreeStatus status;

	assert(node_level(check->node) == check->level);
	check->found = 0;
	if (((node_flags(check->node) & NODE_ROOT) != 0) !=
	    (pointer_address(check->pointer) == check->tree->root))
		problem(check, "the root's flag is wrong");
	if (check->node[HEADER_RIGHT] != POINTER_NONE &&
	    pointer_memory_node(check->node[HEADER_RIGHT]) >= check->tree->client->options.nodes)
		problem(check, "right sibling at an unknown memory node");
	check_parent(check);
	status = check_fences(check);
	if (status == TREE_OK)
		status = check->level == 0 ? check_leaf(check, cells) : check_inner(check);
	if (status == TREE_RETRY)
	{
		problem(check, "an overflow key is not its cell's");
		status = TREE_OK;
	}
	return status;
}

/* Reads and judges the node check->pointer, again if need be. *readable: the walk can go on to its right. */
static TreeStatus
check_visit(Check *check, bool *readable)
{
	OrderedCells cells;
	TreeStatus status = TREE_RETRY;

	*readable = false;
	check->last_look = false;
	for (int look = 0; look < LOOKS; look++)
	{
		check->last_look = look + 1 == LOOKS;
		status = look == 0 ? check_read_first(check)
		                   : check_read(check, check->pointer, check->level, check->node);
		if (status == TREE_OK)
			status = check_node(check, &cells);
		else if (status == TREE_RETRY)
		{
			check->found = 0;
			problem(check, "not a node of this level");
			status = check->last_look ? TREE_RETRY : TREE_OK;
		}
		if (status != TREE_OK || check->found == 0)
			break;
	}
	if (status != TREE_OK)
		return status == TREE_RETRY ? TREE_OK : status;
	*readable = true;
	if (check->level == 0)
	{
		check->statistics->leaves++;
		check_entries(check, &cells);
	}
	else
		check->statistics->inner_nodes++;
	check->statistics->node_bytes += node_bytes(&check->tree->geometry, check->level);
	return TREE_OK;
}

/* Walks one level from its leftmost node; *below is the leftmost node of the next one. */
static TreeStatus
check_level(Check *check, uint64_t leftmost, uint64_t *below)
{
	const NodeGeometry *g = &check->tree->geometry;
	TreeStatus status = TREE_OK;

	assert(leftmost != POINTER_NONE);
	*below = POINTER_NONE;
	check->first = true;
	check->pointer = leftmost;
	while (check->pointer != POINTER_NONE && check->problems < PROBLEMS_MAX)
	{
		bool readable, named;

		if (client_should_stop(check->tree->client))
			return client_fail(check->tree->client, TREE_STOPPED, "stopped between two nodes");
		check->last_look = true;
		if (check->parents.there && !check->parents.ended)
			status = parents_advance(check);
		if (status != TREE_OK)
			return status;
		named = is_named(check);
		status = check_visit(check, &readable);
		if (status != TREE_OK || !readable)
			return status;
		check->parents.index += named;
		if (check->first && check->level > 0)
			*below = check->node[inner_cell_word(g, 0)];
		memset(check->high, 0, sizeof(check->high));
		node_get_fence(g, check->node, true, check->high);
		check->first = false;
		check->pointer = check->node[HEADER_RIGHT];
	}
	check->last_look = true;
	check->pointer = leftmost;
	if (check->parents.there && !check->parents.ended && check->problems < PROBLEMS_MAX)
		status = parents_advance(check);
	if (status == TREE_OK && check->parents.there && !check->parents.ended)
		problem(check, "child %u of node %llx is not on this level", check->parents.index,
		        (unsigned long long) check->parents.pointer);
	return status;
}

/* tree_check(), inside its critical section. */
static TreeStatus
check_tree(Tree *handle, TreeCheckReport report, TreeCheckEntry entry, void *argument,
           TreeStatistics *statistics, uint64_t *problems)
{
	Check check;
	TreeStatistics known;
	uint64_t leftmost = handle->root;
	bool estimated;
	TreeStatus status;

	assert(handle->client->sections > 0);
	check.tree = handle;
	check.report = report;
	check.entry = entry;
	check.argument = argument;
	check.statistics = statistics;
	check.problems = 0;
	check.parents.there = false;
	check.ahead.count = check.ahead.next = 0;
	check.pointer = handle->root;
	status = access_read_whole(handle, handle->root, -1, check.root);
	if (status == TREE_RETRY)
	{
		check.level = 0;
		check.last_look = true;
		problem(&check, "not the root of this tree");
		*problems = check.problems;
		return TREE_OK;
	}
	if (status != TREE_OK)
		return status;
	check.level = node_level(check.root);
	statistics->height = check.level + 1;
	for (;;)
	{
		uint64_t below;

		status = check_level(&check, leftmost, &below);
		*problems = check.problems;
		if (status != TREE_OK || check.level == 0 || below == POINTER_NONE || check.problems >= PROBLEMS_MAX)
			break;
		/* The parents of the next level begin where this one began. */
		status = check_read(&check, leftmost, check.level, check.parents.node);
		if (status != TREE_OK)
			break;
		check.parents.there = true;
		check.parents.ended = false;
		check.parents.index = 0;
		check.parents.pointer = leftmost;
		leftmost = below;
		check.level--;
	}
	state_read(handle->state, &known, &estimated);
	statistics->extent_bytes = known.extent_bytes;
	return status == TREE_RETRY ? TREE_OK : status;
}

TreeStatus
tree_check(Tree *handle, TreeCheckReport report, TreeCheckEntry entry, void *argument,
           TreeStatistics *statistics, uint64_t *problems)
{
	int section;
	TreeStatus status;

	assert(statistics != NULL && problems != NULL);
	assert(!handle->client->holding);
	memset(statistics, 0, sizeof(*statistics));
	*problems = 0;
	status = critical_enter(handle, &section);
	if (status != TREE_OK)
		return status;
	status = check_tree(handle, report, entry, argument, statistics, problems);
	critical_leave(handle, section);
	return status;
}
