/*
 * test_interpolate.c
 *		Places of keys among the cells of a node, against a look at each cell: interpolate.c. Keys lie evenly, at random, in
 *		two heaps, or closer and closer; with and without fences, leading bits, and as in inner nodes and in leaves.
 *
 * Every random choice comes from one seed; it is printed when SHERMAN_SEED sets another one.
 */
#include <stdlib.h>

#include "support/testing.h"
#include "internal.h"
#include "support/random.h"

#define ROUNDS 40
/* Keys that are looked for in each node, beside those that stand there and their neighbors. */
#define STRANGERS 40

static const TreeFormat formats[] = {
	{.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 32, .norm_bytes = 24, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 64, .norm_bytes = 24, .lossless = false, .fill_percent = 90},
	{.cell_bytes = 24, .norm_bytes = 16, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 40, .norm_bytes = 8, .lossless = false, .fill_percent = 90},
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

typedef enum Spread
{
	SPREAD_EVEN,
	SPREAD_RANDOM,
	SPREAD_HEAPS,
	SPREAD_CLOSER,
	SPREAD_EQUAL,
	SPREADS
} Spread;

/* A leading bit and a first word. */
typedef struct Rank
{
	bool high;
	uint64_t word;
} Rank;

static bool
rank_below(Rank a, Rank b)
{
	return a.high != b.high ? b.high : a.word < b.word;
}

static int
compare_ranks(const void *a, const void *b)
{
	return rank_below(*(const Rank *) b, *(const Rank *) a) -
	       rank_below(*(const Rank *) a, *(const Rank *) b);
}

/* The words of a node's low fence, its cells and its high fence, in order. */
static void
draw_ranks(Spread spread, Rank *ranks, uint32_t count)
{
	uint64_t first = random_below(1ull << 40);
	uint64_t step = 1 + random_below(1ull << random_below(48));
	bool highs = random_below(3) == 0;

	for (uint32_t i = 0; i < count; i++)
	{
		const uint64_t words[SPREADS] = {
			[SPREAD_EVEN] = first + i * step,
			[SPREAD_RANDOM] = random_below(4) * random_below(UINT64_MAX / 4),
			[SPREAD_HEAPS] = (i % 2 != 0 ? UINT64_MAX - 4 * count : first) + random_below(count),
			[SPREAD_CLOSER] = UINT64_MAX - (UINT64_MAX >> i % 64),
			[SPREAD_EQUAL] = first,
		};

		ranks[i] = (Rank){highs && random_below(2) == 0, words[spread]};
	}
	qsort(ranks, count, sizeof(Rank), compare_ranks);
}

static void
put_cell(const NodeGeometry *g, uint64_t *cell, Rank rank)
{
	memset(cell, 0, g->cell_bytes);
	cell[0] = cell_word0(7, 1, 1, SEPARATOR_FULL, rank.high, false);
	cell[1] = rank.word;
}

/* The answer, and that it is this one for every key around. */
static void
check_key(const NodeGeometry *g, const uint64_t *node, uint32_t first, uint32_t stride, const Rank *ranks,
          uint32_t count, Rank wanted)
{
	TreeKey key;
	uint32_t below = 0;

	memset(&key, 0, sizeof(key));
	key.high = wanted.high;
	key.norm[0] = wanted.word;
	while (below < count && rank_below(ranks[below], wanted))
		below++;
	assert_int_equal(cells_below(g, node, first, stride, count, &key), below);
}

static void
check_node(const NodeGeometry *g, Spread spread, uint32_t first, uint32_t stride, uint32_t count)
{
	uint64_t node[NODE_MAX_BYTES / 8];
	Rank drawn[INNER_BYTES / 16 + 2];
	const Rank *ranks = drawn + 1;

	memset(node, 0, sizeof(node));
	draw_ranks(spread, drawn, count + 2);
	for (uint32_t i = 0; i < count; i++)
		put_cell(g, node + first + i * stride, ranks[i]);
	if (random_below(3) != 0)
		put_cell(g, node + g->low_word, drawn[0]);
	if (random_below(3) != 0)
		put_cell(g, node + g->high_word, drawn[count + 1]);
	for (uint32_t i = 0; i < count + 2; i++)
		for (uint64_t beside = 0; beside < 3; beside++)
			check_key(g, node, first, stride, ranks, count,
			          (Rank){drawn[i].high, drawn[i].word + beside - 1});
	for (uint32_t i = 0; i < STRANGERS; i++)
		check_key(g, node, first, stride, ranks, count,
		          (Rank){random_below(4) == 0, random_below(UINT64_MAX) >> random_below(64)});
}

static void
test_inner_cells(void **state)
{
	for (uint32_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);

		for (uint32_t round = 0; round < ROUNDS * SPREADS; round++)
			check_node(&g, (Spread) (round % SPREADS), inner_cell_word(&g, 1) + 1, g.inner_stride,
			           (uint32_t) random_below(g.inner_cells));
	}
}

static void
test_leaf_cells(void **state)
{
	for (uint32_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);

		for (uint32_t round = 0; round < ROUNDS * SPREADS; round++)
			check_node(&g, (Spread) (round % SPREADS), leaf_cell_word(&g, 0), g.cell_words,
			           (uint32_t) random_below(g.leaf_cells + 1u));
	}
}

/* A frame of the cache that changes meanwhile may hold anything: the answer is nonsense then, but never beyond the cells. */
static void
test_anything(void **state)
{
	NodeGeometry g = node_geometry(&formats[0]);
	uint64_t node[NODE_MAX_BYTES / 8];

	for (uint32_t round = 0; round < 100 * ROUNDS; round++)
	{
		uint32_t count = (uint32_t) random_below(g.inner_cells);
		TreeKey key;

		for (uint32_t i = 0; i < NODE_MAX_BYTES / 8; i++)
			node[i] = random_below(UINT64_MAX) >> random_below(64);
		memset(&key, 0, sizeof(key));
		key.high = random_below(2) == 0;
		key.norm[0] = random_below(UINT64_MAX) >> random_below(64);
		assert_true(cells_below(&g, node, inner_cell_word(&g, 1) + 1, g.inner_stride, count, &key) <= count);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inner_cells),
		cmocka_unit_test(test_leaf_cells),
		cmocka_unit_test(test_anything),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
