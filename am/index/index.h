/*
 * index.h
 *		The face of am/index: an index, its page, its state, its open handle.
 */
#ifndef SHERMAN_AM_INDEX_H
#define SHERMAN_AM_INDEX_H

#include "utils/snapshot.h"

#include "am/base/shared.h"
#include "am/keys/keys.h"

/* ---- metapage.c ---- */

/* Writes the metapage of a new index (main fork has 0 blocks, or is rebuilt in place). WAL-logged where needed. */
extern void sherman_metapage_create(Relation index, ForkNumber fork, const ShermanMetaPage *meta);
/*
 * Reads it; false: no page, wrong magic, format or checksum (never raises: usable in hooks). Without a page,
 * meta->magic is 0 and meta->reason says why; it is NONE if another session's temporary index has a page that is not
 * valid.
 */
extern bool sherman_metapage_read(Relation index, ShermanMetaPage *meta);
/* Installs a lazily made tree if there is none yet; false: another session did (meta is re-read). */
extern bool sherman_metapage_install_tree(Relation index, ShermanMetaPage *meta);
/*
 * Says by WAL, durably, that the tree is going to be changed in the epoch with this nonce.  `previous`: what its record
 * has now.  False: the metapage names another tree, or is flagged as broken.
 */
extern bool sherman_metapage_adopt(Relation index, uint64 tree, uint64 previous, uint64 nonce);
/*
 * Says by WAL, durably, that of the tree and its copy only this one (SHERMAN_VALID_FIRST or _SECOND) is valid, or makes durable
 * that it was said.  False: the metapage names another tree, is flagged as broken, or says otherwise.
 */
extern bool sherman_metapage_give_up(Relation index, uint64 tree, uint32 valid);
/* Sets BROKEN with reason by WAL, sends the invalidation at once, raises the broken generation. Idempotent. */
extern void sherman_metapage_break(Relation index, ShermanReason reason);
/* Notes the format of the tree that it names or will name; how its keys are encoded: sherman_keys_note(). */
extern void sherman_metapage_set_format(ShermanMetaPage *meta, const TreeFormat *format);
/* Whether it was that; fills the postings, which the index's definition alone does not tell. */
extern bool sherman_metapage_has_format(const ShermanMetaPage *meta, TreeFormat *format);

/* ---- reasons.c ---- */

extern const char *sherman_reason_text(ShermanReason reason);
/* sherman_reason_text(), with the promotion that it follows from. */
extern const char *sherman_why_broken(ShermanReason reason);
/* Why indexes are out of use in this process: sherman_all_hidden(). */
extern const char *sherman_why_hidden(void);
/* Within ereport(): the statement that rebuilds the index. */
extern int	sherman_hint_rebuild(Relation index);

/* ---- trees.c: the table of trees ---- */

/* What the collector has found out about a tree. */
typedef enum ShermanVerdict
{
	SHERMAN_TREE_KNOWN,			/* that it is there */
	SHERMAN_TREE_EXAMINED,		/* nothing yet: hints from now on count anew */
	SHERMAN_TREE_ALIVE,
	SHERMAN_TREE_UNDECIDED,
	SHERMAN_TREE_DEAD
} ShermanVerdict;

extern void sherman_trees_initialize(uint32 trees_in_use);
/* Copies the entry; false: not known. */
extern bool sherman_trees_find(uint64 tree, ShermanTreeEntry *entry);
/* Adds or replaces. False: the table is full. */
extern bool sherman_trees_put(const ShermanTreeEntry *entry);
/* Brings an entry up to date with its record, or adds one. False: the table is full. */
extern bool sherman_trees_note(const TreeRecord *record);
/* The same for the copy of a tree that was made just now, if it has one. */
extern bool sherman_trees_note_replica(const TreeRecord *record);
/* Its record has this epoch and nonce. */
extern void sherman_trees_mutated(uint64 tree, uint32 epoch, uint64 nonce);
/* No leaf is unverified any more. Both are for the tree's replica, too. */
extern void sherman_trees_healed(uint64 tree);
/*
 * Whether a tree and its replica may differ for another reason than that all of it is unverified. `returned`: as in
 * tree_replicas_doubted().
 */
