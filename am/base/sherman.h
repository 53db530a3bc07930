/*
 * sherman.h
 *		What all rooms of am/ use; what shared memory has is in shared.h, the state file in state_file.h.
 */
#ifndef SHERMAN_AM_H
#define SHERMAN_AM_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/transam.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "storage/lwlock.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "tree/tree.h"

/* Strategy and support numbers are btree's. */
#define SHERMAN_ORDER_PROC 1
#define SHERMAN_STRATEGIES 5

/* ---- settings.c ---- */
extern int	sherman_embedded_memory_mb;		/* sherman.embedded_memory: node memory of the embedded node, 0 = none */
extern bool sherman_embedded_snapshot;	/* sherman.embedded_snapshot: its memory is saved at a clean end */
extern char *sherman_embedded_directory;	/* sherman.embedded_directory: tmpfs that holds it, /dev/shm */
extern int	sherman_cache_mb;				/* sherman.cache_size: cache of nodes in shared memory */
extern int	sherman_connection_workers; /* sherman.connection_workers: 0 = each process connects for itself */
extern int	sherman_attach_timeout_ms;		/* sherman.attach_timeout */
extern int	sherman_operation_timeout_ms;	/* sherman.operation_timeout */
extern int	sherman_collect_interval_s;		/* sherman.collect_interval */
extern int	sherman_on_unavailable;			/* sherman.on_unavailable: ShermanOnUnavailable */
extern int	sherman_gone_after_s;			/* sherman.gone_after: -1 = never */
extern int	sherman_failover_after_ms;
extern int	sherman_take_over_mode;		/* sherman.take_over: ShermanTakeOverMode */
extern bool sherman_standby_reads;		/* sherman.standby_reads: a hot standby uses its primary's indexes */
extern bool sherman_auto_rebuild;		/* sherman.auto_rebuild */
extern bool sherman_enable_lookahead;	/* sherman.enable_lookahead */
extern double sherman_round_trip_cost;	/* sherman.round_trip_cost: in the planner's units, -1 = as measured */
extern int	sherman_rebuild_tries;		/* sherman.rebuild_tries: of one index */
extern double sherman_rebuild_cost_delay_ms;	/* sherman.rebuild_cost_delay: 0 = it does not sleep */
extern bool sherman_heal;				/* sherman.heal: after an unclean end, rather than broken */
extern bool sherman_autoheal;			/* sherman.autoheal: the healer sees to unverified indexes */
extern int	sherman_heal_timeout_ms;	/* sherman.heal_timeout */
extern bool sherman_constraints;		/* sherman.constraints: PRIMARY KEY and UNIQUE get sherman */
extern int	sherman_resource_manager_id;	/* sherman.resource_manager_id: 0 = the last one that is free */
extern char *sherman_memory_node_list;	/* sherman.memory_nodes: addresses of external memory nodes */
extern char *sherman_key_file;			/* sherman.key_file: this server's key for them, "" = none */

typedef enum ShermanOnUnavailable
{
	SHERMAN_UNAVAILABLE_ERROR,
	SHERMAN_UNAVAILABLE_BREAK
} ShermanOnUnavailable;

typedef enum ShermanTakeOverMode
{
	SHERMAN_TAKE_OVER_MANUAL,
	SHERMAN_TAKE_OVER_AUTO
} ShermanTakeOverMode;

extern void sherman_define_settings(void);

/* ---- instance.c ---- */

/* True when the library was preloaded and the shared memory is there. */
extern bool sherman_preloaded(void);
/*
 * For loops that wait without a WaitEventSet: PostmasterIsAlive() checks only after the kernel's signal that the
 * parent died, and takes it for alive for ever if another process that was just forked had the pipe open then. A
 * system call.
 */
extern bool sherman_postmaster_is_gone(void);

/* ---- wait_events.c ---- */

