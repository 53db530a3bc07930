/*
 * sim_work.h
 *		What the clients of a simulated run do, and the history that it leaves.
 *
 * The entries that may ever be are known beforehand.  Every operation on one is written down with its call
 * and its end, and a scan as a look at each entry within its bounds: so one check (history.h) tells whether
 * lookups, inserts and removals are linearizable and whether scans keep their contract.
 */
#ifndef SHERMAN_TEST_SIM_WORK_H
#define SHERMAN_TEST_SIM_WORK_H

#include "history.h"
#include "keyspace.h"
#include "sim_cluster.h"
#include "techniques.h"

typedef struct SimPlan
{
	uint64_t seed;
	KeySpaceKind space;
	uint32_t nodes;
	uint32_t domains;
	uint32_t clients;
	uint32_t entries;
	uint32_t numbers;  /* that entries have: fewer are more equal keys; 0: each has its own, in order */
	uint32_t prefill;  /* entries that are inserted first */
	uint32_t left_out; /* ... without one in so many; 0 = none */
	uint32_t hot;      /* entries that most operations are about */
	uint32_t operations;
	uint32_t crashes;  /* lives that end before their time */
	uint32_t readers;  /* clients of another instance, which only read */
	uint32_t restarts; /* of a memory node */
	uint32_t cuts;     /* partitions */
	bool loses;        /* channels are lost otherwise than by SimulatorOptions.lose_one_in */
	bool merge;
	bool doubts; /* and leaves may be unverified, so that those with entries seldom merge */
	bool marks;  /* entries are marked as dead */
	bool stop;
	bool reader_stops; /* one of the readers does, for ever */
	bool unique;       /* numbers may have one row only */
	Techniques techniques;
	SimulatorOptions simulator;
} SimPlan;

typedef struct SimEntry
{
	KeyEntry key;
	uint32_t rank; /* in the order of the tree */
	HistoryOp *ops;
	uint32_t count;
	uint32_t room;
	/* A removal's entry is not inserted meanwhile, as a row's place is used again behind VACUUM only. */
	uint32_t inserting;
	uint32_t removing;
	uint32_t marking; /* the operation that marks it as dead, plus 1; 0: none does */
	bool marked;      /* one has, perhaps: a removal may find it or not */
	bool dead;        /* its mark is that of a row that has ended: none gets its place before a removal */
	bool left;        /* of numbers that may have one row: it may be there, and has no row */
} SimEntry;

typedef struct SimRun
{
	SimPlan plan;
	const KeySpace *space;
	SimEntry *entries;         /* by id, which is also the TID */
	struct UniqueKeys *unique; /* NULL unless plan.unique */
	uint32_t *by_rank;
	uint64_t moment;
	uint64_t evidence; /* how far the WAL goes, for what is removed */
	bool over;         /* nobody changes anything any more */
	TreeRecord record;
	SimCluster cluster;
	TreeCounters counters;
	uint64_t merged;
	uint64_t folded;    /* of these: leaves with entries */
	uint64_t healed;    /* leaves */
	uint64_t leaf_hits; /* of clients that were closed in order */
	uint64_t reclaimed; /* bytes */
	struct
	{
		uint64_t reads;     /* scans of readers that were believed, */
		uint64_t by_leaves; /* of them without a look at the record, */
		uint64_t waits;     /* and behind a wait */
		uint64_t lacked;    /* entries that were in the tree once, and that it told to be gone */
		uint64_t refused;   /* changes that they have asked for */
	} readers;
	void (*again)(const struct SimRun *run); /* prints the command that repeats the run */
} SimRun;

/* Entries that are inserted by one call, at most. */
#define SIM_BATCH_MAX 24

typedef struct SimBatch
{
	uint32_t ids[SIM_BATCH_MAX];
	uint32_t ops[SIM_BATCH_MAX]; /* in the histories of these */
	KeyImage images[SIM_BATCH_MAX];
	TreeKey keys[SIM_BATCH_MAX];
} SimBatch;

typedef struct SimWorker
{
	SimRun *run;
	SimClient client;
	Coroutine *coroutine;
	uint32_t slot;
	Tree *tree;
	TreeScan *scan;
	bool ready;
	bool done;
	bool left;
	uint8_t *victims; /* by id: to be removed */
	uint8_t *seen;    /* by rank: what a scan has found */
	uint32_t *looks;  /* by rank: its place in the entry's history */
	SimBatch *batch;
	bool reader;        /* it only reads: sim_readers.c */
	uint64_t replayed;  /* ... up to this evidence */
	uint32_t believed;  /* ... and knows that incarnation */
	uint64_t *inserted; /* by rank: the insert that it must see, by its call; 0: none */
} SimWorker;

/* Makes entries and an empty history. The plan's numbers are drawn; `run->again` is kept. */
extern void sim_run_plan(SimRun *run, const SimPlan *plan);
extern void sim_run_free(SimRun *run);

