/*
 * attach.c
 *		The launcher's work with memory nodes: it finds each of the list, attaches to it before anybody may
 *		use it, looks after it, and attaches anew when it was away.
 *
 * To attach is: look who is there (its memory's identity gives the position), fence (all older channels of
 * this instance are dead then), let processes that are inside an operation come to its end, mark as broken
 * what is not proven, open the memory node's next epoch, and let everybody in.  Whatever fails is tried
 * again, less and less often.
 */
#include "am/base/sherman.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"
#include "am/recovery/recovery.h"
#include "am/server/server.h"

/* Between attempts to attach: from the first, doubling, to the last. */
#define RETRY_FIRST_MS 200
#define RETRY_LAST_MS 5000

/*
 * Who was fenced leaves the memory node alone for so long: a standby that takes it over notes that there behind its fence, and where it finds
 * that another server has attached in between, neither of the two has it.
 */
#define FENCED_PAUSE_MS 3000

/* How often it is looked whether operations have ended. */
#define POLL_MS 20

/* The launcher's own memory about an entry of the list. */
typedef struct Attempt
{
	char		address[SHERMAN_ADDRESS_BYTES];
	TimestampTz next;			/* attempt, or look after it */
	long		retry_ms;
} Attempt;

static struct
{
	Attempt		attempt[TREE_MAX_NODES];	/* as the list */
	uint32		reviewed;		/* bit per position: attached when records were last looked at */
	TimestampTz began;			/* first round, 0 = not yet */
} plan;

/* ---- positions ---- */

static bool
position_is_free(int position)
{
	const ShermanNode *node = &sherman_shared->node[position];

	return node->memory[0] == 0 && node->memory[1] == 0;
}

/*
 * The entry of the list that is taken to lead to a position, other than this one; -1: none.
 */
static int
other_entry(int entry, int position)
{
	for (int i = 0; i < sherman_shared->listed_count; i++)
	{
		if (i != entry && sherman_shared->listed[i].position == position)
			return i;
	}
	return -1;
}

/*
 * Whether another entry of the list may lead to any memory that we know, as it was never reached.
 */
static bool
some_entry_unknown(int entry)
{
	for (int i = 0; i < sherman_shared->listed_count; i++)
	{
		if (i != entry && sherman_shared->listed[i].position < 0)
			return true;
	}
	return false;
}

/*
 * The position for new memory that was found through an entry of the list: that of the memory which was there
 * before, unless that may be elsewhere now; a free one; or one whose memory the list does not lead to any
 * more.  The indexes in the memory that is so given up are broken for ever.
 */
static int
position_for_new(int entry)
{
	int			before = sherman_shared->listed[entry].position;

	if (before >= 0 && !some_entry_unknown(entry) && other_entry(entry, before) < 0)
		return before;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (position_is_free(i))
			return i;
	}
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (i != before && other_entry(entry, i) < 0)
			return i;
	}
	return before;
}

/*
 * The position of the memory with this identity; -1: it is new.
 */
static int
position_of(const uint64 memory[2])
{
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (memcmp(sherman_shared->node[i].memory, memory, sizeof(sherman_shared->node[i].memory)) == 0)
			return i;
	}
	return -1;
}

/* ---- attaching ---- */

/*
 * Whether no process is inside an operation at this memory node that locks; waits a while for it.  One look at each slot is enough:
 * an operation that begins behind it sees that the memory node is closed, and does nothing there (lock_handle_begin() in tree/lock/lock.c).  For
 * that the memory node is closed before the first look, with a full barrier behind it, as an operation has one between its note in
 * the slot and its look at the memory node.  It stays closed until what ended processes have left behind is cleared.
 */
