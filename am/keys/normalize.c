/*
 * normalize.c
 *		Order-preserving bytes of single values.
 *
 * memcmp() of two values' bytes never contradicts their order function.  All integers are stored most
 * significant byte first, signed ones with their sign bit flipped.
 */
#include "postgres.h"

#include <math.h>
#include <sys/socket.h>

#include "catalog/pg_type_d.h"
#include "datatype/timestamp.h"
#include "port/pg_bswap.h"
#include "storage/itemptr.h"
#include "utils/builtins.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/inet.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "am/keys/collations.h"
#include "am/keys/normalize.h"
#include "am/keys/keys.h"

/*
 * An interval's span in microseconds is below 2^31 months + 2^31 days + 2^63 us, which is below 2^79: 10
 * bytes.
 */
#define INTERVAL_BYTES 10

NormalizeKind
normalize_kind(Oid order_proc, Oid collation)
{
	switch (order_proc)
	{
		case F_BTBOOLCMP:
			return NORMALIZE_BOOL;
		case F_BTCHARCMP:
			return NORMALIZE_CHAR;
		case F_BTINT2CMP:
			return NORMALIZE_INT2;
		case F_BTINT4CMP:
			return NORMALIZE_INT4;
		case F_BTINT8CMP:
			return NORMALIZE_INT8;
		case F_BTOIDCMP:
			return NORMALIZE_OID;
		case F_DATE_CMP:
			return NORMALIZE_DATE;
		case F_TIMESTAMP_CMP:
		case F_TIMESTAMPTZ_CMP:
			return NORMALIZE_TIMESTAMP;
		case F_TIME_CMP:
			return NORMALIZE_TIME;
		case F_CASH_CMP:
			return NORMALIZE_MONEY;
		case F_PG_LSN_CMP:
			return NORMALIZE_LSN;
		case F_XID8CMP:
			return NORMALIZE_XID8;
		case F_MACADDR_CMP:
			return NORMALIZE_MACADDR;
		case F_MACADDR8_CMP:
			return NORMALIZE_MACADDR8;
		case F_UUID_CMP:
			return NORMALIZE_UUID;
		case F_BTTIDCMP:
			return NORMALIZE_TID;
		case F_BTFLOAT4CMP:
			return NORMALIZE_FLOAT4;
		case F_BTFLOAT8CMP:
			return NORMALIZE_FLOAT8;
		case F_INTERVAL_CMP:
			return NORMALIZE_INTERVAL;
		case F_NUMERIC_CMP:
			return normalize_numeric_known() ? NORMALIZE_NUMERIC : NORMALIZE_NONE;
		case F_NETWORK_CMP:
			return NORMALIZE_INET;
		case F_BYTEACMP:
			return NORMALIZE_BYTEA;
		case F_BTTEXT_PATTERN_CMP:
			return NORMALIZE_TEXT;
		case F_BTBPCHAR_PATTERN_CMP:
			return NORMALIZE_BPCHAR;
		case F_BTTEXTCMP:
			return collation_orders_bytes(collation) ? NORMALIZE_TEXT : NORMALIZE_NONE;
		case F_BPCHARCMP:
			return collation_orders_bytes(collation) ? NORMALIZE_BPCHAR : NORMALIZE_NONE;
		case F_BTNAMECMP:
			return collation_orders_bytes(collation) ? NORMALIZE_NAME : NORMALIZE_NONE;
		default:
			return NORMALIZE_NONE;
	}
}

int
normalize_width(NormalizeKind kind)
{
	switch (kind)
	{
		case NORMALIZE_BOOL:
		case NORMALIZE_CHAR:
			return 1;
		case NORMALIZE_INT2:
			return 2;
		case NORMALIZE_INT4:
		case NORMALIZE_OID:
		case NORMALIZE_DATE:
			return 4;
		case NORMALIZE_MACADDR:
		case NORMALIZE_TID:
			return 6;
		case NORMALIZE_INT8:
		case NORMALIZE_TIMESTAMP:
		case NORMALIZE_TIME:
		case NORMALIZE_MONEY:
		case NORMALIZE_LSN:
		case NORMALIZE_XID8:
		case NORMALIZE_MACADDR8:
		case NORMALIZE_FLOAT4:
		case NORMALIZE_FLOAT8:
			return 8;
		case NORMALIZE_INTERVAL:
			return INTERVAL_BYTES;
		case NORMALIZE_UUID:
			return 16;
		case NORMALIZE_NONE:
		case NORMALIZE_TEXT:
		case NORMALIZE_BPCHAR:
		case NORMALIZE_NAME:
		case NORMALIZE_BYTEA:
		case NORMALIZE_NUMERIC:
		case NORMALIZE_INET:
			return 0;
	}
	return 0;
}

