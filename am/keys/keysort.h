/*
 * keysort.h
 *		Sorting of lossless keys for a build.
 */
#ifndef SHERMAN_KEYSORT_H
#define SHERMAN_KEYSORT_H

#include "am/keys/key_layout.h"

#include "storage/dsm.h"

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

/* ---- sorts of several processes, merged by one ---- */

/* What they share: in dynamic shared memory. */
typedef struct KeySortShare KeySortShare;

extern Size key_sort_share_bytes(int participants);
/* Before any other process attaches. */
extern void key_sort_share_initialize(KeySortShare *share, int participants, dsm_segment *segment);
extern void key_sort_share_attach(KeySortShare *share, dsm_segment *segment);

/*
 * This sort is one participant's of those with this leading bit: key_sort_perform() hands it over, and it returns
 * nothing itself.  To be called before the first key.
 */
extern void key_sort_hand_over_to(KeySort *sort, KeySortShare *share, int participant, bool high);

/*
 * A sort that returns what all participants have handed over, after key_sort_perform().  NULL: nothing with
 * this leading bit.
 */
extern KeySort *key_sort_take_over(const ShermanKeys *keys, int memory_kb, KeySortShare *share, bool high);

#endif							/* SHERMAN_KEYSORT_H */
