/*
 * predicate.c
 *		What a caller that locks predicates by leaf needs of the tree: to hear of a leaf before it is read (leaf_mark.c), of a
 *		split before its halves can be reached, and where an entry was put.
 *
 * The caller's locks are names in its own memory, here called marks.  The claim: of a scan and an insert into its
 * range, the scan returned the entry, or the insert's caller, who looks for marks on the leaf of
 * tree_inserted_leaf() once tree_insert() has returned, finds the scan's.  The proof: the scan marks a leaf X, then
 * waits until no split of this tree is between its announcement and its end (s is such an instant), then reads X.
 *
 * If X, as it was read, covers the key and lacks the entry, the entry became visible after the mark. It did so in X,
 * whose mark is found; or in a leaf that X's part with the key went to by splits. Each of these was announced after
 * s: one that ended before s would be seen in X as it was read, and none is in progress at s. So each found the mark
 * on X, or the mark that an earlier one of them had copied, and copied it to its new leaf before that could be
 * reached: the entry's leaf has the mark before it has the entry.
 *
 * Waiting has a bound.  Beyond it, and for ever after a split whose end is in doubt (a memory node that went away),
 * the caller is asked for a mark on the whole tree, which each insert finds.
 *
 * Splits by other instances are not noticed: this works only where the instance has the tree for itself.
 */
#include "tree/descent/descent.h"

void
tree_on_split(Tree *handle, TreeSplitHook hook, void *argument)
{
	assert(handle != NULL);
	assert(!handle->client->holding);
	handle->split_hook = hook;
	handle->split_argument = argument;
}

uint64_t
tree_inserted_leaf(const Tree *handle)
{
	assert(handle != NULL);
	return pointer_address(handle->inserted);
}

void
leaf_split_announce(Tree *tree, uint64_t from, uint64_t to)
{
	assert(pointer_address(from) != pointer_address(to));
	state_split_begins(tree->state);
	if (tree->split_hook != NULL)
		tree->split_hook(tree->split_argument, pointer_address(from), pointer_address(to));
}

void
split_announce(Tree *tree, uint64_t pointer, const Split *split)
{
	assert(split->right != 0);
	leaf_split_announce(tree, pointer, split->right);
	if (split->root && tree->split_hook != NULL)
		tree->split_hook(tree->split_argument, pointer_address(pointer), pointer_address(split->left));
}

void
split_over(Tree *tree, TreeStatus status)
{
	/* Otherwise its chain is indeterminate, and the split may not count as ended. */
	if (status == TREE_OK || status == TREE_RETRY)
		state_split_ends(tree->state);
}
