/*
 * mirror.c
 *		Operator classes: sherman's are btree's, class by class and member by member.
 *
 * CREATE EXTENSION mirrors the families that are there.  Those that come later, with another extension, are
 * mirrored by the statements that make them: the hook runs behind CREATE OPERATOR CLASS and ALTER OPERATOR
 * FAMILY, which core lets superusers run alone, and so crosses no privilege.
 *
 * Mirrors lie in pg_catalog: everybody finds them there, whatever the search path is, and pg_dump leaves them
 * out, as restoring the families of btree has them mirrored.  They are members of no other extension,
 * but depend on what they mirror and on the access method, and silently go with either.
 */
#include "am/base/sherman.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_proc.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/keys/keys.h"

/* The name of the handler's function in the library, as the extension's script gives it. */
#define HANDLER "shermanhandler"

PG_FUNCTION_INFO_V1(sherman_mirror_opfamily);
PG_FUNCTION_INFO_V1(sherman_mirror_opfamilies);

/* A family of btree's and what becomes of it. */
typedef struct Mirror
{
	Oid			method;			/* our access method */
	char	   *method_name;
	Oid			source;
	Oid			target;			/* InvalidOid: not there yet */
	List	   *target_name;
} Mirror;

/* A class of the source. */
typedef struct SourceClass
{
	Oid			oid;
	NameData	name;
	Oid			type;
	bool		is_default;
} SourceClass;

/* ---- the access method ---- */

static bool
has_our_handler(Form_pg_am method)
{
	HeapTuple	tuple;
	Datum		source;
	bool		isnull;
	bool		ours;
	const IndexAmRoutine *routine;

	if (method->amtype != AMTYPE_INDEX || method->oid < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(method->amhandler));
	if (!HeapTupleIsValid(tuple))
		return false;
	source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
	ours = !isnull && strcmp(TextDatumGetCString(source), HANDLER) == 0;
	ReleaseSysCache(tuple);
	if (!ours)
		return false;			/* no other extension's library is loaded for this */
	routine = GetIndexAmRoutine(method->amhandler);
	ours = sherman_is_our_method(routine);
	compat_free_routine(routine);
	return ours;
}

Oid
sherman_access_method(void)
{
	Relation	catalog = table_open(AccessMethodRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(catalog, InvalidOid, false, NULL, 0, NULL);
	Oid			found = InvalidOid;
	HeapTuple	tuple;

	while ((tuple = systable_getnext(scan)) != NULL)
	{
		Form_pg_am	method = (Form_pg_am) GETSTRUCT(tuple);

		if ((!OidIsValid(found) || method->oid < found) && has_our_handler(method))
			found = method->oid;
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

/* ---- which object mirrors which ---- */

/*
 * The name of a family or a class, and in *method its access method; NULL: it is gone.
 */
static char *
name_of(Oid catalog, Oid object, Oid *method)
{
	HeapTuple	tuple = SearchSysCache1(catalog == OperatorClassRelationId ? CLAOID : OPFAMILYOID,
										ObjectIdGetDatum(object));
	char	   *name;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	if (catalog == OperatorClassRelationId)
	{
		Form_pg_opclass class = (Form_pg_opclass) GETSTRUCT(tuple);

		name = pstrdup(NameStr(class->opcname));
		*method = class->opcmethod;
	}
	else
	{
		Form_pg_opfamily family = (Form_pg_opfamily) GETSTRUCT(tuple);

		name = pstrdup(NameStr(family->opfname));
		*method = family->opfmethod;
	}
	ReleaseSysCache(tuple);
	return name;
}

/*
 * The object with this name in pg_catalog.
 */
static Oid
find_named(Oid catalog, Oid method, const char *name)
{
	if (catalog == OperatorClassRelationId)
		return GetSysCacheOid3(CLAAMNAMENSP, Anum_pg_opclass_oid, ObjectIdGetDatum(method),
							   CStringGetDatum(name), ObjectIdGetDatum(PG_CATALOG_NAMESPACE));
	return GetSysCacheOid3(OPFAMILYAMNAMENSP, Anum_pg_opfamily_oid, ObjectIdGetDatum(method),
						   CStringGetDatum(name), ObjectIdGetDatum(PG_CATALOG_NAMESPACE));
}

/*
 * The object of the access method that mirrors this one of btree's.  It depends on it: names may change.  On
 * what initdb has made nothing is said to depend, and its name does not change.
 */
static Oid
find_mirror(Oid catalog, Oid method, Oid source)
{
	Relation	depend;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			found = InvalidOid;
	Oid			its_method;

	if (IsPinnedObject(catalog, source))
		return find_named(catalog, method, name_of(catalog, source, &its_method));
	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(catalog));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(source));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 2, keys);
	while (!OidIsValid(found) && (tuple = systable_getnext(scan)) != NULL)
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == catalog && form->deptype == DEPENDENCY_AUTO &&
			name_of(catalog, form->objid, &its_method) != NULL && its_method == method)
			found = form->objid;
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return found;
}

