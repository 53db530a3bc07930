/*
 * wave.h
 *		Waves: chains to several memory nodes, in flight at once.
 *
 *		wave_begin(wave, tree);
 *		wave_add(wave, memory_node, &op);		-- as often as needed, in any order of memory nodes
 *		wave_end(wave);							-- all of them were answered, or never will be
 *		wave_status(wave, memory_node)			-- what became of its operations
 *
 * Operations that are added for one memory node take effect there in the order in which they were added; between memory
 * nodes there is no order: what depends on another memory node's goes into the next wave.  A wave that writes must leave a
 * valid tree behind each prefix of each memory node's operations.  READs of one memory node are not atomic with each other.
 *
 * An operation goes with the chain that is being filled for its memory node, which is posted when it is full, so the
 * memory node works while the rest is being added; what is left wave_end() posts.  Each chain counts as a round trip, though
 * they are waited for together.  Operations without bound may be added: where there is no room for another chain, those
 * before it are waited for.
 *
 * An operation's buffer belongs to the wave until wave_end() returns, which it always does: a wave is not cut short,
 * and afterwards nothing of it is indeterminate but what wave_status() reports.
 *
 * Trees with copies cannot be written by waves, as their chains have to wait for each other (replicas.c). Locking is
 * left to the caller (tree/lock/lock_many.h).
 */
#ifndef SHERMAN_TREE_WAVE_H
#define SHERMAN_TREE_WAVE_H

#include "tree/internal.h"

/* The most chains of a wave that are in flight or being filled. */
#define WAVE_CHAINS 32

typedef struct WaveChain
{
	uint32_t memory_node;
	int count;
	bool posted; /* and not waited for */
	uint64_t ticket;
	FabricOp ops[FABRIC_MAX_CHAIN];
} WaveChain;

typedef struct Wave
{
	Tree *tree;
	uint32_t first; /* of the chains, the oldest one; they are used in turn */
	uint32_t count;
	uint64_t lost; /* bit per memory node: a chain was lost, and no other is posted there */
	WaveChain *filling[TREE_MAX_NODES];  /* NULL: none is being filled */
	TreeStatus statuses[TREE_MAX_NODES]; /* of the first that failed */
	WaveChain chains[WAVE_CHAINS];
} Wave;

/* Begins a wave on memory that had one before or never. */
extern void wave_begin(Wave *wave, Tree *tree);
/*
 * Adds an operation, of which the structure is copied.  Where an earlier one has failed nothing more is done at this memory
 * node.  The memory node is connected, or can be now.
 */
extern void wave_add(Wave *wave, uint32_t memory_node, const FabricOp *op);
/*
 * The same for operations that go in one chain, nobody else's in between: a redo image and what it is for.  Where there are more
 * than one they have that chain for themselves, as connection workers do not cut one with a redo image, and take 40 KB at once.
 */
extern void wave_add_together(Wave *wave, uint32_t memory_node, const FabricOp *ops, int count);
/*
 * Posts the chains that are left, waits for all of them, and resets the channels of those that were lost, as
 * access_execute() does.
 */
extern void wave_end(Wave *wave);

/*
 * Once the wave has ended: TREE_OK, all operations at this memory node have taken effect, READs have their bytes.  TREE_RETRY: a
 * prefix of them has and nothing else of them will, for the channel was reset.  Others as access_execute().
 */
static inline TreeStatus
wave_status(const Wave *wave, uint32_t memory_node)
{
	assert(memory_node < TREE_MAX_NODES && wave->count == 0);
	return wave->statuses[memory_node];
}

#endif /* SHERMAN_TREE_WAVE_H */
