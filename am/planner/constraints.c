/*
 * constraints.c
 *		Constraints: PRIMARY KEY and UNIQUE over sherman indexes.
 *
 * The grammar lets these constraints name no access method, and core takes btree.  With the setting
 * sherman.constraints they get sherman: the statement's parse tree has a field for it.  Partitioned tables,
 * which cannot have unique sherman indexes, get btree still, and so do partitions: INSERT ... ON CONFLICT into
 * the partitioned table would fail (on_conflict_pg15.c).
 *
 * What has no access method in its definition has none in a dump, either.  So the indexes of such constraints
 * bear a mark, the storage parameter "sherman": pg_dump writes it, pg_upgrade brings it along, and restoring it
 * makes a sherman constraint, whatever the setting is.  Where the library is not loaded core refuses the
 * parameter, rather than making a btree of it.
 *
 * ALTER COLUMN TYPE makes a constraint anew from its definition, inside core, and takes btree: the mark is taken
 * off before, and a message names the sherman index that is lost.
 */
#include "am/base/sherman.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "am/base/shared.h"
#include "am/keys/keys.h"
#include "am/planner/planner.h"

/* ---- the mark ---- */

typedef enum Mark
{
	MARK_NONE,
	MARK_ON,
	MARK_OFF					/* the constraint is to be btree's, whatever the setting is */
} Mark;

static bool
is_mark(const DefElem *option)
{
	return option->defnamespace == NULL && strcmp(option->defname, SHERMAN_MARK) == 0;
}

static DefElem *
find_mark(List *options)
{
	ListCell   *cell;

	foreach(cell, options)
	{
		if (is_mark(lfirst_node(DefElem, cell)))
			return lfirst(cell);
	}
	return NULL;
}

static Mark
mark_of(const Constraint *constraint)
{
	DefElem    *option = find_mark(constraint->options);

	return option == NULL ? MARK_NONE : defGetBoolean(option) ? MARK_ON : MARK_OFF;
}

/*
 * The mark as a list of options, to be set or reset.
 */
static List *
mark_options(bool on)
{
	return list_make1(makeDefElem(pstrdup(SHERMAN_MARK), on ? (Node *) makeString(pstrdup("true")) : NULL, -1));
}

/*
 * Gives an index the mark, or takes it off.
 */
static void
set_mark(Oid index, bool on)
{
	Relation	catalog = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	Datum		values[Natts_pg_class] = {0};
	bool		nulls[Natts_pg_class] = {false};
	bool		replaces[Natts_pg_class] = {false};
	const int	at = Anum_pg_class_reloptions - 1;
	Datum		options;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", index);
	options = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &isnull);
	values[at] = transformRelOptions(isnull ? (Datum) 0 : options, mark_options(on), NULL, NULL, false, !on);
	nulls[at] = values[at] == (Datum) 0;
	replaces[at] = true;
	CatalogTupleUpdate(catalog, &tuple->t_self,
					   heap_modify_tuple(tuple, RelationGetDescr(catalog), values, nulls, replaces));
	ReleaseSysCache(tuple);
	table_close(catalog, RowExclusiveLock);
	CommandCounterIncrement();
}

/* ---- the access method of constraints ---- */

/*
 * Adds the node if it is a constraint that has no access method, but may have one.
 */
static List *
add_if_open(List *found, Node *node)
{
	Constraint *constraint = (Constraint *) node;

	if (node == NULL || !IsA(node, Constraint) ||
		(constraint->contype != CONSTR_PRIMARY && constraint->contype != CONSTR_UNIQUE) ||
		constraint->access_method != NULL || constraint->indexname != NULL)
		return found;
	return lappend(found, constraint);
}

/*
 * The same for a table's element: a column with its constraints, or a constraint.
 */
static List *
add_of_element(List *found, Node *element)
{
	ListCell   *cell;

	found = add_if_open(found, element);
	if (element == NULL || !IsA(element, ColumnDef))
		return found;
	foreach(cell, ((ColumnDef *) element)->constraints)
		found = add_if_open(found, lfirst(cell));
	return found;
}

/*
 * The statement's constraints that have no access method.
 */
static List *
open_constraints(Node *statement)
{
	List	   *found = NIL;
	ListCell   *cell;

	if (IsA(statement, CreateStmt))
	{
		foreach(cell, ((CreateStmt *) statement)->tableElts)
			found = add_of_element(found, lfirst(cell));
	}
	else if (IsA(statement, AlterTableStmt) && ((AlterTableStmt *) statement)->objtype == OBJECT_TABLE)
	{
		foreach(cell, ((AlterTableStmt *) statement)->cmds)
			found = add_of_element(found, lfirst_node(AlterTableCmd, cell)->def);
	}
	return found;
}

static bool
has_mark(List *constraints)
{
	ListCell   *cell;

	foreach(cell, constraints)
	{
		if (mark_of(lfirst(cell)) != MARK_NONE)
			return true;
	}
	return false;
}

