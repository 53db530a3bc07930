/*
 * sim_torture.c
 *		The tree in the simulator: a few clients on a few entries, everything that the fabric leaves open
 *		drawn at random, and a history that must be linearizable.
 *
 *		sim_torture [--seed N] [--runs N] [--seconds N] [--verbose] [--trace]
 *
 * Runs N seeds from the first one on, or as many as are begun within so many seconds.  Everything about a run
 * follows from its seed: what fails is repeated by --seed.  The first run is done twice, and both must be the
 * same to the bit.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/require.h"
#include "support/sim_work.h"
#include "support/unique_keys.h"

#define EXIT_SKIP 77
/* If nothing else is asked for. */
#define RUNS (200 / TEST_SLOWNESS)
/* In so many runs at least one leaf with entries is merged: of a hundred two or three do so with small nodes. */
#define FOLDS_EXPECTED (64 * LEAF_CELLS_TARGET)
/* In the slots behind the clients'. */
#define READERS_MOST 2u
#define CLIENTS_MOST 5u
/* Virtual time that no run needs. */
#define TIME_LIMIT (600 * 1000 * NANOSECONDS_PER_MS)
/* About what an operation takes, for the moment of a crash. */
#define OPERATION_NANOSECONDS 60000u
/* Looks whether the clients are through, in growing steps. */
#define FIRST_LOOK_NANOSECONDS (10 * NANOSECONDS_PER_US)
#define LAST_LOOK_NANOSECONDS NANOSECONDS_PER_MS
/* How long a memory node may take to close when nobody holds a lock. */
#define STOP_NANOSECONDS (50 * NANOSECONDS_PER_MS)
/* Partitions. */
#define SHORT_CUT_NANOSECONDS (2 * NANOSECONDS_PER_MS)
#define LONG_CUT_NANOSECONDS (30 * 1000 * NANOSECONDS_PER_MS)
/* Packets: leaves are of one, or of some as inner nodes are. */
#define LONG_PACKET_BYTES 1024u
#define SHORT_PACKET_BYTES 256u

static SimRun run;
static void (*tracing)(uint64_t node, uint32_t channel, const FabricOp *op, uint32_t from, uint32_t bytes);

/* The program ends in the middle of a run: its files must not stay. */
static void
clean(void)
{
	sim_cluster_clean(&run.cluster);
}

