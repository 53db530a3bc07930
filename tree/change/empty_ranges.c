/*
 * empty_ranges.c
 *		Where a vacuum has left leaves without an entry.
 */
#include "tree/change/merge.h"

void
empty_ranges_add(const NodeGeometry *g, EmptyRanges *empty, const uint64_t *leaf)
{
	EmptyRange *last = empty->count > 0 ? &empty->ranges[empty->count - 1] : NULL;

	assert(node_level(leaf) == 0);
	assert(empty->count <= EMPTY_RANGES_MAX);
	if (separator_infinite(leaf + g->low_word))
		return;
	if (empty->count < EMPTY_RANGES_MAX &&
	    (last == NULL || !separator_equal(g, last->high, leaf + g->low_word)))
	{
		last = &empty->ranges[empty->count++];
		node_get_fence(g, leaf, false, last->low);
	}
	node_get_fence(g, leaf, true, last->high);
}
