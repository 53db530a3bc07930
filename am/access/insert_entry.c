/*
 * insert_entry.c
 *		Entries that go to their tree now, one or many.
 *
 * Many entries of a unique index go together as far as their leaves show them to be alone (tree_insert_many_alone()).  Before one that
 * is not, they stop: it is checked by itself (unique.c), with nothing held, and may wait there for another transaction.
 * None behind it is in the tree by then.  So two statements that add the same keys meet at the first one that both have, as they
 * do row by row; else each might have added one that the other waits for.
 *
 * Where keys are barred often, what goes together gets less, for each attempt costs what its leaves cost.
 */
#include "am/base/sherman.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "am/access/access.h"
#include "am/access/insert_entry.h"
#include "am/index/index.h"
#include "am/keys/keys.h"
#include "am/nodes/nodes.h"

/* Unique entries that are being added. */
typedef struct UniqueKeys
{
	Relation	index;
	Relation	heap;
	uint64		tree;			/* that they were formed for */
	UniqueChecker checker;
	MemoryContext context;		/* of one row, below the checker's */
	uint32		together;		/* how many are tried together next */
	int			attempts;		/* since the last one that went */
} UniqueKeys;

bool
insert_entry(Relation index, ShermanIndex *opened, const TreeKey *key, Relation heap, bool index_unchanged)
{
	int			attempts = 0;
	TreeWalPosition	wal;
	TreeStatus	status;
	bool		hit;

	for (;;)
	{
		sherman_delete_prepare(opened, heap, index_unchanged);
		sherman_wal_position(index, &wal);
		status = tree_insert(opened->tree, key, &wal, &hit);
		if (likely(status == TREE_OK))
			break;
		if (!sherman_try_again(opened, index, status, &attempts))
			sherman_report_failure(status, index);
		opened = sherman_index_for_insert(index);
		if (opened == NULL)
			return false;
	}
	if (IsolationIsSerializable())
		sherman_predicate_inserted(index, opened);
	return true;
}

bool
insert_checked(UniqueChecker *checker, const UniqueRow *row, ShermanIndex *opened)
{
	bool		unique = unique_claim(checker, row, &opened);

	if (row->check != UNIQUE_CHECK_EXISTING && !checker->added &&
		!insert_entry(row->index, opened, row->key, row->heap, row->unchanged))
		sherman_predicate_skipped(row->index, row->heap);
	unique_release(checker, row->index);
	return unique;
}

/*
 * What was to be found in the table was forgotten, and nothing else gives an index another tree.
 */
static void
check_tree(Relation index, const ShermanIndex *opened, uint64 tree)
{
	if (opened->meta.tree != tree)
		elog(ERROR, "index \"%s\" has got another tree while entries waited", RelationGetRelationName(index));
}

void
insert_keys(Relation index, Relation heap, uint64 tree, const TreeKey *keys, uint32 count, bool churn)
{
	ShermanIndex *opened = sherman_index_for_insert(index);
	int			attempts = 0;
	TreeWalPosition	wal;
	TreeStatus	status;
	bool		hit;

	while (opened != NULL)
	{
		check_tree(index, opened, tree);
		sherman_delete_prepare(opened, heap, churn);
		sherman_wal_position(index, &wal);
		if (count == 1)
			status = tree_insert(opened->tree, keys, &wal, &hit);
		else
			status = tree_insert_many(opened->tree, keys, count, &wal);
		if (likely(status == TREE_OK))
			return;
		if (!sherman_try_again(opened, index, status, &attempts))
			sherman_report_failure(status, index);
		opened = sherman_index_for_insert(index);
	}
	sherman_predicate_skipped(index, heap);
}

static int
compare_keys(const void *first, const void *second, void *tree)
{
	return tree_key_order(tree, first, second);
}

/*
 * Adds the first of these that are alone, and returns how many.  *failed: an error ended it, and it is to be tried again.
 */
static uint32
add_together(UniqueKeys *adding, ShermanIndex *opened, const TreeKey *keys, uint32 count, bool *failed)
{
	KeyParts	parts = {adding->tree, RelationGetRelid(adding->index), sherman_keys_format(opened->keys)->norm_bytes};
	TreePermit	permit = {key_part_add, key_part_added, &parts};
	TreeWalPosition	wal;
	TreeStatus	status;
	uint32		done;

	sherman_delete_prepare(opened, adding->heap, false);
	sherman_wal_position(adding->index, &wal);
	status = tree_insert_many_alone(opened->tree, keys, count, &wal, &permit, &done);
	if (done > 0)
		adding->attempts = 0;
	*failed = status != TREE_OK;
	if (*failed && !sherman_try_again(opened, adding->index, status, &adding->attempts))
		sherman_report_failure(status, adding->index);
	return done;
}

/*
 * Checks one and adds it.  `barred`: there is an entry that begins like it.
 */
static void
add_checked(UniqueKeys *adding, ShermanIndex *opened, const TreeKey *key, bool barred)
{
	MemoryContext caller = MemoryContextSwitchTo(adding->context);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	ItemPointerData tid;
	UniqueRow	row = {adding->index, adding->heap, values, isnull, &tid, key, UNIQUE_CHECK_YES, false, barred};

	sherman_keys_datums(opened->keys, key, values, isnull);
	ItemPointerSet(&tid, key->block, key->offset);
	(void) insert_checked(&adding->checker, &row, opened);
	MemoryContextSwitchTo(caller);
	MemoryContextReset(adding->context);
}

/*
 * Adds the first of these, one or more, and returns how many; 0: an error is to be tried again.
 */
static uint32
add_some(UniqueKeys *adding, ShermanIndex *opened, const TreeKey *keys, uint32 count)
{
	uint32		tried = Min(count, adding->together);
	uint32		done = 0;
	bool		failed = false;

	if (tried > 1)
	{
		done = add_together(adding, opened, keys, tried, &failed);
		if (failed)
			return done;
		adding->together = Max(done, 1);
	}
	if (done < tried)
	{
		/* What it waits for may give the index another handle. */
		add_checked(adding, opened, &keys[done], tried > 1);
		done++;
		if (!adding->checker.added)
			return done;
	}
	adding->together *= 2;
	return done;
}

void
insert_unique_keys(Relation index, Relation heap, uint64 tree, TreeKey *keys, uint32 count)
{
	UniqueKeys	adding = {.index = index,.heap = heap,.tree = tree,.together = count};
	ShermanIndex *opened = sherman_index_for_insert(index);
	uint32		done = 0;

	adding.checker.context = AllocSetContextCreate(CurrentMemoryContext, "sherman unique entries", ALLOCSET_SMALL_SIZES);
	adding.context = AllocSetContextCreate(adding.checker.context, "sherman unique entry", ALLOCSET_SMALL_SIZES);
	if (opened != NULL)
		qsort_arg(keys, count, sizeof(TreeKey), compare_keys, opened->tree);
	while (opened != NULL && done < count)
	{
		check_tree(index, opened, tree);
		done += add_some(&adding, opened, keys + done, count - done);
		opened = sherman_index_for_insert(index);
	}
	if (opened == NULL)
		sherman_predicate_skipped(index, heap);
	MemoryContextDelete(adding.checker.context);
}
