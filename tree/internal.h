/*
 * internal.h
 *		What the files of tree/ share: the client, the open tree, and the contracts between lock, cache,
 *		allocation, descent, insertion and scan. Not for other layers.
 */
#ifndef SHERMAN_TREE_INTERNAL_H
#define SHERMAN_TREE_INTERNAL_H

#include "tree/node/node.h"

_Static_assert(TREE_MAX_NODES <= 32, "a bit for each memory node fits into the words that have them");
_Static_assert(TREE_MAX_NODES <= TREE_RECORD_REPLICA_MASK,
               "a memory node's number and 1 fits into a record's flags");

/* Unlocked reads of one node before it is read under its lock. */
#define READ_ATTEMPTS 8
/* A READ that took longer is invalid on access classes that are not operation-atomic. */
#define READ_BOUND_US 20000u
/* Descents begun anew, without the cache, before the tree is called damaged. */
#define DESCENT_ATTEMPTS 16
/* Handovers of one won lock word, as in the paper, if no other techniques are asked for. */
#define HANDOVER_MAX 4
/*
 * Chains and calls that are lost are done again so often, as long as resets succeed and the operation has time: on a
 * channel that many share (a connection worker's) the losses of all of them come together.
 */
#define LOST_ATTEMPTS 64
/* Steps to the right on one level before the descent is begun anew. */
#define RIGHT_MOVES_MAX 1024
/*
 * Leaves that are read together at most: all children of an inner node, by one chain or, over several memory nodes or more than one chain
 * takes, one wave.
 */
#define READ_AHEAD_MAX 168
_Static_assert(READ_AHEAD_MAX >= INNER_CELLS_MAX, "all children of an inner node are read together");
/* Nodes of one kind taken ahead: a root's split takes two. */
#define RESERVE_NODES 2

/* A status inside tree/: the operation is to be begun anew (an indeterminate chain was settled; stale path). */
#define TREE_RETRY ((TreeStatus) 100)

/* Scratch nodes of a client: image, image_left, image_right, image_root, descent. */
#define SCRATCH_BYTES (5 * NODE_MAX_BYTES + LINE_BYTES)

/* Calls inside of comparators of calls. */
#define SCRATCH_LEVELS 8

/* Where a tree gets its nodes from: in shared memory, one per tree in use, made at tree_open(). */
typedef struct TreeState TreeState;

/* Clients that share credits: throttle.c. */
typedef struct CreditGroup
{
	_Alignas(LINE_BYTES) uint32_t taken; /* by operations that are under way */
	uint64_t waits;                      /* for credits */
} CreditGroup;

/* Measured costs of descents at a memory node: offload.c. */
typedef struct OffloadCosts OffloadCosts;

/* A process's critical sections on of trees, in shared memory: quiesce.c. */
typedef struct CriticalSlot CriticalSlot;

/* The parts of an instance's shared memory. */
/* What was looked for in the caches of nodes: see counters.c. */
typedef struct CacheCounts
{
	uint64_t inner_hits;
	uint64_t inner_misses;
	uint64_t leaf_hits;
	uint64_t leaf_misses;
} CacheCounts;

struct TreeShared
{
	TreeSharedOptions options;
	TreeTechniques techniques; /* what options.techniques points to */
	uint64_t magic;
	uint32_t closed;                  /* bit per memory node: tree_node_close() */
	uint32_t leaves_at_hand;          /* bit per memory node: tree_node_leaves_at_hand() */
	uint64_t members[TREE_MAX_NODES]; /* by tree_node_open() */
	CacheCounts found;                /* by all clients */
	/*
	 * Resolved for this mapping: PostgreSQL maps shared memory at one address in all processes, and so do
	 * forks.
	 */
	void *locks;
	void *cache;
	void *states;
	void *hints;  /* speculate.c */
	void *leaves; /* leaf_cache.c; NULL = leaves are not kept */
	CreditGroup *credits;
	CriticalSlot *critical_slots;
	OffloadCosts *offloads; /* offload.c; NULL = descents are not offloaded */
};

/* back_off.c: results of the last swaps of lock words, and how often a wait may double. */
typedef struct BackOff
{
	uint32_t swaps;
	uint32_t lost;
	uint32_t doublings;
} BackOff;

struct TreeClient
{
	TreeClientOptions options;
	TreeTechniques techniques; /* the instance's */
	BackOff back_off;
	TreeShared *shared;
	uint32_t slot;
	uint64_t
		doubt; /* bit per memory node: its channel has an indeterminate chain, nothing more is sent there */
	uint64_t leaf_sums; /* bit per memory node: its leaves carry sums, client_leaf_sums() */
	uint32_t trouble;   /* bit per memory node: for tree_client_trouble() */
	uint64_t silence;   /* options.silence points here, if not to the caller's */
	bool holding;       /* between environment.hold and resume */
	bool far;           /* for tests: mapped memory nodes are used as if they were far away */
	int sections;       /* quiesce.c: calls in progress, one inside another */
	TreeState *closed;  /* quiesce.c: the tree whose barrier this process has closed */
	TreeFull full_by;   /* of the last TREE_MEMORY_FULL */
	TreeCounters counters;
	TreeGuesses guesses;
	TreeLeafCounts leaf_counts;
	bool leaves_wanted; /* prefetch.c: leaves that are read are asked for soon, and all kept */
	TreeOffloads offloads;
	char detail[TREE_DETAIL_BYTES];
	/*
	 * Images of the call in progress: one that is inside another's comparator, or hook, has others (client_scratch()).
	 */
	uint64_t *image;                   /* NODE_MAX_BYTES: the node under the lock */
	uint64_t *image_left;              /* NODE_MAX_BYTES: rewritten node */
	uint64_t *image_right;             /* NODE_MAX_BYTES: new sibling */
	uint64_t *image_root;              /* NODE_MAX_BYTES: new root */
	uint64_t *descent;                 /* NODE_MAX_BYTES: an inner node during a descent */
	uint64_t *scratch[SCRATCH_LEVELS]; /* by the number of calls that one is inside of; NULL: none was yet */
	RedoHeader redo;
	struct Wave *wave; /* access_wave(); NULL: there was none yet */
	void *many;        /* insert_many.c; NULL: there was no call of it */
	uint64_t random;   /* state of client_random() */
};

