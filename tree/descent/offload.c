/*
 * offload.c
 *		Descents by the memory node, after DEX: where the cache lacks an inner node on the way of a lookup, one call
 *		may replace one READ for each level.
 *
 * The call returns an image of a leaf at some instant during the call, as a READ at that instant would:
 * service_descend.c copies it at one instant, and reaches it through nodes that were linked in this epoch of the
 * tree, which does not end before the caller's critical section (quiesce.c). The image is validated like one that was
 * read, by node_check() here and by its fences in scan.c. So a wrong or stale reply costs time only, and the lookup
 * goes on with READs, as after any other failure. If the leaf is at another memory node, the call returns its address
 * alone, and the leaf is read.
 *
 * DEX's rule chooses: the call, if it takes less than 1.2 times as long as READs of the missing levels, by averages
 * of about 50 samples; one lookup of a hundred goes the other way. That keeps both averages current, and brings inner
 * nodes into the cache, which a call does not. The load of the memory node's processors shows in the average of the
 * call.
 */
#include "tree/client/directory.h"
#include "tree/descent/offload.h"
#include "tree/lock/lock.h"

/* DEX's figures: the time to search a node of 1 KB, and the limit for the call in percent of the READs. */
#define SEARCH_NANOSECONDS 40u
#define CALL_PERCENT 120u
/* One of so many lookups takes the way that the averages speak against. */
#define EXPLORE_ONE_IN 100u
/* A sample counts as so many times the average at most: it moves that by a third at most. */
#define OUTLIER_TIMES 16

size_t
offload_shared_bytes(const TreeSharedOptions *options)
{
	const TreeTechniques *techniques = shared_techniques(options);

	return techniques->offload == TREE_OFFLOAD_NEVER ? 0 : options->nodes * sizeof(OffloadCosts);
}

void
offload_shared_reset(TreeShared *shared)
{
	if (shared->offloads != NULL)
		memset(shared->offloads, 0, offload_shared_bytes(&shared->options));
}

static OffloadCosts *
costs_of(const Tree *tree, uint32_t memory_node)
{
	assert(tree->client->shared->offloads != NULL);
	assert(memory_node < tree->client->shared->options.nodes);
	return tree->client->shared->offloads + memory_node;
}

/*
 * Takes a sample into an average of *count, which ends at OFFLOAD_SAMPLES. From then on an outlier counts as
 * OUTLIER_TIMES the average: otherwise one call that timed out would decide for all lookups until enough samples, of
 * 1 lookup in 100, outweigh it.
 */
static void
average_add(uint64_t *average, uint32_t *count, uint64_t sample)
{
	uint32_t seen = __atomic_load_n(count, __ATOMIC_RELAXED);
	int64_t before = (int64_t) __atomic_load_n(average, __ATOMIC_RELAXED);
	int64_t now = (int64_t) sample;

	if (seen < OFFLOAD_SAMPLES)
		__atomic_store_n(count, ++seen, __ATOMIC_RELAXED);
	else if (before > 0 && now > OUTLIER_TIMES * before)
		now = OUTLIER_TIMES * before;
	__atomic_store_n(average, (uint64_t) (before + (now - before) / (int64_t) seen), __ATOMIC_RELAXED);
}

/* The time limit of a call that replaces READs of so many inner nodes and a leaf. */
static uint64_t
call_limit(const OffloadCosts *costs, uint32_t level)
{
	uint64_t each =
		__atomic_load_n(&costs->read, __ATOMIC_RELAXED) + SEARCH_NANOSECONDS * OFFLOAD_FRACTION / 1000;

	return (level + 1) * each * CALL_PERCENT / 100;
}

bool
offload_chosen(const Tree *tree, uint32_t memory_node, uint32_t level)
{
	TreeClient *client = tree->client;
	const OffloadCosts *costs;
	bool cheaper;

	assert(level > 0);
	if (client->shared->offloads == NULL || tree->replicas != NULL || memory_node >= client->options.nodes)
		return false;
	if (client->techniques.offload == TREE_OFFLOAD_ALWAYS)
		return true;
	costs = costs_of(tree, memory_node);
	if (__atomic_load_n(&costs->reads, __ATOMIC_RELAXED) < OFFLOAD_SAMPLES)
		return false;
	if (__atomic_load_n(&costs->calls, __ATOMIC_RELAXED) < OFFLOAD_SAMPLES)
		return true;
	cheaper = __atomic_load_n(&costs->call, __ATOMIC_RELAXED) < call_limit(costs, level);
	return client_random(client) % EXPLORE_ONE_IN == 0 ? !cheaper : cheaper;
}

void
offload_read_took(const Tree *tree, uint32_t memory_node, uint64_t microseconds)
{
	OffloadCosts *costs = costs_of(tree, memory_node);

	average_add(&costs->read, &costs->reads, microseconds * OFFLOAD_FRACTION);
}

