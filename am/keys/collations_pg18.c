/*
 * collations_pg18.c
 *		Whether PostgreSQL itself orders strings by a collation, from 18 on: there only a locale that was made knows it, and to make one that
 *		the operating system has lost is an error.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "utils/builtins.h"
#include "utils/pg_locale.h"
#include "utils/syscache.h"

#include "am/keys/collations.h"

bool
collation_is_c(Oid collation)
{
	HeapTuple	tuple;
	char		provider;
	bool		is_c;

	/* That of the database, without which it could not be used, and C. */
	if (collation == DEFAULT_COLLATION_OID || collation == C_COLLATION_OID)
		return pg_newlocale_from_collation(collation)->collate_is_c;
	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(tuple))
		return false;
	provider = ((Form_pg_collation) GETSTRUCT(tuple))->collprovider;
	is_c = provider == COLLPROVIDER_BUILTIN;
	if (provider == COLLPROVIDER_LIBC)
	{
		const char *name = TextDatumGetCString(SysCacheGetAttrNotNull(COLLOID, tuple, Anum_pg_collation_collcollate));

		is_c = strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0;
	}
	ReleaseSysCache(tuple);
	return is_c;
}
