/*
 * owner.c
 *		Code that a table's owner has written into an index, functions of its expressions and its predicate: whether
 *		an index has some, and as which user it runs. The index's creator decides what such functions do, and
 *		search_path decides which functions they find. So they run in maintenance alone (CREATE INDEX, REINDEX,
 *		CLUSTER, VACUUM, the healer, sherman_heal(),
 * sherman_check()), as the table's owner, in a security-restricted operation, with a search_path that is the same for
 * everybody, as core's maintenance commands have it from 17 on.  A restricted operation alone keeps nobody from ALTER ROLE,
 * GRANT, or changes of tables.  Sessions that read or insert never become another user (I-P7).
 *
 * PostgreSQL's own functions are nobody's code: they do not look at the path, and do what they are for whoever calls them.
 */
#include "am/base/sherman.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_index.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "am/base/compat.h"
#include "am/base/owner.h"

/* ---- whether there is any ---- */

/* check_function_callback: a function that is not one of PostgreSQL's own in C. */
static bool
is_owners_function(Oid function, void *unused)
{
	HeapTuple	tuple;
	bool		internal;

	if (function >= FirstNormalObjectId)
		return true;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	internal = HeapTupleIsValid(tuple) && ((Form_pg_proc) GETSTRUCT(tuple))->prolang == INTERNALlanguageId;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return !internal;
}

/*
 * Whether values of a type may bring functions of their own: input and output, comparison, checks of a domain.
 */
static bool
is_owners_type(Oid type)
{
	char		kind = get_typtype(type);

	return type >= FirstNormalObjectId ||
		(kind != TYPTYPE_BASE && kind != TYPTYPE_RANGE && kind != TYPTYPE_MULTIRANGE);
}

/*
 * Tree walker: whether an expression may run code that is not PostgreSQL's own.  What is not known here may.
 */
static bool
runs_code(Node *node, void *unused)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
		case T_CaseWhen:
			break;
		case T_Var:
		case T_Const:
		case T_FuncExpr:
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
		case T_ScalarArrayOpExpr:
		case T_BoolExpr:
		case T_RelabelType:
		case T_CollateExpr:
		case T_CoerceViaIO:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_ArrayExpr:
		case T_CoalesceExpr:
		case T_MinMaxExpr:
		case T_NullTest:
		case T_BooleanTest:
			if (is_owners_type(exprType(node)))
				return true;
			break;
		default:
			return true;
	}
	return check_functions_in_node(node, is_owners_function, NULL) || expression_tree_walker(node, runs_code, NULL);
}

/*
 * What pg_index has in a column, as it was written, or NULL.  The relcache simplifies it, with the session's search_path, which may run
 * functions, and put the text of some in their place.
 */
static Node *
read_column(HeapTuple tuple, AttrNumber column)
{
	bool		isnull;
	Datum		written = SysCacheGetAttr(INDEXRELID, tuple, column, &isnull);

	return isnull ? NULL : stringToNode(TextDatumGetCString(written));
}

static HeapTuple
find_definition(Relation index)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(RelationGetRelid(index)));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", RelationGetRelid(index));
	return tuple;
}

int
owner_code_of(Relation index)
{
	HeapTuple	tuple = find_definition(index);
	int			code = 0;

	if (runs_code(read_column(tuple, Anum_pg_index_indexprs), NULL))
		code |= OWNER_CODE_EXPRESSIONS;
	if (runs_code(read_column(tuple, Anum_pg_index_indpred), NULL))
		code |= OWNER_CODE_PREDICATE;
	ReleaseSysCache(tuple);
	return code;
}

/* ---- who runs it, and how ---- */

bool
owner_maintains(Relation heap)
{
	return GetUserId() == heap->rd_rel->relowner && InSecurityRestrictedOperation();
}

void
owner_pin_path(void)
{
	/* For each entry of a leaf this is called anew: most often the maintenance has set it already. */
	if (strcmp(namespace_search_path, OWNER_PATH) != 0)
		(void) set_config_option("search_path", OWNER_PATH, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

int
owner_begin_path(void)
{
	int			nest_level = NewGUCNestLevel();

	owner_pin_path();
	return nest_level;
}

void
owner_end_path(int nest_level)
{
	AtEOXact_GUC(false, nest_level);
}

void
owner_reads_expressions(Relation index, IndexInfo *info)
{
	HeapTuple	tuple = find_definition(index);

	if (info->ii_Expressions != NIL)
		info->ii_Expressions = (List *) read_column(tuple, Anum_pg_index_indexprs);
	if (info->ii_Predicate != NIL)
		info->ii_Predicate = make_ands_implicit((Expr *) read_column(tuple, Anum_pg_index_indpred));
	info->ii_ExpressionsState = NIL;
	info->ii_PredicateState = NULL;
	ReleaseSysCache(tuple);
}

void
owner_begin(Relation heap, OwnerCaller *caller)
{
	GetUserIdAndSecContext(&caller->user, &caller->security);
	SetUserIdAndSecContext(heap->rd_rel->relowner, caller->security | SECURITY_RESTRICTED_OPERATION);
	caller->nest_level = owner_begin_path();
}

void
owner_end(const OwnerCaller *caller)
{
	owner_end_path(caller->nest_level);
	SetUserIdAndSecContext(caller->user, caller->security);
}

void
owner_check(Oid index)
{
	if (!compat_owns(RelationRelationId, index))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(index));
}