/*
 * The call has left so many READs to be done. They are added at the estimated cost, so that calls in vain do not look
 * cheap.
 */
static void
call_took(const Tree *tree, uint32_t memory_node, uint32_t level, uint64_t microseconds, uint32_t left)
{
	OffloadCosts *costs = costs_of(tree, memory_node);
	uint64_t sample = microseconds * OFFLOAD_FRACTION + call_limit(costs, level) * left / (level + 1);

	average_add(&costs->call, &costs->calls, sample);
}

static DirectoryDescent
descent_request(const Tree *tree, const TreeBound *bound, uint32_t level, uint64_t pointer)
{
	DirectoryDescent request = {
		.tree = tree->tree,
		.pointer = pointer,
		.level = level,
		.block = bound->key.block,
		.offset = bound->key.offset,
		.side = bound->side,
		.norm_length = bound->norm_length,
		.flags = (uint8_t) ((bound->key.high ? DESCENT_HIGH : 0) | (bound->key.cut ? DESCENT_CUT : 0) |
	                        (bound->norm_bits_valid ? DESCENT_BITS_VALID : 0) |
	                        (bound->norm_exact ? DESCENT_EXACT : 0) |
	                        (tree->geometry.format.lossless ? DESCENT_LOSSLESS : 0)),
		.cell_bytes = tree->geometry.format.cell_bytes,
		.norm_bytes = tree->geometry.format.norm_bytes,
	};

	memcpy(request.norm, bound->key.norm, sizeof(request.norm));
	return request;
}

/* Does the reply name an address at which a leaf can be? */
static bool
answer_has_place(const Tree *tree, const DirectoryDescended *answer, uint32_t got)
{
	return got >= DIRECTORY_DESCENDED_BYTES && pointer_address(answer->pointer) != POINTER_NONE &&
	       pointer_memory_node(answer->pointer) < tree->client->options.nodes &&
	       pointer_address(answer->pointer) != tree->root;
}

/* Does it contain an image of that leaf that passes the checks of an image that was read? */
static bool
answer_has_leaf(const Tree *tree, const DirectoryDescended *answer, uint32_t got)
{
	const NodeGeometry *g = &tree->geometry;

	return answer->bytes == g->leaf_bytes && got == DIRECTORY_DESCENDED_BYTES + g->leaf_bytes &&
	       node_check(g, answer->image, tree->tree, answer->pointer) == NODE_GOOD &&
	       node_level(answer->image) == 0;
}

TreeStatus
offload_descend(Tree *tree, const TreeBound *bound, uint32_t level, uint64_t *pointer, uint64_t *leaf,
                bool *brought)
{
	TreeClient *client = tree->client;
	uint32_t memory_node = pointer_memory_node(*pointer);
	DirectoryDescent request = descent_request(tree, bound, level, *pointer);
	DirectoryDescended answer;
	uint32_t got = sizeof(answer);
	FabricEndpoint *endpoint = access_endpoint(client, memory_node);
	uint64_t begin = client_now_us(client);
	FabricStatus status;
	TreeStatus settled;
	bool found;

	assert(client->sections > 0 && !client->holding);
	*brought = false;
	/* READs will say so. */
	if (endpoint == NULL || (client->doubt & 1ull << memory_node) != 0)
		return TREE_NOT_FOUND;
	status = crash_point_call(client, endpoint, DIRECTORY_DESCEND, &request, sizeof(request), &answer, &got);
	client->offloads.calls++;
	found = status == FABRIC_OK && answer_has_place(tree, &answer, got);
	*brought = found && answer_has_leaf(tree, &answer, got);
	call_took(tree, memory_node, level, client_now_us(client) - begin, *brought ? 0 : found ? 1 : level + 1);
	if (status == FABRIC_TIMED_OUT || status == FABRIC_STOPPED || status == FABRIC_LOST)
	{
		client->doubt |= 1ull << memory_node;
		settled = access_settle(client, memory_node);
		return settled == TREE_OK ? TREE_NOT_FOUND : settled;
	}
	client_silence_ends(client);
	client->offloads.bytes += status == FABRIC_OK ? got : 0;
	client->offloads.found += found;
	client->offloads.brought += *brought;
	if (!found)
		return TREE_NOT_FOUND;
	*pointer = answer.pointer;
	if (*brought)
	{
		memcpy(leaf, answer.image, tree->geometry.leaf_bytes);
		access_note_leaf(tree, leaf);
	}
	return TREE_OK;
}

void
tree_client_offloads(const TreeClient *client, TreeOffloads *offloads)
{
	assert(client != NULL);
	*offloads = client->offloads;
}
