/*
 * insert.c
 *		Inserting one entry: descent outside of locks, then the leaf under its lock by integers only.
 *
 * The common path is two round trips: {COMPARE_SWAP, READ leaf} and {[WRITE (lsn, epoch)] WRITE cell, unlock}. Other
 * cases are handled below or in insert_full.c: an entry that exists already, a leaf without an empty slot, fences
 * that integers cannot decide. Inside this file TREE_RETRY means: begin anew with a descent; if the entry was written
 * already it is found then.
 */
#include "tree/change/insert.h"
#include "tree/change/change.h"
#include "tree/space/allocate.h"

/*
 * Tries at one entry, in a row, that end without an entry and without a sign of anybody else's work: so many are none on a sound
 * tree.  Where others change the leaf between the comparator's work outside and the lock a try says nothing of the tree; it is made
 * again for as long as a lock is waited for, and at least so often.
 */
#define INSERT_ATTEMPTS 128

/* Writes of an overflow key to another memory node than the leaf's, when its channel had to be reset. */
#define IMAGE_ATTEMPTS 3

typedef enum InsertPlace
{
	PLACE_HERE,
	PLACE_LEFT,    /* below the leaf's low fence: stale path */
	PLACE_RIGHT,   /* at or above its high fence */
	PLACE_UNKNOWN, /* only the comparator can tell */
	PLACE_INNER    /* the root is no leaf any more */
} InsertPlace;

void
block_return(Tree *tree, OverflowBlock *block)
{
	assert(!tree->client->holding);
	assert(block->bytes > 0);
	allocate_overflow_return(tree, block->memory_node, block->offset, block->bytes);
	block->bytes = 0;
}

