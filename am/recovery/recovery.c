/*
 * recovery.c
 *		Epochs and ends: whether the memory nodes' memory still fits the tables, decided at each start.
 *
 * An epoch is a run of the server that used memory nodes.  Before the first change of a tree in an epoch its
 * record says so ("mutated").  At a start there are three cases, and no default (doc/internals/crash-safety.md):
 *
 *		CLEAN: the control file says that the server was shut down, at the very checkpoint that the
 *		postmaster's own callback recorded when it ended; or has crashed since, in runs of ours that used no
 *		memory node.  All trees are good.
 *
 *		CRASH: the same history (timeline, not set back), but the epoch has no clean end: the
 *		trees that were changed in it are broken for ever, the others are good.
 *
 *		UNPROVEN: anything else: a copy, a restored backup, a promoted standby, a run without us.  All trees
 *		are broken; the embedded node begins with new memory.
 *
 * What follows for a memory node is kept in the state file until it is attached: it may be away for several
 * runs.  Each memory node counts epochs of its own, one for each attach: by them it is seen that its memory
 * is the one that we knew last, and not an older copy.
 */
#include "am/base/sherman.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/timeline.h"
#include "access/transam.h"
#include "access/xlog.h"
#include "catalog/pg_control.h"
#include "common/controldata_utils.h"
#include "common/file_perm.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/timestamp.h"

#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"
#include "am/recovery/recovery.h"

/* Files whose presence says that this start follows other rules than those of a crash or a clean end. */
static const char *const signal_files[] = {"backup_label", "recovery.signal", "standby.signal"};

/*
 * A memory node's epochs bear the timeline in which they were opened, from this bit on; of timelines beyond the last one that there is room for,
 * and of epochs that an older version has opened, nothing is known.
 */
#define EPOCH_TIMELINE_SHIFT 48
#define EPOCH_TIMELINE_MAX UINT64CONST(0xFFFF)

/* How long an attach waits for a standby to be told of it, and between two looks. */
#define FOLLOW_MS 1000
#define FOLLOW_LOOK_MS 1

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
 * Whether a server that was no standby has crashed.
 */
static bool
ended_in_production(const ControlFileData *control)
{
	return control->state == DB_IN_PRODUCTION || control->state == DB_IN_CRASH_RECOVERY ||
		control->state == DB_SHUTDOWNING;
}

/*
 * Whether the server goes on in the timeline of the epoch: its last checkpoint is of that, or it is still the
 * one which the epoch, behind a promotion, has begun with.
 */
static bool
same_timeline(const ShermanLocal *local, const ControlFileData *control)
{
	return control->checkPointCopy.ThisTimeLineID == local->timeline ||
		(!local->closed && control->checkPoint == local->opened_at && ended_in_production(control));
}

static ShermanStart
judge(const ShermanLocal *local, const ControlFileData *control)
{
	if (local->epoch == 0)
		return SHERMAN_START_UNPROVEN;
	if (signal_file_exists() || !same_timeline(local, control))
		return SHERMAN_START_UNPROVEN;
	if (local->closed)
	{
		if (control->state == DB_SHUTDOWNED)
			return control->checkPoint == local->closed_at ? SHERMAN_START_CLEAN : SHERMAN_START_UNPROVEN;
		/* Runs of ours that used no memory node, and ended somehow: what the epoch wrote is there. */
		return ended_in_production(control) && sherman_checkpoint_is_ours(local, control) ?
			SHERMAN_START_CLEAN : SHERMAN_START_UNPROVEN;
	}
	/* Set back to an earlier time (a copy of the whole directory was put in place): not what a crash does. */
	if (control->checkPoint < local->opened_at)
		return SHERMAN_START_UNPROVEN;
	/* Shut down: an end that nobody of us saw. */
	return control->state == DB_SHUTDOWNED || ended_in_production(control) ? SHERMAN_START_CRASH : SHERMAN_START_UNPROVEN;
}

static void
random_word(uint64 *word)
{
	if (!pg_strong_random(word, sizeof(*word)))
		ereport(FATAL, (errmsg("could not generate random numbers for the memory nodes")));
}

/*
 * Begins the state of a data directory that has none: nothing in any memory node's memory is its own.
 */
static void
local_begin(ShermanLocal *local, uint64 system_identifier)
{
	memset(local, 0, sizeof(*local));
	local->system_identifier = system_identifier;
	sherman_place_note(local);
	random_word(&local->cluster[0]);
	random_word(&local->cluster[1]);
}

