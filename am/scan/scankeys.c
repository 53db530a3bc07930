/*
 * scankeys.c
 *		Scan keys -> bounds of the tree.
 *
 * A scan's quals are digested once (scan_keys_make(): catalogs, functions); each rescan sorts the arguments
 * into equalities, one range and a residue (scan_keys_begin()); each combination of array elements makes two
 * edges. Rescans look nothing up and allocate nothing, but for the elements of arrays.
 */
#include "am/scan/scankeys.h"

#include "access/nbtree.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "am/scan/scan.h"
#include "am/keys/keys.h"

/* Flags of a scan key that are of its kind and not of its argument. */
#define KIND_FLAGS (SK_SEARCHARRAY | SK_SEARCHNULL | SK_SEARCHNOTNULL | SK_ROW_HEADER)

/* ------------------------------------------------------------------------------------------------
 * Once per scan
 */

/* Sets up an order function of the column's family. */
static void
find_order_proc(const KeyColumn *column, Oid left, Oid right, FmgrInfo *function, MemoryContext context)
{
	Oid			proc = get_opfamily_proc(column->family, left, right, SHERMAN_ORDER_PROC);

	if (!OidIsValid(proc))
		elog(ERROR, "missing support function %d(%u,%u) in operator family %u",
			 SHERMAN_ORDER_PROC, left, right, column->family);
	fmgr_info_cxt(proc, function, context);
}

ScanKeys *
scan_keys_make(Relation index, ShermanKeys *keys, ScanKey scan_keys, int count, MemoryContext context)
{
	ScanKeys   *made = MemoryContextAllocZero(context, sizeof(ScanKeys));

	made->keys = keys;
	made->context = context;
	made->count = count;
	made->quals = MemoryContextAllocZero(context, sizeof(ScanQual) * Max(count, 1));
	made->residual = MemoryContextAllocZero(context, sizeof(ScanQual *) * Max(count, 1));
	made->rest = MemoryContextAllocZero(context, sizeof(ScanQual *) * Max(count, 1));
	for (int i = 0; i < count; i++)
	{
		ScanKey		key = &scan_keys[i];
		ScanQual   *qual = &made->quals[i];
		const KeyColumn *column;

		/* Core gives row comparisons to no access method but btree. */
		if (key->sk_flags & SK_ROW_HEADER)
			elog(ERROR, "access method \"sherman\" does not support row comparisons");
		if (key->sk_attno < 1 || key->sk_attno > keys->columns)
			elog(ERROR, "scan key on column %d of index \"%s\"", key->sk_attno,
				 RelationGetRelationName(index));
		column = &keys->column[key->sk_attno - 1];
		qual->key = key;
		qual->flags = key->sk_flags & KIND_FLAGS;
		qual->strategy = key->sk_strategy;
		qual->subtype = key->sk_subtype;
		qual->column = key->sk_attno - 1;
		qual->type = OidIsValid(key->sk_subtype) ? key->sk_subtype : column->type;
		qual->own_type = qual->type == column->type;
		if (qual->flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL))
			continue;
		if (key->sk_strategy < 1 || key->sk_strategy > SHERMAN_STRATEGIES)
			elog(ERROR, "unrecognized strategy number: %d", key->sk_strategy);
		if (!qual->own_type)
			find_order_proc(column, column->type, qual->type, &qual->compare, context);
		if ((qual->flags & SK_SEARCHARRAY) && made->arrays == NULL)
			made->arrays = AllocSetContextCreate(context, "sherman array keys", ALLOCSET_SMALL_SIZES);
	}
	return made;
}

void
scan_keys_free(ScanKeys *made)
{
	if (made == NULL)
		return;
	if (made->arrays != NULL)
		MemoryContextDelete(made->arrays);
	pfree(made->quals);
	pfree(made->residual);
	pfree(made->rest);
	pfree(made);
}

bool
scan_keys_fit(const ScanKeys *made, const ShermanKeys *keys, ScanKey scan_keys, int count)
{
	if (made->keys != keys || made->count != count)
		return false;
	for (int i = 0; i < count; i++)
	{
		const ScanQual *qual = &made->quals[i];
		ScanKey		key = &scan_keys[i];

		if (qual->key != key || qual->flags != (key->sk_flags & KIND_FLAGS) ||
			qual->column != key->sk_attno - 1 || qual->strategy != key->sk_strategy ||
			qual->subtype != key->sk_subtype)
			return false;
	}
	return true;
}

/* ------------------------------------------------------------------------------------------------
 * Arguments
 */

