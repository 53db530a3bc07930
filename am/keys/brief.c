/*
 * brief.c
 *		Brief images: written from rows, and made index tuples again together with the normalized key.
 *
 * What comes from a memory node is checked: no length leads out of the image, or out of the place for the tuple.
 */
#include "am/base/sherman.h"

#include "access/itup.h"

#include "am/keys/key_layout.h"

/* Lengths up to this one take one byte, longer ones two, with this bit set in the first. */
#define LENGTH_LONG 0x80
#define LENGTH_MAX 0x7fff

/* ---- the plan ---- */

bool
brief_serves(TupleDesc descriptor)
{
	for (int i = 0; i < descriptor->natts; i++)
	{
		if (TupleDescAttr(descriptor, i)->attlen < -1)
			return false;
	}
	return true;
}

/* What a brief image has of a key column. `column` NULL: an included one. */
static BriefPart
part_of(const KeyColumn *column, Form_pg_attribute attribute)
{
	uint64		inverted;

	if (column != NULL && key_has_column(column))
		return normalize_is_integer(column->kind, &inverted) && attribute->attbyval ? BRIEF_TOLD_INTEGER : BRIEF_TOLD;
	if (column != NULL && column->bytes > 0)
	{
		switch (column->kind)
		{
			case NORMALIZE_NAME:
				return BRIEF_NAME;
			case NORMALIZE_TEXT:
				return BRIEF_TEXT;
			case NORMALIZE_BPCHAR:
				return BRIEF_BPCHAR;
			case NORMALIZE_BYTEA:
				return BRIEF_BYTEA;
			default:
				break;
		}
	}
	if (attribute->attlen < 0)
		return BRIEF_VARLENA;
	return attribute->attlen == NAMEDATALEN ? BRIEF_TRIMMED : BRIEF_FIXED;
}

static inline bool
is_variable(BriefPart part)
{
	return part >= BRIEF_TRIMMED;
}

/* What there is in the normalized key of a column. */
static void
plan_key_column(BriefPlan *plan, BriefColumn *planned, const KeyColumn *column)
{
	planned->descending = column->descending;
	planned->at = (int16) column->at;
	planned->bytes = (int16) column->bytes;
	(void) normalize_is_integer(column->kind, &planned->inverted);
	if (column->descending)
		planned->inverted = ~planned->inverted;
	if (column->null_at >= 0)
	{
		int			shift = (int) (sizeof(uint64) - 1 - column->null_at % sizeof(uint64)) * BITS_PER_BYTE;

		plan->null_mask[column->null_at / sizeof(uint64)] |= UINT64CONST(0xff) << shift;
		plan->null_bits[column->null_at / sizeof(uint64)] |= (uint64) key_null_flag(column, false) << shift;
	}
}

void
brief_plan(ShermanKeys *keys)
{
	BriefPlan  *plan = &keys->plan;

	memset(plan, 0, sizeof(*plan));
	plan->last_variable = -1;
	plan->high = key_null_flag(&keys->column[0], false);
	for (int i = 0; i < keys->descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(keys->descriptor, i);
		const KeyColumn *column = i < keys->columns ? &keys->column[i] : NULL;
		BriefColumn *planned = &plan->column[i];

		planned->part = part_of(column, attribute);
		planned->packable = attribute->attstorage != TYPSTORAGE_PLAIN;
		planned->alignment = (uint8) att_align_nominal(1, attribute->attalign);
		planned->length = attribute->attlen;
		if (column != NULL)
			plan_key_column(plan, planned, column);
		if (is_variable(planned->part))
			plan->last_variable = i;
		else if (planned->part == BRIEF_FIXED)
			plan->fixed_bytes += attribute->attlen;
		plan->varlena |= attribute->attlen < 0;
	}
}

int
brief_fixed_image(const ShermanKeys *keys)
{
	Assert(keys->plan.last_variable < 0);
	return BRIEF_HEAD_BYTES + keys->plan.fixed_bytes;
}

