/*
 * copies.c
 *		Indexes with a copy of their tree on another memory node (replicas = 1): which of the two is the
 *		tree, and when one is given up.  doc/internals/replicas.md has the whole; tree/client/copies.c is what writes both.
 *
 * The metapage is the referee (crash-safety.md, finding 45): two memory nodes are no quorum.  Before
 * anything is written to one of the two alone the metapage says so, by WAL, durably; who was given up does
 * not come back.
 *
 * The copy is given up by whoever wants to change the index while the copy's memory node is away.  The home
 * is given up by whoever wants to use the index while the home's memory node is away, if the copy is as
 * good: no doubt is left of a crash or a lost chain.  Both wait until the launcher says that the memory node
 * may be gone on without: it was away for sherman.failover_after, and no process is inside an operation that
 * began before it was closed.  An index that nobody uses meanwhile keeps both.
 *
 * Nobody is let in at a memory node while another process gives it up: SHERMAN_LOCK_COPIES.
 */
#include "am/base/sherman.h"

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
sherman_copies_connect(TreeClient *client, const ShermanMetaPage *meta)
{
	return ((meta->copies_valid & SHERMAN_VALID_FIRST) == 0 || connect_to(client, meta, halves_home(meta))) &&
		((meta->copies_valid & SHERMAN_VALID_SECOND) == 0 || connect_to(client, meta, halves_copy(meta)));
}

/* ---- giving up ---- */

static TreeCopyState
copy_state(uint32 valid)
{
	return valid == SHERMAN_VALID_BOTH ? TREE_COPIES_BOTH : valid == SHERMAN_VALID_FIRST ? TREE_COPIES_FIRST :
		TREE_COPIES_SECOND;
}

/*
 * Whether the other half may be given up now, under the lock.
 */
static bool
may_stay_alone(const ShermanMetaPage *meta, uint32 valid)
{
	ShermanReason reason = SHERMAN_REASON_NONE;

	if (meta->copies_valid == valid)
		return true;
	if (valid == SHERMAN_VALID_FIRST)
		return !half_is_usable(meta, halves_copy(meta)) && half_may_be_missed(meta, halves_copy(meta));
	return !half_is_usable(meta, halves_home(meta)) && sherman_copies_judge(meta, &reason) == SHERMAN_OK;
}

/*
 * Makes one half the tree, for everybody and for ever.  False: that is not so any more.
 */
static bool
stay_alone(Relation relation, ShermanIndex *index, uint32 valid)
{
	ShermanMetaPage *meta = &index->meta;
	bool		news = meta->copies_valid != valid;
	bool		done;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_COPIES), LW_SHARED);
	done = may_stay_alone(meta, valid) && sherman_metapage_give_up(relation, meta->tree, valid);
	if (done)
		tree_copies_set(index->tree, copy_state(valid));
	LWLockRelease(sherman_lock(SHERMAN_LOCK_COPIES));
	if (!done || !news)
		return done;
	meta->copies_valid = valid;
	sherman_state_changed();
	ereport(LOG,
			(errmsg("index \"%s\" is on memory node %d alone from now on", RelationGetRelationName(relation),
					valid == SHERMAN_VALID_FIRST ? halves_home(meta) : halves_copy(meta)),
			 errdetail("Memory node %d, which has the other copy, is away.",
					   valid == SHERMAN_VALID_FIRST ? halves_copy(meta) : halves_home(meta)),
			 errhint("REINDEX makes a new copy.")));
	return true;
}

TreeStatus
sherman_copies_opened(Relation relation, const ShermanMetaPage *meta, Tree *tree)
{
	/* Until the launcher has looked for doubts, at the end. */
	if (meta->copies_valid == SHERMAN_VALID_BOTH)
		sherman_shared->unclean = true;
	/* Whoever wrote that may not have flushed it yet. */
	else
		(void) sherman_metapage_give_up(relation, meta->tree, meta->copies_valid);
	return tree_copied(tree, (uint32) halves_copy(meta), copy_state(meta->copies_valid), halves_in_doubt(meta));
}

bool
sherman_copies_follow(Relation relation, ShermanIndex *index)
{
	const ShermanMetaPage *meta = &index->meta;

	if (tree_copies_get(index->tree) != TREE_COPIES_BOTH)
		return true;
	if (meta->copies_valid != SHERMAN_VALID_BOTH)
		return stay_alone(relation, index, meta->copies_valid);
	return half_is_usable(meta, halves_home(meta)) || stay_alone(relation, index, SHERMAN_VALID_SECOND);
}

/*
 * Whether the copy's memory node may be back before it is given up.
 */
static bool
copy_is_awaited(const ShermanMetaPage *meta)
{
	return sherman_copies_lack_copy(meta) && !half_may_be_missed(meta, halves_copy(meta));
}

