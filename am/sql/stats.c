/*
 * stats.c
 *		Looking inside from SQL: the functions behind the views sherman_stat_indexes, sherman_stat_memory_nodes and
 *		sherman_stat_cache, sizes, resets of counters, and sherman_collect().
 */
#include "am/base/sherman.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "am/base/compat.h"
#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/nodes/nodes.h"

#define SHERMAN_VERSION "1.1"

/* Columns of the functions' results, as sherman--1.0.sql and sherman--1.0--1.1.sql declare them. */
#define MEMORY_NODE_COLUMNS 11
#define INDEX_COLUMNS 13
#define CACHE_COLUMNS 6
#define COUNTER_COLUMNS ((int) (sizeof(TreeCounters) / sizeof(uint64)))
/* Newer counters come behind these: a database with an older script has the first ones. */
#define COUNTER_COLUMNS_1_0 31

PG_FUNCTION_INFO_V1(sherman_version);
PG_FUNCTION_INFO_V1(sherman_memory_nodes);
PG_FUNCTION_INFO_V1(sherman_index_info);
PG_FUNCTION_INFO_V1(sherman_index_counters);
PG_FUNCTION_INFO_V1(sherman_stat_reset_index);
PG_FUNCTION_INFO_V1(sherman_stat_get_reset_time);
PG_FUNCTION_INFO_V1(sherman_stat_get_round_trip);
PG_FUNCTION_INFO_V1(sherman_cache);
PG_FUNCTION_INFO_V1(sherman_relation_size);
PG_FUNCTION_INFO_V1(sherman_collect);

Datum
sherman_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(SHERMAN_VERSION));
}

/*
 * The row that a function's SQL declares, which has from `least` to `most` columns.
 */
static TupleDesc
result_type(FunctionCallInfo fcinfo, int least, int most)
{
	TupleDesc	descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE || descriptor->natts < least ||
		descriptor->natts > most)
		elog(ERROR, "the SQL declaration of a function of sherman does not fit its library");
	return BlessTupleDesc(descriptor);
}

static Datum
hex_datum(uint64 high, uint64 low, bool two)
{
	char		text[33];

	if (two)
		snprintf(text, sizeof(text), "%016llx%016llx", (unsigned long long) high, (unsigned long long) low);
	else
		snprintf(text, sizeof(text), "%016llx", (unsigned long long) high);
	return CStringGetTextDatum(text);
}

/* ---- memory nodes ---- */

static const char *
phase_name(ShermanPhase phase)
{
	static const char *const names[] = {
		[SHERMAN_PHASE_NONE] = "unreachable",
		[SHERMAN_PHASE_ATTACHING] = "attaching",
		[SHERMAN_PHASE_ATTACHED] = "attached",
		[SHERMAN_PHASE_AWAY] = "unreachable",
	};

	return RecoveryInProgress() && !sherman_is_reading_standby() ? "hidden" : names[phase];
}

static void
set_text(Datum *values, bool *nulls, int column, const char *text)
{
	nulls[column] = text == NULL || text[0] == '\0';
	if (!nulls[column])
		values[column] = CStringGetTextDatum(text);
}

/*
 * Fills in what only the memory node knows.  False: it does not answer.
 */
static bool
ask_node(int position, Datum *values, bool *nulls)
{
	TreeClient *client = sherman_client_if_ready();
	const FabricCapabilities *capabilities;
	TreeNodeStatus node;

	if (client == NULL || tree_node_status(client, position, &node) != TREE_OK)
		return false;
	values[5] = Int64GetDatum((int64) node.bytes_total);
	values[6] = Int64GetDatum((int64) node.bytes_used);
	values[7] = Int64GetDatum((int64) node.bytes_quarantined);
	values[8] = Int64GetDatum((int64) node.generation);
	memset(nulls + 5, false, 4);
	capabilities = tree_client_capabilities(client, position);
	if (capabilities != NULL)
		set_text(values, nulls, 10, sherman_capabilities_text(capabilities));
	return true;
}

