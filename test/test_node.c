/*
 * test_node.c
 *		Nodes, cells and leaves in private memory, against brute force: node.c, leaf.c, redo.c.
 *
 * Every random choice comes from one seed; it is printed when SHERMAN_SEED sets another one.
 */
#include <xxhash.h>

#include "support/testing.h"
#include "internal.h"
#include "support/random.h"
#include "tree/node/redo.h"

#define TREE_ID 0x1234567890abcdefull
#define NODE_POINTER pointer_make(3, 0x40000)

static const TreeFormat formats[] = {
	{.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 32, .norm_bytes = 24, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 32, .norm_bytes = 8, .lossless = false, .fill_percent = 90},
	{.cell_bytes = 64, .norm_bytes = 24, .lossless = false, .fill_percent = 90},
	{.cell_bytes = 64, .norm_bytes = 24, .lossless = false, .full_separators = true, .fill_percent = 90},
	{.cell_bytes = 64, .norm_bytes = 56, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 24, .norm_bytes = 16, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 40, .norm_bytes = 8, .lossless = false, .fill_percent = 90},
	{.cell_bytes = 40, .norm_bytes = 32, .lossless = true, .fill_percent = 90},
	{.cell_bytes = 48, .norm_bytes = 16, .lossless = false, .full_separators = true, .fill_percent = 90},
	{.cell_bytes = 56, .norm_bytes = 24, .lossless = false, .fill_percent = 90},
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

/* A key out of few, so that ties are common; the image is one byte more of key. */
static TreeKey
random_key(const NodeGeometry *g, uint8_t *image)
{
	TreeKey key;

	memset(&key, 0, sizeof(key));
	key.high = random_below(8) == 0;
	for (uint32_t i = 0; i < g->norm_words; i++)
		key.norm[i] = random_below(3) << 56;
	key.block = (uint32_t) random_below(3);
	key.offset = (uint16_t) (1 + random_below(3));
	if (!g->format.lossless)
	{
		image[0] = (uint8_t) random_below(3);
		key.image = image;
		key.image_bytes = 1;
	}
	return key;
}

/* (high, norm) of two keys: what integers know of a lossy one. */
static int
norm_order(const NodeGeometry *g, const TreeKey *a, const TreeKey *b)
{
	if (a->high != b->high)
		return a->high ? 1 : -1;
	for (uint32_t i = 0; i < g->norm_words; i++)
		if (a->norm[i] != b->norm[i])
			return a->norm[i] < b->norm[i] ? -1 : 1;
	return 0;
}

static int
tid_compare(const TreeKey *a, const TreeKey *b)
{
	uint64_t mine = tid_order(a->block, a->offset), theirs = tid_order(b->block, b->offset);

	return mine < theirs ? -1 : mine > theirs;
}

static void
test_geometry(void **state)
{
	for (size_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);

		assert_true(format_valid(&formats[f]));
		assert_true(g.leaf_cells >= (g.lines_whole ? 57 : 33) && g.leaf_cells <= LEAF_CELLS_TARGET);
		assert_int_equal(FABRIC_STRIPE_BYTES % g.leaf_bytes, 0);
		assert_true(!g.lines_whole || g.leaf_bytes == g.cell_bytes * 64);
		assert_true(g.low_word >= HEADER_WORDS);
		assert_true(g.first_word >= g.high_word + g.cell_words);
		assert_true(g.first_word * 8 + g.leaf_cells * g.cell_bytes <= g.leaf_bytes);
		/* separator_copy() copies an even number of words. */
		assert_true((g.first_word + g.inner_cells * g.inner_stride + g.cell_words % 2) * 8 <= INNER_BYTES);
		assert_true(g.inner_cells <= INNER_CELLS_MAX && g.inner_cells >= 50);
		/* The last cell ends with the leaf, so that the last line has a stamp. */
		assert_true(g.lines_whole || leaf_cell_word(&g, g.leaf_cells) * 8 == g.leaf_bytes);
		/* Else a cell never crosses a line: an insert writes one line at most. */
		for (uint32_t slot = 0; g.lines_whole && slot < g.leaf_cells; slot++)
		{
			uint32_t begin = leaf_cell_word(&g, slot) * 8;

			assert_int_equal(begin / LINE_BYTES, (begin + g.cell_bytes - 1) / LINE_BYTES);
			assert_int_equal(begin % g.cell_bytes, 0);
		}
	}
}

