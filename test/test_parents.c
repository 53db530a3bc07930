/*
 * test_parents.c
 *		Waves of downlinks whose parents have no room: parents, and those above them, are split by waves, too, few waits for many;
 *		chains that are lost, and deaths at each step.
 *
 *		test_parents [--network]: over tcp the waits alone
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "support/many_fixture.h"
#include "support/require.h"
#include "support/waits.h"

/* Entries of a tree of two parents, and of a call by which they become five. */
#define FIRST 6000u
#define MORE 6000u

static TreeStatus
try_insert(Tree *tree, int order, uint32_t first, uint32_t count)
{
	TreeKey *keys = malloc(count * sizeof(TreeKey));
	TreeStatus status;

	for (uint32_t i = 0; i < count; i++)
		keys[i] = many_key_of(&tree->geometry.format, order, first + i);
	status = tree_insert_many(tree, keys, count, &many_stamp);
	free(keys);
	return status;
}

/* ---- what it comes to ---- */

/* However the parents grow, each node is known to the one above it. */
static void
test_growth(void **state)
{
	static const TreeFormat *const formats[] = {&narrow, &middle, &text, &whole};
	static const uint32_t together[] = {700, 8000};

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
		for (int order = 0; order < MANY_ORDERS; order++)
			for (size_t t = 0; t < sizeof(together) / sizeof(together[0]); t++)
			{
				Tree *tree = many_tree(formats[f]);
				WalkResult result;

				many_insert(tree, order, 0, 24000, together[t]);
				walk_tree(tree, &result);
				assert_int_equal(result.incomplete_splits, 0);
				assert_true(result.height >= 3);
				walk_free(&result);
				many_verify(tree, order, 24000);
				tree_close(tree);
			}
}

/* Parents are filled as well as by single splits, and better where keys ascend, or many come side by side. */
static void
test_fill(void **state)
{
	static const uint32_t most[] = {28, 16, 21};

	for (int order = MANY_RANDOM; order <= MANY_DESCENDING; order++)
	{
		Tree *tree = many_tree(&narrow);
		WalkResult result;

		many_insert(tree, order, 0, 100000, 50000);
		walk_tree(tree, &result);
		print_message("%llu leaves, %llu inner nodes\n", (unsigned long long) result.leaves,
		              (unsigned long long) result.inner_nodes);
		assert_true(result.inner_nodes <= most[order]);
		walk_free(&result);
		tree_close(tree);
	}
}

/* ---- what it costs ---- */

/* The waits of an instance that inserts 100,000 entries, half of them into an empty tree. */
static uint64_t
waits_of(int order)
{
	Tree *tree = many_tree(&narrow);
	uint64_t waits;

	waits_begin(client.tree);
	many_insert(tree, order, 0, 100000, 50000);
	waits = waits_end(client.tree);
	print_message("%llu waits\n", (unsigned long long) waits);
	many_verify(tree, order, 100000);
	tree_close(tree);
	return waits;
}

/* Over shared memory leaves are longer than what is written at once, and each has a chain for itself. */
static uint64_t most_waits = 180;

static void
test_waits(void **state)
{
	assert_true(waits_of(MANY_RANDOM) <= most_waits);
	assert_true(waits_of(MANY_ASCENDING) <= 115);
}

/* ---- each step ---- */

static uint64_t steps_left;
static Tree *looking; /* another client's */

static void
look(void *argument, const char *name, bool before)
{
	uint64_t incomplete;

	(void) argument;
	(void) name;
	if (before)
		REQUIRE(many_entries(looking, &incomplete) >= steps_left, "entries are gone");
}

/* Whoever looks, in front of whatever chain, sees a sound tree with all that was there. */
static void
test_each_step(void **state)
{
	static const uint32_t firsts[] = {FIRST, 200};

	for (int order = MANY_RANDOM; order <= MANY_DESCENDING; order++)
		for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++)
		{
			Tree *tree = many_tree(&middle);
			TestClient other;

			many_insert(tree, order, 0, firsts[i], firsts[i]);
			test_client_open(&other, &instance, 1);
			looking = many_open(&other);
			steps_left = firsts[i];
			tree_client_crash_points(client.tree, look);
			assert_int_equal(try_insert(tree, order, firsts[i], MORE), TREE_OK);
			tree_client_crash_points(client.tree, NULL);
			many_verify(tree, order, firsts[i] + MORE);
			tree_close(looking);
			assert_int_equal(test_client_close(&other), TREE_OK);
			tree_close(tree);
		}
}

/* ---- lost chains ---- */

/* Inserts into a tree of two parents, and loses the chain of this step.  Returns how many nodes are without their downlink then. */
static uint64_t
lose(int order, uint64_t step, bool late, bool *through)
{
	Tree *tree = many_tree(&middle);
	uint64_t incomplete;

	many_insert(tree, order, 0, FIRST, FIRST);
	many_lose(step, late);
	assert_int_equal(try_insert(tree, order, FIRST, MORE), TREE_OK);
	*through = many_lose_end();
	assert_int_equal(many_entries(tree, &incomplete), FIRST + MORE);
	tree_close(tree);
	return incomplete;
}

