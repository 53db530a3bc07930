/*
 * test_tree_faults.c
 *		The core of the tree when something is old, lost or gone: comparators that jump, stale clients, chains
 *		in doubt, deaths, incomplete splits, a full memory node, many processes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fault.h"
#include "support/tree_fixture.h"
#include "tree/descent/descent.h"

/* Inserts string number i, or jumps away at a comparison. Every second one is long. */
static void
jump_insert(Tree *tree, uint32_t i, int after, bool expected_hit)
{
	char string[TIED_MAX_BYTES];
	TreeKey key;
	bool hit;

	tied_string(string, i, i % 2 == 0 ? 200 : 60);
	key = text_key(string, i);
	jump_after = after;
	assert_int_equal(tree_insert(tree, &key, &wal, &hit), TREE_OK);
	jump_after = 0;
	if (expected_hit)
		assert_true(hit);
}

/*
 * The comparator jumps away at its n-th call, for many n: nothing is held, nothing is lost, the insert can be
 * repeated; its block was given back.
 */
static void
test_jump(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	WalkResult result;
	TreeStatistics statistics;
	volatile uint32_t jumps = 0;
	bool known;

	for (volatile uint32_t i = 0; i < 400; i++)
	{
		volatile int wait = 1 + (int) (i % 11);

		while (setjmp(jump) != 0)
		{
			tree_client_rest(client.tree);
			assert_int_equal(instance.environment->slots[0].holds, 0);
			jumps++;
			wait += 7;
		}
		jump_insert(tree, i, wait, false);
	}
	assert_true(jumps > 100);
	verify_tids(tree, 400, &result);
	/* Each entry has a block, and some separators have. */
	state_read(tree->state, &statistics, &known);
	assert_in_range(statistics.overflow_bytes, 200 * (208 + 64), 200 * (208 + 64) + result.leaves * 208);
	walk_free(&result);
	tree_close(tree);
}

/*
 * Between the plan of a split, which the comparator makes, and its posting the root forgets children: the
 * posting does not find what the descent saw, and compares.
 */
static Tree *forgetful_tree;
static uint64_t cuts_before;

static void
forget_in_split(void)
{
	if (client.tree->counters.undecided_cuts == cuts_before)
		compare_hook = forget_in_split;
	else if (!forgetful_tree->root_is_leaf)
		(void) walk_root_forgets(forgetful_tree);
}

/*
 * It jumps behind the acknowledgment, while the parent is told: the entry is there, and its block stays its
 * own.
 */
static void
test_jump_behind_split(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	WalkResult result;
	volatile uint32_t jumps = 0, count = 0;

	forgetful_tree = tree;
	while (count < 1500)
	{
		volatile uint32_t i = count;

		splits_before = client.tree->counters.leaf_splits;
		cuts_before = client.tree->counters.undecided_cuts;
		compare_hook = forget_in_split;
		jump_behind_split = true;
		if (setjmp(jump) == 0)
		{
			jump_insert(tree, i, 0, false);
			jump_behind_split = false;
			count++;
			continue;
		}
		tree_client_rest(client.tree);
		jump_behind_split = false;
		compare_hook = NULL;
		jumps++;
		assert_int_equal(instance.environment->slots[0].holds, 0);
		/* One as long: it takes the block, if that was given back. */
		jump_insert(tree, i + 2, 0, false);
		jump_insert(tree, i, 0, true);
		jump_insert(tree, i + 1, 0, false);
		count += 3;
	}
	compare_hook = NULL;
	assert_true(jumps > 5);
	verify_tids(tree, count, &result);
	walk_free(&result);
	tree_close(tree);
}

/* What another process does to the same leaves while this one compares outside of locks. */
static Tree *their_tree;
static uint32_t their_next;

static void
their_open(const TreeRecord *record)
{
	test_client_open(&other_client, &instance, 1);
	their_tree = open_tree(&other_client, record);
}

static void
their_close(void)
{
	tree_close(their_tree);
	assert_int_equal(test_client_close(&other_client), TREE_OK);
}

static void
insert_theirs(void)
{
	for (int n = 0; n < 80; n++, their_next += 2)
		must_insert_tied(their_tree, their_next, 60, "", false);
}

/*
 * Between unlocking and locking again the leaf was split by somebody else: what was planned for it
 * is void.
 */
