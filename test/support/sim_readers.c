/*
 * sim_readers.c
 *		Clients of a simulated run that only read, as the sessions of a hot standby (doc/internals/standby.md).  See sim_work.h.
 *
 * Their server has replayed the primary's WAL up to some point, so far as the evidence for removals goes.  A row is seen whose entry was
 * inserted for certain before the look began, if no removal behind that has its evidence at that point or before it, when the look has
 * ended: its entry must be found.  What makes that so is what standby_believe() goes by: the leaves' own word, or the tree's record and a
 * wait for replay.
 */
#include <inttypes.h>

#include "rdma/base/transport.h"
#include "require.h"
#include "sim_work.h"
#include "tree/internal.h"

/* Operations of a hundred: lookups, ranges, whole scans, many lookups together; the others try to change something. */
#define PART_LOOKUP 40u
#define PART_RANGE 65u
#define PART_WHOLE 75u
#define PART_MANY 97u
/* Numbers that are looked up together, at most. */
#define MANY_MOST 8u
/* Leaves that are read together for them. */
#define MANY_LEAVES 4
/* One look in so many finds that more is replayed. */
#define REPLAY_ONE_IN 3u
/* Between two operations, at most. */
#define REST_NANOSECONDS (60 * NANOSECONDS_PER_US)
/* As many for each operation that a worker has in a life. */
#define OPERATIONS_TIMES 2u

/* ---- what must be found ---- */

/* The last insert of an entry that has taken effect for certain, by its call; 0: none has. */
static uint64_t
surely_inserted(const SimEntry *entry)
{
	for (uint32_t i = entry->count; i-- > 0;)
	{
		const HistoryOp *op = &entry->ops[i];

		if (op->kind == HISTORY_INSERT && op->end != UINT64_MAX && !op->maybe)
			return op->call;
	}
	return 0;
}

/* Whether the entry was removed behind the insert that was called then, as who has replayed up to there knows. */
static bool
known_to_be_removed(const SimEntry *entry, uint64_t inserted, uint64_t replayed)
{
	for (uint32_t i = entry->count; i-- > 0 && entry->ops[i].call > inserted;)
	{
		const HistoryOp *op = &entry->ops[i];

		if (op->kind == HISTORY_REMOVE && op->evidence != 0 && op->evidence <= replayed)
			return true;
	}
	return false;
}

/* Whether the entry may have been in the tree since a moment: an insert was called, and no removal had ended by then. */
static bool
may_be_there(const SimEntry *entry, uint64_t since)
{
	for (uint32_t i = entry->count; i-- > 0;)
	{
		const HistoryOp *op = &entry->ops[i];

		if (op->kind == HISTORY_INSERT)
			return true;
		if (op->kind == HISTORY_REMOVE && !op->mark && !op->maybe && op->end < since)
			return false;
	}
	return false;
}

/* ---- a look ---- */

/* Begins to look at entries; which of them is said by want().  Returns the moment. */
static uint64_t
look_begin(SimWorker *reader)
{
	SimRun *run = reader->run;

	for (uint32_t rank = 0; rank < run->plan.entries; rank++)
		reader->seen[rank] = 0, reader->inserted[rank] = 0;
	return ++run->moment;
}

/* What must be found of the ranks [from, to). */
static void
want(SimWorker *reader, uint32_t from, uint32_t to)
{
	const SimRun *run = reader->run;

	if (from < to)
		explorer_access(EXPLORER_HISTORY, from, to, EXPLORER_READ);
	for (uint32_t rank = from; rank < to; rank++)
		reader->inserted[rank] = surely_inserted(&run->entries[run->by_rank[rank]]);
}

/* The reader's server goes on with replay. */
static void
replay(SimWorker *reader)
{
	if (!explorer_is_on() && scheduler_random(REPLAY_ONE_IN) == 0)
		reader->replayed += scheduler_random(reader->run->evidence - reader->replayed + 1);
}

