/*
 * test_posting.c
 *		Many TIDs of one key: packed and found again, in private memory; then trees of duplicates against the model, by
 *		load, insert and removal, and what they take.
 */
#include <stdlib.h>

#include "support/checked_tree.h"
#include "support/tree_walk.h"
#include "tree/lock/lock.h"

/* As many rows of one value as issue 4 speaks of, and what each of them may take then. */
#define DUPLICATES 100
#define ROW_BYTES_LOADED 10
#define ROW_BYTES_INSERTED 12

static const KeySpaceKind kinds[] = {KEYSPACE_16, KEYSPACE_32_WHOLE, KEYSPACE_24_WHOLE};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* TIDs whose blocks lie so far apart that one posting cannot have them all. */
static KeyEntry
far_entry(uint64_t number, uint64_t tid)
{
	KeyEntry entry = entry_of(number, tid);

	entry.block += (uint32_t) (tid % 3) << POSTING_BLOCK_BITS;
	return entry;
}

static void
make_cell(const KeySpace *space, const NodeGeometry *g, const KeyEntry *entry, uint64_t *cell)
{
	KeyImage image;
	TreeKey key;

	keyspace_key(space, entry, &image, &key);
	cell_make(g, cell, &key, 0, NULL);
}

/* ---- in private memory ---- */

/* Cells of n entries of one key, whose blocks agree in their upper bits: 1 for the first, and of postings as few as can be. */
static uint32_t
cells_needed(const NodeGeometry *g, uint32_t entries)
{
	uint32_t most = 1 + POSTING_CELLS_MAX * g->posting_tids;
	uint32_t rest = entries % most;

	return entries / most * (1 + POSTING_CELLS_MAX) +
	       (rest == 0 ? 0 : 1 + (rest - 1 + g->posting_tids - 1) / g->posting_tids);
}

static void
test_cells_needed(void **state)
{
	for (size_t k = 0; k < KINDS; k++)
	{
		const KeySpace *space = keyspace(kinds[k]);
		NodeGeometry g = node_geometry(&space->format);
		uint64_t place[NODE_MAX_BYTES / 8], cell[LINE_WORDS];
		Packer packer = {.cells = place};

		for (uint32_t i = 0; cells_needed(&g, i + 1) <= g.leaf_cells; i++)
		{
			KeyEntry entry = entry_of(7, i);
			bool takes;

			make_cell(space, &g, &entry, cell);
			takes = packer_takes_cell(&g, &packer, cell);
			assert_int_equal(takes, cells_needed(&g, i + 1) > cells_needed(&g, i));
			packer_add(&g, &packer, cell);
			assert_int_equal(packer.count, cells_needed(&g, i + 1));
		}
	}
}

/* A node whose base is random entries of few keys, some dead-marked; packed. Returns their number, in order. */
static uint32_t
node_make(const KeySpace *space, const NodeGeometry *g, KeyRandom *random, uint64_t *node, KeyModel *model)
{
	uint64_t cell[LINE_WORDS];
	Packer packer = {.cells = node + leaf_cell_word(g, 0)};

	model->count = 0;
	for (uint64_t i = 0; i < 400; i++)
	{
		KeyEntry entry = far_entry(key_random(random, 3), i * 7 % 400);

		(void) key_model_add(model, &entry);
	}
	node_begin(g, node, 99, pointer_make(0, 4096), 0, 0xffff, NODE_POSTINGS | NODE_BASE_ORDERED);
	for (uint64_t i = 0; i < model->count; i++)
	{
		make_cell(space, g, &model->entries[i], cell);
		if (packer.count == g->leaf_cells && packer_takes_cell(g, &packer, cell))
		{
			model->count = i;
			break;
		}
		packer_add(g, &packer, cell);
	}
	node[HEADER_STATE] = node_state_word(0xffff, 0, packer.count, node_flags(node));
	node_seal(g, node);
	return (uint32_t) model->count;
}