static bool
operations_have_ended(int position)
{
	TimestampTz began = GetCurrentTimestamp();

	/* The process that lost it may still be about to close it. */
	tree_node_close(sherman_tree_shared, position);
	for (int i = 0; i < sherman_shared->slots; i++)
	{
		while (pg_atomic_read_u32(&sherman_shared->slot[i].busy) != 0)
		{
			if (ShutdownRequestPending ||
				TimestampDifferenceExceeds(began, GetCurrentTimestamp(), 2 * sherman_operation_timeout_ms))
				return false;
			pg_usleep(POLL_MS * 1000L);
		}
	}
	/* What those that have ended did is looked at behind this. */
	pg_read_barrier();
	return true;
}

/*
 * Takes a position for the memory node that is fenced: connections of before are void, and its memory is what
 * is there.
 */
static void
take_position(int entry, int position, const TreeNodeStatus *status, uint64 member, uint32 incarnation)
{
	ShermanNode *node = &sherman_shared->node[position];
	ShermanListedNode *listed = &sherman_shared->listed[entry];

	if (!position_is_free(position) && memcmp(node->memory, status->uuid, sizeof(node->memory)) != 0)
		ereport(LOG,
				(errmsg("the memory of memory node %d at \"%s\" is given up: its indexes must be rebuilt",
						position, node->address),
				 errdetail("There is new memory at \"%s\".", listed->address)));
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	if (other_entry(entry, position) >= 0)
		sherman_shared->listed[other_entry(entry, position)].position = -1;
	memcpy(node->memory, status->uuid, sizeof(node->memory));
	node->member = member;
	strlcpy(node->address, listed->address, sizeof(node->address));
	node->incarnation = incarnation;
	listed->position = position;
	pg_atomic_fetch_add_u64(&node->serial, 1);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	sherman_state_changed();
}

/*
 * Trees whose home is elsewhere, but which lie here too, are looked at again.
 */
static bool
review_others(TreeClient *client, int position)
{
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (i == position || sherman_node_phase(i) != SHERMAN_PHASE_ATTACHED)
			continue;
		if (sherman_recovery_review(client, i) == TREE_NO_MEMORY)
			return false;
		(void) sherman_connection_trouble();
	}
	return true;
}

static bool
measure_round_trip(TreeClient *client, int position, char *failure)
{
	if (sherman_measure_round_trip(client, position))
		return true;
	snprintf(failure, SHERMAN_FAILURE_BYTES, "it does not answer: %s", tree_detail(client));
	return false;
}

/*
 * One line, with what was agreed.
 */
static void
log_attached(const TreeClient *client, int position)
{
	const FabricCapabilities *capabilities = tree_client_capabilities(client, position);
	char	   *text = capabilities != NULL ? sherman_capabilities_text(capabilities) : pstrdup("not connected");
	uint32		round_trip_us = pg_atomic_read_u32(&sherman_shared->node[position].round_trip_us);

	ereport(LOG,
			(errmsg("attached to memory node %d at \"%s\": epoch %u: %s", position,
					sherman_shared->node[position].address, sherman_epoch(), text),
			 round_trip_us > 0 ? errdetail("A round trip takes %u us.", round_trip_us) : 0));
	pfree(text);
}

/*
 * The memory node is fenced and has its position: judges the trees on it, and admits all processes.
 */
static bool
admit_node(int position, const TreeNodeStatus *status, char *failure)
{
	TreeClient *client = sherman_connection_client();

	if (client == NULL)
	{
		strlcpy(failure, "out of memory", SHERMAN_FAILURE_BYTES);
		return false;
	}
	sherman_connection_refresh();
	sherman_replicas_admit(position);
	tree_node_leaves_at_hand(sherman_tree_shared, position,
							 sherman_node_is_mapped(sherman_shared->node[position].address));
	tree_node_open(client, position, sherman_shared->node[position].member);
	if (!measure_round_trip(client, position, failure) || !sherman_recovery_attach(client, position, status, failure))
	{
		(void) tree_client_trouble(client);
		tree_node_close(sherman_tree_shared, position);
		return false;
	}
	if (!review_others(client, position))
	{
		strlcpy(failure, "there is no shared memory for so many indexes", SHERMAN_FAILURE_BYTES);
		tree_node_close(sherman_tree_shared, position);
		return false;
	}
	sherman_node_attached(position);
	log_attached(client, position);
	return true;
}

