/*
 * lock_many.c
 *		Several locks at once, taken by try only.  See lock_many.h.
 */
#include "tree/lock/lock_handle.h"

bool
lock_many_usable(const Tree *tree, uint32_t memory_node)
{
	return tree->copies == NULL && !words_are_used(tree, memory_node);
}

static LockWaiter *
own_record(TreeClient *client)
{
	return table_waiter(client->shared->locks, client->slot);
}

TreeStatus
lock_many_begin(Tree *tree)
{
	TreeClient *client = tree->client;
	const LockWaiter *waiter = own_record(client);

	assert(!client->holding && tree->copies == NULL);
	if (waiter_holds(waiter) || waiter->kept > 0)
	{
		TreeStatus status = lock_leave(client);

		if (status != TREE_OK)
			return status;
	}
	hold_interrupts(client);
	return TREE_OK;
}

bool
lock_many_try(Tree *tree, uint64_t pointer, LockHandle *lock)
{
	TreeClient *client = tree->client;
	LockTable *table = client->shared->locks;
	uint32_t memory_node = pointer_memory_node(pointer);

	assert(client->holding && !words_are_used(tree, memory_node));
	memset(lock, 0, sizeof(*lock));
	lock->memory_node = lock->place = memory_node;
	lock->index = lock_word_of(client, memory_node, pointer);
	if (!entry_try(client, table_entry(table, memory_node, lock->index)))
		return false;
	if (!node_is_open(client->shared, memory_node))
	{
		entry_release(client, table_entry(table, memory_node, lock->index));
		return false;
	}
	lock->word = ++own_record(client)->ticket & ((1ull << LOCK_INSTANCE_SHIFT) - 1);
	lock->held = true;
	TREE_COUNT(tree, lock_acquisitions, 1);
	return true;
}

uint64_t
lock_many_writes(const Tree *tree, const LockHandle *lock)
{
	assert(lock->held && tree->client->holding);
	return leaf_cache_write_begins(tree->client, lock_entry_number(tree->client, lock->place, lock->index));
}

void
lock_many_release(Tree *tree, LockHandle *lock)
{
	TreeClient *client = tree->client;
	LockWaiter *waiter = own_record(client);

	assert(lock->held && client->holding);
	lock->held = false;
	if ((client->doubt & 1ull << lock->place) == 0)
	{
		entry_release(client, table_entry(client->shared->locks, lock->place, lock->index));
		return;
	}
	assert(waiter->kept < LOCK_MANY_MAX);
	waiter->kept_entries[waiter->kept] = (uint32_t) lock_entry_number(client, lock->place, lock->index) + 1;
	__atomic_store_n(&waiter->kept, waiter->kept + 1, __ATOMIC_RELEASE);
}

void
lock_many_end(Tree *tree)
{
	resume_interrupts(tree->client);
}

void
kept_release(TreeClient *client, LockWaiter *waiter, uint32_t memory_node)
{
	LockTable *table = client->shared->locks;
	uint32_t slot = (uint32_t) (waiter - table_waiter(table, 0));
	uint32_t kept = __atomic_load_n(&waiter->kept, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < kept; i++)
	{
		uint32_t number = __atomic_load_n(&waiter->kept_entries[i], __ATOMIC_RELAXED);
		uint32_t node = number == 0 ? TREE_MAX_NODES : (number - 1) / table->options.lock_words;
		bool over = memory_node == TREE_MAX_NODES ? number != 0 && !node_is_open(client->shared, node)
		                                          : node == memory_node;

		/* One step tells and takes: its owner and who fences the memory node may both come. */
		if (over && __atomic_compare_exchange_n(&waiter->kept_entries[i], &number, 0, false, __ATOMIC_ACQ_REL,
		                                        __ATOMIC_RELAXED))
			entry_release_for(client, table_entry(table, node, (number - 1) % table->options.lock_words),
			                  slot);
	}
}

TreeStatus
kept_leave(TreeClient *client)
{
	LockWaiter *waiter = own_record(client);
	uint32_t words = client->shared->options.lock_words;
	TreeStatus status = TREE_OK;

	assert(!client->holding);
	for (uint32_t i = 0; i < waiter->kept; i++)
	{
		uint32_t number = __atomic_load_n(&waiter->kept_entries[i], __ATOMIC_RELAXED);
		uint32_t node = number == 0 ? 0 : (number - 1) / words;

		if (number == 0)
			continue;
		if ((client->doubt & 1ull << node) != 0)
			status = access_settle(client, node);
		if (status != TREE_OK && status != TREE_FENCED)
			return status;
		kept_release(client, waiter, node);
	}
	__atomic_store_n(&waiter->kept, 0, __ATOMIC_RELEASE);
	return status;
}
