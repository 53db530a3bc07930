/*
 * lock_many.h
 *		Several locks at once, for waves (tree/client/wave.h).
 *
 *		lock_many_begin(tree)
 *		lock_many_try(tree, pointer, &lock)			-- for each node; what is not to be had at once is left out
 *		... READs of all that are held, by a wave ...
 *		version = lock_many_writes(tree, &lock)		-- before the wave with its WRITEs
 *		... WRITEs of all that are held, by a wave ...
 *		lock_many_release(tree, &lock)				-- for each
 *		lock_many_end(tree)
 *
 * Only where the instance has its trees for itself and the local lock table is all that excludes (lock_many_usable()): then to
 * take a lock is no chain.  Nothing is waited for, not even with nothing held (I-L1): two processes with many locks each would
 * wait for each other.  Two nodes may have one entry, which is had once.
 */
#ifndef SHERMAN_TREE_LOCK_MANY_H
#define SHERMAN_TREE_LOCK_MANY_H

#include "tree/internal.h"

/* Locks that a process has at once, at most. */
#define LOCK_MANY_MAX 256u

/* Whether nodes of the tree at this memory node, which is connected, can be locked so. */
extern bool lock_many_usable(const Tree *tree, uint32_t memory_node);
/*
 * Ends what an earlier hold left in doubt, and holds interrupts until lock_many_end().  As lock_and_read(), but that it waits
 * for no lock.
 */
extern TreeStatus lock_many_begin(Tree *tree);
/* Locks the node.  False: it is locked by somebody, or by this call already, or its memory node was closed meanwhile. */
extern bool lock_many_try(Tree *tree, uint64_t pointer, LockHandle *lock);
/*
 * WRITEs under this hold are about to be posted: images of what it guards are not believed until it is released.  Returns
 * leaf_cache_wrote()'s version.
 */
extern uint64_t lock_many_writes(const Tree *tree, const LockHandle *lock);
/*
 * As lock_rewrite_ops(), with a header of the caller's, which lasts until the wave has ended: a redo slot is written once more only
 * behind the node that it was for.
 */
extern int lock_many_rewrite_ops(Tree *tree, LockHandle *lock, RedoHeader *redo, uint64_t pointer,
                                 const uint64_t *image, uint32_t bytes, FabricOp *ops);
/*
 * Gives the lock back, once the wave that wrote under it has ended.  Where a chain to its memory node is still in doubt, the entry
 * stays this process's, until lock_leave() ends the doubt, or fencing does.
 */
extern void lock_many_release(Tree *tree, LockHandle *lock);
extern void lock_many_end(Tree *tree);

#endif /* SHERMAN_TREE_LOCK_MANY_H */