/*
 * Nothing that was done up to now is proven: external memory nodes are kept, but no tree in them is used.
 */
static void
local_forget_proofs(ShermanLocal *local)
{
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (local->node[i].member != 0)
			random_word(&local->node[i].member);
	}
	/*
	 * No process maps the embedded node's memory: core's shared memory interlock lets no process of an older run of
	 * this data directory live beside this one. What cannot be set aside keeps its name, and there will be another
	 * one.
	 */
	if (local->memory_path[0] != '\0' && !sherman_keep_memory(local->memory_path, "unproven"))
		local->memory_path[0] = '\0';
}

/*
 * Gives the embedded node's memory a name, where it has none or was elsewhere.
 */
static bool
local_name_memory(ShermanLocal *local)
{
	char		parent[MAXPGPATH];
	uint64		name[2];

	strlcpy(parent, local->memory_path, sizeof(parent));
	get_parent_directory(parent);
	if (local->memory_path[0] != '\0' && strcmp(parent, sherman_embedded_directory) == 0)
		return false;
	if (local->memory_path[0] != '\0')
		ereport(LOG,
				(errmsg("the embedded memory node begins in \"%s\"", sherman_embedded_directory),
				 errdetail("Memory \"%s\" stays; remove it if nobody uses it.", local->memory_path)));
	random_word(&name[0]);
	random_word(&name[1]);
	snprintf(local->memory_path, sizeof(local->memory_path), "%s/sherman.%016llx%016llx",
			 sherman_embedded_directory, (unsigned long long) name[0], (unsigned long long) name[1]);
	return true;
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
	if (!sound || control->state != DB_SHUTDOWNED || !sherman_local_read(SHERMAN_LOCAL_FILE, &local) || local.epoch == 0)
		return;
	/*
	 * Either the epoch was ours, or nothing was attached and the clean end before this run is still the last
	 * one.
	 */
	if (epoch != 0 ? epoch == local.epoch && !shared->unclean : shared->start == SHERMAN_START_CLEAN)
	{
		local.closed = 1;
		local.closed_at = control->checkPoint;
	}
	/* Nobody but us ran up to here. */
	if (shared->end_awaited == SHERMAN_AWAITED_NOTHING)
		local.checkpoint = control->checkPoint;
	sherman_local_write(&local);
}

/*
 * Whether the state file is this directory's own.  One that was moved stays itself; *changed then.
 */
static bool
local_is_ours(ShermanLocal *local, uint64 system_identifier, bool *changed)
{
	ShermanPlace place;

	if (local->system_identifier != system_identifier)
		return false;
	place = sherman_place_find(local);
	if (place == SHERMAN_PLACE_SAME)
		return true;
	/* The original may live elsewhere, and has attached to nothing since: its memory nodes could not tell them apart. */
	if (signal_file_exists())
	{
		ereport(LOG,
				(errmsg("the state of sherman indexes came with a copy of \"%s\", and is not used", local->directory),
				 errdetail("This server is a standby, or restored from a backup.")));
		return false;
	}
	if (place == SHERMAN_PLACE_REPLICA)
	{
		ereport(WARNING,
				(errmsg("this data directory is a copy of \"%s\": its sherman indexes are broken", local->directory),
				 errdetail("Their memory is the original's."),
				 errhint("Rebuild them with REINDEX.  A directory that is to take the place of another one is started when "
						 "that has been removed or renamed.")));
		return false;
	}
	ereport(LOG,
			(errmsg("the data directory was moved from \"%s\"", local->directory),
			 errdetail("Sherman indexes stay what they are, if their memory was not used since by a copy of it.")));
	sherman_place_note(local);
	local->moved = 1;
	*changed = true;
	return true;
}

