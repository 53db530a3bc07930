/*
 * insert.c
 *		Inserting one entry: descent outside of locks, then the leaf under its lock by integers only.
 *
 * The common path is two round trips: {COMPARE_SWAP, READ leaf} and {[WRITE (lsn, epoch)] WRITE cell,
 * unlock}. An entry that is there already, a leaf without an empty slot, fences that integers cannot judge:
 * each takes its own way below. TREE_RETRY inside this file means: begin anew with a descent; whatever landed
 * already is found as the entry itself.
 */
#include "internal.h"

/*
 * A full leaf of which a rewrite keeps no more cells than this part is rewritten in place: it pays for itself when some inserts
 * have room afterwards.
 */
#define REWRITE_LIVE_NUMERATOR 15
#define REWRITE_LIVE_DENOMINATOR 16
/* The same of one where packing alone makes room: more, as the next duplicates will come. */
#define REWRITE_PACKED_NUMERATOR 3
#define REWRITE_PACKED_DENOMINATOR 4

/*
 * Tries at one entry.  One is lost when the leaf changes between the comparator's work outside and the lock, and each time
 * somebody else's work is done; so many in a row on a sound tree are none.
 */
#define INSERT_ATTEMPTS 128

/* Writes of an image out of line to another memory node than the leaf's, when its channel had to be reset. */
#define IMAGE_ATTEMPTS 3

/* Whether a full leaf whose entries take these cells, with the new one, is rewritten; `dropped`: dead ones that they are without. */
static bool
leaf_worth_rewrite(const NodeGeometry *g, const LeafCells *cells, uint32_t dropped)
{
	uint32_t kept = cells->count - 1;

	assert(cells->count > 0);
	if (dropped > 0 && kept * REWRITE_LIVE_DENOMINATOR <= g->leaf_cells * REWRITE_LIVE_NUMERATOR)
		return true;
	return kept * REWRITE_PACKED_DENOMINATOR <= g->leaf_cells * REWRITE_PACKED_NUMERATOR;
}

typedef struct Insertion
{
	Tree *tree;
	const TreeKey *key;
	const TreeStamp *stamp;
	TreeBound bound;
	Path path;
	LockHold hold;
	uint64_t cell[LINE_WORDS]; /* stamp 0 */
	OutsideReference outside;
	bool has_outside;
	bool image_pending; /* the image out of line is not written yet */
	bool again;         /* a chain of this insert may have been applied before */
	bool hit;
	uint32_t cleared;  /* entries of the leaf's image that go, by its answer */
	bool asked;        /* the caller's hook, about a full leaf */
	bool kept;         /* the leaf keeps another cell than ours: our block is free */
	bool alone_wanted; /* insert only where the leaf shows no other entry with this normalized key */
	bool alone;        /* no leaf has shown one */
	int astray;        /* descents that led nowhere */
} Insertion;

typedef enum InsertPlace
{
	PLACE_HERE,
	PLACE_LEFT,    /* below the leaf's low fence: stale path */
	PLACE_RIGHT,   /* at or above its high fence */
	PLACE_UNKNOWN, /* only the comparator can tell */
	PLACE_INNER    /* the root is no leaf any more */
} InsertPlace;

/* Gives a block back to which no cell refers. */
static void
block_return(Tree *tree, OutsideBlock *block)
{
	assert(!tree->client->holding);
	if (block->bytes != 0)
		allocate_outside_return(tree, block->memory_node, block->offset, block->bytes);
	block->bytes = 0;
}

void
insert_abandon(Tree *tree)
{
	assert(!tree->client->holding);
	block_return(tree, &tree->block);
	block_return(tree, &tree->cut);
	assert(tree->block.bytes == 0 && tree->cut.bytes == 0);
}

/*
 * A chain that wrote has ended. From here on our block is the cell's, whatever comes (the comparator may jump
 * away while the parent is told), unless the leaf kept another cell. After a doubt the cell may be there,
 * which the next attempt will see.
 */
static TreeStatus
insert_wrote(Insertion *in, TreeStatus status)
{
	assert(!in->hold.held);
	assert(!in->tree->client->holding);
	if (status == TREE_OK)
		in->tree->inserted = in->path.pointer;
	else
		in->again = true;
	if (status != TREE_OK || !in->kept)
		in->tree->block.bytes = 0;
	return status;
}

