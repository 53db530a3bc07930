/*
 * scheduler.c
 *		See scheduler.h.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "events.h"
#include "fetch.h"
#include "scheduler.h"
#include "switch.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBERS 1
#elif __has_feature(thread_sanitizer)
#define THREADS_ARE_FOLLOWED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FIBERS 1
#elif defined(__SANITIZE_THREAD__)
#define THREADS_ARE_FOLLOWED 1
#endif

#ifdef FIBERS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

/*
 * Of a stack, the page below it included that nobody may touch. The deepest users are the memory node's
 * calls.
 */
#define STACK_BYTES (640u << 10)
#define GUARD_BYTES 4096u
/*
 * Stacks begin at different places of their memory: the lines that all of them use most, at equal distances
 * from the begin, would otherwise share a few sets of each of the processor's caches. An odd number of lines,
 * so that all of a page's come in turn, over all sets of a cache of 64 KB a way.
 */
#define STACK_SHIFT_BYTES (9u * 64)
#define STACK_SHIFTS 128u
/* Of a stack, from where its coroutine goes on: what it uses until it waits again, about. */
#define STACK_FETCH_BYTES 1024u
/* Of the argument of an event that is fetched. */
#define ARGUMENT_FETCH_BYTES 256u

struct Coroutine
{
	uint64_t wait;  /* counts its waits: events of an earlier one are nothing to it */
	uint8_t *stack; /* NULL: it has ended */
	SwitchPlace place;
	bool waiting; /* and may be woken */
	bool woken;
	bool serves;
	bool occupied;
	bool has_random;
	uint64_t random;
	void *fake_stack; /* the address sanitizer's */
	CoroutineBody body;
	void *argument;
	Coroutine *next;
};

typedef struct Scheduler
{
	uint64_t now;
	uint64_t random;
	uint64_t fingerprint;
	Coroutine *coroutines;
	uint32_t started;  /* coroutines, ever */
	uint32_t awaited;  /* that have not ended and do not serve */
	uint32_t occupied; /* coroutines */
	uint64_t occupations;
	bool left; /* scheduler_run() is to return */
	bool (*director)(void);
	Coroutine *current;
	SwitchPlace home;
	const void *home_stack; /* for the address sanitizer */
	size_t home_bytes;
	uint8_t **free_stacks;
	uint32_t free_count;
	uint32_t free_room;
	Events events;
} Scheduler;

static Scheduler scheduler;

static void *
grown(void *memory, uint32_t count, uint32_t *room, size_t bytes)
{
	if (count < *room)
		return memory;
	*room = *room == 0 ? 64 : *room * 2;
	memory = realloc(memory, *room * bytes);
	if (memory == NULL)
		abort();
	return memory;
}

/* splitmix64 */
static uint64_t
mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
	value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
	return value ^ (value >> 31);
}

uint64_t
scheduler_now(void)
{
	return scheduler.now;
}

uint64_t
scheduler_random(uint64_t below)
{
	Coroutine *self = scheduler.current;
	uint64_t *random = self != NULL && self->has_random ? &self->random : &scheduler.random;

	return mix(*random += 0x9e3779b97f4a7c15ull) % below;
}

void
scheduler_note(uint64_t what)
{
	scheduler.fingerprint = mix(scheduler.fingerprint + 0x9e3779b97f4a7c15ull) ^ what;
}

uint64_t
scheduler_fingerprint(void)
{
	return scheduler.fingerprint;
}

/* ---- events ---- */

void
scheduler_after(uint64_t delay, SchedulerEvent event, void *argument, uint64_t number)
{
	scheduler_after_fetch(delay, event, NULL, argument, number);
}

void
scheduler_after_fetch(uint64_t delay, SchedulerEvent event, SchedulerFetch fetch, void *argument,
                      uint64_t number)
{
	events_add(&scheduler.events, scheduler.now, scheduler.now + delay, event, fetch, argument, number);
}

/* ---- switching ---- */

/*
 * Tells the address sanitizer that another stack is about to be used; `fake` NULL: the present one is given
 * up.
 */
