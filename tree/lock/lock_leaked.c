/*
 * lock_leaked.c
 *		Locks of a wave that its process has leaked, as a chain under them is indeterminate. See lock_many.h.
 */
#include "tree/lock/lock_handle.h"

void
leaked_release(TreeClient *client, LockWaiter *waiter, uint32_t memory_node)
{
	LockTable *table = client->shared->locks;
	uint32_t slot = (uint32_t) (waiter - table_waiter(table, 0));
	uint32_t leaked = __atomic_load_n(&waiter->leaked, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < leaked; i++)
	{
		uint32_t number = __atomic_load_n(&waiter->leaked_entries[i], __ATOMIC_RELAXED);
		uint32_t node = number == 0 ? TREE_MAX_NODES : (number - 1) / table->options.lock_words;
		bool over = memory_node == TREE_MAX_NODES ? number != 0 && !node_is_open(client->shared, node)
		                                          : node == memory_node;

		/*
		 * Tests and takes the entry in one atomic step: the owner, and the process that fences the memory node, may
		 * do this at once.
		 */
		if (over && __atomic_compare_exchange_n(&waiter->leaked_entries[i], &number, 0, false,
		                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			entry_release_for(client, table_entry(table, node, (number - 1) % table->options.lock_words),
			                  slot);
	}
}

TreeStatus
leaked_settle(TreeClient *client)
{
	LockWaiter *waiter = table_waiter(client->shared->locks, client->slot);
	uint32_t words = client->shared->options.lock_words;
	TreeStatus status = TREE_OK;

	assert(!client->holding);
	for (uint32_t i = 0; i < waiter->leaked; i++)
	{
		uint32_t number = __atomic_load_n(&waiter->leaked_entries[i], __ATOMIC_RELAXED);
		uint32_t node = number == 0 ? 0 : (number - 1) / words;

		if (number == 0)
			continue;
		if ((client->doubt & 1ull << node) != 0)
			status = access_settle(client, node);
		if (status != TREE_OK && status != TREE_FENCED)
			return status;
		leaked_release(client, waiter, node);
	}
	__atomic_store_n(&waiter->leaked, 0, __ATOMIC_RELEASE);
	return status;
}