static void
must_be(const KeySpace *space, const uint64_t *cell, const KeyEntry *expected)
{
	NodeGeometry g = node_geometry(&space->format);
	TreeKey key;

	cell_key(&g, cell, false, &key);
	assert_int_equal(keyspace_number(space, &key), expected->number);
	assert_int_equal(key.block, expected->block);
	assert_int_equal(key.offset, expected->offset);
}

/* What was packed comes out again, each TID is found where it is, and packed again it takes no more. */
static void
test_gather(void **state)
{
	KeyRandom random = {5};
	KeyModel model = {0};
	uint64_t node[NODE_MAX_BYTES / 8];
	LeafCells cells;

	for (int round = 0; round < 200; round++)
	{
		const KeySpace *space = keyspace(kinds[round % KINDS]);
		NodeGeometry g = node_geometry(&space->format);
		uint32_t count = node_make(space, &g, &random, node, &model);
		uint32_t most = node_count(node);
		LeafSurvey survey;

		assert_false(leaf_posting_stray(&g, node));
		assert_int_equal(leaf_live(&g, node), count);
		leaf_gather(&g, node, LEAF_NO_SLOT, NULL, &cells);
		assert_int_equal(cells.count, count);
		for (uint32_t i = 0; i < count; i++)
		{
			must_be(space, cells.cells[i], &model.entries[i]);
			leaf_survey(&g, node, model.entries[i].block, model.entries[i].offset, &survey);
			assert_true(survey.same_tid != LEAF_NO_SLOT);
			/* The same offset in a block that the posting cannot have. */
			leaf_survey(&g, node, model.entries[i].block + (4u << POSTING_BLOCK_BITS),
			            model.entries[i].offset, &survey);
			assert_int_equal(survey.same_tid, LEAF_NO_SLOT);
		}
		leaf_pack(&g, &cells);
		assert_int_equal(cells.count, most);
		/* Fewer entries never take more. */
		for (uint32_t slot = 0; slot < node_count(node); slot++)
		{
			uint64_t *cell = node + leaf_cell_word(&g, slot);

			for (uint32_t i = 0; cell_is_posting(cell) && i < g.posting_tids; i++)
				if (posting_get(cell, i) != 0 && key_random(&random, 3) == 0)
					posting_remove(cell, i);
			if (!cell_is_posting(cell) && key_random(&random, 3) == 0)
				cell[0] ^= 3ull << CELL_STATE_SHIFT; /* live to dead */
		}
		count = leaf_live(&g, node);
		leaf_gather(&g, node, LEAF_NO_SLOT, NULL, &cells);
		assert_int_equal(cells.count, count);
		for (uint32_t i = 1; i < count; i++)
			assert_true(cell_order(&g, cells.cells[i - 1], cells.cells[i]) < 0);
		leaf_pack(&g, &cells);
		assert_true(cells.count <= most);
	}
	key_model_free(&model);
}

/* Removes an entry from a leaf, and makes its cell. */
static void
take_out(const KeySpace *space, const NodeGeometry *g, uint64_t *node, const KeyEntry *entry, uint64_t *taken)
{
	LeafSurvey survey;
	uint64_t *cell;

	make_cell(space, g, entry, taken);
	leaf_survey(g, node, entry->block, entry->offset, &survey);
	assert_true(survey.same_tid != LEAF_NO_SLOT);
	cell = node + leaf_cell_word(g, survey.same_tid);
	if (!cell_is_posting(cell))
	{
		cell[0] ^= 3ull << CELL_STATE_SHIFT; /* live to dead */
		return;
	}
	for (uint32_t i = 0; i < g->posting_tids; i++)
	{
		const uint64_t *head = node + leaf_cell_word(g, posting_head(g, node, survey.same_tid));
		uint64_t word0 = posting_word0(head, posting_get(cell, i));

		if (posting_get(cell, i) != 0 && ((word0 ^ taken[0]) & CELL_TID_MASK) == 0)
			posting_remove(cell, i);
	}
}

