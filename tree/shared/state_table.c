/*
 * state_table.c
 *		The table of the trees in use: states are found by id, made, and given back.
 *
 * A state stays when the last handle of its tree is closed, with the free nodes and blocks that it knows, until the
 * tree is dropped. The table has room for more trees than a server uses at once, as room that is not used yet is
 * address space and no memory (TreeSharedOptions.states); when all of it is used, the state that was closed longest
 * ago is reused, of a tree without indeterminate chains. The free memory that the state knew is found again by
 * reclaim.c.
 */
#include "tree/shared/state.h"

/*
 * Parts for so many memory nodes a tree: most trees lie on few. A tree that lies on all of them uses parts that
 * others do not need.
 */
#define PARTS_PER_TREE 4

static size_t
line_align(size_t bytes)
{
	return (bytes + LINE_BYTES - 1) & ~(size_t) (LINE_BYTES - 1);
}

static uint32_t
bucket_count(const TreeSharedOptions *options)
{
	uint32_t count = 1;

	while (count < options->trees)
		count *= 2;
	return count;
}

static uint32_t
part_count(const TreeSharedOptions *options)
{
	if (options->nodes <= PARTS_PER_TREE)
		return options->trees * options->nodes;
	return options->trees * PARTS_PER_TREE + options->nodes * PARTS_PER_TREE;
}

size_t
state_shared_bytes(const TreeSharedOptions *options)
{
	assert(options != NULL);
	assert(options->trees > 0 && options->trees <= STATE_TREES_MAX);
	return line_align(sizeof(StateTable)) + line_align(bucket_count(options) * sizeof(uint32_t)) +
	       line_align(options->trees * sizeof(TreeState)) +
	       line_align(part_count(options) * sizeof(StateAtNode)) + line_align(blocks_pool_bytes(options)) +
	       line_align(units_pool_bytes(options));
}

void
state_shared_initialize(void *memory, const TreeSharedOptions *options)
{
	StateTable *table = memory;

	assert(memory != NULL);
	assert(((uintptr_t) memory & (LINE_BYTES - 1)) == 0);
	table->options = *options;
	table->bucket_count = bucket_count(options);
	table->part_count = part_count(options);
	table->buckets = line_align(sizeof(StateTable));
	table->states = table->buckets + line_align(table->bucket_count * sizeof(uint32_t));
	table->parts = table->states + line_align(options->trees * sizeof(TreeState));
	table->pool = table->parts + line_align(table->part_count * sizeof(StateAtNode));
	table->units = table->pool + line_align(blocks_pool_bytes(options));
	blocks_pool_reset(table);
	units_pool_reset(table);
}

TreeState *
state_number(const StateTable *table, uint32_t i)
{
	assert(i < table->states_used);
	assert(table->states_used <= table->options.trees);
	return (TreeState *) ((char *) table + table->states) + i;
}

/* ---- parts ---- */

static StateAtNode *
part_number(const StateTable *table, uint32_t i)
{
	/* Not parts_used, which is read under its lock only. */
	assert(i < table->part_count);
	assert(table->parts != 0);
	return (StateAtNode *) ((char *) table + table->parts) + i;
}

/* Takes a zeroed part: its number plus 1; 0: there is none. */
static uint32_t
part_take(StateTable *table)
{
	uint32_t taken = 0;

	spin_lock(&table->part_spin);
	if (table->parts_free != 0)
	{
		taken = table->parts_free;
		table->parts_free = part_number(table, taken - 1)->next;
	}
	else if (table->parts_used < table->part_count)
		taken = ++table->parts_used;
	spin_unlock(&table->part_spin);
	if (taken != 0)
		memset(part_number(table, taken - 1), 0, sizeof(StateAtNode));
	return taken;
}

static void
part_give(StateTable *table, uint32_t number)
{
	assert(number != 0);
	spin_lock(&table->part_spin);
	part_number(table, number - 1)->next = table->parts_free;
	table->parts_free = number;
	spin_unlock(&table->part_spin);
}

/* What a part has of the pools goes back to them: what it knew to be free is forgotten. */
static void
part_forget(StateTable *table, StateAtNode *part)
{
	blocks_forget(table, part);
	units_forget(table, part);
}