/* Gives the image out of line a block near the leaf, once, and makes the cell. */
static TreeStatus
insert_cell_make(Insertion *in)
{
	Tree *tree = in->tree;
	const TreeKey *key = in->key;
	TreeStatus status;

	assert(tree->block.bytes == 0);
	assert(!tree->client->holding);

	in->has_outside = cell_needs_outside(&tree->geometry, key);
	if (in->has_outside)
	{
		in->outside.memory_node = pointer_memory_node(in->path.pointer);
		in->outside.bytes = key->image_bytes;
		in->outside.hash = image_hash(key->image, key->image_bytes);
		status = allocate_outside(tree, in->outside.memory_node, key->image_bytes, &in->outside.offset);
		if (status != TREE_OK)
			return status;
		tree->block = (OutsideBlock){in->outside.memory_node, key->image_bytes, in->outside.offset};
		in->image_pending = true;
	}
	cell_make(&tree->geometry, in->cell, key, 0, in->has_outside ? &in->outside : NULL);
	return TREE_OK;
}

/* The WRITE of the image out of line, from a private copy padded to whole words. */
static FabricOp
insert_image_op(const Insertion *in)
{
	uint32_t bytes = (in->outside.bytes + 7) / 8 * 8;
	FabricOp op = {
		.opcode = FABRIC_WRITE,
		.region = FABRIC_NODES,
		.length = bytes,
		.offset = in->outside.offset,
		.buffer = in->tree->outside,
	};

	assert(in->has_outside && in->image_pending);
	assert(bytes <= TREE_IMAGE_MAX_BYTES);
	in->tree->outside[bytes / 8 - 1] = 0;
	memcpy(in->tree->outside, in->key->image, in->outside.bytes);
	return op;
}

/*
 * Begins a chain on the leaf's memory node: an image that belongs there goes first. Returns the number of
 * operations.
 */
static int
insert_chain_begin(const Insertion *in, FabricOp *ops)
{
	assert(in->hold.held);
	assert(!in->image_pending || in->outside.memory_node == in->hold.memory_node);
	if (!in->image_pending)
		return 0;
	ops[0] = insert_image_op(in);
	return 1;
}

/*
 * An image at another memory node than the leaf's, which a right move led to: written and awaited before the
 * lock.
 */
static TreeStatus
insert_image_elsewhere(Insertion *in)
{
	TreeStatus status = TREE_RETRY;
	FabricOp op;

	assert(!in->tree->client->holding);
	if (!in->image_pending || in->outside.memory_node == pointer_memory_node(in->path.pointer))
		return TREE_OK;
	op = insert_image_op(in);
	for (int attempt = 0; attempt < IMAGE_ATTEMPTS && status == TREE_RETRY; attempt++)
		status = access_execute(in->tree, in->outside.memory_node, &op, 1);
	in->image_pending = status != TREE_OK;
	assert(status != TREE_OK || !in->image_pending);
	return status;
}

/* Integers only, or bytes that were judged outside: whether the key belongs into the locked leaf. */
static InsertPlace
insert_place(const Insertion *in, const uint64_t *node)
{
	const NodeGeometry *g = &in->tree->geometry;
	const uint64_t *low = node + g->low_word;
	const uint64_t *high = node + g->high_word;
	Decision below = DECIDE_ABOVE, above = DECIDE_BELOW;

	assert(in->hold.held);
	if (node_level(node) != 0)
		return PLACE_INNER;
	if (in->path.fences_known && separator_equal(g, low, in->path.low) &&
	    separator_equal(g, high, in->path.high))
		return PLACE_HERE;
	if (!separator_infinite(low))
		below = node_decide(g, &in->bound, low, true);
	if (!separator_infinite(high))
		above = node_decide(g, &in->bound, high, true);
	assert(in->bound.side == 0);
	if (below == DECIDE_BELOW)
		return PLACE_LEFT;
	if (above == DECIDE_ABOVE || above == DECIDE_EQUAL)
		return PLACE_RIGHT;
	return below == DECIDE_UNKNOWN || above == DECIDE_UNKNOWN ? PLACE_UNKNOWN : PLACE_HERE;
}

/*
 * Raises (lsn, epoch) of the image and remembers an older epoch (crash-safety.md rule 14). Returns whether it
 * changed.
 */