/* Gives the overflow key a block near the leaf, once, and makes the cell. */
static TreeStatus
insert_cell_make(Insertion *in)
{
	Tree *tree = in->tree;
	const TreeKey *key = in->key;
	TreeStatus status;

	assert(tree->block.bytes == 0);
	assert(!tree->client->holding);

	in->has_overflow = cell_needs_overflow(&tree->geometry, key);
	if (in->has_overflow)
	{
		in->overflow.memory_node = tree_source(tree, pointer_memory_node(in->path.pointer));
		in->overflow.bytes = key->image_bytes;
		in->overflow.hash = image_hash(key->image, key->image_bytes);
		status = allocate_overflow(tree, in->overflow.memory_node, key->image_bytes, &in->overflow.offset);
		if (status != TREE_OK)
			return status;
		tree->block = (OverflowBlock){in->overflow.memory_node, key->image_bytes, in->overflow.offset};
		in->image_pending = true;
	}
	cell_make(&tree->geometry, in->cell, key, 0, in->has_overflow ? &in->overflow : NULL);
	return TREE_OK;
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
	assert(in->image_pending);
	if (in->overflow.memory_node == pointer_memory_node(in->path.pointer))
		return TREE_OK;
	op = insert_image_op(in);
	for (int attempt = 0; attempt < IMAGE_ATTEMPTS && status == TREE_RETRY; attempt++)
		status = access_execute(in->tree, in->overflow.memory_node, &op, 1);
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

	assert(in->lock.held);
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

TreeStatus
insert_into_slot(Insertion *in, uint32_t slot)
{
	Tree *tree = in->tree;
	const NodeGeometry *g = &tree->geometry;
	uint64_t *node = tree->client->image;
	uint32_t word = leaf_cell_word(g, slot);
	uint64_t offset = pointer_offset(in->path.pointer);
	FabricOp ops[3 + CELL_WRITE_OPS];
	int n = insert_chain_begin(in, ops);
	uint32_t written;
	bool positioned = insert_set_wal_position(in->tree, in->wal, node);
	bool summed = (node_flags(node) & NODE_SUM_VALID) != 0;

	assert(slot < g->leaf_cells);
	assert(in->hit || (slot >= node_count(node) && cell_state(node[word]) == CELL_EMPTY));

	memcpy(node + word, in->cell, g->cell_bytes);
	node[word] |= node[HEADER_GENERATION] & STAMP_MASK;
	if (summed)
		node[HEADER_SUM] = node_sum(node, g->leaf_bytes);
	if (positioned || summed)
	{
		/* The mutable unit, with the sum behind it: readers without lock wait until the cell is there, too. */
		ops[n++] = (FabricOp){.opcode = FABRIC_WRITE,
		                      .region = FABRIC_NODES,
		                      .length = summed ? 24 : 16,
		                      .offset = offset + HEADER_LSN * 8,
		                      .buffer = node + HEADER_LSN};
		TREE_COUNT(tree, stamp_writes, positioned ? 1 : 0);
	}
	n += cells_write_ops(tree, in->path.pointer, node, slot, 1, ops + n, &written);
	assert(written == 1);
	return insert_wrote(in, lock_write_and_release(tree, &in->lock, ops, n, in->path.pointer, node,
	                                               tree_node_bytes(tree, in->path.pointer, 0)));
}

/* Under the lock, in the right leaf. */
static TreeStatus
insert_locked(Insertion *in)
{
	Tree *tree = in->tree;
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *node = tree->client->image;
	LeafSurvey survey;

	assert(in->lock.held);
	assert(node_level(node) == 0);

	in->kept = false;
	if (in->alone_wanted && !leaf_has_no_equal_key(g, node, in->cell))
	{
		in->alone = false;
		return insert_release(in);
	}
	if (!insert_permitted(in))
		return insert_release(in);
	leaf_survey(g, node, in->key->block, in->key->offset, &survey);
	if (survey.same_tid == LEAF_NO_SLOT && survey.empty != LEAF_NO_SLOT)
		return insert_into_slot(in, survey.empty);
	return insert_by_rewrite(in, survey.same_tid);
}

/*
 * A descent led too far right, or right links went round: the path was old. It is begun anew, but not for
 * ever, as on a sound tree one past the cache leads to the leaf.
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
 * The key lies behind the leaf: on to its right sibling, completing the split if the parent was read just now
.
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
		status = insert_downlink(in, left, separator, right);
	else if (in->path.parents[1] != 0)
		cache_drop(tree, in->path.parents[1]);
	if (status == TREE_OK && !walk_goes_on(&in->walk, right, 0))
		return insert_astray(in);
	in->path.pointer = right;
	in->path.fences_known = false;
	return status;
}

/*
 * The comparator decides against the fences of the copy in client->image; the result is valid as long as their bytes
 * are the same.
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
	TreeStatus status = TREE_OK;

	assert(!client->holding);
	if (in->known != NULL && !fresh)
		in->path = *in->known;
	else
		status = search_descend(tree, &in->bound, 0, fresh, &in->path);
	if (tree->cut.bytes != 0) /* of an earlier attempt whose plan did not hold */
		block_return(tree, &tree->cut);
	if (status == TREE_OK && in->cell[0] == 0)
		status = insert_cell_make(in);
	in->walk.steps = 0;
	if (status == TREE_OK)
		(void) walk_goes_on(&in->walk, in->path.pointer, 0);
	for (int steps = 0; status == TREE_OK && steps < RIGHT_MOVES_MAX; steps++)
	{
		InsertPlace place;

		if (in->image_pending)
			status = insert_image_elsewhere(in);
		if (status != TREE_OK)
			return status;
		reserve_keep(tree, 0);
		status = lock_and_read(tree, in->path.pointer, tree_node_bytes(tree, in->path.pointer, 0),
		                       client->image, &in->lock);
		if (status != TREE_OK)
			return status;
		place = insert_place(in, client->image);
		if (place == PLACE_HERE)
			return insert_locked(in);
		status = insert_elsewhere(in, place);
	}
	if (status != TREE_OK)
		return status;
	/* Others have split one leaf after the other, or the same one between each judgment and its lock. */
	in->outrun = true;
	return TREE_RETRY;
}

/* Whether an insert whose attempt others have outrun makes another one: TREE_RETRY; or the error that it ends with. */
static TreeStatus
insert_outrun(Insertion *in)
{
	TreeClient *client = in->tree->client;

	assert(in->outrun);
	if (client_outrun(client, &in->outruns, INSERT_ATTEMPTS))
		return TREE_RETRY;
	return client_fail(client, TREE_TIMED_OUT,
	                   "tree %llx: the leaf of an entry was changed by others in %u attempts",
	                   (unsigned long long) in->tree->tree, in->outruns.tries);
}

