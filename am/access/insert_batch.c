/*
 * insert_batch.c
 *		Entries of one statement that wait in this process, to go to their tree together.
 *
 * A statement that adds many rows would wait for one round trip after the other.  So the entries of its second and
 * further rows are kept here, and tree_insert_many() works on many leaves at once.  They are in the tree before anybody
 * may need them (I-P2): before this process reads the tree, before the statement, its subtransaction and its
 * transaction end, before PREPARE, before a utility command and a parallel plan begin, and when there is no memory left
 * for more.  doc/internals/insert-batches.md lists what may need them, and why nothing else does.
 *
 * An error while they are added is an error of the statement.  They stay here then: until the subtransaction that has
 * added their rows aborts, which drops them.  To add one twice is to add it once (I-P3).
 *
 * A batch belongs to a subtransaction and to a statement, which is known by how deep it is nested.
 */
#include "am/base/sherman.h"

#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/reltrigger.h"

#include "am/access/access.h"
#include "am/access/insert_batch.h"
#include "am/access/insert_entry.h"
#include "am/index/announced.h"
#include "am/keys/key_layout.h"
#include "am/nodes/nodes.h"

/* Keys that a batch has room for at first; it doubles. */
#define ROOM_FIRST 32

/* Images lie in blocks of so many bytes, or in one of their own. */
#define IMAGE_BLOCK 8192

/* So many keys of a process are announced at most: others are to have room, too. */
#define ANNOUNCED_MOST 8192

/* So many batches that are not in use keep their first memory, 8 kB each. */
#define SET_ASIDE_MOST 8

static struct
{
	bool		told;			/* the callbacks at the ends of statements and transactions are registered */
	dlist_head	used;
	dlist_head	unused;
	int			kept;			/* of the unused that have memory */
	uint64		serial;			/* of the batch that was put to use last */
	Size		bytes;			/* of all keys that wait, with their images */
	uint32		waiting;		/* of all keys that wait: the number */
	bool		adding;			/* keys are being added: what that reads does not wait for them */
	bool		ending;			/* the transaction ends: callbacks of others may add rows behind ours */
	int			depth;			/* of nested statements and commands, 0 = none is executed */
	ShermanExecution execution;	/* of the innermost one */
	int			speculating;	/* of all, so many insert rows that they may take back at once */
	uint32		announced;		/* keys that wait and are announced */
	bool		room;			/* there was room for the last one to be announced */
	Oid			taken_back_of;	/* a row that the statement has taken back: its table, InvalidOid = none */
	ItemPointerData taken_back;
} batches = {.used = DLIST_STATIC_INIT(batches.used),.unused = DLIST_STATIC_INIT(batches.unused),.room = true};

static void add_before_read(Relation index, bool sees_announced);

/* ---- memory ---- */

static void
count_waiting(const InsertBatch *batch, int sign)
{
	batches.bytes += sign * (batch->count * sizeof(TreeKey) + batch->image_bytes);
	batches.waiting += sign * batch->count;
	sherman_add_before_reads = batches.waiting > 0 ? add_before_read : NULL;
}

/*
 * Nothing waits in the batch any more; it has its memory still.
 */
static void
empty(InsertBatch *batch)
{
	if (batch->count == 0)
		return;
	count_waiting(batch, -1);
	if (batch->places != NULL)
	{
		announced_withdraw(batch->places, batch->count);
		batches.announced -= batch->count;
	}
	batch->count = 0;
	if (batch->image_bytes == 0)
		return;
	MemoryContextReset(batch->images);
	batch->image_bytes = 0;
	batch->image_left = 0;
}

/*
 * The batch is not in use any more.  What waits in it is dropped.  Raises nothing.
 */
static void
release(InsertBatch *batch)
{
	empty(batch);
	dlist_delete(&batch->node);
	dlist_push_head(&batches.unused, &batch->node);
	batch->serial = 0;
	batch->keys = NULL;
	batch->places = NULL;
	batch->room = 0;
	batch->images = NULL;
	if (batches.kept < SET_ASIDE_MOST)
	{
		/* Deletes the images' with it. */
		MemoryContextReset(batch->context);
		batches.kept++;
		return;
	}
	MemoryContextDelete(batch->context);
	batch->context = NULL;
}

/*
 * A batch that is not in use yet, with memory.
 */
