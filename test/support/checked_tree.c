/*
 * checked_tree.c
 *		See checked_tree.h.
 */
#include <stdio.h>
#include <stdlib.h>

#include "checked_tree.h"

void
checked_tree_open(CheckedTree *f, KeySpaceKind kind)
{
	memset(f, 0, sizeof(*f));
	f->space = keyspace(kind);
	f->random.state = 77 + kind;
	test_tree_create(&client, &f->space->format, &f->record);
	require_ok(tree_open(client.tree, f->record.tree, f->record.root, &f->space->format, keyspace_compare,
	                     (void *) f->space, &f->tree));
	require_ok(tree_scan_open(f->tree, &f->scan));
}

void
checked_tree_close(CheckedTree *f)
{
	tree_scan_close(f->scan);
	tree_close(f->tree);
	require_ok(tree_drop(client.tree, f->record.tree, tree_home(f->record.root)));
	key_model_free(&f->model);
}

KeyEntry
entry_of(uint64_t number, uint64_t tid)
{
	KeyEntry entry = {
		.number = number, .block = (uint32_t) (tid / 200), .offset = (uint16_t) (1 + tid % 200)};

	return entry;
}

TreeStatus
insert_try(CheckedTree *f, const KeyEntry *entry, bool *hit)
{
	TreeWalPosition wal = {.epoch = 1, .lsn = 1000};
	KeyImage image;
	TreeKey key;

	keyspace_key(f->space, entry, &image, &key);
	return tree_insert(f->tree, &key, &wal, hit);
}

void
insert(CheckedTree *f, uint64_t number, uint64_t tid)
{
	KeyEntry entry = entry_of(number, tid);
	bool hit;

	require_ok(insert_try(f, &entry, &hit));
	assert_true(key_model_add(&f->model, &entry) == !hit);
}

void
insert_random(CheckedTree *f, uint64_t count, uint64_t range, uint64_t first_tid)
{
	for (uint64_t i = 0; i < count; i++)
		insert(f, key_random(&f->random, range), first_tid + i);
}

bool
is_dead(void *argument, uint32_t block, uint16_t offset)
{
	(void) argument;
	return (block + offset) % 3 == 0;
}

void
vacuum(CheckedTree *f)
{
	TreeVacuumCounts counts;
	TreeVacuum *walk;
	TreeStatus status;
	uint64_t kept = 0;

	memset(&counts, 0, sizeof(counts));
	require_ok(tree_vacuum_open(f->tree, &walk));
	while ((status = tree_vacuum_next(walk, is_dead, NULL, &counts)) == TREE_OK)
		;
	assert_int_equal(status, TREE_END);
	tree_vacuum_close(walk);
	for (uint64_t i = 0; i < f->model.count; i++)
		if (!is_dead(NULL, f->model.entries[i].block, f->model.entries[i].offset))
			f->model.entries[kept++] = f->model.entries[i];
	assert_int_equal(counts.removed, f->model.count - kept);
	assert_int_equal(counts.entries, kept);
	f->model.count = kept;
}

/* The view of an entry's key says what the key itself says. */
static void
compare_view(const CheckedTree *f, const TreeKeyView *view, const TreeKey *key)
{
	assert_int_equal(view->high, key->high);
	assert_memory_equal(view->norm, key->norm, f->tree->geometry.format.norm_bytes);
	assert_int_equal(view->image_bytes, key->image_bytes);
	if (view->image != NULL)
		assert_memory_equal(view->image, key->image, key->image_bytes);
}

void
compare_batch(CheckedTree *f, const TreeBatch *batch, TreeDirection direction, int64_t *place)
{
	TreeKeyView views[TREE_BATCH_MAX];

	assert_true(batch->count > 0);
	tree_batch_views(f->scan, batch, views);
	for (int i = 0; i < batch->count; i++)
	{
		const KeyEntry *expected;
		TreeKey key;

		assert_true(*place >= 0 && *place < (int64_t) f->model.count);
		expected = &f->model.entries[*place];
		require_ok(tree_batch_key(f->scan, batch, i, &key));
		compare_view(f, &views[i], &key);
		if (batch->entries[i].block != expected->block || batch->entries[i].offset != expected->offset ||
		    keyspace_number(f->space, &key) != expected->number)
			fail_msg("%s, direction %d, leaf %llx: entry %d of %d is %llu (%u,%u), not %lld: %llu (%u,%u)",
			         f->space->name, (int) direction, (unsigned long long) batch->leaf.pointer, i,
			         batch->count, (unsigned long long) keyspace_number(f->space, &key),
			         batch->entries[i].block, batch->entries[i].offset, (long long) *place,
			         (unsigned long long) expected->number, expected->block, expected->offset);
		*place += direction == TREE_FORWARD ? 1 : -1;
	}
}

