/*
 * resync.c
 *		sherman_resync(): a tree and its copy are made equal.
 */
#include "am/base/sherman.h"

#include "access/genam.h"
#include "access/table.h"

#include "am/base/owner.h"
#include "am/base/shared.h"
#include "am/heal/heal.h"
#include "am/index/index.h"

PG_FUNCTION_INFO_V1(sherman_resync);

/*
 * sherman_resync(index regclass) returns bigint: compares each node of an index with its copy, and writes
 * anew the copies that differ, whose number it returns.  An unverified index is healed, too: then it is not in
 * doubt any more.
 */
Datum
sherman_resync(PG_FUNCTION_ARGS)
{
	TreeReplicaCounts counts;
	OwnerCaller caller;
	ShermanIndex *opened;
	Relation	heap;
	Relation	index;

	sherman_open_with_table(PG_GETARG_OID(0), RowExclusiveLock, &heap, &index);
	owner_begin(heap, &caller);
	opened = sherman_index_for_vacuum(index);
	if (opened == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is broken", RelationGetRelationName(index)),
				 sherman_hint_rebuild(index)));
	if (opened->tree == NULL || tree_replicas_get(opened->tree) != TREE_REPLICAS_BOTH)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" has no copy", RelationGetRelationName(index)),
				 errhint("Set its \"replicas\" to 1 and rebuild it with REINDEX.")));
	sherman_replicas_repair(index, opened, &counts);
	if (sherman_is_healing(&opened->meta))
		(void) heal_whole(heap, index);
	owner_end(&caller);
	index_close(index, NoLock);
	table_close(heap, NoLock);
	PG_RETURN_INT64((int64) counts.written);
}
