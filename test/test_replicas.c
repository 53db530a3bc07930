/*
 * test_replicas.c
 *		Trees with copies: what is written where and when, what is left when one of the two memory nodes is
 *		lost, and copies that differ.
 */
#include "tree/client/directory.h"
#include "fault.h"
#include "support/checked_tree.h"
#include "support/tree_fixture.h"
#include "tree/lock/lock.h"

#define NODES 2

/* Enough for several extents in each space. */
#define MANY 6000
#define RANGE 3000

static uint32_t
copy_of(const CheckedTree *f)
{
	uint32_t copy;

	assert_true(tree_record_replica(&f->record, &copy));
	assert_int_not_equal(copy, tree_home(f->record.root));
	return copy;
}

static void
handle_open(CheckedTree *f, TreeReplicaState state, bool doubt)
{
	require_ok(tree_open(client.tree, f->record.tree, f->record.root, &f->space->format, keyspace_compare,
	                     (void *) f->space, &f->tree));
	require_ok(tree_set_replica(f->tree, copy_of(f), state, doubt));
	require_ok(tree_scan_open(f->tree, &f->scan));
}

static void
handle_close(CheckedTree *f)
{
	tree_scan_close(f->scan);
	tree_close(f->tree);
}

static void
replicated_open(CheckedTree *f, KeySpaceKind kind)
{
	memset(f, 0, sizeof(*f));
	f->space = keyspace(kind);
	f->random.state = 177 + kind;
	test_replicated_create(&client, &f->space->format, &f->record);
	handle_open(f, TREE_REPLICAS_BOTH, false);
}

/* `home`: of the record that is left. */
static void
replicated_close(CheckedTree *f, uint32_t home)
{
	handle_close(f);
	require_ok(tree_drop(client.tree, f->record.tree, home));
	key_model_free(&f->model);
}

/* Compares all nodes with their copies; returns how many differed. */
static uint64_t
compare(CheckedTree *f, bool repair)
{
	TreeReplicaCounts counts;

	require_ok(tree_replicas_compare(f->tree, repair, &counts));
	assert_true(counts.nodes > 0);
	assert_int_equal(counts.written, repair ? counts.differ : 0);
	return counts.differ;
}

/* The tree is the model, in both directions and by every check. */
static void
compare_with_model(CheckedTree *f)
{
	TreeStatistics statistics;

	compare_everything(f, RANGE, 50);
	compare_check(f, &statistics);
	assert_true(statistics.height > 1);
}

/* The memory node is gone, and everybody knows. */
static void
node_lose(uint32_t number)
{
	test_node_kill(&nodes[number]);
	tree_node_close(instance.shared, number);
}

/* ---- what is written where ---- */

/*
 * After each step of each kind all nodes are equal; and the copy alone is the tree when the home is gone, and
 * goes on.
 */
static void
equal_and_alone(KeySpaceKind kind)
{
	CheckedTree f;
	uint32_t home;

	fixture_open(&fixture_options);
	replicated_open(&f, kind);
	home = tree_home(f.record.root);
	for (int step = 0; step < 6; step++)
	{
		insert_random(&f, MANY / 6, RANGE, (uint64_t) step * MANY);
		assert_int_equal(compare(&f, false), 0);
		if (step % 2 == 1)
			vacuum(&f);
		assert_int_equal(compare(&f, false), 0);
	}
	compare_with_model(&f);
	assert_false(tree_replicas_in_doubt(f.tree));

	node_lose(home);
	tree_replicas_set(f.tree, TREE_REPLICAS_SECOND);
	compare_with_model(&f);
	insert_random(&f, MANY / 2, RANGE, 10 * MANY);
	vacuum(&f);
	compare_with_model(&f);
	/* Another handle, as of a process that knew nothing: what was given up stays so. */
	handle_close(&f);
	handle_open(&f, TREE_REPLICAS_BOTH, false);
	assert_int_equal(tree_replicas_get(f.tree), TREE_REPLICAS_SECOND);
	compare_with_model(&f);
	replicated_close(&f, copy_of(&f));
	fixture_close();
}

static void
test_lossless(void **state)
{
	equal_and_alone(KEYSPACE_16);
}

static void
test_wide(void **state)
{
	equal_and_alone(KEYSPACE_32_WHOLE);
}

static void
test_images(void **state)
{
	equal_and_alone(KEYSPACE_64_FULL);
	equal_and_alone(KEYSPACE_40_OVERFLOW);
}

/* READs of this memory node may tear lines from now on, as those of software on a network card's behalf do. */
static void
node_tears(uint32_t number)
{
	const FabricFaultPlan torn = {.seed = 1, .tear_words = true};

	assert_int_equal(fabric_fault_set(client.endpoints[number], &torn), FABRIC_OK);
	client_find_tearing(client.tree);
}

