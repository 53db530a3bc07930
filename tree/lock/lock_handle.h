/*
 * lock_handle.h
 *		Holds, and the lock words of memory nodes: what lock_handle.c and lock_word.c have for lock.c, lock_release.c and lock_leave.c.
 *		Private to these.
 */
#ifndef SHERMAN_TREE_LOCK_HANDLE_H
#define SHERMAN_TREE_LOCK_HANDLE_H

#include "tree/lock/lock_table.h"

/* Where a lock word has its instance: fabric_lock_word(). */
#define LOCK_INSTANCE_SHIFT 48

/* ---- lock_handle.c, lock_word.c ---- */

/*
 * Who opens a memory node has closed it first, and looks then whether each process is outside of hold() and resume(), once.  So what
 * hold() notes is there for all to see before it is asked whether the memory node is closed: of the two one sees the other.
 */
extern void hold_interrupts(TreeClient *client);
/*
 * The holder may be interrupted again: environment.resume(), after the hold() from before the word was won.
 */
extern void resume_interrupts(TreeClient *client);

/* Whether the record says that the process may have a word; and that it has none any more. */
extern bool waiter_holds(const LockWaiter *waiter);
extern void waiter_forget(LockWaiter *waiter);

/* An operation on a lock word; and the READ of a node. */
extern FabricOp word_op(FabricOpcode opcode, uint32_t index, uint64_t compare, uint64_t operand);
extern FabricOp node_op(uint64_t pointer, uint32_t bytes, uint64_t *image);

/* A word that nobody held before; the ticket tells it from all others of this process. */
extern uint64_t word_make(TreeClient *client, uint32_t memory_node);
/* Whether a hold's word stands at its memory node: word_assume() makes others, which name no instance. */
extern bool word_is_remote(uint64_t word);
/* Reads the lock word, after a chain about it was lost and its channel reset. */
extern TreeStatus word_read(Tree *tree, const LockHandle *lock, uint64_t *word);

/* The hold is over, the word is free or another instance's: the next one in the queue may win it. */
extern void lock_handle_end(TreeClient *client, LockHandle *lock);
/*
 * The word could not be freed.  Fenced: it is not ours any more, and the hold ends.  Else the entry stays
 * ours and the record says which word it is, for lock_leave().  Returns the status that goes up.
 */
extern TreeStatus lock_handle_leak(TreeClient *client, LockHandle *lock, TreeStatus status);
/*
 * A chain of the holder failed for good: frees the word if the memory node still answers, and notes that the
 * copy may have what the node has not.  If it does not answer that is noted when it comes back, if it does.
 * Returns the status.
 */
extern TreeStatus lock_handle_fail(Tree *tree, LockHandle *lock, TreeStatus status);
/* Frees the word and ends the hold; `landed` is what goes up if that succeeds. */
extern TreeStatus unlock_alone(Tree *tree, LockHandle *lock, TreeStatus landed);

/*
 * Whether the local lock table alone does not do.  Even where an instance has its trees for itself, a memory node that does not see by
 * itself which WRITE a dead channel was in asks the lock word, before it replays the redo image of a node.
 */
extern bool lock_words_are_needed(const Tree *tree, uint32_t memory_node);

/* ---- lock_kept.c ---- */

/*
 * Releases the entries at this memory node that a wave of the record's process left in doubt, as that is over; TREE_MAX_NODES: at
 * all that are closed.
 */
extern void kept_release(TreeClient *client, LockWaiter *waiter, uint32_t memory_node);
/* Ends the doubt of what the own record has kept, and releases it. As lock_leave(). */
extern TreeStatus kept_leave(TreeClient *client);

/* ---- lock_leave.c ---- */

/*
 * Gives up a hold that was left in doubt at a memory node that is closed, for one that may stand in for it:
 * whoever opens it has fenced us there before, so neither the word nor a chain of ours will be left.
 */
extern bool lock_handle_abandon(TreeClient *client);

#endif /* SHERMAN_TREE_LOCK_HANDLE_H */
