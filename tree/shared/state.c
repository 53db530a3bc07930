/*
 * state.c
 *		The shared state of one tree in use: its replica and doubts about that, epochs, splits, estimates.
 */
#include "tree/shared/state.h"

/* ---- copies ---- */

TreeReplicaState
state_replicas(const TreeState *state)
{
	assert(state != NULL);
	return (TreeReplicaState) __atomic_load_n(&state->replicas, __ATOMIC_ACQUIRE);
}

/* Makes the state another one, if it is `old`. */
static bool
replicas_change(TreeState *state, TreeReplicaState old, TreeReplicaState replicas)
{
	uint32_t expected = old;

	assert(replicas != TREE_REPLICAS_NONE);
	return __atomic_compare_exchange_n(&state->replicas, &expected, replicas, false, __ATOMIC_ACQ_REL,
	                                   __ATOMIC_ACQUIRE);
}

bool
state_replicas_join(TreeState *state, TreeReplicaState replicas)
{
	return replicas_change(state, TREE_REPLICAS_NONE, replicas);
}

void
state_replicas_set(TreeState *state, TreeReplicaState replicas)
{
	/* Who was given up does not come back. */
	if (replicas != TREE_REPLICAS_BOTH)
		(void) replicas_change(state, TREE_REPLICAS_BOTH, replicas);
}

void
state_replicas_note_doubt(TreeState *state)
{
	if (state_replicas(state) == TREE_REPLICAS_BOTH)
		__atomic_fetch_add(&state->replica_doubts, 1, __ATOMIC_ACQ_REL);
}

uint64_t
state_replicas_doubts(const TreeState *state, bool *open)
{
	uint64_t doubts = __atomic_load_n(&state->replica_doubts, __ATOMIC_ACQUIRE);

	assert(open != NULL);
	*open = doubts != __atomic_load_n(&state->doubts_settled, __ATOMIC_ACQUIRE);
	return doubts;
}

void
tree_replicas_lose_doubt(TreeShared *shared)
{
	StateTable *table = shared->states;

	assert(table->options.trees > 0);
	__atomic_fetch_add(&table->doubts_lost, 1, __ATOMIC_ACQ_REL);
}

void
state_replicas_settle(TreeState *state, uint64_t doubts)
{
	assert(state != NULL);
	__atomic_store_n(&state->doubts_settled, doubts, __ATOMIC_RELEASE);
}

/* ---- chains of unknown outcome ---- */

void
state_leave_unsettled(TreeState *state, uint32_t node)
{
	assert(node < TREE_MAX_NODES);
	__atomic_fetch_or(&state->unsettled, 1u << node, __ATOMIC_ACQ_REL);
}

/* ---- epochs, splits, counters ---- */

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
	statistics->overflow_bytes = estimate_read(&state->overflow_bytes);
	statistics->extent_bytes = __atomic_load_n(&state->extent_bytes, __ATOMIC_RELAXED);
}