/* A cut leaves no posting in two halves, and the separator stands between them. */
static void
test_cut(void **state)
{
	KeyRandom random = {9};
	KeyModel model = {0};
	uint64_t node[NODE_MAX_BYTES / 8], halves[2][NODE_MAX_BYTES / 8];
	uint64_t separator[LINE_WORDS], cell[LINE_WORDS];
	LeafCells cells, left, right;

	for (int round = 0; round < 200; round++)
	{
		const KeySpace *space = keyspace(kinds[round % KINDS]);
		NodeGeometry g = node_geometry(&space->format);
		uint32_t count = node_make(space, &g, &random, node, &model);
		uint32_t cut, extra;

		/* Any of them is the one that comes: the leaf is without it. */
		extra = (uint32_t) key_random(&random, count);
		take_out(space, &g, node, &model.entries[extra], cell);
		leaf_gather(&g, node, LEAF_NO_SLOT, cell, &cells);
		assert_true(cells.extra < cells.count && cells.cells[cells.extra] == cell);
		leaf_pack(&g, &cells);
		assert_true(cells.extra < cells.count);
		cut = leaf_cut(&g, &cells, 1 + (uint32_t) key_random(&random, cells.count - 1));
		assert_true(cut > 0 && cut < cells.count);
		leaf_separator(&g, leaf_cut_left(cells.cells, cut), cells.cells[cut], separator);
		for (int i = 0; i < 2; i++)
		{
			node_begin(&g, halves[i], 99, pointer_make(0, 8192), 0, 7, NODE_POSTINGS);
			leaf_fill(&g, halves[i], &cells, i == 0 ? 0 : cut, i == 0 ? cut : cells.count);
			assert_false(leaf_posting_stray(&g, halves[i]));
		}
		leaf_gather(&g, halves[0], LEAF_NO_SLOT, NULL, &left);
		leaf_gather(&g, halves[1], LEAF_NO_SLOT, NULL, &right);
		assert_int_equal(left.count + right.count, count);
		assert_int_equal(cells.extra < cut, extra < left.count);
		for (uint32_t i = 0; i < count; i++)
		{
			const uint64_t *entry = i < left.count ? left.cells[i] : right.cells[i - left.count];
			TreeBound bound;
			TreeKey key;

			must_be(space, entry, &model.entries[i]);
			cell_key(&g, entry, false, &key);
			bound_of_key(&g, &key, &bound);
			assert_int_equal(node_decide(&g, &bound, separator, true) == DECIDE_BELOW, i < left.count);
		}
	}
	key_model_free(&model);
}

/* Posting cells where none can be. */
static void
test_stray(void **state)
{
	KeyRandom random = {3};
	KeyModel model = {0};
	const KeySpace *space = keyspace(KEYSPACE_16);
	NodeGeometry g = node_geometry(&space->format);
	NodeGeometry without = node_geometry(&keyspace(KEYSPACE_16_SINGLE)->format);
	uint64_t node[NODE_MAX_BYTES / 8];
	uint32_t slot = 1;

	(void) node_make(space, &g, &random, node, &model);
	assert_false(leaf_posting_stray(&g, node));
	assert_true(leaf_posting_stray(&without, node));
	node[HEADER_STATE] ^= (uint64_t) NODE_POSTINGS << 40;
	assert_true(leaf_posting_stray(&g, node));
	node[HEADER_STATE] ^= (uint64_t) NODE_POSTINGS << 40;
	/* In front of the first cell; longer than any; in the tail. */
	node[leaf_cell_word(&g, 0)] |= 3ull << CELL_STATE_SHIFT;
	assert_true(leaf_posting_stray(&g, node));
	(void) node_make(space, &g, &random, node, &model);
	while (slot <= POSTING_CELLS_MAX + 1)
		node[leaf_cell_word(&g, slot++)] |= 3ull << CELL_STATE_SHIFT;
	assert_true(leaf_posting_stray(&g, node));
	(void) node_make(space, &g, &random, node, &model);
	node[HEADER_STATE] = node_state_word(0xffff, 0, 1, node_flags(node));
	assert_true(leaf_posting_stray(&g, node));
	key_model_free(&model);
}