/*
 * The source's name, with a number behind it if another mirror has that name.
 */
static List *
free_name(Oid catalog, Oid method, Oid source)
{
	Oid			its_method;
	char	   *wanted = name_of(catalog, source, &its_method);
	char	   *name = wanted;

	for (int i = 2; OidIsValid(find_named(catalog, method, name)); i++)
	{
		char		number[16];
		int			length;

		snprintf(number, sizeof(number), "_%d", i);
		length = pg_mbcliplen(wanted, (int) strlen(wanted), NAMEDATALEN - 1 - (int) strlen(number));
		name = psprintf("%.*s%s", length, wanted, number);
	}
	return list_make2(makeString("pg_catalog"), makeString(name));
}

/*
 * Ties a mirror to what it mirrors.  Those of other extensions' and users' objects are no members of the
 * extension that is being created: it and the other one would take each other along when they are dropped.
 */
static void
tie(Oid catalog, Oid mirror, Oid source)
{
	ObjectAddress depender;
	ObjectAddress referenced;

	ObjectAddressSet(depender, catalog, mirror);
	ObjectAddressSet(referenced, catalog, source);
	recordDependencyOn(&depender, &referenced, DEPENDENCY_AUTO);
}

/* ---- members ---- */

static List *
type_names(Oid left, Oid right)
{
	return list_make2(makeTypeNameFromOid(left, -1), makeTypeNameFromOid(right, -1));
}

static CreateOpClassItem *
operator_item(Form_pg_amop member)
{
	CreateOpClassItem *item = makeNode(CreateOpClassItem);
	HeapTuple	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(member->amopopr));
	Form_pg_operator form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", member->amopopr);
	form = (Form_pg_operator) GETSTRUCT(tuple);
	item->itemtype = OPCLASS_ITEM_OPERATOR;
	item->number = member->amopstrategy;
	item->class_args = type_names(member->amoplefttype, member->amoprighttype);
	item->name = makeNode(ObjectWithArgs);
	item->name->objname = list_make2(makeString(get_namespace_name(form->oprnamespace)),
									 makeString(pstrdup(NameStr(form->oprname))));
	item->name->objargs = type_names(form->oprleft, form->oprright);
	ReleaseSysCache(tuple);
	return item;
}

static CreateOpClassItem *
function_item(Form_pg_amproc member)
{
	CreateOpClassItem *item = makeNode(CreateOpClassItem);
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(member->amproc));
	Form_pg_proc form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", member->amproc);
	form = (Form_pg_proc) GETSTRUCT(tuple);
	item->itemtype = OPCLASS_ITEM_FUNCTION;
	item->number = member->amprocnum;
	item->class_args = type_names(member->amproclefttype, member->amprocrighttype);
	item->name = makeNode(ObjectWithArgs);
	item->name->objname = list_make2(makeString(get_namespace_name(form->pronamespace)),
									 makeString(pstrdup(NameStr(form->proname))));
	for (int i = 0; i < form->pronargs; i++)
		item->name->objargs = lappend(item->name->objargs, makeTypeNameFromOid(form->proargtypes.values[i], -1));
	ReleaseSysCache(tuple);
	return item;
}

/*
 * Members of one family that another lacks: all, or those of one type alone if it is valid.
 */
