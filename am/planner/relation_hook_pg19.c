/*
 * relation_hook_pg19.c
 *		Where the planner comes to us with a table's indexes, from 19 on: core tells of each relation that it has made.
 */
#include "am/base/sherman.h"

#include "optimizer/pathnode.h"

#include "am/planner/planner.h"

static build_simple_rel_hook_type previous_hook = NULL;

static void
relation_hook(PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *entry)
{
	if (previous_hook != NULL)
		previous_hook(root, rel, entry);
	sherman_fill_indexes(rel);
}

void
sherman_planner_install(void)
{
	previous_hook = build_simple_rel_hook;
	build_simple_rel_hook = relation_hook;
}
