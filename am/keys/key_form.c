/*
 * key_form.c
 *		Rows to keys.
 */
#include "am/base/sherman.h"

#include "access/heaptoast.h"
#include "access/itup.h"
#include "utils/lsyscache.h"

#include "am/keys/key_layout.h"

/* Offsets that fit a cell. */
#define KEY_MAX_OFFSET 4095

StaticAssertDecl(KEY_TUPLE_MAX_BYTES <= INDEX_SIZE_MASK, "an index tuple knows its size");
StaticAssertDecl(MaxHeapTuplesPerPage <= KEY_MAX_OFFSET, "only rows of other table access methods are refused");

void
keys_form_normalized(const ShermanKeys *keys, const Datum *values, const bool *isnull, TreeKey *key)
{
	uint8		bytes[KEY_NORM_MAX];

	memset(bytes, 0, keys->format.norm_bytes);
	for (int i = 0; i < keys->in_norm; i++)
	{
		const KeyColumn *column = &keys->column[i];
		bool		flag = key_null_flag(column, isnull[i]);

		if (i == 0)
			key->high = flag;
		else
			bytes[column->null_at] = flag;
		if (isnull[i] || column->bytes == 0)
			continue;
		normalize_value(column->kind, values[i], bytes + column->at, column->bytes);
		if (column->descending)
			key_invert_bytes(bytes + column->at, column->bytes);
	}
	key_words_from_bytes(keys, bytes, key->norm);
}

/* Takes the key columns' data out of a tuple of `size` bytes. Returns what is left. */
static Size
leave_out_key_data(const ShermanKeys *keys, IndexTuple tuple, Size size, const bool *isnull)
{
	char	   *data = (char *) tuple + IndexInfoFindDataOffset(tuple->t_info);
	Size		left_out = key_data_bytes(keys, isnull, isnull[keys->columns]);

	memmove(data, data + left_out, (char *) tuple + size - (data + left_out));
	return size - left_out;
}

static void
report_too_large(Relation index, Size size, ItemPointer tid)
{
	char	   *table = get_rel_name(index->rd_index->indrelid);

	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size %zu exceeds sherman maximum %zu for index \"%s\"",
					size, (Size) KEY_TUPLE_MAX_BYTES, RelationGetRelationName(index)),
			 errdetail("Index row references tuple (%u,%u) in relation \"%s\".",
					   ItemPointerGetBlockNumberNoCheck(tid), ItemPointerGetOffsetNumberNoCheck(tid),
					   table ? table : "?"),
			 errhint("Values larger than 1/3 of a buffer page cannot be indexed.\n"
					 "Consider a function index of an MD5 hash of the value, "
					 "or use full text indexing.")));
}

/* The row as an index tuple. Raises if it is too large. */
static IndexTuple
form_tuple(const ShermanKeys *keys, Relation index, Datum *values, bool *isnull, ItemPointer tid)
{
	IndexTuple	tuple = index_form_tuple(keys->descriptor, values, isnull);

	if (IndexTupleSize(tuple) > KEY_TUPLE_MAX_BYTES)
		report_too_large(index, IndexTupleSize(tuple), tid);
	return tuple;
}

/* The length of a tuple without the zeros at its end. */
static Size
trimmed_size(IndexTuple tuple, Size size)
{
	while (size > sizeof(IndexTupleData) && ((char *) tuple)[size - 1] == 0)
		size--;
	return size;
}

/*
 * The brief image of a row that has been formed as a tuple, whose values may be compressed.  It is never longer than the tuple:
 * each column has a length here and a header there.
 */
static Size
form_brief_of_tuple(const ShermanKeys *keys, IndexTuple tuple, uint8 *image)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	Size		size;

	index_deform_tuple(tuple, keys->descriptor, values, isnull);
	size = brief_form(keys, values, isnull, KEY_TUPLE_MAX_BYTES, image);
	if (size > 0)
		return size;
	size = trimmed_size(tuple, IndexTupleSize(tuple)) - KEY_IMAGE_START;
	image[0] = BRIEF_WHOLE;
	memcpy(image + BRIEF_HEAD_BYTES, (char *) tuple + KEY_IMAGE_START, size);
	return BRIEF_HEAD_BYTES + size;
}

/* Images up to this length are of rows that fit an index tuple: a column takes a header and a gap there at most. */
#define BRIEF_FITS_BYTES 1024

StaticAssertDecl(BRIEF_FITS_BYTES + TOAST_INDEX_TARGET + KEY_NORM_MAX + INDEX_MAX_KEYS * (VARHDRSZ + MAXIMUM_ALIGNOF) +
				 sizeof(IndexTupleData) + 2 * MAXIMUM_ALIGNOF < KEY_TUPLE_MAX_BYTES,
				 "also with the blanks of a bpchar and what the normalized key has");
StaticAssertDecl(KEY_TUPLE_MAX_BYTES - KEY_IMAGE_START + BRIEF_HEAD_BYTES <= TREE_IMAGE_MAX_BYTES,
				 "there is room for a whole image behind its head");

/* The brief image of a row. No tuple is formed of one without long values, which PostgreSQL would compress. */
static void
form_brief(const ShermanKeys *keys, Relation index, Datum *values, bool *isnull, ItemPointer tid, TreeKey *key)
{
	uint8		image[TREE_IMAGE_MAX_BYTES];
	Size		size = brief_form(keys, values, isnull, TOAST_INDEX_TARGET, image);

	if (size == 0 || size > BRIEF_FITS_BYTES)
		size = form_brief_of_tuple(keys, form_tuple(keys, index, values, isnull, tid), image);
	key->image = memcpy(palloc(size), image, size);
	key->image_bytes = (uint16) size;
}

void
keys_form_rest(ShermanKeys *keys, Relation index, Datum *values, bool *isnull, ItemPointer tid, TreeKey *key)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	IndexTuple	tuple;
	Size		size;

	if (offset > KEY_MAX_OFFSET)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"sherman\" does not support row offsets above %d", KEY_MAX_OFFSET),
				 errdetail("Index \"%s\" was given row (%u,%u).", RelationGetRelationName(index),
						   ItemPointerGetBlockNumberNoCheck(tid), offset)));

	key->cut = false;
	key->block = ItemPointerGetBlockNumberNoCheck(tid);
	key->offset = offset;
	key->image = NULL;
	key->image_bytes = 0;
	if (keys->format.lossless)
		return;
	if (keys->brief)
	{
		form_brief(keys, index, values, isnull, tid, key);
		return;
	}
	tuple = form_tuple(keys, index, values, isnull, tid);
	size = IndexTupleSize(tuple);
	if (keys->exact)
		size = leave_out_key_data(keys, tuple, size, isnull);
	key->image = (const uint8 *) tuple + KEY_IMAGE_START;
	key->image_bytes = (uint16) (trimmed_size(tuple, size) - KEY_IMAGE_START);
}

void
sherman_keys_form(ShermanKeys *keys, Relation index, Datum *values, bool *isnull, ItemPointer tid,
				  TreeKey *key)
{
	keys_form_normalized(keys, values, isnull, key);
	keys_form_rest(keys, index, values, isnull, tid, key);
}

void
keys_entry_bound(const ShermanKeys *keys, const TreeKey *key, TreeBound *bound)
{
	bound->key = *key;
	bound->norm_bits_valid = 1;
	bound->norm_length = keys->format.norm_bytes;
	bound->norm_exact = keys->exact;
	bound->side = 0;
	bound->argument = NULL;
}
