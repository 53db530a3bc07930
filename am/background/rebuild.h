/*
 * rebuild.h
 *		What rebuild.c, rebuild_plan.c and rebuilds.c (the table of what is to be rebuilt) share.
 */
#ifndef SHERMAN_REBUILD_H
#define SHERMAN_REBUILD_H

#include "am/base/sherman.h"

#include "datatype/timestamp.h"

/* Bytes of a qualified name, and of what a try ended with. */
#define REBUILD_NAME_BYTES (2 * NAMEDATALEN + 8)
#define REBUILD_ERROR_BYTES 256

/* A broken index that is to be rebuilt. */
typedef struct ShermanRebuild
{
	Oid			database;
	Oid			index;			/* with the database, key */
	Oid			heap;
	Oid			made;			/* index that a try has made to take its place, 0 = there is none */
	bool		manual;			/* only a command of the user can rebuild it */
	bool		running;
	int			pid;			/* that rebuilds it, or did last */
	uint32		tries;			/* that counted, since it was good or a memory node came */
	uint32		attached;		/* memory nodes that there were at the last one: bit per position */
	int			delay_s;		/* behind a try */
	TimestampTz next;			/* no try before */
	char		name[REBUILD_NAME_BYTES];
	char		error[REBUILD_ERROR_BYTES]; /* message of the last try's error, "" = there was none */
} ShermanRebuild;

/* ---- rebuild_plan.c ---- */

/* Between rounds, at least. */
#define REBUILD_ROUND_MS 1000

/* ShermanWorker.wanted */
extern List *sherman_rebuild_wanted(TimestampTz now, TimestampTz *next);

/* ---- rebuilds.c: all of this takes the table's lock ---- */

/* Adds an index of this database, unless it is there: then it only notes whether it is manual. False: no room. */
extern bool sherman_rebuilds_add(const ShermanRebuild *wanted);
/* It is good, or gone. */
extern void sherman_rebuilds_remove(Oid database, Oid index);
/* Copies all entries: palloc'd. */
extern ShermanRebuild *sherman_rebuilds_list(int *count);
/* Whether something is to be done about an index now, or at another time. */
extern bool sherman_rebuild_is_due(const ShermanRebuild *rebuild, TimestampTz now);
/* Copies one of a database about which something is to be done; false: there is none. */
extern bool sherman_rebuilds_next(Oid database, ShermanRebuild *next);
/* Memory nodes are attached, a bit for each: where one was not there at the last try, tries are counted anew. */
extern void sherman_rebuilds_welcome(uint32 attached);
/*
 * A try of an index of this database begins, or what one has left is dropped: durably noted before anything is done, so that it is not
 * done again at once if the server does not survive it.
 */
extern void sherman_rebuild_begins(Oid index, bool is_try);
/* It makes this index, 0: that is gone. Durable, too. */
extern void sherman_rebuild_made(Oid index, Oid made);
/* What was done about it has failed; `counts`: by its own fault.  Returns how many tries are left. */
extern int	sherman_rebuild_failed(Oid index, const char *error, bool counts);
/* Whether broken indexes are to be rebuilt now: always, or once. */
extern bool sherman_rebuild_works(void);
/* Nothing can be done about it for so long. */
extern void sherman_rebuild_postpone(Oid index, int64 milliseconds);

#endif							/* SHERMAN_REBUILD_H */
