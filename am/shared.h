/*
 * shared.h
 *		What the parts of am/ that are about the instance share: the struct in shared memory, the local state
 *		file, the table of trees.  Callback files (scan.c, insert.c, ...) do not need it.
 *
 * Who writes what: recovery.c the verdict about the last end, workers.c the fields of the memory node and of
 * the launcher, collector.c those of the collector.  Fields without a note are protected by `lock`; `changed`
 * is broadcast when somebody may wait for the change.
 */
#ifndef SHERMAN_SHARED_H
#define SHERMAN_SHARED_H

#include "sherman.h"

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"

/*
 * Words of the LOCKS region that the local lock table covers; the launcher checks that the memory node has as
 * many.
 */
#define SHERMAN_LOCK_WORDS 16384

/* Trees that the embedded node can hold: its tables are made for so many. */
#define SHERMAN_MAX_TREES 4096

/*
 * The embedded node's control socket, below the data directory, which is every process's working directory.
 */
#define SHERMAN_SOCKET "pg_dynshmem/sherman.socket"

/* Our lightweight locks. */
typedef enum ShermanLock
{
	SHERMAN_LOCK_SHARED,		/* ShermanShared */
	SHERMAN_LOCK_TREES,			/* table of trees */
	SHERMAN_LOCKS
} ShermanLock;

/* What is known about the end of the run before this one. */
typedef enum ShermanStart
{
	SHERMAN_START_UNPROVEN,		/* nothing: the memory belongs to no history that we know */
	SHERMAN_START_CRASH,		/* our history; its last epoch ended unclean */
	SHERMAN_START_CLEAN			/* our history; its last epoch ended clean */
} ShermanStart;

typedef enum ShermanPhase
{
	SHERMAN_PHASE_NONE,			/* no memory node is configured, or pg_upgrade runs this server */
	SHERMAN_PHASE_ATTACHING,
	SHERMAN_PHASE_ATTACHED,
	SHERMAN_PHASE_LOST			/* nobody may use the memory node until the launcher has attached again */
} ShermanPhase;

/* The local state file pg_dynshmem/sherman.state: neither backups nor pg_rewind copy it. */
typedef struct ShermanLocal
{
	uint32		magic;
	uint32		version;
	uint64		system_identifier;
	uint64		device;			/* of the data directory: tells a copy from the original */
	uint64		inode;
	uint64		cluster[2];		/* this instance's identity at memory nodes */
	uint64		memory[2];		/* identity of the embedded node's memory; 0 = not attached yet */
	uint64		nonce;			/* of the epoch */
	XLogRecPtr	opened_at;		/* the control file's checkpoint when the epoch was opened */
	XLogRecPtr	closed_at;		/* its shutdown checkpoint, if the epoch ended clean */
	TimeLineID	timeline;		/* of the epoch */
	uint32		epoch;			/* last epoch opened, 0 = none yet */
	uint32		opened;			/* the memory node has acknowledged it: nothing is changed before that */
	uint32		closed;			/* it ended clean, at closed_at */
	char		memory_path[MAXPGPATH];
	uint32		checksum;		/* CRC-32C of the above */
} ShermanLocal;

/* One process: on a line of its own, for it is written at each operation that locks. */
typedef struct ShermanSlot
{
	pg_atomic_uint32 busy;		/* between hold and resume */
	char		padding[PG_CACHE_LINE_SIZE - sizeof(pg_atomic_uint32)];
} ShermanSlot;

typedef struct ShermanShared
{
	/* Atomics, read without the lock */
	pg_atomic_uint64 generation;	/* changes whenever any index's state may have changed */
	pg_atomic_uint32 phase;		/* ShermanPhase */
	pg_atomic_uint32 epoch;		/* in use, 0 before the first attach of this run */

	ConditionVariable changed;
	TimestampTz wait_began;		/* when somebody first waited for the attach, 0 = nobody yet */

	/* Last end; set before any other process runs */
	ShermanStart start;
	ShermanLocal local;			/* the launcher changes it, and the file with it */
	XLogRecPtr	start_checkpoint;	/* the control file's, as this run found it */

	/* Embedded node */
	pid_t		node_pid;		/* 0 = does not serve */
	uint64		node_serial;	/* counts its starts */
	int			node_memory;	/* FabricMemoryState of its last start */
	char		node_failure[256];	/* why it does not serve */

	/* Launcher */
	pid_t		launcher_pid;
	Latch	   *launcher_latch;
	uint64		launcher_nonce;
	uint64		connection;		/* counts attaches: clients of an older one are void */
	uint64		attached_serial;	/* node_serial that we are attached to */
	uint64		memory[2];		/* identity of its memory */
	uint32		incarnation;
	char		launcher_failure[256];	/* why we are not attached */

	/* Collector */
	pg_atomic_uint32 keep_out;	/* commands that want no worker of ours in their database */
	pg_atomic_uint32 hints;		/* transactions that made or dropped trees, or databases */
	Oid			visited_database;
	pid_t		visitor_pid;	/* 0 = no visit */
	uint64		collect_requested;	/* by sherman_collect() */
	uint64		collect_done;
	uint64		trees_freed;

	int			slots;
	ShermanSlot slot[FLEXIBLE_ARRAY_MEMBER];
} ShermanShared;

