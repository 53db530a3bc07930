/*
 * allocate.c
 *		Allocates memory for nodes and overflow keys.
 *
 * A tree owns extents at each memory node (granted by the memory node's service). An instance takes chunks of the
 * newest extent, all at once or by FETCH_ADD on its bump word, so that they are taken for ever before anything in them is
 * used, and cuts nodes and blocks from its chunks, which are known in shared memory. The rest of its chunks is found by the next
 * incarnation, except for chunks of blocks (reclaim.c). Leaves, inner nodes and blocks have chunks of their own:
 * inner nodes need whole stripes, and leaves that follow each other in the tree lie side by side. The first line of a
 * chunk of blocks marks it as such before the first block is cut from it.
 *
 * Every function may wait for chains and calls and is used while no lock word is held.
 */
#include "tree/space/space.h"
#include "tree/space/allocate.h"

/* Chunks in one FETCH_ADD at most (bulk load): half of the largest extent. */
#define RUN_MAX_BYTES (EXTENT_MAX_BYTES / 2)

/* A memory node gives a node away when its extents are more than this share above the average. */
#define UNBALANCED_PERCENT 10u

/* Memory nodes that are open: shares are of that number, as PostgreSQL's options have room for many more. */
static uint32_t
memory_nodes_open(const TreeClient *client)
{
	uint32_t closed = __atomic_load_n(&client->shared->closed, __ATOMIC_RELAXED);

	return client->options.nodes - (uint32_t) __builtin_popcount(closed);
}

uint32_t
allocate_shares(const Tree *tree)
{
	return tree->replicas != NULL ? 1 : memory_nodes_open(tree->client);
}

/* The memory node for a new node: the one asked for unless its share is far above the average. */
static uint32_t
memory_node_choose(Tree *tree, uint32_t memory_node)
{
	uint32_t nodes = tree->client->options.nodes;
	uint32_t least = memory_node;
	uint32_t present = 0;
	uint64_t sum = 0, own = 0, smallest = UINT64_MAX;

	assert(memory_node < nodes);
	if (nodes == 1)
		return memory_node;
	spin_lock(&tree->state->spin);
	for (uint32_t i = 0; i < nodes; i++)
	{
		const StateAtNode *at;
		uint64_t bytes;

		if (!node_is_open(tree->client->shared, i))
			continue;
		at = state_part(tree->client->shared->states, tree->state, i);
		bytes = at == NULL ? 0 : at->tree_bytes;
		present++;
		sum += bytes;
		if (i == memory_node)
			own = bytes;
		if (bytes < smallest && (tree->client->doubt & 1ull << i) == 0)
		{
			smallest = bytes;
			least = i;
		}
	}
	spin_unlock(&tree->state->spin);
	return own * present * 100 > sum * (100 + UNBALANCED_PERCENT) && own > EXTENT_MIN_BYTES ? least
	                                                                                        : memory_node;
}

static StateUse
use_of_level(uint32_t level)
{
	assert(level < LEVELS_MAX);
	return level == 0 ? STATE_LEAVES : STATE_INNER;
}

/* Takes whole chunks, as runs_take() does; if there are none, of the extents, as extent_chunks() does. */
static TreeStatus
chunks_take(Tree *tree, uint32_t memory_node, StateUse use, uint64_t bytes, uint64_t wanted, StateRun *run)
{
	StateAtNode *at = tree_part(tree, memory_node);
	TreeStatus status = at == NULL ? extent_no_part(tree) : TREE_OK;
	bool taken = false;

	for (int attempt = 0; status == TREE_OK && !taken && attempt < ALLOCATE_ATTEMPTS; attempt++)
	{
		spin_lock(&tree->state->spin);
		taken = runs_take(at, use, bytes, run);
		spin_unlock(&tree->state->spin);
		if (!taken)
			status = extent_chunks(tree, memory_node, wanted);
	}
	if (status == TREE_OK && !taken)
		status = client_fail(tree->client, TREE_UNREACHABLE, "memory node %u: no chunk after %d attempts",
		                     memory_node, ALLOCATE_ATTEMPTS);
	return status;
}

/* One of those that are known to be free at the memory node. TREE_NOT_FOUND: there is none. */
static TreeStatus
node_take_known(Tree *tree, uint32_t memory_node, uint32_t level, uint64_t *pointer, uint64_t *generation)
{
	StateAtNode *at = tree_part(tree, memory_node);
	uint32_t bytes = node_bytes(&tree->geometry, level);
	TreeStatus freed;
	uint64_t offset = 0;
	bool found;

	assert(FABRIC_STRIPE_BYTES % bytes == 0);
	if (at == NULL)
		return extent_no_part(tree);
	freed = freed_take(tree, memory_node, level, pointer, generation);
	if (freed != TREE_NOT_FOUND)
		return freed;
	spin_lock(&tree->state->spin);
	found = runs_cut(tree->client->shared->states, at, use_of_level(level), bytes, &offset, generation);
	spin_unlock(&tree->state->spin);
	if (!found)
		return TREE_NOT_FOUND;
	assert(offset % bytes == 0);
	*pointer = pointer_make(memory_node, offset);
	return TREE_OK;
}

