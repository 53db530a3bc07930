/*
 * node_verify.c
 *		Validates a copy of a node: not torn, the node that was expected, and of a shape that the tree writes.
 */
#include "tree/node/node.h"

/* Whether the first word of every line carries the generation's stamp. */
static bool
stamps_agree(const uint64_t *node, uint32_t bytes, uint64_t generation)
{
	uint64_t differ = 0;

	assert(bytes % LINE_BYTES == 0 && bytes <= NODE_MAX_BYTES);
	for (uint32_t word = 0; word < bytes / 8; word += LINE_WORDS)
		differ |= node[word] ^ generation;
	return (differ & STAMP_MASK) == 0;
}

/* The same where cells cross lines: of all cells, of which some word is in each packet that a WRITE may end with. */
static bool
cell_stamps_agree(const NodeGeometry *g, const uint64_t *node)
{
	uint64_t generation = node[HEADER_GENERATION];
	uint64_t differ = (node[HEADER_STATE] ^ generation) | (node[HEADER_DEAD_EPOCH] ^ generation);

	assert(!g->lines_whole);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
		differ |= node[leaf_cell_word(g, slot)] ^ generation;
	return (differ & STAMP_MASK) == 0;
}

static bool
leaf_stamps_agree(const NodeGeometry *g, const uint64_t *node)
{
	if (!g->lines_whole)
		return cell_stamps_agree(g, node);
	return stamps_agree(node, g->leaf_bytes, node[HEADER_GENERATION]);
}

/* Does a leaf's sum, where it has or needs one, vouch for the copy? */
static bool
leaf_sum_agrees(const NodeGeometry *g, const uint64_t *node)
{
	if ((node_flags(node) & NODE_SUM_VALID) == 0)
		return !leaf_needs_sum(g, node[HEADER_SELF]);
	return node_sum(node, g->leaf_bytes) == node[HEADER_SUM];
}

/* The verdict on a copy; `locked`: it was taken under the node's lock. */
static NodeVerdict
node_judge(const NodeGeometry *g, const uint64_t *node, uint64_t tree, uint64_t pointer, bool locked)
{
	uint64_t state = node[HEADER_STATE];
	uint32_t level = node_level(node);
	uint32_t count = node_count(node);

	assert(g->first_word > g->high_word && g->high_word > g->low_word);
	assert(pointer_address(pointer) != POINTER_NONE);

	/*
	 * Tree, self and format never change while a node is linked, so they identify the node even if the copy is torn.
	 */
	if (node[HEADER_GENERATION] == 0 && state == 0)
		return NODE_EMPTY;
	if (node[HEADER_TREE] != tree || node[HEADER_SELF] != pointer_address(pointer) ||
	    (uint8_t) (state >> 24) != NODE_FORMAT_VERSION || (node_flags(node) & NODE_FREE) != 0)
		return NODE_STALE;
	if (level == 0)
	{
		if (!leaf_stamps_agree(g, node))
			return NODE_TORN;
		if (!locked && !leaf_sum_agrees(g, node))
			return NODE_TORN;
		return count <= g->leaf_cells ? NODE_GOOD : NODE_DAMAGED;
	}
	if (((state ^ node[HEADER_GENERATION]) & STAMP_MASK) != 0 ||
	    node_sum(node, INNER_BYTES) != node[HEADER_SUM])
		return NODE_TORN;
	return count >= 1 && count <= g->inner_cells && level < LEVELS_MAX ? NODE_GOOD : NODE_DAMAGED;
}

NodeVerdict
node_check_whole(const NodeGeometry *g, const uint64_t *node, uint64_t tree, uint64_t pointer)
{
	return node_judge(g, node, tree, pointer, false);
}

NodeVerdict
node_check(const NodeGeometry *g, const uint64_t *node, uint64_t tree, uint64_t pointer)
{
	NodeVerdict verdict = node_judge(g, node, tree, pointer, false);

	return verdict == NODE_GOOD && !node_has_shape(g, node) ? NODE_DAMAGED : verdict;
}

NodeVerdict
node_check_locked(const NodeGeometry *g, const uint64_t *node, uint64_t tree, uint64_t pointer)
{
	NodeVerdict verdict = node_judge(g, node, tree, pointer, true);

	return verdict == NODE_GOOD && !node_has_shape(g, node) ? NODE_DAMAGED : verdict;
}

bool
leaf_sum_is_due(const NodeGeometry *g, const uint64_t *node)
{
	assert(node[HEADER_GENERATION] != 0);
	return node_level(node) == 0 && !leaf_sum_agrees(g, node);
}
