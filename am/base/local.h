/*
 * local.h
 *		What a server knows of its own past: the local state file, the page of history, epochs and where their
 *		WAL ends; and who finds that out at a start.  Part of shared.h.
 */
#ifndef SHERMAN_LOCAL_H
#define SHERMAN_LOCAL_H

#include "am/base/sherman.h"

#include "datatype/timestamp.h"

struct ControlFileData;
struct ShermanShared;

/* What is to tell where the WAL of the run before this one ends. */
typedef enum ShermanAwaited
{
	SHERMAN_AWAITED_NOTHING,	/* it is known */
	SHERMAN_AWAITED_RECOVERY,	/* recovery; if it does not, it had nothing to do */
	SHERMAN_AWAITED_WAL			/* the WAL itself */
} ShermanAwaited;

/* What is known about the end of the run before this one. */
typedef enum ShermanStart
{
	SHERMAN_START_UNPROVEN,		/* nothing: the memory belongs to no history that we know */
	SHERMAN_START_CRASH,		/* our history; its last epoch ended unclean */
	SHERMAN_START_CLEAN			/* our history; its last epoch ended clean */
} ShermanStart;

/* Bytes of a memory node's address: "tcp:", a host's name, a port; or a path as long as a socket's may be. */
#define SHERMAN_ADDRESS_BYTES 272

/*
 * What outlives a run about the memory node at one position.  A position is the node's number in pointers: it
 * stays with the memory, wherever that is served.
 */
typedef struct ShermanLocalNode
{
	uint64		memory[2];		/* identity of its memory, 0 = the position is free */
	uint64		member;			/* what trees call it: those that say otherwise are not believed */
	uint64		epoch;			/* last epoch of ours that it acknowledged; it counts for itself, 0 = none */
	uint64		opening;		/* the one that it may have opened since, 0 = none */
	uint32		unclean_from;	/* trees changed in this epoch of the instance, or later, are not
								 * proven good; 0 = all are */
	uint32		reserved;
	char		address[SHERMAN_ADDRESS_BYTES]; /* where it was last */
} ShermanLocalNode;

/* How the end of an epoch's WAL is known. */
typedef enum ShermanKnownBy
{
	SHERMAN_KNOWN_NOT,			/* it has not ended */
	SHERMAN_KNOWN_SHUTDOWN,		/* the shutdown checkpoint of a clean end that we saw */
	SHERMAN_KNOWN_RECOVERY,		/* recovery told where it ended */
	SHERMAN_KNOWN_CHECKPOINT,	/* recovery had nothing to do behind this checkpoint */
	SHERMAN_KNOWN_WAL,			/* somebody else may have run this server: the WAL shows the first start behind */
	SHERMAN_KNOWN_CUT,			/* it was another server's, and what we have of its WAL ends there */
	SHERMAN_KNOWN_NOTHING		/* nothing of it is proven */
} ShermanKnownBy;

/* An epoch, for as long as nodes may bear stamps of it. */
typedef struct ShermanEpoch
{
	uint32		epoch;
	uint32		known_by;		/* ShermanKnownBy */
	TimestampTz began;
	XLogRecPtr	end;			/* what was written beyond has no WAL: the smallest that any start since it began
								 * found */
} ShermanEpoch;

/*
 * Epochs that are kept. Stamps of older ones are judged by the oldest, which those before it are merged into.
 */
#define SHERMAN_EPOCHS_KEPT TREE_ENDS_MAX

/* Whether the indexes of the server that this one is a copy of are wanted (takeover.c). */
typedef enum ShermanTakeOver
{
	SHERMAN_TAKE_OVER_NOT,
	SHERMAN_TAKE_OVER_WANTED,	/* when recovery ends */
	SHERMAN_TAKE_OVER_CUT		/* recovery has ended: the launcher decides, before anything else */
} ShermanTakeOver;

/* The local state file: neither backups nor pg_rewind copy it. */
#define SHERMAN_LOCAL_FILE "pg_dynshmem/sherman.state"