/* By an order function for these two types, in the order of the index. */
static int
compare_by(FmgrInfo *order_function, const KeyColumn *column, Datum left, Datum right)
{
	int			order = DatumGetInt32(FunctionCall2Coll(order_function, column->collation, left, right));

	if (column->descending)
		INVERT_COMPARE_RESULT(order);
	return order;
}

/* Two arguments of one qual, or of two quals of one type, in the order of the index. */
static int
compare_arguments(ScanKeys *keys, ScanQual *qual, Datum left, Datum right)
{
	KeyColumn  *column = &keys->keys->column[qual->column];

	if (qual->own_type)
	{
		keys_prepare_sort(keys->keys);
		return ApplySortComparator(left, false, right, false, &column->sort);
	}
	if (!qual->self_ready)
	{
		find_order_proc(column, qual->type, qual->type, &qual->self_compare, keys->context);
		qual->self_ready = true;
	}
	return compare_by(&qual->self_compare, column, left, right);
}

/* A column's value against an argument, in the order of the index. */
static int
compare_value(ScanKeys *keys, ScanQual *qual, Datum value, Datum argument)
{
	if (qual->own_type)
		return compare_arguments(keys, qual, value, argument);
	return compare_by(&qual->compare, &keys->keys->column[qual->column], value, argument);
}

bool
scan_qual_find(ScanKeys *keys, ScanQual *qual, Datum value, int *place)
{
	int			low = 0;
	int			high = qual->element_count;
	int			middle = Min(qual->hint, high - 1);	/* values come in order: mostly near the last one */

	while (low < high)
	{
		int			order = compare_value(keys, qual, value, qual->elements[middle]);

		if (order == 0)
		{
			*place = qual->hint = middle;
			return true;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
		middle = order > 0 && middle == qual->hint ? low : low + (high - low) / 2;
	}
	*place = low;
	return false;
}

/* Whether a qual with an operator holds for a value of its column that is not NULL. */
static bool
qual_accepts(ScanKeys *keys, ScanQual *qual, Datum value)
{
	int			place;

	if (!(qual->flags & SK_SEARCHARRAY) || qual->strategy != BTEqualStrategyNumber)
		return DatumGetBool(FunctionCall2Coll(&qual->key->sk_func, qual->key->sk_collation,
											  value, qual->value));
	return scan_qual_find(keys, qual, value, &place);
}

typedef struct SortArgument
{
	ScanKeys   *keys;
	ScanQual   *qual;
} SortArgument;

static int
compare_elements(const void *left, const void *right, void *argument)
{
	SortArgument *sort = argument;

	return compare_arguments(sort->keys, sort->qual, *(const Datum *) left, *(const Datum *) right);
}

/*
 * Takes an array apart: sorts its elements and drops duplicates; or, under an inequality, keeps the one that
 * decides. False: it has no element but NULLs, so no row matches.
 */
static bool
take_array(ScanKeys *keys, ScanQual *qual)
{
	MemoryContext old = MemoryContextSwitchTo(keys->arrays);
	ArrayType  *array = DatumGetArrayTypeP(qual->key->sk_argument);
	SortArgument sort = {keys, qual};
	bool	   *isnull;
	int			count;
	int			kept = 0;

	if (qual->element_type != ARR_ELEMTYPE(array))
	{
		qual->element_type = ARR_ELEMTYPE(array);
		get_typlenbyvalalign(qual->element_type, &qual->element_length, &qual->element_by_value,
							 &qual->element_align);
	}
	deconstruct_array(array, qual->element_type, qual->element_length, qual->element_by_value,
					  qual->element_align, &qual->elements, &isnull, &count);
	MemoryContextSwitchTo(old);

	for (int i = 0; i < count; i++)
	{
		if (!isnull[i])
			qual->elements[kept++] = qual->elements[i];
	}
	count = kept;
	qual->element_count = count;
	if (count == 0)
		return false;

	qsort_arg(qual->elements, count, sizeof(Datum), compare_elements, &sort);
	if (qual->strategy == BTEqualStrategyNumber)
	{
		kept = 1;
		for (int i = 1; i < count; i++)
		{
			if (compare_arguments(keys, qual, qual->elements[kept - 1], qual->elements[i]) != 0)
				qual->elements[kept++] = qual->elements[i];
		}
		qual->element_count = kept;
	}
	else
	{
		/* x < ANY is x < the greatest, x > ANY is x > the least. */
		bool		greatest = qual->strategy < BTEqualStrategyNumber;
		bool		descending = keys->keys->column[qual->column].descending;

		qual->value = qual->elements[greatest != descending ? count - 1 : 0];
	}
	return true;
}

/* Takes the arguments of all quals. False: one of them can hold for no row. */
static bool
take_arguments(ScanKeys *keys)
{
	if (keys->arrays != NULL)
		MemoryContextReset(keys->arrays);
	for (int i = 0; i < keys->count; i++)
	{
		ScanQual   *qual = &keys->quals[i];

		if (qual->flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL))
			continue;
		/* All operators are strict. */
		if (qual->key->sk_flags & SK_ISNULL)
			return false;
		if (qual->flags & SK_SEARCHARRAY)
		{
			if (!take_array(keys, qual))
				return false;
		}
		else
			qual->value = qual->key->sk_argument;
	}
	return true;
}

