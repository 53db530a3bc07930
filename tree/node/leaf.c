/*
 * leaf.c
 *		Leaves in private memory: the survey of a leaf for an insert, and its cells in order, for a rewrite or split.
 *		Pure integers: all of it may run under a lock.
 */
#include "tree/node/node.h"

/* A cut leaves at least this part of the cells on either side, or it is no cut worth a node. */
#define CUT_MIN_PART 8

/* A cell and the first word of its key, so that most comparisons touch nothing else. */
typedef struct Ranked
{
	uint64_t rank;
	const uint64_t *cell;
} Ranked;

/*
 * Whether one of `cells` words, `words` apart, is the value in the bits of the mask, the top one not among
 * them: it nearly never is, so looking for where it is can wait. Four operations for each and no branch: a
 * difference of zero is the only one whose decrement has the top bit.
 */
static inline __attribute__((always_inline)) bool
survey_strided(const uint64_t *word, uint32_t words, uint32_t cells, uint64_t value, uint64_t mask)
{
	uint64_t hits = 0;

	assert(words >= 2 && words <= LINE_WORDS);
	assert(cells <= LEAF_CELLS_TARGET);
	assert(mask >> 63 == 0);
#pragma GCC unroll 4
	for (uint32_t slot = 0; slot < cells; slot++)
		hits |= ((word[slot * words] ^ value) & mask) - 1;
	return hits >> 63 != 0;
}

/* The same of the word with this number of each of the leaf's cells. */
static bool
survey_cells(const NodeGeometry *g, const uint64_t *node, uint32_t number, uint64_t value, uint64_t mask)
{
	const uint64_t *word = node + g->first_word + number;

	/* Constant strides, for the compiler's sake. */
	if (g->cell_words == 2)
		return survey_strided(word, 2, g->leaf_cells, value, mask);
	switch (g->cell_words)
	{
		case 3:
			return survey_strided(word, 3, g->leaf_cells, value, mask);
		case 4:
			return survey_strided(word, 4, g->leaf_cells, value, mask);
		case 8:
			return survey_strided(word, 8, g->leaf_cells, value, mask);
		default:
			return survey_strided(word, g->cell_words, g->leaf_cells, value, mask);
	}
}

void
leaf_survey(const NodeGeometry *g, const uint64_t *node, uint32_t block, uint16_t offset, LeafSurvey *survey)
{
	const uint64_t *first = node + g->first_word;
	uint64_t tid = cell_word0(0, block, offset, 0, false, false);
	uint32_t words = g->cell_words;
	uint32_t cells = g->leaf_cells;
	bool hit;

	assert(node_level(node) == 0 && node_count(node) <= cells);
	assert(offset != 0);

	hit = survey_cells(g, node, 0, tid, CELL_TID_MASK);
	survey->same_tid = LEAF_NO_SLOT;
	for (uint32_t slot = 0; hit && slot < cells && survey->same_tid == LEAF_NO_SLOT; slot++)
		if (((first[slot * words] ^ tid) & CELL_TID_MASK) == 0 &&
		    cell_state(first[slot * words]) != CELL_EMPTY && cell_state(first[slot * words]) != CELL_POSTING)
			survey->same_tid = slot;
	if (survey->same_tid == LEAF_NO_SLOT && (node_flags(node) & NODE_POSTINGS) != 0)
		survey->same_tid = posting_find(g, node, block, offset);
	survey->empty = LEAF_NO_SLOT;
	for (uint32_t slot = node_count(node); slot < cells; slot++)
		if (cell_state(first[slot * words]) == CELL_EMPTY)
		{
			survey->empty = slot;
			break;
		}
}

