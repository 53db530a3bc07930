/*
 * explorer.h
 *		All orders of a small simulation's steps, one run after the other (doc/internals/simulator.md).
 *
 *		explorer_open(&options); while (explorer_begin()) { scheduler_open(seed); ... coroutines;
 *		explorer_switch(true) where the choice begins, explorer_switch(false) where it ends
 *		scheduler_run(limit); scheduler_close(); explorer_end(); } explorer_close();
 *
 * A step is what one *actor* does between two choices: an operation (or packet) of a queue takes effect, a
 * completion arrives and its client goes on until it waits.  Each tells what it has accessed.  Two runs
 * differ only if they order two accesses that conflict otherwise: of all orders that are the same in this,
 * one is run, as a rule (source sets and sleep sets: Abdulla, Aronis, Jonsson, Sagonas, POPL 2014).
 *
 * There is one exploration at a time in a process.  While none is open, everything here does nothing.
 */
#ifndef SHERMAN_EXPLORER_H
#define SHERMAN_EXPLORER_H

#include "scheduler.h"

/* Actors of a client: itself, and two for each of its queues. */
#define EXPLORER_ACTORS 64u
#define EXPLORER_CLIENTS 8u
/* In place of a step. */
#define EXPLORER_NO_STEP UINT32_MAX

typedef enum ExplorerMode
{
	EXPLORER_READ,
	EXPLORER_WRITE,
	EXPLORER_ADD /* commutes with its like, not with a READ */
} ExplorerMode;

/* Spaces that are no region of a memory node. */
typedef enum ExplorerSpace
{
	EXPLORER_GROUP,   /* what clients of a group share and no step tells of, by number of the group */
	EXPLORER_QUEUE,   /* whether a queue goes on, by actor */
	EXPLORER_HISTORY, /* the moments of calls (READ) and ends (ADD), by entry */
	EXPLORER_WAKE,    /* what lets a client that pauses or sleeps go on, by client */
	EXPLORER_SHARED,  /* memory that clients share and tell of, by address (accesses.h) */
	EXPLORER_REGIONS = 16
} ExplorerSpace;

typedef struct ExplorerOptions
{
	uint64_t most_runs;    /* ends there, although there may be more; 0 = all */
	uint64_t random_runs;  /* where it does, so many follow whose choices are drawn */
	bool random_always;    /* ... and behind all that there are, too */
	uint64_t most_steps;   /* that no run has */
	void (*endless)(void); /* told of a run that has more all the same; it does not return */
	const char *schedule;  /* one run, this one (explorer_schedule()); NULL: all */
	void (*trace)(uint32_t actor, uint32_t options); /* told of each step; NULL: nobody is */
} ExplorerOptions;

typedef struct ExplorerCounts
{
	uint64_t runs;      /* of an order each */
	uint64_t redundant; /* that came to an order which had been run already */
	uint64_t random;    /* whose choices were drawn */
	uint64_t steps;     /* of the longest run */
	bool complete;      /* nothing is left */
} ExplorerCounts;

/* Aborts without memory. */
extern void explorer_open(const ExplorerOptions *options);
extern void explorer_close(void);
/* Prepares the next run. False: there is none. */
extern bool explorer_begin(void);
/* The run is over. */
extern void explorer_end(void);
extern void explorer_counts(ExplorerCounts *counts);
/* The choices of the run so far, for ExplorerOptions.schedule; valid until the next call. */
extern const char *explorer_schedule(void);

/* From now on steps are chosen; or not any more: those that are left happen in the order of their offers. */
extern void explorer_switch(bool on);
extern bool explorer_is_on(void);

/*
 * The calling coroutine is client `number`, one of `group`: those of one group have memory in common that
 * nobody tells of, and whatever one of them does conflicts with what others of it do.
 */
extern void explorer_join(uint32_t number, uint32_t group);
/* The client whose code runs; EXPLORER_CLIENTS: none. */
extern uint32_t explorer_client(void);
/* The first of two actors for a new queue of the client whose code runs. */
extern uint32_t explorer_new_actor(void);

/*
 * A step of the actor, which has no other one now. It happens behind the present one, and behind the step
 * `cause`.
 */
extern void explorer_offer(uint32_t actor, SchedulerEvent event, void *argument, uint64_t number,
                           uint32_t cause);
/* The present step. */
extern uint32_t explorer_step(void);

/* What the present step does to [from, to) of a space. */
extern void explorer_access(uint64_t space, uint64_t from, uint64_t to, ExplorerMode mode);
/* The present step conflicts with all others. */
extern void explorer_access_all(void);
/* The present step runs code of the client. */
extern void explorer_access_client(uint32_t client);

/* The calling client's next step may be any time later. */
extern void explorer_yield(void);
/*
 * The calling client has found nothing that lets it go on: it waits until somebody changes what its
 * operations have accessed since it last came here, or wakes it, or another one of its group has done
 * something (once: who has looked in vain is not asked again for that); or nobody can do anything else.
 */
extern void explorer_pause(void);
/* Likewise until explorer_wake(), or nobody can do anything else. */
extern void explorer_sleep(void);
extern void explorer_wake(uint32_t client);

#endif /* SHERMAN_EXPLORER_H */