/*
 * Why a memory node is not attached, or what else is to be known of it; NULL: nothing.  `listed`: as in put_node().
 */
static const char *
why_not_attached(const ShermanListedNode *listed, int position, ShermanPhase phase)
{
	if (RecoveryInProgress() && !sherman_is_reading_standby())
		return "this server is in recovery";
	if (phase == SHERMAN_PHASE_ATTACHED)
		return sherman_shared->embedded && sherman_list_awaits_restart(sherman_memory_node_list) ?
			"\"sherman.memory_nodes\" was changed, which takes a restart of the server" : NULL;
	if (sherman_promotion_waits())
		return sherman_unfollowed_text;
	if (listed == NULL)
		return sherman_shared->node[position].address[0] != '\0' ? "it is not in \"sherman.memory_nodes\"" :
			"it was taken over, and none of \"sherman.memory_nodes\" is known to lead to it yet";
	if (listed->failure[0] != '\0')
		return listed->failure;
	return phase == SHERMAN_PHASE_ATTACHING ? "the server has started and has not reached it yet" :
		"it was lost, and is about to be looked for";
}

/*
 * One row: an entry of the list (NULL: it is not there), and the position that it leads to (-1: none so far).
 */
static void
put_node(ReturnSetInfo *result, const ShermanListedNode *listed, int position)
{
	Datum		values[MEMORY_NODE_COLUMNS] = {0};
	bool		nulls[MEMORY_NODE_COLUMNS];
	ShermanPhase phase = position >= 0 ? sherman_node_phase(position) : sherman_phase();
	FabricStatus status;
	ShermanNode node = {0};
	char	   *address;

	memset(nulls, true, sizeof(nulls));
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	if (position >= 0)
		node = sherman_shared->node[position];
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	/* Of an entry that was never reached nothing else is known. */
	if (position < 0 && phase == SHERMAN_PHASE_ATTACHED)
		phase = SHERMAN_PHASE_AWAY;
	address = pstrdup(listed != NULL ? listed->address : node.address);
	set_text(values, nulls, 1, address);
	set_text(values, nulls, 3, phase == SHERMAN_PHASE_AWAY && pg_atomic_read_u32(&node.gone) != 0 ? "gone" :
			 phase_name(phase));
	set_text(values, nulls, 4, why_not_attached(listed, position, phase));
	*strchrnul(address, ':') = '\0';
	set_text(values, nulls, 2, address);
	if (position >= 0)
	{
		values[0] = Int32GetDatum(position);
		values[9] = hex_datum(node.memory[0], node.memory[1], true);
		nulls[0] = nulls[9] = false;
		if (phase == SHERMAN_PHASE_ATTACHED && !ask_node(position, values, nulls) &&
			sherman_connection_failure(position, &status)[0] != '\0')
		{
			/* What the launcher has attached does not let this session in: with a key that was changed, for one. */
			set_text(values, nulls, 3, phase_name(SHERMAN_PHASE_AWAY));
			set_text(values, nulls, 4, psprintf("it does not let this session in: %s", sherman_connection_failure(position, &status)));
		}
	}
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * One row for each memory node of the list, and for each that is not there any more; none without preload.
 */
Datum
sherman_memory_nodes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	ShermanListedNode listed[TREE_MAX_NODES];
	uint32		seen = 0;
	int			count;

	InitMaterializedSRF(fcinfo, 0);
	if (sherman_shared == NULL)
		return (Datum) 0;
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	count = sherman_shared->listed_count;
	memcpy(listed, sherman_shared->listed, sizeof(listed));
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	for (int i = 0; i < count; i++)
	{
		put_node(result, &listed[i], listed[i].position);
		if (listed[i].position >= 0)
			seen |= 1u << listed[i].position;
	}
	for (int i = 0; i < TREE_MAX_NODES; i++)
	{
		if ((seen & 1u << i) == 0 && sherman_shared->node[i].memory[0] != 0)
			put_node(result, NULL, i);
	}
	(void) sherman_connection_trouble();
	return (Datum) 0;
}