/* Reads a node as it lies, and gives no sum to a leaf that has none. */
static void
node_read(CheckedTree *f, uint64_t pointer, uint32_t bytes, uint64_t *node)
{
	FabricOp op = {.opcode = FABRIC_READ,
	               .region = FABRIC_NODES,
	               .length = bytes,
	               .offset = pointer_offset(pointer),
	               .buffer = node};

	require_ok(access_execute(f->tree, pointer_memory_node(pointer), &op, 1));
	assert_int_equal(node[HEADER_SELF], pointer_address(pointer));
}

/* Leaves of the tree that have no sum. */
static uint32_t
leaves_without_sum(CheckedTree *f)
{
	static uint64_t node[NODE_MAX_BYTES / 8];
	const NodeGeometry *g = &f->tree->geometry;
	uint64_t pointer = f->tree->root;
	uint32_t without = 0;

	node_read(f, pointer, g->leaf_bytes, node);
	while (node_level(node) > 0)
	{
		pointer = node[inner_cell_word(g, 0)];
		node_read(f, pointer, g->leaf_bytes, node);
	}
	for (;;)
	{
		without += (node_flags(node) & NODE_SUM_VALID) == 0;
		if (node[HEADER_RIGHT] == POINTER_NONE)
			return without;
		node_read(f, node[HEADER_RIGHT], g->leaf_bytes, node);
	}
}

/* The memory node that tears lines. */
typedef enum Tearing
{
	TEARING_HOME,
	TEARING_REPLICA,
	TEARINGS
} Tearing;

/*
 * Where READs of one of the two memory nodes may tear lines all leaves have sums, from the empty root on; where that comes later, when
 * the copy stands alone, too, each leaf has one as soon as it was read.
 */
static void
test_one_tears(void **state)
{
	for (int tearing = 0; tearing < TEARINGS; tearing++)
		for (int later = 0; later < 2; later++)
		{
			CheckedTree f;
			uint32_t number;

			fixture_open(&fixture_options);
			replicated_open(&f, KEYSPACE_16);
			number = tearing == TEARING_HOME ? tree_home(f.record.root) : copy_of(&f);
			if (later == 0)
			{
				/* Made anew, as the memory node for the home is chosen at random. */
				node_tears(number);
				do
				{
					replicated_close(&f, tree_home(f.record.root));
					replicated_open(&f, KEYSPACE_16);
				} while ((tearing == TEARING_HOME ? tree_home(f.record.root) : copy_of(&f)) != number);
				assert_int_equal(leaves_without_sum(&f), 0);
				assert_int_equal(compare(&f, false), 0);
			}
			insert_random(&f, MANY / 4, RANGE, 0);
			if (later == 0)
				assert_int_equal(leaves_without_sum(&f), 0);
			if (tearing == TEARING_REPLICA || later == 0)
			{
				node_lose(tree_home(f.record.root));
				tree_replicas_set(f.tree, TREE_REPLICAS_SECOND);
			}
			if (later != 0)
				node_tears(number);
			compare_with_model(&f);
			assert_int_equal(leaves_without_sum(&f), 0);
			insert_random(&f, MANY / 4, RANGE, MANY);
			assert_int_equal(leaves_without_sum(&f), 0);
			compare_with_model(&f);
			replicated_close(&f, tearing == TEARING_REPLICA || later == 0 ? copy_of(&f)
			                                                              : tree_home(f.record.root));
			fixture_close();
		}
}

/* A build has copies from its first node on. */
static void
test_build(void **state)
{
	const TreeWalPosition wal = {.epoch = 1, .lsn = 1000};
	TreeBulk *bulk;
	CheckedTree f;

	fixture_open(&fixture_options);
	replicated_open(&f, KEYSPACE_64_OVERFLOW);
	require_ok(tree_bulk_open(f.tree, &wal, &bulk));
	for (uint64_t i = 0; i < MANY; i++)
	{
		KeyEntry entry = entry_of(i / 2, i);
		KeyImage image;
		TreeKey key;

		keyspace_key(f.space, &entry, &image, &key);
		require_ok(tree_bulk_add(bulk, &key));
		assert_true(key_model_add(&f.model, &entry));
	}
	require_ok(tree_bulk_finish(bulk));
	assert_int_equal(compare(&f, false), 0);
	node_lose(tree_home(f.record.root));
	tree_replicas_set(f.tree, TREE_REPLICAS_SECOND);
	compare_with_model(&f);
	replicated_close(&f, copy_of(&f));
	fixture_close();
}

/* An insert takes one round trip more, and says so; a lookup takes none. */
static void
test_cost(void **state)
{
	CheckedTree f;
	TreeCounters before, after;

	replicated_open(&f, KEYSPACE_16);
	insert_random(&f, 20, RANGE, 0);
	tree_counters(f.tree, &before);
	insert(&f, 5000, 100);
	tree_counters(f.tree, &after);
	assert_int_equal(after.round_trips - before.round_trips, 3);
	assert_int_equal(after.copy_writes - before.copy_writes, 1);
	compare_range(&f, 5000, -1, 5000, 1);
	tree_counters(f.tree, &before);
	assert_int_equal(before.copy_writes, after.copy_writes);
	replicated_close(&f, tree_home(f.record.root));
}

