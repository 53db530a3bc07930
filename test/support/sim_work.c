/*
 * sim_work.c
 *		See sim_work.h.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_work.h"
#include "require.h"
#include "unique_keys.h"
#include "tree/shared/cache.h"

#define TIDS_PER_BLOCK 200u

/* Operations of a hundred: inserts, lookups, ranges, whole scans; the others remove. */
#define PART_INSERT 48u
#define PART_LOOKUP 66u
#define PART_RANGE 82u
#define PART_WHOLE 87u
/* Of a hundred: how many are about hot entries. */
#define PART_HOT 75u
#define VICTIMS_MOST 4u
/* Of a range that is thinned one of so many stays. */
#define THIN_ONE_OF 4
/* Entries that are marked as dead by one call, at most. */
#define MARKS_MOST 4
/* The run of the server that all WAL positions of what is removed are of. */
#define EVIDENCE_EPOCH 1u
/* Where sim_mark()'s row was deleted. */
#define MARK_LSN 1u

/* Unverified leaves that are looked at together, and how long that takes: as long as a removal or two. */
#define HEAL_LEAVES 32
#define HEAL_NANOSECONDS 1000000u

/* Looks for a memory node that is away. */
#define SETTLE_ATTEMPTS 100000
/* Who is asked to end is so within this time: about that of an operation. */
#define STOP_NANOSECONDS 60000u

/* About half of the WAL positions that inserts leave are not proven. */
static const TreeWalLimits ends = {.epoch = 2, .first = 1, .count = 1, .limit = {500}};

void
sim_fail(const SimRun *run, const char *format, ...)
{
	va_list arguments;

	fflush(stdout);
	fprintf(stderr, "FAILED seed %" PRIu64 " after %" PRIu64 " steps: ", run->plan.seed, simulator_steps());
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\nrun it again: ");
	run->again(run);
	exit(1);
}

/* ---- the history ---- */

uint32_t
sim_history_begin(SimRun *run, uint32_t id, HistoryKind kind)
{
	SimEntry *entry = &run->entries[id];

	if (entry->count == entry->room)
	{
		entry->room = entry->room == 0 ? 64 : entry->room * 2;
		entry->ops = realloc(entry->ops, entry->room * sizeof(HistoryOp));
		REQUIRE(entry->ops != NULL, "no memory");
	}
	entry->inserting += kind == HISTORY_INSERT;
	entry->removing += kind == HISTORY_REMOVE;
	explorer_access(EXPLORER_HISTORY, entry->rank, entry->rank + 1, EXPLORER_READ);
	/* A mark is a hint: packing loses it, and so a look tells nothing. */
	entry->ops[entry->count] = (HistoryOp){
		.call = ++run->moment, .end = UINT64_MAX, .kind = kind, .maybe = kind == HISTORY_LOOK && entry->dead};
	return entry->count++;
}

HistoryOp *
sim_history_end(SimRun *run, uint32_t id, uint32_t op)
{
	SimEntry *entry = &run->entries[id];

	entry->inserting -= entry->ops[op].kind == HISTORY_INSERT;
	entry->removing -= entry->ops[op].kind == HISTORY_REMOVE;
	entry->ops[op].end = ++run->moment;
	if (entry->ops[op].kind == HISTORY_LOOK && entry->dead)
		entry->ops[op].maybe = true;
	explorer_access(EXPLORER_HISTORY, entry->rank, entry->rank + 1, EXPLORER_ADD);
	return &entry->ops[op];
}

static void
history_found(SimRun *run, uint32_t id, uint32_t op, bool there)
{
	HistoryOp *ended = sim_history_end(run, id, op);

	ended->known = true;
	ended->was_there = there;
}

/* The mark took effect before this moment, if it did; or never, if it is through without one. */
static void
mark_end(SimRun *run, uint32_t id, bool through, bool marked)
{
	SimEntry *entry = &run->entries[id];
	HistoryOp *op;

	if (entry->marking == 0)
		return;
	op = sim_history_end(run, id, entry->marking - 1);
	entry->marking = 0;
	if (through && !marked)
		return;
	op->kind = HISTORY_REMOVE;
	op->mark = true;
	op->evidence = MARK_LSN;
	op->maybe = !through;
	entry->marked = true;
	/* A removal that ends looks whether it was. */
	explorer_access(EXPLORER_HISTORY, entry->rank, entry->rank + 1, EXPLORER_WRITE);
}

void
sim_history_look(SimRun *run, uint32_t id, bool there)
{
	history_found(run, id, sim_history_begin(run, id, HISTORY_LOOK), there);
}

