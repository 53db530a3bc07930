/*
 * sparse_ranges.c
 *		Where a vacuum has left leaves without an entry, or with few.
 */
#include "tree/change/merge.h"

void
sparse_ranges_add(const NodeGeometry *g, SparseRanges *sparse, const uint64_t *leaf)
{
	SparseRange *last = sparse->count > 0 ? &sparse->ranges[sparse->count - 1] : NULL;

	assert(node_level(leaf) == 0);
	assert(sparse->count <= SPARSE_RANGES_MAX);
	if (separator_infinite(leaf + g->low_word))
		return;
	if (sparse->count < SPARSE_RANGES_MAX &&
	    (last == NULL || !separator_equal(g, last->high, leaf + g->low_word)))
	{
		last = &sparse->ranges[sparse->count++];
		node_get_fence(g, leaf, false, last->low);
	}
	node_get_fence(g, leaf, true, last->high);
}
