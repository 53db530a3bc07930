/*
 * conformance.h
 *		What the parts of the conformance suite share.
 */
#ifndef SHERMAN_CONFORMANCE_H
#define SHERMAN_CONFORMANCE_H

#include <string.h>

#include "support/testing.h"
#include "../sim/scheduler.h"
#include "../sim/simulator.h"
#include "support/fabric_process.h"

/* The suite's own memory node. */
#define NODE_BYTES (4u << 20)
#define MAX_CHANNELS 24u

/* Node memory that the suite takes: 16 units. */
#define AREA_BYTES (16u * FABRIC_UNIT_BYTES)

typedef struct Conformance
{
	FabricProcess process;    /* the memory node, if it is ours */
	bool own_process;         /* it is: it may be stopped and killed */
	bool network;             /* ours is used over tcp */
	bool keys;                /* ... with keys */
	bool faults;              /* all clients are under the fault layer */
	const char *key_file;     /* of the clients, or NULL */
	const char *serve;        /* directory: we are a memory node */
	const char *listen;       /* and serve network clients there */
	const char *verbs_device; /* ours is used over verbs, with keys or without */
	bool beside;              /* not over verbs, though it serves that */
	char address[256];        /* of the memory node */
	uint32_t workers;         /* connection workers in front of it */
	bool torn;                /* whose operations are torn */
	bool simulated;           /* memory node and clients are coroutines in virtual time */
	uint64_t seed;            /* of that */
	SimulatorOptions simulator;
	uint64_t area;         /* first byte of the suite's node memory */
	uint64_t next_cluster; /* every test is a compute instance of its own */
} Conformance;

extern Conformance suite;

/* A new cluster, attached; returns its incarnation. */
extern uint64_t new_cluster(uint32_t *incarnation);
/* A channel of such a cluster. */
extern TestChannel open_channel(void);

/* Do others use the channel, too? */
extern bool shares_channel(const TestChannel *channel);

/* Fills a stripe of the area with zeroes. */
extern void clear_stripe(TestChannel *channel, uint32_t stripe);

/* Is the suite's memory node used over verbs? */
static inline bool
suite_verbs(void)
{
	return strncmp(suite.address, "verbs:", 6) == 0;
}

/*
 * So many rounds of a loop of chains: fewer where a chain is a message, or one of the fault layer's that is
 * many below.
 */
static inline uint32_t
chain_rounds(uint32_t rounds)
{
	if (strncmp(suite.address, "shm:", 4) != 0 || suite.verbs_device != NULL)
		rounds /= 100;
	/* Verbs are tested in an emulated machine. */
	if (suite.verbs_device != NULL || suite_verbs())
		rounds /= 4;
	return suite.faults ? rounds / 20 : rounds;
}

static inline uint64_t
stripe_offset(uint32_t stripe)
{
	return suite.area + (uint64_t) stripe * FABRIC_STRIPE_BYTES;
}

/* conformance_sim.c */
/* Runs main() in a simulation; it returns the program's status. */
extern int simulate(int (*main_body)(void));
/* The suite's memory node, as a coroutine; and its end. */
extern void simulated_node_start(void);
extern void simulated_node_stop(void);
/* As run_processes(). */
extern void run_coroutines(int count, void (*work)(void *argument, int number), void *argument);

/* conformance_chains.c */
/* Starts `count` processes (up to 16) that run work(argument, own number) at the same time; all must end well. */
extern void run_processes(int count, void (*work)(void *argument, int number), void *argument);
extern void test_order_in_a_chain(void **state);
extern void test_order_between_processes(void **state);
extern void test_not_conditional(void **state);
extern void test_forbidden_chains(void **state);
extern void test_range(void **state);
extern void test_operation_atomicity(void **state);
extern void test_counting(void **state);
extern void test_lock_and_read(void **state);
extern void test_counters(void **state);
extern void test_tickets(void **state);

/* conformance_death.c */
extern void test_doubt_and_reset(void **state);
extern void test_successor(void **state);
extern void test_late_delivery(void **state);
extern void test_attach(void **state);
extern void test_attach_frees_locks(void **state);
extern void test_fence_stopped_client(void **state);
extern void test_death_inside_write(void **state);
extern void test_random_death(void **state);
extern void test_deadline(void **state);
extern void test_memory_node_restart(void **state);

/* conformance_readers.c */
extern void test_readers_refused(void **state);
extern void test_reader_reads(void **state);
extern void test_reader_calls(void **state);
extern void test_attach_ends_readers(void **state);
extern void test_reader_succeeds(void **state);

#endif /* SHERMAN_CONFORMANCE_H */