static inline void
put_uint16(uint8 *bytes, uint16 value)
{
	value = pg_hton16(value);
	memcpy(bytes, &value, sizeof(value));
}

static inline void
put_uint32(uint8 *bytes, uint32 value)
{
	value = pg_hton32(value);
	memcpy(bytes, &value, sizeof(value));
}

static inline void
put_uint64(uint8 *bytes, uint64 value)
{
	value = pg_hton64(value);
	memcpy(bytes, &value, sizeof(value));
}

static inline uint16
get_uint16(const uint8 *bytes)
{
	uint16		value;

	memcpy(&value, bytes, sizeof(value));
	return pg_ntoh16(value);
}

static inline uint32
get_uint32(const uint8 *bytes)
{
	uint32		value;

	memcpy(&value, bytes, sizeof(value));
	return pg_ntoh32(value);
}

static inline uint64
get_uint64(const uint8 *bytes)
{
	uint64		value;

	memcpy(&value, bytes, sizeof(value));
	return pg_ntoh64(value);
}

static inline void
put_int16(uint8 *bytes, int16 value)
{
	put_uint16(bytes, (uint16) value ^ 0x8000u);
}

static inline void
put_int32(uint8 *bytes, int32 value)
{
	put_uint32(bytes, (uint32) value ^ 0x80000000u);
}

static inline void
put_int64(uint8 *bytes, int64 value)
{
	put_uint64(bytes, (uint64) value ^ UINT64CONST(0x8000000000000000));
}

/* float8's order in PostgreSQL: -0.0 = 0.0, all NaNs equal and above infinity. */
static void
put_float8(uint8 *bytes, float8 value)
{
	uint64		bits;

	if (isnan(value))
		bits = ~UINT64CONST(0);
	else
	{
		if (value == 0)
			value = 0;
		memcpy(&bits, &value, sizeof(bits));
		bits = (bits >> 63) ? ~bits : bits | UINT64CONST(0x8000000000000000);
	}
	put_uint64(bytes, bits);
}

/* interval_cmp() compares spans with months of 30 days and days of 24 hours. */
static void
put_interval(uint8 *bytes, const Interval *interval)
{
	int128		span;

	span = (int128) interval->month * DAYS_PER_MONTH + interval->day;
	span = span * USECS_PER_DAY + interval->time;
	span += (int128) 1 << (INTERVAL_BYTES * 8 - 1);
	put_uint16(bytes, (uint16) (span >> 64));
	put_uint64(bytes + 2, (uint64) span);
}

/*
 * Bytes that order by memcmp() and then by length, filled up with zeros.  `zero_free`: no value contains a
 * zero byte, so that one that ends before the room does is told from all others.
 */
static Normalized
put_string(uint8 *bytes, int room, const char *string, int length, bool zero_free)
{
	if (length >= room)
	{
		memcpy(bytes, string, room);
		return NORMALIZED_PREFIX;
	}
	memcpy(bytes, string, length);
	memset(bytes + length, 0, room - length);
	return zero_free ? NORMALIZED_EXACT : NORMALIZED_PREFIX;
}

/* As put_string() for a varlena; blanks at the end do not count if so said. */
static Normalized
put_varlena(uint8 *bytes, int room, Datum value, bool zero_free, bool trim_blanks)
{
	struct varlena *string = PG_DETOAST_DATUM_PACKED(value);
	int			length = VARSIZE_ANY_EXHDR(string);
	Normalized	result;

	if (trim_blanks)
	{
		while (length > 0 && VARDATA_ANY(string)[length - 1] == ' ')
			length--;
	}
	result = put_string(bytes, room, VARDATA_ANY(string), length, zero_free);
	if ((Pointer) string != DatumGetPointer(value))
		pfree(string);
	return result;
}

/*
 * inet: family, network part (its host bits zero), length of the network part, whole address: network_cmp()
 * looks at them in this order.
 */
#define INET_ADDRESS_MAX 16

static Normalized
normalize_inet(Datum datum, uint8 *bytes, int room)
{
	inet	   *value = DatumGetInetPP(datum);
	int			size = ip_addrsize(value);
	int			bits = ip_bits(value);
	uint8		whole[2 + 2 * INET_ADDRESS_MAX];
	int			length = 2 + 2 * size;

	whole[0] = ip_family(value);
	for (int i = 0; i < size; i++)
	{
		int			left = Max(0, Min(8, bits - i * 8));	/* network bits in this byte */

		whole[1 + i] = ip_addr(value)[i] & (uint8) (0xff00 >> left);
	}
	whole[1 + size] = (uint8) bits;
	memcpy(whole + 2 + size, ip_addr(value), size);
	if ((Pointer) value != DatumGetPointer(datum))
		pfree(value);

	memcpy(bytes, whole, Min(length, room));
	if (room > length)
		memset(bytes + length, 0, room - length);
	return room >= length ? NORMALIZED_EXACT : NORMALIZED_PREFIX;
}

