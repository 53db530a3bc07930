/*
 * tree.h
 *		The index: a B-link tree whose nodes live in the memory of memory nodes.
 *
 * This is the header that am/, the tests and the benchmarks include, with key.h and client.h. tree/README has the
 * algorithm, node.h the layout. Nothing here prints, exits, jumps or uses PostgreSQL; every call returns a
 * TreeStatus, and tree_detail() holds one line about the last error.
 */
#ifndef SHERMAN_TREE_H
#define SHERMAN_TREE_H

#include "client.h"
#include "key.h"

/* ------------------------------------------------------------------------------------------------
 * The directory of trees at a memory node (served by msd).
 */
typedef struct TreeRecord
{
	uint64_t tree;        /* id, never reused while the memory lives; random high part */
	uint64_t cluster[2];  /* owner instance */
	uint32_t database;    /* hints and identity of PostgreSQL's side */
	uint32_t index;       /* hint only */
	uint64_t creator;     /* full transaction id of the creator */
	uint64_t root;        /* pointer of the root (node.h) */
	uint64_t nonce;       /* lineage */
	uint64_t removal_lsn; /* last_removal */
	uint32_t removal_epoch;
	uint32_t mutated_epoch; /* last epoch in which it was changed, 0 = never */
	uint32_t flags;         /* TREE_RECORD_* */
	TreeFormat format;
	/*
	 * All rows whose entries were removed in removal_epoch were deleted by transactions before this one: the lower half of its
	 * number, as transactions are compared modulo 2^32.  It takes no room: release 1.0 left it free.
	 */
	uint32_t removal_horizon;
	uint64_t bytes; /* of extents */
	uint32_t extents;
	/* The first epoch whose leaves may still be unverified; 0 = none. The healer finds trees by it. */
	uint32_t unverified_epoch;
	/*
	 * For each memory node that the tree has extents on, or may have soon, the identity of its memory as
	 * tree_node_open() has it; else 0.
	 */
	uint64_t members[TREE_MAX_NODES];
} TreeRecord;

/* The memory node that a tree's root lies on, and so its record. */
extern uint32_t tree_home(uint64_t root);

#define TREE_RECORD_BROKEN 0x01u /* never to be used again: only its memory is waited for */
#define TREE_RECORD_BUILT 0x02u  /* the build has ended */
#define TREE_RECORD_HEALED 0x04u /* not stored; in a change: no leaf is unverified */
#define TREE_RECORD_REPLICATED                                                                               \
	0x08u /* in tree_create(): the tree is to have a replica at another memory node */
/* The number of the memory node that has the copies, and 1; 0: there are none. */
#define TREE_RECORD_REPLICA_SHIFT 16
#define TREE_RECORD_REPLICA_MASK 0x3fu

typedef struct TreeNodeStatus
{
	/* Of the memory node, for local clients; across the network the tenant's own, bytes_total with what is free for it now. */
	uint64_t bytes_total;       /* node memory that may be granted */
	uint64_t bytes_used;        /* granted */
	uint64_t bytes_quarantined; /* freed, not yet given again */
	uint64_t uuid[2];
	uint64_t generation;
	uint32_t trees;
	uint32_t channels;
	uint64_t epoch;        /* last epoch opened by this cluster, 0 = none */
	uint64_t tenant_bytes; /* granted to this cluster's tenant */
	uint64_t tenant_quota; /* the most that it may have; 0 = no quota */
	uint32_t epoch_clean;  /* whether that epoch was closed clean */
	uint32_t draining;
} TreeNodeStatus;

/*
 * Makes a tree on one of the open memory nodes: record, first extent, empty root leaf.  `record` gives
 * database, index, creator, format and cluster, and takes tree, root and members.  With TREE_RECORD_REPLICATED
 * another open memory node gets a copy of the record, and of each node that is written by handles for which
 * tree_set_replica() is called.  TREE_MEMORY_FULL, TREE_UNREACHABLE (also: there is no other one), TREE_FENCED.
 */
extern TreeStatus tree_create(TreeClient *client, TreeRecord *record);

/* The memory node that has a copy of each node of the tree; false: none has. */
static inline bool
tree_record_replica(const TreeRecord *record, uint32_t *node)
{
	uint32_t copy = record->flags >> TREE_RECORD_REPLICA_SHIFT & TREE_RECORD_REPLICA_MASK;

	*node = copy - 1;
	return copy != 0;
}

/*
 * Frees a tree: its extents go to quarantine and then back.  Idempotent.  The caller has proved it dead.
 * Extents on memory nodes that are away stay: tree_share_list() finds them later.
 */
extern TreeStatus tree_drop(TreeClient *client, uint64_t tree, uint32_t home);

