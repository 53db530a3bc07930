/*
 * recovery.c
 *		Epochs and ends: whether the memory node's memory still fits the tables, decided at each start.
 *
 * An epoch is the time between two attaches.  Before the first change of a tree in an epoch its record at the
 * memory node says so ("mutated").  At a start there are three cases, and no default (doc/crash-safety.md):
 *
 * CLEAN           the control file says that the server was shut down, at the very checkpoint that the
 * postmaster's own
 *				callback recorded when it ended.  All trees are good, if the memory node ended clean too.
 * CRASH           the same history (data directory, timeline, not set back), but the epoch has no clean end:
 * the trees that
 *				were changed in it are broken for ever, the others are good.
 * UNPROVEN                anything else: a copy, a restored backup, a promoted standby, a run without us.
 * New memory: every index is
 *				broken by derivation.
 */
#include "sherman.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/xlog.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "common/file_perm.h"
#include "miscadmin.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "shared.h"

#define LOCAL_FILE "pg_dynshmem/sherman.state"
#define LOCAL_MAGIC 0x5348534c
#define LOCAL_VERSION 1

/* Files whose presence says that this start follows other rules than those of a crash or a clean end. */
static const char *const signal_files[] = {"backup_label", "recovery.signal", "standby.signal"};

/* ---- the state file ---- */

static uint32
local_checksum(const ShermanLocal *local)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, local, offsetof(ShermanLocal, checksum));
	FIN_CRC32C(crc);
	return crc;
}

/*
 * Reads the state file; false: there is none, or it cannot be believed.
 */
static bool
local_read(ShermanLocal *local)
{
	int			file = OpenTransientFile(LOCAL_FILE, O_RDONLY | PG_BINARY);
	ssize_t		bytes;

	if (file < 0)
		return false;
	bytes = read(file, local, sizeof(*local));
	CloseTransientFile(file);
	return bytes == sizeof(*local) && local->magic == LOCAL_MAGIC && local->version == LOCAL_VERSION &&
		local->checksum == local_checksum(local) &&
		memchr(local->memory_path, '\0', sizeof(local->memory_path)) != NULL;
}

bool
sherman_local_write(ShermanLocal *local)
{
	const char *temporary = LOCAL_FILE ".new";
	int			file;
	bool		written;

	local->magic = LOCAL_MAGIC;
	local->version = LOCAL_VERSION;
	local->checksum = local_checksum(local);
	file = OpenTransientFile(temporary, O_RDWR | O_CREAT | O_TRUNC | PG_BINARY);
	if (file < 0)
	{
		ereport(WARNING, (errcode_for_file_access(), errmsg("could not create file \"%s\": %m", temporary)));
		return false;
	}
	written = write(file, local, sizeof(*local)) == sizeof(*local) && pg_fsync(file) == 0;
	if (!written)
		ereport(WARNING, (errcode_for_file_access(), errmsg("could not write file \"%s\": %m", temporary)));
	CloseTransientFile(file);
	return written && durable_rename(temporary, LOCAL_FILE, WARNING) == 0;
}

/* ---- the verdict ---- */

static bool
signal_file_exists(void)
{
	struct stat file;

	for (size_t i = 0; i < lengthof(signal_files); i++)
	{
		if (stat(signal_files[i], &file) == 0)
			return true;
	}
	return false;
}

/*
 * Whether the state file is about this very data directory, and its memory where the settings say.
 */
static bool
same_place(const ShermanLocal *local, const ControlFileData *control, const struct stat *directory)
{
	char		parent[MAXPGPATH];

	strlcpy(parent, local->memory_path, sizeof(parent));
	get_parent_directory(parent);
	return local->system_identifier == control->system_identifier &&
		local->device == (uint64) directory->st_dev && local->inode == (uint64) directory->st_ino &&
		(sherman_embedded_directory == NULL || strcmp(parent, sherman_embedded_directory) == 0);
}

static ShermanStart
judge(const ShermanLocal *local, const ControlFileData *control)
{
	if (local->epoch == 0)
		return SHERMAN_START_UNPROVEN;
	if (signal_file_exists() || control->checkPointCopy.ThisTimeLineID != local->timeline)
		return SHERMAN_START_UNPROVEN;
	if (local->closed)
	{
		return control->state == DB_SHUTDOWNED && control->checkPoint == local->closed_at ?
			SHERMAN_START_CLEAN : SHERMAN_START_UNPROVEN;
	}
	/* Set back to an earlier time (a copy of the whole directory was put in place): not what a crash does. */
	if (control->checkPoint < local->opened_at)
		return SHERMAN_START_UNPROVEN;
	switch (control->state)
	{
		case DB_SHUTDOWNED:		/* an end that nobody of us saw */
		case DB_SHUTDOWNING:
		case DB_IN_CRASH_RECOVERY:
		case DB_IN_PRODUCTION:
			return SHERMAN_START_CRASH;
		default:
			return SHERMAN_START_UNPROVEN;
	}
}

