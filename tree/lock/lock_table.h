/*
 * lock_table.h
 *		The local lock table: who of this instance owns a lock word, and who waits for it.  Private to what
 *		includes lock_handle.h.
 *
 * An entry stands for one lock word of one memory node.  Its owner may win the word or holds it; the others
 * wait in its queue, first come first served.  Everything here is shared memory and wake-ups, no chains.
 *
 * Lock order: an entry's spin lock is the only lock in here and is held over plain memory accesses alone.
 */
#ifndef SHERMAN_TREE_LOCK_TABLE_H
#define SHERMAN_TREE_LOCK_TABLE_H

#include "tree/lock/lock_many.h"
#include "tree/shared/state.h"

/* Slots stand as number + 1; 0 is none. */
typedef struct LockEntry
{
	uint32_t spin;
	uint32_t owner;
	uint32_t head; /* of the queue: written under `spin`, and looked at without it by entry_has_waiters() */
	uint32_t tail;
} LockEntry;

typedef enum WaitState
{
	WAIT_IDLE,
	WAIT_QUEUED,
	WAIT_GRANTED, /* owns the entry; the word is to be won */
	WAIT_PASSED   /* owns the entry and the word */
} WaitState;

/* One process's record. Others write it only while it is queued. */
typedef struct LockWaiter
{
	uint32_t state; /* WaitState */
	uint32_t next;  /* in the queue */
	uint64_t tree;  /* what is waited for */
	uint64_t address;
	uint64_t passed_word;
	uint32_t passed_handovers;
	uint32_t passed_bytes; /* of the image below; 0 = none */
	uint32_t wanted_bytes;
	uint32_t holds;            /* memory node + 1: held_word may be ours there; 0: nothing is */
	uint32_t lock_memory_node; /* of what is waited for, owned or held */
	uint32_t lock_index;
	uint64_t held_word;
	uint64_t next_word; /* that a chain under way puts in its place; 0: none */
	uint64_t ticket;    /* counts tries to win a word */
	uint32_t kept;      /* how many of kept_entries may be set */
	/* Entries of lock_many.c that a wave left in doubt: numbers + 1; 0: none, or taken over. */
	uint32_t kept_entries[LOCK_MANY_MAX];
	_Alignas(LINE_BYTES) uint64_t image[NODE_MAX_BYTES / 8];
} LockWaiter;

typedef struct LockTable
{
	_Alignas(LINE_BYTES) TreeSharedOptions options;
	/* entries by memory node and word, then waiters by slot */
} LockTable;

_Static_assert(sizeof(LockEntry) == 16, "the table is small: 16 bytes a word");
_Static_assert(sizeof(LockTable) % LINE_BYTES == 0 && sizeof(LockWaiter) % LINE_BYTES == 0, "whole lines");

extern LockEntry *table_entry(LockTable *table, uint32_t memory_node, uint32_t index);
extern LockWaiter *table_waiter(LockTable *table, uint32_t slot);

/*
 * Becomes the owner of the entry.  On TREE_OK the record's state is WAIT_GRANTED or WAIT_PASSED.  Without the technique
 * `hierarchy` entries have no owners: everybody is told at once to win the word.
 * TREE_STOPPED, TREE_TIMED_OUT, TREE_UNREACHABLE: neither owner nor queued, unless *chosen: then what was
 * handed over meanwhile (the state says what) is to be given up again by the caller.
 */
extern TreeStatus entry_acquire(Tree *tree, LockEntry *entry, LockWaiter *waiter, uint64_t *deadline,
                                bool *chosen);

/* The same for one without an owner; else it waits for nobody, and returns false. */
extern bool entry_try(TreeClient *client, LockEntry *entry);

/* Whether somebody waits, as far as can be said without the spin lock. */
extern bool entry_has_waiters(const LockEntry *entry);

/* Whether it has an owner, perhaps one who has left it in doubt. */
extern bool entry_is_owned(LockEntry *entry);

/* The owner gives the entry up, without a word: the first of the queue becomes the owner. */
extern void entry_release(TreeClient *client, LockEntry *entry);
/* The same for another owner, who will not. */
extern void entry_release_for(TreeClient *client, LockEntry *entry, uint32_t slot);

/*
 * The owner names the first of the queue as the next one, who sleeps on until waiter_wake(): between the two
 * the chosen record may be filled.  NULL: nobody waits, and the caller is the owner still.
 */
extern LockWaiter *entry_pass(TreeClient *client, LockEntry *entry);

/* Tells the new owner what it has got; from here on its record is its own. */
extern void waiter_wake(TreeClient *client, LockTable *table, LockWaiter *chosen, WaitState state);

/*
 * Leaves the queue that the record is in, if it is queued still.  Otherwise waits until the state says what
 * was handed over and returns false.
 */
extern bool entry_leave(TreeClient *client, LockEntry *entry, LockWaiter *waiter);

#endif /* SHERMAN_TREE_LOCK_TABLE_H */