/* Bytes of the bitmap: a bit for each column whose NULL-ness is not in the normalized key. */
static inline int
bitmap_bytes(const ShermanKeys *keys)
{
	return (keys->descriptor->natts - keys->in_norm + BITS_PER_BYTE - 1) / BITS_PER_BYTE;
}

/* The last column of variable length that is not NULL; -1: there is none. */
static int
last_variable(const BriefPlan *plan, const bool *isnull)
{
	int			last = plan->last_variable;

	while (last >= 0 && (isnull[last] || !is_variable(plan->column[last].part)))
		last--;
	return last;
}

/* ---- rows to images ---- */

/* What an image has of a value of variable length. */
typedef struct BriefValue
{
	const uint8 *rest;
	Size		rest_bytes;
	int			number;			/* before it; -1: none */
} BriefValue;

/* Takes off what the normalized key has of a string. False: that would not tell where the string ends. */
static bool
leave_out_prefix(const KeyColumn *column, BriefValue *value)
{
	Size		told = Min(value->rest_bytes, (Size) column->bytes);

	if (memchr(value->rest, 0, told) != NULL)
		return false;
	value->rest += told;
	value->rest_bytes -= told;
	return true;
}

/* A value of fixed length as a string, of which zeros at its end are no part. False: as leave_out_prefix(). */
static bool
look_at_fixed(const ShermanKeys *keys, int i, Datum datum, BriefValue *value)
{
	value->rest = (const uint8 *) DatumGetPointer(datum);
	value->rest_bytes = NAMEDATALEN;
	while (value->rest_bytes > 0 && value->rest[value->rest_bytes - 1] == 0)
		value->rest_bytes--;
	return keys->plan.column[i].part == BRIEF_TRIMMED || leave_out_prefix(&keys->column[i], value);
}

/* A varlena's. False: as leave_out_prefix(), or it is compressed, elsewhere, or too long. */
static bool
look_at_varlena(const ShermanKeys *keys, int i, Datum datum, Size longest, BriefValue *value)
{
	const struct varlena *varlena = (const struct varlena *) DatumGetPointer(datum);
	const KeyColumn *column = &keys->column[i];
	Size		told;

	if (VARATT_IS_EXTERNAL(varlena) || VARATT_IS_COMPRESSED(varlena) || VARSIZE_ANY(varlena) > longest)
		return false;
	value->rest = (const uint8 *) VARDATA_ANY(varlena);
	value->rest_bytes = VARSIZE_ANY_EXHDR(varlena);
	switch (keys->plan.column[i].part)
	{
		case BRIEF_TEXT:
			return leave_out_prefix(column, value);
		case BRIEF_BPCHAR:
			value->number = (int) value->rest_bytes;
			while (value->rest_bytes > 0 && value->rest[value->rest_bytes - 1] == ' ')
				value->rest_bytes--;
			value->number -= (int) value->rest_bytes;
			return leave_out_prefix(column, value);
		case BRIEF_BYTEA:
			told = Min(value->rest_bytes, (Size) column->bytes);
			value->rest += told;
			value->rest_bytes -= told;
			value->number = (int) told;
			return true;
		default:
			return true;
	}
}

static inline int
length_bytes(Size length)
{
	return length < LENGTH_LONG ? 1 : 2;
}

static inline uint8 *
put_length(uint8 *next, Size length)
{
	if (length >= LENGTH_LONG)
		*next++ = (uint8) (LENGTH_LONG | length >> BITS_PER_BYTE);
	*next++ = (uint8) length;
	return next;
}