static void
test_pointers(void **state)
{
	uint64_t pointer = pointer_make(7, 0x123456789a40ull);

	assert_int_equal(pointer & STAMP_MASK, 0);
	for (uint64_t stamp = 0; stamp <= STAMP_MASK; stamp += 0xff)
	{
		assert_int_equal(pointer_memory_node(pointer | stamp), 7);
		assert_int_equal(pointer_offset(pointer | stamp), 0x123456789a40ull);
		assert_int_equal(pointer_address(pointer | stamp), pointer);
	}
}

/* Whole keys against leaf cells: the order is (high, norm[, TID]); a lossy tie is never decided. */
static void
test_decide_cells(void **state)
{
	for (int i = 0; i < 60000; i++)
	{
		NodeGeometry g = node_geometry(&formats[i % FORMATS]);
		uint8_t image_a[8], image_b[8];
		TreeKey a = random_key(&g, image_a), b = random_key(&g, image_b);
		uint64_t cell[LINE_WORDS];
		TreeBound bound;
		int expected = norm_order(&g, &a, &b);
		Decision decision;

		cell_make(&g, cell, &b, random_below(UINT32_MAX), NULL);
		bound_of_key(&g, &a, &bound);
		decision = node_decide(&g, &bound, cell, false);
		if (expected == 0 && g.format.lossless)
			expected = tid_compare(&a, &b);
		else if (expected == 0)
			expected = DECIDE_UNKNOWN;
		assert_int_equal(decision, expected);
		/* The same as cell_order(), which sorts. */
		if (decision != DECIDE_UNKNOWN)
		{
			uint64_t other[LINE_WORDS];

			cell_make(&g, other, &a, 77, NULL);
			assert_int_equal(cell_order(&g, other, cell), expected);
		}
	}
}

/* A cut separator is just below all keys with its bytes, and a cut key is that place. */
static void
test_decide_cut(void **state)
{
	for (int i = 0; i < 60000; i++)
	{
		NodeGeometry g = node_geometry(&formats[i % FORMATS]);
		uint8_t image_a[8], image_b[8];
		TreeKey a = random_key(&g, image_a), b = random_key(&g, image_b);
		uint64_t separator[LINE_WORDS], cell[LINE_WORDS];
		TreeBound bound;
		int order = norm_order(&g, &a, &b);

		cell_make(&g, cell, &b, 9, NULL);
		b.cut = true;
		cell_make(&g, separator, &b, 0, NULL);
		assert_int_equal(cell_state(separator[0]), SEPARATOR_CUT);

		bound_of_key(&g, &a, &bound);
		assert_int_equal(node_decide(&g, &bound, separator, true), order != 0 ? order : DECIDE_ABOVE);
		bound.side = -1;
		assert_int_equal(node_decide(&g, &bound, separator, true), order != 0 ? order : DECIDE_ABOVE);

		a.cut = true;
		a.image_bytes = 0;
		bound_of_key(&g, &a, &bound);
		assert_int_equal(node_decide(&g, &bound, separator, true), order);
		assert_int_equal(node_decide(&g, &bound, cell, false), order != 0 ? order : DECIDE_BELOW);
		bound.side = -1;
		assert_int_equal(node_decide(&g, &bound, separator, true), order != 0 ? order : DECIDE_BELOW);
	}
}

/* Bounds that bind a part of the bytes: a prefix, as of the first of two columns. */
static void
test_decide_prefix(void **state)
{
	for (int i = 0; i < 60000; i++)
	{
		NodeGeometry g = node_geometry(&formats[i % FORMATS]);
		uint8_t image[8];
		TreeKey key = random_key(&g, image);
		TreeBound bound;
		uint64_t cell[LINE_WORDS];
		uint8_t bytes_a[64], bytes_b[64];
		Decision expected;
		int order = 0;

		cell_make(&g, cell, &key, 3, NULL);
		memset(&bound, 0, sizeof(bound));
		bound.norm_bits_valid = random_below(10) != 0;
		bound.norm_length = (uint8_t) random_below(g.format.norm_bytes);
		bound.norm_exact = random_below(2) != 0;
		bound.side = random_below(2) != 0 ? 1 : -1;
		bound.key.high = random_below(4) == 0;
		for (uint32_t w = 0; w < g.norm_words; w++)
			bound.key.norm[w] = random_below(3) << 56 | random_below(2);
		for (uint32_t n = 0; n < g.format.norm_bytes; n++)
		{
			bytes_a[n] = (uint8_t) (bound.key.norm[n / 8] >> (56 - n % 8 * 8));
			bytes_b[n] = (uint8_t) (key.norm[n / 8] >> (56 - n % 8 * 8));
		}
		if (bound.norm_bits_valid)
			order = bound.key.high != key.high ? (bound.key.high ? 1 : -1)
			                                   : memcmp(bytes_a, bytes_b, bound.norm_length);
		if (order != 0)
			expected = order < 0 ? DECIDE_BELOW : DECIDE_ABOVE;
		else if (!bound.norm_exact)
			expected = DECIDE_UNKNOWN;
		else
			expected = bound.side < 0 ? DECIDE_BELOW : DECIDE_ABOVE;
		assert_int_equal(node_decide(&g, &bound, cell, false), expected);
	}
}

