/*
 * insert_full.c
 *		Inserts that write more than a cell: over an entry that exists, or into a full leaf, which is compacted or
 *		split.
 *
 * The leaf is locked when these begin. A rewrite has the next generation; what integers cannot decide is done without
 * the lock, on a copy, and is valid if the leaf still has its generation.
 */
#include "tree/change/insert.h"
#include "tree/change/change.h"

/*
 * Gathers the leaf's cells without dead ones and `skip`, and with `extra` if not NULL, packed as they may be written.
 */
static void
insert_gather(const Insertion *in, const uint64_t *node, uint32_t skip, const uint64_t *extra,
              LeafCells *cells)
{
	assert(in->lock.held);
	leaf_gather(&in->tree->geometry, node, skip, extra, cells);
	leaf_pack(&in->tree->geometry, cells);
	assert(cells->count <= in->tree->geometry.leaf_cells + 1);
}

/*
 * Writes the leaf anew, with the next generation and the cells of insert_gather(): without `skip`; `added`: with our
 * cell.
 */
static TreeStatus
insert_rewrite(Insertion *in, uint32_t skip, bool added, const LeafCells *cells)
{
	Tree *tree = in->tree;
	TreeClient *client = tree->client;
	const NodeGeometry *g = &tree->geometry;
	uint64_t *node = client->image_left;
	FabricOp ops[1 + REDO_OPS + 2];
	int n = added ? insert_chain_begin(in, ops) : 0;
	uint32_t dropped = leaf_proven_dead(g, client->image) + in->cleared;
	TreeStatus status;

	assert(in->lock.held);
	assert(cells->count <= g->leaf_cells);
	node_begin_like(g, node, client->image, in->path.pointer, client->image[HEADER_GENERATION] + 1);
	(void) insert_set_wal_position(in->tree, in->wal, node);
	leaf_fill(g, node, cells, 0, cells->count);
	node_seal(g, node);
	n += lock_rewrite_ops(tree, &in->lock, in->path.pointer, node, g->leaf_bytes, ops + n);
	status = lock_write_and_release(tree, &in->lock, ops, n, in->path.pointer, node,
	                                tree_node_bytes(tree, in->path.pointer, 0));
	if (insert_wrote(in, status) != TREE_OK)
		return status;
	TREE_COUNT(tree, leaf_rewrites, 1);
	TREE_COUNT(tree, dead_removals, dropped);
	/* A cell of an earlier attempt of this insert has the block that the new cell has. */
	leaf_free_blocks(tree, client->image, skip, in->has_overflow ? &in->overflow : NULL);
	return TREE_OK;
}

/*
 * The cut after which both halves will be equally full once each row has a new version: a key with two cells has one
 * already, a key with one cell will get one. That is the middle if rows are updated in random order; if they are
 * updated in the order of their keys, it is nearer to the end that is done.
 */
static uint32_t
insert_churn_cut(const NodeGeometry *g, const LeafCells *cells)
{
	uint32_t to_come[LEAF_CELLS_TARGET + 1]; /* cells of the first ones in the end */
	uint32_t all = 0, cut = 1;
	bool same = false; /* as the one in front */

	assert(cells->count >= 2 && cells->count <= LEAF_CELLS_TARGET + 1);
	for (uint32_t i = 0; i < cells->count; i++)
	{
		const uint64_t *cell = cells->cells[i];
		const uint64_t *next = i + 1 < cells->count ? cells->cells[i + 1] : NULL;
		bool goes_on = next != NULL && (cell_is_posting(next) || cell_same_key(g, cell, next));

		all += same || goes_on || cell_is_posting(cell) ? 1 : 2;
		to_come[i] = all;
		same = goes_on;
	}
	while (cut + 1 < cells->count && to_come[cut - 1] * 2 < all)
		cut++;
	return cut;
}

/*
 * Where a split would best cut: in the middle, or near the end when keys come in ascending order; and if it is for a new version of
 * a row, with an eye to those that the others will get.
 */
static uint32_t
insert_wanted_cut(const Insertion *in, const LeafCells *cells)
{
	const NodeGeometry *g = &in->tree->geometry;
	const uint64_t *node = in->tree->client->image;
	bool ascending = separator_infinite(node + g->high_word) && cells->extra + 1 == cells->count;

	assert(cells->count >= 2);
	assert(node_level(node) == 0);
	if (ascending)
		return cells->count * SPLIT_ASCENDING_PERCENT / 100;
	return in->tree->full_always ? insert_churn_cut(g, cells) : cells->count / 2;
}

