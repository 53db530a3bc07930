/*
 * interpolate.c
 *		Finds the place of a key among the cells of a node, by the first words of the keys.
 *
 * A cached inner node is 64 cache lines, which other nodes have evicted from the processor's caches meanwhile, so
 * that each step of a binary search waits for another line. So the place is guessed by interpolation between the
 * node's fences, and a few cells around the guess, whose lines are fetched together, show whether it is right. If it
 * is not, as with keys that are distributed unevenly, a binary search follows. Comparisons here cause branches only
 * where their result hardly ever differs.
 */
#include "tree/node/node.h"

/* Cells that are compared around the guess: three or four lines of the narrowest inner cells. */
#define WINDOW_CELLS 8u
/* Bits of a distance that are multiplied by a number of cells, of which there are less than 2^8. */
#define DISTANCE_BITS 24u

_Static_assert(INNER_CELLS_MAX < 256 && LEAF_CELLS_TARGET < 256, "a distance times cells is 32 bits");

/* Cells side by side, and the key that is looked for. */
typedef struct Row
{
	const uint64_t *cells;
	uint32_t stride; /* words */
	uint64_t high;   /* the key's leading bit, as in a cell */
	uint64_t rank;   /* its first word */
} Row;

/* 1: the cell is below the key. */
static inline uint32_t
is_below(const Row *row, uint32_t i)
{
	const uint64_t *cell = row->cells + i * row->stride;
	uint64_t high = node_word(cell, 0) & CELL_HIGH_BIT;
	uint64_t rank = node_word(cell, 1);

	return (uint32_t) (high < row->high) | ((uint32_t) (high == row->high) & (uint32_t) (rank < row->rank));
}

/* The end of the cells on one side: the node's fence, or where there is none the nearest cell. */
static const uint64_t *
row_end(const Row *row, const uint64_t *fence, uint32_t nearest)
{
	return separator_infinite(fence) ? row->cells + nearest * row->stride : fence;
}

static bool
same_high(const Row *row, const uint64_t *end)
{
	return (node_word(end, 0) & CELL_HIGH_BIT) == row->high;
}

/* About how many of `count` cells, which lie evenly between two words, are below the key. */
static uint32_t
guess(uint64_t low, uint64_t high, uint64_t rank, uint32_t count)
{
	uint32_t bits, shift;

	if (rank <= low)
		return 0;
	if (rank >= high)
		return count;
	bits = 64u - (uint32_t) __builtin_clzll(high - low);
	shift = bits > DISTANCE_BITS ? bits - DISTANCE_BITS : 0;
	return (uint32_t) ((rank - low) >> shift) * count / (uint32_t) ((high - low) >> shift);
}

/* How many of the first `to` cells are below the key, at least `from`: by halves. */
static uint32_t
halve(const Row *row, uint32_t from, uint32_t to)
{
	while (from < to)
	{
		uint32_t middle = (from + to) / 2;
		uint32_t below = 0u - is_below(row, middle);

		/* Drops the half below the middle one, or the half behind it. */
		from = ((middle + 1) & below) | (from & ~below);
		to = (to & below) | (middle & ~below);
	}
	return from;
}

uint32_t
cells_below(const NodeGeometry *g, const uint64_t *node, uint32_t first, uint32_t stride, uint32_t count,
            const TreeKey *key)
{
	Row row = {node + first, stride, key->high ? CELL_HIGH_BIT : 0, key->norm[0]};
	const uint64_t *low, *high, *window;
	uint32_t from;
	uint32_t below = 0;

	assert(stride >= 2 && stride <= 1 + LINE_WORDS);
	assert(first >= g->first_word && first + count * stride <= INNER_BYTES / 8 + 1);
	if (count < WINDOW_CELLS)
		return halve(&row, 0, count);
	low = row_end(&row, node + g->low_word, 0);
	high = row_end(&row, node + g->high_word, count - 1);
	/* All cells between have the leading bit that both ends have: words alone decide. */
	if (!same_high(&row, low) || !same_high(&row, high))
		return halve(&row, 0, count);
	from = guess(node_word(low, 1), node_word(high, 1), row.rank, count);
	from = from > WINDOW_CELLS / 2 ? from - WINDOW_CELLS / 2 : 0;
	if (from > count - WINDOW_CELLS)
		from = count - WINDOW_CELLS;
	window = row.cells + from * stride + 1;
	if (from > 0 && node_word(window - stride, 0) >= row.rank)
		return halve(&row, 0, from - 1);
	for (uint32_t i = 0; i < WINDOW_CELLS; i++)
		below += node_word(window, i * stride) < row.rank;
	if (below == WINDOW_CELLS)
		return halve(&row, from + WINDOW_CELLS, count);
	return from + below;
}
