/*
 * doubts.c
 *		Doubts about trees' copies: noted by a tree's id, whoever has it open, or nobody.
 */
#include "tree/shared/state.h"

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
state_copies_begin(TreeClient *client, TreeState *state, TreeCopyState copies, bool doubt)
{
	uint64_t lost;

	if (!state_copies_join(state, copies))
		state_copies_set(state, copies);
	else if (doubt || tree_copies_lost_doubts(client->shared, &lost))
		state_copies_unverified(state);
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
		state_copies_unverified(found);
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
			state_copies_unverified(state);
	}
	spin_unlock(&table->spin);
}
