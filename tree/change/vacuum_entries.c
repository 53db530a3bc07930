/*
 * vacuum_entries.c
 *		A leaf of a vacuum's walk: whether it is the next one, which of its entries go, and whether they have changed
 *		since they were chosen.
 */
#include "tree/change/vacuum.h"

bool
vacuum_follows(const NodeGeometry *g, const VacuumLeaf *leaf, uint64_t right, const uint64_t *high)
{
	return pointer_address(leaf->pointer) == pointer_address(right) &&
	       (high == NULL || separator_equal(g, leaf->image + g->low_word, high));
}

bool
vacuum_is_at(const TreeVacuum *vacuum, const VacuumLeaf *leaf)
{
	assert(vacuum->begun);
	return vacuum_follows(&vacuum->tree->geometry, leaf, vacuum->next,
	                      vacuum->leaves > 0 ? vacuum->low : NULL);
}

/* Which TIDs of a posting cell are dead: a bit for each. */
static uint8_t
posting_choose(const NodeGeometry *g, const uint64_t *head, const uint64_t *cell, TreeIsDead is_dead,
               void *argument)
{
	uint8_t dead = 0;

	assert(cell_is_posting(cell) && !cell_is_posting(head));
	assert(g->posting_tids <= 8 || !g->format.postings);
	for (uint32_t i = 0; i < g->posting_tids; i++)
	{
		uint64_t word0 = posting_word0(head, posting_get(cell, i));

		if (posting_get(cell, i) != 0 && is_dead(argument, cell_block(word0), cell_offset(word0)))
			dead |= (uint8_t) (1u << i);
	}
	return dead;
}

void
vacuum_choose(const TreeVacuum *vacuum, VacuumLeaf *leaf, TreeIsDead is_dead, void *argument)
{
	const NodeGeometry *g = &vacuum->tree->geometry;
	const uint64_t *head = NULL;

	assert(!vacuum->tree->client->holding);
	assert(node_level(leaf->image) == 0);
	memset(leaf->victims, 0, sizeof(leaf->victims));
	leaf->victim_count = 0;
	leaf->live = leaf_live(g, leaf->image);
	leaf->cells = fold_cells(g, leaf->image);
	for (uint32_t slot = 0; is_dead != NULL && slot < g->leaf_cells; slot++)
	{
		const uint64_t *cell = leaf->image + leaf_cell_word(g, slot);

		/* Dead-marked ones, too: their TIDs are given free like those of others. */
		if (cell_is_posting(cell))
			leaf->victims[slot] = posting_choose(g, head, cell, is_dead, argument);
		else
		{
			head = cell;
			leaf->victims[slot] =
				leaf_keeps(cell[0], false) && is_dead(argument, cell_block(cell[0]), cell_offset(cell[0]));
		}
		leaf->victim_count += (uint32_t) __builtin_popcount(leaf->victims[slot]);
	}
}

bool
vacuum_unchanged(const NodeGeometry *g, const VacuumLeaf *leaf, const uint64_t *node)
{
	assert(leaf->victim_count > 0);
	if (node_level(node) != 0 || node[HEADER_GENERATION] != leaf->image[HEADER_GENERATION])
		return false;
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		uint32_t word = leaf_cell_word(g, slot);

		if (leaf->victims[slot] != 0 && memcmp(node + word, leaf->image + word, g->cell_bytes) != 0)
			return false;
	}
	return true;
}

void
vacuum_mark(const NodeGeometry *g, const VacuumLeaf *leaf, uint64_t *node)
{
	assert(leaf->victim_count > 0);
	assert(node != leaf->image);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		uint64_t *cell = node + leaf_cell_word(g, slot);

		for (uint32_t i = 0; cell_is_posting(cell) && i < g->posting_tids; i++)
			if ((leaf->victims[slot] & 1u << i) != 0)
				posting_remove(cell, i);
		if (leaf->victims[slot] != 0 && !cell_is_posting(cell))
			cell[0] &= ~(3ull << CELL_STATE_SHIFT);
	}
}
