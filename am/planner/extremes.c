/*
 * extremes.c
 *		The least and the greatest value of an index's first column, for the planner.
 *
 * Rows that were added behind what ANALYZE has seen lie beyond the histogram.  For btree core looks at the ends of
 * an index then (get_actual_variable_range()), by btree's OID.  Here the statistics themselves are handed to the
 * planner with the histogram's bounds moved out to these ends, which comes to the same, through the hook that is
 * there for statistics of an extension's own.
 *
 * An end costs a descent and a leaf.  So it is read only for a condition that reaches the histogram's last bins,
 * kept for a second, and forgotten when this process adds an entry: a plan over a network waits for two leaves at most.
 */
#include "am/base/sherman.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "parser/parsetree.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "am/base/shared.h"
#include "am/index/index.h"
#include "am/keys/key_layout.h"
#include "am/nodes/nodes.h"
#include "am/planner/planner.h"

/* How long an end counts that other processes may have moved. */
#define EXTREME_MS 1000

/* Rows looked at for one that is there; core gives up after a hundred blocks of the table. */
#define ROWS_MOST 64

static get_relation_stats_hook_type previous_stats = NULL;

/* ---- an end of an index ---- */

/*
 * Just outside of all entries whose first column is not NULL.
 */
static void
outside_bound(const ShermanKeys *keys, TreeDirection direction, TreeBound *bound)
{
	memset(bound, 0, sizeof(*bound));
	bound->key.high = key_null_flag(&keys->column[0], false);
	bound->norm_bits_valid = 1;
	bound->norm_exact = true;
	bound->side = direction == TREE_FORWARD ? -1 : 1;
}

/*
 * The first entry of a batch whose row is there, or may be, in no snapshot; -1: there is none among the first.
 */
static int
first_there(Relation heap, const TreeBatch *batch)
{
	SnapshotData snapshot;

	InitNonVacuumableSnapshot(snapshot, GlobalVisTestFor(heap));
	for (int i = 0; i < Min(batch->count, ROWS_MOST); i++)
	{
		ItemPointerData tid;
		bool		all_dead;

		ItemPointerSet(&tid, batch->entries[i].block, batch->entries[i].offset);
		if (table_index_fetch_tuple_check(heap, &tid, &snapshot, &all_dead))
			return i;
	}
	return -1;
}

/*
 * Copies the first column of a batch's entry into the end's memory.
 */
static TreeStatus
take_value(ShermanIndex *opened, TreeScan *scan, const TreeBatch *batch, int position, ShermanExtreme *extreme)
{
	const ShermanKeys *keys = opened->keys;
	Form_pg_attribute attribute = TupleDescAttr(keys->descriptor, 0);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	TreeKey		key;
	TreeStatus	status = tree_batch_key(scan, batch, position, &key);
	MemoryContext caller;

	if (status != TREE_OK)
		return status;
	sherman_keys_datums(opened->keys, &key, values, isnull);
	if (isnull[0])
		return TREE_END;
	caller = MemoryContextSwitchTo(opened->context);
	extreme->value = datumCopy(values[0], attribute->attbyval, attribute->attlen);
	extreme->found = true;
	MemoryContextSwitchTo(caller);
	return TREE_OK;
}

static TreeStatus
read_end(ShermanIndex *opened, TreeScan *scan, Relation heap, TreeDirection direction, ShermanExtreme *extreme)
{
	const TreeBatch *batch;
	TreeBound	start;
	TreeStatus	status;
	int			position;

	outside_bound(opened->keys, direction, &start);
	status = tree_scan_seek(scan, direction, &start, NULL);
	if (status == TREE_OK)
		status = tree_scan_next(scan, &batch);
	if (status != TREE_OK)
		return status;
	position = first_there(heap, batch);
	return position < 0 ? TREE_END : take_value(opened, scan, batch, position, extreme);
}

/*
 * The least or the greatest value of the index's first column.  False: there is none, or it is not to be had without waiting.
 */
static bool
find_extreme(ShermanIndex *opened, Relation heap, bool greatest, Datum *value)
{
	ShermanExtreme *extreme = &opened->extremes[greatest];
	TimestampTz now = GetCurrentTimestamp();
	bool		backward = greatest != opened->keys->column[0].descending;
	TreeScan   *scan;
	TreeStatus	status;

	if (extreme->read_at == 0 || TimestampDifferenceExceeds(extreme->read_at, now, EXTREME_MS))
	{
		if (extreme->found && !TupleDescAttr(opened->keys->descriptor, 0)->attbyval)
			pfree(DatumGetPointer(extreme->value));
		extreme->found = false;
		extreme->read_at = now;
		status = sherman_take_scan(opened, &scan);
		if (status == TREE_OK)
		{
			status = read_end(opened, scan, heap, backward ? TREE_BACKWARD : TREE_FORWARD, extreme);
			sherman_return_scan(opened, scan);
		}
		if (status == TREE_UNREACHABLE || status == TREE_FENCED)
			(void) sherman_connection_trouble();
	}
	*value = extreme->value;
	return extreme->found;
}

