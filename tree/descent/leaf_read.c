/*
 * leaf_read.c
 *		Reads leaves for lookups and scans: from the instance's leaf cache, else from their memory nodes.
 */
#include "tree/lock/leaf_cache.h"

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
	status = access_read_node(tree, pointer, 0, leaf);
	if (status == TREE_OK)
		leaf_cache_offer(tree, &key, leaf);
	return status;
}

TreeStatus
leaf_cache_read_leaves(Tree *tree, const uint64_t *pointers, int count, uint64_t *const *images,
                       NodeVerdict *verdicts)
{
	LeafKey keys[READ_AHEAD_MAX];
	uint64_t *missed_images[READ_AHEAD_MAX];
	uint64_t missed[READ_AHEAD_MAX];
	NodeVerdict judged[READ_AHEAD_MAX];
	int places[READ_AHEAD_MAX];
	int misses = 0;
	TreeStatus status;

	assert(count > 0 && count <= READ_AHEAD_MAX);
	if (tree->client->shared->leaves == NULL)
		return access_read_leaves(tree, pointers, count, images, verdicts);
	for (int i = 0; i < count; i++)
	{
		keys[i] = leaf_cache_key(tree, pointers[i]);
		verdicts[i] = NODE_GOOD;
		if (leaf_cache_take(tree, &keys[i], images[i]))
			continue;
		missed[misses] = pointers[i];
		missed_images[misses] = images[i];
		places[misses++] = i;
	}
	if (misses == 0)
		return TREE_OK;
	status = access_read_leaves(tree, missed, misses, missed_images, judged);
	for (int i = 0; status == TREE_OK && i < misses; i++)
	{
		verdicts[places[i]] = judged[i];
		if (judged[i] == NODE_GOOD)
			leaf_cache_offer(tree, &keys[places[i]], missed_images[i]);
	}
	return status;
}
