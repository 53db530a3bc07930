/*
 * space.h
 *		What allocate.c, reclaim.c and give.c share: a tree's extents (extent.c), their places (places.c), and runs of them
 *		(runs.c).
 */
#ifndef SHERMAN_TREE_SPACE_H
#define SHERMAN_TREE_SPACE_H

#include "tree/client/directory.h"
#include "tree/shared/state.h"

/*
 * Tries to find a run before the tree is called unallocatable: each failed one is a chunk or an extent that
 * other processes emptied in between.
 */
#define ALLOCATE_ATTEMPTS 64

/* ---- extent.c ---- */

/* TREE_NO_MEMORY: the table has no entry left for one more tree at a memory node. */
extern TreeStatus extent_no_part(Tree *tree);
/* Reads the header of one of the tree's extents. *good false: it is damaged. */
extern TreeStatus extent_header_read(Tree *tree, uint32_t memory_node, uint64_t extent, ExtentHeader *header,
                                     bool *good);
/* Up to where chunks were taken from the extent. */
extern uint64_t extent_taken(const ExtentHeader *header);
/*
 * Takes chunks into the tree's runs: of the newest extent, as far as it is not taken, else of one more. An instance that has its trees
 * for itself takes all of an extent at once, others so many bytes by FETCH_ADD. A new extent has at least `wanted` bytes if there is
 * room. TREE_OK: chunks were taken, which others may have used since, or there is reason to try again. TREE_MEMORY_FULL,
 * TREE_UNREACHABLE, TREE_FENCED.
 */
extern TreeStatus extent_chunks(Tree *tree, uint32_t memory_node, uint64_t wanted);

/* ---- places.c: the first lines of places ---- */

/* Places in a chunk at most. */
#define CHUNK_PLACES_MAX (CHUNK_BYTES / (LEAF_CELLS_TARGET * 16))

/* Reads the first lines of so many places of leaves from `offset` on, a chunk at most.  As access_repeat(). */
extern TreeStatus places_read(Tree *tree, uint32_t memory_node, uint64_t offset, uint32_t places,
                              uint64_t (*lines)[LINE_WORDS]);
/* Nothing was ever written there. */
extern bool place_is_empty(const uint64_t *line);
/* The line is the tree's own, and of this place. */
extern bool place_is_own(const Tree *tree, uint32_t memory_node, const uint64_t *line, uint64_t offset);
/* By its first line: what a stripe has is one place, of an inner node or something else; behind its first line are users' bytes. */
extern bool stripe_is_whole(const Tree *tree, uint32_t memory_node, const uint64_t *line, uint64_t offset);
/* A node of this level that freed.c wrote. */
extern bool place_is_free_node(const Tree *tree, uint32_t memory_node, const uint64_t *line, uint64_t offset,
                               uint32_t level);

/* ---- runs.c: under the state's spin lock ---- */

/*
 * Keeps a run for later nodes or blocks, beside others of its kind where it continues one. Where there are too many the shortest is
 * *left, which the caller gives to runs_left(); else *left is of no bytes. Nothing may have been written to it that says less than
 * that it is free.
 */
extern void runs_put(StateAtNode *at, const StateRun *run, StateRun *left);
/*
 * Not under the spin lock. Puts the places of a run that runs_put() has left into the lists of free nodes, by a chain for each, or of
 * blocks. Where the memory node does not answer they are lost until the next incarnation (reclaim.c).
 */
extern void runs_left(Tree *tree, uint32_t memory_node, StateRun *run);
/* runs_put(), and runs_left(), not under the spin lock. */
extern void runs_keep(Tree *tree, uint32_t memory_node, const StateRun *run);
/*
 * Takes whole chunks for so many bytes, of which `use` is made, of those that were found before others, or fewer if there is no run
 * that long. False: there are none. Of chunks for blocks the caller marks the first line before it puts them back.
 */
extern bool runs_take(StateAtNode *at, StateUse use, uint64_t bytes, StateRun *run);
/*
 * Cuts a node or a block from a run of the use, a node also from what was found. False: chunks have to be taken.
 */
extern bool runs_cut(StateTable *table, StateAtNode *at, StateUse use, uint32_t bytes, uint64_t *offset,
                     uint64_t *generation);
/* runs_put() of whole stripes that reclaim.c has found. False: there is no place left for them. Not under the spin lock. */
extern bool runs_found(Tree *tree, uint32_t memory_node, const StateRun *run);
/* Bytes of the runs between these offsets. */
extern uint64_t runs_bytes(const StateAtNode *at, uint64_t first, uint64_t end);
/* Forgets these runs. */
extern void runs_forget(StateAtNode *at, uint64_t first, uint64_t end);

#endif /* SHERMAN_TREE_SPACE_H */
