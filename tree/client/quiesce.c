/*
 * quiesce.c
 *		Finds instants at which no operation on a tree is in progress, by the epochs of readers instead of timers.
 *
 * Every call that follows pointers of a tree is a critical section: the process marks its slot as inside, and then
 * checks whether the tree's barrier is open. A process that needs the tree alone closes the barrier, and then waits
 * until each slot that was inside a critical section, of any tree, was seen outside of it. Either the process that
 * enters sees the barrier closed, or the one that closes it sees the other inside: each writes first and reads then,
 * and all these accesses are sequentially consistent. From then on, until the barrier opens, only the process that
 * closed it holds pointers into the tree in the variables of a call.
 *
 * A comparator or hook may make calls inside of a call, on other trees: each has its own images (client_scratch()), and the slot
 * counts the outermost one.
 *
 * What outlives a call (a scan's place, images of leaves, positions handed to other processes) carries the tree's
 * epoch, which the closing process raises: pointers of an earlier epoch are not followed any more. Cached inner nodes
 * are many, and most merges concern few of them: the closing process marks those that it changes (inner_cache.c).
 *
 * The closing process waits for a bounded time; if that does not suffice it opens the barrier again without having
 * had the tree alone. A call that an error jumped out of counts as in progress until tree_client_rest(): that only
 * delays others.
 *
 * Processes of other instances, with a TreeShared of their own, are not seen: a barrier is only of use where the
 * instance has the tree for itself.
 */
#include "tree/shared/state.h"

/* The longest time that the closing process waits for those inside; processes that arrive meanwhile wait as long. */
#define BARRIER_DRAIN_US 10000u
/* The first pauses of a wait are spent awake: 1, 2, 4, ... microseconds. */
#define BARRIER_AWAKE_PAUSES 7

/* Odd: its process is inside a critical section. */
struct CriticalSlot
{
	_Alignas(LINE_BYTES) uint64_t sections;
};

size_t
critical_shared_bytes(const TreeSharedOptions *options)
{
	assert(options->slots > 0);
	assert(sizeof(CriticalSlot) == LINE_BYTES);
	return (size_t) options->slots * sizeof(CriticalSlot);
}

static uint64_t *
slot_sections(const TreeShared *shared, uint32_t slot)
{
	assert(slot < shared->options.slots);
	return &shared->critical_slots[slot].sections;
}

static void
slot_enter(TreeClient *client)
{
	uint64_t *sections = slot_sections(client->shared, client->slot);
	uint64_t before = __atomic_load_n(sections, __ATOMIC_RELAXED);

	assert(before % 2 == 0);
	__atomic_store_n(sections, before + 1, __ATOMIC_SEQ_CST);
}

static void
slot_leave(TreeClient *client)
{
	uint64_t *sections = slot_sections(client->shared, client->slot);
	uint64_t before = __atomic_load_n(sections, __ATOMIC_RELAXED);

	assert(before % 2 == 1);
	__atomic_store_n(sections, before + 1, __ATOMIC_RELEASE);
}

void
critical_reset(TreeClient *client, int sections)
{
	assert(client != NULL && sections >= 0);
	assert(!client->holding);
	if (sections > 0 && client->sections <= sections)
		return;
	client->sections = sections;
	(void) client_scratch(client, sections > 0 ? sections - 1 : 0);
	if (sections == 0 &&
	    __atomic_load_n(slot_sections(client->shared, client->slot), __ATOMIC_RELAXED) % 2 == 1)
		slot_leave(client);
}

/* Waits a little: awake at first, as barriers are closed for microseconds. */
static void
barrier_pause(TreeClient *client, int pause)
{
	const TreeEnvironment *environment = &client->options.environment;

	assert(pause >= 0);
	if (pause < BARRIER_AWAKE_PAUSES)
		access_pause(client, 1ull << pause);
	else
		environment->sleep(environment->argument, client->slot, 1);
}

static bool
barrier_is_open(const TreeState *state)
{
	return __atomic_load_n(&state->barrier, __ATOMIC_SEQ_CST) == 0;
}

