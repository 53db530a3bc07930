/*
 * leaf_cache.h
 *		How images of leaves lie in shared memory, and how they are found: leaf_cache.c, for leaf_read.c and a test.
 */
#ifndef SHERMAN_TREE_LEAF_CACHE_H
#define SHERMAN_TREE_LEAF_CACHE_H

#include "tree/internal.h"

#define LEAF_WAYS 8u

/* Eight tags fill one cache line, so a lookup that misses touches no frame. */
typedef struct LeafSet
{
	_Alignas(LINE_BYTES) uint64_t tags[LEAF_WAYS]; /* 0 = empty */
} LeafSet;

/* One leaf's image, with its key. */
typedef struct LeafFrame
{
	_Alignas(LINE_BYTES) uint64_t sequence; /* sequence.h */
	uint64_t tree;
	uint64_t address;
	uint64_t epoch;   /* of the tree */
	uint64_t entry;   /* number of the leaf's lock entry */
	uint64_t version; /* of that, while the leaf was this image */
	uint32_t used;    /* the cache's clock at the last use */
} LeafFrame;

typedef struct LeafTable
{
	_Alignas(LINE_BYTES) uint64_t versions; /* a word for each lock entry */
	uint64_t sets;
	uint32_t image_bytes;                     /* longer leaves have no room */
	uint32_t admission_percent;               /* of leaves that are read */
	_Alignas(LINE_BYTES) uint64_t admissions; /* the cache's clock: the number of its ticks */
											  /* versions, then sets, frames and images */
} LeafTable;

_Static_assert(sizeof(LeafFrame) == LINE_BYTES, "a frame's header is one line");

/* A leaf, and its entry's version before it was looked for. */
typedef struct LeafKey
{
	uint64_t pointer;
	uint64_t hash;
	uint64_t epoch;
	uint64_t entry;
	uint64_t version;
} LeafKey;

/* The key of a leaf's frame, as of now. Its version is odd where the leaf is not cached. */
extern LeafKey leaf_cache_key(const Tree *tree, uint64_t pointer);
/* Copies the leaf's image, of the key's version, and counts it. False: there is none. */
extern bool leaf_cache_take(Tree *tree, const LeafKey *key, uint64_t *leaf);
/*
 * Offers a leaf that was read and had no image: it gets a frame if it had one before, or by chance (delayed
 * admission).
 */
extern void leaf_cache_offer(Tree *tree, const LeafKey *key, const uint64_t *leaf);

/* By number: set * LEAF_WAYS + way. */
extern LeafFrame *leaf_frame(LeafTable *table, uint64_t number);

#endif /* SHERMAN_TREE_LEAF_CACHE_H */
