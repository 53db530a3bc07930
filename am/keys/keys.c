/*
 * keys.c
 *		The keys of an index: their layout in the tree.
 *
 * The format of a new index is chosen from its definition: see choose_format(). The metapage keeps it: another version
 * may have chosen other sizes, and as long as they serve the definition the index goes on with them.
 */
#include "am/base/sherman.h"

#include "access/nbtree.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "common/hashfn.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "am/keys/collations.h"
#include "am/keys/key_layout.h"

/* The image's length byte in a cell. */
#define CELL_LENGTH_BYTES 1
/* A cell's first word: state, TID, stamp. */
#define CELL_HEAD_BYTES 8
/* The reference to an overflow key, at the image's place in a cell. */
#define CELL_REFERENCE_BYTES 16

/* The longest cell: a line. */
#define CELL_MAX_BYTES ((TREE_NORM_WORDS + 1) * 8)

/*
 * In the metapage beside the kind of the first column: the index has brief images.  A version that knows whole ones alone takes it
 * for an index whose keys it would encode in another way, and leaves it alone.
 */
#define KINDS_BRIEF 0x80

/* Bytes that the columns would take in a normalized key without end. */
typedef struct KeyDemand
{
	int			bytes;			/* of the leading columns that have a normalization */
	bool		exact;			/* all key columns, each without loss */
	bool		open;			/* the last of them is a prefix that takes whatever there is */
	bool		included;		/* there are included columns */
	bool		prefix_alone;	/* one key column, a prefix, and included ones */
	bool		fixed;			/* no column's length varies */
	int			rest_bytes;		/* of the image without the key columns; 0 = not known, or not exact */
} KeyDemand;

/* name is stored with its 64 bytes, but its zeros are cut off the image: it is as long as its text. */
static bool
attribute_is_fixed(Form_pg_attribute attribute)
{
	return attribute->attlen > 0 && attribute->attlen != NAMEDATALEN;
}

/* Whether a column's length varies, and bytes of whole image for the included ones of rows without NULLs, where it does not. */
static void
measure_image(const ShermanKeys *keys, KeyDemand *demand)
{
	Size		data = 0;
	Size		rest_from = 0;

	for (int i = 0; i < keys->descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(keys->descriptor, i);

		if (!attribute_is_fixed(attribute))
			return;
		data = att_align_nominal(data, attribute->attalign);
		if (i == keys->columns)
			rest_from = data;
		data += attribute->attlen;
	}
	demand->fixed = true;
	demand->rest_bytes = demand->exact ? (int) (sizeof(unsigned short) + data - rest_from) : 0;
}

static void
measure_demand(ShermanKeys *keys, KeyDemand *demand)
{
	memset(demand, 0, sizeof(*demand));
	demand->exact = true;
	demand->included = keys->columns < keys->descriptor->natts;
	for (int i = 0; i < keys->columns; i++)
	{
		NormalizeKind kind = keys->column[i].kind;

		if (i > 0)
			demand->bytes++;
		demand->bytes += normalize_width(kind);
		demand->open = NORMALIZE_IS_PREFIX(kind);
		if (!NORMALIZE_IS_LOSSLESS(kind))
			demand->exact = false;
		if (kind == NORMALIZE_NONE || demand->open)
			break;
	}

	demand->prefix_alone = demand->included && demand->open && keys->columns == 1;
	measure_image(keys, demand);
}

/* An image does not take the place of so many bytes of normalized key. */
#define FIXED_LEAST_NORM 24

/* Bytes of a prefix behind whole columns that decide as a rule. */
#define PREFIX_LEAST_BYTES 4

/* Whole bytes of normalized key beside which the cells have room for an image, or for what stands for it. */
#define EXACT_NORM_MAX (CELL_MAX_BYTES - CELL_HEAD_BYTES - CELL_REFERENCE_BYTES)