/*
 * Begins with new memory under a new name.
 */
static void
local_begin(ShermanLocal *local, const ControlFileData *control, const struct stat *directory)
{
	uint64		name[2];

	memset(local, 0, sizeof(*local));
	local->system_identifier = control->system_identifier;
	local->device = directory->st_dev;
	local->inode = directory->st_ino;
	if (!pg_strong_random(local->cluster, sizeof(local->cluster)) || !pg_strong_random(name, sizeof(name)))
		ereport(FATAL, (errmsg("could not generate random numbers for the memory node")));
	snprintf(local->memory_path, sizeof(local->memory_path), "%s/sherman.%016llx%016llx",
			 sherman_embedded_directory, (unsigned long long) name[0], (unsigned long long) name[1]);
}

/*
 * Removes the memory of a history that has ended.  Nobody maps it: core's shared memory interlock lets no
 * process of an older run of this data directory live beside this one.
 */
static void
remove_memory(const char *path)
{
	char		lock[MAXPGPATH + 8];

	if (unlink(path) == 0)
		ereport(LOG, (errmsg("removed memory \"%s\": it does not fit this data directory's history", path)));
	snprintf(lock, sizeof(lock), "%s.lock", path);
	unlink(lock);
}

/* ---- the end ---- */

/*
 * Runs in the postmaster when it ends, or in the single process, behind the shutdown checkpoint.
 */
static void
record_clean_end(int code, Datum argument)
{
	ShermanShared *shared = (ShermanShared *) DatumGetPointer(argument);
	uint32		epoch = pg_atomic_read_u32(&shared->epoch);
	ControlFileData *control;
	ShermanLocal local;
	bool		sound;

	if (code != 0 || (IsPostmasterEnvironment && MyProcPid != PostmasterPid))
		return;
	control = get_controlfile(DataDir, &sound);
	if (!sound || control->state != DB_SHUTDOWNED || !local_read(&local))
		return;
	/*
	 * Either the epoch was ours, or nothing was attached and the clean end before this run is still the last
	 * one.
	 */
	if (epoch != 0 ? epoch != local.epoch : shared->start != SHERMAN_START_CLEAN)
		return;
	local.closed = 1;
	local.closed_at = control->checkPoint;
	sherman_local_write(&local);
}

void
sherman_recovery_start(ShermanShared *shared)
{
	ShermanLocal *local = &shared->local;
	ControlFileData *control;
	struct stat directory;
	bool		sound;
	bool		found;

	control = get_controlfile(DataDir, &sound);
	if (!sound || stat(DataDir, &directory) != 0)
		ereport(FATAL, (errmsg("could not read the control file of \"%s\"", DataDir)));
	shared->start_checkpoint = control->checkPoint;
	found = local_read(local);
	if (found && same_place(local, control, &directory))
		shared->start = judge(local, control);
	else
	{
		shared->start = SHERMAN_START_UNPROVEN;
		if (found)
			ereport(LOG,
					(errmsg("sherman indexes were made in another data directory: they must be rebuilt"),
					 errdetail("Memory \"%s\" stays; remove it if nobody uses it.", local->memory_path)));
		found = false;
	}
	on_shmem_exit(record_clean_end, PointerGetDatum(shared));
	if (shared->start != SHERMAN_START_UNPROVEN || !IsPostmasterEnvironment ||
		sherman_embedded_memory_mb == 0)
		return;
	if (found && local->epoch == 0)
		return;					/* begun, and never attached: still as good as new */
	if (found)
		remove_memory(local->memory_path);
	local_begin(local, control, &directory);
	sherman_local_write(local);
}

/* ---- the attach ---- */

/*
 * Walks the records at the memory node: marks as broken what was changed since epoch `first_unclean`, and
 * fills the table of trees.
 */
static TreeStatus
take_stock(TreeClient *client, uint32 first_unclean)
{
	uint32		position = 0;
	uint32		broken = 0;
	TreeRecord	record;
	TreeStatus	status;

	sherman_trees_clear();
	while ((status = tree_record_list(client, 0, &position, &record)) == TREE_OK)
	{
		ShermanTreeEntry entry = {.tree = record.tree, .database = record.database, .suspect = true};

		if (record.mutated_epoch >= first_unclean && (record.flags & TREE_RECORD_BROKEN) == 0)
		{
			record.flags |= TREE_RECORD_BROKEN;
			status = tree_record_update(client, &record);
			if (status != TREE_OK)
				return status;
			broken++;
		}
		entry.flags = record.flags;
		entry.mutated_epoch = record.mutated_epoch;
		if (!sherman_trees_put(&entry))
			return TREE_NO_MEMORY;
	}
	if (broken > 0)
		ereport(LOG,
				(errmsg("%u sherman indexes were changed before an unclean end and must be rebuilt", broken),
				 errhint("The view \"sherman_indexes\" of each database shows them; use REINDEX.")));
	return status == TREE_END ? TREE_OK : status;
}