static inline void
before_switch(void **fake, const void *stack, size_t bytes)
{
#ifdef FIBERS
	__sanitizer_start_switch_fiber(fake, stack, bytes);
#else
	(void) fake;
	(void) stack;
	(void) bytes;
#endif
}

static inline void
after_switch(void *fake, const void **stack, size_t *bytes)
{
#ifdef FIBERS
	__sanitizer_finish_switch_fiber(fake, stack, bytes);
#else
	(void) fake;
	(void) stack;
	(void) bytes;
#endif
}

static uint8_t *
take_stack(void)
{
	uint8_t *stack;

	if (scheduler.free_count > 0)
		stack = scheduler.free_stacks[--scheduler.free_count];
	else
	{
		stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		             -1, 0);
		if (stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE) != 0)
			abort();
	}
#ifdef FIBERS
	__asan_unpoison_memory_region(stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES);
#endif
	return stack;
}

/* It has ended: its stack is free, although it may be the one in use until the next switch. */
static void
retire(Coroutine *coroutine)
{
	scheduler.free_stacks =
		grown(scheduler.free_stacks, scheduler.free_count, &scheduler.free_room, sizeof(uint8_t *));
	scheduler.free_stacks[scheduler.free_count++] = coroutine->stack;
	coroutine->stack = NULL;
	scheduler.awaited -= !coroutine->serves;
	scheduler.occupied -= coroutine->occupied;
	coroutine->occupied = false;
}

static void
first_steps(void)
{
	Coroutine *self = scheduler.current;

	after_switch(NULL, &scheduler.home_stack, &scheduler.home_bytes);
	self->body(self->argument);
	retire(self);
	before_switch(NULL, scheduler.home_stack, scheduler.home_bytes);
	switch_stacks(&self->place, &scheduler.home);
}

static void
switch_to(Coroutine *coroutine)
{
	void *fake = NULL;

	scheduler.current = coroutine;
	before_switch(&fake, coroutine->stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES);
	switch_stacks(&scheduler.home, &coroutine->place);
	after_switch(fake, NULL, NULL);
	scheduler.current = NULL;
}

static void
switch_home(Coroutine *self)
{
	before_switch(&self->fake_stack, scheduler.home_stack, scheduler.home_bytes);
	switch_stacks(&self->place, &scheduler.home);
	after_switch(self->fake_stack, &scheduler.home_stack, &scheduler.home_bytes);
}

/* ---- coroutines ---- */

/* The event of a wait's end. */
static void
go_on(void *argument, uint64_t wait)
{
	Coroutine *coroutine = argument;

	if (coroutine->stack != NULL && coroutine->wait == wait)
		switch_to(coroutine);
}

void
coroutine_fetch(const Coroutine *coroutine)
{
#ifdef SWITCH_BY_HAND
	fetch_bytes(coroutine->place.stack, STACK_FETCH_BYTES);
#else
	(void) coroutine;
#endif
}

/* Before the event of a wait's end. */
static void
fetch_coroutine(const void *argument)
{
	coroutine_fetch(argument);
}

Coroutine *
coroutine_start(CoroutineBody body, void *argument, bool serves)
{
	Coroutine *coroutine = calloc(1, sizeof(Coroutine));
	uint32_t shift = scheduler.started++ % STACK_SHIFTS * STACK_SHIFT_BYTES;

	if (coroutine == NULL)
		abort();
	coroutine->body = body;
	coroutine->argument = argument;
	coroutine->serves = serves;
	coroutine->stack = take_stack();
	switch_prepare(&coroutine->place, coroutine->stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES - shift,
	               first_steps);
	coroutine->next = scheduler.coroutines;
	scheduler.coroutines = coroutine;
	scheduler.awaited += !serves;
	scheduler_after(0, go_on, coroutine, 0);
	return coroutine;
}

Coroutine *
coroutine_current(void)
{
	return scheduler.current;
}

void
coroutine_end(Coroutine *coroutine)
{
	if (coroutine->stack != NULL)
		retire(coroutine);
}

bool
coroutine_has_ended(const Coroutine *coroutine)
{
	return coroutine->stack == NULL;
}

