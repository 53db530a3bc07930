/*
 * lock_many.h
 *		Several locks at once, for waves (tree/client/wave.h).
 *
 *		1. lock_many_begin()
 *		2. lock_many_try() for each node; a lock that is not free is left out
 *		3. READs of all that are held, by a wave, but of leaves that leaf_cache_take_locked() has
 *		4. lock_many_writes() for each node, before the wave with its WRITEs
 *		5. WRITEs of all that are held, by a wave
 *		6. leaf_cache_wrote() for each leaf whose WRITEs are acknowledged
 *		7. lock_many_release() for each lock, and lock_many_end()
 *
 * Only where the instance has its trees for itself and the local lock table is all that excludes
 * (lock_many_usable()): then taking a lock needs no chain. No lock is waited for, not even while none is held (I-L1):
 * two processes with many locks each would wait for each other. Two nodes may share one entry, which is taken once.
 */
#ifndef SHERMAN_TREE_LOCK_MANY_H
#define SHERMAN_TREE_LOCK_MANY_H

#include "tree/lock/lock.h"

/* Locks that a process has at once, at most. */
#define LOCK_MANY_MAX 1024u

/* Whether nodes of the tree at this memory node, which is connected, can be locked so. */
extern bool lock_many_usable(const Tree *tree, uint32_t memory_node);
/*
 * Frees a lock that was leaked earlier, and holds interrupts until lock_many_end(). As lock_and_read(), but that it
 * waits for no lock.
 */
extern TreeStatus lock_many_begin(Tree *tree);
/* Locks the node.  False: it is locked by somebody, or by this call already, or its memory node was closed meanwhile. */
extern bool lock_many_try(Tree *tree, uint64_t pointer, LockHandle *lock);
/* WRITEs of the node under this hold are about to be posted: no image of it is used until leaf_cache_wrote(). */
extern void lock_many_writes(const Tree *tree, uint64_t pointer, const LockHandle *lock);
/*
 * As lock_rewrite_ops(), with a header of the caller's, which lasts until the wave has ended: a redo slot is written once more only
 * behind the node that it was for.
 */
extern int lock_many_rewrite_ops(Tree *tree, LockHandle *lock, RedoHeader *redo, uint64_t pointer,
                                 const uint64_t *image, uint32_t bytes, FabricOp *ops);
/*
 * Gives the lock back, once the wave that wrote under it has ended. Where a chain to its memory node is still
 * indeterminate, the entry stays this process's, until lock_clean_up() or fencing ends that.
 */
extern void lock_many_release(Tree *tree, LockHandle *lock);
extern void lock_many_end(Tree *tree);

#endif /* SHERMAN_TREE_LOCK_MANY_H */
