/*
 * paper.c
 *		One workload of the papers in the simulator's cost model: prints its figures as one line, or as lines
 *		of text.
 *
 *		paper [--nodes N] [--servers N] [--clients N] [--entries N] [--theta T] [--ranks N] [--insert PERCENT]
 *		[--range PERCENT] [--range-entries N] [--warm N] [--operations N] [--seed N] [--host-locks]
 *		[--release-by-write] [--operation-cost NS] [--lock-cost NS] [--line] [--techniques LETTERS]
 *		[--entry-cache KEYS] [--own-trees] [--leaf-cache LEAVES] [--admission PERCENT] [--cache PERCENT]
 *		[--offload rule | always]
 *
 * Techniques: l combined lock and READ, u combined WRITE and unlock, h hierarchy of locks, p passed on, e
 * entry-sized writes, b back-off, a with an adaptive limit; all of them if nothing is said.  With --own-trees each compute server has
 * a tree for itself, and --techniques may name o, too: it is locked in the server's own memory only, which has room for so many leaves.
 * --cache: a compute server has room for so many of the inner nodes that it uses, and not for all.
 *
 * Figures are those of a model in virtual time (doc/internals/simulator.md), but for the last line, which tells how
 * fast this machine simulates.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "../sim/ycsb.h"

/* The paper's cluster and load. */
#define NODES 8
#define SERVERS 8
#define CLIENTS 22
#define ENTRIES 10000000
#define THETA 0.99
/* What a key takes in the entry cache. */
#define ENTRY_CACHE_BYTES 16
/* A leaf of these trees; and what one takes in the leaf cache, with its frame. */
#define LEAF_BYTES 1024
#define LEAF_CACHE_BYTES (LEAF_BYTES + 72)
/*
 * The paper's key space is of so many, which no machine of ours holds: hot keys are as hot as its, in a
 * smaller space.
 */
#define RANKS 1250000000ull
/* About the bytes of an entry in a leaf that is 80 % full; and in inner nodes, which a cache has room for. */
#define LEAF_ENTRY_BYTES 32
#define INNER_ENTRY_BYTES 2
/* Entries below an inner node of these trees: leaves of 45, 132 to a node; and what a node takes in the cache, with its frame. */
#define INNER_ENTRIES (45 * 132)
#define INNER_CACHE_BYTES (4096 + 72)
/* Room beside the entries, of a memory node and of a cache. */
#define NODE_SPARE_BYTES (1ull << 30)
#define CACHE_SPARE_BYTES (4ull << 20)
/*
 * Processor time, as measured on this code (doc/internals/simulator.md): an operation's own work, and a lock that
 * another client of the compute server hands over.
 */
#define OPERATION_NS 500
#define LOCK_NS 100

typedef struct Arguments
{
	YcsbOptions options;
	bool line;
	double cache_percent; /* 0: all inner nodes fit */
} Arguments;

/* A letter for each technique (doc/internals/techniques.md); what is not named is off. */
static void
set_techniques(YcsbOptions *options, const char *letters)
{
	BaselineBackOff back_off = BASELINE_BACK_OFF_NONE;

	if (strchr(letters, 'b') != NULL)
		back_off = strchr(letters, 'a') != NULL ? BASELINE_BACK_OFF_ADAPTIVE : BASELINE_BACK_OFF_SLEEP;
	options->site.techniques = (TreeTechniques){
		.handovers = strchr(letters, 'p') != NULL ? tree_techniques.handovers : 0,
		.exclusive = strchr(letters, 'o') != NULL,
		.offload = options->site.techniques.offload,
	};
	options->site.left_out = (Baseline){
		.read_apart = strchr(letters, 'l') == NULL,
		.writes_apart = strchr(letters, 'u') == NULL,
		.flat_locks = strchr(letters, 'h') == NULL,
		.whole_leaves = strchr(letters, 'e') == NULL,
		.back_off = back_off,
		.overwrite = true,
	};
}

static TreeOffload
offload_of(const char *word)
{
	if (strcmp(word, "always") == 0)
		return TREE_OFFLOAD_ALWAYS;
	if (strcmp(word, "rule") == 0)
		return TREE_OFFLOAD_BY_COST;
	fprintf(stderr, "paper: --offload rule or --offload always, not \"%s\"\n", word);
	exit(2);
}

