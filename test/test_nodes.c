/*
 * test_nodes.c
 *		Trees on several memory nodes: what is where, connections on first use, memory nodes that are closed or gone.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tree/client/directory.h"
#include "support/fixture.h"
#include "tree/lock/local_lock_table.h"
#include "support/keyspace.h"
#include "tree/space/allocate.h"

#define NODES 3

/* Enough for each memory node to have several extents of each tree. */
#define MANY_KEYS 60000
#define MANY_TREES 900

/* What is let off the average, on either side: an extent is up to a quarter of what the tree has. */
#define BALANCE_PERCENT 25

static uint32_t connects[NODES]; /* calls of connect() */
static bool away[NODES];         /* what it says */

/* environment.connect(): hands out the connections of the test's client. */
static FabricEndpoint *
count_connect(void *argument, uint32_t node, char *detail)
{
	connects[node]++;
	if (!away[node])
		return client.endpoints[node];
	strcpy(detail, "gone fishing");
	return NULL;
}

/* A client that connects on first use, in place of the environment's. */
static void
client_reopen(void)
{
	TreeClientOptions options;

	assert_int_equal(tree_client_close(client.tree), TREE_OK);
	memset(&options, 0, sizeof(options));
	options.shared = instance.shared;
	options.slot = 0;
	options.environment = test_environment(&instance);
	options.environment.connect = count_connect;
	options.nodes = NODES;
	options.operation_timeout_ms = 5000;
	assert_int_equal(tree_client_open(&options, &client.tree), TREE_OK);
}

static int
setup(void **state)
{
	fixture_open(&(FixtureOptions){.nodes = NODES});
	client_reopen();
	memset(connects, 0, sizeof(connects));
	memset(away, 0, sizeof(away));
	return 0;
}

/* A tree whose home is `home`, as no other memory node is open while it is made. */
static void
tree_make(uint32_t home, TreeRecord *record, Tree **tree)
{
	for (uint32_t i = 0; i < NODES; i++)
		if (i != home)
			tree_node_close(instance.shared, i);
	test_tree_create(&client, &narrow, record);
	assert_int_equal(tree_home(record->root), home);
	for (uint32_t i = 0; i < NODES; i++)
		tree_node_open(client.tree, i, 0);
	assert_int_equal(tree_open(client.tree, record->tree, record->root, &narrow, NULL, NULL, tree), TREE_OK);
}

static TreeKey
key_of(uint64_t number)
{
	TreeKey key;

	memset(&key, 0, sizeof(key));
	key.norm[0] = number * 0x9e3779b97f4a7c15ull;
	key.block = (uint32_t) number;
	key.offset = 1;
	return key;
}

static TreeStatus
insert(Tree *tree, uint64_t number)
{
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	TreeKey key = key_of(number);
	bool hit;

	return tree_insert(tree, &key, &wal, &hit);
}

/* Bytes of all trees at each memory node; how many memory nodes have some. */
static uint32_t
bytes_used(uint64_t bytes[NODES])
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < NODES; i++)
	{
		TreeNodeStatus status;

		assert_int_equal(tree_node_status(client.tree, i, &status), TREE_OK);
		bytes[i] = status.bytes_used;
		used += bytes[i] != 0;
	}
	return used;
}

static void
require_balance(void)
{
	uint64_t bytes[NODES], sum = 0;

	assert_int_equal(bytes_used(bytes), NODES);
	for (int i = 0; i < NODES; i++)
		sum += bytes[i];
	for (int i = 0; i < NODES; i++)
	{
		assert_true(bytes[i] * NODES * 100 <= sum * (100 + BALANCE_PERCENT));
		assert_true(bytes[i] * NODES * 100 >= sum * (100 - BALANCE_PERCENT));
	}
}

/* Nothing is connected before it is used, and each memory node once. */
static void
test_connects_on_use(void **state)
{
	TreeRecord record;
	Tree *tree;

	assert_int_equal(connects[0] + connects[1] + connects[2], 0);
	tree_make(1, &record, &tree);
	assert_int_equal(insert(tree, 1), TREE_OK);
	assert_int_equal(connects[0] + connects[2], 0);
	assert_int_equal(connects[1], 1);
	assert_int_equal(tree_client_connect(client.tree, 2), TREE_OK);
	assert_int_equal(connects[2], 1);
	tree_client_reconnect(client.tree, 1);
	assert_int_equal(insert(tree, 2), TREE_OK);
	assert_int_equal(connects[1], 2);

	away[0] = true;
	assert_int_equal(tree_client_connect(client.tree, 0), TREE_UNREACHABLE);
	assert_non_null(strstr(tree_detail(client.tree), "gone fishing"));
	tree_close(tree);
}