Normalized
normalize_value(NormalizeKind kind, Datum value, uint8 *bytes, int room)
{
	switch (kind)
	{
		case NORMALIZE_BOOL:
			bytes[0] = DatumGetBool(value) ? 1 : 0;
			return NORMALIZED_EXACT;
		case NORMALIZE_CHAR:
			bytes[0] = DatumGetUInt8(value);
			return NORMALIZED_EXACT;
		case NORMALIZE_INT2:
			put_int16(bytes, DatumGetInt16(value));
			return NORMALIZED_EXACT;
		case NORMALIZE_INT4:
		case NORMALIZE_DATE:
			put_int32(bytes, DatumGetInt32(value));
			return NORMALIZED_EXACT;
		case NORMALIZE_INT8:
		case NORMALIZE_TIMESTAMP:
		case NORMALIZE_TIME:
		case NORMALIZE_MONEY:
			put_int64(bytes, DatumGetInt64(value));
			return NORMALIZED_EXACT;
		case NORMALIZE_OID:
			put_uint32(bytes, DatumGetObjectId(value));
			return NORMALIZED_EXACT;
		case NORMALIZE_LSN:
		case NORMALIZE_XID8:
			put_uint64(bytes, DatumGetUInt64(value));
			return NORMALIZED_EXACT;
		case NORMALIZE_MACADDR:
			memcpy(bytes, DatumGetMacaddrP(value), sizeof(macaddr));
			return NORMALIZED_EXACT;
		case NORMALIZE_MACADDR8:
			memcpy(bytes, DatumGetMacaddr8P(value), sizeof(macaddr8));
			return NORMALIZED_EXACT;
		case NORMALIZE_UUID:
			memcpy(bytes, DatumGetUUIDP(value)->data, UUID_LEN);
			return NORMALIZED_EXACT;
		case NORMALIZE_TID:
			put_uint32(bytes, ItemPointerGetBlockNumberNoCheck((ItemPointer) DatumGetPointer(value)));
			put_uint16(bytes + 4, ItemPointerGetOffsetNumberNoCheck((ItemPointer) DatumGetPointer(value)));
			return NORMALIZED_EXACT;
		case NORMALIZE_FLOAT4:
			put_float8(bytes, (float8) DatumGetFloat4(value));
			return NORMALIZED_EXACT;
		case NORMALIZE_FLOAT8:
			put_float8(bytes, DatumGetFloat8(value));
			return NORMALIZED_EXACT;
		case NORMALIZE_INTERVAL:
			put_interval(bytes, DatumGetIntervalP(value));
			return NORMALIZED_EXACT;
		case NORMALIZE_TEXT:
			return put_varlena(bytes, room, value, true, false);
		case NORMALIZE_BPCHAR:
			return put_varlena(bytes, room, value, true, true);
		case NORMALIZE_NAME:
			return put_string(bytes, room, NameStr(*DatumGetName(value)),
							  (int) strnlen(NameStr(*DatumGetName(value)), NAMEDATALEN), true);
		case NORMALIZE_BYTEA:
			return put_varlena(bytes, room, value, false, false);
		case NORMALIZE_NUMERIC:
			return normalize_numeric(value, bytes, room);
		case NORMALIZE_INET:
			return normalize_inet(value, bytes, room);
		case NORMALIZE_NONE:
			break;
	}
	return NORMALIZED_NOT;
}

/* An integer of another width than the column's, which may lie outside the column's range. */
static Normalized
normalize_integer(NormalizeKind kind, int64 value, uint8 *bytes)
{
	int			bits = normalize_width(kind) * 8;
	int64		most = PG_INT64_MAX >> (64 - bits);
	int64		least = -most - 1;
	Normalized	result = value < least ? NORMALIZED_BELOW :
		value > most ? NORMALIZED_ABOVE : NORMALIZED_EXACT;

	value = Max(least, Min(most, value));
	if (kind == NORMALIZE_INT2)
		put_int16(bytes, (int16) value);
	else if (kind == NORMALIZE_INT4)
		put_int32(bytes, (int32) value);
	else
		put_int64(bytes, value);
	return result;
}

/*
 * Members of one family whose arguments are normalized as the column is: all integers, both floats, text and
 * name. Dates and timestamps are not: what they are to each other depends on the time zone, and is not always
 * in order.
 */
