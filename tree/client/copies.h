/*
 * copies.h
 *		What copies.c and copies_compare.c share. doc/internals/replicas.md tells the order of writes and why it is
 *		safe.
 */
#ifndef SHERMAN_TREE_COPIES_H
#define SHERMAN_TREE_COPIES_H

#include "tree/client/directory.h"

/* A run of bytes at the home, and where its copy is. */
typedef struct CopyPiece
{
	uint64_t offset;
	uint64_t bytes;
	uint64_t copy;
} CopyPiece;

/* Of an open tree: where its copies are, as far as it was asked. */
typedef struct Copies
{
	uint32_t home; /* the memory node that all pointers name, until it is given up */
	uint32_t node; /* the one that has the copies */
	uint32_t count;
	uint32_t room;
	CopyPiece *pieces;                       /* ascending by offset */
	RedoHeader redo;                         /* of the copy's channel */
	uint64_t node_image[NODE_MAX_BYTES / 8]; /* copies_restore() */
} Copies;

/*
 * Where the copy of this place is: *piece is valid until another piece becomes known. The copy's memory node
 * is asked if it is not known and nothing is held. TREE_DAMAGED: there is none.
 */
extern TreeStatus copies_know(Tree *tree, uint64_t offset, const CopyPiece **piece);
extern TreeCopyState copies_state(const Tree *tree);

#endif /* SHERMAN_TREE_COPIES_H */
