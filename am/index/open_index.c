/*
 * open_index.c
 *		This process's open indexes: found again in a few nanoseconds as long as nothing has changed, retired
 *		when the relcache says so, and freed at the end of the transaction, for scans may still refer to them.
 */
#include "am/base/sherman.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/keys/keys.h"
#include "am/nodes/nodes.h"

/* Open indexes that are found without a hash table. */
#define RECENT 64

/* Between transactions a session keeps at most so many open: each takes some 9 kB of its memory. */
#define SET_ASIDE_MAX 1024

/* An open index with what only this file looks at. */
typedef struct OpenIndex
{
	ShermanIndex index;			/* first: pointers to it are pointers to us */
	RelFileLocator storage;		/* of the metapage that was read */
	bool		stale;			/* the relcache entry changed */
	bool		connected;		/* to all memory nodes that the tree is known to lie on; else reads connect, when they have to */
	struct OpenIndex *next;		/* retired: waits for the end of the transaction */
} OpenIndex;

typedef struct KnownIndex
{
	Oid			oid;			/* key */
	OpenIndex  *open;			/* or NULL */
	bool		warned;			/* this session was told that it is broken */
	bool		warned_of_versions; /* or that a collation of it has another version */
	bool		dropped;		/* by this transaction */
	RelFileLocator treeless;		/* storage whose metapage was written last by us, and names no tree */
} KnownIndex;

static HTAB *known = NULL;
static OpenIndex *recent[RECENT];
static OpenIndex *retired = NULL;
static int	open_count = 0;		/* of `known` that are open */
static bool some_stale = false;
static bool hint_at_end = false;
static int	spares_taken = 0;