/* Whatever chain is lost, at once or with an effect that comes late: what is inserted is there. */
static void
test_lost(void **state)
{
	for (int order = MANY_RANDOM; order <= MANY_ASCENDING; order++)
		for (int late = 0; late < 2; late++)
		{
			uint64_t most = 0, step = 1;
			bool through = false;

			for (; !through; step++)
			{
				uint64_t incomplete = lose(order, step, late != 0, &through);

				most = incomplete > most ? incomplete : most;
				if (step % 64 != 0)
					continue;
				(void) fixture_stop(state);
				(void) many_start(state);
			}
			print_message("%llu steps, %llu without downlinks at most\n", (unsigned long long) step,
			              (unsigned long long) most);
			/* Those of a parent that was not written are inserted by themselves. */
			assert_true(late != 0 || most < 20);
		}
}

/* ---- deaths ---- */

static void
die_at_step(void *argument, const char *name, bool before)
{
	(void) argument;
	(void) name;
	(void) before;
	if (--steps_left == 0)
		raise(SIGKILL);
}

/* A process inserts the entries that are missing, and dies at this step.  False: it has come to the end before. */
static bool
die_inside(int order, uint64_t step)
{
	int status;
	pid_t child = fork();

	if (child == 0)
	{
		TestClient mine;
		Tree *tree;

		test_client_open(&mine, &instance, 1);
		mine.tree->far = true;
		tree = many_open(&mine);
		steps_left = step;
		tree_client_crash_points(mine.tree, die_at_step);
		_exit(try_insert(tree, order, FIRST, MORE) == TREE_OK ? 0 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
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

/* Before and behind chains: what was there is there, the tree is sound, and whoever goes on completes it. */
static void
test_death(void **state)
{
	for (int order = MANY_RANDOM; order <= MANY_ASCENDING; order++)
	{
		uint64_t half_done = 0;
		bool died = true;

		for (uint64_t step = 1; died; step += order == MANY_RANDOM ? 17 : 2)
		{
			uint64_t entries, incomplete;
			Tree *tree;

			/* The table of trees in use keeps those of the dead. */
			(void) fixture_stop(state);
			(void) many_start(state);
			tree = many_tree(&middle);
			many_insert(tree, order, 0, FIRST, FIRST);
			tree_close(tree);
			died = die_inside(order, step);
			tree = come_again();
			entries = many_entries(tree, &incomplete);
			assert_true(entries >= FIRST && entries <= FIRST + MORE);
			half_done += incomplete > 0 ? 1 : 0;
			assert_int_equal(try_insert(tree, order, FIRST, MORE), TREE_OK);
			many_verify(tree, order, FIRST + MORE);
			tree_close(tree);
		}
		print_message("%llu deaths behind splits without downlinks\n", (unsigned long long) half_done);
		assert_true(half_done > 3);
	}
}

/* ---- others ---- */

#define EACH 20000u
#define TOGETHER 5000u

/* Process number n inserts every fourth entry. */
static void
crowd_body(int number, void *argument)
{
	const int *order = argument;
	TreeKey *keys = malloc(TOGETHER * sizeof(TreeKey));
	TestClient mine;
	Tree *tree;

	test_client_open(&mine, &instance, (uint32_t) number + 1);
	mine.tree->far = true;
	tree = many_open(&mine);
	for (uint32_t i = 0; i < EACH; i += TOGETHER)
	{
		TreeStatus status;

		for (uint32_t k = 0; k < TOGETHER; k++)
			keys[k] = many_key_of(&narrow, *order, (i + k) * MANY_CROWD + (uint32_t) number);
		status = tree_insert_many(tree, keys, TOGETHER, &many_stamp);
		REQUIRE(status == TREE_OK, "%s: %s", tree_status_name(status), tree_detail(mine.tree));
	}
	tree_close(tree);
	free(keys);
	REQUIRE(test_client_close(&mine) == TREE_OK, "close");
}

static void
test_crowd(void **state)
{
	many_crowd(crowd_body, EACH);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth),    cmocka_unit_test(test_fill), cmocka_unit_test(test_waits),
		cmocka_unit_test(test_each_step), cmocka_unit_test(test_lost), cmocka_unit_test(test_death),
		cmocka_unit_test(test_crowd),
	};

	const struct CMUnitTest counts[] = {cmocka_unit_test(test_waits)};

	many_bytes = 256ull << 20;
	if (many_arguments(argc, argv))
	{
		most_waits = 145;
		return cmocka_run_group_tests(counts, many_start, fixture_stop);
	}
	return cmocka_run_group_tests(tests, many_start, fixture_stop);
}
