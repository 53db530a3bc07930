/*
 * leaf_mark.c
 *		A scan's caller hears of each leaf before it is read, and marks it: the scan's half of what predicate.c, in tree/descent,
 *		proves.
 */
#include "tree/scan/scan.h"

/* Pauses for the splits in progress: of 1, 2, 4, ... microseconds; 16 ms together. */
#define SPLITS_END_PAUSES 14

void
tree_scan_on_leaf(TreeScan *scan, TreeLeafHook hook, void *argument)
{
	assert(scan != NULL);
	assert(!scan->tree->client->holding);
	scan->leaf_hook = hook;
	scan->leaf_argument = argument;
}

/* Waits for an instant at which no split is in progress. False: it took too long. */
static bool
splits_end(Tree *tree)
{
	assert(!tree->client->holding);
	for (int i = 0; i < SPLITS_END_PAUSES; i++)
	{
		if (!state_splits(tree->state))
			return true;
		access_pause(tree->client, 1ull << i);
	}
	return !state_splits(tree->state);
}

void
leaves_mark(TreeScan *scan, const uint64_t *pointers, int count)
{
	if (scan->leaf_hook == NULL)
		return;
	assert(count > 0);
	for (int i = 0; i < count; i++)
		scan->leaf_hook(scan->leaf_argument, pointer_address(pointers[i]));
	if (!splits_end(scan->tree))
		scan->leaf_hook(scan->leaf_argument, TREE_LEAF_ALL);
}