extern bool sherman_trees_replicas_doubted(const ShermanTreeEntry *entry, bool returned);
/* Doubts about replicas whose trees are not known any more: notes a doubt of all trees that have replicas. */
extern void sherman_trees_doubt_replicas(void);
/* The tree was compared with its copy, or has none any more. */
extern void sherman_trees_compared(uint64 tree);
/*
 * Notes a verdict, adding an entry if there is none; returns since when the tree is taken for dead, 0 = it is
 * not.
 */
extern TimestampTz sherman_trees_judge(const TreeRecord *record, ShermanVerdict verdict);
extern void sherman_trees_remove(uint64 tree);
/*
 * On a standby, which lists what its primary has: before all trees at a home are listed (SHERMAN_TREE_EXAMINED), and behind that, when those that
 * were not are forgotten.
 */
extern void sherman_trees_unlist(uint32 home);
extern void sherman_trees_forget_unlisted(uint32 home);
/*
 * The session that had the only metapage that names the tree has made that void, whether or not its transaction
 * commits.
 */
extern void sherman_trees_abandon(uint64 tree);
/* Removes the trees whose home is at a position that is not used now. */
extern void sherman_trees_clear(uint32 home);
/*
 * The next tree for the healer, of those that can be reached: its database, and when. False: there is none.
 */
extern bool sherman_trees_next_to_heal(Oid *database, TimestampTz *due);
/* Marks those of a database that are due for the run that begins (heal_now), and no others; they are due again later each time. */
extern void sherman_trees_take_to_heal(Oid database);
/* A session waits: the healer comes as soon as it can, unless its last run was in vain. */
extern void sherman_trees_heal_soon(uint64 tree);
/* Whether the healer's run has left leaves unverified, as their rows cannot be looked up. */
extern void sherman_trees_heal_vain(uint64 tree, bool vain);
/* The collector looks at none of a database's trees before there is another hint. */
extern void sherman_trees_settle(Oid database);
/* The collector has all trees of a database to prove alive again, or with InvalidOid all trees. */
extern void sherman_trees_unprove(Oid database);
/* Copies all entries into palloc'd memory. */
extern ShermanTreeEntry *sherman_trees_list(int *count);

/* ---- replica_placement.c ---- */

/* The key in the table of trees of the half that is the tree; of any index. */
extern uint64 sherman_tree_key(const ShermanMetaPage *meta);
/* The memory node without which the index cannot be used now. */
extern int	sherman_replicas_away_position(const ShermanMetaPage *meta);
/* Whether the copy is away: sherman_replicas_before_change() is to be called before a change.  Of any index. */
extern bool sherman_replicas_lack_copy(const ShermanMetaPage *meta);
/* Whether the launcher is to check one of its memory nodes, as a session could not connect. */
extern bool sherman_replicas_suspected(const ShermanMetaPage *meta);
/* Whether a tree and its replica may differ, while no leaf is unverified: then only a comparison is needed. */
extern bool sherman_replicas_alone_doubtful(const ShermanMetaPage *meta);
/* ---- state.c ---- */
typedef enum ShermanState
{
	SHERMAN_OK,
	SHERMAN_ATTACHING,		/* the launcher has not attached yet: wait */
	SHERMAN_UNREACHABLE,	/* transient; nothing skipped so far */
	SHERMAN_BROKEN,			/* final: REINDEX */
	SHERMAN_HIDDEN			/* recovery, binary upgrade, single user, not preloaded */
} ShermanState;

extern const char *sherman_state_name(ShermanState state);

/*
 * Waits while the index with this metapage is ATTACHING (NULL: while no memory node is attached), at most until
 * attach_timeout after the first session began to wait, and not at all where sherman_promotion_waits(); cancel raises.
 */
extern void sherman_wait_attached(const ShermanMetaPage *meta);
/*
 * For a change, where sherman_promotion_waits(): until a synchronous standby follows this server, without a limit if this process's commits
 * would wait for it, else, and in autovacuum, for attach_timeout; cancel raises.  False: none does.
 */
extern bool sherman_wait_followed(void);
/* Waits for as long as something else is so, at most attach_timeout; cancel raises. */
extern void sherman_wait_while(bool (*waits) (const ShermanMetaPage *meta), const ShermanMetaPage *meta);
/*
 * Whether a snapshot (or InvalidSnapshot) was taken before this server was promoted.  It may see rows whose entries the old primary has marked
 * as dead, or which have been removed since: no index is read by it.
 */
