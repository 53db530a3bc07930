/*
 * rebuilds.c
 *		The indexes that are to be rebuilt: how often each was tried, when the next try is due, what the last one
 *		ended with.
 *
 * The table lies in shared memory and in a file, which is written before a try begins: a try that ends the
 * server counts, and what it left in the catalogs is known.  Neither backups nor pg_rewind copy the file.
 */
#include "am/base/sherman.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "commands/dbcommands.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "am/background/background.h"
#include "am/background/rebuild.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

#define REBUILDS_FILE "pg_dynshmem/sherman.rebuilds"
#define REBUILDS_MAGIC 0x53485242
#define REBUILDS_VERSION 1

/* Indexes that the table has room for; others wait until one is rebuilt, or dropped. */
#define REBUILDS_ROOM 256

/* Between tries of one index: from the first, doubling, to the last. */
#define DELAY_FIRST_S 1
#define DELAY_LAST_S 3600

#define REBUILD_COLUMNS 9

PG_FUNCTION_INFO_V1(sherman_rebuilds);
PG_FUNCTION_INFO_V1(sherman_rebuild_all);

/* What is in shared memory, and in the file. */
typedef struct Rebuilds
{
	uint32		magic;
	uint32		version;
	uint64		system_identifier;
	ShermanRebuild rebuild[REBUILDS_ROOM];	/* database 0 = free */
	uint32		checksum;		/* CRC-32C of the above */
} Rebuilds;

static Rebuilds *rebuilds = NULL;

/* ---- the file ---- */

/*
 * Reads the table as an earlier run left it; false: there is none, or it is not valid.
 */
static bool
rebuilds_read(Rebuilds *table)
{
	return sherman_file_read(REBUILDS_FILE, table, sizeof(*table)) &&
		table->magic == REBUILDS_MAGIC && table->version == REBUILDS_VERSION &&
		table->checksum == sherman_checksum(table, offsetof(Rebuilds, checksum));
}

/*
 * Writes the table, which is locked.  What cannot be written is not remembered beyond this run: a warning.
 */
static void
rebuilds_write(void)
{
	rebuilds->checksum = sherman_checksum(rebuilds, offsetof(Rebuilds, checksum));
	(void) sherman_file_write(REBUILDS_FILE, rebuilds, sizeof(*rebuilds));
}

/* ---- shared memory ---- */

Size
sherman_rebuilds_bytes(void)
{
	return sizeof(Rebuilds);
}

/*
 * When a pause ends that begins now.
 */
static TimestampTz
pause_from_now(const ShermanRebuild *rebuild)
{
	return TimestampTzPlusMilliseconds(GetCurrentTimestamp(), Max(rebuild->delay_s, DELAY_FIRST_S) * INT64CONST(1000));
}

/*
 * A try that was in progress when the server ended was one; the next is due after the usual pause.
 */
static void
resume(ShermanRebuild *rebuild)
{
	if (rebuild->database == InvalidOid || !rebuild->running)
		return;
	rebuild->running = false;
	rebuild->next = pause_from_now(rebuild);
	strlcpy(rebuild->error, "the server ended while the index was rebuilt", sizeof(rebuild->error));
}

void
sherman_rebuilds_initialize(void)
{
	bool		found;

	rebuilds = ShmemInitStruct("sherman rebuilds", sizeof(Rebuilds), &found);
	if (!rebuilds_read(rebuilds) || rebuilds->system_identifier != GetSystemIdentifier())
	{
		memset(rebuilds, 0, sizeof(*rebuilds));
		rebuilds->magic = REBUILDS_MAGIC;
		rebuilds->version = REBUILDS_VERSION;
		rebuilds->system_identifier = GetSystemIdentifier();
	}
	for (int i = 0; i < REBUILDS_ROOM; i++)
		resume(&rebuilds->rebuild[i]);
}

/* ---- entries ---- */

/*
 * The entry of an index, or NULL.  The table is locked.
 */
static ShermanRebuild *
find(Oid database, Oid index)
{
	for (int i = 0; i < REBUILDS_ROOM; i++)
	{
		if (rebuilds->rebuild[i].database == database && rebuilds->rebuild[i].index == index)
			return &rebuilds->rebuild[i];
	}
	return NULL;
}

