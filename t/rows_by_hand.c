/*
 * rows_by_hand.c
 *		For tests: adds rows to a table with one column of integers as an extension may do it, in a subtransaction of its own, while
 *		the statement that calls it goes on.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "utils/resowner.h"

#include "rows_by_hand.h"

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(add_rows);

extern Datum add_rows(PG_FUNCTION_ARGS);

/* add_rows(table, from, to, whether the subtransaction commits) */
Datum
add_rows(PG_FUNCTION_ARGS)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	BeginInternalSubTransaction(NULL);
	add_rows_by_hand(PG_GETARG_OID(0), PG_GETARG_INT32(1), PG_GETARG_INT32(2));
	if (PG_GETARG_BOOL(3))
		ReleaseCurrentSubTransaction();
	else
		RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(caller);
	CurrentResourceOwner = owner;
	PG_RETURN_VOID();
}