/*
 * One node of the level from memory node `memory_node`, and no other; where an extent is asked for, `wanted` is as in
 * DirectoryExtentRequest.
 */
static TreeStatus
node_take(Tree *tree, uint32_t memory_node, uint32_t level, uint64_t wanted, uint64_t *pointer,
          uint64_t *generation)
{
	TreeStatus status;

	/*
	 * Connects to the node's memory node now: under the lock, where it will be written, nothing may connect, and
	 * whether it needs a sum must be known.
	 */
	if (access_endpoint(tree->client, memory_node) == NULL)
		return client_away(tree->client, memory_node);
	status = node_take_known(tree, memory_node, level, pointer, generation);
	if (status == TREE_NOT_FOUND && reclaim_some(tree, memory_node) > 0)
		status = node_take_known(tree, memory_node, level, pointer, generation);
	for (int attempt = 0; status == TREE_NOT_FOUND && attempt < ALLOCATE_ATTEMPTS; attempt++)
	{
		StateRun taken;

		status = chunks_take(tree, memory_node, use_of_level(level), CHUNK_BYTES, wanted, &taken);
		if (status != TREE_OK)
			return status;
		runs_keep(tree, memory_node, &taken);
		status = node_take_known(tree, memory_node, level, pointer, generation);
	}
	if (status == TREE_NOT_FOUND)
		status = client_fail(tree->client, TREE_UNREACHABLE, "memory node %u: no node after %d attempts",
		                     memory_node, ALLOCATE_ATTEMPTS);
	return status;
}

TreeStatus
allocate_node(Tree *tree, uint32_t memory_node, uint32_t level, uint64_t *pointer, uint64_t *generation)
{
	return allocate_one_of(tree, memory_node, level, 1, pointer, generation);
}

/* One node of the level; `wanted` as node_take() has it. */
static TreeStatus
node_allocate(Tree *tree, uint32_t memory_node, uint32_t level, uint64_t wanted, uint64_t *pointer,
              uint64_t *generation)
{
	uint32_t chosen;
	TreeStatus status;

	assert(!tree->client->holding);
	assert(level < LEVELS_MAX && wanted > 0);
	if (tree->replicas != NULL)
	{
		status = node_take(tree, replicas_source(tree), level, wanted, pointer, generation);
		/* It is written under a lock. */
		return status == TREE_OK ? replicas_prepare(tree, *pointer) : status;
	}
	chosen = freed_choose(tree, memory_node_choose(tree, memory_node), level);
	status = node_take(tree, chosen, level, wanted, pointer, generation);
	if (status == TREE_OK || tree->client->options.nodes == 1)
		return status;

	/* The balance is a wish: any memory node with room will do. */
	for (uint32_t i = 0; i < tree->client->options.nodes; i++)
	{
		if (status == TREE_FENCED)
			break;
		if (i != chosen && node_is_open(tree->client->shared, i))
			status = node_take(tree, i, level, wanted, pointer, generation);
		if (status == TREE_OK)
			break;
	}
	return status;
}

TreeStatus
allocate_one_of(Tree *tree, uint32_t memory_node, uint32_t level, uint32_t count, uint64_t *pointer,
                uint64_t *generation)
{
	uint32_t shares = allocate_shares(tree);

	assert(count > 0);
	/* Behind an extent for its share a memory node is above the average, and the others get theirs. */
	count = (count + shares - 1) / shares;
	return node_allocate(tree, memory_node, level, (uint64_t) count * node_bytes(&tree->geometry, level),
	                     pointer, generation);
}

TreeStatus
allocate_node_foreseen(Tree *tree, uint32_t memory_node, uint32_t level, uint64_t wanted, uint64_t *pointer,
                       uint64_t *generation)
{
	if (wanted == 0 || !tree->client->shared->options.alone)
		return allocate_node(tree, memory_node, level, pointer, generation);
	return node_allocate(tree, memory_node, level, wanted | DIRECTORY_WANTED_ALL, pointer, generation);
}

void
allocate_return(Tree *tree, uint64_t pointer, uint32_t level, uint64_t generation)
{
	uint64_t offset = pointer_offset(pointer);
	StateRun run = {.next = offset,
	                .end = offset + node_bytes(&tree->geometry, level),
	                .generation = generation + 1,
	                .use = use_of_level(level)};

	assert(offset != 0);
	runs_keep(tree, pointer_memory_node(pointer), &run);
}

/*
 * The rest of an earlier run is not used: a bulk load takes large runs and gives its last rest to the tree's
 * leaves by allocate_run_return().
 */
