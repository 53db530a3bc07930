/*
 * collations_pg15.c
 *		Whether PostgreSQL itself orders strings by a collation, up to 17.
 */
#include "postgres.h"

#include "utils/pg_locale.h"

#include "am/keys/collations.h"

bool
collation_is_c(Oid collation)
{
	return lc_collate_is_c(collation);
}