static KnownIndex *
find_known(Oid oid, bool enter)
{
	KnownIndex *entry;
	bool		found;

	if (known == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(Oid), .entrysize = sizeof(KnownIndex),
		.hcxt = TopMemoryContext};

		known = hash_create("sherman indexes", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	entry = hash_search(known, &oid, enter ? HASH_ENTER : HASH_FIND, &found);
	if (enter && !found)
	{
		entry->open = NULL;
		entry->warned = false;
		entry->warned_of_versions = false;
		entry->dropped = false;
		memset(&entry->treeless, 0, sizeof(entry->treeless));
	}
	return entry;
}

/*
 * The open index, if what is known of it still holds.
 */
static OpenIndex *
find_valid(Relation relation)
{
	KnownIndex *entry = find_known(RelationGetRelid(relation), false);
	OpenIndex  *open = entry != NULL ? entry->open : NULL;

	if (open == NULL || open->stale || open->index.generation != sherman_generation() ||
		!compat_same_file(open->storage, compat_file(relation)))
		return NULL;
	return open;
}

/*
 * On a standby replay changes metapages, and tells nobody: whoever begins to use an index that it has open looks whether its metapage
 * still says the same.  If not, all sessions look anew.
 */
static pg_noinline void
follow_replay(Relation relation)
{
	OpenIndex  *open = find_valid(relation);

	if (open == NULL || sherman_metapage_stands(&open->index, relation))
		return;
	sherman_state_changed();
	sherman_invalidate_plans();
}

/*
 * The state of an index by its metapage, and by whether this process encodes keys as those of its tree are.
 */
static ShermanState
determine_state(Relation relation, ShermanMetaPage *meta, ShermanReason *reason)
{
	bool		sound = sherman_metapage_read(relation, meta);
	ShermanState state = sherman_state_determine(meta, sound, reason);

	if (state == SHERMAN_BROKEN || meta->tree == 0 || sherman_keys_fit(relation, meta))
		return state;
	*reason = SHERMAN_REASON_ENCODING;
	return SHERMAN_BROKEN;
}

ShermanState
sherman_index_state(Relation index, ShermanReason *reason)
{
	ShermanMetaPage meta;
	OpenIndex  *open;

	*reason = SHERMAN_REASON_NONE;
	if (sherman_all_hidden())
		return SHERMAN_HIDDEN;
	if (unlikely(sherman_connection_is_reader()))
		follow_replay(index);
	open = find_valid(index);
	if (open != NULL)
	{
		*reason = open->index.reason;
		return open->index.state;
	}
	return determine_state(index, &meta, reason);
}

/* ---- open indexes ---- */

static void
free_open(OpenIndex *open)
{
	if (open->index.tree != NULL)
		tree_close(open->index.tree);
	MemoryContextDelete(open->index.context);
}

/*
 * Takes an open index out of use.  Scans of this transaction may still refer to it.
 */
static void
retire(KnownIndex *entry)
{
	OpenIndex  *open = entry->open;

	if (open == NULL)
		return;
	entry->open = NULL;
	open_count--;
	if (recent[open->index.oid % RECENT] == open)
		recent[open->index.oid % RECENT] = NULL;
	open->next = retired;
	retired = open;
}

void
sherman_index_forget(Oid index)
{
	KnownIndex *entry = find_known(index, false);

	if (entry == NULL)
		return;
	retire(entry);
	memset(&entry->treeless, 0, sizeof(entry->treeless));
}

void
sherman_index_abandon_tree(Relation index)
{
	KnownIndex *entry = find_known(RelationGetRelid(index), true);
	OpenIndex  *open = entry->open;
	/* Of a file that this transaction has made there may be an older copy, to which it may return. */
	bool		is_new = index->rd_createSubid != InvalidSubTransactionId || compat_has_new_file(index);

	if (compat_same_file(entry->treeless, compat_file(index)))
		return;
	if (!is_new && open != NULL && compat_same_file(open->storage, compat_file(index)) && open->index.meta.tree != 0)
		sherman_trees_abandon(open->index.meta.tree);
	else
		sherman_hint_collector();
	retire(entry);
}

void
sherman_index_set_treeless(Relation index)
{
	find_known(RelationGetRelid(index), true)->treeless = compat_file(index);
}

static void
free_retired(void)
{
	while (retired != NULL)
	{
		OpenIndex  *open = retired;

		retired = open->next;
		free_open(open);
	}
}

static void
retire_all(void)
{
	HASH_SEQ_STATUS sequence;
	KnownIndex *entry;

	if (known == NULL)
		return;
	hash_seq_init(&sequence, known);
	while ((entry = hash_seq_search(&sequence)) != NULL)
		retire(entry);
}

/*
 * The client is about to be closed.
 */
static void
close_all(void)
{
	retire_all();
	free_retired();
}

void
sherman_index_dropped(Oid index)
{
	KnownIndex *entry = find_known(index, false);

	if (entry != NULL)
		entry->dropped = some_stale = true;
}

/*
 * Retires what the relcache has invalidated, at the end of a transaction, and forgets what was dropped (if
 * that was rolled back, too): a session may make and drop temporary tables for ever.
 */
static void
retire_stale(void)
{
	HASH_SEQ_STATUS sequence;
	KnownIndex *entry;

	some_stale = false;
	if (known == NULL)
		return;
	hash_seq_init(&sequence, known);
	while ((entry = hash_seq_search(&sequence)) != NULL)
	{
		if (entry->dropped || (entry->open != NULL && entry->open->stale))
			retire(entry);
		if (entry->dropped)
			hash_search(known, &entry->oid, HASH_REMOVE, NULL);
	}
}

/*
 * Makes the entry of an index, not yet with its state and its tree.
 */
static OpenIndex *
make_open(Relation relation, KnownIndex *entry)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "sherman index", ALLOCSET_SMALL_SIZES);
	OpenIndex  *open = MemoryContextAllocZero(context, sizeof(OpenIndex));

	open->index.context = context;
	open->index.oid = RelationGetRelid(relation);
	open->storage = compat_file(relation);
	entry->open = open;
	open_count++;
	return open;
}