/* ------------------------------------------------------------------------------------------------
 * Equalities, range and residue
 */

static bool
qual_is_array(const ScanQual *qual)
{
	return (qual->flags & SK_SEARCHARRAY) != 0 && qual->strategy == BTEqualStrategyNumber;
}

/* Whether the qual bounds its column from below, in the order of the index. */
static bool
qual_is_low(const ScanKeys *keys, const ScanQual *qual)
{
	return (qual->strategy > BTEqualStrategyNumber) != keys->keys->column[qual->column].descending;
}

bool
scan_qual_is_inclusive(const ScanQual *qual)
{
	return qual->strategy == BTLessEqualStrategyNumber || qual->strategy == BTGreaterEqualStrategyNumber;
}

static void
add_residual(ScanKeys *keys, ScanQual *qual)
{
	keys->residual[keys->residual_count++] = qual;
}

/* Whether, of two quals of one type for one end of a range, the second is tighter. */
static bool
tighter(ScanKeys *keys, ScanQual *chosen, ScanQual *qual, bool low)
{
	int			order = compare_arguments(keys, qual, chosen->value, qual->value);

	return order == 0 ? scan_qual_is_inclusive(chosen) : (order < 0) == low;
}

/* Keeps the tighter of two quals for one end of a range; quals that cannot be compared go to the residue. */
static void
choose_edge(ScanKeys *keys, ScanQual **chosen, ScanQual *qual, bool low)
{
	if (*chosen == NULL)
	{
		*chosen = qual;
		return;
	}
	if ((*chosen)->type != qual->type)
	{
		add_residual(keys, qual);
		return;
	}
	if (tighter(keys, *chosen, qual, low))
		*chosen = qual;
}

/*
 * Applies another qual of a column that is bound by equality: to the argument now, or to each array element,
 * if these are of the column's type; else it goes to the residue.  False: nothing is left.
 */
static bool
apply_to_equality(ScanKeys *keys, ScanQual *equal, ScanQual *qual)
{
	int			kept = 0;

	if (!equal->own_type)
	{
		add_residual(keys, qual);
		return true;
	}
	if (!qual_is_array(equal))
		return qual_accepts(keys, qual, equal->value);
	for (int i = 0; i < equal->element_count; i++)
	{
		if (qual_accepts(keys, qual, equal->elements[i]))
			equal->elements[kept++] = equal->elements[i];
	}
	equal->element_count = kept;
	return kept > 0;
}

/* The quals of one column by kind. */
typedef struct ColumnQuals
{
	ScanQual   *equal;			/* best of those with equality: one without an array before one with */
	ScanQual   *null;
	ScanQual   *not_null;
	bool		ranges;			/* there are inequalities */
} ColumnQuals;

static void
gather_column(ScanKeys *keys, int column, ColumnQuals *found)
{
	memset(found, 0, sizeof(*found));
	for (int i = 0; i < keys->count; i++)
	{
		ScanQual   *qual = &keys->quals[i];

		if (qual->column != column)
			continue;
		if (qual->flags & SK_SEARCHNULL)
			found->null = qual;
		else if (qual->flags & SK_SEARCHNOTNULL)
			found->not_null = qual;
		else if (qual->strategy != BTEqualStrategyNumber)
			found->ranges = true;
		else if (found->equal == NULL || (qual_is_array(found->equal) && !qual_is_array(qual)))
			found->equal = qual;
	}
}

/* Binds a column by equality. False: no row can match. */
static bool
bind_equality(ScanKeys *keys, int column, const ColumnQuals *found)
{
	keys->equal[keys->equal_count++] = found->null ? found->null : found->equal;
	if (found->null)
		return found->equal == NULL && found->not_null == NULL && !found->ranges;
	for (int i = 0; i < keys->count; i++)
	{
		ScanQual   *qual = &keys->quals[i];

		if (qual->column == column && qual != found->equal && qual != found->not_null &&
			!(qual->flags & SK_SEARCHNOTNULL) && !apply_to_equality(keys, found->equal, qual))
			return false;
	}
	if (qual_is_array(found->equal))
		keys->array[keys->array_count++] = found->equal;
	return true;
}

