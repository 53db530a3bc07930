/*
 * lock_release.c
 *		What the holder of a lock writes, and how the lock word is freed or passed on behind it: see lock.c.
 */
#include "tree/lock/lock_handle.h"
#include "tree/node/redo.h"

/* Passes entry and word on to the first process in the queue. False: none waits any more. */
static bool
word_pass_on(Tree *tree, LockHandle *lock, uint64_t pointer, const uint64_t *after, uint32_t bytes)
{
	TreeClient *client = tree->client;
	LockTable *table = client->shared->locks;
	LockEntry *entry = table_entry(table, lock->place, lock->index);
	LockWaiter *chosen;

	assert(lock->held);
	assert(lock->handovers < client->techniques.handovers);
	chosen = entry_pass(client, entry);
	if (chosen == NULL)
		return false;
	/* No other process writes the record: its owner waits for the state. */
	waiter_forget(table_waiter(table, client->slot));
	chosen->passed_word = lock->word;
	chosen->passed_handovers = lock->handovers + 1;
	chosen->passed_bytes = 0;
	if (after != NULL && chosen->tree == tree->tree && chosen->address == pointer_address(pointer) &&
	    chosen->wanted_bytes <= bytes)
	{
		memcpy(chosen->image, after, bytes);
		chosen->passed_bytes = bytes;
	}
	lock->held = false;
	waiter_wake(client, table, chosen, WAIT_PASSED);
	resume_interrupts(client);
	return true;
}

/*
 * A chain of writes was lost, its channel is reset, and the word is still ours; it is not known which WRITEs took
 * effect. First makes the replica's node, which was written before, equal to the node, and then frees the word.
 */
static TreeStatus
writes_settle(Tree *tree, LockHandle *lock, int count, uint64_t pointer, uint32_t bytes)
{
	TreeStatus status = TREE_OK;

	assert(lock->held);
	if (tree->replicas != NULL && count > 0)
		status = replicas_restore(tree, pointer, bytes);
	if (status != TREE_OK)
		return lock_handle_fail(tree, lock, status);
	return unlock_alone(tree, lock, TREE_RETRY);
}

/* The chain with the unlock behind the writes was lost, and its channel is reset: did the unlock take effect? */
static TreeStatus
unlock_settle(Tree *tree, LockHandle *lock, int count, uint64_t pointer, uint32_t bytes)
{
	uint64_t word = 0;
	TreeStatus status = word_read(tree, lock, &word);

	assert(lock->held);
	if (status != TREE_OK)
		return lock_handle_leak(tree->client, lock, status);
	if (word == lock->word) /* it did not, and perhaps not all WRITEs did */
		return writes_settle(tree, lock, count, pointer, bytes);
	/* It was the last operation of the chain: all before it took effect, too. */
	lock_handle_end(tree->client, lock);
	return TREE_OK;
}

/* Writes, and puts `next` in the place of the word, in one chain. TREE_OK: it did. */
static TreeStatus
write_and_swap(Tree *tree, LockHandle *lock, FabricOp *writes, int count, uint64_t next)
{
	TreeStatus status;

	writes[count] = word_op(FABRIC_COMPARE_SWAP, lock->index, lock->word, next);
	status = access_execute(tree, lock->memory_node, writes, count + 1);
	if (status == TREE_OK && writes[count].result != lock->word)
		return client_fail(tree->client, TREE_FENCED,
		                   "memory node %u: lock word %u was %016llx, not our %016llx", lock->place,
		                   lock->index, (unsigned long long) writes[count].result,
		                   (unsigned long long) lock->word);
	return status;
}

/* The writes, if there were any, are acknowledged, and the entry is ours still. */
static void
node_wrote(Tree *tree, int count, uint64_t pointer, const uint64_t *after, uint32_t bytes)
{
	if (count > 0)
		leaf_cache_wrote(tree, pointer, after, bytes);
}

static TreeStatus
write_and_unlock(Tree *tree, LockHandle *lock, FabricOp *writes, int count, uint64_t pointer,
                 const uint64_t *after, uint32_t bytes)
{
	TreeStatus status = write_and_swap(tree, lock, writes, count, 0);

	if (status == TREE_RETRY)
		return unlock_settle(tree, lock, count, pointer, bytes);
	if (status != TREE_OK)
		return lock_handle_fail(tree, lock, status);
	node_wrote(tree, count, pointer, after, bytes);
	lock_handle_end(tree->client, lock);
	return TREE_OK;
}

/*
 * Writes, and replaces the lock's word by another one of ours: so the memory node sees, whichever process has the
 * lock next, that this redo image is not in use any more. Not TREE_OK: the lock is released.
 */
