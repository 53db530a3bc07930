/*
 * reclaim.c
 *		Finds the memory in a tree's extents that earlier incarnations of the instance took and left unused.
 *
 * The shared memory of an instance knows what is free: runs that nodes are cut from, lists of free nodes. When that
 * is lost the next incarnation finds the same by reading the extents themselves, where the first line at each place
 * shows what it is. Nothing else is recorded for that.
 *
 *		zeroes				never written: in no tree, as a node is written, and that acknowledged, before anything
 *							refers to it
 *		a free node			freed.c wrote it when no pointer to it was left
 *		a node				in the tree, or lost half-way (a split's sibling that was never linked): left alone
 *		NODE_BLOCKS			of a chunk: overflow keys, left alone, all of it, whatever users have put there
 *
 * Nothing is given twice: only chunks are examined that were taken before the first one of this incarnation, in
 * extents no newer than the first that this incarnation knew. No process of this incarnation allocates there, or
 * frees a node there, before the place was examined: the first merge ends the search. No process of an earlier
 * incarnation writes there, for its channels were fenced when this one was attached. For a tree whose state was
 * reused and made anew, the same holds from when its state was made: no process had it open then, and no chain of it
 * was indeterminate. doc/internals/tree-protocol.md explains why this is right.
 */
#include "tree/space/space.h"
#include "tree/space/allocate.h"

/* Chunks that one call looks at: of leaves of 1 KB as many lines as 256 nodes have, and so many chains. */
#define PIECE_CHUNKS 16
/* Pieces that are examined before a tree takes another chunk: 1 MB of extents for each 16 KB. */
#define SOME_PIECES 4
/* How long to wait for another process that examines a piece, and how often before a merge is put off. */
#define WAIT_MS 1
#define END_WAITS 100

/* A piece in progress. */
typedef struct Reclaim
{
	Tree *tree;
	uint32_t memory_node;
	StatePast past;
	ExtentHeader header; /* of past.extent */
	uint64_t lines[CHUNK_PLACES_MAX][LINE_WORDS];
	uint64_t bytes; /* found free */
} Reclaim;

/* Ends the search: what was not examined by now never will be. False: another process is examining a piece. */
static bool
give_up(Tree *tree, uint32_t memory_node)
{
	StateAtNode *at = state_part(tree->client->shared->states, tree->state, memory_node);
	bool over;

	assert(memory_node < tree->client->options.nodes);
	spin_lock(&tree->state->spin);
	if (at == NULL)
	{
		/* Parts that are made later search nothing, either. */
		tree->state->past_over = 1;
		spin_unlock(&tree->state->spin);
		return true;
	}
	if (at->past.look == STATE_LOOK_DUE)
		at->past.look = STATE_LOOK_OVER;
	over = at->past.look == STATE_LOOK_OVER;
	spin_unlock(&tree->state->spin);
	return over;
}

bool
reclaim_end(Tree *tree)
{
	TreeClient *client = tree->client;
	const TreeEnvironment *environment = &client->options.environment;
	int waits = 0;

	assert(!client->holding);
	for (uint32_t i = 0; i < client->options.nodes; i++)
		while (!give_up(tree, i))
		{
			if (waits++ == END_WAITS)
				return false;
			environment->sleep(environment->argument, client->slot, WAIT_MS);
		}
	return true;
}

/* ---- one chunk ---- */

/* Keeps a node's place for later nodes, if it is free. */
static TreeStatus
place_look(Reclaim *reclaim, const uint64_t *line, uint64_t offset, uint32_t level)
{
	Tree *tree = reclaim->tree;
	bool empty = place_is_empty(line);
	bool freed = place_is_free_node(tree, reclaim->memory_node, line, offset, level);
	TreeStatus status;

	if (!empty && !freed)
		return TREE_OK;
	status = freed_put(tree, pointer_make(reclaim->memory_node, offset), level,
	                   empty ? reclaim->header.generation : line[HEADER_GENERATION]);
	if (status == TREE_OK)
		reclaim->bytes += node_bytes(&tree->geometry, level);
	/* Other processes have changed the list twice meanwhile: the place is left to another incarnation. */
	return status == TREE_RETRY ? TREE_OK : status;
}

