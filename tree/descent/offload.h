/*
 * offload.h
 *		Lookups whose way the cache of inner nodes does not have: by READs, or by one call of the memory node.  Private to
 *		shared.c, search.c, offload.c and its test.
 */
#ifndef SHERMAN_TREE_OFFLOAD_H
#define SHERMAN_TREE_OFFLOAD_H

#include "tree/internal.h"

/* Averages are of about so many; so many are measured before they count. DEX's figure. */
#define OFFLOAD_SAMPLES 50u
/* Parts of a microsecond that averages have. */
#define OFFLOAD_FRACTION 1024u

/* Of one memory node; relaxed: a sample that is lost is none. */
struct OffloadCosts
{
	_Alignas(LINE_BYTES) uint64_t read; /* of an inner node, average */
	uint64_t call;                      /* the same of a call, with the READs that it has left to be done */
	uint32_t reads;                     /* measured, up to OFFLOAD_SAMPLES */
	uint32_t calls;
};

extern size_t offload_shared_bytes(const TreeSharedOptions *options);
extern void offload_shared_reset(TreeShared *shared);

/*
 * Whether a lookup that lacks `level` inner nodes, and the leaf, shall ask the memory node for it, as far as is known of that one.
 */
extern bool offload_chosen(const Tree *tree, uint32_t memory_node, uint32_t level);
/* A READ of an inner node took so long, in microseconds. */
extern void offload_read_took(const Tree *tree, uint32_t memory_node, uint64_t microseconds);
/*
 * Asks for the leaf that covers the bound under the inner node at `pointer`, which has this level.  TREE_OK: it is said to be at
 * *pointer; *brought: and `leaf` is an image of it that node_check() believes.  TREE_NOT_FOUND: the memory node could not or would
 * not, and READs are the way.  Else the connection is lost: what a chain would return that loses it, but for TREE_RETRY.  Nothing is
 * held.
 */
extern TreeStatus offload_descend(Tree *tree, const TreeBound *bound, uint32_t level, uint64_t *pointer,
                                  uint64_t *leaf, bool *brought);

#endif /* SHERMAN_TREE_OFFLOAD_H */
