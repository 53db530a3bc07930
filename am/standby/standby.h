/*
 * standby.h
 *		The face of am/standby: a hot standby reads its primary's indexes.
 */
#ifndef SHERMAN_AM_STANDBY_H
#define SHERMAN_AM_STANDBY_H

#include "am/index/index.h"

/* ---- reader.c ---- */

/* In _PG_init(): registers the process, where this server is a standby that is to read. */
extern void reader_register(void);
extern PGDLLEXPORT void sherman_reader_main(Datum argument);
/*
 * In the launcher, before anything is attached: the server was promoted, and what the reader has attached is to be attached as a primary
 * does.  False: the reader has not ended yet.
 */
extern bool reader_end(void);

/* ---- horizon.c ---- */

/* In the launcher: starts the process that keeps the horizon of removals, if standbys have announced theirs and there is none. */
extern void horizon_round(void);
extern PGDLLEXPORT void sherman_horizon_main(Datum argument);

/* ---- replay.c ---- */

/*
 * Reads the page of history of the server that this one follows; *end is where its record ends.  False: there is none, or that server has not
 * written it in the timeline that is replayed now.
 */
extern bool standby_history_read(ShermanHistory *page, XLogRecPtr *end);

/* A scan begins; its snapshot was taken before. */
extern void standby_begin(void);
/*
 * Behind each read of the index's tree, before anything of it is used by a scan with this snapshot: returns when this server has replayed what
 * the primary did before it removed anything that the read may lack.  `by_leaves`: the read was of leaves, and what they say themselves may do;
 * else something is gone that they had.  Raises 40001 if that takes too long, or cannot be, and what the call to the memory node raises.
 */
extern void standby_believe(ShermanIndex *index, Relation relation, Snapshot snapshot, bool by_leaves);
/*
 * Whether all rows that a leaf's entries are of are in the table as this server has it, which the visibility map then knows: by the leaf's
 * WAL position.
 */
extern bool standby_has_replayed(const TreeWalPosition *wal);

#endif							/* SHERMAN_AM_STANDBY_H */
