/*
 * shape.c
 *		Whether an image is one of a node that the tree could have written.  Pure integers, on private memory.
 *
 * Stamps, sums and times prove that a copy is not torn, but not that it makes sense: the node memory may be damaged
 * or hostile. All that tree/ uses of a node as an index, a length, a count, a level or a link is checked here, once,
 * when the copy is accepted (node_check()). So later code need not check again, and no damage from outside can make
 * its assertions fail. Not checked here: the meaning of bytes, and whether nodes fit together; fences decide that,
 * and check.c reports it. TIDs are checked where they are returned (scan.c).
 */
#include "tree/node/node.h"

_Static_assert(CELL_POSTING == 3, "cells_have() knows a posting cell by both bits of its state");

/* Where a way leads: to a memory node that there is. */
static bool
pointer_leads(const NodeGeometry *g, uint64_t pointer)
{
	return pointer_address(pointer) != POINTER_NONE && pointer_memory_node(pointer) < g->memory_nodes;
}

/* The reference of a cell or separator that says that it has one. */
static bool
overflow_leads(const NodeGeometry *g, const uint64_t *cell)
{
	OverflowReference reference;

	if (g->format.lossless)
		return false;
	cell_overflow(g, cell, &reference);
	return reference.memory_node < g->memory_nodes && reference.bytes > 0 &&
	       reference.bytes <= TREE_IMAGE_MAX_BYTES;
}

static bool
separator_has_shape(const NodeGeometry *g, const uint64_t *separator)
{
	uint32_t state = cell_state(separator[0]);

	if ((separator[0] & CELL_OVERFLOW_BIT) != 0)
		return state == SEPARATOR_FULL && overflow_leads(g, separator);
	return state <= SEPARATOR_CUT;
}

/* Both fences, and the right link, which the last node of a level has not. */
static bool
fences_have_shape(const NodeGeometry *g, const uint64_t *node)
{
	const uint64_t *low = node + g->low_word;
	const uint64_t *high = node + g->high_word;
	uint64_t right = node[HEADER_RIGHT];
	int order;

	if (!separator_has_shape(g, low) || !separator_has_shape(g, high))
		return false;
	if (separator_infinite(high))
		return right == POINTER_NONE;
	if (!pointer_leads(g, right))
		return false;
	if (separator_infinite(low))
		return true;
	/* Where integers decide everything, keys rise along right links, so that walks end. */
	order = cell_order(g, low, high);
	return order < 0 || (order == 0 && !g->format.lossless);
}

/* Of a leaf that has overflow keys. */
static bool
overflow_keys_have_shape(const NodeGeometry *g, const uint64_t *node)
{
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		const uint64_t *cell = node + leaf_cell_word(g, slot);

		if ((cell[0] & CELL_OVERFLOW_BIT) != 0 && (cell_is_posting(cell) || !overflow_leads(g, cell)))
			return false;
	}
	return true;
}

/*
 * Summary of a leaf's cells: the top bit is set if one has an overflow key, the upper bit of a state if there is a
 * posting cell. It runs for each leaf that is read: so it has no branches, and a stride that the compiler knows.
 */
static inline __attribute__((always_inline)) uint64_t
cells_have(const uint64_t *word, uint32_t words, uint32_t cells)
{
	uint64_t any = 0, both = 0;

	assert(words >= 2 && words <= LINE_WORDS);
	assert(cells <= LEAF_CELLS_TARGET);
#pragma GCC unroll 4
	for (uint32_t slot = 0; slot < cells; slot++)
	{
		any |= word[slot * words];
		both |= word[slot * words] & word[slot * words] << 1;
	}
	return (any & CELL_OVERFLOW_BIT) | (both & 2ull << CELL_STATE_SHIFT);
}

static bool
leaf_has_shape(const NodeGeometry *g, const uint64_t *node)
{
	const uint64_t *word = node + g->first_word;
	uint64_t have;

	if (node_count(node) > g->leaf_cells || !fences_have_shape(g, node))
		return false;
	if (!g->lines_whole && (node_flags(node) & NODE_CELL_WORDS_MASK) != g->cell_words
	                                                                        << NODE_CELL_WORDS_SHIFT)
		return false;
	if (g->cell_words == 2)
		have = cells_have(word, 2, g->leaf_cells);
	else if (g->cell_words == 3)
		have = cells_have(word, 3, g->leaf_cells);
	else if (g->cell_words == 4)
		have = cells_have(word, 4, g->leaf_cells);
	else
		have = cells_have(word, g->cell_words, g->leaf_cells);
	return ((have & CELL_OVERFLOW_BIT) == 0 || overflow_keys_have_shape(g, node)) &&
	       ((have & 2ull << CELL_STATE_SHIFT) == 0 || !leaf_posting_stray(g, node));
}

static bool
inner_has_shape(const NodeGeometry *g, const uint64_t *node)
{
	uint32_t count = node_count(node);

	if (node_level(node) >= LEVELS_MAX || count < 1 || count > g->inner_cells || !fences_have_shape(g, node))
		return false;
	for (uint32_t i = 0; i < count; i++)
	{
		const uint64_t *cell = node + inner_cell_word(g, i);

		if (!pointer_leads(g, cell[0]) || !separator_has_shape(g, cell + 1) ||
		    (i > 0 && separator_infinite(cell + 1)))
			return false;
	}
	return true;
}

bool
node_has_shape(const NodeGeometry *g, const uint64_t *node)
{
	return node_level(node) == 0 ? leaf_has_shape(g, node) : inner_has_shape(g, node);
}
