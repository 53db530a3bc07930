/*
 * client.h
 *		What an instance and each of its processes need to use trees: shared memory, techniques, connections.
 *
 *		- TreeShared: the instance's local lock table, caches, and the state of each tree
 *		- TreeEnvironment: what the process lends the tree: time, sleep, interrupts, connections
 *		- TreeClient: the process's endpoints, scratch memory, and slot among the instance's processes
 *
 * Part of tree.h.
 */
#ifndef SHERMAN_CLIENT_H
#define SHERMAN_CLIENT_H

#include "../rdma/fabric.h"
#include "../rdma/proxy.h"

/* Memory nodes of one instance: a bit for each fits a word of 32 (tree_client_trouble()). */
#define TREE_MAX_NODES 32

/* Length of the detail that goes with an error. */
#define TREE_DETAIL_BYTES 256

typedef enum TreeStatus
{
	TREE_OK = 0,
	TREE_END,     /* a scan or walk has no more */
	TREE_STOPPED, /* the environment asked to stop (query cancel); nothing is held, nothing indeterminate */
	TREE_MEMORY_FULL, /* a memory node has no extent left; tree unchanged and whole */
	TREE_NO_MEMORY,   /* this process has no memory */
	TREE_UNREACHABLE, /* a memory node does not answer, or its channel could not be reset in time */
	TREE_FENCED,      /* this instance was replaced: nothing more may be read or written */
	TREE_DAMAGED,     /* a node was invalid twice under its lock, or an invariant is broken */
	TREE_NOT_FOUND,   /* no such tree at the memory node */
	TREE_TIMED_OUT,   /* a lock was not to be had within the deadline */
	TREE_INVALID      /* arguments outside the contract */
} TreeStatus;

/*
 * Called for each chain and call, right before it is posted and right after its answer: tests end or pause the
 * process there. Locks may be held: it must not jump. `name` describes the chain or call, and is valid during this
 * call only.
 */
typedef void TreeCrashPoint(void *argument, const char *name, bool before);

/* What PostgreSQL (or a test) lends the tree. Slots are numbers of processes of this instance, 0..slots-1. */
typedef struct TreeEnvironment
{
	void *argument;
	uint64_t (*now_us)(void *argument); /* monotonic microseconds */
	/*
	 * Sleeps until tree_environment.wake() was called for this slot or the time is over; a wake-up that came
	 * before is not lost, unless pause() used it up; spurious returns are allowed.
	 */
	void (*sleep)(void *argument, uint32_t slot, uint32_t milliseconds);
	void (*wake)(void *argument, uint32_t slot);
	/*
	 * Called in each turn of a loop that spins, for an action of another process or for time to pass. NULL: a pause
	 * instruction; set where time passes by such calls only, in the simulator. It may use up a wake-up: a process
	 * that sleeps has checked its condition after its last pause. The other callbacks must not: they are called
	 * between that check and sleep().
	 */
	void (*pause)(void *argument);
	/*
	 * True when the operation should end early (query cancel). Called only while nothing is held or indeterminate.
	 */
	bool (*should_stop)(void *argument);
	/*
	 * Called before the first remote lock of an operation may be won and after the last is released: HOLD_
	 * and RESUME_INTERRUPTS in PostgreSQL.  What they note for others (tree_node_open()) takes plain atomic stores: the
	 * tree puts the barriers around them.
	 */
	void (*hold)(void *argument);
	void (*resume)(void *argument);
	/*
	 * Connects to a memory node on first use; the endpoint is the caller's and stays until
	 * tree_client_reconnect().  NULL: it cannot be reached now, and `detail` (TREE_DETAIL_BYTES) says why.
	 * Called only while nothing is held.  NULL here: the endpoints of the options are all there are.
	 */
	FabricEndpoint *(*connect)(void *argument, uint32_t node, char *detail);
	TreeCrashPoint *crash_point; /* NULL: nobody wants to know */
} TreeEnvironment;

