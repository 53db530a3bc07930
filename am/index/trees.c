/*
 * trees.c
 *		The table of trees in shared memory: a copy of the memory nodes' records, so that the planner and others learn
 *		an index's state without calling the memory node. The launcher fills it at each attach; the process that
 *		makes, changes or drops a tree changes the entry after the record.
 */
#include "am/base/sherman.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

/* Time until the healer comes again to a tree with leaves that are still unverified; doubles each time. */
#define HEAL_RETRY_MS 1000
#define HEAL_RETRY_MOST_MS (300 * 1000)

/* The buckets of the hash table, which are made with it, for each tree that can be in use: for more entries than there is room for in the reserve. */
#define BUCKETS_PER_TREE 4

static HTAB *trees = NULL;

static void *
allocate(COMPAT_HASH_ALLOC_PARAMETERS)
{
	return sherman_reserve_allocate(bytes);
}

void
sherman_trees_initialize(uint32 trees_in_use)
{
	const HASHCTL control = {.keysize = sizeof(uint64), .entrysize = sizeof(ShermanTreeEntry), .alloc = allocate};

	/*
	 * For PostgreSQL it is a table of this process, which all others inherit when they are forked.  All that changes lies in the reserve: its
	 * buckets are there from the start, and its entries come as there are more trees.
	 */
	trees = hash_create("sherman trees", BUCKETS_PER_TREE * trees_in_use, &control, HASH_ELEM | HASH_BLOBS | HASH_ALLOC);
}

bool
sherman_trees_find(uint64 tree, ShermanTreeEntry *entry)
{
	ShermanTreeEntry *found;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_TREES), LW_SHARED);
	found = hash_search(trees, &tree, HASH_FIND, NULL);
	if (found != NULL)
		*entry = *found;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
	return found != NULL;
}

bool
sherman_trees_put(const ShermanTreeEntry *entry)
{
	ShermanTreeEntry *found;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_TREES), LW_EXCLUSIVE);
	found = hash_search(trees, &entry->tree, HASH_ENTER_NULL, NULL);
	if (found != NULL)
		*found = *entry;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
	return found != NULL;
}

/*
 * The position of the memory node that a record, or a copy's, is at.
 */
static uint32
record_home(const TreeRecord *record)
{
	uint32_t	copy;

	return (record->tree & SHERMAN_TREE_REPLICA) != 0 && tree_record_replica(record, &copy) ? copy : tree_home(record->root);
}

bool
sherman_trees_note_replica(const TreeRecord *record)
{
	TreeRecord	copy = *record;
	uint32_t	position;

	copy.tree |= SHERMAN_TREE_REPLICA;
	return !tree_record_replica(record, &position) || sherman_trees_note(&copy);
}

bool
sherman_trees_note(const TreeRecord *record)
{
	ShermanTreeEntry entry;

	sherman_trees_judge(record, SHERMAN_TREE_KNOWN);
	return sherman_trees_find(record->tree, &entry);
}

/*
 * Locks the table and returns the tree's entry, or NULL.  The caller unlocks it.
 */
static ShermanTreeEntry *
lock_to_change(uint64 tree)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_TREES), LW_EXCLUSIVE);
	return hash_search(trees, &tree, HASH_FIND, NULL);
}

/*
 * Changes all entries, each of which may be removed; `which` is passed on.
 */
static void
change_all(void (*change) (ShermanTreeEntry *entry, uint32 which), uint32 which)
{
	HASH_SEQ_STATUS sequence;
	ShermanTreeEntry *entry;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_TREES), LW_EXCLUSIVE);
	hash_seq_init(&sequence, trees);
	while ((entry = hash_seq_search(&sequence)) != NULL)
		change(entry, which);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
}

