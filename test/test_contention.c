/*
 * test_contention.c
 *		Clients that all insert into one leaf, without a local lock table between them, in the simulator: how many swaps of its lock word
 *		are lost for one that is won, with each kind of back-off.  The same run for the same seed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/require.h"
#include "support/sim_work.h"

#define EXIT_SKIP 77
#define CLIENTS (SIM_SLOTS - 1)
#define OPERATIONS 300u
#define ENTRIES 20u
/* Far more than any of it takes. */
#define TIME_LIMIT (600 * 1000 * NANOSECONDS_PER_MS)

typedef struct Outcome
{
	uint64_t won;
	uint64_t lost;
	uint64_t nanoseconds;
} Outcome;

static SimRun run;
static Outcome outcome;

static void
clean(void)
{
	sim_cluster_clean(&run.cluster);
}

static void
again(const SimRun *failed)
{
	fprintf(stderr, "run it again: test_contention, seed %" PRIu64 "\n", failed->plan.seed);
}

/* Inserts what is there already, which rewrites the leaf. */
static void
insert_often(void *argument)
{
	SimWorker *worker = argument;
	TreeCounters counters;

	sim_worker_open(worker, &run, worker->slot);
	for (uint32_t i = 0; i < OPERATIONS; i++)
		sim_insert(worker, (uint32_t) scheduler_random(ENTRIES));
	tree_client_counters(worker->client.tree, &counters);
	outcome.won += counters.lock_acquisitions;
	outcome.lost += counters.lock_retries;
	worker->done = true;
}

static void
direct(void *argument)
{
	SimWorker workers[CLIENTS];
	uint64_t began;
	bool through = false;

	sim_techniques = &run.plan.techniques.chosen;
	baseline = run.plan.techniques.left_out;
	sim_cluster_start(&run.cluster, 1, 1, false);
	sim_make_tree(&run);
	began = scheduler_now();
	for (uint32_t i = 0; i < CLIENTS; i++)
	{
		workers[i] = (SimWorker){.run = &run, .slot = i};
		workers[i].coroutine = coroutine_start(insert_often, &workers[i], false);
	}
	while (!through)
	{
		coroutine_sleep(NANOSECONDS_PER_US);
		through = true;
		for (uint32_t i = 0; i < CLIENTS; i++)
			through = through && workers[i].done;
	}
	outcome.nanoseconds = scheduler_now() - began;
	for (uint32_t i = 0; i < CLIENTS; i++)
		sim_worker_close(&workers[i]);
	sim_cluster_stop(&run.cluster);
}

static Outcome
contend(const char *name, const Baseline *left_out)
{
	SimPlan plan = {.seed = 1,
	                .space = KEYSPACE_16,
	                .nodes = 1,
	                .domains = 1,
	                .clients = CLIENTS,
	                .entries = ENTRIES,
	                .numbers = ENTRIES,
	                .prefill = ENTRIES,
	                .techniques = {.chosen = tree_techniques, .left_out = *left_out},
	                .simulator = {.packet_bytes = 1024}};

	outcome = (Outcome){0};
	run.again = again;
	scheduler_open(plan.seed);
	simulator_open(&plan.simulator);
	sim_run_plan(&run, &plan);
	coroutine_start(direct, NULL, false);
	REQUIRE(scheduler_run(TIME_LIMIT), "it does not end");
	REQUIRE(sim_history_judge(&run), "the history is not linearizable");
	simulator_close();
	scheduler_close();
	sim_run_free(&run);
	printf("%-22s %5" PRIu64 " swaps won, %6" PRIu64 " lost, %5.2f for each won, %7.2f us an insert\n", name,
	       outcome.won, outcome.lost, (double) outcome.lost / (double) outcome.won,
	       (double) outcome.nanoseconds / (OPERATIONS * CLIENTS) / NANOSECONDS_PER_US);
	return outcome;
}

int
main(void)
{
	Baseline left_out = {0};
	Outcome at_once, doubling, adaptive, queued;

	if (!scheduler_is_here())
		return EXIT_SKIP;
	atexit(clean);
	queued = contend("hierarchy", &left_out);
	left_out.flat_locks = true;
	left_out.back_off = BASELINE_BACK_OFF_NONE;
	at_once = contend("at once", &left_out);
	left_out.back_off = BASELINE_BACK_OFF_SLEEP;
	doubling = contend("back_off sleeps", &left_out);
	left_out.back_off = BASELINE_BACK_OFF_ADAPTIVE;
	adaptive = contend("back_off, adaptive", &left_out);
	REQUIRE(queued.lost == 0, "swaps were lost in the hierarchy");
	REQUIRE(at_once.lost > 5 * at_once.won, "at once: too few swaps were lost for this to show anything");
	REQUIRE(doubling.lost < 2 * doubling.won, "back_off: too many swaps were lost");
	REQUIRE(adaptive.lost < 2 * adaptive.won, "adaptive: too many swaps were lost");
	return 0;
}