/* Opens client and tree; the coroutine's own; and one that only reads. And closes them. */
extern void sim_worker_open(SimWorker *worker, SimRun *run, uint32_t slot);
extern void sim_reader_worker_open(SimWorker *worker, SimRun *run, uint32_t slot);
extern void sim_worker_close(SimWorker *worker);
/* The first half of that: all but its connections, and memory. */
extern void sim_worker_leave(SimWorker *worker);

/* The entry with the TID; the run fails if there is none. */
extern uint32_t sim_id_of_tid(const SimRun *run, uint32_t block, uint16_t offset);

extern void sim_insert(SimWorker *worker, uint32_t id);
/* Some by one call. */
extern void sim_insert_many(SimWorker *worker);
/* The same unless there is a row with the number; and the row of an entry is dead from now on (sim_unique.c). */
extern void sim_insert_unique(SimWorker *worker, uint32_t id);
extern void sim_insert_many_unique(SimWorker *worker);
extern void sim_row_ends(SimRun *run, uint32_t id);
/* Looks at all entries with the numbers [low, high]; for one number that is a lookup. */
extern void sim_scan_numbers(SimWorker *worker, uint64_t low, uint64_t high, TreeDirection direction);
extern void sim_scan_all(SimWorker *worker, TreeDirection direction);
/*
 * Takes what a scan finds between bounds, which have the ranks [from, to): in order, each once.  What was found is in `seen`.  TREE_END: it
 * is through.
 */
extern TreeStatus sim_scan_take(SimWorker *worker, uint32_t from, uint32_t to, const TreeBound *start,
                                const TreeBound *stop, TreeDirection direction);
/* The first rank whose number is not below. */
extern uint32_t sim_rank_of_number(const SimRun *run, uint64_t number);
/* An entry that most operations are about, or another one. */
extern uint32_t sim_random_id(const SimRun *run);
/* Removes entries that nobody inserts meanwhile, by VACUUM's walk; merges behind it if the plan says so. */
extern void sim_remove(SimWorker *worker, const uint32_t *ids, uint32_t count);
/*
 * Looks the entry up and marks it as dead where it was found: as a scan does to whose user its row is dead.
 * It is the row of that moment only: once its place was used again the mark must not come.
 */
extern void sim_mark(SimWorker *worker, uint32_t id);
/*
 * Looks for unverified leaves that have, or had, the numbers [low, high], and heals them: no entry goes.  Only if the plan merges
 * is any in doubt.
 */
extern void sim_heal(SimWorker *worker, uint64_t low, uint64_t high);
/* A coroutine's body: opens the worker, which has its run and slot, and does the plan's operations. */
extern void sim_worker_body(void *argument);

/* The same of a worker that only reads; it goes on until the run is over, through all lives of the others. */
extern void sim_reader_body(void *argument);
/*
 * A reader looks at all entries with these numbers, by one scan; or at all that there are.  The run fails if it lacks one and the tree does
 * not tell it so.
 */
extern void sim_reader_scan_numbers(SimWorker *reader, uint64_t low, uint64_t high, TreeDirection direction);
extern void sim_reader_scan_all(SimWorker *reader, TreeDirection direction);
/* The run fails if the reader has changed anything. */
extern void sim_reader_require_idle(const SimWorker *reader);

/* Makes the tree and the plan's first entries; the calling coroutine's own, and at the end all is closed. */
extern void sim_make_tree(SimRun *run);
/* Looks at the whole tree while nobody changes it. */
extern void sim_check_tree(SimRun *run);
extern void sim_check_tree_by(SimWorker *worker);

/* An operation on an entry, by its place in the entry's history. */
extern uint32_t sim_history_begin(SimRun *run, uint32_t id, HistoryKind kind);
extern HistoryOp *sim_history_end(SimRun *run, uint32_t id, uint32_t op);

/* Whether an operation's chain may be lost, so that its caller does not know what has taken effect. */
extern bool sim_chains_are_lost(const SimRun *run);
/* Some operations are asked to end early, at some time. */
extern void sim_maybe_stop(SimWorker *worker);
/* Behind an operation: the run fails if a lock is held. */
extern void sim_require_free(const SimWorker *worker, const char *what);
/* Draws entries, with their keys, that may be inserted by one call, each once.  Returns how many. */
extern uint32_t sim_batch_draw(SimWorker *worker, SimBatch *batch,
                               bool (*may_be_inserted)(const SimRun *run, uint32_t id));
/*
 * After an operation that failed, as it may where a memory node is away: waits until nothing of it is in
 * doubt. Any other failure is one of the run.
 */
extern void sim_settle(SimWorker *worker, TreeStatus status, const char *what);

/* Ends what was under way: nothing of it takes effect any more. */
extern void sim_history_cut(SimRun *run);
/* An entry is there, or is not, at the end. */
extern void sim_history_look(SimRun *run, uint32_t id, bool there);
/* False: says which entry's history cannot be, and shows it. */
extern bool sim_history_judge(SimRun *run);

/* The run fails: says why and how to repeat it, and ends the program. */
extern void sim_fail(const SimRun *run, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

#endif /* SHERMAN_TEST_SIM_WORK_H */