static void
entry_mutated(uint64 key, uint32 epoch, uint64 nonce)
{
	ShermanTreeEntry *found = lock_to_change(key);

	if (found != NULL && found->mutated_epoch < epoch)
	{
		found->mutated_epoch = epoch;
		found->nonce = nonce;
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
}

void
sherman_trees_mutated(uint64 tree, uint32 epoch, uint64 nonce)
{
	entry_mutated(tree, epoch, nonce);
	entry_mutated(tree | SHERMAN_TREE_REPLICA, epoch, nonce);
}

static void
entry_healed(uint64 key)
{
	ShermanTreeEntry *found = lock_to_change(key);

	if (found != NULL)
	{
		found->unverified_epoch = 0;
		found->heal_tries = 0;
		found->heal_vain = false;
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
}

void
sherman_trees_healed(uint64 tree)
{
	entry_healed(tree);
	entry_healed(tree | SHERMAN_TREE_REPLICA);
}

/*
 * Whether the tree has a copy, and where.
 */
static bool
entry_replica(const ShermanTreeEntry *entry, uint32_t *copy)
{
	TreeRecord	record = {.flags = entry->flags};

	return tree_record_replica(&record, copy);
}

void
sherman_trees_doubt_replicas(void)
{
	HASH_SEQ_STATUS sequence;
	ShermanTreeEntry *entry;
	uint32_t	copy;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_TREES), LW_EXCLUSIVE);
	hash_seq_init(&sequence, trees);
	while ((entry = hash_seq_search(&sequence)) != NULL)
		entry->replicas_doubt |= (entry->tree & SHERMAN_TREE_REPLICA) == 0 && entry_replica(entry, &copy);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
}

void
sherman_trees_compared(uint64 tree)
{
	ShermanTreeEntry *found = lock_to_change(tree);

	if (found != NULL)
	{
		found->replicas_doubt = false;
		if (found->unverified_epoch == 0)
			found->heal_tries = 0;
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
}

TimestampTz
sherman_trees_judge(const TreeRecord *record, ShermanVerdict verdict)
{
	ShermanTreeEntry *entry;
	TimestampTz dead_since = 0;
	bool		found;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_TREES), LW_EXCLUSIVE);
	entry = hash_search(trees, &record->tree, HASH_ENTER_NULL, &found);
	if (entry != NULL)
	{
		if (!found)
			*entry = (ShermanTreeEntry) {.tree = record->tree, .database = record->database,
			.home = record_home(record), .unverified_epoch = record->unverified_epoch, .nonce = record->nonce, .unproven = true};
		for (int i = 0; i < TREE_MAX_NODES; i++)
		{
			if (record->members[i] != 0 && (record->tree & SHERMAN_TREE_REPLICA) == 0)
				entry->members[i] = record->members[i];
		}
		entry->flags |= record->flags;
		entry->mutated_epoch = Max(entry->mutated_epoch, record->mutated_epoch);
		switch (verdict)
		{
			case SHERMAN_TREE_KNOWN:
				break;
			case SHERMAN_TREE_EXAMINED:
				entry->unproven = false;
				break;
			case SHERMAN_TREE_ALIVE:
				entry->dead_since = 0;
				break;
			case SHERMAN_TREE_UNDECIDED:
				entry->unproven = true;
				entry->dead_since = 0;
				break;
			case SHERMAN_TREE_DEAD:
				if (entry->dead_since == 0)
					entry->dead_since = GetCurrentTimestamp();
				break;
		}
		dead_since = entry->dead_since;
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
	return dead_since;
}

void
sherman_trees_remove(uint64 tree)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_TREES), LW_EXCLUSIVE);
	hash_search(trees, &tree, HASH_REMOVE, NULL);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
}

void
sherman_trees_abandon(uint64 tree)
{
	ShermanTreeEntry *found = lock_to_change(tree);

	if (found != NULL)
		found->abandoned = true;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
	pg_atomic_fetch_add_u32(&sherman_shared->hints, 1);
	sherman_wake_launcher();
}

static void
unlist(ShermanTreeEntry *entry, uint32 home)
{
	entry->unproven |= entry->home == home;
}

static void
forget_entry(ShermanTreeEntry *entry, uint32 home)
{
	if (entry->home != home)
		return;
	if (entry->replicas_doubt)
		tree_replicas_lose_doubt(sherman_tree_shared);
	hash_search(trees, &entry->tree, HASH_REMOVE, NULL);
}

static void
forget_unlisted(ShermanTreeEntry *entry, uint32 home)
{
	if (entry->unproven)
		forget_entry(entry, home);
}

void
sherman_trees_clear(uint32 home)
{
	change_all(forget_entry, home);
}

void
sherman_trees_unlist(uint32 home)
{
	change_all(unlist, home);
}