static void
test_changed_meanwhile(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	WalkResult result;
	uint32_t count = 0;

	their_open(&record);
	their_next = 1;
	while (count < 4000 || count != their_next - 1)
	{
		if (count % 50 == 0 && their_next < 4000)
			compare_hook = insert_theirs;
		must_insert_tied(tree, count, 60, "", false);
		count += 2;
	}
	verify_tids(tree, count, &result);
	walk_free(&result);
	compare_hook = NULL;
	their_close();
	tree_close(tree);
}

/* Another client splits the root and everything below while this one's hints and cache are old. */
static void
test_stale_client(void **state)
{
	OtherInstance other;
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	Tree *theirs;
	WalkResult result;
	uint32_t tid = 0;

	other_start(&other);
	theirs = open_tree(&other.client, &record);
	for (int round = 0; round < 12; round++)
	{
		for (int i = 0; i < 40; i++)
		{
			TreeKey key = number_key(scramble(tid), tid);

			must_insert(tree, &key, false);
			tid++;
		}
		for (int i = 0; i < 100 << round % 6; i++)
		{
			TreeKey key = number_key(scramble(tid), tid);

			must_insert(theirs, &key, false);
			tid++;
		}
	}
	verify_tids(tree, tid, &result);
	assert_true(result.height >= 2);
	walk_free(&result);
	tree_close(theirs);
	tree_close(tree);
	other_stop(&other);
}

/*
 * A chain is lost at the n-th operation, for every n, before it or with a late delivery: the insert ends
 * well, once.
 */
static void
test_doubt(void **state)
{
	for (int late = 0; late < 2; late++)
	{
		TreeRecord record;
		Tree *tree = new_tree(&narrow, &record);
		WalkResult result;
		uint32_t tid = 0;
		uint64_t resets = 0;

		for (uint64_t n = 1; n <= 400; n++)
		{
			FabricFaultPlan plan = {.seed = n};
			FabricCounters before, after;

			if (late)
				plan.late_operation = n % 23 + 1;
			else
				plan.fail_operation = n % 23 + 1;
			fabric_counters(client.endpoints[0], &before);
			assert_int_equal(fabric_fault_set(client.endpoints[0], &plan), FABRIC_OK);
			for (int i = 0; i < 6; i++, tid++)
			{
				TreeKey key = number_key(scramble(tid), tid);

				must_insert(tree, &key, false);
				assert_int_equal(instance.environment->slots[0].holds, 0);
			}
			assert_int_equal(fabric_fault_set(client.endpoints[0], NULL), FABRIC_OK);
			fabric_counters(client.endpoints[0], &after);
			resets += after.resets - before.resets;
		}
		assert_true(resets > 100);
		verify_tids(tree, tid, &result);
		walk_free(&result);
		tree_close(tree);
	}
}

/*
 * What a child of test_death() does: inserts until the plan kills it; `scratch` counts what was acknowledged.
 */
typedef struct Death
{
	TreeRecord record;
	const TreeFormat *format;
	uint64_t operation; /* of the first insert that splits a leaf, and dies */
	uint32_t line;
	uint32_t first;
} Death;

static bool
will_split(Tree *tree, const TreeKey *key)
{
	uint64_t leaf[NODE_MAX_BYTES / 8];
	TreeBound bound;
	Path path;

	bound_of_key(&tree->geometry, key, &bound);
	return search_descend(tree, &bound, 0, false, &path) == TREE_OK &&
	       access_read_node(tree, path.pointer, 0, leaf) == TREE_OK &&
	       leaf_live(&tree->geometry, leaf) == tree->geometry.leaf_cells;
}

static void
death_body(int number, void *argument)
{
	const Death *death = argument;
	FabricFaultPlan plan = {
		.seed = death->operation, .die_operation = death->operation, .die_line = death->line};
	TestClient mine;
	Tree *tree;

	test_client_open(&mine, &instance, 1);
	if (tree_open(mine.tree, death->record.tree, death->record.root, death->format, NULL, NULL, &tree) !=
	    TREE_OK)
		_exit(2);
	for (uint32_t tid = death->first; tid < TEST_SCRATCH_WORDS; tid++)
	{
		TreeKey key = number_key(scramble(tid), tid);
		bool hit;

		if (will_split(tree, &key) && fabric_fault_set(mine.endpoints[0], &plan) != FABRIC_OK)
			_exit(2);
		if (tree_insert(tree, &key, &wal, &hit) != TREE_OK)
			_exit(3);
		__atomic_store_n(&instance.scratch[0], (uint64_t) tid + 1, __ATOMIC_SEQ_CST);
	}
	_exit(4);
}

/*
 * I-T3: a process dies after operation n of a split, or inside a WRITE after a line of it; its instance is
 * fenced. What was acknowledged is there, the tree is whole, and the next ones go on, paying what is owed to
 * parents.
 */
