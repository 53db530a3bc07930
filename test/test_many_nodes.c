/*
 * test_many_nodes.c
 *		One instance with as many memory nodes as there can be: what is where, and the last one's number wherever one is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "support/fixture.h"
#include "internal.h"

#define NODES TREE_MAX_NODES
#define LAST (TREE_MAX_NODES - 1)

/* Runs of a load double up to 64 chunks: these have the length at every memory node. */
#define MANY_KEYS 400000

/* What is let off the average, on either side. */
#define BALANCE_PERCENT 50

static TreeKey
key_of(uint64_t number)
{
	TreeKey key;

	memset(&key, 0, sizeof(key));
	key.norm[0] = number;
	key.block = (uint32_t) number;
	key.offset = 1;
	return key;
}

/* Loads the even numbers in order, and then inserts odd ones. */
static void
fill(Tree *tree, uint64_t loaded, uint64_t inserted)
{
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	TreeBulk *bulk;
	bool hit;

	assert_int_equal(tree_bulk_open(tree, &wal, &bulk), TREE_OK);
	for (uint64_t i = 0; i < loaded; i++)
	{
		TreeKey key = key_of(2 * i);

		assert_int_equal(tree_bulk_add(bulk, &key), TREE_OK);
	}
	assert_int_equal(tree_bulk_finish(bulk), TREE_OK);
	for (uint64_t i = 0; i < inserted; i++)
	{
		TreeKey key = key_of(2 * i + 1);

		assert_int_equal(tree_insert(tree, &key, &wal, &hit), TREE_OK);
	}
}

/* Extents go to all memory nodes in turn: each has its part, and the record names all of them. */
static void
test_balance(void **state)
{
	TreeRecord record;
	uint64_t bytes[NODES], sum = 0;
	Tree *tree;

	test_tree_create(&client, &narrow, &record);
	assert_int_equal(tree_open(client.tree, record.tree, record.root, &narrow, NULL, NULL, &tree), TREE_OK);
	fill(tree, MANY_KEYS, MANY_KEYS / 8);
	assert_int_equal(test_tree_entries(tree), MANY_KEYS + MANY_KEYS / 8);
	for (uint32_t i = 0; i < NODES; i++)
	{
		TreeNodeStatus status;

		assert_int_equal(tree_node_status(client.tree, i, &status), TREE_OK);
		bytes[i] = status.bytes_used;
		sum += bytes[i];
	}
	for (uint32_t i = 0; i < NODES; i++)
		assert_in_range(bytes[i] * NODES, sum / 100 * (100 - BALANCE_PERCENT),
		                sum / 100 * (100 + BALANCE_PERCENT));
	assert_int_equal(tree_record_read(client.tree, record.tree, tree_home(record.root), &record), TREE_OK);
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(record.members[i], fabric_capabilities(client.endpoints[i])->node_uuid[0]);
	assert_int_equal(record.bytes, sum);
	tree_close(tree);
	assert_int_equal(tree_drop(client.tree, record.tree, tree_home(record.root)), TREE_OK);
}

/* All but two memory nodes are closed: `home` is the home of a tree with a copy, and `copy` has that. */
static void
replicated_make(uint32_t home, uint32_t copy, TreeRecord *record)
{
	for (uint32_t i = 0; i < NODES; i++)
		if (i != home && i != copy)
			tree_node_close(instance.shared, i);
	do
		test_replicated_create(&client, &narrow, record);
	while (tree_home(record->root) != home);
	for (uint32_t i = 0; i < NODES; i++)
		tree_node_open(client.tree, i, 0);
}

/* The last memory node's number fits into a record's flags and a root's pointer, and into what says who is closed. */
static void
test_last_node(void **state)
{
	TreeRecord record, read;
	uint32_t copy;

	replicated_make(0, LAST, &record);
	assert_int_equal(tree_home(record.root), 0);
	assert_int_equal(tree_record_read(client.tree, record.tree, tree_home(record.root), &read), TREE_OK);
	assert_true(tree_record_replica(&read, &copy));
	assert_int_equal(copy, LAST);
	assert_int_not_equal(read.members[LAST], 0);

	replicated_make(LAST, 0, &record);
	assert_int_equal(tree_home(record.root), LAST);
	assert_true(tree_record_replica(&record, &copy));
	assert_int_equal(copy, 0);
	tree_node_close(instance.shared, LAST);
	assert_int_equal(tree_client_connect(client.tree, LAST), TREE_UNREACHABLE);
	assert_int_equal(tree_client_connect(client.tree, LAST - 1), TREE_OK);
	tree_node_open(client.tree, LAST, 0);
	assert_int_equal(tree_client_connect(client.tree, LAST), TREE_OK);
}

/* Who ends is told by its bit. */
static void
test_last_killed(void **state)
{
	TreeNodeStatus status;

	test_node_kill(&nodes[LAST]);
	assert_int_equal(tree_node_status(client.tree, LAST, &status), TREE_UNREACHABLE);
	assert_int_equal(tree_client_trouble(client.tree), 1u << LAST);
	assert_int_equal(tree_client_trouble(client.tree), 0);
	test_node_restart(&nodes[LAST]);
}

/* One more than there can be. */
static void
test_too_many(void **state)
{
	TreeSharedOptions options = instance.options;
	/* Nothing else is wrong with these: as many as there are can be used. */
	TreeClientOptions second = client.tree->options;
	TreeClient *other, *none;

	second.slot = 1;
	assert_int_equal(second.nodes, NODES);
	assert_int_equal(tree_client_open(&second, &other), TREE_OK);
	assert_int_equal(tree_client_close(other), TREE_OK);
	second.nodes = NODES + 1;
	assert_int_not_equal(tree_shared_bytes(&options), 0);
	options.nodes = NODES + 1;
	assert_int_equal(tree_shared_bytes(&options), 0);
	assert_int_equal(tree_client_open(&second, &none), TREE_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_balance),
		cmocka_unit_test(test_last_node),
		cmocka_unit_test(test_last_killed),
		cmocka_unit_test(test_too_many),
	};

	fixture_options = (FixtureOptions){.nodes = NODES, .node_bytes = 4 * MEGABYTE};
	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
