/*
 * test_offload.c
 *		Lookups that the memory node descends for (tree/descent/offload.c): what they cost, which way is chosen, and that they answer what
 *		READs answer.  test_offload_answers.c has answers that are none, test_descend.c the memory node's side.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/offload_fixture.h"
#include "tree/shared/cache.h"

/* Keys that integers do not tell apart. */
#define TIED_LENGTH 60

/* ---- what it costs ---- */

/* One call in place of the READs of an inner node and a leaf; never where the cache has the inner node. */
static void
test_counts(void **state)
{
	const TreeFormat *const formats[] = {&narrow, &middle};

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
	{
		begin(formats[f], TREE_OFFLOAD_ALWAYS);
		fill(formats[f], NUMBERS);
		forget();
		for (uint32_t i = 0; i < NUMBERS; i += 7)
		{
			TreeOffloads before = offloads();
			Cost cost = look_up(formats[f], i);

			assert_int_equal(cost.fabric.round_trips, 0);
			assert_int_equal(cost.fabric.calls, 1);
			assert_int_equal(offloads().calls - before.calls, 1);
			assert_int_equal(offloads().brought - before.brought, 1);
			assert_int_equal(offloads().bytes - before.bytes,
			                 DIRECTORY_DESCENDED_BYTES + tree->geometry.leaf_bytes);
		}
		client.tree->techniques.offload = TREE_OFFLOAD_BY_COST;
		for (uint32_t i = 0; i < 2; i++)
		{
			Cost cost = look_up(formats[f], 8);

			assert_int_equal(cost.fabric.calls, 0);
			assert_int_equal(cost.fabric.round_trips, 2 - i);
		}
		client.tree->techniques.offload = TREE_OFFLOAD_ALWAYS;
		assert_int_equal(look_up(formats[f], 8).fabric.calls, 0);
		end();
	}
}

/* Inserts, scans of more than a key, and whoever is told of leaves read by themselves. */
static void
on_leaf(void *argument, uint64_t leaf)
{
	++*(int *) argument;
}

static void
test_not_offloaded(void **state)
{
	TreeKey key = number_key(12345, 99999);
	const TreeBatch *batch;
	TreeBound low, high;
	int told = 0;
	Cost cost;

	begin(&narrow, TREE_OFFLOAD_ALWAYS);
	fill(&narrow, NUMBERS);
	forget();
	cost_begin(&client, &cost);
	must_insert(tree, &key, false);
	cost_end(&client, &cost);
	assert_int_equal(cost.fabric.calls, 0);
	forget();
	bound_of_key(&tree->geometry, &key, &low);
	high = low;
	low.side = -1;
	high.side = 1;
	high.key.norm[0]++;
	cost_begin(&client, &cost);
	assert_int_equal(tree_scan_seek(scan, TREE_FORWARD, &low, &high), TREE_OK);
	assert_int_equal(tree_scan_next(scan, &batch), TREE_OK);
	cost_end(&client, &cost);
	assert_int_equal(cost.fabric.calls, 0);
	forget();
	tree_scan_on_leaf(scan, on_leaf, &told);
	cost_begin(&client, &cost);
	assert_int_equal(look_up_key(scan, tree, &key), TREE_OK);
	cost_end(&client, &cost);
	assert_int_equal(cost.fabric.calls, 0);
	assert_int_equal(told, 1);
	tree_scan_on_leaf(scan, NULL, NULL);
	end();
	/* Nothing is kept of what is never done. */
	begin(&narrow, TREE_OFFLOAD_NEVER);
	assert_null(client.tree->shared->offloads);
	end();
}

/* ---- the same answers ---- */

/* Where integers do not tell keys apart the call ends on its way, and answers are those of READs. */
static void
test_ties(void **state)
{
	TreeOffloads counts;

	begin(&text, TREE_OFFLOAD_ALWAYS);
	for (uint32_t i = 0; i < STRINGS; i++)
		must_insert_tied(tree, i, TIED_LENGTH, "", false);
	for (uint32_t i = 0; i < STRINGS; i += 50)
	{
		char string[TIED_MAX_BYTES];
		TreeKey key;

		forget();
		tied_string(string, i, TIED_LENGTH);
		key = text_key(string, i);
		assert_int_equal(look_up_key(scan, tree, &key), TREE_OK);
		string[0] = 'w';
		key = text_key(string, i);
		assert_int_equal(look_up_key(scan, tree, &key), TREE_END);
	}
	counts = offloads();
	assert_true(counts.calls > counts.brought && counts.brought > 0);
	end();
	begin(&text, TREE_OFFLOAD_ALWAYS);
	fill(&text, STRINGS);
	for (uint32_t i = 0; i < STRINGS; i += 13)
	{
		forget();
		(void) look_up(&text, i);
	}
	assert_true(offloads().brought > STRINGS / 13 / 2);
	end();
}