void
sherman_trees_forget_unlisted(uint32 home)
{
	change_all(forget_unlisted, home);
}

bool
sherman_trees_replicas_doubted(const ShermanTreeEntry *entry, bool returned)
{
	uint32_t	copy;

	return (entry->tree & SHERMAN_TREE_REPLICA) == 0 && entry_replica(entry, &copy) &&
		(entry->replicas_doubt || tree_replicas_doubted(sherman_tree_shared, entry->tree, returned));
}

/*
 * Whether the healer can work on a tree: it has unverified leaves, or may differ from its replica, and all its memory
 * nodes are attached.
 */
static bool
is_to_heal(const ShermanTreeEntry *entry)
{
	bool		unverified = entry->unverified_epoch != 0;
	uint32_t	copy;
	bool		copied = entry_replica(entry, &copy);

	if ((entry->flags & TREE_RECORD_BROKEN) != 0 || entry->abandoned ||
		sherman_node_phase((int) entry->home) != SHERMAN_PHASE_ATTACHED ||
		(!unverified && !sherman_trees_replicas_doubted(entry, false)))
		return false;
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		/* A copy that is away is given up before anything is healed; it cannot be compared. */
		if (entry->members[i] != 0 && sherman_node_phase(i) != SHERMAN_PHASE_ATTACHED &&
			!(unverified && copied && i == (int) copy))
			return false;
	}
	return true;
}

bool
sherman_trees_next_to_heal(Oid *database, TimestampTz *due)
{
	HASH_SEQ_STATUS sequence;
	ShermanTreeEntry *entry;
	bool		found = false;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_TREES), LW_SHARED);
	hash_seq_init(&sequence, trees);
	while ((entry = hash_seq_search(&sequence)) != NULL)
	{
		if (!is_to_heal(entry) || (found && entry->heal_after >= *due))
			continue;
		*database = entry->database;
		*due = entry->heal_after;
		found = true;
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
	return found;
}

void
sherman_trees_take_to_heal(Oid database)
{
	TimestampTz now = GetCurrentTimestamp();
	HASH_SEQ_STATUS sequence;
	ShermanTreeEntry *entry;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_TREES), LW_EXCLUSIVE);
	hash_seq_init(&sequence, trees);
	while ((entry = hash_seq_search(&sequence)) != NULL)
	{
		entry->heal_now = entry->database == database && is_to_heal(entry) && entry->heal_after <= now;
		if (!entry->heal_now)
			continue;
		entry->heal_after = TimestampTzPlusMilliseconds(now, Min(HEAL_RETRY_MS << Min(entry->heal_tries, 16),
																 HEAL_RETRY_MOST_MS));
		entry->heal_tries++;
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
}

void
sherman_trees_heal_soon(uint64 tree)
{
	ShermanTreeEntry *found = lock_to_change(tree);

	if (found != NULL && !found->heal_vain)
		found->heal_after = Min(found->heal_after, GetCurrentTimestamp());
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
}

void
sherman_trees_heal_vain(uint64 tree, bool vain)
{
	ShermanTreeEntry *found = lock_to_change(tree);

	if (found != NULL)
		found->heal_vain = vain && found->unverified_epoch != 0;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
}

static void
settle(ShermanTreeEntry *entry, uint32 database)
{
	if (entry->database != database)
		return;
	entry->unproven = false;
	entry->dead_since = 0;
}

void
sherman_trees_settle(Oid database)
{
	change_all(settle, database);
}

static void
unprove(ShermanTreeEntry *entry, uint32 database)
{
	entry->unproven |= database == InvalidOid || entry->database == database;
}

void
sherman_trees_unprove(Oid database)
{
	change_all(unprove, database);
}

ShermanTreeEntry *
sherman_trees_list(int *count)
{
	HASH_SEQ_STATUS sequence;
	ShermanTreeEntry *list;
	ShermanTreeEntry *entry;

	*count = 0;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_TREES), LW_SHARED);
	list = palloc(sizeof(ShermanTreeEntry) * (hash_get_num_entries(trees) + 1));
	hash_seq_init(&sequence, trees);
	while ((entry = hash_seq_search(&sequence)) != NULL)
		list[(*count)++] = *entry;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_TREES));
	return list;
}
