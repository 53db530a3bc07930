/*
 * test_insert_many_alone.c
 *		tree_insert_many_alone(): keys that may have one entry only go together, in their order, up to the first one that is not alone.
 *
 *		test_insert_many_alone [--network | --mapped]
 */
#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "lock/local_lock_table.h"
#include "shared/state.h"
#include "support/many_fixture.h"
#include "support/require.h"

/* How many lengths of calls are tried: the small ones take many round trips, and are left out over tcp. */
static size_t number_of_calls = 4;
static Tree *sorted_for;

static int
compare_keys(const void *a, const void *b)
{
	return tree_key_order(sorted_for, a, b);
}

/* Keys of entries first..first + count - 1, in their order. */
static void
make_keys(Tree *tree, int order, uint32_t first, uint32_t count, TreeKey *keys)
{
	for (uint32_t i = 0; i < count; i++)
		keys[i] = many_key_of(&tree->geometry.format, order, first + i);
	sorted_for = tree;
	qsort(keys, count, sizeof(TreeKey), compare_keys);
}

static uint32_t
must_go(Tree *tree, const TreeKey *keys, uint32_t count, const TreePermit *permit)
{
	uint32_t done;
	TreeStatus status = tree_insert_many_alone(tree, keys, count, &many_stamp, permit, &done);

	if (status != TREE_OK)
		fail_msg("insert: %s: %s", tree_status_name(status), tree_detail(tree->client));
	assert_true(done <= count);
	return done;
}

/* Inserts all, those that are not alone by themselves. Returns how many that are. */
static uint32_t
insert_keys(Tree *tree, const TreeKey *keys, uint32_t count, const TreePermit *permit)
{
	uint32_t barred = 0;
	bool hit;

	for (uint32_t at = 0; at < count; at++)
	{
		at += must_go(tree, keys + at, count - at, permit);
		if (at == count)
			break;
		assert_int_equal(tree_insert(tree, &keys[at], &many_stamp, &hit), TREE_OK);
		barred++;
	}
	return barred;
}

/* The same of entries in calls of so many. */
static uint32_t
insert_all(Tree *tree, int order, uint32_t first, uint32_t last, uint32_t together)
{
	TreeKey *keys = malloc(together * sizeof(TreeKey));
	uint32_t barred = 0;

	for (uint32_t i = first; i < last; i += together)
	{
		uint32_t count = last - i < together ? last - i : together;

		make_keys(tree, order, i, count, keys);
		barred += insert_keys(tree, keys, count, NULL);
	}
	free(keys);
	return barred;
}

/* The entry's key: of that row modulo the rows of one process. */
static uint64_t
number_of(const WalkEntry *entry)
{
	return many_key_of(&narrow, MANY_RANDOM, entry->block % 100000 * 100 + entry->offset - 1).norm[0];
}

/* ---- what goes, and what is barred ---- */

/* As many are barred as by themselves, whatever comes in which call. */
static void
test_same(void **state)
{
	static const TreeFormat *const formats[] = {&narrow, &middle, &text, &whole};
	static const uint32_t calls[] = {5000, 400, 37, 1};

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
		for (int order = 0; order < MANY_ORDERS; order++)
		{
			uint32_t expected = UINT32_MAX;

			for (size_t c = 0; c < number_of_calls; c++)
			{
				Tree *tree = many_tree(formats[f]);
				uint32_t barred = insert_all(tree, order, 0, 4000, calls[c]);

				many_verify(tree, order, 4000);
				if (expected == UINT32_MAX)
					expected = barred;
				if (formats[f]->lossless)
					assert_int_equal(barred, order == MANY_FEW ? 3700 : 0);
				assert_int_equal(barred, expected);
				tree_close(tree);
			}
		}
}

