/*
 * lock.c
 *		Hierarchical on-chip locks: a local lock table in shared memory in front of the lock words of memory
 *		nodes.
 *
 * A lock word belongs to an instance (F13): it holds {instance, incarnation, ticket}, and the local table's
 * entry for the word says which process of this instance it is, and who waits, first come first served.  The
 * holder passes the word on to the first in the queue up to TreeTechniques.handovers times after it was won,
 * and only when its writes are acknowledged, with the node's image if that is what the other one waits for.
 *
 *		entry free -> owned (win the word by COMPARE_SWAP) -> word held -> released, or passed on
 *
 * A process owns at most one entry (I-L1).  The local table itself is in lock_table.c; here a word is won, or
 * taken over, and the locked node read; lock_hold.c ends a hold; lock_release.c writes and releases; lock_leave.c ends what
 * was left in doubt.
 *
 * Doubt (F20): when a chain with a lock operation was lost, access_execute() has reset the channel before it
 * returns, so that the word can be read and tells what happened.  If not even that could be done the entry
 * stays owned, and the waiter record remembers the word; lock_leave() finishes it, or fencing of the
 * instance.
 */
#include "tree/lock/lock_hold.h"

/* Torn reads under the lock: nobody writes, so the second one is damage (F42). */
#define LOCKED_TORN_READS 2
/* READs of a locked node, those that are lost among them: after that the operation is begun anew. */
#define LOCKED_READ_ATTEMPTS 3

/*
 * Who opens a memory node has closed it first, and looks then whether each process is outside of hold() and resume(), once.  So what
 * hold() notes is there for all to see before it is asked whether the memory node is closed: of the two one sees the other.
 */
