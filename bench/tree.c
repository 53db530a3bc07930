/*
 * tree.c
 *		The tree without PostgreSQL: nanoseconds and counters of inserts, lookups and scans over shared memory.
 *
 * Usage: tree [entries [copies] [network] [stamps]]		(default 1,000,000 random 8-byte keys)
 *		copies: each node twice, on two memory nodes.  network: over tcp with keys in place of shared memory.
 *		stamps: each insert comes behind a later end of WAL, as PostgreSQL's do, and so stamps its leaf anew.
 * The last lines are what the look at the shape of each node that is read costs (tree/node/shape.c).
 * Build and run: make -C bench && /tmp/sherman-bench/tree
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test/environment.h"
#include "tree/node/node.h"
#include "require.h"

/* Node memory and cache for 10^7 entries. */
#define NODE_MEMORY_BYTES (1ull << 30)
#define CACHE_BYTES (64ull << 20)
/* Four places for each of 10^6 keys. */
#define ENTRY_CACHE_BYTES (64ull << 20)

/* How often more than once each node is looked at, so that a few nanoseconds become more than the noise. */
#define SHAPE_REPEATS 16

/* The linker sends calls of node_has_shape() here (Makefile). */
extern bool __real_node_has_shape(const NodeGeometry *g, const uint64_t *node);
extern bool __wrap_node_has_shape(const NodeGeometry *g, const uint64_t *node);

static int shape_repeats;
static uint64_t shape_looks;

bool
__wrap_node_has_shape(const NodeGeometry *g, const uint64_t *node)
{
	bool good = __real_node_has_shape(g, node);

	shape_looks++;
	for (int i = 0; i < shape_repeats; i++)
		good = __real_node_has_shape(g, node) && good;
	return good;
}

static uint64_t
mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdull;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

static TreeKey
key_of(uint64_t i)
{
	TreeKey key;

	memset(&key, 0, sizeof(key));
	key.norm[0] = mix(i);
	key.block = (uint32_t) (i / 200);
	key.offset = (uint16_t) (i % 200 + 1);
	return key;
}

static void
print_line(const char *what, uint64_t began_us, uint64_t count, const TreeClient *client,
           TreeCounters *before)
{
	uint64_t took = test_now_us() - began_us;
	TreeCounters now;

	tree_client_counters(client, &now);
	printf("%-10s %8.1f ns each, %.3f round trips, %.1f bytes read, %.1f written, splits %" PRIu64
	       ", cache misses %" PRIu64 "\n",
	       what, (double) took * 1000 / (double) count,
	       (double) (now.round_trips - before->round_trips) / (double) count,
	       (double) (now.read_bytes - before->read_bytes) / (double) count,
	       (double) (now.written_bytes - before->written_bytes) / (double) count,
	       now.leaf_splits - before->leaf_splits, now.cache_misses - before->cache_misses);
	*before = now;
}

static void
look_up_all(Tree *tree, const TreeClient *client, uint64_t entries)
{
	const TreeBatch *batch;
	TreeScan *scan;

	require(tree_scan_open(tree, &scan), client);
	for (uint64_t i = 0; i < entries; i++)
	{
		TreeBound start, stop;

		memset(&start, 0, sizeof(start));
		start.key = key_of(mix(i) % entries);
		start.norm_bits_valid = 1;
		start.norm_length = 8;
		start.norm_exact = true;
		start.side = -1;
		stop = start;
		stop.side = 1;
		require(tree_scan_seek(scan, TREE_FORWARD, &start, &stop), client);
		require(tree_scan_next(scan, &batch), client);
		if (batch->count != 1)
			require(TREE_DAMAGED, client);
	}
	tree_scan_close(scan);
}

/* tree_find(): the first time by leaves, the second by what was remembered. */
static void
bench_find(Tree *tree, const TreeClient *client, uint64_t entries, TreeCounters *before, const char *what)
{
	uint64_t began = test_now_us();
	TreeScan *scan;

	require(tree_scan_open(tree, &scan), client);
	for (uint64_t i = 0; i < entries; i++)
	{
		TreeKey key = key_of(mix(i) % entries);
		TreeFound found;

		require(tree_find(scan, &key, &found), client);
		if (found.block != key.block || found.offset != key.offset)
			require(TREE_DAMAGED, client);
	}
	tree_scan_close(scan);
	print_line(what, began, entries, client, before);
}

