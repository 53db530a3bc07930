/*
 * apply.h
 *		Chains on a mapped memory segment, as far as they get without waiting.  Private to rdma/.
 *
 * The shm transport runs its own chains by this and waits between the steps; the memory node's server runs
 * those of its tcp clients and parks a chain that meets a taken stripe.  Either way a chain runs on behalf
 * of a channel record, which says at each moment what the runner's death leaves behind (memory.h).
 *
 *		apply_start()	may the chain do what it does?  Then the channel is busy, if it changes anything
 *		apply_steps()	until the chain is through or meets a taken stripe; again later
 *		apply_leave()	always after a successful start: the chain is through, or will never be
 */
#ifndef SHERMAN_APPLY_H
#define SHERMAN_APPLY_H

#include <string.h>

#include "rdma/memory/stripe.h"

/* READs that were overtaken by WRITEs so often take the stripe as a writer would, so that they end. */
#define APPLY_READ_ATTEMPTS 8u

typedef enum ApplyStatus
{
	APPLY_DONE,
	APPLY_STRIPE_TAKEN, /* run->awaited and run->stripe say which; come again */
	APPLY_FENCED,       /* the channel is dead: nothing happened since the last step */
	APPLY_RANGE         /* a WRITE or an atomic where the channel may not: nothing happened */
} ApplyStatus;

/* A channel's right to operate on the segment. */
typedef struct ApplyChannel
{
	const Memory *memory;
	MemoryChannel *record;
	uint64_t live;    /* record->state while this channel lives */
	uint64_t idle;    /* record->active between its chains */
	uint64_t *locks;  /* its tenant's slice of the lock words */
	uint32_t channel; /* owner in stripe words */
	uint8_t mark;     /* of the units that it may touch beside its redo slot; 0 = all that have pages */
	MemoryStage
		*stage; /* its WRITEs go through it, so that a dead runner's are finished; NULL: they do not */
} ApplyChannel;

/* A running chain; all zeroes but `ops` and `count` at its start. */
typedef struct ApplyRun
{
	FabricOp *ops;
	int count;
	int next;               /* the operation that is due */
	bool active;            /* this chain made the channel busy */
	uint32_t overtaken;     /* how often the READ that is due met WRITEs */
	uint64_t awaited;       /* the stripe word that it met last; 0: none */
	const uint64_t *stripe; /* where */
} ApplyRun;

static inline bool
apply_is_live(const ApplyChannel *channel, int order)
{
	return __atomic_load_n(&channel->record->state, order) == channel->live;
}

/*
 * May the channel touch the bytes at the offset?  Touching a unit that was given back would take memory, or
 * meet SIGBUS.
 */
static inline bool
apply_may_touch(const ApplyChannel *channel, uint64_t offset)
{
	uint8_t mark = __atomic_load_n(&channel->memory->units[offset / FABRIC_UNIT_BYTES], __ATOMIC_RELAXED);

	if (channel->mark == 0)
		return mark != 0;
	return mark == channel->mark || offset / FABRIC_REDO_BYTES == channel->channel;
}

/*
 * Says that changes follow, and learns whether they still may.  False: the channel is dead, and nothing was
 * said.
 */
