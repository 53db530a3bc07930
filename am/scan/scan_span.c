/*
 * scan_span.c
 *		Spans: combinations of `= ANY` whose keys lie in one leaf, read together.
 *
 * A scan seeks the first key of an array, and has the tree load its leaf.  Keys that begin before that leaf ends are taken in: the
 * scan stops behind the last of them instead of the first.  So each leaf is read once and asked once, however many keys it has, and a
 * key that is alone in its leaf is looked up as if there were no array.  What lies between the keys is read with them, and tested.
 *
 * Where the scan stops is exact, as it is without spans: behind the last combination of the span, and the next one is what the scan
 * goes on with.  Whether a combination belongs to a span is a matter of cost alone.
 *
 * Race -- the leaf that was loaded may be read anew before its entries are taken (keys out of line that are not its cells' any more), and may have
 * been split: then the span goes on in the leaves behind.  So a span, once there is one, lasts until the next seek.
 */
#include "am/base/sherman.h"

#include "miscadmin.h"

#include "am/scan/scan_span.h"

/* ------------------------------------------------------------------------------------------------
 * Which combinations
 */

/* What is asked, for a combination, of where it begins. */
typedef struct Reach
{
	ScanKeys   *keys;
	ScanDirection direction;
	SpanReaches reaches;
	const TreeScan *tree_scan;
	ScanEdge   *low;
	ScanEdge   *high;
} Reach;

/* Whether the combination that the keys are at begins there. One that no row can match does not. */
static bool
is_reached(const Reach *reach)
{
	const ScanEdge *near = ScanDirectionIsForward(reach->direction) ? reach->low : reach->high;

	return scan_keys_edges(reach->keys, reach->low, reach->high) && near->bound && reach->reaches(reach->tree_scan, &near->tree);
}

/* The same of the combination with this element of the last array. */
static bool
element_is_reached(const Reach *reach, ScanQual *array, int element)
{
	array->current = element;
	return is_reached(reach);
}

/*
 * Turns the last array on to its last element that is reached: by strides that double, and then by halves.  Returns whether it has come to
 * its end.
 */
static bool
reach_in_array(const Reach *reach, ScanQual *array)
{
	const int	from = array->current;
	const int	sign = ScanDirectionIsForward(reach->direction) ? 1 : -1;
	const int	left = sign > 0 ? array->element_count - 1 - from : from;
	int			reached = 0;
	int			beyond = left + 1;

	for (int stride = 1; reached < left && beyond > left; stride *= 2)
	{
		int			probe = Min(reached + stride, left);

		if (element_is_reached(reach, array, from + sign * probe))
			reached = probe;
		else
			beyond = probe;
	}
	while (reached + 1 < beyond)
	{
		int			middle = reached + (beyond - reached) / 2;

		if (element_is_reached(reach, array, from + sign * middle))
			reached = middle;
		else
			beyond = middle;
	}
	array->current = from + sign * reached;
	return reached == left;
}

/* Turns to the next combination, whose last array begins anew. False: it is not reached, and the keys stay. */
static bool
reach_next(const Reach *reach)
{
	ScanKeys   *keys = reach->keys;
	int			positions[INDEX_MAX_KEYS];

	scan_keys_save(keys, positions);
	if (scan_keys_step(keys, reach->direction) && is_reached(reach))
		return true;
	for (int i = 0; i < keys->array_count; i++)
		keys->array[i]->current = positions[i];
	return false;
}

bool
scan_span_reach(ScanKeys *keys, ScanDirection direction, SpanReaches reaches, const TreeScan *tree_scan, ScanEdge *low, ScanEdge *high)
{
	const Reach reach = {keys, direction, reaches, tree_scan, low, high};
	ScanQual   *last = keys->array[keys->array_count - 1];
	int			from = last->current;
	bool		moved = false;

	while (reach_in_array(&reach, last) && reach_next(&reach))
	{
		/* The other arrays may have a great many combinations. */
		CHECK_FOR_INTERRUPTS();
		moved = true;
	}
	if (!moved && last->current == from)
		return false;
	(void) scan_keys_edges(keys, low, high);
	return true;
}