static void
aborted(int signal_number)
{
	char text[64];
	int length =
		snprintf(text, sizeof(text), "run it again: sim_torture --seed %" PRIu64 "\n", run.plan.seed);

	(void) !write(STDERR_FILENO, text, (size_t) length);
	clean();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void
again(const SimRun *failed)
{
	fprintf(stderr, "sim_torture --seed %" PRIu64 "\n", failed->plan.seed);
}

/* Prints what took effect. */
static void
trace(uint64_t node, uint32_t channel, const FabricOp *op, uint32_t from, uint32_t bytes)
{
	static const char *const names[] = {"READ", "WRITE", "COMPARE_SWAP", "FETCH_ADD"};

	printf("%12" PRIu64 " ns node %04x channel %u %s %s %" PRIx64 " + %u, %u bytes", scheduler_now(),
	       (unsigned) (node & 0xffff), channel, names[op->opcode],
	       op->region == FABRIC_LOCKS ? "locks" : "nodes", op->offset, from, bytes);
	if (op->opcode == FABRIC_COMPARE_SWAP)
		printf(" %" PRIx64 " -> %" PRIx64 ": %" PRIx64, op->compare, op->operand, op->result);
	else if (op->opcode == FABRIC_WRITE)
		printf(" %" PRIx64 " ...", ((const uint64_t *) op->buffer)[from / 8]);
	printf("\n");
}

/*
 * Every second run leaves techniques out; half of the others keep leaves, if the instance is alone, and half let the
 * memory node descend.
 */
static Techniques
draw_techniques(const SimPlan *plan)
{
	Techniques techniques = techniques_draw(plan->seed, plan->domains == 1);

	if (plan->seed % 2 != 0)
	{
		techniques = (Techniques){.chosen = tree_techniques};
		techniques.chosen.exclusive = plan->domains == 1 && plan->seed % 4 == 1;
		techniques.chosen.offload = plan->seed % 8 > 4 ? TREE_OFFLOAD_ALWAYS : TREE_OFFLOAD_NEVER;
		return techniques;
	}
	/* Who waits awake for what a cut has stopped would do so for seconds, a microsecond at a time. */
	if ((plan->cuts > 0 || plan->restarts > 0) && techniques.left_out.back_off == BASELINE_BACK_OFF_NONE)
		techniques.left_out.back_off = BASELINE_BACK_OFF_ADAPTIVE;
	return techniques;
}

/* Draws what a run is about. */
static SimPlan
draw_plan(uint64_t seed)
{
	SimPlan plan = {.seed = seed, .simulator = {.adversarial = true, .trace = tracing}};

	plan.space = (KeySpaceKind) scheduler_random(KEYSPACES);
	plan.nodes = scheduler_random(4) == 0 ? 2 : 1;
	plan.domains = scheduler_random(2) == 0 ? 2 : 1;
	plan.clients = 2 + (uint32_t) scheduler_random(CLIENTS_MOST - 1);
	plan.entries = 8 + (uint32_t) scheduler_random(scheduler_random(2) == 0 ? 24 : 200);
	plan.numbers = 1 + (uint32_t) scheduler_random(scheduler_random(3) == 0 ? 3 : 2 * plan.entries);
	plan.prefill = (uint32_t) scheduler_random(plan.entries);
	plan.hot = 1 + (uint32_t) scheduler_random(plan.entries);
	plan.operations = 10 + (uint32_t) scheduler_random(40);
	plan.crashes = scheduler_random(3) == 0 ? 1 + (uint32_t) scheduler_random(2) : 0;
	plan.restarts = plan.crashes == 0 && scheduler_random(6) == 0 ? 1 : 0;
	plan.cuts = scheduler_random(4) == 0 ? 1 + (uint32_t) scheduler_random(4) : 0;
	plan.merge = plan.domains == 1 && scheduler_random(3) == 0;
	plan.doubts = plan.merge && scheduler_random(3) == 0;
	plan.unique = plan.domains == 1 && scheduler_random(2) == 0;
	plan.marks = !plan.unique && scheduler_random(2) == 0;
	plan.stop = scheduler_random(4) == 0;
	plan.simulator.stops = plan.stop;
	plan.simulator.packet_bytes = scheduler_random(2) == 0 ? LONG_PACKET_BYTES : SHORT_PACKET_BYTES;
	plan.simulator.operation_atomic = scheduler_random(4) == 0;
	plan.simulator.tear_words = !plan.simulator.operation_atomic && scheduler_random(6) == 0;
	plan.simulator.lose_one_in = scheduler_random(3) == 0 ? 10 + (uint32_t) scheduler_random(40) : 0;
	/* A reader cannot mend a sum, nor wait for the lock of one that is cut off in the middle of a WRITE: standbys have whole READs. */
	if (!plan.simulator.tear_words && (plan.cuts == 0 || plan.simulator.operation_atomic) &&
	    scheduler_random(5) < 2)
		plan.readers = 1 + (uint32_t) scheduler_random(READERS_MOST);
	plan.reader_stops = plan.readers > 0 && scheduler_random(4) == 0;
	plan.techniques = draw_techniques(&plan);
	return plan;
}

/* ---- the director ---- */

static bool
all_are(const SimWorker *workers, bool done)
{
	for (uint32_t i = 0; i < run.plan.clients; i++)
		if (!(done ? workers[i].done : workers[i].ready))
			return false;
	return true;
}

static void
await_all(const SimWorker *workers, bool done)
{
	uint64_t step = FIRST_LOOK_NANOSECONDS;

	for (; !all_are(workers, done); step = step < LAST_LOOK_NANOSECONDS ? 2 * step : step)
		coroutine_sleep(step);
}

static void
close_workers(SimWorker *workers)
{
	for (uint32_t i = 0; i < run.plan.clients; i++)
		sim_worker_close(&workers[i]);
}

/* Clients of an instance that has ended, whose connections have not; the next incarnation lives already. */
static SimWorker graves[SIM_SLOTS];
static uint32_t grave_count;

static void
bury(void)
{
	while (grave_count > 0)
		sim_worker_close(&graves[--grave_count]);
}

static void
sleep_for_some_operations(void)
{
	coroutine_sleep(scheduler_random(run.plan.operations * OPERATION_NANOSECONDS));
}

/*
 * Every client of the instance ends where it is; the next incarnation is granted before or behind the end of
 * their connections.
 */
static void
crash(SimWorker *workers)
{
	sleep_for_some_operations();
	for (uint32_t i = 0; i < run.plan.clients; i++)
		coroutine_end(workers[i].coroutine);
	coroutine_sleep(scheduler_random(OPERATION_NANOSECONDS));
	for (uint32_t i = 0; i < run.plan.clients; i++)
	{
		run.cluster.clients[workers[i].slot] = NULL;
		graves[grave_count] = workers[i];
		/* One that was through is not closed in order: its instance has ended. */
		graves[grave_count++].done = false;
	}
	if (scheduler_random(2) == 0)
		bury();
	sim_cluster_attach(&run.cluster);
	sim_history_cut(&run);
}

/* A memory node ends, in order or not, and is started again over its memory. */
static void
restart_node(void)
{
	WorldNode *node = &run.cluster.nodes[scheduler_random(run.plan.nodes)];

	sleep_for_some_operations();
	if (scheduler_random(2) == 0)
		world_node_stop(node);
	else
		sim_node_kill(node);
	coroutine_sleep(scheduler_random(5 * NANOSECONDS_PER_MS));
	world_node_start(node);
}

/* Some of the clients lose sight of a memory node for a while, shorter or longer than they have patience. */
static void
cut(void *argument)
{
	for (uint32_t i = 0; i < run.plan.cuts; i++)
	{
		uint32_t ways = 1 + (uint32_t) scheduler_random(3);

		sleep_for_some_operations();
		simulator_cut(
			scheduler_random(scheduler_random(3) == 0 ? LONG_CUT_NANOSECONDS : SHORT_CUT_NANOSECONDS),
			(ways & 1) != 0, (ways & 2) != 0);
	}
}

static void
mend(Coroutine *cutter)
{
	coroutine_end(cutter);
	simulator_mend();
}

static void
live(SimWorker *workers, bool crashes)
{
	Coroutine *cutter;

	for (uint32_t i = 0; i < run.plan.clients; i++)
	{
		workers[i] = (SimWorker){.run = &run, .slot = i};
		workers[i].coroutine = coroutine_start(sim_worker_body, &workers[i], false);
	}
	await_all(workers, false);
	bury();
	cutter = coroutine_start(cut, NULL, true);
	if (crashes)
	{
		crash(workers);
		mend(cutter);
		return;
	}
	if (run.plan.restarts > 0)
		restart_node();
	await_all(workers, true);
	mend(cutter);
	close_workers(workers);
}

/* ---- readers ---- */

/* They live as long as the run; the first one may stop in the middle of whatever it does, and not go away. */
static SimWorker readers[READERS_MOST];

static void
stop_reader(void *argument)
{
	sleep_for_some_operations();
	if (!run.over)
		coroutine_end(readers[0].coroutine);
}

static void
start_readers(void)
{
	for (uint32_t i = 0; i < run.plan.readers; i++)
	{
		readers[i] = (SimWorker){.run = &run, .slot = CLIENTS_MOST + i};
		readers[i].coroutine = coroutine_start(sim_reader_body, &readers[i], false);
	}
	while (run.plan.readers > 0 && !readers[run.plan.readers - 1].ready)
		coroutine_sleep(FIRST_LOOK_NANOSECONDS);
	if (run.plan.reader_stops)
		coroutine_start(stop_reader, NULL, true);
}

/* Those that have not stopped look at all that is there. */
static void
end_readers(void)
{
	if (run.plan.reader_stops && !coroutine_has_ended(readers[0].coroutine))
		coroutine_end(readers[0].coroutine);
	run.over = true;
	for (uint32_t i = run.plan.reader_stops ? 1 : 0; i < run.plan.readers; i++)
	{
		while (!readers[i].done)
			coroutine_sleep(FIRST_LOOK_NANOSECONDS);
		sim_worker_close(&readers[i]);
	}
}

/* Nor does the memory node wait for one that has stopped. */
static void
stop_cluster(void)
{
	uint64_t began = scheduler_now();

	sim_cluster_stop(&run.cluster);
	if (scheduler_now() - began > STOP_NANOSECONDS)
		sim_fail(&run, "a memory node took %" PRIu64 " us to close",
		         (scheduler_now() - began) / NANOSECONDS_PER_US);
	if (run.plan.reader_stops)
		sim_worker_close(&readers[0]);
}

static void
direct(void *argument)
{
	SimWorker workers[SIM_SLOTS];
	SimulatorOptions quiet = run.plan.simulator;

	quiet.lose_one_in = 0;
	simulator_change(&quiet);
	sim_techniques = &run.plan.techniques.chosen;
	baseline = run.plan.techniques.left_out;
	sim_cluster_start(&run.cluster, run.plan.nodes, run.plan.domains, run.plan.domains == 1);
	sim_make_tree(&run);
	start_readers();
	for (uint32_t i = 0; i <= run.plan.crashes; i++)
	{
		simulator_change(&run.plan.simulator);
		live(workers, i < run.plan.crashes);
		simulator_change(&quiet);
		sim_check_tree(&run);
	}
	end_readers();
	stop_cluster();
}

/* ---- runs ---- */

/* One run; its fingerprint. */
static uint64_t
run_seed(uint64_t seed, bool verbose, uint64_t *folded)
{
	SimPlan plan;
	uint64_t fingerprint;

	scheduler_open(seed);
	plan = draw_plan(seed);
	simulator_open(&plan.simulator);
	run.again = again;
	sim_run_plan(&run, &plan);
	coroutine_start(direct, NULL, false);
	if (!scheduler_run(TIME_LIMIT))
		sim_fail(&run, "it does not end");
	if (!sim_history_judge(&run))
		sim_fail(&run, "the history is not linearizable");
	fingerprint = scheduler_fingerprint();
	if (verbose)
		printf("seed %" PRIu64 ": %u clients, %u domains, %u entries, %" PRIu64 " steps, %" PRIu64
		       " us, %" PRIu64 " splits, %" PRIu64 " merged, %" PRIu64 " of them with entries, %" PRIu64
		       " bytes found free, %" PRIu64 " handovers, %" PRIu64 " torn reads, %" PRIu64
		       " leaves at hand, %" PRIu64 " unique together, %" PRIu64 " checked, %" PRIu64
		       " conflicts, %" PRIu64 " marks, %u readers: %" PRIu64 " reads, %" PRIu64 " by leaves, %" PRIu64
		       " waits, %" PRIu64 " lacked, %" PRIu64 " refused, fingerprint %016" PRIx64 "\n",
		       seed, plan.clients, plan.domains, plan.entries, simulator_steps(),
		       scheduler_now() / NANOSECONDS_PER_US,
		       run.counters.leaf_splits + run.counters.inner_splits + run.counters.root_splits, run.merged,
		       run.folded, run.reclaimed, run.counters.handovers, run.counters.torn_reads, run.leaf_hits,
		       run.unique != NULL ? run.unique->together : 0, run.unique != NULL ? run.unique->checked : 0,
		       run.unique != NULL ? run.unique->conflicts : 0, run.counters.dead_marks, plan.readers,
		       run.readers.reads, run.readers.by_leaves, run.readers.waits, run.readers.lacked,
		       run.readers.refused, fingerprint);
	*folded += run.folded;
	simulator_close();
	scheduler_close();
	sim_run_free(&run);
	return fingerprint;
}

int
main(int argc, char **argv)
{
	static const struct option names[] = {
		{"seed", required_argument, NULL, 's'},    {"runs", required_argument, NULL, 'r'},
		{"seconds", required_argument, NULL, 't'}, {"verbose", no_argument, NULL, 'v'},
		{"trace", no_argument, NULL, 'c'},         {NULL, 0, NULL, 0},
	};
	uint64_t seed = 1, runs = 0, seconds = 0, passed = 0, folded = 0;
	time_t begin = time(NULL);
	bool verbose = false;
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
	{
		if (option == 's')
			seed = argument_number(optarg);
		else if (option == 'r')
			runs = argument_number(optarg);
		else if (option == 't')
			seconds = argument_number(optarg);
		else if (option == 'v')
			verbose = true;
		else if (option == 'c')
			tracing = trace;
		else
			return 2;
	}
	if (!scheduler_is_here())
		return EXIT_SKIP;
	if (runs == 0 && seconds == 0)
		runs = RUNS;
	atexit(clean);
	signal(SIGABRT, aborted);
	signal(SIGSEGV, aborted);
	while (passed < runs || (seconds > 0 && time(NULL) - begin < (time_t) seconds))
	{
		uint64_t fingerprint = run_seed(seed + passed, verbose, &folded);

		if (passed == 0 && run_seed(seed, false, &folded) != fingerprint)
			sim_fail(&run, "a second run of the seed is another one");
		passed++;
	}
	/* Leaves with entries have gone into others. */
	REQUIRE(folded > 0 || passed < FOLDS_EXPECTED, "no leaf was merged with entries in %" PRIu64 " runs",
	        passed);
	printf("%" PRIu64 " passed, 0 failed\n", passed);
	return 0;
}
