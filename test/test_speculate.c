/*
 * test_speculate.c
 *		Speculative lookups (tree/scan/speculate.c): 64 bytes where the entry cache knows the cell, and the right answer whatever has
 * become of it since.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fault.h"
#include "internal.h"
#include "support/cost.h"
#include "support/tree_fixture.h"

#define KEYS 2000u

static TreeRecord record;
static Tree *tree;
static TreeScan *scan;

static void
begin(const TreeFormat *format)
{
	tree = new_tree(format, &record);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
}

static void
end(void)
{
	tree_scan_close(scan);
	tree_close(tree);
}

static uint64_t
guesses(void)
{
	TreeGuesses made;

	tree_client_guesses(client.tree, &made);
	return made.tried;
}

/* Finds the key with the TID, or nothing. */
static void
find(const TreeKey *key, bool expected)
{
	TreeFound found;
	TreeStatus status = tree_find(scan, key, &found);

	assert_int_equal(status, expected ? TREE_OK : TREE_END);
	if (!expected)
		return;
	assert_int_equal(found.block, key->block);
	assert_int_equal(found.offset, key->offset);
	assert_false(found.unverified);
}

static TreeKey
string_key(char *string, uint32_t i)
{
	snprintf(string, 24, "%u", i * 7919);
	return text_key(string, i);
}

/* The same key twice: the second time one line is read. */
static void
find_twice(const TreeKey *key)
{
	TreeFound found;
	Cost cost;

	find(key, true);
	cost_begin(&client, &cost);
	find(key, true);
	cost_end(&client, &cost);
	assert_int_equal(cost.fabric.round_trips, 1);
	assert_int_equal(cost.fabric.reads, 1);
	assert_int_equal(cost.fabric.read_bytes,
	                 tree->geometry.lines_whole ? LINE_BYTES : tree->geometry.cell_bytes);
	assert_int_equal(cost.fabric.written_bytes, 0);
	assert_int_equal(cost.tree.lookups, 1);
	assert_int_equal(tree_find(scan, key, &found), TREE_OK);
}

static const TreeFormat crossing = {.cell_bytes = 24, .norm_bytes = 16, .lossless = true, .fill_percent = 90};

/* 1024 bytes less 960: of a leaf of any format, one line, or one cell where cells cross lines. */
static void
test_counts(void **state)
{
	const TreeFormat *const formats[] = {&narrow, &middle, &text, &crossing};

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
	{
		bool strings = formats[f] == &text;
		char string[24];

		begin(formats[f]);
		for (uint32_t i = 0; i < KEYS; i += 2)
		{
			TreeKey key = strings ? string_key(string, i) : number_key(scramble(i), i);

			must_insert(tree, &key, false);
		}
		for (uint32_t i = 0; i < KEYS; i++)
		{
			TreeKey key = strings ? string_key(string, i) : number_key(scramble(i), i);
			Cost cost;

			if (i % 2 == 0)
			{
				find_twice(&key);
				continue;
			}
			/* What is not there is looked for in its leaf. */
			cost_begin(&client, &cost);
			find(&key, false);
			cost_end(&client, &cost);
			assert_int_equal(cost.fabric.round_trips, 1);
			assert_int_equal(cost.fabric.read_bytes, tree->geometry.leaf_bytes);
		}
		end();
	}
}

/* A wrong guess costs a line and a round trip, once. */
static void
test_wrong(void **state)
{
	TreeKey key;
	Cost cost;

	begin(&narrow);
	for (uint32_t i = 0; i < 200; i++)
	{
		key = number_key(scramble(i), i);
		must_insert(tree, &key, false);
	}
	find_twice(&key);
	/* It is there already: its leaf is rewritten, sorted, and the cell leaves the tail. */
	must_insert(tree, &key, true);
	cost_begin(&client, &cost);
	find(&key, true);
	cost_end(&client, &cost);
	assert_int_equal(cost.fabric.round_trips, 2);
	assert_int_equal(cost.fabric.read_bytes, LINE_BYTES + tree->geometry.leaf_bytes);
	find_twice(&key);
	end();
}