static ShermanRebuild *
lock_to_change(Oid index)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_REBUILDS), LW_EXCLUSIVE);
	return find(MyDatabaseId, index);
}

bool
sherman_rebuilds_add(const ShermanRebuild *wanted)
{
	ShermanRebuild *rebuild = lock_to_change(wanted->index);

	if (rebuild == NULL)
	{
		/* A free place. */
		rebuild = find(InvalidOid, InvalidOid);
		if (rebuild != NULL)
			*rebuild = *wanted;
	}
	else
		rebuild->manual = wanted->manual;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REBUILDS));
	return rebuild != NULL;
}

void
sherman_rebuilds_remove(Oid database, Oid index)
{
	ShermanRebuild *rebuild;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_REBUILDS), LW_EXCLUSIVE);
	rebuild = find(database, index);
	if (rebuild != NULL)
	{
		memset(rebuild, 0, sizeof(*rebuild));
		rebuilds_write();
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REBUILDS));
}

ShermanRebuild *
sherman_rebuilds_list(int *count)
{
	ShermanRebuild *list = palloc(sizeof(ShermanRebuild) * REBUILDS_ROOM);

	*count = 0;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_REBUILDS), LW_SHARED);
	for (int i = 0; i < REBUILDS_ROOM; i++)
	{
		if (rebuilds->rebuild[i].database != InvalidOid)
			list[(*count)++] = rebuilds->rebuild[i];
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REBUILDS));
	return list;
}

bool
sherman_rebuild_is_due(const ShermanRebuild *rebuild, TimestampTz now)
{
	if (rebuild->running || rebuild->next > now)
		return false;
	/* What a try has left is dropped, whether there is to be another one or not. */
	return rebuild->made != InvalidOid || (!rebuild->manual && rebuild->tries < (uint32) sherman_rebuild_tries);
}

bool
sherman_rebuilds_next(Oid database, ShermanRebuild *next)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		found = false;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_REBUILDS), LW_SHARED);
	for (int i = 0; i < REBUILDS_ROOM && !found; i++)
	{
		found = rebuilds->rebuild[i].database == database && sherman_rebuild_is_due(&rebuilds->rebuild[i], now);
		if (found)
			*next = rebuilds->rebuild[i];
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REBUILDS));
	return found;
}

void
sherman_rebuilds_welcome(uint32 attached)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_REBUILDS), LW_EXCLUSIVE);
	for (int i = 0; i < REBUILDS_ROOM; i++)
	{
		ShermanRebuild *rebuild = &rebuilds->rebuild[i];

		/* The pauses stay as long as they have become: a memory node that comes and goes shall not make tries. */
		if (rebuild->database != InvalidOid && !rebuild->running && (attached & ~rebuild->attached) != 0)
		{
			rebuild->tries = 0;
			rebuild->attached |= attached;
		}
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REBUILDS));
}

/*
 * Each index has all its tries again, at once.
 */
static void
forget_tries(void)
{
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_REBUILDS), LW_EXCLUSIVE);
	for (int i = 0; i < REBUILDS_ROOM; i++)
	{
		ShermanRebuild *rebuild = &rebuilds->rebuild[i];

		if (rebuild->database == InvalidOid || rebuild->running)
			continue;
		rebuild->tries = 0;
		rebuild->delay_s = 0;
		rebuild->next = 0;
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REBUILDS));
}

bool
sherman_rebuild_works(void)
{
	return sherman_auto_rebuild || pg_atomic_read_u32(&sherman_shared->rebuild_all) != SHERMAN_REBUILD_ALL_NOT;
}

/*
 * sherman_rebuild_all(): has the broken indexes of all databases rebuilt in the background, those included that were given up, also
 * where sherman.auto_rebuild is off.
 */
Datum
sherman_rebuild_all(PG_FUNCTION_ARGS)
{
	if (sherman_all_hidden() || RecoveryInProgress())
		sherman_report_state(ERROR, NULL, SHERMAN_HIDDEN, SHERMAN_REASON_NONE);
	forget_tries();
	pg_atomic_write_u32(&sherman_shared->rebuild_all, SHERMAN_REBUILD_ALL_WANTED);
	sherman_wake_launcher();
	if (sherman_phase() != SHERMAN_PHASE_ATTACHED)
		ereport(WARNING,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("no memory node is attached: indexes are rebuilt when one is"),
				 errdetail("The reason: %s.", sherman_away_text(-1)),
				 errhint("SELECT * FROM sherman_stat_memory_nodes shows why none is.")));
	PG_RETURN_VOID();
}