/* Nodes taken ahead, so that none has to be asked for under a lock. */
typedef struct NodeReserve
{
	uint32_t count;
	bool wanted; /* this handle has split such nodes, so that one is reserved ahead */
	uint64_t pointers[RESERVE_NODES];
	uint64_t generations[RESERVE_NODES];
} NodeReserve;

/* A block for an overflow key that no acknowledged cell refers to yet. bytes 0 = none. */
typedef struct OverflowBlock
{
	uint32_t memory_node;
	uint32_t bytes;
	uint64_t offset;
} OverflowBlock;

/* Leaves taken ahead for the splits of a wave (insert_wave.c). */
#define SPARE_LEAVES 256u

typedef struct SpareLeaves
{
	uint32_t count;
	uint64_t pointers[SPARE_LEAVES];
	uint64_t generations[SPARE_LEAVES];
} SpareLeaves;

struct Tree
{
	TreeClient *client;
	uint64_t tree;
	uint64_t root; /* pointer, no stamp */
	NodeGeometry geometry;
	TreeCompare compare;
	void *compare_argument;
	TreeState *state;
	uint64_t epoch;       /* the tree's, as of the call in progress (quiesce.c) */
	uint64_t first_epoch; /* its epoch when its state was made */
	uint64_t *overflow;   /* room for one overflow key and one more, TREE_IMAGE_MAX_BYTES each */
	int comparing;     /* the call whose comparator is being asked, counted as TreeClient.sections; 0: none */
	uint8_t *pool;     /* overflow keys of cells that tie; grows (search_images()) */
	size_t pool_bytes; /* its length */
	bool root_is_leaf; /* when last seen: a hint that spares small trees one read */
	NodeReserve leaves; /* split.c */
	NodeReserve inner;  /* split.c, downlink.c */
	SpareLeaves spare;  /* split.c */
	bool memory_full;   /* the last attempt to take a node ahead failed: ask again only when one is needed */
	OverflowBlock
		block; /* of the insert in progress: given back by the next call, if it was left behind by a jump */
	OverflowBlock cut;      /* of a separator in the making, likewise */
	uint64_t inserted;      /* pointer of the leaf that the last insert put its entry into */
	TreeWalPosition proven; /* tree_removal_proven(); the geometry refers to it */
	TreeFullHook full_hook; /* full_leaf.c; NULL = none */
	void *full_argument;
	bool full_always;
	struct Replicas *replicas; /* replicas.c; NULL = the tree's nodes have no copy */
	TreeSplitHook split_hook;  /* predicate.c; NULL = none */
	void *split_argument;
	TreeCounters pending; /* counted and not yet added to the tree's counters in shared memory */
	uint32_t pending_chains;
};

