/*
 * open.c
 *		A client (one process's connections, scratch memory and slot) and its open trees: opening and closing.
 */
#include "tree/shared/state.h"
#include "tree/descent/descent.h"
#include "tree/change/change.h"

#include <stdlib.h>

/* Deadline of an operation when the client names none. */
#define DEFAULT_TIMEOUT_MS 10000u

static void *
allocate_malloc(void *argument, size_t bytes)
{
	(void) argument;
	return malloc(bytes);
}

static void
release_malloc(void *argument, void *memory)
{
	(void) argument;
	free(memory);
}

uint32_t
tree_client_trouble(TreeClient *client)
{
	uint32_t trouble = client->trouble;

	assert(client != NULL);
	client->trouble = 0;
	client_silence_ends(client);
	return trouble;
}

void
tree_client_reconnect(TreeClient *client, uint32_t node)
{
	assert(node < client->options.nodes);
	assert(!client->holding);
	client->options.endpoints[node] = NULL;
	client->vouched &= ~(1ull << node);
	client->doubt &= ~(1ull << node);
	client->trouble &= ~(1u << node);
}

TreeStatus
tree_client_connect(TreeClient *client, uint32_t node)
{
	if (node >= client->options.nodes)
		return client_fail(client, TREE_INVALID, "there is no memory node %u", node);
	return access_endpoint(client, node) != NULL ? TREE_OK : client_away(client, node);
}

void
tree_client_vouch(TreeClient *client, uint32_t node)
{
	assert(node < client->options.nodes);
	assert(client->options.environment.connect != NULL);
	if (client->options.endpoints[node] == NULL)
		client->vouched |= 1ull << node;
}

const FabricCapabilities *
tree_client_capabilities(const TreeClient *client, uint32_t node)
{
	assert(client != NULL);
	if (node >= client->options.nodes || client->options.endpoints[node] == NULL)
		return NULL;
	return fabric_capabilities(client->options.endpoints[node]);
}

static bool
options_valid(const TreeClientOptions *options)
{
	if (options->shared == NULL || options->nodes < 1 || options->nodes > TREE_MAX_NODES ||
	    options->slot >= options->shared->options.slots)
		return false;
	if ((options->allocate == NULL) != (options->release == NULL))
		return false;
	if (options->environment.now_us == NULL || options->environment.sleep == NULL ||
	    options->environment.wake == NULL)
		return false;
	for (uint32_t i = 0; i < options->nodes; i++)
		if (options->endpoints[i] == NULL && options->environment.connect == NULL)
			return false;
	return true;
}

TreeStatus
tree_client_open(const TreeClientOptions *options, TreeClient **client)
{
	const size_t bytes = sizeof(TreeClient) + SCRATCH_BYTES;
	TreeClient *c;
	assert(client != NULL);
	*client = NULL;
	if (!options_valid(options))
		return TREE_INVALID;
	if (options->allocate != NULL)
		c = options->allocate(options->allocate_argument, bytes);
	else
		c = allocate_malloc(NULL, bytes);
	if (c == NULL)
		return TREE_NO_MEMORY;
	memset(c, 0, bytes);
	c->options = *options;
	if (options->allocate == NULL)
	{
		c->options.allocate = allocate_malloc;
		c->options.release = release_malloc;
	}
	if (c->options.operation_timeout_ms == 0)
		c->options.operation_timeout_ms = DEFAULT_TIMEOUT_MS;
	if (c->options.silence == NULL)
		c->options.silence = &c->silence;
	/* What was waited for to connect is over. */
	client_silence_ends(c);
	c->shared = options->shared;
	c->techniques = c->shared->techniques;
	c->slot = options->slot;
	c->scratch[0] = (uint64_t *) (c + 1);
	critical_reset(c, 0);
	c->random = client_now_us(c) ^ (uint64_t) options->slot << 32 ^ (uint64_t) (uintptr_t) c;
	*client = c;
	return TREE_OK;
}