void
sim_history_cut(SimRun *run)
{
	if (run->unique != NULL)
		unique_keys_end(run->unique);
	for (uint32_t id = 0; id < run->plan.entries; id++)
		for (uint32_t op = 0; op < run->entries[id].count; op++)
			if (run->entries[id].ops[op].end == UINT64_MAX)
			{
				sim_history_end(run, id, op)->maybe = true;
				run->entries[id].left = true;
			}
}

static void
history_show(const SimEntry *entry)
{
	static const char *const names[] = {"insert", "remove", "look"};

	for (uint32_t i = 0; i < entry->count; i++)
	{
		const HistoryOp *op = &entry->ops[i];

		fprintf(stderr, "  %6" PRIu64 " to %6" PRIu64 " %s%s%s\n", op->call, op->end, names[op->kind],
		        op->mark        ? " by a mark"
		        : !op->known    ? ""
		        : op->was_there ? ": was there"
		                        : ": was not there",
		        op->maybe ? ", perhaps" : "");
	}
}

bool
sim_history_judge(SimRun *run)
{
	for (uint32_t id = 0; id < run->plan.entries; id++)
	{
		SimEntry *entry = &run->entries[id];

		if (history_is_linearizable(entry->ops, entry->count))
			continue;
		fprintf(stderr, "entry %u (number %" PRIu64 ", TID (%u,%u)):\n", entry->rank, entry->key.number,
		        entry->key.block, entry->key.offset);
		history_show(entry);
		return false;
	}
	return true;
}

/* ---- entries ---- */

static const SimRun *sorting;

static int
rank_compare(const void *a, const void *b)
{
	return key_entry_compare(&sorting->entries[*(const uint32_t *) a].key,
	                         &sorting->entries[*(const uint32_t *) b].key);
}

void
sim_run_plan(SimRun *run, const SimPlan *plan)
{
	void (*again)(const SimRun *) = run->again;

	memset(run, 0, sizeof(*run));
	run->again = again;
	run->plan = *plan;
	run->space = keyspace(plan->space);
	run->entries = calloc(plan->entries, sizeof(SimEntry));
	run->by_rank = calloc(plan->entries, sizeof(uint32_t));
	REQUIRE(run->entries != NULL && run->by_rank != NULL, "no memory");
	if (plan->unique)
	{
		run->unique = calloc(1, unique_keys_bytes(plan->numbers));
		REQUIRE(run->unique != NULL, "no memory");
		unique_keys_set_up(run->unique, plan->numbers);
	}
	for (uint32_t id = 0; id < plan->entries; id++)
	{
		run->entries[id].key = (KeyEntry){.number = plan->numbers == 0 ? id : scheduler_random(plan->numbers),
		                                  .block = id / TIDS_PER_BLOCK,
		                                  .offset = (uint16_t) (1 + id % TIDS_PER_BLOCK)};
		run->by_rank[id] = id;
	}
	sorting = run;
	qsort(run->by_rank, plan->entries, sizeof(uint32_t), rank_compare);
	for (uint32_t rank = 0; rank < plan->entries; rank++)
		run->entries[run->by_rank[rank]].rank = rank;
}

void
sim_run_free(SimRun *run)
{
	for (uint32_t id = 0; id < run->plan.entries; id++)
		free(run->entries[id].ops);
	free(run->entries);
	free(run->by_rank);
	free(run->unique);
}

uint32_t
sim_id_of_tid(const SimRun *run, uint32_t block, uint16_t offset)
{
	uint64_t id = (uint64_t) block * TIDS_PER_BLOCK + offset - 1;

	if (offset < 1 || offset > TIDS_PER_BLOCK || id >= run->plan.entries)
		sim_fail(run, "TID (%u,%u) was never inserted", block, offset);
	return (uint32_t) id;
}

uint32_t
sim_rank_of_number(const SimRun *run, uint64_t number)
{
	uint32_t rank = 0;

	while (rank < run->plan.entries && run->entries[run->by_rank[rank]].key.number < number)
		rank++;
	return rank;
}

uint32_t
sim_random_id(const SimRun *run)
{
	uint32_t below = scheduler_random(100) < PART_HOT ? run->plan.hot : run->plan.entries;

	return (uint32_t) scheduler_random(below);
}

/* ---- operations ---- */

void
sim_maybe_stop(SimWorker *worker)
{
	SimClient *client = &worker->client;

	client->stop = worker->run->plan.stop && scheduler_random(12) == 0;
	if (!client->stop)
		return;
	client->stop_time = scheduler_now() + scheduler_random(STOP_NANOSECONDS);
	client->ends = scheduler_random(4) == 0;
}