/* The cell with so many bytes of normalized key and, behind its length, of an image; 0: with none. */
static int
cell_bytes_for(int norm, int image)
{
	int			bytes = CELL_HEAD_BYTES + norm;

	if (image > 0)
		bytes += Max(TYPEALIGN(8, image + CELL_LENGTH_BYTES), CELL_REFERENCE_BYTES);
	return bytes;
}

/*
 * Whether the normalized key can hold the key columns without loss, all of them.  Sets the format's sizes if so:
 * the smallest cell that holds the key and, with included columns, the image of these.
 */
static bool
choose_exact(const KeyDemand *demand, TreeFormat *format)
{
	int			wanted = (demand->bytes + 7) / 8 * 8;
	int			with_rest;

	if (!demand->exact || demand->bytes > (demand->included ? EXACT_NORM_MAX : KEY_NORM_MAX))
		return false;
	if (!demand->included)
	{
		format->lossless = true;
		format->cell_bytes = cell_bytes_for(wanted, 0);
		format->norm_bytes = format->cell_bytes - CELL_HEAD_BYTES;
		return true;
	}
	with_rest = cell_bytes_for(wanted, demand->rest_bytes);
	format->norm_bytes = wanted;
	format->cell_bytes = demand->rest_bytes > 0 ? Min(with_rest, CELL_MAX_BYTES) : CELL_MAX_BYTES;
	return true;
}

/* Gives the columns their places in the normalized key of the format's length. */
static void
place_columns(ShermanKeys *keys)
{
	int			at = 0;
	int			end = keys->format.norm_bytes;
	bool		open = true;	/* all columns so far are whole */

	keys->in_norm = keys->whole = 0;
	for (int i = 0; i < keys->columns; i++)
	{
		KeyColumn  *column = &keys->column[i];

		column->null_at = -1;
		column->at = column->bytes = 0;
		column->whole = false;
	}
	for (int i = 0; i < keys->columns; i++)
	{
		KeyColumn  *column = &keys->column[i];
		int			width = normalize_width(column->kind);

		if (!open || (i > 0 && at >= end))
			break;
		if (i > 0)
			column->null_at = at++;
		keys->in_norm = i + 1;
		column->at = at;
		if (NORMALIZE_IS_PREFIX(column->kind))
			column->bytes = end - at;
		else if (width > 0 && at + width <= end)
		{
			column->bytes = width;
			column->whole = true;
			keys->whole = i + 1;
		}
		at += column->bytes;
		open = column->whole;
	}
	brief_plan(keys);
}

/*
 * The sizes for rows whose images have a known length: the most bytes of normalized key, up to `most`, beside which the cell has
 * room for the image.
 */
static void
choose_fixed(ShermanKeys *keys, int most)
{
	TreeFormat *format = &keys->format;
	int			room = CELL_MAX_BYTES - CELL_HEAD_BYTES;

	format->norm_bytes = (uint8) Min(most, room - CELL_REFERENCE_BYTES);
	for (int norm = format->norm_bytes; norm >= Min(most, FIXED_LEAST_NORM); norm -= sizeof(uint64))
	{
		int			cell;

		format->norm_bytes = (uint8) norm;
		place_columns(keys);
		cell = cell_bytes_for(norm, brief_fixed_image(keys));
		if (cell <= CELL_MAX_BYTES)
		{
			format->cell_bytes = (uint8) cell;
			return;
		}
	}
	format->norm_bytes = (uint8) Min(most, room - CELL_REFERENCE_BYTES);
}

