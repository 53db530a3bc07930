/*
 * test_loop.c
 *		Fails operation N of the fabric, for N = 1, 2, ... until a run meets none: lost, late, and with the process's death;
 *		over an insert, a split, the root's split, a removal, a bulk load and a scan.
 *
 * After each run the tree is checked, what was acknowledged is there, and the same work can be done again.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "support/checked_tree.h"

/* More operations than any of the works below takes; a loop that comes here does not end. */
#define OPERATIONS_MAX 2000

/* What is done, on a tree that was prepared for it. */
typedef struct Work
{
	const char *name;
	void (*prepare)(CheckedTree *f);
	TreeStatus (*run)(CheckedTree *f);
	/* The entries that may or may not be there after a run that was not acknowledged: block numbers [first, last]. */
	uint32_t first_block;
	uint32_t last_block;
} Work;

/* TIDs of the work itself begin here. */
#define WORK_TID 100000

static TreeStatus
insert_quietly(CheckedTree *f, uint64_t number, uint64_t tid)
{
	KeyEntry entry = entry_of(number, tid);
	TreeWalPosition wal = {.epoch = 1, .lsn = 2000};
	KeyImage image;
	TreeKey key;
	bool hit;

	keyspace_key(f->space, &entry, &image, &key);
	return tree_insert(f->tree, &key, &wal, &hit);
}

static void
prepare_some(CheckedTree *f)
{
	for (uint64_t i = 0; i < 20; i++)
		insert(f, i * 10, i);
}

static TreeStatus
run_insert(CheckedTree *f)
{
	return insert_quietly(f, 55, WORK_TID);
}

/* The root is a full leaf. */
static void
prepare_full_root(CheckedTree *f)
{
	for (uint64_t i = 0; i < f->tree->geometry.leaf_cells; i++)
		insert(f, i * 10, i);
}

/* Two leaves, the right one full. */
static void
prepare_full_leaf(CheckedTree *f)
{
	for (uint64_t i = 0; i < 2 * f->tree->geometry.leaf_cells - 3; i++)
		insert(f, i * 10, i);
}

/* One leaf, nearly full: numbers that are there many times, by the one or the other in postings. */
static void
prepare_duplicates(CheckedTree *f)
{
	for (uint64_t i = 0; i < f->tree->geometry.leaf_cells * 9 / 8; i++)
		insert(f, 100 + i % 3 * 300, i);
}

/* Enough to split a leaf for certain, and to post to the parent. */
static TreeStatus
run_inserts(CheckedTree *f)
{
	TreeStatus status = TREE_OK;

	for (uint64_t i = 0; i < 40 && status == TREE_OK; i++)
		status = insert_quietly(f, 305 + i * 10, WORK_TID + i);
	return status;
}

/* A level-1 node that is full: the last insert of a leaf's split splits it, and with it the root. */
static void
prepare_full_inner(CheckedTree *f)
{
	TreeStatistics statistics;
	uint64_t i = 0;

	do
	{
		for (int n = 0; n < 8; n++, i++)
			insert(f, i * 10, i);
		require_ok(tree_estimate(f->tree, &statistics));
	} while (statistics.leaves < f->tree->geometry.inner_cells);
}

static TreeStatus
run_vacuum(CheckedTree *f)
{
	TreeVacuumCounts counts;
	TreeVacuum *walk;
	TreeStatus status;

	memset(&counts, 0, sizeof(counts));
	status = tree_vacuum_open(f->tree, &walk);
	if (status != TREE_OK)
		return status;
	while ((status = tree_vacuum_next(walk, is_dead, NULL, &counts)) == TREE_OK)
		;
	tree_vacuum_close(walk);
	return status == TREE_END ? TREE_OK : status;
}

static void
prepare_nothing(CheckedTree *f)
{
	assert_int_equal(f->model.count, 0);
}

static TreeStatus
run_bulk(CheckedTree *f)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	TreeBulk *bulk;
	TreeStatus status = tree_bulk_open(f->tree, &wal, &bulk);

	if (status != TREE_OK)
		return status;
	for (uint64_t i = 0; i < 400 && status == TREE_OK; i++)
	{
		KeyEntry entry = entry_of(i * 10, WORK_TID + i);
		KeyImage image;
		TreeKey key;

		keyspace_key(f->space, &entry, &image, &key);
		status = tree_bulk_add(bulk, &key);
	}
	if (status == TREE_OK)
		return tree_bulk_finish(bulk);
	tree_bulk_abandon(bulk);
	return status;
}

