/*
 * keys.h
 *		The face of am/keys: rows to keys, and back.
 */
#ifndef SHERMAN_AM_KEYS_H
#define SHERMAN_AM_KEYS_H

#include "am/base/sherman.h"

/* ---- keys.c ---- */
typedef struct ShermanKeys ShermanKeys;

/*
 * The layout of an index's keys: format, per-column normalization, comparators.  Made in CurrentMemoryContext, from catalogs
 * only (usable before the tree exists).  `meta`: of an index that is there, whose sizes of cells are kept if its definition can have
 * them; else, as with NULL, they are those of a new index.
 */
extern ShermanKeys *sherman_keys_make(Relation index, const ShermanMetaPage *meta);
/* Whether keys that were made for the index earlier are as they would be made now: its definition has not changed since. */
extern bool sherman_keys_serve(const ShermanKeys *keys, Relation index);
extern const TreeFormat *sherman_keys_format(const ShermanKeys *keys);

/* Lengths of rows' images, by the words that they take in a cell; what takes more than a cell's is in the last class. */
#define SHERMAN_IMAGE_CLASSES 8
typedef struct ShermanImages
{
	double		count[SHERMAN_IMAGE_CLASSES];
	double		bytes[SHERMAN_IMAGE_CLASSES];	/* that they take out of line */
} ShermanImages;

/* Whether the length of keys' images is not known from the index's definition, so that a build is to measure it. */
extern bool sherman_keys_vary(const ShermanKeys *keys);
/* Counts a row's image; about: compression is not tried, and zeros at its end count. Values are not toasted out of line. */
extern void sherman_keys_measure(const ShermanKeys *keys, Datum *values, bool *isnull, ShermanImages *images);
/* Has the keys in the cells that make the index of such rows smallest. Nothing was formed for them yet that is kept. */
extern void sherman_keys_fit_cells(ShermanKeys *keys, const ShermanImages *images);
/* Whether to compare keys runs no query, as far as can be told. */
extern bool sherman_keys_compare_alone(const ShermanKeys *keys);

/* Notes how this process encodes the keys, and the versions of their collations, for an index that is to be filled by them. */
extern void sherman_keys_note(const ShermanKeys *keys, ShermanMetaPage *meta);
/* Whether the index's keys were encoded as this process would: else it must not be used.  From catalogs only; raises nothing. */
extern bool sherman_keys_fit(Relation index, const ShermanMetaPage *meta);
/* Warns if a collation's order may have changed since the index was built. */
extern void sherman_keys_warn_versions(Relation index, const ShermanMetaPage *meta);

/*
 * Forms the key of a row: normalized bytes and, unless lossless, the image (palloc'd in CurrentMemoryContext).  Raises btree's error
 * (54000) beyond btree's limit, 0A000 for a TID offset above 4095.
 */
extern void sherman_keys_form(ShermanKeys *keys, Relation index, Datum *values, bool *isnull, ItemPointer tid, TreeKey *key);

/* Rebuilds the columns of an entry (datums may point into key->image or CurrentMemoryContext). */
extern void sherman_keys_datums(ShermanKeys *keys, const TreeKey *key, Datum *values, bool *isnull);

/* TreeCompare for trees of this index; argument = ShermanKeys. bound->argument: NULL or a ShermanSearch (scankeys.c). */
extern int sherman_keys_compare(void *argument, const TreeBound *bound, const TreeKey *entry);

/* ---- mirror.c ---- */

/* Our access method in this database, whatever its name; of several the oldest. InvalidOid: the extension is not here. */
extern Oid	sherman_access_method(void);
/* Behind a statement that may have changed an operator family of btree's: our mirror of it follows. */
extern void sherman_mirror_changed(Node *statement);
/* Raises unless the columns of an index that is to be built have classes that know as equal what their types do, or were named. */
extern void sherman_check_classes(Relation index);

/* ---- missing_class.c ---- */

/* Before a statement: raises if it makes an index of ours with an operator class of btree's that has no mirror. */
extern void sherman_require_classes(Node *statement);

/* ---- validate.c ---- */
extern bool sherman_validate(Oid opclass);

#endif							/* SHERMAN_AM_KEYS_H */
