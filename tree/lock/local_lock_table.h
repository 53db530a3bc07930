/*
 * local_lock_table.h
 *		The local lock table: which process of this instance owns a lock word, and which ones wait for it.  Private to
 *		what includes lock_handle.h.
 *
 * An entry stands for one lock word of one memory node.  Its owner may win the word or holds it; the others
 * wait in its queue, first come first served.  Everything here is shared memory and wake-ups, no chains.
 *
 * Lock order: an entry's spin lock is the only lock in here and is held over plain memory accesses alone.
 */
#ifndef SHERMAN_TREE_LOCAL_LOCK_TABLE_H
#define SHERMAN_TREE_LOCAL_LOCK_TABLE_H

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

/* The record of one process. Others write it only while it is queued. */
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
	uint32_t holds;            /* memory node + 1: held_word may be ours there; 0: no word is */
	uint32_t lock_memory_node; /* of what is waited for, owned or held */
	uint32_t lock_index;
	uint64_t held_word;
	uint64_t next_word; /* the word that a chain in progress puts in its place; 0: none */
	uint64_t ticket;    /* counts tries to win a word */
	uint32_t leaked;    /* how many of leaked_entries may be set */
	/* Entries of lock_many.c that a wave has leaked: numbers + 1; 0: none, or taken over. */
	uint32_t leaked_entries[LOCK_MANY_MAX];
	_Alignas(LINE_BYTES) uint64_t image[NODE_MAX_BYTES / 8];
} LockWaiter;

typedef struct LockTable
{
	_Alignas(LINE_BYTES) TreeSharedOptions options;
	/* entries by memory node and word, then waiters by slot */
} LockTable;

_Static_assert(sizeof(LockEntry) == 16, "the table is small: 16 bytes a word");
_Static_assert(sizeof(LockTable) % LINE_BYTES == 0 && sizeof(LockWaiter) % LINE_BYTES == 0, "whole lines");

/* Length of the entries. */
static inline size_t
lock_entries_bytes(const TreeSharedOptions *options)
{
	size_t words = (size_t) options->nodes * options->lock_words;

	return (words * sizeof(LockEntry) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

static inline LockEntry *
table_entry(LockTable *table, uint32_t memory_node, uint32_t index)
{
	assert(memory_node < table->options.nodes);
	assert(index < table->options.lock_words);
	return (LockEntry *) (table + 1) + (size_t) memory_node * table->options.lock_words + index;
}

static inline LockWaiter *
table_waiter(LockTable *table, uint32_t slot)
{
	assert(slot < table->options.slots);
	return (LockWaiter *) ((char *) (table + 1) + lock_entries_bytes(&table->options)) + slot;
}

/*
 * Becomes the owner of the entry. On TREE_OK the record's state is WAIT_GRANTED or WAIT_PASSED. TREE_STOPPED,
 * TREE_TIMED_OUT, TREE_UNREACHABLE: neither owner nor queued, unless *chosen: then the caller gives up again what was
 * handed over meanwhile (the state says what).
 */
extern TreeStatus entry_acquire(Tree *tree, LockEntry *entry, LockWaiter *waiter, uint64_t *deadline,
                                bool *chosen);

/* The same for an entry without an owner; for others it returns false and does not wait. */
extern bool entry_try(TreeClient *client, LockEntry *entry);

/* Whether a process waits, as far as can be said without the spin lock. */
static inline bool
entry_has_waiters(const LockEntry *entry)
{
	return __atomic_load_n(&entry->head, __ATOMIC_RELAXED) != 0;
}

/* Whether it has an owner, perhaps one that has leaked the lock. */
extern bool entry_is_owned(LockEntry *entry);

/* entry_release() on behalf of another owner, which will not do it. */
extern void entry_release_for(TreeClient *client, LockEntry *entry, uint32_t slot);

/* The owner gives the entry up, without passing on a word: the first process in the queue becomes the owner. */
static inline void
entry_release(TreeClient *client, LockEntry *entry)
{
	entry_release_for(client, entry, client->slot);
}

/*
 * The owner chooses the first process in the queue as the next owner, which sleeps on until waiter_wake(): in between
 * the caller may fill the chosen record. NULL: no process waits, and the caller is still the owner.
 */
extern LockWaiter *entry_pass(TreeClient *client, LockEntry *entry);

/*
 * Wakes the new owner, with the state that says what was handed over; from here on only that process writes its
 * record.
 */
extern void waiter_wake(TreeClient *client, LockTable *table, LockWaiter *chosen, WaitState state);

/*
 * Leaves the queue, if the record is still in one. Otherwise waits until the state says what was handed over, and
 * returns false.
 */
extern bool entry_leave(TreeClient *client, LockEntry *entry, LockWaiter *waiter);

#endif /* SHERMAN_TREE_LOCAL_LOCK_TABLE_H */
