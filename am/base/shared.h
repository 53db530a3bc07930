/*
 * shared.h
 *		What the parts of am/ that are about the instance share: the struct in shared memory, the table of
 *		trees.  Callback files (scan.c, insert.c, ...) do not need it.  local.h has what outlives a run.
 *
 * Who writes what: recovery.c the verdict about the last end, workers.c the fields of the memory node and of
 * the launcher, collector.c those of the collector.  Fields without a note are protected by `lock`; `changed`
 * is broadcast when somebody may wait for the change.
 */
#ifndef SHERMAN_SHARED_H
#define SHERMAN_SHARED_H

#include "am/base/sherman.h"

#include "tree/proxy.h"
#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"

#include "am/base/local.h"

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
	SHERMAN_LOCK_COPIES,		/* copies.c: shared by who gives a half up, exclusive by who lets a memory node in */
	SHERMAN_LOCKS
} ShermanLock;

/* Of one memory node, or of all: then the best of them. */
typedef enum ShermanPhase
{
	SHERMAN_PHASE_NONE,			/* no memory node is configured, or pg_upgrade runs this server */
	SHERMAN_PHASE_ATTACHING,	/* at the start: not attached yet, and awaited */
	SHERMAN_PHASE_ATTACHED,
	SHERMAN_PHASE_AWAY			/* nobody may use the memory node until the launcher has attached again */
} ShermanPhase;

/* Bytes of a sentence about a failure. */
#define SHERMAN_FAILURE_BYTES 320

/* One process: on a line of its own, for it is written at each operation that locks. */
typedef struct ShermanSlot
{
	pg_atomic_uint32 busy;		/* between hold and resume: read by operations_have_ended(), which says how */
	pg_atomic_uint32 connected; /* it has a client */
	pg_atomic_uint32 alone_in;	/* database in which its command wants no worker of ours; InvalidOid = none */
	char		padding[PG_CACHE_LINE_SIZE - 3 * sizeof(pg_atomic_uint32)];
} ShermanSlot;

/* Parts that the keys of all unique indexes fall into, by a hash: so many that two sessions seldom meet in one. */
#define SHERMAN_KEY_PARTS 4096

/* Who is busy with keys of one part (key_parts.c). */
typedef struct ShermanKeyPart
{
	pg_atomic_uint32 adding;	/* rows without a key lock */
	pg_atomic_uint32 checking;	/* rows with one */
} ShermanKeyPart;

/* Indexes share the turns of their scan barriers by a hash: so many that two seldom do. */
#define SHERMAN_BARRIERS 1024

/* ShermanNode.suspected */
typedef enum ShermanSuspicion
{
	SHERMAN_UNSUSPECTED,
	SHERMAN_SUSPECTED,			/* somebody could not connect: the launcher is to look */
	SHERMAN_LOOKED_AT			/* the launcher does so */
} ShermanSuspicion;

/* The memory node at one position, in this run. */
typedef struct ShermanNode
{
	pg_atomic_uint32 phase;		/* ShermanPhase; NONE = the position is free */
	pg_atomic_uint32 suspected; /* ShermanSuspicion */
	pg_atomic_uint32 gone;		/* it was away for so long that its indexes count as broken until it is back */
	pg_atomic_uint32 quiet;		/* it is closed, no process has been inside an operation since, and it was waited for
								 * (sherman.failover_after): indexes with a copy may go on without it */
	TimestampTz away_since;		/* the launcher's: 0 = it is not away */
	pg_atomic_uint64 serial;	/* counts attaches in this run: channels of an older one are void */
	uint64		memory[2];		/* identity of its memory; changes only while it is not attached */
	uint64		member;			/* what trees call it; likewise */
	uint32		incarnation;
	char		address[SHERMAN_ADDRESS_BYTES];
} ShermanNode;