/* A tree at the memory node, as this instance knows it. */
typedef struct ShermanTreeEntry
{
	uint64		tree;			/* key */
	Oid			database;
	uint32		flags;			/* TREE_RECORD_* */
	uint32		mutated_epoch;
	bool		suspect;		/* the collector has not proved it alive since the last hint */
	TimestampTz dead_since;		/* first time it was found dead, 0 = was not */
} ShermanTreeEntry;

/* ---- hooks.c ---- */

/* NULL unless preloaded. */
extern ShermanShared *sherman_shared;
extern TreeShared *sherman_tree_shared;
extern LWLock *sherman_lock(ShermanLock lock);

/* Whether an index is one of ours, whatever its access method is called. */
extern bool sherman_is_ours(Oid index);

/* ---- planner.c ---- */
extern void sherman_planner_install(void);

/* What the collector has found out about a tree. */
typedef enum ShermanVerdict
{
	SHERMAN_TREE_KNOWN,			/* that it is there */
	SHERMAN_TREE_VISITED,		/* nothing yet: hints from now on count anew */
	SHERMAN_TREE_ALIVE,
	SHERMAN_TREE_UNDECIDED,
	SHERMAN_TREE_DEAD
} ShermanVerdict;

/* ---- trees.c: the table of trees ---- */
extern Size sherman_trees_bytes(void);
extern void sherman_trees_initialize(void);
/* Copies the entry; false: not known. */
extern bool sherman_trees_find(uint64 tree, ShermanTreeEntry *entry);
/* Adds or replaces. False: the table is full. */
extern bool sherman_trees_put(const ShermanTreeEntry *entry);
extern void sherman_trees_mutated(uint64 tree, uint32 epoch);
/*
 * Notes a verdict, adding an entry if there is none; returns since when the tree is taken for dead, 0 = it is
 * not.
 */
extern TimestampTz sherman_trees_judge(const TreeRecord *record, ShermanVerdict verdict);
extern void sherman_trees_remove(uint64 tree);
extern void sherman_trees_clear(void);
/* Makes all trees of a database suspects, or with InvalidOid all trees. */
extern void sherman_trees_suspect(Oid database);
/* Copies all entries into palloc'd memory. */
extern ShermanTreeEntry *sherman_trees_list(int *count);

/* ---- recovery.c ---- */

/* In the startup hook: reads control file and state file, and judges the last end. */
extern void sherman_recovery_start(ShermanShared *shared);
/*
 * In the launcher, after fabric_attach(): marks the trees of an unclean epoch as broken, opens the next epoch
 * and fills the table of trees.  `again`: this run was attached before.  False: `detail` says why.
 */
extern bool sherman_recovery_attach(TreeClient *client, bool again, bool memory_clean, char *detail,
									Size detail_bytes);
/* Writes the state file durably; false, with a WARNING, if that failed. */
extern bool sherman_local_write(ShermanLocal *local);

/* ---- connection.c ---- */

/* Connects this process, whatever the phase is. NULL: `detail` says why. */
extern TreeClient *sherman_connection_open(char *detail, Size detail_bytes);
extern void sherman_connection_close(void);
/* Gives up a connection that the launcher has replaced, unless this transaction has used it. */
extern void sherman_connection_refresh(void);
extern bool sherman_connection_used;
/* At the end of a transaction. */
extern void sherman_connection_end_transaction(void);
/* The memory node is closed for everybody until the launcher has fenced it. */
extern void sherman_connection_lost(void);
/* Fills what fabric_open() needs. */
extern void sherman_fabric_options(FabricOptions *options, uint32 incarnation);
extern void sherman_pool_address(char *address, Size bytes);

/* ---- state.c ---- */
extern ShermanPhase sherman_phase(void);
/* Waits while ATTACHING, at most until attach_timeout after the first who waited began; cancel raises. */
extern void sherman_wait_attached(void);
/* States may have changed everywhere. */
extern void sherman_state_changed(void);
/* Has all sessions plan anew, with or without our indexes as their state now is. */
extern void sherman_invalidate_plans(void);
/* Raises for a state other than OK. */
extern void sherman_report_state(int elevel, Relation index, ShermanState state, ShermanReason reason);
/* Whether indexes are out of use in this process, whatever they are. */
extern bool sherman_all_hidden(void);
extern uint64 sherman_generation(void);
/* Judges an index by its metapage (`sound`: it could be believed), without waiting or connecting. */
extern ShermanState sherman_judge(const ShermanMetaPage *meta, bool sound, ShermanReason *reason);

/* ---- opened.c ---- */

/* Registers the callbacks. */
extern void sherman_opened_install(void);
/* This index changed in place: what this process knows of it is void. */
extern void sherman_index_forget(Oid index);
/* Closes what depends on this process's client. */
extern void sherman_opened_close(void);
/* Says once in each session that a broken index is not used. */
extern void sherman_warn_broken(Relation index, ShermanReason reason);
/* At the end of this transaction the collector is to look at this database. */
extern void sherman_hint_collector(void);

/* ---- collector.c ---- */

/* One round of the launcher; returns milliseconds until it wants to run again. */
extern long sherman_collect_round(void);
extern PGDLLEXPORT void sherman_collector_main(Datum argument);

/* ---- workers.c ---- */
extern PGDLLEXPORT void sherman_node_main(Datum argument);
extern PGDLLEXPORT void sherman_launcher_main(Datum argument);
extern void sherman_wake_launcher(void);
/* Data channels that the embedded node serves at once. */
extern uint32 sherman_node_channels(void);

#endif							/* SHERMAN_SHARED_H */