/* Nothing behind a key that is there goes, though its leaf has room, or another leaf has. */
static void
test_order(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeKey keys[600], there;

	many_insert(tree, MANY_RANDOM, 0, 3000, 1000);
	for (uint32_t at = 0; at < 600; at += 150)
	{
		uint64_t before = many_entries(tree, NULL);

		make_keys(tree, MANY_RANDOM, 3000 + at * 10, 600, keys);
		there = keys[at];
		there.block += 100000;
		must_insert(tree, &there, false);
		assert_int_equal(must_go(tree, keys, 600, NULL), at);
		assert_int_equal(many_entries(tree, NULL), before + 1 + at);
		/* Nor does it itself, by the next call. */
		assert_int_equal(must_go(tree, keys + at, 600 - at, NULL), 0);
		assert_int_equal(must_go(tree, keys + at + 1, 600 - at - 1, NULL), 600 - at - 1);
		assert_int_equal(many_entries(tree, NULL), before + 600);
	}
	tree_close(tree);
}

/* More keys of one leaf than a wave takes, and behind them those of other leaves: a key that is there keeps all of these back. */
static void
test_crowded_leaf(void **state)
{
	static TreeKey keys[3500];
	Tree *tree = many_tree(&narrow);
	TreeKey there;

	for (uint32_t i = 0; i < 3000; i++)
		keys[i] = number_key((uint64_t) i << 20, i);
	assert_int_equal(tree_insert_many(tree, keys, 3000, &many_stamp), TREE_OK);
	for (uint32_t i = 0; i < 3500; i++)
		keys[i] =
			number_key(i < 3000 ? (1500ull << 20) + 1 + i : ((uint64_t) (i - 1499) << 20) + 1, 10000 + i);
	there = keys[2600];
	there.block += 100000;
	must_insert(tree, &there, false);
	assert_int_equal(must_go(tree, keys, 3500, NULL), 2600);
	assert_int_equal(many_entries(tree, NULL), 3000 + 1 + 2600);
	assert_int_equal(must_go(tree, keys + 2601, 899, NULL), 899);
	assert_int_equal(many_entries(tree, NULL), 3000 + 3500);
	tree_close(tree);
}

/* Of keys of one call that are equal the first one goes, wherever they are. */
static void
test_equal_in_call(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeKey keys[500];

	many_insert(tree, MANY_RANDOM, 0, 3000, 1000);
	for (uint32_t at = 1; at < 500; at += 50)
	{
		make_keys(tree, MANY_RANDOM, 3000 + at * 500, 500, keys);
		memcpy(keys[at].norm, keys[at - 1].norm, sizeof(keys[at].norm));
		keys[at].block = keys[at - 1].block + 1000000;
		assert_int_equal(must_go(tree, keys, 500, NULL), at);
		assert_int_equal(must_go(tree, keys + at, 500 - at, NULL), 0);
		assert_int_equal(must_go(tree, keys + at + 1, 499 - at, NULL), 499 - at);
	}
	assert_int_equal(many_entries(tree, NULL), 3000 + 10 * 499);
	tree_close(tree);
}

/*
 * What is there already goes once more, as a hit, unless a fence is made of it, which tells nothing of its TID. Keys that do not ascend
 * are refused.
 */
static void
test_again(void **state)
{
	Tree *tree = many_tree(&narrow);
	TreeKey keys[400], first;
	uint32_t done;

	many_insert(tree, MANY_RANDOM, 0, 3000, 1000);
	make_keys(tree, MANY_RANDOM, 3000, 400, keys);
	assert_int_equal(must_go(tree, keys, 200, NULL), 200);
	assert_in_range(insert_keys(tree, keys, 400, NULL), 0, 20);
	assert_int_equal(client.tree->counters.insert_hits, 200);
	many_verify(tree, MANY_RANDOM, 3400);
	first = keys[0];
	keys[0] = keys[1];
	keys[1] = first;
	assert_int_equal(tree_insert_many_alone(tree, keys, 400, &many_stamp, NULL, &done), TREE_INVALID);
	assert_int_equal(done, 0);
	tree_close(tree);
}

/* ---- permits ---- */

typedef struct Permits
{
	uint64_t refused; /* norm[0] of a key that is not permitted */
	uint32_t given;
	uint32_t last; /* now */
	uint32_t most;
} Permits;

static Permits permits;

static void
compared_under_permit(void)
{
	fail_msg("the comparator was called while a permit lasts");
}

