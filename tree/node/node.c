/*
 * node.c
 *		Nodes and cells in private memory: comparisons by integers, sums and stamps, fences, cells. Pure: no fabric,
 *		no lock, no comparator.
 */
#include "tree/node/node.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(HEADER_SUM == 6 && HEADER_SELF == 7, "node_sum() skips the one word of the sum");
_Static_assert(TREE_NORM_WORDS * 8 + 8 == LINE_BYTES, "the largest cell is a line");

/* Bits of an image's reference out of line: offset/16:40 | memory node:8 | length:16. */
#define OVERFLOW_OFFSET_BITS 40
#define OVERFLOW_NODE_SHIFT 40
#define OVERFLOW_LENGTH_SHIFT 48

bool
format_valid(const TreeFormat *format)
{
	if (format->cell_bytes < 16 || format->cell_bytes > LINE_BYTES || format->cell_bytes % 8 != 0)
		return false;
	if (format->norm_bytes == 0 || format->norm_bytes % 8 != 0 || format->norm_bytes + 8 > format->cell_bytes)
		return false;
	if (format->postings && (!format->lossless || format->cell_bytes > TREE_POSTING_CELL_MAX_BYTES))
		return false;
	/* Without the whole key in the normalized bytes there must be room for a reference out of line. */
	return format->lossless || format->norm_bytes + 8 + 16 <= format->cell_bytes;
}

/*
 * The order where all bytes that bind agree. A cut separator is the place just below all keys with its bytes,
 * so a bound that binds all of them is not below it, whatever its columns; a cut key is that same place.
 */
static Decision
decide_tie(const NodeGeometry *g, const TreeBound *bound, uint64_t word0, bool separator)
{
	bool whole = bound->norm_bits_valid && bound->norm_length == g->format.norm_bytes;
	bool cut = separator && cell_state(word0) == SEPARATOR_CUT;
	uint64_t mine, theirs;

	assert(bound->norm_length <= g->format.norm_bytes);
	assert(bound->side >= -1 && bound->side <= 1);

	if (bound->key.cut)
	{
		assert(whole);
		if (!cut || bound->side < 0)
			return DECIDE_BELOW;
		return bound->side == 0 ? DECIDE_EQUAL : DECIDE_ABOVE;
	}
	if (cut && whole)
		return DECIDE_ABOVE;
	if (!bound->norm_exact)
		return DECIDE_UNKNOWN;
	if (bound->side != 0)
		return bound->side < 0 ? DECIDE_BELOW : DECIDE_ABOVE;
	if (!whole)
		return DECIDE_UNKNOWN;
	mine = tid_order(bound->key.block, bound->key.offset);
	theirs = tid_order(cell_block(word0), cell_offset(word0));
	return mine == theirs ? DECIDE_EQUAL : mine < theirs ? DECIDE_BELOW : DECIDE_ABOVE;
}

Decision
node_decide(const NodeGeometry *g, const TreeBound *bound, const uint64_t *cell, bool separator)
{
	const TreeKey *key = &bound->key;
	uint64_t word0 = node_word(cell, 0);
	bool high = (word0 & CELL_HIGH_BIT) != 0;
	uint32_t words = bound->norm_length / 8u;
	uint32_t rest = bound->norm_length % 8u;

	assert(!separator || cell_state(word0) != SEPARATOR_INFINITE);

	if (!bound->norm_bits_valid)
		return decide_tie(g, bound, word0, separator);
	if (key->high != high)
		return key->high ? DECIDE_ABOVE : DECIDE_BELOW;
	for (uint32_t i = 0; i < words; i++)
	{
		uint64_t word = node_word(cell, 1 + i);

		if (key->norm[i] != word)
			return key->norm[i] < word ? DECIDE_BELOW : DECIDE_ABOVE;
	}
	if (rest != 0)
	{
		uint64_t mask = ~0ull << (64 - 8 * rest);
		uint64_t mine = key->norm[words] & mask;
		uint64_t theirs = node_word(cell, 1 + words) & mask;

		if (mine != theirs)
			return mine < theirs ? DECIDE_BELOW : DECIDE_ABOVE;
	}
	return decide_tie(g, bound, word0, separator);
}

