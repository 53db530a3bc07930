/*
 * chain.c
 *		Chains to one memory node: connecting, executing and counting them, and resetting channels whose chains are
 *		indeterminate.
 */
#include "tree/internal.h"

void
access_count_chain(Tree *tree, const FabricOp *ops, int count)
{
	uint64_t read_bytes = 0, written_bytes = 0;

	assert(count > 0 && (uint32_t) count <= FABRIC_MAX_CHAIN);
	for (int i = 0; i < count; i++)
	{
		if (ops[i].opcode == FABRIC_READ)
			read_bytes += ops[i].length;
		else
			written_bytes += ops[i].length;
	}
	TREE_COUNT(tree, round_trips, 1);
	TREE_COUNT(tree, read_bytes, read_bytes);
	TREE_COUNT(tree, written_bytes, written_bytes);
	if (++tree->pending_chains >= COUNTERS_FLUSH_CHAINS)
		tree_count_flush(tree);
}

FabricEndpoint *
access_connect(TreeClient *client, uint32_t memory_node)
{
	char detail[TREE_DETAIL_BYTES] = "";
	FabricEndpoint *endpoint = client->options.endpoints[memory_node];

	assert(memory_node < client->options.nodes);
	assert(endpoint != NULL || client->options.environment.connect != NULL);
	if (!node_is_open(client->shared, memory_node))
		return NULL;
	if (endpoint == NULL && !client->holding)
		endpoint =
			client->options.environment.connect(client->options.environment.argument, memory_node, detail);
	if (endpoint == NULL)
		(void) client_fail(client, TREE_UNREACHABLE, "memory node %u: %s", memory_node, detail);
	else
		client_silence_ends(client);
	client->options.endpoints[memory_node] = endpoint;
	client->vouched &= ~(1ull << memory_node);
	client_find_tearing(client);
	return endpoint;
}

bool
access_is_mapped(const TreeClient *client, uint32_t memory_node)
{
	const char *transport = access_capabilities(client, memory_node)->transport;

	return !client->far && memcmp(transport, "shm", sizeof("shm")) == 0;
}

TreeStatus
access_execute_at(Tree *tree, uint32_t memory_node, FabricOp *ops, int count)
{
	TreeClient *client = tree->client;
	FabricEndpoint *endpoint;
	FabricStatus fabric;

	assert(count > 0 && ops != NULL);
	if (memory_node >= client->options.nodes)
		return client_fail(client, TREE_DAMAGED, "tree %llx: pointer to memory node %u of %u",
		                   (unsigned long long) tree->tree, memory_node, client->options.nodes);
	endpoint = access_endpoint(client, memory_node);
	if (endpoint == NULL)
		return client_away(client, memory_node);
	if ((client->doubt & 1ull << memory_node) != 0)
		return access_doubt(client, memory_node);
	fabric = crash_point_execute(client, endpoint, ops, count);
	if (fabric == FABRIC_OK)
	{
		client_silence_ends(client);
		access_count_chain(tree, ops, count);
		return TREE_OK;
	}
	if (fabric != FABRIC_TIMED_OUT && fabric != FABRIC_STOPPED && fabric != FABRIC_LOST)
		return client_fabric_fail(client, memory_node, fabric);
	access_count_chain(tree, ops, count);
	return access_lost(tree, memory_node);
}

TreeStatus
access_lost(Tree *tree, uint32_t memory_node)
{
	TreeClient *client = tree->client;
	TreeStatus status;

	client->doubt |= 1ull << memory_node;
	status = access_settle(client, memory_node);
	if (status != TREE_OK)
	{
		if ((client->doubt & 1ull << memory_node) != 0)
			state_leave_unsettled(tree->state, memory_node);
		return status;
	}
	/* A caller that holds a lock must settle its chain and give the lock back: that is not cut short here. */
	if (client->holding || client_tries_again(client, 1))
		return TREE_RETRY;
	return client_unanswered(client, memory_node, "chains");
}

TreeStatus
access_settle(TreeClient *client, uint32_t memory_node)
{
	FabricStatus fabric;

	assert(memory_node < client->options.nodes);
	assert((client->doubt & 1ull << memory_node) != 0);

	if (!node_is_open(client->shared, memory_node))
		return client_away(client, memory_node);
	fabric = fabric_reset(client->options.endpoints[memory_node]);
	if (fabric == FABRIC_OK || fabric == FABRIC_FENCED)
	{
		/*
		 * Fenced: the memory node killed the channel with the whole incarnation, so nothing of the chain takes effect
		 * any more.
		 */
		client->doubt &= ~(1ull << memory_node);
		if (fabric == FABRIC_OK)
			return TREE_OK;
		return client_fabric_fail(client, memory_node, fabric);
	}
	client->trouble |= 1u << memory_node;
	return client_fail(client, TREE_UNREACHABLE,
	                   "memory node %u: a chain is indeterminate and its channel cannot be reset: %s",
	                   memory_node, fabric_status_name(fabric));
}

TreeStatus
access_damaged(Tree *tree, uint64_t pointer)
{
	return client_fail(tree->client, TREE_DAMAGED,
	                   "node %016llx of tree %016llx has a content that no node has",
	                   (unsigned long long) pointer, (unsigned long long) tree->tree);
}

TreeStatus
access_ring(Tree *tree, uint64_t pointer)
{
	return client_fail(tree->client, TREE_DAMAGED, "tree %016llx: right links go round at node %016llx",
	                   (unsigned long long) tree->tree, (unsigned long long) pointer);
}

TreeStatus
access_doubt(TreeClient *client, uint32_t memory_node)
{
	assert((client->doubt & 1ull << memory_node) != 0);
	client->trouble |= 1u << memory_node;
	return client_fail(client, TREE_UNREACHABLE, "memory node %u: an earlier chain is indeterminate",
	                   memory_node);
}

TreeStatus
place_is_ready(TreeClient *client, uint32_t memory_node)
{
	assert(!client->holding);
	if (access_endpoint(client, memory_node) == NULL)
		return client_away(client, memory_node);
	if ((client->doubt & 1ull << memory_node) != 0)
		return access_doubt(client, memory_node);
	if (fabric_is_draining(client->options.endpoints[memory_node]))
	{
		client->trouble |= 1u << memory_node;
		return client_fail(client, TREE_UNREACHABLE, "memory node %u is shutting down", memory_node);
	}
	return TREE_OK;
}

void
access_pause(const TreeClient *client, uint64_t microseconds)
{
	uint64_t until = client_now_us(client) + microseconds;

	assert(microseconds < READ_BOUND_US);
	while (client_now_us(client) < until)
		client_pause(client);
}
