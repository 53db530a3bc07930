/*
 * versions.h
 *		For the modules of tests: what differs between PostgreSQL's versions (am/base/compat.h has that of the extension).
 */
#ifndef SHERMAN_T_VERSIONS_H
#define SHERMAN_T_VERSIONS_H

#include "executor/executor.h"
#include "storage/proc.h"

static inline List *
insert_index_entries(ResultRelInfo *target, TupleTableSlot *slot, EState *estate)
{
#if PG_VERSION_NUM >= 160000
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
