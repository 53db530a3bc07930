/*
 * hooks.c
 *		Hooks into the server: shared memory, utility commands (on databases; on constraints: constraints.c),
 *		dropped indexes; planning (planner.c) and ON CONFLICT (on_conflict_pg15.c).
 */
#include "am/base/sherman.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "tcop/utility.h"

#include "am/access/access.h"
#include "am/background/background.h"
#include "am/base/shared.h"
#include "am/index/announced.h"
#include "am/index/index.h"
#include "am/keys/keys.h"
#include "am/nodes/nodes.h"
#include "am/planner/planner.h"
#include "am/recovery/recovery.h"
#include "am/server/explain.h"
#include "am/server/server.h"

static shmem_request_hook_type previous_shmem_request = NULL;
static shmem_startup_hook_type previous_shmem_startup = NULL;
static ProcessUtility_hook_type previous_utility = NULL;
static object_access_hook_type previous_object_access = NULL;

/* A command of this process gives relations other files. */
static bool moving = false;

/* ---- shared memory ---- */

/* Of the cache, for leaves where they are kept: a leaf has 60 entries, an inner node above it 100 leaves. */
#define LEAVES_PERCENT 75

static TreeSharedOptions
tree_options(void)
{
	uint64		cache = (uint64_t) sherman_cache_mb * 1024 * 1024;
	uint64		leaves = sherman_nodes_are_remote(sherman_memory_node_list) ? cache / 100 * LEAVES_PERCENT : 0;
	TreeSharedOptions options = {
		.slots = (uint32_t) MaxBackends,
		.trees = SHERMAN_TREES_IN_USE,
		.states_apart = true,
		.cache_bytes = cache - leaves,
		.leaf_cache_bytes = leaves,
		.lock_words = SHERMAN_LOCK_WORDS,
		.nodes = TREE_MAX_NODES,
		/* What vouches for both: doc/internals/ownership.md. */
		.techniques = &tree_owner_techniques,
		.alone = true
	};

	return options;
}

static Size
shared_bytes(void)
{
	return add_size(offsetof(ShermanShared, slot), mul_size(MaxBackends, sizeof(ShermanSlot)));
}

static void
request_shared_memory(void)
{
	TreeSharedOptions options = tree_options();

	if (previous_shmem_request != NULL)
		previous_shmem_request();
	RequestAddinShmemSpace(shared_bytes());
	RequestAddinShmemSpace(sherman_rebuilds_bytes());
	RequestAddinShmemSpace(sherman_connection_workers_bytes());
	RequestAddinShmemSpace(announced_bytes());
	RequestAddinShmemSpace(add_size(tree_shared_bytes(&options), PG_CACHE_LINE_SIZE));
	RequestNamedLWLockTranche("sherman", SHERMAN_LOCKS);
}

static void
initialize_shown(ShermanHealShown *shown)
{
	pg_atomic_init_u32(&shown->phase, SHERMAN_HEAL_OPENING);
	pg_atomic_init_u64(&shown->leaves_total, 0);
	pg_atomic_init_u64(&shown->leaves, 0);
	pg_atomic_init_u64(&shown->healed, 0);
	pg_atomic_init_u64(&shown->removed, 0);
	pg_atomic_init_u64(&shown->left, 0);
}

static void
initialize_shared(ShermanShared *shared)
{
	memset(shared, 0, shared_bytes());
	pg_atomic_init_u64(&shared->generation, 1);
	pg_atomic_init_u32(&shared->epoch, 0);
	pg_atomic_init_u32(&shared->forget, 0);
	pg_atomic_init_u32(&shared->forgotten, 0);
	pg_atomic_init_u32(&shared->hints, 0);
	pg_atomic_init_u32(&shared->rebuild_all, SHERMAN_REBUILD_ALL_NOT);
	for (int i = 0; i < SHERMAN_HORIZONS; i++)
		pg_atomic_init_u64(&shared->dead_horizon[i], 0);
	pg_atomic_init_u32(&shared->standby_reads, 0);
	pg_atomic_init_u64(&shared->reads_serial, 1);
	pg_atomic_init_u64(&shared->prune_bound, 0);
	pg_atomic_init_u32(&shared->trees_wanted, 0);
	ConditionVariableInit(&shared->changed);
	for (int i = 0; i < SHERMAN_HEALS_SHOWN; i++)
		initialize_shown(&shared->heal[i]);
	for (int i = 0; i < SHERMAN_KEY_PARTS; i++)
	{
		pg_atomic_init_u32(&shared->key_part[i].adding, 0);
		pg_atomic_init_u32(&shared->key_part[i].checking, 0);
	}
	for (int i = 0; i < SHERMAN_BARRIERS; i++)
		pg_atomic_init_u32(&shared->barrier_turns[i], 0);
	shared->leaf_cache_bytes = tree_options().leaf_cache_bytes;
	shared->slots = MaxBackends;
	for (int i = 0; i < MaxBackends; i++)
	{
		pg_atomic_init_u32(&shared->slot[i].busy, 0);
		pg_atomic_init_u32(&shared->slot[i].connected, 0);
		pg_atomic_init_u32(&shared->slot[i].alone_in, InvalidOid);
		pg_atomic_init_u32(&shared->slot[i].measured, 0);
	}
}

