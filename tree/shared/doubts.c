/*
 * doubts.c
 *		Doubts whether a tree and its replica are equal: noted by the tree's id, whether or not a process has it open.
 */
#include "tree/shared/state.h"

bool
tree_replicas_lost_doubts(TreeShared *shared, uint64_t *lost)
{
	StateTable *table = shared->states;

	assert(lost != NULL);
	*lost = __atomic_load_n(&table->doubts_lost, __ATOMIC_ACQUIRE);
	return *lost != __atomic_load_n(&table->doubts_kept, __ATOMIC_ACQUIRE);
}

void
tree_replicas_keep_doubts(TreeShared *shared, uint64_t lost)
{
	StateTable *table = shared->states;

	assert(lost <= __atomic_load_n(&table->doubts_lost, __ATOMIC_ACQUIRE));
	__atomic_store_n(&table->doubts_kept, lost, __ATOMIC_RELEASE);
}

bool
tree_replicas_doubted(TreeShared *shared, uint64_t tree, bool returned)
{
	StateTable *table = shared->states;
	TreeState *state;
	uint64_t lost;
	bool doubted = tree_replicas_lost_doubts(shared, &lost);

	assert(tree != 0);
	spin_lock(&table->spin);
	state = state_find(table, tree);
	if (state != NULL && state_replicas(state) != TREE_REPLICAS_NONE)
	{
		(void) state_replicas_doubts(state, &doubted);
		if (returned && __atomic_load_n(&state->locks_leaked, __ATOMIC_ACQUIRE) != 0)
			doubted = true;
		/* Of a tree that is at one memory node alone it means nothing any more. */
		doubted &= state_replicas(state) == TREE_REPLICAS_BOTH;
	}
	spin_unlock(&table->spin);
	return doubted;
}

void
state_replicas_begin(TreeClient *client, TreeState *state, TreeReplicaState replicas, bool doubt)
{
	uint64_t lost;

	if (!state_replicas_join(state, replicas))
		state_replicas_set(state, replicas);
	else if (doubt || tree_replicas_lost_doubts(client->shared, &lost))
		state_replicas_note_doubt(state);
}

/*
 * Notes a doubt or a leaked lock of a tree. If the tree has no entry, as no process has it open, the note counts for
 * all trees without an entry.
 */
static void
replicas_note(TreeShared *shared, uint64_t tree, bool leaked)
{
	StateTable *table = shared->states;
	TreeState *found;

	spin_lock(&table->spin);
	found = state_find(table, tree);
	if (found == NULL)
		tree_replicas_lose_doubt(shared);
	else if (leaked)
		__atomic_store_n(&found->locks_leaked, 1, __ATOMIC_RELEASE);
	else
		state_replicas_note_doubt(found);
	spin_unlock(&table->spin);
}

void
state_replicas_doubt(TreeShared *shared, uint64_t tree)
{
	replicas_note(shared, tree, false);
}

void
state_replicas_note_leaked_lock(TreeShared *shared, uint64_t tree)
{
	replicas_note(shared, tree, true);
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
		if (__atomic_exchange_n(&state->locks_leaked, 0, __ATOMIC_ACQ_REL) != 0)
			state_replicas_note_doubt(state);
	}
	spin_unlock(&table->spin);
}
