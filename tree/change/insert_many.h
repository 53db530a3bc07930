/*
 * insert_many.h
 *		Many entries in progress: what insert_many.c (their order, and which go by themselves) and insert_wave.c (many leaves at
 *		once) share.
 */
#ifndef SHERMAN_INSERT_MANY_H
#define SHERMAN_INSERT_MANY_H

#include "tree/change/insert.h"
#include "tree/client/wave.h"
#include "tree/lock/lock_many.h"

/* Entries that are worked on together: those of longer calls by so many. */
#define MANY_ENTRIES 4096u
/* Room for the images of a wave's leaves; of the narrowest leaves LOCK_MANY_MAX are less. */
#define MANY_IMAGES_BYTES (256u * 1024u)

typedef enum ManyState
{
	MANY_WAITS,  /* for a wave */
	MANY_PLACED, /* in a leaf's image that is being written */
	MANY_SINGLE, /* goes by itself */
	MANY_DONE
} ManyState;

typedef struct ManyEntry
{
	uint64_t rank; /* first word of the normalized key */
	uint32_t key;  /* number in Many.keys */
	bool high;
	uint8_t state; /* ManyState */
} ManyEntry;

/* A leaf of the wave. */
typedef struct ManyLeaf
{
	Path path;
	LockHandle lock;
	uint64_t *image;
	uint64_t version; /* lock_many_writes() */
	uint32_t first;   /* its entries: [first, end) of Many.entries */
	uint32_t end;
	uint32_t placed; /* of them, in the image */
	uint32_t slot;   /* that the first of these is in, the others behind it */
	bool stamped;
	bool written; /* that is acknowledged */
} ManyLeaf;

/* One call's, in memory of the client that is used again. */
typedef struct Many
{
	Tree *tree;
	const TreeKey *keys;
	const TreeWalPosition *wal;
	uint32_t count; /* entries, in the order of integers */
	uint32_t next;  /* those before are done */
	uint32_t end;   /* those from here on are not in the wave */
	uint32_t leaf_count;
	uint32_t leaves_max;
	uint64_t memory_nodes; /* bit each: that can be used, and where waves can */
	uint64_t
		depth; /* sections of the client in this call: in another one inside of it this memory is taken */
	ManyEntry entries[MANY_ENTRIES];
	ManyEntry sorting[MANY_ENTRIES];
	ManyLeaf leaves[LOCK_MANY_MAX];
	Wave wave;
	_Alignas(LINE_BYTES) uint64_t images[MANY_IMAGES_BYTES / 8];
} Many;

/* ---- insert_many.c ---- */

static inline const TreeKey *
many_key(const Many *many, uint32_t entry)
{
	return &many->keys[many->entries[entry].key];
}

/* ---- insert_order.c ---- */

/* Fills entries with `count` keys and puts them in the order of integers, of equal ones in any order. */
extern void many_sort(Many *many, uint32_t count);

/* ---- insert_wave.c ---- */

/*
 * One wave over the leaves of the entries from many->next on: those that it brought into the tree are done, those that it cannot
 * handle go by themselves, the others wait on, all before many->end.  Not TREE_OK: as tree_insert_many().
 */
extern TreeStatus many_wave(Many *many);

#endif /* SHERMAN_INSERT_MANY_H */
