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
	const uint64_t *mine = (const uint64_t *) &handle->pending;
	uint64_t *to = (uint64_t *) counters;

	assert(shared != NULL);
	assert(counters != NULL);
	for (size_t i = 0; i < sizeof(TreeCounters) / sizeof(uint64_t); i++)
		to[i] = __atomic_load_n(&shared[i], __ATOMIC_RELAXED) + mine[i];
}

void
tree_client_counters(const TreeClient *client, TreeCounters *counters)
{
	assert(client != NULL && counters != NULL);
	*counters = client->counters;
}