static void
test_death(void **state)
{
	Death death = {.format = &narrow};
	WalkResult result;
	uint64_t incomplete_splits = 0;
	Tree *tree;

	test_tree_create(&client, &narrow, &death.record);
	assert_int_equal(test_client_close(&client), TREE_OK);
	for (int round = 0; round < 90; round++)
	{
		uint64_t acknowledged;
		bool extra;

		instance.scratch[0] = death.first;
		death.operation = 1 + (uint64_t) round % 15;
		death.line = (uint32_t) scramble((uint64_t) round) % 16;
		assert_int_equal(test_processes(1, death_body, &death), 1);
		acknowledged = instance.scratch[0];
		assert_true(acknowledged < TEST_SCRATCH_WORDS);
		test_instance_attach(&instance);
		test_client_open(&client, &instance, 0);
		tree = open_tree(&client, &death.record);
		walk_tree(tree, &result);
		extra = result.count == acknowledged + 1;
		assert_true(result.count == acknowledged || extra);
		for (uint32_t tid = 0; tid < result.count; tid++)
			assert_true(walk_has(&result, tid / 100, (uint16_t) (tid % 100 + 1)));
		incomplete_splits += result.incomplete_splits;
		death.first = (uint32_t) result.count;
		walk_free(&result);
		tree_close(tree);
		assert_int_equal(test_client_close(&client), TREE_OK);
	}
	test_client_open(&client, &instance, 0);
	tree = open_tree(&client, &death.record);
	for (uint32_t i = 0; i < 4000; i++, death.first++)
	{
		TreeKey key = number_key(scramble(death.first), death.first);

		must_insert(tree, &key, false);
	}
	verify_tids(tree, death.first, &result);
	printf("incomplete splits after deaths: %llu, at the end: %llu\n", (unsigned long long) incomplete_splits,
	       (unsigned long long) result.incomplete_splits);
	walk_free(&result);
	tree_close(tree);
}

/* Separators that nobody posted are paid by who meets them with a freshly read parent; twice is once. */
static void
test_incomplete_splits(void **state)
{
	for (int round = 0; round < 2; round++)
	{
		/* A root above leaves, then one above inner nodes. */
		const uint32_t count = round == 0 ? 3000 : 30000;
		TreeRecord record;
		Tree *tree = new_tree(&narrow, &record);
		uint64_t image[NODE_MAX_BYTES / 8], root[NODE_MAX_BYTES / 8];
		WalkResult result;
		uint64_t left;
		uint32_t tid = 0, forgotten;

		for (; tid < count; tid++)
		{
			TreeKey key = number_key(scramble(tid), tid);

			must_insert(tree, &key, false);
		}
		forgotten = walk_root_forgets(tree);
		assert_true(forgotten > 1);
		walk_tree(tree, &result);
		assert_int_equal(result.height, round + 2);
		assert_int_equal(result.incomplete_splits, forgotten);
		walk_free(&result);

		for (uint32_t i = 0; i < 3000; i++, tid++)
		{
			TreeKey key = number_key(scramble(tid), tid);

			must_insert(tree, &key, false);
			if (i % 10 == 0)
				cache_drop(tree, tree->root);
		}
		verify_tids(tree, tid, &result);
		assert_int_equal(result.incomplete_splits, 0);
		walk_free(&result);

		/* What is posted already is not posted again. */
		assert_int_equal(access_read_node(tree, tree->root, round + 1, root), TREE_OK);
		left = root[inner_cell_word(&tree->geometry, 1)];
		assert_int_equal(access_read_node(tree, left, round, image), TREE_OK);
		assert_int_equal(downlink_insert(tree, (uint32_t) round, left, image + tree->geometry.high_word,
		                                 image[HEADER_RIGHT], NULL),
		                 TREE_OK);
		verify_tids(tree, tid, &result);
		assert_int_equal(result.incomplete_splits, 0);
		walk_free(&result);
		tree_close(tree);
	}
}

/*
 * A posting that comes so late that the parent was split between the left neighbor and a node that was split from it
 * later: the left neighbor stands in one parent, the separator belongs into the next one.
 */
