/*
 * posting.c
 *		Postings: the TIDs of one key behind one cell. Pure integers, on private memory: all of it may run
 *		under a lock.
 */
#include "tree/node/node.h"

_Static_assert(POSTING_BLOCK_BITS + POSTING_OFFSET_BITS == 32, "a posting's TID is half a word");
_Static_assert(TREE_POSTING_CELL_MAX_BYTES / 8 * 2 - 1 == POSTING_TIDS_MAX,
               "TIDs of the largest posting cell");

static uint32_t
posting_tid(uint64_t word0)
{
	return cell_block(word0) << POSTING_OFFSET_BITS | cell_offset(word0);
}

/* Whether a posting behind `head` can have the TID: its block's upper bits are not stored. */
static bool
posting_reaches(const uint64_t *head, uint64_t word0)
{
	return (cell_block(head[0]) ^ cell_block(word0)) >> POSTING_BLOCK_BITS == 0;
}

static void
posting_set(uint64_t *cell, uint32_t i, uint32_t tid)
{
	assert(cell_is_posting(cell));
	assert(i < POSTING_TIDS_MAX);
	if (i == 0)
		cell[0] = (cell[0] & ~(0xffffffffull << CELL_BLOCK_SHIFT)) | (uint64_t) tid << CELL_BLOCK_SHIFT;
	else if (i % 2 != 0)
		cell[(i + 1) / 2] = (cell[(i + 1) / 2] & ~0xffffffffull) | tid;
	else
		cell[(i + 1) / 2] = (cell[(i + 1) / 2] & 0xffffffffull) | (uint64_t) tid << 32;
}

uint32_t
posting_count(const NodeGeometry *g, const uint64_t *cell)
{
	uint32_t count = 0;

	assert(cell_is_posting(cell));
	for (uint32_t i = 0; g->format.postings && i < g->posting_tids; i++)
		count += posting_get(cell, i) != 0;
	return count;
}

void
posting_remove(uint64_t *cell, uint32_t i)
{
	assert(posting_get(cell, i) != 0);
	posting_set(cell, i, 0);
}

uint32_t
posting_head(const NodeGeometry *g, const uint64_t *node, uint32_t slot)
{
	assert(slot < g->leaf_cells);
	while (slot > 0 && cell_is_posting(node + leaf_cell_word(g, slot)))
		slot--;
	return slot;
}

uint32_t
posting_find(const NodeGeometry *g, const uint64_t *node, uint32_t block, uint16_t offset)
{
	uint64_t word0 = cell_word0(0, block, offset, CELL_LIVE, false, false);
	uint32_t tid = posting_tid(word0);
	const uint64_t *head = NULL;

	assert(offset != 0);
	assert(node_count(node) <= g->leaf_cells);
	for (uint32_t slot = 0; slot < node_count(node); slot++)
	{
		const uint64_t *cell = node + leaf_cell_word(g, slot);
		bool found = false;

		if (!cell_is_posting(cell))
			head = cell;
		else if (head != NULL && posting_reaches(head, word0))
			for (uint32_t i = 0; i < g->posting_tids; i++)
				found |= posting_get(cell, i) == tid;
		if (found)
			return slot;
	}
	return LEAF_NO_SLOT;
}

/* Whether the entry belongs to the posting list of the packer's last cell. */
static bool
packer_joins(const NodeGeometry *g, const Packer *packer, const uint64_t *cell)
{
	const uint64_t *head = packer->cells + packer->head * g->cell_words;

	assert(packer->tids == 0 || packer->head < packer->count);
	return packer->tids > 0 && packer->tids <= POSTING_CELLS_MAX * g->posting_tids &&
	       cell_same_key(g, head, cell) && posting_reaches(head, cell[0]);
}

/* The index within its posting cell of entry number `tid` of a cell. */
static uint32_t
packer_place(const NodeGeometry *g, uint32_t tid)
{
	assert(tid > 0);
	return (tid - 1) % g->posting_tids;
}

bool
packer_takes_cell(const NodeGeometry *g, const Packer *packer, const uint64_t *cell)
{
	return !packer_joins(g, packer, cell) || packer_place(g, packer->tids) == 0;
}

/* Turns the second of two equal keys into a posting of the first: two cells pay from three entries on. */
static void
packer_begin_posting(const NodeGeometry *g, Packer *packer)
{
	uint64_t *second = packer->cells + (packer->head + 1) * g->cell_words;
	uint32_t tid = posting_tid(second[0]);

	assert(packer->tids == 2 && packer->count == packer->head + 2);
	memset(second, 0, g->cell_bytes);
	second[0] = cell_word0(0, 0, 0, CELL_POSTING, false, false);
	posting_set(second, 0, tid);
}

void
packer_add(const NodeGeometry *g, Packer *packer, const uint64_t *cell)
{
	bool takes = packer_takes_cell(g, packer, cell);
	bool joins = packer_joins(g, packer, cell);
	uint64_t *place = packer->cells + (takes ? packer->count : packer->count - 1) * g->cell_words;

	assert(g->format.postings && leaf_keeps(cell[0], false));
	assert(!joins || cell_offset(cell[0]) != 0);

	packer->count += takes;
	if (!joins)
	{
		packer->head = packer->count - 1;
		packer->tids = 0;
	}
	if (packer->tids == 2)
		packer_begin_posting(g, packer);
	if (packer->tids < 2)
		memcpy(place, cell, g->cell_bytes);
	else
	{
		if (takes)
		{
			memset(place, 0, g->cell_bytes);
			place[0] = cell_word0(0, 0, 0, CELL_POSTING, false, false);
		}
		posting_set(place, packer_place(g, packer->tids), posting_tid(cell[0]));
	}
	packer->tids++;
}
