/*
 * unique.h
 *		What insert.c asks of unique.c: whether a row's key may be added to a unique index.
 */
#ifndef SHERMAN_UNIQUE_H
#define SHERMAN_UNIQUE_H

#include "keys.h"

#include "storage/itemptr.h"

/* A row that is being inserted, or checked again. */
typedef struct UniqueRow
{
	Relation	index;
	Relation	heap;
	Datum	   *values;
	bool	   *isnull;
	ItemPointer tid;
	const TreeKey *key;			/* formed from these */
	IndexUniqueCheck check;		/* not UNIQUE_CHECK_NO */
	bool		unchanged;		/* a version of a row that is there with this key */
} UniqueRow;

/* What one executor state keeps for a unique index between rows; zeroed at first. */
typedef struct UniqueChecker
{
	bool		ready;			/* the hash functions were looked up */
	struct FmgrInfo *hash[INDEX_MAX_KEYS];	/* of key columns that are not whole in the normalized key */
	bool		locked;			/* `lock` is held */
	ItemPointerData lock;		/* names the key: lock_name() */
	bool		added;			/* the entry was added by the check already */
} UniqueChecker;

/*
 * Checks that no other row has this key, as nbtree's _bt_check_unique() does: raises 23505, waits for the
 * transaction that decides, or, for UNIQUE_CHECK_PARTIAL, returns false ("perhaps not").  Else true.  The entry
 * itself may be added on the way: checker->added.
 *
 * On return the key is locked (checker->locked) unless it needs no check: until unique_end() no other row with
 * it is added by this instance.  An error releases the lock with the transaction's others.  `opened` may be
 * replaced while it waits.  Memory is taken from CurrentMemoryContext, which the caller empties.
 */
extern bool unique_begin(UniqueChecker *checker, const UniqueRow *row, ShermanIndex **opened);

/* Unlocks the key: its entry was acknowledged, or is not to be added. */
extern void unique_end(UniqueChecker *checker, Relation index);

#endif							/* SHERMAN_UNIQUE_H */
