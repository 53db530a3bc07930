/*
 * foreign_btree.c
 *		btree as an access method that core does not know: what its tests tell of it, no extension can better.
 *
 * For script/test long conformance only.  Three things are here.  The handler is btree's, but for the build, which
 * core ties to btree's own OID.  The hooks of the baseline are those that sherman has: btree's operator families
 * and the tree's height shown to the planner, and ON CONFLICT made ready before the executor would refuse it.  And a hook changes
 * what the suites do, for either access method: see the settings.
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/plancat.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

PG_MODULE_MAGIC;

extern void _PG_init(void);

PG_FUNCTION_INFO_V1(foreign_btree_handler);

/* Settings. */
static bool baseline;			/* the access method called btree is ours, and wants the baseline's hooks */
static bool btree_classes;		/* its indexes are recorded with btree's operator classes: foreign keys work */

static get_relation_info_hook_type previous_relation_info;
static ExecutorStart_hook_type previous_executor_start;
static object_access_hook_type previous_object_access;

/* Whether this is the access method that has btree's name and is not btree. */
static bool
is_substitute(Oid method)
{
	return OidIsValid(method) && method != BTREE_AM_OID && method == get_am_oid("btree", true);
}

/* ---- the access method ---- */

/*
 * ambuild.  What sorts for btree, and the workers of a parallel build, ask for btree's OID: the relation has it
 * meanwhile.
 */
static IndexBuildResult *
foreign_build(Relation heap, Relation index, IndexInfo *info)
{
	Oid			own = index->rd_rel->relam;
	IndexBuildResult *result;

	index->rd_rel->relam = BTREE_AM_OID;
	PG_TRY();
	{
		result = btbuild(heap, index, info);
	}
	PG_FINALLY();
	{
		index->rd_rel->relam = own;
	}
	PG_END_TRY();
	return result;
}

Datum
foreign_btree_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *routine = (IndexAmRoutine *) DatumGetPointer(OidFunctionCall0(F_BTHANDLER));

	routine->ambuild = foreign_build;
	PG_RETURN_POINTER(routine);
}

/* ---- the baseline's hooks ---- */

/* The height that core finds out of btree's indexes alone; the cost of a descent depends on it. */
static int
height(Oid oid)
{
	Relation	index = index_open(oid, NoLock);
	int			found = _bt_getrootheight(index);

	index_close(index, NoLock);
	return found;
}

static void
relation_info(PlannerInfo *root, Oid relation, bool inherits, RelOptInfo *rel)
{
	ListCell   *cell;

	if (previous_relation_info != NULL)
		previous_relation_info(root, relation, inherits, rel);
	if (!baseline)
		return;
	foreach(cell, rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, cell);

		if (!is_substitute(info->relam))
			continue;
		info->tree_height = height(info->indexoid);
		if (info->sortopfamily != NULL)
			info->opfamily = info->sortopfamily;
	}
}

/* What BuildSpeculativeIndexInfo() does for btree alone. */
static void
describe_unique_index(Relation index, IndexInfo *info)
{
	int			columns = IndexRelationGetNumberOfKeyAttributes(index);

	if (!is_substitute(index->rd_rel->relam))
	{
		BuildSpeculativeIndexInfo(index, info);
		return;
	}
	info->ii_UniqueOps = palloc(sizeof(Oid) * columns);
	info->ii_UniqueProcs = palloc(sizeof(Oid) * columns);
	info->ii_UniqueStrats = palloc(sizeof(uint16) * columns);
	for (int i = 0; i < columns; i++)
	{
		info->ii_UniqueStrats[i] = BTEqualStrategyNumber;
		info->ii_UniqueOps[i] = get_opfamily_member(index->rd_opfamily[i], index->rd_opcintype[i],
													index->rd_opcintype[i], BTEqualStrategyNumber);
		info->ii_UniqueProcs[i] = get_opcode(info->ii_UniqueOps[i]);
	}
}

/* Opens a target table's indexes as ExecInsert() would, but for what it refuses. */
static void
open_target(ResultRelInfo *target)
{
	Relation	table = target->ri_RelationDesc;

	if (!table->rd_rel->relhasindex || table->rd_rel->relkind != RELKIND_RELATION ||
		target->ri_IndexRelationDescs != NULL)
		return;
	ExecOpenIndices(target, false);
	for (int i = 0; i < target->ri_NumIndices; i++)
	{
		if (target->ri_IndexRelationInfo[i]->ii_Unique)
			describe_unique_index(target->ri_IndexRelationDescs[i], target->ri_IndexRelationInfo[i]);
	}
}

