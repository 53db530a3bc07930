/*
 * test_leaf_cache.c
 *		Images of leaves (tree/lock/leaf_cache.c): no round trip where there is one, a READ where there is none; which leaves have
 * one, and which never.
 */
#include <stdio.h>
#include <unistd.h>

#include "support/cost.h"
#include "support/leaf_fixture.h"
#include "support/look_up.h"
#include "tree/lock/lock.h"

/* ---- what it costs ---- */

static TreeKey
any_key(const TreeFormat *format, char *string, uint32_t i)
{
	if (format != &text)
		return number_key(scramble(i), i);
	snprintf(string, 24, "%u", i * 7919);
	return text_key(string, i);
}

/* Each key is looked up twice: hit: nothing; miss: the leaf.  So is what is not there. */
static void
look_up_twice(const TreeFormat *format)
{
	for (uint32_t i = 0; i < KEYS; i++)
	{
		char string[24];
		TreeKey key = any_key(format, string, i);

		for (int look = 0; look < 2; look++)
		{
			Cost cost;

			cost_begin(&client, &cost);
			assert_int_equal(look_up(&mine, &key), i % 2 == 0 ? TREE_OK : TREE_END);
			cost_end(&client, &cost);
			assert_in_range(cost.fabric.round_trips, 0, 1 - look);
			assert_int_equal(cost.tree.leaf_reads, cost.fabric.round_trips);
			assert_int_equal(cost.fabric.read_bytes,
			                 cost.fabric.round_trips * mine.tree->geometry.leaf_bytes);
		}
	}
}

/* What inserts cost in all, each of a key whose leaf was looked at before. */
static Cost
insert_costs(const TreeFormat *format)
{
	Cost sum = {0};

	for (uint32_t i = 1; i < KEYS; i += 2)
	{
		char string[24];
		TreeKey key = any_key(format, string, i);
		Cost cost;

		assert_int_equal(look_up(&mine, &key), TREE_END);
		cost_begin(&client, &cost);
		must_insert(mine.tree, &key, false);
		cost_end(&client, &cost);
		sum.fabric.round_trips += cost.fabric.round_trips;
		sum.fabric.read_bytes += cost.fabric.read_bytes;
		sum.fabric.written_bytes += cost.fabric.written_bytes;
		assert_int_equal(look_up(&mine, &key), TREE_OK);
	}
	return sum;
}

/* Lookups without a round trip, and inserts with one less than without: the READ. */
static void
test_counts(void **state)
{
	const TreeFormat *const formats[] = {&narrow, &middle, &text};

	for (size_t f = 0; f < sizeof(formats) / sizeof(formats[0]); f++)
	{
		Cost costs[2];
		uint32_t leaf_bytes = 0;

		for (int kept = 0; kept < 2; kept++)
		{
			begin(formats[f], kept ? ROOMY : 0, 100);
			leaf_bytes = mine.tree->geometry.leaf_bytes;
			for (uint32_t i = 0; i < KEYS; i += 2)
			{
				char string[24];
				TreeKey key = any_key(formats[f], string, i);

				must_insert(mine.tree, &key, false);
			}
			if (kept)
			{
				TreeLeafCounts before = counts_of(&mine);

				leaf_cache_shared_reset(instance.shared);
				look_up_twice(formats[f]);
				/* Each leaf was read once. */
				assert_int_equal(counts_of(&mine).misses - before.misses,
				                 counts_of(&mine).admitted - before.admitted);
				assert_int_equal(
					counts_of(&mine).misses + counts_of(&mine).hits - before.misses - before.hits, 2 * KEYS);
			}
			costs[kept] = insert_costs(formats[f]);
			end();
		}
		/* Each leaf was looked at just before, so that its insert has no READ of it, and writes the same. */
		assert_int_equal(costs[0].fabric.round_trips - costs[1].fabric.round_trips, KEYS / 2);
		assert_int_equal(costs[0].fabric.read_bytes - costs[1].fabric.read_bytes, KEYS / 2 * leaf_bytes);
		assert_int_equal(costs[0].fabric.written_bytes, costs[1].fabric.written_bytes);
	}
}

