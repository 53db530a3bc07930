/*
 * key_layout.h
 *		What keys.c, scankeys.c and scan.c share: the layout of an index's keys.
 *
 * Normalized key of an index, most significant byte first: the leading column's bytes (its NULL-ness is
 * TreeKey.high), then for each further column one byte of NULL-ness and its bytes.  A flag of NULL-ness is
 * set where the value sorts behind: NULL under NULLS LAST, not NULL under NULLS FIRST.  Bytes of a NULL are
 * zeros; those of a DESC column are inverted. The first column that is not there whole is the last one with
 * any byte there.
 *
 * Image: where the normalized key holds all key columns without loss, and there are no included columns, there is
 * none (TreeFormat.lossless).  A whole image is the index tuple without its TID, that is t_info and what follows, without
 * the zeros at its end.  Where the normalized key holds all key columns without loss, and there are included columns, the
 * data of the key columns are left out of it.  All other indexes have brief images (brief.h), unless they were built by a
 * version that knew whole ones alone: ShermanKeys.brief.
 */
#ifndef SHERMAN_KEY_LAYOUT_H
#define SHERMAN_KEY_LAYOUT_H

#include "am/keys/keys.h"

#include "am/keys/brief.h"
#include "am/keys/normalize.h"
#include "access/tupmacs.h"
#include "port/pg_bswap.h"
#include "utils/sortsupport.h"

/* Bytes of normalized key at most. */
#define KEY_NORM_MAX (TREE_NORM_WORDS * 8)

/* BTMaxItemSize() for pages of 8 KB, with header: a row that fits btree fits us. */
#define KEY_TUPLE_MAX_BYTES TREE_IMAGE_MAX_BYTES

/* What forming a tuple of an entry may write to, one that is damaged included: also with a gap and a header of the longest. */
#define KEY_TUPLE_ROOM MAXALIGN(sizeof(IndexTupleData) + TREE_IMAGE_MAX_BYTES + VARHDRSZ + 2 * MAXIMUM_ALIGNOF)

/* Bytes in front of the image in an index tuple: its TID. */
#define KEY_IMAGE_START offsetof(IndexTupleData, t_info)

/* What of a column that is not whole in the normalized key names the key for the key lock (am/access/key_names.c). */
typedef enum KeyNaming
{
	KEY_UNNAMED,				/* nothing */
	KEY_BY_HASH,				/* KeyColumn.hash */
	KEY_BY_IMAGE,				/* its bytes: equal values have the same */
	KEY_BY_OTHERS_CLASS			/* the type's hash class, if somebody has created one */
} KeyNaming;

typedef struct KeyColumn
{
	NormalizeKind kind;
	int			null_at;		/* byte of its NULL-ness; -1 for the leading column */
	int			at;				/* its first byte */
	int			bytes;			/* its bytes in the normalized key, may be 0 */
	bool		whole;			/* these bytes decide its order */
	bool		descending;
	bool		nulls_first;
	int			data_at;		/* of an exact key: its data in an index tuple without NULLs */
	uint64		inverted;		/* bits of the integer that its bytes are, if the keys are integers */
	Oid			type;			/* the operator class's input type */
	Oid			family;
	Oid			collation;
	Oid			order_proc;
	Oid			sort_proc;		/* InvalidOid if the class has none */
	SortSupportData sort;		/* ready once ShermanKeys.sort_ready */
	KeyNaming	naming;			/* known once ShermanKeys.naming_ready */
	FmgrInfo	hash;
} KeyColumn;

struct ShermanKeys
{
	TreeFormat	format;
	int			columns;		/* key columns; the descriptor's others are included ones */
	bool		exact;			/* the normalized key holds all key columns without loss */
	bool		varies;			/* the length of images is not known from the definition */
	bool		brief;			/* images are brief ones; then not exact */
	bool		integers;		/* exact, and all key columns are integers: normalize_is_integer() */
	int			data_bytes;		/* of an exact key: key_data_bytes() without NULLs */
	int			in_norm;		/* leading columns whose NULL-ness is in the normalized key */
	int			whole;			/* leading columns that are in it whole */
	bool		sort_ready;
	bool		naming_ready;
	TupleDesc	descriptor;		/* of the index tuple, own copy */
	MemoryContext context;
	BriefPlan	plan;			/* of brief images */
	KeyColumn	column[FLEXIBLE_ARRAY_MEMBER];
};

/* What a scan binds one column to. */
typedef struct ShermanSearchColumn
{
	Datum		value;
	bool		isnull;
	Oid			type;			/* of the value: a type of the column's family */
	FmgrInfo   *compare;		/* order function (column, argument); NULL: argument of the column's type */
} ShermanSearchColumn;

/*
 * What a scan's bound binds: TreeBound.argument.  The leading `whole` of its columns are decided by its
 * normalized key.
 */
typedef struct ShermanSearch
{
	int			columns;
	int			whole;
	ShermanSearchColumn column[INDEX_MAX_KEYS];
} ShermanSearch;

/*
 * An entry's columns, taken one by one.  Fill only by key_reader_open(); datums point into it or into its
 * key.
 */
typedef struct KeyReader
{
	ShermanKeys *keys;
	TreeKeyView key;
	bool		formed;			/* tuple holds the entry */
	IndexTuple	tuple;
	union
	{
		IndexTupleData header;
		char		bytes[KEY_TUPLE_ROOM];
		uint64		align;
	}			own;			/* where the tuple lies unless the caller has a place */
	uint64		restored[INDEX_MAX_KEYS][NORMALIZE_RESTORE_BYTES / sizeof(uint64)];
} KeyReader;

