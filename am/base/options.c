/*
 * options.c
 *		Storage parameters of an index: btree's names, so that DDL moves between the two.
 */
#include "am/base/sherman.h"

#include "access/nbtree.h"
#include "access/reloptions.h"

/* A tree fills its leaves to at least this: half a leaf (TreeFormat.fill_percent). */
#define FILLFACTOR_LEAST 50

/* A tree has one copy or none (doc/internals/replicas.md). */
#define REPLICAS_MOST 1

typedef struct ShermanOptions
{
	int32		vl_len_;		/* varlena header (do not touch directly!) */
	int			fillfactor;		/* of leaves in bulk load, percent */
	bool		deduplicate_items;	/* whether a build makes an index whose leaves keep TIDs of one key together */
	int			replicas;		/* copies of each node that a build makes, beside the first */
	bool		constraint;		/* "sherman": what dumps know a constraint of ours by, constraints.c */
} ShermanOptions;

/* Set once in _PG_init(): the kind that reloptions.c knows our options by. */
static relopt_kind sherman_relopt_kind;

/*
 * Registers the storage parameters; once in each process, from _PG_init().
 */
void
sherman_define_options(void)
{
	sherman_relopt_kind = add_reloption_kind();
	add_int_reloption(sherman_relopt_kind, "fillfactor",
					  "Fills leaves to this percentage when the index is built; less than 50 counts as 50",
					  BTREE_DEFAULT_FILLFACTOR, BTREE_MIN_FILLFACTOR, 100, ShareUpdateExclusiveLock);
	add_bool_reloption(sherman_relopt_kind, "deduplicate_items",
					   "Stores duplicates of a key compactly, from the next build on", true, ShareUpdateExclusiveLock);
	add_int_reloption(sherman_relopt_kind, "replicas",
					  "Keeps so many copies on other memory nodes, from the next build on", 0, 0, REPLICAS_MOST,
					  ShareUpdateExclusiveLock);
	add_bool_reloption(sherman_relopt_kind, SHERMAN_MARK,
					   "Marks the index of a constraint, which has no access method in its definition, as this one's", false,
					   ShareUpdateExclusiveLock);
}

/*
 * amoptions: parses and, if `validate`, checks the storage parameters.
 */
bytea *
sherman_options(Datum reloptions, bool validate)
{
	static const relopt_parse_elt elements[] =
	{
		{.optname = "fillfactor",.opttype = RELOPT_TYPE_INT,.offset = offsetof(ShermanOptions, fillfactor)},
		{.optname = "deduplicate_items",.opttype = RELOPT_TYPE_BOOL,.offset = offsetof(ShermanOptions, deduplicate_items)},
		{.optname = "replicas",.opttype = RELOPT_TYPE_INT,.offset = offsetof(ShermanOptions, replicas)},
		{.optname = SHERMAN_MARK,.opttype = RELOPT_TYPE_BOOL,.offset = offsetof(ShermanOptions, constraint)},
	};

	return (bytea *) build_reloptions(reloptions, validate, sherman_relopt_kind, sizeof(ShermanOptions),
									  elements, lengthof(elements));
}

/*
 * Percent to which bulk load fills the leaves of this index: 50..100.
 */
int
sherman_fillfactor(Relation index)
{
	const ShermanOptions *options = (const ShermanOptions *) index->rd_options;

	if (options == NULL)
		return BTREE_DEFAULT_FILLFACTOR;
	return Max(options->fillfactor, FILLFACTOR_LEAST);
}

/*
 * Whether a tree of this format, made for the index now, keeps duplicates compactly: TreeFormat.postings.
 */
bool
sherman_deduplicates(Relation index, const TreeFormat *format)
{
	const ShermanOptions *options = (const ShermanOptions *) index->rd_options;

	if (!format->lossless || format->cell_bytes > TREE_POSTING_CELL_MAX_BYTES)
		return false;
	return options == NULL || options->deduplicate_items;
}

/*
 * What is lost with the server, or with its session, has no copies.
 */
bool
sherman_wants_replica(Relation index)
{
	const ShermanOptions *options = (const ShermanOptions *) index->rd_options;

	return options != NULL && options->replicas > 0 && index->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT;
}
