/*
 * redo.h
 *		Redo images, as the writer makes them and the memory node's service validates them.
 */
#ifndef SHERMAN_TREE_REDO_H
#define SHERMAN_TREE_REDO_H

#include "tree/node/node.h"

typedef struct RedoTarget
{
	uint64_t offset; /* in NODES */
	uint32_t bytes;
	uint64_t generation;
} RedoTarget;

/* Whether the slot holds a whole image; fills target. */
extern bool redo_valid(const RedoHeader *header, const void *image, RedoTarget *target);
/* XXH3 of the image as redo_valid() expects it. */
extern uint64_t redo_sum(const RedoHeader *header, const void *image);

#endif /* SHERMAN_TREE_REDO_H */
