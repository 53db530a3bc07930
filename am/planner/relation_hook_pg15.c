/*
 * relation_hook_pg15.c
 *		Where the planner comes to us with a table's indexes, up to 18: core tells of a table when it has read its indexes from the catalogs.
 */
#include "am/base/sherman.h"

#include "optimizer/plancat.h"

#include "am/planner/planner.h"

static get_relation_info_hook_type previous_hook = NULL;

static void
relation_hook(PlannerInfo *root, Oid relation, bool inherits, RelOptInfo *rel)
{
	if (previous_hook != NULL)
		previous_hook(root, relation, inherits, rel);
	sherman_fill_indexes(rel);
}

void
sherman_planner_install(void)
{
	previous_hook = get_relation_info_hook;
	get_relation_info_hook = relation_hook;
}
