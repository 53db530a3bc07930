/*
 * keys_ahead.c
 *		The leaves of the next keys of `= ANY`, fetched together.
 *
 * Each combination of array elements is a lookup of its own, and across a network each would wait for a round trip.  So the keys
 * that come are announced to the tree: it finds their leaves in its cache of inner nodes, and reads them by one wave.  The scan then goes from
 * leaf to leaf (scan_span.c).  It begins with the first key alone, as the rest may never be asked for, and doubles;
 * a bitmap scan, which asks for all, begins with as many as there can be.
 *
 * Only under an MVCC snapshot: what is added behind the fetch it does not see.  Not in a parallel scan, whose participants take
 * turns at combinations.
 */
#include "am/base/sherman.h"

#include "access/relscan.h"
#include "utils/snapmgr.h"

#include "am/scan/keys_ahead.h"
#include "am/scan/scan_span.h"

/* Keys of one leaf cost little, but shall not be all looked at for the sake of one that may never come. */
#define COMBINATIONS_PER_LEAF 16

void
keys_ahead_start(KeysAhead *ahead, IndexScanDesc scan, ScanKeys *keys, TreeScan *tree_scan, int leaves)
{
	bool		wanted = keys->array_count > 0 && scan->parallel_scan == NULL &&
		scan->xs_snapshot != InvalidSnapshot && IsMVCCSnapshot(scan->xs_snapshot);

	keys_ahead_forget(ahead, tree_scan);
	ahead->leaves = wanted ? leaves : 0;
}

void
keys_ahead_forget(KeysAhead *ahead, TreeScan *tree_scan)
{
	tree_scan_forget_ahead(tree_scan);
	ahead->fetched = false;
}

/* Whether the leaf of the combination at hand was fetched. */
static bool
is_fetched(const KeysAhead *ahead, const ScanKeys *keys, ScanDirection direction)
{
	if (!ahead->fetched || ahead->direction != direction)
		return false;
	for (int i = 0; i < keys->array_count; i++)
	{
		if (keys->array[i]->current != ahead->last[i])
			return ScanDirectionIsForward(direction) == (keys->array[i]->current < ahead->last[i]);
	}
	return true;
}

/*
 * Announces to the tree the combinations from the one at hand on, but for those that begin in the leaf of the one before.  How many; ahead->last
 * is behind all of these.
 */
static int
announce(KeysAhead *ahead, ScanKeys *keys, TreeScan *tree_scan, ScanDirection direction)
{
	bool		forward = ScanDirectionIsForward(direction);
	const ScanEdge *edge = forward ? &keys->low_edge : &keys->high_edge;
	int			count = 0;
	bool		more = true;

	do
	{
		if (!edge->bound ||
			tree_scan_seek_ahead(tree_scan, forward ? TREE_FORWARD : TREE_BACKWARD, &edge->tree, ahead->leaves,
							  &more) != TREE_OK)
			break;
		count++;
		(void) scan_span_reach(keys, direction, tree_scan_ahead_reaches, tree_scan, &keys->low_edge, &keys->high_edge);
		scan_keys_save(keys, ahead->last);
	} while (more && count < ahead->leaves * COMBINATIONS_PER_LEAF && scan_keys_next(keys, direction));
	return count;
}

void
keys_ahead_read(KeysAhead *ahead, ScanKeys *keys, TreeScan *tree_scan, ScanDirection direction)
{
	int			positions[INDEX_MAX_KEYS];

	Assert(ahead->leaves > 0);
	if (is_fetched(ahead, keys, direction))
		return;
	if (ahead->leaves > 1)
	{
		scan_keys_save(keys, positions);
		/* In the middle of a scan the edges are still those of the combination that was sought last. */
		scan_keys_restore(keys, positions);
		ahead->fetched = announce(ahead, keys, tree_scan, direction) > 1;
		ahead->direction = direction;
		scan_keys_restore(keys, positions);
		/* Whatever fails here the seek itself will meet. */
		if (!ahead->fetched || tree_scan_fetch_ahead(tree_scan) != TREE_OK)
			keys_ahead_forget(ahead, tree_scan);
	}
	ahead->leaves = Min(ahead->leaves * 2, LEAVES_AHEAD_MAX);
}
