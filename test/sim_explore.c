/*
 * sim_explore.c
 *		All orders of small cases: two or three clients with a few operations each, around what is delicate in
 *		the tree.
 *
 *		sim_explore [--case NAME] [--most RUNS] [--seconds N] [--schedule LIST] [--trace] [--compare]
 *
 * Of each case at most so many runs (0: all), and as many as are begun within so many seconds.  With --compare each
 * case that is small enough is run to its end twice: once with steps that tell as little as they can, and with a set-up
 * for each run; both must have the same outcomes, and runs that are drawn no other ones.
 *
 * A case is run under every order of its steps that differs in what conflicts (sim/explorer.h), or the first
 * ones.  Each run's history must be linearizable, and the whole tree right in the end.  A run that fails says
 * how to repeat it.
 */
#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../sim/accesses.h"
#include "../sim/heap.h"
#include "../sim/snapshot.h"
#include "support/outcomes.h"
#include "support/require.h"
#include "support/sim_work.h"

#define EXIT_SKIP 77
#define CLIENTS_MOST 3
#define LEFT_OUT 5
#define SMALL_LEAF_CELLS 16
/* What is done besides the clients: their end, the loss of a channel. */
#define DIRECTOR (SIM_SLOTS - 1)
#define SABOTEUR (SIM_SLOTS - 2)
/* As little as will do: all of it is looked at for each run that begins with a snapshot. */
#define NODE_BYTES (1u << 20)
#define MEMORY_BYTES (8u << 20)
/* Of one run. */
#define MOST_STEPS 3000
#define TIME_LIMIT (600 * 1000 * NANOSECONDS_PER_MS)
/* That must have no other outcome than those of all orders. */
#define DRAWN_RUNS 5000
/* Runs of a case, if nothing else is asked for. */
#define MOST_RUNS (300 / TEST_SLOWNESS)

typedef enum Trouble
{
	NO_TROUBLE,
	DEATH,     /* all clients end at any step; the next incarnation is granted at any later one */
	LOSS,      /* the first client's channel is lost at any step, and the rest of its chain */
	LATE_LOSS, /* the client is told so, and the rest still lands until the reset */
	NODE_END   /* the memory node ends at any step as if killed, and is started again over its memory */
} Trouble;

/* What a case may be about. */
typedef enum Happening
{
	NOTHING,
	LEAF_SPLIT,
	INNER_SPLIT,
	ROOT_SPLIT,
	RIGHT_MOVE, /* a reader that comes behind a split too late */
	HANDOVER,
	MERGE,
	FOLD, /* a leaf with entries */
	HEAL,
	REFUSAL, /* a reader was told that the tree lacks what it once had */
	HAPPENINGS
} Happening;

typedef struct Case
{
	const char *name;
	/*
	 * What each client does: i5 inserts number 5, l5 looks it up, k5 does and marks it as dead, s scans all
	 * forward, b backward, h5 heals the leaf of number 5, which is in doubt in cases that merge, r3-7 removes the numbers 3 to 7 by VACUUM's walk (and merges, if the case does).
	 * One that begins with R is a reader's, of another instance: it does l, s and b, and has looked at all that there was before.  Readers
	 * come last.
	 */
	const char *scripts[CLIENTS_MOST];
	uint32_t domains; /* compute instances; 0: each client is its own */
	uint32_t prefill; /* numbers below are inserted first, without one in LEFT_OUT */
	uint32_t packet_bytes;
	Trouble trouble;
	bool merge;
	bool proven;                     /* leaves are verified, though they merge */
	Happening about;                 /* what must have happened in some run */
	bool compared;                   /* small enough for --compare */
	const char *heirs[CLIENTS_MOST]; /* what is done in the second life; NULL: the same once more */
} Case;

/*
 * Nodes are one packet; or inner nodes, which are 4096 bytes, are two; or all are several, and what they have
 * is in the first three.  Of what is several packets redo images are written.
 */
#define WHOLE 4096
#define HALVES 2048
#define PACKETS 128