/* An insert's round trips, of a key that is new. */
static uint64_t
insert_trips(const LeafHandle *handle, uint32_t i)
{
	const TestClient *with = handle == &mine ? &client : &other_client;
	Cost cost;

	cost_begin(with, &cost);
	insert(handle, i);
	cost_end(with, &cost);
	return cost.fabric.round_trips;
}

/* A leaf that was written has a frame, which keeps it: its inserts are a WRITE each.  So are those of the halves of its split. */
static void
test_written(void **state)
{
	uint64_t trips_in_all = 0;

	begin(&narrow, ROOMY, 100);
	fill(200);
	assert_int_equal(trips(&mine, 100, true), 1);
	assert_int_equal(trips(&theirs, 100, true), 0);
	assert_int_equal(insert_trips(&theirs, 1000), 2);
	assert_int_equal(trips(&mine, 1000, true), 0);
	assert_int_equal(insert_trips(&theirs, 1001), 1);
	assert_true(counts_of(&theirs).refreshed > 0);
	assert_int_equal(trips(&mine, 1001, true), 0);
	assert_int_equal(trips(&mine, 1002, false), 0);
	/* Ascending: some five leaves are filled, and split, which takes a new node each time and two round trips for its parent. */
	for (uint32_t i = 1002; i < 1302; i++)
	{
		trips_in_all += insert_trips(&mine, i);
		/* Behind a split it lies in the new half. */
		assert_int_equal(trips(&theirs, i, true), 0);
	}
	assert_in_range(trips_in_all, 300, 300 + 6 * 4);
	for (uint32_t i = 1000; i < 1302; i++)
		assert_int_equal(trips(&theirs, i, true), 0);
	end();
}

/* Leaves of a lock entry that another one of it is written under: theirs are images still. */
static void
test_neighbors(void **state)
{
	const uint32_t usual = test_lock_words;
	uint64_t kept = 0;

	test_lock_words = 1;
	begin(&narrow, ROOMY, 100);
	fill(KEYS);
	assert_int_equal(test_tree_entries(mine.tree), KEYS);
	insert(&theirs, KEYS);
	for (uint32_t i = 0; i < KEYS; i += 10)
		kept += trips(&mine, i, true) == 0;
	assert_int_equal(kept, KEYS / 10);
	end();
	test_lock_words = usual;
}

/* Where there is room a leaf that was read is kept at once; where it would push out another one, one of ten is. */
static void
test_admission(void **state)
{
	TreeLeafCounts before, counts;

	begin(&narrow, ROOMY, 0);
	fill(KEYS);
	before = counts_of(&mine);
	for (uint32_t i = 0; i < KEYS; i += 20)
	{
		(void) trips(&mine, i, true);
		assert_int_equal(trips(&mine, i, true), 0);
	}
	counts = counts_of(&mine);
	assert_int_equal(counts.admitted - before.admitted, counts.misses - before.misses);
	end();

	begin(&narrow, SCARCE, 0);
	fill(KEYS);
	assert_int_equal(test_tree_entries(mine.tree), KEYS);
	before = counts_of(&mine);
	for (uint32_t i = 0; i < 100 * KEYS; i += 70)
		(void) trips(&mine, i % KEYS, true);
	counts = counts_of(&mine);
	counts.admitted -= before.admitted;
	counts.misses -= before.misses;
	printf("    %llu leaves admitted behind %llu reads\n", (unsigned long long) counts.admitted,
	       (unsigned long long) counts.misses);
	assert_in_range(counts.admitted, 50, 1000);
	assert_in_range(counts.misses, 7 * counts.admitted, 14 * counts.admitted);
	end();
}

