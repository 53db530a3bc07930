/*
 * background.h
 *		The face of am/background: visits, collector, healer, rebuild.
 */
#ifndef SHERMAN_AM_BACKGROUND_H
#define SHERMAN_AM_BACKGROUND_H

#include "am/base/shared.h"

/* ---- living_trees.c ---- */

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

/* A tree that an index names. */
typedef struct ShermanLivingTree
{
	uint64		tree;			/* key */
	uint32		valid;			/* ShermanMetaPage.copies_valid */
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

/* ---- collector.c ---- */

/* One round of the launcher; returns milliseconds until it wants to run again. */
extern long sherman_collect_round(void);
/* A visit: judges all trees of this database. */
extern void sherman_collect_here(void);

/* ---- healer.c ---- */

/* One round of the launcher; returns milliseconds until it wants to run again. */
extern long sherman_heal_round(void);
/* A visit: heals the indexes of this database that are due. */
extern void sherman_heal_here(void);

/* ---- database_workers.c: workers that go into one database, do something there and leave ---- */

/* When the library is loaded: what a kind of visit is called in pg_stat_activity, and what it does there, outside of a transaction. */
extern void sherman_visit_define(ShermanVisit kind, const char *name, void (*run) (void));

typedef enum ShermanDatabase
{
	SHERMAN_DATABASE_GONE,
	SHERMAN_DATABASE_INVALID,	/* nobody can connect to it: its DROP was interrupted */
	SHERMAN_DATABASE_THERE
} ShermanDatabase;

/* What becomes of who wants to go there.  In a transaction. */
extern ShermanDatabase sherman_database_look(Oid database);

/*
 * In the launcher: sends a worker into a database and does not wait for it: whatever it does, its end wakes the launcher.
 * False: it cannot be sent now, for one of this kind is there, a command on databases runs or there is no room for a worker.
 */
extern bool sherman_visit_begin(ShermanVisit kind, Oid database);
/* In the launcher: whether a visit of this kind has not ended yet. */
extern bool sherman_visit_lasts(ShermanVisit kind);
/* In the launcher: waits for the visit that it began last. */
extern void sherman_visit_wait(ShermanVisit kind);
/*
 * Before a command that needs a database for itself: from now on no visit begins there, until sherman_visits_allow(), which is called
 * in any case.
 */
extern void sherman_visits_forbid(Oid database);
extern void sherman_visits_allow(int code, Datum argument);
/* Ends the visits there, and waits until they have left; at most for some seconds. */
extern void sherman_visits_end(void);
/* Whether a command needs a database for itself now. */
extern bool sherman_visits_forbidden(Oid database);
extern PGDLLEXPORT void sherman_visit_main(Datum database);

/* ---- databases.c: commands that need a database for themselves ---- */

/*
 * Whether the command is such a one, and the current user has the right to it: then no visit begins in the database, and those that
 * there are are to be ended (sherman_visits_end()).
 */
extern bool sherman_database_begin(struct Node *statement, bool top_level);
/* The command has succeeded. */
extern void sherman_database_end(void);

/* ---- rebuild.c, rebuild_rounds.c, rebuilds.c: sherman.auto_rebuild ---- */
extern Size sherman_rebuilds_bytes(void);
/* Takes up what an earlier run has noted. */
extern void sherman_rebuilds_initialize(void);
/* One round of the launcher; returns milliseconds until it wants to run again. */
extern long sherman_rebuild_round(void);
/* A visit: rebuilds the broken indexes of this database. */
extern void sherman_rebuild_here(void);
/* A relation was made in this process. */
extern void sherman_rebuild_relation_made(Oid relation);

#endif							/* SHERMAN_AM_BACKGROUND_H */
