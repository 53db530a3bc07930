/*
 * test_scheduler.c
 *		Virtual time: order of events, coroutines that sleep, wait, wake and are ended, and runs that repeat.
 */
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "support/testing.h"
#include "../sim/scheduler.h"

#define SECOND (1000 * NANOSECONDS_PER_MS)

/* What happened, in order. */
static uint64_t happened[4096];
static int happened_count;

static void
happen(void *argument, uint64_t number)
{
	happened[happened_count++] = number;
}

static void
sleep_once(void *argument)
{
	coroutine_sleep(*(const uint64_t *) argument);
}

static void
test_events_in_order(void **state)
{
	uint64_t time = SECOND;

	happened_count = 0;
	scheduler_open(1);
	for (uint64_t i = 0; i < 2000; i++)
		scheduler_after(1 + (i * 7919) % 2000 / 2, happen, NULL, (i * 7919) % 2000 / 2 << 32 | i);
	coroutine_start(sleep_once, &time, false);
	assert_true(scheduler_run(10 * SECOND));
	assert_true(scheduler_now() == SECOND);
	assert_int_equal(happened_count, 2000);
	/* By time; and those of one time in the order in which they were asked for. */
	for (int i = 1; i < happened_count; i++)
		assert_true(happened[i - 1] < happened[i]);
	scheduler_close();
}

#define CHAINS 300
#define CHAIN_EVENTS 40

static uint64_t chain_time;
static uint64_t chain_events;

/* One of many chains of events: each asks for the next one, after anything from nothing to far more than the wheel has. */
static void
chain_on(void *argument, uint64_t due)
{
	uint64_t *left = argument;
	uint64_t delay =
		scheduler_random(4) == 0 ? scheduler_random(3) : scheduler_random(1ull << scheduler_random(22));

	assert_true(scheduler_now() == due);
	assert_true(chain_time <= due);
	chain_time = due;
	chain_events++;
	if (--*left > 0)
		scheduler_after(delay, chain_on, left, due + delay);
}

static void
test_events_near_and_far(void **state)
{
	static uint64_t left[CHAINS];
	uint64_t time = SECOND;

	scheduler_open(2);
	chain_time = chain_events = 0;
	for (int i = 0; i < CHAINS; i++)
	{
		left[i] = CHAIN_EVENTS;
		scheduler_after((uint64_t) i * 500, chain_on, &left[i], (uint64_t) i * 500);
	}
	coroutine_start(sleep_once, &time, false);
	assert_true(scheduler_run(10 * SECOND));
	assert_true(chain_events == CHAINS * CHAIN_EVENTS);
	scheduler_close();
}

typedef struct Pair
{
	Coroutine *waiter;
	uint64_t woken_at;
	bool woken;
	bool timed_out;
} Pair;

static void
wait_body(void *argument)
{
	Pair *pair = argument;

	pair->woken = coroutine_wait(SECOND);
	pair->woken_at = scheduler_now();
	pair->timed_out = !coroutine_wait(SECOND);
}

static void
wake_body(void *argument)
{
	coroutine_sleep(300);
	coroutine_wake(((Pair *) argument)->waiter);
}

static void
test_wait_and_wake(void **state)
{
	Pair pair = {0};

	scheduler_open(1);
	pair.waiter = coroutine_start(wait_body, &pair, false);
	coroutine_start(wake_body, &pair, false);
	assert_true(scheduler_run(10 * SECOND));
	assert_true(pair.woken && pair.woken_at == 300 && pair.timed_out);
	assert_true(scheduler_now() == 300 + SECOND);
	/* One that has ended is not disturbed. */
	coroutine_wake(pair.waiter);
	scheduler_close();
}

static void
wake_early_body(void *argument)
{
	coroutine_wake(((Pair *) argument)->waiter);
}

static void
late_wait_body(void *argument)
{
	Pair *pair = argument;

	coroutine_sleep(1000);
	pair->woken = coroutine_wait(SECOND);
	pair->woken_at = scheduler_now();
}

/* A wake-up that comes before the wait is not lost, and cuts no sleep short. */
static void
test_wake_before_wait(void **state)
{
	Pair pair = {0};

	scheduler_open(1);
	pair.waiter = coroutine_start(late_wait_body, &pair, false);
	coroutine_start(wake_early_body, &pair, false);
	assert_true(scheduler_run(10 * SECOND));
	assert_true(pair.woken && pair.woken_at == 1000);
	scheduler_close();
}

static void
count_body(void *argument)
{
	volatile uint64_t counted[64] = {0};

	for (;;)
	{
		coroutine_sleep(10);
		counted[scheduler_now() % 64]++;
		++*(uint64_t *) argument;
	}
}

typedef struct Killer
{
	Coroutine *victim;
	uint64_t count;
	uint64_t at_end;
} Killer;