static TreeStatus
insert_split_write(Insertion *in, const LeafCells *cells, Split *split)
{
	Tree *tree = in->tree;
	TreeStatus status;

	assert(in->lock.held);
	(void) insert_set_wal_position(in->tree, in->wal, tree->client->image);
	split->count = insert_chain_begin(in, split->ops);
	status = split_leaf(tree, &in->lock, in->path.pointer, cells, split);
	/* Whether or not the WRITE took effect: a node may refer to the separator's block. */
	tree->cut.bytes = 0;
	if (insert_wrote(in, status) != TREE_OK)
		return status;
	tree->inserted = cells->extra < split->cut ? split->left : split->right;
	if (split->root)
	{
		cache_put(tree, tree->root, 0, tree->client->image_root);
		return TREE_OK;
	}
	assert(split->left != split->right);
	return insert_downlink(in, split->left, split->separator, split->right);
}

/*
 * No cut that integers see, or a separator whose image needs a block: the leaf is released, ordered outside on the
 * copy in client->image, and locked again. If the generation and the bytes of all cells are the same, the plan is
 * still valid.
 */
static TreeStatus
insert_split_unlocked(Insertion *in, OrderedCells *cells, Split *split)
{
	Tree *tree = in->tree;
	TreeClient *client = tree->client;
	const NodeGeometry *g = &tree->geometry;
	uint32_t cells_bytes = g->leaf_cells * g->cell_bytes;
	uint64_t *now = client->descent;
	TreeStatus status = insert_release(in);
	bool changed;

	assert(!g->format.postings);
	assert(cells->leaf.count == g->leaf_cells + 1 || leaf_live(g, client->image) < g->leaf_cells);
	TREE_COUNT(tree, undecided_cuts, 1);
	if (status == TREE_OK)
		status = order_cells(tree, cells);
	if (status != TREE_OK)
		return status;
	split->cut = insert_wanted_cut(in, &cells->leaf);
	status =
		order_separator(tree, pointer_memory_node(in->path.pointer), cells, split->cut, split->separator);
	if (status == TREE_OK)
		status =
			lock_and_read(tree, in->path.pointer, tree_node_bytes(tree, in->path.pointer, 0), now, &in->lock);
	if (status != TREE_OK)
		return status;
	changed = node_level(now) != 0 || now[HEADER_GENERATION] != client->image[HEADER_GENERATION] ||
	          memcmp(now + g->first_word, client->image + g->first_word, cells_bytes) != 0;
	if (changed || !insert_permitted(in))
	{
		in->outrun = changed;
		status =
			lock_release(tree, &in->lock, in->path.pointer, now, tree_node_bytes(tree, in->path.pointer, 0));
		return status == TREE_OK && changed ? TREE_RETRY : status;
	}
	/*
	 * Same generation and cells: what may differ is the (lsn, epoch) unit. The gathered cells point into the
	 * copy.
	 */
	memcpy(client->image, now, g->leaf_bytes);
	return insert_split_write(in, &cells->leaf, split);
}

static TreeStatus
insert_split(Insertion *in, OrderedCells *cells)
{
	Tree *tree = in->tree;
	const NodeGeometry *g = &tree->geometry;
	bool root = pointer_address(in->path.pointer) == tree->root;
	Split split;
	TreeStatus status;

	assert(in->lock.held);
	if (!split_reserved(tree, in->path.pointer, 0))
	{
		status = insert_release(in);
		if (status == TREE_OK)
			status = reserve_fill(tree, 0, root ? 2 : 1);
		return status == TREE_OK ? TREE_RETRY : status;
	}
	split.cut = leaf_cut(g, &cells->leaf, insert_wanted_cut(in, &cells->leaf));
	if (split.cut == 0)
		return insert_split_unlocked(in, cells, &split);
	leaf_separator(g, leaf_cut_left(cells->leaf.cells, split.cut), cells->leaf.cells[split.cut],
	               split.separator);
	/*
	 * A whole separator is the least of the right half: where that is one of a tie, the comparator must find
	 * it.
	 */
	if (cell_state(split.separator[0]) == SEPARATOR_FULL && !g->format.lossless &&
	    ((split.separator[0] & CELL_OVERFLOW_BIT) != 0 ||
	     (split.cut + 1 < cells->leaf.count &&
	      cell_order(g, cells->leaf.cells[split.cut], cells->leaf.cells[split.cut + 1]) == 0)))
		return insert_split_unlocked(in, cells, &split);
	return insert_split_write(in, &cells->leaf, &split);
}

