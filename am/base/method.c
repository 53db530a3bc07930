/*
 * method.c
 *		Whether an index, or an access method, is ours, whatever its name is.
 */
#include "am/base/sherman.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "utils/syscache.h"

#include "am/base/compat.h"
#include "am/base/shared.h"

bool
sherman_is_our_method(const IndexAmRoutine *routine)
{
	/* No other access method has our functions. */
	return routine->amoptions == sherman_options;
}

bool
sherman_owns(Relation index)
{
	return sherman_is_our_method(index->rd_indam);
}

bool
sherman_is_ours(Oid index)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	const IndexAmRoutine *routine;
	Form_pg_class form;
	Oid			method;
	bool		ours;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	method = form->relkind == RELKIND_INDEX ? form->relam : InvalidOid;
	ReleaseSysCache(tuple);
	if (method < FirstNormalObjectId)
		return false;			/* core's own */
	routine = GetIndexAmRoutineByAmId(method, true);
	if (routine == NULL)
		return false;
	ours = sherman_is_our_method(routine);
	compat_free_routine(routine);
	return ours;
}
