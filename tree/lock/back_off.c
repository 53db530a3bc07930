/*
 * back_off.c
 *		The pause between two tries to win a lock word that another instance has.
 *
 * Its length is random, and doubles with each try that fails (TreeTechniques.back_off), up to a limit. SMART's limit
 * (`adaptive`) follows the results of the swaps: it doubles where many fail, and is halved where few do. Without
 * `adaptive` the limit is fixed, and a process soon sleeps. In the end both sleep: a holder that keeps the word for
 * that long has stopped, and may be waiting for this processor.
 */
#include "tree/lock/lock.h"

/*
 * So many failed swaps are followed by spinning, without `adaptive` for up to 2^n microseconds each; the later ones
 * by sleeping.
 */
#define BACK_OFF_SPINS 6
#define ADAPTIVE_SPINS 256
#define BACK_OFF_SLEEP_MS 3u
#define MICROSECONDS_PER_MS 1000u
/*
 * SMART: the first wait, 4096 cycles; how often the limit doubles at most; and the number of swaps after which it is
 * adjusted.
 */
#define ADAPTIVE_FIRST_US 2u
#define ADAPTIVE_DOUBLINGS 10u
#define ADAPTIVE_SWAPS 32u
/* Shares of swaps that failed: above a half the limit rises, below a tenth it falls. */
#define ADAPTIVE_MANY 2u
#define ADAPTIVE_FEW 10u

static void
sleep_for(const TreeClient *client, uint32_t milliseconds)
{
	const TreeEnvironment *environment = &client->options.environment;

	assert(milliseconds > 0);
	environment->sleep(environment->argument, client->slot, milliseconds);
}

/* Spins, unless the wait is long enough for a sleep. */
static void
wait_adaptive(TreeClient *client, uint32_t doublings)
{
	uint32_t limit = client->back_off.doublings;
	uint64_t wait = (uint64_t) ADAPTIVE_FIRST_US << (doublings < limit ? doublings : limit);

	assert(limit <= ADAPTIVE_DOUBLINGS);
	wait += client_random(client) % wait;
	if (wait < MICROSECONDS_PER_MS)
		access_pause(client, wait);
	else
		sleep_for(client, (uint32_t) wait / MICROSECONDS_PER_MS);
}

void
back_off_wait(TreeClient *client, int attempt)
{
	bool adaptive = client->techniques.adaptive;

	assert(!client->holding);
	assert(attempt > 0);
	if (!client->techniques.back_off)
		client_pause(client);
	else if (attempt > (adaptive ? ADAPTIVE_SPINS : BACK_OFF_SPINS))
		sleep_for(client, 1 + (uint32_t) (client_random(client) % BACK_OFF_SLEEP_MS));
	else if (adaptive)
		wait_adaptive(client, (uint32_t) attempt - 1);
	else
		access_pause(client, 1 + client_random(client) % (1u << attempt));
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