static InsertBatch *
find_unused(void)
{
	InsertBatch *batch;

	if (dlist_is_empty(&batches.unused))
	{
		batch = MemoryContextAllocZero(TopMemoryContext, sizeof(InsertBatch));
		dlist_push_head(&batches.unused, &batch->node);
	}
	/* Those with memory come first. */
	batch = dlist_head_element(InsertBatch, node, &batches.unused);
	if (batch->context != NULL)
		batches.kept--;
	else
		batch->context = AllocSetContextCreate(TopMemoryContext, "sherman insert batch", ALLOCSET_DEFAULT_SIZES);
	return batch;
}

InsertBatch *
insert_batch_take(Relation index, Relation heap, const ShermanIndex *opened, InsertKind kind)
{
	SubTransactionId subtransaction = GetCurrentSubTransactionId();
	InsertBatch *batch;
	dlist_iter	iterator;

	dlist_foreach(iterator, &batches.used)
	{
		batch = dlist_container(InsertBatch, node, iterator.cur);
		if (batch->index == RelationGetRelid(index) && batch->tree == opened->meta.tree && batch->kind == kind &&
			batch->subtransaction == subtransaction && batch->depth == batches.depth)
			return batch;
	}
	batch = find_unused();
	batch->index = RelationGetRelid(index);
	batch->heap = RelationGetRelid(heap);
	batch->tree = opened->meta.tree;
	batch->subtransaction = subtransaction;
	batch->depth = batches.depth;
	GetUserIdAndSecContext(&batch->user, &batch->security);
	batch->kind = kind;
	batch->serial = ++batches.serial;
	dlist_delete(&batch->node);
	dlist_push_tail(&batches.used, &batch->node);
	return batch;
}

static void *
enlarge(InsertBatch *batch, void *memory, Size bytes)
{
	return memory == NULL ? MemoryContextAlloc(batch->context, bytes) : repalloc_huge(memory, bytes);
}

TreeKey *
insert_batch_place(InsertBatch *batch)
{
	if (unlikely(batch->count == batch->room))
	{
		uint32		room = batch->room == 0 ? ROOM_FIRST : batch->room * 2;

		batch->keys = enlarge(batch, batch->keys, room * sizeof(TreeKey));
		if (insert_kind_is_announced(batch->kind))
			batch->places = enlarge(batch, batch->places, room * sizeof(uint32));
		batch->room = room;
	}
	return &batch->keys[batch->count];
}

/*
 * Copies a key's image to where it stays.
 */
static void
keep_image(InsertBatch *batch, TreeKey *key)
{
	if (batch->image_left < key->image_bytes)
	{
		Size		bytes = Max(IMAGE_BLOCK, key->image_bytes);

		if (batch->images == NULL)
			batch->images = AllocSetContextCreate(batch->context, "sherman images", ALLOCSET_DEFAULT_SIZES);
		batch->image_next = MemoryContextAlloc(batch->images, bytes);
		batch->image_left = bytes;
	}
	memcpy(batch->image_next, key->image, key->image_bytes);
	key->image = (const uint8 *) batch->image_next;
	/* The next one is aligned as this one was. */
	batch->image_next += Min(MAXALIGN(key->image_bytes), batch->image_left);
	batch->image_left -= Min(MAXALIGN(key->image_bytes), batch->image_left);
	batch->image_bytes += key->image_bytes;
	batches.bytes += key->image_bytes;
}

/* ---- adding ---- */

/*
 * Adds what waits in a batch to the tree of an index that is open.
 */
static void
add_keys(const InsertBatch *batch, Relation index, Relation heap)
{
	if (batch->kind == INSERT_UNIQUE)
		insert_unique_keys(index, heap, batch->tree, batch->keys, batch->count);
	else
		insert_keys(index, heap, batch->tree, batch->keys, batch->count,
					batch->kind == INSERT_CHURN || batch->kind == INSERT_ANNOUNCED_CHURN);
}

/*
 * Adds what waits in a batch, as the user that its statement runs as: a function inside may be another one's.  On an error all of it waits
 * still.
 */
static void
add_waiting(InsertBatch *batch)
{
	const bool	adding = batches.adding;
	Relation	heap;
	Relation	index;
	Oid			user;
	int			security;

	if (batch->count == 0)
		return;
	/* A session that adds rows to a table has it locked until the transaction ends. */
	heap = table_open(batch->heap, NoLock);
	index = index_open(batch->index, RowExclusiveLock);
	batches.adding = true;
	GetUserIdAndSecContext(&user, &security);
	PG_TRY();
	{
		SetUserIdAndSecContext(batch->user, batch->security);
		add_keys(batch, index, heap);
	}
	PG_FINALLY();
	{
		batches.adding = adding;
		SetUserIdAndSecContext(user, security);
	}
	PG_END_TRY();
	empty(batch);
	index_close(index, RowExclusiveLock);
	table_close(heap, NoLock);
}