static void
test_late_downlink(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&narrow, &record);
	const NodeGeometry *g = &tree->geometry;
	uint64_t parent[NODE_MAX_BYTES / 8], next[NODE_MAX_BYTES / 8], leaf[NODE_MAX_BYTES / 8];
	FabricOp op = {.opcode = FABRIC_WRITE, .region = FABRIC_NODES, .length = INNER_BYTES, .buffer = next};
	WalkResult result;
	Path path = {.level = 0};
	uint64_t left, late;
	uint32_t count = 20000;

	for (uint32_t tid = 0; tid < count; tid++)
	{
		TreeKey key = number_key(scramble(tid), tid);

		must_insert(tree, &key, false);
	}
	assert_int_equal(access_read_node(tree, tree->root, 2, parent), TREE_OK);
	assert_int_equal(access_read_node(tree, parent[inner_cell_word(g, 0)], 1, parent), TREE_OK);
	left = parent[inner_cell_word(g, node_count(parent) - 1)];
	assert_int_equal(access_read_node(tree, parent[HEADER_RIGHT], 1, next), TREE_OK);
	late = next[inner_cell_word(g, 1)];
	for (uint32_t i = 1; i + 1 < node_count(next); i++)
		memmove(next + inner_cell_word(g, i), next + inner_cell_word(g, i + 1), g->inner_stride * 8);
	next[HEADER_GENERATION]++;
	next[HEADER_STATE] = node_state_word(next[HEADER_GENERATION], 1, node_count(next) - 1, 0);
	node_seal(g, next);
	op.offset = pointer_offset(next[HEADER_SELF]);
	assert_int_equal(access_execute(tree, 0, &op, 1), TREE_OK);
	cache_drop_tree(instance.shared, tree->tree);
	walk_tree(tree, &result);
	assert_int_equal(result.incomplete_splits, 1);
	walk_free(&result);

	assert_int_equal(access_read_node(tree, late, 0, leaf), TREE_OK);
	path.parents[1] = parent[HEADER_SELF];
	assert_int_equal(downlink_insert(tree, 0, left, leaf + g->low_word, late, &path), TREE_OK);
	verify_tids(tree, count, &result);
	assert_int_equal(result.incomplete_splits, 0);
	walk_free(&result);
	tree_close(tree);
}

/* Children of a root that forgot every second one, and who is posted next while another one compares. */
static uint64_t forgotten_root[NODE_MAX_BYTES / 8];
static uint32_t forgotten_next;
static uint32_t forgotten_mine;
static uint64_t forgotten_attempt; /* locks that the first process had won at its last comparison */

/* Posts child `i` of the root as it was before it forgot. */
static TreeStatus
post_forgotten(Tree *tree, uint32_t i)
{
	const NodeGeometry *g = &tree->geometry;
	const uint64_t *cell = forgotten_root + inner_cell_word(g, i);
	Path path;

	memset(&path, 0, sizeof(path));
	path.parents[1] = tree->root;
	return downlink_insert(tree, 0, forgotten_root[inner_cell_word(g, i - 1)], cell + 1, cell[0], &path);
}

static void
post_theirs(void)
{
	forgotten_next += forgotten_next == forgotten_mine ? 2 : 0;
	if (forgotten_next >= node_count(forgotten_root))
		return;
	if (client.tree->counters.lock_acquisitions != forgotten_attempt)
	{
		forgotten_attempt = client.tree->counters.lock_acquisitions;
		assert_int_equal(post_forgotten(their_tree, forgotten_next), TREE_OK);
		forgotten_next += 2;
	}
	compare_hook = post_theirs;
}

/* Inserts until the root is an inner node above leaves with so many children, and forgotten_root its image; how many. */
static uint32_t
grow_root(Tree *tree, uint32_t children)
{
	uint32_t count = 0;

	do
	{
		must_insert_tied(tree, count++, 60, "", false);
		assert_int_equal(access_read_node(tree, tree->root, -1, forgotten_root), TREE_OK);
	} while (node_level(forgotten_root) == 0 || node_count(forgotten_root) < children);
	return count;
}

/*
 * Whenever one process compares to post a separator, another one changes the parent: what it found holds as long as
 * nothing came between the same two neighbors, or a sound tree would count as damaged.
 */
static void
test_posts_meanwhile(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	WalkResult result;
	uint32_t count;

	their_open(&record);
	count = grow_root(tree, 46);
	assert_int_equal(node_level(forgotten_root), 1);
	assert_int_equal(walk_root_forgets(tree), 23);
	forgotten_mine = 23;
	forgotten_next = 1;
	compare_hook = post_theirs;
	assert_int_equal(post_forgotten(tree, forgotten_mine), TREE_OK);
	compare_hook = NULL;
	assert_true(forgotten_next > 1);
	for (; forgotten_next < node_count(forgotten_root); forgotten_next += 2)
		assert_int_equal(post_forgotten(tree, forgotten_next), TREE_OK);
	verify_tids(tree, count, &result);
	assert_int_equal(result.incomplete_splits, 0);
	walk_free(&result);
	their_close();
	tree_close(tree);
}

