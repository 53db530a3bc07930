/*
 * back_off.c
 *		The pause between two tries to win a lock word that another instance has.
 *
 * Its length is random, and doubles with each try that fails, up to a limit.  The limit, which is SMART's, follows the
 * results of the swaps: it doubles where many fail, and is halved where few do.  In the end the process sleeps: a holder
 * that keeps the word for that long has stopped, and may be waiting for this processor.
 */
#include "tree/lock/lock.h"

/* So many failed swaps are followed by waiting awake, the later ones by sleep. */
#define BACK_OFF_SPINS 256
#define BACK_OFF_SLEEP_MS 3u
#define MICROSECONDS_PER_MS 1000u
/*
 * SMART: the first wait, 4096 cycles; how often the limit doubles at most; and the number of swaps after which it is
 * adjusted.
 */
#define BACK_OFF_FIRST_US 2u
#define BACK_OFF_DOUBLINGS 10u
#define BACK_OFF_SWAPS 32u
/* Shares of swaps that failed: above a half the limit rises, below a tenth it falls. */
#define BACK_OFF_MANY 2u
#define BACK_OFF_FEW 10u

static void
sleep_for(const TreeClient *client, uint32_t milliseconds)
{
	const TreeEnvironment *environment = &client->options.environment;

	assert(milliseconds > 0);
	environment->sleep(environment->argument, client->slot, milliseconds);
}

/* Spins, unless the wait is long enough for a sleep. */
static void
wait_limited(TreeClient *client, uint32_t doublings)
{
	uint32_t limit = client->back_off.doublings;
	uint64_t wait = (uint64_t) BACK_OFF_FIRST_US << (doublings < limit ? doublings : limit);

	assert(limit <= BACK_OFF_DOUBLINGS);
	wait += client_random(client) % wait;
	if (wait < MICROSECONDS_PER_MS)
		access_pause(client, wait);
	else
		sleep_for(client, (uint32_t) wait / MICROSECONDS_PER_MS);
}

void
back_off_wait(TreeClient *client, int attempt)
{
	assert(!client->holding);
	assert(attempt > 0);
	if (attempt > BACK_OFF_SPINS)
		sleep_for(client, 1 + (uint32_t) (client_random(client) % BACK_OFF_SLEEP_MS));
	else
		wait_limited(client, (uint32_t) attempt - 1);
}

void
back_off_count(TreeClient *client, bool lost)
{
	BackOff *own = &client->back_off;

	own->swaps++;
	own->lost += lost ? 1 : 0;
	if (own->swaps < BACK_OFF_SWAPS)
		return;
	if (own->lost * BACK_OFF_MANY > own->swaps && own->doublings < BACK_OFF_DOUBLINGS)
		own->doublings++;
	else if (own->lost * BACK_OFF_FEW < own->swaps && own->doublings > 0)
		own->doublings--;
	own->swaps = own->lost = 0;
}