/*
 * Keys without loss are kept whole: choose_exact().  Others have their image beside at least 8 normalized bytes:
 * - of fixed length: as many normalized bytes as leave the image its room, and the smallest cell that holds both.  An
 *	 image too long for any cell leaves its place to normalized bytes: choose_fixed().
 * Where no length is known these are what is guessed; a build knows the lengths, and takes the cell that fits them:
 * sherman_keys_fit_cells().
 * - one column of variable length: 32 bytes, half of it normalized.  A word or a short name fits; what does
 *	 not lies out of line, and is only fetched where the first 8 bytes tie.  Without a normalization every
 *	 comparison wants the image: 64 bytes, so that it is rarely out of line.
 * - several columns: 64 bytes, up to 24 of them normalized, so that a leading column and the start of the
 *	 next decide; 16 where these leave a prefix some bytes, and of a single prefix, to leave room for what is included.
 *
 * Returns whether the key is exact.
 */
static bool
choose_format(ShermanKeys *keys, const KeyDemand *demand)
{
	TreeFormat *format = &keys->format;
	int			attributes = keys->descriptor->natts;
	int			wanted = demand->open ? KEY_NORM_MAX : (Max(demand->bytes, 1) + 7) / 8 * 8;

	format->lossless = false;
	if (choose_exact(demand, format))
		return true;
	format->cell_bytes = CELL_MAX_BYTES;
	if (demand->fixed)
		choose_fixed(keys, wanted);
	else if (attributes == 1)
	{
		if (demand->open)
			format->cell_bytes = 32;
		format->norm_bytes = 8;
	}
	else
	{
		bool		start = demand->open && demand->bytes + PREFIX_LEAST_BYTES <= 16;

		format->norm_bytes = Min(wanted, demand->prefix_alone || start ? 16 : 24);
	}
	return false;
}

/* Where the data of an exact key's columns lie in an index tuple without NULLs: so that they are put there fast. */
static void
place_data(ShermanKeys *keys)
{
	bool		isnull[INDEX_MAX_KEYS] = {false};
	Size		data = 0;

	keys->integers = keys->exact;
	if (!keys->exact)
		return;
	for (int i = 0; i < keys->columns; i++)
	{
		KeyColumn  *column = &keys->column[i];
		Form_pg_attribute attribute = TupleDescAttr(keys->descriptor, i);

		data = att_align_nominal(data, attribute->attalign);
		column->data_at = (int) data;
		data += attribute->attlen;
		keys->integers &= normalize_is_integer(column->kind, &column->inverted) &&
			column->bytes == attribute->attlen;
		if (column->descending)
			column->inverted = ~column->inverted;
	}
	keys->data_bytes = (int) key_data_bytes(keys, isnull, false);
}

/*
 * Pattern operators order bytes, but their = is text's: under a collation where different bytes may be equal
 * the two disagree.  Core refuses that for btree's classes, by their OIDs, and in these words.
 */
static void
refuse_nondeterministic(Relation index, int column, Oid order_proc)
{
	Oid			collation = index->rd_indcollation[column];
	HeapTuple	tuple;

	if ((order_proc != F_BTTEXT_PATTERN_CMP && order_proc != F_BTBPCHAR_PATTERN_CMP) ||
		!OidIsValid(collation) || get_collation_isdeterministic(collation))
		return;
	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(get_index_column_opclass(RelationGetRelid(index), column + 1)));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class of column %d", column + 1);
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("nondeterministic collations are not supported for operator class \"%s\"",
					NameStr(((Form_pg_opclass) GETSTRUCT(tuple))->opcname))));
}

/*
 * Fills in what a column's definition says of it, and nothing that follows from that.
 */
static void
describe_column(Relation index, int i, KeyColumn *column)
{
	column->descending = (index->rd_indoption[i] & INDOPTION_DESC) != 0;
	column->nulls_first = (index->rd_indoption[i] & INDOPTION_NULLS_FIRST) != 0;
	column->type = index->rd_opcintype[i];
	column->family = index->rd_opfamily[i];
	column->collation = index->rd_indcollation[i];
	column->order_proc = index_getprocid(index, i + 1, SHERMAN_ORDER_PROC);
	column->sort_proc = index_getprocid(index, i + 1, BTSORTSUPPORT_PROC);
}

