/*
 * downlink_wave.h
 *		The downlinks of many split leaves, for insert_wave.c.
 */
#ifndef SHERMAN_DOWNLINK_WAVE_H
#define SHERMAN_DOWNLINK_WAVE_H

#include "tree/client/wave.h"
#include "tree/lock/lock_many.h"

/* A leaf that is linked to from its left neighbor, and not yet from its parent. */
typedef struct Downlink
{
	const Path *path; /* of the leaf that was split */
	uint64_t left;
	uint64_t right;
	uint64_t separator[LINE_WORDS];
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
 * of its new children.  What that does not do, as a parent is full or locked or integers do not tell the place, downlink_insert()
 * does, one by one.  As downlink_insert(); nothing is held.
 */
extern TreeStatus downlinks_insert(Tree *tree, Downlink *links, uint32_t count, const DownlinkRoom *room);

#endif /* SHERMAN_DOWNLINK_WAVE_H */
