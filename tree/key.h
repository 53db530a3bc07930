/*
 * key.h
 *		Keys of entries, how a tree stores them, and places between them.
 *
 * Order of entries: (leading bit, normalized key, rest of the key as the comparator says, TID). Every entry is
 * distinct by its TID. Integers decide as far as the normalized key reaches; the comparator, which is the caller's
 * code and may jump out of the tree (ereport), is only called while no lock is held and nothing is indeterminate, and
 * on private memory.
 */
#ifndef SHERMAN_KEY_H
#define SHERMAN_KEY_H

#include <stdbool.h>
#include <stdint.h>

/* Words of 8 bytes of normalized key in the largest cell: 64 bytes less the first word. */
#define TREE_NORM_WORDS 7

/* Longest image of a key: btree's limit for 8 KB pages is 2704 bytes of tuple; the image has less header. */
#define TREE_IMAGE_MAX_BYTES 2704u

/* Cells may be this long for TreeFormat.postings. */
#define TREE_POSTING_CELL_MAX_BYTES 32u

/* How keys are stored in one tree; fixed when it is created, kept in the tree's record. */
typedef struct TreeFormat
{
	uint8_t cell_bytes;   /* a multiple of 8, 16 to 64 */
	uint8_t norm_bytes;   /* normalized key in each cell: a multiple of 8 up to cell_bytes - 8 */
	bool lossless;        /* equal normalized keys are equal keys: there are no images */
	bool full_separators; /* never cut a separator to its normalized key */
	uint8_t fill_percent; /* bulk load fills leaves to this, 50..100 */
	bool
		postings; /* leaves keep TIDs of one key together; lossless keys in cells of up to TREE_POSTING_CELL_MAX_BYTES only */
} TreeFormat;

/* The key and TID of one entry, in private memory. */
typedef struct TreeKey
{
	bool high; /* leading order bit: of two keys the one without it is smaller (NULLs, see am/keys) */
	bool cut;  /* a separator cut to its normalized key: below all keys with these bytes */
	uint16_t image_bytes; /* length of the image, 0 when the format is lossless or the key is cut */
	uint32_t block;       /* heap TID */
	uint16_t offset;      /* heap TID, 1..4095; 0 with block 0 sorts below all TIDs */
	uint64_t
		norm[TREE_NORM_WORDS]; /* normalized key: unsigned words, most significant first; unused ones 0 */
	const uint8_t
		*image; /* the stored key, opaque to the tree; memory of the caller that filled the struct */
} TreeKey;

/*
 * A place between entries, to search for.  Where the normalized part ties, norm_exact says whether that
 * settles it; otherwise the comparator is asked; where that ties too, `side` decides.
 */
typedef struct TreeBound
{
	TreeKey key;
	uint8_t norm_bits_valid; /* whether key.high and the first norm_length bytes of key.norm bind: 0 or 1 */
	uint8_t norm_length;     /* bytes of key.norm that bind, 0..norm_bytes */
	bool norm_exact;         /* entries that agree in high and these bytes agree in all bound columns */
	int8_t side; /* -1: just below all entries that tie, +1: just above them, 0: ties go by key's TID */
	const void *argument; /* for the comparator: NULL = key is a whole key (compare by images) */
} TreeBound;

/*
 * Compares the bound's columns with an entry's or a cut separator's: < 0, 0, > 0 if the bound is before it, ties with
 * it, or is behind it. Of a cut entry only columns that its normalized key holds whole can be compared; the rest
 * ties. May jump (ereport); then the scan or insert is over, and nothing is held.
 */
typedef int (*TreeCompare)(void *argument, const TreeBound *bound, const TreeKey *entry);

#endif /* SHERMAN_KEY_H */
