/*
 * offload.h
 *		Lookups of which the cache lacks inner nodes: by READs, or by one call of the memory node. Private to
 *		shared.c, search.c, offload.c and its test.
 */
#ifndef SHERMAN_TREE_OFFLOAD_H
#define SHERMAN_TREE_OFFLOAD_H

#include "tree/internal.h"

/* The number of samples in an average, and before it is used. DEX's figure. */
#define OFFLOAD_SAMPLES 50u
/* The unit of averages: parts of a microsecond. */
#define OFFLOAD_FRACTION 1024u

/* For one memory node. Atomic, relaxed: a lost sample does no harm. */
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
 * Whether a lookup that lacks `level` inner nodes and the leaf should call the memory node, by that one's averages.
 */
extern bool offload_chosen(const Tree *tree, uint32_t memory_node, uint32_t level);
/* A READ of an inner node took so long, in microseconds. */
extern void offload_read_took(const Tree *tree, uint32_t memory_node, uint64_t microseconds);
/*
 * Asks for the leaf that covers the bound under the inner node at `pointer`, which has this level. TREE_OK: its
 * address, by the memory node, is *pointer; if *brought, `leaf` is an image of it that node_check() accepts.
 * TREE_NOT_FOUND: the memory node could not or would not answer; READs are the way. Otherwise the connection is lost:
 * the status is that of a chain that loses it, but never TREE_RETRY. Nothing is held.
 */
extern TreeStatus offload_descend(Tree *tree, const TreeBound *bound, uint32_t level, uint64_t *pointer,
                                  uint64_t *leaf, bool *brought);

#endif /* SHERMAN_TREE_OFFLOAD_H */