extern bool sherman_snapshot_is_of_standby(Snapshot snapshot);
/* Raises for a state other than OK. */
extern void sherman_report_state(int elevel, Relation index, ShermanState state, ShermanReason reason);
/* Whether leaves of a usable index may still be unverified: their entries are looked up before they count. */
extern bool sherman_is_healing(const ShermanMetaPage *meta);
/*
 * State of a tree, or of one half, by one memory node and by its entry in the table, which is copied if there is one.
 */
extern ShermanState sherman_half_determine(const ShermanMetaPage *meta, int position, uint64 key, ShermanTreeEntry *entry,
									   ShermanReason *reason);
/* sherman_state_determine() for an index with a copy that nothing else speaks against. */
extern ShermanState sherman_replicas_determine(const ShermanMetaPage *meta, ShermanReason *reason);
/* The memory node because of which an index is not reachable; -1: it is on none yet. */
extern int	sherman_away_position(const ShermanMetaPage *meta);
/* The state of an index by its metapage (`sound`: the page is valid), without waiting or connecting. */
extern ShermanState sherman_state_determine(const ShermanMetaPage *meta, bool sound, ShermanReason *reason);

/*
 * Raises 40001, as core does where a standby has to go on and a query is in the way: what of an index the query has read is not to be used, or
 * not any more.  NULL: of some index.
 */
extern _Noreturn void sherman_report_conflict(Relation index, const char *why);

/* ---- state_text.c: in words, palloc'd or constant ---- */

/* Why an index is in its state; `meta`: of a valid page, or NULL.  NULL: the state is ok, and no leaf is unverified. */
extern const char *sherman_state_text(const ShermanMetaPage *meta, ShermanState state, ShermanReason reason);
/* A memory node of the index that did not let this session in, though it is attached; -1: there is none. */
extern int	sherman_refused_position(const ShermanMetaPage *meta);

/* ---- command_client.c ---- */

/* This process's client, connected on first use after the launcher attached (waits attach_timeout). Raises. */
extern TreeClient *sherman_client(void);

/* ---- open_index.c, write_guard.c, failover.c ---- */

/* An end of an index's first column, as the planner read it: extremes.c. */
typedef struct ShermanExtreme
{
	TimestampTz read_at;		/* 0 = not yet, or this process has added an entry since */
	bool		found;
	Datum		value;			/* in the index's context */
} ShermanExtreme;

/* An open index of this process: lives in TopMemoryContext until the relcache entry changes and the transaction ends. */
typedef struct ShermanIndex
{
	Oid			oid;
	ShermanState state;
	ShermanReason reason;
	ShermanMetaPage meta;
	ShermanKeys *keys;
	Tree	   *tree;			/* NULL unless state is SHERMAN_OK (and meta.tree is not 0) */
	uint64		generation;		/* of the shared state when it was checked */
	bool		break_durable;	/* this process made sure that the metapage says "broken", durably */
	uint32		mutated_epoch;	/* epoch in which this process made sure that the tree record says "mutated" */
	TreeScan   *spare;			/* a spare scan for the next user, made when first needed */
	bool		spare_taken;
	int			alone_credit;	/* unique.c: whether keys are tried to be added alone */
	MemoryContext context;		/* owns keys, tree and spare */
	Relation	relation;		/* of the insert or VACUUM in progress: predicate.c */
	Relation	heap;			/* of the insert in progress: bottomup_delete.c */
	bool		churn;			/* it is for a new version of a row with the same key */
	bool		splits_told;	/* sherman_predicate_changes() was called */
	bool		full_told;		/* the tree was told whom to ask about full leaves, */
	bool		full_churn;		/* as for this `churn` */
	TreeWalPosition	proven;			/* tree_removal_proven() was told */
	XLogRecPtr	proven_end;		/* where the evidence ends, */
	uint64		proven_horizon;	/* and which transactions' deletions standbys were told of */
	struct						/* on a standby: the tree's record was believed (am/standby/replay.c) */
	{
		uint64		serial;		/* when memory nodes had been attached so often; 0: never */
		uint64		nonce;		/* and the primary's last run that was known */
		uint32		epoch;
	}			believed;
	ShermanExtreme extremes[2]; /* the least and the greatest value */
} ShermanIndex;