/* What pg_stat_activity shows of a process that waits. */
typedef enum ShermanWait
{
	SHERMAN_WAIT_MEMORY_NODE,	/* for the answer of a memory node */
	SHERMAN_WAIT_NODE_LOCK,		/* for another process's operation at a node of the index */
	SHERMAN_WAIT_CONNECTION_WORKER, /* for the answer of a connection worker */
	SHERMAN_WAIT_ATTACH,		/* for a memory node that is not attached */
	SHERMAN_WAIT_HEAL,			/* for the healer */
	SHERMAN_WAIT_UNIQUE_CHECK,	/* for a session that adds a key of the same part */
	SHERMAN_WAIT_PARALLEL_SCAN, /* for another worker of a parallel scan */
	SHERMAN_WAIT_LAUNCHER,		/* for what the launcher was asked for */
	SHERMAN_WAIT_STANDBYS,		/* for synchronous standbys to flush WAL */
	SHERMAN_WAIT_RECOVERY,		/* for the end of recovery, or of a WAL position */
	SHERMAN_WAIT_REPLAY,		/* on a standby, until it has replayed what its primary did before it changed an index */
	SHERMAN_WAIT_DATABASE_WORKER,	/* for a worker that is to leave a database */
	SHERMAN_WAIT_LAUNCHER_MAIN, /* the launcher, between its rounds */
	SHERMAN_WAIT_CONNECTION_WORKER_MAIN,	/* a connection worker, for work */
	SHERMAN_WAIT_READER_MAIN,	/* the process of a standby that attaches memory nodes, between its rounds */
	SHERMAN_WAIT_HORIZON_MAIN	/* the process that keeps the horizon of removals for standbys, between its looks */
} ShermanWait;

/* In the startup hook. */
extern void sherman_wait_events_start(void);
/* For pgstat_report_wait_start(), WaitLatch() and the like. */
extern uint32 sherman_wait_event(ShermanWait wait);

/* ---- the metapage: block 0 of the main fork, WAL-logged (am/index/metapage.c) ---- */

#define SHERMAN_MAGIC 0x53484d31	/* "SHM1" */
#define SHERMAN_FORMAT 4
#define SHERMAN_MAX_POOL_NODES TREE_MAX_NODES

#define SHERMAN_META_BROKEN 0x01	/* final; reason and time are set */
#define SHERMAN_META_UNLOGGED 0x02	/* of an unlogged or temporary table: may have no tree yet */
#define SHERMAN_META_POSTINGS 0x04	/* TreeFormat.postings of the tree that it names */

/* ShermanMetaPage.replicas_valid: which of them is the tree; without a copy always the first alone. */
#define SHERMAN_VALID_FIRST 0x01	/* at the root's memory node, its home */
#define SHERMAN_VALID_SECOND 0x02	/* at the copy's memory node */
#define SHERMAN_VALID_BOTH (SHERMAN_VALID_FIRST | SHERMAN_VALID_SECOND)

typedef enum ShermanReason
{
	SHERMAN_REASON_NONE = 0,
	SHERMAN_REASON_UNCLEAN,			/* PostgreSQL or the memory node ended unclean after the tree was changed */
	SHERMAN_REASON_MEMORY_LOST,		/* the memory node's memory is new */
	SHERMAN_REASON_OTHER_CLUSTER,	/* system identifier or pool differ: clone, restore, upgrade */
	SHERMAN_REASON_OTHER_DATABASE,	/* copied with its database */
	SHERMAN_REASON_TREE_MISSING,	/* the memory node does not know the tree */
	SHERMAN_REASON_UNAVAILABLE,		/* an insert or removal was skipped while the memory node was away */
	SHERMAN_REASON_FORMAT = 8,		/* written by another version; 7 was never in a metapage */
	SHERMAN_REASON_NOT_BUILT,		/* what a failed CREATE INDEX or REINDEX CONCURRENTLY leaves behind */
	SHERMAN_REASON_SESSION_ENDED,	/* temporary, and the session did not drop it: never in a metapage */
	SHERMAN_REASON_OTHER_HISTORY,	/* another server changed the tree, or we did behind the point that we were set back to */
	SHERMAN_REASON_GONE,			/* a memory node was away for longer than sherman.gone_after */
	SHERMAN_REASON_ENCODING,		/* this process would encode its keys in another way */
	SHERMAN_REASON_FORGOTTEN,		/* sherman_forget_memory_node() gave up a memory node that it lies on */
	SHERMAN_REASONS
} ShermanReason;

