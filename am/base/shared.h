/*
 * shared.h
 *		Shared by the parts of am/ that deal with the instance: the struct in shared memory, the table of trees.
 *		Callback files (scan.c, insert.c, ...) do not need it. state_file.h has what outlives a run.
 *
 * Who writes what: recovery.c the verdict about the last end, workers.c the fields of the memory node and of
 * the launcher, collector.c those of the collector.  Fields without a note are protected by `lock`; `changed`
 * is broadcast when somebody may wait for the change.
 */
#ifndef SHERMAN_SHARED_H
#define SHERMAN_SHARED_H

#include "am/base/sherman.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"

#include "am/base/state_file.h"

/*
 * Words of the LOCKS region that the local lock table covers; the launcher checks that the memory node has as
 * many.
 */
#define SHERMAN_LOCK_WORDS 16384

/*
 * The embedded node's control socket, below the data directory, which is every process's working directory.
 */
#define SHERMAN_SOCKET "pg_dynshmem/sherman.socket"

/* Its snapshot: neither backups nor pg_rewind copy it, and a server that starts leaves it alone. */
#define SHERMAN_SNAPSHOT "pg_dynshmem/sherman.snapshot"

/* Our lightweight locks. */
typedef enum ShermanLock
{
	SHERMAN_LOCK_SHARED,		/* ShermanShared */
	SHERMAN_LOCK_TREES,			/* table of trees */
	SHERMAN_LOCK_REBUILDS,		/* table of indexes to rebuild */
	SHERMAN_LOCK_REPLICAS,		/* replicas.c: shared to give a half up, exclusive to admit a memory node */
	SHERMAN_LOCKS
} ShermanLock;

/* Of one memory node, or of all: then the best of them. */
typedef enum ShermanPhase
{
	SHERMAN_PHASE_NONE,			/* no memory node is configured, or pg_upgrade runs this server */
	SHERMAN_PHASE_ATTACHING,	/* at the start: not attached yet, and awaited */
	SHERMAN_PHASE_ATTACHED,
	SHERMAN_PHASE_AWAY			/* the memory node may not be used until the launcher has attached again */
} ShermanPhase;

/* Bytes of a sentence about a failure. */
#define SHERMAN_FAILURE_BYTES 320

/* One process: on a line of its own, for it is written at each operation that locks. */
typedef struct ShermanSlot
{
	pg_atomic_uint32 busy;		/* between hold and resume: read by operations_have_ended(), which says how */
	pg_atomic_uint32 connected; /* it has a client */
	pg_atomic_uint32 alone_in;	/* database in which its command wants no worker of ours; InvalidOid = none */
	pg_atomic_uint32 measured;	/* segment where workers of its statement tell what they have moved (explain.c); 0 = none */
	char		padding[PG_CACHE_LINE_SIZE - 4 * sizeof(pg_atomic_uint32)];
} ShermanSlot;

/*
 * Parts that the keys of all unique indexes fall into, by hashes: an index's into so many of them that two sessions seldom meet in one, and
 * indexes into groups of them, so that a session that adds many keys of one meets few that check keys of another.
 */
#define SHERMAN_KEY_PARTS 16384
#define SHERMAN_KEY_PARTS_OF_INDEX 256

/* The users of keys of one part (key_parts.c). */
typedef struct ShermanKeyPart
{
	pg_atomic_uint32 adding;	/* rows without a key lock */
	pg_atomic_uint32 checking;	/* rows with one */
} ShermanKeyPart;

/* Indexes share the turns of their scan barriers by a hash: so many that two seldom do. */
#define SHERMAN_BARRIERS 1024

/* Databases share horizons by a hash: those that do tell standbys of more than they have to. */
#define SHERMAN_HORIZONS 64

/* ShermanNode.suspected */
typedef enum ShermanSuspicion
{
	SHERMAN_UNSUSPECTED,
	SHERMAN_SUSPECTED,			/* a session could not connect: the launcher is to check */
	SHERMAN_LOOKED_AT			/* the launcher does so */
} ShermanSuspicion;