/*
 * Opens (or finds) the index and its state.  Waits while ATTACHING (interruptibly, attach_timeout).  Does not raise
 * for BROKEN, UNREACHABLE or HIDDEN: the caller decides by ->state.
 */
extern ShermanIndex *sherman_index(Relation index);
/* The same without waiting or connecting, for hooks and cost: never raises; state only. */
extern ShermanState sherman_index_state(Relation index, ShermanReason *reason);
/*
 * For scans: raises 55000 (with the reason and the REINDEX hint) or 08006 unless OK. tree NULL = empty (lazy).  `lazily`: memory nodes that
 * are there, as far as the launcher knows, are connected to when the scan has something to fetch there (doc/internals/planner.md).
 */
extern ShermanIndex *sherman_index_for_scan(Relation index, bool lazily);
/* The same for a scan that looks for the rows with one key, and at those that are announced (announced.h) as well. */
extern ShermanIndex *sherman_index_for_key(Relation index);
/* For inserts: makes a lazy tree, marks the tree as mutated in this epoch. NULL: broken and non-constraint: skip the insert. Raises else. */
extern ShermanIndex *sherman_index_for_insert(Relation index);
/*
 * Lends a scan of the index's tree, which is not NULL: a kept one, or one made in CurrentMemoryContext while that is lent.
 * To be given back unless the transaction ends; an error may keep the kept one out of use until then.
 */
extern TreeStatus sherman_take_scan(ShermanIndex *index, TreeScan **scan);
extern void sherman_return_scan(ShermanIndex *index, TreeScan *scan);
/* For vacuum: as insert; NULL: broken, nothing is removed (flag is durable before anything is skipped). */
extern ShermanIndex *sherman_index_for_vacuum(Relation index);
/* Whether the record says already that the tree is changed in this epoch. */
extern bool sherman_index_is_mutated(const ShermanIndex *index);
/*
 * Entries of this process wait to be added, or none do (NULL): it adds those of an index before a scan of its tree begins or goes
 * on; but for those that are announced, if that is what the scan looks at (`sees_announced`).  It may raise.
 */
extern void (*sherman_add_before_reads) (Relation index, bool sees_announced);
static inline void
sherman_index_read_begins(Relation index, bool sees_announced)
{
	if (unlikely(sherman_add_before_reads != NULL))
		sherman_add_before_reads(index, sees_announced);
}
/* Raises unless a running scan may go on: the index has not become broken since it was opened. */
extern void sherman_index_refresh(ShermanIndex *index, Relation relation);
static inline void
sherman_index_recheck_for(ShermanIndex *index, Relation relation, bool sees_announced)
{
	sherman_index_read_begins(relation, sees_announced);
	if (unlikely(index->state != SHERMAN_OK || index->generation != sherman_generation()))
		sherman_index_refresh(index, relation);
}
static inline void
sherman_index_recheck(ShermanIndex *index, Relation relation)
{
	sherman_index_recheck_for(index, relation, false);
}
/*
 * failover.c: calls of the tree that are made again where an index has a copy and one of the two memory nodes was lost meanwhile.
 * What fails then is reported by the caller as ever; what cannot be used any more raises.
 */
extern TreeStatus sherman_scan_again(ShermanIndex *index, Relation relation, TreeScan *scan, const TreeBatch **batch,
									 TreeStatus status);
static inline TreeStatus
sherman_scan_next(ShermanIndex *index, Relation relation, TreeScan *scan, const TreeBatch **batch)
{
	TreeStatus	status = tree_scan_next(scan, batch);

	return likely(status == TREE_OK || status == TREE_END) ? status : sherman_scan_again(index, relation, scan, batch, status);
}
extern TreeStatus sherman_scan_load(ShermanIndex *index, Relation relation, TreeScan *scan);
extern TreeStatus sherman_batch_key(ShermanIndex *index, Relation relation, TreeScan *scan, const TreeBatch *batch, int position,
									TreeKey *key);
extern TreeStatus sherman_batch_unchanged(ShermanIndex *index, Relation relation, TreeScan *scan, const TreeBatch *batch,
										  bool *unchanged);
/*
 * Whether a call that ended with this status is to be made again: then the index can be used, as sherman_index_recheck() has it; for
 * a change sherman_index_for_insert() is called first.  `attempts`: 0 before the first call.
 */