/*
 * The TID is there. As the very same live entry: a rewrite all the same, so that no process that judged the old
 * generation can remove it (I-P3). Else it is a leftover or dead-marked: replaced, by a rewrite, as an entry never
 * changes its slot; or by a split, where its posting does not get shorter by it and no cell is free.
 */
static TreeStatus
insert_over(Insertion *in, uint32_t slot, OrderedCells *cells)
{
	const NodeGeometry *g = &in->tree->geometry;
	const uint64_t *node = in->tree->client->image;
	const uint64_t *cell = node + leaf_cell_word(g, slot);
	const uint64_t *head = node + leaf_cell_word(g, posting_head(g, node, slot));
	OverflowReference reference;

	assert(slot < g->leaf_cells);
	assert(cell_state(cell[0]) != CELL_EMPTY);

	if (cell_state(cell[0]) == CELL_DEAD || !cell_same_key(g, head, in->cell))
	{
		insert_gather(in, node, slot, in->cell, &cells->leaf);
		if (cells->leaf.count > g->leaf_cells)
			return insert_split(in, cells);
		return insert_rewrite(in, slot, true, &cells->leaf);
	}
	in->hit = in->hit || !in->again;
	if (in->has_overflow)
	{
		cell_overflow(g, cell, &reference);
		in->kept =
			reference.memory_node != in->overflow.memory_node || reference.offset != in->overflow.offset;
	}
	insert_gather(in, node, LEAF_NO_SLOT, NULL, &cells->leaf);
	return insert_rewrite(in, LEAF_NO_SLOT, false, &cells->leaf);
}

/*
 * The leaf is full: dead entries are removed instead of a split, if there are any. The caller's hook is given the
 * copy in client->image while nothing is held; its answer is valid for the same generation.
 */
static TreeStatus
insert_delete_dead(Insertion *in, OrderedCells *cells)
{
	Tree *tree = in->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t *node = tree->client->image;
	uint64_t *without = tree->client->descent;
	uint32_t bytes = tree_node_bytes(tree, in->path.pointer, 0);
	TreeFullLeaf full;
	TreeStatus status = insert_release(in);
	bool room;

	assert(!in->asked);
	in->asked = true;
	if (status != TREE_OK)
		return status;
	room = room_ask(tree, in->path.pointer, node, &full);
	status = lock_and_read(tree, in->path.pointer, bytes, node, &in->lock);
	if (status != TREE_OK)
		return status;
	if (node_level(node) != 0 || node[HEADER_GENERATION] != full.leaf.generation)
	{
		status = insert_release(in);
		return status == TREE_OK ? TREE_RETRY : status;
	}
	/* It has the same generation and is still full: no process has added the key meanwhile. */
	if (!insert_permitted(in))
		return insert_release(in);
	in->cleared = room ? room_removable(g, node, &full) : 0;
	/* Out of a copy: if the leaf is handed over after all, it is as it was. */
	memcpy(without, node, g->leaf_bytes);
	if (in->cleared > 0)
		room_clear(g, without, &full);
	insert_gather(in, without, LEAF_NO_SLOT, in->cell, &cells->leaf);
	if (!leaf_worth_rewrite(g->leaf_cells, cells->leaf.count - 1, in->cleared + leaf_proven_dead(g, node)))
	{
		in->cleared = 0;
		insert_gather(in, node, LEAF_NO_SLOT, in->cell, &cells->leaf);
		return insert_split(in, cells);
	}
	if (in->cleared > 0)
		room_clear(g, node, &full);
	status = insert_rewrite(in, LEAF_NO_SLOT, true, &cells->leaf);
	in->cleared = 0;
	return status;
}

/* No slot is empty: the leaf's cells are packed anew if that makes room, else it is split. */
static TreeStatus
insert_full(Insertion *in, OrderedCells *cells)
{
	const NodeGeometry *g = &in->tree->geometry;
	const uint64_t *node = in->tree->client->image;

	insert_gather(in, node, LEAF_NO_SLOT, in->cell, &cells->leaf);
	if (leaf_worth_rewrite(g->leaf_cells, cells->leaf.count - 1, leaf_proven_dead(g, node)))
		return insert_rewrite(in, LEAF_NO_SLOT, true, &cells->leaf);
	if (!in->asked && room_is_asked(in->tree, node))
		return insert_delete_dead(in, cells);
	return insert_split(in, cells);
}

TreeStatus
insert_by_rewrite(Insertion *in, uint32_t same_tid)
{
	OrderedCells cells;

	assert(in->lock.held);
	cells.extra = in->cell;
	cells.extra_key = in->key;
	if (same_tid != LEAF_NO_SLOT)
		return insert_over(in, same_tid, &cells);
	return insert_full(in, &cells);
}
