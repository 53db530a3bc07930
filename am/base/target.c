/*
 * target.c
 *		The index argument of our SQL functions: opened with its table, if the user may work on it.
 */
#include "am/base/sherman.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"

#include "am/base/owner.h"
#include "am/base/shared.h"

void
sherman_open_with_table(Oid index_oid, LOCKMODE mode, Relation *heap, Relation *index)
{
	Oid			heap_oid = IndexGetRelation(index_oid, true);
	char	   *name = get_rel_name(index_oid);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index with OID %u does not exist", index_oid)));
	if (get_rel_relkind(index_oid) == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", name),
				 errhint("Check the indexes of the partitions.")));
	if (!OidIsValid(heap_oid) || get_rel_relkind(index_oid) != RELKIND_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index", name)));
	/* The user's rights are checked before any lock is waited for or taken. */
	owner_check(index_oid);
	*heap = table_open(heap_oid, mode);
	*index = index_open(index_oid, mode);
	if (heap_oid != IndexGetRelation(index_oid, false))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("could not open parent table of index \"%s\"", RelationGetRelationName(*index))));
	if (!sherman_owns(*index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("\"%s\" is not a sherman index", RelationGetRelationName(*index))));
	if (RELATION_IS_OTHER_TEMP(*index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions"),
				 errdetail("Index \"%s\" is associated with temporary relation.",
						   RelationGetRelationName(*index))));
	/* Now it can change no more. */
	owner_check(index_oid);
	if (!(*index)->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot check index \"%s\"", RelationGetRelationName(*index)),
				 errdetail("Index is not valid.")));
}