static void
leaf_make(const NodeGeometry *g, uint64_t *node, uint64_t generation, uint32_t live, uint32_t base)
{
	node_begin(g, node, TREE_ID, NODE_POINTER, 0, generation, 0);
	for (uint32_t slot = 0; slot < live; slot++)
	{
		uint8_t image[8];
		TreeKey key = random_key(g, image);

		key.block = slot;
		cell_make(g, node + leaf_cell_word(g, slot), &key, generation, NULL);
	}
	node[HEADER_STATE] = node_state_word(generation, 0, base, node_flags(node));
	node_seal(g, node);
}

/* I-T1: one line with another stamp is a torn leaf, one word with another bit a torn inner node. */
static void
test_check(void **state)
{
	uint64_t node[NODE_MAX_BYTES / 8], other[NODE_MAX_BYTES / 8];

	for (size_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);

		memset(node, 0, sizeof(node));
		assert_int_equal(node_check(&g, node, TREE_ID, NODE_POINTER), NODE_EMPTY);
		leaf_make(&g, node, 0x10001, 20, 0);
		leaf_make(&g, other, 0x10002, 20, 0);
		assert_int_equal(node_check(&g, node, TREE_ID, NODE_POINTER), NODE_GOOD);
		assert_int_equal(node_check(&g, node, TREE_ID, NODE_POINTER | 9), NODE_GOOD);
		assert_int_equal(node_check(&g, node, TREE_ID + 1, NODE_POINTER), NODE_STALE);
		assert_int_equal(node_check(&g, node, TREE_ID, NODE_POINTER + (1ull << 16)), NODE_STALE);
		for (uint32_t line = 1; line < g.leaf_bytes / LINE_BYTES; line++)
		{
			uint64_t saved[LINE_WORDS];

			/* Of cells that cross lines some begin in each of them, but in those of fences. */
			if (!g.lines_whole && (line + 1) * LINE_WORDS <= g.first_word)
				continue;
			memcpy(saved, node + line * LINE_WORDS, LINE_BYTES);
			memcpy(node + line * LINE_WORDS, other + line * LINE_WORDS, LINE_BYTES);
			assert_int_equal(node_check(&g, node, TREE_ID, NODE_POINTER), NODE_TORN);
			memcpy(node + line * LINE_WORDS, saved, LINE_BYTES);
		}
		node_begin(&g, node, TREE_ID, NODE_POINTER, 1, 5, 0);
		node[HEADER_STATE] = node_state_word(5, 1, 2, 0);
		node[inner_cell_word(&g, 0)] = pointer_make(0, 4096);
		node[inner_cell_word(&g, 1)] = pointer_make(0, 8192);
		node[inner_cell_word(&g, 1) + 1] = (uint64_t) SEPARATOR_CUT << CELL_STATE_SHIFT;
		node_seal(&g, node);
		assert_int_equal(node_check(&g, node, TREE_ID, NODE_POINTER), NODE_GOOD);
		for (uint32_t word = 8; word < INNER_BYTES / 8; word++)
		{
			node[word] ^= 1ull << (word % 64);
			assert_int_equal(node_check(&g, node, TREE_ID, NODE_POINTER), NODE_TORN);
			node[word] ^= 1ull << (word % 64);
		}
		node[HEADER_STATE] = node_state_word(5, 1, g.inner_cells + 1, 0);
		node_seal(&g, node);
		assert_int_equal(node_check(&g, node, TREE_ID, NODE_POINTER), NODE_DAMAGED);
	}
}

/* Whether a node with this word in that place has a shape. */
static bool
shape_with(const NodeGeometry *g, const uint64_t *node, uint32_t word, uint64_t value)
{
	uint64_t changed[NODE_MAX_BYTES / 8];

	memcpy(changed, node, sizeof(changed));
	changed[word] = value;
	return node_has_shape(g, changed);
}