/* Whether operations may fail for others' faults. */
static bool
may_fail(const SimRun *run)
{
	return run->plan.restarts != 0 || run->plan.cuts != 0 || run->plan.stop;
}

void
sim_settle(SimWorker *worker, TreeStatus status, const char *what)
{
	TreeClient *client = worker->client.tree;

	worker->client.stop = false;
	if (status == TREE_STOPPED)
		return;
	if ((status != TREE_UNREACHABLE && (status != TREE_TIMED_OUT || worker->run->plan.cuts == 0)) ||
	    !may_fail(worker->run))
		sim_fail(worker->run, "%s: %s: %s", what, tree_status_name(status), tree_detail(client));
	for (int attempt = 0; tree_client_leave(client) != TREE_OK; attempt++)
	{
		if (attempt == SETTLE_ATTEMPTS)
			sim_fail(worker->run, "%s: doubt does not end: %s", what, tree_detail(client));
		coroutine_sleep(100 * NANOSECONDS_PER_US);
		(void) tree_client_trouble(client);
	}
	(void) tree_client_trouble(client);
}

void
sim_require_free(const SimWorker *worker, const char *what)
{
	if (worker->client.holds != 0)
		sim_fail(worker->run, "%s: a lock is held", what);
}

bool
sim_chains_are_lost(const SimRun *run)
{
	return run->plan.simulator.lose_one_in != 0 || run->plan.loses || may_fail(run);
}

/* An insert that was in doubt takes the entry that it finds for its own: two of them cannot tell. */
static bool
may_be_inserted(const SimRun *run, uint32_t id)
{
	const SimEntry *entry = &run->entries[id];

	return entry->removing == 0 && !entry->dead && (!sim_chains_are_lost(run) || entry->inserting == 0);
}

void
sim_insert(SimWorker *worker, uint32_t id)
{
	SimRun *run = worker->run;
	TreeWalPosition wal = {.epoch = 1, .lsn = 1 + scheduler_random(1000)};
	KeyImage image;
	TreeKey key;
	TreeStatus status;
	uint32_t op;
	bool hit;

	if (!may_be_inserted(run, id))
		return;
	keyspace_key(run->space, &run->entries[id].key, &image, &key);
	mark_end(run, id, false, false);
	op = sim_history_begin(run, id, HISTORY_INSERT);
	sim_maybe_stop(worker);
	status = tree_insert(worker->tree, &key, &wal, &hit);
	worker->client.stop = false;
	sim_require_free(worker, "insert");
	if (status == TREE_OK)
		history_found(run, id, op, hit);
	else
	{
		sim_settle(worker, status, "insert");
		sim_history_end(run, id, op)->maybe = true;
	}
}

uint32_t
sim_batch_draw(SimWorker *worker, SimBatch *batch, bool (*may_be_inserted)(const SimRun *run, uint32_t id))
{
	SimRun *run = worker->run;
	uint32_t wanted = 2 + (uint32_t) scheduler_random(SIM_BATCH_MAX - 1);
	uint32_t first = (uint32_t) scheduler_random(run->plan.entries);
	bool together = scheduler_random(2) == 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < wanted && i < run->plan.entries; i++)
	{
		uint32_t id =
			together ? run->by_rank[(first + i) % run->plan.entries] : (first + i * 7919) % run->plan.entries;
		bool twice = !may_be_inserted(run, id);

		for (uint32_t k = 0; k < count; k++)
			twice = twice || batch->ids[k] == id;
		if (twice)
			continue;
		keyspace_key(run->space, &run->entries[id].key, &batch->images[count], &batch->keys[count]);
		batch->ids[count++] = id;
	}
	return count;
}

/* Begins the inserts of the entries of one call.  Returns how many. */
static uint32_t
batch_begin(SimWorker *worker, SimBatch *batch)
{
	uint32_t count = sim_batch_draw(worker, batch, may_be_inserted);

	for (uint32_t i = 0; i < count; i++)
	{
		mark_end(worker->run, batch->ids[i], false, false);
		batch->ops[i] = sim_history_begin(worker->run, batch->ids[i], HISTORY_INSERT);
	}
	return count;
}

void
sim_insert_many(SimWorker *worker)
{
	SimRun *run = worker->run;
	TreeWalPosition wal = {.epoch = 1, .lsn = 1 + scheduler_random(1000)};
	SimBatch *batch = worker->batch;
	uint32_t count = batch_begin(worker, batch);
	TreeStatus status;

	sim_maybe_stop(worker);
	status = tree_insert_many(worker->tree, batch->keys, count, &wal);
	worker->client.stop = false;
	sim_require_free(worker, "insert many");
	if (status != TREE_OK)
		sim_settle(worker, status, "insert many");
	for (uint32_t i = 0; i < count; i++)
		sim_history_end(run, batch->ids[i], batch->ops[i])->maybe = status != TREE_OK;
}