/* Attempts until the entry is there. */
static TreeStatus
insert_attempts(Insertion *in)
{
	TreeClient *client = in->tree->client;
	TreeStatus status = insert_attempt(in, false);

	for (int attempts = 1; status == TREE_RETRY && attempts < INSERT_ATTEMPTS; attempts++)
	{
		if (in->outrun)
		{
			status = insert_outrun(in);
			attempts = 0;
		}
		in->outrun = false;
		if (status == TREE_RETRY)
			status = !in->again && client_should_stop(client) ? TREE_STOPPED : insert_attempt(in, true);
	}
	if (status != TREE_RETRY)
		return status;
	return client_fail(client, TREE_DAMAGED, "tree %llx: no place for an entry in %d descents",
	                   (unsigned long long) in->tree->tree, INSERT_ATTEMPTS);
}

bool
insert_valid(const Tree *tree, const TreeKey *key, const TreeWalPosition *wal)
{
	if (key->cut || key->offset == 0 || key->offset > CELL_OFFSET_MASK || wal == NULL)
		return false;
	if (tree->geometry.format.lossless)
		return key->image_bytes == 0;
	return key->image_bytes <= TREE_IMAGE_MAX_BYTES && (key->image_bytes == 0 || key->image != NULL);
}

/* insert_entry(), inside its critical section. */
static TreeStatus
insert_inside(Tree *handle, const TreeKey *key, const TreeWalPosition *wal, const TreePermit *permit,
              const Path *known, bool *hit, bool *alone)
{
	TreeClient *client = handle->client;
	Insertion in;
	TreeStatus status;

	assert(client->sections > 0);
	*hit = false;
	if (!insert_valid(handle, key, wal))
		return client_fail(client, TREE_INVALID, "an entry outside of the tree's format");
	insert_abandon(handle);
	in.tree = handle;
	in.key = key;
	in.wal = wal;
	in.cell[0] = 0;
	in.astray = 0;
	in.cleared = 0;
	in.outrun = false;
	in.outruns = (Outrun){0};
	in.has_overflow = in.image_pending = in.again = in.hit = in.kept = in.asked = false;
	in.alone_wanted = alone != NULL;
	in.alone = true;
	in.permit = permit;
	in.permitted = false;
	in.known = known;
	bound_of_key(&handle->geometry, key, &in.bound);
	status = insert_attempts(&in);
	assert(!in.permitted);
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
insert_found(Tree *tree, const TreeKey *key, const TreeWalPosition *wal, const Path *path)
{
	bool hit;

	return insert_inside(tree, key, wal, NULL, path, &hit, NULL);
}

TreeStatus
insert_found_alone(Tree *tree, const TreeKey *key, const TreeWalPosition *wal, const TreePermit *permit,
                   const Path *path, bool *alone)
{
	bool hit;

	*alone = false;
	return insert_inside(tree, key, wal, permit, path, &hit, alone);
}

static TreeStatus
insert_entry(Tree *handle, const TreeKey *key, const TreeWalPosition *wal, const TreePermit *permit,
             bool *hit, bool *alone)
{
	int section;
	TreeStatus status;

	assert(!handle->client->holding);
	assert(hit != NULL);
	status = critical_enter(handle, &section);
	if (status != TREE_OK)
		return status;
	status = insert_inside(handle, key, wal, permit, NULL, hit, alone);
	critical_leave(handle, section);
	return status;
}

TreeStatus
tree_insert(Tree *handle, const TreeKey *key, const TreeWalPosition *wal, bool *hit)
{
	return insert_entry(handle, key, wal, NULL, hit, NULL);
}

TreeStatus
tree_insert_alone(Tree *handle, const TreeKey *key, const TreeWalPosition *wal, const TreePermit *permit,
                  bool *hit, bool *alone)
{
	assert(alone != NULL);
	*alone = false;
	return insert_entry(handle, key, wal, permit, hit, alone);
}
