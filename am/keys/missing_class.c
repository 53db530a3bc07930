/*
 * missing_class.c
 *		CREATE INDEX over a column for which btree has an operator class, but sherman has no mirror of it: families that were
 *		made while the library was not loaded. The error has the statement that makes the mirror, which core's has not.
 */
#include "am/base/sherman.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_opfamily.h"
#include "commands/defrem.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/keys/keys.h"

/*
 * The class of a type, by its name or the default one, that this access method has; InvalidOid: it has none.
 */
static Oid
class_of(Oid method, List *name, Oid type)
{
	char	   *schema;
	char	   *class;

	if (name == NIL)
		return GetDefaultOpClass(type, method);
	DeconstructQualifiedName(name, &schema, &class);
	if (schema == NULL)
		return OpclassnameGetOpcid(method, class);
	return GetSysCacheOid3(CLAAMNAMENSP, Anum_pg_opclass_oid, ObjectIdGetDatum(method), PointerGetDatum(class),
						   ObjectIdGetDatum(get_namespace_oid(schema, true)));
}

/*
 * Mirrors lie in pg_catalog, whatever schema the class of btree's is in: raises if the class that was named with another one has one.
 */
static void
report_elsewhere(Oid method, List *name)
{
	char	   *schema;
	char	   *class;
	Oid			mirror;

	DeconstructQualifiedName(name, &schema, &class);
	mirror = GetSysCacheOid3(CLAAMNAMENSP, Anum_pg_opclass_oid, ObjectIdGetDatum(method), PointerGetDatum(class),
							 ObjectIdGetDatum(PG_CATALOG_NAMESPACE));
	if (OidIsValid(mirror))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("operator class \"%s\" does not exist for access method \"%s\"", NameListToString(name),
						get_am_name(method)),
				 errhint("Its mirror is pg_catalog.%s.", quote_identifier(class))));
}

static void
report_missing(Oid method, Oid type, Oid class)
{
	HeapTuple	tuple = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(get_opclass_family(class)));
	Form_pg_opfamily family;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for the operator family of class %u", class);
	family = (Form_pg_opfamily) GETSTRUCT(tuple);
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("access method \"%s\" does not mirror btree's operator class of data type %s yet", get_am_name(method),
					format_type_be(type)),
			 errdetail("It was made while sherman was not loaded."),
			 errhint("Have a superuser run SELECT sherman_mirror_opfamily(%s, %s).",
					 quote_literal_cstr(get_namespace_name(family->opfnamespace)), quote_literal_cstr(NameStr(family->opfname)))));
}

void
sherman_require_classes(Node *statement)
{
	IndexStmt  *create = (IndexStmt *) statement;
	Oid			method;
	Oid			table;
	ListCell   *cell;

	if (!IsA(statement, IndexStmt) || create->accessMethod == NULL || strcmp(create->accessMethod, "btree") == 0 ||
		create->relation == NULL)
		return;
	method = get_am_oid(create->accessMethod, true);
	table = RangeVarGetRelid(create->relation, NoLock, true);
	/* To others core says what they may know. */
	if (!OidIsValid(method) || method != sherman_access_method() || !OidIsValid(table) ||
		!compat_owns(RelationRelationId, table))
		return;
	foreach(cell, create->indexParams)
	{
		IndexElem  *column = lfirst_node(IndexElem, cell);
		AttrNumber	number = column->name != NULL ? get_attnum(table, column->name) : InvalidAttrNumber;
		Oid			type = number != InvalidAttrNumber ? get_atttype(table, number) : InvalidOid;
		Oid			theirs;

		if (!OidIsValid(type) || OidIsValid(class_of(method, column->opclass, type)))
			continue;
		theirs = class_of(BTREE_AM_OID, column->opclass, type);
		if (!OidIsValid(theirs))
			continue;
		if (column->opclass != NIL)
			report_elsewhere(method, column->opclass);
		report_missing(method, type, theirs);
	}
}