/*
 * Attaches to the memory node that a control connection leads to.
 */
static FabricStatus
attach_over(int entry, FabricEndpoint *endpoint, Fabric *fabric, char *failure)
{
	TreeNodeStatus status;
	FabricStatus called = tree_node_probe(endpoint, &status);
	uint32		instance;
	uint32		incarnation;
	uint64		member;
	int			position;

	if (called == FABRIC_OK && status.draining)
		called = FABRIC_DRAINING;
	if (called != FABRIC_OK)
	{
		sherman_describe_failure(failure, called, fabric);
		return called;
	}
	position = position_of(status.uuid);
	if (position >= 0 && sherman_node_phase(position) == SHERMAN_PHASE_ATTACHED)
	{
		Assert(other_entry(entry, position) >= 0);
		snprintf(failure, SHERMAN_FAILURE_BYTES, "it is the same memory node as \"%s\"",
				 sherman_shared->listed[other_entry(entry, position)].address);
		return FABRIC_EXISTS;
	}
	if (position < 0)
		position = position_for_new(entry);
	if (!sherman_recovery_check(position, &status, &member, failure) || !sherman_recovery_begin(failure))
		return FABRIC_EXISTS;
	sherman_shared->introduced = true;
	sherman_crash_point("attach", true);
	called = fabric_attach(endpoint, false, sherman_shared->launcher_nonce, &instance, &incarnation);
	sherman_crash_point("attach", false);
	if (called != FABRIC_OK)
	{
		sherman_describe_failure(failure, called, fabric);
		return called;
	}
	/* They have lost their channels: each gets an error soon. */
	if (!operations_have_ended(position))
	{
		strlcpy(failure, "a process does not leave its operation", SHERMAN_FAILURE_BYTES);
		return FABRIC_BUSY;
	}
	/* A copy of this server may have come between the look and the fence, and have changed what is there. */
	called = tree_node_probe(endpoint, &status);
	if (called != FABRIC_OK)
	{
		sherman_describe_failure(failure, called, fabric);
		return called;
	}
	if (!sherman_recovery_check(position, &status, &member, failure))
		return FABRIC_EXISTS;
	take_position(entry, position, &status, member, incarnation);
	return admit_node(position, &status, failure) ? FABRIC_OK : FABRIC_LOST;
}

static bool
attach_entry(int entry)
{
	char		failure[SHERMAN_FAILURE_BYTES] = "";
	FabricEndpoint *endpoint;
	Fabric	   *fabric;
	FabricStatus status;

	status = sherman_control_connect(sherman_shared->listed[entry].address, &fabric, &endpoint);
	if (status == FABRIC_OK)
		status = attach_over(entry, endpoint, fabric, failure);
	else
		sherman_describe_failure(failure, status, fabric);
	if (fabric != NULL)
		fabric_close(fabric);
	sherman_note_failure(&sherman_shared->listed[entry], status, failure, "is not attached");
	return status == FABRIC_OK;
}

/* ---- looking after what is attached ---- */

/*
 * The embedded node notifies us when it ends.
 */
static bool
embedded_is_there(void)
{
	bool		there;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	there = sherman_shared->node_pid != 0 && sherman_shared->node_serial == sherman_shared->attached_serial;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return there;
}

/*
 * Is the memory node still the one that we are attached to, and going to stay?  False: another server has attached to it.
 */
