/*
 * relpages.c
 *		pg_class.relpages of an index: its size at the memory nodes, in pages, behind VACUUM and ANALYZE.
 *
 * ANALYZE writes the size of the main fork, which is one page, and shows it to no callback if it is a part of VACUUM (ANALYZE): so
 * what VACUUM has found is looked at again when the next transactions of the process commit, of which that ANALYZE is one.  Others
 * find nothing to do.  Figures alone depend on it: the planner goes by the tree's size (cost.c).
 */
#include "am/base/sherman.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"

#include "am/access/access.h"
#include "am/access/relpages.h"
#include "am/base/compat.h"
#include "am/base/shared.h"

/* Transactions behind a VACUUM of a table: its own, its TOAST table's, and that of ANALYZE. */
#define COMMITS_TO_LOOK_AT 3

/* Indexes that one VACUUM has found; of more the figures are core's. */
#define NOTED_MOST 64

static struct
{
	int			count;
	int			commits;		/* that are still looked at */
	struct
	{
		Oid			index;
		Oid			file;		/* a rebuilt one is another index */
		BlockNumber pages;
	}			noted[NOTED_MOST];
} relpages;

/*
 * Writes the size, unless it is there, over what is in the catalog now, of which the process's caches may not know yet.
 */
static void
write_pages(Relation index, BlockNumber pages)
{
	Relation	catalog = table_open(RelationRelationId, RowExclusiveLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	float4		tuples = 0;
	bool		wrong = false;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(RelationGetRelid(index)));
	scan = systable_beginscan(catalog, ClassOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		wrong = form->relpages != (int32) pages;
		tuples = form->reltuples;
	}
	systable_endscan(scan);
	table_close(catalog, RowExclusiveLock);
	if (wrong)
		compat_update_relstats(index, pages, tuples);
}

/*
 * At the end of a transaction that commits.  It waits for no lock.
 */
static void
write_noted(void)
{
	for (int i = 0; i < relpages.count; i++)
	{
		Oid			oid = relpages.noted[i].index;
		Relation	index;

		if (!ConditionalLockRelationOid(oid, AccessShareLock))
			continue;
		index = try_relation_open(oid, NoLock);
		if (index == NULL)
		{
			UnlockRelationOid(oid, AccessShareLock);
			continue;
		}
		if (sherman_owns(index) && compat_file_number(compat_file(index)) == relpages.noted[i].file)
			write_pages(index, relpages.noted[i].pages);
		relation_close(index, AccessShareLock);
	}
}

static void
transaction_ends(XactEvent event, void *argument)
{
	if (likely(relpages.count == 0))
		return;
	if (event == XACT_EVENT_PRE_COMMIT && !XactReadOnly)
		write_noted();
	if (event == XACT_EVENT_ABORT || (event == XACT_EVENT_COMMIT && --relpages.commits == 0))
		relpages.count = 0;
}

/*
 * What was noted of an index is void.
 */
static void
forget(Oid index)
{
	for (int i = 0; i < relpages.count; i++)
	{
		if (relpages.noted[i].index == index)
			relpages.noted[i--] = relpages.noted[--relpages.count];
	}
}

void
relpages_analyzed(Relation index, BlockNumber pages)
{
	forget(RelationGetRelid(index));
	if (!IsInParallelMode())
		write_pages(index, pages);
}

void
relpages_vacuumed(Relation index, BlockNumber pages)
{
	static bool registered = false;

	forget(RelationGetRelid(index));
	if (IsInParallelMode() || relpages.count == NOTED_MOST)
		return;
	if (!registered)
		RegisterXactCallback(transaction_ends, NULL);
	registered = true;
	relpages.noted[relpages.count].index = RelationGetRelid(index);
	relpages.noted[relpages.count].file = compat_file_number(compat_file(index));
	relpages.noted[relpages.count].pages = pages;
	relpages.count++;
	relpages.commits = COMMITS_TO_LOOK_AT;
}