typedef struct ShermanLocal
{
	uint32		magic;
	uint32		version;
	uint64		system_identifier;
	uint64		inode;			/* these three are of the data directory's place, and only hints (place.c) */
	uint64		born;			/* nanoseconds since 1970; 0 = the file system does not tell */
	char		directory[MAXPGPATH];
	uint64		cluster[2];		/* this instance's identity at memory nodes */
	uint64		nonce;			/* of the epoch */
	XLogRecPtr	opened_at;		/* the control file's checkpoint when the epoch began */
	XLogRecPtr	closed_at;		/* its shutdown checkpoint, if the epoch ended clean */
	TimeLineID	timeline;		/* of the epoch */
	uint32		epoch;			/* last epoch begun, 0 = none yet */
	uint32		closed;			/* it ended clean, at closed_at */
	uint32		known_by;		/* ShermanKnownBy: how `end` is known */
	TimestampTz began;			/* the epoch */
	XLogRecPtr	end;			/* of the epoch's WAL, the smallest that a start since it began has found */
	XLogRecPtr	checkpoint;		/* the control file's, as a process of ours last saw it */
	XLogRecPtr	redo;			/* where redo begins of the newest checkpoint that a process of ours saw begin */
	uint32		past_count;
	uint32		take_over;		/* ShermanTakeOver */
	uint32		moved;			/* 1 = the directory is at another place than before, and no memory node has shown yet
								 * that it is no copy */
	uint32		foreign_snapshot;	/* 1 = a snapshot of another history is in its place, and could not be set aside yet */
	XLogRecPtr	cut;			/* if that is CUT: where the owner's WAL ends here; invalid = it is not known */
	ShermanEpoch past[SHERMAN_EPOCHS_KEPT];	/* before the last one, ascending */
	ShermanLocalNode node[TREE_MAX_NODES];
	char		memory_path[MAXPGPATH]; /* of the embedded node, "" = it never ran */
	uint32		checksum;		/* CRC-32C of the above */
} ShermanLocal;

/* What of it follows the WAL: the page of history (history.c). */
typedef struct ShermanHistoryNode
{
	uint64		memory[2];		/* these are as in ShermanLocalNode */
	uint64		member;
	uint64		epoch;
	uint64		opening;
	uint32		unclean_from;
	uint32		reserved;
} ShermanHistoryNode;

typedef struct ShermanHistory
{
	uint32		magic;
	uint32		version;
	uint64		system_identifier;
	uint64		cluster[2];
	uint64		nonce;
	TimestampTz began;
	uint32		epoch;
	uint32		past_count;
	ShermanEpoch past[SHERMAN_EPOCHS_KEPT];
	ShermanHistoryNode node[TREE_MAX_NODES];
	uint32		checksum;
} ShermanHistory;

/* ---- files.c ---- */

/* CRC-32C. */
extern uint32 sherman_checksum(const void *data, Size bytes);
/* Reads the first `bytes` of a file; false: it has not so many, or cannot be read. */
extern bool sherman_file_read(const char *path, void *data, Size bytes);
/* Replaces a file, durably; false, with a WARNING, if that failed: then it is as it was. */
extern bool sherman_file_write(const char *path, const void *data, Size bytes);

/* ---- place.c: whether the state file is this data directory's ---- */

typedef enum ShermanPlace
{
	SHERMAN_PLACE_SAME,
	SHERMAN_PLACE_MOVED,		/* another place, and what was there before is gone */
	SHERMAN_PLACE_COPY			/* another place, and the original is at its own still */
} ShermanPlace;

/* Finds out where the state file was written last: here, or elsewhere. */
extern ShermanPlace sherman_place_find(const ShermanLocal *local);
/* Notes that this is the place. */
extern void sherman_place_note(ShermanLocal *local);

/* ---- kept.c: files that are set aside ---- */

/*
 * Sets the embedded node's memory aside, if something is in it; `why` is lower-case letters and hyphens.  False, with a WARNING, if
 * it stays where it is.
 */
extern bool sherman_keep_memory(const char *path, const char *why);
/* The same of a file that must not stay, if it is there. */
extern bool sherman_keep_file(const char *path, const char *why);

/* ---- recovery.c ---- */