/* What is fetched ahead is kept, whatever it pushes out: it is asked for soon. */
static void
test_fetched_ahead(void **state)
{
	begin(&narrow, SCARCE, 0);
	fill(KEYS);
	assert_int_equal(test_tree_entries(mine.tree), KEYS);
	for (uint32_t i = 0; i < 10 * KEYS; i += 70)
	{
		TreeKey key = key_of(i % KEYS);
		TreeBound bound;

		bound_of_key(&mine.tree->geometry, &key, &bound);
		bound.side = -1;
		assert_int_equal(tree_prefetch(mine.tree, &bound, 1), TREE_OK);
		assert_int_equal(trips(&mine, i % KEYS, true), 0);
	}
	end();
}

/* A set of frames: leaves that are asked for all the time stay, those that are read once do not push them out. */
static void
test_hot(void **state)
{
	uint64_t hits = 0;

	begin(&narrow, SCARCE, 0);
	fill(KEYS);
	assert_int_equal(table()->frames.sets, 1);
	for (uint32_t i = 0; i < 100; i++)
		for (uint32_t hot = 0; hot < 3; hot++)
			(void) trips(&mine, hot * 600, true);
	for (uint32_t i = 0; i < 10 * KEYS; i += 10)
	{
		(void) trips(&mine, i % KEYS, true);
		for (uint32_t hot = 0; hot < 3; hot++)
			hits += trips(&mine, hot * 600, true) == 0;
	}
	printf("    %llu of %u lookups of hot leaves are hits\n", (unsigned long long) hits, 3 * KEYS);
	assert_true(hits > 3 * KEYS * 95 / 100);
	end();
}

/* A scan reads what is not kept, in one chain, and the next one nothing. */
static void
test_scans(void **state)
{
	begin(&narrow, ROOMY, 100);
	fill(KEYS);
	for (uint32_t i = 0; i < KEYS; i += 150)
		(void) trips(&mine, i, true);
	for (int pass = 0; pass < 2; pass++)
	{
		TreeLeafCounts before = counts_of(&mine);
		Cost cost;

		cost_begin(&client, &cost);
		assert_int_equal(test_tree_entries(mine.tree), KEYS);
		cost_end(&client, &cost);
		assert_int_equal(counts_of(&mine).misses - before.misses, cost.tree.leaf_reads);
		if (pass > 0)
			assert_int_equal(cost.fabric.round_trips, 0);
		else
			assert_in_range(cost.fabric.round_trips, 1, cost.tree.leaf_reads - 1);
	}
	end();
}

/* Where the leaf is at hand no line of it is guessed. */
static void
test_guesses(void **state)
{
	TreeKey key = key_of(77);
	TreeFound found;
	TreeGuesses guesses;
	Cost cost;

	begin(&narrow, ROOMY, 100);
	fill(200);
	for (int i = 0; i < 3; i++)
	{
		cost_begin(&client, &cost);
		assert_int_equal(tree_find(mine.scan, &key, &found), TREE_OK);
		cost_end(&client, &cost);
		assert_int_equal(cost.fabric.round_trips, i == 0 ? 1 : 0);
		assert_int_equal(found.block * 100 + found.offset - 1, 77);
	}
	tree_client_guesses(client.tree, &guesses);
	assert_int_equal(guesses.tried, 0);
	end();
}

/* The tree that is one leaf: it is kept until it becomes an inner node where it is, which the other process does here. */
static void
test_root(void **state)
{
	TreeKey key = key_of(5);

	begin(&narrow, ROOMY, 100);
	insert(&mine, 5);
	for (uint32_t i = 10; i < 200; i++)
	{
		TreeKey other = key_of(i);

		insert(&theirs, i);
		assert_int_equal(look_up(&mine, &other), TREE_OK);
		assert_int_equal(look_up(&mine, &key), TREE_OK);
		if (i == 20)
			assert_int_equal(counts_of(&mine).misses, 1);
	}
	assert_false(mine.tree->root_is_leaf);
	/* Its own insert's, and those of leaves that it had not seen before they were split. */
	assert_in_range(counts_of(&mine).misses, 1, 20);
	end();
}