/* Writes what an image has of a value of variable length. NULL: there is no room. */
static uint8 *
put_value(const BriefValue *value, bool last, uint8 *next, const uint8 *end)
{
	Size		bytes = value->rest_bytes + (value->number >= 0 ? length_bytes(value->number) : 0);

	if (bytes > LENGTH_MAX || bytes + length_bytes(bytes) > (Size) (end - next))
		return NULL;
	if (!last)
		next = put_length(next, bytes);
	if (value->number >= 0)
		next = put_length(next, value->number);
	memcpy(next, value->rest, value->rest_bytes);
	return next + value->rest_bytes;
}

/* Writes the head and, where a column's NULL-ness is to be told, the bitmap. */
static uint8 *
put_head(const ShermanKeys *keys, const bool *isnull, uint8 *image)
{
	uint8	   *bitmap = image + BRIEF_HEAD_BYTES;
	bool		any = false;

	for (int i = keys->in_norm; i < keys->descriptor->natts; i++)
		any |= isnull[i];
	image[0] = any ? BRIEF_NULLS : 0;
	if (!any)
		return bitmap;
	memset(bitmap, 0, bitmap_bytes(keys));
	for (int i = keys->in_norm; i < keys->descriptor->natts; i++)
	{
		int			bit = i - keys->in_norm;

		if (isnull[i])
			bitmap[bit / BITS_PER_BYTE] |= (uint8) (1 << bit % BITS_PER_BYTE);
	}
	return bitmap + bitmap_bytes(keys);
}

/* Writes the columns of fixed length. NULL: there is no room. */
static uint8 *
put_fixed(const ShermanKeys *keys, const Datum *values, const bool *isnull, uint8 *next, const uint8 *end)
{
	for (int i = 0; i < keys->descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(keys->descriptor, i);

		if (keys->plan.column[i].part != BRIEF_FIXED || isnull[i])
			continue;
		if (attribute->attlen > end - next)
			return NULL;
		if (attribute->attbyval)
			key_write_integer((char *) next, (uint64) values[i], attribute->attlen);
		else
			memcpy(next, DatumGetPointer(values[i]), attribute->attlen);
		next += attribute->attlen;
	}
	return next;
}

Size
brief_form(const ShermanKeys *keys, const Datum *values, const bool *isnull, Size longest, uint8 *image)
{
	const BriefPlan *plan = &keys->plan;
	const uint8 *end = image + TREE_IMAGE_MAX_BYTES;
	uint8	   *next = put_head(keys, isnull, image);
	int			last = last_variable(plan, isnull);

	if (plan->fixed_bytes > 0)
		next = put_fixed(keys, values, isnull, next, end);
	for (int i = 0; i <= last && next != NULL; i++)
	{
		BriefValue	value = {.number = -1};

		if (isnull[i] || !is_variable(plan->column[i].part))
			continue;
		if (TupleDescAttr(keys->descriptor, i)->attlen > 0 ? !look_at_fixed(keys, i, values[i], &value) :
			!look_at_varlena(keys, i, values[i], longest, &value))
			return 0;
		next = put_value(&value, i == last, next, end);
	}
	return next == NULL ? 0 : (Size) (next - image);
}

/* ---- images to rows ---- */

/* Where the making of a tuple is. */
typedef struct BriefReading
{
	const ShermanKeys *keys;
	const uint64 *words;
	const uint8 *fixed;			/* in the image */
	const uint8 *variable;
	const uint8 *image_end;
	char	   *end;			/* in the tuple */
	char	   *limit;
	bool		bytes_ready;
	uint8		bytes[KEY_NORM_MAX + sizeof(uint64)];	/* the words' */
} BriefReading;

/* The normalized key's bytes, which not every entry needs. */
static inline const uint8 *
key_bytes(BriefReading *reading)
{
	if (!reading->bytes_ready)
		key_bytes_from_words(reading->keys, reading->words, reading->bytes);
	reading->bytes_ready = true;
	return reading->bytes;
}

