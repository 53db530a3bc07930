/*
 * lock.c
 *		Hierarchical on-chip locks: a local lock table in shared memory in front of the lock words of memory
 *		nodes.
 *
 * A lock word belongs to an instance: it holds {instance, incarnation, ticket}, and the local table's entry for the
 * word says which process of this instance holds it, and which ones wait, first come first served. The holder passes
 * the word on to the first in the queue up to TreeTechniques.handovers times after it was won, and only when its
 * writes are acknowledged, together with the node's image if the next process wants the same node.
 *
 *		entry free -> owned (win the word by COMPARE_SWAP) -> word held -> released, or passed on
 *
 * A process owns at most one entry (I-L1). The local table itself is in local_lock_table.c; here a word is won, or
 * taken over, and the locked node read; lock_handle.c frees a lock; lock_release.c writes and releases;
 * lock_clean_up.c frees locks that were leaked.
 *
 * Lost chains: when a chain with a lock operation was lost, access_execute() resets the channel before it returns, so
 * that the word can be read and shows which operations took effect. If the channel cannot be reset either, the entry
 * stays owned and the waiter record keeps the word (a leaked lock), until lock_clean_up() or the fencing of the instance
 * frees it.
 */
#include "tree/lock/lock_handle.h"

/* Torn reads under the lock: nobody writes, so the second one is damage. */
#define LOCKED_TORN_READS 2
/* READs of a locked node, lost ones included, before the operation is begun anew. */
#define LOCKED_READ_ATTEMPTS 3

/*
 * The owner of the entry is about to win a word, or to take it over. For a memory node that is closed the record
 * notes nothing: the process that opens the memory node frees all locks that records name, as leaked ones. A word
 * that was passed on is void then, too, as all words of this instance are freed first. Not TREE_OK: nothing is held,
 * and the entry is given up; TREE_RETRY: the lock is elsewhere now.
 */
static TreeStatus
lock_handle_begin(Tree *tree, const LockHandle *lock)
{
	TreeClient *client = tree->client;
	LockTable *table = client->shared->locks;
	LockWaiter *waiter = table_waiter(table, client->slot);
	bool elsewhere;

	assert(waiter->lock_memory_node == lock->place && waiter->lock_index == lock->index);
	hold_interrupts(client);
	/*
	 * The node's lock has moved if its memory node was given up since its place was looked up. That cannot happen while
	 * interrupts are held. A word that was won there counts for nothing then, as all others that this instance had there.
	 */
	elsewhere = tree_place(tree, lock->memory_node) != lock->place;
	if (!elsewhere && node_is_open(client->shared, lock->place))
	{
		/* For lock_clean_up(), if the process ends meanwhile: before the chain is posted that may win the word. */
		waiter->held_word = lock->word;
		waiter->next_word = 0;
		__atomic_store_n(&waiter->holds, lock->place + 1, __ATOMIC_RELEASE);
		return TREE_OK;
	}
	resume_interrupts(client);
	entry_release(client, table_entry(table, lock->place, lock->index));
	return elsewhere ? TREE_RETRY : client_away(client, lock->place);
}

/*
 * One try to win the word, with the node's READ behind it if `with_read`. TREE_OK: *won; where *won is false the
 * handle and interrupts are as they were. Other results: nothing is held, and the entry is given up unless the chain
 * is indeterminate.
 */
static TreeStatus
word_try(Tree *tree, LockHandle *lock, uint64_t pointer, uint32_t bytes, uint64_t *image, bool with_read,
         bool *won, bool *read)
{
	TreeClient *client = tree->client;
	LockWaiter *waiter = table_waiter(client->shared->locks, client->slot);
	FabricOp ops[2];
	bool posted = false;
	TreeStatus status = lock_handle_begin(tree, lock);

	*won = *read = false;
	if (status != TREE_OK)
		return status;
	ops[0] = word_op(FABRIC_COMPARE_SWAP, lock->index, 0, lock->word);
	ops[1] = node_op(pointer, bytes, image);
	status = access_execute(tree, lock->memory_node, ops, with_read ? 2 : 1);
	if (status == TREE_OK)
	{
		*won = ops[0].result == 0;
		*read = *won && with_read;
	}
	else if (status == TREE_RETRY)
	{
		uint64_t word = 0;

		/* The channel is reset: the word shows whether the swap took effect before its end. */
		posted = true;
		status = word_read(tree, lock, &word);
		*won = status == TREE_OK && word == lock->word;
	}
	if (status != TREE_OK)
	{
		if (posted || (client->doubt & 1ull << lock->place) != 0)
			return lock_handle_leak(client, lock, status);
		lock_handle_end(client, lock);
		return status;
	}
	if (!*won)
	{
		waiter_forget(waiter);
		resume_interrupts(client);
	}
	return TREE_OK;
}