/* What is whole can make no sense all the same. */
static void
test_shape(void **state)
{
	uint64_t node[NODE_MAX_BYTES / 8];

	for (size_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);
		uint32_t cell;

		g.memory_nodes = 2;
		memset(node, 0, sizeof(node));
		leaf_make(&g, node, 7, 20, 3);
		cell = leaf_cell_word(&g, 2);
		assert_true(node_has_shape(&g, node));
		assert_false(
			shape_with(&g, node, HEADER_STATE, node_state_word(7, 0, g.leaf_cells + 1, node_flags(node))));
		/* It says itself how long its cells are. */
		assert_true(g.lines_whole || !shape_with(&g, node, HEADER_STATE, node_state_word(7, 0, 3, 0)));
		assert_false(shape_with(&g, node, HEADER_RIGHT, pointer_make(1, 8192)));
		assert_true(shape_with(&g, node, cell, cell_word0(7, 0, 0, CELL_EMPTY, false, false)));
		assert_false(shape_with(&g, node, cell, cell_word0(7, 5, 0, CELL_POSTING, false, false)));
		assert_false(shape_with(&g, node, leaf_cell_word(&g, g.leaf_cells - 1),
		                        cell_word0(7, 5, 0, CELL_POSTING, false, false)));
		if (g.format.lossless)
			assert_false(shape_with(&g, node, cell, cell_word0(7, 5, 1, CELL_LIVE, false, true)));
		else
		{
			/* The reference of an overflow key. */
			node[cell] = cell_word0(7, 5, 1, CELL_LIVE, false, true);
			cell += 1 + g.norm_words;
			assert_true(shape_with(&g, node, cell, 1ull << 40 | (uint64_t) TREE_IMAGE_MAX_BYTES << 48));
			assert_false(shape_with(&g, node, cell, 1ull << 40 | (TREE_IMAGE_MAX_BYTES + 1ull) << 48));
			assert_false(shape_with(&g, node, cell, 1ull << 40));
			assert_false(shape_with(&g, node, cell, 2ull << 40 | (uint64_t) TREE_IMAGE_MAX_BYTES << 48));
		}

		node_begin(&g, node, TREE_ID, NODE_POINTER, 1, 5, 0);
		node[HEADER_STATE] = node_state_word(5, LEVELS_MAX - 1, 1, 0);
		node[inner_cell_word(&g, 0)] = pointer_make(1, 4096);
		assert_true(node_has_shape(&g, node));
		assert_false(shape_with(&g, node, HEADER_STATE, node_state_word(5, LEVELS_MAX, 1, 0)));
		assert_false(shape_with(&g, node, HEADER_STATE, node_state_word(5, 1, 0, 0)));
		assert_false(shape_with(&g, node, HEADER_STATE, node_state_word(5, 1, g.inner_cells + 1, 0)));
		assert_false(shape_with(&g, node, inner_cell_word(&g, 0), pointer_make(2, 4096)));
		assert_false(shape_with(&g, node, inner_cell_word(&g, 0), POINTER_NONE));
		assert_false(shape_with(&g, node, g.high_word, (uint64_t) SEPARATOR_CUT << CELL_STATE_SHIFT));
	}
}

/* Each cell of a leaf is stamped, empty ones too; the mutable words do not count. */
static void
test_seal(void **state)
{
	uint64_t node[NODE_MAX_BYTES / 8];

	for (size_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);

		leaf_make(&g, node, 0xabc7, 10, 5);
		node[HEADER_GENERATION] = 0xabc8;
		node_seal(&g, node);
		for (uint32_t slot = 0; slot < g.leaf_cells; slot++)
			assert_int_equal(node[leaf_cell_word(&g, slot)] & STAMP_MASK, 0xabc8);
		assert_int_equal(node_count(node), 5);
		node[HEADER_LSN] = 1;
		node[HEADER_EPOCH] = 2;
		assert_int_equal(node_check(&g, node, TREE_ID, NODE_POINTER), NODE_GOOD);
	}
}

