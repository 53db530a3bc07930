/*
 * torture.c
 *		The tree under many processes at once, against what each of them knows; with torn, slow and lost chains, cancels,
 *		and lives that end in the middle of anything.
 *
 *		torture							the standard set, well under a minute
 *		torture --name NAME [--seed N]	one of it
 *		torture --network ...			the same over tcp, with keys
 *		torture --verbs DEVICE ...		the same over verbs, with this RDMA device
 *		torture --verbs DEVICE --beside tcp|shm ...		over another transport beside it
 *		torture --threads				a few runs with threads in place of processes
 *		torture --space N --processes N --operations N --entries N --range N --merge --give --replicas --domains N --nodes N --tear --tear-words --delay N
 *				--lose --stop --crashes N --workers N --lose-below --deaths N --switches --leaves --unique --seed N --rounds N
 *
 * A failure prints the seed and how to run it again: what a process does follows from the seed, how they meet does not.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/proxy_process.h"
#include "support/require.h"
#include "support/techniques.h"
#include "support/torture_runs.h"
#include "support/unique_keys.h"

#define NODE_BYTES (128ull << 20)
/* Of images of leaves, where the techniques allow them: some, so that they push out each other. */
#define LEAF_CACHE_BYTES 131072u
#define LEAF_ADMISSION_PERCENT 50u
#define CACHE_BYTES (256u << 10)

/* A run that takes longer hangs. */
#define RUN_SECONDS 300

/* A life that is to end by its fabric does so within so many operations. */
#define DEATH_OPERATIONS 8000

/* Chains of a worker's endpoint until one is lost below, and until the worker dies; operations until it dies by itself. */
#define LOSS_OPERATIONS 3000
#define WORKER_CHAINS 3000
#define WORKER_OPERATIONS 20000

/* What one run stands on. */
typedef struct Run
{
	Torture torture;
	Techniques techniques;
	TestNode nodes[2];
	TestInstance domains[2]; /* of one instance: they share its words' identity, and nothing else */
	size_t shared_bytes;
	pid_t children[TEST_MAX_SLOTS];
	uint64_t deadline;
	ProxyProcesses *proxies;
	KeyRandom random; /* for the workers' deaths */
	uint32_t deaths;  /* that were brought about */
	uint64_t next_death;
} Run;

static void
rerun_help(const TortureOptions *o)
{
	fprintf(stderr, "run it again: torture");
	if (o->name != NULL)
		fprintf(stderr, " --name %s", o->name);
	else
		fprintf(stderr,
		        " --space %d --processes %u --domains %u --nodes %u --operations %u --entries %u --range %llu"
		        " --delay %u --crashes %u --workers %u --deaths %u%s%s%s%s%s%s%s%s%s%s",
		        (int) o->space, o->processes, o->domains, o->nodes, o->operations, o->entries,
		        (unsigned long long) o->range, o->delay_us, o->crashes, o->workers, o->deaths,
		        o->tear         ? " --tear"
		        : o->tear_words ? " --tear-words"
		                        : "",
		        o->merge ? " --merge" : "", o->give ? " --give" : "", o->replicas ? " --replicas" : "",
		        o->lose ? " --lose" : "", o->stop ? " --stop" : "", o->lose_below ? " --lose-below" : "",
		        o->switches ? " --switches" : "", o->leaves ? " --leaves" : "", o->unique ? " --unique" : "");
	fprintf(stderr, "%s --seed %llu\n", test_threads ? " --threads" : "", (unsigned long long) o->seed);
}

/* Slots of the second domain follow those of the first: a lock word's ticket names the slot. The last one is the parent's. */
static uint32_t
slot_of(const Run *run, uint32_t process)
{
	return process;
}

/* Whether a death in the middle of a WRITE leaves a part of it: what goes over tcp arrives whole or not at all. */
static bool
writes_can_be_cut(const Run *run)
{
	return strncmp(run->nodes[0].address, "tcp:", 4) != 0;
}