static void
killer_body(void *argument)
{
	Killer *killer = argument;

	coroutine_sleep(1005);
	coroutine_end(killer->victim);
	killer->at_end = killer->count;
	coroutine_sleep(1000);
}

static void
test_end_of_a_coroutine(void **state)
{
	Killer killer = {0};

	scheduler_open(1);
	killer.victim = coroutine_start(count_body, &killer.count, false);
	assert_false(coroutine_has_ended(killer.victim));
	coroutine_start(killer_body, &killer, false);
	assert_true(scheduler_run(10 * SECOND));
	assert_true(coroutine_has_ended(killer.victim));
	assert_true(killer.at_end == 100 && killer.count == 100);
	scheduler_close();
}

static void
wait_for_ever(void *argument)
{
	coroutine_wait(SCHEDULER_NEVER);
}

static void
test_runs_that_do_not_end(void **state)
{
	uint64_t counted = 0;

	/* Nothing can happen any more. */
	scheduler_open(1);
	coroutine_start(wait_for_ever, NULL, false);
	assert_false(scheduler_run(SECOND));
	scheduler_close();
	/* One that serves is not waited for. */
	scheduler_open(1);
	coroutine_start(wait_for_ever, NULL, true);
	assert_true(scheduler_run(SECOND));
	scheduler_close();
	/* The time is over. */
	scheduler_open(1);
	coroutine_start(count_body, &counted, false);
	assert_false(scheduler_run(10000));
	assert_true(counted == 1000);
	scheduler_close();
}

static void
random_body(void *argument)
{
	uint64_t number = *(const uint64_t *) argument;

	for (int i = 0; i < 200; i++)
	{
		coroutine_sleep(1 + scheduler_random(1000));
		scheduler_note(number << 32 ^ scheduler_now());
	}
}

static uint64_t
random_run(uint64_t seed)
{
	static const uint64_t numbers[] = {1, 2, 3, 4, 5};
	uint64_t fingerprint;

	scheduler_open(seed);
	for (int i = 0; i < 5; i++)
		coroutine_start(random_body, (void *) &numbers[i], false);
	assert_true(scheduler_run(SECOND));
	fingerprint = scheduler_fingerprint();
	scheduler_close();
	return fingerprint;
}

static void
test_same_seed_same_run(void **state)
{
	for (uint64_t seed = 1; seed < 20; seed++)
	{
		assert_true(random_run(seed) == random_run(seed));
		assert_true(random_run(seed) != random_run(seed + 1));
	}
}

typedef struct Times
{
	int pipe[2];
	uint64_t slept;
	uint64_t polled;
	uint64_t written;
	int ready_before;
	int ready_after;
	uint64_t random;
} Times;

static uint64_t
clock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * SECOND + (uint64_t) now.tv_nsec;
}

static void
system_body(void *argument)
{
	Times *times = argument;
	struct pollfd polled = {.fd = times->pipe[0], .events = POLLIN};
	uint64_t begin = clock_now();

	nanosleep(&(struct timespec){.tv_sec = 3}, NULL);
	sched_yield();
	times->slept = clock_now() - begin;
	begin = clock_now();
	times->ready_before = poll(&polled, 1, 1000);
	times->polled = clock_now() - begin;
	times->ready_after = poll(&polled, 1, -1);
	(void) !getrandom(&times->random, sizeof(times->random), 0);
}

static void
write_body(void *argument)
{
	Times *times = argument;

	coroutine_sleep(100 * SECOND);
	(void) !write(times->pipe[1], "", 1);
	times->written = scheduler_now();
}

/* Who sleeps and waits by the system's functions does so in virtual time; an hour is nothing. */
static void
test_system_in_virtual_time(void **state)
{
	uint64_t random = 0;

	for (int i = 0; i < 2; i++)
	{
		Times times = {0};

		assert_int_equal(pipe(times.pipe), 0);
		scheduler_open(7);
		coroutine_start(system_body, &times, false);
		coroutine_start(write_body, &times, false);
		assert_true(scheduler_run(1000 * SECOND));
		assert_true(times.slept >= 3 * SECOND && times.slept < 4 * SECOND);
		assert_true(times.ready_before == 0 && times.polled == SECOND);
		assert_int_equal(times.ready_after, 1);
		assert_true(scheduler_now() >= times.written && scheduler_now() < times.written + SECOND);
		assert_true(i == 0 || times.random == random);
		random = times.random;
		scheduler_close();
		close(times.pipe[0]);
		close(times.pipe[1]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_in_order),    cmocka_unit_test(test_events_near_and_far),
		cmocka_unit_test(test_wait_and_wake),      cmocka_unit_test(test_wake_before_wait),
		cmocka_unit_test(test_end_of_a_coroutine), cmocka_unit_test(test_runs_that_do_not_end),
		cmocka_unit_test(test_same_seed_same_run), cmocka_unit_test(test_system_in_virtual_time),
	};

	return scheduler_is_here() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
