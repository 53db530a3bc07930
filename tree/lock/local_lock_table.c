/*
 * local_lock_table.c
 *		See local_lock_table.h.
 */
#include "tree/lock/local_lock_table.h"

/* Looks at the own record before sleeping: about the time that a handover over shared memory takes. */
#define WAIT_SPINS 64
/*
 * A process that waits for an owner waits longer than its deadline, by this part of it: an owner that has had no answer since
 * before is to fail first, as then the lock was not the cause.
 */
#define OWNER_FIRST_PART 8
/* One sleep is at most this long, so that should_stop() is asked where no wake-up comes with a cancel. */
#define WAIT_SLICE_MS 50u

/* The owner gives the entry up: what it wrote under it is written. */
static inline void
entry_writes_end(TreeClient *client, const LockEntry *entry)
{
	leaf_cache_write_ends(client, (uint64_t) (entry - table_entry(client->shared->locks, 0, 0)));
}

size_t
lock_shared_bytes(const TreeSharedOptions *options)
{
	assert(options->slots > 0);
	return sizeof(LockTable) + lock_entries_bytes(options) + options->slots * sizeof(LockWaiter);
}

void
lock_shared_initialize(void *memory, const TreeSharedOptions *options)
{
	assert(((uintptr_t) memory & (LINE_BYTES - 1)) == 0);
	((LockTable *) memory)->options = *options;
}

/* The words were freed by fencing, and nobody uses the table: all entries are free. */
void
lock_shared_reset(void *memory)
{
	LockTable *table = memory;

	assert(table->options.slots > 0);
	memset(table + 1, 0, lock_shared_bytes(&table->options) - sizeof(*table));
}

/* A link of the queue, its head or a waiter's next. Under the entry's spin lock. */
static void
link_store(uint32_t *link, uint32_t slot)
{
	__atomic_store_n(link, slot, __ATOMIC_RELAXED);
}

bool
entry_is_owned(LockEntry *entry)
{
	bool owned;

	assert(entry != NULL);
	spin_lock(&entry->spin);
	owned = entry->owner != 0;
	spin_unlock(&entry->spin);
	return owned;
}

bool
entry_try(TreeClient *client, LockEntry *entry)
{
	bool owned;

	spin_lock(&entry->spin);
	owned = entry->owner == 0;
	if (owned)
		entry->owner = client->slot + 1;
	spin_unlock(&entry->spin);
	return owned;
}

/* Takes the first of the queue and makes it the owner: NULL if there is none. Under the entry's spin lock. */
static LockWaiter *
entry_choose(LockTable *table, LockEntry *entry)
{
	LockWaiter *chosen;

	if (entry->head == 0)
	{
		entry->owner = 0;
		return NULL;
	}
	chosen = table_waiter(table, entry->head - 1);
	assert(__atomic_load_n(&chosen->state, __ATOMIC_RELAXED) == WAIT_QUEUED);
	entry->owner = entry->head;
	link_store(&entry->head, chosen->next);
	if (entry->head == 0)
		entry->tail = 0;
	return chosen;
}

void
waiter_wake(TreeClient *client, LockTable *table, LockWaiter *chosen, WaitState state)
{
	uint32_t slot = (uint32_t) (chosen - table_waiter(table, 0));

	assert(state == WAIT_GRANTED || state == WAIT_PASSED);
	__atomic_store_n(&chosen->state, (uint32_t) state, __ATOMIC_RELEASE);
	client->options.environment.wake(client->options.environment.argument, slot);
}

void
entry_release_for(TreeClient *client, LockEntry *entry, uint32_t slot)
{
	LockTable *table = client->shared->locks;
	LockWaiter *chosen;

	assert(entry->owner == slot + 1);
	entry_writes_end(client, entry);
	spin_lock(&entry->spin);
	chosen = entry_choose(table, entry);
	spin_unlock(&entry->spin);
	if (chosen != NULL)
		waiter_wake(client, table, chosen, WAIT_GRANTED);
}

LockWaiter *
entry_pass(TreeClient *client, LockEntry *entry)
{
	LockWaiter *chosen = NULL;

	entry_writes_end(client, entry);
	spin_lock(&entry->spin);
	assert(entry->owner == client->slot + 1);
	if (entry->head != 0)
		chosen = entry_choose(client->shared->locks, entry);
	spin_unlock(&entry->spin);
	return chosen;
}