void
bound_of_key(const NodeGeometry *g, const TreeKey *key, TreeBound *bound)
{
	assert(key->image_bytes == 0 || !g->format.lossless);
	assert(key->offset <= CELL_OFFSET_MASK);

	bound->key = *key;
	bound->norm_bits_valid = 1;
	bound->norm_length = g->format.norm_bytes;
	bound->norm_exact = g->format.lossless;
	bound->side = 0;
	bound->argument = NULL;
}

bool
bounds_are_of_one_key(const NodeGeometry *g, const TreeBound *a, const TreeBound *b)
{
	uint8_t bytes = g->format.norm_bytes;

	return a->norm_bits_valid && b->norm_bits_valid && a->norm_length == bytes && b->norm_length == bytes &&
	       a->key.high == b->key.high && memcmp(a->key.norm, b->key.norm, bytes) == 0;
}

uint64_t
node_sum(const uint64_t *node, uint32_t bytes)
{
	uint64_t seed;

	assert(bytes > (HEADER_SUM + 1) * 8 && bytes <= NODE_MAX_BYTES);
	assert(bytes % 8 == 0);

	seed = XXH3_64bits(node, HEADER_SUM * 8);
	return XXH3_64bits_withSeed(node + HEADER_SUM + 1, bytes - (HEADER_SUM + 1) * 8, seed);
}

void
leaf_sum_set(const NodeGeometry *g, uint64_t *node)
{
	assert(node_level(node) == 0);
	node[HEADER_STATE] |= (uint64_t) NODE_SUM_VALID << 40;
	node[HEADER_SUM] = node_sum(node, g->leaf_bytes);
}

void
node_begin(const NodeGeometry *g, uint64_t *node, uint64_t tree, uint64_t pointer, uint32_t level,
           uint64_t generation, uint32_t flags)
{
	assert(pointer_address(pointer) != POINTER_NONE);
	assert(generation != 0);

	memset(node, 0, node_bytes(g, level));
	node[HEADER_STATE] = node_state_word(generation, level, 0, flags);
	node[HEADER_TREE] = tree;
	node[HEADER_GENERATION] = generation;
	node[HEADER_SELF] = pointer_address(pointer);
}

void
node_begin_like(const NodeGeometry *g, uint64_t *node, const uint64_t *old, uint64_t pointer,
                uint64_t generation)
{
	assert(node != old);
	assert(pointer_address(pointer) != old[HEADER_SELF] || generation > old[HEADER_GENERATION]);

	node_begin(g, node, old[HEADER_TREE], pointer, node_level(old), generation, node_flags(old));
	node[HEADER_RIGHT] = old[HEADER_RIGHT];
	node[HEADER_LSN] = old[HEADER_LSN];
	node[HEADER_EPOCH] = old[HEADER_EPOCH];
	node[HEADER_DEAD_EPOCH] = old[HEADER_DEAD_EPOCH] & ~STAMP_MASK;
	node[HEADER_DEAD_LSN] = old[HEADER_DEAD_LSN];
	/*
	 * Whatever this client leaves out was proven before: readers of other servers see by the leaf how far they have to be.  A void
	 * unit stays, until the leaf is healed: it is proven to no reader, and marks would seem to be proven by another.
	 */
	if (node_level(old) == 0 && g->proven != NULL && !leaf_marks_void(g, old))
		leaf_raise_dead(node, g->proven->epoch, g->proven->lsn);
	node_set_fence(g, node, false, old + g->low_word);
	node_set_fence(g, node, true, old + g->high_word);
}

