/*
 * system.c
 *		What asks the system for time, or waits in it, does so in virtual time.
 *
 * Programs that simulate are linked with --wrap for these functions (sim.mk), so that rdma/ and tree/ are the
 * same here as everywhere.  Outside of coroutines they are the system's.
 *
 * Who waits for descriptors looks at them again and again, in growing steps, and at once when somebody else
 * begins to wait: that one has perhaps just written something.
 */
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <time.h>

#include "scheduler.h"

#define NANOSECONDS_PER_SECOND 1000000000ull
/* A look at the clock: what only looks at it comes to an end, too. */
#define YIELD_NANOSECONDS 200u
/* Steps between two looks at descriptors. */
#define FIRST_STEP_NANOSECONDS 2000u
#define LAST_STEP_NANOSECONDS (10 * NANOSECONDS_PER_MS)
/* Who waits for descriptors at one time, at most. */
#define WATCHERS 256

static Coroutine *watchers[WATCHERS];

extern int __real_clock_gettime(clockid_t clock, struct timespec *time);
extern int __real_nanosleep(const struct timespec *time, struct timespec *left);
extern int __real_sched_yield(void);
extern ssize_t __real_getrandom(void *buffer, size_t bytes, unsigned flags);
extern int __real_poll(struct pollfd *polled, nfds_t count, int milliseconds);
extern int __real_epoll_wait(int descriptor, struct epoll_event *events, int most, int milliseconds);

extern int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
extern int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
extern int __wrap_sched_yield(void);
extern ssize_t __wrap_getrandom(void *buffer, size_t bytes, unsigned flags);
extern int __wrap_poll(struct pollfd *polled, nfds_t count, int milliseconds);
extern int __wrap_epoll_wait(int descriptor, struct epoll_event *events, int most, int milliseconds);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	/* 0 is no time to those who keep one. */
	uint64_t now = scheduler_now() + NANOSECONDS_PER_SECOND;

	if (coroutine_current() == NULL)
		return __real_clock_gettime(clock, time);
	*time = (struct timespec){.tv_sec = (time_t) (now / NANOSECONDS_PER_SECOND),
	                          .tv_nsec = (long) (now % NANOSECONDS_PER_SECOND)};
	return 0;
}

int
__wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	if (coroutine_current() == NULL)
		return __real_nanosleep(time, left);
	coroutine_sleep((uint64_t) time->tv_sec * NANOSECONDS_PER_SECOND + (uint64_t) time->tv_nsec);
	return 0;
}

int
__wrap_sched_yield(void)
{
	if (coroutine_current() == NULL)
		return __real_sched_yield();
	coroutine_sleep(YIELD_NANOSECONDS);
	return 0;
}

ssize_t
__wrap_getrandom(void *buffer, size_t bytes, unsigned flags)
{
	uint8_t *place = buffer;

	if (coroutine_current() == NULL)
		return __real_getrandom(buffer, bytes, flags);
	for (size_t i = 0; i < bytes; i++)
		place[i] = (uint8_t) scheduler_random(256);
	return (ssize_t) bytes;
}

static void
wake_watchers(void)
{
	for (int i = 0; i < WATCHERS; i++)
		if (watchers[i] != NULL && !coroutine_has_ended(watchers[i]))
			coroutine_wake(watchers[i]);
}

/* A place among those who wait for descriptors; those of who has ended are free. */
static Coroutine **
watcher_place(void)
{
	int i = 0;

	while (i + 1 < WATCHERS && watchers[i] != NULL && !coroutine_has_ended(watchers[i]))
		i++;
	return &watchers[i];
}

typedef struct Look
{
	struct pollfd *polled; /* NULL: an epoll */
	nfds_t count;
	int descriptor;
	struct epoll_event *events;
	int most;
} Look;

static int
look_once(const Look *look)
{
	if (look->polled != NULL)
		return __real_poll(look->polled, look->count, 0);
	return __real_epoll_wait(look->descriptor, look->events, look->most, 0);
}

static int
watch(const Look *look, int milliseconds)
{
	uint64_t end =
		milliseconds < 0 ? SCHEDULER_NEVER : scheduler_now() + (uint64_t) milliseconds * NANOSECONDS_PER_MS;
	uint64_t step = FIRST_STEP_NANOSECONDS;
	int ready = look_once(look);
	Coroutine **place;

	if (ready != 0 || milliseconds == 0)
		return ready;
	wake_watchers();
	place = watcher_place();
	*place = coroutine_current();
	coroutine_occupy(true);
	while (ready == 0 && scheduler_now() < end)
	{
		uint64_t left = end - scheduler_now();

		if (coroutine_wait(left < step ? left : step))
			step = FIRST_STEP_NANOSECONDS;
		else if (step < LAST_STEP_NANOSECONDS)
			step *= 2;
		ready = look_once(look);
	}
	coroutine_occupy(false);
	*place = NULL;
	return ready;
}

int
__wrap_poll(struct pollfd *polled, nfds_t count, int milliseconds)
{
	Look look = {.polled = polled, .count = count};
	struct pollfd none;

	if (coroutine_current() == NULL)
		return __real_poll(polled, count, milliseconds);
	if (polled == NULL)
		look.polled = &none;
	return watch(&look, milliseconds);
}

int
__wrap_epoll_wait(int descriptor, struct epoll_event *events, int most, int milliseconds)
{
	Look look = {.descriptor = descriptor, .events = events, .most = most};

	if (coroutine_current() == NULL)
		return __real_epoll_wait(descriptor, events, most, milliseconds);
	return watch(&look, milliseconds);
}
