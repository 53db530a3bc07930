/*
 * runs.c
 *		Runs: the memory that an instance has taken from a tree's extents and not used yet, from which nodes and
 *		blocks are cut.
 */
#include "tree/space/space.h"
#include "tree/space/allocate.h"

/*
 * Cuts `bytes` that do not cross a stripe from a run; what is skipped is returned, for blocks. Under the spin lock.
 */
static bool
run_cut(StateRun *run, uint32_t bytes, uint64_t *offset, SkippedBytes *skipped)
{
	uint64_t next = run->next;
	uint64_t room = FABRIC_STRIPE_BYTES - next % FABRIC_STRIPE_BYTES;

	assert(bytes > 0 && bytes <= FABRIC_STRIPE_BYTES);
	assert(run->next <= run->end);
	skipped->offset = next;
	skipped->bytes = 0;
	if (room < bytes)
	{
		skipped->offset = next;
		skipped->bytes = (uint32_t) room;
		next += room;
	}
	if (next + bytes > run->end)
	{
		skipped->bytes = 0;
		return false;
	}
	*offset = next;
	run->next = next + bytes;
	return true;
}

/*
 * Keeps the rest of a run that another one replaces: whole stripes as a spare run, and, of a run for blocks, the end
 * of a stripe as a free block. False: there is no place for the stripes. Under the spin lock.
 */
static bool
run_spare(StateTable *table, StateAtNode *at, StateRun run)
{
	uint64_t whole =
		(run.next + FABRIC_STRIPE_BYTES - 1) / FABRIC_STRIPE_BYTES * (uint64_t) FABRIC_STRIPE_BYTES;

	assert(run.end % FABRIC_STRIPE_BYTES == 0);
	assert(whole <= run.end);
	if (run.blocks)
		blocks_put(table, at, run.next, (uint32_t) (whole - run.next), true);
	run.next = whole;
	if (run.next == run.end)
		return true;
	if (at->spares == STATE_SPARE_RUNS)
		return false;
	at->spare_runs[at->spares++] = run;
	return true;
}

bool
allocate_spare(Tree *tree, uint32_t memory_node, uint64_t offset, uint64_t bytes, uint64_t generation)
{
	StateAtNode *at = tree_part(tree, memory_node);
	StateRun run = {.next = offset, .end = offset + bytes, .generation = generation};
	bool kept = false;

	assert(offset % FABRIC_STRIPE_BYTES == 0 && bytes % FABRIC_STRIPE_BYTES == 0);
	if (at == NULL)
		return false;
	spin_lock(&tree->state->spin);
	for (uint32_t i = 0; i < at->spares && !kept; i++)
	{
		StateRun *spare = &at->spare_runs[i];

		kept = spare->next == offset + bytes && spare->generation == generation && !spare->blocks;
		spare->next -= kept ? bytes : 0;
	}
	/* The others are for chunks that two processes bring at once. */
	if (!kept && at->spares < STATE_SPARE_RUNS / 2)
		kept = run_spare(tree->client->shared->states, at, run);
	spin_unlock(&tree->state->spin);
	return kept;
}

void
runs_install(StateTable *table, StateAtNode *at, StateUse use, const StateRun *taken)
{
	StateRun own = at->runs[use];
	bool longer = own.end - own.next < taken->end - taken->next;

	assert(taken->next < taken->end);
	assert(own.next <= own.end);
	if (longer)
		at->runs[use] = *taken;
	(void) run_spare(table, at, longer ? own : *taken);
}

/* Makes a spare run the use's own one, of those that blocks or nodes may be cut from. False: there is none. */
static bool
use_spare(StateTable *table, StateAtNode *at, StateUse use)
{
	bool blocks = use == STATE_OVERFLOW;
	StateRun own = at->runs[use];
	uint32_t i = at->spares;

	while (i > 0 && at->spare_runs[i - 1].blocks != blocks)
		i--;
	if (i == 0)
		return false;
	at->runs[use] = at->spare_runs[i - 1];
	at->spare_runs[i - 1] = at->spare_runs[--at->spares];
	(void) run_spare(table, at, own);
	return true;
}

bool
runs_cut(StateTable *table, StateAtNode *at, StateUse use, uint32_t bytes, uint64_t *offset,
         SkippedBytes *skipped)
{
	assert(use < STATE_USES);
	assert(at->spares <= STATE_SPARE_RUNS);
	if (run_cut(&at->runs[use], bytes, offset, skipped))
		return true;
	if (!use_spare(table, at, use))
		return false;
	return run_cut(&at->runs[use], bytes, offset, skipped);
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

	for (uint32_t use = 0; use < STATE_USES; use++)
		bytes += run_is_between(&at->runs[use], first, end) ? at->runs[use].end - at->runs[use].next : 0;
	for (uint32_t i = 0; i < at->spares; i++)
		bytes += run_is_between(&at->spare_runs[i], first, end)
		             ? at->spare_runs[i].end - at->spare_runs[i].next
		             : 0;
	return bytes;
}

void
runs_forget(StateAtNode *at, uint64_t first, uint64_t end)
{
	for (uint32_t use = 0; use < STATE_USES; use++)
		if (run_is_between(&at->runs[use], first, end))
			at->runs[use].next = at->runs[use].end = 0;
	for (uint32_t i = at->spares; i > 0; i--)
		if (run_is_between(&at->spare_runs[i - 1], first, end))
			at->spare_runs[i - 1] = at->spare_runs[--at->spares];
}