/*
 * How long a round trip to the memory node at this position took when the server attached to it, the least of some.  NULL:
 * there is none, it is not attached, or its memory is mapped.
 */
Datum
sherman_stat_get_round_trip(PG_FUNCTION_ARGS)
{
	int			position = PG_GETARG_INT32(0);
	Interval   *round_trip;

	if (sherman_shared == NULL || position < 0 || position >= TREE_MAX_NODES ||
		sherman_node_phase(position) != SHERMAN_PHASE_ATTACHED)
		PG_RETURN_NULL();
	round_trip = palloc0(sizeof(Interval));
	round_trip->time = pg_atomic_read_u32(&sherman_shared->node[position].round_trip_us);
	if (round_trip->time == 0)
		PG_RETURN_NULL();
	PG_RETURN_INTERVAL_P(round_trip);
}

/* ---- indexes ---- */

/*
 * Opens an index of ours by its oid; NULL if it is gone, an error if it is something else.
 */
static Relation
open_ours(Oid oid)
{
	Relation	index = try_relation_open(oid, AccessShareLock);

	if (index == NULL)
		return NULL;
	if (!sherman_is_ours(oid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a sherman index", RelationGetRelationName(index))));
	return index;
}

/*
 * Whether the memory that an index lies on is still the one at this position.
 */
static bool
is_member(int position, uint64 member)
{
	return sherman_shared->node[position].member == member;
}

/*
 * 0: there are none.
 */
static Datum
positions_array(Datum *positions, int count)
{
	return count == 0 ? (Datum) 0 : PointerGetDatum(construct_array(positions, count, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

/*
 * Those of a tree with a copy that are valid, its home first.
 */
static Datum
replicas_datum(const ShermanMetaPage *meta)
{
	Datum		positions[2];
	int			count = 0;
	uint32		home = tree_home(meta->root);
	uint32		replica = meta->replica - 1;

	if ((meta->replicas_valid & SHERMAN_VALID_FIRST) && home < TREE_MAX_NODES && is_member((int) home, meta->incarnations[home][0]))
		positions[count++] = Int32GetDatum((int32) home);
	if ((meta->replicas_valid & SHERMAN_VALID_SECOND) && replica < TREE_MAX_NODES &&
		is_member((int) replica, meta->incarnations[replica][0]))
		positions[count++] = Int32GetDatum((int32) replica);
	return positions_array(positions, count);
}

/*
 * The positions of the memory nodes that a tree lies on, as far as known; its home among them, unless its memory is there
 * no more.
 */
static Datum
positions_datum(const ShermanMetaPage *meta)
{
	TreeClient *client = sherman_client_if_ready();
	Datum		positions[TREE_MAX_NODES];
	int			count = 0;
	ShermanTreeEntry entry = {0};
	TreeRecord	record;

	if (sherman_trees_find(meta->tree, &entry) && client != NULL &&
		tree_record_read(client, meta->tree, tree_home(meta->root), &record) == TREE_OK)
		memcpy(entry.members, record.members, sizeof(entry.members));
	for (uint32 i = 0; i < TREE_MAX_NODES; i++)
	{
		uint64		member = i == tree_home(meta->root) ? meta->incarnations[i][0] : entry.members[i];

		if (member != 0 && is_member((int) i, member))
			positions[count++] = Int32GetDatum((int32) i);
	}
	return positions_array(positions, count);
}

/*
 * State and reason; `meta` is NULL without a valid page.
 */
static void
put_state(Datum *values, bool *nulls, const ShermanMetaPage *meta, ShermanState state, ShermanReason reason)
{
	const char *name = sherman_state_name(state);
	int			refused = state == SHERMAN_OK && meta != NULL ? sherman_refused_position(meta) : -1;

	if (refused >= 0)
		name = sherman_state_name(SHERMAN_UNREACHABLE);
	else if (state == SHERMAN_OK && meta != NULL && sherman_is_healing(meta))
		name = "healing";
	set_text(values, nulls, 1, name);
	set_text(values, nulls, 2, refused >= 0 ? sherman_away_text(refused) : sherman_state_text(meta, state, reason));
}

/*
 * State and size of one index.
 */
Datum
sherman_index_info(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor = result_type(fcinfo, INDEX_COLUMNS, INDEX_COLUMNS);
	Datum		values[INDEX_COLUMNS] = {0};
	bool		nulls[INDEX_COLUMNS];
	Relation	index = open_ours(PG_GETARG_OID(0));
	TreeStatistics size;
	ShermanMetaPage meta;
	ShermanReason reason;
	ShermanState state;
	bool		has_page;

	if (index == NULL)
		PG_RETURN_NULL();
	memset(nulls, true, sizeof(nulls));
	if (sherman_memory_size(index, &size))
	{
		values[4] = Int32GetDatum((int32) size.height);
		values[5] = Int64GetDatum((int64) size.leaves);
		values[6] = Int64GetDatum((int64) (size.leaves + size.inner_nodes));
		values[7] = Int64GetDatum((int64) size.node_bytes);
		values[8] = Int64GetDatum((int64) size.overflow_bytes);
		values[9] = Int64GetDatum((int64) size.extent_bytes);
		values[10] = Int64GetDatum((int64) size.entries);
		memset(nulls + 4, false, 7);
	}
	/* Behind the attempt to connect. */
	state = sherman_index_state(index, &reason);
	has_page = sherman_metapage_read(index, &meta);
	put_state(values, nulls, has_page ? &meta : NULL, state, reason);
	if (has_page)
	{
		values[0] = hex_datum(meta.tree, 0, false);
		nulls[0] = meta.tree == 0;
		values[3] = TimestampTzGetDatum(meta.broken_at);
		nulls[3] = (meta.flags & SHERMAN_META_BROKEN) == 0;
		nulls[11] = meta.tree == 0 || sherman_all_hidden();
		if (!nulls[11])
		{
			values[11] = meta.replica != 0 ? replicas_datum(&meta) : positions_datum(&meta);
			nulls[11] = values[11] == (Datum) 0;
			set_text(values, nulls, 12, sherman_replicas_text(index, &meta));
		}
	}
	relation_close(index, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}

/*
 * The counters of one index, over all processes since the server started, or since they were last reset.
 */
Datum
sherman_index_counters(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor = result_type(fcinfo, COUNTER_COLUMNS_1_0, COUNTER_COLUMNS);
	Datum		values[COUNTER_COLUMNS];
	bool		nulls[COUNTER_COLUMNS];
	Relation	index = open_ours(PG_GETARG_OID(0));
	TreeCounters counters;
	const uint64 *words = (const uint64 *) &counters;
	ShermanIndex *opened;

	if (index == NULL)
		PG_RETURN_NULL();
	opened = sherman_index_quietly(index, false);
	memset(&counters, 0, sizeof(counters));
	memset(nulls, opened == NULL, sizeof(nulls));
	if (opened != NULL)
		tree_counters(opened->tree, &counters);
	for (int i = 0; i < COUNTER_COLUMNS; i++)
		values[i] = Int64GetDatum((int64) words[i]);
	relation_close(index, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}

/*
 * Sets the counters of one index to zero, whatever its state is.  What other sessions have counted by themselves comes
 * later, as with the cumulative statistics of core.
 */
Datum
sherman_stat_reset_index(PG_FUNCTION_ARGS)
{
	Relation	index = open_ours(PG_GETARG_OID(0));
	ShermanMetaPage meta;
	ShermanIndex *opened;

	if (index == NULL)
		PG_RETURN_VOID();
	if (sherman_shared != NULL && sherman_metapage_read(index, &meta) && meta.tree != 0)
	{
		opened = sherman_index_quietly(index, false);
		if (opened != NULL)
			tree_count_flush(opened->tree);
		tree_counters_reset(sherman_tree_shared, meta.tree, (uint64) GetCurrentTimestamp());
	}
	relation_close(index, AccessShareLock);
	PG_RETURN_VOID();
}

/*
 * When the counters of one index were last set to zero in this run of the server; NULL: they were not.
 */
Datum
sherman_stat_get_reset_time(PG_FUNCTION_ARGS)
{
	Relation	index = open_ours(PG_GETARG_OID(0));
	ShermanMetaPage meta;
	uint64		reset = 0;

	if (index == NULL)
		PG_RETURN_NULL();
	if (sherman_shared != NULL && sherman_metapage_read(index, &meta) && meta.tree != 0)
		reset = tree_counters_reset_time(sherman_tree_shared, meta.tree);
	relation_close(index, AccessShareLock);
	if (reset == 0)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ((TimestampTz) reset);
}

static void
put_cache(ReturnSetInfo *result, const char *kind, const TreeCacheUsage *usage)
{
	Datum		values[CACHE_COLUMNS];
	bool		nulls[CACHE_COLUMNS] = {0};

	values[0] = CStringGetTextDatum(kind);
	values[1] = Int64GetDatum((int64) usage->bytes);
	values[2] = Int64GetDatum((int64) usage->used_bytes);
	values[3] = Int64GetDatum((int64) usage->nodes);
	values[4] = Int64GetDatum((int64) usage->hits);
	values[5] = Int64GetDatum((int64) usage->misses);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * What the cache of nodes has: a row for inner nodes, and one for leaves where they are kept.
 */
Datum
sherman_cache(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	TreeCacheUsage inner;
	TreeCacheUsage leaves;

	InitMaterializedSRF(fcinfo, 0);
	if (sherman_shared == NULL)
		return (Datum) 0;
	tree_cache_usage(sherman_tree_shared, &inner, &leaves);
	put_cache(result, "inner nodes", &inner);
	if (leaves.bytes > 0)
		put_cache(result, "leaves", &leaves);
	return (Datum) 0;
}

/*
 * Bytes that the index has taken from memory nodes; NULL while that is not known.
 */
Datum
sherman_relation_size(PG_FUNCTION_ARGS)
{
	Relation	index = open_ours(PG_GETARG_OID(0));
	TreeStatistics size;
	bool		is_known;

	if (index == NULL)
		PG_RETURN_NULL();
	is_known = sherman_memory_size(index, &size);
	relation_close(index, AccessShareLock);
	if (!is_known)
		PG_RETURN_NULL();
	PG_RETURN_INT64((int64) size.extent_bytes);
}

/* ---- the collector ---- */

/*
 * Has the collector look at everything now, and waits until it has.  Returns the number of trees freed
 * meanwhile.
 */
Datum
sherman_collect(PG_FUNCTION_ARGS)
{
	uint64		request;
	uint64		freed;
	bool		done;

	/* Raises if there is no memory node. */
	(void) sherman_client();
	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_EXCLUSIVE);
	request = ++sherman_shared->collect_requested;
	freed = sherman_shared->trees_freed;
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	sherman_wake_launcher();

	ConditionVariablePrepareToSleep(&sherman_shared->changed);
	for (;;)
	{
		LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
		done = sherman_shared->collect_done >= request;
		if (done)
			freed = sherman_shared->trees_freed - freed;
		LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
		if (done)
			break;
		ConditionVariableSleep(&sherman_shared->changed, sherman_wait_event(SHERMAN_WAIT_LAUNCHER));
	}
	ConditionVariableCancelSleep();
	PG_RETURN_INT64((int64) freed);
}