/* The entry of one process, and those of others that are always next to it, on both sides, each nearer than the last. */
#define BETWEEN_BYTES 60
#define BETWEEN_LAST (1ull << 32)

/* So many times others are faster: more than any number of attempts without them may be. */
#define OUTRUNS 600u

static struct
{
	Tree *mine;
	Tree *theirs;
	uint32_t count; /* of their entries */
	uint64_t cuts;  /* mine at the last comparison */
	uint32_t left;  /* times that they are faster still */
} crowd;

/* TID 0 is in the middle. */
static TreeKey
between_key(char *string, uint32_t tid)
{
	uint64_t distance = tid == 0 ? 0 : BETWEEN_LAST - tid;

	memset(string, 'x', BETWEEN_BYTES);
	snprintf(string + 30, 20, "%016llx",
	         (unsigned long long) (2 * BETWEEN_LAST + (tid % 2 == 0 ? distance : -distance)));
	string[46] = 'y';
	string[BETWEEN_BYTES] = '\0';
	return text_key(string, tid);
}

static void
insert_next(void)
{
	char string[TIED_MAX_BYTES];
	TreeKey key = between_key(string, ++crowd.count);

	must_insert(crowd.theirs, &key, false);
}

/* Whether the leaf that the entry in the middle goes to has no room. */
static bool
middle_is_full(void)
{
	const NodeGeometry *g = &crowd.theirs->geometry;
	_Alignas(LINE_BYTES) uint64_t leaf[NODE_MAX_BYTES / 8];
	char string[TIED_MAX_BYTES];
	TreeKey key = between_key(string, 0);
	TreeBound bound;
	Path path;

	bound_of_key(g, &key, &bound);
	assert_int_equal(search_descend(crowd.theirs, &bound, 0, true, &path), TREE_OK);
	assert_int_equal(access_read_node(crowd.theirs, path.pointer, 0, leaf), TREE_OK);
	return leaf_live(g, leaf) == g->leaf_cells;
}

/* While one process orders a full leaf to split it, others split it, and fill it up again. */
static void
crowd_is_faster(void)
{
	if (client.tree->counters.undecided_cuts != crowd.cuts && crowd.left > 0)
	{
		crowd.left--;
		do
			insert_next();
		while (!middle_is_full());
	}
	crowd.cuts = client.tree->counters.undecided_cuts;
	compare_hook = crowd_is_faster;
}

/* The one inserts its entry, in the crowd. */
static TreeStatus
insert_in_crowd(uint32_t times)
{
	char string[TIED_MAX_BYTES];
	TreeKey key = between_key(string, 0);
	TreeStatus status;
	bool hit;

	do
		insert_next();
	while (!middle_is_full());
	crowd.left = times;
	crowd.cuts = client.tree->counters.undecided_cuts;
	compare_hook = crowd_is_faster;
	status = tree_insert(crowd.mine, &key, &wal, &hit);
	compare_hook = NULL;
	assert_int_equal(instance.environment->slots[0].holds, 0);
	return status;
}

/* An entry whose leaf others split each time is inserted when they are done, or ends as one that waits for a lock; nothing is damaged. */
static void
test_crowd_splits_first(void **state)
{
	TestClient other;
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	WalkResult result;
	uint32_t patience = client.tree->options.operation_timeout_ms;
	TreeCounters before;

	test_client_open(&other, &instance, 1);
	memset(&crowd, 0, sizeof(crowd));
	crowd.mine = tree;
	crowd.theirs = open_tree(&other, &record);
	client.tree->options.operation_timeout_ms = 1;
	assert_int_equal(insert_in_crowd(UINT32_MAX), TREE_TIMED_OUT);
	assert_true(UINT32_MAX - crowd.left >= 128);
	client.tree->options.operation_timeout_ms = 600000;
	before = client.tree->counters;
	assert_int_equal(insert_in_crowd(OUTRUNS), TREE_OK);
	assert_int_equal(crowd.left, 0);
	assert_true(client.tree->counters.undecided_cuts - before.undecided_cuts > OUTRUNS);
	client.tree->options.operation_timeout_ms = patience;
	verify_tids(tree, crowd.count + 1, &result);
	walk_free(&result);
	tree_close(crowd.theirs);
	tree_close(tree);
	assert_int_equal(test_client_close(&other), TREE_OK);
}

