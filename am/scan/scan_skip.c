/*
 * scan_skip.c
 *		Skip scans: what a scan may leave out where a condition is behind a column that the bounds leave open.
 *
 * b = 5 on (a, b) holds in one place for each value of a.  A scan that finds a leaf with one value of a alone, and nothing more to come in it, goes
 * to the place of this value (a group), and behind it to the first entry with the next value, which it learns from there.  Where a leaf
 * has several values of a that would cost more than to read on, and the scan reads on: the conditions are tested in each entry.
 *
 * All of it follows from one entry: its key tells where the next one is that could do.  So a scan that is put somewhere else, by a mark or
 * because it is turned around, begins to read there and skips by what it finds.
 *
 * What is left out holds no row, whatever is added to it meanwhile: between the entry and the place to go to no key passes the conditions.
 */
#include "am/scan/scan_skip.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

ScanSkip *
scan_skip_make(MemoryContext context, int patience)
{
	ScanSkip   *skip = MemoryContextAllocZero(context, sizeof(ScanSkip));

	skip->context = context;
	skip->first_patience = patience;
	return skip;
}

void
scan_skip_free(ScanSkip *skip)
{
	if (skip == NULL)
		return;
	if (skip->values != NULL)
		MemoryContextDelete(skip->values);
	pfree(skip);
}

/*
 * Whether a condition is a long = ANY: each element would be a group, and so a search, for each value of the columns before it, and many of
 * them lie in one leaf.
 */
static bool
has_long_array(const ScanKeys *keys)
{
	for (int column = keys->conditions_from; column < keys->conditions; column++)
	{
		const ScanQual *equal = keys->condition[column].equal;

		if (equal != NULL && (equal->flags & SK_SEARCHARRAY) && equal->element_count > SKIP_ELEMENTS_MAX)
			return true;
	}
	return false;
}

void
scan_skip_begin(ScanSkip *skip, ScanKeys *keys, bool parallel)
{
	skip->keys = keys;
	skip->off = parallel || has_long_array(keys);
	skip->patience = skip->first_patience;
	skip->leaf = 0;
	scan_skip_reset(skip);
}

void
scan_skip_reset(ScanSkip *skip)
{
	skip->region = SKIP_WHOLE;
	skip->jump = false;
	skip->last_known = false;
	skip->run = 0;
	skip->skipped = false;
	skip->far = false;
}

/* ------------------------------------------------------------------------------------------------
 * Conditions
 */

static bool
has_condition(const ScanKeys *keys, int column)
{
	return keys->condition[column].equal != NULL || keys->condition[column].ranged;
}

/* Finds the gap of an entry.  False: it has one. */
static bool
conditions_hold(ScanSkip *skip, KeyReader *reader, SkipGap *gap)
{
	ScanKeys   *keys = skip->keys;

	for (gap->column = keys->conditions_from; gap->column < keys->conditions; gap->column++)
	{
		bool		isnull;
		Datum		value;

		if (!has_condition(keys, gap->column))
			continue;
		value = key_reader_column(reader, gap->column, &isnull);
		if (!scan_condition_holds(keys, gap->column, &keys->condition[gap->column], value, isnull, &gap->value))
			return false;
	}
	return true;
}

bool
scan_skip_holds(ScanSkip *skip, SkipGap *gap)
{
	return conditions_hold(skip, &skip->keys->reader, gap);
}

/* ------------------------------------------------------------------------------------------------
 * The batch at hand
 */

/* Whether two entries have the same values in the columns that the combination leaves open, before this one. */
static bool
same_values(ScanSkip *skip, KeyReader *one, KeyReader *other, int before)
{
	ScanKeys   *keys = skip->keys;

	for (int i = before - 1; i >= keys->conditions_from; i--)
	{
		bool		one_null;
		bool		other_null;
		Datum		left = key_reader_column(one, i, &one_null);
		Datum		right = key_reader_column(other, i, &other_null);

		if (one_null != other_null || (!one_null && scan_values_compare(keys, i, left, right) != 0))
			return false;
	}
	return true;
}

void
scan_skip_look(ScanSkip *skip, bool last)
{
	skip->last_known = true;
	if (conditions_hold(skip, &skip->last, &skip->last_gap) || skip->off ||
		!same_values(skip, &skip->keys->reader, &skip->last, skip->last_gap.column))
	{
		skip->run = 0;
		return;
	}
	skip->run++;
	skip->jump = !last && skip->run >= skip->patience;
}

bool
scan_skip_rest_fails(ScanSkip *skip, const SkipGap *gap)
{
	return skip->last_known && gap->column == skip->last_gap.column && gap->value == skip->last_gap.value &&
		same_values(skip, &skip->keys->reader, &skip->last, gap->column);
}

void
scan_skip_read(ScanSkip *skip, ScanDirection direction, uint64 leaf, uint64 right)
{
	if (skip->skipped)
	{
		if (ScanDirectionIsForward(direction))
			skip->far |= leaf != skip->leaf && leaf != skip->right;
		else
			skip->far |= leaf != skip->leaf && right != skip->leaf;
		if (skip->region == SKIP_BEYOND)
		{
			skip->patience = skip->far ? skip->first_patience : Min(skip->patience * 2, SKIP_PATIENCE_MAX);
			skip->far = false;
		}
		skip->skipped = false;
	}
	skip->leaf = leaf;
	skip->right = right;
	skip->jump = false;
	skip->last_known = false;
}

/* ------------------------------------------------------------------------------------------------
 * The next region
 */

static void
go_to(ScanSkip *skip, SkipRegion region)
{
	skip->region = region;
	skip->jump = false;
	skip->last_known = false;
	skip->run = 0;
	skip->skipped = true;
}

