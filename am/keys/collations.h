/*
 * collations.h
 *		What the order of keys depends on outside of the database: collations of the operating system's libraries.
 */
#ifndef SHERMAN_COLLATIONS_H
#define SHERMAN_COLLATIONS_H

#include "postgres.h"

/*
 * Whether text in this collation orders as its bytes do, in this process: the result is for the very locale that this
 * process compares by, and does not change. Raises nothing, also where the operating system has lost the locale.
 */
extern bool collation_orders_bytes(Oid collation);

/*
 * Whether PostgreSQL itself orders strings in this collation by their bytes (collations_pgNN.c). Raises nothing where the operating system has lost
 * the locale.
 */
extern bool collation_is_c(Oid collation);

/*
 * The version of the collation's order that the library gives now (palloc'd), as PostgreSQL notes it in pg_collation; NULL: it
 * has none, as C.
 */
extern char *collation_version(Oid collation);

#endif							/* SHERMAN_COLLATIONS_H */