/*
 * Determines the index's state anew; if its metapage names another tree than before, the entry is replaced.
 */
static OpenIndex *
refresh_open(Relation relation, KnownIndex *entry)
{
	uint64		generation = sherman_generation();
	ShermanMetaPage meta;
	ShermanReason reason;
	ShermanState state = determine_state(relation, &meta, &reason);
	OpenIndex  *open = entry->open;

	/* Most of what the relcache invalidates is no change to the index: it goes on with the handle that it has. */
	if (open != NULL && open->stale && open->index.keys != NULL)
		open->stale = !sherman_keys_serve(open->index.keys, relation);
	if (open != NULL && (open->stale || !compat_same_file(open->storage, compat_file(relation)) ||
						 open->index.meta.tree != meta.tree ||
						 (sherman_connection_is_reader() && open->index.meta.replicas_valid != meta.replicas_valid)))
	{
		retire(entry);
		open = NULL;
	}
	if (open == NULL)
		open = make_open(relation, entry);
	open->index.meta = meta;
	open->index.state = state;
	open->index.reason = reason;
	open->index.break_durable &= (meta.flags & SHERMAN_META_BROKEN) != 0;
	open->index.generation = generation;
	return open;
}

/*
 * Connects to the memory nodes that the tree lies on, as far as known; the others follow on first use.  Those of which there may be
 * leaves in the cache do so, too, if they are there as far as is known, and who opens the index only reads (`lazily`).
 */
static bool
connect_members(TreeClient *client, OpenIndex *open, bool lazily)
{
	const ShermanMetaPage *meta = &open->index.meta;
	ShermanTreeEntry entry;

	open->connected = true;
	if (meta->replica != 0)
		return sherman_replicas_connect(client, meta);
	if (meta->tree == 0 || !sherman_trees_find(meta->tree, &entry))
		return true;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (entry.members[i] == 0 || sherman_connection_is_made(i))
			continue;
		if (lazily && sherman_connection_vouch(i))
			open->connected = false;
		else if (tree_client_connect(client, i) != TREE_OK)
			return false;
	}
	return true;
}

/*
 * An index with a copy goes on with the one of the two that is there.
 */
static void
follow_replicas(Relation relation, ShermanIndex *index)
{
	/* Who only reads gives up nothing. */
	if (index->meta.replica == 0 || index->tree == NULL || sherman_connection_is_reader())
		return;
	if (!sherman_replicas_follow(relation, index))
	{
		index->state = SHERMAN_UNREACHABLE;
		index->generation = 0;
	}
	/* The next change has to look. */
	else if (sherman_replicas_lack_copy(&index->meta))
		index->mutated_epoch = 0;
}

/*
 * Says once in each session that a collation of an index has another version than when it was built.
 */
static void
warn_versions(Relation relation, const ShermanMetaPage *meta)
{
	KnownIndex *entry = find_known(RelationGetRelid(relation), true);

	if (meta->tree == 0 || entry->warned_of_versions || IsParallelWorker())
		return;
	entry->warned_of_versions = true;
	sherman_keys_warn_versions(relation, meta);
}

/*
 * Gives an index that is OK its keys and its tree.  If a memory node cannot be reached it is UNREACHABLE,
 * to be looked at again the next time; so it is if its tree cannot be opened and that is not to be raised
 * (`quiet`).
 */
