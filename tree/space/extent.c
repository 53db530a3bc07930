/*
 * extent.c
 *		A tree's extents at one memory node, and the chunks that are taken from the newest one.
 */
#include "tree/space/space.h"
#include "tree/space/allocate.h"

TreeStatus
extent_header_read(Tree *tree, uint32_t memory_node, uint64_t extent, ExtentHeader *header, bool *good)
{
	FabricOp op = {.opcode = FABRIC_READ,
	               .region = FABRIC_NODES,
	               .length = sizeof(*header),
	               .offset = extent,
	               .buffer = header};
	TreeStatus status = access_repeat(tree, memory_node, &op, 1, "reads of an extent's header");

	*good = status == TREE_OK && header->magic == EXTENT_MAGIC && header->tree == tree->tree &&
	        header->copy_of == 0 && header->bytes >= EXTENT_MIN_BYTES && header->bytes <= EXTENT_MAX_BYTES &&
	        header->bytes % FABRIC_STRIPE_BYTES == 0 && header->bump % FABRIC_STRIPE_BYTES == 0 &&
	        header->generation != 0;
	return status;
}

uint64_t
extent_taken(const ExtentHeader *header)
{
	return header->bump < header->bytes ? header->bump : header->bytes;
}

/*
 * What was taken so far of the extents up to this newest one, from which nothing was taken in this incarnation: reclaim.c looks for
 * what of it is free.
 */
static TreeStatus
past_begin(Tree *tree, uint32_t memory_node, uint64_t extent, uint32_t number, StatePast *past)
{
	ExtentHeader header;
	bool good;
	TreeStatus status = extent_header_read(tree, memory_node, extent, &header, &good);

	memset(past, 0, sizeof(*past));
	if (status != TREE_OK || !good)
		return status;
	past->extent = extent;
	past->next = extent_taken(&header);
	past->number = number;
	return TREE_OK;
}

TreeStatus
extent_no_part(Tree *tree)
{
	return client_fail(tree->client, TREE_NO_MEMORY, "more trees in use than there is shared memory for");
}

/*
 * Makes an extent that a call returned the one to take chunks from, unless another process did. Under the
 * spin lock.
 */
static void
extent_install(TreeState *state, StateAtNode *at, const DirectoryExtent *extent, const StatePast *past)
{
	assert(extent->bytes >= EXTENT_MIN_BYTES);
	assert(extent->offset % FABRIC_STRIPE_BYTES == 0);
	if (extent->extents <= at->extents)
		return;
	/* From here on chunks are taken in this incarnation. */
	if (at->extents == 0 && at->past.look == STATE_LOOK_DUE && !state->past_over)
		at->past = *past;
	/* Readers of estimates take no lock. */
	__atomic_fetch_add(&state->extent_bytes, extent->tree_bytes - at->tree_bytes, __ATOMIC_RELAXED);
	at->extent_offset = extent->offset;
	at->extent_bytes = extent->bytes;
	at->extent_generation = extent->generation;
	at->extents = extent->extents;
	at->tree_bytes = extent->tree_bytes;
	at->exhausted = 0;
}

/*
 * Gets an extent with room, by a call. The caller saw that extent number `seen` is exhausted (or 0: knows
 * none).
 */
static TreeStatus
extent_get(Tree *tree, uint32_t memory_node, uint32_t seen)
{
	StateAtNode *at = tree_part(tree, memory_node);
	DirectoryExtent extent;
	StatePast past = {.extent = 0};
	TreeStatus status;

	assert(!tree->client->holding);
	if (at == NULL)
		return extent_no_part(tree);
	/* Where a tree has copies it has no shares: each of the two memory nodes has a record to grow. */
	status = directory_extent(tree->client, memory_node, tree->tree,
	                          tree->replicas != NULL ? memory_node : tree_home(tree->root), seen, &extent);
	if (status == TREE_OK && tree->replicas != NULL)
		status = replicas_extend(tree, extent.offset, extent.bytes);
	if (status == TREE_OK && seen == 0)
		status = past_begin(tree, memory_node, extent.offset, extent.extents, &past);
	if (status != TREE_OK)
		return status;
	spin_lock(&tree->state->spin);
	if (extent.extents > at->extents && seen != 0)
		TREE_COUNT(tree, extents, 1);
	extent_install(tree->state, at, &extent, &past);
	spin_unlock(&tree->state->spin);
	return TREE_OK;
}

TreeStatus
allocate_begin(Tree *tree, uint32_t memory_node)
{
	StateAtNode *at = tree_part(tree, memory_node);
	bool known;

	if (at == NULL)
		return extent_no_part(tree);
	spin_lock(&tree->state->spin);
	known = at->extents != 0;
	spin_unlock(&tree->state->spin);
	return known ? TREE_OK : extent_get(tree, memory_node, 0);
}

/* Nothing is left of extent number `seen`. */
static void
extent_exhaust(Tree *tree, StateAtNode *at, uint32_t seen)
{
	spin_lock(&tree->state->spin);
	if (at->extents == seen)
		at->exhausted = 1;
	spin_unlock(&tree->state->spin);
}

TreeStatus
extent_run_take(Tree *tree, uint32_t memory_node, StateUse use, uint64_t bytes, StateRun *run)
{
	StateAtNode *at = tree_part(tree, memory_node);

	assert(bytes > 0);
	bytes = (bytes + CHUNK_BYTES - 1) / CHUNK_BYTES * CHUNK_BYTES;
	if (at == NULL)
		return extent_no_part(tree);
	for (int attempt = 0; attempt < ALLOCATE_ATTEMPTS; attempt++)
	{
		uint64_t offset, length, generation;
		uint32_t seen;
		bool usable;
		FabricOp op;
		TreeStatus status;

		spin_lock(&tree->state->spin);
		offset = at->extent_offset;
		length = at->extent_bytes;
		generation = at->extent_generation;
		seen = at->extents;
		usable = length != 0 && !at->exhausted;
		spin_unlock(&tree->state->spin);
		if (!usable)
		{
			status = extent_get(tree, memory_node, seen);
			if (status != TREE_OK)
				return status;
			continue;
		}
		memset(&op, 0, sizeof(op));
		op.opcode = FABRIC_FETCH_ADD;
		op.region = FABRIC_NODES;
		op.length = 8;
		op.offset = offset + offsetof(ExtentHeader, bump);
		op.operand = bytes;
		status = access_execute(tree, memory_node, &op, 1);
		if (status == TREE_RETRY)
			continue; /* perhaps taken, and then lost */
		if (status != TREE_OK)
			return status;
		if (op.result % FABRIC_STRIPE_BYTES != 0)
			return client_fail(tree->client, TREE_DAMAGED, "memory node %u: extent %llx is used up to %llx",
			                   memory_node, (unsigned long long) offset, (unsigned long long) op.result);
		/* Whoever takes the last of it need not ask once more to learn that. */
		if (op.result + bytes >= length)
			extent_exhaust(tree, at, seen);
		if (op.result < length)
		{
			*run = (StateRun){.next = offset + op.result, .generation = generation, .use = use};
			run->end = offset + (op.result + bytes < length ? op.result + bytes : length);
			assert(run->next % FABRIC_STRIPE_BYTES == 0 && run->end % FABRIC_STRIPE_BYTES == 0);
			return TREE_OK;
		}
	}
	return client_fail(tree->client, TREE_UNREACHABLE, "memory node %u: no chunk after %d attempts",
	                   memory_node, ALLOCATE_ATTEMPTS);
}