extern bool sherman_try_again(ShermanIndex *index, Relation relation, TreeStatus status, int *attempts);
/* The same for a change that goes on with the very handle of the tree: the index may be changed by it then. */
extern bool sherman_change_again(ShermanIndex *index, Relation relation, TreeStatus status, int *attempts);
/* Makes a new tree for ambuild and returns its record; registered for freeing on abort as a hint to the collector. */
extern void sherman_tree_new(Relation index, const TreeFormat *format, TreeRecord *record);
/* WAL position for inserts: current epoch and LSN with slack. */
extern void sherman_wal_position(Relation index, TreeWalPosition *wal);
/* The same for what was seen of others' rows: behind all WAL so far. */
extern void sherman_wal_position_now(TreeWalPosition *wal);

/* ---- removal.c ---- */

/*
 * Makes removals safe for which the WAL up to `end` is the evidence: flushes it, then notes at the tree how far the history
 * went that they follow from (I-P4).
 */
extern void sherman_prove_removal(Relation relation, ShermanIndex *index, XLogRecPtr end);
/* Whether it was made safe for evidence up to `end`, and for rows that were deleted by transactions up to this one. */
extern bool sherman_removal_is_proven(Relation relation, const ShermanIndex *index, XLogRecPtr end, TransactionId deleted);
/* Whether a standby may read the index. */
extern bool sherman_standbys_may_read(Relation index);
/*
 * This process has learned that rows of this database are dead to everybody, which transactions up to this one have deleted
 * (InvalidTransactionId: nobody has); or rows of this table, of which it knows no more than that.
 */
extern void sherman_note_dead(TransactionId deleted);
/*
 * The youngest transaction that may have deleted a row which some process has pruned: the xmin of this one, if it has any, has held back later
 * ones, and so has the keeper of the horizon.
 */
extern TransactionId sherman_youngest_pruned(void);
extern void sherman_note_dead_now(Relation table);

/* A transaction of not long ago with its epoch, as FullTransactionId. */
extern uint64 sherman_full_xid(TransactionId xid);

/* The index if it is good and at hand without waiting; else NULL.  Raises nothing.  `lazily`: as for a scan. */
extern ShermanIndex *sherman_index_quietly(Relation index, bool lazily);
/*
 * True size for planner and VACUUM: tree_estimate_nodes(), so next to never a round trip, and no call.  False when not known without
 * waiting.
 */
extern bool sherman_size(Relation index, TreeStatistics *statistics);
/* The same for views, with the memory that the index has: tree_estimate(). */
extern bool sherman_memory_size(Relation index, TreeStatistics *statistics);

/* Registers the callbacks. */
extern void sherman_opened_install(void);
/* This index changed in place: what this process knows of it is void. */
extern void sherman_index_forget(Oid index);
/* It is being dropped: at the end of the transaction nothing is to be known of it any more. */
extern void sherman_index_dropped(Oid index);
/*
 * The file of a temporary index of this session was truncated, and that cannot be rolled back: the collector is to
 * free the tree that it named, or to search for it if we do not know it any more.
 */
extern void sherman_index_abandon_tree(Relation index);
/* It has a metapage again, that names no tree. */
extern void sherman_index_set_treeless(Relation index);
/* Says once in each session that a broken index is not used. */
extern void sherman_warn_broken(Relation index, ShermanReason reason);
/* At the end of this transaction the collector is to look at this database. */
extern void sherman_hint_collector(void);

/*
 * The file of an index was copied, and goes if the transaction commits; else the copy does.  In the copy the first
 * change of the tree in this epoch leaves word by itself; this leaves it in the file.
 */
extern void sherman_index_moved(Oid oid);

/* ---- replicas.c: indexes with a copy on another memory node ---- */

/*
 * Whether a tree that is made for the index now gets a copy.  Warns if it is to have one and there are not memory nodes enough, unless it
 * is rebuilt by itself.
 */
extern bool sherman_replicas_wanted(Relation index);
/* Whether an index that can be used lacks the copy that it is to have, and a rebuild would make one now. */
extern bool sherman_replicas_can_be_made(Relation index);
/* Connects to its memory nodes, as far as they can be used. */
extern bool sherman_replicas_connect(TreeClient *client, const ShermanMetaPage *meta);
/* Tells the handle of a tree that was opened what is on record. */
extern TreeStatus sherman_replicas_opened(Relation relation, const ShermanMetaPage *meta, Tree *tree);
/*
 * For an open index whose state was determined anew: replaces a home that is away by the replica. False: its state is to be
 * determined again.
 */