void
coroutine_occupy(bool occupied)
{
	Coroutine *self = scheduler.current;

	if (self->serves || self->occupied == occupied)
		return;
	self->occupied = occupied;
	scheduler.occupied += occupied ? 1 : UINT32_MAX;
	scheduler.occupations += occupied;
}

uint64_t
scheduler_occupations(void)
{
	return scheduler.occupations;
}

void
coroutine_random(uint64_t seed)
{
	scheduler.current->has_random = true;
	scheduler.current->random = seed;
}

void
coroutine_sleep(uint64_t nanoseconds)
{
	Coroutine *self = scheduler.current;
	bool occupied = self->occupied;

	self->wait++;
	scheduler_after_fetch(nanoseconds, go_on, fetch_coroutine, self, self->wait);
	coroutine_occupy(true);
	switch_home(self);
	coroutine_occupy(occupied);
}

void
coroutine_suspend(void)
{
	Coroutine *self = scheduler.current;

	self->wait++;
	switch_home(self);
}

void
coroutine_resume(Coroutine *coroutine)
{
	if (coroutine->stack != NULL)
		switch_to(coroutine);
}

bool
coroutine_wait(uint64_t nanoseconds)
{
	Coroutine *self = scheduler.current;
	bool woken = self->woken;

	if (!woken)
	{
		self->wait++;
		self->waiting = true;
		if (nanoseconds != SCHEDULER_NEVER)
			scheduler_after_fetch(nanoseconds, go_on, fetch_coroutine, self, self->wait);
		switch_home(self);
		self->waiting = false;
		woken = self->woken;
	}
	self->woken = false;
	return woken;
}

void
coroutine_wake(Coroutine *coroutine)
{
	if (coroutine->stack == NULL || coroutine->woken)
		return;
	coroutine->woken = true;
	if (coroutine->waiting)
		scheduler_after_fetch(0, go_on, fetch_coroutine, coroutine, coroutine->wait);
}

/* ---- the simulation ---- */

bool
scheduler_is_here(void)
{
#ifdef THREADS_ARE_FOLLOWED
	return false;
#else
	return true;
#endif
}

void
scheduler_open(uint64_t seed)
{
	memset(&scheduler, 0, sizeof(scheduler));
	scheduler.random = seed;
}

void
scheduler_direct(bool (*director)(void))
{
	scheduler.director = director;
}

/* Whether the director is to be asked. */
static bool
is_idle(void)
{
	const Event *first = scheduler.events.first;

	return scheduler.director != NULL && scheduler.occupied == 0 &&
	       (first == NULL || first->time > scheduler.now);
}

/* While one event happens, what the next one will touch; and what says so of the one behind it. */
static void
fetch_ahead(const Events *events)
{
	const Event *next = events->first;
	const Event *second;

	if (next == NULL || next->fetch == NULL)
		return;
	second = events_second(events);
	if (second != NULL && second->fetch != NULL)
		fetch_bytes(second->argument, ARGUMENT_FETCH_BYTES);
	next->fetch(next->argument);
}

void
scheduler_leave(void)
{
	scheduler.left = true;
}

bool
scheduler_run(uint64_t limit)
{
	scheduler.left = false;
	while (scheduler.awaited > 0 && !scheduler.left)
	{
		Event *event;

		if (is_idle() && scheduler.director())
			continue;
		if (scheduler.events.first == NULL || scheduler.events.first->time > limit)
			return false;
		event = events_take(&scheduler.events);
		scheduler.now = event->time;
		fetch_ahead(&scheduler.events);
		event->happen(event->argument, event->number);
		events_release(&scheduler.events, event);
	}
	return true;
}

void
scheduler_close(void)
{
	while (scheduler.coroutines != NULL)
	{
		Coroutine *coroutine = scheduler.coroutines;

		coroutine_end(coroutine);
		scheduler.coroutines = coroutine->next;
		free(coroutine);
	}
	while (scheduler.free_count > 0)
		munmap(scheduler.free_stacks[--scheduler.free_count], STACK_BYTES);
	free(scheduler.free_stacks);
	events_close(&scheduler.events);
	memset(&scheduler, 0, sizeof(scheduler));
}