/* Keeps places to which nothing was written for later use, if they are all that there are in whole stripes. */
static bool
empty_keep(Reclaim *reclaim, StateUse use, uint64_t (*lines)[LINE_WORDS], uint32_t places, uint64_t offset)
{
	StateRun run = {.next = offset,
	                .end = offset + (uint64_t) places * reclaim->tree->geometry.leaf_bytes,
	                .generation = reclaim->header.generation,
	                .use = use};

	for (uint32_t i = 0; i < places; i++)
		if (!place_is_empty(lines[i]))
			return false;
	if (!runs_found(reclaim->tree, reclaim->memory_node, &run))
		return false;
	reclaim->bytes += run.end - run.next;
	return true;
}

/* Looks at one stripe, whose places' first lines were read. */
static TreeStatus
stripe_look(Reclaim *reclaim, uint64_t (*lines)[LINE_WORDS], uint64_t offset)
{
	uint32_t leaf_bytes = reclaim->tree->geometry.leaf_bytes;
	uint32_t places = FABRIC_STRIPE_BYTES / leaf_bytes;
	TreeStatus status = TREE_OK;

	if (empty_keep(reclaim, STATE_STRIPES, lines, places, offset))
		return TREE_OK;
	/* Behind an inner node's first line are users' bytes. */
	if (stripe_is_whole(reclaim->tree, reclaim->memory_node, lines[0], offset))
		return place_look(reclaim, lines[0], offset, node_level(lines[0]));
	for (uint32_t i = 0; i < places && status == TREE_OK; i++)
		status = place_look(reclaim, lines[i], offset + i * (uint64_t) leaf_bytes, 0);
	return status;
}

/*
 * Whether blocks may have been cut from the chunk whose lines were read; also true if the chunk is not marked at all.
 */
static bool
chunk_is_blocks(const Reclaim *reclaim, uint64_t offset)
{
	const uint64_t *first = reclaim->lines[0];

	return !place_is_empty(first) && (!place_is_own(reclaim->tree, reclaim->memory_node, first, offset) ||
	                                  (node_flags(first) & NODE_BLOCKS) != 0);
}

/*
 * Examines the chunk from `start` to `next` of the extent. It is not examined again, even if this fails.
 */
static TreeStatus
chunk_look(Reclaim *reclaim, uint64_t start)
{
	uint32_t leaf_bytes = reclaim->tree->geometry.leaf_bytes;
	uint32_t stripe = FABRIC_STRIPE_BYTES / leaf_bytes;
	uint32_t places = (uint32_t) (reclaim->past.next - start) / leaf_bytes;
	uint64_t offset = reclaim->past.extent + start;
	TreeStatus status;

	assert(reclaim->past.next > start && places % stripe == 0);
	status = places_read(reclaim->tree, reclaim->memory_node, offset, places, reclaim->lines);
	if (status != TREE_OK)
		return status;
	reclaim->past.next = start;
	if (chunk_is_blocks(reclaim, offset) || empty_keep(reclaim, STATE_FOUND, reclaim->lines, places, offset))
		return TREE_OK;
	/* Downward, as chunks are: so runs that lie side by side become one. */
	for (uint32_t i = places; i > 0 && status == TREE_OK; i -= stripe)
		status =
			stripe_look(reclaim, &reclaim->lines[i - stripe], offset + (i - stripe) * (uint64_t) leaf_bytes);
	return status;
}

/* ---- pieces ---- */

/*
 * Looks at a piece of the newest extent that is left, from its end on, where the incarnation before has taken last; or goes on
 * to the one before it, from which nobody takes chunks any more.  Their numbers go down, by more than one where extents were given
 * back: damaged headers that refer to each other in a circle have nothing looked at, and found free, twice.
 */
