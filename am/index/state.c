/*
 * state.c
 *		What state an index is in: it follows from the metapage, from the phase of the instance and from the
 *		table of trees.
 *
 * Under the same generation (instance.c) the state stays as it was determined (open_index.c).
 */
#include "am/base/sherman.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/replica_placement.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/* A process that waits for a memory node checks so often: not every change wakes it. */
#define LOOK_MS 100

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

/*
 * Whether to wait goes on: for this index, or for any memory node.
 */
static bool
is_attaching(const ShermanMetaPage *meta)
{
	ShermanReason reason;

	/* Not by waiting for a memory node. */
	if (sherman_promotion_waits())
		return false;
	if (meta == NULL)
		return sherman_phase() == SHERMAN_PHASE_ATTACHING;
	return sherman_state_determine(meta, true, &reason) == SHERMAN_ATTACHING;
}

/*
 * Sleeps while `waits` says so, at most sherman.attach_timeout from `began` on.
 */
static void
sleep_while(bool (*waits) (const ShermanMetaPage *meta), const ShermanMetaPage *meta, TimestampTz began)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(began, sherman_attach_timeout_ms);

	ConditionVariablePrepareToSleep(&sherman_shared->changed);
	while (waits(meta))
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

		if (left <= 0)
			break;
		ConditionVariableTimedSleep(&sherman_shared->changed, Min(left, LOOK_MS), sherman_wait_event(SHERMAN_WAIT_ATTACH));
	}
	ConditionVariableCancelSleep();
}

bool
sherman_wait_followed(void)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), sherman_attach_timeout_ms);

	ConditionVariablePrepareToSleep(&sherman_shared->changed);
	/* A commit of this process would wait for that standby without a limit, too; or else for none.  Autovacuum has other tables. */
	while (sherman_promotion_waits() &&
		   ((sherman_commits_wait() && !compat_is_autovacuum()) || GetCurrentTimestamp() < deadline))
		ConditionVariableTimedSleep(&sherman_shared->changed, LOOK_MS, sherman_wait_event(SHERMAN_WAIT_STANDBYS));
	ConditionVariableCancelSleep();
	return !sherman_promotion_waits();
}

void
sherman_wait_attached(const ShermanMetaPage *meta)
{
	TimestampTz began;

	if (!is_attaching(meta))
		return;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	if (sherman_shared->wait_began == 0)
		sherman_shared->wait_began = GetCurrentTimestamp();
	began = sherman_shared->wait_began;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	sleep_while(is_attaching, meta, began);
}

void
sherman_wait_while(bool (*waits) (const ShermanMetaPage *meta), const ShermanMetaPage *meta)
{
	if (waits(meta))
		sleep_while(waits, meta, GetCurrentTimestamp());
}

/*
 * Why the memory at a position is not the one that an index lies on.
 */
static ShermanReason
why_lost(int position)
{
	return sherman_shared->local.node[position].forgotten != 0 ? SHERMAN_REASON_FORGOTTEN : SHERMAN_REASON_MEMORY_LOST;
}

/*
 * Why the record of a tree says that it is broken: a part of its memory was given up, or there was an unclean end.
 */
static ShermanReason
why_broken(const ShermanMetaPage *meta, const ShermanTreeEntry *entry)
{
	for (int i = 0; i < TREE_MAX_NODES && meta->replica == 0; i++)
	{
		if (entry->members[i] != 0 && entry->members[i] != sherman_shared->node[i].member)
			return why_lost(i);
	}
	return SHERMAN_REASON_UNCLEAN;
}

/*
 * State of an index that nothing speaks against, by the memory node at one position: whether its memory is
 * the one that the index is in, and whether it can be used.
 */
static ShermanState
determine_by_node(int position, uint64 member, ShermanReason *reason)
{
	if (sherman_shared->node[position].member != member)
	{
		*reason = why_lost(position);
		return SHERMAN_BROKEN;
	}
	switch (sherman_node_phase(position))
	{
		case SHERMAN_PHASE_ATTACHED:
			return SHERMAN_OK;
		case SHERMAN_PHASE_ATTACHING:
			return SHERMAN_ATTACHING;
		default:
			break;
	}
	if (pg_atomic_read_u32(&sherman_shared->node[position].gone) == 0)
		return SHERMAN_UNREACHABLE;
	*reason = SHERMAN_REASON_GONE;
	return SHERMAN_BROKEN;
}

/*
 * Whether it was in the history that the metapage is of that the tree was changed last. The process that has put this
 * epoch's nonce into the record has checked that before; the metapage may have been read earlier.
 */