bool
sherman_copies_before_change(Relation relation, ShermanIndex *index)
{
	if (!sherman_copies_lack_copy(&index->meta))
		return true;
	sherman_wait_while(copy_is_awaited, &index->meta);
	if (copy_is_awaited(&index->meta))
		sherman_report_away(ERROR, psprintf("index \"%s\"", RelationGetRelationName(relation)), halves_copy(&index->meta));
	return stay_alone(relation, index, SHERMAN_VALID_FIRST);
}

bool
sherman_opens_again(const ShermanIndex *index, int *attempts)
{
	if (index->meta.copy == 0 || *attempts == SHERMAN_ATTEMPTS_MOST)
		return false;
	(*attempts)++;
	CHECK_FOR_INTERRUPTS();
	sherman_wait_while(sherman_copies_suspected, &index->meta);
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
		const ShermanListed *listed = &sherman_shared->listed[i];

		untried |= listed->failure[0] == '\0' &&
			(listed->position < 0 || sherman_node_phase(listed->position) != SHERMAN_PHASE_ATTACHED);
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return untried && !two_are_attached();
}

bool
sherman_copies_wanted(Relation index)
{
	if (!sherman_wants_copy(index))
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
sherman_copies_can_be_made(Relation index)
{
	ShermanMetaPage meta;

	return sherman_wants_copy(index) && two_are_attached() && sherman_metapage_read(index, &meta) && meta.tree != 0 &&
		(meta.copy == 0 || meta.copies_valid != SHERMAN_VALID_BOTH);
}

TreeStatus
sherman_record_update(const ShermanMetaPage *meta, TreeRecord *record)
{
	TreeClient *client = sherman_client();
	TreeStatus	status = TREE_OK;

	record->tree = meta->tree;
	record->root = meta->root;
	/* Whoever takes the copy for the tree must know what the home knew. */
	if (meta->copy != 0 && (meta->copies_valid & SHERMAN_VALID_SECOND) != 0)
		status = tree_record_update_at(client, (uint32) halves_copy(meta), record);
	if (status == TREE_OK && (meta->copies_valid & SHERMAN_VALID_FIRST) != 0)
		status = tree_record_update(client, record);
	return status;
}

const char *
sherman_copies_text(Relation index, const ShermanMetaPage *meta)
{
	if (meta->tree == 0)
		return NULL;
	if (meta->copy == 0)
		return sherman_wants_copy(index) ? "none" : NULL;
	if (meta->copies_valid != SHERMAN_VALID_BOTH)
		return "one";
	if (!half_is_usable(meta, halves_home(meta)) || !half_is_usable(meta, halves_copy(meta)))
		return "one away";
	return halves_in_doubt(meta) ? "in doubt" : "both";
}

/* ---- the launcher's part ---- */

/*
 * Whether it was tried to attach it again, in vain: a connection that broke costs no copy.
 */
static bool
attach_has_failed(int position)
{
	ShermanListed listed;

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

	/* Who lost it may still be about to: before the first look, as in operations_have_ended(). */
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
	if (phase != SHERMAN_PHASE_AWAY || pg_atomic_read_u32(&sherman_shared->node[position].quiet) != 0 ||
		!attach_has_failed(position))
		return LONG_MAX;
	if (!all_have_left(position))
		return POLL_MS;
	left = TimestampDifferenceMilliseconds(now, TimestampTzPlusMilliseconds(watch[position].since,
																			 sherman_failover_after_ms));
	if (left > 0)
		return left;
	sherman_node_quiet(position);
	return LONG_MAX;
}

/*
 * Doubts that the tree layer has lost sight of are kept with the trees, once all of these are known.
 */
static void
keep_doubts(void)
{
	uint64_t	lost;

	if (!tree_copies_lost_doubts(sherman_tree_shared, &lost))
		return;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (sherman_node_phase(i) != SHERMAN_PHASE_ATTACHED && sherman_node_phase(i) != SHERMAN_PHASE_NONE)
			return;
	}
	sherman_trees_doubt_copies();
	tree_copies_keep_doubts(sherman_tree_shared, lost);
}

long
sherman_copies_round(void)
{
	TimestampTz now = GetCurrentTimestamp();
	long		next = LONG_MAX;

	for (int i = 0; i < TREE_MAX_NODES; i++)
		next = Min(next, look_at_node(i, now));
	keep_doubts();
	return next;
}

void
sherman_copies_let_in(int position)
{
	forget_watch(position);
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_COPIES), LW_EXCLUSIVE);
	pg_atomic_write_u32(&sherman_shared->node[position].quiet, 0);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_COPIES));
}

bool
sherman_copies_unrecorded(void)
{
	int			count;
	ShermanTreeEntry *entries = sherman_trees_list(&count);
	bool		unrecorded = false;

	for (int i = 0; i < count; i++)
	{
		unrecorded |= sherman_trees_copies_doubted(&entries[i], true) &&
			!(entries[i].unverified_epoch != 0 && half_is_unverified(entries[i].tree | SHERMAN_TREE_COPY));
	}
	pfree(entries);
	return unrecorded;
}