static bool
insert_stamp(const Insertion *in, uint64_t *node)
{
	uint32_t epoch = (uint32_t) node[HEADER_EPOCH];
	uint32_t suspect = (uint32_t) (node[HEADER_EPOCH] >> 32);

	assert(node_level(node) == 0);
	if (epoch > in->stamp->epoch || (epoch == in->stamp->epoch && node[HEADER_LSN] >= in->stamp->lsn))
		return false;
	if (epoch != in->stamp->epoch && suspect == 0)
		suspect = epoch;
	node[HEADER_LSN] = in->stamp->lsn;
	node[HEADER_EPOCH] = (uint64_t) suspect << 32 | in->stamp->epoch;
	assert((uint32_t) node[HEADER_EPOCH] == in->stamp->epoch);
	return true;
}

static TreeStatus
insert_release(Insertion *in)
{
	Tree *tree = in->tree;

	assert(in->hold.held);
	assert(tree->client->holding);
	return lock_release(tree, &in->hold, in->path.pointer, tree->client->image,
	                    tree_node_bytes(tree, in->path.pointer, 0));
}

/* The common case: the cell into an empty slot, and nothing else is written. */
static TreeStatus
insert_into_slot(Insertion *in, uint32_t slot)
{
	Tree *tree = in->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t *node = tree->client->image;
	uint32_t word = leaf_cell_word(g, slot);
	uint64_t offset = pointer_offset(in->path.pointer);
	FabricOp ops[4];
	int n = insert_chain_begin(in, ops);
	bool stamped = insert_stamp(in, node);
	bool summed = (node_flags(node) & NODE_SUM_VALID) != 0;

	assert(slot >= node_count(node) && slot < g->leaf_cells);
	assert(cell_state(node[word]) == CELL_EMPTY);

	memcpy(node + word, in->cell, g->cell_bytes);
	node[word] |= node[HEADER_GENERATION] & STAMP_MASK;
	if (summed)
		node[HEADER_SUM] = node_sum(node, g->leaf_bytes);
	if (stamped || summed)
	{
		/* The mutable unit, with the sum behind it: readers without lock wait until the cell is there, too. */
		ops[n++] = (FabricOp){.opcode = FABRIC_WRITE,
		                      .region = FABRIC_NODES,
		                      .length = summed ? 24 : 16,
		                      .offset = offset + HEADER_LSN * 8,
		                      .buffer = node + HEADER_LSN};
		TREE_COUNT(tree, stamp_writes, stamped ? 1 : 0);
	}
	ops[n++] = (FabricOp){.opcode = FABRIC_WRITE,
	                      .region = FABRIC_NODES,
	                      .length = g->cell_bytes,
	                      .offset = offset + word * 8,
	                      .buffer = node + word};
	return insert_wrote(in, lock_write_and_release(tree, &in->hold, ops, n, in->path.pointer, node,
	                                               tree_node_bytes(tree, in->path.pointer, 0)));
}

/*
 * After a rewrite was acknowledged: blocks of cells of the old image (client->image) that the new one
 * dropped.
 */
static void
insert_free_blocks(const Insertion *in, uint32_t dropped)
{
	Tree *tree = in->tree;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *old = tree->client->image;
	bool proven = leaf_dead_proven(g, old);

	assert(!tree->client->holding);
	assert(dropped == LEAF_NO_SLOT || dropped < g->leaf_cells);
	for (uint32_t slot = 0; slot < g->leaf_cells; slot++)
	{
		const uint64_t *cell = old + leaf_cell_word(g, slot);
		OutsideReference reference;

		if ((slot != dropped && leaf_keeps(cell[0], proven)) || (cell[0] & CELL_OUTSIDE_BIT) == 0)
			continue;
		cell_outside(g, cell, &reference);
		/* A cell of an earlier attempt of this insert has the block that the new cell has. */
		if (!in->has_outside || reference.memory_node != in->outside.memory_node ||
		    reference.offset != in->outside.offset)
			allocate_outside_return(tree, reference.memory_node, reference.offset, reference.bytes);
	}
}

