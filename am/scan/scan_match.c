/*
 * scan_match.c
 *		Which entries of a leaf have keys that `= ANY` asks for, where integers tell.
 *
 * A column that the normalized key holds whole in up to eight bytes is an integer there, and so are the arguments: then all entries of a
 * leaf are tested in one go, without a call for each of their values.
 */
#include "am/scan/scan_match.h"

#include "utils/memutils.h"

/* ------------------------------------------------------------------------------------------------
 * Arguments
 */

/* Eight bytes and fewer as an integer. */
static uint64
bytes_integer(const uint8 *bytes, int count)
{
	uint64		integer = 0;

	for (int i = 0; i < count; i++)
		integer = integer << 8 | bytes[i];
	return integer;
}

/* An argument as an integer. False: no value of the column is as it is. */
static bool
argument_integer(const KeyColumn *column, const ScanQual *qual, Datum value, uint64 *integer)
{
	uint8		bytes[sizeof(uint64)];

	if (normalize_argument(column->kind, column->type, qual->type, value, bytes, column->bytes) != NORMALIZED_EXACT)
		return false;
	if (column->descending)
		key_invert_bytes(bytes, column->bytes);
	*integer = bytes_integer(bytes, column->bytes);
	return true;
}

static bool
take_elements(MatchColumn *made, const ScanKeys *keys, const ScanQual *qual)
{
	made->elements = MemoryContextAlloc(keys->arrays, sizeof(uint64) * qual->element_count);
	for (int i = 0; i < qual->element_count; i++)
	{
		if (!argument_integer(made->column, qual, qual->elements[i], &made->elements[i]))
			return false;
	}
	made->count = qual->element_count;
	return true;
}

/* Of `=`, NULL, or `= ANY`. */
static bool
take_equality(MatchColumn *made, const ScanKeys *keys, const ScanQual *qual)
{
	made->null = (qual->flags & SK_SEARCHNULL) != 0;
	if (made->null)
		return true;
	if (qual->flags & SK_SEARCHARRAY)
		return take_elements(made, keys, qual);
	if (!argument_integer(made->column, qual, qual->value, &made->low))
		return false;
	made->high = made->low;
	return true;
}

/* The ends of a range, which are in it.  False: there is no such integer, too. */
static bool
take_range(MatchColumn *made, const ScanKeys *keys)
{
	const uint64 most = ~UINT64CONST(0) >> (64 - 8 * made->column->bytes);

	made->low = 0;
	made->high = most;
	if (keys->low != NULL)
	{
		if (!argument_integer(made->column, keys->low, keys->low->value, &made->low))
			return false;
		if (!scan_qual_is_inclusive(keys->low) && made->low++ == most)
			return false;
	}
	if (keys->high != NULL)
	{
		if (!argument_integer(made->column, keys->high, keys->high->value, &made->high))
			return false;
		if (!scan_qual_is_inclusive(keys->high) && made->high-- == 0)
			return false;
	}
	return true;
}

/* Makes what is asked of the columns from the first array's on.  False: one of them is no integer. */
static bool
take_columns(ScanMatch *match, const ScanKeys *keys)
{
	for (int i = keys->array[0]->column; i < scan_keys_columns(keys); i++)
	{
		MatchColumn *made = &match->column[i];
		const KeyColumn *column = &keys->keys->column[i];

		memset(made, 0, sizeof(*made));
		made->column = column;
		if (!column->whole || column->bytes == 0 || column->bytes > (int) sizeof(uint64) ||
			!(i < keys->equal_count ? take_equality(made, keys, keys->equal[i]) : take_range(made, keys)))
			return false;
	}
	return true;
}

/* ------------------------------------------------------------------------------------------------
 * Entries
 */

/* Bytes of a normalized key, which may lie in two of its words. */
static inline uint64
norm_integer(const uint64 *norm, int at, int bytes)
{
	const int	shift = at % 8 * 8;
	uint64		integer = norm[at / 8] << shift;

	if (shift + bytes * 8 > 64)
		integer |= norm[at / 8 + 1] >> (64 - shift);
	return integer >> (64 - bytes * 8);
}

/* Whether a value is an element: mostly the one that was found last, or a neighbor of it, or between the two. */
static bool
is_element(MatchColumn *asked, uint64 value)
{
	const uint64 *elements = asked->elements;
	int			low = 0;
	int			high = asked->count - 1;

	if (elements[asked->at] < value)
	{
		low = Min(asked->at + 1, high);
		high = elements[low] >= value ? low : high;
	}
	else
	{
		high = asked->at;
		low = high > 0 && elements[high - 1] < value ? high : 0;
	}
	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (elements[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	if (elements[low] != value)
		return false;
	asked->at = low;
	return true;
}

static inline bool
column_matches(MatchColumn *asked, const TreeKeyView *view)
{
	const KeyColumn *column = asked->column;
	const bool	flag = column->null_at < 0 ? view->high : norm_integer(view->norm, column->null_at, 1) != 0;
	uint64		value;

	if (flag != key_null_flag(column, asked->null))
		return false;
	if (asked->null)
		return true;
	value = norm_integer(view->norm, column->at, column->bytes);
	return asked->count > 0 ? is_element(asked, value) : value >= asked->low && value <= asked->high;
}

bool
scan_match_batch(ScanMatch *match, ScanKeys *keys, int from, const TreeScan *tree_scan, const TreeBatch *batch)
{
	const int	columns = scan_keys_columns(keys);
	TreeKeyView views[TREE_BATCH_MAX];

	if (!match->made)
		match->able = take_columns(match, keys);
	match->made = true;
	if (!match->able)
		return false;
	tree_batch_views(tree_scan, batch, views);
	for (int i = 0; i < batch->count; i++)
	{
		int			column = from;

		while (column < columns && column_matches(&match->column[column], &views[i]))
			column++;
		match->matches[i] = column == columns;
	}
	return true;
}