/* Each extent has a copy as long, on the other memory node; a drop frees both. */
static void
test_extents(void **state)
{
	TreeNodeStatus status[NODES];
	DirectoryReplica copy, again;
	CheckedTree f;

	replicated_open(&f, KEYSPACE_32_WHOLE);
	insert_random(&f, MANY, RANGE, 0);
	for (uint32_t i = 0; i < NODES; i++)
		require_ok(tree_node_status(client.tree, i, &status[i]));
	assert_int_equal(status[0].bytes_used, status[1].bytes_used);
	assert_true(status[0].bytes_used > 4 * EXTENT_MIN_BYTES);
	/* What has a copy is answered with it, as often as it is asked. */
	require_ok(
		directory_replica(client.tree, copy_of(&f), f.record.tree, 1ull << 30, EXTENT_MIN_BYTES, &copy));
	require_ok(
		directory_replica(client.tree, copy_of(&f), f.record.tree, 1ull << 30, EXTENT_MIN_BYTES, &again));
	assert_int_equal(copy.copy, again.copy);
	assert_int_equal(copy.bytes, EXTENT_MIN_BYTES);
	assert_int_equal(directory_replica(client.tree, copy_of(&f), f.record.tree, 1, EXTENT_MIN_BYTES, &again),
	                 TREE_INVALID);
	/* The home is no place for copies. */
	assert_int_equal(directory_replica(client.tree, tree_home(f.record.root), f.record.tree, 1ull << 30,
	                                   EXTENT_MIN_BYTES, &again),
	                 TREE_INVALID);
	replicated_close(&f, tree_home(f.record.root));
	for (uint32_t i = 0; i < NODES; i++)
	{
		require_ok(tree_node_status(client.tree, i, &status[i]));
		assert_int_equal(status[i].bytes_used, 0);
	}
}

/* Without a second memory node there is no such tree, and nothing is left of the attempt. */
static void
test_one_memory_node(void **state)
{
	TreeRecord record = {
		.flags = TREE_RECORD_REPLICATED, .format = keyspace(KEYSPACE_16)->format, .database = 1};
	TreeNodeStatus status;

	tree_node_close(instance.shared, 1);
	assert_int_equal(tree_create(client.tree, &record), TREE_UNREACHABLE);
	assert_non_null(strstr(tree_detail(client.tree), "second memory node"));
	tree_node_open(client.tree, 1, 0);
	for (uint32_t i = 0; i < NODES; i++)
	{
		require_ok(tree_node_status(client.tree, i, &status));
		assert_int_equal(status.bytes_used, 0);
	}
}

/* The record has a copy that takes the same changes. */
static void
test_record(void **state)
{
	TreeRecord change = {0}, record;
	CheckedTree f;

	replicated_open(&f, KEYSPACE_16);
	change.tree = f.record.tree;
	change.root = f.record.root;
	change.mutated_epoch = 7;
	change.unverified_epoch = 5;
	require_ok(tree_record_update_at(client.tree, copy_of(&f), &change));
	require_ok(tree_record_update(client.tree, &change));
	for (uint32_t i = 0; i < NODES; i++)
	{
		require_ok(tree_record_read(client.tree, f.record.tree, i, &record));
		assert_int_equal(record.mutated_epoch, 7);
		assert_int_equal(record.unverified_epoch, 5);
		assert_int_equal(record.root, f.record.root);
		assert_int_equal(record.database, 1);
	}
	replicated_close(&f, tree_home(f.record.root));
}

/* ---- readers of another instance ---- */

/* A scan's entries. */
static uint32_t
entries_of(Tree *tree)
{
	const TreeBatch *batch;
	uint32_t count = 0;
	TreeScan *scan;
	TreeStatus status;

	require_ok(tree_scan_open(tree, &scan));
	require_ok(tree_scan_seek(scan, TREE_FORWARD, NULL, NULL));
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
		count += (uint32_t) batch->count;
	assert_int_equal(status, TREE_END);
	tree_scan_close(scan);
	return count;
}

static Tree *
reader_open(OtherInstance *other, const CheckedTree *f, TreeReplicaState state)
{
	Tree *tree;

	require_ok(tree_open(other->client.tree, f->record.tree, f->record.root, &f->space->format,
	                     keyspace_compare, (void *) f->space, &tree));
	require_ok(tree_set_replica(tree, copy_of(f), state, false));
	assert_int_equal(tree_replicas_get(tree), state);
	return tree;
}