void
sherman_recovery_start(ShermanShared *shared)
{
	ShermanLocal *local = &shared->local;
	ControlFileData *control;
	bool		sound;
	bool		found;
	bool		changed = false;

	control = get_controlfile(DataDir, &sound);
	if (!sound)
		ereport(FATAL, (errmsg("could not read the control file of \"%s\"", DataDir)));
	shared->start_checkpoint = control->checkPoint;
	found = sherman_local_read(SHERMAN_LOCAL_FILE, local);
	found = found && local_is_ours(local, control->system_identifier, &changed);
	shared->start = found ? judge(local, control) : SHERMAN_START_UNPROVEN;
	shared->promoted = control->state == DB_IN_ARCHIVE_RECOVERY || control->state == DB_SHUTDOWNED_IN_RECOVERY || sherman_is_standby();
	on_shmem_exit(record_clean_end, PointerGetDatum(shared));
	if (IsBinaryUpgrade)
		return;
	if (found)
		changed |= sherman_wal_end_start(shared, control);
	if (IsPostmasterEnvironment)
	{
		/* Begun, and never attached: still as good as new. */
		bool		unproven = shared->start == SHERMAN_START_UNPROVEN && (!found || local->epoch != 0);

		if (!found)
		{
			shared->node_held = !sherman_keep_file(SHERMAN_LOCAL_FILE, "not-ours");
			local_begin(local, control->system_identifier);
		}
		else if (unproven)
			local_forget_proofs(local);
		sherman_local_hold(shared->node_held);
		changed |= unproven || local->foreign_snapshot != 0;
		if (unproven || local->foreign_snapshot != 0)
			local->foreign_snapshot = !sherman_keep_file(SHERMAN_SNAPSHOT, "unproven");
		shared->node_held |= local->foreign_snapshot != 0;
		if (sherman_embedded)
			changed |= local_name_memory(local);
		sherman_take_over_start(local);
	}
	if (changed)
		(void) sherman_local_write(local);
}

/* ---- the attach ---- */

static bool
local_change(ShermanLocal *local, char *failure)
{
	if (sherman_local_change(local))
		return true;
	snprintf(failure, SHERMAN_FAILURE_BYTES, "the state file \"%s\" cannot be written", SHERMAN_LOCAL_FILE);
	return false;
}

/*
 * The same, and in the WAL.
 */
static bool
history_change(ShermanLocal *local, char *failure)
{
	if (!local_change(local, failure))
		return false;
	if (sherman_history_write(local))
		return true;
	strlcpy(failure, "the page of history cannot be written", SHERMAN_FAILURE_BYTES);
	return false;
}

/*
 * Whether whoever is promoted in place of this server knows by the page of the epoch that is about to be opened.  Of an attach behind a
 * promotion it must; of any other one a standby that is there gets the time that it takes.
 */
static bool
page_is_followed(char *failure)
{
	XLogRecPtr	end = GetFlushRecPtr(NULL);
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), FOLLOW_MS);
	ShermanFollowed followed;

	if (sherman_shared->embedded)
		return true;
	while ((followed = sherman_standbys_follow(end)) == SHERMAN_LAGS && GetCurrentTimestamp() < deadline)
		pg_usleep(FOLLOW_LOOK_MS * 1000L);
	if (followed == SHERMAN_FOLLOWED || !sherman_recovery_takes_from_other())
		return true;
	strlcpy(failure, "no synchronous standby has been told of it", SHERMAN_FAILURE_BYTES);
	return false;
}

bool
sherman_recovery_begin(char *failure)
{
	ShermanShared *shared = sherman_shared;
	ShermanLocal local = shared->local;
	bool		sound;
	ControlFileData *control;

	if (pg_atomic_read_u32(&shared->epoch) != 0)
		return true;
	if (shared->end_awaited != SHERMAN_AWAITED_NOTHING)
	{
		strlcpy(failure, "it is not known yet where the WAL of the last run ends", SHERMAN_FAILURE_BYTES);
		return false;
	}
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if (shared->start == SHERMAN_START_CRASH && local.node[i].unclean_from == 0)
			local.node[i].unclean_from = local.epoch;
	}
	control = get_controlfile(DataDir, &sound);
	sherman_epoch_begin(&local);
	local.opened_at = sound ? control->checkPoint : shared->start_checkpoint;
	local.checkpoint = local.opened_at;
	local.timeline = GetWALInsertionTimeLine();
	if (!pg_strong_random(&local.nonce, sizeof(local.nonce)))
	{
		strlcpy(failure, "there are no random numbers", SHERMAN_FAILURE_BYTES);
		return false;
	}
	if (!local_change(&local, failure))
		return false;
	sherman_epoch_limits(&local, &shared->ends);
	shared->began_at = U64FromFullTransactionId(ReadNextFullTransactionId()) - 1;
	if (!TransactionIdIsNormal((TransactionId) shared->began_at))
		shared->began_at -= FirstNormalTransactionId;
	pg_write_barrier();
	pg_atomic_write_u32(&shared->epoch, local.epoch);
	return true;
}