/* Cells that moved by splits and rewrites: the guess is wrong, and the answer is not. */
static void
test_moved(void **state)
{
	uint64_t before = guesses();
	TreeGuesses made;

	begin(&narrow);
	for (uint32_t i = 0; i < KEYS; i++)
	{
		TreeKey key = number_key(scramble(i), i);

		must_insert(tree, &key, false);
		find(&key, true);
		key = number_key(scramble(i / 2), i / 2);
		find(&key, true);
	}
	tree_client_guesses(client.tree, &made);
	printf("%llu guesses, %llu right\n", (unsigned long long) (made.tried - before),
	       (unsigned long long) made.right);
	for (uint32_t i = 0; i < KEYS; i++)
	{
		TreeKey key = number_key(scramble(i), i);

		find(&key, true);
	}
	end();
}

/* ---- entries that are gone ---- */

static bool
is_gone(void *argument, uint32_t block, uint16_t offset)
{
	const uint32_t *from = argument;

	return block * 100 + offset - 1u >= *from;
}

/* Removes the entries from TID `from` on, and, `merge`, takes the leaves that are empty then out of the tree. */
static void
remove_from(uint32_t from, bool merge)
{
	TreeVacuumCounts counts = {0};
	TreeMergeCounts merged = {0};
	TreeVacuum *vacuum;
	TreeMerge *walk;
	TreeStatus status;

	assert_int_equal(tree_vacuum_open(tree, &vacuum), TREE_OK);
	while ((status = tree_vacuum_next(vacuum, is_gone, &from, &counts)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	if (merge)
	{
		assert_int_equal(tree_merge_open(tree, vacuum, &walk), TREE_OK);
		while ((status = tree_merge_next(walk, &merged)) == TREE_OK)
			;
		assert_int_equal(status, TREE_END);
		tree_merge_close(walk);
		assert_true(merged.leaves > 0);
	}
	tree_vacuum_close(vacuum);
}

static void
test_removed(void **state)
{
	begin(&narrow);
	for (uint32_t i = 0; i < KEYS; i++)
	{
		TreeKey key = number_key(scramble(i), i);

		must_insert(tree, &key, false);
	}
	for (uint32_t i = 0; i < KEYS; i++)
	{
		TreeKey key = number_key(scramble(i), i);

		find(&key, true);
	}
	remove_from(KEYS / 2, false);
	for (uint32_t i = 0; i < KEYS; i++)
	{
		TreeKey key = number_key(scramble(i), i);

		find(&key, i < KEYS / 2);
	}
	end();
}

/* What is dead-marked is not found, though its cell has the key still. */
static void
test_dead(void **state)
{
	const TreeWalPosition dead_set_wal_position = {.epoch = 7, .lsn = 2000};
	TreeBound low, high;
	const TreeBatch *batch;
	TreeKey key;
	TreeDead dead;
	int marked;

	begin(&narrow);
	for (uint32_t i = 0; i < 200; i++)
	{
		key = number_key(scramble(i), i);
		must_insert(tree, &key, false);
	}
	key = number_key(scramble(77), 77);
	find_twice(&key);
	bound_of_key(&tree->geometry, &key, &low);
	low.side = -1;
	high = low;
	high.side = 1;
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, &low, &high), TREE_OK);
	assert_int_equal(tree_scan_next(scan, &batch), TREE_OK);
	dead = (TreeDead){
		.block = batch->entries[0].block, .offset = batch->entries[0].offset, .cell = batch->entries[0].cell};
	assert_int_equal(tree_mark_dead(tree, &batch->leaf, &dead, 1, &dead_set_wal_position, &marked), TREE_OK);
	assert_int_equal(marked, 1);
	find(&key, false);
	end();
}

/* A merge begins an epoch: nodes may have become others, and nothing that was remembered is looked at. */
static void
test_merged(void **state)
{
	TreeKey key = number_key(5, 5);
	uint64_t before;

	begin(&narrow);
	for (uint32_t i = 0; i < KEYS; i++)
	{
		TreeKey other = number_key(i, i);

		must_insert(tree, &other, false);
	}
	find_twice(&key);
	remove_from(KEYS / 2, true);
	before = guesses();
	find(&key, true);
	assert_int_equal(guesses(), before);
	find(&key, true);
	assert_int_equal(guesses(), before + 1);
	end();
}

/*
 * A root that was a leaf and has grown: a separator where the cell was looks like an entry of its key, and is none any more.
 */
