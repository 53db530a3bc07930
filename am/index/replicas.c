/*
 * replicas.c
 *		Indexes with a copy of their tree on another memory node (replicas = 1): which of the two is the
 *		tree, and when one is given up.  doc/internals/replicas.md has the whole; tree/client/replicas.c is what writes both.
 *
 * The metapage is the referee: two memory nodes are no quorum.  Before
 * anything is written to one of the two alone the metapage says so, by WAL, durably; one that was given up
 * does not come back.
 *
 * The copy is given up by a session that is to change the index while the copy's memory node is away.  The home
 * is given up by a session that is to use the index while the home's memory node is away, if the copy is as
 * good: no doubt is left of a crash or a lost chain.  Both wait until the launcher says that the memory node
 * may be gone on without: it was away for sherman.failover_after, and no process is inside an operation that
 * began before it was closed.  An index that nobody uses meanwhile keeps both.
 *
 * Nobody is let in at a memory node while another process gives it up: SHERMAN_LOCK_REPLICAS.
 */
#include "am/base/sherman.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "am/base/shared.h"
#include "am/index/replica_placement.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/* How often it is looked whether operations have ended. */
#define POLL_MS 20

/* The launcher's, of a memory node that is not attached. */
static struct
{
	TimestampTz since;			/* that long; 0 = it is attached */
	bool	   *busy;			/* slots that were busy each time that we looked since it is closed; NULL: not begun */
}			watch[TREE_MAX_NODES];

/*
 * Connects to a memory node, if it can be used.
 */
static bool
connect_to(TreeClient *client, const ShermanMetaPage *meta, int position)
{
	return !half_is_usable(meta, position) || tree_client_connect(client, (uint32) position) == TREE_OK;
}

bool
sherman_replicas_connect(TreeClient *client, const ShermanMetaPage *meta)
{
	return ((meta->replicas_valid & SHERMAN_VALID_FIRST) == 0 || connect_to(client, meta, halves_home(meta))) &&
		((meta->replicas_valid & SHERMAN_VALID_SECOND) == 0 || connect_to(client, meta, halves_replica(meta)));
}

/* ---- giving up ---- */

static TreeReplicaState
replica_state(uint32 valid)
{
	return valid == SHERMAN_VALID_BOTH ? TREE_REPLICAS_BOTH : valid == SHERMAN_VALID_FIRST ? TREE_REPLICAS_FIRST :
		TREE_REPLICAS_SECOND;
}

/*
 * Whether the other half may be given up now, under the lock.
 */
static bool
may_stay_alone(const ShermanMetaPage *meta, uint32 valid)
{
	ShermanReason reason = SHERMAN_REASON_NONE;

	if (meta->replicas_valid == valid)
		return true;
	if (valid == SHERMAN_VALID_FIRST)
		return !half_is_usable(meta, halves_replica(meta)) && half_may_be_missed(meta, halves_replica(meta));
	return !half_is_usable(meta, halves_home(meta)) && sherman_replicas_determine(meta, &reason) == SHERMAN_OK;
}

/*
 * Makes one half the tree, for all sessions and for ever. False: the condition does not hold any more.
 */
static bool
stay_alone(Relation relation, ShermanIndex *index, uint32 valid)
{
	ShermanMetaPage *meta = &index->meta;
	bool		news = meta->replicas_valid != valid;
	bool		done;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_REPLICAS), LW_SHARED);
	done = may_stay_alone(meta, valid) && sherman_metapage_give_up(relation, meta->tree, valid);
	if (done)
		tree_replicas_set(index->tree, replica_state(valid));
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REPLICAS));
	if (!done || !news)
		return done;
	meta->replicas_valid = valid;
	sherman_state_changed();
	ereport(LOG,
			(errmsg("index \"%s\" is on memory node %d alone from now on", RelationGetRelationName(relation),
					valid == SHERMAN_VALID_FIRST ? halves_home(meta) : halves_replica(meta)),
			 errdetail("Memory node %d, which has the other copy, is away.",
					   valid == SHERMAN_VALID_FIRST ? halves_replica(meta) : halves_home(meta)),
			 errhint("REINDEX makes a new copy.")));
	return true;
}

TreeStatus
sherman_replicas_opened(Relation relation, const ShermanMetaPage *meta, Tree *tree)
{
	/* Who only reads gives up nothing, and is told what is replayed. */
	if (sherman_connection_is_reader())
		return tree_set_replica(tree, (uint32) halves_replica(meta), replica_state(meta->replicas_valid), false);
	/* Until the launcher has searched for doubts, at the end. */
	if (meta->replicas_valid == SHERMAN_VALID_BOTH)
		sherman_shared->unclean = true;
	/* The session that wrote that may not have flushed it yet. */
	else
		(void) sherman_metapage_give_up(relation, meta->tree, meta->replicas_valid);
	return tree_set_replica(tree, (uint32) halves_replica(meta), replica_state(meta->replicas_valid), halves_in_doubt(meta));
}

