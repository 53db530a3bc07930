/*
 * keysort.h
 *		Sorting of lossless keys for a build.
 */
#ifndef SHERMAN_KEYSORT_H
#define SHERMAN_KEYSORT_H

#include "keys.h"

typedef struct KeySort KeySort;

/*
 * Begins a sort of keys that agree in their leading bit, in CurrentMemoryContext.  The format is lossless.
 * Takes at most memory_kb of memory, and temporary files beyond it.
 */
extern KeySort *key_sort_begin(const ShermanKeys *keys, int memory_kb);
/* Adds a key and whether its row is dead. Raises what a sort may (no space for temporary files). */
extern void key_sort_put(KeySort *sort, const TreeKey *key, bool dead);
/* Sorts by (normalized key, TID). Interrupts are served. */
extern void key_sort_perform(KeySort *sort);
/* The next key in order: fills norm, block, offset and *dead. False: there are no more. */
extern bool key_sort_next(KeySort *sort, TreeKey *key, bool *dead);
extern void key_sort_end(KeySort *sort);

#endif							/* SHERMAN_KEYSORT_H */