static void
set_option(Arguments *arguments, int name, const char *value)
{
	YcsbOptions *options = &arguments->options;
	uint64_t number = value == NULL ? 0 : strtoull(value, NULL, 10);

	switch (name)
	{
		case 'n':
			options->site.nodes = (uint32_t) number;
			break;
		case 's':
			options->site.servers = (uint32_t) number;
			break;
		case 'c':
			options->site.clients = (uint32_t) number;
			break;
		case 'e':
			options->entries = number;
			break;
		case 'E':
			options->site.entry_cache_bytes = number * ENTRY_CACHE_BYTES;
			break;
		case 'O':
			options->own_trees = true;
			break;
		case 'L':
			options->site.leaf_cache_bytes = number * LEAF_CACHE_BYTES;
			break;
		case 'C':
			arguments->cache_percent = strtod(value, NULL);
			break;
		case 'D':
			options->site.techniques.offload = offload_of(value);
			break;
		case 'A':
			options->site.leaf_admission_percent = (uint32_t) number;
			break;
		case 'z':
			options->ranks = number;
			break;
		case 't':
			options->theta = strtod(value, NULL);
			break;
		case 'i':
			options->insert_percent = (uint32_t) number;
			break;
		case 'r':
			options->range_percent = (uint32_t) number;
			break;
		case 'R':
			options->range_entries = (uint32_t) number;
			break;
		case 'w':
			options->warm = number;
			break;
		case 'o':
			options->operations = number;
			break;
		case 'S':
			options->seed = number;
			break;
		case 'h':
			options->site.placement.chip_locks = false;
			break;
		case 'W':
			options->site.placement.release_by_write = true;
			break;
		case 'p':
			options->operation_cost = (uint32_t) number;
			break;
		case 'k':
			options->site.lock_cost = (uint32_t) number;
			break;
		case 'T':
			set_techniques(options, value);
			break;
		case 'l':
			arguments->line = true;
			break;
		default:
			exit(2);
	}
}

static void
read_arguments(int argc, char **argv, Arguments *arguments)
{
	static const struct option names[] = {
		{"nodes", required_argument, NULL, 'n'},
		{"servers", required_argument, NULL, 's'},
		{"clients", required_argument, NULL, 'c'},
		{"entries", required_argument, NULL, 'e'},
		{"theta", required_argument, NULL, 't'},
		{"insert", required_argument, NULL, 'i'},
		{"range", required_argument, NULL, 'r'},
		{"range-entries", required_argument, NULL, 'R'},
		{"warm", required_argument, NULL, 'w'},
		{"operations", required_argument, NULL, 'o'},
		{"seed", required_argument, NULL, 'S'},
		{"host-locks", no_argument, NULL, 'h'},
		{"release-by-write", no_argument, NULL, 'W'},
		{"operation-cost", required_argument, NULL, 'p'},
		{"lock-cost", required_argument, NULL, 'k'},
		{"entry-cache", required_argument, NULL, 'E'},
		{"own-trees", no_argument, NULL, 'O'},
		{"leaf-cache", required_argument, NULL, 'L'},
		{"admission", required_argument, NULL, 'A'},
		{"cache", required_argument, NULL, 'C'},
		{"offload", required_argument, NULL, 'D'},
		{"ranks", required_argument, NULL, 'z'},
		{"techniques", required_argument, NULL, 'T'},
		{"line", no_argument, NULL, 'l'},
		{NULL, 0, NULL, 0},
	};
	int name;

	while ((name = getopt_long(argc, argv, "", names, NULL)) != -1)
		set_option(arguments, name, optarg);
}

static double
per_operation(const YcsbResult *result, uint64_t count)
{
	return (double) count / (double) result->operations;
}

static double
mega_per_second(const YcsbResult *result)
{
	return (double) result->operations * 1000 / (double) result->time;
}

static void
print_line(const YcsbResult *result)
{
	const TreeCounters *counters = &result->counters;

	printf("%.3f\t%.2f\t%.2f\t%.2f\t%.3f\t%.1f\t%.1f\t%.3f\t%.3f\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%" PRIu64
	       "\t%" PRIu64 "\t%.3f\t%.3f\t%.1f\n",
	       mega_per_second(result), (double) result->p50 / 1000, (double) result->p90 / 1000,
	       (double) result->p99 / 1000, per_operation(result, counters->round_trips),
	       per_operation(result, counters->read_bytes), per_operation(result, counters->written_bytes),
	       per_operation(result, counters->lock_retries), per_operation(result, counters->handovers),
	       cost_resource_name(result->busiest), result->busiest_part, result->bucket_part,
	       (double) result->p999 / 1000, (double) result->longest / 1000, result->fewest, result->most,
	       per_operation(result, result->offloads.calls), per_operation(result, result->offloads.brought),
	       per_operation(result, result->offloads.bytes));
}

