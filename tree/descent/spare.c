/*
 * spare.c
 *		Nodes taken ahead for the splits of waves (insert_wave.c, downlink_wave.c), as none can be asked for under a lock.  What a wave
 *		leaves is for the next one, or is given back with the handle.  New nodes of a split whose chain was lost are given back where
 *		nothing can link to them.
 */
#include "tree/descent/descent.h"
#include "tree/space/allocate.h"

static SpareNodes **
spare_of(Tree *tree, uint32_t level)
{
	return level == 0 ? &tree->spare_leaves : &tree->spare_inner;
}

uint32_t
spare_count(const Tree *tree, uint32_t level)
{
	const SpareNodes *spare = level == 0 ? tree->spare_leaves : tree->spare_inner;

	return spare == NULL ? 0 : spare->count;
}

/* Makes room for them, once for each handle. */
static SpareNodes *
spare_room(Tree *tree, uint32_t level, uint32_t most)
{
	SpareNodes **spare = spare_of(tree, level);

	if (*spare == NULL)
	{
		*spare = client_allocate_beside(tree->client, tree, sizeof(SpareNodes) + most * sizeof(SpareNode));
		if (*spare != NULL)
			(*spare)->count = 0;
	}
	return *spare;
}

TreeStatus
spare_fill(Tree *tree, uint32_t level, uint32_t count)
{
	uint32_t most = level == 0 ? SPARE_LEAVES : SPARE_INNER;
	TreeStatus status = TREE_OK;
	SpareNodes *spare;

	assert(!tree->client->holding);
	if (count == 0)
		return TREE_OK;
	spare = spare_room(tree, level, most);
	if (spare == NULL)
		return client_fail(tree->client, TREE_NO_MEMORY, "no memory for nodes taken ahead");
	if (count > most)
		count = most;
	while (spare->count < count && status == TREE_OK)
	{
		SpareNode *node = &spare->nodes[spare->count];

		status = allocate_one_of(tree, pointer_memory_node(tree->root), level, count - spare->count,
		                         &node->pointer, &node->generation);
		if (status == TREE_OK)
			spare->count++;
	}
	tree->memory_full = status == TREE_MEMORY_FULL;
	return status;
}

void
spare_take(Tree *tree, uint32_t level, uint64_t *pointer, uint64_t *generation)
{
	SpareNodes *spare = *spare_of(tree, level);
	const SpareNode *node;

	assert(spare != NULL && spare->count > 0);
	node = &spare->nodes[--spare->count];
	*generation = node->generation;
	*pointer = node->pointer;
	assert(*generation != 0);
}

bool
split_is_undone(Tree *tree, uint64_t pointer, uint64_t generation)
{
	uint64_t header[LINE_WORDS];
	FabricOp op = {.opcode = FABRIC_READ,
	               .region = FABRIC_NODES,
	               .length = sizeof(header),
	               .offset = pointer_offset(pointer),
	               .buffer = header};

	assert(!tree->client->holding);
	/* Of a tree with copies only a comparison of the two tells what has come of the chain. */
	return tree->replicas == NULL && access_execute(tree, pointer_memory_node(pointer), &op, 1) == TREE_OK &&
	       header[HEADER_GENERATION] == generation;
}

void
spare_written_return(Tree *tree, uint64_t pointer, uint32_t level, uint64_t generation)
{
	assert(generation != 0);
	(void) freed_put(tree, pointer_address(pointer), level, generation);
}

void
spare_return(Tree *tree)
{
	for (uint32_t level = 0; level <= 1; level++)
	{
		SpareNodes **spare = spare_of(tree, level);

		while (spare_count(tree, level) > 0)
		{
			const SpareNode *node = &(*spare)->nodes[--(*spare)->count];

			allocate_return(tree, pointer_address(node->pointer), level, node->generation);
		}
		client_release(tree->client, *spare);
		*spare = NULL;
	}
}