static void
hold_interrupts(TreeClient *client)
{
	assert(!client->holding);
	client->holding = true;
	if (client->options.environment.hold != NULL)
		client->options.environment.hold(client->options.environment.argument);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* ---- holds ---- */

/* What is left if this process ends here: written before a chain may win the word. */
static void
waiter_remember(LockWaiter *waiter, const LockHold *hold)
{
	assert(waiter->hold_memory_node == hold->place && waiter->hold_index == hold->index);
	waiter->hold_word = hold->word;
	waiter->next_word = 0;
	__atomic_store_n(&waiter->holds, hold->place + 1, __ATOMIC_RELEASE);
}

/*
 * Whether the local lock table alone does not do.  Even where an instance has its trees for itself, a memory node that does not see by
 * itself which WRITE a dead channel was in asks the lock word, before it replays the redo image of a node.
 */
static bool
words_are_used(const Tree *tree, uint32_t memory_node)
{
	const TreeTechniques *techniques = &tree->client->techniques;
	const FabricCapabilities *capabilities = access_capabilities(tree->client, memory_node);

	if (!techniques->exclusive || !techniques->hierarchy || tree->copies != NULL)
		return true;
	return (capabilities->flags & FABRIC_CAP_OPERATION_ATOMIC) == 0 &&
	       capabilities->one_packet < NODE_MAX_BYTES;
}

/* ---- acquiring ---- */

/*
 * Whether the node's lock has moved since this one was looked for, as its memory node was given up: while
 * interrupts are held that cannot be. A word that was won there is nobody's then, as are all that this
 * instance had there.
 */
static bool
hold_is_elsewhere(const Tree *tree, const LockHold *hold)
{
	assert(tree->client->holding);
	return tree_place(tree, hold->memory_node) != hold->place;
}

/*
 * Begins what wins or takes over a word, by the owner of its entry.  The record says nothing of a hold at a memory node that is closed:
 * who opens it ends what the records say, and means holds that were left.  A word that was passed on is void then, too, as all of
 * this instance are freed before.  Not TREE_OK: nothing is held, and the entry is given up; TREE_RETRY: the lock is elsewhere now.
 */
static TreeStatus
hold_begin(Tree *tree, const LockHold *hold)
{
	TreeClient *client = tree->client;
	LockTable *table = client->shared->locks;
	bool elsewhere;

	hold_interrupts(client);
	elsewhere = hold_is_elsewhere(tree, hold);
	if (!elsewhere && node_is_open(client->shared, hold->place))
	{
		waiter_remember(table_waiter(table, client->slot), hold);
		return TREE_OK;
	}
	resume_interrupts(client);
	entry_release(client, table_entry(table, hold->place, hold->index));
	return elsewhere ? TREE_RETRY : client_away(client, hold->place);
}

/*
 * One try to win the word, with the node's READ behind it if `with_read`.  TREE_OK: *won; the hold and interrupts are as
 * they were if it was lost.  Else nothing is held, and the entry is given up unless it is in doubt.
 */
static TreeStatus
word_try(Tree *tree, LockHold *hold, uint64_t pointer, uint32_t bytes, uint64_t *image, bool with_read,
         bool *won, bool *read)
{
	TreeClient *client = tree->client;
	LockWaiter *waiter = table_waiter(client->shared->locks, client->slot);
	FabricOp ops[2];
	bool posted = false;
	TreeStatus status = hold_begin(tree, hold);

	*won = *read = false;
	if (status != TREE_OK)
		return status;
	ops[0] = word_op(FABRIC_COMPARE_SWAP, hold->index, 0, hold->word);
	ops[1] = node_op(pointer, bytes, image);
	status = access_execute(tree, hold->memory_node, ops, with_read ? 2 : 1);
	if (status == TREE_OK)
	{
		*won = ops[0].result == 0;
		*read = *won && with_read;
	}
	else if (status == TREE_RETRY)
	{
		uint64_t word = 0;

		/* Doubt is over; the word says whether the swap came before the end of the channel. */
		posted = true;
		status = word_read(tree, hold, &word);
		*won = status == TREE_OK && word == hold->word;
	}
	if (status != TREE_OK)
	{
		if (posted || (client->doubt & 1ull << hold->place) != 0)
			return hold_strand(client, hold, status);
		hold_end(client, hold);
		return status;
	}
	if (!*won)
	{
		waiter_forget(waiter);
		resume_interrupts(client);
	}
	return TREE_OK;
}

/* Who owns the entry has the word, as it were. Not TREE_OK: as hold_begin(). */
static TreeStatus
word_assume(Tree *tree, LockHold *hold)
{
	TreeClient *client = tree->client;
	LockWaiter *waiter = table_waiter(client->shared->locks, client->slot);
	TreeStatus status;

	assert(!hold->held);
	hold->word = ++waiter->ticket & ((1ull << LOCK_INSTANCE_SHIFT) - 1);
	hold->handovers = 0;
	status = hold_begin(tree, hold);
	if (status != TREE_OK)
		return status;
	hold->held = true;
	TREE_COUNT(tree, lock_acquisitions, 1);
	return TREE_OK;
}

/* Wins the word for the entry that we own. Not TREE_OK: nothing is held, the entry is given up unless in doubt. */
static TreeStatus
word_win(Tree *tree, LockHold *hold, uint64_t pointer, uint32_t bytes, uint64_t *image, uint64_t *deadline,
         bool *read)
{
	TreeClient *client = tree->client;
	LockTable *table = client->shared->locks;
	bool ordered = client->techniques.combine_lock &&
	               (access_capabilities(client, hold->place)->flags & FABRIC_CAP_ORDERED_CAS_READ) != 0;
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
				                     "memory node %u: lock word %u was not to be had in time", hold->place,
				                     hold->index);
			if (status != TREE_OK)
			{
				entry_release(client, table_entry(table, hold->place, hold->index));
				return status;
			}
			back_off_wait(client, attempt);
		}
		hold->word = word_make(client, hold->place);
		status = word_try(tree, hold, pointer, bytes, image, ordered && attempt == 0, &won, read);
		if (status != TREE_OK)
			return status;
		back_off_count(client, !won);
		if (won)
		{
			TREE_COUNT(tree, lock_acquisitions, 1);
			hold->handovers = 0;
			hold->held = true;
			return TREE_OK;
		}
		TREE_COUNT(tree, lock_retries, 1);
	}
}

/* Takes over what the last owner passed on. Not TREE_OK: as hold_begin(). */
static TreeStatus
word_take_over(Tree *tree, LockHold *hold, LockWaiter *waiter)
{
	TreeStatus status;

	assert(waiter->state == WAIT_PASSED);
	assert(waiter->passed_handovers <= tree->client->techniques.handovers);
	waiter->state = WAIT_IDLE;
	hold->word = waiter->passed_word;
	hold->handovers = waiter->passed_handovers;
	status = hold_begin(tree, hold);
	if (status != TREE_OK)
		return status;
	hold->held = true;
	TREE_COUNT(tree, handovers, 1);
	return TREE_OK;
}