/* What the leaf holds without dead cells and `skip`, and with `extra` if not NULL, packed as it may be written. */
static void
insert_gather(const Insertion *in, const uint64_t *node, uint32_t skip, const uint64_t *extra,
              LeafCells *cells)
{
	assert(in->hold.held);
	leaf_gather(&in->tree->geometry, node, skip, extra, cells);
	leaf_pack(&in->tree->geometry, cells);
	assert(cells->count <= in->tree->geometry.leaf_cells + 1);
}

/* Writes the leaf anew, with the next generation and what insert_gather() found: without `skip`; `added`: with our cell. */
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

	assert(in->hold.held);
	assert(cells->count <= g->leaf_cells);
	node_begin_like(g, node, client->image, in->path.pointer, client->image[HEADER_GENERATION] + 1);
	(void) insert_stamp(in, node);
	leaf_fill(g, node, cells, 0, cells->count);
	node_seal(g, node);
	n += lock_rewrite_ops(tree, in->path.pointer, node, g->leaf_bytes, ops + n);
	status = lock_write_and_release(tree, &in->hold, ops, n, in->path.pointer, node,
	                                tree_node_bytes(tree, in->path.pointer, 0));
	if (insert_wrote(in, status) != TREE_OK)
		return status;
	TREE_COUNT(tree, leaf_rewrites, 1);
	TREE_COUNT(tree, dead_removals, dropped);
	insert_free_blocks(in, skip);
	return TREE_OK;
}

/*
 * A split that was written: the parent is told. The entry is in, so what only delays the parent is no error.
 */
static TreeStatus
insert_post(Insertion *in, uint64_t left, const uint64_t *separator, uint64_t right)
{
	TreeStatus status = parent_post(in->tree, 0, left, separator, right, &in->path);

	assert(!in->tree->client->holding);
	assert(status != TREE_RETRY);
	switch (status)
	{
		case TREE_MEMORY_FULL:
		case TREE_NO_MEMORY:
		case TREE_STOPPED:
		case TREE_TIMED_OUT:
			return TREE_OK;
		default:
			return status;
	}
}

/* Where a split would best cut: in the middle, or near the end when keys come in ascending order. */
static uint32_t
insert_wanted_cut(const Insertion *in, const LeafCells *cells)
{
	const NodeGeometry *g = &in->tree->geometry;
	const uint64_t *node = in->tree->client->image;
	bool ascending = separator_infinite(node + g->high_word) && cells->extra + 1 == cells->count;

	assert(cells->count >= 2);
	assert(node_level(node) == 0);
	return ascending ? cells->count * SPLIT_ASCENDING_PERCENT / 100 : cells->count / 2;
}

static TreeStatus
insert_split_write(Insertion *in, const LeafCells *cells, Split *split)
{
	Tree *tree = in->tree;
	TreeStatus status;

	assert(in->hold.held);
	(void) insert_stamp(in, tree->client->image);
	split->count = insert_chain_begin(in, split->ops);
	status = split_leaf(tree, &in->hold, in->path.pointer, cells, split);
	/* Whether it landed or is in doubt no more: a node may refer to the separator's block. */
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
	return insert_post(in, split->left, split->separator, split->right);
}

/*
 * No cut that integers see, or a separator whose image needs a block: the leaf is released, ordered outside
 * on the copy in client->image, and locked again. The same generation and the same bytes of all cells mean
 * that the plan stands.
 */