/* ---- failure.c, environment.c, counters.c ---- */
extern TreeStatus client_fail(TreeClient *client, TreeStatus status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Finds out anew which connected memory nodes' READs may tear lines: NodeGeometry.leaf_sums, for the client's life. */
extern const uint64_t *client_leaf_sums(TreeClient *client);
/* Turns a fabric status into ours, with the fabric's detail. */
extern TreeStatus client_fabric_fail(TreeClient *client, uint32_t memory_node, FabricStatus status);
/* The same for a memory node that is not to be used now, or cannot be connected to: TREE_UNREACHABLE. */
extern TreeStatus client_away(TreeClient *client, uint32_t memory_node);
/* The same for one whose channel can be reset, but which answers nothing: `what` names the chains. */
extern TreeStatus client_unanswered(TreeClient *client, uint32_t memory_node, const char *what);
/* Tries that others' work has made void, in a row: they say nothing of the tree.  All zero: none yet. */
typedef struct Outrun
{
	uint32_t tries;
	uint64_t since; /* microseconds: the first of them */
} Outrun;

/* One more of them. Whether it is made again: so long as a lock is waited for, and until there were `least`. */
extern bool client_outrun(TreeClient *client, Outrun *outrun, uint32_t least);
extern uint64_t client_random(TreeClient *client);
/*
 * Makes the images of a call its own that is inside so many others.  TREE_NO_MEMORY, TREE_INVALID: too many.  For those that were
 * made before it is sure to succeed.
 */
extern TreeStatus client_scratch(TreeClient *client, int level);
extern void *client_allocate(TreeClient *client, size_t bytes);
/* For what an open handle grows by: the caller's memory may be short-lived by then. */
extern void *client_allocate_beside(TreeClient *client, const void *handle, size_t bytes);
extern void client_release(TreeClient *client, void *memory);
extern bool client_should_stop(TreeClient *client);
/* A turn of a loop that waits awake. */
extern void client_pause(const TreeClient *client);

static inline uint64_t
client_now_us(const TreeClient *client)
{
	return client->options.environment.now_us(client->options.environment.argument);
}

/* An answer has come, or no process waits any more. */
static inline void
client_silence_ends(TreeClient *client)
{
	*client->options.silence = 0;
}

/* When the operation has waited for too long, in microseconds; it begins to wait now, if it has not yet. */
extern uint64_t client_deadline(TreeClient *client);
/* May a chain or call that was lost be tried once more?  `attempt` counts from 0. */
extern bool client_tries_again(TreeClient *client, int attempt);
/*
 * Adds to the client's and the tree's counters. The tree's lie in shared memory and are added to (relaxed)
 * by tree_count_flush(): every COUNTERS_FLUSH_CHAINS chains and in tree_close(), not once per insert, which
 * would bounce a line.
 */
#define TREE_COUNT(tree, field, n)                                                                           \
	((tree)->client->counters.field += (n), (tree)->pending.field += (n), (void) 0)
#define COUNTERS_FLUSH_CHAINS 256

/*
 * Bytes to read for the node at `pointer` that is expected at `level`: the root, which stays at its address
 * while its level grows, is always read as the largest node.
 */
static inline uint32_t
tree_node_bytes(const Tree *tree, uint64_t pointer, uint32_t level)
{
	return pointer_address(pointer) == tree->root ? NODE_MAX_BYTES : node_bytes(&tree->geometry, level);
}

/* ---- chain.c: chains to memory nodes ---- */

/* The memory node's channel; NULL: closed, away (the detail says why), or not connected while something is held. */
extern FabricEndpoint *access_connect(TreeClient *client, uint32_t memory_node);

static inline bool
node_is_open(const TreeShared *shared, uint32_t memory_node)
{
	return (__atomic_load_n(&shared->closed, __ATOMIC_RELAXED) & 1u << memory_node) == 0;
}

static inline FabricEndpoint *
access_endpoint(TreeClient *client, uint32_t memory_node)
{
	FabricEndpoint *endpoint = client->options.endpoints[memory_node];

	if (endpoint != NULL && node_is_open(client->shared, memory_node))
		return endpoint;
	return access_connect(client, memory_node);
}

/* fabric_execute(), fabric_post() and fabric_wait(), as crash points in builds for tests. */
#ifdef SHERMAN_PRODUCTION
static inline FabricStatus
crash_point_execute(const TreeClient *client, FabricEndpoint *endpoint, FabricOp *ops, int count)
{
	(void) client;
	return fabric_execute(endpoint, ops, count);
}

static inline FabricStatus
step_post(const TreeClient *client, FabricEndpoint *endpoint, FabricOp *ops, int count, uint64_t *ticket)
{
	(void) client;
	return fabric_post(endpoint, ops, count, ticket);
}

static inline FabricStatus
step_wait(const TreeClient *client, FabricEndpoint *endpoint, uint64_t ticket, const FabricOp *ops, int count)
{
	(void) client;
	(void) ops;
	(void) count;
	return fabric_wait(endpoint, ticket);
}
#else
extern FabricStatus crash_point_execute(const TreeClient *client, FabricEndpoint *endpoint, FabricOp *ops,
                                        int count);
extern FabricStatus step_post(const TreeClient *client, FabricEndpoint *endpoint, FabricOp *ops, int count,
                              uint64_t *ticket);
/* `ops` and `count`: as they were posted. */
extern FabricStatus step_wait(const TreeClient *client, FabricEndpoint *endpoint, uint64_t ticket,
                              const FabricOp *ops, int count);
#endif

/*
 * Executes a chain on one memory node and counts it. Must not be used while a chain to the node is indeterminate
 * (TREE_UNREACHABLE at once). On FABRIC_TIMED_OUT, STOPPED or LOST: marks the node so, calls access_settle(), and
 * returns TREE_RETRY if that has reset the channel (a prefix of the chain was applied and all of its locks are still
 * as they were), else TREE_UNREACHABLE or TREE_FENCED.
 */
static inline TreeStatus access_execute(Tree *tree, uint32_t memory_node, FabricOp *ops, int count);
/* The same, for a chain that goes to this memory node and nowhere else (replicas.c). */
extern TreeStatus access_execute_at(Tree *tree, uint32_t memory_node, FabricOp *ops, int count);
/*
 * As access_execute(), for a chain that may be done again when it was lost, as nothing in it depends on earlier
 * contents: TREE_RETRY is not returned. `what` names such chains in the error when they are not answered.
 */
extern TreeStatus access_repeat(Tree *tree, uint32_t memory_node, FabricOp *ops, int count, const char *what);
extern TreeStatus access_settle(TreeClient *client, uint32_t memory_node);
/* A chain was lost: resets the channel, as access_execute() does, and returns its status. */
extern TreeStatus access_lost(Tree *tree, uint32_t memory_node);
/* Whether chains to the connected memory node run in this process, and so one after the other. */
extern bool access_is_mapped(const TreeClient *client, uint32_t memory_node);
/* Counts one chain that was posted. */
extern void access_count_chain(Tree *tree, const FabricOp *ops, int count);
/* Passes less than READ_BOUND_US without sleeping. */
extern void access_pause(const TreeClient *client, uint64_t microseconds);
/* TREE_UNREACHABLE, because an earlier chain is indeterminate. */
extern TreeStatus access_doubt(TreeClient *client, uint32_t memory_node);
/* TREE_DAMAGED, for this node is whole and makes no sense (shape.c). */
extern TreeStatus access_damaged(Tree *tree, uint64_t pointer);
/* TREE_DAMAGED, for a walk along right links comes to this node again. */
extern TreeStatus access_ring(Tree *tree, uint64_t pointer);
/*
 * A memory node that may be written to now: connected, without an indeterminate chain, not draining.
 * TREE_UNREACHABLE.
 */
extern TreeStatus place_is_ready(TreeClient *client, uint32_t memory_node);
/* The capabilities of a memory node that is connected. */
static inline const FabricCapabilities *
access_capabilities(const TreeClient *client, uint32_t memory_node)
{
	assert(memory_node < client->options.nodes);
	assert(client->options.endpoints[memory_node] != NULL);
	return fabric_capabilities(client->options.endpoints[memory_node]);
}

/* ---- node_read.c: reads ---- */

/*
 * Reads a node without a lock and validates it: repeats torn reads with back-off, in the end under the lock.
 * TREE_RETRY: not the node expected (stale pointer). TREE_DAMAGED. `level` >= 0 is demanded (TREE_RETRY otherwise),
 * -1: any. `image` has room for tree_node_bytes() of that level (any: NODE_MAX_BYTES); it may be client->image.
 */
static inline TreeStatus access_read_node(Tree *tree, uint64_t pointer, int level, uint64_t *image);

/* The same for a node whose content may make no sense (shape.c): for check.c, which reports what is wrong with it. */
static inline TreeStatus access_read_whole(Tree *tree, uint64_t pointer, int level, uint64_t *image);

/* Either: `whole` = its content may make no sense. */
extern TreeStatus access_read(Tree *tree, uint64_t pointer, int level, uint64_t *image, bool whole);

static inline TreeStatus
access_read_node(Tree *tree, uint64_t pointer, int level, uint64_t *image)
{
	return access_read(tree, pointer, level, image, false);
}

static inline TreeStatus
access_read_whole(Tree *tree, uint64_t pointer, int level, uint64_t *image)
{
	return access_read(tree, pointer, level, image, true);
}

/*
 * READs of up to READ_AHEAD_MAX leaves, in flight together: one chain, or a wave of chains to all of their memory
 * nodes. verdicts[i] is node_check() of each, and NODE_STALE for a node that is not a leaf (the root). Each image has
 * room for tree_node_bytes(pointer, 0). Leaves whose wave was lost count as torn.
 */
extern TreeStatus access_read_leaves(Tree *tree, const uint64_t *pointers, int count, uint64_t *const *images,
                                     NodeVerdict *verdicts);

/*
 * The client's memory for a wave (tree/client/wave.h) that begins and ends within one function.  NULL: there is none, or the
 * tree's chains do not go by waves, for it has copies, or credits are counted.
 */
extern struct Wave *access_wave(Tree *tree);

/*
 * Fetches overflow keys, one chain for all of one memory node; `buffer` has room for the sum of lengths
 * rounded up to 16. TREE_RETRY: a hash does not match (the cell has changed; read the node again).
 */
extern TreeStatus access_read_overflow(Tree *tree, const OverflowReference *references, int count,
                                       uint8_t *const *buffers);

/* ---- replicas.c: trees that have each node twice; doc/internals/replicas.md ---- */

/*
 * A chain of a tree with a replica. While both are valid, WRITEs go to the replica first, and are awaited; then the
 * chain is executed at home. Once the replica has replaced the home, the chain goes to the replica instead. As
 * access_execute().
 */
extern TreeStatus replicas_execute(Tree *tree, uint32_t memory_node, FabricOp *ops, int count);

static inline TreeStatus
access_execute(Tree *tree, uint32_t memory_node, FabricOp *ops, int count)
{
	if (tree->replicas != NULL)
		return replicas_execute(tree, memory_node, ops, count);
	return access_execute_at(tree, memory_node, ops, count);
}

/*
 * Prepares a write of this node or block before its word is locked, as no call can be made under a lock.
 */
extern TreeStatus replicas_prepare(Tree *tree, uint64_t pointer);
/*
 * Under the node's lock: of a chain that was lost any part may have taken effect at home, and all of it at the
 * replica. Writes the node, as it is at home, over its replica. No other node of the chain may be written again: it
 * may be linked by now, and be another process's to lock.
 */
extern TreeStatus replicas_restore(Tree *tree, uint64_t pointer, uint32_t bytes);
/*
 * The memory node that serves pointers to `memory_node` (its replica, once that has replaced it), and that new nodes
 * are taken from.
 */
extern uint32_t replicas_place(const Tree *tree, uint32_t memory_node);
extern uint32_t replicas_source(const Tree *tree);
/* Gives an extent at the home its copy. TREE_MEMORY_FULL, TREE_UNREACHABLE, TREE_FENCED. */
extern TreeStatus replicas_extend(Tree *tree, uint64_t offset, uint64_t bytes);
extern void replicas_close(Tree *tree);

static inline uint32_t
tree_place(const Tree *tree, uint32_t memory_node)
{
	return tree->replicas == NULL ? memory_node : replicas_place(tree, memory_node);
}

/* Where a new node or block goes: `wish` where there is a choice. */
static inline uint32_t
tree_source(const Tree *tree, uint32_t wish)
{
	return tree->replicas == NULL ? wish : replicas_source(tree);
}

/*
 * A walk along right links, which detects a circle of links. In one epoch of the tree no node is visited twice: so
 * the walk remembers one node that it has visited, and a later one each time that it has gone on twice as far
 * (Brent's algorithm).
 */
typedef struct RightWalk
{
	uint64_t met;   /* address */
	uint64_t steps; /* since the walk began */
} RightWalk;

/* The walk comes to this node. False: it was there before. */
static inline bool
walk_goes_on(RightWalk *walk, uint64_t pointer)
{
	if (walk->steps > 0 && pointer_address(pointer) == walk->met)
		return false;
	/* At 1, 2, 4, ... steps. */
	if ((walk->steps & (walk->steps - 1)) == 0)
		walk->met = pointer_address(pointer);
	walk->steps++;
	return true;
}

/* ---- quiesce.c: critical sections, and instants without any ---- */
extern size_t critical_shared_bytes(const TreeSharedOptions *options);
/*
 * Begins a call that follows pointers of the tree, perhaps inside another one: waits while the barrier is closed.  TREE_STOPPED,
 * TREE_TIMED_OUT.  critical_leave() ends it, with what *section was set to.
 */
extern TreeStatus critical_enter(Tree *tree, int *section);
extern void critical_leave(Tree *tree, int section);
/* In a call: whether no leaf has left the tree since this one was read, so that its pointer may be followed. */
extern bool critical_same_epoch(const Tree *tree, const TreeLeafSeen *leaf);
/* No call of this client is in progress any more but the outer ones of them, whatever was jumped out of. */
extern void critical_reset(TreeClient *client, int sections);
/*
 * Closes the barrier, from inside an outermost call: true if from now on this is the only call in progress on the
 * tree in the instance. Interrupts are held until barrier_open(). False: a process took too long, or has closed it
 * before; nothing has changed.
 */
extern bool barrier_close(Tree *tree);
/* Opens what this client has closed, if anything. */
extern void barrier_open(TreeClient *client);
/* While it is closed: pointers of calls that are over are not followed any more. */
extern void barrier_next_epoch(Tree *tree);

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
 * nothing at all after a handover with the node's image (TreeTechniques may say otherwise). The image is checked: TREE_RETRY (released) if it is
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

/* ---- cache.c: inner nodes in shared memory ---- */
extern size_t cache_shared_bytes(const TreeSharedOptions *options);
extern void cache_shared_initialize(void *memory, const TreeSharedOptions *options);

/* What a search of an inner node says. */
typedef struct ChildChoice
{
	uint32_t level;  /* of the node that was searched */
	uint32_t index;  /* of the child in it */
	uint64_t child;  /* pointer with stamp hint */
	uint64_t low[8]; /* separators around the child, as bytes: the expected fences */
	uint64_t high[8];
	bool bound_below; /* the bound is below the node's low fence: stale path */
	bool bound_above; /* the bound is not below the node's high fence: go right */
	uint64_t right;   /* the node's right sibling */
	uint64_t generation;
} ChildChoice;

/*
 * Searches the cached node at `pointer` for the child that covers the bound. TREE_OK; TREE_NOT_FOUND: not
 * cached, or it changed too often meanwhile; TREE_RETRY: integers do not decide: `copy` (NODE_MAX_BYTES,
 * private) holds the whole node, consistent, for the caller to search with the comparator.
 */
extern TreeStatus cache_find_child(Tree *tree, uint64_t pointer, const TreeBound *bound, ChildChoice *choice,
                                   uint64_t *copy);
/*
 * Searches an inner node by integers only, for cache_find_child() and search_inner(): the child for the bound
 * is the last whose separator is not above it; the first child's separator is never looked at. Returns true
 * with *first == *last, the child's number; or false if integers do not decide: the child is among
 * *first..*last, and separators *first + 1 .. *last are to be compared. `node` may be shared memory (counts
 * are bounded, results are checked later).
 */
extern bool node_search_inner(const NodeGeometry *g, const uint64_t *node, const TreeBound *bound,
                              uint32_t *first, uint32_t *last);

/*
 * The child for the bound if integers decide, fences included; false: they do not. `node` may be shared memory, and
 * of any content.
 */
extern bool node_find_child(const NodeGeometry *g, const uint64_t *node, const TreeBound *bound,
                            ChildChoice *choice);

/*
 * Fills index, child, low, high, level, right, generation of `choice` for child `index`; the rest is left
 * alone.
 */
extern void node_child_choice(const NodeGeometry *g, const uint64_t *node, uint32_t index,
                              ChildChoice *choice);

/* A consistent private copy of a cached node; TREE_NOT_FOUND. */
extern TreeStatus cache_copy(Tree *tree, uint64_t pointer, uint64_t *copy);
/*
 * Puts a validated image into the cache; the newest generation wins. `parent` 0 for the root: a child is cached only
 * below its cached parent.
 */
extern void cache_put(Tree *tree, uint64_t pointer, uint64_t parent, const uint64_t *image);
extern void cache_drop(Tree *tree, uint64_t pointer);
extern void cache_drop_tree(TreeShared *shared, uint64_t tree);
/*
 * A merge has taken this node out of the tree, or merged others into it, on any level: earlier images of it and
 * pointers to it are not used any more. With the barrier closed, and the epoch raised.
 */
extern void cache_touched(Tree *tree, uint64_t pointer);

/* ---- techniques.c ---- */
/* The techniques that are asked for; tree_techniques if none are. */
extern const TreeTechniques *shared_techniques(const TreeSharedOptions *options);

/* ---- shared.c, state_table.c, state.c, doubts.c ---- */

/*
 * Called by tree_shared_initialize() and _reset(): each empties its part (states keep ids, references,
 * counters).
 */
extern void cache_shared_reset(void *memory);
extern void lock_shared_reset(void *memory);
extern void state_shared_reset(void *memory);

/* The tree's state: found or made; a reference is held until state_put(). NULL: too many trees in use. */
extern TreeState *state_get(TreeClient *client, uint64_t tree);
extern void state_put(TreeClient *client, TreeState *state);
/* The tree is gone: its state, with all that it holds, is reused once the last handle is closed. */
extern void state_drop(TreeShared *shared, uint64_t tree);
extern TreeCounters *state_counters(TreeState *state);
/* Estimates (relaxed): inserts and splits add by tree_count_flush(), bulk load and vacuum by themselves. */
extern void state_add(TreeState *state, int64_t entries, int64_t leaves, int64_t inner_nodes);
extern void state_set(TreeState *state, uint64_t entries, uint64_t leaves, uint64_t inner_nodes,
                      uint32_t height);
extern void state_read(TreeState *state, TreeStatistics *statistics, bool *known);
/* How many splits of leaves are between split_announce() and split_over(). Each orders all memory accesses. */
extern void state_split_begins(TreeState *state);
extern void state_split_ends(TreeState *state);
extern bool state_splits(const TreeState *state);
extern void state_next_epoch(TreeClient *client, TreeState *state);
/*
 * The replica of a tree, as the instance knows it. A doubt: WRITEs under a lock that was given up may have taken
 * effect at the replica alone. A leaked lock becomes a doubt if its memory node, which is closed, comes back. Doubts
 * are counted, so that the process that settles them sees whether another one has come meanwhile.
 */
extern void state_replicas_begin(TreeClient *client, TreeState *state, TreeReplicaState replicas, bool doubt);
extern TreeReplicaState state_replicas(const TreeState *state);
/* Makes it so if both were good so far. */
extern void state_replicas_set(TreeState *state, TreeReplicaState replicas);
extern void state_replicas_doubt(TreeShared *shared, uint64_t tree);
extern void state_replicas_note_leaked_lock(TreeShared *shared, uint64_t tree);
/*
 * A memory node has come back with its memory, and was fenced: no earlier chain can take effect there any more, and
 * leaked locks there become doubts.
 */
extern void state_node_fenced(TreeShared *shared, uint32_t node);
/*
 * Notes that a chain of the tree is indeterminate at the memory node; until that is fenced the tree's state is not
 * reused (state_table.c). Before the handle is closed that executed it.
 */
extern void state_leave_unsettled(TreeState *state, uint32_t node);
/* How many doubts there were, and whether the last of them is not settled. */
extern uint64_t state_replicas_doubts(const TreeState *state, bool *open);
extern void state_replicas_settle(TreeState *state, uint64_t doubts);
extern size_t state_shared_bytes(const TreeSharedOptions *options);
extern void state_shared_initialize(void *memory, const TreeSharedOptions *options);

/* ---- allocate.c ---- */

/*
 * Takes a node of node_bytes(level) on a memory node (the tree's home unless its share is far above the
 * average) and its first generation. Local from a chunk; else a FETCH_ADD on the extent's bump word; else an
 * extent by call. Never under a lock that is not ours alone: callers take nodes BEFORE they lock
 * (alloc_reserve) so that a full memory node is known while nothing is held. TREE_MEMORY_FULL.
 */
extern TreeStatus allocate_node(Tree *tree, uint32_t memory_node, uint32_t level, uint64_t *pointer,
                                uint64_t *generation);
/* The same, of a caller that is about to take `count` of them: a FETCH_ADD takes room for all of them. */
extern TreeStatus allocate_one_of(Tree *tree, uint32_t memory_node, uint32_t level, uint32_t count,
                                  uint64_t *pointer, uint64_t *generation);
/* Gives back a node that was never linked. */
extern void allocate_return(Tree *tree, uint64_t pointer, uint32_t level, uint64_t generation);
/*
 * freed.c: nodes that no process can reach any more, kept for reuse. freed_put() adds one, whose last generation is
 * known; a failure loses it until REINDEX. freed_take(): TREE_NOT_FOUND, there is none. freed_choose(): the memory
 * node to take one from: the one asked for, or where it has none the one that has most, before the tree grows.
 */
extern TreeStatus freed_put(Tree *tree, uint64_t pointer, uint32_t level, uint64_t generation);
extern uint32_t freed_choose(const Tree *tree, uint32_t memory_node, uint32_t level);
extern TreeStatus freed_take(Tree *tree, uint32_t memory_node, uint32_t level, uint64_t *pointer,
                             uint64_t *generation);

/* extent.c. Learns which extent of the tree there is the newest, before anything is taken from it; makes the first one. */
extern TreeStatus allocate_begin(Tree *tree, uint32_t memory_node);
/* runs.c. Gives whole stripes that were never written to later nodes. False: there is no room to remember them. */
extern bool allocate_spare(Tree *tree, uint32_t memory_node, uint64_t offset, uint64_t bytes,
                           uint64_t generation);

/* ---- reclaim.c: what earlier incarnations of the instance took, and what of it is free ---- */
/* Looks for free nodes there, before another chunk is taken: how many bytes it has found. */
extern uint64_t reclaim_some(Tree *tree, uint32_t memory_node);
/*
 * To be called before this incarnation frees nodes: ends the search; what was not examined by now never will be.
 * Waits a while for a process that examines a piece. False: one still does.
 */
extern bool reclaim_end(Tree *tree);

/*
 * A whole run of `bytes` (chunks) for the bulk load's large WRITEs; *bytes comes back smaller at the end of
 * an extent.
 */
extern TreeStatus allocate_run(Tree *tree, uint32_t memory_node, uint64_t *bytes, uint64_t *offset,
                               uint64_t *generation);
/* Gives the unused end of such a run to later leaves; `offset` lies on a leaf's boundary. */
extern void allocate_run_return(Tree *tree, uint32_t memory_node, uint64_t bytes, uint64_t offset,
                                uint64_t generation);
/*
 * A block for an overflow key, and its return (after the rewrite that removed its cell was
 * acknowledged).
 */
extern TreeStatus allocate_overflow(Tree *tree, uint32_t memory_node, uint32_t bytes, uint64_t *offset);
extern void allocate_overflow_return(Tree *tree, uint32_t memory_node, uint64_t offset, uint32_t bytes);

/* ---- search.c: descent ---- */

/* How a descent came to a leaf, or to a node of another level. */
typedef struct Path
{
	uint64_t pointer; /* the node, with stamp hint */
	uint32_t level;
	uint64_t low[8]; /* its fences as its parent has them */
	uint64_t high[8];
	bool fences_known;            /* false: came by a right move or the node is the root */
	uint64_t parents[LEVELS_MAX]; /* parents[l]: the node of level l that led here, 0 = not known */
	uint32_t root_level;          /* level of the root as seen */
	bool fresh;                   /* the parent was read from the memory node, not from the cache */
} Path;

/*
 * Descends to the node of `level` that covers the bound, through the cache (unless `fresh`), following right
 * links and completing splits on the way. The node itself is not read when its level is 0 and the tree's
 * root is above it. Calls the comparator: nothing may be held.
 */
static inline TreeStatus search_descend(Tree *tree, const TreeBound *bound, uint32_t level, bool fresh,
                                        Path *path);

/*
 * The same to a leaf for a lookup, through the cache; where that ends the memory node may be called for the rest
 * (offload.h): then path->parents are not known. *brought: `leaf` is a valid image of the leaf, whose fences are not
 * checked yet.
 */
static inline TreeStatus search_look_up(Tree *tree, const TreeBound *bound, Path *path, uint64_t *leaf,
                                        bool *brought);

/* Either: `leaf` is NULL, or a lookup's buffer. */
extern TreeStatus search_path(Tree *tree, const TreeBound *bound, uint32_t level, bool fresh, Path *path,
                              uint64_t *leaf, bool *brought);

static inline TreeStatus
search_descend(Tree *tree, const TreeBound *bound, uint32_t level, bool fresh, Path *path)
{
	bool brought;

	return search_path(tree, bound, level, fresh, path, NULL, &brought);
}

static inline TreeStatus
search_look_up(Tree *tree, const TreeBound *bound, Path *path, uint64_t *leaf, bool *brought)
{
	assert(leaf != NULL);
	return search_path(tree, bound, 0, false, path, leaf, brought);
}

/*
 * Finds the child for the bound in a private copy of an inner node, with the comparator where integers do not
 * decide (overflow keys are fetched in one chain).
 */
extern TreeStatus search_inner(Tree *tree, const uint64_t *node, const TreeBound *bound, ChildChoice *choice);

/*
 * Fetches the overflow keys of private cells into tree->pool, one chain for up to FABRIC_MAX_CHAIN of
 * them on one memory node. images[i] is NULL for a cell without one. Valid until the next call. TREE_RETRY: a
 * cell has changed.
 */
extern TreeStatus search_images(Tree *tree, const uint64_t *const *cells, int count, const uint8_t **images);

/* As search_compare(), with the overflow key, if there is one, in `image`. */
extern int search_compare_image(Tree *tree, const TreeBound *bound, const uint64_t *cell, bool separator,
                                const uint8_t *image);

/*
 * Compares the bound with a private cell or separator, comparator included. *result < 0: the bound is before
 * it.
 */
extern TreeStatus search_compare(Tree *tree, const TreeBound *bound, const uint64_t *cell, bool separator,
                                 int *result);

/*
 * As search_compare() for one of a private node's fences: infinite fences decided. low: bound < low? high:
 * bound < high?
 */
extern TreeStatus search_compare_fence(Tree *tree, const TreeBound *bound, const uint64_t *node, bool high,
                                       int *result);

/*
 * The bound that stands for a separator, to descend with: side 0: at it (its right side covers it); side -1:
 * just below it (its left side does; of a whole separator the bound carries the next lower TID, so it is no
 * filter for entries). The image, if any, lies in `buffer` (TREE_IMAGE_MAX_BYTES). The separator is not
 * infinite. TREE_RETRY as search_images().
 */
extern TreeStatus search_separator_bound(Tree *tree, const uint64_t *separator, int8_t side, TreeBound *bound,
                                         uint8_t *buffer);

/* ---- back_off.c ---- */

/* Waits before swap number `attempt` of a word that another instance had so far; nothing is held. */
extern void back_off_wait(TreeClient *client, int attempt);
/* A swap was won or lost. */
extern void back_off_count(TreeClient *client, bool lost);

/* ---- throttle.c: credits ---- */
extern size_t throttle_shared_bytes(const TreeSharedOptions *options);
extern void throttle_shared_reset(TreeShared *shared);
/*
 * Takes credits for so many operations, where the techniques have them, and waits for them if need be; how many is for
 * throttle_leave().
 */
extern uint32_t credits_take(TreeClient *client, int count);
extern void credits_return(TreeClient *client, uint32_t taken);

static inline uint32_t
throttle_enter(TreeClient *client, int count)
{
	return client->techniques.credits == 0 ? 0 : credits_take(client, count);
}

static inline void
throttle_leave(TreeClient *client, uint32_t taken)
{
	if (taken > 0)
		credits_return(client, taken);
}

/* ---- speculate.c: the entry cache ---- */
extern size_t speculate_shared_bytes(const TreeSharedOptions *options);
extern void speculate_shared_reset(TreeShared *shared);

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
 * READ, as it is not cached, or may not be (the root, trees with replicas, memory nodes that this host maps).
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
extern void cache_usage(const TreeShared *shared, TreeCacheUsage *usage);

/* ---- insert.c ---- */

/* Gives a block back to which no cell refers. */
extern void block_return(Tree *tree, OverflowBlock *block);

/*
 * Gives back the blocks of an insert that ended before a cell referred to them (a failure, or the
 * comparator's jump).
 */
static inline void
insert_abandon(Tree *tree)
{
	assert(!tree->client->holding);
	if (tree->block.bytes != 0)
		block_return(tree, &tree->block);
	if (tree->cut.bytes != 0)
		block_return(tree, &tree->cut);
}

/* ---- full_leaf.c: dead entries of a full leaf ---- */

/* Whether the caller's hook is to be asked about the full leaf in this image. */
extern bool room_is_asked(const Tree *tree, const uint64_t *node);
/* Asks it; nothing is held. `node` is private. False: split. */
extern bool room_ask(Tree *tree, uint64_t pointer, const uint64_t *node, TreeFullLeaf *full);
/* How many cells, which a rewrite would keep, the hook said are to be removed. */
extern uint32_t room_removable(const NodeGeometry *g, const uint64_t *node, const TreeFullLeaf *full);
/* Empties them, in a private image. */
extern void room_clear(const NodeGeometry *g, uint64_t *node, const TreeFullLeaf *full);

/* ---- split_order.c: what only the comparator can order, done outside of locks ---- */

/* Gathered cells with what the comparator needs: the overflow keys of those that tie. */
typedef struct OrderedCells
{
	LeafCells leaf;
	const uint64_t *extra;    /* the cell that is being inserted: its image is not in node memory yet */
	const TreeKey *extra_key; /* and its key */
	const uint8_t *images[LEAF_ENTRIES_MAX + 1];
} OrderedCells;

/*
 * Orders gathered cells wholly: runs that integers leave tied by the comparator and TID; they are `ordered`
 * then. TREE_RETRY: a cell has changed.
 */
extern TreeStatus order_cells(Tree *tree, OrderedCells *cells);
/*
 * The separator in front of cells[cut] of ordered cells. If it carries an overflow key, this is copied
 * into a block of its own at `memory_node` (tree->cut), so that the leaf's block can be freed with its cell.
 */
extern TreeStatus order_separator(Tree *tree, uint32_t memory_node, const OrderedCells *cells, uint32_t cut,
                                  uint64_t *separator);

/* ---- split.c, downlink.c ---- */

/*
 * A split at the tree's right end by an entry behind all others leaves this much on the left: ascending keys.
 */
#define SPLIT_ASCENDING_PERCENT 90

/* Operations of the longest chain: image block, two children, redo, node; and the unlock. */
#define SPLIT_CHAIN_OPS (1 + 2 + REDO_OPS + 1 + 1)

/* Cells of an inner node with one more, each a pointer to {child, separator}. */
typedef struct InnerCells
{
	uint32_t count;
	const uint64_t *cells[INNER_CELLS_MAX + 1];
} InnerCells;

/* A split: its cut, and the nodes that it made. */
typedef struct Split
{
	uint32_t cut;                   /* in: cells[0, cut) go left */
	uint64_t separator[LINE_WORDS]; /* in */
	FabricOp ops[SPLIT_CHAIN_OPS];  /* in: what goes first in the chain */
	int count;                      /* in: their number */
	bool root;                      /* out: the root was split, so that no downlink is to be inserted */
	uint64_t left;                  /* out */
	uint64_t right;                 /* out */
} Split;

/*
 * Split the node at `pointer`, which is locked and lies in client->image; the reserve holds the nodes (two
 * for the root). The halves lie in client->image_left and image_right afterwards, the root in image_root.
 * Releases the hold; returns what lock_write_and_release() said.
 */
extern TreeStatus split_leaf(Tree *tree, LockHandle *lock, uint64_t pointer, const LeafCells *cells,
                             Split *split);
extern TreeStatus split_inner(Tree *tree, LockHandle *lock, uint64_t pointer, const InnerCells *cells,
                              Split *split);
/*
 * predicate.c: before the halves of a leaf's split, which have their addresses, can be reached; and once the split
 * was written, or failed with this status.
 */
extern void split_announce(Tree *tree, uint64_t pointer, const Split *split);
/* The same of one new leaf `to` that gets a part of the keys of `from`; each ends by split_over(). */
extern void leaf_split_announce(Tree *tree, uint64_t from, uint64_t to);
extern void split_over(Tree *tree, TreeStatus status);
/*
 * Whether the reserve has the nodes that a split of this node takes. If not, the lock is released for reserve_fill():
 * once for each handle, as from then on one is reserved ahead.
 */
extern bool split_reserved(Tree *tree, uint64_t pointer, uint32_t level);

static inline NodeReserve *
reserve_of(Tree *tree, uint32_t level)
{
	assert(level < LEVELS_MAX);
	return level == 0 ? &tree->leaves : &tree->inner;
}

/*
 * Takes nodes ahead until the reserve of this level's kind holds `count`. TREE_MEMORY_FULL and others;
 * nothing is held.
 */
extern TreeStatus reserve_fill(Tree *tree, uint32_t level, uint32_t count);
/* Reserves a node if the handle has split such nodes; a failure will be reported when one is needed. */
static inline void
reserve_keep(Tree *tree, uint32_t level)
{
	const NodeReserve *reserve = reserve_of(tree, level);

	assert(!tree->client->holding);
	assert(reserve->count <= RESERVE_NODES);
	if (reserve->wanted && reserve->count == 0 && !tree->memory_full)
		(void) reserve_fill(tree, level, 1);
}
/* Takes one out of the reserve, which holds one. */
extern void reserve_take(Tree *tree, uint32_t level, uint64_t *pointer, uint64_t *generation);
extern void reserve_return(Tree *tree);
/* The same for leaves of waves: takes ahead until there are so many, SPARE_LEAVES at most; takes one out, of those that there are. */
extern TreeStatus spare_fill(Tree *tree, uint32_t count);
extern void spare_take(Tree *tree, uint64_t *pointer, uint64_t *generation);

/*
 * Inserts the downlink of `right`, the right sibling of `left`, both on `level`, with the separator between the two,
 * into their parent on level + 1: idempotent. Nothing is held. `path` (may be NULL) says where the parent may be. If
 * it fails the split stays incomplete, and the next writer that moves right there completes it.
 */
extern TreeStatus downlink_insert(Tree *tree, uint32_t level, uint64_t left, const uint64_t *separator,
                                  uint64_t right, const Path *path);

/* ---- redo.c: shared with msd ---- */
typedef struct RedoTarget
{
	uint64_t offset; /* in NODES */
	uint32_t bytes;
	uint64_t generation;
} RedoTarget;

/* Whether the slot holds a whole image; fills target. */
extern bool redo_valid(const RedoHeader *header, const void *image, RedoTarget *target);
/* XXH3 of the image as redo_valid() expects it. */
extern uint64_t redo_sum(const RedoHeader *header, const void *image);

/* ---- directory.h has the calls between client and msd ---- */

/* ---- rewrite.c ---- */

/*
 * Makes in `node` the next generation of the leaf in the image `old`, with the cells that leaf_keeps() accepts.
 * Returns the number of entries. `old` is read until then.
 */
extern uint32_t leaf_rewrite_image(const NodeGeometry *g, uint64_t pointer, const uint64_t *old,
                                   uint64_t *node);
/*
 * Rewrites the locked leaf with those cells of `old` that leaf_keeps() accepts, and releases it; `old` is the
 * client's image, perhaps changed by the caller. *live: the number of entries. Overflow blocks that are not referred
 * to any more are given back.
 */
extern TreeStatus leaf_rewrite(Tree *tree, LockHandle *lock, uint64_t pointer, const uint64_t *old,
                               uint32_t *live);
/*
 * After a rewrite was acknowledged: gives back the blocks of cells of the old image that the new one dropped, among them the one in
 * slot `dropped` (or LEAF_NO_SLOT), but for `kept` (or NULL), which a new cell has.
 */
extern void leaf_free_blocks(Tree *tree, const uint64_t *old, uint32_t dropped,
                             const OverflowReference *kept);

#endif /* SHERMAN_TREE_INTERNAL_H */
