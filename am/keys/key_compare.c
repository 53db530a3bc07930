/*
 * key_compare.c
 *		The comparator: keys with each other, and with what a scan binds, where integers do not decide.
 */
#include "am/base/sherman.h"

#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "am/keys/key_layout.h"

/* Whether a function is compiled: such as run no query. */
static bool
is_compiled(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			language;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;
	ReleaseSysCache(tuple);
	return language == INTERNALlanguageId || language == ClanguageId;
}

bool
sherman_keys_compare_alone(const ShermanKeys *keys)
{
	if (keys->format.lossless)
		return true;
	for (int i = 0; i < keys->columns; i++)
	{
		Oid			type = keys->column[i].type;

		if (!is_compiled(keys->column[i].order_proc))
			return false;
		/* They call the operator class of what they consist of. */
		if (type == ANYARRAYOID || type == ANYRANGEOID || type == ANYMULTIRANGEOID || type == RECORDOID)
			return false;
	}
	return true;
}

void
keys_prepare_sort(ShermanKeys *keys)
{
	MemoryContext old;

	if (keys->sort_ready)
		return;
	old = MemoryContextSwitchTo(keys->context);
	for (int i = 0; i < keys->columns; i++)
	{
		KeyColumn  *column = &keys->column[i];
		SortSupport sort = &column->sort;

		memset(sort, 0, sizeof(*sort));
		sort->ssup_cxt = keys->context;
		sort->ssup_collation = column->collation;
		sort->ssup_reverse = column->descending;
		sort->ssup_nulls_first = column->nulls_first;
		sort->ssup_attno = i + 1;
		if (OidIsValid(column->sort_proc))
			OidFunctionCall1(column->sort_proc, PointerGetDatum(sort));
		if (sort->comparator == NULL)
			PrepareSortSupportComparisonShim(column->order_proc, sort);
	}
	MemoryContextSwitchTo(old);
	keys->sort_ready = true;
}

/* The part of a bound that is integers. */
static int
compare_normalized(const TreeBound *bound, const TreeKey *entry)
{
	int			left = bound->norm_length;

	if (!bound->norm_bits_valid)
		return 0;
	if (bound->key.high != entry->high)
		return bound->key.high ? 1 : -1;
	for (int i = 0; left > 0; i++, left -= 8)
	{
		uint64		mask = left >= 8 ? ~UINT64CONST(0) : ~UINT64CONST(0) << (64 - left * 8);
		uint64		ours = bound->key.norm[i] & mask;
		uint64		theirs = entry->norm[i] & mask;

		if (ours != theirs)
			return ours < theirs ? -1 : 1;
	}
	return 0;
}

/* Two whole keys whose normalized keys tie. */
static int
compare_images(ShermanKeys *keys, const TreeKey *left, const TreeKey *right)
{
	KeyReader	left_reader;
	KeyReader	right_reader;

	if (left->cut || right->cut)
		return (int) right->cut - (int) left->cut;

	key_reader_open(&left_reader, keys, left);
	key_reader_open(&right_reader, keys, right);
	for (int i = keys->whole; i < keys->columns; i++)
	{
		bool		left_null;
		bool		right_null;
		Datum		left_value = key_reader_column(&left_reader, i, &left_null);
		Datum		right_value = key_reader_column(&right_reader, i, &right_null);
		int			order = ApplySortComparator(left_value, left_null, right_value, right_null,
												&keys->column[i].sort);

		if (order != 0)
			return order;
	}
	return 0;
}

/* The bound's column against the entry's. */
static int
compare_argument(KeyColumn *column, const ShermanSearchColumn *bound, Datum value, bool isnull)
{
	int			order;

	if (bound->compare == NULL || bound->isnull || isnull)
		return ApplySortComparator(bound->value, bound->isnull, value, isnull, &column->sort);

	order = DatumGetInt32(FunctionCall2Coll(bound->compare, column->collation, value, bound->value));
	if (!column->descending)
		INVERT_COMPARE_RESULT(order);
	return order;
}

/*
 * The bound's column against a cut separator's, in normalized bytes.  The separator is below all keys that
 * begin with its bytes: a bound that agrees with it as far as it goes, and binds a column that it does not
 * hold whole, is behind it. Sets *decided to false when this column ties.
 */
static int
compare_cut(KeyReader *reader, int i, const ShermanSearchColumn *bound, bool *decided)
{
	KeyColumn  *column = &reader->keys->column[i];
	uint8		stored[KEY_NORM_MAX];
	uint8		wanted[KEY_NORM_MAX];
	Normalized	result;
	bool		flag;
	int			order;

	*decided = true;
	if (i >= reader->keys->in_norm)
		return 1;
	key_bytes_from_words(reader->keys, reader->key.norm, stored);
	flag = i == 0 ? reader->key.high : stored[column->null_at] != 0;
	if (flag != key_null_flag(column, bound->isnull))
		return flag ? -1 : 1;
	*decided = false;
	if (bound->isnull)
		return 0;

	result = normalize_argument(column->kind, column->type, bound->type, bound->value, wanted, column->bytes);
	if (result == NORMALIZED_NOT && column->whole)
	{
		bool		isnull;
		Datum		value = key_reader_column(reader, i, &isnull);

		order = compare_argument(column, bound, value, isnull);
		*decided = order != 0;
		return order;
	}
	if (result != NORMALIZED_NOT)
	{
		if (column->descending)
			key_invert_bytes(wanted, column->bytes);
		order = memcmp(wanted, stored + column->at, column->bytes);
		if (order == 0 && (result == NORMALIZED_BELOW || result == NORMALIZED_ABOVE))
			order = (result == NORMALIZED_ABOVE) != column->descending ? 1 : -1;
		if (order != 0 || column->whole)
		{
			*decided = order != 0;
			return order;
		}
	}
	*decided = true;
	return 1;
}

/* What a scan binds against an entry. */
static int
compare_search(ShermanKeys *keys, const ShermanSearch *search, const TreeKey *entry)
{
	KeyReader	reader;

	key_reader_open(&reader, keys, entry);
	for (int i = search->whole; i < search->columns; i++)
	{
		int			order;

		if (entry->cut)
		{
			bool		decided;

			order = compare_cut(&reader, i, &search->column[i], &decided);
			if (decided)
				return order;
		}
		else
		{
			bool		isnull;
			Datum		value = key_reader_column(&reader, i, &isnull);

			order = compare_argument(&keys->column[i], &search->column[i], value, isnull);
			if (order != 0)
				return order;
		}
	}
	return 0;
}

int
sherman_keys_compare(void *argument, const TreeBound *bound, const TreeKey *entry)
{
	ShermanKeys *keys = argument;
	int			order = compare_normalized(bound, entry);

	if (order != 0)
		return order;
	keys_prepare_sort(keys);
	if (bound->argument != NULL)
		return compare_search(keys, bound->argument, entry);
	return compare_images(keys, &bound->key, entry);
}
