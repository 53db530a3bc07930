/*
 * lock_handle.h
 *		Lock handles, and the lock words of memory nodes: for lock.c, lock_release.c and lock_clean_up.c. Private to
 *		these.
 */
#ifndef SHERMAN_TREE_LOCK_HANDLE_H
#define SHERMAN_TREE_LOCK_HANDLE_H

#include "tree/lock/local_lock_table.h"
#include "tree/lock/lock.h"

/* The position of the instance in a lock word: fabric_lock_word(). */
#define LOCK_INSTANCE_SHIFT 48

/* ---- lock_handle.c, lock_word.c ---- */

/*
 * A process that opens a memory node has closed it before, and then waits until each process was seen outside of
 * hold() and resume() once. So this process publishes what hold() notes before it asks whether the memory node is
 * closed: at least one of the two sees the other.
 */
extern void hold_interrupts(TreeClient *client);
/*
 * Lets interrupts come again: environment.resume(), for the hold() that was called before the word was won.
 */
extern void resume_interrupts(TreeClient *client);

/* Whether the record says that the process may have a word; and notes that it has none any more. */
static inline bool
waiter_holds(const LockWaiter *waiter)
{
	return __atomic_load_n(&waiter->holds, __ATOMIC_ACQUIRE) != 0;
}

static inline void
waiter_forget(LockWaiter *waiter)
{
	assert(waiter_holds(waiter));
	__atomic_store_n(&waiter->holds, 0, __ATOMIC_RELEASE);
}

/* An operation on a lock word. */
extern FabricOp word_op(FabricOpcode opcode, uint32_t index, uint64_t compare, uint64_t operand);

/* A word that was never used before; the ticket tells it from all others of this process. */
extern uint64_t word_make(TreeClient *client, uint32_t memory_node);
/* Whether the handle's word is really at its memory node: words that word_assume() makes name no instance. */
static inline bool
word_is_remote(uint64_t word)
{
	return word >> LOCK_INSTANCE_SHIFT != 0;
}
/* Reads the lock word, after a chain about it was lost and its channel reset. */
extern TreeStatus word_read(Tree *tree, const LockHandle *lock, uint64_t *word);

/* Ends the handle, whose word is free or another instance's: the next process in the queue may win it. */
extern void lock_handle_end(TreeClient *client, LockHandle *lock);
/*
 * The word could not be freed. If this instance was fenced the word is not ours any more, and the handle ends.
 * Otherwise the lock is leaked: the entry stays ours, and the record names the word, for lock_clean_up(). Returns the
 * status for the caller.
 */
extern TreeStatus lock_handle_leak(TreeClient *client, LockHandle *lock, TreeStatus status);
/*
 * A chain of the holder failed for good: frees the word if the memory node still answers, and notes that the replica
 * may have what the node has not. If it does not answer, that is noted when it comes back. Returns the status.
 */
extern TreeStatus lock_handle_fail(Tree *tree, LockHandle *lock, TreeStatus status);
/* Frees the word and ends the handle; returns `landed` if that succeeds. */
extern TreeStatus unlock_alone(Tree *tree, LockHandle *lock, TreeStatus landed);

/*
 * Whether lock words are needed in addition to the local lock table. They are even where an instance has its trees
 * for itself, if the memory node cannot see which WRITE a dead channel was in: it checks the lock word before it
 * replays a redo image.
 */
extern bool lock_words_are_needed(const Tree *tree, uint32_t memory_node);

/* ---- lock_leaked.c ---- */

/*
 * Releases the entries at this memory node that a wave of the record's process has leaked, now that its chain is
 * determinate; TREE_MAX_NODES: at all memory nodes that are closed.
 */
extern void leaked_release(TreeClient *client, LockWaiter *waiter, uint32_t memory_node);
/* Resets the channels of the locks that the process's own record has leaked, and releases these. As lock_clean_up(). */
extern TreeStatus leaked_settle(TreeClient *client);

/* ---- lock_clean_up.c ---- */

/*
 * Gives up a lock that was leaked at a memory node that is closed, so that the replica's may be taken: the process
 * that opens the memory node fences this instance there first, which leaves neither the word nor a chain of ours.
 */
extern bool lock_handle_abandon(TreeClient *client);

#endif /* SHERMAN_TREE_LOCK_HANDLE_H */
