/*
 * redo.c
 *		The redo image that precedes a long rewrite of a node: written by lock_release.c, judged by the memory
 *		node's recovery.
 */
#include "tree/node/redo.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(RedoHeader) <= LINE_BYTES, "a redo header is one line: written as one packet");
_Static_assert(NODE_MAX_BYTES + FABRIC_STRIPE_BYTES <= FABRIC_REDO_BYTES,
               "header's stripe and image's stripe");

uint64_t
redo_sum(const RedoHeader *header, const void *image)
{
	assert(header->bytes <= NODE_MAX_BYTES);
	assert(image != NULL);

	return XXH3_64bits_withSeed(image, header->bytes, XXH3_64bits(header, offsetof(RedoHeader, sum)));
}

bool
redo_valid(const RedoHeader *header, const void *image, RedoTarget *target)
{
	assert(image != NULL);
	assert(target != NULL);

	/* These bytes come from a dead channel: none is valid unless the sum agrees. */
	if (header->bytes < LINE_BYTES || header->bytes > NODE_MAX_BYTES || header->bytes % LINE_BYTES != 0)
		return false;
	if (header->generation == 0 || pointer_address(header->target) == POINTER_NONE)
		return false;
	if (redo_sum(header, image) != header->sum)
		return false;
	target->offset = pointer_offset(header->target);
	target->bytes = (uint32_t) header->bytes;
	target->generation = header->generation;
	return true;
}
