/*
 * lock.c
 *		Hierarchical on-chip locks: a local lock table in shared memory in front of the lock words of memory nodes.
 *
 * A lock word belongs to an instance (F13): it holds {instance, incarnation, ticket}, and the local table's entry for
 * the word says which process of this instance it is, and who waits, first come first served.  The holder
 * passes the word on to the first in the queue up to TreeTechniques.handovers times after it was won, and only when its writes are
 * acknowledged, with the node's image if that is what the other one waits for.
 *
 *		entry free -> owned (win the word by COMPARE_SWAP) -> word held -> released, or passed on to the next owner
 *
 * A process owns at most one entry (I-L1).  The local table itself is in lock_table.c.
 *
 * Doubt (F20): when a chain with a lock operation was lost, access_execute() has reset the channel before it
 * returns, so that the word can be read and tells what happened.  If not even that could be done the entry stays
 * owned, and the waiter record remembers the word; lock_leave() finishes it, or fencing of the instance.
 */
#include "lock_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Where a lock word has its instance: fabric_lock_word(). */
#define LOCK_INSTANCE_SHIFT 48
/* Torn reads under the lock: nobody writes, so the second one is damage (F42). */
#define LOCKED_TORN_READS 2
/* READs of a locked node, those that are lost among them: after that the operation is begun anew. */
#define LOCKED_READ_ATTEMPTS 3

static void
hold_interrupts(TreeClient *client)
{
	assert(!client->holding);
	client->holding = true;
	if (client->options.environment.hold != NULL)
		client->options.environment.hold(client->options.environment.argument);
}