static List *
add_lacking_operators(List *items, Oid family, Oid other, Oid type)
{
	CatCList   *members = SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(family));

	for (int i = 0; i < members->n_members; i++)
	{
		Form_pg_amop member = (Form_pg_amop) GETSTRUCT(&members->members[i]->tuple);

		if (OidIsValid(type) && (member->amoplefttype != type || member->amoprighttype != type))
			continue;
		if (get_opfamily_member(other, member->amoplefttype, member->amoprighttype, member->amopstrategy) !=
			member->amopopr)
			items = lappend(items, operator_item(member));
	}
	ReleaseSysCacheList(members);
	return items;
}

static List *
add_lacking_functions(List *items, Oid family, Oid other, Oid type)
{
	CatCList   *members = SearchSysCacheList1(AMPROCNUM, ObjectIdGetDatum(family));

	for (int i = 0; i < members->n_members; i++)
	{
		Form_pg_amproc member = (Form_pg_amproc) GETSTRUCT(&members->members[i]->tuple);

		if (OidIsValid(type) && (member->amproclefttype != type || member->amprocrighttype != type))
			continue;
		if (get_opfamily_proc(other, member->amproclefttype, member->amprocrighttype, member->amprocnum) !=
			member->amproc)
			items = lappend(items, function_item(member));
	}
	ReleaseSysCacheList(members);
	return items;
}

static List *
lacking(Oid family, Oid other, Oid type)
{
	return add_lacking_functions(add_lacking_operators(NIL, family, other, type), family, other, type);
}

/*
 * Adds members to the mirror, or drops them.
 */
static void
alter_members(const Mirror *mirror, List *items, bool drop)
{
	AlterOpFamilyStmt *statement = makeNode(AlterOpFamilyStmt);
	ListCell   *cell;

	if (items == NIL)
		return;
	statement->opfamilyname = mirror->target_name;
	statement->amname = mirror->method_name;
	statement->isDrop = drop;
	statement->items = items;
	foreach(cell, items)
	{
		CreateOpClassItem *item = lfirst_node(CreateOpClassItem, cell);

		/* Operators have the types in their names. */
		if (!drop && item->itemtype == OPCLASS_ITEM_OPERATOR)
			item->class_args = NIL;
	}
	AlterOpFamily(statement);
	CommandCounterIncrement();
}

/* ---- classes ---- */

/*
 * The family's classes, default ones first: another class for the same type finds its members there.
 */