/* An entry of sherman.memory_nodes, or the embedded node. */
typedef struct ShermanListed
{
	char		address[SHERMAN_ADDRESS_BYTES];
	int			position;		/* -1 = not known: never reached so far */
	FabricStatus status;		/* of the last attempt to attach */
	char		failure[SHERMAN_FAILURE_BYTES]; /* why it failed, "" = it did not */
} ShermanListed;

/* What the launcher sends workers into databases for (visits.c). */
typedef enum ShermanVisit
{
	SHERMAN_VISIT_COLLECT,		/* which trees nobody names any more */
	SHERMAN_VISIT_HEAL,			/* indexes in doubt */
	SHERMAN_VISIT_REBUILD,		/* which indexes are broken; they are rebuilt */
	SHERMAN_VISITS
} ShermanVisit;

typedef enum ShermanHealPhase
{
	SHERMAN_HEAL_OPENING,
	SHERMAN_HEAL_LEAVES,
	SHERMAN_HEAL_ENDING
} ShermanHealPhase;

/* An index that is being healed, as sherman_heal_progress shows it (heal_progress.c). */
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

/* What a visit that looks for broken indexes has found. */
typedef enum ShermanRebuildFound
{
	SHERMAN_REBUILD_UNSEEN,		/* it has not come so far */
	SHERMAN_REBUILD_NONE,		/* no index of ours */
	SHERMAN_REBUILD_LOCKED,		/* some are locked */
	SHERMAN_REBUILD_SEEN
} ShermanRebuildFound;

/* What has become of sherman_rebuild_all(). */
typedef enum ShermanRebuildAll
{
	SHERMAN_REBUILD_ALL_NOT,
	SHERMAN_REBUILD_ALL_WANTED,
	SHERMAN_REBUILD_ALL_BEGUN	/* the launcher sends visits everywhere */
} ShermanRebuildAll;

typedef struct ShermanShared
{
	/* Atomics, read without the lock */
	pg_atomic_uint64 generation;	/* changes whenever any index's state may have changed */
	pg_atomic_uint32 awaited;	/* 1: it is too early to say that no memory node can be attached */
	pg_atomic_uint32 epoch;		/* in use, 0 before the first attach of this run */

	ConditionVariable changed;
	TimestampTz wait_began;		/* when somebody first waited for the attach, 0 = nobody yet */

	/* Last end; set before any other process runs */
	ShermanStart start;
	ShermanLocal local;			/* the launcher changes it, and the file with it; before, the startup process */
	XLogRecPtr	start_checkpoint;	/* the control file's, as this run found it */
	ShermanAwaited end_awaited; /* before the launcher runs the startup process changes it */
	bool		promoted;		/* this run began as a standby's */
	bool		unclean;		/* this epoch does not end clean: copies may differ, or nobody has looked yet whether they do */
	TreeEnds	ends;			/* of all epochs before the one in use; set before that is */

	/* Embedded node */
	pid_t		node_pid;		/* 0 = does not serve */
	uint64		node_serial;	/* counts its starts */
	char		node_failure[256];	/* why it does not serve */
	bool		node_held;		/* it must not: it would overwrite what could not be set aside */

	/* Memory nodes: the launcher changes them */
	bool		embedded;		/* the one is the embedded node */
	TimestampTz attached_since; /* at least one has been attached since then, 0 = none is */
	int			listed_count;
	ShermanListed listed[TREE_MAX_NODES];
	ShermanNode node[TREE_MAX_NODES];	/* by position */

	/* Launcher */
	pid_t		launcher_pid;
	Latch	   *launcher_latch;
	uint64		launcher_nonce;
	uint64		attached_serial;	/* node_serial that we are attached to */

	/* Memory nodes that are to be forgotten */
	pg_atomic_uint32 forget;	/* bit per position: sessions ask for it */
	pg_atomic_uint32 forgotten; /* counts the launcher's rounds that had some to forget */

	/* Visits */
	pid_t		visitor_pid[SHERMAN_VISITS];	/* 0 = no visit */
	Oid			visitor_database[SHERMAN_VISITS];

	/* Collector */
	pg_atomic_uint32 hints;		/* transactions that made or dropped trees, or databases */
	uint64		collect_requested;	/* by sherman_collect() */
	uint64		collect_done;
	uint64		trees_freed;

	/* Healing */
	ShermanHealShown heal[SHERMAN_HEALS_SHOWN];

	/* Rebuilding */
	ShermanRebuildFound rebuild_found;	/* by the last visit */
	bool		rebuild_tells;	/* the visit that begins is the first of this run in its database */
	pg_atomic_uint32 rebuild_all;	/* ShermanRebuildAll */

	/* Unique indexes */
	ShermanKeyPart key_part[SHERMAN_KEY_PARTS];

	/* Which half of the scan barrier new scans take (locks.c) */
	pg_atomic_uint32 barrier_turns[SHERMAN_BARRIERS];

	int			slots;
	ShermanSlot slot[FLEXIBLE_ARRAY_MEMBER];
} ShermanShared;