static void
test_root(void **state)
{
	const uint32_t entries = 58;
	TreeKey key = number_key(5, 1);
	TreeFound found;

	begin(&narrow);
	/* The lowest TID in slot 2: there the separator of the root's second child will stand. */
	for (uint32_t i = 0; i <= entries; i++)
	{
		TreeKey other = number_key(5, i == 2 ? 1 : i + 10);

		must_insert(tree, &other, false);
		if (i == 2)
			find(&key, true);
	}
	assert_false(tree->root_is_leaf);
	remove_from(0, false);
	assert_int_equal(tree_find(scan, &key, &found), TREE_END);
	end();
}

/* A cache of one entry, which all keys share; and none at all. */
static void
test_small(void **state)
{
	const uint64_t bytes[] = {16, 0};
	const uint64_t usual = test_entry_cache_bytes;

	for (size_t b = 0; b < 2; b++)
	{
		assert_int_equal(fixture_stop(NULL), 0);
		test_entry_cache_bytes = bytes[b];
		assert_int_equal(fixture_start(NULL), 0);
		begin(&narrow);
		for (uint32_t i = 0; i < 200; i++)
		{
			TreeKey key = number_key(scramble(i), i);

			must_insert(tree, &key, false);
		}
		for (uint32_t i = 0; i < 400; i++)
		{
			TreeKey key = number_key(scramble(i / 2), i / 2);

			find(&key, true);
		}
		/* The second look at each key. */
		assert_int_equal(guesses(), b == 0 ? 200 : 0);
		end();
	}
	test_entry_cache_bytes = usual;
}

/* What an entry cache takes of shared memory: a power of two of entries, as many as there is room for. */
static void
test_sizes(void **state)
{
	static const struct
	{
		uint64_t asked;
		uint64_t taken;
	} sizes[] = {{64, 64},       {127, 64},      {128, 128},         {65535, 32768},
	             {65536, 65536}, {65537, 65536}, {1 << 20, 1 << 20}, {(3ull << 40) - 1, 1ull << 41}};
	TreeSharedOptions options = {
		.slots = 1, .trees = 1, .cache_bytes = 65536, .lock_words = 1024, .nodes = 1};
	const size_t without = tree_shared_bytes(&options);

	options.entry_cache_bytes = 15;
	assert_int_equal(tree_shared_bytes(&options), without);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		options.entry_cache_bytes = sizes[i].asked;
		assert_int_equal(tree_shared_bytes(&options) - without, sizes[i].taken);
	}
}

/* environment.connect(): the connection of the test's client. */
static FabricEndpoint *endpoint_of_test;

static FabricEndpoint *
connect_first(void *argument, uint32_t number, char *detail)
{
	return endpoint_of_test;
}

/* No line is believed by itself whose READs may tear it, not even the first one of a process, which is connected by that. */
static void
test_torn(void **state)
{
	const FabricFaultPlan torn = {.seed = 1, .tear_words = true};
	TreeClientOptions options = {
		.shared = instance.shared,
		.environment = test_environment(&instance),
		.nodes = 1,
		.operation_timeout_ms = 5000,
	};
	TreeKey key = number_key(scramble(1), 1);
	TreeClient *usual = client.tree;

	begin(&narrow);
	for (uint32_t i = 0; i < KEYS; i++)
	{
		TreeKey other = number_key(scramble(i), i);

		must_insert(tree, &other, false);
	}
	find_twice(&key);
	end();
	endpoint_of_test = client.endpoints[0];
	options.environment.connect = connect_first;
	assert_int_equal(tree_client_open(&options, &client.tree), TREE_OK);
	assert_int_equal(fabric_fault_set(endpoint_of_test, &torn), FABRIC_OK);
	tree = open_tree(&client, &record);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
	for (int i = 0; i < 3; i++)
		find(&key, true);
	assert_int_equal(guesses(), 0);
	end();
	assert_int_equal(fabric_fault_set(endpoint_of_test, NULL), FABRIC_OK);
	assert_int_equal(tree_client_close(client.tree), TREE_OK);
	client.tree = usual;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts), cmocka_unit_test(test_torn),    cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_moved),  cmocka_unit_test(test_removed), cmocka_unit_test(test_dead),
		cmocka_unit_test(test_merged), cmocka_unit_test(test_root),    cmocka_unit_test(test_small),
		cmocka_unit_test(test_sizes),

	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
