/*
 * runs.c
 *		Runs: the memory that an instance has taken from a tree's extents and not used yet, from which nodes and
 *		blocks are cut. Nodes that were taken and never used are runs, too. There is room for some runs; the places of those
 *		that find none go to the lists of free nodes (freed.c) or blocks, of which there may be any number.
 */
#include "tree/space/space.h"
#include "tree/space/allocate.h"

static uint64_t
run_bytes(const StateRun *run)
{
	assert(run->next <= run->end);
	return run->end - run->next;
}

/* Forgets a run; the last one takes its place. */
static void
run_remove(StateAtNode *at, StateRun *run)
{
	assert(at->run_count > 0 && run < at->runs + at->run_count);
	*run = at->runs[--at->run_count];
}

/* The run of a use that came last, or NULL. */
static StateRun *
run_of(StateAtNode *at, StateUse use)
{
	for (uint32_t i = at->run_count; i > 0; i--)
		if (at->runs[i - 1].use == (uint32_t) use)
			return &at->runs[i - 1];
	return NULL;
}

/* Adds a run to one of the same kind that it lies beside. */
static bool
run_join(StateAtNode *at, const StateRun *run)
{
	for (uint32_t i = 0; i < at->run_count; i++)
	{
		StateRun *other = &at->runs[i];

		if (other->use != run->use || other->generation != run->generation ||
		    (other->next != run->end && other->end != run->next))
			continue;
		if (other->next == run->end)
			other->next = run->next;
		else
			other->end = run->end;
		return true;
	}
	return false;
}

static StateRun *
run_shortest(StateAtNode *at)
{
	StateRun *shortest = &at->runs[0];

	for (uint32_t i = 1; i < at->run_count; i++)
		if (run_bytes(&at->runs[i]) < run_bytes(shortest))
			shortest = &at->runs[i];
	return shortest;
}

void
runs_put(StateAtNode *at, const StateRun *run, StateRun *left)
{
	StateRun *shortest;

	assert(run->use < STATE_USES);
	assert(at->run_count <= STATE_RUNS);
	*left = (StateRun){.next = 0};
	if (run_bytes(run) == 0 || run_join(at, run))
		return;
	if (at->run_count == STATE_RUNS)
	{
		shortest = run_shortest(at);
		*left = run_bytes(shortest) >= run_bytes(run) ? *run : *shortest;
		if (run_bytes(shortest) >= run_bytes(run))
			return;
		run_remove(at, shortest);
	}
	at->runs[at->run_count++] = *run;
}

/* The free blocks that the run consists of. */
static void
run_to_blocks(Tree *tree, StateAtNode *at, StateRun *run)
{
	spin_lock(&tree->state->spin);
	while (run_bytes(run) > 0)
	{
		uint64_t stripe_end = run->next - run->next % FABRIC_STRIPE_BYTES + FABRIC_STRIPE_BYTES;
		uint64_t end = stripe_end < run->end ? stripe_end : run->end;
		/* A block is shorter than a stripe. */
		uint64_t bytes = end - run->next < FABRIC_STRIPE_BYTES ? end - run->next : FABRIC_STRIPE_BYTES / 2;

		blocks_put(tree->client->shared->states, at, run->next, (uint32_t) bytes, false);
		run->next += bytes;
	}
	spin_unlock(&tree->state->spin);
}

/*
 * Whether a chain to the memory node may be tried: none is where that is known to be in vain, and a process that ends does not
 * connect anew.
 */
static bool
place_answers(const TreeClient *client, uint32_t memory_node)
{
	return client->options.endpoints[memory_node] != NULL && node_is_open(client->shared, memory_node) &&
	       (client->doubt & 1ull << memory_node) == 0;
}

void
runs_left(Tree *tree, uint32_t memory_node, StateRun *run)
{
	uint32_t level = run->use == STATE_INNER ? 1 : 0;
	TreeStatus status = TREE_OK;

	assert(!tree->client->holding);
	if (run_bytes(run) == 0)
		return;
	if (run->use == STATE_OVERFLOW)
	{
		run_to_blocks(tree, tree_part(tree, memory_node), run);
		return;
	}
	for (; run_bytes(run) > 0 && status == TREE_OK && place_answers(tree->client, memory_node);
	     run->next += node_bytes(&tree->geometry, level))
		status = freed_put(tree, pointer_make(memory_node, run->next), level, run->generation);
}

void
runs_keep(Tree *tree, uint32_t memory_node, const StateRun *run)
{
	StateAtNode *at = tree_part(tree, memory_node);
	StateRun left;

	if (at == NULL)
		return;
	spin_lock(&tree->state->spin);
	runs_put(at, run, &left);
	spin_unlock(&tree->state->spin);
	runs_left(tree, memory_node, &left);
}