/* Reads a record, with the bytes and extents at all memory nodes that can be asked. */
extern TreeStatus tree_record_read(TreeClient *client, uint64_t tree, uint32_t home, TreeRecord *record);
/* The same as the home alone has it, by one call: bytes and extents are its own. */
extern TreeStatus tree_record_at_home(TreeClient *client, uint64_t tree, uint32_t home, TreeRecord *record);
/*
 * Changes the record at the home of record->root; fields changed: flags (or), mutated_epoch, removal_* (each rises), nonce,
 * unverified_epoch (the first one stays) and members where not 0.  TREE_INVALID: another memory node is a member in that place.
 */
extern TreeStatus tree_record_update(TreeClient *client, const TreeRecord *record);

/* The same for the record's copy, which is to be changed first; where the home is given up, alone. */
extern TreeStatus tree_record_update_at(TreeClient *client, uint32_t node, const TreeRecord *record);

/*
 * The i-th tree record of this cluster at node; TREE_END behind the last. The order is stable between drops.
 */
extern TreeStatus tree_record_list(TreeClient *client, uint32_t node, uint32_t *position, TreeRecord *record);

/*
 * The same for shares: extents at node of trees whose record is at another memory node.  Of the record only
 * tree, bytes, extents and members count, where members names the home and no other.
 */
extern TreeStatus tree_share_list(TreeClient *client, uint32_t node, uint32_t *position, TreeRecord *record);
/* Frees a share whose tree is gone. */
extern TreeStatus tree_share_drop(TreeClient *client, uint32_t node, uint64_t tree);
extern TreeStatus tree_node_status(TreeClient *client, uint32_t node, TreeNodeStatus *status);
/* The same over a connection that belongs to no client, with a data channel or without. */
extern FabricStatus tree_node_probe(FabricEndpoint *endpoint, TreeNodeStatus *status);

/* Epochs of this cluster at a node: opens epoch `epoch`, or closes it clean. Idempotent. */
extern TreeStatus tree_epoch_open(TreeClient *client, uint32_t node, uint64_t epoch);
extern TreeStatus tree_epoch_close(TreeClient *client, uint32_t node, uint64_t epoch);

/* ------------------------------------------------------------------------------------------------
 * An open tree.
 */
typedef struct Tree Tree;

/*
 * `compare` may be NULL when the format is lossless and all bounds are exact. TREE_NO_MEMORY, TREE_INVALID.
 */
extern TreeStatus tree_open(TreeClient *client, uint64_t tree, uint64_t root, const TreeFormat *format,
                            TreeCompare compare, void *argument, Tree **handle);
extern void tree_close(Tree *handle);

/* ------------------------------------------------------------------------------------------------
 * Copies: each node of a tree twice, at its home and at one other memory node (doc/internals/replicas.md).
 */
typedef enum TreeReplicaState
{
	TREE_REPLICAS_NONE,
	TREE_REPLICAS_BOTH,  /* written to both; read, locked and allocated at the home */
	TREE_REPLICAS_FIRST, /* the copy is given up: the home alone is the tree */
	TREE_REPLICAS_SECOND /* the home is given up: the copy alone is the tree */
} TreeReplicaState;

/*
 * Must be called for each handle of a tree that was made with a replica, before anything else, with the state on
 * durable record. The instance knows the state from its first handle on, and no handle returns to TREE_REPLICAS_BOTH.
 * `doubt`: the two may differ, as the instance before this one ended while it wrote. TREE_NO_MEMORY, TREE_INVALID.
 *
 * A reader's handle (TreeClientOptions.reader) reads the half that it is told here, for ever: the copy where the home is given up, else the
 * home. What was cached in its instance before the first handle was told that one is given up is not used any more.
 */
extern TreeStatus tree_set_replica(Tree *handle, uint32_t node, TreeReplicaState state, bool doubt);
extern TreeReplicaState tree_replicas_get(const Tree *handle);

/*
 * Gives one of the two up, for all handles of the instance and for ever; the caller has put that on durable record
 * before. The replica (TREE_REPLICAS_FIRST): at any time. The home (TREE_REPLICAS_SECOND): only if it is closed
 * (tree_node_close()), no process has been inside hold and resume since, and there is no doubt that the two are
 * equal.
 */
extern void tree_replicas_set(Tree *handle, TreeReplicaState state);

/* Whether the copies may differ for another reason than a write in progress. */
extern bool tree_replicas_in_doubt(const Tree *handle);
/*
 * The same of a tree that this process need not have open. `returned`: as it would be if the home were opened again now, if it is
 * closed.
 */
extern bool tree_replicas_doubted(TreeShared *shared, uint64_t tree, bool returned);

/*
 * Whether there is a doubt about trees that the instance has no state of any more. It counts for each such tree until
 * it is recorded elsewhere; then `lost` is passed to tree_replicas_keep_doubts(), once that is done for all trees.
 * One caller at a time.
 */