/*
 * With small nodes 9 entries fill a leaf and 6 leaves the root.  Numbers that 5 divides are left out at
 * first: so 11 numbers are one full leaf, which is the root, of 1 to 11; 23 are two of them, the second of 12
 * to 22; 68 are six.
 */
static const Case cases[] = {
	{"insert", {"i5 l10", "i10 l5"}, 0, 8, WHOLE, .about = NOTHING, .compared = true},
	{"insert-same", {"i5 l5", "i5 l5"}, 0, 8, WHOLE, .about = NOTHING},
	{"mark", {"k7", "r7-7 i7 l7"}, 0, 8, WHOLE, .about = NOTHING, .compared = true},
	{"mark-insert", {"k7 l7", "i5 l7"}, 0, 8, WHOLE, .about = NOTHING},
	{"split-readers", {"i5", "l9", "l11"}, 0, 23, WHOLE, .about = RIGHT_MOVE},
	{"split", {"i5 l10", "i10 l5"}, 0, 23, WHOLE, .about = LEAF_SPLIT},
	{"split-lookup", {"i5", "l9 l11"}, 0, 23, PACKETS, .about = RIGHT_MOVE},
	{"split-scan", {"i5", "s"}, 0, 23, WHOLE, .about = LEAF_SPLIT, .compared = true},
	{"split-back", {"i5", "b"}, 0, 23, WHOLE, .about = LEAF_SPLIT},
	{"split-split", {"i5", "i15 l9"}, 0, 23, WHOLE, .about = LEAF_SPLIT},
	{"split-three", {"i5", "i10", "l9"}, 0, 23, WHOLE, .about = LEAF_SPLIT},
	{"root-leaf", {"i5 l10", "i10 l9"}, 0, 11, WHOLE, .about = ROOT_SPLIT},
	{"root", {"i5", "l9 l64"}, 0, 68, PACKETS, .about = ROOT_SPLIT},
	{"root-insert", {"i5", "i60 l9"}, 0, 68, WHOLE, .about = ROOT_SPLIT},
	{"root-scan", {"i5", "s"}, 0, 68, WHOLE, .about = ROOT_SPLIT},
	{"remove", {"r3-3 l3", "i5 l3"}, 0, 8, WHOLE, .about = NOTHING, .compared = true},
	{"remove-scan", {"r3-7", "s"}, 0, 23, WHOLE, .about = NOTHING},
	{"remove-split", {"r3-17", "i5"}, 0, 23, WHOLE, .about = LEAF_SPLIT, .compared = true},
	{"merge-lookup", {"r12-22", "l14 l24"}, 1, 34, WHOLE, .merge = true, .about = MERGE},
	{"merge-insert", {"r12-22", "i15 l24"}, 1, 34, WHOLE, .merge = true, .about = MERGE},
	{"merge-scan", {"r12-22", "s"}, 1, 34, WHOLE, .merge = true, .about = MERGE},
	{"fold-lookup", {"r3-20", "l2 l21 l24"}, 1, 34, WHOLE, .merge = true, .proven = true, .about = FOLD},
	{"fold-insert", {"r3-20", "i15 l22"}, 1, 34, WHOLE, .merge = true, .proven = true, .about = FOLD},
	{"fold-scan", {"r3-20", "s"}, 1, 34, WHOLE, .merge = true, .proven = true, .about = FOLD},
	{"fold-back", {"r3-20", "b"}, 1, 34, WHOLE, .merge = true, .proven = true, .about = FOLD},
	{"fold-remove", {"r3-20", "r21-33"}, 1, 34, WHOLE, .merge = true, .proven = true, .about = FOLD},
	{"merge-heal", {"h14", "r12-22 i5"}, 1, 34, WHOLE, .merge = true, .about = HEAL},
	{"reader-split", {"i5 i10", "Rl5 l10 s"}, 0, 23, WHOLE, .about = LEAF_SPLIT, .compared = true},
	{"reader-mark", {"k7 r7-7", "Rl7 s"}, 0, 8, WHOLE, .about = REFUSAL},
	{"reader-remove", {"r12-22 i15", "Rs b"}, 0, 34, WHOLE, .about = REFUSAL},
	{"reader-merge", {"r12-22 i15", "Rs l15"}, 0, 34, WHOLE, .merge = true, .about = MERGE},
	{"reader-merge-back", {"r12-22 i15", "Rb l15"}, 0, 34, WHOLE, .merge = true, .about = MERGE},
	{"reader-merge-insert", {"r12-22", "i15", "Rl15"}, 1, 34, WHOLE, .merge = true, .about = MERGE},
	{"reader-fold", {"r3-20 i15", "Rs l21"}, 0, 34, WHOLE, .merge = true, .proven = true, .about = FOLD},
	{"reader-fold-back", {"r3-20 i15", "Rb l2"}, 0, 34, WHOLE, .merge = true, .proven = true, .about = FOLD},
	{"reader-fold-insert",
     {"r3-20", "i15", "Rl15 l22"},
     1,
     34,
     WHOLE,
     .merge = true,
     .proven = true,
     .about = FOLD},
	{"reader-fold-remove",
     {"r3-20", "r21-21", "Rl21 l22"},
     1,
     34,
     WHOLE,
     .merge = true,
     .proven = true,
     .about = FOLD},
	{"reader-reuse", {"r12-22 i5 i0", "Rl14 l4 l10"}, 0, 34, WHOLE, .merge = true, .about = MERGE},
	{"reader-death",
     {"r12-22", "R"},
     0,
     34,
     PACKETS,
     DEATH,
     .merge = true,
     .about = MERGE,
     .heirs = {"i15 l15", "l15 s"}},
	{"handover", {"i5", "i10", "i0"}, 1, 6, WHOLE, .about = HANDOVER},
	{"handover-two", {"i5", "i10"}, 1, 6, WHOLE, .about = HANDOVER, .compared = true},
	{"handover-split", {"i5 l9", "i10"}, 1, 23, WHOLE, .about = HANDOVER},
	{"handover-away", {"i5", "i10", "i0 l5"}, 2, 8, WHOLE, .about = HANDOVER},
	{"death", {"i5", "i10"}, 0, 8, PACKETS, DEATH, .about = NOTHING},
	{"death-handover", {"i5", "i10"}, 1, 8, PACKETS, DEATH, .about = HANDOVER},
	{"death-split", {"i5", "l9"}, 0, 23, PACKETS, DEATH, .about = LEAF_SPLIT},
	{"death-splits", {"i5", "i15"}, 1, 23, HALVES, DEATH, .about = LEAF_SPLIT},
	{"death-root", {"i5"}, 0, 68, PACKETS, DEATH, .about = ROOT_SPLIT},
	{"death-merge", {"r12-22"}, 1, 34, PACKETS, DEATH, .merge = true, .about = MERGE},
	{"death-fold", {"r3-20"}, 1, 34, PACKETS, DEATH, .merge = true, .proven = true, .about = FOLD},
	{"loss-fold", {"r3-20", "l21"}, 1, 34, PACKETS, LOSS, .merge = true, .proven = true, .about = FOLD},
	{"late-fold", {"r3-20", "l21"}, 1, 34, PACKETS, LATE_LOSS, .merge = true, .proven = true, .about = FOLD},
	{"loss", {"i5", "i10"}, 0, 8, PACKETS, LOSS, .about = NOTHING},
	{"loss-split", {"i5", "l9"}, 0, 23, PACKETS, LOSS, .about = LEAF_SPLIT},
	{"loss-handover", {"i5", "i10"}, 1, 8, PACKETS, LOSS, .about = HANDOVER},
	{"late", {"i5", "i10"}, 0, 8, PACKETS, LATE_LOSS, .about = NOTHING},
	{"late-split", {"i5", "l9"}, 0, 23, PACKETS, LATE_LOSS, .about = LEAF_SPLIT},
	{"late-handover", {"i5", "i10"}, 1, 8, PACKETS, LATE_LOSS, .about = HANDOVER},
	{"late-root", {"i5"}, 0, 68, HALVES, LATE_LOSS, .about = ROOT_SPLIT, .compared = true},
	{"end", {"i5", "i10"}, 0, 8, HALVES, NODE_END, .about = NOTHING},
	{"end-lookup", {"i5", "l7"}, 0, 8, HALVES, NODE_END, .about = NOTHING},
	{"end-one", {"i5"}, 0, 8, HALVES, NODE_END, .about = NOTHING},
	{"end-split-one", {"i5"}, 0, 23, HALVES, NODE_END, .about = LEAF_SPLIT},
	{"end-split", {"i5", "l9"}, 0, 23, HALVES, NODE_END, .about = LEAF_SPLIT},
	{"end-root", {"i5"}, 0, 68, PACKETS, NODE_END, .about = ROOT_SPLIT},
};