/* ---- tries ---- */

void
sherman_rebuild_begins(Oid index, bool is_try)
{
	ShermanRebuild *rebuild = lock_to_change(index);

	if (rebuild != NULL)
	{
		/* The pause behind what is about to be done is longer than the last one. */
		rebuild->delay_s = rebuild->delay_s == 0 ? DELAY_FIRST_S : Min(2 * rebuild->delay_s, DELAY_LAST_S);
		rebuild->next = pause_from_now(rebuild);
		if (is_try)
		{
			rebuild->running = true;
			rebuild->pid = MyProcPid;
			rebuild->tries++;
			rebuild->attached = sherman_attached_nodes();
		}
		rebuilds_write();
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REBUILDS));
}

void
sherman_rebuild_made(Oid index, Oid made)
{
	ShermanRebuild *rebuild = lock_to_change(index);

	if (rebuild != NULL)
	{
		rebuild->made = made;
		rebuilds_write();
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REBUILDS));
}

int
sherman_rebuild_failed(Oid index, const char *error, bool counts)
{
	ShermanRebuild *rebuild = lock_to_change(index);
	int			left = 0;

	if (rebuild != NULL)
	{
		if (rebuild->running && !counts)
			rebuild->tries--;
		left = Max(sherman_rebuild_tries - (int) rebuild->tries, 0);
		/* What it has left is dropped at once. */
		rebuild->next = counts && rebuild->running && rebuild->made != InvalidOid ? GetCurrentTimestamp() :
			pause_from_now(rebuild);
		rebuild->running = false;
		strlcpy(rebuild->error, error, pg_mbcliplen(error, strlen(error), sizeof(rebuild->error) - 1) + 1);
		rebuilds_write();
	}
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REBUILDS));
	return left;
}

void
sherman_rebuild_postpone(Oid index, int64 milliseconds)
{
	ShermanRebuild *rebuild = lock_to_change(index);

	if (rebuild != NULL)
		rebuild->next = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), milliseconds);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_REBUILDS));
}

/* ---- the view ---- */

static const char *
state_of(const ShermanRebuild *rebuild)
{
	if (rebuild->running)
		return "running";
	if (rebuild->manual)
		return "manual";
	return rebuild->tries < (uint32) sherman_rebuild_tries ? "waiting" : "given up";
}

/*
 * One row for each index that is to be rebuilt, or that was tried in vain.
 */
Datum
sherman_rebuilds(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	ShermanRebuild *list;
	int			count;

	InitMaterializedSRF(fcinfo, 0);
	if (sherman_shared == NULL)
		return (Datum) 0;
	list = sherman_rebuilds_list(&count);
	for (int i = 0; i < count; i++)
	{
		const ShermanRebuild *rebuild = &list[i];
		Datum		values[REBUILD_COLUMNS] = {0};
		bool		nulls[REBUILD_COLUMNS] = {0};
		char	   *database = get_database_name(rebuild->database);
		const char *state = state_of(rebuild);

		if (database == NULL)
			continue;
		values[0] = CStringGetTextDatum(database);
		values[1] = CStringGetTextDatum(rebuild->name);
		values[2] = ObjectIdGetDatum(rebuild->index);
		values[3] = CStringGetTextDatum(state);
		values[4] = Int32GetDatum((int32) rebuild->tries);
		values[5] = Int32GetDatum(Max(sherman_rebuild_tries - (int32) rebuild->tries, 0));
		nulls[6] = rebuild->error[0] == '\0';
		if (!nulls[6])
			values[6] = CStringGetTextDatum(rebuild->error);
		nulls[7] = strcmp(state, "waiting") != 0 || rebuild->next == 0;
		values[7] = TimestampTzGetDatum(rebuild->next);
		nulls[8] = !rebuild->running;
		values[8] = Int32GetDatum(rebuild->pid);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
