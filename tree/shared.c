/*
 * shared.c
 *		Shared memory of one instance: its parts, and what is noted of a tree in use.
 *
 * Nothing here survives the instance.  A process that is killed inside a spin section leaves the instance
 * unusable; PostgreSQL then restarts all of its processes with fresh shared memory, so there is no repair.
 */
#include <sched.h>

#include "offload.h"
#include "state.h"

#define SHARED_MAGIC 0x7368657273686172ull

/*
 * Looks at a spin word before the processor is given away: the holder was preempted (two cores, many
 * processes).
 */
#define SPINS_BEFORE_YIELD 128

const TreeTechniques tree_techniques = {
	.combine_lock = true,
	.combine_unlock = true,
	.hierarchy = true,
	.handovers = HANDOVER_MAX,
	.entry_writes = true,
	.back_off = true,
	.adaptive = true,
};

static size_t
line_align(size_t bytes)
{
	return (bytes + LINE_BYTES - 1) & ~(size_t) (LINE_BYTES - 1);
}

void
spin_lock(uint32_t *spin)
{
	int spins = 0;

	assert(spin != NULL);
	assert(((uintptr_t) spin & 3) == 0);
	while (__atomic_exchange_n(spin, 1, __ATOMIC_ACQUIRE) != 0)
	{
		while (__atomic_load_n(spin, __ATOMIC_RELAXED) != 0)
		{
			if (++spins % SPINS_BEFORE_YIELD == 0)
				sched_yield();
			else
				spin_pause();
		}
	}
}

void
spin_unlock(uint32_t *spin)
{
	assert(spin != NULL);
	assert(__atomic_load_n(spin, __ATOMIC_RELAXED) == 1);
	__atomic_store_n(spin, 0, __ATOMIC_RELEASE);
}

/* ---- the region ---- */

static bool
options_valid(const TreeSharedOptions *options)
{
	return options->slots > 0 && options->slots < UINT16_MAX && options->trees > 0 && options->nodes > 0 &&
	       options->trees <= STATE_TREES_MAX && options->nodes <= TREE_MAX_NODES && options->lock_words > 0 &&
	       (options->lock_words & (options->lock_words - 1)) == 0;
}

/*
 * Bytes that tree_shared_initialize() needs.  0: the options are outside the contract.
 */
const TreeTechniques *
shared_techniques(const TreeSharedOptions *options)
{
	return options->techniques != NULL ? options->techniques : &tree_techniques;
}

size_t
tree_shared_bytes(const TreeSharedOptions *options)
{
	assert(options != NULL);
	if (!options_valid(options))
		return 0;
	/* one line more: the caller's region may begin anywhere */
	return LINE_BYTES + line_align(sizeof(TreeShared)) + line_align(lock_shared_bytes(options)) +
	       line_align(cache_shared_bytes(options)) +
	       (options->states_apart ? 0 : line_align(state_shared_bytes(options))) +
	       line_align(gate_shared_bytes(options)) + line_align(speculate_shared_bytes(options)) +
	       line_align(throttle_shared_bytes(options)) + line_align(leaf_cache_shared_bytes(options)) +
	       line_align(offload_shared_bytes(options));
}

size_t
tree_states_bytes(const TreeSharedOptions *options)
{
	assert(options != NULL);
	return options_valid(options) ? LINE_BYTES + state_shared_bytes(options) : 0;
}

/*
 * Lays out the region, which is zeroed and tree_shared_bytes() long.  Called once, before any other process
 * uses it.  NULL: the options are outside the contract.
 */