/* Counters: of one client, and summed for one tree. Field order is the order of the SQL view. */
typedef struct TreeCounters
{
	uint64_t lookups;     /* descents for a scan or a lookup */
	uint64_t inserts;     /* entries inserted */
	uint64_t insert_hits; /* inserts that found their entry there already */
	uint64_t deletes;     /* entries removed */
	uint64_t round_trips; /* chains */
	uint64_t read_bytes;
	uint64_t written_bytes;
	uint64_t leaf_reads; /* leaves read without a lock */
	uint64_t leaf_splits;
	uint64_t inner_splits;
	uint64_t root_splits;
	uint64_t leaf_rewrites;     /* whole rewrites that are not splits */
	uint64_t parent_posts;      /* downlinks inserted */
	uint64_t right_moves;       /* steps to a right sibling because a fence said so */
	uint64_t torn_reads;        /* reads that were torn and repeated */
	uint64_t stale_reads;       /* nodes that were not the one expected: descents begun anew */
	uint64_t lock_acquisitions; /* remote words won */
	uint64_t lock_waits;        /* waits in the local queue */
	uint64_t lock_retries;      /* compare-and-swaps lost to another instance or word */
	uint64_t handovers;         /* locks taken over from a local predecessor */
	uint64_t handover_images;   /* of them with the node's image */
	uint64_t cache_hits;        /* inner nodes found in the cache */
	uint64_t cache_misses;      /* inner nodes not found there */
	uint64_t cache_evictions;
	uint64_t undecided_fences; /* locks given back to compare outside (budget exception) */
	uint64_t undecided_cuts;   /* splits that sorted outside and locked again (budget exception) */
	uint64_t stamp_writes;     /* inserts that also wrote the leaf's (epoch, LSN) */
	uint64_t extents;          /* extents taken */
	uint64_t dead_marks;       /* entries marked as dead */
	uint64_t dead_removals;    /* entries that inserts removed in place of a split */
	uint64_t copy_writes;      /* chains whose writes went to a copy first */
	uint64_t leaf_hits;        /* leaves found in the cache */
	uint64_t leaf_misses;      /* leaves not found there, of those that are kept */
} TreeCounters;

/* ------------------------------------------------------------------------------------------------
 * Shared memory of one instance: local lock table, wait slots with image buffers, cache, tree states.
 * The caller lends one zeroed region; it is not kept across a restart of the instance.
 */
typedef struct TreeShared TreeShared;

/* DEX: whether the client or the memory node descends where the cache of inner nodes ends. */
typedef enum TreeOffload
{
	TREE_OFFLOAD_NEVER = 0, /* the client, by READs */
	TREE_OFFLOAD_BY_COST,   /* the memory node, by one call, where that is expected to take less time */
	TREE_OFFLOAD_ALWAYS     /* the memory node: for measurements and tests */
} TreeOffload;

/*
 * What of Sherman's and DEX's techniques is for the instance to choose (doc/internals/techniques.md): the tree is correct
 * with any choice.  What the papers compare with leaves out more of them: sim/baselines.h.
 */
typedef struct TreeTechniques
{
	/* Sherman: a lock word that was won is passed on in the instance so often at most; 0: never. */
	uint32_t handovers;
	/*
	 * DEX, logical partitioning: trees are this instance's alone, which one TreeShared is: its local lock table excludes
	 * everybody, and no lock words are swapped.
	 */
	bool exclusive;
	/* DEX, offloading: a lookup asks the memory node for the leaf if the cache lacks an inner node (offload.h). */
	TreeOffload offload;
} TreeTechniques;

/* As they are used unless something else is asked for: the paper's handovers, and none of DEX's. */
extern const TreeTechniques tree_techniques;
/* The same with `exclusive`: as an instance uses them that owns its trees (doc/internals/ownership.md), which PostgreSQL does. */
extern const TreeTechniques tree_owner_techniques;

typedef struct TreeSharedOptions
{
	uint32_t slots;    /* processes that may use the tree at once */
	uint32_t trees;    /* trees whose allocation state and counters are kept at once */
	bool states_apart; /* these have memory of their own; else they lie in the region, too */
	void *states;      /* apart: zeroed, tree_states_bytes() long; tree_shared_bytes() does not look at it */
	uint64_t cache_bytes; /* inner-node cache */
	uint32_t lock_words;  /* words of the LOCKS region that the local table covers, a power of two */
	uint32_t nodes;       /* memory nodes, 1..TREE_MAX_NODES */
	const TreeTechniques *techniques; /* NULL: tree_techniques; copied by tree_shared_initialize() */
	uint64_t
		entry_cache_bytes; /* for tree_find(): where keys were found, 16 bytes each; 0: it does not guess */
	/*
	 * DEX, leaves with delayed admission: room for images of leaves, with TreeTechniques.exclusive only; 0: none are
	 * kept.  Beside it 8 bytes for each lock word of each memory node.  Longer leaves than leaf_cache_leaf_bytes are not kept, and
	 * each image takes as much; 0: all are, in 1, 2 or 4 KB each.  A leaf that was read pushes out another one with a probability of so
	 * many percent; 0: DEX's 10.
	 */
	uint64_t leaf_cache_bytes;
	uint32_t leaf_cache_leaf_bytes;
	uint32_t leaf_admission_percent;
	/*
	 * No other instance uses the trees, and one that did was fenced at each memory node before that is used here: what
	 * was left free before is looked for (tree_reclaim_next()).
	 */
	bool alone;
} TreeSharedOptions;

