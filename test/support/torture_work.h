/*
 * torture_work.h
 *		What one process of the torture does, and how it knows what is right.
 *
 * All entries that may ever be are known beforehand: each process owns some TIDs, and every TID has its number.  Sorted, an
 * entry is its rank.  A word in shared memory tells each rank's state, with a version: an entry that was in before a scan
 * began and has the same word after it must have been found, once; one that was out must not.
 */
#ifndef SHERMAN_TEST_TORTURE_WORK_H
#define SHERMAN_TEST_TORTURE_WORK_H

#include "environment.h"
#include "fault.h"
#include "keyspace.h"

typedef enum EntryState
{
	ENTRY_OUT, /* never inserted, or its removal was acknowledged */
	ENTRY_INSERTING,
	ENTRY_IN,
	ENTRY_REMOVING
} EntryState;

#define ENTRY_STATE_BITS 2

typedef struct TortureOptions
{
	const char *name;
	uint64_t seed;
	KeySpaceKind space;
	uint32_t processes;
	uint32_t domains;    /* separate local lock tables, caches and allocation states: 1 or 2 */
	uint32_t nodes;      /* memory nodes */
	uint32_t operations; /* of each process; in a crash run, of each incarnation */
	uint32_t entries;    /* TIDs of each process */
	uint64_t range;      /* numbers are below; 0 = ascending with the TIDs */
	bool
		give, /* with `merge`: removals are seldom, and often of all that one has, so that extents are emptied */
		merge; /* numbers are the TIDs, each process's apart; removals are of ranges, so that leaves are emptied */
	bool tear;       /* torn READs and WRITEs */
	bool tear_words; /* torn inside of lines, too */
	uint32_t delay_us;
	bool lose;        /* chains are lost or come late */
	bool stop;        /* cancels */
	uint32_t crashes; /* lives that end by SIGKILL */
	uint32_t workers; /* connection workers between the processes and the memory nodes */
	bool lose_below;  /* chains of theirs are lost or come late */
	uint32_t deaths;  /* of workers by SIGKILL from outside; and then they also die inside chains */
	bool replicas;    /* each node twice, on two memory nodes; in the end the first of them is given up */
	bool switches;    /* techniques are drawn by the seed */
	bool leaves;      /* the one domain has the tree for itself, and keeps images of leaves */
	bool unique;      /* numbers, below `range`, may have one row only, and all processes add rows to them */
} TortureOptions;

typedef struct Torture
{
	TortureOptions options;
	const KeySpace *space;
	TreeRecord record;
	uint64_t count;            /* of entries: processes * entries */
	KeyEntry *sorted;          /* by rank; private copies after fork() */
	uint32_t *rank;            /* by id: process * entries + i */
	uint32_t *id;              /* by rank */
	uint32_t *words;           /* by rank, in shared memory: version and EntryState */
	uint64_t *merged;          /* nodes that left the tree, in shared memory */
	uint64_t *folded;          /* of these: leaves with entries */
	uint64_t *reclaimed;       /* bytes of earlier incarnations that were found free, likewise */
	uint64_t *given;           /* bytes of extents that went back, likewise */
	struct UniqueKeys *unique; /* likewise; NULL unless options.unique */
	TreeReplicaState replica_state;
	bool replicas_doubtful; /* some process ended in the middle of what it did */
	/* As torture_settle() saw them last, for the report. */
	TreeCounters counters;
	TreeStatistics statistics;
} Torture;

/* Fills sorted, rank and id from the options; words are zeroed. */
extern void torture_plan(Torture *torture);
extern void torture_free(Torture *torture);

/* A process's life: `operations` random operations. Aborts the process when something is wrong. */
extern void torture_live(Torture *torture, TestInstance *instance, uint32_t slot, uint32_t process,
                         uint64_t seed, uint64_t die_operation, uint32_t die_line);

/*
 * When no process lives: tree_check() and an exact comparison.  Entries that were being inserted or removed may be there or
 * not, and are settled as they are found.  False after printing why.
 */
extern bool torture_settle(Torture *torture, TestInstance *instance, uint32_t slot);

/*
 * With copies, when no process lives: they are equal, or differ only where somebody has died, and are made
 * equal. Then the home is closed and given up: from now on all that lives does so on the copies. False after
 * printing why.
 */
extern bool torture_settle_replicas(Torture *torture, TestInstance *instance, uint32_t slot);
extern void torture_give_up_home(Torture *torture, TestInstance *instance, uint32_t slot);

#endif /* SHERMAN_TEST_TORTURE_WORK_H */