/*
 * First epoch whose trees are not proven good.  PG_UINT32_MAX: all are.
 */
static uint32
first_unclean_epoch(const ShermanShared *shared, const TreeNodeStatus *node, bool again, bool memory_clean)
{
	const ShermanLocal *local = &shared->local;

	/*
	 * Memory that we have not seen before, that saw others since, or that is an older copy of what we know:
	 * there is no tree of ours, or none to believe.
	 */
	if (node->uuid[0] != local->memory[0] || node->uuid[1] != local->memory[1] ||
		node->epoch > local->epoch || (local->opened && node->epoch != local->epoch))
		return 0;
	if (again)
		return memory_clean ? PG_UINT32_MAX : local->epoch;
	switch (shared->start)
	{
		case SHERMAN_START_CLEAN:
			return memory_clean && node->epoch == local->epoch && node->epoch_clean ?
				PG_UINT32_MAX : local->epoch;
		case SHERMAN_START_CRASH:
			return local->epoch;
		case SHERMAN_START_UNPROVEN:
			break;
	}
	return 0;
}

/*
 * Opens the next epoch: in the state file, at the memory node, and then as acknowledged in the state file
 * again.
 */
static bool
open_epoch(TreeClient *client, const TreeNodeStatus *node, ShermanLocal *local, char *detail,
		   Size detail_bytes)
{
	bool		sound;
	ControlFileData *control = get_controlfile(DataDir, &sound);
	TreeStatus	status;

	local->epoch = Max(local->epoch, (uint32) node->epoch) + 1;
	local->opened = 0;
	local->closed = 0;
	local->closed_at = InvalidXLogRecPtr;
	local->opened_at = sound ? control->checkPoint : sherman_shared->start_checkpoint;
	local->timeline = GetWALInsertionTimeLine();
	local->memory[0] = node->uuid[0];
	local->memory[1] = node->uuid[1];
	if (pg_strong_random(&local->nonce, sizeof(local->nonce)) && sherman_local_write(local))
	{
		status = tree_epoch_open(client, 0, local->epoch);
		if (status != TREE_OK)
		{
			snprintf(detail, detail_bytes, "%s: %s", tree_status_name(status), tree_detail(client));
			return false;
		}
		local->opened = 1;
		if (sherman_local_write(local))
			return true;
	}
	snprintf(detail, detail_bytes, "the state file \"%s\" cannot be written", LOCAL_FILE);
	return false;
}

static const char *
verdict_text(const ShermanShared *shared, bool again)
{
	if (again)
		return "in this run";
	switch (shared->start)
	{
		case SHERMAN_START_CLEAN:
			return "clean";
		case SHERMAN_START_CRASH:
			return "ended unclean";
		case SHERMAN_START_UNPROVEN:
			break;
	}
	return "unknown";
}

bool
sherman_recovery_attach(TreeClient *client, bool again, bool memory_clean, char *detail, Size detail_bytes)
{
	ShermanShared *shared = sherman_shared;
	ShermanLocal local = shared->local;
	TreeNodeStatus node;
	TreeStatus	status;
	uint32		first_unclean = 0;

	status = tree_node_status(client, 0, &node);
	if (status == TREE_OK)
	{
		first_unclean = first_unclean_epoch(shared, &node, again, memory_clean);
		ereport(LOG,
				(errmsg("attaching to memory node \"%s\"", local.memory_path),
				 errdetail("Last epoch %u, %s; the memory %s.", local.epoch, verdict_text(shared, again),
						   first_unclean == 0 ? "is not one that we know" :
						   memory_clean ? "was closed clean" : "was recovered")));
		/* Broken first, for the next epoch hides that the last one was unclean. */
		status = take_stock(client, first_unclean);
	}
	if (status != TREE_OK)
	{
		snprintf(detail, detail_bytes, "%s: %s", tree_status_name(status), tree_detail(client));
		return false;
	}
	if (!open_epoch(client, &node, &local, detail, detail_bytes))
		return false;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	shared->local = local;
	shared->memory[0] = node.uuid[0];
	shared->memory[1] = node.uuid[1];
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	pg_atomic_write_u32(&shared->epoch, local.epoch);
	return true;
}