/* A tree that is filled, its cache empty, and another instance, which is without offloading: the tree in its hands. */
static Tree *
begin_with_other(OtherInstance *other)
{
	begin(&narrow, TREE_OFFLOAD_ALWAYS);
	fill(&narrow, NUMBERS);
	forget();
	instance.options.techniques = NULL;
	other_start(other);
	return open_tree(&other->client, &record);
}

/* Another instance splits what we have in the cache: the call finds the bound beyond its node, and READs go right. */
static void
test_split_meanwhile(void **state)
{
	OtherInstance other;
	TreeScan *theirs;
	Tree *their_tree;
	uint64_t stale, misses;

	their_tree = begin_with_other(&other);
	assert_int_equal(tree_scan_open(their_tree, &theirs), TREE_OK);
	for (uint32_t i = NUMBERS; i < 4 * NUMBERS; i += 2)
	{
		TreeKey key = key_of(&narrow, NULL, i);

		must_insert(their_tree, &key, false);
	}
	stale = offloads().calls - offloads().brought;
	for (uint32_t i = 0; i < 4 * NUMBERS; i += 11)
	{
		TreeKey key = key_of(&narrow, NULL, i);

		(void) look_up(&narrow, i);
		assert_int_equal(look_up_key(theirs, tree, &key), i % 2 == 0 ? TREE_OK : TREE_END);
	}
	misses = offloads().calls - offloads().brought - stale;
	assert_true(misses > 0 && offloads().brought > misses);
	tree_scan_close(theirs);
	tree_close(their_tree);
	other_stop(&other);
	end();
}

static Tree *their_tree;
static uint32_t next_insert;

/* Between the request and its answer the leaf is filled, and split. */
static FabricStatus
insert_first(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer,
             uint32_t *bytes)
{
	FabricStatus status = honest(endpoint, request, answer, bytes);

	for (int i = 0; i < 80; i++)
	{
		TreeKey key = number_key(request->norm[0] + 2 + (uint64_t) i * 2, next_insert++);

		must_insert(their_tree, &key, false);
	}
	return status;
}

static void
test_split_under_way(void **state)
{
	OtherInstance other;

	their_tree = begin_with_other(&other);
	next_insert = 10 * NUMBERS;
	for (uint32_t i = 0; i < NUMBERS; i += NUMBERS / 50)
	{
		meddle = insert_first;
		(void) look_up(&narrow, i);
		meddle = NULL;
		(void) look_up(&narrow, i);
	}
	tree_close(their_tree);
	other_stop(&other);
	end();
}

/* ---- two memory nodes ---- */

/* `record` is of a new tree there, whose nodes have copies or not. */
static void
two_begin(bool replicated)
{
	techniques = tree_techniques;
	techniques.offload = TREE_OFFLOAD_ALWAYS;
	test_techniques = &techniques;
	fixture_open(&(FixtureOptions){.nodes = 2});
	if (replicated)
		test_replicated_create(&client, &narrow, &record);
	else
		test_tree_create(&client, &narrow, &record);
	tree = open_tree(&client, &record);
	if (replicated)
		assert_int_equal(tree_set_replica(tree, 1 - tree_home(record.root), TREE_REPLICAS_BOTH, false),
		                 TREE_OK);
	assert_int_equal(tree_scan_open(tree, &scan), TREE_OK);
}

static void
two_look_up(void)
{
	for (uint32_t i = 0; i < 2 * NUMBERS; i += 37)
	{
		TreeKey key = key_of(&narrow, NULL, i);

		cache_drop_tree(instance.shared, tree->tree);
		assert_int_equal(look_up_key(scan, tree, &key), i % 2 == 0 ? TREE_OK : TREE_END);
	}
}