/* A handle that has not read the root finds its image: no round trip, not even for the first lookup. */
static void
test_root_of_others(void **state)
{
	TreeKey key = key_of(5);
	Cost cost;

	begin(&narrow, ROOMY, 100);
	insert(&mine, 5);
	cost_begin(&other_client, &cost);
	assert_int_equal(look_up(&theirs, &key), TREE_OK);
	cost_end(&other_client, &cost);
	assert_int_equal(cost.fabric.round_trips, 0);
	end();
}

/* The leaf that a load replaces was looked at before. */
static void
test_root_of_load(void **state)
{
	static const TreeWalPosition wal = {0};

	for (uint32_t entries = 3; entries <= 300; entries += 297)
	{
		TreeKey key = key_of(0);
		TreeBulk *bulk;

		begin(&narrow, ROOMY, 100);
		for (int look = 0; look < 3; look++)
		{
			assert_int_equal(look_up(&mine, &key), TREE_END);
			assert_int_equal(look_up(&theirs, &key), TREE_END);
		}
		assert_int_equal(tree_bulk_open(mine.tree, &wal, &bulk), TREE_OK);
		for (uint32_t i = 0; i < entries; i++)
		{
			TreeKey next = number_key(i, i);

			assert_int_equal(tree_bulk_add(bulk, &next), TREE_OK);
		}
		assert_int_equal(tree_bulk_finish(bulk), TREE_OK);
		key = number_key(1, 1);
		assert_int_equal(look_up(&theirs, &key), TREE_OK);
		assert_int_equal(look_up(&mine, &key), TREE_OK);
		end();
	}
}

/* ---- what is not kept ---- */

/* Without the conditions there is no room taken, and leaves are read as ever. */
static void
test_conditions(void **state)
{
	TreeTechniques set = tree_techniques;
	TreeSharedOptions options = {
		.slots = 1, .trees = 1, .cache_bytes = 65536, .lock_words = 1024, .nodes = 2, .techniques = &set};
	const size_t without = tree_shared_bytes(&options);
	const size_t table_bytes = sizeof(LeafTable) + (size_t) options.nodes * options.lock_words * 8;

	options.leaf_cache_bytes = 2 * SCARCE - 1;
	assert_int_equal(tree_shared_bytes(&options), without);
	options.techniques = NULL;
	assert_int_equal(tree_shared_bytes(&options), without);
	options.techniques = &set;
	set.exclusive = true;
	assert_int_equal(tree_shared_bytes(&options), without + table_bytes + SCARCE);
	options.leaf_cache_bytes = SCARCE - 1;
	assert_int_equal(tree_shared_bytes(&options), without);
	options.leaf_cache_leaf_bytes = 200;
	assert_int_equal(tree_shared_bytes(&options),
	                 without + table_bytes + 3 * frames_set_bytes(LEAF_WAYS, 256));
}

/* Leaves of 2 KB where there is room for one only. */
static void
test_long(void **state)
{
	begin(&middle, ROOMY, 100);
	fill(200);
	table()->longest = 1024;
	for (int i = 0; i < 3; i++)
		assert_int_equal(trips(&mine, 5, true), 1);
	table()->longest = 2048;
	assert_int_equal(trips(&mine, 5, true), 1);
	assert_int_equal(trips(&mine, 5, true), 0);
	end();
}

