/*
 * test_predicate.c
 *		Predicate locks by leaf (tree/descent/predicate.c): of a scan and an insert into its range either the scan returned
 *		the entry, or the insert finds the scan's mark on its leaf.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/require.h"
#include "support/tree_fixture.h"

/* Marks of one process's scans, as a list. */
#define MARKS_MAX 4096

typedef struct Marks
{
	int count;
	uint64_t leaves[MARKS_MAX];
	int everything;       /* marks on the whole tree */
	void (*before)(void); /* called once, behind the first mark of a scan */
} Marks;

static Marks marks;
static TestClient writer; /* another process of the instance, with slot 1 */
static Tree *written;
static Tree *read_tree;

static bool
marked(uint64_t leaf)
{
	for (int i = 0; i < marks.count; i++)
		if (marks.leaves[i] == leaf)
			return true;
	return false;
}

static void
mark(uint64_t leaf)
{
	assert_true(marks.count < MARKS_MAX);
	if (!marked(leaf))
		marks.leaves[marks.count++] = leaf;
}

static void
mark_leaf(void *argument, uint64_t leaf)
{
	Marks *of = argument;

	assert_int_equal(client.tree->holding, false);
	if (leaf == TREE_LEAF_ALL)
		of->everything++;
	else
		mark(leaf);
	if (of->before != NULL)
	{
		void (*before)(void) = of->before;

		of->before = NULL;
		before();
	}
}

static void
copy_mark(void *argument, uint64_t from, uint64_t to)
{
	assert_true(writer.tree->holding);
	assert_false(marked(to));
	if (marked(from))
		mark(to);
}

static void
start(TreeRecord *record)
{
	memset(&marks, 0, sizeof(marks));
	read_tree = new_tree(&narrow, record);
	test_client_open(&writer, &instance, 1);
	written = open_tree(&writer, record);
	tree_on_split(written, copy_mark, NULL);
}

static void
stop(void)
{
	tree_close(written);
	tree_close(read_tree);
	assert_int_equal(test_client_close(&writer), TREE_OK);
}

static void
write_number(uint64_t number, uint32_t tid)
{
	TreeKey key = number_key(number, tid);
	bool hit;

	assert_int_equal(tree_insert(written, &key, &wal, &hit), TREE_OK);
	assert_false(hit);
}

/* Numbers from `low` on, below `high`: how many a scan returns, with marks or without. */
static int
read_numbers(uint64_t low, uint64_t high, TreeDirection direction, bool with_marks)
{
	TreeBound bounds[2] = {{.norm_bits_valid = 1, .norm_length = 8, .norm_exact = true, .side = -1},
	                       {.norm_bits_valid = 1, .norm_length = 8, .norm_exact = true, .side = -1}};
	bool forward = direction == TREE_FORWARD;
	const TreeBatch *batch;
	TreeScan *scan;
	TreeStatus status;
	int count = 0;

	bounds[0].key.norm[0] = low;
	bounds[1].key.norm[0] = high;
	assert_int_equal(tree_scan_open(read_tree, &scan), TREE_OK);
	tree_scan_on_leaf(scan, with_marks ? mark_leaf : NULL, &marks);
	assert_int_equal(tree_scan_seek(scan, direction, &bounds[forward ? 0 : 1], &bounds[forward ? 1 : 0]),
	                 TREE_OK);
	while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
		count += batch->count;
	assert_int_equal(status, TREE_END);
	tree_scan_close(scan);
	return count;
}

static void
write_between(void)
{
	write_number(505, 1000);
}

/* What is inserted when the mark is there already, is returned: leaves are read behind their marks. */
static void
test_mark_before_read(void **state)
{
	TreeRecord record;

	for (int pass = 0; pass < 4; pass++)
	{
		TreeDirection direction = pass % 2 == 0 ? TREE_FORWARD : TREE_BACKWARD;
		/* One leaf that is the root, or some. */
		uint32_t count = pass < 2 ? 20 : 900;

		start(&record);
		for (uint32_t i = 0; i < count; i++)
			write_number(i == 0 ? 500 : 10000 + i * 10, i);
		/* The scan knows the tree: whatever it could have kept from before it does not use. */
		assert_int_equal(read_numbers(0, UINT64_MAX, direction, false), count);
		marks.before = write_between;
		assert_int_equal(read_numbers(500, 600, direction, true), 2);
		assert_int_equal(marks.everything, 0);
		assert_true(marked(tree_inserted_leaf(written)));
		stop();
	}
}

