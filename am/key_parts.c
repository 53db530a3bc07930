/*
 * key_parts.c
 *		Rows that are added to unique indexes without a lock on their keys, and checks that wait for them.
 *
 * An entry that is added on condition that its leaf shows its key to be new (tree_insert_alone()) needs no key
 * lock against others of its kind: the leaf's lock orders them, and whoever comes second finds the first.  It
 * would need one against a check (unique.c), which reads entries, looks at their rows and then adds an entry on no
 * condition: if VACUUM removes meanwhile what the check has read, the key looks new to somebody else.
 *
 * So both say what they do, in counters for a part of all keys: who adds says so, and then asks whether somebody
 * checks; who checks says so, and then waits until nobody adds.  Each has its store before its load, so one of
 * them sees the other.  Who wants to add and sees a check does as if its key were not new, which means that it
 * takes the key lock.  (Peterson's and Dekker's algorithms for mutual exclusion begin like that;
 * test/models/unique.pml is this one.)
 *
 * What an error leaves behind goes with the resource owner, as the key lock does.
 */
#include "sherman.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "shared.h"
#include "unique.h"

/* So many at first: one, and more where a comparator adds rows, or errors were caught. */
#define MARKS_FIRST 8

/* Between two looks whether somebody still adds: about what adding takes. */
#define ADDING_PAUSE_US 50

/* Something that this process has said and not taken back. */
typedef struct KeyMark
{
	ResourceOwner owner;		/* an error takes it back with this one */
	KeyPartUse	use;
	uint32		part;
} KeyMark;

static struct
{
	KeyMark    *mark;			/* in TopMemoryContext */
	int			count;
	int			room;
} said;

static pg_atomic_uint32 *
counter_of(KeyPartUse use, uint32 part)
{
	ShermanKeyPart *counters = &sherman_shared->key_part[part];

	return use == KEY_PART_ADD ? &counters->adding : &counters->checking;
}

/* Takes the mark at this place back. */
static void
take_back(int place)
{
	pg_atomic_fetch_sub_u32(counter_of(said.mark[place].use, said.mark[place].part), 1);
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
make_room(void)
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

/* Says it to everybody: a full barrier. */
static void
say(KeyPartUse use, uint32 part)
{
	if (unlikely(said.count == said.room))
		make_room();
	said.mark[said.count++] = (KeyMark) {CurrentResourceOwner, use, part};
	pg_atomic_fetch_add_u32(counter_of(use, part), 1);
}

/* How often this process itself adds there: a comparator that adds a row may lead here. */
static uint32
own_adding(uint32 part)
{
	uint32		own = 0;

	for (int i = 0; i < said.count; i++)
		own += said.mark[i].use == KEY_PART_ADD && said.mark[i].part == part;
	return own;
}

bool
key_part_add(uint32 part)
{
	say(KEY_PART_ADD, part);
	if (likely(pg_atomic_read_u32(counter_of(KEY_PART_CHECK, part)) == 0))
		return true;
	key_part_end(KEY_PART_ADD, part);
	return false;
}

void
key_part_check(uint32 part)
{
	uint32		own = own_adding(part);

	say(KEY_PART_CHECK, part);
	while (pg_atomic_read_u32(counter_of(KEY_PART_ADD, part)) > own)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(ADDING_PAUSE_US);
	}
	/* What they have added is read behind this. */
	pg_memory_barrier();
}

void
key_part_end(KeyPartUse use, uint32 part)
{
	int			place = said.count - 1;

	while (said.mark[place].use != use || said.mark[place].part != part)
	{
		Assert(place > 0);
		place--;
	}
	take_back(place);
}
