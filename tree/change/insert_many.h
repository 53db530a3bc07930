/*
 * insert_many.h
 *		Many entries in progress: what insert_many.c (their order, and which go by themselves) and insert_wave.c (many leaves at
 *		once) share.
 */
#ifndef SHERMAN_INSERT_MANY_H
#define SHERMAN_INSERT_MANY_H

#include "tree/change/insert.h"
#include "tree/client/wave.h"
#include "tree/descent/downlink_wave.h"
#include "tree/lock/leaf_cache.h"
#include "tree/lock/lock_many.h"

/* Entries that are worked on together: those of longer calls by so many. */
#define MANY_ENTRIES 65536u
/* Room for the images of a wave's leaves. */
#define MANY_IMAGES_BYTES (1024u * 1024u)

/* Room for the images that a wave writes whole: leaves whose entries do not fit, and their new siblings. */
#define MANY_WHOLE_BYTES (1024u * 1024u)
#define MANY_WHOLE_MAX 1024u
/* Entries that one leaf of a wave takes beyond its empty slots: cells of any width for half of these images. */
#define MANY_NEW_BYTES (MANY_WHOLE_BYTES / 2)
#define MANY_NEW_CELLS (MANY_NEW_BYTES / 16)
/* The same where memory nodes are mapped, and there is no round trip to be spared. */
#define MANY_MAPPED_CELLS 2048u
#define MANY_CELLS (LEAF_ENTRIES_MAX + MANY_NEW_CELLS)

typedef enum ManyState
{
	MANY_WAITS,  /* for a wave */
	MANY_PLACED, /* in a leaf's image that is being written */
	MANY_SINGLE, /* goes by itself */
	MANY_BARRED, /* it is not alone: tree_insert_many_alone() ends before it */
	MANY_DONE
} ManyState;

typedef struct ManyEntry
{
	uint64_t rank; /* first word of the normalized key */
	uint32_t key;  /* number in Many.keys */
	bool high;
	uint8_t state;  /* ManyState */
	bool permitted; /* Many.permit was given for it, and is to be ended */
} ManyEntry;

/* A leaf of the wave. */
typedef struct ManyLeaf
{
	Path path;
	LockHandle lock;
	uint64_t *image;
	uint32_t first; /* its entries: [first, end) of Many.entries */
	uint32_t end;
	uint32_t placed; /* of them, in the image */
	uint32_t slot;   /* that the first of these is in, the others behind it; of one that is spread nothing */
	uint64_t *whole; /* its next image, if it is spread; else NULL */
	uint32_t first_sibling; /* its new ones, of Many.siblings */
	uint32_t siblings;
	uint32_t dropped; /* dead entries that its next image is without */
	RedoHeader redo;
	bool root; /* alone in its wave, and not spread: a root is split by insert.c */
	bool stamped;
	bool written;      /* that is acknowledged */
	TreeStatus status; /* of its siblings, where they were waited for, and then of itself */
} ManyLeaf;

/* A new leaf of the wave, linked to from its left neighbor. */
typedef struct ManySibling
{
	uint64_t *image;
	uint64_t pointer;
	uint64_t generation;
	uint64_t separator[LINE_WORDS]; /* its low fence */
	LeafKey key;                    /* from before it was written */
} ManySibling;

/* Cells of one leaf that is spread, while that is planned. */
typedef struct ManyCells
{
	uint32_t count;
	bool ordered; /* as in LeafCells */
	const uint64_t *cells[MANY_CELLS];
	uint64_t packed[LEAF_ENTRIES_MAX * TREE_POSTING_CELL_MAX_BYTES / 8 + MANY_NEW_BYTES / 8];
	LeafCells old;
} ManyCells;