bool
runs_found(Tree *tree, uint32_t memory_node, const StateRun *run)
{
	StateAtNode *at = tree_part(tree, memory_node);
	StateRun left;
	bool kept;

	assert(run->next % FABRIC_STRIPE_BYTES == 0 && run->end % FABRIC_STRIPE_BYTES == 0);
	if (at == NULL)
		return false;
	spin_lock(&tree->state->spin);
	/* The others are for what processes take. */
	kept = at->run_count < STATE_RUNS / 2;
	if (kept)
		runs_put(at, run, &left);
	else
		kept = run_join(at, run);
	spin_unlock(&tree->state->spin);
	return kept;
}

/*
 * Cuts `bytes` that do not cross a stripe from a run. What is skipped, or too short, is the end of a stripe: of a run of blocks a
 * free block. False: the run was used up.
 */
static bool
run_cut(StateTable *table, StateAtNode *at, StateRun *run, uint32_t bytes, uint64_t *offset)
{
	uint64_t room = FABRIC_STRIPE_BYTES - run->next % FABRIC_STRIPE_BYTES;

	assert(bytes > 0 && bytes <= FABRIC_STRIPE_BYTES);
	assert(run_bytes(run) > 0);
	if (room < bytes)
	{
		if (run->use == STATE_OVERFLOW)
			blocks_put(table, at, run->next, (uint32_t) room, true);
		run->next += room;
	}
	if (run->next == run->end)
		return false;
	assert(run->next + bytes <= run->end);
	*offset = run->next;
	run->next += bytes;
	return true;
}

/* The next bytes of a run, all that it has at most, become one of a use. */
static void
run_split(StateAtNode *at, StateRun *from, StateUse use, uint64_t bytes, StateRun *run)
{
	*run = *from;
	run->use = use;
	if (bytes < run_bytes(from))
		run->end = run->next + bytes;
	from->next = run->end;
	if (run_bytes(from) == 0)
		run_remove(at, from);
}

bool
runs_take(StateAtNode *at, StateUse use, uint64_t bytes, StateRun *run)
{
	StateRun *chunks = run_of(at, STATE_FOUND);

	assert(bytes > 0);
	if (chunks == NULL)
		chunks = run_of(at, STATE_CHUNKS);
	if (chunks != NULL)
		run_split(at, chunks, use, chunks_round_up(bytes), run);
	return chunks != NULL;
}

/*
 * Has nodes of one kind cut from as many stripes as a chunk has, or from a chunk that was found; where there is no place for one run
 * more, from all of the run that they are in. False: there are none.
 */
static bool
runs_make(StateAtNode *at, StateUse use)
{
	StateRun *stripes, run, left;

	if (use == STATE_OVERFLOW)
		return false;
	stripes = run_of(at, STATE_STRIPES);
	if (stripes == NULL)
		stripes = run_of(at, STATE_FOUND);
	if (stripes == NULL)
		return false;
	run_split(at, stripes, use, at->run_count < STATE_RUNS ? CHUNK_BYTES : run_bytes(stripes), &run);
	runs_put(at, &run, &left);
	assert(run_bytes(&left) == 0);
	return true;
}

bool
runs_cut(StateTable *table, StateAtNode *at, StateUse use, uint32_t bytes, uint64_t *offset,
         uint64_t *generation)
{
	bool found = false;

	assert(use < STATE_STRIPES);
	assert(at->run_count <= STATE_RUNS);
	while (!found)
	{
		StateRun *run;

		if (run_of(at, use) == NULL && !runs_make(at, use))
			return false;
		run = run_of(at, use);
		*generation = run->generation;
		found = run_cut(table, at, run, bytes, offset);
		if (run_bytes(run) == 0)
			run_remove(at, run);
	}
	return true;
}

static bool
run_is_between(const StateRun *run, uint64_t first, uint64_t end)
{
	return run->next >= first && run->next < end;
}

uint64_t
runs_bytes(const StateAtNode *at, uint64_t first, uint64_t end)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < at->run_count; i++)
		bytes += run_is_between(&at->runs[i], first, end) ? run_bytes(&at->runs[i]) : 0;
	return bytes;
}

void
runs_forget(StateAtNode *at, uint64_t first, uint64_t end)
{
	for (uint32_t i = at->run_count; i > 0; i--)
		if (run_is_between(&at->runs[i - 1], first, end))
			run_remove(at, &at->runs[i - 1]);
}