/*
 * Before the tree of an index is read.
 */
static void
add_before_read(Relation index, bool sees_announced)
{
	dlist_iter	iterator;

	if (batches.adding)
		return;
	dlist_foreach(iterator, &batches.used)
	{
		InsertBatch *batch = dlist_container(InsertBatch, node, iterator.cur);

		if (batch->index == RelationGetRelid(index) && !(sees_announced && insert_kind_is_announced(batch->kind)))
			add_waiting(batch);
	}
}

void
sherman_add_waiting(void)
{
	dlist_iter	iterator;

	if (likely(batches.waiting == 0) || batches.adding)
		return;
	dlist_foreach(iterator, &batches.used)
		add_waiting(dlist_container(InsertBatch, node, iterator.cur));
}

static void
count_kept(InsertBatch *batch)
{
	batch->count++;
	batches.bytes += sizeof(TreeKey);
	if (batches.waiting++ == 0)
		sherman_add_before_reads = add_before_read;
}

void
insert_batch_limit(void)
{
	if (unlikely(batches.bytes >= (Size) work_mem * 1024 || batches.announced >= ANNOUNCED_MOST || !batches.room))
		sherman_add_waiting();
	batches.room = true;
}

void
insert_batch_keep(InsertBatch *batch)
{
	TreeKey    *key = &batch->keys[batch->count];

	if (key->image_bytes > 0)
		keep_image(batch, key);
	count_kept(batch);
	insert_batch_limit();
}

bool
insert_batch_announce(InsertBatch *batch)
{
	TreeKey    *key = &batch->keys[batch->count];
	TransactionId writer = GetCurrentTransactionId();
	uint32		place;

	if (key->image_bytes > 0)
		keep_image(batch, key);
	place = announced_add(batch->tree, key, writer);
	batches.room = place != ANNOUNCED_NOWHERE;
	if (!batches.room)
		return false;
	batch->places[batch->count] = place;
	batches.announced++;
	count_kept(batch);
	return true;
}

/*
 * Whether the batch's last key is of this row.
 */
static bool
ends_with(const InsertBatch *batch, Relation heap, ItemPointer tid)
{
	const TreeKey *last;

	if (batch->heap != RelationGetRelid(heap) || batch->depth != batches.depth || batch->count == 0)
		return false;
	last = &batch->keys[batch->count - 1];
	return last->block == ItemPointerGetBlockNumber(tid) && last->offset == ItemPointerGetOffsetNumber(tid);
}

/*
 * The batch's last key is of a row that is dead: it does not wait any more.  Its image goes with the others.
 */
static void
drop_last(InsertBatch *batch)
{
	batch->count--;
	batches.bytes -= sizeof(TreeKey);
	batches.waiting--;
	if (batch->places == NULL)
		return;
	announced_withdraw(&batch->places[batch->count], 1);
	batches.announced--;
}

bool
insert_batch_speculates(void)
{
	return batches.execution.statement == SHERMAN_STATEMENT_SPECULATES;
}

void
insert_batch_take_back(Relation heap, ItemPointer tid)
{
	dlist_iter	iterator;

	batches.taken_back_of = RelationGetRelid(heap);
	batches.taken_back = *tid;
	dlist_foreach(iterator, &batches.used)
	{
		InsertBatch *batch = dlist_container(InsertBatch, node, iterator.cur);

		if (ends_with(batch, heap, tid))
			drop_last(batch);
	}
}

bool
insert_batch_was_taken_back(Relation heap, ItemPointer tid)
{
	return unlikely(batches.taken_back_of == RelationGetRelid(heap)) && ItemPointerEquals(&batches.taken_back, tid);
}

/* ---- which entries may wait ---- */

/*
 * Whether a table has triggers behind the rows that are added to it, in which somebody might see rows whose keys are not unique; those of
 * foreign keys look at the other table.
 */
