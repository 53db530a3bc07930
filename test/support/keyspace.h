/*
 * keyspace.h
 *		Keys for the tests of tree/: numbers, stored in every kind of format, with a comparator that minds what it is shown.
 *
 * An entry is (number, TID).  In every key space entries sort as (number, TID), whatever their normalized keys tell: from all
 * of it to nothing.  Images carry the number and a padding that follows from it, so that a wrong image is noticed.
 */
#ifndef SHERMAN_TEST_KEYSPACE_H
#define SHERMAN_TEST_KEYSPACE_H

#include "internal.h"

/* Under a sanitizer loops take longer steps. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_SLOWNESS 16
#elif __has_feature(address_sanitizer)
#define TEST_SLOWNESS 4
#endif
#elif defined(__SANITIZE_THREAD__)
#define TEST_SLOWNESS 16
#elif defined(__SANITIZE_ADDRESS__)
#define TEST_SLOWNESS 4
#endif
#ifndef TEST_SLOWNESS
#define TEST_SLOWNESS 1
#endif

/* Numbers are below this. */
#define KEYSPACE_LIMIT (1ull << 40)

typedef enum KeySpaceKind
{
	KEYSPACE_16,          /* 16 bytes, lossless, postings */
	KEYSPACE_16_SINGLE,   /* the same without postings */
	KEYSPACE_32_WHOLE,    /* 32 bytes, 24 of normalized key in three words, lossless, postings */
	KEYSPACE_32_TIED,     /* 32 bytes, 8 of normalized key for runs of 16 numbers, image in the cell */
	KEYSPACE_32_PREFIX,   /* the same with one normalized key for all: only the comparator orders */
	KEYSPACE_64_OVERFLOW, /* 64 bytes, ties, images of all lengths in the cell and in overflow blocks */
	KEYSPACE_64_FULL,     /* the same with whole separators only */
	KEYSPACE_64_PREFIX,   /* one normalized key for all, overflow keys */
	KEYSPACE_24_WHOLE, /* 24 bytes, which cross lines, 16 of normalized key in two words, lossless, postings */
	KEYSPACE_40_OVERFLOW, /* 40 bytes, which do, too, ties, images in the cell and in overflow blocks */
	KEYSPACE_48_PREFIX,   /* 48 bytes, one normalized key for all, overflow keys */
	KEYSPACES
} KeySpaceKind;

typedef struct KeySpace
{
	KeySpaceKind kind;
	const char *name;
	TreeFormat format;
	uint64_t run; /* numbers with one normalized key; 0 = all */
} KeySpace;

extern const KeySpace *keyspace(KeySpaceKind kind);

typedef struct KeyEntry
{
	uint64_t number;
	uint32_t block;
	uint16_t offset;
} KeyEntry;

/* < 0, 0, > 0 in the order of the tree. */
extern int key_entry_compare(const void *a, const void *b);

/* Room for an image and its padding. */
typedef struct KeyImage
{
	uint8_t bytes[TREE_IMAGE_MAX_BYTES];
} KeyImage;

/* Length of a number's image, 0 in a lossless space. */
extern uint32_t keyspace_image_bytes(const KeySpace *space, uint64_t number);

/* The key of an entry; its image lies in `image`. */
extern void keyspace_key(const KeySpace *space, const KeyEntry *entry, KeyImage *image, TreeKey *key);

/* The number of a whole key; aborts if its image is not what that number's should be. */
extern uint64_t keyspace_number(const KeySpace *space, const TreeKey *key);

/* All entries of the number are above (side -1) or below (side +1) the bound. `*number` outlives it. */
extern void keyspace_bound(const KeySpace *space, const uint64_t *number, int8_t side, TreeBound *bound);

/* The comparator; `argument` is the space. */
extern int keyspace_compare(void *argument, const TreeBound *bound, const TreeKey *entry);

/* If set, the comparator aborts unless this is 0: it must not be called while anything is held. */
extern _Thread_local const int32_t *keyspace_holds;

/* Calls of the comparator so far. */
extern _Thread_local uint64_t keyspace_compares;

/* If not 0, the comparator jumps to keyspace_jump when this many calls were made. */
#include <setjmp.h>
extern _Thread_local uint64_t keyspace_jump_at;
extern _Thread_local jmp_buf keyspace_jump;

/* xorshift: the tests' random numbers. */
typedef struct KeyRandom
{
	uint64_t state;
} KeyRandom;

extern uint64_t key_random(KeyRandom *random, uint64_t below);

/* A sorted set of entries. */
typedef struct KeyModel
{
	uint64_t count;
	uint64_t room;
	KeyEntry *entries;
} KeyModel;

/* Index of the first entry that is not below (number, tid 0). */
extern uint64_t key_model_find(const KeyModel *model, uint64_t number);
extern bool key_model_has(const KeyModel *model, const KeyEntry *entry);
/* False: it was there already. */
extern bool key_model_add(KeyModel *model, const KeyEntry *entry);
extern bool key_model_remove(KeyModel *model, const KeyEntry *entry);
extern void key_model_free(KeyModel *model);

#endif /* SHERMAN_TEST_KEYSPACE_H */