extern bool tree_replicas_lost_doubts(TreeShared *shared, uint64_t *lost);
extern void tree_replicas_keep_doubts(TreeShared *shared, uint64_t lost);
/* A doubt that was recorded elsewhere is not recorded there any more. */
extern void tree_replicas_lose_doubt(TreeShared *shared);

typedef struct TreeReplicaCounts
{
	uint64_t nodes;   /* compared */
	uint64_t differ;  /* of them, under their lock */
	uint64_t written; /* copies written anew from the home */
} TreeReplicaCounts;

/*
 * Compares each node with its replica, at the same time as anything but merges, which are put off; with `repair`,
 * replicas that differ are rewritten, and earlier doubts are settled. As tree_check(); TREE_INVALID: not both are in
 * use.
 */
extern TreeStatus tree_replicas_compare(Tree *handle, bool repair, TreeReplicaCounts *counts);

/* The (epoch, LSN) that an insert leaves on its leaf; LSN already with its slack. */
typedef struct TreeWalPosition
{
	uint32_t epoch;
	uint64_t lsn;
} TreeWalPosition;

/* Raises a position to a younger one. */
static inline void
tree_wal_position_raise(TreeWalPosition *position, uint32_t epoch, uint64_t lsn)
{
	if (epoch > position->epoch || (epoch == position->epoch && lsn > position->lsn))
		*position = (TreeWalPosition){.epoch = epoch, .lsn = lsn};
}

/*
 * Inserts one entry; returns after the memory node's acknowledgment (I-P2). Inserting the same (key image, TID) again
 * adds nothing, and sets *hit. After TREE_MEMORY_FULL, TREE_STOPPED, TREE_UNREACHABLE, TREE_FENCED, TREE_DAMAGED,
 * TREE_TIMED_OUT the entry is not there, or is there and harmless (UNREACHABLE, if a chain stayed indeterminate).
 */
extern TreeStatus tree_insert(Tree *handle, const TreeKey *key, const TreeWalPosition *wal, bool *hit);

/*
 * Inserts `count` entries, in any order; each as tree_insert() does.  The keys' images stay valid and unchanged until the return.
 * Returns after the memory nodes have acknowledged all of them (I-P2).  On an error some of them may be there, which is harmless,
 * as with tree_insert(); the call may be repeated with the same entries.
 */
extern TreeStatus tree_insert_many(Tree *handle, const TreeKey *keys, uint32_t count,
                                   const TreeWalPosition *wal);

/*
 * Callbacks of tree_insert_alone() and tree_insert_many_alone(). begin() is called under the leaf's lock, once the leaf has
 * shown that the key is new; if it returns false nothing is inserted. If it returns true, end() is called with the same key when
 * the lock is released, with the entry acknowledged or not written. Between the two neither the comparator nor any other hook
 * runs, but begin() and end() for other keys of the same call may. Neither may wait, fail or jump away.
 */
typedef struct TreePermit
{
	bool (*begin)(void *argument, const TreeKey *key);
	void (*end)(void *argument, const TreeKey *key);
	void *argument;
} TreePermit;

/*
 * The same for a key that may have one entry only, at no extra cost: *alone is set if the leaf showed under its lock
 * that no other entry, dead-marked ones included, has its normalized key, so that none has its key. If not, or if
 * that cannot be seen in one leaf, or if the permit (NULL: there is none) is not given, nothing is inserted.
 */
extern TreeStatus tree_insert_alone(Tree *handle, const TreeKey *key, const TreeWalPosition *wal,
                                    const TreePermit *permit, bool *hit, bool *alone);

/*
 * The order of two keys of the tree's format as far as integers decide, then of their TIDs: < 0, 0, > 0.
 */
extern int tree_key_order(const Tree *handle, const TreeKey *first, const TreeKey *second);

/*
 * tree_insert_alone() of `count` keys that ascend by tree_key_order(), many of them together. They are inserted in their order, up to
 * the first one for which tree_insert_alone() would insert nothing: *done says how many that are, and none behind is there, unless
 * a chain was lost.  The keys' images stay valid and unchanged until the return. On an error the first *done are there, and others
 * may be; then the call may be repeated with those behind. TREE_INVALID also: the keys do not ascend.
 */
extern TreeStatus tree_insert_many_alone(Tree *handle, const TreeKey *keys, uint32_t count,
                                         const TreeWalPosition *wal, const TreePermit *permit,
                                         uint32_t *done);

/*
 * For callers that lock predicates by leaf (predicate.c has the proof): the address of the leaf that the last
 * tree_insert() with this handle put its entry into, or found it in.  It may have been split since.
 */
