/*
 * heap.c
 *		See heap.h.  Pieces are powers of two, each with a header; those that are free are in a list for each length.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "heap.h"

/* Address space, of which only what is used takes memory. */
#define HEAP_BYTES (16ull << 30)
/* Far from all else, with which the kernel would unite it. */
#define HEAP_ADDRESS ((void *) 0x300000000000)
#define CLASSES 40u
#define SMALLEST_SHIFT 5u

typedef struct Piece
{
	uint64_t class;     /* its length is 1 << (SMALLEST_SHIFT + class), with this header */
	struct Piece *next; /* that is free */
} Piece;

/* At the beginning of the memory itself. */
typedef struct Kept
{
	uint64_t used;
	Piece *free[CLASSES];
} Kept;

static Kept *kept;

static void
heap_open(void)
{
	void *memory = mmap(HEAP_ADDRESS, HEAP_BYTES, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (memory != HEAP_ADDRESS)
		abort();
	kept = memory;
	kept->used = (sizeof(Kept) + sizeof(Piece) - 1) / sizeof(Piece) * sizeof(Piece);
}

static size_t
piece_bytes(const Piece *piece)
{
	return (size_t) 1 << (SMALLEST_SHIFT + piece->class);
}

static Piece *
piece_take(size_t bytes)
{
	uint64_t class = 0;
	Piece *piece;

	while (((size_t) 1 << (SMALLEST_SHIFT + class)) < bytes + sizeof(Piece))
		class ++;
	piece = kept->free[class];
	if (piece != NULL)
	{
		kept->free[class] = piece->next;
		return piece;
	}
	piece = (Piece *) ((char *) kept + kept->used);
	piece->class = class;
	kept->used += piece_bytes(piece);
	if (kept->used > HEAP_BYTES)
		abort();
	return piece;
}

void *
heap_resize(void *memory, size_t bytes)
{
	Piece *piece = memory == NULL ? NULL : (Piece *) memory - 1;
	Piece *more;

	if (kept == NULL)
		heap_open();
	if (piece != NULL && bytes + sizeof(Piece) <= piece_bytes(piece))
		return memory;
	more = piece_take(bytes);
	if (piece != NULL)
		memcpy(more + 1, piece + 1, piece_bytes(piece) - sizeof(Piece));
	heap_free(memory);
	return more + 1;
}

void *
heap_zeroed(size_t bytes)
{
	return memset(heap_resize(NULL, bytes), 0, bytes);
}

void
heap_free(void *memory)
{
	Piece *piece;

	if (memory == NULL)
		return;
	piece = (Piece *) memory - 1;
	piece->next = kept->free[piece->class];
	kept->free[piece->class] = piece;
}

bool
heap_begins_at(const void *memory)
{
	return memory == kept;
}
