/*
 * test_insert_many_faults.c
 *		tree_insert_many() where something goes wrong: chains that are lost or late at every operation, deaths, a full memory node,
 *		cancels, memory nodes that are away while their chains are in doubt, and others in the same leaves.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fault.h"
#include "lock/local_lock_table.h"
#include "support/many_fixture.h"
#include "support/require.h"

/* Entries of a tree before something happens to it, and of the call to which it happens. */
#define FIRST 3000u
#define MORE 200u

static TreeStatus
try_insert(Tree *tree, int order, uint32_t first, uint32_t count)
{
	TreeKey *keys = malloc(count * sizeof(TreeKey));
	TreeStatus status;

	for (uint32_t i = 0; i < count; i++)
		keys[i] = many_key_of(&tree->geometry.format, order, first + i);
	status = tree_insert_many(tree, keys, count, &many_stamp);
	assert_int_equal(instance.environment->slots[0].holds, 0);
	assert_false(tree->client->holding);
	free(keys);
	return status;
}

static void
report(void *argument, const char *message)
{
	print_error("check: %s\n", message);
}

static void
pass(void *argument, const TreeKey *key, bool unverified)
{
}

/* How many entries the tree has, which is sound. */
static uint64_t
sound_entries(Tree *tree)
{
	TreeStatistics statistics;
	uint64_t problems;

	assert_int_equal(tree_check(tree, report, pass, NULL, &statistics, &problems), TREE_OK);
	assert_int_equal(problems, 0);
	return statistics.entries;
}

/* ---- lost chains ---- */

/* One chain after the other is lost, at each of its operations; what is inserted is there all the same. */
static void
lose(int order, bool late, int memory_node)
{
	FabricEndpoint *endpoint = client.endpoints[memory_node];
	Tree *tree = many_tree(&narrow);
	uint32_t count = FIRST;

	many_insert(tree, order, 0, FIRST, 1000);
	for (uint64_t n = 1; n < 200; n++)
	{
		FabricFaultPlan plan = {.fail_operation = late ? 0 : n, .late_operation = late ? n : 0};
		bool through;

		assert_int_equal(fabric_fault_set(endpoint, &plan), FABRIC_OK);
		assert_int_equal(try_insert(tree, order, count, MORE), TREE_OK);
		through = fabric_fault_operations(endpoint) < n;
		assert_int_equal(fabric_fault_set(endpoint, NULL), FABRIC_OK);
		count += MORE;
		if (through)
			break;
	}
	many_verify(tree, order, count);
	tree_close(tree);
}

static void
test_lost(void **state)
{
	for (int memory_node = 0; memory_node < MANY_NODES; memory_node++)
		for (int late = 0; late < 2; late++)
		{
			lose(MANY_RANDOM, late != 0, memory_node);
			lose(MANY_ASCENDING, late != 0, memory_node);
		}
}

/* ---- doubt that lasts ---- */

/*
 * The memory node is away when a chain is lost: the leaves stay locked, as something may land there still.  Once it answers again
 * they are given back.
 */
static void
test_doubt(void **state)
{
	FabricFaultPlan plan = {.fail_operation = 10};
	Tree *tree = many_tree(&narrow);
	uint32_t home = pointer_memory_node(tree->root);
	TestClient other;
	Tree *theirs;
	LockWaiter *record = table_waiter(instance.shared->locks, 0);
	TreeKey key = many_key_of(&narrow, MANY_RANDOM, FIRST);
	bool hit;

	many_insert(tree, MANY_RANDOM, 0, FIRST, 1000);
	test_client_open(&other, &instance, 1);
	theirs = many_open(&other);
	/* Both are connected; the next READs are not from the cache. */
	assert_int_equal(sound_entries(theirs), FIRST);
	client.tree->options.operation_timeout_ms = 500;
	assert_int_equal(fabric_fault_set(client.endpoints[home], &plan), FABRIC_OK);
	test_node_kill(&nodes[home]);
	assert_int_equal(try_insert(tree, MANY_RANDOM, FIRST, MORE), TREE_UNREACHABLE);
	assert_true(record->leaked > 0);
	test_node_restart(&nodes[home]);
	client.tree->options.operation_timeout_ms = 30000;
	(void) tree_client_trouble(client.tree);
	assert_int_equal(fabric_fault_set(client.endpoints[home], NULL), FABRIC_OK);
	other.tree->options.operation_timeout_ms = 300;
	assert_int_not_equal(tree_insert(theirs, &key, &many_stamp, &hit), TREE_OK);
	(void) tree_client_trouble(other.tree);
	other.tree->options.operation_timeout_ms = 30000;
	assert_int_equal(tree_client_leave(client.tree), TREE_OK);
	assert_int_equal(record->leaked, 0);
	assert_int_equal(try_insert(tree, MANY_RANDOM, FIRST, MORE), TREE_OK);
	assert_int_equal(sound_entries(tree), FIRST + MORE);
	tree_close(theirs);
	(void) test_client_close(&other);
	tree_close(tree);
}

