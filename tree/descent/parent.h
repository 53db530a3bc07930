/*
 * parent.h
 *		A parent in a wave of downlinks: what downlink_wave.c (the wave) and parent_split.c (parents without room) share.
 */
#ifndef SHERMAN_PARENT_H
#define SHERMAN_PARENT_H

#include "tree/descent/downlink_wave.h"

/* Parents of a wave, and images: theirs, those of new nodes, and one more for each root that is split. */
#define PARENTS_MAX 64u
#define PIECES_MAX (PARENTS_MAX + SPARE_INNER)

/* A node that a parent is split into: the leftmost one stays at its address, unless it is the root. */
typedef struct Piece
{
	uint64_t pointer;
	uint64_t *image;
	struct Piece *next; /* to the right; NULL: the last one */
} Piece;

typedef struct Parent
{
	uint64_t pointer;
	LockHandle lock;
	RedoHeader redo;
	uint32_t first; /* its downlinks: [first, end) */
	uint32_t end;
	uint32_t added;
	uint32_t pieces;
	bool short_of; /* nodes to be split into */
	Piece *leftmost;
	Piece *root;       /* the next image of a root that is split, above its pieces; else NULL */
	TreeStatus status; /* of new nodes that were waited for, and then of itself */
} Parent;

typedef struct Parents
{
	Tree *tree;
	uint32_t level; /* of the parents */
	Downlink *links;
	const DownlinkRoom *room;
	uint32_t count;
	uint32_t piece_count;
	uint32_t
		short_of; /* so many new nodes parents were short of, beside what their downlinks fill (nodes_reserve()) */
	Parent parents[PARENTS_MAX];
	Piece pieces[PIECES_MAX];
} Parents;

/* The next piece that is not in use, with room for an image. */
static inline Piece *
piece_begin(Parents *parents, uint64_t pointer)
{
	Piece *piece = &parents->pieces[parents->piece_count];

	assert(parents->piece_count < PIECES_MAX);
	piece->pointer = pointer;
	piece->image = parents->room->images + (size_t) parents->piece_count++ * (INNER_BYTES / 8);
	piece->next = NULL;
	return piece;
}

/* ---- parent_split.c: in private memory; the parent is locked ---- */

/*
 * Splits a piece that is full, in whose image a downlink goes in front of cell `index`; `rest` of them, this one included, go there or
 * further right.  False: there are not enough new nodes now (parents->short_of says so), and nothing has changed.
 */
extern bool parent_split(Parents *parents, Parent *parent, Piece *piece, uint32_t index, uint32_t rest);
/* All downlinks are placed, one at least: completes the images that are to be written. */
extern void parent_complete(Parents *parents, Parent *parent);

#endif /* SHERMAN_PARENT_H */