static inline bool
apply_become_active(const ApplyChannel *channel, ApplyRun *run)
{
	uint64_t idle = channel->idle;

	/* A record that was given to another client since has another serial, and is left as it is. */
	if (!__atomic_compare_exchange_n(&channel->record->active, &idle, channel->idle | MEMORY_ACTIVE_BUSY,
	                                 false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return false;
	run->active = apply_is_live(channel, __ATOMIC_SEQ_CST);
	if (!run->active)
	{
		/* By a swap as well: the record may have a new owner by now, which is busy. */
		idle = channel->idle | MEMORY_ACTIVE_BUSY;
		__atomic_compare_exchange_n(&channel->record->active, &idle, channel->idle, false, __ATOMIC_SEQ_CST,
		                            __ATOMIC_RELAXED);
	}
	return run->active;
}

/* The next operation needs a stripe that another one has. */
static inline ApplyStatus
apply_await(ApplyRun *run, const uint64_t *stripe)
{
	run->stripe = stripe;
	run->awaited = __atomic_load_n(stripe, __ATOMIC_RELAXED);
	return APPLY_STRIPE_TAKEN;
}

static inline uint64_t *
apply_node(const ApplyChannel *channel, uint64_t offset)
{
	return (uint64_t *) (void *) (channel->memory->nodes + offset);
}

static inline ApplyStatus
apply_write(const ApplyChannel *channel, ApplyRun *run, const FabricOp *op)
{
	uint64_t *stripe = memory_stripe(channel->memory, op->offset);
	uint64_t intent = memory_intent(op->offset, op->length);
	uint64_t odd;

	__atomic_store_n(&channel->record->intent, intent, __ATOMIC_RELEASE);
	if (!stripe_try_take(stripe, channel->channel, &odd))
		return apply_await(run, stripe);
	if (channel->stage != NULL)
		memory_stage_write(channel->stage, odd, intent, op->buffer, op->length);
	stripe_copy_in(apply_node(channel, op->offset), op->buffer, op->length / 8, 0);
	stripe_release(stripe, odd);
	__atomic_store_n(&channel->record->intent, 0, __ATOMIC_RELEASE);
	return APPLY_DONE;
}

/* A READ that WRITEs were in the way of. */
extern ApplyStatus apply_contended_read(const ApplyChannel *channel, ApplyRun *run, const FabricOp *op);

static inline ApplyStatus
apply_read(const ApplyChannel *channel, ApplyRun *run, const FabricOp *op)
{
	if (op->region == FABRIC_LOCKS)
	{
		*(uint64_t *) op->buffer = __atomic_load_n(&channel->locks[op->offset / 8], __ATOMIC_SEQ_CST);
		return APPLY_DONE;
	}
	if (!apply_may_touch(channel, op->offset))
	{
		memset(op->buffer, 0, op->length);
		return APPLY_DONE;
	}
	if (stripe_try_read(memory_stripe(channel->memory, op->offset), apply_node(channel, op->offset),
	                    op->buffer, op->length / 8))
		return APPLY_DONE;
	return apply_contended_read(channel, run, op);
}

static inline void
apply_atomic(const ApplyChannel *channel, FabricOp *op)
{
	uint64_t *word =
		op->region == FABRIC_LOCKS ? &channel->locks[op->offset / 8] : apply_node(channel, op->offset);

	if (op->opcode == FABRIC_FETCH_ADD)
		op->result = __atomic_fetch_add(word, op->operand, __ATOMIC_SEQ_CST);
	else
	{
		op->result = op->compare;
		__atomic_compare_exchange_n(word, &op->result, op->operand, false, __ATOMIC_SEQ_CST,
		                            __ATOMIC_SEQ_CST);
	}
}

/*
 * Begins a chain that keeps the contract of fabric.h. APPLY_DONE: go on with apply_steps(); else nothing happened,
 * and the chain has ended.
 */
static inline ApplyStatus
apply_start(const ApplyChannel *channel, ApplyRun *run)
{
	bool changes = false;

	for (int i = 0; i < run->count; i++)
	{
		const FabricOp *op = &run->ops[i];

		if (op->opcode == FABRIC_READ)
			continue;
		changes = true;
		if (op->region == FABRIC_NODES && !apply_may_touch(channel, op->offset))
			return APPLY_RANGE;
	}
	if (changes ? !apply_become_active(channel, run) : !apply_is_live(channel, __ATOMIC_RELAXED))
		return APPLY_FENCED;
	return APPLY_DONE;
}

/*
 * Whether a chain that had to wait may go on. The memory may have been given to another tenant meanwhile.
 */
extern bool apply_may_go_on(const ApplyChannel *channel, const ApplyRun *run);

/*
 * Runs the operations that are due.  APPLY_DONE: all are done.  After APPLY_STRIPE_TAKEN the caller looks
 * whether the channel still lives before it comes again.
 */
static inline ApplyStatus
apply_steps(const ApplyChannel *channel, ApplyRun *run)
{
	while (run->next < run->count)
	{
		FabricOp *op = &run->ops[run->next];
		ApplyStatus status = APPLY_DONE;

		if (op->opcode == FABRIC_READ)
			status = apply_read(channel, run, op);
		else if (op->opcode == FABRIC_WRITE)
			status = apply_write(channel, run, op);
		else
			apply_atomic(channel, op);
		if (status != APPLY_DONE)
			return status;
		run->next++;
		run->overtaken = 0;
		run->awaited = 0;
	}
	return APPLY_DONE;
}

/* The chain's end: done, or given up at the operation that is due. */
static inline void
apply_leave(const ApplyChannel *channel, ApplyRun *run)
{
	if (!run->active)
		return;
	run->active = false;
	if (run->next < run->count)
		__atomic_store_n(&channel->record->intent, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&channel->record->active, channel->idle, __ATOMIC_RELEASE);
}

#endif /* SHERMAN_APPLY_H */