/* Whether there is room for so many bytes more, with a gap, a header, and zeros behind them. */
static inline bool
has_room(const BriefReading *reading, Size bytes)
{
	return bytes + VARHDRSZ + 2 * MAXIMUM_ALIGNOF <= (Size) (reading->limit - reading->end);
}

/* Goes on to where the alignment allows; the gap is zeros. */
static inline void
align_end(BriefReading *reading, Size alignment)
{
	memset(reading->end, 0, MAXIMUM_ALIGNOF);
	reading->end = (char *) TYPEALIGN(alignment, reading->end);
}

static bool
get_length(const uint8 **next, const uint8 *end, Size *length)
{
	if (*next >= end)
		return false;
	*length = *(*next)++;
	if (*length < LENGTH_LONG)
		return true;
	if (*next >= end)
		return false;
	*length = (*length & ~(Size) LENGTH_LONG) << BITS_PER_BYTE | *(*next)++;
	return true;
}

/* Whether no column is NULL, by the head and the normalized key. */
static inline bool
nothing_is_null(const ShermanKeys *keys, const TreeKeyView *key)
{
	const BriefPlan *plan = &keys->plan;

	if (key->image[0] != 0 || key->high != plan->high)
		return false;
	for (int i = 0; i < keys->format.norm_bytes / (int) sizeof(uint64); i++)
	{
		if ((key->norm[i] & plan->null_mask[i]) != plan->null_bits[i])
			return false;
	}
	return true;
}

/* Finds out which columns are NULL. Returns the end of the bitmap. */
static const uint8 *
find_nulls(const ShermanKeys *keys, const TreeKeyView *key, bool *isnull)
{
	const uint8 *bitmap = key->image + BRIEF_HEAD_BYTES;
	bool		told = (key->image[0] & BRIEF_NULLS) != 0;

	for (int i = 0; i < keys->in_norm; i++)
	{
		const KeyColumn *column = &keys->column[i];
		bool		flag = i == 0 ? key->high : key_words_integer(key->norm, column->null_at, 1) != 0;

		isnull[i] = flag != column->nulls_first;
	}
	for (int i = keys->in_norm; i < keys->descriptor->natts; i++)
	{
		int			bit = i - keys->in_norm;

		isnull[i] = told && (bitmap[bit / BITS_PER_BYTE] >> bit % BITS_PER_BYTE & 1) != 0;
	}
	return told ? bitmap + bitmap_bytes(keys) : bitmap;
}

/* Bytes of the columns of fixed length that are not NULL. */
static Size
fixed_bytes(const ShermanKeys *keys, const bool *isnull)
{
	Size		bytes = 0;

	for (int i = 0; i < keys->descriptor->natts; i++)
	{
		if (keys->plan.column[i].part == BRIEF_FIXED && !isnull[i])
			bytes += keys->plan.column[i].length;
	}
	return bytes;
}

/* A column that the normalized key holds whole. */
static void
write_told(BriefReading *reading, int i)
{
	uint64		room[NORMALIZE_RESTORE_BYTES / sizeof(uint64)];
	Datum		value = key_restore_value(&reading->keys->column[i], key_bytes(reading), room);
	int			length = reading->keys->plan.column[i].length;

	if (TupleDescAttr(reading->keys->descriptor, i)->attbyval)
		key_write_integer(reading->end, (uint64) value, length);
	else
		memcpy(reading->end, DatumGetPointer(value), length);
}

/* A column of fixed length, which there is room for. */
static inline void
write_fixed(BriefReading *reading, int i)
{
	const BriefColumn *column = &reading->keys->plan.column[i];

	align_end(reading, column->alignment);
	if (column->part == BRIEF_TOLD_INTEGER)
		key_write_integer(reading->end, key_words_integer(reading->words, column->at, column->bytes) ^ column->inverted,
						  column->length);
	else if (column->part == BRIEF_TOLD)
		write_told(reading, i);
	else
	{
		memcpy(reading->end, reading->fixed, column->length);
		reading->fixed += column->length;
	}
	reading->end += column->length;
}

