/*
 * scankeys.h
 *		Scan keys -> bounds of the tree.
 *
 * Equality on the leading columns, then one range, make the bounds; whatever else the scan keys ask is tested
 * entry by entry.  `= ANY` on a column of the bounds makes one pair of bounds after the other, in the order
 * of the index, for each combination of elements: together they return each entry once and in order.
 */
#ifndef SHERMAN_SCANKEYS_H
#define SHERMAN_SCANKEYS_H

#include "am/scan/scan_edges.h"

#include "access/sdir.h"
#include "access/skey.h"

/* A scan key, digested.  What depends on the argument is made anew for each rescan. */
typedef struct ScanQual
{
	ScanKey		key;			/* in the scan's own array */
	int			flags;			/* SK_SEARCH* */
	StrategyNumber strategy;
	Oid			subtype;
	int			column;			/* from 0 */
	Oid			type;			/* of the argument, or of the array's elements */
	bool		own_type;		/* that is the operator class's input type */
	FmgrInfo	compare;		/* order function (column, argument); only made unless own_type */
	FmgrInfo	self_compare;	/* order function (argument, argument) */
	bool		self_ready;		/* self_compare was made */
	Datum		value;			/* the argument; of an array under an inequality its decisive element */
	Datum	   *elements;		/* of an array under equality: in index order, without duplicates */
	int			element_count;
	int			current;		/* the element of this combination */
	int			hint;			/* of an array: the element that was found last */
	Oid			element_type;	/* of the array, and how it is stored */
	int16		element_length;
	bool		element_by_value;
	char		element_align;
} ScanQual;

/* What the quals of one column ask, as far as bounds can be made of it.  NULL: nothing. */
typedef struct ScanColumn
{
	ScanQual   *equal;			/* `=`, `= ANY` or IS NULL */
	ScanQual   *low;			/* in the order of the index; only without `equal` */
	ScanQual   *high;
	bool		ranged;			/* NULLs are out, without `equal` */
} ScanColumn;

typedef struct ScanKeys
{
	ShermanKeys *keys;
	MemoryContext context;		/* of the scan */
	MemoryContext arrays;		/* of elements, emptied by each rescan that has arrays */
	int			count;
	ScanQual   *quals;

	/* made by each rescan */
	int			equal_count;	/* leading columns bound by equality or IS NULL */
	ScanQual   *equal[INDEX_MAX_KEYS];
	int			range_column;	/* the column behind them if it has a range, else -1 */
	ScanQual   *low;			/* in the order of the index; NULL: open, but for NULLs */
	ScanQual   *high;
	int			array_count;
	ScanQual   *array[INDEX_MAX_KEYS];	/* those of `equal` that are arrays */
	int			residual_count;
	ScanQual  **residual;		/* to be tested entry by entry */
	KeyReader	reader;			/* for that */

	/* what is asked of columns that the bounds leave open, for scan_skip.c */
	int			conditions_from;	/* the first that `condition` is set of: equal_count */
	int			conditions;		/* behind the last one with a condition; 0: there is none */
	ScanColumn	condition[INDEX_MAX_KEYS];
	int			rest_count;
	ScanQual  **rest;			/* those of `residual` that `condition` does not have */

	/* made for each combination */
	ScanEdge	low_edge;
	ScanEdge	high_edge;
} ScanKeys;

/* Digests the scan keys of a scan, which lie in scan->keyData and stay there. In `context`. */
extern ScanKeys *scan_keys_make(Relation index, ShermanKeys *keys, ScanKey scan_keys, int count,
								MemoryContext context);

/* Frees it; NULL is nothing. */
extern void scan_keys_free(ScanKeys *made);

/* Whether `made` still fits: the same quals, but for arguments. */
extern bool scan_keys_fit(const ScanKeys *made, const ShermanKeys *keys, ScanKey scan_keys, int count);

/*
 * Takes the arguments and makes the edges of the first combination in this direction. False: no row can
 * match.
 */
extern bool scan_keys_begin(ScanKeys *keys, ScanDirection direction);

/* Makes the edges of the next combination in this direction. False: there is none. */
extern bool scan_keys_turn(ScanKeys *keys, ScanDirection direction);

static inline bool
scan_keys_next(ScanKeys *keys, ScanDirection direction)
{
	return keys->array_count > 0 && scan_keys_turn(keys, direction);
}

/*
 * The two halves of it, for who looks at combinations that are not scanned yet.  The next one in this direction, the last array turning
 * fastest; false: there is none, and it stands at the first one again.  And the edges of the combination; false: no row can match.
 */
extern bool scan_keys_step(ScanKeys *keys, ScanDirection direction);
extern bool scan_keys_edges(const ScanKeys *keys, ScanEdge *low, ScanEdge *high);

/* Columns that the edges bind. */
static inline int
scan_keys_columns(const ScanKeys *keys)
{
	return keys->equal_count + (keys->range_column >= 0 ? 1 : 0);
}

/* Place among the combinations: `positions` has room for array_count numbers. */
extern void scan_keys_save(const ScanKeys *keys, int *positions);
extern void scan_keys_restore(ScanKeys *keys, const int *positions);

/* Whether an entry, which the keys' reader has open, passes these quals. */
extern bool scan_keys_pass(ScanKeys *keys, ScanQual *const *quals, int count);

/* What a qual of the equal or IS NULL kind binds its column to; of an array, one of its elements. */
extern void scan_qual_value(const ScanKeys *keys, ScanQual *qual, int element, ShermanSearchColumn *value);
/* The range that a column's condition leaves. */
extern void scan_column_range(const ScanKeys *keys, int column, ScanQual *low, ScanQual *high, ScanRange *range);
/* Values of the column that such a qual leaves. */
extern int	scan_qual_values(const ScanQual *qual);
/* Whether a qual of a range holds for its argument itself. */
extern bool scan_qual_is_inclusive(const ScanQual *qual);
/* A column's value against a qual's argument, or its element, in the order of the index. */
extern int	scan_qual_compare(ScanKeys *keys, ScanQual *qual, Datum value, int element);
/* Whether a value is an element of an array.  *place: how many elements lie before it. */
extern bool scan_qual_find(ScanKeys *keys, ScanQual *qual, Datum value, int *place);
/* Whether a value lies before the end (low), or behind it (high), that a qual sets to a range. */
extern bool scan_qual_leaves_out(ScanKeys *keys, ScanQual *qual, bool low, Datum value);
/*
 * scan_condition.c: whether what is asked of a column holds for a value.  *place: how many of the values that would do lie before it, in
 * the order of the index.
 */
extern bool scan_condition_holds(ScanKeys *keys, int column, const ScanColumn *condition, Datum value, bool isnull, int *place);
/* Two values of a column, in the order of the index. */
extern int	scan_values_compare(ScanKeys *keys, int column, Datum left, Datum right);

#endif							/* SHERMAN_SCANKEYS_H */