static void
complete(Relation relation, OpenIndex *open, bool quiet, bool lazily)
{
	ShermanIndex *index = &open->index;
	TreeClient *client = sherman_client_if_ready();
	MemoryContext caller;
	TreeStatus	status = TREE_OK;

	if (client == NULL || !connect_members(client, open, lazily))
	{
		index->state = SHERMAN_UNREACHABLE;
		index->generation = 0;
		/* A cancel ends the attempt to connect: then the memory node is not what is missing. */
		if (!quiet)
			CHECK_FOR_INTERRUPTS();
		return;
	}
	if (index->keys != NULL && (index->tree != NULL || index->meta.tree == 0))
	{
		follow_replicas(relation, index);
		return;
	}
	caller = MemoryContextSwitchTo(index->context);
	if (index->keys == NULL)
		index->keys = sherman_keys_make(relation, &index->meta);
	warn_versions(relation, &index->meta);
	if (index->meta.tree != 0)
	{
		TreeFormat	format = *sherman_keys_format(index->keys);

		if (!sherman_metapage_has_format(&index->meta, &format))
		{
			index->state = SHERMAN_BROKEN;
			index->reason = SHERMAN_REASON_FORMAT;
		}
		else
			status = tree_open(client, index->meta.tree, index->meta.root, &format, sherman_keys_compare,
							   index->keys, &index->tree);
		if (status == TREE_OK && index->tree != NULL && index->meta.replica != 0)
			status = sherman_replicas_opened(relation, &index->meta, index->tree);
	}
	MemoryContextSwitchTo(caller);
	if (status == TREE_OK)
	{
		follow_replicas(relation, index);
		return;
	}
	/* A handle that does not know its copies must not be used. */
	if (index->tree != NULL)
		tree_close(index->tree);
	index->tree = NULL;
	if (!quiet)
		sherman_report_failure(status, relation);
	index->state = SHERMAN_UNREACHABLE;
	index->generation = 0;
}

/*
 * Determines the index's state anew, and waits if that may help.
 */
static OpenIndex *
refresh_and_wait(Relation relation, KnownIndex *entry)
{
	OpenIndex  *open;

	sherman_connection_refresh();
	open = refresh_open(relation, entry);
	if (open->index.state != SHERMAN_ATTACHING)
		return open;
	sherman_wait_attached(&open->index.meta);
	open = refresh_open(relation, entry);
	/* Waited long enough. */
	if (open->index.state == SHERMAN_ATTACHING)
		open->index.state = SHERMAN_UNREACHABLE;
	return open;
}

/*
 * The client with which this process has read on a standby is of no use, and no more than that, once the server was promoted.
 */
static pg_noinline void
leave_standby(Relation relation)
{
	if (!sherman_connection_leave_standby())
		sherman_report_conflict(relation, "this server was promoted since the transaction read it");
}

static pg_noinline ShermanIndex *
open_index(Relation relation, bool quiet, bool lazily)
{
	KnownIndex *entry;
	OpenIndex  *open;
	int			attempts = 0;

	if (sherman_all_hidden())
	{
		static ShermanIndex hidden;

		hidden.oid = RelationGetRelid(relation);
		hidden.state = SHERMAN_HIDDEN;
		return &hidden;
	}
	/* A broken index stays broken: skipped inserts need not contend for the metapage. */
	open = find_valid(relation);
	if (open != NULL && open->index.state == SHERMAN_BROKEN && open->index.break_durable)
		return &open->index;
	entry = find_known(RelationGetRelid(relation), true);
	do
	{
		open = refresh_and_wait(relation, entry);
		if (open->index.state != SHERMAN_OK)
			break;
		complete(relation, open, quiet, lazily);
	} while (open->index.state == SHERMAN_UNREACHABLE && !quiet && sherman_opens_again(&open->index, &attempts));
	if (open->index.state == SHERMAN_OK)
		recent[RelationGetRelid(relation) % RECENT] = open;
	return &open->index;
}

/*
 * sherman_index(), and the same for who only reads (`lazily`).
 */
static inline ShermanIndex *
find_or_open(Relation index, bool lazily)
{
	OpenIndex  *open;

	if (unlikely(sherman_connection_is_reader()))
	{
		leave_standby(index);
		follow_replay(index);
	}
	open = recent[RelationGetRelid(index) % RECENT];
	if (likely(open != NULL && open->index.oid == RelationGetRelid(index) && !open->stale &&
			   open->index.state == SHERMAN_OK && open->index.generation == sherman_generation() &&
			   compat_file_number(open->storage) == compat_file_number(compat_file(index)) && (lazily || open->connected)))
		return &open->index;
	return open_index(index, false, lazily);
}

