/*
 * compat.h
 *		What differs between PostgreSQL's versions.  PG_VERSION_NUM is tested here and nowhere else; where whole functions differ there
 *		are files NAME_pgNN.c, of which the Makefile takes those of the version, or of the one before it.
 *
 * Names and arguments are those of the newest version, as far as the older ones let them.
 */
#ifndef SHERMAN_COMPAT_H
#define SHERMAN_COMPAT_H

#include "access/amapi.h"
#include "access/genam.h"
#include "access/multixact.h"
#include "access/nbtxlog.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_database.h"
#include "catalog/pg_tablespace.h"
#include "commands/explain.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "optimizer/restrictinfo.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "replication/message.h"
#include "replication/walsender_private.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/smgr.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/guc_tables.h"
#include "utils/memutils.h"
#include "utils/pg_locale.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplesort.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "sherman is for PostgreSQL 15 to 19"
#endif

#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/* ---- WAL ---- */

/* GetXLogInsertEndRecPtr() came with these minor versions. */
#if PG_VERSION_NUM >= 180004 || \
	(PG_VERSION_NUM >= 170010 && PG_VERSION_NUM < 180000) || \
	(PG_VERSION_NUM >= 160014 && PG_VERSION_NUM < 170000) || \
	(PG_VERSION_NUM >= 150018 && PG_VERSION_NUM < 160000)
#define COMPAT_HAS_WAL_END
#endif

/*
 * The end of the WAL inserted so far, as a position that XLogFlush() accepts.  GetXLogInsertRecPtr() is not
 * one: on a page boundary it points behind the next page's header, which may not exist yet.  Minor versions
 * without GetXLogInsertEndRecPtr() get a record of ours to flush up to.
 */
static inline XLogRecPtr
compat_wal_end(void)
{
#if defined(COMPAT_HAS_WAL_END)
	return GetXLogInsertEndRecPtr();
#elif PG_VERSION_NUM >= 170000
	return LogLogicalMessage("sherman", "", 0, false, false);
#else
	return LogLogicalMessage("sherman", "", 0, false);
#endif
}

static inline bool
compat_is_autovacuum(void)
{
#if PG_VERSION_NUM >= 170000
	return AmAutoVacuumWorkerProcess();
#else
	return IsAutoVacuumWorkerProcess();
#endif
}

/*
 * Whether there are synchronous standbys to wait for, by synchronous_standby_names; with SyncRepLock held.
 */
static inline bool
compat_standbys_defined(void)
{
#if defined(SYNC_STANDBY_DEFINED)
	return (WalSndCtl->sync_standbys_status & SYNC_STANDBY_DEFINED) != 0;
#else
	return WalSndCtl->sync_standbys_defined;
#endif
}

/* How a position in the WAL is written, as pg_lsn is. */
#if PG_VERSION_NUM >= 190000
#define COMPAT_LSN "%X/%08X"
#else
#define COMPAT_LSN "%X/%X"
#endif

/*
 * Writes WAL that has standbys cancel queries which see rows that these transactions, and those before them, have deleted: a record of
 * btree's that does nothing else.  Returns its end.
 */
static inline XLogRecPtr
compat_log_conflict(Relation index, FullTransactionId deleted)
{
	xl_btree_reuse_page record = {.block = InvalidBlockNumber};

#if PG_VERSION_NUM >= 160000
	record.locator = index->rd_locator;
	record.snapshotConflictHorizon = deleted;
#else
	record.node = index->rd_node;
	record.latestRemovedFullXid = deleted;
#endif
	XLogBeginInsert();
	XLogRegisterData((void *) &record, SizeOfBtreeReusePage);
	return XLogInsert(RM_BTREE_ID, XLOG_BTREE_REUSE_PAGE);
}

/*
 * Whether this process takes deletions of a transaction for seen by everybody.
 */
static inline bool
compat_is_removable(GlobalVisState *visible, TransactionId xid)
{
#if PG_VERSION_NUM >= 190000
	return GlobalVisTestIsRemovableXid(visible, xid, true);
#else
	return GlobalVisTestIsRemovableXid(visible, xid);
#endif
}

/* ---- settings ---- */

/*
 * All settings of this process, and how many there are.
 */
static inline struct config_generic **
compat_settings(int *count)
{
#if PG_VERSION_NUM >= 160000
	return get_guc_variables(count);
#else
	*count = GetNumConfigOptions();
	return get_guc_variables();
#endif
}

/*
 * Has pg_settings show of a setting that can be reloaded that its new value, all the same, takes a restart; or not.
 */
static inline void
compat_set_pending_restart(const char *name, bool pending)
{
	int			count;
	struct config_generic **settings = compat_settings(&count);

	for (int i = 0; i < count; i++)
	{
		if (strcmp(settings[i]->name, name) == 0)
			settings[i]->status = pending ? settings[i]->status | GUC_PENDING_RESTART :
				settings[i]->status & ~GUC_PENDING_RESTART;
	}
}

