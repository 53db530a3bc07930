/*
 * owner.h
 *		Code that a table's owner has written into an index: owner.c.
 */
#ifndef SHERMAN_OWNER_H
#define SHERMAN_OWNER_H

#include "am/base/sherman.h"

/* What of an index runs code that is not PostgreSQL's own: bits. */
#define OWNER_CODE_EXPRESSIONS 0x01
#define OWNER_CODE_PREDICATE 0x02

/* search_path wherever such code runs. */
#define OWNER_PATH "pg_catalog, pg_temp"

/* The user that a process was, and its settings, while it is a table's owner. */
typedef struct OwnerCaller
{
	Oid			user;
	int			security;
	int			nest_level;
} OwnerCaller;

/* OWNER_CODE_* of an index that is open, by its definition alone: nothing of it is evaluated.  Raises. */
extern int	owner_code_of(Relation index);

/* Whether this process is the table's owner in a security-restricted operation, as maintenance is. */
extern bool owner_maintains(Relation heap);

/*
 * From owner_begin() to owner_end() this process is the table's owner, restricted, with a pinned search_path.  An error in
 * between ends that with its (sub)transaction.
 */
extern void owner_begin(Relation heap, OwnerCaller *caller);
extern void owner_end(const OwnerCaller *caller);

/* The same of search_path alone.  Returns what owner_end_path() is to be given. */
extern int	owner_begin_path(void);
extern void owner_end_path(int nest_level);

/*
 * The same in a callback of the access method, where core has changed the user already: until the level of settings ends that core
 * has begun for that, so that what core itself evaluates behind the callback finds the path pinned, too (rows that an exclusion
 * constraint is checked for, those that CREATE INDEX CONCURRENTLY has missed).
 */
extern void owner_pin_path(void);

/*
 * With the path pinned, for info that BuildIndexInfo() has made or core: expressions and predicate become those of the catalogs, which
 * are simplified when they are first evaluated, instead of the relcache's, for which some session's path was used.
 */
extern void owner_reads_expressions(Relation index, struct IndexInfo *info);

/* Raises 42501 unless the current user owns the index, whose name and definition nobody has locked. */
extern void owner_check(Oid index);

#endif							/* SHERMAN_OWNER_H */