/* The same for leaves that are read ahead: whatever a whole scan misses went to a leaf with its mark. */
static void
test_read_ahead(void **state)
{
	TreeRecord record;

	for (int pass = 0; pass < 2; pass++)
	{
		start(&record);
		for (uint32_t i = 0; i < 3000; i++)
			write_number(scramble(i), i);
		assert_int_equal(read_numbers(0, UINT64_MAX, pass == 0 ? TREE_FORWARD : TREE_BACKWARD, true), 3000);
		for (uint32_t i = 3000; i < 4000; i++)
		{
			write_number(scramble(i), i);
			assert_true(marked(tree_inserted_leaf(written)));
		}
		stop();
	}
}

/* Splits copy marks, also the root's; and none appears elsewhere. */
static void
test_splits(void **state)
{
	TreeRecord record;

	for (uint32_t before = 0; before <= 600; before += 300)
	{
		int marked_far = 0;

		start(&record);
		for (uint32_t i = 0; i < before; i++)
			write_number(100000 + i * 100, i);
		assert_int_equal(read_numbers(100050, 100060, TREE_FORWARD, true), 0);
		assert_int_equal(marks.count, 1);
		for (uint32_t i = 0; i < 2000; i++)
		{
			uint64_t number = 100001 + scramble(i) % 98;

			/* Into the range that was read, and beside it, for the splits. */
			write_number(number, before + 2 * i);
			assert_true((number < 100050 || number >= 100060) || marked(tree_inserted_leaf(written)));
			write_number(500000 + i, before + 2 * i + 1);
			marked_far += marked(tree_inserted_leaf(written));
		}
		assert_true(marks.count > 20);
		/* An empty tree has one leaf: all are its heirs. */
		assert_true(before == 0 ? marked_far == 2000 : marked_far == 0);
		stop();
	}
}

/* The leaf that an insert names is where a scan finds the entry, also if the insert split it. */
static void
test_inserted_leaf(void **state)
{
	TreeRecord record;

	start(&record);
	for (uint32_t i = 0; i < 2000; i++)
	{
		uint64_t number = scramble(i);

		write_number(number, i);
		marks.count = 0;
		assert_int_equal(read_numbers(number, number + 1, TREE_FORWARD, true), 1);
		assert_true(marks.leaves[marks.count - 1] == tree_inserted_leaf(written));
	}
	stop();
}

static int read_in_split;
static int read_expected;

/* In the middle of a split: announced, and not yet to be seen. */
static void
read_inside(void *argument, uint64_t from, uint64_t to)
{
	if (read_in_split++ > 0)
		return;
	assert_int_equal(read_numbers(0, UINT64_MAX, TREE_FORWARD, true), read_expected);
	assert_false(marked(to));
}

/*
 * A scan that comes when the marks of a leaf are copied already, and the leaf is still whole: it must not take that for its
 * own. The one that cannot wait marks the whole tree.
 */
static void
test_scan_in_split(void **state)
{
	for (uint32_t before = 0; before <= 600; before += 300)
	{
		TreeRecord record;

		start(&record);
		for (uint32_t i = 0; i < before; i++)
			write_number(100000 + i * 100, i);
		tree_on_split(written, read_inside, NULL);
		read_in_split = 0;
		read_expected = (int) before;
		for (uint32_t i = 0; read_in_split == 0; i++)
		{
			write_number(i, before + i);
			read_expected++;
		}
		assert_true(marks.everything > 0);
		/* Once the split has ended nobody waits. */
		marks.everything = 0;
		assert_int_equal(read_numbers(0, UINT64_MAX, TREE_FORWARD, true), read_expected);
		assert_int_equal(marks.everything, 0);
		stop();
	}
}

/* ---- processes ---- */

/* Words of instance.scratch: marks by a hash of the leaf, of the whole tree, done writers; then two words for each entry. */
#define MARK_WORDS 65536u
#define WORD_ALL MARK_WORDS
#define WORD_DONE (MARK_WORDS + 1)
#define WORD_ENTRIES (MARK_WORDS + 2)
#define WRITERS 2
#define ENTRIES_EACH 6000u
#define ENTRIES (WRITERS * ENTRIES_EACH)

typedef struct Crowd
{
	TreeRecord record;
} Crowd;

static uint64_t *
mark_word(uint64_t leaf)
{
	return &instance.scratch[leaf == TREE_LEAF_ALL ? WORD_ALL : (leaf >> 16) * 0x9e3779b97f4a7c15ull >> 48];
}