/* Leaves the queue. False: already chosen as owner. */
static bool
entry_dequeue(LockTable *table, LockEntry *entry, uint32_t slot)
{
	uint32_t *link = &entry->head;
	uint32_t before = 0;
	bool queued;

	spin_lock(&entry->spin);
	queued = entry->owner != slot + 1;
	if (queued)
	{
		while (*link != slot + 1)
		{
			assert(*link != 0);
			before = *link;
			link = &table_waiter(table, before - 1)->next;
		}
		link_store(link, table_waiter(table, slot)->next);
		if (entry->tail == slot + 1)
			entry->tail = before;
		__atomic_store_n(&table_waiter(table, slot)->state, WAIT_IDLE, __ATOMIC_RELAXED);
	}
	spin_unlock(&entry->spin);
	return queued;
}

static bool
waiter_is_queued(const LockWaiter *waiter)
{
	return __atomic_load_n(&waiter->state, __ATOMIC_ACQUIRE) == WAIT_QUEUED;
}

bool
entry_leave(TreeClient *client, LockEntry *entry, LockWaiter *waiter)
{
	assert(waiter == table_waiter(client->shared->locks, client->slot));
	assert(__atomic_load_n(&waiter->state, __ATOMIC_RELAXED) != WAIT_IDLE);
	if (waiter_is_queued(waiter) && entry_dequeue(client->shared->locks, entry, client->slot))
		return true;
	/* Chosen already: what is being passed to us has to be taken. */
	while (waiter_is_queued(waiter))
		client_pause(client);
	return false;
}

/* Waits in the queue until the record is not queued any more, or out of patience. */
static TreeStatus
queue_wait(Tree *tree, LockWaiter *waiter, uint64_t deadline)
{
	TreeClient *client = tree->client;

	TREE_COUNT(tree, lock_waits, 1);
	for (;;)
	{
		uint64_t now;
		uint64_t left_ms;

		for (int i = 0; i < WAIT_SPINS && waiter_is_queued(waiter); i++)
			client_pause(client);
		/* Behind the last pause, too, as that may have used up the wake-up. */
		if (!waiter_is_queued(waiter))
			return TREE_OK;
		if (client_should_stop(client))
			return client_fail(client, TREE_STOPPED, "stopped while waiting for a lock");
		if (!node_is_open(client->shared, waiter->lock_memory_node))
			return client_away(client, waiter->lock_memory_node);
		now = client_now_us(client);
		if (now >= deadline)
			return client_fail(client, TREE_TIMED_OUT,
			                   "a lock was not to be had in time from a process of this instance");
		left_ms = (deadline - now + 999) / 1000;
		client->options.environment.sleep(client->options.environment.argument, client->slot,
		                                  left_ms < WAIT_SLICE_MS ? (uint32_t) left_ms : WAIT_SLICE_MS);
	}
}

TreeStatus
entry_acquire(Tree *tree, LockEntry *entry, LockWaiter *waiter, uint64_t *deadline, bool *chosen)
{
	TreeClient *client = tree->client;
	LockTable *table = client->shared->locks;
	uint32_t mine = client->slot + 1;
	TreeStatus status;

	*chosen = false;
	spin_lock(&entry->spin);
	if (entry->owner == 0)
	{
		assert(entry->head == 0);
		entry->owner = mine;
		spin_unlock(&entry->spin);
		waiter->state = WAIT_GRANTED;
		return TREE_OK;
	}
	assert(entry->owner != mine);
	__atomic_store_n(&waiter->state, WAIT_QUEUED, __ATOMIC_RELAXED);
	waiter->next = 0;
	waiter->passed_bytes = 0;
	if (entry->tail != 0)
		link_store(&table_waiter(table, entry->tail - 1)->next, mine);
	else
		link_store(&entry->head, mine);
	entry->tail = mine;
	spin_unlock(&entry->spin);

	*deadline = client_deadline(client) + client->options.operation_timeout_ms * 1000ull / OWNER_FIRST_PART;
	status = queue_wait(tree, waiter, *deadline);
	if (status != TREE_OK)
	{
		client_silence_ends(client);
		*chosen = !entry_leave(client, entry, waiter);
	}
	return status;
}
