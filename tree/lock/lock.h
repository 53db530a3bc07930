/*
 * lock.h
 *		The face of tree/lock: a node is read, or locked and read, written and released; images of leaves.
 */
#ifndef SHERMAN_TREE_LOCK_H
#define SHERMAN_TREE_LOCK_H

#include "tree/internal.h"

/* ---- node_read.c: reads ---- */

/* The READ of a node. */
static inline FabricOp
node_op(uint64_t pointer, uint32_t bytes, uint64_t *image)
{
	assert(bytes > 0 && bytes % 8 == 0 && bytes <= NODE_MAX_BYTES);
	assert(pointer_address(pointer) != POINTER_NONE);
	return (FabricOp){
		.opcode = FABRIC_READ,
		.region = FABRIC_NODES,
		.length = bytes,
		.offset = pointer_offset(pointer),
		.buffer = image,
	};
}

/* access_read_node(), or with `whole` access_read_whole(). */
extern TreeStatus access_read(Tree *tree, uint64_t pointer, int level, uint64_t *image, bool whole);

/*
 * Reads a node without a lock and validates it: repeats torn reads with back-off, in the end under the lock.
 * TREE_RETRY: not the node expected (stale pointer). TREE_DAMAGED. `level` >= 0 is demanded (TREE_RETRY otherwise),
 * -1: any. `image` has room for tree_node_bytes() of that level (any: NODE_MAX_BYTES); it may be client->image.
 */
static inline TreeStatus
access_read_node(Tree *tree, uint64_t pointer, int level, uint64_t *image)
{
	return access_read(tree, pointer, level, image, false);
}

/* The same for a node whose content may make no sense (shape.c): for check.c, which reports what is wrong with it. */
static inline TreeStatus
access_read_whole(Tree *tree, uint64_t pointer, int level, uint64_t *image)
{
	return access_read(tree, pointer, level, image, true);
}

/* A reader has got the image of a leaf: tree_seen() tells its positions. Of other clients nothing is noted. */
extern void access_note_leaf(Tree *tree, const uint64_t *leaf);

/*
 * Behind a descent that met what is stale: whether one more is worth it.  A reader of another instance cannot lock a node that stays
 * torn: it goes on for as long as an operation may take, until the writer has gone on, or the tree's owner has read the node.
 */
extern bool access_descends_again(Tree *tree, Outrun *descents);
/* None is: TREE_DAMAGED, or of a reader TREE_TIMED_OUT. */
extern TreeStatus access_no_way(Tree *tree, const char *where, const Outrun *descents);

/*
 * READs of up to READ_TOGETHER_MAX leaves, in flight together: one chain, or a wave of chains to all of their memory
 * nodes. verdicts[i] is node_check() of each, and NODE_STALE for a node that is not a leaf (the root). Each image has
 * room for tree_node_bytes(pointer, 0). Leaves whose wave was lost count as torn.
 */
extern TreeStatus access_read_leaves(Tree *tree, const uint64_t *pointers, int count, uint64_t *const *images,
                                     NodeVerdict *verdicts);

/*
 * The client's memory for a wave (tree/client/wave.h) that begins and ends within one function.  NULL: there is none, or the
 * tree's chains do not go by waves, for it has copies.
 */
extern struct Wave *access_wave(Tree *tree);

/*
 * Fetches overflow keys, one chain for all of one memory node; `buffer` has room for the sum of lengths
 * rounded up to 16. TREE_RETRY: a hash does not match (the cell has changed; read the node again).
 */
extern TreeStatus access_read_overflow(Tree *tree, const OverflowReference *references, int count,
                                       uint8_t *const *buffers);

