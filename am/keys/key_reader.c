/*
 * key_reader.c
 *		Entries as rows again: single columns, and whole index tuples.
 *
 * A column comes from the normalized key where that holds it whole and without loss, and else from the image, which
 * is an index tuple, or what makes one with the normalized key (brief.c). Both come from a memory node: every length in
 * them is checked.
 */
#include "am/base/sherman.h"

#include "access/itup.h"

#include "am/keys/key_layout.h"

Size
key_data_bytes(const ShermanKeys *keys, const bool *isnull, bool first_null)
{
	const TupleDesc descriptor = keys->descriptor;
	Size		data = 0;

	for (int i = 0; i < keys->columns; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (!isnull[i])
			data = att_align_nominal(data, attribute->attalign) + attribute->attlen;
	}
	/* The gap before a value of variable length depends on the value. */
	if (!first_null && keys->columns < descriptor->natts &&
		TupleDescAttr(descriptor, keys->columns)->attlen > 0)
		data = att_align_nominal(data, TupleDescAttr(descriptor, keys->columns)->attalign);
	return data;
}

/* A column that the normalized key has without loss, from its bytes. By-reference values lie in `room`. */
static Datum
restore_column(const KeyReader *reader, int i, const uint8 *bytes, void *room, bool *isnull)
{
	const KeyColumn *column = &reader->keys->column[i];
	bool		flag = i == 0 ? reader->key.high : bytes[column->null_at] != 0;

	Assert(key_has_column(column));
	*isnull = flag != column->nulls_first;
	return *isnull ? (Datum) 0 : key_restore_value(column, bytes, room);
}

/* All key columns, of which each is in the key. Returns whether one is NULL. */
static bool
restore_columns(KeyReader *reader, Datum *values, bool *isnull)
{
	uint8		bytes[KEY_NORM_MAX];
	bool		any_null = false;

	key_bytes_from_words(reader->keys, reader->key.norm, bytes);
	for (int i = 0; i < reader->keys->columns; i++)
	{
		values[i] = restore_column(reader, i, bytes, reader->restored[i], &isnull[i]);
		any_null |= isnull[i];
	}
	return any_null;
}

/*
 * Writes the columns, which are in the key all of them, as an index tuple's data.  `bitmap`: of those that are
 * not NULL, or NULL where none is.  Returns the end of the data.
 */
static char *
write_columns(const ShermanKeys *keys, const Datum *values, const bool *isnull, char *data, uint8 *bitmap)
{
	char	   *end = data;

	for (int i = 0; i < keys->columns; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(keys->descriptor, i);

		if (isnull[i])
			continue;
		if (bitmap != NULL)
			bitmap[i / BITS_PER_BYTE] |= (uint8) (1 << (i % BITS_PER_BYTE));
		end = key_align_with_zeros(data, end, attribute->attalign);
		if (attribute->attbyval)
			store_att_byval(end, values[i], attribute->attlen);
		else
			memcpy(end, DatumGetPointer(values[i]), attribute->attlen);
		end += attribute->attlen;
	}
	return end;
}

/* Zeros up to where the alignment ends; of the lengths that are frequent without a call. */
static inline void
clear_data(char *data, int bytes)
{
	if (bytes <= 8)
		memset(data, 0, 8);
	else if (bytes <= 16)
		memset(data, 0, 16);
	else
		memset(data, 0, MAXALIGN(bytes));
}

/* write_integers() behind the first column. */
static pg_noinline bool
write_further_integers(const ShermanKeys *keys, const uint64 *words, char *data)
{
	for (int i = 1; i < keys->columns; i++)
	{
		const KeyColumn *column = &keys->column[i];

		if ((key_words_integer(words, column->null_at, 1) != 0) != key_null_flag(column, false))
			return false;
		key_write_integer(data + column->data_at,
						  key_words_integer(words, column->at, column->bytes) ^ column->inverted, column->bytes);
	}
	return true;
}