typedef struct ShermanMetaPage
{
	uint32		magic;
	uint32		format;
	uint64		system_identifier;
	Oid			database;
	Oid			index;				/* hint */
	uint64		tree;				/* 0 = made by the first insert (unlogged after a crash, temporary) */
	uint64		root;
	uint64		pool[2];			/* this instance's identity at its memory nodes */
	uint64		nonce_previous;		/* of the epoch in which the tree was changed last, before ... */
	uint64		nonce_current;		/* ... this one, in which it perhaps was: its record has one of the two */
	uint32		flags;				/* SHERMAN_META_* */
	uint32		reason;				/* ShermanReason */
	TimestampTz broken_at;
	uint32		replicas_valid;		/* SHERMAN_VALID_*; one that is not is never used again */
	uint8		cell_bytes;			/* TreeFormat, so that a reader can check it against the opclasses' */
	uint8		norm_bytes;
	uint8		lossless;
	uint8		full_separators;
	uint32		nodes;				/* positions of memory nodes below */
	uint32		replica;				/* position of the memory node that has the copy, and 1; 0 = there is none */
	uint64		incarnations[SHERMAN_MAX_POOL_NODES][2];	/* what trees call their memory, and half of its
																 * UUID; the first of the root's must fit */
	uint8		kinds[INDEX_MAX_KEYS];	/* NormalizeKind of each key column: what its bytes in the tree are */
	uint32		collation_versions[INDEX_MAX_KEYS]; /* hash of collation_version() when it was built; 0 = it has none */
	uint32		checksum;			/* of the above */
} ShermanMetaPage;

/* ---- options.c ---- */

/* The storage parameter of constraints' indexes: constraints.c. */
#define SHERMAN_MARK "sherman"
extern bytea *sherman_options(Datum reloptions, bool validate);
extern int	sherman_fillfactor(Relation index);
extern bool sherman_deduplicates(Relation index, const TreeFormat *format);
/* Whether its option says that the index is to have a copy. */
extern bool sherman_wants_replica(Relation index);
/* Registers the storage parameters, once in each process. */
extern void sherman_define_options(void);

/* ---- locks.c ---- */

/*
 * The lock on a key of a unique index, by a hash of it.  Callers that have a second hash, which tells apart more keys, share the
 * first: these exclude each other by the second alone (NULL: none).  Waits; cancel and a deadlock raise.
 */
extern void sherman_lock_key(Relation index, uint32 key, const uint32 *second);
extern void sherman_unlock_key(Relation index, uint32 key, const uint32 *second);
/*
 * The scan barrier: its holder may look up the rows of entries that it reads meanwhile, with any snapshot, for VACUUM
 * frees no TID that an entry had. Returns the argument for sherman_scan_barrier_leave(). Hardly ever waits.
 */
extern uint32 sherman_scan_barrier_hold(Relation index);
/* The same; false: it is not to be had without waiting. */
extern bool sherman_scan_barrier_try(Relation index, uint32 *half);
extern void sherman_scan_barrier_leave(Relation index, uint32 half);
/* For bulkdelete, after its last removal: waits until the present holders of the barrier have left it. */
extern void sherman_scan_barrier_wait(Relation index);

/* ---- target.c ---- */

/*
 * Opens and locks table and index, in this order; raises unless it is a sherman index that can be checked, or healed. target.c.
 */
extern void sherman_open_with_table(Oid index_oid, LOCKMODE mode, Relation *heap, Relation *index);

/* ---- crash_points.c: crash points, for tests: what is installed for others has none ---- */
#ifdef SHERMAN_PRODUCTION
#define sherman_define_crash_points() ((void) 0)
#define sherman_crash_point(name, before) ((void) 0)
#define sherman_client_crash_point() NULL
#else
extern void sherman_define_crash_points(void);
/* What is done right before or right behind this call outlives the process. Locks may be held; it does not jump. */
extern void sherman_crash_point(const char *name, bool before);
/* The crash-point hook for this process's client; NULL: none. */
extern TreeCrashPoint *sherman_client_crash_point(void);
/* Has this called whenever crash points begin to be counted, or are no more; in place of an earlier one. */
extern void sherman_crash_points_watch(void (*changed) (void));
#endif

/* ---- durable.c ---- */

/*
 * Whether as many synchronous standbys as are wanted have WAL up to `end`, which lies behind this server's promotion, in its own timeline; or
 * this process's commits would not wait for any.
 */
extern bool sherman_standbys_follow(XLogRecPtr end);
/* Whether nothing is attached before a synchronous standby follows this promoted server, and this process's commits would wait for one, too. */
extern bool sherman_waits_for_standbys(void);
/*
 * Flushes WAL up to `end`, and waits until synchronous standbys have flushed it, if this process's commits would wait for them: for what
 * must not be undone by a promotion, either.  Interrupts are served meanwhile: nothing may be locked at a memory node.
 */
extern void sherman_flush_to_standbys(XLogRecPtr end);

/* XLogFlush(), as a crash point. */
static inline void
sherman_flush(XLogRecPtr end)
{
	sherman_crash_point("flush of WAL", true);
	XLogFlush(end);
	sherman_crash_point("flush of WAL", false);
}

#endif							/* SHERMAN_AM_H */