/* In the startup hook: reads control file and state file, and judges the last end. */
extern void sherman_recovery_start(struct ShermanShared *shared);
/*
 * In the launcher, before the first memory node of this run is attached: begins the epoch, with what the last
 * end says about each memory node.  False: `failure` (SHERMAN_FAILURE_BYTES) says why.
 */
extern bool sherman_recovery_begin(char *failure);
/*
 * In the launcher, when a memory node answers and before it is fenced: whether its memory is what the state
 * file knows of it.  *member is what trees are to call it: a new name, if nothing of ours in it is to be
 * believed.  False: it must not be attached; `failure` says why.
 */
extern bool sherman_recovery_check(int position, const TreeNodeStatus *status, uint64 *member, char *failure);
/*
 * In the launcher, after fabric_attach(): marks the trees of an unclean epoch as broken, opens the memory
 * node's next epoch and fills the table of trees.
 */
extern bool sherman_recovery_attach(TreeClient *client, int position, const TreeNodeStatus *status,
									char *failure);
/*
 * Looks at the records of an attached memory node again: trees on memory that was replaced since are marked
 * as broken, and the table learns on which memory nodes trees lie.
 */
extern TreeStatus sherman_recovery_review(TreeClient *client, int position);

/* ---- local.c ---- */

/* Reads a state file; false: there is none at `path`, or it is not to be believed. */
extern bool sherman_local_read(const char *path, ShermanLocal *local);
/* Whether a state file that is not ours stays in its place, in this process and those that it starts: then it is not written. */
extern void sherman_local_hold(bool held);
/* Writes the state file durably; false, with a WARNING, if that failed. */
extern bool sherman_local_write(ShermanLocal *local);
/* The same of a new state, which then is the one in shared memory, too. */
extern bool sherman_local_change(ShermanLocal *local);

/* ---- wal_end.c: where the WAL of the last epoch ends ---- */

/* Whether the last checkpoint was made in a run of ours, as its launcher has seen: nobody else has made one since. */
extern bool sherman_checkpoint_is_ours(const ShermanLocal *local, const struct ControlFileData *control);
/* In the startup hook, after the verdict. True: the state file is to be written. */
extern bool sherman_wal_end_start(struct ShermanShared *shared, const struct ControlFileData *control);
/*
 * In the launcher, in each round: settles what recovery has not told, and notes the checkpoint by which the next
 * start sees that nobody else ran this server.
 */
extern void sherman_wal_end_round(void);
/* A command has made a checkpoint: waits until the launcher has noted it, at most a second. */
extern void sherman_wal_end_wait(void);


/* ---- history.c: the page of history ---- */

/* Reads it, as it is in this server's history; *end is where its record ends.  False: there is none to be believed. */
extern bool sherman_history_read(ShermanHistory *history, XLogRecPtr *end);
/*
 * In the launcher, while the epoch is in use: writes what the state file says, durably.  False, with the error in
 * the log, if that failed.  Nothing is written with an embedded memory node.
 */
extern bool sherman_history_write(const ShermanLocal *local);
/* Takes from the page what the state file of another server would have said. */
extern void sherman_history_adopt(const ShermanHistory *history, ShermanLocal *local);

/* ---- takeover.c ---- */

/*
 * When recovery, which was told to, has ended at `end` (invalid: that is not known): finds out where the owner's
 * history was cut.
 */
extern void sherman_take_over_at(ShermanLocal *local, XLogRecPtr end);
/*
 * In the launcher, before anything is attached: takes over what is wanted, or says why not.  False: it is not
 * decided yet, and nothing may be attached.
 */
extern bool sherman_take_over_round(void);

/* ---- epochs.c ---- */

/* Notes where a start found the end of the last epoch's WAL: the smallest counts. */
extern void sherman_epoch_end(ShermanLocal *local, XLogRecPtr end, ShermanKnownBy known_by);
/* The last epoch has ended, and the next one begins. */
extern void sherman_epoch_begin(ShermanLocal *local);
/* What stamps of the epochs before the current one prove. */
extern void sherman_epoch_limits(const ShermanLocal *local, TreeEnds *ends);

#endif							/* SHERMAN_LOCAL_H */
