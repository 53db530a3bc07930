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

void
brief_plan(ShermanKeys *keys)
{
	BriefPlan  *plan = &keys->plan;

	plan->fixed_bytes = 0;
	plan->last_variable = -1;
	for (int i = 0; i < keys->descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(keys->descriptor, i);
		KeyColumn  *column = i < keys->columns ? &keys->column[i] : NULL;
		BriefPart	part = part_of(column, attribute);

		plan->column[i].part = part;
		plan->column[i].packable = attribute->attstorage != TYPSTORAGE_PLAIN;
		if (is_variable(part))
			plan->last_variable = i;
		else if (part == BRIEF_FIXED)
			plan->fixed_bytes += attribute->attlen;
		else if (part == BRIEF_TOLD_INTEGER)
		{
			(void) normalize_is_integer(column->kind, &column->inverted);
			if (column->descending)
				column->inverted = ~column->inverted;
		}
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
	char	   *data;			/* in the tuple */
	char	   *end;
	char	   *limit;
	bool		bytes_ready;
	uint8		bytes[KEY_NORM_MAX];	/* the words' */
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

/* Whether there is room for so many bytes more, with the largest gap and header. */
static inline bool
has_room(const BriefReading *reading, Size bytes)
{
	return bytes + VARHDRSZ + MAXIMUM_ALIGNOF <= (Size) (reading->limit - reading->end);
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

/*
 * Which columns are NULL.  Returns false if the image is too short; *any: one is.  Sets where the columns of fixed length begin.
 */
static bool
find_nulls(BriefReading *reading, const TreeKeyView *key, bool *isnull, bool *any)
{
	const ShermanKeys *keys = reading->keys;
	const uint8 *bitmap = key->image + BRIEF_HEAD_BYTES;
	int			natts = keys->descriptor->natts;

	isnull[0] = key->high != keys->column[0].nulls_first;
	*any = isnull[0];
	for (int i = 1; i < keys->in_norm; i++)
	{
		const KeyColumn *column = &keys->column[i];

		isnull[i] = (key_words_integer(reading->words, column->null_at, 1) != 0) != column->nulls_first;
		*any |= isnull[i];
	}
	reading->fixed = bitmap;
	if ((key->image[0] & BRIEF_NULLS) == 0)
	{
		memset(isnull + keys->in_norm, false, natts - keys->in_norm);
		return true;
	}
	*any = true;
	reading->fixed += bitmap_bytes(keys);
	if (reading->fixed > reading->image_end)
		return false;
	for (int i = keys->in_norm; i < natts; i++)
	{
		int			bit = i - keys->in_norm;

		isnull[i] = (bitmap[bit / BITS_PER_BYTE] >> bit % BITS_PER_BYTE & 1) != 0;
	}
	return true;
}

/* Bytes of the columns of fixed length. */
static Size
fixed_bytes(const ShermanKeys *keys, const bool *isnull, bool any_null)
{
	Size		bytes = 0;

	if (!any_null)
		return keys->plan.fixed_bytes;
	for (int i = 0; i < keys->descriptor->natts; i++)
	{
		if (keys->plan.column[i].part == BRIEF_FIXED && !isnull[i])
			bytes += TupleDescAttr(keys->descriptor, i)->attlen;
	}
	return bytes;
}

/* A column that the normalized key holds whole. */
static void
write_told(BriefReading *reading, const KeyColumn *column, Form_pg_attribute attribute)
{
	uint64		room[NORMALIZE_RESTORE_BYTES / sizeof(uint64)];
	Datum		value = key_restore_value(column, key_bytes(reading), room);

	if (attribute->attbyval)
		key_write_integer(reading->end, (uint64) value, attribute->attlen);
	else
		memcpy(reading->end, DatumGetPointer(value), attribute->attlen);
}

/* A column of so many bytes, which there is room for. */
static inline void
write_fixed(BriefReading *reading, int i, BriefPart part)
{
	Form_pg_attribute attribute = TupleDescAttr(reading->keys->descriptor, i);
	const KeyColumn *column = &reading->keys->column[i];

	reading->end = key_align_with_zeros(reading->data, reading->end, attribute->attalign);
	if (part == BRIEF_TOLD_INTEGER)
		key_write_integer(reading->end, key_words_integer(reading->words, column->at, column->bytes) ^ column->inverted,
						  attribute->attlen);
	else if (part == BRIEF_TOLD)
		write_told(reading, column, attribute);
	else
	{
		memcpy(reading->end, reading->fixed, attribute->attlen);
		reading->fixed += attribute->attlen;
	}
	reading->end += attribute->attlen;
}

/* A value of variable length, put together: what the normalized key has of it, what the image has, and blanks. */
typedef struct BriefString
{
	uint8		inverted[KEY_NORM_MAX];
	const uint8 *prefix;
	Size		prefix_bytes;
	const uint8 *rest;
	Size		rest_bytes;
	Size		blanks;
} BriefString;

/* Finds the part of a string that is in the normalized key: all bytes of it if there is a rest, else those before a zero. */
static void
find_prefix(BriefReading *reading, int i, BriefString *string)
{
	const KeyColumn *column = &reading->keys->column[i];

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
static bool
take_string(BriefReading *reading, int i, bool last, BriefString *string)
{
	BriefPart	part = reading->keys->plan.column[i].part;
	const uint8 *end = reading->image_end;
	Size		length = 0;

	if (!last)
	{
		if (!get_length(&reading->variable, end, &length) || length > (Size) (end - reading->variable))
			return false;
		end = reading->variable + length;
	}
	string->prefix_bytes = string->blanks = 0;
	if (part == BRIEF_BPCHAR && !get_length(&reading->variable, end, &string->blanks))
		return false;
	if (part == BRIEF_BYTEA && (!get_length(&reading->variable, end, &length) || length > (Size) reading->keys->column[i].bytes))
		return false;
	string->rest = reading->variable;
	string->rest_bytes = (Size) (end - reading->variable);
	reading->variable = end;
	if (part >= BRIEF_NAME)
		find_prefix(reading, i, string);
	if (part == BRIEF_BYTEA)
		string->prefix_bytes = length;
	return true;
}

/* Writes a string's parts, which there is room for. */
static inline void
write_string(BriefReading *reading, const BriefString *string)
{
	if (string->prefix_bytes > 0)
		memcpy(reading->end, string->prefix, string->prefix_bytes);
	reading->end += string->prefix_bytes;
	memcpy(reading->end, string->rest, string->rest_bytes);
	reading->end += string->rest_bytes;
	if (string->blanks > 0)
		memset(reading->end, ' ', string->blanks);
	reading->end += string->blanks;
}

/* A column of variable length, as heap_fill_tuple() writes it. False: it is none. */
static bool
write_variable(BriefReading *reading, int i, bool last)
{
	Form_pg_attribute attribute = TupleDescAttr(reading->keys->descriptor, i);
	BriefString string;
	Size		length;

	if (!take_string(reading, i, last, &string))
		return false;
	length = string.prefix_bytes + string.rest_bytes + string.blanks;
	if (!has_room(reading, Max(length, attribute->attlen > 0 ? NAMEDATALEN : 0)))
		return false;
	if (attribute->attlen > 0)
	{
		if (length > NAMEDATALEN)
			return false;
		reading->end = key_align_with_zeros(reading->data, reading->end, attribute->attalign);
		write_string(reading, &string);
		memset(reading->end, 0, NAMEDATALEN - length);
		reading->end += NAMEDATALEN - length;
		return true;
	}
	if (reading->keys->plan.column[i].packable && length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
	{
		SET_VARSIZE_SHORT(reading->end, length + VARHDRSZ_SHORT);
		reading->end += VARHDRSZ_SHORT;
	}
	else
	{
		reading->end = key_align_with_zeros(reading->data, reading->end, attribute->attalign);
		SET_VARSIZE(reading->end, length + VARHDRSZ);
		reading->end += VARHDRSZ;
	}
	write_string(reading, &string);
	return true;
}

/* Begins the tuple: its bitmap, and where the data go. Returns the flags of t_info. */
static unsigned short
begin_tuple(BriefReading *reading, IndexTuple tuple, const bool *isnull, bool any_null)
{
	unsigned short info = any_null ? INDEX_NULL_MASK : 0;
	bits8	   *bitmap = (bits8 *) (tuple + 1);

	reading->data = reading->end = (char *) tuple + IndexInfoFindDataOffset(info);
	reading->limit = (char *) tuple + KEY_TUPLE_ROOM;
	if (!any_null)
		return info;
	memset(bitmap, 0, reading->data - (char *) bitmap);
	for (int i = 0; i < reading->keys->descriptor->natts; i++)
	{
		if (!isnull[i])
			bitmap[i / BITS_PER_BYTE] |= (bits8) (1 << (i % BITS_PER_BYTE));
	}
	return info;
}

bool
brief_tuple(KeyReader *reader)
{
	const ShermanKeys *keys = reader->keys;
	const BriefPlan *plan = &keys->plan;
	BriefReading reading;
	bool		isnull[INDEX_MAX_KEYS];
	bool		any_null;
	unsigned short info;
	int			last;

	reading.keys = keys;
	reading.words = reader->key.norm;
	reading.image_end = reader->key.image + reader->key.image_bytes;
	reading.bytes_ready = false;
	if ((reader->key.image[0] & ~BRIEF_NULLS) != 0 || !find_nulls(&reading, &reader->key, isnull, &any_null) ||
		fixed_bytes(keys, isnull, any_null) > (Size) (reading.image_end - reading.fixed))
		return false;
	reading.variable = reading.fixed + fixed_bytes(keys, isnull, any_null);
	last = any_null ? last_variable(plan, isnull) : plan->last_variable;
	info = begin_tuple(&reading, reader->tuple, isnull, any_null);
	for (int i = 0; i < keys->descriptor->natts; i++)
	{
		BriefPart	part = plan->column[i].part;
		int			length = TupleDescAttr(keys->descriptor, i)->attlen;

		if (any_null && isnull[i])
			continue;
		if (length < 0)
			info |= INDEX_VAR_MASK;
		if (is_variable(part))
		{
			if (!write_variable(&reading, i, i == last))
				return false;
		}
		else if (!has_room(&reading, length))
			return false;
		else
			write_fixed(&reading, i, part);
	}
	if (reading.variable != reading.image_end)
		return false;
	reading.end = key_align_with_zeros((char *) reader->tuple, reading.end, TYPALIGN_DOUBLE);
	reader->tuple->t_info = (unsigned short) ((reading.end - (char *) reader->tuple) | info);
	return reading.end - (char *) reader->tuple <= KEY_TUPLE_MAX_BYTES;
}