/* The key of a tree's copy, which has a record and an entry of its own: no tree has this bit. */
#define SHERMAN_TREE_COPY (UINT64CONST(1) << 63)

/* A tree at a memory node, or its copy, as this instance knows it. */
typedef struct ShermanTreeEntry
{
	uint64		tree;			/* key */
	uint64		members[TREE_MAX_NODES];	/* as in its record, perhaps not the newest */
	Oid			database;
	uint32		home;			/* position of its record's memory node */
	uint32		flags;			/* TREE_RECORD_* */
	uint32		mutated_epoch;
	uint32		suspect_epoch;	/* as in its record */
	uint64		nonce;			/* in its record when we saw it first, or that of the epoch in use: since then */
	bool		copies_doubt;	/* its copies may differ, and the tree layer does not know any more */
	bool		suspect;		/* the collector has not proved it alive since the last hint */
	bool		abandoned;		/* no metapage names it, for good: to be freed */
	uint32		heal_tries;		/* visits of the healer, since it is in doubt */
	TimestampTz heal_after;		/* not before this time it comes again */
	bool		heal_now;		/* by the visit that began last */
	bool		heal_vain;		/* the last one could not look up all rows: nobody is to wait for the next one */
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
/* In the startup hook, before any lock is asked for. */
extern void sherman_locks_find(void);
extern LWLock *sherman_lock(ShermanLock lock);
/* States may have changed everywhere. */
extern void sherman_state_changed(void);
/* Has all sessions plan anew, with or without our indexes as their state now is. */
extern void sherman_invalidate_plans(void);
/* Whether indexes are out of use in this process, whatever they are. */
extern bool sherman_all_hidden(void);
extern uint64 sherman_generation(void);
extern void sherman_wake_launcher(void);
/* Whether this server runs the embedded node: decided when it starts, and then so until it ends. */
extern bool sherman_embedded;

/* ---- method.c: which indexes and access methods are ours, whatever they are called ---- */
extern bool sherman_is_our_method(const IndexAmRoutine *routine);
/* Of an index by its OID; of one that is open. */
extern bool sherman_is_ours(Oid index);
extern bool sherman_owns(Relation index);

/* ---- planner.c ---- */
extern void sherman_planner_install(void);
/* Whether an index that the planner considers is one of ours. */
extern bool sherman_plans(const struct IndexOptInfo *info);
/* Sets up row_comparison.c. */
extern void sherman_row_comparison_install(void);

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
extern void sherman_trees_initialize(void);
/* Copies the entry; false: not known. */
extern bool sherman_trees_find(uint64 tree, ShermanTreeEntry *entry);
/* Adds or replaces. False: the table is full. */
extern bool sherman_trees_put(const ShermanTreeEntry *entry);
/* Brings an entry up to date with its record, or adds one. False: the table is full. */
extern bool sherman_trees_note(const TreeRecord *record);
/* The same for the copy of a tree that was made just now, if it has one. */
extern bool sherman_trees_note_copy(const TreeRecord *record);
/* Its record has this epoch and nonce. */
extern void sherman_trees_mutated(uint64 tree, uint32 epoch, uint64 nonce);
/* No leaf is in doubt any more. Both are for the tree's copy, too. */
extern void sherman_trees_healed(uint64 tree);
/*
 * Whether the two of a tree that has a copy may differ for another reason than that it is in doubt as a whole. `returned`: as in
 * tree_copies_doubted().
 */
extern bool sherman_trees_copies_doubted(const ShermanTreeEntry *entry, bool returned);
/* What is lost of doubts about copies may be of any tree: notes it of all that have some. */
extern void sherman_trees_doubt_copies(void);
/* The tree was compared with its copy, or has none any more. */
extern void sherman_trees_compared(uint64 tree);
/*
 * Notes a verdict, adding an entry if there is none; returns since when the tree is taken for dead, 0 = it is
 * not.
 */
extern TimestampTz sherman_trees_judge(const TreeRecord *record, ShermanVerdict verdict);
extern void sherman_trees_remove(uint64 tree);
/* Whoever had the only metapage that names it has made that void, whatever becomes of his transaction. */
extern void sherman_trees_abandon(uint64 tree);
/* Removes the trees whose home is at a position that nobody uses now. */
extern void sherman_trees_clear(uint32 home);
/*
 * The tree in doubt that the healer is to see to next, of those that could be reached: its database, and when.  False: there is none.
 */
extern bool sherman_trees_next_to_heal(Oid *database, TimestampTz *due);
/* Marks those of a database that are due for the visit that begins (heal_now), and no others; they are due again later each time. */
extern void sherman_trees_take_to_heal(Oid database);
/* Somebody waits: the healer comes as soon as it can, unless it was there in vain. */
extern void sherman_trees_heal_soon(uint64 tree);
/* Whether the healer's visit has left it in doubt as its rows cannot be looked up. */
extern void sherman_trees_heal_vain(uint64 tree, bool vain);
/* The collector looks at none of a database's trees before there is another hint. */
extern void sherman_trees_settle(Oid database);
/* Makes all trees of a database suspects, or with InvalidOid all trees. */
extern void sherman_trees_suspect(Oid database);
/* Copies all entries into palloc'd memory. */
extern ShermanTreeEntry *sherman_trees_list(int *count);

/* ---- halves.c ---- */

/* The key in the table of trees of the half that is the tree; of any index. */
extern uint64 sherman_tree_key(const ShermanMetaPage *meta);
/* The memory node without which the index cannot be used now. */
extern int	sherman_copies_away_position(const ShermanMetaPage *meta);
/* Whether the copy is away: sherman_copies_before_change() is to be called before a change.  Of any index. */
extern bool sherman_copies_lack_copy(const ShermanMetaPage *meta);
/* Whether the launcher is to look at one of its memory nodes, as somebody could not connect. */
extern bool sherman_copies_suspected(const ShermanMetaPage *meta);
/* Whether its copies are in doubt, and no leaf of it is: comparing them is all that is to be done. */
extern bool sherman_copies_alone_doubtful(const ShermanMetaPage *meta);
/* ---- copies.c: indexes with a copy on another memory node ---- */

/*
 * Whether a tree that is made for the index now gets a copy.  Warns if it is to have one and there are not memory nodes enough, unless it
 * is rebuilt by itself.
 */
extern bool sherman_copies_wanted(Relation index);
/* Whether an index that can be used lacks the copy that it is to have, and a rebuild would make one now. */
extern bool sherman_copies_can_be_made(Relation index);
/* Connects to its memory nodes, as far as they can be used. */
extern bool sherman_copies_connect(TreeClient *client, const ShermanMetaPage *meta);
/* Tells the handle of a tree that was opened what is on record. */
extern TreeStatus sherman_copies_opened(Relation relation, const ShermanMetaPage *meta, Tree *tree);
/*
 * For an open index that was judged anew: has the copy stand in for a home that is away.  False: the index is to be judged again.
 */
extern bool sherman_copies_follow(Relation relation, ShermanIndex *index);
/* Before the index is changed: gives up a copy that is away.  False: the index is to be judged again. */
extern bool sherman_copies_before_change(Relation relation, ShermanIndex *index);
/*
 * Whether an index that could not be opened, as a memory node did not let this process in, is to be judged once more.
 */
extern bool sherman_opens_again(const ShermanIndex *index, int *attempts);
/* Memory nodes that come and go shall not keep a statement for ever. */
#define SHERMAN_ATTEMPTS_MOST 3

/* tree_record_update() of the tree and of its copy, as far as they are valid. */
extern TreeStatus sherman_record_update(const ShermanMetaPage *meta, TreeRecord *record);
/* As sherman_indexes shows it; NULL: it has no copy. */
extern const char *sherman_copies_text(Relation index, const ShermanMetaPage *meta);
/*
 * In the launcher: finds out which of the memory nodes that are away indexes with a copy may go on without, and keeps doubts.
 * Returns milliseconds until it wants to run again.
 */
extern long sherman_copies_round(void);
/* In the launcher: nobody stands in for this memory node from now on. */
extern void sherman_copies_let_in(int position);
/* In the launcher, at the end: whether copies may differ, and no record says so. */
extern bool sherman_copies_unrecorded(void);

/* ---- failover.c ---- */

/* sherman_record_update(), made again where one of the two memory nodes is lost meanwhile.  Raises. */
extern void sherman_record_note(ShermanIndex *index, Relation relation, TreeRecord *record);

/* ---- compare.c ---- */

/* Where there are both: compares them, and writes anew what of the copy differs.  Raises. */
extern void sherman_copies_repair(Relation relation, ShermanIndex *index, TreeCopyCounts *counts);
/* Where both are good: the number of nodes that differ.  Raises. */
extern uint64 sherman_copies_differ(Relation relation, ShermanIndex *index);

/* ---- pool.c: the memory nodes of this instance ---- */

/* In the startup hook, after sherman_recovery_start(): positions and list. */
extern void sherman_pool_start(ShermanShared *shared);
/* In the launcher, while nothing is attached: the memory nodes of the state file are other ones. */
extern void sherman_pool_adopt(void);
/* Takes the list from the settings as they now are. Launcher, with the lock, and startup hook. */
extern void sherman_pool_configure(ShermanShared *shared);
extern ShermanPhase sherman_node_phase(int position);
/* The launcher has attached a memory node: everybody may use it. */
extern void sherman_node_attached(int position);
/*
 * In the launcher: decides which memory nodes are gone.  Returns milliseconds until another one may be, LONG_MAX: none
 * that is away now.
 */
extern long sherman_pool_find_gone(void);
/* Bit per position: attached. */
extern uint32 sherman_attached_nodes(void);
/* What the launcher could not attach so far is not waited for any more. */
extern void sherman_pool_give_up_waiting(void);
/* Indexes with a copy may go on without a memory node that is closed. */
extern void sherman_node_quiet(int position);
/* An attached memory node is closed for everybody until the launcher has fenced it. */
extern void sherman_node_lost(int position);
/* Copies the list's entry of a position, or of its memory's last address; false: it is not in the list. */
extern bool sherman_node_listed(int position, ShermanListed *listed);
/* Copies the first entry of the list that could not be attached, or if there is none any. */
extern void sherman_first_failure(ShermanListed *listed);

/* ---- node_list.c ---- */

/*
 * Splits sherman.memory_nodes into addresses as fabric_connect() takes them.  Returns their number, or -1:
 * `problem` says why.  addresses NULL: only looks.
 */
extern int	sherman_parse_nodes(const char *list, char (*addresses)[SHERMAN_ADDRESS_BYTES],
								const char **problem);

/* ---- forget.c: memory nodes that are not coming back ---- */

/* In the launcher: forgets those that sessions have asked for. */
extern void sherman_forget_round(void);

/* ---- settings.c ---- */

/* Whether a value of sherman.memory_nodes takes a restart: from the embedded memory node to others, or back. */
extern bool sherman_list_awaits_restart(const char *list);

/* ---- attach.c: the launcher's part in it ---- */

/* After the launcher was started anew: goes on with the memory nodes that are attached. */
extern void sherman_attach_resume(void);
/* One round: attaches what is due, looks after what is attached. */
extern void sherman_attach_round(void);
/* Milliseconds until the next round is due. */
extern long sherman_attach_pause(void);
/* Asked to end: closes the epochs, if no other process of the instance has a connection. False: some have. */
extern bool sherman_attach_end(void);

/* ---- connection.c ---- */

/* This process's client, whatever the phase is; NULL: no memory. */
extern TreeClient *sherman_connection_client(void);
extern void sherman_connection_close(void);
/* Gives up connections to memory nodes that were attached anew. No call of the tree is in progress. */
extern void sherman_connection_refresh(void);
/* At the end of a transaction. */
extern void sherman_connection_end_transaction(void);
/* A subtransaction of this nesting level begins, or is aborted. */
extern void sherman_connection_begin_inside(int level);
extern void sherman_connection_abort_inside(int level);
/* Fills what fabric_open() needs. */
extern void sherman_fabric_options(FabricOptions *options, uint32 incarnation);
/* Writes what an attempt to connect ended with, SHERMAN_FAILURE_BYTES at most; fabric may be NULL. */
extern void sherman_describe_failure(char *failure, FabricStatus status, Fabric *fabric);
/* Why this process could not connect to a memory node that is attached, and the status of that; "" = it did. */
extern const char *sherman_connection_failure(int position, FabricStatus *status);
/* Before the client is closed this is called, which closes what depends on it; in place of an earlier one. */
extern void sherman_connection_before_close(void (*callback) (void));
/* This process is the launcher: it may connect to what is not attached yet, and waits for less long. */
extern void sherman_connection_launcher(void);

/* ---- state.c ---- */
extern ShermanPhase sherman_phase(void);
/*
 * Waits while the index with this metapage is ATTACHING (NULL: while no memory node is attached), at most
 * until attach_timeout after the first who waited began; cancel raises.
 */
extern void sherman_wait_attached(const ShermanMetaPage *meta);
/* Waits for as long as something else is so, at most attach_timeout; cancel raises. */
extern void sherman_wait_while(bool (*waits) (const ShermanMetaPage *meta), const ShermanMetaPage *meta);
/* Raises the error for a memory node that is not attached: that of a position, or with -1 of all. */
extern void sherman_report_away(int elevel, const char *subject, int position);
/* Raises for a state other than OK. */
extern void sherman_report_state(int elevel, Relation index, ShermanState state, ShermanReason reason);
/* Whether leaves of an index that can be used may be in doubt still: their entries are looked up before they count. */
extern bool sherman_is_healing(const ShermanMetaPage *meta);
/*
 * State of a tree, or of one half, by one memory node and by its entry in the table, which is copied if there is one.
 */
extern ShermanState sherman_judge_half(const ShermanMetaPage *meta, int position, uint64 key, ShermanTreeEntry *entry,
									   ShermanReason *reason);
/* sherman_judge() for an index with a copy that nothing else speaks against. */
extern ShermanState sherman_copies_judge(const ShermanMetaPage *meta, ShermanReason *reason);
/* The memory node because of which an index is not reachable; -1: it is on none yet. */
extern int	sherman_away_position(const ShermanMetaPage *meta);
/* Judges an index by its metapage (`sound`: it could be believed), without waiting or connecting. */
extern ShermanState sherman_judge(const ShermanMetaPage *meta, bool sound, ShermanReason *reason);

/* ---- changes.c ---- */

/*
 * The file of an index was copied, and goes if the transaction commits; else the copy does.  In the copy the first
 * change of the tree in this epoch leaves word by itself; this leaves it in the file.
 */
extern void sherman_index_moved(Oid oid);

/* ---- opened.c ---- */

/* Registers the callbacks. */
extern void sherman_opened_install(void);
/* This index changed in place: what this process knows of it is void. */
extern void sherman_index_forget(Oid index);
/* It is being dropped: at the end of the transaction nothing is to be known of it any more. */
extern void sherman_index_dropped(Oid index);
/*
 * The file of a temporary index of this session was emptied, for good: the collector is to free the tree that
 * it named, or to look for it if we do not know it any more.
 */
extern void sherman_index_abandon_tree(Relation index);
/* It has a metapage again, that names no tree. */
extern void sherman_index_set_treeless(Relation index);
/* Says once in each session that a broken index is not used. */
extern void sherman_warn_broken(Relation index, ShermanReason reason);
/* At the end of this transaction the collector is to look at this database. */
extern void sherman_hint_collector(void);

/* ---- on_conflict.c ---- */

/* Installs its hook. */
extern void sherman_on_conflict_install(void);

/* ---- extremes.c ---- */

/* Installs its hook. */
extern void sherman_extremes_install(void);

/* ---- mirror.c ---- */

/* Our access method in this database, whatever its name; of several the oldest. InvalidOid: the extension is not here. */
extern Oid	sherman_access_method(void);
/* Behind a statement that may have changed an operator family of btree's: our mirror of it follows. */
extern void sherman_mirror_changed(Node *statement);
/* Raises unless the columns of an index that is to be built have classes that know as equal what their types do, or were named. */
extern void sherman_check_classes(Relation index);

/* ---- constraints.c ---- */

/*
 * Before a statement: takes the mark from the constraints over sherman indexes that it may give to btree, which knows none, and
 * returns them.  Behind it: gives the mark back, and warns the user of those that are btree's now.
 */
extern List *sherman_constraints_at_risk(Node *statement);
extern void sherman_constraints_after(List *constraints);

/* Refuses to change the mark of a constraint's index. */
extern void sherman_keep_mark(Node *statement);

/*
 * The statement with the access method of the constraints that it makes, if the setting wants it: a copy where
 * the tree may not be written.
 */
extern PlannedStmt *sherman_set_methods(PlannedStmt *statement, bool *read_only_tree);

/* ---- living_trees.c ---- */

/* An index of an access method that is not core's. */
typedef struct ShermanCandidate
{
	Oid			oid;
	bool		temporary;
} ShermanCandidate;

/* Those that are in this database now, as palloc'd ShermanCandidates. */
extern List *sherman_list_candidates(void);

/* A tree that an index names. */
typedef struct ShermanLivingTree
{
	uint64		tree;			/* key */
	uint32		valid;			/* ShermanMetaPage.copies_valid */
} ShermanLivingTree;

/*
 * Collects the trees, keyed by number, as ShermanLivingTree, that the indexes of this database name and that are not broken.  False:
 * not all indexes could be looked at.
 */
extern bool sherman_living_trees(struct HTAB **trees);

/* ---- collector.c ---- */

/* One round of the launcher; returns milliseconds until it wants to run again. */
extern long sherman_collect_round(void);
/* A visit: judges all trees of this database. */
extern void sherman_collect_here(void);

/* ---- healer.c ---- */

/* One round of the launcher; returns milliseconds until it wants to run again. */
extern long sherman_heal_round(void);
/* A visit: heals the indexes of this database that are due. */
extern void sherman_heal_here(void);

/* ---- visits.c: workers that go into one database, do something there and leave ---- */

/* When the library is loaded: what a kind of visit is called in pg_stat_activity, and what it does there, outside of a transaction. */
extern void sherman_visit_define(ShermanVisit kind, const char *name, void (*run) (void));

typedef enum ShermanDatabase
{
	SHERMAN_DATABASE_GONE,
	SHERMAN_DATABASE_INVALID,	/* nobody can connect to it: its DROP was interrupted */
	SHERMAN_DATABASE_THERE
} ShermanDatabase;

/* What becomes of who wants to go there.  In a transaction. */
extern ShermanDatabase sherman_database_look(Oid database);

/*
 * In the launcher: sends a worker into a database and does not wait for it: whatever it does, its end wakes the launcher.
 * False: it cannot be sent now, for one of this kind is there, a command on databases runs or there is no room for a worker.
 */
extern bool sherman_visit_begin(ShermanVisit kind, Oid database);
/* In the launcher: whether a visit of this kind has not ended yet. */
extern bool sherman_visit_lasts(ShermanVisit kind);
/* In the launcher: waits for the visit that it began last. */
extern void sherman_visit_wait(ShermanVisit kind);
/*
 * Before a command that needs a database for itself: from now on no visit begins there, until sherman_visits_allow(), which is called
 * in any case.
 */
extern void sherman_visits_forbid(Oid database);
extern void sherman_visits_allow(int code, Datum argument);
/* Ends the visits there, and waits until they have left; at most for some seconds. */
extern void sherman_visits_end(void);
/* Whether a command needs a database for itself now. */
extern bool sherman_visits_forbidden(Oid database);
extern PGDLLEXPORT void sherman_visit_main(Datum database);

/* ---- databases.c: commands that need a database for themselves ---- */

/*
 * Whether the command is such a one, and the current user has the right to it: then no visit begins in the database, and those that
 * there are are to be ended (sherman_visits_end()).
 */
extern bool sherman_database_begin(struct Node *statement, bool top_level);
/* The command has succeeded. */
extern void sherman_database_end(void);

/* ---- rebuild.c, rebuild_rounds.c, rebuilds.c: sherman.auto_rebuild ---- */
extern Size sherman_rebuilds_bytes(void);
/* Takes up what an earlier run has noted. */
extern void sherman_rebuilds_initialize(void);
/* One round of the launcher; returns milliseconds until it wants to run again. */
extern long sherman_rebuild_round(void);
/* A visit: rebuilds the broken indexes of this database. */
extern void sherman_rebuild_here(void);
/* A relation was made in this process. */
extern void sherman_rebuild_relation_made(Oid relation);

/* ---- rebuilding.c ---- */

/* The index that this process rebuilds by itself, InvalidOid: none. rebuild.c's to write. */
extern Oid	sherman_rebuilding;
/* In a build, now and then: sleeps, if this process rebuilds by itself. Nothing may be locked. */
extern void sherman_rebuild_delay(void);
extern bool sherman_is_rebuilding(void);

/* ---- connection_proxy.c ---- */
extern Size sherman_connection_workers_bytes(void);
extern void sherman_connection_workers_initialize(void);
/* What this process lends as a client of the workers; NULL: there are none. */
extern const FabricProxy *sherman_connection_proxy(void (*sleep) (void *argument, int milliseconds));

/* ---- connection_workers.c ---- */
extern void sherman_register_connection_workers(void);
extern PGDLLEXPORT void sherman_connection_worker_main(Datum argument);

/* ---- capabilities.c ---- */
/* What a memory node vouches for over the connection in use, in words; palloc'd. */
extern char *sherman_capabilities_text(const FabricCapabilities *capabilities);

/* ---- workers.c ---- */
extern PGDLLEXPORT void sherman_node_main(Datum argument);
extern PGDLLEXPORT void sherman_launcher_main(Datum argument);
/* Data channels that the embedded node serves at once. */
extern uint32 sherman_node_channels(void);

#endif							/* SHERMAN_SHARED_H */