TreeStatus
tree_client_leave(TreeClient *client)
{
	TreeStatus status;

	assert(client != NULL);
	status = lock_clean_up(client);
	barrier_open(client);
	critical_reset(client, 0);
	for (uint32_t i = 0; i < client->options.nodes; i++)
		if ((client->doubt & 1ull << i) != 0 && node_is_open(client->shared, i))
		{
			TreeStatus settled = access_settle(client, i);

			if (settled != TREE_OK && settled != TREE_FENCED)
				status = settled;
		}
	client_silence_ends(client);
	/* Indeterminate chains at a closed memory node are ended by the fencing before it is opened again. */
	return status == TREE_UNREACHABLE && client->trouble == 0 ? TREE_OK : status;
}

TreeStatus
tree_client_close(TreeClient *client)
{
	TreeStatus status;

	if (client == NULL)
		return TREE_OK;
	assert(client->options.release != NULL);

	status = tree_client_leave(client);
	for (int level = 1; level < SCRATCH_LEVELS; level++)
		client_release(client, client->scratch[level]);
	client_release(client, client->many);
	client_release(client, client->wave);
	client->options.release(client->options.allocate_argument, client);
	return status;
}

TreeStatus
tree_open(TreeClient *client, uint64_t tree, uint64_t root, const TreeFormat *format, TreeCompare compare,
          void *argument, Tree **handle)
{
	/* The room for images, behind the handle: two, each rounded up to a block's alignment. */
	const size_t image_bytes = (TREE_IMAGE_MAX_BYTES + OVERFLOW_ALIGN - 1) / OVERFLOW_ALIGN * OVERFLOW_ALIGN;
	const size_t handle_bytes = (sizeof(Tree) + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
	Tree *t;

	assert(client != NULL && handle != NULL);
	*handle = NULL;
	if (!format_valid(format))
		return client_fail(client, TREE_INVALID, "tree %llx: impossible format", (unsigned long long) tree);
	if (pointer_address(root) == POINTER_NONE || pointer_memory_node(root) >= client->options.nodes ||
	    (compare == NULL && !format->lossless))
		return client_fail(client, TREE_INVALID, "tree %llx: impossible root or no comparator",
		                   (unsigned long long) tree);
	t = client_allocate(client, handle_bytes + 2 * image_bytes);
	if (t == NULL)
		return client_fail(client, TREE_NO_MEMORY, "no memory for a tree's handle");
	memset(t, 0, sizeof(*t));
	t->client = client;
	t->tree = tree;
	t->root = pointer_address(root);
	t->geometry = node_geometry(format);
	t->geometry.memory_nodes = client->options.nodes;
	t->geometry.leaf_sums = client_leaf_sums(client, &t->geometry);
	t->geometry.proven = &t->proven;
	t->geometry.ends = client->options.ends;
	t->geometry.ignores_marks = client->options.reader;
	t->compare = compare;
	t->compare_argument = argument;
	t->overflow = (uint64_t *) ((char *) t + handle_bytes);
	t->state = state_get(client, tree);
	if (t->state != NULL)
	{
		t->epoch = state_epoch(t->state);
		t->first_epoch = state_first_epoch(t->state);
	}
	if (t->state == NULL)
	{
		client_release(client, t);
		return client_fail(client, TREE_NO_MEMORY, "more than %u trees in use",
		                   client->shared->options.trees);
	}
	*handle = t;
	return TREE_OK;
}

void
tree_close(Tree *handle)
{
	if (handle == NULL)
		return;
	assert(handle->client != NULL && !handle->client->holding);

	insert_abandon(handle);
	reserve_return(handle);
	spare_return(handle);
	tree_count_flush(handle);
	state_put(handle->client, handle->state);
	replicas_close(handle);
	client_release(handle->client, handle->pool);
	client_release(handle->client, handle);
}
