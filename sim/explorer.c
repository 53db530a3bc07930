/*
 * explorer.c
 *		See explorer.h. What may be a step now, and what it does; which one comes is said by choices.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accesses.h"
#include "choices.h"
#include "heap.h"

/* Steps that are possible at one time. */
#define OFFERS_MAX 128
/* Accesses since a client waited last; with more it is told of every change. */
#define WATCHED_MAX 2048
/* Accesses of a step at most; one that has more conflicts with all. */
#define STEP_ACCESSES_MAX (2 * ACCESSES_MAX)
/* Room for one choice in a schedule. */
#define CHOICE_BYTES 12

typedef struct Offer
{
	uint32_t actor;
	SchedulerEvent event;
	void *argument;
	uint64_t number;
	uint32_t causes[2];
	bool behind_all;
} Offer;

typedef enum ClientWait
{
	CLIENT_RUNS,
	CLIENT_PAUSES, /* until something changes */
	CLIENT_SLEEPS  /* until it is woken */
} ClientWait;

typedef struct Client
{
	Coroutine *coroutine; /* NULL: there is none */
	uint32_t group;
	uint32_t queues;
	ClientWait wait;
	uint64_t since; /* in the order of waits */
	bool goes_on;
	bool waited; /* it has paused or slept, and not only given others their turn */
	bool woken;
	bool in_vain;   /* its group let it go on from its last pause, and it has done nothing since */
	bool changed;   /* what it has accessed, or its group */
	uint32_t cause; /* the step that did */
	uint32_t watched_count;
	Access *watched; /* WATCHED_MAX; kept */
} Client;

/* What lasts from run to run, and is kept where runs begin with a snapshot. */
typedef struct Exploration
{
	bool listed; /* the choices are those of choices.c */
	ExplorerOptions options;
	ExplorerCounts counts;
	const char *rest; /* of the schedule that is repeated */
	uint64_t random;
	char *schedule;
	size_t schedule_bytes;
	size_t schedule_room;
	Access watched[EXPLORER_CLIENTS][WATCHED_MAX];
	Access accesses[STEP_ACCESSES_MAX]; /* of the step under way */
} Exploration;

typedef struct Explorer
{
	bool open;
	bool on;
	uint64_t steps; /* of this run */
	uint64_t occupations;
	Offer offers[OFFERS_MAX]; /* in order of offers */
	uint32_t offered;
	Client clients[EXPLORER_CLIENTS];
	uint64_t waits;
	/* The step under way, from its event to the next choice. */
	bool stepping;
	Footprint step;
	uint32_t effects; /* offers and wakes in it: what others may see of a client that ran */
} Explorer;

static Explorer explorer;
static Exploration *exploration;

/* ---- clients ---- */

uint32_t
explorer_client(void)
{
	const Coroutine *self = coroutine_current();
	uint32_t number = 0;

	while (self == NULL || (number < EXPLORER_CLIENTS && explorer.clients[number].coroutine != self))
	{
		if (self == NULL)
			return EXPLORER_CLIENTS;
		number++;
	}
	return number;
}

void
explorer_join(uint32_t number, uint32_t group)
{
	if (!explorer.open)
		return;
	explorer.clients[number] = (Client){.coroutine = coroutine_current(),
	                                    .group = group,
	                                    .cause = EXPLORER_NO_STEP,
	                                    .watched = exploration->watched[number]};
	coroutine_random(number);
}

uint32_t
explorer_new_actor(void)
{
	uint32_t number = explorer_client();

	if (!explorer.open || number == EXPLORER_CLIENTS)
		return EXPLORER_CLIENTS * EXPLORER_ACTORS;
	return number * EXPLORER_ACTORS + 1 + 2 * explorer.clients[number].queues++;
}

/* ---- offers ---- */

/* The step under way has done something that others may see; and so has the client whose code runs. */
static void
client_acts(void)
{
	uint32_t number = explorer_client();

	explorer.effects++;
	if (number < EXPLORER_CLIENTS)
		explorer.clients[number].in_vain = false;
}

bool
explorer_is_on(void)
{
	return explorer.on;
}

uint32_t
explorer_step(void)
{
	return explorer.stepping && exploration->listed ? choices_step() : EXPLORER_NO_STEP;
}

static void
offer(Offer added)
{
	if (explorer.offered == OFFERS_MAX)
		abort();
	explorer.offers[explorer.offered++] = added;
}