/* Takes a batch of a scan: entries within the ranks, in order, each once. */
static void
take_batch(SimWorker *worker, const TreeBatch *batch, uint32_t from, uint32_t to, TreeDirection direction,
           int64_t *last)
{
	SimRun *run = worker->run;

	for (int i = 0; i < batch->count; i++)
	{
		uint32_t id = sim_id_of_tid(run, batch->entries[i].block, batch->entries[i].offset);
		uint32_t rank = run->entries[id].rank;
		TreeKey key;
		TreeStatus status;

		if (rank < from || rank >= to)
			sim_fail(run, "a scan found entry %u outside of [%u, %u)", rank, from, to);
		if (*last >= 0 && (direction == TREE_FORWARD ? (int64_t) rank <= *last : (int64_t) rank >= *last))
			sim_fail(run, "a scan found entry %u behind %" PRId64, rank, *last);
		*last = rank;
		worker->seen[rank] = 1;
		status = scheduler_random(4) == 0 ? tree_batch_key(worker->scan, batch, i, &key) : TREE_NOT_FOUND;
		if (status == TREE_OK && keyspace_number(run->space, &key) != run->entries[id].key.number)
			sim_fail(run, "the key of entry %u is another one's", rank);
	}
}

TreeStatus
sim_scan_take(SimWorker *worker, uint32_t from, uint32_t to, const TreeBound *start, const TreeBound *stop,
              TreeDirection direction)
{
	const TreeBatch *batch;
	int64_t last = -1;
	TreeStatus status = tree_scan_seek(worker->scan, direction, start, stop);

	sim_maybe_stop(worker);
	while (status == TREE_OK || status == TREE_STOPPED)
	{
		status = tree_scan_next(worker->scan, &batch);
		if (status == TREE_OK)
			take_batch(worker, batch, from, to, direction, &last);
		worker->client.stop = false;
	}
	sim_require_free(worker, "scan");
	return status;
}

/* A scan is a look at each entry of the ranks [from, to). */
static void
scan(SimWorker *worker, uint32_t from, uint32_t to, const TreeBound *start, const TreeBound *stop,
     TreeDirection direction)
{
	SimRun *run = worker->run;
	TreeStatus status;

	for (uint32_t rank = from; rank < to; rank++)
	{
		worker->looks[rank] = sim_history_begin(run, run->by_rank[rank], HISTORY_LOOK);
		worker->seen[rank] = 0;
	}
	status = sim_scan_take(worker, from, to, start, stop, direction);
	if (status != TREE_END)
		sim_settle(worker, status, "scan");
	for (uint32_t rank = from; rank < to; rank++)
	{
		HistoryOp *op = sim_history_end(run, run->by_rank[rank], worker->looks[rank]);

		op->known = status == TREE_END;
		op->was_there = worker->seen[rank] != 0;
	}
}

/*
 * Looks for an entry of the number: the one that is found was there, and if none is, none was.
 */
static void
find_number(SimWorker *worker, uint64_t number)
{
	SimRun *run = worker->run;
	uint32_t from = sim_rank_of_number(run, number);
	uint32_t to = sim_rank_of_number(run, number + 1);
	KeyEntry entry = {.number = number, .block = 0, .offset = 1};
	uint32_t there = run->plan.entries;
	TreeFound found;
	KeyImage image;
	TreeKey key;
	TreeStatus status;

	for (uint32_t rank = from; rank < to; rank++)
		worker->looks[rank] = sim_history_begin(run, run->by_rank[rank], HISTORY_LOOK);
	keyspace_key(run->space, &entry, &image, &key);
	sim_maybe_stop(worker);
	status = tree_find(worker->scan, &key, &found);
	worker->client.stop = false;
	sim_require_free(worker, "find");
	if (status == TREE_OK)
		there = run->entries[sim_id_of_tid(run, found.block, found.offset)].rank;
	else if (status != TREE_END)
		sim_settle(worker, status, "find");
	if (status == TREE_OK && (there < from || there >= to))
		sim_fail(run, "entry %u was found for number %" PRIu64, there, number);
	for (uint32_t rank = from; rank < to; rank++)
	{
		HistoryOp *op = sim_history_end(run, run->by_rank[rank], worker->looks[rank]);

		op->known = status == TREE_END || rank == there;
		op->was_there = rank == there;
	}
}

