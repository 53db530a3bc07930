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
replicas_are_equal(const ShermanIndex *index)
{
	return tree_replicas_get(index->tree) == TREE_REPLICAS_BOTH && !sherman_replicas_lack_copy(&index->meta) &&
		!halves_in_doubt(&index->meta);
}

void
sherman_replicas_repair(Relation relation, ShermanIndex *index, TreeReplicaCounts *counts)
{
	int			attempts = 0;
	TreeStatus	status;

	do
	{
		memset(counts, 0, sizeof(*counts));
		/* Of two of which one was given up the other is the tree. */
		status = tree_replicas_get(index->tree) != TREE_REPLICAS_BOTH ? TREE_OK :
			tree_replicas_compare(index->tree, true, counts);
	} while (sherman_change_again(index, relation, status, &attempts));
	if (status != TREE_OK)
		sherman_report_failure(status, relation);
	if (tree_replicas_get(index->tree) != TREE_REPLICAS_NONE)
		sherman_trees_compared(index->meta.tree);
}

uint64
sherman_replicas_differ(Relation relation, ShermanIndex *index)
{
	TreeReplicaCounts counts;
	int			attempts = 0;
	TreeStatus	status;

	do
	{
		if (!replicas_are_equal(index))
			return 0;
		memset(&counts, 0, sizeof(counts));
		status = tree_replicas_compare(index->tree, false, &counts);
	} while (sherman_try_again(index, relation, status, &attempts));
	if (status != TREE_OK)
		sherman_report_failure(status, relation);
	return counts.differ;
}
