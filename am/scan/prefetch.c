/*
 * prefetch.c
 *		Leaves of index scans that are to come, fetched together: for a nested loop whose outer rows are known in advance.
 *
 * A scan that begins finds its leaf in the cache of leaves then, and makes no round trip.  What is fetched is a hint: a scan
 * looks for its rows as it does without, and finds others if the index was changed meanwhile.
 */
#include "am/base/sherman.h"

#include "utils/memutils.h"

#include "am/keys/keys.h"
#include "am/nodes/nodes.h"
#include "am/scan/scan.h"
#include "am/scan/scankeys.h"

struct ShermanPrefetch
{
	MemoryContext context;		/* of all that is allocated here */
	Relation	relation;
	ScanKey		scan_keys;		/* the caller sets their arguments */
	int			scan_key_count;
	ShermanIndex *index;		/* NULL: not opened yet */
	ScanKeys   *keys;			/* NULL: not made yet, or made for a handle that was closed */
	int			most;			/* places in bounds */
	int			count;			/* of bounds */
	TreeBound  *bounds;			/* where the scans that were noted begin */
};

ShermanPrefetch *
sherman_prefetch_make(Relation index, ScanKey scan_keys, int scan_key_count, int most)
{
	ShermanPrefetch *prefetch = palloc0(sizeof(ShermanPrefetch));

	prefetch->context = CurrentMemoryContext;
	prefetch->relation = index;
	prefetch->scan_keys = scan_keys;
	prefetch->scan_key_count = scan_key_count;
	prefetch->most = most;
	prefetch->bounds = palloc(sizeof(TreeBound) * most);
	return prefetch;
}

/*
 * Opens the index, and digests the scan keys, unless that was done.  False: nothing was inserted into it yet.
 */
static bool
prefetch_open(ShermanPrefetch *prefetch)
{
	if (prefetch->index == NULL || prefetch->index->tree == NULL)
		prefetch->index = sherman_index_for_scan(prefetch->relation, true);
	else
		sherman_index_recheck(prefetch->index, prefetch->relation);
	if (prefetch->index->tree == NULL)
		return false;
	if (prefetch->keys != NULL &&
		!scan_keys_fit(prefetch->keys, prefetch->index->keys, prefetch->scan_keys, prefetch->scan_key_count))
	{
		scan_keys_free(prefetch->keys);
		prefetch->keys = NULL;
	}
	if (prefetch->keys == NULL)
		prefetch->keys = scan_keys_make(prefetch->relation, prefetch->index->keys, prefetch->scan_keys, prefetch->scan_key_count,
									 prefetch->context);
	return true;
}

void
sherman_prefetch_note(ShermanPrefetch *prefetch)
{
	TreeBound  *bound = &prefetch->bounds[prefetch->count];

	Assert(prefetch->count < prefetch->most);
	if (!prefetch_open(prefetch) || !scan_keys_begin(prefetch->keys, ForwardScanDirection) || !prefetch->keys->low_edge.bound)
		return;
	*bound = prefetch->keys->low_edge.tree;
	/* The leaf that the integers lead to is near enough: the arguments that the comparator would need change with the next row. */
	bound->argument = NULL;
	bound->norm_exact = true;
	bound->side = -1;
	prefetch->count++;
}

void
sherman_prefetch_go(ShermanPrefetch *prefetch)
{
	if (prefetch->count > 0 && prefetch->index->tree != NULL)
		tree_prefetch(prefetch->index->tree, prefetch->bounds, prefetch->count);
	prefetch->count = 0;
}
