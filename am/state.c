/*
 * state.c
 *		What state an index is in: it follows from the metapage, from the phase of the instance and from the
 *		table of trees.
 *
 * One counter in shared memory ("generation") changes whenever any of them may have changed for any index, so
 * that an index that was judged under the same generation needs no second look (opened.c).
 */
#include "sherman.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/sinval.h"
#include "utils/timestamp.h"

#include "shared.h"

static const char *const state_names[] = {
	[SHERMAN_OK] = "ok",
	[SHERMAN_ATTACHING] = "attaching",
	[SHERMAN_UNREACHABLE] = "unreachable",
	[SHERMAN_BROKEN] = "broken",
	[SHERMAN_HIDDEN] = "hidden",
};

const char *
sherman_state_name(ShermanState state)
{
	return (unsigned) state < lengthof(state_names) ? state_names[state] : "unknown";
}

ShermanPhase
sherman_phase(void)
{
	if (sherman_shared == NULL)
		return SHERMAN_PHASE_NONE;
	return (ShermanPhase) pg_atomic_read_u32(&sherman_shared->phase);
}

uint32
sherman_epoch(void)
{
	return sherman_shared == NULL ? 0 : pg_atomic_read_u32(&sherman_shared->epoch);
}

void
sherman_state_changed(void)
{
	pg_atomic_fetch_add_u64(&sherman_shared->generation, 1);
}

void
sherman_invalidate_plans(void)
{
	SharedInvalidationMessage message;

	/* No database stands for every database, no relation for all of them. */
	memset(&message, 0, sizeof(message));
	message.rc.id = SHAREDINVALRELCACHE_ID;
	message.rc.dbId = InvalidOid;
	message.rc.relId = InvalidOid;
	SendSharedInvalidMessages(&message, 1);
}

uint64
sherman_generation(void)
{
	return sherman_shared == NULL ? 0 : pg_atomic_read_u64(&sherman_shared->generation);
}

bool
sherman_all_hidden(void)
{
	return sherman_shared == NULL || !IsPostmasterEnvironment || IsBinaryUpgrade || RecoveryInProgress();
}

void
sherman_wait_attached(void)
{
	TimestampTz deadline;

	if (sherman_phase() != SHERMAN_PHASE_ATTACHING)
		return;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	if (sherman_shared->wait_began == 0)
		sherman_shared->wait_began = GetCurrentTimestamp();
	deadline = TimestampTzPlusMilliseconds(sherman_shared->wait_began, sherman_attach_timeout_ms);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));

	ConditionVariablePrepareToSleep(&sherman_shared->changed);
	while (sherman_phase() == SHERMAN_PHASE_ATTACHING)
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

		if (left <= 0)
			break;
		ConditionVariableTimedSleep(&sherman_shared->changed, left, PG_WAIT_EXTENSION);
	}
	ConditionVariableCancelSleep();
}

ShermanState
sherman_judge(const ShermanMetaPage *meta, bool sound, ShermanReason *reason)
{
	ShermanTreeEntry entry;
	ShermanPhase phase;

	*reason = SHERMAN_REASON_NONE;
	if (!sound)
		*reason = meta->magic == 0 && meta->reason == SHERMAN_REASON_NOT_BUILT ?
			SHERMAN_REASON_NOT_BUILT : SHERMAN_REASON_FORMAT;
	else if (meta->flags & SHERMAN_META_BROKEN)
		*reason = (ShermanReason) meta->reason;
	else if (meta->system_identifier != GetSystemIdentifier())
		*reason = SHERMAN_REASON_OTHER_CLUSTER;
	else if (meta->tree == 0 && (meta->flags & SHERMAN_META_UNLOGGED) == 0)
		*reason = SHERMAN_REASON_TREE_MISSING;
	else if (meta->tree != 0 && meta->database != MyDatabaseId)
		*reason = SHERMAN_REASON_OTHER_DATABASE;
	if (*reason != SHERMAN_REASON_NONE)
		return SHERMAN_BROKEN;

	phase = sherman_phase();
	if (phase == SHERMAN_PHASE_ATTACHING)
		return SHERMAN_ATTACHING;
	if (phase != SHERMAN_PHASE_ATTACHED)
		return SHERMAN_UNREACHABLE;
	if (meta->tree == 0)
		return SHERMAN_OK;
	/* Both change only while nobody is attached. */
	if (meta->nodes != 1 || meta->incarnations[0][0] != sherman_shared->memory[0] ||
		meta->incarnations[0][1] != sherman_shared->memory[1])
		*reason = SHERMAN_REASON_MEMORY_LOST;
	else if (!sherman_trees_find(meta->tree, &entry))
		*reason = SHERMAN_REASON_TREE_MISSING;
	else if (entry.flags & TREE_RECORD_BROKEN)
		*reason = SHERMAN_REASON_UNCLEAN;
	return *reason == SHERMAN_REASON_NONE ? SHERMAN_OK : SHERMAN_BROKEN;
}

void
sherman_report_state(int elevel, Relation index, ShermanState state, ShermanReason reason)
{
	char	   *subject = index == NULL ? pstrdup("sherman indexes") :
		psprintf("index \"%s\"", RelationGetRelationName(index));

	if (state == SHERMAN_BROKEN)
		ereport(elevel,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s is broken and cannot be used", subject),
				 errdetail("The reason: %s.", sherman_reason_text(reason)),
				 errhint("Rebuild it with REINDEX.")));
	else if (state != SHERMAN_HIDDEN)
		ereport(elevel,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("%s: the memory node is not attached", subject),
				 errhint("See the server's log and the view \"sherman_memory_nodes\".")));
	else if (sherman_shared == NULL)
		ereport(elevel,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s cannot be used: the library was not loaded when the server started", subject),
				 errhint("Add sherman to shared_preload_libraries.")));
	else
		ereport(elevel,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s cannot be used %s", subject,
						!IsPostmasterEnvironment ? "in single-user mode" :
						IsBinaryUpgrade ? "during pg_upgrade" : "during recovery")));
	pfree(subject);
}