/* Loads keys in order into a tree with nothing in it. */
static void
load(Tree *tree, uint64_t count)
{
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	TreeBulk *bulk;

	assert_int_equal(tree_bulk_open(tree, &wal, &bulk), TREE_OK);
	for (uint64_t i = 0; i < count; i++)
	{
		TreeKey key = key_of(i);

		key.norm[0] = i;
		assert_int_equal(tree_bulk_add(bulk, &key), TREE_OK);
	}
	assert_int_equal(tree_bulk_finish(bulk), TREE_OK);
}

/* A memory node that is open, but does not let us in yet: a load does without it. */
static void
test_load_without(void **state)
{
	TreeRecord record;
	Tree *tree;
	uint64_t bytes[NODES];

	tree_make(0, &record, &tree);
	away[2] = true;
	load(tree, 10 * MANY_KEYS);
	assert_int_equal(test_tree_entries(tree), 10 * MANY_KEYS);
	tree_close(tree);
	away[2] = false;
	assert_int_equal(bytes_used(bytes), 2);
	assert_int_equal(bytes[2], 0);
}

/* A loaded tree, and one that grew by inserts, lie on all memory nodes in like parts, and their records say so. */
static void
test_balance(void **state)
{
	TreeRecord record;
	Tree *tree;

	tree_make(2, &record, &tree);
	load(tree, 10 * MANY_KEYS);
	require_balance();
	tree_close(tree);
	assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);

	tree_make(0, &record, &tree);
	for (uint64_t i = 0; i < 5 * MANY_KEYS; i++)
		assert_int_equal(insert(tree, i), TREE_OK);
	require_balance();
	assert_int_equal(tree_record_read(client.tree, record.tree, tree_home(record.root), &record), TREE_OK);
	for (int i = 0; i < NODES; i++)
		assert_int_equal(record.members[i], fabric_capabilities(client.endpoints[i])->node_uuid[0]);
	for (int i = NODES; i < TREE_MAX_NODES; i++)
		assert_int_equal(record.members[i], 0);
	tree_close(tree);
}

/* A node that is taken lies where the process is connected, though it took no chain: it is written under a lock, when it is late for that. */
static void
test_taken_where_connected(void **state)
{
	TreeRecord record;
	Tree *tree;
	uint64_t pointer, generation;
	bool fresh = false;

	tree_make(0, &record, &tree);
	for (uint64_t i = 0; i < 5 * MANY_KEYS; i++)
		assert_int_equal(insert(tree, i), TREE_OK);
	for (uint32_t i = 0; i < NODES; i++)
	{
		tree_close(tree);
		client_reopen();
		memset(connects, 0, sizeof(connects));
		assert_int_equal(tree_open(client.tree, record.tree, record.root, &narrow, NULL, NULL, &tree),
		                 TREE_OK);
		assert_int_equal(allocate_node(tree, i, 0, &pointer, &generation), TREE_OK);
		assert_int_equal(connects[pointer_memory_node(pointer)], 1);
		/* None is taken where the process is not let in. */
		away[pointer_memory_node(pointer)] = true;
		tree_client_reconnect(client.tree, pointer_memory_node(pointer));
		fresh |= pointer_memory_node(pointer) != 0;
		for (int more = 0; more < 4; more++)
		{
			uint64_t other;

			assert_int_equal(allocate_node(tree, pointer_memory_node(pointer), 0, &other, &generation),
			                 TREE_OK);
			assert_int_not_equal(pointer_memory_node(other), pointer_memory_node(pointer));
		}
		away[pointer_memory_node(pointer)] = false;
	}
	assert_true(fresh);
	tree_close(tree);
}

/* A tree begins on any memory node that is open, on each as often. */
static void
test_homes(void **state)
{
	TreeRecord record;
	uint32_t homes[NODES] = {0};

	tree_node_close(instance.shared, 0);
	for (int i = 0; i < MANY_TREES; i++)
	{
		test_tree_create(&client, &narrow, &record);
		homes[tree_home(record.root)]++;
		assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
	}
	assert_int_equal(homes[0], 0);
	/* Six times the standard deviation. */
	assert_in_range(homes[1], MANY_TREES / 2 - 90, MANY_TREES / 2 + 90);
}