/* Images of every length that a cell takes, and the first that it does not. */
static void
test_cell_images(void **state)
{
	uint8_t image[128];

	for (size_t i = 0; i < sizeof(image); i++)
		image[i] = (uint8_t) (i * 7 + 1);
	for (size_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);
		uint64_t cell[LINE_WORDS], same[LINE_WORDS];
		OverflowReference reference = {.memory_node = 5, .offset = 0x123450, .bytes = 100, .hash = 0x55aa};
		OverflowReference back;
		TreeKey key, read;

		if (g.format.lossless)
			continue;
		key = random_key(&g, image);
		key.image = image;
		for (uint32_t n = 0; n < g.image_room; n++)
		{
			key.image_bytes = (uint16_t) n;
			assert_false(cell_needs_overflow(&g, &key));
			cell_make(&g, cell, &key, 0x77, NULL);
			cell_key(&g, cell, false, &read);
			assert_int_equal(read.image_bytes, n);
			assert_memory_equal(read.image, image, n);
			assert_int_equal(read.block, key.block);
			assert_int_equal(read.offset, key.offset);
			assert_int_equal(read.high, key.high);
			assert_memory_equal(read.norm, key.norm, sizeof(key.norm));
		}
		key.image_bytes = (uint16_t) g.image_room;
		assert_true(cell_needs_overflow(&g, &key));
		key.image_bytes = 100;
		cell_make(&g, cell, &key, 0x77, &reference);
		cell_overflow(&g, cell, &back);
		assert_int_equal(back.offset, reference.offset);
		assert_int_equal(back.memory_node, reference.memory_node);
		assert_int_equal(back.bytes, reference.bytes);
		assert_int_equal(back.hash, reference.hash);
		cell_key(&g, cell, false, &read);
		assert_int_equal(read.image_bytes, 100);
		assert_null(read.image);

		/* The same key at another place is the same key; another hash or length is not. */
		reference.offset += OVERFLOW_ALIGN;
		cell_make(&g, same, &key, 0x78, &reference);
		assert_true(cell_same_key(&g, cell, same));
		reference.hash++;
		cell_make(&g, same, &key, 0x78, &reference);
		assert_false(cell_same_key(&g, cell, same));
		reference.hash--;
		reference.bytes--;
		cell_make(&g, same, &key, 0x78, &reference);
		assert_false(cell_same_key(&g, cell, same));
	}
}

static void
test_same_key(void **state)
{
	for (size_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);
		uint8_t image[8];
		uint64_t a[LINE_WORDS], b[LINE_WORDS];
		TreeKey key = random_key(&g, image);

		cell_make(&g, a, &key, 1, NULL);
		key.block++;
		cell_make(&g, b, &key, 2, NULL);
		assert_true(cell_same_key(&g, a, b));
		for (uint32_t w = 1; w < g.cell_words; w++)
		{
			b[w] ^= 1;
			assert_false(cell_same_key(&g, a, b));
			b[w] ^= 1;
		}
		key.high = !key.high;
		cell_make(&g, b, &key, 2, NULL);
		assert_false(cell_same_key(&g, a, b));
	}
}

/* I-T7: a fence is its separator's bytes; stamps, which lines of a leaf carry, do not count. */
static void
test_fences(void **state)
{
	uint64_t node[NODE_MAX_BYTES / 8];

	for (size_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);
		uint8_t image[8];
		uint64_t separator[LINE_WORDS], read[LINE_WORDS];
		TreeKey key = random_key(&g, image);

		leaf_make(&g, node, 0xfeed, 3, 0);
		assert_true(separator_infinite(node + g.low_word) && separator_infinite(node + g.high_word));
		cell_make(&g, separator, &key, 0, NULL);
		node_set_fence(&g, node, true, separator);
		node[HEADER_RIGHT] = (pointer_make(1, 8192) | 3);
		node_seal(&g, node);
		assert_int_equal(node_check(&g, node, TREE_ID, NODE_POINTER), NODE_GOOD);
		node_get_fence(&g, node, true, read);
		assert_memory_equal(read, separator, g.cell_bytes);
		assert_true(separator_equal(&g, node + g.high_word, separator));
		assert_false(separator_infinite(node + g.high_word));
		separator[g.cell_words - 1] ^= 1;
		assert_false(separator_equal(&g, node + g.high_word, separator));
		node_set_fence(&g, node, true, NULL);
		assert_true(separator_infinite(node + g.high_word));
	}
}

/*
 * What a rewrite or split inherits: (epoch, LSN), unverified epoch, dead marks' unit, fences, right sibling.
 */