extern uint64_t tree_inserted_leaf(const Tree *handle);

/*
 * Called in a split by tree_insert(), before leaf `to` can be reached: it gets a part of the keys of `from`, whose locks must
 * cover it from now on; and in a merge, before `to` gets all the keys of `from`.  The hook does not wait, fail or jump.  NULL: no hook, as at first.
 */
typedef void (*TreeSplitHook)(void *argument, uint64_t from, uint64_t to);
extern void tree_on_split(Tree *handle, TreeSplitHook hook, void *argument);

/* ------------------------------------------------------------------------------------------------
 * Scans
 */
typedef enum TreeDirection
{
	TREE_FORWARD,
	TREE_BACKWARD
} TreeDirection;

/*
 * The most leaves that a scan shared by several processes reads ahead at once; it starts with 1 and doubles. A scan
 * of one process goes on doubling.
 */
#define TREE_PREFETCH_MAX 8

/* Entries in one batch at most: cells of a leaf, postings counted by TIDs. */
#define TREE_BATCH_MAX 512

typedef struct TreeScan TreeScan;

typedef struct TreeBatchEntry
{
	uint32_t block;
	uint16_t offset;
	uint16_t cell; /* slot in the leaf's copy, for tree_batch_key(); many entries of a posting have one */
} TreeBatchEntry;

/* A leaf as it was read, for calls that come back to it later: they do nothing if it may be another one by then. */
typedef struct TreeLeafSeen
{
	uint64_t pointer;
	uint64_t generation;
	uint64_t epoch; /* of the tree in this instance: in another one the pointer is not followed (T8) */
} TreeLeafSeen;

/*
 * One leaf's entries within the bounds, in the order of the scan. Owned by the scan, valid until its next
 * call.
 */
typedef struct TreeBatch
{
	int count;
	bool unverified;     /* the leaf's WAL position is not proven: entries may have lost their rows */
	bool marks_void;     /* it has dead marks that are not proven: entries under them are here like others */
	bool whole;          /* no entry of the leaf is left out for a bound, or as it was returned before */
	bool last;           /* the scan ends behind it: tree_scan_next() would return TREE_END */
	TreeWalPosition wal; /* of the leaf: behind the WAL of the rows of its entries, with slack */
	TreeLeafSeen leaf;
	uint64_t right; /* its right sibling, when it was read */
	TreeBatchEntry entries[TREE_BATCH_MAX];
} TreeBatch;

extern TreeStatus tree_scan_open(Tree *handle, TreeScan **scan);
extern void tree_scan_close(TreeScan *scan);

/*
 * What a reader (TreeClientOptions.reader) may lack: the youngest WAL positions of the leaves that it has read by this handle since
 * tree_seen_forget(), scans' leaves ahead and lookups included.
 */
typedef struct TreeSeen
{
	TreeWalPosition added;   /* behind the WAL of the rows of their entries, with slack */
	TreeWalPosition removed; /* of the evidence for what is dead in them, or was removed from them */
} TreeSeen;

extern void tree_seen(const Tree *handle, TreeSeen *seen);
extern void tree_seen_forget(Tree *handle);

/*
 * Begins at `start` (NULL: at the end of the tree where the direction begins) and ends at `stop` (NULL:
 * never); bounds are given in the order of the scan: a forward scan returns entries > start and < stop, a
 * backward scan entries < start and > stop, with side telling whether ties are in.  The bounds are copied,
 * their images and arguments are not: they stay valid until the next seek.
 */
extern TreeStatus tree_scan_seek(TreeScan *scan, TreeDirection direction, const TreeBound *start,
                                 const TreeBound *stop);
/* Behind the seek: the caller will read on to the stop.  So leaves up to there are read together from the first on. */
extern void tree_scan_to_the_stop(TreeScan *scan);

/*
 * For many seeks one after the other: announces where one of the next will start, in the order in which they will come,
 * all in one direction.  *more: another one can be announced before tree_scan_fetch_ahead() reads the leaves of all of them
 * together, `most` at most; what was fetched before is forgotten with the first one.  For callers whose snapshot does not
 * see what is added after the fetch.  Neither moves the scan, but its batch is not valid afterwards.  As tree_scan_next(); a failure loses nothing but time.
 */
extern TreeStatus tree_scan_seek_ahead(TreeScan *scan, TreeDirection direction, const TreeBound *start,
                                       int most, bool *more);
extern TreeStatus tree_scan_fetch_ahead(TreeScan *scan);
/* Whether a seek to this bound, in the order of those that were announced, begins in the leaf that was found last. */
extern bool tree_scan_ahead_reaches(const TreeScan *scan, const TreeBound *start);
/* What was fetched is not used any more: before the scan is used with another snapshot, or for leaves that were healed meanwhile. */
extern void tree_scan_forget_ahead(TreeScan *scan);

