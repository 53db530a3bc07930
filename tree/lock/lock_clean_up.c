/*
 * lock_clean_up.c
 *		Cleans up after a process in the local lock table: frees leaked locks, and leaves a queue. See lock.c.
 */
#include "tree/lock/lock_handle.h"

/*
 * Ends a lock that this process or another one leaked at this memory node. True for the one caller that is to release
 * the entry: test and change are one atomic step, as the process may win a word of another memory node at any time.
 */
static bool
waiter_take_over(LockWaiter *waiter, uint32_t memory_node)
{
	uint32_t held = memory_node + 1;

	return __atomic_compare_exchange_n(&waiter->holds, &held, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool
lock_handle_abandon(TreeClient *client)
{
	LockTable *table = client->shared->locks;
	LockWaiter *waiter = table_waiter(table, client->slot);
	uint32_t memory_node = waiter->lock_memory_node;

	assert(!client->holding);
	leaked_release(client, waiter, TREE_MAX_NODES);
	if (!waiter_holds(waiter))
		return leaked_settle(client) == TREE_OK;
	if (node_is_open(client->shared, memory_node))
		return false;
	state_replicas_note_leaked_lock(client->shared, waiter->tree);
	if (waiter_take_over(waiter, memory_node))
		entry_release(client, table_entry(table, memory_node, waiter->lock_index));
	return true;
}

/* Frees the word of a leaked lock, by chains that need no tree. */
static TreeStatus
leaked_word_free(TreeClient *client, const LockWaiter *waiter)
{
	uint64_t bit = 1ull << waiter->lock_memory_node;
	FabricEndpoint *endpoint = access_endpoint(client, waiter->lock_memory_node);
	FabricStatus fabric = FABRIC_LOST;

	assert(waiter->lock_memory_node < client->options.nodes);
	if (endpoint == NULL)
		return client_away(client, waiter->lock_memory_node);
	for (int attempt = 0; client_tries_again(client, attempt); attempt++)
	{
		FabricOp ops[] = {word_op(FABRIC_COMPARE_SWAP, waiter->lock_index, waiter->held_word, 0),
		                  word_op(FABRIC_COMPARE_SWAP, waiter->lock_index, waiter->next_word, 0)};

		if ((client->doubt & bit) != 0)
		{
			TreeStatus status = access_settle(client, waiter->lock_memory_node);

			if (status != TREE_OK)
				return status;
		}
		if (!word_is_remote(waiter->held_word))
		{
			state_replicas_doubt(client->shared, waiter->tree);
			return TREE_OK;
		}
		fabric = crash_point_execute(client, endpoint, ops, waiter->next_word != 0 ? 2 : 1);
		if (fabric == FABRIC_OK)
		{
			/*
			 * Either the word had one of the two values and is free now, or it had neither: the swap never took
			 * effect, or the unlock had.
			 */
			client_silence_ends(client);
			/* The replica of what was written under the lock may differ. */
			state_replicas_doubt(client->shared, waiter->tree);
			return TREE_OK;
		}
		if (fabric != FABRIC_TIMED_OUT && fabric != FABRIC_STOPPED && fabric != FABRIC_LOST)
			break;
		client->doubt |= bit;
	}
	return client_fabric_fail(client, waiter->lock_memory_node, fabric);
}

/* Leaves the queue that this process is still in after an error jumped out of sleep(). */
static void
leave_queue(TreeClient *client, LockTable *table, LockWaiter *waiter)
{
	LockEntry *entry = table_entry(table, waiter->lock_memory_node, waiter->lock_index);

	assert(!waiter_holds(waiter));
	if (entry_leave(client, entry, waiter))
		return;
	if (waiter->state == WAIT_PASSED)
	{
		waiter->held_word = waiter->passed_word;
		waiter->next_word = 0;
		__atomic_store_n(&waiter->holds, waiter->lock_memory_node + 1, __ATOMIC_RELEASE);
	}
	else
		entry_release(client, entry);
	waiter->state = WAIT_IDLE;
}

TreeStatus
lock_clean_up(TreeClient *client)
{
	LockTable *table = client->shared->locks;
	LockWaiter *waiter = table_waiter(table, client->slot);
	TreeStatus status;
	TreeStatus leaked;

	assert(table->options.slots > client->slot);
	if (client->holding)
		resume_interrupts(client);
	if (__atomic_load_n(&waiter->state, __ATOMIC_ACQUIRE) != WAIT_IDLE)
		leave_queue(client, table, waiter);
	assert(waiter->state == WAIT_IDLE);
	leaked = leaked_settle(client);
	if (!waiter_holds(waiter))
		return leaked;
	status = leaked_word_free(client, waiter);
	if (status != TREE_OK && status != TREE_FENCED)
		return status;
	if (waiter_take_over(waiter, waiter->lock_memory_node))
		entry_release(client, table_entry(table, waiter->lock_memory_node, waiter->lock_index));
	return status == TREE_OK ? leaked : status;
}

void
lock_node_fenced(TreeClient *client, uint32_t memory_node)
{
	LockTable *table = client->shared->locks;

	assert(memory_node < table->options.nodes);
	for (uint32_t slot = 0; slot < table->options.slots; slot++)
	{
		LockWaiter *waiter = table_waiter(table, slot);
		uint32_t index;

		leaked_release(client, waiter, memory_node);
		if (__atomic_load_n(&waiter->holds, __ATOMIC_ACQUIRE) != memory_node + 1)
			continue;
		state_replicas_doubt(client->shared, waiter->tree);
		/* Before the word is taken over: from then on only its owner writes the record. */
		index = __atomic_load_n(&waiter->lock_index, __ATOMIC_RELAXED);
		if (waiter_take_over(waiter, memory_node))
			entry_release_for(client, table_entry(table, memory_node, index), slot);
	}
}