static void
test_begin_like(void **state)
{
	uint64_t old[NODE_MAX_BYTES / 8], node[NODE_MAX_BYTES / 8];

	for (size_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);
		uint8_t image[8];
		uint64_t separator[LINE_WORDS], above[LINE_WORDS];
		TreeKey key = random_key(&g, image);

		leaf_make(&g, old, 7, 9, 4);
		cell_make(&g, separator, &key, 0, NULL);
		node_set_fence(&g, old, false, separator);
		memcpy(above, separator, sizeof(above));
		above[0] |= CELL_HIGH_BIT;
		memset(above + 1, 0xff, g.norm_words * 8);
		node_set_fence(&g, old, true, above);
		old[HEADER_LSN] = 0x1111;
		old[HEADER_EPOCH] = 0x2222000033ull;
		old[HEADER_DEAD_EPOCH] |= 0x440000;
		old[HEADER_DEAD_LSN] = 0x5555;
		old[HEADER_RIGHT] = (pointer_make(1, 8192) | 3);
		node_begin_like(&g, node, old, NODE_POINTER, 8);
		node_seal(&g, node);
		assert_int_equal(node_check(&g, node, TREE_ID, NODE_POINTER), NODE_GOOD);
		assert_int_equal(leaf_live(&g, node), 0);
		assert_int_equal(node[HEADER_LSN], 0x1111);
		assert_int_equal(node[HEADER_EPOCH], 0x2222000033ull);
		assert_int_equal(node[HEADER_DEAD_EPOCH], 0x440008);
		assert_int_equal(node[HEADER_DEAD_LSN], 0x5555);
		assert_int_equal(node[HEADER_RIGHT], old[HEADER_RIGHT]);
		assert_true(separator_equal(&g, node + g.low_word, separator));
		assert_true(separator_equal(&g, node + g.high_word, above));
	}
}

static void
test_survey(void **state)
{
	uint64_t node[NODE_MAX_BYTES / 8];

	for (size_t f = 0; f < FORMATS; f++)
	{
		NodeGeometry g = node_geometry(&formats[f]);
		LeafSurvey survey;

		for (uint32_t live = 0; live <= g.leaf_cells; live++)
		{
			leaf_make(&g, node, 0xffff, live, live / 2);
			for (uint32_t slot = 0; slot < live; slot++)
			{
				leaf_survey(&g, node, slot, cell_offset(node[leaf_cell_word(&g, slot)]), &survey);
				assert_int_equal(survey.same_tid, slot);
			}
			leaf_survey(&g, node, 1000, 1, &survey);
			assert_int_equal(survey.same_tid, LEAF_NO_SLOT);
			assert_int_equal(survey.empty, live < g.leaf_cells ? live : LEAF_NO_SLOT);
			assert_false(leaf_posting_stray(&g, node));
			assert_int_equal(leaf_live(&g, node), live);
		}
		/*
		 * A hole in the tail, as a death before its WRITE leaves it, is filled; dead marks keep their place.
		 */
		leaf_make(&g, node, 0xffff, g.leaf_cells, 3);
		node[leaf_cell_word(&g, 30)] = 0xffff;
		leaf_survey(&g, node, 1000, 1, &survey);
		assert_int_equal(survey.empty, 30);
		node[leaf_cell_word(&g, 31)] ^= 3ull << CELL_STATE_SHIFT;
		leaf_survey(&g, node, 31, cell_offset(node[leaf_cell_word(&g, 31)]), &survey);
		assert_int_equal(survey.same_tid, 31);
		assert_int_equal(leaf_live(&g, node), g.leaf_cells - 2);
		node[leaf_cell_word(&g, 32)] |= 3ull << CELL_STATE_SHIFT;
		assert_true(leaf_posting_stray(&g, node));
	}
}

/* A leaf of the same cells whose base lacks every third one; these stand in the tail, in descending order. */
static void
leaf_scatter(const NodeGeometry *g, uint64_t *node, const LeafCells *cells)
{
	uint64_t scattered[NODE_MAX_BYTES / 8];
	uint32_t base = 0, slot;

	node_begin(g, scattered, TREE_ID, NODE_POINTER, 0, 9, 0);
	for (uint32_t i = 0; i < cells->count; i++)
		if (i % 3 != 0)
			memcpy(scattered + leaf_cell_word(g, base++), cells->cells[i], g->cell_bytes);
	slot = base;
	for (uint32_t i = cells->count; i > 0; i--)
		if ((i - 1) % 3 == 0)
			memcpy(scattered + leaf_cell_word(g, slot++), cells->cells[i - 1], g->cell_bytes);
	scattered[HEADER_STATE] = node_state_word(9, 0, base, random_below(2) ? NODE_BASE_ORDERED : 0);
	node_seal(g, scattered);
	memcpy(node, scattered, g->leaf_bytes);
}