/* What the director waits for, and main() for it. */
typedef enum Stage
{
	SETTING_UP,
	READY,
	RUNNING,
	OVER,
	CLOSING
} Stage;

static SimRun run;
static const Case *present;
static SimWorker workers[CLIENTS_MOST];
/* Looks at the tree in the end, where runs begin at a snapshot: the memory node knows it from before. */
static SimWorker checker;
static Coroutine *director;
static Stage stage;
static uint32_t ended;
static uint64_t most_runs = MOST_RUNS;
static bool tracing;
/* Each case is run in the plain way, too, and both have the same outcomes. */
static bool comparing;
/* The plain way: what steps do is told as a whole, and each run has a set-up of its own. */
static bool plain;
/* Runs can begin with snapshots, in this build. */
static bool snapshots;
/* In one run, at most; kept. */
static uint64_t *seen;

/* ---- what is said ---- */

static void
clean(void)
{
	sim_cluster_clean(&run.cluster);
}

static void
again(const SimRun *failed)
{
	fprintf(stderr, "sim_explore --case %s --schedule %s\n", present->name, explorer_schedule());
}

static void
aborted(int signal_number)
{
	char text[512];
	int length =
		snprintf(text, sizeof(text), "run it again: sim_explore --case %s --schedule ", present->name);
	const char *schedule = explorer_schedule();

	(void) !write(STDERR_FILENO, text, (size_t) length);
	(void) !write(STDERR_FILENO, schedule, strlen(schedule));
	(void) !write(STDERR_FILENO, "\n", 1);
	clean();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void
endless(void)
{
	sim_fail(&run, "it does not end");
}

static void
trace_step(uint32_t actor, uint32_t options)
{
	printf("client %u %s %u, one of %u\n", actor / EXPLORER_ACTORS,
	       actor % EXPLORER_ACTORS == 0 ? "goes on"
	       : actor % 2 == 1             ? "queue"
	                                    : "completion of queue",
	       (actor % EXPLORER_ACTORS + 1) / 2, options);
}

static void
trace_operation(uint64_t node, uint32_t channel, const FabricOp *op, uint32_t from, uint32_t bytes)
{
	static const char *const names[] = {"READ", "WRITE", "COMPARE_SWAP", "FETCH_ADD"};

	if (explorer_is_on())
		printf("    channel %u %s %s %" PRIx64 " + %u, %u bytes, %" PRIx64 " -> %" PRIx64 ": %" PRIx64 "\n",
		       channel, names[op->opcode], op->region == FABRIC_LOCKS ? "locks" : "nodes", op->offset, from,
		       bytes, op->compare, op->operand, op->result);
}

/* ---- clients ---- */

static uint32_t
script_number(const char **script)
{
	char *end;
	unsigned long number = strtoul(*script, &end, 10);

	*script = end;
	return (uint32_t) number;
}

static void
remove_range(SimWorker *worker, uint32_t from, uint32_t to)
{
	uint32_t ids[256];
	uint32_t count = 0;

	for (uint32_t id = from; id <= to; id++)
		if (id % LEFT_OUT != 0)
			ids[count++] = id;
	sim_remove(worker, ids, count);
}

static void
look(SimWorker *reader, char what, uint32_t number)
{
	if (what == 'l')
		sim_reader_scan_numbers(reader, number, number, TREE_FORWARD);
	else
		sim_reader_scan_all(reader, what == 's' ? TREE_FORWARD : TREE_BACKWARD);
}

/* Does the first operation of the script, and goes to the next. */
static void
operate(SimWorker *worker, const char **script)
{
	char what = *(*script)++;
	uint32_t number = isdigit((unsigned char) **script) ? script_number(script) : 0;

	if (worker->reader)
		look(worker, what, number);
	else if (what == 'i')
		sim_insert(worker, number);
	else if (what == 'l')
		sim_scan_numbers(worker, number, number, TREE_FORWARD);
	else if (what == 'k')
		sim_mark(worker, number);
	else if (what == 's' || what == 'b')
		sim_scan_all(worker, what == 's' ? TREE_FORWARD : TREE_BACKWARD);
	else if (what == 'h')
		sim_heal(worker, number, number);
	else
	{
		REQUIRE(what == 'r' && *(*script)++ == '-', "script of %s", present->name);
		remove_range(worker, number, script_number(script));
	}
	while (**script == ' ')
		(*script)++;
}

static void
one_ended(void)
{
	ended++;
	coroutine_wake(director);
}

static bool
is_readers(const char *script)
{
	return *script == 'R';
}

/* Whose accesses conflict with each other: where nobody tells what they have in common, those of an instance. */
static uint32_t
group_of(const SimWorker *worker)
{
	if (accesses_are_reported() && !plain)
		return worker->slot;
	return worker->reader ? run.plan.domains : worker->slot % run.plan.domains;
}

/* A reader's cache has all inner nodes as they are at first. */
static void
open_client(SimWorker *worker, uint32_t slot)
{
	if (!is_readers(present->scripts[slot]))
	{
		sim_worker_open(worker, &run, slot);
		return;
	}
	sim_reader_worker_open(worker, &run, slot);
	worker->ready = false;
	sim_reader_scan_all(worker, TREE_FORWARD);
	worker->ready = true;
}

static void
client_body(void *argument)
{
	SimWorker *worker = argument;
	const char *script = present->scripts[worker->slot];

	worker->reader = is_readers(script);
	script += worker->reader;
	explorer_join(worker->slot, group_of(worker));
	open_client(worker, worker->slot);
	coroutine_wake(director);
	explorer_sleep();
	while (*script != '\0')
	{
		operate(worker, &script);
		explorer_yield();
	}
	worker->done = true;
	one_ended();
}

static bool
has_saboteur(const Case *one)
{
	return one->trouble == LOSS || one->trouble == LATE_LOSS || one->trouble == NODE_END;
}

/* Ends the memory node or loses a channel of the first client, at any step. */
static void
saboteur_body(void *argument)
{
	explorer_join(SABOTEUR, SABOTEUR);
	explorer_sleep();
	if (present->trouble == NODE_END)
	{
		sim_node_kill(&run.cluster.nodes[0]);
		world_node_start(&run.cluster.nodes[0]);
	}
	else
		simulator_lose(0, present->trouble == LATE_LOSS);
	one_ended();
}

/* ---- the director ---- */

static bool
all_ready(void)
{
	for (uint32_t i = 0; i < run.plan.clients; i++)
		if (!workers[i].ready)
			return false;
	return true;
}

static void
start_clients(void)
{
	for (uint32_t i = 0; i < run.plan.clients; i++)
	{
		workers[i] = (SimWorker){.run = &run, .slot = i};
		workers[i].coroutine = coroutine_start(client_body, &workers[i], false);
	}
	if (has_saboteur(present))
		coroutine_start(saboteur_body, NULL, false);
	while (!all_ready())
		coroutine_wait(SCHEDULER_NEVER);
}

static void
release_clients(void)
{
	for (uint32_t i = 0; i < run.plan.clients; i++)
		explorer_wake(i);
	if (has_saboteur(present))
		explorer_wake(SABOTEUR);
}

/* Every client of the instance ends where it is; the next incarnation is granted. */
static void
die(void)
{
	explorer_yield();
	for (uint32_t i = 0; i < run.plan.clients; i++)
	{
		if (workers[i].reader)
			continue;
		explorer_access_client(i);
		if (!coroutine_has_ended(workers[i].coroutine))
			coroutine_end(workers[i].coroutine);
		run.cluster.clients[i] = NULL;
		workers[i].done = false;
	}
	explorer_yield();
	sim_cluster_attach(&run.cluster);
	sim_history_cut(&run);
}

/* A reader lives on: what it knows is of before. */
static void
reader_goes_on(SimWorker *reader, const char *script)
{
	while (!sim_reader_follow(&reader->client))
		coroutine_sleep(NANOSECONDS_PER_MS);
	while (*script != '\0')
		operate(reader, &script);
	sim_worker_close(reader);
}

/*
 * The same operations once more, or others, one client after the other: what the first life left behind must not
 * disturb.
 */
static void
live_again(void)
{
	for (uint32_t i = 0; i < run.plan.clients; i++)
	{
		const char *script = present->heirs[i] != NULL ? present->heirs[i] : present->scripts[i];
		SimWorker heir;

		if (workers[i].reader)
		{
			reader_goes_on(&workers[i], script);
			continue;
		}
		sim_worker_open(&heir, &run, i);
		while (*script != '\0')
			operate(&heir, &script);
		heir.done = true;
		sim_worker_close(&heir);
	}
}

static void
count_happenings(void)
{
	uint64_t happened[HAPPENINGS] = {0};

	for (uint32_t i = 0; i < run.plan.clients; i++)
	{
		const TreeCounters *counters = &workers[i].client.tree->counters;

		happened[LEAF_SPLIT] += counters->leaf_splits;
		happened[INNER_SPLIT] += counters->inner_splits;
		happened[ROOT_SPLIT] += counters->root_splits;
		happened[RIGHT_MOVE] += counters->right_moves;
		happened[HANDOVER] += counters->handovers;
	}
	happened[MERGE] = run.merged;
	happened[FOLD] = run.folded;
	happened[HEAL] = run.healed;
	happened[REFUSAL] = run.readers.lacked;
	for (int i = 0; i < HAPPENINGS; i++)
		if (happened[i] > seen[i])
			seen[i] = happened[i];
}

/*
 * Whether what the kernel has of the memory node and its clients stays as it is in a run, so that runs can begin at a
 * snapshot.
 */
static bool
stays_connected(const Case *one)
{
	return one->trouble != DEATH && one->trouble != NODE_END;
}

static void
reach(Stage reached, Stage next)
{
	stage = reached;
	scheduler_leave();
	while (stage != next)
		coroutine_wait(SCHEDULER_NEVER);
}

static void
set_up(void)
{
	sim_cluster_start(&run.cluster, run.plan.nodes, run.plan.domains, false);
	/* Clients with an instance each meet at the memory node only. */
	if (run.plan.domains < run.plan.clients - run.plan.readers && !plain)
		accesses_of(run.cluster.memory.base, run.cluster.memory.used);
	else
		accesses_of(NULL, 0);
	sim_make_tree(&run);
	start_clients();
	if (stays_connected(present))
		sim_worker_open(&checker, &run, DIRECTOR);
}

static void
run_clients(void)
{
	uint32_t actors = run.plan.clients + (has_saboteur(present));

	ended = 0;
	explorer_switch(true);
	release_clients();
	if (present->trouble == DEATH)
		die();
	else
		while (ended < actors)
			coroutine_wait(SCHEDULER_NEVER);
	explorer_switch(false);
	count_happenings();
}

/* Behind it nothing is left to do but to close what is open. */
static void
check(void)
{
	for (uint32_t i = 0; i < run.plan.clients; i++)
		if (stays_connected(present))
			sim_worker_leave(&workers[i]);
		else if (!workers[i].reader)
			sim_worker_close(&workers[i]);
	if (stays_connected(present))
	{
		sim_check_tree_by(&checker);
		return;
	}
	if (present->trouble == DEATH)
	{
		sim_check_tree(&run);
		live_again();
	}
	sim_check_tree(&run);
}

static void
close_all(void)
{
	checker.done = true;
	if (stays_connected(present))
		sim_worker_close(&checker);
	for (uint32_t i = 0; stays_connected(present) && i < run.plan.clients; i++)
		sim_worker_close(&workers[i]);
	sim_cluster_stop(&run.cluster);
}

static void
direct(void *argument)
{
	director = coroutine_current();
	explorer_join(DIRECTOR, DIRECTOR);
	set_up();
	reach(READY, RUNNING);
	run_clients();
	check();
	reach(OVER, CLOSING);
	close_all();
}

/* ---- runs ---- */

static void
report(const Case *one, const ExplorerCounts *counts)
{
	static const char *const names[HAPPENINGS] = {"",
	                                              "leaf splits",
	                                              "inner splits",
	                                              "root splits",
	                                              "right moves",
	                                              "handovers",
	                                              "nodes merged",
	                                              "leaves with entries merged",
	                                              "leaves healed",
	                                              "entries lacked"};

	printf("%-16s %8" PRIu64 " orders (%s), %" PRIu64 " redundant, %" PRIu64 " drawn, up to %" PRIu64
	       " steps",
	       one->name, counts->runs, counts->complete ? "all" : "not all", counts->redundant, counts->random,
	       counts->steps);
	for (int i = 0; i < HAPPENINGS; i++)
		if (seen[i] > 0)
			printf(", %" PRIu64 " %s", seen[i], names[i]);
	if (comparing)
	{
		Outcomes outcomes = outcomes_now();

		printf(", %" PRIu64 " outcomes (%016" PRIx64 ")", outcomes.count, outcomes.sum);
	}
	printf("\n");
	fflush(stdout);
	REQUIRE(one->about == NOTHING || seen[one->about] > 0 || !counts->complete, "%s: no %s", one->name,
	        names[one->about]);
}

static SimPlan
plan_of(const Case *one)
{
	SimPlan plan = {
		.seed = 1,
		.space = KEYSPACE_16,
		.nodes = 1,
		.entries = one->prefill + 16,
		.prefill = one->prefill,
		.left_out = LEFT_OUT,
		.merge = one->merge,
		.doubts = one->merge && !one->proven,
		.loses = has_saboteur(one),
		.simulator = {.packet_bytes = one->packet_bytes,
	                  .coarse = plain,
	                  .trace = tracing     ? trace_operation
	                           : comparing ? outcomes_trace
	                                       : NULL},
	};

	for (; plan.clients < CLIENTS_MOST && one->scripts[plan.clients] != NULL; plan.clients++)
		plan.readers += is_readers(one->scripts[plan.clients]);
	plan.domains = one->domains == 0 ? plan.clients - plan.readers : one->domains;
	plan.crashes = one->trouble == DEATH && plan.readers > 0;
	return plan;
}

/* Until the director waits again. */
static void
go_on(Stage from, Stage to)
{
	stage = from;
	if (from != SETTING_UP)
		coroutine_wake(director);
	if (!scheduler_run(TIME_LIMIT) || stage != to)
		sim_fail(&run, "it does not end");
}

static void
open_run(const SimPlan *plan)
{
	scheduler_open(plan->seed);
	simulator_open(&plan->simulator);
	run.again = again;
	sim_run_plan(&run, plan);
	coroutine_start(direct, NULL, false);
	go_on(SETTING_UP, READY);
}

static void
close_run(void)
{
	go_on(CLOSING, CLOSING);
	simulator_close();
	scheduler_close();
	sim_run_free(&run);
}

/* From the snapshot, if there is one; and leaves it so. */
static void
run_once(const SimPlan *plan)
{
	if (snapshot_is_there())
		snapshot_return();
	else
	{
		open_run(plan);
		if (stays_connected(present) && !tracing && !plain && snapshots)
			snapshot_take();
	}
	go_on(RUNNING, OVER);
	if (!sim_history_judge(&run))
		sim_fail(&run, "the history is not linearizable");
	if (comparing)
		outcomes_take(&run);
	if (!snapshot_is_there())
		close_run();
}

/* True: to its end. *listed: what its orders have come to, before any were drawn. */
static bool
explore(const Case *one, const char *schedule, uint64_t seconds, Outcomes *listed)
{
	time_t begin = time(NULL);
	bool drawing = false;
	ExplorerOptions options = {
		.most_runs = most_runs,
		.random_runs = !comparing ? most_runs
	                   : plain    ? 0
	                              : DRAWN_RUNS,
		.random_always = comparing,
		.most_steps = MOST_STEPS,
		.endless = endless,
		.schedule = schedule,
		.trace = tracing ? trace_step : NULL,
	};
	SimPlan plan = plan_of(one);
	ExplorerCounts counts;

	present = one;
	memset(seen, 0, HAPPENINGS * sizeof(seen[0]));
	outcomes_open();
	explorer_open(&options);
	while ((seconds == 0 || time(NULL) - begin < (time_t) seconds) && explorer_begin())
	{
		explorer_counts(&counts);
		if (!drawing)
			*listed = outcomes_now();
		drawing = counts.complete;
		run_once(&plan);
		explorer_end();
	}
	if (!drawing)
		*listed = outcomes_now();
	if (snapshot_is_there())
		close_run();
	explorer_counts(&counts);
	report(one, &counts);
	explorer_close();
	return counts.complete;
}

static void
require_same(const Case *one, const char *what, Outcomes outcomes, Outcomes plainly)
{
	REQUIRE(outcomes.count == plainly.count && outcomes.sum == plainly.sum,
	        "%s: %" PRIu64 " outcomes of %s, plainly %" PRIu64, one->name, outcomes.count, what,
	        plainly.count);
}

/* Both ways come to the same, and runs that are drawn to nothing else. */
static void
compare(const Case *one)
{
	Outcomes plainly, listed;

	plain = true;
	REQUIRE(explore(one, NULL, 0, &plainly), "%s was not seen to its end", one->name);
	plain = false;
	REQUIRE(explore(one, NULL, 0, &listed), "%s was not seen to its end", one->name);
	require_same(one, "all orders", listed, plainly);
	require_same(one, "them and runs that were drawn", outcomes_now(), plainly);
}

int
main(int argc, char **argv)
{
	static const struct option names[] = {
		{"case", required_argument, NULL, 'n'},
		{"most", required_argument, NULL, 'm'},
		{"seconds", required_argument, NULL, 't'},
		{"schedule", required_argument, NULL, 's'},
		{"trace", no_argument, NULL, 'c'},
		{"compare", no_argument, NULL, 'b'},
		{NULL, 0, NULL, 0},
	};
	const char *name = NULL, *schedule = NULL;
	uint64_t seconds = 0, passed = 0;
	Outcomes listed;
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
	{
		if (option == 'n')
			name = optarg;
		else if (option == 'm')
			most_runs = argument_number(optarg);
		else if (option == 't')
			seconds = argument_number(optarg);
		else if (option == 's')
			schedule = optarg;
		else if (option == 'c')
			tracing = true;
		else if (option == 'b')
			comparing = true;
		else
			return 2;
	}
	if (comparing)
		most_runs = 0;
	/* With nodes of the usual size the cases would be large ones. */
	if (!scheduler_is_here() || LEAF_CELLS_TARGET != SMALL_LEAF_CELLS)
		return EXIT_SKIP;
	sim_node_bytes = NODE_BYTES;
	sim_memory_bytes = MEMORY_BYTES;
	seen = heap_zeroed(HAPPENINGS * sizeof(seen[0]));
	snapshots = snapshot_prepare();
	atexit(clean);
	signal(SIGABRT, aborted);
	signal(SIGSEGV, aborted);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (name == NULL || strcmp(name, cases[i].name) == 0)
		{
			if (!comparing)
				explore(&cases[i], schedule, seconds, &listed);
			else if (name != NULL || cases[i].compared)
				compare(&cases[i]);
			passed += !comparing || name != NULL || cases[i].compared;
		}
	printf("%" PRIu64 " passed, 0 failed\n", passed);
	return passed == 0;
}