/* ---- deaths ---- */

static int
die_inside(int order, uint32_t first, int memory_node, uint64_t operation, uint32_t line)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
	{
		FabricFaultPlan plan = {.die_operation = operation, .die_line = line};
		TestClient mine;
		Tree *tree;

		test_client_open(&mine, &instance, 1);
		mine.tree->far = true;
		tree = many_open(&mine);
		if (fabric_fault_set(mine.endpoints[memory_node], &plan) != FABRIC_OK)
			_exit(2);
		_exit(try_insert(tree, order, first, MORE) == TREE_OK ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* The next incarnation. */
static Tree *
come_again(void)
{
	assert_int_equal(test_client_close(&client), TREE_OK);
	test_instance_attach(&instance);
	test_client_open(&client, &instance, 0);
	client.tree->far = true;
	return many_open(&client);
}

/* A process dies behind each operation, or inside it: what was there is there, and the tree is sound. */
static void
test_death(void **state)
{
	int died = 0;

	for (int order = MANY_RANDOM; order <= MANY_ASCENDING; order++)
	{
		Tree *tree = many_tree(&narrow);
		uint32_t count = FIRST;

		many_insert(tree, order, 0, FIRST, 1000);
		for (uint64_t n = 1; n < 300; n += 7, count += MORE)
		{
			uint64_t entries;
			int status;

			tree_close(tree);
			status = die_inside(order, count, (int) (n % MANY_NODES), n, (uint32_t) (n % 3));
			died += WIFSIGNALED(status) ? 1 : 0;
			assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
			tree = come_again();
			entries = sound_entries(tree);
			assert_true(entries >= count && entries <= count + MORE);
			assert_int_equal(try_insert(tree, order, count, MORE), TREE_OK);
		}
		many_verify(tree, order, count);
		tree_close(tree);
	}
	assert_true(died > 20);
}

/* ---- no memory, no patience ---- */

static void
test_full(void **state)
{
	const uint32_t together = 2000;
	Tree *tree = many_tree(&narrow);
	TreeStatus status = TREE_OK;
	uint32_t count = 0;
	uint64_t entries;

	for (; status == TREE_OK; count += together)
		status = try_insert(tree, MANY_RANDOM, count, together);
	assert_int_equal(status, TREE_MEMORY_FULL);
	entries = sound_entries(tree);
	assert_true(entries >= count - together && entries < count);
	/* It stays so, and nothing is lost by trying. */
	assert_int_equal(try_insert(tree, MANY_RANDOM, count - together, together), TREE_MEMORY_FULL);
	assert_true(sound_entries(tree) >= entries);
	tree_close(tree);
}

static void
test_stop(void **state)
{
	Tree *tree = many_tree(&narrow);

	many_insert(tree, MANY_RANDOM, 0, FIRST, 1000);
	instance.environment->slots[0].stop = 1;
	assert_int_equal(try_insert(tree, MANY_RANDOM, FIRST, MORE), TREE_STOPPED);
	instance.environment->slots[0].stop = 0;
	assert_int_equal(sound_entries(tree), FIRST);
	assert_int_equal(try_insert(tree, MANY_RANDOM, FIRST, MORE), TREE_OK);
	many_verify(tree, MANY_RANDOM, FIRST + MORE);
	tree_close(tree);
}

/* ---- others ---- */

#define EACH 6000u

/* Process number n inserts every fourth entry, by itself, or many at once. */
static void
crowd_body(int number, void *argument)
{
	const int *order = argument;
	TestClient mine;
	Tree *tree;
	TreeKey keys[500];

	test_client_open(&mine, &instance, (uint32_t) number + 1);
	mine.tree->far = number % 2 == 0;
	tree = many_open(&mine);
	for (uint32_t i = 0; i < EACH;)
	{
		uint32_t count = 1 + (i * 7 + (uint32_t) number) % 500;
		TreeStatus status;

		if (count > EACH - i)
			count = EACH - i;
		for (uint32_t k = 0; k < count; k++)
			keys[k] = many_key_of(&narrow, *order, (i + k) * MANY_CROWD + (uint32_t) number);
		status = tree_insert_many(tree, keys, count, &many_stamp);
		REQUIRE(status == TREE_OK, "%s: %s", tree_status_name(status), tree_detail(mine.tree));
		i += count;
	}
	tree_close(tree);
	REQUIRE(test_client_close(&mine) == TREE_OK, "close");
}

static void
test_crowd(void **state)
{
	many_crowd(crowd_body, EACH);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost), cmocka_unit_test(test_doubt), cmocka_unit_test(test_death),
		cmocka_unit_test(test_stop), cmocka_unit_test(test_crowd), cmocka_unit_test(test_full),
	};

	many_bytes = 24ull << 20;
	return cmocka_run_group_tests(tests, many_start, fixture_stop);
}
