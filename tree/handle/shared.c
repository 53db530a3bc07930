/*
 * shared.c
 *		Shared memory of one instance: its parts are laid out and emptied here, memory nodes opened and closed.
 *
 * Nothing here survives the instance.  A process that is killed inside a spin section leaves the instance
 * unusable; PostgreSQL then restarts all of its processes with fresh shared memory, so there is no repair.
 */
#include "tree/descent/offload.h"
#include "tree/shared/state.h"
#include "tree/lock/lock.h"
#include "tree/shared/cache.h"

#define SHARED_MAGIC 0x7368657273686172ull

static size_t
line_align(size_t bytes)
{
	return (bytes + LINE_BYTES - 1) & ~(size_t) (LINE_BYTES - 1);
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
	       line_align(critical_shared_bytes(options)) + line_align(speculate_shared_bytes(options)) +
	       line_align(leaf_cache_shared_bytes(options)) + line_align(offload_shared_bytes(options));
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
	shared->critical_slots = (CriticalSlot *) next;
	next += line_align(critical_shared_bytes(options));
	shared->hints = next;
	next += line_align(speculate_shared_bytes(options));
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
	leaf_cache_shared_reset(shared);
	offload_shared_reset(shared);
}

void
tree_forget_cached(TreeShared *shared)
{
	assert(shared->magic == SHARED_MAGIC);
	state_forget_cached(shared);
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
tree_cache_usage(const TreeShared *shared, TreeCacheUsage *inner, TreeCacheUsage *leaves)
{
	assert(shared->magic == SHARED_MAGIC);
	cache_usage(shared, inner);
	leaf_cache_usage(shared, leaves);
	inner->hits = __atomic_load_n(&shared->found.inner_hits, __ATOMIC_RELAXED);
	inner->misses = __atomic_load_n(&shared->found.inner_misses, __ATOMIC_RELAXED);
	leaves->hits = __atomic_load_n(&shared->found.leaf_hits, __ATOMIC_RELAXED);
	leaves->misses = __atomic_load_n(&shared->found.leaf_misses, __ATOMIC_RELAXED);
}