/* The memory node at one position, in this run. */
typedef struct ShermanNode
{
	pg_atomic_uint32 phase;		/* ShermanPhase; NONE = the position is free */
	pg_atomic_uint32 suspected; /* ShermanSuspicion */
	pg_atomic_uint32 gone;		/* it was away for so long that its indexes count as broken until it is back */
	pg_atomic_uint32 drained;		/* it is closed, no process has been inside an operation since, and it was waited for
								 * (sherman.failover_after): indexes with a copy may go on without it */
	TimestampTz away_since;		/* the launcher's: 0 = it is not away */
	pg_atomic_uint64 serial;	/* counts attaches in this run: channels of an older one are void */
	uint64		read_serial;	/* the last of them that was a standby's, as a reader; set when it is promoted */
	pg_atomic_uint64 heard_us;	/* when the launcher had its last answer, by a clock that nobody sets; 0: since then a session has doubted that there would be another */
	pg_atomic_uint32 round_trip_us; /* the least of some that the launcher made when it attached it; 0: its memory is mapped */
	uint64		memory[2];		/* identity of its memory; changes only while it is not attached */
	uint64		member;			/* what trees call it; likewise */
	uint32		incarnation;
	char		address[SHERMAN_ADDRESS_BYTES];
} ShermanNode;

/* An entry of sherman.memory_nodes, or the embedded node. */
typedef struct ShermanListedNode
{
	char		address[SHERMAN_ADDRESS_BYTES];
	int			position;		/* -1 = not known: never reached so far */
	FabricStatus status;		/* of the last attempt to attach */
	char		failure[SHERMAN_FAILURE_BYTES]; /* why it failed, "" = it did not */
} ShermanListedNode;

/* What the launcher sends workers into databases for (scheduler.c). */
typedef enum ShermanWorkerKind
{
	SHERMAN_COLLECTOR,			/* which trees no index names any more */
	SHERMAN_HEALER,				/* unverified indexes */
	SHERMAN_REBUILD,			/* which indexes are broken; they are rebuilt */
	SHERMAN_WORKER_KINDS
} ShermanWorkerKind;

/* How a worker run has ended. */
typedef enum ShermanRunEnd
{
	SHERMAN_RUN_REFUSED,		/* it has not begun: a command needed the database for itself, or there was no room for a worker */
	SHERMAN_RUN_LOST,			/* it has not come to its end */
	SHERMAN_RUN_NOTHING,		/* there is nothing in this database that a worker of this kind works on */
	SHERMAN_RUN_AGAIN,			/* it could not look at all there is */
	SHERMAN_RUN_DONE
} ShermanRunEnd;

/* The last worker run of a kind. */
typedef struct ShermanRun
{
	pid_t		pid;			/* 0 = it has ended */
	Oid			database;
	bool		first;			/* see ShermanWorker.run */
	ShermanRunEnd end;
} ShermanRun;

typedef enum ShermanHealPhase
{
	SHERMAN_HEAL_OPENING,
	SHERMAN_HEAL_LEAVES,
	SHERMAN_HEAL_ENDING
} ShermanHealPhase;

/* An index that is being healed, as sherman_stat_progress_heal shows it (heal_progress.c). */
typedef struct ShermanHealShown
{
	pid_t		pid;			/* 0 = free */
	Oid			database;
	Oid			index;
	TimestampTz started;
	pg_atomic_uint32 phase;		/* ShermanHealPhase */
	pg_atomic_uint64 leaves_total;	/* estimate */
	pg_atomic_uint64 leaves;	/* looked at */
	pg_atomic_uint64 healed;
	pg_atomic_uint64 removed;	/* entries */
	pg_atomic_uint64 left;		/* leaves */
} ShermanHealShown;

/* More that heal at once are not shown. */
#define SHERMAN_HEALS_SHOWN 32

/* What has become of sherman_rebuild_all(). */
typedef enum ShermanRebuildAll
{
	SHERMAN_REBUILD_ALL_NOT,
	SHERMAN_REBUILD_ALL_WANTED,
	SHERMAN_REBUILD_ALL_BEGUN	/* the launcher sends workers everywhere */
} ShermanRebuildAll;

