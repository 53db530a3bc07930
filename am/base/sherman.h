/*
 * sherman.h
 *		What the files of am/ share: PostgreSQL's side of the index.
 *
 * README, beside this file, says which of them does what.
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
#define SHERMAN_SUPPORT_PROCS 5
#define SHERMAN_STRATEGIES 5

/* ---- errors.c: the one place that turns a TreeStatus into ereport (I-P1) ---- */

/* Reports the status; `index` may be NULL. Never returns for elevel >= ERROR. Nothing may be locked. */
extern void sherman_report(int elevel, TreeStatus status, const char *detail, Relation index);
/* Raises what a call of the tree with this process's client returned, with the tree's detail. */
extern void sherman_report_failure(TreeStatus status, Relation index) pg_attribute_noreturn();

/* ---- settings (hooks.c defines them in _PG_init) ---- */
extern int	sherman_embedded_memory_mb;		/* sherman.embedded_memory: node memory of the embedded node, 0 = none */
extern bool sherman_embedded_snapshot;	/* sherman.embedded_snapshot: its memory is saved at a clean end */
extern char *sherman_embedded_directory;	/* sherman.embedded_directory: tmpfs that holds it, /dev/shm */
extern int	sherman_cache_mb;				/* sherman.cache_size: inner-node cache in shared memory */
extern int	sherman_connection_workers; /* sherman.connection_workers: 0 = each process connects for itself */
extern int	sherman_attach_timeout_ms;		/* sherman.attach_timeout */
extern int	sherman_operation_timeout_ms;	/* sherman.operation_timeout */
extern int	sherman_collect_interval_s;		/* sherman.collect_interval */
extern int	sherman_on_unavailable;			/* sherman.on_unavailable: ShermanOnUnavailable */
extern int	sherman_gone_after_s;			/* sherman.gone_after: -1 = never */
extern int	sherman_failover_after_ms;
extern bool sherman_auto_rebuild;		/* sherman.auto_rebuild */
extern int	sherman_rebuild_tries;		/* sherman.rebuild_tries: of one index */
extern double sherman_rebuild_cost_delay_ms;	/* sherman.rebuild_cost_delay: 0 = it does not sleep */
extern bool sherman_heal;				/* sherman.heal: after an unclean end, rather than broken */
extern bool sherman_autoheal;			/* sherman.autoheal: the healer sees to indexes in doubt */
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

/* ---- instance.c ---- */

/* True when the library was preloaded and the shared memory is there. */
extern bool sherman_preloaded(void);
/*
 * For loops that wait without a WaitEventSet: PostmasterIsAlive() looks when the kernel has told that the parent died, and believes it
 * alive for ever if another process that was just forked had the pipe open then.  A system call.
 */
extern bool sherman_postmaster_is_gone(void);
/* Epoch in use. */
extern uint32 sherman_epoch(void);

/* ---- metapage.c: block 0 of the main fork, WAL-logged ---- */

#define SHERMAN_MAGIC 0x53484d31	/* "SHM1" */
#define SHERMAN_FORMAT 4
#define SHERMAN_MAX_POOL_NODES TREE_MAX_NODES

#define SHERMAN_META_BROKEN 0x01	/* final; reason and time are set */
#define SHERMAN_META_UNLOGGED 0x02	/* of an unlogged or temporary table: may have no tree yet */
#define SHERMAN_META_POSTINGS 0x04	/* TreeFormat.postings of the tree that it names */

/* ShermanMetaPage.copies_valid: which of them is the tree; without a copy always the first alone. */
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
	SHERMAN_REASON_DAMAGED,			/* a node could not be believed */
	SHERMAN_REASON_FORMAT,			/* written by another version */
	SHERMAN_REASON_NOT_BUILT,		/* what a failed CREATE INDEX or REINDEX CONCURRENTLY leaves behind */
	SHERMAN_REASON_SESSION_ENDED,	/* temporary, and the session did not drop it: never in a metapage */
	SHERMAN_REASON_OTHER_HISTORY,	/* somebody else changed the tree, or we did behind what we were set back to */
	SHERMAN_REASON_GONE,			/* a memory node was away for longer than sherman.gone_after */
	SHERMAN_REASON_ENCODING,		/* this process would encode its keys in another way */
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
	uint32		copies_valid;		/* SHERMAN_VALID_*; who is not is never used again */
	uint8		cell_bytes;			/* TreeFormat, so that a reader can check it against the opclasses' */
	uint8		norm_bytes;
	uint8		lossless;
	uint8		full_separators;
	uint32		nodes;				/* positions of memory nodes below */
	uint32		copy;				/* position of the memory node that has the copy, and 1; 0 = there is none */
	uint64		incarnations[SHERMAN_MAX_POOL_NODES][2];	/* what trees call their memory, and half of its
																 * UUID; the first of the root's must fit */
	uint8		kinds[INDEX_MAX_KEYS];	/* NormalizeKind of each key column: what its bytes in the tree are */
	uint32		collation_versions[INDEX_MAX_KEYS]; /* hash of collation_version() when it was built; 0 = it has none */
	uint32		checksum;			/* of the above */
} ShermanMetaPage;