Normalized
normalize_argument(NormalizeKind kind, Oid column_type, Oid argument_type, Datum argument, uint8 *bytes,
				   int room)
{
	if (argument_type == column_type || !OidIsValid(argument_type))
		return normalize_value(kind, argument, bytes, room);

	switch (kind)
	{
		case NORMALIZE_INT2:
		case NORMALIZE_INT4:
		case NORMALIZE_INT8:
			if (argument_type == INT2OID)
				return normalize_integer(kind, DatumGetInt16(argument), bytes);
			if (argument_type == INT4OID)
				return normalize_integer(kind, DatumGetInt32(argument), bytes);
			if (argument_type == INT8OID)
				return normalize_integer(kind, DatumGetInt64(argument), bytes);
			return NORMALIZED_NOT;
		case NORMALIZE_FLOAT4:
		case NORMALIZE_FLOAT8:
			if (argument_type == FLOAT4OID)
				return normalize_value(NORMALIZE_FLOAT4, argument, bytes, room);
			if (argument_type == FLOAT8OID)
				return normalize_value(NORMALIZE_FLOAT8, argument, bytes, room);
			return NORMALIZED_NOT;
		case NORMALIZE_TEXT:
		case NORMALIZE_NAME:
			if (argument_type == TEXTOID)
				return normalize_value(NORMALIZE_TEXT, argument, bytes, room);
			if (argument_type == NAMEOID)
				return normalize_value(NORMALIZE_NAME, argument, bytes, room);
			return NORMALIZED_NOT;
		default:
			return NORMALIZED_NOT;
	}
}

Datum
normalize_restore(NormalizeKind kind, const uint8 *bytes, void *buffer)
{
	switch (kind)
	{
		case NORMALIZE_BOOL:
			return BoolGetDatum(bytes[0] != 0);
		case NORMALIZE_CHAR:
			return CharGetDatum((char) bytes[0]);
		case NORMALIZE_INT2:
			return Int16GetDatum((int16) (get_uint16(bytes) ^ 0x8000u));
		case NORMALIZE_INT4:
		case NORMALIZE_DATE:
			return Int32GetDatum((int32) (get_uint32(bytes) ^ 0x80000000u));
		case NORMALIZE_INT8:
		case NORMALIZE_TIMESTAMP:
		case NORMALIZE_TIME:
		case NORMALIZE_MONEY:
			return Int64GetDatum((int64) (get_uint64(bytes) ^ UINT64CONST(0x8000000000000000)));
		case NORMALIZE_OID:
			return ObjectIdGetDatum(get_uint32(bytes));
		case NORMALIZE_LSN:
		case NORMALIZE_XID8:
			return UInt64GetDatum(get_uint64(bytes));
		case NORMALIZE_MACADDR:
			memcpy(buffer, bytes, sizeof(macaddr));
			return PointerGetDatum(buffer);
		case NORMALIZE_MACADDR8:
			memcpy(buffer, bytes, sizeof(macaddr8));
			return PointerGetDatum(buffer);
		case NORMALIZE_UUID:
			memcpy(buffer, bytes, UUID_LEN);
			return PointerGetDatum(buffer);
		case NORMALIZE_TID:
			ItemPointerSetBlockNumber((ItemPointer) buffer, get_uint32(bytes));
			ItemPointerSetOffsetNumber((ItemPointer) buffer, get_uint16(bytes + 4));
			return PointerGetDatum(buffer);
		default:
			elog(ERROR, "normalization %d does not hold its value", (int) kind);
	}
	return (Datum) 0;
}

bool
normalize_is_integer(NormalizeKind kind, uint64 *inverted)
{
	*inverted = 0;
	switch (kind)
	{
		case NORMALIZE_INT2:
			*inverted = 0x8000u;
			return true;
		case NORMALIZE_INT4:
		case NORMALIZE_DATE:
			*inverted = 0x80000000u;
			return true;
		case NORMALIZE_INT8:
		case NORMALIZE_TIMESTAMP:
		case NORMALIZE_TIME:
		case NORMALIZE_MONEY:
			*inverted = UINT64CONST(0x8000000000000000);
			return true;
		case NORMALIZE_BOOL:
		case NORMALIZE_CHAR:
		case NORMALIZE_OID:
		case NORMALIZE_LSN:
		case NORMALIZE_XID8:
			return true;
		default:
			return false;
	}
}

StaticAssertDecl(sizeof(macaddr) == 6 && sizeof(macaddr8) == 8, "MAC addresses are their bytes");
StaticAssertDecl(UUID_LEN == 16, "a uuid is 16 bytes");
StaticAssertDecl(sizeof(ItemPointerData) == 6, "a TID is 6 bytes");
