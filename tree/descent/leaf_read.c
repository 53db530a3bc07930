/*
 * leaf_read.c
 *		Reads leaves for lookups and scans: from the instance's leaf cache, else from their memory nodes.
 */
#include "tree/lock/leaf_cache.h"
#include "tree/lock/lock.h"

/*
 * Of a leaf that is to be read, as there is no image: connects, if the client has not yet, for a key by which what is read
 * can be kept.
 */
static TreeStatus
key_to_read(Tree *tree, uint64_t pointer, LeafKey *key)
{
	TreeClient *client = tree->client;
	uint32_t node = pointer_memory_node(pointer);

	if (!key->kept || client->options.endpoints[node] != NULL)
		return TREE_OK;
	if (access_endpoint(client, node) == NULL)
		return client_away(client, node);
	*key = leaf_cache_key(tree, pointer);
	return TREE_OK;
}

TreeStatus
leaf_cache_read(Tree *tree, uint64_t pointer, uint64_t *leaf)
{
	LeafKey key;
	TreeStatus status;

	if (tree->client->shared->leaves == NULL)
		return access_read_node(tree, pointer, 0, leaf);
	key = leaf_cache_key(tree, pointer);
	if (leaf_cache_take(tree, &key, leaf))
		return TREE_OK;
	status = key_to_read(tree, pointer, &key);
	if (status == TREE_OK)
		status = access_read_node(tree, pointer, 0, leaf);
	if (status == TREE_OK)
		leaf_cache_offer(tree, &key, leaf);
	return status;
}

/* How many leaves in front of the one that is copied are called into the processor's cache. */
#define HINTS_AHEAD 8

/* Copies the leaves that have images; returns the number of the others, whose places are in `misses`. */
static int
take_leaves(Tree *tree, const LeafKey *keys, int count, uint64_t *const *images, int *misses)
{
	int missed = 0;

	for (int i = 0; i < count && i < HINTS_AHEAD; i++)
		leaf_cache_hint(tree, &keys[i]);
	for (int i = 0; i < count; i++)
	{
		if (i + HINTS_AHEAD < count)
			leaf_cache_hint(tree, &keys[i + HINTS_AHEAD]);
		if (!leaf_cache_take(tree, &keys[i], images[i]))
			misses[missed++] = i;
	}
	return missed;
}

/* leaf_cache_read_leaves(), with memory for keys. */
static TreeStatus
read_leaves(Tree *tree, const uint64_t *pointers, int count, uint64_t *const *images, NodeVerdict *verdicts,
            LeafKey *keys, bool keep)
{
	uint64_t *missed_images[READ_TOGETHER_MAX];
	uint64_t missed[READ_TOGETHER_MAX];
	NodeVerdict judged[READ_TOGETHER_MAX];
	int places[READ_TOGETHER_MAX];
	int misses;
	TreeStatus status;

	assert(count > 0 && count <= READ_TOGETHER_MAX);
	for (int i = 0; i < count; i++)
	{
		keys[i] = leaf_cache_key(tree, pointers[i]);
		verdicts[i] = NODE_GOOD;
	}
	misses = take_leaves(tree, keys, count, images, places);
	if (misses == 0)
		return TREE_OK;
	for (int i = 0; i < misses; i++)
	{
		missed[i] = pointers[places[i]];
		missed_images[i] = images[places[i]];
		status = key_to_read(tree, missed[i], &keys[places[i]]);
		if (status != TREE_OK)
			return status;
	}
	status = access_read_leaves(tree, missed, misses, missed_images, judged);
	for (int i = 0; status == TREE_OK && i < misses; i++)
	{
		verdicts[places[i]] = judged[i];
		if (keep && judged[i] == NODE_GOOD)
			leaf_cache_offer(tree, &keys[places[i]], missed_images[i]);
	}
	return status;
}

TreeStatus
leaf_cache_read_leaves(Tree *tree, const uint64_t *pointers, int count, uint64_t *const *images,
                       NodeVerdict *verdicts)
{
	LeafKey keys[READ_TOGETHER_MAX];

	if (tree->client->shared->leaves == NULL)
		return access_read_leaves(tree, pointers, count, images, verdicts);
	return read_leaves(tree, pointers, count, images, verdicts, keys, true);
}

TreeStatus
leaf_cache_pass_leaves(Tree *tree, const uint64_t *pointers, int count, uint64_t *const *images,
                       NodeVerdict *verdicts, LeafKey *keys)
{
	return read_leaves(tree, pointers, count, images, verdicts, keys, false);
}