/* ---- trees ---- */

static bool
insert_entry(CheckedTree *f, const KeyEntry *entry)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1000};
	KeyImage image;
	TreeKey key;
	bool hit;

	keyspace_key(f->space, entry, &image, &key);
	require_ok(tree_insert(f->tree, &key, &wal, &hit));
	return hit;
}

/* Loads the model's entries. */
static void
load_model(CheckedTree *f)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1};
	TreeBulk *bulk;
	KeyImage image;
	TreeKey key;

	require_ok(tree_bulk_open(f->tree, &wal, &bulk));
	for (uint64_t i = 0; i < f->model.count; i++)
	{
		keyspace_key(f->space, &f->model.entries[i], &image, &key);
		require_ok(tree_bulk_add(bulk, &key));
	}
	require_ok(tree_bulk_finish(bulk));
}

/* The values come in no order, each DUPLICATES times. */
static uint64_t
row_value(uint64_t row, uint64_t rows)
{
	return row * 7919 % rows / DUPLICATES;
}

/* Of `rows` rows each value is the one of DUPLICATES of them, anywhere in the table. */
static void
model_duplicates(CheckedTree *f, uint64_t rows)
{
	f->model.entries = malloc(rows * sizeof(KeyEntry));
	f->model.room = rows;
	for (uint64_t i = 0; i < rows; i++)
		f->model.entries[f->model.count++] = entry_of(row_value(i, rows), i);
	qsort(f->model.entries, rows, sizeof(KeyEntry), key_entry_compare);
}

static uint64_t
bytes_per_row(CheckedTree *f)
{
	TreeStatistics statistics;

	compare_check(f, &statistics);
	print_message("%s: %.2f bytes of nodes for a row\n", f->space->name,
	              (double) statistics.node_bytes / (double) f->model.count);
	return (statistics.node_bytes + f->model.count - 1) / f->model.count;
}

static void
test_loaded_size(void **state)
{
	for (size_t k = 0; k < KINDS; k++)
	{
		CheckedTree f;

		checked_tree_open(&f, kinds[k]);
		model_duplicates(&f, 50000);
		load_model(&f);
		assert_true(bytes_per_row(&f) <= ROW_BYTES_LOADED);
		compare_everything(&f, 500, 50);
		checked_tree_close(&f);
	}
}

static void
test_inserted_size(void **state)
{
	for (size_t k = 0; k < KINDS; k++)
	{
		CheckedTree f;

		checked_tree_open(&f, kinds[k]);
		model_duplicates(&f, 50000);
		/* In the order of the table: the values come in any. */
		for (uint64_t i = 0; i < f.model.count; i++)
		{
			KeyEntry entry = entry_of(row_value(i, f.model.count), i);

			assert_false(insert_entry(&f, &entry));
		}
		assert_true(bytes_per_row(&f) <= ROW_BYTES_INSERTED);
		compare_everything(&f, 500, 50);
		checked_tree_close(&f);
	}
}