static bool
has_triggers_behind(Relation heap)
{
	const TriggerDesc *triggers = heap->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (TRIGGER_FOR_AFTER(trigger->tgtype) && TRIGGER_FOR_INSERT(trigger->tgtype) &&
			RI_FKey_trigger_type(trigger->tgfoid) != RI_TRIGGER_FK)
			return true;
	}
	return false;
}

/*
 * Whether COPY runs such triggers behind its rows: those of the table, or of the partitioned table that COPY names, whose statement
 * triggers partitions have not.  COPY has that one locked, others above it are not waited for.
 */
static bool
has_triggers_behind_copy(Relation heap)
{
	bool		has = has_triggers_behind(heap);
	ListCell   *cell;

	if (has || !heap->rd_rel->relispartition)
		return has;
	foreach(cell, get_partition_ancestors(RelationGetRelid(heap)))
	{
		Relation	above;

		if (!ConditionalLockRelationOid(lfirst_oid(cell), AccessShareLock))
			return true;
		above = table_open(lfirst_oid(cell), NoLock);
		has = has || has_triggers_behind(above);
		table_close(above, AccessShareLock);
	}
	return has;
}

/*
 * Whether the statement tells of keys that are not unique when it has added its rows as well as with each.  Not while the index is healed:
 * a check may wait for the healer, which may wait for the entry of a row that is there.
 */
static bool
unique_may_wait(Relation heap, const ShermanIndex *opened)
{
	if (sherman_is_healing(&opened->meta))
		return false;
	return batches.execution.statement == SHERMAN_STATEMENT_INSERTS ||
		(batches.execution.statement == SHERMAN_STATEMENT_COPIES && !has_triggers_behind_copy(heap));
}

/*
 * Whether of the indexes that rows are added to no other than a unique one of ours may be in the way of a row.
 */
static bool
conflicts_are_ours(const ResultRelInfo *target)
{
	for (int i = 0; i < target->ri_NumIndices; i++)
	{
		const Relation index = target->ri_IndexRelationDescs[i];

		if (index->rd_index->indisexclusion ||
			(index->rd_index->indisunique && index->rd_index->indimmediate && !sherman_owns(index)))
			return false;
	}
	return true;
}

/*
 * Whether all among these that insert into the table hear of each row that they take back.
 */
static bool
are_told(const List *targets, Oid heap)
{
	ListCell   *cell;

	foreach(cell, targets)
	{
		const ResultRelInfo *target = lfirst(cell);

		if (RelationGetRelid(target->ri_RelationDesc) == heap && !conflicts_are_ours(target))
			return false;
	}
	return true;
}

/*
 * Whether entries of rows of this table, which the innermost statement may take back, may wait: they are to be dropped with them, before
 * anybody else may take their TIDs.  Core takes a row back if one of its unique indexes refuses its key, or an exclusion constraint: of
 * ours we know.  The indexes are those that the executor has opened, whatever has become of them.
 */
static bool
may_wait_on_condition(Relation heap)
{
	const EState *estate = batches.execution.estate;

	return insert_batch_speculates() && batches.speculating == 1 &&
		are_told(estate->es_opened_result_relations, RelationGetRelid(heap)) &&
		are_told(estate->es_tuple_routing_result_relations, RelationGetRelid(heap));
}

/*
 * Whether a check may be of use that comes before its entry: there are round trips to be spared, as without them a check, an announcement and
 * an entry of each row cost more than an entry that is added if it is alone; the key can be announced; and no leaf is unverified, whose
 * healing may wait for the entry of a row that is there.
 */
static bool
announced_may_wait(const ShermanIndex *opened)
{
	return sherman_round_trip_us() > 0 && opened->keys->exact && !sherman_is_healing(&opened->meta);
}

bool
insert_batch_allowed(Relation index, Relation heap, const ShermanIndex *opened, InsertKind kind)
{
	return batches.told && !batches.ending && (batches.speculating == 0 || may_wait_on_condition(heap)) &&
		!index->rd_index->indisexclusion && index->rd_index->indisvalid && !IsolationIsSerializable() &&
		sherman_keys_compare_alone(opened->keys) && (kind != INSERT_UNIQUE || unique_may_wait(heap, opened)) &&
		(!insert_kind_is_announced(kind) || announced_may_wait(opened));
}

bool
insert_batch_in_statement(void)
{
	return batches.depth > 0;
}

