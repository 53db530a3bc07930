/*
 * client.c
 *		A client (one process's connections, scratch memory and slot) and its open trees: opening and closing,
 *		errors with their detail, memory, counters.
 */
#include "state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Scratch nodes of a client: image, image_left, image_right, image_root, descent. */
#define SCRATCH_BYTES (5 * NODE_MAX_BYTES + LINE_BYTES)

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

const char *
tree_status_name(TreeStatus status)
{
	static const char *const names[] = {
		[TREE_OK] = "ok",
		[TREE_END] = "end",
		[TREE_STOPPED] = "stopped",
		[TREE_MEMORY_FULL] = "memory node full",
		[TREE_NO_MEMORY] = "out of memory",
		[TREE_UNREACHABLE] = "memory node unreachable",
		[TREE_FENCED] = "fenced",
		[TREE_DAMAGED] = "damaged",
		[TREE_NOT_FOUND] = "not found",
		[TREE_TIMED_OUT] = "lock not available in time",
		[TREE_INVALID] = "invalid",
	};

	if (status == TREE_RETRY)
		return "retry";
	if ((unsigned) status >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	return names[status];
}

TreeStatus
client_fail(TreeClient *client, TreeStatus status, const char *format, ...)
{
	va_list arguments;

	assert(client != NULL);
	assert(status != TREE_OK);

	va_start(arguments, format);
	(void) vsnprintf(client->detail, sizeof(client->detail), format, arguments);
	va_end(arguments);
	return status;
}

const uint64_t *
client_leaf_sums(TreeClient *client)
{
	uint64_t nodes = 0;

	assert(client->options.nodes <= 64);
	for (uint32_t i = 0; i < client->options.nodes; i++)
	{
		FabricEndpoint *endpoint = client->options.endpoints[i];

		if (endpoint != NULL && (fabric_capabilities(endpoint)->flags & FABRIC_CAP_LINE_ATOMIC) == 0)
			nodes |= 1ull << i;
	}
	client->leaf_sums = nodes;
	return &client->leaf_sums;
}

TreeStatus
client_fabric_fail(TreeClient *client, uint32_t memory_node, FabricStatus status)
{
	TreeStatus mine;

	assert(status != FABRIC_OK);
	switch (status)
	{
		case FABRIC_FENCED:
			mine = TREE_FENCED;
			break;
		case FABRIC_NO_MEMORY:
		case FABRIC_QUOTA:
		case FABRIC_TOO_MANY:
		case FABRIC_HOST_FULL:
			client->full_by = status == FABRIC_QUOTA       ? TREE_FULL_QUOTA
			                  : status == FABRIC_TOO_MANY  ? TREE_FULL_TREES
			                  : status == FABRIC_HOST_FULL ? TREE_FULL_HOST
			                                               : TREE_FULL_MEMORY;
			mine = TREE_MEMORY_FULL;
			break;
		case FABRIC_NOT_FOUND:
			mine = TREE_NOT_FOUND;
			break;
		case FABRIC_RANGE:
		case FABRIC_PROTOCOL:
		case FABRIC_NOT_SUPPORTED:
		case FABRIC_EXISTS:
		case FABRIC_DENIED:
			mine = TREE_INVALID;
			break;
		default:
			mine = TREE_UNREACHABLE;
			break;
	}
	if (mine == TREE_UNREACHABLE || mine == TREE_FENCED)
		client->trouble |= 1u << memory_node;
	return client_fail(client, mine, "memory node %u: %s", memory_node, fabric_status_name(status));
}

TreeStatus
client_unanswered(TreeClient *client, uint32_t memory_node, const char *what)
{
	assert(memory_node < client->options.nodes);
	client->trouble |= 1u << memory_node;
	return client_fail(client, TREE_UNREACHABLE, "memory node %u: %s are not answered in time", memory_node,
	                   what);
}

TreeStatus
client_away(TreeClient *client, uint32_t memory_node)
{
	assert(memory_node < client->options.nodes);
	if (!node_is_open(client->shared, memory_node))
		return client_fail(client, TREE_UNREACHABLE, "memory node %u is not attached", memory_node);
	/* access_connect() has said why. */
	return TREE_UNREACHABLE;
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

const FabricCapabilities *
tree_client_capabilities(const TreeClient *client, uint32_t node)
{
	assert(client != NULL);
	if (node >= client->options.nodes || client->options.endpoints[node] == NULL)
		return NULL;
	return fabric_capabilities(client->options.endpoints[node]);
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
	gate_rest(c, 0);
	c->random = client_now_us(c) ^ (uint64_t) options->slot << 32 ^ (uint64_t) (uintptr_t) c;
	*client = c;
	return TREE_OK;
}

TreeStatus
tree_client_leave(TreeClient *client)
{
	TreeStatus status;

	assert(client != NULL);
	status = lock_leave(client);
	gate_open(client);
	gate_rest(client, 0);
	for (uint32_t i = 0; i < client->options.nodes; i++)
		if ((client->doubt & 1ull << i) != 0 && node_is_open(client->shared, i))
		{
			TreeStatus settled = access_settle(client, i);

			if (settled != TREE_OK && settled != TREE_FENCED)
				status = settled;
		}
	client_silence_ends(client);
	/* What is in doubt at a closed memory node is ended by the fencing that precedes its opening. */
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
	client->options.release(client->options.allocate_argument, client);
	return status;
}

const char *
tree_detail(const TreeClient *client)
{
	assert(client != NULL);
	return client->detail;
}

TreeFull
tree_full_by(const TreeClient *client)
{
	assert(client != NULL);
	return client->full_by;
}

void
tree_client_counters(const TreeClient *client, TreeCounters *counters)
{
	assert(client != NULL && counters != NULL);
	*counters = client->counters;
}

TreeStatus
tree_open(TreeClient *client, uint64_t tree, uint64_t root, const TreeFormat *format, TreeCompare compare,
          void *argument, Tree **handle)
{
	/* The room for images, behind the handle: two, each rounded up to a block's alignment. */
	const size_t image_bytes = (TREE_IMAGE_MAX_BYTES + OUTSIDE_ALIGN - 1) / OUTSIDE_ALIGN * OUTSIDE_ALIGN;
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
	t->geometry.leaf_sums = client_leaf_sums(client);
	t->geometry.proven = &t->proven;
	t->geometry.ends = client->options.ends;
	t->compare = compare;
	t->compare_argument = argument;
	t->outside = (uint64_t *) ((char *) t + handle_bytes);
	t->state = state_get(client, tree);
	if (t->state != NULL)
	{
		t->epoch = state_epoch(t->state);
		t->life = state_life(t->state);
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
	tree_count_flush(handle);
	state_put(handle->client, handle->state);
	copies_close(handle);
	client_release(handle->client, handle->pool);
	client_release(handle->client, handle);
}

void
tree_count_flush(Tree *tree)
{
	const uint64_t *from = (const uint64_t *) &tree->pending;
	uint64_t *to = (uint64_t *) state_counters(tree->state);

	assert(to != NULL);
	state_add(tree->state, (int64_t) tree->pending.inserts - (int64_t) tree->pending.dead_removals,
	          (int64_t) tree->pending.leaf_splits,
	          (int64_t) (tree->pending.inner_splits + tree->pending.root_splits));
	_Static_assert(sizeof(TreeCounters) % sizeof(uint64_t) == 0, "counters are words");
	for (size_t i = 0; i < sizeof(TreeCounters) / sizeof(uint64_t); i++)
		if (from[i] != 0)
			__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
	memset(&tree->pending, 0, sizeof(tree->pending));
	tree->pending_chains = 0;
}

void
tree_counters(const Tree *handle, TreeCounters *counters)
{
	const uint64_t *shared = (const uint64_t *) state_counters(handle->state);
	const uint64_t *mine = (const uint64_t *) &handle->pending;
	uint64_t *to = (uint64_t *) counters;

	assert(shared != NULL);
	assert(counters != NULL);
	for (size_t i = 0; i < sizeof(TreeCounters) / sizeof(uint64_t); i++)
		to[i] = __atomic_load_n(&shared[i], __ATOMIC_RELAXED) + mine[i];
}