/*
 * Whether the constraints of the table that is to be made can be sherman's.
 */
static bool
new_table_can(const CreateStmt *statement)
{
	return statement->partspec == NULL && statement->partbound == NULL;
}

static bool
table_can(const RangeVar *name)
{
	Oid			table = RangeVarGetRelid(name, NoLock, true);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	Form_pg_class form;
	bool		can;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	can = form->relkind == RELKIND_RELATION && !form->relispartition;
	ReleaseSysCache(tuple);
	return can;
}

/*
 * Whether the setting gives the statement's constraints to sherman.
 */
static bool
setting_counts(Node *statement)
{
	if (!sherman_constraints)
		return false;
	return IsA(statement, CreateStmt) ? new_table_can((CreateStmt *) statement) :
		table_can(((AlterTableStmt *) statement)->relation);
}

/*
 * Says of constraints that the setting would give to sherman, but for the table that they are of.
 */
static void
notice_btree(Node *statement, List *constraints)
{
	const RangeVar *table = IsA(statement, CreateStmt) ? ((CreateStmt *) statement)->relation :
		((AlterTableStmt *) statement)->relation;
	ListCell   *cell;

	/* Of one that is not there, or is none, core says that. */
	if (IsA(statement, AlterTableStmt) && !OidIsValid(RangeVarGetRelid(table, NoLock, true)))
		return;
	foreach(cell, constraints)
	{
		if (mark_of(lfirst(cell)) != MARK_NONE)
			continue;
		ereport(NOTICE,
				(errmsg("the unique index of \"%s\" is btree's, although sherman.constraints is on", table->relname),
				 errdetail("Constraints of partitioned tables and of partitions stay btree's.")));
		return;
	}
}

static void
set_method(Constraint *constraint, const char *method, bool by_setting)
{
	Mark		mark = mark_of(constraint);

	if (mark == MARK_OFF)
		constraint->options = list_delete_ptr(constraint->options, find_mark(constraint->options));
	if (mark == MARK_OFF || (mark == MARK_NONE && !by_setting))
		return;
	constraint->access_method = pstrdup(method);
	if (mark == MARK_NONE)
		constraint->options = list_concat(constraint->options, mark_options(true));
}

PlannedStmt *
sherman_set_methods(PlannedStmt *statement, bool *read_only_tree)
{
	List	   *constraints = open_constraints(statement->utilityStmt);
	bool		by_setting;
	bool		wanted;
	Oid			method;
	ListCell   *cell;

	if (constraints == NIL)
		return statement;
	by_setting = setting_counts(statement->utilityStmt);
	wanted = by_setting || has_mark(constraints);
	if (!wanted && !sherman_constraints)
		return statement;
	method = sherman_access_method();
	if (!OidIsValid(method))
		return statement;
	if (sherman_constraints && !by_setting)
		notice_btree(statement->utilityStmt, constraints);
	if (!wanted)
		return statement;
	if (*read_only_tree)
	{
		statement = copyObject(statement);
		constraints = open_constraints(statement->utilityStmt);
	}
	*read_only_tree = false;
	foreach(cell, constraints)
		set_method(lfirst(cell), get_am_name(method), by_setting);
	return statement;
}

/*
 * Up to 17 core refuses foreign keys that reference our indexes with an internal error, in its own words, and no hint.
 */
void
sherman_explain_error(Node *statement)
{
	MemoryContext context;
	ErrorData  *error;

	if ((!IsA(statement, CreateStmt) && !IsA(statement, AlterTableStmt)) || geterrcode() != ERRCODE_INTERNAL_ERROR)
		return;
	context = MemoryContextSwitchTo(TopTransactionContext);
	error = CopyErrorData();
	MemoryContextSwitchTo(context);
	if (error->message == NULL || strcmp(error->message, "only b-tree indexes are supported for foreign keys") != 0)
		return;
	FlushErrorState();
	error->sqlerrcode = ERRCODE_FEATURE_NOT_SUPPORTED;
	/* Programs that make their tables themselves would have the next key be ours again. */
	error->hint = sherman_constraints ?
		"With sherman.constraints = off keys are made btree's. Make a referenced one that is there btree's: ALTER TABLE ... DROP "
		"CONSTRAINT ..., ADD PRIMARY KEY (...) WITH (sherman = off)." :
		"Drop the referenced constraint or index, and make it btree's: ALTER TABLE ... DROP CONSTRAINT ..., ADD PRIMARY "
		"KEY (...) WITH (sherman = off).";
	ReThrowError(error);
}

