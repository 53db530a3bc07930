/*
 * parent_split.c
 *		Parents without room for their new downlinks, in waves: each is cut into as many nodes as these take.
 *
 * As split.c does for one downlink, and by the same rules: separators are copied as they are (T7), the new nodes lie to the right of
 * the one that is split, and the root stays where it is, above two or more new nodes.  They are written before what links to them
 * (downlink_wave.c).
 */
#include "tree/descent/parent.h"

#include "tree/descent/downlink.h"

/* A node that many more downlinks follow is cut so full; else at half. */
#define PARENT_SPREAD_PERCENT 70u

/* ---- where it is cut ---- */

/*
 * Number of cells that stay left.  Downlinks ascend, so the cells in front of this one are final: where many follow, the left node is
 * filled better than by half.
 */
static uint32_t
piece_cut(const uint64_t *node, uint32_t index, uint32_t rest)
{
	uint32_t count = node_count(node);
	uint32_t middle = count / 2, most = count * PARENT_SPREAD_PERCENT / 100;

	if (index == count && node[HEADER_RIGHT] == POINTER_NONE)
		return count * SPLIT_ASCENDING_PERCENT / 100;
	if (rest <= count / 4 || index <= middle)
		return middle;
	return index < most ? index : most;
}

/* ---- images ---- */

static void
image_set_state(uint64_t *node, uint32_t count, uint32_t flags)
{
	node[HEADER_STATE] = node_state_word(node[HEADER_GENERATION], node_level(node), count, flags);
}

/* Moves cells [cut, count) of the left image into a new one, and links that. */
static void
cells_move(const NodeGeometry *g, Piece *left, Piece *right, uint32_t cut)
{
	uint32_t count = node_count(left->image);
	uint64_t *from = left->image + inner_cell_word(g, cut);
	uint64_t *to = right->image + inner_cell_word(g, 0);
	size_t bytes = (size_t) (count - cut) * g->inner_stride * 8;

	assert(cut >= 1 && cut < count);
	memcpy(to, from, bytes);
	node_set_fence(g, right->image, false, from + 1);
	node_get_fence(g, right->image, false, to + 1);
	node_set_fence(g, left->image, true, to + 1);
	memset(from, 0, bytes);
	image_set_state(right->image, count - cut, node_flags(right->image));
	image_set_state(left->image, cut, node_flags(left->image));
	left->image[HEADER_RIGHT] = right->pointer;
	right->next = left->next;
	left->next = right;
}

/* The root's cells move to a new node, before that is split. */
static void
root_leave(Parents *parents, Parent *parent)
{
	Tree *tree = parents->tree;
	Piece *leftmost = parent->leftmost;
	uint64_t *root = leftmost->image;
	uint64_t generation;

	parent->root = piece_begin(parents, parent->pointer);
	node_begin(&tree->geometry, parent->root->image, tree->tree, tree->root, parents->level + 1,
	           root[HEADER_GENERATION] + 1, NODE_ROOT);
	spare_take(tree, parents->level, &leftmost->pointer, &generation);
	root[HEADER_SELF] = pointer_address(leftmost->pointer);
	root[HEADER_GENERATION] = generation;
	image_set_state(root, node_count(root), node_flags(root) & ~NODE_ROOT);
}

/* The root above its pieces: one level higher. */
static void
root_complete(const Parents *parents, const Parent *parent)
{
	const NodeGeometry *g = &parents->tree->geometry;
	uint64_t *root = parent->root->image;
	uint64_t *cell = root + inner_cell_word(g, 0);

	assert(parent->pieces >= 2 && parent->pieces <= g->inner_cells);
	for (const Piece *piece = parent->leftmost; piece != NULL; piece = piece->next)
	{
		cell[0] = piece->pointer;
		node_get_fence(g, piece->image, false, cell + 1);
		cell += g->inner_stride;
	}
	image_set_state(root, parent->pieces, NODE_ROOT);
	node_seal(g, root);
}

/* ---- the face ---- */

bool
parent_split(Parents *parents, Parent *parent, Piece *piece, uint32_t index, uint32_t rest)
{
	Tree *tree = parents->tree;
	const NodeGeometry *g = &tree->geometry;
	bool root = pointer_address(parent->pointer) == tree->root;
	uint32_t needed = root && parent->root == NULL ? 2 : 1;
	uint32_t cut = piece_cut(piece->image, index, rest);
	uint64_t pointer, generation;
	Piece *right;

	assert(parent->lock.held && node_count(piece->image) == g->inner_cells);
	/* No sound tree has so many levels: downlink.c says so. */
	if (root && (parent->pieces == g->inner_cells || parents->level + 1 >= LEVELS_MAX))
		return false;
	if (spare_count(tree, parents->level) < needed || parents->piece_count + needed > PIECES_MAX)
	{
		if (!parent->short_of)
			parents->short_of += needed;
		parent->short_of = true;
		return false;
	}
	if (needed == 2)
		root_leave(parents, parent);
	spare_take(tree, parents->level, &pointer, &generation);
	right = piece_begin(parents, pointer);
	node_begin_like(g, right->image, piece->image, pointer, generation);
	cells_move(g, piece, right, cut);
	parent->pieces++;
	return true;
}

void
parent_complete(Parents *parents, Parent *parent)
{
	const NodeGeometry *g = &parents->tree->geometry;

	if (parent->root == NULL)
		node_next_generation(parent->leftmost->image);
	for (Piece *piece = parent->leftmost; piece != NULL; piece = piece->next)
		node_seal(g, piece->image);
	if (parent->root != NULL)
		root_complete(parents, parent);
}
