/*
 * throttle.c
 *		Credits, after SMART: limits the operations in flight of all clients that share a thread's queues.
 *
 * A chain takes a credit for each of its operations before it is posted, and gives them back when its wait has ended.
 * Only chains hold credits, and a chain waits for the network only: so a chain that waits for credits under a lock
 * gets them in the end. The limit is advice: a client that has waited for long posts its chain all the same.
 */
#include "tree/internal.h"

/* A wait for credits is no longer than this: chains take microseconds. */
#define CREDIT_WAIT_US 1000000u

static uint32_t
groups_of(const TreeSharedOptions *options)
{
	const TreeTechniques *techniques = options->techniques;

	assert(options->slots > 0);
	if (techniques == NULL || techniques->credits == 0)
		return 0;
	if (techniques->credit_sharers == 0)
		return 1;
	return (options->slots + techniques->credit_sharers - 1) / techniques->credit_sharers;
}

size_t
throttle_shared_bytes(const TreeSharedOptions *options)
{
	return groups_of(options) * sizeof(CreditGroup);
}

void
throttle_shared_reset(TreeShared *shared)
{
	assert(shared->credits != NULL);
	memset(shared->credits, 0, throttle_shared_bytes(&shared->options));
}

static CreditGroup *
group_of(const TreeClient *client)
{
	uint32_t sharers = client->techniques.credit_sharers;

	assert(client->techniques.credits > 0);
	return client->shared->credits + (sharers == 0 ? 0 : client->slot / sharers);
}

uint32_t
credits_take(TreeClient *client, int count)
{
	uint32_t credits = client->techniques.credits;
	uint32_t wanted = (uint32_t) count < credits ? (uint32_t) count : credits;
	uint64_t deadline = 0;
	CreditGroup *group;
	uint32_t taken;

	assert(count > 0);
	group = group_of(client);
	taken = __atomic_load_n(&group->taken, __ATOMIC_RELAXED);
	for (;;)
	{
		if (taken + wanted <= credits || (deadline != 0 && client_now_us(client) >= deadline))
		{
			if (__atomic_compare_exchange_n(&group->taken, &taken, taken + wanted, false, __ATOMIC_RELAXED,
			                                __ATOMIC_RELAXED))
				return wanted;
			continue;
		}
		if (deadline == 0)
		{
			deadline = client_now_us(client) + CREDIT_WAIT_US;
			__atomic_fetch_add(&group->waits, 1, __ATOMIC_RELAXED);
		}
		client_pause(client);
		taken = __atomic_load_n(&group->taken, __ATOMIC_RELAXED);
	}
}

void
credits_return(TreeClient *client, uint32_t taken)
{
	assert(taken > 0 && taken <= client->techniques.credits);
	__atomic_fetch_sub(&group_of(client)->taken, taken, __ATOMIC_RELAXED);
}
