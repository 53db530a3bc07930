/*
 * announced.c
 *		Keys of unique indexes whose entries wait in some process (am/access/insert_batch.c), where other sessions find them.
 *
 * A statement with ON CONFLICT must know of each row at once whether its key is new, and no other session may think the same of that key
 * from then on.  An entry in the tree says so.  Here an entry that waits does: its key lies in a table in shared memory, with the row's TID, until
 * the entry is in the tree.  Who checks a key looks here first, and then into the tree: what has left this table meanwhile is there.
 *
 * Only keys that are their normalized bytes are announced, so that what is found has the key.
 *
 * A place belongs to the process that has made it, and goes with its batch.  The chains of a stripe are its spinlock's, the free places the
 * table's.
 */
#include "am/base/sherman.h"

#include "common/hashfn.h"
#include "port/atomics.h"
#include "storage/shmem.h"
#include "storage/spin.h"

#include "am/index/announced.h"

/* Powers of 2. */
#define PLACES 32768
#define BUCKETS 32768
#define STRIPES 256

typedef struct AnnouncedPlace
{
	uint64		tree;
	uint64		norm[TREE_NORM_WORDS];
	AnnouncedRow row;
	bool		high;
	uint32		next;			/* in its bucket, or among the free ones */
} AnnouncedPlace;

typedef struct AnnouncedKeys
{
	pg_atomic_uint32 count;
	slock_t		lock;			/* of the next two */
	uint32		free;			/* the first place that was given back */
	uint32		used;			/* places behind this one have never been used, and have no memory yet */
	slock_t		stripe[STRIPES];
	uint32		bucket[BUCKETS];
	AnnouncedPlace place[PLACES + 1];	/* 0 is nowhere */
} AnnouncedKeys;

static AnnouncedKeys *announced = NULL;

Size
announced_bytes(void)
{
	return sizeof(AnnouncedKeys);
}

void
announced_initialize(void)
{
	bool		found;

	announced = ShmemInitStruct("sherman announced keys", sizeof(AnnouncedKeys), &found);
	memset(announced, 0, offsetof(AnnouncedKeys, place));
	pg_atomic_init_u32(&announced->count, 0);
	SpinLockInit(&announced->lock);
	for (int i = 0; i < STRIPES; i++)
		SpinLockInit(&announced->stripe[i]);
}

/* ---- free places ---- */

static uint32
take_place(void)
{
	uint32		place;

	SpinLockAcquire(&announced->lock);
	place = announced->free;
	if (place != ANNOUNCED_NOWHERE)
		announced->free = announced->place[place].next;
	else if (announced->used < PLACES)
		place = ++announced->used;
	SpinLockRelease(&announced->lock);
	return place;
}

/* Gives back places that are linked from the first to the last. */
static void
give_places(uint32 first, uint32 last)
{
	SpinLockAcquire(&announced->lock);
	announced->place[last].next = announced->free;
	announced->free = first;
	SpinLockRelease(&announced->lock);
}

/* ---- keys ---- */

static uint32
announced_bucket(uint64 tree, const uint64 *norm)
{
	return hash_bytes_extended((const unsigned char *) norm, sizeof(uint64) * TREE_NORM_WORDS, tree) % BUCKETS;
}

static bool
has_key(const AnnouncedPlace *place, uint64 tree, const TreeKey *key)
{
	return place->tree == tree && place->high == key->high && memcmp(place->norm, key->norm, sizeof(place->norm)) == 0;
}

/* How many of a bucket have the key; the first of them go to `rows`, if that is not NULL. The stripe is locked. */
static int
find_rows(uint32 bucket, uint64 tree, const TreeKey *key, AnnouncedRow *rows)
{
	int			count = 0;

	for (uint32 at = announced->bucket[bucket]; at != ANNOUNCED_NOWHERE; at = announced->place[at].next)
	{
		if (!has_key(&announced->place[at], tree, key))
			continue;
		if (rows != NULL)
			rows[count] = announced->place[at].row;
		count++;
	}
	return count;
}

uint32
announced_add(uint64 tree, const TreeKey *key, TransactionId writer)
{
	uint32		bucket = announced_bucket(tree, key->norm);
	uint32		at = take_place();
	AnnouncedPlace *place = &announced->place[at];
	bool		room;

	if (at == ANNOUNCED_NOWHERE)
		return ANNOUNCED_NOWHERE;
	place->tree = tree;
	place->high = key->high;
	memcpy(place->norm, key->norm, sizeof(place->norm));
	place->row = (AnnouncedRow) {key->block, key->offset, writer};

	SpinLockAcquire(&announced->stripe[bucket % STRIPES]);
	room = find_rows(bucket, tree, key, NULL) < ANNOUNCED_ROWS;
	if (room)
	{
		place->next = announced->bucket[bucket];
		announced->bucket[bucket] = at;
	}
	SpinLockRelease(&announced->stripe[bucket % STRIPES]);
	if (!room)
	{
		give_places(at, at);
		return ANNOUNCED_NOWHERE;
	}
	pg_atomic_fetch_add_u32(&announced->count, 1);
	return at;
}

static void
unlink_place(uint32 at)
{
	AnnouncedPlace *place = &announced->place[at];
	uint32		bucket = announced_bucket(place->tree, place->norm);
	uint32	   *link = &announced->bucket[bucket];

	SpinLockAcquire(&announced->stripe[bucket % STRIPES]);
	while (*link != at)
		link = &announced->place[*link].next;
	*link = place->next;
	SpinLockRelease(&announced->stripe[bucket % STRIPES]);
}

void
announced_withdraw(const uint32 *places, uint32 count)
{
	for (uint32 i = 0; i < count; i++)
	{
		unlink_place(places[i]);
		announced->place[places[i]].next = i > 0 ? places[i - 1] : ANNOUNCED_NOWHERE;
	}
	if (count == 0)
		return;
	give_places(places[count - 1], places[0]);
	pg_atomic_fetch_sub_u32(&announced->count, count);
}

bool
announced_any(void)
{
	return unlikely(pg_atomic_read_u32(&announced->count) > 0);
}

int
announced_find(uint64 tree, const TreeKey *key, AnnouncedRow *rows)
{
	uint32		bucket;
	int			count;

	if (!announced_any())
		return 0;
	bucket = announced_bucket(tree, key->norm);
	SpinLockAcquire(&announced->stripe[bucket % STRIPES]);
	count = find_rows(bucket, tree, key, rows);
	SpinLockRelease(&announced->stripe[bucket % STRIPES]);
	return count;
}