/* A memory node that is closed is not answered for, and what it has when it comes back is read. */
static void
test_closed(void **state)
{
	TreeKey key = key_of(5);

	begin(&narrow, ROOMY, 100);
	fill(200);
	assert_int_equal(trips(&mine, 5, true), 1);
	assert_int_equal(trips(&mine, 5, true), 0);
	tree_node_close(instance.shared, 0);
	assert_int_equal(look_up(&mine, &key), TREE_UNREACHABLE);
	tree_node_open(client.tree, 0, 0);
	assert_int_equal(trips(&mine, 5, true), 1);
	assert_int_equal(trips(&mine, 5, true), 0);
	end();
}

/* ---- leaves of several lengths in one cache ---- */

#define SIZES 3
#define SIZES_PROCESSES 5u
#define SIZES_KEYS 250u

static const TreeFormat *const sizes[SIZES] = {&narrow, &middle, &text};
static TreeRecord sized[SIZES];

/* Of a process of many: what was inserted is found, by all of a crowd that divides frames anew all the time. */
static void
sizes_body(int process, void *argument)
{
	TestClient own;
	Tree *trees[SIZES];
	TreeScan *scans[SIZES];
	TreeLeafCounts counts;

	test_client_open(&own, &instance, 2 + (uint32_t) process);
	for (int t = 0; t < SIZES; t++)
	{
		trees[t] = open_tree(&own, &sized[t]);
		if (tree_scan_open(trees[t], &scans[t]) != TREE_OK)
			_exit(1);
	}
	for (uint32_t i = 0; i < 4 * SIZES * SIZES_KEYS; i++)
	{
		uint32_t t = i % SIZES, number = (uint32_t) process + i / SIZES % SIZES_KEYS * SIZES_PROCESSES;
		char string[24];
		TreeKey key = any_key(sizes[t], string, number);
		bool hit;

		if (i < SIZES * SIZES_KEYS && tree_insert(trees[t], &key, &wal, &hit) != TREE_OK)
			_exit(2);
		if (look_up_key(scans[t], trees[t], &key) != TREE_OK)
			_exit(3);
		number = (uint32_t) process + i * 7919u % (i / SIZES % SIZES_KEYS + 1) * SIZES_PROCESSES;
		key = any_key(sizes[t], string, number);
		if ((i >= SIZES * SIZES_KEYS || number <= (uint32_t) process + i / SIZES * SIZES_PROCESSES) &&
		    look_up_key(scans[t], trees[t], &key) != TREE_OK)
			_exit(4);
	}
	tree_client_leaf_counts(own.tree, &counts);
	if (counts.hits == 0)
		_exit(5);
	_exit(0);
}

/* No image lies in the frames of another one. */
static void
sizes_apart(void)
{
	for (uint32_t number = 0; number < frames_count(&table()->frames); number++)
	{
		const LeafFrame *frame = leaf_frame(table(), number);
		uint32_t t = 0;

		if (frame->valid == 0)
			continue;
		while (t < SIZES && sized[t].tree != frame->head.tree)
			t++;
		assert_in_range(t, 0, SIZES - 1);
		assert_int_equal(number % (1u << t), 0);
		for (uint32_t other = number + 1; other < number + (1u << t); other++)
			assert_int_equal(leaf_frame(table(), other)->valid, 0);
	}
}

/* Images lie side by side in the order in which they came, however full the cache is. */
static void
test_places(void **state)
{
	uint64_t first = UINT64_MAX, last = 0, images = 0;

	begin(&narrow, ROOMY, 100);
	fill(KEYS);
	for (uint32_t i = 0; i < KEYS; i++)
		(void) trips(&mine, i, true);
	for (uint32_t number = 0; number < frames_count(&table()->frames); number++)
	{
		uint64_t place = (uint64_t) leaf_image(table(), number);

		if (place == 0)
			continue;
		images++;
		first = place < first ? place : first;
		last = place > last ? place : last;
	}
	assert_in_range(images, 10, frames_count(&table()->frames) - 1);
	assert_int_equal(last - first, (images - 1) * table()->frames.image_bytes);
	end();
}