/*
 * Judgments of a leaf's fences that others make void: more than any number of descents may have without others' work.  Odd, so that
 * the fence is what it was in the end.
 */
#define JUDGMENTS (20u * RIGHT_MOVES_MAX + 1)

/* The leaf whose high fence others move while one judges it. */
static struct
{
	uint64_t leaf[NODE_MAX_BYTES / 8];
	uint64_t fence[LINE_WORDS];
	bool moved;
	uint64_t locked; /* lock_acquisitions at the last comparison: each try at the leaf is one */
	uint32_t left;   /* times that they do so still */
} fences;

static void
fence_move(void)
{
	const NodeGeometry *g = &their_tree->geometry;
	FabricOp op = {.opcode = FABRIC_WRITE,
	               .region = FABRIC_NODES,
	               .length = g->leaf_bytes,
	               .offset = pointer_offset(fences.leaf[HEADER_SELF]),
	               .buffer = fences.leaf};

	fences.moved = !fences.moved;
	/* Or just above all keys that it is tied with. */
	memcpy(fences.leaf + g->high_word, fences.fence, g->cell_bytes);
	if (fences.moved)
	{
		memset(fences.leaf + g->high_word, 0, g->cell_bytes);
		fences.leaf[g->high_word] = (fences.fence[0] & CELL_HIGH_BIT) | (uint64_t) SEPARATOR_CUT
		                                                                    << CELL_STATE_SHIFT;
		memcpy(fences.leaf + g->high_word + 1, fences.fence + 1, g->format.norm_bytes);
		fences.leaf[g->high_word + g->norm_words]++;
	}
	fences.leaf[HEADER_GENERATION]++;
	node_seal(g, fences.leaf);
	assert_int_equal(access_execute(their_tree, pointer_memory_node(fences.leaf[HEADER_SELF]), &op, 1),
	                 TREE_OK);
}

static void
fence_moves(void)
{
	if (client.tree->counters.lock_acquisitions != fences.locked && fences.left > 0)
	{
		fences.left--;
		fence_move();
	}
	fences.locked = client.tree->counters.lock_acquisitions;
	compare_hook = fence_moves;
}

/* Tied entries until the leaf in the middle of three or more has fences that only the comparator can judge; the number of entries. */
static uint32_t
fences_begin(Tree *tree)
{
	uint64_t root[NODE_MAX_BYTES / 8];
	const NodeGeometry *g = &tree->geometry;
	uint32_t count = 0;

	do
	{
		must_insert_tied(tree, count++, 60, "", false);
		assert_int_equal(access_read_node(tree, tree->root, -1, root), TREE_OK);
	} while (node_level(root) == 0 || node_count(root) < 3);
	assert_int_equal(access_read_node(tree, root[inner_cell_word(g, 1)], 0, fences.leaf), TREE_OK);
	memcpy(fences.fence, fences.leaf + g->high_word, g->cell_bytes);
	assert_false(separator_infinite(fences.leaf + g->low_word) || separator_infinite(fences.fence));
	return count;
}

/* An entry whose leaf has other fences each time they were judged goes in when others rest; that is no damage, however often. */
static void
test_fences_move(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	uint32_t patience = client.tree->options.operation_timeout_ms;
	char string[TIED_MAX_BYTES];
	uint32_t count;
	uint64_t cell, judged;
	WalkResult result;
	TreeKey key;
	bool hit;

	their_open(&record);
	memset(&fences, 0, sizeof(fences));
	count = fences_begin(tree);
	/* Just behind an entry of that leaf. */
	cell = fences.leaf[leaf_cell_word(&tree->geometry, 0)];
	tied_string(string, cell_block(cell) * 100 + cell_offset(cell) - 1, 60);
	strcat(string, "x");
	key = text_key(string, count);
	fences.left = JUDGMENTS;
	judged = client.tree->counters.undecided_fences;
	fences.locked = client.tree->counters.lock_acquisitions;
	client.tree->options.operation_timeout_ms = 600000;
	fence_move();
	compare_hook = fence_moves;
	assert_int_equal(tree_insert(tree, &key, &wal, &hit), TREE_OK);
	compare_hook = NULL;
	client.tree->options.operation_timeout_ms = patience;
	assert_int_equal(fences.left, 0);
	assert_true(client.tree->counters.undecided_fences - judged >= JUDGMENTS);
	verify_tids(tree, count + 1, &result);
	walk_free(&result);
	their_close();
	tree_close(tree);
}