bool
sherman_replicas_follow(Relation relation, ShermanIndex *index)
{
	const ShermanMetaPage *meta = &index->meta;

	if (tree_replicas_get(index->tree) != TREE_REPLICAS_BOTH)
		return true;
	if (meta->replicas_valid != SHERMAN_VALID_BOTH)
		return stay_alone(relation, index, meta->replicas_valid);
	return half_is_usable(meta, halves_home(meta)) || stay_alone(relation, index, SHERMAN_VALID_SECOND);
}

/*
 * Whether the copy's memory node may be back before it is given up.
 */
static bool
replica_is_awaited(const ShermanMetaPage *meta)
{
	return sherman_replicas_lack_copy(meta) && !half_may_be_missed(meta, halves_replica(meta));
}

bool
sherman_replicas_before_change(Relation relation, ShermanIndex *index)
{
	if (!sherman_replicas_lack_copy(&index->meta))
		return true;
	sherman_wait_while(replica_is_awaited, &index->meta);
	if (replica_is_awaited(&index->meta))
		sherman_report_away(ERROR, psprintf("index \"%s\"", RelationGetRelationName(relation)), halves_replica(&index->meta));
	return stay_alone(relation, index, SHERMAN_VALID_FIRST);
}

bool
sherman_opens_again(const ShermanIndex *index, int *attempts)
{
	if (index->meta.replica == 0 || *attempts == SHERMAN_ATTEMPTS_MOST)
		return false;
	(*attempts)++;
	CHECK_FOR_INTERRUPTS();
	sherman_wait_while(sherman_replicas_suspected, &index->meta);
	return true;
}

/* ---- making copies, and records ---- */

static bool
two_are_attached(void)
{
	uint32		attached = sherman_attached_nodes();

	return (attached & (attached - 1)) != 0;
}

/*
 * Whether a second memory node may come at once: one of the list was not looked for yet, as the server has just been started.
 */
static bool
second_is_awaited(const ShermanMetaPage *meta)
{
	bool		untried = false;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	for (int i = 0; i < sherman_shared->listed_count; i++)
	{
		const ShermanListedNode *listed = &sherman_shared->listed[i];

		untried |= listed->failure[0] == '\0' &&
			(listed->position < 0 || sherman_node_phase(listed->position) != SHERMAN_PHASE_ATTACHED);
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return untried && !two_are_attached();
}

bool
sherman_replicas_wanted(Relation index)
{
	if (!sherman_wants_replica(index))
		return false;
	sherman_wait_while(second_is_awaited, NULL);
	if (two_are_attached())
		return true;
	/* Better one half now, and another one when there is a place for it: nothing else waits for that. */
	if (!sherman_is_rebuilding())
		ereport(WARNING,
				(errmsg("index \"%s\" is built without its copy", RelationGetRelationName(index)),
				 errdetail("Fewer than two memory nodes are attached."),
				 sherman_auto_rebuild ? errhint("It is rebuilt with one by itself when another memory node is attached.") :
				 errhint("When another memory node is attached run REINDEX INDEX CONCURRENTLY %s, or set \"sherman.auto_rebuild\" to on.",
						 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(index)),
													RelationGetRelationName(index)))));
	return false;
}

bool
sherman_replicas_can_be_made(Relation index)
{
	ShermanMetaPage meta;

	return sherman_wants_replica(index) && two_are_attached() && sherman_metapage_read(index, &meta) && meta.tree != 0 &&
		(meta.replica == 0 || meta.replicas_valid != SHERMAN_VALID_BOTH);
}

TreeStatus
sherman_record_update(const ShermanMetaPage *meta, TreeRecord *record)
{
	TreeClient *client = sherman_client();
	TreeStatus	status = TREE_OK;

	record->tree = meta->tree;
	record->root = meta->root;
	/* The replica, which becomes the tree, must have in its record what the home's had. */
	if (meta->replica != 0 && (meta->replicas_valid & SHERMAN_VALID_SECOND) != 0)
		status = tree_record_update_at(client, (uint32) halves_replica(meta), record);
	if (status == TREE_OK && (meta->replicas_valid & SHERMAN_VALID_FIRST) != 0)
		status = tree_record_update(client, record);
	return status;
}

