/*
 * pool.c
 *		The memory nodes of this instance: which are wanted (the list), and what is known of each (the
 *		positions).
 *
 * A memory node's position is its number in pointers.  It belongs to the memory, by its identity, and is kept
 * in the state file; the list says only where to look.  So an address may change, or the list's order, and
 * nothing else does. A position is given away again only when its memory is given up: because its address
 * answers with new memory, or because the list has no place for it any more and others need one.
 *
 * The launcher alone changes list and positions (attach.c).  Others read; what they go by is a position's
 * phase, and the counter of its attaches.
 */
#include "am/base/sherman.h"

#include <time.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "am/base/shared.h"
#include "am/nodes/nodes.h"

/* A memory node is taken to be there as long as the launcher has heard it: its heartbeat, and half as long for a busy machine. */
#define HEARD_LATELY_MS (SHERMAN_HEARTBEAT_MS + SHERMAN_HEARTBEAT_MS / 2)

/* Round trips that are measured: the least of them is what the network takes, without what else the machine did. */
#define ROUND_TRIPS_MEASURED 8

/* ---- the list ---- */

/*
 * The position of the memory that was last at this address; -1: none was.
 */
static int
position_at(const ShermanShared *shared, const char *address)
{
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		const ShermanNode *node = &shared->node[i];

		if ((node->memory[0] != 0 || node->memory[1] != 0) && strcmp(node->address, address) == 0)
			return i;
	}
	return -1;
}

/*
 * Makes the list's entry for an address; what is known of it from the list as it was stays.
 */
static void
make_listed(const ShermanShared *shared, const char *address, ShermanListedNode *listed)
{
	for (int i = 0; i < shared->listed_count; i++)
	{
		if (strcmp(shared->listed[i].address, address) == 0)
		{
			*listed = shared->listed[i];
			return;
		}
	}
	memset(listed, 0, sizeof(*listed));
	strlcpy(listed->address, address, sizeof(listed->address));
	listed->position = position_at(shared, address);
}

void
sherman_pool_configure(ShermanShared *shared)
{
	char		addresses[TREE_MAX_NODES][SHERMAN_ADDRESS_BYTES];
	ShermanListedNode listed[TREE_MAX_NODES];
	const char *problem;
	int			count = 0;

	if (shared->embedded)
	{
		snprintf(addresses[0], sizeof(addresses[0]), "shm:%s", SHERMAN_SOCKET);
		count = 1;
	}
	else if (sherman_memory_node_list != NULL)
		count = sherman_parse_nodes(sherman_memory_node_list, addresses, &problem);
	/* The setting was checked; one that is wrong all the same is as good as none. */
	count = Max(count, 0);
	for (int i = 0; i < count; i++)
		make_listed(shared, addresses[i], &listed[i]);
	memcpy(shared->listed, listed, count * sizeof(listed[0]));
	shared->listed_count = count;
}

