/*
 * databases.c
 *		Commands that need a database for themselves: no worker of ours may be in their way, and nobody may send our workers
 *		away by a command without the right to it.
 *
 * Core gives up if there are other sessions in a database that is dropped, copied, renamed or moved.  It looks for them behind its
 * checks of rights, and tells nobody in between.  So those checks are made here before, and a worker run (scheduler.c) ends only in the
 * database that the command is about.  What passes here is checked by core again.
 */
#include "am/base/sherman.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/tablespace.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/ipc.h"
#include "utils/acl.h"
#include "utils/syscache.h"

#include "am/background/background.h"
#include "am/base/compat.h"
#include "am/base/shared.h"

/* Whether the current user may make databases. */
static bool
may_create(void)
{
	HeapTuple	tuple;
	bool		may;

	if (superuser())
		return true;
	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
	may = HeapTupleIsValid(tuple) && ((Form_pg_authid) GETSTRUCT(tuple))->rolcreatedb;
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return may;
}

/* Whether the current user may copy this one. */
static bool
may_copy(Oid database)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
	bool		template;

	if (!HeapTupleIsValid(tuple))
		return false;
	template = ((Form_pg_database) GETSTRUCT(tuple))->datistemplate;
	ReleaseSysCache(tuple);
	return template || compat_owns(DatabaseRelationId, database);
}

/* The value of an option, or NULL. */
static char *
option_of(List *options, const char *name)
{
	ListCell   *cell;

	foreach(cell, options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, name) == 0 && option->arg != NULL)
			return defGetString(option);
	}
	return NULL;
}

static Oid
needed_by_create(const CreatedbStmt *statement)
{
	char	   *name = option_of(statement->options, "template");
	Oid			template = get_database_oid(name != NULL ? name : "template1", true);

	if (!may_create() || OidIsValid(get_database_oid(statement->dbname, true)))
		return InvalidOid;
	return OidIsValid(template) && may_copy(template) ? template : InvalidOid;
}

static Oid
needed_by_move(const AlterDatabaseStmt *statement)
{
	char	   *name = option_of(statement->options, "tablespace");
	Oid			tablespace = name != NULL ? get_tablespace_oid(name, true) : InvalidOid;

	if (!OidIsValid(tablespace) || !compat_may_create_in(tablespace))
		return InvalidOid;
	return get_database_oid(statement->dbname, true);
}

static Oid
needed_by_rename(const RenameStmt *statement)
{
	if (statement->renameType != OBJECT_DATABASE || !may_create() || OidIsValid(get_database_oid(statement->newname, true)))
		return InvalidOid;
	return get_database_oid(statement->subname, true);
}

/*
 * The database that the command needs for itself, and that the current user may do this to; InvalidOid: there is none.
 */
static Oid
needed_by(Node *statement, bool top_level)
{
	Oid			database = InvalidOid;

	/* Core does this in a transaction block, too. */
	if (IsA(statement, RenameStmt))
		database = needed_by_rename((RenameStmt *) statement);
	else if (IsA(statement, CreatedbStmt))
		return IsInTransactionBlock(top_level) ? InvalidOid : needed_by_create((CreatedbStmt *) statement);
	else if (IsA(statement, DropdbStmt) && !IsInTransactionBlock(top_level))
		database = get_database_oid(((DropdbStmt *) statement)->dbname, true);
	else if (IsA(statement, AlterDatabaseStmt) && !IsInTransactionBlock(top_level))
		database = needed_by_move((AlterDatabaseStmt *) statement);
	return OidIsValid(database) && database != MyDatabaseId && compat_owns(DatabaseRelationId, database) ? database : InvalidOid;
}

bool
sherman_database_begin(Node *statement, bool top_level)
{
	Oid			database = needed_by(statement, top_level);

	if (OidIsValid(database))
		sherman_runs_forbid(database);
	return OidIsValid(database);
}

void
sherman_database_end(void)
{
	sherman_runs_allow(0, (Datum) 0);
	/* A dropped database's trees. */
	pg_atomic_fetch_add_u32(&sherman_shared->hints, 1);
	sherman_wake_launcher();
}
