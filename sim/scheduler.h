/*
 * scheduler.h
 *		Virtual time: coroutines and events in one thread, the same run for the same seed.
 *
 *		scheduler_open(seed); coroutine_start(body, argument, false); scheduler_run(limit); scheduler_close();
 *
 * Time passes from event to event only: what a coroutine does between two waits takes none.  Nothing here
 * looks at a real clock or at addresses.  There is one simulation at a time in a process, so functions take
 * no handle.
 */
#ifndef SHERMAN_SCHEDULER_H
#define SHERMAN_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#define NANOSECONDS_PER_US ((uint64_t) 1000)
#define NANOSECONDS_PER_MS ((uint64_t) 1000000)

/* In place of a time: never. */
#define SCHEDULER_NEVER UINT64_MAX

typedef struct Coroutine Coroutine;
typedef void (*CoroutineBody)(void *argument);
/* What an event does. It may start, wake and end coroutines, and never waits. */
typedef void (*SchedulerEvent)(void *argument, uint64_t number);
/* Shortly before an event happens: fetches what it will touch (fetch.h), and changes nothing. */
typedef void (*SchedulerFetch)(const void *argument);

/* Whether it works in this build: the thread sanitizer does not follow it. */
extern bool scheduler_is_here(void);

/* Begins a simulation at time 0. All that is random in it follows from the seed. Aborts without memory. */
extern void scheduler_open(uint64_t seed);
/* Ends it, with all coroutines that are left, which must not be the caller. */
extern void scheduler_close(void);

/*
 * Runs until all coroutines have ended but those that serve.  False: they did not by `limit` (nanoseconds of
 * virtual time), or nothing is left that could happen and they still wait.
 */
extern bool scheduler_run(uint64_t limit);
/* It returns true as soon as the caller waits, and goes on where it was at the next call. */
extern void scheduler_leave(void);

/* Nanoseconds of virtual time. */
extern uint64_t scheduler_now(void);
/* A random number below `below`, which is not 0. */
extern uint64_t scheduler_random(uint64_t below);
/*
 * Something happens `delay` nanoseconds from now. What is due at one time happens in the order of these
 * calls.
 */
extern void scheduler_after(uint64_t delay, SchedulerEvent event, void *argument, uint64_t number);

/*
 * Who says what happens besides events: asked whenever no event is due now and no coroutine is occupied.
 * False: it has done nothing, and time passes.  NULL: nobody.  Until scheduler_close().
 */
extern void scheduler_direct(bool (*director)(void));

/* The same; what it will touch is fetched. The argument is a client or the like, which lies behind it. */
extern void scheduler_after_fetch(uint64_t delay, SchedulerEvent event, SchedulerFetch fetch, void *argument,
                                  uint64_t number);

/* Takes something that happened into the run's fingerprint, which two runs of a seed have in common. */
extern void scheduler_note(uint64_t what);
extern uint64_t scheduler_fingerprint(void);

/*
 * A new coroutine, which begins when its event is due, now.  It lasts until scheduler_close(), although it
 * ends when its body returns.  One that `serves` is not waited for by scheduler_run().
 */
extern Coroutine *coroutine_start(CoroutineBody body, void *argument, bool serves);
/* The one that runs; NULL: an event, or nothing is simulated. */
extern Coroutine *coroutine_current(void);
/* Ends one that has not ended yet, wherever it waits; not the caller. Nothing that it has is released. */
extern void coroutine_end(Coroutine *coroutine);
extern bool coroutine_has_ended(const Coroutine *coroutine);

/*
 * While one is occupied that does not serve, time passes, and nobody is asked what happens. coroutine_sleep()
 * occupies.
 */
extern void coroutine_occupy(bool occupied);
/* How often one has become so. */
extern uint64_t scheduler_occupations(void);
/* What is random for the caller is so by its own count from now on, whatever others do in between. */
extern void coroutine_random(uint64_t seed);

/* The caller lets so much time pass. */
extern void coroutine_sleep(uint64_t nanoseconds);
/*
 * The caller waits to be woken, for so long at most.  True: it was, perhaps before it came here; false: the
 * time is over.
 */
extern bool coroutine_wait(uint64_t nanoseconds);
/* The caller waits for coroutine_resume(), and for no wake-up. */
extern void coroutine_suspend(void);
/* By an event, which has nothing else to do: one that is suspended goes on, now. */
extern void coroutine_resume(Coroutine *coroutine);
/* Where it will go on is fetched. */
extern void coroutine_fetch(const Coroutine *coroutine);
/* One that has ended is not disturbed. */
extern void coroutine_wake(Coroutine *coroutine);

#endif /* SHERMAN_SCHEDULER_H */
