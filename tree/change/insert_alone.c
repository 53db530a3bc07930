/*
 * insert_alone.c
 *		Entries of a wave whose keys may have one entry only (tree_insert_many_alone()).
 *
 * What the locked leaf shows of one entry it shows of several: none of its cells, in any state, has the normalized key, and
 * neither fence has. What it does not show are the entries of the same wave: of these only the one before can have the
 * same normalized key, as they are in order, and as a fence between two leaves of such a key would have it, too. Where
 * that is so the entry is barred: the caller, which knows the rows, decides.
 */
#include "tree/change/insert_many.h"

bool
many_shown_alone(Many *many, const ManyLeaf *leaf, uint32_t entry)
{
	const NodeGeometry *g = &many->tree->geometry;

	assert(leaf->lock.held);
	if (entry > leaf->first && !many_differs(many, entry))
		return false;
	cell_make(g, many->cell, many_key(many, entry), 0, NULL);
	return leaf_has_no_equal_key(g, leaf->image, many->cell);
}

bool
many_permitted(Many *many, uint32_t entry)
{
	ManyEntry *e = &many->entries[entry];

	assert(!e->permitted);
	if (many->permit == NULL)
		return true;
	e->permitted = many->permit->begin(many->permit->argument, many_key(many, entry));
	return e->permitted;
}

void
many_permits_end(Many *many)
{
	for (uint32_t i = many->next; i < many->end; i++)
	{
		if (many->entries[i].permitted)
			many->permit->end(many->permit->argument, many_key(many, i));
		many->entries[i].permitted = false;
	}
}
