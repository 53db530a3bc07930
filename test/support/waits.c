/*
 * waits.c
 *		See waits.h.
 */
#include <string.h>

#include "require.h"
#include "waits.h"

/* Chains under way at once: more than a wave has. */
#define PENDING_MAX 64u
#define NAME_BYTES 64u

typedef struct Pending
{
	char name[NAME_BYTES];
	uint64_t round; /* that it was posted in */
} Pending;

static struct
{
	uint64_t round;
	uint32_t count;
	Pending pending[PENDING_MAX]; /* the oldest one first */
} waits;

/* A chain or call is posted; or the oldest one of this name was answered, by which all that were posted with it could have been. */
static void
waits_step(void *argument, const char *name, bool before)
{
	uint32_t i = 0;

	(void) argument;
	if (before)
	{
		REQUIRE(waits.count < PENDING_MAX, "%u chains under way", waits.count);
		snprintf(waits.pending[waits.count].name, NAME_BYTES, "%s", name);
		waits.pending[waits.count++].round = waits.round;
		return;
	}
	while (i < waits.count && strncmp(waits.pending[i].name, name, NAME_BYTES - 1) != 0)
		i++;
	REQUIRE(i < waits.count, "an answer to what nobody posted: %s", name);
	if (waits.pending[i].round == waits.round)
		waits.round++;
	waits.count--;
	memmove(&waits.pending[i], &waits.pending[i + 1], (waits.count - i) * sizeof(Pending));
}

void
waits_begin(TreeClient *client)
{
	memset(&waits, 0, sizeof(waits));
	tree_client_crash_points(client, waits_step);
}

uint64_t
waits_end(TreeClient *client)
{
	tree_client_crash_points(client, NULL);
	REQUIRE(waits.count == 0, "%u chains are under way", waits.count);
	return waits.round;
}