void
sim_scan_numbers(SimWorker *worker, uint64_t low, uint64_t high, TreeDirection direction)
{
	const SimRun *run = worker->run;
	TreeBound lower, upper;

	keyspace_bound(run->space, &low, -1, &lower);
	keyspace_bound(run->space, &high, 1, &upper);
	scan(worker, sim_rank_of_number(run, low), sim_rank_of_number(run, high + 1),
	     direction == TREE_FORWARD ? &lower : &upper, direction == TREE_FORWARD ? &upper : &lower, direction);
}

void
sim_scan_all(SimWorker *worker, TreeDirection direction)
{
	scan(worker, 0, worker->run->plan.entries, NULL, NULL, direction);
}

void
sim_mark(SimWorker *worker, uint32_t id)
{
	SimRun *run = worker->run;
	uint64_t number = run->entries[id].key.number;
	TreeWalPosition wal = {.epoch = EVIDENCE_EPOCH, .lsn = MARK_LSN};
	TreeBound lower, upper;
	const TreeBatch *batch;
	TreeDead dead;
	int marked = 0;
	TreeStatus status;

	keyspace_bound(run->space, &number, -1, &lower);
	keyspace_bound(run->space, &number, 1, &upper);
	/* A look, as long as nothing is known to come of it. */
	run->entries[id].marking = 1 + sim_history_begin(run, id, HISTORY_LOOK);
	/* An insert that begins later ends it (mark_end()), and one that has begun does not. */
	explorer_access(EXPLORER_HISTORY, run->entries[id].rank, run->entries[id].rank + 1, EXPLORER_WRITE);
	status = tree_scan_seek(worker->scan, TREE_FORWARD, &lower, &upper);
	if (status == TREE_OK)
		status = tree_scan_next(worker->scan, &batch);
	/* The row that was found is not one of later. */
	explorer_access(EXPLORER_HISTORY, run->entries[id].rank, run->entries[id].rank + 1, EXPLORER_ADD);
	if (status == TREE_OK && batch->count == 1 && run->entries[id].marking != 0)
	{
		dead = (TreeDead){batch->entries[0].block, batch->entries[0].offset, batch->entries[0].cell};
		status = tree_mark_dead(worker->tree, &batch->leaf, &dead, 1, &wal, &marked);
	}
	sim_require_free(worker, "mark");
	if (status != TREE_OK && status != TREE_END)
		sim_fail(run, "mark: %s: %s", tree_status_name(status), tree_detail(worker->client.tree));
	mark_end(run, id, true, marked != 0);
}

/* ---- dead entries ---- */

/* The next removal has evidence up to there. */
static TreeWalPosition
evidence_next(SimRun *run)
{
	return (TreeWalPosition){.epoch = EVIDENCE_EPOCH, .lsn = ++run->evidence};
}

/*
 * Before anything is removed: there is evidence for it, the tree's record tells of it, and the handle writes so into the leaves that it
 * rewrites.  *evidence: of what is removed from now on.
 */
static TreeStatus
prove_removal(SimWorker *worker, uint64_t *evidence)
{
	const TreeRecord *record = &worker->run->record;
	TreeWalPosition proven = evidence_next(worker->run);
	TreeRecord change = {
		.tree = record->tree, .root = record->root, .removal_epoch = proven.epoch, .removal_lsn = proven.lsn};
	TreeStatus status = tree_record_update(worker->client.tree, &change);

	*evidence = proven.lsn;
	if (status == TREE_OK)
		tree_removal_proven(worker->tree, &proven);
	return status;
}

/* The rows of some of the batch's entries are dead: chooses them, and begins to mark them.  Returns how many. */
static int
choose_dead(SimWorker *worker, const TreeBatch *batch, uint64_t evidence, uint32_t *ids, TreeDead *dead)
{
	SimRun *run = worker->run;
	int count = 0;

	for (int i = 0; i < batch->count && count < MARKS_MOST; i++)
	{
		uint32_t id = sim_id_of_tid(run, batch->entries[i].block, batch->entries[i].offset);
		SimEntry *entry = &run->entries[id];

		if (entry->inserting > 0 || entry->removing > 0 || entry->dead || scheduler_random(2) == 0)
			continue;
		ids[count] = id;
		dead[count++] = (TreeDead){batch->entries[i].block, batch->entries[i].offset, batch->entries[i].cell};
		worker->looks[id] = sim_history_begin(run, id, HISTORY_REMOVE);
		entry->ops[worker->looks[id]].mark = entry->ops[worker->looks[id]].maybe = true;
		entry->ops[worker->looks[id]].evidence = evidence;
		entry->dead = entry->marked = true;
	}
	return count;
}