static TreeStatus
piece_look(Reclaim *reclaim)
{
	StatePast *past = &reclaim->past;
	bool good;
	TreeStatus status =
		extent_header_read(reclaim->tree, reclaim->memory_node, past->extent, &reclaim->header, &good);
	/* Chunks are of one length, whatever was taken meanwhile. */
	uint64_t first = reclaim->header.bump % CHUNK_BYTES;

	if (status != TREE_OK)
		return status;
	if (!good || reclaim->header.number > past->number || first < DIRECTORY_OTHER_BUMP)
	{
		past->extent = 0;
		return TREE_OK;
	}
	if (past->next == 0)
		past->next = extent_taken(&reclaim->header);
	for (int chunk = 0; chunk < PIECE_CHUNKS && past->next > first && status == TREE_OK; chunk++)
		status = chunk_look(reclaim, first + (past->next - first - 1) / CHUNK_BYTES * CHUNK_BYTES);
	if (status == TREE_OK && past->next <= first)
		*past =
			(StatePast){.extent = reclaim->header.previous, .number = (uint32_t) reclaim->header.number - 1};
	return status;
}

/* Whether there is something to examine; the tree's extents there are known then. */
static TreeStatus
past_begin(Tree *tree, uint32_t memory_node)
{
	const StateAtNode *at = tree_part(tree, memory_node);
	TreeRecord record;
	TreeStatus status;
	bool known;

	if (at == NULL)
		return TREE_NO_MEMORY;
	spin_lock(&tree->state->spin);
	known = at->extents != 0 || at->past.look == STATE_LOOK_OVER;
	spin_unlock(&tree->state->spin);
	if (known)
		return TREE_OK;
	status = directory_record(tree->client, memory_node, tree->tree, &record);
	if (status == TREE_OK && record.extents > 0)
		return allocate_begin(tree, memory_node);
	if (status == TREE_OK || status == TREE_NOT_FOUND)
	{
		(void) give_up(tree, memory_node);
		return TREE_OK;
	}
	return status;
}

/* Examines a piece at one memory node. TREE_END: there is none; or, if *others, another process examines it. */
static TreeStatus
reclaim_at(Tree *tree, uint32_t memory_node, uint64_t *bytes, bool *others)
{
	Reclaim reclaim = {.tree = tree, .memory_node = memory_node};
	StateAtNode *at;
	uint32_t look;
	TreeStatus status = past_begin(tree, memory_node);

	*others = false;
	if (status != TREE_OK)
		return status;
	at = tree_part(tree, memory_node);
	spin_lock(&tree->state->spin);
	look = at->past.look;
	reclaim.past = at->past;
	if (look == STATE_LOOK_DUE)
		at->past.look = STATE_LOOK_UNDER_WAY;
	spin_unlock(&tree->state->spin);
	*others = look == STATE_LOOK_UNDER_WAY;
	if (look != STATE_LOOK_DUE)
		return TREE_END;
	if (reclaim.past.extent != 0)
		status = piece_look(&reclaim);
	reclaim.past.look = reclaim.past.extent != 0 ? STATE_LOOK_DUE : STATE_LOOK_OVER;
	spin_lock(&tree->state->spin);
	at->past = reclaim.past;
	spin_unlock(&tree->state->spin);
	*bytes += reclaim.bytes;
	return status == TREE_OK && reclaim.past.extent == 0 ? TREE_END : status;
}

uint64_t
reclaim_some(Tree *tree, uint32_t memory_node)
{
	TreeStatus status = TREE_OK;
	uint64_t bytes = 0;
	bool others;

	assert(!tree->client->holding);
	if (!tree->client->shared->options.alone)
		return 0;
	for (int piece = 0; piece < SOME_PIECES && bytes == 0 && status == TREE_OK; piece++)
		status = reclaim_at(tree, memory_node, &bytes, &others);
	return bytes;
}

TreeStatus
tree_reclaim_next(Tree *handle, uint64_t *bytes)
{
	TreeClient *client = handle->client;
	const TreeEnvironment *environment = &client->options.environment;
	TreeStatus status = TREE_END;
	bool others = false;

	assert(!client->holding);
	assert(bytes != NULL);
	if (!client->shared->options.alone)
		return TREE_END;
	if (client_should_stop(client))
		return client_fail(client, TREE_STOPPED, "stopped between two pieces of what may be free");
	for (uint32_t i = 0; i < client->options.nodes && status == TREE_END && !others; i++)
		if (node_is_open(client->shared, i) && (handle->replicas == NULL || replicas_source(handle) == i))
			status = reclaim_at(handle, i, bytes, &others);
	if (!others)
		return status;
	environment->sleep(environment->argument, client->slot, WAIT_MS);
	return TREE_OK;
}