typedef struct ShermanShared
{
	/* Atomics, read without the lock */
	pg_atomic_uint64 generation;	/* changes whenever any index's state may have changed */
	pg_atomic_uint32 awaited;	/* 1: it is too early to say that no memory node can be attached */
	pg_atomic_uint32 epoch;		/* in use, 0 before the first attach of this run */

	pg_atomic_uint32 commits_wait;	/* 1: synchronous_commit has commits wait for standbys, if there are to be some, by the launcher's settings */
	pg_atomic_uint32 unfollowed;	/* 1: this server was promoted, and no synchronous standby has the WAL of that: nothing is attached */

	ConditionVariable changed;
	TimestampTz wait_began;		/* when the first session began to wait for the attach, 0 = none yet */

	/* Last end; set before any other process runs */
	ShermanStart start;
	ShermanLocal local;			/* the launcher changes it, and the file with it; before, the startup process */
	XLogRecPtr	start_checkpoint;	/* the control file's, as this run found it */
	ShermanAwaited end_awaited; /* before the launcher runs the startup process changes it */
	bool		promoted;		/* this run began as a standby's */
	XLogRecPtr	promoted_at;	/* the launcher's: behind the first page of history since the promotion; invalid = there is none yet */
	bool		introduced;		/* some memory node was, or may have been, attached by this instance's identity in this run */
	bool		unclean;		/* this epoch does not end clean: replicas may differ, or were not checked yet */
	TreeWalLimits	ends;			/* of all epochs before the one in use; set before that is */

	/* Embedded node */
	pid_t		node_pid;		/* 0 = does not serve */
	uint64		node_serial;	/* counts its starts */
	char		node_failure[256];	/* why it does not serve */
	bool		node_held;		/* it must not: it would overwrite what could not be set aside */

	/* Memory nodes: the launcher changes them */
	bool		embedded;		/* the one is the embedded node */
	TimestampTz attached_since; /* at least one has been attached since then, 0 = none is */
	int			listed_count;
	ShermanListedNode listed[TREE_MAX_NODES];
	ShermanNode node[TREE_MAX_NODES];	/* by position */

	/* Launcher */
	pid_t		launcher_pid;
	Latch	   *launcher_latch;
	uint64		launcher_nonce;
	uint64		attached_serial;	/* node_serial that we are attached to */

	/* A hot standby that reads its primary's indexes (am/standby/) */
	pg_atomic_uint32 standby_reads; /* 1: memory nodes are looked for as a reader, and indexes are not hidden */
	pid_t		reader_pid;		/* of the process that does that, 0 = there is none */
	Latch	   *reader_latch;
	uint64		followed[2];	/* the primary's identity at memory nodes */
	pg_atomic_uint64 reads_serial;	/* counts how often a memory node was attached as one */
	pg_atomic_uint32 trees_wanted;	/* 1: a session has met an index whose tree the table of trees lacks */

	/* Memory nodes that are to be forgotten */
	pg_atomic_uint32 forget;	/* bit per position: sessions ask for it */
	pg_atomic_uint32 forgotten; /* counts the launcher's rounds that had some to forget */

	/* Database workers */
	ShermanRun	run[SHERMAN_WORKER_KINDS];

	/* Collector */
	pg_atomic_uint32 hints;		/* transactions that made or dropped trees, or databases */
	uint64		collect_requested;	/* by sherman_collect() */
	uint64		collect_done;
	uint64		trees_freed;

	/* Healing */
	ShermanHealShown heal[SHERMAN_HEALS_SHOWN];

	/* Rebuilding */
	pg_atomic_uint32 rebuild_all;	/* ShermanRebuildAll */

	/* Unique indexes */
	ShermanKeyPart key_part[SHERMAN_KEY_PARTS];

	/* Which half of the scan barrier new scans take (locks.c) */
	pg_atomic_uint32 barrier_turns[SHERMAN_BARRIERS];

	/*
	 * The youngest transaction whose deletions scans and the table have called dead to everybody: FullTransactionId, by a hash of the database
	 * (removal.c).
	 */
	pg_atomic_uint64 dead_horizon[SHERMAN_HORIZONS];
	uint64		began_at;		/* the last transaction before this run began its epoch, likewise */

	/*
	 * All rows that any process has pruned until now were deleted by transactions before this one: FullTransactionId; 0: that is not known
	 * (am/standby/horizon.c).
	 */
	pg_atomic_uint64 prune_bound;
	pid_t		horizon_pid;	/* of the process that keeps it so, 0 = there is none */

	uint64		leaf_cache_bytes;	/* room of the cache of leaves, 0 = there is none */
	int			slots;
	ShermanSlot slot[FLEXIBLE_ARRAY_MEMBER];
} ShermanShared;

/* The key of a tree's copy, which has a record and an entry of its own: no tree has this bit. */
#define SHERMAN_TREE_REPLICA (UINT64CONST(1) << 63)

