/*
 * estimate.c
 *		How large a tree is, without walking it: for the planner.
 */
#include "tree/scan/scan.h"
#include "tree/descent/descent.h"

/* The assumed fill of nodes that were not counted: between halves that were just split and full ones. */
#define FULLNESS_PERCENT 67u

/*
 * Descends from the root, whose copy is in the client's descent buffer, by the middle of each node, which goes there
 * next, and counts the leaf's entries. 0 if a node had changed meanwhile: an estimate is not tried again.
 */
static TreeStatus
sample_leaf(Tree *tree, uint32_t *entries)
{
	const NodeGeometry *g = &tree->geometry;
	uint64_t *node = tree->client->descent;

	*entries = 0;
	for (uint32_t level = node_level(node); level > 0; level--)
	{
		uint32_t middle = node_count(node) / 2;
		uint64_t child = node_word(node, inner_cell_word(g, middle));
		TreeStatus status = access_read_node(tree, child, (int) level - 1, node);

		if (status == TREE_RETRY)
			return TREE_OK;
		if (status != TREE_OK)
			return status;
	}
	*entries = leaf_live(g, node);
	return TREE_OK;
}

/*
 * Estimates from the root alone: its children times the expected fan-out of the levels below. A leaf in the middle
 * gives the number of entries in one leaf, if that is more than its cells: one cell with a posting list has several.
 */
static TreeStatus
estimate_from_root(Tree *tree, TreeStatistics *statistics)
{
	const NodeGeometry *g = &tree->geometry;
	uint64_t *root = tree->client->descent;
	uint32_t usual = g->leaf_cells * FULLNESS_PERCENT / 100;
	uint32_t sampled;
	uint64_t nodes = 1;
	TreeStatus status = access_read_node(tree, tree->root, -1, root);

	assert(!tree->client->holding);
	if (status != TREE_OK)
		return status;
	statistics->height = node_level(root) + 1;
	if (node_level(root) == 0)
	{
		statistics->leaves = 1;
		statistics->entries = leaf_live(g, root);
		return TREE_OK;
	}
	for (uint32_t level = node_level(root); level > 0; level--)
	{
		assert(level < LEVELS_MAX);
		statistics->inner_nodes += nodes;
		nodes =
			level == node_level(root) ? node_count(root) : nodes * g->inner_cells * FULLNESS_PERCENT / 100;
	}
	statistics->leaves = nodes;
	status = sample_leaf(tree, &sampled);
	statistics->entries = nodes * (sampled > usual ? sampled : usual);
	return status;
}

/* The height as the cache has it: a root that was split says so nowhere else. */
static TreeStatus
height_find(Tree *tree, uint32_t *height)
{
	TreeBound bound;
	Path path;
	TreeStatus status;

	assert(height != NULL);
	assert(!tree->client->holding);
	bound_of_end(&tree->geometry, false, &bound);
	status = search_descend(tree, &bound, 0, false, &path);
	if (status == TREE_OK)
		*height = path.root_level + 1;
	return status;
}

/* tree_estimate_nodes(), inside its critical section. */
static TreeStatus
estimate_nodes(Tree *handle, TreeStatistics *statistics)
{
	bool estimated;
	TreeStatus status;

	assert(handle->client->sections > 0);
	tree_count_flush(handle);
	state_read(handle->state, statistics, &estimated);
	if (estimated)
		status = height_find(handle, &statistics->height);
	else
	{
		statistics->inner_nodes = 0;
		status = estimate_from_root(handle, statistics);
		if (status == TREE_OK)
			state_set(handle->state, statistics->entries, statistics->leaves, statistics->inner_nodes,
			          statistics->height);
	}
	if (status == TREE_RETRY)
		status = client_fail(handle->client, TREE_DAMAGED, "tree %llx: its root is not one",
		                     (unsigned long long) handle->tree);
	/* No tree is without a leaf, whatever merges have taken from an estimate that was too low. */
	if (statistics->leaves == 0)
		statistics->leaves = 1;
	statistics->node_bytes =
		statistics->leaves * handle->geometry.leaf_bytes + statistics->inner_nodes * INNER_BYTES;
	return status;
}

TreeStatus
tree_estimate_nodes(Tree *handle, TreeStatistics *statistics)
{
	int section;
	TreeStatus status;

	assert(handle->state != NULL);
	assert(statistics != NULL);
	status = critical_enter(handle, &section);
	if (status != TREE_OK)
		return status;
	status = estimate_nodes(handle, statistics);
	critical_leave(handle, section);
	return status;
}

TreeStatus
tree_estimate(Tree *handle, TreeStatistics *statistics)
{
	TreeRecord record;
	TreeStatus status = tree_estimate_nodes(handle, statistics);

	if (status != TREE_OK || statistics->extent_bytes != 0)
		return status;
	status =
		tree_record_read(handle->client, handle->tree, tree_source(handle, tree_home(handle->root)), &record);
	if (status == TREE_OK)
		statistics->extent_bytes = record.bytes;
	return status;
}

double
tree_bytes_for_cell(const TreeFormat *format)
{
	NodeGeometry g = node_geometry(format);

	assert(format_valid(format));
	return (double) (g.leaf_bytes + g.inner_stride * 8) / g.leaf_cells;
}
