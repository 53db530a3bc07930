/*
 * lock_handle.c
 *		Frees a lock: its word is freed, or known to be lost, and then the entry is given up. See lock.c.
 */
#include "tree/lock/lock_handle.h"

void
hold_interrupts(TreeClient *client)
{
	assert(!client->holding);
	client->holding = true;
	if (client->options.environment.hold != NULL)
		client->options.environment.hold(client->options.environment.argument);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void
resume_interrupts(TreeClient *client)
{
	assert(client->holding);
	client->holding = false;
	/* A process that sees the record cleared also sees the result of freeing the lock. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (client->options.environment.resume != NULL)
		client->options.environment.resume(client->options.environment.argument);
}

bool
lock_words_are_needed(const Tree *tree, uint32_t memory_node)
{
	const FabricCapabilities *capabilities = access_capabilities(tree->client, memory_node);

	if (!tree->client->techniques.exclusive || tree->replicas != NULL)
		return true;
	return (capabilities->flags & FABRIC_CAP_OPERATION_ATOMIC) == 0 &&
	       capabilities->one_packet < NODE_MAX_BYTES;
}

uint64_t
word_make(TreeClient *client, uint32_t memory_node)
{
	const FabricCapabilities *capabilities = access_capabilities(client, memory_node);
	LockWaiter *waiter = table_waiter(client->shared->locks, client->slot);

	waiter->ticket++;
	return fabric_lock_word(capabilities->instance, capabilities->incarnation,
	                        (client->slot + 1) << 16 | (uint32_t) (waiter->ticket & 0xffff));
}

void
lock_handle_end(TreeClient *client, LockHandle *lock)
{
	LockTable *table = client->shared->locks;

	assert(client->holding);
	lock->held = false;
	waiter_forget(table_waiter(table, client->slot));
	entry_release(client, table_entry(table, lock->place, lock->index));
	resume_interrupts(client);
}

TreeStatus
lock_handle_leak(TreeClient *client, LockHandle *lock, TreeStatus status)
{
	assert(client->holding);
	assert(waiter_holds(table_waiter(client->shared->locks, client->slot)));
	if ((client->doubt & 1ull << lock->place) == 0 && status == TREE_FENCED)
	{
		/* The process that has fenced us looks for leaked locks afterwards, and does not find this one any more. */
		state_replicas_doubt(client->shared, table_waiter(client->shared->locks, client->slot)->tree);
		lock_handle_end(client, lock);
		return status;
	}
	lock->held = false;
	resume_interrupts(client);
	return status;
}

TreeStatus
word_read(Tree *tree, const LockHandle *lock, uint64_t *word)
{
	FabricOp op = word_op(FABRIC_READ, lock->index, 0, 0);

	op.buffer = word;
	return access_repeat(tree, lock->memory_node, &op, 1, "reads of a lock word");
}

/* Frees the lock's word by a swap whose result is checked. TREE_OK also if an earlier swap had taken effect. */
static TreeStatus
word_free(Tree *tree, const LockHandle *lock)
{
	if (!word_is_remote(lock->word))
		return TREE_OK;
	for (int attempt = 0; client_tries_again(tree->client, attempt); attempt++)
	{
		FabricOp op = word_op(FABRIC_COMPARE_SWAP, lock->index, lock->word, 0);
		uint64_t word = 0;
		TreeStatus status = access_execute(tree, lock->memory_node, &op, 1);

		if (status == TREE_OK && op.result == lock->word)
			return TREE_OK;
		if (status == TREE_OK)
			return client_fail(tree->client, TREE_FENCED,
			                   "memory node %u: lock word %u is %016llx, not our %016llx", lock->place,
			                   lock->index, (unsigned long long) op.result, (unsigned long long) lock->word);
		if (status != TREE_RETRY)
			return status;
		status = word_read(tree, lock, &word);
		if (status != TREE_OK)
			return status;
		if (word != lock->word)
			return TREE_OK;
	}
	return client_unanswered(tree->client, lock->place, "unlocks");
}

TreeStatus
unlock_alone(Tree *tree, LockHandle *lock, TreeStatus landed)
{
	TreeStatus status = word_free(tree, lock);

	assert(tree->client->holding);
	if (status != TREE_OK)
		return lock_handle_leak(tree->client, lock, status);
	lock_handle_end(tree->client, lock);
	return landed;
}

TreeStatus
lock_handle_fail(Tree *tree, LockHandle *lock, TreeStatus status)
{
	assert(status != TREE_OK && status != TREE_RETRY);
	assert(tree->client->holding);
	if (status != TREE_FENCED && (tree->client->doubt & 1ull << lock->place) == 0)
	{
		TreeStatus freed = word_free(tree, lock);

		if (freed == TREE_OK)
		{
			state_replicas_doubt(tree->client->shared, tree->tree);
			lock_handle_end(tree->client, lock);
			return status;
		}
		status = freed;
	}
	return lock_handle_leak(tree->client, lock, status);
}