static bool
permit_begin(void *argument, const TreeKey *key)
{
	Permits *p = argument;

	if (key->norm[0] == p->refused)
		return false;
	p->given++;
	if (++p->last > p->most)
		p->most = p->last;
	compare_hook = compared_under_permit;
	return true;
}

static void
permit_end(void *argument, const TreeKey *key)
{
	Permits *p = argument;

	assert_true(p->last > 0);
	if (--p->last == 0)
		compare_hook = NULL;
}

static const TreePermit permit = {permit_begin, permit_end, &permits};

/* Each that goes is permitted, each permit ends, and a key without one ends the call. */
static void
test_permits(void **state)
{
	static const TreeFormat *const formats[] = {&narrow, &text};

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
	{
		Tree *tree = many_tree(formats[f]);
		TreeKey keys[500];

		many_insert(tree, MANY_RANDOM, 0, 2000, 1000);
		for (uint32_t round = 0; round < 20; round++)
		{
			uint32_t at = 25 * round;
			uint64_t before = many_entries(tree, NULL);
			uint32_t went = 0;

			make_keys(tree, MANY_RANDOM, 2000 + round * 500, 500, keys);
			permits = (Permits){.refused = keys[at].norm[0]};
			for (uint32_t i = 0; i < 500; i++)
			{
				uint32_t done = must_go(tree, keys + i, 500 - i, &permit);

				assert_int_equal(permits.last, 0);
				assert_true(permits.given >= done);
				went += done;
				i += done;
				assert_true(i >= 500 || i >= at || formats[f] == &text);
			}
			assert_true(went < 500);
			assert_int_equal(many_entries(tree, NULL), before + went);
		}
		assert_true(many_mapped || permits.most > 10);
		tree_close(tree);
	}
}

/* ---- faults ---- */

/* One chain after the other is lost: each key goes once, and permits end. */
static void
lose(bool late, int memory_node)
{
	FabricEndpoint *endpoint = client.endpoints[memory_node];
	Tree *tree = many_tree(&narrow);
	uint32_t count = 3000, barred = 0;
	TreeKey keys[200];

	many_insert(tree, MANY_RANDOM, 0, count, 1000);
	permits = (Permits){.refused = 1};
	for (uint64_t n = 1; n < 200; n++)
	{
		FabricFaultPlan plan = {.fail_operation = late ? 0 : n, .late_operation = late ? n : 0};
		bool through;

		make_keys(tree, MANY_RANDOM, count, 200, keys);
		assert_int_equal(fabric_fault_set(endpoint, &plan), FABRIC_OK);
		barred += insert_keys(tree, keys, 200, &permit);
		assert_int_equal(permits.last, 0);
		through = fabric_fault_operations(endpoint) < n;
		assert_int_equal(fabric_fault_set(endpoint, NULL), FABRIC_OK);
		count += 200;
		if (through)
			break;
	}
	/* Those that were in already, and that a fence is made of. */
	assert_in_range(barred, 0, 40);
	many_verify(tree, MANY_RANDOM, count);
	tree_close(tree);
}

static void
test_lost(void **state)
{
	for (int memory_node = 0; memory_node < MANY_NODES; memory_node++)
		for (int late = 0; late < 2; late++)
			lose(late != 0, memory_node);
}

/* A leaf is held by another process: what is behind it does not go before its keys do. */
static void
test_held(void **state)
{
	Tree *tree = many_tree(&narrow);
	LockTable *table = instance.shared->locks;
	TreeKey keys[300];
	WalkResult result;
	TestClient other;
	LockEntry *entry;
	uint64_t held = 0;
	uint64_t before;
	uint32_t done;

	many_insert(tree, MANY_RANDOM, 0, 5000, 1000);
	make_keys(tree, MANY_RANDOM, 5000, 300, keys);
	walk_tree(tree, &result);
	for (uint64_t i = 0; i < result.count; i++)
		if (number_of(&result.entries[i]) < keys[150].norm[0])
			held = result.entries[i].leaf;
	walk_free(&result);
	before = many_entries(tree, NULL);
	test_client_open(&other, &instance, 1);
	entry = table_entry(table, pointer_memory_node(held),
	                    lock_word_of(other.tree, pointer_memory_node(held), held));
	assert_true(entry_try(other.tree, entry));
	client.tree->options.operation_timeout_ms = 300;
	assert_int_not_equal(tree_insert_many_alone(tree, keys, 300, &many_stamp, NULL, &done), TREE_OK);
	(void) tree_client_trouble(client.tree);
	client.tree->options.operation_timeout_ms = 30000;
	assert_in_range(done, 50, 151);
	assert_int_equal(many_entries(tree, NULL), before + done);
	entry_release(other.tree, entry);
	assert_int_equal(test_client_close(&other), TREE_OK);
	assert_int_equal(must_go(tree, keys + done, 300 - done, NULL), 300 - done);
	many_verify(tree, MANY_RANDOM, 5300);
	tree_close(tree);
}