static TreeStatus
write_and_renew(Tree *tree, LockHandle *lock, FabricOp *writes, int count, uint64_t pointer, uint32_t bytes)
{
	LockWaiter *waiter = table_waiter(tree->client->shared->locks, tree->client->slot);
	uint64_t next = word_make(tree->client, lock->place);
	uint64_t word = next;
	TreeStatus status;

	waiter->next_word = next;
	status = write_and_swap(tree, lock, writes, count, next);
	if (status == TREE_RETRY)
	{
		status = word_read(tree, lock, &word);
		if (status != TREE_OK)
			return lock_handle_leak(tree->client, lock, status);
	}
	if (status != TREE_OK)
		return lock_handle_fail(tree, lock, status);
	waiter->next_word = 0;
	if (word != next) /* it did not land, and perhaps not all of the writes */
		return writes_settle(tree, lock, count, pointer, bytes);
	lock->word = waiter->held_word = next;
	return TREE_OK;
}

/* Writes, and keeps the lock. Not TREE_OK: it is released. */
static TreeStatus
write_and_keep(Tree *tree, LockHandle *lock, FabricOp *writes, int count, uint64_t pointer, uint32_t bytes)
{
	TreeStatus status = TREE_OK;

	if (lock->redo && word_is_remote(lock->word))
		return write_and_renew(tree, lock, writes, count, pointer, bytes);
	if (count > 0)
		status = access_execute(tree, lock->memory_node, writes, count);
	if (status == TREE_RETRY)
		return writes_settle(tree, lock, count, pointer, bytes);
	if (status != TREE_OK)
		return lock_handle_fail(tree, lock, status);
	return TREE_OK;
}

TreeStatus
lock_write_and_release(Tree *tree, LockHandle *lock, FabricOp *writes, int count, uint64_t pointer,
                       const uint64_t *after, uint32_t bytes)
{
	TreeClient *client = tree->client;
	const LockEntry *entry = table_entry(client->shared->locks, lock->place, lock->index);
	bool pass = lock->handovers < client->techniques.handovers && entry_has_waiters(entry);
	TreeStatus status;

	assert(lock->held && client->holding);
	assert(count >= 0 && count < (int) FABRIC_MAX_CHAIN);
	if (count > 0)
		leaf_cache_write_begins(tree, pointer, lock_entry_number(client, lock->place, lock->index));
	if (!pass && word_is_remote(lock->word))
		return write_and_unlock(tree, lock, writes, count, pointer, after, bytes);
	status = write_and_keep(tree, lock, writes, count, pointer, bytes);
	if (status != TREE_OK)
		return status;
	node_wrote(tree, count, pointer, after, bytes);
	/* If none waits any more the word, where it is at the memory node, is a round trip more. */
	if (pass && word_pass_on(tree, lock, pointer, after, bytes))
		return TREE_OK;
	return unlock_alone(tree, lock, TREE_OK);
}

int
lock_rewrite_ops(Tree *tree, LockHandle *lock, uint64_t pointer, const uint64_t *image, uint32_t bytes,
                 FabricOp *ops)
{
	return lock_many_rewrite_ops(tree, lock, &tree->client->redo, pointer, image, bytes, ops);
}

int
lock_many_rewrite_ops(Tree *tree, LockHandle *lock, RedoHeader *redo, uint64_t pointer, const uint64_t *image,
                      uint32_t bytes, FabricOp *ops)
{
	TreeClient *client = tree->client;
	uint32_t memory_node = tree_place(tree, pointer_memory_node(pointer));
	const FabricCapabilities *capabilities = access_capabilities(client, memory_node);
	int count = 0;

	assert(bytes > 0 && bytes <= NODE_MAX_BYTES);
	assert(lock->held && lock->place == memory_node);
	assert(image[HEADER_SELF] == pointer_address(pointer));
	if (bytes > capabilities->one_packet)
	{
		lock->redo = true;
		redo->target = pointer_address(pointer);
		redo->generation = image[HEADER_GENERATION];
		redo->bytes = bytes;
		redo->lock_index = lock->index;
		redo->lock_word = lock->word;
		redo->sum = redo_sum(redo, image);
		ops[count] = node_op(pointer, bytes, (uint64_t *) image);
		ops[count].opcode = FABRIC_WRITE;
		ops[count].offset = capabilities->redo_offset + FABRIC_STRIPE_BYTES;
		count++;
		ops[count] = node_op(pointer, sizeof(RedoHeader), (uint64_t *) redo);
		ops[count].opcode = FABRIC_WRITE;
		ops[count].offset = capabilities->redo_offset;
		count++;
	}
	assert(count <= REDO_OPS);
	ops[count] = node_op(pointer, bytes, (uint64_t *) image);
	ops[count].opcode = FABRIC_WRITE;
	return count + 1;
}