/* An entry that is there already, in a posting too, is a hit: a rewrite, and nothing more. */
static void
test_again(void **state)
{
	for (size_t k = 0; k < KINDS; k++)
	{
		TreeStatistics statistics;
		WalkResult walk;
		CheckedTree f;

		checked_tree_open(&f, kinds[k]);
		for (uint64_t i = 0; i < 3000; i++)
		{
			KeyEntry entry = far_entry(i % 7, i);

			assert_false(insert_entry(&f, &entry));
			(void) key_model_add(&f.model, &entry);
		}
		walk_tree(f.tree, &walk);
		assert_true(walk.in_postings > walk.count / 2);
		walk_free(&walk);
		for (uint64_t i = 0; i < 3000; i++)
		{
			KeyEntry entry = far_entry(i % 7, i);
			TreeCounters before, after;

			tree_counters(f.tree, &before);
			assert_true(insert_entry(&f, &entry));
			tree_counters(f.tree, &after);
			assert_int_equal(after.leaf_rewrites, before.leaf_rewrites + 1);
			assert_int_equal(after.leaf_splits, before.leaf_splits);
		}
		compare_check(&f, &statistics);
		compare_everything(&f, 8, 20);
		checked_tree_close(&f);
	}
}

/* One leaf: entries of two numbers, some in postings. */
static void
one_leaf(CheckedTree *f, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
	{
		KeyEntry entry = entry_of(1 + i % 2, i);

		assert_false(insert_entry(f, &entry));
		(void) key_model_add(&f->model, &entry);
	}
}

/* A TID that comes with another key: what an earlier row of it left is dropped, out of a posting, too. */
static void
test_leftover(void **state)
{
	const uint64_t entries = 70;

	for (size_t k = 0; k < KINDS; k++)
	{
		TreeStatistics statistics;
		CheckedTree f;

		checked_tree_open(&f, kinds[k]);
		one_leaf(&f, entries);
		for (uint64_t i = 0; i < entries; i += 3)
		{
			KeyEntry old = entry_of(1 + i % 2, i), new = entry_of(3 - old.number, i);

			assert_false(insert_entry(&f, &new));
			assert_true(key_model_remove(&f.model, &old));
			assert_true(key_model_add(&f.model, &new));
		}
		compare_check(&f, &statistics);
		assert_int_equal(statistics.leaves, 1);
		compare_everything(&f, 4, 20);
		checked_tree_close(&f);
	}
}

/* Dead-marks the live cells that stand in front of postings, as a scan that met dead rows would. */
static uint32_t
mark_heads(CheckedTree *f)
{
	const NodeGeometry *g = &f->tree->geometry;
	uint64_t leaf[NODE_MAX_BYTES / 8];
	uint32_t marked = 0;

	require_ok(access_read_node(f->tree, f->tree->root, 0, leaf));
	for (uint32_t slot = 0; slot + 1 < node_count(leaf); slot++)
	{
		uint32_t word = leaf_cell_word(g, slot);
		KeyEntry entry = {.block = cell_block(leaf[word]), .offset = cell_offset(leaf[word])};
		FabricOp op = {.opcode = FABRIC_WRITE,
		               .region = FABRIC_NODES,
		               .length = 8,
		               .offset = pointer_offset(f->tree->root) + word * 8,
		               .buffer = leaf + word};
		TreeKey key;

		if (cell_state(leaf[word]) != CELL_LIVE || !cell_is_posting(leaf + leaf_cell_word(g, slot + 1)))
			continue;
		cell_key(g, leaf + word, false, &key);
		entry.number = keyspace_number(f->space, &key);
		assert_true(key_model_remove(&f->model, &entry));
		leaf[word] ^= 3ull << CELL_STATE_SHIFT;
		require_ok(access_execute(f->tree, pointer_memory_node(f->tree->root), &op, 1));
		marked++;
	}
	return marked;
}

/* A dead cell in front of a posting: its own entry is gone for readers, those of the posting are not. */
static void
test_dead_head(void **state)
{
	for (size_t k = 0; k < KINDS; k++)
	{
		TreeStatistics statistics;
		uint32_t marked;
		CheckedTree f;

		checked_tree_open(&f, kinds[k]);
		one_leaf(&f, 100);
		marked = mark_heads(&f);
		assert_true(marked >= 2);
		compare_check(&f, &statistics);
		assert_int_equal(statistics.dead, marked);
		compare_everything(&f, 4, 20);
		/* Rewrites drop them or keep them, and nothing else goes. */
		for (uint64_t i = 0; i < f.model.count; i++)
			assert_true(insert_entry(&f, &f.model.entries[i]));
		compare_check(&f, &statistics);
		assert_true(statistics.dead <= marked);
		compare_everything(&f, 4, 20);
		checked_tree_close(&f);
	}
}

