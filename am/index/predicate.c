/*
 * predicate.c
 *		SERIALIZABLE: predicate locks by leaf.
 *
 * A scan locks each leaf before it reads it; an insert, once its entry is visible, looks for locks on the leaf that
 * it went to; a split copies the locks of a leaf to the new one before anybody can read that.
 * tree/descent/predicate.c proves that nothing is missed between the three; doc/internals/serializable.md adds
 * PostgreSQL's side.
 *
 * A lock names a page of the index: for us, a hash of the leaf's address.  Leaves that share a hash share their
 * locks, which can only make a transaction fail that need not.  Where no leaf can be named the relation is
 * locked: an index that has no tree yet, and a scan that splits left no time to wait for.
 */
#include "am/base/sherman.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "storage/predicate.h"
#include "utils/snapmgr.h"

#include "am/base/shared.h"
#include "am/index/index.h"

/*
 * The page number that represents a leaf in predicate locks.
 */
static BlockNumber
page_of_leaf(uint64 leaf)
{
	uint32		hash = hash_bytes((const unsigned char *) &leaf, sizeof(leaf));

	return hash == InvalidBlockNumber ? 0 : hash;
}

/*
 * TreeLeafHook of serializable scans. The lock is taken while the index is still usable, so that a session that skips
 * an insert because the index is broken finds the lock (sherman_predicate_skipped()).
 */
static void
lock_leaf(void *argument, uint64 leaf)
{
	const ShermanPredicateScan *reader = argument;
	Relation	relation = reader->scan->indexRelation;

	if (leaf == TREE_LEAF_ALL)
		PredicateLockRelation(relation, reader->scan->xs_snapshot);
	else
		PredicateLockPage(relation, page_of_leaf(leaf), reader->scan->xs_snapshot);
	sherman_index_recheck(reader->index, relation);
}

/*
 * TreeSplitHook.  Under the tree's lock: this takes short locks of core's in shared memory and cannot fail, for
 * where the table of locks is full it replaces the page's by the relation's.
 */
static void
copy_locks(void *argument, uint64 from, uint64 to)
{
	const ShermanIndex *index = argument;
	BlockNumber from_page = page_of_leaf(from);
	BlockNumber to_page = page_of_leaf(to);

	if (index->relation != NULL && from_page != to_page)
		PredicateLockPageSplit(index->relation, from_page, to_page);
}

/*
 * Before a scan's next seek in a serializable transaction: from now on it locks what it reads.
 */
void
sherman_predicate_scan(ShermanPredicateScan *reader, IndexScanDesc scan, ShermanIndex *index, TreeScan *tree_scan)
{
	bool		lock = scan->xs_snapshot != InvalidSnapshot && IsMVCCSnapshot(scan->xs_snapshot);

	reader->scan = scan;
	reader->index = index;
	tree_scan_on_leaf(tree_scan, lock ? lock_leaf : NULL, reader);
}

/*
 * A scan of an index that has no tree, as far as this process knows: locks the relation, then looks whether
 * another one has made it.
 */
ShermanIndex *
sherman_predicate_empty(IndexScanDesc scan, ShermanIndex *index)
{
	Relation	relation = scan->indexRelation;
	ShermanMetaPage meta;

	if (scan->xs_snapshot != InvalidSnapshot)
		PredicateLockRelation(relation, scan->xs_snapshot);
	if (!sherman_metapage_read(relation, &meta) || meta.tree == 0)
		return index;
	sherman_index_forget(RelationGetRelid(relation));
	return sherman_index_for_scan(relation, false);
}

void
sherman_predicate_changes(ShermanIndex *index)
{
	tree_on_split(index->tree, copy_locks, index);
	index->splits_told = true;
}

/*
 * After an insert: raises 40001 if that is a conflict that cannot be.  The entry stays, as that of any
 * transaction that fails.
 */
void
sherman_predicate_inserted(Relation relation, const ShermanIndex *index)
{
	CheckForSerializableConflictIn(relation, NULL, page_of_leaf(tree_inserted_leaf(index->tree)));
}

/*
 * TreeLeafHook of a look at a duplicate: an insert would go to this leaf.
 */
static void
look_for_readers(void *argument, uint64 leaf)
{
	CheckForSerializableConflictIn((Relation) argument, NULL,
								   leaf == TREE_LEAF_ALL ? InvalidBlockNumber : page_of_leaf(leaf));
}

/*
 * Before an insert is refused as a duplicate: from now on the scan looks for locks on the leaves that it reads, as if
 * the entry went there, and raises 40001. A transaction that had found no such row, and then finds one, gets a
 * serialization failure and tries again (as with btree).
 */
void
sherman_predicate_refused(Relation relation, TreeScan *tree_scan)
{
	tree_scan_on_leaf(tree_scan, look_for_readers, relation);
}

/*
 * An insert into a broken index was skipped, so that it has not checked for locks in the index: locks that scans took
 * here while the index was usable become locks on the table, and the row's insert is checked against these once more.
 */
void
sherman_predicate_skipped(Relation relation, Relation heap)
{
	TransferPredicateLocksToHeapRelation(relation);
	CheckForSerializableConflictIn(heap, NULL, InvalidBlockNumber);
}