StateAtNode *
state_part(const StateTable *table, const TreeState *state, uint32_t node)
{
	uint32_t number = __atomic_load_n(&state->at[node], __ATOMIC_ACQUIRE);

	assert(node < table->options.nodes);
	return number == 0 ? NULL : part_number(table, number - 1);
}

StateAtNode *
state_at(StateTable *table, TreeState *state, uint32_t node)
{
	StateAtNode *part = state_part(table, state, node);
	uint32_t expected = 0;
	uint32_t made;

	if (part != NULL)
		return part;
	made = part_take(table);
	if (made == 0)
		return NULL;
	/* Race -- another process may have made it meanwhile: then that one counts. */
	if (!__atomic_compare_exchange_n(&state->at[node], &expected, made, false, __ATOMIC_ACQ_REL,
	                                 __ATOMIC_ACQUIRE))
		part_give(table, made);
	return state_part(table, state, node);
}

/* ---- states, under the table's spin lock ---- */

static uint32_t *
bucket(const StateTable *table, uint64_t tree)
{
	/* Ids of one memory node follow each other; those of several differ in their high half. */
	uint64_t hash = (tree ^ tree >> 32) * 0x9e3779b97f4a7c15ull >> 32;

	return (uint32_t *) ((char *) table + table->buckets) + (hash & (table->bucket_count - 1));
}

TreeState *
state_find(const StateTable *table, uint64_t tree)
{
	uint32_t number = *bucket(table, tree);

	assert(tree != 0);
	while (number != 0 && state_number(table, number - 1)->tree != tree)
		number = state_number(table, number - 1)->next;
	return number == 0 ? NULL : state_number(table, number - 1);
}

/* Takes a state out of its bucket, with all that it has, and puts it to those that are not in use. */
static void
state_release(StateTable *table, TreeState *state)
{
	uint32_t number = (uint32_t) (state - state_number(table, 0)) + 1;
	uint32_t *link = bucket(table, state->tree);

	assert(state->references == 0);
	while (*link != number)
		link = &state_number(table, *link - 1)->next;
	*link = state->next;
	for (uint32_t i = 0; i < table->options.nodes; i++)
		if (state->at[i] != 0)
		{
			part_forget(table, part_number(table, state->at[i] - 1));
			part_give(table, state->at[i]);
		}
	memset(state, 0, sizeof(*state));
	state->next = table->states_free;
	table->states_free = number;
}

/* Forgets a tree that no process has open. Doubts about its replica are lost. */
static void
state_evict(TreeShared *shared, TreeState *state)
{
	StateTable *table = shared->states;
	bool doubtful;

	(void) state_replicas_doubts(state, &doubtful);
	if (state_replicas(state) == TREE_REPLICAS_BOTH && (doubtful || state->locks_leaked != 0))
		tree_replicas_lose_doubt(shared);
	state_release(table, state);
}

/*
 * Whether the tree's state may be made anew. A new state finds free memory by reading the memory nodes (reclaim.c),
 * and a chain that takes effect after that would write to memory that has another use by then.
 */
static bool
state_is_evictable(const TreeState *state)
{
	return state->tree != 0 && state->references == 0 &&
	       __atomic_load_n(&state->unsettled, __ATOMIC_ACQUIRE) == 0;
}

/* The evictable state that was closed longest ago; NULL: there is none. */
static TreeState *
state_oldest(const StateTable *table)
{
	TreeState *oldest = NULL;

	for (uint32_t i = 0; i < table->states_used; i++)
	{
		TreeState *state = state_number(table, i);

		if (state_is_evictable(state) && (oldest == NULL || state->used < oldest->used))
			oldest = state;
	}
	return oldest;
}

/* A state for a tree that has none. NULL: there is no room, and no other tree can do without its own. */
static TreeState *
state_make(TreeClient *client, uint64_t tree)
{
	StateTable *table = client->shared->states;
	TreeState *oldest = NULL;
	TreeState *made;
	uint32_t number;

	if (table->states_free == 0 && table->states_used == table->options.trees)
	{
		oldest = state_oldest(table);
		if (oldest == NULL)
			return NULL;
		state_evict(client->shared, oldest);
	}
	if (table->states_free != 0)
	{
		number = table->states_free;
		table->states_free = state_number(table, number - 1)->next;
	}
	else
		number = ++table->states_used;
	made = state_number(table, number - 1);
	made->tree = tree;
	made->next = *bucket(table, tree);
	*bucket(table, tree) = number;
	state_next_epoch(client, made);
	__atomic_store_n(&made->first_epoch, state_epoch(made), __ATOMIC_RELAXED);
	return made;
}