ShermanIndex *
sherman_index(Relation index)
{
	return find_or_open(index, false);
}

void		(*sherman_add_before_reads) (Relation index, bool sees_announced) = NULL;

static ShermanIndex *
index_to_read(Relation index, bool lazily, bool sees_announced)
{
	ShermanIndex *opened;

	/* As with core's, whose buffers we could not read; ours has rows that we could not. */
	if (unlikely(RELATION_IS_OTHER_TEMP(index)))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary tables of other sessions")));
	sherman_index_read_begins(index, sees_announced);
	opened = find_or_open(index, lazily);
	if (unlikely(sherman_connection_is_reader()))
		sherman_connection_reads();
	if (unlikely(opened->state != SHERMAN_OK))
		sherman_report_state(ERROR, index, opened->state, opened->reason);
	return opened;
}

ShermanIndex *
sherman_index_for_scan(Relation index, bool lazily)
{
	return index_to_read(index, lazily, false);
}

ShermanIndex *
sherman_index_for_key(Relation index)
{
	return index_to_read(index, false, true);
}

void
sherman_index_refresh(ShermanIndex *index, Relation relation)
{
	ShermanMetaPage meta;
	ShermanReason reason;
	ShermanState state;
	uint64		generation = sherman_generation();

	state = determine_state(relation, &meta, &reason);
	if (state == SHERMAN_ATTACHING)
	{
		sherman_wait_attached(&meta);
		state = determine_state(relation, &meta, &reason);
	}
	if (state == SHERMAN_OK && meta.tree != index->meta.tree)
	{
		/* A tree made lazily since the scan began, or another one: not this scan's. */
		state = index->meta.tree == 0 ? SHERMAN_OK : SHERMAN_BROKEN;
		reason = SHERMAN_REASON_TREE_MISSING;
	}
	if (state != SHERMAN_OK)
		sherman_report_state(ERROR, relation, state, reason);
	sherman_connection_refresh();
	index->generation = generation;
	/* A reader's handle goes on with the half that it has, in which is all that the scan's snapshot sees. */
	if (unlikely(sherman_connection_is_reader()))
		return;
	index->meta.replicas_valid = meta.replicas_valid;
	follow_replicas(relation, index);
}

ShermanIndex *
sherman_index_quietly(Relation index, bool lazily)
{
	ShermanReason reason;
	ShermanIndex *opened;

	if (sherman_index_state(index, &reason) != SHERMAN_OK || !sherman_connection_leave_standby())
		return NULL;
	opened = open_index(index, true, lazily);
	return opened->state == SHERMAN_OK && opened->tree != NULL ? opened : NULL;
}

static bool
size_estimate(Relation index, bool lazily, TreeStatus (*estimate) (Tree *, TreeStatistics *), TreeStatistics *statistics)
{
	ShermanIndex *opened = sherman_index_quietly(index, lazily);

	if (opened == NULL)
		return false;
	if (estimate(opened->tree, statistics) == TREE_OK)
		return true;
	/* It did not answer in time: later statements are not to wait for it again. */
	(void) sherman_connection_trouble();
	return false;
}

bool
sherman_size(Relation index, TreeStatistics *statistics)
{
	return size_estimate(index, true, tree_estimate_nodes, statistics);
}

bool
sherman_memory_size(Relation index, TreeStatistics *statistics)
{
	return size_estimate(index, false, tree_estimate, statistics);
}

void
sherman_warn_broken(Relation index, ShermanReason reason)
{
	KnownIndex *entry = find_known(RelationGetRelid(index), true);

	if (entry->warned || IsParallelWorker())
		return;
	entry->warned = true;
	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("index \"%s\" is broken and is not used: %s", RelationGetRelationName(index),
					sherman_why_broken(reason)),
			 sherman_hint_rebuild(index)));
}