static bool
look_after(int position)
{
	TreeClient *client = sherman_connection_client();
	ShermanNode *node = &sherman_shared->node[position];
	uint32		looked = SHERMAN_LOOKED_AT;
	TreeNodeStatus status;
	TreeStatus	asked;
	bool		answers;

	if (sherman_shared->embedded)
	{
		pg_atomic_write_u32(&sherman_shared->node[position].suspected, SHERMAN_UNSUSPECTED);
		if (!embedded_is_there())
			sherman_node_lost(position);
		return true;
	}
	/* Sessions that plan meanwhile are to look for themselves. */
	if (pg_atomic_exchange_u32(&node->suspected, SHERMAN_LOOKED_AT) == SHERMAN_SUSPECTED)
		pg_atomic_write_u64(&node->heard_us, 0);
	sherman_connection_refresh();
	asked = tree_node_status(client, position, &status);
	answers = asked == TREE_OK && !status.draining;
	if (!answers)
		sherman_node_lost(position);
	(void) tree_client_trouble(client);
	/* Unless somebody suspects it again meanwhile. */
	if (pg_atomic_compare_exchange_u32(&node->suspected, &looked, SHERMAN_UNSUSPECTED) && answers)
		sherman_node_heard(position);
	return asked != TREE_FENCED;
}

/*
 * Which memory nodes trees lie on is learned anew when one has gone: those that use it cannot be used either.
 */
static void
review_if_needed(void)
{
	uint32		attached = sherman_attached_nodes();

	if ((plan.reviewed & ~attached) != 0 && attached != 0)
	{
		(void) review_others(sherman_connection_client(), -1);
		sherman_state_changed();
	}
	plan.reviewed = attached;
}

/* ---- rounds ---- */

/*
 * The launcher's memory follows the list.
 */
static void
follow_list(void)
{
	Attempt		before[TREE_MAX_NODES];

	memcpy(before, plan.attempt, sizeof(before));
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		Attempt    *attempt = &plan.attempt[i];

		if (i < sherman_shared->listed_count &&
			strcmp(attempt->address, sherman_shared->listed[i].address) == 0)
			continue;
		memset(attempt, 0, sizeof(*attempt));
		if (i >= sherman_shared->listed_count)
			continue;
		strlcpy(attempt->address, sherman_shared->listed[i].address, sizeof(attempt->address));
		for (int j = 0; j < TREE_MAX_NODES; j++)
		{
			if (strcmp(before[j].address, attempt->address) == 0)
				*attempt = before[j];
		}
	}
}

/*
 * Memory nodes that the list does not lead to any more are not used.
 */
static void
leave_unlisted(void)
{
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (sherman_node_phase(i) == SHERMAN_PHASE_ATTACHED && other_entry(-1, i) < 0)
		{
			ereport(LOG,
					(errmsg("memory node %d at \"%s\" is not used any more: it is not in \"sherman.memory_nodes\"",
							i, sherman_shared->node[i].address)));
			sherman_node_lost(i);
		}
	}
}

/*
 * Memory nodes of before that no entry of the list leads to, or may lead to, are not waited for at the start.
 */
static void
stop_awaiting_unlisted(void)
{
	if (some_entry_unknown(-1))
		return;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (other_entry(-1, i) < 0)
			sherman_node_not_awaited(i);
	}
}

/*
 * One entry's turn. The embedded node is not there before it says so.
 */
static void
keep_attached(int entry)
{
	Attempt    *attempt = &plan.attempt[entry];
	ShermanListedNode *listed = &sherman_shared->listed[entry];
	int			position = listed->position;
	bool		attached = position >= 0 && sherman_node_phase(position) == SHERMAN_PHASE_ATTACHED;
	bool		ended;
	uint64		serial;
	TimestampTz now = GetCurrentTimestamp();

	/* The embedded node says by itself when it begins and ends: that is looked at each time. */
	if (sherman_shared->embedded)
		attempt->next = 0;
	if (attached && pg_atomic_read_u32(&sherman_shared->node[position].suspected) != SHERMAN_UNSUSPECTED)
		attempt->next = 0;
	if (attempt->next > now)
		return;
	if (attached)
	{
		bool		ours = look_after(position);

		if (!ours || sherman_node_phase(position) == SHERMAN_PHASE_ATTACHED)
		{
			attempt->next = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ours ? SHERMAN_HEARTBEAT_MS : FENCED_PAUSE_MS);
			return;
		}
	}
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	serial = sherman_shared->node_serial;
	ended = sherman_shared->embedded && sherman_shared->node_pid == 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	if (ended)
	{
		sherman_note_failure(listed, FABRIC_UNREACHABLE, sherman_shared->node_failure, "is not attached");
		attempt->next = TimestampTzPlusMilliseconds(now, SHERMAN_HEARTBEAT_MS);
		return;
	}
	if (attach_entry(entry))
	{
		sherman_shared->attached_serial = serial;
		attempt->retry_ms = 0;
		attempt->next = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), SHERMAN_HEARTBEAT_MS);
		/* Shares whose trees are gone may have come with it. */
		pg_atomic_fetch_add_u32(&sherman_shared->hints, 1);
		return;
	}
	attempt->retry_ms = attempt->retry_ms == 0 ? RETRY_FIRST_MS : Min(2 * attempt->retry_ms, RETRY_LAST_MS);
	attempt->next = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), attempt->retry_ms);
}