/* A record names a memory node before the tree has anything there, and keeps to it. */
static void
test_members(void **state)
{
	TreeRecord record, read, change;
	DirectoryExtent extent;
	Tree *tree;

	tree_make(0, &record, &tree);
	assert_int_not_equal(record.members[0], 0);
	assert_int_equal(record.members[1], 0);
	assert_int_equal(directory_extent(client.tree, 1, record.tree, 0, 0, &extent), TREE_OK);
	assert_int_equal(tree_record_read(client.tree, record.tree, tree_home(record.root), &read), TREE_OK);
	assert_int_equal(read.members[0], record.members[0]);
	assert_int_not_equal(read.members[1], 0);
	assert_int_equal(read.members[2], 0);
	assert_int_equal(read.bytes, 2 * EXTENT_MIN_BYTES);

	memset(&change, 0, sizeof(change));
	change.tree = record.tree;
	change.root = record.root;
	change.members[1] = read.members[1] ^ 1;
	assert_int_equal(tree_record_update(client.tree, &change), TREE_INVALID);
	assert_int_equal(tree_record_read(client.tree, record.tree, tree_home(record.root), &read), TREE_OK);
	assert_int_not_equal(read.members[1], change.members[1]);
	tree_close(tree);
}

/* A closed memory node is not used: trees elsewhere go on without it, those on it fail at once and are whole afterwards. */
static void
test_closed(void **state)
{
	TreeRecord home, other;
	Tree *on_home, *on_other;
	uint64_t bytes[NODES], before[NODES];
	uint64_t failed = 0;

	tree_make(0, &home, &on_home);
	tree_make(1, &other, &on_other);
	for (uint64_t i = 0; i < MANY_KEYS; i++)
		assert_int_equal(insert(on_home, i), TREE_OK);
	(void) bytes_used(before);
	tree_node_close(instance.shared, 0);
	assert_int_equal(insert(on_home, MANY_KEYS), TREE_UNREACHABLE);
	assert_int_equal(tree_client_trouble(client.tree), 0);
	for (uint64_t i = 0; i < MANY_KEYS; i++)
		assert_int_equal(insert(on_other, i), TREE_OK);
	assert_int_equal(test_tree_entries(on_other), MANY_KEYS);
	tree_node_open(client.tree, 0, 0);
	assert_int_equal(bytes_used(bytes), NODES);
	assert_int_equal(bytes[0], before[0]);

	/* One that has a part of the leaves: what lies elsewhere can be changed, the rest is refused. */
	tree_node_close(instance.shared, 2);
	for (uint64_t i = MANY_KEYS; i < 2 * MANY_KEYS; i++)
		failed += insert(on_home, i) != TREE_OK;
	assert_in_range(failed, 1, MANY_KEYS - 1);
	tree_node_open(client.tree, 2, 0);
	/* An insert that could not post the split that it needed has failed, too, and its entry is there. */
	assert_in_range(test_tree_entries(on_home), 2 * MANY_KEYS - failed, 2 * MANY_KEYS - 1);
	for (uint64_t i = 0; i < 2 * MANY_KEYS; i++)
		assert_int_equal(insert(on_home, i), TREE_OK);
	assert_int_equal(test_tree_entries(on_home), 2 * MANY_KEYS);
	tree_close(on_home);
	tree_close(on_other);
}

/* Dropped while a memory node is away: the rest is free at once, its share is seen to have no tree when it is back. */
static void
test_drop_while_away(void **state)
{
	TreeRecord record, share;
	Tree *tree;
	uint64_t bytes[NODES];
	uint32_t position = 0;

	tree_make(0, &record, &tree);
	for (uint64_t i = 0; i < MANY_KEYS; i++)
		assert_int_equal(insert(tree, i), TREE_OK);
	tree_close(tree);
	assert_int_equal(bytes_used(bytes), NODES);
	tree_node_close(instance.shared, 1);
	assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
	assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
	tree_node_open(client.tree, 1, 0);
	assert_int_equal(bytes_used(bytes), 1);
	assert_int_not_equal(bytes[1], 0);
	assert_int_equal(tree_record_list(client.tree, 1, &position, &share), TREE_END);
	assert_int_equal(tree_share_list(client.tree, 1, &position, &share), TREE_OK);
	assert_int_equal(share.tree, record.tree);
	assert_int_equal(share.members[0], record.members[0]);
	assert_int_equal(share.members[1], 0);
	assert_int_equal(tree_share_drop(client.tree, 1, share.tree), TREE_OK);
	assert_int_equal(bytes_used(bytes), 0);

	/* The home is away: nothing is done. */
	tree_make(0, &record, &tree);
	tree_close(tree);
	tree_node_close(instance.shared, 0);
	assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_UNREACHABLE);
	tree_node_open(client.tree, 0, 0);
	assert_int_equal(tree_record_read(client.tree, record.tree, tree_home(record.root), &record), TREE_OK);
}

