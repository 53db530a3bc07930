/*
 * scan_condition.c
 *		Whether a value is among those that a scan wants of its column, and where it lies among them.
 */
#include "am/scan/scankeys.h"

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
		return scan_qual_find(keys, equal, value, place);
	order = scan_qual_compare(keys, equal, value, 0);
	*place = order > 0 ? 1 : 0;
	return order == 0;
}
