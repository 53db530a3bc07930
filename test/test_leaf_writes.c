/*
 * test_leaf_writes.c
 *		Images of leaves (tree/lock/leaf_cache.c) are what the leaves are, whoever writes, dies or is in doubt meanwhile.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "tree/scan/scan.h"
#include "support/cost.h"
#include "support/leaf_fixture.h"

#define WRITERS 3
#define READERS 3
#define WRITTEN 400u

/* ---- writers ---- */

/* What is done in the middle of a call, once: before or behind the next chain of this name's beginning. */
static struct
{
	const char *name;
	bool before;
	void (*act)(void);
} midway;

static void
step(void *argument, const char *name, bool before)
{
	void (*act)(void) = midway.act;

	if (act == NULL || before != midway.before || strncmp(name, midway.name, strlen(midway.name)) != 0)
		return;
	midway.act = NULL;
	act();
}

static void
when(TestClient *with, bool before, const char *name, void (*act)(void))
{
	with->tree->options.environment.crash_point = step;
	midway.name = name;
	midway.before = before;
	midway.act = act;
}

static void
they_insert(void)
{
	insert(&theirs, 1000);
}

/* A reader has read the leaf, and before it is kept somebody adds an entry: what was read is not kept. */
static void
test_read_meets_write(void **state)
{
	for (int before = 0; before < 2; before++)
	{
		begin(&narrow, ROOMY, 100);
		fill(200);
		when(&client, before != 0, "READ", they_insert);
		assert_int_equal(trips(&mine, 999, false), 1);
		assert_null(midway.act);
		assert_int_equal(trips(&mine, 1000, true), 1);
		assert_int_equal(trips(&mine, 1000, true), 0);
		end();
	}
}

static void
look_behind(void)
{
	assert_int_equal(trips(&mine, 1000, true), 1);
}

/* Entry 1000 is on its way: the image is not believed, nor is what is read kept. */
static void
look_before(void)
{
	assert_int_equal(trips(&mine, 1000, false), 1);
	when(&other_client, false, "WRITE", look_behind);
}

/* From before a write is posted until it is acknowledged. */
static void
test_write_meets_read(void **state)
{
	begin(&narrow, ROOMY, 100);
	fill(200);
	assert_int_equal(trips(&mine, 1000, false), 1);
	assert_int_equal(trips(&mine, 1000, false), 0);
	when(&other_client, true, "WRITE", look_before);
	insert(&theirs, 1000);
	assert_null(midway.act);
	/* The writer has brought it up to date. */
	assert_int_equal(trips(&mine, 1000, true), 0);
	end();
}

static void
lose_chain(void)
{
	FabricFaultPlan plan = {.seed = 1, .fail_operation = 1};

	assert_int_equal(fabric_fault_set(other_client.endpoints[0], &plan), FABRIC_OK);
	test_node_kill(&nodes[0]);
}