void
explorer_offer(uint32_t actor, SchedulerEvent event, void *argument, uint64_t number, uint32_t cause)
{
	client_acts();
	offer((Offer){actor, event, argument, number, {explorer_step(), cause}, false});
}

static uint32_t
client_number(const Client *client)
{
	return (uint32_t) (client - explorer.clients);
}

/*
 * The step under way lets the client go on, or finds out whether something has.  Any one that does is enough,
 * so these steps conflict.
 */
static void
touch_wake(const Client *client)
{
	explorer_access(EXPLORER_WAKE, client_number(client), client_number(client) + 1, EXPLORER_WRITE);
}

/* The event of a client's step: it goes on. */
static void
client_go_on(void *argument, uint64_t number)
{
	Client *client = &explorer.clients[number];

	(void) argument;
	client->goes_on = true;
	explorer_access_client((uint32_t) number);
	if (client->waited)
		touch_wake(client);
	client->waited = false;
	coroutine_wake(client->coroutine);
}

static void
client_offer(Client *client, uint32_t cause, bool behind_all)
{
	uint32_t number = client_number(client);

	client->wait = CLIENT_RUNS;
	offer(
		(Offer){number * EXPLORER_ACTORS, client_go_on, NULL, number, {explorer_step(), cause}, behind_all});
}

/* Until its step comes. */
static void
client_wait(Client *client)
{
	/* Others may wake it for other reasons. */
	while (!client->goes_on)
		coroutine_wait(SCHEDULER_NEVER);
	client->goes_on = false;
	client->changed = client->woken = false;
	client->cause = EXPLORER_NO_STEP;
	client->watched_count = 0;
}

static Client *
client_here(void)
{
	uint32_t number = explorer_client();

	if (number == EXPLORER_CLIENTS)
		abort();
	return &explorer.clients[number];
}

void
explorer_yield(void)
{
	Client *client;

	if (!explorer.on)
		return;
	client = client_here();
	client_acts();
	client_offer(client, EXPLORER_NO_STEP, false);
	client_wait(client);
}

void
explorer_pause(void)
{
	Client *client = client_here();

	touch_wake(client);
	client->waited = true;
	client->wait = CLIENT_PAUSES;
	client->since = explorer.waits++;
	if (client->changed || client->woken)
		client_offer(client, client->cause, false);
	client_wait(client);
}

void
explorer_sleep(void)
{
	Client *client = client_here();

	touch_wake(client);
	client->waited = true;
	client->wait = CLIENT_SLEEPS;
	client->since = explorer.waits++;
	if (client->woken)
		client_offer(client, client->cause, false);
	client_wait(client);
}

void
explorer_wake(uint32_t number)
{
	Client *client = &explorer.clients[number];

	client_acts();
	touch_wake(client);
	if (client->woken)
		return;
	client->woken = true;
	client->cause = explorer_step();
	if (client->wait != CLIENT_RUNS)
		client_offer(client, client->cause, false);
}

/* ---- accesses ---- */

static void
client_changed(Client *client)
{
	touch_wake(client);
	if (client->changed)
		return;
	client->changed = true;
	client->cause = explorer_step();
	if (client->wait == CLIENT_PAUSES)
		client_offer(client, client->cause, false);
}

static bool
client_watches(const Client *client, const Access *access)
{
	if (client->watched_count == WATCHED_MAX)
		return true;
	for (uint32_t i = 0; i < client->watched_count; i++)
		if (access_conflicts(&client->watched[i], access))
			return true;
	return false;
}

/* A change is told to whoever has looked there; and the step's own client has looked there now. */
static void
tell(const Access *access)
{
	uint32_t own = explorer.step.actor / EXPLORER_ACTORS;

	for (uint32_t i = 0; i < EXPLORER_CLIENTS; i++)
		if (i != own && access->mode == EXPLORER_WRITE && explorer.clients[i].coroutine != NULL &&
		    client_watches(&explorer.clients[i], access))
			client_changed(&explorer.clients[i]);
	if (own < EXPLORER_CLIENTS && explorer.clients[own].watched_count < WATCHED_MAX)
	{
		Client *client = &explorer.clients[own];

		client->watched[client->watched_count] = *access;
		client->watched[client->watched_count++].mode = EXPLORER_READ;
	}
}