/* ---- others ---- */

#define CROWD 4
#define KEYS 6000u

/* All processes insert the same keys, each for rows of its own. */
static void
crowd_body(int number, void *argument)
{
	TestClient mine;
	Tree *tree;
	TreeKey keys[500];

	test_client_open(&mine, &instance, (uint32_t) number + 1);
	mine.tree->far = number % 2 == 0;
	tree = many_open(&mine);
	for (uint32_t i = 0; i < KEYS; i += 500)
	{
		make_keys(tree, MANY_RANDOM, (i + (uint32_t) number * 1500) % KEYS, 500, keys);
		for (uint32_t k = 0; k < 500; k++)
			keys[k].block += (uint32_t) number * 100000;
		for (uint32_t at = 0; at < 500; at++)
		{
			uint32_t done;
			TreeStatus status = tree_insert_many_alone(tree, keys + at, 500 - at, &many_stamp, NULL, &done);

			REQUIRE(status == TREE_OK, "%s: %s", tree_status_name(status), tree_detail(mine.tree));
			at += done;
		}
	}
	tree_close(tree);
	REQUIRE(test_client_close(&mine) == TREE_OK, "close");
}

static int
compare_numbers(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *) a, second = *(const uint64_t *) b;

	return first < second ? -1 : first > second;
}

/* Each key has one entry in the end. */
static void
test_crowd(void **state)
{
	static uint64_t numbers[KEYS];
	WalkResult result;
	Tree *tree = many_tree(&narrow);

	assert_int_equal(test_processes(CROWD, crowd_body, NULL), 0);
	walk_tree(tree, &result);
	assert_int_equal(result.count, KEYS);
	for (uint64_t i = 0; i < KEYS; i++)
		numbers[i] = number_of(&result.entries[i]);
	qsort(numbers, KEYS, sizeof(numbers[0]), compare_numbers);
	for (uint64_t i = 1; i < KEYS; i++)
		assert_true(numbers[i - 1] < numbers[i]);
	walk_free(&result);
	tree_close(tree);
}

/* ---- what it costs ---- */

static void
test_chains(void **state)
{
	static const int orders[] = {MANY_RANDOM, MANY_ASCENDING};
	static const uint64_t most[] = {110, 20};

	for (int o = 0; o < 2; o++)
	{
		Tree *tree = many_tree(&narrow);
		uint64_t before;

		(void) insert_all(tree, orders[o], 0, 50000, 4000);
		before = client.tree->counters.round_trips;
		assert_int_equal(insert_all(tree, orders[o], 50000, 100000, 4000), 0);
		before = (client.tree->counters.round_trips - before) * 1000 / 50000;
		print_message("%s keys: %llu chains a thousand\n", o == 0 ? "random" : "ascending",
		              (unsigned long long) before);
		if (!many_mapped)
			assert_true(before <= most[o]);
		many_verify(tree, orders[o], 100000);
		tree_close(tree);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),         cmocka_unit_test(test_order),
		cmocka_unit_test(test_crowded_leaf), cmocka_unit_test(test_equal_in_call),
		cmocka_unit_test(test_again),        cmocka_unit_test(test_permits),
		cmocka_unit_test(test_lost),         cmocka_unit_test(test_held),
		cmocka_unit_test(test_crowd),        cmocka_unit_test(test_chains),
	};

	if (many_arguments(argc, argv))
		number_of_calls = 2;
	return cmocka_run_group_tests(tests, many_start, fixture_stop);
}