/*
 * For scans that will start at these places soon, each between keys that integers tell apart (norm_exact, side is not 0): reads
 * their leaves together into the cache of leaves, as far as they are not there.  Does nothing where leaves are not kept.  A failure
 * loses nothing but time.  TREE_NO_MEMORY, and as tree_scan_next().
 */
extern TreeStatus tree_prefetch(Tree *handle, const TreeBound *bounds, uint32_t count);

typedef struct TreeFound
{
	uint32_t block;
	uint16_t offset;
	bool unverified; /* as in TreeBatch, or its leaf's marks are void */
} TreeFound;

/*
 * Finds an entry with this key; of several it does not matter which.  TREE_END: there is none.  Where the entry cache knows in which
 * cell the key was, one line of 64 bytes is read, and the leaf only if that was wrong (SMART's speculative lookup, speculate.c).
 * The scan is the one that looks otherwise: its place is another one afterwards.  With a hook of tree_scan_on_leaf(), or in a
 * tree with copies, nothing is guessed.  As tree_scan_next().
 */
extern TreeStatus tree_find(TreeScan *scan, const TreeKey *key, TreeFound *found);

/* Lines that a client's tree_find() has read, and those that had the key. */
typedef struct TreeGuesses
{
	uint64_t tried;
	uint64_t right;
} TreeGuesses;

extern void tree_client_guesses(const TreeClient *client, TreeGuesses *guesses);

/* Leaves that lookups and scans of a client wanted (TreeSharedOptions.leaf_cache_bytes). */
typedef struct TreeLeafCounts
{
	uint64_t hits;      /* by an image, without a round trip */
	uint64_t misses;    /* read */
	uint64_t admitted;  /* of these, and got a frame */
	uint64_t refreshed; /* images that were brought up to date */
} TreeLeafCounts;

extern void tree_client_leaf_counts(const TreeClient *client, TreeLeafCounts *counts);

/* Lookups of a client that wanted an inner node which is not in the cache (TreeTechniques.offload). */
typedef struct TreeOffloads
{
	uint64_t calls;   /* made for them */
	uint64_t found;   /* of these: told where the leaf is */
	uint64_t brought; /* of these: with the leaf */
	uint64_t bytes;   /* of their answers */
} TreeOffloads;

extern void tree_client_offloads(const TreeClient *client, TreeOffloads *offloads);

/* Instead of a leaf's address: all leaves of the tree. */
#define TREE_LEAF_ALL 0

/*
 * Called before the scan reads a leaf, also one read ahead, with its address, at least once; TREE_LEAF_ALL as well when
 * splits go on that the scan cannot wait for.  Nothing is held, and the hook may jump.  NULL: no hook, as at first.
 */
typedef void (*TreeLeafHook)(void *argument, uint64_t leaf);
extern void tree_scan_on_leaf(TreeScan *scan, TreeLeafHook hook, void *argument);

/* The next leaf that has entries; TREE_END behind the last one. */
extern TreeStatus tree_scan_next(TreeScan *scan, const TreeBatch **batch);

/*
 * For many keys one after the other, of which several may lie in a leaf: tree_scan_load() reads the leaf that tree_scan_next() will
 * take its entries out of, or the first part of, if it is split meanwhile and read anew; TREE_END: there is none.  Then tree_scan_reaches() tells
 * whether what begins at this bound, behind the start, begins before the end of that leaf, or of what tree_scan_take() took (false also where that
 * would take a round trip); and tree_scan_stop_at() moves the stop further on, as tree_scan_seek() sets it.  The batch before is not valid
 * afterwards.  As tree_scan_next().
 */
extern TreeStatus tree_scan_load(TreeScan *scan);
extern bool tree_scan_reaches(const TreeScan *scan, const TreeBound *bound);
extern void tree_scan_stop_at(TreeScan *scan, const TreeBound *stop);

/*
 * A place between two leaves where a scan may go on: plain bytes, of use to every process of the instance
 * as long as the tree is there, whatever is split meanwhile.
 */
typedef struct TreeScanPosition
{
	uint64_t want[TREE_NORM_WORDS + 1]; /* fence there */
	uint64_t left;                      /* pointer of the leaf that ends there, and its right sibling */
	uint64_t right;
	uint64_t parent; /* pointer of the level-1 node, 0 = not known: a hint, as is the next one */
	uint64_t epoch;  /* of the tree, when these pointers were read */
	uint32_t depth;  /* leaves to read ahead */
	bool ended;      /* nothing follows: not to be gone on from */
	uint8_t padding[3];
} TreeScanPosition;

