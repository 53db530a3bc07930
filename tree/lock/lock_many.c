/*
 * lock_many.c
 *		Several locks at once, taken by try only.  See lock_many.h.
 */
#include "tree/lock/lock_handle.h"

bool
lock_many_usable(const Tree *tree, uint32_t memory_node)
{
	return tree->replicas == NULL && !lock_words_are_needed(tree, memory_node);
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

	assert(!client->holding && tree->replicas == NULL);
	if (client->options.reader)
		return client_fail(client, TREE_INVALID, "tree %llx: a client that only reads locks no node",
		                   (unsigned long long) tree->tree);
	if (waiter_holds(waiter) || waiter->leaked > 0)
	{
		TreeStatus status = lock_clean_up(client);

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

	assert(client->holding && !lock_words_are_needed(tree, memory_node));
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

void
lock_many_writes(const Tree *tree, uint64_t pointer, const LockHandle *lock)
{
	assert(lock->held && tree->client->holding);
	leaf_cache_write_begins(tree, pointer, lock_entry_number(tree->client, lock->place, lock->index));
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
	assert(waiter->leaked < LOCK_MANY_MAX);
	waiter->leaked_entries[waiter->leaked] =
		(uint32_t) lock_entry_number(client, lock->place, lock->index) + 1;
	__atomic_store_n(&waiter->leaked, waiter->leaked + 1, __ATOMIC_RELEASE);
}

void
lock_many_end(Tree *tree)
{
	resume_interrupts(tree->client);
}