/* The child of the root that others post and forget while one compares; the root without it, and without mine. */
static uint64_t toggled_root[NODE_MAX_BYTES / 8];
static uint32_t toggles_left;
static bool toggled;

/* Writes the root as `image`, once more. */
static void
root_write(Tree *tree, uint64_t *image)
{
	FabricOp op = {.opcode = FABRIC_WRITE,
	               .region = FABRIC_NODES,
	               .length = INNER_BYTES,
	               .offset = pointer_offset(tree->root),
	               .buffer = image};
	uint64_t now[NODE_MAX_BYTES / 8];

	assert_int_equal(access_read_node(tree, tree->root, 1, now), TREE_OK);
	image[HEADER_GENERATION] = now[HEADER_GENERATION] + 1;
	image[HEADER_STATE] = node_state_word(image[HEADER_GENERATION], 1, node_count(image), node_flags(image));
	node_seal(&tree->geometry, image);
	assert_int_equal(access_execute(tree, pointer_memory_node(tree->root), &op, 1), TREE_OK);
}

static void
cell_remove(const NodeGeometry *g, uint64_t *node, uint32_t i)
{
	uint32_t count = node_count(node);

	for (; i + 1 < count; i++)
		memcpy(node + inner_cell_word(g, i), node + inner_cell_word(g, i + 1), g->inner_stride * 8);
	memset(node + inner_cell_word(g, count - 1), 0, g->inner_stride * 8);
	node[HEADER_STATE] = node_state_word(node[HEADER_GENERATION], 1, count - 1, node_flags(node));
}

/* Between the neighbors that the one has found there is another child now, or none any more. */
static void
toggle_neighbor(void)
{
	const NodeGeometry *g = &their_tree->geometry;
	uint64_t with[NODE_MAX_BYTES / 8];

	if (client.tree->counters.lock_acquisitions != forgotten_attempt && toggles_left > 0)
	{
		forgotten_attempt = client.tree->counters.lock_acquisitions;
		memcpy(with, forgotten_root, sizeof(with));
		cell_remove(g, with, forgotten_mine);
		root_write(their_tree, toggled ? toggled_root : with);
		toggled = !toggled;
		toggles_left--;
	}
	compare_hook = toggle_neighbor;
}

/* Posts child forgotten_mine while others change what stands next to its place so many times. */
static TreeStatus
post_beside(Tree *tree, uint32_t times)
{
	const NodeGeometry *g = &tree->geometry;
	TreeStatus status;

	memcpy(toggled_root, forgotten_root, sizeof(toggled_root));
	cell_remove(g, toggled_root, forgotten_mine + 1);
	cell_remove(g, toggled_root, forgotten_mine);
	root_write(tree, toggled_root);
	toggles_left = times;
	toggled = false;
	forgotten_attempt = client.tree->counters.lock_acquisitions;
	compare_hook = toggle_neighbor;
	status = post_forgotten(tree, forgotten_mine);
	compare_hook = NULL;
	return status;
}

/* A separator beside which others post each time is posted when they are done, or left incomplete; nothing is damaged. */
static void
test_crowd_posts_first(void **state)
{
	TreeRecord record;
	Tree *tree = new_tree(&text, &record);
	WalkResult result;
	uint32_t count;

	their_open(&record);
	count = grow_root(tree, 40);
	forgotten_mine = 20;
	assert_int_equal(post_beside(tree, OUTRUNS), TREE_OK);
	assert_int_equal(toggles_left, 0);
	assert_int_equal(post_beside(tree, UINT32_MAX), TREE_TIMED_OUT);
	root_write(tree, forgotten_root);
	cache_drop_tree(instance.shared, tree->tree);
	verify_tids(tree, count, &result);
	assert_int_equal(result.incomplete_splits, 0);
	walk_free(&result);
	their_close();
	tree_close(tree);
}

/*
 * A memory node without room: 53200's cause. What was acknowledged stays, the tree is whole, hits and
 * rewrites go on.
 */