/*
 * For trees whose entry alone is the lock: the owner counts as the holder of the word. Not TREE_OK: as
 * lock_handle_begin().
 */
static TreeStatus
word_assume(Tree *tree, LockHandle *lock)
{
	TreeClient *client = tree->client;
	LockWaiter *waiter = table_waiter(client->shared->locks, client->slot);
	TreeStatus status;

	assert(!lock->held);
	lock->word = ++waiter->ticket & ((1ull << LOCK_INSTANCE_SHIFT) - 1);
	lock->handovers = 0;
	status = lock_handle_begin(tree, lock);
	if (status != TREE_OK)
		return status;
	lock->held = true;
	TREE_COUNT(tree, lock_acquisitions, 1);
	return TREE_OK;
}

/*
 * Wins the word for the entry that we own. Not TREE_OK: nothing is held, and the entry is given up unless the chain
 * is indeterminate.
 */
static TreeStatus
word_win(Tree *tree, LockHandle *lock, uint64_t pointer, uint32_t bytes, uint64_t *image, uint64_t *deadline,
         bool *read)
{
	TreeClient *client = tree->client;
	LockTable *table = client->shared->locks;
	bool ordered = (access_capabilities(client, lock->place)->flags & FABRIC_CAP_ORDERED_CAS_READ) != 0;
	TreeStatus status;

	for (int attempt = 0;; attempt++)
	{
		bool won;

		if (attempt > 0)
		{
			if (*deadline == 0)
				*deadline = client_deadline(client);
			status = TREE_OK;
			if (client_should_stop(client))
				status = client_fail(client, TREE_STOPPED, "stopped while waiting for a lock");
			else if (client_now_us(client) >= *deadline)
				status = client_fail(client, TREE_TIMED_OUT,
				                     "memory node %u: lock word %u was not to be had in time", lock->place,
				                     lock->index);
			if (status != TREE_OK)
			{
				entry_release(client, table_entry(table, lock->place, lock->index));
				return status;
			}
			back_off_wait(client, attempt);
		}
		lock->word = word_make(client, lock->place);
		status = word_try(tree, lock, pointer, bytes, image, ordered && attempt == 0, &won, read);
		if (status != TREE_OK)
			return status;
		back_off_count(client, !won);
		if (won)
		{
			TREE_COUNT(tree, lock_acquisitions, 1);
			lock->handovers = 0;
			lock->held = true;
			return TREE_OK;
		}
		TREE_COUNT(tree, lock_retries, 1);
	}
}

/* Takes over the word that the last owner passed on. Not TREE_OK: as lock_handle_begin(). */
static TreeStatus
word_take_over(Tree *tree, LockHandle *lock, LockWaiter *waiter)
{
	TreeStatus status;

	assert(waiter->state == WAIT_PASSED);
	assert(waiter->passed_handovers <= tree->client->techniques.handovers);
	waiter->state = WAIT_IDLE;
	lock->word = waiter->passed_word;
	lock->handovers = waiter->passed_handovers;
	status = lock_handle_begin(tree, lock);
	if (status != TREE_OK)
		return status;
	lock->held = true;
	TREE_COUNT(tree, handovers, 1);
	return TREE_OK;
}

/* Whether a node of which so much is read is a leaf, as far as one knows. */
static bool
node_is_leaf(const Tree *tree, uint64_t pointer, uint32_t bytes)
{
	if (pointer_address(pointer) == tree->root)
		return tree->root_is_leaf;
	return bytes == tree->geometry.leaf_bytes;
}

/* Reads the locked node, unless that was done or the cache has it, and checks it. Not TREE_OK: the lock is released. */
static TreeStatus
node_read_locked(Tree *tree, LockHandle *lock, uint64_t pointer, uint32_t bytes, uint64_t *image, bool read)
{
	TreeClient *client = tree->client;
	NodeVerdict verdict = NODE_TORN;
	int torn = 0;
	TreeStatus status;
	TreeStatus released;

	assert(lock->held);
	if (!read && node_is_leaf(tree, pointer, bytes))
		read = leaf_cache_take_locked(tree, pointer, image);
	for (int attempt = 0; attempt < LOCKED_READ_ATTEMPTS && torn < LOCKED_TORN_READS && verdict == NODE_TORN;
	     attempt++)
	{
		if (!read)
		{
			FabricOp op = node_op(pointer, bytes, image);

			status = access_execute(tree, lock->memory_node, &op, 1);
			if (status == TREE_RETRY)
				continue;
			if (status != TREE_OK)
				return lock_handle_fail(tree, lock, status);
		}
		read = false;
		/*
		 * The caller asked for a leaf's length, and the root has become an inner node: not the node that was
		 * expected.
		 */
		if (node_level(image) > 0 && bytes < INNER_BYTES)
			verdict = NODE_STALE;
		else
			verdict = node_check_locked(&tree->geometry, image, tree->tree, pointer);
		if (verdict == NODE_TORN)
		{
			TREE_COUNT(tree, torn_reads, 1);
			torn++;
		}
	}
	if (verdict == NODE_GOOD)
		return TREE_OK;
	released = lock_release(tree, lock, pointer, NULL, 0);
	if (released != TREE_OK && released != TREE_RETRY)
		return released;
	if (verdict == NODE_DAMAGED)
		return access_damaged(tree, pointer);
	if (torn == LOCKED_TORN_READS)
		return client_fail(client, TREE_DAMAGED, "node %016llx of tree %016llx is torn under its lock",
		                   (unsigned long long) pointer, (unsigned long long) tree->tree);
	return TREE_RETRY;
}