extern size_t tree_shared_bytes(const TreeSharedOptions *options);
/*
 * Bytes of TreeSharedOptions.states, most of which are not touched before so many trees are in use: memory that the system hands out
 * page by page.  0: the options are outside the contract.
 */
extern size_t tree_states_bytes(const TreeSharedOptions *options);
extern TreeShared *tree_shared_initialize(void *memory, const TreeSharedOptions *options);

/*
 * Forgets cache frames, lock queues and allocation states: after a new incarnation was granted, before any
 * use.
 */
extern void tree_shared_reset(TreeShared *shared);

/*
 * Closes a memory node for all processes of the instance: from now on chains and calls to it fail at once with
 * TREE_UNREACHABLE, new nodes are taken elsewhere, and processes that wait for a lock there stop waiting. Memory
 * nodes are open at first. tree_node_open() undoes it.
 */
extern void tree_node_close(TreeShared *shared, uint32_t node);

/*
 * Of a memory node that is closed, as tree_node_open() wants it: whether its leaves are not kept in TreeSharedOptions.leaf_cache_bytes, as a
 * READ there is as good.  They are kept at first.
 */
extern void tree_node_leaves_at_hand(TreeShared *shared, uint32_t node, bool at_hand);

/*
 * What was cached of inner nodes up to now is not used any more, and what outlives a call is looked up anew: the instance that owns the
 * trees is another one from now on, or has begun anew.  At any time; calls in progress go on with what they have.
 */
extern void tree_forget_cached(TreeShared *shared);

/* What a cache in shared memory has room for, and what is in it now, roughly: nodes come and go meanwhile. */
typedef struct TreeCacheUsage
{
	uint64_t bytes;
	uint64_t used_bytes;
	uint64_t nodes;
	uint64_t hits; /* found there by all clients, since tree_shared_initialize() */
	uint64_t misses;
} TreeCacheUsage;

extern void tree_cache_usage(const TreeShared *shared, TreeCacheUsage *inner, TreeCacheUsage *leaves);

/* ------------------------------------------------------------------------------------------------
 * What WAL positions prove.  A leaf's WAL position (epoch, LSN) says how far the WAL went when its last entry was added; where
 * the WAL of an epoch was lost behind some LSN, entries of leaves with a higher one may have no row.
 */

/* Epochs that are judged one by one; those before them by the first. */
#define TREE_WAL_LIMITS_MAX 64

typedef struct TreeWalLimits
{
	uint32_t epoch; /* in use: its positions need no proof */
	uint32_t first; /* epoch that limit[0] is of, and of those before it */
	uint32_t count;
	uint32_t reserved;
	uint64_t limit[TREE_WAL_LIMITS_MAX]; /* by epoch: positions up to this LSN are proven; UINT64_MAX: all */
} TreeWalLimits;

/*
 * Whether the WAL of that epoch went as far as its LSN, and no later start began before it.  Epoch 0: there is
 * none.
 */
static inline bool
tree_wal_position_is_proven(const TreeWalLimits *ends, uint32_t epoch, uint64_t lsn)
{
	uint32_t i = epoch < ends->first ? 0 : epoch - ends->first;

	if (epoch == ends->epoch || epoch == 0)
		return true;
	return i < ends->count && lsn <= ends->limit[i];
}

/* ------------------------------------------------------------------------------------------------
 * A client: one process's connections, scratch memory and slot.
 */
typedef struct TreeClient TreeClient;