static uint64_t
reader_misses(OtherInstance *other)
{
	TreeCounters counters;

	tree_client_counters(other->client.tree, &counters);
	return counters.cache_misses;
}

/*
 * A reader's handle reads the half that it was told, whatever others are told: the owner has lost the home, which the reader still
 * reaches. And what was cached before is forgotten, once.
 */
static void
test_reader_halves(void **state)
{
	OtherInstance other;
	TreeCounters counters;
	Tree *both, *second, *again;
	uint64_t misses;
	uint32_t before;
	CheckedTree f;

	(void) state;
	fixture_open(&fixture_options);
	replicated_open(&f, KEYSPACE_64_OVERFLOW);
	insert_random(&f, MANY, RANGE, 0);
	other_start(&other);
	other.client.tree->options.reader = true;
	both = reader_open(&other, &f, TREE_REPLICAS_BOTH);
	before = entries_of(both);
	assert_int_equal(before, f.model.count);
	tree_node_close(instance.shared, tree_home(f.record.root));
	tree_replicas_set(f.tree, TREE_REPLICAS_SECOND);
	insert_random(&f, MANY, RANGE, MANY);
	vacuum(&f);
	assert_int_equal(entries_of(both), before);
	misses = reader_misses(&other);
	assert_int_equal(entries_of(both), before);
	assert_int_equal(reader_misses(&other), misses);
	/* From now on what the other handle has found before is old. */
	second = reader_open(&other, &f, TREE_REPLICAS_SECOND);
	assert_int_equal(entries_of(second), f.model.count);
	assert_true(reader_misses(&other) > misses);
	misses = reader_misses(&other);
	again = reader_open(&other, &f, TREE_REPLICAS_SECOND);
	assert_int_equal(entries_of(again), f.model.count);
	assert_int_equal(reader_misses(&other), misses);
	assert_int_equal(entries_of(both), before);
	tree_client_counters(other.client.tree, &counters);
	assert_int_equal(counters.written_bytes, 0);
	tree_close(again);
	tree_close(second);
	tree_close(both);
	other_stop(&other);
	replicated_close(&f, copy_of(&f));
	fixture_close();
}

/* ---- when one of the two is away ---- */

/* An insert of always the same entry, while a memory node is away. */
static TreeStatus
insert_lost(CheckedTree *f)
{
	KeyEntry entry = entry_of(77, 900000);
	bool hit;

	return insert_try(f, &entry, &hit);
}

/*
 * Who was left in doubt by the loss of the home goes on at the copy as everybody does, and what he did there
 * is what he does again.
 */
static void
test_home_lost_midway(void **state)
{
	CheckedTree f;

	fixture_open(&fixture_options);
	replicated_open(&f, KEYSPACE_64_OVERFLOW);
	insert_random(&f, MANY / 4, RANGE, 0);
	test_node_kill(&nodes[tree_home(f.record.root)]);
	/* Over shared memory the dead memory node's memory can be written still. */
	(void) insert_lost(&f);
	tree_node_close(instance.shared, tree_home(f.record.root));
	assert_int_equal(insert_lost(&f), TREE_UNREACHABLE);
	(void) tree_client_leave(client.tree);
	tree_replicas_set(f.tree, TREE_REPLICAS_SECOND);
	assert_int_equal(insert_lost(&f), TREE_OK);
	assert_true(key_model_add(&f.model, &(KeyEntry){77, 900000 / 200, 1}));
	insert_random(&f, MANY / 4, RANGE, MANY);
	compare_with_model(&f);
	replicated_close(&f, copy_of(&f));
	fixture_close();
}

/* What happens at one of the steps of an insert. */
static struct
{
	const CheckedTree *fixture;
	void (*act)(const CheckedTree *fixture);
	int step;
	int passed;
} midway;

static void
act_midway(void *argument, const char *name, bool before)
{
	if (++midway.passed == midway.step)
		midway.act(midway.fixture);
}

static void
close_copy(const CheckedTree *f)
{
	tree_node_close(instance.shared, copy_of(f));
}

#define MERGED 1200

/* The TIDs of the middle half. */
static bool
is_of_the_middle(void *argument, uint32_t block, uint16_t offset)
{
	uint32_t tid = block * 200 + offset - 1;

	(void) argument;
	return tid >= MERGED / 4 && tid < MERGED * 3 / 4;
}

/* Nearly all of them: what is left of a leaf goes into another one. */
#define KEPT_ONE_OF 16

static bool
is_not_kept(void *argument, uint32_t block, uint16_t offset)
{
	return is_of_the_middle(argument, block, offset) && (block * 200 + offset - 1) % KEPT_ONE_OF != 0;
}