/* ---- all of it ---- */

TreeState *
state_get(TreeClient *client, uint64_t tree)
{
	StateTable *table = client->shared->states;
	TreeState *state;

	assert(tree != 0);
	spin_lock(&table->spin);
	state = state_find(table, tree);
	if (state == NULL)
		state = state_make(client, tree);
	if (state != NULL)
		state->references++;
	spin_unlock(&table->spin);
	return state;
}

void
state_put(TreeClient *client, TreeState *state)
{
	StateTable *table = client->shared->states;

	assert(state != NULL);
	spin_lock(&table->spin);
	assert(state->references > 0);
	state->references--;
	state->used = ++table->clock;
	if (state->references == 0 && state->dropped)
		state_release(table, state);
	spin_unlock(&table->spin);
}

void
state_drop(TreeShared *shared, uint64_t tree)
{
	StateTable *table = shared->states;
	TreeState *state;

	assert(tree != 0);
	spin_lock(&table->spin);
	state = state_find(table, tree);
	if (state != NULL && state->references == 0)
		state_release(table, state);
	else if (state != NULL)
	{
		/* A handle that is still open must not use up memory that others may be given. */
		state->dropped = 1;
		spin_lock(&state->spin);
		for (uint32_t i = 0; i < table->options.nodes; i++)
			if (state->at[i] != 0)
				part_forget(table, part_number(table, state->at[i] - 1));
		spin_unlock(&state->spin);
	}
	spin_unlock(&table->spin);
}

/* What was cached of one tree, under the lock. */
static void
forget_cached(StateTable *table, TreeState *state)
{
	uint64_t epoch = __atomic_add_fetch(&table->epochs, 1, __ATOMIC_RELAXED);

	__atomic_store_n(&state->first_epoch, epoch, __ATOMIC_RELAXED);
	__atomic_store_n(&state->epoch, epoch, __ATOMIC_RELEASE);
}

void
state_forget_cached(TreeShared *shared)
{
	StateTable *table = shared->states;

	spin_lock(&table->spin);
	for (uint32_t i = 0; i < table->states_used; i++)
		forget_cached(table, state_number(table, i));
	spin_unlock(&table->spin);
}

void
state_replicas_read(TreeShared *shared, TreeState *state, TreeReplicaState replicas)
{
	StateTable *table = shared->states;

	assert(replicas != TREE_REPLICAS_NONE);
	if (replicas == TREE_REPLICAS_BOTH)
		return;
	spin_lock(&table->spin);
	if (state_replicas(state) != replicas)
	{
		forget_cached(table, state);
		__atomic_store_n(&state->replicas, replicas, __ATOMIC_RELEASE);
	}
	spin_unlock(&table->spin);
}

/*
 * Forgets the memory that it may allocate from; id, references, counters and estimates stay for the handles that are
 * open.
 */
static void
state_reset(StateTable *table, TreeState *state)
{
	for (uint32_t i = 0; i < table->options.nodes; i++)
	{
		StateAtNode *part = state_part(table, state, i);

		if (part != NULL)
			memset(part, 0, sizeof(*part));
	}
	/* From now on the sum of what calls return (extent_install()). */
	state->extent_bytes = 0;
	state->spin = 0;
	state->splits = 0;
	state->barrier = 0;
	state->past_over = 0;
	state->unsettled = 0;
	state_replicas_note_doubt(state);
	__atomic_store_n(&state->epoch, __atomic_add_fetch(&table->epochs, 1, __ATOMIC_RELAXED),
	                 __ATOMIC_RELEASE);
	__atomic_store_n(&state->first_epoch, state_epoch(state), __ATOMIC_RELAXED);
}

void
state_shared_reset(void *memory)
{
	StateTable *table = memory;

	assert(table != NULL);
	assert(table->states != 0);
	for (uint32_t i = 0; i < table->states_used; i++)
		if (state_number(table, i)->tree != 0)
			state_reset(table, state_number(table, i));
	table->spin = 0;
	table->part_spin = 0;
	blocks_pool_reset(table);
	units_pool_reset(table);
}