bool
sherman_recovery_become_copy(char *failure)
{
	ShermanLocal local;
	bool		moved = sherman_shared->local.moved != 0;

	strlcpy(failure, moved ? "it was used since by the server that this one is a copy of" :
			"it was used since by a server with another history, which has taken the indexes over", SHERMAN_FAILURE_BYTES);
	/* What is attached is known by that identity: the next start goes on here. */
	if (sherman_shared->introduced)
		return false;
	ereport(WARNING,
			(moved ? errmsg("this data directory is a copy: its sherman indexes are broken") :
			 errmsg("another server has taken over the sherman indexes of this one: here they are broken"),
			 moved ? errdetail("Their memory was used by the original since the copy was made.") :
			 errdetail("Their memory was used since by a server that was promoted as well, or instead."),
			 errhint("Rebuild them with REINDEX.")));
	local_begin(&local, sherman_shared->local.system_identifier);
	if (!local_change(&local, failure))
		return false;
	/* A run that was begun before it was known has attached nothing. */
	pg_atomic_write_u32(&sherman_shared->epoch, 0);
	sherman_shared->start = SHERMAN_START_UNPROVEN;
	sherman_shared->end_awaited = SHERMAN_AWAITED_NOTHING;
	sherman_pool_adopt();
	sherman_take_over_decided();
	return false;
}

bool
sherman_recovery_takes_from_other(void)
{
	uint64		timeline = Min(GetWALInsertionTimeLine(), EPOCH_TIMELINE_MAX);
	bool		takes = false;

	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		const ShermanLocalNode *node = &sherman_shared->local.node[i];
		uint64		opened = node->epoch >> EPOCH_TIMELINE_SHIFT;

		if (node->member == 0)
			continue;
		/* What was attached in this timeline was so behind the wait. */
		if (opened == timeline)
			return false;
		/* An older version's epochs do not tell. */
		takes |= opened != 0;
	}
	return takes;
}

/*
 * The number of a memory node's next epoch behind `last`. The step is drawn: two servers that go on from copies of
 * one memory do not open epochs of the same number, so that neither uses the other's memory. The upper bits are the timeline.
 */
static bool
next_epoch(uint64 last, uint64 *next)
{
	uint64		timeline = Min(sherman_shared->local.timeline, EPOCH_TIMELINE_MAX);
	uint32		step;

	if (!pg_strong_random(&step, sizeof(step)))
		return false;
	*next = Max(last, timeline << EPOCH_TIMELINE_SHIFT) + 1 + step;
	return true;
}

/*
 * Whether WAL of a timeline is a part of a history.  Its name may be there without any: a standby that has found the file of another one's
 * promotion, and was promoted before it got anything that was written behind it, names that timeline as its parent.
 */
static bool
went_through(List *timelines, TimeLineID timeline)
{
	ListCell   *cell;

	foreach(cell, timelines)
	{
		TimeLineHistoryEntry *entry = lfirst(cell);

		if (entry->tli == timeline)
			return XLogRecPtrIsInvalid(entry->end) || entry->begin < entry->end;
	}
	return false;
}

/*
 * Whether a memory node's epoch was opened in a timeline that this server's history has no part of, and so by a server that was promoted
 * beside this one, or in its place.  One that was opened in the timeline of the last epoch that is known here may be of this server, or of
 * the one that it was a standby of.
 */
static bool
is_of_other_history(uint64 epoch, uint64 known)
{
	TimeLineID	opened = (TimeLineID) (epoch >> EPOCH_TIMELINE_SHIFT);
	TimeLineID	timeline = GetWALInsertionTimeLine();
	List	   *timelines;
	bool		other;

	if (opened == 0 || opened == EPOCH_TIMELINE_MAX || opened == known >> EPOCH_TIMELINE_SHIFT)
		return false;
	/* Two servers may have been promoted to a timeline of one number; this one has not been there in its own. */
	if (opened == timeline)
		return true;
	timelines = readTimeLineHistory(timeline);
	/* Without its file a later timeline seems to have no other before it. */
	other = (timeline == 1 || list_length(timelines) > 1) && !went_through(timelines, opened);
	list_free_deep(timelines);
	return other;
}

