/*
 * normalize_numeric.c
 *		Order-preserving bytes of numeric.
 *
 * 16 bits of class and weight, then digits to base 10000 of 14 bits each, then one bit that tells whether
 * anything was left out.  Negative numbers have all bits of their absolute value inverted.
 */
#include "postgres.h"

#include "fmgr.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

#include "am/keys/normalize.h"
#include "am/keys/keys.h"

#define NUMERIC_HEAD_BYTES 2
#define NUMERIC_DIGIT_BITS 14
#define NUMERIC_HEAD_ZERO 0x8000
#define NUMERIC_HEAD_ONE 0xc000	/* weight 0 */
#define NUMERIC_HEAD_INFINITY 0xfffe
#define NUMERIC_HEAD_NAN 0xffff
#define NUMERIC_WEIGHT_LIMIT 0x3ff0 /* weights beyond it differ in nothing but the comparator */
/* Encoded in a buffer of its own when there is less room than this; it then is a prefix in any case. */
#define NUMERIC_LEAST_BYTES 8

/*
 * numeric's form on disk, which pg_upgrade keeps: see the comment on NumericChoice in PostgreSQL's numeric.c.
 */
#define NUMERIC_DISK_SPECIAL_MASK 0xf000
#define NUMERIC_DISK_IS_SPECIAL(header) (((header) & 0xc000) == 0xc000)
#define NUMERIC_DISK_NAN 0xc000
#define NUMERIC_DISK_INFINITY 0xd000
#define NUMERIC_DISK_IS_SHORT(header) (((header) & 0x8000) != 0)
#define NUMERIC_DISK_SHORT_NEGATIVE 0x2000
#define NUMERIC_DISK_SHORT_WEIGHT_SIGN 0x0040
#define NUMERIC_DISK_SHORT_WEIGHT 0x003f
#define NUMERIC_DISK_LONG_NEGATIVE 0x4000

/* The parts of a numeric on disk. */
typedef struct NumericParts
{
	uint16		header;
	bool		negative;
	int			weight;
	int			digit_count;
	const char *digits;			/* int16 each, perhaps not aligned */
} NumericParts;

static inline void
put_head(uint8 *bytes, uint16 value)
{
	value = pg_hton16(value);
	memcpy(bytes, &value, sizeof(value));
}

static void
numeric_parts(const struct varlena *value, NumericParts *parts)
{
	const char *data = VARDATA_ANY(value);
	int			length = VARSIZE_ANY_EXHDR(value);

	memcpy(&parts->header, data, sizeof(uint16));
	data += sizeof(uint16);
	length -= sizeof(uint16);
	if (NUMERIC_DISK_IS_SHORT(parts->header))
	{
		parts->negative = (parts->header & NUMERIC_DISK_SHORT_NEGATIVE) != 0;
		parts->weight = parts->header & NUMERIC_DISK_SHORT_WEIGHT;
		if (parts->header & NUMERIC_DISK_SHORT_WEIGHT_SIGN)
			parts->weight -= NUMERIC_DISK_SHORT_WEIGHT + 1;
	}
	else
	{
		int16		weight;

		memcpy(&weight, data, sizeof(weight));
		data += sizeof(weight);
		length -= sizeof(weight);
		parts->negative = (parts->header & NUMERIC_DISK_LONG_NEGATIVE) != 0;
		parts->weight = weight;
	}
	parts->digits = data;
	parts->digit_count = length / (int) sizeof(int16);
}

/* Ors one digit into the bits from `at` on, as far as `end`; true if nothing but zeros was left out. */
static bool
put_numeric_digit(uint8 *bytes, int at, int end, uint16 digit)
{
	uint32		window;

	if (at + NUMERIC_DIGIT_BITS > end)
	{
		int			left_out = Min(at + NUMERIC_DIGIT_BITS - end, NUMERIC_DIGIT_BITS);
		uint16		kept = (uint16) (digit >> left_out << left_out);

		if (kept != 0)
			put_numeric_digit(bytes, at, at + NUMERIC_DIGIT_BITS, kept);
		return kept == digit;
	}

	/*
	 * A digit touches three bytes at most; zero bits are not stored, for they may lie behind the buffer's
	 * end.
	 */
	window = (uint32) digit << (24 - NUMERIC_DIGIT_BITS - at % 8);
	bytes[at / 8] |= (uint8) (window >> 16);
	if ((window & 0xffff) != 0)
		bytes[at / 8 + 1] |= (uint8) (window >> 8);
	if ((window & 0xff) != 0)
		bytes[at / 8 + 2] |= (uint8) window;
	return true;
}