static void
resume_interrupts(TreeClient *client)
{
	assert(client->holding);
	client->holding = false;
	if (client->options.environment.resume != NULL)
		client->options.environment.resume(client->options.environment.argument);
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

/* A word that nobody held before; the ticket tells it from all others of this process. */
static uint64_t
word_make(TreeClient *client, uint32_t memory_node)
{
	const FabricCapabilities *capabilities = access_capabilities(client, memory_node);
	LockWaiter *waiter = table_waiter(client->shared->locks, client->slot);

	waiter->ticket++;
	return fabric_lock_word(capabilities->instance, capabilities->incarnation,
	                        (client->slot + 1) << 16 | (uint32_t) (waiter->ticket & 0xffff));
}

static bool
waiter_holds(const LockWaiter *waiter)
{
	return __atomic_load_n(&waiter->holds, __ATOMIC_ACQUIRE) != 0;
}

static void
waiter_forget(LockWaiter *waiter)
{
	assert(waiter_holds(waiter));
	__atomic_store_n(&waiter->holds, 0, __ATOMIC_RELEASE);
}

/*
 * Ends a hold at this memory node that was left in doubt, of this process or another one: true for the one who is to
 * release the entry. One step tells and takes: the process may win a word of another memory node at any time.
 */
static bool
waiter_take_over(LockWaiter *waiter, uint32_t memory_node)
{
	uint32_t held = memory_node + 1;

	return __atomic_compare_exchange_n(&waiter->holds, &held, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The hold is over, the word is free or another instance's: the next one in the queue may win it. */
static void
hold_end(TreeClient *client, LockHold *hold)
{
	LockTable *table = client->shared->locks;

	assert(client->holding);
	hold->held = false;
	waiter_forget(table_waiter(table, client->slot));
	entry_release(client, table_entry(table, hold->place, hold->index));
	resume_interrupts(client);
}

/*
 * The word could not be freed.  Fenced: it is not ours any more, and the hold ends.  Else the entry stays ours and the
 * record says which word it is, for lock_leave().  Returns the status that goes up.
 */
static TreeStatus
hold_strand(TreeClient *client, LockHold *hold, TreeStatus status)
{
	assert(client->holding);
	assert(waiter_holds(table_waiter(client->shared->locks, client->slot)));
	if ((client->doubt & 1ull << hold->place) == 0 && status == TREE_FENCED)
	{
		/* Whoever fenced us looks for holds behind that, and does not find this one any more. */
		state_copies_doubt(client->shared, table_waiter(client->shared->locks, client->slot)->tree);
		hold_end(client, hold);
		return status;
	}
	hold->held = false;
	resume_interrupts(client);
	return status;
}

static FabricOp
word_op(FabricOpcode opcode, uint32_t index, uint64_t compare, uint64_t operand)
{
	FabricOp op;

	memset(&op, 0, sizeof(op));
	op.opcode = (uint8_t) opcode;
	op.region = FABRIC_LOCKS;
	op.length = 8;
	op.offset = (uint64_t) index * 8;
	op.compare = compare;
	op.operand = operand;
	return op;
}

/* Reads the lock word, after a chain about it was lost and its channel reset. */
static TreeStatus
word_read(Tree *tree, const LockHold *hold, uint64_t *word)
{
	FabricOp op = word_op(FABRIC_READ, hold->index, 0, 0);

	op.buffer = word;
	return access_repeat(tree, hold->memory_node, &op, 1, "reads of a lock word");
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

/* Whether a hold's word stands at its memory node: word_assume() makes others, which name no instance. */
static bool
word_is_remote(uint64_t word)
{
	return word >> LOCK_INSTANCE_SHIFT != 0;
}

/* Frees the word of a hold by a checked swap. TREE_OK also if an earlier swap had landed. */
static TreeStatus
word_free(Tree *tree, const LockHold *hold)
{
	if (!word_is_remote(hold->word))
		return TREE_OK;
	for (int attempt = 0; client_tries_again(tree->client, attempt); attempt++)
	{
		FabricOp op = word_op(FABRIC_COMPARE_SWAP, hold->index, hold->word, 0);
		uint64_t word = 0;
		TreeStatus status = access_execute(tree, hold->memory_node, &op, 1);

		if (status == TREE_OK && op.result == hold->word)
			return TREE_OK;
		if (status == TREE_OK)
			return client_fail(tree->client, TREE_FENCED,
			                   "memory node %u: lock word %u is %016llx, not our %016llx", hold->place,
			                   hold->index, (unsigned long long) op.result, (unsigned long long) hold->word);
		if (status != TREE_RETRY)
			return status;
		status = word_read(tree, hold, &word);
		if (status != TREE_OK)
			return status;
		if (word != hold->word)
			return TREE_OK;
	}
	return client_unanswered(tree->client, hold->place, "unlocks");
}

/* Frees the word and ends the hold; `landed` is what goes up if that succeeds. */
static TreeStatus
unlock_alone(Tree *tree, LockHold *hold, TreeStatus landed)
{
	TreeStatus status = word_free(tree, hold);

	assert(tree->client->holding);
	if (status != TREE_OK)
		return hold_strand(tree->client, hold, status);
	hold_end(tree->client, hold);
	return landed;
}

/*
 * A chain of the holder failed for good: frees the word if the memory node still answers, and notes that the copy may have what the node
 * has not.  If it does not answer that is noted when it comes back, if it does. Returns the status.
 */
static TreeStatus
hold_fail(Tree *tree, LockHold *hold, TreeStatus status)
{
	assert(status != TREE_OK && status != TREE_RETRY);
	assert(tree->client->holding);
	if (status != TREE_FENCED && (tree->client->doubt & 1ull << hold->place) == 0)
	{
		TreeStatus freed = word_free(tree, hold);

		if (freed == TREE_OK)
		{
			state_copies_doubt(tree->client->shared, tree->tree);
			hold_end(tree->client, hold);
			return status;
		}
		status = freed;
	}
	return hold_strand(tree->client, hold, status);
}

/* ---- acquiring ---- */

static FabricOp
node_op(uint64_t pointer, uint32_t bytes, uint64_t *image)
{
	FabricOp op;

	assert(bytes > 0 && bytes <= NODE_MAX_BYTES);
	memset(&op, 0, sizeof(op));
	op.opcode = FABRIC_READ;
	op.region = FABRIC_NODES;
	op.length = bytes;
	op.offset = pointer_offset(pointer);
	op.buffer = image;
	return op;
}

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
	TreeStatus status;

	*won = *read = false;
	hold_interrupts(client);
	waiter_remember(waiter, hold);
	if (hold_is_elsewhere(tree, hold))
	{
		hold_end(client, hold);
		return TREE_RETRY;
	}
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

/* Who owns the entry has the word, as it were. */
static void
word_assume(Tree *tree, LockHold *hold)
{
	TreeClient *client = tree->client;
	LockWaiter *waiter = table_waiter(client->shared->locks, client->slot);

	assert(!hold->held);
	hold->word = ++waiter->ticket & ((1ull << LOCK_INSTANCE_SHIFT) - 1);
	hold->handovers = 0;
	hold->held = true;
	hold_interrupts(client);
	waiter_remember(waiter, hold);
	TREE_COUNT(tree, lock_acquisitions, 1);
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

/* Takes over what the last owner passed on. */
static void
word_take_over(Tree *tree, LockHold *hold, LockWaiter *waiter)
{
	assert(waiter->state == WAIT_PASSED);
	assert(waiter->passed_handovers <= tree->client->techniques.handovers);
	hold->word = waiter->passed_word;
	hold->handovers = waiter->passed_handovers;
	hold->held = true;
	hold_interrupts(tree->client);
	waiter_remember(waiter, hold);
	TREE_COUNT(tree, handovers, 1);
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
	if (torn == LOCKED_TORN_READS)
		return client_fail(client, TREE_DAMAGED, "node %016llx of tree %016llx is torn under its lock",
		                   (unsigned long long) pointer, (unsigned long long) tree->tree);
	return TREE_RETRY;
}

/* The lock word of a node, of so many. */
static uint32_t
word_index(uint64_t pointer, uint32_t words)
{
	assert(words > 0 && (words & (words - 1)) == 0);
	return (uint32_t) XXH3_64bits(&(uint64_t){pointer_offset(pointer)}, sizeof(uint64_t)) & (words - 1);
}

/* How many lock words of this connected memory node are used. */
static uint32_t
words_of(const TreeClient *client, uint32_t memory_node)
{
	const LockTable *table = client->shared->locks;
	uint32_t words = access_capabilities(client, memory_node)->lock_words;

	assert(memory_node < client->options.nodes);
	return words < table->options.lock_words ? words : table->options.lock_words;
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
	hold.index = word_index(pointer, words_of(client, hold.place));
	if (!words_are_used(tree, hold.place))
	{
		*free = !entry_is_owned(table_entry(client->shared->locks, hold.place, hold.index));
		return TREE_OK;
	}
	status = word_read(tree, &hold, &word);
	*free = status == TREE_OK && word == 0;
	return status;
}

/*
 * Gives up a hold that was left in doubt at a memory node that is closed, for one that may stand in for it:
 * whoever opens it has fenced us there before, so neither the word nor a chain of ours will be left.
 */
static bool
hold_abandon(TreeClient *client)
{
	LockTable *table = client->shared->locks;
	LockWaiter *waiter = table_waiter(table, client->slot);
	uint32_t memory_node = waiter->hold_memory_node;

	assert(!client->holding);
	if (node_is_open(client->shared, memory_node))
		return false;
	state_copies_strand(client->shared, waiter->tree);
	if (waiter_take_over(waiter, memory_node))
		entry_release(client, table_entry(table, memory_node, waiter->hold_index));
	return true;
}

TreeStatus
place_is_ready(TreeClient *client, uint32_t memory_node)
{
	assert(!client->holding);
	if (access_endpoint(client, memory_node) == NULL)
		return client_away(client, memory_node);
	if ((client->doubt & 1ull << memory_node) != 0)
		return access_doubt(client, memory_node);
	if (fabric_is_draining(client->options.endpoints[memory_node]))
	{
		client->trouble |= 1u << memory_node;
		return client_fail(client, TREE_UNREACHABLE, "memory node %u is shutting down", memory_node);
	}
	return TREE_OK;
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
	hold->index = word_index(pointer, words_of(client, hold->place));
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
		word_take_over(tree, hold, waiter);
		waiter->state = WAIT_IDLE;
		if (hold_is_elsewhere(tree, hold))
		{
			hold_end(client, hold);
			return TREE_RETRY;
		}
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
		word_assume(tree, hold);
	else
		status = word_win(tree, hold, pointer, bytes, image, &deadline, &read);
	if (status != TREE_OK)
		return status;
	return node_read_locked(tree, hold, pointer, bytes, image, read);
}

/* ---- releasing ---- */

/* Passes entry and word on to the first of the queue. False: nobody waits any more. */
static bool
word_pass_on(Tree *tree, LockHold *hold, uint64_t pointer, const uint64_t *after, uint32_t bytes)
{
	TreeClient *client = tree->client;
	LockTable *table = client->shared->locks;
	LockEntry *entry = table_entry(table, hold->place, hold->index);
	LockWaiter *chosen;

	assert(hold->held);
	assert(hold->handovers < client->techniques.handovers);
	chosen = entry_pass(client, entry);
	if (chosen == NULL)
		return false;
	/* The record is written by nobody else: its owner waits for the state. */
	waiter_forget(table_waiter(table, client->slot));
	chosen->passed_word = hold->word;
	chosen->passed_handovers = hold->handovers + 1;
	chosen->passed_bytes = 0;
	if (after != NULL && chosen->tree == tree->tree && chosen->address == pointer_address(pointer) &&
	    chosen->wanted_bytes <= bytes)
	{
		memcpy(chosen->image, after, bytes);
		chosen->passed_bytes = bytes;
	}
	hold->held = false;
	waiter_wake(client, table, chosen, WAIT_PASSED);
	resume_interrupts(client);
	return true;
}

/*
 * A chain of writes was lost, its channel is reset, and the word is ours still: who knows which of them
 * landed.  Frees the word, after the node's copy, which was written before, was made what the node is.
 */
static TreeStatus
writes_settle(Tree *tree, LockHold *hold, int count, uint64_t pointer, uint32_t bytes)
{
	TreeStatus status = TREE_OK;

	assert(hold->held);
	if (tree->copies != NULL && count > 0)
		status = copies_restore(tree, pointer, bytes);
	if (status != TREE_OK)
		return hold_fail(tree, hold, status);
	return unlock_alone(tree, hold, TREE_RETRY);
}

/* The chain with the unlock behind the writes was lost, and its channel is reset: did the unlock land? */
static TreeStatus
unlock_settle(Tree *tree, LockHold *hold, int count, uint64_t pointer, uint32_t bytes)
{
	uint64_t word = 0;
	TreeStatus status = word_read(tree, hold, &word);

	assert(hold->held);
	if (status != TREE_OK)
		return hold_strand(tree->client, hold, status);
	if (word == hold->word) /* it did not, and perhaps not all of the writes */
		return writes_settle(tree, hold, count, pointer, bytes);
	/* It was the last of the chain: everything before it landed too. */
	hold_end(tree->client, hold);
	return TREE_OK;
}

/*
 * How many of the writes go in the next chain: all, or one, if they are not combined.  A redo image goes with its header where that is to
 * tell copies.c what it is.
 */
static int
writes_together(const Tree *tree, const FabricOp *writes, int count)
{
	if (tree->client->techniques.combine_unlock)
		return count;
	return tree->copies != NULL && count > 1 && writes[1].buffer == &tree->client->redo ? REDO_OPS : 1;
}

/* The holder's writes by themselves: one chain, or, if they are not combined, one each. As access_execute(). */
static TreeStatus
writes_execute(Tree *tree, const LockHold *hold, FabricOp *writes, int count)
{
	TreeStatus status = TREE_OK;

	assert(hold->held);
	assert(count > 0);
	for (int i = 0, together; i < count && status == TREE_OK; i += together)
	{
		together = writes_together(tree, writes + i, count - i);
		status = access_execute(tree, hold->memory_node, writes + i, together);
	}
	return status;
}

/* Writes, and puts `next` in the place of the word, in one chain. TREE_OK: it did. */
static TreeStatus
write_and_swap(Tree *tree, LockHold *hold, FabricOp *writes, int count, uint64_t next)
{
	TreeStatus status;

	writes[count] = word_op(FABRIC_COMPARE_SWAP, hold->index, hold->word, next);
	status = access_execute(tree, hold->memory_node, writes, count + 1);
	if (status == TREE_OK && writes[count].result != hold->word)
		return client_fail(tree->client, TREE_FENCED,
		                   "memory node %u: lock word %u was %016llx, not our %016llx", hold->place,
		                   hold->index, (unsigned long long) writes[count].result,
		                   (unsigned long long) hold->word);
	return status;
}

static TreeStatus
write_and_unlock(Tree *tree, LockHold *hold, FabricOp *writes, int count, uint64_t pointer, uint32_t bytes)
{
	TreeStatus status = write_and_swap(tree, hold, writes, count, 0);

	if (status == TREE_RETRY)
		return unlock_settle(tree, hold, count, pointer, bytes);
	if (status != TREE_OK)
		return hold_fail(tree, hold, status);
	hold_end(tree->client, hold);
	return TREE_OK;
}

/* The same where they are not combined. */
static TreeStatus
write_then_unlock(Tree *tree, LockHold *hold, FabricOp *writes, int count, uint64_t pointer, uint32_t bytes)
{
	TreeStatus status = count > 0 ? writes_execute(tree, hold, writes, count) : TREE_OK;

	if (status == TREE_RETRY)
		return writes_settle(tree, hold, count, pointer, bytes);
	if (status != TREE_OK)
		return hold_fail(tree, hold, status);
	return unlock_alone(tree, hold, TREE_OK);
}

/*
 * Writes, and puts another word of ours in the place of the hold's: whoever has the lock next, the memory node sees that this redo
 * image is not under way any more. Not TREE_OK: the hold is over.
 */
static TreeStatus
write_and_renew(Tree *tree, LockHold *hold, FabricOp *writes, int count, uint64_t pointer, uint32_t bytes)
{
	LockWaiter *waiter = table_waiter(tree->client->shared->locks, tree->client->slot);
	uint64_t next = word_make(tree->client, hold->place);
	uint64_t word = next;
	TreeStatus status;

	if (!tree->client->techniques.combine_unlock)
	{
		status = writes_execute(tree, hold, writes, count);
		if (status == TREE_RETRY)
			return writes_settle(tree, hold, count, pointer, bytes);
		if (status != TREE_OK)
			return hold_fail(tree, hold, status);
		count = 0;
	}
	waiter->next_word = next;
	status = write_and_swap(tree, hold, writes, count, next);
	if (status == TREE_RETRY)
	{
		status = word_read(tree, hold, &word);
		if (status != TREE_OK)
			return hold_strand(tree->client, hold, status);
	}
	if (status != TREE_OK)
		return hold_fail(tree, hold, status);
	waiter->next_word = 0;
	if (word != next) /* it did not land, and perhaps not all of the writes */
		return writes_settle(tree, hold, count, pointer, bytes);
	hold->word = waiter->hold_word = next;
	return TREE_OK;
}

/* Writes, and passes the word on to the first of the queue, if there is one still. */
static TreeStatus
write_and_pass_on(Tree *tree, LockHold *hold, FabricOp *writes, int count, uint64_t pointer,
                  const uint64_t *after, uint32_t bytes)
{
	TreeStatus status = TREE_OK;

	if (hold->redo && word_is_remote(hold->word))
	{
		status = write_and_renew(tree, hold, writes, count, pointer, bytes);
		if (status != TREE_OK)
			return status;
	}
	else if (count > 0)
		status = writes_execute(tree, hold, writes, count);
	if (status == TREE_RETRY)
		return writes_settle(tree, hold, count, pointer, bytes);
	if (status != TREE_OK)
		return hold_fail(tree, hold, status);
	if (word_pass_on(tree, hold, pointer, after, bytes))
		return TREE_OK;
	return unlock_alone(tree, hold, TREE_OK);
}

TreeStatus
lock_write_and_release(Tree *tree, LockHold *hold, FabricOp *writes, int count, uint64_t pointer,
                       const uint64_t *after, uint32_t bytes)
{
	const TreeTechniques *techniques = &tree->client->techniques;
	const LockEntry *entry = table_entry(tree->client->shared->locks, hold->place, hold->index);

	assert(hold->held && tree->client->holding);
	assert(count >= 0 && count < (int) FABRIC_MAX_CHAIN);
	if (hold->handovers < techniques->handovers && entry_has_waiters(entry))
		return write_and_pass_on(tree, hold, writes, count, pointer, after, bytes);
	if (!techniques->combine_unlock || !word_is_remote(hold->word))
		return write_then_unlock(tree, hold, writes, count, pointer, bytes);
	return write_and_unlock(tree, hold, writes, count, pointer, bytes);
}

int
lock_rewrite_ops(Tree *tree, LockHold *hold, uint64_t pointer, const uint64_t *image, uint32_t bytes,
                 FabricOp *ops)
{
	TreeClient *client = tree->client;
	uint32_t memory_node = tree_place(tree, pointer_memory_node(pointer));
	const FabricCapabilities *capabilities = access_capabilities(client, memory_node);
	int count = 0;

	assert(bytes > 0 && bytes <= NODE_MAX_BYTES);
	assert(hold->held && hold->place == memory_node);
	assert(image[HEADER_SELF] == pointer_address(pointer));
	if (bytes > capabilities->one_packet)
	{
		hold->redo = true;
		client->redo.target = pointer_address(pointer);
		client->redo.generation = image[HEADER_GENERATION];
		client->redo.bytes = bytes;
		client->redo.lock_index = hold->index;
		client->redo.lock_word = hold->word;
		client->redo.sum = redo_sum(&client->redo, image);
		ops[count] = node_op(pointer, bytes, (uint64_t *) image);
		ops[count].opcode = FABRIC_WRITE;
		ops[count].offset = capabilities->redo_offset + FABRIC_STRIPE_BYTES;
		count++;
		ops[count] = node_op(pointer, sizeof(RedoHeader), (uint64_t *) &client->redo);
		ops[count].opcode = FABRIC_WRITE;
		ops[count].offset = capabilities->redo_offset;
		count++;
	}
	assert(count <= REDO_OPS);
	ops[count] = node_op(pointer, bytes, (uint64_t *) image);
	ops[count].opcode = FABRIC_WRITE;
	return count + 1;
}

/* ---- leaving ---- */

/* Frees the word of a hold that is in doubt, by chains that need no tree. */
static TreeStatus
leave_word(TreeClient *client, const LockWaiter *waiter)
{
	uint64_t bit = 1ull << waiter->hold_memory_node;
	FabricEndpoint *endpoint = access_endpoint(client, waiter->hold_memory_node);
	FabricStatus fabric = FABRIC_LOST;

	assert(waiter->hold_memory_node < client->options.nodes);
	if (endpoint == NULL)
		return client_away(client, waiter->hold_memory_node);
	for (int attempt = 0; client_tries_again(client, attempt); attempt++)
	{
		FabricOp ops[] = {word_op(FABRIC_COMPARE_SWAP, waiter->hold_index, waiter->hold_word, 0),
		                  word_op(FABRIC_COMPARE_SWAP, waiter->hold_index, waiter->next_word, 0)};

		if ((client->doubt & bit) != 0)
		{
			TreeStatus status = access_settle(client, waiter->hold_memory_node);

			if (status != TREE_OK)
				return status;
		}
		if (!word_is_remote(waiter->hold_word))
		{
			state_copies_doubt(client->shared, waiter->tree);
			return TREE_OK;
		}
		fabric = step_execute(client, endpoint, ops, waiter->next_word != 0 ? 2 : 1);
		if (fabric == FABRIC_OK)
		{
			/* One of them was there and now it is free, or neither: the swap never landed, or the unlock had. */
			client_silence_ends(client);
			/* What was written under it may have a copy that is another one. */
			state_copies_doubt(client->shared, waiter->tree);
			return TREE_OK;
		}
		if (fabric != FABRIC_TIMED_OUT && fabric != FABRIC_STOPPED && fabric != FABRIC_LOST)
			break;
		client->doubt |= bit;
	}
	return client_fabric_fail(client, waiter->hold_memory_node, fabric);
}

/* Leaves a queue that a jump out of sleep() left us in. */
static void
leave_queue(TreeClient *client, LockTable *table, LockWaiter *waiter)
{
	LockEntry *entry = table_entry(table, waiter->hold_memory_node, waiter->hold_index);

	assert(!waiter_holds(waiter));
	if (entry_leave(client, entry, waiter))
		return;
	if (waiter->state == WAIT_PASSED)
	{
		waiter->hold_word = waiter->passed_word;
		waiter->next_word = 0;
		__atomic_store_n(&waiter->holds, waiter->hold_memory_node + 1, __ATOMIC_RELEASE);
	}
	else
		entry_release(client, entry);
	waiter->state = WAIT_IDLE;
}

TreeStatus
lock_leave(TreeClient *client)
{
	LockTable *table = client->shared->locks;
	LockWaiter *waiter = table_waiter(table, client->slot);
	TreeStatus status;

	assert(table->options.slots > client->slot);
	if (client->holding)
		resume_interrupts(client);
	if (__atomic_load_n(&waiter->state, __ATOMIC_ACQUIRE) != WAIT_IDLE)
		leave_queue(client, table, waiter);
	assert(waiter->state == WAIT_IDLE);
	if (!waiter_holds(waiter))
		return TREE_OK;
	status = leave_word(client, waiter);
	if (status != TREE_OK && status != TREE_FENCED)
		return status;
	if (waiter_take_over(waiter, waiter->hold_memory_node))
		entry_release(client, table_entry(table, waiter->hold_memory_node, waiter->hold_index));
	return status;
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

		if (__atomic_load_n(&waiter->holds, __ATOMIC_ACQUIRE) != memory_node + 1)
			continue;
		state_copies_doubt(client->shared, waiter->tree);
		/* Before it is taken over: from then on the record is its owner's again. */
		index = __atomic_load_n(&waiter->hold_index, __ATOMIC_RELAXED);
		if (waiter_take_over(waiter, memory_node))
			entry_release_for(client, table_entry(table, memory_node, index), slot);
	}
}
