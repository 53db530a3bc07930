/*
 * write_guard.c
 *		Before an index is used or changed: that it may be, that its tree is there and its record says "mutated", and
 *		that a change is skipped only once all sessions can know it.
 */
#include "am/base/sherman.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"

#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/keys/keys.h"
#include "am/nodes/nodes.h"

/*
 * LSNs of WAL positions are rounded up to this, so that most inserts leave the leaf's as it is.
 */
#define WAL_SLACK ((XLogRecPtr) 1024 * 1024)

/*
 * Changes the tree's record, and its copy's.  False: the index's state is to be determined anew.
 */
static bool
change_record(Relation relation, ShermanIndex *index, TreeRecord *record)
{
	int			attempts = 0;
	TreeStatus	status;

	while ((status = sherman_record_update(&index->meta, record)) != TREE_OK)
	{
		if (!sherman_try_again(index, relation, status, &attempts))
			sherman_report_failure(status, relation);
		if (!sherman_replicas_before_change(relation, index))
			return false;
	}
	return true;
}

/*
 * Says that the tree changes in this epoch, before it does: in the metapage, which shares the tables' fate, then at
 * the memory node. A history in which that note was lost does not use the tree any more (sherman_state_determine()). No buffer
 * is locked, and no lock word is held. False: the index has changed; its state is to be determined anew.
 */
static bool
mark_mutated(Relation relation, ShermanIndex *index)
{
	uint64		tree = index->meta.tree;
	TreeRecord	record = {.mutated_epoch = sherman_epoch(),.nonce = sherman_shared->local.nonce};
	ShermanTreeEntry entry = {0};
	bool		known = sherman_trees_find(sherman_tree_key(&index->meta), &entry);
	bool		news = !known || entry.mutated_epoch < record.mutated_epoch;

	if (!sherman_replicas_before_change(relation, index) ||
		(news && (!known || !sherman_metapage_adopt(relation, tree, entry.nonce, record.nonce))))
	{
		sherman_index_forget(RelationGetRelid(relation));
		return false;
	}
	if (news)
	{
		if (!change_record(relation, index, &record))
		{
			sherman_index_forget(RelationGetRelid(relation));
			return false;
		}
		sherman_trees_mutated(tree, record.mutated_epoch, record.nonce);
	}
	index->mutated_epoch = record.mutated_epoch;
	return true;
}

void
sherman_index_moved(Oid oid)
{
	Relation	index;
	ShermanMetaPage meta;
	ShermanTreeEntry entry;

	if (sherman_all_hidden() || sherman_epoch() == 0)
		return;
	/* What the catalog now says is seen behind this command. */
	index = index_open(oid, NoLock);
	if (sherman_metapage_read(index, &meta) && sherman_trees_find(sherman_tree_key(&meta), &entry))
		(void) sherman_metapage_adopt(index, meta.tree, entry.nonce, sherman_shared->local.nonce);
	index_close(index, NoLock);
}

/*
 * Makes the tree of an index that has none yet (unlogged, after a crash). No buffer is locked meanwhile; if two
 * sessions do this, the second uses the first one's tree.
 */
static ShermanIndex *
make_lazy_tree(Relation relation, ShermanIndex *index)
{
	ShermanMetaPage meta = index->meta;
	TreeFormat	format = *sherman_keys_format(index->keys);
	TreeRecord	record;

	format.fill_percent = (uint8) sherman_fillfactor(relation);
	format.postings = sherman_deduplicates(relation, &format);
	sherman_tree_new(relation, &format, &record);
	meta.tree = record.tree;
	meta.root = record.root;
	meta.nonce_current = record.nonce;
	sherman_metapage_set_format(&meta, &format);
	sherman_keys_note(index->keys, &meta);
	if (!sherman_metapage_install_tree(relation, &meta))
	{
		if (tree_drop(sherman_client(), record.tree, tree_home(record.root)) == TREE_OK)
			sherman_trees_remove(record.tree);
	}
	sherman_index_forget(RelationGetRelid(relation));
	return sherman_index(relation);
}

/*
 * What to do with a change of an index that is not OK: raises, or makes sure that the index is flagged as
 * broken, durably, so that the change may be skipped.
 */
static void
before_skip(Relation index, ShermanIndex *opened)
{
	bool		constraint = index->rd_index->indisunique || index->rd_index->indisexclusion;

	switch (opened->state)
	{
		case SHERMAN_BROKEN:
			if (constraint)
				break;
			/* Of a thousand rows one takes the page. */
			if (!opened->break_durable)
				sherman_metapage_break(index, opened->reason);
			opened->break_durable = true;
			return;
		case SHERMAN_UNREACHABLE:
			/* That is not that a memory node is away. */
			if (sherman_promotion_waits())
				break;
			if (constraint || !index->rd_index->indisvalid ||
				sherman_on_unavailable != SHERMAN_UNAVAILABLE_BREAK)
				break;
			sherman_metapage_break(index, SHERMAN_REASON_UNAVAILABLE);
			return;
		default:
			break;
	}
	sherman_report_state(ERROR, index, opened->state, opened->reason);
}