void
insert_batch_forget(Relation index)
{
	SubTransactionId subtransaction = GetCurrentSubTransactionId();
	dlist_mutable_iter iterator;

	dlist_foreach_modify(iterator, &batches.used)
	{
		InsertBatch *batch = dlist_container(InsertBatch, node, iterator.cur);

		if (batch->index != RelationGetRelid(index))
			continue;
		/* If the subtransaction aborts the tree of before is the index's again, and the rows are there. */
		if (batch->subtransaction != subtransaction)
			elog(ERROR, "index \"%s\" is built anew while entries wait", RelationGetRelationName(index));
		release(batch);
	}
}

/* ---- ends of statements and transactions ---- */

void
sherman_statement_begin(ShermanExecution *around, ShermanExecution execution)
{
	*around = batches.execution;
	batches.depth++;
	batches.execution = execution;
	batches.speculating += insert_batch_speculates();
}

void
sherman_statement_leave(const ShermanExecution *around)
{
	batches.depth--;
	batches.speculating -= insert_batch_speculates();
	batches.execution = *around;
}

void
sherman_statement_rows_added(void)
{
	dlist_iter	iterator;

	if (batches.execution.statement != SHERMAN_STATEMENT_INSERTS)
		return;
	dlist_foreach(iterator, &batches.used)
	{
		InsertBatch *batch = dlist_container(InsertBatch, node, iterator.cur);

		if (batch->kind == INSERT_UNIQUE && batch->depth >= batches.depth)
			add_waiting(batch);
	}
}

/*
 * Whether a statement with these relations may change the rows of a table: a partitioned table's are in any of its partitions.
 */
static bool
may_change(const List *range_table, Oid heap)
{
	ListCell   *cell;

	foreach(cell, range_table)
	{
		const RangeTblEntry *entry = lfirst_node(RangeTblEntry, cell);

		if (entry->rtekind == RTE_RELATION && (entry->relid == heap || entry->relkind == RELKIND_PARTITIONED_TABLE))
			return true;
	}
	return false;
}

void
sherman_add_before_changes(const List *range_table)
{
	dlist_iter	iterator;

	if (likely(batches.waiting == 0) || batches.adding)
		return;
	dlist_foreach(iterator, &batches.used)
	{
		InsertBatch *batch = dlist_container(InsertBatch, node, iterator.cur);

		if (batch->kind == INSERT_UNIQUE && may_change(range_table, batch->heap))
			add_waiting(batch);
	}
}

void
sherman_statement_end(void)
{
	dlist_mutable_iter iterator;

	dlist_foreach_modify(iterator, &batches.used)
	{
		InsertBatch *batch = dlist_container(InsertBatch, node, iterator.cur);

		if (batch->depth <= batches.depth)
			continue;
		add_waiting(batch);
		release(batch);
	}
}

/*
 * Adds what waits in batches of this subtransaction and those below it, which is about to end; they are not in use any more.
 */
static void
add_of_subtransaction(SubTransactionId subtransaction)
{
	dlist_mutable_iter iterator;

	dlist_foreach_modify(iterator, &batches.used)
	{
		InsertBatch *batch = dlist_container(InsertBatch, node, iterator.cur);

		if (batch->subtransaction < subtransaction)
			continue;
		add_waiting(batch);
		release(batch);
	}
}

/*
 * Drops what waits in batches of this subtransaction and those below it, which are the later ones.
 */
static void
drop_waiting(SubTransactionId subtransaction)
{
	dlist_mutable_iter iterator;

	dlist_foreach_modify(iterator, &batches.used)
	{
		InsertBatch *batch = dlist_container(InsertBatch, node, iterator.cur);

		if (batch->subtransaction >= subtransaction)
			release(batch);
	}
}

static void
transaction_changed(XactEvent event, void *argument)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			add_of_subtransaction(InvalidSubTransactionId);
			batches.ending = true;
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
		case XACT_EVENT_ABORT:
			Assert(event == XACT_EVENT_ABORT || batches.waiting == 0);
			drop_waiting(InvalidSubTransactionId);
			batches.ending = false;
			break;
		default:
			/* Parallel workers add no rows. */
			break;
	}
}

static void
subtransaction_changed(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *argument)
{
	if (event == SUBXACT_EVENT_PRE_COMMIT_SUB)
		add_of_subtransaction(mine);
	else if (event == SUBXACT_EVENT_ABORT_SUB)
		drop_waiting(mine);
}

void
sherman_batches_install(void)
{
	batches.told = true;
	RegisterXactCallback(transaction_changed, NULL);
	RegisterSubXactCallback(subtransaction_changed, NULL);
}
