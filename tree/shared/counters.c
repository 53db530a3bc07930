/*
 * counters.c
 *		Counters of a tree: a handle's own, which go to the shared ones now and then.
 */
#include "tree/shared/state.h"

static void
found_add(uint64_t *count, uint64_t more)
{
	if (more != 0)
		__atomic_fetch_add(count, more, __ATOMIC_RELAXED);
}

void
tree_count_flush(Tree *tree)
{
	const uint64_t *from = (const uint64_t *) &tree->pending;
	uint64_t *to = (uint64_t *) state_counters(tree->state);
	CacheCounts *found = &tree->client->shared->found;

	assert(to != NULL);
	state_add(tree->state, (int64_t) tree->pending.inserts - (int64_t) tree->pending.dead_removals,
	          (int64_t) tree->pending.leaf_splits,
	          (int64_t) (tree->pending.inner_splits + tree->pending.root_splits));
	_Static_assert(sizeof(TreeCounters) % sizeof(uint64_t) == 0, "counters are words");
	for (size_t i = 0; i < sizeof(TreeCounters) / sizeof(uint64_t); i++)
		if (from[i] != 0)
			__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
	found_add(&found->inner_hits, tree->pending.cache_hits);
	found_add(&found->inner_misses, tree->pending.cache_misses);
	found_add(&found->leaf_hits, tree->pending.leaf_hits);
	found_add(&found->leaf_misses, tree->pending.leaf_misses);
	memset(&tree->pending, 0, sizeof(tree->pending));
	tree->pending_chains = 0;
}

void
tree_counters(const Tree *handle, TreeCounters *counters)
{
	const uint64_t *shared = (const uint64_t *) state_counters(handle->state);
	const uint64_t *before = (const uint64_t *) &handle->state->counted_before;
	const uint64_t *mine = (const uint64_t *) &handle->pending;
	uint64_t *to = (uint64_t *) counters;

	assert(shared != NULL);
	assert(counters != NULL);
	/* What is subtracted is read first: it is never more than what it is subtracted from. */
	for (size_t i = 0; i < sizeof(TreeCounters) / sizeof(uint64_t); i++)
	{
		uint64_t reset = __atomic_load_n(&before[i], __ATOMIC_ACQUIRE);

		to[i] = __atomic_load_n(&shared[i], __ATOMIC_RELAXED) - reset + mine[i];
	}
}

void
tree_counters_reset(TreeShared *shared, uint64_t tree, uint64_t now)
{
	StateTable *table = shared->states;
	TreeState *state;

	assert(tree != 0);
	spin_lock(&table->spin);
	state = state_find(table, tree);
	for (size_t i = 0; state != NULL && i < sizeof(TreeCounters) / sizeof(uint64_t); i++)
		__atomic_store_n((uint64_t *) &state->counted_before + i,
		                 __atomic_load_n((uint64_t *) &state->counters + i, __ATOMIC_RELAXED),
		                 __ATOMIC_RELEASE);
	if (state != NULL)
		__atomic_store_n(&state->counters_reset, now, __ATOMIC_RELAXED);
	spin_unlock(&table->spin);
}

uint64_t
tree_counters_reset_time(TreeShared *shared, uint64_t tree)
{
	StateTable *table = shared->states;
	TreeState *state;
	uint64_t reset;

	assert(tree != 0);
	spin_lock(&table->spin);
	state = state_find(table, tree);
	reset = state == NULL ? 0 : __atomic_load_n(&state->counters_reset, __ATOMIC_RELAXED);
	spin_unlock(&table->spin);
	return reset;
}

void
tree_client_counters(const TreeClient *client, TreeCounters *counters)
{
	assert(client != NULL && counters != NULL);
	*counters = client->counters;
}