/* Whether every tie of gathered cells is one of a base that claims to be ordered. */
static bool
ties_closed(const NodeGeometry *g, const uint64_t *node, const LeafCells *cells)
{
	for (uint32_t i = 1; i < cells->count; i++)
		for (uint32_t j = i - 1; j <= i && cell_order(g, cells->cells[i - 1], cells->cells[i]) == 0; j++)
		{
			uint32_t slot = (uint32_t) (cells->cells[j] - node - g->first_word) / g->cell_words;

			if ((node_flags(node) & NODE_BASE_ORDERED) == 0 || slot >= node_count(node))
				return false;
		}
	return true;
}

/* Gathering: all live cells once, in order, ties in their old order. */
static void
test_gather(void **state)
{
	uint64_t node[NODE_MAX_BYTES / 8], next[NODE_MAX_BYTES / 8];

	for (int round = 0; round < 3000; round++)
	{
		NodeGeometry g = node_geometry(&formats[(size_t) round % FORMATS]);
		uint32_t live = (uint32_t) random_below(g.leaf_cells + 1);
		uint32_t skip = live > 0 && random_below(2) ? (uint32_t) random_below(live) : LEAF_NO_SLOT;
		uint32_t expected = live - (skip != LEAF_NO_SLOT);
		uint8_t image[8];
		uint64_t extra[LINE_WORDS];
		TreeKey key = random_key(&g, image);
		LeafCells cells, again;

		leaf_make(&g, node, 5, live, 0);
		for (uint32_t slot = 0; slot < live; slot++)
			if (slot != skip && random_below(9) == 0)
			{
				node[leaf_cell_word(&g, slot)] ^= 3ull << CELL_STATE_SHIFT;
				expected--;
			}
		key.block = 5000;
		cell_make(&g, extra, &key, 0, NULL);
		leaf_gather(&g, node, skip, extra, &cells);
		assert_int_equal(cells.count, expected + 1);
		assert_true(cells.ordered || !g.format.lossless);
		for (uint32_t i = 1; i < cells.count; i++)
		{
			int order = cell_order(&g, cells.cells[i - 1], cells.cells[i]);

			assert_true(order < 0 || (order == 0 && !g.format.lossless));
			/* Slots are numbered by block here: a tie keeps their order. */
			if (order == 0)
				assert_true(cell_block(cells.cells[i - 1][0]) < cell_block(cells.cells[i][0]));
		}
		if (cells.count > g.leaf_cells)
			continue;
		node_begin_like(&g, next, node, NODE_POINTER, 6);
		leaf_fill(&g, next, &cells, 0, cells.count);
		node_seal(&g, next);
		assert_int_equal(node_check(&g, next, TREE_ID, NODE_POINTER), NODE_GOOD);
		assert_int_equal(node_count(next), cells.count);
		assert_int_equal((node_flags(next) & NODE_BASE_ORDERED) != 0, cells.ordered);
		for (uint32_t i = 0; i < cells.count; i++)
			assert_true(cell_same_key(&g, next + leaf_cell_word(&g, i), cells.cells[i]));
		/*
		 * Every third cell moved into the tail, backwards: base and tail are merged into the same order
		 * again.
		 */
		leaf_scatter(&g, node, &cells);
		leaf_gather(&g, node, LEAF_NO_SLOT, NULL, &again);
		assert_int_equal(again.count, cells.count);
		assert_int_equal(again.ordered, ties_closed(&g, node, &again));
		for (uint32_t i = 0; i < cells.count; i++)
			assert_int_equal(cell_order(&g, again.cells[i], next + leaf_cell_word(&g, i)), 0);
	}
}

/* A cut is where integers tell the sides apart; the separator does so for every cell of both sides. */
static void
test_cut(void **state)
{
	uint64_t node[NODE_MAX_BYTES / 8];
	int decided = 0, undecided = 0;

	for (int round = 0; round < 6000; round++)
	{
		NodeGeometry g = node_geometry(&formats[(size_t) round % FORMATS]);
		uint64_t separator[LINE_WORDS];
		LeafCells cells;
		uint32_t cut;

		leaf_make(&g, node, 5, g.leaf_cells, 0);
		if (random_below(4) == 0)
			for (uint32_t slot = 0; slot < g.leaf_cells; slot++)
				for (uint32_t w = 1; w <= g.norm_words; w++)
					node[leaf_cell_word(&g, slot) + w] = 0;
		leaf_gather(&g, node, LEAF_NO_SLOT, NULL, &cells);
		cut = leaf_cut(&g, &cells, 1 + (uint32_t) random_below(cells.count - 1));
		if (cut == 0)
		{
			assert_false(g.format.lossless);
			undecided++;
			continue;
		}
		decided++;
		assert_in_range(cut, cells.count / 8, cells.count - cells.count / 8);
		leaf_separator(&g, cells.cells[cut - 1], cells.cells[cut], separator);
		assert_int_equal(separator[0] & STAMP_MASK, 0);
		if (g.format.full_separators)
			assert_int_equal(cell_state(separator[0]), SEPARATOR_FULL);
		for (uint32_t i = 0; i < cells.count; i++)
		{
			TreeKey key;
			TreeBound bound;
			Decision decision;

			cell_key(&g, cells.cells[i], false, &key);
			bound_of_key(&g, &key, &bound);
			decision = node_decide(&g, &bound, separator, true);
			if (i < cut)
				assert_int_equal(decision, DECIDE_BELOW);
			else if (g.format.full_separators)
				assert_true(decision != DECIDE_BELOW);
			else
				assert_true(decision == DECIDE_ABOVE || decision == DECIDE_EQUAL);
		}
	}
	assert_true(decided > 1000 && undecided > 100);
}

