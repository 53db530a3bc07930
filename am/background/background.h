/*
 * background.h
 *		The face of am/background: the scheduler of database workers; collector, healer, rebuild.
 */
#ifndef SHERMAN_AM_BACKGROUND_H
#define SHERMAN_AM_BACKGROUND_H

#include "am/base/shared.h"

/* ---- catalogs.c ---- */

typedef struct ShermanDatabase
{
	Oid			oid;
	bool		invalid;		/* nobody can connect to it: its DROP was interrupted */
	bool		open;			/* its owner lets sessions in */
} ShermanDatabase;

/* All databases as palloc'd ShermanDatabases.  Outside of a transaction. */
extern List *sherman_list_databases(void);
/* One of such a list; NULL: it is not there. */
extern const ShermanDatabase *sherman_find_database(const List *databases, Oid oid);

/* An index of an access method that is not core's. */
typedef struct ShermanCandidate
{
	Oid			oid;
	Oid			owner;
	bool		temporary;
	float4		entries;		/* as far as the catalog knows; -1 = it does not */
} ShermanCandidate;

/* Those that are in this database now, as palloc'd ShermanCandidates. */
extern List *sherman_list_candidates(void);

/* ---- scheduler.c ---- */

/* A kind of database worker. */
typedef struct ShermanWorker
{
	const char *name;			/* in pg_stat_activity */
	bool		undoes;			/* a command on its database cancels it first, so that it undoes what it has not finished */
	int			pause_ms;		/* from the beginning of a round to that of the next, at least */
	/*
	 * In the launcher, outside of a transaction, in a memory context that is short-lived, when all databases of the last round had
	 * their turn: databases that want a run now, as a list of OIDs.  NIL: none does, and `*next` is when to ask again, if nothing
	 * wakes the launcher before.
	 */
	List	   *(*wanted) (TimestampTz now, TimestampTz *next);
	/*
	 * In the worker, in the database, outside of a transaction, in PortalContext.  `first`: no run of this kind has come to its end
	 * there since the launcher began.
	 */
	ShermanRunEnd (*run) (bool first);
} ShermanWorker;

/* How the launcher's last run in a database has ended. */
typedef struct ShermanLastRun
{
	Oid			database;
	ShermanRunEnd end;
	bool		complete;		/* that one or one before it came to its end */
	TimestampTz at;
} ShermanLastRun;

/* When the library is loaded. */
extern void sherman_worker_define(ShermanWorkerKind kind, const ShermanWorker *worker);
/* In a worker, now and then: reads the settings again if it was told to. */
extern void sherman_worker_reload(void);
extern PGDLLEXPORT void sherman_database_worker_main(Datum database);
/* In the launcher: notes which runs have ended and begins others.  Returns milliseconds until it is to be called again. */
extern long sherman_schedule(void);
/* In the launcher; NULL: there was none. */
extern const ShermanLastRun *sherman_last_run(ShermanWorkerKind kind, Oid database);
/*
 * Before a command that needs a database for itself: from now on no run begins there, until sherman_runs_allow(), which is called
 * in any case.
 */
extern void sherman_runs_forbid(Oid database);
extern void sherman_runs_allow(int code, Datum argument);
/* Ends the runs there, and waits until the workers have left; at most for some seconds. */
extern void sherman_runs_end(void);
/* Whether a command needs a database for itself now. */
extern bool sherman_runs_forbidden(Oid database);

/* ---- databases.c: commands that need a database for themselves ---- */

/*
 * Whether the command is such a one, and the current user has the right to it: then no run begins in the database, and those that
 * are there are to be ended (sherman_runs_end()).
 */
extern bool sherman_database_begin(struct Node *statement, bool top_level);
/* The command has succeeded. */
extern void sherman_database_end(void);

/* ---- collector.c, healer.c, rebuild.c ---- */

extern const ShermanWorker sherman_collector;
extern const ShermanWorker sherman_healer;
extern const ShermanWorker sherman_rebuild;

/* ---- living_trees.c ---- */

/* A tree that an index names. */
typedef struct ShermanLivingTree
{
	uint64		tree;			/* key */
	uint32		valid;			/* ShermanMetaPage.replicas_valid */
} ShermanLivingTree;

/*
 * Collects the trees, keyed by number, as ShermanLivingTree, that the indexes of this database name and that are not broken.  False:
 * not all indexes could be looked at.
 */
extern bool sherman_living_trees(struct HTAB **trees);

/* ---- largest.c ---- */

/*
 * A sentence that names the indexes of this database with most memory, of those that the session's user owns, and for members of
 * pg_monitor of all; palloc'd, NULL: there are none, or memory nodes do not answer.  It waits for no lock of others, and may raise.
 */
extern char *sherman_largest_indexes(void);

/* ---- rebuild.c, rebuilds.c: sherman.auto_rebuild ---- */

extern Size sherman_rebuilds_bytes(void);
/* Takes up what an earlier server run has noted. */
extern void sherman_rebuilds_initialize(void);
/* A relation was made in this process. */
extern void sherman_rebuild_relation_made(Oid relation);

#endif							/* SHERMAN_AM_BACKGROUND_H */