static TreeStatus
insert_split_outside(Insertion *in, OrderedCells *cells, Split *split)
{
	Tree *tree = in->tree;
	TreeClient *client = tree->client;
	const NodeGeometry *g = &tree->geometry;
	uint32_t cells_bytes = g->leaf_cells * g->cell_bytes;
	uint64_t *now = client->descent;
	TreeStatus status = insert_release(in);

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
			lock_and_read(tree, in->path.pointer, tree_node_bytes(tree, in->path.pointer, 0), now, &in->hold);
	if (status != TREE_OK)
		return status;
	if (node_level(now) != 0 || now[HEADER_GENERATION] != client->image[HEADER_GENERATION] ||
	    memcmp(now + g->first_word, client->image + g->first_word, cells_bytes) != 0)
	{
		status =
			lock_release(tree, &in->hold, in->path.pointer, now, tree_node_bytes(tree, in->path.pointer, 0));
		return status == TREE_OK ? TREE_RETRY : status;
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

	assert(in->hold.held);
	if (!split_reserved(tree, in->path.pointer, 0))
	{
		status = insert_release(in);
		if (status == TREE_OK)
			status = reserve_fill(tree, 0, root ? 2 : 1);
		return status == TREE_OK ? TREE_RETRY : status;
	}
	split.cut = leaf_cut(g, &cells->leaf, insert_wanted_cut(in, &cells->leaf));
	if (split.cut == 0)
		return insert_split_outside(in, cells, &split);
	leaf_separator(g, leaf_cut_left(&cells->leaf, split.cut), cells->leaf.cells[split.cut], split.separator);
	/*
	 * A whole separator is the least of the right half: where that is one of a tie, the comparator must find
	 * it.
	 */
	if (cell_state(split.separator[0]) == SEPARATOR_FULL && !g->format.lossless &&
	    ((split.separator[0] & CELL_OUTSIDE_BIT) != 0 ||
	     (split.cut + 1 < cells->leaf.count &&
	      cell_order(g, cells->leaf.cells[split.cut], cells->leaf.cells[split.cut + 1]) == 0)))
		return insert_split_outside(in, cells, &split);
	return insert_split_write(in, &cells->leaf, &split);
}

/*
 * The TID is there. As the very same live entry: a rewrite all the same, so that nobody who judged the old
 * generation can remove it (I-P3). Else it is a leftover or dead-marked: replaced, by a rewrite, as an entry
 * never changes its slot; or by a split, where its posting does not get shorter by it and no cell is free.
 */
static TreeStatus
insert_over(Insertion *in, uint32_t slot, OrderedCells *cells)
{
	const NodeGeometry *g = &in->tree->geometry;
	const uint64_t *node = in->tree->client->image;
	const uint64_t *cell = node + leaf_cell_word(g, slot);
	const uint64_t *head = node + leaf_cell_word(g, posting_head(g, node, slot));
	OutsideReference reference;

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
	if (in->has_outside)
	{
		cell_outside(g, cell, &reference);
		in->kept = reference.memory_node != in->outside.memory_node || reference.offset != in->outside.offset;
	}
	insert_gather(in, node, LEAF_NO_SLOT, NULL, &cells->leaf);
	return insert_rewrite(in, LEAF_NO_SLOT, false, &cells->leaf);
}

/*
 * The leaf is full: what of it is dead goes in place of a split, or nothing does.  The caller is asked about the copy in
 * client->image while nothing is held; what it says is good for the same generation.
 */
static TreeStatus
insert_make_room(Insertion *in, OrderedCells *cells)
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
	status = lock_and_read(tree, in->path.pointer, bytes, node, &in->hold);
	if (status != TREE_OK)
		return status;
	if (node_level(node) != 0 || node[HEADER_GENERATION] != full.generation)
	{
		status = insert_release(in);
		return status == TREE_OK ? TREE_RETRY : status;
	}
	in->cleared = room ? room_removable(g, node, &full) : 0;
	/* Out of a copy: if the leaf is handed over after all, it is as it was. */
	memcpy(without, node, g->leaf_bytes);
	if (in->cleared > 0)
		room_clear(g, without, &full);
	insert_gather(in, without, LEAF_NO_SLOT, in->cell, &cells->leaf);
	if (!leaf_worth_rewrite(g, &cells->leaf, in->cleared + leaf_proven_dead(g, node)))
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

/* No slot is empty: what the leaf holds is packed anew if that makes room, else it is split. */
static TreeStatus
insert_full(Insertion *in, OrderedCells *cells)
{
	const NodeGeometry *g = &in->tree->geometry;
	const uint64_t *node = in->tree->client->image;

	insert_gather(in, node, LEAF_NO_SLOT, in->cell, &cells->leaf);
	if (leaf_worth_rewrite(g, &cells->leaf, leaf_proven_dead(g, node)))
		return insert_rewrite(in, LEAF_NO_SLOT, true, &cells->leaf);
	if (!in->asked && room_is_asked(in->tree, node))
		return insert_make_room(in, cells);
	return insert_split(in, cells);
}

/*
 * More than a cell is to be written; `same_tid` as in LeafSurvey. Not inline: the common path needs none of its memory.
 */
static TreeStatus __attribute__((noinline)) insert_anew(Insertion *in, uint32_t same_tid)
{
	Tree *tree = in->tree;
	OrderedCells cells;

	assert(in->hold.held);
	if (leaf_posting_stray(&tree->geometry, tree->client->image))
	{
		(void) insert_release(in);
		return client_fail(tree->client, TREE_DAMAGED, "tree %llx: leaf %llx has a posting that is none",
		                   (unsigned long long) tree->tree, (unsigned long long) in->path.pointer);
	}
	cells.extra = in->cell;
	cells.extra_key = in->key;
	if (same_tid != LEAF_NO_SLOT)
		return insert_over(in, same_tid, &cells);
	return insert_full(in, &cells);
}

/* Under the lock, in the right leaf. */
static TreeStatus
insert_locked(Insertion *in)
{
	Tree *tree = in->tree;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *node = tree->client->image;
	LeafSurvey survey;

	assert(in->hold.held);
	assert(node_level(node) == 0);

	in->kept = false;
	if (in->alone_wanted && !leaf_alone(g, node, in->cell))
	{
		in->alone = false;
		return insert_release(in);
	}
	leaf_survey(g, node, in->key->block, in->key->offset, &survey);
	if (survey.same_tid == LEAF_NO_SLOT && survey.empty != LEAF_NO_SLOT)
		return insert_into_slot(in, survey.empty);
	return insert_anew(in, survey.same_tid);
}

/*
 * The key lies behind the leaf: on to its right sibling, paying the parent's debt if it was read just now
 * (F28).
 */
static TreeStatus
insert_move_right(Insertion *in)
{
	Tree *tree = in->tree;
	const uint64_t *node = tree->client->image;
	uint64_t separator[LINE_WORDS];
	uint64_t left = in->path.pointer;
	uint64_t right = node[HEADER_RIGHT];
	TreeStatus status = TREE_OK;

	assert(!tree->client->holding);
	if (pointer_address(right) == POINTER_NONE)
		return client_fail(tree->client, TREE_DAMAGED,
		                   "tree %llx: leaf %llx has a high fence and no right sibling",
		                   (unsigned long long) tree->tree, (unsigned long long) left);
	TREE_COUNT(tree, right_moves, 1);
	node_get_fence(&tree->geometry, node, true, separator);
	assert(!separator_infinite(separator));
	if (in->path.fresh)
		status = insert_post(in, left, separator, right);
	else if (in->path.parents[1] != 0)
		cache_drop(tree, in->path.parents[1]);
	in->path.pointer = right;
	in->path.fences_known = false;
	return status;
}

/*
 * A descent led too far right, or right links led on and on: the path was old. It is begun anew, but not for
 * ever, as on a sound tree one past the cache leads to the leaf (F27).
 */
static TreeStatus
insert_astray(Insertion *in)
{
	assert(!in->tree->client->holding);
	assert(in->astray < DESCENT_ATTEMPTS);
	if (++in->astray < DESCENT_ATTEMPTS)
		return TREE_RETRY;
	return client_fail(in->tree->client, TREE_DAMAGED, "tree %llx: no way to an entry's leaf in %d descents",
	                   (unsigned long long) in->tree->tree, DESCENT_ATTEMPTS);
}

/*
 * The comparator judges the fences of the copy in client->image; what it says holds for as long as their
 * bytes do.
 */
static TreeStatus
insert_compare_fences(Insertion *in)
{
	Tree *tree = in->tree;
	const uint64_t *node = tree->client->image;
	int low, high;
	TreeStatus status = search_compare_fence(tree, &in->bound, node, false, &low);

	assert(!tree->client->holding);
	TREE_COUNT(tree, undecided_fences, 1);
	if (status == TREE_OK)
		status = search_compare_fence(tree, &in->bound, node, true, &high);
	if (status != TREE_OK)
		return status;
	if (low < 0)
		return insert_astray(in);
	if (high >= 0)
		return insert_move_right(in);
	node_get_fence(&tree->geometry, node, false, in->path.low);
	node_get_fence(&tree->geometry, node, true, in->path.high);
	in->path.fences_known = true;
	return TREE_OK;
}

/*
 * Releases a leaf that is not, or not yet known to be, the right one. TREE_OK: in->path names the one to lock
 * next.
 */
static TreeStatus
insert_elsewhere(Insertion *in, InsertPlace place)
{
	Tree *tree = in->tree;
	TreeStatus status = insert_release(in);

	assert(place != PLACE_HERE);
	if (status != TREE_OK)
		return status;
	switch (place)
	{
		case PLACE_RIGHT:
			return insert_move_right(in);
		case PLACE_UNKNOWN:
			return insert_compare_fences(in);
		case PLACE_INNER:
			tree->root_is_leaf = false;
			return TREE_RETRY;
		default:
			TREE_COUNT(tree, stale_reads, 1);
			if (in->path.parents[1] != 0)
				cache_drop(tree, in->path.parents[1]);
			return insert_astray(in);
	}
}

/* One descent and what follows from it. */
static TreeStatus
insert_attempt(Insertion *in, bool fresh)
{
	Tree *tree = in->tree;
	TreeClient *client = tree->client;
	TreeStatus status = search_descend(tree, &in->bound, 0, fresh, &in->path);

	assert(!client->holding);
	block_return(tree, &tree->cut); /* of an earlier attempt's plan that did not stand */
	if (status == TREE_OK && in->cell[0] == 0)
		status = insert_cell_make(in);
	for (int steps = 0; status == TREE_OK && steps < RIGHT_MOVES_MAX; steps++)
	{
		InsertPlace place;

		status = insert_image_elsewhere(in);
		if (status != TREE_OK)
			return status;
		reserve_keep(tree, 0);
		status = lock_and_read(tree, in->path.pointer, tree_node_bytes(tree, in->path.pointer, 0),
		                       client->image, &in->hold);
		if (status != TREE_OK)
			return status;
		place = insert_place(in, client->image);
		if (place == PLACE_HERE)
			return insert_locked(in);
		status = insert_elsewhere(in, place);
	}
	return status == TREE_OK ? insert_astray(in) : status;
}

static bool
insert_valid(const Tree *tree, const TreeKey *key, const TreeStamp *stamp)
{
	if (key->cut || key->offset == 0 || key->offset > CELL_OFFSET_MASK || stamp == NULL)
		return false;
	if (tree->geometry.format.lossless)
		return key->image_bytes == 0;
	return key->image_bytes <= TREE_IMAGE_MAX_BYTES && (key->image_bytes == 0 || key->image != NULL);
}

static TreeStatus
insert_entry(Tree *handle, const TreeKey *key, const TreeStamp *stamp, bool *hit, bool *alone)
{
	TreeClient *client = handle->client;
	Insertion in;
	TreeStatus status = TREE_RETRY;

	assert(!client->holding);
	assert(hit != NULL);

	*hit = false;
	if (!insert_valid(handle, key, stamp))
		return client_fail(client, TREE_INVALID, "an entry outside of the tree's format");
	insert_abandon(handle);
	in.tree = handle;
	in.key = key;
	in.stamp = stamp;
	in.cell[0] = 0;
	in.astray = 0;
	in.cleared = 0;
	in.has_outside = in.image_pending = in.again = in.hit = in.kept = in.asked = false;
	in.alone_wanted = alone != NULL;
	in.alone = true;
	bound_of_key(&handle->geometry, key, &in.bound);
	for (int attempt = 0; attempt < INSERT_ATTEMPTS && status == TREE_RETRY; attempt++)
	{
		if (attempt > 0 && !in.again && client_should_stop(client))
			status = TREE_STOPPED;
		else
			status = insert_attempt(&in, attempt > 0);
	}
	if (status == TREE_RETRY)
		status = client_fail(client, TREE_DAMAGED, "tree %llx: no place for an entry in %d descents",
		                     (unsigned long long) handle->tree, INSERT_ATTEMPTS);
	insert_abandon(handle);
	if (status != TREE_OK)
		return status;
	if (alone != NULL)
		*alone = in.alone;
	if (!in.alone)
		return TREE_OK;
	*hit = in.hit;
	if (in.hit)
		TREE_COUNT(handle, insert_hits, 1);
	else
		TREE_COUNT(handle, inserts, 1);
	return TREE_OK;
}

TreeStatus
tree_insert(Tree *handle, const TreeKey *key, const TreeStamp *stamp, bool *hit)
{
	return insert_entry(handle, key, stamp, hit, NULL);
}

TreeStatus
tree_insert_alone(Tree *handle, const TreeKey *key, const TreeStamp *stamp, bool *hit, bool *alone)
{
	assert(alone != NULL);
	*alone = false;
	return insert_entry(handle, key, stamp, hit, alone);
}