void
scan_span_widen(ScanSpan *span, ScanKeys *keys, ScanDirection direction, TreeScan *tree_scan, TreeScanPosition *taken)
{
	const int	spare = 1 - span->stop;
	const TreeBound *stop = ScanDirectionIsForward(direction) ? &span->high[spare].tree : &span->low[spare].tree;
	int			i = 0;

	if (!span->many)
		scan_keys_save(keys, span->first);
	if (!scan_span_reach(keys, direction, tree_scan_reaches, tree_scan, &span->low[spare], &span->high[spare]))
		return;
	span->many = true;
	span->stop = spare;
	while (keys->array[i]->current == span->first[i])
		i++;
	span->from = keys->array[i]->column;
	if (taken != NULL)
		tree_scan_take_to(tree_scan, stop, taken);
	else
		tree_scan_stop_at(tree_scan, stop);
}

/* ------------------------------------------------------------------------------------------------
 * Entries
 */

/* What a combination's edges ask of a column. */
static ScanColumn
column_condition(const ScanKeys *keys, int column)
{
	ScanColumn	condition = {0};

	if (column < keys->equal_count)
		condition.equal = keys->equal[column];
	else
	{
		condition.low = keys->low;
		condition.high = keys->high;
		condition.ranged = true;
	}
	return condition;
}

bool
scan_span_holds(const ScanSpan *span, ScanKeys *keys)
{
	const int	columns = scan_keys_columns(keys);

	for (int column = span->from; column < columns; column++)
	{
		ScanColumn	condition = column_condition(keys, column);
		bool		isnull;
		Datum		value = key_reader_column(&keys->reader, column, &isnull);
		int			place;

		if (!scan_condition_holds(keys, column, &condition, value, isnull, &place))
			return false;
	}
	return true;
}

/* ------------------------------------------------------------------------------------------------
 * Places
 */

/* Puts the arrays of this column and those behind it at their first elements, or at their last ones. */
static void
turn_rest(ScanKeys *keys, int column, bool last)
{
	for (int i = 0; i < keys->array_count; i++)
	{
		if (keys->array[i]->column >= column)
			keys->array[i]->current = last ? keys->array[i]->element_count - 1 : 0;
	}
}

/* Puts the keys at the last combination that does not begin behind the entry that is open. */
static void
find_combination(ScanKeys *keys)
{
	for (int column = 0; column < keys->equal_count; column++)
	{
		ScanQual   *qual = keys->equal[column];
		const ScanColumn condition = {.equal = qual};
		bool		isnull;
		Datum		value = key_reader_column(&keys->reader, column, &isnull);
		int			place;
		bool		holds = scan_condition_holds(keys, column, &condition, value, isnull, &place);

		if (!holds && place == 0)
		{
			/* It lies before all with these values of the columns before. */
			turn_rest(keys, column, false);
			(void) scan_keys_step(keys, BackwardScanDirection);
			return;
		}
		qual->current = holds ? place : place - 1;
		if (!holds)
		{
			turn_rest(keys, column + 1, true);
			return;
		}
	}
}

void
scan_span_place(ScanSpan *span, ScanKeys *keys, int *positions)
{
	const int	spare = 1 - span->stop;
	int			at[INDEX_MAX_KEYS];

	scan_keys_save(keys, at);
	find_combination(keys);
	/* Of elements beyond the column's type there is no place. */
	while (!scan_keys_edges(keys, &span->low[spare], &span->high[spare]))
	{
		if (!scan_keys_step(keys, BackwardScanDirection))
			elog(ERROR, "an entry lies before all that a sherman scan asks for");
	}
	scan_keys_save(keys, positions);
	for (int i = 0; i < keys->array_count; i++)
		keys->array[i]->current = at[i];
}