/* A tree at a memory node, or its copy, as this instance knows it. */
typedef struct ShermanTreeEntry
{
	uint64		tree;			/* key */
	uint64		members[TREE_MAX_NODES];	/* as in its record, perhaps not the newest */
	Oid			database;
	uint32		home;			/* position of its record's memory node */
	uint32		flags;			/* TREE_RECORD_* */
	uint32		mutated_epoch;
	uint32		unverified_epoch;	/* as in its record */
	uint64		nonce;			/* in its record when we saw it first, or that of the epoch in use: since then */
	bool		replicas_doubt;	/* its copies may differ, and the tree layer does not know any more */
	bool		unproven;		/* the collector has not proved it alive since the last hint */
	bool		abandoned;		/* no metapage names it, for good: to be freed */
	uint32		heal_tries;		/* runs of the healer, since it is in doubt */
	TimestampTz heal_after;		/* not before this time it comes again */
	bool		heal_now;		/* by the run that began last */
	bool		heal_vain;		/* the last one could not look up all rows: sessions are not to wait for the next one */
	TimestampTz dead_since;		/* first time it was found dead, 0 = was not */
} ShermanTreeEntry;

/* ---- reserve.c: shared memory that takes up memory only as it is used ---- */

/* Trees that can be in use at once: more than a server has, as room that is not used is only address space (640 MB). */
#define SHERMAN_TREES_IN_USE 65536

/*
 * In the startup hook, in the postmaster: maps it, and sets options->states, and options->trees, which is less than
 * SHERMAN_TREES_IN_USE if the system does not have so much address space.
 */
extern void sherman_reserve_create(TreeSharedOptions *options);
/* Zeroed bytes, aligned to cache lines, which are never given back. NULL: there are not so many left. */
extern void *sherman_reserve_allocate(Size bytes);

/* ---- instance.c ---- */

/* NULL unless preloaded. */
extern ShermanShared *sherman_shared;
extern TreeShared *sherman_tree_shared;

/* 0 unless preloaded. */
static inline uint64
sherman_generation(void)
{
	return sherman_shared == NULL ? 0 : pg_atomic_read_u64(&sherman_shared->generation);
}

/* Whether nothing is attached because this server was promoted and no synchronous standby follows it yet (am/recovery/promotion.c). */
static inline bool
sherman_promotion_waits(void)
{
	return pg_atomic_read_u32(&sherman_shared->unfollowed) != 0;
}

/* Epoch in use; 0 if there is none. */
static inline uint32
sherman_epoch(void)
{
	return sherman_shared == NULL ? 0 : pg_atomic_read_u32(&sherman_shared->epoch);
}

/* In the startup hook, before any lock is asked for. */
extern void sherman_locks_find(void);
extern LWLock *sherman_lock(ShermanLock lock);
/* States may have changed everywhere. */
extern void sherman_state_changed(void);
/* Has all sessions plan anew, with or without our indexes as their state now is. */
extern void sherman_invalidate_plans(void);
/* Whether indexes are out of use in this process, whatever they are. */
extern bool sherman_all_hidden(void);
/* Whether this is a hot standby that reads its primary's indexes. */
extern bool sherman_is_reading_standby(void);
/* Wakes the process that looks after memory nodes: the launcher, or the reader of a standby. */
extern void sherman_wake_launcher(void);
/* Whether this server runs the embedded node: decided when it starts, and then so until it ends. */
extern bool sherman_embedded;

/* ---- method.c: which indexes and access methods are ours, whatever they are called ---- */
extern bool sherman_is_our_method(const IndexAmRoutine *routine);
/* Of an index by its OID; of one that is open. */
extern bool sherman_is_ours(Oid index);
extern bool sherman_owns(Relation index);

/* ---- node_list.c ---- */

/*
 * Whether processes of this host map the memory of the memory node at this address of sherman_parse_nodes().
 */
extern bool sherman_node_is_mapped(const char *address);

/*
 * Whether one of the list's memory nodes is across the network.
 */
extern bool sherman_nodes_are_remote(const char *list);

/*
 * Splits sherman.memory_nodes into addresses as fabric_connect() takes them.  Returns their number, or -1:
 * `problem` says why.  addresses NULL: only looks.
 */
extern int	sherman_parse_nodes(const char *list, char (*addresses)[SHERMAN_ADDRESS_BYTES],
								const char **problem);

/* ---- settings.c ---- */

/* Whether a value of sherman.memory_nodes takes a restart: from the embedded memory node to others, or back. */
extern bool sherman_list_awaits_restart(const char *list);

/* ---- rebuilding.c ---- */

/* The index that this process rebuilds by itself, InvalidOid: none. rebuild.c's to write. */
extern Oid	sherman_rebuilding;
/* In a build, now and then: sleeps, if this process rebuilds by itself. Nothing may be locked. */
extern void sherman_rebuild_delay(void);
extern bool sherman_is_rebuilding(void);

#endif							/* SHERMAN_SHARED_H */