const char *
sherman_replicas_text(Relation index, const ShermanMetaPage *meta)
{
	if (meta->tree == 0)
		return NULL;
	if (meta->replica == 0)
		return sherman_wants_replica(index) ? "none" : NULL;
	if (meta->replicas_valid != SHERMAN_VALID_BOTH)
		return "one";
	/* A standby knows of a memory node whether it is there, and no more; and nothing of doubts, which are its primary's. */
	if (!RecoveryInProgress() && (half_is_lost(meta, halves_home(meta)) || half_is_lost(meta, halves_replica(meta))))
		return "one";
	if (!half_is_usable(meta, halves_home(meta)) || !half_is_usable(meta, halves_replica(meta)))
		return "one away";
	return !RecoveryInProgress() && halves_in_doubt(meta) ? "in doubt" : "both";
}

/* ---- the launcher's part ---- */

/*
 * Whether an attempt to attach it again has failed: a connection that broke does not cost the replica.
 */
static bool
attach_has_failed(int position)
{
	ShermanListedNode listed;

	return !sherman_node_listed(position, &listed) || listed.failure[0] != '\0';
}

/*
 * Whether each process has been outside of operations at some time since the memory node was closed.
 */
static bool
all_have_left(int position)
{
	bool		left = true;
	bool	   *busy = watch[position].busy;

	/*
	 * The process that lost it may not have noted that yet: so before the first check, as in operations_have_ended().
	 */
	tree_node_close(sherman_tree_shared, position);
	if (busy == NULL)
	{
		busy = watch[position].busy = MemoryContextAlloc(TopMemoryContext, sizeof(bool) * sherman_shared->slots);
		memset(busy, true, sizeof(bool) * sherman_shared->slots);
	}
	for (int i = 0; i < sherman_shared->slots; i++)
	{
		if (busy[i])
			busy[i] = pg_atomic_read_u32(&sherman_shared->slot[i].busy) != 0;
		left &= !busy[i];
	}
	return left;
}

static void
forget_watch(int position)
{
	if (watch[position].busy != NULL)
		pfree(watch[position].busy);
	watch[position].busy = NULL;
	watch[position].since = 0;
}

/*
 * Milliseconds until it is to be looked again at a memory node: whether indexes may go on without it.
 */
static long
look_at_node(int position, TimestampTz now)
{
	ShermanPhase phase = sherman_node_phase(position);
	long		left;

	if (phase == SHERMAN_PHASE_ATTACHED || phase == SHERMAN_PHASE_NONE)
	{
		watch[position].since = 0;
		return LONG_MAX;
	}
	/* What is waited for at the start counts. */
	if (watch[position].since == 0)
		watch[position].since = now;
	/* The attempt to attach is followed by another round. */
	if (phase != SHERMAN_PHASE_AWAY || pg_atomic_read_u32(&sherman_shared->node[position].drained) != 0 ||
		!attach_has_failed(position))
		return LONG_MAX;
	if (!all_have_left(position))
		return POLL_MS;
	left = TimestampDifferenceMilliseconds(now, TimestampTzPlusMilliseconds(watch[position].since,
																			 sherman_failover_after_ms));
	if (left > 0)
		return left;
	sherman_node_drained(position);
	return LONG_MAX;
}

/*
 * Doubts whose trees the tree layer does not know any more are recorded with all trees, once all of these are known.
 */
static void
keep_doubts(void)
{
	uint64_t	lost;

	if (!tree_replicas_lost_doubts(sherman_tree_shared, &lost))
		return;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (sherman_node_phase(i) != SHERMAN_PHASE_ATTACHED && sherman_node_phase(i) != SHERMAN_PHASE_NONE)
			return;
	}
	sherman_trees_doubt_replicas();
	tree_replicas_keep_doubts(sherman_tree_shared, lost);
}

long
sherman_replicas_round(void)
{
	TimestampTz now = GetCurrentTimestamp();
	long		next = LONG_MAX;

	for (int i = 0; i < TREE_MAX_NODES; i++)
		next = Min(next, look_at_node(i, now));
	keep_doubts();
	return next;
}

void
sherman_replicas_admit(int position)
{
	forget_watch(position);
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_REPLICAS), LW_EXCLUSIVE);
	pg_atomic_write_u32(&sherman_shared->node[position].drained, 0);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REPLICAS));
}

bool
sherman_replicas_unrecorded(void)
{
	int			count;
	ShermanTreeEntry *entries = sherman_trees_list(&count);
	bool		unrecorded = false;

	for (int i = 0; i < count; i++)
	{
		unrecorded |= sherman_trees_replicas_doubted(&entries[i], true) &&
			!(entries[i].unverified_epoch != 0 && half_is_unverified(entries[i].tree | SHERMAN_TREE_REPLICA));
	}
	pfree(entries);
	return unrecorded;
}