static List *
classes_of(Oid family)
{
	Relation	catalog = table_open(OperatorClassRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	List	   *defaults = NIL;
	List	   *others = NIL;

	ScanKeyInit(&key, Anum_pg_opclass_opcmethod, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(BTREE_AM_OID));
	scan = systable_beginscan(catalog, OpclassAmNameNspIndexId, true, NULL, 1, &key);
	while ((tuple = systable_getnext(scan)) != NULL)
	{
		Form_pg_opclass form = (Form_pg_opclass) GETSTRUCT(tuple);
		SourceClass *class;

		if (form->opcfamily != family)
			continue;
		class = palloc(sizeof(SourceClass));
		class->oid = form->oid;
		class->name = form->opcname;
		class->type = form->opcintype;
		class->is_default = form->opcdefault;
		if (class->is_default)
			defaults = lappend(defaults, class);
		else
			others = lappend(others, class);
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return list_concat(defaults, others);
}

/*
 * Whether the access method has a default class for the very type.
 */
static bool
has_default(Oid method, Oid type)
{
	Oid			class = GetDefaultOpClass(type, method);

	return OidIsValid(class) && get_opclass_input_type(class) == type;
}

static void
mirror_class(const Mirror *mirror, const SourceClass *class)
{
	CreateOpClassStmt *statement;
	ListCell   *cell;
	ObjectAddress made;

	if (OidIsValid(find_mirror(OperatorClassRelationId, mirror->method, class->oid)))
		return;
	statement = makeNode(CreateOpClassStmt);
	statement->opclassname = free_name(OperatorClassRelationId, mirror->method, class->oid);
	statement->opfamilyname = mirror->target_name;
	statement->amname = mirror->method_name;
	statement->datatype = makeTypeNameFromOid(class->type, -1);
	statement->items = lacking(mirror->source, mirror->target, class->type);
	foreach(cell, statement->items)
	{
		CreateOpClassItem *item = lfirst_node(CreateOpClassItem, cell);

		if (item->itemtype == OPCLASS_ITEM_OPERATOR)
			item->class_args = NIL;
	}
	/* A user may have made one by hand. */
	statement->isDefault = class->is_default && !has_default(mirror->method, class->type);
	made = DefineOpClass(statement);
	tie(OperatorClassRelationId, made.objectId, class->oid);
	CommandCounterIncrement();
}

/* ---- families ---- */

static void
make_target(Mirror *mirror)
{
	CreateOpFamilyStmt *statement = makeNode(CreateOpFamilyStmt);

	statement->opfamilyname = free_name(OperatorFamilyRelationId, mirror->method, mirror->source);
	statement->amname = mirror->method_name;
	mirror->target = DefineOpFamily(statement).objectId;
	tie(OperatorFamilyRelationId, mirror->target, mirror->source);
	CommandCounterIncrement();
}

/*
 * `dropped`: members of the family may be gone, and would be kept from being dropped themselves by the mirror's.
 */
static void
mirror_members(Mirror *mirror, bool dropped)
{
	ListCell   *cell;
	Oid			method;

	if (!OidIsValid(mirror->target))
		make_target(mirror);
	mirror->target_name = list_make2(makeString("pg_catalog"),
									 makeString(name_of(OperatorFamilyRelationId, mirror->target, &method)));
	if (dropped)
		alter_members(mirror, lacking(mirror->target, mirror->source, InvalidOid), true);
	foreach(cell, classes_of(mirror->source))
		mirror_class(mirror, lfirst(cell));
	/* Those of two types. */
	alter_members(mirror, lacking(mirror->source, mirror->target, InvalidOid), false);
}

/*
 * Makes the mirror of a family what the family is.  Raises what CREATE OPERATOR CLASS raises: 42501 for all but
 * superusers, if there is something to be done.
 */
static void
mirror_family(Oid method, Oid family, bool dropped)
{
	const bool	creating = creating_extension;
	Mirror		mirror = {.method = method, .source = family};

	mirror.method_name = get_am_name(method);
	mirror.target = find_mirror(OperatorFamilyRelationId, method, family);
	/* Members of ours are the mirrors of initdb's families alone. */
	creating_extension = creating && IsPinnedObject(OperatorFamilyRelationId, family);
	PG_TRY();
	{
		mirror_members(&mirror, dropped);
	}
	PG_FINALLY();
	{
		creating_extension = creating;
	}
	PG_END_TRY();
}

/* ---- by statements ---- */

/*
 * The family of btree's that a statement has changed.
 */
static Oid
changed_family(Node *statement)
{
	if (IsA(statement, CreateOpClassStmt))
	{
		CreateOpClassStmt *create = (CreateOpClassStmt *) statement;
		char	   *name;
		Oid			schema;

		if (get_am_oid(create->amname, true) != BTREE_AM_OID)
			return InvalidOid;
		CommandCounterIncrement();
		/* Where it was made: the path may find another one first. */
		schema = QualifiedNameGetCreationNamespace(create->opclassname, &name);
		return get_opclass_family(GetSysCacheOid3(CLAAMNAMENSP, Anum_pg_opclass_oid,
												  ObjectIdGetDatum(BTREE_AM_OID), CStringGetDatum(name),
												  ObjectIdGetDatum(schema)));
	}
	if (IsA(statement, AlterOpFamilyStmt))
	{
		AlterOpFamilyStmt *alter = (AlterOpFamilyStmt *) statement;

		if (get_am_oid(alter->amname, true) != BTREE_AM_OID)
			return InvalidOid;
		CommandCounterIncrement();
		return get_opfamily_oid(BTREE_AM_OID, alter->opfamilyname, false);
	}
	return InvalidOid;
}

void
sherman_mirror_changed(Node *statement)
{
	Oid			family = changed_family(statement);
	Oid			method;

	if (!OidIsValid(family))
		return;
	method = sherman_access_method();
	if (OidIsValid(method))
		mirror_family(method, family, IsA(statement, AlterOpFamilyStmt) && ((AlterOpFamilyStmt *) statement)->isDrop);
}

/* ---- from SQL ---- */

static Oid
our_method(void)
{
	Oid			method = sherman_access_method();

	if (!OidIsValid(method))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no access method with the handler \"%s\"", HANDLER)));
	return method;
}

