/*
 * scan_condition.c
 *		Whether a value is among those that a scan wants of its column, and where it lies among them.
 */
#include "am/scan/scankeys.h"

/*
 * Whether a value is an element of an array.  *place: how many elements lie before it.
 */
static bool
array_has(ScanKeys *keys, ScanQual *qual, Datum value, int *place)
{
	int			low = 0;
	int			high = qual->element_count;
	int			middle = Min(qual->hint, high - 1);	/* values come in order: mostly near the last one */

	while (low < high)
	{
		int			order = scan_qual_compare(keys, qual, value, middle);

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

bool
scan_condition_holds(ScanKeys *keys, int column, const ScanColumn *condition, Datum value, bool isnull, int *place)
{
	ScanQual   *equal = condition->equal;
	bool		nulls_first = keys->keys->column[column].nulls_first;
	int			order;

	*place = 0;
	if (equal != NULL && (equal->flags & SK_SEARCHNULL))
	{
		*place = !isnull && nulls_first ? 1 : 0;
		return isnull;
	}
	if (isnull)
	{
		*place = nulls_first ? 0 : equal != NULL ? scan_qual_values(equal) : 1;
		return false;
	}
	if (equal == NULL)
	{
		if (condition->low != NULL && scan_qual_leaves_out(keys, condition->low, true, value))
			return false;
		*place = condition->high != NULL && scan_qual_leaves_out(keys, condition->high, false, value) ? 1 : 0;
		return *place == 0;
	}
	if (equal->flags & SK_SEARCHARRAY)
		return array_has(keys, equal, value, place);
	order = scan_qual_compare(keys, equal, value, 0);
	*place = order > 0 ? 1 : 0;
	return order == 0;
}