void
explorer_access(uint64_t space, uint64_t from, uint64_t to, ExplorerMode mode)
{
	Access access = {space, from, to, mode};
	Footprint *step = &explorer.step;
	Access *last = step->count == 0 ? NULL : &step->accesses[step->count - 1];

	if (!explorer.stepping)
		return;
	if (space >= EXPLORER_REGIONS || space == EXPLORER_SHARED)
		tell(&access);
	if (last != NULL && last->space == space && last->mode == mode && last->to == from)
		last->to = to;
	else if (step->count == STEP_ACCESSES_MAX)
		step->all = true;
	else
		step->accesses[step->count++] = access;
}

void
explorer_access_all(void)
{
	explorer.step.all = true;
}

void
explorer_access_client(uint32_t client)
{
	if (client < EXPLORER_CLIENTS)
		explorer_access(EXPLORER_GROUP, explorer.clients[client].group, explorer.clients[client].group + 1,
		                EXPLORER_WRITE);
}

/* ---- steps ---- */

/* Whoever pauses in the group may find something new, if the client that ran has done more than to look. */
static void
report_group(void)
{
	const Footprint *step = &explorer.step;

	for (uint32_t i = 0; i < step->count && explorer.effects > 0; i++)
		for (uint32_t k = 0; k < EXPLORER_CLIENTS; k++)
		{
			Client *client = &explorer.clients[k];

			if (step->accesses[i].space == EXPLORER_GROUP && client->coroutine != NULL &&
			    client->group == step->accesses[i].from && client->wait == CLIENT_PAUSES && !client->in_vain)
			{
				client->in_vain = true;
				client_changed(client);
			}
		}
}

/* The step may have changed whatever anybody has looked at. */
static void
report_all(void)
{
	uint32_t own = explorer.step.actor / EXPLORER_ACTORS;

	for (uint32_t i = 0; i < EXPLORER_CLIENTS; i++)
		if (explorer.clients[i].coroutine != NULL && (i != own || explorer.clients[i].wait == CLIENT_PAUSES))
			client_changed(&explorer.clients[i]);
}

static void
access_shared(uint64_t from, uint64_t to, ExplorerMode mode)
{
	explorer_access(EXPLORER_SHARED, from, to, mode);
}

static void
end_step(void)
{
	if (!explorer.stepping)
		return;
	if (!accesses_end(access_shared))
		explorer.step.all = true;
	/* Calls are not told apart. */
	if (scheduler_occupations() != explorer.occupations)
		explorer.step.all = true;
	if (explorer.step.all)
		report_all();
	else
		report_group();
	footprint_settle(&explorer.step);
	if (exploration->listed)
		choices_end_step(&explorer.step);
	explorer.stepping = false;
}

/* Nobody can do anything: whoever waits longest goes on, as if its time were over. */
static void
offer_longest_waiting(void)
{
	Client *longest = NULL;

	for (uint32_t i = 0; i < EXPLORER_CLIENTS; i++)
	{
		Client *client = &explorer.clients[i];

		if (client->coroutine != NULL && client->wait != CLIENT_RUNS &&
		    !coroutine_has_ended(client->coroutine) && (longest == NULL || client->since < longest->since))
			longest = client;
	}
	if (longest != NULL)
		client_offer(longest, EXPLORER_NO_STEP, true);
}

static int
offer_compare(const void *a, const void *b)
{
	uint32_t x = ((const Offer *) a)->actor, y = ((const Offer *) b)->actor;

	return (x > y) - (x < y);
}

/* Steps of clients that have ended are none any more. */
static void
drop_ended(void)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < explorer.offered; i++)
	{
		const Offer *one = &explorer.offers[i];

		if (one->event != client_go_on || !coroutine_has_ended(explorer.clients[one->number].coroutine))
			explorer.offers[left++] = *one;
	}
	explorer.offered = left;
}

/* Notes a choice for explorer_schedule(), if there was one. */
static void
note_choice(uint32_t chosen)
{
	if (explorer.offered < 2)
		return;
	if (exploration->schedule_bytes + CHOICE_BYTES > exploration->schedule_room)
	{
		exploration->schedule_room = 2 * exploration->schedule_room + 256;
		exploration->schedule = heap_resize(exploration->schedule, exploration->schedule_room);
	}
	exploration->schedule_bytes +=
		(size_t) snprintf(&exploration->schedule[exploration->schedule_bytes], CHOICE_BYTES, "%s%u",
	                      exploration->schedule_bytes == 0 ? "" : ",", chosen);
}