TreeShared *
tree_shared_initialize(void *memory, const TreeSharedOptions *options)
{
	TreeShared *shared = (TreeShared *) line_align((uintptr_t) memory);
	char *next = (char *) shared + line_align(sizeof(TreeShared));

	assert(memory != NULL);
	assert(options != NULL);
	if (!options_valid(options))
		return NULL;
	shared->options = *options;
	shared->techniques = *shared_techniques(options);
	shared->options.techniques = &shared->techniques;
	shared->locks = next;
	next += line_align(lock_shared_bytes(options));
	shared->cache = next;
	next += line_align(cache_shared_bytes(options));
	shared->states = options->states_apart ? (void *) line_align((uintptr_t) options->states) : next;
	next += options->states_apart ? 0 : line_align(state_shared_bytes(options));
	shared->gates = (GateSlot *) next;
	next += line_align(gate_shared_bytes(options));
	shared->hints = next;
	next += line_align(speculate_shared_bytes(options));
	shared->credits = (CreditGroup *) next;
	next += line_align(throttle_shared_bytes(options));
	shared->leaves = leaf_cache_shared_bytes(options) > 0 ? next : NULL;
	next += line_align(leaf_cache_shared_bytes(options));
	shared->offloads = offload_shared_bytes(options) > 0 ? (OffloadCosts *) next : NULL;
	lock_shared_initialize(shared->locks, &shared->options);
	cache_shared_initialize(shared->cache, &shared->options);
	state_shared_initialize(shared->states, &shared->options);
	if (shared->leaves != NULL)
		leaf_cache_shared_initialize(shared->leaves, &shared->options);
	shared->magic = SHARED_MAGIC;
	return shared;
}

void
tree_shared_reset(TreeShared *shared)
{
	assert(shared != NULL);
	assert(shared->magic == SHARED_MAGIC);
	lock_shared_reset(shared->locks);
	cache_shared_reset(shared->cache);
	state_shared_reset(shared->states);
	speculate_shared_reset(shared);
	throttle_shared_reset(shared);
	leaf_cache_shared_reset(shared);
	offload_shared_reset(shared);
}

void
tree_node_close(TreeShared *shared, uint32_t node)
{
	assert(shared->magic == SHARED_MAGIC);
	assert(node < TREE_MAX_NODES);
	__atomic_fetch_or(&shared->closed, 1u << node, __ATOMIC_SEQ_CST);
}

void
tree_node_open(TreeClient *client, uint32_t node, uint64_t member)
{
	assert(client->shared->magic == SHARED_MAGIC);
	assert(node < client->options.nodes);
	lock_node_fenced(client, node);
	leaf_cache_forget(client->shared, node);
	state_node_fenced(client->shared, node);
	__atomic_store_n(&client->shared->members[node], member, __ATOMIC_RELEASE);
	__atomic_fetch_and(&client->shared->closed, ~(1u << node), __ATOMIC_SEQ_CST);
}

void
state_copies_suspect(TreeState *state)
{
	if (state_copies(state) == TREE_COPIES_BOTH)
		__atomic_fetch_add(&state->copy_doubts, 1, __ATOMIC_ACQ_REL);
}

/* ---- copies ---- */

TreeCopyState
state_copies(const TreeState *state)
{
	assert(state != NULL);
	return (TreeCopyState) __atomic_load_n(&state->copies, __ATOMIC_ACQUIRE);
}

/* Makes the state another one, if it is `old`. */
static bool
copies_change(TreeState *state, TreeCopyState old, TreeCopyState copies)
{
	uint32_t expected = old;

	assert(copies != TREE_COPIES_NONE);
	return __atomic_compare_exchange_n(&state->copies, &expected, copies, false, __ATOMIC_ACQ_REL,
	                                   __ATOMIC_ACQUIRE);
}

void
state_copies_begin(TreeClient *client, TreeState *state, TreeCopyState copies, bool doubt)
{
	uint64_t lost;

	if (!copies_change(state, TREE_COPIES_NONE, copies))
		state_copies_set(state, copies);
	else if (doubt || tree_copies_lost_doubts(client->shared, &lost))
		state_copies_suspect(state);
}

void
state_copies_set(TreeState *state, TreeCopyState copies)
{
	/* Who was given up does not come back. */
	if (copies != TREE_COPIES_BOTH)
		(void) copies_change(state, TREE_COPIES_BOTH, copies);
}