/* TIDs that come between those of postings. */
static void
test_between(void **state)
{
	for (size_t k = 0; k < KINDS; k++)
	{
		CheckedTree f;

		checked_tree_open(&f, kinds[k]);
		for (uint64_t i = 0; i < 2000; i++)
		{
			KeyEntry entry = entry_of(i % 9, 2 * i);

			(void) key_model_add(&f.model, &entry);
		}
		load_model(&f);
		vacuum(&f);
		for (uint64_t i = 0; i < 2000; i += 37)
		{
			KeyEntry entry = entry_of(i % 9, 2 * i + 1);

			assert_false(insert_entry(&f, &entry));
			(void) key_model_add(&f.model, &entry);
		}
		compare_everything(&f, 10, 20);
		checked_tree_close(&f);
	}
}

/* All ways of change on few keys, with TIDs that do not fit one posting. */
static void
test_changes(void **state)
{
	for (size_t k = 0; k < KINDS; k++)
	{
		TreeStatistics statistics;
		CheckedTree f;

		checked_tree_open(&f, kinds[k]);
		for (uint64_t i = 0; i < 4000; i++)
		{
			KeyEntry entry = far_entry(key_random(&f.random, 12), i);

			(void) key_model_add(&f.model, &entry);
		}
		load_model(&f);
		compare_everything(&f, 14, 10);
		for (uint64_t round = 0; round < 6; round++)
		{
			vacuum(&f);
			compare_check(&f, &statistics);
			for (uint64_t i = 0; i < 1500; i++)
			{
				KeyEntry entry = far_entry(key_random(&f.random, 12), 4000 + round * 1500 + i);
				bool hit = insert_entry(&f, &entry);

				assert_true(key_model_add(&f.model, &entry) == !hit);
			}
			compare_check(&f, &statistics);
			compare_everything(&f, 14, 10);
		}
		checked_tree_close(&f);
	}
}

/* From any TID of a key that spans leaves, in both directions: bounds with a TID. */
static void
test_from_the_middle(void **state)
{
	for (size_t k = 0; k < KINDS; k++)
	{
		CheckedTree f;

		checked_tree_open(&f, kinds[k]);
		for (uint64_t i = 0; i < 3000; i++)
		{
			KeyEntry entry = far_entry(i % 4, i);

			(void) key_model_add(&f.model, &entry);
		}
		load_model(&f);
		for (int64_t i = 0; i < (int64_t) f.model.count; i += 17)
		{
			TreeBound bound;
			KeyImage image;
			TreeKey key;

			keyspace_key(f.space, &f.model.entries[i], &image, &key);
			bound_of_key(&f.tree->geometry, &key, &bound);
			compare_scan(&f, TREE_FORWARD, &bound, NULL, i + 1, (int64_t) f.model.count);
			compare_scan(&f, TREE_BACKWARD, NULL, &bound, 0, i);
		}
		checked_tree_close(&f);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cells_needed), cmocka_unit_test(test_gather),
		cmocka_unit_test(test_cut),          cmocka_unit_test(test_stray),
		cmocka_unit_test(test_loaded_size),  cmocka_unit_test(test_inserted_size),
		cmocka_unit_test(test_again),        cmocka_unit_test(test_leftover),
		cmocka_unit_test(test_dead_head),    cmocka_unit_test(test_between),
		cmocka_unit_test(test_changes),      cmocka_unit_test(test_from_the_middle),
	};

	return cmocka_run_group_tests(tests, fixture_start, fixture_stop);
}