bool
sherman_node_listed(int position, ShermanListedNode *listed)
{
	bool		found = false;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	for (int i = 0; i < sherman_shared->listed_count && !found; i++)
	{
		found = sherman_shared->listed[i].position == position;
		if (found)
			*listed = sherman_shared->listed[i];
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return found;
}

bool
sherman_node_looked_for(int position, ShermanListedNode *listed)
{
	bool		found = sherman_node_listed(position, listed);

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	for (int i = 0; i < sherman_shared->listed_count && !found && sherman_shared->node[position].address[0] == '\0'; i++)
	{
		found = sherman_shared->listed[i].position < 0;
		if (found)
			*listed = sherman_shared->listed[i];
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return found;
}

void
sherman_first_failure(ShermanListedNode *listed)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	for (int i = 0; i < sherman_shared->listed_count; i++)
	{
		if (i == 0 || listed->failure[0] == '\0')
			*listed = sherman_shared->listed[i];
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}

void
sherman_note_failure(ShermanListedNode *listed, FabricStatus status, const char *failure, const char *effect)
{
	bool		news;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	news = strcmp(listed->failure, failure) != 0;
	listed->status = status;
	strlcpy(listed->failure, failure, sizeof(listed->failure));
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	if (news && failure[0] != '\0')
		ereport(LOG, (errmsg("memory node \"%s\" %s: %s", listed->address, effect, failure)));
}

bool
sherman_measure_round_trip(TreeClient *client, int position)
{
	ShermanNode *node = &sherman_shared->node[position];
	int64		least = sherman_node_is_mapped(node->address) ? 0 : PG_INT32_MAX;

	for (int i = 0; i < ROUND_TRIPS_MEASURED && least > 0; i++)
	{
		TreeNodeStatus status;
		TimestampTz began = GetCurrentTimestamp();

		if (tree_node_status(client, position, &status) != TREE_OK)
			return false;
		least = Min(least, Max(GetCurrentTimestamp() - began, 1));
	}
	pg_atomic_write_u32(&node->round_trip_us, (uint32) least);
	return true;
}

/* ---- phases ---- */

ShermanPhase
sherman_node_phase(int position)
{
	ShermanPhase phase = (ShermanPhase) pg_atomic_read_u32(&sherman_shared->node[position].phase);

	Assert(position >= 0 && position < TREE_MAX_NODES);
	/* What a standby has attached as a reader is not this server's before the launcher has attached it. */
	if (phase == SHERMAN_PHASE_ATTACHED && pg_atomic_read_u32(&sherman_shared->standby_reads) != 0 && !RecoveryInProgress())
		return SHERMAN_PHASE_ATTACHING;
	return phase;
}

double
sherman_round_trip_us(void)
{
	double		sum = 0;
	int			count = 0;

	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (sherman_node_phase(i) != SHERMAN_PHASE_ATTACHED)
			continue;
		sum += pg_atomic_read_u32(&sherman_shared->node[i].round_trip_us);
		count++;
	}
	return count > 0 ? sum / count : 0;
}

ShermanPhase
sherman_phase(void)
{
	ShermanPhase best;

	if (sherman_shared == NULL || sherman_shared->listed_count == 0)
		return SHERMAN_PHASE_NONE;
	best = pg_atomic_read_u32(&sherman_shared->awaited) != 0 ? SHERMAN_PHASE_ATTACHING : SHERMAN_PHASE_AWAY;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		ShermanPhase phase = sherman_node_phase(i);

		if (phase == SHERMAN_PHASE_ATTACHED)
			return phase;
		if (phase == SHERMAN_PHASE_ATTACHING)
			best = phase;
	}
	return best;
}

/*
 * What depends on phases is to be looked at again.
 */
static void
tell(void)
{
	sherman_state_changed();
	ConditionVariableBroadcast(&sherman_shared->changed);
	sherman_invalidate_plans();
}

uint64
sherman_monotonic_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64) now.tv_sec * 1000000 + (uint64) now.tv_nsec / 1000;
}

void
sherman_node_heard(int position)
{
	pg_atomic_write_u64(&sherman_shared->node[position].heard_us, sherman_monotonic_us());
}

bool
sherman_node_is_heard(int position)
{
	ShermanNode *node = &sherman_shared->node[position];
	uint64		heard = pg_atomic_read_u64(&node->heard_us);

	return heard != 0 && pg_atomic_read_u32(&node->suspected) != SHERMAN_SUSPECTED &&
		sherman_monotonic_us() - heard < HEARD_LATELY_MS * UINT64CONST(1000);
}

void
sherman_node_attached(int position)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	sherman_node_heard(position);
	pg_atomic_write_u32(&sherman_shared->node[position].phase, SHERMAN_PHASE_ATTACHED);
	pg_atomic_write_u32(&sherman_shared->node[position].gone, 0);
	sherman_shared->wait_began = 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	tell();
}

void
sherman_node_lost(int position)
{
	pg_atomic_uint32 *phase = &sherman_shared->node[position].phase;
	bool		attached;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	attached = pg_atomic_read_u32(phase) == SHERMAN_PHASE_ATTACHED;
	if (attached)
	{
		pg_atomic_write_u32(phase, SHERMAN_PHASE_AWAY);
		tree_node_close(sherman_tree_shared, position);
		/* From now on processes wait for this one. */
		sherman_shared->wait_began = 0;
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	if (!attached)
		return;
	tell();
	sherman_wake_launcher();
}

void
sherman_node_drained(int position)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	pg_atomic_write_u32(&sherman_shared->node[position].drained, 1);
	sherman_shared->wait_began = 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	tell();
}

void
sherman_node_not_awaited(int position)
{
	if (sherman_node_phase(position) != SHERMAN_PHASE_ATTACHING)
		return;
	pg_atomic_write_u32(&sherman_shared->node[position].phase, SHERMAN_PHASE_AWAY);
	tell();
}

void
sherman_pool_give_up_waiting(void)
{
	pg_atomic_write_u32(&sherman_shared->awaited, 0);
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (sherman_node_phase(i) == SHERMAN_PHASE_ATTACHING)
			pg_atomic_write_u32(&sherman_shared->node[i].phase, SHERMAN_PHASE_AWAY);
	}
	tell();
}

