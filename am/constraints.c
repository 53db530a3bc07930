/*
 * constraints.c
 *		Constraints: PRIMARY KEY and UNIQUE over sherman indexes.
 *
 * The grammar lets these constraints name no access method, and core takes btree.  With the setting
 * sherman.constraints they get sherman: the statement's parse tree has a field for it.  Partitioned tables,
 * which cannot have unique sherman indexes, get btree still, and so do partitions: INSERT ... ON CONFLICT into
 * the partitioned table would fail (on_conflict.c).
 *
 * ALTER COLUMN TYPE makes a constraint anew from its definition, inside core, and takes btree: who loses a
 * sherman index so is told.
 */
#include "sherman.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "shared.h"

/* The access method's name, as the extension's script gives it. */
#define ACCESS_METHOD "sherman"

bool		sherman_constraints = false;

/* ---- the access method of constraints ---- */

static void
set_method(Node *node)
{
	Constraint *constraint = (Constraint *) node;

	if (node == NULL || !IsA(node, Constraint) ||
		(constraint->contype != CONSTR_PRIMARY && constraint->contype != CONSTR_UNIQUE) ||
		constraint->access_method != NULL || constraint->indexname != NULL)
		return;
	constraint->access_method = pstrdup(ACCESS_METHOD);
}

/*
 * The same for a table's element: a column with its constraints, or a constraint.
 */
static void
set_method_of_element(Node *element)
{
	ListCell   *cell;

	set_method(element);
	if (element == NULL || !IsA(element, ColumnDef))
		return;
	foreach(cell, ((ColumnDef *) element)->constraints)
		set_method(lfirst(cell));
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
 * Whether the statement may make constraints that sherman can keep; if there is such an access method in this
 * database.
 */
static bool
may_constrain(Node *statement)
{
	bool		can = false;

	if (IsA(statement, CreateStmt))
		can = new_table_can((CreateStmt *) statement);
	else if (IsA(statement, AlterTableStmt))
		can = ((AlterTableStmt *) statement)->objtype == OBJECT_TABLE &&
			table_can(((AlterTableStmt *) statement)->relation);
	return can && OidIsValid(get_am_oid(ACCESS_METHOD, true));
}

static void
set_methods(Node *statement)
{
	ListCell   *cell;

	if (IsA(statement, CreateStmt))
	{
		foreach(cell, ((CreateStmt *) statement)->tableElts)
			set_method_of_element(lfirst(cell));
		return;
	}
	foreach(cell, ((AlterTableStmt *) statement)->cmds)
		set_method_of_element(lfirst_node(AlterTableCmd, cell)->def);
}

PlannedStmt *
sherman_set_methods(PlannedStmt *statement, bool *read_only_tree)
{
	if (!sherman_constraints || !may_constrain(statement->utilityStmt))
		return statement;
	if (*read_only_tree)
		statement = copyObject(statement);
	*read_only_tree = false;
	set_methods(statement->utilityStmt);
	return statement;
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

List *
sherman_constraints_at_risk(Node *statement)
{
	List	   *found = NIL;
	List	   *tables;
	ListCell   *cell;
	Oid			table;

	if (!IsA(statement, AlterTableStmt) || !changes_type((AlterTableStmt *) statement) ||
		!OidIsValid(get_am_oid(ACCESS_METHOD, true)))
		return NIL;
	table = RangeVarGetRelid(((AlterTableStmt *) statement)->relation, NoLock, true);
	if (!OidIsValid(table))
		return NIL;
	tables = find_all_inheritors(table, NoLock, NULL);
	foreach(cell, tables)
		found = add_constraints(found, lfirst_oid(cell));
	list_free(tables);
	return found;
}

void
sherman_warn_of_lost(List *constraints)
{
	ListCell   *cell;

	foreach(cell, constraints)
	{
		NamedConstraint *constraint = lfirst(cell);
		char	   *name = NameStr(constraint->name);
		Oid			now = get_relation_constraint_oid(constraint->table, name, true);

		if (!OidIsValid(now) || sherman_is_ours(get_constraint_index(now)))
			continue;
		ereport(WARNING,
				(errmsg("the index of constraint \"%s\" of table \"%s\" is btree's now",
						name, get_rel_name(constraint->table)),
				 errdetail("A constraint is made anew when the type of its column changes, with core's access method."),
				 errhint("Set sherman.constraints, drop the constraint and add it again.")));
	}
}