void
sherman_keep_mark(Node *statement)
{
	AlterTableStmt *alter = (AlterTableStmt *) statement;
	ListCell   *cell;
	Oid			index;

	if (!IsA(statement, AlterTableStmt))
		return;
	foreach(cell, alter->cmds)
	{
		AlterTableCmd *command = lfirst_node(AlterTableCmd, cell);

		if ((command->subtype != AT_SetRelOptions && command->subtype != AT_ResetRelOptions) ||
			find_mark((List *) command->def) == NULL)
			continue;
		index = RangeVarGetRelid(alter->relation, NoLock, true);
		if (!OidIsValid(index) || !sherman_is_ours(index) || !OidIsValid(get_index_constraint(index)))
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("storage parameter \"%s\" of index \"%s\" cannot be changed", SHERMAN_MARK, get_rel_name(index)),
				 errdetail("Dumps of its constraint tell by it that the index is of this access method."),
				 errhint("Drop the constraint and add it again.")));
	}
}

/* ---- constraints that lose their access method ---- */

typedef struct
{
	Oid			table;
	NameData	name;
} NamedConstraint;

/*
 * Adds the table's constraints over sherman indexes for which the grammar has no access method.
 */
static List *
add_constraints(List *found, Oid table)
{
	Relation	catalog = table_open(ConstraintRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_constraint_conrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(table));
	scan = systable_beginscan(catalog, ConstraintRelidTypidNameIndexId, true, NULL, 1, &key);
	while ((tuple = systable_getnext(scan)) != NULL)
	{
		Form_pg_constraint form = (Form_pg_constraint) GETSTRUCT(tuple);
		NamedConstraint *constraint;

		if ((form->contype != CONSTRAINT_PRIMARY && form->contype != CONSTRAINT_UNIQUE) ||
			!sherman_is_ours(form->conindid))
			continue;
		constraint = palloc(sizeof(NamedConstraint));
		constraint->table = table;
		constraint->name = form->conname;
		found = lappend(found, constraint);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

static bool
changes_type(const AlterTableStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->cmds)
	{
		if (lfirst_node(AlterTableCmd, cell)->subtype == AT_AlterColumnType)
			return true;
	}
	return false;
}

/*
 * Tables that are made of a composite type, whose attributes are changed with it.
 */
static List *
add_typed_tables(List *tables, Oid relation)
{
	Oid			type = get_rel_type_id(relation);
	Relation	catalog;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (get_rel_relkind(relation) != RELKIND_COMPOSITE_TYPE)
		return tables;
	catalog = table_open(RelationRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_class_reloftype, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(type));
	scan = systable_beginscan(catalog, InvalidOid, false, NULL, 1, &key);
	while ((tuple = systable_getnext(scan)) != NULL)
		tables = list_concat_unique_oid(tables,
										find_all_inheritors(((Form_pg_class) GETSTRUCT(tuple))->oid, NoLock, NULL));
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return tables;
}

static List *
constraints_of(Oid relation)
{
	List	   *tables = add_typed_tables(find_all_inheritors(relation, NoLock, NULL), relation);
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, tables)
		found = add_constraints(found, lfirst_oid(cell));
	return found;
}

static Oid
index_of(const NamedConstraint *constraint)
{
	Oid			now = get_relation_constraint_oid(constraint->table, NameStr(constraint->name), true);

	return OidIsValid(now) ? get_constraint_index(now) : InvalidOid;
}

List *
sherman_constraints_at_risk(Node *statement)
{
	AlterTableStmt *alter = (AlterTableStmt *) statement;
	List	   *found;
	ListCell   *cell;
	Oid			relation;

	if (!IsA(statement, AlterTableStmt) || !changes_type(alter))
		return NIL;
	relation = RangeVarGetRelid(alter->relation, NoLock, true);
	if (!OidIsValid(relation) || constraints_of(relation) == NIL)
		return NIL;
	/* The lock that the command takes, if the user may give it. */
	relation = RangeVarGetRelidExtended(alter->relation, AccessExclusiveLock, alter->missing_ok ? RVR_MISSING_OK : 0,
										RangeVarCallbackOwnsRelation, NULL);
	if (!OidIsValid(relation))
		return NIL;
	found = constraints_of(relation);
	foreach(cell, found)
	{
		const NamedConstraint *constraint = lfirst(cell);

		LockRelationOid(constraint->table, AccessExclusiveLock);
		set_mark(index_of(constraint), false);
	}
	return found;
}

void
sherman_constraints_after(List *constraints)
{
	ListCell   *cell;

	/* Also what the command has left for the next one to see. */
	if (constraints != NIL)
		CommandCounterIncrement();
	foreach(cell, constraints)
	{
		const NamedConstraint *constraint = lfirst(cell);
		Oid			index = index_of(constraint);

		if (!OidIsValid(index))
			continue;
		if (sherman_is_ours(index))
		{
			set_mark(index, true);
			continue;
		}
		ereport(WARNING,
				(errmsg("the index of constraint \"%s\" of table \"%s\" is btree's now",
						NameStr(constraint->name), get_rel_name(constraint->table)),
				 errdetail("A constraint is made anew when the type of its column changes, with core's access method."),
				 errhint("Set sherman.constraints, drop the constraint and add it again.")));
	}
}
