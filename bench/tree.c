/*
 * tree.c
 *		The tree without PostgreSQL: nanoseconds and counters of inserts, lookups and scans over shared memory.
 *
 * Usage: tree [entries [copies] [network] [stamps]]		(default 1,000,000 random 8-byte keys)
 *		copies: each node twice, on two memory nodes.  network: over tcp with keys in place of shared memory.
 *		stamps: each insert comes behind a later end of WAL, as PostgreSQL's do, and so stamps its leaf anew.
 * Build and run: make -C bench && /tmp/sherman-bench/tree
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test/environment.h"
#include "require.h"

/* Node memory and cache for 10^7 entries. */
#define NODE_MEMORY_BYTES (1ull << 30)
#define CACHE_BYTES (64ull << 20)
/* Four places for each of 10^6 keys. */
#define ENTRY_CACHE_BYTES (64ull << 20)

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
bench_lookups(Tree *tree, const TreeClient *client, uint64_t entries, TreeCounters *before)
{
	uint64_t began = test_now_us();
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
	print_line("lookup", began, entries, client, before);
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
bench_scan(Tree *tree, const TreeClient *client, uint64_t entries, TreeCounters *before,
           TreeDirection direction)
{
	uint64_t began = test_now_us(), seen = 0;
	const TreeBatch *batch;
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
	print_line(direction == TREE_FORWARD ? "scan" : "backward", began, entries, client, before);
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
tree_make(TestClient *client, const TreeFormat *format, bool copies)
{
	TreeRecord record;
	uint32_t copy;
	Tree *tree;

	if (copies)
		test_copied_create(client, format, &record);
	else
		test_tree_create(client, format, &record);
	require(tree_open(client->tree, record.tree, record.root, format, NULL, NULL, &tree), client->tree);
	if (tree_record_copy(&record, &copy))
		require(tree_copied(tree, copy, TREE_COPIES_BOTH, false), client->tree);
	return tree;
}

int
main(int count, char **arguments)
{
	bool copies = has_word(count, arguments, "copies");
	bool stamps = has_word(count, arguments, "stamps");
	uint32_t nodes = copies ? 2 : 1;
	uint64_t entries = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000000;
	TreeFormat format = {.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90};
	TreeStamp stamp = {.epoch = 1, .lsn = 1};
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
	tree = tree_make(&client, &format, copies);
	began = test_now_us();
	for (uint64_t i = 0; i < entries; i++)
	{
		TreeKey key = key_of(i);

		stamp.lsn += stamps ? 1 : 0;
		require(tree_insert(tree, &key, &stamp, &hit), client.tree);
	}
	print_line("insert", began, entries, client.tree, &before);
	bench_lookups(tree, client.tree, entries, &before);
	bench_find(tree, client.tree, entries, &before, "find");
	bench_find(tree, client.tree, entries, &before, "find again");
	bench_scan(tree, client.tree, entries, &before, TREE_FORWARD);
	bench_scan(tree, client.tree, entries, &before, TREE_BACKWARD);
	tree_close(tree);
	(void) test_client_close(&client);
	test_instance_stop(&instance);
	for (uint32_t i = 0; i < nodes; i++)
		test_node_stop(&node[i]);
	return 0;
}