static TreeStatus
run_scan(CheckedTree *f)
{
	const TreeBatch *batch;
	TreeStatus status = TREE_OK;
	uint64_t seen = 0;

	for (int direction = 0; direction < 2; direction++)
	{
		seen = 0;
		status = tree_scan_seek(f->scan, direction == 0 ? TREE_FORWARD : TREE_BACKWARD, NULL, NULL);
		while (status == TREE_OK && (status = tree_scan_next(f->scan, &batch)) == TREE_OK)
			seen += (uint64_t) batch->count;
		if (status != TREE_END)
			return status;
		assert_int_equal(seen, f->model.count);
	}
	return TREE_OK;
}

static const Work works[] = {
	{"insert", prepare_some, run_insert, WORK_TID / 200, UINT32_MAX},
	{"root split", prepare_full_root, run_inserts, WORK_TID / 200, UINT32_MAX},
	{"leaf split", prepare_full_leaf, run_inserts, WORK_TID / 200, UINT32_MAX},
	{"merge", prepare_duplicates, run_inserts, WORK_TID / 200, UINT32_MAX},
	{"removal", prepare_full_leaf, run_vacuum, 0, 0},
	{"removal from postings", prepare_duplicates, run_vacuum, 0, 0},
	{"bulk load", prepare_nothing, run_bulk, WORK_TID / 200, UINT32_MAX},
	{"scan", prepare_full_leaf, run_scan, UINT32_MAX, 0},
};

/* ---- judging ---- */

typedef struct Verdict
{
	CheckedTree *f;
	const Work *work;
	uint64_t kept; /* of the model's, found */
	uint64_t more; /* of the work's own, found */
	uint64_t problems;
} Verdict;

static void
report(void *argument, const char *message)
{
	print_error("%s\n", message);
}

/* Every entry is the model's or the work's. */
static void
judge_entry(void *argument, const TreeKey *key, bool unverified)
{
	Verdict *verdict = argument;
	KeyEntry entry = {
		.number = keyspace_number(verdict->f->space, key), .block = key->block, .offset = key->offset};

	if (key_model_has(&verdict->f->model, &entry))
		verdict->kept++;
	else if (entry.block >= WORK_TID / 200)
		verdict->more++;
	else
		verdict->problems++;
}

/* Entries of the model that the work may have removed. */
static uint64_t
removable(const CheckedTree *f, const Work *work)
{
	uint64_t count = 0;

	for (uint64_t i = 0; work->run == run_vacuum && i < f->model.count; i++)
		count += is_dead(NULL, f->model.entries[i].block, f->model.entries[i].offset);
	return count;
}

static void
judge(CheckedTree *f, const Work *work, bool acknowledged, uint64_t n)
{
	Verdict verdict = {.f = f, .work = work};
	TreeStatistics statistics;
	uint64_t problems;
	uint64_t own = work->run == run_insert    ? 1
	               : work->run == run_inserts ? 40
	               : work->run == run_bulk    ? 400
	                                          : 0;

	require_ok(tree_check(f->tree, report, judge_entry, &verdict, &statistics, &problems));
	if (problems != 0 || verdict.problems != 0)
		fail_msg("%s, operation %llu: %llu problems, %llu foreign entries", work->name,
		         (unsigned long long) n, (unsigned long long) problems,
		         (unsigned long long) verdict.problems);
	assert_true(verdict.kept <= f->model.count);
	assert_true(verdict.kept >= f->model.count - removable(f, work));
	assert_true(verdict.more <= own);
	if (!acknowledged)
		return;
	assert_int_equal(verdict.more, own);
	assert_int_equal(verdict.kept, f->model.count - removable(f, work));
}

/* ---- loops ---- */

/* The channel dies under operation N, which is lost or comes late. */
static void
loop_doubt(const Work *work, KeySpaceKind kind, bool late, uint64_t step)
{
	uint64_t n = 0;
	bool met = true;

	for (n = 1; met && n < OPERATIONS_MAX; n += step * TEST_SLOWNESS)
	{
		FabricFaultPlan plan = {.seed = n};
		TreeStatus status;
		CheckedTree f;

		checked_tree_open(&f, kind);
		work->prepare(&f);
		if (late)
			plan.late_operation = n;
		else
			plan.fail_operation = n;
		assert_int_equal(fabric_fault_set(client.endpoints[0], &plan), FABRIC_OK);
		status = work->run(&f);
		met = fabric_fault_operations(client.endpoints[0]) >= n;
		assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
		assert_int_equal(instance.environment->slots[0].holds, 0);
		judge(&f, work, status == TREE_OK, n);
		/* One lost chain is no reason to give up. */
		if (status != TREE_OK)
			fail_msg("%s, operation %llu: %s: %s", work->name, (unsigned long long) n,
			         tree_status_name(status), tree_detail(client.tree));
		if (work->run != run_bulk)
			require_ok(work->run(&f));
		judge(&f, work, true, n);
		checked_tree_close(&f);
	}
	assert_true(n > 2 && n < OPERATIONS_MAX);
}