void
sherman_attach_round(void)
{
	if (plan.began == 0)
		plan.began = GetCurrentTimestamp();
	follow_list();
	leave_unlisted();
	stop_awaiting_unlisted();
	for (int i = 0; i < sherman_shared->listed_count && !ShutdownRequestPending; i++)
	{
		keep_attached(i);
		CHECK_FOR_INTERRUPTS();
	}
	stop_awaiting_unlisted();
	review_if_needed();
	if (pg_atomic_read_u32(&sherman_shared->awaited) != 0 &&
		TimestampDifferenceExceeds(plan.began, GetCurrentTimestamp(), sherman_attach_timeout_ms))
		sherman_pool_give_up_waiting();
}

long
sherman_attach_pause(void)
{
	TimestampTz now = GetCurrentTimestamp();
	long		pause = SHERMAN_HEARTBEAT_MS;

	for (int i = 0; i < sherman_shared->listed_count; i++)
	{
		long		left = TimestampDifferenceMilliseconds(now, plan.attempt[i].next);

		pause = Min(pause, Max(left, POLL_MS));
	}
	return pause;
}

/* ---- beginning and end of the launcher ---- */

/*
 * Whether an attached memory node still takes us for the incarnation that it has.
 */
static bool
resume_one(int position)
{
	const ShermanNode *node = &sherman_shared->node[position];
	FabricEndpoint *endpoint;
	Fabric	   *fabric;
	FabricStatus status;
	uint32		instance;
	uint32		incarnation = 0;

	status = sherman_control_connect(node->address, &fabric, &endpoint);
	if (status == FABRIC_OK)
		status = fabric_attach(endpoint, true, sherman_shared->launcher_nonce, &instance, &incarnation);
	if (fabric != NULL)
		fabric_close(fabric);
	return status == FABRIC_OK && incarnation == node->incarnation;
}

void
sherman_attach_resume(void)
{
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (sherman_node_phase(i) == SHERMAN_PHASE_ATTACHED && !resume_one(i))
			sherman_node_lost(i);
	}
}

bool
sherman_attach_end(void)
{
	TreeClient *client = sherman_connection_client();

	for (int i = 0; i < sherman_shared->slots; i++)
	{
		if (i != compat_proc_number() && pg_atomic_read_u32(&sherman_shared->slot[i].connected) != 0)
			return false;
	}
	sherman_shared->unclean = sherman_replicas_unrecorded();
	for (int i = 0; i < TREE_MAX_NODES && !sherman_shared->unclean; i++)
	{
		TreeStatus	status;

		if (client == NULL || sherman_node_phase(i) != SHERMAN_PHASE_ATTACHED)
			continue;
		status = tree_epoch_close(client, i, sherman_shared->local.node[i].epoch);
		if (status != TREE_OK)
			ereport(LOG,
					(errmsg("could not close the epoch at memory node %d: %s", i, tree_status_name(status)),
					 errdetail("%s", tree_detail(client))));
	}
	return true;
}
