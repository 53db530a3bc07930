/*
 * key_reader.c
 *		Entries as rows again: single columns, and whole index tuples.
 *
 * A column comes from the normalized key where that holds it whole and without loss, and else from the image,
 * which is an index tuple.  Both come from a memory node: no length in them is believed.
 */
#include "sherman.h"

#include "access/itup.h"
#include "access/tupmacs.h"
#include "port/pg_bswap.h"

#include "keys.h"

void
key_bytes_from_words(const ShermanKeys *keys, const uint64 *words, uint8 *bytes)
{
	for (int i = 0; i < keys->format.norm_bytes / 8; i++)
	{
		uint64		word = pg_hton64(words[i]);

		memcpy(bytes + i * 8, &word, sizeof(word));
	}
}

/* Whether a column's NULL-ness and value stand in the normalized key, without loss. */
static inline bool
column_in_key(const KeyColumn *column)
{
	return column->whole && NORMALIZE_IS_LOSSLESS(column->kind);
}

/* A column that does, from the key's bytes. By-reference values lie in `room`. */
static Datum
restore_column(const KeyReader *reader, int i, const uint8 *bytes, void *room, bool *isnull)
{
	const KeyColumn *column = &reader->keys->column[i];
	uint8		inverted[NORMALIZE_RESTORE_BYTES];
	bool		flag = i == 0 ? reader->key->high : bytes[column->null_at] != 0;

	Assert(column_in_key(column));
	*isnull = flag != column->nulls_first;
	if (*isnull)
		return (Datum) 0;
	if (!column->descending)
		return normalize_restore(column->kind, bytes + column->at, room);
	memcpy(inverted, bytes + column->at, column->bytes);
	key_invert_bytes(inverted, column->bytes);
	return normalize_restore(column->kind, inverted, room);
}

/* All key columns, of which each is in the key. Returns whether one is NULL. */
static bool
restore_columns(KeyReader *reader, Datum *values, bool *isnull)
{
	uint8		bytes[KEY_NORM_MAX];
	bool		any_null = false;

	key_bytes_from_words(reader->keys, reader->key->norm, bytes);
	for (int i = 0; i < reader->keys->columns; i++)
	{
		values[i] = restore_column(reader, i, bytes, reader->restored[i], &isnull[i]);
		any_null |= isnull[i];
	}
	return any_null;
}

/* Goes on to where the alignment allows. Gaps are zeros, as in a tuple of PostgreSQL's own. */
static char *
align_with_zeros(char *data, char *end, char alignment)
{
	char	   *next = data + att_align_nominal(end - data, alignment);

	while (end < next)
		*end++ = 0;
	return end;
}

/*
 * Writes the columns, which are in the key all of them, as an index tuple's data.  `bitmap`: of those that are
 * not NULL, or NULL where none is.  Returns the end of the data.
 */
static char *
write_columns(const ShermanKeys *keys, const Datum *values, const bool *isnull, char *data, bits8 *bitmap)
{
	char	   *end = data;

	for (int i = 0; i < keys->columns; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(keys->descriptor, i);

		if (isnull[i])
			continue;
		if (bitmap != NULL)
			bitmap[i / BITS_PER_BYTE] |= (bits8) (1 << (i % BITS_PER_BYTE));
		end = align_with_zeros(data, end, attribute->attalign);
		if (attribute->attbyval)
			store_att_byval(end, values[i], attribute->attlen);
		else
			memcpy(end, DatumGetPointer(values[i]), attribute->attlen);
		end += attribute->attlen;
	}
	return end;
}

static void
report_image(const TreeKey *key, Size size)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("key image of %d bytes in a sherman index stands for %zu", key->image_bytes, size),
			 errhint("REINDEX the index.")));
}

