/*
 * collations.c
 *		What the order of keys depends on outside of the database: whether a collation orders bytes, and which
 *		version of its order the library has.
 *
 * Both may change while the server is down, and for new processes even while it runs.  So what an index was
 * built by is noted in its metapage, and compared when it is opened (keys.c).
 */
#include "postgres.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "am/base/compat.h"
#include "am/keys/collations.h"
#include "am/keys/keys.h"

/* ---- whether bytes are ordered ---- */

#ifdef __GLIBC__

/* Strings in the order of their bytes, which hardly any language's rules leave as it is. */
static const char *const in_order[] =
{
	"", " ", " b", "-a", "A", "B", "Ba", "Z", "_", "a", "a b", "a-c", "aA", "aB", "aa", "b", "z", "z ",
	"\xc3\x84", "\xc3\xa4", "\xc3\xa9", "\xe2\x82\xac"
};

/*
 * Whether the locale's strcoll() is strcmp(); NULL: the process's own locale.  glibc says it by the number of
 * its collation rules, a word that its own functions ask for first.  The samples guard against another meaning of it
 * in a later library.
 */
static bool
locale_orders_bytes(locale_t locale)
{
	const char *rules = locale != (locale_t) 0 ? nl_langinfo_l(_NL_COLLATE_NRULES, locale) :
		nl_langinfo(_NL_COLLATE_NRULES);

	if ((uint32) (uintptr_t) rules != 0)
		return false;
	for (size_t i = 1; i < lengthof(in_order); i++)
	{
		int			order = locale != (locale_t) 0 ? strcoll_l(in_order[i - 1], in_order[i], locale) :
			strcoll(in_order[i - 1], in_order[i]);

		if (order >= 0)
			return false;
	}
	return true;
}

/*
 * Whether the operating system has the locale: PostgreSQL raises an error if not.
 */
static bool
locale_exists(const char *name)
{
	locale_t	locale = newlocale(LC_COLLATE_MASK | LC_CTYPE_MASK, name, (locale_t) 0);

	if (locale == (locale_t) 0)
		return false;
	freelocale(locale);
	return true;
}

/*
 * Whether this process can compare by a collation of libc.
 */
static bool
can_compare(Oid collation)
{
	HeapTuple	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	bool		can = HeapTupleIsValid(tuple) &&
		((Form_pg_collation) GETSTRUCT(tuple))->collprovider == COLLPROVIDER_LIBC;
	static const AttrNumber names[] = {Anum_pg_collation_collcollate, Anum_pg_collation_collctype};

	for (size_t i = 0; i < lengthof(names) && can; i++)
	{
		bool		isnull;
		Datum		name = SysCacheGetAttr(COLLOID, tuple, names[i], &isnull);

		can = !isnull && locale_exists(TextDatumGetCString(name));
	}
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return can;
}

/*
 * Whether the database's own collation is one of libc.
 */
static bool
database_is_of_libc(void)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	bool		is = HeapTupleIsValid(tuple) && ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider == COLLPROVIDER_LIBC;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return is;
}

#endif							/* __GLIBC__ */

/*
 * C and POSIX order bytes, and with glibc every locale without collation rules: C.UTF-8 is one.
 */
bool
collation_orders_bytes(Oid collation)
{
	if (!OidIsValid(collation))
		return false;
	if (collation_is_c(collation))
		return true;
#ifdef __GLIBC__
	/* PostgreSQL keeps the locale that it compares by for as long as the process lives. */
	return (collation == DEFAULT_COLLATION_OID ? database_is_of_libc() : can_compare(collation)) &&
		locale_orders_bytes(compat_libc_locale(pg_newlocale_from_collation(collation)));
#else
	return false;
#endif
}

/* ---- versions ---- */

/*
 * The version by a row of pg_collation or pg_database: what they have of it.
 */
static char *
version_of(HeapTuple tuple, int cache, char provider, AttrNumber libc_name, AttrNumber other_name)
{
	bool		isnull;
	Datum		name = SysCacheGetAttr(cache, tuple, provider == COLLPROVIDER_LIBC ? libc_name : other_name, &isnull);

	return isnull ? NULL : get_collation_actual_version(provider, TextDatumGetCString(name));
}

char *
collation_version(Oid collation)
{
	bool		is_default = collation == DEFAULT_COLLATION_OID;
	int			cache = is_default ? DATABASEOID : COLLOID;
	HeapTuple	tuple;
	char	   *version;

	if (!OidIsValid(collation) || collation_is_c(collation))
		return NULL;
	tuple = SearchSysCache1(cache, ObjectIdGetDatum(is_default ? MyDatabaseId : collation));
	if (!HeapTupleIsValid(tuple))
		return NULL;
	if (is_default)
		version = version_of(tuple, cache, ((Form_pg_database) GETSTRUCT(tuple))->datlocprovider,
							 Anum_pg_database_datcollate, Anum_pg_database_datlocale);
	else
		version = version_of(tuple, cache, ((Form_pg_collation) GETSTRUCT(tuple))->collprovider,
							 Anum_pg_collation_collcollate, Anum_pg_collation_colllocale);
	ReleaseSysCache(tuple);
	return version;
}