/* Notes a range qual of a column that the bounds leave open, unless the one that was noted is tighter or of another type. */
static void
note_range(ScanKeys *keys, ScanColumn *condition, ScanQual *qual)
{
	bool		low = qual_is_low(keys, qual);
	ScanQual  **noted = low ? &condition->low : &condition->high;

	if (*noted == NULL || ((*noted)->type == qual->type && tighter(keys, *noted, qual, low)))
		*noted = qual;
}

/* Notes what is asked of a column that the bounds leave open. */
static void
note_condition(ScanKeys *keys, int column)
{
	ScanColumn *condition = &keys->condition[column];
	ColumnQuals found;

	gather_column(keys, column, &found);
	condition->equal = found.null ? found.null : found.equal;
	condition->ranged = condition->equal == NULL && (found.ranges || found.not_null);
	condition->low = condition->high = NULL;
	for (int i = 0; condition->ranged && i < keys->count; i++)
	{
		if (keys->quals[i].column == column && !(keys->quals[i].flags & SK_SEARCHNOTNULL))
			note_range(keys, condition, &keys->quals[i]);
	}
	if (condition->equal != NULL || condition->ranged)
		keys->conditions = column + 1;
}

/* Whether an entry in which all conditions hold passes this qual, too. */
static bool
is_noted(const ScanKeys *keys, const ScanQual *qual)
{
	const ScanColumn *condition = &keys->condition[qual->column];

	if (qual->column <= keys->conditions_from)
		return false;
	if (qual->flags & SK_SEARCHNOTNULL)
		return condition->ranged || condition->equal == NULL || !(condition->equal->flags & SK_SEARCHNULL);
	return qual == condition->equal || qual == condition->low || qual == condition->high;
}

/* Notes what is asked of columns behind the first one that is not bound by equality. */
static void
note_conditions(ScanKeys *keys)
{
	int			first = keys->equal_count;

	keys->conditions_from = first;
	keys->conditions = 0;
	keys->rest_count = 0;
	if (keys->residual_count == 0)
		return;
	memset(&keys->condition[first], 0, sizeof(ScanColumn));
	for (int column = first + 1; column < keys->keys->columns; column++)
		note_condition(keys, column);
	for (int i = 0; i < keys->residual_count; i++)
	{
		if (!is_noted(keys, keys->residual[i]))
			keys->rest[keys->rest_count++] = keys->residual[i];
	}
}

/* Sorts the quals. False: no row can match. */
static bool
classify(ScanKeys *keys)
{
	ColumnQuals found;
	int			column;

	keys->equal_count = 0;
	keys->array_count = 0;
	keys->residual_count = 0;
	keys->range_column = -1;
	keys->low = keys->high = NULL;
	for (column = 0; column < keys->keys->columns; column++)
	{
		gather_column(keys, column, &found);
		if (found.equal == NULL && found.null == NULL)
			break;
		if (!bind_equality(keys, column, &found))
			return false;
	}
	if (column < keys->keys->columns && (found.ranges || found.not_null))
		keys->range_column = column;

	for (int i = 0; i < keys->count; i++)
	{
		ScanQual   *qual = &keys->quals[i];

		if (qual->column < keys->equal_count)
			continue;
		if (qual->column != keys->range_column)
			add_residual(keys, qual);
		else if (!(qual->flags & SK_SEARCHNOTNULL))
		{
			bool		low = qual_is_low(keys, qual);

			choose_edge(keys, low ? &keys->low : &keys->high, qual, low);
		}
	}
	note_conditions(keys);
	return true;
}

/* ------------------------------------------------------------------------------------------------
 * Values and edges
 */

void
scan_qual_value(const ScanKeys *keys, ScanQual *qual, int element, ShermanSearchColumn *value)
{
	value->isnull = (qual->flags & SK_SEARCHNULL) != 0;
	value->type = value->isnull ? keys->keys->column[qual->column].type : qual->type;
	value->compare = value->isnull || qual->own_type ? NULL : &qual->compare;
	value->value = value->isnull ? (Datum) 0 : qual_is_array(qual) ? qual->elements[element] : qual->value;
}

int
scan_qual_values(const ScanQual *qual)
{
	return qual_is_array(qual) ? qual->element_count : 1;
}