/* Waits until the barrier is open; outside, or in an outer critical section that the closer does not wait for long. */
static TreeStatus
barrier_await(Tree *tree)
{
	TreeClient *client = tree->client;
	uint64_t deadline = client_deadline(client);

	assert(!client->holding);
	for (int pause = 0; !barrier_is_open(tree->state); pause++)
	{
		if (client_should_stop(client))
			return client_fail(client, TREE_STOPPED, "stopped before a tree that is being merged");
		if (client_now_us(client) > deadline)
			return client_fail(client, TREE_TIMED_OUT, "tree %llx: being merged for too long",
			                   (unsigned long long) tree->tree);
		barrier_pause(client, pause);
	}
	client_silence_ends(client);
	return TREE_OK;
}

TreeStatus
critical_enter(Tree *tree, int *section)
{
	TreeClient *client = tree->client;
	TreeStatus status = TREE_OK;

	assert(client->sections >= 0);
	*section = client->sections;
	if (tree->comparing > 0 && tree->comparing <= client->sections)
		return client_fail(client, TREE_INVALID, "tree %llx: used by its own comparator",
		                   (unsigned long long) tree->tree);
	tree->comparing = 0;
	if (*section > 0)
		status = client_scratch(client, *section);
	while (status == TREE_OK)
	{
		if (*section == 0)
			slot_enter(client);
		if (barrier_is_open(tree->state))
			break;
		if (*section == 0)
			slot_leave(client);
		status = barrier_await(tree);
	}
	if (status != TREE_OK)
	{
		(void) client_scratch(client, *section > 0 ? *section - 1 : 0);
		return status;
	}
	client->sections++;
	tree->epoch = state_epoch(tree->state);
	tree->first_epoch = state_first_epoch(tree->state);
	return TREE_OK;
}

bool
critical_same_epoch(const Tree *tree, const TreeLeafSeen *leaf)
{
	assert(tree->client->sections > 0);
	return leaf->epoch == tree->epoch;
}

void
critical_leave(Tree *tree, int section)
{
	TreeClient *client = tree->client;

	assert(section >= 0);
	if (client->sections <= section)
		return; /* the client has rested meanwhile */
	client->sections = section;
	if (section == 0)
		slot_leave(client);
	else
		(void) client_scratch(client, section - 1);
}

/* Waits until the slot was seen outside of the critical section that it may be in. False: not before `deadline`. */
static bool
slot_drain(TreeClient *client, uint32_t slot, uint64_t deadline)
{
	const uint64_t *sections = slot_sections(client->shared, slot);
	uint64_t seen = __atomic_load_n(sections, __ATOMIC_SEQ_CST);

	assert(slot != client->slot);
	for (int pause = 0; seen % 2 == 1 && __atomic_load_n(sections, __ATOMIC_ACQUIRE) == seen; pause++)
	{
		if (client_now_us(client) > deadline)
			return false;
		barrier_pause(client, pause);
	}
	return true;
}

bool
barrier_close(Tree *tree)
{
	TreeClient *client = tree->client;
	const TreeEnvironment *environment = &client->options.environment;
	uint64_t deadline = client_now_us(client) + BARRIER_DRAIN_US;
	uint32_t open = 0;

	assert(client->sections == 1 && !client->holding);
	assert(client->closed == NULL);
	if (!__atomic_compare_exchange_n(&tree->state->barrier, &open, 1, false, __ATOMIC_SEQ_CST,
	                                 __ATOMIC_RELAXED))
		return false;
	client->closed = tree->state;
	if (environment->hold != NULL)
		environment->hold(environment->argument);
	for (uint32_t slot = 0; slot < client->shared->options.slots; slot++)
		if (slot != client->slot && !slot_drain(client, slot, deadline))
		{
			barrier_open(client);
			return false;
		}
	return true;
}

void
barrier_open(TreeClient *client)
{
	const TreeEnvironment *environment = &client->options.environment;

	if (client->closed == NULL)
		return;
	assert(!barrier_is_open(client->closed));
	__atomic_store_n(&client->closed->barrier, 0, __ATOMIC_SEQ_CST);
	client->closed = NULL;
	if (environment->resume != NULL)
		environment->resume(environment->argument);
}

void
barrier_next_epoch(Tree *tree)
{
	assert(tree->client->closed == tree->state);
	state_next_epoch(tree->client, tree->state);
	tree->epoch = state_epoch(tree->state);
}

void
tree_client_rest(TreeClient *client)
{
	critical_reset(client, 0);
}

int
tree_client_calls(const TreeClient *client)
{
	assert(client != NULL);
	return client->sections;
}

void
tree_client_rest_inside(TreeClient *client, int calls)
{
	critical_reset(client, calls);
}
