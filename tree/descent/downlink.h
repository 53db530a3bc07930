/*
 * downlink.h
 *		A downlink on its way into a parent: what downlink.c (one, whatever it takes) and downlink_wave.c (many, where integers
 *		place them) share.
 */
#ifndef SHERMAN_DOWNLINK_H
#define SHERMAN_DOWNLINK_H

#include "tree/descent/descent.h"

/* A separator on its way into a node of level + 1. */
typedef struct DownlinkInsertion
{
	Tree *tree;
	uint32_t level; /* of left and right */
	uint64_t left;
	uint64_t right;
	uint64_t separator[LINE_WORDS];
	TreeBound bound; /* stands for the separator; without image: for integers only */
	uint64_t parent; /* where it is being inserted */
	Path path;       /* how that was found: its parents are the next level's hint */
	/*
	 * What the comparator found, or the descent: the place is between this child and this separator (or high
	 * fence), as long as they are neighbors.  Child 0: it is not known.
	 */
	uint64_t known_child;
	uint64_t known_next[LINE_WORDS];
	/* The node that was locked last, and its generation; whether the same one had another when it was locked again. */
	uint64_t locked;
	uint64_t locked_generation;
	bool outrun;
	/* The separator's, while the comparator sees it: the descent may insert others on its way, each with its own. */
	_Alignas(uint64_t) uint8_t image[TREE_IMAGE_MAX_BYTES];
} DownlinkInsertion;

typedef enum DownlinkPlace
{
	DOWNLINK_HERE,
	DOWNLINK_PRESENT, /* inserted already */
	DOWNLINK_LEFT,    /* the separator lies below this node: stale path */
	DOWNLINK_RIGHT,   /* at or above its high fence */
	DOWNLINK_UNKNOWN  /* only the comparator can tell */
} DownlinkPlace;

/* Begins an insertion, as downlink_insert(). */
extern void downlink_begin(DownlinkInsertion *insertion, Tree *tree, uint32_t level, uint64_t left,
                           const uint64_t *separator, uint64_t right, const Path *path);
/*
 * Where the new cell goes: in front of cell *index.  The left neighbor's presence proves that the separator
 * lies above the low fence.  Not more: nodes that were split from the left neighbor later may stand behind
 * it, with lower separators, and this node may have been split in front of one of them (test/models/redo.pml,
 * POST).
 */
extern DownlinkPlace downlink_place(const DownlinkInsertion *insertion, const uint64_t *node,
                                    uint32_t *index);
/* Puts the new cell in front of cell `index` of a private copy, which has room. */
extern void downlink_put(const NodeGeometry *g, uint64_t *node, uint32_t index, uint64_t child,
                         const uint64_t *separator);
/* A private copy becomes the node's next image; node_seal() ends it. */
extern void node_next_generation(uint64_t *node);
/* Puts a validated image into the cache under the parent that is known to lead to it; `above` 0: none is, unless it is the root. */
extern void downlink_cache(Tree *tree, uint64_t pointer, uint64_t above, const uint64_t *image);

#endif /* SHERMAN_DOWNLINK_H */
