/*
 * forget.c
 *		sherman_forget_memory_node(): a memory node that is not coming back gives up its position, and the indexes that lie on it
 *		are broken, so that they can be rebuilt elsewhere.
 *
 * Nothing else gives a position up: a memory node that is away for long, or that the list does not name any more, may
 * come back with its indexes.  Only the launcher changes positions; a session asks it, and waits.
 */
#include "am/base/sherman.h"

#include "miscadmin.h"

#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"
#include "am/recovery/recovery.h"
#include "am/server/server.h"

PG_FUNCTION_INFO_V1(sherman_forget_memory_node);

/*
 * Why a position cannot be given up; NULL: it can.  Under the lock.
 */
static const char *
why_not(int position)
{
	if (sherman_node_phase(position) == SHERMAN_PHASE_ATTACHED)
		return "It is attached.";
	for (int i = 0; i < sherman_shared->listed_count; i++)
	{
		if (sherman_shared->listed[i].position == position ||
			strcmp(sherman_shared->listed[i].address, sherman_shared->node[position].address) == 0)
			return "It is in the list of memory nodes that this server uses.";
	}
	return NULL;
}

/*
 * In the launcher: gives the position up, in the state file first.
 */
static void
forget(int position)
{
	ShermanNode *node = &sherman_shared->node[position];
	ShermanLocal local = sherman_shared->local;
	char		address[SHERMAN_ADDRESS_BYTES];

	strlcpy(address, node->address, sizeof(address));
	memset(&local.node[position], 0, sizeof(local.node[position]));
	local.node[position].forgotten = 1;
	/* Its WARNING says why not; the session finds the position as it was. */
	if (!sherman_local_change(&local))
		return;
	if (sherman_epoch() != 0)
		(void) sherman_history_write(&local);
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	memset(node->memory, 0, sizeof(node->memory));
	node->member = 0;
	node->address[0] = '\0';
	pg_atomic_write_u32(&node->gone, 0);
	pg_atomic_write_u32(&node->phase, SHERMAN_PHASE_NONE);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	sherman_trees_clear(position);
	sherman_state_changed();
	sherman_invalidate_plans();
	pg_atomic_fetch_add_u32(&sherman_shared->hints, 1);
	ereport(LOG,
			(errmsg("memory node %d at \"%s\" is forgotten", position, address),
			 errdetail("Indexes that lie on it are broken.")));
}

void
sherman_forget_round(void)
{
	uint32		wanted = pg_atomic_exchange_u32(&sherman_shared->forget, 0);

	if (wanted == 0)
		return;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		bool		allowed;

		if ((wanted & 1u << i) == 0)
			continue;
		LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
		allowed = why_not(i) == NULL;
		LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
		if (allowed)
			forget(i);
	}
	pg_atomic_fetch_add_u32(&sherman_shared->forgotten, 1);
	ConditionVariableBroadcast(&sherman_shared->changed);
}

/*
 * Raises unless the memory node at the position can be forgotten.
 */
static void
check_forgettable(int position)
{
	const char *reason = NULL;
	bool		known;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	known = sherman_shared->node[position].memory[0] != 0 || sherman_shared->node[position].memory[1] != 0;
	if (known)
		reason = why_not(position);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	if (!known)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no memory node %d", position),
				 errhint("The view \"sherman_stat_memory_nodes\" lists them.")));
	if (reason != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("memory node %d cannot be forgotten", position),
				 errdetail("%s", reason),
				 errhint("Take its address off \"sherman.memory_nodes\", and run SELECT pg_reload_conf(); the embedded memory node "
						 "goes with a restart of the server with memory nodes in that list.")));
}

/*
 * sherman_forget_memory_node(position integer)
 */
Datum
sherman_forget_memory_node(PG_FUNCTION_ARGS)
{
	int			position = PG_GETARG_INT32(0);
	uint32		before;

	if (sherman_all_hidden() || RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("memory nodes cannot be forgotten here"),
				 errdetail("The library was not loaded when the server started, or this is a standby.")));
	if (position < 0 || position >= TREE_MAX_NODES)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no memory node %d", position),
				 errhint("The view \"sherman_stat_memory_nodes\" lists them.")));
	check_forgettable(position);
	before = pg_atomic_read_u32(&sherman_shared->forgotten);
	pg_atomic_fetch_or_u32(&sherman_shared->forget, 1u << position);
	sherman_wake_launcher();
	ConditionVariablePrepareToSleep(&sherman_shared->changed);
	while (pg_atomic_read_u32(&sherman_shared->forgotten) == before ||
		   (pg_atomic_read_u32(&sherman_shared->forget) & 1u << position) != 0)
		ConditionVariableSleep(&sherman_shared->changed, sherman_wait_event(SHERMAN_WAIT_LAUNCHER));
	ConditionVariableCancelSleep();
	/* It may have come back, or into the list, meanwhile; or the state file could not be written. */
	if (sherman_shared->node[position].memory[0] != 0 || sherman_shared->node[position].memory[1] != 0)
	{
		check_forgettable(position);
		ereport(ERROR,
				(errcode(ERRCODE_IO_ERROR),
				 errmsg("memory node %d could not be forgotten", position),
				 errdetail("The state file could not be written."),
				 errhint("See the server's log.")));
	}
	PG_RETURN_VOID();
}
