/*
 * internal.h
 *		What all files of tree/ share: the instance, the client, the open tree, its chains, replicas, critical sections and
 *		state. Not for other layers.
 *
 * What a room offers the rooms above it is in its face: node/node.h, node/inner.h, node/redo.h, shared/cache.h, shared/state.h,
 * lock/lock.h, space/allocate.h, descent/descent.h, change/change.h.
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
/* The same of a vacuum's walk, which knows that it needs them: children of several inner nodes. */
#define READ_TOGETHER_MAX 512
_Static_assert(READ_TOGETHER_MAX >= READ_AHEAD_MAX, "memory for READs together is for both");
/* How many are read next by a walk that has used all that it read, so many. */
static inline int
read_ahead_deepen(int depth)
{
	return depth * 2 < READ_AHEAD_MAX ? depth * 2 : READ_AHEAD_MAX;
}

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
	uint64_t
		leaf_sums[2];  /* bit per memory node: its leaves carry sums; whose cells cross no line, and others */
	uint64_t vouched;  /* bit per memory node: not connected yet, tree_client_vouch() */
	uint32_t trouble;  /* bit per memory node: for tree_client_trouble() */
	uint64_t silence;  /* options.silence points here, if not to the caller's */
	bool holding;      /* between environment.hold and resume */
	bool far;          /* for tests: mapped memory nodes are used as if they were far away */
	int sections;      /* quiesce.c: calls in progress, one inside another */
	TreeState *closed; /* quiesce.c: the tree whose barrier this process has closed */
	TreeFull full_by;  /* of the last TREE_MEMORY_FULL */
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

/* Nodes taken ahead for the splits of a wave, in memory of their own: most handles never have any (spare.c). */
typedef struct SpareNode
{
	uint64_t pointer;
	uint64_t generation;
} SpareNode;

typedef struct SpareNodes
{
	uint32_t count;
	SpareNode nodes[];
} SpareNodes;

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
	NodeReserve leaves;       /* split.c */
	NodeReserve inner;        /* split.c, downlink.c */
	SpareNodes *spare_leaves; /* spare.c; NULL: there were none yet */
	SpareNodes *spare_inner;
	bool memory_full; /* the last attempt to take a node ahead failed: ask again only when one is needed */
	OverflowBlock
		block; /* of the insert in progress: given back by the next call, if it was left behind by a jump */
	OverflowBlock cut;      /* of a separator in the making, likewise */
	uint64_t inserted;      /* pointer of the leaf that the last insert put its entry into */
	TreeWalPosition proven; /* tree_removal_proven(); the geometry refers to it */
	TreeSeen seen;          /* a reader's; node_read.c */
	bool torn;              /* a reader has met a node that stays torn, since the last descent began */
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
/* Finds out anew at which connected memory nodes READs may tear lines, and at which more than lines. */
extern void client_find_tearing(TreeClient *client);
/* The same, for leaves of such cells: NodeGeometry.leaf_sums, for the client's life. */
extern const uint64_t *client_leaf_sums(TreeClient *client, const NodeGeometry *g);
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

/* access_execute() of a chain that goes to this memory node and nowhere else (replicas.c). */
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

/* ---- replicas.c: trees that have each node twice; doc/internals/replicas.md ---- */

/*
 * A chain of a tree with a replica. While both are valid, WRITEs go to the replica first, and are awaited; then the
 * chain is executed at home. Once the replica has replaced the home, the chain goes to the replica instead. As
 * access_execute().
 */
extern TreeStatus replicas_execute(Tree *tree, uint32_t memory_node, FabricOp *ops, int count);

/*
 * Executes a chain on one memory node and counts it. Must not be used while a chain to the node is indeterminate
 * (TREE_UNREACHABLE at once). On FABRIC_TIMED_OUT, STOPPED or LOST: marks the node so, calls access_settle(), and
 * returns TREE_RETRY if that has reset the channel (a prefix of the chain was applied and all of its locks are still
 * as they were), else TREE_UNREACHABLE or TREE_FENCED.
 */
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
/* The memory node that WRITEs go to beside the one that serves pointers; where there is none, that one. */
extern uint32_t replicas_copy(const Tree *tree);
/*
 * A chain that writes nodes which are in no tree, where its copy could not be written: at home alone, as long as both halves count. Else nothing
 * happens.
 */
extern TreeStatus replicas_execute_at_home(Tree *tree, uint32_t memory_node, FabricOp *ops, int count);
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
 * (Brent's algorithm). A reader knows no epochs: it may meet a node again that was merged, and has become another one, or that has got its
 * left neighbor's keys. Then the generation is another one, which scans look at, too.
 */
typedef struct RightWalk
{
	uint64_t met;        /* address */
	uint64_t generation; /* that it had */
	uint64_t steps;      /* since the walk began */
} RightWalk;

/* The walk comes to this node, in a generation (0: in any). False: it was there before. */
static inline bool
walk_goes_on(RightWalk *walk, uint64_t pointer, uint64_t generation)
{
	if (walk->steps > 0 && pointer_address(pointer) == walk->met && generation == walk->generation)
		return false;
	/* At 1, 2, 4, ... steps. */
	if ((walk->steps & (walk->steps - 1)) == 0)
	{
		walk->met = pointer_address(pointer);
		walk->generation = generation;
	}
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
/* Every tree has another epoch from now on, before which nothing that was cached counts. */
extern void state_forget_cached(TreeShared *shared);
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
/*
 * The same of a reader's handle: what was cached before one half was given up is forgotten, once; a merge that was cut short by the loss may
 * have left nodes that are in no tree and do not say so. That both are good is not noted: it would stay behind when this instance becomes
 * the owner, whose doubts count.
 */
extern void state_replicas_read(TreeShared *shared, TreeState *state, TreeReplicaState replicas);
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

/* ---- speculate.c: the entry cache ---- */
extern size_t speculate_shared_bytes(const TreeSharedOptions *options);
extern void speculate_shared_reset(TreeShared *shared);

#endif /* SHERMAN_TREE_INTERNAL_H */