/* Writes the metapage of a new index (main fork has 0 blocks, or is rebuilt in place). WAL-logged where needed. */
extern void sherman_metapage_create(Relation index, ForkNumber fork, const ShermanMetaPage *meta);
/*
 * Reads it; false: no page, wrong magic, format or checksum (never raises: usable in hooks).  Without a page,
 * meta->magic is 0 and meta->reason says why; it is NONE if another session's temporary index has a page that
 * cannot be believed.
 */
extern bool sherman_metapage_read(Relation index, ShermanMetaPage *meta);
/* Installs a lazily made tree if there is none yet; false: somebody else did (meta is re-read). */
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
extern const char *sherman_reason_text(ShermanReason reason);
/* Notes the format of the tree that it names or will name; how its keys are encoded: sherman_keys_note(). */
extern void sherman_metapage_set_format(ShermanMetaPage *meta, const TreeFormat *format);
/* Whether it was that; fills the postings, which the index's definition alone does not tell. */
extern bool sherman_metapage_has_format(const ShermanMetaPage *meta, TreeFormat *format);

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

/* ---- keys.c ---- */
typedef struct ShermanKeys ShermanKeys;

/*
 * The layout of an index's keys: format, per-column normalization, comparators.  Made in CurrentMemoryContext, from catalogs
 * only (usable before the tree exists).
 */
extern ShermanKeys *sherman_keys_make(Relation index);
/* Whether keys that were made for the index earlier are as they would be made now: its definition has not changed since. */
extern bool sherman_keys_serve(const ShermanKeys *keys, Relation index);
extern const TreeFormat *sherman_keys_format(const ShermanKeys *keys);

/* Notes how this process encodes the keys, and the versions of their collations, for an index that is to be filled by them. */
extern void sherman_keys_note(const ShermanKeys *keys, ShermanMetaPage *meta);
/* Whether the index's keys were encoded as this process would: else it must not be used.  From catalogs only; raises nothing. */
extern bool sherman_keys_fit(Relation index, const ShermanMetaPage *meta);
/* Warns if a collation's order may have changed since the index was built. */
extern void sherman_keys_warn_versions(Relation index, const ShermanMetaPage *meta);

/*
 * Forms the key of a row: normalized bytes and, unless lossless, the image (palloc'd in CurrentMemoryContext).  Raises btree's error
 * (54000) beyond btree's limit, 0A000 for a TID offset above 4095.
 */
extern void sherman_keys_form(ShermanKeys *keys, Relation index, Datum *values, bool *isnull, ItemPointer tid, TreeKey *key);

/* Rebuilds the columns of an entry (datums may point into key->image or CurrentMemoryContext). */
extern void sherman_keys_datums(ShermanKeys *keys, const TreeKey *key, Datum *values, bool *isnull);

/* TreeCompare for trees of this index; argument = ShermanKeys. bound->argument: NULL or a ShermanSearch (scankeys.c). */
extern int sherman_keys_compare(void *argument, const TreeBound *bound, const TreeKey *entry);

/* ---- client.c ---- */

/* This process's client, connected on first use after the launcher attached (waits attach_timeout). Raises. */
extern TreeClient *sherman_client(void);

/* ---- connection.c ---- */

/* As sherman_client(), but NULL instead of an error or a wait: for hooks and views. */
extern TreeClient *sherman_client_if_ready(void);

/*
 * A call of the tree ended with TREE_UNREACHABLE or TREE_FENCED: nobody uses the memory nodes that it met until the
 * launcher has fenced and attached them anew.  Returns them, a bit for each.
 */