/* The process dies behind operation N, or inside it; the instance attaches anew. */
static uint64_t
loop_death(const Work *work, KeySpaceKind kind, uint32_t line, uint64_t step)
{
	uint64_t n;
	bool met = true;

	for (n = 1; met && n < OPERATIONS_MAX; n += step * TEST_SLOWNESS)
	{
		CheckedTree f;
		pid_t child;
		int state;

		checked_tree_open(&f, kind);
		work->prepare(&f);
		tree_scan_close(f.scan);
		tree_close(f.tree);
		assert_int_equal(test_client_close(&client), TREE_OK);
		fflush(NULL);
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
		{
			FabricFaultPlan plan = {.seed = n, .die_operation = n, .die_line = line};

			test_client_open(&client, &instance, 1);
			if (tree_open(client.tree, f.record.tree, f.record.root, &f.space->format, keyspace_compare,
			              (void *) f.space, &f.tree) != TREE_OK ||
			    tree_scan_open(f.tree, &f.scan) != TREE_OK ||
			    fabric_fault_set(client.endpoints[0], &plan) != FABRIC_OK)
				_exit(3);
			_exit(work->run(&f) == TREE_OK ? 0 : 2);
		}
		assert_int_equal(waitpid(child, &state, 0), child);
		met = WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL;
		assert_true(met || (WIFEXITED(state) && WEXITSTATUS(state) == 0));
		/* As after a crash of the instance: its shared memory begins anew. */
		memset(instance.shared, 0, tree_shared_bytes(&instance.options));
		instance.shared = tree_shared_initialize(instance.shared, &instance.options);
		test_instance_attach(&instance);
		memset(instance.environment, 0, sizeof(*instance.environment));
		test_client_open(&client, &instance, 0);
		require_ok(tree_open(client.tree, f.record.tree, f.record.root, &f.space->format, keyspace_compare,
		                     (void *) f.space, &f.tree));
		require_ok(tree_scan_open(f.tree, &f.scan));
		/* A process that dies while it loads a tree leaves none: no other process has it, and it is dropped. */
		if (work->run != run_bulk || !met)
			judge(&f, work, !met, n);
		if (work->run != run_bulk)
		{
			require_ok(work->run(&f));
			judge(&f, work, true, n);
		}
		checked_tree_close(&f);
	}
	assert_true(n < OPERATIONS_MAX);
	return n;
}

static void
loop_lost(void **state)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
	{
		loop_doubt(&works[i], KEYSPACE_16, false, 1);
		loop_doubt(&works[i], KEYSPACE_64_FULL, false, 1);
	}
}

static void
loop_late(void **state)
{
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
	{
		loop_doubt(&works[i], KEYSPACE_16, true, 1);
		loop_doubt(&works[i], KEYSPACE_64_OVERFLOW, true, 1);
	}
}

static uint64_t
inner_splits(void)
{
	TreeCounters counters;

	tree_client_counters(client.tree, &counters);
	return counters.inner_splits + counters.root_splits;
}

static void
loop_inner_split(void **state)
{
	uint64_t before = inner_splits();
	static const Work work = {"inner split", prepare_full_inner, run_inserts, WORK_TID / 200, UINT32_MAX};

	loop_doubt(&work, KEYSPACE_64_FULL, false, 2);
	assert_true(inner_splits() > before);
}

static void
loop_deaths(void **state)
{
	for (size_t i = 0; i + 1 < sizeof(works) / sizeof(works[0]); i++)
	{
		(void) loop_death(&works[i], KEYSPACE_16, 0, 1);
		(void) loop_death(&works[i], KEYSPACE_16, 5, 1);
		(void) loop_death(&works[i], KEYSPACE_64_FULL, 0, 3);
		(void) loop_death(&works[i], KEYSPACE_64_FULL, 30, 3);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loop_lost),
		cmocka_unit_test(loop_late),
		cmocka_unit_test(loop_inner_split),
		cmocka_unit_test(loop_deaths),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