/*
 * For one scan done by several processes, each with a TreeScan of its own. The process whose turn it is takes the
 * leaves that the next chain reads, one to TREE_PREFETCH_MAX, for itself: tree_scan_next() then returns these leaves'
 * entries and no others before its TREE_END, while *behind lets another process go on behind them already. So each
 * entry comes once, from one of them, and to each of them in order. To be called after tree_scan_seek(), which begins
 * the scan, or tree_scan_resume(). Calls the comparator.
 */
extern TreeStatus tree_scan_take(TreeScan *scan, TreeScanPosition *behind);
/* tree_scan_stop_at() of what was taken; *behind learns whether anything follows. */
extern void tree_scan_take_to(TreeScan *scan, const TreeBound *stop, TreeScanPosition *behind);

/*
 * As tree_scan_seek(), at a position that a scan with the same direction and stop handed on.  For
 * tree_scan_take().  TREE_INVALID: nothing follows there.
 */
extern TreeStatus tree_scan_resume(TreeScan *scan, TreeDirection direction, const TreeBound *stop,
                                   const TreeScanPosition *position);

/*
 * The key of entry i of the batch; the image points into the scan's memory and is valid as long as the batch.
 * TREE_NOT_FOUND: the entry was removed meanwhile, and its overflow key with it.
 */
extern TreeStatus tree_batch_key(TreeScan *scan, const TreeBatch *batch, int i, TreeKey *key);

/* The fields of a TreeKey for an entry, in the scan's own memory. */
typedef struct TreeKeyView
{
	const uint64_t *norm; /* the format's norm_bytes, as TreeKey.norm */
	const uint8_t *image; /* NULL: there is none, or it lies out of line and image_bytes is not 0 */
	uint16_t image_bytes;
	bool high;
} TreeKeyView;

/*
 * Where the keys of all entries of the batch lie, in its order: nothing is copied, and nothing fetched that lies out of line.
 * `views` has room for batch->count; they are valid as long as the batch.
 */
extern void tree_batch_views(const TreeScan *scan, const TreeBatch *batch, TreeKeyView *views);

/*
 * Reads the leaf's header once more (64 bytes). *unchanged: all that the batch holds is still in the leaf; then no removal of
 * any of it had been acknowledged when this was called.  Otherwise entries may have been removed, moved, or neither.
 * TREE_UNREACHABLE, TREE_FENCED, TREE_STOPPED.
 */
extern TreeStatus tree_batch_unchanged(TreeScan *scan, const TreeBatch *batch, bool *unchanged);

/* ------------------------------------------------------------------------------------------------
 * Dead marks: entries that a scan found dead to everybody. Scans do not return them; they leave their leaf by a rewrite, once
 * the WAL that makes them dead is known to be durable (I-P4).
 */

/* An entry of a batch. */
typedef struct TreeDead
{
	uint32_t block;
	uint16_t offset;
	uint16_t cell;
} TreeDead;

/*
 * Marks entries of the batch that was read from `leaf`; none if that has another generation by now, as then an entry may be a
 * new one of the same TID, or if leaves have left the tree since.  None either in a leaf whose WAL positions are not proven.  `wal`: the epoch, and an LSN not before the end of the WAL that makes them dead.  *marked counts.
 * As tree_insert().
 */
extern TreeStatus tree_mark_dead(Tree *handle, const TreeLeafSeen *leaf, const TreeDead *dead, int count,
                                 const TreeWalPosition *wal, int *marked);

/*
 * The WAL up to this LSN is durable, and the record's removal_lsn says that entries were removed which it made dead:
 * from now on rewrites by this handle drop entries with marks up to there.  It never goes back.
 */
extern void tree_removal_proven(Tree *handle, const TreeWalPosition *proven);

/* Slots of a leaf at most. */
#define TREE_FULL_LEAF_MAX 64

/* A copy of a leaf that an insert found full. */
typedef struct TreeFullLeaf
{
	TreeLeafSeen leaf;
	uint64_t dead_lsn; /* the highest of its dead marks */
	uint32_t dead_epoch;
	int count;      /* of slots */
	int marked;     /* dead-marked entries that are not proven */
	int duplicates; /* live entries whose key another live entry has, too */
	struct
	{
		uint32_t block;
		uint16_t offset;
		bool live; /* else dead-marked, or none */
		bool duplicate;
		bool newest; /* no entry of its key has a higher TID: probably the row's last version */
		bool remove; /* by the hook: the entry is dead, and that is proven (tree_removal_proven()) */
	} entries[TREE_FULL_LEAF_MAX];
} TreeFullLeaf;

/*
 * Called by tree_insert() before it splits a full leaf that has dead-marked entries which are not proven, or any (`always`). True:
 * marks were proven, or entries are to be removed: those go if the leaf still has its generation.  Nothing is held, and the
 * hook may jump; of calls with this handle it may make tree_leaf_unchanged() and tree_removal_proven().  NULL: no hook.
 */
