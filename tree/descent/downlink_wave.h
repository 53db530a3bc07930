/*
 * downlink_wave.h
 *		The downlinks of many split leaves, for insert_wave.c.
 */
#ifndef SHERMAN_DOWNLINK_WAVE_H
#define SHERMAN_DOWNLINK_WAVE_H

#include "tree/client/wave.h"
#include "tree/lock/lock_many.h"
#include "tree/descent/descent.h"

/* A leaf that is linked to from its left neighbor, and not yet from its parent. */
typedef struct Downlink
{
	const Path *path; /* of the leaf that was split */
	uint64_t left;
	uint64_t right;
	uint64_t separator[LINE_WORDS];
	/* While they are inserted: */
	uint64_t parent; /* where it goes, as far as that is known; 0: it is not */
	uint64_t above;  /* the node that led there, 0: not known */
	bool waits;      /* for another wave, as this one has no new nodes for its parent, or no room for that */
	bool done;
} Downlink;

/* What the caller lends: of no use to it while downlinks_insert() runs. */
typedef struct DownlinkRoom
{
	Wave *wave;
	uint64_t *images; /* DOWNLINK_ROOM_BYTES */
} DownlinkRoom;

#define DOWNLINK_ROOM_BYTES (128u * INNER_BYTES)

/*
 * Inserts downlinks of leaves, which come in the order of their keys: parents are locked by try, read and written by waves, each once
 * for all of its new children; those without room are split into as many nodes as these take, whose own downlinks go in the same way.
 * What waves do not do, as a parent is locked or integers do not tell the place, downlink_insert() does, one by one.  As
 * downlink_insert(); nothing is held.
 */
extern TreeStatus downlinks_insert(Tree *tree, Downlink *links, uint32_t count, const DownlinkRoom *room);

#endif /* SHERMAN_DOWNLINK_WAVE_H */