/* Reads and judges the locked node. Not TREE_OK: the hold is over. */
static TreeStatus
node_read_locked(Tree *tree, LockHold *hold, uint64_t pointer, uint32_t bytes, uint64_t *image, bool read)
{
	TreeClient *client = tree->client;
	NodeVerdict verdict = NODE_TORN;
	int torn = 0;
	TreeStatus status;
	TreeStatus released;

	assert(hold->held);
	for (int attempt = 0; attempt < LOCKED_READ_ATTEMPTS && torn < LOCKED_TORN_READS && verdict == NODE_TORN;
	     attempt++)
	{
		if (!read)
		{
			FabricOp op = node_op(pointer, bytes, image);

			status = access_execute(tree, hold->memory_node, &op, 1);
			if (status == TREE_RETRY)
				continue;
			if (status != TREE_OK)
				return hold_fail(tree, hold, status);
		}
		read = false;
		/* A leaf's length was asked for and the root has grown: not the node that was expected. */
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
	released = lock_release(tree, hold, pointer, NULL, 0);
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
	LockHold hold = {.memory_node = pointer_memory_node(pointer)};
	uint64_t word = 1;
	TreeStatus status;

	assert(!client->holding);
	*free = false;
	hold.place = tree_place(tree, hold.memory_node);
	if (access_endpoint(client, hold.place) == NULL)
		return client_away(client, hold.place);
	hold.index = lock_word_of(client, hold.place, pointer);
	if (!words_are_used(tree, hold.place))
	{
		*free = !entry_is_owned(table_entry(client->shared->locks, hold.place, hold.index));
		return TREE_OK;
	}
	status = word_read(tree, &hold, &word);
	*free = status == TREE_OK && word == 0;
	return status;
}

TreeStatus
lock_and_read(Tree *tree, uint64_t pointer, uint32_t bytes, uint64_t *image, LockHold *hold)
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
	memset(hold, 0, sizeof(*hold));
	if (memory_node >= client->options.nodes)
		return client_fail(client, TREE_DAMAGED, "pointer %016llx names memory node %u of %u",
		                   (unsigned long long) pointer, memory_node, client->options.nodes);
	if (waiter_holds(waiter))
	{
		/* An earlier hold was left in doubt. */
		status = lock_leave(client);
		if (status == TREE_UNREACHABLE && tree->copies != NULL && hold_abandon(client))
			status = TREE_OK;
		if (status != TREE_OK)
			return status;
	}
	hold->memory_node = memory_node;
	hold->place = tree_place(tree, memory_node);
	status = place_is_ready(client, hold->place);
	if (status == TREE_OK && tree->copies != NULL)
		status = copies_prepare(tree, pointer);
	if (status != TREE_OK)
		return status;
	hold->index = lock_word_of(client, hold->place, pointer);
	entry = table_entry(table, hold->place, hold->index);
	waiter->tree = tree->tree;
	waiter->address = pointer_address(pointer);
	waiter->wanted_bytes = bytes;
	waiter->hold_memory_node = hold->place;
	__atomic_store_n(&waiter->hold_index, hold->index, __ATOMIC_RELAXED);

	status = entry_acquire(tree, entry, waiter, &deadline, &chosen);
	if (status != TREE_OK && !chosen)
		return status;
	if (waiter->state == WAIT_PASSED)
	{
		TreeStatus taken = word_take_over(tree, hold, waiter);

		if (taken != TREE_OK)
			return status != TREE_OK ? status : taken;
		if (status != TREE_OK)
		{
			TreeStatus released = lock_release(tree, hold, pointer, NULL, 0);

			return released == TREE_OK || released == TREE_RETRY ? status : released;
		}
		if (waiter->passed_bytes >= bytes)
		{
			memcpy(image, waiter->image, bytes);
			TREE_COUNT(tree, handover_images, 1);
			read = true;
		}
		return node_read_locked(tree, hold, pointer, bytes, image, read);
	}
	waiter->state = WAIT_IDLE;
	if (status != TREE_OK)
	{
		entry_release(client, entry);
		return status;
	}
	if (!words_are_used(tree, hold->place))
		status = word_assume(tree, hold);
	else
		status = word_win(tree, hold, pointer, bytes, image, &deadline, &read);
	if (status != TREE_OK)
		return status;
	return node_read_locked(tree, hold, pointer, bytes, image, read);
}