/* A writer whose chain may still land: until that is over the leaf is read each time. */
static void
test_doubt(void **state)
{
	TreeKey key = key_of(1000);
	bool hit;

	begin(&narrow, ROOMY, 100);
	fill(200);
	assert_int_equal(trips(&mine, 1000, false), 1);
	assert_int_equal(trips(&mine, 1000, false), 0);
	when(&other_client, true, "WRITE", lose_chain);
	assert_int_equal(tree_insert(theirs.tree, &key, &wal, &hit), TREE_UNREACHABLE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(trips(&mine, 1000, false), 1);
	/* Its channel has ended with the memory node. */
	handle_close(&mine);
	assert_int_equal(test_client_close(&client), TREE_OK);
	test_node_restart(&nodes[0]);
	test_client_open(&client, &instance, 0);
	handle_open(&mine, &client);
	assert_int_equal(fabric_fault_set(other_client.endpoints[0], NULL), FABRIC_OK);
	assert_int_equal(trips(&mine, 1000, false), 1);
	assert_int_equal(lock_clean_up(other_client.tree), TREE_OK);
	assert_int_equal(trips(&mine, 1000, false), 1);
	assert_int_equal(trips(&mine, 1000, false), 0);
	must_insert(theirs.tree, &key, false);
	assert_int_equal(trips(&mine, 1000, true), 0);
	end();
}

/* The write was lost and is done again: in between the leaf is without the entry. */
static void
look_between(void)
{
	assert_int_equal(trips(&theirs, 1000, false), 1);
}

static void
lose_write(void)
{
	FabricFaultPlan plan = {.seed = 1, .fail_operation = 1};

	assert_int_equal(fabric_fault_set(client.endpoints[0], &plan), FABRIC_OK);
	when(&client, true, "READ", look_between);
}

static void
test_lost_once(void **state)
{
	begin(&narrow, ROOMY, 100);
	fill(200);
	assert_int_equal(trips(&theirs, 1000, false), 1);
	assert_int_equal(trips(&theirs, 1000, false), 0);
	when(&client, true, "WRITE", lose_write);
	insert(&mine, 1000);
	assert_null(midway.act);
	assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
	assert_int_equal(trips(&theirs, 1000, true), 0);
	end();
}

/* A chain that is lost, and its channel reset: it did not land, or it did. */
static void
test_lost(void **state)
{
	begin(&narrow, ROOMY, 100);
	for (uint32_t i = 0; i < KEYS; i++)
	{
		FabricFaultPlan plan = {.seed = i};

		if (i % 2 == 0)
			plan.fail_operation = 1 + i % 5;
		else
			plan.late_operation = 1 + i % 5;
		assert_int_equal(fabric_fault_set(client.endpoints[0], &plan), FABRIC_OK);
		insert(&mine, i);
		assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
		for (uint32_t half = 1; half <= 2; half++)
		{
			TreeKey key = key_of(i / half);

			assert_int_equal(look_up(&theirs, &key), TREE_OK);
		}
	}
	end();
}

static bool
is_gone(void *argument, uint32_t block, uint16_t offset)
{
	return block * 100 + offset - 1u >= *(const uint32_t *) argument;
}

/* Removes the entries from TID `from` on, and takes the leaves that are empty then out of the tree. */
static void
remove_from(uint32_t from)
{
	TreeVacuumCounts counts = {0};
	TreeMergeCounts merged = {0};
	TreeVacuum *vacuum;
	TreeMerge *walk;

	assert_int_equal(tree_vacuum_open(theirs.tree, &vacuum), TREE_OK);
	while (tree_vacuum_next(vacuum, is_gone, &from, &counts) == TREE_OK)
		;
	assert_int_equal(tree_merge_open(theirs.tree, vacuum, &walk), TREE_OK);
	while (tree_merge_next(walk, &merged) == TREE_OK)
		;
	tree_merge_close(walk);
	assert_true(merged.leaves > 0);
	tree_vacuum_close(vacuum);
}

/* The newest entries of the leaf that a wave has just spread are removed before it has gone on. */
static void
they_remove(void)
{
	TreeVacuumCounts counts = {0};
	uint32_t from = 295;
	TreeVacuum *vacuum;

	assert_int_equal(tree_vacuum_open(theirs.tree, &vacuum), TREE_OK);
	while (tree_vacuum_next(vacuum, is_gone, &from, &counts) == TREE_OK)
		;
	assert_int_equal(counts.removed, 5);
	tree_vacuum_close(vacuum);
}

/* A wave keeps images of the leaves that it makes, unless another process has written them by then. */
static void
test_new_leaves(void **state)
{
	static const TreeWalPosition position = {.epoch = 7, .lsn = 1000};
	TreeKey keys[100];

	for (int meets = 0; meets < 2; meets++)
	{
		begin(&narrow, ROOMY, 100);
		fill(200);
		for (uint32_t i = 0; i < 100; i++)
			keys[i] = key_of(200 + i);
		if (meets != 0)
			when(&client, false, "WRITE", they_remove);
		assert_int_equal(tree_insert_many(mine.tree, keys, 100, &position), TREE_OK);
		assert_null(midway.act);
		assert_true(client.tree->counters.leaf_splits >= 2);
		assert_int_equal(trips(&mine, 299, meets == 0), 0);
		assert_int_equal(trips(&mine, 250, true), 0);
		end();
	}
}

/* Leaves that are merged become others, at the same place and under no lock of their own. */
static void
test_merged(void **state)
{
	TreeLeafCounts before;

	begin(&narrow, ROOMY, 100);
	fill(KEYS);
	assert_int_equal(test_tree_entries(mine.tree), KEYS);
	remove_from(KEYS / 2);
	before = counts_of(&mine);
	assert_int_equal(test_tree_entries(mine.tree), KEYS / 2);
	assert_int_equal(counts_of(&mine).hits, before.hits);
	for (uint32_t i = KEYS / 2; i < KEYS; i++)
	{
		insert(&theirs, i);
		for (uint32_t k = 0; k < 50; k += 7)
			(void) trips(&mine, i - k, true);
	}
	assert_int_equal(test_tree_entries(mine.tree), KEYS);
	end();
}

/* Whether the leaf of the last lookup is the generation that it was; and the round trips of asking. */
static bool
unchanged(uint64_t *asked)
{
	Cost cost;
	bool result;

	cost_begin(&client, &cost);
	assert_int_equal(tree_batch_unchanged(mine.scan, &mine.scan->batch, &result), TREE_OK);
	cost_end(&client, &cost);
	*asked = cost.fabric.round_trips;
	return result;
}

/* The generation of a leaf that is kept costs no READ, and what became of the leaf is known by one. */
static void
test_unchanged(void **state)
{
	uint64_t asked;

	begin(&narrow, ROOMY, 100);
	fill(KEYS);
	assert_int_equal(trips(&mine, KEYS - 5, true), 1);
	assert_int_equal(trips(&mine, KEYS - 5, true), 0);
	assert_true(unchanged(&asked));
	assert_int_equal(asked, 0);
	/* An entry that is added changes nothing. */
	insert(&theirs, KEYS);
	assert_true(unchanged(&asked));
	assert_int_equal(asked, 0);
	/* A split is another generation, whose image is kept. */
	for (uint32_t i = KEYS + 1; i < KEYS + 100; i++)
		insert(&theirs, i);
	assert_false(unchanged(&asked));
	assert_int_equal(asked, 1);
	assert_int_equal(trips(&mine, KEYS - 5, true), 0);
	assert_true(unchanged(&asked));
	/* The leaf is emptied, and leaves the tree: the epoch tells, and nothing is asked, whatever is there now. */
	remove_from(KEYS / 2);
	assert_false(unchanged(&asked));
	assert_int_equal(asked, 0);
	end();
}

/* ---- fillers that die ---- */

/* Every frame as if its filler had been killed: an entry of the image is not there yet. */
static void
kill_fillers(void)
{
	for (uint32_t i = 0; i < frames_count(&table()->frames); i++)
	{
		uint64_t *image = leaf_image(table(), i);

		leaf_frame(table(), i)->head.sequence |= 1;
		if (image == NULL)
			continue;
		for (uint32_t slot = 0; slot < mine.tree->geometry.leaf_cells; slot++)
			image[leaf_cell_word(&mine.tree->geometry, slot)] &= STAMP_MASK;
	}
}

static void
die(int signal_number)
{
	kill(getpid(), SIGKILL);
}

/* A process that is killed in the middle of bringing the image of this number's leaf up to date. */
static void
kill_filler(uint32_t i)
{
	const size_t page_bytes = (size_t) sysconf(_SC_PAGESIZE);
	const uint32_t leaf_bytes = mine.tree->geometry.leaf_bytes;
	uint8_t *pages = mmap(NULL, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t *half = (uint64_t *) (pages + page_bytes - leaf_bytes / 2);
	uint32_t number = 0;
	int status;
	pid_t child;

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(trips(&mine, i, true), 0);
	while (leaf_frame(table(), number)->head.address != pointer_address(mine.scan->pointer))
		number++;
	memcpy(half, mine.scan->leaf, leaf_bytes / 2);
	assert_int_equal(mprotect(pages + page_bytes, page_bytes, PROT_NONE), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
	{
		signal(SIGSEGV, die);
		client.tree->sections = 1;
		leaf_cache_wrote(mine.tree, mine.scan->pointer, half, leaf_bytes);
		_exit(2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(leaf_frame(table(), number)->head.sequence % 2, 1);
	munmap(pages, 2 * page_bytes);
}

/* Its frame is nobody's, nobody waits, and the leaf gets another one. */
static void
test_killed_once(void **state)
{
	begin(&narrow, ROOMY, 100);
	fill(200);
	assert_int_equal(trips(&mine, 100, true), 1);
	kill_filler(100);
	assert_int_equal(trips(&mine, 100, true), 1);
	assert_int_equal(trips(&mine, 100, true), 0);
	end();
}

static void
test_killed(void **state)
{
	uint64_t hits;

	begin(&narrow, ROOMY, 100);
	fill(KEYS);
	assert_int_equal(test_tree_entries(mine.tree), KEYS);
	kill_fillers();
	hits = counts_of(&mine).hits;
	for (uint32_t i = 0; i < KEYS; i += 10)
		assert_int_equal(trips(&mine, i, true), 1);
	assert_int_equal(counts_of(&mine).hits, hits);
	for (uint32_t i = KEYS; i < KEYS + 100; i++)
	{
		insert(&theirs, i);
		assert_in_range(trips(&mine, i, true), 0, 2);
	}
	/* The next incarnation begins without images. */
	handle_close(&theirs);
	handle_close(&mine);
	assert_int_equal(test_client_close(&other_client), TREE_OK);
	assert_int_equal(test_client_close(&client), TREE_OK);
	test_instance_attach(&instance);
	test_client_open(&client, &instance, 0);
	test_client_open(&other_client, &instance, 1);
	handle_open(&mine, &client);
	handle_open(&theirs, &other_client);
	assert_int_equal(test_tree_entries(mine.tree), KEYS + 100);
	assert_int_equal(counts_of(&mine).hits, 0);
	assert_int_equal(trips(&mine, 5, true), 0);
	end();
}

/* A frame whose image lies in two pages, and an entry in the second one. */
static struct
{
	LeafFrame *frame;
	char *page;
	uint64_t *cell;
	size_t page_bytes;
} torn;

/* Whoever copies the image has come to the second page: the frame is filled with another leaf's. */
static void
fill_again(int signal_number)
{
	(void) mprotect(torn.page, torn.page_bytes, PROT_READ | PROT_WRITE);
	torn.frame->head.sequence += 2;
	*torn.cell &= STAMP_MASK;
}

static bool
torn_find(uint32_t number)
{
	const NodeGeometry *g = &mine.tree->geometry;
	uint64_t *image = leaf_image(table(), number);

	torn.frame = leaf_frame(table(), number);
	if (image == NULL)
		return false;
	torn.page = (char *) (((uintptr_t) image + g->leaf_bytes - 1) / torn.page_bytes * torn.page_bytes);
	for (uint32_t slot = 0; slot < g->leaf_cells && torn.frame->head.address != 0; slot++)
	{
		torn.cell = image + leaf_cell_word(g, slot);
		if ((char *) image < torn.page && (char *) torn.cell >= torn.page &&
		    cell_state(*torn.cell) == CELL_LIVE)
			return true;
	}
	return false;
}

/* The image changes while it is copied. */
static void
test_torn(void **state)
{
	struct sigaction action = {.sa_handler = fill_again}, usual;
	uint32_t number = 0;
	uint32_t i;

	begin(&narrow, ROOMY, 100);
	fill(KEYS);
	/* Images begin at different places of their pages; there is room for half as many. */
	table()->frames.sets /= 2;
	table()->frames.image_bytes = mine.tree->geometry.leaf_bytes + LINE_BYTES;
	assert_int_equal(test_tree_entries(mine.tree), KEYS);
	torn.page_bytes = (size_t) sysconf(_SC_PAGESIZE);
	while (!torn_find(number))
		number++;
	i = cell_block(*torn.cell) * 100 + cell_offset(*torn.cell) - 1;
	assert_int_equal(trips(&mine, i, true), 0);
	assert_int_equal(sigaction(SIGSEGV, &action, &usual), 0);
	assert_int_equal(mprotect(torn.page, torn.page_bytes, PROT_NONE), 0);
	assert_int_equal(trips(&mine, i, true), 1);
	assert_int_equal(sigaction(SIGSEGV, &usual, NULL), 0);
	end();
}

/* ---- many ---- */

/* Of a process, or a thread, of many: an assertion would go on with the test. */
static void
demand(bool good)
{
	if (!good)
		_exit(3);
}

/* Writers say how far they are; readers find all of that, at once. Scratch: a word for each writer. */
static void
crowd_body(int number, void *argument)
{
	TestClient own;
	LeafHandle handle;
	bool writes = number < WRITERS;

	test_client_open(&own, &instance, 2 + (uint32_t) number);
	handle_open(&handle, &own);
	for (uint32_t i = 0; i < (writes ? WRITTEN : 8 * WRITTEN); i++)
	{
		uint32_t writer = writes ? (uint32_t) number : i % WRITERS;
		uint64_t *done = &instance.scratch[writer];
		uint64_t written = __atomic_load_n(done, __ATOMIC_ACQUIRE);
		TreeKey key = key_of(writer * WRITTEN + i);
		bool hit;

		if (writes)
		{
			demand(tree_insert(handle.tree, &key, &wal, &hit) == TREE_OK && !hit);
			__atomic_store_n(done, i + 1, __ATOMIC_RELEASE);
		}
		else if (written > 0)
		{
			key = key_of(writer * WRITTEN + (uint32_t) written - 1);
			demand(look_up(&handle, &key) == TREE_OK);
			key = key_of(writer * WRITTEN + (uint32_t) (i % written));
			demand(look_up(&handle, &key) == TREE_OK);
		}
	}
	handle_close(&handle);
	demand(test_client_close(&own) == TREE_OK);
	if (!test_threads)
		_exit(0);
}

static void
test_crowd(void **state)
{
	const uint64_t bytes[] = {SCARCE, ROOMY};

	for (size_t b = 0; b < 2; b++)
	{
		begin(&narrow, bytes[b], 100);
		assert_int_equal(test_processes(WRITERS + READERS, crowd_body, NULL), 0);
		assert_int_equal(test_tree_entries(mine.tree), WRITERS * WRITTEN);
		end();
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_meets_write),
		cmocka_unit_test(test_write_meets_read),
		cmocka_unit_test(test_doubt),
		cmocka_unit_test(test_lost_once),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_new_leaves),
		cmocka_unit_test(test_merged),
		cmocka_unit_test(test_unchanged),
		cmocka_unit_test(test_killed_once),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_crowd),
	};
	const struct CMUnitTest threads[] = {cmocka_unit_test(test_crowd)};

	if (test_threads_wanted(argc, argv))
		return cmocka_run_group_tests(threads, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
