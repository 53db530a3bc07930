/*
 * heal_wait.c
 *		A session that finds an unverified entry may not look up its row if that would run code of the table's owner
 *		(owner.c). It waits for the healer, which may. The healer waits for nothing that the session holds: it takes
 *		the locks of a change of rows only if they are free, and where the session itself keeps them from others it
 *		does not wait at all. A row that the session has not committed keeps its entry. Locks of keys, and parts of
 *		keys, are taken for uniqueness checks only; the healer makes none, and the check releases them before it
 *		waits.
 */
#include "am/base/sherman.h"

#include "access/table.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "am/base/shared.h"
#include "am/index/index.h"

/* The end of healing wakes the session; a run that ends in vain does not. */
#define LOOK_MS 100

/* Whether this session keeps the healer from the table. */
static bool
keeps_healer_out(Relation index)
{
	Relation	heap = table_open(index->rd_index->indrelid, NoLock);
	bool		keeps = CheckRelationLockedByMe(heap, ShareLock, true);

	table_close(heap, NoLock);
	return keeps;
}

/* Why there is no point in waiting for the healer any more; NULL: there is. */
static const char *
no_use(Relation index, const ShermanMetaPage *meta)
{
	ShermanTreeEntry entry;

	if (!sherman_autoheal)
		return "\"sherman.autoheal\" is off.";
	if (index->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return "Nobody else can heal an index of a temporary table.";
	if (sherman_trees_find(sherman_tree_key(meta), &entry) && entry.heal_vain)
		return "The healer has tried in vain; the server's log says why.";
	if (keeps_healer_out(index))
		return "This session has locked the table.";
	return NULL;
}

static void
report_doubt(Relation index, const char *why)
{
	char	   *name = quote_qualified_identifier(get_namespace_name(RelationGetNamespace(index)), RelationGetRelationName(index));

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("index \"%s\" cannot be used here before it is healed", RelationGetRelationName(index)),
			 errdetail("A crash has left unverified entries, and only maintenance may run the functions that tell which are good.%s%s",
					   why != NULL ? " " : "", why != NULL ? why : ""),
			 errhint("Run SELECT sherman_heal(%s), or REINDEX INDEX %s, as the owner of the table.", quote_literal_cstr(name), name)));
}

void
sherman_report_doubt(Relation index)
{
	report_doubt(index, NULL);
	pg_unreachable();
}

void
sherman_heal_wait(Relation index)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), sherman_heal_timeout_ms);
	ShermanMetaPage meta;

	ConditionVariablePrepareToSleep(&sherman_shared->changed);
	while (sherman_metapage_read(index, &meta) && sherman_is_healing(&meta))
	{
		const char *why = no_use(index, &meta);
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

		if (why == NULL && left <= 0)
			why = "The healer has not been through with it in \"sherman.heal_timeout\".";
		if (why != NULL)
			report_doubt(index, why);
		sherman_trees_heal_soon(sherman_tree_key(&meta));
		sherman_wake_launcher();
		ConditionVariableTimedSleep(&sherman_shared->changed, Min(left, LOOK_MS), sherman_wait_event(SHERMAN_WAIT_HEAL));
	}
	ConditionVariableCancelSleep();
}
