/*
 * versions.h
 *		For the modules of tests: what differs between PostgreSQL's versions (am/base/compat.h has that of the extension).
 */
#ifndef SHERMAN_T_VERSIONS_H
#define SHERMAN_T_VERSIONS_H

#include "executor/executor.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "storage/proc.h"

/* The hook by which the planner comes with a table's indexes, in `rel`; its parameters, and what hands them on. */
#if PG_VERSION_NUM >= 190000
typedef build_simple_rel_hook_type relation_hook_type;
#define relation_hook build_simple_rel_hook
#define RELATION_HOOK_PARAMETERS PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *entry
#define RELATION_HOOK_ARGUMENTS root, rel, entry
#else
typedef get_relation_info_hook_type relation_hook_type;
#define relation_hook get_relation_info_hook
#define RELATION_HOOK_PARAMETERS PlannerInfo *root, Oid relation, bool inherits, RelOptInfo *rel
#define RELATION_HOOK_ARGUMENTS root, relation, inherits, rel
#endif

/* The options of a table access method's tuple_insert(). */
#if PG_VERSION_NUM >= 190000
typedef uint32 insert_options;
#else
typedef int insert_options;
#endif

static inline List *
insert_index_entries(ResultRelInfo *target, TupleTableSlot *slot, EState *estate)
{
#if PG_VERSION_NUM >= 190000
	return ExecInsertIndexTuples(target, estate, 0, slot, NIL, NULL);
#elif PG_VERSION_NUM >= 160000
	return ExecInsertIndexTuples(target, slot, estate, false, false, NULL, NIL, false);
#else
	return ExecInsertIndexTuples(target, slot, estate, false, false, NULL, NIL);
#endif
}

/*
 * This process's place in shared memory.
 */
static inline int
own_place(void)
{
#if PG_VERSION_NUM >= 170000
	return MyProcNumber;
#else
	return MyProc->pgprocno;
#endif
}

#endif							/* SHERMAN_T_VERSIONS_H */