/* As standby_believe(): by the leaves alone, or by the record and a wait for as much as it tells of. */
static TreeStatus
believe(SimWorker *reader)
{
	SimRun *run = reader->run;
	TreeRecord record;
	TreeSeen seen;
	TreeStatus status;

	replay(reader);
	tree_seen(reader->tree, &seen);
	if (reader->believed == reader->client.incarnation && seen.removed.lsn <= reader->replayed)
		run->readers.by_leaves++;
	else
	{
		status =
			tree_record_at_home(reader->client.tree, run->record.tree, tree_home(run->record.root), &record);
		if (status != TREE_OK)
			return status;
		replay(reader);
		run->readers.waits += record.removal_lsn > reader->replayed;
		if (record.removal_lsn > reader->replayed)
			reader->replayed = record.removal_lsn;
		reader->believed = reader->client.incarnation;
	}
	tree_seen_forget(reader->tree);
	return TREE_OK;
}

/* All has been found that the reader's server sees, and nothing that was not in the tree since the look began. */
static void
judge(SimWorker *reader, uint64_t began)
{
	SimRun *run = reader->run;

	run->readers.reads++;
	for (uint32_t rank = 0; rank < run->plan.entries; rank++)
	{
		const SimEntry *entry = &run->entries[run->by_rank[rank]];
		uint64_t inserted = reader->inserted[rank];

		if (reader->seen[rank] != 0 && !may_be_there(entry, began))
			sim_fail(run, "a reader found entry %u, which was not there any more", rank);
		if (reader->seen[rank] != 0 || inserted == 0)
			continue;
		run->readers.lacked++;
		if (!known_to_be_removed(entry, inserted, reader->replayed))
			sim_fail(run, "a reader lacks entry %u (number %" PRIu64 "), and is not told so", rank,
			         entry->key.number);
	}
}

/* What may happen to a reader: it is stopped, a memory node is away, or the primary has attached anew. */
static void
settle(SimWorker *reader, TreeStatus status)
{
	const SimPlan *plan = &reader->run->plan;

	if (status != TREE_FENCED || plan->crashes == 0)
		sim_settle(reader, status, "a reader");
	reader->client.stop = false;
	(void) tree_client_trouble(reader->client.tree);
}

static void
look_end(SimWorker *reader, uint64_t began, TreeStatus status)
{
	if (status == TREE_END)
		status = believe(reader);
	if (status == TREE_OK)
		judge(reader, began);
	else
		settle(reader, status);
}

/* ---- operations ---- */

void
sim_reader_scan_numbers(SimWorker *reader, uint64_t low, uint64_t high, TreeDirection direction)
{
	const SimRun *run = reader->run;
	uint32_t from = sim_rank_of_number(run, low), to = sim_rank_of_number(run, high + 1);
	uint64_t began = look_begin(reader);
	TreeBound lower, upper;

	want(reader, from, to);
	keyspace_bound(run->space, &low, -1, &lower);
	keyspace_bound(run->space, &high, 1, &upper);
	look_end(reader, began,
	         sim_scan_take(reader, from, to, direction == TREE_FORWARD ? &lower : &upper,
	                       direction == TREE_FORWARD ? &upper : &lower, direction));
}

void
sim_reader_scan_all(SimWorker *reader, TreeDirection direction)
{
	uint32_t entries = reader->run->plan.entries;
	uint64_t began = look_begin(reader);

	want(reader, 0, entries);
	look_end(reader, began, sim_scan_take(reader, 0, entries, NULL, NULL, direction));
}

/* Leaves where the lookups of ascending numbers begin are read together. */
static TreeStatus
fetch(SimWorker *reader, const uint64_t *numbers, uint32_t count)
{
	TreeStatus status = TREE_OK;
	bool more = true;

	for (uint32_t i = 0; i < count && more && status == TREE_OK; i++)
	{
		TreeBound lower;

		keyspace_bound(reader->run->space, &numbers[i], -1, &lower);
		status = tree_scan_seek_ahead(reader->scan, TREE_FORWARD, &lower, MANY_LEAVES, &more);
	}
	return status == TREE_OK ? tree_scan_fetch_ahead(reader->scan) : status;
}