/* ---- lock.c, lock_word.c, lock_release.c, lock_clean_up.c: HOCL ---- */
typedef struct LockHandle
{
	uint32_t memory_node; /* as the node's pointer names it */
	uint32_t place;     /* where the word is: the same, or the replica's that has replaced it (replicas.c) */
	uint32_t index;     /* lock word */
	uint64_t word;      /* what we wrote there */
	uint32_t handovers; /* since the word was won by compare-and-swap */
	bool held;
	bool redo; /* the chain has a redo image: lock_rewrite_ops() */
} LockHandle;

/*
 * Locks the word of node `pointer` and reads `bytes` of it into `image`: local queue first (lock table keyed
 * by the lock word), then {COMPARE_SWAP, READ} in one chain, or nothing but a READ after a handover, or
 * nothing at all after a handover with the node's image. The image is checked: TREE_RETRY (released) if it is
 * stale, a torn image is read again under the lock. On TREE_OK the hold is ours and environment.hold() was
 * called. At most one is held at once. TREE_STOPPED, TREE_TIMED_OUT, TREE_UNREACHABLE, TREE_FENCED,
 * TREE_DAMAGED: nothing is held.
 */
extern TreeStatus lock_and_read(Tree *tree, uint64_t pointer, uint32_t bytes, uint64_t *image,
                                LockHandle *lock);

/*
 * Writes and releases in one chain: `writes` (room for one operation more at the end, all on the hold's memory node),
 * then the unlock by checked COMPARE_SWAP; or, if a local process waits and the bound is not reached, the writes
 * alone, and after their acknowledgment handover with `after` (the node's image as it now is, NULL = without image).
 * Writes with a redo image change the word in either case: so the memory node sees that they are complete.
 * TREE_RETRY: the chain was indeterminate and is settled, the lock is released, and a prefix of the writes was
 * applied: begin anew.
 */
extern TreeStatus lock_write_and_release(Tree *tree, LockHandle *lock, FabricOp *writes, int count,
                                         uint64_t pointer, const uint64_t *after, uint32_t bytes);
static inline TreeStatus
lock_release(Tree *tree, LockHandle *lock, uint64_t pointer, const uint64_t *after, uint32_t bytes)
{
	FabricOp only_unlock[1];

	return lock_write_and_release(tree, lock, only_unlock, 0, pointer, after, bytes);
}

/*
 * Fills the operations of the rewrite of a node that is held into `ops`: the redo image when the node is longer than one packet
 * (2 WRITEs to this channel's redo slot), then the node. Returns their number, at most REDO_OPS + 1.
 * lock_write_and_release() ends the chain that they are in.
 */
#define REDO_OPS 2
extern int lock_rewrite_ops(Tree *tree, LockHandle *lock, uint64_t pointer, const uint64_t *image,
                            uint32_t bytes, FabricOp *ops);

/*
 * Whether no process holds the node's word, not even as a leaked lock: then no WRITE under it can take effect any
 * more. As access_execute().
 */
extern TreeStatus lock_is_free(Tree *tree, uint64_t pointer, bool *free);

/* The word that guards a node at this connected memory node. */
extern uint32_t lock_word_of(const TreeClient *client, uint32_t memory_node, uint64_t pointer);
/* Number of a word's entry in the local lock table. */
static inline uint64_t
lock_entry_number(const TreeClient *client, uint32_t memory_node, uint32_t index)
{
	return (uint64_t) memory_node * client->shared->options.lock_words + index;
}

/*
 * Ends a process's part in locking: dequeues it, passes on a lock that was handed to it, and frees leaked locks if
 * possible.
 */
extern TreeStatus lock_clean_up(TreeClient *client);
/* The memory node's words of this instance were freed by fencing: frees the entries of leaked locks, too. */
extern void lock_node_fenced(TreeClient *client, uint32_t memory_node);
extern size_t lock_shared_bytes(const TreeSharedOptions *options);
extern void lock_shared_initialize(void *memory, const TreeSharedOptions *options);

/* ---- back_off.c ---- */

/* Waits before swap number `attempt` of a word that another instance had so far; nothing is held. */
extern void back_off_wait(TreeClient *client, int attempt);
/* A swap was won or lost. */
extern void back_off_count(TreeClient *client, bool lost);

