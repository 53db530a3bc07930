/*
 * fixture.c
 *		See fixture.h.
 */
#include <string.h>

#include "fixture.h"
#include "keyspace.h"

FixtureOptions fixture_options;

TestNode nodes[TREE_MAX_NODES];
TestInstance instance;
TestInstance other_instance;
TestClient client;
TestClient other_client;
TreeRecord records[FIXTURE_TREES];

const TreeFormat narrow = {.cell_bytes = 16, .norm_bytes = 8, .lossless = true, .fill_percent = 90};
const TreeFormat middle = {.cell_bytes = 32, .norm_bytes = 24, .lossless = true, .fill_percent = 90};
const TreeFormat text = {.cell_bytes = 64, .norm_bytes = 24, .lossless = false, .fill_percent = 90};
const TreeFormat whole = {
	.cell_bytes = 64, .norm_bytes = 24, .lossless = false, .full_separators = true, .fill_percent = 90};

static FixtureOptions opened; /* as it is, without zeroes that stand for something */

static void
client_open(void)
{
	test_client_open(&client, &instance, 0);
	keyspace_holds = &instance.environment->slots[0].holds;
}

static void
client_close(TestClient *closed)
{
	if (closed->fabric != NULL)
		assert_int_equal(test_client_close(closed), TREE_OK);
}

static void
instance_start(TestInstance *started)
{
	test_instance_start(started, nodes, opened.nodes, opened.slots, opened.cache_bytes);
}

void
fixture_open(const FixtureOptions *options)
{
	opened = *options;
	if (opened.nodes == 0)
		opened.nodes = 1;
	if (opened.node_bytes == 0)
		opened.node_bytes = FIXTURE_NODE_BYTES;
	if (opened.slots == 0)
		opened.slots = FIXTURE_SLOTS;
	if (opened.cache_bytes == 0)
		opened.cache_bytes = FIXTURE_CACHE_BYTES;
	if (opened.format == NULL)
		opened.format = &narrow;
	assert_true(opened.nodes <= TREE_MAX_NODES && opened.trees <= FIXTURE_TREES);

	for (uint32_t i = 0; i < opened.nodes; i++)
		test_node_start(&nodes[i], opened.node_bytes);
	instance_start(&instance);
	if (opened.two_instances)
		instance_start(&other_instance);
	client_open();
	for (uint32_t i = 0; i < opened.trees; i++)
		test_tree_create(&client, opened.format, &records[i]);
	if (opened.two_clients)
		test_client_open(&other_client, &instance, 1);
	if (opened.no_client)
		client_close(&client);
}

void
fixture_close(void)
{
	if (client.tree != NULL)
		assert_int_equal(instance.environment->slots[0].holds, 0);
	client_close(&other_client);
	client_close(&client);
	keyspace_holds = NULL;
	if (opened.two_instances)
		test_instance_stop(&other_instance);
	test_instance_stop(&instance);
	for (uint32_t i = 0; i < opened.nodes; i++)
		test_node_stop(&nodes[i]);
}

int
fixture_start(void **state)
{
	fixture_open(&fixture_options);
	return 0;
}

int
fixture_stop(void **state)
{
	fixture_close();
	return 0;
}

void
fixture_reattach(void)
{
	(void) test_client_close(&client);
	test_instance_attach(&instance);
	client_open();
}

void
fixture_node_restart(void)
{
	test_node_restart(&nodes[0]);
	fixture_reattach();
}

void
require_ok(TreeStatus status)
{
	if (status != TREE_OK)
		fail_msg("%s: %s", tree_status_name(status), tree_detail(client.tree));
}

int
compare_images(void *argument, const TreeBound *bound, const TreeKey *entry)
{
	uint16_t least =
		bound->key.image_bytes < entry->image_bytes ? bound->key.image_bytes : entry->image_bytes;
	int result = least == 0 ? 0 : memcmp(bound->key.image, entry->image, least);

	(void) argument;
	assert_true(client.tree == NULL || !client.tree->holding);
	return result != 0 ? result : (int) bound->key.image_bytes - (int) entry->image_bytes;
}

uint64_t
scramble(uint64_t i)
{
	i *= 0x9e3779b97f4a7c15ull;
	i ^= i >> 29;
	return i * 0xbf58476d1ce4e5b9ull;
}

TreeNodeStatus
fixture_node_status(uint32_t node)
{
	TreeNodeStatus status;

	require_ok(tree_node_status(client.tree, node, &status));
	return status;
}