/* Marks entries as dead where a scan from a number on finds some first. */
static void
mark_dead(SimWorker *worker, uint64_t number)
{
	SimRun *run = worker->run;
	TreeDead dead[MARKS_MOST];
	uint32_t ids[MARKS_MOST];
	const TreeBatch *batch;
	TreeWalPosition wal;
	TreeBound lower;
	int count, marked = 0;
	TreeStatus status;

	keyspace_bound(run->space, &number, -1, &lower);
	status = tree_scan_seek(worker->scan, TREE_FORWARD, &lower, NULL);
	sim_maybe_stop(worker);
	if (status == TREE_OK)
		status = tree_scan_next(worker->scan, &batch);
	if (status == TREE_OK)
	{
		wal = evidence_next(run);
		count = choose_dead(worker, batch, wal.lsn, ids, dead);
		status = tree_mark_dead(worker->tree, &batch->leaf, dead, count, &wal, &marked);
		for (int i = 0; i < count; i++)
			sim_history_end(run, ids[i], worker->looks[ids[i]]);
	}
	worker->client.stop = false;
	sim_require_free(worker, "mark");
	if (status != TREE_OK && status != TREE_END)
		sim_settle(worker, status, "mark");
}

/* ---- removals ---- */

static bool
is_victim(void *argument, uint32_t block, uint16_t offset)
{
	const SimWorker *worker = argument;

	return worker->victims[sim_id_of_tid(worker->run, block, offset)] != 0;
}

/* Finds what earlier incarnations have left free, if there is one instance. */
static void
reclaim(SimWorker *worker)
{
	uint64_t bytes = 0;
	TreeStatus status = TREE_OK;

	while (status == TREE_OK)
		status = tree_reclaim_next(worker->tree, &bytes);
	if (status != TREE_END)
		sim_settle(worker, status, "reclaim");
	worker->run->reclaimed += bytes;
}

static void
merge(SimWorker *worker, const TreeVacuum *vacuum)
{
	TreeMergeCounts counts = {0};
	TreeMerge *walk;
	TreeStatus status = tree_merge_open(worker->tree, vacuum, &walk);

	if (status != TREE_OK)
	{
		sim_settle(worker, status, "merge");
		return;
	}
	while (status != TREE_END)
	{
		status = tree_merge_next(walk, &counts);
		if (status != TREE_OK && status != TREE_END)
		{
			sim_settle(worker, status, "merge");
			break;
		}
	}
	tree_merge_close(walk);
	worker->run->merged += counts.leaves + counts.inner_nodes;
	worker->run->folded += counts.folded;
}

/* Finds unverified leaves, looks at them for a while, and heals them. */
static void
heal(SimWorker *worker, const TreeBound *low, const TreeBound *high)
{
	/* As of a leaf that was never stamped: the next insert brings the doubt back. */
	static const TreeWalPosition never = {0};
	TreeStatus status = tree_scan_seek(worker->scan, TREE_FORWARD, low, high);
	TreeLeafSeen leaves[HEAL_LEAVES];
	const TreeBatch *batch;
	int count = 0;
	bool healed;

	tree_scan_unverified(worker->scan, true);
	sim_maybe_stop(worker);
	while (status == TREE_OK && count < HEAL_LEAVES)
	{
		status = tree_scan_next(worker->scan, &batch);
		if (status == TREE_OK && batch->unverified)
			leaves[count++] = batch->leaf;
	}
	tree_scan_unverified(worker->scan, false);
	if (!explorer_is_on())
		coroutine_sleep(scheduler_random(HEAL_NANOSECONDS));
	if (status == TREE_END)
		status = TREE_OK;
	for (int i = 0; i < count && status == TREE_OK; i++)
	{
		status = tree_heal_leaf(worker->tree, &leaves[i], NULL, 0, &never, &healed);
		worker->run->healed += healed;
	}
	worker->client.stop = false;
	sim_require_free(worker, "heal");
	if (status != TREE_OK)
		sim_settle(worker, status, "heal");
}

void
sim_heal(SimWorker *worker, uint64_t low, uint64_t high)
{
	TreeBound lower, upper;

	keyspace_bound(worker->run->space, &low, -1, &lower);
	keyspace_bound(worker->run->space, &high, 1, &upper);
	heal(worker, &lower, &upper);
}