extern uint32 sherman_connection_trouble(void);

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
	TreeScan   *spare;			/* for whoever needs one next, made when first needed */
	bool		spare_taken;
	int			alone_credit;	/* unique.c: whether keys are tried to be added alone */
	MemoryContext context;		/* owns keys, tree and spare */
	Relation	relation;		/* of the insert in progress: predicate.c */
	Relation	heap;			/* of the insert in progress: delete.c */
	bool		churn;			/* it is for a new version of a row with the same key */
	TreeStamp	proven;			/* tree_removal_proven() was told */
	ShermanExtreme extremes[2]; /* the least and the greatest value */
} ShermanIndex;

/*
 * Opens (or finds) the index and its state.  Waits while ATTACHING (interruptibly, attach_timeout).  Does not raise
 * for BROKEN, UNREACHABLE or HIDDEN: the caller decides by ->state.
 */
extern ShermanIndex *sherman_index(Relation index);
/* The same without waiting or connecting, for hooks and cost: never raises; state only. */
extern ShermanState sherman_index_state(Relation index, ShermanReason *reason);
/* For scans: raises 55000 (with the reason and the REINDEX hint) or 08006 unless OK. tree NULL = empty (lazy). */
extern ShermanIndex *sherman_index_for_scan(Relation index);
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
/* True if a running scan may go on: the index has not become broken since it was opened. Raises otherwise. */
extern void sherman_index_recheck(ShermanIndex *index, Relation relation);
/*
 * failover.c: calls of the tree that are made again where an index has a copy and one of the two memory nodes was lost meanwhile.
 * What fails then is reported by the caller as ever; what cannot be used any more raises.
 */
extern TreeStatus sherman_scan_next(ShermanIndex *index, Relation relation, TreeScan *scan, const TreeBatch **batch);
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
/* Stamp for inserts: current epoch and LSN with slack (crash-safety.md rule 32). */
extern void sherman_stamp(Relation index, TreeStamp *stamp);
/* The same for what was seen of others' rows: behind all WAL so far. */
extern void sherman_stamp_now(TreeStamp *stamp);
/*
 * Makes removals safe for which the WAL up to `end` is the evidence: flushes it, then notes at the tree how far the history
 * went that they follow from (I-P4). changes.c.
 */
extern void sherman_prove_removal(Relation relation, ShermanIndex *index, XLogRecPtr end);

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
/* By sherman_index_for_insert(). */
extern void sherman_predicate_changes(Relation relation, ShermanIndex *index);
/* Behind every tree_insert() of a row, and every insert that was passed over. Raise 40001. */
extern void sherman_predicate_inserted(Relation relation, const ShermanIndex *index);
/* Before an insert is refused as a duplicate: what the scan reads next is looked at for 40001. */
extern void sherman_predicate_refused(Relation relation, TreeScan *tree_scan);
extern void sherman_predicate_skipped(Relation relation, Relation heap);

/* ---- kill.c: dead marks ---- */

/* Entries of a scan's batch that are dead to everybody. */
typedef struct ShermanKills
{
	int			count;
	TreeDead   *entries;		/* TREE_BATCH_MAX, made when first needed */
} ShermanKills;

/* The entry at this position of the batch, if it has one, is dead. */
extern void sherman_kill_note(ShermanKills *kills, MemoryContext context, const TreeBatch *batch, int position);
/* The scan leaves the batch, which is valid still: marks what was noted. Raises nothing. */
extern void sherman_kill_flush(ShermanKills *kills, const ShermanIndex *index, const TreeBatch *batch);

/* ---- delete.c: entries that go before a leaf is split ---- */

/* Before tree_insert(), behind sherman_index_for_insert(). */
extern void sherman_delete_prepare(ShermanIndex *index, Relation heap, bool index_unchanged);

/* ---- callbacks ---- */
extern IndexBuildResult *sherman_build(Relation heap, Relation index, struct IndexInfo *info);
extern void sherman_buildempty(Relation index);
extern bool sherman_insert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap,
						   IndexUniqueCheck check_unique, bool index_unchanged, struct IndexInfo *info);
extern IndexBulkDeleteResult *sherman_bulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
												 IndexBulkDeleteCallback callback, void *callback_state);