/*
 * The short way for keys that are integers: writes the key columns' data, and zeros up to the alignment's end.  False:
 * one of them is NULL, and what was written means nothing.
 */
static inline bool
write_integers(const ShermanKeys *keys, const TreeKeyView *key, char *data)
{
	const KeyColumn *first = &keys->column[0];

	if (key->high != key_null_flag(first, false))
		return false;
	clear_data(data, keys->data_bytes);
	key_write_integer(data, (key->norm[0] >> (64 - first->bytes * 8)) ^ first->inverted, first->bytes);
	return keys->columns == 1 || write_further_integers(keys, key->norm, data);
}

static void
report_image(const TreeKeyView *key, Size size)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("key image of %d bytes in a sherman index stands for %zu", key->image_bytes, size),
			 errhint("REINDEX the index.")));
}

/* Copies `count` bytes of the image from `from` on, or zeros where it ends. */
static inline void
copy_image(const TreeKeyView *key, Size from, Size count, char *to)
{
	Size		stored = key->image_bytes > from ? Min(count, key->image_bytes - from) : 0;

	memcpy(to, key->image + from, stored);
	if (count > stored)
		memset(to + stored, 0, count - stored);
}

/*
 * The tuple's t_info, whose size is one that a tuple may have; its head, with the bitmap if there is one, is copied
 * to the reader.
 */
static unsigned short
copy_head(KeyReader *reader)
{
	const TreeKeyView *key = &reader->key;
	unsigned short info;
	Size		start;

	if (key->image == NULL || key->image_bytes < sizeof(info))
		report_image(key, 0);
	memcpy(&info, key->image, sizeof(info));
	start = IndexInfoFindDataOffset(info);
	if ((info & INDEX_SIZE_MASK) < start || (info & INDEX_SIZE_MASK) > KEY_TUPLE_MAX_BYTES)
		report_image(key, info & INDEX_SIZE_MASK);
	reader->tuple->t_info = info;
	if (start > sizeof(IndexTupleData))
		copy_image(key, sizeof(info), start - sizeof(IndexTupleData), (char *) (reader->tuple + 1));
	return info;
}

/* Puts the key columns' data, which the image lacks, at the beginning. Returns how many bytes that are. */
static Size
insert_key_data(KeyReader *reader, unsigned short info)
{
	const ShermanKeys *keys = reader->keys;
	const uint8 *bitmap = (const uint8 *) (reader->tuple + 1);
	char	   *data = (char *) reader->tuple + IndexInfoFindDataOffset(info);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	bool		first_null = (info & INDEX_NULL_MASK) != 0 && att_isnull(keys->columns, bitmap);
	char	   *end;
	Size		bytes;

	if (keys->integers && (info & INDEX_NULL_MASK) == 0 && write_integers(keys, &reader->key, data))
		return keys->data_bytes;
	restore_columns(reader, values, isnull);
	bytes = key_data_bytes(keys, isnull, first_null);
	end = write_columns(keys, values, isnull, data, NULL);
	memset(end, 0, data + bytes - end);
	return bytes;
}

/* The tuple of an entry whose image is a whole one. */
static void
whole_image_tuple(KeyReader *reader)
{
	const TreeKeyView *key = &reader->key;
	unsigned short info = copy_head(reader);
	Size		size;
	Size		start;
	Size		inserted;

	size = info & INDEX_SIZE_MASK;
	start = IndexInfoFindDataOffset(info);
	inserted = reader->keys->exact ? insert_key_data(reader, info) : 0;
	if (start + inserted > size || KEY_IMAGE_START + key->image_bytes + inserted > size)
		report_image(key, size);
	copy_image(key, start - KEY_IMAGE_START, size - start - inserted, (char *) reader->tuple + start + inserted);
}