/* Killed: whoever meets it says so once, and only who asks it. */
static void
test_killed(void **state)
{
	TreeRecord record, other;
	Tree *tree;
	TreeNodeStatus status;

	tree_make(0, &record, &tree);
	assert_int_equal(insert(tree, 1), TREE_OK);
	assert_int_equal(tree_client_connect(client.tree, 1), TREE_OK);
	test_node_kill(&nodes[1]);
	assert_int_equal(tree_node_status(client.tree, 1, &status), TREE_UNREACHABLE);
	assert_int_equal(tree_client_trouble(client.tree), 1u << 1);
	assert_int_equal(tree_client_trouble(client.tree), 0);
	tree_node_close(instance.shared, 1);
	for (int i = 0; i < 8; i++)
	{
		test_tree_create(&client, &narrow, &other);
		assert_int_not_equal(tree_home(other.root), 1);
	}
	for (uint64_t i = 2; i < 10000; i++)
		assert_int_equal(insert(tree, i), TREE_OK);
	assert_int_equal(tree_client_trouble(client.tree), 0);
	tree_close(tree);
	test_node_restart(&nodes[1]);
}

/* Locks the root, cannot unlock it because its memory node was closed meanwhile, and leaves. */
static void
leave_with_lock(int number, void *argument)
{
	const TreeRecord *record = argument;
	uint64_t image[NODE_MAX_BYTES / 8];
	TestClient client;
	LockHandle lock;
	Tree *tree;

	test_client_open(&client, &instance, 1);
	if (tree_open(client.tree, record->tree, record->root, &narrow, NULL, NULL, &tree) != TREE_OK ||
	    lock_and_read(tree, record->root, sizeof(image), image, &lock) != TREE_OK)
		_exit(1);
	tree_node_close(instance.shared, 0);
	if (lock_release(tree, &lock, record->root, NULL, 0) != TREE_UNREACHABLE)
		_exit(2);
	tree_close(tree);
	if (test_client_close(&client) != TREE_OK)
		_exit(3);
	_exit(0);
}

/* Fences the instance at memory node 0, and connects the test's client there anew. */
static void
fence_first(Fabric **fabric)
{
	FabricOptions options = {
		.cluster = {instance.cluster[0], instance.cluster[1]},
		.operation_timeout_ms = 5000,
	};
	FabricEndpoint *endpoint;
	uint32_t instance;

	assert_int_equal(fabric_open(&options, fabric), FABRIC_OK);
	assert_int_equal(fabric_connect(*fabric, nodes[0].address, &endpoint), FABRIC_OK);
	assert_int_equal(fabric_attach(endpoint, false, 1, &instance, &options.incarnation), FABRIC_OK);
	fabric_close(*fabric);
	assert_int_equal(fabric_open(&options, fabric), FABRIC_OK);
	assert_int_equal(fabric_connect(*fabric, nodes[0].address, &client.endpoints[0]), FABRIC_OK);
	tree_client_reconnect(client.tree, 0);
}

/* A process has left with a lock that it could not give back: fencing and opening the memory node frees it for others. */
static void
test_lock_left(void **state)
{
	TreeRecord record;
	Fabric *fabric;
	Tree *tree;

	tree_make(0, &record, &tree);
	assert_int_equal(insert(tree, 1), TREE_OK);
	assert_int_equal(test_processes(1, leave_with_lock, &record), 0);
	fence_first(&fabric);
	tree_node_open(client.tree, 0, 0);
	assert_int_equal(insert(tree, 5), TREE_OK);
	assert_int_equal(test_tree_entries(tree), 2);
	tree_close(tree);
	assert_int_equal(tree_client_close(client.tree), TREE_OK);
	client.tree = NULL;
	fabric_close(fabric);
}