TreeStatus
lock_is_free(Tree *tree, uint64_t pointer, bool *free)
{
	TreeClient *client = tree->client;
	LockHandle lock = {.memory_node = pointer_memory_node(pointer)};
	uint64_t word = 1;
	TreeStatus status;

	assert(!client->holding);
	*free = false;
	lock.place = tree_place(tree, lock.memory_node);
	if (access_endpoint(client, lock.place) == NULL)
		return client_away(client, lock.place);
	lock.index = lock_word_of(client, lock.place, pointer);
	if (!lock_words_are_needed(tree, lock.place))
	{
		*free = !entry_is_owned(table_entry(client->shared->locks, lock.place, lock.index));
		return TREE_OK;
	}
	status = word_read(tree, &lock, &word);
	*free = status == TREE_OK && word == 0;
	return status;
}

TreeStatus
lock_and_read(Tree *tree, uint64_t pointer, uint32_t bytes, uint64_t *image, LockHandle *lock)
{
	TreeClient *client = tree->client;
	LockTable *table = client->shared->locks;
	LockWaiter *waiter = table_waiter(table, client->slot);
	uint32_t memory_node = pointer_memory_node(pointer);
	uint64_t deadline = 0;
	bool read = false;
	bool chosen;
	LockEntry *entry;
	TreeStatus status;

	assert(!client->holding);
	assert(bytes > 0 && bytes <= NODE_MAX_BYTES);
	memset(lock, 0, sizeof(*lock));
	if (client->options.reader)
		return client_fail(client, TREE_INVALID, "tree %llx: a client that only reads locks no node",
		                   (unsigned long long) tree->tree);
	if (memory_node >= client->options.nodes)
		return client_fail(client, TREE_DAMAGED, "pointer %016llx names memory node %u of %u",
		                   (unsigned long long) pointer, memory_node, client->options.nodes);
	if (waiter_holds(waiter) || waiter->leaked > 0)
	{
		/* An earlier lock of this process was leaked. */
		status = lock_clean_up(client);
		if (status == TREE_UNREACHABLE && tree->replicas != NULL && lock_handle_abandon(client))
			status = TREE_OK;
		if (status != TREE_OK)
			return status;
	}
	lock->memory_node = memory_node;
	lock->place = tree_place(tree, memory_node);
	status = place_is_ready(client, lock->place);
	if (status == TREE_OK && tree->replicas != NULL)
		status = replicas_prepare(tree, pointer);
	if (status != TREE_OK)
		return status;
	lock->index = lock_word_of(client, lock->place, pointer);
	entry = table_entry(table, lock->place, lock->index);
	waiter->tree = tree->tree;
	waiter->address = pointer_address(pointer);
	waiter->wanted_bytes = bytes;
	waiter->lock_memory_node = lock->place;
	__atomic_store_n(&waiter->lock_index, lock->index, __ATOMIC_RELAXED);

	status = entry_acquire(tree, entry, waiter, &deadline, &chosen);
	if (status != TREE_OK && !chosen)
		return status;
	if (waiter->state == WAIT_PASSED)
	{
		TreeStatus taken = word_take_over(tree, lock, waiter);

		if (taken != TREE_OK)
			return status != TREE_OK ? status : taken;
		if (status != TREE_OK)
		{
			TreeStatus released = lock_release(tree, lock, pointer, NULL, 0);

			return released == TREE_OK || released == TREE_RETRY ? status : released;
		}
		if (waiter->passed_bytes >= bytes)
		{
			memcpy(image, waiter->image, bytes);
			TREE_COUNT(tree, handover_images, 1);
			read = true;
		}
		return node_read_locked(tree, lock, pointer, bytes, image, read);
	}
	waiter->state = WAIT_IDLE;
	if (status != TREE_OK)
	{
		entry_release(client, entry);
		return status;
	}
	if (!lock_words_are_needed(tree, lock->place))
		status = word_assume(tree, lock);
	else
		status = word_win(tree, lock, pointer, bytes, image, &deadline, &read);
	if (status != TREE_OK)
		return status;
	return node_read_locked(tree, lock, pointer, bytes, image, read);
}
