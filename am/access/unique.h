/*
 * unique.h
 *		What insert.c asks of unique.c: whether a row's key may be added to a unique index; and what unique.c asks
 *		of key_names.c and key_parts.c.
 */
#ifndef SHERMAN_UNIQUE_H
#define SHERMAN_UNIQUE_H

#include "am/index/index.h"
#include "am/keys/key_layout.h"

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
	bool		barred;			/* its leaf has shown an entry with its normalized key */
} UniqueRow;

/* By which keys are assigned to parts of all keys. */
typedef struct KeyParts
{
	uint64		tree;			/* the index's */
	Oid			index;
	int			norm_bytes;		/* of the index's keys */
} KeyParts;

/* What one executor state keeps for a unique index between rows; zeroed at first, but for the context. */
typedef struct UniqueChecker
{
	MemoryContext context;		/* lives as long */
	bool		ready;			/* the hash functions that follow were looked up */
	bool		has_second;		/* the key has a second name */
	struct FmgrInfo *hash[INDEX_MAX_KEYS];	/* of columns that are KEY_BY_OTHERS_CLASS, if has_second */
	bool		locked;			/* `lock` is held, and `second` */
	uint32		lock;			/* names the key: key_name() */
	uint32		second;			/* its second name */
	uint32		part;			/* of all keys, which it is checked in */
	bool		added;			/* the entry was added by the check already */
} UniqueChecker;

/* Whether a key is unique by its NULLs: each is different from every value, other NULLs included. */
extern bool unique_by_null(Relation index, const bool *isnull);

/*
 * Checks that no other row has this key, as nbtree's _bt_check_unique() does: raises 23505, waits for the
 * transaction that decides, or, for UNIQUE_CHECK_PARTIAL, returns false ("perhaps not").  Else true.  The entry
 * itself may be added on the way: checker->added.
 *
 * On return the key is locked (checker->locked) unless it needs no check, or the entry was added: until unique_release() no
 * other row with it is added by this instance.  An error releases the lock with the transaction's others.  `opened` may be
 * replaced while it waits.  Memory is taken from CurrentMemoryContext, which the caller empties.
 */
extern bool unique_claim(UniqueChecker *checker, const UniqueRow *row, ShermanIndex **opened);

/* Unlocks the key: its entry was acknowledged, or is not to be added. */
extern void unique_release(UniqueChecker *checker, Relation index);

/* ---- key_names.c ---- */

/*
 * Names the row's key: sets checker->lock and, if there is one, checker->second.  The first call of a statement locks hash classes
 * that others created, until the transaction ends.  Raises what hash functions raise.  No key is locked.
 */
extern void key_name(UniqueChecker *checker, const UniqueRow *row, ShermanKeys *keys);

/* ---- key_parts.c ---- */

/*
 * begin() and end() of the TreePermit of keys that are added without a key lock.  `parts`: KeyParts of their index.  True: no check of
 * a key in this key's part begins until key_part_added(), and no entry with this key waits.  False: a check is in progress, or one
 * waits.  The leaf's lock is held; neither fails or waits.
 */
extern bool key_part_add(void *parts, const TreeKey *key);
extern void key_part_added(void *parts, const TreeKey *key);

/* The part of all keys that a key belongs to, below SHERMAN_KEY_PARTS: the same for equal keys of an index. */
extern uint32 key_part(const KeyParts *parts, const TreeKey *key);

/*
 * Before a key is checked, with its key lock held: keeps others from adding without one until key_part_check_end(), which the
 * end of the resource owner implies, and waits for those that are about it.  Cancel raises.
 */
extern void key_part_check(uint32 part);
extern void key_part_check_end(uint32 part);

#endif							/* SHERMAN_UNIQUE_H */