/* The parent's own clients connect directly: the workers are only the children's. */
static void
workers_start(Run *run)
{
	const TortureOptions *o = &run->torture.options;
	FabricFaultPlan plan = {.seed = o->seed + 1, .tear_reads = o->tear, .tear_writes = o->tear};
	ProxyProcessOptions options = {
		.workers = o->workers,
		.slots = o->processes * o->nodes + 1,
		.key_file = test_key_file,
		.timeout_ms = TEST_PATIENCE_US / 2000,
		.below = &plan,
		.random_places = true,
	};

	if (o->lose_below)
		plan.fail_operation = plan.late_operation = LOSS_OPERATIONS;
	if (o->deaths > 0)
	{
		plan.die_operation = WORKER_OPERATIONS;
		plan.die_line = writes_can_be_cut(run) ? 12 : 0;
	}
	run->random.state = o->seed + 777;
	run->proxies = o->workers > 0 ? proxy_processes_start(&options) : NULL;
}

/* Kills workers now and then, after so many chains of theirs, and starts those that have died. */
static void
workers_tend(Run *run)
{
	uint32_t worker = run->deaths % (run->torture.options.workers + (run->proxies == NULL));

	if (run->proxies == NULL)
		return;
	(void) proxy_processes_tend(run->proxies);
	if (run->deaths == run->torture.options.deaths ||
	    proxy_processes_figures(run->proxies, worker).chains < run->next_death)
		return;
	proxy_processes_kill(run->proxies, worker);
	run->deaths++;
	worker = run->deaths % run->torture.options.workers;
	run->next_death =
		proxy_processes_figures(run->proxies, worker).chains + key_random(&run->random, WORKER_CHAINS);
}

