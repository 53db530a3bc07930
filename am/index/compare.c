/*
 * compare.c
 *		Whether a tree and its copy are equal, node by node; those that are not are written anew.
 */
#include "am/base/sherman.h"

#include "am/base/shared.h"
#include "am/index/replica_placement.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/*
 * Whether the two are to be equal, and both are there.
 */
static bool
copies_are_equal(const ShermanIndex *index)
{
	return tree_copies_get(index->tree) == TREE_COPIES_BOTH && !sherman_copies_lack_copy(&index->meta) &&
		!halves_in_doubt(&index->meta);
}

void
sherman_copies_repair(Relation relation, ShermanIndex *index, TreeCopyCounts *counts)
{
	int			attempts = 0;
	TreeStatus	status;

	do
	{
		memset(counts, 0, sizeof(*counts));
		/* Of two of which one was given up the other is the tree. */
		status = tree_copies_get(index->tree) != TREE_COPIES_BOTH ? TREE_OK :
			tree_copies_compare(index->tree, true, counts);
	} while (sherman_change_again(index, relation, status, &attempts));
	if (status != TREE_OK)
		sherman_report_failure(status, relation);
	if (tree_copies_get(index->tree) != TREE_COPIES_NONE)
		sherman_trees_compared(index->meta.tree);
}

uint64
sherman_copies_differ(Relation relation, ShermanIndex *index)
{
	TreeCopyCounts counts;
	int			attempts = 0;
	TreeStatus	status;

	do
	{
		if (!copies_are_equal(index))
			return 0;
		memset(&counts, 0, sizeof(counts));
		status = tree_copies_compare(index->tree, false, &counts);
	} while (sherman_try_again(index, relation, status, &attempts));
	if (status != TREE_OK)
		sherman_report_failure(status, relation);
	return counts.differ;
}
