/*
 * replicas.h
 *		What replicas.c and replicas_compare.c share. doc/internals/replicas.md has the order of writes and why it is
 *		safe.
 */
#ifndef SHERMAN_TREE_REPLICAS_H
#define SHERMAN_TREE_REPLICAS_H

#include "tree/client/directory.h"

/* A run of bytes at the home, and where its copy is. */
typedef struct ReplicaPiece
{
	uint64_t offset;
	uint64_t bytes;
	uint64_t copy;
} ReplicaPiece;

/* Of an open tree: where its copies are, as far as it was asked. */
typedef struct Replicas
{
	uint32_t home;          /* the memory node that all pointers name, until it is given up */
	uint32_t node;          /* the one that has the copies */
	TreeReplicaState reads; /* of a reader's handle: what it was told */
	uint32_t count;
	uint32_t room;
	ReplicaPiece *pieces;                    /* ascending by offset */
	RedoHeader redo;                         /* of the copy's channel */
	uint64_t node_image[NODE_MAX_BYTES / 8]; /* replicas_restore() */
} Replicas;

/*
 * Where the copy of this place is: *piece is valid until another piece becomes known. The copy's memory node
 * is asked if it is not known and nothing is held. TREE_DAMAGED: there is none.
 */
extern TreeStatus replicas_know(Tree *tree, uint64_t offset, const ReplicaPiece **piece);
extern TreeReplicaState replicas_state(const Tree *tree);

#endif /* SHERMAN_TREE_REPLICAS_H */
