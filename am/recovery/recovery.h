/*
 * recovery.h
 *		The face of am/recovery: what the memory is worth at a start.
 */
#ifndef SHERMAN_AM_RECOVERY_H
#define SHERMAN_AM_RECOVERY_H

#include "am/base/shared.h"

/* ---- datadir_identity.c: whether the state file is this data directory's ---- */

typedef enum ShermanPlace
{
	SHERMAN_PLACE_SAME,
	SHERMAN_PLACE_MOVED,		/* another place, and what was there before is gone */
	SHERMAN_PLACE_REPLICA			/* another place, and the original is at its own still */
} ShermanPlace;

/* Finds out where the state file was written last: here, or elsewhere. */
extern ShermanPlace sherman_place_find(const ShermanLocal *local);
/* Notes that this is the place. */
extern void sherman_place_note(ShermanLocal *local);

/* ---- set_aside.c: files that are set aside ---- */

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
 * Whether some memory node is known from an earlier timeline alone, in which it was another server's, or this one's before it was promoted.
 */
extern bool sherman_recovery_takes_from_other(void);
/*
 * In the launcher, before the first memory node of this run is attached: begins the epoch, with what the last
 * end says about each memory node.  False: `failure` (SHERMAN_FAILURE_BYTES) says why.
 */
extern bool sherman_recovery_begin(char *failure);
/*
 * In the launcher: the memory was used since by the original of this directory, or by another heir of its history, so this server is one more.  It
 * gets an identity of its own, before anything is attached by the old one, so that the other one is not fenced.  Returns false, for `failure`.
 */
extern bool sherman_recovery_become_copy(char *failure);
/*
 * In the launcher, when a memory node answers and before it is fenced: whether its memory agrees with the state file.
 * *member: the memory's identity for trees; a new one, if none of our data in it is valid. False: it must not be
 * attached; `failure` says why.
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

/* ---- wal_end.c: where the WAL of the last epoch ends ---- */

/* Whether the last checkpoint was made in a run of ours, as its launcher has seen, and no other one since. */
extern bool sherman_checkpoint_is_ours(const ShermanLocal *local, const struct ControlFileData *control);
/* In the startup hook, after the verdict. True: the state file is to be written. */
extern bool sherman_wal_end_start(struct ShermanShared *shared, const struct ControlFileData *control);
/*
 * In the launcher, in each round: settles what recovery has left open, and notes the checkpoint by which the next
 * start sees that the server did not run without us.
 */
extern void sherman_wal_end_round(void);
/* A command has made a checkpoint: waits until the launcher has noted it, at most a second. */
extern void sherman_wal_end_wait(void);


extern void sherman_wal_end_install(void);

/* ---- history.c: the page of history ---- */

/* Reads it, as it is in this server's history; *end is where its record ends.  False: there is no valid one. */
extern bool sherman_history_read(ShermanHistory *history, XLogRecPtr *end);
/*
 * In the launcher, while the epoch is in use: writes what the state file says, durably.  False, with the error in
 * the log, if that failed.  Nothing is written with an embedded memory node.
 */
extern bool sherman_history_write(const ShermanLocal *local);
/* Takes from the page what the state file of another server would have said. */
extern void sherman_history_adopt(const ShermanHistory *history, ShermanLocal *local);

/* ---- takeover.c ---- */

/* Whether this server was started as a standby, and has not ended its recovery. */
extern bool sherman_is_standby(void);
/* At the start, in the postmaster: goes on with what an earlier run has left undecided, and looks at sherman.take_over. */
extern void sherman_take_over_start(ShermanLocal *local);
/*
 * When recovery has ended at `end`, in the startup process: notes where the owner's history was cut, if this server was told to take
 * over, or does so by sherman.take_over.  False: it does not take over.
 */
extern bool sherman_take_over_end(ShermanLocal *local, XLogRecPtr end);
/*
 * In the launcher, before anything is attached: takes over what is wanted, or says why not.  False: it is not
 * decided yet, and nothing may be attached.
 */
extern bool sherman_take_over_round(void);
/* Processes that have waited for a decision go on. */
extern void sherman_take_over_decided(void);

/* ---- promotion.c ---- */

/*
 * In the launcher, behind sherman_take_over_round(): whether memory nodes may be attached.  False: this server would take them from the one
 * that it was a standby of, and no synchronous standby has the WAL of its promotion yet.
 */
extern bool sherman_promotion_is_followed(void);

/* ---- epochs.c ---- */

/* Notes where a start found the end of the last epoch's WAL: the smallest counts. */
extern void sherman_epoch_end(ShermanLocal *local, XLogRecPtr end, ShermanKnownBy known_by);
/* The last epoch has ended, and the next one begins. */
extern void sherman_epoch_begin(ShermanLocal *local);
/* What WAL positions of the epochs before the current one prove. */
extern void sherman_epoch_limits(const ShermanLocal *local, TreeWalLimits *ends);

#endif							/* SHERMAN_AM_RECOVERY_H */
