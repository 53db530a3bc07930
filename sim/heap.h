/*
 * heap.h
 *		Memory of the explorer's own, apart from all that a run of a simulation has: snapshot_return() leaves it as it is.
 */
#ifndef SHERMAN_SIM_HEAP_H
#define SHERMAN_SIM_HEAP_H

#include <stdbool.h>
#include <stddef.h>

/* As realloc(). Aborts without memory. */
extern void *heap_resize(void *memory, size_t bytes);
/* Zeroed. */
extern void *heap_zeroed(size_t bytes);
/* As free(). */
extern void heap_free(void *memory);
/* Whether all of it begins there. */
extern bool heap_begins_at(const void *memory);

#endif /* SHERMAN_SIM_HEAP_H */
