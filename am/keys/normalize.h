/*
 * normalize.h
 *		Order-preserving bytes of single values, by kind of order.
 *
 * A kind stands for one order function (support function 1), not for a type: an operator class that orders
 * int4 backwards has no kind here and is compared by its function alone.
 *
 * An index's metapage has the kinds of its columns: a kind keeps its number, and gets a new one when its bytes change.
 */
#ifndef SHERMAN_NORMALIZE_H
#define SHERMAN_NORMALIZE_H

#include "postgres.h"

typedef enum NormalizeKind
{
	NORMALIZE_NONE = 0,			/* only the order function knows the order */

	/* lossless: the bytes are the value; normalize_restore() gives it back */
	NORMALIZE_BOOL = 1,
	NORMALIZE_CHAR = 2,
	NORMALIZE_INT2 = 3,
	NORMALIZE_INT4 = 4,
	NORMALIZE_INT8 = 5,
	NORMALIZE_OID = 6,
	NORMALIZE_DATE = 7,
	NORMALIZE_TIMESTAMP = 8,		/* with and without time zone */
	NORMALIZE_TIME = 9,
	NORMALIZE_MONEY = 10,
	NORMALIZE_LSN = 11,
	NORMALIZE_XID8 = 12,
	NORMALIZE_MACADDR = 13,
	NORMALIZE_MACADDR8 = 14,
	NORMALIZE_UUID = 15,
	NORMALIZE_TID = 16,

	/*
	 * whole: equal bytes are equal values, but perhaps not the same image (-0.0, NaN, '1 day' = '24 hours')
	 */
	NORMALIZE_FLOAT4 = 17,
	NORMALIZE_FLOAT8 = 18,
	NORMALIZE_INTERVAL = 19,

	/* prefixes: as many bytes as there is room for */
	NORMALIZE_TEXT = 20,				/* where the collation orders bytes, or pattern operators */
	NORMALIZE_BPCHAR = 21,			/* the same, trailing blanks do not count */
	NORMALIZE_NAME = 22,				/* the same, in NameData */
	NORMALIZE_BYTEA = 23,
	NORMALIZE_NUMERIC = 24,
	NORMALIZE_INET = 25
} NormalizeKind;

#define NORMALIZE_IS_LOSSLESS(kind) ((kind) >= NORMALIZE_BOOL && (kind) <= NORMALIZE_TID)
#define NORMALIZE_IS_PREFIX(kind) ((kind) >= NORMALIZE_TEXT)

/* What normalized bytes say of a value. */
typedef enum Normalized
{
	NORMALIZED_EXACT,			/* values with these bytes are equal to it, and no others */
	NORMALIZED_PREFIX,			/* values equal to it have these bytes, but others may, too */
	NORMALIZED_BELOW,			/* it is below every value of the column's type; the bytes are the lowest */
	NORMALIZED_ABOVE,			/* it is above every value of the column's type; the bytes are the highest */
	NORMALIZED_NOT				/* nothing was written: no common normalization */
} Normalized;

/* The kind of columns with this order function and collation. */
extern NormalizeKind normalize_kind(Oid order_proc, Oid collation);

/* Bytes of a value of this kind; 0 for NORMALIZE_NONE and prefixes. */
extern int	normalize_width(NormalizeKind kind);

/*
 * Writes the normalized bytes of a value that is not NULL: normalize_width() of them, or `room` for a prefix.
 * Ascending order; the caller inverts the bytes for DESC.  EXACT or PREFIX.  Raises only what detoasting
 * raises.
 */
extern Normalized normalize_value(NormalizeKind kind, Datum value, uint8 *bytes, int room);

/* normalize_value() for numeric: normalize_numeric.c. */
extern Normalized normalize_numeric(Datum datum, uint8 *bytes, int room);

/* Whether the server's numerics have the form that normalize_numeric() reads: tried once in each process. */
extern bool normalize_numeric_known(void);

/* The same for a scan key's argument, whose type may be another one of the column's family. Any result. */
extern Normalized normalize_argument(NormalizeKind kind, Oid column_type, Oid argument_type, Datum argument,
									 uint8 *bytes, int room);

/* Room that normalize_restore() may need for a value passed by reference. */
#define NORMALIZE_RESTORE_BYTES 16

/*
 * The value of a lossless kind again; by-reference values lie in `buffer` (8-aligned,
 * NORMALIZE_RESTORE_BYTES).
 */
extern Datum normalize_restore(NormalizeKind kind, const uint8 *bytes, void *buffer);

/*
 * Whether the bytes of this kind, most significant first, are the value as the integer that a table stores, but
 * for some bits that are inverted: these are set in *inverted.
 */
extern bool normalize_is_integer(NormalizeKind kind, uint64 *inverted);

#endif							/* SHERMAN_NORMALIZE_H */
