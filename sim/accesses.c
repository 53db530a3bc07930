/*
 * accesses.c
 *		See accesses.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accesses.h"
#include "heap.h"

#define WORD_BYTES 8u
/* A power of 2. */
#define PLACES (4 * ACCESSES_MAX)

typedef struct AccessedWord
{
	uint64_t address;
	uint64_t before; /* what it was before the step changed it */
	bool written;
} AccessedWord;

typedef struct Accesses
{
	uint64_t memory;
	uint64_t bytes; /* 0: nobody tells */
	bool stepping;
	bool many;               /* more than there is room for */
	uint32_t step;           /* counts them, for places */
	uint32_t filled[PLACES]; /* by the step of that number */
	uint16_t places[PLACES];
	uint32_t count;
	AccessedWord words[ACCESSES_MAX];
} Accesses;

/* Pieces of memory that nobody may read, at most: of each client one or two. */
#define FORBIDDEN_MAX 32u
#define FORBIDDEN_BYTE 0xa5

typedef struct Piece
{
	uint64_t from;
	uint64_t to;
} Piece;

static bool told;
static Piece forbidden[FORBIDDEN_MAX];
static uint32_t forbidden_count;
/* Kept: it is large, and nothing in it outlasts a step. */
static Accesses *accesses;

/* ---- what nobody may read ---- */

static void
forbid(uint64_t from, uint64_t to)
{
	if (from >= to)
		return;
	if (forbidden_count == FORBIDDEN_MAX)
		abort();
	forbidden[forbidden_count++] = (Piece){from, to};
}

void
accesses_forbid(void *memory, size_t bytes)
{
	memset(memory, FORBIDDEN_BYTE, bytes);
	forbid((uintptr_t) memory, (uintptr_t) memory + bytes);
}

static void
look_whether_forbidden(uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < forbidden_count; i++)
		if (from < forbidden[i].to && forbidden[i].from < to)
		{
			fprintf(stderr, "a READ that no client was to look at is looked at\n");
			abort();
		}
}

static void
allow(uint64_t from, uint64_t to)
{
	for (uint32_t i = forbidden_count; i-- > 0;)
	{
		Piece piece = forbidden[i];

		if (from >= piece.to || piece.from >= to)
			continue;
		forbidden[i] = forbidden[--forbidden_count];
		forbid(piece.from, from);
		forbid(to, piece.to);
	}
}

/* ---- what steps access ---- */

void
accesses_report(void)
{
	told = true;
}

bool
accesses_are_reported(void)
{
	return told;
}

void
accesses_of(const void *memory, size_t bytes)
{
	if (accesses == NULL)
		accesses = heap_zeroed(sizeof(Accesses));
	forbidden_count = 0;
	accesses->memory = (uintptr_t) memory;
	accesses->bytes = memory == NULL ? 0 : bytes;
}

void
accesses_begin(void)
{
	if (accesses == NULL || accesses->bytes == 0)
		return;
	accesses->stepping = true;
	accesses->many = false;
	accesses->step++;
	accesses->count = 0;
}

/* The step's record of a word; NULL: there is no room for it. */
static AccessedWord *
word_at(uint64_t address)
{
	uint64_t place = (address / WORD_BYTES * 0x9e3779b97f4a7c15ull) >> 32;

	for (;; place++)
	{
		place %= PLACES;
		if (accesses->filled[place] != accesses->step)
			break;
		if (accesses->words[accesses->places[place]].address == address)
			return &accesses->words[accesses->places[place]];
	}
	if (accesses->count == ACCESSES_MAX)
		return NULL;
	accesses->filled[place] = accesses->step;
	accesses->places[place] = (uint16_t) accesses->count;
	accesses->words[accesses->count] = (AccessedWord){.address = address};
	return &accesses->words[accesses->count++];
}

static uint64_t
word_now(uint64_t address)
{
	uint64_t word;

	memcpy(&word, (const void *) (uintptr_t) address, sizeof(word));
	return word;
}

/* The shared words among these bytes. */
static void
access_words(const void *memory, size_t bytes, bool write)
{
	uint64_t from = (uintptr_t) memory;
	uint64_t to = from + bytes;

	if (accesses == NULL || !accesses->stepping || accesses->many ||
	    from >= accesses->memory + accesses->bytes || to <= accesses->memory)
		return;
	for (from -= from % WORD_BYTES; from < to && !accesses->many; from += WORD_BYTES)
	{
		AccessedWord *word = word_at(from);

		accesses->many = word == NULL;
		if (word == NULL || !write || word->written)
			continue;
		word->written = true;
		word->before = word_now(from);
	}
}

void
accesses_read(const void *memory, size_t bytes)
{
	look_whether_forbidden((uintptr_t) memory, (uintptr_t) memory + bytes);
	access_words(memory, bytes, false);
}

void
accesses_write(const void *memory, size_t bytes)
{
	if (forbidden_count > 0)
		allow((uintptr_t) memory, (uintptr_t) memory + bytes);
	access_words(memory, bytes, true);
}

static int
word_compare(const void *a, const void *b)
{
	uint64_t x = ((const AccessedWord *) a)->address, y = ((const AccessedWord *) b)->address;

	return (x > y) - (x < y);
}

static ExplorerMode
mode_of(const AccessedWord *word)
{
	return word->written && word_now(word->address) != word->before ? EXPLORER_WRITE : EXPLORER_READ;
}

bool
accesses_end(void (*tell)(uint64_t from, uint64_t to, ExplorerMode mode))
{
	uint32_t next;

	if (accesses == NULL || !accesses->stepping)
		return true;
	accesses->stepping = false;
	if (accesses->many)
		return false;
	qsort(accesses->words, accesses->count, sizeof(AccessedWord), word_compare);
	for (uint32_t i = 0; i < accesses->count; i = next)
	{
		uint64_t from = accesses->words[i].address;
		ExplorerMode mode = mode_of(&accesses->words[i]);

		for (next = i + 1; next < accesses->count; next++)
			if (accesses->words[next].address != from + (next - i) * WORD_BYTES ||
			    mode_of(&accesses->words[next]) != mode)
				break;
		tell(from, from + (next - i) * WORD_BYTES, mode);
	}
	return true;
}