bool
leaf_posting_stray(const NodeGeometry *g, const uint64_t *node)
{
	bool allowed = g->format.postings && (node_flags(node) & NODE_POSTINGS) != 0;
	uint32_t length = POSTING_CELLS_MAX; /* nothing is in front of the first cell */

	assert(node_level(node) == 0);
	assert(node_count(node) <= g->leaf_cells);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		length = cell_is_posting(node + leaf_cell_word(g, slot)) ? length + 1 : 0;
		if (length > POSTING_CELLS_MAX || (length > 0 && (!allowed || slot >= node_count(node))))
			return true;
	}
	return false;
}

uint32_t
leaf_live(const NodeGeometry *g, const uint64_t *node)
{
	bool proven = leaf_dead_proven(g, node);
	uint32_t live = 0;

	assert(node_level(node) == 0);
	assert(node_count(node) <= g->leaf_cells);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		const uint64_t *cell = node + leaf_cell_word(g, slot);

		live += cell_is_posting(cell) ? posting_count(g, cell) : leaf_keeps(cell[0], proven);
	}
	return live;
}

uint32_t
leaf_used(const NodeGeometry *g, const uint64_t *node)
{
	uint32_t used = 0;

	assert(node_level(node) == 0);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
		used += cell_state(node[leaf_cell_word(g, slot)]) != CELL_EMPTY;
	return used;
}

void
leaf_revive(const NodeGeometry *g, uint64_t *node)
{
	assert(node_level(node) == 0);
	assert(leaf_marks_void(g, node));
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		uint64_t *cell = node + leaf_cell_word(g, slot);

		if (cell_state(cell[0]) == CELL_DEAD)
			cell[0] ^= (uint64_t) (CELL_DEAD ^ CELL_LIVE) << CELL_STATE_SHIFT;
	}
}

uint32_t
leaf_proven_dead(const NodeGeometry *g, const uint64_t *node)
{
	uint32_t dead = 0;

	assert(node_level(node) == 0);
	assert(node_count(node) <= g->leaf_cells);
	if (!leaf_dead_proven(g, node))
		return 0;
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
		dead += cell_state(node[leaf_cell_word(g, slot)]) == CELL_DEAD;
	return dead;
}

static inline bool
ranked_before(const NodeGeometry *g, const Ranked *a, const Ranked *b)
{
	if (a->rank != b->rank && ((a->cell[0] ^ b->cell[0]) & CELL_HIGH_BIT) == 0)
		return a->rank < b->rank;
	return cell_order(g, a->cell, b->cell) < 0;
}

/* Puts a cell behind all that are not above it. */
static inline void
ranked_insert(const NodeGeometry *g, Ranked *sorted, uint32_t count, const uint64_t *cell)
{
	Ranked item = {cell[1], cell};
	uint32_t i = count;

	assert(count < LEAF_ENTRIES_MAX + 1);
	while (i > 0 && ranked_before(g, &item, &sorted[i - 1]))
	{
		sorted[i] = sorted[i - 1];
		i--;
	}
	sorted[i] = item;
}

/*
 * The base's entries that leaf_keeps(), as cells; those of postings are made in cells->entries. `without` (or NULL): a cell whose TID is
 * left out. Returns their number.
 */
static uint32_t
gather_base(const NodeGeometry *g, const uint64_t *node, uint32_t skip, const uint64_t *without,
            LeafCells *cells, Ranked *base)
{
	const uint64_t *head = node + leaf_cell_word(g, 0);
	uint64_t *made = cells->entries;
	bool proven = leaf_dead_proven(g, node);
	uint32_t count = 0;

	assert(!leaf_posting_stray(g, node));
	assert(skip == LEAF_NO_SLOT || skip < g->leaf_cells);
	for (uint32_t slot = 0; slot < node_count(node); slot++)
	{
		const uint64_t *cell = node + leaf_cell_word(g, slot);

		if (!cell_is_posting(cell))
			head = cell;
		/* The base is sorted already: each of its cells stays where it is put. */
		if (slot != skip && leaf_keeps(cell[0], proven))
			ranked_insert(g, base, count++, cell);
		for (uint32_t i = 0; cell_is_posting(cell) && i < g->posting_tids; i++)
		{
			if (posting_get(cell, i) == 0)
				continue;
			memcpy(made, head, g->cell_bytes);
			made[0] = posting_word0(head, posting_get(cell, i));
			if (slot == skip && without != NULL && ((made[0] ^ without[0]) & CELL_TID_MASK) == 0)
				continue;
			ranked_insert(g, base, count++, made);
			made += g->cell_words;
		}
	}
	return count;
}