/*
 * Notes something about the copies of a tree, which nobody may have open: then about all that have no entry.
 */
static void
copies_note(TreeShared *shared, uint64_t tree, bool stranded)
{
	StateTable *table = shared->states;
	TreeState *found;

	spin_lock(&table->spin);
	found = state_find(table, tree);
	if (found == NULL)
		tree_copies_lose_doubt(shared);
	else if (stranded)
		__atomic_store_n(&found->copies_stranded, 1, __ATOMIC_RELEASE);
	else
		state_copies_suspect(found);
	spin_unlock(&table->spin);
}

void
state_copies_doubt(TreeShared *shared, uint64_t tree)
{
	copies_note(shared, tree, false);
}

void
state_copies_strand(TreeShared *shared, uint64_t tree)
{
	copies_note(shared, tree, true);
}

void
state_node_fenced(TreeShared *shared, uint32_t node)
{
	StateTable *table = shared->states;

	assert(node < TREE_MAX_NODES);
	spin_lock(&table->spin);
	for (uint32_t i = 0; i < table->states_used; i++)
	{
		TreeState *state = state_number(table, i);

		__atomic_fetch_and(&state->unsettled, ~(1u << node), __ATOMIC_ACQ_REL);
		if (__atomic_exchange_n(&state->copies_stranded, 0, __ATOMIC_ACQ_REL) != 0)
			state_copies_suspect(state);
	}
	spin_unlock(&table->spin);
}

uint64_t
state_copies_doubts(const TreeState *state, bool *open)
{
	uint64_t doubts = __atomic_load_n(&state->copy_doubts, __ATOMIC_ACQUIRE);

	assert(open != NULL);
	*open = doubts != __atomic_load_n(&state->copy_settled, __ATOMIC_ACQUIRE);
	return doubts;
}

void
tree_copies_lose_doubt(TreeShared *shared)
{
	StateTable *table = shared->states;

	assert(table->options.trees > 0);
	__atomic_fetch_add(&table->doubts_lost, 1, __ATOMIC_ACQ_REL);
}

bool
tree_copies_lost_doubts(TreeShared *shared, uint64_t *lost)
{
	StateTable *table = shared->states;

	assert(lost != NULL);
	*lost = __atomic_load_n(&table->doubts_lost, __ATOMIC_ACQUIRE);
	return *lost != __atomic_load_n(&table->doubts_kept, __ATOMIC_ACQUIRE);
}

void
tree_copies_keep_doubts(TreeShared *shared, uint64_t lost)
{
	StateTable *table = shared->states;

	assert(lost <= __atomic_load_n(&table->doubts_lost, __ATOMIC_ACQUIRE));
	__atomic_store_n(&table->doubts_kept, lost, __ATOMIC_RELEASE);
}

bool
tree_copies_doubted(TreeShared *shared, uint64_t tree, bool returned)
{
	StateTable *table = shared->states;
	TreeState *state;
	uint64_t lost;
	bool doubted = tree_copies_lost_doubts(shared, &lost);

	assert(tree != 0);
	spin_lock(&table->spin);
	state = state_find(table, tree);
	if (state != NULL && state_copies(state) != TREE_COPIES_NONE)
	{
		(void) state_copies_doubts(state, &doubted);
		if (returned && __atomic_load_n(&state->copies_stranded, __ATOMIC_ACQUIRE) != 0)
			doubted = true;
		/* Of a tree that is at one memory node alone it means nothing any more. */
		doubted &= state_copies(state) == TREE_COPIES_BOTH;
	}
	spin_unlock(&table->spin);
	return doubted;
}

void
state_copies_settle(TreeState *state, uint64_t doubts)
{
	assert(state != NULL);
	__atomic_store_n(&state->copy_settled, doubts, __ATOMIC_RELEASE);
}

/* ---- chains of unknown outcome ---- */