/* ---- processes ---- */

/*
 * This process's number, which no other one has as long as it lives.
 */
static inline int
compat_proc_number(void)
{
#if PG_VERSION_NUM >= 170000
	return MyProcNumber;
#else
	return MyProc->pgprocno;
#endif
}

/*
 * The same of another process.
 */
static inline int
compat_number_of(const PGPROC *process)
{
#if PG_VERSION_NUM >= 170000
	return GetNumberFromPGProc(process);
#else
	return process->pgprocno;
#endif
}

/*
 * A set of events that lives as long as the process.
 */
static inline WaitEventSet *
compat_wait_events(int count)
{
#if PG_VERSION_NUM >= 170000
	return CreateWaitEventSet(NULL, count);
#else
	return CreateWaitEventSet(TopMemoryContext, count);
#endif
}

/*
 * A wait event by this name, made in the postmaster while it makes shared memory.
 */
static inline uint32
compat_new_wait_event(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	return PG_WAIT_EXTENSION;
#endif
}

/* ---- rights ---- */

/*
 * Whether this user owns an object of a catalog: a relation, or a database.
 */
static inline bool
compat_owns(Oid catalog, Oid object)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(catalog, object, GetUserId());
#else
	return catalog == DatabaseRelationId ? pg_database_ownercheck(object, GetUserId()) : pg_class_ownercheck(object, GetUserId());
#endif
}

static inline bool
compat_may_create_in(Oid tablespace)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(TableSpaceRelationId, tablespace, GetUserId(), ACL_CREATE) == ACLCHECK_OK;
#else
	return pg_tablespace_aclcheck(tablespace, GetUserId(), ACL_CREATE) == ACLCHECK_OK;
#endif
}

/* ---- access methods ---- */

/*
 * Room for the callbacks that a handler returns: from 19 on core keeps what it gets, and before it frees that.
 */
static inline IndexAmRoutine *
compat_new_routine(void)
{
#if PG_VERSION_NUM >= 190000
	static IndexAmRoutine routine = {.type = T_IndexAmRoutine};

	return &routine;
#else
	return makeNode(IndexAmRoutine);
#endif
}

/*
 * Frees what GetIndexAmRoutine() has returned, where it is the caller's.
 */
static inline void
compat_free_routine(const IndexAmRoutine *routine)
{
#if PG_VERSION_NUM < 190000
	pfree(unconstify(IndexAmRoutine *, routine));
#endif
}

/* ---- hash tables ---- */

/* What the function gets that allocates a hash table's memory. */
#if PG_VERSION_NUM >= 190000
#define COMPAT_HASH_ALLOC_PARAMETERS Size bytes, void *argument
#else
#define COMPAT_HASH_ALLOC_PARAMETERS Size bytes
#endif

/* ---- collations ---- */

/*
 * The locale of libc that PostgreSQL compares by, for a collation of libc's. (locale_t) 0: that of the process.
 */
static inline locale_t
compat_libc_locale(pg_locale_t locale)
{
#if PG_VERSION_NUM >= 190000
	return locale->lt;
#else
	return locale != NULL ? locale->info.lt : (locale_t) 0;
#endif
}

#if PG_VERSION_NUM < 170000
#define Anum_pg_collation_colllocale Anum_pg_collation_colliculocale
#define Anum_pg_database_datlocale Anum_pg_database_daticulocale
#endif

/* ---- logical replication ---- */

/*
 * Whether apply workers find rows by indexes of btree and hash alone, as in 17.
 */
static inline bool
compat_apply_wants_btree(void)
{
#if PG_VERSION_NUM >= 170000 && PG_VERSION_NUM < 180000
	return true;
#else
	return false;
#endif
}

/* ---- tables ---- */

static inline TableScanDesc
compat_beginscan(Relation table, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan(table, snapshot, 0, NULL, SO_NONE);
#else
	return table_beginscan(table, snapshot, 0, NULL);
#endif
}

static inline TableScanDesc
compat_beginscan_parallel(Relation table, ParallelTableScanDesc shared)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan_parallel(table, shared, SO_NONE);
#else
	return table_beginscan_parallel(table, shared);
#endif
}

static inline IndexFetchTableData *
compat_fetch_begin(Relation table)
{
#if PG_VERSION_NUM >= 190000
	return table_index_fetch_begin(table, SO_NONE);
#else
	return table_index_fetch_begin(table);
#endif
}

#if PG_VERSION_NUM < 190000
/*
 * To be called when all of a descriptor's columns are there.
 */
static inline void
TupleDescFinalize(TupleDesc descriptor)
{
}

static inline void
PageSetChecksum(Page page, BlockNumber block)
{
	PageSetChecksumInplace(page, block);
}
#endif