/* Looks up ascending numbers, one after the other, as `= ANY` does. */
static void
look_up_many(SimWorker *reader)
{
	const SimRun *run = reader->run;
	uint64_t began = look_begin(reader);
	uint32_t count = 2 + (uint32_t) scheduler_random(MANY_MOST - 1);
	uint64_t step = 1 + scheduler_random(run->plan.numbers / MANY_MOST + 1);
	uint64_t numbers[MANY_MOST];
	TreeStatus status;

	for (uint32_t i = 0; i < count; i++)
	{
		numbers[i] = i == 0 ? scheduler_random(run->plan.numbers) : numbers[i - 1] + step;
		want(reader, sim_rank_of_number(run, numbers[i]), sim_rank_of_number(run, numbers[i] + 1));
	}
	status = fetch(reader, numbers, count);
	if (status == TREE_OK)
		status = TREE_END;
	for (uint32_t i = 0; i < count && status == TREE_END; i++)
	{
		TreeBound lower, upper;

		keyspace_bound(run->space, &numbers[i], -1, &lower);
		keyspace_bound(run->space, &numbers[i], 1, &upper);
		status = sim_scan_take(reader, sim_rank_of_number(run, numbers[i]),
		                       sim_rank_of_number(run, numbers[i] + 1), &lower, &upper, TREE_FORWARD);
	}
	tree_scan_forget_ahead(reader->scan);
	look_end(reader, began, status);
}

/* Its channel takes no chain that changes anything, and the memory node no such call. */
static void
try_to_change(SimWorker *reader)
{
	const TreeRecord *record = &reader->run->record;
	TreeRecord change = {
		.tree = record->tree, .root = record->root, .removal_epoch = UINT32_MAX, .removal_lsn = 1};
	FabricEndpoint *endpoint = reader->client.tree->options.endpoints[tree_home(record->root)];
	uint64_t word = 0;
	FabricOp write = {.opcode = FABRIC_WRITE,
	                  .region = FABRIC_NODES,
	                  .length = sizeof(word),
	                  .offset = pointer_offset(record->root),
	                  .buffer = &word};

	if (fabric_execute(endpoint, &write, 1) == FABRIC_OK ||
	    tree_record_update(reader->client.tree, &change) == TREE_OK)
		sim_fail(reader->run, "a reader has changed something");
	(void) tree_client_trouble(reader->client.tree);
	reader->run->readers.refused++;
}

void
sim_reader_require_idle(const SimWorker *reader)
{
	TreeCounters counters;

	tree_client_counters(reader->client.tree, &counters);
	if (counters.written_bytes != 0 || counters.lock_acquisitions != 0 || counters.parent_posts != 0)
		sim_fail(reader->run, "a reader has written or locked");
	for (uint32_t i = 0; i < reader->run->plan.nodes; i++)
	{
		FabricCounters channel;

		if (reader->client.tree->options.endpoints[i] == NULL)
			continue;
		fabric_counters(reader->client.tree->options.endpoints[i], &channel);
		if (channel.writes != 0 || channel.atomics != 0)
			sim_fail(reader->run, "a reader's channel has written");
	}
}

static void
operation(SimWorker *reader)
{
	const SimRun *run = reader->run;
	uint64_t choice = scheduler_random(100);
	TreeDirection direction = scheduler_random(2) == 0 ? TREE_FORWARD : TREE_BACKWARD;
	uint64_t number = run->entries[sim_random_id(run)].key.number;

	if (choice < PART_LOOKUP)
		sim_reader_scan_numbers(reader, number, number, direction);
	else if (choice < PART_RANGE)
		sim_reader_scan_numbers(reader, number, number + scheduler_random(run->plan.numbers / 4 + 1),
		                        direction);
	else if (choice < PART_WHOLE)
		sim_reader_scan_all(reader, direction);
	else if (choice < PART_MANY)
		look_up_many(reader);
	else
		try_to_change(reader);
}

void
sim_reader_body(void *argument)
{
	SimWorker *reader = argument;
	SimRun *run = reader->run;
	uint32_t left = OPERATIONS_TIMES * run->plan.operations * (1 + run->plan.crashes);

	sim_reader_worker_open(reader, run, reader->slot);
	while (!run->over)
	{
		coroutine_sleep(1 + scheduler_random(REST_NANOSECONDS));
		if (left == 0 || !sim_reader_follow(&reader->client))
			continue;
		operation(reader);
		left--;
	}
	/* Nobody changes the tree any more. */
	while (!sim_reader_follow(&reader->client))
		coroutine_sleep(REST_NANOSECONDS);
	reader->replayed = run->evidence;
	sim_reader_scan_all(reader, TREE_FORWARD);
	reader->done = true;
}