/* The entry's image as an index tuple again. */
static IndexTuple
image_tuple(KeyReader *reader)
{
	TreeKeyView *key = &reader->key;
	bool		brief = reader->keys->brief;

	if (reader->formed)
		return reader->tuple;
	if (brief && (key->image == NULL || key->image_bytes < BRIEF_HEAD_BYTES))
		report_image(key, 0);
	if (brief && (key->image[0] & BRIEF_WHOLE) != 0)
	{
		key->image += BRIEF_HEAD_BYTES;
		key->image_bytes -= BRIEF_HEAD_BYTES;
		brief = false;
	}
	if (!brief)
		whole_image_tuple(reader);
	else if (!brief_tuple(reader))
		report_image(key, 0);
	reader->formed = true;
	return reader->tuple;
}

Datum
key_reader_column(KeyReader *reader, int column, bool *isnull)
{
	uint8		bytes[KEY_NORM_MAX];

	if (!key_has_column(&reader->keys->column[column]))
		return index_getattr(image_tuple(reader), column + 1, reader->keys->descriptor, isnull);
	key_bytes_from_words(reader->keys, reader->key.norm, bytes);
	return restore_column(reader, column, bytes, reader->restored[column], isnull);
}

/* The tuple of an entry without an image. */
static void
form_tuple(KeyReader *reader)
{
	const ShermanKeys *keys = reader->keys;
	IndexTuple	tuple = reader->tuple;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	bool		any_null;
	Size		start;
	char	   *end;

	reader->formed = true;
	if (keys->integers && write_integers(keys, &reader->key, (char *) (tuple + 1)))
	{
		tuple->t_info = (unsigned short) (sizeof(IndexTupleData) + MAXALIGN(keys->data_bytes));
		return;
	}
	any_null = restore_columns(reader, values, isnull);
	start = IndexInfoFindDataOffset(any_null ? INDEX_NULL_MASK : 0);
	memset(tuple + 1, 0, start - sizeof(IndexTupleData));
	end = write_columns(keys, values, isnull, (char *) reader->tuple + start,
						any_null ? (uint8 *) (tuple + 1) : NULL);
	end = key_align_with_zeros((char *) reader->tuple, end, TYPALIGN_DOUBLE);
	tuple->t_info = (unsigned short) ((end - (char *) reader->tuple) | (any_null ? INDEX_NULL_MASK : 0));
}

bool
key_integer_tuple(const ShermanKeys *keys, const TreeKeyView *key, IndexTuple tuple)
{
	char	   *data = (char *) (tuple + 1);
	Size		size = sizeof(IndexTupleData) + MAXALIGN(keys->data_bytes);
	Size		stored;
	Size		rest;

	Assert(keys->integers);
	if (keys->format.lossless)
	{
		tuple->t_info = (unsigned short) size;
		return write_integers(keys, key, data);
	}
	if (key->image == NULL || key->image_bytes < sizeof(tuple->t_info))
		return false;
	memcpy(&tuple->t_info, key->image, sizeof(tuple->t_info));
	size = IndexTupleSize(tuple);
	stored = key->image_bytes - sizeof(tuple->t_info);
	if (IndexTupleHasNulls(tuple) || size > KEY_TUPLE_MAX_BYTES || size < sizeof(IndexTupleData) + keys->data_bytes)
		return false;
	rest = size - sizeof(IndexTupleData) - keys->data_bytes;
	if (stored > rest || !write_integers(keys, key, data))
		return false;
	data += keys->data_bytes;
	clear_data(data, (int) rest);
	memcpy(data, key->image + sizeof(tuple->t_info), stored);
	return true;
}

IndexTuple
key_reader_tuple(KeyReader *reader)
{
	if (!reader->keys->format.lossless)
		(void) image_tuple(reader);
	else if (!reader->formed)
		form_tuple(reader);
	return reader->tuple;
}

void
sherman_keys_datums(ShermanKeys *keys, const TreeKey *key, Datum *values, bool *isnull)
{
	KeyReader  *reader = palloc(sizeof(KeyReader));

	key_reader_open(reader, keys, key);
	index_deform_tuple(key_reader_tuple(reader), keys->descriptor, values, isnull);
}