static FabricEndpoint *lent; /* what environment.connect() gives; NULL: nothing */
static int connects;         /* its calls */

static FabricEndpoint *
count_connect(void *argument, uint32_t node, char *detail)
{
	connects++;
	strcpy(detail, "gone fishing");
	return lent;
}

/* The fixture's client has no connection any more. */
static void
disconnect(bool vouched)
{
	connects = 0;
	tree_client_reconnect(client.tree, 0);
	if (vouched)
		tree_client_vouch(client.tree, 0);
}

static TreeStatus
look_up_number(uint32_t i)
{
	TreeKey key = key_of(i);

	return look_up(&mine, &key);
}

/*
 * A client that is not connected takes what there is in the cache if its caller vouches for the memory node, and connects
 * for the rest.
 */
static void
test_vouched(void **state)
{
	begin(&narrow, ROOMY, 100);
	lent = client.tree->options.endpoints[0];
	client.tree->options.environment.connect = count_connect;
	fill(KEYS);
	for (uint32_t i = 0; i < KEYS; i++)
		(void) trips(&mine, i, true);

	disconnect(true);
	for (uint32_t i = 0; i < KEYS; i++)
		assert_int_equal(trips(&mine, i, true), 0);
	assert_int_equal(connects, 0);
	leaf_cache_shared_reset(instance.shared);
	assert_int_equal(trips(&mine, 7, true), 1);
	assert_int_equal(trips(&mine, KEYS - 1, true), 1);
	assert_int_equal(connects, 1);
	assert_int_equal(trips(&mine, 7, true), 0);

	/* Nobody vouches: the leaf is read. */
	disconnect(false);
	assert_int_equal(trips(&mine, 7, true), 1);
	assert_int_equal(connects, 1);

	/* A memory node that is closed gives nothing, whoever vouched for it. */
	disconnect(true);
	tree_node_close(instance.shared, 0);
	assert_int_equal(look_up_number(7), TREE_UNREACHABLE);
	assert_int_equal(connects, 0);
	tree_node_open(other_client.tree, 0, 0);

	/* Nor does one that does not let the client in, from then on. */
	(void) trips(&theirs, 7, true);
	lent = NULL;
	disconnect(true);
	assert_int_equal(look_up_number(7), TREE_OK);
	assert_int_equal(look_up_number(KEYS / 2), TREE_UNREACHABLE);
	assert_int_equal(look_up_number(7), TREE_UNREACHABLE);
	assert_int_equal(connects, 2);
	lent = client.endpoints[0];
	end();
}

static void
test_sizes(void **state)
{
	TreeCacheUsage inner, leaves;

	begin(&narrow, 3 * SCARCE, 100);
	for (int t = 0; t < SIZES; t++)
		test_tree_create(&client, sizes[t], &sized[t]);
	assert_int_equal(test_processes(SIZES_PROCESSES, sizes_body, NULL), 0);
	tree_cache_usage(instance.shared, &inner, &leaves);
	printf("    %llu leaves in %llu of %llu bytes\n", (unsigned long long) leaves.nodes,
	       (unsigned long long) leaves.used_bytes, (unsigned long long) leaves.bytes);
	assert_in_range(leaves.used_bytes, leaves.bytes / 2, leaves.bytes);
	sizes_apart();
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),       cmocka_unit_test(test_written),
		cmocka_unit_test(test_admission),    cmocka_unit_test(test_hot),
		cmocka_unit_test(test_scans),        cmocka_unit_test(test_guesses),
		cmocka_unit_test(test_root),         cmocka_unit_test(test_root_of_others),
		cmocka_unit_test(test_root_of_load), cmocka_unit_test(test_conditions),
		cmocka_unit_test(test_long),         cmocka_unit_test(test_closed),
		cmocka_unit_test(test_neighbors),    cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_places),       cmocka_unit_test(test_fetched_ahead),
		cmocka_unit_test(test_vouched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