typedef bool (*TreeFullHook)(void *argument, TreeFullLeaf *leaf);
extern void tree_on_full(Tree *handle, TreeFullHook hook, void *argument, bool always);

/* Whether the leaf has its generation still; false also if that cannot be found out. */
extern bool tree_leaf_unchanged(Tree *handle, const TreeLeafSeen *leaf);

/* ------------------------------------------------------------------------------------------------
 * Healing: the entries of unverified leaves, whose WAL positions are not proven, are looked up one by one; then the
 * leaves are verified.
 */

/* tree_scan_next() returns such leaves also when they have no entries, until the scan is given back or closed. */
extern void tree_scan_unverified(TreeScan *scan, bool wanted);

/* The scan is another caller's: it has no hook, has read nothing ahead, and does not return what has no entries. */
extern void tree_scan_renew(TreeScan *scan);

/*
 * Every entry of the leaf that was read has been looked up: those in `gone` have no row and are removed, the others
 * stay, and the leaf gets the WAL position `wal`. Entries that were added since are not touched. *healed: false if it
 * has another generation by now, or leaves have left the tree since, and nothing was done. As tree_insert().
 */
extern TreeStatus tree_heal_leaf(Tree *handle, const TreeLeafSeen *leaf, const TreeDead *gone, int count,
                                 const TreeWalPosition *wal, bool *healed);

/* ------------------------------------------------------------------------------------------------
 * Vacuum: walks the leaves from left to right; entries only move right, and behind a merge it begins anew, so each entry that was
 * there at the start is met at least once.
 */
typedef struct TreeVacuum TreeVacuum;

/* Whether the entry with this TID is dead. Called without a lock, may not jump. */
typedef bool (*TreeIsDead)(void *argument, uint32_t block, uint16_t offset);

typedef struct TreeVacuumCounts
{
	uint64_t leaves;    /* leaves visited */
	uint64_t entries;   /* live entries left behind */
	uint64_t removed;   /* entries removed */
	uint64_t rewritten; /* leaves that they were removed from */
	uint64_t empty;     /* leaves that hold no entry now */
	uint64_t sparse;    /* leaves with entries that the one before them has room for (merge_fold.c) */
} TreeVacuumCounts;

extern TreeStatus tree_vacuum_open(Tree *handle, TreeVacuum **vacuum);
/* The next leaves, one or some; TREE_END behind the last. Nothing is held between calls. `is_dead` NULL: only count. */
extern TreeStatus tree_vacuum_next(TreeVacuum *vacuum, TreeIsDead is_dead, void *argument,
                                   TreeVacuumCounts *counts);
extern void tree_vacuum_close(TreeVacuum *vacuum);

/* ------------------------------------------------------------------------------------------------
 * Merging: takes the leaves that a vacuum's walk saw empty or sparse, and inner nodes of few children above them, out of the tree, to be
 * used again (merge.c, merge_walk.c). Only by the one instance that uses the tree. Beside anything: it waits for no scan, and holds up calls for as long as the children
 * of one node take.
 */
typedef struct TreeMerge TreeMerge;

typedef struct TreeMergeCounts
{
	uint64_t leaves;      /* taken out */
	uint64_t folded;      /* of these: with entries, which the one before them has now */
	uint64_t inner_nodes; /* taken out */
	uint64_t bytes;       /* of both */
	uint64_t missed;      /* parents left as they are, as calls in progress took too long: for another time */
} TreeMergeCounts;

/* `vacuum`: of the same handle, its walk is over; it is closed after the merge. */
extern TreeStatus tree_merge_open(Tree *handle, const TreeVacuum *vacuum, TreeMerge **merge);
/* The children of one node; TREE_END behind the last. Nothing is held between calls. Tells the hook of tree_on_split(). */
extern TreeStatus tree_merge_next(TreeMerge *merge, TreeMergeCounts *counts);
extern void tree_merge_close(TreeMerge *merge);
/*
 * Examines a piece of the memory in the tree's extents that earlier incarnations of this instance have taken, and
 * keeps what is free for new nodes; adds its size to *bytes. TREE_END: nothing is left to examine, or the instance is
 * not alone; in each incarnation a place is examined once, and only before the first merge. TREE_UNREACHABLE and
 * others: a later call continues there. A tree that needs another chunk examines some pieces by itself.
 */
extern TreeStatus tree_reclaim_next(Tree *handle, uint64_t *bytes);
/* A walk over a tree's extents; zeroed at its begin. */
typedef struct TreeGive
{
	uint64_t bytes;       /* given back so far */
	uint64_t missed;      /* extents left as they are, as calls in progress took too long */
	uint32_t memory_node; /* that is looked at */
	uint64_t extent;      /* that is looked at next; 0: of the next memory node */
	uint64_t newer;       /* the one that names it as the one before it, and its number */
	uint64_t number;
	uint32_t gives; /* how many there were: others that give have the walk begin anew */
} TreeGive;