Datum
sherman_mirror_opfamily(PG_FUNCTION_ARGS)
{
	char	   *schema = NameStr(*PG_GETARG_NAME(0));
	char	   *name = NameStr(*PG_GETARG_NAME(1));
	Oid			namespace = get_namespace_oid(schema, true);
	Oid			family = InvalidOid;

	if (OidIsValid(namespace))
		family = GetSysCacheOid3(OPFAMILYAMNAMENSP, Anum_pg_opfamily_oid, ObjectIdGetDatum(BTREE_AM_OID),
								 CStringGetDatum(name), ObjectIdGetDatum(namespace));
	if (!OidIsValid(family))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("operator family \"%s.%s\" does not exist for access method \"btree\"", schema, name)));
	mirror_family(our_method(), family, false);
	PG_RETURN_VOID();
}

/*
 * CREATE EXTENSION succeeds in a server that has not loaded the library at its start, as a restore has to; but nothing works.
 */
static void
warn_not_preloaded(void)
{
	const char *others = shared_preload_libraries_string != NULL ? shared_preload_libraries_string : "";

	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("sherman indexes cannot be built or used: the library was not loaded when the server started"),
			 errhint("Run ALTER SYSTEM SET shared_preload_libraries = %s%s%s, and restart the server.",
					 others, others[0] != '\0' ? ", " : "", "'sherman'")));
}

/*
 * All families of btree's.
 */
Datum
sherman_mirror_opfamilies(PG_FUNCTION_ARGS)
{
	Oid			method = our_method();
	Relation	catalog = table_open(OperatorFamilyRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	List	   *families = NIL;
	ListCell   *cell;

	if (creating_extension && !sherman_preloaded())
		warn_not_preloaded();
	ScanKeyInit(&key, Anum_pg_opfamily_opfmethod, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(BTREE_AM_OID));
	scan = systable_beginscan(catalog, OpfamilyAmNameNspIndexId, true, NULL, 1, &key);
	while ((tuple = systable_getnext(scan)) != NULL)
		families = lappend_oid(families, ((Form_pg_opfamily) GETSTRUCT(tuple))->oid);
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	foreach(cell, families)
		mirror_family(method, lfirst_oid(cell), false);
	PG_RETURN_VOID();
}

/* ---- before an index is built ---- */

static Oid
schema_of(Oid family)
{
	HeapTuple	tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(family));
	Oid			schema;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator family %u", family);
	schema = ((Form_pg_opfamily) GETSTRUCT(tuple))->opfnamespace;
	ReleaseSysCache(tuple);
	return schema;
}

static Oid
equality_of(Oid class)
{
	Oid			type = get_opclass_input_type(class);

	return get_opfamily_member(get_opclass_family(class), type, type, BTEqualStrategyNumber);
}

/*
 * Refuses the class that core takes for a type without one of its own, that of a type which is stored alike, if
 * btree has one for the type: keys would be equal, or not, that the type's users know otherwise.
 */
static void
refuse_foreign_class(Relation index, int column, Oid class)
{
	Oid			type = TupleDescAttr(RelationGetDescr(index), column)->atttypid;
	Oid			theirs = GetDefaultOpClass(type, BTREE_AM_OID);
	Oid			method;
	Oid			family;

	/* One that was made for the type itself, or named, is what somebody wanted. */
	if (!OidIsValid(theirs) || get_opclass_input_type(class) == getBaseType(type) ||
		class != GetDefaultOpClass(type, index->rd_rel->relam) || equality_of(class) == equality_of(theirs))
		return;
	family = get_opclass_family(theirs);
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("data type %s has no default operator class for access method \"%s\" yet",
					format_type_be(type), get_am_name(index->rd_rel->relam)),
			 errdetail("Operator class \"%s\" knows other values as equal than btree's class \"%s\" does.",
					   name_of(OperatorClassRelationId, class, &method),
					   name_of(OperatorClassRelationId, theirs, &method)),
			 errhint("Have a superuser run SELECT %s.sherman_mirror_opfamily(%s, %s), or name another class.",
					 quote_identifier(get_namespace_name(get_func_namespace(index->rd_amhandler))),
					 quote_literal_cstr(get_namespace_name(schema_of(family))),
					 quote_literal_cstr(name_of(OperatorFamilyRelationId, family, &method)))));
}

void
sherman_check_classes(Relation index)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		refuse_foreign_class(index, i, get_index_column_opclass(RelationGetRelid(index), i + 1));
}