static void
test_redo(void **state)
{
	uint64_t node[NODE_MAX_BYTES / 8];
	NodeGeometry g = node_geometry(&formats[0]);
	RedoHeader header = {.target = NODE_POINTER, .generation = 99, .bytes = g.leaf_bytes};
	RedoHeader broken;
	RedoTarget target;

	leaf_make(&g, node, 99, 30, 10);
	header.sum = redo_sum(&header, node);
	assert_true(redo_valid(&header, node, &target));
	assert_int_equal(target.offset, pointer_offset(NODE_POINTER));
	assert_int_equal(target.bytes, g.leaf_bytes);
	assert_int_equal(target.generation, 99);
	for (uint32_t word = 0; word < sizeof(header) / 8; word++)
	{
		broken = header;
		((uint64_t *) &broken)[word] ^= 0x10000;
		assert_false(redo_valid(&broken, node, &target));
	}
	for (uint32_t word = 0; word < g.leaf_bytes / 8; word++)
	{
		node[word] ^= 1;
		assert_false(redo_valid(&header, node, &target));
		node[word] ^= 1;
	}
	memset(&broken, 0, sizeof(broken));
	assert_false(redo_valid(&broken, node, &target));
}

/* Whether an image is believed whose sum agrees with its header. */
static bool
redo_is_valid(RedoHeader header, const uint64_t *image)
{
	RedoTarget target;

	/* Of a length that redo_sum() does not take, the sum is of what it takes. */
	header.sum =
		header.bytes <= NODE_MAX_BYTES
			? redo_sum(&header, image)
			: XXH3_64bits_withSeed(image, header.bytes, XXH3_64bits(&header, offsetof(RedoHeader, sum)));
	return redo_valid(&header, image, &target);
}

/* A dead channel's bytes may agree with their sum and yet make no sense: no length, target or generation that no node has. */
static void
test_redo_without_sense(void **state)
{
	static const uint64_t lengths[] = {0,
	                                   8,
	                                   LINE_BYTES - 8,
	                                   LINE_BYTES,
	                                   LINE_BYTES + 8,
	                                   NODE_MAX_BYTES - 8,
	                                   NODE_MAX_BYTES,
	                                   NODE_MAX_BYTES + LINE_BYTES};
	static uint64_t image[NODE_MAX_BYTES / 8 + LINE_WORDS];
	RedoHeader header = {.target = NODE_POINTER, .generation = 99};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		header.bytes = lengths[i];
		assert_int_equal(redo_is_valid(header, image),
		                 lengths[i] == LINE_BYTES || lengths[i] == NODE_MAX_BYTES);
	}
	header.bytes = NODE_MAX_BYTES;
	header.generation = 0;
	assert_false(redo_is_valid(header, image));
	header.generation = 1;
	assert_true(redo_is_valid(header, image));
	header.target = POINTER_NONE;
	assert_false(redo_is_valid(header, image));
	header.target = POINTER_NONE | 5;
	assert_false(redo_is_valid(header, image));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_geometry),
		cmocka_unit_test(test_pointers),
		cmocka_unit_test(test_decide_cells),
		cmocka_unit_test(test_decide_cut),
		cmocka_unit_test(test_decide_prefix),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_seal),
		cmocka_unit_test(test_cell_images),
		cmocka_unit_test(test_same_key),
		cmocka_unit_test(test_redo_without_sense),
		cmocka_unit_test(test_fences),
		cmocka_unit_test(test_begin_like),
		cmocka_unit_test(test_survey),
		cmocka_unit_test(test_gather),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_redo),
	};

	random_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
