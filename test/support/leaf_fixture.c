/*
 * leaf_fixture.c
 *		See leaf_fixture.h.
 */
#include "cost.h"
#include "leaf_fixture.h"
#include "look_up.h"
#include "tree/lock/lock.h"

static TreeTechniques techniques;
static TreeRecord record;

LeafHandle mine;
LeafHandle theirs;

void
handle_open(LeafHandle *handle, TestClient *with)
{
	handle->tree = open_tree(with, &record);
	assert_int_equal(tree_scan_open(handle->tree, &handle->scan), TREE_OK);
}

void
handle_close(LeafHandle *handle)
{
	tree_scan_close(handle->scan);
	tree_close(handle->tree);
}

void
begin(const TreeFormat *format, uint64_t bytes, uint32_t percent)
{
	techniques = tree_techniques;
	techniques.exclusive = true;
	test_techniques = &techniques;
	test_leaf_cache = (TestLeafCache){.bytes = bytes, .admission_percent = percent};
	fixture_open(&(FixtureOptions){.two_clients = true});
	test_tree_create(&client, format, &record);
	handle_open(&mine, &client);
	handle_open(&theirs, &other_client);
	/* Otherwise it is the time. */
	client.tree->random = 1;
}

void
end(void)
{
	handle_close(&theirs);
	handle_close(&mine);
	fixture_close();
	test_techniques = NULL;
	test_leaf_cache = (TestLeafCache){0};
}

TreeKey
key_of(uint32_t i)
{
	return number_key((uint64_t) i << 8, i);
}

void
insert(const LeafHandle *handle, uint32_t i)
{
	TreeKey key = key_of(i);

	must_insert(handle->tree, &key, false);
}

void
fill(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		insert(&mine, i);
	leaf_cache_shared_reset(instance.shared);
}

TreeStatus
look_up(const LeafHandle *handle, const TreeKey *key)
{
	return look_up_key(handle->scan, handle->tree, key);
}

uint64_t
trips(const LeafHandle *handle, uint32_t i, bool expected)
{
	const TestClient *with = handle == &mine ? &client : &other_client;
	TreeKey key = key_of(i);
	Cost cost;

	cost_begin(with, &cost);
	assert_int_equal(look_up(handle, &key), expected ? TREE_OK : TREE_END);
	cost_end(with, &cost);
	assert_int_equal(cost.fabric.written_bytes, 0);
	assert_int_equal(cost.fabric.reads, cost.fabric.round_trips);
	assert_int_equal(cost.fabric.read_bytes, cost.fabric.reads * handle->tree->geometry.leaf_bytes);
	assert_int_equal(cost.tree.lookups, 1);
	return cost.fabric.round_trips;
}

TreeLeafCounts
counts_of(const LeafHandle *handle)
{
	TreeLeafCounts counts;

	tree_client_leaf_counts(handle->tree->client, &counts);
	return counts;
}

LeafTable *
table(void)
{
	return instance.shared->leaves;
}
