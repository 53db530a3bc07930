/*
 * full_leaf.c
 *		Room in a full leaf: whether a rewrite makes enough, and, before an insert splits it, a hook of the caller that may
 *		name entries to delete.
 *
 * The hook is given a copy, while nothing is held, and may read the table, flush the WAL and prove marks. Its answer
 * is valid for the generation that it saw: inside one an entry keeps its slot, and a new row with the same key and
 * TID begins another one (I-T5, I-P3).
 */
#include "tree/change/change.h"

/*
 * A full leaf is rewritten in place if the rewrite keeps no more than this share of its cells: it is worth its cost
 * when several inserts have room afterwards.
 */
#define REWRITE_LIVE_NUMERATOR 15
#define REWRITE_LIVE_DENOMINATOR 16
/* The same of one where packing alone makes room: more, as the next duplicates will come. */
#define REWRITE_PACKED_NUMERATOR 3
#define REWRITE_PACKED_DENOMINATOR 4

_Static_assert(LEAF_CELLS_TARGET <= TREE_FULL_LEAF_MAX, "a leaf's slots fit");

bool
leaf_worth_rewrite(uint32_t room, uint32_t kept, uint32_t dropped)
{
	if (dropped > 0 && kept * REWRITE_LIVE_DENOMINATOR <= room * REWRITE_LIVE_NUMERATOR)
		return true;
	return kept * REWRITE_PACKED_DENOMINATOR <= room * REWRITE_PACKED_NUMERATOR;
}

void
tree_on_full(Tree *handle, TreeFullHook hook, void *argument, bool always)
{
	assert(handle != NULL);
	assert(!handle->client->holding);
	handle->full_hook = hook;
	handle->full_argument = argument;
	handle->full_always = always;
}

bool
tree_leaf_unchanged(Tree *handle, const TreeLeafSeen *leaf)
{
	uint64_t *node = handle->client->descent;
	int section;
	bool unchanged;

	assert(!handle->client->holding);
	assert(leaf->generation != 0);
	if (critical_enter(handle, &section) != TREE_OK)
		return false;
	unchanged = critical_same_epoch(handle, leaf) &&
	            access_read_node(handle, leaf->pointer, 0, node) == TREE_OK &&
	            node[HEADER_GENERATION] == leaf->generation;
	critical_leave(handle, section);
	return unchanged;
}

static int
room_marked(const NodeGeometry *g, const uint64_t *node)
{
	int marked = 0;

	if (leaf_dead_proven(g, node))
		return 0;
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
		marked += cell_state(node[leaf_cell_word(g, slot)]) == CELL_DEAD;
	return marked;
}

bool
room_is_asked(const Tree *tree, const uint64_t *node)
{
	assert(node_level(node) == 0);
	/* Entries that have lost their rows are nothing to ask the table about. */
	if (tree->full_hook == NULL || leaf_is_unverified(&tree->geometry, node) ||
	    leaf_marks_void(&tree->geometry, node))
		return false;
	return tree->full_always || room_marked(&tree->geometry, node) > 0;
}

/* Whether another live cell has this one's key. *newest: none of them lies behind it in the table. */
static bool
room_duplicate(const NodeGeometry *g, const uint64_t *node, uint32_t slot, bool *newest)
{
	const uint64_t *cell = node + leaf_cell_word(g, slot);
	uint64_t tid = tid_order(cell_block(cell[0]), cell_offset(cell[0]));
	bool duplicate = false;

	*newest = true;
	for (uint32_t i = 0; i < g->leaf_cells; i++)
	{
		const uint64_t *other = node + leaf_cell_word(g, i);

		if (i != slot && other[1] == cell[1] && cell_state(other[0]) == CELL_LIVE &&
		    cell_same_key(g, cell, other))
		{
			duplicate = true;
			*newest = *newest && tid_order(cell_block(other[0]), cell_offset(other[0])) < tid;
		}
	}
	return duplicate;
}

bool
room_ask(Tree *tree, uint64_t pointer, const uint64_t *node, TreeFullLeaf *full)
{
	const NodeGeometry *g = &tree->geometry;

	assert(!tree->client->holding);
	memset(full, 0, sizeof(*full));
	full->leaf =
		(TreeLeafSeen){.pointer = pointer, .generation = node[HEADER_GENERATION], .epoch = tree->epoch};
	full->dead_lsn = node[HEADER_DEAD_LSN];
	full->dead_epoch = leaf_dead_epoch(node);
	full->count = (int) g->leaf_cells;
	full->marked = room_marked(g, node);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		uint64_t word0 = node[leaf_cell_word(g, slot)];

		full->entries[slot].live = cell_state(word0) == CELL_LIVE;
		if (!full->entries[slot].live)
			continue;
		full->entries[slot].block = cell_block(word0);
		full->entries[slot].offset = cell_offset(word0);
		full->entries[slot].duplicate = room_duplicate(g, node, slot, &full->entries[slot].newest);
		full->duplicates += full->entries[slot].duplicate;
	}
	return tree->full_hook(tree->full_argument, full);
}

uint32_t
room_removable(const NodeGeometry *g, const uint64_t *node, const TreeFullLeaf *full)
{
	uint32_t removable = 0;

	assert(node_level(node) == 0);
	assert(node[HEADER_GENERATION] == full->leaf.generation);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
		removable += full->entries[slot].remove &&
		             leaf_keeps(node[leaf_cell_word(g, slot)], leaf_dead_proven(g, node));
	return removable;
}

void
room_clear(const NodeGeometry *g, uint64_t *node, const TreeFullLeaf *full)
{
	assert(node_level(node) == 0);
	assert(node[HEADER_GENERATION] == full->leaf.generation);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
		if (full->entries[slot].remove)
			node[leaf_cell_word(g, slot)] &= ~(3ull << CELL_STATE_SHIFT);
}