static bool
same_history(const ShermanMetaPage *meta, const ShermanTreeEntry *entry)
{
	return entry->nonce == meta->nonce_current || entry->nonce == meta->nonce_previous ||
		entry->nonce == sherman_shared->local.nonce;
}

ShermanState
sherman_half_determine(const ShermanMetaPage *meta, int position, uint64 key, ShermanTreeEntry *entry, ShermanReason *reason)
{
	bool		known = sherman_trees_find(key, entry);
	ShermanState state = determine_by_node(position, meta->incarnations[position][0], reason);

	/* Before it is attached nothing may be known of a tree. */
	if (state == SHERMAN_BROKEN || (!known && state != SHERMAN_OK))
		return state;
	if (!known)
		*reason = SHERMAN_REASON_TREE_MISSING;
	else if (entry->flags & TREE_RECORD_BROKEN)
		*reason = why_broken(meta, entry);
	else if (!same_history(meta, entry))
		*reason = SHERMAN_REASON_OTHER_HISTORY;
	return *reason == SHERMAN_REASON_NONE ? state : SHERMAN_BROKEN;
}

ShermanState
sherman_replicas_determine(const ShermanMetaPage *meta, ShermanReason *reason)
{
	ShermanReason replica_reason = SHERMAN_REASON_NONE;
	ShermanTreeEntry entry;
	ShermanState home;
	ShermanState copy;

	if (meta->replicas_valid == SHERMAN_VALID_SECOND)
		return sherman_half_determine(meta, halves_replica(meta), meta->tree | SHERMAN_TREE_REPLICA, &entry, reason);
	home = sherman_half_determine(meta, halves_home(meta), meta->tree, &entry, reason);
	if (meta->replicas_valid == SHERMAN_VALID_FIRST)
		return home;
	copy = sherman_half_determine(meta, halves_replica(meta), meta->tree | SHERMAN_TREE_REPLICA, &entry, &replica_reason);
	/* At the start a copy is waited for before it is given up. */
	if (home == SHERMAN_OK)
		return copy == SHERMAN_ATTACHING ? copy : home;
	if (home != SHERMAN_UNREACHABLE && *reason != SHERMAN_REASON_MEMORY_LOST && *reason != SHERMAN_REASON_FORGOTTEN &&
		*reason != SHERMAN_REASON_GONE)
		return home;
	if (copy != SHERMAN_OK)
		return home;
	if (half_may_be_missed(meta, halves_home(meta)) && halves_in_doubt(meta))
		return home;
	/* The home may be back soon, which is waited for in either case. */
	*reason = SHERMAN_REASON_NONE;
	return half_may_be_missed(meta, halves_home(meta)) ? SHERMAN_OK : SHERMAN_ATTACHING;
}

/*
 * State by all memory nodes that the tree lies on: the worst of them. A broken index stays broken, whichever nodes
 * are away.
 */
static ShermanState
determine_by_nodes(const ShermanMetaPage *meta, ShermanReason *reason)
{
	uint32		home = tree_home(meta->root);
	ShermanTreeEntry entry = {0};
	ShermanState state;

	if (home >= TREE_MAX_NODES || meta->replica > TREE_MAX_NODES)
	{
		*reason = SHERMAN_REASON_FORMAT;
		return SHERMAN_BROKEN;
	}
	if (meta->replica != 0)
		return sherman_replicas_determine(meta, reason);
	state = sherman_half_determine(meta, (int) home, meta->tree, &entry, reason);
	for (int i = 0; i < TREE_MAX_NODES && *reason == SHERMAN_REASON_NONE; i++)
	{
		if (entry.members[i] != 0)
			state = Max(state, determine_by_node(i, entry.members[i], reason));
	}
	return *reason == SHERMAN_REASON_NONE ? state : SHERMAN_BROKEN;
}

bool
sherman_is_healing(const ShermanMetaPage *meta)
{
	ShermanTreeEntry entry;

	return meta->tree != 0 && sherman_trees_find(sherman_tree_key(meta), &entry) && entry.unverified_epoch != 0;
}

int
sherman_away_position(const ShermanMetaPage *meta)
{
	uint32		home = tree_home(meta->root);
	ShermanTreeEntry entry;

	if (meta->tree == 0 || home >= TREE_MAX_NODES)
		return -1;
	if (meta->replica != 0)
		return sherman_replicas_away_position(meta);
	if (sherman_node_phase(home) != SHERMAN_PHASE_ATTACHED || !sherman_trees_find(meta->tree, &entry))
		return (int) home;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (entry.members[i] != 0 && sherman_node_phase(i) != SHERMAN_PHASE_ATTACHED)
			return i;
	}
	return (int) home;
}