/*
 * Runs in the postmaster (or the only process), at its start and after each crash that it survives.
 */
static void
start_shared_memory(void)
{
	TreeSharedOptions options = tree_options();
	ShermanShared *shared;
	void	   *region;
	bool		found;

	if (previous_shmem_startup != NULL)
		previous_shmem_startup();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("sherman", shared_bytes(), &found);
	sherman_locks_find();
	sherman_wait_events_start();
	sherman_reserve_create(&options);
	sherman_trees_initialize(options.trees);
	sherman_rebuilds_initialize();
	sherman_connection_workers_initialize();
	announced_initialize();
	region = ShmemInitStruct("sherman tree", tree_shared_bytes(&options) + PG_CACHE_LINE_SIZE, &found);
	region = (void *) TYPEALIGN(PG_CACHE_LINE_SIZE, region);
	/* The system gives it zeroed; most of what is for memory nodes that there are not is never touched. */
	sherman_tree_shared = tree_shared_initialize(region, &options);
	initialize_shared(shared);
	LWLockRelease(AddinShmemInitLock);

	sherman_connection_prepare();
	sherman_recovery_start(shared);
	sherman_pool_start(shared);
	sherman_shared = shared;
}

/* ---- commands ---- */

static void
next_utility(PlannedStmt *statement, const char *text, bool read_only_tree, ProcessUtilityContext context,
			 ParamListInfo parameters, QueryEnvironment *environment, DestReceiver *destination,
			 QueryCompletion *completion)
{
	if (previous_utility != NULL)
		previous_utility(statement, text, read_only_tree, context, parameters, environment, destination,
						 completion);
	else
		standard_ProcessUtility(statement, text, read_only_tree, context, parameters, environment,
								destination, completion);
}

/*
 * Runs a command that needs a database for itself (databases.c).
 */
static void
next_utility_alone(PlannedStmt *statement, const char *text, bool read_only_tree,
				   ProcessUtilityContext context, ParamListInfo parameters, QueryEnvironment *environment,
				   DestReceiver *destination, QueryCompletion *completion)
{
	PG_ENSURE_ERROR_CLEANUP(sherman_runs_allow, (Datum) 0);
	{
		sherman_runs_end();
		next_utility(statement, text, read_only_tree, context, parameters, environment, destination,
					 completion);
	}
	PG_END_ENSURE_ERROR_CLEANUP(sherman_runs_allow, (Datum) 0);
	sherman_database_end();
}

/*
 * Whether the command moves relations to another tablespace.
 */
static bool
moves_files(Node *statement)
{
	ListCell   *cell;

	if (IsA(statement, AlterTableMoveAllStmt))
		return true;
	if (!IsA(statement, AlterTableStmt))
		return false;
	foreach(cell, ((AlterTableStmt *) statement)->cmds)
	{
		if (lfirst_node(AlterTableCmd, cell)->subtype == AT_SetTableSpace)
			return true;
	}
	return false;
}

/*
 * Runs a command that moves relations: object_access() is called for each.
 */
static void
next_utility_moving(PlannedStmt *statement, const char *text, bool read_only_tree,
					ProcessUtilityContext context, ParamListInfo parameters, QueryEnvironment *environment,
					DestReceiver *destination, QueryCompletion *completion)
{
	const bool	before = moving;

	moving = true;
	PG_TRY();
	{
		next_utility(statement, text, read_only_tree, context, parameters, environment, destination, completion);
	}
	PG_FINALLY();
	{
		moving = before;
	}
	PG_END_TRY();
}

