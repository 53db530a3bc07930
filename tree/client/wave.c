/*
 * wave.c
 *		Chains to several memory nodes, in flight at once. See wave.h.
 */
#include "tree/client/wave.h"

void
wave_begin(Wave *wave, Tree *tree)
{
	assert(tree->replicas == NULL);
	wave->tree = tree;
	wave->first = wave->count = 0;
	wave->lost = 0;
	for (uint32_t node = 0; node < TREE_MAX_NODES; node++)
	{
		wave->filling[node] = NULL;
		wave->statuses[node] = TREE_OK;
	}
}

/* Chain number i of those that are in use, the oldest one first. */
static WaveChain *
wave_chain(Wave *wave, uint32_t i)
{
	assert(i < wave->count);
	return &wave->chains[(wave->first + i) % WAVE_CHAINS];
}

static FabricEndpoint *
chain_endpoint(const Wave *wave, const WaveChain *chain)
{
	return wave->tree->client->options.endpoints[chain->memory_node];
}

/* A chain failed: nothing more goes to its memory node. */
static void
chain_fail(Wave *wave, const WaveChain *chain, FabricStatus fabric)
{
	TreeClient *client = wave->tree->client;
	uint32_t node = chain->memory_node;

	assert(fabric != FABRIC_OK);
	if (wave->statuses[node] != TREE_OK)
		return;
	if (fabric == FABRIC_TIMED_OUT || fabric == FABRIC_STOPPED || fabric == FABRIC_LOST)
	{
		wave->lost |= 1ull << node;
		wave->statuses[node] = TREE_RETRY;
	}
	else
		wave->statuses[node] = client_fabric_fail(client, node, fabric);
}

/* Waits for a chain that was posted, unless its channel is to be reset: the reset ends the chain. */
static void
chain_wait(Wave *wave, WaveChain *chain)
{
	Tree *tree = wave->tree;
	FabricStatus fabric;

	assert(chain->posted);
	chain->posted = false;
	if ((wave->lost & 1ull << chain->memory_node) != 0)
		return;
	fabric = step_wait(tree->client, chain_endpoint(wave, chain), chain->ticket, chain->ops, chain->count);
	if (fabric != FABRIC_OK)
		chain_fail(wave, chain, fabric);
	else
		client_silence_ends(tree->client);
}

/* Waits for the oldest chain in flight to this memory node. False: there is none. */
static bool
node_wait(Wave *wave, uint32_t memory_node)
{
	for (uint32_t i = 0; i < wave->count; i++)
	{
		WaveChain *chain = wave_chain(wave, i);

		if (!chain->posted || chain->memory_node != memory_node)
			continue;
		chain_wait(wave, chain);
		return true;
	}
	return false;
}

/* Posts the chain that was filled, as soon as its endpoint takes one more. */
static void
chain_post(Wave *wave, WaveChain *chain)
{
	Tree *tree = wave->tree;
	FabricStatus fabric = FABRIC_BUSY;

	assert(!chain->posted && chain->count > 0);
	wave->filling[chain->memory_node] = NULL;
	while (fabric == FABRIC_BUSY && wave->statuses[chain->memory_node] == TREE_OK)
	{
		fabric =
			step_post(tree->client, chain_endpoint(wave, chain), chain->ops, chain->count, &chain->ticket);
		chain->posted = fabric == FABRIC_OK;
		/* It does not take this one at once: in parts, then. */
		if (fabric == FABRIC_BUSY && !node_wait(wave, chain->memory_node))
			fabric = crash_point_execute(tree->client, chain_endpoint(wave, chain), chain->ops, chain->count);
	}
	if (wave->statuses[chain->memory_node] != TREE_OK)
		return;
	access_count_chain(tree, chain->ops, chain->count);
	if (fabric != FABRIC_OK)
		chain_fail(wave, chain, fabric);
}

/* Frees the oldest chain for another use. */
static void
oldest_end(Wave *wave)
{
	WaveChain *chain = wave_chain(wave, 0);

	if (wave->filling[chain->memory_node] == chain)
		chain_post(wave, chain);
	if (chain->posted)
		chain_wait(wave, chain);
	wave->first = (wave->first + 1) % WAVE_CHAINS;
	wave->count--;
}

/* Whether the memory node can be used; else says so in the wave. */
static bool
place_begin(Wave *wave, uint32_t memory_node)
{
	Tree *tree = wave->tree;
	TreeClient *client = tree->client;
	TreeStatus status = TREE_OK;

	assert(memory_node < client->options.nodes);
	if (access_endpoint(client, memory_node) == NULL)
		status = client_away(client, memory_node);
	else if ((client->doubt & 1ull << memory_node) != 0)
		status = access_doubt(client, memory_node);
	wave->statuses[memory_node] = status;
	return status == TREE_OK;
}

void
wave_add(Wave *wave, uint32_t memory_node, const FabricOp *op)
{
	WaveChain *chain;
	uint32_t room;

	assert(memory_node < TREE_MAX_NODES);
	if (wave->statuses[memory_node] != TREE_OK ||
	    (wave->filling[memory_node] == NULL && !place_begin(wave, memory_node)))
		return;
	chain = wave->filling[memory_node];
	if (chain == NULL)
	{
		if (wave->count == WAVE_CHAINS)
			oldest_end(wave);
		wave->count++;
		chain = wave_chain(wave, wave->count - 1);
		chain->memory_node = memory_node;
		chain->count = 0;
		chain->posted = false;
		wave->filling[memory_node] = chain;
	}
	chain->ops[chain->count++] = *op;
	room = access_capabilities(wave->tree->client, memory_node)->max_chain;
	if (chain->count == (int) FABRIC_MAX_CHAIN || chain->count >= (int) room)
		chain_post(wave, chain);
}

void
wave_add_together(Wave *wave, uint32_t memory_node, const FabricOp *ops, int count)
{
	assert(memory_node < TREE_MAX_NODES && count > 0 && count < (int) FABRIC_MAX_CHAIN);
	if (count > 1 && wave->filling[memory_node] != NULL)
		chain_post(wave, wave->filling[memory_node]);
	for (int i = 0; i < count; i++)
		wave_add(wave, memory_node, &ops[i]);
	if (count > 1 && wave->filling[memory_node] != NULL)
		chain_post(wave, wave->filling[memory_node]);
}

/* Transports may gather chains until they are waited for: here all are sent off before any is waited for. */
static void
wave_push(Wave *wave)
{
	uint64_t pushed = 0;

	for (uint32_t i = wave->count; i > 0; i--)
	{
		const WaveChain *chain = wave_chain(wave, i - 1);

		if (!chain->posted || (pushed & 1ull << chain->memory_node) != 0)
			continue;
		pushed |= 1ull << chain->memory_node;
		(void) fabric_ended(chain_endpoint(wave, chain), chain->ticket);
	}
}

void
wave_end(Wave *wave)
{
	Tree *tree = wave->tree;

	for (uint32_t i = 0; i < wave->count; i++)
		if (wave->filling[wave_chain(wave, i)->memory_node] == wave_chain(wave, i))
			chain_post(wave, wave_chain(wave, i));
	wave_push(wave);
	while (wave->count > 0)
		oldest_end(wave);
	for (uint32_t node = 0; node < tree->client->options.nodes; node++)
		if ((wave->lost & 1ull << node) != 0)
			wave->statuses[node] = access_lost(tree, node);
	wave->lost = 0;
}