bool
sherman_recovery_check(int position, const TreeNodeStatus *status, uint64 *member, char *failure)
{
	const ShermanLocalNode *local = &sherman_shared->local.node[position];
	bool		known = memcmp(local->memory, status->uuid, sizeof(local->memory)) == 0;
	bool		seen = pg_atomic_read_u64(&sherman_shared->node[position].serial) != sherman_shared->node[position].read_serial;

	/* No session was admitted in the epoch that was being opened. */
	if (known && (status->epoch == local->epoch || (local->opening != 0 && status->epoch == local->opening)))
	{
		*member = local->member;
		return true;
	}
	if (known && sherman_shared->local.moved && !sherman_shared->embedded)
		return sherman_recovery_become_copy(failure);
	if (known && seen && status->epoch > local->epoch)
	{
		strlcpy(failure, "another server with this one's identity, a copy perhaps, has attached to it",
				SHERMAN_FAILURE_BYTES);
		return false;
	}
	if (known && status->epoch > local->epoch && !sherman_shared->embedded && is_of_other_history(status->epoch, local->epoch))
		return sherman_recovery_become_copy(failure);
	/*
	 * New to us; or an older copy of memory that we know, or memory that others have changed since, or that was given
	 * up: our data in it cannot be distinguished from older ones.
	 */
	*member = status->uuid[0];
	if ((known || status->epoch != 0) && !pg_strong_random(member, sizeof(*member)))
	{
		strlcpy(failure, "there are no random numbers", SHERMAN_FAILURE_BYTES);
		return false;
	}
	return true;
}

/*
 * Whether a tree lies on memory that is not at its position any more, or is not valid any more.
 */
static bool
member_was_given_up(const TreeRecord *record)
{
	uint32_t	copy;
	bool		copied = tree_record_replica(record, &copy);

	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		/* One of two that are equal may go; where the copy is, its record does not say. */
		if (copied && ((record->tree & SHERMAN_TREE_REPLICA) != 0 || i == (int) copy))
			continue;
		if (record->members[i] != 0 && record->members[i] != sherman_shared->node[i].member)
			return true;
	}
	return false;
}

/*
 * Whether what a tree has lost, no row has: each removal followed from WAL that is there.  Then its leaves tell by
 * their WAL positions which entries may be too many.
 */
static bool
can_be_healed(const TreeRecord *record)
{
	return sherman_heal && tree_wal_position_is_proven(&sherman_shared->ends, record->removal_epoch, record->removal_lsn);
}

/*
 * Notes in a tree's record what is to become of it; false: nothing new.
 */
static bool
judge_record(TreeRecord *record, uint32 unclean_from)
{
	bool		unclean = unclean_from != 0 && record->mutated_epoch >= unclean_from;

	if ((record->flags & TREE_RECORD_BROKEN) != 0)
		return false;
	if (member_was_given_up(record) || (unclean && !can_be_healed(record)))
	{
		record->flags |= TREE_RECORD_BROKEN;
		return true;
	}
	if (!unclean || record->unverified_epoch != 0)
		return false;
	record->unverified_epoch = unclean_from;
	return true;
}

/* What was found at a memory node. */
typedef struct NodeInventory
{
	TreeClient *client;
	int			position;
	uint32		unclean_from;	/* trees changed in this epoch or later are not proven good; 0: all are */
	uint32		broken;
	uint32		unverified;
} NodeInventory;

/*
 * Judges one record, and brings the table of trees up to date.
 */
static TreeStatus
inventory_add_record(NodeInventory *inventory, TreeRecord *record)
{
	if (judge_record(record, inventory->unclean_from))
	{
		TreeRecord	change = *record;
		TreeStatus	status;

		change.tree &= ~SHERMAN_TREE_REPLICA;
		status = tree_record_update_at(inventory->client, (uint32) inventory->position, &change);
		if (status != TREE_OK)
			return status;
		inventory->broken += (record->flags & TREE_RECORD_BROKEN) != 0;
		inventory->unverified += (record->flags & TREE_RECORD_BROKEN) == 0;
	}
	return sherman_trees_note(record) ? TREE_OK : TREE_NO_MEMORY;
}

/*
 * The trees whose home is here.
 */