/* ---- a memory node is closed behind the look at it ---- */

static void (*usual_hold)(void *argument);

/* environment.hold(): what an operation notes for whoever closes and opens memory nodes, who has just closed one. */
static void
hold_and_close(void *argument)
{
	usual_hold(argument);
	tree_node_close(instance.shared, 0);
}

static void
close_at_hold(TreeClient *client)
{
	usual_hold = client->options.environment.hold;
	client->options.environment.hold = hold_and_close;
}

/*
 * The memory node is closed when an operation has found it open, and before others can see that it holds something: it records no hold,
 * which would be taken for one that was left.
 */
static void
test_closed_before_hold(void **state)
{
	TreeTechniques *techniques = &client.tree->techniques;
	const LockWaiter *waiter = table_waiter(instance.shared->locks, 0);
	TreeRecord record;
	Tree *tree;

	tree_make(0, &record, &tree);
	for (int alone = 0; alone < 2; alone++)
	{
		uint64_t word;

		techniques->exclusive = alone != 0;
		assert_int_equal(insert(tree, 1), TREE_OK);
		word = waiter->held_word;
		close_at_hold(client.tree);
		assert_int_equal(insert(tree, 2), TREE_UNREACHABLE);
		client.tree->options.environment.hold = usual_hold;
		assert_int_equal(waiter->held_word, word);
		assert_int_equal(waiter->holds, 0);
		tree_node_open(client.tree, 0, 0);
		assert_int_equal(insert(tree, 3), TREE_OK);
	}
	techniques->exclusive = false;
	tree_close(tree);
}

/* Words of the instance's scratch. */
#define LOCKED 0

/* Number 0 passes the root's lock on to number 1, who takes it over when the memory node is closed. */
static void
pass_body(int number, void *argument)
{
	const TreeRecord *record = argument;
	uint64_t image[NODE_MAX_BYTES / 8];
	TestClient client;
	LockHandle lock;
	Tree *tree;

	test_client_open(&client, &instance, (uint32_t) number + 1);
	if (tree_open(client.tree, record->tree, record->root, &narrow, NULL, NULL, &tree) != TREE_OK)
		_exit(1);
	if (number == 0)
	{
		LockTable *table = instance.shared->locks;
		const LockEntry *entry;

		if (lock_and_read(tree, record->root, sizeof(image), image, &lock) != TREE_OK)
			_exit(2);
		test_say(&instance, LOCKED, 1);
		entry = table_entry(table, 0, lock.index);
		while (!entry_has_waiters(entry))
			client.tree->options.environment.sleep(client.tree->options.environment.argument,
			                                       client.tree->slot, 1);
		if (lock_release(tree, &lock, record->root, NULL, 0) != TREE_OK)
			_exit(3);
	}
	else
	{
		test_await(&instance, LOCKED, 1);
		close_at_hold(client.tree);
		if (insert(tree, 2) != TREE_UNREACHABLE || client.tree->holding)
			_exit(4);
	}
	tree_close(tree);
	if (test_client_close(&client) != TREE_OK)
		_exit(5);
	_exit(0);
}

/* A word that was passed on is void where the memory node is closed, and its entry is free: who comes behind the opening has it at once. */
static void
test_closed_before_taken_over(void **state)
{
	TreeRecord record;
	Fabric *fabric;
	Tree *tree;

	tree_make(0, &record, &tree);
	assert_int_equal(insert(tree, 1), TREE_OK);
	assert_int_equal(test_processes(2, pass_body, &record), 0);
	for (uint32_t slot = 0; slot < instance.options.slots; slot++)
		assert_int_equal(table_waiter(instance.shared->locks, slot)->holds, 0);
	fence_first(&fabric);
	tree_node_open(client.tree, 0, 0);
	assert_int_equal(insert(tree, 3), TREE_OK);
	assert_int_equal(test_tree_entries(tree), 2);
	tree_close(tree);
	assert_int_equal(tree_client_close(client.tree), TREE_OK);
	client.tree = NULL;
	fabric_close(fabric);
}

/* ---- a memory node is opened while the others are in use ---- */

#define LOCKERS 3
#define OPENINGS 300