/* ---- leaf_cache.c, leaf_read.c: images of leaves ---- */
/* Whether the instance has a cache of leaves. */
static inline bool
leaves_are_cached(const TreeClient *client)
{
	return client->shared->leaves != NULL;
}

extern size_t leaf_cache_shared_bytes(const TreeSharedOptions *options);
extern void leaf_cache_shared_initialize(void *memory, const TreeSharedOptions *options);
extern void leaf_cache_shared_reset(TreeShared *shared);
/*
 * As access_read_node() of a leaf, and access_read_leaves(), for lookups and scans: leaves in the leaf cache are not
 * read.
 */
extern TreeStatus leaf_cache_read(Tree *tree, uint64_t pointer, uint64_t *leaf);
extern TreeStatus leaf_cache_read_leaves(Tree *tree, const uint64_t *pointers, int count,
                                         uint64_t *const *images, NodeVerdict *verdicts);
/* Whether it would not be read now. */
extern bool leaf_cache_has(const Tree *tree, uint64_t pointer);
/* Whether it would be read, and might be kept. */
extern bool leaf_cache_lacks(const Tree *tree, uint64_t pointer);
/*
 * The four that follow are for the owner of the leaf's entry in the local lock table (`entry`: lock_entry_number()), in a critical
 * section; they do nothing where the instance has no cache of leaves.  They may be called for several leaves whose entries one process has, in any order.
 *
 * Before the owner reads the leaf: true if the cache has it. `image`, tree->geometry.leaf_bytes long, is what a READ
 * would return, has passed node_check(), and stays current until the owner writes the leaf. False: the leaf must be
 * READ, as it is not cached, or may not be (trees with replicas, memory nodes that this host maps).
 */
extern bool leaf_image_take(Tree *tree, uint64_t pointer, uint64_t *image);

static inline bool
leaf_cache_take_locked(Tree *tree, uint64_t pointer, uint64_t *image)
{
	return leaves_are_cached(tree->client) && leaf_image_take(tree, pointer, image);
}

/*
 * Before the owner posts writes: images of the node are not used any more, and none but the owner's is cached before
 * leaf_cache_write_ends().
 */
extern void leaf_image_void(const Tree *tree, uint64_t pointer, uint64_t entry);

static inline void
leaf_cache_write_begins(const Tree *tree, uint64_t pointer, uint64_t entry)
{
	if (leaves_are_cached(tree->client))
		leaf_image_void(tree, pointer, entry);
}

/*
 * When all of the owner's chains are acknowledged, and before it gives up the entry: `image` is the node's present
 * content, `bytes` long (NULL: not known). Updates the cached image, or admits it. Not to be called when a chain was
 * lost.
 */
extern void leaf_image_renew(Tree *tree, uint64_t pointer, const uint64_t *image, uint32_t bytes);

static inline void
leaf_cache_wrote(Tree *tree, uint64_t pointer, const uint64_t *image, uint32_t bytes)
{
	if (leaves_are_cached(tree->client))
		leaf_image_renew(tree, pointer, image, bytes);
}

/*
 * The owner is about to give up the entry: its writes, if there were any, have taken effect or never will. Called by
 * entry_release() and entry_pass().
 */
extern void leaf_image_settle(const TreeClient *client, uint64_t entry);

static inline void
leaf_cache_write_ends(const TreeClient *client, uint64_t entry)
{
	if (leaves_are_cached(client))
		leaf_image_settle(client, entry);
}

/* Images of leaves of this memory node are not used any more. */
extern void leaf_cache_forget(TreeShared *shared, uint32_t memory_node);
/* For tree_cache_usage(). */
extern void leaf_cache_usage(const TreeShared *shared, TreeCacheUsage *usage);

#endif /* SHERMAN_TREE_LOCK_H */
