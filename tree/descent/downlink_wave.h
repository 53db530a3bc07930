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
	bool full;       /* the parent has to be split for it */
	bool done;
} Downlink;

/* What the caller lends: of no use to it while downlinks_insert() runs. */
typedef struct DownlinkRoom
{
	Wave *wave;
	uint64_t *images; /* of INNER_BYTES each */
	uint32_t count;
} DownlinkRoom;

/*
 * Inserts downlinks, which come in the order of their keys: parents are locked by try, read and written by waves, each once for all
 * of its new children.  A parent without room is split by downlink_insert() with the first of those that it lacks room for; the
 * others go by another wave.  What waves do not do, as a parent is locked or integers do not tell the place, downlink_insert() does,
 * one by one.  As downlink_insert(); nothing is held.
 */
extern TreeStatus downlinks_insert(Tree *tree, Downlink *links, uint32_t count, const DownlinkRoom *room);

#endif /* SHERMAN_DOWNLINK_WAVE_H */
