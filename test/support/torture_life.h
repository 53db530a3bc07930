/*
 * torture_life.h
 *		One process's life in the torture: what torture_work.c and torture_unique.c share.
 */
#ifndef SHERMAN_TEST_TORTURE_LIFE_H
#define SHERMAN_TEST_TORTURE_LIFE_H

#include "torture_work.h"

/* Entries that are inserted by one call, at most. */
#define BATCH_MAX 100u

typedef struct Life
{
	Torture *torture;
	TestInstance *instance;
	TestClient client;
	Tree *tree;
	TreeScan *scan;
	uint32_t slot;
	uint32_t process;
	KeyRandom random;
	uint32_t *before; /* words as they were before a scan, by rank */
	uint8_t *found;
	uint64_t low;
	uint64_t high;
	bool faults;
	uint64_t die_operation;
	uint32_t die_line;
} Life;

/* ---- torture_work.c ---- */

extern uint32_t torture_word(const Torture *torture, uint64_t rank);
extern EntryState word_state(uint32_t word);
/* Only the owner changes a word, so that a load and a store do. Every change is a new version. */
extern void word_set(const Torture *torture, uint64_t rank, EntryState state);
extern uint64_t rank_of_tid(const Torture *torture, uint32_t block, uint16_t offset);

extern void require_status(Life *life, TreeStatus status, const char *what);
/* Cancels the operation that comes, sometimes; and takes that back. */
extern void maybe_stop(Life *life);
extern void no_stop(Life *life);
extern bool chains_are_lost(const TortureOptions *options);

/* ---- torture_unique.c ---- */

/* Inserts the entry unless there is a row with its number: by itself, or some of this process's own by one call. */
extern void life_insert_unique(Life *life, uint64_t rank);
extern void life_insert_many_unique(Life *life);
/* The entry's row is dead from now on: its number may have another one. */
extern void life_row_ends(const Life *life, uint64_t rank);

#endif /* SHERMAN_TEST_TORTURE_LIFE_H */
