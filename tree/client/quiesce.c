/*
 * quiesce.c
 *		Instants at which no operation on a tree is in progress: epochs of readers instead of timers.
 *
 * Every call that follows pointers of a tree is a passage: it says so in its process's slot, then looks
 * whether the tree's gate is open.  Who wants the tree alone closes the gate, then waits until each slot that
 * was inside a passage has been seen outside of it, of whatever tree.  Either the one who enters sees the
 * gate closed, or the one who closes it sees him inside: both write first and read then, in the one order of
 * sequentially consistent accesses.  From there until the gate opens nobody but the closer holds a pointer
 * into the tree in a call's variables.
 *
 * A comparator or hook may make calls inside of a call, on other trees: each has its own images (client_scratch()), and the slot
 * counts the outermost one.
 *
 * What outlives a call (a scan's place, images of leaves, positions handed to other processes) carries the tree's epoch, which the
 * closer raises: of another epoch, its pointers are not followed any more.  Of cached inner nodes, which are many and which most folds
 * do not concern, the closer marks those that it touches (cache.c).
 *
 * The closer waits for a bounded time, and then opens the gate again without having had the tree alone.  A
 * call that an error jumped out of looks as if it went on until tree_client_rest(): that delays the closer
 * and endangers nothing.
 *
 * Processes with another TreeShared are not seen: who closes gates has the tree for its instance.
 */
#include "tree/shared/state.h"

/* What the closer waits at most for those inside; who arrives meanwhile waits as long. */
#define GATE_DRAIN_US 10000u
/* The first pauses of a wait are spent awake: 1, 2, 4, ... microseconds. */
#define GATE_AWAKE_PAUSES 7

/* Odd: its process is inside a passage. */
struct GateSlot
{
	_Alignas(LINE_BYTES) uint64_t passages;
};

size_t
gate_shared_bytes(const TreeSharedOptions *options)
{
	assert(options->slots > 0);
	assert(sizeof(GateSlot) == LINE_BYTES);
	return (size_t) options->slots * sizeof(GateSlot);
}

static uint64_t *
slot_passages(const TreeShared *shared, uint32_t slot)
{
	assert(slot < shared->options.slots);
	return &shared->gates[slot].passages;
}

static void
slot_enter(TreeClient *client)
{
	uint64_t *passages = slot_passages(client->shared, client->slot);
	uint64_t before = __atomic_load_n(passages, __ATOMIC_RELAXED);

	assert(before % 2 == 0);
	__atomic_store_n(passages, before + 1, __ATOMIC_SEQ_CST);
}

static void
slot_leave(TreeClient *client)
{
	uint64_t *passages = slot_passages(client->shared, client->slot);
	uint64_t before = __atomic_load_n(passages, __ATOMIC_RELAXED);

	assert(before % 2 == 1);
	__atomic_store_n(passages, before + 1, __ATOMIC_RELEASE);
}

void
gate_rest(TreeClient *client, int passages)
{
	assert(client != NULL && passages >= 0);
	assert(!client->holding);
	if (passages > 0 && client->passages <= passages)
		return;
	client->passages = passages;
	(void) client_scratch(client, passages > 0 ? passages - 1 : 0);
	if (passages == 0 &&
	    __atomic_load_n(slot_passages(client->shared, client->slot), __ATOMIC_RELAXED) % 2 == 1)
		slot_leave(client);
}

/* Waits a little: awake at first, as gates are closed for microseconds. */
static void
gate_pause(TreeClient *client, int pause)
{
	const TreeEnvironment *environment = &client->options.environment;

	assert(pause >= 0);
	if (pause < GATE_AWAKE_PAUSES)
		access_pause(client, 1ull << pause);
	else
		environment->sleep(environment->argument, client->slot, 1);
}

static bool
gate_is_open(const TreeState *state)
{
	return __atomic_load_n(&state->gate, __ATOMIC_SEQ_CST) == 0;
}

