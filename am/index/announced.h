/*
 * announced.h
 *		Keys of unique indexes whose entries wait in some process, where other sessions find them.
 */
#ifndef SHERMAN_ANNOUNCED_H
#define SHERMAN_ANNOUNCED_H

#include "am/base/sherman.h"

#include "storage/block.h"
#include "tree/key.h"

/* Rows with one key that may be announced at a time. */
#define ANNOUNCED_ROWS 8

/* No place: there is no room. */
#define ANNOUNCED_NOWHERE 0

/* A row whose entry waits. */
typedef struct AnnouncedRow
{
	BlockNumber block;
	uint16		offset;
	TransactionId writer;		/* the subtransaction that has added it */
} AnnouncedRow;

/* In the startup hook; bytes before. */
extern Size announced_bytes(void);
extern void announced_initialize(void);

/*
 * Announces the key of an entry that is to be added to this tree, for a row of this subtransaction.  Returns its place, which
 * announced_withdraw() takes; ANNOUNCED_NOWHERE: there is no room, or as many rows have the key as may.  Of keys with images the
 * images do not count.  Raises nothing.  A full barrier.
 */
extern uint32 announced_add(uint64 tree, const TreeKey *key, TransactionId writer);

/* These entries do not wait any more: they are in the tree, or their rows are dead.  Raises nothing. */
extern void announced_withdraw(const uint32 *places, uint32 count);

/* Whether any key is announced, of whatever index: else there is none to be looked for. */
extern bool announced_any(void);

/*
 * The rows with this key that are announced, and their number.  `rows`: ANNOUNCED_ROWS of them.  What it finds may be over by now: a row
 * counts if its writer is in progress once what it means was found out.  Raises nothing.  Locks a spinlock.
 */
extern int	announced_find(uint64 tree, const TreeKey *key, AnnouncedRow *rows);

#endif							/* SHERMAN_ANNOUNCED_H */