static void
test_full(void **state)
{
	TreeRecord record;
	Tree *tree;
	WalkResult result;
	TreeStatus status = TREE_OK;
	uint32_t tid = 0;
	bool hit;

	fixture_open(&(FixtureOptions){.node_bytes = 2 * MEGABYTE});
	tree = new_tree(&narrow, &record);
	while (tid < 1000000)
	{
		TreeKey key = number_key(scramble(tid), tid);

		status = tree_insert(tree, &key, &wal, &hit);
		if (status != TREE_OK)
			break;
		tid++;
	}
	assert_int_equal(status, TREE_MEMORY_FULL);
	assert_true(tid > 10000);
	assert_int_equal(instance.environment->slots[0].holds, 0);
	verify_tids(tree, tid, &result);
	walk_free(&result);
	for (uint32_t i = 0; i < tid; i += 500)
	{
		TreeKey key = number_key(scramble(i), i);

		assert_int_equal(tree_insert(tree, &key, &wal, &hit), TREE_OK);
		assert_true(hit);
	}
	verify_tids(tree, tid, &result);
	walk_free(&result);
	tree_close(tree);
	fixture_close();
}

/* Several processes of one instance insert into one tree, some of the keys twice. */
static void
crowd_body(int number, void *argument)
{
	const TreeRecord *record = argument;
	TestClient mine;
	Tree *tree;

	test_client_open(&mine, &instance, (uint32_t) number + 1);
	if (tree_open(mine.tree, record->tree, record->root, &record->format, NULL, NULL, &tree) != TREE_OK)
		_exit(2);
	for (uint32_t i = 0; i < 5000; i++)
	{
		uint32_t tid = i * 4 + (uint32_t) number;
		TreeKey key = number_key(number % 2 == 0 ? scramble(tid) : tid, tid);
		bool hit;
		TreeStatus status = tree_insert(tree, &key, &wal, &hit);

		if (status != TREE_OK || hit)
		{
			fprintf(stderr, "process %d: %s: %s\n", number, tree_status_name(status), tree_detail(mine.tree));
			_exit(3);
		}
	}
	tree_close(tree);
	if (test_client_close(&mine) != TREE_OK)
		_exit(4);
	_exit(0);
}

static void
test_crowd(void **state)
{
	TreeRecord record;
	WalkResult result;
	Tree *tree;

	test_tree_create(&client, &narrow, &record);
	assert_int_equal(test_processes(4, crowd_body, &record), 0);
	tree = open_tree(&client, &record);
	verify_tids(tree, 20000, &result);
	walk_free(&result);
	tree_close(tree);
}

/*
 * All of them at the tree's right end, each chain delayed: whoever gets the lock too early overwrites a cell.
 */
static void
delayed_body(int number, void *argument)
{
	const TreeRecord *record = argument;
	FabricFaultPlan plan = {.seed = (uint64_t) number + 1, .delay_max_us = 100};
	TestClient mine;
	Tree *tree;

	test_client_open(&mine, &instance, (uint32_t) number + 1);
	if (tree_open(mine.tree, record->tree, record->root, &record->format, NULL, NULL, &tree) != TREE_OK)
		_exit(2);
	if (fabric_fault_set(mine.endpoints[0], &plan) != FABRIC_OK)
		_exit(2);
	/* All at once: processes may take long to start. */
	test_meet(&instance, 0, 4);
	for (uint32_t i = 0; i < 400; i++)
	{
		uint32_t tid = i * 4 + (uint32_t) number;
		TreeKey key = number_key(tid, tid);
		bool hit;

		if (tree_insert(tree, &key, &wal, &hit) != TREE_OK || hit)
			_exit(3);
	}
	tree_close(tree);
	_exit(test_client_close(&mine) == TREE_OK ? 0 : 4);
}

static void
test_crowd_delayed(void **state)
{
	TreeRecord record;
	WalkResult result;
	TreeCounters counters;
	Tree *tree;

	test_tree_create(&client, &narrow, &record);
	instance.scratch[0] = 0;
	assert_int_equal(test_processes(4, delayed_body, &record), 0);
	tree = open_tree(&client, &record);
	verify_tids(tree, 1600, &result);
	tree_counters(tree, &counters);
	assert_true(counters.handovers > 20 && counters.handover_images > 10);
	walk_free(&result);
	tree_close(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jump),
		cmocka_unit_test(test_jump_behind_split),
		cmocka_unit_test(test_changed_meanwhile),
		cmocka_unit_test(test_stale_client),
		cmocka_unit_test(test_doubt),
		cmocka_unit_test(test_incomplete_splits),
		cmocka_unit_test(test_posts_meanwhile),
		cmocka_unit_test(test_crowd_splits_first),
		cmocka_unit_test(test_crowd_posts_first),
		cmocka_unit_test(test_fences_move),
		cmocka_unit_test(test_late_downlink),
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_crowd_delayed),
		cmocka_unit_test(test_death),
	};

	const struct CMUnitTest apart[] = {cmocka_unit_test(test_full)};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop) +
	       cmocka_run_group_tests(apart, NULL, NULL);
}