/* A value of variable length, put together: what the normalized key has of it, what the image has, and blanks. */
typedef struct BriefString
{
	uint8		inverted[KEY_NORM_MAX + sizeof(uint64)];
	const uint8 *prefix;		/* 8 bytes or more may be read */
	Size		prefix_bytes;
	const uint8 *rest;
	Size		rest_bytes;
	Size		blanks;
} BriefString;

/* Finds the part of a string that is in the normalized key: all bytes of it if there is a rest, else those before a zero. */
static inline void
find_prefix(BriefReading *reading, const BriefColumn *column, BriefString *string)
{
	string->prefix = key_bytes(reading) + column->at;
	if (column->descending)
	{
		memcpy(string->inverted, string->prefix, column->bytes);
		key_invert_bytes(string->inverted, column->bytes);
		string->prefix = string->inverted;
	}
	string->prefix_bytes = string->rest_bytes > 0 ? (Size) column->bytes : strnlen((const char *) string->prefix, column->bytes);
}

/* Takes a value of variable length from image and normalized key. False: there is none. */
static inline bool
take_string(BriefReading *reading, const BriefColumn *column, bool last, BriefString *string)
{
	const uint8 *end = reading->image_end;
	Size		length = 0;

	if (!last)
	{
		if (!get_length(&reading->variable, end, &length) || length > (Size) (end - reading->variable))
			return false;
		end = reading->variable + length;
	}
	string->prefix_bytes = string->blanks = 0;
	if (column->part == BRIEF_BPCHAR && !get_length(&reading->variable, end, &string->blanks))
		return false;
	if (column->part == BRIEF_BYTEA &&
		(!get_length(&reading->variable, end, &length) || length > (Size) column->bytes))
		return false;
	string->rest = reading->variable;
	string->rest_bytes = (Size) (end - reading->variable);
	reading->variable = end;
	if (column->part >= BRIEF_NAME)
		find_prefix(reading, column, string);
	if (column->part == BRIEF_BYTEA)
		string->prefix_bytes = length;
	return true;
}

/* Writes a string's parts, which there is room for; a short prefix as the word that it is a part of. */
static inline void
write_string(BriefReading *reading, const BriefString *string)
{
	if (string->prefix_bytes > sizeof(uint64))
		memcpy(reading->end, string->prefix, string->prefix_bytes);
	else if (string->prefix_bytes > 0)
		memcpy(reading->end, string->prefix, sizeof(uint64));
	reading->end += string->prefix_bytes;
	memcpy(reading->end, string->rest, string->rest_bytes);
	reading->end += string->rest_bytes;
	if (string->blanks > 0)
		memset(reading->end, ' ', string->blanks);
	reading->end += string->blanks;
}

/* A value of variable length in a column of fixed length: zeros follow. False: it is too long. */
static pg_noinline bool
write_trimmed(BriefReading *reading, const BriefColumn *column, const BriefString *string, Size length)
{
	if (length > NAMEDATALEN || !has_room(reading, NAMEDATALEN))
		return false;
	align_end(reading, column->alignment);
	write_string(reading, string);
	memset(reading->end, 0, NAMEDATALEN - length);
	reading->end += NAMEDATALEN - length;
	return true;
}