static void
run_start(Run *run)
{
	const TortureOptions *o = &run->torture.options;
	uint32_t slots = o->processes + 1;
	TestClient client;

	run->techniques = o->switches ? techniques_draw(o->seed + (uint64_t) o->space, o->domains == 1)
	                              : (Techniques){.chosen = tree_techniques};
	if (o->leaves)
	{
		run->techniques.chosen.exclusive = true;
		run->techniques.left_out.flat_locks = false;
	}
	test_techniques = &run->techniques.chosen;
	baseline = run->techniques.left_out;
	test_leaf_cache = (TestLeafCache){.bytes = LEAF_CACHE_BYTES, .admission_percent = LEAF_ADMISSION_PERCENT};
	test_alone = o->domains == 1;
	for (uint32_t i = 0; i < o->nodes; i++)
		test_node_start(&run->nodes[i], NODE_BYTES);
	test_instance_start(&run->domains[0], run->nodes, o->nodes, slots, CACHE_BYTES);
	run->domains[1] = run->domains[0];
	if (o->domains > 1)
	{
		void *memory;

		run->shared_bytes = tree_shared_bytes(&run->domains[0].options);
		memory = mmap(NULL, run->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		run->domains[1].shared = tree_shared_initialize(memory, &run->domains[0].options);
	}
	test_client_open(&client, &run->domains[0], o->processes);
	if (o->replicas)
		test_replicated_create(&client, &run->torture.space->format, &run->torture.record);
	else
		test_tree_create(&client, &run->torture.space->format, &run->torture.record);
	run->torture.replica_state = TREE_REPLICAS_BOTH;
	test_client_close(&client);
	workers_start(run);
}

static void
run_stop(Run *run)
{
	/* One that has just killed itself cannot end in order. */
	if (run->proxies != NULL)
	{
		proxy_processes_faults(run->proxies, NULL);
		(void) proxy_processes_tend(run->proxies);
		proxy_processes_stop(run->proxies);
	}
	if (run->torture.options.domains > 1)
		munmap(run->domains[1].shared, run->shared_bytes);
	test_instance_stop(&run->domains[0]);
	for (uint32_t i = 0; i < run->torture.options.nodes; i++)
		test_node_stop(&run->nodes[i]);
	torture_free(&run->torture);
}

typedef struct ThreadedLife
{
	Run *run;
	uint64_t seed;
} ThreadedLife;

static void
threaded_body(int number, void *argument)
{
	const ThreadedLife *life = argument;
	Run *run = life->run;

	torture_live(&run->torture, &run->domains[(uint32_t) number % run->torture.options.domains],
	             slot_of(run, (uint32_t) number), (uint32_t) number, life->seed, 0, 0);
}

/* In place of children_start() and children_wait(). */
static bool
threads_live(Run *run, uint64_t seed)
{
	ThreadedLife life = {.run = run, .seed = seed};

	return test_processes((int) run->torture.options.processes, threaded_body, &life) == 0;
}

static void
children_start(Run *run, uint64_t seed, int victim)
{
	const TortureOptions *o = &run->torture.options;
	KeyRandom random = {seed + 12345};
	uint64_t die_operation = 1 + key_random(&random, DEATH_OPERATIONS);
	uint32_t die_line = (uint32_t) key_random(&random, 12);

	/* What was handed to a worker is written whole, whoever dies; only the worker's own death can cut it. */
	if (o->workers > 0 || !writes_can_be_cut(run))
		die_line = 0;
	fflush(NULL);
	for (uint32_t i = 0; i < o->processes; i++)
	{
		run->children[i] = fork();
		if (run->children[i] < 0)
			abort();
		if (run->children[i] > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		test_proxies = run->proxies;
		torture_live(&run->torture, &run->domains[i % o->domains], slot_of(run, i), i, seed,
		             victim == (int) i ? die_operation : 0, die_line);
		_exit(0);
	}
}

static void
children_kill(Run *run)
{
	for (uint32_t i = 0; i < run->torture.options.processes; i++)
		if (run->children[i] > 0)
		{
			kill(run->children[i], SIGKILL);
			waitpid(run->children[i], NULL, 0);
			run->children[i] = 0;
		}
}

/* Waits for the children. True if all ended well, or, with `victim`, one was killed: then the others are too. */
static bool
children_wait(Run *run, bool victim)
{
	uint32_t left = run->torture.options.processes;

	while (left > 0)
	{
		int state;
		pid_t pid = -1;
		uint32_t i;

		for (i = 0; i < run->torture.options.processes && pid <= 0; i++)
			if (run->children[i] > 0)
				pid = waitpid(run->children[i], &state, WNOHANG);
		if (pid <= 0)
		{
			if (test_now_us() > run->deadline)
			{
				fprintf(stderr, "the processes do not end\n");
				if (getenv("TORTURE_HANG") != NULL)
					pause();
				children_kill(run);
				return false;
			}
			workers_tend(run);
			test_sleep_us(1000);
			continue;
		}
		run->children[i - 1] = 0;
		left--;
		if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
			continue;
		children_kill(run);
		if (victim && WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL)
			return true;
		fprintf(stderr, "process %u ended with state %x\n", i - 1, (unsigned) state);
		return false;
	}
	return true;
}

/* After a crash: the next incarnation, nothing held by anybody. */
static void
run_attach(Run *run)
{
	test_instance_attach(&run->domains[0]);
	if (run->torture.options.domains > 1)
		tree_shared_reset(run->domains[1].shared);
	run->domains[1].instance = run->domains[0].instance;
	run->domains[1].incarnation = run->domains[0].incarnation;
	memset(run->domains[0].environment, 0, sizeof(TestEnvironment));
}

/* One life of all processes, and what is left then. */
static bool
run_life(Run *run, uint32_t life, bool crash)
{
	const TortureOptions *o = &run->torture.options;
	bool good;

	if (test_threads)
		good = threads_live(run, o->seed);
	else
	{
		children_start(run, o->seed + life * 1000003ull, crash ? (int) (life % o->processes) : -1);
		good = children_wait(run, crash);
	}
	if (crash)
		run_attach(run);
	run->torture.replicas_doubtful = crash;
	if (good && o->replicas && run->torture.replica_state == TREE_REPLICAS_BOTH)
		good = torture_settle_replicas(&run->torture, &run->domains[0], o->processes);
	return good && torture_settle(&run->torture, &run->domains[0], o->processes);
}

/* The home is given up: what is left is the same, and so it is after other lives. */
static bool
run_on_replicas(Run *run)
{
	const TortureOptions *o = &run->torture.options;
	bool good;

	run->torture.replica_state = TREE_REPLICAS_SECOND;
	for (uint32_t i = 0; i < o->domains; i++)
		torture_give_up_home(&run->torture, &run->domains[i], o->processes);
	good = torture_settle(&run->torture, &run->domains[0], o->processes);
	for (uint32_t life = 0; life <= o->crashes / 2 && good; life++)
		good = run_life(run, o->crashes + 1 + life, o->crashes > 0);
	return good;
}

/* Whether entries have gone by all of their ways; says how many have. */
static bool
unique_keys_proven(const UniqueKeys *keys)
{
	printf("unique: %llu entries by calls of many, %llu numbers checked, %llu of them had a row\n",
	       (unsigned long long) keys->together, (unsigned long long) keys->checked,
	       (unsigned long long) keys->conflicts);
	return keys->together > 0 && keys->checked > 0 && keys->conflicts > 0 && keys->conflicts < keys->checked;
}

static bool
run_once(const TortureOptions *options)
{
	Run run;
	const TortureOptions *o = &run.torture.options;
	const TreeCounters *c = &run.torture.counters;
	const TreeStatistics *s = &run.torture.statistics;
	uint64_t merged, folded, reclaimed, given;
	bool good = true;
	uint64_t begin = test_now_us();

	memset(&run, 0, sizeof(run));
	run.torture.options = *options;
	if (o->domains == 0)
		run.torture.options.domains = 1;
	if (o->nodes == 0)
		run.torture.options.nodes = 1;
	run.deadline = begin + RUN_SECONDS * 1000000ull;
	torture_plan(&run.torture);
	run_start(&run);
	for (uint32_t life = 0; life <= o->crashes && good; life++)
		good = run_life(&run, life, o->crashes > 0);
	if (good && o->replicas)
		good = run_on_replicas(&run);
	if (o->unique)
		good = good && unique_keys_proven(run.torture.unique);
	merged = *run.torture.merged;
	folded = *run.torture.folded;
	reclaimed = *run.torture.reclaimed;
	given = *run.torture.given;
	run_stop(&run);
	printf("%s %-20s seed %llu, %llu ms: %llu entries, %llu leaves, %llu chains, %llu lookups, %llu inserts, "
	       "%llu"
	       " removals, %llu splits, %llu merged, %llu of them with entries, %llu bytes found free, %llu "
	       "given back, height %u, %llu "
	       "handovers, %llu torn "
	       "reads\n",
	       good ? "ok     " : "FAILED ", o->name != NULL ? o->name : "given", (unsigned long long) o->seed,
	       (unsigned long long) ((test_now_us() - begin) / 1000), (unsigned long long) s->entries,
	       (unsigned long long) s->leaves, (unsigned long long) c->round_trips,
	       (unsigned long long) c->lookups, (unsigned long long) c->inserts, (unsigned long long) c->deletes,
	       (unsigned long long) (c->leaf_splits + c->inner_splits + c->root_splits),
	       (unsigned long long) merged, (unsigned long long) folded, (unsigned long long) reclaimed,
	       (unsigned long long) given, s->height, (unsigned long long) c->handovers,
	       (unsigned long long) c->torn_reads);
	if (o->switches || o->leaves)
		techniques_print(&run.techniques);
	fflush(stdout);
	if (!good)
		rerun_help(o);
	return good;
}

int
main(int argc, char **argv)
{
	static const struct option names[] = {
		{"name", required_argument, NULL, 'n'},
		{"seed", required_argument, NULL, 's'},
		{"space", required_argument, NULL, 'k'},
		{"processes", required_argument, NULL, 'p'},
		{"domains", required_argument, NULL, 'd'},
		{"nodes", required_argument, NULL, 'm'},
		{"operations", required_argument, NULL, 'o'},
		{"entries", required_argument, NULL, 'e'},
		{"range", required_argument, NULL, 'r'},
		{"delay", required_argument, NULL, 'y'},
		{"crashes", required_argument, NULL, 'c'},
		{"tear", no_argument, NULL, 't'},
		{"tear-words", no_argument, NULL, 'W'},
		{"lose", no_argument, NULL, 'l'},
		{"stop", no_argument, NULL, 'x'},
		{"merge", no_argument, NULL, 'f'},
		{"give", no_argument, NULL, 'g'},
		{"replicas", no_argument, NULL, 'C'},
		{"workers", required_argument, NULL, 'w'},
		{"lose-below", no_argument, NULL, 'b'},
		{"deaths", required_argument, NULL, 'a'},
		{"switches", no_argument, NULL, 'i'},
		{"leaves", no_argument, NULL, 'L'},
		{"unique", no_argument, NULL, 'U'},
		{"rounds", required_argument, NULL, 'u'},
		{"network", no_argument, NULL, 'q'},
		{"verbs", required_argument, NULL, 'V'},
		{"beside", required_argument, NULL, 'B'},
		{"threads", no_argument, NULL, 'T'},
		{NULL, 0, NULL, 0},
	};
	TortureOptions given = {.processes = 4, .operations = 1000, .entries = 500, .range = 1000, .seed = 1};
	const char *name = NULL;
	uint64_t rounds = 1;
	int passed = 0, failed = 0, option;
	bool own = false;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
	{
		own = own || strchr("nsuqTVB", option) == NULL;
		switch (option)
		{
			case 'n':
				name = optarg;
				break;
			case 'V':
				setenv("FABRIC_TEST_VERBS", optarg, 1);
				break;
			case 'B':
				setenv("FABRIC_TEST_BESIDE", optarg, 1);
				break;
			case 's':
				given.seed = argument_number(optarg);
				break;
			case 'k':
				given.space = (KeySpaceKind) argument_number(optarg);
				break;
			case 'p':
				given.processes = (uint32_t) argument_number(optarg);
				break;
			case 'd':
				given.domains = (uint32_t) argument_number(optarg);
				break;
			case 'm':
				given.nodes = (uint32_t) argument_number(optarg);
				break;
			case 'o':
				given.operations = (uint32_t) argument_number(optarg);
				break;
			case 'e':
				given.entries = (uint32_t) argument_number(optarg);
				break;
			case 'r':
				given.range = argument_number(optarg);
				break;
			case 'y':
				given.delay_us = (uint32_t) argument_number(optarg);
				break;
			case 'c':
				given.crashes = (uint32_t) argument_number(optarg);
				break;
			case 't':
				given.tear = true;
				break;
			case 'W':
				given.tear_words = true;
				break;
			case 'l':
				given.lose = true;
				break;
			case 'f':
				given.merge = true;
				break;
			case 'g':
				given.give = true;
				break;
			case 'C':
				given.replicas = true;
				break;
			case 'x':
				given.stop = true;
				break;
			case 'w':
				given.workers = (uint32_t) argument_number(optarg);
				break;
			case 'b':
				given.lose_below = true;
				break;
			case 'a':
				given.deaths = (uint32_t) argument_number(optarg);
				break;
			case 'i':
				given.switches = true;
				break;
			case 'L':
				given.leaves = true;
				break;
			case 'U':
				given.unique = true;
				break;
			case 'u':
				rounds = argument_number(optarg);
				break;
			case 'q':
				test_use_network();
				break;
			case 'T':
				test_threads = true;
				break;
			default:
				return 2;
		}
	}
	/* What kills processes kills all threads. */
	if (test_threads && (given.crashes > 0 || given.workers > 0))
		return 2;
	/* Of numbers that ascend, or are each process's own, none has two rows. */
	if (given.unique && (given.range == 0 || given.merge || given.domains > 1))
		return 2;
	for (uint64_t round = 0; round < rounds; round++)
	{
		for (size_t i = 0; !own && i < (test_threads ? torture_threaded_count : torture_standard_count); i++)
		{
			TortureOptions o = test_threads ? torture_threaded[i] : torture_standard[i];

			if (name != NULL && strcmp(name, o.name) != 0)
				continue;
			o.seed = given.seed + round;
			o.operations /= TEST_SLOWNESS;
			o.crashes = (o.crashes + TEST_SLOWNESS - 1) / TEST_SLOWNESS;
			if (run_once(&o))
				passed++;
			else
				failed++;
		}
		if (own)
		{
			if (run_once(&given))
				passed++;
			else
				failed++;
			given.seed++;
		}
	}
	if (passed + failed == 0)
	{
		fprintf(stderr, "no run is named %s\n", name);
		return 2;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed == 0 ? 0 : 1;
}
