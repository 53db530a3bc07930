/*
 * dead.c
 *		Dead marks: a bit for an entry that no snapshot will ever see again.
 *
 * A mark changes a cell's first word from live to dead-marked, inside the leaf's generation (I-T5), under its lock,
 * and only in the generation that the entry was judged in: within one a slot keeps its entry, in another one the
 * TID may have been given free and taken by a new row.
 *
 * A mark may have to be undone until the WAL proves it: the commit that deleted the row may not be durable yet. The
 * leaf keeps the highest (epoch, LSN) of its marks; rewrites keep marked entries until that is known to be durable
 * (tree_removal_proven()), and drop them then. The (epoch, LSN) is written before the marks that it covers. After a
 * crash marks may come from commits that are lost: if the remaining WAL does not prove the (epoch, LSN), all marks of
 * the leaf are void. Scans ignore void marks, and no new ones are made, since their (epoch, LSN) would hide the old
 * one.
 */
#include "tree/lock/lock.h"

/* Marks by one chain: with unit, sum and unlock it stays within FABRIC_MAX_CHAIN. */
#define MARKS_PER_CHAIN 24

void
tree_removal_proven(Tree *handle, const TreeWalPosition *proven)
{
	assert(handle->geometry.proven == &handle->proven);
	assert(!handle->client->holding);
	tree_wal_position_raise(&handle->proven, proven->epoch, proven->lsn);
}

/* Whether the slot of a locked leaf holds this entry, live. */
static bool
dead_fits(const NodeGeometry *g, const uint64_t *node, const TreeDead *dead)
{
	uint64_t word0;

	if (dead->cell >= g->leaf_cells)
		return false;
	word0 = node[leaf_cell_word(g, dead->cell)];
	return cell_state(word0) == CELL_LIVE && cell_block(word0) == dead->block &&
	       cell_offset(word0) == dead->offset;
}

static FabricOp
word_op(uint64_t pointer, const uint64_t *node, uint32_t word, uint32_t words)
{
	assert(words > 0);
	assert(word + words <= NODE_MAX_BYTES / 8);
	return (FabricOp){.opcode = FABRIC_WRITE,
	                  .region = FABRIC_NODES,
	                  .length = words * 8,
	                  .offset = pointer_offset(pointer) + word * 8,
	                  .buffer = (void *) (node + word)};
}

/*
 * Marks some in the image of the locked leaf, and fills the chain that writes them: unit and sum first.  Returns its
 * length; 0: there are none.
 */
static int
dead_chain(const NodeGeometry *g, uint64_t pointer, uint64_t *node, const TreeDead *dead, int count,
           const TreeWalPosition *wal, FabricOp *ops)
{
	bool summed = (node_flags(node) & NODE_SUM_VALID) != 0;
	int first = summed ? 2 : 1;
	int n = first;

	assert(count <= MARKS_PER_CHAIN);
	for (int i = 0; i < count; i++)
	{
		uint32_t word;

		if (!dead_fits(g, node, &dead[i]))
			continue;
		word = leaf_cell_word(g, dead[i].cell);
		node[word] = (node[word] & ~(3ull << CELL_STATE_SHIFT)) | (uint64_t) CELL_DEAD << CELL_STATE_SHIFT;
		ops[n++] = word_op(pointer, node, word, 1);
	}
	if (n == first)
		return 0;
	leaf_raise_dead(node, wal->epoch, wal->lsn);
	ops[0] = word_op(pointer, node, HEADER_DEAD_EPOCH, 2);
	if (summed)
	{
		node[HEADER_SUM] = node_sum(node, g->leaf_bytes);
		ops[1] = word_op(pointer, node, HEADER_SUM, 1);
	}
	return n;
}

/* Up to MARKS_PER_CHAIN marks under one lock. *current: the leaf has the generation still. */
static TreeStatus
mark_some(Tree *tree, const TreeLeafSeen *leaf, const TreeDead *dead, int count, const TreeWalPosition *wal,
          int *marked, bool *current)
{
	const NodeGeometry *g = &tree->geometry;
	uint64_t *node = tree->client->image;
	uint64_t pointer = leaf->pointer;
	uint32_t bytes = tree_node_bytes(tree, pointer, 0);
	FabricOp ops[MARKS_PER_CHAIN + 3];
	LockHandle lock;
	int n = 0;
	TreeStatus status = lock_and_read(tree, pointer, bytes, node, &lock);

	if (status != TREE_OK)
		return status;
	*current = node_level(node) == 0 && node[HEADER_GENERATION] == leaf->generation &&
	           wal->epoch >= leaf_dead_epoch(node) && !leaf_is_unverified(g, node) &&
	           !leaf_marks_void(g, node);
	if (*current)
		n = dead_chain(g, pointer, node, dead, count, wal, ops);
	status = lock_write_and_release(tree, &lock, ops, n, pointer, node, bytes);
	if (status != TREE_OK || n == 0)
		return status;
	n -= (node_flags(node) & NODE_SUM_VALID) != 0 ? 2 : 1;
	*marked += n;
	TREE_COUNT(tree, dead_marks, (uint64_t) n);
	return TREE_OK;
}

/* tree_mark_dead(), inside its critical section. */
static TreeStatus
mark_all(Tree *handle, const TreeLeafSeen *leaf, const TreeDead *dead, int count, const TreeWalPosition *wal,
         int *marked)
{
	bool current = true;

	assert(handle->client->sections > 0);
	for (int from = 0; from < count && current; from += MARKS_PER_CHAIN)
	{
		int some = count - from < MARKS_PER_CHAIN ? count - from : MARKS_PER_CHAIN;
		TreeStatus status = mark_some(handle, leaf, dead + from, some, wal, marked, &current);

		/* Stale, or a chain was indeterminate and is settled now: the marks can be made another time. */
		if (status == TREE_RETRY)
			return TREE_OK;
		if (status != TREE_OK)
			return status;
	}
	return TREE_OK;
}

TreeStatus
tree_mark_dead(Tree *handle, const TreeLeafSeen *leaf, const TreeDead *dead, int count,
               const TreeWalPosition *wal, int *marked)
{
	int section;
	TreeStatus status;

	assert(!handle->client->holding);
	assert(count >= 0);
	*marked = 0;
	status = critical_enter(handle, &section);
	if (status != TREE_OK)
		return status;
	if (critical_same_epoch(handle, leaf))
		status = mark_all(handle, leaf, dead, count, wal, marked);
	critical_leave(handle, section);
	return status;
}
