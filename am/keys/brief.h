/*
 * brief.h
 *		Brief images: what the normalized key does not say of an entry, and no more.
 *
 * An index has brief images, or whole ones (key_layout.h) for ever: its metapage says which.  They are
 *
 *	 head		1 byte of BRIEF_*
 *	 bitmap		with BRIEF_NULLS: a bit, set where it is NULL, for each column whose NULL-ness is not in the normalized key
 *	 fixed		the bytes of columns of fixed length, in the order of the columns
 *	 variable	the others: for each its length (1 byte, or 2 from 128 on), but for the last, which ends where the image does
 *
 * Nothing is aligned. Columns that the normalized key holds whole and without loss are not there, nor are NULLs.  Of a string
 * that begins in the normalized key only what lies behind that is there (BriefPart).  With BRIEF_WHOLE a whole image follows
 * the head: of rows that have a value which is compressed, or one that the rules here would not give back as it was.
 */
#ifndef SHERMAN_BRIEF_H
#define SHERMAN_BRIEF_H

#include "am/keys/keys.h"

#define BRIEF_HEAD_BYTES 1
#define BRIEF_NULLS 0x01
#define BRIEF_WHOLE 0x02

/* What a brief image has of a column. */
typedef enum BriefPart
{
	BRIEF_TOLD_INTEGER,			/* nothing: it is an integer of the normalized key */
	BRIEF_TOLD,					/* nothing: normalize_restore() gives it back */
	BRIEF_FIXED,				/* its bytes */
	BRIEF_TRIMMED,				/* its bytes without the zeros at their end: what has as many as a name */
	BRIEF_VARLENA,				/* what it holds, without the header */
	BRIEF_NAME,					/* as BRIEF_TRIMMED, and without what is in the normalized key */
	BRIEF_TEXT,					/* as BRIEF_VARLENA, and without what is in the normalized key: no byte of it is zero */
	BRIEF_BPCHAR,				/* the same; before it how many blanks it ends with, which neither has */
	BRIEF_BYTEA					/* the same; before it how many bytes the normalized key has */
} BriefPart;

/* A column, so that to read it no catalog and no descriptor is looked at. */
typedef struct BriefColumn
{
	BriefPart	part;
	bool		packable;		/* may have a header of one byte */
	bool		descending;
	uint8		alignment;		/* in a tuple */
	int16		length;			/* pg_attribute.attlen */
	int16		at;				/* of what it has in the normalized key: the first byte */
	int16		bytes;			/* how many */
	uint64		inverted;		/* of a BRIEF_TOLD_INTEGER: bits that are inverted there */
} BriefColumn;

/* How an index's brief images are read and written: known from the layout of its normalized key. */
typedef struct BriefPlan
{
	int			fixed_bytes;	/* of all columns of fixed length */
	int			last_variable;	/* the last column of variable length; -1: there is none */
	bool		high;			/* TreeKey.high of a leading column that is not NULL */
	bool		varlena;		/* there are columns that are varlenas */
	uint64		null_mask[TREE_NORM_WORDS];	/* bytes of NULL-ness in the normalized key */
	uint64		null_bits[TREE_NORM_WORDS]; /* what they are where nothing is NULL */
	BriefColumn column[INDEX_MAX_KEYS];
} BriefPlan;

struct KeyReader;

/* Whether the rows of an index with these columns can have brief images. */
extern bool brief_serves(TupleDesc descriptor);
/* Makes the plan, anew once the columns have other places in the normalized key. */
extern void brief_plan(ShermanKeys *keys);
/* Bytes of the images of rows without NULLs, if no column's length varies. */
extern int	brief_fixed_image(const ShermanKeys *keys);

/*
 * Writes a row's brief image, of TREE_IMAGE_MAX_BYTES at most.  Returns its length; 0 if it must be a whole one, or if a value
 * is longer than `longest` bytes with its header.
 */
extern Size brief_form(const ShermanKeys *keys, const Datum *values, const bool *isnull, Size longest, uint8 *image);

/*
 * Writes the entry's index tuple to the reader's place, which has KEY_TUPLE_ROOM bytes.  False: the image, which begins with a
 * head that has no BRIEF_WHOLE, is of no row.
 */
extern bool brief_tuple(struct KeyReader *reader);

#endif							/* SHERMAN_BRIEF_H */