static void
scan_all(Tree *tree, const TreeClient *client, uint64_t entries, TreeDirection direction)
{
	const TreeBatch *batch;
	uint64_t seen = 0;
	TreeStatus status;
	TreeScan *scan;

	require(tree_scan_open(tree, &scan), client);
	require(tree_scan_seek(scan, direction, NULL, NULL), client);
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
		seen += (uint64_t) batch->count;
	if (status != TREE_END)
		require(status, client);
	tree_scan_close(scan);
	if (seen != entries)
		require(TREE_DAMAGED, client);
}

static void
scan_forward(Tree *tree, const TreeClient *client, uint64_t entries)
{
	scan_all(tree, client, entries, TREE_FORWARD);
}

static void
scan_backward(Tree *tree, const TreeClient *client, uint64_t entries)
{
	scan_all(tree, client, entries, TREE_BACKWARD);
}

/* Reads each entry once. */
typedef void Pass(Tree *tree, const TreeClient *client, uint64_t entries);

static void
bench_pass(Pass *pass, Tree *tree, const TreeClient *client, uint64_t entries, TreeCounters *before,
           const char *what)
{
	uint64_t began = test_now_us();

	pass(tree, client, entries);
	print_line(what, began, entries, client, before);
}

/* The pass as it is, and once more with many looks at each node: the difference is theirs. */
static void
bench_shape(Pass *pass, Tree *tree, const TreeClient *client, uint64_t entries, const char *what)
{
	double plain, more, looks, ns;
	uint64_t began = test_now_us();

	shape_looks = 0;
	pass(tree, client, entries);
	plain = (double) (test_now_us() - began);
	looks = (double) shape_looks;
	shape_repeats = SHAPE_REPEATS;
	began = test_now_us();
	pass(tree, client, entries);
	more = (double) (test_now_us() - began);
	shape_repeats = 0;
	ns = (more - plain) * 1000 / (SHAPE_REPEATS * looks);
	printf("%-10s shape of %.3f nodes, %.1f ns each: %.1f %% of its time\n", what, looks / (double) entries,
	       ns, ns * looks / (plain * 10));
}

static bool
has_word(int count, char **arguments, const char *word)
{
	for (int i = 2; i < count; i++)
		if (strcmp(arguments[i], word) == 0)
			return true;
	return false;
}

/* Makes the tree, and opens it. */
static Tree *
tree_make(TestClient *client, const TreeFormat *format, bool replicas)
{
	TreeRecord record;
	uint32_t copy;
	Tree *tree;

	if (replicas)
		test_replicated_create(client, format, &record);
	else
		test_tree_create(client, format, &record);
	require(tree_open(client->tree, record.tree, record.root, format, NULL, NULL, &tree), client->tree);
	if (tree_record_replica(&record, &copy))
		require(tree_set_replica(tree, copy, TREE_REPLICAS_BOTH, false), client->tree);
	return tree;
}

int
main(int count, char **arguments)
{
	bool replicas = has_word(count, arguments, "copies");
	bool positions = has_word(count, arguments, "stamps");
	uint32_t nodes = replicas ? 2 : 1;
	uint64_t entries = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000000;
	TreeFormat format = {.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90};
	TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	TreeCounters before = {0};
	TestInstance instance;
	TestClient client;
	TestNode node[2];
	uint64_t began;
	Tree *tree;
	bool hit;

	test_entry_cache_bytes = ENTRY_CACHE_BYTES;
	if (has_word(count, arguments, "network"))
		test_use_network();
	memset(node, 0, sizeof(node));
	for (uint32_t i = 0; i < nodes; i++)
		test_node_start(&node[i], NODE_MEMORY_BYTES);
	test_instance_start(&instance, node, nodes, 4, CACHE_BYTES);
	test_client_open(&client, &instance, 0);
	tree = tree_make(&client, &format, replicas);
	began = test_now_us();
	for (uint64_t i = 0; i < entries; i++)
	{
		TreeKey key = key_of(i);

		wal.lsn += positions ? 1 : 0;
		require(tree_insert(tree, &key, &wal, &hit), client.tree);
	}
	print_line("insert", began, entries, client.tree, &before);
	bench_pass(look_up_all, tree, client.tree, entries, &before, "lookup");
	bench_find(tree, client.tree, entries, &before, "find");
	bench_find(tree, client.tree, entries, &before, "find again");
	bench_pass(scan_forward, tree, client.tree, entries, &before, "scan");
	bench_pass(scan_backward, tree, client.tree, entries, &before, "backward");
	bench_shape(look_up_all, tree, client.tree, entries, "lookup");
	bench_shape(scan_forward, tree, client.tree, entries, "scan");
	tree_close(tree);
	(void) test_client_close(&client);
	test_instance_stop(&instance);
	for (uint32_t i = 0; i < nodes; i++)
		test_node_stop(&node[i]);
	return 0;
}