/* ---- scans of trees: most are short, and to make one takes longer than to use it ---- */

TreeStatus
sherman_take_scan(ShermanIndex *index, TreeScan **scan)
{
	if (index->spare_taken)
		return tree_scan_open(index->tree, scan);
	if (index->spare == NULL)
	{
		MemoryContext caller = MemoryContextSwitchTo(index->context);
		TreeStatus	status = tree_scan_open(index->tree, &index->spare);

		MemoryContextSwitchTo(caller);
		if (status != TREE_OK)
			return status;
	}
	/* Its last user may have ended by an error. */
	tree_scan_renew(index->spare);
	index->spare_taken = true;
	spares_taken++;
	*scan = index->spare;
	return TREE_OK;
}

void
sherman_return_scan(ShermanIndex *index, TreeScan *scan)
{
	if (scan != index->spare)
	{
		tree_scan_close(scan);
		return;
	}
	index->spare_taken = false;
	spares_taken--;
}

/*
 * Takes back what errors have left lent: no scan outlives its transaction.
 */
static void
take_spares_back(void)
{
	HASH_SEQ_STATUS sequence;
	KnownIndex *entry;

	spares_taken = 0;
	hash_seq_init(&sequence, known);
	while ((entry = hash_seq_search(&sequence)) != NULL)
	{
		if (entry->open != NULL)
			entry->open->index.spare_taken = false;
	}
}

/* ---- callbacks of the server ---- */

void
sherman_hint_collector(void)
{
	hint_at_end = true;
}

static void
relcache_changed(Datum argument, Oid relation)
{
	HASH_SEQ_STATUS sequence;
	KnownIndex *entry;

	if (known == NULL)
		return;
	if (relation != InvalidOid)
	{
		entry = find_known(relation, false);
		if (entry != NULL && entry->open != NULL)
			entry->open->stale = some_stale = true;
		return;
	}
	hash_seq_init(&sequence, known);
	while ((entry = hash_seq_search(&sequence)) != NULL)
	{
		if (entry->open != NULL)
			entry->open->stale = some_stale = true;
	}
}

/*
 * The end of a transaction: nothing refers to retired indexes any more.  Raises nothing, and calls no memory
 * node, but once in each session of a standby that was promoted.
 */
static void
transaction_ended(XactEvent event, void *argument)
{
	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE &&
		event != XACT_EVENT_PARALLEL_COMMIT && event != XACT_EVENT_PARALLEL_ABORT)
		return;
	if (unlikely(spares_taken > 0))
		take_spares_back();
	if (unlikely(some_stale))
		retire_stale();
	if (unlikely(open_count > SET_ASIDE_MAX))
		retire_all();
	if (unlikely(retired != NULL))
		free_retired();
	if (sherman_shared == NULL)
		return;
	sherman_connection_end_transaction();
	if (unlikely(hint_at_end))
	{
		hint_at_end = false;
		sherman_trees_unprove(MyDatabaseId);
		pg_atomic_fetch_add_u32(&sherman_shared->hints, 1);
		sherman_wake_launcher();
	}
}

/*
 * An error that is caught has jumped out of the calls that were begun in the subtransaction, and out of no other: a comparator may
 * catch what a query of its own has raised.
 */
static void
subtransaction_changed(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *argument)
{
	if (event == SUBXACT_EVENT_START_SUB)
		sherman_connection_begin_inside(GetCurrentTransactionNestLevel());
	else if (event == SUBXACT_EVENT_ABORT_SUB)
		sherman_connection_abort_inside(GetCurrentTransactionNestLevel());
}

void
sherman_opened_install(void)
{
	sherman_connection_before_close(close_all);
	RegisterXactCallback(transaction_ended, NULL);
	RegisterSubXactCallback(subtransaction_changed, NULL);
	CacheRegisterRelcacheCallback(relcache_changed, (Datum) 0);
}
