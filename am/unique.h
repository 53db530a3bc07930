/*
 * unique.h
 *		What insert.c asks of unique.c: whether a row's key may be added to a unique index; and what unique.c asks
 *		of key_parts.c.
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
	uint32		part;			/* of all keys, which it is checked in */
	bool		added;			/* the entry was added by the check already */
} UniqueChecker;

/*
 * Checks that no other row has this key, as nbtree's _bt_check_unique() does: raises 23505, waits for the
 * transaction that decides, or, for UNIQUE_CHECK_PARTIAL, returns false ("perhaps not").  Else true.  The entry
 * itself may be added on the way: checker->added.
 *
 * On return the key is locked (checker->locked) unless it needs no check, or the entry was added: until unique_end() no
 * other row with it is added by this instance.  An error releases the lock with the transaction's others.  `opened` may be
 * replaced while it waits.  Memory is taken from CurrentMemoryContext, which the caller empties.
 */
extern bool unique_begin(UniqueChecker *checker, const UniqueRow *row, ShermanIndex **opened);

/* Unlocks the key: its entry was acknowledged, or is not to be added. */
extern void unique_end(UniqueChecker *checker, Relation index);

/* ---- key_parts.c ---- */

/* What a row's insertion does with its key. */
typedef enum KeyPartUse
{
	KEY_PART_ADD,				/* adds it without a key lock, if the leaf shows that it is new */
	KEY_PART_CHECK				/* holds its key lock */
} KeyPartUse;

/*
 * Before a row is added without a key lock.  `part`: below SHERMAN_KEY_PARTS, the same for equal keys of an index.
 * True: no check of a key in this part begins until key_part_end(KEY_PART_ADD).  False: one is in progress.
 */
extern bool key_part_add(uint32 part);

/*
 * Before a key is checked, with its key lock held: waits until all rows that are being added without have been, and
 * keeps others from it until key_part_end(KEY_PART_CHECK).  Cancel raises.
 */
extern void key_part_check(uint32 part);

/* Ends what key_part_add() or key_part_check() has begun, as the end of the resource owner does. */
extern void key_part_end(KeyPartUse use, uint32 part);

#endif							/* SHERMAN_UNIQUE_H */