static TreeStatus
inventory_add_trees(NodeInventory *inventory)
{
	uint32		place = 0;
	TreeRecord	record;
	TreeStatus	status;

	while ((status = tree_record_list(inventory->client, inventory->position, &place, &record)) == TREE_OK)
	{
		status = inventory_add_record(inventory, &record);
		if (status != TREE_OK)
			return status;
	}
	return status == TREE_END ? TREE_OK : status;
}

/*
 * The copies that are here, of trees whose home is elsewhere.
 */
static TreeStatus
inventory_add_replicas(NodeInventory *inventory)
{
	uint32		place = 0;
	uint32_t	copy;
	TreeRecord	record;
	TreeStatus	status;

	while ((status = tree_share_list(inventory->client, inventory->position, &place, &record)) == TREE_OK)
	{
		if (!tree_record_replica(&record, &copy))
			continue;
		record.tree |= SHERMAN_TREE_REPLICA;
		status = inventory_add_record(inventory, &record);
		if (status != TREE_OK)
			return status;
	}
	return status == TREE_END ? TREE_OK : status;
}

/*
 * Walks the records at a memory node: marks as broken what was changed in epoch `unclean_from` or later (0:
 * none) and cannot be healed, or lies on memory that was given up, and brings the table of trees up to date.
 */
static TreeStatus
take_inventory(TreeClient *client, int position, uint32 unclean_from)
{
	NodeInventory		inventory = {.client = client,.position = position,.unclean_from = unclean_from};
	TreeStatus	status = inventory_add_trees(&inventory);

	if (status == TREE_OK)
		status = inventory_add_replicas(&inventory);
	if (status != TREE_OK)
		return status;
	if (inventory.broken > 0)
		ereport(LOG,
				(errmsg("%u sherman indexes must be rebuilt: they were changed before an unclean end, or a part "
						"of their memory was lost", inventory.broken),
				 errhint("The view \"sherman_stat_indexes\" of each database shows them; use REINDEX.")));
	if (inventory.unverified > 0)
		ereport(LOG,
				(errmsg("%u sherman indexes are healed while they are used: the server ended unclean after they "
						"were changed", inventory.unverified)));
	return TREE_OK;
}

TreeStatus
sherman_recovery_review(TreeClient *client, int position)
{
	return take_inventory(client, position, 0);
}

bool
sherman_recovery_attach(TreeClient *client, int position, const TreeNodeStatus *status, char *failure)
{
	ShermanShared *shared = sherman_shared;
	ShermanLocal local = shared->local;
	ShermanLocalNode *node = &local.node[position];
	const ShermanNode *known = &shared->node[position];
	bool		same = node->member == known->member;
	uint64		last = status->epoch;
	TreeStatus	called;

	ereport(LOG,
			(errmsg("attaching to memory node %d at \"%s\"", position, known->address),
			 errdetail("%s", !same ? "It is new, or its data of this server are not valid any more." :
					   node->unclean_from != 0 ? "The server ended unclean since it was attached." :
					   "What it holds is good.")));
	/*
	 * No number is used twice for this memory, even if what we find is older than what we know: there may be
	 * copies of it, and copies of this server that use them.
	 */
	if (memcmp(node->memory, known->memory, sizeof(node->memory)) == 0)
		last = Max(last, Max(node->epoch, node->opening));
	if (!same)
		memset(node, 0, sizeof(*node));
	memcpy(node->memory, known->memory, sizeof(node->memory));
	node->member = known->member;
	strlcpy(node->address, known->address, sizeof(node->address));
	/* The table must not show trees of memory that was here before. */
	sherman_trees_clear(position);
	/* Broken first, for the next epoch hides that the last one was unclean. */
	if (!next_epoch(last, &node->opening))
	{
		strlcpy(failure, "there are no random numbers", SHERMAN_FAILURE_BYTES);
		return false;
	}
	/* It is the memory that this server knew last: wherever the directory is, it is no copy. */
	if (same)
		local.moved = 0;
	if (!history_change(&local, failure) || !page_is_followed(failure))
		return false;
	called = take_inventory(client, position, node->unclean_from);
	if (called == TREE_OK)
		called = tree_epoch_open(client, position, node->opening);
	if (called != TREE_OK)
	{
		snprintf(failure, SHERMAN_FAILURE_BYTES, "%s: %s", tree_status_name(called), tree_detail(client));
		return false;
	}
	node->epoch = node->opening;
	node->opening = 0;
	node->unclean_from = 0;
	return history_change(&local, failure);
}