/* Copies the image to its place in the reader, with the zeros at its end. Returns the tuple's size. */
static Size
copy_image(KeyReader *reader)
{
	const TreeKey *key = reader->key;
	IndexTuple	tuple = &reader->tuple.header;
	Size		stored = KEY_IMAGE_START + key->image_bytes;
	Size		size;

	if (key->image == NULL || key->image_bytes < sizeof(tuple->t_info) || stored > KEY_TUPLE_MAX_BYTES)
		report_image(key, 0);
	memcpy(reader->tuple.bytes + KEY_IMAGE_START, key->image, key->image_bytes);
	size = IndexTupleSize(tuple);
	if (size < stored || size > KEY_TUPLE_MAX_BYTES)
		report_image(key, size);
	memset(reader->tuple.bytes + stored, 0, size - stored);
	return size;
}

/* Puts the key columns' data, which the image lacks, into the tuple of this size. */
static void
insert_key_data(KeyReader *reader, Size size)
{
	const ShermanKeys *keys = reader->keys;
	char	   *data = reader->tuple.bytes + IndexInfoFindDataOffset(reader->tuple.header.t_info);
	bool		has_nulls = IndexTupleHasNulls(&reader->tuple.header);
	const bits8 *bitmap = (const bits8 *) (&reader->tuple.header + 1);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	Size		bytes;
	Size		room = reader->tuple.bytes + size - data;

	restore_columns(reader, values, isnull);
	bytes = key_data_bytes(keys, isnull, has_nulls && att_isnull(keys->columns, bitmap));
	if (reader->tuple.bytes + size < data || bytes > room)
		report_image(reader->key, size);
	memmove(data + bytes, data, room - bytes);
	memset(data, 0, bytes);
	(void) write_columns(keys, values, isnull, data, NULL);
}

/* The entry's image as an index tuple again. */
static IndexTuple
image_tuple(KeyReader *reader)
{
	if (!reader->formed)
	{
		Size		size = copy_image(reader);

		if (reader->keys->exact)
			insert_key_data(reader, size);
		reader->formed = true;
	}
	return &reader->tuple.header;
}

Datum
key_reader_column(KeyReader *reader, int column, bool *isnull)
{
	uint8		bytes[KEY_NORM_MAX];

	if (!column_in_key(&reader->keys->column[column]))
		return index_getattr(image_tuple(reader), column + 1, reader->keys->descriptor, isnull);
	key_bytes_from_words(reader->keys, reader->key->norm, bytes);
	return restore_column(reader, column, bytes, reader->restored[column], isnull);
}

/* The tuple of an entry without an image. */
static void
form_tuple(KeyReader *reader)
{
	const ShermanKeys *keys = reader->keys;
	IndexTuple	tuple = &reader->tuple.header;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	bool		any_null;
	Size		start;
	char	   *end;

	any_null = restore_columns(reader, values, isnull);
	start = IndexInfoFindDataOffset(any_null ? INDEX_NULL_MASK : 0);
	memset(tuple + 1, 0, start - sizeof(IndexTupleData));
	end = write_columns(keys, values, isnull, reader->tuple.bytes + start,
						any_null ? (bits8 *) (tuple + 1) : NULL);
	end = align_with_zeros(reader->tuple.bytes, end, TYPALIGN_DOUBLE);
	tuple->t_info = (unsigned short) ((end - reader->tuple.bytes) | (any_null ? INDEX_NULL_MASK : 0));
	reader->formed = true;
}

IndexTuple
key_reader_tuple(KeyReader *reader)
{
	if (!reader->keys->format.lossless)
		(void) image_tuple(reader);
	else if (!reader->formed)
		form_tuple(reader);
	ItemPointerSet(&reader->tuple.header.t_tid, reader->key->block, reader->key->offset);
	return &reader->tuple.header;
}

void
sherman_keys_datums(ShermanKeys *keys, const TreeKey *key, Datum *values, bool *isnull)
{
	KeyReader  *reader = palloc(sizeof(KeyReader));

	key_reader_open(reader, keys, key);
	index_deform_tuple(key_reader_tuple(reader), keys->descriptor, values, isnull);
}