void
node_seal(const NodeGeometry *g, uint64_t *node)
{
	uint64_t stamp = node[HEADER_GENERATION] & STAMP_MASK;

	assert(node[HEADER_GENERATION] != 0);
	assert(node[HEADER_SELF] != POINTER_NONE);

	node[HEADER_STATE] = (node[HEADER_STATE] & ~STAMP_MASK) | stamp;
	if (node_level(node) == 0)
	{
		if (leaf_needs_sum(g, node[HEADER_SELF]))
			node[HEADER_STATE] |= (uint64_t) NODE_SUM_VALID << 40;
		if (!g->lines_whole)
		{
			node[HEADER_STATE] |= (uint64_t) g->cell_words << (40 + NODE_CELL_WORDS_SHIFT);
			node[HEADER_DEAD_EPOCH] = (node[HEADER_DEAD_EPOCH] & ~STAMP_MASK) | stamp;
		}
		for (uint32_t word = 0; g->lines_whole && word < g->leaf_bytes / 8; word += LINE_WORDS)
			node[word] = (node[word] & ~STAMP_MASK) | stamp;
		for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
		{
			uint64_t *cell = node + leaf_cell_word(g, slot);

			cell[0] = (cell[0] & ~STAMP_MASK) | stamp;
		}
		if ((node_flags(node) & NODE_SUM_VALID) != 0)
			node[HEADER_SUM] = node_sum(node, g->leaf_bytes);
	}
	else
	{
		node[HEADER_STATE] |= (uint64_t) NODE_SUM_VALID << 40;
		node[HEADER_SUM] = node_sum(node, INNER_BYTES);
	}
}

void
node_set_fence(const NodeGeometry *g, uint64_t *node, bool high, const uint64_t *separator)
{
	uint64_t *fence = node + (high ? g->high_word : g->low_word);
	uint64_t stamp = fence[0] & STAMP_MASK;

	assert(g->cell_words >= 2 && g->cell_words <= LINE_WORDS);
	assert(separator != fence);

	if (separator == NULL)
		memset(fence, 0, g->cell_bytes);
	else
		memcpy(fence, separator, g->cell_bytes);
	fence[0] = (fence[0] & ~STAMP_MASK) | stamp;
}

void
node_get_fence(const NodeGeometry *g, const uint64_t *node, bool high, uint64_t *separator)
{
	uint32_t word = high ? g->high_word : g->low_word;

	assert(g->cell_words >= 2 && g->cell_words <= LINE_WORDS);
	assert(separator != NULL);

	for (uint32_t i = 0; i < g->cell_words; i++)
		separator[i] = node_word(node, word + i);
	separator[0] &= ~STAMP_MASK;
}

bool
separator_equal(const NodeGeometry *g, const uint64_t *a, const uint64_t *b)
{
	uint64_t differ = (node_word(a, 0) ^ node_word(b, 0)) & ~STAMP_MASK;

	assert(a != NULL && b != NULL);
	assert(g->cell_words >= 2);

	for (uint32_t i = 1; i < g->cell_words; i++)
		differ |= node_word(a, i) ^ node_word(b, i);
	return differ == 0;
}

uint64_t
image_hash(const void *image, uint32_t bytes)
{
	assert(image != NULL);
	assert(bytes > 0 && bytes <= TREE_IMAGE_MAX_BYTES);
	return XXH3_64bits(image, bytes);
}

bool
cell_needs_overflow(const NodeGeometry *g, const TreeKey *key)
{
	assert(g->image_room == 0 || g->image_room >= 16);
	assert(key->image_bytes <= TREE_IMAGE_MAX_BYTES);

	return !g->format.lossless && !key->cut && key->image_bytes + 1u > g->image_room;
}

void
cell_make(const NodeGeometry *g, uint64_t *cell, const TreeKey *key, uint64_t generation,
          const OverflowReference *overflow)
{
	uint64_t *image = cell + 1 + g->norm_words;

	assert((overflow != NULL) == cell_needs_overflow(g, key));
	assert(g->format.lossless || key->cut || key->image_bytes == 0 || overflow || key->image != NULL);

	for (uint32_t i = 0; i < g->norm_words; i++)
		cell[1 + i] = key->norm[i];
	for (uint32_t i = 1 + g->norm_words; i < g->cell_words; i++)
		cell[i] = 0;
	if (key->cut)
	{
		cell[0] = cell_word0(generation, 0, 0, SEPARATOR_CUT, key->high, false);
		return;
	}
	cell[0] = cell_word0(generation, key->block, key->offset, CELL_LIVE, key->high, overflow != NULL);
	if (overflow != NULL)
	{
		assert(overflow->offset % OVERFLOW_ALIGN == 0 && overflow->bytes <= UINT16_MAX);
		image[0] = overflow->offset / OVERFLOW_ALIGN |
		           (uint64_t) overflow->memory_node << OVERFLOW_NODE_SHIFT |
		           (uint64_t) overflow->bytes << OVERFLOW_LENGTH_SHIFT;
		image[1] = overflow->hash;
	}
	else if (!g->format.lossless)
	{
		((uint8_t *) image)[0] = (uint8_t) key->image_bytes;
		if (key->image_bytes != 0)
			memcpy((uint8_t *) image + 1, key->image, key->image_bytes);
	}
}

