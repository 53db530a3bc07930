/*
 * places.c
 *		What the places of an extent tell by their first lines: nodes that are used or free, or places that were never written.
 */
#include "tree/space/space.h"

TreeStatus
places_read(Tree *tree, uint32_t memory_node, uint64_t offset, uint32_t places, uint64_t (*lines)[LINE_WORDS])
{
	uint32_t most = access_capabilities(tree->client, memory_node)->max_chain;
	TreeStatus status = TREE_OK;

	assert(places <= CHUNK_PLACES_MAX);
	assert(most > 0 && most <= FABRIC_MAX_CHAIN);
	for (uint32_t first = 0; first < places && status == TREE_OK; first += most)
	{
		FabricOp ops[FABRIC_MAX_CHAIN];
		uint32_t count = places - first < most ? places - first : most;

		for (uint32_t i = 0; i < count; i++)
			ops[i] = (FabricOp){.opcode = FABRIC_READ,
			                    .region = FABRIC_NODES,
			                    .length = LINE_BYTES,
			                    .offset = offset + (uint64_t) (first + i) * tree->geometry.leaf_bytes,
			                    .buffer = lines[first + i]};
		status = access_repeat(tree, memory_node, ops, (int) count, "reads of first lines");
	}
	return status;
}

bool
place_is_empty(const uint64_t *line)
{
	uint64_t seen = 0;

	for (uint32_t word = 0; word < LINE_WORDS; word++)
		seen |= line[word];
	return seen == 0;
}

bool
place_is_own(const Tree *tree, uint32_t memory_node, const uint64_t *line, uint64_t offset)
{
	return line[HEADER_TREE] == tree->tree && line[HEADER_SELF] == pointer_make(memory_node, offset);
}

bool
stripe_is_whole(const Tree *tree, uint32_t memory_node, const uint64_t *line, uint64_t offset)
{
	return !place_is_empty(line) && (!place_is_own(tree, memory_node, line, offset) || node_level(line) > 0);
}

bool
place_is_free_node(const Tree *tree, uint32_t memory_node, const uint64_t *line, uint64_t offset,
                   uint32_t level)
{
	return place_is_own(tree, memory_node, line, offset) && (node_flags(line) & NODE_FREE) != 0 &&
	       node_level(line) == level;
}