static void
begin_removal(SimWorker *worker, uint32_t id, uint64_t evidence)
{
	worker->victims[id] = 1;
	worker->looks[id] = sim_history_begin(worker->run, id, HISTORY_REMOVE);
	worker->run->entries[id].ops[worker->looks[id]].evidence = evidence;
}

/* Chooses entries that nobody inserts: a few, or with `merge` all of a range, or the most of it. */
static uint32_t
choose_victims(SimWorker *worker, uint64_t evidence)
{
	SimRun *run = worker->run;
	uint32_t chosen = 0;
	bool thin = run->plan.merge && (!run->plan.doubts || scheduler_random(2) == 0);
	uint32_t from = (uint32_t) scheduler_random(run->plan.entries);
	uint32_t count = run->plan.merge ? (uint32_t) scheduler_random(run->plan.entries)
	                                 : 1 + (uint32_t) scheduler_random(VICTIMS_MOST);

	memset(worker->victims, 0, run->plan.entries);
	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t id = run->plan.merge ? run->by_rank[(from + i) % run->plan.entries] : sim_random_id(run);

		if (run->entries[id].inserting > 0 || run->entries[id].removing > 0 ||
		    (thin && scheduler_random(THIN_ONE_OF) == 0))
			continue;
		sim_row_ends(run, id);
		begin_removal(worker, id, evidence);
		chosen++;
	}
	return chosen;
}

/* Removes what was chosen, by a walk as VACUUM's. */
static void
remove_victims(SimWorker *worker, uint32_t chosen)
{
	SimRun *run = worker->run;
	TreeVacuumCounts counts = {0};
	TreeVacuum *vacuum;
	TreeStatus status;

	reclaim(worker);
	status = tree_vacuum_open(worker->tree, &vacuum);

	if (status != TREE_OK)
		sim_fail(run, "vacuum: %s", tree_status_name(status));
	sim_maybe_stop(worker);
	while (status == TREE_OK || status == TREE_STOPPED)
	{
		status = tree_vacuum_next(vacuum, is_victim, worker, &counts);
		worker->client.stop = false;
	}
	sim_require_free(worker, "vacuum");
	if (status != TREE_END)
		sim_settle(worker, status, "vacuum");
	if (counts.removed > chosen)
		sim_fail(run, "vacuum removed %" PRIu64 " of %u", counts.removed, chosen);
	for (uint32_t id = 0; id < run->plan.entries; id++)
		if (worker->victims[id] != 0)
		{
			HistoryOp *op = sim_history_end(run, id, worker->looks[id]);

			op->maybe = status != TREE_END;
			/* A chain that was lost behind its WRITE is done again, and finds nothing. */
			op->known =
				chosen == 1 && status == TREE_END && !sim_chains_are_lost(run) && !run->entries[id].marked;
			op->was_there = counts.removed != 0;
			run->entries[id].left = run->entries[id].left && status != TREE_END;
			/* What was marked is gone. */
			if (run->entries[id].dead && status == TREE_END)
				run->entries[id].dead = run->entries[id].marked = false;
		}
	/* What one has emptied another one may merge. */
	if (run->plan.merge && status == TREE_END && (explorer_is_on() || scheduler_random(2) == 0))
		merge(worker, vacuum);
	tree_vacuum_close(vacuum);
}

void
sim_remove(SimWorker *worker, const uint32_t *ids, uint32_t count)
{
	uint64_t evidence = 0;

	if (worker->run->plan.readers > 0 && prove_removal(worker, &evidence) != TREE_OK)
		sim_fail(worker->run, "removal: %s", tree_detail(worker->client.tree));
	memset(worker->victims, 0, worker->run->plan.entries);
	for (uint32_t i = 0; i < count; i++)
		begin_removal(worker, ids[i], evidence);
	remove_victims(worker, count);
}

static void
remove_some(SimWorker *worker)
{
	uint64_t evidence;
	TreeStatus status = prove_removal(worker, &evidence);

	if (status == TREE_OK)
		remove_victims(worker, choose_victims(worker, evidence));
	else
		sim_settle(worker, status, "evidence of a removal");
}

/* A walk that removes nothing, and so has nothing to prove. */
static void
walk_alone(SimWorker *worker)
{
	memset(worker->victims, 0, worker->run->plan.entries);
	remove_victims(worker, 0);
}

/* The cache has room for trees as small as these: where the memory node may descend it often has lost what it had. */
static void
maybe_forget(const SimWorker *worker)
{
	if (worker->run->plan.techniques.chosen.offload != TREE_OFFLOAD_NEVER && scheduler_random(2) == 0)
		cache_drop_tree(worker->client.tree->shared, worker->tree->tree);
}