/* What lookups have asked of two memory nodes. */
static TreeOffloads
two_offloads(bool replicas)
{
	TreeOffloads counts;

	two_begin(replicas);
	fill(&narrow, 2 * NUMBERS);
	two_look_up();
	tree_client_offloads(client.tree, &counts);
	end();
	return counts;
}

/* Where the leaf is at another memory node the call tells its place, and a READ goes there. */
static void
test_two_nodes(void **state)
{
	TreeOffloads counts = two_offloads(false);

	assert_true(counts.brought > 0 && counts.found > counts.brought && counts.calls >= counts.found);
}

/* Nodes that have a copy may be read there: the memory node that they are named by is not asked. */
static void
test_replicas(void **state)
{
	assert_int_equal(two_offloads(true).calls, 0);
}

/* ---- the rule ---- */

/* How many of so many lookups choose the call. */
static uint32_t
chosen(uint32_t of, uint32_t level)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < of; i++)
		count += offload_chosen(tree, 0, level);
	return count;
}

static void
test_rule(void **state)
{
	OffloadCosts *costs;

	begin(&narrow, TREE_OFFLOAD_BY_COST);
	client.tree->random = 1;
	costs = client.tree->shared->offloads;
	/* First READs are measured, then calls. */
	assert_int_equal(chosen(1000, 1), 0);
	for (uint32_t i = 0; i < OFFLOAD_SAMPLES; i++)
	{
		assert_int_equal(costs->reads, i);
		offload_read_took(tree, 0, 10);
	}
	assert_int_equal(costs->read, 10 * OFFLOAD_FRACTION);
	assert_int_equal(chosen(1000, 1), 1000);
	costs->calls = OFFLOAD_SAMPLES;
	/* 1.2 times two READs of 10.04 us are 24.1 us, and three 36.1. One of a hundred goes the other way. */
	costs->call = 24 * OFFLOAD_FRACTION;
	assert_in_range(chosen(10000, 1), 9850, 9950);
	costs->call = 25 * OFFLOAD_FRACTION;
	assert_in_range(chosen(10000, 1), 50, 150);
	assert_in_range(chosen(10000, 2), 9850, 9950);
	costs->call = 37 * OFFLOAD_FRACTION;
	assert_in_range(chosen(10000, 2), 50, 150);
	/* Averages follow. */
	for (uint32_t i = 0; i < 10 * OFFLOAD_SAMPLES; i++)
		offload_read_took(tree, 0, 30);
	assert_in_range(costs->read, 29 * OFFLOAD_FRACTION, 30 * OFFLOAD_FRACTION);
	assert_in_range(chosen(10000, 2), 9850, 9950);
	/* One that hung does not decide for long. */
	offload_read_took(tree, 0, 10 * 1000 * 1000);
	assert_in_range(costs->read, 30 * OFFLOAD_FRACTION, 40 * OFFLOAD_FRACTION);
	/* A new incarnation knows nothing. */
	offload_shared_reset(client.tree->shared);
	assert_int_equal(chosen(1000, 1), 0);
	end();
}

static FabricStatus
refused(FabricEndpoint *endpoint, const DirectoryDescent *request, DirectoryDescended *answer,
        uint32_t *bytes)
{
	*bytes = 0;
	return FABRIC_NOT_SUPPORTED;
}

/* A microsecond for each look at the clock, however long things take. */
static uint64_t
tick(void *argument)
{
	static uint64_t now;

	return ++now;
}

/* Calls that bring nothing are avoided, however fast they are; and tried again now and then. */
static void
test_rule_in_vain(void **state)
{
	TreeOffloads before;
	uint32_t calls;

	begin(&narrow, TREE_OFFLOAD_BY_COST);
	fill(&narrow, NUMBERS);
	client.tree->random = 1;
	client.tree->options.environment.now_us = tick;
	meddle = refused;
	for (uint32_t i = 0; i < 3000; i++)
	{
		if (i == 1000)
			before = offloads();
		cache_drop_tree(client.tree->shared, tree->tree);
		(void) look_up(&narrow, i);
	}
	calls = (uint32_t) (offloads().calls - before.calls);
	assert_in_range(calls, 5, 60);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_not_offloaded),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_split_meanwhile),
		cmocka_unit_test(test_split_under_way),
		cmocka_unit_test(test_two_nodes),
		cmocka_unit_test(test_replicas),
		cmocka_unit_test(test_rule),
		cmocka_unit_test(test_rule_in_vain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