/*
 * Packs digits behind the head, as many bits as there are but the last; true if nothing but zeros was left
 * out.
 */
static bool
put_numeric_digits(uint8 *bytes, int room, const NumericParts *parts)
{
	int			at = NUMERIC_HEAD_BYTES * 8;
	int			end = room * 8 - 1;

	for (int i = 0; i < parts->digit_count; i++)
	{
		int16		digit;

		memcpy(&digit, parts->digits + i * sizeof(int16), sizeof(digit));
		if (!put_numeric_digit(bytes, at, end, (uint16) digit))
			return false;
		at = Min(at + NUMERIC_DIGIT_BITS, end);
	}
	return true;
}

static Normalized
put_numeric(uint8 *bytes, int room, const struct varlena *value)
{
	NumericParts parts;
	bool		complete = true;

	Assert(room >= NUMERIC_LEAST_BYTES);
	memset(bytes, 0, room);
	memcpy(&parts.header, VARDATA_ANY(value), sizeof(uint16));
	if (NUMERIC_DISK_IS_SPECIAL(parts.header))
	{
		uint16		special = parts.header & NUMERIC_DISK_SPECIAL_MASK;

		put_head(bytes, special == NUMERIC_DISK_NAN ? NUMERIC_HEAD_NAN :
				   special == NUMERIC_DISK_INFINITY ? NUMERIC_HEAD_INFINITY :
				   (uint16) ~NUMERIC_HEAD_INFINITY);
		return NORMALIZED_EXACT;
	}
	numeric_parts(value, &parts);
	if (parts.digit_count == 0)
	{
		put_head(bytes, NUMERIC_HEAD_ZERO);
		return NORMALIZED_EXACT;
	}
	if (parts.weight > NUMERIC_WEIGHT_LIMIT || parts.weight < -NUMERIC_WEIGHT_LIMIT)
	{
		put_head(bytes, NUMERIC_HEAD_ONE + (parts.weight > 0 ? 1 : -1) * (NUMERIC_WEIGHT_LIMIT + 1));
		complete = false;
	}
	else
	{
		put_head(bytes, (uint16) (NUMERIC_HEAD_ONE + parts.weight));
		complete = put_numeric_digits(bytes, room, &parts);
	}
	if (!complete)
		bytes[room - 1] |= 1;
	if (parts.negative)
	{
		for (int i = 0; i < room; i++)
			bytes[i] = (uint8) ~bytes[i];
	}
	return complete ? NORMALIZED_EXACT : NORMALIZED_PREFIX;
}

Normalized
normalize_numeric(Datum datum, uint8 *bytes, int room)
{
	struct varlena *value = PG_DETOAST_DATUM_PACKED(datum);
	Normalized	result;

	if (room >= NUMERIC_LEAST_BYTES)
		result = put_numeric(bytes, room, value);
	else
	{
		uint8		whole[NUMERIC_LEAST_BYTES];

		put_numeric(whole, sizeof(whole), value);
		memcpy(bytes, whole, room);
		result = NORMALIZED_PREFIX;
	}
	if ((Pointer) value != DatumGetPointer(datum))
		pfree(value);
	return result;
}

/* ---- whether the form is the one that is read here ---- */

/* Numbers in ascending order: of each sign and form, short and long, with weights on either side of what the short form holds. */
static const char *const ascending[] =
{
	"-Infinity", "-1e300", "-1e64", "-123456789012", "-10001", "-10000", "-9999", "-1.5", "-1", "-0.5", "-0.00005", "-1e-300",
	"0", "1e-300", "1e-64", "0.00005", "0.5", "0.50001", "1", "1.00000001", "1.5", "9999", "10000", "10001", "123456789012",
	"1e64", "1e300", "1.0001e300", "Infinity", "NaN"
};

#define TRIAL_BYTES 24

static bool
try_form(void)
{
	uint8		before[TRIAL_BYTES];
	uint8		bytes[TRIAL_BYTES];

	for (size_t i = 0; i < lengthof(ascending); i++)
	{
		Datum		value = DirectFunctionCall3(numeric_in, CStringGetDatum(ascending[i]), ObjectIdGetDatum(InvalidOid),
												Int32GetDatum(-1));

		normalize_numeric(value, bytes, sizeof(bytes));
		pfree(DatumGetPointer(value));
		if (i > 0 && memcmp(before, bytes, sizeof(bytes)) >= 0)
			return false;
		memcpy(before, bytes, sizeof(bytes));
	}
	return true;
}

bool
normalize_numeric_known(void)
{
	static bool tried = false;
	static bool known = false;

	if (!tried)
	{
		known = try_form();
		tried = true;
	}
	return known;
}