static void
print_text(const YcsbResult *result)
{
	const TreeCounters *counters = &result->counters;
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("simulated: %.3f million operations per second, p50 %.2f us, p90 %.2f us, p99 %.2f us, p99.9 %.2f "
	       "us, longest %.2f us; of a client %" PRIu64 " to %" PRIu64 "\n",
	       mega_per_second(result), (double) result->p50 / 1000, (double) result->p90 / 1000,
	       (double) result->p99 / 1000, (double) result->p999 / 1000, (double) result->longest / 1000,
	       result->fewest, result->most);
	printf(
		"each: %.3f round trips, %.1f bytes read, %.1f written, %.3f lock retries, %.3f lock waits, %.3f "
		"handovers, "
		"%.4f leaf splits, %.4f rewrites, %.4f cache misses, %.4f leaves at hand; %.4f calls, %.4f with the "
		"leaf, %.1f bytes answered\n",
		per_operation(result, counters->round_trips), per_operation(result, counters->read_bytes),
		per_operation(result, counters->written_bytes), per_operation(result, counters->lock_retries),
		per_operation(result, counters->lock_waits), per_operation(result, counters->handovers),
		per_operation(result, counters->leaf_splits), per_operation(result, counters->leaf_rewrites),
		per_operation(result, counters->cache_misses), per_operation(result, result->leaf_hits),
		per_operation(result, result->offloads.calls), per_operation(result, result->offloads.brought),
		per_operation(result, result->offloads.bytes));
	printf("busiest: %s of host %u, %.0f %% of the time; bucket of atomics: %.0f %%\n",
	       cost_resource_name(result->busiest), result->busiest_host, result->busiest_part * 100,
	       result->bucket_part * 100);
	printf("processor time: loaded in %.2f s; %.2f million operations in %.2f s, %.3f million per second; "
	       "%ld MB of "
	       "memory, %" PRIu64 " MB of node memory; run %016" PRIx64 "\n",
	       result->load_seconds, (double) result->simulated / 1e6, result->run_seconds,
	       (double) result->simulated / 1e6 / result->run_seconds, usage.ru_maxrss / 1024,
	       result->node_memory >> 20, result->hash);
}

/* Of the tree that a compute server uses. */
static uint64_t
inner_nodes(const YcsbOptions *options)
{
	return options->entries / (options->own_trees ? options->site.servers : 1) / INNER_ENTRIES;
}

static void
ended(int signal_number)
{
	ycsb_clean();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

int
main(int argc, char **argv)
{
	Arguments arguments = {.options = {.site = {.nodes = NODES,
	                                            .servers = SERVERS,
	                                            .clients = CLIENTS,
	                                            .placement.chip_locks = true,
	                                            .leaf_cache_leaf_bytes = LEAF_BYTES,
	                                            .lock_cost = LOCK_NS},
	                                   .seed = 1,
	                                   .entries = ENTRIES,
	                                   .theta = THETA,
	                                   .ranks = RANKS,
	                                   .insert_percent = 50,
	                                   .range_entries = 100,
	                                   .warm = 100000,
	                                   .operations = 1000000,
	                                   .operation_cost = OPERATION_NS}};
	YcsbOptions *options = &arguments.options;
	YcsbResult result;

	set_techniques(options, "luhpeba");
	read_arguments(argc, argv, &arguments);
	if (options->site.techniques.exclusive && !options->own_trees)
	{
		fprintf(
			stderr,
			"a tree that several compute servers use cannot be locked in the memory of one: --own-trees\n");
		return 2;
	}
	options->site.node_bytes = options->entries * LEAF_ENTRY_BYTES / options->site.nodes + NODE_SPARE_BYTES;
	options->site.cache_bytes = options->entries * INNER_ENTRY_BYTES + CACHE_SPARE_BYTES;
	if (arguments.cache_percent > 0)
		options->site.cache_bytes =
			(uint64_t) ((double) inner_nodes(options) * arguments.cache_percent / 100 * INNER_CACHE_BYTES);
	signal(SIGABRT, ended);
	signal(SIGINT, ended);
	signal(SIGTERM, ended);
	signal(SIGSEGV, ended);
	ycsb_run(options, &result);
	if (arguments.line)
		print_line(&result);
	else
		print_text(&result);
	return 0;
}
