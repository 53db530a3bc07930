/*
 * leaf_cache.h
 *		How images of leaves lie in shared memory.  Private to leaf_cache.c and its test.
 */
#ifndef SHERMAN_TREE_LEAF_CACHE_H
#define SHERMAN_TREE_LEAF_CACHE_H

#include "internal.h"

#define LEAF_WAYS 8u

/* Eight tags are one line: a lookup of what is not there touches no frame. */
typedef struct LeafSet
{
	_Alignas(LINE_BYTES) uint64_t tags[LEAF_WAYS]; /* 0 = empty */
} LeafSet;

/* One leaf's image, and what it was the image of. */
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
	_Alignas(LINE_BYTES) uint64_t admissions; /* how many there were: what `used` counts in */
											  /* versions, then sets, frames and images */
} LeafTable;

_Static_assert(sizeof(LeafFrame) == LINE_BYTES, "a frame's header is one line");

/* By number: set * LEAF_WAYS + way. */
extern LeafFrame *leaf_frame(LeafTable *table, uint64_t number);

#endif /* SHERMAN_TREE_LEAF_CACHE_H */
