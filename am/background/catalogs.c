/*
 * catalogs.c
 *		What background workers find in the catalogs: databases, and indexes that may be ours.
 */
#include "am/base/sherman.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "utils/snapmgr.h"

#include "am/background/background.h"
#include "am/base/compat.h"

/*
 * What `read` makes of the rows of a catalog, but for those that it makes NULL of.
 */
static List *
read_catalog(Oid catalog, void *(*read) (HeapTuple tuple))
{
	Relation	relation = table_open(catalog, AccessShareLock);
	/* Parallel mode allows no latest snapshot; but only the workers need one, which run by themselves. */
	Snapshot	snapshot = RegisterSnapshot(IsInParallelMode() ? GetCatalogSnapshot(catalog) : GetLatestSnapshot());
	TableScanDesc scan = compat_beginscan(relation, snapshot);
	List	   *found = NIL;
	HeapTuple	tuple;

	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		void	   *item = read(tuple);

		if (item != NULL)
			found = lappend(found, item);
	}
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(relation, AccessShareLock);
	return found;
}

static void *
read_candidate(HeapTuple tuple)
{
	Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
	ShermanCandidate *candidate;

	if (form->relkind != RELKIND_INDEX || form->relam < FirstNormalObjectId)
		return NULL;
	candidate = palloc(sizeof(ShermanCandidate));
	candidate->oid = form->oid;
	candidate->owner = form->relowner;
	candidate->entries = form->reltuples;
	candidate->temporary = form->relpersistence == RELPERSISTENCE_TEMP;
	return candidate;
}

List *
sherman_list_candidates(void)
{
	return read_catalog(RelationRelationId, read_candidate);
}

static void *
read_database(HeapTuple tuple)
{
	Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
	ShermanDatabase *database = palloc(sizeof(ShermanDatabase));

	database->oid = form->oid;
	/* Less than -1 is the limit of one whose DROP was interrupted. */
	database->invalid = form->datconnlimit < -1;
	database->open = form->datallowconn && !database->invalid;
	return database;
}

List *
sherman_list_databases(void)
{
	MemoryContext caller = CurrentMemoryContext;
	List	   *databases;

	StartTransactionCommand();
	MemoryContextSwitchTo(caller);
	databases = read_catalog(DatabaseRelationId, read_database);
	CommitTransactionCommand();
	MemoryContextSwitchTo(caller);
	return databases;
}

const ShermanDatabase *
sherman_find_database(const List *databases, Oid oid)
{
	ListCell   *cell;

	foreach(cell, databases)
	{
		const ShermanDatabase *database = lfirst(cell);

		if (database->oid == oid)
			return database;
	}
	return NULL;
}