void
leaf_gather(const NodeGeometry *g, const uint64_t *node, uint32_t skip, const uint64_t *extra,
            LeafCells *cells)
{
	Ranked base[LEAF_ENTRIES_MAX + 1];
	Ranked tail[LEAF_CELLS_TARGET + 1];
	uint32_t base_count = gather_base(g, node, skip, extra, cells, base);
	uint32_t tail_count = 0, b = 0, t = 0;
	bool base_ordered = (node_flags(node) & NODE_BASE_ORDERED) != 0;
	bool tail_before = false;
	bool proven = leaf_dead_proven(g, node);

	assert(node_level(node) == 0 && node_count(node) <= g->leaf_cells);

	for (uint32_t slot = node_count(node); slot < g->leaf_cells; slot++)
	{
		const uint64_t *cell = node + leaf_cell_word(g, slot);

		if (slot != skip && leaf_keeps(cell[0], proven))
			ranked_insert(g, tail, tail_count++, cell);
	}
	if (extra != NULL)
		ranked_insert(g, tail, tail_count++, extra);
	cells->count = base_count + tail_count;
	cells->ordered = true;
	cells->extra = LEAF_NO_SLOT;
	for (uint32_t i = 0; i < cells->count; i++)
	{
		bool from_tail = b == base_count || (t < tail_count && ranked_before(g, &tail[t], &base[b]));

		cells->cells[i] = from_tail ? tail[t++].cell : base[b++].cell;
		if (cells->cells[i] == extra)
			cells->extra = i;
		/* A tie is open unless both cells come from a base without open ones. */
		if (i > 0 && cells->ordered && (from_tail || tail_before || !base_ordered) &&
		    cell_order(g, cells->cells[i - 1], cells->cells[i]) == 0)
			cells->ordered = false;
		tail_before = from_tail;
	}
}

void
leaf_pack(const NodeGeometry *g, LeafCells *cells)
{
	Packer packer = {.cells = cells->packed};
	uint32_t extra = cells->extra;
	bool pays = false;

	assert(cells->ordered || !g->format.postings);
	for (uint32_t i = 2; g->format.postings && !pays && i < cells->count; i++)
		pays = cell_same_key(g, cells->cells[i - 2], cells->cells[i]);
	if (!pays)
		return;
	for (uint32_t i = 0; i < cells->count; i++)
	{
		packer_add(g, &packer, cells->cells[i]);
		if (i == extra)
			cells->extra = packer.count - 1;
	}
	assert(packer.count <= LEAF_CELLS_TARGET + 1);
	cells->count = packer.count;
	for (uint32_t i = 0; i < cells->count; i++)
		cells->cells[i] = cells->packed + i * g->cell_words;
}

void
leaf_fill_cells(const NodeGeometry *g, uint64_t *node, const uint64_t *const *cells, uint32_t count,
                bool ordered)
{
	uint32_t flags = node_flags(node) & ~(NODE_BASE_ORDERED | NODE_POSTINGS);

	assert(node_level(node) == 0 && count <= g->leaf_cells);
	for (uint32_t i = 0; i < count; i++)
	{
		memcpy(node + leaf_cell_word(g, i), cells[i], g->cell_bytes);
		if (cell_is_posting(cells[i]))
			flags |= NODE_POSTINGS;
	}
	if (ordered)
		flags |= NODE_BASE_ORDERED;
	node[HEADER_STATE] = node_state_word(node[HEADER_GENERATION], 0, count, flags);
}