static void
add(SimWorker *worker, uint32_t id)
{
	bool unique = worker->run->plan.unique;
	bool many = scheduler_random(unique ? 3 : 12) == 0;

	if (unique && many)
		sim_insert_many_unique(worker);
	else if (unique)
		sim_insert_unique(worker, id);
	else if (many)
		sim_insert_many(worker);
	else
		sim_insert(worker, id);
}

static void
operation(SimWorker *worker)
{
	const SimRun *run = worker->run;
	uint64_t choice = scheduler_random(100);
	TreeDirection direction = scheduler_random(2) == 0 ? TREE_FORWARD : TREE_BACKWARD;
	uint32_t id = sim_random_id(run);
	uint64_t number = run->entries[id].key.number;

	if (choice >= PART_INSERT && choice < PART_LOOKUP)
		maybe_forget(worker);
	if (choice < PART_INSERT)
		add(worker, id);
	else if (choice < PART_LOOKUP && direction == TREE_FORWARD)
		find_number(worker, number);
	else if (choice < PART_LOOKUP)
		sim_scan_numbers(worker, number, number, TREE_FORWARD);
	else if (choice < PART_RANGE)
		sim_scan_numbers(worker, number, number + scheduler_random(run->plan.numbers / 4 + 1), direction);
	else if (choice < PART_WHOLE)
		sim_scan_all(worker, direction);
	else if (run->plan.merge && scheduler_random(3) == 0)
		heal(worker, NULL, NULL);
	else if (run->plan.marks && scheduler_random(3) == 0)
		mark_dead(worker, number);
	else if (run->plan.merge && scheduler_random(3) == 0)
		walk_alone(worker);
	else
		remove_some(worker);
}

/* ---- workers ---- */

static void
worker_open(SimWorker *worker, SimRun *run, uint32_t slot, bool reader)
{
	TreeStatus status;

	*worker = (SimWorker){.run = run, .slot = slot, .coroutine = coroutine_current(), .reader = reader};
	if (reader)
		sim_reader_open(&worker->client, &run->cluster, slot);
	else
		sim_client_open(&worker->client, &run->cluster, slot, slot % run->plan.domains);
	worker->victims = calloc(run->plan.entries, 1);
	worker->seen = calloc(run->plan.entries, 1);
	worker->looks = calloc(run->plan.entries, sizeof(uint32_t));
	worker->batch = calloc(1, sizeof(SimBatch));
	worker->inserted = calloc(run->plan.entries, sizeof(uint64_t));
	REQUIRE(worker->victims != NULL && worker->seen != NULL && worker->looks != NULL &&
	            worker->batch != NULL && worker->inserted != NULL,
	        "no memory");
	worker->client.tree->far = true;
	status = tree_open(worker->client.tree, run->record.tree, run->record.root, &run->space->format,
	                   keyspace_compare, (void *) (uintptr_t) run->space, &worker->tree);
	REQUIRE(status == TREE_OK, "tree_open: %s", tree_status_name(status));
	if (run->plan.doubts)
		worker->tree->geometry.ends = &ends;
	status = tree_scan_open(worker->tree, &worker->scan);
	REQUIRE(status == TREE_OK, "tree_scan_open: %s", tree_status_name(status));
	worker->ready = true;
}

void
sim_worker_open(SimWorker *worker, SimRun *run, uint32_t slot)
{
	worker_open(worker, run, slot, false);
}

void
sim_reader_worker_open(SimWorker *worker, SimRun *run, uint32_t slot)
{
	worker_open(worker, run, slot, true);
}

void
sim_worker_body(void *argument)
{
	SimWorker *worker = argument;

	sim_worker_open(worker, worker->run, worker->slot);
	for (uint32_t i = 0; i < worker->run->plan.operations; i++)
		operation(worker);
	worker->done = true;
}

void
sim_worker_leave(SimWorker *worker)
{
	TreeLeafCounts leaves;

	if (worker->reader)
		sim_reader_require_idle(worker);
	tree_client_leaf_counts(worker->client.tree, &leaves);
	worker->run->leaf_hits += leaves.hits;
	tree_scan_close(worker->scan);
	tree_close(worker->tree);
	sim_client_leave(&worker->client);
	worker->left = true;
}

void
sim_worker_close(SimWorker *worker)
{
	if (!worker->left && (!coroutine_has_ended(worker->coroutine) || worker->done))
		sim_worker_leave(worker);
	sim_client_bury(&worker->client);
	free(worker->victims);
	free(worker->seen);
	free(worker->looks);
	free(worker->batch);
	free(worker->inserted);
}