/* ---- whether anybody asks ---- */

/* A table's column in a query. */
typedef struct Column
{
	PlannerInfo *root;
	RangeTblEntry *entry;
	RelOptInfo *rel;
	AttrNumber	number;
} Column;

static bool
is_column(const Column *column, Node *node)
{
	if (IsA(node, RelabelType))
		node = (Node *) ((RelabelType *) node)->arg;
	return IsA(node, Var) && ((Var *) node)->varno == (int) column->rel->relid && ((Var *) node)->varlevelsup == 0 &&
		((Var *) node)->varattno == column->number;
}

static bool
is_range_operator(Oid operator)
{
	RegProcedure estimator = get_oprrest(operator);

	return estimator == F_SCALARLTSEL || estimator == F_SCALARLESEL || estimator == F_SCALARGTSEL ||
		estimator == F_SCALARGESEL;
}

/*
 * Whether a condition compares the column with a value in or beyond the first or the last bin of its histogram:
 * *least and *greatest say so.
 */
static void
look_at_condition(const Column *column, const OpExpr *condition, const AttStatsSlot *histogram, bool *least, bool *greatest)
{
	bool		left = is_column(column, linitial(condition->args));
	Node	   *other = left ? lsecond(condition->args) : linitial(condition->args);
	Const	   *constant = (Const *) estimate_expression_value(column->root, other);
	FmgrInfo	less;
	Oid			type;

	if (!IsA(constant, Const) || constant->constisnull)
		return;					/* core guesses */
	type = getBaseType(constant->consttype);
	if (type != histogram->valuetype)
	{
		/* Of another type of the family: whether it is in between is not found out. */
		*least = *greatest = true;
		return;
	}
	fmgr_info(get_opcode(histogram->staop), &less);
	if (DatumGetBool(FunctionCall2Coll(&less, histogram->stacoll, constant->constvalue, histogram->values[1])))
		*least = true;
	if (DatumGetBool(FunctionCall2Coll(&less, histogram->stacoll, histogram->values[histogram->nvalues - 2],
									   constant->constvalue)))
		*greatest = true;
}

static void
look_at_conditions(const Column *column, const AttStatsSlot *histogram, bool *least, bool *greatest)
{
	ListCell   *cell;

	*least = *greatest = false;
	foreach(cell, column->rel->baserestrictinfo)
	{
		OpExpr	   *condition = (OpExpr *) lfirst_node(RestrictInfo, cell)->clause;

		if (IsA(condition, OpExpr) && list_length(condition->args) == 2 && is_range_operator(condition->opno) &&
			(is_column(column, linitial(condition->args)) || is_column(column, lsecond(condition->args))))
			look_at_condition(column, condition, histogram, least, greatest);
	}
}

/*
 * Whether the query's user may read the column in all rows: statistics tell of its values.
 */
static bool
may_read(const Column *column)
{
	RangeTblEntry *entry = column->entry;
	Oid			user = OidIsValid(column->rel->userid) ? column->rel->userid : GetUserId();

	return entry->securityQuals == NIL &&
		(pg_class_aclcheck(entry->relid, user, ACL_SELECT) == ACLCHECK_OK ||
		 pg_attribute_aclcheck(entry->relid, column->number, user, ACL_SELECT) == ACLCHECK_OK);
}

/*
 * Our index that has the column first, all of its rows, and the histogram's order.
 */
static IndexOptInfo *
find_index(const Column *column, const AttStatsSlot *histogram)
{
	ListCell   *cell;

	foreach(cell, column->rel->indexlist)
	{
		IndexOptInfo *info = lfirst_node(IndexOptInfo, cell);

		if (sherman_plans(info) && info->indpred == NIL && info->indexkeys[0] == column->number &&
			info->indexcollations[0] == histogram->stacoll &&
			get_op_opfamily_strategy(histogram->staop, info->opfamily[0]) == BTLessStrategyNumber)
			return info;
	}
	return NULL;
}

/* ---- the histogram ---- */

/*
 * Moves the histogram's ends out to those of the index; false: there is nothing to be moved.
 */
