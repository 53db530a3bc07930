/*
 * runs.c
 *		Runs: the memory that an instance has taken from a tree's extents and not used yet, from which nodes and
 *		blocks are cut. Nodes that were taken and never used are runs, too.
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
runs_put(StateAtNode *at, const StateRun *run)
{
	assert(run->use < STATE_USES);
	assert(at->run_count <= STATE_RUNS);
	if (run_bytes(run) == 0 || run_join(at, run))
		return;
	if (at->run_count == STATE_RUNS && run_bytes(run_shortest(at)) >= run_bytes(run))
		return;
	if (at->run_count == STATE_RUNS)
		run_remove(at, run_shortest(at));
	at->runs[at->run_count++] = *run;
}

bool
allocate_spare(Tree *tree, uint32_t memory_node, uint64_t offset, uint64_t bytes, uint64_t generation)
{
	StateAtNode *at = tree_part(tree, memory_node);
	StateRun run = {.next = offset, .end = offset + bytes, .generation = generation, .use = STATE_STRIPES};
	bool kept;

	assert(offset % FABRIC_STRIPE_BYTES == 0 && bytes % FABRIC_STRIPE_BYTES == 0);
	if (at == NULL)
		return false;
	spin_lock(&tree->state->spin);
	kept = run_join(at, &run);
	/* The others are for chunks that several processes bring at once. */
	if (!kept && at->run_count < STATE_RUNS / 2)
	{
		runs_put(at, &run);
		kept = true;
	}
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

/* Has nodes of one kind cut from the next chunk of what nodes of either kind may be cut from. NULL: there is none. */
static StateRun *
stripes_use(StateAtNode *at, StateUse use)
{
	StateRun *stripes = use == STATE_OVERFLOW ? NULL : run_of(at, STATE_STRIPES);
	StateRun *run;

	if (stripes == NULL)
		return NULL;
	if (run_bytes(stripes) <= CHUNK_BYTES || at->run_count == STATE_RUNS)
	{
		stripes->use = use;
		return stripes;
	}
	run = &at->runs[at->run_count++];
	*run = *stripes;
	run->use = use;
	run->end = stripes->next += CHUNK_BYTES;
	return run;
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
		StateRun *run = run_of(at, use);

		if (run == NULL)
			run = stripes_use(at, use);
		if (run == NULL)
			return false;
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
