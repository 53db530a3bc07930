/*
 * key_names.c
 *		The names of the key locks of a unique index: hashes of a key.
 *
 * Equal keys must have equal names in all processes at any time. They have the same normalized bytes, however few of
 * the columns these hold. Of the others a hash counts only where its function follows from what cannot change: the
 * hash class of a built-in type, which cannot be dropped, or get a second default class beside it; or bit's and
 * varbit's own order, by which equal values have the same bits. A class that somebody created may be there for one
 * statement and not for another. So it makes a second name, of a lock that is taken beside the first: sessions that know
 * the class share the first, the others take it exclusively. A session that uses a class keeps it from being dropped until
 * its transaction ends: no two of them use different ones.
 */
#include "am/base/sherman.h"

#include "access/hash.h"
#include "access/stratnum.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "am/access/unique.h"
#include "am/keys/keys.h"

/* The type's own default hash class; InvalidOid: it has none, though one of a type that is stored alike may serve it. */
static Oid
own_hash_class(Oid type)
{
	Oid			class = GetDefaultOpClass(type, HASH_AM_OID);
	Oid			family;
	Oid			input;

	if (!OidIsValid(class) || !get_opclass_opfamily_and_input_type(class, &family, &input) || input != type)
		return InvalidOid;
	return class;
}

static bool
has_built_in_class(Oid type)
{
	Oid			class = OidIsValid(type) ? own_hash_class(type) : InvalidOid;

	return OidIsValid(class) && IsPinnedObject(OperatorClassRelationId, class);
}

/* The class's hash function, if its equality is the index's. */
static Oid
hash_function(const KeyColumn *column, Oid class)
{
	Oid			family = get_opclass_family(class);
	Oid			equal = get_opfamily_member(family, column->type, column->type, HTEqualStrategyNumber);

	if (!OidIsValid(equal) ||
		equal != get_opfamily_member(column->family, column->type, column->type, BTEqualStrategyNumber))
		return InvalidOid;
	return get_opfamily_proc(family, column->type, column->type, HASHSTANDARD_PROC);
}

/*
 * Whether the hash functions of arrays and ranges of this element type are available for ever: they call those of
 * their elements.
 */
static bool
parts_have_built_in_class(Oid input, Oid type)
{
	switch (input)
	{
		case ANYARRAYOID:
			return has_built_in_class(get_base_element_type(type));
		case ANYRANGEOID:
			return has_built_in_class(get_range_subtype(getBaseType(type)));
		case ANYMULTIRANGEOID:
			return has_built_in_class(get_range_subtype(get_multirange_range(getBaseType(type))));
		default:
			return input != RECORDOID;
	}
}

/* What never changes while the index is as it is: found out once for its keys. */
static void
find_naming(ShermanKeys *keys)
{
	for (int i = keys->whole; i < keys->columns; i++)
	{
		KeyColumn  *column = &keys->column[i];
		Oid			function = InvalidOid;

		column->naming = KEY_UNNAMED;
		if (column->order_proc == F_BITCMP || column->order_proc == F_VARBITCMP)
			column->naming = KEY_BY_IMAGE;
		else if (!has_built_in_class(column->type))
			column->naming = IsPolymorphicType(column->type) ? KEY_UNNAMED : KEY_BY_OTHERS_CLASS;
		else if (parts_have_built_in_class(column->type, TupleDescAttr(keys->descriptor, i)->atttypid))
			function = hash_function(column, own_hash_class(column->type));
		if (OidIsValid(function))
		{
			column->naming = KEY_BY_HASH;
			fmgr_info_cxt(function, &column->hash, keys->context);
		}
	}
	keys->naming_ready = true;
}

/* The type's hash class as of now, which cannot be dropped before the transaction ends. */
static Oid
hold_hash_class(Oid type)
{
	Oid			held = InvalidOid;

	for (;;)
	{
		Oid			class = own_hash_class(type);

		if (!OidIsValid(class) || class == held)
			return class;
		LockDatabaseObject(OperatorClassRelationId, class, 0, AccessShareLock);
		held = class;
	}
}

/*
 * Finds the hash functions of classes that others created: once per statement.  All columns that may have one must have
 * it, or none counts, so that there are two kinds of statements, and no more.
 */
static void
find_others_functions(UniqueChecker *checker, const ShermanKeys *keys)
{
	checker->has_second = false;
	checker->ready = true;
	for (int i = keys->whole; i < keys->columns; i++)
	{
		const KeyColumn *column = &keys->column[i];
		Oid			class;
		Oid			function;

		if (column->naming != KEY_BY_OTHERS_CLASS)
			continue;
		class = hold_hash_class(column->type);
		function = OidIsValid(class) ? hash_function(column, class) : InvalidOid;
		checker->has_second = OidIsValid(function);
		if (!checker->has_second)
			return;
		checker->hash[i] = MemoryContextAlloc(checker->context, sizeof(FmgrInfo));
		fmgr_info_cxt(function, checker->hash[i], checker->context);
	}
}

static uint64
add_hash(uint64 hash, FmgrInfo *function, Oid collation, Datum value)
{
	return hash_combine64(hash, DatumGetUInt32(FunctionCall1Coll(function, collation, value)));
}

static uint32
folded(uint64 hash)
{
	return (uint32) (hash ^ hash >> 32);
}

void
key_name(UniqueChecker *checker, const UniqueRow *row, ShermanKeys *keys)
{
	uint64		hash = hash_bytes_extended((const unsigned char *) row->key->norm, keys->format.norm_bytes,
										   row->key->high);
	uint64		second;

	if (!keys->naming_ready)
		find_naming(keys);
	if (!checker->ready)
		find_others_functions(checker, keys);
	for (int i = keys->whole; i < keys->columns; i++)
	{
		KeyColumn  *column = &keys->column[i];
		Form_pg_attribute attribute = TupleDescAttr(keys->descriptor, i);

		if (row->isnull[i])
			continue;
		if (column->naming == KEY_BY_HASH)
			hash = add_hash(hash, &column->hash, column->collation, row->values[i]);
		else if (column->naming == KEY_BY_IMAGE)
			hash = hash_combine64(hash, datum_image_hash(row->values[i], attribute->attbyval, attribute->attlen));
	}
	checker->lock = folded(hash);
	second = hash;
	for (int i = keys->whole; i < keys->columns && checker->has_second; i++)
	{
		if (!row->isnull[i] && keys->column[i].naming == KEY_BY_OTHERS_CLASS)
			second = add_hash(second, checker->hash[i], keys->column[i].collation, row->values[i]);
	}
	checker->second = folded(second);
}