/* ---- files of relations ---- */

#if PG_VERSION_NUM < 160000
typedef RelFileNode RelFileLocator;
/* Direct I/O, which needs more, came with 16. */
typedef PGAlignedBlock PGIOAlignedBlock;
#endif

static inline RelFileLocator
compat_file(Relation relation)
{
#if PG_VERSION_NUM >= 160000
	return relation->rd_locator;
#else
	return relation->rd_node;
#endif
}

static inline bool
compat_same_file(RelFileLocator file, RelFileLocator other)
{
#if PG_VERSION_NUM >= 160000
	return RelFileLocatorEquals(file, other);
#else
	return RelFileNodeEquals(file, other);
#endif
}

static inline Oid
compat_file_number(RelFileLocator file)
{
#if PG_VERSION_NUM >= 160000
	return file.relNumber;
#else
	return file.relNode;
#endif
}

/*
 * Whether this transaction has given the relation a new file.
 */
static inline bool
compat_has_new_file(Relation relation)
{
#if PG_VERSION_NUM >= 160000
	return relation->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
#else
	return relation->rd_firstRelfilenodeSubid != InvalidSubTransactionId;
#endif
}

/*
 * A file among those that all databases share.
 */
static inline RelFileLocator
compat_global_file(Oid number)
{
#if PG_VERSION_NUM >= 160000
	return (RelFileLocator) {.spcOid = GLOBALTABLESPACE_OID,.dbOid = InvalidOid,.relNumber = number};
#else
	return (RelFileNode) {.spcNode = GLOBALTABLESPACE_OID,.dbNode = InvalidOid,.relNode = number};
#endif
}

static inline SMgrRelation
compat_open_global(Oid number)
{
#if PG_VERSION_NUM >= 170000
	return smgropen(compat_global_file(number), INVALID_PROC_NUMBER);
#else
	return smgropen(compat_global_file(number), InvalidBackendId);
#endif
}

/*
 * A buffer with the first page of such a file.
 */
static inline Buffer
compat_read_global(Oid number, ReadBufferMode mode)
{
	return ReadBufferWithoutRelcache(compat_global_file(number), MAIN_FORKNUM, 0, mode, NULL, true);
}

/*
 * Adds a page to such a file, which no other process does at the time.  Returns its buffer, locked exclusively.
 */
static inline Buffer
compat_extend_global(Oid number)
{
#if PG_VERSION_NUM >= 160000
	return ExtendBufferedRel(BMR_SMGR(compat_open_global(number), RELPERSISTENCE_PERMANENT), MAIN_FORKNUM, NULL,
							 EB_LOCK_FIRST | EB_SKIP_EXTENSION_LOCK);
#else
	return ReadBufferWithoutRelcache(compat_global_file(number), MAIN_FORKNUM, P_NEW, RBM_ZERO_AND_LOCK, NULL, true);
#endif
}

/* ---- the planner ---- */

/*
 * Keeps core from reading the ends of an index, as it does from 18 on while it plans with any ordered one that is not hypothetical: it waits for
 * memory nodes and for the healer, and fails with them.  extremes.c reads them.
 */
static inline void
compat_keep_ends(IndexOptInfo *info)
{
#if PG_VERSION_NUM >= 180000
	info->hypothetical = true;
#endif
}

/*
 * Whether an index is there, and not only proposed by an extension.
 */
static inline bool
compat_index_is_there(const IndexOptInfo *info)
{
#if PG_VERSION_NUM >= 180000
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(info->indexoid));
#else
	return !info->hypothetical;
#endif
}

/*
 * A restriction that a clause follows from, of the same relations and behind the same joins, for the clause.
 */
static inline RestrictInfo *
compat_restriction_like(PlannerInfo *root, Expr *clause, const RestrictInfo *restriction)
{
#if PG_VERSION_NUM >= 160000
	return make_restrictinfo(root, clause, restriction->is_pushed_down, restriction->has_clone, restriction->is_clone, false,
							 restriction->security_level, NULL, restriction->incompatible_relids, restriction->outer_relids);
#else
	return make_restrictinfo(root, clause, restriction->is_pushed_down, restriction->outerjoin_delayed, false,
							 restriction->security_level, NULL, restriction->outer_relids, restriction->nullable_relids);
#endif
}

/*
 * How many elements an array has, as far as the planner can tell.
 */
static inline double
compat_array_length(PlannerInfo *root, Node *array)
{
#if PG_VERSION_NUM >= 170000
	return estimate_array_length(root, array);
#else
	return estimate_array_length(array);
#endif
}

/*
 * The operator of a row comparison, as btree's strategy.
 */
