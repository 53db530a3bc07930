/*
 * accesses.h
 *		What the step of an exploration that is under way does to memory that clients share (explorer.h).
 *
 * Code that was compiled to tell of its accesses (access_hooks.c) does so word by word, from anywhere.  To others a step is
 * one change: a word that it has changed and changed back, as a spin lock's, it has only read.
 */
#ifndef SHERMAN_SIM_ACCESSES_H
#define SHERMAN_SIM_ACCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "explorer.h"

/* Words of a step that are told apart, at most. */
#define ACCESSES_MAX 8192u

/* There is code that tells; and whether there is. */
extern void accesses_report(void);
extern bool accesses_are_reported(void);

/*
 * From now on steps tell of accesses in this memory, which stays where it is; NULL: of none.  Nothing is forbidden any
 * more.
 */
extern void accesses_of(const void *memory, size_t bytes);

/* The code that runs is about to read, or perhaps to change these bytes. */
extern void accesses_read(const void *memory, size_t bytes);
extern void accesses_write(const void *memory, size_t bytes);

/*
 * Nobody may read these bytes before they are written again: who does ends the program.  What they were taken for
 * nobody knows: so it does not matter when that was.
 */
extern void accesses_forbid(void *memory, size_t bytes);

/* A step begins. */
extern void accesses_begin(void);
/*
 * It ends: `tell` is told what it has read and what it has changed, in the order of addresses.  False: there is more
 * than is told.
 */
extern bool accesses_end(void (*tell)(uint64_t from, uint64_t to, ExplorerMode mode));

#endif /* SHERMAN_SIM_ACCESSES_H */
