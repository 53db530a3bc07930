/*
 * apply.c
 *		The rare paths of chains on a mapped memory segment.
 */
#include "rdma/memory/apply.h"

/*
 * Takes the stripe and copies: no WRITE can overtake it.  An intent, for the stripe is odd meanwhile.
 */
static ApplyStatus
read_as_writer(const ApplyChannel *channel, ApplyRun *run, const FabricOp *op)
{
	uint64_t *stripe = memory_stripe(channel->memory, op->offset);
	uint64_t odd;

	/* It changes nothing, but a stripe is taken: from here on the chain is one that changes. */
	if (!run->active && !apply_become_active(channel, run))
		return APPLY_FENCED;
	__atomic_store_n(&channel->record->intent, memory_intent(op->offset, op->length) | MEMORY_INTENT_READ,
	                 __ATOMIC_RELEASE);
	if (!stripe_try_take(stripe, channel->channel, &odd))
		return apply_await(run, stripe);
	stripe_copy_out(op->buffer, apply_node(channel, op->offset), op->length / 8);
	stripe_release(stripe, odd);
	__atomic_store_n(&channel->record->intent, 0, __ATOMIC_RELEASE);
	return APPLY_DONE;
}

ApplyStatus
apply_contended_read(const ApplyChannel *channel, ApplyRun *run, const FabricOp *op)
{
	uint64_t *stripe = memory_stripe(channel->memory, op->offset);

	while (run->overtaken < APPLY_READ_ATTEMPTS)
	{
		uint64_t word = __atomic_load_n(stripe, __ATOMIC_RELAXED);

		if (stripe_is_odd(word))
		{
			run->overtaken += word != run->awaited;
			run->awaited = word;
			run->stripe = stripe;
			return APPLY_STRIPE_TAKEN;
		}
		if (stripe_try_read(stripe, apply_node(channel, op->offset), op->buffer, op->length / 8))
			return APPLY_DONE;
		run->overtaken++;
	}
	return read_as_writer(channel, run, op);
}

bool
apply_may_go_on(const ApplyChannel *channel, const ApplyRun *run)
{
	for (int i = run->next; i < run->count; i++)
	{
		const FabricOp *op = &run->ops[i];

		/* A READ that has not begun looks for itself. */
		if (op->region == FABRIC_NODES && (op->opcode != FABRIC_READ || i == run->next) &&
		    !apply_may_touch(channel, op->offset))
			return false;
	}
	return true;
}
