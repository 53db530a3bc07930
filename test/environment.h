/*
 * environment.h
 *		What the tests of tree/ stand on: memory nodes in child processes, compute instances in shared memory, clients.
 *
 *		TestNode node;
 *		TestInstance instance;
 *		TestClient client;
 *
 *		test_node_start(&node, 64 << 20);
 *		test_instance_start(&instance, &node, 1, 8, 1 << 20);
 *		-- fork(); then in each process, with a slot of its own:
 *		test_client_open(&client, &instance, slot);
 *		... client.tree, client.fabric, client.endpoints[0] ...
 *		test_client_close(&client);
 *		-- in the parent again:
 *		test_instance_stop(&instance);
 *		test_node_stop(&node);
 *
 * Where test_proxies is set (support/proxy_process.h), clients connect through connection workers.
 *
 * Everything that fails prints why and aborts the process: a test without its environment cannot go on.
 * Files lie in a directory of mkdtemp() under /dev/shm (or TMPDIR) and are removed by test_node_stop().
 */
#ifndef SHERMAN_TEST_ENVIRONMENT_H
#define SHERMAN_TEST_ENVIRONMENT_H

#include <sys/types.h>

#include "../tree/tree.h"
#include "support/listen.h"

#define TEST_MAX_SLOTS 64

typedef struct TestNode
{
	pid_t pid; /* the child that serves, 0 = none */
	uint64_t bytes;
	uint32_t max_trees;   /* 0 = the service's default; set before test_node_restart() to change it */
	int drain_ms;         /* what clients have after SIGTERM; likewise */
	uint64_t local_quota; /* of those without a key; 0 = none; likewise */
	char directory[64];
	char memory_path[96];
	char socket_path[96];
	char listen[LISTEN_BYTES]; /* for clients across the network; empty: there are none */
	int reserved;              /* see listen_take() */
	char address[112];         /* for fabric_connect() */
} TestNode;

/* Memory nodes that are started from now on are reached over tcp, with the keys of test_key_file. */
extern void test_use_network(void);

/* Starts a memory node with `bytes` of node memory and waits until it answers. */
extern void test_node_start(TestNode *node, uint64_t bytes);
/* SIGKILL, and waits for its end. The memory stays. */
extern void test_node_kill(TestNode *node);
/* SIGTERM, and waits for its clean end. The memory stays. */
extern void test_node_terminate(TestNode *node);
/* The halves of that: the node drains, and ends. */
extern void test_node_drain(TestNode *node);
extern void test_node_wait(TestNode *node);
/* Starts it again over the same memory. */
extern void test_node_restart(TestNode *node);
/* Terminates it if it runs, and removes its files. */
extern void test_node_stop(TestNode *node);

/* One slot's place to sleep and its flags, in shared memory. */
typedef struct TestSlot
{
	uint32_t wakes;  /* futex word */
	uint32_t stop;   /* should_stop() answers this */
	int32_t holds;   /* hold() calls less resume() calls */
	uint32_t sleeps; /* sleep() calls */
	uint32_t reserved[12];
} TestSlot;

typedef struct TestEnvironment
{
	TestSlot slots[TEST_MAX_SLOTS];
} TestEnvironment;

/* One compute instance: made in the parent before it forks; children use the same mapping. */
typedef struct TestInstance
{
	TestNode *nodes; /* array, owned by the caller */
	uint32_t count;
	uint64_t cluster[2];
	uint32_t instance;
	uint32_t incarnation;
	TestEnvironment *environment;
	TreeShared *shared;
	TreeSharedOptions options;
	const char *key_file;
	uint64_t *scratch; /* TEST_SCRATCH_WORDS zeroed words shared by the processes, for the test's own use */
} TestInstance;

#define TEST_SCRATCH_WORDS (1u << 17)

/* Key file of instances that are started, for memory nodes across the network; NULL: none. */
extern const char *test_key_file;

/* Words of the local lock table of instances that are started: 16384, or 1 to make all nodes share one word. */
extern uint32_t test_lock_words;

/* Their TreeSharedOptions.entry_cache_bytes: little, so that keys share its places. */
extern uint64_t test_entry_cache_bytes;

/* Their TreeSharedOptions.leaf_cache_bytes and what belongs to it: none. */
typedef struct TestLeafCache
{
	uint64_t bytes;
	uint32_t leaf_bytes;
	uint32_t admission_percent;
} TestLeafCache;

extern TestLeafCache test_leaf_cache;

/* Techniques of instances that are started; NULL: all of them. */
extern const TreeTechniques *test_techniques;
/* Of instances that are started: TreeSharedOptions.alone. */
extern bool test_alone;

/* A new cluster identity, attached to all nodes (same incarnation on all). `slots` <= TEST_MAX_SLOTS. */
extern void test_instance_start(TestInstance *instance, TestNode *nodes, uint32_t count, uint32_t slots,
                                uint64_t cache_bytes);
/* The next incarnation of the same cluster: fences all older channels, resets the shared memory. */
extern void test_instance_attach(TestInstance *instance);
extern void test_instance_stop(TestInstance *instance);

typedef struct TestClient
{
	TestInstance *instance;
	uint32_t slot;
	Fabric *fabric;
	FabricEndpoint *endpoints[TREE_MAX_NODES];
	TreeClient *tree;
	uint64_t silence; /* FabricOptions.silence of the fabric and the tree */
} TestClient;

/* Connects and opens a client with this slot, after fork(). An operation has TEST_PATIENCE_US, a chain half. */
extern void test_client_open(TestClient *client, TestInstance *instance, uint32_t slot);
/* Closes it; returns what tree_client_close() said. */
extern TreeStatus test_client_close(TestClient *client);

/*
 * What processes of an instance say to each other by words of its scratch: sets one, waits until it is at
 * least so much.
 */
extern void test_say(TestInstance *instance, int word, uint64_t value);
extern void test_await(const TestInstance *instance, int word, uint64_t least);
/*
 * Waits until so many processes are here: else the first is done before the last begins. The word is theirs
 * alone.
 */
extern void test_meet(TestInstance *instance, int word, uint64_t count);

/* The TreeEnvironment of an instance, as test_client_open() uses it. */
extern TreeEnvironment test_environment(TestInstance *instance);

/* Creates a tree of this format on node 0, or aborts. */
extern void test_tree_create(TestClient *client, const TreeFormat *format, TreeRecord *record);
/* The same for a tree with copies. */
extern void test_replicated_create(TestClient *client, const TreeFormat *format, TreeRecord *record);
/* Entries that a scan of the whole tree finds; aborts if it does not come to the end. */
extern uint64_t test_tree_entries(Tree *tree);

/*
 * Bodies of test_processes() run as threads of this process: for the thread sanitizer, which sees nothing
 * between processes. A body that fails ends them all.
 */
extern bool test_threads;
/* Whether this is the command line NAME --threads; then it is so from now on. */
extern bool test_threads_wanted(int argc, char **argv);

/* Runs `body` in `count` child processes, numbered from 0; waits; returns how many did not end with exit(0). */
extern int test_processes(int count, void (*body)(int number, void *argument), void *argument);

/* How long tests wait for what must come: far longer than it takes, as the machine may be busy. */
#define TEST_PATIENCE_US 60000000u

extern uint64_t test_now_us(void);
extern void test_sleep_us(uint64_t microseconds);

#endif /* SHERMAN_TEST_ENVIRONMENT_H */
