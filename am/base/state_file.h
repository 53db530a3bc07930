/*
 * state_file.h
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
	uint64		member;			/* the identity that trees have for it: trees with another one are not used */
	uint64		epoch;			/* last epoch of ours that it acknowledged; it counts for itself, 0 = none */
	uint64		opening;		/* the one that it may have opened since, 0 = none */
	uint32		unclean_from;	/* trees changed in this epoch of the instance, or later, are not
								 * proven good; 0 = all are */
	uint32		forgotten;		/* 1 = the position is free, as sherman_forget_memory_node() gave up what was there last */
	char		address[SHERMAN_ADDRESS_BYTES]; /* where it was last */
} ShermanLocalNode;

/* How the end of an epoch's WAL is known. */
typedef enum ShermanKnownBy
{
	SHERMAN_KNOWN_NOT,			/* it has not ended */
	SHERMAN_KNOWN_SHUTDOWN,		/* the shutdown checkpoint of a clean end that we saw */
	SHERMAN_KNOWN_RECOVERY,		/* recovery told where it ended */
	SHERMAN_KNOWN_CHECKPOINT,	/* recovery had nothing to do behind this checkpoint */
	SHERMAN_KNOWN_WAL,			/* the server may have run without us: the WAL shows the first start behind */
	SHERMAN_KNOWN_CUT,			/* it was another server's, and what we have of its WAL ends there */
	SHERMAN_KNOWN_NOTHING		/* nothing of it is proven */
} ShermanKnownBy;

/* An epoch, for as long as nodes may bear WAL positions of it. */
typedef struct ShermanEpoch
{
	uint32		epoch;
	uint32		known_by;		/* ShermanKnownBy */
	TimestampTz began;
	XLogRecPtr	end;			/* what was written beyond has no WAL: the smallest that any start since it began
								 * found */
} ShermanEpoch;

/*
 * Epochs that are kept. WAL positions of older ones are judged by the oldest, which those before it are merged into.
 */
#define SHERMAN_EPOCHS_KEPT TREE_WAL_LIMITS_MAX

/* Whether the indexes of the server that this one is a copy of are wanted (takeover.c). */
typedef enum ShermanTakeOver
{
	SHERMAN_TAKE_OVER_NOT,
	SHERMAN_TAKE_OVER_WANTED,	/* when recovery ends */
	SHERMAN_TAKE_OVER_CUT,		/* recovery has ended: the launcher decides, before anything else */
	SHERMAN_TAKE_OVER_AUTOMATIC /* nobody has told it, but sherman.take_over does: the same with a cut, WANTED without */
} ShermanTakeOver;

/* The local state file: neither backups nor pg_rewind copy it. */
#define SHERMAN_LOCAL_FILE "pg_dynshmem/sherman.state"

typedef struct ShermanLocal
{
	uint32		magic;
	uint32		version;
	uint64		system_identifier;
	uint64		inode;			/* these three are of the data directory's place, and only hints (datadir_identity.c) */
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
	XLogRecPtr	cut;			/* if recovery has ended: where the owner's WAL ends here; invalid = it is not known */
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
	uint32		forgotten;
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

/* ---- state_file.c ---- */

/* Reads a state file; false: there is none at `path`, or it is not valid. */
extern bool sherman_local_read(const char *path, ShermanLocal *local);
/* Whether a state file that is not ours stays in its place, in this process and those that it starts: then it is not written. */
extern void sherman_local_hold(bool held);
/* Writes the state file durably; false, with a WARNING, if that failed. */
extern bool sherman_local_write(ShermanLocal *local);
/* The same of a new state, which then is the one in shared memory, too. */
extern bool sherman_local_change(ShermanLocal *local);

#endif							/* SHERMAN_LOCAL_H */