uint16_t
cell_image(const NodeGeometry *g, const uint64_t *cell, const uint8_t **image)
{
	const uint8_t *place = (const uint8_t *) (cell + 1 + g->norm_words);
	OverflowReference reference;

	*image = NULL;
	if (g->format.lossless)
		return 0;
	if ((cell[0] & CELL_OVERFLOW_BIT) != 0)
	{
		cell_overflow(g, cell, &reference);
		return (uint16_t) reference.bytes;
	}
	*image = place + 1;
	/* The length comes from node memory: never beyond the cell. */
	return place[0] < g->image_room ? place[0] : (uint16_t) (g->image_room - 1);
}

void
cell_key(const NodeGeometry *g, const uint64_t *cell, bool separator, TreeKey *key)
{
	assert(!separator || cell_state(cell[0]) != SEPARATOR_INFINITE);
	assert(g->norm_words >= 1 && g->norm_words <= TREE_NORM_WORDS);

	key->high = (cell[0] & CELL_HIGH_BIT) != 0;
	key->cut = separator && cell_state(cell[0]) == SEPARATOR_CUT;
	key->block = cell_block(cell[0]);
	key->offset = cell_offset(cell[0]);
	key->image_bytes = 0;
	key->image = NULL;
	memset(key->norm, 0, sizeof(key->norm));
	for (uint32_t i = 0; i < g->norm_words; i++)
		key->norm[i] = cell[1 + i];
	if (!key->cut)
		key->image_bytes = cell_image(g, cell, &key->image);
}

void
cell_overflow(const NodeGeometry *g, const uint64_t *cell, OverflowReference *reference)
{
	const uint64_t *image = cell + 1 + g->norm_words;

	assert((cell[0] & CELL_OVERFLOW_BIT) != 0);
	assert(g->image_room >= 16);

	reference->offset = (image[0] & ((1ull << OVERFLOW_OFFSET_BITS) - 1)) * OVERFLOW_ALIGN;
	reference->memory_node = (uint32_t) (image[0] >> OVERFLOW_NODE_SHIFT) & 0xff;
	reference->bytes = (uint32_t) (image[0] >> OVERFLOW_LENGTH_SHIFT);
	reference->hash = image[1];
}

bool
cell_same_key(const NodeGeometry *g, const uint64_t *a, const uint64_t *b)
{
	uint64_t differ = (a[0] ^ b[0]) & (CELL_HIGH_BIT | CELL_OVERFLOW_BIT);
	uint32_t place = g->cell_words;

	assert(a != NULL && b != NULL);
	assert(g->cell_words >= 2);

	/* Of an overflow key: its length and hash, not where it lies. */
	if ((a[0] & b[0] & CELL_OVERFLOW_BIT) != 0)
	{
		place = 1 + g->norm_words;
		differ |= (a[place] ^ b[place]) >> OVERFLOW_LENGTH_SHIFT;
	}
	for (uint32_t i = 1; i < g->cell_words; i++)
		differ |= i == place ? 0 : a[i] ^ b[i];
	return differ == 0;
}

int
cell_order_normalized(const NodeGeometry *g, const uint64_t *a, const uint64_t *b)
{
	assert(a != NULL && b != NULL);
	assert(g->norm_words >= 1);

	if (((a[0] ^ b[0]) & CELL_HIGH_BIT) != 0)
		return (a[0] & CELL_HIGH_BIT) != 0 ? 1 : -1;
	for (uint32_t i = 1; i <= g->norm_words; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

int
cell_order(const NodeGeometry *g, const uint64_t *a, const uint64_t *b)
{
	int order = cell_order_normalized(g, a, b);
	uint64_t mine, theirs;

	if (order != 0 || !g->format.lossless)
		return order;
	mine = tid_order(cell_block(a[0]), cell_offset(a[0]));
	theirs = tid_order(cell_block(b[0]), cell_offset(b[0]));
	return mine < theirs ? -1 : mine > theirs;
}