static inline StrategyNumber
compat_row_comparison(const RowCompareExpr *comparison)
{
	/* CompareType and RowCompareType have btree's numbers. */
#if PG_VERSION_NUM >= 180000
	return (StrategyNumber) comparison->cmptype;
#else
	return (StrategyNumber) comparison->rctype;
#endif
}

/* The last argument of a planner, from 19 on. */
#if PG_VERSION_NUM >= 190000
#define COMPAT_EXPLAIN_PARAMETER , ExplainState *explain
#define COMPAT_EXPLAIN_ARGUMENT , explain
#else
#define COMPAT_EXPLAIN_PARAMETER
#define COMPAT_EXPLAIN_ARGUMENT
#endif

/* ---- the executor ---- */

/* The last argument of ExecutorRun(), which 18 has no more. */
#if PG_VERSION_NUM >= 180000
#define COMPAT_ONCE_PARAMETER
#define COMPAT_ONCE_ARGUMENT
#else
#define COMPAT_ONCE_PARAMETER , bool execute_once
#define COMPAT_ONCE_ARGUMENT , execute_once
#endif

#if PG_VERSION_NUM < 180000
/*
 * What EXPLAIN does with a statement where no hook does it: 17 has a function for it.
 */
static inline void
compat_explain_one_query(Query *query, int options, IntoClause *into, ExplainState *es, const char *text, ParamListInfo params,
						 QueryEnvironment *environment)
{
#if PG_VERSION_NUM >= 170000
	standard_ExplainOneQuery(query, options, into, es, text, params, environment);
#else
	BufferUsage before = pgBufferUsage;
	BufferUsage used = {0};
	instr_time	began;
	instr_time	planned;
	PlannedStmt *plan;

	INSTR_TIME_SET_CURRENT(began);
	plan = pg_plan_query(query, text, options, params);
	INSTR_TIME_SET_CURRENT(planned);
	INSTR_TIME_SUBTRACT(planned, began);
	BufferUsageAccumDiff(&used, &pgBufferUsage, &before);
	ExplainOnePlan(plan, into, es, text, params, environment, &planned, es->buffers ? &used : NULL);
#endif
}
#endif

/*
 * What an access method has in the shared memory of a parallel scan.
 */
static inline void *
compat_parallel_part(ParallelIndexScanDesc scan)
{
#if PG_VERSION_NUM >= 180000
	return OffsetToPointer((void *) scan, scan->ps_offset_am);
#else
	return OffsetToPointer((void *) scan, scan->ps_offset);
#endif
}

/*
 * Counts one search of the index by a scan: a descent that is no continuation of the one before.
 */
static inline void
compat_count_search(IndexScanDesc scan)
{
	pgstat_count_index_scan(scan->indexRelation);
#if PG_VERSION_NUM >= 180000
	if (scan->instrument != NULL)
		scan->instrument->nsearches++;
#endif
}

/* ---- what VACUUM and maintenance use ---- */

/*
 * Has compat_delay_point() sleep `delay` milliseconds, 0 for never, each time that what was charged has come to the limit.
 */
static inline void
compat_set_costs(double delay, int limit)
{
#if PG_VERSION_NUM >= 160000
	/* The settings' own variables are looked at only when these are made of them. */
	vacuum_cost_delay = delay;
	vacuum_cost_limit = limit;
#else
	VacuumCostDelay = delay;
	VacuumCostLimit = limit;
#endif
	VacuumCostActive = delay > 0;
}

static inline void
compat_delay_point(void)
{
#if PG_VERSION_NUM >= 180000
	vacuum_delay_point(false);
#else
	vacuum_delay_point();
#endif
}

/*
 * Writes an index's size and number of entries into pg_class, in place.
 */
static inline void
compat_update_relstats(Relation index, BlockNumber pages, double tuples)
{
#if PG_VERSION_NUM >= 180000
	vac_update_relstats(index, pages, tuples, 0, 0, false, InvalidTransactionId, InvalidMultiXactId, NULL, NULL, true);
#else
	vac_update_relstats(index, pages, tuples, 0, false, InvalidTransactionId, InvalidMultiXactId, NULL, NULL, true);
#endif
}

/*
 * Whether rows may be removed that a snapshot still sees, for old_snapshot_threshold.
 */
static inline bool
compat_old_snapshots_end(void)
{
#if PG_VERSION_NUM >= 170000
	return false;
#else
	return OldSnapshotThresholdActive();
#endif
}

/*
 * The next datum of a sort, in the caller's memory.  False: there is none.
 */
static inline bool
compat_sorted_datum(Tuplesortstate *sort, Datum *datum)
{
	bool		isnull;

#if PG_VERSION_NUM >= 160000
	return tuplesort_getdatum(sort, true, true, datum, &isnull, NULL);
#else
	return tuplesort_getdatum(sort, true, datum, &isnull, NULL);
#endif
}

#endif							/* SHERMAN_COMPAT_H */