bool
sherman_keys_serve(const ShermanKeys *keys, Relation index)
{
	if (keys->columns != IndexRelationGetNumberOfKeyAttributes(index) ||
		keys->format.fill_percent != (uint8) sherman_fillfactor(index) ||
		!equalTupleDescs(keys->descriptor, RelationGetDescr(index)))
		return false;
	for (int i = 0; i < keys->columns; i++)
	{
		const KeyColumn *column = &keys->column[i];
		KeyColumn	now;

		describe_column(index, i, &now);
		if (column->descending != now.descending || column->nulls_first != now.nulls_first ||
			column->type != now.type || column->family != now.family || column->collation != now.collation ||
			column->order_proc != now.order_proc || column->sort_proc != now.sort_proc)
			return false;
	}
	return true;
}

static NormalizeKind
column_kind(Relation index, int column)
{
	return normalize_kind(index_getprocid(index, column + 1, SHERMAN_ORDER_PROC), index->rd_indcollation[column]);
}

/*
 * Takes over the sizes that an index was made with, if they serve its definition: cells that there can be, with room for all that
 * they are to hold.
 */
static void
adopt_sizes(ShermanKeys *keys, const KeyDemand *demand, const ShermanMetaPage *meta)
{
	int			cell = meta->cell_bytes;
	int			norm = meta->norm_bytes;
	int			beside = cell - CELL_HEAD_BYTES - norm;

	if (cell % 8 != 0 || norm % 8 != 0 || norm == 0 || cell > CELL_MAX_BYTES)
		return;
	if (keys->format.lossless ? beside != 0 : beside < CELL_REFERENCE_BYTES)
		return;
	if (keys->exact && norm < demand->bytes)
		return;
	keys->format.cell_bytes = (uint8) cell;
	keys->format.norm_bytes = (uint8) norm;
}

ShermanKeys *
sherman_keys_make(Relation index, const ShermanMetaPage *meta)
{
	int			columns = IndexRelationGetNumberOfKeyAttributes(index);
	ShermanKeys *keys = palloc0(offsetof(ShermanKeys, column) + sizeof(KeyColumn) * columns);
	KeyDemand	demand;

	keys->columns = columns;
	keys->context = CurrentMemoryContext;
	keys->descriptor = CreateTupleDescCopy(RelationGetDescr(index));
	for (int i = 0; i < columns; i++)
	{
		KeyColumn  *column = &keys->column[i];

		describe_column(index, i, column);
		refuse_nondeterministic(index, i, column->order_proc);
		column->kind = column_kind(index, i);
	}
	measure_demand(keys, &demand);
	keys->exact = choose_format(keys, &demand);
	keys->varies = !demand.fixed;
	keys->brief = !keys->exact && brief_serves(keys->descriptor) && (meta == NULL || (meta->kinds[0] & KINDS_BRIEF) != 0);
	if (meta != NULL)
		adopt_sizes(keys, &demand, meta);
	keys->format.fill_percent = (uint8) sherman_fillfactor(index);

	/*
	 * Never needed: an argument that cannot be normalized meets only columns whose bytes, if any, give the
	 * datum back (normalize.h), so whatever a cut separator holds can be compared.
	 */
	keys->format.full_separators = false;
	place_columns(keys);
	place_data(keys);
	return keys;
}

/* ---- cells for the lengths that there are ---- */

/* Words that an image takes in a cell, with its length, less one: the number of its class. */
static int
image_class(Size image)
{
	return (int) Min((image + CELL_LENGTH_BYTES - 1) / sizeof(uint64), SHERMAN_IMAGE_CLASSES - 1);
}

bool
sherman_keys_vary(const ShermanKeys *keys)
{
	return !keys->format.lossless && keys->varies;
}

