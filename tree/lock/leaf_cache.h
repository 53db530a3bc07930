/*
 * leaf_cache.h
 *		How images of leaves lie in shared memory, and how they are found: leaf_cache.c, for leaf_read.c and a test.
 */
#ifndef SHERMAN_TREE_LEAF_CACHE_H
#define SHERMAN_TREE_LEAF_CACHE_H

#include "tree/shared/frame_table.h"

/* The tags are two lines: a lookup of what is not there touches no frame. */
#define LEAF_WAYS 16u
/* So many frames side by side are divided alike: each an image, or two or all of them one. */
#define LEAF_GROUP 4u

/* One leaf's image, with its key. */
typedef struct LeafFrame
{
	_Alignas(LINE_BYTES) FrameHead head;
	uint64_t fences; /* of its memory node, LeafTable.fences */
	uint32_t valid;  /* whether the image is the leaf: leaf_cache.c */
	uint32_t span;   /* of the first frame of a group: how many frames an image takes in it; 0: one */
	uint32_t place;  /* where its image memory lies, from 1; 0: it has none yet */
} LeafFrame;

typedef struct LeafTable
{
	FrameTable frames;
	_Alignas(LINE_BYTES) uint64_t versions; /* a word for each lock entry */
	uint32_t longest;                       /* leaf that there is room for, in bytes */
	uint32_t admission_percent;             /* of leaves that are read */
	uint64_t fences[TREE_MAX_NODES];        /* how often each memory node was opened anew */
	_Alignas(LINE_BYTES) uint32_t places;   /* that frames have got */
											/* versions, then frames */
} LeafTable;

_Static_assert(sizeof(LeafFrame) == LINE_BYTES, "a frame's header is one line");

/* While the client is not connected to the memory node: odd, so that nothing that is read by such a key is kept. */
#define LEAF_VERSION_UNKNOWN 1u

/* A leaf, and the version of its lock entry before it was looked for. */
typedef struct LeafKey
{
	bool kept; /* else nothing is found, and nothing admitted */
	uint64_t pointer;
	FrameKey node;
	uint64_t epoch;
	uint64_t fences;
	uint64_t entry;
	uint64_t version;
} LeafKey;

/* What a leaf is found by, as of now. */
extern LeafKey leaf_cache_key(const Tree *tree, uint64_t pointer);
/* Copies the leaf's image, if there is a valid one, and counts whether there was. */
extern bool leaf_cache_take(Tree *tree, const LeafKey *key, uint64_t *leaf);
/* It is about to be copied: calls what leaf_cache_take() looks at into the processor's cache. */
extern void leaf_cache_hint(const Tree *tree, const LeafKey *key);
/* A leaf was read, behind leaf_cache_key(), that had no image: it gets one if it has had one, there is room, or it is drawn. */
extern void leaf_cache_offer(Tree *tree, const LeafKey *key, const uint64_t *leaf);
/*
 * Asked by the leaf's owner: whether nobody has written it since leaf_cache_key().  Then what was read behind that is the leaf still, and
 * need not be read again under the lock.  False: it may have been written.
 */
extern bool leaf_cache_unwritten(const Tree *tree, const LeafKey *key);
/* Whether it has a valid image, of this generation. */
extern bool leaf_cache_has_generation(const Tree *tree, uint64_t pointer, uint64_t generation);

/*
 * A leaf was split: `key` is of the new one, from before it was linked, and `right` is its image.  It gets one if the leaf that was
 * split has one, else as if it had been read.
 */
extern void leaf_cache_split(Tree *tree, uint64_t left, const LeafKey *key, const uint64_t *right);

/*
 * leaf_read.c: leaf_cache_read_leaves() of leaves that are only passed: those that have no images get none. *keys: of them all, from
 * before they were read.
 */
extern TreeStatus leaf_cache_pass_leaves(Tree *tree, const uint64_t *pointers, int count,
                                         uint64_t *const *images, NodeVerdict *verdicts, LeafKey *keys);

/* The same of one that its owner has written, as leaf_cache_wrote(). */
extern void leaf_cache_passed(Tree *tree, uint64_t pointer, const uint64_t *leaf);

static inline LeafFrame *
leaf_frame(const LeafTable *table, uint32_t number)
{
	return (LeafFrame *) frame_head(&table->frames, number);
}

/* The memory for a frame's image, or for its piece of one that takes several frames; NULL: it has none yet. */
extern uint64_t *leaf_image(const LeafTable *table, uint32_t number);

#endif /* SHERMAN_TREE_LEAF_CACHE_H */