static void
run_utility(PlannedStmt *statement, const char *text, bool read_only_tree, ProcessUtilityContext context,
			ParamListInfo parameters, QueryEnvironment *environment, DestReceiver *destination,
			QueryCompletion *completion)
{
	List	   *at_risk = sherman_constraints_at_risk(statement->utilityStmt);

	sherman_keep_mark(statement->utilityStmt);
	sherman_require_classes(statement->utilityStmt);
	statement = sherman_set_methods(statement, &read_only_tree);
	if (sherman_shared != NULL && sherman_database_begin(statement->utilityStmt, context == PROCESS_UTILITY_TOPLEVEL))
		next_utility_alone(statement, text, read_only_tree, context, parameters, environment, destination,
						   completion);
	else if (sherman_shared != NULL && moves_files(statement->utilityStmt))
		next_utility_moving(statement, text, read_only_tree, context, parameters, environment, destination,
							completion);
	else
		next_utility(statement, text, read_only_tree, context, parameters, environment, destination,
					 completion);
	if (sherman_shared != NULL && IsA(statement->utilityStmt, CheckPointStmt))
		sherman_wal_end_wait();
	sherman_constraints_after(at_risk);
	sherman_mirror_changed(statement->utilityStmt);
}

static ShermanStatement
utility_kind(const Node *statement)
{
	return IsA(statement, CopyStmt) && ((const CopyStmt *) statement)->is_from ? SHERMAN_STATEMENT_COPIES :
		SHERMAN_STATEMENT_OTHER;
}

/*
 * A command may change indexes that entries wait for, so none do when it begins; and COPY leaves some.
 */
static void
utility(PlannedStmt *statement, const char *text, bool read_only_tree, ProcessUtilityContext context,
		ParamListInfo parameters, QueryEnvironment *environment, DestReceiver *destination,
		QueryCompletion *completion)
{
	ShermanExecution around;

	sherman_add_waiting();
	sherman_statement_begin(&around, (ShermanExecution) {utility_kind(statement->utilityStmt), NULL});
	PG_TRY();
	{
		run_utility(statement, text, read_only_tree, context, parameters, environment, destination, completion);
	}
	PG_CATCH();
	{
		sherman_statement_leave(&around);
		sherman_explain_error(statement->utilityStmt);
		PG_RE_THROW();
	}
	PG_END_TRY();
	sherman_statement_leave(&around);
	sherman_statement_end();
}

/* ---- indexes that are made and dropped ---- */

static void
object_access(ObjectAccessType access, Oid class_id, Oid object, int sub, void *argument)
{
	if (previous_object_access != NULL)
		previous_object_access(access, class_id, object, sub, argument);
	if (access == OAT_POST_CREATE && class_id == RelationRelationId && sub == 0)
		sherman_rebuild_relation_made(object);
	if (access == OAT_DROP && class_id == RelationRelationId && sub == 0 && sherman_shared != NULL &&
		sherman_is_ours(object))
	{
		sherman_hint_collector();
		sherman_index_dropped(object);
	}
	if (access == OAT_POST_ALTER && class_id == RelationRelationId && sub == 0 && moving && sherman_is_ours(object))
		sherman_index_moved(object);
}

/*
 * Called once in each process that loads the library, in the postmaster if preloaded: what it sets is
 * inherited.
 */
void
sherman_install_hooks(void)
{
	sherman_planner_install();
	sherman_row_comparison_install();
	sherman_extremes_install();
	sherman_on_conflict_install();
	sherman_lookahead_install();
	if (!process_shared_preload_libraries_in_progress)
		return;
	previous_shmem_request = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	previous_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = start_shared_memory;
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
	sherman_statements_install();
	sherman_explain_install();
	sherman_apply_install();
	previous_object_access = object_access_hook;
	object_access_hook = object_access;
	sherman_opened_install();
	sherman_report_full_with(sherman_largest_indexes);
	sherman_worker_define(SHERMAN_COLLECTOR, &sherman_collector);
	sherman_worker_define(SHERMAN_HEALER, &sherman_healer);
	sherman_worker_define(SHERMAN_REBUILD, &sherman_rebuild);
}
