/*
 * key_parts.c
 *		Rows that are added to unique indexes without a lock on their keys, and checks that wait for them.
 *
 * An entry that is added on condition that its leaf shows its key to be new (tree_insert_alone()) needs no key lock
 * against others of its kind: the leaf's lock orders them, and the second one finds the first. It would need one
 * against a check (unique.c), which reads entries, looks at their rows and then adds an entry on no condition: if
 * VACUUM removes meanwhile what the check has read, the key looks new to another session.
 *
 * So both note what they do, in counters for a part of all keys: a process that adds notes it, and then reads whether
 * another one checks; a process that checks notes it, and then waits until none adds.  Each has its store before its
 * load, so one of them sees the other.  If the one that adds sees a check it goes on as if its key were not new: it
 * takes the key lock.  A check may leave the key announced instead of adding its entry (am/index/announced.c), before it says that it is over:
 * who adds looks there when it has seen no check, and goes on in the same way.  (Peterson's and Dekker's algorithms for mutual exclusion begin like that;
 * test/models/unique.pml is this one.)
 *
 * Whoever adds many keys by one wave is in many parts while it waits for its memory nodes, one that hangs, say: in those of one index, which
 * few others share.
 *
 * The deadlock detector does not know of that wait.  So it may only be for processes that wait for nobody: a process counts as
 * adding from when it holds its leaf's lock until it releases it (TreePermit), and runs no comparator and takes no heavyweight
 * lock in between.  A check does both, under its counter, and nobody waits for that counter to fall.
 *
 * What an error leaves of a check goes with the resource owner, as the key lock does.
 */
#include "am/base/sherman.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/wait_event.h"

#include "am/access/access.h"
#include "am/access/unique.h"
#include "am/base/shared.h"
#include "am/index/announced.h"

/* So many at first: one, and more where a comparator adds rows, or errors were caught. */
#define MARKS_FIRST 8

/* The pause between two checks whether rows are still being added: about as long as adding takes. */
#define ADDING_PAUSE_US 50

/* A check that this process has said to be in progress. */
typedef struct KeyMark
{
	ResourceOwner owner;		/* an error takes it back with this one */
	uint32		part;
} KeyMark;

static struct
{
	KeyMark    *mark;			/* in TopMemoryContext */
	int			count;
	int			room;
} said;

/* Takes the mark at this place back. */
static void
take_back(int place)
{
	pg_atomic_fetch_sub_u32(&sherman_shared->key_part[said.mark[place].part].checking, 1);
	said.mark[place] = said.mark[--said.count];
}

/*
 * Resource owners are released at the ends of transactions, subtransactions and portals; with an error that is when
 * locks go.
 */
static void
release_marks(ResourceReleasePhase phase, bool is_commit, bool is_top_level, void *argument)
{
	if (phase != RESOURCE_RELEASE_LOCKS)
		return;
	for (int i = said.count - 1; i >= 0; i--)
	{
		if (said.mark[i].owner == CurrentResourceOwner)
			take_back(i);
	}
}

static void
reserve_parts(void)
{
	if (said.room == 0)
	{
		said.mark = MemoryContextAlloc(TopMemoryContext, sizeof(KeyMark) * MARKS_FIRST);
		said.room = MARKS_FIRST;
		RegisterResourceReleaseCallback(release_marks, NULL);
		return;
	}
	said.mark = repalloc(said.mark, sizeof(KeyMark) * said.room * 2);
	said.room *= 2;
}

uint32
key_part(const KeyParts *parts, const TreeKey *key)
{
	uint32		group = murmurhash32(parts->index) % (SHERMAN_KEY_PARTS / SHERMAN_KEY_PARTS_OF_INDEX);

	/* Equal keys have equal normalized bytes. */
	uint64		hash = hash_bytes_extended((const unsigned char *) key->norm, parts->norm_bytes, key->high);

	return group * SHERMAN_KEY_PARTS_OF_INDEX + (uint32) (hash % SHERMAN_KEY_PARTS_OF_INDEX);
}

/*
 * Whether a check that is over has left the key announced.
 */
static bool
is_announced(const KeyParts *parts, const TreeKey *key)
{
	AnnouncedRow rows[ANNOUNCED_ROWS];

	pg_read_barrier();
	return announced_find(parts->tree, key, rows) > 0;
}

bool
key_part_add(void *parts, const TreeKey *key)
{
	ShermanKeyPart *counters = &sherman_shared->key_part[key_part(parts, key)];

	/* A full barrier. */
	pg_atomic_fetch_add_u32(&counters->adding, 1);
	if (likely(pg_atomic_read_u32(&counters->checking) == 0) && likely(!is_announced(parts, key)))
		return true;
	pg_atomic_fetch_sub_u32(&counters->adding, 1);
	return false;
}

void
key_part_added(void *parts, const TreeKey *key)
{
	pg_atomic_fetch_sub_u32(&sherman_shared->key_part[key_part(parts, key)].adding, 1);
}

void
key_part_check(uint32 part)
{
	ShermanKeyPart *counters = &sherman_shared->key_part[part];

	if (unlikely(said.count == said.room))
		reserve_parts();
	said.mark[said.count++] = (KeyMark) {CurrentResourceOwner, part};
	/* A full barrier. */
	pg_atomic_fetch_add_u32(&counters->checking, 1);
	while (pg_atomic_read_u32(&counters->adding) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		pgstat_report_wait_start(sherman_wait_event(SHERMAN_WAIT_UNIQUE_CHECK));
		pg_usleep(ADDING_PAUSE_US);
		pgstat_report_wait_end();
	}
	/* What they have added is read behind this. */
	pg_memory_barrier();
}

void
key_part_check_end(uint32 part)
{
	int			place = said.count - 1;

	while (said.mark[place].part != part)
	{
		Assert(place > 0);
		place--;
	}
	take_back(place);
}