/*
 * State on a hot standby, which only reads: whether what the primary has is to be had.  What the primary has done to the index since
 * each scan finds out for itself (am/standby/replay.c).
 */
static ShermanState
determine_on_standby(const ShermanMetaPage *meta, ShermanReason *reason)
{
	ShermanTreeEntry entry = {0};
	ShermanState state;
	int			half;

	/* Nothing is replayed of unlogged tables. */
	if (meta->tree == 0)
		return SHERMAN_HIDDEN;
	if (tree_home(meta->root) >= TREE_MAX_NODES || meta->replica > TREE_MAX_NODES)
	{
		*reason = SHERMAN_REASON_FORMAT;
		return SHERMAN_BROKEN;
	}
	half = halves_read(meta);
	if (sherman_node_phase(half) != SHERMAN_PHASE_ATTACHED)
		return SHERMAN_UNREACHABLE;
	/* Where there is other memory now the primary goes on with the other half, which is about to be replayed. */
	if (meta->replica != 0 && half_is_lost(meta, half))
		return SHERMAN_UNREACHABLE;
	state = determine_by_node(half, meta->incarnations[half][0], reason);
	/* It is new, and where it lies is not known yet; or it is gone, which is not replayed yet. */
	if (state == SHERMAN_OK && !sherman_trees_find(sherman_tree_key(meta), &entry))
	{
		pg_atomic_write_u32(&sherman_shared->trees_wanted, 1);
		return SHERMAN_UNREACHABLE;
	}
	if ((entry.flags & TREE_RECORD_BROKEN) != 0)
	{
		*reason = SHERMAN_REASON_UNCLEAN;
		return SHERMAN_BROKEN;
	}
	for (int i = 0; i < TREE_MAX_NODES && *reason == SHERMAN_REASON_NONE && meta->replica == 0; i++)
	{
		if (entry.members[i] != 0)
			state = Max(state, determine_by_node(i, entry.members[i], reason));
	}
	return state;
}

ShermanState
sherman_state_determine(const ShermanMetaPage *meta, bool sound, ShermanReason *reason)
{
	*reason = SHERMAN_REASON_NONE;
	if (!sound)
		*reason = meta->magic == 0 && meta->reason >= SHERMAN_REASON_NOT_BUILT ?
			(ShermanReason) meta->reason : SHERMAN_REASON_FORMAT;
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

	if (RecoveryInProgress())
		return determine_on_standby(meta, reason);
	/* Whose it is is about to be decided. */
	if (sherman_shared->local.take_over != SHERMAN_TAKE_OVER_NOT)
		return SHERMAN_ATTACHING;
	if (meta->tree != 0)
		return determine_by_nodes(meta, reason);
	/* No tree yet: it is made on any memory node. */
	switch (sherman_phase())
	{
		case SHERMAN_PHASE_ATTACHED:
			return SHERMAN_OK;
		case SHERMAN_PHASE_ATTACHING:
			return SHERMAN_ATTACHING;
		default:
			return SHERMAN_UNREACHABLE;
	}
}

bool
sherman_snapshot_is_of_standby(Snapshot snapshot)
{
	return snapshot != InvalidSnapshot && IsMVCCSnapshot(snapshot) && snapshot->takenDuringRecovery && !RecoveryInProgress();
}

void
sherman_report_conflict(Relation index, const char *why)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("canceling statement due to conflict with recovery"),
			 index == NULL ? errdetail("An index is the primary's, and %s.", why) :
			 errdetail("Index \"%s\" is the primary's, and %s.", RelationGetRelationName(index), why),
			 errhint("Run the transaction again.")));
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
				 errdetail("The reason: %s.", sherman_why_broken(reason)),
				 index != NULL ? sherman_hint_rebuild(index) : 0));
	else if (state != SHERMAN_HIDDEN)
	{
		ShermanMetaPage meta;

		sherman_report_away(elevel, subject, index != NULL && sherman_metapage_read(index, &meta) ?
							sherman_away_position(&meta) : -1);
	}
	else
		ereport(elevel,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s cannot be used: %s", subject, sherman_why_hidden()),
				 sherman_shared == NULL ? errhint("Add sherman to shared_preload_libraries, and restart the server.") : 0));
	pfree(subject);
}
