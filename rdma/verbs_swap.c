/*
 * verbs_swap.c
 *		The memory node tries MASKED_SWAP on its device, before it offers that to anybody.
 */
#define _GNU_SOURCE 1
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "swap_test.h"
#include "verbs_domain.h"
#include "verbs_flight.h"
#include "verbs_server.h"

/* As long as a loopback queue pair is waited for. */
#define TRIAL_MS 5000u

/* What the trial has of its own: nothing that a client uses. */
typedef struct Trial
{
	VerbsDomain domain; /* of the open device; only its loopback is made */
	VerbsFlight flight;
	VerbsQueue *passive;
	VerbsMemory *target;
	VerbsMemory *arena_memory;
	SwapTest test;
	uint8_t arena[MEMORY_PAGE_BYTES] __attribute__((aligned(MEMORY_PAGE_BYTES)));
	uint64_t words[SWAP_TEST_WORDS] __attribute__((aligned(MEMORY_PAGE_BYTES)));
} Trial;

static void
trial_close(Trial *trial)
{
	const VerbsDriver *driver = trial->domain.driver;

	if (trial->flight.queue != NULL)
		driver->queue_destroy(trial->flight.queue);
	if (trial->passive != NULL)
		driver->queue_destroy(trial->passive);
	if (trial->arena_memory != NULL)
		driver->memory_release(trial->arena_memory);
	if (trial->target != NULL)
		driver->memory_release(trial->target);
	free(trial);
}

/* The words lie where the lock words will: memory on the device may be another matter than the host's. */
static bool
trial_open(Trial *trial, bool on_device)
{
	const VerbsDriver *driver = trial->domain.driver;
	VerbsDevice *device = trial->domain.device;
	char detail[FABRIC_DETAIL_BYTES];
	VerbsMemoryKeys keys;

	flight_clear(&trial->flight);
	trial->flight.driver = driver;
	trial->flight.arena = trial->arena;
	trial->flight.arena_bytes = sizeof(trial->arena);
	trial->flight.masked_swaps = true;
	if (on_device)
		trial->target = driver->memory_on_device(device, MEMORY_PAGE_BYTES, detail);
	else
		trial->target = driver->memory_register(device, trial->words, SWAP_TEST_BYTES, true, detail);
	if (trial->target != NULL)
		trial->arena_memory =
			driver->memory_register(device, trial->arena, sizeof(trial->arena), false, detail);
	if (trial->arena_memory == NULL ||
	    !domain_loopback(&trial->domain, VERBS_MAX_POST, &trial->flight.queue, &trial->passive, detail))
		return false;
	driver->memory_keys(trial->arena_memory, &trial->flight.keys);
	driver->memory_keys(trial->target, &keys);
	trial->flight.grant.windows[VERBS_PART] =
		(VerbsWindow){.end = SWAP_TEST_BYTES, .base = keys.base, .key = keys.remote};
	trial->flight.broken = FABRIC_OK;
	return true;
}

static const char *
trial_run(Trial *trial)
{
	uint64_t deadline = fabric_now() + (uint64_t) TRIAL_MS * 1000000;
	const char *reason;
	VerbsChain *chain;
	uint64_t fences = 0;

	swap_test_prepare(&trial->test, 0);
	if (flight_post(&trial->flight, trial->test.ops, SWAP_TEST_OPS, 0, &fences, &chain) != FABRIC_OK)
		return "the device takes no such request";
	while (!chain->done && fabric_now() < deadline)
	{
		if (flight_poll(&trial->flight, &reason) != VERBS_NONE)
			return "the device answers with an error";
		sched_yield();
	}
	return chain->done ? swap_test_judge(&trial->test) : "the device does not answer";
}

const char *
verbs_try_swaps(const VerbsDriver *driver, VerbsDevice *device)
{
	VerbsProperties properties;
	Trial *trial;
	const char *reason;

	driver->device_properties(device, &properties);
	if (properties.no_masked_swap != NULL)
		return properties.no_masked_swap;
	trial = aligned_alloc(MEMORY_PAGE_BYTES, sizeof(Trial));
	if (trial == NULL)
		return "out of memory";
	memset(trial, 0, sizeof(*trial));
	trial->domain.driver = driver;
	trial->domain.device = device;
	if (trial_open(trial, properties.lock_memory >= MEMORY_LOCK_BYTES))
		reason = trial_run(trial);
	else
		reason = "there was no queue pair to try it on";
	trial_close(trial);
	return reason;
}