/* Removes entries, and merges what is empty, or nearly so; the copy is closed at a step of that. Whether it has come so far. */
static bool
merge_midway(CheckedTree *f, TreeIsDead is_gone, int step)
{
	TreeVacuumCounts counts = {0};
	TreeMergeCounts merged = {0};
	TreeVacuum *walk;
	TreeMerge *merge;
	TreeStatus status;

	require_ok(tree_vacuum_open(f->tree, &walk));
	while ((status = tree_vacuum_next(walk, is_gone, NULL, &counts)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	midway.fixture = f;
	midway.act = close_copy;
	midway.step = step;
	midway.passed = 0;
	require_ok(tree_merge_open(f->tree, walk, &merge));
	client.tree->options.environment.crash_point = act_midway;
	while ((status = tree_merge_next(merge, &merged)) == TREE_OK)
		;
	client.tree->options.environment.crash_point = NULL;
	assert_true(status == TREE_END || status == TREE_UNREACHABLE);
	assert_true(midway.passed >= step || is_gone == is_of_the_middle || merged.folded > 5);
	tree_merge_close(merge);
	tree_vacuum_close(walk);
	return midway.passed >= step;
}

/* Whether a lookup of the number finds an entry. */
static bool
finds(Tree *tree, const CheckedTree *f, uint64_t number)
{
	const TreeBatch *batch;
	TreeBound low, high;
	TreeScan *scan;
	TreeStatus status;

	keyspace_bound(f->space, &number, -1, &low);
	keyspace_bound(f->space, &number, 1, &high);
	require_ok(tree_scan_open(tree, &scan));
	require_ok(tree_scan_seek(scan, TREE_FORWARD, &low, &high));
	status = tree_scan_next(scan, &batch);
	assert_true(status == TREE_OK || status == TREE_END);
	tree_scan_close(scan);
	return status == TREE_OK;
}

/*
 * A merge that is cut short by the loss of the copy, at any step; the copy comes back, and neither half is given up. A reader of the home, who still has
 * pointers to all leaves, finds what is added then.
 */
static void
merge_cut_short(TreeIsDead is_gone)
{
	bool acted = true;

	for (int step = 1; acted; step++)
	{
		OtherInstance other;
		CheckedTree f;
		Tree *both;

		fixture_open(&fixture_options);
		replicated_open(&f, KEYSPACE_16);
		for (uint64_t i = 0; i < MERGED; i++)
			insert(&f, 2 * i, i);
		other_start(&other);
		other.client.tree->options.reader = true;
		both = reader_open(&other, &f, TREE_REPLICAS_BOTH);
		assert_int_equal(entries_of(both), MERGED);
		acted = merge_midway(&f, is_gone, step);
		tree_node_open(client.tree, copy_of(&f), 0);
		for (uint64_t i = MERGED / 4; i < MERGED * 3 / 4; i += 7)
		{
			insert(&f, 2 * i + 1, MERGED + i);
			assert_true(finds(both, &f, 2 * i + 1));
		}
		for (uint32_t i = 0; i < MERGED; i++)
			assert_true(finds(both, &f, 2ull * i) == !is_gone(NULL, i / 200, (uint16_t) (i % 200 + 1)));
		tree_close(both);
		other_stop(&other);
		replicated_close(&f, tree_home(f.record.root));
		fixture_close();
	}
}

static void
test_reader_of_a_merge_cut_short(void **state)
{
	(void) state;
	merge_cut_short(is_of_the_middle);
	merge_cut_short(is_not_kept);
}

/* An insert with that at a step; whether it has come to that step. */
static TreeStatus
insert_midway(CheckedTree *f, void (*act)(const CheckedTree *fixture), int step, bool *acted)
{
	TreeStatus status;

	midway.fixture = f;
	midway.act = act;
	midway.step = step;
	midway.passed = 0;
	client.tree->options.environment.crash_point = act_midway;
	status = insert_lost(f);
	client.tree->options.environment.crash_point = NULL;
	*acted = midway.passed >= step;
	return status;
}

static void
close_home(const CheckedTree *f)
{
	tree_node_close(instance.shared, tree_home(f->record.root));
}

/*
 * The home is closed by somebody else at any step of an insert: the next chain there is not begun, and the copy, which may have what
 * the home has not, stands in.
 */
static void
test_home_closed_midway(void **state)
{
	bool acted = true;

	for (int step = 1; acted; step++)
	{
		CheckedTree f;

		fixture_open(&fixture_options);
		replicated_open(&f, KEYSPACE_64_OVERFLOW);
		insert_random(&f, MANY / 16, RANGE, 0);
		(void) insert_midway(&f, close_home, step, &acted);
		close_home(&f);
		assert_false(tree_replicas_in_doubt(f.tree));
		(void) tree_client_leave(client.tree);
		assert_false(tree_replicas_doubted(instance.shared, f.record.tree, false));
		tree_replicas_set(f.tree, TREE_REPLICAS_SECOND);
		assert_int_equal(insert_lost(&f), TREE_OK);
		assert_true(key_model_add(&f.model, &(KeyEntry){77, 900000 / 200, 1}));
		compare_with_model(&f);
		replicated_close(&f, copy_of(&f));
		fixture_close();
	}
}

/* Fences the instance at the home, as whoever attaches it anew does; he looks for holds later. */
static Fabric *fencer;
static FabricEndpoint *fencer_endpoint;

static FabricEndpoint *
connect_anew(void *argument, uint32_t number, char *detail)
{
	return fencer_endpoint;
}

static void
fence_home(const CheckedTree *f)
{
	FabricOptions options = {
		.cluster = {instance.cluster[0], instance.cluster[1]},
		.operation_timeout_ms = 5000,
	};
	const char *address = nodes[tree_home(f->record.root)].address;
	uint32_t number;

	assert_int_equal(fabric_open(&options, &fencer), FABRIC_OK);
	assert_int_equal(fabric_connect(fencer, address, &fencer_endpoint), FABRIC_OK);
	assert_int_equal(fabric_attach(fencer_endpoint, false, 1, &number, &options.incarnation), FABRIC_OK);
	fabric_close(fencer);
	assert_int_equal(fabric_open(&options, &fencer), FABRIC_OK);
	assert_int_equal(fabric_connect(fencer, address, &fencer_endpoint), FABRIC_OK);
	client.tree->options.environment.connect = connect_anew;
}

/* The home is fenced at any step of an insert, and opened when that has failed: what the copy has and the home has not is in doubt. */
static void
test_home_fenced_midway(void **state)
{
	bool acted = true;
	int differed = 0;

	for (int step = 1; acted; step++)
	{
		TreeReplicaCounts counts;
		CheckedTree f;

		fixture_open(&fixture_options);
		replicated_open(&f, KEYSPACE_64_OVERFLOW);
		insert_random(&f, MANY / 16, RANGE, 0);
		(void) insert_midway(&f, fence_home, step, &acted);
		if (acted)
		{
			tree_client_reconnect(client.tree, tree_home(f.record.root));
			tree_node_open(client.tree, tree_home(f.record.root), 0);
		}
		require_ok(tree_replicas_compare(f.tree, false, &counts));
		assert_true(counts.differ == 0 || tree_replicas_in_doubt(f.tree));
		differed += counts.differ != 0;
		require_ok(tree_replicas_compare(f.tree, true, &counts));
		assert_false(tree_replicas_in_doubt(f.tree));
		replicated_close(&f, tree_home(f.record.root));
		if (acted)
			fabric_close(fencer);
		fixture_close();
	}
	assert_true(differed > 0);
}

/* Nothing is written while its copy cannot be; then the copy is given up, and all goes on. */
static void
test_replica_away(void **state)
{
	TreeReplicaCounts counts;
	CheckedTree f;

	fixture_open(&fixture_options);
	replicated_open(&f, KEYSPACE_64_OVERFLOW);
	insert_random(&f, MANY / 4, RANGE, 0);
	node_lose(copy_of(&f));
	assert_int_equal(insert_lost(&f), TREE_UNREACHABLE);
	compare_with_model(&f);
	assert_false(tree_replicas_in_doubt(f.tree));
	tree_replicas_set(f.tree, TREE_REPLICAS_FIRST);
	insert_random(&f, MANY / 4, RANGE, MANY);
	vacuum(&f);
	compare_with_model(&f);
	assert_int_equal(tree_replicas_compare(f.tree, true, &counts), TREE_INVALID);
	/* It does not come back, and the home is not given up for it. */
	tree_replicas_set(f.tree, TREE_REPLICAS_SECOND);
	assert_int_equal(tree_replicas_get(f.tree), TREE_REPLICAS_FIRST);
	compare_with_model(&f);
	replicated_close(&f, tree_home(f.record.root));
	fixture_close();
}

/*
 * The copy goes away behind the lock: then nothing is written at home, and the lock is free. Over a network,
 * where its chains fail.
 */
static void
test_replica_lost_midway(void **state)
{
	CheckedTree f;

	fixture_open(&fixture_options);
	replicated_open(&f, KEYSPACE_64_OVERFLOW);
	insert_random(&f, MANY / 4, RANGE, 0);
	test_node_kill(&nodes[copy_of(&f)]);
	assert_int_equal(insert_lost(&f), TREE_UNREACHABLE);
	assert_true(tree_replicas_in_doubt(f.tree));
	tree_node_close(instance.shared, copy_of(&f));
	tree_replicas_set(f.tree, TREE_REPLICAS_FIRST);
	compare_with_model(&f);
	insert(&f, 77, 900000);
	insert_random(&f, MANY / 4, RANGE, MANY);
	compare_with_model(&f);
	replicated_close(&f, tree_home(f.record.root));
	fixture_close();
}

/* The n-th operation from now on at this memory node is lost; 0: none. */
static void
lose(uint32_t number, uint64_t n)
{
	assert_int_equal(fabric_fault_set(client.endpoints[number], &(FabricFaultPlan){.fail_operation = n}),
	                 FABRIC_OK);
}

/*
 * The n-th operation at home is lost, for every n.  An insert begins anew then; marks are left for another
 * time, and of those that are not made at home none is at the copy.
 */
static void
test_lost_chains(void **state)
{
	const TreeWalPosition wal = {.epoch = 1, .lsn = 2000};
	const TreeBatch *batch;
	uint64_t marks = 0;
	CheckedTree f;

	replicated_open(&f, KEYSPACE_64_FULL);
	insert_random(&f, MANY / 4, RANGE, 0);
	for (uint64_t i = 0; i < 60; i++)
	{
		lose(tree_home(f.record.root), 1 + i % 6);
		insert(&f, i * 7, 800000 + i);
		lose(tree_home(f.record.root), 0);
		assert_int_equal(compare(&f, false), 0);
	}
	compare_with_model(&f);
	require_ok(tree_scan_seek(f.scan, TREE_FORWARD, NULL, NULL));
	require_ok(tree_scan_next(f.scan, &batch));
	assert_true(batch->count > 8);
	for (int i = 0; i < 8; i++)
	{
		const TreeBatchEntry *entry = &batch->entries[i];
		const TreeDead dead = {.block = entry->block, .offset = entry->offset, .cell = entry->cell};
		int marked;

		lose(tree_home(f.record.root), (uint64_t) (1 + i % 6));
		require_ok(tree_mark_dead(f.tree, &batch->leaf, &dead, 1, &wal, &marked));
		lose(tree_home(f.record.root), 0);
		assert_int_equal(compare(&f, false), 0);
		marks += (uint64_t) marked;
	}
	assert_true(marks > 0 && marks < 8);
	assert_false(tree_replicas_in_doubt(f.tree));
	replicated_close(&f, tree_home(f.record.root));
}

/* ---- copies that differ ---- */

/* Has a word of the root's copy be another one. */
static void
replica_damage(const CheckedTree *f)
{
	uint64_t offset = pointer_offset(f->record.root);
	uint64_t word = 0x1234, position = 0;
	DirectoryReplicas replicas;
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = 8, .buffer = &word};

	require_ok(directory_replicas(client.tree, copy_of(f), f->record.tree, &position, &replicas));
	for (uint32_t i = 0; i < replicas.count; i++)
		if (offset - replicas.replicas[i].offset < replicas.replicas[i].bytes)
			op.offset = replicas.replicas[i].copy + (offset - replicas.replicas[i].offset) + HEADER_LSN * 8;
	assert_int_not_equal(op.offset, 0);
	assert_int_equal(fabric_execute(client.endpoints[copy_of(f)], &op, 1), FABRIC_OK);
}

/* Right links that go round, as no intact tree's do: the comparison ends and says so. */
static void
test_links_in_ring(void **state)
{
	uint64_t leaf[NODE_MAX_BYTES / 8];
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .buffer = leaf};
	TreeReplicaCounts counts;
	const TreeBatch *batch;
	TreeLeafSeen first;
	CheckedTree f;

	replicated_open(&f, KEYSPACE_16);
	for (uint64_t i = 0; i < 500; i++)
		insert(&f, i, i);
	require_ok(tree_scan_seek(f.scan, TREE_FORWARD, NULL, NULL));
	require_ok(tree_scan_next(f.scan, &batch));
	first = batch->leaf;
	require_ok(tree_scan_next(f.scan, &batch));
	require_ok(access_read_node(f.tree, batch->leaf.pointer, 0, leaf));
	leaf[HEADER_RIGHT] = first.pointer;
	node_seal(&f.tree->geometry, leaf);
	op.length = f.tree->geometry.leaf_bytes;
	op.offset = pointer_offset(batch->leaf.pointer);
	require_ok(access_execute(f.tree, pointer_memory_node(batch->leaf.pointer), &op, 1));
	assert_int_equal(tree_replicas_compare(f.tree, false, &counts), TREE_DAMAGED);
	assert_in_range(counts.nodes, 2, 10);
	replicated_close(&f, tree_home(f.record.root));
}