extern IndexBulkDeleteResult *sherman_vacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats);
extern void sherman_costestimate(struct PlannerInfo *root, struct IndexPath *path, double loop_count,
								 Cost *startup, Cost *total, Selectivity *selectivity, double *correlation, double *pages);
/* The storage parameter of constraints' indexes: constraints.c. */
#define SHERMAN_MARK "sherman"
extern bytea *sherman_options(Datum reloptions, bool validate);
extern int	sherman_fillfactor(Relation index);
extern bool sherman_deduplicates(Relation index, const TreeFormat *format);
/* Whether its option says that the index is to have a copy. */
extern bool sherman_wants_copy(Relation index);
/* Registers the storage parameters, once in each process. */
extern void sherman_define_options(void);
extern bool sherman_validate(Oid opclass);
extern char *sherman_buildphasename(int64 phase);
extern IndexScanDesc sherman_beginscan(Relation index, int nkeys, int norderbys);
extern void sherman_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool sherman_gettuple(IndexScanDesc scan, ScanDirection direction);
extern int64 sherman_getbitmap(IndexScanDesc scan, TIDBitmap *bitmap);
extern void sherman_endscan(IndexScanDesc scan);
extern void sherman_markpos(IndexScanDesc scan);
extern void sherman_restrpos(IndexScanDesc scan);
extern bool sherman_canreturn(Relation index, int attribute);
extern Size sherman_estimateparallelscan(void);
extern void sherman_initparallelscan(void *target);
extern void sherman_parallelrescan(IndexScanDesc scan);

/* ---- locks.c ---- */

/* The lock on a key of a unique index, by a hash of it.  Waits; cancel and a deadlock raise. */
extern void sherman_lock_key(Relation index, uint32 key);
extern void sherman_unlock_key(Relation index, uint32 key);
/*
 * The scan barrier: who holds it may look at the rows of entries that he reads meanwhile, whatever his snapshot, for VACUUM
 * gives no TID free that an entry had.  Returns what sherman_scan_barrier_leave() wants.  Waits for next to nobody.
 */
extern uint32 sherman_scan_barrier_hold(Relation index);
/* The same; false: it is not to be had without waiting. */
extern bool sherman_scan_barrier_try(Relation index, uint32 *half);
extern void sherman_scan_barrier_leave(Relation index, uint32 half);
/* For bulkdelete, after its last removal: waits until those who hold the barrier now have left it. */
extern void sherman_scan_barrier_wait(Relation index);

/*
 * Opens and locks table and index, in this order; raises unless it is a sherman index that can be checked, or healed. target.c.
 */
extern void sherman_open_with_table(Oid index_oid, LOCKMODE mode, Relation *heap, Relation *index);

/* The index if it is good and at hand without waiting; else NULL.  Raises nothing. */
extern ShermanIndex *sherman_index_quietly(Relation index);
/*
 * True size for planner and VACUUM: tree_estimate_nodes(), so next to never a round trip, and no call.  False when not known without
 * waiting.
 */
extern bool sherman_size(Relation index, TreeStatistics *statistics);
/* The same for views, with the memory that the index has: tree_estimate(). */
extern bool sherman_memory_size(Relation index, TreeStatistics *statistics);

/* ---- hooks.c, workers.c, recovery.c, collector.c: set up from _PG_init ---- */
extern void sherman_define_settings(void);

/* ---- steps.c: crash points, for tests: what is installed for others has none ---- */
#ifdef SHERMAN_PRODUCTION
#define sherman_define_steps() ((void) 0)
#define sherman_step(name, before) ((void) 0)
#define sherman_client_step() NULL
#else
extern void sherman_define_steps(void);
/* What is done right before or right behind this call outlives the process. Locks may be held; it does not jump. */
extern void sherman_step(const char *name, bool before);
/* What this process's client is to tell its steps; NULL: nobody counts them. */
extern TreeStep *sherman_client_step(void);
/* Has this called whenever steps begin to be counted, or are no more; in place of an earlier one. */
extern void sherman_steps_watch(void (*changed) (void));
#endif

/* XLogFlush(), as a step. */
static inline void
sherman_flush(XLogRecPtr end)
{
	sherman_step("flush of WAL", true);
	XLogFlush(end);
	sherman_step("flush of WAL", false);
}

extern void sherman_install_hooks(void);
extern void sherman_register_workers(void);
extern void sherman_wal_end_install(void);

#endif							/* SHERMAN_AM_H */
