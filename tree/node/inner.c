/*
 * inner.c
 *		The search of an inner node by integers.
 *
 * The node may lie in shared memory and change meanwhile (tree/shared/inner_cache.c): counts are bounded here, and the caller
 * checks afterwards whether the result holds.
 */
#include "tree/node/inner.h"

/* The bound against separator i, copied first: it may lie in a frame that changes. */
static Decision
decide_child(const NodeGeometry *g, const uint64_t *node, uint32_t i, const TreeBound *bound)
{
	const uint64_t *from = node + inner_cell_word(g, i) + 1;
	uint64_t separator[LINE_WORDS];

	assert(g->cell_words <= LINE_WORDS);
	separator_copy(g, separator, from);
	/* Never so in a valid node. */
	if (separator_infinite(separator))
		return DECIDE_ABOVE;
	return node_decide(g, bound, separator, true);
}

/*
 * The first of cells [low, high) whose decision is beyond ABOVE and EQUAL, and beyond UNKNOWN too if
 * `unknown`.
 */
static uint32_t
first_not_below(const NodeGeometry *g, const uint64_t *node, const TreeBound *bound, uint32_t low,
                uint32_t high, bool unknown, Decision *at)
{
	*at = DECIDE_BELOW;
	while (low < high)
	{
		uint32_t middle = (low + high) / 2;
		Decision decision = decide_child(g, node, middle, bound);

		if (decision == DECIDE_ABOVE || decision == DECIDE_EQUAL || (unknown && decision == DECIDE_UNKNOWN))
			low = middle + 1;
		else
		{
			high = middle;
			*at = decision;
		}
	}
	return low;
}

bool
node_search_inner(const NodeGeometry *g, const uint64_t *node, const TreeBound *bound, uint32_t *first,
                  uint32_t *last)
{
	uint32_t count = node_count(node);
	uint32_t low = 1;
	Decision at = DECIDE_BELOW;

	assert(first != NULL && last != NULL);
	if (count > g->inner_cells)
		count = g->inner_cells;
	if (count <= 1)
	{
		*first = *last = 0;
		return true;
	}
	if (bound_has_word(bound))
	{
		uint32_t word;

		low = 1 + cells_below(g, node, inner_cell_word(g, 1) + 1, g->inner_stride, count - 1, &bound->key);
		if (low < count)
		{
			word = inner_cell_word(g, low) + 1;
			if (((node_word(node, word) & CELL_HIGH_BIT) != 0) != bound->key.high ||
			    node_word(node, word + 1) != bound->key.norm[0])
				count = low; /* the next one is above the bound */
		}
	}
	if (low < count)
		low = first_not_below(g, node, bound, low, count, false, &at);
	*first = *last = low - 1;
	if (low < count && at == DECIDE_UNKNOWN)
		*last = first_not_below(g, node, bound, low, count, true, &at) - 1;
	return *first == *last;
}

void
node_child_choice(const NodeGeometry *g, const uint64_t *node, uint32_t index, ChildChoice *choice)
{
	uint32_t count = node_count(node);
	uint32_t cell = inner_cell_word(g, index);
	uint32_t low = index == 0 ? g->low_word : cell + 1;
	uint32_t high = index + 1 >= count ? g->high_word : cell + g->inner_stride + 1;

	assert(index < g->inner_cells);
	choice->level = node_level(node);
	choice->index = index;
	choice->child = node_word(node, cell);
	choice->right = node_word(node, HEADER_RIGHT);
	choice->generation = node_word(node, HEADER_GENERATION);
	if (high + g->cell_words > INNER_BYTES / 8)
		high = g->high_word; /* the frame is being changed: the result will not be used */
	separator_copy(g, choice->low, node + low);
	separator_copy(g, choice->high, node + high);
}

/* decide_fence() where the first word does not decide. */
static Decision
decide_whole_fence(const NodeGeometry *g, const uint64_t *from, bool high, const TreeBound *bound)
{
	uint64_t fence[LINE_WORDS];

	assert(g->cell_words <= LINE_WORDS);
	separator_copy(g, fence, from);
	if (separator_infinite(fence))
		return high ? DECIDE_BELOW : DECIDE_ABOVE;
	return node_decide(g, bound, fence, true);
}

/* The bound against one of the node's fences. */
static inline Decision
decide_fence(const NodeGeometry *g, const uint64_t *node, bool high, const TreeBound *bound)
{
	const uint64_t *from = node + (high ? g->high_word : g->low_word);
	uint64_t word0 = node_word(from, 0);

	if (cell_state(word0) == SEPARATOR_INFINITE)
		return high ? DECIDE_BELOW : DECIDE_ABOVE;
	if (bound_has_word(bound))
	{
		/* Nearly always the first word tells. */
		bool fence_high = (word0 & CELL_HIGH_BIT) != 0;
		uint64_t word1 = node_word(from, 1);

		if (fence_high != bound->key.high)
			return fence_high ? DECIDE_BELOW : DECIDE_ABOVE;
		if (word1 != bound->key.norm[0])
			return bound->key.norm[0] < word1 ? DECIDE_BELOW : DECIDE_ABOVE;
	}
	return decide_whole_fence(g, from, high, bound);
}

bool
node_find_child(const NodeGeometry *g, const uint64_t *node, const TreeBound *bound, ChildChoice *choice)
{
	Decision low = decide_fence(g, node, false, bound);
	Decision high = decide_fence(g, node, true, bound);
	uint32_t first = 0, last = 0;

	assert(choice != NULL);
	if (low == DECIDE_UNKNOWN || high == DECIDE_UNKNOWN)
		return false;
	choice->bound_below = low == DECIDE_BELOW;
	choice->bound_above = !choice->bound_below && high != DECIDE_BELOW;
	if (!choice->bound_below && !choice->bound_above && !node_search_inner(g, node, bound, &first, &last))
		return false;
	node_child_choice(g, node, first, choice);
	return true;
}