/* Takes an entry's values of the columns that the combination leaves open, before this one. */
static void
take_values(ScanSkip *skip, KeyReader *reader, int before)
{
	ScanKeys   *keys = skip->keys;
	MemoryContext old;

	if (skip->values == NULL)
		skip->values = AllocSetContextCreate(skip->context, "sherman skip values", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(skip->values);
	old = MemoryContextSwitchTo(skip->values);
	for (int i = keys->conditions_from; i < before; i++)
	{
		ShermanSearchColumn *value = &skip->value[i];
		Form_pg_attribute attribute = TupleDescAttr(keys->keys->descriptor, i);
		Datum		datum = key_reader_column(reader, i, &value->isnull);

		value->type = keys->keys->column[i].type;
		value->compare = NULL;
		value->value = value->isnull ? (Datum) 0 : datumCopy(datum, attribute->attbyval, attribute->attlen);
		/* The condition holds, so that it tells which of its values this is. */
		skip->element[i] = 0;
		if (keys->condition[i].equal != NULL)
			(void) scan_condition_holds(keys, i, &keys->condition[i], datum, value->isnull, &skip->element[i]);
	}
	MemoryContextSwitchTo(old);
}

/* What the combination binds. */
static void
take_equalities(ScanSkip *skip)
{
	ScanKeys   *keys = skip->keys;

	for (int i = 0; i < keys->conditions_from; i++)
		scan_qual_value(keys, keys->equal[i], keys->equal[i]->current, &skip->value[i]);
}

/*
 * To the group with the values that were taken, this one of the column's condition, and what the conditions behind it ask first. False:
 * nothing can be in it.
 */
static bool
go_to_group(ScanSkip *skip, int column, int element, ScanDirection direction)
{
	ScanKeys   *keys = skip->keys;
	const ScanColumn *condition = &keys->condition[column];
	ScanRange	range;
	bool		ranged;

	take_equalities(skip);
	while (column < keys->conditions && condition->equal != NULL)
	{
		scan_qual_value(keys, condition->equal, element, &skip->value[column]);
		skip->element[column] = element;
		condition = &keys->condition[++column];
		if (column < keys->conditions && condition->equal != NULL)
			element = ScanDirectionIsForward(direction) ? 0 : scan_qual_values(condition->equal) - 1;
	}
	ranged = column < keys->conditions && condition->ranged;
	if (ranged)
		scan_column_range(keys, column, condition->low, condition->high, &range);
	go_to(skip, SKIP_GROUP);
	skip->bound = column;
	skip->whole_group = column + (ranged ? 1 : 0) >= keys->conditions;
	if (!scan_edge_make(keys->keys, &skip->low, true, skip->value, column, ranged ? &range : NULL))
	{
		/* The column that was bound last has a value beyond its type: no other of the columns behind it makes up for that. */
		skip->bound = skip->low.search.columns;
		return false;
	}
	if (!ranged)
		scan_edge_mirror(&skip->high, &skip->low);
	else if (!scan_edge_make(keys->keys, &skip->high, false, skip->value, column, &range))
		return false;
	return !scan_edges_crossed(&skip->low, &skip->high);
}

/* To all behind the values of the leading columns up to this one, within the combination's edges. False: nothing can be there. */
static bool
go_beyond(ScanSkip *skip, int column, ScanDirection direction)
{
	ScanKeys   *keys = skip->keys;
	bool		forward = ScanDirectionIsForward(direction);
	ScanEdge   *near = forward ? &skip->low : &skip->high;
	const ScanEdge *far = forward ? &keys->high_edge : &keys->low_edge;

	take_equalities(skip);
	go_to(skip, SKIP_BEYOND);
	if (!scan_edge_make(keys->keys, near, true, skip->value, column + 1, NULL))
		return false;
	near->tree.side = forward ? 1 : -1;
	return forward ? !scan_edges_crossed(near, far) : !scan_edges_crossed(far, near);
}

/*
 * Behind all with the values that were taken of the columns before this one.  False: nothing of the combination is there.
 */
static bool
go_behind(ScanSkip *skip, int column, ScanDirection direction)
{
	ScanKeys   *keys = skip->keys;
	int			step = ScanDirectionIsForward(direction) ? 1 : -1;

	while (--column >= keys->conditions_from)
	{
		ScanQual   *equal = keys->condition[column].equal;
		int			element = skip->element[column] + step;

		/* Of long arrays of several columns there may be many groups that nothing can be in. */
		CHECK_FOR_INTERRUPTS();
		if (equal == NULL)
			return go_beyond(skip, column, direction);
		if (element < 0 || element >= scan_qual_values(equal))
			continue;
		if (go_to_group(skip, column, element, direction))
			return true;
		column = skip->bound;
	}
	return false;
}

/* Whether there is a next region; if not, this is the last one. */
static bool
is_next(ScanSkip *skip, bool found)
{
	if (!found)
		scan_skip_reset(skip);
	return found;
}

bool
scan_skip_jump(ScanSkip *skip, ScanDirection direction)
{
	SkipGap		gap = skip->last_gap;
	const ScanColumn *condition = &skip->keys->condition[gap.column];
	int			values = condition->equal != NULL ? scan_qual_values(condition->equal) : 1;
	int			element = ScanDirectionIsForward(direction) ? gap.value : gap.value - 1;

	take_values(skip, &skip->last, gap.column);
	if (element < 0 || element >= values)
		return is_next(skip, go_behind(skip, gap.column, direction));
	return is_next(skip, go_to_group(skip, gap.column, element, direction) || go_behind(skip, skip->bound, direction));
}

bool
scan_skip_next(ScanSkip *skip, ScanDirection direction)
{
	return skip->region == SKIP_GROUP && is_next(skip, go_behind(skip, skip->bound, direction));
}