/* Waits until the gate is open; outside, or in an outer passage that the closer does not wait for long. */
static TreeStatus
gate_await(Tree *tree)
{
	TreeClient *client = tree->client;
	uint64_t deadline = client_deadline(client);

	assert(!client->holding);
	for (int pause = 0; !gate_is_open(tree->state); pause++)
	{
		if (client_should_stop(client))
			return client_fail(client, TREE_STOPPED, "stopped before a tree that is being folded");
		if (client_now_us(client) > deadline)
			return client_fail(client, TREE_TIMED_OUT, "tree %llx: being folded for too long",
			                   (unsigned long long) tree->tree);
		gate_pause(client, pause);
	}
	client_silence_ends(client);
	return TREE_OK;
}

TreeStatus
gate_enter(Tree *tree, int *passage)
{
	TreeClient *client = tree->client;
	TreeStatus status = TREE_OK;

	assert(client->passages >= 0);
	*passage = client->passages;
	if (tree->comparing > 0 && tree->comparing <= client->passages)
		return client_fail(client, TREE_INVALID, "tree %llx: used by its own comparator",
		                   (unsigned long long) tree->tree);
	tree->comparing = 0;
	if (*passage > 0)
		status = client_scratch(client, *passage);
	while (status == TREE_OK)
	{
		if (*passage == 0)
			slot_enter(client);
		if (gate_is_open(tree->state))
			break;
		if (*passage == 0)
			slot_leave(client);
		status = gate_await(tree);
	}
	if (status != TREE_OK)
	{
		(void) client_scratch(client, *passage > 0 ? *passage - 1 : 0);
		return status;
	}
	client->passages++;
	tree->epoch = state_epoch(tree->state);
	tree->life = state_life(tree->state);
	return TREE_OK;
}

bool
gate_same_epoch(const Tree *tree, const TreeLeafSeen *leaf)
{
	assert(tree->client->passages > 0);
	return leaf->epoch == tree->epoch;
}

void
gate_leave(Tree *tree, int passage)
{
	TreeClient *client = tree->client;

	assert(passage >= 0);
	if (client->passages <= passage)
		return; /* the client has rested meanwhile */
	client->passages = passage;
	if (passage == 0)
		slot_leave(client);
	else
		(void) client_scratch(client, passage - 1);
}

/* Waits until the slot was seen outside of the passage that it may be in. False: not before `deadline`. */
static bool
slot_drain(TreeClient *client, uint32_t slot, uint64_t deadline)
{
	const uint64_t *passages = slot_passages(client->shared, slot);
	uint64_t seen = __atomic_load_n(passages, __ATOMIC_SEQ_CST);

	assert(slot != client->slot);
	for (int pause = 0; seen % 2 == 1 && __atomic_load_n(passages, __ATOMIC_ACQUIRE) == seen; pause++)
	{
		if (client_now_us(client) > deadline)
			return false;
		gate_pause(client, pause);
	}
	return true;
}

bool
gate_close(Tree *tree)
{
	TreeClient *client = tree->client;
	const TreeEnvironment *environment = &client->options.environment;
	uint64_t deadline = client_now_us(client) + GATE_DRAIN_US;
	uint32_t open = 0;

	assert(client->passages == 1 && !client->holding);
	assert(client->closed == NULL);
	if (!__atomic_compare_exchange_n(&tree->state->gate, &open, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return false;
	client->closed = tree->state;
	if (environment->hold != NULL)
		environment->hold(environment->argument);
	for (uint32_t slot = 0; slot < client->shared->options.slots; slot++)
		if (slot != client->slot && !slot_drain(client, slot, deadline))
		{
			gate_open(client);
			return false;
		}
	return true;
}

void
gate_open(TreeClient *client)
{
	const TreeEnvironment *environment = &client->options.environment;

	if (client->closed == NULL)
		return;
	assert(!gate_is_open(client->closed));
	__atomic_store_n(&client->closed->gate, 0, __ATOMIC_SEQ_CST);
	client->closed = NULL;
	if (environment->resume != NULL)
		environment->resume(environment->argument);
}

void
gate_next_epoch(Tree *tree)
{
	assert(tree->client->closed == tree->state);
	state_next_epoch(tree->client, tree->state);
	tree->epoch = state_epoch(tree->state);
}

void
tree_client_rest(TreeClient *client)
{
	gate_rest(client, 0);
}

int
tree_client_calls(const TreeClient *client)
{
	assert(client != NULL);
	return client->passages;
}

void
tree_client_rest_inside(TreeClient *client, int calls)
{
	gate_rest(client, calls);
}