/* What the schedule says; behind its end the first one. */
static uint32_t
choose_as_before(void)
{
	char *end;
	unsigned long chosen;

	if (explorer.offered < 2)
		return 0;
	chosen = strtoul(exploration->rest, &end, 10);
	exploration->rest = *end == ',' ? end + 1 : end;
	return chosen < explorer.offered ? (uint32_t) chosen : 0;
}

/* One of the offers, at random: the same in each exploration. */
static uint32_t
drawn(void)
{
	exploration->random = exploration->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t) ((exploration->random >> 33) % explorer.offered);
}

static uint32_t
choose(void)
{
	uint32_t actors[OFFERS_MAX];

	if (exploration->options.schedule != NULL)
		return choose_as_before();
	if (!exploration->listed)
		return drawn();
	for (uint32_t i = 0; i < explorer.offered; i++)
		actors[i] = explorer.offers[i].actor;
	return choices_choose(actors, explorer.offered);
}

/* The scheduler's director: the next step. */
static bool
direct(void)
{
	uint32_t chosen;
	Offer next;

	end_step();
	drop_ended();
	if (explorer.offered == 0 && explorer.on)
		offer_longest_waiting();
	if (explorer.offered == 0)
		return false;
	qsort(explorer.offers, explorer.offered, sizeof(Offer), offer_compare);
	chosen = explorer.on ? choose() : 0;
	if (explorer.on)
		note_choice(chosen);
	if (explorer.on && exploration->options.trace != NULL)
		exploration->options.trace(explorer.offers[chosen].actor, explorer.offered);
	next = explorer.offers[chosen];
	memmove(&explorer.offers[chosen], &explorer.offers[chosen + 1],
	        (--explorer.offered - chosen) * sizeof(Offer));
	explorer.stepping = explorer.on;
	explorer.step =
		(Footprint){.actor = next.actor, .behind_all = next.behind_all, .accesses = exploration->accesses};
	memcpy(explorer.step.causes, next.causes, sizeof(next.causes));
	if (explorer.stepping)
		accesses_begin();
	explorer.effects = 0;
	explorer.occupations = scheduler_occupations();
	explorer.steps += explorer.on;
	if (explorer.steps > exploration->options.most_steps)
		exploration->options.endless();
	next.event(next.argument, next.number);
	return true;
}

void
explorer_switch(bool on)
{
	if (!explorer.open)
		return;
	end_step();
	explorer.on = on;
	scheduler_direct(direct);
}

/* ---- runs ---- */

void
explorer_open(const ExplorerOptions *options)
{
	memset(&explorer, 0, sizeof(explorer));
	explorer.open = true;
	exploration = heap_zeroed(sizeof(Exploration));
	exploration->options = *options;
	exploration->listed = options->schedule == NULL;
	choices_open();
}

void
explorer_close(void)
{
	choices_close();
	heap_free(exploration->schedule);
	heap_free(exploration);
	exploration = NULL;
	memset(&explorer, 0, sizeof(explorer));
}

/* What the next run's choices are. False: there is none. */
static bool
next_run(void)
{
	const ExplorerOptions *options = &exploration->options;
	ExplorerCounts *counts = &exploration->counts;
	uint64_t runs = counts->runs + counts->redundant;

	if (options->schedule != NULL)
		return runs + counts->random == 0;
	if (exploration->listed && (options->most_runs == 0 || runs < options->most_runs))
	{
		if (choices_next())
			return true;
		counts->complete = true;
	}
	exploration->listed = false;
	return (!counts->complete || options->random_always) && counts->random < options->random_runs;
}

bool
explorer_begin(void)
{
	if (!next_run())
		return false;
	exploration->rest = exploration->options.schedule;
	explorer.steps = explorer.waits = 0;
	explorer.offered = 0;
	exploration->schedule_bytes = 0;
	memset(explorer.clients, 0, sizeof(explorer.clients));
	return true;
}

void
explorer_end(void)
{
	end_step();
	explorer.on = false;
	if (!exploration->listed)
		exploration->counts.random++;
	else if (choices_end_run())
		exploration->counts.runs++;
	else
		exploration->counts.redundant++;
	if (explorer.steps > exploration->counts.steps)
		exploration->counts.steps = explorer.steps;
}

void
explorer_counts(ExplorerCounts *counts)
{
	*counts = exploration->counts;
}

const char *
explorer_schedule(void)
{
	return exploration == NULL || exploration->schedule_bytes == 0 ? "" : exploration->schedule;
}
