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

Hand mine;
Hand theirs;
TestClient second;

void
hand_open(Hand *hand, TestClient *with)
{
	hand->tree = open_tree(with, &record);
	assert_int_equal(tree_scan_open(hand->tree, &hand->scan), TREE_OK);
}

void
hand_close(Hand *hand)
{
	tree_scan_close(hand->scan);
	tree_close(hand->tree);
}

void
begin(const TreeFormat *format, uint64_t bytes, uint32_t percent)
{
	techniques = tree_techniques;
	techniques.exclusive = true;
	test_techniques = &techniques;
	test_leaf_cache = (TestLeafCache){.bytes = bytes, .admission_percent = percent};
	assert_int_equal(fixture_start(NULL), 0);
	test_client_open(&second, &instance, 1);
	test_tree_create(&client, format, &record);
	hand_open(&mine, &client);
	hand_open(&theirs, &second);
	/* Otherwise it is the time. */
	client.tree->random = 1;
}

void
end(void)
{
	hand_close(&theirs);
	hand_close(&mine);
	assert_int_equal(test_client_close(&second), TREE_OK);
	assert_int_equal(fixture_stop(NULL), 0);
	test_techniques = NULL;
	test_leaf_cache = (TestLeafCache){0};
}

TreeKey
key_of(uint32_t i)
{
	return number_key((uint64_t) i << 8, i);
}

void
insert(const Hand *hand, uint32_t i)
{
	TreeKey key = key_of(i);

	must_insert(hand->tree, &key, false);
}

void
fill(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		insert(&mine, i);
	leaf_cache_shared_reset(instance.shared);
}

TreeStatus
look_up(const Hand *hand, const TreeKey *key)
{
	return look_up_key(hand->scan, hand->tree, key);
}

uint64_t
trips(const Hand *hand, uint32_t i, bool expected)
{
	const TestClient *with = hand == &mine ? &client : &second;
	TreeKey key = key_of(i);
	Cost cost;

	cost_begin(with, &cost);
	assert_int_equal(look_up(hand, &key), expected ? TREE_OK : TREE_END);
	cost_end(with, &cost);
	assert_int_equal(cost.fabric.written_bytes, 0);
	assert_int_equal(cost.fabric.reads, cost.fabric.round_trips);
	assert_int_equal(cost.fabric.read_bytes, cost.fabric.reads * hand->tree->geometry.leaf_bytes);
	assert_int_equal(cost.tree.lookups, 1);
	return cost.fabric.round_trips;
}

TreeLeafCounts
counts_of(const Hand *hand)
{
	TreeLeafCounts counts;

	tree_client_leaf_counts(hand->tree->client, &counts);
	return counts;
}

LeafTable *
table(void)
{
	return instance.shared->leaves;
}