typedef struct TreeClientOptions
{
	TreeShared *shared;
	uint32_t slot; /* this process's number, < slots; not used by another live client */
	TreeEnvironment environment;
	/*
	 * Connected, owned by the caller, outlive the client; NULL: environment.connect() makes it on first use.
	 */
	FabricEndpoint *endpoints[TREE_MAX_NODES];
	uint32_t nodes; /* as in the TreeSharedOptions */
	/*
	 * An operation that waits so long, for answers or for a lock, fails (TREE_UNREACHABLE, TREE_TIMED_OUT): all of
	 * its attempts together; after an answer the time is counted anew. 0 = 10 s.
	 */
	uint32_t operation_timeout_ms;
	/*
	 * FabricOptions.silence of the endpoints, for their waits to share that deadline; then now_us() is CLOCK_MONOTONIC.
	 * NULL: each wait of theirs has its own.
	 */
	uint64_t *silence;
	void *(*allocate)(void *argument, size_t bytes); /* memory for handles; NULL: malloc */
	void (*release)(void *argument, void *memory);
	void *allocate_argument;
	/*
	 * Memory that lives as long as `handle`, which allocate() gave; for what handles grow by. NULL:
	 * allocate().
	 */
	void *(*allocate_beside)(void *argument, const void *handle, size_t bytes);
	/* The caller's, which outlives the client and does not change while trees are open; NULL: every WAL position is proven. */
	const TreeWalLimits *ends;
	/*
	 * It reads trees that another instance owns and changes meanwhile (doc/internals/standby.md): nothing is locked, written or completed,
	 * dead marks are ignored, and leaves of its memory nodes are not cached (tree_node_leaves_at_hand()).  Only scans, records and estimates
	 * are for it.
	 */
	bool reader;
} TreeClientOptions;

/* TREE_INVALID, TREE_NO_MEMORY. */
extern TreeStatus tree_client_open(const TreeClientOptions *options, TreeClient **client);
/* Sets the hook that is called at crash points; NULL: none. At any time, also from within it. */
extern void tree_client_crash_points(TreeClient *client, TreeCrashPoint *crash_point);

/*
 * Leaves queues, and resets the channels of indeterminate chains. Safe at process exit and after errors.
 * TREE_UNREACHABLE: that failed at the memory nodes that tree_client_trouble() returns; the caller must not let its
 * transaction commit before they are closed.
 */
extern TreeStatus tree_client_leave(TreeClient *client);

/*
 * Tells the tree that no call of this client is in progress: a call that the comparator or a hook jumped out of has
 * ended. This, or tree_client_rest_inside(), must be called before the next call: until then calls on that tree are
 * refused, and no tree's emptied leaves can be merged.
 */
extern void tree_client_rest(TreeClient *client);

/*
 * How many calls of this client are in progress, one inside of another's comparator or hook; and no more than so many are any more, as
 * an error that was caught jumped out of the others.
 */
extern int tree_client_calls(const TreeClient *client);
extern void tree_client_rest_inside(TreeClient *client, int calls);

/* The same as leaving, and frees the client. */
extern TreeStatus tree_client_close(TreeClient *client);
extern const char *tree_detail(const TreeClient *client);

/* What a memory node had no more of. */
typedef enum TreeFull
{
	TREE_FULL_MEMORY, /* memory */
	TREE_FULL_QUOTA,  /* memory for this tenant */
	TREE_FULL_HOST,   /* room on the file system that the memory lies on */
	TREE_FULL_TREES   /* trees, or trees of this tenant, that there may be */
} TreeFull;

/* Of the TREE_MEMORY_FULL that was returned last. */
extern TreeFull tree_full_by(const TreeClient *client);

/*
 * Opens a memory node that was closed, by a process that has fenced all channels of the instance there and has seen
 * since it is closed, of each process, that it was outside of hold and resume: a hold that begins later sees that it
 * is closed (lock.c). Locks and indeterminate chains of ended processes there are void. `member` is the identity of
 * the node's memory in records from now on; 0: the first word of its UUID.
 */
extern void tree_node_open(TreeClient *client, uint32_t node, uint64_t member);

/*
 * The connection to this memory node, which was fenced since it was made, is not used any more; the caller
 * disconnects it.  The next use connects anew.  Nothing may be in progress.
 */
extern void tree_client_reconnect(TreeClient *client, uint32_t node);

/* Connects now, if there is no connection yet. TREE_UNREACHABLE. */
extern TreeStatus tree_client_connect(TreeClient *client, uint32_t node);

/*
 * Until the client connects to this memory node, or fails to, it may use what the cache of leaves has of it: the caller knows that the
 * memory node is there, and that this instance has it.
 */
extern void tree_client_vouch(TreeClient *client, uint32_t node);
/* The capabilities agreed with a memory node; NULL: it is not connected. */
extern const FabricCapabilities *tree_client_capabilities(const TreeClient *client, uint32_t node);

/*
 * The memory nodes, a bit for each, that did not answer or refused since the last call of this function.  To be called after
 * an operation that failed: the next one has its whole operation_timeout_ms again.
 */
extern uint32_t tree_client_trouble(TreeClient *client);
extern void tree_client_counters(const TreeClient *client, TreeCounters *counters);
extern const char *tree_status_name(TreeStatus status);

#endif /* SHERMAN_CLIENT_H */