static bool
open_targets(PlanState *state, void *context)
{
	if (state == NULL)
		return false;
	if (IsA(state, ModifyTableState) && ((ModifyTable *) state->plan)->onConflictAction != ONCONFLICT_NONE)
	{
		ModifyTableState *modify = (ModifyTableState *) state;

		for (int i = 0; i < modify->mt_nrels; i++)
			open_target(&modify->resultRelInfo[i]);
	}
	return planstate_tree_walker(state, open_targets, context);
}

static void
executor_start(QueryDesc *query, int flags)
{
	MemoryContext caller;
	ListCell   *cell;

	if (previous_executor_start != NULL)
		previous_executor_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
	if (!baseline || (flags & EXEC_FLAG_EXPLAIN_ONLY))
		return;
	caller = MemoryContextSwitchTo(query->estate->es_query_cxt);
	(void) open_targets(query->planstate, NULL);
	foreach(cell, query->estate->es_auxmodifytables)
		(void) open_targets(lfirst(cell), NULL);
	MemoryContextSwitchTo(caller);
}

/* ---- what the suites do ---- */

/* btree's operator class of the same name and type as another's, or that itself. */
static Oid
btree_class(Oid class)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(class));
	Form_pg_opclass own = (Form_pg_opclass) GETSTRUCT(tuple);
	Oid			found = GetSysCacheOid3(CLAAMNAMENSP, Anum_pg_opclass_oid, ObjectIdGetDatum(BTREE_AM_OID),
										NameGetDatum(&own->opcname), ObjectIdGetDatum(own->opcnamespace));

	ReleaseSysCache(tuple);
	return OidIsValid(found) ? found : class;
}

/* Writes btree's operator classes into a new index's row of pg_index: core looks there for foreign keys. */
static void
record_btree_classes(Oid index)
{
	Relation	catalog = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	row = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(index));
	Datum		values[Natts_pg_index] = {0};
	bool		nulls[Natts_pg_index] = {0};
	bool		replace[Natts_pg_index] = {0};
	oidvector  *classes;
	bool		isnull;

	classes = (oidvector *) DatumGetPointer(SysCacheGetAttr(INDEXRELID, row, Anum_pg_index_indclass, &isnull));
	classes = buildoidvector(classes->values, classes->dim1);
	for (int i = 0; i < classes->dim1; i++)
		classes->values[i] = btree_class(classes->values[i]);
	values[Anum_pg_index_indclass - 1] = PointerGetDatum(classes);
	replace[Anum_pg_index_indclass - 1] = true;
	row = heap_modify_tuple(row, RelationGetDescr(catalog), values, nulls, replace);
	CatalogTupleUpdate(catalog, &row->t_self, row);
	CacheInvalidateRelcacheByRelid(index);
	table_close(catalog, RowExclusiveLock);
	CommandCounterIncrement();
}

static void
object_access(ObjectAccessType access, Oid class, Oid object, int sub, void *argument)
{
	HeapTuple	tuple;
	bool		ours;

	if (previous_object_access != NULL)
		previous_object_access(access, class, object, sub, argument);
	if (!btree_classes || access != OAT_POST_CREATE || class != RelationRelationId || sub != 0)
		return;
	CommandCounterIncrement();
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(object));
	if (!HeapTupleIsValid(tuple))
		return;
	ours = ((Form_pg_class) GETSTRUCT(tuple))->relkind == RELKIND_INDEX &&
		is_substitute(((Form_pg_class) GETSTRUCT(tuple))->relam);
	ReleaseSysCache(tuple);
	if (ours)
		record_btree_classes(object);
}

/*
 * Runs in the postmaster: the module is preloaded.
 */
void
_PG_init(void)
{
	DefineCustomBoolVariable("foreign_btree.baseline", "The access method called btree is foreign_btree.", NULL,
							 &baseline, false, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("foreign_btree.btree_classes", "Indexes are recorded with btree's classes.", NULL,
							 &btree_classes, false, PGC_SUSET, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("foreign_btree");
	previous_relation_info = get_relation_info_hook;
	get_relation_info_hook = relation_info;
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	previous_object_access = object_access_hook;
	object_access_hook = object_access;
}