void
leaf_fill(const NodeGeometry *g, uint64_t *node, const LeafCells *cells, uint32_t from, uint32_t to)
{
	assert(from <= to && to <= cells->count);
	leaf_fill_cells(g, node, cells->cells + from, to - from, cells->ordered);
}

bool
leaf_cut_possible(const NodeGeometry *g, const uint64_t *const *cells, uint32_t cut)
{
	assert(cut > 0);
	if (cell_is_posting(cells[cut]))
		return false;
	/* Behind a posting there is another key, or another of its TIDs: postings are lossless. */
	return cell_is_posting(cells[cut - 1]) || cell_order(g, cells[cut - 1], cells[cut]) != 0;
}

const uint64_t *
leaf_cut_left(const uint64_t *const *cells, uint32_t cut)
{
	assert(cut > 0);
	assert(!cell_is_posting(cells[0]));
	do
		cut--;
	while (cell_is_posting(cells[cut]));
	return cells[cut];
}

uint32_t
leaf_cut(const NodeGeometry *g, const LeafCells *cells, uint32_t wanted)
{
	uint32_t least = cells->count / CUT_MIN_PART;
	uint32_t low = least < 1 ? 1 : least;
	uint32_t high = cells->count - low;

	assert(cells->count >= 2);
	assert(wanted >= 1 && wanted < cells->count);

	if (wanted < low)
		wanted = low;
	if (wanted > high)
		wanted = high;
	for (uint32_t distance = 0; distance < cells->count; distance++)
	{
		if (wanted + distance <= high && leaf_cut_possible(g, cells->cells, wanted + distance))
			return wanted + distance;
		if (wanted >= low + distance && leaf_cut_possible(g, cells->cells, wanted - distance))
			return wanted - distance;
	}
	return 0;
}

void
leaf_separator(const NodeGeometry *g, const uint64_t *left, const uint64_t *right, uint64_t *separator)
{
	uint64_t differ = (left[0] ^ right[0]) & CELL_HIGH_BIT;

	assert(leaf_keeps(right[0], false));
	assert(cell_order(g, left, right) <= 0);

	memset(separator, 0, g->cell_bytes);
	for (uint32_t i = 1; i <= g->norm_words; i++)
	{
		separator[i] = right[i];
		differ |= left[i] ^ right[i];
	}
	if (differ != 0 && !g->format.full_separators)
		separator[0] = (right[0] & CELL_HIGH_BIT) | (uint64_t) SEPARATOR_CUT << CELL_STATE_SHIFT;
	else
	{
		memcpy(separator, right, g->cell_bytes);
		separator[0] &= ~(STAMP_MASK | 3ull << CELL_STATE_SHIFT);
		separator[0] |= (uint64_t) SEPARATOR_FULL << CELL_STATE_SHIFT;
	}
}

bool
leaf_has_no_equal_key(const NodeGeometry *g, const uint64_t *node, const uint64_t *cell)
{
	const uint64_t *low = node + g->low_word;
	const uint64_t *high = node + g->high_word;

	assert(node_level(node) == 0);
	/* Equal keys in a neighbor: a fence inside their run. */
	if ((!separator_infinite(low) && cell_order_normalized(g, low, cell) == 0) ||
	    (!separator_infinite(high) && cell_order_normalized(g, high, cell) == 0))
		return false;
	if (!survey_cells(g, node, 1, cell[1], UINT64_MAX >> 1))
		return true;
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		const uint64_t *other = node + leaf_cell_word(g, slot);

		if (other[1] == cell[1] && cell_state(other[0]) != CELL_EMPTY &&
		    ((other[0] ^ cell[0]) & CELL_TID_MASK) != 0 && cell_order_normalized(g, other, cell) == 0)
			return false;
	}
	return true;
}