/* A copy that differs is found, and written anew from the home under the node's lock. */
static void
test_repair(void **state)
{
	CheckedTree f;

	replicated_open(&f, KEYSPACE_64_FULL);
	insert_random(&f, MANY / 4, RANGE, 0);
	replica_damage(&f);
	assert_int_equal(compare(&f, false), 1);
	assert_int_equal(compare(&f, true), 1);
	assert_int_equal(compare(&f, false), 0);
	compare_with_model(&f);
	replicated_close(&f, tree_home(f.record.root));
}

/* Whoever knows that copies may differ says so, and only a comparison that repairs ends that. */
static void
test_doubt(void **state)
{
	CheckedTree f;

	replicated_open(&f, KEYSPACE_16);
	insert_random(&f, MANY / 4, RANGE, 0);
	state_replicas_doubt(instance.shared, f.record.tree);
	assert_true(tree_replicas_in_doubt(f.tree));
	(void) compare(&f, false);
	assert_true(tree_replicas_in_doubt(f.tree));
	(void) compare(&f, true);
	assert_false(tree_replicas_in_doubt(f.tree));

	/* A hold that was left in doubt is over with its memory node's closing: in doubt is what comes back. */
	state_replicas_note_leaked_lock(instance.shared, f.record.tree);
	assert_false(tree_replicas_in_doubt(f.tree));
	tree_node_close(instance.shared, tree_home(f.record.root));
	tree_node_open(client.tree, tree_home(f.record.root), 0);
	assert_true(tree_replicas_in_doubt(f.tree));
	(void) compare(&f, true);
	assert_false(tree_replicas_in_doubt(f.tree));
	replicated_close(&f, tree_home(f.record.root));

	/* After an instance that ended in the middle. */
	replicated_open(&f, KEYSPACE_16);
	handle_close(&f);
	test_instance_attach(&instance);
	require_ok(test_client_close(&client));
	test_client_open(&client, &instance, 0);
	handle_open(&f, TREE_REPLICAS_BOTH, true);
	assert_true(tree_replicas_in_doubt(f.tree));
	(void) compare(&f, true);
	assert_false(tree_replicas_in_doubt(f.tree));
	replicated_close(&f, tree_home(f.record.root));
}