uint32
sherman_attached_nodes(void)
{
	uint32		attached = 0;

	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (sherman_node_phase(i) == SHERMAN_PHASE_ATTACHED)
			attached |= 1u << i;
	}
	return attached;
}

/* ---- memory nodes that are gone ---- */

/*
 * Says whether the memory node at a position is gone.
 */
static void
set_gone(int position, bool gone)
{
	ShermanNode *node = &sherman_shared->node[position];

	if ((pg_atomic_read_u32(&node->gone) != 0) == gone)
		return;
	pg_atomic_write_u32(&node->gone, gone ? 1 : 0);
	if (gone)
		ereport(LOG,
				(errmsg("memory node %d at \"%s\" is gone: it was away for more than %d s", position, node->address,
						sherman_gone_after_s),
				 errdetail("Its indexes count as broken until it is back.")));
	tell();
}

/*
 * Milliseconds until a memory node that is away is gone.  While no other is attached it is rather this server
 * that is cut off, so that time does not count.
 */
static long
time_until_gone(const ShermanNode *node, TimestampTz now)
{
	TimestampTz since = Max(node->away_since, sherman_shared->attached_since);

	if (sherman_gone_after_s < 0 || sherman_shared->attached_since == 0)
		return LONG_MAX;
	since = TimestampTzPlusMilliseconds(since, sherman_gone_after_s * INT64CONST(1000));
	return TimestampDifferenceMilliseconds(now, since);
}

long
sherman_pool_find_gone(void)
{
	TimestampTz now = GetCurrentTimestamp();
	long		next = LONG_MAX;

	if (sherman_attached_nodes() == 0)
		sherman_shared->attached_since = 0;
	else if (sherman_shared->attached_since == 0)
		sherman_shared->attached_since = now;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		ShermanNode *node = &sherman_shared->node[i];
		long		left;

		if (sherman_node_phase(i) != SHERMAN_PHASE_AWAY)
		{
			node->away_since = 0;
			continue;
		}
		if (node->away_since == 0)
			node->away_since = now;
		left = time_until_gone(node, now);
		set_gone(i, left <= 0);
		if (left > 0)
			next = Min(next, left);
	}
	return next;
}

/*
 * Positions are what the state file says; memory nodes that it knows are awaited, or not.
 */
static void
know_nodes(ShermanShared *shared, bool awaited)
{
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		ShermanNode *node = &shared->node[i];
		const ShermanLocalNode *local = &shared->local.node[i];
		ShermanPhase phase = SHERMAN_PHASE_NONE;

		memcpy(node->memory, local->memory, sizeof(node->memory));
		node->member = local->member;
		strlcpy(node->address, local->address, sizeof(node->address));
		/* Those that the list does not name may be behind another address of it. */
		if (node->memory[0] != 0 || node->memory[1] != 0)
			phase = awaited ? SHERMAN_PHASE_ATTACHING : SHERMAN_PHASE_AWAY;
		pg_atomic_write_u32(&node->phase, phase);
	}
}

void
sherman_pool_start(ShermanShared *shared)
{
	bool		wanted;

	shared->embedded = sherman_embedded;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		ShermanNode *node = &shared->node[i];

		pg_atomic_init_u32(&node->phase, SHERMAN_PHASE_NONE);
		pg_atomic_init_u32(&node->suspected, SHERMAN_UNSUSPECTED);
		pg_atomic_init_u64(&node->heard_us, 0);
		pg_atomic_init_u32(&node->round_trip_us, 0);
		pg_atomic_init_u32(&node->gone, 0);
		pg_atomic_init_u32(&node->drained, 0);
		pg_atomic_init_u64(&node->serial, 0);
		node->read_serial = 0;
		tree_node_close(sherman_tree_shared, i);
	}
	know_nodes(shared, false);
	sherman_pool_configure(shared);
	wanted = shared->listed_count > 0 && IsPostmasterEnvironment && !IsBinaryUpgrade;
	know_nodes(shared, wanted);
	pg_atomic_init_u32(&shared->awaited, wanted ? 1 : 0);
	pg_atomic_init_u32(&shared->unfollowed, 0);
	pg_atomic_init_u32(&shared->commits_wait, 0);
}

void
sherman_pool_adopt(void)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	know_nodes(sherman_shared, pg_atomic_read_u32(&sherman_shared->awaited) != 0);
	for (int i = 0; i < sherman_shared->listed_count; i++)
		sherman_shared->listed[i].position = -1;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
}
