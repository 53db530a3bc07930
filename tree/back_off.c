/*
 * back_off.c
 *		What passes between two swaps of a lock word that somebody else has.
 *
 * The wait is random and doubles with each swap that is lost (TreeTechniques.back_off).  Usually it ends in sleep, as the processor
 * may be what the other one waits for.  SMART's (`adaptive`) is awake always, and its limit follows what comes of the swaps: where
 * many are lost it doubles, where few are it is halved.
 */
#include "internal.h"

/* Lost swaps that are answered by spinning for up to 2^n microseconds; after that by sleeping. */
#define BACK_OFF_SPINS 6
#define BACK_OFF_SLEEP_MS 3u
/* SMART's first wait, 4096 cycles, how often its limit doubles at most, and the swaps after which that is looked at. */
#define ADAPTIVE_FIRST_US 2u
#define ADAPTIVE_DOUBLINGS 10u
#define ADAPTIVE_SWAPS 32u
/* Parts of them that are lost: at more than a half the limit rises, at less than a tenth it falls. */
#define ADAPTIVE_MANY 2u
#define ADAPTIVE_FEW 10u

static void
wait_adaptive(TreeClient *client, uint32_t doublings)
{
	uint32_t limit = client->back_off.doublings;
	uint64_t wait = (uint64_t) ADAPTIVE_FIRST_US << (doublings < limit ? doublings : limit);

	assert(limit <= ADAPTIVE_DOUBLINGS);
	access_pause(client, wait + client_random(client) % wait);
}

void
back_off_wait(TreeClient *client, int attempt)
{
	const TreeEnvironment *environment = &client->options.environment;

	assert(!client->holding);
	assert(attempt > 0);
	if (!client->techniques.back_off)
		client_pause(client);
	else if (client->techniques.adaptive)
		wait_adaptive(client, (uint32_t) attempt - 1);
	else if (attempt <= BACK_OFF_SPINS)
		access_pause(client, 1 + client_random(client) % (1u << attempt));
	else
		environment->sleep(environment->argument, client->slot,
		                   1 + (uint32_t) (client_random(client) % BACK_OFF_SLEEP_MS));
}

void
back_off_count(TreeClient *client, bool lost)
{
	BackOff *own = &client->back_off;

	own->swaps++;
	own->lost += lost ? 1 : 0;
	if (own->swaps < ADAPTIVE_SWAPS)
		return;
	if (own->lost * ADAPTIVE_MANY > own->swaps && own->doublings < ADAPTIVE_DOUBLINGS)
		own->doublings++;
	else if (own->lost * ADAPTIVE_FEW < own->swaps && own->doublings > 0)
		own->doublings--;
	own->swaps = own->lost = 0;
}