void
compare_scan(CheckedTree *f, TreeDirection direction, const TreeBound *low, const TreeBound *high,
             int64_t from, int64_t to)
{
	const TreeBatch *batch;
	int64_t place = direction == TREE_FORWARD ? from : to - 1;
	TreeStatus status;

	require_ok(tree_scan_seek(f->scan, direction, direction == TREE_FORWARD ? low : high,
	                          direction == TREE_FORWARD ? high : low));
	while ((status = tree_scan_next(f->scan, &batch)) == TREE_OK)
		compare_batch(f, batch, direction, &place);
	if (status != TREE_END)
		require_ok(status);
	assert_int_equal(place,
	                 direction == TREE_FORWARD ? (to > from ? to : from) : (to > from ? from : to) - 1);
	assert_int_equal(tree_scan_next(f->scan, &batch), TREE_END);
}

void
compare_range(CheckedTree *f, uint64_t low, int8_t low_side, uint64_t high, int8_t high_side)
{
	TreeBound lower, upper;
	int64_t from, to;

	f->low = low;
	f->high = high;
	keyspace_bound(f->space, &f->low, low_side, &lower);
	keyspace_bound(f->space, &f->high, high_side, &upper);
	from = (int64_t) key_model_find(&f->model, low_side < 0 ? low : low + 1);
	to = (int64_t) key_model_find(&f->model, high_side < 0 ? high : high + 1);
	compare_scan(f, TREE_FORWARD, &lower, &upper, from, to);
	compare_scan(f, TREE_BACKWARD, &lower, &upper, from, to);
}

void
compare_everything(CheckedTree *f, uint64_t range, int lookups)
{
	compare_scan(f, TREE_FORWARD, NULL, NULL, 0, (int64_t) f->model.count);
	compare_scan(f, TREE_BACKWARD, NULL, NULL, 0, (int64_t) f->model.count);
	for (int i = 0; i < lookups; i++)
	{
		uint64_t a = key_random(&f->random, range + 2);
		uint64_t b = a + key_random(&f->random, range / 10 + 2);
		int8_t low_side = key_random(&f->random, 2) != 0 ? 1 : -1;
		int8_t high_side = key_random(&f->random, 2) != 0 ? 1 : -1;
		int64_t end = (int64_t) f->model.count;
		TreeBound bound;

		compare_range(f, a, -1, a, 1);
		compare_range(f, a, low_side, b, high_side);
		f->low = a;
		keyspace_bound(f->space, &f->low, low_side, &bound);
		if (i % 8 == 0)
		{
			compare_scan(f, TREE_FORWARD, &bound, NULL,
			             (int64_t) key_model_find(&f->model, low_side < 0 ? a : a + 1), end);
			compare_scan(f, TREE_BACKWARD, &bound, NULL,
			             (int64_t) key_model_find(&f->model, low_side < 0 ? a : a + 1), end);
			compare_scan(f, TREE_FORWARD, NULL, &bound, 0,
			             (int64_t) key_model_find(&f->model, low_side < 0 ? a : a + 1));
		}
	}
}

/* Where tree_check() is in the model. */
typedef struct CheckPlace
{
	CheckedTree *f;
	uint64_t place;
	uint64_t wrong;
} CheckPlace;

static void
check_report(void *argument, const char *message)
{
	(void) argument;
	print_error("%s\n", message);
}

static void
check_entry(void *argument, const TreeKey *key, bool unverified)
{
	CheckPlace *place = argument;
	KeyEntry entry = {
		.number = keyspace_number(place->f->space, key), .block = key->block, .offset = key->offset};

	(void) unverified;
	if (place->place >= place->f->model.count ||
	    key_entry_compare(&entry, &place->f->model.entries[place->place]) != 0)
		place->wrong++;
	place->place++;
}

void
compare_check(CheckedTree *f, TreeStatistics *statistics)
{
	CheckPlace place = {.f = f};
	uint64_t problems;

	require_ok(tree_check(f->tree, check_report, check_entry, &place, statistics, &problems));
	assert_int_equal(problems, 0);
	assert_int_equal(place.wrong, 0);
	assert_int_equal(place.place, f->model.count);
	assert_int_equal(statistics->entries, f->model.count);
}