void
state_leave_unsettled(TreeState *state, uint32_t node)
{
	assert(node < TREE_MAX_NODES);
	__atomic_fetch_or(&state->unsettled, 1u << node, __ATOMIC_ACQ_REL);
}

/* ---- epochs, splits, counters ---- */

uint64_t
state_epoch(const TreeState *state)
{
	assert(state != NULL);
	return __atomic_load_n(&state->epoch, __ATOMIC_ACQUIRE);
}

uint64_t
state_life(const TreeState *state)
{
	assert(state != NULL);
	return __atomic_load_n(&state->life, __ATOMIC_RELAXED);
}

void
state_next_epoch(TreeClient *client, TreeState *state)
{
	StateTable *table = client->shared->states;
	uint64_t epoch = __atomic_add_fetch(&table->epochs, 1, __ATOMIC_RELAXED);

	assert(epoch > state_epoch(state));
	__atomic_store_n(&state->epoch, epoch, __ATOMIC_RELEASE);
}

void
state_split_begins(TreeState *state)
{
	assert(state != NULL);
	__atomic_fetch_add(&state->splits, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void
state_split_ends(TreeState *state)
{
	uint32_t before = __atomic_fetch_sub(&state->splits, 1, __ATOMIC_SEQ_CST);

	assert(before > 0);
	(void) before;
}

bool
state_splits(const TreeState *state)
{
	bool some;

	assert(state != NULL);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	some = __atomic_load_n(&state->splits, __ATOMIC_SEQ_CST) != 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return some;
}

TreeCounters *
state_counters(TreeState *state)
{
	assert(state != NULL);
	assert(state->tree != 0);
	return &state->counters;
}

void
state_add(TreeState *state, int64_t entries, int64_t leaves, int64_t inner_nodes)
{
	assert(state != NULL);
	assert(state->tree != 0);
	if (entries != 0)
		__atomic_fetch_add(&state->entries, entries, __ATOMIC_RELAXED);
	if (leaves != 0)
		__atomic_fetch_add(&state->leaves, leaves, __ATOMIC_RELAXED);
	if (inner_nodes != 0)
		__atomic_fetch_add(&state->inner_nodes, inner_nodes, __ATOMIC_RELAXED);
}

void
state_set(TreeState *state, uint64_t entries, uint64_t leaves, uint64_t inner_nodes, uint32_t height)
{
	assert(state != NULL);
	assert(height <= LEVELS_MAX);
	__atomic_store_n(&state->entries, (int64_t) entries, __ATOMIC_RELAXED);
	__atomic_store_n(&state->leaves, (int64_t) leaves, __ATOMIC_RELAXED);
	__atomic_store_n(&state->inner_nodes, (int64_t) inner_nodes, __ATOMIC_RELAXED);
	__atomic_store_n(&state->height, height, __ATOMIC_RELAXED);
	__atomic_store_n(&state->known, 1, __ATOMIC_RELEASE);
}

/* An estimate that adds made negative (they began at 0 after a restart) is 0. */
static uint64_t
estimate_read(const int64_t *value)
{
	int64_t n = __atomic_load_n(value, __ATOMIC_RELAXED);

	return n > 0 ? (uint64_t) n : 0;
}

void
state_read(TreeState *state, TreeStatistics *statistics, bool *known)
{
	assert(state != NULL);
	assert(statistics != NULL);
	*known = __atomic_load_n(&state->known, __ATOMIC_ACQUIRE) != 0;
	memset(statistics, 0, sizeof(*statistics));
	statistics->entries = estimate_read(&state->entries);
	statistics->leaves = estimate_read(&state->leaves);
	statistics->inner_nodes = estimate_read(&state->inner_nodes);
	statistics->height = __atomic_load_n(&state->height, __ATOMIC_RELAXED);
	statistics->outside_bytes = estimate_read(&state->outside_bytes);
	statistics->extent_bytes = __atomic_load_n(&state->extent_bytes, __ATOMIC_RELAXED);
}
