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
 * Makes an extent that a call returned the one to take chunks from, unless another process did: so of one that is the instance's as a
 * whole, `own`, all chunks are put into the runs once. Under the spin lock. *left: as of runs_put().
 */
static void
extent_install(TreeState *state, StateAtNode *at, bool own, const DirectoryExtent *extent,
               const StatePast *past, StateRun *left)
{
	StateRun chunks = {.next = extent->offset + DIRECTORY_OTHER_BUMP,
	                   .end = extent->offset + extent->bytes,
	                   .generation = extent->generation,
	                   .use = STATE_CHUNKS};

	assert(extent->bytes >= EXTENT_MIN_BYTES);
	assert(extent->offset % FABRIC_STRIPE_BYTES == 0);
	*left = (StateRun){.next = 0};
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
	at->exhausted = extent->whole;
	at->untaken = past->extent == extent->offset ? past->next : extent->bytes;
	at->claimed = own;
	if (own)
		runs_put(at, &chunks, left);
}

/*
 * Gets an extent with room, by a call. The caller saw that extent number `seen` is exhausted (or 0: knows
 * none). `wanted`: as in DirectoryExtentRequest.
 */
static TreeStatus
extent_get(Tree *tree, uint32_t memory_node, uint32_t seen, uint32_t wanted)
{
	StateAtNode *at = tree_part(tree, memory_node);
	DirectoryExtent extent;
	StatePast past = {.extent = 0};
	StateRun left = {.next = 0};
	TreeStatus status;

	assert(!tree->client->holding);
	if (at == NULL)
		return extent_no_part(tree);
	/* Where a tree has copies it has no shares: each of the two memory nodes has a record to grow. */
	status = directory_extent_wanted(tree->client, memory_node, tree->tree,
	                                 tree->replicas != NULL ? memory_node : tree_home(tree->root), seen,
	                                 wanted, &extent);
	if (status == TREE_OK && tree->replicas != NULL)
		status = replicas_extend(tree, extent.offset, extent.bytes);
	if (status == TREE_OK && seen == 0)
		status = past_begin(tree, memory_node, extent.offset, extent.extents, &past);
	if (status != TREE_OK)
		return status;
	spin_lock(&tree->state->spin);
	if (extent.extents > at->extents && seen != 0)
		TREE_COUNT(tree, extents, 1);
	/*
	 * Beside other instances one whose chunks are all taken is theirs, and the first one that is known is perhaps an earlier
	 * incarnation's, whose chunks reclaim.c looks through: neither is asked for as a whole.
	 */
	/* Race -- others have learned of the first one since this process asked for it, and this is one that they are about to install. */
	if (seen != 0 || at->extents == 0)
		extent_install(tree->state, at, wanted > 0 && extent.whole, &extent, &past, &left);
	spin_unlock(&tree->state->spin);
	runs_left(tree, memory_node, &left);
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
	return known ? TREE_OK : extent_get(tree, memory_node, 0, 0);
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

/*
 * What an instance that has its trees for itself has taken of extent number `seen`, all from `first` on: put into the runs by the first
 * process that knows of it.  So nothing is lost with the answer to a FETCH_ADD.
 */
static void
chunks_claim(Tree *tree, uint32_t memory_node, uint32_t seen, const StateRun *extent, uint64_t first)
{
	StateAtNode *at = tree_part(tree, memory_node);
	StateRun chunks = *extent, left = {.next = 0};
	uint64_t bytes = extent->end - extent->next;

	spin_lock(&tree->state->spin);
	if (at->extents == seen && !at->claimed)
	{
		at->claimed = 1;
		chunks.next += first < bytes ? first : at->untaken;
		if (chunks.next < chunks.end)
			runs_put(at, &chunks, &left);
	}
	spin_unlock(&tree->state->spin);
	runs_left(tree, memory_node, &left);
}

/*
 * Takes so many bytes, a number of chunks, of extent number `seen` by FETCH_ADD: perhaps in vain.  Beside other instances nobody can
 * tell which chunks were taken by one whose answer is lost: they are lost with it.
 */
static TreeStatus
chunks_add(Tree *tree, uint32_t memory_node, uint64_t bytes, uint32_t seen, const StateRun *extent)
{
	StateAtNode *at = tree_part(tree, memory_node);
	FabricOp op = {.opcode = FABRIC_FETCH_ADD,
	               .region = FABRIC_NODES,
	               .length = 8,
	               .offset = extent->next + offsetof(ExtentHeader, bump),
	               .operand = bytes};
	StateRun chunks = *extent;
	TreeStatus status = access_execute(tree, memory_node, &op, 1);

	/* TREE_RETRY: perhaps they were taken. */
	if (status != TREE_OK)
		return status == TREE_RETRY ? TREE_OK : status;
	if (op.result % FABRIC_STRIPE_BYTES != 0)
		return client_fail(tree->client, TREE_DAMAGED, "memory node %u: extent %llx is used up to %llx",
		                   memory_node, (unsigned long long) extent->next, (unsigned long long) op.result);
	if (tree->client->shared->options.alone)
		chunks_claim(tree, memory_node, seen, extent, op.result);
	/* Whoever takes the last of it need not ask once more to learn that. */
	if (op.result + bytes >= extent->end - extent->next)
		extent_exhaust(tree, at, seen);
	if (tree->client->shared->options.alone || op.result >= extent->end - extent->next)
		return TREE_OK;
	chunks.next += op.result;
	if (chunks.next + bytes < chunks.end)
		chunks.end = chunks.next + bytes;
	runs_keep(tree, memory_node, &chunks);
	return TREE_OK;
}

TreeStatus
extent_chunks(Tree *tree, uint32_t memory_node, uint64_t wanted)
{
	StateAtNode *at = tree_part(tree, memory_node);
	bool alone = tree->client->shared->options.alone;
	StateRun extent = {.use = STATE_CHUNKS};
	uint32_t seen;
	bool usable;

	assert(wanted > 0 && wanted <= UINT32_MAX);
	if (at == NULL)
		return extent_no_part(tree);
	spin_lock(&tree->state->spin);
	extent.next = at->extent_offset;
	extent.end = at->extent_offset + at->extent_bytes;
	extent.generation = at->extent_generation;
	seen = at->extents;
	usable = at->extent_bytes != 0 && !at->exhausted;
	spin_unlock(&tree->state->spin);
	if (!usable)
		return extent_get(tree, memory_node, seen, alone && seen != 0 ? (uint32_t) wanted : 0);
	return chunks_add(tree, memory_node, chunks_round_up(alone ? extent.end - extent.next : wanted), seen,
	                  &extent);
}