/* A doubt about a tree that has no state any more is about all such trees, until somebody keeps it elsewhere. */
static void
test_lost_doubt(void **state)
{
	const uint64_t stranger = 4711;
	CheckedTree f;
	uint64_t lost, later;

	assert_false(tree_replicas_lost_doubts(instance.shared, &lost));
	replicated_open(&f, KEYSPACE_16);
	state_replicas_doubt(instance.shared, stranger);
	assert_false(tree_replicas_doubted(instance.shared, f.record.tree, true));
	assert_true(tree_replicas_doubted(instance.shared, stranger, false));
	assert_true(tree_replicas_lost_doubts(instance.shared, &lost));
	/* Another one comes meanwhile. */
	state_replicas_note_leaked_lock(instance.shared, stranger);
	tree_replicas_keep_doubts(instance.shared, lost);
	assert_true(tree_replicas_lost_doubts(instance.shared, &later));
	assert_true(later > lost);
	tree_replicas_keep_doubts(instance.shared, later);
	assert_false(tree_replicas_lost_doubts(instance.shared, &lost));
	assert_false(tree_replicas_doubted(instance.shared, stranger, true));
	tree_replicas_lose_doubt(instance.shared);
	assert_true(tree_replicas_doubted(instance.shared, stranger, false));
	replicated_close(&f, tree_home(f.record.root));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest alone[] = {
		cmocka_unit_test(test_lossless),
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_images),
		cmocka_unit_test(test_build),
		cmocka_unit_test(test_one_tears),
		cmocka_unit_test(test_reader_halves),
		cmocka_unit_test(test_reader_of_a_merge_cut_short),
		cmocka_unit_test(test_replica_away),
		cmocka_unit_test(test_home_lost_midway),
		cmocka_unit_test(test_home_closed_midway),
		cmocka_unit_test(test_home_fenced_midway),
	};
	const struct CMUnitTest together[] = {
		cmocka_unit_test_setup_teardown(test_cost, fixture_start, fixture_stop),
		cmocka_unit_test_setup_teardown(test_extents, fixture_start, fixture_stop),
		cmocka_unit_test_setup_teardown(test_one_memory_node, fixture_start, fixture_stop),
		cmocka_unit_test_setup_teardown(test_record, fixture_start, fixture_stop),
		cmocka_unit_test_setup_teardown(test_lost_chains, fixture_start, fixture_stop),
		cmocka_unit_test_setup_teardown(test_links_in_ring, fixture_start, fixture_stop),
		cmocka_unit_test_setup_teardown(test_repair, fixture_start, fixture_stop),
		cmocka_unit_test_setup_teardown(test_doubt, fixture_start, fixture_stop),
		cmocka_unit_test_setup_teardown(test_lost_doubt, fixture_start, fixture_stop),
	};

	const struct CMUnitTest network[] = {
		cmocka_unit_test(test_home_lost_midway),
		cmocka_unit_test(test_replica_lost_midway),
	};

	fixture_options = (FixtureOptions){.nodes = NODES};
	/* There a chain to a memory node that is gone fails. */
	if (argc == 2 && strcmp(argv[1], "--network") == 0)
	{
		test_use_network();
		return cmocka_run_group_tests(network, NULL, NULL);
	}
	return cmocka_run_group_tests(alone, NULL, NULL) + cmocka_run_group_tests(together, NULL, NULL);
}
