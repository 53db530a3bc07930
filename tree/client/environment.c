/*
 * environment.c
 *		What all calls of a client use: the caller's memory, clock, pauses and random numbers, and scratch nodes.
 */
#include "tree/shared/state.h"

void
client_find_tearing(TreeClient *client)
{
	uint64_t lines = 0, operations = 0;

	assert(client->options.nodes <= 64);
	for (uint32_t i = 0; i < client->options.nodes; i++)
	{
		FabricEndpoint *endpoint = client->options.endpoints[i];
		uint32_t flags = endpoint != NULL ? fabric_capabilities(endpoint)->flags : UINT32_MAX;

		if ((flags & FABRIC_CAP_LINE_ATOMIC) == 0)
			lines |= 1ull << i;
		if ((flags & FABRIC_CAP_OPERATION_ATOMIC) == 0)
			operations |= 1ull << i;
	}
	client->leaf_sums[0] = lines;
	client->leaf_sums[1] = lines | operations;
}

const uint64_t *
client_leaf_sums(TreeClient *client, const NodeGeometry *g)
{
	client_find_tearing(client);
	return &client->leaf_sums[g->lines_whole ? 0 : 1];
}

uint32_t
tree_home(uint64_t root)
{
	return pointer_memory_node(root);
}

/* splitmix64: choices that need no quality, only difference between processes. */
uint64_t
client_random(TreeClient *client)
{
	uint64_t z;

	assert(client != NULL);
	z = client->random += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void *
client_allocate(TreeClient *client, size_t bytes)
{
	assert(client != NULL);
	assert(bytes > 0);
	return client->options.allocate(client->options.allocate_argument, bytes);
}

void *
client_allocate_beside(TreeClient *client, const void *handle, size_t bytes)
{
	assert(client != NULL && handle != NULL);
	assert(bytes > 0);
	if (client->options.allocate_beside == NULL)
		return client_allocate(client, bytes);
	return client->options.allocate_beside(client->options.allocate_argument, handle, bytes);
}

void
client_release(TreeClient *client, void *memory)
{
	assert(client != NULL);
	if (memory != NULL)
		client->options.release(client->options.allocate_argument, memory);
}

void
client_pause(const TreeClient *client)
{
	if (client->options.environment.pause != NULL)
		client->options.environment.pause(client->options.environment.argument);
	else
		spin_pause();
}

bool
client_should_stop(TreeClient *client)
{
	const TreeEnvironment *environment = &client->options.environment;

	assert(!client->holding);
	return environment->should_stop != NULL && environment->should_stop(environment->argument);
}

uint64_t
client_deadline(TreeClient *client)
{
	uint64_t *silence = client->options.silence;

	if (*silence == 0)
		*silence = client_now_us(client) * 1000;
	return *silence / 1000 + (uint64_t) client->options.operation_timeout_ms * 1000;
}

bool
client_tries_again(TreeClient *client, int attempt)
{
	assert(attempt >= 0);
	return attempt == 0 || (attempt < LOST_ATTEMPTS && client_now_us(client) < client_deadline(client));
}

/* A set of images, on lines: lines of a node are copied as lines. */
static uint64_t *
scratch_align(void *memory)
{
	return (uint64_t *) (((uintptr_t) memory + LINE_BYTES - 1) & ~(uintptr_t) (LINE_BYTES - 1));
}

TreeStatus
client_scratch(TreeClient *client, int level)
{
	uint64_t *scratch;

	assert(level >= 0);
	if (level >= SCRATCH_LEVELS)
		return client_fail(client, TREE_INVALID, "calls inside of comparators of calls, %d deep", level);
	if (client->scratch[level] == NULL)
		client->scratch[level] = client_allocate_beside(client, client, SCRATCH_BYTES);
	if (client->scratch[level] == NULL)
		return client_fail(client, TREE_NO_MEMORY, "no memory for a call inside of another's comparator");
	scratch = scratch_align(client->scratch[level]);
	client->image = scratch;
	client->image_left = scratch + NODE_MAX_BYTES / 8;
	client->image_right = scratch + 2 * NODE_MAX_BYTES / 8;
	client->image_root = scratch + 3 * NODE_MAX_BYTES / 8;
	client->descent = scratch + 4 * NODE_MAX_BYTES / 8;
	return TREE_OK;
}
