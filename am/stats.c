/*
 * stats.c
 *		Looking inside from SQL: the functions behind the views sherman_memory_nodes, sherman_indexes and
 *		sherman_counters, sizes, and sherman_collect().
 */
#include "sherman.h"

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "shared.h"

#define SHERMAN_VERSION "1.0"

/* Columns of the functions' results, as sherman--1.0.sql declares them. */
#define MEMORY_NODE_COLUMNS 9
#define INDEX_COLUMNS 11
#define COUNTER_COLUMNS ((int) (sizeof(TreeCounters) / sizeof(uint64)))

PG_FUNCTION_INFO_V1(sherman_version);
PG_FUNCTION_INFO_V1(sherman_memory_nodes);
PG_FUNCTION_INFO_V1(sherman_index_info);
PG_FUNCTION_INFO_V1(sherman_index_counters);
PG_FUNCTION_INFO_V1(sherman_relation_size);
PG_FUNCTION_INFO_V1(sherman_collect);

Datum
sherman_version(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(SHERMAN_VERSION));
}

static TupleDesc
result_type(FunctionCallInfo fcinfo, int columns)
{
	TupleDesc	descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE || descriptor->natts != columns)
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
		[SHERMAN_PHASE_NONE] = "none",
		[SHERMAN_PHASE_ATTACHING] = "attaching",
		[SHERMAN_PHASE_ATTACHED] = "attached",
		[SHERMAN_PHASE_LOST] = "lost",
	};

	return names[phase];
}

/*
 * Why the memory node is not attached; NULL if there is nothing to say.
 */
static char *
phase_detail(void)
{
	char	   *detail = NULL;

	LWLockAcquire(sherman_lock(SHERMAN_LOCK_SHARED), LW_SHARED);
	if (sherman_shared->node_pid == 0 && sherman_shared->node_failure[0] != '\0')
		detail = pstrdup(sherman_shared->node_failure);
	else if (sherman_shared->launcher_failure[0] != '\0')
		detail = pstrdup(sherman_shared->launcher_failure);
	LWLockRelease(sherman_lock(SHERMAN_LOCK_SHARED));
	return detail;
}

/*
 * One row for each memory node; none without preload or if none is configured.
 */
Datum
sherman_memory_nodes(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Datum		values[MEMORY_NODE_COLUMNS] = {0};
	bool		nulls[MEMORY_NODE_COLUMNS];
	ShermanPhase phase = sherman_phase();
	TreeClient *client = sherman_client_if_ready();
	TreeNodeStatus node;
	char		address[MAXPGPATH];
	char	   *detail;

	InitMaterializedSRF(fcinfo, 0);
	if (sherman_shared == NULL || sherman_embedded_memory_mb == 0)
		return (Datum) 0;
	memset(nulls, true, sizeof(nulls));
	sherman_pool_address(address, sizeof(address));
	values[0] = CStringGetTextDatum(address);
	values[1] = CStringGetTextDatum("shm");
	values[2] = CStringGetTextDatum(RecoveryInProgress() ? "hidden" : phase_name(phase));
	nulls[0] = nulls[1] = nulls[2] = false;
	detail = phase_detail();
	if (detail != NULL)
	{
		values[8] = CStringGetTextDatum(detail);
		nulls[8] = false;
	}
	if (client != NULL && tree_node_status(client, 0, &node) == TREE_OK)
	{
		values[3] = Int64GetDatum((int64) node.bytes_total);
		values[4] = Int64GetDatum((int64) node.bytes_used);
		values[5] = Int64GetDatum((int64) node.bytes_quarantined);
		values[6] = Int64GetDatum((int64) node.generation);
		values[7] = hex_datum(node.uuid[0], node.uuid[1], true);
		memset(nulls + 3, false, 5);
	}
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	return (Datum) 0;
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
 * State and size of one index.
 */
Datum
sherman_index_info(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor = result_type(fcinfo, INDEX_COLUMNS);
	Datum		values[INDEX_COLUMNS] = {0};
	bool		nulls[INDEX_COLUMNS];
	Relation	index = open_ours(PG_GETARG_OID(0));
	TreeStatistics size;
	ShermanMetaPage meta;
	ShermanReason reason;
	ShermanState state;

	if (index == NULL)
		PG_RETURN_NULL();
	memset(nulls, true, sizeof(nulls));
	state = sherman_index_state(index, &reason);
	values[1] = CStringGetTextDatum(sherman_state_name(state));
	nulls[1] = false;
	if (reason != SHERMAN_REASON_NONE)
	{
		values[2] = CStringGetTextDatum(sherman_reason_text(reason));
		nulls[2] = false;
	}
	if (sherman_metapage_read(index, &meta))
	{
		values[0] = hex_datum(meta.tree, 0, false);
		nulls[0] = meta.tree == 0;
		values[3] = TimestampTzGetDatum(meta.broken_at);
		nulls[3] = (meta.flags & SHERMAN_META_BROKEN) == 0;
	}
	if (sherman_size(index, &size))
	{
		values[4] = Int32GetDatum((int32) size.height);
		values[5] = Int64GetDatum((int64) size.leaves);
		values[6] = Int64GetDatum((int64) (size.leaves + size.inner_nodes));
		values[7] = Int64GetDatum((int64) size.node_bytes);
		values[8] = Int64GetDatum((int64) size.outside_bytes);
		values[9] = Int64GetDatum((int64) size.extent_bytes);
		values[10] = Int64GetDatum((int64) size.entries);
		memset(nulls + 4, false, INDEX_COLUMNS - 4);
	}
	relation_close(index, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}

/*
 * The counters of one index, over all processes since the server started.
 */
Datum
sherman_index_counters(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor = result_type(fcinfo, COUNTER_COLUMNS);
	Datum		values[COUNTER_COLUMNS];
	bool		nulls[COUNTER_COLUMNS];
	Relation	index = open_ours(PG_GETARG_OID(0));
	TreeCounters counters;
	const uint64 *words = (const uint64 *) &counters;
	ShermanIndex *opened = NULL;
	ShermanReason reason;

	if (index == NULL)
		PG_RETURN_NULL();
	if (sherman_index_state(index, &reason) == SHERMAN_OK && sherman_client_if_ready() != NULL)
		opened = sherman_index(index);
	memset(&counters, 0, sizeof(counters));
	memset(nulls, opened == NULL || opened->tree == NULL, sizeof(nulls));
	if (opened != NULL && opened->tree != NULL)
		tree_counters(opened->tree, &counters);
	for (int i = 0; i < COUNTER_COLUMNS; i++)
		values[i] = Int64GetDatum((int64) words[i]);
	relation_close(index, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
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
	is_known = sherman_size(index, &size);
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
		ConditionVariableSleep(&sherman_shared->changed, PG_WAIT_EXTENSION);
	}
	ConditionVariableCancelSleep();
	PG_RETURN_INT64((int64) freed);
}
