/*
 * allocate.h
 *		The face of tree/space: nodes, runs and blocks are taken and given back.
 */
#ifndef SHERMAN_TREE_ALLOCATE_H
#define SHERMAN_TREE_ALLOCATE_H

#include "tree/internal.h"

/* ---- allocate.c ---- */

/*
 * Takes a node of node_bytes(level) on a memory node (the tree's home unless its share is far above the
 * average) and its first generation. Local from a chunk; else a FETCH_ADD on the extent's bump word; else an
 * extent by call. Never under a lock that is not ours alone: callers take nodes BEFORE they lock
 * (alloc_reserve) so that a full memory node is known while nothing is held. TREE_MEMORY_FULL.
 */
extern TreeStatus allocate_node(Tree *tree, uint32_t memory_node, uint32_t level, uint64_t *pointer,
                                uint64_t *generation);
/* The same for the bulk load: where an extent is asked for, `wanted` is as in allocate_run(). */
extern TreeStatus allocate_node_foreseen(Tree *tree, uint32_t memory_node, uint32_t level, uint64_t wanted,
                                         uint64_t *pointer, uint64_t *generation);
/* The same, of a caller that is about to take `count` of them: a FETCH_ADD takes room for all of them. */
extern TreeStatus allocate_one_of(Tree *tree, uint32_t memory_node, uint32_t level, uint32_t count,
                                  uint64_t *pointer, uint64_t *generation);
/* Gives back a node that was never written. */
extern void allocate_return(Tree *tree, uint64_t pointer, uint32_t level, uint64_t generation);
/*
 * freed.c: nodes that no process can reach any more, kept for reuse. freed_put() adds one, whose last generation is
 * known; a failure loses it until REINDEX. freed_take(): TREE_NOT_FOUND, there is none. freed_choose(): the memory
 * node to take one from: the one asked for, or where it has none the one that has most, before the tree grows.
 */
extern TreeStatus freed_put(Tree *tree, uint64_t pointer, uint32_t level, uint64_t generation);
extern uint32_t freed_choose(const Tree *tree, uint32_t memory_node, uint32_t level);
extern TreeStatus freed_take(Tree *tree, uint32_t memory_node, uint32_t level, uint64_t *pointer,
                             uint64_t *generation);

/* extent.c. Learns which extent of the tree there is the newest, before anything is taken from it; makes the first one. */
extern TreeStatus allocate_begin(Tree *tree, uint32_t memory_node);

/* ---- reclaim.c: what earlier incarnations of the instance took, and what of it is free ---- */
/* Looks for free nodes there, before another chunk is taken: how many bytes it has found. */
extern uint64_t reclaim_some(Tree *tree, uint32_t memory_node);
/*
 * To be called before this incarnation frees nodes: ends the search; what was not examined by now never will be.
 * Waits a while for a process that examines a piece. False: one still does.
 */
extern bool reclaim_end(Tree *tree);

/* Over how many memory nodes the tree's nodes are spread. */
extern uint32_t allocate_shares(const Tree *tree);
/*
 * A whole run of `bytes` (chunks) for the bulk load's large WRITEs; *bytes comes back smaller at the end of
 * an extent.  If one is asked for, it has room for `wanted` bytes, all that the load is about to use, and for no more than need be; 0: it
 * does not know of any.
 */
extern TreeStatus allocate_run(Tree *tree, uint32_t memory_node, uint64_t wanted, uint64_t *bytes,
                               uint64_t *offset, uint64_t *generation);
/* Gives the unused end of such a run to later leaves; `offset` lies on a leaf's boundary. */
extern void allocate_run_return(Tree *tree, uint32_t memory_node, uint64_t bytes, uint64_t offset,
                                uint64_t generation);
/*
 * A block for an overflow key, and its return (after the rewrite that removed its cell was
 * acknowledged).
 */
extern TreeStatus allocate_overflow(Tree *tree, uint32_t memory_node, uint32_t bytes, uint64_t *offset);
extern void allocate_overflow_return(Tree *tree, uint32_t memory_node, uint64_t offset, uint32_t bytes);

#endif /* SHERMAN_TREE_ALLOCATE_H */