int
scan_qual_compare(ScanKeys *keys, ScanQual *qual, Datum value, int element)
{
	return compare_value(keys, qual, value, qual_is_array(qual) ? qual->elements[element] : qual->value);
}

bool
scan_qual_leaves_out(ScanKeys *keys, ScanQual *qual, bool low, Datum value)
{
	int			order = compare_value(keys, qual, value, qual->value);

	return order == 0 ? !scan_qual_is_inclusive(qual) : (order < 0) == low;
}

int
scan_values_compare(ScanKeys *keys, int column, Datum left, Datum right)
{
	keys_prepare_sort(keys->keys);
	return ApplySortComparator(left, false, right, false, &keys->keys->column[column].sort);
}

static void
range_end(const ScanKeys *keys, int column, ScanQual *qual, ScanEnd *end)
{
	end->bound = qual != NULL;
	end->inclusive = qual != NULL && scan_qual_is_inclusive(qual);
	if (qual != NULL)
		scan_qual_value(keys, qual, 0, &end->value);
	else
		end->value = (ShermanSearchColumn) {.isnull = true,.type = keys->keys->column[column].type};
}

void
scan_column_range(const ScanKeys *keys, int column, ScanQual *low, ScanQual *high, ScanRange *range)
{
	range_end(keys, column, low, &range->low);
	range_end(keys, column, high, &range->high);
}

bool
scan_keys_edges(const ScanKeys *keys, ScanEdge *low, ScanEdge *high)
{
	ShermanSearchColumn equal[INDEX_MAX_KEYS];
	ScanRange	range;
	int			count = keys->equal_count;

	for (int i = 0; i < count; i++)
		scan_qual_value(keys, keys->equal[i], keys->equal[i]->current, &equal[i]);
	if (keys->range_column < 0)
	{
		if (!scan_edge_make(keys->keys, low, true, equal, count, NULL))
			return false;
		scan_edge_mirror(high, low);
		return true;
	}
	scan_column_range(keys, count, keys->low, keys->high, &range);
	return scan_edge_make(keys->keys, low, true, equal, count, &range) &&
		scan_edge_make(keys->keys, high, false, equal, count, &range) &&
		!scan_edges_crossed(low, high);
}

static bool
make_edges(ScanKeys *keys)
{
	return scan_keys_edges(keys, &keys->low_edge, &keys->high_edge);
}

/* ------------------------------------------------------------------------------------------------
 * Combinations
 */

bool
scan_keys_step(ScanKeys *keys, ScanDirection direction)
{
	for (int i = keys->array_count - 1; i >= 0; i--)
	{
		ScanQual   *qual = keys->array[i];

		if (ScanDirectionIsForward(direction))
		{
			if (++qual->current < qual->element_count)
				return true;
			qual->current = 0;
		}
		else
		{
			if (--qual->current >= 0)
				return true;
			qual->current = qual->element_count - 1;
		}
	}
	return false;
}

bool
scan_keys_begin(ScanKeys *keys, ScanDirection direction)
{
	if (!take_arguments(keys) || !classify(keys))
		return false;
	for (int i = 0; i < keys->array_count; i++)
		keys->array[i]->current = ScanDirectionIsForward(direction) ? 0 : keys->array[i]->element_count - 1;
	return make_edges(keys) || scan_keys_next(keys, direction);
}

bool
scan_keys_turn(ScanKeys *keys, ScanDirection direction)
{
	while (scan_keys_step(keys, direction))
	{
		if (make_edges(keys))
			return true;
	}
	return false;
}

void
scan_keys_save(const ScanKeys *keys, int *positions)
{
	for (int i = 0; i < keys->array_count; i++)
		positions[i] = keys->array[i]->current;
}

void
scan_keys_restore(ScanKeys *keys, const int *positions)
{
	if (keys->array_count == 0)
		return;
	for (int i = 0; i < keys->array_count; i++)
		keys->array[i]->current = positions[i];
	if (!make_edges(keys))
		elog(ERROR, "sherman scan restored to a place where nothing can match");
}

bool
scan_keys_pass(ScanKeys *keys, ScanQual *const *quals, int count)
{
	for (int i = 0; i < count; i++)
	{
		ScanQual   *qual = quals[i];
		bool		isnull;
		Datum		value = key_reader_column(&keys->reader, qual->column, &isnull);

		if (qual->flags & (SK_SEARCHNULL | SK_SEARCHNOTNULL))
		{
			if (isnull != ((qual->flags & SK_SEARCHNULL) != 0))
				return false;
		}
		else if (isnull || !qual_accepts(keys, qual, value))
			return false;
	}
	return true;
}