/* One call's, in memory of the client that is used again. */
typedef struct Many
{
	Tree *tree;
	const TreeKey *keys;
	const TreeWalPosition *wal;
	bool alone;               /* each key may have one entry only, and entries go in their order */
	const TreePermit *permit; /* of `alone`; NULL: there is none */
	uint32_t count;           /* entries, in the order of integers */
	uint32_t next;            /* those before are done */
	uint32_t end;             /* those from here on are not in the wave */
	uint32_t leaf_count;
	uint32_t leaves_max;
	uint32_t whole_count; /* images in use */
	uint32_t whole_max;
	uint32_t sibling_count;
	/* Of the wave's leaves: those that probably have to be spread, the siblings that they take, the entries of the others. */
	uint32_t spread_foreseen;
	uint32_t siblings_foreseen;
	uint32_t few;
	uint32_t short_of; /* so many new leaves more were wanted than there were */
	bool
		full; /* no new leaf can be allocated: an entry that needs one is inserted alone, which returns the reason */
	bool mapped;           /* the wave's leaf is on a memory node that is mapped */
	uint64_t memory_nodes; /* bit each: that can be used, and where waves can */
	uint64_t
		depth; /* sections of the client in this call: in another one inside of it this memory is taken */
	ManyEntry entries[MANY_ENTRIES];
	union
	{
		ManyEntry sorting[MANY_ENTRIES]; /* while entries are put in order */
		uint64_t made[MANY_NEW_BYTES /
		              8]; /* cells of the new entries of a leaf that is spread, while that is planned */
	};
	uint64_t cell[LINE_WORDS]; /* of a key that is looked for in its leaf */
	ManyLeaf leaves[LOCK_MANY_MAX];
	ManySibling siblings[MANY_WHOLE_MAX];
	Downlink downlinks[MANY_WHOLE_MAX];
	ManyCells cells;
	Wave wave;
	_Alignas(LINE_BYTES) uint64_t whole[MANY_WHOLE_BYTES / 8];
	_Alignas(LINE_BYTES) uint64_t images[MANY_IMAGES_BYTES / 8];
} Many;

_Static_assert(MANY_WHOLE_BYTES >= DOWNLINK_ROOM_BYTES, "lent to parents, once the leaves are written");

/* ---- insert_many.c ---- */

static inline const TreeKey *
many_key(const Many *many, uint32_t entry)
{
	return &many->keys[many->entries[entry].key];
}

/* ---- insert_order.c ---- */

/* Fills entries with `count` keys, in the order of keys. */
extern void many_fill(Many *many, uint32_t count);
/* Puts them in the order of integers, of equal ones in any order. */
extern void many_sort(Many *many);
/* Whether integers tell the entry's key from that of the one before it. */
extern bool many_differs(const Many *many, uint32_t entry);

/* ---- insert_alone.c ---- */

/* Whether the leaf, whose lock is held, shows the entry to be alone, as none before it in the wave is there without being seen. */
extern bool many_shown_alone(Many *many, const ManyLeaf *leaf, uint32_t entry);
/* Asks for the permit of an entry that is alone. */
extern bool many_permitted(Many *many, uint32_t entry);
/* Ends the permits that were given; no leaf is locked any more. */
extern void many_permits_end(Many *many);

/* ---- insert_spread.c ---- */

/* Counts what a leaf of the wave probably takes, and says how many new leaves all of them do. */
extern void many_foresee(Many *many, const ManyLeaf *leaf);
extern uint32_t many_siblings_wanted(const Many *many);
/*
 * Plans a leaf whose placed entries do not fit into its empty slots: its next image, and those of new siblings if it needs some.  False:
 * this cannot be, now or ever (many->short_of says so), and nothing has changed.  Integers only.
 */
extern bool many_spread(Many *many, ManyLeaf *leaf);
/* How many new entries one leaf of the wave can take, where so many images are left. */
extern uint32_t many_new_cells(const Many *many, uint32_t images);

/* ---- insert_wave.c ---- */

/*
 * One wave over the leaves of the entries from many->next on: those that it brought into the tree are done, those that it cannot
 * handle go by themselves, the others wait on, all before many->end.  Not TREE_OK: as tree_insert_many().
 */
extern TreeStatus many_wave(Many *many);

#endif /* SHERMAN_INSERT_MANY_H */
