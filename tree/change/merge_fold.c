/*
 * merge_fold.c
 *		Leaves that are nearly empty go into their left neighbor, with their entries.
 *
 * A leaf that is at most a quarter full is sparse. It is merged as an empty one is (merge.c) if it and its neighbor together fill
 * half a leaf at most: so the leaf that comes of them has room for as much again before it is split. What counts are cells in use,
 * those of postings and dead-marked ones included: a rewrite never takes more.
 *
 * Here alone entries move left (I-T6). Nobody of this instance sees it, as this is the only call in progress on the tree and its epoch
 * is raised behind: whoever comes back goes on at a fence, by a descent, and takes of the leaf that covers it the part behind that
 * (scan.c). Readers of other servers may see the leaf with their entries both here and there until it says that it is in no tree; in
 * that time nothing is added to either, and nothing goes. What they tile by are fences: a leaf that begins, or ends, elsewhere than
 * where they are is not the next one, and they descend to their fence, too.
 *
 * The neighbor gets the later of both WAL positions and the younger of both units of what is dead. Leaves that a crash has left
 * unverified, or whose marks are void, neither go nor take anything until they are healed, as both are said of a whole leaf. Where
 * both positions are proven, the earlier one stays so as long as the later one does: epochs follow each other in the WAL.
 *
 * What goes is what the plan has read, behind which the leaf's lock was seen free. A WRITE that comes late between the two is of a call
 * that has failed: it is as if it had not come. In the neighbor it stays, as that is read again under its lock.
 *
 * Dead-marked cells move with their marks, proven or not: what a rewrite leaves out has blocks to be given back.
 */
#include "tree/change/insert.h"
#include "tree/change/merge.h"

/* A leaf is sparse if it fills no more than this part of its cells, */
#define SPARSE_PART 4
/* and goes if it and its neighbor fill no more than this one. */
#define FOLDED_PART 2

uint32_t
fold_cells(const NodeGeometry *g, const uint64_t *leaf)
{
	assert(node_level(leaf) == 0);
	return leaf_is_unverified(g, leaf) || leaf_marks_void(g, leaf) ? FOLD_NEVER : leaf_used(g, leaf);
}

bool
fold_sparse(const NodeGeometry *g, uint32_t cells)
{
	assert(cells <= g->leaf_cells || cells == FOLD_NEVER);
	return cells <= g->leaf_cells / SPARSE_PART;
}

bool
fold_fits(const NodeGeometry *g, uint32_t left, uint32_t cells)
{
	const uint32_t most = g->leaf_cells / FOLDED_PART;

	return fold_sparse(g, cells) && left <= most && left + cells <= most;
}

/* The cells of a leaf in the order of a rewrite, those of dead entries, too. */
static void
cells_gather(const NodeGeometry *g, const uint64_t *leaf, LeafCells *cells)
{
	NodeGeometry keeping = *g;

	keeping.proven = NULL;
	leaf_gather(&keeping, leaf, LEAF_NO_SLOT, NULL, cells);
	leaf_pack(g, cells);
	assert(cells->count <= leaf_used(g, leaf));
}

void
fold_take(TreeMerge *merge, MergeRun *run, const uint64_t *leaf)
{
	const NodeGeometry *g = &merge->tree->geometry;
	LeafCells cells;

	assert(merge->alone);
	cells_gather(g, leaf, &cells);
	for (uint32_t i = 0; i < cells.count; i++)
		memcpy(merge->moved + (run->moved + run->cells + i) * g->cell_words, cells.cells[i], g->cell_bytes);
	run->ordered = (run->cells == 0 || run->ordered) && cells.ordered;
	run->cells += cells.count;
	assert(run->cells <= g->leaf_cells / FOLDED_PART);
	tree_wal_position_raise(&run->wal, (uint32_t) leaf[HEADER_EPOCH], leaf[HEADER_LSN]);
}

bool
fold_image(const TreeMerge *merge, const MergeRun *run, uint64_t pointer)
{
	const Tree *tree = merge->tree;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *old = tree->client->image;
	uint64_t *node = tree->client->image_left;
	const uint64_t *all[LEAF_CELLS_TARGET];
	LeafCells cells;

	assert(merge->alone && run->cells > 0);
	cells_gather(g, old, &cells);
	/* What is behind the plan came late, of a call that has failed. */
	if (cells.count + run->cells > g->leaf_cells)
		return false;
	memcpy(all, cells.cells, cells.count * sizeof(all[0]));
	for (uint32_t i = 0; i < run->cells; i++)
		all[cells.count + i] = merge->moved + (run->moved + i) * g->cell_words;
	node_begin_like(g, node, old, pointer, old[HEADER_GENERATION] + 1);
	leaf_fill_cells(g, node, all, cells.count + run->cells, cells.ordered && run->ordered);
	(void) insert_set_wal_position(tree, &run->wal, node);
	return true;
}