TreeStatus
allocate_run(Tree *tree, uint32_t memory_node, uint64_t wanted, uint64_t *bytes, uint64_t *offset,
             uint64_t *generation)
{
	StateRun run;
	TreeStatus status;

	assert(*bytes > 0);
	assert(!tree->client->holding);
	if (*bytes > RUN_MAX_BYTES)
		*bytes = RUN_MAX_BYTES;
	/* An extent that comes as a whole is no larger than the tree would have it, or uses it. */
	if (wanted == 0 || !tree->client->shared->options.alone)
		wanted = tree->client->shared->options.alone ? CHUNK_BYTES : *bytes;
	else
		wanted |= DIRECTORY_WANTED_ALL;
	status = chunks_take(tree, memory_node, STATE_LEAVES, *bytes, wanted, &run);
	if (status != TREE_OK)
		return status;
	*offset = run.next;
	*bytes = run.end - run.next;
	*generation = run.generation;
	return TREE_OK;
}

/* Gives the unused end of a run of allocate_run() to later leaves. */
void
allocate_run_return(Tree *tree, uint32_t memory_node, uint64_t bytes, uint64_t offset, uint64_t generation)
{
	StateRun run = {.next = offset, .end = offset + bytes, .generation = generation, .use = STATE_LEAVES};

	assert(offset % tree->geometry.leaf_bytes == 0);
	assert(memory_node < tree->client->options.nodes);
	runs_keep(tree, memory_node, &run);
}

/* ---- overflow keys ---- */

/*
 * Takes a chunk for blocks, and marks its first line, for later incarnations (reclaim.c): so bytes of users in blocks
 * are never taken for a node.
 */
static TreeStatus
blocks_run_take(Tree *tree, uint32_t memory_node, StateRun *run)
{
	uint64_t line[LINE_WORDS] = {0};
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = sizeof(line), .buffer = line};
	TreeStatus status = chunks_take(tree, memory_node, STATE_OVERFLOW, CHUNK_BYTES, CHUNK_BYTES, run);

	if (status != TREE_OK)
		return status;
	line[HEADER_STATE] = node_state_word(run->generation, 0, 0, NODE_BLOCKS);
	line[HEADER_TREE] = tree->tree;
	line[HEADER_GENERATION] = run->generation;
	line[HEADER_SELF] = pointer_make(memory_node, run->next);
	op.offset = run->next;
	status = access_repeat(tree, memory_node, &op, 1, "writes of a chunk's first line");
	run->next += sizeof(line);
	return status;
}

/* Length of the block that holds an image. */
static uint32_t
block_bytes(uint32_t bytes)
{
	return (bytes + OVERFLOW_ALIGN - 1) / OVERFLOW_ALIGN * OVERFLOW_ALIGN;
}

TreeStatus
allocate_overflow(Tree *tree, uint32_t memory_node, uint32_t bytes, uint64_t *offset)
{
	StateTable *table = tree->client->shared->states;
	StateAtNode *at = tree_part(tree, memory_node);
	uint32_t block = block_bytes(bytes);

	assert(bytes > 0 && bytes <= TREE_IMAGE_MAX_BYTES);
	assert(!tree->client->holding);
	if (at == NULL)
		return extent_no_part(tree);
	for (int attempt = 0; attempt < ALLOCATE_ATTEMPTS; attempt++)
	{
		StateRun taken;
		uint64_t generation;
		bool found;
		TreeStatus status;

		spin_lock(&tree->state->spin);
		found = blocks_take(table, at, block, offset);
		if (!found)
			found = runs_cut(table, at, STATE_OVERFLOW, block, offset, &generation);
		if (found)
			__atomic_fetch_add(&tree->state->overflow_bytes, block, __ATOMIC_RELAXED);
		spin_unlock(&tree->state->spin);
		if (found)
			return tree->replicas == NULL ? TREE_OK
			                              : replicas_prepare(tree, pointer_make(memory_node, *offset));
		status = blocks_run_take(tree, memory_node, &taken);
		if (status != TREE_OK)
			return status;
		runs_keep(tree, memory_node, &taken);
	}
	return client_fail(tree->client, TREE_UNREACHABLE, "memory node %u: no block after %d attempts",
	                   memory_node, ALLOCATE_ATTEMPTS);
}

void
allocate_overflow_return(Tree *tree, uint32_t memory_node, uint64_t offset, uint32_t bytes)
{
	StateAtNode *at = tree_part(tree, memory_node);
	uint32_t block = block_bytes(bytes);

	assert(offset % OVERFLOW_ALIGN == 0);
	assert(bytes > 0 && bytes <= TREE_IMAGE_MAX_BYTES);
	spin_lock(&tree->state->spin);
	if (at != NULL)
		blocks_put(tree->client->shared->states, at, offset, block, false);
	__atomic_fetch_sub(&tree->state->overflow_bytes, block, __ATOMIC_RELAXED);
	spin_unlock(&tree->state->spin);
}