/*
 * Opens it for a change, which waits for a synchronous standby behind a promotion, as its commit would.
 */
static ShermanIndex *
open_to_change(Relation index)
{
	ShermanIndex *opened = sherman_index(index);

	while (unlikely(opened->state == SHERMAN_UNREACHABLE && sherman_promotion_waits()) && sherman_wait_followed())
		opened = sherman_index(index);
	return opened;
}

/*
 * What an insert's statement brings with it is of this relation, and not of an earlier one.
 */
static ShermanIndex *
begin_insert(Relation relation, ShermanIndex *index)
{
	index->heap = NULL;
	index->churn = false;
	index->extremes[0].read_at = index->extremes[1].read_at = 0;
	index->relation = relation;
	if (unlikely(!index->splits_told))
		sherman_predicate_changes(index);
	return index;
}

ShermanIndex *
sherman_index_for_insert(Relation index)
{
	ShermanIndex *opened = open_to_change(index);

	if (likely(opened->state == SHERMAN_OK && opened->tree != NULL &&
			   opened->mutated_epoch == sherman_epoch()))
		return begin_insert(index, opened);
	if (opened->state == SHERMAN_OK && opened->tree == NULL)
		opened = make_lazy_tree(index, opened);
	if (opened->state != SHERMAN_OK)
	{
		before_skip(index, opened);
		return NULL;
	}
	if (!mark_mutated(index, opened))
		return sherman_index_for_insert(index);
	return begin_insert(index, opened);
}

bool
sherman_index_is_mutated(const ShermanIndex *index)
{
	ShermanTreeEntry entry;

	if (index->mutated_epoch == sherman_epoch())
		return true;
	return sherman_trees_find(sherman_tree_key(&index->meta), &entry) && entry.mutated_epoch == sherman_epoch();
}

ShermanIndex *
sherman_index_for_vacuum(Relation index)
{
	ShermanIndex *opened = open_to_change(index);

	if (opened->state == SHERMAN_OK)
	{
		if (opened->tree != NULL && opened->mutated_epoch != sherman_epoch() && !mark_mutated(index, opened))
			return sherman_index_for_vacuum(index);
		return opened;
	}
	/*
	 * Where a table must be frozen in single-user mode or without us, VACUUM goes on, at the price of the
	 * index, which such a run costs anyway.  Removals from a broken constraint's index may be skipped too.
	 */
	if (opened->state == SHERMAN_HIDDEN && !IsBinaryUpgrade)
		sherman_metapage_break(index, SHERMAN_REASON_UNAVAILABLE);
	else if (opened->state == SHERMAN_BROKEN)
		sherman_metapage_break(index, opened->reason);
	else
		before_skip(index, opened);
	return NULL;
}

void
sherman_tree_new(Relation index, const TreeFormat *format, TreeRecord *record)
{
	TreeClient *client = sherman_client();
	ShermanTreeEntry entry = {0};
	TreeStatus	status;

	memset(record, 0, sizeof(*record));
	record->cluster[0] = sherman_shared->local.cluster[0];
	record->cluster[1] = sherman_shared->local.cluster[1];
	record->database = MyDatabaseId;
	record->index = RelationGetRelid(index);
	record->creator = U64FromFullTransactionId(GetCurrentFullTransactionId());
	record->nonce = sherman_shared->local.nonce;
	record->mutated_epoch = sherman_epoch();
	record->format = *format;
	if (sherman_replicas_wanted(index))
		record->flags = TREE_RECORD_REPLICATED;
	sherman_hint_collector();
	status = tree_create(client, record);
	if (status != TREE_OK)
		sherman_report_failure(status, index);
	entry.tree = record->tree;
	entry.home = tree_home(record->root);
	memcpy(entry.members, record->members, sizeof(entry.members));
	entry.database = MyDatabaseId;
	entry.flags = record->flags;
	entry.mutated_epoch = record->mutated_epoch;
	entry.nonce = record->nonce;
	if (!sherman_trees_put(&entry) || !sherman_trees_note_replica(record))
		sherman_report(ERROR, TREE_MEMORY_FULL, "the table of trees is full", index);
}

static void
make_wal_position(XLogRecPtr lsn, TreeWalPosition *wal)
{
	wal->epoch = sherman_epoch();
	wal->lsn = (lsn + WAL_SLACK - 1) / WAL_SLACK * WAL_SLACK;
}

void
sherman_wal_position_now(TreeWalPosition *wal)
{
	make_wal_position(GetXLogInsertRecPtr(), wal);
}

void
sherman_wal_position(Relation index, TreeWalPosition *wal)
{
	/*
	 * In validation of a concurrent build the row is another backend's, perhaps behind all that we have
	 * written.
	 */
	if (index->rd_index->indisvalid && XactLastRecEnd != InvalidXLogRecPtr)
		make_wal_position(XactLastRecEnd, wal);
	else
		sherman_wal_position_now(wal);
}
