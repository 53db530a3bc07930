/*
 * locks.c
 *		How often do nodes that have nothing to do with each other meet in one lock word?  What more, or narrower, locks could save.
 *
 * Usage: locks [inserts]		(default 5,000 for each of 8 processes)
 * Build and run: make -C bench && /tmp/sherman-bench/locks
 *
 * Two instances of four processes each insert into a tree of their own, over tcp, where a lock is held for a round trip: no two of them
 * ever want the same node, so whatever waits or fails does so for the word alone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test/environment.h"
#include "require.h"

#define NODE_MEMORY_BYTES (256ull << 20)
#define CACHE_BYTES (8ull << 20)
#define INSTANCES 2
#define PROCESSES 8

/* Words of the scratch: how many are ready, and the sums. */
#define READY 0
#define ACQUISITIONS 1
#define WAITS 2
#define RETRIES 3

typedef struct Stage
{
	TestInstance instances[INSTANCES];
	uint64_t *sums; /* the first instance's scratch */
	uint64_t inserts;
} Stage;

static TreeKey
key_of(uint64_t i)
{
	TreeKey key;

	memset(&key, 0, sizeof(key));
	key.norm[0] = (i + 1) * 0x9e3779b97f4a7c15ull;
	key.block = (uint32_t) (i / 200);
	key.offset = (uint16_t) (i % 200 + 1);
	return key;
}

static void
insert_all(int number, void *argument)
{
	const TreeFormat format = {.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90};
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	Stage *stage = argument;
	TreeCounters counters;
	TestClient client;
	TreeRecord record;
	Tree *tree;
	bool hit;

	test_client_open(&client, &stage->instances[number % INSTANCES], (uint32_t) (number / INSTANCES));
	test_tree_create(&client, &format, &record);
	require(tree_open(client.tree, record.tree, record.root, &format, NULL, NULL, &tree), client.tree);
	__atomic_fetch_add(&stage->sums[READY], 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&stage->sums[READY], __ATOMIC_ACQUIRE) < PROCESSES)
		test_sleep_us(200);
	for (uint64_t i = 0; i < stage->inserts; i++)
	{
		TreeKey key = key_of(i);

		require(tree_insert(tree, &key, &wal, &hit), client.tree);
	}
	tree_client_counters(client.tree, &counters);
	__atomic_fetch_add(&stage->sums[ACQUISITIONS], counters.lock_acquisitions + counters.handovers,
	                   __ATOMIC_RELAXED);
	__atomic_fetch_add(&stage->sums[WAITS], counters.lock_waits, __ATOMIC_RELAXED);
	__atomic_fetch_add(&stage->sums[RETRIES], counters.lock_retries, __ATOMIC_RELAXED);
	tree_close(tree);
	test_client_close(&client);
	exit(0);
}

static void
run(TestNode *node, uint32_t lock_words, uint64_t inserts)
{
	Stage stage = {.inserts = inserts};
	const uint64_t *sums;

	test_lock_words = lock_words;
	for (int i = 0; i < INSTANCES; i++)
		test_instance_start(&stage.instances[i], node, 1, PROCESSES / INSTANCES, CACHE_BYTES);
	sums = stage.sums = stage.instances[0].scratch;
	if (test_processes(PROCESSES, insert_all, &stage) != 0)
		exit(1);
	printf("%6" PRIu32 " lock words: %8" PRIu64 " locks, waited within an instance %" PRIu64
	       " times, lost to another instance %" PRIu64 " times: one in %.0f\n",
	       lock_words, sums[ACQUISITIONS], sums[WAITS], sums[RETRIES],
	       (double) sums[ACQUISITIONS] / (double) (sums[WAITS] + sums[RETRIES]));
	for (int i = 0; i < INSTANCES; i++)
		test_instance_stop(&stage.instances[i]);
}

int
main(int count, char **arguments)
{
	uint64_t inserts = count > 1 ? strtoull(arguments[1], NULL, 10) : 5000;
	TestNode node;

	memset(&node, 0, sizeof(node));
	test_use_network();
	test_node_start(&node, NODE_MEMORY_BYTES);
	for (uint32_t words = 256; words <= 16384; words *= 4)
		run(&node, words, inserts);
	test_node_stop(&node);
	return 0;
}