/* A word that only grows: the number of the last round of the reader that marked it. */
static void
raise_word(uint64_t *word, uint64_t round)
{
	uint64_t old = __atomic_load_n(word, __ATOMIC_SEQ_CST);

	while (old < round &&
	       !__atomic_compare_exchange_n(word, &old, round, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
}

static void
raise_leaf(void *argument, uint64_t leaf)
{
	raise_word(mark_word(leaf), *(const uint64_t *) argument);
}

static void
raise_copy(void *argument, uint64_t from, uint64_t to)
{
	raise_word(mark_word(to), __atomic_load_n(mark_word(from), __ATOMIC_SEQ_CST));
}

static void
write_crowd(Tree *tree, uint32_t first)
{
	tree_on_split(tree, raise_copy, NULL);
	for (uint32_t i = first; i < first + ENTRIES_EACH; i++)
	{
		TreeKey key = number_key(scramble(i), i);
		uint64_t found, all;
		bool hit;

		REQUIRE(tree_insert(tree, &key, &wal, &hit) == TREE_OK && !hit, "not as it must be");
		found = __atomic_load_n(mark_word(tree_inserted_leaf(tree)), __ATOMIC_SEQ_CST);
		all = __atomic_load_n(mark_word(TREE_LEAF_ALL), __ATOMIC_SEQ_CST);
		instance.scratch[WORD_ENTRIES + 2 * i] = found > all ? found : all;
	}
	__atomic_fetch_add(&instance.scratch[WORD_DONE], 1, __ATOMIC_SEQ_CST);
}

static void
read_crowd(Tree *tree)
{
	const TreeBatch *batch;
	TreeScan *scan;
	uint64_t round = 0;
	bool done = false;

	REQUIRE(tree_scan_open(tree, &scan) == TREE_OK, "not as it must be");
	while (!done)
	{
		TreeStatus status;

		done = __atomic_load_n(&instance.scratch[WORD_DONE], __ATOMIC_SEQ_CST) == WRITERS;
		round++;
		tree_scan_on_leaf(scan, raise_leaf, &round);
		REQUIRE(tree_scan_seek(scan, round % 2 == 0 ? TREE_FORWARD : TREE_BACKWARD, NULL, NULL) == TREE_OK,
		        "not as it must be");
		while ((status = tree_scan_next(scan, &batch)) == TREE_OK)
			for (int i = 0; i < batch->count; i++)
			{
				uint32_t tid = batch->entries[i].block * 100 + batch->entries[i].offset - 1u;
				uint64_t *seen = &instance.scratch[WORD_ENTRIES + 2 * tid + 1];

				if (*seen == 0)
					*seen = round;
			}
		REQUIRE(status == TREE_END, "not as it must be");
	}
	tree_scan_close(scan);
}

static void
crowd_process(int number, void *argument)
{
	Crowd *crowd = argument;
	TestClient mine;
	Tree *tree;

	test_client_open(&mine, &instance, (uint32_t) number + 2);
	tree = open_tree(&mine, &crowd->record);
	if (number == 0)
		read_crowd(tree);
	else
		write_crowd(tree, (uint32_t) (number - 1) * ENTRIES_EACH);
	tree_close(tree);
	REQUIRE(test_client_close(&mine) == TREE_OK, "not as it must be");
}

/* Each entry that a round of the reader missed was put into a leaf that this round had marked. */
static void
test_processes_miss_nothing(void **state)
{
	Crowd crowd;
	Tree *tree = new_tree(&narrow, &crowd.record);

	memset(instance.scratch, 0, TEST_SCRATCH_WORDS * sizeof(uint64_t));
	assert_true(WORD_ENTRIES + 2 * ENTRIES <= TEST_SCRATCH_WORDS);
	assert_int_equal(test_processes(1 + WRITERS, crowd_process, &crowd), 0);
	for (uint32_t i = 0; i < ENTRIES; i++)
	{
		uint64_t found = instance.scratch[WORD_ENTRIES + 2 * i];
		uint64_t seen = instance.scratch[WORD_ENTRIES + 2 * i + 1];

		assert_true(seen > 0);
		if (found + 1 < seen)
			fail_msg("entry %u: first seen by round %lu, marks up to round %lu", i, (unsigned long) seen,
			         (unsigned long) found);
	}
	tree_close(tree);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mark_before_read), cmocka_unit_test(test_read_ahead),
		cmocka_unit_test(test_splits),           cmocka_unit_test(test_inserted_leaf),
		cmocka_unit_test(test_scan_in_split),    cmocka_unit_test(test_processes_miss_nothing),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