/* Words of the scratch: nobody is to begin at the node that opens; who is inside; it was opened often enough. */
#define OPENING 0
#define INSIDE 8
#define DONE 1

typedef struct BesideTrees
{
	TreeRecord here;
	TreeRecord opened;
} BesideTrees;

static uint64_t *
beside_word(uint32_t word)
{
	return &instance.scratch[word];
}

static void
lock_for(Tree *tree, const TreeRecord *record, uint64_t microseconds)
{
	uint64_t image[NODE_MAX_BYTES / 8];
	LockHandle lock;

	if (lock_and_read(tree, record->root, sizeof(image), image, &lock) != TREE_OK)
		_exit(5);
	test_sleep_us(microseconds);
	if (lock_release(tree, &lock, record->root, NULL, 0) != TREE_OK)
		_exit(2);
}

/* Locks at the node that opens, when it does not, and then at the other one. */
static void
locker_body(int number, const BesideTrees *trees)
{
	uint64_t deadline = test_now_us() + TEST_PATIENCE_US;
	TestClient client;
	Tree *here, *opened;

	test_client_open(&client, &instance, (uint32_t) number);
	if (tree_open(client.tree, trees->here.tree, trees->here.root, &narrow, NULL, NULL, &here) != TREE_OK ||
	    tree_open(client.tree, trees->opened.tree, trees->opened.root, &narrow, NULL, NULL, &opened) !=
	        TREE_OK)
		_exit(1);
	for (uint64_t i = 0; __atomic_load_n(beside_word(DONE), __ATOMIC_SEQ_CST) == 0; i++)
	{
		if (test_now_us() > deadline)
			_exit(4);
		__atomic_store_n(beside_word(INSIDE + (uint32_t) number), 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(beside_word(OPENING), __ATOMIC_SEQ_CST) == 0)
			lock_for(opened, &trees->opened, 0);
		__atomic_store_n(beside_word(INSIDE + (uint32_t) number), 0, __ATOMIC_SEQ_CST);
		test_sleep_us(i % 8 * 20); /* what it locked last is that node still */
		lock_for(here, &trees->here, 100);
	}
	tree_close(here);
	tree_close(opened);
	if (test_client_close(&client) != TREE_OK)
		_exit(3);
}

/* Closes the node when nobody is inside, and opens it. */
static void
opener_body(void)
{
	uint64_t deadline = test_now_us() + TEST_PATIENCE_US;

	for (int i = 0; i < OPENINGS / TEST_SLOWNESS; i++)
	{
		__atomic_store_n(beside_word(OPENING), 1, __ATOMIC_SEQ_CST);
		for (uint32_t locker = 1; locker <= LOCKERS; locker++)
			while (__atomic_load_n(beside_word(INSIDE + locker), __ATOMIC_SEQ_CST) != 0)
			{
				if (test_now_us() > deadline)
					_exit(4);
				test_sleep_us(10);
			}
		tree_node_close(instance.shared, 1);
		tree_node_open(client.tree, 1, 0);
		__atomic_store_n(beside_word(OPENING), 0, __ATOMIC_SEQ_CST);
		test_sleep_us(50);
	}
	__atomic_store_n(beside_word(DONE), 1, __ATOMIC_SEQ_CST);
}

static void
beside_body(int number, void *argument)
{
	if (number == 0)
		opener_body();
	else
		locker_body(number, argument);
}

/* Who held a lock at that node before, and now holds one elsewhere, keeps it. */
static void
test_open_beside_locks(void **state)
{
	BesideTrees trees;
	Tree *tree;

	tree_make(0, &trees.here, &tree);
	tree_close(tree);
	tree_make(1, &trees.opened, &tree);
	tree_close(tree);
	memset(instance.scratch, 0, 64 * sizeof(uint64_t));
	assert_int_equal(test_processes(1 + LOCKERS, beside_body, &trees), 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest threads[] = {
		cmocka_unit_test_setup_teardown(test_open_beside_locks, setup, fixture_stop),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connects_on_use, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_balance, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_load_without, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_taken_where_connected, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_homes, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_members, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_closed, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_drop_while_away, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_killed, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_lock_left, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_closed_before_hold, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_closed_before_taken_over, setup, fixture_stop),
		cmocka_unit_test_setup_teardown(test_open_beside_locks, setup, fixture_stop),
	};

	if (test_threads_wanted(argc, argv))
		return cmocka_run_group_tests(threads, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