static bool
move_ends(const Column *column, AttStatsSlot *histogram)
{
	IndexOptInfo *info = find_index(column, histogram);
	Relation	index;
	ShermanIndex *opened;
	ShermanMetaPage meta;
	bool		wanted[2];
	bool		moved = false;

	if (info == NULL || histogram->nvalues < 3)
		return false;
	look_at_conditions(column, histogram, &wanted[0], &wanted[1]);
	if (!wanted[0] && !wanted[1])
		return false;
	index = index_open(info->indexoid, NoLock);
	opened = sherman_index_quietly(index, true);
	/* Unverified entries are the healer's, not a plan's. */
	if (opened != NULL && sherman_metapage_read(index, &meta) && !sherman_is_healing(&meta))
	{
		Relation	heap = table_open(column->entry->relid, NoLock);
		FmgrInfo	less;

		fmgr_info(get_opcode(histogram->staop), &less);
		for (int greatest = 0; greatest < 2; greatest++)
		{
			Datum	   *end = &histogram->values[greatest ? histogram->nvalues - 1 : 0];
			Datum		value;

			if (!wanted[greatest] || !find_extreme(opened, heap, greatest, &value) ||
				!DatumGetBool(FunctionCall2Coll(&less, histogram->stacoll, greatest ? *end : value,
												greatest ? value : *end)))
				continue;
			*end = value;
			moved = true;
		}
		table_close(heap, NoLock);
	}
	index_close(index, NoLock);
	return moved;
}

/*
 * A copy of the column's statistics with this histogram.
 */
static HeapTuple
replace_histogram(HeapTuple statistics, const AttStatsSlot *histogram)
{
	Form_pg_statistic form = (Form_pg_statistic) GETSTRUCT(statistics);
	const int16 kinds[STATISTIC_NUM_SLOTS] = {form->stakind1, form->stakind2, form->stakind3, form->stakind4, form->stakind5};
	Relation	catalog = table_open(StatisticRelationId, AccessShareLock);
	Datum		values[Natts_pg_statistic] = {0};
	bool		nulls[Natts_pg_statistic] = {false};
	bool		replaces[Natts_pg_statistic] = {false};
	HeapTuple	copy;
	int16		length;
	bool		by_value;
	char		align;

	get_typlenbyvalalign(histogram->valuetype, &length, &by_value, &align);
	for (int i = 0; i < STATISTIC_NUM_SLOTS; i++)
	{
		const int	at = Anum_pg_statistic_stavalues1 - 1 + i;

		if (kinds[i] != STATISTIC_KIND_HISTOGRAM)
			continue;
		values[at] = PointerGetDatum(construct_array(histogram->values, histogram->nvalues, histogram->valuetype, length,
													 by_value, align));
		replaces[at] = true;
	}
	copy = heap_modify_tuple(statistics, RelationGetDescr(catalog), values, nulls, replaces);
	table_close(catalog, AccessShareLock);
	return copy;
}

/*
 * The column's statistics as they are to be used, if they differ from those of the catalog.
 */
static HeapTuple
better_statistics(const Column *column)
{
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(column->entry->relid),
										Int16GetDatum(column->number), BoolGetDatum(false));
	HeapTuple	better = NULL;
	AttStatsSlot histogram;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	if (get_attstatsslot(&histogram, tuple, STATISTIC_KIND_HISTOGRAM, InvalidOid, ATTSTATSSLOT_VALUES))
	{
		if (move_ends(column, &histogram))
			better = replace_histogram(tuple, &histogram);
		free_attstatsslot(&histogram);
	}
	ReleaseSysCache(tuple);
	return better;
}

/* ---- the hook ---- */

static bool
has_our_index(const Column *column)
{
	ListCell   *cell;

	foreach(cell, column->rel->indexlist)
	{
		const IndexOptInfo *info = lfirst_node(IndexOptInfo, cell);

		if (info->indexkeys[0] == column->number && sherman_plans(info))
			return true;
	}
	return false;
}

/*
 * Whether this is the relation of an entry.  It may be no relation at all, and is not looked into: core's cost estimate of BRIN indexes leaves that
 * field as the stack was.
 */
static bool
is_relation_of(PlannerInfo *root, const RangeTblEntry *entry, const RelOptInfo *rel)
{
	for (int i = 1; rel != NULL && i < root->simple_rel_array_size; i++)
	{
		if (root->simple_rel_array[i] == rel && planner_rt_fetch(i, root) == entry)
			return true;
	}
	return false;
}

static bool
relation_stats(PlannerInfo *root, RangeTblEntry *entry, AttrNumber number, VariableStatData *data)
{
	Column		column = {root, entry, data->rel, number};

	if (previous_stats != NULL && previous_stats(root, entry, number, data))
		return true;
	/* A standby's scans are for snapshots that see what it has replayed. */
	if (RecoveryInProgress())
		return false;
	/* Of a subquery's columns the relation is the subquery. */
	if (entry->rtekind != RTE_RELATION || entry->inh || number <= 0 || !is_relation_of(root, entry, column.rel) ||
		!has_our_index(&column) || !may_read(&column))
		return false;
	data->statsTuple = better_statistics(&column);
	if (data->statsTuple == NULL)
		return false;
	data->freefunc = heap_freetuple;
	data->acl_ok = true;
	return true;
}

void
sherman_extremes_install(void)
{
	previous_stats = get_relation_stats_hook;
	get_relation_stats_hook = relation_stats;
}