/* The length of a row's whole image, about. */
static Size
measure_whole(const ShermanKeys *keys, Datum *values, bool *isnull)
{
	int			last = keys->descriptor->natts - 1;
	Size		image = sizeof(unsigned short) + heap_compute_data_size(keys->descriptor, values, isnull);

	/* The key columns' data are left out, and the zeros behind a name. */
	if (keys->exact)
		image -= Min(image - sizeof(unsigned short), (Size) keys->data_bytes);
	else if (!isnull[last] && TupleDescAttr(keys->descriptor, last)->attlen == NAMEDATALEN)
		image -= NAMEDATALEN - strlen(NameStr(*DatumGetName(values[last])));
	return image;
}

void
sherman_keys_measure(const ShermanKeys *keys, Datum *values, bool *isnull, ShermanImages *images)
{
	uint8		brief[TREE_IMAGE_MAX_BYTES];
	Size		image = keys->brief ? brief_form(keys, values, isnull, sizeof(brief), brief) : 0;
	int			class;

	if (image == 0)
		image = measure_whole(keys, values, isnull);
	class = image_class(image);
	images->count[class]++;
	images->bytes[class] += TYPEALIGN(CELL_REFERENCE_BYTES, image);
}

void
sherman_keys_fit_cells(ShermanKeys *keys, const ShermanImages *images)
{
	TreeFormat	format = keys->format;
	int			least = CELL_HEAD_BYTES + format.norm_bytes + CELL_REFERENCE_BYTES;
	double		best = -1;

	Assert(sherman_keys_vary(keys));
	for (int cell = least; cell <= CELL_MAX_BYTES; cell += sizeof(uint64))
	{
		int			room = (cell - CELL_HEAD_BYTES - format.norm_bytes) / (int) sizeof(uint64);
		double		bytes = 0;

		format.cell_bytes = (uint8) cell;
		for (int class = 0; class < SHERMAN_IMAGE_CLASSES; class++)
			bytes += images->count[class] * tree_bytes_for_cell(&format) + (class < room ? 0 : images->bytes[class]);
		if (bytes > 0 && (best < 0 || bytes < best))
		{
			best = bytes;
			keys->format.cell_bytes = (uint8) cell;
		}
	}
}

/* ---- what the metapage knows of the encoding ---- */

static uint32
hash_of_version(const char *version)
{
	return version == NULL ? 0 : Max(string_hash(version, strlen(version) + 1), 1);
}

void
sherman_keys_note(const ShermanKeys *keys, ShermanMetaPage *meta)
{
	memset(meta->kinds, 0, sizeof(meta->kinds));
	memset(meta->collation_versions, 0, sizeof(meta->collation_versions));
	for (int i = 0; i < keys->columns; i++)
	{
		meta->kinds[i] = (uint8) keys->column[i].kind;
		meta->collation_versions[i] = hash_of_version(collation_version(keys->column[i].collation));
	}
	if (keys->brief)
		meta->kinds[0] |= KINDS_BRIEF;
}

bool
sherman_keys_fit(Relation index, const ShermanMetaPage *meta)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if ((meta->kinds[i] & ~(i == 0 ? KINDS_BRIEF : 0)) != (int) column_kind(index, i))
			return false;
	}
	return true;
}

/*
 * What core does for a collation whose version changed, and for the database's: the index may be as wrong, or
 * as right, as a btree of that age.
 */
void
sherman_keys_warn_versions(Relation index, const ShermanMetaPage *meta)
{
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		Oid			collation = index->rd_indcollation[i];
		char	   *version = collation_version(collation);

		if (meta->collation_versions[i] == hash_of_version(version))
			continue;
		ereport(WARNING,
				(errmsg("index \"%s\" was built with another version of collation \"%s\"",
						RelationGetRelationName(index), get_collation_name(collation)),
				 errdetail("The operating system provides version %s now.", version != NULL ? version : "none"),
				 errhint("Rebuild the index with REINDEX.")));
	}
}

const TreeFormat *
sherman_keys_format(const ShermanKeys *keys)
{
	return &keys->format;
}