static inline void
key_reader_open(KeyReader *reader, ShermanKeys *keys, const TreeKey *key)
{
	reader->keys = keys;
	reader->key.norm = key->norm;
	reader->key.image = key->image;
	reader->key.image_bytes = key->image_bytes;
	reader->key.high = key->high;
	reader->formed = false;
	reader->tuple = &reader->own.header;
}

/* The same of a batch's entry; the tuple will lie at `place`, which is aligned and has KEY_TUPLE_ROOM bytes. */
static inline void
key_reader_open_at(KeyReader *reader, ShermanKeys *keys, const TreeKeyView *key, void *place)
{
	reader->keys = keys;
	reader->key = *key;
	reader->formed = false;
	reader->tuple = place;
}

/* The datum of a key column (from 0) of an entry that is not cut. */
extern Datum key_reader_column(KeyReader *reader, int column, bool *isnull);

/* The entry, which is not cut, as an index tuple of all columns, but for its TID. */
extern IndexTuple key_reader_tuple(KeyReader *reader);

/*
 * As key_reader_tuple() of an entry whose key columns are integers (ShermanKeys.integers), at a place as key_reader_open_at()
 * wants it.  False: it is none for this short way, for a NULL, say.
 */
extern bool key_integer_tuple(const ShermanKeys *keys, const TreeKeyView *key, IndexTuple tuple);

/* Flag of NULL-ness of a column. */
static inline bool
key_null_flag(const KeyColumn *column, bool isnull)
{
	return isnull != column->nulls_first;
}

static inline void
key_invert_bytes(uint8 *bytes, int count)
{
	for (int i = 0; i < count; i++)
		bytes[i] = (uint8) ~bytes[i];
}

/* Normalized bytes <-> words of a TreeKey. */
static inline void
key_words_from_bytes(const ShermanKeys *keys, const uint8 *bytes, uint64 *words)
{
	int			count = keys->format.norm_bytes / 8;
	int			i;

	for (i = 0; i < count; i++)
	{
		uint64		word;

		memcpy(&word, bytes + i * 8, sizeof(word));
		words[i] = pg_ntoh64(word);
	}
	for (; i < TREE_NORM_WORDS; i++)
		words[i] = 0;
}

static inline void
key_bytes_from_words(const ShermanKeys *keys, const uint64 *words, uint8 *bytes)
{
	for (int i = 0; i < keys->format.norm_bytes / 8; i++)
	{
		uint64		word = pg_hton64(words[i]);

		memcpy(bytes + i * 8, &word, sizeof(word));
	}
}

/* Whether the normalized key has a column's NULL-ness and value without loss. */
static inline bool
key_has_column(const KeyColumn *column)
{
	return column->whole && NORMALIZE_IS_LOSSLESS(column->kind);
}

/* The value, not NULL, of a column that it has, from the key's bytes. By-reference values lie in `room`. */
static inline Datum
key_restore_value(const KeyColumn *column, const uint8 *bytes, void *room)
{
	uint8		inverted[NORMALIZE_RESTORE_BYTES];

	if (!column->descending)
		return normalize_restore(column->kind, bytes + column->at, room);
	memcpy(inverted, bytes + column->at, column->bytes);
	key_invert_bytes(inverted, column->bytes);
	return normalize_restore(column->kind, inverted, room);
}

/* The integer that these bytes of a normalized key are, most significant first. */
static inline uint64
key_words_integer(const uint64 *words, int at, int bytes)
{
	int			skipped = at % 8 * 8;
	uint64		value = words[at / 8] << skipped;

	if (skipped + bytes * 8 > 64)
		value |= words[at / 8 + 1] >> (64 - skipped);
	return value >> (64 - bytes * 8);
}

/* An integer of so many bytes to where a tuple has it. */
static inline void
key_write_integer(char *to, uint64 value, int bytes)
{
	uint16		two = (uint16) value;
	uint32		four = (uint32) value;

	switch (bytes)
	{
		case 1:
			*to = (char) value;
			break;
		case 2:
			memcpy(to, &two, sizeof(two));
			break;
		case 4:
			memcpy(to, &four, sizeof(four));
			break;
		default:
			memcpy(to, &value, sizeof(value));
			break;
	}
}

/* Goes on to where the alignment of a tuple's data allows. Gaps are zeros, as in a tuple of PostgreSQL's own. */
static inline char *
key_align_with_zeros(char *data, char *end, char alignment)
{
	char	   *next = data + att_align_nominal(end - data, alignment);

	while (end < next)
		*end++ = 0;
	return end;
}

/* The part of a row's key that is integers: fills high and norm. */
extern void keys_form_normalized(const ShermanKeys *keys, const Datum *values, const bool *isnull,
								 TreeKey *key);

/* The rest of it, as sherman_keys_form(): the TID and, if the format is not lossless, the image. */
extern void keys_form_rest(ShermanKeys *keys, Relation index, Datum *values, bool *isnull, ItemPointer tid,
						   TreeKey *key);

/*
 * Bytes of the key columns' data, and of the gap behind them, in an index tuple of these columns: where the data
 * of the included ones begin.  `first_null`: the first included one is NULL.
 */
extern Size key_data_bytes(const ShermanKeys *keys, const bool *isnull, bool first_null);

/* Makes the columns' SortSupport, once. Raises what operator classes raise. */
extern void keys_prepare_sort(ShermanKeys *keys);

/* The bound that stands for one entry: itself is neither above nor below it. */
extern void keys_entry_bound(const ShermanKeys *keys, const TreeKey *key, TreeBound *bound);

#endif							/* SHERMAN_KEY_LAYOUT_H */