extern bool sherman_replicas_follow(Relation relation, ShermanIndex *index);
/* Before the index is changed: gives up a copy that is away.  False: its state is to be determined again. */
extern bool sherman_replicas_before_change(Relation relation, ShermanIndex *index);
/*
 * Whether an index that could not be opened, as a memory node did not let this process in, is to be opened once more.
 */
extern bool sherman_opens_again(const ShermanIndex *index, int *attempts);
/* The most times that a statement is tried again as memory nodes come and go. */
#define SHERMAN_ATTEMPTS_MOST 3

/* tree_record_update() of the tree and of its copy, as far as they are valid. */
extern TreeStatus sherman_record_update(const ShermanMetaPage *meta, TreeRecord *record);
/* As sherman_stat_indexes shows it; NULL: it has no copy. */
extern const char *sherman_replicas_text(Relation index, const ShermanMetaPage *meta);
/*
 * In the launcher: finds out which absent memory nodes indexes with replicas may do without, and records doubts.
 * Returns milliseconds until it wants to run again.
 */
extern long sherman_replicas_round(void);
/* In the launcher: from now on no replica replaces this memory node. */
extern void sherman_replicas_admit(int position);
/* In the launcher, at the end: whether copies may differ, and no record says so. */
extern bool sherman_replicas_unrecorded(void);

/* ---- failover.c ---- */

/* sherman_record_update(), made again where one of the two memory nodes is lost meanwhile.  Raises. */
extern void sherman_record_note(ShermanIndex *index, Relation relation, TreeRecord *record);

/* ---- compare.c ---- */

/* Where there are both: compares them, and writes anew what of the copy differs.  Raises. */
extern void sherman_replicas_repair(Relation relation, ShermanIndex *index, TreeReplicaCounts *counts);
/* Where both are good: the number of nodes that differ.  Raises. */
extern uint64 sherman_replicas_differ(Relation relation, ShermanIndex *index);

/* ---- predicate.c: SERIALIZABLE ---- */

/* What the hook of a scan's leaves needs; lives as long as the tree's scan. */
typedef struct ShermanPredicateScan
{
	IndexScanDesc scan;
	ShermanIndex *index;
} ShermanPredicateScan;

extern void sherman_predicate_scan(ShermanPredicateScan *reader, IndexScanDesc scan, ShermanIndex *index,
								   TreeScan *tree_scan);
extern ShermanIndex *sherman_predicate_empty(IndexScanDesc scan, ShermanIndex *index);
/* Before the first insert, and before VACUUM merges leaves: splits and merges copy locks, of the relation that index->relation is. */
extern void sherman_predicate_changes(ShermanIndex *index);
/* Behind every tree_insert() of a row in a serializable transaction, and every insert that was passed over. Raise 40001. */
extern void sherman_predicate_inserted(Relation relation, const ShermanIndex *index);
/* Before an insert is refused as a duplicate: what the scan reads next is looked at for 40001. */
extern void sherman_predicate_refused(Relation relation, TreeScan *tree_scan);
extern void sherman_predicate_skipped(Relation relation, Relation heap);

/* ---- replayed.c ---- */

/*
 * On a standby: whether the metapage of an index that is open, as far as it is replayed, says the same of its halves, and whether it is
 * broken, as when it was opened.  The second raises if not.
 */
extern bool sherman_metapage_stands(const ShermanIndex *index, Relation relation);
extern void sherman_metapage_check(const ShermanIndex *index, Relation relation);

/* ---- heal_wait.c ---- */

/*
 * Waits until the healer has healed an index whose rows this session may not look up. Raises sherman_report_doubt()
 * if the healer does not come, comes in vain, or takes longer than sherman.heal_timeout; cancel raises. The session
 * may hold what a scan or an insert holds.
 */
extern void sherman_heal_wait(Relation index);
/* Raises 55000: entries of the index are unverified, and this session may not look up their rows. */
extern _Noreturn void sherman_report_doubt(Relation index);

#endif							/* SHERMAN_AM_INDEX_H */