/*
 * Gives extents in which every node is free back to their memory nodes, as long as more than a quarter of a tree's memory is free there;
 * some looks, or one extent, a call. TREE_END: that was all, or the instance is not alone, or the tree has copies.  The newest extent
 * of each memory node stays, and the one with the root.  A memory node where earlier incarnations' nodes were not looked for is left out
 * (tree_reclaim_next(), or a merge).
 */
extern TreeStatus tree_give_next(Tree *handle, TreeGive *give);
/* Bytes of nodes that wait to be used again. */
extern uint64_t tree_freed_bytes(const Tree *handle);

/* ------------------------------------------------------------------------------------------------
 * Bulk load of an empty tree that no other process uses yet, in key order. A process that dies in it leaves a tree
 * that can only be dropped: its root may be torn.
 */
typedef struct TreeBulk TreeBulk;

extern TreeStatus tree_bulk_open(Tree *handle, const TreeWalPosition *wal, TreeBulk **bulk);
/* Says beforehand how many entries come, more or less: then memory is asked for in fewer pieces, no larger than these take. */
extern void tree_bulk_expect(TreeBulk *bulk, uint64_t entries);
/* Keys strictly ascending in (key, TID). */
extern TreeStatus tree_bulk_add(TreeBulk *bulk, const TreeKey *key);
/* Writes the remaining leaves, the inner levels and, last, the root. The bulk is freed in any case. */
extern TreeStatus tree_bulk_finish(TreeBulk *bulk);
extern void tree_bulk_abandon(TreeBulk *bulk);

/* ------------------------------------------------------------------------------------------------
 * Looking inside
 */
typedef struct TreeStatistics
{
	uint32_t height; /* levels, 1 = the root is a leaf */
	uint64_t leaves;
	uint64_t inner_nodes;
	uint64_t entries;        /* live */
	uint64_t dead;           /* dead marks */
	uint64_t node_bytes;     /* leaves and inner nodes */
	uint64_t overflow_bytes; /* overflow keys */
	uint64_t extent_bytes;   /* memory taken from memory nodes */
} TreeStatistics;

/*
 * Estimates nodes, height and entries from the shared tree state, without a control call: an instance's first one
 * reads the root and the nodes down to a leaf, and later ones only those nodes to the first leaf that are not cached.
 * extent_bytes is 0 until a call has returned it to this instance. TREE_UNREACHABLE, TREE_FENCED, TREE_STOPPED,
 * TREE_TIMED_OUT, TREE_DAMAGED.
 */
extern TreeStatus tree_estimate_nodes(Tree *handle, TreeStatistics *statistics);
/* The same with extent_bytes, which takes a call for the record if no call has returned it yet. */
extern TreeStatus tree_estimate(Tree *handle, TreeStatistics *statistics);

/* Bytes of nodes, full ones, for each cell in a tree of this format, which is one that trees can have. */
extern double tree_bytes_for_cell(const TreeFormat *format);

/* One broken invariant; the walk goes on. May jump. */
typedef void (*TreeCheckReport)(void *argument, const char *message);
/* One live entry, in key order; `unverified`: of a leaf whose WAL position is not proven. May jump. */
typedef void (*TreeCheckEntry)(void *argument, const TreeKey *key, bool unverified);

/*
 * Verifies every invariant that a quiet or busy tree keeps: header, stamps, sums, fences tiling each level,
 * order inside and between leaves (with the comparator), right links, parents' separators byte-equal to
 * fences, no TID twice in one leaf, overflow keys matching their hashes.  *problems counts what was
 * reported.
 */
extern TreeStatus tree_check(Tree *handle, TreeCheckReport report, TreeCheckEntry entry, void *argument,
                             TreeStatistics *statistics, uint64_t *problems);

/* The tree's, over all processes, since the last reset. */
extern void tree_counters(const Tree *handle, TreeCounters *counters);
/* Adds what this handle has counted by itself so far to the tree's. */
extern void tree_count_flush(Tree *tree);
/*
 * Sets the counters of a tree to zero, at `now` by the caller's clock, which is not 0.  What handles have counted by themselves comes
 * later (tree_count_flush()).  No effect where the instance has no state of the tree.
 */
extern void tree_counters_reset(TreeShared *shared, uint64_t tree, uint64_t now);
/* When that was done last in this run of the instance; 0: never. */
extern uint64_t tree_counters_reset_time(TreeShared *shared, uint64_t tree);

#endif /* SHERMAN_TREE_H */