/* A column of variable length, as heap_fill_tuple() writes it. False: it is none. */
static inline bool
write_variable(BriefReading *reading, const BriefColumn *column, bool last)
{
	BriefString string;
	Size		length;

	if (!take_string(reading, column, last, &string))
		return false;
	length = string.prefix_bytes + string.rest_bytes + string.blanks;
	if (column->length > 0)
		return write_trimmed(reading, column, &string, length);
	if (!has_room(reading, length))
		return false;
	if (column->packable && length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
	{
		SET_VARSIZE_SHORT(reading->end, length + VARHDRSZ_SHORT);
		reading->end += VARHDRSZ_SHORT;
	}
	else
	{
		align_end(reading, column->alignment);
		SET_VARSIZE(reading->end, length + VARHDRSZ);
		reading->end += VARHDRSZ;
	}
	write_string(reading, &string);
	return true;
}

/* Writes the columns that are not NULL; `isnull` NULL: all of them. `last` is the last of variable length. False: they are none. */
static inline bool
write_columns(BriefReading *reading, const bool *isnull, int last)
{
	const ShermanKeys *keys = reading->keys;

	for (int i = 0; i < keys->descriptor->natts; i++)
	{
		const BriefColumn *column = &keys->plan.column[i];

		if (isnull != NULL && isnull[i])
			continue;
		if (is_variable(column->part))
		{
			if (!write_variable(reading, column, i == last))
				return false;
		}
		else if (!has_room(reading, column->length))
			return false;
		else
			write_fixed(reading, i);
	}
	return reading->variable == reading->image_end;
}

/* The columns of an entry that has a NULL, or a head that is none. Returns t_info's flags; 0: they are none. */
static pg_noinline unsigned short
write_with_nulls(BriefReading *reading, const TreeKeyView *key, IndexTuple tuple)
{
	const ShermanKeys *keys = reading->keys;
	unsigned short info = INDEX_NULL_MASK;
	uint8	   *bitmap = (uint8 *) (tuple + 1);
	bool		isnull[INDEX_MAX_KEYS];
	Size		fixed;

	if ((key->image[0] & ~BRIEF_NULLS) != 0 ||
		((key->image[0] & BRIEF_NULLS) != 0 && key->image_bytes < BRIEF_HEAD_BYTES + bitmap_bytes(keys)))
		return 0;
	reading->fixed = find_nulls(keys, key, isnull);
	fixed = fixed_bytes(keys, isnull);
	if (fixed > (Size) (reading->image_end - reading->fixed))
		return 0;
	reading->variable = reading->fixed + fixed;
	reading->end = (char *) tuple + IndexInfoFindDataOffset(info);
	memset(bitmap, 0, reading->end - (char *) bitmap);
	for (int i = 0; i < keys->descriptor->natts; i++)
	{
		if (isnull[i])
			continue;
		bitmap[i / BITS_PER_BYTE] |= (uint8) (1 << (i % BITS_PER_BYTE));
		if (keys->plan.column[i].length < 0)
			info |= INDEX_VAR_MASK;
	}
	return write_columns(reading, isnull, last_variable(&keys->plan, isnull)) ? info : 0;
}

bool
brief_tuple(KeyReader *reader)
{
	const ShermanKeys *keys = reader->keys;
	const BriefPlan *plan = &keys->plan;
	IndexTuple	tuple = reader->tuple;
	unsigned short info = plan->varlena ? INDEX_VAR_MASK : 0;
	BriefReading reading;
	Size		size;

	reading.keys = keys;
	reading.words = reader->key.norm;
	reading.image_end = reader->key.image + reader->key.image_bytes;
	reading.limit = (char *) tuple + KEY_TUPLE_ROOM;
	reading.bytes_ready = false;
	if (likely(nothing_is_null(keys, &reader->key)))
	{
		reading.fixed = reader->key.image + BRIEF_HEAD_BYTES;
		reading.variable = reading.fixed + plan->fixed_bytes;
		reading.end = (char *) (tuple + 1);
		if (reading.variable > reading.image_end || !write_columns(&reading, NULL, plan->last_variable))
			return false;
	}
	else
	{
		info = write_with_nulls(&reading, &reader->key, tuple);
		if (info == 0)
			return false;
	}
	align_end(&reading, MAXIMUM_ALIGNOF);
	size = (Size) (reading.end - (char *) tuple);
	tuple->t_info = (unsigned short) (size | info);
	return size <= KEY_TUPLE_MAX_BYTES;
}
